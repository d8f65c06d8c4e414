"""The record types of the kernels' tables, and the words that their numbers stand for.

A table is a one-dimensional numpy array of one of these types. A kernel reads and writes ``conn.role`` or
``frames[n].status``. Python that works on whole columns uses ``frames["status"]``. Nobody knows a column by its number.

A connection is a row of the table of connections, its slot. Its two directions are rows 2 * slot and 2 * slot + 1 of
the table of streams. The first is A to B, where A is the end that sent the first packet seen. A position counts the
bytes of one direction. Times are nanoseconds since 1970, or ``NO_TIME``. An ``order`` is the number of a packet,
counted over the whole capture: it says when the capture had something.

Rules kept here:

- Every field is a signed integer, of 64 bits, a ``Half`` or a ``Short``. numba turns a mixture of signed and unsigned
  numbers into floating point. What numpy computes of a ``Short`` has 16 bits as well. What is handed to another kernel
  is an ``int64``, or numba compiles that kernel once more.
- A class lists its fields as annotations, the text below one is what it means. ``table_type`` makes the dtype of it.
- A row that a kernel holds (``conn = conns[slot]``) is a view. It is stale as soon as its table was replaced by a
  larger one. Take it again after anything that may grow the table.
- Copying whole rows is slow, in machine code and in numpy: kernels copy fields, Python uses ``moved``, ``joined`` and
  ``take``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from enum import IntEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

__all__ = [
    "ABSENT",
    "ACKNOWLEDGED",
    "ACTIVE",
    "AT_THE_END",
    "BATCH",
    "CONNECTION",
    "FINDER",
    "FOLLOWS",
    "FORM",
    "FRAME",
    "HEADER",
    "HEADER_CURSOR",
    "INTERFACE",
    "KNOWN_API",
    "LEADS",
    "NAME",
    "NAMES_USED",
    "NOT_ENTERED",
    "NO_TIME",
    "PACKET",
    "PACKETS_BEFORE",
    "PIECE",
    "PROBLEM",
    "READING",
    "ROOM",
    "SEGMENT",
    "STREAM",
    "WAITING",
    "Active",
    "Batch",
    "Connection",
    "Finder",
    "Form",
    "Frame",
    "Header",
    "HeaderCursor",
    "Interface",
    "KnownApi",
    "Name",
    "NamesUsed",
    "Packet",
    "Piece",
    "Problem",
    "ProblemCode",
    "Reading",
    "Reason",
    "Role",
    "Room",
    "Row",
    "Segment",
    "Status",
    "Stream",
    "Waiting",
    "joined",
    "moved",
    "table_type",
]

ABSENT: Final = -(1 << 62)
"""In a field of a table: no value."""

NO_TIME: Final = -(1 << 63)
"""In place of a time that the capture does not state. It is earlier than any: what asks for the latest time passes over
it, and nothing may be computed with it."""

AT_THE_END: Final = 1 << 62
"""The order of what is reported when the capture has ended."""

PACKETS_BEFORE: Final = 1 << 48
"""What numbers of packets of an earlier capture are less by: so they keep their order, before all of this one."""

ACKNOWLEDGED: Final = -2
"""In place of where the bytes of a segment stand: it has none, and says what was acknowledged."""

Array = Any
"""A numpy array: numba, not mypy, checks what is in it."""

if TYPE_CHECKING:

    class Row:
        """A row of a table: its fields are attributes."""

else:
    Row = np.void

Short = int
"""The type of a field that holds small numbers, of which there are many: 16 bits."""

Half = int
"""The type of a field of which there are many, and whose numbers have 32 bits. All others have 64."""

Wide = int
"""The type of a field whose numbers may be any of 64 bits, as times, offsets and hashes are. Where kernels run as
Python, all other fields are Python's ints, which are fast. These wrap around like machine code, as ``numpy.int64``."""

NOT_ENTERED: Final = 0
"""``Waiting.entered`` of a request that is not in the hash table,"""
LEADS: Final = 1
"""of the first one with its correlation id,"""
FOLLOWS: Final = 2
"""and of those that follow it."""

_TYPES: Final = {"Short": np.int16, "Half": np.int32}


