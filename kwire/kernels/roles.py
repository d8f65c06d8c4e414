"""What a connection is: Kafka or not, and which of its ends sends the requests.

Unless ports were given, content decides which connections are Kafka. A request counts if its whole body is what its
layout says (``kwire.kernels.judging``). It must stand at the beginning of a stream, or of a segment where the beginning
was not captured.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- The request header has no client_id in ControlledShutdown v0 [3]. Elsewhere client_id follows the correlation id as a
  string with an int16 length, in every header version [4]. So no header version needs to be known.
- A connection that opens with a GSSAPI token sends raw tokens until a request header is seen [11]. ``framing`` finds
  the token again, since something else may set the role. TLS is recognised by its record header; nothing can be read
  after it.
- A short frame of another protocol can be a request without a client_id to the last byte. So can a response. It counts
  when the other direction has its answer. If nothing of that direction was captured, it counts when another one follows
  it. One that small numbers fit by themselves (``is_telling``) does not. The same holds for a response whose id makes
  it a Produce request, client_id and all, where the beginning was not captured.
- A client whose first bytes are no request may have sent a damaged one. It did where the first answer can be that of
  one API only. It did too where a request with a client_id comes later. It is not a client of Kafka where it begins
  with text. The same holds where the answer begins with no size. Nor is it one where its first ``MOST_JUDGED`` bytes
  have no request; less of it decides nothing. Where the first bytes are zeros, or a header with damaged bytes, no
  number of bytes decides it: the rest of a large first request is as long as it is.
- Responses alone count where ids go on. At the end of the connection, they also count where one can be that of one API
  only.
- A connection of unknown kind is judged packet by packet, by what had come up to each. So the verdict, and when it was
  found, are the same in any window. It is judged at the first ``OFTEN`` packets that bring bytes, and then more seldom.
  It is judged as soon as one of the ``FIRST_FRAMES`` of a stream that was captured from its beginning can be judged. It
  is also judged whenever more than ``UNDECIDED`` bytes of a direction are held, and at its end. Of what is held then,
  the latest ``LEFT`` bytes are kept, and the others are dropped.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import (
    FITS,
    MOST_JUDGED,
    NO_API,
    SO_FAR,
    TRAILS,
    UNFIT,
    answered_api,
    fits,
    fits_some_response,
    is_telling,
)
from kwire.kernels.layouts import AT_THE_END, Role
from kwire.kernels.numbers import i16, i32, int64, u16
from kwire.schema.keys import ApiKey

__all__ = [
    "LARGEST_FRAME",
    "LARGEST_TOKEN",
    "NEAR",
    "NEED_MORE",
    "NEVER",
    "NO",
    "OFTEN",
    "UNDECIDED",
    "YES",
    "Apis",
    "Window",
    "begin_hellos",
    "has_client_id",
    "is_kerberos",
    "is_not_readable",
    "let_go",
    "plausible_request",
    "run_of",
    "settle",
]

LARGEST_FRAME: Final = 128 << 20
"""Bytes. A broker refuses requests above socket.request.max.bytes (100 MiB). A client asks for 50 MiB at once."""
LARGEST_TOKEN: Final = 1 << 20
"""Bytes of a raw SASL token; a broker's limit is sasl.server.max.receive.size, 512 KiB."""
HELLO: Final = 6
"""Bytes of a record of TLS, its header included, that tell that it may hold a hello."""
SHORTEST_TOKEN: Final = 12
"""Bytes of a GSSAPI token, with its size, that are needed to recognise it."""
KERBEROS: Final = np.frombuffer(bytes.fromhex("06092a864886f712010202"), np.uint8)
"""The object identifier of Kerberos V5, 1.2.840.113554.1.2.2, in DER."""
LONGEST_CLIENT_ID: Final = 4096
LEAST_CLIENT_ID: Final = 3
"""Characters of a client_id that tells of a request with damaged bytes."""
UNDECIDED: Final = 64 << 10
"""Bytes of one direction that are held while it is not known whether a connection is Kafka."""
LEFT: Final = 16 << 10
"""Bytes of it that are left when these are too many."""
OFTEN: Final = 16
"""While the role of a connection is unknown, it is judged at each of its first packets with bytes. So many."""
FIRST_FRAMES: Final = 4
"""Frames of a direction with each of which its connection is judged, however many packets they are."""

