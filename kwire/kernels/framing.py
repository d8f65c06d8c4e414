"""Streams to frames, and responses to their requests, for all connections of a window at once.

Strategy: the pieces of a stream (``kwire.kernels.streams``) are walked run by run, a run being bytes without a gap.
Where a frame is known to begin, its size says where the next one does; where that is not known (the capture begins
in the middle of a connection, or bytes are missing), the kernel looks for the next place at which a plausible frame
stands. Both directions of a connection are read side by side, packet by packet: with each, what it put in order can be
seen (``Way.seen``), and nothing else. So what is made of it cannot depend on what came later, nor on where a window
ends, and only what is in flight has to be remembered. Each request leaves an entry in the connection's list
(``kwire.kernels.pairing``), and a response takes the first entry with its correlation id. Frames come out as rows of
numbers; the bytes stay where they are.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A Produce request with acks=0 has no response and leaves no entry [10]. acks is read by a program of
  ``kwire.kernels.programs``, not by a parser of its own; where the fields in front of it are empty, as nearly always,
  it stands at a place that is worked out from that program.
- After a SaslHandshake v0, and in a connection that opens with a GSSAPI token, frames are raw tokens until a
  request header is seen again; each leaves an entry, so that the answer is known to be a token too [11].
- A response whose request may still come is waited for, and all behind it: ``DISORDER`` by the clock, and longer while
  there is a hole in the requests, until that is filled or given up.
- Gaps: what is missing inside of a frame costs this frame only, because its size says where the next one begins. Its
  row comes when what is behind it does, so that the latest of its bytes that were captured date it.
- Nothing is allocated: where a table is full the kernel returns, the caller makes it larger and calls again, and the
  kernel goes on at the frame that did not fit. What was done is in the streams, so nothing is done twice.
- What a frame is numbered by (``order``) is the packet that settled it. Rows are in order neither of streams nor of
  time: ``Tracker._read`` sorts them.
- Where responses are searched after a hole, they wait until the requests have no hole: what they may answer is not
  known before.
- While an unnamed first request waits (``Way.unsure``), nothing of the other direction is read: responses are searched
  by the requests that wait, and would be passed over.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import (
    FITS,
    MOST_JUDGED,
    NOT_KNOWN,
    SO_FAR,
    TRAILS,
    UNFIT,
    acks_of,
    fits,
    fits_all,
    is_telling,
)
from kwire.kernels.layouts import ABSENT, AT_THE_END, Reason, Role, Row, Status, table_type
from kwire.kernels.names import LONGEST_NAME, has_room, intern, same_bytes
from kwire.kernels.numbers import i16, i32, int64, prefetch
from kwire.kernels.pairing import (
    DISORDER,
    SASL_TOKEN,
    answered,
    drop,
    find,
    find_request,
    plausible_response,
    wait_for,
)
from kwire.kernels.roles import (
    LARGEST_FRAME,
    LARGEST_TOKEN,
    NEAR,
    NEED_MORE,
    NEVER,
    NO,
    OFTEN,
    UNDECIDED,
    YES,
    Facts,
    Window,
    has_client_id,
    is_kerberos,
    is_not_readable,
    let_go,
    plausible_request,
    run_of,
    settle,
)
from kwire.kernels.streams import ACKED_WAIT, first_from
from kwire.kernels.tracking import FARTHEST_AHEAD, MOST_WINDOW
from kwire.schema.keys import ApiKey

__all__ = [
    "Capture",
    "Scratch",
    "by_order",
    "frames_and_pairs",
    "is_settled",
    "settle_all",
    "tell_the_rest",
    "with_body_of",
]

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
UNREADABLE: Final = 4
"""The connection is encrypted."""

_OF_TEXT: Final = 0x2000
"""The least number of 16 bits whose first byte is a character that can be shown."""

_SIGNED: Final = 0x763D
"""``v=``: what a broker's last message of SCRAM begins with, behind which its signature stands (RFC 5802, 7)."""

MOST_TOKENS: Final = 64
"""Raw tokens of a connection that wait for their answer, at most: a client waits for each before it sends the next
(RFC 4422)."""

LARGEST_ID: Final = 0x7FFFFFFF
"""Behind it, ids begin again."""
RESERVED: Final = LARGEST_ID - 7
"""Ids from here on are those that Java sends SASL with, whatever the others are (``SaslClientAuthenticator``)."""
SHORTEST_REQUEST: Final = 14
"""Bytes of a request, its size included: so many more, and another id may have been there."""

MOST_PIECES: Final = 64
"""Pieces in which the answer to a request is looked for,"""
MOST_LOOKED: Final = 16 << 10
"""and bytes that are judged for it."""
MOST_FOLLOWED: Final = 8
"""Frames, one behind the other, that tell without a segment that begins with one."""
MOST_AWAITED: Final = 256 << 10
"""Bytes behind the beginning of a frame up to which another one is waited for that tells it."""

PERHAPS: Final = 3
"""Besides YES, NO and NEED_MORE."""

ENOUGH: Final = 16
"""Bytes of a frame, its size included, behind which nothing tells any more that it is a token, or encrypted."""

MOST_ANSWERS: Final = 3
"""Segments inside of a response that begin with the responses to requests which were sent behind its beginning, each
whole: so many, and its size is wrong. Its own tagged fields may say that they hold anything."""

HELD_FOR: Final = 10_000_000_000
"""Nanoseconds of capture time for which a request in doubt is held, at most,"""
MOST_HELD: Final = 256 << 10
"""bytes of a direction that are held with it,"""
HELD_PIECES: Final = 512
"""and pieces."""
LEAST_AROUND: Final = 60
"""Bytes that a frame has before a value of its first record, at least: its size, header, topic, partition and those of
the record set."""
MOST_ASKED: Final = 64
"""Requests that wait, of which it is looked whether one asks for records."""

ALWAYS_COMPARED: Final = 16 << 10
"""Bytes of a frame in which each segment is looked at that may begin another: behind it, one wherever the frame's
beginning has doubled, since all of it is judged each time."""

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
    """One direction of a connection while it is read, run by run, packet by packet."""

    slot: int
    response: int
    client_side: int
    stream: int
    now: int
    """The packet up to which the connection is read."""
    over: int
    """1 when nothing will follow: the capture or the connection has ended."""
    end_piece: int
    """Its pieces end before this row."""
    seen: int
    """Those that can be seen now do."""
    fresh: int
    """1 when something has come since it was read."""
    holed_since: int
    """Since which packet segments wait behind a hole, in the end; AT_THE_END if none do."""
    blocked: int
    """1 while a response waits for its request,"""
    wake: int
    """with which packet it is given up, unless there is a hole."""
    unsure: int
    """1 while the first request waits for an answer that says that it is one, or up to packet ``wake``: until then
    nothing of the other direction is read."""
    first: int
    """The piece that the next run begins with."""
    reading: int
    """1 within a run, 0 before the next one begins."""
    pos: int
    """Where the next frame begins."""
    piece: int
    """The piece that ``pos`` is in."""
    run_end: int
    after: int
    """The row behind the last piece of this run that can be seen."""
    compared: int
    """Pieces before this row do not begin with another frame inside of the one that is read,"""
    around: int
    """which begins here,"""
    answers: int
    """but for so many that may be responses to requests which were sent behind its beginning,"""
    answered_order: int
    """the last of which was known with this packet; and"""
    first_answer: int
    """where the first of them begins."""
    needs: int
    """Nothing new can be said before there is a byte in front of this position, unless a frame may begin with what
    comes; -1 where that is not known."""
    shift: int
    """Makes an offset in the data of a position in this run."""
    gap_follows: int
    ends_here: int
    """1 when nothing will follow this run without a gap."""


WAY: Final = table_type(Way)


@inlined
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
def _mark_here(window: Window, capture: Capture, rows: Array, way: Any, size: int, status: int, reason: int) -> None:
    """A row for bytes at the current position, in which no frame can be seen."""
    piece = window.pieces[way.piece]
    row = _mark(rows, capture.room[0], way.slot, way.response, way.client_side, size, status, reason)
    row.begin = way.pos - (size if reason == Reason.SKIPPED else 0)
    row.end = way.pos
    row.time = piece.time
    row.order = way.now


@kernel
def _is_unnamed(data: Array, at: int) -> bool:
    """Whether the header of the request at ``at`` has no place for a client_id."""
    unnamed: bool = i16(data, at + 4) == ApiKey.CONTROLLED_SHUTDOWN and i16(data, at + 6) == 0
    return unnamed


@kernel
def _goes_on(data: Array, at: int, following: int) -> bool:
    """Whether the request at ``following`` is of the client that sent the one at ``at``, and later: frames that are the
    values of records may stand side by side too, but are those of many. Both are there up to the end of that."""
    if _is_unnamed(data, at) or _is_unnamed(data, following):
        return False
    length = i16(data, at + 12)
    later = 0 < i32(data, following + 8) - i32(data, at + 8) <= NEAR
    if not later or i16(data, following + 12) != length:
        return False
    same: bool = length < 0 or same_bytes(data, at + 14, data, following + 14, length)
    return same