def _field(name: str, wide: bool) -> Any:
    def number(row: Any) -> int:
        value: int = row[name].item()
        return value

    def assign(row: Any, value: Any) -> None:
        row[name] = value

    return property(itemgetter(name) if wide else number, assign)


def table_type(row: type) -> Any:
    """The dtype of a table whose rows have the fields that ``row``, a subclass of ``Row``, is annotated with.

    The rows of such a table are ``row`` objects, whose fields are attributes: so the kernels run as Python too.
    """
    kinds = {name: _TYPES.get(kind, np.int64) for name, kind in row.__annotations__.items()}
    for name, kind in row.__annotations__.items():
        setattr(row, name, _field(name, kind == "Wide"))
    return np.dtype((row, list(kinds.items())))


def moved(source: Any, target: Any) -> None:
    """Copies the rows of a table to the beginning of another of its type.

    numpy copies rows field by field, which takes 15 times as long: here they are lumps of bytes.
    """
    if len(source):
        lump = _lump(source.dtype.itemsize)
        target.view(lump)[: len(source)] = source.view(lump)


@functools.cache
def _lump(size: int) -> Any:
    """The dtype of so many bytes."""
    return np.dtype((np.void, size))


def joined(tables: Sequence[Any]) -> Any:
    """One table with the rows of several of the same type: ``numpy.concatenate`` would forget the row class."""
    made = np.empty(sum(map(len, tables)), tables[0].dtype)
    at = 0
    for one in tables:
        moved(one, made[at:])
        at += len(one)
    return made


def taken(table: Any, rows: Any) -> Any:
    """A table of some rows of another."""
    lump = _lump(table.dtype.itemsize)
    made = np.empty(len(rows), table.dtype)
    made.view(lump)[:] = np.ascontiguousarray(table).view(lump)[rows]
    return made


class Role(IntEnum):
    """What a connection is."""

    UNKNOWN = 0
    A_REQUESTS = 1
    B_REQUESTS = 2
    OTHER = 3
    """Not Kafka, or not one of the ports asked for: its segments are dropped as soon as they are seen."""
    ENCRYPTED = 4


class Status(IntEnum):
    """What became of a frame. The tables show the name in lower case; ``kwire.tables.frames`` says what each means."""

    OK = 0
    UNPAIRED = 1
    MALFORMED = 2
    UNSUPPORTED = 3
    CUT_OFF = 4
    GAP = 5
    ENCRYPTED = 6
    SASL = 7
    TOO_LARGE = 8
    TRAILING = 9
    """Set by ``Frames.statuses``. In the table of frames such a frame is ``OK``, and so is one whose body alone is
    ``MALFORMED``."""
    UNCONFIRMED = 10
    """It may be a part of another frame: see ``Stream.certain``."""


class Reason(IntEnum):
    """What is wrong with a frame: ``kwire.capture.frames`` has the sentences, ``Frame.detail`` the number in them."""

    NONE = 0
    SIZE = 1
    CLIENT_ID = 2
    END = 3
    HOLE = 4
    SKIPPED = 5
    UNPAIRED = 6
    API = 7
    VERSION = 8
    SHORT = 9
    LARGE = 10
    GIVEN_UP = 11
    TRAILING = 12
    BODY = 13
    NO_FRAME = 14
    NO_HEADER = 15
    UNCONFIRMED = 16
    ASKED_UNCONFIRMED = 17
    # Of encrypted connections, where there is a key log.
    NO_KEY = 40
    WRONG_KEY = 41
    NO_HANDSHAKE = 42
    NOT_TLS = 43
    TLS_VERSION = 44
    TLS_SUITE = 45
    TLS_COMPRESSED = 46


class Packet(Row):
    """A packet in a window of capture bytes."""

    off: int
    captured: int
    """Bytes of it that the capture has."""
    size: int
    """Bytes that it had on the wire, as the capture says."""
    time: Wide
    link: int
    """Link type, a number of the registry of tcpdump.org."""