NEVER: Final = (1 << 63) - 1
"""After all packets, and all times."""

# Answers of the plausibility checks.
NO: Final = 0
YES: Final = 1
NEED_MORE: Final = 2

CLIENT_ID: Final = 14
"""Bytes of a request, with its size, before the characters of its client_id."""
MOST_LOOKED: Final = 256 << 10
"""Bytes of one direction that are judged at once before it is left for what it is. The same bytes count again."""

NEAR: Final = 1000
"""How far a correlation id may be from a known one to be believed where a frame boundary is searched."""
ENOUGH_ANSWERS: Final = 3
LEAST_TELLING: Final = 32
"""Bytes of a response that shows by itself that it is one. Shorter ones look like many things."""
LEAST_NAME: Final = 5
"""Letters that it has side by side then, unless it is one of ApiVersions."""
MOST_BEGINNINGS: Final = 8
"""Pieces at whose beginnings answers are looked for, where there is nothing else."""
MOST_ANSWERS: Final = 64
"""Pieces of which one may begin with the answer to a request."""

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
    ration: int
    """How many bytes of an unfinished frame each stream may keep."""
    forced: bool
    """Whether the ports of the brokers were named."""
    final: bool
    """Whether nothing will follow."""


class Apis(NamedTuple):
    """What the schemas say about APIs."""

    apis: Array
    """KNOWN_API by API key."""
    acks_code: Array
    acks_starts: Array
    """The programs that read acks of a Produce request, by version."""
    acks_after: Array
    """By version: how many bytes stand between client_id and acks, and these bytes as a number. This holds where there
    is no transaction and no tagged field, as in nearly all requests. -1 where it is not as simple."""
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
        if size != 12:
            return NO
        # Whoever gets YES reads the id, which is all that its header has besides.
        return YES if end - at >= 12 else NEED_MORE
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


@inlined
def has_client_id(buf: Array, at: int, stop: int) -> bool:
    """Whether the request at ``at``, a plausible header, has a client_id that is not empty."""
    if stop - at < CLIENT_ID or (i16(buf, at + 4) == ApiKey.CONTROLLED_SHUTDOWN and i16(buf, at + 6) == 0):
        return False
    named: bool = i16(buf, at + 12) > 0
    return named


@kernel
def is_tls(buf: Array, at: int, end: int) -> bool:
    """Whether a TLS record begins here (RFC 8446, 5.1). It has type 20-23, version 3.0-3.4 and at most 2**14 + 2048
    bytes."""
    if end - at < 5:
        return False
    fits: bool = 20 <= buf[at] <= 23 and buf[at + 1] == 3 and buf[at + 2] <= 4
    return fits and 0 < u16(buf, at + 3) <= 18432


@kernel
def begin_hellos(buf: Array, segments: Array, connections: Array, streams: Array, begins: Array) -> bool:
    """Whether a direction begins, with any of the segments, with a TLS record that may hold a hello. ``begins`` says
    with which."""
    found = False
    for k in range(segments.shape[0]):
        segment = segments[k]
        at = segment.off
        begins[k] = False
        # The bytes come last. Nobody has looked at them yet, and it takes a while until they are there.
        stream = streams[segment.stream]
        first = segment.pos == stream.start if stream.start >= 0 else stream.next < 0
        if not first or segment.len < HELLO or at < 0 or buf[at] != 22:
            continue
        if buf[at + 1] != 3 or buf[at + 2] > 4 or not 1 <= buf[at + 5] <= 2:
            continue
        if connections[segment.stream >> 1].role != Role.OTHER:
            begins[k] = True
            found = True
    return found


