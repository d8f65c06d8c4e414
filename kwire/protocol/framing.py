"""Streams to frames, and responses to their requests, for all connections of a window at once: the fourth kernel.

Strategy: the pieces of a stream (``kwire.capture.streams``) are walked run by run, a run being bytes without a gap.
Where a frame is known to begin, its size says where the next one does; where that is not known (the capture begins
in the middle of a connection, or bytes are missing), the kernel looks for the next place at which a plausible frame
stands. Requests of a connection are read before its responses, each leaves an entry in the connection's list, and a
response takes the first entry with its correlation id. Frames come out as rows of numbers; the bytes stay where
they are.

Rules kept here (numbers in brackets: the protocol notes that they answer):

- A response names neither its API nor its version: both are its request's. A broker answers the requests of one
  connection in order, so entries before the one that matches will never be answered and are dropped. Correlation
  ids repeat [31], so an entry must not be younger than the response.
- A Produce request with acks=0 has no response and leaves no entry [10]. acks is read by a program of
  ``kwire.codec.locate``, not by a parser of its own.
- The request header has no client_id in ControlledShutdown v0 [3]; elsewhere client_id follows the correlation id as a
  string with an int16 length in every header version [4], so no header version needs to be known to frame and pair.
- A broker of 0.8.2 may answer FindCoordinator v0 with correlation id 0 [29].
- After a SaslHandshake v0, and in a connection that opens with a GSSAPI token, frames are raw tokens until a
  request header is seen again; each leaves an entry, so that the answer is known to be a token too [11]. TLS is
  recognised by its record header; nothing can be read after it.
- A response whose request may still come (out of order around the end of a window, or behind a hole) is left for
  the next window. Nothing else looks back.
- Gaps: what is missing inside of a frame costs this frame only, because its size says where the next one begins.

Which connections are Kafka is decided by content unless ports were given: a plausible request header at the
beginning of a stream, or of a segment where the beginning was not captured.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.codec.locate import ABSENT, MAX_DEPTH, interpret
from kwire.jit import be16, int16, int32, int64, kernel
from kwire.protocol.state import (
    A_END,
    A_FIRST,
    A_STREAM,
    A_WAITING,
    C_A_PORT,
    C_B_PORT,
    C_CLIENT,
    C_CLOSED,
    C_FIRST_ID,
    C_LAST_CLIENT,
    C_PENDING,
    C_PENDING_HEAD,
    C_PENDING_TAIL,
    C_ROLE,
    C_SASL,
    C_TOLD,
    F_API,
    F_CLIENT,
    F_CLIENT_SIDE,
    F_DETAIL,
    F_ID,
    F_LATENCY,
    F_OFF,
    F_RESPONSE,
    F_SEEN,
    F_SIZE,
    F_SLOT,
    F_STATUS,
    F_TIME,
    F_VERSION,
    F_WHY,
    FRAME_COLUMNS,
    P_LEN,
    P_OFF,
    P_POS,
    P_TIME,
    ROLE_A_REQUESTS,
    ROLE_B_REQUESTS,
    ROLE_ENCRYPTED,
    ROLE_OTHER,
    ROLE_UNKNOWN,
    S_END,
    S_NEXT,
    S_SKIPPED,
    S_START,
    S_SYNC,
    SASL_TOKEN,
    ST_CUT_OFF,
    ST_ENCRYPTED,
    ST_GAP,
    ST_MALFORMED,
    ST_OK,
    ST_SASL,
    ST_UNPAIRED,
    ST_UNSUPPORTED,
    W_API,
    W_CLIENT,
    W_ID,
    W_NEXT,
    W_TIME,
    W_VERSION,
)

__all__ = [
    "FACT_FLEXIBLE",
    "FACT_LATEST",
    "FACT_LEAST_RESPONSE",
    "LARGEST_FRAME",
    "WHY",
    "frames_and_pairs",
    "intern_all",
]

LARGEST_FRAME: Final = 128 << 20
"""Bytes. A broker refuses requests above socket.request.max.bytes (100 MiB), a client asks for 50 MiB at once."""
LARGEST_TOKEN: Final = 1 << 20
"""Bytes of a raw SASL token; a broker's limit is sasl.server.max.receive.size, 512 KiB."""
SHORTEST_TOKEN: Final = 12
"""Bytes of a GSSAPI token, with its size, that are needed to recognise it."""
LONGEST_CLIENT_ID: Final = 4096
MOST_UNANSWERED: Final = 10_000
"""Entries that one connection keeps. Clients have 5 requests in flight, or a few hundred."""
DISORDER: Final = 20_000_000
"""Nanoseconds by which a capture may show a response before its request."""
HTTPS: Final = 443
"""TLS to this port is not reported unless the caller names the port."""
UNDECIDED: Final = 64 << 10
"""Bytes of one direction that are held while it is not known whether a connection is Kafka."""
NEAR: Final = 1000
"""How far a correlation id may be from a known one to be believed where a frame boundary is searched."""