class Interface(Row):
    """An interface of a pcapng section."""

    link: int
    snaplen: int
    resolution: Wide
    """Unit of timestamps. n for 10**-n s up to n = 9, FINE_UNITS + n for smaller ones. BINARY_UNITS + n for 2**-n s."""
    offset: Wide
    """Seconds to add to each timestamp."""


class Connection(Row):
    """A TCP connection. A and B are its ends; A sent the first packet that was seen."""

    number: int
    """Its number in the tables: connections are numbered in the order in which they appear."""
    first_order: int
    """Its first packet; -1 where that was in an earlier capture."""
    family: int
    """4 or 6."""
    a_high: Wide
    a_low: Wide
    b_high: Wide
    b_low: Wide
    """Addresses as two halves of 64 bits; of IPv4 the lower half."""
    a_port: int
    b_port: int
    role: int
    """A ``Role``. Set at once where ports were asked for, otherwise by what the connection carries."""
    opener: int
    """Which end opened the connection: 0 A, 1 B, -1 unknown."""
    opener_order: int
    """The packet that showed it."""
    closed: int
    """1 after RST, or when another connection took over the same ports."""
    closed_order: int
    """The first packet at which nothing more of it is waited for, AT_THE_END while that is not known."""
    closed_clock: Wide
    """After RST: as long as the clock shows no more than this, bytes that were sent before it may be captured."""
    settled_order: int
    """When its role could be known, by itself or by its broker, whichever is earlier. None of its frames is complete
    before that. Otherwise frame numbers would depend on whether both are in one window."""
    begun_order: int
    """The first packet with data that was captured of it, as far as its role was not known then; -1 before that."""
    looks: int
    """How many packets have brought bytes of it while its role was not known."""
    next_look: int
    """How many there will be when it is judged again."""
    by_broker: int
    """1 where its own requests do not set its role. Then another connection to the same broker does, since too little
    of this one was captured, or the first answer does. 2 where an answer has shown since that the request without a
    client_id that it begins with is one."""
    waiting_head: int
    waiting_tail: int
    """First and last row in the table of requests that wait for their response, -1 for none."""
    waiting_front: int
    """The first of them that was not overtaken by the response to a later one; -1 for none."""
    waiting_new: int
    """The first of them that is not in the hash table, as none after it is; -1 for none."""
    waiting: int
    """How many there are."""
    overtaken: int
    """How many of them were overtaken: they stand before ``waiting_front``."""
    disordered: int
    """Responses that came after that to a later request."""
    missed: int
    """1 where, after the latest response that was paired, responses may be missing or one had no request. Then requests
    before the next one that is answered will get no response."""
    given_up: int
    """How many more there were, until they were given up to bound memory."""
    raw_tokens: int
    """1 while requests may be raw SASL tokens, without a header."""
    first_id: int
    """Correlation id of the first request seen, -1 before that."""
    latest_id: int
    """That of the latest one, -1 before that; those that Java keeps for SASL do not count."""
    spoken: int
    """What its requests say of its client: flags of ``doubting``."""
    told: int
    """1 when the row of an encrypted connection has been written."""
    client: int
    """Number of the client_id of its latest request, -1 before that."""
    unanswered: int
    """Requests that were skipped: a later one was answered."""
    handshake: Wide
    """Nanoseconds from the SYN to the acknowledgement of the answer to it; ABSENT if they were not captured."""
    summed: Wide
    """Packets of it that had a right checksum, and none of their direction a wrong one before. They count up to
    ``tracking.ENOUGH_SUMS``: then they mean something."""
    before: Wide
    """Slot of the latest connection before it on the same ports, -1 for none."""


