"""What a connection is: Kafka or not, and which of its ends sends the requests.

Which connections are Kafka is decided by content unless ports were given: a request whose whole body is what its layout
says (``kwire.kernels.judging``), at the beginning of a stream, or of a segment where the beginning was not captured.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- The request header has no client_id in ControlledShutdown v0 [3]; elsewhere client_id follows the correlation id as a
  string with an int16 length in every header version [4], so no header version needs to be known.
- A connection that opens with a GSSAPI token sends raw tokens until a request header is seen [11]. TLS is recognised
  by its record header; nothing can be read after it.
- A short frame of another protocol, or a response, can be a request without a client_id to the last byte: it counts
  when another one follows it, or when the other direction has its answer.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kwire.kernels.engine import kernel
from kwire.kernels.judging import FITS, MOST_JUDGED, SO_FAR, TRAILS, UNFIT, fits, fits_some_response
from kwire.kernels.layouts import Role
from kwire.kernels.numbers import i16, i32, int64, u16
from kwire.schema.keys import ApiKey

__all__ = [
    "LARGEST_FRAME",
    "LARGEST_TOKEN",
    "NEAR",
    "NEED_MORE",
    "NO",
    "YES",
    "Facts",
    "Window",
    "let_go",
    "plausible_request",
    "settle",
]

LARGEST_FRAME: Final = 128 << 20
"""Bytes. A broker refuses requests above socket.request.max.bytes (100 MiB), a client asks for 50 MiB at once."""
LARGEST_TOKEN: Final = 1 << 20
"""Bytes of a raw SASL token; a broker's limit is sasl.server.max.receive.size, 512 KiB."""
SHORTEST_TOKEN: Final = 12
"""Bytes of a GSSAPI token, with its size, that are needed to recognise it."""
LONGEST_CLIENT_ID: Final = 4096
UNDECIDED: Final = 64 << 10
"""Bytes of one direction that are held while it is not known whether a connection is Kafka."""

# Answers of the plausibility checks.
NO: Final = 0
YES: Final = 1
NEED_MORE: Final = 2

CLIENT_ID: Final = 14
"""Bytes of a request, with its size, before the characters of its client_id."""
MOST_LOOKED: Final = 1 << 20
"""Bytes of one direction that are judged in a window before it is left for what it is: the same ones count again."""

NEAR: Final = 1000
"""How far a correlation id may be from a known one to be believed where a frame boundary is searched."""
ENOUGH_ANSWERS: Final = 3
MOST_BEGINNINGS: Final = 8
"""Pieces at whose beginnings answers are looked for, where there is nothing else."""

# How much a direction looks like requests; NO is 0.
MAYBE: Final = 1
"""More is needed to tell."""
STRONG: Final = 2
"""A whole request with a client_id, or one without that is answered or followed by another."""
TOKEN: Final = 3
"""A GSSAPI token."""

Array = Any


class Window(NamedTuple):
    """What a window brought, in order: see ``kwire.kernels.streams``."""

    data: Array
    pieces: Array
    active: Array
    clock: Array
    """For each packet of the window the latest time that was seen up to it."""
    first_order: int
    """The number of the first of them."""
    now: int
    """The latest time."""
    ration: int
    """How many bytes of an unfinished frame each stream may keep."""
    forced: bool
    """Whether the ports of the brokers were named."""
    final: bool
    """Whether nothing will follow."""


class Facts(NamedTuple):
    """What the schemas say about APIs."""

    apis: Array
    """API_FACTS by API key."""
    acks_code: Array
    acks_starts: Array
    """The programs that read acks of a Produce request, by version."""
    layouts: Array
    layout_starts: Array
    """The programs of whole frames: the first instruction by ``2 * api + response`` and version; -1 for none."""


