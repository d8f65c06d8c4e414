"""Frames that may be values of records: what shows that a frame which was searched after a hole is none.

Strategy: what a value cannot choose is how TCP carried the frame around it. So the two directions of a connection are
held against each other, by the packets that brought their pieces. See docs/design/2026-11-26-proof-by-turns.md.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.directions import READ, WAITS, Capture, Scratch, piece_with_end
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.judging import FITS, NOT_KNOWN, SO_FAR, TRAILS, UNFIT, acks_of, fits_all, fits_nearly
from kwire.kernels.layouts import ABSENT, AT_THE_END
from kwire.kernels.names import same_bytes
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.pairing import drop, find
from kwire.kernels.roles import (
    LARGEST_FRAME,
    NEAR,
    NEED_MORE,
    NEVER,
    NO,
    YES,
    Apis,
    Window,
    plausible_request,
    run_of,
)
from kwire.kernels.streams import first_from
from kwire.kernels.turns import (
    HELD_FOR,
    HELD_PIECES,
    HOLED,
    LEAST_AROUND,
    MOST_FOLLOWING,
    MOST_HELD,
    TAGGED_FETCH,
    TORN,
    held_for_proof,
    leads_in_turn,
    next_answer,
)
from kwire.schema.keys import ApiKey

__all__ = [
    "ENOUGH_ANSWERS",
    "HOLED",
    "LARGEST_BATCH",
    "OR_AROUND",
    "TORN",
    "certainty",
    "confirm",
    "doubt_of",
    "has_false_size",
    "is_doubted",
    "is_torn",
    "note_versions",
    "torn_ends_here",
]

LARGEST_BATCH: Final = 1_048_588
"""Bytes that frames in doubt follow one another, at most: the default of Kafka's ``max.message.bytes``. A value is not
larger than the batch that it is in."""
ENOUGH_ANSWERS: Final = 16
"""Answers in doubt that follow one another, after which there is none. A client whose response holds records has not
sent so many requests before it has that."""
OR_AROUND: Final = 2
"""``Waiting.doubted`` of a Produce request of an old version which may be the end of one that has its id. What answers
it answers one of them, and both have the same version: no other has a response of this layout."""
FETCHES_NEW: Final = 1
"""``Connection.spoken``: it has sent a Fetch request whose response has tagged fields behind its last records,"""
FETCHES_OLD: Final = 2
"""one without,"""
PRODUCES_OLD: Final = 4
"""a Produce request with message sets, which end with a value,"""
BATCHES: Final = 8
"""and something that came with Kafka 0.11 or later. Then its Produce requests have batches: behind the value of a
record stands how many headers there are."""
MOST_AHEAD: Final = 16
"""Frames behind one in doubt that are tried whether one of them is certain."""
MOST_ASKED: Final = 64
"""Requests that wait, of which it is looked whether one asks for records."""
PERHAPS: Final = 3
"""Besides YES, NO and NEED_MORE."""
SO_GOOD: Final = 4
"""YES, if what follows does not speak against it."""
BEFORE_ALL: Final = -(1 << 62)
"""Less than the number of any packet. Those of pieces that an earlier file left have negative numbers."""
SHORTEST_REQUEST: Final = 14
"""Bytes of a request, its size included."""

Array = Any


@kernel
def _said_by(api: int, version: int) -> int:
    """What a request says of its client, as flags of ``Connection.spoken``."""
    if api == ApiKey.PRODUCE:
        return int64(PRODUCES_OLD) if version < 3 else int64(BATCHES)
    if api == ApiKey.FETCH:
        said = int64(FETCHES_OLD) if version < TAGGED_FETCH else int64(FETCHES_NEW)
        return said | (BATCHES if version >= 4 else 0)
    newer = api > ApiKey.DELETE_RECORDS or (api == ApiKey.METADATA and version >= 5)
    return int64(BATCHES) if newer else int64(0)


@kernel
def note_versions(conn: Any, api: int, version: int, certain: bool) -> None:
    """Notes what a request says of its client (``Connection.spoken``). One in doubt speaks against it only."""
    said = _said_by(api, version)
    if not certain:
        said &= FETCHES_OLD | PRODUCES_OLD
    if said & ~conn.spoken != 0:
        conn.spoken |= said


@inlined
def _gets_records(api: int) -> bool:
    """Whether responses of this API may have records."""
    gets: bool = api == ApiKey.FETCH or api == ApiKey.SHARE_FETCH or api == ApiKey.FETCH_SNAPSHOT
    return gets


@inlined
def _in_doubt(stream: Any) -> bool:
    """Whether something has yet to confirm that a frame begins where one is read."""
    doubted: bool = stream.certain == 0 or stream.certain == TORN
    return doubted


@kernel
def _asks_for_records(conn: Any, waiting: Array, table: Apis, until: int) -> bool:
    """Whether a request that waits, of those that end up to position ``until``, may be answered with records. Bytes of
    one may be wrong, if its version is not known. Or so many wait that it is not looked."""
    row = conn.waiting_head
    count = int64(0)
    while row >= 0:
        api = waiting[row].api
        asks = _gets_records(api)
        if api >= 0:
            asks = asks or api >= table.apis.shape[0] or waiting[row].version > table.apis[api].latest
        if (asks and waiting[row].end <= until) or count == MOST_ASKED:
            return True
        row = waiting[row].next
        count += 1
    return conn.given_up > 0


@kernel
def _follows(window: Window, capture: Capture, reader: Any, row: int, end: int) -> int:
    """Whether a direction goes on at position ``end``, with piece ``row``, or ends there: YES, NO or NEED_MORE."""
    stream = capture.streams[reader.stream]
    if row < reader.seen:
        return int64(YES) if window.pieces[row].pos == end else int64(NO)
    if stream.end >= 0 and stream.end_order <= reader.now:
        return int64(YES) if stream.end == end else int64(NO)
    if reader.over == 0:
        return int64(NEED_MORE)
    # Only when all has been captured, what was acknowledged does not depend on windows.
    return int64(YES) if window.final and reader.now == AT_THE_END and 0 <= stream.acked <= end else int64(NO)


@kernel
def has_false_size(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, end: int) -> int:
    """Whether the size of the frame from the current position to ``end``, where one does begin, is not that of its
    body: UNFIT or TRAILS, else FITS. Then it may end within a value, of its own or of another frame."""
    at = reader.pos + reader.shift
    stop = min(end, reader.run_end) + reader.shift
    if stop - at < 8:
        return FITS
    api, version = int64(-1), int64(-1)
    if reader.response == 0:
        api, version = int64(i16(window.data, at + 4)), int64(i16(window.data, at + 6))
    else:
        conn, waiting = capture.connections[reader.slot], capture.waiting
        row = find(conn, waiting, capture.ids, capture.room[0], int64(i32(window.data, at + 4)), int64(NEVER))
        if row >= 0:
            api, version = int64(waiting[row].api), int64(waiting[row].version)
    said = fits_nearly(window.data, at, stop, int64(reader.response), api, version, table, scratch)
    return said if said in (UNFIT, TRAILS) else int64(FITS)


@kernel
def _leads_to(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, border: int) -> bool:
    """Whether frames follow one another from the current position to position ``border``, without a hole, each as its
    layout says where that is known."""
    conn = capture.connections[reader.slot]
    waiting = capture.waiting
    pos = int64(reader.pos)
    count = 0
    while pos < border and pos + 8 <= reader.run_end and count < HELD_PIECES:
        at = pos + reader.shift
        size = i32(window.data, at)
        if size < 4 or size > LARGEST_FRAME or pos + 4 + size > reader.run_end:
            return False
        row = find(conn, waiting, capture.ids, capture.room[0], int64(i32(window.data, at + 4)), int64(NEVER))
        api, version = (int64(waiting[row].api), int64(waiting[row].version)) if row >= 0 else (int64(-1), int64(-1))
        stop = at + 4 + size
        if fits_all(window.data, at, stop, int64(1), api, version, table, scratch) not in (FITS, NOT_KNOWN):
            return False
        pos += 4 + size
        count += 1
    leads: bool = pos == border and border <= reader.run_end
    return leads


@kernel
def certainty(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, asked: Any) -> int:
    """How certain it is that a frame begins at the current position, where one was searched: what ``Stream.certain``
    becomes; -1 where a response waits for what tells it.

    It may be a value of a record of another frame. It is none where no frame around it has room behind the last one
    that was certain. No response is one where no request that waits asks for records. One that does may be missing: not
    where the request behind it is there, nor where the broker had received no more requests than these.
    """
    stream = capture.streams[reader.stream]
    if 0 < stream.certain < HOLED and stream.skipped < LEAST_AROUND:
        return int64(2) if reader.response == 0 else stream.certain
    requests = capture.streams[asked.stream]
    conn = capture.connections[reader.slot]
    if reader.response == 1 and conn.spoken & (FETCHES_NEW | FETCHES_OLD) == FETCHES_NEW:
        # No value is the end of a response, so what leads up to a certain one without a hole is none.
        border = int64(stream.proven)
        if border <= reader.pos and stream.end_order <= reader.now:
            border = int64(stream.end)
        if border > reader.pos and _leads_to(window, capture, table, scratch, reader, border):
            return int64(2)
    if reader.response == 0:
        return int64(0)
    if stream.certain == 0 or (reader.pos < stream.proven and requests.searched >= 0):
        # Before the answer that is proven, requests that are missing may have theirs.
        return held_for_proof(window, capture, table, scratch, reader, asked)
    piece = window.pieces[reader.piece]
    wanted = int64(i32(window.data, reader.pos + reader.shift + 4))
    row = find(conn, capture.waiting, capture.ids, capture.room[0], wanted, int64(NEVER))
    if row >= 0 and 0 <= piece.ack < capture.waiting[row].end:
        return int64(0)  # the broker had not received the request that this would answer
    if 0 <= piece.ack <= requests.sure and not _asks_for_records(conn, capture.waiting, table, piece.ack):
        return int64(1)  # the broker had received no other requests
    if (
        requests.certain not in (1, HOLED, TORN)
        or requests.synced != 1
        or _asks_for_records(conn, capture.waiting, table, int64(NEVER))
    ):
        return held_for_proof(window, capture, table, scratch, reader, asked)
    if requests.began >= piece.packet:
        return int64(1)
    answer = _follows(window, capture, asked, asked.seen, requests.next)
    if answer == NEED_MORE:
        reader.wake = first_from(window.clock, window.first_order, piece.clock + HELD_FOR)
        if reader.wake > reader.now and window.pieces[reader.seen - 1].pos - reader.pos < MOST_HELD:
            return int64(-1)
    return int64(1) if answer == YES else int64(0)


@inlined
def doubt_of(stream: Any, row: Any, end: int) -> int:
    """``Waiting.doubted`` of the request in ``row``, which ends at position ``end``."""
    if stream.certain != 0:
        return int64(0)
    # See ``confirm``: what follows is certain, for whatever ends here.
    around = stream.proven == end and row.api == ApiKey.PRODUCE and row.version < 3
    return int64(OR_AROUND if around else 1)


@inlined
def is_doubted(stream: Any, other: Any, answers: Any) -> bool:
    """Whether a request is in doubt, or what answers it, which ``other`` reads, may be."""
    if _in_doubt(stream):
        return True
    # Whether the beginning of answers that nobody has seen is known depends on windows. So does which pieces of those
    # that were skipped are still there.
    seen = answers.certain > 0 or answers.skipped > 0 or other.seen > other.first
    lost = _in_doubt(answers) or (answers.synced == 0 and seen)
    doubted: bool = lost and answers.proven < 0
    return doubted


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
def _has_jump(pieces: Array, first: int, row: int, begin: int) -> bool:
    """Whether bytes are missing between position ``begin``, in piece ``first`` or before it, and piece ``row``."""
    if pieces[first].pos > begin:
        return True
    for p in range(first, row):  # noqa: SIM110
        if pieces[p].pos + pieces[p].len != pieces[p + 1].pos:
            return True
    return False


@kernel
def _waits_for_records(conn: Any, waiting: Array, until: int) -> bool:
    """Whether a request for records waits, of those that end up to position ``until``, none behind it being answered.
    Its response may be under way, and have any answer as a value."""
    row = conn.waiting_tail
    count = int64(0)
    while row >= 0 and count < MOST_ASKED:
        if _gets_records(waiting[row].api) and waiting[row].end <= until and waiting[row].overtaken == 0:
            return True
        row = waiting[row].prev
        count += 1
    return False


@kernel
def _is_under_way(window: Window, capture: Capture, first: int, row: int, conn: Any, number: int) -> bool:
    """Whether a piece of the answers, from row ``first`` on, begins with one which goes on after the beginning of piece
    ``row``: the answer to a request that waits, or to one that may be missing before that with id ``number``."""
    pieces = window.pieces
    for p in range(first, row):
        at = pieces[p].off
        if at < 0 or pieces[p].len < 8 or not 4 <= pieces[p].head <= LARGEST_FRAME:
            continue
        if pieces[p].pos + 4 + pieces[p].head > pieces[row].pos:
            wanted = int64(i32(window.data, at + 4))
            if (wanted >= 0 and 0 < number - wanted <= NEAR) or find(
                conn, capture.waiting, capture.ids, capture.room[0], wanted, int64(NEVER)
            ) >= 0:
                return True
    return False


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
    count = int64(0)
    while begin + 4 <= end and count < HELD_PIECES:
        count += 1
        size = i32(window.data, begin + shift)
        if size < 0 or size > LARGEST_FRAME:  # a token of SASL may have no bytes
            return False
        begin += 4 + size
    return begin == end


@kernel
def _answer_each(
    window: Window,
    table: Apis,
    scratch: Scratch,
    at: int,
    stop: int,
    begin: int,
    end: int,
) -> int:
    """Whether ``begin`` to ``end`` are the answers, each to its last byte, to the requests in ``at`` to ``stop``.

    Returns YES, NO, or PERHAPS for one request that may be the end of a frame which it answers.

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
        if fits_all(data, at, stop, int64(0), api, version, table, scratch) != FITS:
            return NO
        silent = False
        if api == ApiKey.PRODUCE:
            acks, behind = acks_of(data, at + 4, at + 4 + size, version, table, scratch)
            silent = behind >= 0 and acks == 0
        if not silent:
            length = i32(data, begin) if end - begin >= 8 else int64(0)
            if length < 4 or length > end - begin - 4 or i32(data, begin + 4) != i32(data, at + 8):
                return NO
            if fits_all(data, begin, end, int64(1), api, version, table, scratch) != FITS:
                return NO
            begin += 4 + length
            answered += 1
        at += 4 + size
    if begin != end or answered == 0:
        return NO
    old = (api == ApiKey.PRODUCE and version < 3) or (api == ApiKey.FETCH and version < 4)
    return int64(PERHAPS) if old and answered == 1 else int64(YES)


