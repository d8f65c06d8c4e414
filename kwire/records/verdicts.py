"""What the tables say about records that are not all right: the verdict on a checksum, and the rows of problems.

Every table with records in it (of captures, of log segments, in Spark) decodes record sets, says for each record
whether its checksum is right, and shows what could not be read as a row at its place. How that is done stands here, once.

Rules kept here:

- A record whose checksum is wrong stays a row, with ``status`` ``corrupt``.
- A problem is a row of its own behind the rows of the same place: what could be read of a batch comes before the word
  that the rest could not be.
- Record sets that are too large for one Arrow batch together are decoded in smaller groups; one that is too large
  alone is a problem, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kwire.errors import LimitError, MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("records as columns", "capture") from missing

from kwire.records.columnar import RecordColumns, decode_sets
from kwire.records.crc import WRONG_CHECKSUM
from kwire.records.limits import DEFAULT_LIMITS, Limits

__all__ = ["CORRUPT", "MALFORMED", "OK", "Part", "among", "decode_parts", "decode_together", "problem_rows", "verdict"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Rows = TypeVar("Rows", pa.RecordBatch, pa.StructArray)

OK: Final = "ok"
CORRUPT: Final = "corrupt"
MALFORMED: Final = "malformed"


def verdict(crc_ok: pa.Array) -> tuple[pa.Array, pa.Array]:
    """``status`` and ``error`` of rows that were read: two arrays of text, by a bool array without nulls."""
    if crc_ok.false_count == 0:
        return pa.repeat(pa.scalar(OK), len(crc_ok)), pa.nulls(len(crc_ok), pa.string())
    status = pc.if_else(crc_ok, pa.scalar(OK), pa.scalar(CORRUPT))
    return status, pc.if_else(crc_ok, pa.scalar(None, pa.string()), pa.scalar(WRONG_CHECKSUM))


def problem_rows(schema: pa.Schema, count: int, values: Mapping[str, Any]) -> pa.RecordBatch:
    """``count`` rows of ``schema`` that are problems: ``status`` is ``malformed`` unless ``values`` says otherwise.

    ``values`` has, by the name of a column, a list or array with a value for each row, or one value for all of them.
    Columns that are not in it are null; what it has beyond the schema is ignored.
    """
    columns = []
    for field in schema:
        value = values.get(field.name, MALFORMED if field.name == "status" else None)
        if isinstance(value, pa.Array | pa.ChunkedArray):
            columns.append(value.cast(field.type))
        elif isinstance(value, list | np.ndarray):
            columns.append(pa.array(value, field.type))
        else:
            columns.append(pa.repeat(pa.scalar(value, field.type), count))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def among(rows: Rows, problems: Rows, *places: Any) -> Rows:
    """``rows`` with ``problems`` put among them; both are record batches of the same schema, or both struct arrays.

    ``places`` are integer arrays, the most significant first, with the place of each row and then of each problem. In
    the same place rows come before problems, and both keep their order.
    """
    if not len(problems):
        return rows
    if isinstance(rows, pa.RecordBatch):
        both = pa.concat_batches([rows, problems])
    else:
        both = pa.concat_arrays([rows, problems])
    return both.take(pa.array(np.lexsort(places[::-1])))


class Part(NamedTuple):
    """Record sets that were decoded together: ``sets`` of them, the first of which is number ``first``.

    ``found`` counts sets from that one.
    """

    first: int
    sets: int
    found: RecordColumns


def decode_parts(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
) -> Iterator[Part]:
    """``decode_sets`` (which says what the arguments are) for any amount of data: at least one part.

    A set that is too large alone has no rows, and a problem at its byte 0.
    """
    yield from _parts(buffer, starts, lengths, limits, columns, 0)


def _parts(
    buffer: Bytes, starts: Ints, lengths: Ints, limits: Limits, columns: Sequence[str] | None, first: int
) -> Iterator[Part]:
    count = len(starts)
    try:
        found = decode_sets(buffer, starts, lengths, limits=limits, columns=columns)
    except LimitError as error:
        if count > 1:
            half = count // 2
            yield from _parts(buffer, starts[:half], lengths[:half], limits, columns, first)
            yield from _parts(buffer, starts[half:], lengths[half:], limits, columns, first + half)
            return
        found = decode_sets(buffer, starts, np.zeros_like(lengths), limits=limits, columns=columns)
        found = RecordColumns(found.batch, found.set_index, [(0, 0, error.message)], found.consumed)
    yield Part(first, count, found)


def decode_together(
    buffer: Bytes,
    starts: Ints,
    lengths: Ints,
    *,
    limits: Limits = DEFAULT_LIMITS,
    columns: Sequence[str] | None = None,
) -> RecordColumns:
    """All parts of ``decode_parts`` as one."""
    parts = list(decode_parts(buffer, starts, lengths, limits=limits, columns=columns))
    if len(parts) == 1:
        return parts[0].found
    batches = pa.Table.from_batches([one.found.batch for one in parts]).combine_chunks().to_batches()
    return RecordColumns(
        batches[0] if batches else parts[0].found.batch,
        np.concatenate([one.found.set_index + one.first for one in parts]).astype(np.int32),
        [(index + one.first, offset, text) for one in parts for index, offset, text in one.found.problems],
        np.concatenate([one.found.consumed for one in parts]),
    )
