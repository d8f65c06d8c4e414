"""Kafka's own JSON definitions: reading them, and holding them against the schemas."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from counted_work import lines

from kwire import schema
from kwire.errors import SchemaError
from kwire.schema import kafka
from kwire.schema.format import message_to_text

DEFINITION = """\
// A license, with "quotes" and // slashes.
{
  "apiKey": 900, "type": "request", "listeners": ["broker"],
  /***** a block,
         over two lines *****/
  "name": "InventedRequest", // at the end
  "validVersions": "1-5",
  "deprecatedVersions": "1",
  "flexibleVersions": "0+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "default": "http://x", "about": "has // slashes" },
    { "name": "isKRaftController", "type": "bool", "versions": "2+", "default": "true" },
    { "name": "TopicId", "type": "uuid", "versions": "0+", "ignorable": true },
    { "name": "Gone", "type": "int8", "versions": "0" },
    { "name": "Limit", "type": "int64", "versions": "0+", "default": "0x7fffffffffffffff" },
    { "name": "Maybe", "type": "string", "versions": "0+", "nullableVersions": "3+", "default": "" },
    { "name": "Extra", "type": "[]Thing", "taggedVersions": "2+", "tag": "0" },
    { "name": "Things", "type": "[]Thing", "versions": "3+", "nullableVersions": "3+", "default": "null", "fields": [
      { "name": "Name", "type": "string", "versions": "2+", "mapKey": true, "entityType": "topicName" },
      { "name": "Other", "type": "Shared", "versions": "4+", "nullableVersions": "4+" }
    ]}
  ],
  "commonStructs": [
    { "name": "Shared", "versions": "0+", "fields": [
      { "name": "Data", "type": "bytes", "versions": "0+", "zeroCopy": true, "flexibleVersions": "none" }
    ]}
  ]
}
"""

IN_OUR_FORMAT = """\
request Invented key 900 versions 1-5 flexible 1+
  url                   string = "http://x"
  is_k_raft_controller  bool = true                  2+  as isKRaftController
  topic_id              uuid                             ignorable
  limit                 int64 = 9223372036854775807
  maybe                 string?3+
  extra                 [Thing]                      2+  tag 0
    name                string
    other               Shared?                      4+
      data              string                           plain
  things                [Thing]? = null              3+
"""


def changed(**changes: Any) -> dict[str, Any]:
    values = {"type": "data", "name": "D", "validVersions": "0-2", "flexibleVersions": "none", "fields": []}
    return {**values, **changes}


def one_field(**field: Any) -> dict[str, Any]:
    return changed(fields=[{"name": "A", "versions": "0+", "type": "int8", **field}])


def test_a_definition_becomes_a_message_in_our_format():
    # Only a string can be plain, so the definition's bytes field is written as one here.
    message = kafka.read_definition(DEFINITION.replace('"Data", "type": "bytes"', '"Data", "type": "string"'))
    assert message_to_text(message) == IN_OUR_FORMAT
    assert schema.parse(IN_OUR_FORMAT) == [message]


def test_what_a_definition_becomes_does_not_differ_from_it():
    message = kafka.read_definition(DEFINITION.replace('"Data", "type": "bytes"', '"Data", "type": "string"'))
    (ours,) = schema.parse(IN_OUR_FORMAT)
    assert kafka.compare(message, ours) == []


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([], "no JSON object"),
        (changed(type="table"), "unknown type 'table'"),
        (changed(name=None), "name is missing"),
        (changed(validVersions="x"), "'x' is not a range"),
        (changed(surprise=1), "does not know: 'surprise'"),
        (changed(fields={}), "fields is not a list"),
        (changed(fields=[1]), "a field is not an object"),
        (one_field(surprise=1), "does not know: 'surprise'"),
        (one_field(type="Missing"), "unknown type 'Missing'"),
        (one_field(default="x"), "'x' is no default"),
        (one_field(type="bool", default="maybe"), "'maybe' is no default"),
        (one_field(tag="x", taggedVersions="0+"), "tag 'x' is not a number"),
        (one_field(type="string", flexibleVersions="1+"), "can only be none"),
        (one_field(type="S", fields=[{"name": "B", "versions": "0+", "type": "S"}]), "contains itself"),
        (one_field(default="999"), "999 does not fit int8"),
    ],
)
def test_a_definition_that_is_not_understood_is_a_schema_error(values: Any, what: str):
    with pytest.raises(SchemaError) as caught:
        kafka.read_definition(json.dumps(values), "X.json")
    assert what in caught.value.message
    assert caught.value.file == "X.json"


def test_text_that_is_not_json_is_a_schema_error():
    with pytest.raises(SchemaError, match="not JSON"):
        kafka.read_definition("{,}")


OURS = """\
request Invented key 900 versions 0-3 flexible 2+
  name     string
  ids      [int32]
  things   [Thing]
    x      int8
    y      int8      1+  ignorable
  old      int8      0
  extra    int64     2+  tag 0
