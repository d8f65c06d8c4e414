"""Record sets to Arrow columns, without an object per record.

``decode_sets`` is what captures and log segments use: any number of record sets in one buffer, one
``pyarrow.RecordBatch`` out. ``to_arrow`` is the same for one record set. ``decode_pieces`` and ``decode_groups`` give
several batches, each of which is small whatever the sets hold. Magic 0, 1 and 2 may follow each other in any mixture.

Strategy, a window at a time (4 to 16 MB is a good size):

1. ``scan`` (a kernel, as ``read_records`` is) walks all sets and writes the batch table: one row per batch, wrapper
   message or run of messages.
2. Checksums of large batches and of wrappers, and decompression, are calls into C libraries from Python, per batch.
   What comes out is put end to end into a second buffer, the arena. Wrapper messages hold message sets: these are
   scanned in turn, level by level, and their rows take the place of the wrapper's.
3. ``read_records`` walks the table and writes keys, values, headers and whatever else differs between records.
4. What is the same for a whole batch is spread over its rows, or, where it is the same for all of them (the usual
   case for codec, producer and magic), taken from a shared constant array.

Rules kept here:

- A batch or message that cannot be read is reported in ``problems``; everything before and after it is kept. Inside of
  a batch, a record that is wrong is left out and the next one is found by its length. A last entry that
  is cut off is no problem: brokers cut Fetch responses where the size limit falls.
- A wrong checksum is ``crc_ok`` false, nothing more. The messages inside a wrapper are right only if the wrapper is,
  and all those around it.
- Memory stays in proportion to the input: counts are bounded by bytes, decompression by ``limits``.
- Rows and bytes are counted before columns are made of them: no offset of an Arrow array can pass 2**31 - 1.
- Only Arrow types that Spark accepts (no dictionaries, no large or view types, microseconds in UTC).

Offsets, timestamps and timestamp types follow KIP-31 and KIP-32: see ``docs/records.md`` for what each column means.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kwire.errors import DecodeError, LimitError, MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("records as columns", "capture") from _missing

from kwire.kernels.engine import choose
from kwire.kernels.layouts import BATCH, FORM, HEADER, HEADER_CURSOR, PROBLEM, READING, ProblemCode, joined
from kwire.kernels.numbers import SLACK, grown
from kwire.kernels.records import (
    CODEC,
    CONTROL,
    DONE,
    FORM_HEADERS,
    FORM_WORDS,
    FULL_OF_PROBLEMS,
    LEAST_BATCH,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
    Columns,
    HeaderColumns,
    Scratch,
    Texts,
    Wanted,
    read_records,
    scan,
    uniform,
)
from kwire.kernels.segments import read_set_headers
from kwire.limits import BEYOND, DEFAULT_LIMITS, Limits
from kwire.records.arrow_types import HEADERS, TIMESTAMP, dtype_of
from kwire.records.budget import Budget
from kwire.records.compression import CODECS, decompress
from kwire.records.constants import CONSTANTS
from kwire.records.control import control_type_name
from kwire.records.crc import crc32, crc32c
from kwire.records.objects import TIMESTAMP_TYPES
from kwire.records.portions import MOST_BYTES, MOST_ROWS, portions, text_size
from kwire.records.rooms import ROOMS

__all__ = [
    "POSITION",
    "SCHEMA",
    "Batches",
    "Group",
    "Piece",
    "RecordColumns",
    "decode_batches",
    "decode_groups",
    "decode_pieces",
    "decode_sets",
    "to_arrow",
]

Ints = np.ndarray[Any, np.dtype[np.int64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Table = Any
"""A table of batches: a numpy array of ``kwire.kernels.layouts.BATCH``."""

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS, nullable=False),
        pa.field("magic", pa.int8(), nullable=False),
        pa.field("compression", pa.string(), nullable=False),
        pa.field("crc_ok", pa.bool_(), nullable=False),
        pa.field("base_offset", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("partition_leader_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_(), nullable=False),
        pa.field("is_control", pa.bool_(), nullable=False),
        pa.field("control_type", pa.string()),
    ]
)
"""The columns of a record batch, in order.

``timestamp`` is null in magic 0, for Kafka's "no timestamp" (-1), and outside of the years 1 to 9999, which is what
Spark and Python can show. ``timestamp_type`` is ``CreateTime``, ``LogAppendTime``, or null in magic 0. ``compression``
is the codec of the batch or of the outermost wrapper. ``base_offset`` is that of the batch; in message sets it is what
the offsets that were read are relative to (0 for magic 0 and for messages outside of a wrapper). The producer
columns are null where the batch has -1 or no such field. ``control_type`` is null except in control records.
"""

POSITION: Final = pa.field("position", pa.int64(), nullable=False)
"""One more column, for those who ask for it by name: the byte of the record set at which the record's batch starts."""

_FIELDS: Final = {field.name: field for field in (*SCHEMA, POSITION)}
_NAMES: Final = tuple(SCHEMA.names)