# What is wrong with a frame, as a number for the kernel; F_DETAIL fills the %d.
WHY: Final = (
    "",
    "a frame cannot have a size of %d",
    "client_id has a length of %d, more than the frame holds",
    "the connection or the capture ends after %d bytes of this frame",
    "packets are missing from the capture after %d bytes of this frame",
    "packets are missing or the capture began within a frame: %d bytes skipped",
    "no request with this correlation id",
    "API key %d is unknown",
    "version %d of this API is unknown",
    "the request header is cut short at %d bytes",
    "%d bytes of this frame were kept, then too many frames were unfinished at once",
)
WHY_SIZE: Final = 1
WHY_CLIENT_ID: Final = 2
WHY_END: Final = 3
WHY_HOLE: Final = 4
WHY_SKIPPED: Final = 5
WHY_UNPAIRED: Final = 6
WHY_API: Final = 7
WHY_VERSION: Final = 8
WHY_SHORT: Final = 9
WHY_LARGE: Final = 10

# Columns of the table of facts about an API, by API key.
FACT_LATEST: Final = 0
"""Latest known version, -1 for an unknown key."""
FACT_FLEXIBLE: Final = 1
"""First flexible version."""
FACT_LEAST_RESPONSE: Final = 2
"""Bytes that the shortest response of any version has, correlation id included."""
FACT_COLUMNS: Final = 3

PRODUCE: Final = 0
CONTROLLED_SHUTDOWN: Final = 7
FIND_COORDINATOR: Final = 10
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18

# Answers of the plausibility checks.
NO: Final = 0
YES: Final = 1
NEED_MORE: Final = 2

# How much a direction looks like requests, by its first plausible one; NO is 0.
WEAK: Final = 1
"""Without a client_id, or an empty one."""
STRONG: Final = 2
TOKEN: Final = 3
"""A GSSAPI token."""

Array = Any


@kernel
def _grown(table: Array) -> Array:
    bigger = np.empty((max(64, table.shape[0] * 2), table.shape[1]), np.int64)
    bigger[: table.shape[0]] = table
    return bigger


@kernel
def plausible_request(buf: Array, at: int, end: int, facts: Array) -> int:
    """Whether a request (size first) can begin at ``at``: a known API and version, a printable client_id."""
    if end - at < 4:
        return NEED_MORE
    size = int32(buf, at)
    if size < 8 or size > LARGEST_FRAME:
        return NO
    if end - at < 8:
        return NEED_MORE
    api = int16(buf, at + 4)
    version = int16(buf, at + 6)
    if api < 0 or api >= facts.shape[0] or facts[api, FACT_LATEST] < 0 or version < 0:
        return NO
    # Clients newer than kwire begin with an ApiVersions version that it does not know.
    if version > facts[api, FACT_LATEST] and not (api == API_VERSIONS and version < 64):
        return NO
    if api == CONTROLLED_SHUTDOWN and version == 0:
        return YES if size == 12 else NO
    if size < 10:
        return NO
    if end - at < 14:
        return NEED_MORE
    length = int16(buf, at + 12)
    if length < -1 or length > LONGEST_CLIENT_ID or 10 + length > size:
        return NO
    for k in range(at + 14, min(end, at + 14 + length)):
        if buf[k] < 32 or buf[k] == 127:
            return NO
    return YES if at + 14 + length <= end else NEED_MORE


@kernel
def _tls(buf: Array, at: int, end: int) -> bool:
    """Whether a TLS record begins here (RFC 8446, 5.1): type 20-23, version 3.0-3.4, at most 2**14 + 2048 bytes."""
    if end - at < 5:
        return False
    fits: bool = 20 <= buf[at] <= 23 and buf[at + 1] == 3 and buf[at + 2] <= 4
    return fits and 0 < be16(buf, at + 3) <= 18432


@kernel
def _gssapi(buf: Array, at: int, end: int) -> bool:
    """Whether a raw GSSAPI token with its size begins here (RFC 2743, 3.1: tag 0x60, then the mechanism's OID, tag
    6)."""
    if end - at < SHORTEST_TOKEN:
        return False
    size = int32(buf, at)
    if size < 8 or size > LARGEST_TOKEN or buf[at + 4] != 0x60:
        return False
    # The DER length of the token: one byte, or 0x81/0x82 and one or two more.
    first = int64(buf[at + 5])
    oid = at + 6 if first < 128 else at + 6 + (first & 127)
    return oid < end and oid <= at + 9 and buf[oid] == 6


