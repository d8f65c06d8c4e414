"""The bytes of a message as pieces: each length, count, content and tag by itself, with the field that it belongs to.

Damage replaces a piece, and knows then what it did. The pieces are made from the layout and a value, without a codec of
kwire. So the corpus does not repeat a mistake of theirs.

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 (compact lengths, tagged fields), KIP-893 (nullable
structs).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from kwire.codec.objects import WireStruct, same
from kwire.codec.tracked import STRUCT_CODES
from kwire.schema import model
from kwire.wire import pack_uvarint

__all__ = ["Form", "Part", "Piece", "joined", "pieces", "starts"]

Part = Literal["length", "content", "count", "number", "bool", "presence", "tags", "tag", "size", "unknown"]
"""What a piece is.

- ``length`` and ``content``: of a string, of bytes, of a record set
- ``count``: of an array
- ``number``, ``bool``: a value of fixed width
- ``presence``: whether a nullable struct follows
- ``tags``: how many tagged fields follow
- ``tag``, ``size``: of one tagged field
- ``unknown``: what a tag holds that the schema does not know
"""

Form = Literal["int8", "int16", "int32", "varint"]
"""How a length, a count or a presence is written. ``varint``: an unsigned varint."""


@dataclass(slots=True)
class Piece:
    """Some bytes of a message."""

    part: Part
    path: str
    """The field, as in errors of kwire: ``$.topics[0].name``."""
    data: bytes
    form: Form = "varint"
    nullable: bool = False
    type: str = ""
    """Of the field, as the schema names it; of an array that of its elements."""
    least: int = 0
    """Of a count: the least size of an element, in bytes."""
    until: int = 0
    """The index behind the last piece that this one announces."""
    tag: int | None = None
    """Of a tag, a size and an unknown content."""


_NUMBERS: Final = {name: struct.Struct(">" + code) for name, code in STRUCT_CODES.items()}


class _Spelling:
    def __init__(self) -> None:
        self.out: list[Piece] = []

    def length(self, value: int, compact: bool, wide: bool) -> tuple[bytes, Form]:
        if compact:
            return pack_uvarint(value + 1), "varint"
        return (struct.pack(">i", value), "int32") if wide else (struct.pack(">h", value), "int16")

    def add(self, part: Part, path: str, data: bytes, **more: Any) -> Piece:
        made = Piece(part, path, data, **more)
        self.out.append(made)
        made.until = len(self.out)
        return made

    def primitive(self, path: str, type_: model.PrimitiveLayout, value: Any, nullable: bool) -> None:
        name = type_.name
        if name in _NUMBERS:
            data = value.bytes if name == "uuid" else value
            self.add("bool" if name == "bool" else "number", path, _NUMBERS[name].pack(data), type=name)
            return
        content = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        data, form = self.length(-1 if content is None else len(content), type_.compact, name != "string")
        head = self.add("length", path, data, form=form, nullable=nullable, type=name)
        if content is not None:
            self.add("content", path, bytes(content), type=name)
            head.until = len(self.out)

    def array(self, path: str, type_: model.ArrayLayout, value: Any, nullable: bool) -> None:
        element = type_.element
        data, form = self.length(-1 if value is None else len(value), type_.compact, True)
        head = self.add("count", path, data, form=form, nullable=nullable, type=element.name, least=element.min_size)
        for number, one in enumerate(value or ()):
            inner = f"{path}[{number}]"
            if isinstance(element, model.StructLayout):
                self.struct(inner, element, one)
            else:
                self.primitive(inner, element, one, False)
        head.until = len(self.out)

    def field(self, path: str, one: model.FieldLayout, value: Any) -> None:
        type_ = one.type
        if isinstance(type_, model.PrimitiveLayout):
            self.primitive(path, type_, value, one.nullable)
        elif isinstance(type_, model.ArrayLayout):
            self.array(path, type_, value, one.nullable)
        elif one.nullable:
            # KIP-893: one signed byte; in a tagged section a varint.
            null = b"\xff" if one.tag is None else b"\x00"
            form: Form = "int8" if one.tag is None else "varint"
            data = null if value is None else b"\x01"
            head = self.add("presence", path, data, form=form, nullable=True, type=type_.name)
            if value is not None:
                self.struct(path, type_, value)
                head.until = len(self.out)
        else:
            self.struct(path, type_, value)

    def struct(self, path: str, layout: model.StructLayout, value: Any) -> None:
        for one in layout.fields:
            self.field(f"{path}.{one.name}", one, getattr(value, one.name))
        if layout.flexible:
            self.tagged(path, layout, value)

    def tagged(self, path: str, layout: model.StructLayout, value: WireStruct) -> None:
        # A shared default says that it is of the class of the others.
        default = value.__class__()
        known = {
            one.tag: one
            for one in layout.tagged
            if one.tag is not None and not same(getattr(value, one.name), getattr(default, one.name))
        }
        unknown: Mapping[int, bytes] = value.unknown_tagged_fields or {}
        head = self.add("tags", path, pack_uvarint(len(known) + len(unknown)))
        for tag in sorted((*known, *unknown)):
            field = known.get(tag)
            inner = f"{path}.unknown_tagged_fields[{tag}]" if field is None else f"{path}.{field.name}"
            self.add("tag", inner, pack_uvarint(tag), tag=tag)
            size = self.add("size", inner, b"", tag=tag)
            if field is None:
                self.add("unknown", inner, bytes(unknown[tag]), tag=tag)
            else:
                self.field(inner, field, getattr(value, field.name))
            size.until = len(self.out)
        head.until = len(self.out)


def pieces(layout: model.StructLayout, value: WireStruct) -> list[Piece]:
    """The pieces of ``value``, in the order of their bytes. Joined, they are what Kafka writes."""
    spelling = _Spelling()
    spelling.struct("$", layout, value)
    _measure(spelling.out, frozenset())
    return spelling.out


def _measure(parts: Sequence[Piece], kept: frozenset[int]) -> None:
    """Makes the sizes of tagged fields right, the inner ones first; but those in ``kept`` stay."""
    for at in range(len(parts) - 1, -1, -1):
        one = parts[at]
        if one.part == "size" and at not in kept:
            one.data = pack_uvarint(sum(len(parts[inner].data) for inner in range(at + 1, one.until)))


def joined(parts: Sequence[Piece], changed: Mapping[int, bytes]) -> bytes:
    """The bytes of a message in which some pieces, by index, have other bytes.

    The sizes of tagged fields around them are right, but for a size that is itself among the changed pieces.
    """
    copies = [Piece(one.part, one.path, changed.get(at, one.data), until=one.until) for at, one in enumerate(parts)]
    _measure(copies, frozenset(at for at in changed if parts[at].part == "size"))
    return b"".join(one.data for one in copies)


def starts(parts: Sequence[Piece]) -> list[int]:
    """Where each piece begins, in bytes; the last number is the size of the whole."""
    out = [0]
    for one in parts:
        out.append(out[-1] + len(one.data))
    return out
