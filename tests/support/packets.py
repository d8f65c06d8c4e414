"""A builder of captures for tests: TCP connections as lists of packets, and the files that hold them.

``Connection`` turns bytes into segments with correct sequence numbers; ``ethernet``, ``sll``, ``sll2``, ``null``
and ``raw`` wrap an IP packet for a link type; ``pcap`` and ``pcapng`` write files. Everything is explicit, so that
a test can leave out, repeat, reorder or damage what it wants.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

FIN, SYN, RST, ACK = 1, 2, 4, 16
ETHERNET, RAW, SLL, SLL2, NULL, LOOP = 1, 101, 113, 276, 0, 108


@dataclass(frozen=True)
class Packet:
    """One TCP packet. ``time`` is nanoseconds since 1970; ``wire`` the payload length that the IP header says."""

    src: tuple[str, int]
    dst: tuple[str, int]
    seq: int
    payload: bytes = b""
    flags: int = ACK
    ack: int = 0
    time: int = 0
    options: bytes = b""
    ip_options: bytes = b""
    extensions: bytes = b""
    first_extension: int = 6
    fragment: int = 0
    checksum: int = 0

    def tcp(self) -> bytes:
        """TCP header and payload."""
        offset = (20 + len(self.options)) // 4 << 4
        return (
            struct.pack(
                ">HHIIBBHHH",
                self.src[1],
                self.dst[1],
                self.seq & 0xFFFFFFFF,
                self.ack & 0xFFFFFFFF,
                offset,
                self.flags,
                65535,
                self.checksum,
                0,
            )
            + self.options
            + self.payload
        )

    def ip(self) -> bytes:
        """The IP packet, version by the source address."""
        source, target = ipaddress.ip_address(self.src[0]), ipaddress.ip_address(self.dst[0])
        body = self.tcp()
        if source.version == 4:
            header = 20 + len(self.ip_options)
            return (
                struct.pack(">BBHHHBBH", 0x40 | header // 4, 0, header + len(body), 1, self.fragment, 64, 6, 0)
                + source.packed
                + target.packed
                + self.ip_options
                + body
            )
        return (
            struct.pack(">IHBB", 6 << 28, len(self.extensions) + len(body), self.first_extension, 64)
            + source.packed
            + target.packed
            + self.extensions
            + body
        )


@dataclass
class Connection:
    """A connection: ``send`` and ``answer`` append packets to ``packets``, cut into segments of ``mss`` bytes."""

    client: tuple[str, int] = ("10.0.0.1", 40000)
    broker: tuple[str, int] = ("10.0.0.2", 9092)
    client_isn: int = 1000
    broker_isn: int = 5000
    time: int = 1_700_000_000_000_000_000
    step: int = 1_000_000
    mss: int = 1460
    packets: list[Packet] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._next = [self.client_isn + 1, self.broker_isn + 1]

    def _add(self, side: int, payload: bytes, flags: int, seq: int | None = None) -> None:
        src, dst = (self.client, self.broker) if side == 0 else (self.broker, self.client)
        self.packets.append(
            Packet(src, dst, self._next[side] if seq is None else seq, payload, flags, self._next[1 - side], self.time)
        )
        self.time += self.step

    def open(self) -> Connection:
        """SYN, SYN+ACK, ACK."""
        self._add(0, b"", SYN, self.client_isn)
        self._add(1, b"", SYN | ACK, self.broker_isn)
        self._add(0, b"", ACK)
        return self

    def _data(self, side: int, data: bytes) -> None:
        for at in range(0, len(data), self.mss):
            part = data[at : at + self.mss]
            self._add(side, part, ACK)
            self._next[side] += len(part)

    def send(self, *frames: bytes) -> Connection:
        """Frames (their size is put in front) from the client."""
        self._data(0, b"".join(map(sized, frames)))
        return self

    def answer(self, *frames: bytes) -> Connection:
        """Frames from the broker."""
        self._data(1, b"".join(map(sized, frames)))
        return self

    def send_raw(self, data: bytes) -> Connection:
        """Bytes from the client, as they are."""
        self._data(0, data)
        return self

    def answer_raw(self, data: bytes) -> Connection:
        """Bytes from the broker, as they are."""
        self._data(1, data)
        return self

    def close(self) -> Connection:
        """FIN from both sides."""
        for side in (0, 1):
            self._add(side, b"", FIN | ACK)
            self._next[side] += 1
        return self

    def reset(self) -> Connection:
        """RST from the broker."""
        self._add(1, b"", RST)
        return self


def sized(frame: bytes) -> bytes:
    """A frame with its size."""
    return struct.pack(">i", len(frame)) + frame


def request(api: int, version: int, number: int, body: bytes = b"", client: str | None = "test") -> bytes:
    """A request frame with header v1."""
    name = b"\xff\xff" if client is None else struct.pack(">h", len(client.encode())) + client.encode()
    return struct.pack(">hhi", api, version, number) + name + body


def response(number: int, body: bytes = b"") -> bytes:
    """A response frame with header v0."""
    return struct.pack(">i", number) + body


METADATA_REQUEST = struct.pack(">i", 0)
"""Body of Metadata v0: all topics."""
METADATA_RESPONSE = struct.pack(">ii", 0, 0)
"""Body of Metadata v0: no brokers, no topics."""


def metadata(number: int, client: str | None = "test") -> bytes:
    """A Metadata v0 request."""
    return request(3, 0, number, METADATA_REQUEST, client)


def metadata_answer(number: int) -> bytes:
    """Its response."""
    return response(number, METADATA_RESPONSE)


def produce(number: int, acks: int, records: bytes = b"", topic: str = "t") -> bytes:
    """A Produce v2 request with one record set for partition 0 of one topic."""
    name = topic.encode()
    return request(
        0,
        2,
        number,
        struct.pack(">hii", acks, 1000, 1)
        + struct.pack(">h", len(name))
        + name
        + struct.pack(">ii", 1, 0)
        + struct.pack(">i", len(records))
        + records,
    )


def produce_answer(number: int, topic: str = "t") -> bytes:
    """The Produce v2 response."""
    name = topic.encode()
    return response(
        number,
        struct.pack(">i", 1)
        + struct.pack(">h", len(name))
        + name
        + struct.pack(">iihqq", 1, 0, 0, 0, -1)
        + struct.pack(">i", 0),
    )


def link(packet: Packet, kind: int = ETHERNET, vlans: Sequence[tuple[int, int]] = (), little: bool = True) -> bytes:
    """The packet as captured on a link of this type. ``vlans``: (tag protocol, VLAN id) from the outside in."""
    ip = packet.ip()
    six = ip[0] >> 4 == 6
    kind_of_ip = 0x86DD if six else 0x0800
    if kind == ETHERNET:
        tags = [(protocol, number) for protocol, number in vlans]
        protocols = [protocol for protocol, _ in tags] + [kind_of_ip]
        out = bytes(12) + struct.pack(">H", protocols[0])
        for (_, number), following in zip(tags, protocols[1:], strict=True):
            out += struct.pack(">HH", number, following)
        return out + ip
    if kind == SLL:
        return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), kind_of_ip) + ip
    if kind == SLL2:
        return struct.pack(">HHIHBB8s", kind_of_ip, 0, 1, 1, 0, 6, bytes(8)) + ip
    if kind == NULL:
        return struct.pack("<I" if little else ">I", 30 if six else 2) + ip
    if kind == LOOP:
        return struct.pack(">I", 24 if six else 2) + ip
    return ip


def pcap(
    packets: Iterable[Packet],
    kind: int = ETHERNET,
    *,
    little: bool = True,
    nano: bool = False,
    snaplen: int = 262144,
    wrap: bool = True,
) -> bytes:
    """A pcap file."""
    order = "<" if little else ">"
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snaplen, kind)]
    for packet in packets:
        data = link(packet, kind)
        cut = data[:snaplen] if wrap else data
        seconds, rest = divmod(packet.time, 1_000_000_000)
        out.append(struct.pack(order + "IIII", seconds, rest if nano else rest // 1000, len(cut), len(data)) + cut)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """A pcapng option."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    """A section header block, with a comment option that a reader has to pass over."""
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + option(1, b"a comment", order) + option(0, b"", order)
    return block(0x0A0D0D0A, body, order)


def interface(kind: int = ETHERNET, order: str = "<", resolution: int | None = None, snaplen: int = 0) -> bytes:
    """An interface description block."""
    options = b"" if resolution is None else option(2, b"eth0", order) + option(9, bytes([resolution]), order)
    return block(1, struct.pack(order + "HHI", kind, 0, snaplen) + options + option(0, b"", order), order)


def ticks(time: int, resolution: int) -> int:
    """Nanoseconds in the units of an ``if_tsresol``."""
    if resolution & 0x80:
        return (time << (resolution & 0x7F)) // 1_000_000_000
    return time * 10**resolution // 1_000_000_000


def enhanced(packet: Packet, number: int = 0, kind: int = ETHERNET, order: str = "<", resolution: int = 6) -> bytes:
    """An enhanced packet block."""
    data = link(packet, kind)
    units = ticks(packet.time, resolution)
    body = struct.pack(order + "IIIII", number, units >> 32, units & 0xFFFFFFFF, len(data), len(data)) + data
    return block(6, body + bytes(-len(body) % 4) + option(0, b"", order), order)


def simple(packet: Packet, kind: int = ETHERNET, order: str = "<") -> bytes:
    """A simple packet block: of the first interface, without a time."""
    data = link(packet, kind)
    return block(3, struct.pack(order + "I", len(data)) + data, order)


def pcapng(packets: Iterable[Packet], kind: int = ETHERNET, order: str = "<", resolution: int = 6) -> bytes:
    """A pcapng file with one section and one interface."""
    head = section(order) + interface(kind, order, resolution)
    return head + b"".join(enhanced(one, 0, kind, order, resolution) for one in packets)


def moved(packet: Packet, nanoseconds: int) -> Packet:
    """The packet, captured later."""
    return replace(packet, time=packet.time + nanoseconds)


def buffer(data: bytes) -> Any:
    """Bytes as the kernels take them."""
    return np.frombuffer(bytearray(data), np.uint8)