@kernel
def _next_asked(window: Window, reader: Any, n: int, asked: int, wanted: int, answer: Any) -> tuple[int, int, int]:
    """Whether a request with the id ``wanted``, behind position ``asked`` in piece ``n``, was captured before the piece
    ``answer``: YES, NO, or PERHAPS where bytes are missing. Also the piece and position behind it."""
    data, pieces = window.data, window.pieces
    while True:
        while n < reader.seen and pieces[n].pos + pieces[n].len <= asked:
            n += 1
        if n >= reader.seen or pieces[n].packet >= answer.packet:
            # Whoever answers says how much had been asked.
            return int64(NO) if 0 <= answer.ack <= asked else int64(PERHAPS), n, asked
        at = pieces[n].off + asked - pieces[n].pos
        if pieces[n].off < 0 or pieces[n].pos > asked or run_of(pieces, n, reader.seen, at + 12)[0] - at < 12:
            return int64(PERHAPS), n, asked
        size = i32(data, at)
        if size < 8 or size > LARGEST_FRAME:
            return int64(PERHAPS), n, asked
        asked += 4 + size
        if i32(data, at + 8) == wanted:
            return int64(YES), n, asked


@kernel
def _goes_on_well(window: Window, scratch: Scratch, reader: Any, n: int, asked: int, m: int, answered: int) -> int:
    """Whether each answer behind position ``answered``, in piece ``m``, was asked for before by a request behind
    position ``asked``, in piece ``n``: YES, NO or NEED_MORE. Where answers are missing, it goes on with the next
    segment that may begin with one. Where requests are, so many are believed as requests of the same size have room,
    and one more.

    Values may happen to look like an exchange. It is rare that those behind them do as well, again and again.
    """
    data, pieces = window.data, window.pieces
    other = scratch.readers[1]
    length = int64(4 + i32(data, reader.pos + reader.shift))
    number = int64(i32(data, reader.pos + reader.shift + 8))
    unseen = int64(0)
    count = 0
    while count < MOST_FOLLOWING:
        count += 1
        m, answered, begin = next_answer(window, other, m, answered, number)
        if begin < 0:
            return int64(NEED_MORE) if m >= other.seen else int64(YES)
        size = i32(data, begin)
        if size < 4 or size > LARGEST_FRAME:
            return int64(NO)
        said, n, asked = _next_asked(window, reader, n, asked, int64(i32(data, begin + 4)), pieces[m])
        if said == NO:
            return int64(NO)
        if said != YES:
            missing = pieces[m].ack - asked
            if missing < 0 or (n < reader.seen and pieces[n].packet < pieces[m].packet):
                return int64(YES)
            unseen += 1
            if unseen > 1 + missing // length:
                return int64(NO)
        answered += 4 + size
    return int64(YES)


