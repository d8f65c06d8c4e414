"""The careful twin of the compiled codecs: walks a layout and knows at every byte where it is.

The compiled decoders (``kwire.codec.decoder``) carry neither path nor offset. When one of them fails, for whatever
reason, the same bytes run through ``decode`` here. It says what is wrong and where, or finds that nothing is. The one
case without an error is a string that is not UTF-8, which the compiled code cannot read. The same holds for encoding.
So the compiled code may fail with any exception, and only this module words errors.

It walks the layout rather than being generated. Failing is rare, a walk needs no compilation, and the cases of a type
stand once. Rules:

- Every read is checked against ``limit`` first: the end of the data, or of the tagged field around it. A count is
  checked against the least size of that many elements before anything is allocated.
- ``path`` names the field that failed, ``offset`` is the first byte of its encoding, its length prefix included.
- No secret is quoted.

Source: Kafka protocol guide; KIP-482 (compact lengths, tagged fields), KIP-893 (nullable structs).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NoReturn
from uuid import UUID

from kwire import wire
from kwire.codec import costs
from kwire.codec.objects import WireStruct, holds_numbers, same
from kwire.codec.redacting import quoted
from kwire.errors import DecodeError, EncodeError
from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.schema import model

__all__ = ["STRUCT_CODES", "decode", "encode"]

STRUCT_CODES: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""``struct`` format of each primitive of fixed width."""

_UNPACKERS: Final = {name: struct.Struct(">" + code) for name, code in STRUCT_CODES.items()}
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class _Reader:
    __slots__ = ("data", "label", "left", "limit", "limits", "path", "pos", "structs")

    def __init__(self, data: bytes, pos: int, label: str, structs: dict[str, type[WireStruct]], limits: Limits) -> None:
        self.data = data
        self.pos = pos
        self.limit = len(data)
        self.label = label
        self.structs = structs
        self.limits = limits
        self.left = limits.for_objects(len(data))
        self.path: list[str] = ["$"]

    def fail(self, message: str, offset: int) -> NoReturn:
        raise DecodeError(message, layout=self.label, path="".join(self.path), offset=offset)

    def charge(self, cost: int) -> None:
        """Take what is about to be made, from ``pos`` on, from what is left of the limit."""
        self.left -= cost
        if self.left < 0:
            raise costs.exceeded(self.limits, len(self.data), self.label, "".join(self.path), self.pos)

    def need(self, size: int, start: int) -> int:
        """Move over ``size`` bytes; where they begin."""
        pos = self.pos
        if size > self.limit - pos:
            left = max(self.limit - pos, 0)
            self.fail(f"{size} bytes needed, {left} left", start)
        self.pos = pos + size
        return pos

    def uvarint(self, start: int) -> int:
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.data[self.need(1, start)]
            value |= (byte & 127) << shift
            if byte < 128:
                return value & 0xFFFFFFFF
        return self.fail("unsigned varint of more than 5 bytes", start)

    def length(self, compact: bool, wide: bool, nullable: bool, start: int) -> int:
        """A length or count; negative for null where that is allowed."""
        if compact:
            value = wire.compact_length(self.uvarint(start))
        elif wide:
            (value,) = _INT32.unpack_from(self.data, self.need(4, start))
        else:
            (value,) = _INT16.unpack_from(self.data, self.need(2, start))
        if value < 0 and not nullable:
            self.fail("null in a field that cannot be null", start)
        return int(value)

    def primitive(self, type_: model.PrimitiveLayout, nullable: bool) -> Any:
        start = self.pos
        size = model.FIXED_SIZES.get(type_.name)
        if size is not None:
            (value,) = _UNPACKERS[type_.name].unpack_from(self.data, self.need(size, start))
            return wire.uuid_from_bytes(value) if type_.name == "uuid" else value
        length = self.length(type_.compact, type_.name != "string", nullable, start)
        if length < 0:
            return None
        if length > self.limit - self.pos:
            self.fail(f"length {length}, {self.limit - self.pos} bytes left", start)
        at = self.need(length, start)
        content = self.data[at : self.pos]
        return content.decode("utf-8", "surrogateescape") if type_.name == "string" else content

    def array(self, field: model.FieldLayout, type_: model.ArrayLayout) -> list[Any] | tuple[Any, ...] | None:
        start = self.pos
        count = self.length(type_.compact, True, field.nullable, start)
        if count < 0:
            return None
        element = type_.element
        if count * element.min_size > self.limit - self.pos:
            self.fail(
                f"{count} elements of at least {element.min_size} bytes, {self.limit - self.pos} bytes left", start
            )
        self.charge(costs.elements(element, count))
        out: list[Any] = []
        path = self.path
        for i in range(count):
            path.append(f"[{i}]")
            if isinstance(element, model.StructLayout):
                out.append(self.struct(element))
            else:
                out.append(self.primitive(element, False))
            path.pop()
        return tuple(out) if holds_numbers(field) else out

    def value(self, field: model.FieldLayout) -> Any:
        type_ = field.type
        if isinstance(type_, model.PrimitiveLayout):
            return self.primitive(type_, field.nullable)
        if isinstance(type_, model.ArrayLayout):
            return self.array(field, type_)
        # KIP-893: one signed byte before a nullable struct, negative for null.
        if field.nullable and field.tag is not None:  # in a tagged section, a varint instead
            if not 0 < self.uvarint(self.pos) <= wire.MOST_POSITIVE:
                return None
        elif field.nullable and self.data[self.need(1, self.pos)] > 127:
            return None
        return self.struct(type_)

    def struct(self, type_: model.StructLayout) -> WireStruct:
        made = self.structs[type_.name]()
        path = self.path
        for field in type_.fields:
            path.append("." + field.name)
            setattr(made, field.name, self.value(field))
            path.pop()
        if type_.flexible:
            path.append(".unknown_tagged_fields")
            made.unknown_tagged_fields = self.tagged_section(type_, made)
            path.pop()
        return made

    def tagged_section(self, type_: model.StructLayout, made: WireStruct) -> dict[int, bytes] | None:
        known = {field.tag: field for field in type_.tagged}
        unknown: dict[int, bytes] = {}
        for _ in range(self.uvarint(self.pos)):
            tag = self.uvarint(self.pos)
            start = self.pos
            size = self.uvarint(start)
            if size > self.limit - self.pos:
                self.fail(f"tagged field {tag} of {size} bytes, {self.limit - self.pos} bytes left", start)
            content = self.pos
            field = known.get(tag)
            if field is None:
                self.charge(costs.UNKNOWN_TAG)
                unknown[tag] = self.data[content : content + size]
                self.pos = content + size
                continue
            outer = self.limit
            self.limit = content + size
            self.path[-1] = "." + field.name
            setattr(made, field.name, self.value(field))
            if self.pos != self.limit:
                self.fail(f"{self.pos - content} of {size} bytes of the tagged field used", content)
            self.path[-1] = ".unknown_tagged_fields"
            self.limit = outer
        return unknown or None


