"""Packets out of capture bytes. Nothing here remembers anything.

One pass finds the packets of a window and writes a row for each (``pcap_packets``, ``pcapng_packets``). What is in a
packet is read later, by ``kwire.kernels.layers``. Nothing is copied: a row says where the bytes stand in the window.

Rules kept here:

- Every length comes from the input and is checked against the end of the window before it is used.
- All numbers are int64: numba turns a mixture of int64 and uint64 into floating point.

Formats: pcap and pcapng as in the IETF drafts (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, kernel
from kwire.kernels.layouts import NO_TIME, PACKET
from kwire.kernels.numbers import grown, int64, little_u16, little_u32, plain, u16, u32

__all__ = [
    "BINARY_UNITS",
    "DECRYPTION_SECRETS",
    "EARLIEST",
    "FINE_UNITS",
    "LATEST",
    "MAX_PACKET",
    "Count",
    "Stopped",
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
_BYTES_PER_ROW: Final = 96
"""A table of packets begins with a row for so many bytes of the capture. Few packets of an Ethernet are shorter. What
is not used costs nothing, a table that grows is copied."""

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
    """All packets. Where ``layers.innermost`` returns it, the packet is a TCP segment, and nothing else is counted."""
    LINK = 1
    """The link type is not supported."""
    NOT_IP = 2
    """ARP and the like."""
    NOT_TCP = 3
    """Protocols of IP other than TCP and UDP, which are no tunnels."""
    FRAGMENT = 4
    """Fragments of IP packets that are left out, because others are missing or they contradict each other."""
    DAMAGED = 5
    """Headers that are damaged or cut off."""
    SNAPPED = 6
    """Cut off by the snapshot length."""
    INTERFACE = 7
    """Packets of an interface that is not described."""
    TIME = 8
    """Packets with a time before ``EARLIEST`` or after ``LATEST``, which are taken for those."""
    PART = 9
    """Fragments of IP packets that wait for the others, or have been joined with them. Not reported."""
    UDP = 10
    """UDP that is no tunnel."""
    TUNNEL = 11
    """In a tunnel that is not read."""
    DEEP = 12
    """In more tunnels than are followed."""
    PROTECTED = 13
    """Encrypted below TCP: protected Wi-Fi frames, IPsec, MACsec, PPP."""
    RADIO = 14
    """Wi-Fi frames that hold a part of a packet, or several packets."""
    WRONG = 15
    """TCP segments with a wrong checksum, where those of their connection are right."""
    PATH = 16
    """TCP segments before which bytes of their connection went on another path (Multipath TCP)."""


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
def _note_packet(packet: Any, off: int, captured: int, size: int, time: int, link: int) -> None:
    """Fills a row of the table of packets."""
    packet.off = off
    packet.captured = captured
    packet.size = size
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
            return n, pos, plain(Stopped.BAD)
        if pos + header + captured > end:
            break
        if n == packets.shape[0]:
            return n, pos, plain(Stopped.FULL)
        time = seconds * _SECOND + (fraction if nano else fraction * _MICROSECOND)
        _note_packet(packets[n], pos + header, captured, word(buf, pos + 12, little), time, link)
        n += 1
        pos += header + captured
    return n, pos, plain(Stopped.MORE)


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
    """The packet in a pcapng block: (where it begins, captured length, interface). ``_NO_PACKET`` for other blocks,
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
    counts: Array,
    packets: Array,
    n: int,
) -> tuple[int, int, int]:
    """``pcapng_packets`` until the table is full: (rows, position reached, MORE, SECTION, BAD or FULL)."""
    while pos + _LEAST_BLOCK <= end:
        kind = word(buf, pos, little)
        if kind in (_SECTION_HEADER, _INTERFACE_DESCRIPTION, DECRYPTION_SECRETS):
            return n, pos, plain(Stopped.SECTION)
        total = word(buf, pos + 4, little)
        if total < _LEAST_BLOCK or total & 3 or total > MAX_PACKET:
            return n, pos, plain(Stopped.BAD)
        if pos + total > end:
            break
        if n == packets.shape[0]:
            return n, pos, plain(Stopped.FULL)
        off, captured, number = _packet_block(buf, pos, kind, total, little, interfaces)
        if off == _BAD_BLOCK:
            return n, pos, plain(Stopped.BAD)
        if off >= 0 and number >= interfaces.shape[0]:
            counts[plain(Count.INTERFACE)] += 1
        elif off >= 0:
            interface = interfaces[number]
            time = int64(NO_TIME)
            if kind != _SIMPLE_PACKET:
                time = nanoseconds(
                    word(buf, pos + 12, little), word(buf, pos + 16, little), interface.resolution, interface.offset
                )
                if time <= EARLIEST or time >= LATEST:
                    counts[plain(Count.TIME)] += 1
            size = word(buf, pos + (8 if kind == _SIMPLE_PACKET else 24), little)
            _note_packet(packets[n], off, captured, size, time, interface.link)
            n += 1
        pos += total
    return n, pos, plain(Stopped.MORE)


def pcapng_packets(
    buf: Array, start: int, end: int, little: bool, interfaces: Array, counts: Array, engine: Engine
) -> tuple[Array, int, int]:
    """The packets of a pcapng window up to the next section header or interface description.

    Returns (table, position reached, MORE, SECTION or BAD). A block is::

        type | total length | body, padded to 4 bytes | total length
        u32  | u32          |                         | u32

    Packets stand in enhanced (6), simple (3: no time, ``NO_TIME``) and obsolete (2) packet blocks.
    """
    packets = _room(start, end)
    fill = engine(_fill_pcapng)
    n, pos, stopped = fill(buf, start, end, little, interfaces, counts, packets, 0)
    while stopped == Stopped.FULL:
        packets = grown(packets)
        n, pos, stopped = fill(buf, pos, end, little, interfaces, counts, packets, n)
    return packets[:n], pos, stopped
