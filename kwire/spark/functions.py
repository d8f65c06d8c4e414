"""Column functions: parse raw Kafka payloads that are already in a table.

A payload is a frame without its 4-byte size: it begins with the header. If a table kept the size, say ``sized=True``.
The size is not guessed: a response begins with its correlation id, and a small one looks like a size.

Each function is an Arrow UDF (no pandas). It decodes a column batch by batch with the codec of ``kwire``, and returns a
struct, or an array of structs for records. Rules kept here:

- Secrets (passwords, tokens, keys) are left out unless ``secrets=True``, as in the tables.
- Null in, null out.
- Bad input never fails a job. It is a struct with ``status``, ``error`` and whatever could be read before the error.
- ``status`` has the words of the data source: ``ok``, ``trailing``, ``malformed``, ``unsupported``. For records it has
  ``ok``, ``corrupt`` and ``malformed``.
- ``body`` is JSON text, as in the table ``messages``. Bytes are base64. Fields are in the order of the schema, and only
  those of the version. ``docs/spark.md`` says why it is not VARIANT; ``parse_json(body)`` makes one of it.
- The functions that Spark pickles are at the module's top level, so that they travel by name. kwire must be installed
  on the workers.
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
from kwire.codec import registry
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.protocol.describe import Shown, described, to_json
from kwire.protocol.headers import request_header_version
from kwire.protocol.secrets import CONTROLS, METADATA_TOPIC, is_doubtful
from kwire.records.arrow_types import STATUS_FIELDS
from kwire.spark.workers import plainly

if TYPE_CHECKING:
    import numpy as np
    from pyspark.sql._typing import ColumnOrName

    from kwire.codec.objects import WireMessage
    from kwire.messages import RequestHeader
    from kwire.records import RecordColumns
    from kwire.schema import model

__all__ = ["api_name", "decode_records", "decode_request", "decode_response", "sql_functions"]

REQUEST: Final = pa.struct(
    [
        pa.field("api_key", pa.int16()),
        pa.field("api_name", pa.string()),
        pa.field("api_version", pa.int16()),
        pa.field("correlation_id", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("body", pa.string()),
        *STATUS_FIELDS,
    ]
)
"""What ``decode_request`` returns. ``decode_response`` returns the same without ``client_id``."""

HEADER: Final = pa.struct([field for field in REQUEST if field.name != "body"])
"""What ``decode_request`` returns with ``body=False``."""

Row = dict[str, object]

RESPONSE: Final = pa.struct([field for field in REQUEST if field.name != "client_id"])

WINDOW: Final = 4 << 20
"""Bytes of record sets that are decoded at once."""


@cache
def record_type() -> pa.DataType:
    """An element of what ``decode_records`` returns: the columns of ``kwire.records.SCHEMA``, and what is wrong."""
    from kwire.records import SCHEMA

    fields = [field.with_nullable(True) for field in SCHEMA]
    return pa.struct([*fields, *STATUS_FIELDS])


def _list_type() -> pa.DataType:
    return pa.list_(pa.field("element", record_type(), nullable=False))


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
    if not body:
        return _udf(_headers, HEADER)(_column(payload), sql.lit(sized)).alias("decode_request")
    if api is not None:
        return _typed(_typed_requests, REQUEST, api, "request", payloads, (_column(payload),), sized, secrets).alias(
            "decode_request"
        )
    made = _udf(_requests, REQUEST)(_column(payload), sql.lit(sized), sql.lit(secrets))
    return made.alias("decode_request")


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
    if api is not None:
        given = (_column(payload), _column(api_key).cast("int"), _column(api_version).cast("int"))
        return _typed(_typed_responses, RESPONSE, api, "response", payloads, given, sized, secrets).alias(
            "decode_response"
        )
    return _udf(_responses, RESPONSE)(
        _column(payload),
        _column(api_key).cast("int"),
        _column(api_version).cast("int"),
        sql.lit(sized),
        sql.lit(secrets),
    ).alias("decode_response")


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
    return _udf(_record_sets, _list_type())(_column(payload), hides, sql.lit(strict)).alias("decode_records")


def api_name(api_key: ColumnOrName) -> Column:
    """The name of an API by its key: ``Produce`` of 0. Null for a key that no API has."""
    return _udf(_names, pa.string())(_column(api_key).cast("int")).alias("api_name")


@plainly
def _sql_requests(payload: pa.Array) -> pa.Array:
    return _requests(payload, _NO, _NO)


@plainly
def _sql_headers(payload: pa.Array) -> pa.Array:
    return _headers(payload, _NO)


@plainly
def _sql_responses(payload: pa.Array, api_key: pa.Array, api_version: pa.Array) -> pa.Array:
    return _responses(payload, api_key, api_version, _NO, _NO)


@plainly
def _sql_records(columns: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for payload in columns:
        yield from _windows(payload, pa.nulls(len(payload), pa.bool_()).fill_null(False), False)


_NO: Final = pa.array([False])


def sql_functions() -> dict[str, Callable[..., Column]]:
    """The functions by the names that SQL has for them, with their arguments by position and no options.

    ``kwire_decode_request(payload)``, ``kwire_decode_request_header(payload)``, ``kwire_decode_records(records)``,
    ``kwire_decode_response(payload, api_key, api_version)``, ``kwire_api_name(api_key)``. Secrets are left out.
    """
    return {
        "kwire_decode_request": _udf(_sql_requests, REQUEST),
        "kwire_decode_request_header": _udf(_sql_headers, HEADER),
        "kwire_decode_response": _udf(_sql_responses, RESPONSE),
        "kwire_decode_records": _udf(_sql_records, _list_type()),
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


def _typed(
    function: Callable[..., Any],
    type_: pa.StructType,
    api: str,
    direction: str,
    payloads: bool,
    given: tuple[Column, ...],
    sized: bool,
    secrets: bool,
) -> Column:
    """A function whose ``body`` is the struct of one message. Raises ``ValueError`` for an API that there is not."""
    from kwire.tables.typed import message_of

    returns = _with_body(type_, message_of(api, direction), payloads)
    flags = (sql.lit(sized), sql.lit(secrets), sql.lit(payloads), sql.lit(api))
    return _udf(function, returns)(*given, *flags)


def _with_body(type_: pa.StructType, message: model.Message, payloads: bool) -> pa.StructType:
    from kwire.tables.typed import body_type

    body = body_type(message, payloads=payloads)
    return pa.struct([one.with_type(body) if one.name == "body" else one for one in type_])


def _is_set(flag: pa.Array) -> bool:
    """A literal, which comes as a column."""
    return len(flag) > 0 and bool(flag[0].as_py())


def _bytes_of(column: pa.Array) -> pa.Array:
    """A column of payloads. NULL in SQL has no type. Raises ``KwireError`` for one that is not of bytes."""
    if pa.types.is_null(column.type):
        return column.cast(pa.binary())
    if not pa.types.is_binary(column.type) and not pa.types.is_large_binary(column.type):
        raise KwireError(f"the payload is a column of bytes (BINARY), not of the type {column.type}")
    return column


def _payloads(column: pa.Array, sized: pa.Array) -> Iterator[bytes | KwireError | None]:
    """The frames of a column. A frame whose size does not match the bytes after it is an error.

    Raises ``KwireError`` for a column that is not of bytes.
    """
    column, has_size = _bytes_of(column), _is_set(sized)
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
    """The status and error of a body that was read, if ``left`` bytes follow it."""
    return {"status": "trailing", "error": f"bytes after the end of the body: {left}"} if left else {"status": "ok"}


def _name(api_key: int) -> str | None:
    message = schema.request(api_key)
    return None if message is None else message.api_name


class _Text:
    """Bodies as JSON text."""

    def __init__(self, secrets: bool) -> None:
        self._secrets = secrets

    def __call__(self, body: WireMessage, version: int) -> object:
        return to_json(body, version, secrets=self._secrets)


class _Struct:
    """Bodies of one message as values of a struct, all others null."""

    def __init__(self, message: model.Message, type_: pa.StructType, shown: Shown) -> None:
        from kwire.tables.typed import Typed

        self._message = message
        self._typed = Typed(type_)
        self._shown = shown

    def __call__(self, body: WireMessage, version: int) -> object:
        if body.SCHEMA is not self._message:
            return None
        return self._typed.value(described(body, version, self._shown))


def _of_api(
    type_: pa.StructType, direction: str, secrets: pa.Array, payloads: pa.Array, api: pa.Array
) -> tuple[pa.StructType, _Struct]:
    """The type of the rows, and what makes their bodies, from literals. There is at least one."""
    from kwire.tables.typed import message_of

    message = message_of(api[0].as_py(), direction)
    returns = _with_body(type_, message, _is_set(payloads))
    shown = Shown(_is_set(secrets), _is_set(payloads), True)
    return returns, _Struct(message, returns.field("body").type, shown)


@plainly
def _typed_requests(
    payload: pa.Array, sized: pa.Array, secrets: pa.Array, payloads: pa.Array, api: pa.Array
) -> pa.Array:
    returns, body = _of_api(REQUEST, "request", secrets, payloads, api)
    return _structs((None if one is None else _request(one, body) for one in _payloads(payload, sized)), returns)


@plainly
def _typed_responses(
    payload: pa.Array,
    api_key: pa.Array,
    api_version: pa.Array,
    sized: pa.Array,
    secrets: pa.Array,
    payloads: pa.Array,
    api: pa.Array,
) -> pa.Array:
    returns, body = _of_api(RESPONSE, "response", secrets, payloads, api)
    rows = zip(_payloads(payload, sized), api_key.to_pylist(), api_version.to_pylist(), strict=True)
    return _structs(
        (None if data is None else _response(data, key, version, body) for data, key, version in rows), returns
    )


@plainly
def _requests(payload: pa.Array, sized: pa.Array, secrets: pa.Array) -> pa.Array:
    shows = _Text(_is_set(secrets))
    return _structs((None if one is None else _request(one, shows) for one in _payloads(payload, sized)), REQUEST)


def _request(data: bytes | KwireError, made: Callable[[WireMessage, int], object]) -> Row:
    def body(header: RequestHeader) -> Row:
        assert isinstance(data, bytes)
        request = kwire.decode_request(data, trailing=True)
        value = made(request.body, header.request_api_version)
        return {"body": value, **_all_read(request.trailing)}

    return _row(data, body)


def _row(data: bytes | KwireError, read: Callable[[RequestHeader], Row]) -> Row:
    """What the header says, and what ``read`` makes of it and what follows."""
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
        row.update(read(header))
    except KwireError as error:
        row.update(_status(error))
    if header is not None:
        row["correlation_id"] = header.correlation_id
        # A header of version 0 has none. Where the body is not read, nobody knows whether it is what it should be.
        whole = row["status"] == "ok" and "body" in row
        if header.client_id is not None and (whole or not is_doubtful(header.client_id)):
            row["client_id"] = wire.printable(header.client_id)
    return row


def _names(api_key: pa.Array) -> pa.Array:
    names = {key: _name(key) for key in api_key.unique().to_pylist() if key is not None}
    return pa.array([names.get(key) for key in api_key.to_pylist()], pa.string())


@plainly
def _headers(payload: pa.Array, sized: pa.Array) -> pa.Array:
    """Headers by whole columns. Unusual ones (null, cut off, not known, tagged, not UTF-8) are read one by one."""
    import numpy as np

    payload = _bytes_of(payload)
    count = len(payload)
    ends = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + count + 1].astype(np.int64)
    stored = payload.buffers()[2]
    buffer = np.frombuffer(stored, np.uint8) if stored is not None else np.zeros(0, np.uint8)
    first, last = ends[:-1], ends[1:]
    has_size = _is_set(sized)
    usual = np.asarray(payload.is_valid()) & (last - first >= (_FIXED + 4 if has_size else _FIXED))
    if has_size:
        said = _numbers(buffer, np.where(usual, first, 0), 4, usual)
        usual &= said == last - first - 4
        first = first + 4
    at = np.where(usual, first, 0)
    key, version = _numbers(buffer, at, 2, usual), _numbers(buffer, at + 2, 2, usual)
    correlation_id = _numbers(buffer, at + 4, 4, usual)
    pairs, inverse = np.unique(key << 16 | (version & 0xFFFF), return_inverse=True)
    forms = np.array([_form(pair >> 16, (pair & 0xFFFF) - ((pair & 0x8000) << 1)) for pair in pairs.tolist()], np.int64)
    form = forms[inverse] if count else np.zeros(0, np.int64)
    usual &= form >= 0
    named = usual & (form >= 1)
    usual &= ~named | (last - first >= _FIXED + 2)
    named &= usual
    length = _numbers(buffer, at + _FIXED, 2, named)
    after = at + np.where(named, _FIXED + 2 + np.maximum(length, 0), _FIXED)
    usual &= (length >= -1) & (after + (form == 2) <= last)
    # A tagged section that is not empty.
    usual &= ~((form == 2) & usual) | (_numbers(buffer, after, 1, usual & (form == 2)) == 0)
    named &= usual & (length >= 0)
    texts = _texts(buffer, np.where(named, at + _FIXED + 2, 0), np.where(named, length, 0))
    if texts is None:
        usual[:] = False
        texts = pa.nulls(count, pa.string())
    usual &= ~np.asarray(pa.compute.fill_null(pa.compute.match_substring_regex(texts, CONTROLS), False))
    names = pa.array([_name(one) for one in np.unique(key).tolist()], pa.string())
    columns = {
        "api_key": pa.array(key.astype(np.int16)),
        "api_name": names.take(pa.array(np.unique(key, return_inverse=True)[1])),
        "api_version": pa.array(version.astype(np.int16)),
        "correlation_id": pa.array(correlation_id.astype(np.int32)),
        "client_id": pa.compute.if_else(pa.array(named), texts, pa.scalar(None, pa.string())),
        "status": pa.array(["ok"], pa.string()).take(pa.array(np.zeros(count, np.int64))),
        "error": pa.nulls(count, pa.string()),
    }
    made = pa.StructArray.from_arrays([columns[field.name] for field in HEADER], fields=list(HEADER))
    odd = np.flatnonzero(~usual)
    if not len(odd):
        return made
    chosen = payload.take(pa.array(odd))
    rows = _structs((None if one is None else _header(one) for one in _payloads(chosen, sized)), HEADER)
    index = np.arange(count)
    index[odd] = count + np.arange(len(odd))
    return pa.concat_arrays([made, rows]).take(pa.array(index))


_FIXED: Final = 8
"""Bytes before the client id: API key, version, correlation id."""


def _numbers(buffer: np.ndarray, at: np.ndarray, size: int, where: np.ndarray) -> np.ndarray:
    """Signed numbers of ``size`` bytes of ``buffer``, and 0 if they are not asked for."""
    import numpy as np

    found = np.zeros(len(at), np.int64)
    chosen = at[where]
    made = np.zeros(len(chosen), np.int64)
    for byte in range(size):
        made = made << 8 | buffer[chosen + byte]
    found[where] = made - ((made >> (8 * size - 1)) << (8 * size))
    return found


def _texts(buffer: np.ndarray, first: np.ndarray, length: np.ndarray) -> pa.Array | None:
    """Strings out of ``buffer``. None if one is not UTF-8."""
    import numpy as np

    view = memoryview(buffer.data)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)]).astype(np.int32)
    data = b"".join(map(view.__getitem__, map(slice, first.tolist(), (first + length).tolist())))
    made = pa.BinaryArray.from_buffers(pa.binary(), len(length), [None, pa.py_buffer(ends), pa.py_buffer(data)])
    try:
        return made.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _form(api_key: int, version: int) -> int:
    """The version of a request's header. -1 if it is not known."""
    try:
        registry.request_codec(api_key, version)
        return request_header_version(api_key, version)
    except KwireError:
        return -1


