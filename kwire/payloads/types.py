"""The types of what payload columns become: structs that a row of SQL can take apart.

Imports no numba: Spark asks for types in every query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, Literal, TypedDict

import pyarrow as pa

from kwire.errors import KwireError
from kwire.limits import Limits
from kwire.records.arrow_types import STATUS_FIELDS
from kwire.schema import model

__all__ = [
    "HEADER",
    "REQUEST",
    "RESPONSE",
    "BodyOptions",
    "RowOptions",
    "Sized",
    "check_flags",
    "check_options",
    "chosen",
    "list_of_records",
    "listed",
    "record_type",
    "struct_of",
    "together",
    "with_body",
]

Sized = bool | Literal["auto"]
"""Whether payloads begin with the size of a frame."""


class BodyOptions(TypedDict, total=False):
    """How requests and responses are decoded.

    - ``sized``: payloads begin with the size of the frame. ``"auto"``: each shows by itself whether it does. One that
      does not show it has a row whose ``error`` says to give ``sized``.
    - ``several``: a list of structs, one for each frame in a payload. What is left after the last whole frame is one
      more, with the status ``cut_off`` if it is the beginning of a frame. Otherwise a payload with more than one frame
      is ``malformed``.
    - ``fields``: those of the struct, in this order. Bodies are read if one of ``body``, ``status`` and ``error`` is
      there.
    - ``api``, such as ``"OffsetCommit"``: ``body`` is the struct ``kwire.capture.schema_of(api, "request")``. It is
      null in messages of other APIs.
    - ``payloads``: record sets in bodies. By default text has them in base64, and structs their size.
    - ``secrets``: passwords, tokens and keys as they are.
    """

    sized: Sized
    several: bool
    fields: Sequence[str] | None
    api: str | None
    payloads: bool | None
    secrets: bool


class RowOptions(TypedDict, total=False):
    """How rows are made of payloads.

    - ``sized`` and ``secrets`` are those of ``BodyOptions``. With ``sized``, a payload has the rows of all its frames.
    - ``topic_ids``: names of topics by their ids, for versions that name none. An id is text as Kafka prints it, or 16
      bytes.
    - ``fields``: the columns of a row, in this order. Others are not made.
    """

    sized: Sized
    topic_ids: Mapping[str | bytes, str] | None
    fields: Sequence[str] | None
    secrets: bool


TOGETHER: Final = 128 << 20
"""Bytes that payloads which are decoded at once may decompress to together. If that is not enough, they are decoded in
halves: what one may become depends on no other, and memory on no number of bombs."""


def together(limits: Limits, count: int) -> Limits:
    """What ``count`` payloads that are decoded at once may use."""
    return limits if count < 2 else replace(limits, total=min(limits.total, TOGETHER))


def check_options(options: Any, known: Any) -> None:
    """Raises ``TypeError`` for an option that there is not, as Python does, ``KwireError`` for one that cannot be.

    A flag is a bool: ``secrets="no"`` must not show them."""
    for name in options:
        if name not in known.__annotations__:
            raise TypeError(f"unexpected keyword argument {name!r}: there are {', '.join(known.__annotations__)}")
    sized = options.get("sized", False)
    if not isinstance(sized, bool) and sized != "auto":
        raise KwireError(f'sized is True, False or "auto", not {sized!r}')
    check_flags(options, ("several", "secrets", "payloads"))


def check_flags(options: Any, names: Sequence[str]) -> None:
    """Raises ``KwireError`` for an option of these that is no bool (or None)."""
    for name in names:
        if not isinstance(options.get(name), bool | None):
            raise KwireError(f"{name} is True or False, not {options[name]!r}")


def struct_of(type_: pa.StructType, direction: str, options: BodyOptions) -> pa.StructType:
    """The struct of a frame, of ``REQUEST``, ``HEADER`` or ``RESPONSE``, as the options want it.

    Raises ``KwireError`` for an API or field that there is not.
    """
    api, payloads = options.get("api"), options.get("payloads")
    if api is not None:
        from kwire.tables.typed import message_of

        try:
            message = message_of(api, direction)
        except ValueError as wrong:
            raise KwireError(str(wrong)) from None
        if "body" in [one.name for one in type_]:
            type_ = with_body(type_, message, bool(payloads))
    return chosen(type_, options.get("fields"))


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
"""What ``decode_responses`` makes with ``body=False`` (``pyarrow.StructType``): no client id."""


def with_body(type_: pa.StructType, message: model.Message, payloads: bool) -> pa.StructType:
    """``type_`` with the body of one message as a struct."""
    from kwire.tables.typed import body_type

    body = body_type(message, payloads=payloads)
    return pa.struct([one.with_type(body) if one.name == "body" else one for one in type_])


def listed(type_: pa.DataType) -> pa.ListType:
    """A list of ``type_``, none of which is null."""
    return pa.list_(pa.field("element", type_, nullable=False))


def chosen(type_: pa.StructType, fields: Sequence[str] | None) -> pa.StructType:
    """Some fields of a struct, in the order given. Raises ``KwireError`` for one that there is not."""
    if fields is None:
        return type_
    names = [one.name for one in type_]
    if isinstance(fields, str):
        raise KwireError(f"fields is a list of names, not {fields!r}: fields=[{fields!r}]")
    if not fields:
        raise KwireError(f"fields names none: there are {', '.join(names)}")
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


def list_of_records(fields: Sequence[str] | None = None) -> pa.DataType:
    """What ``decode_records`` makes of a payload: all columns of a record, or these."""
    return listed(chosen(record_type(), fields))
