"""TCP segments to streams: put in order, duplicates dropped, holes waited for or given up.

Strategy: segments of all connections come as one table. They are brought together by stream (a counting sort, which
keeps their order), sorted by position where they are not in order already, and walked once: what the stream has is
skipped, what follows is copied behind what is there. The walk only plans and copies; it does not change what a
stream has consumed. That is the framing's business, and afterwards ``keep`` collects what was not consumed (the
beginning of a frame, segments behind a hole), which comes back in front of the next window's segments. One
mechanism serves all that spans windows.

A hole is given up, and becomes a gap, when

- the capture has ended, the connection was closed, or the bytes are known to be lost (snapshot length);
- the receiver has acknowledged what stands behind it, ``ACKED_WAIT`` ago: it got the bytes, the capture did not;
- the first segment behind it has waited for ``LONGEST_WAIT``;
- more than ``MOST_WAITING`` bytes wait behind it, or less where all streams together wait for too much: this bounds
  memory, and how much is looked at again in each window. A segment counts as no less than its row has (``LEAST``).

The time of a piece is when the capture had it and all that is before it: a receiver sees no byte before those in front.

Where segments overlap, the bytes are those of the segment that was captured first, and so is their time: what the
receiver had first, in any window. A receiver may decide otherwise where copies differ; a capture cannot know.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, kernel
from kwire.kernels.layouts import ACTIVE, AT_THE_END, PIECE, SEGMENT, Role, joined
from kwire.kernels.numbers import SLACK, copy, int64

__all__ = ["first_from", "keep", "place"]

ACKED_WAIT: Final = 200_000_000
"""Nanoseconds of capture time. Packets of one host that were captured out of order are microseconds apart."""
LONGEST_WAIT: Final = 10_000_000_000
"""Nanoseconds of capture time: several retransmission timeouts."""
MOST_WAITING: Final = 4 << 20
"""Bytes behind a hole of one stream: more than a usual receive window."""
LEAST: Final = SEGMENT.itemsize
"""Bytes that a segment behind a hole counts for at least: many may have a byte, or none that the capture has."""

Array = Any


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
def _merge(segments: Array, source: Array, target: Array, first: int, middle: int, end: int) -> None:
    """Two neighbouring parts of ``source``, each in order of position, as one in ``target``."""
    left = first
    right = middle
    for k in range(first, end):
        if left < middle and (right >= end or segments[source[left]].pos <= segments[source[right]].pos):
            target[k] = source[left]
            left += 1
        else:
            target[k] = source[right]
            right += 1


@kernel
def _sort(segments: Array, order: Array, spare: Array, first: int, end: int) -> None:
    """Puts the segments of one stream, ``order[first:end]``, in order of position, those captured first in front.

    A merge sort: it keeps the order of equal positions, and no input makes it slow. ``spare`` is as long as ``order``.
    """
    sorted_already = True
    for k in range(first + 1, end):
        if segments[order[k]].pos < segments[order[k - 1]].pos:
            sorted_already = False
            break
    if sorted_already:
        return
    width = 1
    while width < end - first:
        for left in range(first, end, 2 * width):
            _merge(segments, order, spare, left, min(left + width, end), min(left + 2 * width, end))
        for k in range(first, end):
            order[k] = spare[k]
        width *= 2


# --- one stream -------------------------------------------------------------------------------------------------------


@kernel
def _add_piece(pieces: Array, n: int, pos: int, length: int, off: int, time: int, order: int, shown: int) -> int:
    """Writes piece ``n``, at which the clock showed ``shown``; returns ``n`` + 1."""
    piece = pieces[n]
    piece.pos = pos
    piece.len = length
    piece.off = off
    piece.time = time
    piece.order = order
    piece.clock = shown
    return n + 1


@kernel
def _may_be_filled(hole_end: int, waited: int, behind: int, acked: int, most: int) -> bool:
    """Whether a hole of an open connection may still be filled by a packet to come.

    ``waited``: nanoseconds since the first segment behind it was captured; ``behind``: bytes that wait, of which there
    may be ``most``; ``acked``: position up to which the receiver has acknowledged the stream.
    """
    lost = acked >= hole_end and waited > ACKED_WAIT
    return not (lost or waited > LONGEST_WAIT or behind > most)


@kernel
def first_from(clock: Array, first_order: int, time: int) -> int:
    """The number of the first packet of a window with which the clock showed ``time``; ``AT_THE_END`` if none.

    ``clock`` is, for each packet of the window, the latest time that was seen up to it; ``first_order`` is the number
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
def _given_up(clock: Array, first_order: int, over_order: int, acked: bool, time: int) -> int:
    """When a hole was given up, as the number of a packet, from whose time on the first segment behind it waited."""
    order = min(over_order, first_from(clock, first_order, time + LONGEST_WAIT + 1))
    if acked:
        order = min(order, first_from(clock, first_order, time + ACKED_WAIT + 1))
    return order


