"""What ``kwire.payloads`` makes, as arrays one after the other, for callers that give each away at once.

Rules kept here:

- The arrays of a column together have a row for each payload, in their order.
- Options are checked before the first array is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.payloads import messages, record_sets, rows
from kwire.payloads.columns import Column, beside, chunks
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

__all__ = ["Arrays", "decode_records", "decode_requests", "decode_responses", "rows_of"]


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
    parts = _with(column, api_keys, api_versions)
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
    how = record_sets.records(fields, strict, secrets, limits)
    parts = chunks(column)
    hides = [pc.fill_null(one, False) for one in beside(parts, False if secrets else metadata, "metadata")]
    return Arrays(
        (made for one, each in zip(parts, hides, strict=True) for made in record_sets.lists(one, each, how)),
        listed(how.type),
    )


def rows_of(
    table: str,
    column: Column,
    *of: Column | int,
    limits: Limits = DEFAULT_LIMITS,
    **options: Unpack[RowOptions],
) -> Arrays:
    """The functions of ``kwire.payloads`` that make rows of a table, ``RECORDS`` or ``PARTITIONS``, as arrays."""
    wanted = rows.wanted(table, limits=limits, **options)
    parts = _with(column, *of)
    return Arrays((made for one, each in parts for made in rows.lists(one, wanted, *each)), rows.list_of(wanted.schema))


def _type(how: How) -> pa.DataType:
    return listed(how.type) if how.several else how.type


def _with(column: Column, *of: Column | int) -> list[tuple[pa.Array, list[pa.Array]]]:
    """The arrays of a column, each with the API keys and versions beside it."""
    parts = chunks(column)
    columns = [beside(parts, each, "API keys and versions") for each in of]
    return [(one, [each[number] for each in columns]) for number, one in enumerate(parts)]


def _how(type_: pa.StructType, direction: str, limits: Limits, options: BodyOptions) -> How:
    check_limits(limits)
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
