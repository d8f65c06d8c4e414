"""The hellos of TLS in a capture that is not decrypted: what they say in the clear.

Strategy: of each direction that begins with a record of TLS that holds a hello, the bytes are collected until the hello
is whole; both together tell the version, the cipher suite and the host that the client asked for. Where there is a key
log, ``kwire.capture.encrypted`` knows all that.

Rules kept here:

- A hello is what its direction begins with: a SYN was captured just before it, or nothing of it was before.
- Bytes are taken in order only. A hello with a hole in it is not waited for.
- What is collected is bounded: ``LONGEST`` bytes of a hello, ``MOST`` of them at once; then the oldest is let go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from kwire.errors import DecodeError
from kwire.kernels.engine import Engine
from kwire.kernels.roles import begin_hellos
from kwire.kernels.tracking import Known
from kwire.tls.hellos import client_hello, server_hello
from kwire.tls.suites import suite
from kwire.tls.versions import version_name

__all__ = ["Hello", "Hellos"]

LONGEST: Final = 32 << 10
MOST: Final = 1024

_RECORD: Final = 5
"""Bytes of the header of a record: type, version, length."""
_MESSAGE: Final = 4
"""Bytes of the header of a message: type, length."""
_HANDSHAKE: Final = 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2

Array = Any
Hello = tuple[str | None, str | None, str | None]
"""Version (``TLS 1.3``), name of the cipher suite, and the host that the client asked for; None: not known."""


class Hellos:
    """What the hellos of a capture's connections say, by slot."""

    def __init__(self) -> None:
        self._said: dict[int, Hello] = {}
        self._begun: dict[int, tuple[int, bytes]] = {}
        """Hellos that are not whole, by stream: at which position they go on, and what there is."""

    def look(self, buf: Array, fresh: Array, known: Known, engine: Engine) -> None:
        """Reads those that begin or go on in the segments ``fresh`` of a window."""
        begins = np.zeros(len(fresh), bool)
        if not engine(begin_hellos)(buf, fresh, known.connections, known.streams, begins) and not self._begun:
            return
        there, stream = (fresh["len"] > 0) & (fresh["off"] >= 0), fresh["stream"]
        wanted = begins | (there & np.isin(stream, list(self._begun) + stream[begins].tolist()))
        rows = fresh[["stream", "pos", "len", "off"]][wanted].tolist()
        for one, pos, size, at in rows:
            data = buf[at : at + min(size, LONGEST)].tobytes()
            follows, before = self._begun.get(one, (pos, b""))
            if pos == follows and (before or data[0] == _HANDSHAKE):
                self._add(one, pos + size, before + data)

    def _add(self, stream: int, pos: int, data: bytes) -> None:
        """Takes what there is of a hello, up to position ``pos``."""
        self._begun.pop(stream, None)
        try:
            found = _message(data)
            if found is None:
                if len(data) < LONGEST:
                    self._begun[stream] = pos, data
                    if len(self._begun) > MOST:
                        del self._begun[next(iter(self._begun))]
                return
            kind, message = found
            version, cipher, name = self._said.get(stream >> 1, (None, None, None))
            if kind == _CLIENT_HELLO:
                self._said[stream >> 1] = version, cipher, client_hello(message).server_name
            elif kind == _SERVER_HELLO:
                hello = server_hello(message)
                self._said[stream >> 1] = version_name(hello.version), suite(hello.suite).name, name
        except DecodeError:
            return

    def of(self, slot: int) -> Hello | None:
        """What the hellos of a connection say; None where there were none."""
        return self._said.get(slot)

    def forget(self, there: Array) -> None:
        """Forgets connections: ``there`` says by slot which are left, and these move together."""
        place = there.cumsum() - 1
        self._said = {int(place[slot]): said for slot, said in self._said.items() if there[slot]}
        self._begun = {
            2 * int(place[stream >> 1]) + (stream & 1): begun
            for stream, begun in self._begun.items()
            if there[stream >> 1]
        }

    # -- state out and in

    def state(self, slot: int) -> list[Any] | None:
        """What is remembered of a connection, as JSON can hold it; None for nothing."""
        said = self._said.get(slot)
        return None if said is None else list(said)

    def restore(self, slot: int, state: Iterable[str | None]) -> None:
        """Takes over what ``state`` gave."""
        version, cipher, name = state
        self._said[slot] = version, cipher, name


def _message(data: bytes) -> tuple[int, bytes] | None:
    """The first message of a handshake, its type and content; None where it is not whole. Raises ``DecodeError``."""
    parts, at, size = b"", 0, _MESSAGE
    while at + _RECORD <= len(data) and len(parts) < size:
        if data[at] != _HANDSHAKE:
            raise DecodeError("no hello", layout="TLS", offset=at)
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        parts += data[at + _RECORD : at + _RECORD + length]
        at += _RECORD + length
        if len(parts) >= _MESSAGE:
            size = _MESSAGE + int.from_bytes(parts[1:4], "big")
        if not length:
            raise DecodeError("no hello", layout="TLS", offset=at)
    if len(parts) < _MESSAGE or len(parts) < size:
        return None
    return parts[0], parts[_MESSAGE:size]