@inlined
def _is_alike(data: Array, at: int, following: int, stop: int) -> bool:
    """Whether what stands at ``following`` may be a request of an API or version that is not known: it has the
    client_id of the one at ``at``."""
    length = i16(data, at + 12)
    size = i32(data, following)
    alike: bool = (
        8 <= size <= LARGEST_FRAME
        and stop - following >= SHORTEST_REQUEST + max(int64(0), int64(length))
        and i16(data, following + 12) == length
        and (length < 0 or same_bytes(data, at + 14, data, following + 14, length))
    )
    return alike


@kernel
def _requests_follow(
    window: Window, table: Apis, scratch: Scratch, reader: Any, following: int, m: int, answered: int
) -> int:
    """Whether requests follow one another from position ``following``, up to what the packets with the next answers
    acknowledge, behind position ``answered`` in piece ``m``: YES, NO or NEED_MORE. A hole ends what can be told.

    The last value of a frame around the request at the current position is followed by bytes that are no request. What
    answers that frame acknowledges them.
    """
    data, pieces = window.data, window.pieces
    other = scratch.readers[1]
    at = reader.pos + reader.shift
    number = int64(i32(data, at + 8))
    count = 0
    while count < MOST_FOLLOWING:
        count += 1
        m, answered, begin = next_answer(window, other, m, answered, number)
        if begin < 0:
            return int64(NEED_MORE) if m >= other.seen else int64(YES)
        while following < pieces[m].ack:
            if following + SHORTEST_REQUEST > reader.run_end:
                return int64(YES) if reader.ends_here == 1 else int64(NEED_MORE)
            here, stop = following + reader.shift, reader.run_end + reader.shift
            if plausible_request(data, here, stop, table.apis) == NO and not _is_alike(data, at, here, stop):
                return int64(NO)
            following += 4 + i32(data, here)
        size = i32(data, begin)
        if size < 4 or size > LARGEST_FRAME:
            return int64(YES)
        answered += 4 + size
    return int64(YES)


