"""Values in Spark say what they say by themselves, whatever their schemas, and workers ask no registry."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import fastavro
import pytest
from mock_registry import serving
from packets import Connection, pcap, produce, produce_answer
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from record_sets import batch, record

import kwire.spark
from kwire.errors import KwireError

FIRST = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
SCHEMAS: list[dict[str, Any]] = [
    {"subject": "orders-value", "version": 1, "id": 1, "schema": json.dumps(FIRST)},
    {"subject": "orders-value", "version": 2, "id": 2, "schema": json.dumps(SECOND)},
]


def avro(schema: dict[str, Any], value: dict[str, Any], id_: int) -> bytes:
    made = io.BytesIO()
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), value)
    return b"\0" + struct.pack(">I", id_) + made.getvalue()


VALUES = [
    avro(FIRST, {"id": 1, "who": "a"}, 1),
    avro(SECOND, {"id": 2, "who": "b", "note": "n"}, 2),
    b"\0\0\0\0\1\2",
    None,
]


def test_values_of_two_versions_are_one_struct_and_json_text(spark: SparkSession) -> None:
    df = spark.createDataFrame([(n, value) for n, value in enumerate(VALUES)], "n int, value binary")
    with serving(SCHEMAS) as registry:
        typed = kwire.spark.from_registry("value", schemas=registry.url, subject="orders-value")
        text = kwire.spark.from_registry("value", schemas=registry.url)
        asked = len(registry.asked)
        rows = df.select("n", typed.alias("order"), text.alias("text")).orderBy("n").collect()
        assert len(registry.asked) == asked
    assert [row.order and row.order.asDict() for row in rows] == [
        {"id": 1, "who": "a", "note": None},
        {"id": 2, "who": "b", "note": "n"},
        None,
        None,
    ]
    assert [row.text and json.loads(row.text) for row in rows[:2]] == [
        {"id": 1, "who": "a"},
        {"id": 2, "who": "b", "note": "n"},
    ]
    strict = kwire.spark.from_registry("value", schemas=_catalog(), mode="FAILFAST", topic=sql.lit("orders"))
    with pytest.raises(PythonException, match=r"FAILFAST.*orders-value v1: \$\.who at byte 6"):
        df.select(strict).collect()


def _catalog() -> Any:
    from kwire.values.catalog import Catalog
    from kwire.values.written import Written

    return Catalog(Written.of(one) for one in SCHEMAS)


@pytest.mark.wide
def test_headers_name_schemas(spark: SparkSession) -> None:
    header = b"\0" + struct.pack(">I", 1)
    df = spark.createDataFrame(
        [(VALUES[0][5:] if VALUES[0] else b"", [("__value_schema_id", header)])],
        "value binary, headers array<struct<key: string, value: binary>>",
    )
    found = df.select(kwire.spark.from_registry("value", "headers", schemas=_catalog())).collect()
    assert [json.loads(one[0]) for one in found] == [{"id": 1, "who": "a"}]


def test_sql_has_the_function_and_its_text_is_a_variant(spark: SparkSession) -> None:
    spark.createDataFrame([(value,) for value in VALUES[:2]], "value binary").createOrReplaceTempView("values_in_sql")
    kwire.spark.register_from_registry(spark, _catalog())
    kwire.spark.register_from_registry(spark, _catalog(), subject="orders-value", name="orders")
    rows = spark.sql(
        "SELECT variant_get(parse_json(kwire_from_registry(value)), '$.who', 'string') AS who, "
        "orders(value, array(), 'orders').id AS id FROM values_in_sql ORDER BY id"
    ).collect()
    assert [tuple(row) for row in rows] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subject": "nothing"}, "no source has the subject"),
        ({"subject": "orders-value", "schema": '"string"'}, "give one of them"),
        ({"mode": "DROP"}, "no mode 'DROP'"),
    ],
)
def test_what_makes_no_sense_is_refused(spark: SparkSession, options: dict[str, Any], said: str) -> None:
    with pytest.raises(KwireError, match=said):
        kwire.spark.from_registry("value", schemas=_catalog(), **options)


def test_values_are_validated_and_formats_need_no_schema(spark: SparkSession) -> None:
    text = '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'
    df = spark.createDataFrame([(b'{"id":1}', 1), (b"{}", 2), (b"\xa1bid\x05", 3)], "value binary, n int")
    from_registry, docs = kwire.spark.from_registry, sql.lit("docs")

    def found(column: Any) -> list[Any]:
        return [row[0] for row in df.orderBy("n").select(column).collect()]

    assert found(from_registry("value", None, docs, schemas={"docs": text}, validate=True)) == ['{"id":1}', None, None]
    assert found(from_registry("value", schemas="cbor")) == ['{"id":1}', "{}", '{"id":5}']
    # A value of CBOR becomes the struct of a JSON Schema.
    typed = from_registry("value", schemas="cbor", schema=text)
    assert [row and row.id for row in found(typed)][2] == 5
    failing = from_registry("value", None, docs, schemas={"docs": text}, validate=True, mode="FAILFAST")
    with pytest.raises(Exception, match=r'invalid: docs-value: [$]: "id" is a required property'):
        found(failing)


@pytest.mark.wide
def test_the_source_has_values_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    def produced(values: list[Any], topic: str, keys: list[bytes] | None = None) -> None:
        number = len(connection.packets)
        pairs = zip(keys or [b"k"] * len(values), values, strict=True)
        data = [record(offset=n, key=key, value=value) for n, (key, value) in enumerate(pairs)]
        made = batch(b"".join(data), len(data))
        connection.send(produce(number, 1, made, topic)).answer(produce_answer(number, topic))

    connection = Connection().open()
    keys = [json.dumps({"keytype": "SCHEMA", "subject": one["subject"], "version": one["version"]}) for one in SCHEMAS]
    produced([json.dumps(one).encode() for one in SCHEMAS], "_schemas", [key.encode() for key in keys])
    produced(VALUES[:3], "orders")
    path = str(tmp_path / "broker.pcap")
    Path(path).write_bytes(pcap(connection.packets))
    read = spark.read.format("kwire").options(table="records", topics="orders", schemas=path)
    typed = read.option("values", "typed").load(path).orderBy("offset").select("value.id", "value.note", "value_status")
    assert [tuple(row) for row in typed.collect()] == [(1, None, "ok"), (2, "n", "ok"), (None, None, "malformed")]
    segment = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    data = [record(offset=n, key=b"k", value=value) for n, value in enumerate(VALUES[:3])]
    segment.write_bytes(batch(b"".join(data), len(data)))
    # A reader keeps its options: this one is another.
    of_log = {"table": "records", "topics": "orders", "schemas": path, "format": "log", "values": "typed"}
    of_segments = spark.read.format("kwire").options(**of_log).load(str(tmp_path / "data")).orderBy("offset")
    assert [row.value and row.value.id for row in of_segments.select("value").collect()] == [1, 2, None]
    # It is for JSON Schema alone.
    validated = read.option("values", "json").option("validate", "true").load(path)
    assert [row[0] for row in validated.orderBy("offset").select("value_status").collect()] == ["ok", "ok", "malformed"]
    _findings(spark, path)
    _lineage(spark, path)
    text = read.option("values", "json").option("mask", "who").load(path).orderBy("offset").select("value_json")
    assert json.loads(text.first()[0]) == {"id": 1, "who": None}


def _lineage(spark: SparkSession, path: str) -> None:
    """The schemas of each edge are those of the command line."""
    from kwire import capture
    from kwire.report import lineage

    columns = {**lineage.TABLES, "records": lineage.OF_VALUES}
    made = lineage.Lineage()
    for name, rows in capture.read(path, tables=list(columns), columns=columns, schemas=path, name=path):
        made.add(name, rows)
    expected = lineage.batch_of(made.result()).to_pylist()
    read = {name: kwire.spark.read(path, table=name) for name in lineage.TABLES}
    plain = kwire.spark.lineage({**read, "records": kwire.spark.read(path, table="records")}).toArrow()
    assert not any(plain.column("schemas").to_pylist())
    read["records"] = kwire.spark.read(path, table="records", schemas=path, columns=lineage.OF_VALUES)
    with pytest.raises(KwireError, match="read them with schemas, and the columns capture, connection, source"):
        kwire.spark.lineage({**read, "records": read["records"].drop("value_schema")})
    found = {row["topic"]: row["schemas"] for row in kwire.spark.lineage(read).toArrow().to_pylist()}
    assert found == {row["topic"]: row["schemas"] for row in expected}
    assert found["orders"] == ["orders-value v1", "orders-value v2"]


def _findings(spark: SparkSession, path: str) -> None:
    """Rules about values find there what they find on the command line."""
    from kwire import capture
    from kwire.report import findings
    from kwire.values import Schemas

    schemas = Schemas.of(path)
    columns = {name: list(one) for name, one in findings.needed(["no-longer-decodes"], schemas=True).items()}
    finder = findings.Finder(["no-longer-decodes"], schemas=schemas)
    for name, made in capture.read(path, tables=list(columns), columns=columns, schemas=schemas, name=path):
        finder.add(name, made)
    expected = [(one.rule, one.topic, one.summary) for one in finder.result()]
    tables = {
        name: spark.read.format("kwire")
        .options(table=name, columns=",".join(one), **({"schemas": path} if name == "records" else {}))
        .load(path)
        for name, one in columns.items()
    }
    found = kwire.spark.findings(tables, ["no-longer-decodes"], schemas=path).collect()
    assert [(one.rule, one.topic, one.summary) for one in found] == expected
    with pytest.raises(KwireError, match="needs the table records with the column value_framing"):
        kwire.spark.findings({"records": tables["records"].drop("value_framing")}, ["no-longer-decodes"])