@kernel
def _weight(segment: Any) -> int:
    """How many bytes of memory a segment that waits counts for."""
    weight: int = max(segment.len, int64(LEAST)) if segment.off >= 0 else int64(LEAST)
    return weight


@kernel
def _push(segments: Array, heap: Array, base: int, size: int, which: int) -> int:
    """Puts segment ``which`` on the heap ``heap[base : base + size]``, whose first one was captured first; its size."""
    at = int64(size)
    while at > 0:
        above = (at - 1) >> 1
        if segments[heap[base + above]].order <= segments[which].order:
            break
        heap[base + at] = heap[base + above]
        at = above
    heap[base + at] = which
    return size + 1


@kernel
def _pop(segments: Array, heap: Array, base: int, size: int) -> int:
    """Takes the first one off the heap; its size."""
    size -= 1
    last = heap[base + size]
    at = int64(0)
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and segments[heap[base + below + 1]].order < segments[heap[base + below]].order:
            below += 1
        if segments[last].order <= segments[heap[base + below]].order:
            break
        heap[base + at] = heap[base + below]
        at = below
    heap[base + at] = last
    return size


@kernel
def _next_part(
    segments: Array, order: Array, heap: Array, base: int, size: int, k: int, end: int, cursor: int
) -> tuple[int, int, int, int, int]:
    """The next bytes of a stream from position ``cursor`` on: (segment, -1 if there are none; their first position; the
    position behind them, which is the next ``cursor``; ``k`` and ``size`` for the next call).

    ``order[k:end]`` are the segments that are still to come. Of those that have the same bytes the one that was
    captured first gives them: those that begin at ``cursor`` or before, and may go on behind it, are on a heap,
    ``heap[base : base + size]``, empty at first. Each segment comes onto it and leaves it once, however they overlap.
    """
    while size > 0 and segments[heap[base]].pos + segments[heap[base]].len <= cursor:
        size = _pop(segments, heap, base, size)
    begin = int64(cursor)
    if size == 0:
        while k < end and (segments[order[k]].off < 0 or segments[order[k]].pos + segments[order[k]].len <= cursor):
            k += 1
        if k >= end:
            return int64(-1), begin, begin, int64(k), int64(size)
        begin = max(begin, segments[order[k]].pos)
    while k < end and segments[order[k]].pos <= begin:
        one = segments[order[k]]
        if one.off >= 0 and one.pos + one.len > begin:
            size = _push(segments, heap, base, size, order[k])
        k += 1
    taken = heap[base]
    first = segments[taken]
    limit = first.pos + first.len
    while k < end and segments[order[k]].pos < limit:
        one = segments[order[k]]
        if one.off >= 0:
            if one.order < first.order:
                limit = one.pos
                break
            if one.pos + one.len > limit:
                size = _push(segments, heap, base, size, order[k])
        k += 1
    return int64(taken), begin, limit, int64(k), int64(size)


