"""Protobuf and JSON become Arrow as their own libraries read them, and what is damaged is null alone."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import SchemaError
from kwire.values import json as of_json
from kwire.values import protobuf

SHOP = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
import "confluent/meta.proto";
enum Kind { UNKNOWN = 0; NEW = 1; }
message Item { string sku = 1; int32 count = 2; }
message Order {
  map<string, int64> tags = 5;
  message Line { int32 n = 1; message Part { string p = 1; } }
  uint64 id = 1;
  string customer = 2 [(confluent.field_meta).tags = "PII"];
  Kind kind = 3;
  repeated Item items = 4;
  google.protobuf.Timestamp at = 6;
  google.protobuf.StringValue note = 7;
  bytes raw = 8;
  optional int32 maybe = 9;
  oneof pay { string card = 10; Item swap = 11; }
  google.protobuf.Duration took = 12;
  google.protobuf.Struct more = 13;
  Node tree = 14;
  repeated int32 packed = 15;
  uint32 small = 16;
  float ratio = 17;
}
message Node { int32 v = 1; Node next = 2; }
"""


@pytest.fixture(scope="module")
def shop() -> protobuf.Compiled:
    return protobuf.compiled(SHOP, {})


def of(message: protobuf.Message, **fields: Any) -> bytes:
    data: bytes = message._class(**fields).SerializeToString()
    return data


def test_messages_are_found_by_their_numbers_in_both_ways_of_counting(shop: protobuf.Compiled) -> None:
    assert shop.first == "shop.Item"
    assert shop.at((1,)) == ["shop.Order"]
    # The entries of the map are a message to protoc, and stand first.
    assert shop.at((1, 0)) == ["shop.Order.Line", "shop.Order.TagsEntry"]
    assert shop.at((1, 1)) == ["shop.Order.Line"]
    assert shop.at((1, 0, 0)) == ["shop.Order.Line.Part"]
    assert shop.at((9,)) == shop.at(()) == []
    assert shop.has("shop.Order.Line")
    assert not shop.has("shop.Other")


def test_glue_counts_all_messages_by_their_full_names(shop: protobuf.Compiled) -> None:
    names = ["Item", "Node", "Order", "Order.Line", "Order.Line.Part", "Order.TagsEntry"]
    assert shop.by_name == tuple(f"shop.{one}" for one in names)


def test_a_map_may_be_written_as_the_message_that_it_is() -> None:
    # AWS Glue's serializer registers maps so; protoc takes none.
    entry = "message TagsEntry { option map_entry = true; string key = 1; int64 value = 2; }"
    text = f'syntax = "proto3"; package p; message M {{ repeated .p.M.TagsEntry tags = 1; {entry} }}'
    found = protobuf.compiled(text, {}).message("p.M")
    plain = protobuf.compiled('syntax = "proto3"; package p; message M { map<string, int64> tags = 1; }', {})
    assert found.type == plain.message("p.M").type
    values, failures = found.decode(pa.array([of(found, tags={"a": 5})]))
    assert (values.to_pylist(), failures) == ([{"tags": [("a", 5)]}], [])


