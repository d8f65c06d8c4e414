"""Batches of tables as rules look at them, and tallies: how often something was seen by key, when, and where.

Strategy: there may be a key for each client or partition, so tallies are columns and not objects. A batch adds a row
for each key and step of time. Such rows wait until they are many. Then rows of one key and step become one. Texts are
numbers as soon as a batch is there: several rules group by the same columns.

Rules kept here:

- Nothing is done for single rows in Python, and memory grows with the number of keys, not with the traffic.
- Keys stand in the order in which they were seen first. How often is exact; where is the first ``MOST_EVIDENCE``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.report.sums import LATEST, UNDATED, tuples

__all__ = [
    "MOST_EVIDENCE",
    "Array",
    "Rows",
    "Tallies",
    "Tally",
    "Totals",
    "Where",
    "WithEarlier",
    "among",
    "firsts",
    "numbers",
    "rows_of",
]

MOST_EVIDENCE: Final = 10
"""Frames or connections that are kept of a key."""
_STEP: Final = 10_000_000
_STEPS: Final = 6
"""Times are counted by steps of ten seconds; six of them are a minute, wherever it begins."""
_MOST_STEPS: Final = 8640
"""How many steps of a key are distinguished: a day.

Of more steps the last are kept.
"""
_LONG_AGO: Final = -(1 << 62)
"""The step of all others."""
_WAITING: Final = 1 << 14
"""Rows that wait at least."""
_CLOSE: Final = 1 << 31
"""Numbers that are no larger are keys as they are."""
_MOST_NUMBERS: Final = 1 << 62
"""Products of how many values columns have stay below."""
_MANY: Final = 256
"""From this many texts on it is worth asking first whether they are all the same."""
_FEW: Final = 4
"""If fewer than one row in this many is wanted, only these rows are looked at."""

Array = Any
Where = tuple[str, int, int | None]
"""Capture, connection, frame."""


# --- rows -------------------------------------------------------------------------------------------------------------


class Rows:
    """A batch of a table, and what rules ask of it: which rows, and columns as numbers.

    Row numbers are arrays.
    """

    unconfirmed: int = 0
    """Rows of ``frames`` with that status, which are left out: nobody may have sent them."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._masks: dict[Any, Array] = {}
        self._where: dict[Any, Array] = {}
        self._coded: dict[str, _Codes] = {}
        self._numbers: dict[tuple[str, Any], Array] = {}

    def where(self, **wanted: Any) -> Array:
        """The rows in which columns have a value, or one of a tuple of values."""
        key = tuple(wanted.items())
        found = self._where.get(key)
        if found is None:
            mask = np.ones(self.table.num_rows, bool)
            for each in key:
                mask &= self.mask(*each)
            found = self._where[key] = np.flatnonzero(mask)
        return found

    def mask(self, name: str, value: Any) -> Array:
        """Whether each row has a value, or one of a tuple of values, in a column."""
        found = self._masks.get((name, value))
        if found is None:
            if pa.types.is_dictionary(self.table.schema.field(name).type):
                of, _, texts = self.coded(name)
                found = np.append(_same(texts, value).to_numpy(False), False)[of]
            else:
                found = _same(self.table[name], value).to_numpy()
            self._masks[name, value] = found
        return found

    def valid(self, *names: str) -> Array:
        """In which rows, of all, none of these columns is null."""
        mask = np.ones(self.table.num_rows, bool)
        for name in names:
            if self.table[name].null_count:
                mask &= pc.is_valid(self.table[name]).to_numpy()
        return mask

    def values(self, name: str, missing: int = 0) -> Array:
        """A column of integers or times (microseconds) of all rows. ``missing``: what a null is."""
        found = self._numbers.get((name, missing))
        if found is None:
            column = self.table[name]
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.int64())
            if column.null_count:
                column = pc.fill_null(column, missing)
            found = self._numbers[name, missing] = column.to_numpy()
        return found

    @property
    def _clock(self) -> str:
        names = ("frame_timestamp", "timestamp", "first_seen")
        return next(name for name in names if name in self.table.column_names)

    @property
    def stated(self) -> Array:
        """When each row was seen, in microseconds since 1970; UNDATED where the capture does not state it."""
        return self.values(self._clock, UNDATED)

    @property
    def times(self) -> Array:
        """The same to compute with.

        A row without a time counts at the latest time before it in its batch, or the first after it. UNDATED where no
        row of it has a time.
        """
        found = self.stated
        if not self.table[self._clock].null_count:
            return found
        known = np.flatnonzero(found != UNDATED)
        if not len(known):
            return found
        before = np.searchsorted(known, np.arange(len(found)), side="right") - 1
        return found[known[np.maximum(before, 0)]]

    def codes(self, name: str, at: Array) -> tuple[Array, int]:
        """A number for what each of the rows ``at`` has in a column, and how many numbers there may be."""
        if name not in self._coded and len(at) * _FEW < self.table.num_rows:
            return _codes(self.table[name].take(pa.array(at)))[:2]
        of, many, _ = self.coded(name)
        return (of if len(at) == len(of) else of[at]), many

    def coded(self, name: str) -> _Codes:
        """The same of all rows; and which values these are, if that is known."""
        found = self._coded.get(name)
        if found is None:
            found = self._coded[name] = self._code(name)
        return found

    def _code(self, name: str) -> _Codes:
        return _codes(self.table[name])

    def numbers(self, columns: Sequence[str | Array], at: Array) -> Array:
        """A number for each of the rows ``at``.

        It is the same where ``columns``, or integers of these rows, have the same values. Numbers are in the order in
        which values are seen first.
        """
        codes = [self.codes(one, at) if isinstance(one, str) else _codes(_column(one))[:2] for one in columns]
        return _together(codes, len(at))

    def part(self, columns: Sequence[str], at: Array) -> pa.Table:
        """Some rows with some columns, texts without dictionaries.

        Any column may have nulls, whatever its table says: parts of several tables are put together.
        """
        chosen = self.table.select(list(columns))
        made = chosen if len(at) == chosen.num_rows else chosen.take(pa.array(at))
        for k, one in enumerate(made.schema):
            if pa.types.is_dictionary(one.type):
                made = made.set_column(k, one.with_type(pa.string()), made[k].cast(pa.string()))
        return pa.Table.from_arrays(made.columns, names=made.column_names) if columns else made

    def totals(
        self, at: Array, keys: Sequence[str | Array], *sums: Array, between: Array | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Some rows added up by ``keys``: columns, or integers of these rows.

        Yields tuples:

        - the keys
        - how many rows there are
        - each of ``sums``: integers are added up, of floats the largest counts
        - the first and last of ``between``, which are times (LATEST and UNDATED where there is none)
        """
        if not len(at):
            return
        of = self.numbers(keys, at)
        first = firsts(of)
        columns = [one for one in keys if isinstance(one, str)]
        texts = iter(self.part(columns, at[first]).columns)
        made = [next(texts) if isinstance(one, str) else _column(one[first]) for one in keys]
        made.append(_column(np.bincount(of)))
        for one in sums:
            added = _extremes(np.maximum, of, first, one) if one.dtype.kind == "f" else _summed(of, first, one)
            made.append(_column(added))
        if between is not None:
            made.append(_column(_extremes(np.minimum, of, first, _first_of(between))))
            made.append(_column(_extremes(np.maximum, of, first, between)))
        yield from tuples(pa.table(made, [str(k) for k in range(len(made))]))

    @cached_property
    def wrong(self) -> Array:
        """Which rows of ``frames`` have errors."""
        return pc.greater(pc.fill_null(pc.list_value_length(self.table["errors"]), 0), 0).to_numpy()

    @cached_property
    def errors(self) -> Rows:
        """A row for each error of a response of ``frames``, with the columns ``error`` and ``row``."""
        at = np.flatnonzero(self.wrong)
        lists = self.table["errors"].take(pa.array(at))
        row = at[pc.list_parent_indices(lists).to_numpy()]
        flat = self.table.drop_columns("errors").take(pa.array(row))
        return Rows(flat.append_column("error", pc.list_flatten(lists)).append_column("row", pa.array(row)))


class WithEarlier(Rows):
    """Rows of a batch after a few earlier ones. What is known of the batch is not looked for again."""

    def __init__(self, few: Rows, rows: Rows, columns: Sequence[str]) -> None:
        own = rows.table.select(list(columns))
        # Texts may be dictionaries in one and not in the other.
        super().__init__(pa.concat_tables([few.table.select(list(columns)).cast(own.schema), own]))
        self._few = few
        self._rows = rows

    def mask(self, name: str, value: Any) -> Array:
        return np.append(self._few.mask(name, value), self._rows.mask(name, value))

    def valid(self, *names: str) -> Array:
        return np.append(self._few.valid(*names), self._rows.valid(*names))

    def values(self, name: str, missing: int = 0) -> Array:
        return np.append(self._few.values(name, missing), self._rows.values(name, missing))

    def _code(self, name: str) -> _Codes:
        of, many, texts = self._rows.coded(name)
        if texts is None or not pa.types.is_string(texts.type):
            return super()._code(name)
        few = self._few.table[name].cast(pa.string()).combine_chunks()
        known = pc.index_in(few, value_set=texts)
        new = pc.and_(pc.is_null(known), pc.is_valid(few))
        if pc.any(new).as_py():
            return super()._code(name)
        if few.null_count:
            many = len(texts) + 1
        return np.append(pc.fill_null(known, len(texts)).to_numpy(), of), many, texts


def rows_of(name: str, batches: Sequence[pa.RecordBatch]) -> Rows:
    """Batches of a table together.

    In ``partitions`` a topic whose name is not known has its id; ``connections`` have ``client_id``, the first of
    theirs. Those of ``frames`` that are ``unconfirmed`` are counted and left out.
    """
    table = pa.Table.from_batches(batches)
    if len(batches) > 1:
        table = table.unify_dictionaries().combine_chunks()
    if name == "partitions":
        topic, id_ = table["topic"], table["topic_id"]
        if id_.null_count < len(id_):
            at = table.column_names.index("topic")
            table = table.set_column(at, "topic", pc.coalesce(topic.cast(pa.string()), id_.cast(pa.string())))
    elif name == "connections":
        ids = table["client_ids"].combine_chunks()
        some = pc.greater(pc.fill_null(pc.list_value_length(ids), 0), 0)
        first = pc.list_flatten(pc.list_slice(ids.filter(some), 0, 1))
        of = pc.if_else(some, pc.subtract(pc.cumulative_sum(some.cast(pa.int64())), 1), None)
        table = table.append_column("client_id", first.take(of))
    elif name == "frames":
        doubted = pc.equal(table["status"], "unconfirmed")
        if pc.any(doubted).as_py():
            rows = Rows(table.filter(pc.invert(doubted)))
            rows.unconfirmed = table.num_rows - rows.table.num_rows
            return rows
    return Rows(table)


def numbers(table: pa.Table, columns: Sequence[str]) -> Array:
    """A number for each row, the same where ``columns`` have the same values, in the order in which they are seen."""
    return _together([_codes(table[name])[:2] for name in columns], table.num_rows)


def firsts(of: Array) -> Array:
    """Where each number of ``numbers`` is seen first."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(of), prepend=-1)) if len(of) else of


def _together(codes: Sequence[tuple[Array, int]], length: int) -> Array:
    made = np.zeros(length, np.int64)
    many = 1
    for of, more in codes:
        if more == 1:
            continue
        if many * more >= _MOST_NUMBERS:
            # Numbers of what there is, so that products stay small.
            encoded = pa.array(made).dictionary_encode()
            made, many = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
        made = made * more + of if many > 1 else of.astype(np.int64)
        many *= more
    return pa.array(made).dictionary_encode().indices.to_numpy()


_Codes = tuple[Array, int, pa.Array | None]


def _codes(values: pa.ChunkedArray) -> _Codes:
    """A number for each value, the same for those that are the same.

    Also: how many numbers there may be, and which values, unless these lie close together.
    """
    if pa.types.is_integer(values.type):
        # What lies close together needs no dictionary.
        ends = pc.min_max(values).as_py()
        least, most = ends["min"], ends["max"]
        if least is not None and -_CLOSE <= least <= most < _CLOSE:
            return pc.fill_null(values.cast(pa.int64()), most + 1).to_numpy() - least, most - least + 2, None
    if pa.types.is_dictionary(values.type):
        return _of_dictionary(values)
    column = values.combine_chunks()
    if _constant(column):
        return np.zeros(len(column), np.int64), 1, column[:1]
    encoded = column.dictionary_encode()
    many = len(encoded.dictionary)
    if many <= 1 and not encoded.null_count:
        return np.zeros(len(encoded), np.int64), 1, encoded.dictionary
    return pc.fill_null(encoded.indices, many).to_numpy(), many + 1, encoded.dictionary


def _of_dictionary(values: pa.ChunkedArray) -> _Codes:
    column = (values.unify_dictionaries() if values.num_chunks > 1 else values).combine_chunks()
    if column.dictionary.null_count:
        column = column.cast(pa.string()).dictionary_encode()
    texts, index = column.dictionary, column.indices
    if column.null_count:
        index = pc.fill_null(index, len(texts))
    of = index.to_numpy()
    distinct = texts.dictionary_encode()
    if len(distinct.dictionary) < len(texts):
        # Bytes that are not UTF-8 may be the same as text.
        of = np.append(distinct.indices.to_numpy(), len(distinct.dictionary))[of]
        texts = distinct.dictionary
    return of, len(texts) + bool(column.null_count), texts


def _same(values: pa.Array | pa.ChunkedArray, value: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(value, tuple):
        return pc.is_in(values, value_set=pa.array(value).cast(values.type))
    return pc.fill_null(pc.equal(values, value), False)


def _constant(texts: pa.Array) -> bool:
    """Whether all of some texts are the same, which hashing them finds out later."""
    if not pa.types.is_string(texts.type) or texts.null_count or len(texts) < _MANY or texts[0] != texts[-1]:
        return False
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset :][: len(texts) + 1]
    length = int(ends[1] - ends[0])
    if not length:
        return bool(ends[0] == ends[-1])
    if not (np.diff(ends) == length).all():
        return False
    each = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(-1, length)
    return bool((each == each[0]).all())


# --- tallies ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """How often something was seen, when (microseconds since 1970), and where."""

    count: int = 0
    amount: float = 0
    first: int | None = None
    last: int | None = None
    where: tuple[Where, ...] = ()
    steps: dict[int, int] = field(default_factory=dict)

    def join(self, other: Tally) -> None:
        """Take what another one has."""
        self.count += other.count
        self.amount += other.amount
        if other.first is not None and other.last is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)
            self.last = other.last if self.last is None else max(self.last, other.last)
        self.where += other.where[: MOST_EVIDENCE - len(self.where)]
        for step, count in other.steps.items():
            self.steps[step] = self.steps.get(step, 0) + count

    def _minutes(self) -> Iterator[tuple[int, int, int]]:
        """The first and last step of each minute, and how often it was in these."""
        now = first = 0
        order = sorted(self.steps)
        for step in order:
            now += self.steps[step]
            while order[first] <= step - _STEPS:
                now -= self.steps[order[first]]
                first += 1
            yield order[first], step, now

    @property
    def busiest(self) -> int:
        """The most in a minute."""
        return max((count for *_, count in self._minutes()), default=0)

    def busy(self, limit: int) -> tuple[int, int] | None:
        """From when to when there were minutes with so many, in microseconds since 1970."""
        found = [(first, last) for first, last, count in self._minutes() if count >= limit]
        return (found[0][0] * _STEP, found[-1][1] * _STEP + _STEP) if found else None

    def seen(self) -> dict[str, Any]:
        """What a finding says of it."""
        return {"first_seen": self.first, "last_seen": self.last, "evidence": list(self.where)}


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums by key: a row of ``keys``, and one in each array."""

    keys: pa.Table
    count: Array
    amount: Array
    first: Array
    last: Array


@dataclass(slots=True)
class _Piece:
    """Rows of tallies: their keys, and what was added."""

    keys: pa.Table
    columns: dict[str, Array]

    def __len__(self) -> int:
        return int(self.keys.num_rows)

    def take(self, at: Array) -> _Piece:
        return _Piece(self.keys.take(pa.array(at)), {name: of[at] for name, of in self.columns.items()})


def _joined(pieces: Sequence[_Piece]) -> _Piece:
    keys = pa.concat_tables([one.keys for one in pieces]).combine_chunks()
    return _Piece(keys, {name: np.concatenate([one.columns[name] for one in pieces]) for name in pieces[0].columns})


class Tallies:
    """Tallies by ``keys``, columns of the tables that are added.

    ``largest``: an amount is the largest and no sum.
    """

    def __init__(self, *keys: str, largest: bool = False) -> None:
        self._keys = keys
        self._largest = largest
        self._captures: dict[str, int] = {}
        self._pieces: list[_Piece] = []
        """The first was made of all that does not wait."""
        self._waiting = 0
        self._full = False
        """Whether there was no key without all of its evidence when rows waited no longer."""
        self._of: Array | None = None
        """The key of each row of the first piece by its number, where that is known."""
        self._made: tuple[Array, Totals] | None = None

    def add(
        self, rows: Rows, at: Array, *, count: Array | None = None, amount: Array | None = None, each: bool = False
    ) -> None:
        """Take the rows ``at`` (ascending) of a batch.

        Each counts once, or as many times as ``count`` says, with its ``amount``. ``each``: several of a key and step
        are evidence, and not only the first.
        """
        if not len(at):
            return
        times = rows.times[at]
        steps = np.where(times == UNDATED, _LONG_AGO, times // _STEP)
        times = rows.stated[at]
        codes = [rows.codes(name, at) for name in ("capture", *self._keys)]
        of = _together([*codes, _codes(_column(steps))[:2]], len(at))
        first = firsts(of)
        until = rows.values("last_seen", UNDATED)[at] if "last_seen" in rows.table.column_names else times
        columns = {
            "step": steps[first],
            "count": np.bincount(of) if count is None else _summed(of, first, count),
            "amount": np.zeros(len(first)) if amount is None else self._amounts(of, first, amount),
            "first": _extremes(np.minimum, of, first, _first_of(times)),
            "last": _extremes(np.maximum, of, first, until),
        }
        shown = first
        framed = "frame" in rows.table.column_names
        if each and not self._full:
            shown = np.flatnonzero(_ranks(of) < MOST_EVIDENCE)
            columns = {name: values[of[shown]] for name, values in columns.items()}
            again = np.ones(len(shown), bool)
            again[firsts(of[shown])] = False
            columns["count"][again] = columns["amount"][again] = 0
        elif framed:
            shown = _least(of, first, rows.values("frame")[at])
        there = at[shown]
        columns["frame"] = rows.values("frame")[there] if framed else np.full(len(there), -1)
        columns["connection"] = rows.values("connection")[there]
        columns["capture"] = self._numbered(rows.table["capture"].take(pa.array(there)))
        self._pieces.append(_Piece(rows.part(self._keys, there), columns))
        self._made = None
        self._waiting += len(there)
        if self._waiting >= max(_WAITING, len(self._pieces[0]) // 2):
            self._settle()

    @property
    def kept(self) -> int:
        """How many rows it has in memory."""
        return sum(map(len, self._pieces))

    def _amounts(self, of: Array, first: Array, amount: Array) -> Array:
        if self._largest:
            return _extremes(np.maximum, of, first, amount.astype(np.float64))
        return np.bincount(of, weights=amount)

    def _numbered(self, captures: pa.ChunkedArray) -> Array:
        """Names of captures are long, and there are few."""
        of, _, names = _codes(captures)
        assert names is not None
        known = [self._captures.setdefault(name, len(self._captures)) for name in names.to_pylist()]
        return np.array(known, np.int32)[of]

    def _settle(self) -> None:
        """Make one row of all that have the same key and step, but for those that are evidence."""
        if not self._waiting:
            return
        whole = _joined(self._pieces)
        of = numbers(whole.keys, self._keys)
        shown = np.flatnonzero(whole.columns["capture"] >= 0)
        kept = np.zeros(len(whole), bool)
        kept[shown[_ranks(of[shown]) < MOST_EVIDENCE]] = True
        self._full = bool((np.bincount(of[kept]) == MOST_EVIDENCE).all())
        self._waiting = 0
        if kept.all():
            self._pieces, self._of = [whole], of
            return
        rest = self._folded(whole.take(np.flatnonzero(~kept)))
        self._pieces, self._of = [_joined([whole.take(np.flatnonzero(kept)), rest])], None

    def _folded(self, rest: _Piece) -> _Piece:
        """One row of each key and step."""
        keys = numbers(rest.keys, self._keys)
        columns = rest.columns
        of = _together([(keys, len(rest)), _codes(_column(columns["step"]))[:2]], len(rest))
        first = firsts(of)
        made = rest.take(first)
        made.columns["count"] = _summed(of, first, columns["count"])
        made.columns["amount"] = self._amounts(of, first, columns["amount"])
        made.columns["first"] = _extremes(np.minimum, of, first, columns["first"])
        made.columns["last"] = _extremes(np.maximum, of, first, columns["last"])
        made.columns["capture"] = np.full(len(made), -1, np.int32)
        mine = keys[first]
        if np.bincount(mine).max() > _MOST_STEPS + 1:
            steps = made.columns["step"]
            late = np.lexsort((-steps, mine))
            old = late[_ranks(mine[late]) >= _MOST_STEPS]
            made.columns["step"][old] = _LONG_AGO
            return self._folded(made)
        return made

    def totals(self) -> Totals:
        """The sums by key, so far."""
        return self._all()[1]

    def _all(self) -> tuple[Array, Totals]:
        if self._made is None:
            self._settle()
            if not self._pieces:
                nothing = np.zeros(0, np.int64)
                none = Totals(pa.table({name: pa.nulls(0) for name in self._keys}), *[nothing] * 4)
                return nothing, none
            piece = self._pieces[0]
            columns = piece.columns
            of = numbers(piece.keys, self._keys) if self._of is None else self._of
            first = firsts(of)
            self._made = (
                of,
                Totals(
                    piece.keys.take(pa.array(first)),
                    _summed(of, first, columns["count"]),
                    self._amounts(of, first, columns["amount"]),
                    _extremes(np.minimum, of, first, columns["first"]),
                    _extremes(np.maximum, of, first, columns["last"]),
                ),
            )
        return self._made

    def items(self, which: Array | None = None) -> Iterator[tuple[tuple[Any, ...], Tally]]:
        """Keys and their tallies, so far. ``which``: of those of ``totals`` the ones that are true."""
        of, totals = self._all()
        if not len(of):
            return
        chosen = np.arange(len(totals.count)) if which is None else np.flatnonzero(which)
        order = np.argsort(of, kind="stable")
        begins = np.flatnonzero(np.diff(of[order], prepend=-1, append=-1))
        captures = list(self._captures)
        columns = self._pieces[0].columns
        keys = tuples(totals.keys.take(pa.array(chosen)))
        for number, key in zip(chosen.tolist(), keys, strict=True):
            mine = order[begins[number] : begins[number + 1]]
            count, step, capture, connection, frame = (
                columns[name][mine].tolist() for name in ("count", "step", "capture", "connection", "frame")
            )
            where = tuple(
                (captures[capture[k]], connection[k], frame[k] if frame[k] >= 0 else None)
                for k in range(len(mine))
                if capture[k] >= 0
            )
            steps: dict[int, int] = {}
            for one, many in zip(step, count, strict=True):
                if one != _LONG_AGO:
                    steps[one] = steps.get(one, 0) + many
            yield key, Tally(
                int(totals.count[number]), float(totals.amount[number]), _time(int(totals.first[number])),
                _time(int(totals.last[number])), where, steps,
            )  # fmt: skip


def among(keys: pa.Table, others: pa.Table) -> Array:
    """Which row of ``others``, which are distinct, each of ``keys`` is; -1: none."""
    if not keys.num_rows or not others.num_rows:
        return np.full(keys.num_rows, -1)
    of = numbers(pa.concat_tables([others, keys]), others.column_names)[others.num_rows :]
    return np.where(of < others.num_rows, of, -1)


def _first_of(times: Array) -> Array:
    """Times to find the first, which is the smallest.

    Unknown times are larger than all.
    """
    return np.where(times == UNDATED, LATEST, times)


def _time(time: int) -> int | None:
    return None if time in (LATEST, UNDATED) else time


def _column(values: Array) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])


def _ranks(of: Array) -> Array:
    """How many of the same number stand before each."""
    if not len(of):
        return of
    small = of.astype(np.uint16) if of.max() < 1 << 16 else of  # sorted by digits
    order = np.argsort(small, kind="stable")
    begins = np.flatnonzero(np.diff(of[order], prepend=-1))
    ranks = np.empty(len(of), np.int64)
    ranks[order] = np.arange(len(of)) - np.repeat(begins, np.diff(begins, append=len(of)))
    return ranks


def _summed(of: Array, first: Array, values: Array) -> Array:
    made = np.zeros(len(first), np.int64)
    np.add.at(made, of, values)
    return made


def _extremes(best: np.ufunc, of: Array, first: Array, values: Array) -> Array:
    """The smallest or largest (``best``) of the values of each number."""
    made = values[first]
    best.at(made, of, values)
    return made


def _least(of: Array, first: Array, values: Array) -> Array:
    """Which row of each number has the smallest value."""
    least = np.flatnonzero(values == _extremes(np.minimum, of, first, values)[of])
    made = np.empty(len(first), np.int64)
    made[of[least[::-1]]] = least[::-1]
    return made
