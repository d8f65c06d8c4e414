"""Consistency of one parsed message: what no single line can show.

Rules kept here:

- Every range lies inside the message's versions.
- Every struct is defined and reachable, and contains itself nowhere.
- Names and tags are unique. Tags are given only where the version is flexible (KIP-482).
- A null default stands only where null is allowed. An integer default fits its type.
- A field that no version has is a mistake too.

What a schema names becomes Python: classes, attributes, and source that is executed (``kwire.codec``). So names, tags
and defaults have rules here as well. Only what keeps them can come into generated source:

- A field is called ``[a-z][a-z0-9_]*``, a message or struct ``[A-Z][A-Za-z0-9]*``. Neither is a name that Python or
  kwire's own classes use.
- A number is of its type's exact class and range. Text is printable.

The classes' generator asks ``check_generated`` once more, so a model that was made by hand cannot bring anything else
either.

Each failure is a ``SchemaError`` at the line of the field or struct that is wrong.
"""

from __future__ import annotations

import keyword
import math
import re
from typing import Final, NoReturn

from kwire.errors import SchemaError
from kwire.schema.model import OPEN, PRIMITIVES, Array, Field, Message, Primitive, StructRef, Versions

__all__ = [
    "LONGEST_NAME",
    "LONGEST_TEXT",
    "MOST_FIELDS",
    "MOST_LEVELS",
    "MOST_TAG",
    "allowed_name",
    "check",
    "check_generated",
    "is_class_name",
    "is_field_name",
    "struct_ref",
]

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

RESERVED: Final = frozenset({"unknown_tagged_fields", "self", "to_dict", "from_dict", "to_json"})
"""Attribute names that every message class has by itself, and what its methods call the object."""

RESERVED_CLASSES: Final = frozenset(
    {"FIELDS", "STRUCTS", "SCHEMA"} | {"ClassVar", "Message", "Sequence", "UUID", "WireMessage", "WireStruct"}
)
"""What message classes hold in addition to their structs, and what the type stub imports."""

SECRET_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "always": ("string", "bytes", "records"),
    "config": ("string",),
    "frame": ("bytes",),
    "topic": ("records",),
}
"""What can be secret, and in which way."""

LONGEST_NAME: Final = 100
"""Characters of a name. Kafka's longest has 45."""
LONGEST_TEXT: Final = 1_000
"""Characters of a default that is a string."""
MOST_FIELDS: Final = 1_000
"""Fields of a message, those of a struct counted wherever the struct is used.

Kafka's largest message has 100.

Layouts and generated source hold a struct's fields once for each use. Structs that use each other twice would double
them with every level.
"""
MOST_LEVELS: Final = 8
"""Structs inside of each other.

Kafka's deepest message has 5. Python nests no more than 20 loops, two a level.
"""
MOST_TAG: Final = 2**31 - 1
"""The largest number of a tagged field (int).

Kafka reads it as an unsigned varint into an ``int`` of Java (KIP-482).
"""

_FIELD: Final = re.compile(r"[a-z][a-z0-9_]*")
_CLASS: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_KAFKA_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def is_field_name(text: str) -> bool:
    """Whether ``text`` has the form of a field's name; ``allowed_name`` says whether it is free as well."""
    return len(text) <= LONGEST_NAME and _FIELD.fullmatch(text) is not None


def is_class_name(text: str) -> bool:
    """Whether a message or struct can be called ``text``."""
    return len(text) <= LONGEST_NAME and _CLASS.fullmatch(text) is not None and _is_free(text)


def _is_free(name: str) -> bool:
    return not keyword.iskeyword(name) and name not in RESERVED and name not in RESERVED_CLASSES


def allowed_name(name: str) -> str:
    """``name`` for a field, with ``_`` at its end where Python or kwire's classes use the name: ``class_``."""
    return name if _is_free(name) else name + "_"


def struct_ref(one: Field) -> StructRef | None:
    """The struct that a field is, or holds an array of."""
    base = one.type.element if isinstance(one.type, Array) else one.type
    return base if isinstance(base, StructRef) else None


def check(message: Message) -> None:
    """Raise ``SchemaError`` for the first inconsistency of ``message``."""
    check_generated(message)
    _Checks(message).run()


def check_generated(message: Message) -> None:
    """Raise ``SchemaError`` for a name, type, tag or default that generated source must not hold."""
    _class_name(message, "message", message.name, message.line)
    _fields_generated(message, message.fields)
    for name, struct in message.structs.items():
        if name != struct.name:
            _fail(message, struct.line, f"struct {struct.name!r} is kept as {name!r}")
        _class_name(message, "struct", struct.name, struct.line)
        if struct.name == message.name:
            _fail(message, struct.line, f"a struct cannot have the name of its message, {struct.name}")
        _fields_generated(message, struct.fields)


