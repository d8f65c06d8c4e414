"""TCP segments out of packets: the connection of each, and its position in the stream.

Strategy: ``tcp_segments`` reads the headers of each packet (``layers.innermost``). It looks up the connection in an
open-addressing table that lives as long as the capture. It writes a row for each segment that matters. Others choose
the addresses and ports, so they are hashed with a key (``kwire.kernels.hashing``). Nothing is copied: a row says where
the bytes stand in the window.

Rules kept here:

- What the capture cut off of a segment (snaplen) becomes a second row without bytes. This row is a hole that only a
  retransmission can fill, so later stages need not wait for it.
- Sequence numbers become 64-bit positions as soon as they are read. Each is relative to the last one of its stream. So
  wrap-around (RFC 9293, section 3.4) exists in this file only. Positions start above 2**33, which leaves room for
  segments that arrive before the one that was seen first.
- A segment whose checksum is wrong is a hint that there will be another copy. ``streams`` waits for that. So its row
  says it, where checksums mean something. Checksums do not count where network cards compute them. Then they are 0, or
  those of the addresses alone, as far as was captured. They do not count either where none of a connection, or few of a
  direction, are right.
- While a stream has a hole, its acknowledgements are rows of the table of segments. When a hole is given up depends on
  which packet said what. It does not depend on what had been said at the end of a window.
- Connections are found and numbered alike, whatever a later stage decides about them, and when. So their numbers do not
  depend on where a window ends. Streams of connections that are not Kafka are followed, only their segments are
  dropped.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.checksums import sum_of
from kwire.kernels.engine import Engine, inlined, kernel
from kwire.kernels.hashing import fresh_key, hash_three, hash_two
from kwire.kernels.layers import HEADER, Flag, innermost
from kwire.kernels.layouts import ABSENT, ACKNOWLEDGED, AT_THE_END, CONNECTION, FINDER, NO_TIME, STREAM, Role
from kwire.kernels.multipath import JOINS, NONE, is_joining, option_of, said_by
from kwire.kernels.numbers import grown, int64, plain, u16
from kwire.kernels.packets import Count

__all__ = ["Fragment", "Known", "clock_of", "note_closed", "nothing_known", "restored", "tcp_segments"]

Array = Any

FIRST_POSITION: Final = 1 << 33

FARTHEST_AHEAD: Final = 1 << 30
"""Bytes of one stream that a capture may miss in one go. After a larger jump, it is another connection on the same
ports."""
FARTHEST_BEHIND: Final = 1 << 26
"""Bytes that a retransmission may be behind: no receive window is larger than some tens of megabytes."""
WINDOW_BEHIND: Final = 1 << 16
"""Bytes that an RST may be behind its stream."""
MOST_WINDOW: Final = 1 << 24
"""Bytes that an RST may be ahead of its stream, and that both directions may jump. If both jump further, it is another
connection."""
LATE: Final = 10_000_000_000
"""Nanoseconds of capture time by which bytes may be captured after an RST that was sent after them. This is several
retransmission timeouts. Another connection on the same ports that begins in that time has a SYN, or other positions."""
LATEST_COPY: Final = 120_000_000_000
"""Nanoseconds of capture time by which a copy of a packet may be captured after the latest one of its direction. This
is the longest life of a segment (RFC 9293, section 3.4.2)."""
MOST_EARLIER: Final = 4
"""Connections on the same ports, one before the other, that a late copy may belong to."""
LATEST_SYN: Final = 1 << 24
"""Bytes that a SYN may be behind the data of its stream, where it was captured late."""

ENOUGH_SUMS: Final = 2
"""Right checksums of a connection, and none of their direction wrong before, from which on a wrong one says something.
Of those that mean nothing one in 65,536 is right by chance, so one would not do."""
MOST_SUMS: Final = 16
WRONG_SUM: Final = 2
"""What a wrong checksum takes from ``Stream.sums``, to which a right one adds 1. Where more than a third are wrong,
that says nothing about the bytes."""

BEGINS: Final = int64(2)
"""In ``Stream.holed``: what is acknowledged counts until all of it is there. Nobody knows where it begins."""

MOST_ROWS: Final = 4
"""Rows of the table of segments that a packet may need."""

_SEQUENCES: Final = 1 << 32
"""How many sequence numbers there are."""
_SEQUENCE: Final = _SEQUENCES - 1
"""The bits of a sequence number."""

_TCP_SIZE: Final = 20
"""Bytes of a TCP header without options."""
_IPV4: Final = 4
_PROTOCOL: Final = 6
_WRAPS: Final = 0xFFFF
"""Where ones' complement addition wraps around."""
_HOLES: Final = 4
"""How many holes of a stream are remembered, in fields of ``Stream``."""

_FIRST_CONNECTIONS: Final = 64
_FIRST_PLACES: Final = 1024


class Known(NamedTuple):
    """The connections of a capture so far."""

    connections: Array
    """Table of CONNECTION, with room for more."""
    streams: Array
    """Table of STREAM, two rows for each."""
    lookup: Array
    """Slots of connections by the hash of their addresses and ports, -1 for none. Its size is a power of 2."""
    finder: Array
    """One row of FINDER."""
    n_connections: int


class Fragment(NamedTuple):
    """A fragment of an IP packet. It says where the header begins in the window, how many bytes the capture has from
    there, and its tunnel (``layers.Header``)."""

    off: int
    captured: int
    tunnel: int


