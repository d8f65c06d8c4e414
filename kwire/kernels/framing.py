"""Streams to frames, and responses to their requests, for all connections of a window at once.

Strategy: a stream is walked run by run. A run is bytes without a hole (pieces of ``kwire.kernels.streams``). Where a
frame is known to begin, its size says where the next one does. The capture may begin in the middle of a connection, or
bytes may be missing. Then the boundary is not known, and ``kwire.kernels.searching`` looks for it. Both directions of a
connection are read side by side, packet by packet (``kwire.kernels.directions``). Each request adds an entry to the
connection's list (``kwire.kernels.pairing``). A response takes the first entry with its correlation id. Frames come out
as rows of numbers. The bytes stay where they are.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A Produce request with acks=0 has no response and adds no entry [10]. acks is read by a program of
  ``kwire.kernels.programs``. There is no parser of its own for it. The fields before it are nearly always empty. Then
  it stands at a place that is worked out from that program.
- After a SaslHandshake v0, frames are raw tokens until a request header is seen again. The same holds in a connection
  that opens with a GSSAPI token. Each leaves an entry, so that the answer is known to be a token too [11].
- A response whose request may still come waits, and so do all after it. It waits for ``DISORDER`` by the clock. While
  the requests have a hole, it waits until that is filled or given up.
- Gaps: what is missing inside of a frame costs this frame only. Its size says where the next one begins. Its row comes
  when what is after it does. So the latest of its bytes that were captured date it.
- Nothing is allocated. Where a table is full, the kernel returns. The caller makes the table larger and calls again.
  Then the kernel goes on at the frame that did not fit. What was done is in the streams, so nothing is done twice.
- A frame is numbered by the packet that settled it (``order``). Rows are in order neither of streams nor of time:
  ``kwire.kernels.ordering`` sorts them.
- While an unnamed first request waits (``Direction.unsure``), nothing of the other direction is read. Responses are
  searched by the requests that wait, and would be skipped.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.confirming import ENOUGH, MOST_ANSWERS, asked_before, body_there, is_no_frame
from kwire.kernels.directions import (
    BLOCKED,
    FULL,
    READ,
    UNREADABLE,
    WAITS,
    Capture,
    Scratch,
    begin_direction,
    begin_run,
    end_lost,
    following_packet,
    go_on,
    has_hole,
    is_full,
    mark,
    mark_here,
    meet_event,
    only_grows,
    piece_with_end,
    see,
)
from kwire.kernels.doubting import (
    ENOUGH_ANSWERS,
    HOLED,
    LARGEST_BATCH,
    OR_AROUND,
    TORN,
    confirm,
    doubt_of,
    has_false_size,
    is_doubted,
    is_torn,
    note_versions,
    torn_ends_here,
)
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import (
    FITS,
    NOT_KNOWN,
    TRAILS,
    acks_of,
    fits_all,
)
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Role, Status
from kwire.kernels.names import intern, same_bytes
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.pairing import (
    DISORDER,
    SASL_TOKEN,
    answered,
    find,
    find_request,
    wait_for,
)
from kwire.kernels.roles import (
    LARGEST_FRAME,
    LARGEST_TOKEN,
    NEAR,
    NEED_MORE,
    NEVER,
    NO,
    YES,
    Apis,
    Window,
    is_kerberos,
    is_not_readable,
    let_go,
    plausible_request,
    settle,
)
from kwire.kernels.searching import LARGEST_ID, resynchronise
from kwire.kernels.streams import first_from
from kwire.kernels.turns import exchanged_here
from kwire.schema.keys import ApiKey

__all__ = ["HTTPS", "MOST_TOKENS", "RESERVED", "frames_and_pairs", "is_settled", "settle_all"]

Array = Any

HTTPS: Final = 443
"""TLS to this port is not reported unless the caller names the port."""

_OF_TEXT: Final = 0x2000
"""The least number of 16 bits whose first byte is a character that can be shown."""

_SIGNED: Final = 0x763D
"""``v=``: what a broker's last message of SCRAM begins with, after which its signature stands (RFC 5802, 7)."""