def test_a_message_becomes_a_struct(shop: protobuf.Compiled) -> None:
    message = shop.message("shop.Order")
    full = message._class(id=2**64 - 1, customer="c", kind=1, raw=b"\xff", maybe=0, small=2**32 - 1, ratio=1.5)
    full.items.add(sku="s", count=2)
    full.items.add()
    full.tags.update({"b": 2, "a": 1})
    full.at.seconds, full.at.nanos = 1_700_000_000, 123_456_789
    full.note.value = ""
    full.swap.sku = "x"
    full.took.seconds = 90
    full.more.update({"k": [1, None]})
    full.tree.v, full.tree.next.v = 1, 2
    full.packed.extend([1, 2])
    values, failures = message.decode(pa.array([full.SerializeToString(), b"", b"\x18\x07"], pa.binary()))
    assert failures == []
    assert values.type == message.type
    first, second, third = values.to_pylist()
    assert first["at"].isoformat() == "2023-11-14T22:13:20.123456+00:00"
    assert first["took"].total_seconds() == 90
    tree = first.pop("tree")
    assert (tree["v"], json.loads(tree["next"])) == (1, {"v": 2})
    assert json.loads(first.pop("more")) == {"k": [1, None]}
    assert {name: one for name, one in first.items() if name not in ("at", "took")} == {
        "tags": [("a", 1), ("b", 2)],
        "id": 2**64 - 1,
        "customer": "c",
        "kind": "NEW",
        "items": [{"sku": "s", "count": 2}, {"sku": "", "count": 0}],
        "note": "",
        "raw": b"\xff",
        "maybe": 0,
        "card": None,
        "swap": {"sku": "x", "count": 0},
        "packed": [1, 2],
        "small": 2**32 - 1,
        "ratio": 1.5,
    }
    nothing = ["at", "note", "maybe", "card", "swap", "took", "more", "tree"]
    assert [name for name, one in second.items() if one is None] == sorted(nothing, key=list(second).index)
    assert third["kind"] == "7"


def test_times_that_no_calendar_has_are_null(shop: protobuf.Compiled) -> None:
    message = shop.message("shop.Order")
    values, _ = message.decode(pa.array([of(message, at={"seconds": 2**62}, took={"seconds": -(2**62)})]))
    assert values.to_pylist()[0]["at"] is None
    assert values.to_pylist()[0]["took"] is None


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"\x42\x05ab", r"\$\.raw at byte 0: a length of 5, 2 bytes left"),
        (b"\x08\x80", r"\$\.id at byte 0: a number that does not end"),
        (b"\x22\x02\x0a\x05", r"\$\.items\.sku at byte 2: a length of 5, 0 bytes left"),
        (b"\x12\x01\xff", r"\$\.customer at byte 0: not UTF-8"),
        (b"\x00", r"\$ at byte 0: no tag"),
        (b"\x0f", r"the wire type 7"),
    ],
)
def test_a_broken_message_is_null_and_says_where(shop: protobuf.Compiled, data: bytes, place: str) -> None:
    message = shop.message("shop.Order")
    good = of(message, customer="c")
    values, failures = message.decode(pa.array([good, data, good], pa.binary()))
    assert [one and one["customer"] for one in values.to_pylist()] == ["c", None, "c"]
    assert [row for row, _ in failures] == [1]
    assert re.search(place, failures[0][1])


def test_fields_that_the_schema_does_not_know_are_counted(shop: protobuf.Compiled) -> None:
    order, item = shop.message("shop.Order"), shop.message("shop.Item")
    data = [of(order, id=1, raw=b"x"), of(order), b"\xff"]
    assert item.unknown(pa.array(data, pa.binary())).tolist() == [2, 0, -1]


def test_proto2_and_groups_are_read() -> None:
    text = """\
syntax = "proto2";
message M {
  required int32 a = 1;
  optional string s = 2 [default = "d"];
  optional group G = 3 { optional int32 g = 4; }
}
"""
    message = protobuf.compiled(text, {}).message("M")
    made = message._class(a=1)
    made.g.g = 5
    values, failures = message.decode(pa.array([made.SerializeToString(), b"\x12\x01\xff"], pa.binary()))
    assert values.to_pylist()[0] == {"a": 1, "s": None, "g": {"g": 5}}
    assert [row for row, _ in failures] in ([], [1])


def test_a_descriptor_does_as_well_as_a_text(shop: protobuf.Compiled) -> None:
    from google.protobuf import descriptor_pb2

    one = base64.b64encode(shop._root.SerializeToString()).decode()
    files = descriptor_pb2.FileDescriptorSet(file=protobuf._files(SHOP, {}))
    several = base64.b64encode(files.SerializeToString()).decode()
    meta = protobuf._KNOWN["confluent/meta.proto"]
    for text in (one, several):
        assert protobuf.compiled(text, {"confluent/meta.proto": meta}).message("shop.Order").type == (
            shop.message("shop.Order").type
        )