def _finder() -> Array:
    made = np.zeros(1, FINDER)
    made["key_a"], made["key_b"] = fresh_key()
    made["latest"] = -1
    return made


def nothing_known() -> Known:
    """What is known before the first packet."""
    return Known(
        np.zeros(_FIRST_CONNECTIONS, CONNECTION),
        np.zeros(2 * _FIRST_CONNECTIONS, STREAM),
        np.full(_FIRST_PLACES, -1, np.int64),
        _finder(),
        0,
    )


def restored(connections: Array, streams: Array, count: int, engine: Engine) -> Known:
    """What is known when the first ``count`` rows of ``connections``, in the order of their appearance, are."""
    places = _FIRST_PLACES
    while places < 2 * (count + 1):
        places *= 2
    lookup, finder = np.full(places, -1, np.int64), _finder()
    engine(fill_lookup)(connections, count, lookup, finder[0])
    return Known(connections, streams, lookup, finder, count)


# --- which connection -------------------------------------------------------------------------------------------------


@kernel
def _hash(finder: Any, family: int, a_high: int, a_low: int, a_port: int, b_high: int, b_low: int, b_port: int) -> int:
    """The same number for both directions of a connection."""
    if family == _IPV4:
        one = a_low << 16 | a_port
        other = b_low << 16 | b_port
    else:
        one = hash_three(finder.key_a, finder.key_b, a_high, a_low, a_port)
        other = hash_three(finder.key_a, finder.key_b, b_high, b_low, b_port)
    return hash_two(finder.key_a, finder.key_b, min(one, other), max(one, other))


@kernel
def fill_lookup(connections: Array, count: int, lookup: Array, finder: Any) -> None:
    """Enters the first ``count`` connections into an empty lookup table, which has room.

    A later connection on the same ports takes the place of an earlier, and has it as the one before.
    """
    mask = lookup.shape[0] - 1
    for slot in range(count):
        conn = connections[slot]
        hashed = _hash(finder, conn.family, conn.a_high, conn.a_low, conn.a_port, conn.b_high, conn.b_low, conn.b_port)
        place = hashed & mask
        while lookup[place] >= 0 and not _same_ends(conn, connections[lookup[place]]):
            place = (place + 1) & mask
        conn.before = lookup[place]
        lookup[place] = slot


@kernel
def _same_ends(one: Any, other: Any) -> bool:
    """Whether two connections are between the same ports of the same hosts, whichever end is A."""
    alike: bool = (
        one.a_port == other.a_port
        and one.b_port == other.b_port
        and one.a_low == other.a_low
        and one.b_low == other.b_low
        and one.a_high == other.a_high
        and one.b_high == other.b_high
    )
    crossed: bool = (
        one.a_port == other.b_port
        and one.b_port == other.a_port
        and one.a_low == other.b_low
        and one.b_low == other.a_low
        and one.a_high == other.b_high
        and one.b_high == other.a_high
    )
    same: bool = (alike or crossed) and one.family == other.family
    return same


@inlined
def _side(header: Any, conn: Any) -> int:
    """Which end of a connection sent a packet, -1 if it belongs to another."""
    if conn.family != header.family:
        return int64(-1)
    if (
        conn.a_port == header.src_port
        and conn.b_port == header.dst_port
        and conn.a_low == header.src_low
        and conn.b_low == header.dst_low
        and conn.a_high == header.src_high
        and conn.b_high == header.dst_high
    ):
        return int64(0)
    if (
        conn.a_port == header.dst_port
        and conn.b_port == header.src_port
        and conn.a_low == header.dst_low
        and conn.b_low == header.src_low
        and conn.a_high == header.dst_high
        and conn.b_high == header.src_high
    ):
        return int64(1)
    return int64(-1)


@inlined
def _look_up(header: Any, connections: Array, lookup: Array, finder: Any) -> tuple[int, int, int]:
    """The connection of a packet: (slot, which end sent it, place in the table).

    The slot is -1 where there is none, the place then the one where it belongs.
    """
    hashed = _hash(
        finder, header.family, header.src_high, header.src_low, header.src_port, header.dst_high, header.dst_low,
        header.dst_port,
    )  # fmt: skip
    mask = lookup.shape[0] - 1
    place = hashed & mask
    while lookup[place] >= 0:
        side = _side(header, connections[lookup[place]])
        if side >= 0:
            return lookup[place], side, place
        place = (place + 1) & mask
    return int64(-1), int64(0), place


@inlined
def _is_over(conn: Any, stream: Any, other: Any) -> bool:
    """Whether a connection was closed by both ends, or reset."""
    over: bool = conn.closed == 1 or (stream.end >= 0 and other.end >= 0)
    return over


@inlined
def _is_elsewhere(header: Any, stream: Any, other: Any) -> bool:
    """Whether a packet stands where none of its connection does, by its sequence number and what it acknowledges.

    A stream has nothing after its FIN. A connection without a FIN may lack much in the capture, but then its other
    direction hardly went on. A connection that jumps in both directions is another one, whose SYN was not captured.
    """
    away = int64(0)
    acked = int64(0)
    here: int = stream.reference if stream.reference >= 0 else stream.acked
    if here >= 0:
        away = _nearest(here, header.seq) - here
    # What a path of Multipath TCP acknowledges is not counted as positions are.
    there: int = other.reference if other.reference >= 0 else other.acked
    if there >= 0 and other.shift == 0 and header.control & Flag.ACK:
        acked = _nearest(there, header.ack) - there
    if stream.end >= 0 and (away + header.length > 1 or _is_in_front(stream, away)):
        return True
    if other.end >= 0 and (acked > 1 or _is_in_front(other, acked)):
        return True
    if not (-FARTHEST_BEHIND <= away <= FARTHEST_AHEAD and -FARTHEST_BEHIND <= acked <= FARTHEST_AHEAD):
        return True
    return abs(away) > MOST_WINDOW and abs(acked) > MOST_WINDOW


