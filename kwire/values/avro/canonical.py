"""The parsing canonical form of a schema, and its Rabin fingerprint, as the specification of Avro has them."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Final

from kwire.values.avro.types import ArrayType, EnumType, FixedType, MapType, Named, PrimitiveType, Type, UnionType

__all__ = ["canonical", "rabin"]

_EMPTY: Final = 0xC15D213AA4D7A795
"""The fingerprint of nothing."""


def canonical(type_: Type) -> str:
    """What matters to who reads values of a type, always spelt alike."""
    return "".join(_canonical(type_, set()))


def rabin(text: str) -> int:
    """The fingerprint of a text: an unsigned integer of 64 bits (CRC-64-AVRO)."""
    table, found = _rabin_table(), _EMPTY
    for byte in text.encode("utf-8", "surrogatepass"):
        found = (found >> 8) ^ table[(found ^ byte) & 0xFF]
    return found


@functools.cache
def _rabin_table() -> list[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (_EMPTY if number & 1 else 0)
        table.append(number)
    return table


def _canonical(type_: Type, seen: set[int]) -> Iterator[str]:
    if isinstance(type_, PrimitiveType):
        yield f'"{type_.name}"'
    elif isinstance(type_, UnionType):
        yield "["
        for number, branch in enumerate(type_.branches):
            yield "," if number else ""
            yield from _canonical(branch, seen)
        yield "]"
    elif isinstance(type_, ArrayType):
        yield '{"type":"array","items":'
        yield from _canonical(type_.items, seen)
        yield "}"
    elif isinstance(type_, MapType):
        yield '{"type":"map","values":'
        yield from _canonical(type_.values, seen)
        yield "}"
    elif id(type_) in seen:
        yield _quoted(type_.name)
    else:
        seen.add(id(type_))
        yield from _canonical_named(type_, seen)


def _canonical_named(type_: Named, seen: set[int]) -> Iterator[str]:
    name = _quoted(type_.name)
    if isinstance(type_, FixedType):
        yield f'{{"name":{name},"type":"fixed","size":{type_.size}}}'
    elif isinstance(type_, EnumType):
        yield f'{{"name":{name},"type":"enum","symbols":[{",".join(map(_quoted, type_.symbols))}]}}'
    else:
        yield f'{{"name":{name},"type":"record","fields":['
        for number, one in enumerate(type_.fields):
            yield f'{"," if number else ""}{{"name":{_quoted(one.name)},"type":'
            yield from _canonical(one.type, seen)
            yield "}"
        yield "]}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
