"""The types of what payload columns become: structs that a row of SQL can take apart.

Imports no numba: Spark asks for types in every query.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import pyarrow as pa

from kwire.errors import KwireError
from kwire.records.arrow_types import STATUS_FIELDS
from kwire.schema import model

__all__ = ["HEADER", "REQUEST", "RESPONSE", "chosen", "list_of_records", "record_type", "with_body"]

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
"""What ``decode_requests`` makes of a payload. ``decode_responses`` makes the same without ``client_id``."""

HEADER: Final = pa.struct([field for field in REQUEST if field.name != "body"])
"""What ``decode_requests`` makes with ``body=False``."""

RESPONSE: Final = pa.struct([field for field in REQUEST if field.name != "client_id"])


def with_body(type_: pa.StructType, message: model.Message, payloads: bool) -> pa.StructType:
    """``type_`` with the body of one message as a struct."""
    from kwire.tables.typed import body_type

    body = body_type(message, payloads=payloads)
    return pa.struct([one.with_type(body) if one.name == "body" else one for one in type_])


def chosen(type_: pa.StructType, fields: Sequence[str] | None) -> pa.StructType:
    """Some fields of a struct, in the order given. Raises ``KwireError`` for one that there is not."""
    if fields is None:
        return type_
    names = [one.name for one in type_]
    for name in fields:
        if name not in names:
            raise KwireError(f"no field {name!r}: there are {', '.join(names)}")
    return pa.struct([type_.field(name) for name in dict.fromkeys(fields)])


@cache
def record_type() -> pa.DataType:
    """A record of ``decode_records``: the columns of ``kwire.records.SCHEMA``, and what is wrong."""
    from kwire.records import SCHEMA

    fields = [field.with_nullable(True) for field in SCHEMA]
    return pa.struct([*fields, *STATUS_FIELDS])


def list_of_records() -> pa.DataType:
    """What ``decode_records`` makes of a payload."""
    return pa.list_(pa.field("element", record_type(), nullable=False))