class Stream(Row):
    """One direction of a connection."""

    reference: Wide
    """Highest position seen, -1 before the first; what the next sequence number is resolved against."""
    start: Wide
    """Position of the first byte of the stream if its SYN was seen, or the client acknowledged it alone; else -1."""
    start_order: int
    """When it was seen, as the number of a packet."""
    next: Wide
    """Position up to which the stream has been dealt with, -1 before the first byte."""
    synced: int
    """1 if a frame begins at ``next``, 0 if that is not known, -1 before the first byte."""
    certain: int
    """Whether a frame begins where one was read last: -1 before the first one; 1 if so, and all requests that may have
    an answer still are known; 2 if so, but requests may be missing; ``doubting.HOLED`` or ``doubting.TORN`` if so, but
    it has a hole, whose size is as true as sequence numbers are; 0 if it may be a part of another frame."""
    sure: Wide
    """Position up to which all frames that may have an answer still were certain when they were read; -1 for none."""
    proven: int
    """Position at which a frame begins for certain, where frames are searched; -1 for none."""
    noted: Wide
    """Position of a request that the packet with its answer acknowledges, while it waits; -1 for none."""
    alone: int
    """1 if it waits only for what follows it."""
    began: Wide
    """The packet with which the frame began that was read last; -1 before the first one."""
    searched: Wide
    """Position from which on frames in doubt follow one another; -1 before the first search."""
    answered: Wide
    """How many of those from there on answered requests that are certain."""
    end: Wide
    """Position after the last byte if FIN was seen (the first one counts), else -1."""
    end_order: int
    """When the FIN was seen, as the number of a packet."""
    skipped: Wide
    """Bytes skipped since the stream lost its frame boundary, until a row reports it."""
    acked: Wide
    """Highest position of this stream that the other end has acknowledged, -1 if unknown."""
    reached: Wide
    """Position after the bytes that were captured or cut off, -1 before the first; what acknowledges has none."""
    holed: int
    """1 while segments may wait after a hole, ``tracking.BEGINS`` while they may wait for the beginning of the stream.
    Acknowledgements are written down then."""
    time: Wide
    """When the capture had the latest bytes of it that were put in order, ABSENT before the first."""
    placed: Wide
    """Position up to which its bytes have been put in order, or given up; -1 before the first."""
    placed_order: int
    """When that was, as the number of a packet; -1 before the first byte."""
    latest: Wide
    """When the capture had all before ``placed``, as far as it states times; ABSENT before the first byte."""
    clock: Wide
    """What the capture's clock showed then, NO_TIME before the first byte."""
    heard: Wide
    """What was acknowledged as far as it was written down; -1 if nothing."""
    since: Wide
    """Since which packet segments wait after a hole; AT_THE_END if none does."""
    sums: Wide
    """How much a wrong checksum means, up to ``tracking.MOST_SUMS``: less after wrong ones, more after right ones."""
    packets: int
    """What tracking counts, of any connection and whatever becomes of it: packets,"""
    wire: int
    """their bytes on the wire, headers and all,"""
    payload: int
    """and bytes of segments, those that repeat others too."""
    first_time: Wide
    last_time: Wide
    """Of the earliest and the latest packet that has a time; ABSENT before the first packet."""
    syn_time: Wide
    """Of the latest SYN; ABSENT before that, and where a packet of the handshake has no time."""
    tunnel: int
    """``layers.Header.tunnel`` of the first packet."""
    over_order: int
    """When the first FIN, or RST that counts, was seen, as the number of a packet; -1 before that."""
    resets: int
    """How many RSTs that count."""
    repeats: int
    """Packets with bytes that were seen before,"""
    repeated: int
    """and how many such bytes."""
    late: int
    """Packets with bytes that were missing when later ones were seen."""
    lost: int
    """Bytes that are missing, but for the holes that are remembered, the latest ones:"""
    hole_1: Wide
    hole_1_end: Wide
    hole_2: Wide
    hole_2_end: Wide
    hole_3: Wide
    hole_3_end: Wide
    hole_4: Wide
    hole_4_end: Wide
    """positions of their first byte and of the byte after them, the same for no hole."""
    mapped: Wide
    """Of a path of Multipath TCP: what ``multipath.said_by`` said first of its bytes, -1 before that."""
    shift: Wide
    """How many bytes went on other paths since then, modulo 2**32: positions are ahead of sequence numbers by it."""
    lowest: Wide
    """Lowest position seen, where the SYN was not seen before: bytes that stand before it were missing so far. Else 0,
    and -1 before the first packet."""
    origin: Wide
    """Position of the first byte that was put in order, where the SYN was not seen before; else -1."""
    earlier: Wide
    """The lowest position of bytes that came when others after them were in order as the first; -1 if none did."""