_WRAPPED: Final = 16
"""Bytes of the header of a token that wraps something (RFC 4121, 4.2.6.2)."""

MOST_TOKENS: Final = 64
"""Raw tokens of a connection that wait for their answer, at most. A client waits for each answer before it sends the
next token (RFC 4422)."""

RESERVED: Final = LARGEST_ID - 7
"""Ids from here on are those that Java sends SASL with, whatever the others are (``SaslClientAuthenticator``)."""


@inlined
def _token_follows(
    window: Window, capture: Capture, table: Apis, reader: Any, asked: Any, at: int, available: int
) -> int:
    """Whether the next frame is a raw SASL token: YES, NO, or NEED_MORE, also of requests."""
    conn = capture.connections[reader.slot]
    if reader.response == 0:
        if conn.raw_tokens != 1 or available < 4:
            return NO
        answer = plausible_request(window.data, at, reader.run_end + reader.shift, table.apis)
        if answer == YES:
            conn.raw_tokens = 0
            return NO
        return NEED_MORE if answer == NEED_MORE and reader.ends_here == 0 else YES
    front = conn.waiting_front
    until = window.pieces[reader.piece].clock + DISORDER
    if front < 0 or capture.waiting[front].api != SASL_TOKEN or capture.waiting[front].clock > until:
        return NO
    if available >= 8 and i32(window.data, at) >= 4:
        # A token is not always answered: is this already the response to a later request?
        number = i32(window.data, at + 4)
        if find(conn, capture.waiting, capture.ids, capture.room[0], number, until) >= 0:
            return NO
        if 0 <= number - max(int64(0), conn.first_id) <= NEAR and reader.over == 0:
            # That may still come. What a token begins with is hardly such a number.
            reader.wake = first_from(window.clock, window.first_order, until)
            if reader.wake > reader.now or has_hole(window, asked):
                return NEED_MORE
    return YES


@kernel
def _has_controls(data: Array, off: int, length: int) -> bool:
    """Whether there are control characters of ASCII among so many bytes."""
    for at in range(off, off + length):  # noqa: SIM110
        if data[at] < 0x20 or data[at] == 0x7F:
            return True
    return False


@inlined
def _client_of(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, conn: Any, row: Any, off: int, length: int
) -> int:
    """The number of the client_id at ``off``; -1 for what may be none.

    One of which a byte of the length is damaged reaches into the body. The body may be a password. After its end stand
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
        said = fits_all(window.data, row.off - 4, row.off + row.seen, int64(0), row.api, row.version, table, scratch)
        if said != FITS:
            return int64(-1)
    client = intern(window.data, off, length, capture.names, capture.pool, capture.lookup, capture.names_used[0])
    conn.client = client
    return client


@inlined
def _judge_version(row: Any, table: Apis) -> None:
    """Says what is not known of the API and version of a frame that is otherwise good."""
    api = row.api
    if api < 0 or api >= table.apis.shape[0] or table.apis[api].latest < 0:
        row.status = Status.UNSUPPORTED
        row.reason = Reason.API
        row.detail = api
        return
    latest = table.apis[api].latest
    # A version of ApiVersions that the broker does not know is answered in one that it does.
    if row.version < 0 or (row.version > latest and (row.response == 0 or api != ApiKey.API_VERSIONS)):
        row.status = Status.UNSUPPORTED
        row.reason = Reason.VERSION
        row.detail = row.version


@kernel
def _is_known(table: Apis, api: int, version: int) -> bool:
    """Whether there is a layout for a version of an API."""
    known: bool = 0 <= api < table.apis.shape[0] and 0 <= version <= table.apis[api].latest
    return known


@kernel
def _may_be_token(window: Window, row: Any) -> bool:
    """Whether the bytes of a request of an unknown API or version may be a raw SASL token. Its handshake is not in the
    capture. If so, nothing of them is shown.

    The length of a client_id, which every header has, leads out of text, or is that of two characters. Where it is not,
    the zeros decide. A header has some in its first eight bytes, since APIs, versions and correlation ids are small.
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
def _header_is_readable(window: Window, capture: Capture, table: Apis, scratch: Scratch, conn: Any, row: Any) -> bool:
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
        row.client = _client_of(window, capture, table, scratch, conn, row, row.off + 10, length)
    return True


