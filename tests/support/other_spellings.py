"""The same message in other bytes: whatever Kafka reads alike and writes otherwise.

Negative lengths for null, varints of more bytes than are needed, truth values other than 1, tagged fields out of order,
given twice, or with their default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kwire import wire
from kwire.codec import tracked
from kwire.codec.objects import WireStruct
from kwire.schema import model

Choose = Callable[[int], int]
"""A number from 0 on and below another one; ``random.Random(1).randrange`` for example."""


def respelled(message: model.Message, version: int, value: WireStruct, choose: Choose) -> bytes:
    """``value`` in bytes that are seldom the canonical ones."""
    writer = _Writer(message.name, choose)
    writer.struct(model.layout(message, version), value)
    return b"".join(writer.parts)


def varint(value: int, choose: Choose) -> bytes:
    """An unsigned varint of up to five bytes, of which the last may have bits too many."""
    out = wire.pack_uvarint(value)
    more = choose(6 - len(out))
    if more:
        out = out[:-1] + bytes([out[-1] | 128]) + b"\x80" * (more - 1) + bytes([0x70 if more + len(out) == 5 else 0])
    return out


class _Writer(tracked._Writer):
    __slots__ = ("choose",)

    def __init__(self, label: str, choose: Choose) -> None:
        super().__init__(label)
        self.choose = choose

    def length(self, value: int, compact: bool, wide: bool) -> None:
        if value >= 0:
            if compact:
                self.parts.append(varint(value + 1, self.choose))
            else:
                super().length(value, compact, wide)
        elif compact:
            self.parts.append(varint((0, 0x80000001, 0xFFFFFFFF)[self.choose(3)], self.choose))
        elif wide:
            self.parts.append(struct.pack(">i", (-1, -2, -(1 << 31))[self.choose(3)]))
        else:
            self.parts.append(struct.pack(">h", (-1, -2, -(1 << 15))[self.choose(3)]))

    def primitive(self, type_: model.PrimitiveLayout, value: Any, nullable: bool, secret: str = "") -> None:
        if type_.name == "bool" and value:
            self.parts.append(bytes([(1, 2, 255)[self.choose(3)]]))
        else:
            super().primitive(type_, value, nullable, secret)

    def value(self, field: model.FieldLayout, value: Any) -> None:
        if not field.nullable or not isinstance(field.type, model.StructLayout):
            super().value(field, value)
            return
        if field.tag is None:
            kinds = (-1, -2, -128) if value is None else (0, 1, 127)
            self.parts.append(struct.pack("b", kinds[self.choose(3)]))
        else:
            kinds = (0, 0x80000000, 0xFFFFFFFF) if value is None else (1, 2, 0x7FFFFFFF)
            self.parts.append(varint(kinds[self.choose(3)], self.choose))
        if value is not None:
            self.struct(field.type, value)

    def tagged_section(self, type_: model.StructLayout, value: WireStruct) -> None:
        # A shared default says that it is of the class of the others.
        default = value.__class__()
        fields: list[tuple[int, bytes]] = []
        outer = self.parts
        for field in type_.tagged:
            found = getattr(value, field.name)
            if found == getattr(default, field.name) and self.choose(2):
                continue
            assert field.tag is not None
            for one in (getattr(default, field.name), found)[self.choose(2) :]:
                self.parts = []
                self.value(field, one)
                fields.append((field.tag, b"".join(self.parts)))
        self.parts = outer
        for tag, content in (value.unknown_tagged_fields or {}).items():
            fields += [(tag, b"before"), (tag, content)][self.choose(2) :]
        # Moved, but of two with the same tag the last one stays the last.
        for at in range(len(fields) - 1):
            if fields[at][0] != fields[at + 1][0] and self.choose(2):
                fields[at : at + 2] = fields[at + 1], fields[at]
        self.parts.append(varint(len(fields), self.choose))
        for tag, content in fields:
            self.parts += [varint(tag, self.choose), varint(len(content), self.choose), content]