@kernel
def plausible_request(buf: Array, at: int, end: int, apis: Array) -> int:
    """Whether a request (size first) can begin at ``at``: a known API and version, a printable client_id."""
    if end - at < 4:
        return NEED_MORE
    size = i32(buf, at)
    if size < 8 or size > LARGEST_FRAME:
        return NO
    if end - at < 8:
        return NEED_MORE
    api = i16(buf, at + 4)
    version = i16(buf, at + 6)
    if api < 0 or api >= apis.shape[0] or apis[api].latest < 0 or version < 0:
        return NO
    # Clients newer than kwire begin with an ApiVersions version that it does not know.
    if version > apis[api].latest and not (api == ApiKey.API_VERSIONS and version < 64):
        return NO
    if api == ApiKey.CONTROLLED_SHUTDOWN and version == 0:
        return YES if size == 12 else NO
    if size < 10:
        return NO
    if end - at < 14:
        return NEED_MORE
    length = i16(buf, at + 12)
    if length < -1 or length > LONGEST_CLIENT_ID or 10 + length > size:
        return NO
    for k in range(at + 14, min(end, at + 14 + length)):
        if buf[k] < 32 or buf[k] == 127:
            return NO
    return YES if at + 14 + length <= end else NEED_MORE


@kernel
def is_tls(buf: Array, at: int, end: int) -> bool:
    """Whether a TLS record begins here (RFC 8446, 5.1): type 20-23, version 3.0-3.4, at most 2**14 + 2048 bytes."""
    if end - at < 5:
        return False
    fits: bool = 20 <= buf[at] <= 23 and buf[at + 1] == 3 and buf[at + 2] <= 4
    return fits and 0 < u16(buf, at + 3) <= 18432


@kernel
def is_gssapi(buf: Array, at: int, end: int) -> bool:
    """Whether a raw GSSAPI token with its size begins here (RFC 2743, 3.1: tag 0x60, then an OID, tag 6)."""
    if end - at < SHORTEST_TOKEN:
        return False
    size = i32(buf, at)
    if size < 8 or size > LARGEST_TOKEN or buf[at + 4] != 0x60:
        return False
    # The DER length of the token: one byte, or 0x81/0x82 and one or two more.
    first = int64(buf[at + 5])
    oid = at + 6 if first < 128 else at + 6 + (first & 127)
    found: bool = oid < end and oid <= at + 9 and buf[oid] == 6
    return found


@kernel
def _run_of(pieces: Array, p: int, end: int, enough: int) -> tuple[int, int]:
    """Where the bytes end that begin with piece ``p``, of those before row ``end``, without a gap, up to ``enough`` or
    behind it; and the row behind the last of these pieces."""
    stop = pieces[p].off + pieces[p].len
    q = p + 1
    while (
        q < end and stop < enough and pieces[q].off == stop and pieces[q].pos == pieces[q - 1].pos + pieces[q - 1].len
    ):
        stop += pieces[q].len
        q += 1
    return stop, q


@kernel
def _order_of(pieces: Array, last: int, end: int) -> int:
    """The order of the piece, row ``last`` or one before it, that has the byte in front of ``end``."""
    while pieces[last].off >= end:
        last -= 1
    order: int = pieces[last].order
    return order


@kernel
def _answers(window: Window, facts: Facts, scratch: Any, other: Any, wanted: int, api: int, version: int) -> int:
    """When a piece of the other direction that begins with the answer to this request was there; -1 if none does."""
    data, pieces = window.data, window.pieces
    for p in range(other.first, min(other.end, other.first + MOST_BEGINNINGS)):
        at = pieces[p].off
        if at < 0:
            continue
        stop, q = _run_of(pieces, p, other.end, at + 4 + MOST_JUDGED)
        if stop - at >= 8 and i32(data, at + 4) == wanted and 4 <= i32(data, at) <= LARGEST_FRAME:
            said, _ = fits(data, at, stop, int64(1), api, version, facts, scratch)
            if said == FITS:
                end = min(stop, at + 4 + min(i32(data, at), int64(MOST_JUDGED)))
                return _order_of(pieces, q - 1, end)
    return int64(-1)


