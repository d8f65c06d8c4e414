"""Streams to frames, and responses to their requests, for all connections of a window at once.

Strategy: the pieces of a stream (``kwire.kernels.streams``) are walked run by run, a run being bytes without a gap.
Where a frame is known to begin, its size says where the next one does; where that is not known (the capture begins
in the middle of a connection, or bytes are missing), the kernel looks for the next place at which a plausible frame
stands. Both directions of a connection are read side by side, in order of time: the requests always as far ahead as a
response may have been captured before its request, so that only what is in flight has to be remembered. Each request
leaves an entry in the connection's list (``kwire.kernels.pairing``), and a response takes the first entry with its
correlation id. Frames come out as rows of numbers; the bytes stay where they are.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A Produce request with acks=0 has no response and leaves no entry [10]. acks is read by a program of
  ``kwire.kernels.programs``, not by a parser of its own.
- After a SaslHandshake v0, and in a connection that opens with a GSSAPI token, frames are raw tokens until a
  request header is seen again; each leaves an entry, so that the answer is known to be a token too [11].
- A response whose request may still come (out of order around the end of a window, or behind a hole) is left for
  the next window. Nothing else looks back.
- Gaps: what is missing inside of a frame costs this frame only, because its size says where the next one begins.
- Nothing is allocated: where a table is full the kernel returns, the caller makes it larger and calls again, and the
  kernel goes on at the frame that did not fit. What was done is in the streams, so nothing is done twice.
- What a frame is numbered by (``order``) is the packet that settled it, whatever the windows are: so the numbers of the
  frames do not depend on them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kwire.kernels.engine import kernel
from kwire.kernels.judging import NOT_KNOWN, SO_FAR, TRAILS, UNFIT, fits
from kwire.kernels.layouts import ABSENT, AT_THE_END, Reason, Role, Row, Status, table_type
from kwire.kernels.names import LONGEST_NAME, has_room, intern, same_bytes
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.pairing import (
    DISORDER,
    SASL_TOKEN,
    find,
    find_request,
    forget,
    given_up,
    plausible_response,
    wait_for,
)
from kwire.kernels.programs import Trouble, interpret, register_value
from kwire.kernels.roles import (
    LARGEST_FRAME,
    LARGEST_TOKEN,
    NEED_MORE,
    NO,
    YES,
    Facts,
    Window,
    let_go,
    plausible_request,
    settle,
)
from kwire.schema.keys import ApiKey

__all__ = ["Capture", "Scratch", "by_stream", "frames_and_pairs", "settle_all", "tell_the_rest"]

HTTPS: Final = 443
"""TLS to this port is not reported unless the caller names the port."""

# How the reading of a run went on.
READ: Final = 0
"""To its end, or past one frame."""
WAITS: Final = 1
"""What follows is the beginning of a frame: more is needed."""
BLOCKED: Final = 2
"""A response whose request may still come."""
FULL: Final = 3
"""A table must grow first."""
LATER: Final = 4
"""What follows is younger than what is to be read now."""

NEVER: Final = (1 << 63) - 1
"""A time behind all others."""

Array = Any


class Capture(NamedTuple):
    """The state of a capture: tables of the record types of ``kwire.kernels.layouts``."""

    connections: Array
    streams: Array
    waiting: Array
    ids: Array
    """The hash table of ``waiting``: as many places as that has rows or more, a power of 2; -1 for none."""
    names: Array
    pool: Array
    lookup: Array
    names_used: Array
    """One row."""
    room: Array
    """One row."""


class Scratch(NamedTuple):
    """Room for what kernels write down and forget."""

    ways: Array
    """Two rows of WAY: requests and responses."""
    registers: Array
    left: Array
    no_rows: Array


class Way(Row):
    """One direction of a connection while it is read, run by run, as far as ``until`` allows."""

    slot: int
    response: int
    client_side: int
    stream: int
    over: int
    """1 when nothing will follow: the capture or the connection has ended."""
    request_missing: int
    """1 when requests wait behind a hole: a response may belong to one of them."""
    waiting: int
    """1 when segments of this stream wait behind a hole."""
    first: int
    """The piece that the next run begins with."""
    end_piece: int
    """Its pieces end before this row."""
    until: int
    """Time by ``Piece.clock``: nothing younger is read now."""
    wants: int
    """Time of what follows, where that was too young."""
    reading: int
    """1 within a run, 0 before the next one begins."""
    pos: int
    """Where the next frame begins."""
    piece: int
    """The piece that ``pos`` is in."""
    run_end: int
    after: int
    """The row behind the last piece of this run."""
    shift: int
    """Makes an offset in the data of a position in this run."""
    gap_follows: int
    ends_here: int
    """1 when nothing will follow this run without a gap."""


WAY: Final = table_type(Way)


@kernel
def _is_full(capture: Capture, rows: Array) -> bool:
    """Whether one more frame, with what it may leave behind, does not fit."""
    room = capture.room[0]
    if room.frames >= rows.shape[0] or (room.free < 0 and room.waiting >= capture.waiting.shape[0]):
        return True
    return not has_room(capture.names_used[0], capture.names, capture.pool, capture.lookup, LONGEST_NAME)


@kernel
def _mark(
    rows: Array, room: Any, slot: int, response: int, client_side: int, size: int, status: int, reason: int
) -> Any:
    """A row for bytes in which no frame can be seen; the caller sets its time and order."""
    row = rows[room.frames]
    room.frames += 1
    row.slot = slot
    row.response = response
    row.client_side = client_side
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
def _mark_here(window: Window, capture: Capture, rows: Array, way: Any, size: int, status: int, reason: int) -> None:
    """A row for bytes at the current position, in which no frame can be seen."""
    piece = window.pieces[way.piece]
    stream = capture.streams[way.stream]
    row = _mark(rows, capture.room[0], way.slot, way.response, way.client_side, size, status, reason)
    row.time = piece.time
    stream.order = max(piece.order, stream.order, capture.connections[way.slot].settled_order)
    row.order = stream.order


@kernel
def _request_here(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int, touching: bool
) -> int:
    """Whether what stands at ``at``, a plausible header where the boundary is not known, is a request.

    Its body has to fit, and its client_id is that of the connection where one is known: values of records may be frames
    themselves. What follows has to be a request too. ``touching``: a segment begins there.
    """
    data = window.data
    client = capture.connections[way.slot].client
    length = i16(data, at + 12) if stop - at >= 14 else int64(-1)
    known = False
    if client >= 0 and length >= 0:
        name = capture.names[client]
        known = name.len == length and same_bytes(data, at + 14, capture.pool, name.off, length)
    if client >= 0 and not known:
        return NO
    said, _ = fits(data, at, stop, int64(0), i16(data, at + 4), i16(data, at + 6), facts, scratch)
    if said == SO_FAR:
        if way.ends_here == 0:
            return NEED_MORE
        return YES if touching and known else NO
    if said in (UNFIT, TRAILS) or (said == NOT_KNOWN and not touching):
        return NO
    following = at + 4 + i32(data, at)
    if following < stop:
        after = plausible_request(data, following, stop, facts.apis)
        if after == NO or (after == NEED_MORE and way.ends_here == 0):
            return after
    return YES


@kernel
def _search(window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any) -> int:
    """Moves on to the next position at which a frame can begin: YES, NEED_MORE, LATER, or NO at the end of the run."""
    data, pieces = window.data, window.pieces
    conn = capture.connections[way.slot]
    room = capture.room[0]
    stop = way.run_end + way.shift
    pos = way.pos
    piece = way.piece
    answer = NO
    while pos < way.run_end:
        at = pos + way.shift
        # The first byte of a size of at most LARGEST_FRAME: text, and most other data, is passed over here.
        if data[at] <= LARGEST_FRAME >> 24:
            while pieces[piece].pos + pieces[piece].len <= pos:
                piece += 1
            touching = pieces[piece].pos == pos
            if way.response == 0:
                answer = plausible_request(data, at, stop, facts.apis)
                if answer == YES:
                    answer = _request_here(window, capture, facts, scratch, way, at, stop, touching)
            elif pieces[piece].clock > way.until:
                # What it may answer has not been read yet.
                way.wants = pieces[piece].clock
                answer = LATER
            else:
                until = pieces[piece].clock + DISORDER
                answer = plausible_response(
                    window,
                    conn,
                    capture.waiting,
                    capture.ids,
                    room,
                    facts,
                    scratch,
                    at,
                    stop,
                    touching,
                    way.ends_here == 1,
                    until,
                )
            # What is cut off within its header is none, but others may follow.
            if answer != NO and not (answer == NEED_MORE and way.ends_here == 1):
                break
        pos += 1
    way.pos = pos
    way.piece = piece
    return answer


@kernel
def _resynchronise(window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any) -> int:
    """Looks for the next frame where it is not known where one begins: READ if there is one, WAITS or LATER."""
    stream = capture.streams[way.stream]
    begin = way.pos
    answer = _search(window, capture, facts, scratch, way)
    stream.skipped = max(int64(0), stream.skipped) + way.pos - begin
    if answer == LATER:
        return LATER
    if answer != YES:
        return WAITS
    stream.synced = 1
    if stream.skipped > 0:
        _mark_here(window, capture, rows, way, stream.skipped, Status.GAP, Reason.SKIPPED)
    stream.skipped = 0
    return READ


@kernel
def _token_follows(window: Window, capture: Capture, facts: Facts, way: Any, at: int, available: int) -> int:
    """Whether the next frame is a raw SASL token: YES, NO, or NEED_MORE."""
    conn = capture.connections[way.slot]
    if way.response == 0:
        if conn.raw_tokens != 1 or available < 4:
            return NO
        answer = plausible_request(window.data, at, way.run_end + way.shift, facts.apis)
        if answer == YES:
            conn.raw_tokens = 0
            return NO
        return NEED_MORE if answer == NEED_MORE and way.ends_here == 0 else YES
    head = conn.waiting_head
    until = window.pieces[way.piece].clock + DISORDER
    if head < 0 or capture.waiting[head].api != SASL_TOKEN or capture.waiting[head].clock > until:
        return NO
    if available >= 8 and i32(window.data, at) >= 4:
        # A token is not always answered: is this already the response to a later request?
        row = find(conn, capture.waiting, capture.ids, capture.room[0], i32(window.data, at + 4), until)
        return YES if row < 0 else NO
    return YES


@kernel
def _last_piece(window: Window, way: Any, last_pos: int) -> int:
    """The piece that has the last byte, of those there are, of a frame that ends before ``last_pos``."""
    pieces = window.pieces
    last = way.piece
    while last + 1 < way.end_piece and pieces[last].pos + pieces[last].len < last_pos:
        last += 1
    if pieces[last].pos >= last_pos and last > way.piece:
        last -= 1  # that one is behind the gap that has the frame's last byte
    return last


@kernel
def _ended(window: Window, capture: Capture, way: Any) -> int:
    """When it was known that no more of the current run would come: with what stands behind the gap, or the end of the
    stream, connection or capture."""
    if way.gap_follows == 1:
        return window.pieces[way.after].order
    stream = capture.streams[way.stream]
    conn = capture.connections[way.slot]
    order = int64(AT_THE_END)
    if stream.end >= 0 and way.run_end >= stream.end:
        order = stream.end_order
    return min(order, conn.closed_order) if conn.closed == 1 else order


@kernel
def _client_of(window: Window, capture: Capture, conn: Any, off: int, length: int) -> int:
    """The number of the client_id at ``off``."""
    client: int = conn.client
    # A connection has one client_id, nearly always.
    if client >= 0:
        known = capture.names[client]
        if known.len == length and same_bytes(window.data, off, capture.pool, known.off, length):
            return client
    client = intern(window.data, off, length, capture.names, capture.pool, capture.lookup, capture.names_used[0])
    conn.client = client
    return client


@kernel
def _judge_version(row: Any, facts: Facts) -> None:
    """Says what is not known of the API and version of a frame that is otherwise good."""
    api = row.api
    if api < 0 or api >= facts.apis.shape[0] or facts.apis[api].latest < 0:
        row.status = Status.UNSUPPORTED
        row.reason = Reason.API
        row.detail = api
        return
    latest = facts.apis[api].latest
    # A version of ApiVersions that the broker does not know is answered in one that it does.
    if row.version < 0 or (row.version > latest and (row.response == 0 or api != ApiKey.API_VERSIONS)):
        row.status = Status.UNSUPPORTED
        row.reason = Reason.VERSION
        row.detail = row.version


@kernel
def _header_is_readable(window: Window, capture: Capture, conn: Any, row: Any) -> bool:
    """Reads the client_id; says what is wrong with the header."""
    if row.seen < 8:
        return False
    if row.api == ApiKey.CONTROLLED_SHUTDOWN and row.version == 0:
        return True
    if row.size < 10:
        row.status = Status.MALFORMED
        row.reason = Reason.SHORT
        row.detail = row.size
        return False
    if row.seen < 10:
        return True
    length = i16(window.data, row.off + 8)
    if length < -1 or 10 + length > row.size:
        row.status = Status.MALFORMED
        row.reason = Reason.CLIENT_ID
        row.detail = length
        return False
    if length >= 0 and 10 + length <= row.seen:
        row.client = _client_of(window, capture, conn, row.off + 10, length)
    return True


@kernel
def _is_answered(window: Window, facts: Facts, scratch: Scratch, row: Any) -> bool:
    """Whether a request has a response: not a Produce with acks=0."""
    version = row.version
    if (
        row.api != ApiKey.PRODUCE
        or version < 0
        or version >= facts.acks_starts.shape[0]
        or facts.acks_starts[version] < 0
    ):
        return True
    registers = scratch.registers
    _, trouble, _, _ = interpret(
        window.data,
        row.off,
        row.off + row.seen,
        facts.acks_code,
        facts.acks_starts[version],
        registers,
        scratch.left,
        scratch.no_rows,
        0,
        0,
    )
    answered: bool = trouble != Trouble.NONE or register_value(registers, 0) != 0
    return answered


@kernel
def _request(
    window: Window,
    capture: Capture,
    facts: Facts,
    scratch: Scratch,
    row: Any,
    way: Any,
    token: bool,
    whole: bool,
    clock: int,
) -> None:
    """Completes the row of a request, at which the clock showed ``clock``, and lets it wait for its response."""
    conn = capture.connections[way.slot]
    room = capture.room[0]
    if token:
        row.status = Status.SASL
        if whole:
            wait_for(conn, capture.waiting, room, 0, SASL_TOKEN, 0, -1, row.time, row.order, clock)
        return
    if row.seen >= 4:
        row.api = i16(window.data, row.off)
        row.version = i16(window.data, row.off + 2)
    if row.seen >= 8:
        row.id = i32(window.data, row.off + 4)
    if not _header_is_readable(window, capture, conn, row):
        return
    if conn.first_id < 0:
        conn.first_id = max(int64(0), row.id)
    _judge_version(row, facts)
    if _is_answered(window, facts, scratch, row):
        wait_for(conn, capture.waiting, room, row.id, row.api, row.version, row.client, row.time, row.order, clock)
    if row.api == ApiKey.SASL_HANDSHAKE and row.version == 0:
        conn.raw_tokens = 1


@kernel
def _response(window: Window, capture: Capture, facts: Facts, row: Any, way: Any, token: bool, clock: int) -> bool:
    """Completes the row of a response, at which the clock showed ``clock``: False if its request may still come."""
    conn = capture.connections[way.slot]
    waiting, ids, room = capture.waiting, capture.ids, capture.room[0]
    if token:
        entry = waiting[conn.waiting_head]
        row.status = Status.SASL
        row.latency = row.time - entry.time
        row.order = max(row.order, entry.order)
        forget(conn, waiting, ids, room, conn.waiting_head)
        return True
    if row.seen < 4:
        return True
    row.id = i32(window.data, row.off)
    which = find_request(conn, waiting, ids, room, row.id, clock + DISORDER)
    if which < 0:
        if way.over == 0 and (way.request_missing == 1 or clock > window.now - DISORDER):
            return False
        row.status = Status.UNPAIRED
        row.reason = Reason.UNPAIRED
        if conn.given_up > 0:
            row.reason = Reason.GIVEN_UP
            row.detail = conn.given_up
        row.order = max(row.order, given_up(window, conn, clock))
        return True
    entry = waiting[which]
    row.api = entry.api
    row.version = entry.version
    row.client = entry.client
    row.latency = row.time - entry.time
    row.order = max(row.order, entry.order)
    forget(conn, waiting, ids, room, which)
    _judge_version(row, facts)
    return True


@kernel
def _is_first(capture: Capture, way: Any) -> bool:
    """Whether the first request of a connection has not been read yet. It is read at once, whenever it was captured,
    since it tells which responses can be expected."""
    first: bool = way.response == 0 and capture.connections[way.slot].first_id < 0
    return first


@kernel
def _next_frame(window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any) -> int:
    """Reads the frame that begins at the current position: READ, WAITS, BLOCKED or LATER."""
    stream = capture.streams[way.stream]
    at = way.pos + way.shift
    available = way.run_end - way.pos
    size = i32(window.data, at) if available >= 4 else int64(-1)
    # When the last byte of it, of those that are there, was captured.
    last_piece = way.piece
    if available < 4:
        last_piece = _last_piece(window, way, way.run_end)
    elif 0 <= size <= LARGEST_FRAME:
        last_piece = _last_piece(window, way, way.pos + 4 + size)
    last = window.pieces[last_piece]
    if last.clock > way.until and not _is_first(capture, way):
        way.wants = last.clock
        return LATER
    follows = _token_follows(window, capture, facts, way, at, available)
    if follows == NEED_MORE:
        return WAITS
    token = follows == YES
    if available >= 4:
        least = 0 if token else (8 if way.response == 0 else 4)
        if size < least or size > (LARGEST_TOKEN if token else LARGEST_FRAME):
            _mark_here(window, capture, rows, way, size, Status.MALFORMED, Reason.SIZE)
            stream.synced = 0
            stream.skipped = 4
            way.pos += 4
            return READ
    whole = available >= 4 and available - 4 >= size
    too_large = not whole and available > window.ration
    if not whole and way.ends_here == 0 and not too_large:
        return WAITS

    row = rows[capture.room[0].frames]
    row.slot = way.slot
    row.response = way.response
    row.client_side = way.client_side
    row.time = last.time
    row.order = max(last.order, stream.order, capture.connections[way.slot].settled_order)
    if not whole:
        row.order = max(row.order, _ended(window, capture, way))
    row.off = at + 4
    row.seen = size if whole else max(int64(0), available - 4)
    row.size = max(int64(0), size)
    row.api = ABSENT
    row.version = ABSENT
    row.id = ABSENT
    row.client = -1
    row.latency = ABSENT
    row.status = Status.OK
    row.reason = Reason.NONE
    row.detail = 0
    if way.response == 0:
        _request(window, capture, facts, scratch, row, way, token, whole, last.clock)
    elif not _response(window, capture, facts, row, way, token, last.clock):
        return BLOCKED
    if not whole and row.status != Status.MALFORMED:
        row.status = Status.GAP if way.gap_follows == 1 else Status.CUT_OFF
        row.reason = Reason.HOLE if way.gap_follows == 1 else Reason.END
        if too_large and way.ends_here == 0:
            row.reason = Reason.LARGE
        row.detail = available
    stream.order = row.order
    capture.room[0].frames += 1
    if available >= 4:
        way.pos += 4 + size  # where it is not whole: in the gap or behind it, where the next frame begins
    else:
        way.pos = way.run_end
        stream.synced = 0
    return READ


@kernel
def _begin_run(window: Window, capture: Capture, way: Any, first: int) -> int:
    """Looks at the run that begins with piece ``first``; the row after its last piece."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    begin = pieces[first].pos
    end = begin + pieces[first].len
    after = first + 1
    while after < way.end_piece and pieces[after].off >= 0 and pieces[after].pos == end:
        end += pieces[after].len
        after += 1
    gap_follows = after < way.end_piece
    ended = way.over == 1 or (stream.end >= 0 and end >= stream.end)
    way.run_end = end
    way.after = after
    way.shift = pieces[first].off - begin
    way.piece = first
    way.gap_follows = 1 if gap_follows else 0
    way.ends_here = 1 if gap_follows or (way.waiting == 0 and ended) else 0
    way.pos = stream.next
    if way.pos < begin:
        # The boundary, if it was known, is among what is missing.
        stream.skipped = max(int64(0), stream.skipped) + begin - way.pos
        stream.synced = 0
        way.pos = begin
    return after