@kernel
def _exchanged(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any) -> tuple[int, int]:
    """Whether the other direction proves that a request begins at the current position: YES, NO, NEED_MORE, SO_GOOD, or
    PERHAPS where the next one does; and where the first answer, or the next one, begins.

    It does if both ends took turns: whole requests from here on, with nothing of the other direction between them;
    then their answers, each to its last byte, and nothing else; then this direction goes on where it stopped. A value
    cannot do that. While the frame around it is under reader, nothing that comes behind it is answered, and what
    is left of it comes without an answer. See docs/design/2026-11-26-proof-by-turns.md.
    """
    pieces = window.pieces
    other = scratch.readers[1]
    answers = capture.streams[other.stream]
    began = pieces[reader.piece]
    none = int64(-1)
    if began.pos != reader.pos:
        return int64(NO), none
    q = other.piece if other.reading == 1 else other.first
    while q < other.seen and pieces[q].pos + pieces[q].len <= answers.next:
        q += 1
    first = q
    while q < other.seen and pieces[q].packet <= began.packet:
        q += 1
    if q >= other.seen:
        ended = answers.end >= 0 and answers.end_order <= reader.now
        return int64(NO) if reader.over == 1 or ended else int64(NEED_MORE), none
    sure = answers.certain == 1 and answers.synced == 1
    if answers.synced == 1 and not _frames_end_at(window, first, answers.next, q):
        sure = False
        if not _has_jump(pieces, first, q, answers.next):
            return int64(NO), none
    n, asked_end = _turn_end(pieces, reader.piece, reader.seen, pieces[q].packet)
    if n < 0:
        return int64(NO), none
    until = pieces[n].packet if n < reader.seen else int64(NEVER)
    m, answered_end = _turn_end(pieces, q, other.seen, until)
    if m < 0:
        return int64(NO), none
    begin = pieces[q].pos
    conn = capture.connections[reader.slot]
    number = int64(i32(window.data, reader.pos + reader.shift + 8))
    if not sure and _is_under_way(window, capture, first, q, conn, number):
        return int64(NO), none
    # Its response is over where those behind it lead up to the answer.
    waits = not sure and _waits_for_records(conn, capture.waiting, reader.pos)
    certain = capture.streams[reader.stream].certain in (0, 1, 2, HOLED) and conn.disordered == 0
    if waits and not (
        certain and leads_in_turn(window, capture, table, scratch, other, reader, int64(answers.next), begin, False)
    ):
        return int64(NO), none
    follows = _follows(window, capture, reader, n, asked_end)
    if follows == YES and not sure:
        follows = _follows(window, capture, other, m, answered_end)
    if follows != YES:
        return follows, none
    shift = pieces[q].off - begin
    answer = _answer_each(
        window,
        table,
        scratch,
        reader.pos + reader.shift,
        asked_end + reader.shift,
        begin + shift,
        answered_end + shift,
    )
    if answer == PERHAPS and asked_end != reader.pos + 4 + i32(window.data, reader.pos + reader.shift):
        return int64(NO), none
    if (
        waits
        and answer != NO
        and not leads_in_turn(window, capture, table, scratch, other, reader, int64(answers.next), begin, True)
    ):
        return int64(NO), none
    at = reader.pos + reader.shift
    api = i16(window.data, at + 4)
    tokens = api == ApiKey.SASL_HANDSHAKE and i16(window.data, at + 6) == 0
    if answer == PERHAPS and api == ApiKey.FETCH:
        # What has its id begins behind what the client had received when it asked. No frame around it has room there.
        heard = pieces[piece_with_end(window, reader, asked_end)].ack
        answer = int64(YES) if heard >= 0 and 0 <= begin - heard < LEAST_AROUND else answer
    if answer in (YES, PERHAPS) and not sure and not tokens:
        well = _goes_on_well(window, scratch, reader, n, asked_end, m, answered_end)
        if well == NO:
            return int64(NO), none
        if well == NEED_MORE and reader.over == 0 and answer == YES:
            return int64(SO_GOOD), begin
    if (
        answer == YES
        and not tokens
        and _requests_follow(window, table, scratch, reader, asked_end, m, answered_end) == NO
    ):
        return int64(NO), none
    if answer == PERHAPS and api == ApiKey.FETCH:
        # What follows them is certain all the same.
        return answer, answered_end
    return answer, begin