@inlined
def _is_in_front(stream: Any, away: int) -> bool:
    """Whether what is ``away`` from the last position of a stream stands before its first byte."""
    front: bool = stream.start >= 0 and stream.reference + away < stream.start - 1
    return front


@inlined
def _latest(stream: Any, other: Any) -> int:
    """The time of the latest packet of both directions, NO_TIME where none has one."""
    if stream.packets == 0:
        return int64(other.last_time)
    if other.packets == 0:
        return int64(stream.last_time)
    return max(int64(stream.last_time), int64(other.last_time))


@inlined
def _may_be_copied(stream: Any, now: int, wait: int) -> bool:
    """Whether the clock does not say that the latest packet of a direction is longer ago than ``wait``."""
    return bool(stream.last_time == NO_TIME or now <= stream.last_time + wait)


@inlined
def _begins_another(header: Any, conn: Any, stream: Any, other: Any, time: int, now: int) -> bool:
    """Whether a packet on the ports of a known connection belongs to a new one. The ports are the same again.

    ``stream`` is the direction of the packet, ``other`` the opposite one. ``time`` is that of the packet, ``now`` what
    the clock shows.
    """
    control = header.control
    if conn.closed == 1 and now > conn.closed_clock and header.length > 0 and not control & Flag.RST:
        # What goes on long after it was reset cannot belong to it.
        return True
    if not control & Flag.SYN:
        return not control & Flag.RST and _is_elsewhere(header, stream, other)
    sequence: int = header.seq
    reference: int = stream.reference
    start: int = stream.start
    ahead: int = (sequence - reference) & _SEQUENCE
    latest: int = _latest(stream, other)
    late: int = LATE if _is_over(conn, stream, other) else LATEST_COPY
    if reference >= 0 and latest != NO_TIME and time > latest + late:
        # No copy comes as late. A capture that has all packets twice has them with their times.
        return True
    # A repeated SYN has the sequence number of the first.
    if start >= 0:
        return ((start - 1) & _SEQUENCE) != sequence
    if reference >= 0:
        # The SYN of this stream was not seen, but data was. A SYN that arrived late stands just before it.
        return ahead <= _SEQUENCES - LATEST_SYN
    # Only the other direction was seen so far. If that was its SYN, this is the answer of an old capture order. If it
    # was data, a new connection begins.
    return not control & Flag.ACK and bool(other.start < 0) and bool(other.reference >= 0)


@inlined
def _may_follow(header: Any, stream: Any, other: Any) -> bool:
    """Whether a packet stands where its stream is, or may be soon."""
    reference: int = stream.reference
    least: int = stream.start - 1 if stream.start >= 0 else stream.lowest
    if header.control & Flag.SYN:
        return True
    if reference < 0:
        # Nothing was captured of it but what was acknowledged.
        reference = stream.acked
        least = reference
    if reference < 0:
        # Its SYN answers that of the other direction.
        return bool(other.start < 0)
    pos = _nearest(reference, header.seq)
    return least <= pos <= reference + MOST_WINDOW


@kernel
def _earlier_one(header: Any, slot: int, now: int, connections: Array, streams: Array) -> tuple[int, int]:
    """The earlier connection on the same ports that a packet is a late copy from. Also which of its ends sent it.
    Returns (slot, side); the slot is -1 if there is none."""
    earlier = connections[slot].before
    for _ in range(MOST_EARLIER):
        if earlier < 0:
            break
        side = _side(header, connections[earlier])
        stream = streams[2 * earlier + side]
        reference = stream.reference
        if reference >= 0 and _may_be_copied(stream, now, LATEST_COPY):
            pos = _nearest(reference, header.seq)
            least = stream.start if stream.start >= 0 else stream.lowest
            if header.control & Flag.SYN:
                # Of a SYN, no later than it may be repeated.
                if pos + 1 == stream.start and _may_be_copied(stream, now, LATE):
                    return earlier, side
            elif least <= pos and pos + header.length <= max(reference, stream.end + 1):
                return earlier, side
        earlier = connections[earlier].before
    return int64(-1), int64(0)


@kernel
def _role_by_ports(ports: Array, a_port: int, b_port: int) -> int:
    """The role of a connection by the broker ports that were asked for, if any were."""
    a_is_broker = False
    b_is_broker = False
    for k in range(ports.shape[0]):
        a_is_broker = a_is_broker or ports[k] == a_port
        b_is_broker = b_is_broker or ports[k] == b_port
    role: int = plain(Role.UNKNOWN)
    if a_is_broker != b_is_broker:
        role = plain(Role.A_REQUESTS) if b_is_broker else plain(Role.B_REQUESTS)
    elif ports.shape[0] > 0 and not a_is_broker:
        role = plain(Role.OTHER)
    return role


