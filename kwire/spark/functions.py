"""Column functions: parse raw Kafka payloads that are already in a table.

A payload is a frame without its 4-byte size: it begins with the header. Where a table kept the size, ``sized=True``
says so. It is not guessed, because a response begins with its correlation id, and a small one looks like a size.

Each function is an Arrow UDF (no pandas) that decodes a column batch by batch with the codec of ``kwire``, and returns
a struct, or an array of structs for records. Rules kept here:

- Secrets (passwords, tokens, keys) are left out unless ``secrets=True``, as in the tables.
- Null in, null out. Bad input is a struct with ``status`` and ``error`` and whatever could be read before the error,
  never a failed job.
- ``status`` has the words of the data source: ``ok``, ``trailing``, ``malformed``, ``unsupported``; for records ``ok``,
  ``corrupt`` and ``malformed``.
- ``body`` is JSON text, as in the table ``messages``: bytes are base64, fields in the order of the schema, and only
  those of the version. ``docs/spark.md`` says why it is not VARIANT; ``parse_json(body)`` makes one of it.
- The functions that Spark pickles are at the module's top level, so that they travel by name; kwire must be installed
  where the workers run.
- numba and the kernels are imported by ``decode_records``, not by this module: Spark imports it for every query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

import kwire
from kwire import schema, wire
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.protocol.describe import to_json
from kwire.protocol.secrets import METADATA_TOPIC

if TYPE_CHECKING:
    from pyspark.sql._typing import ColumnOrName

    from kwire.records import RecordColumns

__all__ = ["decode_records", "decode_request", "decode_response"]

REQUEST: Final = pa.struct(
    [
        pa.field("api_key", pa.int16()),
        pa.field("api_name", pa.string()),
        pa.field("api_version", pa.int16()),
        pa.field("correlation_id", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("body", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""What ``decode_request`` returns; ``decode_response`` returns the same without ``client_id``."""

Row = dict[str, object]

RESPONSE: Final = pa.struct([field for field in REQUEST if field.name != "client_id"])

WINDOW: Final = 4 << 20
"""Bytes of record sets that are decoded at once."""


@cache
def record_type() -> pa.DataType:
    """An element of what ``decode_records`` returns: the columns of ``kwire.records.SCHEMA``, and what is wrong."""
    from kwire.records import SCHEMA

    fields = [field.with_nullable(True) for field in SCHEMA]
    return pa.struct([*fields, pa.field("status", pa.string(), nullable=False), pa.field("error", pa.string())])


def _list_type() -> pa.DataType:
    return pa.list_(pa.field("element", record_type(), nullable=False))


def decode_request(payload: ColumnOrName, *, sized: bool = False, secrets: bool = False) -> Column:
    """Decodes a binary column of request frames.

    Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id int, client_id string,
    body string, status string, error string>``. A body that cannot be decoded leaves the header's fields in place.

    >>> df.select(kwire.spark.decode_request("payload").alias("r")).select("r.api_name", "r.body")  # doctest: +SKIP
    """
    made = _udf(_requests, REQUEST)(_column(payload), sql.lit(sized), sql.lit(secrets))
    return made.alias("decode_request")


def decode_response(
    payload: ColumnOrName,
    api_key: ColumnOrName | int,
    api_version: ColumnOrName | int,
    *,
    sized: bool = False,
    secrets: bool = False,
) -> Column:
    """Decodes a binary column of response frames.

    A response does not say what it answers: ``api_key`` and ``api_version`` of its request are columns, or numbers
    where all are the same. Returns ``struct<api_key smallint, api_name string, api_version smallint, correlation_id
    int, body string, status string, error string>``; ``api_version`` is 0 where a broker answered ApiVersions in v0
    because it does not know the version asked for (KIP-511).
    """
    return _udf(_responses, RESPONSE)(
        _column(payload),
        _column(api_key).cast("int"),
        _column(api_version).cast("int"),
        sql.lit(sized),
        sql.lit(secrets),
    ).alias("decode_response")