def _fail(message: Message, line: int, what: str) -> NoReturn:
    name = message.name if is_class_name(message.name) else repr(message.name[:LONGEST_NAME])
    raise SchemaError(f"{name}: {what}", message.file, line)


def _class_name(message: Message, what: str, name: str, line: int) -> None:
    if not is_class_name(name):
        if name.isidentifier() and not _is_free(name):
            _fail(message, line, f"the {what} name {name!r} is taken by Python or by every message")
        _fail(
            message, line, f"{what} name {name[:LONGEST_NAME]!r} is not CamelCase of at most {LONGEST_NAME} characters"
        )


def _fields_generated(message: Message, fields: tuple[Field, ...]) -> None:
    for one in fields:
        if not is_field_name(one.name):
            name = one.name[:LONGEST_NAME]
            _fail(message, one.line, f"field name {name!r} is not snake_case of at most {LONGEST_NAME} characters")
        if not _is_free(one.name):
            by = "Python" if keyword.iskeyword(one.name) else "every message"
            _fail(message, one.line, f"the name {one.name} is taken by {by}: write {allowed_name(one.name)}")
        spelt = one.kafka_name
        if spelt and (len(spelt) > LONGEST_NAME or not _KAFKA_NAME.fullmatch(spelt)):
            _fail(message, one.line, f"{one.name} as {spelt[:LONGEST_NAME]!r}: that is not a name")
        if one.tag is not None and not (type(one.tag) is int and 0 <= one.tag <= MOST_TAG):
            _fail(message, one.line, f"tag of {one.name} is not a number from 0 to {MOST_TAG}")
        base = one.type.element if isinstance(one.type, Array) else one.type
        if isinstance(base, Primitive) and base.name not in PRIMITIVES:
            _fail(message, one.line, f"unknown type {base.name!r}")
        if isinstance(base, StructRef):
            _class_name(message, "struct", base.name, one.line)
        if one.default is not None and not _is_default(one):
            what = (
                f"text that can be shown, of at most {LONGEST_TEXT} characters" if isinstance(one.default, str) else ""
            )
            _fail(message, one.line, f"the default of {one.name} is not {what or 'a plain, finite value of its type'}")


def _is_default(one: Field) -> bool:
    """Whether a default that is not null is a plain value of the field's type.

    It must be no subclass, which could show itself as something else. A number must have a literal, and text must hold
    nothing that a terminal would obey.
    """
    default = one.default
    if not isinstance(one.type, Primitive):
        return type(default) is tuple and not default
    name = one.type.name
    if name == "string":
        return type(default) is str and len(default) <= LONGEST_TEXT and default.isprintable()
    if name == "float64":
        return type(default) in (int, float) and math.isfinite(default)  # type: ignore[arg-type]
    if name == "uuid":
        return type(default) is bytes and len(default) == 16
    if name in ("bytes", "records"):
        return type(default) is bytes and not default
    return type(default) is (bool if name == "bool" else int)


class _Checks:
    def __init__(self, message: Message) -> None:
        self.message = message
        self.reached: set[str] = set()
        self.count = 0

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
            names.add(one.name)
            self.count += 1
            if self.count > MOST_FIELDS:
                self.fail(one.line, f"more than {MOST_FIELDS} fields, those of a struct counted wherever it is used")
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
        if one.secret:
            if message.kind == "header":
                self.fail(one.line, f"{one.name} is secret, which no field of a header can be: all tables have those")
            types = SECRET_TYPES[one.secret]
            if not isinstance(one.type, Primitive) or one.type.name not in types:
                word = "secret" if one.secret == "always" else f"secret {one.secret}"
                self.fail(one.line, f"{one.name} is {word}, which only {' or '.join(types)} can be")
        ref = struct_ref(one)
        if ref is None:
            return
        if ref.name in inside:
            self.fail(one.line, f"struct {ref.name} contains itself")
        if ref.name not in message.structs:
            self.fail(one.line, f"unknown type {ref.name}: no fields are indented below a field of that type")
        if len(inside) == MOST_LEVELS:
            self.fail(one.line, f"more than {MOST_LEVELS} structs inside of each other")
        self.reached.add(ref.name)
        self.fields(message.structs[ref.name].fields, present, (*inside, ref.name))

    def primitive(self, one: Field, type_: Primitive) -> None:
        if one.nullable and type_.name not in NULLABLE_PRIMITIVES:
            self.fail(one.line, f"{one.name}: {type_.name} has no null on the wire")
        limits = INTEGER_RANGES.get(type_.name)
        if limits and isinstance(one.default, int) and not limits[0] <= one.default <= limits[1]:
            self.fail(one.line, f"{one.name}: {one.default} does not fit {type_.name}")


def _inside(inner: Versions, outer: Versions) -> bool:
    return not inner or (inner & outer) == inner
