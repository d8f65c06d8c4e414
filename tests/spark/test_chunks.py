"""Chunks of streams in a table become the rows of the capture that they were taken from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import kwire.spark
from kwire import capture
from kwire.errors import KwireError
from kwire.testing import packets

CAPTURE = Path(__file__).parents[1] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
FRAMES = ["timestamp", "api_name", "correlation_id", "size", "latency_ms", "status"]
RECORDS = ["topic", "partition", "offset", "key", "value", "batch", "status"]


def expected(table: str, columns: list[str]) -> Counter[str]:
    with CAPTURE.open("rb") as file:
        return plain(row for batch in capture.read(file, table, columns=columns) for row in batch.to_pylist())


def plain(rows: object) -> Counter[str]:
    return Counter(repr({name: str(value) for name, value in row.items()}) for row in rows)  # type: ignore[attr-defined]


@pytest.mark.wide
def test_frames_and_records_of_chunks(spark: SparkSession) -> None:
    whole = packets.read(CAPTURE.read_bytes())
    flows = packets.Flows(whole)
    rows = [
        (side.flow, f"fd{side.flow}", ("egress", "ingress")[side.end], number, one.packet.time, bytearray(one.payload))
        for number, (one, side) in enumerate(zip(flows.segments, flows.sides, strict=True))
        if one is not None and side is not None
    ]
    rows.reverse()
    df = spark.createDataFrame(rows, "pid int, socket string, way string, n int, ns long, data binary")
    how = {
        "connection": ["pid", "socket"],
        "direction": "way",
        "time": "ns",
        "time_unit": "ns",
        "payload": "data",
        "order": "n",
    }
    frames = kwire.spark.decode_frames(df, **how, requests="egress", columns=["connection", "frame", *FRAMES])
    found = frames.toArrow().to_pylist()
    assert plain({name: row[name] for name in FRAMES} for row in found) == expected("frames", FRAMES)
    assert {row["connection"]["socket"] for row in found} <= {row[1] for row in rows}
    assert len({row["frame"] for row in found}) == len(found)
    # A tracer that knows no times knows their order.
    timeless = kwire.spark.decode_frames(
        df.withColumn("ns", sql.lit(None).cast("long")), **how, requests="egress", columns=FRAMES
    )
    rows_of = timeless.toArrow().to_pylist()
    assert {row["timestamp"] for row in rows_of} == {None}
    kept = [name for name in FRAMES if name not in ("timestamp", "latency_ms")]
    assert plain({name: row[name] for name in kept} for row in rows_of) == expected("frames", kept)
    # Who is the client, told by what they send; times as Spark has them; records, their keys out of the same streams.
    frame = kwire.spark.decode_frames(
        df.selectExpr("pid", "way", "timestamp_micros(ns div 1000) as at", "data", "n"),
        **(how | {"connection": "pid", "time": "at", "time_unit": None}),
        requests=None,
        table="records",
        columns=["connection", *RECORDS],
    )
    records = frame.toArrow().to_pylist()
    assert plain({name: row[name] for name in RECORDS} for row in records) == expected("records", RECORDS)
    assert {type(row["connection"]) for row in records} == {int}
    assert "capture" not in kwire.spark.decode_frames(df, **how, requests="egress", table="messages").columns
    with pytest.raises(KwireError, match="column 'client_host': of chunks nothing is known of it"):
        kwire.spark.decode_frames(df, **how, columns=["client_host"])
    with pytest.raises(KwireError, match="no table 'packets'"):
        kwire.spark.decode_frames(df, **how, table="packets")


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("kind", ["double", "bigint", "boolean", "string", "decimal(18,3)"])
def test_a_time_says_what_it_is(spark: SparkSession, kind: str) -> None:
    df = spark.createDataFrame([], f"connection string, direction string, time {kind}, payload binary")
    with pytest.raises(KwireError, match=r"the column time is .*timestamp"):
        kwire.spark.decode_frames(df)
    with pytest.raises(KwireError, match="no unit 'hours'"):
        kwire.spark.decode_frames(df, time_unit="hours")


@pytest.mark.wide
@pytest.mark.parametrize(
    ("unit", "kind", "time"),
    [("s", "double", 1764000000.5), ("ms", "bigint", 1764000000500), ("us", "bigint", 1764000000500000)],
)
def test_a_time_has_its_unit(spark: SparkSession, unit: str, kind: str, time: object) -> None:
    from kwire.spark.chunks import _nanoseconds

    df = spark.createDataFrame([(time,)], f"at {kind}")
    when = _nanoseconds(sql.col("at"), df.schema["at"].dataType, unit)
    assert df.select(when.cast("long").alias("at")).collect()[0].at == 1764000000500000000


def test_bodies_of_one_message_are_structs(spark: SparkSession) -> None:
    whole = packets.read(CAPTURE.read_bytes())
    flows = packets.Flows(whole)
    rows = [
        (side.flow, ("request", "response")[side.end], one.packet.time, bytearray(one.payload))
        for one, side in zip(flows.segments, flows.sides, strict=True)
        if one is not None and side is not None
    ]
    df = spark.createDataFrame(rows, "connection int, direction string, time long, payload binary")
    how = {"time_unit": "ns", "requests": None, "table": "messages", "api": "Metadata"}
    typed = kwire.spark.decode_frames(df, columns="body", **how)
    found = typed.toArrow().to_pylist()
    with CAPTURE.open("rb") as file:
        read = capture.read(file, "messages", api="Metadata", direction="request", columns=["body"])
        assert plain(found) == plain(row for batch in read for row in batch.to_pylist())
    assert found
