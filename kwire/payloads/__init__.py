"""Payloads in a column: raw frames and record sets that are already in an Arrow array, as structs.

For pandas, Polars, DuckDB and plain Arrow users; ``kwire.spark`` has the same as column functions. A payload is one
frame without its 4-byte size: it begins with the header. If a table kept the size, say ``sized=True``. Then a payload
may be several frames, one after the other, and ``several=True`` makes a list of each. With ``sized="auto"`` each
payload shows by itself whether it begins with a size (``kwire.payloads.sizes`` says by what).

>>> import pyarrow as pa, kwire.payloads
>>> column = pa.array([bytes.fromhex("0012000000000007000574657374"), None, b"no frame"])
>>> [None if one is None else one["status"] for one in kwire.payloads.decode_requests(column).to_pylist()]
['malformed', None, 'unsupported']

A column is a ``pyarrow.Array`` or ``ChunkedArray`` of bytes, in any of Arrow's types for them, with a dictionary or
without. What gives such an array is a column, too: a Series of pandas or Polars. What comes back is a ``ChunkedArray``
of as many rows. Rules kept here:

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

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from kwire.errors import needed
from kwire.limits import DEFAULT_LIMITS, Limits

with needed("columns of payloads", "capture"):
    import pyarrow as pa

from kwire.payloads.types import BodyOptions, RowOptions

if TYPE_CHECKING:
    from kwire.payloads.arrays import Arrays

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
"""A ``pyarrow.Array`` or ``ChunkedArray``, or a Series of pandas or Polars that gives one."""


def decode_requests(
    column: Column, *, body: bool = True, limits: Limits = DEFAULT_LIMITS, **options: Unpack[BodyOptions]
) -> pa.ChunkedArray:
    """Requests as ``struct<api_key int16, api_name string, api_version int16, correlation_id int32, client_id string,
    body string, status string, error string>``.

    ``body=False``: the struct has none, and ``status`` speaks of the header. This is many times as fast. ``limits``:
    what decoding may use. ``options`` are those of ``kwire.payloads.BodyOptions``. Raises ``KwireError`` for a column
    that is not of bytes, and for a field or API that there is not.
    """
    from kwire.payloads import arrays

    return _chunked(arrays.decode_requests(column, body=body, limits=limits, **options))


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
    from kwire.payloads import arrays

    return _chunked(arrays.decode_responses(column, api_keys, api_versions, limits=limits, **options))


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
    from kwire.payloads import arrays

    made = arrays.decode_records(
        column, metadata=metadata, strict=strict, secrets=secrets, fields=fields, limits=limits
    )
    return _chunked(made)


def request_records(
    column: Column, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[RowOptions]
) -> pa.ChunkedArray:
    """The records in Produce requests, as lists. Other requests have none.

    An element is a struct of the columns of the table ``records`` that a payload knows: ``topic``, ``topic_id``,
    ``partition``, those of ``kwire.records.SCHEMA``, ``batch``, ``status``, ``error``. A payload that cannot be read is
    one element with its ``status`` and ``error``. ``options`` are those of ``kwire.payloads.RowOptions``.
    """
    from kwire.payloads import arrays

    return _chunked(arrays.rows_of("RECORDS", column, limits=limits, **options))


def response_records(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> pa.ChunkedArray:
    """The records in Fetch and ShareFetch responses, as ``request_records`` has them."""
    from kwire.payloads import arrays

    return _chunked(arrays.rows_of("RECORDS", column, api_keys, api_versions, limits=limits, **options))


def request_partitions(
    column: Column, *, limits: Limits = DEFAULT_LIMITS, **options: Unpack[RowOptions]
) -> pa.ChunkedArray:
    """What requests say of partitions, as lists: an element for each topic and partition.

    It is a struct of the columns of the table ``partitions`` that a payload knows, from ``path`` to ``error``.
    """
    from kwire.payloads import arrays

    return _chunked(arrays.rows_of("PARTITIONS", column, limits=limits, **options))


def response_partitions(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> pa.ChunkedArray:
    """What responses say of partitions, as ``request_partitions`` has it."""
    from kwire.payloads import arrays

    return _chunked(arrays.rows_of("PARTITIONS", column, api_keys, api_versions, limits=limits, **options))


def _chunked(arrays: Arrays) -> pa.ChunkedArray:
    return pa.chunked_array(list(arrays.made), arrays.type)
