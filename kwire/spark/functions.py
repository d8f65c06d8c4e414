"""Column functions: parse raw Kafka payloads that are already in a table.

A payload is a frame without its 4-byte size: it begins with the header. If a table kept the size, say ``sized=True``.
The size is not guessed: a response begins with its correlation id, and a small one looks like a size.

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
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from kwire.payloads.types import HEADER, REQUEST, RESPONSE, list_of_records, with_body
from kwire.protocol.secrets import METADATA_TOPIC
from kwire.spark.workers import plainly

if TYPE_CHECKING:
    from pyspark.sql._typing import ColumnOrName

    from kwire.payloads import BodyOptions

__all__ = [
    "api_name",
    "decode_records",
    "decode_request",
    "decode_response",
    "request_partitions",
    "request_records",
    "response_partitions",
    "response_records",
    "sql_functions",
]


def decode_request(
    payload: ColumnOrName,
    *,
    sized: bool = False,
    secrets: bool = False,
    body: bool = True,
    api: str | None = None,
    payloads: bool = False,
) -> Column:
    """Decodes a binary column of request frames.

    Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id int, client_id string,
    body string, status string, error string>``. A body that cannot be decoded leaves the header's fields in place.

    Without ``body`` the struct has none, and ``status`` speaks of the header. Bodies are not looked at: for questions
    that the header answers, this is many times as fast. With ``api``, such as ``"OffsetCommit"``, ``body`` is the
    struct ``kwire.spark.schema_of(api, "request", payloads=payloads)``. It is null in requests of other APIs.

    >>> df.select(kwire.spark.decode_request("payload").alias("r")).select("r.api_name", "r.body")  # doctest: +SKIP
    """
    flags = (sql.lit(one) for one in (sized, secrets, payloads if api is not None else True, api))
    if not body:
        return _udf(_headers, HEADER)(_column(payload), *flags).alias("decode_request")
    returns = _with_body(REQUEST, "request", api, payloads)
    return _udf(_requests, returns)(_column(payload), *flags).alias("decode_request")


def decode_response(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    *,
    sized: bool = False,
    secrets: bool = False,
    api: str | None = None,
    payloads: bool = False,
) -> Column:
    """Decodes a binary column of response frames.

    A response does not say what it answers. ``api_key`` and ``api_version`` of its request are columns, or numbers if
    all are the same. Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id int,
    body string, status string, error string>``. ``api_version`` is 0 if a broker answered ApiVersions in v0 because it
    does not know the version asked for (KIP-511). With ``api``, ``body`` is a struct, as that of ``decode_request``.
    """
    flags = (sql.lit(one) for one in (sized, secrets, payloads if api is not None else True, api))
    given = (_column(payload), _column(api_key).cast("int"), _column(api_version).cast("int"))
    returns = _with_body(RESPONSE, "response", api, payloads)
    return _udf(_responses, returns)(*given, *flags).alias("decode_response")


def decode_records(
    payload: ColumnOrName, *, topic: ColumnOrName | None = None, secrets: bool = False, strict: bool = False
) -> Column:
    """Decodes a binary column of record sets: what ``records`` fields and log segments hold, in any magic and mixture.

    Returns ``array<struct<offset bigint, timestamp timestamp, timestamp_type string, key binary, value binary, headers
    array<struct<key string, value binary>>, magic tinyint, compression string, crc_ok boolean, base_offset bigint,
    producer_id bigint, producer_epoch smallint, sequence int, partition_leader_epoch int, is_transactional boolean,
    is_control boolean, control_type string, status string, error string>>``, to be exploded. Records before an error
    stay. The bytes that cannot be read are an element at the end, with only a ``status`` and an ``error``. So are bytes
    that are left over. Their ``status`` is ``cut_off``: a broker cuts the last entry of a Fetch response at its size.
    With ``strict``, for record sets that must be whole, it is ``malformed``.

    A record set does not say of which topic it is. If ``topic`` does, secrets are left out of the values of
    ``__cluster_metadata``, unless ``secrets`` are wanted. Text such as ``{"redacted": 212}`` stands there.

    >>> df.select(sql.inline(kwire.spark.decode_records("records")))  # doctest: +SKIP
    """
    hides = sql.lit(False)
    if topic is not None and not secrets:
        hides = sql.coalesce(_column(topic) == METADATA_TOPIC, sql.lit(False))
    return _udf(_record_sets, list_of_records())(_column(payload), hides, sql.lit(strict)).alias("decode_records")


def request_records(
    payload: ColumnOrName,
    *,
    sized: bool = False,
    secrets: bool = False,
    topic_ids: Mapping[str, str] | None = None,
) -> Column:
    """The records in a binary column of Produce requests, as an array to be exploded.

    An element has the columns of the table ``records`` that a payload knows: ``topic``, ``topic_id``, ``partition``,
    those of ``decode_records``, ``batch``, ``status``, ``error``. Other requests have none. A payload that cannot be
    read is one element with its ``status`` and ``error``. ``topic_ids``: names of topics by their ids, for versions
    that name none. For many records in a payload, ``records_of`` is faster: it makes no arrays.

    >>> df.select("host", sql.inline(kwire.spark.request_records("payload")))  # doctest: +SKIP
    """
    return _rows("RECORDS", (payload,), sized, secrets, topic_ids).alias("request_records")


def response_records(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    *,
    sized: bool = False,
    secrets: bool = False,
    topic_ids: Mapping[str, str] | None = None,
) -> Column:
    """The records in a binary column of Fetch and ShareFetch responses, as ``request_records`` has them."""
    return _rows("RECORDS", (payload, api_key, api_version), sized, secrets, topic_ids).alias("response_records")


def request_partitions(
    payload: ColumnOrName, *, sized: bool = False, topic_ids: Mapping[str, str] | None = None
) -> Column:
    """What a binary column of requests says of partitions, as an array to be exploded.

    An element has the columns of the table ``partitions`` that a payload knows, from ``path`` to ``error``.
    """
    return _rows("PARTITIONS", (payload,), sized, False, topic_ids).alias("request_partitions")


def response_partitions(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    *,
    sized: bool = False,
    topic_ids: Mapping[str, str] | None = None,
) -> Column:
    """What a binary column of responses says of partitions, as ``request_partitions`` has it."""
    return _rows("PARTITIONS", (payload, api_key, api_version), sized, False, topic_ids).alias("response_partitions")


def api_name(api_key: ColumnOrName) -> Column:
    """The name of an API by its key: ``Produce`` of 0. Null for a key that no API has."""
    return _udf(_names, pa.string())(_column(api_key).cast("int")).alias("api_name")


@plainly
def _requests(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_requests

    for payload, *flags in columns:
        yield from decode_requests(payload, **_flags(*flags)).chunks


@plainly
def _headers(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_requests

    for payload, sized, *_ in columns:
        yield from decode_requests(payload, sized=bool(_value(sized)), body=False).chunks


@plainly
def _responses(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_responses

    for payload, api_key, api_version, *flags in columns:
        yield from decode_responses(payload, api_key, api_version, **_flags(*flags)).chunks


@plainly
def _record_sets(columns: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_records

    for payload, hides, strict in columns:
        yield from decode_records(payload, metadata=hides, strict=bool(_value(strict))).chunks


@plainly
def _lists(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads import rows
    from kwire.payloads.frames import binary

    for payload, *of, table, sized, secrets, topic_ids in columns:
        topics = json.loads(_value(topic_ids) or "{}")
        wanted = rows.wanted(_value(table), bool(_value(sized)), bool(_value(secrets)), topic_ids=topics)
        yield from rows.lists(binary(payload), wanted, *of)


def _rows(
    table: str,
    given: tuple[ColumnOrName | int, ...],
    sized: bool,
    secrets: bool,
    topic_ids: Mapping[str, str] | None,
) -> Column:
    from kwire.payloads import rows

    payload, *of = map(_column, given)
    flags = (sql.lit(one) for one in (table, sized, secrets, json.dumps(dict(topic_ids or {}))))
    wanted = rows.wanted(table, sized, secrets, topic_ids=topic_ids)
    return _udf(_lists, rows.list_of(wanted.schema))(payload, *(one.cast("int") for one in of), *flags)


@plainly
def _names(api_key: pa.Array) -> pa.Array:
    from kwire.payloads.singly import name_of

    names = {key: name_of(key) for key in api_key.unique().to_pylist() if key is not None}
    return pa.array([names.get(key) for key in api_key.to_pylist()], pa.string())


@plainly
def _sql_requests(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_requests

    for payload in columns:
        yield from decode_requests(payload).chunks


@plainly
def _sql_headers(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_requests

    for payload in columns:
        yield from decode_requests(payload, body=False).chunks


@plainly
def _sql_responses(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_responses

    for given in columns:
        yield from decode_responses(*given).chunks


@plainly
def _sql_lists(table: str, columns: Iterator[Any]) -> Iterator[pa.Array]:
    from kwire.payloads import rows
    from kwire.payloads.frames import binary

    for given in columns:
        payload, *of = given if isinstance(given, tuple) else (given,)
        yield from rows.lists(binary(payload), rows.wanted(table), *of)


def _sql_request_records(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    return _sql_lists("RECORDS", columns)


def _sql_response_records(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql_lists("RECORDS", columns)


def _sql_request_partitions(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    return _sql_lists("PARTITIONS", columns)


def _sql_response_partitions(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    return _sql_lists("PARTITIONS", columns)


@plainly
def _sql_records(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    from kwire.payloads import decode_records

    for payload in columns:
        yield from decode_records(payload).chunks


def sql_functions() -> dict[str, Callable[..., Column]]:
    """The functions by the names that SQL has for them, with their arguments by position and no options.

    ``kwire_decode_request(payload)``, ``kwire_decode_request_header(payload)``, ``kwire_decode_records(records)``,
    ``kwire_decode_response(payload, api_key, api_version)``, ``kwire_request_records(payload)``,
    ``kwire_response_records(payload, api_key, api_version)``, the two of ``partitions``, ``kwire_api_name(api_key)``.
    Secrets are left out.
    """
    from kwire.payloads import rows

    return {
        "kwire_decode_request": _udf(_sql_requests, REQUEST),
        "kwire_decode_request_header": _udf(_sql_headers, HEADER),
        "kwire_decode_response": _udf(_sql_responses, RESPONSE),
        "kwire_decode_records": _udf(_sql_records, list_of_records()),
        "kwire_request_records": _udf(_sql_request_records, rows.list_of(rows.wanted("RECORDS").schema)),
        "kwire_response_records": _udf(_sql_response_records, rows.list_of(rows.wanted("RECORDS").schema)),
        "kwire_request_partitions": _udf(_sql_request_partitions, rows.list_of(rows.wanted("PARTITIONS").schema)),
        "kwire_response_partitions": _udf(_sql_response_partitions, rows.list_of(rows.wanted("PARTITIONS").schema)),
        "kwire_api_name": _udf(_names, pa.string()),
    }


def _column(value: ColumnOrName | int) -> Column:
    if isinstance(value, int):
        return sql.lit(value)
    return sql.col(value) if isinstance(value, str) else value


def _udf(function: Callable[..., Any], returns: pa.DataType) -> Callable[..., Column]:
    # PySpark's annotations leave out the types that it does accept: structs.
    made: Callable[..., Column] = arrow_udf(function, from_arrow_type(returns))  # type: ignore[call-overload]
    return made


def _with_body(type_: pa.StructType, direction: str, api: str | None, payloads: bool) -> pa.StructType:
    """The struct, whose ``body`` is that of one message if ``api`` is given. Raises ``ValueError`` for an API that
    there is not."""
    if api is None:
        return type_
    from kwire.tables.typed import message_of

    return with_body(type_, message_of(api, direction), payloads)


_FLAGS: Final = ("sized", "secrets", "payloads", "api")


def _flags(*columns: pa.Array) -> BodyOptions:
    """Arguments that are the same for all rows, and come as columns."""
    return cast("BodyOptions", {name: _value(column) for name, column in zip(_FLAGS, columns, strict=True)})


def _value(flag: pa.Array) -> Any:
    return flag[0].as_py() if len(flag) else None