@kernel
def _read_run(window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any) -> int:
    """Reads the frames of a run: READ at its end, or why not."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    while way.pos < way.run_end:
        while pieces[way.piece].pos + pieces[way.piece].len <= way.pos:
            way.piece += 1
        if _is_full(capture, rows):
            return FULL
        if stream.synced != 1:
            said = _resynchronise(window, capture, facts, scratch, rows, way)
        else:
            said = _next_frame(window, capture, facts, scratch, rows, way)
        if said != READ:
            return said
    return READ


@kernel
def _remember_when(window: Window, way: Any, stream: Any) -> None:
    """Notes when all before the current position was known: nothing behind it can have been known earlier."""
    pieces = window.pieces
    last = way.piece
    while pieces[last].pos + pieces[last].len < min(way.pos, way.run_end):
        last += 1
    stream.latest = max(stream.latest, pieces[last].time)
    stream.clock = max(stream.clock, pieces[last].clock)
    stream.order = max(stream.order, pieces[last].order)


@kernel
def _begin_way(window: Window, capture: Capture, way: Any, slot: int, response: int, a: int, end: int) -> None:
    """Gets ready to read one direction of a connection, whose active streams are rows ``a`` to ``end`` - 1."""
    conn = capture.connections[slot]
    way.slot = slot
    way.response = response
    way.client_side = 0 if conn.role == Role.A_REQUESTS else 1
    way.over = 1 if window.final or conn.closed == 1 else 0
    way.stream = 2 * slot + (way.client_side ^ response)
    way.request_missing = 0
    way.waiting = 0
    way.first = 0
    way.end_piece = 0
    way.until = ABSENT
    way.wants = ABSENT
    way.reading = 0
    for x in range(a, end):
        one = window.active[x]
        if one.stream == way.stream:
            way.waiting = one.waiting
            way.first = one.first
            way.end_piece = one.end
        elif one.waiting == 1:
            way.request_missing = response
    if way.first < way.end_piece:
        capture.streams[way.stream].time = window.pieces[way.end_piece - 1].time


@kernel
def _read_way(window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any) -> int:
    """Reads one direction up to ``way.until``: READ where there is nothing more of it in this window, LATER or FULL."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    if way.wants > way.until and not _is_first(capture, way):
        return LATER
    while True:
        if way.reading == 0:
            while way.first < way.end_piece and pieces[way.first].off < 0:
                way.first += 1
            if way.first >= way.end_piece:
                return READ
            way.first = _begin_run(window, capture, way, way.first)
            way.reading = 1
        said = _read_run(window, capture, facts, scratch, rows, way)
        stream.next = max(stream.next, way.pos)
        if said in (FULL, LATER):
            return said
        _remember_when(window, way, stream)
        way.reading = 0
        if said == BLOCKED or way.ends_here == 0:
            way.first = way.end_piece