@kernel
def is_gssapi(buf: Array, at: int, end: int) -> bool:
    """Whether a raw GSSAPI token with its size begins here. It has tag 0x60, then an OID, tag 6 (RFC 2743, 3.1)."""
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
def is_kerberos(buf: Array, at: int, end: int) -> int:
    """Whether the first raw token of Kerberos (RFC 4121, 4.1) with its size begins at ``at``. The boundary is not
    known. Returns YES, NO or NEED_MORE. Its length has to lead to its end. Its mechanism must be the one that there is
    for SASL (RFC 4752, 1)."""
    if end - at < 6:
        return NEED_MORE if end - at < 5 or buf[at + 4] == 0x60 else NO
    size = i32(buf, at)
    if size < 8 or size > LARGEST_TOKEN or buf[at + 4] != 0x60:
        return NO
    first = int64(buf[at + 5])
    count = first & 127 if first >= 128 else int64(0)
    if count > 3:
        return NO
    oid = at + 6 + count
    if end - oid < KERBEROS.shape[0]:
        return NEED_MORE
    length = int64(0) if count > 0 else first
    for k in range(at + 6, oid):
        length = length << 8 | int64(buf[k])
    if oid + length != at + 4 + size:
        return NO
    for k in range(KERBEROS.shape[0]):
        if buf[oid + k] != KERBEROS[k]:
            return NO
    return YES


@kernel
def run_of(pieces: Array, p: int, end: int, enough: int) -> tuple[int, int]:
    """Where the bytes end that begin with piece ``p``, without a gap, up to ``enough`` or after it. Only rows before
    ``end`` count. Also returns the row after the last of these pieces."""
    stop = pieces[p].off + pieces[p].len
    q = p + 1
    while (
        q < end and stop < enough and pieces[q].off == stop and pieces[q].pos == pieces[q - 1].pos + pieces[q - 1].len
    ):
        stop += pieces[q].len
        q += 1
    return stop, q


@kernel
def _answers(
    window: Window, table: Apis, scratch: Any, other: Any, own: int, wanted: int, api: int, version: int
) -> bool:
    """Whether a piece of the other direction begins with the answer to this request of stream ``own``."""
    data, pieces = window.data, window.pieces
    if other.stream == own:
        return False  # nothing of the other direction is in this window
    for p in range(other.look, min(other.seen, other.look + MOST_ANSWERS)):
        at = pieces[p].off
        if at < 0:
            continue
        stop, _ = run_of(pieces, p, other.seen, at + 4 + MOST_JUDGED)
        if stop - at >= 8 and i32(data, at + 4) == wanted and 4 <= i32(data, at) <= LARGEST_FRAME:
            said, _ = fits(data, at, stop, int64(1), api, version, table, scratch)
            if said == FITS:
                return True
    return False


@kernel
def _judged(
    window: Window,
    table: Apis,
    scratch: Any,
    at: int,
    stop: int,
    ends_here: bool,
    first: bool,
    other: Any,
    own: int,
    unanswered: bool,
    doubted: bool,
) -> tuple[int, int]:
    """How much what stands at ``at`` of stream ``own``, a plausible header, looks like a request. Returns (NO, MAYBE or
    STRONG; bytes looked at).

    ``ends_here``: nothing will follow ``stop`` without a gap. ``first``: a stream begins at ``at``. ``unanswered``:
    nothing of the other direction was captured, and is not waited for any longer. ``doubted``: what stands before it
    looks like another protocol.
    """
    data = window.data
    api = i16(data, at + 4)
    version = i16(data, at + 6)
    named = has_client_id(data, at, stop)
    following = at + 4 + i32(data, at)
    said, looked = fits(data, at, stop, int64(0), api, version, table, scratch)
    if said == SO_FAR:
        # What is lost cannot be waited for: the header has to do.
        sure = named and ends_here and not doubted and is_telling(data, at, stop, api, version, looked, table, scratch)
        return int64(STRONG) if sure else int64(MAYBE), looked
    if said in (UNFIT, TRAILS) and not (first and named):
        return int64(NO), looked
    telling = said == UNFIT or is_telling(data, at, stop, api, version, looked, table, scratch)
    if doubted:
        # Another protocol's small numbers may look like one without a client_id, and its names like client_ids.
        sure = (
            named
            and telling
            and (unanswered or _answers(window, table, scratch, other, own, i32(data, at + 8), api, version))
        )
        return int64(STRONG) if sure else int64(MAYBE), looked
    two_ways = False
    if api == ApiKey.PRODUCE and not first and said == FITS and following <= stop and following - at <= MOST_JUDGED:
        looked += following - at
        two_ways = fits_some_response(data, at, stop, table, scratch)
    # Of what is cut off for good, the header has to do.
    fitting = said not in (UNFIT, TRAILS) or (said == TRAILS and ends_here and following > stop)
    if fitting and named and telling and not two_ways:
        return int64(STRONG), looked
    # A client's mistake, or a form of its own. Or it has no client_id, as short frames of other protocols may look.
    # Another one after it, or its answer, decides.
    if said != UNFIT and telling and _answers(window, table, scratch, other, own, i32(data, at + 8), api, version):
        return int64(STRONG), looked
    # Other protocols repeat themselves as well: where there are answers, these tell.
    if (named or unanswered) and plausible_request(data, following, stop, table.apis) == YES:
        next_api, next_version = i16(data, following + 4), i16(data, following + 6)
        said, more = fits(data, following, stop, int64(0), next_api, next_version, table, scratch)
        looked += more
        tells = said == FITS and is_telling(data, following, stop, next_api, next_version, more, table, scratch)
        # The version of the next one would be another, if these were ids of responses.
        if tells and not (two_ways and next_api == api and next_version != version):
            return int64(STRONG), looked
    return int64(MAYBE), looked


