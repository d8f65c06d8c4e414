# Invariant: any text as a schema, and as a definition of Kafka, gives messages or a SchemaError; messages are written
# as text that reads as the same messages; each version that they have has a codec whose default value comes back.
"""Schema text, and Kafka's JSON definitions."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterator

from fuzz import GOLDEN
from kwire import schema
from kwire.codec import registry
from kwire.errors import EncodeError, SchemaError
from kwire.schema import model
from kwire.schema.format import to_text
from kwire.schema.kafka import read_definition

DEFINITIONS = GOLDEN.parent / "unit" / "schema" / "data"
MOST_VERSIONS = 3
"""Versions of a message whose codecs are made."""


def seeds() -> Iterator[bytes]:
    """Schema files, message by message, and definitions."""
    for _, text in schema.texts():
        found = schema.parse(text.decode())
        for message in found:
            made = to_text([message]).encode()
            if len(made) <= 3000:
                yield b"\0" + made
    for message in map(schema.message, schema.names()):
        made = json.dumps(_definition(message)).encode()
        if len(made) <= 3000:
            yield b"\1" + made


def _definition(message: model.Message) -> dict[str, object]:
    """A definition such as Kafka's, of the fields that have a plain type."""
    fields = [
        {"name": one.name.title().replace("_", ""), "type": one.type.name, "versions": f"{one.versions}"}
        for one in message.fields
        if isinstance(one.type, model.Primitive) and one.type.name not in ("records", "uuid", "float64")
    ]
    kind = message.kind if message.kind != "header" else "data"
    made: dict[str, object] = {"type": kind, "name": message.name, "validVersions": f"{message.versions}"}
    if message.api_key is not None:
        made["apiKey"] = message.api_key
    return made | {"flexibleVersions": f"{message.flexible}", "fields": fields}


def words() -> Iterator[bytes]:
    """Words of both languages."""
    yield from (one.encode() for one in (*sorted(model.PRIMITIVES), "request", "response", "header", "data"))
    for one in (
        "key",
        "versions",
        "flexible",
        "kafka4",
        "tag",
        "secret",
        "null",
        "= null",
        "0+",
        "none",
        "\n  ",
        "[",
        "]?",
    ):
        yield one.encode()
    for one in (
        "apiKey", "type", "name", "validVersions", "flexibleVersions", "fields", "versions", "nullableVersions", "tag",
        "taggedVersions", "default", "mapKey", "entityType", "ignorable", "commonStructs", "about", "[]", "//", "null",
    ):  # fmt: skip
        yield f'"{one}"'.encode()


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if not data:
        return
    text = data[1:].decode("utf-8", "replace")
    try:
        found = [read_definition(text)] if data[0] & 1 else schema.parse(text)
    except SchemaError:
        return
    found = [one for one in found if one.versions]
    again = to_text(found)
    assert to_text(schema.parse(again)) == again
    sources = dict(linecache.cache)
    for message in found:
        try:
            for version in [*message.versions][:MOST_VERSIONS]:
                _codec(message, version)
        finally:
            _forget(message)
    linecache.cache.clear()
    linecache.cache.update(sources)


def _forget(message: model.Message) -> None:
    """Of schemas, a process has a few, and keeps what is made of them. Here it would have millions."""
    for key in [key for key in registry._CODECS if key[0] == id(message)]:
        del registry._CODECS[key]
    registry._CLASSES.pop(id(message), None)


def _codec(message: model.Message, version: int) -> None:
    codec = registry.codec(message, version)
    made = registry.message_class(message)()
    try:
        written = codec.encode(made)
    except EncodeError:
        # A default may be one that a version cannot hold.
        return
    assert codec.decode(written) == made
