"""The batches in record sets: where each is, whether its checksum holds, and its bytes decompressed.

``Window`` is the first half of what ``kwire.records.columnar`` does: steps 1 and 2 of its strategy. It makes the batch
table (``kwire.kernels.layouts.BATCH``) and the arena, into which everything compressed is unpacked.

Rules kept here:

- A batch that cannot be read is reported in ``problems``. Those before and after it are kept.
- Decompression is bounded by ``limits`` and by the budget of the whole run.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from kwire.errors import DecodeError, needed

with needed("records as columns", "capture"):
    import numpy as np

from kwire.kernels.engine import choose
from kwire.kernels.layouts import BATCH, FORM, HEADER_CURSOR, PROBLEM, READING, ProblemCode, joined
from kwire.kernels.numbers import grown
from kwire.kernels.records import (
    DONE,
    FORM_HEADERS,
    FORM_WORDS,
    Scratch,
    scan,
    uniform,
)
from kwire.limits import Limits
from kwire.records.budget import Budget
from kwire.records.crc import crc32, crc32c
from kwire.wire import CODEC

__all__ = [
    "NO_TABLE",
    "SCRATCH",
    "Bytes",
    "Ints",
    "Table",
    "Window",
    "counts_of",
    "sizes",
    "uniform_columns",
    "writable",
]

Ints = np.ndarray[Any, np.dtype[np.int64]]
"""Type: a numpy array of numbers (``int64``)."""
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
"""Type: a numpy array of bytes (``uint8``)."""
Table = Any
"""A table of batches: a numpy array of ``kwire.kernels.layouts.BATCH``."""

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

FEW: Final = 1 << 15
"""Rows of a batch table up to which its columns are compared all together."""


def sizes(table: Table) -> Ints:
    """The bytes of each row of a batch table."""
    made: Ints = table["end"] - table["body"]
    return made


def counts_of(table: Table) -> Ints:
    """The most records that each row of a batch table can have: one has 7 bytes at least."""
    counts = table["count"]
    made: Ints = np.where(table["magic"] == 2, np.minimum(counts, sizes(table) // 7), counts)
    return np.maximum(made, 0, out=made)


def uniform_columns(table: Table) -> dict[str, int]:
    """Which columns of a batch table have one value only, where it is faster to look at all columns at once."""
    if not 0 < len(table) <= FEW:
        return {}
    columns = table.view(np.int64).reshape(len(table), -1)
    same = np.empty(columns.shape[1], np.uint8)
    choose(0)(uniform)(columns, same)
    return dict(zip(table.dtype.names, same.tolist(), strict=True))


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


def writable(array: Bytes) -> Bytes:
    """The array without gaps and as kernels take it, although they do not write to it. Raises ``ValueError``."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError("the buffer must be a one-dimensional array of uint8")
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else np.asarray(_Memory(array))


class PerThread(threading.local):
    """What the last call in this thread leaves to the next.

    ``arena`` is used again: fresh memory costs more than decompressing into it. Nothing that leaves this package refers
    to it: keys and values are copied. ``shares``: how much there was, for each byte of records, of what
    ``columns.GUESSED`` names. The windows of a capture resemble each other. So an output that is large enough at first
    need not be made larger and copied. ``form`` is memory that ``read_records`` works in.
    """

    KEPT: Final = 64 << 20
    """An arena larger than this is given back."""

    def __init__(self) -> None:
        self.arena: Bytes = np.empty(1 << 16, np.uint8)
        self.shares: list[float] = [0.1, 0.0, 0.0, 0.0, 0.0]
        self.form: Scratch = Scratch(
            words=np.empty(FORM_WORDS, np.uint64),
            places=np.empty(2 * FORM_HEADERS, np.int64),
            form=np.zeros(1, FORM),
            headers=np.zeros(1, HEADER_CURSOR),
        )


SCRATCH: Final[PerThread] = PerThread()
"""Memory of the current thread that calls use again (``PerThread``)."""
NO_TABLE: Final[Table] = np.zeros(0, BATCH)
"""A table without batches (numpy array of ``BATCH``, length 0)."""


class Window:
    """Finds the batches of all sets: the batch table, in the order of the records, and the arena."""

    def __init__(self, buffer: Bytes, starts: Ints, lengths: Ints, limits: Limits, budget: Budget) -> None:
        self.buffer = buffer
        self.starts = starts
        self.lengths = lengths
        self.limits = limits
        self.consumed: Ints = np.zeros(starts.size, np.int64)
        self.problems: list[tuple[int, int, str]] = []
        # Its own until it is closed: between two pieces, somebody else may decode in this thread.
        self.arena: Bytes = SCRATCH.arena
        SCRATCH.arena = np.empty(0, np.uint8)
        self._used = 0
        self.table: Table = NO_TABLE
        self.top: Table = NO_TABLE
        """The batches and messages as they are sent, those that hold others too."""
        self.stored: Ints = np.zeros(0, np.int64)
        """The bytes that each of those has."""
        self._budget = budget
        self._reported = 0
        self._omitted = 0
        self._last = (0, 0)

    def find(self, *, check: bool = True, unpack: bool = True) -> None:
        """``check``: checksums are looked at; ``unpack``: what is compressed is decompressed."""
        table = self._scan(self.buffer, self.starts, self.lengths, NO_TABLE, self.consumed, check)
        self.top, self.stored = table, sizes(table)
        if not unpack:
            return
        data = self.buffer
        tables: list[Table] = []
        parents = NO_TABLE
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
        """Give the arena back. What was read does not refer to it."""
        if self.arena.size <= PerThread.KEPT:
            SCRATCH.arena = self.arena

    def _scan(self, data: Bytes, starts: Ints, lengths: Ints, parents: Table, consumed: Ints, check: bool) -> Table:
        size = int(lengths.sum())
        run = choose(size, sets=starts.size)(scan)
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
        left = max(self.limits.problems - self._reported, 0)
        for record_set, position, code, a, b in problems[:left].tolist():
            self._say(record_set, position, _SENTENCES[code].format(a=a, b=b))
        if len(problems) > left:
            self._leave_out(len(problems) - left, int(problems["record_set"][-1]), int(problems["position"][-1]))

    def _say(self, record_set: int, position: int, text: str) -> None:
        if self._reported >= self.limits.problems:
            self._leave_out(1, record_set, position)
            return
        self._reported += 1
        self.problems.append((record_set, position - int(self.starts[record_set]), text))

    def _leave_out(self, count: int, record_set: int, position: int) -> None:
        self._omitted += count
        self._last = max(self._last, (record_set, position - int(self.starts[record_set])))

    def report_omitted(self) -> None:
        """Say how many problems there were beyond the limit, since this was asked before."""
        if self._omitted:
            text = f"{self._omitted} more problems, up to here: {self.limits.said('problems')}"
            self.problems.append((*self._last, text))
            self._omitted, self._last = 0, (0, 0)

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
            try:
                part = self._budget.decompress(attributes & CODEC, data[body:end], magic=magic)
            except DecodeError as wrong:
                self._drop(table, row, wrong.message)
                continue
            size = len(part)
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
        """Put the rows of all levels into one table, those of a wrapper in its place."""
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

    The wrapper has the offset of its last message, so the base is its offset less that message's. A producer may have
    left the wrapper's offset at 0 for the broker to set. Then there is no base yet, and the offsets stay.
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
