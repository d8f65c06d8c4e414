"""Packets out of a window of capture bytes, and TCP segments out of packets: the first two kernels of the pipeline.

Strategy: one pass finds the packets of a window and writes a row of numbers for each (``pcap_packets``,
``pcapng_packets``); a second pass reads link, IP and TCP headers and writes a row for each segment that matters
(``tcp_segments``), looking the connection up in an open-addressing table that lives as long as the capture. Nothing is
copied: a row says where the bytes stand in the window.

Rules kept here:

- Every length comes from the input and is checked against the end of the packet before it is used. A packet that is
  not understood (another protocol, a header that does not fit, a fragment) is counted in ``counts`` and left out.
- A segment's length is what the IP header says. What the capture cut off (snaplen) becomes a second row with the flag
  ``LOST``: a hole that nothing but a retransmission will fill, so that later stages need not wait for it.
- Sequence numbers become 64-bit positions as soon as they are read, each relative to the last one of its stream, so
  that wrap-around (RFC 9293, section 3.4) exists in this file only. Positions start above 2**33, which leaves room
  for segments that arrive before the one that was seen first.
- All numbers are int64: numba turns a mixture of int64 and uint64 into floating point.

Formats: pcap and pcapng as in the IETF drafts (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng), link types as in the
registry of tcpdump.org; IPv4 RFC 791, IPv6 RFC 8200, TCP RFC 9293.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.jit import be16, be32, int64, kernel, le16, le32
from kwire.protocol.state import (
    C_A_HIGH,
    C_A_LOW,
    C_A_PORT,
    C_B_HIGH,
    C_B_LOW,
    C_B_PORT,
    C_CLIENT,
    C_CLOSED,
    C_FAMILY,
    C_FIRST_ID,
    C_LAST_CLIENT,
    C_NUMBER,
    C_PENDING_HEAD,
    C_PENDING_TAIL,
    C_ROLE,
    ROLE_A_REQUESTS,
    ROLE_B_REQUESTS,
    ROLE_OTHER,
    S_ACKED,
    S_END,
    S_NEXT,
    S_REFERENCE,
    S_START,
    S_SYNC,
    SEG_LEN,
    SEG_OFF,
    SEG_POS,
    SEG_STREAM,
    SEG_TIME,
)

__all__ = [
    "BAD",
    "COUNT_NAMES",
    "MORE",
    "SECTION",
    "pcap_packets",
    "pcapng_packets",
    "tcp_segments",
]

# Columns of the packet table.
PKT_OFF: Final = 0
PKT_CAPTURED: Final = 1
PKT_TIME: Final = 2
"""Nanoseconds since 1970."""
PKT_LINK: Final = 3
PACKET_COLUMNS: Final = 4

FIRST_POSITION: Final = 1 << 33

FARTHEST_AHEAD: Final = 1 << 30
"""Bytes of one stream that a capture may miss in one go; behind more, it is another connection on the same ports."""
FARTHEST_BEHIND: Final = 1 << 26
"""Bytes that a retransmission may be behind: no receive window is larger than some tens of megabytes."""

# Why a boundary kernel stopped.
MORE: Final = 0
"""The window ends in the middle of a packet or block."""
SECTION: Final = 1
"""A pcapng section header or interface description stands here: the caller reads it."""
BAD: Final = 2
"""No packet or block can stand here."""

COUNT_NAMES: Final = (
    "packets",
    "link type not supported",
    "not IP",
    "not TCP",
    "fragments of IP packets",
    "damaged or cut-off headers",
    "cut off by the snapshot length",
    "packets of an unknown interface",
)
N_PACKETS: Final = 0
N_LINK: Final = 1
N_NOT_IP: Final = 2
N_NOT_TCP: Final = 3
N_FRAGMENT: Final = 4
N_DAMAGED: Final = 5
N_SNAPPED: Final = 6
N_INTERFACE: Final = 7

MAX_PACKET: Final = 64 << 20
"""Largest packet or block that is believed, in bytes: libpcap itself stops at 256 KiB, some NICs coalesce more."""

# Columns of the interface table (pcap files have one interface).
I_LINK: Final = 0
I_SNAPLEN: Final = 1
I_RESOLUTION: Final = 2
"""0-9: units of 10**-n s; above: 64 + n for units of 2**-n s, 32 + n for 10**-n s with n > 9."""
I_OFFSET: Final = 3
"""Seconds to add to each timestamp."""
INTERFACE_COLUMNS: Final = 4

BINARY_UNITS: Final = 64
FINE_UNITS: Final = 32

Array = Any
"""A numpy array: numba, not mypy, checks what is in it."""


@kernel
def word(buf: Array, at: int, little: bool) -> int:
    """An unsigned 32-bit number in the byte order of the file."""
    return le32(buf, at) if little else be32(buf, at)


@kernel
def grown(table: Array) -> Array:
    """A copy of a table with twice the rows."""
    bigger = np.empty((max(16, table.shape[0] * 2), table.shape[1]), table.dtype)
    bigger[: table.shape[0]] = table
    return bigger


@kernel
def pcap_packets(
    buf: Array, start: int, end: int, little: bool, nano: bool, header: int, limit: int, link: int
) -> tuple[Array, int, int, int]:
    """The packets of a pcap window: (table, rows, position reached, MORE or BAD).

    A record is 16 bytes and the packet (24 and the packet in a variant of 1990s Linux, ``header``)::

        seconds | microseconds or nanoseconds | captured length | length on the wire
        u32     | u32                         | u32             | u32
    """
    packets = np.empty((max(16, (end - start) // 256), PACKET_COLUMNS), np.int64)
    n = 0
    pos = start
    while pos + header <= end:
        seconds = word(buf, pos, little)
        fraction = word(buf, pos + 4, little)
        captured = word(buf, pos + 8, little)
        if captured > limit:
            return packets, n, pos, BAD
        if pos + header + captured > end:
            break
        if n == packets.shape[0]:
            packets = grown(packets)
        packets[n, PKT_OFF] = pos + header
        packets[n, PKT_CAPTURED] = captured
        packets[n, PKT_TIME] = seconds * 1_000_000_000 + (fraction if nano else fraction * 1000)
        packets[n, PKT_LINK] = link
        n += 1
        pos += header + captured
    return packets, n, pos, MORE


@kernel
def nanoseconds(high: int, low: int, resolution: int, offset: int) -> int:
    """A pcapng timestamp (64 bits, unsigned) in nanoseconds. Values that do not fit wrap around, they do not fail."""
    if resolution >= BINARY_UNITS:
        bits = resolution - BINARY_UNITS
        units = (high << 32) | low
        # The shift of a signed number repeats its sign, which is not part of this one.
        whole = (units >> bits) & ((1 << (63 - bits)) * 2 - 1) if bits > 0 else units
        rest = units & ((1 << bits) - 1)
        # 2**33 * 10**9 is the largest product that fits.
        if bits > 33:
            rest >>= bits - 33
            bits = 33
        value = whole * 1_000_000_000 + ((rest * 1_000_000_000) >> bits)
    elif resolution >= FINE_UNITS:
        divisor = 1
        for _ in range(min(9, resolution - FINE_UNITS - 9)):
            divisor *= 10
        # In two halves, since the number may use all 64 bits.
        value = ((high // divisor) << 32) + (((high % divisor) << 32) | low) // divisor
        for _ in range(resolution - FINE_UNITS - 18):
            value //= 10
    else:
        value = (high << 32) | low
        for _ in range(9 - resolution):
            value *= 10
    return value + offset * 1_000_000_000


@kernel
def pcapng_packets(
    buf: Array, start: int, end: int, little: bool, interfaces: Array, last_time: int, counts: Array
) -> tuple[Array, int, int, int, int]:
    """The packets of a pcapng window up to the next section header or interface description.

    Returns (table, rows, position reached, MORE, SECTION or BAD, time of the last packet). A block is::

        type | total length | body, padded to 4 bytes | total length
        u32  | u32          |                         | u32

    Packets stand in enhanced (6), simple (3: no time, the one before it is used) and obsolete (2) packet blocks.
    """
    packets = np.empty((max(16, (end - start) // 256), PACKET_COLUMNS), np.int64)
    n = 0
    pos = start
    while pos + 12 <= end:
        kind = word(buf, pos, little)
        if kind == 0x0A0D0D0A or kind == 1:
            return packets, n, pos, SECTION, last_time
        total = word(buf, pos + 4, little)
        if total < 12 or total & 3 or total > MAX_PACKET:
            return packets, n, pos, BAD, last_time
        if pos + total > end:
            break
        off = -1
        captured = int64(0)
        interface = int64(0)
        time = last_time
        if kind == 6 or kind == 2:
            if total < 32:
                return packets, n, pos, BAD, last_time
            if kind == 6:
                interface = word(buf, pos + 8, little)
            else:
                interface = le16(buf, pos + 8) if little else be16(buf, pos + 8)
            captured = word(buf, pos + 20, little)
            if captured > total - 32:
                return packets, n, pos, BAD, last_time
            off = pos + 28
        elif kind == 3:
            if total < 16:
                return packets, n, pos, BAD, last_time
            captured = min(word(buf, pos + 8, little), total - 16)
            if interfaces.shape[0] > 0 and interfaces[0, I_SNAPLEN] > 0:
                captured = min(captured, interfaces[0, I_SNAPLEN])
            off = pos + 12
        if off >= 0:
            if interface >= interfaces.shape[0]:
                counts[N_INTERFACE] += 1
            else:
                if kind != 3:
                    time = nanoseconds(
                        word(buf, pos + 12, little),
                        word(buf, pos + 16, little),
                        interfaces[interface, I_RESOLUTION],
                        interfaces[interface, I_OFFSET],
                    )
                    last_time = time
                if n == packets.shape[0]:
                    packets = grown(packets)
                packets[n, PKT_OFF] = off
                packets[n, PKT_CAPTURED] = captured
                packets[n, PKT_TIME] = time
                packets[n, PKT_LINK] = interfaces[interface, I_LINK]
                n += 1
        pos += total
    return packets, n, pos, MORE, last_time


# Kinds of what is found in a packet.
_IP: Final = 0
_NOT_IP: Final = 1
_UNKNOWN_LINK: Final = 2
_SHORT: Final = 3


@kernel
def _network_layer(buf: Array, at: int, end: int, link: int) -> tuple[int, int]:
    """Where the IP header of a packet begins: (_IP or why not, offset).

    The IP version is taken from the IP header itself; what the link layer says only has to be one of IPv4 and IPv6.
    """
    if link == 1:  # Ethernet
        if at + 14 > end:
            return _SHORT, at
        kind = be16(buf, at + 12)
        at += 14
        # VLAN tags: 802.1Q, 802.1ad (QinQ) and the number that was used for it before.
        while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100:
            if at + 4 > end:
                return _SHORT, at
            kind = be16(buf, at + 2)
            at += 4
    elif link == 113:  # Linux cooked v1: type, ARPHRD, length, address, protocol
        if at + 16 > end:
            return _SHORT, at
        kind = be16(buf, at + 14)
        at += 16
        while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100:
            if at + 4 > end:
                return _SHORT, at
            kind = be16(buf, at + 2)
            at += 4
    elif link == 276:  # Linux cooked v2: protocol first
        if at + 20 > end:
            return _SHORT, at
        kind = be16(buf, at)
        at += 20
        while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100:
            if at + 4 > end:
                return _SHORT, at
            kind = be16(buf, at + 2)
            at += 4
    elif link == 0 or link == 108:  # BSD loopback: address family in the byte order of the host, or big-endian
        if at + 4 > end:
            return _SHORT, at
        family = be32(buf, at)
        if family > 0xFFFF:
            family = le32(buf, at)
        at += 4
        # AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 24, 28 or 30 (the BSDs, macOS), 23 (Windows).
        if family == 2:
            kind = 0x0800
        elif family == 10 or family == 23 or family == 24 or family == 28 or family == 30:
            kind = 0x86DD
        else:
            return _NOT_IP, at
    elif link == 101 or link == 12 or link == 14 or link == 228 or link == 229:  # raw IP
        kind = 0x0800
    else:
        return _UNKNOWN_LINK, at
    if kind != 0x0800 and kind != 0x86DD:
        return _NOT_IP, at
    return _IP, at


@kernel
def _mixed(value: int) -> int:
    value ^= value >> 29
    value *= 0x3C79AC492BA7B653
    value ^= value >> 32
    return value


@kernel
def _hash(a_high: int, a_low: int, a_port: int, b_high: int, b_low: int, b_port: int) -> int:
    """The same number for both directions of a connection."""
    a = _mixed(_mixed(_mixed(a_high) + a_low) + a_port)
    b = _mixed(_mixed(_mixed(b_high) + b_low) + b_port)
    return _mixed(a + b)


@kernel
def _rehashed(conns: Array, used: int, table: Array) -> Array:
    """The lookup table with twice the places. A later connection on the same ports takes the place of an earlier."""
    bigger = np.full(table.shape[0] * 2, -1, np.int64)
    mask = bigger.shape[0] - 1
    for old in range(table.shape[0]):
        slot = table[old]
        if slot < 0:
            continue
        row = conns[slot]
        place = _hash(row[C_A_HIGH], row[C_A_LOW], row[C_A_PORT], row[C_B_HIGH], row[C_B_LOW], row[C_B_PORT]) & mask
        while bigger[place] >= 0:
            place = (place + 1) & mask
        bigger[place] = slot
    return bigger


@kernel
def tcp_segments(
    buf: Array,
    packets: Array,
    n_packets: int,
    ports: Array,
    conns: Array,
    streams: Array,
    n_conns: int,
    table: Array,
    counts: Array,
    segs: Array,
    n_segs: int,
) -> tuple[Array, int, Array, Array, int, Array]:
    """The TCP segments of the packets, appended to ``segs``; connections are looked up or added.

    ``ports`` are the broker ports asked for (empty: all connections are of interest). Returns (segs, n_segs, conns,
    streams, n_conns, table), the tables as they are after growing.
    """
    for k in range(n_packets):
        counts[N_PACKETS] += 1
        at = packets[k, PKT_OFF]
        end = at + packets[k, PKT_CAPTURED]
        time = packets[k, PKT_TIME]
        found, at = _network_layer(buf, at, end, packets[k, PKT_LINK])
        if found != _IP:
            if found == _UNKNOWN_LINK:
                counts[N_LINK] += 1
            elif found == _SHORT:
                counts[N_DAMAGED] += 1
            else:
                counts[N_NOT_IP] += 1
            continue
        if at >= end:
            counts[N_DAMAGED] += 1
            continue
        family = int64(buf[at]) >> 4
        if family == 4:
            if at + 20 > end:
                counts[N_DAMAGED] += 1
                continue
            header = (int64(buf[at]) & 15) * 4
            total = be16(buf, at + 2)
            if total == 0:
                total = end - at  # left to the network card (segmentation offload): all that was captured
            if header < 20 or total < header or at + header > end:
                counts[N_DAMAGED] += 1
                continue
            if be16(buf, at + 6) & 0x3FFF:  # more fragments, or a fragment offset
                counts[N_FRAGMENT] += 1
                continue
            protocol = int64(buf[at + 9])
            src_high = int64(0)
            src_low = be32(buf, at + 12)
            dst_high = int64(0)
            dst_low = be32(buf, at + 16)
            wire_end = at + total
            at += header
        elif family == 6:
            if at + 40 > end:
                counts[N_DAMAGED] += 1
                continue
            length = be16(buf, at + 4)
            protocol = int64(buf[at + 6])
            src_high = (be32(buf, at + 8) << 32) | be32(buf, at + 12)
            src_low = (be32(buf, at + 16) << 32) | be32(buf, at + 20)
            dst_high = (be32(buf, at + 24) << 32) | be32(buf, at + 28)
            dst_low = (be32(buf, at + 32) << 32) | be32(buf, at + 36)
            wire_end = at + 40 + length if length else end  # 0: a jumbogram, or segmentation offload
            at += 40
            broken = 0
            # Hop-by-hop (0), routing (43), fragment (44), authentication (51), destination options (60): RFC 8200, 4.1.
            while protocol == 0 or protocol == 43 or protocol == 44 or protocol == 51 or protocol == 60:
                if at + 8 > end:
                    broken = 1
                    break
                if protocol == 44:
                    if be16(buf, at + 2) & 0xFFF9:
                        broken = 2
                        break
                    size = int64(8)
                elif protocol == 51:
                    size = (int64(buf[at + 1]) + 2) * 4
                else:
                    size = (int64(buf[at + 1]) + 1) * 8
                protocol = int64(buf[at])
                at += size
            if broken:
                counts[N_FRAGMENT if broken == 2 else N_DAMAGED] += 1
                continue
        else:
            counts[N_NOT_IP] += 1
            continue
        if protocol != 6:
            counts[N_NOT_TCP] += 1
            continue
        if at + 20 > end or at + 20 > wire_end:
            counts[N_DAMAGED] += 1
            continue
        src_port = be16(buf, at)
        dst_port = be16(buf, at + 2)
        seq = be32(buf, at + 4)
        ack = be32(buf, at + 8)
        header = (int64(buf[at + 12]) >> 4) * 4
        flags = int64(buf[at + 13])
        fin = flags & 1
        syn = flags & 2
        rst = flags & 4
        acked = flags & 16
        if header < 20 or at + header > wire_end:
            counts[N_DAMAGED] += 1
            continue
        at += header
        length = wire_end - at
        captured = min(end, wire_end) - at
        if captured < 0:  # the snapshot ends within the TCP options
            captured = 0

        # The connection, and which of its ends sent this.
        mask = table.shape[0] - 1
        place = _hash(src_high, src_low, src_port, dst_high, dst_low, dst_port) & mask
        slot = int64(-1)
        side = 0
        while table[place] >= 0:
            slot = table[place]
            if (
                conns[slot, C_A_PORT] == src_port
                and conns[slot, C_B_PORT] == dst_port
                and conns[slot, C_A_LOW] == src_low
                and conns[slot, C_B_LOW] == dst_low
                and conns[slot, C_A_HIGH] == src_high
                and conns[slot, C_B_HIGH] == dst_high
                and conns[slot, C_FAMILY] == family
            ):
                side = 0
                break
            if (
                conns[slot, C_A_PORT] == dst_port
                and conns[slot, C_B_PORT] == src_port
                and conns[slot, C_A_LOW] == dst_low
                and conns[slot, C_B_LOW] == src_low
                and conns[slot, C_A_HIGH] == dst_high
                and conns[slot, C_B_HIGH] == src_high
                and conns[slot, C_FAMILY] == family
            ):
                side = 1
                break
            slot = int64(-1)
            place = (place + 1) & mask

        fresh = slot < 0
        if not fresh and not syn and captured > 0:
            # No SYN was captured, but what comes is too far from what was there to belong to the same connection.
            reference = streams[slot * 2 + side, S_REFERENCE]
            if reference >= 0:
                step = (seq - reference) & 0xFFFFFFFF
                fresh = FARTHEST_AHEAD < step < 0x100000000 - FARTHEST_BEHIND
                if fresh:
                    conns[slot, C_CLOSED] = 1
        if not fresh and syn:
            # The same ports again, or a repeated SYN? A repeated one has the sequence number of the first.
            stream = slot * 2 + side
            reference = streams[stream, S_REFERENCE]
            start = streams[stream, S_START]
            if start >= 0:
                fresh = ((start - 1) & 0xFFFFFFFF) != seq
            elif reference >= 0:
                # The SYN of this stream was not seen, but data was: a SYN that arrived late stands just before it.
                distance = (seq - reference) & 0xFFFFFFFF
                fresh = not distance > 0xFF000000
            elif acked == 0:
                # Only the other direction was seen so far. If that was its SYN, this is the answer of an old
                # capture order; if it was data, a new connection begins.
                other = slot * 2 + 1 - side
                fresh = streams[other, S_START] < 0 and streams[other, S_REFERENCE] >= 0
            if fresh:
                conns[slot, C_CLOSED] = 1
        if fresh:
            if rst:
                continue
            if n_conns == conns.shape[0]:
                conns = grown(conns)
                streams = grown(streams)
            slot = int64(n_conns)
            n_conns += 1
            side = 0
            conns[slot] = 0
            conns[slot, C_NUMBER] = slot
            conns[slot, C_FAMILY] = family
            conns[slot, C_A_HIGH] = src_high
            conns[slot, C_A_LOW] = src_low
            conns[slot, C_B_HIGH] = dst_high
            conns[slot, C_B_LOW] = dst_low
            conns[slot, C_A_PORT] = src_port
            conns[slot, C_B_PORT] = dst_port
            conns[slot, C_CLIENT] = -1
            conns[slot, C_PENDING_HEAD] = -1
            conns[slot, C_PENDING_TAIL] = -1
            conns[slot, C_FIRST_ID] = -1
            conns[slot, C_LAST_CLIENT] = -1
            streams[slot * 2] = -1
            streams[slot * 2 + 1] = -1
            if ports.shape[0] > 0:
                from_broker = False
                to_broker = False
                for p in range(ports.shape[0]):
                    from_broker = from_broker or ports[p] == src_port
                    to_broker = to_broker or ports[p] == dst_port
                if not from_broker and not to_broker:
                    conns[slot, C_ROLE] = ROLE_OTHER
                elif from_broker != to_broker:
                    conns[slot, C_ROLE] = ROLE_A_REQUESTS if to_broker else ROLE_B_REQUESTS
            table[place] = slot
            if n_conns * 2 > table.shape[0]:
                table = _rehashed(conns, n_conns, table)
        if conns[slot, C_ROLE] == ROLE_OTHER:
            continue
        if syn and conns[slot, C_CLIENT] < 0:
            conns[slot, C_CLIENT] = 1 - side if acked else side

        # The position of the first byte in its stream.
        stream = slot * 2 + side
        reference = streams[stream, S_REFERENCE]
        if reference < 0:
            pos = FIRST_POSITION + seq
        else:
            step = (seq - reference) & 0xFFFFFFFF
            if step >= 0x80000000:
                step -= 0x100000000
            pos = reference + step
        if syn:
            pos += 1
            if streams[stream, S_START] < 0:
                streams[stream, S_START] = pos
                if streams[stream, S_NEXT] < 0:
                    streams[stream, S_NEXT] = pos
                    streams[stream, S_SYNC] = 1
        if pos + length > reference and pos + length >= 0:
            streams[stream, S_REFERENCE] = pos + length
        if acked:
            # What this packet acknowledges of the other direction: the capture cannot fill a hole before it any more.
            other = slot * 2 + 1 - side
            far = streams[other, S_REFERENCE]
            if far >= 0:
                step = (ack - far) & 0xFFFFFFFF
                if step >= 0x80000000:
                    step -= 0x100000000
                if far + step > streams[other, S_ACKED]:
                    streams[other, S_ACKED] = far + step
        if rst:
            conns[slot, C_CLOSED] = 1
            continue  # what an RST carries is a text about the reason, not data of the stream
        if fin:
            streams[stream, S_END] = pos + length
        if length <= 0:
            continue
        if n_segs + 2 > segs.shape[0]:
            segs = grown(segs)
        if captured > 0:
            segs[n_segs, SEG_STREAM] = stream
            segs[n_segs, SEG_POS] = pos
            segs[n_segs, SEG_LEN] = captured
            segs[n_segs, SEG_OFF] = at
            segs[n_segs, SEG_TIME] = time
            n_segs += 1
        if captured < length:
            counts[N_SNAPPED] += 1
            segs[n_segs, SEG_STREAM] = stream
            segs[n_segs, SEG_POS] = pos + captured
            segs[n_segs, SEG_LEN] = length - captured
            segs[n_segs, SEG_OFF] = -1
            segs[n_segs, SEG_TIME] = time
            n_segs += 1
    return segs, n_segs, conns, streams, n_conns, table