@kernel
def _judged(
    window: Window,
    facts: Facts,
    scratch: Any,
    conn: Any,
    at: int,
    stop: int,
    last: int,
    ends_here: bool,
    first: bool,
    other: Any,
    both: bool,
) -> tuple[int, int, int]:
    """How much what stands at ``at``, a plausible header, looks like a request: (NO, MAYBE or STRONG; bytes looked at;
    where what told it ends).

    ``last``: the row of the last piece there is. ``ends_here``: nothing will follow ``stop`` without a gap. ``first``:
    a stream begins at ``at``. ``both``: the other direction is there too.
    """
    data = window.data
    api = i16(data, at + 4)
    version = i16(data, at + 6)
    named = stop - at >= CLIENT_ID and i16(data, at + 12) > 0
    following = at + 4 + i32(data, at)
    end = min(following, at + 4 + MOST_JUDGED, stop)
    said, looked = fits(data, at, stop, int64(0), api, version, facts, scratch)
    if said == SO_FAR:
        # What is lost cannot be waited for: the header has to do.
        return int64(STRONG) if named and ends_here else int64(MAYBE), looked, end
    if said in (UNFIT, TRAILS) and not (first and named):
        return int64(NO), looked, end
    if said == UNFIT:
        # A client's mistake, or a form of its own: the next request tells.
        look = int64(MAYBE)
        if plausible_request(data, following, stop, facts.apis) == YES:
            said, more = fits(
                data, following, stop, int64(0), i16(data, following + 4), i16(data, following + 6), facts, scratch
            )
            looked += more
            if said == FITS:
                look = int64(STRONG)
                end = min(following + 4 + min(i32(data, following), int64(MOST_JUDGED)), stop)
        return look, looked, end
    if named:
        return int64(STRONG), looked, end
    # Short frames of other protocols may look so. Another one behind it, or its answer, will not: the first tells.
    answered = int64(-1)
    if both:
        answered = _answers(window, facts, scratch, other, i32(data, at + 8), api, version)
    if plausible_request(data, following, stop, facts.apis) == YES:
        said, more = fits(
            data, following, stop, int64(0), i16(data, following + 4), i16(data, following + 6), facts, scratch
        )
        looked += more
        if said == FITS:
            second = min(following + 4 + min(i32(data, following), int64(MOST_JUDGED)), stop)
            if answered < 0 or _order_of(window.pieces, last, second) <= answered:
                return int64(STRONG), looked, second
    if answered >= 0:
        conn.settled_order = max(conn.settled_order, answered)
    return int64(STRONG) if answered >= 0 else int64(MAYBE), looked, end