_SENTENCES: Final = {
    ProblemCode.SIZE: "an entry of {a} bytes: what follows cannot be read",
    ProblemCode.MAGIC: "magic {a} is not known",
    ProblemCode.SHORT_BATCH: "an entry of {a} bytes is too short for magic {b}",
    ProblemCode.COUNT: "a record count of {a}",
    ProblemCode.KEY: "a key of {a} bytes, {b} bytes left",
    ProblemCode.VALUE: "a value of {a} bytes, {b} bytes left",
    ProblemCode.TRAILING: "a value of {a} bytes, but {b} bytes up to the end of the message",
    ProblemCode.NULL_WRAPPER: "a compressed message without a value",
    ProblemCode.CUT_OFF: "the messages inside a compressed message end in the middle, {a} bytes left",
    ProblemCode.MIXED: "a message of magic {a} inside a compressed message of magic {b}",
    ProblemCode.RECORD_LENGTH: "record {a}: a length that is not inside of the batch",
    ProblemCode.RECORD_FIELD: "record {a}: a field is longer than the record",
    ProblemCode.HEADER_COUNT: "record {a}: a header count of {b}",
    ProblemCode.HEADER: "record {a}: a header is longer than the record",
    ProblemCode.RECORD_TRAILING: "record {a}: {b} bytes behind its last header",
    ProblemCode.BATCH_TRAILING: "{b} bytes behind the last of {a} records",
    ProblemCode.RECORDS_MISSING: "{a} records are claimed, {b} are there",
}

_PACKED: Final = ["body", "end", "magic", "attributes"]
_CHECKED: Final = ["pos", "end", "magic", "crc"]
_NO_CONTROL: Final = -100_000

FEW: Final = 1 << 15
"""Rows of a batch table up to which its columns are compared all together."""
MOST_ROWS_TOGETHER: Final = 1 << 25
"""Rows of one batch where it cannot be cut. With the longest text that is the same for all of them (64 bytes; the words
of this module have a quarter of that), columns stay below 2 GiB."""
_GUESSED: Final = ["key", "header", "header_key", "header_value", "null_header_values"]


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """What ``decode_sets`` found.

    ``batch``: a ``pyarrow.RecordBatch``, one row per record, in the order of the sets and of the records in them.
    ``set_index``: int32 array, for each row the record set that it came from.
    ``problems``: what could not be read, as (record set, byte offset in that set, sentence), in that order. Inside
    compressed data the byte offset is that of the batch or outermost wrapper.
    ``consumed``: int64 array, for each set how many bytes were read; less than its length where the last entry is cut
    off, or where a problem made it impossible to find the next entry.
    """

    batch: pa.RecordBatch
    set_index: np.ndarray[Any, np.dtype[np.int32]]
    problems: list[tuple[int, int, str]]
    consumed: Ints


class Piece(NamedTuple):
    """Some of the records of some sets, in their order.

    ``after`` is where the records of the next piece begin, (record set, byte in that set), None behind the last one.
    Problems are told as soon as they are found: they may belong behind records of later pieces.
    """

    found: RecordColumns
    after: tuple[int, int] | None


class Group(NamedTuple):
    """Record sets that became one batch: ``sets`` of them, the first of which is number ``first``.

    ``found`` counts sets from that one.
    """

    first: int
    sets: int
    found: RecordColumns


class Batches(NamedTuple):
    """The batches of some sets, and messages of magic 0 and 1, in their order: what ``decode_batches`` found.

    ``headers``: a table of ``kwire.kernels.layouts.HEADER``, whose positions count in the buffer. ``set_index``: for
    each row the record set that it is of. ``stored``: the bytes of its records as they are sent, ``unpacked`` when they
    are decompressed, ``records`` how many there are by what is said of them; -1 where that is not known. ``problems``
    is as in ``RecordColumns``.
    """

    headers: Table
    set_index: Ints
    stored: Ints
    unpacked: Ints
    records: Ints
    problems: list[tuple[int, int, str]]


def to_arrow(
    data: bytes | bytearray | memoryview,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
    problems: list[DecodeError] | None = None,
) -> pa.RecordBatch:
    """One record set as a ``pyarrow.RecordBatch`` with the columns of ``SCHEMA``.

    ``data``: the bytes of a ``records`` field or of a log segment. ``columns`` chooses columns by name. With a list in
    ``problems``, what cannot be read is appended to it and the rest is returned; without one, the first problem is
    raised as ``DecodeError`` (``LimitError`` where a limit is why). A wrong checksum is not a problem but ``crc_ok``
    false.
    """
    buffer = _as_array(data)
    found = decode_sets(
        buffer, np.zeros(1, np.int64), np.array([buffer.size], np.int64), limits=limits, columns=columns
    )
    if found.problems:
        errors = [
            (LimitError if BEYOND in text else DecodeError)(text, layout="record set", offset=offset)
            for _, offset, text in found.problems
        ]
        if problems is None:
            raise errors[0]
        problems += errors
    return found.batch


def decode_sets(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
) -> RecordColumns:
    """The records of many record sets as one batch.

    Set ``i`` is ``buffer[starts[i] : starts[i] + lengths[i]]``; ``buffer`` is a uint8 array of at most 1 GiB,
    ``starts`` and ``lengths`` are int64 arrays. Sets may lie anywhere in the buffer. ``columns`` chooses columns by
    name, in the order given; what is not chosen is not copied. Never raises for what is in the buffer, with one
    exception: ``LimitError`` when one batch of columns cannot hold it (2 GiB of keys and values, or 33,554,432
    records).
    """
    window, names = _opened(buffer, starts, lengths, limits, columns)
    made = _Columns(window, names, window.table).whole()
    window.close()
    return made


