"""Payloads in a column: raw frames and record sets that are already in an Arrow array, as structs.

For pandas, Polars, DuckDB and plain Arrow users; ``kwire.spark`` has the same as column functions. A payload is one
frame without its 4-byte size: it begins with the header. If a table kept the size, say ``sized=True``. Then a payload
may be several frames, one after the other, and ``several=True`` makes a list of each. With ``sized="auto"`` each
payload shows by itself whether it begins with a size (``kwire.payloads.sizes`` says by what).

>>> import pyarrow as pa, kwire.payloads
>>> column = pa.array([bytes.fromhex("0012000000000007000574657374"), None, b"no frame"])
>>> [None if one is None else one["status"] for one in kwire.payloads.decode_requests(column).to_pylist()]
['malformed', None, 'unsupported']

A column is a ``pyarrow.Array`` or ``ChunkedArray`` of binary, large_binary, binary_view or fixed-size binary. What
comes back is a ``ChunkedArray`` of as many rows. Rules kept here:

- Null in, null out. Bad input never raises. It is a struct with ``status``, ``error`` and whatever could be read
  before the error.
- ``status`` has the words of the table ``messages``: ``ok``, ``trailing``, ``malformed``, ``unsupported``,
  ``too_large``, ``cut_off`` (the frame is shorter than its size says). For records it has ``ok``, ``corrupt``,
  ``malformed``, ``cut_off`` and ``too_large``.
- ``body`` is JSON text, as in ``messages``. Bytes are base64. Fields are in the order of the schema, and only those of
  the version.
- Secrets (passwords, tokens, keys) are left out unless ``secrets=True``.

Needs the extra ``capture`` (numba, numpy, pyarrow).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from kwire.errors import KwireError, needed
from kwire.limits import DEFAULT_LIMITS, Limits

with needed("columns of payloads", "capture"):
    import pyarrow as pa
    import pyarrow.compute as pc

from kwire.payloads.types import (
    HEADER,
    REQUEST,
    RESPONSE,
    BodyOptions,
    RowOptions,
    check_options,
    listed,
    struct_of,
)

if TYPE_CHECKING:
    from kwire.payloads.messages import How

__all__ = [
    "BodyOptions",
    "RowOptions",
    "decode_records",
    "decode_requests",
    "decode_responses",
    "request_partitions",
    "request_records",
    "response_partitions",
    "response_records",
]

Column = Any
"""A ``pyarrow.Array`` or ``ChunkedArray``."""


def decode_requests(
    column: Column, *, body: bool = True, limits: Limits = DEFAULT_LIMITS, **options: Unpack[BodyOptions]
) -> pa.ChunkedArray:
    """Requests as ``struct<api_key int16, api_name string, api_version int16, correlation_id int32, client_id string,
    body string, status string, error string>``.

    ``body=False``: the struct has none, and ``status`` speaks of the header. This is many times as fast. ``limits``:
    what decoding may use. ``options`` are those of ``kwire.payloads.BodyOptions``. Raises ``KwireError`` for a column
    that is not of bytes, and for a field or API that there is not.
    """
    from kwire.payloads import messages
    from kwire.payloads.frames import chunks

    how = _how(REQUEST if body else HEADER, "request", limits, options)
    type_ = listed(how.type) if how.several else how.type
    return _chunked((made for one in chunks(column) for made in messages.decoded(one, how)), type_)


def decode_responses(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[BodyOptions],
) -> pa.ChunkedArray:
    """Responses as the struct of ``decode_requests`` without ``client_id``.

    A response does not say what it answers. ``api_keys`` and ``api_versions`` of the requests are columns of integers,
    or numbers if all are the same. ``api_version`` is 0 if a broker answered ApiVersions in v0 because it does not know
    the version asked for (KIP-511). With ``several``, all frames of a payload answer that version. ``options`` and
    errors are those of ``decode_requests``.
    """
    from kwire.payloads import messages
    from kwire.payloads.frames import chunks

    how = _how(RESPONSE, "response", limits, options)
    parts, first = [], 0
    for one in chunks(column):
        of = (_integers(each, first, len(one)) for each in (api_keys, api_versions))
        parts.append((one, *of))
        first += len(one)
    type_ = listed(how.type) if how.several else how.type
    return _chunked((made for one, keys, of in parts for made in messages.decoded(one, how, keys, of)), type_)


def decode_records(
    column: Column,
    *,
    metadata: Column | bool = False,
    strict: bool = False,
    secrets: bool = False,
    fields: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> pa.ChunkedArray:
    """Record sets as lists: what ``records`` fields and log segments hold, in any magic and mixture.

    An element is a struct of the columns of ``kwire.records.SCHEMA``, ``status`` and ``error``. Records before an error
    stay. Bytes that cannot be read, and bytes that are left over, are an element at the end. A last entry that is cut
    off has the status ``cut_off``, as in a Fetch response. With ``strict`` it is ``malformed``. ``fields``: the columns
    of a record, in this order. Others are not made.

    ``metadata``: whether a set is of the topic ``__cluster_metadata`` (a bool, or a column of them). Then secrets are
    left out of its values, unless ``secrets``.
    """
    from kwire.payloads import record_sets
    from kwire.payloads.frames import chunks

    how = record_sets.records(fields, strict, limits)
    parts, first = [], 0
    for one in chunks(column):
        hides = pa.repeat(bool(metadata) and not secrets, len(one))
        if isinstance(metadata, pa.Array | pa.ChunkedArray):
            hides = pc.fill_null(_slice(metadata, first, len(one)), False) if not secrets else hides
        parts.append((one, hides))
        first += len(one)
    made = (lists for one, hides in parts for lists in record_sets.lists(one, hides, how))
    return _chunked(made, listed(how.type))


def request_records(
    column: Column, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[RowOptions]
) -> pa.ChunkedArray:
    """The records in Produce requests, as lists. Other requests have none.

    An element is a struct of the columns of the table ``records`` that a payload knows: ``topic``, ``topic_id``,
    ``partition``, those of ``kwire.records.SCHEMA``, ``batch``, ``status``, ``error``. A payload that cannot be read is
    one element with its ``status`` and ``error``. ``options`` are those of ``kwire.payloads.RowOptions``.
    """
    return _rows("RECORDS", column, (), limits, options)


def response_records(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> pa.ChunkedArray:
    """The records in Fetch and ShareFetch responses, as ``request_records`` has them."""
    return _rows("RECORDS", column, (api_keys, api_versions), limits, options)


def request_partitions(
    column: Column, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[RowOptions]
) -> pa.ChunkedArray:
    """What requests say of partitions, as lists: an element for each topic and partition.

    It is a struct of the columns of the table ``partitions`` that a payload knows, from ``path`` to ``error``.
    """
    return _rows("PARTITIONS", column, (), limits, options)


def response_partitions(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> pa.ChunkedArray:
    """What responses say of partitions, as ``request_partitions`` has it."""
    return _rows("PARTITIONS", column, (api_keys, api_versions), limits, options)


def _rows(
    table: str,
    column: Column,
    of: tuple[Column | int, ...],
    limits: Limits,
    options: RowOptions,
) -> pa.ChunkedArray:
    from kwire.payloads import rows
    from kwire.payloads.frames import chunks

    check_options(options, RowOptions)
    wanted = rows.wanted(table, limits=limits, **options)
    made: list[pa.Array] = []
    first = 0
    for one in chunks(column):
        made += rows.lists(one, wanted, *(_integers(each, first, len(one)) for each in of))
        first += len(one)
    return _chunked(made, rows.list_of(wanted.schema))


def _how(type_: pa.StructType, direction: str, limits: Limits, options: BodyOptions) -> How:
    from kwire.payloads.messages import How

    check_options(options, BodyOptions)
    made = struct_of(type_, direction, options)
    message, api, payloads = None, options.get("api"), options.get("payloads")
    if api is not None:
        from kwire.tables.typed import message_of

        message = message_of(api, direction)
    keeps = message is None if payloads is None else payloads
    speaks, sized = {"body", "status", "error"}, options.get("sized", False)
    if sized == "auto" and direction == "response":
        # Only its body shows where a response begins.
        speaks.add("correlation_id")
    reads = "body" in [one.name for one in type_] and not speaks.isdisjoint(one.name for one in made)
    return How(made, reads, limits, sized, options.get("several", False), options.get("secrets", False), keeps, message)


def _integers(values: Column | int, first: int, count: int) -> pa.Array:
    if isinstance(values, int):
        return pa.repeat(pa.scalar(values, pa.int64()), count)
    found = _slice(values, first, count)
    if len(found) != count or not (pa.types.is_integer(found.type) or pa.types.is_null(found.type)):
        raise KwireError("API keys and versions are columns of integers, one for each payload, or a number")
    return found


def _slice(column: Column, first: int, count: int) -> pa.Array:
    part = column.slice(first, count)
    return part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part


def _chunked(parts: Iterable[pa.Array], type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(list(parts), type_)