@kernel
def _read_both(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, asked: Any, answered: Any
) -> bool:
    """Reads requests and responses in the order of time: False where a table is full.

    What a response may answer has been read before it: all requests that are not younger than ``DISORDER``. They are
    read as far ahead again, so that the directions do not change with each frame.
    """
    said = _read_way(window, capture, facts, scratch, rows, answered)
    while said == LATER:
        wants = answered.wants
        asked.until = wants + 2 * DISORDER if wants < NEVER - 2 * DISORDER else int64(NEVER)
        said = _read_way(window, capture, facts, scratch, rows, asked)
        if said == FULL:
            return False
        answered.until = asked.until - DISORDER if said == LATER else int64(NEVER)
        said = _read_way(window, capture, facts, scratch, rows, answered)
    asked.until = NEVER
    return said != FULL and _read_way(window, capture, facts, scratch, rows, asked) != FULL


@kernel
def _tell_encrypted(window: Window, capture: Capture, rows: Array, slot: int, a: int) -> None:
    """The one row of an encrypted connection, whose first active stream is row ``a``."""
    conn = capture.connections[slot]
    conn.told = 1
    client = conn.opener
    if client < 0:
        client = 0 if conn.a_port >= conn.b_port else 1
    broker_port = conn.b_port if client == 0 else conn.a_port
    if not window.forced and broker_port == HTTPS:
        return
    one = window.active[a]
    response = 0 if (one.stream & 1) == client else 1
    row = _mark(rows, capture.room[0], slot, response, client, 0, Status.ENCRYPTED, Reason.NONE)
    row.time = window.pieces[one.first].time if one.first < one.end else window.now
    row.order = window.pieces[one.first].order if one.first < one.end else window.first_order