def decode_records(payload: ColumnOrName, *, topic: ColumnOrName | None = None, secrets: bool = False) -> Column:
    """Decodes a binary column of record sets: what ``records`` fields and log segments hold, in any magic and mixture.

    Returns ``array<struct<offset bigint, timestamp timestamp, timestamp_type string, key binary, value binary, headers
    array<struct<key string, value binary>>, magic tinyint, compression string, crc_ok boolean, base_offset bigint,
    producer_id bigint, producer_epoch smallint, sequence int, partition_leader_epoch int, is_transactional boolean,
    is_control boolean, control_type string, status string, error string>>``, to be exploded. What cannot be read is an
    element at the end with a ``status`` and an ``error`` and nothing else; what can be stays. A record set that was cut
    off in its last entry, as Fetch responses are, is not an error.

    A record set does not say of which topic it is: where ``topic`` does, secrets are left out of the values of
    ``__cluster_metadata`` (there stands text such as ``{"redacted": 212}``) unless ``secrets`` are wanted.

    >>> df.select(sql.inline(kwire.spark.decode_records("records")))  # doctest: +SKIP
    """
    hides = sql.lit(False)
    if topic is not None and not secrets:
        hides = sql.coalesce(_column(topic) == METADATA_TOPIC, sql.lit(False))
    return _udf(_record_sets, _list_type())(_column(payload), hides).alias("decode_records")


def _column(value: ColumnOrName | int) -> Column:
    if isinstance(value, int):
        return sql.lit(value)
    return sql.col(value) if isinstance(value, str) else value


def _udf(function: Callable[..., Any], returns: pa.DataType) -> Callable[..., Column]:
    # PySpark's annotations leave out the types that it does accept: structs.
    made: Callable[..., Column] = arrow_udf(function, from_arrow_type(returns))  # type: ignore[call-overload]
    return made


def _is_set(flag: pa.Array) -> bool:
    """A literal, which comes as a column."""
    return len(flag) > 0 and bool(flag[0].as_py())


def _payloads(column: pa.Array, sized: pa.Array) -> Iterator[bytes | KwireError | None]:
    """The frames of a column; for one whose size is not that of what follows, the error."""
    has_size = _is_set(sized)
    for value in column:
        data: bytes | None = value.as_py()
        if not has_size or data is None:
            yield data
        elif len(data) < 4:
            yield DecodeError(f"{len(data)} bytes are too few for a size", layout="size", offset=0)
        elif (size := int.from_bytes(data[:4], "big", signed=True)) != len(data) - 4:
            yield DecodeError(f"the size says {size} bytes, {len(data) - 4} follow", layout="size", offset=0)
        else:
            yield data[4:]


def _status(error: KwireError) -> Row:
    word = "too_large" if isinstance(error, LimitError) else "malformed"
    return {"status": "unsupported" if isinstance(error, UnsupportedVersionError) else word, "error": str(error)}


def _all_read(left: int) -> Row:
    """What is said of a body that was read, where ``left`` bytes follow it."""
    return {"status": "trailing", "error": f"bytes after the end of the body: {left}"} if left else {"status": "ok"}


def _name(api_key: int) -> str | None:
    message = schema.request(api_key)
    return None if message is None else message.api_name


def _requests(payload: pa.Array, sized: pa.Array, secrets: pa.Array) -> pa.Array:
    shows = _is_set(secrets)
    return _structs((None if one is None else _request(one, shows) for one in _payloads(payload, sized)), REQUEST)


def _request(data: bytes | KwireError, secrets: bool) -> Row:
    if isinstance(data, KwireError):
        return _status(data)
    row: Row = {}
    if len(data) >= 4:
        # Known even where the API or the version is not.
        row["api_key"] = api_key = int.from_bytes(data[:2], "big", signed=True)
        row["api_version"] = int.from_bytes(data[2:4], "big", signed=True)
        row["api_name"] = _name(api_key)
    header = None
    try:
        header, _ = kwire.decode_request_header(data)
        request = kwire.decode_request(data, trailing=True)
        row["body"] = to_json(request.body, header.request_api_version, secrets=secrets)
        row.update(_all_read(request.trailing))
    except KwireError as error:
        row.update(_status(error))
    if header is not None:
        row["correlation_id"] = header.correlation_id
        # A header of version 0 has none.
        if header.client_id is not None:
            row["client_id"] = wire.printable(header.client_id)
    return row