def decode(
    layout: model.StructLayout,
    label: str,
    structs: dict[str, type[WireStruct]],
    data: bytes,
    pos: int = 0,
    *,
    whole: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[WireStruct, int]:
    """Decode ``data`` from ``pos``: the object and the position after it.

    ``label`` names the layout in errors, ``structs`` gives the class of each struct by name, and the message's own.
    With ``whole``, bytes left over are an error. Raises ``DecodeError``, and ``ValueError`` for what is no ``limits``.
    """
    check_limits(limits)
    reader = _Reader(data, pos, label, structs, limits)
    made = reader.struct(layout)
    if whole and reader.pos != len(data):
        reader.fail(f"{len(data) - reader.pos} bytes after the end of the message", reader.pos)
    return made, reader.pos


class _Writer:
    __slots__ = ("label", "parts", "path")

    def __init__(self, label: str) -> None:
        self.label = label
        self.parts: list[bytes] = []
        self.path: list[str] = ["$"]

    def fail(self, message: str) -> NoReturn:
        raise EncodeError(message, layout=self.label, path="".join(self.path))

    def length(self, value: int, compact: bool, wide: bool) -> None:
        limit = 0x7FFFFFFF if wide or compact else 0x7FFF
        if value > limit:
            self.fail(f"length {value} is above {limit}")
        if compact:
            self.parts.append(wire.pack_uvarint(value + 1))
        else:
            self.parts.append((_INT32 if wide else _INT16).pack(value))

    def primitive(self, type_: model.PrimitiveLayout, value: Any, nullable: bool, secret: str = "") -> None:
        name = type_.name
        if value is None and nullable and name not in model.FIXED_SIZES:
            self.length(-1, type_.compact, name != "string")
            return
        if name in model.FIXED_SIZES:
            if name == "uuid":
                if not isinstance(value, UUID):
                    self.fail(f"expected a uuid.UUID, not {quoted(value)}")
                value = value.bytes
            try:
                self.parts.append(_UNPACKERS[name].pack(value))
            except (struct.error, TypeError, OverflowError):
                self.fail(f"{quoted(value)} is not of type {name}")
            return
        if name == "string":
            if not isinstance(value, str):
                self.fail(f"expected a string, not {quoted(value, secret)}")
            try:
                content = value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                self.fail(f"{quoted(value, secret)} cannot be written as UTF-8")
        elif isinstance(value, (bytes, bytearray, memoryview)):
            content = bytes(value)
        else:
            self.fail(f"expected bytes, not {quoted(value, secret)}")
        self.length(len(content), type_.compact, name != "string")
        self.parts.append(content)

    def value(self, field: model.FieldLayout, value: Any) -> None:
        type_ = field.type
        if isinstance(type_, model.PrimitiveLayout):
            self.primitive(type_, value, field.nullable, field.secret)
        elif isinstance(type_, model.ArrayLayout):
            if value is None and field.nullable:
                self.length(-1, type_.compact, True)
                return
            if not isinstance(value, (list, tuple)):
                self.fail(f"expected a list, not {quoted(value, 'inside')}")
            self.length(len(value), type_.compact, True)
            for i, one in enumerate(value):
                self.path.append(f"[{i}]")
                if isinstance(type_.element, model.StructLayout):
                    self.struct(type_.element, one)
                else:
                    self.primitive(type_.element, one, False)
                self.path.pop()
        elif field.nullable:
            null = b"\xff" if field.tag is None else b"\x00"
            self.parts.append(null if value is None else b"\x01")
            if value is not None:
                self.struct(type_, value)
        else:
            self.struct(type_, value)

    def struct(self, type_: model.StructLayout, value: Any) -> None:
        if not isinstance(value, WireStruct) or type(value).__name__ != type_.name:
            self.fail(f"expected {type_.name}, not {quoted(value, 'inside')}")
        self.check_absent(type_, value)
        for field in type_.fields:
            self.path.append("." + field.name)
            self.value(field, getattr(value, field.name))
            self.path.pop()
        if type_.flexible:
            self.tagged_section(type_, value)
        elif value.unknown_tagged_fields:
            self.path.append(".unknown_tagged_fields")
            self.fail("this version has no tagged fields")

    def check_absent(self, type_: model.StructLayout, value: WireStruct) -> None:
        if not any(not field.ignorable for field in type_.absent):
            return
        default = value.__class__()
        for field in type_.absent:
            found = getattr(value, field.name)
            if not field.ignorable and not same(found, getattr(default, field.name)):
                self.path.append("." + field.name)
                shown = quoted(found, field.secret)
                self.fail(f"this version does not have the field (versions {field.versions} do), and it is {shown}")

    def tagged_section(self, type_: model.StructLayout, value: WireStruct) -> None:
        default = value.__class__()
        contents: dict[int, bytes] = {}
        outer = self.parts
        for field in type_.tagged:
            found = getattr(value, field.name)
            if same(found, getattr(default, field.name)):
                continue
            self.parts = []
            self.path.append("." + field.name)
            self.value(field, found)
            self.path.pop()
            assert field.tag is not None
            contents[field.tag] = b"".join(self.parts)
        self.parts = outer
        self.path.append(".unknown_tagged_fields")
        known = {field.tag for field in type_.tagged}
        unknown = value.unknown_tagged_fields or {}
        if not isinstance(unknown, Mapping):
            self.fail(f"expected a mapping of tag to bytes, not {quoted(unknown, 'inside')}")
        for tag, content in unknown.items():
            if tag in known:
                self.fail(f"tag {tag} is a known field of this version")
            if not isinstance(tag, int) or not 0 <= tag <= 0xFFFFFFFF:
                self.fail(f"{quoted(tag)} is not a tag")
            if not isinstance(content, (bytes, bytearray, memoryview)):
                self.fail(f"content of tag {tag}: expected bytes, not {quoted(content)}")
            contents[tag] = bytes(content)
        self.path.pop()
        self.parts.append(wire.pack_uvarint(len(contents)))
        for tag in sorted(contents):
            content = contents[tag]
            self.parts += [wire.pack_uvarint(tag), wire.pack_uvarint(len(content)), content]


def encode(layout: model.StructLayout, label: str, value: object) -> bytes:
    """The canonical bytes of ``value``. Raises ``EncodeError`` and nothing else."""
    writer = _Writer(label)
    writer.struct(layout, value)
    return b"".join(writer.parts)
