"""Tables of whole frames: the rows that are in them, and requests with their responses.

``records_of``, ``partitions_of`` and ``record_sets_of`` take each payload by itself. ``exchanges`` puts the payloads of
a connection in order of time and pairs them, with one shuffle. Rules kept here:

- Columns of the DataFrame stay beside what is made of a payload. A name that both have is refused.
- What a payload becomes is written batch by batch: it may be more than one Arrow array can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Unpack

import pyarrow as pa

from kwire.errors import KwireError
from kwire.spark.arrow import mapped, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql._typing import ColumnOrName

    from kwire.payloads.record_sets import Records
    from kwire.payloads.rows import Wanted
    from kwire.payloads.types import RowOptions

__all__ = ["exchanges", "partitions_of", "record_sets_of", "records_of"]

Array = Any

_PAYLOAD, _KEY, _VERSION, _HIDES = "_kwire_payload", "_kwire_api_key", "_kwire_api_version", "_kwire_hides"


def records_of(
    df: DataFrame,
    payload: ColumnOrName = "payload",
    *,
    api_key: ColumnOrName | int | None = None,
    api_version: ColumnOrName | int | None = None,
    keep: Sequence[str] | None = None,
    **options: Unpack[RowOptions],
) -> DataFrame:
    """A row for each record in the Produce requests of a binary column.

    With ``api_key`` and ``api_version`` the payloads are responses to such requests: Fetch and ShareFetch have records.

    Columns: those of ``df`` that are to be kept (``keep``; all but the payload, if it is a column), then those of
    ``request_records``, or of these the ``fields``. A payload without records has no row. One that cannot be read has a
    row that says so. ``options`` are those of ``request_records``.
    """
    from kwire.payloads import rows

    wanted = rows.wanted("RECORDS", **options)
    return _of(df, payload, keep, _answering(api_key, api_version), _Frames(wanted), wanted.schema)


def partitions_of(
    df: DataFrame,
    payload: ColumnOrName = "payload",
    *,
    api_key: ColumnOrName | int | None = None,
    api_version: ColumnOrName | int | None = None,
    keep: Sequence[str] | None = None,
    **options: Unpack[RowOptions],
) -> DataFrame:
    """A row for each topic and partition that the requests (or responses) of a binary column speak of.

    Arguments and columns are as of ``records_of``; what is made of a payload is that of ``request_partitions``.
    """
    from kwire.payloads import rows

    wanted = rows.wanted("PARTITIONS", **options)
    return _of(df, payload, keep, _answering(api_key, api_version), _Frames(wanted), wanted.schema)


def record_sets_of(
    df: DataFrame,
    records: ColumnOrName = "records",
    *,
    topic: ColumnOrName | None = None,
    keep: Sequence[str] | None = None,
    fields: Sequence[str] | None = None,
    strict: bool = False,
    secrets: bool = False,
) -> DataFrame:
    """A row for each record in a binary column of record sets, as ``decode_records`` has them.

    Columns: those of ``df`` that are to be kept (``keep``; all but the record sets), then those of a record, or of
    these the ``fields``. The other arguments are those of ``decode_records``. A set without records has no row.
    """
    from kwire.payloads import record_sets
    from kwire.spark.functions import hides

    how = record_sets.records(fields, strict, secrets)
    return _of(df, records, keep, {_HIDES: hides(topic, secrets)}, _Sets(how), pa.schema(list(how.type)))


def _answering(api_key: ColumnOrName | int | None, api_version: ColumnOrName | int | None) -> dict[str, Any]:
    """The columns that say what a response answers."""
    from kwire.spark.functions import number

    if (api_key is None) != (api_version is None):
        raise KwireError("api_key and api_version go together: they say which request a response answers")
    return {} if api_key is None or api_version is None else {_KEY: number(api_key), _VERSION: number(api_version)}


def _of(
    df: DataFrame,
    payload: ColumnOrName,
    keep: Sequence[str] | None,
    given: dict[str, Any],
    make: _Frames | _Sets,
    schema: pa.Schema,
) -> DataFrame:
    """What is in the payloads of ``df``, as rows. ``given``: columns that ``make`` needs besides."""
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    from kwire.spark.functions import column

    if isinstance(keep, str):
        raise KwireError(f"keep is a list of names, not {keep!r}: keep=[{keep!r}]")
    kept = [name for name in df.columns if name != payload] if keep is None else list(keep)
    made = from_arrow_schema(schema)
    both = [name for name in kept if name in made.names]
    if both:
        raise KwireError(f"the column {both[0]!r} would be there twice: leave it out of keep, or rename it")
    columns = [sql.col(quoted(name)) for name in kept]
    columns += [column(one).alias(name) for name, one in {_PAYLOAD: payload, **given}.items()]
    chosen = df.select(*columns)
    whole = StructType([*(chosen.schema[name] for name in kept), *made.fields])
    return mapped(chosen, _Rows(tuple(kept), make, whole).of, whole)


_Made = Iterator[tuple[Array, pa.RecordBatch]]
"""Rows, and of each the number of its payload."""


@dataclass(frozen=True, slots=True)
class _Frames:
    """Makes rows of frames. It is sent to the workers."""

    wanted: Wanted

    def __call__(self, batch: pa.RecordBatch) -> _Made:
        from kwire.payloads.columns import binary
        from kwire.payloads.rows import rows

        of = [batch.column(name) for name in (_KEY, _VERSION) if name in batch.schema.names]
        return rows(binary(batch.column(_PAYLOAD)), self.wanted, *of)


@dataclass(frozen=True, slots=True)
class _Sets:
    """Makes rows of record sets. It is sent to the workers."""

    how: Records

    def __call__(self, batch: pa.RecordBatch) -> _Made:
        from kwire.payloads.columns import binary
        from kwire.payloads.record_sets import rows

        return rows(binary(batch.column(_PAYLOAD)), batch.column(_HIDES), self.how)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a task makes. It is sent to the workers."""

    kept: tuple[str, ...]
    make: _Frames | _Sets
    schema: Any

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of some batches of payloads."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.schema, timezone="UTC")
        for batch in batches:
            for numbers, found in self.make(batch):
                index = pa.array(numbers)
                kept = [batch.column(name).take(index) for name in self.kept]
                yield pa.RecordBatch.from_arrays([*kept, *found.columns], schema=schema)


