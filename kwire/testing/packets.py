"""Captures as lists of packets, and packets as TCP segments: what ``kwire.testing.impair`` works on.

``read`` takes a pcap or pcapng file apart, ``write_pcap`` and ``write_pcapng`` put packets into a file. ``segment``
finds the TCP segment of a packet, ``rebuilt`` makes the packet of a segment that was changed. ``Flows`` says which
connection each packet belongs to. This is plain Python for small captures, and knows nothing of how kwire itself reads.
What one of them gets wrong the other one shows.

Rules kept here:

- A packet that is not understood is kept as it is, and is no segment.
- What is rebuilt is right: lengths, and checksums of IPv4 and TCP.
- Nothing is guessed of a damaged file: its packets are those before the damage.

Formats: pcap and pcapng as in the IETF drafts (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). Link types as in the
registry of tcpdump.org. IPv4 RFC 791, IPv6 RFC 8200, TCP RFC 9293.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kwire.capture.magics import PCAP, PCAPNG

__all__ = [
    "ACK",
    "COOKED",
    "ETHERNET",
    "FIN",
    "RAW",
    "RST",
    "SYN",
    "End",
    "Flow",
    "Flows",
    "Packet",
    "Segment",
    "Side",
    "ip_packet",
    "read",
    "rebuilt",
    "segment",
    "wrap",
    "write_pcap",
    "write_pcapng",
]

FIN: Final = 1
"""Control bit of TCP (int): the sender sends no more. Source: RFC 9293, 3.1."""
SYN: Final = 2
"""Control bit of TCP (int): the connection begins."""
RST: Final = 4
"""Control bit of TCP (int): the connection is given up."""
ACK: Final = 16
"""Control bit of TCP (int): the acknowledgement number holds."""

NULL: Final = 0
"""Link type (int): BSD loopback, family in the byte order of the machine. Source: tcpdump.org, link types."""
ETHERNET: Final = 1
"""Link type (int): Ethernet."""
RAW: Final = 101
"""Link type (int): IPv4 or IPv6 without a link header."""
LOOP: Final = 108
"""Link type (int): OpenBSD loopback, family in network byte order."""
COOKED: Final = 113
"""Link type (int): Linux "any" device, SLL."""
COOKED_2: Final = 276
"""Link type (int): Linux "any" device, SLL2."""

_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_TAGS: Final = (0x8100, 0x88A8, 0x9100)
_TCP: Final = 6
_SECOND: Final = 1_000_000_000
_SEQUENCE: Final = (1 << 32) - 1
_LONGEST: Final = 65535
_EVERYTHING: Final = 262_144

_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_SIMPLE: Final = 3
_ENHANCED: Final = 6
"""Types of pcapng blocks."""


class Packet(NamedTuple):
    """One packet of a capture."""

    time: int
    """Nanoseconds since 1970."""
    data: bytes
    """What the capture has of it."""
    size: int
    """How many bytes there were."""
    link: int
    """Its link type."""
    sources: tuple[int, ...] = ()
    """The packets of the original capture, by index, that it holds bytes of; none for one that was made up."""


class End(NamedTuple):
    """An end of a connection."""

    host: str
    port: int


class Segment(NamedTuple):
    """A TCP segment, and where it stands in its packet."""

    packet: Packet
    network: int
    """Where the IP header begins."""
    transport: int
    """Where the TCP header begins."""
    begin: int
    """Where the payload begins."""
    source: End
    target: End
    seq: int
    ack: int
    flags: int
    length: int
    """Bytes of payload as the IP header says."""

    @property
    def payload(self) -> bytes:
        """What the capture has of its bytes."""
        return self.packet.data[self.begin : self.begin + self.length]


class Side(NamedTuple):
    """Which connection a segment belongs to, and which of its ends sent it."""

    flow: int
    """Its place in ``Flows.flows``."""
    end: int
    """0 for the end that opened it (where that was not captured: the one with the higher port)."""


class Flow:
    """A connection: ``ends`` (the one that opened it first), and of each direction what is listed here."""

    def __init__(self, ends: tuple[End, End], opened: bool) -> None:
        self.ends = ends
        self.opened = opened
        """Whether its beginning was captured."""
        self.starts: list[int | None] = [None, None]
        """Sequence number of the first byte."""
        self.packets: list[int] = []
        """Its packets, by index."""


# --- files ------------------------------------------------------------------------------------------------------------


def read(data: bytes) -> list[Packet]:
    """The packets of a pcap or pcapng file, each its own source. Raises ``ValueError`` for anything else."""
    packets = _read_pcapng(data) if data[:4] == PCAPNG else _read_pcap(data)
    return [packet._replace(sources=(number,)) for number, packet in enumerate(packets)]


def _read_pcap(data: bytes) -> list[Packet]:
    form = PCAP.get(data[:4])
    if form is None or len(data) < 24:
        raise ValueError("neither pcap nor pcapng")
    order = "<" if form.little else ">"
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    head = struct.Struct(order + "IIII")
    scale = 1 if form.nano else 1000
    found = []
    at = 24
    while at + form.packet_header <= len(data):
        seconds, rest, captured, size = head.unpack_from(data, at)
        at += form.packet_header
        if captured > len(data) - at:
            break
        found.append(Packet(seconds * _SECOND + rest * scale, data[at : at + captured], size, link))
        at += captured
    return found


def _read_pcapng(data: bytes) -> list[Packet]:
    found: list[Packet] = []
    interfaces: list[tuple[int, int, int]] = []
    order = "<"
    at = 0
    while at + 12 <= len(data):
        if data[at : at + 4] == PCAPNG:
            order = ">" if data[at + 8 : at + 12] == b"\x1a\x2b\x3c\x4d" else "<"
            interfaces = []
        kind, length = struct.unpack_from(order + "II", data, at)
        if length < 12 or length % 4 or length > len(data) - at:
            break
        body = data[at + 8 : at + length - 4]
        if kind == _INTERFACE and len(body) >= 8:
            interfaces.append((struct.unpack_from(order + "H", body)[0], *_clock(body[8:], order)))
        elif kind == _ENHANCED and len(body) >= 20:
            number, high, low, captured, size = struct.unpack_from(order + "5I", body)
            if number < len(interfaces):
                link, per_second, offset = interfaces[number]
                time = offset * _SECOND + (high << 32 | low) * _SECOND // per_second
                found.append(Packet(time, body[20 : 20 + captured], size, link))
        elif kind == _SIMPLE and interfaces:
            size = struct.unpack_from(order + "I", body)[0]
            time = found[-1].time if found else 0
            found.append(Packet(time, body[4 : 4 + size], size, interfaces[0][0]))
        at += length
    return found


def _clock(options: bytes, order: str) -> tuple[int, int]:
    """Units in a second and offset in seconds of an interface's times."""
    per_second, offset = 1_000_000, 0
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from(order + "HH", options, at)
        value = options[at + 4 : at + 4 + length]
        if code == 0:
            break
        if code == 9 and len(value) == 1:
            per_second = 1 << (value[0] & 127) if value[0] & 128 else 10 ** value[0]
        elif code == 14 and len(value) == 8:
            (offset,) = struct.unpack(order + "q", value)
        at += 4 + (length + 3 & ~3)
    return per_second, offset