@kernel
def _begin(header: Any, slot: int, order: int, ports: Array, conn: Any, ab: Any, ba: Any) -> None:
    """Fills the rows of a new connection, and of its two streams."""
    conn.number = slot
    conn.first_order = order
    conn.family = header.family
    conn.a_high = header.src_high
    conn.a_low = header.src_low
    conn.b_high = header.dst_high
    conn.b_low = header.dst_low
    conn.a_port = header.src_port
    conn.b_port = header.dst_port
    conn.role = _role_by_ports(ports, header.src_port, header.dst_port)
    conn.opener = -1
    conn.opener_order = -1
    conn.before = -1
    conn.closed = 0
    conn.closed_order = AT_THE_END
    conn.closed_clock = ABSENT
    conn.settled_order = -1
    conn.begun_order = -1
    conn.looks = 0
    conn.next_look = 0
    conn.by_broker = 0
    conn.waiting_head = -1
    conn.waiting_tail = -1
    conn.waiting_front = -1
    conn.waiting_new = -1
    conn.waiting = 0
    conn.overtaken = 0
    conn.disordered = 0
    conn.missed = 0
    conn.given_up = 0
    conn.raw_tokens = 0
    conn.first_id = -1
    conn.latest_id = -1
    conn.spoken = 0
    conn.told = 0
    conn.client = -1
    conn.unanswered = 0
    conn.handshake = ABSENT
    conn.summed = 0
    _clear(ab)
    _clear(ba)


@kernel
def _clear(stream: Any) -> None:
    """Fills the row of a stream of which nothing has been seen."""
    stream.reference = -1
    stream.start = -1
    stream.start_order = -1
    stream.next = -1
    stream.synced = -1
    stream.certain = -1
    stream.sure = -1
    stream.proven = -1
    stream.noted = -1
    stream.alone = 0
    stream.began = -1
    stream.searched = -1
    stream.answered = 0
    stream.end = -1
    stream.end_order = -1
    stream.skipped = -1
    stream.acked = -1
    stream.reached = -1
    stream.lowest = -1
    stream.holed = 0
    stream.time = ABSENT
    stream.origin = -1
    stream.earlier = -1
    stream.placed = -1
    stream.placed_order = -1
    stream.latest = ABSENT
    stream.clock = NO_TIME
    stream.heard = -1
    stream.since = AT_THE_END
    stream.sums = MOST_SUMS
    stream.packets = 0
    stream.wire = 0
    stream.payload = 0
    stream.first_time = ABSENT
    stream.last_time = ABSENT
    stream.syn_time = ABSENT
    stream.tunnel = 0
    stream.over_order = -1
    stream.resets = 0
    stream.repeats = 0
    stream.repeated = 0
    stream.late = 0
    stream.lost = 0
    stream.hole_1 = stream.hole_1_end = 0
    stream.hole_2 = stream.hole_2_end = 0
    stream.hole_3 = stream.hole_3_end = 0
    stream.hole_4 = stream.hole_4_end = 0
    stream.mapped = NONE
    stream.shift = 0


@kernel
def _reset(conn: Any, now: int) -> None:
    """Notes that an RST ended a connection. What was sent before it may be captured after it for a while."""
    if conn.closed == 0:
        conn.closed = 1
        conn.closed_clock = now + LATE


@kernel
def _take_over(conn: Any, order: int) -> None:
    """Notes that another connection is on the same ports from this packet on. Nothing of this one will follow."""
    conn.closed = 1
    conn.closed_order = min(conn.closed_order, order)


def _with_room(known: Known, engine: Engine) -> Known:
    """What is known, in tables that have room for another connection."""
    connections, streams, lookup, finder, n_connections = known
    if n_connections == connections.shape[0]:
        connections = grown(connections)
        streams = grown(streams)
    if 2 * n_connections > lookup.shape[0]:
        lookup = np.full(2 * lookup.shape[0], -1, np.int64)
        engine(fill_lookup)(connections, n_connections, lookup, finder[0])
    return Known(connections, streams, lookup, finder, n_connections)


# --- what is counted --------------------------------------------------------------------------------------------------


@inlined
def _count_packet(header: Any, packet: Any, order: int, conn: Any, stream: Any, other: Any) -> None:
    """Counts a packet of a direction, and notes what it says about the times of its connection."""
    control = header.control
    time: int = packet.time
    if stream.packets == 0:
        stream.first_time = time
        stream.last_time = time
        stream.tunnel = header.tunnel
    stream.packets += 1
    stream.wire += packet.size
    if time != NO_TIME:
        stream.first_time = min(stream.first_time, time) if stream.first_time != NO_TIME else time
        stream.last_time = max(stream.last_time, time)
    if control & (Flag.SYN | Flag.FIN):
        if control & Flag.SYN:
            stream.syn_time = time
        if control & Flag.FIN and stream.over_order < 0:
            stream.over_order = order
    elif (
        conn.handshake == ABSENT
        and control & Flag.ACK
        and stream.syn_time != ABSENT
        and other.syn_time != ABSENT
        and other.syn_time >= stream.syn_time
    ):
        # The third packet of a handshake. The end that opened the connection sends it (RFC 9293, section 3.5).
        if stream.syn_time != NO_TIME and time != NO_TIME:
            conn.handshake = time - stream.syn_time
        else:
            # How long it took is not stated, and no later packet says it.
            stream.syn_time = ABSENT


