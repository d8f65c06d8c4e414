"""Whether a frame begins where one should: what speaks against it, and what confirms it.

``is_no_frame`` asks, in this order: does the body fit? Do others follow? Is it answered? Does it begin tokens of SASL?

Rules kept here:

- Where it is not known yet, the reader waits: NEED_MORE is an answer of its own.
- The bytes that are looked at are bounded (``MOST_LOOKED``, ``MOST_PIECES``, ``MOST_FOLLOWED``), whatever they say.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.directions import Capture, Scratch, has_hole, piece_with_end
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import (
    FITS,
    MOST_JUDGED,
    NOT_KNOWN,
    SO_FAR,
    TRAILS,
    UNFIT,
    fits,
    fits_all,
    in_a_field,
    is_telling,
)
from kwire.kernels.names import same_bytes
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.pairing import (
    SASL_TOKEN,
    find_request,
)
from kwire.kernels.roles import (
    LARGEST_FRAME,
    NEAR,
    NEED_MORE,
    NEVER,
    NO,
    OFTEN,
    UNDECIDED,
    YES,
    Apis,
    Window,
    has_client_id,
    plausible_request,
    run_of,
)
from kwire.kernels.searching import MOST_FOLLOWED, SHORTEST_REQUEST
from kwire.kernels.streams import ACKED_WAIT, first_from
from kwire.schema.keys import ApiKey

__all__ = [
    "ALWAYS_COMPARED",
    "ENOUGH",
    "MOST_ANSWERS",
    "MOST_LOOKED",
    "MOST_PIECES",
    "PERHAPS",
    "asked_before",
    "body_there",
    "is_no_frame",
]

Array = Any

MOST_PIECES: Final = 64
"""Pieces in which the answer to a request is looked for,"""

MOST_LOOKED: Final = 16 << 10
"""and bytes that are judged for it."""

PERHAPS: Final = 3
"""Besides YES, NO and NEED_MORE."""

ENOUGH: Final = 16
"""Bytes of a frame, its size included, after which nothing shows any more that it is a token, or encrypted."""

MOST_ANSWERS: Final = 3
"""So many segments inside a response, and its size is wrong. Each begins with the whole response to a request that was
sent after the response began, and is in no field of a known length: its tagged fields may say that they hold
anything."""

ALWAYS_COMPARED: Final = 16 << 10
"""Bytes of a frame in which each segment is looked at that may begin another. After that, one is looked at wherever the
frame's beginning has doubled, since all of it is judged each time."""


@kernel
def body_there(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, stop: int, now: int
) -> int:
    """What ``fits_all`` says of the frame at ``at``, of what stands before ``stop``, by what was known with packet
    ``now``. NOT_KNOWN of the answer to a request that was not known."""
    data = window.data
    if reader.response == 0:
        if stop - at < 8:
            return int64(NOT_KNOWN)
        return fits_all(data, at, stop, int64(0), i16(data, at + 4), i16(data, at + 6), table, scratch)
    row = asked_before(window, capture, reader, at, now)
    if row < 0:
        return int64(NOT_KNOWN)
    entry = capture.waiting[row]
    return fits_all(data, at, stop, int64(1), int64(entry.api), int64(entry.version), table, scratch)


@kernel
def asked_before(window: Window, capture: Capture, reader: Any, at: int, now: int) -> int:
    """The entry of the request, known with packet ``now``, that the response at ``at`` answers. -1 for none."""
    conn = capture.connections[reader.slot]
    wanted = i32(window.data, at + 4)
    row = find_request(conn, capture.waiting, capture.ids, capture.room[0], wanted, int64(NEVER))
    return row if row >= 0 and capture.waiting[row].order <= now else int64(-1)