@kernel
def _answer_behind(
    window: Window, capture: Capture, scratch: Scratch, reader: Any, wanted: int, last: int
) -> tuple[int, int, int, bool]:
    """The answer to the request ``wanted`` that was captured behind packet ``last``, of those that were not read yet:
    YES, NO or NEED_MORE; the piece that it begins in, where in the data it does, and whether the answers are known up
    to there. Where they are not, as behind a hole, a segment behind that packet has to begin with one."""
    data, pieces = window.data, window.pieces
    other = scratch.readers[1]
    answers = capture.streams[other.stream]
    none = int64(-1)
    more = int64(NO) if reader.over == 1 else int64(NEED_MORE)
    q = other.piece if other.reading == 1 else other.first
    while q < other.seen and pieces[q].pos + pieces[q].len <= answers.next:
        q += 1
    known = answers.synced == 1
    pos = int64(answers.next) if known else int64(-1)
    count = int64(0)
    while True:
        if pos < 0:
            while q < other.seen and pieces[q].packet <= last:
                q += 1
            pos = int64(pieces[q].pos) if q < other.seen else pos
        if q >= other.seen:
            return more, none, none, known
        if pieces[q].off < 0 or count == HELD_PIECES:
            return int64(NO), none, none, known
        count += 1
        length = int64(-1)
        begin = pieces[q].off + pos - pieces[q].pos
        if pieces[q].pos <= pos:
            there, after = run_of(pieces, q, other.seen, begin + 8)
            if there - begin < 8 and (last == BEFORE_ALL or after >= other.seen):
                return more, none, none, known
            length = i32(data, begin) if there - begin >= 8 else length
        if length < 0 or length > LARGEST_FRAME:
            if last == BEFORE_ALL:
                return int64(NO), none, none, known
            # What begins with the next segment is tried.
            q = q + 1 if pieces[q].pos <= pos else q
            pos = int64(-1)
            known = False
            continue
        if length >= 4 and i32(data, begin + 4) == wanted and pieces[q].packet > last:
            return int64(YES), q, begin, known
        pos += 4 + length
        while q < other.seen and pieces[q].pos + pieces[q].len <= pos:
            q += 1


