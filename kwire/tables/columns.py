"""What the tables make columns with: numbers of kernels as Arrow arrays, and values that are spread over many rows.

Rule kept here: what is the same for many rows is made once and spread over them with ``take`` or ``repeat``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.kernels.layouts import ABSENT
from kwire.records.arrow_types import TIMESTAMP

__all__ = [
    "Spread",
    "constant",
    "filled",
    "milliseconds",
    "numbers",
    "pick",
    "status_words",
    "timestamps",
]

Array = Any


def filled(schema: pa.Schema, make: Callable[[str], pa.Array]) -> pa.RecordBatch:
    """A batch of ``make(name)`` for each column of ``schema``."""
    return pa.RecordBatch.from_arrays([make(name) for name in schema.names], schema=schema)


def constant(value: str, n: int) -> pa.Array:
    """The same text in every row."""
    return pa.repeat(pa.scalar(value, pa.string()), n)


def pick(values: Sequence[str], numbers_: Array) -> pa.Array:
    """``values[number]`` for each row."""
    if len(numbers_) and numbers_.min() == numbers_.max():
        return constant(values[int(numbers_[0])], len(numbers_))
    return pa.array(values, pa.string()).take(pa.array(np.ascontiguousarray(numbers_)))


def status_words(statuses: type[IntEnum]) -> tuple[str, ...]:
    """The word for each number of an enum of statuses: its name in lower case."""
    return tuple(statuses(number).name.lower() for number in range(len(statuses)))


def numbers(values: Array, type_: pa.DataType, low: int, high: int) -> pa.Array:
    """A column of a smaller type, null where a value is ABSENT."""
    absent = values == ABSENT
    assert values[~absent].size == 0 or (values[~absent].min() >= low and values[~absent].max() <= high)
    return pa.array(np.where(absent, 0, values), mask=absent).cast(type_)


def timestamps(nanoseconds: Array) -> pa.Array:
    """Nanoseconds since 1970 as microseconds with the time zone UTC."""
    return pa.array(nanoseconds // 1000).cast(pa.timestamp("us")).cast(TIMESTAMP)


def milliseconds(nanoseconds: Array) -> pa.Array:
    """A latency in milliseconds, null where ABSENT; not less than 0, whatever the order of capture."""
    absent = nanoseconds == ABSENT
    return pa.array(np.maximum(np.where(absent, 0, nanoseconds), 0) / 1e6, mask=absent)


class Spread:
    """Values of a few things as columns of many rows: ``which`` is the thing of each row, -1 for none."""

    def __init__(self, which: Array) -> None:
        self._index = pa.array(np.maximum(which, 0), mask=which < 0)

    def text(self, values: pa.Array) -> pa.Array:
        """A column of text."""
        # Often all things of a window have the same value, and none is missing.
        if len(values) and self._index.null_count == 0 and values.null_count in (0, len(values)):
            only = values[0]
            if pc.all(pc.equal(values, only), skip_nulls=False).as_py() is not False:
                return pa.repeat(only, len(self._index))
        return values.take(self._index)

    def number(self, values: Array, type_: pa.DataType) -> pa.Array:
        """A column of numbers, null where ABSENT."""
        return pa.array(values, mask=values == ABSENT).cast(type_).take(self._index)