def exchanges(
    df: DataFrame,
    *,
    payload: ColumnOrName = "payload",
    direction: ColumnOrName = "direction",
    connection: ColumnOrName | Sequence[ColumnOrName] = "connection",
    time: ColumnOrName = "time",
    time_unit: str | None = None,
    sized: bool = False,
    **options: Any,
) -> DataFrame:
    """Requests and responses in a table that has both, each row one whole frame: the rows of a table.

    By default that is ``messages``, with a row for each frame. A response has the API and version of its request, its
    client_id, and ``latency_ms``, from the request to it. Frames of a connection are paired by correlation id in the
    order of ``time``. The other arguments, ``options`` and the columns are those of ``decode_frames``, which takes
    pieces of frames as well. ``sized``: payloads begin with a size. There is one shuffle, by connection.

    In a stream, requests wait in Spark's state for responses of later batches. The rows are those of ``messages``
    without sizes and numbers. ``options`` are then ``order``, ``requests``, ``secrets`` and ``payloads``, and what
    bounds the state of a connection:

    - ``max_wait`` (seconds; 300): how long a request waits
    - ``max_waiting`` (1000): how many requests wait at once

    A request that waits no more has another row, with the status ``given_up``. Raises ``KwireError`` for what does not
    go with a stream, and if states are not in RocksDB.
    """
    from pyspark.sql import functions as sql

    from kwire.spark.chunks import chunks_of, decode_frames
    from kwire.spark.functions import column

    data = column(payload).cast("binary")
    if df.isStreaming:
        frames = chunks_of(
            df,
            connection=connection,
            direction=direction,
            time=time,
            time_unit=time_unit,
            payload=sql.substring(data, 5, (1 << 31) - 1) if sized else data,
            order=options.pop("order", None),
        )
        return _streamed(frames, options)
    options.setdefault("table", "messages")
    if not sized:
        size = sql.unhex(sql.lpad(sql.hex(sql.length(data)), 8, "0"))
        data = sql.concat(size, data)
    return decode_frames(
        df,
        payload=data,
        direction=direction,
        connection=connection,
        time=time,
        time_unit=time_unit,
        from_start=True,
        **options,
    )


_STREAMED: Final = ("order", "requests", "secrets", "payloads", "max_wait", "max_waiting")


def _streamed(frames: DataFrame, options: dict[str, Any]) -> DataFrame:
    from kwire.spark.pairing import Terms, paired

    if options.pop("table", "messages") != "messages":
        raise KwireError("a stream gives the rows of messages: leave out table")
    for name in options:
        if name not in _STREAMED:
            raise KwireError(f"the option {name!r} does not go with a stream: there are {', '.join(_STREAMED)}")
    terms = {name: options.pop(name) for name in ("max_wait", "max_waiting", "requests") if name in options}
    return paired(frames, Terms(**terms), **options)