@kernel
def _looks_like_requests(
    window: Window, facts: Facts, scratch: Any, conn: Any, stream: Any, active: Any, other: Any, both: bool
) -> tuple[int, int]:
    """How much one direction of a connection of unknown kind looks like requests: (NO, MAYBE, STRONG or TOKEN; the row
    of the piece that does).

    Sets the role where the bytes say that nothing of the connection can be read: TLS, or a client that does not begin
    with a request.
    """
    data, pieces = window.data, window.pieces
    side = active.stream & 1
    best = int64(NO)
    where = active.first
    looked = int64(0)
    for p in range(active.first, active.end):
        if pieces[p].off < 0:
            continue
        at = pieces[p].off
        stop = at + pieces[p].len
        answer = plausible_request(data, at, stop, facts.apis)
        q = p + 1
        # A frame may be cut by a segment's end: the pieces that touch this one count as well.
        while (
            (answer != NO or stop - at < SHORTEST_TOKEN)
            and stop - at < 2 * (MOST_JUDGED + 4)
            and q < active.end
            and pieces[q].off == stop
            and pieces[q].pos == pieces[q - 1].pos + pieces[q - 1].len
        ):
            stop += pieces[q].len
            q += 1
            if answer != YES:
                answer = plausible_request(data, at, stop, facts.apis)
        first_of_stream = stream.start >= 0 and pieces[p].pos == stream.start
        ends_here = window.final or conn.closed == 1 or q < active.end
        looked += q - p
        look = int64(NO)
        last = q - 1
        if answer == YES:
            look, more, end = _judged(
                window, facts, scratch, conn, at, stop, last, ends_here, first_of_stream, other, both
            )
            looked += more
            while pieces[last].off >= end:
                last -= 1
            answer = NO if look == NO else YES
        elif answer == NEED_MORE and ends_here and stop - at > CLIENT_ID:
            # A client_id that was cut off, by the snapshot length perhaps.
            look = int64(STRONG)
        if look > best:
            best = look
            where = last
        if answer != YES and p == active.first:
            if is_gssapi(data, at, stop):
                return int64(TOKEN), int64(p)
            if is_tls(data, at, stop):
                conn.role = Role.ENCRYPTED
                return int64(NO), int64(p)
        if first_of_stream and answer == NO and conn.opener == side:
            conn.role = Role.OTHER
            conn.settled_order = pieces[p].order
            return int64(NO), int64(p)
        if best == STRONG or first_of_stream or looked > MOST_LOOKED:
            break
    return best, where


@kernel
def _looks_like_responses(window: Window, facts: Facts, scratch: Any, active: Any) -> tuple[bool, int]:
    """Whether one direction of a connection, of which nothing else was captured, has responses: ``ENOUGH_ANSWERS`` one
    after the other, with ids that go on, each as some layout says; and in which piece the last of them ends."""
    data, pieces = window.data, window.pieces
    for p in range(active.first, min(active.end, active.first + MOST_BEGINNINGS)):
        at = int64(pieces[p].off)
        if at < 0:
            continue
        stop, q = _run_of(pieces, p, active.end, at + UNDECIDED)
        before = int64(-1)
        count = 0
        while count < ENOUGH_ANSWERS and stop - at >= 8:
            size = i32(data, at)
            number = i32(data, at + 4)
            goes_on = number >= 0 if before < 0 else 0 < number - before <= NEAR
            if (
                not goes_on
                or size < 4
                or size > stop - at - 4
                or not fits_some_response(data, at, stop, facts, scratch)
            ):
                break
            before = number
            count += 1
            at += 4 + size
        if count == ENOUGH_ANSWERS:
            last = q - 1
            while pieces[last].off >= at:
                last -= 1
            return True, last
    return False, int64(active.first)


@kernel
def _requesting_side(
    window: Window, facts: Facts, scratch: Any, streams: Array, conn: Any, a: int, end: int
) -> tuple[int, bool]:
    """Which side sends requests, -1 if that cannot be told yet, and whether it begins with a GSSAPI token."""
    looks_a, looks_b = int64(NO), int64(NO)
    order_a, order_b = int64(0), int64(0)
    for x in range(a, end):
        one = window.active[x]
        other = window.active[end - 1 if x == a else a]
        side = one.stream & 1
        look, where = int64(NO), int64(one.first)
        if conn.opener < 0 or conn.opener == side:
            look, where = _looks_like_requests(
                window, facts, scratch, conn, streams[one.stream], one, other, end - a > 1
            )
            if conn.role != Role.UNKNOWN:
                return int64(-1), False
        if one.end > one.first:
            order = window.pieces[where].order
            if side == 0:
                looks_a, order_a = look, order
            else:
                looks_b, order_b = look, order
    winner = int64(-1)
    if max(looks_a, looks_b) == NO and end - a == 1:
        one = window.active[a]
        side = one.stream & 1
        if conn.opener != side:
            found, where = _looks_like_responses(window, facts, scratch, one)
            if found:
                conn.settled_order = max(conn.settled_order, window.pieces[where].order)
                return int64(1) - side, False
    if looks_a >= STRONG and looks_b >= STRONG:
        # The lower port is taken for the broker's.
        winner = int64(0) if conn.a_port >= conn.b_port else int64(1)
    elif max(looks_a, looks_b) >= STRONG:
        winner = int64(0) if looks_a > looks_b else int64(1)
    if winner >= 0:
        conn.settled_order = max(conn.settled_order, order_b if winner == 1 else order_a)
    return winner, (looks_b if winner == 1 else looks_a) == TOKEN