@kernel
def _push_hole(stream: Any, begin: int, end: int) -> None:
    """Remembers a hole; the oldest of those that there is room for is forgotten, and stays missing."""
    stream.lost += stream.hole_1_end - stream.hole_1
    stream.hole_1 = stream.hole_2
    stream.hole_1_end = stream.hole_2_end
    stream.hole_2 = stream.hole_3
    stream.hole_2_end = stream.hole_3_end
    stream.hole_3 = stream.hole_4
    stream.hole_3_end = stream.hole_4_end
    stream.hole_4 = begin
    stream.hole_4_end = end


@kernel
def _fill_holes(stream: Any, begin: int, end: int) -> int:
    """How many bytes from position ``begin`` on and before ``end`` were missing; they are not any more."""
    filled = int64(0)
    for _ in range(_HOLES):
        # Each in turn is taken from the front. What is left of it is put back after the others.
        first = stream.hole_1
        last = stream.hole_1_end
        low = max(first, begin)
        high = min(last, end)
        stream.hole_1_end = first
        if low >= high:
            _push_hole(stream, first, last)
            continue
        filled += high - low
        if high < last:
            # Of a hole that is filled in its middle, only the later part is remembered.
            stream.lost += low - first
            _push_hole(stream, high, last)
        else:
            _push_hole(stream, first, low)
    return filled


@inlined
def _count_bytes(header: Any, pos: int, stream: Any) -> None:
    """Counts the bytes of a segment at position ``pos``: new and repeated ones, and what is missing before it."""
    reference = stream.reference
    length = header.length
    end = pos + length
    stream.payload += length
    stream.lost += length - header.captured
    if reference < 0 or pos == reference:
        return
    if pos > reference:
        # A FIN takes a sequence number, but is no byte; an RST may stand anywhere.
        if stream.end < 0 and not header.control & Flag.RST:
            _push_hole(stream, reference, pos)
        return
    if length == 0:
        return
    if length == 1 and end == reference:
        return  # a keep-alive: it has the last byte again, or any (RFC 9293, section 3.8.4)
    lowest = stream.lowest
    filled = int64(0)
    if pos < lowest:
        # The first that was captured was not the first.
        filled = min(end, lowest) - pos
        if end < lowest:
            _push_hole(stream, end, lowest)
        stream.lowest = pos
    filled += _fill_holes(stream, max(pos, lowest), min(end, reference))
    repeated = min(end, reference) - pos - filled
    if filled > 0:
        stream.late += 1
    if repeated > 0:
        stream.repeats += 1
        stream.repeated += repeated


# --- which position ---------------------------------------------------------------------------------------------------


@inlined
def _nearest(reference: int, sequence: int) -> int:
    """The position that a sequence number means: of all that it may, the one next to ``reference``."""
    step = (sequence - reference) & _SEQUENCE
    if step >= _SEQUENCES // 2:
        step -= _SEQUENCES
    return reference + step


@inlined
def _follow(header: Any, order: int, stream: Any, other: Any) -> int:
    """Notes in the rows of both directions what the packet says about them. Returns the position of its first byte."""
    control = header.control
    if stream.reference < 0 <= stream.start:
        stream.reference = stream.start  # see ``_begin_other``
    reference = stream.reference
    pos = FIRST_POSITION + header.seq if reference < 0 else _nearest(reference, header.seq)
    if reference < 0:
        if stream.acked >= 0:
            pos = _nearest(stream.acked, header.seq)
        stream.lowest = pos
    if control & Flag.SYN:
        pos += 1
        if stream.start < 0:
            stream.start = pos
            stream.start_order = order
            if reference < 0:
                # Else there was data before it. What was made of that then does not depend on what came later.
                stream.next = pos
                stream.reached = pos
                stream.lowest = 0
                stream.synced = 1
    if reference >= 0 or header.length > 0:
        _count_bytes(header, pos, stream)
    end = pos + header.length
    if end > reference and end >= 0 and (header.length > 0 or stream.end < 0):
        # A FIN takes a number, at which packets without data stand after it.
        stream.reference = end
    if control & Flag.FIN and not control & Flag.RST and stream.end < 0:
        stream.end_order = order
        stream.end = end
    far = other.reference
    if control & Flag.ACK:
        # What this packet acknowledges of the other direction. The capture cannot fill a hole before it any more.
        if far >= 0:
            other.acked = max(other.acked, _nearest(far, header.ack))
        elif not control & Flag.RST:
            # Nothing was captured of it so far: it may go on there.
            other.acked = FIRST_POSITION + header.ack if other.acked < 0 else _nearest(other.acked, header.ack)
    return pos


# --- checksums --------------------------------------------------------------------------------------------------------

_UNKNOWN_SUM: Final = int64(0)
_RIGHT_SUM: Final = int64(1)
_BAD_SUM: Final = int64(2)


@kernel
def _sum_of_address(high: int, low: int) -> int:
    """A number that is the sum of the 16-bit numbers of an address, modulo 65535."""
    mask = int64(0xFFFFFFFF)
    return (high & mask) + (high >> 32 & mask) + (low & mask) + (low >> 32 & mask)


