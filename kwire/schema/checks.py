"""Consistency of one parsed message: what no single line can show.

Rules kept here: every range lies inside the message's versions, every struct is defined and reachable and contains
itself nowhere, names and tags are unique, tags are given only where the version is flexible (KIP-482), a null default
stands only where null is allowed, an integer default fits its type. A field that no version has is a mistake too.

Each failure is a ``SchemaError`` at the line of the field or struct that is wrong.
"""

from __future__ import annotations

from typing import Final, NoReturn

from kwire.errors import SchemaError
from kwire.schema.model import OPEN, Array, Field, Message, Primitive, StructRef, Versions

__all__ = ["check", "struct_ref"]

INTEGER_RANGES: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

NULLABLE_PRIMITIVES: Final = frozenset({"string", "bytes", "records"})
"""The primitives that have a null on the wire; numbers, bools and uuids do not (the zero uuid stands for none)."""

RESERVED: Final = frozenset({"unknown_tagged_fields"})
"""Attribute names that every message class has by itself."""


def struct_ref(one: Field) -> StructRef | None:
    """The struct that a field is, or holds an array of."""
    base = one.type.element if isinstance(one.type, Array) else one.type
    return base if isinstance(base, StructRef) else None


def check(message: Message) -> None:
    """Raises ``SchemaError`` for the first inconsistency of ``message``."""
    _Checks(message).run()


class _Checks:
    def __init__(self, message: Message) -> None:
        self.message = message
        self.reached: dict[str, Versions] = {}

    def fail(self, line: int, what: str) -> NoReturn:
        raise SchemaError(f"{self.message.name}: {what}", self.message.file, line)

    def run(self) -> None:
        message = self.message
        for what, versions in (("flexible", message.flexible), ("kafka4", message.kafka4)):
            ends_inside = versions.high in message.versions or (what == "flexible" and versions.high == OPEN)
            if versions and not (versions.low in message.versions and ends_inside):
                self.fail(message.line, f"{what} {versions} is not inside versions {message.versions}")
        if message.versions.high == OPEN:
            self.fail(message.line, "the versions of a message are known: write both ends")
        for version in message.notes:
            if version not in message.versions:
                self.fail(message.line, f"a note for v{version}, which is not among versions {message.versions}")
        self.fields(message.fields, message.versions, ())
        for struct in message.structs.values():
            if struct.name not in self.reached:
                self.fail(struct.line, f"struct {struct.name} is not used")

    def fields(self, fields: tuple[Field, ...], versions: Versions, inside: tuple[str, ...]) -> None:
        names: set[str] = set()
        tags: dict[int, str] = {}
        for one in fields:
            if one.name in names:
                self.fail(one.line, f"a second field {one.name}")
            if one.name in RESERVED:
                self.fail(one.line, f"the name {one.name} is taken by every message")
            names.add(one.name)
            self.field(one, versions, inside, tags)

    def field(self, one: Field, versions: Versions, inside: tuple[str, ...], tags: dict[int, str]) -> None:
        message = self.message
        present = one.versions & versions
        used = one.versions & message.versions
        if not used or (one.versions.high != OPEN and one.versions.high > message.versions.high):
            self.fail(one.line, f"{one.name} has versions {one.versions}, the message {message.versions}")
        if one.tag is not None:
            if one.tag in tags:
                self.fail(one.line, f"tag {one.tag} of {one.name} is that of {tags[one.tag]} already")
            tags[one.tag] = one.name
            if not _inside(one.tagged & present, message.flexible):
                self.fail(one.line, f"{one.name} is tagged in {one.tagged}, flexible are only {message.flexible}")
        if isinstance(one.type, Primitive):
            self.primitive(one, one.type)
        if one.default is None and not _inside(one.versions & message.versions, one.nullable):
            self.fail(one.line, f"{one.name} = null, but it is not nullable in all of its versions")
        if one.plain and one.type != Primitive("string"):
            self.fail(one.line, f"{one.name} is plain, which only a string can be")
        ref = struct_ref(one)
        if ref is None:
            return
        if ref.name in inside:
            self.fail(one.line, f"struct {ref.name} contains itself")
        if ref.name not in message.structs:
            self.fail(one.line, f"unknown type {ref.name}: no fields are indented below a field of that type")
        known = self.reached.get(ref.name)
        if known is not None and _inside(present, known):
            return
        self.reached[ref.name] = (
            present if known is None else Versions(min(known.low, present.low), max(known.high, present.high))
        )
        self.fields(message.structs[ref.name].fields, present, (*inside, ref.name))

    def primitive(self, one: Field, type_: Primitive) -> None:
        if one.nullable and type_.name not in NULLABLE_PRIMITIVES:
            self.fail(one.line, f"{one.name}: {type_.name} has no null on the wire")
        limits = INTEGER_RANGES.get(type_.name)
        if limits and isinstance(one.default, int) and not limits[0] <= one.default <= limits[1]:
            self.fail(one.line, f"{one.name}: {one.default} does not fit {type_.name}")


def _inside(inner: Versions, outer: Versions) -> bool:
    return not inner or (inner & outer) == inner
