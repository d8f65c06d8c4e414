"""What the tables make columns with: numbers of kernels as Arrow arrays, and values that are spread over many rows.

Rules kept here:

- What is the same for many rows is made once and spread over them with ``take`` or ``repeat``. ``counts`` says over how
  many rows each value is spread; without it each is one row.
- What is the same for all rows is a part of an array that is there already (``kwire.records.constants``).
- Text of which there is little is made as a dictionary and the number of each row in it. ``filled`` makes text of it,
  unless the schema has dictionaries: whoever counts rows wants numbers, and there is nothing to copy.
- Spread text is counted before (``Texts.sizes``): the tables make batches of a size that Arrow can hold
  (``kwire.records.portions``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels.columns import spread_texts
from kwire.kernels.engine import MACHINE, choose
from kwire.kernels.layouts import ABSENT
from kwire.kernels.numbers import SLACK
from kwire.records.arrow_types import DICTIONARY, TIMESTAMP
from kwire.records.constants import CONSTANTS
from kwire.records.portions import MOST_BYTES

__all__ = [
    "Texts",
    "constant",
    "distinct",
    "filled",
    "in_type",
    "milliseconds",
    "nullable",
    "over",
    "pick",
    "picked",
    "repeated",
    "spread",
    "status_words",
    "timestamps",
    "with_dictionaries",
]

Array = Any
_FEW = 256
"""Texts that are made whether they occur or not."""
_SMALL_TEXTS: Final = 64 << 10
"""Bytes of texts that a kernel spreads over rows, which has a copy of them: of a few short ones it takes a third of the
time of Arrow's ``take``."""
_SMALL_SPREAD: Final = 1 << 20
"""Bytes of a column for which there may be room that it does not need: then they are not counted before."""
_MOST_SPREAD: Final = (1 << 31) - 1
"""Bytes of one column."""


def filled(schema: pa.Schema, make: Callable[[str], pa.Array]) -> pa.RecordBatch:
    """A batch of ``make(name)`` for each column of ``schema``; texts may be dictionaries in either of them."""
    return pa.RecordBatch.from_arrays([in_type(make(one.name), one.type) for one in schema], schema=schema)


