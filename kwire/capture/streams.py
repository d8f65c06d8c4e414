"""TCP segments to streams: put in order, duplicates dropped, holes waited for or given up; the third kernel.

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

from kwire.jit import int64, kernel
from kwire.protocol.state import (
    A_END,
    A_FIRST,
    A_SEG_END,
    A_SEG_FIRST,
    A_STREAM,
    A_WAITING,
    ACTIVE_COLUMNS,
    C_CLOSED,
    C_ROLE,
    P_LEN,
    P_OFF,
    P_POS,
    P_TIME,
    PIECE_COLUMNS,
    ROLE_ENCRYPTED,
    ROLE_OTHER,
    S_ACKED,
    S_END,
    S_NEXT,
    S_SYNC,
    SEG_LEN,
    SEG_OFF,
    SEG_POS,
    SEG_STREAM,
    SEG_TIME,
    SEGMENT_COLUMNS,
)

__all__ = ["keep", "place"]

ACKED_WAIT: Final = 200_000_000
"""Nanoseconds of capture time. Packets of one host that were captured out of order are microseconds apart."""
LONGEST_WAIT: Final = 10_000_000_000
"""Nanoseconds of capture time: several retransmission timeouts."""
MOST_WAITING: Final = 4 << 20
"""Bytes behind a hole of one stream: more than a usual receive window."""

SLACK: Final = 32
"""Bytes after the joined data that may be read but mean nothing."""

Array = Any


@kernel
def place(
    buf: Array,
    segs: Array,
    n_segs: int,
    conns: Array,
    streams: Array,
    n_streams: int,
    now: int,
    ration: int,
    final: bool,
) -> tuple[Array, Array, Array, Array]:
    """Orders segments and joins their bytes: (data, pieces, active, order).

    ``now`` is the time of the newest packet, ``ration`` how many bytes of a stream may wait behind a hole (if less than
    ``MOST_WAITING``), ``final`` that no packet will follow. ``order`` holds the numbers of the
    segments by stream and position. Columns as in ``kwire.protocol.state``.
    """
    # Counting sort by stream.
    begins = np.zeros(n_streams + 1, np.int64)
    total = 0
    used = 0
    for k in range(n_segs):
        stream = segs[k, SEG_STREAM]
        role = conns[stream >> 1, C_ROLE]
        if role in (ROLE_OTHER, ROLE_ENCRYPTED):
            continue
        begins[stream + 1] += 1
        used += 1
        if segs[k, SEG_OFF] >= 0:
            total += segs[k, SEG_LEN]
    n_active = 0
    for stream in range(n_streams):
        if begins[stream + 1] > 0:
            n_active += 1
        begins[stream + 1] += begins[stream]
    order = np.empty(used, np.int64)
    fill = begins[:-1].copy()
    for k in range(n_segs):
        stream = segs[k, SEG_STREAM]
        role = conns[stream >> 1, C_ROLE]
        if role in (ROLE_OTHER, ROLE_ENCRYPTED):
            continue
        order[fill[stream]] = k
        fill[stream] += 1

    data = np.empty(total + SLACK, np.uint8)
    data[total:] = 0
    at = 0
    # Each segment with bytes is a piece, with lost bytes in front of it perhaps, and lost bytes may end a stream.
    pieces = np.empty((2 * used + n_active, PIECE_COLUMNS), np.int64)
    n_pieces = 0
    active = np.empty((n_active, ACTIVE_COLUMNS), np.int64)
    a = 0
    for stream in range(n_streams):
        first = begins[stream]
        end = begins[stream + 1]
        if first == end:
            continue

        # By position, those captured first in front.
        sorted_already = True
        for i in range(first + 1, end):
            if segs[order[i], SEG_POS] < segs[order[i - 1], SEG_POS]:
                sorted_already = False
                break
        if not sorted_already:
            mine = order[first:end].copy()
            keys = np.empty(end - first, np.int64)
            for i in range(end - first):
                keys[i] = segs[mine[i], SEG_POS]
            ranks = np.argsort(keys, kind="mergesort")
            for i in range(end - first):
                order[first + i] = mine[ranks[i]]

        active[a, A_STREAM] = stream
        active[a, A_FIRST] = n_pieces
        active[a, A_WAITING] = 0
        active[a, A_SEG_FIRST] = first
        active[a, A_SEG_END] = end

        cursor = streams[stream, S_NEXT]
        if cursor < 0:
            # The capture begins in the middle of this stream.
            cursor = segs[order[first], SEG_POS]
            streams[stream, S_NEXT] = cursor
            streams[stream, S_SYNC] = 0
        over = final or conns[stream >> 1, C_CLOSED] == 1
        acked = streams[stream, S_ACKED]
        lost_to = int64(-1)
        lost_time = int64(0)
        behind = int64(0)
        latest = segs[order[first], SEG_TIME]
        for i in range(first, end):
            if segs[order[i], SEG_OFF] >= 0:
                behind += segs[order[i], SEG_LEN]
        for i in range(first, end):
            seg = order[i]
            pos = segs[seg, SEG_POS]
            length = segs[seg, SEG_LEN]
            if segs[seg, SEG_OFF] >= 0:
                behind -= length
            if pos + length <= cursor:
                continue
            if segs[seg, SEG_OFF] < 0:
                if pos <= max(cursor, lost_to) and pos + length > lost_to:
                    lost_to = pos + length
                    lost_time = segs[seg, SEG_TIME]
                continue
            if pos > cursor:
                if lost_to < pos and not over:
                    waited = now - segs[seg, SEG_TIME]
                    if not (
                        (acked >= pos and waited > ACKED_WAIT)
                        or waited > LONGEST_WAIT
                        or behind > min(MOST_WAITING, ration)
                    ):
                        active[a, A_WAITING] = 1
                        break
                if lost_to > cursor:
                    pieces[n_pieces, P_POS] = cursor
                    pieces[n_pieces, P_LEN] = min(lost_to, pos) - cursor
                    pieces[n_pieces, P_OFF] = -1
                    pieces[n_pieces, P_TIME] = lost_time
                    n_pieces += 1
                cursor = pos
            skip = cursor - pos
            off = segs[seg, SEG_OFF] + skip
            length -= skip
            data[at : at + length] = buf[off : off + length]
            pieces[n_pieces, P_POS] = cursor
            pieces[n_pieces, P_LEN] = length
            pieces[n_pieces, P_OFF] = at
            latest = max(latest, segs[seg, SEG_TIME])
            pieces[n_pieces, P_TIME] = latest
            n_pieces += 1
            at += length
            cursor += length
        if active[a, A_WAITING] == 0 and lost_to > cursor:
            pieces[n_pieces, P_POS] = cursor
            pieces[n_pieces, P_LEN] = lost_to - cursor
            pieces[n_pieces, P_OFF] = -1
            pieces[n_pieces, P_TIME] = lost_time
            n_pieces += 1
        active[a, A_END] = n_pieces
        a += 1
    return data, pieces[:n_pieces], active, order


@kernel
def keep(
    buf: Array, segs: Array, order: Array, active: Array, conns: Array, streams: Array, final: bool
) -> tuple[Array, Array]:
    """What the streams have not consumed, for the next window: (bytes, segments that point into them).

    A segment that repeats what earlier ones have is left out, so that retransmissions behind a hole do not pile up.
    Nothing is kept of connections that are of no interest or closed.
    """
    n = 0
    total = 0
    kept = np.empty((order.shape[0], SEGMENT_COLUMNS), np.int64)
    source = np.empty(order.shape[0], np.int64)
    for a in range(active.shape[0]):
        stream = active[a, A_STREAM]
        slot = stream >> 1
        role = conns[slot, C_ROLE]
        if final or role in (ROLE_OTHER, ROLE_ENCRYPTED) or conns[slot, C_CLOSED] == 1:
            continue
        covered = streams[stream, S_NEXT]
        ended = streams[stream, S_END]
        if ended >= 0 and covered >= ended:
            continue
        for i in range(active[a, A_SEG_FIRST], active[a, A_SEG_END]):
            seg = order[i]
            pos = segs[seg, SEG_POS]
            end = pos + segs[seg, SEG_LEN]
            if end <= covered:
                continue
            skip = max(int64(0), covered - pos)
            kept[n, SEG_STREAM] = stream
            kept[n, SEG_POS] = pos + skip
            kept[n, SEG_LEN] = end - pos - skip
            kept[n, SEG_TIME] = segs[seg, SEG_TIME]
            if segs[seg, SEG_OFF] >= 0:
                kept[n, SEG_OFF] = total
                source[n] = segs[seg, SEG_OFF] + skip
                total += end - pos - skip
                covered = end
            else:
                kept[n, SEG_OFF] = -1
            n += 1
    held = np.empty(total, np.uint8)
    for i in range(n):
        off = kept[i, SEG_OFF]
        if off >= 0:
            length = kept[i, SEG_LEN]
            held[off : off + length] = buf[source[i] : source[i] + length]
    return held, kept[:n].copy()
