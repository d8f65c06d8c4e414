"""Rows of frames in the order of the capture, and the rows that only the end of a capture gives.

The framing kernels write rows connection by connection. ``by_order`` sorts them by the packet that settled each, so
they have the same order and the same numbers whatever the windows are. ``tell_the_rest`` writes what is left unfinished
at the end.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.directions import Capture, mark
from kwire.kernels.engine import kernel
from kwire.kernels.layouts import ABSENT, AT_THE_END, Reason, Role, Status
from kwire.kernels.numbers import int64, prefetch
from kwire.kernels.tracking import FARTHEST_AHEAD, MOST_WINDOW

__all__ = ["body_of", "by_order", "tell_the_rest", "with_body_of"]

Array = Any

_ROWS_AHEAD: Final = 12
"""How many rows ahead one is asked for that stands anywhere."""


@kernel
def by_order(
    rows: Array, read: int, first: int, number: int, ends: Array, at: Array, place: Array, sorted_: Array, copied: Array
) -> int:
    """Fills ``sorted_`` with the numbers of the rows in the order in which they were settled. Where that is the same,
    the requests of each connection come before its responses, as in ``place``. Returns how many are unconfirmed.

    The rows before ``read`` are those of one connection after the other. Those after it stay where they are. ``first``
    is the number of the window's first packet. What was settled before it comes first. ``ends`` has two places more
    than there are packets, ``at`` one for each row. ``copied``, if it has rows, becomes the rows in that order with
    numbers from ``number`` on.
    """
    last = ends.shape[0] - 1
    for k in range(ends.shape[0]):
        ends[k] = 0
    begin = int64(0)
    slot = int64(-1)
    n = int64(0)
    unconfirmed = int64(0)
    for k in range(rows.shape[0] + 1):
        if k == rows.shape[0] or k >= read or rows[k].slot != slot:
            # After the requests, the responses: a row is looked at once.
            for j in range(begin, k):
                if at[j] < 0:
                    at[j] = -1 - at[j]
                    place[n] = j
                    n += 1
            if k == rows.shape[0]:
                break
            begin = k
            slot = rows[k].slot
        if rows[k].status == Status.UNCONFIRMED:
            unconfirmed += 1
        which = min(max(rows[k].order - first + 1, int64(0)), last)
        ends[which] += 1
        if rows[k].response == 1:
            at[k] = -1 - which
        else:
            at[k] = which
            place[n] = k
            n += 1
    total = int64(0)
    for k in range(ends.shape[0]):
        count = ends[k]
        ends[k] = total
        total += count
    for k in range(rows.shape[0]):
        which = at[place[k]]
        sorted_[ends[which]] = place[k]
        ends[which] += 1
    for k in range(copied.shape[0]):
        if k + _ROWS_AHEAD < rows.shape[0]:
            prefetch(rows, sorted_[k + _ROWS_AHEAD])
        copied[k] = rows[sorted_[k]]
        copied[k].number = number + k
    return unconfirmed


@kernel
def body_of(row: Any, kinds: Array) -> int:
    """What ``kinds`` has for the kind of a row whose body the capture has, or a part of it. Else 0.

    ``kinds`` is by twice the API key, one more for responses. It has 0 for those after its end.
    """
    kind = 2 * row.api + row.response
    status = row.status
    in_part = (status == Status.CUT_OFF or status == Status.GAP) and row.off >= 0
    known = 0 <= kind < kinds.shape[0] and (status == Status.OK or in_part)
    return int64(kinds[kind]) if known else int64(0)


@kernel
def with_body_of(rows: Array, kinds: Array, there: Array) -> None:
    """``there`` becomes ``body_of`` each row."""
    for k in range(rows.shape[0]):
        there[k] = body_of(rows[k], kinds)


@kernel
def _lost_at_the_end(stream: Any) -> int:
    """How many bytes a stream had after those that were dealt with. The capture cut them off, has a FIN or something
    empty after them, or saw them acknowledged."""
    if stream.next < 0:
        return int64(0)
    extent = stream.reference
    least = 1
    if stream.end >= 0:
        extent = min(extent, stream.end)
    else:
        # A FIN that was not captured counts as a byte, in what is acknowledged and in what follows it.
        least = 2
        if extent < stream.acked <= extent + MOST_WINDOW:
            extent = stream.acked
    missing: int = extent - stream.next
    return missing if least <= missing <= FARTHEST_AHEAD else int64(0)


@kernel
def tell_the_rest(capture: Capture, n_streams: int, now: int, rows: Array) -> bool:
    """At the end of a capture, at ``now``, a row for each stream that ends in bytes without a frame, captured or not.
    Also one for what was captured too late to be its beginning. False if ``rows`` is full."""
    room = capture.room[0]
    while room.active < n_streams:
        stream = capture.streams[room.active]
        conn = capture.connections[room.active >> 1]
        if conn.role == Role.A_REQUESTS or conn.role == Role.B_REQUESTS:
            skipped = max(int64(0), stream.skipped) if stream.synced != 1 else int64(0)
            lost = _lost_at_the_end(stream)
            if skipped + lost > 0:
                if room.frames >= rows.shape[0]:
                    return False
                client = 0 if conn.role == Role.A_REQUESTS else 1
                response = client ^ (room.active & 1)
                row = mark(rows, room, room.active >> 1, response, client, skipped + lost, Status.GAP, Reason.SKIPPED)
                row.begin = stream.next - skipped
                row.end = stream.next + lost
                row.time = stream.time if stream.time != ABSENT else now
                row.order = AT_THE_END
                stream.skipped = 0
                stream.next = row.end
            if stream.earlier >= 0:
                if room.frames >= rows.shape[0]:
                    return False
                client = 0 if conn.role == Role.A_REQUESTS else 1
                size = stream.origin - stream.earlier
                row = mark(
                    rows, room, room.active >> 1, client ^ (room.active & 1), client, size, Status.GAP, Reason.SKIPPED
                )
                row.begin = stream.earlier
                row.end = stream.origin
                row.time = stream.time if stream.time != ABSENT else now
                row.order = AT_THE_END
                stream.earlier = -1
        room.active += 1
    return True
