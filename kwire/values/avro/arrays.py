"""Arrow arrays of what a kernel has put into regions. Nothing is copied that has the form that Arrow wants."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.limits import Limits
from kwire.records.words import Words
from kwire.values.avro.layout import Node
from kwire.values.avro.memory import Columns
from kwire.values.avro.recursive import json_of
from kwire.values.avro.types import EnumType, FixedType, PrimitiveType, Type, UnionType

__all__ = ["array_of"]

Array = Any

_HEX: Final = np.frombuffer(b"".join(b"%02x" % n for n in range(256)), np.uint8).reshape(256, 2)
_DASHES: Final = (8, 13, 18, 23)
"""Where they stand in the text of a uuid."""
_PLACES: Final = np.array([n for n in range(36) if n not in _DASHES])


def array_of(node: Node, columns: Columns) -> pa.Array:
    """The column of a node."""
    rows = columns.count(node.domain)
    kind = node.type
    if pa.types.is_null(kind):
        return pa.nulls(rows)
    valid = _valid(node, columns)
    inner = [array_of(one, columns) for one in node.inner if one is not None]
    if pa.types.is_struct(kind) and node.data is None:
        return pa.Array.from_buffers(kind, rows, [valid], children=inner)
    assert node.data is not None
    data = columns.bytes(node.data.number)
    if pa.types.is_list(kind):
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(data)], children=inner)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(inner, fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(data)], children=[entries])
    if node.data.width <= 0:
        return _texts(node, columns, rows, valid, data)
    avro = _concrete(node.avro)
    if isinstance(avro, EnumType):
        return _enum(avro, kind, rows, valid, data)
    return _fixed(avro, kind, rows, valid, data)


def _concrete(type_: Type) -> Type:
    """What a node is a column of, where a union has only this one and null."""
    if isinstance(type_, UnionType):
        return next(one for one in type_.branches if not (isinstance(one, PrimitiveType) and one.name == "null"))
    return type_


def _valid(node: Node, columns: Columns) -> pa.Buffer | None:
    """Where it is not null, as bits. ``None``: everywhere."""
    if node.valid is None:
        return None
    found = columns.bytes(node.valid.number)
    return None if found.view(np.bool_).all() else _bits(found)


def _bits(found: Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(found, bitorder="little"))


def _texts(node: Node, columns: Columns, rows: int, valid: pa.Buffer | None, offsets: Array) -> pa.Array:
    assert node.data is not None
    if node.raw:
        kept = pa.Array.from_buffers(
            pa.binary(), rows, [valid, pa.py_buffer(offsets), pa.py_buffer(columns.text(node.data.number))]
        )
        return _json(_concrete(node.avro), kept, columns.limits)
    data = pa.py_buffer(columns.text(node.data.number))
    return pa.Array.from_buffers(node.type, rows, [valid, pa.py_buffer(offsets), data])


def _json(avro: Type, kept: pa.Array, limits: Limits) -> pa.Array:
    """The values of a recursive type as JSON text."""
    left = limits.total
    made: list[str | None] = []
    for one in kept:
        # What has no bytes is no value: a row that could not be read.
        text = json_of(avro, one.as_py(), min(left, limits.text)) if one.is_valid and one.as_py() else None
        left -= 0 if text is None else len(text)
        made.append(text)
    return pa.array(made, pa.string())


def _enum(avro: EnumType, kind: pa.DataType, rows: int, valid: pa.Buffer | None, data: Array) -> pa.Array:
    indices = pa.Array.from_buffers(pa.int32(), rows, [valid, pa.py_buffer(data)])
    symbols = pa.array(avro.symbols, pa.string())
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(indices, symbols)
    # A null has the number 0, so that it has a text here.
    texts = Words(symbols).spread(data.view(np.int32)) if avro.symbols else None
    if texts is not None:
        return pa.Array.from_buffers(kind, rows, [valid, *texts.buffers()[1:]])
    # Where there is no symbol at all there is no value either.
    return symbols.take(indices) if avro.symbols else pa.nulls(rows, kind)


def _fixed(avro: Type, kind: pa.DataType, rows: int, valid: pa.Buffer | None, data: Array) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, rows, [valid, _bits(data)])
    logical = avro.logical.name if isinstance(avro, PrimitiveType | FixedType) and avro.logical is not None else ""
    if logical == "duration":
        numbers = data.view("<u4").reshape(rows, 3).astype(np.int64)
        parts = [pa.array(np.ascontiguousarray(numbers[:, n])) for n in range(3)]
        return pa.Array.from_buffers(kind, rows, [valid], children=parts)
    if logical == "uuid":
        text = np.full((rows, 36), ord("-"), np.uint8)
        text[:, _PLACES] = _HEX[data].reshape(rows, 32)
        return _of_width(kind, rows, valid, text.reshape(-1), 36)
    if logical == "decimal" and pa.types.is_string(kind):
        assert isinstance(avro, PrimitiveType | FixedType)
        assert avro.logical is not None
        numbers = pa.decimal256(avro.logical.precision, avro.logical.scale)
        return pc.cast(pa.Array.from_buffers(numbers, rows, [valid, pa.py_buffer(data)]), kind)
    if logical.endswith("timestamp-nanos") and kind.unit == "us":
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(data.view(np.int64) // 1000)])
    if pa.types.is_binary(kind):
        return _of_width(kind, rows, valid, data, len(data) // rows if rows else 0)
    return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(data)])


def _of_width(kind: pa.DataType, rows: int, valid: pa.Buffer | None, data: Array, width: int) -> pa.Array:
    """Texts of one width."""
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    if offsets[-1] >> 31:
        large = pa.large_string() if pa.types.is_string(kind) else pa.large_binary()
        return pa.Array.from_buffers(large, rows, [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])
