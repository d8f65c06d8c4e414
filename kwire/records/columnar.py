"""Record sets to Arrow columns, without an object per record.

``decode_sets`` is what captures and log segments use: any number of record sets in one buffer, one
``pyarrow.RecordBatch`` out. ``to_arrow`` is the same for one record set. ``decode_pieces`` and ``decode_groups`` give
several batches. Each is small whatever the sets hold. Magic 0, 1 and 2 may follow each other in any mixture.

Strategy, a window at a time. 4 to 16 MB is a good size. ``window`` does steps 1 and 2, ``columns`` 3 and 4:

1. ``scan`` walks all sets and writes the batch table: one row per batch, wrapper message or run of messages. Like
   ``read_records``, it is a kernel.
2. Checksums of large batches and of wrappers, and decompression, are calls into C libraries from Python, per batch.
   What comes out is put end to end into a second buffer, the arena. Wrapper messages hold message sets: these are
   scanned in turn, level by level, and their rows take the place of the wrapper's.
3. ``read_records`` walks the table and writes keys, values, headers and whatever else differs between records.
4. A value of a whole batch is spread over its rows. If it is the same for all batches, it is taken from a shared
   constant array. This is the usual case for codec, producer and magic.

Rules kept here:

- A batch or message that cannot be read is reported in ``problems``; everything before and after it is kept. Inside of
  a batch, a record that is wrong is left out and the next one is found by its length. A last entry that
  is cut off is no problem: brokers cut Fetch responses where the size limit falls.
- A wrong checksum is ``crc_ok`` false, nothing more. The messages inside a wrapper are right only if the wrapper is,
  and all those around it.
- Memory stays in proportion to the input: counts are bounded by bytes, decompression by ``limits``.
- Rows and bytes are counted before columns are made of them. No offset of an Arrow array can pass 2**31 - 1.
- Only Arrow types that Spark accepts (no dictionaries, no large or view types, microseconds in UTC).

Offsets, timestamps and timestamp types follow KIP-31 and KIP-32: ``docs/how-to/records.md`` explains each column.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kwire.errors import DecodeError, LimitError, needed

with needed("records as columns", "capture"):
    import numpy as np
    import pyarrow as pa

from kwire.kernels.engine import choose
from kwire.kernels.layouts import HEADER
from kwire.kernels.records import (
    LEAST_BATCH,
    LOG_OVERHEAD,
)
from kwire.kernels.segments import read_set_headers
from kwire.limits import BEYOND, DEFAULT_LIMITS, Limits
from kwire.naming import no_such
from kwire.records.arrow_types import POSITION, SCHEMA
from kwire.records.batching import batch_ranges
from kwire.records.budget import Budget
from kwire.records.columns import FIELDS, NAMES, Piece, RecordColumns, RecordReader, place_of
from kwire.records.window import Bytes, Ints, Table, Window, counts_of, sizes, writable
from kwire.wire import CODEC

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


class Group(NamedTuple):
    """Record sets that became one batch: ``sets`` of them, and ``first`` is the number of the first.

    ``found`` counts sets from that one.
    """

    first: int
    sets: int
    found: RecordColumns


class Batches(NamedTuple):
    """The batches of some sets, and messages of magic 0 and 1, in their order: what ``decode_batches`` found.

    - ``headers``: a table of ``kwire.kernels.layouts.HEADER``, whose positions count in the buffer.
    - ``set_index``: for each row the record set that it is of.
    - ``stored``: the bytes of its records as they are sent.
    - ``unpacked``: their bytes when they are decompressed.
    - ``records``: how many the batch states. -1 where that is not known.
    - ``problems`` is as in ``RecordColumns``.
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
    ``problems``, what cannot be read is appended to it and the rest is returned. Without one, the first problem is
    raised as ``DecodeError``, or as ``LimitError`` where a limit is the cause. A wrong checksum is not a problem but
    ``crc_ok`` false.
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

    Set ``i`` is ``buffer[starts[i] : starts[i] + lengths[i]]``. ``buffer`` is a uint8 array of at most 1 GiB.
    ``starts`` and ``lengths`` are int64 arrays. Sets may lie anywhere in the buffer. ``columns`` chooses columns by
    name, in the order given; what is not chosen is not copied. Never raises for what is in the buffer, with one
    exception. ``LimitError`` is raised when one batch of columns cannot hold it (2 GiB of keys and values, or
    33,554,432 records).
    """
    window, names = _opened(buffer, starts, lengths, limits, columns)
    made = RecordReader(window, names, window.table).whole()
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

    ``budget``: what the whole that this is a part of (a capture, a segment) may still decompress. Columns of a piece
    are made when it is asked for. Nothing in the buffer raises. A record that no Arrow array can hold is left out, and
    reported as a problem.
    """
    window, names = _opened(buffer, starts, lengths, limits, columns, budget)
    table = window.table
    runs = list(batch_ranges(sizes(table), counts_of(table))) or [(0, 0)]
    for first, last in runs:
        made = RecordReader(window, names, table[first:last])
        after = place_of(window, table[last]) if last < len(table) else None
        made.read()
        if last == len(table):
            window.report_omitted()
            window.close()
        yield from made.pieces(after)