"""


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (OURS, []),
        (OURS.replace("0-3", "2-3").replace("  old      int8      0\n", ""), []),
        (OURS.replace("0-3", "0-4"), ["v4 $: version not in schemas/"]),
        (OURS.replace("900", "901"), ["v0-3 $: key 901, ours 900"]),
        (OURS.replace("name     string", "name     string?1+"), ["v1-3 $.name: nullable, ours not nullable"]),
        (OURS.replace("[int32]", "[int64]"), ["v0-3 $.ids[]: int64, ours int32"]),
        (OURS.replace("ids      [int32]", "ids      int32"), ["v0-3 $.ids: int32, ours [int32]"]),
        (OURS.replace("x      int8", "z      int8"), ["$.things[].z: not among", "$.things[].x: only among"]),
        (OURS.replace("tag 0", "tag 1"), ["v2-3 $.extra: tag 1, ours 0"]),
        (OURS.replace("  tag 0", ""), ["$.extra: not among our fields", "$.extra: only among our tagged fields"]),
        (OURS.replace("flexible 2+", "flexible 1+"), ["v1 $: flexible, ours not flexible"]),
        (OURS.replace("  ignorable", ""), ["$.things[].y: not ignorable, ours ignorable"]),
        (OURS.replace("name     string", "name     string  as nAME"), ["$.name: spelt nAME, ours in CamelCase"]),
        (OURS.replace("ids      [int32]", 'name2     string = "a"').replace("name2", "ids"), ["$.ids: string, ours"]),
        (OURS.replace("x      int8", "x      int8 = 1"), ["$.things[].x: default 1, ours 0"]),
        (
            OURS.replace("  name     string\n  ids      [int32]\n", "  ids      [int32]\n  name     string\n"),
            ["v0-3 $: fields in another order"],
        ),
    ],
)
def test_differences_say_where_in_which_versions_and_what(theirs: str, found: list[str]):
    (one,), (two,) = schema.parse(theirs), schema.parse(OURS)
    differences = [str(difference) for difference in kafka.compare(one, two)]
    for expected in found:
        assert any(expected in difference for difference in differences), differences
    assert bool(differences) == bool(found)


def test_a_message_that_is_not_in_the_schemas_is_one_difference():
    (one,) = schema.parse(OURS)
    (difference,) = kafka.compare(one, None)
    assert str(difference) == "InventedRequest v0-3 $: not in schemas/"


def test_definitions_come_out_of_files_folders_and_jars(tmp_path: Path):
    text = json.dumps(changed(name="InAFile"))
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "a.json").write_text(text)
    (tmp_path / "b.json").write_text('{"something": "else"}')
    with zipfile.ZipFile(tmp_path / "some.jar", "w") as jar:
        jar.writestr("common/message/X.json", text.replace("InAFile", "InAJar"))
        jar.writestr("other.class", b"\xca\xfe")
    assert [one.name for one in kafka.definitions(tmp_path)] == ["InAFile"]
    assert [one.name for one in kafka.definitions(tmp_path / "deeper" / "a.json")] == ["InAFile"]
    assert [one.name for one in kafka.definitions(tmp_path / "some.jar")] == ["InAJar"]


def test_no_definitions_is_a_schema_error(tmp_path: Path):
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "c.json").write_bytes(b"\xff")
    for path in (tmp_path / "b.json", tmp_path / "nowhere", tmp_path / "c.json"):
        with pytest.raises(SchemaError):
            list(kafka.definitions(path))


@pytest.mark.parametrize(
    ("kafka_name", "ours"),
    [
        ("TopicId", "topic_id"),
        ("isKRaftController", "is_k_raft_controller"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("Isr", "isr"),
        ("name", "name"),
    ],
)
def test_names_become_snake_case(kafka_name: str, ours: str):
    assert kafka.snake_case(kafka_name) == ours


def test_30000_versions_that_are_alike_are_compared_once() -> None:
    text = json.dumps(
        {
            "name": "AData",
            "type": "data",
            "validVersions": "0-30000",
            "flexibleVersions": "none",
            "fields": [
                {"name": "A", "type": "int8", "versions": "0+"},
                {"name": "B", "type": "int8", "versions": "7+"},
            ],
        }
    )
    theirs = kafka.read_definition(text, "A.json")
    ours = kafka.read_definition(text.replace('"7+"', '"9+"'), "A.json")
    found: list[str] = []
    assert lines(lambda: found.extend(map(str, kafka.compare(theirs, ours))), 2000) < 2000
    assert found == ["AData v7-8 $.b: not among our fields"]
    assert [str(one) for one in kafka.compare(ours, theirs)] == ["AData v7-8 $.b: only among our fields"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_jar_is_compressed_as_jars_are(method: int, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "x.jar", "w", method) as jar:
        jar.writestr("X.json", '{"validVersions": "0"}' * 50)
    with pytest.raises(SchemaError, match=f"method {method}, as no jar is"):
        list(kafka.definitions(tmp_path / "x.jar"))


def test_a_damaged_jar_is_an_error(tmp_path: Path):
    path = tmp_path / "x.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("X.json", "{}" + " " * 300)
        jar.writestr("Y.json", "{}" + " " * 300)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for value in (0, 1, 0x7F, 0xFF, whole[at] ^ 1):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            with pytest.raises(SchemaError):
                list(kafka.definitions(path))


def test_what_is_in_a_jar_several_times_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kafka, "MOST_OF_A_JAR", 10_000)
    with zipfile.ZipFile(tmp_path / "x.jar", "w", zipfile.ZIP_DEFLATED) as jar:
        for number in range(20):
            jar.writestr(f"{number}.json", "{}" + " " * 1_000)
    with pytest.raises(SchemaError, match="definitions of more than 10000 bytes"):
        list(kafka.definitions(tmp_path / "x.jar"))