@inlined
def _begins_tokens(window: Window, capture: Capture, reader: Any, at: int) -> bool:
    """Whether raw tokens, which look like nothing, may follow the frame at the current position."""
    data = window.data
    conn = capture.connections[reader.slot]
    if reader.response == 0:
        return conn.raw_tokens == 1 or (i16(data, at + 4) == ApiKey.SASL_HANDSHAKE and i16(data, at + 6) == 0)
    front = conn.waiting_front
    if front < 0:
        return False
    entry = capture.waiting[front]
    return entry.api == SASL_TOKEN or (entry.api == ApiKey.SASL_HANDSHAKE and entry.version == 0)


@kernel
def _is_of_client(window: Window, capture: Capture, reader: Any, at: int, stop: int) -> bool:
    """Whether a request at ``at`` has the client_id that its connection has had last."""
    client = capture.connections[reader.slot].client
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
def _begins_frame(window: Window, capture: Capture, table: Apis, reader: Any, before: int, at: int, stop: int) -> int:
    """Whether what stands at ``at`` can be the frame that follows the one at ``before``, by its header. Returns YES,
    NO, NEED_MORE, or PERHAPS for a response to a request that is not known."""
    data = window.data
    if reader.response == 0:
        answer = plausible_request(data, at, stop, table.apis)
        if answer == NO and stop - at >= 4 and 8 <= i32(data, at) <= LARGEST_FRAME:
            # An API or a version that is not known.
            return YES if _is_of_client(window, capture, reader, at, stop) else NO
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
    conn = capture.connections[reader.slot]
    row = find_request(conn, capture.waiting, capture.ids, capture.room[0], number, int64(NEVER))
    if row >= 0:
        return YES
    return int64(PERHAPS) if 0 < further <= NEAR else NO


@kernel
def _holds(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, inner: int, now: int
) -> bool:
    """Whether the response at ``at`` has a field, like records, that ``inner`` is in. Then a frame there is a value."""
    row = asked_before(window, capture, reader, at, now)
    if row < 0:
        return False
    entry = capture.waiting[row]
    return in_a_field(window.data, at, inner, int64(1), int64(entry.api), int64(entry.version), table, scratch)


@kernel
def _has_another(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, end: int
) -> bool:
    """Whether the size of the frame at ``at`` is wrong. It says that it ends at position ``end``. It is wrong if a
    segment inside of it begins with another frame, and this one is not what its layout says. It is wrong too if
    ``MOST_ANSWERS`` segments begin with one.

    Each segment is looked at once, by what there was when it came, or windows would matter.
    """
    data, pieces = window.data, window.pieces
    client = capture.connections[reader.slot].client
    p = max(reader.compared, reader.piece + 1)
    found = False
    if reader.around != reader.pos:
        # What was skipped in another frame may tell of this one.
        p = reader.piece + 1
        reader.around = reader.pos
        reader.answers = 0
        reader.answered_order = pieces[reader.piece].order
    while not found and p < reader.after and pieces[p].pos < end:
        now = pieces[p].order
        inner = pieces[p].off
        depth = pieces[p].pos - reader.pos
        before = max(int64(0), pieces[p - 1].pos - reader.pos)
        if depth < ALWAYS_COMPARED or (depth & ~before) > before:
            last = p
            while last + 1 < reader.after and pieces[last + 1].order <= now:
                last += 1
            stop = pieces[last].off + pieces[last].len
            looks = stop - inner >= 8
            if looks:
                head = pieces[p].head if pieces[p].len >= 4 else i32(data, inner)
                looks = 4 <= head <= LARGEST_FRAME
            if looks and reader.response == 0:
                looks = plausible_request(data, inner, stop, table.apis) == YES and (
                    client < 0 or _is_of_client(window, capture, reader, inner, stop)
                )
            body = int64(UNFIT)
            if looks:
                body = body_there(window, capture, table, scratch, reader, inner, stop, now)
            if _may_be_whole(body):
                found = not _may_be_whole(body_there(window, capture, table, scratch, reader, at, stop, now))
            if (
                not found
                and body == FITS
                and reader.response == 1
                and not _holds(window, capture, table, scratch, reader, at, inner, now)
            ):
                asked = capture.waiting[asked_before(window, capture, reader, inner, now)].order
                if asked > reader.answered_order:
                    reader.answered_order = asked
                    reader.answers += 1
                    if reader.answers == 1:
                        reader.first_answer = pieces[p].pos
                    found = reader.answers == MOST_ANSWERS
        if not found:
            p += 1
    reader.compared = p
    return found