def _responses(
    payload: pa.Array, api_key: pa.Array, api_version: pa.Array, sized: pa.Array, secrets: pa.Array
) -> pa.Array:
    rows = zip(_payloads(payload, sized), api_key.to_pylist(), api_version.to_pylist(), strict=True)
    shows = _is_set(secrets)
    return _structs(
        (None if data is None else _response(data, key, version, shows) for data, key, version in rows), RESPONSE
    )


def _response(data: bytes | KwireError, api_key: int | None, api_version: int | None, secrets: bool) -> Row:
    if isinstance(data, KwireError):
        return _status(data)
    if api_key is None or api_version is None:
        return _status(UnsupportedVersionError("the request's API key and version are not known"))
    if not (-32768 <= api_key <= 32767 and -32768 <= api_version <= 32767):
        return _status(UnsupportedVersionError(f"no API key {api_key} version {api_version}: both are 16-bit numbers"))
    row: Row = {"api_key": api_key, "api_version": api_version, "api_name": _name(api_key)}
    if len(data) >= 4:
        # Every response header begins with it.
        row["correlation_id"] = int.from_bytes(data[:4], "big", signed=True)
    try:
        response = kwire.decode_response(data, api_key=api_key, api_version=api_version, trailing=True)
        row["api_version"] = response.api_version
        row["body"] = to_json(response.body, response.api_version, secrets=secrets)
        row.update(_all_read(response.trailing))
    except KwireError as error:
        row.update(_status(error))
    return row


def _structs(rows: Iterable[Row | None], type_: pa.DataType) -> pa.Array:
    return pa.array(list(rows), type=type_)


# An iterator, because there can be more in a column of record sets than one Arrow array can hold.
def _record_sets(columns: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    for payload, hides in columns:
        yield from _windows(payload, hides)


def _windows(payload: pa.Array, hides: pa.Array) -> Iterator[pa.Array]:
    first = 0
    size = 0
    lengths = pa.compute.fill_null(pa.compute.binary_length(payload), 0).to_pylist()
    for row, length in enumerate(lengths):
        if size + length > WINDOW and row > first:
            yield from _decoded(payload.slice(first, row - first), hides.slice(first, row - first))
            first, size = row, 0
        size += length
    yield from _decoded(payload.slice(first), hides.slice(first))


def _decoded(payload: pa.Array, hides: pa.Array) -> Iterator[pa.Array]:
    """The records of each payload of a window, as one array of lists; several where one cannot hold them."""
    import numpy as np

    from kwire.records.columnar import decode_groups

    ends = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]
    ends = ends.astype(np.int64)
    data = payload.buffers()[2]
    buffer = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    # The window's own bytes only: the column's buffer can be larger than the decoder takes.
    for part in decode_groups(buffer[ends[0] : ends[-1]], ends[:-1] - ends[0], ends[1:] - ends[:-1]):
        yield _lists(payload.slice(part.first, part.sets), hides.slice(part.first, part.sets), part.found)


def _lists(payload: pa.Array, hides: pa.Array, found: RecordColumns) -> pa.Array:
    import numpy as np

    from kwire.log.internal import with_redacted
    from kwire.records.verdicts import among, verdict, words_of

    columns = [*found.batch.columns, *verdict(found.batch.column("crc_ok"))]
    if hides.true_count:
        of_rows = hides.to_numpy(False)[found.set_index] & ~found.batch.column("is_control").to_numpy(False)
        value = found.batch.schema.get_field_index("value")
        columns[value] = with_redacted(columns[value], np.flatnonzero(of_rows))
    values = pa.StructArray.from_arrays(columns, fields=list(record_type()))
    problems = found.problems
    words = words_of([said for _, _, said in problems])
    wrong = [
        {"status": word, "error": f"record set at byte {offset}: {said}"}
        for word, (_, offset, said) in zip(words, problems, strict=True)
    ]
    set_index = np.concatenate([found.set_index, np.array([index for index, _, _ in problems], np.int32)])
    values = among(values, pa.array(wrong, record_type()), set_index)
    counts = np.bincount(set_index, minlength=len(payload))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    missing = payload.is_null() if payload.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=_list_type(), mask=missing)
