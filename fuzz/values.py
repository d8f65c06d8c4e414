# Invariant: any text or descriptor as a schema gives a type or a KwireError; any bytes as values of any schema give one
# row for each value, valid to Arrow and the same beside others as by itself; no value raises. MessagePack and CBOR are
# JSON, or refused; a JSON Schema takes no more steps than it has, and says that a value holds or where it does not.
"""Values of records: what frames them, Avro, Protobuf and JSON with good and hostile schemas, MessagePack and CBOR."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any

import cbor2
import fastavro
import msgpack
import pyarrow as pa

from fuzz import cut, joined
from kwire import values
from kwire.errors import KwireError, SchemaError
from kwire.limits import Limits
from kwire.values import avro, binary, protobuf, validity
from kwire.values import json as of_json
from kwire.values.catalog import Catalog
from kwire.values.decoding import Reader
from kwire.values.framing import KEY, VALUE
from kwire.values.sources import Schemas
from kwire.values.written import AVRO, BARE, FORMATS, JSON, PROTOBUF, Written, format_of
from tests.support.avro_pairs import Pairs

LIMITS = Limits(decompressed=1 << 20, total=4 << 20)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
DRAWN = 64
"""Schemas that are drawn, each by the seed that an input has."""
_COLUMN, _DRAWN, _AVRO, _PROTOBUF, _JSON, _BARE, _VALID = range(7)

RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"]}],
}
OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}


def descriptor() -> bytes:
    """A file of Protobuf with a message of several kinds of fields."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="p", syntax="proto3")
    message = file.message_type.add(name="M")
    kind = descriptor_pb2.FieldDescriptorProto
    for number, (type_, label) in enumerate(
        [(kind.TYPE_INT64, 1), (kind.TYPE_STRING, 1), (kind.TYPE_SINT32, 3), (kind.TYPE_BYTES, 1), (kind.TYPE_BOOL, 1)]
    ):
        message.field.add(name=f"f{number}", number=number + 1, type=type_, label=label)
    message.field.add(name="m", number=9, type=kind.TYPE_MESSAGE, label=1, type_name=".p.M")
    made: bytes = file.SerializeToString()
    return made


@cache
def _schemas() -> Schemas:
    found = [
        Written(AVRO, json.dumps(RECORD), id=1, subject="avro-value", version=1),
        Written(PROTOBUF, base64.b64encode(descriptor()).decode(), id=2, subject="proto-value", version=1),
        Written(JSON, json.dumps(OBJECT), id=3, subject="json-value", version=1),
        Written(AVRO, '"string"', id=4, guid="00000000-0000-0000-0000-000000000001", subject="avro-key", version=1),
    ]
    return Schemas([Catalog(found)])


@cache
def _readers() -> tuple[Reader | None, ...]:
    return (None, *(Reader.of(one, _schemas()) for one in _schemas().sources[0]))  # type: ignore[attr-defined]


TOPICS = ("avro", "proto", "json", "other")


@cache
def _drawn(seed: int) -> tuple[Any, avro.Schema]:
    made = Pairs(random.Random(seed)).schema()
    return made, avro.parse(json.dumps(made))


