"""``decode_frames``: chunks of byte streams, as tracers (eBPF) and proxies give them, to the tables of captures.

Chunks are grouped by connection and put in order of time. Each task makes a capture of its own and reads it
(``kwire.capture.chunks``). So rows are the same as of a capture with these bytes in its segments.
Rules kept here:

- ``connection`` is the user's, of the type that it has. Name, addresses and ports of the made capture are in no row.
- ``frame`` is unique in the result: its upper 32 bits are the task that has made it.
- A task holds its unfinished frames, and some numbers for each connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError
from kwire.options import CHUNKS
from kwire.spark.arrow import mapped
from kwire.spark.options import PATHS, Options, check_across, spark_schema, texts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from kwire.capture.chunks import Chunk

    ColumnOrName = Column | str

__all__ = ["chunks_of", "decode_frames"]

MADE_UP: Final = ("capture", "client_host", "client_port", "broker_host", "broker_port")
"""Columns of tables that say nothing of chunks."""
UNITS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
"""Nanoseconds of each ``time_unit``."""


def decode_frames(
    df: DataFrame,
    *,
    connection: ColumnOrName | Sequence[ColumnOrName] = "connection",
    direction: ColumnOrName = "direction",
    time: ColumnOrName = "time",
    time_unit: str | None = None,
    payload: ColumnOrName = "payload",
    position: ColumnOrName | None = None,
    order: ColumnOrName | None = None,
    requests: str | None = "request",
    from_start: bool = False,
    table: str = "frames",
    columns: Sequence[str] | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of a table (``frames``, ``messages``, ``records``, ``batches`` and so on) of streams in chunks.

    ``df`` has a row for each chunk. Its columns:

    - ``connection``: a value that all chunks of a connection share, in both directions (process and socket, for
      instance). Several columns become a struct.
    - ``direction``: which end has sent it. The value ``requests`` stands for the client, any other for the broker. With
      ``requests=None`` the values are any two, and the content shows who the client is.
    - ``time``: a timestamp, or a number since 1970 with its ``time_unit`` (``s``, ``ms``, ``us``, ``ns``). Null ones
      come first, and the times of their rows are null.
    - ``payload``: the bytes. Null and empty ones are passed over.
    - ``position``: which byte of its direction is the first of the chunk, if the tracer counts them. Then bytes that it
      has lost are ``gap`` rows.
    - ``order``: what puts chunks of the same time in order.

    ``from_start``: the chunks of a connection are all from its beginning. Otherwise it may have begun before, and a
    frame is ``unconfirmed`` until an answer or what follows shows that it is no value within another.

    ``columns`` chooses columns of the table. ``options`` are those of the data source (``limits``, ``payloads``,
    ``apis``, ``topics`` ...).

    A row has ``connection`` as it was given, and no ``capture``, hosts and ports. Raises ``KwireError`` for an unknown
    table, column or option, ``CaptureError`` for a missing ``keylog`` or ``topic_ids``.
    """
    from pyspark.sql.types import StructField, StructType

    checked = Options.of({**texts(options, CHUNKS), "table": table, PATHS: json.dumps(["chunks"])})
    definition = checked.definition
    check_across(definition)
    checked.beside()
    try:
        names = definition.chosen(columns).names
    except ValueError as wrong:
        raise KwireError(str(wrong)) from None
    made_up = [name for name in names if name in MADE_UP]
    if columns is not None and made_up:
        raise KwireError(f"column {made_up[0]!r}: of chunks nothing is known of it")
    names = [name for name in names if name not in MADE_UP]

    chunks = chunks_of(
        df,
        connection=connection,
        direction=direction,
        time=time,
        time_unit=time_unit,
        payload=payload,
        position=position,
        order=order,
    )
    placed = chunks.repartition("connection").sortWithinPartitions("time", "order", "position").drop("order")
    whole = spark_schema(definition, asked=True)
    fields = [
        StructField(name, chunks.schema["connection"].dataType, True) if name == "connection" else whole[name]
        for name in names
    ]
    schema = StructType(fields)
    return mapped(placed, _Work(checked, tuple(names), schema, requests, from_start).rows, schema)


