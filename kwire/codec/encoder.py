"""Turns a layout into the Python source of a flat encoder.

``kwire.codec.decoder`` says what makes such code fast.

Where structs hold only numbers and arrays of numbers, an element is one ``struct`` call. The lengths of those arrays
are remembered from the element before.
"""

from __future__ import annotations

import struct
from typing import Any

from kwire.codec.decoder import Frame, guessable
from kwire.codec.generated import READERS
from kwire.codec.objects import WireStruct, default_expression, holds_numbers
from kwire.codec.source import Source, describe, no_sequence
from kwire.codec.tracked import STRUCT_CODES
from kwire.schema import model

__all__ = ["encoder_source"]


class _Encoder(Source):
    """Emits the body of ``encode(o)``: parts are appended by ``w`` and joined at the end."""

    def __init__(self, globals_: dict[str, Any], structs: dict[str, type[WireStruct]]) -> None:
        super().__init__(globals_)
        self.structs = structs
        self.run: list[tuple[str, str]] = []
        self.writer = "w"

    def fixed(self, code: str, expression: str) -> None:
        self.run.append((code, expression))

    def pack(self, run: list[tuple[str, str]]) -> str:
        """Expression that packs a run."""
        format_ = "".join(code for code, _ in run)
        packer = f"p_{describe(format_)}"
        self.globals[packer] = struct.Struct(">" + format_).pack
        return f"{packer}({', '.join(expression for _, expression in run)})"

    def flush(self) -> None:
        if self.run:
            self.add(f"{self.writer}({self.pack(self.run)})")
            self.run = []

    def length(self, type_: model.PrimitiveLayout | model.ArrayLayout) -> None:
        """Write ``n``: the length, -1 for null; in compact form the length + 1, 0 for null."""
        if not type_.compact:
            self.fixed("h" if isinstance(type_, model.PrimitiveLayout) and type_.name == "string" else "i", "n")
            self.flush()
            return
        if not self.run:
            self.add(f"{self.writer}(uvarint(n))")
            return
        run, self.run = self.run, []
        with self.block("if n < 128:"):
            self.add(f"{self.writer}({self.pack([*run, ('B', 'n')])})")
        with self.block("else:"):
            self.add(f"{self.writer}({self.pack(run)})", f"{self.writer}(uvarint(n))")

    def primitive(self, type_: model.PrimitiveLayout, nullable: bool, value: str) -> None:
        if type_.name == "uuid":
            self.fixed("16s", f"{value}.bytes")
            return
        if type_.name in STRUCT_CODES:
            self.fixed(STRUCT_CODES[type_.name], value)
            return
        b = self.name("b")
        one = 1 if type_.compact else 0
        plus = " + 1" if type_.compact else ""
        content = f"{value}.encode()" if type_.name == "string" else value
        if nullable:
            self.add(f"{b} = {value}", f"if {b} is None: n = {one - 1}; {b} = b''")
            content = f"{b}.encode()" if type_.name == "string" else b
            assign = f"{b} = {content}; " if type_.name == "string" else ""
            self.add(f"else: {assign}n = len({b}){plus}")
        else:
            self.add(f"{b} = {content}", f"n = len({b}){plus}")
        self.length(type_)
        self.add(f"{self.writer}({b})")

    def array(self, type_: model.ArrayLayout, nullable: bool, value: str) -> None:
        items = self.name("l")
        plus = " + 1" if type_.compact else ""
        self.add(f"{items} = {value}")
        word = "if"
        if nullable:
            self.add(f"if {items} is None: n = {0 if type_.compact else -1}; {items} = ()")
            word = "elif"
        # Much has a length and elements, and some of it even other elements than it says: bytes, a dict, an array.
        self.add(f"{word} {no_sequence(items)}: retry()", f"else: n = len({items}){plus}")
        self.length(type_)
        element = type_.element
        if isinstance(element, model.PrimitiveLayout) and element.name in READERS:
            self.add(f"if {items}: {self.writer}(pack_many({STRUCT_CODES[element.name]!r}, {items}))")
            return
        one = self.name("o")
        if (
            isinstance(element, model.StructLayout)
            and guessable(element)
            and any(isinstance(field.type, model.ArrayLayout) for field in element.fields)
        ):
            self.shaped_array(element, items, one)
            return
        with self.block(f"for {one} in {items}:"):
            if isinstance(element, model.StructLayout):
                self.struct(element, one)
            else:
                self.primitive(element, False, one)
            self.flush()

    def shaped_array(self, element: model.StructLayout, items: str, one: str) -> None:
        """Elements of numbers and arrays of numbers: one pack each, with the last element's shape kept in locals."""
        cls = self.structs[element.name]
        arrays = [field for field in element.fields if isinstance(field.type, model.ArrayLayout)]
        values = {field.name: self.name("v") for field in arrays}
        lengths = {field.name: self.name("n") for field in arrays}
        counts = {field.name: self.name("c") for field in arrays}
        pack = self.name("p")
        format_: list[str] = []
        arguments: list[str] = []
        for field in element.fields:
            value = f"{one}.{field.name}"
            if isinstance(field.type, model.ArrayLayout):
                assert isinstance(field.type.element, model.PrimitiveLayout)
                # The count is packed as ready-made bytes: a compact one has no fixed width.
                format_.append(f"{{len({counts[field.name]})}}s{{{lengths[field.name]}}}")
                format_.append(STRUCT_CODES[field.type.element.name])
                arguments += [counts[field.name], f"*{values[field.name]}"]
            else:
                assert isinstance(field.type, model.PrimitiveLayout)
                format_.append(STRUCT_CODES[field.type.name])
                arguments.append(f"{value}.bytes" if field.type.name == "uuid" else value)
        if element.flexible:
            format_.append("x")
        self.add(f"{' = '.join(lengths.values())} = -1")
        checks = [
            self.differs(field, f"{one}.{field.name}", cls.STRUCTS.get(field.name))
            for field in element.absent
            if not field.ignorable
        ]
        if not element.flexible:
            checks.append(f"{one}.unknown_tagged_fields")
        with self.block(f"for {one} in {items}:"):
            if checks:
                self.add(f"if {' or '.join(checks)}: retry()")
            self.add(*(f"{values[field.name]} = {one}.{field.name}" for field in arrays))
            self.add(*(f"if {no_sequence(values[field.name])}: retry()" for field in arrays))
            changed = " or ".join(f"len({values[field.name]}) != {lengths[field.name]}" for field in arrays)
            with self.block(f"if {changed}:"):
                for field in arrays:
                    n = lengths[field.name]
                    self.add(f"{n} = len({values[field.name]})")
                    compact = isinstance(field.type, model.ArrayLayout) and field.type.compact
                    self.add(f"{counts[field.name]} = " + (f"uvarint({n} + 1)" if compact else f"pack_count({n})"))
                self.add(f'{pack} = shaped(f">{"".join(format_)}").pack')
            self.add(f"b = {pack}({', '.join(arguments)})")
            if element.flexible:
                # The count of no tags is packed with the rest, and taken off again where there are some.
                self.add(f"if u := {one}.unknown_tagged_fields: b = b[:-1] + pack_tags([], u)")
            self.add(f"{self.writer}(b)")

    def value(self, field: model.FieldLayout, value: str) -> None:
        type_ = field.type
        if isinstance(type_, model.PrimitiveLayout):
            self.primitive(type_, field.nullable, value)
        elif isinstance(type_, model.ArrayLayout):
            self.array(type_, field.nullable, value)
        else:
            one = self.name("o")
            if not field.nullable:
                self.add(f"{one} = {value}", f"if {one}.__class__ is not C_{type_.name}: retry()")
                self.struct(type_, one)
                return
            self.flush()
            self.add(f"{one} = {value}")
            with self.block(f"if {one} is None:"):
                self.add(f"{self.writer}(b'\\x{'ff' if field.tag is None else '00'}')")
            with self.block("else:"):
                self.add(f"if {one}.__class__ is not C_{type_.name}: retry()")
                self.fixed("b", "1")
                self.struct(type_, one)
                self.flush()

    def differs(self, field: model.Field | model.FieldLayout, value: str, struct_: type | None) -> str:
        """Condition under which a field does not hold its default."""
        default = field.default
        if default is None:
            return f"{value} is not None"
        if isinstance(field.type, (model.Array, model.ArrayLayout)):
            # What is empty and neither list nor tuple, such as a dict, is not the default.
            usual = "tuple" if holds_numbers(field) else "list"
            return f"({value} or {value}.__class__ is not {usual} and {no_sequence(value)})"
        if isinstance(default, tuple):
            # Field by field: a call of __eq__ costs more than all the rest of a small struct.
            assert struct_ is not None
            assert issubclass(struct_, WireStruct)
            one = self.name("x")
            checks = [f"{one} is None", f"{one}.unknown_tagged_fields"]
            checks += [
                self.differs(each, f"{one}.{each.name}", struct_.STRUCTS.get(each.name)) for each in struct_.FIELDS
            ]
            default_name = default_expression(field, self.globals, struct_)
            return f"(({one} := {value}) is not {default_name} and ({' or '.join(checks)}))"
        return f"{value} != {default_expression(field, self.globals, struct_)}"

    def struct(self, type_: model.StructLayout, one: str) -> None:
        cls = self.structs[type_.name]
        checks = [
            self.differs(field, f"{one}.{field.name}", cls.STRUCTS.get(field.name))
            for field in type_.absent
            if not field.ignorable
        ]
        if not type_.flexible:
            checks.append(f"{one}.unknown_tagged_fields")
        if checks:
            self.add(f"if {' or '.join(checks)}: retry()")
        for field in type_.fields:
            self.value(field, f"{one}.{field.name}")
        if not type_.flexible:
            return
        if not type_.tagged:
            run, self.run = self.run, []
            with self.block(f"if {one}.unknown_tagged_fields:"):
                if run:
                    self.add(f"{self.writer}({self.pack(run)})")
                self.add(f"{self.writer}(pack_tags([], {one}.unknown_tagged_fields))")
            with self.block("else:"):
                self.add(f"{self.writer}({self.pack([*run, ('B', '0')])})")
            return
        self.flush()
        self.known_tags(type_, one, cls)

    def known_tags(self, type_: model.StructLayout, one: str, cls: type[WireStruct]) -> None:
        tags = self.name("t")
        self.add(f"{tags} = []")
        outer = self.writer
        for field in type_.tagged:
            value = f"{one}.{field.name}"
            with self.block(f"if {self.differs(field, value, cls.STRUCTS.get(field.name))}:"):
                parts, self.writer = self.name("q"), self.name("w")
                self.add(f"{parts} = []", f"{self.writer} = {parts}.append")
                self.value(field, value)
                self.flush()
                self.add(f"{tags}.append(({field.tag}, b''.join({parts})))")
            self.writer = outer
        # A known field that has its default is not among those that are written, and no unknown one may have its tag.
        numbers = "".join(f"{field.tag}, " for field in type_.tagged)
        with self.block(f"if {tags} or {one}.unknown_tagged_fields:"):
            self.add(f"{self.writer}(pack_tags({tags}, {one}.unknown_tagged_fields, ({numbers})))")
        with self.block("else:"):
            self.add(f"{self.writer}(b'\\x00')")


def encoder_source(
    layout: model.StructLayout,
    structs: dict[str, type[WireStruct]],
    globals_: dict[str, Any],
    frame: Frame | None = None,
) -> str:
    """Source of ``encode(o) -> bytes``; its constants go to ``globals_``.

    With a ``frame``, the header is written before the message: ``frame.arguments()`` are further arguments.
    """
    emitter = _Encoder(globals_, structs)
    emitter.add("parts = []", "w = parts.append")
    arguments = ["o"]
    if frame is not None:
        arguments += frame.arguments()
        for field in frame.header.fields:
            emitter.value(field, str(frame.constants.get(field.name, field.name)))
        if frame.header.flexible:
            emitter.fixed("B", "0")
    emitter.struct(layout, "o")
    emitter.flush()
    emitter.add("return b''.join(parts)")
    return f"def encode({', '.join(arguments)}):\n" + "\n".join(emitter.lines) + "\n"