def seeds() -> Iterator[bytes]:
    """Values with all framings, values of drawn schemas, and schemas of each format with values."""
    plain = _avro_value(RECORD, {"a": 5, "b": "text"})
    framed = [b"\0" + struct.pack(">i", 1) + plain, b"\0" + struct.pack(">i", 2) + b"\0\x08\x05\x12\x01x", plain]
    framed += [b"\0" + struct.pack(">i", 3) + b'{"a": 1, "b": "x"}', b"\0" + struct.pack(">q", 1) + plain]
    framed += [b"\x01" + bytes(15) + b"\x01" + b"\x06abc", b"\x03\0" + bytes(16) + plain]
    framed += [b"\xc3\x01" + struct.pack("<Q", avro.parse(json.dumps(RECORD)).fingerprint & ((1 << 64) - 1)) + plain]
    for number in range(len(TOPICS)):
        for reader in range(5):
            yield bytes([_COLUMN, number * 8 + reader]) + joined([b"", *framed, b'{"a": [1]}'])
    for name, content in (("__value_schema_id", b"\0\0\0\0\x01"), ("apicurio.value.globalId", struct.pack(">q", 1))):
        yield bytes([_COLUMN, 64]) + joined([name.encode() + b"\0" + content, plain])
    for seed in range(DRAWN):
        schema, _ = _drawn(seed)
        pairs = Pairs(random.Random(seed + 1000))
        yield bytes([_DRAWN, seed]) + joined([_avro_value(schema, pairs.value(schema)) for _ in range(3)])
        yield bytes([_AVRO, seed & 1]) + joined([json.dumps(schema).encode(), _avro_value(schema, pairs.value(schema))])
    for number, dumps in enumerate((msgpack.packb, cbor2.dumps)):
        several = [{"a": 1, "b": [1.5, None, b"x", "é"]}, [2**63, -5, {3: True}], {"t": {"u": ["v"] * 20}}]
        yield bytes([_BARE, number]) + joined([dumps(one) for one in several])
    yield bytes([_BARE, 0]) + joined([msgpack.packb(msgpack.Timestamp(5, 5)), msgpack.packb(msgpack.ExtType(1, b"x"))])
    for tag, one in ((1, 1.5), (2, b"\1\2"), (4, [-2, 150]), (37, bytes(16)), (35, "a+"), (55799, 1), (5000, [1])):
        yield bytes([_BARE, 1]) + joined([cbor2.dumps(cbor2.CBORTag(tag, one))])
    tree = {"$id": "t", "anyOf": [{"type": "string", "pattern": "^(a|b)*$"}, {"items": {"$ref": "#"}}], "maxItems": 3}
    closed = {**OBJECT, "required": ["a"], "additionalProperties": False, "$defs": {"x": {"$anchor": "y", "not": {}}}}
    for schema in (OBJECT, tree, closed, {"allOf": [{"$ref": "#/definitions/a"}] * 2, "definitions": {"a": tree}}):
        yield bytes([_VALID, 0]) + joined(
            [json.dumps(schema).encode(), b'{"a": 1}', b'[["ab"], []]', b'{"b": 5}', b"{"]
        )
    yield bytes([_PROTOBUF, 0]) + joined([descriptor(), b"\x08\x05\x12\x01x\x1a\x02\x01\x02", b"\x4a\x02\x08\x01"])
    for one in (OBJECT, {"type": "array", "items": {"$ref": "#/definitions/x"}, "definitions": {"x": OBJECT}}):
        yield bytes([_JSON, 0]) + joined([json.dumps(one).encode(), b'{"a": 1}', b"[1, 2]", b'"x"'])