@inlined
def _is_answered(window: Window, table: Apis, scratch: Scratch, row: Any) -> bool:
    """Whether a request has a response: not a Produce with acks=0."""
    if row.api != ApiKey.PRODUCE:
        return True
    acks, after = acks_of(window.data, row.off, row.off + row.seen, row.version, table, scratch)
    answered: bool = after < 0 or acks != 0
    return answered


@inlined
def _request(
    window: Window,
    capture: Capture,
    table: Apis,
    scratch: Scratch,
    row: Any,
    reader: Any,
    token: bool,
    whole: bool,
    clock: int,
) -> None:
    """Completes the row of a request, at which the clock showed ``clock``, and lets it wait for its response."""
    conn = capture.connections[reader.slot]
    room = capture.room[0]
    if token:
        row.status = Status.SASL
        if whole and conn.waiting < MOST_TOKENS:
            wait_for(conn, capture.waiting, capture.ids, room, 0, SASL_TOKEN, 0, -1, row.time, row.order, clock)
            capture.waiting[conn.waiting_tail].doubted = 0
            capture.waiting[conn.waiting_tail].ack = -1
            capture.waiting[conn.waiting_tail].end = reader.pos + 4 + row.size
        return
    if row.seen >= 4:
        row.api = i16(window.data, row.off)
        row.version = i16(window.data, row.off + 2)
    if row.seen >= 8:
        row.id = i32(window.data, row.off + 4)
    if row.seen >= 4 and not _is_known(table, row.api, row.version) and _may_be_token(window, row):
        # Not even a number is made of what nobody is to see.
        row.api = ABSENT
        row.version = ABSENT
        row.id = ABSENT
        if row.status == Status.OK:
            row.status = Status.MALFORMED
            row.reason = Reason.NO_HEADER
        return
    if not _header_is_readable(window, capture, table, scratch, conn, row):
        return
    if conn.first_id < 0:
        conn.first_id = max(int64(0), row.id)
    if row.id & LARGEST_ID < RESERVED:
        conn.latest_id = row.id & LARGEST_ID
    _judge_version(row, table)
    note_versions(conn, int64(row.api), int64(row.version), capture.streams[reader.stream].certain != 0)
    if _is_answered(window, table, scratch, row):
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
        end = reader.pos + 4 + row.size
        capture.waiting[conn.waiting_tail].doubted = doubt_of(capture.streams[reader.stream], row, end)
        capture.waiting[conn.waiting_tail].ack = window.pieces[reader.piece].ack
        capture.waiting[conn.waiting_tail].end = end
    if row.api == ApiKey.SASL_HANDSHAKE and row.version == 0:
        conn.raw_tokens = 1


@inlined
def _latency(row: Any, entry: Any) -> int:
    """How long after its request a response came, ABSENT where the capture does not say when one of them was."""
    if row.time == NO_TIME or entry.time == NO_TIME:
        return int64(ABSENT)
    return int64(row.time) - int64(entry.time)


@kernel
def _is_handshake(window: Window, capture: Capture, row: Any, reader: Any, asked: Any, entry: Any) -> bool:
    """Whether a token of Kerberos answers the one that a connection in doubt begins with (``entry``), and all of it:
    then the connection does begin there. It is one that begins with its mechanism, or one whose header says that the
    end which accepts has wrapped what it offers (RFC 4121, 4.1 and 4.2.6.2)."""
    data = window.data
    is_first = capture.connections[reader.slot].first_id < 0 and capture.streams[asked.stream].certain == 0
    if not is_first or row.seen < _WRAPPED or window.pieces[reader.piece].ack != entry.end:
        return False
    wraps: bool = i16(data, row.off) == 0x0504 and data[row.off + 2] & 1 == 1 and data[row.off + 3] == 0xFF
    return wraps or is_kerberos(data, row.off - 4, row.off + row.seen) == YES