@kernel
def _looks_like_requests(
    window: Window,
    table: Apis,
    scratch: Any,
    conn: Any,
    stream: Any,
    active: Any,
    other: Any,
    now: int,
    over: bool,
    late: bool,
) -> int:
    """How much one direction of a connection of unknown kind looks like requests with packet ``now``. Returns NO,
    MAYBE, STRONG or TOKEN. ``over``: nothing more will come. ``late``: answers are not waited for any longer.

    Sets the role where the bytes say that nothing of the connection can be read. That is TLS, or a client that does not
    begin with a request.
    """
    data, pieces = window.data, window.pieces
    opens = conn.opener == (active.stream & 1) and conn.opener_order <= now
    unanswered = late and (other.stream == active.stream or other.look >= other.seen)
    best = int64(NO)
    looked = int64(0)
    damaged = False
    begun = False
    doubtful = False
    for p in range(active.look, active.seen):
        if pieces[p].off < 0:
            continue
        at = pieces[p].off
        stop = at + pieces[p].len
        answer = plausible_request(data, at, stop, table.apis)
        q = p + 1
        # A frame may be cut by a segment's end. The pieces that touch this one count as well.
        while (
            (answer != NO or stop - at < SHORTEST_TOKEN)
            and stop - at < 2 * (MOST_JUDGED + 4)
            and q < active.seen
            and pieces[q].off == stop
            and pieces[q].pos == pieces[q - 1].pos + pieces[q - 1].len
        ):
            stop += pieces[q].len
            q += 1
            if answer != YES:
                answer = plausible_request(data, at, stop, table.apis)
        first_of_stream = stream.start >= 0 and pieces[p].pos == stream.start and stream.start_order <= now
        ends_here = over or q < active.seen
        looked += q - p
        look = int64(NO)
        if answer == YES:
            doubted = damaged or doubtful
            look, more = _judged(
                window, table, scratch, at, stop, ends_here, first_of_stream, other, active.stream, unanswered, doubted
            )
            looked += more
            answer = NO if look == NO else YES
        elif answer == NEED_MORE and ends_here and stop - at > CLIENT_ID and not (damaged or doubtful):
            # A client_id that was cut off, by the snapshot length perhaps.
            look = int64(STRONG)
        best = max(best, look)
        if answer != YES and p == active.look:
            if is_gssapi(data, at, stop):
                return int64(TOKEN)
            if is_tls(data, at, stop):
                conn.role = Role.ENCRYPTED
                return int64(NO)
        if first_of_stream and answer == NO and opens:
            begun = _may_be_request(data, at, stop, table.apis)
            if not begun and _is_foreign(window, at, stop, other, active):
                conn.role = Role.OTHER
                return int64(NO)
            damaged = True
        elif first_of_stream and look == MAYBE and at + 4 + i32(data, at) <= stop:
            # All of it is there, and its size may be false.
            doubtful = True
        elif answer == NO and not first_of_stream and pieces[p].len >= 8 and i32(data, at) == pieces[p].len - 4:
            # A frame, and none of Kafka's; or a token.
            doubtful = True
        elif best == STRONG or first_of_stream:
            break
        if best == STRONG or looked > MOST_LOOKED:
            break
    if damaged and best != STRONG and not begun:
        held = pieces[active.seen - 1].pos + pieces[active.seen - 1].len - stream.start
        if held > MOST_JUDGED:
            conn.role = Role.OTHER
            return int64(NO)
    return best