@kernel
def _checksum(buf: Array, limit: int, header: Any) -> int:
    """What is to be said of the checksum of a packet (RFC 9293, section 3.1): right, bad, or nothing.

    What the network card is to compute stands there as 0, or as the sum of addresses, protocol and length alone (of
    Windows without the length). Linux writes this value as well where it joined segments that were right. ``limit`` is
    where the packet ends.
    """
    stated = u16(buf, header.begin + 16)
    end = header.off + header.length
    if stated == 0 or end > limit:
        return _UNKNOWN_SUM
    ends = _sum_of_address(header.src_high, header.src_low) + _sum_of_address(header.dst_high, header.dst_low)
    partial = ends + _PROTOCOL + end - header.begin
    if (partial - stated) % _WRAPS == 0 or (ends + _PROTOCOL - stated) % _WRAPS == 0:
        return _UNKNOWN_SUM
    if (partial + sum_of(buf, header.begin, end)) % _WRAPS == 0:
        return _RIGHT_SUM
    return _BAD_SUM


@inlined
def _in_doubt(buf: Array, packet: Any, header: Any, conn: Any, stream: Any) -> bool:
    """Looks at the checksum of a packet where it may say something. Returns whether its bytes may be wrong."""
    if conn.summed < ENOUGH_SUMS and stream.sums < WRONG_SUM:
        return False
    found = _checksum(buf, packet.off + packet.captured, header)
    if found == _RIGHT_SUM:
        if stream.sums == MOST_SUMS and conn.summed < ENOUGH_SUMS:
            conn.summed += 1
        stream.sums = min(stream.sums + 1, MOST_SUMS)
    elif found == _BAD_SUM and stream.sums >= WRONG_SUM:
        stream.sums -= WRONG_SUM
        return bool(conn.summed == ENOUGH_SUMS)
    return False


@kernel
def _begin_other(buf: Array, packet: Any, header: Any, order: int, conn: Any, side: int, other: Any) -> None:
    """Notes where a direction begins of which nothing was captured so far, not even its SYN, if the packet says it.

    The SYN of a broker acknowledges that of its client, which has no data. A packet of a client says it that stands at
    its first byte. A broker sends nothing before it has received a request, and acknowledges that. So the client had
    received nothing when it sent this packet, and all that it acknowledges is the SYN.
    """
    control = header.control
    opens = control & Flag.SYN != 0
    if opens == (conn.opener == side) or (opens and header.length > 0):
        return
    if not control & Flag.ACK or control & Flag.RST or other.acked < 0:
        return
    if _checksum(buf, packet.off + packet.captured, header) == _BAD_SUM:
        return
    other.start = other.acked
    other.start_order = order
    other.next = other.acked
    other.reached = other.acked
    other.lowest = 0
    other.synced = 1


# --- segments ---------------------------------------------------------------------------------------------------------


@inlined
def _note_segment(
    segments: Array, n_segments: int, stream: int, pos: int, header: Any, time: int, order: int, now: int, doubt: int,
    counts: Array,
) -> int:  # fmt: skip
    """Writes the row of a segment, captured when the clock showed ``now``, and one of what the capture lacks of it.
    Returns how many rows there are then."""
    captured = header.captured
    missing = header.length - captured
    if captured > 0:
        segment = segments[n_segments]
        segment.stream = stream
        segment.pos = pos
        segment.len = captured
        segment.off = header.off
        segment.time = time
        segment.order = order
        segment.clock = now
        segment.doubt = doubt
        segment.packet = order
        n_segments += 1
    if missing > 0:
        counts[plain(Count.SNAPPED)] += 1
        segment = segments[n_segments]
        segment.stream = stream
        segment.pos = pos + captured
        segment.len = missing
        segment.off = -1
        segment.time = time
        segment.order = order
        segment.clock = now
        segment.doubt = 0
        segment.packet = order
        n_segments += 1
    return n_segments


@kernel
def _note_acknowledged(segments: Array, n_segments: int, stream: int, pos: int, time: int, order: int, now: int) -> int:
    """Writes a row that says up to where a stream was acknowledged. Returns how many rows there are then."""
    segment = segments[n_segments]
    segment.stream = stream
    segment.pos = pos
    segment.len = 0
    segment.off = ACKNOWLEDGED
    segment.time = time
    segment.order = order
    segment.clock = now
    segment.doubt = 0
    segment.packet = order
    segment.ack = -1
    return n_segments + 1


@inlined
def _connection(
    header: Any,
    order: int,
    time: int,
    now: int,
    connections: Array,
    streams: Array,
    lookup: Array,
    finder: Any,
    n_connections: int,
    ports: Array,
) -> tuple[int, int]:
    """The connection of a packet, found or made, and which of its ends sent it: (slot, side).

    The slot is ``n_connections`` if it was made, -1 if there is none and such a packet begins none.
    """
    slot = finder.latest
    if slot >= 0:
        # Packets come in trains. No later connection is on the same ports, or it would have been found last.
        side = _side(header, connections[slot])
        if (
            side >= 0
            and not _begins_another(
                header, connections[slot], streams[2 * slot + side], streams[2 * slot + 1 - side], time, now
            )
            and (
                connections[slot].before < 0
                or _may_follow(header, streams[2 * slot + side], streams[2 * slot + 1 - side])
            )
        ):
            return slot, side
    slot, side, place = _look_up(header, connections, lookup, finder)
    finder.latest = slot
    before = slot
    if slot >= 0:
        conn = connections[slot]
        own, other = streams[2 * slot + side], streams[2 * slot + 1 - side]
        another = _begins_another(header, conn, own, other, time, now)
        # A SYN is one of before only where it comes into a connection that goes on.
        may_be_late = not header.control & Flag.SYN or not _is_over(conn, own, other)
        if conn.before >= 0 and may_be_late and (another or not _may_follow(header, own, other)):
            earlier, sender = _earlier_one(header, slot, now, connections, streams)
            if earlier >= 0:
                return earlier, sender
        if not another:
            return slot, side
        if header.length == 0 and not header.control & Flag.SYN:
            # It moves nothing here, and is too little to say that there is another one.
            return int64(-1), side
        _take_over(conn, order)
    if header.control & Flag.RST and finder.resets_begin == 0:
        return int64(-1), side
    slot = int64(n_connections)
    lookup[place] = slot
    finder.latest = slot
    _begin(header, slot, order, ports, connections[slot], streams[2 * slot], streams[2 * slot + 1])
    connections[slot].before = before
    return slot, int64(0)