@kernel
def _may_be_whole(said: int) -> bool:
    """Whether a body is what its layout says, as far as it is there."""
    fits_so_far: bool = said in (FITS, SO_FAR)
    return fits_so_far


@kernel
def _tells(window: Window, table: Apis, scratch: Scratch, reader: Any, at: int, stop: int) -> int:
    """Whether what stands at ``at`` shows that its connection is Kafka, which nothing else that it sent has shown.
    Returns YES, NO or NEED_MORE."""
    data = window.data
    if reader.ends_here == 0 and stop - at < min(ENOUGH, 4 + max(int64(0), i32(data, at))):
        return NEED_MORE
    answer = plausible_request(data, at, stop, table.apis)
    if answer == YES:
        api, version = i16(data, at + 4), i16(data, at + 6)
        said, looked = fits(data, at, stop, int64(0), api, version, table, scratch)
        if said == SO_FAR:
            answer = int64(NEED_MORE)
        elif said in (UNFIT, TRAILS) or not is_telling(data, at, stop, api, version, looked, table, scratch):
            answer = int64(NO)
    # Of what is cut off, the header has to do.
    return int64(YES) if answer == NEED_MORE and reader.ends_here == 1 else answer


@kernel
def _has_answer(
    window: Window, table: Apis, scratch: Scratch, first: int, seen: int, at: int, stop: int, late: bool, most: int
) -> tuple[bool, int]:
    """Whether the request at ``at`` is answered. Also how many of ``most`` bytes may still be looked at. It is if one
    of the frames with which pieces of the other direction begin is its answer. The pieces are the rows from ``first``
    on and before ``seen``. ``late``: what is there of it has to do."""
    data, pieces = window.data, window.pieces
    if stop - at < SHORTEST_REQUEST:
        return False, most
    for p in range(first, min(seen, first + OFTEN)):
        begin = pieces[p].off
        count = int64(0)
        while begin >= 0 and count < MOST_FOLLOWED and most > 0:
            there, after = run_of(pieces, p, seen, begin + 4 + MOST_JUDGED)
            size = i32(data, begin) if there - begin >= 8 else int64(0)
            if size < 4 or size > LARGEST_FRAME:
                break
            # Of what is cut off, nothing more will come.
            enough = late or after < seen or there - begin >= 4 + min(size, int64(MOST_JUDGED))
            if enough and i32(data, begin + 4) == i32(data, at + 8):
                said, looked = fits(data, begin, there, int64(1), i16(data, at + 4), i16(data, at + 6), table, scratch)
                if said not in (UNFIT, TRAILS):
                    return True, most
                most -= looked
            begin += 4 + size
            count += 1
    return False, most


