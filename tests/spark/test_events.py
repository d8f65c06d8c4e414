"""CloudEvents and Hono in Spark: the same as the object layer says, the golden capture, and rules that need frames."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from event_samples import BINARY, SAMPLES, structured
from hono_samples import MESSAGES, seeded_tenant
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import kwire.spark
from kwire.events import cloudevents, columns, hono

pytestmark = pytest.mark.wide

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-events"
MEANT = json.loads((GOLDEN / "events.meant.json").read_text(encoding="utf-8"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = 1_763_700_000_500

HEADERS = "headers array<struct<key string, value binary>>"
RECORDS = (
    "capture string, connection bigint, frame bigint, source string, topic string, partition int, offset bigint, "
    f"key binary, value binary, {HEADERS}, magic int, producer_id bigint, is_control boolean, status string, "
    "error string"
)


def table(spark: SparkSession, name: str) -> DataFrame:
    return spark.read.format("kwire").option("table", name).load(str(GOLDEN / "events.pcap"))


def micros(value: datetime | None) -> int | None:
    return None if value is None else (value - EPOCH) // timedelta(microseconds=1)


def meaning(data: Any) -> Any:
    """Data as JSON where it is some: the order of names means nothing."""
    try:
        return json.loads(bytes(data))
    except (TypeError, ValueError):
        return data if data is None else bytes(data)


# --- CloudEvents ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample_events(spark: SparkSession) -> list[Any]:
    """What Spark makes of the samples, with the time in microseconds (Python's own types lack some years)."""
    rows = [(i, headers, value, magic) for i, (_, headers, value, magic) in enumerate(SAMPLES)]
    frame = spark.createDataFrame(rows, f"i int, {HEADERS}, value binary, magic int")
    event = sql.col("event").withField("time", sql.unix_micros("event.time")).alias("event")
    found = frame.select("i", kwire.spark.cloudevent().alias("event")).select("i", event).orderBy("i").collect()
    return [None if row.event is None else row.event.asDict(recursive=True) for row in found]


@pytest.mark.parametrize("i", range(len(SAMPLES)), ids=[name for name, *_ in SAMPLES])
def test_spark_and_the_object_layer_read_the_same(sample_events: list[Any], i: int) -> None:
    _, headers, value, magic = SAMPLES[i]
    found, want = sample_events[i], cloudevents.row(headers, value, magic=magic)
    if want is None or found is None:
        assert found is want is None
        return
    assert sorted((found.pop("error") or "").split("; ")) == sorted((want.pop("error") or "").split("; "))
    assert meaning(found.pop("data")) == meaning(want.pop("data"))
    assert found == {**want, "time": micros(want["time"])}


def test_a_magic_column_is_optional(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(BINARY, b"x"), ([], structured())], f"{HEADERS}, value binary")
    found = frame.select(kwire.spark.cloudevent(magic=None).alias("event"), "value").collect()
    assert [row.event and row.event.id for row in found] == ["1234-1234-1234", None]
    assert [row.id for row in kwire.spark.cloudevents(frame).collect()] == ["1234-1234-1234"]


def test_a_record_is_taken_apart_once(spark: SparkSession) -> None:
    """Spark computes a Python function again for every filter that it moves below it, if it may."""
    frame = spark.createDataFrame([], RECORDS)
    for made, name in (
        (kwire.spark.cloudevents(frame).where("type = 'a'").groupBy("type").count(), "_cloudevents("),
        (kwire.spark.hono_messages(frame).where("size(violations) > 0"), "_hono_messages("),
    ):
        assert made._jdf.queryExecution().executedPlan().toString().count(name) == 1


def test_hostile_records_do_not_stop_a_job(spark: SparkSession) -> None:
    many = [(f"ce_a{i % 5000}", b"x") for i in range(10_000)]
    rows = [(many, b""), (BINARY, b"x")]
    frame = spark.createDataFrame(rows, f"{HEADERS}, value binary")
    found = kwire.spark.cloudevents(frame).select("id", "error", sql.size("extensions").alias("size")).collect()
    assert [row.id for row in found] == [None, "1234-1234-1234"]
    assert found[0].size == 5000
    assert found[0].error.count("appears more than once") == 5000