@pytest.mark.parametrize(
    ("text", "references"),
    [
        ("syntax = nothing", {}),
        ('import "other.proto";', {}),
        ('import "../../etc/passwd.proto";', {"../../etc/passwd.proto": ""}),
        ('import "/abs.proto";', {"/abs.proto": ""}),
        ("AAAA", {}),
        ('import "a.proto";', {"a.proto": 'import "schema.proto";'}),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(text: str, references: dict[str, str]) -> None:
    with pytest.raises(SchemaError):
        protobuf.compiled(text, references)


def test_a_message_of_too_many_fields_is_refused() -> None:
    lines = ["message M0 { int32 x = 1; }"]
    for n in range(1, 6):
        fields = " ".join(f"M{n - 1} f{k} = {k + 1};" for k in range(20))
        lines.append(f"message M{n} {{ {fields} }}")
    message = protobuf.compiled('syntax = "proto3"; ' + " ".join(lines), {}).message("M5")
    with pytest.raises(SchemaError, match="more than"):
        assert message.type


# --- JSON -------------------------------------------------------------------------------------------------------------

PLACE = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])


def test_json_values_become_a_type_each_by_itself() -> None:
    values = [
        b'{"a": 1, "b": ["x"]}',
        b'{"a": 2, "c": 5}',
        b"{}",
        b'{\n "a":\t3}\n',
        b'{"a": "x"}',
        b'{"a": 1} {"a": 2}',
        b'{"a": 1',
        b'1, "i": 5}',
        b"null",
        b'{"a": 4}',
    ]
    made, failures = of_json.decode(pa.array(values, pa.binary()), PLACE)
    assert [one and one["a"] for one in made.to_pylist()] == [1, 2, None, 3, None, None, None, None, None, 4]
    assert [row for row, _ in failures] == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"{} {}",
        b'{"a": NaN}',
        b'{"a": 1e400}',
        b'{"a": 1, "a": 2}',
        b'"\xff"',
        b"[" * 600 + b"]" * 600,
        b'{"a":' * 5000,
    ],
)
def test_what_is_no_json_says_why(value: bytes) -> None:
    assert of_json.wrong(value)


@pytest.mark.parametrize("value", [b"{}", b"[1.5, 1e3, null]", b'{"a": "\\u00e9 [[["}', b" 5 ", b"1" * 5000])
def test_what_is_json_has_nothing_wrong(value: bytes) -> None:
    assert of_json.wrong(value) is None


def test_a_json_schema_is_a_type() -> None:
    text = json.dumps(
        {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "at": {"type": "string", "format": "date-time"},
                "tags": {"type": "array", "items": {"$ref": "#/definitions/tag"}},
                "maybe": {"oneOf": [{"type": "null"}, {"type": "number"}]},
                "kind": {"enum": ["a", "b"]},
                "other": {"$ref": "other.json#/definitions/x~1y"},
                "several": {"type": ["null", "boolean"]},
            },
            "definitions": {"tag": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }
    )
    others = {"other.json": '{"definitions": {"x/y": {"type": "integer"}}}'}
    tag = pa.struct([("name", pa.string())])
    assert of_json.type_of(text, others) == pa.struct(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("tags", pa.list_(pa.field("element", tag))),
            ("maybe", pa.float64()),
            ("kind", pa.string()),
            ("other", pa.int64()),
            ("several", pa.bool_()),
        ]
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "integer"]},
        {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object"},
        {"$ref": "#"},
        {
            "properties": {"a": {"$ref": "#/definitions/a"}},
            "definitions": {"a": {"items": {"$ref": "#/definitions/a"}}},
        },
        {"type": "array"},
        {},
        True,
        17,
        {"$ref": "#/nothing"},
        {"type": "array", "items": 5},
    ],
)
def test_a_json_schema_that_has_no_type_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        of_json.type_of(json.dumps(schema), {})