def decode_pieces(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
    budget: Budget | None = None,
) -> Iterator[Piece]:
    """``decode_sets`` as batches of at most ``MOST_ROWS`` records and about ``MOST_BYTES`` bytes: at least one piece.

    ``budget``: what the whole that this is a part of (a capture, a segment) may still decompress.
    Columns of a piece are made when it is asked for. Nothing in the buffer raises: a record that no Arrow array can
    hold is left out, and told as a problem.
    """
    window, names = _opened(buffer, starts, lengths, limits, columns, budget)
    table = window.table
    runs = list(portions(_sizes(table), _counts(table))) or [(0, 0)]
    for first, last in runs:
        made = _Columns(window, names, table[first:last])
        after = _place(window, table[last]) if last < len(table) else None
        made.read()
        if last == len(table):
            window.told()
            window.close()
        yield from made.pieces(after)


def decode_groups(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
) -> Iterator[Group]:
    """``decode_sets`` as batches of whole sets, as small as ``decode_pieces`` where sets are: at least one group.

    A set that is too large for one batch has no rows, and a problem at its byte 0.
    """
    window, names = _opened(buffer, starts, lengths, limits, columns)
    window.told()
    table, sets = window.table, len(window.starts)
    of_set = table["record_set"]
    totals = [np.bincount(of_set, each, minlength=sets).astype(np.int64) for each in (_sizes(table), _counts(table))]
    found = sorted(window.problems, key=lambda one: one[:2])
    places = [one[0] for one in found]
    for first, last in list(portions(*totals)) or [(0, 0)]:
        low, high = np.searchsorted(of_set, (first, last)).tolist()
        window.problems = found[bisect_left(places, first) : bisect_left(places, last)]
        try:
            made = _Columns(window, names, table[low:high]).whole()
        except LimitError as error:
            window.problems = []
            made = _Columns(window, names, table[:0]).whole()
            made.problems.append((first, 0, error.message))
        yield Group(
            first,
            last - first,
            RecordColumns(
                made.batch,
                made.set_index - np.int32(first),
                [(number - first, at, text) for number, at, text in made.problems],
                made.consumed[first:last],
            ),
        )
    window.close()


def decode_batches(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    budget: Budget | None = None,
    unpack: bool = True,
) -> Batches:
    """The batches of many record sets, as ``decode_sets`` finds them, without reading a record.

    Without ``unpack`` nothing is decompressed: there is no problem of it, and ``unpacked`` is not known. Nothing in the
    buffer raises.
    """
    window, _ = _opened(buffer, starts, lengths, limits, (), budget, headers_only=True, unpack=unpack)
    window.told()
    headers, of_set = _headers_of(window)
    known, magic = headers["crc_ok"] >= 0, headers["magic"]
    compressed = known & (headers["attributes"] & CODEC != 0)
    records = np.where(known, np.where(magic == 2, headers["count"], np.where(compressed, -1, 1)), -1)
    stored = np.where(known, np.where(magic == 2, headers["size"] - LOG_OVERHEAD - LEAST_BATCH, headers["size"]), -1)
    unpacked = np.where(compressed, -1, stored)
    # All are in the order of sets, and of positions in them.
    width = window.buffer.size + 1
    places = of_set * width + headers["position"]

    def among(table: Table) -> Ints:
        found: Ints = np.searchsorted(places, table["record_set"] * width + table["origin"])
        return found

    top = window.top
    packed = np.flatnonzero(top["attributes"] & CODEC != 0)
    of = among(top[packed])
    stored[of] = window.stored[packed]
    done = (top["magic"][packed] == 2) & ((top["arena"][packed] == 1) | (records[of] == 0))
    unpacked[of[done]] = _sizes(top[packed])[done]
    inner = window.table[window.table["parent"] >= 0]
    if len(inner):
        of = among(inner)
        found = np.unique(of)
        unpacked[found] = np.bincount(of, inner["end"] - inner["pos"])[found]
        records[found] = np.bincount(of, inner["count"])[found]
    problems = sorted(window.problems, key=lambda one: one[:2])
    window.close()
    return Batches(headers, of_set, stored, unpacked, records, problems)


def _headers_of(window: _Window) -> tuple[Table, Ints]:
    """The headers of all entries, and the sets that they are of."""
    size = int(window.lengths.sum())
    read = choose(size)(read_set_headers)
    room = 2 * window.starts.size + size // 1024 + 16
    while True:
        headers, of_set = np.empty(room, HEADER), np.empty(room, np.int64)
        rows = read(window.buffer, window.starts, window.lengths, headers, of_set)
        if rows <= room:
            return headers[:rows], of_set[:rows]
        room = rows


def _opened(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    limits: Limits,
    columns: Sequence[str] | None,
    budget: Budget | None = None,
    *,
    headers_only: bool = False,
    unpack: bool = True,
) -> tuple[_Window, tuple[str, ...]]:
    """The batches of all sets, and the names of the columns that are wanted."""
    names = _NAMES if columns is None else tuple(columns)
    for name in names:
        if name not in _FIELDS:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(_FIELDS)}")
    buffer = _writable(buffer)
    starts = np.ascontiguousarray(starts, np.int64)
    lengths = np.ascontiguousarray(lengths, np.int64)
    if starts.shape != lengths.shape or starts.ndim != 1:
        raise ValueError("starts and lengths must be arrays of the same length")
    if budget is not None:
        budget.more(int(lengths.sum()))
    window = _Window(buffer, starts, lengths, limits, Budget(limits) if budget is None else budget)
    window.find(check=not headers_only and "crc_ok" in names, unpack=unpack)
    return window, names


def _sizes(table: Table) -> Ints:
    """The bytes of each row of a batch table."""
    made: Ints = table["end"] - table["body"]
    return made