class Segment(Row):
    """Bytes of a stream that a packet brought, or that it brought but the capture does not have. Without a length, the
    packet acknowledges a stream up to ``pos``."""

    stream: int
    pos: Wide
    len: int
    off: int
    """Where the bytes stand in the window; -1 if the capture does not have them (snapshot length), ACKNOWLEDGED."""
    time: Wide
    order: int
    clock: Wide
    """The latest time that was seen up to this packet: ``time``, unless the clock of the capture was set back."""
    doubt: int
    """1 where its checksum is wrong, so that another copy is waited for."""
    packet: int
    """The packet that brought it. ``order`` is later, where it was put in order after a hole."""
    ack: Wide
    """Position up to which its packet, or one before it, acknowledges the other direction; -1 where that is unknown."""


class Piece(Row):
    """A part of a segment. The pieces of a stream are in order, without overlaps.

    A piece may not begin where the one before it ends, or may have no bytes. Then the capture has a gap that has been
    given up.
    """

    pos: Wide
    len: int
    off: int
    """Where the bytes stand in the joined data; -1 if there are none. Touching pieces touch there as well."""
    time: Wide
    """When the capture had these bytes and all before them: it never decreases along a stream. NO_TIME where the packet
    has none."""
    order: int
    """The packet with which they were put in order, or with which a hole before them was given up."""
    clock: Wide
    """The same as ``time``, as ``Segment.clock``: what may wait for what is decided by it."""
    since: Wide
    """Since which packet segments had been waiting after a hole then; AT_THE_END if none had."""
    packet: int
    """The packet that brought it: two directions take turns by that."""
    ack: Wide
    """As ``Segment.ack``."""
    head: Wide
    """Its first four bytes as a number; 0 where it has fewer. Whoever asks later whether a frame may begin with it need
    not wait for the bytes."""


class Active(Row):
    """A stream that has pieces or waiting segments in this window. The table is ordered by stream."""

    stream: int
    first: int
    end: int
    """Its pieces are rows ``first`` to ``end`` - 1."""
    look: int
    seen: int
    """While its connection is judged: of those, rows ``look`` to ``seen`` - 1."""
    run: int
    """Of those, the rows before this one follow each other without a hole."""
    frames: int
    frame: int
    """How many frames from its beginning on have been judged, and where the next one begins in what is seen."""
    waiting: int
    """1 if segments wait after a hole that may still be filled."""
    seg_first: int
    seg_end: int
    """Its segments in the order that ``streams.place`` makes."""


class Frame(Row):
    """A frame, or bytes of a stream in which none can be seen."""

    number: int
    """Its number within the capture: ``kwire.capture.tracker`` counts by ``order``."""
    slot: int
    response: Short
    """0 request, 1 response."""
    client_side: Short
    """Which end is the client: 0 A, 1 B."""
    status: Short
    """A ``Status``."""
    reason: Short
    """A ``Reason``."""
    begin: Wide
    """Position in its stream of the first byte that it stands for, its size included; ABSENT of a whole connection."""
    end: Wide
    """Position after the last one. What its size says may be more than the stream has in the end."""
    time: Wide
    """Of the packet that has the last byte."""
    order: int
    """When all of it was known, as the number of a packet. A response is not known before its request. One without a
    request is known when that was given up."""
    off: int
    """Where the frame (after its size) begins in the joined data."""
    seen: int
    """Bytes of the frame that are there: ``size``, or less if it is cut off."""
    size: int
    api: int
    """API key, or ABSENT."""
    version: int
    id: int
    """Correlation id, or ABSENT."""
    client: int
    """Number of the client_id in the table of names; -1 null or unknown."""
    latency: Wide
    """Nanoseconds; ABSENT where there was no request, or it or this has no time."""
    detail: int
    """A number that belongs to ``reason``."""