@kernel
def _join(
    buf: Array,
    segments: Array,
    order: Array,
    heap: Array,
    active: Any,
    stream: Any,
    over: bool,
    over_order: int,
    clock: Array,
    first_order: int,
    now: int,
    most: int,
    data: Array,
    at: int,
    pieces: Array,
    n_pieces: int,
) -> tuple[int, int]:
    """Joins the segments of one stream, which are in order, behind ``data[:at]`` and ``pieces[:n_pieces]``.

    ``over``: nothing more will come, from packet ``over_order`` on; ``most``: bytes that may wait behind a hole.
    ``heap`` is as long as ``order``. Returns how far data and pieces go then.
    """
    first = segments[order[active.seg_first]]
    cursor = stream.next
    if cursor < 0:
        # The capture begins in the middle of this stream.
        cursor = first.pos
        stream.next = cursor
        stream.synced = 0
    acked = stream.acked
    # What repeats earlier bytes is passed over, and delays nothing, even where it is the first here.
    latest = stream.latest
    latest_order = stream.order
    shown = stream.clock
    lost_to = int64(-1)
    lost_time = int64(0)
    lost_order = int64(0)
    lost_shown = int64(0)
    behind = int64(0)
    for k in range(active.seg_first, active.seg_end):
        behind += _weight(segments[order[k]])
    counted = int64(active.seg_first)
    lost = int64(active.seg_first)
    k = int64(active.seg_first)
    size = int64(0)
    while True:
        # What is known to be lost, from here on.
        while lost < active.seg_end and segments[order[lost]].pos <= max(cursor, lost_to):
            segment = segments[order[lost]]
            if segment.off < 0 and segment.pos + segment.len > lost_to:
                lost_to = segment.pos + segment.len
                lost_time = segment.time
                lost_order = segment.order
                lost_shown = segment.clock
            lost += 1
        which, begin, end, k, size = _next_part(
            segments, order, heap, active.seg_first, size, k, active.seg_end, cursor
        )
        while counted < k:
            behind -= _weight(segments[order[counted]])
            counted += 1
        if which < 0:
            break
        segment = segments[which]
        if begin > cursor:
            if lost_to < begin:
                if not over and _may_be_filled(begin, now - segment.clock, behind, acked, most):
                    active.waiting = 1
                    return at, n_pieces
                if behind <= most:
                    given_up = _given_up(clock, first_order, over_order, acked >= begin, segment.clock)
                    latest_order = max(latest_order, given_up)
            if lost_to > cursor:
                n_pieces = _add_piece(
                    pieces, n_pieces, cursor, min(lost_to, begin) - cursor, -1, lost_time, lost_order, lost_shown
                )
            cursor = begin
        length = end - begin
        copy(buf, segment.off + begin - segment.pos, data, at, length)
        latest = max(latest, segment.time)
        latest_order = max(latest_order, segment.order)
        shown = max(shown, segment.clock)
        n_pieces = _add_piece(pieces, n_pieces, cursor, length, at, latest, latest_order, shown)
        at += length
        cursor = end
    if lost_to > cursor:
        n_pieces = _add_piece(pieces, n_pieces, cursor, lost_to - cursor, -1, lost_time, lost_order, lost_shown)
    return at, n_pieces


# --- a window ---------------------------------------------------------------------------------------------------------


@kernel
def _place(
    buf: Array,
    segments: Array,
    order: Array,
    spare: Array,
    begins: Array,
    connections: Array,
    streams: Array,
    clock: Array,
    first_order: int,
    now: int,
    most: int,
    final: bool,
    data: Array,
    pieces: Array,
    active: Array,
) -> int:
    """Fills the tables of ``place``: how many pieces there are."""
    at = int64(0)
    n_pieces = int64(0)
    a = 0
    for stream in range(begins.shape[0] - 1):
        first = begins[stream]
        end = begins[stream + 1]
        if first == end:
            continue
        _sort(segments, order, spare, first, end)
        row = active[a]
        row.stream = stream
        row.first = n_pieces
        row.waiting = 0
        row.seg_first = first
        row.seg_end = end
        conn = connections[stream >> 1]
        over_order = conn.closed_order if conn.closed == 1 else int64(AT_THE_END)
        at, n_pieces = _join(
            buf, segments, order, spare, row, streams[stream], final or conn.closed == 1, over_order, clock,
            first_order, now, most, data, at, pieces, n_pieces,
        )  # fmt: skip
        row.end = n_pieces
        a += 1
    return n_pieces