@kernel
def _acknowledged(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, size: int) -> int:
    """Whether the packet with the answer to the request at the current position shows that this is one: YES, NO,
    NEED_MORE, SO_GOOD, or PERHAPS where the next one is.

    It does if it acknowledges whole requests from here on, and no more, and none of the others has this id. The answer
    to one that follows the frame around this one acknowledges that frame to its end, which is no border of a value.
    """
    data, pieces = window.data, window.pieces
    other = scratch.readers[1]
    at = reader.pos + reader.shift
    wanted = i32(data, at + 8)
    end = reader.pos + 4 + size
    last = pieces[piece_with_end(window, reader, end)].packet
    said, q, begin, framed = _answer_behind(window, capture, scratch, reader, wanted, last)
    if said != YES:
        return said
    known = pieces[q].ack
    if known < end:
        return NO
    stop = reader.run_end + reader.shift
    following = end + reader.shift
    while following - reader.shift < known:
        if plausible_request(data, following, stop, table.apis) != YES or i32(data, following + 8) == wanted:
            return NO
        following += 4 + i32(data, following)
    if following - reader.shift != known:
        return NO
    api, version = int64(i16(data, at + 4)), int64(i16(data, at + 6))
    if fits_all(data, at, stop, int64(0), api, version, table, scratch) != FITS:
        return NO
    there, _ = run_of(pieces, q, other.seen, begin + 4 + i32(data, begin))
    body = fits_all(data, begin, there, int64(1), api, version, table, scratch)
    if body == SO_FAR and not framed:
        return int64(NO) if reader.over == 1 else int64(NEED_MORE)
    if body not in (FITS, SO_FAR):
        return NO
    if api == ApiKey.PRODUCE and version < 3:
        # It may be the end of a frame that it answers.
        return int64(PERHAPS) if known == end else int64(NO)
    if api == ApiKey.SASL_HANDSHAKE and version == 0:
        return int64(YES)
    answered = pieces[q].pos + begin - pieces[q].off + 4 + i32(data, begin)
    well = _requests_follow(window, table, scratch, reader, known, q, answered)
    if well == NEED_MORE:
        well = int64(YES if reader.over == 1 else SO_GOOD)
    return well


