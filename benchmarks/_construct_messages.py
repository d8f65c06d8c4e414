"""Kafka's messages as somebody declares them who uses the ``construct`` package: its stock classes and nothing else.

``benchmarks/codec.py`` measures these declarations twice: as construct interprets them (``parse``, ``build``), and
through construct's own ``compile()``, which writes Python source from them (to be read in ``.source``).

Where construct offers several ways to declare the same thing, the one that is quickest in both forms is taken, so that
the figures are construct's and not those of a clumsy declaration. What decides it:

- ``compile()`` translates ``this`` expressions, not functions: a lambda as the condition of ``IfThenElse`` or in
  ``Rebuild`` makes source that is not Python. Hence no lambdas but in adapters.
- It calls back into the interpreter for a class that it has no translation for, with everything inside that class. Of
  what is used here (construct 2.10.70) these are ``VarInt``, ``ExprAdapter``, and the writing side of ``Prefixed`` and
  ``PascalString``, for which a translated equivalent does not exist (``VarInt``, text) or is slower (bytes). They
  therefore stand at the leaves: around one number, one uuid, one string.
- A sequence with a context of its own (``FocusedSeq``) is the dearest thing in both forms. It is used where there is no
  way around it: to read what can be null.

Tagged fields (KIP-482) are read as a list of tags and bytes, known or not: the messages of the benchmark have none set.
No declaration checks lengths; what bad input does is what construct makes of it.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from construct import (
    Array,
    Bytes,
    Computed,
    Construct,
    Container,
    ExprAdapter,
    Flag,
    Float64b,
    FocusedSeq,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Padding,
    PascalString,
    Pass,
    Prefixed,
    PrefixedArray,
    Struct,
    VarInt,
    this,
)

from kwire.schema import model

__all__ = ["declare"]

_COMPACT: Final[Construct] = ExprAdapter(VarInt, lambda number, _: number - 1, lambda length, _: length + 1)
"""A length in a flexible version: one more than it is, as a varint; null is 0 and becomes -1."""

_NULL: Final[dict[Construct, Construct]] = {
    Int16sb: Padding(2, b"\xff"),
    Int32sb: Padding(4, b"\xff"),
    _COMPACT: Padding(1, b"\x00"),
}
"""How null is written, by the kind of length: constant bytes."""

_FIXED: Final[dict[str, Construct]] = {
    "bool": Flag,
    "int8": Int8sb,
    "int16": Int16sb,
    "uint16": Int16ub,
    "int32": Int32sb,
    "uint32": Int32ub,
    "int64": Int64sb,
    "float64": Float64b,
    "uuid": ExprAdapter(Bytes(16), lambda content, _: UUID(bytes=content), lambda uuid, _: uuid.bytes),
}

_TAGS: Final[Construct] = PrefixedArray(VarInt, Struct("tag" / VarInt, "content" / Prefixed(VarInt, GreedyBytes)))


def declare(layout: model.StructLayout) -> Construct:
    """The construct ``Struct`` of ``layout``: it parses into a ``Container`` with the layout's field names, the tags in
    ``tagged_fields``, and builds from one.

    Raises ``ValueError`` for a field whose name is a method of ``Container``, which hides the value from attribute
    access, and for a nullable struct (KIP-893), which no message of the benchmark has.
    """
    fields = []
    for one in layout.fields:
        if hasattr(Container, one.name):
            raise ValueError(f"{layout.name}.{one.name}: construct's Container has a method of that name")
        fields.append(one.name / _value(one.name, one.type, one.nullable))
    if layout.flexible:
        fields.append("tagged_fields" / _TAGS)
    return Struct(*fields)


def _value(name: str, type_: model.TypeLayout, nullable: bool) -> Construct:
    """What follows the name of a field, or an element of an array (which is never null)."""
    if isinstance(type_, model.StructLayout):
        if nullable:
            raise ValueError(f"{name}: nullable structs are not declared here")
        return declare(type_)
    if isinstance(type_, model.PrimitiveLayout) and type_.name in _FIXED:
        return _FIXED[type_.name]
    # The whole field, and what remains of it when the length has been read.
    content: Construct
    rest: Construct
    if isinstance(type_, model.ArrayLayout):
        length = _COMPACT if type_.compact else Int32sb
        element = _value(name, type_.element, nullable=False)
        content, rest = PrefixedArray(length, element), Array(this.length, element)
    elif type_.name == "string":
        length = _COMPACT if type_.compact else Int16sb
        content, rest = PascalString(length, "utf8"), PascalString(Computed(this.length), "utf8")
    else:
        length = _COMPACT if type_.compact else Int32sb
        content, rest = Prefixed(length, GreedyBytes), Bytes(this.length)
    return _nullable(name, length, content, rest) if nullable else content


def _nullable(name: str, length: Construct, content: Construct, rest: Construct) -> Construct:
    """``content``, or None. Reading looks at the length first; writing looks at the value, which the struct's context
    already has, and needs no context of its own for that."""
    return IfThenElse(
        this._parsing,
        FocusedSeq("value", "length" / length, "value" / IfThenElse(this.length == -1, Pass, rest)),
        IfThenElse(this[name] == None, _NULL[length], content),  # noqa: E711 - an expression, not a comparison
    )
