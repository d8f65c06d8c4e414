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
  memory.

The time of a piece is when the capture had it and all that is before it: a receiver sees no byte before those in front.

Where segments overlap with different bytes, those with the lower position win, then those captured first. A
receiver may decide otherwise; a capture cannot know.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.kernels.engine import borrowing, kernel
from kwire.kernels.layouts import ACTIVE, PIECE, SEGMENT, Role
from kwire.kernels.numbers import SLACK, copy, int64

__all__ = ["keep", "place"]

ACKED_WAIT: Final = 200_000_000
"""Nanoseconds of capture time. Packets of one host that were captured out of order are microseconds apart."""
LONGEST_WAIT: Final = 10_000_000_000
"""Nanoseconds of capture time: several retransmission timeouts."""
EARLIEST: Final = -(1 << 63)
"""A time before all others."""
MOST_WAITING: Final = 4 << 20
"""Bytes behind a hole of one stream: more than a usual receive window."""

Array = Any


@borrowing
def _wanted(conn: Any) -> bool:
    """Whether the bytes of a connection are of interest."""
    role: int = conn.role
    return role != Role.OTHER and role != Role.ENCRYPTED


# --- segments by stream -----------------------------------------------------------------------------------------------


@kernel
def _by_stream(segments: Array, n_segments: int, connections: Array, n_streams: int) -> tuple[Array, Array]:
    """The numbers of the segments of interest, by stream: (order, begins).

    Those of stream n are ``order[begins[n]:begins[n + 1]]``, in the order in which they stand in the table.
    """
    begins = np.zeros(n_streams + 1, np.int64)
    used = 0
    for k in range(n_segments):
        stream = segments[k].stream
        if _wanted(connections[stream >> 1]):
            begins[stream + 1] += 1
            used += 1
    for stream in range(n_streams):
        begins[stream + 1] += begins[stream]
    order = np.empty(used, np.int64)
    fill = begins[:-1].copy()
    for k in range(n_segments):
        stream = segments[k].stream
        if _wanted(connections[stream >> 1]):
            order[fill[stream]] = k
            fill[stream] += 1
    return order, begins


@borrowing
def _totals(segments: Array, order: Array, begins: Array) -> tuple[int, int]:
    """How many bytes the capture has of these segments, and how many streams they belong to."""
    n_bytes = 0
    for k in range(order.shape[0]):
        segment = segments[order[k]]
        if segment.off >= 0:
            n_bytes += segment.len
    n_streams = 0
    for stream in range(begins.shape[0] - 1):
        if begins[stream] < begins[stream + 1]:
            n_streams += 1
    return n_bytes, n_streams


@borrowing
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
def _sort(segments: Array, order: Array) -> None:
    """Puts the segments of one stream in order of position, those captured first in front.

    A merge sort: it keeps the order of equal positions, and no input makes it slow.
    """
    n = order.shape[0]
    sorted_already = True
    for k in range(1, n):
        if segments[order[k]].pos < segments[order[k - 1]].pos:
            sorted_already = False
            break
    if sorted_already:
        return
    source = order
    target = np.empty(n, np.int64)
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            _merge(segments, source, target, first, min(first + width, n), min(first + 2 * width, n))
        source, target = target, source
        width *= 2
    for k in range(n):
        order[k] = source[k]


# --- one stream -------------------------------------------------------------------------------------------------------


@borrowing
def _add_piece(pieces: Array, n: int, pos: int, length: int, off: int, time: int, order: int) -> int:
    """Writes piece ``n``; returns ``n`` + 1."""
    piece = pieces[n]
    piece.pos = pos
    piece.len = length
    piece.off = off
    piece.time = time
    piece.order = order
    return n + 1


@borrowing
def _may_be_filled(hole_end: int, waited: int, behind: int, acked: int, most: int) -> bool:
    """Whether a hole of an open connection may still be filled by a packet to come.

    ``waited``: nanoseconds since the first segment behind it was captured; ``behind``: bytes that wait, of which there
    may be ``most``; ``acked``: position up to which the receiver has acknowledged the stream.
    """
    lost = acked >= hole_end and waited > ACKED_WAIT
    return not (lost or waited > LONGEST_WAIT or behind > most)


