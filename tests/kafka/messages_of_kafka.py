"""Messages to exchange with Kafka's classes, and how its JSON converters write them.

``samples`` gives messages of one layout: defaults, nulls wherever they are allowed, empty and full arrays, no tagged
field and every tagged field, unknown tags, edges of numbers, and drawn ones; always the same for the same layout.
``to_json`` is the form of Kafka's generated JSON converters, with the field names of a given Kafka release.
"""

from __future__ import annotations

import base64
import random
from typing import Any
from uuid import UUID

from kwire import wire
from kwire.codec import registry
from kwire.schema import model
from kwire.schema.parser import camel_case

DRAWN = 18
TEXTS = ("", "a", "topic-1", "größe", "日本語", "\U0001f600", "x" * 127, "y" * 128, "z" * 300)
UNKNOWN_TAG = 10_000


class Maker:
    """Makes values of a layout; the knobs say how nulls, arrays and tags are chosen, 0 to 1, and numbers."""

    def __init__(self, message: model.Message, rng: random.Random) -> None:
        self.message = message
        self.rng = rng
        self.nulls = 0.25
        self.elements = (0, 1, 2, 3)
        self.tags = 0.6
        self.unknown = 0.2
        self.edges = 0.3
        self.texts = TEXTS

    def struct(self, layout: model.StructLayout, depth: int = 0) -> Any:
        if layout.name == self.message.name:
            made = registry.message_class(self.message)()
        else:
            made = registry.struct_class(self.message, layout.name)()
        for one in layout.fields:
            setattr(made, one.name, self.field(one, depth))
        for one in layout.tagged:
            if self.rng.random() < self.tags:
                setattr(made, one.name, self.field(one, depth))
        if layout.flexible and self.rng.random() < self.unknown:
            made.unknown_tagged_fields = {
                UNKNOWN_TAG + self.rng.randrange(3): self.rng.randbytes(self.rng.choice((0, 1, 130)))
                for _ in range(self.rng.randint(1, 2))
            }
        return made

    def field(self, one: model.FieldLayout, depth: int) -> Any:
        if one.nullable and self.rng.random() < self.nulls:
            return None
        if isinstance(one.type, model.ArrayLayout):
            count = self.rng.choice(self.elements) if depth < 3 else min(1, max(self.elements))
            element = one.type.element
            if isinstance(element, model.StructLayout):
                return [self.struct(element, depth + 1) for _ in range(count)]
            return [self.primitive(element.name) for _ in range(count)]
        if isinstance(one.type, model.StructLayout):
            return self.struct(one.type, depth + 1)
        return self.primitive(one.type.name)

    def primitive(self, name: str) -> Any:
        rng = self.rng
        if name == "bool":
            return rng.random() < 0.5
        if name == "float64":
            return rng.choice((0.0, -1.5, 1e300, 5e-324, rng.uniform(-1e6, 1e6)))
        if name == "uuid":
            return UUID(int=rng.choice((0, 1, rng.getrandbits(128))))
        if name == "string":
            return rng.choice(self.texts)
        if name in ("bytes", "records"):
            return rng.randbytes(rng.choice((0, 1, 20, 127, 128)))
        size = 8 * model.FIXED_SIZES[name]
        low, high = (0, 2**size - 1) if name.startswith("u") else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)
        return rng.choice((low, high, 0, 1)) if rng.random() < self.edges else rng.randint(low, high)


def samples(message: model.Message, version: int) -> list[Any]:
    """At least 22 messages of one layout."""
    layout = model.layout(message, version)
    maker = Maker(message, random.Random(f"{message.name} v{version}"))
    made = []
    settings: list[dict[str, Any]] = [
        {"nulls": 1.0, "elements": (1,), "tags": 1.0, "unknown": 0.0},
        {"nulls": 0.0, "elements": (0,), "tags": 0.0, "unknown": 0.0, "texts": ("",)},
        {"nulls": 0.0, "elements": (2,), "tags": 1.0, "unknown": 0.0},
        {"nulls": 0.0, "elements": (1,), "tags": 1.0, "unknown": 1.0, "edges": 1.0},
    ]
    for one in settings:
        strict = Maker(message, maker.rng)
        for name, value in one.items():
            setattr(strict, name, value)
        made.append(strict.struct(layout))
    made.append(_defaults(message, layout))
    made += [maker.struct(layout) for _ in range(DRAWN)]
    return made


def _defaults(message: model.Message, layout: model.StructLayout) -> Any:
    made = registry.message_class(message)()
    for one in layout.fields:
        # A default of null where this version has no null yet cannot be written.
        if getattr(made, one.name) is None and not one.nullable:
            setattr(made, one.name, Maker(message, random.Random(0)).field(one, 0))
    return made


def same_shape(one: model.TypeLayout, two: model.TypeLayout) -> bool:
    """Whether two layouts have the same bytes: types, nullability and tags, whatever the names."""
    if isinstance(one, model.ArrayLayout) and isinstance(two, model.ArrayLayout):
        return one.compact == two.compact and same_shape(one.element, two.element)
    if isinstance(one, model.StructLayout) and isinstance(two, model.StructLayout):
        if one.flexible != two.flexible or len(one.fields) != len(two.fields) or len(one.tagged) != len(two.tagged):
            return False
        pairs = zip((*one.fields, *one.tagged), (*two.fields, *two.tagged), strict=True)
        return all(a.nullable == b.nullable and a.tag == b.tag and same_shape(a.type, b.type) for a, b in pairs)
    return one == two


def to_json(
    value: Any, ours: model.StructLayout, theirs: model.StructLayout, names: dict[tuple[str, str], str], records: bool
) -> Any:
    """``value`` as Kafka's converter reads it, or, without ``records``, writes it: it leaves record sets empty."""
    default = type(value)()
    out = {}
    for one, two in zip((*ours.fields, *ours.tagged), (*theirs.fields, *theirs.tagged), strict=True):
        found = getattr(value, one.name)
        if one.tag is not None and found == getattr(default, one.name):
            continue
        out[names[theirs.name, two.name]] = _value(found, one.type, two.type, names, records)
    return out


def _value(value: Any, ours: model.TypeLayout, theirs: model.TypeLayout, names: Any, records: bool) -> Any:
    if value is None:
        return None
    if isinstance(ours, model.ArrayLayout):
        assert isinstance(theirs, model.ArrayLayout)
        return [_value(one, ours.element, theirs.element, names, records) for one in value]
    if isinstance(ours, model.StructLayout):
        assert isinstance(theirs, model.StructLayout)
        return to_json(value, ours, theirs, names, records)
    if ours.name == "records" and not records:
        return ""
    if ours.name in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return wire.uuid_text(value) if ours.name == "uuid" else value


def json_names(message: model.Message) -> dict[tuple[str, str], str]:
    """(struct, field) -> the name in Kafka's JSON."""
    structs = {message.name: message.fields, **{one.name: one.fields for one in message.structs.values()}}
    out = {}
    for struct, fields in structs.items():
        for one in fields:
            name = one.kafka_name or camel_case(one.name)
            out[struct, one.name] = name[0].lower() + name[1:]
    return out


def without_unknown_tags(value: Any) -> Any:
    """A copy of ``value`` that has no unknown tagged fields anywhere: JSON does not carry them."""
    kept = value.to_dict()
    _drop_unknown(kept)
    return type(value).from_dict(kept)


def _drop_unknown(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("unknown_tagged_fields", None)
        for one in value.values():
            _drop_unknown(one)
    elif isinstance(value, list):
        for one in value:
            _drop_unknown(one)