@kernel
def _is_later(window: Window, capture: Capture, way: Any, at: int) -> bool:
    """Whether the request at ``at`` has an id that may come behind the latest: clients count, and what is skipped holds
    so many requests at most. Values of records may be frames of the same client, but have ids of any time."""
    latest = capture.connections[way.slot].latest_id
    skipped = max(int64(0), capture.streams[way.stream].skipped) + at - way.shift - way.pos
    further = (i32(window.data, at + 8) - latest) & LARGEST_ID
    later: bool = latest < 0 or 0 < further <= NEAR + skipped // SHORTEST_REQUEST
    return later


@kernel
def _others_follow(
    window: Window,
    facts: Facts,
    scratch: Scratch,
    way: Any,
    at: int,
    stop: int,
    piece: int,
    touching: bool,
    later: bool,
) -> int:
    """Whether the request at ``at``, in ``piece``, is followed by others of its client, one behind the other, up to
    where a segment begins with one: YES, NO or NEED_MORE. ``touching``, ``later``: it stands at the beginning of a
    segment, its id comes behind the latest. Where both are, nothing need follow. At the end of all, ids without a gap
    will do. What is far away is not waited for: only what holds records is as large as that.

    A value of a record may be several requests. Mostly the rest of the record follows, but a message set ends with a
    value, and so may a segment.
    """
    data, pieces = window.data, window.pieces
    first = at
    count = int64(0)
    gapless = True
    while count < MOST_FOLLOWED:
        following = at + 4 + i32(data, at)
        if following - first > MOST_AWAITED:
            return YES if later and i16(data, at + 4) == ApiKey.PRODUCE else NO
        if following >= stop:
            break
        answer = plausible_request(data, following, stop, facts.apis)
        if answer == NEED_MORE and way.ends_here == 1:
            break
        if answer != YES or not _goes_on(data, at, following):
            return answer if answer == NEED_MORE else NO
        while pieces[piece].pos + pieces[piece].len <= following - way.shift:
            piece += 1
        if pieces[piece].pos == following - way.shift:
            return YES
        said, _ = fits(
            data, following, stop, int64(0), i16(data, following + 4), i16(data, following + 6), facts, scratch
        )
        if said in (UNFIT, TRAILS):
            return NO
        if said == SO_FAR:
            if way.ends_here == 1:
                break
            return NEED_MORE
        gapless = gapless and i32(data, following + 8) - i32(data, at + 8) == 1
        count += 1
        at = following
    if later and (touching or count == MOST_FOLLOWED or (count > 0 and gapless and way.ends_here == 1)):
        return YES
    return NEED_MORE if way.ends_here == 0 and count < MOST_FOLLOWED else NO


@kernel
def _request_here(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int, piece: int
) -> int:
    """Whether what stands at ``at``, a plausible header where the boundary is not known, is a request.

    Its body has to fit, its client_id is that of the connection where one is known, and its id comes behind the latest:
    values of records may be frames themselves. What follows has to be a request too. In the middle of a segment others
    have to follow up to the beginning of another; at the beginning of a segment the id may be any if they do.
    ``piece`` has its first byte.
    """
    data = window.data
    client = capture.connections[way.slot].client
    touching = window.pieces[piece].pos == at - way.shift
    length = i16(data, at + 12) if stop - at >= 14 else int64(-1)
    known = False
    if client >= 0 and length >= 0:
        name = capture.names[client]
        known = name.len == length and same_bytes(data, at + 14, capture.pool, name.off, length)
    if client >= 0 and not known:
        return NO
    later = _is_later(window, capture, way, at)
    if not later and not (touching and known):
        return NO
    api, version = i16(data, at + 4), i16(data, at + 6)
    said, looked = fits(data, at, stop, int64(0), api, version, facts, scratch)
    if said == SO_FAR:
        if way.ends_here == 0:
            return NEED_MORE
        return YES if touching and known and later else NO
    if said in (UNFIT, TRAILS) or (said == NOT_KNOWN and not touching):
        return NO
    if not is_telling(data, at, stop, api, version, looked, facts, scratch):
        return NO
    if not (touching and known and later):
        return _others_follow(window, facts, scratch, way, at, stop, piece, touching, later)
    following = at + 4 + i32(data, at)
    answer = int64(YES)
    if following < stop:
        answer = plausible_request(data, following, stop, facts.apis)
    return YES if answer == NEED_MORE and way.ends_here == 1 else answer


@kernel
def _end_of_chain(window: Window, facts: Facts, at: int, stop: int) -> int:
    """Where the chain ends that begins with the request at ``at`` (side by side with it stand ``MOST_FOLLOWED`` others
    or more, of the same client, with ids that go on) if what follows says that it is none: no request, or one of this
    client with an id that does not go on. Else -1.

    A value of a record may be such a chain, and a border of a segment one of its borders. But the rest of the frame
    follows, or what the client does send. Of fewer it costs less to believe them than not to, if bytes are damaged.
    """
    data = window.data
    count = int64(0)
    while True:
        following = at + 4 + i32(data, at)
        answer = plausible_request(data, following, stop, facts.apis)
        if answer != YES or not _goes_on(data, at, following):
            break
        count += 1
        at = following
    if count < MOST_FOLLOWED or answer == NEED_MORE or (answer == YES and _is_unnamed(data, following)):
        return int64(-1)
    size = i32(data, following)
    if size < 8 or size > LARGEST_FRAME:
        return following
    length = i16(data, at + 12)
    if stop - following < SHORTEST_REQUEST + max(int64(0), length):
        return int64(-1)
    same = i16(data, following + 12) == length and (
        length < 0 or same_bytes(data, at + 14, data, following + 14, length)
    )
    if answer == YES:
        # Behind the largest id they begin again; those of SASL are larger than all others.
        further = i32(data, following + 8) - i32(data, at + 8)
        return following if same and further <= 0 and further & LARGEST_ID > NEAR else int64(-1)
    # An API or a version that is not known has a client_id too.
    return int64(-1) if same else following


@kernel
def _answers_follow(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int, piece: int
) -> int:
    """``_others_follow`` for the response at ``at``, in the middle of a segment: those that follow answer requests
    too."""
    data, pieces = window.data, window.pieces
    conn = capture.connections[way.slot]
    first = at
    count = int64(0)
    gapless = True
    while count < MOST_FOLLOWED:
        following = at + 4 + i32(data, at)
        if following - first > MOST_AWAITED:
            row = find(conn, capture.waiting, capture.ids, capture.room[0], i32(data, at + 4), int64(NEVER))
            return YES if row >= 0 and capture.waiting[row].api == ApiKey.FETCH else NO
        if following + 8 > stop:
            if way.ends_here == 0:
                return NEED_MORE
            return YES if count > 0 and gapless else NO
        while pieces[piece].pos + pieces[piece].len <= following - way.shift:
            piece += 1
        wanted = i32(data, following + 4)
        until = pieces[piece].clock + DISORDER
        row = find(conn, capture.waiting, capture.ids, capture.room[0], wanted, until)
        if row < 0 or wanted == i32(data, at + 4) or not 4 <= i32(data, following) <= LARGEST_FRAME:
            return NO
        if pieces[piece].pos == following - way.shift:
            return YES
        entry = capture.waiting[row]
        said, _ = fits(data, following, stop, int64(1), int64(entry.api), int64(entry.version), facts, scratch)
        if said == SO_FAR and way.ends_here == 0:
            return NEED_MORE
        if said in (UNFIT, TRAILS, SO_FAR):
            return NO
        gapless = gapless and wanted - i32(data, at + 4) == 1
        count += 1
        at = following
    return YES


@kernel
def _search(window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any) -> int:
    """Moves on to the next position at which a frame can begin: YES, NEED_MORE, or NO at the end of the run."""
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
                    answer = _request_here(window, capture, facts, scratch, way, at, stop, piece)
                    behind = _end_of_chain(window, facts, at, stop) if answer == YES else int64(-1)
                    if behind >= 0:
                        answer = NO
                        pos = behind - way.shift
                        continue
                elif touching and conn.first_id < 0:
                    # The handshake before it is missing.
                    token = is_kerberos(data, at, stop)
                    if token == YES:
                        conn.raw_tokens = 1
                    if token != NO:
                        answer = token
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
                if answer == YES and not touching:
                    answer = _answers_follow(window, capture, facts, scratch, way, at, stop, piece)
            # What is cut off within its header is none, but others may follow.
            if answer != NO and not (answer == NEED_MORE and way.ends_here == 1):
                break
        pos += 1
    way.pos = pos
    way.piece = piece
    return answer


@kernel
def _asks_for_records(conn: Any, waiting: Array) -> bool:
    """Whether a request that waits may be answered with records, or so many wait that it is not looked."""
    row = conn.waiting_head
    count = int64(0)
    while row >= 0:
        api = waiting[row].api
        if api == ApiKey.FETCH or api == ApiKey.SHARE_FETCH or api == ApiKey.FETCH_SNAPSHOT or count == MOST_ASKED:
            return True
        row = waiting[row].next
        count += 1
    return conn.given_up > 0  # type: ignore[no-any-return]


