"""Avro schemas as text: names, aliases, logical types, canonical form, fingerprints, and what is refused where."""

from __future__ import annotations

import json
import pickle
from typing import Any

import fastavro.schema
import pyarrow as pa
import pytest

from kwire.errors import KwireError
from kwire.values.avro import Schema, parse
from kwire.values.avro.layout import MOST_NESTING
from kwire.values.avro.types import RecordType
from tests.support.avro_pairs import schemas


def of(schema: Any, **named: str) -> Schema:
    return parse(json.dumps(schema), named)


def record(*fields: Any, name: str = "R", **more: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": a, "type": b} for a, b in fields], **more}


@pytest.mark.parametrize(
    ("schema", "fingerprint"),
    [
        ("null", 0x63DD24E7CC258F8A),
        ("boolean", 0x9F42FC78A4D4F764),
        ("int", 0x7275D51A3F395C8F),
        ("long", 0xD054E14493F41DB7),
        ("float", 0x4D7C02CB3EA8D790),
        ("double", 0x8E7535C032AB957E),
        ("bytes", 0x4FC016DAC3201965),
        ("string", 0x8F014872634503C7),
    ],
)
def test_fingerprints_of_the_primitives_are_those_of_avros_shared_test_data(schema: str, fingerprint: int) -> None:
    assert of(schema).fingerprint == of({"type": schema}).fingerprint == fingerprint


@pytest.mark.parametrize("seed", range(40))
def test_canonical_form_and_fingerprint_are_those_of_fastavro(seed: int) -> None:
    for one in schemas(seed):
        theirs = fastavro.schema.to_parsing_canonical_form(json.loads(one.text))
        assert one.canonical == theirs
        little = fastavro.schema.fingerprint(theirs, "CRC-64-AVRO")
        assert one.fingerprint == int.from_bytes(bytes.fromhex(little), "little")


def test_names_have_the_namespace_around_them_and_stand_once_in_the_canonical_form() -> None:
    inner = {"type": "fixed", "name": "F", "size": 2, "aliases": ["Old"]}
    made = of(record(("a", inner), ("b", "F"), ("c", "x.y.F"), name="R", namespace="x.y", doc="nothing"))
    assert made.canonical == (
        '{"name":"x.y.R","type":"record","fields":[{"name":"a","type":{"name":"x.y.F","type":"fixed","size":2}},'
        '{"name":"b","type":"x.y.F"},{"name":"c","type":"x.y.F"}]}'
    )
    assert isinstance(made.type, RecordType)
    assert {one.type for one in made.type.fields} == {made.type.fields[0].type}


def test_a_schema_refers_to_others_by_name_and_they_to_each_other() -> None:
    first = json.dumps(record(("b", "other.B"), name="A"))
    second = json.dumps({"type": "enum", "name": "other.B", "symbols": ["X"]})
    made = of(record(("a", "A"), ("b", "other.B")), **{"A": first, "by another name": second})
    assert made.arrow_type(spark=True) == pa.struct([("a", pa.struct([("b", pa.string())])), ("b", pa.string())])
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(KwireError, match=r"\$\.fields\[0\]\.type<'A'>\.fields\[0\]\.type: there is no type 'other\.B'"):
        of(record(("a", "A")), A=first)


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("nothing", r"\$: there is no type 'nothing'"),
        (3, r"\$: a type is a name"),
        ({"name": "x"}, r"\$: no type"),
        ({"type": "array"}, r"\$: no items"),
        ({"type": "map", "values": ["int", "int"]}, r"\$\.values: a union has a type twice"),
        ([["int"]], r"\$: a union in a union"),
        (record(("a", "int"), ("a", "int")), r"\$\.fields\[1\]: the field 'a' is there twice"),
        ({"type": "record", "name": "R"}, r"\$: a record has no list of fields"),
        ({"type": "record", "name": "", "fields": []}, r"\$: no name"),
        ({"type": "record", "name": "n" * 2000, "fields": []}, r"\$: a name has more than 1,024"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, r"\$: an enum has a symbol twice"),
        ({"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}, r"\$: the default of an enum is none"),
        ({"type": "fixed", "name": "F", "size": -1}, r"\$: the size of a fixed"),
        ({"type": "fixed", "name": "F", "size": 1 << 40}, r"\$: the size of a fixed"),
        (record(("a", {"type": "fixed", "name": "R", "size": 1})), r"\$\.fields\[0\]\.type: the name 'R' is taken"),
        (record(aliases=["a"] * 2000), r"\$: aliases are a list of at most 1,000"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_path(schema: Any, why: str) -> None:
    with pytest.raises(KwireError, match=why):
        of(schema)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"type":' * 5000,
        "[" * 100_000,
        '{"type":"array","items":' * 200 + '"int"' + "}" * 200,
        " " * (5 << 20),
    ],
)
def test_a_text_that_is_no_json_or_too_large_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(KwireError):
        parse(text)


def test_types_that_are_used_again_and_again_do_not_become_any_number_of_columns() -> None:
    schema: Any = record(("a", "int"), name="R0")
    for n in range(1, 40):
        schema = record(("a", schema), ("b", f"R{n - 1}"), name=f"R{n}")
    with pytest.raises(KwireError, match="more than 10,000 columns"):
        of(schema).arrow_type()


def test_a_recursive_type_is_refused_by_name_or_becomes_json() -> None:
    tree = record(("children", {"type": "array", "items": "Tree"}), name="Tree")
    with pytest.raises(KwireError, match=r"\$\.tree: the type 'Tree' has itself inside"):
        of(record(("tree", tree))).arrow_type()
    made = of(record(("tree", tree), ("n", "int"))).arrow_type(recursive="json")
    assert made == pa.struct([("tree", pa.string()), ("n", pa.int32())])


def logical(kind: str, called: str, **more: Any) -> Any:
    return {"type": kind, "logicalType": called, **more}


@pytest.mark.parametrize(
    ("schema", "type_", "for_spark"),
    [
        (logical("int", "date"), pa.date32(), pa.date32()),
        (logical("int", "time-millis"), pa.time32("ms"), pa.int32()),
        (logical("long", "time-micros"), pa.time64("us"), pa.int64()),
        (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        (logical("long", "timestamp-nanos"), pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
        (logical("long", "local-timestamp-micros"), pa.timestamp("us"), pa.timestamp("us")),
        (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (logical("bytes", "decimal", precision=38), pa.decimal128(38, 0), pa.decimal128(38, 0)),
        (logical("bytes", "decimal", precision=39), pa.decimal256(39, 0), pa.string()),
        (logical("bytes", "decimal", precision=40), pa.decimal256(40, 0), pa.string()),
        (logical("bytes", "decimal", precision=77), pa.binary(), pa.binary()),
        (logical("bytes", "decimal", precision=2, scale=3), pa.binary(), pa.binary()),
        (logical("fixed", "decimal", name="F", size=1, precision=2), pa.decimal128(2, 0), pa.decimal128(2, 0)),
        (logical("fixed", "decimal", name="F", size=1, precision=3), pa.binary(1), pa.binary()),
        (logical("string", "uuid"), pa.string(), pa.string()),
        (logical("fixed", "uuid", name="F", size=16), pa.string(), pa.string()),
        (logical("fixed", "uuid", name="F", size=15), pa.binary(15), pa.binary()),
        (logical("long", "date"), pa.int64(), pa.int64()),
        (logical("long", "unknown"), pa.int64(), pa.int64()),
        ({"type": "fixed", "name": "F", "size": 3}, pa.binary(3), pa.binary()),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (["null", "long"], pa.int64(), pa.int64()),
        (["long"], pa.int64(), pa.int64()),
        (["int", "null", "a.B"], None, None),
        ("null", pa.null(), pa.null()),
    ],
)
def test_the_arrow_type_of_each_type(schema: Any, type_: Any, for_spark: Any) -> None:
    if type_ is None:
        named = {"a.B": json.dumps({"type": "record", "name": "a.B", "fields": []})}
        made = parse(json.dumps(schema), named)
        assert made.arrow_type() == pa.struct([("int", pa.int32()), ("B", pa.struct([]))])
        return
    made = of(schema)
    assert made.arrow_type() == type_
    assert made.arrow_type(spark=True) == for_spark


@pytest.mark.parametrize(
    "around",
    [
        lambda type_: {"type": "array", "items": type_},
        lambda type_: {"type": "map", "values": type_},
    ],
    ids=["array", "map"],
)
def test_any_way_to_nest_has_the_same_limit(around: Any) -> None:
    schema: Any = "int"
    for _ in range(MOST_NESTING - 1):
        schema = around(schema)
    made = of(schema).arrow_type()
    for _ in range(MOST_NESTING - 1):
        made = made.item_type if pa.types.is_map(made) else made.value_type
    assert made == pa.int32()