@kernel
def is_torn(window: Window, reader: Any, row: Any, end: int) -> bool:
    """Whether the frame at the current position, with a hole, may have records, and its bytes do not follow one another
    up to its end by the sequence numbers of what there is of them. ``row`` tells its API."""
    api = row.api
    if reader.response == 0 and api != ApiKey.PRODUCE and api != ABSENT:
        return False
    if reader.response == 1 and api != ABSENT and not _gets_records(api):
        return False
    pieces = window.pieces
    p = reader.piece
    reached = pieces[p].pos
    while p < reader.seen and pieces[p].pos < end:
        if pieces[p].pos != reached:
            return True
        reached += pieces[p].len
        p += 1
    return reached < end


@kernel
def torn_ends_here(window: Window, capture: Capture, scratch: Scratch, reader: Any) -> int:
    """Whether a request that has records and a hole ends at the current position, by the packet with its answer: YES,
    NO or NEED_MORE. It acknowledges all of the request, so it does if that is no more than what ends here."""
    conn = capture.connections[reader.slot]
    row = conn.waiting_tail
    if row < 0 or capture.waiting[row].doubted != TORN:
        return NO
    wanted = int64(capture.waiting[row].id)
    said, q, _, _ = _answer_behind(window, capture, scratch, reader, wanted, int64(BEFORE_ALL))
    if said != YES:
        return said
    return int64(YES) if window.pieces[q].ack == reader.pos else int64(NO)


@kernel
def _forget_doubted(capture: Capture, conn: Any, number: int) -> None:
    """Forgets the requests in doubt that have an id as large as ``number``, or larger: they would take the answers to
    what follows."""
    row = int64(conn.waiting_tail)
    while row >= 0:
        before = int64(capture.waiting[row].prev)
        if capture.waiting[row].doubted == 1 and capture.waiting[row].id >= number:
            drop(conn, capture.waiting, capture.ids, capture.room[0], row)
        row = before


@kernel
def _all_answers_there(window: Window, capture: Capture, scratch: Scratch, reader: Any) -> int:
    """Whether the answers go on from where they were read up to their FIN, without a hole: YES, NO or NEED_MORE."""
    pieces = window.pieces
    other = scratch.readers[1]
    answers = capture.streams[other.stream]
    first = other.piece if other.reading == 1 else other.first
    while first < other.seen and pieces[first].pos + pieces[first].len <= answers.next:
        first += 1
    end = int64(answers.next)
    if first < other.seen:
        _, end = _turn_end(pieces, first, int64(other.seen), int64(NEVER))
        if pieces[first].pos > answers.next:
            end = int64(-1)
    if end < 0:
        return NO
    if answers.end >= 0 and answers.end_order <= reader.now:
        return int64(YES) if end == answers.end else NO
    return int64(NEED_MORE) if reader.over == 0 else NO


@kernel
def _leads_on(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any) -> int:
    """Whether requests follow one another, from the one at the current position to one which is certain or to the end
    of the stream, without a hole: YES, NO or NEED_MORE. No value is the end of a request, so none of them is one. The
    certain one may say so of its client, those in doubt only the contrary."""
    data = window.data
    stream = capture.streams[reader.stream]
    spoken = int64(capture.connections[reader.slot].spoken)
    began, piece = int64(reader.pos), int64(reader.piece)
    said = int64(NEED_MORE)
    count = 0
    while said == NEED_MORE and count < MOST_AHEAD:
        count += 1
        at = reader.pos + reader.shift
        spoken |= _said_by(int64(i16(data, at + 4)), int64(i16(data, at + 6))) & PRODUCES_OLD
        reader.pos += 4 + i32(data, at)
        if reader.pos == stream.end and stream.end_order <= reader.now:
            said = int64(YES)
        elif reader.pos >= reader.run_end:
            break
        elif plausible_request(data, reader.pos + reader.shift, reader.run_end + reader.shift, table.apis) == NO:
            said = int64(NO)
        else:
            size = i32(data, reader.pos + reader.shift) if reader.run_end - reader.pos >= 4 else int64(LARGEST_FRAME)
            if reader.pos + 4 + size > reader.run_end:
                break
            reader.piece = piece_with_end(window, reader, reader.pos + 1)
            if (
                _acknowledged(window, capture, table, scratch, reader, size) in (YES, SO_GOOD)
                or _exchanged(window, capture, table, scratch, reader)[0] == YES
            ):
                at = reader.pos + reader.shift
                spoken |= _said_by(int64(i16(data, at + 4)), int64(i16(data, at + 6)))
                said = int64(YES)
    ends = reader.ends_here == 1 or count == MOST_AHEAD
    if (said == NEED_MORE and ends) or (said == YES and spoken & (BATCHES | PRODUCES_OLD) != BATCHES):
        said = int64(NO)
    border = int64(reader.pos)
    if said == YES and data[border - 1 + reader.shift] == 0:
        # It may be what follows the value in a frame around: no headers, no tagged fields. So it is where all answers
        # come, and none is to this request.
        there = _all_answers_there(window, capture, scratch, reader)
        if there != NO:
            said = int64(NO if there == YES else NEED_MORE)
    reader.pos, reader.piece = began, piece
    # The last frame in a value may say that it goes on behind that, up to a frame that is certain.
    while said == YES and began < border:
        at = began + reader.shift
        api, version = int64(i16(data, at + 4)), int64(i16(data, at + 6))
        body = fits_all(data, at, reader.run_end + reader.shift, int64(0), api, version, table, scratch)
        said = int64(YES if body in (FITS, NOT_KNOWN) else NO)
        began += 4 + i32(data, at)
    return said