def test_events_of_the_golden_capture_are_counted_by_type(spark: SparkSession) -> None:
    events = kwire.spark.cloudevents(table(spark, "records")).where("record_source = 'fetch'")
    counts = {row.type: row["count"] for row in events.where("error is null").groupBy("type").count().collect()}
    assert counts == {"com.example.order.placed": 5, "com.example.order.paid": 3, "com.example.order.cancelled": 2}


@pytest.mark.parametrize("source", ["produce", "fetch"])
def test_events_of_the_golden_capture_are_those_that_the_sdk_wrote(spark: SparkSession, source: str) -> None:
    events = kwire.spark.cloudevents(table(spark, "records")).where(sql.col("record_source") == source)
    found = {}
    for row in events.withColumn("time", sql.unix_micros("time")).collect():
        found[row.id or row.error] = {**row.asDict(recursive=True), "data": meaning(row.data)}
    for one in MEANT["events"]:
        if one.get("error") is not None:
            row = found.pop("2" if "time" in one["error"] else one["error"])
            assert (row["mode"], row["error"]) == (one["mode"], one["error"])
        elif one.get("id") is not None:
            row = found.pop(one["id"])
            want = {**dict.fromkeys(cloudevents.COLUMNS), **one}
            key = base64.b64decode(want.pop("key"))
            # The SDK's key is the partition key.
            assert bytes(row["key"]) == key == one["extensions"]["partitionkey"].encode()
            want["time"] = micros(datetime.fromisoformat(one["time"]))
            assert {name: row[name] for name in cloudevents.COLUMNS} == want
    assert found == {}


def test_the_records_own_status_is_part_of_the_error(spark: SparkSession) -> None:
    row = ("c", 0, 0, "fetch", "t", 0, 0, None, b"x", BINARY, 2, -1, False)
    frame = spark.createDataFrame([(*row, "corrupt", "the checksum does not match"), (*row, "ok", None)], RECORDS)
    found = [one.error for one in kwire.spark.cloudevents(frame).collect()]
    assert found == ["record corrupt: the checksum does not match", None]


# --- Hono -------------------------------------------------------------------------------------------------------


