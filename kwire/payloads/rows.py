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
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels.layouts import Status
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.options import settled
from kwire.payloads import singly
from kwire.payloads.frames import NO_SIZE, SIZED, Reader, known, windows
from kwire.records.verdicts import TOO_LARGE, among
from kwire.tables import partitions, records
from kwire.tables.definition import CaptureTable, Run
from kwire.tables.frames import OF_FRAME
from kwire.wire import parse_uuid

__all__ = ["PARTITIONS", "RECORDS", "Wanted", "list_of", "lists", "rows", "wanted"]

Array = Any

RECORDS: Final = records.TABLE
PARTITIONS: Final = partitions.TABLE
_NOT_OF_PAYLOADS: Final = frozenset((*(one.name for one in OF_FRAME), "source", "correlation_id"))
"""Columns that the header has, or that only a capture knows."""
_MOST: Final = 256 << 20
"""Bytes of the rows of one payload that become one list."""
_ENOUGH: Final = 64 << 20
"""Bytes of rows from which on lists are given away."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are made of payloads, and how. ``sized``: payloads begin with a size."""

    table: CaptureTable
    sized: bool
    secrets: bool
    limits: Limits
    topics: Mapping[bytes, str]

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""
        return _schema(self.table.name)


def wanted(
    table: str,
    sized: bool = False,
    secrets: bool = False,
    *,
    limits: Limits = DEFAULT_LIMITS,
    topic_ids: Mapping[Any, str] | None = None,
) -> Wanted:
    """``Wanted`` of ``"RECORDS"`` or ``"PARTITIONS"``. Ids of topics are bytes or Kafka's text form."""
    given = (topic_ids or {}).items()
    topics = {id_ if isinstance(id_, bytes) else parse_uuid(id_).bytes: name for id_, name in given}
    return Wanted({"RECORDS": RECORDS, "PARTITIONS": PARTITIONS}[table], sized, secrets, limits, topics)


@cache
def _schema(name: str) -> pa.Schema:
    table = {one.name: one for one in (RECORDS, PARTITIONS)}[name]
    return pa.schema([one for one in table.schema if one.name not in _NOT_OF_PAYLOADS])


def rows(
    column: pa.Array, how: Wanted, api_keys: pa.Array | None = None, api_versions: pa.Array | None = None
) -> Iterator[tuple[Array, pa.RecordBatch]]:
    """The rows of an array of payloads, in their order: of each the number of its payload, and the rows.

    With ``api_keys`` and ``api_versions`` the payloads are responses.
    """
    reader = Reader()
    for first, part in windows(column):
        about = (None if one is None else one.slice(first, len(part)) for one in (api_keys, api_versions))
        for numbers, batch in _rows(reader, part, how, *about):
            if len(numbers):
                yield first + numbers, batch


def _rows(
    reader: Reader,
    part: pa.Array,
    how: Wanted,
    api_keys: pa.Array | None,
    api_versions: pa.Array | None,
) -> Iterator[tuple[Array, pa.RecordBatch]]:
    """``rows`` of one window."""
    of = {} if api_keys is None or api_versions is None else {"keys": known(api_keys), "versions": known(api_versions)}
    frames = reader.frames(part, SIZED if how.sized else NO_SIZE, **of)
    options = settled({"secrets": how.secrets, "limits": how.limits})
    schema = pa.schema([pa.field("frame", pa.int64()), *how.schema])
    maker = how.table.maker(schema, Run(options=options, topics=dict(how.topics), learns=False))
    bad = [row for row in np.flatnonzero(frames["status"] != Status.OK).tolist() if part[row].is_valid]
    problems = []
    for row in bad:
        data = part[row].as_py()
        if api_keys is None or api_versions is None:
            said = singly.request_row(data, None, how.limits, how.sized)
        else:
            about = api_keys[row].as_py(), api_versions[row].as_py()
            said = singly.response_row(data, *about, None, how.limits, how.sized)
        problems.append({"status": said["status"], "error": said.get("error")})
    wrong = pa.RecordBatch.from_pylist(problems, how.schema)
    passed, places = 0, np.array(bad, np.int64)
    for batch in maker.batches(frames):
        numbers = batch.column(0).to_numpy()
        made = pa.RecordBatch.from_arrays(batch.columns[1:], schema=how.schema)
        if len(numbers):
            until = int(np.searchsorted(places, numbers[-1]))
            both = np.concatenate([numbers, places[passed:until]])
            order = np.argsort(both, kind="stable")
            made, numbers = among(made, wrong.slice(passed, until - passed), both), both[order]
            passed = until
        yield numbers, made
    yield places[passed:], wrong.slice(passed)


def lists(
    column: pa.Array, how: Wanted, api_keys: pa.Array | None = None, api_versions: pa.Array | None = None
) -> Iterator[pa.ListArray]:
    """The rows of each payload as lists, in some arrays."""
    kept: list[tuple[Array, pa.RecordBatch]] = []
    done = size = 0
    left_out = -1
    for numbers, batch in rows(column, how, api_keys, api_versions):
        begin = int(np.searchsorted(numbers, left_out, "right"))
        kept.append((numbers[begin:], batch.slice(begin)))
        size += kept[-1][1].nbytes
        if size < _ENOUGH or not len(kept[-1][0]):
            continue
        # More rows of the last payload may follow.
        last = int(numbers[-1])
        yield _lists(column.slice(done, last - done), done, [_cut(*one, last, before=True) for one in kept], how)
        done, kept = last, [_cut(*one, last, before=False) for one in kept]
        size = sum(one.nbytes for _, one in kept)
        if size > _MOST:
            left_out = last
            said = {"status": TOO_LARGE, "error": f"more than {_MOST >> 20} MiB of rows, which no list can hold"}
            kept = [(np.array([last]), pa.RecordBatch.from_pylist([said], how.schema))]
            size = 0
    yield _lists(column.slice(done), done, kept, how)


def _cut(numbers: Array, batch: pa.RecordBatch, last: int, *, before: bool) -> tuple[Array, pa.RecordBatch]:
    """The rows of payloads before ``last``, or those of it and of all after it."""
    at = int(np.searchsorted(numbers, last))
    return (numbers[:at], batch.slice(0, at)) if before else (numbers[at:], batch.slice(at))


def _lists(part: pa.Array, first: int, kept: list[tuple[Array, pa.RecordBatch]], how: Wanted) -> pa.ListArray:
    numbers = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in kept)]) - first
    structs = [batch.to_struct_array() for _, batch in kept]
    type_ = list_of(how.schema)
    values = pa.concat_arrays(structs) if structs else pa.array([], type_.value_type)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(numbers, minlength=len(part)))])
    missing = part.is_null() if part.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values.cast(type_.value_type), type_, mask=missing)


def list_of(schema: pa.Schema) -> pa.DataType:
    """The type of the rows of one payload."""
    return pa.list_(pa.field("element", pa.struct(list(schema)), nullable=False))