@kernel
def _read_connection(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, a: int, end: int
) -> bool:
    """Reads both directions of a connection, whose active streams are rows ``a`` to ``end`` - 1: False where a table is
    full."""
    room = capture.room[0]
    slot = window.active[a].stream >> 1
    conn = capture.connections[slot]
    if room.begun == 0:
        if conn.role == Role.UNKNOWN:
            let_go(window, capture.streams, a, end)
        if conn.role == Role.ENCRYPTED and conn.told == 0:
            if _is_full(capture, rows):
                return False
            _tell_encrypted(window, capture, rows, slot, a)
    if conn.role != Role.A_REQUESTS and conn.role != Role.B_REQUESTS:
        return True
    room.begun = 1
    asked = scratch.ways[0]
    answered = scratch.ways[1]
    _begin_way(window, capture, asked, slot, int64(0), a, end)
    _begin_way(window, capture, answered, slot, int64(1), a, end)
    return _read_both(window, capture, facts, scratch, rows, asked, answered)


@kernel
def settle_all(window: Window, capture: Capture, facts: Facts, scratch: Scratch) -> None:
    """Looks at the connections of a window whose role is not known, or of which no request was read yet."""
    active = window.active
    a = 0
    while a < active.shape[0]:
        end = a + 1
        if end < active.shape[0] and active[end].stream >> 1 == active[a].stream >> 1:
            end += 1
        settle(window, facts, scratch, capture.streams, capture.connections[active[a].stream >> 1], a, end)
        a = end


