"""TCP segments to streams: put in order, duplicates dropped, holes waited for or given up.

Strategy: segments of all connections come as one table. A counting sort brings them together by stream and keeps their
order. Each stream is walked once, packet by packet. What it already has is skipped, and what follows is appended. What
is further on waits in a heap. The walk puts bytes in order; what of them is consumed is the framing's business.
Afterwards ``keep`` collects what was not consumed (the beginning of a frame), and what still waits after a hole. Both
come back before the next window's segments. The first come back as the pieces that they are; the others wait on. One
mechanism serves all that spans windows.

Whatever is decided here is decided with a packet, by what was captured up to it. So pieces, their times and orders are
the same in any window. A hole is given up, and becomes a gap, with the first packet at which

- the connection is over, or the capture;
- the receiver had acknowledged what comes after it, and the clock shows ``ACKED_WAIT`` more than at the first segment
  after it. Then the receiver got the bytes and the capture did not;
- the clock shows ``LONGEST_WAIT`` more than with the first segment after it;
- more than ``MOST_WAITING`` bytes wait after it, or less where all streams together wait for too much. This bounds
  memory, and how much is looked at again in each window. A segment counts as no less than its row has (``LEAST``).

The first packets of a stream whose SYN was not captured may be in the wrong order. It begins with the first of them
before which nothing can be missing, since that is acknowledged. Otherwise it begins with what there is: after
``ACKED_WAIT`` from the first packet where nothing says what is acknowledged. Where less is acknowledged, it waits
``LONGEST_WAIT``. In any case it begins when ``MOST_BEFORE`` bytes are there. What stands before its beginning and comes
later is not put in order, but reported (``Stream.earlier``).

What the snapshot length cut off is not waited for: it is a piece without bytes.

A segment that may be damaged (``Segment.doubt``) does not fill a hole. It waits for another copy as long as if it stood
after a hole. Where no copy comes, its bytes are taken after all.

The time of a piece is when the capture had it and all that is before it. A receiver sees no byte before the earlier
ones.

Where segments overlap, the bytes of the segment that was captured first count, of those that are not in doubt. These
are what the receiver had first. A receiver may decide otherwise where copies differ; a capture cannot know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, inlined, kernel
from kwire.kernels.layouts import (
    ABSENT,
    ACKNOWLEDGED,
    ACTIVE,
    AT_THE_END,
    NO_TIME,
    PIECE,
    SEGMENT,
    Role,
    Row,
    Wide,
    joined,
    table_type,
)
from kwire.kernels.numbers import SLACK, copy, i32, int64, prefetch

__all__ = ["ACKED_WAIT", "LINGERS", "first_from", "keep", "place"]

ACKED_WAIT: Final = 200_000_000
"""Nanoseconds of capture time. Packets of one host that were captured out of order are microseconds apart."""
LONGEST_WAIT: Final = 10_000_000_000
"""Nanoseconds of capture time: several retransmission timeouts."""
MOST_WAITING: Final = 4 << 20
"""Bytes after a hole of one stream: more than a usual receive window."""
MOST_BEFORE: Final = 64 << 10
"""Bytes that wait for the beginning of a stream that begins in the middle."""
LINGERS: Final = 4096
"""How many packets the bytes of a connection of unknown kind are kept for after its end. Another connection may show
that it was to a broker. A broker that is known later says nothing of it, or the size of windows would decide."""
LEAST: Final = SEGMENT.itemsize
"""Bytes that a segment after a hole counts for at least. Many may have one byte, or none that the capture has."""

BY_POSITION: Final = int64(0)
BY_CAPTURE: Final = int64(1)
"""What comes first on a heap of segments."""

Array = Any


class Joining(Row):
    """A stream while its segments are put in order."""

    at: int
    """Where the next bytes go in the joined data."""
    n_pieces: int
    cursor: Wide
    """Position up to which the stream is in order; -1 before its first byte."""
    latest: Wide
    order: int
    clock: Wide
    """Time, packet and clock of the latest piece."""
    base: Wide
    """Where its parts of the heaps begin."""
    n_early: int
    """Segments that wait after a hole, on a heap by position."""
    n_ready: int
    """Segments that begin at the cursor or before and go on after it, on a heap by when they were captured. Between
    packets, those that are in doubt."""
    trusted: int
    """Up to which position the bytes of those are taken."""
    behind: int
    """What waits counts for so many bytes."""
    since: Wide
    """The packet since which something waits, AT_THE_END if nothing does."""
    heard: Wide
    """Position up to which the stream is known to be acknowledged."""
    known: Wide
    """The packet up to which all has been looked at."""
    begun: int
    """What the clock showed when the first segment came of those that wait for the beginning."""


JOINING: Final = table_type(Joining)


@kernel
def _wanted(conn: Any) -> bool:
    """Whether the bytes of a connection are of interest."""
    role: int = conn.role
    return role != Role.OTHER and role != Role.ENCRYPTED


# --- segments by stream -----------------------------------------------------------------------------------------------


@kernel
def _count(segments: Array, connections: Array, begins: Array) -> tuple[int, int, int]:
    """How many segments are of interest, how many bytes of them the capture has, and how many streams they belong to.

    Those of stream n will be from ``begins[n]`` to ``begins[n + 1]``; ``begins`` is all zeros at first.
    """
    n_segments = int64(0)
    n_bytes = int64(0)
    n_active = int64(0)
    for k in range(segments.shape[0]):
        segment = segments[k]
        if _wanted(connections[segment.stream >> 1]):
            n_segments += 1
            if begins[segment.stream + 1] == 0:
                n_active += 1
            begins[segment.stream + 1] += 1
            if segment.off >= 0:
                n_bytes += segment.len
    for stream in range(begins.shape[0] - 1):
        begins[stream + 1] += begins[stream]
    return n_segments, n_bytes, n_active


@kernel
def _by_stream(segments: Array, connections: Array, fill: Array, order: Array) -> None:
    """Writes the numbers of the segments of interest into ``order``, by stream, as they stand in the table.

    ``fill`` says where the next one of each stream goes.
    """
    for k in range(segments.shape[0]):
        stream = segments[k].stream
        if _wanted(connections[stream >> 1]):
            order[fill[stream]] = k
            fill[stream] += 1


@kernel
def first_from(clock: Array, first_order: int, time: int) -> int:
    """The number of the first packet of a window with which the clock showed ``time``; ``AT_THE_END`` if none.

    ``clock`` is, for each packet of the window, the latest time that was seen up to it. ``first_order`` is the number
    of the first of them.
    """
    low = int64(0)
    high = int64(clock.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if clock[middle] >= time:
            high = middle
        else:
            low = middle + 1
    return first_order + low if low < clock.shape[0] else int64(AT_THE_END)


@kernel
def _weight(segment: Any) -> int:
    """How many bytes of memory a segment that waits counts for."""
    weight: int = max(segment.len, int64(LEAST)) if segment.off >= 0 else int64(LEAST)
    return weight


# --- segments that wait -----------------------------------------------------------------------------------------------


@kernel
def _comes_first(segments: Array, one: int, other: int, by: int) -> bool:
    """Whether segment ``one`` stands above ``other`` on a heap by position, or by when they were captured.

    What is in doubt comes after what is not, and what the capture does not have after all that it has.
    """
    a = segments[one]
    b = segments[other]
    if by == BY_POSITION and a.pos != b.pos:
        less: bool = a.pos < b.pos
        return less
    if by == BY_CAPTURE and (a.off < 0) != (b.off < 0):
        has: bool = a.off >= 0
        return has
    if by == BY_CAPTURE and a.doubt != b.doubt:
        sure: bool = a.doubt == 0
        return sure
    if a.order != b.order:
        earlier: bool = a.order < b.order
        return earlier
    return one < other


@kernel
def _push(segments: Array, heap: Array, base: int, size: int, which: int, by: int) -> int:
    """Puts segment ``which`` on the heap ``heap[base : base + size]``; its size."""
    at = int64(size)
    while at > 0:
        above = (at - 1) >> 1
        if not _comes_first(segments, which, heap[base + above], by):
            break
        heap[base + at] = heap[base + above]
        at = above
    heap[base + at] = which
    return size + 1


@kernel
def _pop(segments: Array, heap: Array, base: int, size: int, by: int) -> int:
    """Takes the first one off the heap; its size."""
    size -= 1
    last = heap[base + size]
    at = int64(0)
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _comes_first(segments, heap[base + below + 1], heap[base + below], by):
            below += 1
        if _comes_first(segments, last, heap[base + below], by):
            break
        heap[base + at] = heap[base + below]
        at = below
    heap[base + at] = last
    return size


# --- one stream -------------------------------------------------------------------------------------------------------


@inlined
def _give(buf: Array, segments: Array, which: int, end: int, order: int, data: Array, pieces: Array, now: Any) -> None:
    """Makes a piece of the bytes of segment ``which`` from the cursor up to ``end``, with packet ``order``."""
    segment = segments[which]
    time = segment.time
    if time > now.latest or now.latest == ABSENT:
        now.latest = time
    now.clock = max(now.clock, segment.clock)
    now.order = max(now.order, order)
    length = end - now.cursor
    piece = pieces[now.n_pieces]
    piece.pos = now.cursor
    piece.len = length
    piece.off = -1
    piece.time = now.latest if time != NO_TIME else time
    piece.order = now.order
    piece.clock = now.clock
    piece.since = now.since
    piece.packet = segment.packet
    piece.ack = segment.ack
    piece.head = 0
    if segment.off >= 0:
        piece.off = now.at
        copy(buf, segment.off + now.cursor - segment.pos, data, now.at, length)
        piece.head = i32(data, now.at) if length >= 4 else int64(0)
        now.at += length
    now.n_pieces += 1
    now.cursor = end


@kernel
def _make_ready(segments: Array, early: Array, ready: Array, limit: int, now: Any) -> None:
    """Takes the first segment off the heap ``early``, onto that of those that are ready if it goes on after
    ``limit``. There one still counts for what waits as long as it is in doubt."""
    which = early[now.base]
    segment = segments[which]
    now.n_early = _pop(segments, early, now.base, now.n_early, BY_POSITION)
    waits = segment.pos + segment.len > limit
    if waits:
        now.n_ready = _push(segments, ready, now.base, now.n_ready, which, BY_CAPTURE)
    if not waits or segment.doubt == 0:
        now.behind -= _weight(segment)


@kernel
def _let_through(
    buf: Array, segments: Array, early: Array, ready: Array, order: int, data: Array, pieces: Array, now: Any
) -> None:
    """Gives what waits, as far as it follows the cursor without a hole and is not in doubt, with packet ``order``."""
    base = now.base
    while True:
        while now.n_early > 0 and segments[early[base]].pos <= now.cursor:
            _make_ready(segments, early, ready, now.cursor, now)
        while now.n_ready > 0 and segments[ready[base]].pos + segments[ready[base]].len <= now.cursor:
            if segments[ready[base]].doubt == 1:
                now.behind -= _weight(segments[ready[base]])
            now.n_ready = _pop(segments, ready, base, now.n_ready, BY_CAPTURE)
        if now.n_ready == 0:
            break
        taken = ready[base]
        if segments[taken].doubt == 1 and now.cursor >= now.trusted:
            break
        limit = segments[taken].pos + segments[taken].len
        # One that was captured before it may begin within.
        while now.n_early > 0 and segments[early[base]].pos < limit:
            which = early[base]
            if _comes_first(segments, which, taken, BY_CAPTURE):
                limit = segments[which].pos
                break
            _make_ready(segments, early, ready, limit, now)
        _give(buf, segments, taken, limit, order, data, pieces, now)
    if now.n_early == 0 and now.n_ready == 0:
        now.since = AT_THE_END


@kernel
def _begin(stream: Any, pos: int, order: int, now: Any) -> None:
    """Begins a stream that begins in the middle, with packet ``order``: at ``pos``, or where a late SYN says."""
    begin = pos
    if 0 <= stream.start <= pos and stream.start_order <= order:
        begin = stream.start
    now.cursor = begin
    stream.next = begin
    stream.synced = 0
    stream.origin = begin


@kernel
def _note_earlier(stream: Any, pos: int) -> None:
    """Notes what came too late to be the beginning of a stream."""
    if pos < stream.origin:
        stream.earlier = pos if stream.earlier < 0 else min(stream.earlier, pos)


@kernel
def _beginning(segments: Array, early: Array, stream: Any, clock: Array, first_order: int, most: int, now: Any) -> int:
    """The packet with which a stream begins that begins in the middle, as far as it is known."""
    first = segments[early[now.base]].pos
    if now.heard >= first or now.behind > min(MOST_BEFORE, most):
        order: int = now.known
        return order
    wait = int64(LONGEST_WAIT if now.heard >= 0 else ACKED_WAIT)
    order = first_from(clock, first_order, now.begun + wait + 1)
    if 0 <= stream.start <= first:
        order = min(order, stream.start_order)
    return max(order, now.known)


@kernel
def _give_up(
    buf: Array,
    segments: Array,
    early: Array,
    ready: Array,
    clock: Array,
    first_order: int,
    most: int,
    before: int,
    data: Array,
    pieces: Array,
    now: Any,
) -> None:
    """Gives up holes that are no longer waited for with a packet before ``before``. The same for other copies of what
    is in doubt."""
    while now.n_early > 0 or now.n_ready > 0:
        doubted = now.n_ready > 0
        first = segments[ready[now.base] if doubted else early[now.base]]
        # Where the hole ends.
        end = first.pos + first.len if doubted else first.pos
        if doubted and now.n_early > 0:
            end = min(end, segments[early[now.base]].pos)
        order = first_from(clock, first_order, first.clock + LONGEST_WAIT + 1)
        if now.heard >= end:
            order = min(order, first_from(clock, first_order, first.clock + ACKED_WAIT + 1))
        order = now.known if now.behind > most else max(order, now.known)
        if order >= before:
            return
        now.known = order
        if doubted:
            now.trusted = end
        else:
            now.cursor = first.pos
        _let_through(buf, segments, early, ready, order, data, pieces, now)


@kernel
def _give_up_all(
    buf: Array, segments: Array, early: Array, ready: Array, order: int, data: Array, pieces: Array, now: Any
) -> None:
    """Gives up all holes with packet ``order``, and nothing is in doubt from then on."""
    now.known = max(now.known, order)
    now.trusted = int64(AT_THE_END)
    while now.n_early > 0 or now.n_ready > 0:
        if now.n_ready == 0:
            now.cursor = max(now.cursor, segments[early[now.base]].pos)
        _let_through(buf, segments, early, ready, order, data, pieces, now)


@kernel
def _come_again(
    buf: Array, segments: Array, order: Array, n_held: int, early: Array, active: Any, data: Array, pieces: Array,
    now: Any,
) -> int:  # fmt: skip
    """Takes the rows that ``keep`` gave for a stream: pieces of it, and what waits. Returns where the others begin."""
    k = active.seg_first
    while k < active.seg_end and order[k] < n_held:
        segment = segments[order[k]]
        if segment.doubt == 0 and segment.pos < now.cursor:
            piece = pieces[now.n_pieces]
            piece.pos = segment.pos
            piece.len = segment.len
            piece.off = -1
            piece.time = segment.time
            piece.order = segment.order
            piece.clock = segment.clock
            piece.since = AT_THE_END
            piece.packet = segment.packet
            piece.ack = segment.ack
            piece.head = 0
            if segment.off >= 0:
                piece.off = now.at
                copy(buf, segment.off, data, now.at, segment.len)
                piece.head = i32(data, now.at) if segment.len >= 4 else int64(0)
                now.at += segment.len
            now.n_pieces += 1
        else:
            now.n_early = _push(segments, early, now.base, now.n_early, order[k], BY_POSITION)
            now.behind += _weight(segment)
            now.begun = min(now.begun, segment.clock)
        k += 1
    return k


@kernel
def _wait_to_begin(
    buf: Array,
    segments: Array,
    order: Array,
    k: int,
    early: Array,
    ready: Array,
    active: Any,
    stream: Any,
    clock: Array,
    first_order: int,
    most: int,
    over_order: int,
    final: bool,
    data: Array,
    pieces: Array,
    now: Any,
) -> int:
    """Takes the segments, from ``k`` on, of a stream that begins in the middle, until it begins. Returns where the
    others are."""
    while True:
        before = segments[order[k]].order if k < active.seg_end else first_order + clock.shape[0]
        if now.n_early > 0:
            begins = _beginning(segments, early, stream, clock, first_order, most, now)
            begins = min(begins, max(over_order, now.known))
            ends = final and k == active.seg_end
            if begins < before or ends:
                begins = begins if begins < before else int64(AT_THE_END)
                now.known = begins
                _begin(stream, segments[early[now.base]].pos, begins, now)
                _let_through(buf, segments, early, ready, begins, data, pieces, now)
                return k
        if k == active.seg_end:
            return k
        which = order[k]
        segment = segments[which]
        k += 1
        now.known = max(now.known, segment.order)
        if segment.off == ACKNOWLEDGED:
            now.heard = max(now.heard, segment.pos)
            continue
        if now.n_early == 0:
            now.since = segment.order
        now.begun = min(now.begun, segment.clock)
        now.n_early = _push(segments, early, now.base, now.n_early, which, BY_POSITION)
        now.behind += _weight(segment)


@kernel
def _join(
    buf: Array,
    segments: Array,
    order: Array,
    n_held: int,
    early: Array,
    ready: Array,
    active: Any,
    conn: Any,
    stream: Any,
    clock: Array,
    first_order: int,
    most: int,
    final: bool,
    data: Array,
    pieces: Array,
    now: Any,
) -> None:
    """Joins the segments of one stream after ``data[:now.at]`` and ``pieces[:now.n_pieces]``.

    ``most``: bytes that may wait after a hole. The heaps ``early`` and ``ready`` are as long as ``order``.
    """
    now.cursor = stream.placed if stream.placed >= 0 else stream.next
    now.latest = stream.latest
    now.order = stream.placed_order
    now.clock = stream.clock
    now.base = active.seg_first
    now.n_early = 0
    now.n_ready = 0
    now.trusted = 0
    now.behind = 0
    now.since = stream.since
    now.heard = stream.heard
    now.known = first_order - 1
    now.begun = int64(AT_THE_END)
    over_order = conn.closed_order
    over = False
    last = first_order + clock.shape[0]
    k = _come_again(buf, segments, order, n_held, early, active, data, pieces, now)
    if now.cursor < 0:
        k = _wait_to_begin(
            buf, segments, order, k, early, ready, active, stream, clock, first_order, most, over_order, final, data,
            pieces, now,
        )  # fmt: skip
    while k < active.seg_end:
        which = order[k]
        segment = segments[which]
        k += 1
        if k + _AHEAD < active.seg_end:
            # Packets of other streams lie between those of this one.
            later = segments[order[k + _AHEAD]]
            if later.off >= 0:
                prefetch(buf, later.off)
                prefetch(buf, later.off + 64)
                prefetch(buf, later.off + 128)
        if segment.order > over_order and not over:
            _give_up(buf, segments, early, ready, clock, first_order, most, over_order, data, pieces, now)
            _give_up_all(buf, segments, early, ready, over_order, data, pieces, now)
            over = True
        if now.n_early > 0 or now.n_ready > 0:
            _give_up(buf, segments, early, ready, clock, first_order, most, segment.order, data, pieces, now)
        now.known = max(now.known, segment.order)
        if segment.off == ACKNOWLEDGED:
            now.heard = max(now.heard, segment.pos)
            continue
        end = segment.pos + segment.len
        if end <= now.cursor:
            _note_earlier(stream, segment.pos)
            continue
        if now.n_early == 0 and now.n_ready == 0:
            if segment.pos <= now.cursor and segment.doubt == 0:
                if segment.pos < now.cursor:
                    _note_earlier(stream, segment.pos)
                _give(buf, segments, which, end, segment.order, data, pieces, now)
                continue
            now.since = segment.order
        now.n_early = _push(segments, early, now.base, now.n_early, which, BY_POSITION)
        now.behind += _weight(segment)
        _let_through(buf, segments, early, ready, segment.order, data, pieces, now)
        if over:
            _give_up_all(buf, segments, early, ready, segment.order, data, pieces, now)
        elif now.behind > most:
            _give_up(buf, segments, early, ready, clock, first_order, most, segment.order + 1, data, pieces, now)
    if now.cursor >= 0:
        _give_up(buf, segments, early, ready, clock, first_order, most, min(last, over_order), data, pieces, now)
        if over_order < last:
            _give_up_all(buf, segments, early, ready, over_order, data, pieces, now)
        if final:
            _give_up_all(buf, segments, early, ready, int64(AT_THE_END), data, pieces, now)
    active.waiting = 1 if now.n_early > 0 or now.n_ready > 0 else 0
    stream.holed = active.waiting
    stream.placed = now.cursor
    stream.placed_order = now.order
    stream.latest = now.latest
    stream.clock = now.clock
    stream.since = now.since
    stream.heard = now.heard


_AHEAD: Final = 6
"""How many segments ahead bytes are asked for."""

# --- a window ---------------------------------------------------------------------------------------------------------


@kernel
def _place(
    buf: Array,
    segments: Array,
    order: Array,
    n_held: int,
    early: Array,
    ready: Array,
    begins: Array,
    connections: Array,
    streams: Array,
    clock: Array,
    first_order: int,
    most: int,
    final: bool,
    data: Array,
    pieces: Array,
    active: Array,
    states: Array,
) -> int:
    """Fills the tables of ``place``: how many pieces there are. ``states`` is room for one."""
    now = states[0]
    now.at = 0
    now.n_pieces = 0
    a = 0
    for stream in range(begins.shape[0] - 1):
        first = begins[stream]
        end = begins[stream + 1]
        if first == end:
            continue
        row = active[a]
        row.stream = stream
        row.first = now.n_pieces
        row.seg_first = first
        row.seg_end = end
        _join(
            buf, segments, order, n_held, early, ready, row, connections[stream >> 1], streams[stream], clock,
            first_order, most, final, data, pieces, now,
        )  # fmt: skip
        row.end = now.n_pieces
        a += 1
    made: int = now.n_pieces
    return made


def _fresh(size: int) -> Array:
    return np.empty(size, np.uint8)


def place(
    buf: Array,
    segments: Array,
    n_held: int,
    connections: Array,
    streams: Array,
    n_streams: int,
    clock: Array,
    first_order: int,
    ration: int,
    final: bool,
    engine: Engine,
    room: Callable[[int], Array] = _fresh,
) -> tuple[Array, Array, Array, Array]:
    """Orders segments and joins their bytes: (data, pieces, active, order).

    The first ``n_held`` segments are what ``keep`` gave for the window before. ``clock`` and ``first_order`` are as for
    ``first_from``. ``ration`` is how many bytes of a stream may wait after a hole (if less than ``MOST_WAITING``).
    ``final`` says that no packet will follow. ``room`` gives an array of so many bytes. ``order`` holds the numbers of
    the segments by stream. ``data`` ends with ``SLACK`` bytes that mean nothing.
    """
    begins = np.zeros(n_streams + 1, np.int64)
    n_segments, n_bytes, n_active = engine(_count)(segments, connections, begins)
    order = np.empty(n_segments, np.int64)
    engine(_by_stream)(segments, connections, begins.copy(), order)
    data = room(n_bytes + SLACK)
    data[n_bytes:] = 0
    # A piece ends where a segment ends, or where one begins that was captured earlier.
    pieces = np.empty(2 * n_segments + n_active, PIECE)
    active = np.empty(n_active, ACTIVE)
    n_pieces = engine(_place)(
        buf, segments, order, n_held, np.empty(n_segments, np.int64), np.empty(n_segments, np.int64), begins,
        connections, streams, clock, first_order, min(MOST_WAITING, ration), final, data, pieces, active,
        np.empty(1, JOINING),
    )  # fmt: skip
    return data, pieces[:n_pieces], active, order


@kernel
def _keep_row(kept: Array, source: Array, n: int, n_bytes: int, stream: int, one: Any, there: int, doubt: int) -> int:
    """Writes row ``n`` of ``kept``, like a piece or segment whose bytes, if there are any, are at ``there``. They are
    to stand after ``n_bytes`` others. Returns how many bytes there are then."""
    rest = kept[n]
    rest.stream = stream
    rest.pos = one.pos
    rest.len = one.len
    rest.off = n_bytes if there >= 0 else -1
    rest.time = one.time
    rest.order = one.order
    rest.clock = one.clock
    rest.doubt = doubt
    rest.packet = one.packet
    rest.ack = one.ack
    source[n] = there
    return n_bytes + (one.len if there >= 0 else 0)


@kernel
def _choose(
    segments: Array,
    pieces: Array,
    order: Array,
    active: Array,
    connections: Array,
    streams: Array,
    final: bool,
    behind: int,
    kept: Array,
    source: Array,
    waits: Array,
) -> tuple[int, int]:
    """Fills ``kept``, ``source`` and ``waits``: how many rows, and how many bytes they stand for. ``waits`` says
    whether a row is a segment, not a piece. ``behind``: the number of the next packet."""
    n = int64(0)
    n_bytes = int64(0)
    for a in range(active.shape[0]):
        row = active[a]
        stream = streams[row.stream]
        conn = connections[row.stream >> 1]
        over = conn.closed_order < AT_THE_END
        if over and conn.role == Role.UNKNOWN and behind - conn.closed_order <= LINGERS:
            over = False
        if final or over or not _wanted(conn):
            continue
        # Pieces follow each other: what is not consumed is the last of them.
        first = row.end
        while first > row.first and pieces[first - 1].pos + pieces[first - 1].len > stream.next:
            first -= 1
        for p in range(first, row.end):
            # Whole, since it counts where a piece begins.
            waits[n] = 0
            n_bytes = _keep_row(kept, source, n, n_bytes, row.stream, pieces[p], pieces[p].off, int64(0))
            n += 1
        if row.waiting == 0:
            continue
        for k in range(row.seg_first, row.seg_end):
            segment = segments[order[k]]
            # What is in doubt waits where it stands.
            reaches = segment.pos + (segment.len if segment.doubt == 1 else int64(0))
            if segment.off != ACKNOWLEDGED and reaches > stream.placed:
                waits[n] = 1
                n_bytes = _keep_row(kept, source, n, n_bytes, row.stream, segment, segment.off, segment.doubt)
                n += 1
    return n, n_bytes


@kernel
def _copy_kept(buf: Array, data: Array, kept: Array, source: Array, waits: Array, held: Array) -> None:
    """Copies the bytes of the kept rows to where they say that they are."""
    for k in range(kept.shape[0]):
        rest = kept[k]
        if rest.off >= 0:
            copy(buf if waits[k] == 1 else data, source[k], held, rest.off, rest.len)


def keep(
    buf: Array,
    segments: Array,
    data: Array,
    pieces: Array,
    order: Array,
    active: Array,
    connections: Array,
    streams: Array,
    final: bool,
    engine: Engine,
    spare: Array | None = None,
    behind: int = AT_THE_END,
) -> tuple[Array, Array]:
    """What the streams have not consumed, and what waits after holes, for the next window: (bytes, segments that point
    into them).

    Pieces are given back whole, from their first byte on: framing may believe a frame because a segment begins with it.
    Nothing is kept of connections that are of no interest or over. Those of unknown kind are an exception, if they
    ended up to ``LINGERS`` packets before number ``behind``, the next one. ``spare`` are bytes that this gave before,
    which nobody needs any more.
    """
    room = len(order) + len(pieces)
    kept = np.empty(room, SEGMENT)
    source, waits = np.empty(room, np.int64), np.empty(room, np.int64)
    n, n_bytes = engine(_choose)(
        segments, pieces, order, active, connections, streams, final, behind, kept, source, waits
    )
    held = _memory(n_bytes, spare)
    kept = joined([kept[:n]])
    engine(_copy_kept)(buf, data, kept, source, waits, held)
    return held, kept


def _memory(size: int, spare: Array | None) -> Array:
    """``size`` bytes. Of a large frame most come again with each window: fresh memory costs more than their copy."""
    room = spare if spare is None or spare.base is None else spare.base
    if room is None or not size <= len(room) <= 4 * size:
        room = np.empty(2 * size, np.uint8)
    return room[:size]