@inlined
def _response(
    window: Window, capture: Capture, table: Apis, row: Any, reader: Any, asked: Any, token: bool, clock: int
) -> bool:
    """Completes the row of a response, at which the clock showed ``clock``. False if its request may still come."""
    conn = capture.connections[reader.slot]
    waiting, ids, room = capture.waiting, capture.ids, capture.room[0]
    if token:
        entry = waiting[conn.waiting_front]
        row.status = Status.SASL
        row.latency = _latency(row, entry)
        if _is_handshake(window, capture, row, reader, asked, entry):
            stream = capture.streams[reader.stream]
            stream.certain = 1 if stream.certain == 0 else stream.certain
            capture.streams[asked.stream].certain = 1
        answered(conn, waiting, ids, room, conn.waiting_front)
        return True
    if row.seen < 4:
        # Whose response it is, is not known.
        conn.missed = 1
        return True
    row.id = i32(window.data, row.off)
    which = find_request(conn, waiting, ids, room, row.id, clock + DISORDER)
    if which < 0:
        if reader.over == 0:
            reader.wake = first_from(window.clock, window.first_order, clock + DISORDER)
            if reader.wake > reader.now or has_hole(window, asked):
                return False
        if i16(window.data, row.off) == _SIGNED:
            # Not even a number is made of what nobody is to see.
            row.id = ABSENT
        row.status = Status.UNPAIRED
        row.reason = Reason.UNPAIRED
        # Its request may be read later, after a hole. It must not wait then as one that was overtaken.
        conn.missed = 1
        if conn.given_up > 0:
            row.reason = Reason.GIVEN_UP
            row.detail = conn.given_up
        return True
    entry = waiting[which]
    row.api = entry.api
    row.version = entry.version
    row.client = entry.client
    row.latency = _latency(row, entry)
    doubted = entry.doubted
    stream = capture.streams[reader.stream]
    if stream.certain == 0 and doubted == 0:
        stream.answered += 1
        if stream.answered == ENOUGH_ANSWERS:
            # What had been asked before them is answered, too.
            stream.certain = 1
            capture.streams[asked.stream].certain = 1
    requests = capture.streams[asked.stream]
    if (
        doubted == TORN
        and requests.certain == TORN
        and stream.certain not in (0, TORN)
        and window.pieces[reader.piece].ack == requests.next
    ):
        requests.certain = 1  # see ``doubting.torn_ends_here``
    answered(conn, waiting, ids, room, which)
    _judge_version(row, table)
    if doubted == OR_AROUND:
        row.client = -1
    elif doubted == 1 and row.status == Status.OK:
        row.status = Status.UNCONFIRMED
        row.reason = Reason.ASKED_UNCONFIRMED
    return True


@kernel
def _skip_size(window: Window, capture: Capture, rows: Array, reader: Any, size: int, reason: int) -> None:
    """A row for the size at the current position, which is none. The next frame is looked for after it."""
    stream = capture.streams[reader.stream]
    mark_here(window, capture, rows, reader, size, Status.MALFORMED, reason)
    stream.synced = 0
    # A frame does begin here, the first one where the SYN says: responses go on behind it, and which requests wait for
    # theirs is known.
    stream.certain = 2 if reader.response == 1 and stream.certain in (-1, 1, 2) else 0
    stream.searched = -1
    stream.skipped = 4
    reader.pos += 4