def _avro_value(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def words() -> Iterator[bytes]:
    """Words of schemas, and varints at the edges."""
    for one in (*avro_words(), "oneOf", "$ref", "properties", "items", "type", "#/definitions/", "format", "date-time"):
        yield f'"{one}"'.encode()
    yield from (b"\x80\x00", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"__value_schema_id\0", b"content-type\0")
    yield from (b'"$ref": "#"', b'"allOf":', b'"anyOf": [', b'"not":', b'"pattern": "', b"\xc4\x82", b"\xd9\xd9\xf7")
    yield from (b"\xdd\xff\xff\xff\xff", b"\xbf", b"\x9f", b"\xff", b"\xd7\xff", b"\xf9\x7e\x00")
    yield from (b"avro/binary+", b"NaN", b"1e999", b"\\ud800", b"null", b"\0\0\0\0\x01", b"\0\0\0\0\x02\0")


def avro_words() -> tuple[str, ...]:
    """Names that Avro gives a meaning."""
    kinds = ("null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "enum", "array", "map")
    more = ("fixed", "fields", "symbols", "values", "size", "name", "namespace", "aliases", "default", "logicalType")
    return (*kinds, *more, "decimal", "precision", "scale", "uuid", "date", "timestamp-millis", "duration")


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    if len(data) < 2:
        return
    kind, how, parts = data[0] % 7, data[1], cut(data[2:], 12)
    if kind == _COLUMN:
        _column(how, parts)
    elif kind == _DRAWN:
        _, schema = _drawn(how % DRAWN)
        _of_avro([schema], parts)
    elif kind == _AVRO:
        _hostile_avro(how, parts)
    elif kind == _PROTOBUF:
        _hostile(Written(PROTOBUF, base64.b64encode(parts[0]).decode()) if parts else None, parts[1:])
        protobuf._compiled.cache_clear()
    elif kind == _BARE:
        _bare(BARE[how & 1], parts)
    elif kind == _VALID and parts:
        _valid(parts[0], parts[1:])
    elif parts:
        _hostile(Written(JSON, parts[0].decode("utf-8", "replace")), parts[1:])


def _bare(name: str, some: list[bytes]) -> None:
    """Values of a format without a schema: what is one is JSON, and of no more than 20 times its size."""
    made = values.decode(pa.array(some, pa.binary()), name, limits=LIMITS)
    _same(made, [values.decode(pa.array([one], pa.binary()), name, limits=LIMITS) for one in some], len(some))
    for data, text in zip(some, made.values.to_pylist(), strict=True):
        try:
            assert text == binary.json_text(data, name)
        except ValueError:
            # What is no such value may be JSON.
            assert text is None or text.encode() == data
            continue
        assert of_json.wrong(text.encode()) is None
        assert len(text.encode()) <= 20 * len(data)


def _valid(text: bytes, some: list[bytes]) -> None:
    """A hostile JSON Schema, and values that are held to it: each verdict is that of the value alone."""
    written = Written(JSON, text.decode("utf-8", "replace"))
    schemas = Schemas(topics={("t", VALUE): written}).validated()
    made = values.decode(pa.array(some, pa.binary()), schemas, topics="t", limits=LIMITS)
    alone = [values.decode(pa.array([one], pa.binary()), schemas, topics="t", limits=LIMITS) for one in some]
    if "too_large" not in made.status.to_pylist():  # they share a budget
        _same(made, alone, len(some))
    plain = values.decode(pa.array(some, pa.binary()), Schemas(topics={("t", VALUE): written}), topics="t")
    for one, other in zip(made.status.to_pylist(), plain.status.to_pylist(), strict=True):
        assert (one == "ok") <= (other == "ok"), (one, other)
    validity._of.cache_clear()


def _same(made: Any, alone: list[Any], rows: int) -> None:
    for name, column in made._asdict().items():
        column.validate(full=True)
        assert len(column) == rows, name
        # Numbers that are none are not equal to themselves.
        expected = [getattr(one, name).to_pylist()[0] for one in alone]
        assert repr(column.to_pylist()) == repr(expected), f"{name}: {column.to_pylist()} and {expected}"


def _column(how: int, parts: list[bytes]) -> None:
    """Values of a topic. The first part has headers: name, zero, content."""
    name, _, content = (parts[0] if parts else b"").partition(b"\0")
    heads = [(name.decode("utf-8", "replace"), content)] if content else []
    some = parts[1:]
    topic, reader = TOPICS[how // 8 % len(TOPICS)], _readers()[how % 8 % len(_readers())]
    options = {"topics": topic, "part": KEY if how & 128 else VALUE, "reader": reader, "limits": LIMITS}

    def decoded(which: list[bytes]) -> Any:
        headers = pa.array([[{"key": key, "value": value} for key, value in heads]] * len(which), HEADERS)
        return values.decode(pa.array(which, pa.binary()), _schemas(), headers=headers, **options)

    _same(decoded(some), [decoded([one]) for one in some], len(some))


def _of_avro(writers: list[avro.Schema], some: list[bytes]) -> None:
    try:
        found = [avro.decode(pa.array(some, pa.binary()), writers, limits=LIMITS, recursive="json")]
        alone = [avro.decode(pa.array([one], pa.binary()), writers, limits=LIMITS, recursive="json") for one in some]
    except KwireError:
        return
    _same(found[0], alone, len(some))


def _hostile_avro(how: int, parts: list[bytes]) -> None:
    if not parts:
        return
    text = parts[0].decode("utf-8", "replace")
    with contextlib.suppress(SchemaError):
        assert format_of(text) in FORMATS
    try:
        schema = avro.parse(text)
    except KwireError:
        return
    assert avro.parse(schema.canonical).canonical == schema.canonical
    _of_avro([schema], parts[1:])
    if how & 1:
        _hostile(Written(AVRO, text), parts[1:])


def _hostile(written: Written | None, some: list[bytes]) -> None:
    """A schema as that of a topic: its values are decoded as text and as its type."""
    if written is None:
        return
    schemas = Schemas(topics={("t", VALUE): written})
    try:
        reader: Reader | None = Reader.of(written, schemas)
    except KwireError:
        reader = None
    if written.format == JSON and reader is not None:
        assert isinstance(of_json.type_of(written.text, {}), pa.DataType)
    for one in (None, reader):
        array = pa.array(some, pa.binary())
        made = values.decode(array, schemas, topics="t", reader=one, limits=LIMITS)
        for column in made:
            column.validate(full=True)
            assert len(column) == len(some)
