"""What is in payloads: the rows of the tables ``records`` and ``partitions``, each with the payload that it is of.

The makers of the tables do the work, with the payloads as frames. Rules kept here:

- A payload that cannot be read has one row, with its ``status`` and ``error``. One that holds nothing of the kind has
  none.
- Names of topics by ids are those that were given (``topic_ids``). None is learnt from other payloads: what a row says
  must not depend on its neighbours.
- Rows are made some 16 MiB at a time, within a payload too. ``lists`` puts those of a payload together, up to what an
  Arrow array holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Unpack
from uuid import UUID

import numpy as np
import pyarrow as pa

from kwire.errors import KwireError
from kwire.kernels.layouts import Status
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.options import settled
from kwire.payloads.frames import Reader, known
from kwire.payloads.sizes import Payloads, cut, parts_of
from kwire.payloads.types import RowOptions, Sized, check_options, chosen, listed, together
from kwire.records.verdicts import TOO_LARGE, among
from kwire.tables import partitions, records
from kwire.tables.definition import CaptureTable, Run
from kwire.tables.frames import OF_FRAME
from kwire.wire import parse_uuid

__all__ = ["PARTITIONS", "RECORDS", "Wanted", "list_of", "lists", "rows", "wanted"]

Array = Any

RECORDS: Final = records.TABLE
"""The table ``records`` of captures (``CaptureTable``), whose rows are made here of frames in columns."""
PARTITIONS: Final = partitions.TABLE
"""The table ``partitions`` of captures (``CaptureTable``), whose rows are made here of frames in columns."""
_NOT_OF_PAYLOADS: Final = frozenset((*(one.name for one in OF_FRAME), "source", "correlation_id"))
"""Columns that the header has, or that only a capture knows."""
_MOST: Final = 256 << 20
"""Bytes of the rows of one payload that become one list."""
_ENOUGH: Final = 64 << 20
"""Bytes of rows from which on lists are given away."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are made of payloads, and how. ``sized``: payloads begin with a size, and may be several frames."""

    table: CaptureTable
    names: tuple[str, ...]
    sized: Sized
    secrets: bool
    limits: Limits
    topics: Mapping[bytes, str]

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""
        return pa.schema([self.table.schema.field(name) for name in self.names])


def wanted(table: str, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[RowOptions]) -> Wanted:
    """``Wanted`` of ``"RECORDS"`` or ``"PARTITIONS"``. Raises ``KwireError`` for a field that there is not."""
    check_limits(limits)
    check_options(options, RowOptions)
    topics = _topics(options.get("topic_ids") or {})
    one = {"RECORDS": RECORDS, "PARTITIONS": PARTITIONS}[table]
    whole = pa.struct([field for field in one.schema if field.name not in _NOT_OF_PAYLOADS])
    names = tuple(field.name for field in chosen(whole, options.get("fields")))
    return Wanted(one, names, options.get("sized", False), options.get("secrets", False), limits, topics)


def _topics(given: Any) -> dict[bytes, str]:
    """Names of topics by the bytes of their ids."""
    if not isinstance(given, Mapping):
        raise KwireError(f"topic_ids are names by ids, as a dict, not {type(given).__name__}")
    made = {}
    for id_, name in given.items():
        try:
            key = parse_uuid(id_).bytes if isinstance(id_, str) else UUID(bytes=bytes(id_)).bytes
        except (ValueError, TypeError, AttributeError):
            raise KwireError(f"topic_ids: {id_!r} is no topic id: text as Kafka prints it, or 16 bytes") from None
        if not isinstance(name, str):
            raise KwireError(f"topic_ids: the name of a topic is text, not {name!r}")
        made[key] = name
    return made


def rows(
    column: pa.Array, how: Wanted, api_keys: pa.Array | None = None, api_versions: pa.Array | None = None
) -> Iterator[tuple[Array, pa.RecordBatch]]:
    """The rows of an array of payloads, in their order: of each the number of its payload, and the rows.

    With ``api_keys`` and ``api_versions`` the payloads are responses.
    """
    for _, _, made in _parts(column, how, api_keys, api_versions):
        yield from made


_Made = Iterator[tuple[Array, pa.RecordBatch]]
"""Rows, and of each the number of its payload."""


def _parts(
    column: pa.Array, how: Wanted, api_keys: pa.Array | None, api_versions: pa.Array | None
) -> Iterator[tuple[int, int, _Made]]:
    """Some payloads after the other: the number of the first, how many they are, and their rows."""
    reader = Reader()
    for part in parts_of(column, how.sized, how.limits, api_keys, api_versions, sure=True):
        yield part.first, len(part.column), _rows_of(reader, part, how)


