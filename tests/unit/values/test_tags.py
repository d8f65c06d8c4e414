"""Fields that a registry has tagged are masked, in all formats, and more of them rather than fewer."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from kwire.values import Mask, Reader, Schemas, Written, decode

EMAIL = {"name": "email", "type": "string", "confluent:tags": ["PII", "GDPR"]}
NAME = {"name": "name", "type": "string"}
PERSON = {"type": "record", "name": "Person", "fields": [NAME, EMAIL]}
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "who", "type": PERSON}, NAME]}
VALUE = b"\x02a\x02b\x02c"
PROTO = """\
syntax = "proto3"; import "confluent/meta.proto";
message Order { Person who = 1; string name = 2; }
message Person { string name = 1; string email = 2 [(confluent.field_meta).tags = "PII"]; }
"""
OF_JSON = {
    "type": "object",
    "properties": {
        "who": {"$ref": "#/$defs/person"},
        "name": {"type": "string"},
    },
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "email": {"type": "string", "confluent:tags": ["PII"]}},
        }
    },
}


def plain(schema: Any) -> str:
    return json.dumps(schema).replace(', "confluent:tags": ["PII", "GDPR"]', "")


def tagged(pattern: str) -> Written:
    found = {"schema": plain(ORDER), "metadata": {"tags": {pattern: ["PII"]}}}
    return Written.of(found, subject="orders-value")


JSON_VALUE = b'{"who":{"name":"a","email":"b"},"name":"c"}'
CASES = {
    "avro": (Written("avro", json.dumps(ORDER)), VALUE),
    "protobuf": (Written("protobuf", PROTO), b"\x0a\x06\x0a\x01a\x12\x01b\x12\x01c"),
    "json": (Written("json", json.dumps(OF_JSON)), JSON_VALUE),
    **{f"metadata {one}": (tagged(one), VALUE) for one in ("**.email", "who.email", "shop.Person.email", "who.*mail")},
}


def said(written: Written, value: bytes, mask: Mask, **more: Any) -> Any:
    made = decode(pa.array([value], pa.binary()), Schemas.of({"t": written}), topics="t", mask=mask, **more)
    assert made.status.to_pylist() == ["ok"], made.error
    return made.values[0].as_py()


@pytest.mark.parametrize("name", CASES)
def test_a_field_with_a_tag_is_masked(name: str) -> None:
    written, value = CASES[name]
    assert json.loads(said(written, value, Mask("tag:PII"))) == {"who": {"name": "a", "email": None}, "name": "c"}
    assert json.loads(said(written, value, Mask("tag:other")))["who"] == {"name": "a", "email": "b"}
    reader = Reader.of(written, Schemas())
    assert said(written, value, Mask(["tag:p*"]), reader=reader)["who"]["email"] is None


def test_tags_and_names_go_together() -> None:
    written, value = CASES["avro"]
    made = json.loads(said(written, value, Mask(["tag:gdpr", "who.name"], "size")))
    assert made == {"who": {"name": '{"redacted": 1}', "email": '{"redacted": 1}'}, "name": "c"}


def test_a_tag_inside_a_type_that_has_itself_inside_is_masked() -> None:
    node = {"type": "record", "name": "Node", "fields": [EMAIL, {"name": "next", "type": ["null", "Node"]}]}
    value = b"\x02a\x02\x02b\x02\x02c\x00"
    for mask in (Mask("tag:PII"), Mask("email")):
        made = json.loads(said(Written("avro", json.dumps(node)), value, mask))
        assert made == {"email": None, "next": {"email": None, "next": {"email": None, "next": None}}}
    # The same where it is a text inside of a struct.
    around = {"type": "record", "name": "Around", "fields": [{"name": "node", "type": node}]}
    typed = Reader.of(Written("avro", json.dumps(around)), Schemas())
    made = said(typed.written, value, Mask("tag:PII"), reader=typed)
    assert json.loads(made["node"])["next"]["next"] == {"email": None, "next": None}


def test_schemas_that_hide_their_tags_deep_are_refused() -> None:
    type_: Any = EMAIL["type"]
    for k in range(70):
        type_ = {"type": "record", "name": f"R{k}", "fields": [{"name": "f", "type": type_, "confluent:tags": ["X"]}]}
    written = Written("avro", json.dumps(type_))
    made = decode(pa.array([b"\x02a"]), Schemas.of({"t": written}), topics="t", mask=Mask("tag:PII"))
    assert made.status.to_pylist() == ["unsupported"]
    assert made.values.to_pylist() == [None]