def telemetry(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Records from (connection, source, topic, partition, key, value, headers, producer id)."""
    made = [
        ("c", connection, i, source, topic, partition, i, key, value, headers, 2, producer, False, "ok", None)
        for i, (connection, source, topic, partition, key, value, headers, producer) in enumerate(rows)
    ]
    return spark.createDataFrame(made, RECORDS)


def test_messages_are_those_of_the_object_layer(spark: SparkSession) -> None:
    rows = [(0, "produce", topic, 0, key, value, headers, -1) for _, topic, key, headers, value, _ in MESSAGES]
    at = EPOCH + timedelta(milliseconds=NOW)
    frame = kwire.spark.hono_messages(telemetry(spark, rows), now=at)
    for name in ("creation_time", "connected_until"):
        frame = frame.withColumn(name, sql.unix_millis(name))
    found = {row.frame: row for row in frame.collect()}
    for i, (name, topic, key, headers, value, _) in enumerate(MESSAGES):
        message = hono.read(topic, key, headers, value)
        if message is None:
            assert i not in found, name
            continue
        row = found.pop(i)
        assert [tuple(one) for one in row.violations] == [tuple(one) for one in message.violations], name
        for field in set(columns.HONO_MESSAGE.names) - {"expired", "connected_until", "violations"}:
            assert row[field] == getattr(message, field), (name, field)
        assert row.expired == hono.expired(message.creation_time, message.ttl, NOW), name
        assert (row.connected_until, row.error) == (message.connected_until, message.error), name
    assert found == {}


def test_a_tenant_of_10000_devices_reports_exactly_the_seeded_violations(spark: SparkSession) -> None:
    records, seeded = seeded_tenant()
    rows = [(0, "produce", *record[:5], record[5]) for record in records]
    found = kwire.spark.hono_violations(telemetry(spark, rows)).collect()
    assert len(seeded) == 200
    assert Counter((row.tenant, row.device_id, row.rule, row.detail) for row in found) == Counter(seeded)


def test_devices_are_followed_kind_by_kind(spark: SparkSession) -> None:
    headers = [(name, b"200") for name in ("device_id", "correlation-id", "status")] + [("content-type", b"a/b")]
    rows = [
        (partition, "produce", f"hono.{kind}.t", partition, b"200", b"x", headers, partition)
        for partition, kind in enumerate([*hono.KINDS] * 2)
    ]
    found = kwire.spark.hono_violations(telemetry(spark, rows)).collect()
    assert Counter((row.kind, row.rule) for row in found) == Counter(
        {(kind, "two_partitions"): 1 for kind in hono.KINDS}
        | {(kind, "two_producers"): 1 for kind in (hono.TELEMETRY, hono.EVENT)}
    )


def test_producers_that_are_not_idempotent_are_known_by_client_and_host(spark: SparkSession) -> None:
    headers = [("content-type", b"a/b"), ("device_id", b"d")]
    message = ("hono.telemetry.t", 0, b"d", b"x", headers)
    rows = [(0, "produce", *message, -1), (1, "produce", *message, -1), (2, "produce", *message, -1)]
    rows += [(3, "fetch", *message, -1)]
    frames = spark.createDataFrame(
        [("c", 0, 0, "request", "a", "h1"), ("c", 1, 0, "request", "a", "h1"), ("c", 3, 1, "request", "x", "h3")],
        "capture string, connection bigint, api_key int, direction string, client_id string, client_host string",
    )
    more = spark.createDataFrame([("c", 2, 0, "request", "b", "h1")], frames.schema)
    records = telemetry(spark, rows)
    assert kwire.spark.hono_violations(records).collect() == []
    # A connection more is no other producer.
    assert kwire.spark.hono_violations(records, frames).collect() == []
    (found,) = kwire.spark.hono_violations(records, frames.union(more)).collect()
    assert (found.rule, found.detail) == (
        "two_producers",
        "the device has the producers client a on h1, client b on h1",
    )


def test_control_records_and_damaged_ones_are_not_judged(spark: SparkSession) -> None:
    row = ("c", 0, 0, "fetch", "hono.telemetry.t", 0, 0, None, None, None, 2, -1)
    frame = spark.createDataFrame([(*row, True, "ok", None), (*row, False, "malformed", "cut off")], RECORDS)
    (found,) = kwire.spark.hono_messages(frame).collect()
    assert (found.violations, found.error) == ([], "record malformed: cut off")
    assert kwire.spark.hono_violations(frame).collect() == []


def test_violations_of_the_golden_capture_are_those_that_were_sent(spark: SparkSession) -> None:
    records, frames = table(spark, "records"), table(spark, "frames")
    found = kwire.spark.hono_violations(records.where("source = 'produce'"), frames).collect()
    assert sorted([row.tenant, row.device_id, row.rule] for row in found if row.device_id) == sorted(
        one for one in MEANT["violations"] if one[1] and not (one[2] == "bad_header" and one[1] is None)
    )
    assert [row.rule for row in found if row.device_id is None] == ["missing_header"]


def test_messages_of_the_golden_capture_expired_on_their_way(spark: SparkSession) -> None:
    messages = kwire.spark.hono_messages(table(spark, "records"))
    assert messages.where("record_source = 'produce'").count() == MEANT["messages"]
    assert [row.device_id for row in messages.where("expired").select("device_id").distinct().collect()] == [
        *MEANT["expired"]
    ]
    assert messages.where("device_id = 'press-1' and record_source = 'fetch' and expired is false").count() == 4


def test_producers_of_the_golden_capture(spark: SparkSession) -> None:
    found = kwire.spark.hono_producers(table(spark, "messages"), table(spark, "records")).collect()
    by_client = {row.client_id: row for row in found}
    assert set(by_client) == {"adapter-both", "adapter-fast", "adapter-bad"}
    both, fast, bad = (by_client[f"adapter-{name}"] for name in ("both", "fast", "bad"))
    assert (both.semantics, both.acks, both.idempotent, both.tenants) == ("at_least_once", [-1], True, ["factory"])
    assert (fast.semantics, fast.acks, fast.idempotent, fast.max_in_flight) == ("at_most_once", [0], False, 0)
    assert (bad.semantics, bad.acks, bad.idempotent, bad.producer_ids) == ("at_most_once", [1], False, [])
    assert [row.violations for row in (both, fast)] == [[], []]
    assert [one.rule for one in bad.violations if one.rule != "order_not_kept"] == ["qos_1_at_most_once"]


MESSAGES_OF = (
    "capture string, connection bigint, frame bigint, direction string, api_key int, correlation_id int, "
    "client_id string, client_host string, body string"
)


def of_producer(connection: int, acks: int | None, steps: str) -> list[tuple[Any, ...]]:
    """The messages of one producer: ``>`` is a Produce request, ``<`` a response to the oldest one that has none."""
    rows: list[tuple[Any, ...]] = []
    sent, got = 0, 0
    for i, step in enumerate(steps):
        if step == ">":
            body = "{}" if acks is None else json.dumps({"acks": acks})
            rows.append(("c", connection, i, "request", 0, sent, "client", "host", body))
            sent += 1
        else:
            rows.append(("c", connection, i, "response", 0, got, "client", "host", "{}"))
            got += 1
    return [*rows, ("c", connection, 1000, "request", 3, 0, "client", "host", "{}")]


PRODUCERS: list[tuple[int | None, str, bool, bytes, str | None, int, list[str]]] = [
    # AT LEAST ONCE: acks of all replicas; idempotent with up to five in flight, or one.
    (-1, "><><", False, b"1", "at_least_once", 1, []),
    (-1, ">>>>><<<<<", True, b"1", "at_least_once", 5, []),
    (-1, ">>>>>><<<<<<", True, b"1", "at_least_once", 6, ["order_not_kept"]),
    (-1, ">><<", False, b"0", "at_least_once", 2, ["order_not_kept"]),
    # AT MOST ONCE: no acks, or not those of all replicas.
    (0, ">>>>>>>", False, b"0", "at_most_once", 0, []),
    (1, "><><", False, b"0", "at_most_once", 1, []),
    (1, "><>><<", False, b"0", "at_most_once", 2, ["order_not_kept"]),
    # Both with one producer: it must be configured for AT LEAST ONCE.
    (0, ">", False, b"1", "at_most_once", 0, ["qos_1_at_most_once"]),
    (1, "><", False, b"1", "at_most_once", 1, ["qos_1_at_most_once"]),
    # The last request has no answer in the capture, and does not count as one that waits.
    (-1, ">>>><", False, b"0", "at_least_once", 1, []),
    (None, "><", False, b"1", None, 1, []),
]
"""Acks, messages, whether it is idempotent, the QoS of its record; its semantics, requests in flight, broken rules."""


def test_delivery_semantics_against_the_document(spark: SparkSession) -> None:
    frames, records = [], []
    for i, (acks, steps, idempotent, qos, *_) in enumerate(PRODUCERS):
        frames += of_producer(i, acks, steps)
        headers = [("content-type", b"a/b"), ("device_id", b"d%d" % i), ("qos", qos)]
        records.append((i, "produce", "hono.telemetry.t", 0, b"d%d" % i, b"x", headers, 7 + i if idempotent else -1))
    messages = spark.createDataFrame(frames, MESSAGES_OF)
    found = kwire.spark.hono_producers(messages, telemetry(spark, records)).collect()
    by_connection = {row.connection: row for row in found}
    assert len(found) == len(by_connection) == len(PRODUCERS)
    of_events = [(*row[:2], "hono.event.t", *row[3:]) for row in records]
    for row in kwire.spark.hono_producers(messages, telemetry(spark, of_events)).collect():
        less = row.semantics == "at_most_once"
        assert [one.rule for one in row.violations if one.rule.startswith("event")] == ["event_at_most_once"] * less
        assert row.events == 1
    for i, (_, steps, idempotent, _, semantics, in_flight, rules) in enumerate(PRODUCERS):
        row = by_connection[i]
        assert row.requests == steps.count(">"), i
        assert (row.semantics, row.max_in_flight, row.idempotent) == (semantics, in_flight, idempotent), i
        assert [one.rule for one in row.violations] == rules, i
        assert set(rules) <= set(hono.RULES)