def _rows_of(reader: Reader, part: Payloads, how: Wanted) -> _Made:
    """The rows of some payloads."""
    if how.sized is False:
        for numbers, batch in _rows(reader, part, how):
            yield part.first + numbers, batch
        return
    frames, of = cut(part)
    for some in frames.windows():
        for numbers, batch in _rows(reader, some, how):
            yield part.first + of[some.first + numbers], batch


def _rows(reader: Reader, part: Payloads, how: Wanted) -> _Made:
    """The rows of some payloads that are one frame each."""
    of: dict[str, Array] = {}
    if part.api_keys is not None and part.api_versions is not None:
        of = {"keys": known(part.api_keys), "versions": known(part.api_versions)}
    frames, count = reader.frames(part.column, part.sized, **of), len(part.column)
    options = settled({"secrets": how.secrets, "limits": together(how.limits, count)})
    schema = pa.schema([pa.field("frame", pa.int64()), *how.schema])
    maker = how.table.maker(schema, Run(options=options, topics=dict(how.topics), learns=False))
    bad, problems = [], []
    for row in np.flatnonzero(frames["status"] != Status.OK).tolist():
        said = part.row(row, None, how.limits)
        if said is not None:
            bad.append(row)
            problems.append({"status": said["status"], "error": said.get("error")})
    wrong = pa.RecordBatch.from_pylist(problems, how.schema)
    passed, places = 0, np.array(bad, np.int64)
    for number, batch in enumerate(maker.batches(frames)):
        # Frames with so many record sets that they are not looked at together are not decoded once more.
        if maker.short and count > 1 and not number:
            for half in part.halves():
                yield from ((half.first + numbers, made) for numbers, made in _rows(reader, half, how))
            return
        numbers = batch.column(0).to_numpy()
        made = pa.RecordBatch.from_arrays(batch.columns[1:], schema=how.schema)
        if len(numbers):
            until = int(np.searchsorted(places, numbers[-1]))
            both = np.concatenate([numbers, places[passed:until]])
            order = np.argsort(both, kind="stable")
            made, numbers = among(made, wrong.slice(passed, until - passed), both), both[order]
            passed = until
        if len(numbers):
            yield numbers, made
    if passed < len(places):
        yield places[passed:], wrong.slice(passed)


def lists(
    column: pa.Array, how: Wanted, api_keys: pa.Array | None = None, api_versions: pa.Array | None = None
) -> Iterator[pa.ListArray]:
    """The rows of each payload as lists, in some arrays."""
    for first, count, made in _parts(column, how, api_keys, api_versions):
        yield from _lists_of(column.slice(first, count), first, made, how)


def _lists_of(part: pa.Array, first: int, made: _Made, how: Wanted) -> Iterator[pa.ListArray]:
    """The rows of some payloads as lists. ``first``: the number of the first of them."""
    kept: list[tuple[Array, pa.RecordBatch]] = []
    done = size = 0
    left_out = -1
    for number_of, batch in made:
        numbers = number_of - first
        begin = int(np.searchsorted(numbers, left_out, "right"))
        kept.append((numbers[begin:], batch.slice(begin)))
        size += kept[-1][1].nbytes
        if size < _ENOUGH or not len(kept[-1][0]):
            continue
        # More rows of the last payload may follow.
        last = int(numbers[-1])
        yield _lists(part.slice(done, last - done), done, [_cut(*one, last, before=True) for one in kept], how)
        done, kept = last, [_cut(*one, last, before=False) for one in kept]
        size = sum(one.nbytes for _, one in kept)
        if size > _MOST:
            left_out = last
            said = {"status": TOO_LARGE, "error": f"more than {_MOST >> 20} MiB of rows, which no list can hold"}
            kept = [(np.array([last]), pa.RecordBatch.from_pylist([said], how.schema))]
            size = 0
    yield _lists(part.slice(done), done, kept, how)


def _cut(numbers: Array, batch: pa.RecordBatch, last: int, *, before: bool) -> tuple[Array, pa.RecordBatch]:
    """The rows of payloads before ``last``, or those of it and of all after it."""
    at = int(np.searchsorted(numbers, last))
    return (numbers[:at], batch.slice(0, at)) if before else (numbers[at:], batch.slice(at))


def _lists(part: pa.Array, first: int, kept: list[tuple[Array, pa.RecordBatch]], how: Wanted) -> pa.ListArray:
    numbers = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in kept)]) - first
    type_ = list_of(how.schema)
    structs = [pa.StructArray.from_arrays(batch.columns, fields=list(type_.value_type)) for _, batch in kept]
    values = structs[0] if len(structs) == 1 else pa.concat_arrays(structs or [pa.array([], type_.value_type)])
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(numbers, minlength=len(part)))])
    missing = part.is_null() if part.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values, type_, mask=missing)


def list_of(schema: pa.Schema) -> pa.DataType:
    """The type of the rows of one payload."""
    return listed(pa.struct(list(schema)))
