"""Options of object stores: credentials, regions and endpoints, as options of a read instead of in its URIs.

An option is the name of a store, a dot, and an argument of Arrow's file system for it, under Arrow's name:
``s3.access_key``, ``gcs.access_token``, ``azure.account_key``. Those of Hadoop's ``s3a`` that say the same are known
too (``HADOOP``). They hold for all paths of that store:

- captures
- key logs
- names of topics
- the folder of a stream's state
- exports

Settings in a URI override these options.

Rules kept here:

- Values are in no ``repr``, and ``hidden`` leaves secret values out of a text. Workers get them pickled, with the rest
  of their task.
- An error for an impossible value does not quote it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from pyarrow import fs

from kwire.errors import KwireError

__all__ = ["NAMES", "NONE", "SECRETS", "Stores"]


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


_ARGUMENTS: Final[Mapping[str, Mapping[str, Callable[[str], Any]]]] = {
    "s3": {
        **dict.fromkeys(("access_key", "secret_key", "session_token"), str),
        **dict.fromkeys(("region", "endpoint_override", "scheme", "tls_ca_file_path"), str),
        **dict.fromkeys(("role_arn", "session_name", "external_id"), str),
        **dict.fromkeys(("anonymous", "force_virtual_addressing", "allow_bucket_creation"), _flag),
        **dict.fromkeys(("request_timeout", "connect_timeout"), float),
    },
    "gcs": {
        **dict.fromkeys(("access_token", "target_service_account", "endpoint_override", "scheme", "project_id"), str),
        "credential_token_expiration": datetime.fromisoformat,
        "anonymous": _flag,
    },
    "azure": {
        **dict.fromkeys(("account_name", "account_key", "sas_token", "tenant_id", "client_id", "client_secret"), str),
        **dict.fromkeys(("blob_storage_authority", "blob_storage_scheme"), str),
        **dict.fromkeys(("dfs_storage_authority", "dfs_storage_scheme"), str),
    },
}
"""By store the arguments of its file system, and what makes one of the text of an option."""

HADOOP: Final[Mapping[str, str]] = {
    "fs.s3a.access.key": "s3.access_key",
    "fs.s3a.secret.key": "s3.secret_key",
    "fs.s3a.session.token": "s3.session_token",
    "fs.s3a.endpoint": "s3.endpoint_override",
    "fs.s3a.endpoint.region": "s3.region",
}
"""Options of Hadoop, and what they are here."""

_SECRET: Final = ("secret_key", "session_token", "access_token", "account_key", "sas_token", "client_secret")
_OF_SCHEME: Final = {"s3": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure"}

NAMES: Final = (*(f"{store}.{name}" for store, names in _ARGUMENTS.items() for name in names), *HADOOP)
"""All options."""
SECRETS: Final = frozenset(name for name in NAMES if HADOOP.get(name, name).partition(".")[2] in _SECRET)
"""Those whose values nobody is to be shown."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The options of object stores that were given. ``given``: by store the arguments of its file system."""

    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Stores:
        """Those among ``options``, whose names are in small letters. Raises ``KwireError``."""
        given: dict[str, dict[str, Any]] = {}
        # Names of Arrow go before those of Hadoop.
        for option in sorted((one for one in NAMES if one in options), key=lambda one: one not in HADOOP):
            text = options[option].strip()
            if option == "fs.s3a.endpoint" and "://" in text:
                scheme, _, text = text.rstrip("/").partition("://")
                given.setdefault("s3", {})["scheme"] = scheme
            store, _, name = HADOOP.get(option, option).partition(".")
            try:
                given.setdefault(store, {})[name] = _ARGUMENTS[store][name](text)
            except ValueError:
                raise KwireError(f"the option {option!r} cannot have this value") from None
        return cls(given)

    def hidden(self, text: str) -> str:
        """``text`` without the values that nobody is to be shown."""
        for values in self.given.values():
            for name, value in values.items():
                if name in _SECRET and value:
                    text = text.replace(value, "***")
        return text

    def filesystem(self, scheme: str, authority: str, options: str) -> tuple[Any, str] | None:
        """The file system of a URI, and its bucket or container. None if nothing was given for it.

        ``authority`` stands before the path of the URI, with a key and a secret perhaps. ``options`` stand at its end,
        with their question mark. Raises ``OSError``, ``ValueError``.
        """
        store = _OF_SCHEME.get(scheme)
        if store is None or store not in self.given:
            return None
        values = dict(self.given[store])
        for name, text in parse_qsl(options[1:]):
            if name not in _ARGUMENTS[store]:
                raise ValueError(f"no option {name!r} of {scheme}")
            values[name] = _ARGUMENTS[store][name](text)
        user, _, host = authority.rpartition("@")
        if store == "azure":
            # The container stands before the account, or is the first name of the path.
            container, _, password = user.partition(":")
            if password:
                values["account_key"] = unquote(password)
            values.setdefault("account_name", host.partition(".")[0])
            return fs.AzureFileSystem(**values), container
        key, _, secret = user.partition(":")
        if key and store == "s3":
            values = {name: value for name, value in values.items() if name != "session_token"}
            values |= {"access_key": unquote(key), "secret_key": unquote(secret)}
        if store == "gcs":
            return fs.GcsFileSystem(**values), host
        if not values.keys() & {"region", "endpoint_override"}:
            values["region"] = fs.resolve_s3_region(host)
        return fs.S3FileSystem(**values), host


NONE: Final = Stores()
"""Stores of which nothing is known but what a URI says (``Stores``)."""
