"""What the tables say about records that are not all right: the verdict on a checksum, and the rows of problems.

Every table with records in it (of captures, of log segments, in Spark) does three things. It decodes record sets. It
says for each record whether its checksum is right. It shows what could not be read as a row at its place. How that is
done stands here.

Rules kept here:

- A record whose checksum is wrong stays a row, with ``status`` ``corrupt``.
- A problem is a row of its own after the rows of the same place. What could be read of a batch comes first, then the
  word that the rest could not be read.
- Rows and problems together are cut into batches before anything is written for them: what they are to hold is counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kwire.errors import MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("records as columns", "capture") from _missing

from kwire.limits import BEYOND
from kwire.records.batching import MOST_BYTES, batch_ranges
from kwire.records.constants import CONSTANTS
from kwire.records.crc import WRONG_CHECKSUM

__all__ = [
    "CORRUPT",
    "CUT_OFF",
    "MALFORMED",
    "OK",
    "TOO_LARGE",
    "MixedBatch",
    "Waiting",
    "among",
    "placed",
    "problem_rows",
    "shared_out",
    "verdict",
    "words_of",
]

Ints = np.ndarray[Any, np.dtype[np.int64]]
Rows = TypeVar("Rows", pa.RecordBatch, pa.StructArray)

OK: Final = "ok"
"""Status (str): every check of the batch holds."""
CORRUPT: Final = "corrupt"
"""Status (str): the checksum of the batch is wrong."""
MALFORMED: Final = "malformed"
"""Status (str): the bytes are no records."""
CUT_OFF: Final = "cut_off"
"""Status (str): the batch goes on behind the end of the bytes."""
TOO_LARGE: Final = "too_large"
"""Status (str): the records are larger than a limit allows."""


def verdict(crc_ok: pa.Array) -> tuple[pa.Array, pa.Array]:
    """``status`` and ``error`` of rows that were read: two arrays of text, by a bool array without nulls."""
    if crc_ok.false_count == 0:
        return CONSTANTS.get(pa.string(), OK, len(crc_ok)), CONSTANTS.get(pa.string(), None, len(crc_ok))
    status = pc.if_else(crc_ok, pa.scalar(OK), pa.scalar(CORRUPT))
    return status, pc.if_else(crc_ok, pa.scalar(None, pa.string()), pa.scalar(WRONG_CHECKSUM))


def words_of(problems: Sequence[str]) -> list[str]:
    """The ``status`` of problems by their text: ``too_large`` where it is a limit, ``malformed``."""
    return [TOO_LARGE if BEYOND in text else MALFORMED for text in problems]


def problem_rows(schema: pa.Schema, count: int, values: Mapping[str, Any]) -> pa.RecordBatch:
    """``count`` rows of ``schema`` that are problems: ``status`` is ``malformed`` unless ``values`` says otherwise.

    ``values`` has a value for each row by the name of a column: a list, an array or what gives one
    (``__arrow_array__``). It may also be one value for all rows. Columns that are not in it are null; what it has
    beyond the schema is ignored.
    """
    columns = []
    for field in schema:
        value = values.get(field.name, MALFORMED if field.name == "status" else None)
        if isinstance(value, pa.Array | pa.ChunkedArray):
            columns.append(value.cast(field.type))
        elif isinstance(value, list | np.ndarray) or hasattr(value, "__arrow_array__"):
            columns.append(pa.array(value, field.type))
        else:
            columns.append(pa.repeat(pa.scalar(value, field.type), count))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def among(rows: Rows, problems: Rows, *places: Any) -> Rows:
    """``rows`` with ``problems`` put among them; both are record batches of the same schema, or both struct arrays.

    ``places`` are integer arrays, the most significant first, with the place of each row and then of each problem. In
    the same place rows come before problems, and both keep their order.
    """
    return placed(rows, problems, np.lexsort(places[::-1]))


def placed(rows: Rows, problems: Rows, order: Ints) -> Rows:
    """``rows`` and ``problems`` in ``order``: numbers of rows, then those of problems."""
    if not len(problems):
        return rows
    if isinstance(rows, pa.RecordBatch):
        both = pa.concat_batches([rows, problems])
    else:
        both = pa.concat_arrays([rows, problems])
    return both.take(pa.array(order))


class MixedBatch(NamedTuple):
    """Rows and problems for one batch.

    ``rows`` and ``problems`` select from all of them. ``order`` is for ``placed``, which does not need it where there
    are no problems.
    """

    rows: slice
    problems: slice
    order: Ints


def shared_out(costs: Ints, rows: int, *places: Any, most: int = MOST_BYTES) -> Iterator[MixedBatch]:
    """``rows``, and the problems after them, divided into batches of a size that Arrow can hold.

    ``costs``: about the bytes of text that each row and then each problem will have. ``most``: the bytes of a batch.
    ``places`` as for ``among``; rows and problems are both in their order.
    """
    if len(costs) == rows:
        for first, last in batch_ranges(costs, most=most):
            yield MixedBatch(slice(first, last), slice(0, 0), np.zeros(0, np.int64))
        return
    order = np.lexsort(places[::-1])
    n_problems = 0
    for first, last in batch_ranges(costs[order], most=most):
        part = order[first:last]
        of_problem = part >= rows
        count = int(np.count_nonzero(of_problem))
        begin = first - n_problems
        end = begin + len(part) - count
        within = np.where(of_problem, part - rows - n_problems + (end - begin), part - begin)
        yield MixedBatch(slice(begin, end), slice(n_problems, n_problems + count), within)
        n_problems += count


class Waiting:
    """Problems that are known before the rows they follow are there.

    Each has its place, a tuple of integers of one length. They are given in the order of their places. At the same
    place they keep the order in which they were added.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, ...], int, Any]] = []
        self._added = 0

    def add(self, place: tuple[int, ...], problem: Any) -> None:
        """One more problem."""
        heapq.heappush(self._heap, (place, self._added, problem))
        self._added += 1

    def before(self, place: tuple[int, ...] | None) -> list[tuple[tuple[int, ...], Any]]:
        """Those before a place, with their own; None: all that are left."""
        found = []
        while self._heap and (place is None or self._heap[0][0] < place):
            own, _, problem = heapq.heappop(self._heap)
            found.append((own, problem))
        return found