@kernel
def frames_and_pairs(window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array) -> bool:
    """Writes the frames of a window into ``rows``: False where a table is full, and there is more.

    How many there are is ``frames`` of ``capture.room``; where to go on stands there too. ``next`` of each stream moves
    behind what was consumed.
    """
    active = window.active
    room = capture.room[0]
    while room.active < active.shape[0]:
        a = room.active
        end = a + 1
        if end < active.shape[0] and active[end].stream >> 1 == active[a].stream >> 1:
            end += 1
        if not _read_connection(window, capture, facts, scratch, rows, a, end):
            return False
        room.begun = 0
        room.active = end
    return True


@kernel
def by_stream(rows: Array, place: Array) -> None:
    """Fills ``place`` with the numbers of the rows of a window, which are those of one connection after the other, so
    that the requests of each stand in front of its responses."""
    begin = 0
    while begin < rows.shape[0]:
        slot = rows[begin].slot
        end = begin
        n = begin
        while end < rows.shape[0] and rows[end].slot == slot:
            if rows[end].response == 0:
                place[n] = end
                n += 1
            end += 1
        for k in range(begin, end):
            if rows[k].response == 1:
                place[n] = k
                n += 1
        begin = end


@kernel
def tell_the_rest(capture: Capture, n_streams: int, rows: Array) -> bool:
    """At the end of a capture, a row for each stream that ends in bytes without a frame: False if ``rows`` is full."""
    room = capture.room[0]
    while room.active < n_streams:
        stream = capture.streams[room.active]
        conn = capture.connections[room.active >> 1]
        readable = conn.role == Role.A_REQUESTS or conn.role == Role.B_REQUESTS
        if readable and stream.skipped > 0 and stream.synced != 1:
            if room.frames >= rows.shape[0]:
                return False
            client = 0 if conn.role == Role.A_REQUESTS else 1
            response = client ^ (room.active & 1)
            row = _mark(rows, room, room.active >> 1, response, client, stream.skipped, Status.GAP, Reason.SKIPPED)
            row.time = stream.time
            row.order = AT_THE_END
            stream.skipped = 0
        room.active += 1
    return True
