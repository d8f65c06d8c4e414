"""Where the next frame of a stream begins, after bytes are missing or in the middle of a connection.

Rules kept here:

- A request is taken where what follows goes on with it. That is ids and client ids of later requests
  (``_others_follow``).
- Responses are looked for by the requests that wait for one.
- Where responses are searched after a hole, they wait until the requests have no hole. What they may answer is not
  known before.
- Each decision is made with the bytes that were seen so far (``Direction.seen``).
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.directions import BLOCKED, READ, WAITS, Capture, Scratch, has_hole, mark_here
from kwire.kernels.doubting import certainty
from kwire.kernels.engine import kernel
from kwire.kernels.judging import (
    NOT_KNOWN,
    SO_FAR,
    TRAILS,
    UNFIT,
    fits,
    is_telling,
)
from kwire.kernels.layouts import Reason, Status
from kwire.kernels.names import same_bytes
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.pairing import (
    DISORDER,
    find,
    plausible_response,
)
from kwire.kernels.roles import (
    LARGEST_FRAME,
    NEAR,
    NEED_MORE,
    NEVER,
    NO,
    YES,
    Apis,
    Window,
    is_kerberos,
    plausible_request,
)
from kwire.schema.keys import ApiKey

__all__ = ["LARGEST_ID", "MOST_AWAITED", "MOST_FOLLOWED", "SHORTEST_REQUEST", "resynchronise"]

Array = Any

LARGEST_ID: Final = 0x7FFFFFFF
"""After it, ids begin again."""

SHORTEST_REQUEST: Final = 14
"""Bytes of a request, its size included: so many more, and another id may have been there."""

MOST_FOLLOWED: Final = 8
"""Frames, one after the other, that tell without a segment that begins with one."""

MOST_AWAITED: Final = 256 << 10
"""Bytes after the beginning of a frame up to which another one is waited for that shows it."""


@kernel
def _is_unnamed(data: Array, at: int) -> bool:
    """Whether the header of the request at ``at`` has no place for a client_id."""
    unnamed: bool = i16(data, at + 4) == ApiKey.CONTROLLED_SHUTDOWN and i16(data, at + 6) == 0
    return unnamed


@kernel
def _goes_on(data: Array, at: int, following: int) -> bool:
    """Whether the request at ``following`` is of the client that sent the one at ``at``, and later. Frames that are the
    values of records may stand side by side too. They come from many clients. Both are there up to the end of that."""
    if _is_unnamed(data, at) or _is_unnamed(data, following):
        return False
    length = i16(data, at + 12)
    later = 0 < i32(data, following + 8) - i32(data, at + 8) <= NEAR
    if not later or i16(data, following + 12) != length:
        return False
    same: bool = length < 0 or same_bytes(data, at + 14, data, following + 14, length)
    return same


@kernel
def _is_later(window: Window, capture: Capture, reader: Any, at: int) -> bool:
    """Whether the request at ``at`` has an id that may come after the latest. Clients count, and what is skipped holds
    so many requests at most. Values of records may be frames of the same client, but have ids of any time."""
    latest = capture.connections[reader.slot].latest_id
    skipped = max(int64(0), capture.streams[reader.stream].skipped) + at - reader.shift - reader.pos
    further = (i32(window.data, at + 8) - latest) & LARGEST_ID
    later: bool = latest < 0 or 0 < further <= NEAR + skipped // SHORTEST_REQUEST
    return later


@kernel
def _others_follow(
    window: Window,
    table: Apis,
    scratch: Scratch,
    reader: Any,
    at: int,
    stop: int,
    piece: int,
    touching: bool,
    later: bool,
) -> int:
    """Whether the request at ``at``, in ``piece``, is followed by others of its client, one after the other. They go on
    to where a segment begins with one. Returns YES, NO or NEED_MORE. ``touching``, ``later``: it stands at the
    beginning of a segment, its id comes after the latest. Where both are, nothing need follow. At the end of all, ids
    without a gap will do. What is far away is not waited for: only what holds records is as large as that.

    A value of a record may be several requests. Mostly the rest of the record follows. But a message set ends with a
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
        answer = plausible_request(data, following, stop, table.apis)
        if answer == NEED_MORE and reader.ends_here == 1:
            break
        if answer != YES or not _goes_on(data, at, following):
            return answer if answer == NEED_MORE else NO
        while pieces[piece].pos + pieces[piece].len <= following - reader.shift:
            piece += 1
        if pieces[piece].pos == following - reader.shift:
            return YES
        said, _ = fits(
            data, following, stop, int64(0), i16(data, following + 4), i16(data, following + 6), table, scratch
        )
        if said in (UNFIT, TRAILS):
            return NO
        if said == SO_FAR:
            if reader.ends_here == 1:
                break
            return NEED_MORE
        gapless = gapless and i32(data, following + 8) - i32(data, at + 8) == 1
        count += 1
        at = following
    if later and (touching or count == MOST_FOLLOWED or (count > 0 and gapless and reader.ends_here == 1)):
        return YES
    return NEED_MORE if reader.ends_here == 0 and count < MOST_FOLLOWED else NO


