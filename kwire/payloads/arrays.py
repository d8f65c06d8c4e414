"""What ``kwire.payloads`` makes, as arrays one after the other, for callers that give each away at once.

Rules kept here:

- The arrays of a column together have a row for each payload, in their order.
- Options are checked before the first array is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.payloads import messages, record_sets, rows
from kwire.payloads.frames import chunks
from kwire.payloads.messages import How
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
from kwire.tables.typed import message_of

__all__ = ["Arrays", "Column", "decode_records", "decode_requests", "decode_responses", "rows_of"]

Column = Any
"""A ``pyarrow.Array`` or ``ChunkedArray``."""


class Arrays(NamedTuple):
    """Some arrays of a type."""

    made: Iterator[pa.Array]
    type: pa.DataType


def decode_requests(
    column: Column, *, body: bool = True, limits: Limits = DEFAULT_LIMITS, **options: Unpack[BodyOptions]
) -> Arrays:
    """``kwire.payloads.decode_requests`` as arrays."""
    how = _how(REQUEST if body else HEADER, "request", limits, options)
    parts = chunks(column)
    return Arrays((made for one in parts for made in messages.decoded(one, how)), _type(how))


def decode_responses(
    column: Column,
    api_keys: Column | int,
    api_versions: Column | int,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[BodyOptions],
) -> Arrays:
    """``kwire.payloads.decode_responses`` as arrays."""
    how = _how(RESPONSE, "response", limits, options)
    parts = _beside(column, api_keys, api_versions)
    return Arrays((made for one, of in parts for made in messages.decoded(one, how, *of)), _type(how))


def decode_records(
    column: Column,
    *,
    metadata: Column | bool = False,
    strict: bool = False,
    secrets: bool = False,
    fields: Sequence[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Arrays:
    """``kwire.payloads.decode_records`` as arrays."""
    how = record_sets.records(fields, strict, limits)
    parts, first = [], 0
    for one in chunks(column):
        hides = pa.repeat(bool(metadata) and not secrets, len(one))
        if isinstance(metadata, pa.Array | pa.ChunkedArray):
            hides = pc.fill_null(_slice(metadata, first, len(one)), False) if not secrets else hides
        parts.append((one, hides))
        first += len(one)
    return Arrays((made for one, hides in parts for made in record_sets.lists(one, hides, how)), listed(how.type))


def rows_of(
    table: str,
    column: Column,
    *of: Column | int,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> Arrays:
    """The functions of ``kwire.payloads`` that make rows of a table, ``RECORDS`` or ``PARTITIONS``, as arrays."""
    wanted = rows.wanted(table, limits=limits, **options)
    parts = _beside(column, *of)
    return Arrays((made for one, each in parts for made in rows.lists(one, wanted, *each)), rows.list_of(wanted.schema))


def _type(how: How) -> pa.DataType:
    return listed(how.type) if how.several else how.type


def _beside(column: Column, *of: Column | int) -> list[tuple[pa.Array, list[pa.Array]]]:
    """The arrays of a column, each with its part of the columns beside it."""
    parts, first = [], 0
    for one in chunks(column):
        parts.append((one, [_integers(each, first, len(one)) for each in of]))
        first += len(one)
    return parts


def _how(type_: pa.StructType, direction: str, limits: Limits, options: BodyOptions) -> How:
    check_options(options, BodyOptions)
    made = struct_of(type_, direction, options)
    message, api, payloads = None, options.get("api"), options.get("payloads")
    if api is not None:
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
