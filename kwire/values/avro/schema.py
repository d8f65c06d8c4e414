"""Avro schemas as text to types, with bounds: a schema is input like any other.

Rules kept here:

- A ``KwireError`` says what is wrong, and where: the path in the schema, ``$.fields[2].type``.
- A text, its nesting and its names are bounded. A name that stands for itself is one object, so types may be circles;
  who goes through them counts what is made (``layout``, ``programs``).
- A logical type that does not fit, or that is not known, is passed over, as the specification has it.
- Names are data: any text is one. Only an empty name, and one twice in the same place, is refused.

Source: the specification of Avro 1.12 (schema declaration, names, aliases, logical types, parsing canonical form,
fingerprints).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kwire.errors import KwireError
from kwire.stored import is_text
from kwire.values.avro.canonical import canonical, rabin
from kwire.values.avro.types import (
    PRIMITIVES,
    ArrayType,
    EnumType,
    Field,
    FixedType,
    Logical,
    MapType,
    Named,
    PrimitiveType,
    RecordType,
    Type,
    UnionType,
    named,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Schema", "parse"]

MOST_TEXT: Final = 4 << 20
"""Characters of a schema with all that it refers to."""
MOST_KEPT: Final = 128 << 10
"""Characters of a schema that is kept as it is parsed."""
MOST_NESTING: Final = 100
"""Types inside each other."""
MOST_NAME: Final = 1024
"""Characters of a name."""
MOST_ALIASES: Final = 1000
"""Other names of a type or field."""
MOST_FIXED: Final = 1 << 20
"""Bytes of a ``fixed``."""


class Schema:
    """A schema: ``type`` is its tree, ``text`` what it was parsed from.

    Two are equal if they were parsed from the same texts.
    """

    def __init__(self, type_: Type, text: str, others: tuple[tuple[str, str], ...] = ()) -> None:
        self.type: Type = type_
        self.text: str = text
        self._key = (text, others)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<Avro schema {named(self.type)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        text, others = self._key
        return parse, (text, dict(others))

    @functools.cached_property
    def canonical(self) -> str:
        """The parsing canonical form: what matters to who reads values, always spelt alike."""
        return canonical(self.type)

    @functools.cached_property
    def fingerprint(self) -> int:
        """The Rabin fingerprint of the canonical form: an unsigned integer of 64 bits (CRC-64-AVRO)."""
        return rabin(self.canonical)

    def arrow_type(self, *, spark: bool = False, recursive: str = "refuse") -> pa.DataType:
        """The Arrow type that values of the schema become.

        ``spark``: only types that Spark has: enums as strings, ``fixed`` as binary, times and timestamps in
        microseconds. ``recursive``: ``"refuse"``, or ``"json"`` for a string of JSON in place of a type that has
        itself inside. Raises ``KwireError`` for a recursive type, and for a schema with too many columns.
        """
        from kwire.values.avro.layout import layout_of

        return layout_of(self, spark, recursive).type


# --- parsing ----------------------------------------------------------------------------------------------------------


def parse(text: str, named: Mapping[str, str] | None = None) -> Schema:
    """The schema that ``text`` is, as JSON.

    ``named``: the texts of schemas that it refers to, by the names under which it does. Raises ``KwireError`` with the
    path in the schema.
    """
    others = named or {}
    if len(text) + sum(map(len, others.values())) > MOST_TEXT:
        raise KwireError(f"an Avro schema has more than {MOST_TEXT:,} characters")
    # What is parsed takes many times the memory of its text.
    return (_kept if len(text) <= MOST_KEPT else _parsed)(text, tuple(sorted(others.items())))


def _parsed(text: str, others: tuple[tuple[str, str], ...]) -> Schema:
    parser = _Parser(dict(others))
    try:
        made = parser.type(_json(text), "", "$", 0)
    except RecursionError:
        raise KwireError("an Avro schema is nested too deeply") from None
    return Schema(made, text, others)


_kept: Final = functools.lru_cache(128)(_parsed)
"""The same, parsed once: who decodes batches has the text each time."""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise KwireError(f"an Avro schema is not JSON: {wrong}") from None


class _Parser:
    """The names that are known so far."""

    def __init__(self, others: dict[str, str]) -> None:
        self.others = others
        self.names: dict[str, Named] = {}

    def type(self, said: Any, namespace: str, path: str, depth: int) -> Type:
        if depth > MOST_NESTING:
            raise KwireError(f"{path}: more than {MOST_NESTING} types inside each other")
        if isinstance(said, str):
            return self.by_name(said, namespace, path, depth)
        if isinstance(said, list):
            return self.union(said, namespace, path, depth)
        if not isinstance(said, dict):
            raise KwireError(f"{path}: a type is a name, a list or an object")
        kind = said.get("type")
        if isinstance(kind, dict | list):
            return self.type(kind, namespace, f"{path}.type", depth + 1)
        if not isinstance(kind, str):
            raise KwireError(f"{path}: no type")
        if kind in PRIMITIVES:
            return PrimitiveType(kind, _logical(said, kind, 0))
        if kind == "array":
            return ArrayType(self.inner(said, "items", namespace, path, depth))
        if kind == "map":
            return MapType(self.inner(said, "values", namespace, path, depth))
        make: dict[str, Callable[..., Named]] = {
            "record": self.record,
            "error": self.record,
            "enum": self.enum,
            "fixed": self.fixed,
        }
        if kind in make:
            return make[kind](said, namespace, path, depth)
        return self.by_name(kind, namespace, path, depth)

    def inner(self, said: dict[str, Any], key: str, namespace: str, path: str, depth: int) -> Type:
        if key not in said:
            raise KwireError(f"{path}: no {key}")
        return self.type(said[key], namespace, f"{path}.{key}", depth + 1)

    def by_name(self, name: str, namespace: str, path: str, depth: int) -> Type:
        if name in PRIMITIVES:
            return PrimitiveType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for one in (full, name):
            if one in self.names:
                return self.names[one]
            if one in self.others:
                # Before it is parsed, so that it is not parsed again where it refers to itself.
                text = self.others.pop(one)
                made = self.type(_json(text), "", f"{path}<{_short(one)}>", depth + 1)
                return self.names.get(one, made)
        while self.others:
            # The name of a reference may be another than that of the type.
            label, text = self.others.popitem()
            self.type(_json(text), "", f"{path}<{_short(label)}>", depth + 1)
            for one in (full, name):
                if one in self.names:
                    return self.names[one]
        raise KwireError(f"{path}: there is no type {_short(name)}")

    def union(self, said: list[Any], namespace: str, path: str, depth: int) -> UnionType:
        branches = tuple(self.type(one, namespace, f"{path}[{n}]", depth + 1) for n, one in enumerate(said))
        if any(isinstance(one, UnionType) for one in branches):
            raise KwireError(f"{path}: a union in a union")
        names = [named(one) for one in branches]
        if len(set(names)) < len(names):
            raise KwireError(f"{path}: a union has a type twice")
        return UnionType(branches)

    def define(self, said: dict[str, Any], namespace: str, path: str) -> tuple[str, str, tuple[str, ...]]:
        """The full name of a type that is defined here, the namespace of what is in it, and its other names."""
        name = _name(said.get("name"), path)
        if "." not in name:
            within = said.get("namespace", namespace)
            if not isinstance(within, str) or not is_text(within):
                raise KwireError(f"{path}: its namespace is no text")
            name = f"{within}.{name}" if within else name
        if name in self.names or name in PRIMITIVES:
            raise KwireError(f"{path}: the name {_short(name)} is taken")
        inside = name.rpartition(".")[0]
        aliases = tuple(one if "." in one or not inside else f"{inside}.{one}" for one in _aliases(said, path))
        return name, inside, aliases

    def record(self, said: dict[str, Any], namespace: str, path: str, depth: int) -> RecordType:
        name, inside, aliases = self.define(said, namespace, path)
        made = self.names[name] = RecordType(name, aliases)
        fields, seen = said.get("fields"), set[str]()
        if not isinstance(fields, list):
            raise KwireError(f"{path}: a record has no list of fields")
        found = []
        for number, one in enumerate(fields):
            where = f"{path}.fields[{number}]"
            if not isinstance(one, dict):
                raise KwireError(f"{where}: a field is an object")
            label = _name(one.get("name"), where)
            if label in seen:
                raise KwireError(f"{where}: the field {_short(label)} is there twice")
            seen.add(label)
            # What stands beside the type of a field is its own business, but a logical type belongs to its type.
            type_ = self.inner(one, "type", inside, where, depth)
            found.append(Field(label, type_, _aliases(one, where), "default" in one, one.get("default")))
        made.fields = tuple(found)
        return made

    def enum(self, said: dict[str, Any], namespace: str, path: str, depth: int) -> EnumType:
        name, _, aliases = self.define(said, namespace, path)
        symbols, default = said.get("symbols"), said.get("default")
        if not isinstance(symbols, list) or not all(isinstance(one, str) and is_text(one) for one in symbols):
            raise KwireError(f"{path}: an enum has no list of symbols")
        if len(set(symbols)) < len(symbols):
            raise KwireError(f"{path}: an enum has a symbol twice")
        if default is not None and default not in symbols:
            raise KwireError(f"{path}: the default of an enum is none of its symbols")
        made = self.names[name] = EnumType(name, aliases, tuple(symbols), default)
        return made

    def fixed(self, said: dict[str, Any], namespace: str, path: str, depth: int) -> FixedType:
        name, _, aliases = self.define(said, namespace, path)
        size = said.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_FIXED:
            raise KwireError(f"{path}: the size of a fixed is a number of bytes, at most {MOST_FIXED:,}")
        made = self.names[name] = FixedType(name, aliases, size, _logical(said, "fixed", size))
        return made


def _short(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:100]}...")


def _name(said: Any, path: str) -> str:
    if not isinstance(said, str) or not said or said.endswith("."):
        raise KwireError(f"{path}: no name")
    if len(said) > MOST_NAME:
        raise KwireError(f"{path}: a name has more than {MOST_NAME:,} characters")
    if not is_text(said):
        raise KwireError(f"{path}: a name with half of a surrogate pair")
    return said


def _aliases(said: dict[str, Any], path: str) -> tuple[str, ...]:
    aliases = said.get("aliases") or []
    if not isinstance(aliases, list) or len(aliases) > MOST_ALIASES:
        raise KwireError(f"{path}: aliases are a list of at most {MOST_ALIASES:,} names")
    return tuple(_name(one, path) for one in aliases)


_LOGICAL: Final[Mapping[str, tuple[str, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}
_SIZES: Final = {"uuid": 16, "duration": 12}
MOST_DIGITS: Final = 76
"""Of a decimal256, the largest that Arrow has. A decimal with more stays bytes."""


def _logical(said: dict[str, Any], kind: str, size: int) -> Logical | None:
    """The logical type of a type, if it fits. ``size``: bytes of a fixed."""
    name = said.get("logicalType")
    if not isinstance(name, str) or kind not in _LOGICAL.get(name, ()):
        return None
    if name != "decimal":
        return None if kind == "fixed" and size != _SIZES[name] else Logical(name)
    precision, scale = _whole(said.get("precision")), _whole(said.get("scale", 0))
    if precision is None or scale is None or not (0 < precision <= MOST_DIGITS and 0 <= scale <= precision):
        return None
    if kind == "fixed" and (size == 0 or precision >= len(str((1 << 8 * min(size, 64) - 1) - 1))):
        return None
    return Logical(name, precision, scale)


def _whole(said: Any) -> int | None:
    return said if isinstance(said, int) and not isinstance(said, bool) else None