def _counts(table: Table) -> Ints:
    """The most records that each row of a batch table can have: one has 7 bytes at least."""
    counts = table["count"]
    made: Ints = np.where(table["magic"] == 2, np.minimum(counts, _sizes(table) // 7), counts)
    return np.maximum(made, 0, out=made)


def _uniform(table: Table) -> dict[str, int]:
    """Which columns of a batch table have one value only, where it is faster to look at all columns at once."""
    if not 0 < len(table) <= FEW:
        return {}
    columns = table.view(np.int64).reshape(len(table), -1)
    same = np.empty(columns.shape[1], np.uint8)
    choose(0)(uniform)(columns, same)
    return dict(zip(table.dtype.names, same.tolist(), strict=True))


def _place(window: _Window, row: Any) -> tuple[int, int]:
    """Where a row of the batch table stands: its record set, and the byte in that."""
    record_set = int(row["record_set"])
    return record_set, int(row["origin"]) - int(window.starts[record_set])


class _Memory:
    """The interface by which numpy makes a writable array of bytes that are not.

    Kernels never write to their input, but numba would compile all of them a second time for read-only arrays.
    """

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, array: Bytes) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _writable(array: Bytes) -> Bytes:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError("the buffer must be a one-dimensional array of uint8")
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Memory(array))


def _as_array(data: bytes | bytearray | memoryview) -> Bytes:
    return np.frombuffer(data, np.uint8)


class _Scratch(threading.local):
    """What the last call in this thread leaves to the next.

    ``arena``, to be used again: fresh memory costs more than decompressing into it. Nothing that leaves this module
    refers to it, since keys and values are copied. ``shares``: how much there was for each byte of records of what
    ``_GUESSED`` names. The windows of a capture resemble each other, and an output that is large enough at first need
    not be made larger and copied. ``form`` is room that ``read_records`` works in.
    """

    KEPT: Final = 64 << 20
    """An arena larger than this is given back."""

    def __init__(self) -> None:
        self.arena: Bytes = np.empty(1 << 16, np.uint8)
        self.shares: list[float] = [0.1, 0.0, 0.0, 0.0, 0.0]
        self.form = Scratch(
            words=np.empty(FORM_WORDS, np.uint64),
            places=np.empty(2 * FORM_HEADERS, np.int64),
            form=np.zeros(1, FORM),
            headers=np.zeros(1, HEADER_CURSOR),
        )


_scratch: Final = _Scratch()
_NO_TABLE: Final[Table] = np.zeros(0, BATCH)


