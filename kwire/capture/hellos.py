"""The hellos of TLS in a capture that is not decrypted: what they say in the clear.

Strategy: if a direction begins with a TLS record that holds a hello, its bytes are collected until the hello is whole.
Both hellos together give the version, the cipher suite and the host that the client asked for. Where there is a key
log, ``kwire.capture.encrypted`` knows all that.

Rules kept here:

- A hello is what its direction begins with: a SYN was captured just before it, or nothing of it was before.
- Bytes are taken in order only. A hello with a hole in it is not waited for.
- What is collected is bounded: ``LONGEST`` bytes of a hello, ``MOST`` of them at once; then the oldest is let go.
- Each byte is looked at once, however many segments and records a hello comes in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Begun:
    """A hello that is not whole.

    ``pos``: the position at which it goes on; ``size``: the bytes that there were.
    """

    pos: int
    size: int = 0
    head: bytearray = field(default_factory=bytearray)
    """The beginning of a record's header."""
    left: int = 0
    """How many bytes of a record are still to come."""
    message: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> tuple[int, bytes] | None:
        """Take the next bytes: the type and the content of the message once it is whole.

        Raises ``DecodeError``.
        """
        self.size += len(data)
        at = 0
        while at < len(data):
            if not self.left:
                begin = at
                at += _RECORD - len(self.head)
                self.head += data[begin:at]
                if self.head[0] != _HANDSHAKE or self.head[3:] == b"\0\0":
                    raise DecodeError("no hello", layout="TLS", offset=begin)
                if len(self.head) == _RECORD:
                    self.left = int.from_bytes(self.head[3:], "big")
                    self.head.clear()
                continue
            part = data[at : at + self.left]
            self.message += part
            self.left -= len(part)
            at += len(part)
            stop = _MESSAGE + int.from_bytes(self.message[1:_MESSAGE], "big")
            if len(self.message) >= _MESSAGE and len(self.message) >= stop:
                return self.message[0], bytes(self.message[_MESSAGE:stop])
        return None


class Hellos:
    """What the hellos of a capture's connections say, by slot."""

    def __init__(self) -> None:
        self._said: dict[int, Hello] = {}
        self._begun: dict[int, _Begun] = {}
        """Hellos that are not whole, by stream."""

    def look(self, buf: Array, fresh: Array, known: Known, engine: Engine) -> None:
        """Read those that begin or go on in the segments ``fresh`` of a window."""
        begins = np.zeros(len(fresh), bool)
        if not engine(begin_hellos)(buf, fresh, known.connections, known.streams, begins) and not self._begun:
            return
        there, stream = (fresh["len"] > 0) & (fresh["off"] >= 0), fresh["stream"]
        wanted = begins | (there & np.isin(stream, list(self._begun) + stream[begins].tolist()))
        rows = fresh[["stream", "pos", "len", "off"]][wanted].tolist()
        for one, pos, size, at in rows:
            data = buf[at : at + min(size, LONGEST)].tobytes()
            begun = self._begun.get(one)
            if begun is None and data[0] == _HANDSHAKE:
                begun = _Begun(pos)
            if begun is not None and begun.pos == pos:
                self._add(one, begun, data)
                begun.pos = pos + size

    def _add(self, stream: int, begun: _Begun, data: bytes) -> None:
        """Take what goes on in a hello."""
        self._begun.pop(stream, None)
        try:
            found = begun.add(data)
            if found is None:
                if begun.size < LONGEST:
                    self._begun[stream] = begun
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
        """Forget connections: ``there`` says by slot which are left, and these move together."""
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
        """Take over what ``state`` gave."""
        version, cipher, name = state
        self._said[slot] = version, cipher, name
