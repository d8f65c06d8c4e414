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
    text = read.option("values", "json").option("mask", "who").load(path).orderBy("offset").select("value_json")
    assert json.loads(text.first()[0]) == {"id": 1, "who": None}
