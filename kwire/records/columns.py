"""Records of batches as Arrow columns: steps 3 and 4 of what ``kwire.records.columnar`` does.

``Columns`` reads the records of a batch table with a kernel. It makes arrays of what differs between records, and
spreads what is the same for a batch over its rows.

Rules kept here:

- Rows and bytes are counted before columns are made of them. No offset of an Arrow array can pass 2**31 - 1.
- Only Arrow types that Spark accepts (no dictionaries, no large or view types, microseconds in UTC).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kwire.errors import LimitError, needed

with needed("records as columns", "capture"):
    import numpy as np
    import pyarrow as pa

from kwire.kernels.engine import choose
from kwire.kernels.layouts import PROBLEM, READING
from kwire.kernels.numbers import SLACK, grown
from kwire.kernels.records import (
    DONE,
    FULL_OF_PROBLEMS,
    Columns,
    HeaderColumns,
    Texts,
    Wanted,
    read_records,
)
from kwire.records.arrow_types import HEADERS, POSITION, SCHEMA, TIMESTAMP, dtype_of
from kwire.records.batching import MOST_BYTES, MOST_ROWS, batch_ranges, text_size
from kwire.records.buffers import BUFFERS
from kwire.records.compression import CODECS
from kwire.records.constants import CONSTANTS
from kwire.records.control import control_type_name
from kwire.records.objects import TIMESTAMP_TYPES
from kwire.records.window import SCRATCH, Bytes, Ints, Table, Window, counts_of, sizes, uniform_columns
from kwire.wire import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

__all__ = ["FIELDS", "NAMES", "Piece", "RecordColumns", "RecordReader", "place_of"]

FIELDS: Final = {field.name: field for field in (*SCHEMA, POSITION)}
"""Columns of records by name (dict of str to ``pyarrow.Field``), with the ``position`` that only segments have."""
NAMES: Final = tuple(SCHEMA.names)
"""Names of the columns of records (tuple of str), in order."""

_NO_CONTROL: Final = -100_000
GUESSED: Final = ["key", "header", "header_key", "header_value", "null_header_values"]
MOST_ROWS_TOGETHER: Final = 1 << 25
"""Rows of one batch where it cannot be cut.

Columns stay below 2 GiB even with the longest text that is the same for all records.