def _header(data: bytes | KwireError) -> Row:
    def no_body(header: RequestHeader) -> Row:
        registry.request_codec(header.request_api_key, header.request_api_version)
        return {"status": "ok"}

    return _row(data, no_body)


@plainly
def _responses(
    payload: pa.Array, api_key: pa.Array, api_version: pa.Array, sized: pa.Array, secrets: pa.Array
) -> pa.Array:
    rows = zip(_payloads(payload, sized), api_key.to_pylist(), api_version.to_pylist(), strict=True)
    shows = _Text(_is_set(secrets))
    return _structs(
        (None if data is None else _response(data, key, version, shows) for data, key, version in rows), RESPONSE
    )


def _response(
    data: bytes | KwireError,
    api_key: int | None,
    api_version: int | None,
    made: Callable[[WireMessage, int], object],
) -> Row:
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
        row["body"] = made(response.body, response.api_version)
        row.update(_all_read(response.trailing))
    except KwireError as error:
        row.update(_status(error))
    return row


def _structs(rows: Iterable[Row | None], type_: pa.DataType) -> pa.Array:
    return pa.array(list(rows), type=type_)


# An iterator, because there can be more in a column of record sets than one Arrow array can hold.
@plainly
def _record_sets(columns: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    for payload, hides, strict in columns:
        yield from _windows(payload, hides, _is_set(strict))


def _windows(payload: pa.Array, hides: pa.Array, strict: bool) -> Iterator[pa.Array]:
    first = 0
    size = 0
    payload = _bytes_of(payload)
    lengths = pa.compute.fill_null(pa.compute.binary_length(payload), 0).to_pylist()
    for row, length in enumerate(lengths):
        if size + length > WINDOW and row > first:
            yield from _decoded(payload.slice(first, row - first), hides.slice(first, row - first), strict)
            first, size = row, 0
        size += length
    yield from _decoded(payload.slice(first), hides.slice(first), strict)


def _decoded(payload: pa.Array, hides: pa.Array, strict: bool) -> Iterator[pa.Array]:
    """The records of each payload of a window, as one array of lists. Several if one cannot hold them.

    ``strict``: no entry may be cut off."""
    import numpy as np

    from kwire.records.columnar import decode_groups

    ends = np.frombuffer(payload.buffers()[1], np.int32)[payload.offset : payload.offset + len(payload) + 1]
    ends = ends.astype(np.int64)
    data = payload.buffers()[2]
    buffer = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    # The window's own bytes only: the column's buffer can be larger than the decoder takes.
    for part in decode_groups(buffer[ends[0] : ends[-1]], ends[:-1] - ends[0], ends[1:] - ends[:-1]):
        yield _lists(payload.slice(part.first, part.sets), hides.slice(part.first, part.sets), part.found, strict)


def _lists(payload: pa.Array, hides: pa.Array, found: RecordColumns, strict: bool) -> pa.Array:
    import numpy as np

    from kwire.log.internal import MAY_HIDE, of_metadata
    from kwire.records.verdicts import CUT_OFF, MALFORMED, among, verdict, words_of

    columns = [*found.batch.columns, *verdict(found.batch.column("crc_ok"))]
    if hides.true_count:
        of_rows, control = hides.to_numpy(False)[found.set_index], found.batch.column("is_control").to_numpy(False)
        some = of_metadata({one: found.batch.column(one) for one in MAY_HIDE}, of_rows, control)
        for name, column in some.items():
            columns[found.batch.schema.get_field_index(name)] = column
    values = pa.StructArray.from_arrays(columns, fields=list(record_type()))
    problems = found.problems
    words = words_of([said for _, _, said in problems])
    wrong = [
        {"status": word, "error": f"record set at byte {offset}: {said}"}
        for word, (_, offset, said) in zip(words, problems, strict=True)
    ]
    wrong_sets = [index for index, _, _ in problems]
    # If no next entry can be found after a problem, the problem itself says that there is a rest.
    stopped = {index for index, offset, _ in problems if offset >= found.consumed[index]}
    sizes = pa.compute.fill_null(pa.compute.binary_length(payload), 0).to_numpy()
    for index in np.flatnonzero(found.consumed < sizes).tolist():
        if index not in stopped:
            at = int(found.consumed[index])
            said = f"record set at byte {at}: no whole entry is in the {int(sizes[index]) - at} bytes that are left"
            wrong_sets.append(index)
            wrong.append({"status": MALFORMED if strict else CUT_OFF, "error": said})
    set_index = np.concatenate([found.set_index, np.array(wrong_sets, np.int32)])
    values = among(values, pa.array(wrong, record_type()), set_index)
    counts = np.bincount(set_index, minlength=len(payload))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    missing = payload.is_null() if payload.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=_list_type(), mask=missing)
