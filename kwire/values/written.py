"""A schema as a source has it: its text, the names that it goes by, and the schemas that it refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kwire import stored
from kwire.errors import SchemaError
from kwire.values.framing import guid_text

__all__ = [
    "AVRO",
    "BARE",
    "CBOR",
    "FORMATS",
    "JSON",
    "LONGEST",
    "MSGPACK",
    "PROTOBUF",
    "Reference",
    "Written",
    "closure",
    "format_of",
]

AVRO: Final = "avro"
"""A format (str): Avro's binary encoding."""
PROTOBUF: Final = "protobuf"
"""A format (str): messages of Protocol Buffers."""
JSON: Final = "json"
"""A format (str): JSON in UTF-8, with a JSON Schema or without."""
FORMATS: Final = (AVRO, PROTOBUF, JSON)
"""The formats of which schemas are written (tuple of str)."""
MSGPACK: Final = "msgpack"
"""A format (str): MessagePack."""
CBOR: Final = "cbor"
"""A format (str): CBOR (RFC 8949)."""
BARE: Final = (MSGPACK, CBOR)
"""The formats whose values need no schema (tuple of str)."""

LONGEST: Final = 4 << 20
"""Characters of a schema's text, at most."""
MOST_REFERENCES: Final = 1000
"""Schemas that one refers to, with those that they refer to."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema, which this one calls ``name``: a full name of Avro, an import of Protobuf, a URI of JSON."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Written:
    """A schema that a source has.

    ``text`` is the schema as it was registered. For Protobuf it may be a descriptor in base64. ``rules`` are the types
    of the rules that a registry keeps with it, such as ``ENCRYPT``. ``deleted``: nobody shall write with it any more.
    ``tags``: patterns of paths, each with the tags that a registry's metadata gives to these fields.
    ``message``: the full name of the message of Protobuf that is meant, where a user has said it.
    """

    format: str
    text: str
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None
    references: tuple[Reference, ...] = ()
    rules: tuple[str, ...] = ()
    deleted: bool = False
    message: str | None = None
    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __str__(self) -> str:
        if self.format in BARE:
            return self.format
        if self.subject is not None:
            return f"{self.subject} v{self.version}" if self.version is not None else self.subject
        if self.id is not None:
            return f"schema {self.id}"
        return f"schema {self.guid}" if self.guid is not None else f"the {self.format} schema"

    @property
    def content(self) -> tuple[str, str, tuple[Reference, ...], str | None]:
        """What makes two schemas the same, whatever they are called."""
        return self.format, self.text, self.references, self.message

    @classmethod
    def of(cls, found: Any, **more: Any) -> Written:
        """What a registry says of a schema, or its topic has. Raises one of ``stored.UNFIT`` for what is no such thing.

        ``more``: what else is known, where ``found`` does not say it.
        """
        kind = _text(found.get("schemaType") or "AVRO").lower()
        if kind not in FORMATS:
            raise ValueError(f"schemas of the type {kind}")
        text = _text(found["schema"])
        if len(text) > LONGEST:
            raise ValueError("the schema is too long")
        rule_set = found.get("ruleSet") or {}
        rules = [one for name in rule_set for one in rule_set[name] or ()]
        guid = found.get("guid", more.get("guid"))
        subject = found.get("subject", more.get("subject"))
        references = found.get("references") or ()
        tags = (found.get("metadata") or {}).get("tags") or {}
        return cls(
            format=kind,
            text=text,
            id=stored.optional(found.get("id", more.get("id")), 0),
            guid=None if guid is None else guid_text(_text(guid)),
            subject=None if subject is None else _text(subject),
            version=stored.optional(found.get("version", more.get("version")), -1),
            references=tuple(
                Reference(_text(one["name"]), _text(one["subject"]), stored.number(one["version"], -1))
                for one in references
            ),
            rules=tuple(_text(one.get("type") or "") for one in rules),
            deleted=bool(found.get("deleted", False)),
            tags=tuple((_text(path), tuple(map(_text, several))) for path, several in tags.items()),
        )


def _text(value: Any) -> str:
    """A text that can be shown. Raises one of ``stored.UNFIT``."""
    if not stored.is_text(stored.text(value)):
        raise ValueError("half of a surrogate pair")
    return str(value)


def closure(written: Written, find: Callable[[Reference], Written | None]) -> Mapping[str, str]:
    """The texts of the schemas that ``written`` refers to, and those do, by the names by which they are called.

    Those that others need come first. Raises ``SchemaError`` for one that is not there, and for too many.
    """
    made: dict[str, str] = {}
    open_: set[str] = set()

    def visit(one: Written) -> Iterator[Iterator[Any]]:
        for reference in one.references:
            if reference.name in made or reference.name in open_:
                continue
            if len(made) + len(open_) >= MOST_REFERENCES:
                raise SchemaError(f"refers to more than {MOST_REFERENCES} schemas", str(written))
            found = find(reference)
            if found is None:
                where = f"{reference.subject} v{reference.version}"
                raise SchemaError(f"refers to {where} ({reference.name}), which no source has", str(written))
            open_.add(reference.name)
            yield visit(found)
            open_.discard(reference.name)
            made[reference.name] = found.text

    # Without recursion: how deep schemas refer to others is decided by who writes them.
    stack: list[Iterator[Any]] = [visit(written)]
    while stack:
        inner = next(stack[-1], None)
        if inner is None:
            stack.pop()
        else:
            stack.append(inner)
    return made


_OF_PROTOBUF: Final = re.compile(
    r"\A(?:\s|//[^\n]*\n|/\*.*?\*/)*(?:syntax|edition|package|import|message|option|enum)\b", re.DOTALL
)
_PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
_OF_JSON: Final = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))
_ONLY_AVRO: Final = frozenset(("record", "error", "enum", "fixed", "map")) | _PRIMITIVES - _OF_JSON


def _is_avro(found: dict[str, Any]) -> bool:
    """Whether an object that may be of Avro or JSON Schema is of Avro: what both have is, if it says little else."""
    type_ = found.get("type")
    if isinstance(type_, list):
        return bool(type_) and not all(isinstance(one, str) and one in _OF_JSON for one in type_)
    if type_ is not None and not isinstance(type_, str):
        return isinstance(type_, dict)
    if type_ in _ONLY_AVRO or "fields" in found or "items" in found:
        return True
    return type_ in _PRIMITIVES and len(found) <= 3 and "properties" not in found


def format_of(text: str) -> str:
    """The format of a schema by its text. Raises ``SchemaError`` for what is a schema of none."""
    if not stored.is_text(text):
        raise SchemaError("a schema has halves of surrogate pairs, which no text has")
    if _OF_PROTOBUF.match(text):
        return PROTOBUF
    try:
        found = stored.parsed(text)
    except ValueError:
        found = text.strip()
    if isinstance(found, str):
        if found in _PRIMITIVES:
            return AVRO
    elif isinstance(found, list):
        return AVRO
    elif isinstance(found, dict):
        return AVRO if "$schema" not in found and _is_avro(found) else JSON
    raise SchemaError("this is no schema of Avro, Protobuf or JSON Schema")
