"""Values of a layout by shapes: empty, one, many, nulls, largest numbers, unknown tags.

Rule kept here: the same layout, shape and seed give the same value.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, Literal
from uuid import UUID

from kwire import records
from kwire.codec import registry
from kwire.codec.objects import WireStruct, same
from kwire.schema import model

__all__ = ["SHAPES", "UNKNOWN", "Shape", "magic_of", "value"]

Shape = Literal["one", "empty", "many", "nulls", "largest", "unknown-tags"]
"""Type: name of a shape, one of ``SHAPES``."""

SHAPES: Final[dict[Shape, str]] = {
    "one": "one element in each array, nothing null, each tagged field set",
    "empty": "arrays, strings and bytes are empty, no tagged field is set",
    "many": "three elements in each array",
    "nulls": "null wherever it is allowed, also the client id in the header of a request",
    "largest": "the largest and the least numbers, strings of 300 bytes, 130 numbers in an array",
    "unknown-tags": "two tagged fields that no schema knows in each struct, and in the header",
}
"""Each shape, and what a value of it is like."""

_MOST: Final = 130
"""Elements of an array of numbers: its compact count takes two bytes."""
_LONG: Final = 300
UNKNOWN: Final = (10_000, 0x7FFF_FFFE)
"""Tags (int) that no schema knows. The second is the largest: to Kafka 2**31 - 1 says that there is no tag."""
_DEEP: Final = 3
_MAGICS: Final = {"ProduceRequest": (2, 3), "FetchResponse": (2, 4)}
"""The versions from which on record sets have magic 1, and magic 2."""


def value(message: model.Message, version: int, shape: Shape, seed: int = 0) -> WireStruct:
    """A message of a shape."""
    rng = random.Random(f"{seed} {message.name} v{version} {shape}")
    return _Maker(message, version, shape, rng).struct(model.layout(message, version), 0)


def magic_of(message: model.Message, version: int) -> int:
    """The magic of the record sets in a version of a message: what Kafka wrote when the version was new."""
    second, third = _MAGICS.get(message.name, (0, 0))
    return 0 if version < second else 1 if version < third else 2


class _Maker:
    def __init__(self, message: model.Message, version: int, shape: Shape, rng: random.Random) -> None:
        self.message = message
        self.magic = magic_of(message, version)
        self.shape = shape
        self.rng = rng

    def struct(self, layout: model.StructLayout, depth: int) -> WireStruct:
        whole = layout.name == self.message.name
        cls: Callable[[], WireStruct]
        cls = registry.message_class(self.message) if whole else registry.struct_class(self.message, layout.name)
        made = cls()
        for one in layout.fields:
            setattr(made, one.name, self.field(one, depth))
        if self.shape != "empty":
            for one in layout.tagged:
                setattr(made, one.name, self.set(one, getattr(made, one.name), depth))
        if layout.flexible and self.shape == "unknown-tags":
            made.unknown_tagged_fields = {tag: self.rng.randbytes(3) for tag in UNKNOWN}
        return made

    def set(self, one: model.FieldLayout, default: Any, depth: int) -> Any:
        """A value of a tagged field that is not its default, which would not be written."""
        for _ in range(8):
            made = self.field(one, depth)
            if not same(made, default):
                return made
        return default

    def field(self, one: model.FieldLayout, depth: int) -> Any:
        if one.nullable and self.shape == "nulls":
            return None
        type_ = one.type
        if isinstance(type_, model.StructLayout):
            return self.struct(type_, depth + 1)
        if isinstance(type_, model.PrimitiveLayout):
            return self.primitive(type_.name)
        element = type_.element
        if isinstance(element, model.StructLayout):
            return [self.struct(element, depth + 1) for _ in range(self.count(depth))]
        # Decoding gives tuples of numbers.
        made = [self.primitive(element.name) for _ in range(self.many(element.name, depth))]
        return tuple(made) if element.name in model.FIXED_SIZES and element.name != "uuid" else made

    def count(self, depth: int) -> int:
        if self.shape == "empty":
            return 0
        return 3 if self.shape == "many" and depth < _DEEP else 1

    def many(self, name: str, depth: int) -> int:
        return _MOST if self.shape == "largest" and "int" in name else self.count(depth)

    def primitive(self, name: str) -> Any:
        rng, largest = self.rng, self.shape == "largest"
        if name == "bool":
            return rng.random() < 0.5 if self.shape == "many" else self.shape != "empty"
        if name == "uuid":
            return UUID(int=(1 << 128) - 1 if largest else rng.getrandbits(128))
        if name == "float64":
            return rng.choice((1.7976931348623157e308, -5e-324)) if largest else float(rng.randint(1, 30))
        if name == "string":
            return "" if self.shape == "empty" else "x" * _LONG if largest else f"name-{rng.randint(1, 30)}"
        if name == "records":
            return b"" if self.shape == "empty" else self.record_set()
        if name == "bytes":
            return b"" if self.shape == "empty" else rng.randbytes(_LONG if largest else 3)
        bits = 8 * model.FIXED_SIZES[name]
        low, high = (0, (1 << bits) - 1) if name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        return rng.choice((low, high)) if largest else rng.randint(1, 30)

    def record_set(self) -> bytes:
        time = 1_700_000_000_000 if self.magic else None
        return records.encode([records.Record(b"k", b"v", timestamp=time)], magic=self.magic)