@kernel
def _is_telling(window: Window, table: Apis, scratch: Any, active: Any, p: int) -> bool:
    """Whether piece ``p`` of a direction begins with a frame that can be a response of one API only."""
    data, pieces = window.data, window.pieces
    at = pieces[p].off
    if at < 0:
        return False
    stop, _ = run_of(pieces, p, active.seen, at + 4 + MOST_JUDGED)
    if stop - at < LEAST_TELLING:
        return False
    size = i32(data, at)
    if size < LEAST_TELLING or size > LARGEST_FRAME or i32(data, at + 4) < 0:
        return False
    if stop - at < 4 + min(size, int64(MOST_JUDGED)):
        return False
    api = answered_api(data, at, stop, table, scratch)
    if api == NO_API or api == ApiKey.API_VERSIONS:
        return bool(api == ApiKey.API_VERSIONS)
    # Small numbers of another protocol fit much. A name has to be there, of a host, a topic or a group.
    letters = 0
    for k in range(at + 8, min(stop, at + 4 + size, at + 4 + MOST_JUDGED)):
        letters = letters + 1 if 32 < data[k] < 127 else 0
        if letters >= LEAST_NAME:
            return True
    return False


@kernel
def _is_foreign(window: Window, at: int, stop: int, other: Any, active: Any) -> bool:
    """Whether a connection is not Kafka whose client begins with what stands at ``at``, no request. It is not if it
    begins with text, or if the answer begins with no size. Else the request may have been damaged, or a token: a later
    one tells. Zeros, which may stand for any bytes that were lost, are no size that tells."""
    data, pieces = window.data, window.pieces
    text = stop - at >= 4
    for k in range(at, min(stop, at + 4)):
        text = text and 32 <= data[k] < 127
    if text:
        return True
    if other.stream == active.stream or other.look >= other.seen or pieces[other.look].off < 0:
        return False
    at = pieces[other.look].off
    stop, _ = run_of(pieces, other.look, other.seen, at + 4)
    if stop - at < 4:
        return False
    size = i32(data, at)
    foreign: bool = size != 0 and (size < 4 or size > LARGEST_FRAME)
    return foreign


@kernel
def _may_be_request(buf: Array, at: int, stop: int, apis: Array) -> bool:
    """Whether what stands at ``at``, no request, may be one with damaged bytes. It is zeros, or has a client_id, or
    all that stands before one."""
    if stop - at < CLIENT_ID or i32(buf, at) == 0:
        return stop - at >= 4 and i32(buf, at) == 0
    api, version, length = i16(buf, at + 4), i16(buf, at + 6), i16(buf, at + 12)
    if 8 <= i32(buf, at) <= LARGEST_FRAME and 0 <= api < apis.shape[0] and 0 <= version <= apis[api].latest:
        return True
    if length < LEAST_CLIENT_ID or length > min(LONGEST_CLIENT_ID, stop - at - CLIENT_ID):
        return False
    for k in range(at + CLIENT_ID, at + CLIENT_ID + length):  # noqa: SIM110
        if buf[k] < 32 or buf[k] >= 127:
            return False
    return True


@kernel
def _looks_like_responses(window: Window, table: Apis, scratch: Any, active: Any, over: bool) -> bool:
    """Whether one direction of a connection has responses, where nothing of the other was captured. It takes
    ``ENOUGH_ANSWERS`` in a row, with ids that go on, each as some layout says. If nothing more will come (``over``),
    one response that decides by itself is enough."""
    data, pieces = window.data, window.pieces
    for p in range(active.look, min(active.seen, active.look + MOST_BEGINNINGS)):
        at = int64(pieces[p].off)
        if at < 0:
            continue
        if over and _is_telling(window, table, scratch, active, p):
            return True
        stop, _ = run_of(pieces, p, active.seen, at + UNDECIDED)
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
                or not fits_some_response(data, at, stop, table, scratch)
            ):
                break
            before = number
            count += 1
            at += 4 + size
        if count == ENOUGH_ANSWERS:
            return True
    return False


