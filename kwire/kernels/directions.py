"""One direction of a connection while it is read: where its reader stands, and what it has seen.

Both directions of a connection are read side by side, packet by packet. With each packet a reader sees what that packet
put in order (``Direction.seen``), and nothing else. So what is made of a stream cannot depend on what came later, nor
on where a window ends.

Rules kept here:

- The clock is that of the packets: it is the latest time so far, and it never goes back.
- Nothing is allocated. Where a table of rows is full, the reader stops (``FULL``), and goes on at the same frame.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.layouts import ABSENT, AT_THE_END, Reason, Role, Row, Wide, table_type
from kwire.kernels.names import LONGEST_NAME, has_room
from kwire.kernels.numbers import int64
from kwire.kernels.roles import (
    LARGEST_FRAME,
    NEVER,
    Window,
)

__all__ = [
    "BLOCKED",
    "DIRECTION",
    "FULL",
    "READ",
    "UNREADABLE",
    "WAITS",
    "Capture",
    "Direction",
    "Scratch",
    "begin_direction",
    "begin_run",
    "end_lost",
    "following_packet",
    "go_on",
    "has_hole",
    "is_full",
    "mark",
    "mark_here",
    "meet_event",
    "only_grows",
    "piece_with_end",
    "see",
]

Array = Any

# How the reading of a run went on.
READ: Final = 0
"""To its end, or past one frame."""

WAITS: Final = 1
"""What follows is the beginning of a frame: more is needed."""

BLOCKED: Final = 2
"""A response whose request may still come."""

FULL: Final = 3
"""A table must grow first."""

UNREADABLE: Final = 4
"""The connection is encrypted."""


class Capture(NamedTuple):
    """The state of a capture: tables of the record types of ``kwire.kernels.layouts``."""

    connections: Array
    streams: Array
    waiting: Array
    ids: Array
    """The hash table of ``waiting``. It has as many places as that has rows or more, a power of 2; -1 for none."""
    names: Array
    pool: Array
    lookup: Array
    names_used: Array
    """One row."""
    room: Array
    """One row."""


class Scratch(NamedTuple):
    """Room for what kernels write down and forget."""

    readers: Array
    """Two rows of DIRECTION: requests and responses."""
    registers: Array
    left: Array
    no_rows: Array


class Direction(Row):
    """One direction of a connection while it is read, run by run, packet by packet."""

    slot: int
    response: int
    client_side: int
    stream: int
    now: Wide
    """The packet up to which the connection is read."""
    over: int
    """1 when nothing will follow: the capture or the connection has ended."""
    end_piece: int
    """Its pieces end before this row."""
    seen: int
    """Those that can be seen now do."""
    event: Wide
    """Of requests: the next packet with which something else happens to the connection; NEVER for none here."""
    fresh: int
    """1 when something has come since it was read."""
    holed_since: Wide
    """Since which packet segments wait after a hole, in the end; AT_THE_END if none do."""
    blocked: int
    """1 while a response waits for its request,"""
    wake: Wide
    """with which packet it is given up, unless there is a hole."""
    unsure: int
    """1 while the first request waits for an answer that says that it is one, or up to packet ``wake``. Until then
    nothing of the other direction is read."""
    gives_way: int
    """1 while requests stand still until the other direction is read up to where a response is proven,"""
    gave_way: Wide
    """which they do once with each packet, at this position."""
    first: int
    """The piece that the next run begins with."""
    reading: int
    """1 within a run, 0 before the next one begins."""
    pos: Wide
    """Where the next frame begins."""
    piece: int
    """The piece that ``pos`` is in."""
    run_end: Wide
    after: int
    """The row after the last piece of this run that can be seen."""
    compared: int
    """Pieces before this row do not begin with another frame inside of the one that is read."""
    around: Wide
    """Where the frame that is read begins."""
    answers: int
    """How many segments inside this frame look like responses to requests that were sent after the frame began."""
    answered_order: int
    """The packet at which the last of them was recognised."""
    first_answer: int
    """Where the first of them begins."""
    needs: Wide
    """Do not look again until the stream reaches this position, or until a new frame may begin. -1 where that is not
    known."""
    shift: Wide
    """Makes an offset in the data of a position in this run."""
    gap_follows: int
    ends_here: int
    """1 when nothing will follow this run without a gap."""


DIRECTION: Final = table_type(Direction)


@inlined
def is_full(capture: Capture, rows: Array) -> bool:
    """Whether one more frame, with what it may leave behind, does not fit."""
    room = capture.room[0]
    if room.frames >= rows.shape[0] or (room.free < 0 and room.waiting >= capture.waiting.shape[0]):
        return True
    return not has_room(capture.names_used[0], capture.names, capture.pool, capture.lookup, LONGEST_NAME)


@kernel
def mark(
    rows: Array, room: Any, slot: int, response: int, client_side: int, size: int, status: int, reason: int
) -> Any:
    """A row for bytes in which no frame can be seen; the caller sets its time and order."""
    row = rows[room.frames]
    room.frames += 1
    row.slot = slot
    row.response = response
    row.client_side = client_side
    row.begin = ABSENT
    row.end = ABSENT
    row.off = -1
    row.seen = 0
    row.size = size
    row.api = ABSENT
    row.version = ABSENT
    row.id = ABSENT
    row.client = -1
    row.latency = ABSENT
    row.status = status
    row.reason = reason
    row.detail = size
    return row


@kernel
def mark_here(window: Window, capture: Capture, rows: Array, reader: Any, size: int, status: int, reason: int) -> None:
    """A row for bytes at the current position, in which no frame can be seen."""
    piece = window.pieces[reader.piece]
    row = mark(rows, capture.room[0], reader.slot, reader.response, reader.client_side, size, status, reason)
    row.begin = reader.pos - (size if reason == Reason.SKIPPED else 0)
    row.end = reader.pos
    row.time = piece.time
    row.order = reader.now


@inlined
def has_hole(window: Window, reader: Any) -> bool:
    """Whether segments of a direction wait after a hole now."""
    # Whatever filled that hole, or gave it up, brought the next piece.
    since = window.pieces[reader.seen].since if reader.seen < reader.end_piece else reader.holed_since
    holed: bool = since <= reader.now
    return holed


@inlined
def piece_with_end(window: Window, reader: Any, last_pos: int) -> int:
    """The piece that has the last byte, of those that can be seen, of a frame that ends before ``last_pos``."""
    pieces = window.pieces
    last = reader.piece
    while last + 1 < reader.seen and pieces[last].pos + pieces[last].len < last_pos:
        last += 1
    if pieces[last].pos >= last_pos and last > reader.piece:
        last -= 1  # that one is after the gap that has the frame's last byte
    return last


@inlined
def begin_run(window: Window, capture: Capture, reader: Any) -> None:
    """Begins to read at piece ``reader.first``."""
    piece = window.pieces[reader.first]
    stream = capture.streams[reader.stream]
    begin = piece.pos
    reader.run_end = begin + piece.len
    reader.after = reader.first + 1
    reader.shift = piece.off - begin
    reader.piece = reader.first
    reader.reading = 1
    reader.pos = stream.next
    if reader.pos < begin:
        # The boundary, if it was known, is among what is missing.
        stream.skipped = max(int64(0), stream.skipped) + begin - reader.pos
        stream.synced = 0
        reader.pos = begin


@inlined
def go_on(window: Window, capture: Capture, reader: Any) -> None:
    """Adds to the current run what follows it now."""
    pieces = window.pieces
    stream = capture.streams[reader.stream]
    end = reader.run_end
    after = reader.after
    while after < reader.seen and pieces[after].off >= 0 and pieces[after].pos == end:
        end += pieces[after].len
        after += 1
    reader.run_end = end
    reader.after = after
    reader.gap_follows = 1 if after < reader.seen else 0
    ended = reader.over == 1 or (stream.end >= 0 and stream.end_order <= reader.now and end >= stream.end)
    reader.ends_here = 1 if reader.gap_follows == 1 or ended else 0


@kernel
def begin_direction(window: Window, capture: Capture, reader: Any, slot: int, response: int, a: int, end: int) -> None:
    """Gets ready to read one direction of a connection, whose active streams are rows ``a`` to ``end`` - 1."""
    conn = capture.connections[slot]
    reader.slot = slot
    reader.response = response
    reader.client_side = 0 if conn.role == Role.A_REQUESTS else 1
    reader.stream = 2 * slot + (reader.client_side ^ response)
    reader.over = 0
    reader.first = 0
    reader.end_piece = 0
    reader.seen = 0
    reader.fresh = 1
    reader.blocked = 0
    reader.unsure = 0
    reader.gives_way = 0
    reader.gave_way = -1
    reader.wake = NEVER
    reader.holed_since = AT_THE_END
    reader.reading = 0
    reader.compared = 0
    reader.around = -1
    reader.needs = -1
    for x in range(a, end):
        one = window.active[x]
        if one.stream == reader.stream:
            reader.first = one.first
            reader.end_piece = one.end
            reader.seen = one.first
            reader.holed_since = capture.streams[reader.stream].since
    if reader.first < reader.end_piece:
        capture.streams[reader.stream].time = window.pieces[reader.end_piece - 1].time


@inlined
def see(window: Window, reader: Any, now: int) -> None:
    """Shows what was in order with packet ``now``."""
    pieces = window.pieces
    seen = reader.seen
    while seen < reader.end_piece and pieces[seen].order <= now:
        seen += 1
    if seen > reader.seen:
        reader.fresh = 1
        reader.seen = seen
    reader.now = now
    reader.gave_way = -1


@kernel
def end_lost(window: Window, capture: Capture, reader: Any) -> None:
    """Where a direction ends in bytes that the capture does not have, they are skipped."""
    stream = capture.streams[reader.stream]
    if reader.seen > 0 and reader.end_piece > 0:
        last = window.pieces[reader.seen - 1]
        end = last.pos + last.len
        if last.off < 0 and end > stream.next:
            stream.skipped = max(int64(0), stream.skipped) + end - stream.next
            stream.next = end
            stream.synced = 0


@inlined
def only_grows(window: Window, reader: Any) -> bool:
    """Whether what has come adds to the frame that is waited for, and to nothing else. Then it is a part of the run."""
    pieces = window.pieces
    if reader.needs < 0 or reader.reading == 0 or reader.over == 1:
        return False
    end = reader.run_end
    after = reader.after
    while after < reader.seen:
        piece = pieces[after]
        if piece.off < 0 or piece.pos != end or piece.len < 4 or 4 <= piece.head <= LARGEST_FRAME:
            return False
        end += piece.len
        after += 1
    if end >= reader.needs:
        return False
    reader.run_end = end
    reader.after = after
    return True


@inlined
def _grow(window: Window, capture: Capture, reader: Any, other: Any, until: int) -> None:
    """Shows what comes before packet ``until`` and the next of the other direction, as long as it does no more
    than ``only_grows`` finds. It goes packet by packet, as a large frame comes. This is nearly all that happens."""
    pieces = window.pieces
    if (
        reader.needs < 0
        or reader.reading == 0
        or reader.over == 1
        or reader.fresh == 1
        or reader.blocked == 1
        or reader.after != reader.seen
        or other.fresh == 1
        or other.blocked == 1
        or capture.streams[reader.stream].end >= 0
        or capture.streams[other.stream].synced != 1
    ):
        return
    if other.seen < other.end_piece:
        until = min(until, pieces[other.seen].order)
    p = reader.seen
    end = reader.run_end
    while p < reader.end_piece:
        piece = pieces[p]
        if (
            piece.order >= until
            or piece.off < 0
            or piece.pos != end
            or end + piece.len >= reader.needs
            or piece.len < 4
            or 4 <= piece.head <= LARGEST_FRAME
            or (p + 1 < reader.end_piece and pieces[p + 1].order == piece.order)
        ):
            break
        end += piece.len
        p += 1
    if p > reader.seen:
        reader.seen = p
        reader.after = p
        reader.run_end = end
        reader.now = pieces[p - 1].order
        other.now = reader.now


@inlined
def following_packet(window: Window, capture: Capture, asked: Any, answered: Any) -> int:
    """The next packet with which something happens to a connection; NEVER if there is none in this window."""
    pieces = window.pieces
    following = _otherwise(window, asked, answered)
    if asked.unsure == 0:
        _grow(window, capture, asked, answered, following)
        _grow(window, capture, answered, asked, following)
    if asked.seen < asked.end_piece:
        following = min(following, pieces[asked.seen].order)
    if answered.seen < answered.end_piece:
        following = min(following, pieces[answered.seen].order)
    return following


@inlined
def _otherwise(window: Window, asked: Any, answered: Any) -> int:
    """The next packet with which something happens to a connection other than that it brings bytes. NEVER if there is
    none in this window."""
    following: int = asked.event
    if answered.blocked == 1:
        following = _or_wake(window, answered, following)
    if asked.unsure == 1:
        following = _or_wake(window, asked, following)
    return following


@inlined
def _or_wake(window: Window, reader: Any, following: int) -> int:
    """Packet ``following``, or the one before it with which a reader gives up what it waits for."""
    in_window = window.final or reader.wake < window.first_order + window.clock.shape[0]
    return min(following, reader.wake) if reader.now < reader.wake and in_window else following


@kernel
def meet_event(window: Window, capture: Capture, asked: Any, answered: Any) -> None:
    """Notes what happens to a connection now, besides that bytes of it may come, and when something does next."""
    conn = capture.connections[asked.slot]
    now = asked.now
    last = window.first_order + window.clock.shape[0] - 1
    following = int64(AT_THE_END) if window.final and now < AT_THE_END else int64(NEVER)
    if now < conn.closed_order <= last:
        following = min(following, conn.closed_order)
    for reader in (asked, answered):
        stream = capture.streams[reader.stream]
        if now in (stream.end_order, stream.start_order):
            reader.fresh = 1
        if conn.closed_order <= now:
            reader.over = 1
            reader.fresh = 1
        if now < stream.end_order <= last:
            following = min(following, stream.end_order)
        if now < stream.start_order <= last:
            following = min(following, stream.start_order)
    asked.event = following