def chunks_of(
    df: DataFrame,
    *,
    connection: ColumnOrName | Sequence[ColumnOrName],
    direction: ColumnOrName,
    time: ColumnOrName,
    time_unit: str | None,
    payload: ColumnOrName,
    position: ColumnOrName | None = None,
    order: ColumnOrName | None = None,
) -> DataFrame:
    """Chunks with the columns ``connection``, ``side``, ``time`` (nanoseconds), ``payload``, ``position``, ``order``.

    Arguments and errors are those of ``decode_frames``.
    """
    from pyspark.sql import functions as sql

    def column(one: ColumnOrName) -> Column:
        return sql.col(one) if isinstance(one, str) else one

    of = [connection] if not isinstance(connection, Sequence) or isinstance(connection, str) else list(connection)
    key = column(of[0]) if len(of) == 1 else sql.struct(*map(column, of))
    when = _nanoseconds(column(time), df.select(column(time)).schema.fields[0].dataType, time_unit)
    return df.select(
        key.alias("connection"),
        column(direction).cast("string").alias("side"),
        when.cast("long").alias("time"),
        column(payload).cast("binary").alias("payload"),
        (sql.lit(None) if position is None else column(position)).cast("long").alias("position"),
        (sql.lit(None) if order is None else column(order)).alias("order"),
    ).where(sql.length("payload") > 0)


def _nanoseconds(when: Column, type_: Any, unit: str | None) -> Column:
    """A column of times as nanoseconds since 1970. Raises ``KwireError`` for one that does not say which they are."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import NullType, NumericType, TimestampNTZType, TimestampType

    if unit is not None and unit not in UNITS:
        raise KwireError(f"no unit {unit!r}: time_unit is one of {', '.join(UNITS)}")
    if isinstance(type_, TimestampType | TimestampNTZType | NullType):
        if unit is not None:
            raise KwireError("time_unit is for times that are numbers: this column is a timestamp")
        return sql.unix_micros(when.cast("timestamp")) * 1000
    if not isinstance(type_, NumericType):
        raise KwireError(f"the column time is {type_.simpleString()}: give a timestamp, or a number and its time_unit")
    if unit is None:
        raise KwireError(
            f"the column time is {type_.simpleString()}, which may be seconds or nanoseconds: give its time_unit "
            f"({', '.join(UNITS)}), or a timestamp"
        )
    return when.cast("decimal(38,9)") * sql.lit(UNITS[unit])


@dataclass(frozen=True, slots=True)
class _Work:
    """What a task needs. It is sent to the workers."""

    options: Options
    names: tuple[str, ...]
    schema: StructType
    requests: str | None
    from_start: bool

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the chunks of one task."""
        from pyspark import TaskContext
        from pyspark.sql.pandas.types import to_arrow_schema

        from kwire.capture.chunks import BROKER_PORT, Chunks
        from kwire.capture.parts import Part
        from kwire.capture.tracker import PART_BITS
        from kwire.tables.reading import read

        context = TaskContext.get()
        place = 0 if context is None else context.partitionId()
        schema = to_arrow_schema(self.schema, timezone="UTC")
        one = self.options
        values: dict[Any, Any] = {}
        source = Chunks(_chunks(batches, values), self.requests, from_start=self.from_start)
        found = read(
            source,
            {one.definition.name: ["connection", *(name for name in self.names if name != "connection")]},
            ports=one.values["ports"] if self.requests is None else (BROKER_PORT,),
            part=Part(place=place),
            **one.content,
            **one.beside(),
        )
        for _, batch in found:
            arrays = []
            for field in schema:
                column = batch.column(field.name)
                if field.name == "connection":
                    numbers = pc.unique(column)
                    first = [values[source.key_of(number - (place << PART_BITS))] for number in numbers.to_pylist()]
                    column = pa.array(first, field.type).take(pc.index_in(column, numbers))
                arrays.append(column)
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _chunks(batches: Iterable[pa.RecordBatch], values: dict[Any, Any]) -> Iterator[Chunk]:
    """The chunks in some batches. ``values`` becomes the connections as they were given."""
    from kwire.capture.chunks import Chunk

    for batch in batches:
        connections = batch.column("connection").to_pylist()
        rest = (batch.column(name).to_pylist() for name in ("side", "time", "payload", "position"))
        for connection, side, time, payload, position in zip(connections, *rest, strict=True):
            key = _hashable(connection)
            values.setdefault(key, connection)
            yield Chunk(key, side, time, payload, position)


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_hashable(one) for one in value.values())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