@kernel
def _requesting_side(
    window: Window,
    table: Apis,
    scratch: Any,
    streams: Array,
    conn: Any,
    a: int,
    b: int,
    now: int,
    over: bool,
    late: bool,
) -> int:
    """Which side sends requests, by what is there with packet ``now``; -1 if that cannot be known. Both directions are
    rows ``a`` and ``b``, the same where there is one. ``over``: nothing more will come. ``late``: answers are not
    waited for any longer."""
    looks_a, looks_b = int64(NO), int64(NO)
    opened = conn.opener >= 0 and conn.opener_order <= now
    alone = int64(-1)
    for x in range(a, b + 1):
        one = window.active[x]
        other = window.active[b if x == a else a]
        side = one.stream & 1
        if one.look >= one.seen:
            continue
        alone = x if alone < 0 else int64(b + 1)
        if opened and conn.opener != side:
            continue
        look = _looks_like_requests(window, table, scratch, conn, streams[one.stream], one, other, now, over, late)
        if opened and look == NO and conn.role in (Role.UNKNOWN, Role.OTHER) and other.stream != one.stream:
            answers = streams[other.stream]
            p = other.look
            begins = p < other.seen and window.pieces[p].pos == answers.start and answers.start_order <= now
            if begins and _is_telling(window, table, scratch, other, p):
                conn.role = Role.UNKNOWN
                conn.by_broker = 1
                return side
        if conn.role != Role.UNKNOWN:
            return int64(-1)
        if side == 0:
            looks_a = look
        else:
            looks_b = look
    if max(looks_a, looks_b) <= MAYBE and a <= alone <= b:
        one = window.active[alone]
        side = one.stream & 1
        # A frame that may be a request does not tell that it is a response.
        tells = over and max(looks_a, looks_b) == NO
        if not (opened and conn.opener == side) and _looks_like_responses(window, table, scratch, one, tells):
            return int64(1) - side
    winner = int64(-1)
    if looks_a >= STRONG and looks_b >= STRONG:
        # The lower port is taken for the broker's.
        winner = int64(0) if conn.a_port >= conn.b_port else int64(1)
    elif max(looks_a, looks_b) >= STRONG:
        winner = int64(0) if looks_a > looks_b else int64(1)
    return winner


@kernel
def is_not_readable(window: Window, conn: Any, stream: Any, side: int, piece: int, stop: int, now: int) -> bool:
    """Whether TLS begins with this piece of a connection whose role is known. Notes it where a GSSAPI token does.

    What is there of it ends at ``stop`` in the data.
    """
    data = window.data
    at = window.pieces[piece].off
    if is_tls(data, at, stop):
        return True
    begins = stream.start == window.pieces[piece].pos and stream.start_order <= now
    if begins and side == conn.role - Role.A_REQUESTS and is_gssapi(data, at, stop):
        conn.raw_tokens = 1
    return False


# --- what is held, packet by packet -----------------------------------------------------------------------------------


@kernel
def _show(pieces: Array, active: Any, now: int) -> None:
    """Shows those pieces of a direction that were in order with packet ``now``."""
    seen = active.seen
    while seen < active.end and pieces[seen].order <= now:
        seen += 1
    active.seen = seen


@kernel
def _can_be_judged(window: Window, stream: Any, active: Any) -> bool:
    """Whether another one of the first frames of a stream has come so far that it can be judged."""
    data, pieces = window.data, window.pieces
    if active.look >= active.seen or pieces[active.look].pos != stream.start:
        return False
    first = pieces[active.look]
    run = max(active.run, active.look + 1)
    while run < active.seen and pieces[run].off >= 0 and pieces[run].pos == pieces[run - 1].pos + pieces[run - 1].len:
        run += 1
    active.run = run
    there = pieces[run - 1].pos + pieces[run - 1].len - first.pos
    found = False
    while first.off >= 0 and active.frames < FIRST_FRAMES and there - active.frame >= 4:
        size = i32(data, first.off + active.frame)
        if size < 4 or size > LARGEST_FRAME:
            active.frames = FIRST_FRAMES
            break
        if there - active.frame < 4 + min(size, int64(MOST_JUDGED)):
            break
        found = True
        active.frames += 1
        active.frame += 4 + size
    return found