@kernel
def _find_waiting(waiting: Array, head: int, wanted: int, until: int) -> tuple[int, int]:
    """The first entry with this correlation id that is not younger than ``until``: (row, how many stand before it)."""
    row = head
    before = 0
    while row >= 0:
        if waiting[row, W_API] != SASL_TOKEN and waiting[row, W_ID] == wanted and waiting[row, W_TIME] <= until:
            return row, before
        row = waiting[row, W_NEXT]
        before += 1
    return int64(-1), before


@kernel
def _plausible_response(
    buf: Array, at: int, end: int, touching: bool, conn: Array, waiting: Array, facts: Array, until: int
) -> int:
    """Whether a response (size first) can begin at ``at``, where the boundary is not known.

    Only a size and a correlation id are there to judge by. An id that is waited for is believed if the size is enough
    for a response of its API (small numbers are common: a 4 and a 1 look like the whole of a response) and if what
    follows fits as well; at the beginning of a segment (``touching``) so is one shortly before the first request that
    was seen, and any small one if no request was seen at all.
    """
    if end - at < 4:
        return NEED_MORE
    size = int32(buf, at)
    if size < 4 or size > LARGEST_FRAME:
        return NO
    if end - at < 8:
        return NEED_MORE
    wanted = int32(buf, at + 4)
    row, _ = _find_waiting(waiting, conn[C_PENDING_HEAD], wanted, until)
    first = conn[C_FIRST_ID]
    if row < 0:
        if not touching:
            return NO
        if first >= 0 and not 0 < first - wanted <= NEAR:
            return NO
        if first < 0 and wanted < 0:
            return NO
    else:
        api = waiting[row, W_API]
        if 0 <= api < facts.shape[0] and size < facts[api, FACT_LEAST_RESPONSE]:
            return NO
    following = at + 4 + size
    if following == end:
        return YES
    if following + 8 <= end:
        size = int32(buf, following)
        next_id = int32(buf, following + 4)
        if size < 4 or size > LARGEST_FRAME or not 0 < next_id - wanted <= NEAR:
            return NO
        return YES
    return YES if touching else NO


@kernel
def _same(one: Array, at: int, other: Array, where: int, length: int) -> bool:
    same = True
    for k in range(length):
        same = same and one[at + k] == other[where + k]
    return same


@kernel
def _intern(
    buf: Array, off: int, length: int, pool: Array, names: Array, table: Array, used: Array
) -> tuple[int, Array, Array, Array]:
    """The number of a name, which is added if it is new: (number, pool, names, table).

    ``names`` holds offset and length in ``pool``, ``table`` is an open-addressing table of numbers, ``used`` is
    [names, bytes of the pool]. Numbers stay valid, the tables are replaced when they are full.
    """
    hashed = int64(length)
    for k in range(off, off + length):
        hashed = (hashed ^ int64(buf[k])) * 0x100000001B3
    hashed ^= hashed >> 31
    mask = table.shape[0] - 1
    place = hashed & mask
    while table[place] >= 0:
        number = table[place]
        if names[number, 1] == length and _same(buf, off, pool, names[number, 0], length):
            return number, pool, names, table
        place = (place + 1) & mask
    number = used[0]
    if number == names.shape[0]:
        names = _grown(names)
    begin = used[1]
    if begin + length > pool.shape[0]:
        bigger = np.empty(max(pool.shape[0] * 2, begin + length), np.uint8)
        bigger[:begin] = pool[:begin]
        pool = bigger
    pool[begin : begin + length] = buf[off : off + length]
    names[number, 0] = begin
    names[number, 1] = length
    used[0] += 1
    used[1] += length
    table[place] = number
    if used[0] * 2 > table.shape[0]:
        wider = np.full(table.shape[0] * 2, -1, np.int64)
        mask = wider.shape[0] - 1
        for one in range(used[0]):
            hashed = int64(names[one, 1])
            for k in range(names[one, 0], names[one, 0] + names[one, 1]):
                hashed = (hashed ^ int64(pool[k])) * 0x100000001B3
            hashed ^= hashed >> 31
            place = hashed & mask
            while wider[place] >= 0:
                place = (place + 1) & mask
            wider[place] = one
        table = wider
    return number, pool, names, table


@kernel
def intern_all(
    buf: Array, offsets: Array, lengths: Array, pool: Array, names: Array, table: Array, used: Array
) -> tuple[Array, Array, Array, Array]:
    """``_intern`` for many names: (numbers, pool, names, table); -1 where a length is negative or ABSENT."""
    numbers = np.empty(offsets.shape[0], np.int64)
    for k in range(offsets.shape[0]):
        if lengths[k] < 0:
            numbers[k] = -1
        else:
            numbers[k], pool, names, table = _intern(buf, offsets[k], lengths[k], pool, names, table, used)
    return numbers, pool, names, table


