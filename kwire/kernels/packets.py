"""Packets out of capture bytes, and the TCP segment that a packet carries. Nothing here remembers anything.

Strategy: one pass finds the packets of a window and writes a row for each (``pcap_packets``, ``pcapng_packets``).
Later, ``innermost`` follows the headers of one packet, layer by layer, until it has read a TCP header. Each layer is a
kernel that looks at one header and says which layer comes next and where it begins::

    Ethernet, VLAN tags | cooked | loopback -> IP -> IPv4 | IPv6, extension headers -> TCP

A link type is a kernel, a member of ``Layer``, a branch of ``innermost`` and a line of ``LINKS``; a tunnel is the same,
reached from the layer that it is carried by (``_transport``, ``_ether_type``), and leads back to a layer of the packet
inside. Nothing is copied: a row says where the bytes stand in the window.

Rules kept here:

- Every length comes from the input and is checked against the end of the packet before it is used. A packet that is
  not understood (another protocol, a header that does not fit, a fragment) is counted, as a ``Count``, and left out.
- A segment's length is what the IP header says, whatever the capture has of it (snaplen).
- All numbers are int64: numba turns a mixture of int64 and uint64 into floating point.

Formats: pcap and pcapng as in the IETF drafts (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng), link types as in the
registry of tcpdump.org; IPv4 RFC 791, IPv6 RFC 8200, TCP RFC 9293.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, kernel
from kwire.kernels.layouts import PACKET, Row, table_type
from kwire.kernels.numbers import grown, i64, int64, little_u16, little_u32, u16, u32

__all__ = [
    "BINARY_UNITS",
    "DECRYPTION_SECRETS",
    "EARLIEST",
    "FINE_UNITS",
    "HEADER",
    "LATEST",
    "LINKS",
    "MAX_PACKET",
    "Count",
    "Flag",
    "Header",
    "Layer",
    "Stopped",
    "innermost",
    "nanoseconds",
    "pcap_packets",
    "pcapng_packets",
]

Array = Any
"""A numpy array: numba, not mypy, checks what is in it."""

MAX_PACKET: Final = 64 << 20
"""Largest packet or block that is believed, in bytes: libpcap itself stops at 256 KiB, some NICs coalesce more."""

BINARY_UNITS: Final = 64
FINE_UNITS: Final = 32
"""What ``Interface.resolution`` has added to n for units of 2**-n s, and of 10**-n s with n > 9."""

_LEAST_ROWS: Final = 16
_BYTES_PER_ROW: Final = 256
"""A table of packets begins with a row for so many bytes of the capture."""

_SECOND: Final = 1_000_000_000
_FARTHEST: Final = 1 << 40
"""Seconds beyond what can be shown, whatever they are added to."""

LATEST: Final = (2**63 - 1) // _SECOND // 86400 * 86400 * _SECOND - _SECOND
"""The last second that packets have, 2262-04-10 23:59:59 UTC: int64 nanoseconds end a day later."""
EARLIEST: Final = -LATEST
_MICROSECOND: Final = 1_000
_NANO_DIGITS: Final = 9


class Stopped(IntEnum):
    """Why a kernel that looks for packets stopped."""

    MORE = 0
    """The window ends in the middle of a packet or block."""
    SECTION = 1
    """A pcapng section header, interface description or block of secrets stands here: the caller reads it."""
    BAD = 2
    """No packet or block can stand here."""
    FULL = 3
    """The table has no room for the next packet. Never seen from outside: the table is made larger."""


class Count(IntEnum):
    """What is counted, as places of an int64 array with ``len(Count)`` of them."""

    PACKETS = 0
    """All packets. Where ``innermost`` returns it, there is nothing else to count: the packet is a TCP segment."""
    LINK = 1
    """The link type is not supported."""
    NOT_IP = 2
    NOT_TCP = 3
    FRAGMENT = 4
    """Fragments of IP packets."""
    DAMAGED = 5
    """Headers that are damaged or cut off."""
    SNAPPED = 6
    """Cut off by the snapshot length."""
    INTERFACE = 7
    """Packets of an interface that is not described."""
    TIME = 8
    """Packets with a time before ``EARLIEST`` or after ``LATEST``, which are taken for those."""


class Layer(IntEnum):
    """What stands at some place of a packet. The numbers begin behind those of ``Count``, which end the way."""

    ETHERNET = 16
    COOKED = 17
    """Linux cooked capture v1."""
    COOKED_2 = 18
    LOOPBACK = 19
    """Of BSD and OpenBSD: an address family and no more."""
    IP = 20
    """Either version; the header says which."""
    IPV4 = 21
    IPV6 = 22
    TCP = 23


LINKS: Final = {
    0: Layer.LOOPBACK,
    1: Layer.ETHERNET,
    12: Layer.IP,
    14: Layer.IP,
    101: Layer.IP,
    108: Layer.LOOPBACK,
    113: Layer.COOKED,
    228: Layer.IP,
    229: Layer.IP,
    276: Layer.COOKED_2,
}
"""The link types that are supported, and what a packet of each begins with."""

_FIRST_LAYERS: Final = np.array([LINKS.get(link, Count.LINK) for link in range(max(LINKS) + 1)], np.int64)


class Flag(IntEnum):
    """Control bits of a TCP header."""

    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


class Header(Row):
    """What the headers of a packet say: the addresses of the innermost IP header, and the TCP header."""

    family: int
    """4 or 6."""
    src_high: int
    src_low: int
    dst_high: int
    dst_low: int
    """Addresses as two halves of 64 bits; of IPv4 the lower half."""
    wire_end: int
    """Where the packet ends as the IP header says: behind what was captured if the capture cut it off."""
    src_port: int
    dst_port: int
    seq: int
    ack: int
    control: int
    """The control bits: those of ``Flag``, among others."""
    off: int
    """Where the bytes of the segment begin."""
    captured: int
    """How many of them the capture has."""
    length: int
    """How many there were."""


HEADER: Final = table_type(Header)


# --- packets of a file ------------------------------------------------------------------------------------------------

_SECTION_HEADER: Final = 0x0A0D0D0A
_INTERFACE_DESCRIPTION: Final = 1
DECRYPTION_SECRETS: Final = 10
_OBSOLETE_PACKET: Final = 2
_SIMPLE_PACKET: Final = 3
_ENHANCED_PACKET: Final = 6
"""Types of pcapng blocks."""

_LEAST_BLOCK: Final = 12
_ENHANCED_FRAME: Final = 32
_ENHANCED_HEAD: Final = 28
_SIMPLE_FRAME: Final = 16
_SIMPLE_HEAD: Final = 12
"""Bytes of a block around its packet, and of those the ones before it."""

_NO_PACKET: Final = -1
_BAD_BLOCK: Final = -2


@kernel
def word(buf: Array, at: int, little: bool) -> int:
    """An unsigned 32-bit number in the byte order of the file."""
    return little_u32(buf, at) if little else u32(buf, at)


def _room(start: int, end: int) -> Array:
    """A table for the packets of a window of capture bytes, as large as such windows mostly need."""
    return np.empty(max(_LEAST_ROWS, (end - start) // _BYTES_PER_ROW), PACKET)


@kernel
def _note_packet(packet: Any, off: int, captured: int, time: int, link: int) -> None:
    """Fills a row of the table of packets."""
    packet.off = off
    packet.captured = captured
    packet.time = time
    packet.link = link


@kernel
def _fill_pcap(
    buf: Array, pos: int, end: int, little: bool, nano: bool, header: int, limit: int, link: int, packets: Array, n: int
) -> tuple[int, int, int]:
    """``pcap_packets`` until the table is full: (rows, position reached, MORE, BAD or FULL)."""
    while pos + header <= end:
        seconds = word(buf, pos, little)
        fraction = word(buf, pos + 4, little)
        captured = word(buf, pos + 8, little)
        if captured > limit:
            return n, pos, int64(Stopped.BAD)
        if pos + header + captured > end:
            break
        if n == packets.shape[0]:
            return n, pos, int64(Stopped.FULL)
        time = seconds * _SECOND + (fraction if nano else fraction * _MICROSECOND)
        _note_packet(packets[n], pos + header, captured, time, link)
        n += 1
        pos += header + captured
    return n, pos, int64(Stopped.MORE)


def pcap_packets(
    buf: Array, start: int, end: int, little: bool, nano: bool, header: int, limit: int, link: int, engine: Engine
) -> tuple[Array, int, int]:
    """The packets of a pcap window: (table, position reached, MORE or BAD).

    A record is 16 bytes and the packet (24 and the packet in a variant of 1990s Linux, ``header``)::

        seconds | microseconds or nanoseconds | captured length | length on the wire
        u32     | u32                         | u32             | u32
    """
    packets = _room(start, end)
    fill = engine(_fill_pcap)
    n, pos, stopped = fill(buf, start, end, little, nano, header, limit, link, packets, 0)
    while stopped == Stopped.FULL:
        packets = grown(packets)
        n, pos, stopped = fill(buf, pos, end, little, nano, header, limit, link, packets, n)
    return packets[:n], pos, stopped


@kernel
def nanoseconds(high: int, low: int, resolution: int, offset: int) -> int:
    """A pcapng timestamp (64 bits, unsigned) in nanoseconds, never before ``EARLIEST`` or after ``LATEST``.

    ``offset`` is in seconds, and small enough to be added to any number of them.
    """
    high = int64(high)
    low = int64(low)
    units = (high << 32) | low
    if resolution >= BINARY_UNITS:
        bits = resolution - BINARY_UNITS
        # The shift of a signed number repeats its sign, which is not part of this one.
        seconds = (units >> bits) & ((1 << (63 - bits)) * 2 - 1) if bits > 0 else units
        rest = units & ((1 << bits) - 1)
        # 2**33 * 10**9 is the largest product that fits.
        if bits > 33:
            rest >>= bits - 33
            bits = 33
        rest = (rest * _SECOND) >> bits
    else:
        digits = resolution
        if resolution >= FINE_UNITS:
            digits = int64(_NANO_DIGITS)
            divisor = 1
            for _ in range(min(_NANO_DIGITS, resolution - FINE_UNITS - _NANO_DIGITS)):
                divisor *= 10
            # In two halves, since the number may use all 64 bits.
            units = ((high // divisor) << 32) + (((high % divisor) << 32) | low) // divisor
            for _ in range(resolution - FINE_UNITS - 2 * _NANO_DIGITS):
                units //= 10
        per_second = 1
        for _ in range(digits):
            per_second *= 10
        seconds = units // per_second
        rest = (units % per_second) * (_SECOND // per_second)
    if seconds < 0:
        # All 64 bits are in use, and none of them is for less than a second's 2**-1, or 10**-9.
        return int64(LATEST)
    seconds = min(seconds, int64(_FARTHEST)) + offset
    return min(max(seconds, EARLIEST // _SECOND), LATEST // _SECOND) * _SECOND + rest


@kernel
def _packet_block(buf: Array, pos: int, kind: int, total: int, little: bool, interfaces: Array) -> tuple[int, int, int]:
    """The packet in a pcapng block: (where it begins, captured length, interface), or ``_NO_PACKET`` for other blocks,
    ``_BAD_BLOCK`` for one that is not as long as it must be."""
    if kind in (_ENHANCED_PACKET, _OBSOLETE_PACKET):
        if total < _ENHANCED_FRAME:
            return int64(_BAD_BLOCK), int64(0), int64(0)
        captured = word(buf, pos + 20, little)
        if captured > total - _ENHANCED_FRAME:
            return int64(_BAD_BLOCK), int64(0), int64(0)
        if kind == _ENHANCED_PACKET:
            interface = word(buf, pos + 8, little)
        else:
            interface = little_u16(buf, pos + 8) if little else u16(buf, pos + 8)
        return pos + _ENHANCED_HEAD, captured, interface
    if kind == _SIMPLE_PACKET:
        if total < _SIMPLE_FRAME:
            return int64(_BAD_BLOCK), int64(0), int64(0)
        captured = min(word(buf, pos + 8, little), total - _SIMPLE_FRAME)
        if interfaces.shape[0] > 0 and interfaces[0].snaplen > 0:
            captured = min(captured, interfaces[0].snaplen)
        return pos + _SIMPLE_HEAD, captured, int64(0)
    return int64(_NO_PACKET), int64(0), int64(0)


@kernel
def _fill_pcapng(
    buf: Array,
    pos: int,
    end: int,
    little: bool,
    interfaces: Array,
    last_time: int,
    counts: Array,
    packets: Array,
    n: int,
) -> tuple[int, int, int, int]:
    """``pcapng_packets`` until the table is full: (rows, position reached, MORE, SECTION, BAD or FULL, last time)."""
    while pos + _LEAST_BLOCK <= end:
        kind = word(buf, pos, little)
        if kind in (_SECTION_HEADER, _INTERFACE_DESCRIPTION, DECRYPTION_SECRETS):
            return n, pos, int64(Stopped.SECTION), last_time
        total = word(buf, pos + 4, little)
        if total < _LEAST_BLOCK or total & 3 or total > MAX_PACKET:
            return n, pos, int64(Stopped.BAD), last_time
        if pos + total > end:
            break
        if n == packets.shape[0]:
            return n, pos, int64(Stopped.FULL), last_time
        off, captured, number = _packet_block(buf, pos, kind, total, little, interfaces)
        if off == _BAD_BLOCK:
            return n, pos, int64(Stopped.BAD), last_time
        if off >= 0 and number >= interfaces.shape[0]:
            counts[Count.INTERFACE] += 1
        elif off >= 0:
            interface = interfaces[number]
            if kind != _SIMPLE_PACKET:
                last_time = nanoseconds(
                    word(buf, pos + 12, little), word(buf, pos + 16, little), interface.resolution, interface.offset
                )
                if last_time <= EARLIEST or last_time >= LATEST:
                    counts[Count.TIME] += 1
            _note_packet(packets[n], off, captured, last_time, interface.link)
            n += 1
        pos += total
    return n, pos, int64(Stopped.MORE), last_time


def pcapng_packets(
    buf: Array, start: int, end: int, little: bool, interfaces: Array, last_time: int, counts: Array, engine: Engine
) -> tuple[Array, int, int, int]:
    """The packets of a pcapng window up to the next section header or interface description.

    Returns (table, position reached, MORE, SECTION or BAD, time of the last packet). A block is::

        type | total length | body, padded to 4 bytes | total length
        u32  | u32          |                         | u32

    Packets stand in enhanced (6), simple (3: no time, the one before it is used) and obsolete (2) packet blocks.
    """
    packets = _room(start, end)
    fill = engine(_fill_pcapng)
    n, pos, stopped, time = fill(buf, start, end, little, interfaces, last_time, counts, packets, 0)
    while stopped == Stopped.FULL:
        packets = grown(packets)
        n, pos, stopped, time = fill(buf, pos, end, little, interfaces, time, counts, packets, n)
    return packets[:n], pos, stopped, time


# --- headers of a packet ----------------------------------------------------------------------------------------------
# Each of these kernels reads the header at ``at`` of a packet of which the capture has the bytes before ``end``, and
# returns (next layer, where it begins), or a ``Count`` in place of the layer.

_ETHER_IPV4: Final = 0x0800
_ETHER_IPV6: Final = 0x86DD
_VLAN: Final = 0x8100
_VLAN_OUTER: Final = 0x88A8
_VLAN_OLD: Final = 0x9100
"""802.1Q, 802.1ad (QinQ) and the number that was used for it before."""

_ETHERNET_SIZE: Final = 14
_VLAN_SIZE: Final = 4
_COOKED_SIZE: Final = 16
_COOKED_2_SIZE: Final = 20
_LOOPBACK_SIZE: Final = 4
_IPV4_SIZE: Final = 20
_IPV6_SIZE: Final = 40
_EXTENSION_SIZE: Final = 8
_TCP_SIZE: Final = 20

_HOP_BY_HOP: Final = 0
_TCP_PROTOCOL: Final = 6
_ROUTING: Final = 43
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51
_DESTINATION: Final = 60
"""IP protocol numbers."""


@kernel
def _ether_type(buf: Array, at: int, end: int, kind: int) -> tuple[int, int]:
    """What an EtherType stands for, behind VLAN tags if there are any.

    The IP version is taken from the IP header itself; what the link layer says only has to be one of IPv4 and IPv6.
    """
    while kind in (_VLAN, _VLAN_OUTER, _VLAN_OLD):
        if at + _VLAN_SIZE > end:
            return int64(Count.DAMAGED), at
        kind = u16(buf, at + 2)
        at += _VLAN_SIZE
    if kind != _ETHER_IPV4 and kind != _ETHER_IPV6:
        return int64(Count.NOT_IP), at
    return int64(Layer.IP), at


@kernel
def _ethernet(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Two addresses, EtherType."""
    if at + _ETHERNET_SIZE > end:
        return int64(Count.DAMAGED), at
    return _ether_type(buf, at + _ETHERNET_SIZE, end, u16(buf, at + 12))