@kernel
def _follows(window: Window, capture: Capture, way: Any, row: int, end: int) -> int:
    """Whether a direction goes on at position ``end``, with piece ``row``, or ends there: YES, NO or NEED_MORE."""
    stream = capture.streams[way.stream]
    if row < way.seen:
        return int64(YES) if window.pieces[row].pos == end else int64(NO)
    if stream.end >= 0 and stream.end_order <= way.now:
        return int64(YES) if stream.end == end else int64(NO)
    if way.over == 0:
        return int64(NEED_MORE)
    # Only when all has been captured, what was acknowledged does not depend on windows.
    return int64(YES) if window.final and way.now == AT_THE_END and 0 <= stream.acked <= end else int64(NO)


@kernel
def _certainty(window: Window, capture: Capture, way: Any, asked: Any) -> int:
    """How certain it is that a frame begins at the current position, where one was searched: what ``Stream.certain``
    becomes; -1 where a response waits for what tells it.

    It may be a value of a record of another frame. It is none where no frame around it has room behind the last one
    that was certain. No response is one where no request that waits asks for records: the request behind it has to be
    there, or one that does may be missing.
    """
    stream = capture.streams[way.stream]
    if stream.certain > 0 and stream.skipped < LEAST_AROUND:
        return int64(2) if way.response == 0 else stream.certain
    requests = capture.streams[asked.stream]
    conn = capture.connections[way.slot]
    if (
        way.response == 0
        or stream.certain == 0
        or requests.certain != 1
        or requests.synced != 1
        or _asks_for_records(conn, capture.waiting)
    ):
        return int64(0)
    piece = window.pieces[way.piece]
    if requests.began >= piece.packet:
        return int64(1)
    answer = _follows(window, capture, asked, asked.seen, requests.next)
    if answer == NEED_MORE:
        way.wake = first_from(window.clock, window.first_order, piece.clock + HELD_FOR)
        if way.wake > way.now and window.pieces[way.seen - 1].pos - way.pos < MOST_HELD:
            return int64(-1)
    return int64(1) if answer == YES else int64(0)


@inlined
def _has_hole(window: Window, way: Any) -> bool:
    """Whether segments of a direction wait behind a hole now."""
    # Whatever filled that hole, or gave it up, brought the next piece.
    since = window.pieces[way.seen].since if way.seen < way.end_piece else way.holed_since
    holed: bool = since <= way.now
    return holed


@kernel
def _resynchronise(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any, asked: Any
) -> int:
    """Looks for the next frame where it is not known where one begins: READ if there is one, WAITS, or BLOCKED as long
    as requests may still come that tell responses."""
    stream = capture.streams[way.stream]
    if way.response == 1 and way.over == 0 and _has_hole(window, asked):
        way.wake = NEVER
        return BLOCKED
    begin = way.pos
    piece = way.piece
    answer = _search(window, capture, facts, scratch, way)
    proven = begin <= stream.proven < way.run_end
    if proven and (answer != YES or way.pos + 4 + i32(window.data, way.pos + way.shift) > stream.proven):
        way.pos = stream.proven
        while window.pieces[piece].pos + window.pieces[piece].len <= way.pos:
            piece += 1
        way.piece = piece
        answer = int64(YES)
    stream.skipped = max(int64(0), stream.skipped) + way.pos - begin
    if answer != YES:
        return WAITS
    if way.pos != stream.proven:
        certain = _certainty(window, capture, way, asked)
        if certain < 0:
            return BLOCKED
        stream.certain = certain
    stream.synced = 1
    if way.response == 1:
        capture.connections[way.slot].missed = 1
    if stream.skipped > 0:
        _mark_here(window, capture, rows, way, stream.skipped, Status.GAP, Reason.SKIPPED)
    stream.skipped = 0
    return READ


@inlined
def _token_follows(
    window: Window, capture: Capture, facts: Facts, way: Any, asked: Any, at: int, available: int
) -> int:
    """Whether the next frame is a raw SASL token: YES, NO, or NEED_MORE, also of requests."""
    conn = capture.connections[way.slot]
    if way.response == 0:
        if conn.raw_tokens != 1 or available < 4:
            return NO
        answer = plausible_request(window.data, at, way.run_end + way.shift, facts.apis)
        if answer == YES:
            conn.raw_tokens = 0
            return NO
        return NEED_MORE if answer == NEED_MORE and way.ends_here == 0 else YES
    front = conn.waiting_front
    until = window.pieces[way.piece].clock + DISORDER
    if front < 0 or capture.waiting[front].api != SASL_TOKEN or capture.waiting[front].clock > until:
        return NO
    if available >= 8 and i32(window.data, at) >= 4:
        # A token is not always answered: is this already the response to a later request?
        number = i32(window.data, at + 4)
        if find(conn, capture.waiting, capture.ids, capture.room[0], number, until) >= 0:
            return NO
        if 0 <= number - max(int64(0), conn.first_id) <= NEAR and way.over == 0:
            # That may still come. What a token begins with is hardly such a number.
            way.wake = first_from(window.clock, window.first_order, until)
            if way.wake > way.now or _has_hole(window, asked):
                return NEED_MORE
    return YES


@inlined
def _last_piece(window: Window, way: Any, last_pos: int) -> int:
    """The piece that has the last byte, of those that can be seen, of a frame that ends before ``last_pos``."""
    pieces = window.pieces
    last = way.piece
    while last + 1 < way.seen and pieces[last].pos + pieces[last].len < last_pos:
        last += 1
    if pieces[last].pos >= last_pos and last > way.piece:
        last -= 1  # that one is behind the gap that has the frame's last byte
    return last


@kernel
def _has_controls(data: Array, off: int, length: int) -> bool:
    """Whether there are control characters of ASCII among so many bytes."""
    for at in range(off, off + length):  # noqa: SIM110
        if data[at] < 0x20 or data[at] == 0x7F:
            return True
    return False


@inlined
def _client_of(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, conn: Any, row: Any, off: int, length: int
) -> int:
    """The number of the client_id at ``off``; -1 for what may be none.

    One of which a byte of the length is damaged reaches into the body, which may be a password. Behind its end stand
    zeros: of the size of what follows, or of tagged fields. So one with control characters counts where the request is
    what its layout says, to the last byte.
    """
    client: int = conn.client
    # A connection has one client_id, nearly always.
    if client >= 0:
        known = capture.names[client]
        if known.len == length and same_bytes(window.data, off, capture.pool, known.off, length):
            return client
    if _has_controls(window.data, off, length):
        said = fits_all(window.data, row.off - 4, row.off + row.seen, int64(0), row.api, row.version, facts, scratch)
        if said != FITS:
            return int64(-1)
    client = intern(window.data, off, length, capture.names, capture.pool, capture.lookup, capture.names_used[0])
    conn.client = client
    return client


@inlined
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
def _is_known(facts: Facts, api: int, version: int) -> bool:
    """Whether there is a layout for a version of an API."""
    known: bool = 0 <= api < facts.apis.shape[0] and 0 <= version <= facts.apis[api].latest
    return known


@kernel
def _may_be_token(window: Window, row: Any) -> bool:
    """Whether the bytes of a request of an unknown API or version may be a raw SASL token whose handshake is not in the
    capture: then nothing of them is shown.

    The length of a client_id, which every header has, leads out of text, or is that of two characters. Where it is not,
    the zeros tell: a header has some in its first eight bytes, since APIs, versions and correlation ids are small, and
    PLAIN has two in all. So no token of PLAIN, SCRAM or OAUTHBEARER without control characters is taken for a header,
    however long it is.
    """
    if row.seen < 10:
        return True
    length = i16(window.data, row.off + 8)
    if length < -1 or length >= _OF_TEXT or 10 + length > row.size:
        return True
    zeros = int64(0)
    for k in range(8):
        if window.data[row.off + k] == 0:
            zeros += 1
    return zeros < 2


@inlined
def _header_is_readable(window: Window, capture: Capture, facts: Facts, scratch: Scratch, conn: Any, row: Any) -> bool:
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
    if 10 + length > row.size:
        row.status = Status.MALFORMED
        row.reason = Reason.CLIENT_ID
        row.detail = length
        return False
    if length >= 0 and 10 + length <= row.seen:
        row.client = _client_of(window, capture, facts, scratch, conn, row, row.off + 10, length)
    return True


@inlined
def _is_answered(window: Window, facts: Facts, scratch: Scratch, row: Any) -> bool:
    """Whether a request has a response: not a Produce with acks=0."""
    if row.api != ApiKey.PRODUCE:
        return True
    acks, behind = acks_of(window.data, row.off, row.off + row.seen, row.version, facts, scratch)
    answered: bool = behind < 0 or acks != 0
    return answered


