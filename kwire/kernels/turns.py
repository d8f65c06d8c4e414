"""Responses in turn: what the packets of both directions say of those that follow one another.

Strategy: a broker answers in order, and each request once. So responses that answer the requests which wait, one after
the other up to a certain one, are no values of records. See docs/design/2026-11-26-answers-in-turn.md.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.directions import Capture, Scratch
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import FITS, fits_all
from kwire.kernels.numbers import i32, int64
from kwire.kernels.pairing import find
from kwire.kernels.roles import LARGEST_FRAME, NEAR, NEED_MORE, NEVER, NO, YES, Apis, Window, run_of
from kwire.kernels.streams import first_from
from kwire.schema.keys import ApiKey

__all__ = [
    "HELD_FOR",
    "HELD_PIECES",
    "HOLED",
    "LEAST_AROUND",
    "MOST_FOLLOWING",
    "MOST_HELD",
    "TAGGED_FETCH",
    "TORN",
    "exchanged_here",
    "held_for_proof",
    "leads_in_turn",
    "may_begin_answer",
    "next_answer",
]

HELD_FOR: Final = 10_000_000_000
"""Nanoseconds of capture time for which a request in doubt is held, at most,"""
MOST_HELD: Final = 256 << 10
"""bytes of a direction that are held with it,"""
HELD_PIECES: Final = 512
"""and pieces."""
LEAST_AROUND: Final = 60
"""Bytes that a frame has before a value of its first record, at least: its size, header, topic, partition and those of
the record set."""
HOLED: Final = 3
"""``Stream.certain`` after a frame with a hole in it that has no records: what follows has to fit,"""
TORN: Final = 4
"""and after one that may have records. Sequence numbers say where it ends, and what stands there may be a value of it.
So something else has to say it, too: who had received it acknowledged it up to there, and no further."""
TAGGED_FETCH: Final = 12
"""The version from which on a Fetch response has tagged fields behind its last records. Before, it may end with the
value of a record, or of a header."""
MOST_FOLLOWING: Final = 5
"""Answers behind an exchange that are looked at whether somebody asked for them."""

Array = Any


@inlined
def may_begin_answer(data: Array, piece: Any, number: int) -> bool:
    """Whether a piece may begin with an answer to a request shortly behind the one with id ``number``."""
    begins = piece.off >= 0 and piece.len >= 8 and 4 <= piece.head <= LARGEST_FRAME
    may: bool = begins and 0 < int64(i32(data, piece.off + 4)) - number <= NEAR
    return may


@kernel
def next_answer(window: Window, reader: Any, m: int, pos: int, number: int) -> tuple[int, int, int]:
    """The answer behind position ``pos``, in piece ``m`` or behind it: its piece, its position, and where in the data
    it begins. Behind a hole, it is the next segment that may begin with one to a request shortly behind the one with id
    ``number``. -1 for the last where its first 8 bytes are not there. If they may come, the first is ``reader.seen``.
    """
    pieces = window.pieces
    while m < reader.seen and pieces[m].pos + pieces[m].len <= pos:
        m += 1
    if m < reader.seen and (pieces[m].off < 0 or pieces[m].pos > pos):
        while m < reader.seen and not may_begin_answer(window.data, pieces[m], number):
            m += 1
        pos = int64(pieces[m].pos) if m < reader.seen else pos
    if m >= reader.seen:
        return m, pos, int64(-1)
    begin = pieces[m].off + pos - pieces[m].pos
    there, after = run_of(pieces, m, reader.seen, begin + 8)
    if there - begin < 8:
        return (int64(reader.seen) if after >= reader.seen else m), pos, int64(-1)
    return m, pos, int64(begin)


@kernel
def _in_turn(
    window: Window, capture: Capture, reader: Any, asked: Any, p: int, pos: int, row: int
) -> tuple[int, int, int]:
    """Whether a whole response begins at position ``pos``, in piece ``p`` or behind it, that answers the request behind
    row ``row`` of those that wait, or any (-1): YES, NO or NEED_MORE, its piece, and the row of its request.

    No request is missing between them. One of Fetch up to version 11 only counts where the client had received all that
    is before its response when it asked: then this is no value with which that response ends.
    """
    data, pieces, waiting = window.data, window.pieces, capture.waiting
    conn = capture.connections[reader.slot]
    while p < reader.seen and pieces[p].pos + pieces[p].len <= pos:
        p += 1
    if p >= reader.seen:
        return int64(NEED_MORE), p, row
    if pieces[p].off < 0 or pieces[p].pos > pos:
        return int64(NO), p, row
    begin = pieces[p].off + pos - pieces[p].pos
    there, after = run_of(pieces, p, reader.seen, begin + 8)
    if there - begin < 8:
        return int64(NEED_MORE if after >= reader.seen else NO), p, row
    size = i32(data, begin)
    wanted = int64(i32(data, begin + 4))
    if size < 4 or size > LARGEST_FRAME:
        return int64(NO), p, row
    if row >= 0:
        row = int64(waiting[row].next)
    else:
        row = find(conn, waiting, capture.ids, capture.room[0], wanted, int64(NEVER))
        if row >= 0 and (capture.streams[asked.stream].searched >= waiting[row].end or waiting[row].overtaken == 1):
            return int64(NO), p, row
    if row < 0 or waiting[row].id != wanted or waiting[row].doubted != 0:
        return int64(NO), p, row
    heard = int64(waiting[row].ack)
    ends = waiting[row].api == ApiKey.FETCH and waiting[row].version < TAGGED_FETCH
    if ends and not (heard >= 0 and 0 <= pos - heard < LEAST_AROUND):
        return int64(NO), p, row
    there, after = run_of(pieces, p, reader.seen, begin + 4 + size)
    if there - begin < 4 + size:
        return int64(NEED_MORE if after >= reader.seen else NO), p, row
    return int64(YES), p, row


@kernel
def _fits_here(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, p: int, pos: int, row: int
) -> bool:
    """Whether the whole response at position ``pos``, in piece ``p``, is what the layout of its request says."""
    pieces = window.pieces
    begin = pieces[p].off + pos - pieces[p].pos
    there, _ = run_of(pieces, p, reader.seen, begin + 4 + i32(window.data, begin))
    api, version = int64(capture.waiting[row].api), int64(capture.waiting[row].version)
    return fits_all(window.data, begin, there, int64(1), api, version, table, scratch) == FITS


@kernel
def leads_in_turn(
    window: Window,
    capture: Capture,
    table: Apis,
    scratch: Scratch,
    reader: Any,
    asked: Any,
    pos: int,
    border: int,
    judged: bool,
) -> bool:
    """Whether whole responses lead from position ``pos`` to ``border``, where one is certain. They answer requests that
    wait, one after the other, up to the last one before that which the certain one answers. ``judged``: each has to be
    what its layout says.

    Let them begin within a response to request R. The responses to all requests behind R come behind its end, and
    before ``border``. These frames answer each request once. So the last one within R's response has the id of R, and
    ends where that does.
    """
    p = int64(reader.piece if reader.reading == 1 else reader.first)
    row = int64(-1)
    count = 0
    while pos < border and count < HELD_PIECES:
        said, p, row = _in_turn(window, capture, reader, asked, p, pos, row)
        if said != YES or (judged and not _fits_here(window, capture, table, scratch, reader, p, pos, row)):
            return False
        pos += 4 + i32(window.data, window.pieces[p].off + pos - window.pieces[p].pos)
        count += 1
    if row < 0 or pos != border:
        return False
    row = int64(capture.waiting[row].next)
    if row < 0:
        return True
    while p < reader.seen and window.pieces[p].pos + window.pieces[p].len <= pos:
        p += 1
    if p >= reader.seen or window.pieces[p].off < 0 or window.pieces[p].pos > pos:
        return False
    begin = window.pieces[p].off + pos - window.pieces[p].pos
    there, _ = run_of(window.pieces, p, reader.seen, begin + 8)
    leads: bool = there - begin >= 8 and i32(window.data, begin + 4) == capture.waiting[row].id
    return leads


@kernel
def _were_asked(window: Window, capture: Capture, reader: Any, m: int, pos: int, row: int) -> int:
    """Whether the broker had received the requests for the next answers when it sent them, behind position ``pos`` in
    piece ``m`` and the answer to the request in row ``row``: YES, NO or NEED_MORE. One of them may be missing.

    Like ``_goes_on_well``, where requests were read already.
    """
    data, pieces, waiting = window.data, window.pieces, capture.waiting
    conn = capture.connections[reader.slot]
    number = int64(waiting[row].id)
    unseen = 0
    count = 0
    while count < MOST_FOLLOWING:
        count += 1
        m, pos, begin = next_answer(window, reader, m, pos, number)
        if begin < 0:
            return int64(NEED_MORE) if m >= reader.seen else int64(YES)
        size = i32(data, begin)
        if size < 4 or size > LARGEST_FRAME:
            return int64(NO)
        found = find(conn, waiting, capture.ids, capture.room[0], int64(i32(data, begin + 4)), int64(NEVER))
        if found < 0:
            unseen += 1
            if unseen > 1 or pieces[m].ack <= waiting[row].end:
                return int64(NO)
        elif waiting[found].end <= waiting[row].end or pieces[m].ack < waiting[found].end:
            return int64(NO)  # it answers once more what was answered, or was sent before its request
        else:
            row = found
        pos += 4 + size
    return int64(YES)


@kernel
def _is_exchange(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, p: int, pos: int, row: int
) -> int:
    """Whether the whole response at position ``pos``, in piece ``p``, is an exchange with the request in row ``row``,
    which was read already: YES, NO or NEED_MORE.

    The client had received exactly what is before the response when it sent this request. The broker had received
    exactly this request when it sent the response. And the client had received exactly the response when it sent the
    next request. Those that follow were asked for, too.
    """
    pieces, waiting = window.pieces, capture.waiting
    end = pos + 4 + i32(window.data, pieces[p].off + pos - pieces[p].pos)
    following = int64(waiting[row].next)
    if following < 0 or waiting[row].ack != pos or waiting[following].ack != end:
        return NO
    last = p
    while pieces[last].pos + pieces[last].len < end:
        last += 1
    if pieces[p].ack != waiting[row].end or pieces[last].ack != waiting[row].end:
        return NO
    if not _fits_here(window, capture, table, scratch, reader, p, pos, row):
        return NO
    said = _were_asked(window, capture, reader, p, end, row)
    return int64(YES) if said == NEED_MORE and reader.over == 1 else said


@kernel
def exchanged_here(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any) -> bool:
    """Whether the whole response at the current position, in doubt, is an exchange, and answers the next request."""
    conn = capture.connections[reader.slot]
    row = int64(conn.waiting_front)
    if row < 0 or conn.disordered > 0 or capture.waiting[row].doubted != 0:
        return False
    if capture.waiting[row].id != i32(window.data, reader.pos + reader.shift + 4):
        return False
    p, pos = int64(reader.piece), int64(reader.pos)
    return _is_exchange(window, capture, table, scratch, reader, p, pos, row) == YES


@kernel
def _exchange_behind(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, asked: Any
) -> tuple[int, int]:
    """Whether one of the responses that follow the one at the current position in turn is an exchange, of requests that
    were read already: YES, NO or NEED_MORE, and where it begins."""
    pieces = window.pieces
    p, pos, row = int64(reader.piece), int64(reader.pos), int64(-1)
    count = 0
    while count < HELD_PIECES:
        said, p, row = _in_turn(window, capture, reader, asked, p, pos, row)
        if said != YES:
            return said, int64(-1)
        if count > 0:
            said = _is_exchange(window, capture, table, scratch, reader, p, pos, row)
            if said != NO:
                return said, pos
        pos += 4 + i32(window.data, pieces[p].off + pos - pieces[p].pos)
        count += 1
    return int64(NO), int64(-1)


@kernel
def held_for_proof(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, asked: Any) -> int:
    """``certainty`` of a response which nothing else has made certain: 1 where it leads up to one that is, -1 as long
    as that may come, else 0."""
    stream = capture.streams[reader.stream]
    if capture.streams[asked.stream].certain not in (1, 2, HOLED) or capture.connections[reader.slot].disordered > 0:
        return int64(0)
    said, border = int64(YES), int64(stream.proven)
    if border <= reader.pos:
        said, border = _exchange_behind(window, capture, table, scratch, reader, asked)
    if said == YES:
        leads = leads_in_turn(window, capture, table, scratch, reader, asked, int64(reader.pos), border, True)
        return int64(1) if leads else int64(0)
    ended = reader.over == 1 or (stream.end >= 0 and stream.end_order <= reader.now)
    if said == NO or ended:
        return int64(0)
    reader.wake = first_from(window.clock, window.first_order, window.pieces[reader.piece].clock + HELD_FOR)
    few = reader.seen - reader.piece < HELD_PIECES
    held = window.pieces[reader.seen - 1].pos - reader.pos
    return int64(-1) if reader.wake > reader.now and held < MOST_HELD and few else int64(0)