@inlined
def _next_frame(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, reader: Any, asked: Any
) -> int:
    """Reads the frame that begins at the current position: READ, WAITS or BLOCKED. ``asked``: the requests."""
    pieces = window.pieces
    stream = capture.streams[reader.stream]
    at = reader.pos + reader.shift
    available = reader.run_end - reader.pos
    size = i32(window.data, at) if available >= 4 else int64(-1)
    if stream.proven >= 0:
        if reader.pos < stream.proven < reader.run_end and reader.pos + 4 + size > stream.proven:
            # It would reach into one that is certain.
            stream.synced = 0
            return READ
        if reader.pos >= stream.proven:
            stream.certain = 1 if reader.pos == stream.proven else stream.certain
            stream.proven = -1
    ahead = reader.response == 1 and asked.gives_way == 1
    if ahead and (available < 8 or asked_before(window, capture, reader, at, reader.now) < 0):
        # Its request has been seen, perhaps, and is read later.
        reader.wake = NEVER
        return BLOCKED
    follows = _token_follows(window, capture, table, reader, asked, at, available)
    if follows == NEED_MORE:
        return WAITS if reader.response == 0 else BLOCKED
    token = follows == YES
    if available >= 4:
        least = 0 if token else (8 if reader.response == 0 else 4)
        if size < least or size > (LARGEST_TOKEN if token else LARGEST_FRAME):
            _skip_size(window, capture, rows, reader, size, int64(Reason.SIZE))
            return READ
    whole = available >= 4 and available - 4 >= size
    no_frame = int64(NO)
    if not token:
        no_frame = is_no_frame(window, capture, table, scratch, reader, at, available, size)
        if no_frame == NEED_MORE:
            if reader.response == 0:
                return WAITS
            reader.wake = NEVER
            return BLOCKED
        if no_frame == YES and (
            reader.response == 0 or not whole or asked_before(window, capture, reader, at, reader.now) >= 0
        ):
            answered = reader.around == reader.pos and reader.answers == MOST_ANSWERS
            _skip_size(window, capture, rows, reader, size, int64(Reason.NO_FRAME))
            if answered:
                # Between them, nothing but more sizes that are none could be found.
                stream.skipped += reader.first_answer - reader.pos
                reader.pos = reader.first_answer
            return READ
    too_large = False
    if not whole:
        held = pieces[reader.seen - 1].pos + pieces[reader.seen - 1].len - reader.pos
        too_large = held > window.ration
        if reader.ends_here == 0 and not too_large:
            if (
                not token
                and available >= ENOUGH
                and (reader.response == 0 or capture.connections[reader.slot].waiting_head >= 0)
            ):
                reader.needs = min(reader.pos + 4 + size, reader.pos + window.ration + 1)
            return WAITS
        if reader.gap_follows == 1 and reader.over == 0 and held < 4 + size and not too_large:
            return WAITS
    if stream.certain < 0:
        stream.certain = 1  # it begins where the SYN says
    elif stream.certain == 0 and reader.pos - stream.searched > LARGEST_BATCH:
        stream.certain = 1 if reader.response == 1 else 2
    elif (
        reader.response == 1
        and (stream.certain == 0 or stream.certain == TORN)
        and whole
        and not token
        and exchanged_here(window, capture, table, scratch, reader)
    ):
        stream.certain = 1
    elif (stream.certain == HOLED or stream.certain == TORN) and whole:
        stop = reader.run_end + reader.shift
        fits = body_there(window, capture, table, scratch, reader, at, stop, reader.now) in (FITS, NOT_KNOWN)
        if stream.certain == HOLED or not fits:
            stream.certain = 1 if fits else 0
            stream.searched = reader.pos
            stream.answered = 0
    if reader.response == 0 and whole and not token:
        other = scratch.readers[1]
        answers = capture.streams[other.stream]
        if answers.next <= answers.proven and reader.gave_way != reader.pos:
            # It has room for one position: what is proven is read before something else is.
            reader.gave_way = reader.pos
            reader.gives_way = 1
            return WAITS
        doubted = stream.noted == reader.pos or is_doubted(stream, other, capture.streams[other.stream])
        if doubted and confirm(window, capture, table, scratch, reader, size) == WAITS:
            return WAITS
    received = int64(-1)
    if stream.certain == TORN and reader.response == 1 and available >= 8:
        which = asked_before(window, capture, reader, at, reader.now)
        received = int64(capture.waiting[which].ack) if which >= 0 else received
    elif stream.certain == TORN and reader.response == 0 and not whole:
        received = reader.pos if torn_ends_here(window, capture, scratch, reader) == YES else received
    # When the last byte of it, of those that are there, was captured.
    last_piece = reader.piece
    if available >= 4:
        last_piece = piece_with_end(window, reader, reader.pos + 4 + size)
    else:
        last_piece = piece_with_end(window, reader, reader.run_end)
    last = pieces[last_piece]
    body = int64(FITS)
    if last.pos + last.len != reader.pos + 4 + size and stream.certain > 0 and not token:
        # Where a segment ends, too, the size is none that is damaged: that would be chance.
        body = has_false_size(window, capture, table, scratch, reader, reader.pos + 4 + size)

    row = rows[capture.room[0].frames]
    row.slot = reader.slot
    row.response = reader.response
    row.client_side = reader.client_side
    row.begin = reader.pos
    row.time = last.time
    row.order = reader.now
    row.off = at + 4
    stream.began = pieces[reader.piece].packet
    if stream.certain == TORN and reader.response == 0:
        stream.certain = 1 if received == reader.pos else 0
        stream.searched = reader.pos
        stream.answered = 0
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
    if reader.response == 0:
        _request(window, capture, table, scratch, row, reader, token, whole, last.clock)
    elif not _response(window, capture, table, row, reader, asked, token, last.clock):
        return BLOCKED
    elif no_frame == YES:
        # Its request might have come.
        _skip_size(window, capture, rows, reader, size, int64(Reason.NO_FRAME))
        return READ
    if stream.certain == TORN and reader.response == 1:
        # Who sent the request for it had received what is before it, and no more.
        stream.certain = 1 if received == reader.pos else 0
        stream.searched = reader.pos
        stream.answered = 0
    if not whole and stream.certain > 0:
        if is_torn(window, reader, row, reader.pos + 4 + size):
            if reader.response == 0 and stream.certain == 2:
                stream.certain = 0
                stream.searched = reader.pos
                stream.answered = 0
            else:
                stream.certain = TORN
            tail = capture.connections[reader.slot].waiting_tail
            if reader.response == 0 and tail >= 0 and capture.waiting[tail].order == row.order:
                capture.waiting[tail].doubted = TORN
        elif stream.certain == 1:
            stream.certain = HOLED
    if not whole and row.status != Status.MALFORMED:
        row.status = Status.GAP if reader.gap_follows == 1 else Status.CUT_OFF
        row.reason = Reason.HOLE if reader.gap_follows == 1 else Reason.END
        if too_large and reader.ends_here == 0:
            row.reason = Reason.LARGE
        row.detail = available
    if stream.certain == 0 and row.status == Status.OK:
        row.status = Status.UNCONFIRMED
        row.reason = Reason.UNCONFIRMED
    if row.status == Status.UNCONFIRMED:
        row.latency = ABSENT
    if body != FITS:
        # A frame does begin here. Where it ends is not known.
        if body == TRAILS and row.status == Status.OK:
            row.status = Status.MALFORMED
            row.reason = Reason.BODY
            row.detail = row.version
        stream.certain = 0
        stream.searched = reader.pos + 4 + size
        stream.answered = 0
    capture.room[0].frames += 1
    if available >= 4:
        reader.pos += 4 + size  # where it is not whole: in the gap or after it, where the next frame begins
    else:
        reader.pos = reader.run_end
        stream.synced = 0
    row.end = reader.pos
    if stream.certain == 1 or stream.certain == HOLED:
        stream.sure = reader.pos
    return READ