@inlined
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
        if whole and conn.waiting < MOST_TOKENS:
            wait_for(conn, capture.waiting, capture.ids, room, 0, SASL_TOKEN, 0, -1, row.time, row.order, clock)
            capture.waiting[conn.waiting_tail].doubted = 0
        return
    if row.seen >= 4:
        row.api = i16(window.data, row.off)
        row.version = i16(window.data, row.off + 2)
    if row.seen >= 8:
        row.id = i32(window.data, row.off + 4)
    if row.seen >= 4 and not _is_known(facts, row.api, row.version) and _may_be_token(window, row):
        # Not even a number is made of what nobody is to see.
        row.api = ABSENT
        row.version = ABSENT
        row.id = ABSENT
        if row.status == Status.OK:
            row.status = Status.MALFORMED
            row.reason = Reason.NO_HEADER
        return
    if not _header_is_readable(window, capture, facts, scratch, conn, row):
        return
    if conn.first_id < 0:
        conn.first_id = max(int64(0), row.id)
    if row.id & LARGEST_ID < RESERVED:
        conn.latest_id = row.id & LARGEST_ID
    _judge_version(row, facts)
    if _is_answered(window, facts, scratch, row):
        wait_for(
            conn,
            capture.waiting,
            capture.ids,
            room,
            row.id,
            row.api,
            row.version,
            row.client,
            row.time,
            row.order,
            clock,
        )
        capture.waiting[conn.waiting_tail].doubted = 1 if capture.streams[way.stream].certain == 0 else 0
    if row.api == ApiKey.SASL_HANDSHAKE and row.version == 0:
        conn.raw_tokens = 1


@inlined
def _response(
    window: Window, capture: Capture, facts: Facts, row: Any, way: Any, asked: Any, token: bool, clock: int
) -> bool:
    """Completes the row of a response, at which the clock showed ``clock``: False if its request may still come."""
    conn = capture.connections[way.slot]
    waiting, ids, room = capture.waiting, capture.ids, capture.room[0]
    if token:
        entry = waiting[conn.waiting_front]
        row.status = Status.SASL
        row.latency = row.time - entry.time
        answered(conn, waiting, ids, room, conn.waiting_front)
        return True
    if row.seen < 4:
        # Whose response it is, is not known.
        conn.missed = 1
        return True
    row.id = i32(window.data, row.off)
    which = find_request(conn, waiting, ids, room, row.id, clock + DISORDER)
    if which < 0:
        if way.over == 0:
            way.wake = first_from(window.clock, window.first_order, clock + DISORDER)
            if way.wake > way.now or _has_hole(window, asked):
                return False
        if i16(window.data, row.off) == _SIGNED:
            # Not even a number is made of what nobody is to see.
            row.id = ABSENT
        row.status = Status.UNPAIRED
        row.reason = Reason.UNPAIRED
        # Its request may be read later, behind a hole: it must not wait then as one that was overtaken.
        conn.missed = 1
        if conn.given_up > 0:
            row.reason = Reason.GIVEN_UP
            row.detail = conn.given_up
        return True
    entry = waiting[which]
    row.api = entry.api
    row.version = entry.version
    row.client = entry.client
    row.latency = row.time - entry.time
    doubted = entry.doubted
    answered(conn, waiting, ids, room, which)
    _judge_version(row, facts)
    if doubted == 1 and row.status == Status.OK:
        row.status = Status.UNCONFIRMED
        row.reason = Reason.ASKED_UNCONFIRMED
    return True


@kernel
def _body_there(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int, now: int
) -> int:
    """What ``fits_all`` says of the frame at ``at``, of what stands before ``stop``, by what was known with packet
    ``now``; NOT_KNOWN of the answer to a request that was not."""
    data = window.data
    if way.response == 0:
        if stop - at < 8:
            return int64(NOT_KNOWN)
        return fits_all(data, at, stop, int64(0), i16(data, at + 4), i16(data, at + 6), facts, scratch)
    row = _asked_before(window, capture, way, at, now)
    if row < 0:
        return int64(NOT_KNOWN)
    entry = capture.waiting[row]
    return fits_all(data, at, stop, int64(1), int64(entry.api), int64(entry.version), facts, scratch)


@kernel
def _asked_before(window: Window, capture: Capture, way: Any, at: int, now: int) -> int:
    """The entry of the request, known with packet ``now``, that the response at ``at`` answers; -1 for none."""
    conn = capture.connections[way.slot]
    wanted = i32(window.data, at + 4)
    row = find_request(conn, capture.waiting, capture.ids, capture.room[0], wanted, int64(NEVER))
    return row if row >= 0 and capture.waiting[row].order <= now else int64(-1)


@inlined
def _begins_tokens(window: Window, capture: Capture, way: Any, at: int) -> bool:
    """Whether raw tokens, which look like nothing, may follow the frame at the current position."""
    data = window.data
    conn = capture.connections[way.slot]
    if way.response == 0:
        return conn.raw_tokens == 1 or (i16(data, at + 4) == ApiKey.SASL_HANDSHAKE and i16(data, at + 6) == 0)
    front = conn.waiting_front
    if front < 0:
        return False
    entry = capture.waiting[front]
    return entry.api == SASL_TOKEN or (entry.api == ApiKey.SASL_HANDSHAKE and entry.version == 0)


@kernel
def _is_of_client(window: Window, capture: Capture, way: Any, at: int, stop: int) -> bool:
    """Whether a request at ``at`` has the client_id that its connection has had last."""
    client = capture.connections[way.slot].client
    if client < 0 or stop - at < 14:
        return False
    name = capture.names[client]
    length = i16(window.data, at + 12)
    same: bool = (
        name.len == length
        and stop - at >= 14 + length
        and same_bytes(window.data, at + 14, capture.pool, name.off, length)
    )
    return same


@kernel
def _begins_frame(window: Window, capture: Capture, facts: Facts, way: Any, before: int, at: int, stop: int) -> int:
    """Whether what stands at ``at`` can be the frame that follows the one at ``before``, by its header: YES, NO,
    NEED_MORE, or PERHAPS a response to a request that is not known."""
    data = window.data
    if way.response == 0:
        answer = plausible_request(data, at, stop, facts.apis)
        if answer == NO and stop - at >= 4 and 8 <= i32(data, at) <= LARGEST_FRAME:
            # An API or a version that is not known.
            return YES if _is_of_client(window, capture, way, at, stop) else NO
        return answer
    if stop - at < 8:
        return NEED_MORE
    size = i32(data, at)
    if size < 4 or size > LARGEST_FRAME:
        return NO
    number = i32(data, at + 4)
    further = number - i32(data, before + 4)
    if further == 1:
        return YES
    conn = capture.connections[way.slot]
    row = find_request(conn, capture.waiting, capture.ids, capture.room[0], number, int64(NEVER))
    if row >= 0:
        return YES
    return int64(PERHAPS) if 0 < further <= NEAR else NO


@kernel
def _has_another(window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, end: int) -> bool:
    """Whether a segment inside of the frame at ``at``, which says that it ends at position ``end``, begins with another
    frame, while this one is not what its layout says, or ``MOST_ANSWERS`` do: its size is wrong then.

    Each segment is looked at once, by what there was when it came, or windows would matter.
    """
    data, pieces = window.data, window.pieces
    client = capture.connections[way.slot].client
    p = max(way.compared, way.piece + 1)
    found = False
    if way.around != way.pos:
        # What was passed over in another frame may tell of this one.
        p = way.piece + 1
        way.around = way.pos
        way.answers = 0
        way.answered_order = pieces[way.piece].order
    while not found and p < way.after and pieces[p].pos < end:
        now = pieces[p].order
        inner = pieces[p].off
        depth = pieces[p].pos - way.pos
        before = max(int64(0), pieces[p - 1].pos - way.pos)
        if depth < ALWAYS_COMPARED or (depth & ~before) > before:
            last = p
            while last + 1 < way.after and pieces[last + 1].order <= now:
                last += 1
            stop = pieces[last].off + pieces[last].len
            looks = stop - inner >= 8
            if looks:
                head = pieces[p].head if pieces[p].len >= 4 else i32(data, inner)
                looks = 4 <= head <= LARGEST_FRAME
            if looks and way.response == 0:
                looks = plausible_request(data, inner, stop, facts.apis) == YES and (
                    client < 0 or _is_of_client(window, capture, way, inner, stop)
                )
            body = int64(UNFIT)
            if looks:
                body = _body_there(window, capture, facts, scratch, way, inner, stop, now)
            if _may_be_whole(body):
                found = not _may_be_whole(_body_there(window, capture, facts, scratch, way, at, stop, now))
            if not found and body == FITS and way.response == 1:
                asked = capture.waiting[_asked_before(window, capture, way, inner, now)].order
                if asked > way.answered_order:
                    way.answered_order = asked
                    way.answers += 1
                    if way.answers == 1:
                        way.first_answer = pieces[p].pos
                    found = way.answers == MOST_ANSWERS
        if not found:
            p += 1
    way.compared = p
    return found


@kernel
def _may_be_whole(said: int) -> bool:
    """Whether a body is what its layout says, as far as it is there."""
    fits_so_far: bool = said in (FITS, SO_FAR)
    return fits_so_far


