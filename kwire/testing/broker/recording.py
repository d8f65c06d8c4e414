"""What was said between clients and broker: exchanges as messages, and the bytes of each connection as a capture.

Rules kept here:

- Bytes are those inside of TLS. Passwords and tokens in them are kept too; ``repr`` of a message hides them.
- What is kept is bounded. The oldest is forgotten first, and ``forgotten`` says how many exchanges that were.
- A capture is whole: each connection has its handshake, and sequence numbers that are right where bytes were forgotten.
"""

from __future__ import annotations

import ipaddress
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kwire import schema
from kwire.errors import KwireError
from kwire.testing import packets
from kwire.testing.packets import ACK, ETHERNET, FIN, SYN, End, Packet

if TYPE_CHECKING:
    from kwire.testing.corpus import Case

__all__ = ["Connected", "Exchange", "Recording", "end_of"]

_MOST_EXCHANGES: Final = 100_000
_SEGMENT: Final = 32_000
"""Bytes of a packet, as on a loopback interface."""
_PUSH: Final = 8


@dataclass(eq=False, slots=True)
class Exchange:
    """A request, and what was answered."""

    number: int
    """Requests are counted from 1."""
    connection: int
    """Connections are counted from 1."""
    node: int
    client_id: str | None
    api_key: int
    api_version: int
    correlation_id: int
    request: Any
    """The message; None for a version of ApiVersions that is not known."""
    time: float
    """Seconds since 1970, when the request was there."""
    response: Any = None
    """The message that was sent, or was to be sent before a fault changed that; None if there was none."""
    answered: float | None = None
    """When its bytes were sent; None if they were not."""
    fault: str = ""
    """The faults that a test has scripted for it."""
    error: KwireError | None = None
    """Why the connection was closed in place of an answer."""
    damage: Case | None = None
    """What its response was made of by damage, if it was."""
    left: bool = False
    """Whether the client closed the connection, and this was its last request there."""

    @property
    def api(self) -> str:
        """The name of the API."""
        return schema.api_keys().get(self.api_key, f"API key {self.api_key}")

    def __repr__(self) -> str:
        parts = [f"#{self.number} {self.api} v{self.api_version} of {self.client_id!r} to node {self.node}"]
        parts += [f"fault: {self.fault}"] * bool(self.fault)
        parts += [f"error: {self.error}"] * (self.error is not None)
        if self.request is None and self.response is None:
            # A proxy keeps no messages.
            parts += ["no answer" if self.answered is None else f"answered after {self._took:.1f} ms"]
            return f"<{'; '.join(parts)}>"
        return f"<{'; '.join(parts)}: {self.request!r} -> {self.response!r}>"

    @property
    def _took(self) -> float:
        return ((self.answered or self.time) - self.time) * 1000


@dataclass(eq=False, slots=True)
class Connected:
    """A connection, for the capture of it."""

    number: int
    client: End
    broker: End
    sent: list[int] = field(default_factory=lambda: [0, 0])
    """Bytes of the client, and of the broker."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Bytes of one side of a connection, or its begin or end (``flags``)."""

    time: int
    connection: Connected
    of_broker: bool
    at: int
    """Where they stand in the stream."""
    acked: int
    """Bytes of the other side that came before them."""
    data: bytes
    flags: int = 0


class Recording:
    """Everything that was said, up to ``most`` bytes of it."""

    def __init__(self, most: int) -> None:
        self.exchanges: deque[Exchange] = deque(maxlen=_MOST_EXCHANGES)
        self.errors: deque[KwireError] = deque(maxlen=_MOST_EXCHANGES)
        """Why connections were closed: bytes or steps of a client that are not allowed."""
        self.count: int = 0
        """All exchanges."""
        self._most = most
        self._size = 0
        self._chunks: deque[_Chunk] = deque()

    @property
    def forgotten(self) -> int:
        """Exchanges that are not kept any more."""
        return self.count - len(self.exchanges)

    def add(self, exchange: Exchange) -> None:
        """One more exchange."""
        self.exchanges.append(exchange)
        self.count += 1

    def opened(self, connection: Connected, time: float) -> None:
        """A connection begins."""
        self._put(_Chunk(_ns(time), connection, False, 0, 0, b"", SYN))

    def closed(self, connection: Connected, time: float) -> None:
        """The broker's side of a connection ends."""
        self._put(_Chunk(_ns(time), connection, True, connection.sent[1], connection.sent[0], b"", FIN))

    def data(self, connection: Connected, of_broker: bool, data: bytes, time: float) -> None:
        """Bytes of a connection."""
        sent = connection.sent
        self._put(_Chunk(_ns(time), connection, of_broker, sent[of_broker], sent[not of_broker], data))
        connection.sent[of_broker] += len(data)

    def _put(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk.data) + 200
        while self._size > self._most and len(self._chunks) > 1:
            gone = self._chunks.popleft()
            self._size -= len(gone.data) + 200
            while self.exchanges and _ns(self.exchanges[0].time) <= gone.time and len(self.exchanges) > 1:
                self.exchanges.popleft()

    def pcapng(self) -> bytes:
        """A capture of all connections."""
        return packets.write_pcapng([one for chunk in self._chunks for one in _packets(chunk)])


def _ns(time: float) -> int:
    return int(time * 1_000_000_000)


def _packets(chunk: _Chunk) -> Iterator[Packet]:
    if chunk.flags == SYN:
        yield _packet(chunk, False, 0, 0, SYN, b"")
        yield _packet(chunk, True, 0, 1, SYN | ACK, b"")
        yield _packet(chunk, False, 1, 1, ACK, b"")
        return
    # The first byte of a stream is number 1: SYN was number 0.
    if chunk.flags == FIN:
        yield _packet(chunk, True, chunk.at + 1, chunk.acked + 1, FIN | ACK, b"")
        return
    for place in range(0, len(chunk.data), _SEGMENT):
        part = chunk.data[place : place + _SEGMENT]
        yield _packet(chunk, chunk.of_broker, chunk.at + place + 1, chunk.acked + 1, ACK | _PUSH, part)


def _packet(chunk: _Chunk, of_broker: bool, seq: int, ack: int, flags: int, payload: bytes) -> Packet:
    ends = chunk.connection.client, chunk.connection.broker
    source, target = (ends[1], ends[0]) if of_broker else ends
    tcp = struct.pack(">HHIIBBHHH", source.port, target.port, 0, 0, 5 << 4, flags, 65535, 0, 0)
    data = packets.wrap(packets.ip_packet(source, target, 6, tcp), ETHERNET)
    whole = packets.segment(Packet(chunk.time, data, len(data), ETHERNET))
    assert whole is not None
    return packets.rebuilt(whole, seq=seq, ack=ack, flags=flags, payload=payload)


def end_of(host: str, port: int) -> End:
    """An end of a connection; a host that is no address stands as one of this machine."""
    try:
        return End(str(ipaddress.ip_address(host.partition("%")[0])), port)
    except ValueError:
        return End("127.0.0.1", port)