@inlined
def _meet_start(stream: Any, reader: Any) -> None:
    """Ends the doubt of frames that follow one another from where the SYN says that the stream begins. The SYN was
    captured after them. The first of them may wait for what follows it (``Stream.noted``): it is in doubt, too."""
    doubted = stream.certain == 0 or stream.start == stream.noted == stream.next
    if doubted and 0 <= stream.start == stream.searched and stream.start_order <= reader.now:
        stream.certain = 1
        stream.noted = -1
        stream.alone = 0


@inlined
def _read_run(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, reader: Any, asked: Any
) -> int:
    """Reads the frames of a run: READ at its end, or why not."""
    pieces = window.pieces
    stream = capture.streams[reader.stream]
    conn = capture.connections[reader.slot]
    while reader.pos < reader.run_end:
        while pieces[reader.piece].pos + pieces[reader.piece].len <= reader.pos:
            reader.piece += 1
        if is_full(capture, rows):
            return FULL
        if conn.first_id < 0 and conn.raw_tokens == 0 and pieces[reader.piece].pos == reader.pos and conn.told == 0:
            side = reader.stream & 1
            stop = reader.run_end + reader.shift
            if is_not_readable(window, conn, stream, side, reader.piece, stop, reader.now):
                return UNREADABLE
        # Before each frame, or it would matter where a window ends, or where a table is full: both begin to read again.
        _meet_start(stream, reader)
        if stream.synced != 1:
            said = resynchronise(window, capture, table, scratch, rows, reader, asked)
        else:
            said = _next_frame(window, capture, table, scratch, rows, reader, asked)
        if said != READ:
            return said
    return READ