@kernel
def _tells(window: Window, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int) -> int:
    """Whether what stands at ``at`` tells that its connection is Kafka, which nothing else that it sent has told: YES,
    NO or NEED_MORE."""
    data = window.data
    if way.ends_here == 0 and stop - at < min(ENOUGH, 4 + max(int64(0), i32(data, at))):
        return NEED_MORE
    answer = plausible_request(data, at, stop, facts.apis)
    if answer == YES:
        api, version = i16(data, at + 4), i16(data, at + 6)
        said, looked = fits(data, at, stop, int64(0), api, version, facts, scratch)
        if said == SO_FAR:
            answer = int64(NEED_MORE)
        elif said in (UNFIT, TRAILS) or not is_telling(data, at, stop, api, version, looked, facts, scratch):
            answer = int64(NO)
    # Of what is cut off, the header has to do.
    return int64(YES) if answer == NEED_MORE and way.ends_here == 1 else answer


@kernel
def _has_answer(
    window: Window, facts: Facts, scratch: Scratch, first: int, seen: int, at: int, stop: int, late: bool, most: int
) -> tuple[bool, int]:
    """Whether one of the frames with which pieces of the other direction begin, rows ``first`` to ``seen`` - 1, is the
    answer to the request at ``at``; and how many of ``most`` bytes may still be looked at. ``late``: what is there of
    it has to do."""
    data, pieces = window.data, window.pieces
    if stop - at < SHORTEST_REQUEST:
        return False, most
    for p in range(first, min(seen, first + OFTEN)):
        begin = pieces[p].off
        count = int64(0)
        while begin >= 0 and count < MOST_FOLLOWED and most > 0:
            there, behind = run_of(pieces, p, seen, begin + 4 + MOST_JUDGED)
            size = i32(data, begin) if there - begin >= 8 else int64(0)
            if size < 4 or size > LARGEST_FRAME:
                break
            # Of what is cut off, nothing more will come.
            enough = late or behind < seen or there - begin >= 4 + min(size, int64(MOST_JUDGED))
            if enough and i32(data, begin + 4) == i32(data, at + 8):
                said, looked = fits(data, begin, there, int64(1), i16(data, at + 4), i16(data, at + 6), facts, scratch)
                if said not in (UNFIT, TRAILS):
                    return True, most
                most -= looked
            begin += 4 + size
            count += 1
    return False, most


@kernel
def _is_no_answer(window: Window, first: int, seen: int, begin: int) -> bool:
    """Whether pieces of a direction, rows ``first`` to ``seen`` - 1, which have none of the answers that there should
    be, have others: not where bytes are missing, of those behind position ``begin`` too. Where the beginning of the
    stream is not known (``begin`` is below 0), only where one of them begins with a frame that ends with one."""
    data, pieces = window.data, window.pieces
    if 0 <= begin < pieces[first].pos:
        return False
    framed = begin >= 0
    for p in range(first, min(seen, first + OFTEN)):
        at = pieces[p].off
        if at < 0 or (p > first and pieces[p].pos > pieces[p - 1].pos + pieces[p - 1].len):
            return False
        if not framed and pieces[p].len >= 4:
            size = i32(data, at)
            there, _ = run_of(pieces, p, seen, at + 4 + size)
            framed = 0 < size <= LARGEST_FRAME and there == at + 4 + size
    return framed


@kernel
def _is_confirmed(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, stop: int
) -> int:
    """Whether the other direction agrees that the request at ``at``, without a client_id, is one: YES, NO or NEED_MORE.

    It does with the answer to this one, or to another one behind it: what is left of an answer whose beginning is not
    in the capture says nothing. Where neither has come with ``OFTEN`` packets, or will, it does not, but for holes.
    Where nothing of it has come for a while it may not have been captured, and says nothing.
    """
    data, pieces = window.data, window.pieces
    other = scratch.ways[1]
    stream = capture.streams[other.stream]
    first = other.piece if other.reading == 1 else other.first
    while first < other.seen and pieces[first].pos + pieces[first].len <= stream.next:
        first += 1
    end = way.pos + 4 + i32(data, at)
    # Packets of both directions, without those that brought the request.
    count = other.seen - first
    p = way.seen - 1
    while p > way.piece and count < OFTEN and pieces[p].pos >= end:
        count += 1
        p -= 1
    held = pieces[way.seen - 1].pos + pieces[way.seen - 1].len - end
    reached = pieces[other.seen - 1].pos + pieces[other.seen - 1].len if first < other.seen else stream.next
    ended = 0 <= stream.end <= reached and stream.end_order <= way.now
    late = way.over == 1 or ended or count >= OFTEN or held > UNDECIDED
    if first >= other.seen:
        asked = pieces[_last_piece(window, way, end)]
        way.wake = first_from(window.clock, window.first_order, asked.clock + ACKED_WAIT)
        return int64(YES) if late or way.wake <= way.now else int64(NEED_MORE)
    way.wake = NEVER
    seen = min(other.seen, first + MOST_PIECES)
    most = int64(MOST_LOOKED)
    for _ in range(MOST_FOLLOWED):
        found, most = _has_answer(window, facts, scratch, first, seen, at, stop, late, most)
        if found:
            return int64(YES)
        at += 4 + i32(data, at)
        if stop - at < 4 or plausible_request(data, at, stop, facts.apis) != YES:
            break
    if not late:
        return int64(NEED_MORE)
    if way.over == 0 and _has_hole(window, other):
        return int64(YES)
    begin = stream.next if stream.start >= 0 or stream.synced == 1 else int64(-1)
    return int64(NO) if _is_no_answer(window, first, seen, begin) else int64(YES)


@inlined
def _is_doubted(capture: Capture, stream: Any, answers: Any) -> bool:
    """Whether a request is in doubt, or what answers it may be."""
    if stream.certain == 0:
        return True
    lost: bool = answers.proven < 0 and (answers.certain == 0 or answers.synced == 0)
    return lost


@kernel
def _turn_end(pieces: Array, first: int, seen: int, until: int) -> tuple[int, int]:
    """The pieces of one direction that were captured before packet ``until``, from row ``first`` on: the row behind the
    last of them, and the position behind it; -1 for both where there is a hole."""
    end = pieces[first].pos
    row = first
    while row < seen and pieces[row].packet < until:
        if pieces[row].off < 0 or pieces[row].pos != end:
            return int64(-1), int64(-1)
        end += pieces[row].len
        row += 1
    return row, end


@kernel
def _frames_end_at(window: Window, first: int, begin: int, row: int) -> bool:
    """Whether whole frames of a direction end where piece ``row`` begins: the first of them begins at position
    ``begin``, in piece ``first``."""
    pieces = window.pieces
    end = pieces[row].pos
    if pieces[first].pos > begin or row - first > HELD_PIECES:
        return False
    for p in range(first, row):
        if pieces[p].off < 0 or pieces[p].pos + pieces[p].len != pieces[p + 1].pos:
            return False
    shift = pieces[first].off - pieces[first].pos
    while begin + 4 <= end:
        size = i32(window.data, begin + shift)
        if size < 4 or size > LARGEST_FRAME:
            return False
        begin += 4 + size
    return begin == end  # type: ignore[no-any-return]


@kernel
def _answer_each(
    window: Window,
    facts: Facts,
    scratch: Scratch,
    at: int,
    stop: int,
    begin: int,
    end: int,
) -> int:
    """Whether ``begin`` to ``end`` are the answers, one behind the other, to the requests in ``at`` to ``stop``, each
    to its last byte: YES, NO, or PERHAPS for one request that may be the end of a frame which it answers.

    Where records have no more than a key and a value, a value may be the last of a frame, and have its id.
    """
    data = window.data
    answered = int64(0)
    api = int64(-1)
    version = int64(-1)
    while at < stop:
        size = i32(data, at) if stop - at >= SHORTEST_REQUEST - 2 else int64(0)
        if size < 8 or size > stop - at - 4:
            return NO
        api = int64(i16(data, at + 4))
        version = int64(i16(data, at + 6))
        if fits_all(data, at, stop, int64(0), api, version, facts, scratch) != FITS:
            return NO
        silent = False
        if api == ApiKey.PRODUCE:
            acks, behind = acks_of(data, at + 4, at + 4 + size, version, facts, scratch)
            silent = behind >= 0 and acks == 0
        if not silent:
            length = i32(data, begin) if end - begin >= 8 else int64(0)
            if length < 4 or length > end - begin - 4 or i32(data, begin + 4) != i32(data, at + 8):
                return NO
            if fits_all(data, begin, end, int64(1), api, version, facts, scratch) != FITS:
                return NO
            begin += 4 + length
            answered += 1
        at += 4 + size
    if begin != end or answered == 0:
        return NO
    old = (api == ApiKey.PRODUCE and version < 3) or (api == ApiKey.FETCH and version < 4)
    return int64(PERHAPS) if old and answered == 1 else int64(YES)