def write_pcap(packets: Sequence[Packet], *, nano: bool | None = None, little: bool = True) -> bytes:
    """A pcap file. ``nano``: with nanoseconds (None: if a packet needs them). All packets are of one link type."""
    links = {packet.link for packet in packets} or {ETHERNET}
    if len(links) > 1:
        raise ValueError(f"packets of link types {sorted(links)}: only pcapng holds several")
    if nano is None:
        nano = any(packet.time % 1000 for packet in packets)
    order = "<" if little else ">"
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, _EVERYTHING, links.pop())]
    head = struct.Struct(order + "IIII")
    for time, data, size, _, _ in packets:
        seconds, rest = divmod(time, _SECOND)
        out += head.pack(seconds, rest if nano else rest // 1000, len(data), size), data
    return b"".join(out)


def write_pcapng(
    packets: Sequence[Packet], *, resolution: int = 9, offset: int = 0, interfaces: int = 1, little: bool = True
) -> bytes:
    """A pcapng file whose times have units of 10**-``resolution`` s and begin ``offset`` seconds after 1970.

    Packets are spread over as many ``interfaces``, of each link type.
    """
    order = "<" if little else ">"

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + length + body + length

    out = [block(_SECTION, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    numbers: dict[int, int] = {}
    for packet in packets:
        if packet.link not in numbers:
            numbers[packet.link] = len(numbers) * interfaces
    clock = struct.pack(order + "HHB3x", 9, 1, resolution) + struct.pack(order + "HHq", 14, 8, offset) + bytes(4)
    out += [
        block(_INTERFACE, struct.pack(order + "HHI", link, 0, 0) + clock) for link in numbers for _ in range(interfaces)
    ]
    for number, (time, data, size, link, _) in enumerate(packets):
        units = (time - offset * _SECOND) * 10**resolution // _SECOND
        which = numbers[link] + number % interfaces
        out.append(
            block(_ENHANCED, struct.pack(order + "5I", which, units >> 32, units & _SEQUENCE, len(data), size) + data)
        )
    return b"".join(out)


# --- packets ----------------------------------------------------------------------------------------------------------


def _network(data: bytes, link: int) -> int:
    """Where the IP header of a packet begins; -1 if there is none."""
    if link == ETHERNET:
        at = 12
        while at + 2 <= len(data):
            kind = int.from_bytes(data[at : at + 2])
            if kind not in _TAGS:
                return at + 2 if kind in (_IPV4, _IPV6) else -1
            at += 4
        return -1
    if link == COOKED:
        return 16 if data[14:16] in (b"\x08\x00", b"\x86\xdd") else -1
    if link == COOKED_2:
        return 20 if data[:2] in (b"\x08\x00", b"\x86\xdd") else -1
    if link in (NULL, LOOP):
        return 4
    return 0 if link in (12, 14, RAW, 228, 229) else -1


def segment(packet: Packet) -> Segment | None:
    """The TCP segment of a packet; None if it has none, or not all of its headers, or is a fragment."""
    data = packet.data
    at = _network(data, packet.link)
    if at < 0 or at + 20 > len(data):
        return None
    version = data[at] >> 4
    if version == 4:
        transport = at + (data[at] & 15) * 4
        total = int.from_bytes(data[at + 2 : at + 4])
        end = at + total if total else at + packet.size - at
        protocol = data[at + 9]
        if int.from_bytes(data[at + 6 : at + 8]) & 0x3FFF:
            return None
        hosts = data[at + 12 : at + 16], data[at + 16 : at + 20]
    elif version == 6 and at + 40 <= len(data):
        transport = at + 40
        total = int.from_bytes(data[at + 4 : at + 6])
        end = transport + total if total else packet.size
        protocol = data[at + 6]
        hosts = data[at + 8 : at + 24], data[at + 24 : at + 40]
    else:
        return None
    if protocol != _TCP or transport + 20 > len(data):
        return None
    source, target, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", data, transport)
    begin = transport + (offset >> 4) * 4
    if begin > end or begin < transport + 20:
        return None
    return Segment(
        packet,
        at,
        transport,
        begin,
        End(_host(hosts[0]), source),
        End(_host(hosts[1]), target),
        seq,
        ack,
        flags,
        end - begin,
    )


_hosts: dict[bytes, str] = {}


def _host(address: bytes) -> str:
    known = _hosts.get(address)
    if known is None:
        known = _hosts[address] = str(ipaddress.ip_address(address))
    return known


def _sum(data: bytes) -> int:
    """The ones' complement checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    # Sixteen bits wrap around at 2**16 - 1: so does the remainder, which shows 0 for all ones.
    return 0xFFFF - (int.from_bytes(data) % 0xFFFF or (0xFFFF if any(data) else 0))


def rebuilt(
    part: Segment,
    *,
    seq: int | None = None,
    ack: int | None = None,
    flags: int | None = None,
    payload: bytes | None = None,
    time: int | None = None,
    sources: tuple[int, ...] | None = None,
) -> Packet:
    """The packet of a segment of which some of this was changed; lengths and checksums are made anew.

    A payload of more than an IP header can say is one of segmentation offload, with a length of 0.
    """
    packet = part.packet
    data = packet.data
    body = part.payload if payload is None else payload
    tcp = bytearray(data[part.transport : part.begin])
    struct.pack_into(
        ">IIBB",
        tcp,
        4,
        (part.seq if seq is None else seq) & _SEQUENCE,
        (part.ack if ack is None else ack) & _SEQUENCE,
        tcp[12],
        part.flags if flags is None else flags,
    )
    tcp[16:18] = bytes(2)
    head = bytearray(data[part.network : part.transport])
    six = head[0] >> 4 == 6
    length = len(tcp) + len(body)
    if six:
        head[4:6] = (length if length <= _LONGEST else 0).to_bytes(2)
        addresses = bytes(head[8:40])
    else:
        total = len(head) + length
        head[2:4] = (total if total <= _LONGEST else 0).to_bytes(2)
        head[10:12] = bytes(2)
        head[10:12] = _sum(bytes(head)).to_bytes(2)
        addresses = bytes(head[12:20])
    tcp[16:18] = _sum(addresses + struct.pack(">II", _TCP, length) + bytes(tcp) + body).to_bytes(2)
    made = data[: part.network] + bytes(head) + bytes(tcp) + body
    return Packet(
        packet.time if time is None else time,
        made,
        len(made),
        packet.link,
        packet.sources if sources is None else sources,
    )


def ip_packet(source: End, target: End, protocol: int, body: bytes) -> bytes:
    """An IP packet, of the version that the addresses are of. The checksum of IPv4 is not made: see ``rebuilt``."""
    hosts = ipaddress.ip_address(source.host).packed + ipaddress.ip_address(target.host).packed
    if len(hosts) == 8:
        return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0) + hosts + body
    return struct.pack(">IHBB", 6 << 28, len(body), protocol, 64) + hosts + body


def wrap(ip: bytes, link: int, tags: Sequence[tuple[int, int]] = ()) -> bytes:
    """An IP packet as it is captured on a link: Ethernet (with VLAN ``tags``: protocol and number), cooked or raw."""
    kind = (_IPV6 if ip[0] >> 4 == 6 else _IPV4).to_bytes(2)
    if link == ETHERNET:
        marks = b"".join(struct.pack(">HH", protocol, number) for protocol, number in tags)
        return bytes.fromhex("020000000001020000000002") + marks + kind + ip
    if link == COOKED:
        return struct.pack(">HHH8s", 0, 1, 6, bytes(8)) + kind + ip
    if link == COOKED_2:
        return kind + struct.pack(">HIHBB8s", 0, 1, 1, 0, 6, bytes(8)) + ip
    if link == RAW:
        return ip
    raise ValueError(f"link type {link}")


class Flows:
    """Which connection each packet belongs to: ``flows``, ``segments`` and ``sides`` by the index of a packet.

    ``segments`` and ``sides`` have None for a packet that is no TCP segment. A SYN with another sequence number begins
    another connection on the same ports.
    """

    def __init__(self, packets: Iterable[Packet]) -> None:
        self.flows: list[Flow] = []
        self.segments: list[Segment | None] = []
        self.sides: list[Side | None] = []
        latest: dict[tuple[End, End], int] = {}
        for index, packet in enumerate(packets):
            part = segment(packet)
            self.segments.append(part)
            if part is None:
                self.sides.append(None)
                continue
            ends = part.source, part.target
            key = min(ends), max(ends)
            number = latest.get(key, -1)
            opens = part.flags & (SYN | ACK) == SYN
            if number >= 0 and opens:
                flow = self.flows[number]
                if flow.starts[flow.ends.index(part.source)] not in (None, part.seq + 1 & _SEQUENCE):
                    number = -1
            if number < 0:
                number = latest[key] = len(self.flows)
                first = opens or (not part.flags & SYN and part.source.port > part.target.port)
                self.flows.append(Flow(ends if first else (part.target, part.source), bool(part.flags & SYN)))
            flow = self.flows[number]
            end = flow.ends.index(part.source)
            if part.flags & SYN:
                flow.starts[end] = part.seq + 1 & _SEQUENCE
            flow.packets.append(index)
            self.sides.append(Side(number, end))