class _Window:
    """Finds the batches of all sets: the batch table, in the order of the records, and the arena."""

    def __init__(self, buffer: Bytes, starts: Ints, lengths: Ints, limits: Limits, budget: Budget) -> None:
        self.buffer = buffer
        self.starts = starts
        self.lengths = lengths
        self.limits = limits
        self.consumed: Ints = np.zeros(starts.size, np.int64)
        self.problems: list[tuple[int, int, str]] = []
        # Its own until it is closed: between two pieces, somebody else may decode in this thread.
        self.arena: Bytes = _scratch.arena
        _scratch.arena = np.empty(0, np.uint8)
        self._used = 0
        self.table: Table = _NO_TABLE
        self.top: Table = _NO_TABLE
        """The batches and messages as they are sent, those that hold others too."""
        self.stored: Ints = np.zeros(0, np.int64)
        """The bytes that each of those has."""
        self._budget = budget
        self._told = 0
        self._untold = 0
        self._last = (0, 0)

    def find(self, *, check: bool = True, unpack: bool = True) -> None:
        """``check``: checksums are looked at; ``unpack``: what is compressed is decompressed."""
        table = self._scan(self.buffer, self.starts, self.lengths, _NO_TABLE, self.consumed, check)
        self.top, self.stored = table, _sizes(table)
        if not unpack:
            return
        data = self.buffer
        tables: list[Table] = []
        parents = _NO_TABLE
        paths: list[list[Ints]] = []
        path: list[Ints] = [np.arange(len(table))]
        while True:
            if check:
                self._check(table, data.data)
            if len(parents):
                table["crc"][parents["crc"][table["parent"]] == 0] = 0
            compressed = (table["magic"] == 2) & (table["attributes"] & CODEC != 0)
            # Some writers compress nothing into something. There are no records to miss.
            empty = compressed & (table["count"] == 0)
            table["end"][empty] = table["body"][empty]
            packed = np.flatnonzero(compressed & (table["count"] > 0) | (table["count"] < 0) & (table["magic"] < 2))
            tables.append(table)
            paths.append(path)
            if not packed.size:
                break
            if len(tables) > self.limits.nesting and (deep := packed[table["count"][packed] < 0]).size:
                text = f"compressed messages inside each other: {self.limits.said('nesting')}"
                for row in deep.tolist():
                    self._drop(table, row, text)
                packed = packed[table["count"][packed] != 0]
            wrappers, starts, lengths = self._decompress(table, packed, data.data)
            if not wrappers.size:
                break
            data = self.arena
            parents = table.take(wrappers)
            table = self._scan(data, starts, lengths, parents, np.zeros(wrappers.size, np.int64), check)
            _relative(parents, table)
            which = table["parent"]
            path = [*(one[wrappers][which] for one in path), np.arange(len(table))]
        self._merge(tables, paths)

    def close(self) -> None:
        """Gives the arena back. What was read does not refer to it."""
        if self.arena.size <= _Scratch.KEPT:
            _scratch.arena = self.arena

    def _scan(self, data: Bytes, starts: Ints, lengths: Ints, parents: Table, consumed: Ints, check: bool) -> Table:
        size = int(lengths.sum())
        run = choose(size)(scan)
        states = np.zeros(1, READING)
        state = states[0]
        state.pos = -1
        # A guess; whatever is too small is made larger.
        rows = 2 * starts.size + size // 1024 + 16
        table = np.empty(rows, BATCH)
        problems = np.empty(16, PROBLEM)
        while run(data, starts, lengths, parents, table, problems, consumed, check, states) != DONE:
            if state.entries >= len(table):
                table = grown(table)
            if state.problems >= len(problems):
                problems = grown(problems)
        if state.problems:
            self._tell(problems[: state.problems])
        return table[: state.entries]

    def _tell(self, problems: Any) -> None:
        room = max(self.limits.problems - self._told, 0)
        for record_set, position, code, a, b in problems[:room].tolist():
            self._say(record_set, position, _SENTENCES[code].format(a=a, b=b))
        if len(problems) > room:
            self._leave_out(len(problems) - room, int(problems["record_set"][-1]), int(problems["position"][-1]))

    def _say(self, record_set: int, position: int, text: str) -> None:
        if self._told >= self.limits.problems:
            self._leave_out(1, record_set, position)
            return
        self._told += 1
        self.problems.append((record_set, position - int(self.starts[record_set]), text))

    def _leave_out(self, count: int, record_set: int, position: int) -> None:
        self._untold += count
        self._last = max(self._last, (record_set, position - int(self.starts[record_set])))

    def told(self) -> None:
        """Says how many problems there were beyond the limit, since this was asked before."""
        if self._untold:
            text = f"{self._untold} more problems, up to here: {self.limits.said('problems')}"
            self.problems.append((*self._last, text))
            self._untold, self._last = 0, (0, 0)

    def _drop(self, table: Table, row: int, text: str) -> None:
        """Reports a row of the batch table, and makes it one without records."""
        self._say(int(table["record_set"][row]), int(table["origin"][row]), text)
        table["count"][row] = 0
        table["arena"][row] = 0
        table["end"][row] = table["body"][row] = 0

    def _check(self, table: Table, view: memoryview) -> None:
        """Computes the checksums that the kernel left to the libraries."""
        rows = np.flatnonzero(table["crc"] > 1)
        if not rows.size:
            return
        right = [
            (crc32c(view[pos + 21 : end]) if magic == 2 else crc32(view[pos + 16 : end])) + 2 == wanted
            for pos, end, magic, wanted in table[_CHECKED][rows].tolist()
        ]
        table["crc"][rows] = right

    def _decompress(self, table: Table, packed: Ints, data: memoryview) -> tuple[Ints, Ints, Ints]:
        """Appends what the given rows hold to the arena.

        Returns the rows of wrappers among them, and the message sets that they held as positions in the arena.
        """
        made: list[tuple[int, int, int]] = []
        view = self.arena.data
        at = self._used
        for row, (body, end, magic, attributes) in zip(packed.tolist(), table[_PACKED][packed].tolist(), strict=True):
            limit = self._budget.limit(end - body)
            try:
                part = decompress(attributes & CODEC, data[body:end], limit, magic=magic)
            except DecodeError as wrong:
                self._budget.failed(limit, end - body)
                self._drop(table, row, self._budget.refused(wrong, limit))
                continue
            size = len(part)
            self._budget.made(size)
            if at + size > len(view):
                self.arena = grown(self.arena, at + size)
                view = self.arena.data
            view[at : at + size] = part
            made.append((row, at, size))
            at += size
        self._used = at
        rows, starts, lengths = np.array(made, np.int64).reshape(-1, 3).T.copy()
        batches = table["magic"][rows] == 2
        moved = rows[batches]
        table["arena"][moved] = 1
        table["body"][moved] = starts[batches]
        table["end"][moved] = starts[batches] + lengths[batches]
        return rows[~batches], starts[~batches], lengths[~batches]

    def _merge(self, tables: list[Table], paths: list[list[Ints]]) -> None:
        """Puts the rows of all levels into one table, those of a wrapper in its place."""
        if len(tables) == 1:
            self.table = tables[0]
            return
        keys = [
            np.concatenate([one[level] if level < len(one) else np.zeros(len(one[0]), np.int64) for one in paths])
            for level in range(len(tables))
        ]
        table = joined(tables)
        order = np.lexsort(keys[::-1])
        # A wrapper has done its duty; so have messages that were reported instead.
        order = order[(table["count"][order] > 0) | (table["magic"][order] == 2)]
        self.table = table.take(order)


def _relative(parents: Table, inner: Table) -> None:
    """Sets BASE of the rows of ``inner`` (magic 1: offsets in a wrapper count from its base, KIP-31).

    The wrapper has the offset of its last message, so the base is its offset less that message's. A producer may
    have left the wrapper's offset at 0 for the broker to set: then there is no base yet, and the offsets stay.
    """
    if not len(inner):
        return
    which = inner["parent"]
    last = np.flatnonzero(np.append(which[1:] != which[:-1], True))
    bases = np.zeros(len(parents), np.int64)
    own = parents["last"] + parents["base"]
    bases[which[last]] = own[which[last]] - inner["last"][last]
    bases[(bases < 0) | (parents["magic"] == 0)] = 0
    inner["base"] = bases[which]


