"""The two messages of a TLS handshake that decryption needs: ClientHello and ServerHello (RFC 8446, 4.1; RFC 5246,
7.4.1).

Every length is checked against what is there; what does not fit is a ``DecodeError`` with the offset within the
message. Extensions that say nothing about keys are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwire.errors import DecodeError

__all__ = ["ClientHello", "ServerHello", "accepts_early_data", "client_hello", "server_hello"]

RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest (SHA-256 of "HelloRetryRequest")."""

_SERVER_NAME: Final = 0
_ENCRYPT_THEN_MAC: Final = 22
_EXTENDED_MASTER_SECRET: Final = 23
_PRE_SHARED_KEY: Final = 41
_EARLY_DATA: Final = 42
_SUPPORTED_VERSIONS: Final = 43
_LONGEST_NAME: Final = 255
"""Bytes of a host name in the DNS."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """What a client offers.

    ``versions`` are numbers as on the wire (0x0304: TLS 1.3), ``suites`` cipher suites.
    """

    random: bytes
    session_id: bytes
    suites: tuple[int, ...]
    versions: tuple[int, ...]
    server_name: str | None
    resumes: bool
    """Whether it offers a pre-shared key (TLS 1.3)."""
    early_data: bool


@dataclass(frozen=True, slots=True)
class ServerHello:
    """What the server chose. ``retry``: it is a HelloRetryRequest."""

    random: bytes
    session_id: bytes
    suite: int
    version: int
    compression: int
    encrypt_then_mac: bool
    extended_master_secret: bool
    resumed: bool
    """Whether the server took the client's pre-shared key (TLS 1.3)."""
    retry: bool


class _Fields:
    """Reads numbers and vectors off the front of a message."""

    def __init__(self, data: bytes, layout: str) -> None:
        self._data = data
        self._layout = layout
        self.at = 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self.at:
            raise DecodeError(
                f"{size} bytes wanted, {len(self._data) - self.at} left", layout=self._layout, offset=self.at
            )
        self.at += size
        return self._data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """A vector whose length takes ``size`` bytes."""
        return self.take(self.number(size))

    @property
    def is_empty(self) -> bool:
        return self.at == len(self._data)


def _numbers(vector: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(vector[k : k + 2], "big") for k in range(0, len(vector) - 1, 2))


def _extensions(fields: _Fields, layout: str) -> Iterator[tuple[int, bytes]]:
    if fields.is_empty:
        return
    inside = _Fields(fields.vector(2), layout)
    while not inside.is_empty:
        yield inside.number(2), inside.vector(2)


def client_hello(message: bytes) -> ClientHello:
    """Read a ClientHello, without its type and length. Raises ``DecodeError``."""
    layout = "ClientHello"
    fields = _Fields(message, layout)
    version = fields.number(2)
    random, session_id = fields.take(32), fields.vector(1)
    suites = _numbers(fields.vector(2))
    fields.vector(1)
    versions: tuple[int, ...] = (version,)
    name, resumes, early = None, False, False
    for kind, value in _extensions(fields, layout):
        if kind == _SUPPORTED_VERSIONS:
            versions = _numbers(_Fields(value, layout).vector(1))
        elif kind == _SERVER_NAME and value:
            names = _Fields(value, layout)
            names.number(2)
            # The only kind of name that there is, is 0: a host name.
            if names.number(1) == 0:
                name = names.vector(2)[:_LONGEST_NAME].decode("ascii", "backslashreplace")
        elif kind == _PRE_SHARED_KEY:
            resumes = True
        elif kind == _EARLY_DATA:
            early = True
    return ClientHello(random, session_id, suites, versions, name, resumes, early)


def server_hello(message: bytes) -> ServerHello:
    """Read a ServerHello, without its type and length. Raises ``DecodeError``."""
    layout = "ServerHello"
    fields = _Fields(message, layout)
    version = fields.number(2)
    random, session_id = fields.take(32), fields.vector(1)
    chosen, compression = fields.number(2), fields.number(1)
    seen = set()
    for kind, value in _extensions(fields, layout):
        seen.add(kind)
        if kind == _SUPPORTED_VERSIONS:
            version = _Fields(value, layout).number(2)
    return ServerHello(
        random,
        session_id,
        chosen,
        version,
        compression,
        _ENCRYPT_THEN_MAC in seen,
        _EXTENDED_MASTER_SECRET in seen,
        _PRE_SHARED_KEY in seen,
        random == RETRY,
    )


def accepts_early_data(message: bytes) -> bool:
    """Whether EncryptedExtensions, without type and length, accept early data. Raises ``DecodeError``."""
    layout = "EncryptedExtensions"
    return any(kind == _EARLY_DATA for kind, _ in _extensions(_Fields(message, layout), layout))
