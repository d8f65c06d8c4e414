"""Which versions of a schema read each other's values: each rule with a change that breaks and one that nearly does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kwire.errors import KwireError
from kwire.values import Schemas, compatible
from kwire.values.written import AVRO, JSON, PROTOBUF, Written

NOTHING = Schemas()


def record(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


ID = field("id", "int")


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return field("state", {"type": "enum", "name": "State", "symbols": list(symbols), **more})


OF_AVRO = {
    "a field without a default": (record(ID), record(ID, field("who", "string")), "$.who: the writer does not have"),
    "a field with a default": (record(ID), record(ID, field("who", "string", default="")), None),
    "a field less": (record(ID, field("who", "string")), record(ID), None),
    "a wider number": (record(ID), record(field("id", "long")), None),
    "a narrower number": (record(field("id", "long")), record(ID), "$.id: a long cannot be read as an int"),
    "a symbol less": (record(enum("NEW", "PAID")), record(enum("NEW")), "the reader's enum has no symbol PAID"),
    "a symbol less, a default": (record(enum("NEW", "PAID")), record(enum("NEW", default="NEW")), None),
    "a symbol more": (record(enum("NEW")), record(enum("NEW", "PAID")), None),
    "null no more": (
        record(field("who", ["null", "string"])), record(field("who", "string")), "a null cannot be read as a string"
    ),
    "null as well": (record(field("who", "string")), record(field("who", ["null", "string"])), None),
    "another name, an alias": (record(ID), record(field("number", "int", aliases=["id"])), None),
    "another name": (record(ID), record(field("number", "int")), "$.number: the writer does not have"),
    "another scale": (
        record(field("sum", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})),
        record(field("sum", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3})),
        "a decimal of scale 2",
    ),
}  # fmt: skip


def message(*fields: str, more: str = "", syntax: str = 'syntax = "proto3";', package: str = "shop") -> str:
    return f"{syntax} package {package}; {more} message Order {{ {' '.join(fields)} }}"


PROTO2 = 'syntax = "proto2";'
OF_PROTOBUF = {
    "a field more": (message("int32 id = 1;"), message("int32 id = 1; string who = 2;"), None),
    "a field less": (message("int32 id = 1; string who = 2;"), message("int32 id = 1;"), None),
    "another varint": (message("int32 id = 1;"), message("uint64 id = 1;"), None),
    "a zigzag varint": (message("int32 id = 1;"), message("sint32 id = 1;"), "int32 cannot be read as sint32"),
    "text as bytes": (message("string who = 1;"), message("bytes who = 1;"), None),
    "text as a number": (message("string who = 1;"), message("int32 who = 1;"), "string cannot be read as int32"),
    "another package": (message("int32 id = 1;"), message("int32 id = 1;", package="store"), None),
    "a message less": (
        message("int32 id = 1;", more="message Line { int32 n = 1; }"), message("int32 id = 1;"), "no such message"
    ),
    "a number becomes repeated": (
        message("int32 id = 1;"), message("repeated int32 id = 1;"), "single in one and repeated"
    ),
    "required": (
        message("optional int32 id = 1;", syntax=PROTO2), message("required int32 id = 1;", syntax=PROTO2),
        "may not be there",
    ),
    "required in both": (
        message("required int32 id = 1;", syntax=PROTO2), message("required int64 id = 1;", syntax=PROTO2), None
    ),
    "a field becomes a oneof": (
        message("int32 id = 1; string who = 2;"), message("int32 id = 1; oneof of { string who = 2; }"), None
    ),
    "two fields become a oneof": (
        message("int32 id = 1; string who = 2;"), message("oneof of { int32 id = 1; string who = 2; }"),
        "may all be there",
    ),
    "a oneof of less": (
        message("oneof of { int32 id = 1; string who = 2; }"), message("oneof of { int32 id = 1; }"),
        "not there any more",
    ),
    "another value of a map": (
        message("map<string, int32> of = 1;"), message("map<string, string> of = 1;"), "int32 cannot be read as string"
    ),
    "no map": (message("map<string, int32> of = 1; int32 id = 2;"), message("int32 id = 2;"), None),
}  # fmt: skip


def object_(closed: bool = True, **more: Any) -> str:
    members = {"id": {"type": "integer"}} | more.pop("properties", {})
    made = {"type": "object", "properties": members, **more}
    return json.dumps(made | ({"additionalProperties": False} if closed else {}))


OF_JSON = {
    "a member more, closed": (object_(), object_(properties={"who": {"type": "string"}}), None),
    "a member more, open": (object_(False), object_(False, properties={"who": {"type": "string"}}), "$.who"),
    "any member more, open": (object_(False), object_(False, properties={"who": True}), None),
    "a member less, closed": (object_(properties={"who": {"type": "string"}}), object_(), "no member of this name"),
    "a member less, open": (object_(False, properties={"who": {"type": "string"}}), object_(False), None),
    "closed": (object_(False), object_(), "no members of other names"),
    "required": (object_(), object_(required=["id"]), "$.id: it is required"),
    "required with a default": (
        object_(properties={"id": {"type": "integer", "default": 0}}),
        object_(properties={"id": {"type": "integer", "default": 0}}, required=["id"]), None,
    ),
    "a wider type": (object_(), object_(properties={"id": {"type": "number"}}), None),
    "a narrower type": (object_(properties={"id": {"type": "number"}}), object_(), "number is no type"),
    "one type of two": (object_(properties={"id": {"type": ["integer", "null"]}}), object_(), "null is no type"),
    "a value less": (
        object_(properties={"of": {"enum": ["a", "b"]}}), object_(properties={"of": {"enum": ["a"]}}), "value 'b'"
    ),
    "a value more": (
        object_(properties={"of": {"enum": ["a"]}}), object_(properties={"of": {"enum": ["a", "b"]}}), None
    ),
    "a higher least": (object_(), object_(properties={"id": {"type": "integer", "minimum": 1}}), "minimum is 1"),
    "a lower least": (
        object_(properties={"id": {"type": "integer", "minimum": 1}}),
        object_(properties={"id": {"type": "integer", "minimum": 0}}), None,
    ),
    "items": (
        json.dumps({"type": "array", "items": {"type": "string"}}),
        json.dumps({"type": "array", "items": {"type": "integer"}}), "$[]: string is no type",
    ),
    "a reference": (
        json.dumps({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}),
        json.dumps({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}}), "string is no type",
    ),
}  # fmt: skip
CASES = [
    pytest.param(format_, *case, id=f"{format_}: {name}")
    for format_, cases in ((AVRO, OF_AVRO), (PROTOBUF, OF_PROTOBUF), (JSON, OF_JSON))
    for name, case in cases.items()
]


@pytest.mark.parametrize(("format_", "earlier", "later", "said"), CASES)
def test_a_change_that_breaks_readers_is_told_from_one_that_does_not(
    format_: str, earlier: str, later: str, said: str | None
) -> None:
    found = compatible.reads(Written(format_, later), Written(format_, earlier), NOTHING)
    assert not found.undecided
    if said is None:
        assert not found.breaks
    else:
        assert said in str(found.breaks[0])


UNDECIDED = {
    "another keyword": (JSON, object_(), object_(properties={"id": {"oneOf": [{"type": "integer"}]}})),
    "a tuple": (JSON, '{"items": [{"type": "string"}]}', '{"items": [{"type": "integer"}]}'),
    "text becomes repeated": (PROTOBUF, message("string who = 1;"), message("repeated string who = 1;")),
    "no schema": (AVRO, record(ID), "{"),
    "a type inside itself": (
        AVRO,
        record(ID, field("next", ["null", "Order"])),
        record(field("id", "long"), field("next", ["null", "Order"])),
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_no_rule_decides_is_said_to_be_so(name: str) -> None:
    format_, earlier, later = UNDECIDED[name]
    found = compatible.reads(Written(format_, later), Written(format_, earlier), NOTHING)
    assert found.undecided
    assert not found.breaks


def test_another_format_breaks() -> None:
    found = compatible.reads(Written(JSON, "{}"), Written(AVRO, '"int"'), NOTHING)
    assert str(found.breaks[0]) == "$: Avro cannot be read as Json"


def versions(*texts: str) -> list[Written]:
    return [Written(AVRO, text, subject="orders-value", version=at) for at, text in enumerate(texts, 1)]


WITH, WITHOUT = record(ID, field("who", "string")), record(ID)
LEVELS: dict[str, list[tuple[int, int]]] = {
    "NONE": [],
    # The reader, and the writer whose values it cannot read.
    "BACKWARD": [(3, 2)],
    "BACKWARD_TRANSITIVE": [(3, 2)],
    "FORWARD": [(1, 2)],
    "FORWARD_TRANSITIVE": [(1, 2)],
    "FULL": [(1, 2), (3, 2)],
    "FULL_TRANSITIVE": [(1, 2), (3, 2)],
}


@pytest.mark.parametrize("level", compatible.LEVELS)
def test_a_level_says_which_versions_are_compared(level: str) -> None:
    found = compatible.check(versions(WITH, WITHOUT, WITH), NOTHING, level)
    assert [(one.reader.version, one.writer.version) for one in found] == LEVELS[level]


def test_transitive_levels_compare_all_versions() -> None:
    several = versions(record(ID), record(ID, field("who", "string", default="")), WITH)
    assert not compatible.check(several, NOTHING, "BACKWARD")
    (found,) = compatible.check(several, NOTHING, "BACKWARD_TRANSITIVE")
    assert str(found).startswith("orders-value v3 cannot read values of orders-value v1: $.who: the writer does not")


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(KwireError, match="BACKWARD_TRANSITIVE"):
        compatible.check([], NOTHING, "BOTH")


def test_references_that_multiply_are_compared_once_each() -> None:
    def doubled(type_: str) -> str:
        names = {f"d{k}": {"properties": {one: {"$ref": f"#/$defs/d{k + 1}"} for one in "ab"}} for k in range(40)}
        return json.dumps({"$ref": "#/$defs/d0", "$defs": names | {"d40": {"type": type_}}})

    found = compatible.reads(Written(JSON, doubled("string")), Written(JSON, doubled("integer")), NOTHING)
    assert len(found.breaks) == 1


def test_a_reference_to_itself_ends() -> None:
    itself = json.dumps({"$ref": "#"})
    found = compatible.reads(Written(JSON, itself), Written(JSON, itself + " "), NOTHING)
    assert found.undecided


@pytest.mark.parametrize(("count", "named"), [(99, 99), (100, 100), (150, 100)])
def test_a_hundred_breaks_of_a_pair_are_named(count: int, named: int) -> None:
    reader, writer = (
        object_(properties={f"f{n}": {"type": one} for n in range(count)}) for one in ("integer", "string")
    )
    found = compatible.reads(Written(JSON, reader), Written(JSON, writer), NOTHING)
    assert (len(found.breaks), found.undecided) == (named, ())