class _Columns:
    """Reads the records of some batches of a window and puts their columns together."""

    def __init__(self, window: _Window, names: tuple[str, ...], table: Table) -> None:
        self.window = window
        self.names = names
        self.table = table
        self.most = int(_counts(table).sum())
        """Records that there can be."""

    def read(self) -> None:
        """Reads the records. Raises ``LimitError`` where Arrow arrays cannot hold them."""
        body = _sizes(self.table)
        size = int(body.sum()) + SLACK
        if size >= 1 << 31:
            raise LimitError(
                f"{size} bytes of records are beyond the limit of one Arrow batch: decode fewer sets at a time"
            )
        self._make_room(self.most, size)
        self._read(body, size)

    def whole(self) -> RecordColumns:
        """All records as one batch. Raises ``LimitError`` where that cannot hold them."""
        # Bytes of batches that are whole: what is claimed and not there does not count.
        if self.most > MOST_ROWS_TOGETHER:
            raise LimitError(
                f"{self.most} records are beyond the limit of one Arrow batch: decode fewer sets at a time"
            )
        self.read()
        self.window.told()
        return self._between(0, self.used["row"], self.table)

    def pieces(self, after: tuple[int, int] | None) -> Iterator[Piece]:
        """What was read; ``after`` is where the next piece behind it begins."""
        rows = self.used["row"]
        cuts = list(self._cuts(rows)) or [(0, 0)]
        table = self.table
        for first, last in cuts:
            part, then = table, after
            if len(cuts) > 1:
                # One batch has more than a piece may have: pieces of one batch.
                part = table[:1].copy()
                part["rows"] = last - first
                if last < rows:
                    number, at = _place(self.window, table[0])
                    if self.columns.position.size:
                        at = int(self.columns.position[last]) - int(self.window.starts[number])
                    then = number, at
            try:
                found = self._between(first, last - first, part)
            except LimitError as error:
                number, at = _place(self.window, part[0])
                self.window.problems.append((number, at, error.message))
                part = part.copy()
                part["rows"] = 0
                found = self._between(first, 0, part)
            yield Piece(found, then)

    def _cuts(self, rows: int) -> Iterator[tuple[int, int]]:
        """Where to cut the records that were read."""
        if rows <= MOST_ROWS and int(_sizes(self.table).sum()) <= MOST_BYTES:
            return iter([(0, rows)])
        costs = np.zeros(rows, np.int64)
        for wanted, at in ((self.wanted.key, self.keys.at), (self.wanted.value, self.values.at)):
            if wanted:
                costs += np.diff(at[: rows + 1])
        if self.wanted.headers:
            of_row = self.headers.at[: rows + 1]
            for at in (self.headers.key_at, self.headers.value_at):
                costs += np.diff(at[of_row])
            costs += 8 * np.diff(of_row)
        return portions(costs)

    def _between(self, first: int, rows: int, table: Table) -> RecordColumns:
        """The batch of ``rows`` records from ``first`` on; ``table`` has the rows of the batch table that they are of,
        with as many records."""
        window, names = self.window, self.names
        self.first, self.rows, self.table = first, rows, table
        self._uniform: dict[str, int] | None = None
        batch = pa.RecordBatch.from_arrays([getattr(self, f"_{name}")() for name in names], schema=_schema(names))
        problems, window.problems = sorted(window.problems, key=lambda one: one[:2]), []
        return RecordColumns(batch, self._spread("record_set", np.int32), problems, window.consumed)

    def _of(self, whole: pa.Array) -> pa.Array:
        """The rows that are wanted, of a column of all that were read."""
        return whole if len(whole) == self.rows else whole.slice(self.first, self.rows)

    def _slice(self, values: Any) -> Any:
        return values[self.first : self.first + self.rows]

    def _make_room(self, rows: int, size: int) -> None:
        """Makes the outputs for ``rows`` records in ``size`` bytes; those of headers and keys as large as they were per
        byte in the window before."""
        names, table = self.names, self.table
        self.wanted = Wanted("key" in names, "value" in names, "headers" in names, "crc_ok" in names)
        controls = "control_type" in names and bool((table["attributes"] & CONTROL).any())
        timestamp_valid, crc_ok, key_valid, value_valid = np.full((4, (rows + 7) // 8), 0xFF, np.uint8)
        expected = [min(int(share * 1.05 * size), size) + 16 for share in _scratch.shares]
        if not self.wanted.headers:
            expected[1:] = 0, 0, 0, 0
        keys, headers, header_keys, header_values, null_headers = expected
        self.columns = Columns(
            offset=np.empty(rows, np.int64),
            timestamp=np.empty(rows, np.int64),
            timestamp_valid=timestamp_valid,
            sequence=np.empty(rows, np.int32),
            crc_ok=crc_ok,
            control=np.full(rows if controls else 0, _NO_CONTROL, np.int32),
            position=np.empty(rows if POSITION.name in names and self._own_positions else 0, np.int64),
        )
        self.keys = Texts(
            valid=key_valid,
            at=_offsets(rows if self.wanted.key else 0),
            data=np.empty((keys if self.wanted.key else 0) + SLACK, np.uint8),
        )
        self.values = Texts(
            valid=value_valid,
            at=_offsets(rows if self.wanted.value else 0),
            data=ROOMS.take(size if self.wanted.value else SLACK),
        )
        self.headers = HeaderColumns(
            at=_offsets(rows if self.wanted.headers else 0),
            key_at=_offsets(headers),
            key=np.empty(header_keys + SLACK, np.uint8),
            null=np.empty(null_headers, np.int32),
            value_at=_offsets(headers),
            value=np.empty(header_values + SLACK, np.uint8),
        )

    def _read(self, body: Ints, size: int) -> None:
        """Fills the outputs, and makes those larger that turn out too small."""
        window = self.window
        read = choose(size)(read_records)
        problems = np.empty(16, PROBLEM)
        states = np.zeros(1, READING)
        state = states[0]
        while True:
            said = read(
                window.buffer,
                window.arena,
                self.table,
                self.wanted,
                self.columns,
                self.keys,
                self.values,
                self.headers,
                _scratch.form,
                problems,
                states,
            )
            if said == DONE:
                break
            if said == FULL_OF_PROBLEMS:
                problems = grown(problems)
            else:
                self._grow(body, state)
        # Fields of a row are slow to read one by one.
        self.used: dict[str, int] = dict(zip(READING.names, state.item(), strict=True))
        seen = [self.used[name] / size for name in _GUESSED]
        if self.wanted.key:
            _scratch.shares[0] = seen[0]
        if self.wanted.headers:
            _scratch.shares[1:] = seen[1:]
        window._tell(problems[: self.used["problems"]])

    def _grow(self, body: Ints, state: Any) -> None:
        """Makes room for the entry that did not fit: enough for it at its worst, and for the rest as far as can be told
        from what was read."""
        entry = int(state.entry)
        worst = int(body[entry])
        done = int(body[:entry].sum())
        scale = 1.05 * int(body.sum()) / done if done else 0.0

        def room(array: Any, filled: int, worst: int) -> Any:
            need = filled + worst + SLACK
            return array if len(array) >= need else grown(array, max(need, int(scale * filled)))

        self.keys = self.keys._replace(data=room(self.keys.data, int(state.key), worst))
        if self.wanted.headers:
            # A header takes two bytes at least. Offsets are one more than there are headers.
            old, count = self.headers, int(state.header)
            self.headers = old._replace(
                key_at=room(old.key_at, count, worst // 2),
                key=room(old.key, int(state.header_key), worst),
                null=room(old.null, int(state.null_header_values), worst // 2),
                value_at=room(old.value_at, count, worst // 2),
                value=room(old.value, int(state.header_value), worst),
            )

    # --- columns that differ from record to record ---

    def _offset(self) -> pa.Array:
        every = self.used["row"]
        return self._of(pa.Array.from_buffers(pa.int64(), every, [None, pa.py_buffer(self.columns.offset)], 0))

    def _timestamp(self) -> pa.Array:
        every, nulls = self.used["row"], self.used["null_timestamps"]
        valid = _bitmap(self.columns.timestamp_valid, nulls)
        return self._of(pa.Array.from_buffers(TIMESTAMP, every, [valid, pa.py_buffer(self.columns.timestamp)], nulls))

    def _key(self) -> pa.Array:
        return self._of(self._bytes(self.keys, self.used["null_keys"], self.used["key"]))

    def _value(self) -> pa.Array:
        return self._of(self._bytes(self.values, self.used["null_values"], self.used["value"]))

    def _bytes(self, texts: Texts, nulls: int, size: int) -> pa.Array:
        return _binary(pa.binary(), self.used["row"], texts.valid, nulls, texts.at, texts.data[:size])

    def _headers(self) -> pa.Array:
        if not self.used["header"]:
            return CONSTANTS.get(HEADERS, (), self.rows)
        ends = self.headers.at[self.first : self.first + self.rows + 1]
        low, high = int(ends[0]), int(ends[-1])
        keys = self._header_keys
        if keys is None:
            keys = _text(self.headers.key, self.headers.key_at[low:], high - low)
        else:
            keys = keys.slice(low, high - low)
        values = self._header_values.slice(low, high - low)
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
        buffers = [None, pa.py_buffer(ends - np.int32(low) if low else ends)]
        return pa.Array.from_buffers(HEADERS, self.rows, buffers, 0, children=[pairs])

    @cached_property
    def _header_keys(self) -> pa.Array | None:
        """The keys of all headers, where all are ASCII."""
        names = self.headers.key[: self.used["header_key"]]
        if names.size and names.max() >= 128:
            return None
        return _binary(pa.string(), self.used["header"], None, 0, self.headers.key_at, names)

    @cached_property
    def _header_values(self) -> pa.Array:
        count, nulls = self.used["header"], self.used["null_header_values"]
        valid = None
        if nulls:
            flags = np.ones(count, np.uint8)
            flags[self.headers.null[:nulls]] = 0
            valid = np.packbits(flags, bitorder="little")
        data = self.headers.value[: self.used["header_value"]]
        return _binary(pa.binary(), count, valid, nulls, self.headers.value_at, data)

    def _crc_ok(self) -> pa.Array:
        if not self.used["wrong_crcs"]:
            return CONSTANTS.get(pa.bool_(), True, self.rows)
        every = self.used["row"]
        return self._of(pa.Array.from_buffers(pa.bool_(), every, [None, pa.py_buffer(self.columns.crc_ok)], 0))

    def _sequence(self) -> pa.Array:
        if not (self.table["sequence"] >= 0).any():
            return CONSTANTS.get(pa.int32(), None, self.rows)
        numbers = self._slice(self.columns.sequence)
        return _nullable(pa.int32(), numbers, numbers >= 0)

    def _control_type(self) -> pa.Array:
        if not self.columns.control.size:
            return CONSTANTS.get(pa.string(), None, self.rows)
        numbers, which = np.unique(self._slice(self.columns.control), return_inverse=True)
        names = [None if number == _NO_CONTROL else control_type_name(number) for number in numbers.tolist()]
        return pa.array(names, pa.string()).take(pa.array(which))

    # --- columns that are the same for a whole batch ---

    def _spread(self, column: str, kind: Any) -> Any:
        return np.repeat(self.table[column].astype(kind), self.table["rows"])

    def _same(self, column: str) -> bool:
        """Whether a column of the batch table has one value only. There is a batch."""
        if self._uniform is None:
            self._uniform = _uniform(self.table)
        found = self._uniform.get(column)
        if found is None:
            values = self.table[column]
            found = self._uniform[column] = int((values == values[0]).all())
        return found == 1

    def _all_alike(self) -> bool:
        """Whether there are records, all of one format and with the same attributes."""
        return self.rows > 0 and self._same("magic") and self._same("attributes")

    def _chosen(self, column: Ints, same: bool, kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
        """``values[column[entry]]`` for the rows of each entry; ``same``: ``column`` holds one value only."""
        if not self.rows:
            return pa.array([], kind)
        if same:
            return CONSTANTS.get(kind, values[int(column[0])], self.rows)
        return pa.array(values, kind).take(pa.array(np.repeat(column, self.table["rows"])))

    def _number(self, column: str, kind: pa.DataType, none: int | None) -> pa.Array:
        """A column of the batch table over the rows; ``none`` is the number that means null."""
        if not self.rows:
            return pa.array([], kind)
        if self._same(column):
            value = int(self.table[column][0])
            if value == none:
                return CONSTANTS.get(kind, None, self.rows)
            # Numbers are too many to be kept.
            return _nullable(kind, np.full(self.rows, value, dtype_of(kind)), None)
        out = self._spread(column, dtype_of(kind))
        return _nullable(kind, out, None if none is None else out != none)

    def _timestamp_type(self) -> pa.Array:
        names, table = (*TIMESTAMP_TYPES, None), self.table
        if self._all_alike():
            one = table[0]
            kind = 2 if one["magic"] == 0 else int(one["attributes"] & LOG_APPEND_TIME != 0)
            return CONSTANTS.get(pa.string(), names[kind], self.rows)
        kinds = np.where(table["magic"] == 0, 2, table["attributes"] & LOG_APPEND_TIME != 0)
        return self._chosen(kinds, False, pa.string(), names)

    def _magic(self) -> pa.Array:
        return self._chosen(self.table["magic"], self.rows > 0 and self._same("magic"), pa.int8(), (0, 1, 2))

    def _compression(self) -> pa.Array:
        codecs = self.table["codec"]
        return self._chosen(codecs, self.rows > 0 and self._same("codec"), pa.string(), (*CODECS, None, None, None))

    def _base_offset(self) -> pa.Array:
        return self._number("base", pa.int64(), None)

    @property
    def _own_positions(self) -> bool:
        """Whether there are plain messages: other records stand where their batch or wrapper does."""
        return bool(((self.table["magic"] < 2) & (self.table["arena"] == 0)).any())

    def _position(self) -> pa.Array:
        start = self.window.starts[self.table["record_set"]]
        if self.columns.position.size:
            position = self._slice(self.columns.position) - np.repeat(start, self.table["rows"])
        else:
            position = np.repeat(self.table["origin"] - start, self.table["rows"])
        return _nullable(pa.int64(), position, None)

    def _producer_id(self) -> pa.Array:
        return self._number("producer", pa.int64(), -1)

    def _producer_epoch(self) -> pa.Array:
        return self._number("epoch", pa.int16(), -1)

    def _partition_leader_epoch(self) -> pa.Array:
        return self._number("leader", pa.int32(), -1)

    def _is_transactional(self) -> pa.Array:
        return self._flag(TRANSACTIONAL)

    def _is_control(self) -> pa.Array:
        return self._flag(CONTROL)

    def _flag(self, bit: int) -> pa.Array:
        table = self.table
        if self._all_alike():
            one = table[0]
            return CONSTANTS.get(pa.bool_(), bool(one["magic"] == 2 and one["attributes"] & bit), self.rows)
        flags = (table["attributes"] & bit != 0) & (table["magic"] == 2)
        return self._chosen(flags.view(np.uint8), False, pa.bool_(), (False, True))


@lru_cache(maxsize=64)
def _schema(names: tuple[str, ...]) -> pa.Schema:
    return SCHEMA if names == _NAMES else pa.schema([_FIELDS[name] for name in names])


def _offsets(rows: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    made = np.empty(rows + 1, np.int32)
    made[0] = 0
    return made


def _bitmap(bits: Bytes | None, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(bits) if nulls and bits is not None else None


def _binary(kind: pa.DataType, rows: int, valid: Bytes | None, nulls: int, at: Any, data: Bytes) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, [_bitmap(valid, nulls), pa.py_buffer(at), pa.py_buffer(data)], nulls)


def _nullable(kind: pa.DataType, values: Any, valid: Any) -> pa.Array:
    if valid is None or valid.all():
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)], 0)
    bits = np.packbits(valid, bitorder="little")
    nulls = len(values) - int(np.count_nonzero(valid))
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(bits), pa.py_buffer(values)], nulls)


def _text(data: Bytes, at: Any, count: int) -> pa.Array:
    """Header keys of which some are not ASCII: as they are when they are UTF-8, else with U+FFFD where they are not."""
    bounds = at[: count + 1].tolist()
    raw = data.data
    texts = [str(raw[low:high], "utf-8", "replace") for low, high in pairwise(bounds)]
    # Each byte may become a character of three.
    if 3 * (bounds[-1] - bounds[0]) >= 1 << 31 and sum(map(text_size, texts)) >= 1 << 31:
        raise LimitError("the keys of headers as text are beyond the limit of one Arrow batch")
    return pa.array(texts, pa.string())