@kernel
def _request_here(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, stop: int, piece: int
) -> int:
    """Whether what stands at ``at``, a plausible header where the boundary is not known, is a request.

    Its body has to fit. Its client_id is that of the connection where one is known. Its id comes after the latest.
    Values of records may be frames themselves. What follows has to be a request too. In the middle of a segment, others
    have to follow up to the beginning of another segment. At the beginning of a segment, the id may be any if they do.
    ``piece`` has its first byte.
    """
    data = window.data
    client = capture.connections[reader.slot].client
    touching = window.pieces[piece].pos == at - reader.shift
    length = i16(data, at + 12) if stop - at >= 14 else int64(-1)
    known = False
    if client >= 0 and length >= 0:
        name = capture.names[client]
        known = name.len == length and same_bytes(data, at + 14, capture.pool, name.off, length)
    if client >= 0 and not known:
        return NO
    later = _is_later(window, capture, reader, at)
    if not later and not (touching and known):
        return NO
    api, version = i16(data, at + 4), i16(data, at + 6)
    said, looked = fits(data, at, stop, int64(0), api, version, table, scratch)
    if said == SO_FAR:
        if reader.ends_here == 0:
            return NEED_MORE
        return YES if touching and known and later else NO
    if said in (UNFIT, TRAILS) or (said == NOT_KNOWN and not touching):
        return NO
    if not is_telling(data, at, stop, api, version, looked, table, scratch):
        return NO
    if not (touching and known and later):
        return _others_follow(window, table, scratch, reader, at, stop, piece, touching, later)
    following = at + 4 + i32(data, at)
    answer = int64(YES)
    if following < stop:
        answer = plausible_request(data, following, stop, table.apis)
    return YES if answer == NEED_MORE and reader.ends_here == 1 else answer


@kernel
def _end_of_chain(window: Window, table: Apis, at: int, stop: int) -> int:
    """Where the chain ends that begins with the request at ``at``, if what follows says that it is none. A chain is
    ``MOST_FOLLOWED`` others or more, side by side with it, of the same client, with ids that go on. It is none if no
    request follows, or one of this client with an id that does not go on. Else -1.

    A value of a record may be such a chain. A border of a segment may be one of its borders. But the rest of the frame
    follows, or what the client does send. Of fewer it costs less to believe them than not to, if bytes are damaged.
    """
    data = window.data
    count = int64(0)
    while True:
        following = at + 4 + i32(data, at)
        answer = plausible_request(data, following, stop, table.apis)
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
        # After the largest id they begin again; those of SASL are larger than all others.
        further = i32(data, following + 8) - i32(data, at + 8)
        return following if same and further <= 0 and further & LARGEST_ID > NEAR else int64(-1)
    # An API or a version that is not known has a client_id too.
    return int64(-1) if same else following


