"""The tokens of SASL mechanisms, as a client makes them: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER.

    exchange = Scram("SCRAM-SHA-512", "alice", "wonderland")
    token = exchange.first()
    while token is not None:
        challenge = ...                    # what the broker answered to it
        token = exchange.next(challenge)   # None: the exchange is through

An exchange raises ``ProtocolError`` for a challenge that is not what the mechanism says. With SCRAM it also raises for
a broker that does not know the password. ``kwire.protocol.connection`` carries the tokens; those of GSSAPI come from a
library that has Kerberos. Nothing here is shown by ``repr``.

``refusal`` and ``refused_by`` say whether a broker refuses a client: by a response, or by a token.

Sources: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 (OAUTHBEARER), KIP-84, KIP-255, KIP-342.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from kwire import schema
from kwire.codec import registry, tracked
from kwire.errors import DecodeError, ProtocolError, UnsupportedVersionError
from kwire.protocol.error_codes import error_name
from kwire.protocol.headers import Response, decode_response, response_header_version

__all__ = ["Exchange", "OAuthBearer", "Plain", "Scram", "refusal", "refused_by"]

MOST_ITERATIONS: Final = 1 << 20
"""Iterations that a broker may ask for; Kafka's own have 4096 to 16384, and each takes time here."""


class Exchange(Protocol):
    """The client's side of an authentication."""

    mechanism: str

    def first(self) -> bytes:
        """The token that begins the exchange."""
        ...

    def next(self, challenge: bytes) -> bytes | None:
        """The token that answers ``challenge``; None when the exchange is through. Raises ``ProtocolError``."""
        ...


class Plain:
    """A user and a password, in the clear."""

    mechanism = "PLAIN"

    def __init__(self, user: str, password: str, authorize: str = "") -> None:
        if "\0" in user + password + authorize:
            raise ProtocolError("PLAIN: a user or password cannot hold a NUL")
        self._token = "\0".join((authorize, user, password)).encode()

    def first(self) -> bytes:
        """The only token: identity, user and password (RFC 4616)."""
        return self._token

    def next(self, challenge: bytes) -> None:
        """None: the exchange is through. Raises ``ProtocolError`` if the broker answers with bytes."""
        if challenge:
            raise ProtocolError(f"PLAIN: the broker answers with {len(challenge)} bytes")


class OAuthBearer:
    """A token of an authorization server; ``extensions`` are KIP-342's."""

    mechanism = "OAUTHBEARER"

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        parts = [f"auth=Bearer {token}", *(f"{name}={value}" for name, value in (extensions or {}).items())]
        if any("\x01" in one for one in parts):
            raise ProtocolError("OAUTHBEARER: a token or extension cannot hold \\x01")
        self._token = ("n,,\x01" + "".join(f"{one}\x01" for one in parts) + "\x01").encode()

    def first(self) -> bytes:
        """The token of the authorization server with its extensions (RFC 7628)."""
        return self._token

    def next(self, challenge: bytes) -> bytes | None:
        """The answer to an error; None if there was none."""
        # An error is acknowledged, and the broker refuses the client then.
        return b"\x01" if challenge else None