@kernel
def _exchanged(window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any) -> tuple[int, int]:
    """Whether the other direction proves that a request begins at the current position: YES, NO, NEED_MORE, or PERHAPS
    where the next one does; and where the first answer, or the next one, begins.

    It does if both ends took turns: whole requests from here on, with nothing of the other direction between them;
    then their answers, each to its last byte, and nothing else; then this direction goes on where it stopped. A value
    cannot do that. While the frame around it is under way, nothing that comes behind it is answered, and what
    is left of it comes without an answer. See docs/design/2026-11-26-proof-by-turns.md.
    """
    pieces = window.pieces
    other = scratch.ways[1]
    answers = capture.streams[other.stream]
    began = pieces[way.piece]
    none = int64(-1)
    if began.pos != way.pos:
        return int64(NO), none
    q = other.piece if other.reading == 1 else other.first
    while q < other.seen and pieces[q].pos + pieces[q].len <= answers.next:
        q += 1
    first = q
    while q < other.seen and pieces[q].packet <= began.packet:
        q += 1
    if q >= other.seen:
        ended = answers.end >= 0 and answers.end_order <= way.now
        return int64(NO) if way.over == 1 or ended else int64(NEED_MORE), none
    if answers.synced == 1 and not _frames_end_at(window, first, answers.next, q):
        return int64(NO), none
    n, asked_end = _turn_end(pieces, way.piece, way.seen, pieces[q].packet)
    if n < 0:
        return int64(NO), none
    until = pieces[n].packet if n < way.seen else int64(NEVER)
    m, answered_end = _turn_end(pieces, q, other.seen, until)
    if m < 0:
        return int64(NO), none
    begin = pieces[q].pos
    follows = _follows(window, capture, way, n, asked_end)
    if follows == YES and answers.certain != 1:
        follows = _follows(window, capture, other, m, answered_end)
    if follows != YES:
        return follows, none
    shift = pieces[q].off - begin
    answer = _answer_each(
        window,
        facts,
        scratch,
        way.pos + way.shift,
        asked_end + way.shift,
        begin + shift,
        answered_end + shift,
    )
    if answer == PERHAPS and asked_end != way.pos + 4 + i32(window.data, way.pos + way.shift):
        return int64(NO), none
    if answer == PERHAPS:
        # What follows them is certain all the same.
        return answer, answered_end
    return answer, begin


@kernel
def _confirm(window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, size: int) -> int:
    """Looks for what confirms the request at the current position, which is in doubt, or its answer: READ when that is
    found or given up, WAITS as long as it may come."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    other = scratch.ways[1]
    answers = capture.streams[other.stream]
    said, begin = _exchanged(window, capture, facts, scratch, way)
    conn = capture.connections[way.slot]
    if said == YES and stream.certain == 0:
        stream.certain = 1
        # Those in doubt have no answer to come any more: else they would take those of others.
        while conn.waiting_tail >= 0 and capture.waiting[conn.waiting_tail].doubted == 1:
            drop(conn, capture.waiting, capture.ids, capture.room[0], conn.waiting_tail)
    elif said == YES:
        stream.certain = 1
    if said == PERHAPS and stream.certain == 0:
        stream.proven = way.pos + 4 + size
    if said in (YES, PERHAPS):
        answers.proven = begin
    if said != NEED_MORE:
        return READ
    last = pieces[way.seen - 1]
    held = last.pos + last.len - way.pos
    count = way.seen - way.piece
    first = other.piece if other.reading == 1 else other.first
    while first < other.seen and pieces[first].pos + pieces[first].len <= answers.next:
        first += 1
    if first < other.seen:
        count += other.seen - first
        last = pieces[other.seen - 1]
        held = max(held, last.pos + last.len - max(answers.next, pieces[first].pos))
    end = way.pos + 4 + size
    way.wake = first_from(window.clock, window.first_order, pieces[_last_piece(window, way, end)].clock + HELD_FOR)
    if way.wake <= way.now or held > MOST_HELD or count > HELD_PIECES:
        return READ
    way.unsure = 1
    return WAITS


@inlined
def _is_no_frame(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, way: Any, at: int, available: int, size: int
) -> int:
    """Whether there is no frame of this size at the current position, where one should begin: YES, NO, or NEED_MORE
    where that cannot be told yet.

    Sizes are believed as long as what follows looks like a frame, or is not there. Else the body has to be what its
    layout says. Tokens look like nothing.
    """
    if available < 8:
        return NO
    stop = way.run_end + way.shift
    end = way.pos + 4 + size
    following = at + 4 + size
    conn = capture.connections[way.slot]
    if way.response == 0 and conn.first_id < 0 and conn.by_broker == 1:
        answer = _tells(window, facts, scratch, way, at, stop)
        # Other protocols may spell as much by chance. What is not there to its end has no answer yet.
        unnamed = not has_client_id(window.data, at, stop)
        if answer == YES and unnamed and (following <= stop or way.ends_here == 1):
            answer = _is_confirmed(window, capture, facts, scratch, way, at, stop)
            way.unsure = 1 if answer == NEED_MORE else 0
        if answer != YES:
            return YES if answer == NO else NEED_MORE
    if _begins_tokens(window, capture, way, at):
        if following >= stop:
            return NO
        body = _body_there(window, capture, facts, scratch, way, at, stop, way.now)
        return YES if body in (UNFIT, TRAILS) else NO
    if way.after > way.piece + 1 and _has_another(window, capture, facts, scratch, way, at, end):
        return YES
    if following >= stop:
        return NO
    answer = _begins_frame(window, capture, facts, way, at, following, stop)
    if answer == YES:
        return NO
    body = _body_there(window, capture, facts, scratch, way, at, stop, way.now)
    if body == FITS:
        return NO
    if answer == NEED_MORE and way.ends_here == 0:
        return NEED_MORE
    return NO if answer != NO and body == NOT_KNOWN else YES


@kernel
def _skip_size(window: Window, capture: Capture, rows: Array, way: Any, size: int, reason: int) -> None:
    """A row for the size at the current position, which is none; the next frame is looked for behind it."""
    stream = capture.streams[way.stream]
    _mark_here(window, capture, rows, way, size, Status.MALFORMED, reason)
    stream.synced = 0
    stream.certain = 0
    stream.skipped = 4
    way.pos += 4


@inlined
def _next_frame(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any, asked: Any
) -> int:
    """Reads the frame that begins at the current position: READ, WAITS or BLOCKED. ``asked``: the requests."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    at = way.pos + way.shift
    available = way.run_end - way.pos
    size = i32(window.data, at) if available >= 4 else int64(-1)
    if stream.proven >= 0:
        if way.pos < stream.proven < way.run_end and way.pos + 4 + size > stream.proven:
            # It would reach into one that is certain.
            stream.synced = 0
            return READ
        if way.pos >= stream.proven:
            stream.certain = 1 if way.pos == stream.proven else stream.certain
            stream.proven = -1
    follows = _token_follows(window, capture, facts, way, asked, at, available)
    if follows == NEED_MORE:
        return WAITS if way.response == 0 else BLOCKED
    token = follows == YES
    if available >= 4:
        least = 0 if token else (8 if way.response == 0 else 4)
        if size < least or size > (LARGEST_TOKEN if token else LARGEST_FRAME):
            _skip_size(window, capture, rows, way, size, int64(Reason.SIZE))
            return READ
    whole = available >= 4 and available - 4 >= size
    no_frame = int64(NO)
    if not token:
        no_frame = _is_no_frame(window, capture, facts, scratch, way, at, available, size)
        if no_frame == NEED_MORE:
            if way.response == 0:
                return WAITS
            way.wake = NEVER
            return BLOCKED
        if no_frame == YES and (
            way.response == 0 or not whole or _asked_before(window, capture, way, at, way.now) >= 0
        ):
            answered = way.around == way.pos and way.answers == MOST_ANSWERS
            _skip_size(window, capture, rows, way, size, int64(Reason.NO_FRAME))
            if answered:
                # Between them, nothing but more sizes that are none could be found.
                stream.skipped += way.first_answer - way.pos
                way.pos = way.first_answer
            return READ
    too_large = False
    if not whole:
        held = pieces[way.seen - 1].pos + pieces[way.seen - 1].len - way.pos
        too_large = held > window.ration
        if way.ends_here == 0 and not too_large:
            if (
                not token
                and available >= ENOUGH
                and (way.response == 0 or capture.connections[way.slot].waiting_head >= 0)
            ):
                way.needs = min(way.pos + 4 + size, way.pos + window.ration + 1)
            return WAITS
        if way.gap_follows == 1 and way.over == 0 and held < 4 + size and not too_large:
            return WAITS
    if stream.certain < 0:
        stream.certain = 1  # it begins where the SYN says
    if way.response == 0 and whole and not token:
        answers = capture.streams[scratch.ways[1].stream]
        if _is_doubted(capture, stream, answers) and _confirm(window, capture, facts, scratch, way, size) == WAITS:
            return WAITS
    # When the last byte of it, of those that are there, was captured.
    last_piece = way.piece
    if available >= 4:
        last_piece = _last_piece(window, way, way.pos + 4 + size)
    else:
        last_piece = _last_piece(window, way, way.run_end)
    last = pieces[last_piece]

    row = rows[capture.room[0].frames]
    row.slot = way.slot
    row.response = way.response
    row.client_side = way.client_side
    row.begin = way.pos
    row.time = last.time
    row.order = way.now
    row.off = at + 4
    stream.began = pieces[way.piece].packet
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
    elif not _response(window, capture, facts, row, way, asked, token, last.clock):
        return BLOCKED
    elif no_frame == YES:
        # Its request might have come.
        _skip_size(window, capture, rows, way, size, int64(Reason.NO_FRAME))
        return READ
    if not whole and row.status != Status.MALFORMED:
        row.status = Status.GAP if way.gap_follows == 1 else Status.CUT_OFF
        row.reason = Reason.HOLE if way.gap_follows == 1 else Reason.END
        if too_large and way.ends_here == 0:
            row.reason = Reason.LARGE
        row.detail = available
    if stream.certain == 0 and row.status == Status.OK:
        row.status = Status.UNCONFIRMED
        row.reason = Reason.UNCONFIRMED
    if row.status == Status.UNCONFIRMED:
        row.latency = ABSENT
    capture.room[0].frames += 1
    if available >= 4:
        way.pos += 4 + size  # where it is not whole: in the gap or behind it, where the next frame begins
    else:
        way.pos = way.run_end
        stream.synced = 0
    row.end = way.pos
    return READ