That text has 64 bytes; the words of this module have a quarter of that.
"""


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """What ``decode_sets`` found.

    - ``batch``: a ``pyarrow.RecordBatch``, one row per record, in the order of the sets and of the records in them.
    - ``set_index``: int32 array, for each row the record set that it came from.
    - ``problems``: what could not be read, as (record set, byte offset in that set, sentence), in that order. Inside
      compressed data the byte offset is that of the batch or outermost wrapper.
    - ``consumed``: int64 array, how many bytes of each set were read. It is less than the set's length in two cases.
      The last entry is cut off, or a problem made it impossible to find the next entry.
    """

    batch: pa.RecordBatch
    set_index: np.ndarray[Any, np.dtype[np.int32]]
    problems: list[tuple[int, int, str]]
    consumed: Ints


class Piece(NamedTuple):
    """Some of the records of some sets, in their order.

    ``after`` is where the records of the next piece begin: (record set, byte in that set), None after the last one.
    Problems are reported as soon as they are found: they may belong after records of later pieces.
    """

    found: RecordColumns
    after: tuple[int, int] | None


def place_of(window: Window, row: Any) -> tuple[int, int]:
    """Where a row of the batch table stands: its record set, and the byte in that."""
    record_set = int(row["record_set"])
    return record_set, int(row["origin"]) - int(window.starts[record_set])


class RecordReader:
    """Reads the records of some batches of a window and puts their columns together."""

    def __init__(self, window: Window, names: tuple[str, ...], table: Table) -> None:
        self.window = window
        self.names = names
        self.table: Table = table
        self.most: int = int(counts_of(table).sum())
        """Records that there can be."""

    def read(self) -> None:
        """Read the records. Raises ``LimitError`` where Arrow arrays cannot hold them."""
        body = sizes(self.table)
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
        self.window.report_omitted()
        return self._between(0, self.used["row"], self.table)

    def pieces(self, after: tuple[int, int] | None) -> Iterator[Piece]:
        """What was read; ``after`` is where the next piece begins."""
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
                    number, at = place_of(self.window, table[0])
                    if self.columns.position.size:
                        at = int(self.columns.position[last]) - int(self.window.starts[number])
                    then = number, at
            try:
                found = self._between(first, last - first, part)
            except LimitError as error:
                number, at = place_of(self.window, part[0])
                self.window.problems.append((number, at, error.message))
                part = part.copy()
                part["rows"] = 0
                found = self._between(first, 0, part)
            yield Piece(found, then)

    def _cuts(self, rows: int) -> Iterator[tuple[int, int]]:
        """Where to cut the records that were read."""
        if rows <= MOST_ROWS and int(sizes(self.table).sum()) <= MOST_BYTES:
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
        return batch_ranges(costs)

    def _between(self, first: int, rows: int, table: Table) -> RecordColumns:
        """The batch of ``rows`` records from ``first`` on.

        ``table`` has the rows of the batch table that they belong to, with as many records.
        """
        window, names = self.window, self.names
        self.first: int = first
        self.rows: int = rows
        self.table = table
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
        """Make the outputs for ``rows`` records in ``size`` bytes.

        Those of headers and keys are as large as they were per byte in the window before.
        """
        names, table = self.names, self.table
        self.wanted: Wanted = Wanted("key" in names, "value" in names, "headers" in names, "crc_ok" in names)
        controls = "control_type" in names and bool((table["attributes"] & CONTROL).any())
        timestamp_valid, crc_ok, key_valid, value_valid = np.full((4, (rows + 7) // 8), 0xFF, np.uint8)
        expected = [min(int(share * 1.05 * size), size) + 16 for share in SCRATCH.shares]
        if not self.wanted.headers:
            expected[1:] = 0, 0, 0, 0
        keys, headers, header_keys, header_values, null_headers = expected
        self.columns: Columns = Columns(
            offset=np.empty(rows, np.int64),
            timestamp=np.empty(rows, np.int64),
            timestamp_valid=timestamp_valid,
            sequence=np.empty(rows, np.int32),
            crc_ok=crc_ok,
            control=np.full(rows if controls else 0, _NO_CONTROL, np.int32),
            position=np.empty(rows if POSITION.name in names and self._own_positions else 0, np.int64),
        )
        self.keys: Texts = Texts(
            valid=key_valid,
            at=_offsets(rows if self.wanted.key else 0),
            data=np.empty((keys if self.wanted.key else 0) + SLACK, np.uint8),
        )
        self.values: Texts = Texts(
            valid=value_valid,
            at=_offsets(rows if self.wanted.value else 0),
            data=BUFFERS.take(size if self.wanted.value else SLACK),
        )
        self.headers: HeaderColumns = HeaderColumns(
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
                SCRATCH.form,
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
        seen = [self.used[name] / size for name in GUESSED]
        if self.wanted.key:
            SCRATCH.shares[0] = seen[0]
        if self.wanted.headers:
            SCRATCH.shares[1:] = seen[1:]
        window._tell(problems[: self.used["problems"]])

    def _grow(self, body: Ints, state: Any) -> None:
        """Make space for the entry that did not fit.

        There is enough for it at its worst, and for the rest as far as the records so far allow an estimate.
        """
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
            self._uniform = uniform_columns(self.table)
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
    return SCHEMA if names == NAMES else pa.schema([FIELDS[name] for name in names])


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
    """Header keys some of which are not ASCII.

    Valid UTF-8 stays as it is; elsewhere U+FFFD stands for what is not.
    """
    bounds = at[: count + 1].tolist()
    raw = data.data
    texts = [str(raw[low:high], "utf-8", "replace") for low, high in pairwise(bounds)]
    # Each byte may become a character of three.
    if 3 * (bounds[-1] - bounds[0]) >= 1 << 31 and sum(map(text_size, texts)) >= 1 << 31:
        raise LimitError("the keys of headers as text are beyond the limit of one Arrow batch")
    return pa.array(texts, pa.string())
