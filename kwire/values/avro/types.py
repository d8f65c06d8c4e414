"""Avro's types, as a schema is parsed to.

A name that stands for itself is one object, so types may be circles: who goes through them counts what is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "PRIMITIVES",
    "ArrayType",
    "EnumType",
    "Field",
    "FixedType",
    "Logical",
    "MapType",
    "Named",
    "PrimitiveType",
    "RecordType",
    "Type",
    "UnionType",
    "named",
]

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
"""The names of types that have no other name."""


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type: ``timestamp-millis``, or ``decimal`` with its digits (``precision``), ``scale`` after the
    point."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PrimitiveType:
    """One of ``PRIMITIVES``."""

    name: str
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ArrayType:
    """Items."""

    items: Type


@dataclass(frozen=True, slots=True, eq=False)
class MapType:
    """Values by names."""

    values: Type


@dataclass(frozen=True, slots=True, eq=False)
class UnionType:
    """One of some types."""

    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FixedType:
    """``size`` bytes."""

    name: str
    """With its namespace."""
    aliases: tuple[str, ...]
    size: int
    logical: Logical | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EnumType:
    """One of some symbols."""

    name: str
    aliases: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    type: Type
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None
    """As JSON."""


@dataclass(slots=True, eq=False)
class RecordType:
    """Fields in their order."""

    name: str
    aliases: tuple[str, ...]
    fields: tuple[Field, ...] = ()


Named = RecordType | EnumType | FixedType
"""A type with a name of its own."""
Type = PrimitiveType | ArrayType | MapType | UnionType | Named
"""Any type."""


def named(type_: Type) -> str:
    """What a branch of a union is called: ``int``, ``array``, or its name with its namespace."""
    if isinstance(type_, PrimitiveType | FixedType | EnumType | RecordType):
        return type_.name
    return {ArrayType: "array", MapType: "map", UnionType: "union"}[type(type_)]