@kernel
def _wait_for(
    conn: Array, waiting: Array, free: Array, wanted: int, api: int, version: int, client: int, time: int
) -> None:
    """Appends an entry to a connection's list. ``free`` is [first free row, rows in use so far]; there must be one
    left."""
    if conn[C_PENDING] >= MOST_UNANSWERED:
        _forget(conn, waiting, free, 1)
    row = free[0]
    if row >= 0:
        free[0] = waiting[row, W_NEXT]
    else:
        row = free[1]
        free[1] += 1
    waiting[row, W_ID] = wanted
    waiting[row, W_API] = api
    waiting[row, W_VERSION] = version
    waiting[row, W_CLIENT] = client
    waiting[row, W_TIME] = time
    waiting[row, W_NEXT] = -1
    if conn[C_PENDING_TAIL] >= 0:
        waiting[conn[C_PENDING_TAIL], W_NEXT] = row
    else:
        conn[C_PENDING_HEAD] = row
    conn[C_PENDING_TAIL] = row
    conn[C_PENDING] += 1


@kernel
def _forget(conn: Array, waiting: Array, free: Array, count: int) -> None:
    """Takes the first ``count`` entries off a connection's list."""
    for _ in range(count):
        row = conn[C_PENDING_HEAD]
        if row < 0:
            break
        conn[C_PENDING_HEAD] = waiting[row, W_NEXT]
        waiting[row, W_NEXT] = free[0]
        free[0] = row
        conn[C_PENDING] -= 1
    if conn[C_PENDING_HEAD] < 0:
        conn[C_PENDING_TAIL] = -1
        conn[C_PENDING] = 0


@kernel
def _looks_like_requests(
    data: Array, pieces: Array, first: int, end: int, stream: int, conn: Array, streams: Array, facts: Array
) -> int:
    """How much one direction of a connection of unknown kind looks like requests: NO, WEAK, STRONG or TOKEN.

    Sets C_ROLE where the bytes say that nothing of the connection can be read: TLS, or a client that does not begin
    with a request.
    """
    side = stream & 1
    start = streams[stream, S_START]
    best = NO
    for p in range(first, end):
        if pieces[p, P_OFF] < 0:
            continue
        at = pieces[p, P_OFF]
        stop = at + pieces[p, P_LEN]
        answer = plausible_request(data, at, stop, facts)
        q = p + 1
        # A header may be cut by a segment's end: the pieces that touch this one count as well.
        while (
            (answer == NEED_MORE or stop - at < SHORTEST_TOKEN)
            and q < end
            and pieces[q, P_OFF] == stop
            and pieces[q, P_POS] == pieces[q - 1, P_POS] + pieces[q - 1, P_LEN]
        ):
            stop += pieces[q, P_LEN]
            q += 1
            answer = plausible_request(data, at, stop, facts)
        if answer == YES:
            best = max(best, STRONG if stop - at >= 14 and int16(data, at + 12) > 0 else WEAK)
        elif p == first and _gssapi(data, at, stop):
            return TOKEN
        elif p == first and _tls(data, at, stop):
            conn[C_ROLE] = ROLE_ENCRYPTED
            return NO
        elif start >= 0 and pieces[p, P_POS] == start and answer == NO and conn[C_CLIENT] == side:
            conn[C_ROLE] = ROLE_OTHER
            return NO
        if best == STRONG or (start >= 0 and pieces[p, P_POS] == start):
            break
    return best


@kernel
def _decide_role(
    data: Array, pieces: Array, active: Array, a: int, end: int, conn: Array, streams: Array, facts: Array, final: bool
) -> None:
    """Sets C_ROLE of a connection of unknown kind if what is there says what it is.

    A short response can look like a request: its correlation id is read as API key and version, what follows as
    correlation id and client_id. Where it was seen who opened the connection, only that end sends requests.
    Otherwise both directions are looked at, a client_id counts more than none, and the lower port is taken for the
    broker's.
    """
    looks = np.zeros(2, np.int64)
    there = np.zeros(2, np.int64)
    for x in range(a, end):
        side = active[x, A_STREAM] & 1
        there[side] = active[x, A_END] > active[x, A_FIRST]
        if conn[C_CLIENT] >= 0 and conn[C_CLIENT] != side:
            continue
        looks[side] = _looks_like_requests(
            data, pieces, active[x, A_FIRST], active[x, A_END], active[x, A_STREAM], conn, streams, facts
        )
        if conn[C_ROLE] != ROLE_UNKNOWN:
            return
    winner = int64(-1)
    if conn[C_CLIENT] >= 0:
        if looks[conn[C_CLIENT]] != NO:
            winner = conn[C_CLIENT]
    elif looks[0] != looks[1] and min(looks[0], looks[1]) != NO:
        winner = int64(0) if looks[0] > looks[1] else int64(1)
    elif looks[0] != NO or looks[1] != NO:
        likely = int64(0) if conn[C_A_PORT] >= conn[C_B_PORT] else int64(1)
        if looks[likely] != NO:
            winner = likely
        elif looks[1 - likely] >= STRONG and (there[likely] == 1 or final):
            winner = 1 - likely
    if winner < 0:
        return
    conn[C_ROLE] = ROLE_A_REQUESTS if winner == 0 else ROLE_B_REQUESTS
    if looks[winner] == TOKEN:
        conn[C_SASL] = 1
        for x in range(a, end):
            stream = active[x, A_STREAM]
            if stream & 1 == winner and active[x, A_FIRST] < active[x, A_END]:
                streams[stream, S_NEXT] = pieces[active[x, A_FIRST], P_POS]
                streams[stream, S_SYNC] = 1