def in_type(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as text or as a dictionary, where it is one of these and the type is the other."""
    if isinstance(values, pa.DictionaryArray):
        return values if type_ == DICTIONARY else _decoded(values)
    return values.dictionary_encode() if type_ == DICTIONARY else values


def with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """A schema with dictionaries for its texts."""
    return pa.schema([one.with_type(DICTIONARY) if one.type == pa.string() else one for one in schema])


def _decoded(values: pa.DictionaryArray) -> pa.Array:
    texts = values.dictionary
    if not values.null_count and len(texts) == 1:
        return CONSTANTS.get(pa.string(), texts[0].as_py(), len(values))
    if values.null_count == len(values):
        return CONSTANTS.get(pa.string(), None, len(values))
    if not values.null_count and choose(0) is MACHINE:
        spread_ = _spread(texts, values.indices.to_numpy())
        if spread_ is not None:
            return spread_
    return texts.take(values.indices)


def _spread(texts: pa.Array, index: Array) -> pa.Array | None:
    """The text of each row, of some without nulls; None where it is Arrow that should do it."""
    _, ends, data = texts.buffers()
    size = 0 if data is None else len(data)
    if size > _SMALL_TEXTS or texts.null_count:
        return None
    # A copy, as of all that may be written to or not: the kernel is compiled for the one.
    ends = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].copy()
    sizes = np.diff(ends)
    room = len(index) * int(sizes.max(initial=0))
    if room > _SMALL_SPREAD:
        room = int(sizes.take(index).sum())
        if room > _MOST_SPREAD:
            return None
    given = np.zeros(size + SLACK, np.uint8)
    if data is not None:
        given[:size] = np.frombuffer(data, np.uint8)
    offsets, out = np.empty(len(index) + 1, np.int32), np.empty(room + SLACK, np.uint8)
    MACHINE(spread_texts)(index, ends, given, offsets, out)
    return pa.StringArray.from_buffers(len(index), pa.py_buffer(offsets), pa.py_buffer(out[: offsets[-1]]))


def _coded(texts: pa.Array, index: Array, mask: Array | None = None) -> pa.Array:
    """The text that each row has. ``mask``: which have none."""
    if texts.null_count:
        # Nulls are of rows, and not of a dictionary.
        none = texts.is_null().to_numpy(False)[index]
        mask, texts = none if mask is None else mask | none, texts.fill_null("")
    if mask is not None:
        index = np.where(mask, 0, index)
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32, copy=False), mask=mask), texts)


def distinct(values: Array) -> tuple[Array, Array]:
    """What ``np.unique`` gives with ``return_inverse``: the values that occur, in order, and for each which of them it
    is. Numbers from -1 on that are not much larger than there are values are not sorted for it."""
    values = np.ascontiguousarray(values)
    least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if least == most:
        # As of the clients, nearly always.
        return values[:1].copy(), np.zeros(len(values), np.int64)
    if least < -1 or most > 4 * len(values) + 1024:
        used, index = np.unique(values, return_inverse=True)
        return used, index
    shifted = values - least
    there = np.bincount(shifted) > 0
    place = np.cumsum(there) - 1
    return np.flatnonzero(there) + least, place.take(shifted)


def constant(value: str | None, n: int) -> pa.Array:
    """The same text in every row."""
    return CONSTANTS.get(DICTIONARY, value, n)


def repeated(one: pa.Array, n: int) -> pa.Array:
    """The one value of an array in every row."""
    return constant(one[0].as_py(), n) if one.type in (DICTIONARY, pa.string()) else pa.repeat(one[0], n)


def over(values: Array, counts: Array | None) -> Array:
    """Each value as often as ``counts`` says."""
    made: Array = values if counts is None else np.repeat(values, counts)
    return made


def pick(values: Sequence[str | None], numbers_: Array, counts: Array | None = None) -> pa.Array:
    """``values[number]`` for each row."""
    if len(numbers_) and numbers_.min() == numbers_.max():
        return constant(values[int(numbers_[0])], len(numbers_) if counts is None else int(counts.sum()))
    return _coded(pa.array(values, pa.string()), over(np.ascontiguousarray(numbers_), counts))


def picked(texts: pa.Array, index: Array) -> pa.Array:
    """The text that each row has, of the few that occur."""
    if len(texts) == 1:
        return constant(texts[0].as_py(), len(index))
    return _coded(texts, index)


def status_words(statuses: type[IntEnum]) -> tuple[str, ...]:
    """The word for each number of an enum of statuses: its name in lower case."""
    return tuple(statuses(number).name.lower() for number in range(len(statuses)))


def nullable(values: Array, type_: pa.DataType) -> pa.Array:
    """A column of integers that are in the range of the type, null where a value is ABSENT."""
    values, kind = np.ascontiguousarray(values), type_.to_pandas_dtype()
    absent = values == ABSENT
    if not absent.any():
        return pa.array(values.astype(kind))
    return pa.array(np.where(absent, 0, values).astype(kind), mask=absent)


def timestamps(nanoseconds: Array, counts: Array | None = None) -> pa.Array:
    """Nanoseconds since 1970 as microseconds with the time zone UTC."""
    micros = over(nanoseconds // 1000, counts)
    return pa.Array.from_buffers(TIMESTAMP, len(micros), [None, pa.py_buffer(micros)], 0)


def milliseconds(nanoseconds: Array) -> pa.Array:
    """A latency in milliseconds, null where ABSENT; not less than 0, whatever the order of capture."""
    nanoseconds = np.ascontiguousarray(nanoseconds)
    there = nanoseconds != ABSENT
    made, nulls = np.maximum(nanoseconds, 0) / 1e6, len(there) - int(np.count_nonzero(there))
    valid = pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(pa.float64(), len(made), [valid, pa.py_buffer(made)], nulls)


class Texts:
    """Texts of which each of many things has one: ``numbers`` says which, -1 for none.

    ``values`` and their ``sizes`` in bytes are by that number. Nothing is copied before ``column`` is called.
    """

    def __init__(self, values: Sequence[str | None], sizes: Sequence[int], numbers_: Array) -> None:
        self._values = values
        self._sizes = sizes
        self._numbers = numbers_

    def sizes(self) -> Array:
        """The bytes that each thing's text has, and 0 at the end: what -1, for no thing, finds."""
        made = np.array([*self._sizes, 0], np.int64)
        return np.append(made[self._numbers], 0)

    def among(self, wanted: Container[str | None]) -> Array:
        """Which things have one of these texts."""
        right = np.array([one in wanted for one in self._values] + [False], bool)
        made: Array = right[self._numbers]
        return made

    def column(self, which: Array, counts: Array | None = None) -> pa.Array:
        """The texts of the things ``which`` (-1: null) as a column."""
        number = self._numbers[which] if len(self._numbers) else np.full(len(which), -1)
        if len(which) and which.min() < 0:
            number = np.where(which < 0, -1, number)
        if len(number) and number.min() == number.max():
            value = None if number[0] < 0 else self._values[int(number[0])]
            return constant(value, len(number) if counts is None else int(counts.sum()))
        number = over(number, counts)
        absent = number < 0
        mask = absent if absent.any() else None
        if len(self._values) <= max(_FEW, len(number) // 4) and sum(self._sizes) <= MOST_BYTES:
            return _coded(pa.array(self._values, pa.string()), number, mask)
        # Only those that occur: all together may be more than an Arrow array can hold.
        there = np.zeros(len(self._values) + 1, bool)
        there[number] = True
        place = np.cumsum(there) - 1
        values = pa.array([self._values[one] for one in np.flatnonzero(there[:-1]).tolist()], pa.string())
        return _coded(values, place[number], mask)


def spread(values: Array, type_: pa.DataType, which: Array, counts: Array | None = None) -> pa.Array:
    """Numbers of a few things as a column of many rows: ``which`` is the thing of each, -1 for none; ABSENT is null.
    They are in the range of the type."""
    made = np.append(values, ABSENT)[which]
    absent = made == ABSENT
    kind = type_.to_pandas_dtype()
    if not absent.any():
        return pa.array(over(made.astype(kind), counts))
    return pa.array(over(np.where(absent, 0, made).astype(kind), counts), mask=over(absent, counts))
