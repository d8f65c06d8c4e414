"""Which configuration entries of Kafka hold a secret.

An entry is secret where anything says so: the broker that describes it (``is_sensitive``, type ``PASSWORD``), its name,
or its value. Secret are Kafka's own names of the type ``PASSWORD``, with any prefix
(``listener.name.internal.ssl.key.password``). So are names that look like one. Brokers have entries of plugins
(storage, authorizers, reporters) that nobody here can know. And a value that was shown cannot be taken back. Names that
only speak of a secret (``delegation.token.expiry.time.ms``) end in what they are instead. A broker's loggers are
entries too: their names are those of classes, their values levels.

Imports nothing of kwire.

Source: the ``ConfigDef`` of brokers, producers, consumers and admin clients of Kafka 3.9 and 4.4.
"""

from __future__ import annotations

import functools
import re
from typing import Final

__all__ = ["PASSWORD", "PASSWORDS", "is_secret"]

PASSWORD: Final = 9
"""``config_type`` of a password (``DescribeConfigsResponse.ConfigType``)."""

BROKER_LOGGER: Final = 8
"""``resource_type`` of the levels of a broker's loggers (``ConfigResource.Type``)."""

PASSWORDS: Final = frozenset(
    {
        "delegation.token.master.key",
        "delegation.token.secret.key",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "zookeeper.ssl.keystore.password",
        "zookeeper.ssl.truststore.password",
    }
)
"""Every entry that Kafka declares as ``PASSWORD``."""

# Patterns are compiled when they are first used: it takes longer than to import most packages of kwire.
_compiled = functools.cache(re.compile)

_KNOWN: Final = rf"(?s:(?:.*\.)?(?:{'|'.join(map(re.escape, sorted(PASSWORDS)))})|scram-sha-\d+)"

_LOOKS: Final = (
    r"passw|passphrase|pwd|secret|token|credential|jaas|hmac|licen[cs]e|user\.?info|authorization"
    r"|(?:private|access|api|account)[._-]?key|(?:^|[._-])(?:pass|jwt|sas)(?:[._-]|$)|key$|connection[._-]?string"
)
_ABOUT: Final = (
    r"[._-](?:ms|seconds|bytes|length|size|count|iterations|algorithm|type|class|file|location|path|dir|url|uri"
    r"|endpoint|enabled?|client[._-]id)$"
)
"""How a name ends that speaks of a secret and is none."""

_VALUE: Final = (
    r"(?i:LoginModule\s+(?:required|requisite|sufficient|optional)"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY"
    r"|://[^/\s:@]*:[^/\s@]+@"
    r"|jdbc:oracle:\w{1,16}:[^/\s:@]*/[^\s@]{1,128}@"
    r"|(?<![\w-])eyJ[\w-]*\.eyJ"
    r"|(?:password|passwd|passphrase|\bpass|\bpwd|secret|token|credentials?|stored_key|server_key|"
    r"(?:private|access|api|account|shared)[._-]?key|sig(?:nature)?)[\"']?\s*[=:]"
    r"|(?:^\s*|authorization[\"']?\s*[=:][\s\"']*)(?:bearer|basic|negotiate)\s+[\w+/=.~-]{8,}"
    r"|(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])|(?<!\w)(?:gh[pousr]|github_pat|glpat|xox[abpr])[_-]\w{16,})"
)
"""Values that are secret by their form.

- a login module with its options
- a private key
- a URL with a password (Oracle's has its own form)
- a signed token
- options with a password
- an ``Authorization`` header
- keys of clouds and code hosts, which are known by how they begin
"""


LONGEST_NAME: Final = 512
"""Characters of an entry's name: what is longer is no name."""


def is_secret(
    name: object,
    value: object,
    sensitive: object = None,
    config_type: object = None,
    resource_type: object = None,
) -> bool:
    """Whether the ``value`` of the entry ``name`` is not to be shown.

    ``sensitive`` and ``config_type`` are what a broker says of the entry. ``resource_type`` is what it belongs to. They
    are None where that is not known.
    """
    if sensitive or config_type == PASSWORD:
        return True
    if isinstance(value, str) and _compiled(_VALUE).search(value):
        return True
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return True
    return _names_a_secret(name, resource_type == BROKER_LOGGER)


@functools.lru_cache(maxsize=1 << 10)
def _names_a_secret(name: str, is_logger: bool) -> bool:
    """Whether an entry of this name is secret whatever its value.

    The answer is cached: an entry is asked for again with each of its synonyms. These may be thousands of times shorter
    than its name.
    """
    small = name.strip().lower()
    if _compiled(_KNOWN).fullmatch(small):
        return True
    return not is_logger and bool(_compiled(_LOOKS).search(small)) and not _compiled(_ABOUT).search(small)
