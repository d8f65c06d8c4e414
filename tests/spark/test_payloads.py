"""Payloads in Spark: what is in them as arrays and as tables, and requests with their responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sql

import kwire.messages
import kwire.spark
from kwire.errors import KwireError
from kwire.records import Record, encode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = encode([Record(b"k", b"v" * number, offset=number) for number in range(5)])


def produce(*sets: bytes, correlation_id: int = 1) -> bytes:
    kind = kwire.messages.ProduceRequest
    partitions = [kind.PartitionProduceData(index=number, records=one) for number, one in enumerate(sets)]
    topic = kind.TopicProduceData(name="orders", partition_data=partitions)
    body = kind(acks=1, timeout_ms=1, topic_data=[topic])
    return kwire.encode_request(body, api_version=9, correlation_id=correlation_id, client_id="billing")


def answer(body: Any, api_version: int, correlation_id: int) -> bytes:
    return kwire.encode_response(body, api_version=api_version, correlation_id=correlation_id)


FETCHED = answer(
    kwire.messages.FetchResponse(
        responses=[
            kwire.messages.FetchResponse.FetchableTopicResponse(
                topic="orders",
                partitions=[kwire.messages.FetchResponse.PartitionData(partition_index=3, records=BATCH)],
            )
        ]
    ),
    11,
    1,
)


@pytest.fixture
def frames(spark: SparkSession) -> DataFrame:
    rows = [("a", produce(BATCH, BATCH)), ("b", None), ("c", b"no"), ("d", produce(BATCH))]
    return spark.createDataFrame(
        [(host, data and bytearray(data)) for host, data in rows], "host string, payload binary"
    )


def test_records_in_requests_as_arrays_and_as_a_table(frames: DataFrame) -> None:
    arrays = frames.select("host", sql.inline(kwire.spark.request_records("payload")))
    table = kwire.spark.records_of(frames)
    assert table.columns == arrays.columns
    assert sorted(table.collect(), key=str) == sorted(arrays.collect(), key=str)
    counts = {(row.host, row.status): row["count"] for row in table.groupBy("host", "status").count().collect()}
    assert counts == {("a", "ok"): 10, ("c", "malformed"): 1, ("d", "ok"): 5}
    assert table.where("topic = 'orders' AND partition = 1").count() == 5


def test_records_and_partitions_of_responses(spark: SparkSession) -> None:
    frames = spark.createDataFrame([(1, 11, bytearray(FETCHED))], "api_key int, api_version int, payload binary")
    table = kwire.spark.records_of(frames, api_key="api_key", api_version="api_version", keep=["api_key"])
    assert table.columns[:4] == ["api_key", "topic", "topic_id", "partition"]
    assert [(row.partition, row.offset) for row in table.collect()] == [(3, offset) for offset in range(5)]
    (row,) = kwire.spark.partitions_of(frames, api_key=1, api_version=11).collect()
    assert (row.topic, row.partition, row.records) == ("orders", 3, 5)
    frames.createOrReplaceTempView("fetched")
    kwire.spark.register(spark)
    found = spark.sql(
        "SELECT size(kwire_response_records(payload, api_key, api_version)) AS records, "
        "size(kwire_response_partitions(payload, api_key, api_version)) AS partitions, "
        "size(kwire_request_records(payload)) AS none, size(kwire_request_partitions(NULL)) AS nothing FROM fetched"
    ).first()
    assert found is not None
    assert found.asDict() == {"records": 5, "partitions": 1, "none": 1, "nothing": None}


@pytest.mark.wide
def test_record_sets_as_a_table_are_their_arrays_as_rows(spark: SparkSession) -> None:
    secret = encode([Record(b"k", b"p" * 20)])
    rows = [("a", BATCH), ("__cluster_metadata", secret), ("c", None), ("d", BATCH[:-3]), ("e", b""), ("f", b"\0" * 40)]
    sets = spark.createDataFrame(
        [(topic, data and bytearray(data)) for topic, data in rows], "topic string, records binary"
    )
    for options in ({}, {"strict": True}, {"secrets": True}, {"fields": ["status", "value"]}):
        given: Any = options
        arrays = sets.select("topic", sql.inline(kwire.spark.decode_records("records", topic="topic", **given)))
        table = kwire.spark.record_sets_of(sets, topic="topic", **given)
        assert table.schema.simpleString() == arrays.schema.simpleString()
        assert sorted(table.collect(), key=str) == sorted(arrays.collect(), key=str)
        hidden = table.where("topic = '__cluster_metadata'").first()
        assert hidden is not None
        assert (b"redacted" in hidden.value) is not given.get("secrets", False)
    without = kwire.spark.record_sets_of(sets, keep=[], fields=["offset"])
    assert without.columns == ["offset"]
    assert without.count() == 5 + 1 + 1 + 1


@pytest.mark.wide
def test_columns_of_any_type_and_name_stay_beside_the_rows(spark: SparkSession) -> None:
    # The session is in New York.
    frames = spark.createDataFrame([(bytearray(produce(BATCH)), bytearray(BATCH))], "payload binary, records binary")
    beside = frames.selectExpr(
        "payload",
        "records",
        "timestamp'2026-11-26 12:00:00' AS `when`",
        "timestamp_ntz'2026-11-26 12:00:00' AS local",
        "array(timestamp'2026-11-26 12:00:00', null) AS times",
        "map('a', named_struct('x', 1, 'y', timestamp'2026-11-26 12:00:00')) AS tags",
        "date'2026-11-26' AS day",
        "cast(1.50 AS decimal(38, 10)) AS price",
        "interval '1' day AS span",
        "'x' AS `a.b ``c`",
        "cast(null AS string) AS nothing",
    )
    others = beside.columns[2:]
    (wanted,) = beside.select(*beside.columns[2:9], "`a.b ``c`", "nothing").collect()
    for table in (
        kwire.spark.records_of(beside, keep=others, fields=["offset"]),
        kwire.spark.record_sets_of(beside, keep=others, fields=["offset", "timestamp"]),
        kwire.spark.partitions_of(beside, keep=others, fields=["partition"]),
    ):
        rows = table.collect()
        assert rows
        assert {tuple(map(str, row[: len(others)])) for row in rows} == {tuple(map(str, wanted))}


@pytest.mark.wide
def test_keys_and_versions_that_are_none_fail_no_query(spark: SparkSession) -> None:
    rows = [("1", 11), ("fetch", 11), ("1", 1 << 40), (None, None), ("-1", -1)]
    frames = spark.createDataFrame(
        [(key, version, bytearray(FETCHED)) for key, version in rows], "key string, version bigint, payload binary"
    ).coalesce(1)
    made = frames.select(
        kwire.spark.decode_response("payload", "key", "version", fields=["status"]).status.alias("status"),
        sql.size(kwire.spark.response_records("payload", "key", "version")).alias("records"),
    )
    assert [tuple(row) for row in made.collect()] == [("ok", 5), *[("unsupported", 1)] * 4]
    table = kwire.spark.records_of(frames, api_key="key", api_version="version", keep=[], fields=["status"])
    assert sorted(row.status for row in table.collect()) == ["ok"] * 5 + ["unsupported"] * 4


def test_what_does_not_go_together_is_said(frames: DataFrame) -> None:
    with pytest.raises(KwireError, match="go together"):
        kwire.spark.records_of(frames, api_key=1)
    with pytest.raises(KwireError, match="'topic' would be there twice"):
        kwire.spark.records_of(frames.withColumn("topic", sql.lit("x")))
    with pytest.raises(KwireError, match=r"keep is a list of names, not 'host': keep=\['host'\]"):
        kwire.spark.records_of(frames, keep="host")
    wrong: Any = "no"
    with pytest.raises(KwireError, match="secrets is True or False, not 'no'"):
        kwire.spark.record_sets_of(frames, "payload", secrets=wrong)
    with pytest.raises(KwireError, match="secrets is True or False, not 'no'"):
        kwire.spark.decode_records("payload", topic="host", secrets=wrong)


def size_in_front(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@pytest.mark.wide
def test_payloads_show_whether_they_have_a_size_and_are_arrays_of_frames(spark: SparkSession) -> None:
    one, answered = produce(BATCH), answer(kwire.messages.ProduceResponse(), 9, 1)
    rows = [
        (1, bytearray(one), bytearray(answered)),
        (2, bytearray(size_in_front(one) * 2), bytearray(size_in_front(answered) * 2)),
        (3, bytearray(size_in_front(one)[:-1]), bytearray(size_in_front(answered)[:-1])),
        (4, None, None),
    ]
    frames = spark.createDataFrame(rows, "n int, asked binary, answered binary").coalesce(1)
    frames.createOrReplaceTempView("several")
    kwire.spark.register(spark)
    in_python = frames.select(
        kwire.spark.decode_request("asked", sized="auto", several=True).alias("asked"),
        kwire.spark.decode_response("answered", 0, 9, sized="auto", several=True).alias("answered"),
    )
    in_sql = spark.sql(
        "SELECT kwire_decode_requests(asked) AS asked, kwire_decode_responses(answered, 0, 9) AS answered FROM several"
    )
    found = in_python.collect()
    assert found == in_sql.collect()
    assert [row.asked and [each.status for each in row.asked] for row in found] == [
        ["ok"], ["ok", "ok"], ["cut_off"], None,
    ]  # fmt: skip
    assert [row.answered and [each.status for each in row.answered] for row in found] == [
        ["ok"], ["ok", "ok"], ["malformed"], None,
    ]  # fmt: skip
    assert "give sized=True or sized=False" in found[2].answered[0].error
    (row,) = spark.sql(
        "SELECT kwire_decode_request(asked, 'auto').status AS auto, kwire_decode_request(asked, true).status AS sized, "
        "kwire_decode_request(asked, false).status AS unsized, kwire_decode_request_header(asked, 'auto').status AS h, "
        "kwire_decode_response(answered, 0, 9, 'auto').status AS r, size(kwire_request_records(asked, 'auto')) AS n, "
        "size(kwire_response_partitions(answered, 0, 9, 'auto')) AS p FROM several WHERE n = 2"
    ).collect()
    assert row.asDict() == {
        "auto": "malformed", "sized": "malformed", "unsized": "unsupported", "h": "malformed", "r": "malformed",
        "n": 10, "p": 0,
    }  # fmt: skip
    assert kwire.spark.records_of(frames, "asked", keep=["n"], sized="auto").where("status = 'ok'").count() == 15


@pytest.mark.wide
def test_fields_that_nobody_asks_for_are_not_made(frames: DataFrame) -> None:
    made = frames.select(kwire.spark.decode_request("payload", fields=["correlation_id", "api_name"]).alias("r"))
    assert made.schema["r"].dataType.simpleString() == "struct<correlation_id:int,api_name:string>"
    assert [row.r and tuple(row.r) for row in made.collect()] == [(1, "Produce"), None, (None, None), (1, "Produce")]
    table = kwire.spark.records_of(frames, fields=["offset", "topic"])
    assert table.columns == ["host", "offset", "topic"]
    assert table.where("topic = 'orders'").count() == 15
    arrays = frames.select("host", sql.inline(kwire.spark.request_records("payload", fields=["offset", "topic"])))
    assert sorted(arrays.collect(), key=str) == sorted(table.collect(), key=str)
    with pytest.raises(KwireError, match="no field 'key_'"):
        kwire.spark.records_of(frames, fields=["key_"])
    wrong: Any = {"field": ["key"]}
    with pytest.raises(TypeError, match="'field': there are sized, several, fields, "):
        kwire.spark.decode_request("payload", **wrong)


@pytest.mark.wide
def test_exchanges_are_paired_within_a_connection(spark: SparkSession) -> None:
    written = answer(kwire.messages.ProduceResponse(), 9, 7)
    rows = [
        ("x", "request", 1.0, produce(BATCH, correlation_id=7)),
        ("y", "request", 1.1, produce(BATCH, correlation_id=7)),
        ("y", "response", 1.25, written),
        ("x", "response", 1.5, written),
    ]
    frames = spark.createDataFrame(
        [(one, side, time, bytearray(data)) for one, side, time, data in rows],
        "connection string, direction string, time double, payload binary",
    )
    paired = kwire.spark.exchanges(frames, time_unit="s").where("direction = 'response'")
    found = {row.connection: row for row in paired.collect()}
    assert {one: round(row.latency_ms, 3) for one, row in found.items()} == {"x": 500.0, "y": 150.0}
    assert {(row.api_name, row.api_version, row.client_id, row.status) for row in found.values()} == {
        ("Produce", 9, "billing", "ok")
    }
    # Each row is a whole frame: one that nobody answers is no less certain.
    asked = kwire.spark.exchanges(frames.where("direction = 'request'"), time_unit="s").collect()
    assert [row.status for row in asked] == ["ok", "ok"]
    calls = kwire.spark.exchanges(frames, time_unit="s", table="calls").collect()
    assert sorted((row.connection, row.direction) for row in calls) == [
        (one, side) for one in "xy" for side in ("request", "response")
    ]
    sized = frames.withColumn(
        "payload", sql.concat(sql.unhex(sql.lpad(sql.hex(sql.length("payload")), 8, "0")), "payload")
    )
    again = kwire.spark.exchanges(sized, time_unit="s", sized=True)
    assert sorted(again.select("connection", "status").collect()) == sorted(
        kwire.spark.exchanges(frames, time_unit="s").select("connection", "status").collect()
    )
