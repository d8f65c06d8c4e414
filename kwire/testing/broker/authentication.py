"""SASL from the broker's side: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER.

``Sasl`` says who may come in. ``Login`` is the exchange of one connection: ``handshake`` chooses a mechanism, ``token``
takes a token of the client and gives the broker's.

Rules kept here:

- A client that is refused learns no more than that, and its connection is closed.
- OAUTHBEARER refuses in two steps: an error in JSON, which the client acknowledges, and then the refusal.

Sources: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), RFC 7628 (OAUTHBEARER), KIP-43, KIP-84, KIP-152, KIP-255.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from kwire.protocol.error_codes import ErrorCode

__all__ = ["Login", "RefusedLoginError", "Sasl"]

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_ITERATIONS: Final = 4096
_MOST_TOKEN: Final = 64 << 10


class RefusedLoginError(Exception):
    """A client is not let in; the text is what it is told."""


@dataclass(frozen=True, slots=True)
class Sasl:
    """Who may come in, and how.

    - ``users``: name -> password, for PLAIN and SCRAM.
    - ``tokens``: what clients with OAUTHBEARER may bring.
    - ``mechanisms``: which ones there are.
    - ``lifetime``: for how many seconds a client is let in, as it is told (KIP-368). 0: it has no end, and a client
      that wants to authenticate again is refused.
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    tokens: Collection[str] = field(default=(), repr=False)
    mechanisms: tuple[str, ...] = MECHANISMS
    lifetime: float = 0.0

    def __post_init__(self) -> None:
        for one in self.mechanisms:
            if one not in MECHANISMS:
                raise ValueError(f"mechanism {one!r}: there are {', '.join(MECHANISMS)}")


class Login:
    """The exchange of one connection. ``sasl`` is None where there is none."""

    def __init__(self, sasl: Sasl | None) -> None:
        self.sasl = sasl
        self._mechanism = ""
        self._scram: _Scram | None = None
        self._refusing = False
        self._known = False
        """Whether the client has authenticated."""

    def handshake(self, mechanism: str) -> int:
        """Choose a mechanism. Gives an error code."""
        if self.sasl is None or (self._known and not self.sasl.lifetime):
            return ErrorCode.ILLEGAL_SASL_STATE
        if mechanism not in self.sasl.mechanisms:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self._mechanism, self._refusing = mechanism, False
        self._scram = _Scram(mechanism, self.sasl.users) if mechanism.startswith("SCRAM") else None
        return ErrorCode.NONE

    @property
    def begun(self) -> bool:
        """Whether a mechanism was chosen, for the token that comes next."""
        return bool(self._mechanism)

    def token(self, data: bytes) -> tuple[bytes, bool]:
        """The broker's token, and whether the client is in with it. Raises ``RefusedLoginError``."""
        made, done = self._token(data)
        if done:
            self._known, self._mechanism = True, ""
        return made, done

    def _token(self, data: bytes) -> tuple[bytes, bool]:
        if self.sasl is None or not self._mechanism or len(data) > _MOST_TOKEN or self._refusing:
            raise RefusedLoginError("Authentication failed")
        if self._scram is not None:
            return self._scram.answer(data)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise RefusedLoginError("Authentication failed: a token is UTF-8") from None
        if self._mechanism == "PLAIN":
            return self._plain(text, self.sasl)
        return self._bearer(text, self.sasl)

    def _plain(self, text: str, sasl: Sasl) -> tuple[bytes, bool]:
        parts = text.split("\0")
        if len(parts) != 3:
            raise RefusedLoginError("Invalid SASL/PLAIN response: expected 3 tokens")
        _, user, password = parts
        known = sasl.users.get(user)
        if known is None or not hmac.compare_digest(known.encode(), password.encode()):
            raise RefusedLoginError("Authentication failed: Invalid username or password")
        return b"", True

    def _bearer(self, text: str, sasl: Sasl) -> tuple[bytes, bool]:
        fields = dict(part.partition("=")[::2] for part in text.split("\x01") if "=" in part)
        token = fields.get("auth", "").partition(" ")[2]
        if any(hmac.compare_digest(token.encode(), one.encode()) for one in sasl.tokens):
            return b"", True
        self._refusing = True
        return b'{"status":"invalid_token"}', False


class _Scram:
    """SCRAM from the broker's side."""

    def __init__(self, mechanism: str, users: Mapping[str, str]) -> None:
        self._mechanism = mechanism
        self._users = users
        self._hash = "sha256" if mechanism.endswith("256") else "sha512"
        self._first = ""
        self._nonce = ""
        self._salted = b""

    def answer(self, data: bytes) -> tuple[bytes, bool]:
        """The next token, and whether it is the last one. Raises ``RefusedLoginError``."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise self._refused() from None
        return self._last(text) if self._first else (self._challenge(text), False)

    def _challenge(self, text: str) -> bytes:
        _, _, bare = text.split(",", 2) if text.count(",") >= 2 else ("", "", "")
        fields = _fields(bare)
        user = fields.get("n", "").replace("=2C", ",").replace("=3D", "=")
        password = self._users.get(user)
        if password is None or not fields.get("r"):
            raise self._refused()
        salt = secrets.token_bytes(16)
        self._nonce = fields["r"] + secrets.token_urlsafe(18)
        self._salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), salt, _ITERATIONS)
        said = f"r={self._nonce},s={base64.b64encode(salt).decode()},i={_ITERATIONS}"
        self._first = f"{bare},{said}"
        return said.encode()

    def _last(self, text: str) -> tuple[bytes, bool]:
        without, _, proof = text.rpartition(",p=")
        if _fields(without).get("r") != self._nonce:
            raise self._refused()
        message = f"{self._first},{without}".encode()
        key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored = hashlib.new(self._hash, key).digest()
        signature = hmac.digest(stored, message, self._hash)
        try:
            given = base64.b64decode(proof, validate=True)
        except (ValueError, binascii.Error):
            raise self._refused() from None
        found = bytes(a ^ b for a, b in zip(given, signature, strict=False))
        if len(given) != len(signature) or not hmac.compare_digest(hashlib.new(self._hash, found).digest(), stored):
            raise self._refused()
        server = hmac.digest(hmac.digest(self._salted, b"Server Key", self._hash), message, self._hash)
        return b"v=" + base64.b64encode(server), True

    def _refused(self) -> RefusedLoginError:
        return RefusedLoginError(
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism "
            f"{self._mechanism}"
        )


def _fields(text: str) -> dict[str, str]:
    return {one[0]: one[2:] for one in text.split(",") if one[1:2] == "="}
