"""Column functions: parse raw Kafka payloads that are already in a table.

A payload is a frame without its 4-byte size: it begins with the header. If a table kept the size, say ``sized=True``,
and ``several=True`` if a payload may be several frames. ``sized="auto"`` lets each payload show whether it has a size.

Each function is an Arrow UDF (no pandas) over ``kwire.payloads``, which says what comes of a payload. It returns a
struct, or an array of structs for records. Rules kept here:

- The functions that Spark pickles are at the module's top level, so that they travel by name. kwire must be installed
  on the workers.
- Each takes an iterator of batches: what a batch becomes can be more than one Arrow array can hold.
- numba and the kernels are imported where a column is decoded, not by this module: Spark imports it for every query.
- ``body`` is text. docs/explanation/body-as-json.md says why it is no VARIANT; ``parse_json(body)`` makes one of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from kwire.payloads.types import (
    HEADER,
    REQUEST,
    RESPONSE,
    BodyOptions,
    RowOptions,
    check_flags,
    check_options,
    list_of_records,
    listed,
    struct_of,
)
from kwire.protocol.secrets import METADATA_TOPIC
from kwire.spark.workers import plainly
from kwire.wire import uuid_text

if TYPE_CHECKING:
    from pyspark.sql._typing import ColumnOrName

__all__ = [
    "api_name",
    "column",
    "decode_records",
    "decode_request",
    "decode_response",
    "hides",
    "number",
    "request_partitions",
    "request_records",
    "response_partitions",
    "response_records",
    "sql_functions",
    "udf",
]


def decode_request(payload: ColumnOrName, *, body: bool = True, **options: Unpack[BodyOptions]) -> Column:
    """Decodes a binary column of request frames.

    Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id int, client_id string,
    body string, status string, error string>``. A body that cannot be decoded leaves the header's fields in place.

    Without ``body`` the struct has none, and ``status`` speaks of the header. Bodies are not looked at: for questions
    that the header answers, this is many times as fast. ``options`` are those of ``kwire.payloads.BodyOptions``:

    - ``sized``: payloads begin with a size, or ``"auto"``; ``several``: an array of the frames in a payload
    - ``fields``: those that are made. Spark does not tell a function which ones are selected.
    - ``api``, such as ``"OffsetCommit"``: ``body`` is the struct ``kwire.spark.schema_of(api, "request",
      payloads=payloads)``. It is null in requests of other APIs.
    - ``secrets``, ``payloads``: what bodies show

    >>> df.select(kwire.spark.decode_request("payload").alias("r")).select("r.api_name", "r.body")  # doctest: +SKIP
    """
    function, type_ = (_requests, REQUEST) if body else (_headers, HEADER)
    return _frames(function, type_, "request", (payload,), options).alias("decode_request")


def decode_response(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    **options: Unpack[BodyOptions],
) -> Column:
    """Decodes a binary column of response frames.

    A response does not say what it answers. ``api_key`` and ``api_version`` of its request are columns, or numbers if
    all are the same. Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id int,
    body string, status string, error string>``. ``api_version`` is 0 if a broker answered ApiVersions in v0 because it
    does not know the version asked for (KIP-511). ``options`` are those of ``decode_request``.
    """
    given = (payload, api_key, api_version)
    return _frames(_responses, RESPONSE, "response", given, options).alias("decode_response")


def decode_records(
    payload: ColumnOrName,
    *,
    topic: ColumnOrName | None = None,
    secrets: bool = False,
    strict: bool = False,
    fields: Sequence[str] | None = None,
) -> Column:
    """Decodes a binary column of record sets: what ``records`` fields and log segments hold, in any magic and mixture.

    Returns ``array<struct<offset bigint, timestamp timestamp, timestamp_type string, key binary, value binary, headers
    array<struct<key string, value binary>>, magic tinyint, compression string, crc_ok boolean, base_offset bigint,
    producer_id bigint, producer_epoch smallint, sequence int, partition_leader_epoch int, is_transactional boolean,
    is_control boolean, control_type string, status string, error string>>``, to be exploded. Records before an error
    stay. The bytes that cannot be read are an element at the end, with only a ``status`` and an ``error``. So are bytes
    that are left over. Their ``status`` is ``cut_off``: a broker cuts the last entry of a Fetch response at its size.
    With ``strict``, for record sets that must be whole, it is ``malformed``.

    ``fields`` are the columns of a record that are made. Most of the time is Spark's, and it grows with their number.
    ``record_sets_of`` is a table of the same.

    A record set does not say of which topic it is. If ``topic`` does, secrets are left out of the values of
    ``__cluster_metadata``, unless ``secrets`` are wanted. Text such as ``{"redacted": 212}`` stands there.

    >>> df.select(sql.inline(kwire.spark.decode_records("records")))  # doctest: +SKIP
    """
    check_flags({"strict": strict, "secrets": secrets}, ("strict", "secrets"))
    options = sql.lit(_text({"strict": strict, "fields": fields}))
    made = udf(_record_sets, list_of_records(fields))(column(payload), hides(topic, secrets), options)
    return made.alias("decode_records")


def hides(topic: ColumnOrName | None, secrets: bool) -> Column:
    """Whether secrets are left out of record sets of ``topic``."""
    if topic is None or secrets:
        return sql.lit(False)
    return sql.coalesce(column(topic) == METADATA_TOPIC, sql.lit(False))


def request_records(payload: ColumnOrName, **options: Unpack[RowOptions]) -> Column:
    """The records in a binary column of Produce requests, as an array to be exploded.

    An element has the columns of the table ``records`` that a payload knows: ``topic``, ``topic_id``, ``partition``,
    those of ``decode_records``, ``batch``, ``status``, ``error``. Other requests have none. A payload that cannot be
    read is one element with its ``status`` and ``error``. ``options`` are those of ``kwire.payloads.RowOptions``:
    ``sized``, ``fields``, ``secrets``, and ``topic_ids``, names of topics by their ids. For many records in a payload,
    ``records_of`` is faster: it makes no arrays.

    >>> df.select("host", sql.inline(kwire.spark.request_records("payload")))  # doctest: +SKIP
    """
    return _rows("RECORDS", (payload,), options).alias("request_records")


def response_records(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    **options: Unpack[RowOptions],
) -> Column:
    """The records in a binary column of Fetch and ShareFetch responses, as ``request_records`` has them."""
    return _rows("RECORDS", (payload, api_key, api_version), options).alias("response_records")


def request_partitions(payload: ColumnOrName, **options: Unpack[RowOptions]) -> Column:
    """What a binary column of requests says of partitions, as an array to be exploded.

    An element has the columns of the table ``partitions`` that a payload knows, from ``path`` to ``error``. ``options``
    are those of ``request_records``.
    """
    return _rows("PARTITIONS", (payload,), options).alias("request_partitions")


def response_partitions(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    **options: Unpack[RowOptions],
) -> Column:
    """What a binary column of responses says of partitions, as ``request_partitions`` has it."""
    return _rows("PARTITIONS", (payload, api_key, api_version), options).alias("response_partitions")


def api_name(api_key: ColumnOrName) -> Column:
    """The name of an API by its key: ``Produce`` of 0. Null for a key that no API has."""
    return udf(_names, pa.string())(number(api_key)).alias("api_name")


@plainly
def _requests(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads.arrays import decode_requests

    for payload, options in columns:
        yield from decode_requests(payload, **_options(options)).made


@plainly
def _headers(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads.arrays import decode_requests

    for payload, options in columns:
        yield from decode_requests(payload, body=False, **_options(options)).made


@plainly
def _responses(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads.arrays import decode_responses

    for payload, api_key, api_version, options in columns:
        yield from decode_responses(payload, api_key, api_version, **_options(options)).made


@plainly
def _record_sets(columns: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    from kwire.payloads.arrays import decode_records

    for payload, metadata, options in columns:
        yield from decode_records(payload, metadata=metadata, **_options(options)).made


@plainly
def _lists(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads.arrays import rows_of

    for payload, *of, table, options in columns:
        yield from rows_of(_value(table), payload, *of, **_options(options)).made


def _frames(
    function: Callable[..., Any],
    type_: pa.StructType,
    direction: str,
    given: tuple[ColumnOrName | int, ...],
    options: BodyOptions,
) -> Column:
    check_options(options, BodyOptions)
    returns: pa.DataType = struct_of(type_, direction, options)
    if options.get("several"):
        returns = listed(returns)
    payload, *of = given
    return udf(function, returns)(column(payload), *map(number, of), sql.lit(_text(options)))


def _rows(table: str, given: tuple[ColumnOrName | int, ...], options: RowOptions) -> Column:
    from kwire.payloads import rows

    payload, *of = given
    returns = rows.list_of(rows.wanted(table, **options).schema)
    flags = (sql.lit(one) for one in (table, _text(options)))
    return udf(_lists, returns)(column(payload), *map(number, of), *flags)


@plainly
def _names(api_key: pa.Array) -> pa.Array:
    from kwire.payloads.singly import name_of

    names = {key: name_of(key) for key in api_key.unique().to_pylist() if key is not None}
    return pa.array([names.get(key) for key in api_key.to_pylist()], pa.string())


@plainly
def _sql(name: str, count: int, columns: Iterator[Any], **options: Any) -> Iterator[pa.Array]:
    """The function ``name`` of ``kwire.payloads.arrays``, or the rows of this table, with ``count`` columns.

    One more column is its ``sized``.
    """
    from kwire.payloads import arrays

    function = getattr(arrays, name, None) or partial(arrays.rows_of, name)
    for given in columns:
        # Spark gives one column as it is.
        each = given if isinstance(given, tuple) else (given,)
        sized = {"sized": _value(each[count])} if len(each) > count else {}
        yield from function(*each[:count], **options | sized).made


def _sql_request(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_requests", 1, columns)


def _sql_requests(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_requests", 1, columns, sized="auto", several=True)


def _sql_header(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_requests", 1, columns, body=False)


def _sql_response(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_responses", 3, columns)


def _sql_responses(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_responses", 3, columns, sized="auto", several=True)


def _sql_record_sets(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("decode_records", 1, columns)


def _sql_request_records(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("RECORDS", 1, columns)


def _sql_response_records(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("RECORDS", 3, columns)


def _sql_request_partitions(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("PARTITIONS", 1, columns)


def _sql_response_partitions(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql("PARTITIONS", 3, columns)


def sql_functions() -> dict[str, Callable[..., Column]]:
    """The functions by the names that SQL has for them, with their arguments by position. Secrets are left out.

    - ``kwire_decode_request(payload)``, ``kwire_decode_request_header(payload)``, ``kwire_decode_response(payload,
      api_key, api_version)``, ``kwire_decode_records(records)``, ``kwire_api_name(api_key)``
    - ``kwire_request_records(payload)``, ``kwire_response_records(payload, api_key, api_version)``, and the two of
      ``partitions``
    - ``kwire_decode_requests(payload)``, ``kwire_decode_responses(payload, api_key, api_version)``: an array of the
      frames in a payload, with sizes in front or without

    Those of frames take ``sized`` as one more argument: ``true``, ``false`` or ``'auto'``.
    """
    from kwire.payloads import rows

    records, partitions = (rows.list_of(rows.wanted(table).schema) for table in ("RECORDS", "PARTITIONS"))
    return {
        "kwire_decode_request": udf(_sql_request, REQUEST),
        "kwire_decode_requests": udf(_sql_requests, listed(REQUEST)),
        "kwire_decode_request_header": udf(_sql_header, HEADER),
        "kwire_decode_response": udf(_sql_response, RESPONSE),
        "kwire_decode_responses": udf(_sql_responses, listed(RESPONSE)),
        "kwire_decode_records": udf(_sql_record_sets, list_of_records()),
        "kwire_request_records": udf(_sql_request_records, records),
        "kwire_response_records": udf(_sql_response_records, records),
        "kwire_request_partitions": udf(_sql_request_partitions, partitions),
        "kwire_response_partitions": udf(_sql_response_partitions, partitions),
        "kwire_api_name": udf(_names, pa.string()),
    }


def column(value: ColumnOrName | int) -> Column:
    """A column by its name; a number is the same for all rows."""
    if isinstance(value, int):
        return sql.lit(value)
    return sql.col(value) if isinstance(value, str) else value


def number(value: ColumnOrName | int) -> Column:
    """An API key or version. What is none is null: no row may fail a query."""
    return column(value).try_cast("int")


def udf(function: Callable[..., Any], returns: pa.DataType) -> Callable[..., Column]:
    """An Arrow UDF that gives arrays of a type."""
    # PySpark's annotations leave out the types that it does accept: structs.
    made: Callable[..., Column] = arrow_udf(function, from_arrow_type(returns))  # type: ignore[call-overload]
    return made


def _text(options: Mapping[str, Any]) -> str:
    """Options that are the same for all rows, as a literal."""
    given = dict(options)
    if topic_ids := given.pop("topic_ids", None):
        by_text = {uuid_text(UUID(bytes=id_)) if isinstance(id_, bytes) else id_: topic_ids[id_] for id_ in topic_ids}
        given["topic_ids"] = by_text
    if given.get("fields") is not None:
        given["fields"] = list(given["fields"])
    return json.dumps(given)


def _options(text: pa.Array) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(_value(text) or "{}")
    return made


def _value(flag: pa.Array) -> Any:
    return flag[0].as_py() if len(flag) else None