@inlined
def _read_direction(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, reader: Any, asked: Any
) -> int:
    """Reads what can be seen of one direction. Returns READ where more is needed to go on, FULL, or UNREADABLE."""
    pieces = window.pieces
    stream = capture.streams[reader.stream]
    if stream.synced == 0 and stream.start == stream.next and stream.start_order <= reader.now and stream.skipped <= 0:
        # The SYN was captured after the first bytes.
        stream.synced = 1
    _meet_start(stream, reader)
    reader.blocked = 0
    reader.unsure = 0
    if stream.end < 0 and only_grows(window, reader):
        reader.fresh = 0
        return READ
    reader.needs = -1
    reader.fresh = 1  # until all has been read, whatever table is full before that
    while True:
        if reader.reading == 0:
            while reader.first < reader.seen and (
                pieces[reader.first].off < 0 or pieces[reader.first].pos + pieces[reader.first].len <= stream.next
            ):
                reader.first += 1
            if reader.first >= reader.seen:
                break
            begin_run(window, capture, reader)
        go_on(window, capture, reader)
        said = _read_run(window, capture, table, scratch, rows, reader, asked)
        stream.next = max(stream.next, reader.pos)
        if said in (FULL, UNREADABLE):
            return said
        if said == BLOCKED:
            reader.blocked = 1
            break
        if reader.gap_follows == 0 or reader.pos < reader.run_end:
            break
        reader.reading = 0
        reader.first = reader.after
    reader.fresh = 0
    if reader.over == 1 and reader.blocked == 0 and asked.gives_way == 0:
        end_lost(window, capture, reader)
    return READ


@inlined
def _read_both(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, asked: Any, answered: Any
) -> int:
    """Reads requests and responses, packet by packet, to the end of the window: READ, FULL or UNREADABLE."""
    which = 0
    while True:
        # One place in the code for both: it is the largest step of all.
        reader = scratch.readers[which]
        ready = reader.fresh == 1
        if which == 1:
            ready = (ready or (reader.blocked == 1 and reader.wake <= reader.now)) and asked.unsure == 0
        if ready:
            said = _read_direction(window, capture, table, scratch, rows, reader, asked)
            if said != READ:
                return said
            if which == 0 and (
                answered.blocked == 1 or capture.streams[answered.stream].synced != 1 or asked.gives_way == 1
            ):
                # A request may be the one that it waits for, or say which answers are to be expected.
                answered.fresh = 1
        which = 1 - which
        if which == 1:
            continue
        if asked.gives_way == 1:
            asked.gives_way = 0
            asked.fresh = 1
            answered.fresh = 1
            continue
        now = following_packet(window, capture, asked, answered)
        if now == NEVER:
            return READ
        see(window, asked, now)
        see(window, answered, now)
        if asked.unsure == 1:
            asked.fresh = 1
        if now >= asked.event or asked.over == 1:
            meet_event(window, capture, asked, answered)