@kernel
def _mark(
    rows: Array, n: int, slot: int, direction: int, client_side: int, time: int, size: int, status: int, why: int
) -> Array:
    """Writes row ``n`` for bytes in which no frame can be seen, and returns the table, grown if it was full."""
    if n == rows.shape[0]:
        rows = _grown(rows)
    rows[n] = ABSENT
    rows[n, F_SLOT] = slot
    rows[n, F_RESPONSE] = direction
    rows[n, F_CLIENT_SIDE] = client_side
    rows[n, F_TIME] = time
    rows[n, F_OFF] = -1
    rows[n, F_SEEN] = 0
    rows[n, F_SIZE] = size
    rows[n, F_CLIENT] = -1
    rows[n, F_STATUS] = status
    rows[n, F_WHY] = why
    rows[n, F_DETAIL] = size
    return rows


@kernel
def _search(
    data: Array,
    pieces: Array,
    piece: int,
    pos: int,
    end: int,
    shift: int,
    direction: int,
    conn: Array,
    waiting: Array,
    facts: Array,
) -> tuple[int, int, int]:
    """The next position at which a frame can begin: (YES, NEED_MORE or NO, position, piece that it is in).

    ``shift`` makes an offset in ``data`` of a position; ``piece`` is the one that ``pos`` is in.
    """
    stop = end + shift
    while pos < end:
        at = pos + shift
        # The first byte of a size of at most LARGEST_FRAME: text, and most other data, is passed over here.
        if data[at] <= LARGEST_FRAME >> 24:
            while pieces[piece, P_POS] + pieces[piece, P_LEN] <= pos:
                piece += 1
            touching = pieces[piece, P_POS] == pos
            if direction == 0:
                answer = plausible_request(data, at, stop, facts)
                if answer == YES and not touching:
                    # In the middle of a segment, one header is not enough: what follows must fit.
                    following = at + 4 + int32(data, at)
                    if following < stop:
                        if plausible_request(data, following, stop, facts) == NO:
                            answer = NO
                    elif following > stop and int32(data, at + 8) < 0:
                        answer = NO
            else:
                until = pieces[piece, P_TIME] + DISORDER
                answer = _plausible_response(data, at, stop, touching, conn, waiting, facts, until)
            if answer != NO:
                return answer, pos, piece
        pos += 1
    return NO, end, piece


@kernel
def _not_readable(conn: Array, active: Array, a: int, end: int, data: Array, pieces: Array, streams: Array) -> None:
    """Looks for TLS, and for a GSSAPI token, at the beginning of a connection whose ports were given."""
    for x in range(a, end):
        first = active[x, A_FIRST]
        if first == active[x, A_END] or pieces[first, P_OFF] < 0:
            continue
        at = pieces[first, P_OFF]
        stop = at + pieces[first, P_LEN]
        stream = active[x, A_STREAM]
        if _tls(data, at, stop):
            conn[C_ROLE] = ROLE_ENCRYPTED
            return
        asks = (stream & 1) == conn[C_ROLE] - ROLE_A_REQUESTS
        if asks and streams[stream, S_START] == pieces[first, P_POS] and _gssapi(data, at, stop):
            conn[C_SASL] = 1


@kernel
def _let_go(active: Array, a: int, end: int, pieces: Array, streams: Array) -> None:
    """Bytes of a connection of unknown kind: a little is held, once; the rest is let go."""
    for x in range(a, end):
        held = int64(0)
        for p in range(active[x, A_FIRST], active[x, A_END]):
            held += pieces[p, P_LEN]
        stream = active[x, A_STREAM]
        if held > UNDECIDED or (held > 0 and streams[stream, S_SKIPPED] > 0):
            last = active[x, A_END] - 1
            streams[stream, S_SKIPPED] = max(int64(0), streams[stream, S_SKIPPED]) + held
            streams[stream, S_NEXT] = pieces[last, P_POS] + pieces[last, P_LEN]
            streams[stream, S_SYNC] = 0