@inlined
def _begin_run(window: Window, capture: Capture, way: Any) -> None:
    """Begins to read at piece ``way.first``."""
    piece = window.pieces[way.first]
    stream = capture.streams[way.stream]
    begin = piece.pos
    way.run_end = begin + piece.len
    way.after = way.first + 1
    way.shift = piece.off - begin
    way.piece = way.first
    way.reading = 1
    way.pos = stream.next
    if way.pos < begin:
        # The boundary, if it was known, is among what is missing.
        stream.skipped = max(int64(0), stream.skipped) + begin - way.pos
        stream.synced = 0
        way.pos = begin


@inlined
def _go_on(window: Window, capture: Capture, way: Any) -> None:
    """Adds to the current run what follows it now."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    end = way.run_end
    after = way.after
    while after < way.seen and pieces[after].off >= 0 and pieces[after].pos == end:
        end += pieces[after].len
        after += 1
    way.run_end = end
    way.after = after
    way.gap_follows = 1 if after < way.seen else 0
    ended = way.over == 1 or (stream.end >= 0 and stream.end_order <= way.now and end >= stream.end)
    way.ends_here = 1 if way.gap_follows == 1 or ended else 0


@inlined
def _read_run(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any, asked: Any
) -> int:
    """Reads the frames of a run: READ at its end, or why not."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    conn = capture.connections[way.slot]
    while way.pos < way.run_end:
        while pieces[way.piece].pos + pieces[way.piece].len <= way.pos:
            way.piece += 1
        if _is_full(capture, rows):
            return FULL
        if conn.first_id < 0 and conn.raw_tokens == 0 and pieces[way.piece].pos == way.pos and conn.told == 0:
            side = way.stream & 1
            stop = way.run_end + way.shift
            if is_not_readable(window, conn, stream, side, way.piece, stop, way.now):
                return UNREADABLE
        if stream.synced != 1:
            said = _resynchronise(window, capture, facts, scratch, rows, way, asked)
        else:
            said = _next_frame(window, capture, facts, scratch, rows, way, asked)
        if said != READ:
            return said
    return READ


@kernel
def _begin_way(window: Window, capture: Capture, way: Any, slot: int, response: int, a: int, end: int) -> None:
    """Gets ready to read one direction of a connection, whose active streams are rows ``a`` to ``end`` - 1."""
    conn = capture.connections[slot]
    way.slot = slot
    way.response = response
    way.client_side = 0 if conn.role == Role.A_REQUESTS else 1
    way.stream = 2 * slot + (way.client_side ^ response)
    way.over = 0
    way.first = 0
    way.end_piece = 0
    way.seen = 0
    way.fresh = 1
    way.blocked = 0
    way.unsure = 0
    way.wake = NEVER
    way.holed_since = AT_THE_END
    way.reading = 0
    way.compared = 0
    way.around = -1
    way.needs = -1
    for x in range(a, end):
        one = window.active[x]
        if one.stream == way.stream:
            way.first = one.first
            way.end_piece = one.end
            way.seen = one.first
            way.holed_since = capture.streams[way.stream].since
    if way.first < way.end_piece:
        capture.streams[way.stream].time = window.pieces[way.end_piece - 1].time


@inlined
def _see(window: Window, capture: Capture, way: Any, now: int) -> None:
    """Lets be seen what was in order with packet ``now``."""
    pieces = window.pieces
    seen = way.seen
    while seen < way.end_piece and pieces[seen].order <= now:
        seen += 1
    if seen > way.seen:
        way.fresh = 1
        way.seen = seen
    way.now = now
    if capture.connections[way.slot].closed_order <= now:
        way.over = 1
        way.fresh = 1


@kernel
def _end_lost(window: Window, capture: Capture, way: Any) -> None:
    """Where a direction ends in bytes that the capture does not have, they are skipped."""
    stream = capture.streams[way.stream]
    if way.seen > 0 and way.end_piece > 0:
        last = window.pieces[way.seen - 1]
        end = last.pos + last.len
        if last.off < 0 and end > stream.next:
            stream.skipped = max(int64(0), stream.skipped) + end - stream.next
            stream.next = end
            stream.synced = 0


@inlined
def _only_grows(window: Window, way: Any) -> bool:
    """Whether what has come adds to the frame that is waited for, and to nothing else; then it is a part of the run."""
    pieces = window.pieces
    if way.needs < 0 or way.reading == 0 or way.over == 1:
        return False
    end = way.run_end
    after = way.after
    while after < way.seen:
        piece = pieces[after]
        if piece.off < 0 or piece.pos != end or piece.len < 4 or 4 <= piece.head <= LARGEST_FRAME:
            return False
        end += piece.len
        after += 1
    if end >= way.needs:
        return False
    way.run_end = end
    way.after = after
    return True


@inlined
def _read_way(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, way: Any, asked: Any
) -> int:
    """Reads what can be seen of one direction: READ where more is needed to go on, FULL, or UNREADABLE."""
    pieces = window.pieces
    stream = capture.streams[way.stream]
    if stream.synced == 0 and stream.start == stream.next and stream.start_order <= way.now and stream.skipped <= 0:
        # The SYN was captured behind the first bytes.
        stream.synced = 1
    way.blocked = 0
    way.unsure = 0
    if stream.end < 0 and _only_grows(window, way):
        way.fresh = 0
        return READ
    way.needs = -1
    way.fresh = 1  # until all has been read, whatever table is full before that
    while True:
        if way.reading == 0:
            while way.first < way.seen and (
                pieces[way.first].off < 0 or pieces[way.first].pos + pieces[way.first].len <= stream.next
            ):
                way.first += 1
            if way.first >= way.seen:
                break
            _begin_run(window, capture, way)
        _go_on(window, capture, way)
        said = _read_run(window, capture, facts, scratch, rows, way, asked)
        stream.next = max(stream.next, way.pos)
        if said in (FULL, UNREADABLE):
            return said
        if said == BLOCKED:
            way.blocked = 1
            break
        if way.gap_follows == 0 or way.pos < way.run_end:
            break
        way.reading = 0
        way.first = way.after
    way.fresh = 0
    if way.over == 1 and way.blocked == 0:
        _end_lost(window, capture, way)
    return READ


@inlined
def _grow(window: Window, capture: Capture, way: Any, other: Any, until: int) -> None:
    """Lets be seen what comes before packet ``until`` and the next of the other direction, as long as it does no more
    than ``_only_grows`` finds: packet by packet, as a large frame comes, this is nearly all that happens."""
    pieces = window.pieces
    if (
        way.needs < 0
        or way.reading == 0
        or way.over == 1
        or way.fresh == 1
        or way.blocked == 1
        or way.after != way.seen
        or other.fresh == 1
        or other.blocked == 1
        or capture.streams[way.stream].end >= 0
        or capture.streams[other.stream].synced != 1
    ):
        return
    if other.seen < other.end_piece:
        until = min(until, pieces[other.seen].order)
    p = way.seen
    end = way.run_end
    while p < way.end_piece:
        piece = pieces[p]
        if (
            piece.order >= until
            or piece.off < 0
            or piece.pos != end
            or end + piece.len >= way.needs
            or piece.len < 4
            or 4 <= piece.head <= LARGEST_FRAME
            or (p + 1 < way.end_piece and pieces[p + 1].order == piece.order)
        ):
            break
        end += piece.len
        p += 1
    if p > way.seen:
        way.seen = p
        way.after = p
        way.run_end = end
        way.now = pieces[p - 1].order
        other.now = way.now


@inlined
def _following(window: Window, capture: Capture, asked: Any, answered: Any) -> int:
    """The next packet with which something happens to a connection; NEVER if there is none in this window."""
    pieces = window.pieces
    following = _otherwise(window, capture, asked, answered)
    if asked.unsure == 0:
        _grow(window, capture, asked, answered, following)
        _grow(window, capture, answered, asked, following)
    if asked.seen < asked.end_piece:
        following = min(following, pieces[asked.seen].order)
    if answered.seen < answered.end_piece:
        following = min(following, pieces[answered.seen].order)
    return following