@borrowing
def _join(
    buf: Array,
    segments: Array,
    order: Array,
    active: Any,
    stream: Any,
    over: bool,
    now: int,
    most: int,
    data: Array,
    at: int,
    pieces: Array,
    n_pieces: int,
) -> tuple[int, int]:
    """Joins the segments of one stream, which are in order, behind ``data[:at]`` and ``pieces[:n_pieces]``.

    ``over``: nothing more will come; ``most``: bytes that may wait behind a hole. Returns how far data and pieces go
    then.
    """
    first = segments[order[active.seg_first]]
    cursor = stream.next
    if cursor < 0:
        # The capture begins in the middle of this stream.
        cursor = first.pos
        stream.next = cursor
        stream.synced = 0
    acked = stream.acked
    # Of the segments that are joined: one that only repeats what was dealt with says nothing about the others.
    latest = int64(EARLIEST)
    latest_order = int64(-1)
    lost_to = int64(-1)
    lost_time = int64(0)
    lost_order = int64(0)
    behind = int64(0)
    for k in range(active.seg_first, active.seg_end):
        segment = segments[order[k]]
        if segment.off >= 0:
            behind += segment.len
    for k in range(active.seg_first, active.seg_end):
        segment = segments[order[k]]
        pos = segment.pos
        length = segment.len
        off = segment.off
        if off >= 0:
            behind -= length
        if pos + length <= cursor:
            continue
        if off < 0:
            if pos <= max(cursor, lost_to) and pos + length > lost_to:
                lost_to = pos + length
                lost_time = segment.time
                lost_order = segment.order
            continue
        if pos > cursor:
            if lost_to < pos and not over and _may_be_filled(pos, now - segment.time, behind, acked, most):
                active.waiting = 1
                return at, n_pieces
            if lost_to > cursor:
                n_pieces = _add_piece(pieces, n_pieces, cursor, min(lost_to, pos) - cursor, -1, lost_time, lost_order)
            cursor = pos
        skip = cursor - pos
        length -= skip
        copy(buf, off + skip, data, at, length)
        latest = max(latest, segment.time)
        latest_order = max(latest_order, segment.order)
        n_pieces = _add_piece(pieces, n_pieces, cursor, length, at, latest, latest_order)
        at += length
        cursor += length
    if lost_to > cursor:
        n_pieces = _add_piece(pieces, n_pieces, cursor, lost_to - cursor, -1, lost_time, lost_order)
    return at, n_pieces


# --- a window ---------------------------------------------------------------------------------------------------------


@kernel
def place(
    buf: Array,
    segments: Array,
    n_segments: int,
    connections: Array,
    streams: Array,
    n_streams: int,
    now: int,
    ration: int,
    final: bool,
) -> tuple[Array, Array, Array, Array]:
    """Orders segments and joins their bytes: (data, pieces, active, order).

    ``now`` is the time of the newest packet, ``ration`` how many bytes of a stream may wait behind a hole (if less than
    ``MOST_WAITING``), ``final`` that no packet will follow. ``order`` holds the numbers of the segments by stream and
    position. ``data`` ends with ``SLACK`` bytes that mean nothing.
    """
    order, begins = _by_stream(segments, n_segments, connections, n_streams)
    n_bytes, n_active = _totals(segments, order, begins)
    data = np.empty(n_bytes + SLACK, np.uint8)
    data[n_bytes:] = 0
    # Each segment with bytes is a piece, with lost bytes in front of it perhaps, and lost bytes may end a stream.
    pieces = np.empty(2 * order.shape[0] + n_active, PIECE)
    active = np.empty(n_active, ACTIVE)
    most = min(MOST_WAITING, ration)
    at = 0
    n_pieces = 0
    a = 0
    for stream in range(n_streams):
        first = begins[stream]
        end = begins[stream + 1]
        if first == end:
            continue
        _sort(segments, order[first:end])
        row = active[a]
        row.stream = stream
        row.first = n_pieces
        row.waiting = 0
        row.seg_first = first
        row.seg_end = end
        over = final or connections[stream >> 1].closed == 1
        at, n_pieces = _join(buf, segments, order, row, streams[stream], over, now, most, data, at, pieces, n_pieces)
        row.end = n_pieces
        a += 1
    return data, pieces[:n_pieces], active, order


@borrowing
def _keep_rest(
    segments: Array, order: Array, active: Any, covered: int, kept: Array, source: Array, n: int, n_bytes: int
) -> tuple[int, int]:
    """Writes what is behind position ``covered`` of one stream to rows ``n`` and following of ``kept``.

    ``source`` gets where the bytes stand in the window; they are to stand behind ``n_bytes`` others. Returns how many
    rows and bytes there are then.
    """
    for k in range(active.seg_first, active.seg_end):
        segment = segments[order[k]]
        pos = segment.pos
        off = segment.off
        end = pos + segment.len
        if end <= covered:
            continue
        skip = max(int64(0), covered - pos)
        rest = kept[n]
        rest.stream = active.stream
        rest.pos = pos + skip
        rest.len = end - pos - skip
        rest.off = -1
        rest.time = segment.time
        rest.order = segment.order
        if off >= 0:
            rest.off = n_bytes
            source[n] = off + skip
            n_bytes += end - pos - skip
            covered = end
        n += 1
    return n, n_bytes


@kernel
def keep(
    buf: Array, segments: Array, order: Array, active: Array, connections: Array, streams: Array, final: bool
) -> tuple[Array, Array]:
    """What the streams have not consumed, for the next window: (bytes, segments that point into them).

    A segment that repeats what earlier ones have is left out, so that retransmissions behind a hole do not pile up.
    Nothing is kept of connections that are of no interest or closed.
    """
    n = int64(0)
    n_bytes = int64(0)
    kept = np.empty(order.shape[0], SEGMENT)
    source = np.empty(order.shape[0], np.int64)
    for a in range(active.shape[0]):
        row = active[a]
        stream = streams[row.stream]
        conn = connections[row.stream >> 1]
        consumed = stream.end >= 0 and stream.next >= stream.end
        if not (final or consumed or conn.closed == 1) and _wanted(conn):
            n, n_bytes = _keep_rest(segments, order, row, stream.next, kept, source, n, n_bytes)
    held = np.empty(n_bytes, np.uint8)
    for k in range(n):
        rest = kept[k]
        if rest.off >= 0:
            copy(buf, source[k], held, rest.off, rest.len)
    return held, kept[:n].copy()