class Waiting(Row):
    """A request that waits for its response.

    Those of a connection are a list, in the order in which they were sent. Where one that is not the first has been
    asked for, all so far are in a hash table. Of those with the same correlation id, the first stands in the list of
    its place there. The others follow it.
    """

    connection: int
    """Number of its connection."""
    time: Wide
    order: int
    clock: Wide
    """Of the piece that has its last byte."""
    ack: Wide
    """What the packet acknowledged with which it began, -1 for nothing."""
    end: Wide
    """Position after it."""
    id: Half
    client: Half
    next: Half
    """The next one of the connection, or of the list of free rows; -1 at the end."""
    prev: Half
    """The one of the connection before it; -1 at the beginning."""
    chain: Half
    """Of the first with its correlation id, the next first one at its place in the hash table. -1 at the end."""
    same: Half
    """The next one with its correlation id, -1 at the end."""
    back: Half
    """Of the first with its correlation id the last one, of all others the one before it."""
    api: Short
    """API key, or ``pairing.SASL_TOKEN``."""
    version: Short
    overtaken: Short
    """1 if a later request was answered before it."""
    doubted: Short
    """1 if it may be a part of another frame, ``doubting.OR_AROUND`` if only of one that its answer is to,
    ``doubting.TORN`` if it has records and a hole, else 0."""
    entered: Short
    """Whether it is in the hash table: ``NOT_ENTERED``, ``LEADS`` or ``FOLLOWS``."""


class Room(Row):
    """How much of the tables that grow is in use, and where to go on after they have grown."""

    frames: int
    waiting: int
    free: int
    """First row of the table of waiting requests that is free again, -1 for none."""
    active: int
    """Row of the table of active streams whose connection is next."""
    begun: int
    """1 when the role of that connection has been looked at in this window."""
    key_a: Wide
    key_b: Wide
    """What the hash table of waiting requests hashes with."""


class KnownApi(Row):
    """What framing knows about an API, by API key."""

    latest: int
    """Latest known version, -1 for an unknown key."""
    least_response: int
    """Bytes that the shortest response of any version has, correlation id included."""


class Finder(Row):
    """What connections are found with: the key that they are hashed with, and a guess."""

    key_a: Wide
    key_b: Wide
    latest: Wide
    """Slot of the connection that was found last, which the next packet mostly belongs to; -1 for none."""
    resets_begin: int
    """1 where an RST may begin a connection (``Tracker.let_resets_begin``), else it belongs to none."""


class Name(Row):
    """A byte string that occurs over and over, such as a client_id: where it stands in the pool."""

    off: int
    len: int


class NamesUsed(Row):
    """How much of a table of names is in use, and the key that its names are hashed with."""

    count: int
    bytes: int
    key_a: Wide
    key_b: Wide


# --- records ----------------------------------------------------------------------------------------------------------


class ProblemCode(IntEnum):
    """What can be wrong with a record set; ``kwire.records.columnar`` has the sentences."""

    NONE = 0
    SIZE = 1
    MAGIC = 2
    SHORT_BATCH = 3
    COUNT = 4
    KEY = 5
    VALUE = 6
    TRAILING = 7
    NULL_WRAPPER = 8
    CUT_OFF = 9
    MIXED = 10
    RECORD_LENGTH = 11
    RECORD_FIELD = 12
    HEADER_COUNT = 13
    HEADER = 14
    RECORD_TRAILING = 15
    BATCH_TRAILING = 16
    RECORDS_MISSING = 17


class Problem(Row):
    """Something in a record set that cannot be read."""

    record_set: int
    position: int
    """Where, in the array that was scanned; inside of what was decompressed, where the outermost entry starts."""
    code: int
    """A ``ProblemCode``."""
    a: Wide
    b: Wide
    """Two numbers for the sentence."""