@inlined
def _otherwise(window: Window, capture: Capture, asked: Any, answered: Any) -> int:
    """The next packet with which something happens to a connection but that it brings bytes; NEVER if there is none in
    this window."""
    conn = capture.connections[asked.slot]
    now = asked.now
    following = int64(NEVER)
    if answered.blocked == 1 and answered.wake > now:
        following = min(following, answered.wake)
    if asked.unsure == 1 and asked.wake > now:
        following = min(following, asked.wake)
    last = window.first_order + window.clock.shape[0] - 1
    if now < conn.closed_order <= last:
        following = min(following, conn.closed_order)
    for way in (asked, answered):
        stream = capture.streams[way.stream]
        if now < stream.end_order <= last:
            following = min(following, stream.end_order)
        if now < stream.start_order <= last:
            following = min(following, stream.start_order)
    if window.final and now < AT_THE_END:
        return min(following, int64(AT_THE_END))
    return following if following <= last else int64(NEVER)


@inlined
def _read_both(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, asked: Any, answered: Any
) -> int:
    """Reads requests and responses, packet by packet, to the end of the window: READ, FULL or UNREADABLE."""
    while True:
        if asked.fresh == 1:
            said = _read_way(window, capture, facts, scratch, rows, asked, asked)
            if said != READ:
                return said
            if answered.blocked == 1 or capture.streams[answered.stream].synced != 1:
                # A request may be the one that it waits for, or say which answers are to be expected.
                answered.fresh = 1
        ready = answered.fresh == 1 or (answered.blocked == 1 and answered.wake <= answered.now)
        if ready and asked.unsure == 0:
            said = _read_way(window, capture, facts, scratch, rows, answered, asked)
            if said != READ:
                return said
        now = _following(window, capture, asked, answered)
        if now == NEVER:
            return READ
        _see(window, capture, asked, now)
        _see(window, capture, answered, now)
        if asked.unsure == 1:
            asked.fresh = 1
        for way in (asked, answered):
            stream = capture.streams[way.stream]
            if now in (stream.end_order, stream.start_order):
                way.fresh = 1


@kernel
def _tell_encrypted(window: Window, capture: Capture, rows: Array, slot: int, a: int, end: int, now: int) -> None:
    """The one row of an encrypted connection, whose active streams are rows ``a`` to ``end`` - 1, with packet ``now``:
    that of the first bytes that there are, but for those that were taken for something else."""
    conn = capture.connections[slot]
    conn.told = 1
    client = conn.opener if conn.opener_order <= now else int64(-1)
    if client < 0:
        client = 0 if conn.a_port >= conn.b_port else 1
    broker_port = conn.b_port if client == 0 else conn.a_port
    if not window.forced and broker_port == HTTPS:
        return
    which = int64(-1)
    side = int64(0)
    for x in range(a, end):
        one = window.active[x]
        first = one.first
        while (
            first < one.end and window.pieces[first].pos + window.pieces[first].len <= capture.streams[one.stream].next
        ):
            first += 1
        if first < one.end and (which < 0 or window.pieces[first].order < window.pieces[which].order):
            which = first
            side = one.stream & 1
    if which < 0:
        return
    response = 0 if side == client else 1
    row = _mark(rows, capture.room[0], slot, response, client, 0, Status.ENCRYPTED, Reason.NONE)
    row.time = window.pieces[which].time
    row.order = now


@kernel
def _read_connection(
    window: Window, capture: Capture, facts: Facts, scratch: Scratch, rows: Array, a: int, end: int
) -> bool:
    """Reads both directions of a connection, whose active streams are rows ``a`` to ``end`` - 1: False where a table is
    full."""
    room = capture.room[0]
    slot = window.active[a].stream >> 1
    conn = capture.connections[slot]
    asked = scratch.ways[0]
    answered = scratch.ways[1]
    if room.begun == 0:
        if conn.role == Role.UNKNOWN or conn.settled_order >= window.first_order:
            let_go(window, capture.streams, conn, a, end)
        if conn.role == Role.ENCRYPTED and conn.told == 0:
            if _is_full(capture, rows):
                return False
            _tell_encrypted(window, capture, rows, slot, a, end, conn.settled_order)
        if conn.role != Role.A_REQUESTS and conn.role != Role.B_REQUESTS:
            return True
        room.begun = 1
        _begin_way(window, capture, asked, slot, int64(0), a, end)
        _begin_way(window, capture, answered, slot, int64(1), a, end)
        # What was there before has been looked at.
        begin = max(window.first_order - 1, conn.settled_order)
        _see(window, capture, asked, begin)
        _see(window, capture, answered, begin)
    asked.needs = -1
    answered.needs = -1
    said = _read_both(window, capture, facts, scratch, rows, asked, answered)
    if said == UNREADABLE:
        conn.role = Role.ENCRYPTED
        _tell_encrypted(window, capture, rows, slot, a, end, asked.now)
    return said != FULL


@kernel
def is_settled(active: Array, connections: Array, noted: Array) -> bool:
    """Whether the role of all connections of a window is known, and the broker of those that told it themselves: of
    these ``noted`` is 1, by their slots."""
    for a in range(active.shape[0]):
        slot = active[a].stream >> 1
        conn = connections[slot]
        role = conn.role
        if role == Role.UNKNOWN:
            return False
        if (role == Role.A_REQUESTS or role == Role.B_REQUESTS) and conn.by_broker == 0 and noted[slot] == 0:
            return False
    return True


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


_ROWS_AHEAD: Final = 12
"""How many rows ahead one is asked for that stands anywhere."""


@kernel
def by_order(
    rows: Array,
    read: int,
    first: int,
    number: int,
    ends: Array,
    at: Array,
    place: Array,
    sorted_: Array,
    copied: Array,
) -> bool:
    """Fills ``place`` with the numbers of the rows so that the requests of each connection stand in front of its
    responses, and ``sorted_`` with those in the order in which they were settled, as ``place`` has them where that is
    the same. Returns whether they are in order of time then.

    The rows before ``read`` are those of one connection after the other, and those behind stay where they are.
    ``first`` is the number of the window's first packet: what was settled before it stands in front. ``ends`` has two
    places more than there are packets, ``at`` one for each row. ``copied``, if it has rows, becomes the rows in that
    order with numbers from ``number`` on; what is in it means nothing where they are not in order of time."""
    last = ends.shape[0] - 1
    for k in range(ends.shape[0]):
        ends[k] = 0
    begin = int64(0)
    slot = int64(-1)
    n = int64(0)
    for k in range(rows.shape[0] + 1):
        if k == rows.shape[0] or k >= read or rows[k].slot != slot:
            # Behind the requests, the responses: a row is looked at once.
            for j in range(begin, k):
                if at[j] < 0:
                    at[j] = -1 - at[j]
                    place[n] = j
                    n += 1
            if k == rows.shape[0]:
                break
            begin = k
            slot = rows[k].slot
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
    copies = copied.shape[0] > 0
    time = int64(0)
    order = int64(0)
    for k in range(rows.shape[0]):
        if k + _ROWS_AHEAD < rows.shape[0]:
            prefetch(rows, sorted_[k + _ROWS_AHEAD])
        row = rows[sorted_[k]]
        if k > 0 and (row.time < time or (row.time == time and row.order != order)):
            return False
        time = row.time
        order = row.order
        if copies:
            copied[k] = row
            copied[k].number = number + k
    return True


@kernel
def with_body_of(rows: Array, kinds: Array, there: Array) -> None:
    """``there`` becomes 1 for the rows of a kind that is wanted whose body, or a part of it, the capture has, else 0.

    ``kinds`` says which are wanted, by twice the API key, one more for responses; of those behind its end none is."""
    for k in range(rows.shape[0]):
        row = rows[k]
        kind = 2 * row.api + row.response
        status = row.status
        in_part = (status == Status.CUT_OFF or status == Status.GAP) and row.off >= 0
        wanted = 0 <= kind < kinds.shape[0] and kinds[kind] == 1
        there[k] = 1 if wanted and (status == Status.OK or in_part) else 0


@kernel
def _lost_at_the_end(stream: Any) -> int:
    """How many bytes a stream had behind those that were dealt with: the capture cut them off, has a FIN or something
    empty behind them, or saw them acknowledged."""
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
    """At the end of a capture, at ``now``, a row for each stream that ends in bytes without a frame, captured or not,
    and one for what was captured too late to be its beginning: False if ``rows`` is full."""
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
                row = _mark(rows, room, room.active >> 1, response, client, skipped + lost, Status.GAP, Reason.SKIPPED)
                row.begin = stream.next - skipped
                row.end = stream.next + lost
                row.time = stream.time if stream.time >= 0 else now
                row.order = AT_THE_END
                stream.skipped = 0
                stream.next = row.end
            if stream.earlier >= 0:
                if room.frames >= rows.shape[0]:
                    return False
                client = 0 if conn.role == Role.A_REQUESTS else 1
                size = stream.origin - stream.earlier
                row = _mark(
                    rows, room, room.active >> 1, client ^ (room.active & 1), client, size, Status.GAP, Reason.SKIPPED
                )
                row.begin = stream.earlier
                row.end = stream.origin
                row.time = stream.time if stream.time >= 0 else now
                row.order = AT_THE_END
                stream.earlier = -1
        room.active += 1
    return True
