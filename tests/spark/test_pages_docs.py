"""The SQL of pages that have little of it, and of the examples: its rows are those that Python makes."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from docs_queries import GOLDEN, Case, Row, Rows, Tables, compare, grouped, read, views, written
from pyspark.sql import SparkSession

import kwire.spark
from kwire import capture
from kwire.tables import table
from kwire.tables.definition import LogTable

CAPTURE = "kafka-3.9-zk-kafka-python/first-light"
EXAMPLE = "examples/body_json_or_variant.py"
SEGMENTS = "docs/how-to/log-segments.md"
BODIES = "docs/explanation/body-as-json.md"
CONNECT = "docs/how-to/spark-connect.md"
FLOWS = "docs/how-to/what-happened.md"
VALUES = "docs/how-to/values.md"


def bodies(made: Tables) -> list[tuple[Row, Any]]:
    """Rows of messages with their bodies as objects; null stays."""
    return [(one, None if one["body"] is None else json.loads(one["body"])) for one in made["messages"]]


def topics(body: Any) -> list[Any]:
    found = body.get("topics") if isinstance(body, dict) else None
    return found if isinstance(found, list) else []


def by_version(made: Tables) -> Rows:
    found: Rows = Counter()
    some = (one for one in made["frames"] if one["api_name"] in ("Produce", "Fetch"))
    for key, rows in grouped(some, "client_id", "api_name", "api_version").items():
        times = [one["latency_ms"] for one in rows if one["latency_ms"] is not None]
        found[*key, sum(one["direction"] == "request" for one in rows), max(times, default=None)] += 1
    return found


def commits(made: Tables) -> Rows:
    found: Rows = Counter()
    for one in made["records"]:
        if one["record_type"] == "OffsetCommit":
            value = {} if one["decoded_value"] is None else json.loads(one["decoded_value"])
            offset = value.get("offset")
            found[json.loads(one["decoded_key"])["group"], None if offset is None else str(offset)] += 1
    return found


def throttled(made: Tables) -> Rows:
    values = (None if body is None else body.get("throttle_time_ms") for _, body in bodies(made))
    return Counter((None if one is None else str(one),) for one in values)


def first_topics(made: Tables) -> Rows:
    def first(body: Any) -> str | None:
        found = topics(body)
        return found[0].get("name") if found and isinstance(found[0], dict) else None

    return Counter((first(body),) for _, body in bodies(made))


def of_metadata(made: Tables) -> Rows:
    return Counter(
        (topic["name"],) for one, body in bodies(made) if one["api_name"] == "Metadata" for topic in topics(body)
    )


def all_topics(made: Tables) -> Rows:
    return Counter(
        (topic.get("name") if isinstance(topic, dict) else None,) for _, body in bodies(made) for topic in topics(body)
    )


def http(made: Tables) -> Rows:
    header = re.compile(r"(?i)^ce-(id|source|type|specversion)$")
    rows = (one for one in made["records"] if any(header.search(each["key"]) for each in one["headers"] or ()))
    return Counter((*key, len(some)) for key, some in grouped(rows, "topic").items())


def as_text(made: Tables) -> Rows:
    return Counter((one["body"],) for one in made["messages"])


def as_objects(made: Tables) -> Rows:
    return Counter((None if body is None else json.dumps(body, sort_keys=True),) for _, body in bodies(made))


def how_long(made: Tables) -> Rows:
    found: Rows = Counter()
    some = [one for one in made["journeys"] if one["fetch_ms"] is not None]
    for key, rows in grouped(some, "topic", "group_id").items():
        waits = np.repeat([one["fetch_ms"] for one in rows], [one["records"] for one in rows])
        found[*key, len(waits), *(float(np.quantile(waits, part)) for part in (0.5, 0.99, 1))] += 1
    return found


def twice(made: Tables) -> Rows:
    names = ("topic", "partition", "first_offset", "last_offset", "group_id", "client_id", "deliveries", "status")
    some = (one for one in made["journeys"] if one["deliveries"] > 1 or one["status"] in ("skipped", "missing"))
    return Counter(tuple(one[name] for name in names) for one in some)


def not_committed(made: Tables) -> Rows:
    names = ("transactional_id", "producer_epoch", "client_id", "end", "cause", "records", "held_records")
    some = (one for one in made["transactions"] if one["end"] != "committed" or one["held_records"] > 0)
    return Counter((*(one[name] for name in names), ", ".join(one["held_readers"])) for one in some)


def single(made: Tables) -> Rows:
    names = ("group_id", "status")
    return Counter(
        (one["topic"], one["partition"], offset, *(one[name] for name in names))
        for one in made["journeys"]
        for offset in range(one["first_offset"], one["last_offset"] + 1)
    )


def customers(made: Tables) -> Rows:
    said = (one["value_json"] and json.loads(one["value_json"]) for one in made["records"])
    return Counter((one.get("customer") if isinstance(one, dict) else None,) for one in said)


CASES: dict[str, list[Case]] = {
    "docs/tutorial/data-engineer.md": [Case("AS slowest", by_version)],
    SEGMENTS: [Case("WHERE record_type = 'OffsetCommit'", commits)],
    BODIES: [
        Case("throttle_time_ms", throttled),
        Case("parse_json(body):topics[0].name", first_topics),
        Case("inline(from_json(body", of_metadata),
    ],
    CONNECT: [Case("kwire_api_name(18)", lambda _: Counter([("ApiVersions",)]))],
    FLOWS: [
        Case("slowest_ms", how_long),
        Case("deliveries > 1", twice),
        Case("held_records > 0", not_committed),
        Case("explode(sequence", single),
    ],
    "docs/how-to/cloudevents.md": [Case("RLIKE", http)],
    VALUES: [Case("kwire_from_registry(value, headers)), '$.customer'", customers)],
    EXAMPLE: [
        Case("SELECT j FROM j", as_text),
        Case("SELECT v FROM v", as_objects),
        Case("SELECT parse_json(j) FROM j", as_objects),
        Case("get_json_object(j, '$.topics[0].name')", first_topics),
        Case("parse_json(j):topics[0].name", first_topics),
        Case("v:topics[0].name", first_topics),
        Case("from_json(j", all_topics),
        Case("variant_explode(v:topics)", all_topics),
    ],
}


@pytest.fixture(scope="module")
def messages() -> dict[str, pa.Table]:
    return read([CAPTURE], {"frames": (), "messages": ()})


@pytest.mark.wide
def test_tutorial(spark: SparkSession, messages: dict[str, pa.Table]) -> None:
    page = "docs/tutorial/data-engineer.md"
    with views(spark, messages) as tables:
        compare(spark, written(page)[0], CASES[page][0], tables)


@pytest.mark.wide
def test_bodies_of_messages(spark: SparkSession, messages: dict[str, pa.Table]) -> None:
    with views(spark, messages) as tables:
        for page in (BODIES, CONNECT):
            for query, case in zip(written(page), CASES[page], strict=True):
                compare(spark, query, case, tables)


@pytest.mark.wide
def test_what_happened(spark: SparkSession) -> None:
    with views(spark, read(["kafka-4.3-kraft-java/clients"], {"journeys": (), "transactions": ()})) as tables:
        for query, case in zip(written(FLOWS), CASES[FLOWS], strict=True):
            compare(spark, query, case, tables)


@pytest.mark.wide
def test_records_of_segments(spark: SparkSession) -> None:
    segments = table("records", "log")
    assert isinstance(segments, LogTable)
    deep = segments.deep
    assert deep is not None
    parts: list[pa.RecordBatch] = []
    for path in sorted(GOLDEN.glob("segments/4.3-kraft/__consumer_offsets-*/*.log")):
        parts += deep.read(path)
    with views(spark, {"records": pa.Table.from_batches(parts)}) as tables:
        compare(spark, written(SEGMENTS)[0], CASES[SEGMENTS][0], tables)


@pytest.mark.wide
def test_values_of_records(spark: SparkSession) -> None:
    registry = str(GOLDEN / "values" / "registry.pcap")
    read = capture.read(str(GOLDEN / "values" / "shop.pcap"), "records", schemas=registry, values="json")
    kwire.spark.register_from_registry(spark, registry)
    with views(spark, {"records": pa.Table.from_batches(read)}) as tables:
        assert len(customers(tables)) > 1
        compare(spark, written(VALUES)[0], CASES[VALUES][0], tables)


@pytest.mark.wide
def test_cloudevents_of_http(spark: SparkSession) -> None:
    keys = [["Ce-Id"], ["ce-source", "ce-type"], ["ce_id"], ["x-ce-id"], ["ce-idx"], [], None, ["CE-SPECVERSION"]]
    rows = [
        {"topic": f"t{at % 2}", "headers": None if some is None else [{"key": one, "value": b"1"} for one in some]}
        for at, some in enumerate(keys)
    ]
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    made = pa.Table.from_pylist(rows, pa.schema([("topic", pa.string()), ("headers", pa.list_(header))]))
    with views(spark, {"records": made}) as tables:
        compare(spark, written("docs/how-to/cloudevents.md")[0], CASES["docs/how-to/cloudevents.md"][0], tables)


@pytest.mark.wide
@pytest.mark.parametrize("number", range(len(CASES[EXAMPLE])))
def test_json_and_variant(spark: SparkSession, messages: dict[str, pa.Table], number: int) -> None:
    with views(spark, messages) as tables:
        spark.sql("SELECT body AS j FROM messages").createOrReplaceTempView("j")
        spark.sql("SELECT parse_json(body) AS v FROM messages").createOrReplaceTempView("v")
        compare(spark, written(EXAMPLE)[number], CASES[EXAMPLE][number], tables)
        for name in ("j", "v"):
            spark.catalog.dropTempView(name)
