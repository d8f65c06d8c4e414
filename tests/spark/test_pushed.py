"""What of WHERE a reader takes over: the same rows, from less work."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, In, LessThanOrEqual, Not, StringStartsWith

from kwire import tables
from kwire.capture.writing import PcapngWriter, Raw
from kwire.spark.files import find
from kwire.spark.pushed import narrowed
from kwire.spark.reader import PushingReader
from kwire.spark.source import KwireDataSource
from kwire.tables.filters import Filter
from kwire.testing import packets

CAPTURE = "first-light.pcap"
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
NANOSECONDS = int(NOON.timestamp()) * 10**9


def of(table: str, *conditions: Any, only: Filter | None = None) -> Filter | None:
    return narrowed(conditions, only, tables.table(table))


def test_conditions_become_filters() -> None:
    assert of("frames", EqualTo(("api_name",), "Produce"), In(("api_key",), (0, 1))) == Filter(apis=frozenset({0}))
    assert of("records", In(("topic",), ("a", None, "b"))) == Filter(topics=frozenset({"a", "b"}))
    assert of("frames", EqualTo(("client_id",), "a"), EqualTo(("status",), "ok")) == Filter(
        client_ids=frozenset({"a"}), status=frozenset({"ok"})
    )
    between = GreaterThan(("timestamp",), NOON), LessThanOrEqual(("timestamp",), NOON.replace(tzinfo=None))
    assert of("frames", *between) == Filter(start=NANOSECONDS, end=NANOSECONDS + 1000)
    assert of("frames", *between, only=Filter(start=NANOSECONDS + 1)) == Filter(
        start=NANOSECONDS + 1, end=NANOSECONDS + 1000
    )
    # Of two times, the frame's: a record's own says nothing of when it was sent.
    assert of("records", *between) is None
    assert of("records", GreaterThan(("frame_timestamp",), NOON)) == Filter(start=NANOSECONDS)
    assert of("frames", EqualTo(("api_name",), "Produce"), EqualTo(("api_name",), "Fetch")) == Filter(apis=frozenset())


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("api_name",), "produce"),
        EqualTo(("api_key",), True),
        EqualTo(("client_id",), "a\ufffd"),
        EqualTo(("client_id",), "a\\x1b"),
        EqualTo(("client_id",), ""),
        EqualTo(("status",), "bad_file"),
        In(("status",), ("ok", "bad_file")),
        EqualTo(("topic",), "a"),
        Not(EqualTo(("api_name",), "Produce")),
        StringStartsWith(("api_name",), "Pro"),
        EqualTo(("timestamp",), NOON),
        GreaterThan(("timestamp",), datetime.datetime(1, 1, 1)),
        LessThanOrEqual(("timestamp",), datetime.datetime.max),
        GreaterThan(("size",), 5),
        EqualTo(("body", "api_name"), "Produce"),
    ],
)
def test_what_does_not_fit_is_left_to_spark(condition: Any) -> None:
    assert of("frames", condition) is None


def test_a_table_that_is_not_of_frames_has_no_filters() -> None:
    assert of("connections", EqualTo(("status",), "ok")) is None


def test_a_reader_reads_less(captures: Path) -> None:
    path = str(captures / CAPTURE)
    source = KwireDataSource({"table": "frames", "pushfilters": "true", "path": path})
    reader = source.reader(source.schema())
    assert isinstance(reader, PushingReader)
    conditions: list[Any] = [EqualTo(("api_name",), "Produce"), StringStartsWith(("client_id",), "k")]
    assert list(reader.pushFilters(conditions)) == conditions
    (file,) = find((path,))
    names = {name for batch in reader.rows_of(file) for name in batch.column("api_name").to_pylist()}
    assert names == {"Produce"}


def test_a_query_has_the_same_rows(spark: SparkSession, captures: Path) -> None:
    where = "topic IN ('first-light', 'none') AND status = 'ok' AND frame_timestamp >= '2001-01-01T00:00:00Z'"
    read = spark.read.format("kwire").option("table", "records")
    plain = read.load(str(captures / CAPTURE))
    topic = plain.where("topic IS NOT NULL").first()
    assert topic is not None
    where = where.replace("none", topic["topic"])
    with pytest.raises(PySparkException, match="PUSHDOWN_DISABLED"):
        read.option("pushFilters", "true").load(str(captures / CAPTURE)).where(where).count()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = read.option("pushFilters", "true").load(str(captures / CAPTURE))
        assert pushed.where(where).toArrow().equals(plain.where(where).toArrow())
        assert pushed.where(where).count()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.wide
def test_a_time_that_the_capture_does_not_state_is_null_and_fits_no_condition(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    path = tmp_path / "untimed.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for number, one in enumerate(packets.read((captures / CAPTURE).read_bytes())):
            writer.write(Raw(one.time if number % 2 else None, bytes(one.data), one.size, one.link))
    frames = spark.read.format("kwire").load(str(path))
    rows = frames.select("timestamp", "latency_ms", "frame").collect()
    null = sum(row["timestamp"] is None for row in rows)
    assert 0 < null < len(rows)
    assert all(row["timestamp"] is None or row["timestamp"].year > 2000 for row in rows)
    assert frames.where("timestamp IS NULL").count() == null
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushing = spark.read.format("kwire").option("pushFilters", "true").load(str(path))
        for one in (frames, pushing):
            found = [one.where(f"timestamp {sign} '2000-01-01T00:00:00Z'").count() for sign in (">=", "<")]
            assert found == [len(rows) - null, 0]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    last = frames.orderBy("timestamp", "frame").tail(1)[0]
    assert last["timestamp"] == max(row["timestamp"] for row in rows if row["timestamp"] is not None)
