"""What the tables make columns with: numbers of kernels as Arrow arrays, and values that are spread over many rows.

Rules kept here:

- A value of many rows is made once and spread over them with ``take`` or ``repeat``. ``counts`` says over how many rows
  each value is spread. Without it each value is one row.
- A value of all rows is a part of an array that exists already (``kwire.records.constants``).
- A column with few different texts is a ``Text``: these texts, and the number of each row among them. ``filled`` makes
  text of it, or a dictionary if the schema has them. Whoever counts rows wants numbers, and nothing has to be copied.
- Spread text is counted first (``Texts.sizes``). The tables make batches of a size that Arrow can hold
  (``kwire.records.batching``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels.layouts import ABSENT, NO_TIME
from kwire.records.arrow_types import DICTIONARY, TIMESTAMP, dtype_of
from kwire.records.batching import MOST_BYTES
from kwire.records.constants import CONSTANTS
from kwire.records.words import Words

__all__ = [
    "Column",
    "Text",
    "Texts",
    "Words",
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
_TEXT: Final = pa.string()


class Text:
    """A column with few different texts, not made yet. ``in_type`` makes it, and so does a reader of columns by Arrow's
    protocol."""

    def __len__(self) -> int:
        raise NotImplementedError

    def plain(self) -> pa.Array:
        """As text."""
        raise NotImplementedError

    def coded(self) -> pa.Array:
        """As a dictionary."""
        raise NotImplementedError

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:  # noqa: A002 - Arrow calls it so
        return in_type(self, pa.string() if type is None else type)


class _Same(Text):
    """The same in every row."""

    def __init__(self, value: str | None, rows: int) -> None:
        self.value = value
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def plain(self) -> pa.Array:
        return CONSTANTS.get(_TEXT, self.value, self._rows)

    def coded(self) -> pa.Array:
        return CONSTANTS.get(DICTIONARY, self.value, self._rows)


class _Picked(Text):
    """One of a few for each row, by its number. ``mask``: which have none."""

    def __init__(self, words: Words, index: Array, mask: Array | None = None) -> None:
        self._words = words
        self._index = np.ascontiguousarray(index, np.int32)
        self._mask = mask

    def __len__(self) -> int:
        return len(self._index)

    def plain(self) -> pa.Array:
        made = self._words.spread(self._index) if self._mask is None else None
        return self._words.texts.take(pa.array(self._index, mask=self._mask)) if made is None else made

    def coded(self) -> pa.Array:
        texts, none = self._words.coded
        index, mask = self._index, self._mask
        if mask is not None:
            index = np.where(mask, 0, index)
        if none is not None:
            mask = none[index] if mask is None else mask | none[index]
        return pa.DictionaryArray.from_arrays(pa.array(index, mask=mask), texts)


Column = Any
"""An Arrow array, or a ``Text``."""


def filled(schema: pa.Schema, make: Callable[[str], Column]) -> pa.RecordBatch:
    """A batch of ``make(name)`` for each column of ``schema``. Texts may be dictionaries in either of them."""
    made = [in_type(make(name), type_) for name, type_ in zip(schema.names, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def in_type(values: Column, type_: pa.DataType) -> pa.Array:
    """A column as text or as a dictionary, where it is one of these and the type is the other."""
    if isinstance(values, Text):
        return values.coded() if type_ == DICTIONARY else values.plain()
    coded = isinstance(values, pa.DictionaryArray)
    if type_ == DICTIONARY:
        return values if coded else values.dictionary_encode()
    return values.dictionary_decode() if coded else values


def with_dictionaries(schema: pa.Schema) -> pa.Schema:
    """A schema with dictionaries for its texts."""
    return pa.schema([one.with_type(DICTIONARY) if one.type == _TEXT else one for one in schema])


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


def constant(value: str | None, n: int) -> Text:
    """The same text in every row."""
    return _Same(value, n)


def repeated(one: Column, n: int) -> Column:
    """The one value of a column in every row."""
    if isinstance(one, Text):
        return constant(one.plain()[0].as_py(), n)
    return pa.repeat(one[0], n)


def over(values: Array, counts: Array | None) -> Array:
    """Each value as often as ``counts`` says."""
    made: Array = values if counts is None else np.repeat(values, counts)
    return made


def pick(values: Sequence[str | None], numbers_: Array, counts: Array | None = None) -> Text:
    """``values[number]`` for each row."""
    if len(numbers_) and numbers_.min() == numbers_.max():
        return constant(values[int(numbers_[0])], len(numbers_) if counts is None else int(counts.sum()))
    return _Picked(Words(values), over(numbers_, counts))


def picked(words: Words, index: Array) -> Text:
    """The text that each row has, of the few that occur."""
    if len(words) == 1:
        return constant(words.texts[0].as_py(), len(index))
    return _Picked(words, index)


def status_words(statuses: type[IntEnum]) -> tuple[str, ...]:
    """The word for each number of an enum of statuses: its name in lower case."""
    return tuple(statuses(number).name.lower() for number in range(len(statuses)))


def nullable(values: Array, type_: pa.DataType) -> pa.Array:
    """A column of integers that are in the range of the type, null if a value is ABSENT."""
    values, kind = np.ascontiguousarray(values), dtype_of(type_)
    absent = values == ABSENT
    if not absent.any():
        return pa.array(values.astype(kind))
    return pa.array(np.where(absent, 0, values).astype(kind), mask=absent)


def timestamps(nanoseconds: Array, counts: Array | None = None) -> pa.Array:
    """Nanoseconds since 1970 as microseconds with the time zone UTC, null where NO_TIME."""
    unknown = nanoseconds == NO_TIME
    if unknown.any():
        known = over(np.where(unknown, 0, nanoseconds // 1000), counts)
        return pa.array(known, mask=over(unknown, counts)).view(TIMESTAMP)
    micros = over(nanoseconds // 1000, counts)
    return pa.Array.from_buffers(TIMESTAMP, len(micros), [None, pa.py_buffer(micros)], 0)


def milliseconds(nanoseconds: Array) -> pa.Array:
    """A latency in milliseconds, null where ABSENT. Not less than 0, whatever the order of capture."""
    nanoseconds = np.ascontiguousarray(nanoseconds)
    there = nanoseconds != ABSENT
    made, nulls = np.maximum(nanoseconds, 0) / 1e6, len(there) - int(np.count_nonzero(there))
    valid = pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(pa.float64(), len(made), [valid, pa.py_buffer(made)], nulls)


class Texts:
    """Texts, one for each of many things: ``numbers`` says which, -1 for none.

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

    def numbered(self, number: Callable[[str], int]) -> Array:
        """The number that ``number`` gives for the text of each thing, -1 for none. It is asked once for each text."""
        used, index = distinct(self._numbers)
        of = [-1 if one < 0 or (text := self._values[one]) is None else number(text) for one in used.tolist()]
        made: Array = np.array(of, np.int64)[index]
        return made

    def among(self, wanted: Container[str | None]) -> Array:
        """Which things have one of these texts."""
        right = np.array([one in wanted for one in self._values] + [False], bool)
        made: Array = right[self._numbers]
        return made

    def column(self, which: Array, counts: Array | None = None) -> Text:
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
            return _Picked(Words(self._values), number, mask)
        # Only those that occur: all together may be more than an Arrow array can hold.
        there = np.zeros(len(self._values) + 1, bool)
        there[number] = True
        place = np.cumsum(there) - 1
        values = [self._values[one] for one in np.flatnonzero(there[:-1]).tolist()]
        return _Picked(Words(values), place[number], mask)


def spread(values: Array, type_: pa.DataType, which: Array, counts: Array | None = None) -> pa.Array:
    """Numbers of a few things as a column of many rows. ``which`` is the thing of each row, -1 for none. ABSENT is
    null. The numbers are in the range of the type."""
    made = np.append(values, ABSENT)[which]
    absent = made == ABSENT
    kind = dtype_of(type_)
    if not absent.any():
        return pa.array(over(made.astype(kind), counts))
    return pa.array(over(np.where(absent, 0, made).astype(kind), counts), mask=over(absent, counts))
