"""Values of types that have themselves inside, as JSON text: no column of Arrow has such a type.

The kernel has gone over their bytes, and kept them as they are. What is written here is what stands in them:

- ``bytes``, ``fixed`` and decimals as base64, enums as their symbols, numbers of logical types as they are
- a number that JSON does not have (``NaN``, ``Infinity``) as a string
- a union as its value

Rules kept here:

- A value is read without recursion: the input says how deep it is.
- Text that would be larger than a limit is ``{"bytes":7}``, the bytes of the value.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Final

from kwire.errors import KwireError
from kwire.values.avro.types import ArrayType, EnumType, FixedType, MapType, PrimitiveType, RecordType, Type, UnionType

__all__ = ["json_of"]


class _Items:
    """The items of an array or map that are read: ``left`` of their block."""

    __slots__ = ("begun", "left", "of")

    def __init__(self, of: ArrayType | MapType) -> None:
        self.of, self.left, self.begun = of, 0, False


_Step = Type | str | _Items


def json_of(type_: Type, data: bytes, most: int) -> str:
    """The JSON text of a value, which must be one, of at most ``most`` characters."""
    reader = _Reader(data)
    parts: list[str] = []
    size = 0
    steps: list[_Step] = [type_]
    while steps:
        text = reader.step(steps.pop(), steps)
        size += len(text)
        parts.append(text)
        if size > most:
            return f'{{"bytes":{len(data)}}}'
    return "".join(parts)


_ENOUGH: Final = 10
"""Bytes of a varint."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.pos = data, 0

    def number(self) -> int:
        value = 0
        for shift in range(0, 7 * _ENOUGH, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
        value &= (1 << 64) - 1
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.pos:
            raise KwireError("the value of a recursive type ends too early")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def step(self, one: _Step, steps: list[_Step]) -> str:
        """The text of a step. What follows it is put on ``steps``, the next one last."""
        if isinstance(one, str):
            return one
        if isinstance(one, _Items):
            return self.items(one, steps)
        if isinstance(one, PrimitiveType):
            return self.primitive(one.name)
        if isinstance(one, FixedType):
            return _base64(self.take(one.size))
        if isinstance(one, EnumType):
            return _quoted(one.symbols[self.number()])
        if isinstance(one, UnionType):
            steps.append(one.branches[self.number()])
            return ""
        if isinstance(one, RecordType):
            steps.append("}")
            for number, each in reversed(tuple(enumerate(one.fields))):
                steps += [each.type, f"{',' if number else ''}{_quoted(each.name)}:"]
            return "{"
        steps.append(_Items(one))
        return "[" if isinstance(one, ArrayType) else "{"

    def items(self, one: _Items, steps: list[_Step]) -> str:
        if one.left == 0:
            one.left = self.number()
            if one.left < 0:
                one.left = -one.left
                self.number()
            if one.left == 0:
                return "]" if isinstance(one.of, ArrayType) else "}"
        one.left -= 1
        comma = "," if one.begun else ""
        one.begun = True
        steps.append(one)
        if isinstance(one.of, ArrayType):
            steps.append(one.of.items)
            return comma
        key = self.take(self.number()).decode("utf-8", "replace")
        steps.append(one.of.values)
        return f"{comma}{_quoted(key)}:"

    def primitive(self, name: str) -> str:
        if name == "null":
            return "null"
        if name == "boolean":
            return "true" if self.take(1)[0] else "false"
        if name in ("int", "long"):
            return str(self.number())
        if name in ("float", "double"):
            (value,) = struct.unpack("<f" if name == "float" else "<d", self.take(4 if name == "float" else 8))
            return json.dumps(value) if math.isfinite(value) else f'"{json.dumps(value)}"'
        data = self.take(self.number())
        return _quoted(data.decode("utf-8", "replace")) if name == "string" else _base64(data)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'