@kernel
def _too_many(pieces: Array, active: Any) -> bool:
    """Whether more bytes of a direction are held than may be."""
    last = active.seen - 1
    return active.look < last and pieces[last].pos + pieces[last].len - pieces[active.look].pos > UNDECIDED


@kernel
def _let_some_go(pieces: Array, active: Any) -> None:
    """Leaves the latest ``LEFT`` bytes of a direction, and the rest of the piece that they begin in."""
    last = active.seen - 1
    end = pieces[last].pos + pieces[last].len
    while active.look < last and end - pieces[active.look + 1].pos >= LEFT:
        active.look += 1


@kernel
def let_go(window: Window, streams: Array, conn: Any, a: int, end: int) -> None:
    """Drops what was too much to be held until the role of a connection was known, if it is known now."""
    pieces = window.pieces
    until = conn.settled_order if conn.role != Role.UNKNOWN else int64(NEVER)
    for x in range(a, end):
        one = window.active[x]
        one.look = one.first
        one.seen = one.first
        _show(pieces, one, window.first_order - 1)
        while one.seen < one.end and pieces[one.seen].order < until:
            _show(pieces, one, pieces[one.seen].order)
            if _too_many(pieces, one):
                _let_some_go(pieces, one)
        stream = streams[one.stream]
        if one.look < one.end and one.look > one.first:
            stream.skipped = max(int64(0), stream.skipped) + pieces[one.look].pos - stream.next
            stream.next = pieces[one.look].pos
            stream.synced = 0


@kernel
def _next_packet(window: Window, conn: Any, a: int, b: int, now: int) -> int:
    """The next packet after ``now`` with which something happens to a connection; NEVER if there is none."""
    pieces = window.pieces
    following = int64(NEVER)
    for x in range(a, b + 1):
        one = window.active[x]
        if one.seen < one.end:
            following = min(following, pieces[one.seen].order)
    last = window.first_order + window.clock.shape[0] - 1
    if now < conn.closed_order <= last:
        following = min(following, conn.closed_order)
    if window.final and now < AT_THE_END:
        following = min(following, int64(AT_THE_END))
    return following


@kernel
def settle(window: Window, table: Apis, scratch: Any, streams: Array, conn: Any, a: int, end: int) -> None:
    """Sets the role of a connection if what is there decides it, and the packet that did. Its active streams are rows
    ``a`` to ``end`` - 1.

    Set nothing but the role. In a later window a known broker may give the role instead. Both ways must leave the same
    state. A first token of Kerberos is therefore found again when it is read (``is_kerberos``).
    """
    if conn.role != Role.UNKNOWN:
        return
    pieces = window.pieces
    b = end - 1
    for x in range(a, end):
        one = window.active[x]
        one.look = one.first
        one.seen = one.first
        one.run = one.first
        one.frames = 0
        one.frame = 0
        _show(pieces, one, window.first_order - 1)
        _can_be_judged(window, streams[one.stream], one)
    now = _next_packet(window, conn, a, b, window.first_order - 1)
    while now < NEVER:
        brought = False
        crowded = False
        complete = False
        for x in range(a, end):
            one = window.active[x]
            seen = one.seen
            _show(pieces, one, now)
            brought = brought or one.seen > seen
            crowded = crowded or _too_many(pieces, one)
            complete = _can_be_judged(window, streams[one.stream], one) or complete
        if brought:
            conn.looks += 1
            if conn.begun_order < 0:
                conn.begun_order = now
        over = conn.closed_order <= now or now >= AT_THE_END
        if complete or crowded or over or conn.looks >= conn.next_look:
            # Each look costs what all packets so far hold together, so looks become rare.
            conn.next_look = conn.looks + 1 if conn.looks < OFTEN else 2 * conn.looks
            late = over or crowded or conn.looks >= OFTEN
            winner = _requesting_side(window, table, scratch, streams, conn, a, b, now, over, late)
            if winner >= 0:
                conn.role = Role.A_REQUESTS if winner == 0 else Role.B_REQUESTS
            if conn.role != Role.UNKNOWN:
                conn.settled_order = now
                return
        for x in range(a, end):
            if _too_many(pieces, window.active[x]):
                _let_some_go(pieces, window.active[x])
        now = _next_packet(window, conn, a, b, now)