@kernel
def _answers_follow(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, stop: int, piece: int
) -> int:
    """``_others_follow`` for the response at ``at``, in the middle of a segment. Those that follow answer requests
    too."""
    data, pieces = window.data, window.pieces
    conn = capture.connections[reader.slot]
    first = at
    count = int64(0)
    gapless = True
    while count < MOST_FOLLOWED:
        following = at + 4 + i32(data, at)
        if following - first > MOST_AWAITED:
            row = find(conn, capture.waiting, capture.ids, capture.room[0], i32(data, at + 4), int64(NEVER))
            return YES if row >= 0 and capture.waiting[row].api == ApiKey.FETCH else NO
        if following + 8 > stop:
            if reader.ends_here == 0:
                return NEED_MORE
            return YES if count > 0 and gapless else NO
        while pieces[piece].pos + pieces[piece].len <= following - reader.shift:
            piece += 1
        wanted = i32(data, following + 4)
        until = pieces[piece].clock + DISORDER
        row = find(conn, capture.waiting, capture.ids, capture.room[0], wanted, until)
        if row < 0 or wanted == i32(data, at + 4) or not 4 <= i32(data, following) <= LARGEST_FRAME:
            return NO
        if pieces[piece].pos == following - reader.shift:
            return YES
        entry = capture.waiting[row]
        said, _ = fits(data, following, stop, int64(1), int64(entry.api), int64(entry.version), table, scratch)
        if said == SO_FAR and reader.ends_here == 0:
            return NEED_MORE
        if said in (UNFIT, TRAILS, SO_FAR):
            return NO
        gapless = gapless and wanted - i32(data, at + 4) == 1
        count += 1
        at = following
    return YES


@kernel
def _search(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any) -> int:
    """Moves on to the next position at which a frame can begin. Returns YES, NEED_MORE, or NO at the end of the run."""
    data, pieces = window.data, window.pieces
    conn = capture.connections[reader.slot]
    room = capture.room[0]
    stop = reader.run_end + reader.shift
    pos = reader.pos
    piece = reader.piece
    answer = NO
    while pos < reader.run_end:
        at = pos + reader.shift
        # The first byte of a size of at most LARGEST_FRAME. Text, and most other data, is skipped here.
        if data[at] <= LARGEST_FRAME >> 24:
            while pieces[piece].pos + pieces[piece].len <= pos:
                piece += 1
            touching = pieces[piece].pos == pos
            if reader.response == 0:
                answer = plausible_request(data, at, stop, table.apis)
                if answer == YES:
                    answer = _request_here(window, capture, table, scratch, reader, at, stop, piece)
                    after = _end_of_chain(window, table, at, stop) if answer == YES else int64(-1)
                    if after >= 0:
                        answer = NO
                        pos = after - reader.shift
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
                    table,
                    scratch,
                    at,
                    stop,
                    touching,
                    reader.ends_here == 1,
                    until,
                )
                if answer == YES and not touching:
                    answer = _answers_follow(window, capture, table, scratch, reader, at, stop, piece)
            # What is cut off within its header is none, but others may follow.
            if answer != NO and not (answer == NEED_MORE and reader.ends_here == 1):
                break
        pos += 1
    reader.pos = pos
    reader.piece = piece
    return answer


@kernel
def resynchronise(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, reader: Any, asked: Any
) -> int:
    """Looks for the next frame where it is not known where one begins. Returns READ if there is one, WAITS, or BLOCKED
    as long as requests may still come that identify responses."""
    stream = capture.streams[reader.stream]
    if reader.response == 1 and reader.over == 0 and has_hole(window, asked):
        reader.wake = NEVER
        return BLOCKED
    if asked.gives_way == 1 and reader.pos > stream.proven:
        reader.wake = NEVER
        return BLOCKED
    begin = reader.pos
    piece = reader.piece
    if reader.response == 0:
        conn = capture.connections[reader.slot]
        conn.by_broker = min(conn.by_broker, 1)
    answer = _search(window, capture, table, scratch, reader)
    proven = begin <= stream.proven < reader.run_end
    if proven and (answer != YES or reader.pos + 4 + i32(window.data, reader.pos + reader.shift) > stream.proven):
        reader.pos = stream.proven
        while window.pieces[piece].pos + window.pieces[piece].len <= reader.pos:
            piece += 1
        reader.piece = piece
        answer = int64(YES)
    stream.skipped = max(int64(0), stream.skipped) + reader.pos - begin
    if answer != YES:
        return WAITS
    if reader.pos != stream.proven:
        certain = certainty(window, capture, table, scratch, reader, asked)
        if certain < 0:
            return BLOCKED
        stream.certain = certain
        stream.searched = reader.pos
        stream.answered = 0
    stream.synced = 1
    if reader.response == 1:
        capture.connections[reader.slot].missed = 1
    if stream.skipped > 0:
        mark_here(window, capture, rows, reader, stream.skipped, Status.GAP, Reason.SKIPPED)
    stream.skipped = 0
    return READ