@kernel
def _is_no_answer(window: Window, first: int, seen: int, begin: int) -> bool:
    """Whether pieces of a direction, rows ``first`` to ``seen`` - 1, have other answers. They have none of those that
    there should be. It is no where bytes are missing, of those after position ``begin`` too. Where the beginning of the
    stream is not known, ``begin`` is below 0. Then only pieces count where one begins with a frame that ends with
    one."""
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
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, stop: int
) -> int:
    """Whether the other direction agrees that the request at ``at``, without a client_id, is one. Returns YES, NO or
    NEED_MORE.

    It does with the answer to this one, or to another one after it. What is left of an answer whose beginning is not in
    the capture says nothing. Where neither has come with ``OFTEN`` packets, or will, it does not, but for holes. Where
    nothing of it has come for a while, it may not have been captured. Then it says nothing.
    """
    data, pieces = window.data, window.pieces
    other = scratch.readers[1]
    stream = capture.streams[other.stream]
    first = other.piece if other.reading == 1 else other.first
    while first < other.seen and pieces[first].pos + pieces[first].len <= stream.next:
        first += 1
    end = reader.pos + 4 + i32(data, at)
    # Packets of both directions, without those that brought the request.
    count = other.seen - first
    p = reader.seen - 1
    while p > reader.piece and count < OFTEN and pieces[p].pos >= end:
        count += 1
        p -= 1
    held = pieces[reader.seen - 1].pos + pieces[reader.seen - 1].len - end
    reached = pieces[other.seen - 1].pos + pieces[other.seen - 1].len if first < other.seen else stream.next
    ended = 0 <= stream.end <= reached and stream.end_order <= reader.now
    late = reader.over == 1 or ended or count >= OFTEN or held > UNDECIDED
    if first >= other.seen:
        asked = pieces[piece_with_end(window, reader, end)]
        reader.wake = first_from(window.clock, window.first_order, asked.clock + ACKED_WAIT)
        return int64(YES) if late or reader.wake <= reader.now else int64(NEED_MORE)
    reader.wake = NEVER
    seen = min(other.seen, first + MOST_PIECES)
    most = int64(MOST_LOOKED)
    for _ in range(MOST_FOLLOWED):
        found, most = _has_answer(window, table, scratch, first, seen, at, stop, late, most)
        if found:
            return int64(YES)
        at += 4 + i32(data, at)
        if stop - at < 4 or plausible_request(data, at, stop, table.apis) != YES:
            break
    if not late:
        return int64(NEED_MORE)
    if reader.over == 0 and has_hole(window, other):
        return int64(YES)
    begin = stream.next if stream.start >= 0 or stream.synced == 1 else int64(-1)
    return int64(NO) if _is_no_answer(window, first, seen, begin) else int64(YES)


@inlined
def is_no_frame(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, at: int, available: int, size: int
) -> int:
    """Whether there is no frame of this size at the current position, where one should begin. Returns YES, NO, or
    NEED_MORE where that cannot be known yet.

    Sizes are believed as long as what follows looks like a frame, or is not there. Else the body has to be what its
    layout says. Tokens look like nothing.
    """
    if available < 8:
        return NO
    stop = reader.run_end + reader.shift
    end = reader.pos + 4 + size
    following = at + 4 + size
    conn = capture.connections[reader.slot]
    if reader.response == 0 and conn.first_id < 0 and conn.by_broker == 1:
        answer = _tells(window, table, scratch, reader, at, stop)
        # Other protocols may spell as much by chance. What is not there to its end has no answer yet.
        unnamed = not has_client_id(window.data, at, stop)
        if answer == YES and unnamed and (following <= stop or reader.ends_here == 1):
            answer = _is_confirmed(window, capture, table, scratch, reader, at, stop)
            reader.unsure = 1 if answer == NEED_MORE else 0
            # What is read of the other direction now does not bring it into question again.
            conn.by_broker = 2 if answer == YES else 1
        if answer != YES:
            return YES if answer == NO else NEED_MORE
    if _begins_tokens(window, capture, reader, at):
        if following >= stop:
            return NO
        body = body_there(window, capture, table, scratch, reader, at, stop, reader.now)
        return YES if body in (UNFIT, TRAILS) else NO
    if reader.after > reader.piece + 1 and _has_another(window, capture, table, scratch, reader, at, end):
        return YES
    if following >= stop:
        return NO
    answer = _begins_frame(window, capture, table, reader, at, following, stop)
    if answer == YES:
        return NO
    body = body_there(window, capture, table, scratch, reader, at, stop, reader.now)
    if body == FITS:
        return NO
    if answer == NEED_MORE and reader.ends_here == 0:
        return NEED_MORE
    return NO if answer != NO and body == NOT_KNOWN else YES