class Scram:
    """A user and a password that the broker has to know too, and that is not sent.

    ``mechanism`` is ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``. ``nonce``: what makes the exchange unique, for tests.
    ``extensions``: Kafka's own, as ``{"tokenauth": "true"}`` for delegation tokens (KIP-48).
    """

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        *,
        nonce: str | None = None,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        if mechanism not in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise ProtocolError(f"no SCRAM mechanism is called {mechanism!r}")
        self.mechanism = mechanism
        self._hash = "sha256" if mechanism.endswith("256") else "sha512"
        self._password = password.encode()
        self._nonce = secrets.token_urlsafe(24) if nonce is None else nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        more = "".join(f",{key}={value}" for key, value in (extensions or {}).items())
        self._bare = f"n={name},r={self._nonce}{more}"
        self._signature: bytes | None = None
        self._done = False

    def first(self) -> bytes:
        """The client-first message (RFC 5802, 7)."""
        return f"n,,{self._bare}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        """The client-final message; None after the broker has proved that it knows the password.

        Raises ``ProtocolError`` if the broker refuses, or does not know the password.
        """
        fields = self._fields(challenge)
        if "e" in fields:
            raise ProtocolError(f"{self.mechanism}: the broker refuses: {fields['e'][:100]}")
        if self._signature is None:
            return self._proof(challenge.decode(), fields)
        if self._done or not hmac.compare_digest(self._decoded(fields, "v"), self._signature):
            raise ProtocolError(f"{self.mechanism}: the broker does not know the password")
        self._done = True
        return None

    def _proof(self, challenge: str, fields: dict[str, str]) -> bytes:
        nonce, salt, count = fields.get("r", ""), self._decoded(fields, "s"), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ProtocolError(f"{self.mechanism}: the nonce of the broker does not continue the client's")
        if not (count.isascii() and count.isdigit()) or not 0 < int(count[:10]) <= MOST_ITERATIONS:
            raise ProtocolError(f"{self.mechanism}: {count[:20]!r} iterations; 1 to {MOST_ITERATIONS} are done")
        final = f"c=biws,r={nonce}"
        message = f"{self._bare},{challenge},{final}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, int(count))
        key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, key).digest(), message, self._hash)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), message, self._hash)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def _fields(self, challenge: bytes) -> dict[str, str]:
        try:
            parts = challenge.decode().split(",")
        except UnicodeDecodeError:
            raise ProtocolError(f"{self.mechanism}: the challenge is not UTF-8") from None
        return {one[0]: one[2:] for one in parts if one[1:2] == "="}

    def _decoded(self, fields: dict[str, str], name: str) -> bytes:
        try:
            return base64.b64decode(fields[name], validate=True)
        except (KeyError, ValueError, binascii.Error):
            raise ProtocolError(f"{self.mechanism}: the challenge has no {name}= that is base64") from None


def refusal(frame: bytes, api_key: int, api_version: int) -> Response[Any] | None:
    """A response to SaslHandshake or SaslAuthenticate, where it refuses; else None.

    Brokers that are not Apache Kafka refuse with a null token, which no version allows. A capture may also have only
    the beginning of the response. So where the body cannot be read to its end, an error code that has a name counts. An
    error message counts if it can be read. All that follows has its defaults.

    Raises ``DecodeError`` where not even the error code can be read.
    """
    try:
        made = decode_response(frame, api_key=api_key, api_version=api_version, trailing=True)
    except UnsupportedVersionError:
        raise
    except DecodeError:
        made = _beginning(frame, api_key, api_version)
        if error_name(made.body.error_code) is None:
            return None
    return made if made.body.error_code else None


def _beginning(frame: bytes, api_key: int, api_version: int) -> Response[Any]:
    """A response with the first two fields of its body, or with the first alone."""
    codec = registry.response_codec(api_key, api_version)
    version = response_header_version(api_key, api_version)
    header, pos = registry.codec(schema.message("ResponseHeader"), version).decode_prefix(frame)
    structs: Any = {codec.message.name: registry.message_class(codec.message)}
    two = replace(codec.layout, fields=codec.layout.fields[:2], tagged=(), flexible=False)
    try:
        body, _ = tracked.decode(two, codec.label, structs, frame, pos, whole=False)
    except DecodeError:
        one = replace(two, fields=two.fields[:1])
        body, _ = tracked.decode(one, codec.label, structs, frame, pos, whole=False)
    return Response(header, body, api_version)


_SCRAM_ERROR: Final = re.compile(rb"e=([a-z-]{1,64})(?:,|\Z)")
_BEARER_ERROR: Final = re.compile(rb'\{[^\0]{0,1024}?"status"\s{0,9}:\s{0,9}"([\w.-]{1,64})"')


def refused_by(mechanism: str | None, token: bytes) -> str | None:
    """The error in a broker's token of SCRAM (RFC 5802) or OAUTHBEARER (RFC 7628); None where it has none."""
    known = {"SCRAM": _SCRAM_ERROR, "OAUTHBEARER": _BEARER_ERROR}.get((mechanism or "").partition("-")[0])
    found = None if known is None else known.match(token)
    return None if found is None else found[1].decode("ascii", "replace")