@kernel
def _cooked(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Linux cooked v1: type, ARPHRD, length, address, protocol."""
    if at + _COOKED_SIZE > end:
        return int64(Count.DAMAGED), at
    return _ether_type(buf, at + _COOKED_SIZE, end, u16(buf, at + 14))


@kernel
def _cooked_2(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Linux cooked v2: protocol first."""
    if at + _COOKED_2_SIZE > end:
        return int64(Count.DAMAGED), at
    return _ether_type(buf, at + _COOKED_2_SIZE, end, u16(buf, at))


@kernel
def _loopback(buf: Array, at: int, end: int) -> tuple[int, int]:
    """BSD loopback: address family in the byte order of the host, or big-endian."""
    if at + _LOOPBACK_SIZE > end:
        return int64(Count.DAMAGED), at
    family = u32(buf, at)
    if family > 0xFFFF:
        family = little_u32(buf, at)
    # AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 24, 28 or 30 (the BSDs, macOS), 23 (Windows).
    if family in (2, 10, 23, 24, 28, 30):
        return int64(Layer.IP), at + _LOOPBACK_SIZE
    return int64(Count.NOT_IP), at


@kernel
def _ip(buf: Array, at: int, end: int) -> tuple[int, int]:
    """The version."""
    if at >= end:
        return int64(Count.DAMAGED), at
    version = int64(buf[at]) >> 4
    if version == 4:
        return int64(Layer.IPV4), at
    if version == 6:
        return int64(Layer.IPV6), at
    return int64(Count.NOT_IP), at


@kernel
def _transport(protocol: int, at: int) -> tuple[int, int]:
    """What an IP protocol number stands for."""
    if protocol == _TCP_PROTOCOL:
        return int64(Layer.TCP), at
    return int64(Count.NOT_TCP), at


@kernel
def _ipv4(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    if at + _IPV4_SIZE > end:
        return int64(Count.DAMAGED), at
    size = (int64(buf[at]) & 15) * 4
    total = u16(buf, at + 2)
    if total == 0:
        total = end - at  # left to the network card (segmentation offload): all that was captured
    if size < _IPV4_SIZE or total < size or at + size > end:
        return int64(Count.DAMAGED), at
    if u16(buf, at + 6) & 0x3FFF:  # more fragments, or a fragment offset
        return int64(Count.FRAGMENT), at
    header.family = 4
    header.src_high = 0
    header.src_low = u32(buf, at + 12)
    header.dst_high = 0
    header.dst_low = u32(buf, at + 16)
    header.wire_end = at + total
    return _transport(int64(buf[at + 9]), at + size)


@kernel
def _ipv6(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    if at + _IPV6_SIZE > end:
        return int64(Count.DAMAGED), at
    length = u16(buf, at + 4)
    header.family = 6
    header.src_high = i64(buf, at + 8)
    header.src_low = i64(buf, at + 16)
    header.dst_high = i64(buf, at + 24)
    header.dst_low = i64(buf, at + 32)
    header.wire_end = at + _IPV6_SIZE + length if length else end  # 0: a jumbogram, or segmentation offload
    protocol = int64(buf[at + 6])
    at += _IPV6_SIZE
    # RFC 8200, 4.1.
    while protocol in (_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION):
        if at + _EXTENSION_SIZE > end:
            return int64(Count.DAMAGED), at
        if protocol == _FRAGMENT:
            if u16(buf, at + 2) & 0xFFF9:  # a fragment offset, or more fragments
                return int64(Count.FRAGMENT), at
            size = int64(_EXTENSION_SIZE)
        elif protocol == _AUTHENTICATION:
            size = (int64(buf[at + 1]) + 2) * 4
        else:
            size = (int64(buf[at + 1]) + 1) * 8
        protocol = int64(buf[at])
        at += size
    return _transport(protocol, at)


@kernel
def _tcp(buf: Array, at: int, end: int, header: Any) -> tuple[int, int]:
    wire_end = header.wire_end
    if at + _TCP_SIZE > end or at + _TCP_SIZE > wire_end:
        return int64(Count.DAMAGED), at
    size = (int64(buf[at + 12]) >> 4) * 4
    if size < _TCP_SIZE or at + size > wire_end:
        return int64(Count.DAMAGED), at
    header.src_port = u16(buf, at)
    header.dst_port = u16(buf, at + 2)
    header.seq = u32(buf, at + 4)
    header.ack = u32(buf, at + 8)
    header.control = int64(buf[at + 13])
    at += size
    header.off = at
    header.length = wire_end - at
    header.captured = max(0, min(end, wire_end) - at)  # nothing where the snapshot ends within the TCP options
    return int64(Count.PACKETS), at


@kernel
def innermost(buf: Array, packet: Any, header: Any) -> int:
    """Reads the headers of a packet, from the outermost to that of TCP, into ``header``, a row of ``HEADER``.

    Returns ``Count.PACKETS``, or as what else the packet is to be counted: then ``header`` means nothing.
    """
    at = packet.off
    end = at + packet.captured
    link = packet.link
    layer: int = int64(Count.LINK)
    if 0 <= link < _FIRST_LAYERS.shape[0]:
        layer = _FIRST_LAYERS[link]
    while layer >= Layer.ETHERNET:
        if layer == Layer.ETHERNET:
            layer, at = _ethernet(buf, at, end)
        elif layer == Layer.IP:
            layer, at = _ip(buf, at, end)
        elif layer == Layer.IPV4:
            layer, at = _ipv4(buf, at, end, header)
        elif layer == Layer.IPV6:
            layer, at = _ipv6(buf, at, end, header)
        elif layer == Layer.TCP:
            layer, at = _tcp(buf, at, end, header)
        elif layer == Layer.COOKED:
            layer, at = _cooked(buf, at, end)
        elif layer == Layer.COOKED_2:
            layer, at = _cooked_2(buf, at, end)
        else:
            layer, at = _loopback(buf, at, end)
    return layer