@kernel
def confirm(window: Window, capture: Capture, table: Apis, scratch: Scratch, reader: Any, size: int) -> int:
    """Looks for what confirms the request at the current position, which is in doubt, or its answer: READ when that is
    found or given up, WAITS as long as it may come."""
    pieces = window.pieces
    stream = capture.streams[reader.stream]
    other = scratch.readers[1]
    answers = capture.streams[other.stream]
    conn = capture.connections[reader.slot]
    number = i32(window.data, reader.pos + reader.shift + 8)
    end = reader.pos + 4 + size
    last = pieces[reader.seen - 1]
    held = last.pos + last.len - reader.pos
    count = reader.seen - reader.piece
    first = other.piece if other.reading == 1 else other.first
    while first < other.seen and pieces[first].pos + pieces[first].len <= answers.next:
        first += 1
    if first < other.seen:
        count += other.seen - first
        last = pieces[other.seen - 1]
        held = max(held, last.pos + last.len - max(answers.next, pieces[first].pos))
    reader.wake = first_from(
        window.clock, window.first_order, pieces[piece_with_end(window, reader, end)].clock + HELD_FOR
    )
    too_much = reader.wake <= reader.now or held > MOST_HELD or count > HELD_PIECES
    noted = stream.noted == reader.pos
    pending = False
    known = int64(NO)
    if stream.certain == TORN:
        known = torn_ends_here(window, capture, scratch, reader)
        if known == YES:
            stream.certain = 1
    if _in_doubt(stream) or noted:
        before = known
        known = _acknowledged(window, capture, table, scratch, reader, size)
        if known == SO_GOOD:
            # What follows may still speak against it.
            pending = not too_much
            known = int64(YES)
        if known == YES:
            if _in_doubt(stream):
                # What was asked before it has been answered, with what is certain to be answers.
                stream.certain = 1 if not _in_doubt(answers) and answers.synced == 1 else 2
                _forget_doubted(capture, conn, number)
            stream.noted = reader.pos
        elif noted:
            stream.certain = 0
            stream.searched = reader.pos
            stream.answered = 0
            stream.noted = -1
            stream.alone = 0
        if known == PERHAPS:
            stream.proven = end
        elif known == NO and before == NEED_MORE:
            known = before
    said, begin = int64(NO), int64(-1)
    if stream.noted != reader.pos or stream.alone == 0:
        said, begin = _exchanged(window, capture, table, scratch, reader)
    # Nothing leads to what is certain where no answer is there, nor the end. As long as one may come, it waits anyway.
    ended = stream.end >= 0 and stream.end_order <= reader.now
    may_lead = first < other.seen or ended or (reader.over == 1 and not too_much)
    leads = int64(NO)
    if may_lead and _in_doubt(stream) and conn.spoken & PRODUCES_OLD == 0 and YES not in (known, said):
        leads = _leads_on(window, capture, table, scratch, reader)
        if leads == YES:
            known = int64(YES)
            stream.certain = 2
            _forget_doubted(capture, conn, number)
    if said == YES or (said == SO_GOOD and too_much):
        if _in_doubt(stream):
            _forget_doubted(capture, conn, number)
        stream.certain = 1
        stream.noted = -1
        answers.proven = begin
        return READ
    if said == PERHAPS:
        stream.noted = -1
        stream.proven = end if _in_doubt(stream) else stream.proven
        answers.proven = begin
        return READ
    if too_much or (NEED_MORE not in (known, leads) and (said == NO or not is_doubted(stream, other, answers))):
        if not pending:
            stream.noted = -1
            stream.alone = 0
            return READ
        # It waits for what follows alone: no other rule is to look at it with more packets than it had now.
        stream.alone = 1
    reader.unsure = 1
    return WAITS
