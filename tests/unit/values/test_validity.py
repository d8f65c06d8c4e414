"""Values in JSON hold to their JSON Schema, or say where they do not; a schema can ask for no more than its share."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import MissingExtraError, SchemaError
from kwire.values import Reader, Schemas, Written, decode, validity
from kwire.values.catalog import Catalog
from kwire.values.written import Reference

PART = Written("json", '{"type": "string", "pattern": "^b"}', id=9, subject="part", version=1)
DOCUMENT = Written(
    "json",
    json.dumps(
        {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "l": {"type": "array", "items": {"$ref": "part.json"}}},
            "required": ["id"],
        }
    ),
    id=4,
    subject="docs-value",
    version=2,
    references=(Reference("part.json", "part", 1),),
)
OLD = Written("json", '{"type": "array"}', id=3, subject="docs-value", version=1)
SCHEMAS = Schemas([Catalog([PART, OLD, DOCUMENT])]).validated()


def rows(values: list[bytes], **more: Any) -> list[tuple[str, str | None, Any]]:
    made = decode(pa.array(values, pa.binary()), SCHEMAS, **more)
    return list(zip(made.status.to_pylist(), made.error.to_pylist(), made.values.to_pylist(), strict=True))


def test_a_value_that_breaks_its_schema_is_invalid_at_a_path_and_says_nothing_of_its_content() -> None:
    head = b"\0\0\0\0\4"
    broken = [b'{"id": "secret"}', b'{"id": 1, "l": ["b", "secret"]}', b"{}"]
    expected = [
        '$.id: the value is not of type "integer"',
        '$.l[1]: the value does not match "^b"',
        '$: "id" is a required property',
    ]
    for prefix in (head, b""):
        made = rows([prefix + one for one in (b'{"id": 1}', *broken, b'{"id"')], topics="docs")
        assert [row[0] for row in made] == ["ok", "invalid", "invalid", "invalid", "malformed"]
        assert [row[1] for row in made[1:4]] == [f"docs-value v2: {one}" for one in expected]
        assert [row[2] for row in made] == ['{"id": 1}', None, None, None, None]


def test_a_value_of_a_topic_may_be_of_an_older_version_and_one_that_names_its_schema_may_not() -> None:
    assert rows([b"[5]"], topics="docs") == [("ok", None, "[5]")]
    assert rows([b"\0\0\0\0\4[5]"], topics="docs")[0][0] == "invalid"


def test_without_being_asked_values_are_not_validated() -> None:
    made = decode(pa.array([b"\0\0\0\0\4{}"]), Schemas([Catalog([PART, DOCUMENT])]))
    assert made.status.to_pylist() == ["ok"]


def test_typed_and_checked_values_are_validated_too() -> None:
    reader = Reader.of(Written("json", '{"type": "object", "properties": {"id": {"type": "integer"}}}'), SCHEMAS)
    assert rows([b'{"id": 1}', b'{"l": []}'], topics="docs", reader=reader) == [
        ("ok", None, {"id": 1}),
        ("invalid", 'docs-value v2: $: "id" is a required property', None),
    ]


def test_a_reference_that_no_source_has_is_asked_for_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        host = f"http://127.0.0.1:{server.getsockname()[1]}"
        for uri in (f"{host}/a.json", "file:///etc/passwd", "other.json"):
            for schema in ({"$ref": uri}, {"$id": f"{host}/base.json", "$ref": uri}, {"$schema": uri}):
                with pytest.raises(SchemaError, match=r"refers to .*, which no source has|no JSON Schema"):
                    validity.of(json.dumps(schema), {})
        with pytest.raises(TimeoutError):
            server.accept()


def test_references_are_found_by_name_and_relative_to_the_schema() -> None:
    for root in ({"$ref": "a/b.json"}, {"$id": "http://example.com/x.json", "$ref": "http://example.com/a/b.json"}):
        schema = validity.of(json.dumps(root), {"a/b.json": '{"type": "string"}'})
        assert [schema.wrong(one, validity.Budget(0)) is None for one in (b'"x"', b"5")] == [True, False]


def doubled(count: int, word: str) -> dict[str, Any]:
    names = {f"d{at}": {word: [{"$ref": f"#/definitions/d{at + 1}"}] * 2} for at in range(count)}
    return {"$ref": "#/definitions/d0", "definitions": names | {f"d{count}": {"type": "string"}}}


def by_parts(count: int) -> dict[str, Any]:
    names = {
        f"d{at}": {"allOf": [{"properties": {"x": {"$ref": f"#/definitions/d{at + 1}"}}} for _ in range(2)]}
        for at in range(count)
    }
    return {"$ref": "#/definitions/d0", "definitions": names | {f"d{count}": {"type": "string"}}}


def nested(count: int) -> bytes:
    return b'{"x":' * count + b"5" + b"}" * count


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        *((doubled(40, word), b'"x"') for word in ("allOf", "anyOf", "oneOf")),
        (by_parts(40), nested(40)),
        ({"$ref": "#"}, b"1"),
        ({"allOf": [{"$ref": "#named"}], "definitions": {"a": {"$id": "#named", "anyOf": [{"$ref": "#"}] * 2}}}, b"1"),
        ({"pattern": r"^(a*)*\1b$"}, b'"' + b"a" * 3000 + b'"'),
        ({"type": "array", "items": {"$ref": "#"}}, b"[" * 300 + b"]" * 300),
        ({"maximum": 5}, b"1" * 5000),
    ],
)
def test_what_would_take_too_many_steps_is_not_taken(schema: Any, value: bytes) -> None:
    wrong = validity.of(json.dumps(schema), {}).wrong(value, validity.Budget(len(value)))
    assert wrong is not None
    assert "beyond the limit" in wrong
    made = decode(pa.array([value]), Schemas.of({"t": Written("json", json.dumps(schema))}).validated(), topics="t")
    assert made.status.to_pylist() == ["too_large"]


def test_values_of_a_column_have_one_budget() -> None:
    schema = validity.of(json.dumps(doubled(18, "anyOf")), {})
    budget = validity.Budget(0)
    made = [schema.wrong(b"5", budget) for _ in range(60)]
    assert made[0] == "$: it breaks the schema"
    assert "beyond the limit" in (made[-1] or "")


def test_a_recursive_schema_takes_as_many_steps_as_a_value_has_parts() -> None:
    tree = {"type": "object", "properties": {"x": {"anyOf": [{"$ref": "#"}, {"type": "integer"}]}}}
    schema = validity.of(json.dumps(tree), {})
    budget = validity.Budget(0)
    before = budget.left
    assert schema.wrong(nested(150), budget) is None
    assert before - budget.left < 200_000


@pytest.mark.parametrize("text", ["", "{", "5", '"x"', '{"type": "nonsense"}', '{"properties": 5}', '{"pattern": "("}'])
def test_what_is_no_json_schema_is_unsupported(text: str) -> None:
    with pytest.raises(SchemaError):
        validity.of(text, {})
    made = decode(
        pa.array([b"{}"]), Schemas(topics={("t", "value"): Written("json", text or " ")}).validated(), topics="t"
    )
    assert made.status.to_pylist() == ["unsupported"]


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert validity.of("{}", {}).wrong(b'"\\ud800"', validity.Budget(0)) == "$: half a surrogate pair"


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kwire\[values\]'"):
        Schemas().validated()