class Batch(Row):
    """A record batch (magic 2), a wrapper (a compressed message of magic 0 or 1), or a run. A run is neighbouring plain
    messages that share magic and timestamp type."""

    record_set: int
    """Which record set."""
    pos: int
    """Where the entry starts in the array that was scanned."""
    arena: int
    """Where ``body`` and ``end`` are: 0 in the input, 1 in what was decompressed."""
    body: int
    """First byte of the records (magic 2), of the first message (run) or of the compressed value (wrapper)."""
    end: int
    """Byte after the body."""
    magic: int
    attributes: int
    """Of the batch or message. A run and what a wrapper holds have those of the outermost wrapper."""
    count: int
    """Records that the batch claims or messages in the run; -1 for a wrapper."""
    crc: int
    """1 right, 0 wrong; while it is not computed yet, 2 more than what it should be. Messages of a run are checked one
    by one in ``read_records``."""
    origin: Wide
    """Where the outermost entry starts in the input: what a problem inside compressed data is reported at."""
    base: Wide
    """What is added to the offset of each record."""
    timestamp: Wide
    """Milliseconds. Magic 2: base timestamp, or max timestamp with LogAppendTime. Messages: the wrapper's timestamp."""
    last: Wide
    """Offset of the last message of a run, as it stands there; of a wrapper: its own offset."""
    parent: int
    """Row of the wrapper in the table of the level above; -1 for none."""
    producer: Wide
    epoch: int
    sequence: int
    leader: int
    """Partition leader epoch."""
    codec: int
    """Of the batch or of the outermost wrapper."""
    first_row: int
    """First output row, written by ``read_records``."""
    rows: int
    """How many output rows, written by ``read_records``."""
    wrapped: int
    """1 for what a wrapper held: its timestamp type (and with LogAppendTime its timestamp) overrides the messages'."""


class Reading(Row):
    """What ``scan`` and ``read_records`` keep between two calls: the only row of a table."""

    entry: int
    """``scan``: record set to go on with. ``read_records``: row of the batch table to go on with."""
    pos: int
    """``scan``: position in the array to go on at, -1 for the beginning of the set."""
    problems: int
    """Rows of the problem table in use."""
    entries: int
    """Rows of the batch table in use."""
    row: int
    """Output rows so far, and how much of each output is in use:"""
    key: int
    value: int
    header: int
    header_key: int
    header_value: int
    null_keys: int
    null_values: int
    null_timestamps: int
    wrong_crcs: int
    null_header_values: int


class HeaderCursor(Row):
    """How much of the output of headers is in use while a record's are read, and what was found: one row."""

    header: int
    key: int
    value: int
    nulls: int
    count: int
    """Headers that the record claims."""
    detail: int
    """A number that belongs to the problem."""


class Form(Row):
    """What the headers of a record looked like, to be compared with the next (``records.learn``): one row."""

    size: int
    """Bytes of the section of headers, -1 for no form."""
    steps: int
    """32 bytes each."""
    header: int
    """The headers of that record in the output: the first of them, and how many."""
    count: int
    key: int
    keys: int
    """Their keys: where in the output, and how many bytes together."""
    value: int
    null: int
    nulls: int
    """Those that are null."""
    header_room: int
    key_room: int
    value_room: int
    """Up to where in the output another section like this one fits."""
    wait: int
    """Records to be read before the next attempt to learn a form, and how many after that one."""
    backoff: int


class Header(Row):
    """What the header of an entry of a log segment says; -1 where the format has no such field."""

    position: int
    size: int
    """Bytes of the whole entry."""
    magic: int
    base: Wide
    last: Wide
    count: int
    max_timestamp: Wide
    """Milliseconds; of a message its own timestamp."""
    attributes: int
    crc: int
    crc_ok: int
    """1 right, 0 wrong, -1 where magic is not known or the entry is too short for it."""
    producer: Wide
    epoch: int
    sequence: int
    leader: int
    base_timestamp: Wide


PACKET: Final = table_type(Packet)
INTERFACE: Final = table_type(Interface)
CONNECTION: Final = table_type(Connection)
STREAM: Final = table_type(Stream)
SEGMENT: Final = table_type(Segment)
PIECE: Final = table_type(Piece)
ACTIVE: Final = table_type(Active)
FINDER: Final = table_type(Finder)
FRAME: Final = table_type(Frame)
WAITING: Final = table_type(Waiting)
ROOM: Final = table_type(Room)
KNOWN_API: Final = table_type(KnownApi)
NAME: Final = table_type(Name)
NAMES_USED: Final = table_type(NamesUsed)
BATCH: Final = table_type(Batch)
PROBLEM: Final = table_type(Problem)
READING: Final = table_type(Reading)
HEADER_CURSOR: Final = table_type(HeaderCursor)
FORM: Final = table_type(Form)
HEADER: Final = table_type(Header)
