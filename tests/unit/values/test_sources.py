"""Schemas are the same, whether a folder, a registry or the topic of a registry has them."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from mock_registry import MockRegistry, serving

from kwire.errors import KwireError, SchemaError
from kwire.values import Registry, Schemas, Written, decode
from kwire.values.catalog import Catalog
from kwire.values.framing import Framing, Named, Space
from kwire.values.sources import of_folder, of_records
from kwire.values.written import MOST_REFERENCES, Reference, closure, format_of

GUID = "6f1a4d22-9c1e-4a5b-8c62-0d6d3c1b7a90"
ADDRESS = '{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"city","type":"string"}]}'
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"to","type":"Address"}]}'
PROTO = 'syntax = "proto3"; import "inner.proto"; message Outer { Inner inner = 1; }'
INNER = 'syntax = "proto3"; message Inner { int32 n = 1; }'
LISTED: list[dict[str, Any]] = [
    {"subject": "address", "version": 1, "id": 1, "schema": ADDRESS},
    {
        "subject": "orders-value",
        "version": 1,
        "id": 2,
        "guid": GUID,
        "schema": ORDER,
        "references": [{"name": "shop.Address", "subject": "address", "version": 1}],
    },
    {"subject": "orders-value", "version": 2, "id": 3, "schema": '"string"'},
    {"subject": "inner", "version": 1, "id": 4, "schemaType": "PROTOBUF", "schema": INNER},
    {
        "subject": "outer-value",
        "version": 1,
        "id": 5,
        "schemaType": "PROTOBUF",
        "schema": PROTO,
        "references": [{"name": "inner.proto", "subject": "inner", "version": 1}],
    },
    {"subject": "doc-value", "version": 1, "id": 6, "schemaType": "JSON", "schema": '{"type":"object"}'},
]
"""What a registry answers to ``GET /schemas``."""


def topic() -> tuple[list[bytes | None], list[bytes | None]]:
    """The records of the topic ``_schemas`` that say the same."""
    keys: list[bytes | None] = [b'{"keytype":"NOOP","magic":0}', None]
    values: list[bytes | None] = [None, b"{}"]
    for one in LISTED:
        key = {"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"], "magic": 1}
        keys.append(json.dumps(key).encode())
        values.append(json.dumps({**one, "deleted": False}).encode())
    return keys, values


@pytest.fixture(params=["index", "topic", "table", "registry"])
def schemas(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Schemas]:
    keys, values = topic()
    if request.param == "index":
        (tmp_path / "schemas.json").write_text(json.dumps(LISTED))
        yield Schemas.of(tmp_path)
    elif request.param == "topic":
        yield Schemas([of_records(keys, values)])
    elif request.param == "table":
        yield Schemas.of(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
    else:
        with serving(LISTED) as registry:
            yield Schemas.of(registry.url)


def one(schemas: Schemas, space: Space, name: int | str) -> Written | None:
    found = schemas.find(Named(Framing.CONFLUENT, space, name))
    assert len(found) < 2
    return found[0] if found else None


def test_names_and_references_resolve_the_same_from_every_source(schemas: Schemas) -> None:
    by_id, by_guid = one(schemas, Space.ID, 2), one(schemas, Space.GUID, GUID)
    assert by_id is not None
    assert by_guid is not None
    assert (by_id.text, by_id.format) == (by_guid.text, by_guid.format) == (ORDER, "avro")
    assert schemas.references(by_id) == {"shop.Address": ADDRESS}
    outer = one(schemas, Space.ID, 5)
    assert outer is not None
    assert (outer.format, schemas.references(outer)) == ("protobuf", {"inner.proto": INNER})
    assert one(schemas, Space.ID, 99) is None
    assert [found.text for found in schemas.of_topic("orders", "value")] == ['"string"', ORDER]
    assert schemas.of_topic("orders", "key") == []
    newest = schemas.newest("orders-value")
    assert newest is not None
    assert (newest.version, newest.id) == (2, 3)
    assert schemas.newest("nothing") is None


def test_what_is_fetched_needs_no_source_any_more(schemas: Schemas) -> None:
    fetched = pickle.loads(pickle.dumps(schemas.fetched(topics=["orders"])))
    found = one(fetched, Space.ID, 2)
    assert found is not None
    assert fetched.references(found) == {"shop.Address": ADDRESS}
    everything = pickle.loads(pickle.dumps(schemas.fetched()))
    assert one(everything, Space.ID, 6) is not None


def test_a_folder_names_its_schemas_by_their_files(tmp_path: Path) -> None:
    files = {
        "17.avsc": ADDRESS,
        f"{GUID.replace('-', '')}.avsc": '"int"',
        "orders-value/1.avsc": ORDER,
        "orders-value/10.avsc": '"string"',
        "orders-value/9.avsc": '"bytes"',
        "doc.schema.json": '{"type":"object","properties":{}}',
        "events-value.proto": PROTO,
        "inner.proto": INNER,
        "README.md": "no schema",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    schemas = Schemas.of(tmp_path)
    assert [one.version for one in schemas.of_topic("orders", "value")] == [10, 9, 1]
    found = [one(schemas, Space.ID, 17), one(schemas, Space.GUID, GUID), schemas.newest("events-value")]
    assert [each.text for each in found if each] == [ADDRESS, '"int"', PROTO]
    assert found[2] is not None
    assert schemas.references(found[2])["inner.proto"] == INNER
    assert [each.format for each in schemas.of_topic("doc", "value")] == ["json"]
    assert schemas.of_topic("doc", "key") == []


def test_a_file_with_schemas_of_a_registry_is_read_whole(tmp_path: Path) -> None:
    told = [
        {
            "subject": f"s{number}",
            "version": 1,
            "id": number,
            "schema": json.dumps({"type": "string", "doc": "x" * 900}),
        }
        for number in range(40)
    ]
    path = tmp_path / "all.json"
    path.write_text(json.dumps(told))
    for where in (path, tmp_path):
        schemas = Schemas.of(where)
        assert all(one(schemas, Space.ID, number) for number in range(40))


def test_a_file_that_is_no_schema_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("17")
    with pytest.raises(SchemaError, match=r"bad\.json"):
        of_folder(tmp_path)
    (tmp_path / "bad.json").write_text('[{"schema": 5}]')
    with pytest.raises(SchemaError, match="no list of schemas"):
        of_folder(tmp_path)


def test_the_topic_forgets_what_was_deleted_but_for_values_that_are_there() -> None:
    keys, values = topic()
    gone = {"keytype": "SCHEMA", "subject": "orders-value", "version": 2, "magic": 1}
    keys += [json.dumps(gone).encode(), b'{"keytype":"DELETE_SUBJECT","subject":"doc-value","magic":0}', b"damaged"]
    values += [None, b'{"subject":"doc-value","version":1}', b"{}"]
    made = of_records(keys, values)
    assert [found.version for found in made.versions("orders-value")] == [1]
    assert made.versions("doc-value") == []
    assert [found.text for found in made.named(Space.ID, 3)] == ['"string"']
    assert [found.text for found in made.named(Space.ID, 6)] == ['{"type":"object"}']
    assert made.damaged == 1


@pytest.mark.parametrize(
    "more",
    [
        {"subject": "\ud800-value"},
        {"subject": ["orders"]},
        {"schema": '"string"\udfff'},
        {"references": [{"name": "\ud800", "subject": "address", "version": 1}]},
        {"metadata": {"tags": {"\ud800": ["PII"]}}},
    ],
)
def test_a_record_of_the_topic_whose_names_are_no_text_says_nothing(more: dict[str, Any]) -> None:
    said = {"subject": "orders-value", "version": 1, "id": 1, "schema": '"string"'}
    key = json.dumps({"keytype": "SCHEMA", "subject": "orders-value", "version": 1, "magic": 1}).encode()
    others = json.dumps({**said, "id": 2}).encode()
    schemas = Schemas([of_records([key, key], [json.dumps({**said, **more}).encode(), others])])
    made = decode(pa.array([b"\0\0\0\0\1\2a", b"\0\0\0\0\2\2a"]), schemas)
    assert made.status.to_pylist() == ["unknown_schema", "ok"]


def test_a_file_whose_name_is_not_utf_8_is_a_schema_with_a_name_that_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / "orders\udcff").mkdir()
    (tmp_path / "orders\udcff" / "3.avsc").write_text('"string"')
    found = of_folder(tmp_path)
    assert found.subjects() == ["orders\\udcff"]


def test_schemas_by_topic_come_from_texts_and_files(tmp_path: Path) -> None:
    path = tmp_path / "order.proto"
    path.write_text(INNER)
    schemas = Schemas.of({"orders": ADDRESS, ("orders", "key"): '"string"', "shop": f"{path}#Inner"})
    assert [found.text for found in schemas.of_topic("orders", "value")] == [ADDRESS]
    assert [found.text for found in schemas.of_topic("orders", "key")] == ['"string"']
    assert [(found.format, found.message) for found in schemas.of_topic("shop", "value")] == [("protobuf", "Inner")]
    with pytest.raises(SchemaError, match="the topic broken"):
        Schemas.of({"broken": "no schema"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"type":"record","name":"A","fields":[]}', "avro"),
        ('"string"', "avro"),
        ("long", "avro"),
        ('["null","int"]', "avro"),
        ('{"type":"string"}', "avro"),
        ('{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}', "avro"),
        ('{"type":"long","a":1,"b":2,"c":3}', "avro"),
        ('{"type":{"type":"record","name":"A","fields":[]}}', "avro"),
        ('{"type":["null","int"]}', "avro"),
        ('{"type":["null","string"]}', "json"),
        ('{"type":["array","null"],"items":{"type":"string"}}', "json"),
        ('{"type":[]}', "json"),
        ('{"type":5}', "json"),
        ('{"type":"object","properties":{"a":{}}}', "json"),
        ('{"$schema":"http://json-schema.org/draft-07/schema#","type":"string"}', "json"),
        ("// a comment\n/* two */ syntax = 'proto3';", "protobuf"),
        ("message A {}", "protobuf"),
    ],
)
def test_the_format_of_a_schema_is_known_by_its_text(text: str, expected: str) -> None:
    assert format_of(text) == expected


@pytest.mark.parametrize("text", ["", "hello", "17", "[" * 2000, "\0", '{"a":"\ud800"}'])
def test_what_is_no_schema_has_no_format(text: str) -> None:
    with pytest.raises(SchemaError):
        format_of(text)


def test_references_in_a_circle_and_without_end_are_bounded() -> None:
    def at(n: int) -> Written:
        return Written("avro", str(n), subject="s", version=n, references=(Reference(f"n{n + 1}", "s", n + 1),))

    with pytest.raises(SchemaError, match=f"more than {MOST_REFERENCES}"):
        closure(at(0), lambda one: at(one.version))
    circle = Written("avro", "a", subject="s", version=1, references=(Reference("self", "s", 1),))
    assert closure(circle, lambda one: circle) == {"self": "a"}
    missing = Written("avro", "a", subject="s", version=1, references=(Reference("b", "t", 4),))
    with pytest.raises(SchemaError, match=r"s v1: refers to t v4 \(b\), which no source has"):
        Schemas([Catalog([missing])]).references(missing)


# --- a registry -------------------------------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[MockRegistry]:
    with serving(LISTED) as made:
        yield made


def test_a_registry_is_asked_for_nothing_else_and_once(registry: MockRegistry) -> None:
    schemas = Schemas.of(registry.url)
    assert registry.asked == []
    for _ in range(2):
        assert one(schemas, Space.ID, 2) is not None
        assert one(schemas, Space.ID, 98) is None
        assert one(schemas, Space.FINGERPRINT, 5) is None
    assert registry.asked == ["/schemas/ids/2", "/schemas/ids/98"]


def test_a_busy_registry_is_asked_again(registry: MockRegistry) -> None:
    registry.failures = 2
    assert one(Schemas.of(registry.url), Space.ID, 2) is not None
    assert len(registry.asked) == 3
    registry.failures = 1000
    with pytest.raises(KwireError, match=r"cannot be asked for schemas/ids/3"):
        one(Schemas.of(registry.url), Space.ID, 3)


def test_credentials_are_sent_and_shown_nowhere(registry: MockRegistry) -> None:
    registry.user = "alice:s3cret-word"
    host = registry.url.removeprefix("http://")
    for made in (
        Registry(f"http://alice:s3cret-word@{host}"),
        Registry(registry.url, auth=("alice", "s3cret-word")),
    ):
        assert made.named(Space.ID, 2)
        assert "s3cret" not in repr(made)
        assert "alice" not in repr(made)
    wrong = Registry(f"http://alice:0ther-word@{host}")
    with pytest.raises(KwireError, match="401") as error:
        wrong.named(Space.ID, 2)
    assert "0ther-word" not in str(error.value)
    with pytest.raises(KwireError, match="one process"):
        pickle.dumps(wrong)


def test_what_cannot_be_sent_as_credentials_is_an_error_that_does_not_quote_it(registry: MockRegistry) -> None:
    registry.user = "alice:s3cret-\N{SNOWMAN}"
    assert Registry(registry.url, auth=("alice", "s3cret-\N{SNOWMAN}")).named(Space.ID, 2)
    for wrong in (
        {"token": "s3cret\nX: y"},
        {"token": "s3cret\N{SNOWMAN}"},
        {"token": "s3cret s3cret"},
        {"token": b"s3cret"},
        {"auth": ("alice", "s3cret\ud800")},
        {"auth": "s3cret"},
        {"auth": ("alice", None)},
    ):
        with pytest.raises(KwireError, match="credentials") as error:
            Registry(registry.url, **wrong)  # type: ignore[arg-type]
        assert "s3cret" not in "".join(traceback.format_exception_only(error.value))
        assert error.value.__cause__ is None
        assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_token_that_was_read_from_a_file_may_end_with_a_newline(registry: MockRegistry) -> None:
    assert Registry(registry.url, token="a.b-c\n").named(Space.ID, 2)


def test_a_redirect_is_not_followed(registry: MockRegistry) -> None:
    with serving(LISTED) as other:
        registry.moved = f"{other.url}/schemas/ids/2"
        with pytest.raises(KwireError, match="302"):
            one(Schemas.of(registry.url), Space.ID, 2)
        assert other.asked == []


@pytest.mark.parametrize("answer", [b"", b"[]", b"nothing", b'{"schema": 5}', b'{"schemaType":"XML","schema":""}'])
def test_an_answer_that_is_no_schema_is_an_error(registry: MockRegistry, answer: bytes) -> None:
    registry.answers["/schemas/ids/7"] = answer
    with pytest.raises(KwireError, match="no schema"):
        one(Schemas.of(registry.url), Space.ID, 7)


def test_apicurio_s_own_api_has_contents_by_their_ids(registry: MockRegistry) -> None:
    root = "/apis/registry/v3"
    registry.answers = {
        f"{root}/ids/contentIds/7": ORDER.encode(),
        f"{root}/ids/contentIds/7/references": b'[{"name":"shop.Address","artifactId":"address","version":"1"}]',
        f"{root}/ids/globalIds/8": b'"string"',
        f"{root}/groups/default/artifacts/address/versions": b'{"versions":[{"globalId":9,"version":"1"}]}',
        f"{root}/ids/globalIds/9": ADDRESS.encode(),
    }
    schemas = Schemas.of(registry.url + root)
    found = one(schemas, Space.ID, 7)
    assert found is not None
    assert schemas.references(found) == {"shop.Address": ADDRESS}
    other = one(schemas, Space.GLOBAL_ID, 8)
    assert other is not None
    assert other.text == '"string"'


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:nothing"])
def test_what_is_no_url_of_a_registry_is_refused(url: str) -> None:
    with pytest.raises(KwireError, match="no URL"):
        Registry(url)


@pytest.mark.parametrize("where", ["alice:s3cret@host:8081", "http//alice:s3cret@host", "//alice:s3cret@host/x"])
def test_a_registry_whose_url_lacks_its_scheme_is_not_quoted(where: str) -> None:
    with pytest.raises(KwireError, match="such as https://registry:8081") as error:
        Schemas.of(where)
    assert "s3cret" not in str(error.value)


def test_the_scheme_of_a_url_may_be_in_capitals(registry: MockRegistry) -> None:
    assert one(Schemas.of(registry.url.replace("http", "HTTP")), Space.ID, 2) is not None
