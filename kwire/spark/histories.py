"""Histories of many captures as one, in Spark: what the steps of each part come to, by owner.

Where parts are decoded, each step becomes a row (``kwire.tables.histories.STEP``). Then there are two shuffles, of
steps only: other traffic stays where it is.

    pairing     a task for some connections    a response learns whose it is from its request, perhaps in another file
    folding     a task for some owners         the fold of each owner takes its steps in order of time

A step has some 300 bytes of text. Ten thousand members that send heartbeats each three seconds are 2 MB of steps a
second, before Spark compresses them.

Rules kept here:

- The steps of one sensor are in the order of its frames. Those of several sensors are in order of time.
- A row stands at the frame of a step, and has its partition columns.
- What stands for a file that could not be read passes through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.history.asked import Asked
from kwire.history.fold import Story
from kwire.history.steps import packed, unpacked
from kwire.spark.arrow import mapped
from kwire.tables.histories import STEP, in_batches
from kwire.wire import printable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

    from kwire.history.fold import History
    from kwire.tables.definition import ByRow
    from kwire.tables.filters import Filter

__all__ = ["NEEDED", "NUMBER", "SENSOR", "folded"]

SENSOR: Final = "kwire sensor"
"""Columns (str) beside a row: which sensor it is of,"""
NUMBER: Final = "kwire number"
"""and which row of its part it is."""
NEEDED: Final = ("capture", "connection", "frame", "timestamp", "status", "error", STEP.name)
"""The columns (tuple of str) of the rows that are folded."""
_OWNER: Final = "kwire owner"
_CLOCK: Final = "kwire clock"


def folded(
    steps: DataFrame,
    history: History,
    schema: StructType,
    beside: Sequence[StructField],
    *,
    by_time: bool,
    shares: int,
    only: Filter | None = None,
) -> DataFrame:
    """The rows of a history. ``steps`` have ``NEEDED``, ``SENSOR``, ``NUMBER`` and the partition columns ``beside``.
    ``by_time``: they are of several sensors. ``shares``: tasks for connections, and for owners. ``only``: which rows.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    names = tuple(one.name for one in beside)
    key = [SENSOR, "connection"]
    ordered = steps.repartition(shares, *key).sortWithinPartitions(*key, "frame", NUMBER)
    between = StructType([*steps.schema.fields, StructField(_OWNER, StringType()), StructField(_CLOCK, LongType())])
    paired = mapped(ordered, _Pairing(by_time).rows, between)
    by_owner = paired.repartition(shares, sql.col(_OWNER))
    inside = by_owner.sortWithinPartitions(_OWNER, _CLOCK, SENSOR, "frame", NUMBER)
    return mapped(inside, _Folding(history.name, schema, names, only).rows, schema)


@dataclass(frozen=True, slots=True)
class _Pairing:
    """Goes over the steps of connections, and gives responses their owners. ``by_time``: there are several sensors."""

    by_time: bool

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asked, sensor = Asked(), None
        for batch in batches:
            columns = {name: batch.column(name).to_pylist() for name in (*NEEDED, SENSOR)}
            owners: list[str | None] = []
            texts: list[str | None] = []
            clocks: list[int] = []
            times = _micros(batch)
            for number, text in enumerate(columns[STEP.name]):
                if columns[SENSOR][number] != sensor:
                    asked, sensor = Asked(), columns[SENSOR][number]
                clocks.append((times[number] or 0) if self.by_time else 0)
                if text is None:
                    owners.append(None)
                    texts.append(None)
                    continue
                capture, connection, frame = (columns[name][number] for name in NEEDED[:3])
                step = asked.paired(unpacked(capture, connection, frame, text))
                owners.append(None if step.owner is None else printable(step.owner))
                texts.append(packed(step))
            made = [
                pa.array(texts, pa.string()) if name == STEP.name else batch.column(name) for name in batch.schema.names
            ]
            yield pa.RecordBatch.from_arrays(
                [*made, pa.array(owners, pa.string()), pa.array(clocks, pa.int64())],
                names=[*batch.schema.names, _OWNER, _CLOCK],
            )


def _micros(batch: pa.RecordBatch) -> list[int | None]:
    found: list[int | None] = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return found


@dataclass(frozen=True, slots=True)
class _Folding:
    """Goes over the steps of owners in order of time, and gives the rows of their histories. ``beside``: the names of
    partition columns."""

    history: str
    schema: StructType
    beside: tuple[str, ...]
    only: Filter | None

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        from kwire.tables.filters import API
        from kwire.tables.reading import of_capture

        schema = to_arrow_schema(self.schema, timezone="UTC")
        by = of_capture(self.history).by_row
        if self.only is not None and by is not None:
            wider = schema.append(pa.field(API, pa.int16()))
            for batch in in_batches(self._folded(batches), wider):
                yield self._chosen(self.only, by, batch).select(schema.names).cast(schema)
            return
        for batch in in_batches(self._folded(batches), schema):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    @staticmethod
    def _chosen(only: Filter, by: ByRow, batch: pa.RecordBatch) -> pa.RecordBatch:
        of_file = pc.is_null(batch.column("frame"))
        if only.status is not None:
            of_file = pc.and_(of_file, pc.is_in(batch.column("status"), pa.array(sorted(only.status), pa.string())))
        return batch.filter(pc.or_(only.rows(by, batch), of_file))

    def _folded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
        from kwire.tables.reading import of_capture

        history = of_capture(self.history).history
        assert history is not None
        for _, rows in groupby(_rows(batches), lambda row: row[_OWNER]):
            story, last = Story(history), {}
            for row in rows:
                last = {name: row[name] for name in self.beside}
                if row[STEP.name] is None:
                    # It stands for a file.
                    yield {name: row[name] for name in ("capture", "status", "error")} | last
                    continue
                step = unpacked(row["capture"], row["connection"], row["frame"], row[STEP.name])
                for made in story.fold(step):
                    yield made | last
            for made in story.over():
                yield made | last


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Mapping[str, Any]]:
    for batch in batches:
        times = _micros(batch)
        names = [name for name in batch.schema.names if name != "timestamp"]
        read = [batch.column(name).to_pylist() for name in names]
        for time, *values in zip(times, *read, strict=True):
            yield dict(zip(names, values, strict=True)) | {"timestamp": time}