@kernel
def _not_readable(window: Window, streams: Array, conn: Any, a: int, end: int) -> None:
    """Looks for TLS, and for a GSSAPI token, at the beginning of a connection whose ports were given."""
    data, pieces = window.data, window.pieces
    for x in range(a, end):
        one = window.active[x]
        if one.first == one.end or pieces[one.first].off < 0:
            continue
        at = pieces[one.first].off
        stop = at + pieces[one.first].len
        if is_tls(data, at, stop):
            conn.role = Role.ENCRYPTED
            return
        asks = (one.stream & 1) == conn.role - Role.A_REQUESTS
        if asks and streams[one.stream].start == pieces[one.first].pos and is_gssapi(data, at, stop):
            conn.raw_tokens = 1


@kernel
def let_go(window: Window, streams: Array, a: int, end: int) -> None:
    """Bytes of a connection of unknown kind: a little is held, once; the rest is let go."""
    for x in range(a, end):
        one = window.active[x]
        held = int64(0)
        for p in range(one.first, one.end):
            held += window.pieces[p].len
        stream = streams[one.stream]
        if held > UNDECIDED or (held > 0 and stream.skipped > 0):
            last = window.pieces[one.end - 1]
            stream.skipped = max(int64(0), stream.skipped) + held
            stream.next = last.pos + last.len
            stream.latest = max(stream.latest, last.time)
            stream.clock = max(stream.clock, last.clock)
            stream.order = max(stream.order, last.order)
            stream.synced = 0


@kernel
def _note_begin(window: Window, conn: Any, a: int, end: int) -> None:
    """Notes the first packet with data of a connection."""
    for x in range(a, end):
        for p in range(window.active[x].first, window.active[x].end):
            order = window.pieces[p].order
            if window.pieces[p].off >= 0 and (conn.begun_order < 0 or order < conn.begun_order):
                conn.begun_order = order


@kernel
def _has_news(window: Window, a: int, end: int) -> bool:
    """Whether this window brought anything of a connection: what is held was looked at before."""
    for x in range(a, end):
        one = window.active[x]
        # Orders do not decrease along a stream.
        if one.end > one.first and window.pieces[one.end - 1].order >= window.first_order:
            return True
    return False


@kernel
def settle(window: Window, facts: Facts, scratch: Any, streams: Array, conn: Any, a: int, end: int) -> None:
    """Sets the role of a connection, whose active streams are rows ``a`` to ``end`` - 1, if what is there tells it."""
    if conn.role != Role.UNKNOWN:
        if conn.first_id < 0 and conn.told == 0 and conn.raw_tokens == 0:
            _not_readable(window, streams, conn, a, end)
        return
    if conn.begun_order < 0:
        _note_begin(window, conn, a, end)
    if not (window.final or conn.closed == 1 or _has_news(window, a, end)):
        return
    winner, token = _requesting_side(window, facts, scratch, streams, conn, a, end)
    if conn.role != Role.UNKNOWN:
        return
    if winner < 0:
        return
    conn.role = Role.A_REQUESTS if winner == 0 else Role.B_REQUESTS
    if not token:
        return
    conn.raw_tokens = 1
    for x in range(a, end):
        one = window.active[x]
        if one.stream & 1 == winner and one.first < one.end:
            streams[one.stream].next = window.pieces[one.first].pos
            streams[one.stream].synced = 1
