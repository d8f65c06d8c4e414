"""Chunks of byte streams as a capture: what tracers of system calls (eBPF) and proxies see of connections.

They have no packets: each chunk is some bytes that one end of a connection has sent, with a time. ``Chunks`` writes
them as the capture that has just these bytes in its TCP segments. So they go through the same ``Tracker``, and frames,
pairing and limits are those of any capture.

Rules kept here:

- A connection is whatever key it has. Addresses and ports are made up, one pair for each key, and must be shown to
  nobody. ``key_of`` gives the key back by the number of the connection.
- The bytes of a direction follow each other as they come, or stand where ``position`` says. Then missing bytes are a
  hole, and repeated bytes are a retransmission, as in TCP.
- Nothing says where a connection begins: a chunk may be the middle of a frame.
- Chunks must come in order of time, those without a time first. Their packets have no time either, so the capture is
  pcapng. It is written as they are read: nothing of them is kept but a few numbers for each connection.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

__all__ = ["BROKER_PORT", "Chunk", "Chunks"]

BROKER_PORT: Final = 9092
"""The port of the end that answers, where it is known which one it is."""
_PORT: Final = 40_000
"""Any other port: of two ends that may be either, the first to send has the higher one."""

LARGEST: Final = 65_000
"""Bytes of one segment: an IP packet has no more than 65,535."""
MOST_CONNECTIONS: Final = 1 << 28
"""Made-up addresses for one end."""

_FILE: Final = struct.pack(">IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28) + struct.pack(
    ">IIHHIHHB3xHHI", 1, 32, 101, 0, 0, 9, 1, 9, 0, 0, 32
)
"""The beginning of a pcapng file: nanoseconds, packets of IP without a link layer."""
_LATEST: Final = (1 << 32) * 1_000_000_000 - 1
_ENHANCED: Final = struct.Struct(">7I")
_ENHANCED_SIZE: Final = 32
_SIMPLE: Final = struct.Struct(">3I")
_SIMPLE_SIZE: Final = 16
_PACKET: Final = struct.Struct(">BBHHHBBH4s4sHHIIBBHHH")
_HEADERS: Final = 40
_SYN: Final = 2
_ACK: Final = 16
_WORD: Final = (1 << 32) - 1


class Chunk(NamedTuple):
    """Some bytes that one end has sent. ``connection`` and ``side`` are values that can be hashed."""

    connection: Any
    side: Any
    time: int | None
    """Nanoseconds since 1970; None where it is not known."""
    payload: bytes
    position: int | None = None
    """Which byte of its direction is the first; None: the one after the last."""


class _Pair:
    """A connection: its made-up ends, and the next byte of each direction."""

    __slots__ = ("first", "hosts", "next", "ports")

    def __init__(self, number: int, ports: tuple[int, int], first: Any) -> None:
        place = struct.pack(">I", number)
        self.hosts = bytes([10 + (place[0] << 1)]) + place[1:], bytes([11 + (place[0] << 1)]) + place[1:]
        self.ports = ports
        self.first = first
        self.next = [0, 0]


class Chunks:
    """A capture of ``chunks``, as a source for ``kwire.capture.read``.

    ``requests``: the value of ``Chunk.side`` for what clients send. Then ``ports`` of the reader must be
    ``BROKER_PORT``. None: only that there are two sides is known. Who is the client is decided as in any capture.

    ``from_start``: the first chunk of each connection is its beginning, and byte 0 of a direction its first. Otherwise
    a connection may have begun before, as in a capture without its SYN.
    """

    def __init__(self, chunks: Iterable[Chunk], requests: Any = None, *, from_start: bool = False) -> None:
        self._chunks = iter(chunks)
        self._requests = requests
        self._from_start = from_start
        self._pairs: dict[Any, _Pair] = {}
        self._keys: dict[int, Any] = {}
        self._packets = 0
        self._ready = bytearray(_FILE)

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes of the capture; none at its end."""
        while size < 0 or len(self._ready) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._add(chunk)
        end = len(self._ready) if size < 0 else size
        made = bytes(self._ready[:end])
        del self._ready[:end]
        return made

    def key_of(self, packet: int) -> Any:
        """The connection whose first packet has this number."""
        return self._keys[packet]

    def _add(self, chunk: Chunk) -> None:
        data = chunk.payload
        if not data:
            return
        time = None if chunk.time is None else min(max(chunk.time, 0), _LATEST)
        pair = self._pairs.get(chunk.connection)
        if pair is None:
            pair = self._pairs[chunk.connection] = self._pair(chunk)
            if self._from_start:
                # Their sequence numbers are those before byte 0.
                self._packet(pair, 0, b"", time, (_WORD, 0), _SYN)
                self._packet(pair, 1, b"", time, (_WORD, 0), _SYN | _ACK)
        side = 0 if chunk.side == pair.first else 1
        at = pair.next[side] if chunk.position is None else chunk.position
        acknowledged = pair.next[1 - side] & _WORD
        for begin in range(0, len(data), LARGEST):
            part = data[begin : begin + LARGEST]
            self._packet(pair, side, part, time, ((at + begin) & _WORD, acknowledged), _ACK)
        pair.next[side] = max(pair.next[side], at + len(data))

    def _packet(
        self, pair: _Pair, side: int, part: bytes, time: int | None, numbers: tuple[int, int], flags: int
    ) -> None:
        """Adds a packet. ``numbers``: its sequence number, and what it acknowledges."""
        size = _HEADERS + len(part)
        padding = -size % 4
        if time is None:
            total = _SIMPLE_SIZE + size + padding
            self._ready += _SIMPLE.pack(3, total, size)
        else:
            total = _ENHANCED_SIZE + size + padding
            self._ready += _ENHANCED.pack(6, total, 0, time >> 32, time & _WORD, size, size)
        source, target = pair.hosts[side], pair.hosts[1 - side]
        from_port, to_port = pair.ports[side], pair.ports[1 - side]
        self._ready += _PACKET.pack(
            *(0x45, 0, size, 0, 0x4000, 64, 6, 0, source, target),
            *(from_port, to_port, *numbers, 0x50, flags, 65_535, 0, 0),
        )
        self._ready += part
        self._ready += bytes(padding) + total.to_bytes(4, "big")
        self._packets += 1

    def _pair(self, chunk: Chunk) -> _Pair:
        if len(self._pairs) == MOST_CONNECTIONS:
            raise ValueError(f"more than {MOST_CONNECTIONS} connections at once")
        self._keys[self._packets] = chunk.connection
        if self._requests is None:
            return _Pair(len(self._pairs), (_PORT + 1, _PORT), chunk.side)
        return _Pair(len(self._pairs), (_PORT, BROKER_PORT), self._requests)