@kernel
def _tell_encrypted(window: Window, capture: Capture, rows: Array, slot: int, a: int, end: int, now: int) -> None:
    """The one row of an encrypted connection, with packet ``now``. Its active streams are rows ``a`` to ``end`` - 1.
    The row is that of the first bytes that there are, except those that were taken for something else."""
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
    row = mark(rows, capture.room[0], slot, response, client, 0, Status.ENCRYPTED, Reason.NONE)
    row.time = window.pieces[which].time
    row.order = now


@kernel
def _read_connection(
    window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array, a: int, end: int
) -> bool:
    """Reads both directions of a connection: False where a table is full. Its active streams are rows ``a`` to ``end``
    - 1.
    """
    room = capture.room[0]
    slot = window.active[a].stream >> 1
    conn = capture.connections[slot]
    asked = scratch.readers[0]
    answered = scratch.readers[1]
    if room.begun == 0:
        if conn.role == Role.UNKNOWN or conn.settled_order >= window.first_order:
            let_go(window, capture.streams, conn, a, end)
        if conn.role == Role.ENCRYPTED and conn.told == 0:
            if is_full(capture, rows):
                return False
            _tell_encrypted(window, capture, rows, slot, a, end, conn.settled_order)
        if conn.role != Role.A_REQUESTS and conn.role != Role.B_REQUESTS:
            return True
        room.begun = 1
        begin_direction(window, capture, asked, slot, int64(0), a, end)
        begin_direction(window, capture, answered, slot, int64(1), a, end)
        # What was there before has been looked at.
        begin = max(window.first_order - 1, conn.settled_order)
        see(window, asked, begin)
        see(window, answered, begin)
        meet_event(window, capture, asked, answered)
    asked.needs = -1
    answered.needs = -1
    said = _read_both(window, capture, table, scratch, rows, asked, answered)
    if said == UNREADABLE:
        conn.role = Role.ENCRYPTED
        _tell_encrypted(window, capture, rows, slot, a, end, asked.now)
    return said != FULL


@kernel
def is_settled(active: Array, connections: Array, noted: Array) -> bool:
    """Whether the role of all connections of a window is known. So is the broker of those that set it by themselves:
    ``noted`` is 1 for these, by their slots."""
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
def settle_all(window: Window, capture: Capture, table: Apis, scratch: Scratch) -> None:
    """Looks at the connections of a window whose role is not known, or of which no request was read yet."""
    active = window.active
    a = 0
    while a < active.shape[0]:
        end = a + 1
        if end < active.shape[0] and active[end].stream >> 1 == active[a].stream >> 1:
            end += 1
        settle(window, table, scratch, capture.streams, capture.connections[active[a].stream >> 1], a, end)
        a = end


@kernel
def frames_and_pairs(window: Window, capture: Capture, table: Apis, scratch: Scratch, rows: Array) -> bool:
    """Writes the frames of a window into ``rows``. False where a table is full, and there is more.

    How many there are is ``frames`` of ``capture.room``; where to go on stands there too. ``next`` of each stream moves
    after what was consumed.
    """
    active = window.active
    room = capture.room[0]
    while room.active < active.shape[0]:
        a = room.active
        end = a + 1
        if end < active.shape[0] and active[end].stream >> 1 == active[a].stream >> 1:
            end += 1
        if not _read_connection(window, capture, table, scratch, rows, a, end):
            return False
        room.begun = 0
        room.active = end
    return True