def decode_groups(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
    budget: Budget | None = None,
) -> Iterator[Group]:
    """``decode_sets`` as batches of whole sets, as small as ``decode_pieces`` where sets are: at least one group.

    A set that is too large for one batch has no rows, and a problem at its byte 0. ``budget``: what all may decompress
    together. It is used up before the first group is given.
    """
    window, names = _opened(buffer, starts, lengths, limits, columns, budget)
    window.report_omitted()
    table, sets = window.table, len(window.starts)
    of_set = table["record_set"]
    totals = [np.bincount(of_set, each, minlength=sets).astype(np.int64) for each in (sizes(table), counts_of(table))]
    found = sorted(window.problems, key=lambda one: one[:2])
    places = [one[0] for one in found]
    for first, last in list(batch_ranges(*totals)) or [(0, 0)]:
        low, high = np.searchsorted(of_set, (first, last)).tolist()
        window.problems = found[bisect_left(places, first) : bisect_left(places, last)]
        try:
            made = RecordReader(window, names, table[low:high]).whole()
        except LimitError as error:
            window.problems = []
            made = RecordReader(window, names, table[:0]).whole()
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
    window.report_omitted()
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
    unpacked[of[done]] = sizes(top[packed])[done]
    inner = window.table[window.table["parent"] >= 0]
    if len(inner):
        of = among(inner)
        found = np.unique(of)
        unpacked[found] = np.bincount(of, inner["end"] - inner["pos"])[found]
        records[found] = np.bincount(of, inner["count"])[found]
    problems = sorted(window.problems, key=lambda one: one[:2])
    window.close()
    return Batches(headers, of_set, stored, unpacked, records, problems)


def _headers_of(window: Window) -> tuple[Table, Ints]:
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
) -> tuple[Window, tuple[str, ...]]:
    """The batches of all sets, and the names of the columns that are wanted."""
    names = NAMES if columns is None else tuple(columns)
    for name in names:
        if name not in FIELDS:
            raise ValueError(no_such("column", name, FIELDS))
    buffer = writable(buffer)
    starts = np.ascontiguousarray(starts, np.int64)
    lengths = np.ascontiguousarray(lengths, np.int64)
    if starts.shape != lengths.shape or starts.ndim != 1:
        raise ValueError("starts and lengths must be arrays of the same length")
    if budget is not None:
        budget.more(int(lengths.sum()))
    window = Window(buffer, starts, lengths, limits, Budget(limits) if budget is None else budget)
    window.find(check=not headers_only and "crc_ok" in names, unpack=unpack)
    return window, names


def _as_array(data: bytes | bytearray | memoryview) -> Bytes:
    return np.frombuffer(data, np.uint8)