@kernel
def _on_path(
    buf: Array, at: int, header: Any, connections: Array, streams: Array, lookup: Array, finder: Any
) -> tuple[int, int]:
    """Reads the option of Multipath TCP at ``at``: what ``said_by`` says, or ``JOINS``. The header gets the sequence
    number that the packet would have if all bytes of its connection went on this path."""
    if header.control & Flag.SYN:
        return JOINS if is_joining(buf, at) else NONE, NONE
    base, acknowledged = said_by(buf, at)
    if header.length == 0:
        base = NONE
    if base >= 0:
        slot, side, _ = _look_up(header, connections, lookup, finder)
        if slot >= 0 and streams[2 * slot + side].mapped >= 0:
            header.seq = (header.seq + base - streams[2 * slot + side].mapped) & _SEQUENCE
    return base, acknowledged


@kernel
def _shift(header: Any, base: int, acknowledged: int, sequence: int, stream: Any, other: Any) -> bool:
    """Gives the header of a packet with the sequence number ``sequence`` the numbers that count for ``stream``. Other
    paths have some bytes of this stream. Returns whether they have some before it that they had not before."""
    more = False
    if base >= 0 and stream.mapped < 0:
        stream.mapped = base
        header.seq = sequence
    elif base >= 0:
        step = (base - stream.mapped - stream.shift) & _SEQUENCE
        if 0 < step < _SEQUENCES // 2:
            stream.shift = (stream.shift + step) & _SEQUENCE
            more = True
    else:
        header.seq = (header.seq + stream.shift) & _SEQUENCE
    if header.control & Flag.ACK and other.shift > 0:
        if acknowledged >= 0 and other.start >= 0:
            header.ack = (acknowledged - other.mapped + other.start - 1) & _SEQUENCE
        else:
            # It acknowledges a number of its path, and where that began is not known.
            header.control &= ~plain(Flag.ACK)
    return more


@inlined
def _ends_here(header: Any, stream: Any) -> bool:
    """Whether an RST stands where its stream is: a receiver ignores others (RFC 5961, section 3). Where packets are
    missing the next sequence number is not known exactly."""
    reference: int = stream.reference
    return reference < 0 or -WINDOW_BEHIND <= _nearest(reference, header.seq) - reference <= MOST_WINDOW


