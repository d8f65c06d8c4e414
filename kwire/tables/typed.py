"""Bodies as columns: one struct for all versions of an API, in place of text.

``body_type`` says the type. ``Typed`` makes columns of the text that the kernel writes: Arrow's own JSON reader takes
it apart. If the kernel has declined, it makes columns of objects.

Rules kept here:

- A struct has the fields of every version, in the order of the schema. Null: null on the wire, or not in this version.
- Integers have the type that holds them (Spark has none without a sign: ``uint16`` is an int32). Bytes are binary.
  Uuids are Kafka's text form. An ``error_code`` is its name, a code without one its number as text.
- A record set is ``struct<bytes: bigint>``, its size. With ``payloads`` it is binary.
- A secret is replaced by text that says what is shown of it: ``{"redacted": 26}``. For a record set it is its size.
- Tagged fields that no schema knows have no column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from kwire import schema, wire
from kwire.codec.redacting import SIZE
from kwire.kernels.bodies import unbase64
from kwire.kernels.engine import choose
from kwire.naming import no_such
from kwire.schema import model
from kwire.tables.definition import DIRECTIONS

__all__ = ["Typed", "api_key", "body_type", "message_of"]

Array = Any

_TYPES: Final[dict[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LEFT_OUT: Final = pa.struct([pa.field(SIZE, pa.int64())])


def api_key(name: str | int) -> int:
    """The key of an API, given by its name or as a number. Raises ``ValueError`` for one that there is not."""
    keys, name = schema.api_keys(), str(name)
    if name.isascii() and name.isdecimal() and len(name) < 6 and int(name) in keys:
        return int(name)
    for key, known in keys.items():
        if known.lower() == name.lower():
            return key
    raise ValueError(no_such("API", name, keys.values()))


def message_of(api: str | int, direction: str) -> model.Message:
    """The request or response of an API. Raises ``ValueError`` if there is none."""
    if direction not in DIRECTIONS:
        raise ValueError(no_such("direction", direction, DIRECTIONS))
    key = api_key(api)
    message = schema.request(key) if direction == DIRECTIONS[0] else schema.response(key)
    if message is None:
        raise ValueError(f"no schema has the {direction} of {api}")
    return message


def body_type(message: model.Message, *, payloads: bool = False) -> pa.StructType:
    """The struct of a body, whatever its version."""
    return _body_type(model.ByIdentity(message), payloads)


@lru_cache(maxsize=512)
def _body_type(key: model.ByIdentity, payloads: bool) -> pa.StructType:
    return _struct(key.message, key.message.fields, payloads)


def _struct(message: model.Message, fields: Sequence[model.Field], payloads: bool) -> pa.StructType:
    return pa.struct([pa.field(one.name, _type(message, one.name, one.type, payloads)) for one in fields])


def _type(message: model.Message, name: str, type_: model.Type, payloads: bool) -> pa.DataType:
    if isinstance(type_, model.Array):
        return pa.list_(pa.field("element", _type(message, "", type_.element, payloads)))
    if isinstance(type_, model.StructRef):
        return _struct(message, message.structs[type_.name].fields, payloads)
    if type_.name == "records":
        return pa.binary() if payloads else _LEFT_OUT
    return pa.string() if name == "error_code" else _TYPES[type_.name]


class Typed:
    """Makes columns of ``type``."""

    def __init__(self, type_: pa.StructType) -> None:
        self.type = type_
        self._read: pa.StructType = _readable(type_)

    def column(self, texts: pa.StringArray, values: Mapping[int, Any], first: int) -> pa.StructArray:
        """The bodies of some rows. ``texts`` has null for a row without one. ``values`` has them by their number, as
        ``described`` gives them. ``first`` is the number of the first row."""
        there = np.asarray(texts.is_valid())
        rows = [row for row in sorted(values) if first <= row < first + len(texts) and values[row] is not None]
        place = np.cumsum(there) - 1
        written = int(there.sum())
        place[[row - first for row in rows]] = np.arange(written, written + len(rows))
        none = ~there
        none[[row - first for row in rows]] = False
        both = [self.of_values([values[row] for row in rows])]
        if written:
            both.insert(0, self._of_texts(texts.drop_null()))
        made: pa.StructArray = pa.concat_arrays(both).take(pa.array(place, mask=none))
        return made

    def value(self, value: Any) -> Any:
        """What ``described`` gives as Arrow takes it: one value of a column."""
        return _plain(value, self.type)

    def of_values(self, values: Sequence[Any]) -> pa.StructArray:
        """Of what ``described`` gives, None for null."""
        return pa.array([self.value(one) for one in values], self.type)

    def _of_texts(self, texts: pa.StringArray) -> pa.StructArray:
        lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
        buffer = lines[0].as_buffer()
        table = pj.read_json(
            pa.BufferReader(buffer),
            read_options=pj.ReadOptions(block_size=buffer.size + 1, use_threads=False),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(self._read)), unexpected_field_behavior="ignore"
            ),
        )
        read = table.combine_chunks().to_batches()[0].to_struct_array()
        made: pa.StructArray = _converted(read, self.type)
        return made


def _readable(type_: pa.DataType) -> pa.DataType:
    """What Arrow's reader of JSON is asked for: bytes are base64 there."""
    if pa.types.is_struct(type_):
        return pa.struct([one.with_type(_readable(one.type)) for one in type_])
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_readable(type_.value_type)))
    return pa.string() if pa.types.is_binary(type_) else type_


def _converted(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """What Arrow has read, as it is to be."""
    if values.type == type_:
        return values
    mask = values.is_null() if values.null_count else None
    if pa.types.is_struct(type_):
        children = [_converted(values.field(number), one.type) for number, one in enumerate(type_)]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
    if pa.types.is_list(type_):
        inner = _converted(values.values, type_.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=type_, mask=mask)
    return _bytes(values)


def _bytes(texts: pa.StringArray) -> pa.BinaryArray:
    """Base64 as bytes. Other text (``{"redacted": 7}``) stays as it is."""
    _valid, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return texts.cast(pa.binary())
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(data, np.uint8)
    out, ends = np.empty(int(places[-1] - places[0]) + 4, np.uint8), np.zeros(len(places), np.int32)
    size = choose(len(characters))(unbase64)(characters, places, out, ends)
    mask = texts.is_null()
    made = pa.BinaryArray.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(ends), pa.py_buffer(out[:size].copy())]
    )
    return pc.if_else(mask, None, made) if texts.null_count else made


def _plain(value: Any, type_: pa.DataType) -> Any:
    """A value of ``described`` as Arrow takes it."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {one.name: _plain(value.get(one.name), one.type) for one in type_}
    if pa.types.is_list(type_):
        inner = type_.value_type
        return [_plain(one, inner) for one in value] if pa.types.is_nested(inner) or _is_text(inner) else value
    if isinstance(value, UUID):
        return wire.uuid_text(value)
    if isinstance(value, str):
        text = wire.printable(value)
        return text.encode() if pa.types.is_binary(type_) else text
    return value


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))