@kernel
def frames_and_pairs(
    data: Array,
    pieces: Array,
    active: Array,
    conns: Array,
    streams: Array,
    waiting: Array,
    free: Array,
    pool: Array,
    names: Array,
    name_table: Array,
    names_used: Array,
    facts: Array,
    acks_code: Array,
    acks_starts: Array,
    forced: bool,
    now: int,
    ration: int,
    final: bool,
) -> tuple[Array, Array, Array, Array, Array]:
    """The frames of a window: (frame rows, waiting, pool, names, name_table).

    ``acks_code`` and ``acks_starts`` are the programs that read acks of a Produce request, by version. ``forced``
    says that the caller named the ports. ``ration`` is how many bytes of an unfinished frame each stream may keep.
    ``S_NEXT`` of each stream is moved behind what was consumed.
    """
    rows = np.empty((max(64, data.shape[0] // 512), FRAME_COLUMNS), np.int64)
    n = 0
    regs = np.empty(2, np.int64)
    left = np.empty(MAX_DEPTH, np.int64)
    no_rows = np.empty((0, 3), np.int64)
    a = 0
    while a < active.shape[0]:
        slot = active[a, A_STREAM] >> 1
        conn = conns[slot]
        b = a + 1
        if b < active.shape[0] and active[b, A_STREAM] >> 1 == slot:
            b += 1
        group_end = b

        if conn[C_ROLE] == ROLE_UNKNOWN:
            _decide_role(data, pieces, active, a, group_end, conn, streams, facts, final)
            if conn[C_ROLE] == ROLE_UNKNOWN:
                _let_go(active, a, group_end, pieces, streams)
        elif conn[C_FIRST_ID] < 0 and conn[C_TOLD] == 0 and conn[C_SASL] == 0:
            _not_readable(conn, active, a, group_end, data, pieces, streams)

        if conn[C_ROLE] == ROLE_ENCRYPTED and conn[C_TOLD] == 0:
            conn[C_TOLD] = 1
            client = conn[C_CLIENT]
            if client < 0:
                client = 0 if conn[C_A_PORT] >= conn[C_B_PORT] else 1
            broker_port = conn[C_B_PORT] if client == 0 else conn[C_A_PORT]
            if forced or broker_port != HTTPS:
                first = active[a, A_FIRST]
                time = pieces[first, P_TIME] if first < active[a, A_END] else now
                direction = 0 if (active[a, A_STREAM] & 1) == client else 1
                rows = _mark(rows, n, slot, direction, client, time, 0, ST_ENCRYPTED, 0)
                n += 1
        if conn[C_ROLE] != ROLE_A_REQUESTS and conn[C_ROLE] != ROLE_B_REQUESTS:
            a = group_end
            continue

        client_side = 0 if conn[C_ROLE] == ROLE_A_REQUESTS else 1
        request_blocked = False
        for direction in range(2):
            wanted_stream = slot * 2 + (client_side if direction == 0 else 1 - client_side)
            x = -1
            for y in range(a, group_end):
                if active[y, A_STREAM] == wanted_stream:
                    x = y
            if x < 0:
                continue
            if direction == 0 and active[x, A_WAITING] == 1:
                request_blocked = True
            stream = wanted_stream
            p = active[x, A_FIRST]
            p_end = active[x, A_END]
            over = final or conn[C_CLOSED] == 1
            stopped = False
            while p < p_end and not stopped:
                if pieces[p, P_OFF] < 0:
                    p += 1
                    continue
                # A run: pieces that touch.
                q = p + 1
                run_pos = pieces[p, P_POS]
                run_off = pieces[p, P_OFF]
                run_end = run_pos + pieces[p, P_LEN]
                while q < p_end and pieces[q, P_OFF] >= 0 and pieces[q, P_POS] == run_end:
                    run_end += pieces[q, P_LEN]
                    q += 1
                gap_follows = q < p_end
                ended = streams[stream, S_END]
                ends_here = gap_follows or (active[x, A_WAITING] == 0 and (over or (ended >= 0 and run_end >= ended)))
                pos = streams[stream, S_NEXT]
                if pos < run_pos:
                    # The boundary, if it was known, is among what is missing.
                    streams[stream, S_SKIPPED] = max(int64(0), streams[stream, S_SKIPPED]) + run_pos - pos
                    streams[stream, S_SYNC] = 0
                    pos = run_pos
                shift = run_off - run_pos  # position -> offset in data
                end_off = run_end + shift
                at_piece = p

                while pos < run_end:
                    at = pos + shift
                    while pieces[at_piece, P_POS] + pieces[at_piece, P_LEN] <= pos:
                        at_piece += 1

                    if streams[stream, S_SYNC] != 1:
                        answer, probe, at_piece = _search(
                            data, pieces, at_piece, pos, run_end, shift, direction, conn, waiting, facts
                        )
                        streams[stream, S_SKIPPED] = max(int64(0), streams[stream, S_SKIPPED]) + probe - pos
                        pos = probe
                        if answer != YES:
                            if answer == NEED_MORE and ends_here:
                                streams[stream, S_SKIPPED] += run_end - pos
                                pos = run_end
                            break
                        streams[stream, S_SYNC] = 1
                        skipped = streams[stream, S_SKIPPED]
                        if skipped > 0:
                            time = pieces[at_piece, P_TIME]
                            rows = _mark(rows, n, slot, direction, client_side, time, skipped, ST_GAP, WHY_SKIPPED)
                            n += 1
                        streams[stream, S_SKIPPED] = 0
                        continue

                    # A frame begins here.
                    available = run_end - pos
                    token = False
                    if direction == 0:
                        if conn[C_SASL] == 1 and available >= 4:
                            answer = plausible_request(data, at, end_off, facts)
                            if answer == YES:
                                conn[C_SASL] = 0
                            elif answer == NEED_MORE and not ends_here:
                                break
                            else:
                                token = True
                    else:
                        head = conn[C_PENDING_HEAD]
                        token = head >= 0 and waiting[head, W_API] == SASL_TOKEN
                        if token and available >= 8:
                            # A token is not always answered: is this already the response to a later request?
                            row, before = _find_waiting(
                                waiting, head, int32(data, at + 4), pieces[at_piece, P_TIME] + DISORDER
                            )
                            token = row < 0
                    size = int64(-1)
                    if available >= 4:
                        size = int32(data, at)
                        least = 0 if token else (8 if direction == 0 else 4)
                        most = LARGEST_TOKEN if token else LARGEST_FRAME
                        if size < least or size > most:
                            time = pieces[at_piece, P_TIME]
                            rows = _mark(rows, n, slot, direction, client_side, time, size, ST_MALFORMED, WHY_SIZE)
                            n += 1
                            streams[stream, S_SYNC] = 0
                            streams[stream, S_SKIPPED] = 4
                            pos += 4
                            continue
                    whole = available >= 4 and available - 4 >= size
                    too_large = not whole and available > ration
                    if not whole and not ends_here and not too_large:
                        break

                    # What of it is there, and when its last byte was captured.
                    seen = size if whole else max(int64(0), available - 4)
                    last_pos = pos + 4 + size if available >= 4 else run_end
                    last = at_piece
                    while last + 1 < p_end and pieces[last, P_POS] + pieces[last, P_LEN] < last_pos:
                        last += 1
                    if pieces[last, P_POS] >= last_pos and last > at_piece:
                        last -= 1  # that one is behind the gap that has the frame's last byte
                    time = pieces[last, P_TIME]
                    start = at + 4
                    api = int64(ABSENT)
                    version = int64(ABSENT)
                    number = int64(ABSENT)
                    client = int64(-1)
                    latency = int64(ABSENT)
                    status = ST_OK
                    why = 0
                    detail = int64(0)
                    if direction == 0:
                        if token:
                            status = ST_SASL
                            if whole:
                                if free[0] < 0 and free[1] == waiting.shape[0]:
                                    waiting = _grown(waiting)
                                _wait_for(conn, waiting, free, 0, SASL_TOKEN, 0, -1, time)
                        else:
                            if seen >= 4:
                                api = int16(data, start)
                                version = int16(data, start + 2)
                            if seen >= 8:
                                number = int32(data, start + 4)
                            bare = api == CONTROLLED_SHUTDOWN and version == 0
                            readable = seen >= 8
                            if readable and not bare:
                                if size < 10:
                                    readable = False
                                    status = ST_MALFORMED
                                    why = WHY_SHORT
                                    detail = size
                                elif seen >= 10:
                                    length = int16(data, start + 8)
                                    if length < -1 or 10 + length > size:
                                        readable = False
                                        status = ST_MALFORMED
                                        why = WHY_CLIENT_ID
                                        detail = length
                                    elif length >= 0 and 10 + length <= seen:
                                        # A connection has one client_id, nearly always.
                                        client = conn[C_LAST_CLIENT]
                                        if (
                                            client < 0
                                            or names[client, 1] != length
                                            or not _same(data, start + 10, pool, names[client, 0], length)
                                        ):
                                            client, pool, names, name_table = _intern(
                                                data, start + 10, length, pool, names, name_table, names_used
                                            )
                                            conn[C_LAST_CLIENT] = client
                            if readable:
                                if conn[C_FIRST_ID] < 0:
                                    conn[C_FIRST_ID] = max(int64(0), number)
                                if status == ST_OK:
                                    if api < 0 or api >= facts.shape[0] or facts[api, FACT_LATEST] < 0:
                                        status = ST_UNSUPPORTED
                                        why = WHY_API
                                        detail = api
                                    elif version < 0 or version > facts[api, FACT_LATEST]:
                                        status = ST_UNSUPPORTED
                                        why = WHY_VERSION
                                        detail = version
                                answered = True
                                if api == PRODUCE and 0 <= version < acks_starts.shape[0] and acks_starts[version] >= 0:
                                    _emitted, problem, _where, _pc = interpret(
                                        data,
                                        start,
                                        start + seen,
                                        acks_code,
                                        acks_starts[version],
                                        regs,
                                        left,
                                        no_rows,
                                        0,
                                        0,
                                    )
                                    answered = problem != 0 or regs[0] != 0
                                if answered:
                                    if free[0] < 0 and free[1] == waiting.shape[0]:
                                        waiting = _grown(waiting)
                                    _wait_for(conn, waiting, free, number, api, version, client, time)
                                if api == SASL_HANDSHAKE and version == 0:
                                    conn[C_SASL] = 1
                    elif token:
                        status = ST_SASL
                        latency = time - waiting[conn[C_PENDING_HEAD], W_TIME]
                        _forget(conn, waiting, free, 1)
                    elif seen >= 4:
                        number = int32(data, start)
                        row, before = _find_waiting(waiting, conn[C_PENDING_HEAD], number, time + DISORDER)
                        if row < 0 and number == 0:
                            head = conn[C_PENDING_HEAD]
                            if head >= 0 and waiting[head, W_API] == FIND_COORDINATOR and waiting[head, W_VERSION] == 0:
                                row = head
                                before = 0
                        if row < 0:
                            if not over and (request_blocked or time > now - DISORDER):
                                stopped = True
                                break
                            status = ST_UNPAIRED
                            why = WHY_UNPAIRED
                        else:
                            api = waiting[row, W_API]
                            version = waiting[row, W_VERSION]
                            client = waiting[row, W_CLIENT]
                            latency = time - waiting[row, W_TIME]
                            _forget(conn, waiting, free, before + 1)
                            if api < 0 or api >= facts.shape[0] or facts[api, FACT_LATEST] < 0:
                                status = ST_UNSUPPORTED
                                why = WHY_API
                                detail = api
                            elif version < 0 or (version > facts[api, FACT_LATEST] and api != API_VERSIONS):
                                status = ST_UNSUPPORTED
                                why = WHY_VERSION
                                detail = version
                    if not whole and status != ST_MALFORMED:
                        status = ST_GAP if gap_follows else ST_CUT_OFF
                        why = WHY_HOLE if gap_follows else WHY_END
                        if too_large and not ends_here:
                            why = WHY_LARGE
                        detail = available
                    if n == rows.shape[0]:
                        rows = _grown(rows)
                    rows[n, F_SLOT] = slot
                    rows[n, F_RESPONSE] = direction
                    rows[n, F_CLIENT_SIDE] = client_side
                    rows[n, F_TIME] = time
                    rows[n, F_OFF] = start
                    rows[n, F_SEEN] = seen
                    rows[n, F_SIZE] = max(int64(0), size)
                    rows[n, F_API] = api
                    rows[n, F_VERSION] = version
                    rows[n, F_ID] = number
                    rows[n, F_CLIENT] = client
                    rows[n, F_LATENCY] = latency
                    rows[n, F_STATUS] = status
                    rows[n, F_WHY] = why
                    rows[n, F_DETAIL] = detail
                    n += 1
                    if whole:
                        pos += 4 + size
                    elif available >= 4:
                        pos += 4 + size  # in the gap or behind it: the next frame begins there
                    else:
                        pos = run_end
                        streams[stream, S_SYNC] = 0
                streams[stream, S_NEXT] = max(streams[stream, S_NEXT], pos)
                if not ends_here:
                    break
                p = q
            skipped = streams[stream, S_SKIPPED]
            if over and skipped > 0 and streams[stream, S_SYNC] != 1:
                # No frame was found any more in what was skipped.
                time = pieces[p_end - 1, P_TIME] if p_end > active[x, A_FIRST] else now
                rows = _mark(rows, n, slot, direction, client_side, time, skipped, ST_GAP, WHY_SKIPPED)
                n += 1
                streams[stream, S_SKIPPED] = 0
        a = group_end
    return rows[:n].copy(), waiting, pool, names, name_table