@kernel
def _take(
    buf: Array,
    packets: Array,
    k: int,
    clock: Array,
    ports: Array,
    vxlan: Array,
    connections: Array,
    streams: Array,
    lookup: Array,
    finders: Array,
    n_connections: int,
    counts: Array,
    segments: Array,
    n_segments: int,
    first_order: int,
    headers: Array,
    slots: Array,
) -> tuple[int, int, int, bool]:
    """``tcp_segments`` from packet ``k`` until a table is full: (packets read, n_segments, n_connections, whether the
    next packet is a fragment).

    ``headers`` is room for one: where the fragment is stands there. ``slots`` gets the connection of each packet.
    """
    header = headers[0]
    finder = finders[0]
    while (
        k < packets.shape[0]
        and n_segments + MOST_ROWS <= segments.shape[0]
        and n_connections < connections.shape[0]
        and 2 * n_connections <= lookup.shape[0]
    ):
        packet = packets[k]
        found = innermost(buf, packet, vxlan, header)
        if found == Count.FRAGMENT:
            return k, n_segments, n_connections, True
        order = first_order + k
        slots[k] = -1
        now = clock[k]
        k += 1
        counts[plain(Count.PACKETS)] += 1
        if found != Count.PACKETS:
            counts[found] += 1
            continue
        control = header.control
        sequence = header.seq
        base, acknowledged = NONE, NONE
        option = int64(-1)
        if header.begin + _TCP_SIZE < header.off <= packet.off + packet.captured:
            option = option_of(buf, header.begin + _TCP_SIZE, header.off)
            if option >= 0:
                base, acknowledged = _on_path(buf, option, header, connections, streams, lookup, finder)
        slot, side = _connection(
            header, order, packet.time, now, connections, streams, lookup, finder, n_connections, ports
        )
        if slot < 0:
            continue
        slots[k - 1] = slot
        if slot == n_connections:
            n_connections += 1
        conn = connections[slot]
        if control & Flag.SYN and conn.opener < 0:
            conn.opener = 1 - side if control & Flag.ACK else side
            conn.opener_order = order
        stream = 2 * slot + side
        if (base >= 0 or streams[stream].shift > 0 or streams[2 * slot + 1 - side].shift > 0) and _shift(
            header, base, acknowledged, sequence, streams[stream], streams[2 * slot + 1 - side]
        ):
            counts[plain(Count.PATH)] += 1
        _count_packet(header, packet, order, conn, streams[stream], streams[2 * slot + 1 - side])
        if base == JOINS:
            # The path begins in the middle of a connection. What is read of it begins after this packet.
            header.control &= ~plain(Flag.SYN)
            header.seq = (header.seq + 1) & _SEQUENCE
        if control & Flag.RST and not _ends_here(header, streams[stream]):
            continue
        own = streams[stream]
        other = streams[2 * slot + 1 - side]
        acked = other.acked
        reference = own.reference
        pos = _follow(header, order, own, other)
        if other.start < 0 and own.start == pos and option < 0 and other.reference < 0:
            _begin_other(buf, packet, header, order, conn, side, other)
        if control & Flag.RST:
            _reset(conn, now)
            own.resets += 1
            if own.over_order < 0:
                own.over_order = order
            continue  # what an RST carries is a text about the reason, not data of the stream
        if other.holed >= 1 and other.acked > acked:
            n_segments = _note_acknowledged(
                segments, n_segments, 2 * slot + 1 - side, other.acked, packet.time, order, now
            )
            if other.holed == BEGINS and other.acked >= other.reached:
                other.holed = 0
        if header.length == 0:
            if conn.summed < ENOUGH_SUMS and conn.role != Role.OTHER:
                _in_doubt(buf, packet, header, conn, own)
            continue
        reached = own.reached
        own.reached = max(reached, pos + header.length)
        if conn.role != Role.OTHER:
            doubt = int64(0)
            if conn.role != Role.ENCRYPTED and _in_doubt(buf, packet, header, conn, own):
                doubt = int64(1)
                counts[plain(Count.WRONG)] += 1
            if reached < 0:
                # The stream begins in the middle. Nothing is before what was acknowledged, or stands after what was
                # sent without a byte.
                known = max(own.acked, pos) if pos == reference else own.acked
                if doubt == 1 or known < pos:
                    own.holed = 1 if doubt == 1 else BEGINS
                n_segments = _note_acknowledged(segments, n_segments, stream, known, packet.time, order, now)
            elif (doubt == 1 or pos > reached) and own.holed != 1:
                # A hole begins here: from now on it counts when what is acknowledged.
                own.holed = 1
                n_segments = _note_acknowledged(segments, n_segments, stream, own.acked, packet.time, order, now)
            first = n_segments
            n_segments = _note_segment(
                segments, n_segments, stream, pos, header, packet.time, order, now, doubt, counts
            )
            # Where there are several paths, each has numbers of its own.
            known = control & Flag.ACK and own.shift == 0 and other.shift == 0
            for row in range(first, n_segments):
                segments[row].ack = other.acked if known else int64(-1)
    return k, n_segments, n_connections, False


@kernel
def clock_of(packets: Array, now: int, clock: Array) -> None:
    """Fills ``clock`` with the latest time that was seen up to each packet. Before them it was ``now``."""
    latest = now
    for k in range(packets.shape[0]):
        latest = max(latest, packets[k].time)
        clock[k] = latest


@kernel
def note_closed(connections: Array, n_connections: int, clock: Array, first_order: int) -> None:
    """Finds out with which packet connections that were reset are over: the first that is later."""
    for slot in range(n_connections):
        conn = connections[slot]
        if conn.closed == 1 and conn.closed_order == AT_THE_END:
            low = int64(0)
            high = int64(clock.shape[0])
            while low < high:
                middle = (low + high) >> 1
                if clock[middle] > conn.closed_clock:
                    high = middle
                else:
                    low = middle + 1
            if low < clock.shape[0]:
                conn.closed_order = first_order + low


def tcp_segments(
    buf: Array,
    packets: Array,
    clock: Array,
    ports: Array,
    vxlan: Array,
    known: Known,
    counts: Array,
    segments: Array,
    n_segments: int,
    first_order: int,
    slots: Array,
    engine: Engine,
) -> tuple[Array, Known, int, Fragment | None]:
    """The TCP segments of the packets, after ``segments[:n_segments]``; connections are looked up or added.

    ``clock`` is, for each packet, the latest time that was seen up to it. ``ports`` are the broker ports asked for
    (empty: all connections are of interest). ``vxlan`` are the ports of tunnels (``layers.innermost``). ``first_order``
    is the number of the first packet, counted over the whole capture. ``slots`` has a place for each packet and gets
    the slot of its connection, -1 for none. Returns (segments, known, how many packets were read, a fragment), the
    tables as they are after growing. It stops before a packet that is a fragment, and returns where that is. The
    fragment has to be joined with others first.
    """
    headers = np.empty(1, HEADER)
    k = 0
    stopped = False
    while k < len(packets) and not stopped:
        if n_segments + MOST_ROWS > len(segments):
            segments = grown(segments)
        connections, streams, lookup, finder, n_connections = known = _with_room(known, engine)
        k, n_segments, n_connections, stopped = engine(_take)(
            buf, packets, k, clock, ports, vxlan, connections, streams, lookup, finder, n_connections, counts, segments,
            n_segments, first_order, headers, slots,
        )  # fmt: skip
        known = Known(connections, streams, lookup, finder, n_connections)
    fragment = Fragment(*(int(headers[name][0]) for name in Fragment._fields)) if stopped else None
    return segments[:n_segments], known, k, fragment