def place(
    buf: Array,
    segments: Array,
    connections: Array,
    streams: Array,
    n_streams: int,
    clock: Array,
    first_order: int,
    now: int,
    ration: int,
    final: bool,
    engine: Engine,
) -> tuple[Array, Array, Array, Array]:
    """Orders segments and joins their bytes: (data, pieces, active, order).

    ``clock`` and ``first_order`` are as for ``first_from``, ``now`` is the time of the newest packet, ``ration`` how
    many bytes of a stream may wait behind a hole (if less than ``MOST_WAITING``), ``final`` that no packet will follow.
    ``order`` holds the numbers of the segments by stream and position. ``data`` ends with ``SLACK`` bytes that mean
    nothing.
    """
    begins = np.zeros(n_streams + 1, np.int64)
    n_segments, n_bytes, n_active = engine(_count)(segments, connections, begins)
    order = np.empty(n_segments, np.int64)
    engine(_by_stream)(segments, connections, begins.copy(), order)
    data = np.empty(n_bytes + SLACK, np.uint8)
    data[n_bytes:] = 0
    # A piece ends where a segment begins or ends, may have lost bytes in front of it, and lost bytes may end a stream.
    pieces = np.empty(4 * n_segments + n_active, PIECE)
    active = np.empty(n_active, ACTIVE)
    n_pieces = engine(_place)(
        buf, segments, order, np.empty(n_segments, np.int64), begins, connections, streams, clock,
        first_order, now, min(MOST_WAITING, ration), final, data, pieces, active,
    )  # fmt: skip
    return data, pieces[:n_pieces], active, order


@kernel
def _keep_rest(
    segments: Array,
    order: Array,
    heap: Array,
    active: Any,
    covered: int,
    kept: Array,
    source: Array,
    n: int,
    n_bytes: int,
) -> tuple[int, int]:
    """Writes what is behind position ``covered`` of one stream to rows ``n`` and following of ``kept``, without what
    others have too.

    ``source`` gets where the bytes stand in the window; they are to stand behind ``n_bytes`` others. Returns how many
    rows and bytes there are then.
    """
    for k in range(active.seg_first, active.seg_end):
        segment = segments[order[k]]
        if segment.off < 0 and segment.pos + segment.len > covered:
            rest = kept[n]
            rest.stream = active.stream
            rest.pos = max(covered, segment.pos)
            rest.len = segment.pos + segment.len - rest.pos
            rest.off = -1
            rest.time = segment.time
            rest.order = segment.order
            rest.clock = segment.clock
            n += 1
    k = int64(active.seg_first)
    cursor = int64(covered)
    size = int64(0)
    while True:
        which, begin, end, k, size = _next_part(
            segments, order, heap, active.seg_first, size, k, active.seg_end, cursor
        )
        if which < 0:
            break
        segment = segments[which]
        rest = kept[n]
        rest.stream = active.stream
        rest.pos = begin
        rest.len = end - begin
        rest.off = n_bytes
        rest.time = segment.time
        rest.order = segment.order
        rest.clock = segment.clock
        source[n] = segment.off + begin - segment.pos
        n_bytes += end - begin
        cursor = end
        n += 1
    return n, n_bytes


@kernel
def _choose(
    segments: Array,
    order: Array,
    heap: Array,
    active: Array,
    connections: Array,
    streams: Array,
    final: bool,
    kept: Array,
    source: Array,
) -> tuple[int, int]:
    """Fills ``kept`` and ``source``: how many rows, and how many bytes they stand for."""
    n = int64(0)
    n_bytes = int64(0)
    for a in range(active.shape[0]):
        row = active[a]
        stream = streams[row.stream]
        conn = connections[row.stream >> 1]
        consumed = stream.end >= 0 and stream.next >= stream.end
        if not (final or consumed or conn.closed == 1) and _wanted(conn):
            n, n_bytes = _keep_rest(segments, order, heap, row, stream.next, kept, source, n, n_bytes)
    return n, n_bytes


@kernel
def _copy_kept(buf: Array, kept: Array, source: Array, held: Array) -> None:
    """Copies the bytes of the kept segments to where their rows say that they are."""
    for k in range(kept.shape[0]):
        rest = kept[k]
        if rest.off >= 0:
            copy(buf, source[k], held, rest.off, rest.len)


def keep(
    buf: Array,
    segments: Array,
    order: Array,
    active: Array,
    connections: Array,
    streams: Array,
    final: bool,
    engine: Engine,
) -> tuple[Array, Array]:
    """What the streams have not consumed, for the next window: (bytes, segments that point into them).

    A segment that repeats what earlier ones have is left out, so that retransmissions behind a hole do not pile up.
    Nothing is kept of connections that are of no interest or closed.
    """
    kept = np.empty(2 * len(order), SEGMENT)
    source = np.empty(2 * len(order), np.int64)
    n, n_bytes = engine(_choose)(
        segments, order, np.empty_like(order), active, connections, streams, final, kept, source
    )
    held = np.empty(n_bytes, np.uint8)
    kept = joined([kept[:n]])
    engine(_copy_kept)(buf, kept, source, held)
    return held, kept
