"""Every SQL query of docs/reference/tables runs, and its rows are those that Python makes of the same tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from docs_queries import Case, Row, Tables, compare, path_of, read, views, written
from pyspark.sql import SparkSession

from kwire import capture

CAPTURES = (
    "kafka-3.9-zk-kafka-python/pinned-0.9",
    "kafka-4.3-kraft-java/share",
    "kafka-4.3-kraft-java/streams",
    "kafka-4.3-kraft-librdkafka/current",
    # With rows that nobody answered, and that cannot be read.
    "kafka-3.9-kraft-raw/every-version",
)
COLUMNS = {
    "frames": (),
    "records": ("delivery_count", "committed_offset"),
    "partitions": ("broker_host", "broker_port"),
    "batches": (),
    "connections": (),
    "group_events": (),
    "share_deliveries": (),
    "streams_tasks": (),
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[Tables]:
    commits: list[pa.RecordBatch] = []
    for one in CAPTURES:
        commits += capture.read(path_of(one), "messages", api="OffsetCommit", direction="request", name=one)
    with views(spark, {**read(CAPTURES, COLUMNS), "commits": pa.Table.from_batches(commits)}) as made:
        yield made


def of_frame(row: Row) -> tuple[Any, ...]:
    return row["capture"], row["connection"], row["frame"]


def by_client(made: Tables) -> Counter[tuple[Any, ...]]:
    frames = {of_frame(one): one for one in made["frames"]}
    records: Counter[tuple[Any, ...]] = Counter()
    sizes: Counter[tuple[Any, ...]] = Counter()
    for one in made["records"]:
        if one["source"] == "produce" and one["status"] == "ok":
            frame = frames[of_frame(one)]
            key = frame["client_host"], frame["client_id"], one["topic"]
            records[key] += 1
            sizes[key] += len(one["value"] or b"")
    return Counter((*key, count, sizes[key] or None) for key, count in records.items())


def unanswered(made: Tables) -> Counter[tuple[Any, ...]]:
    asked = [one for one in made["frames"] if one["direction"] == "request" and one["status"] == "ok"]
    answers: dict[tuple[Any, ...], list[datetime]] = defaultdict(list)
    for one in made["frames"]:
        if one["direction"] == "response" and one["correlation_id"] is not None:
            answers[one["capture"], one["connection"], one["correlation_id"]].append(one["timestamp"])
    none = [
        one
        for one in asked
        if not any(at >= one["timestamp"] for at in answers[one["capture"], one["connection"], one["correlation_id"]])
    ]
    return Counter(of_frame(one) for one in none)


def commits(made: Tables) -> Counter[tuple[Any, ...]]:
    return Counter(
        (one["body"]["group_id"], topic["name"], each["partition_index"], each["committed_offset"])
        for one in made["commits"]
        if one["body"] is not None
        for topic in one["body"]["topics"]
        for each in topic["partitions"]
    )


def errors(made: Tables) -> Counter[tuple[Any, ...]]:
    found = Counter(
        (one["api_name"], one["topic"], one["error"])
        for one in made["partitions"]
        if one["direction"] == "response" and one["status"] == "ok" and one["error"] not in (None, "NONE")
    )
    return Counter((*key, count) for key, count in found.items())


def lags(made: Tables) -> Counter[tuple[Any, ...]]:
    refused = {
        (one["capture"], one["connection"], one["correlation_id"], one["topic"], one["partition"])
        for one in made["partitions"]
        if one["api_name"] == "OffsetCommit" and one["error"] not in (None, "NONE")
    }
    latest: dict[tuple[Any, ...], tuple[datetime, int]] = {}
    newest: dict[tuple[Any, ...], int] = {}
    for one in made["partitions"]:
        where = one["topic"], one["partition"]
        key = one["capture"], one["connection"], one["correlation_id"], *where
        if one["status"] != "ok":
            continue
        if one["api_name"] == "OffsetCommit" and one["direction"] == "request" and key not in refused:
            group = (one["group_id"], *where)
            latest[group] = max(
                latest.get(group, (one["frame_timestamp"], -1)), (one["frame_timestamp"], one["offset"])
            )
        if one["api_name"] == "Fetch" and one["direction"] == "response" and one["high_watermark"] is not None:
            newest[where] = max(newest.get(where, -1), one["high_watermark"])
    return Counter(
        (*group, offset, newest[group[1:]], newest[group[1:]] - offset)
        for group, (_, offset) in latest.items()
        if group[1:] in newest and None not in group
    )


def again(made: Tables) -> Counter[tuple[Any, ...]]:
    found: dict[tuple[Any, ...], int] = {}
    for one in made["records"]:
        if one["source"] == "fetch" and one["status"] == "ok" and (one["delivery_count"] or 0) > 1:
            key = one["topic"], one["partition"], one["offset"]
            found[key] = max(found.get(key, 0), one["delivery_count"])
    return Counter((*key, count) for key, count in found.items())


def until_fetched(made: Tables) -> Counter[tuple[Any, ...]]:
    sent: dict[tuple[Any, ...], list[datetime]] = defaultdict(list)
    fetched: dict[tuple[Any, ...], list[datetime]] = defaultdict(list)
    for one in made["records"]:
        if one["status"] == "ok" and None not in (one["topic"], one["partition"]):
            produced = one["source"] == "produce"
            offset = one["committed_offset"] if produced else one["offset"]
            if offset is not None:
                (sent if produced else fetched)[one["topic"], one["partition"], offset].append(one["frame_timestamp"])
    found = {key: min(fetched[key]) - min(times) for key, times in sent.items() if key in fetched}
    assert all(timedelta(0) <= one < timedelta(minutes=1) for one in found.values())
    return Counter((*key, one) for key, one in found.items())


def by_compression(made: Tables) -> Counter[tuple[Any, ...]]:
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 5)
    for one in made["batches"]:
        if one["source"] == "produce":
            each = sums[one["topic"], one["partition"], one["compression"]]
            for at, value in enumerate(
                (1, one["count"], one["size"], one["uncompressed_size"], one["compressed_size"])
            ):
                each[at] += value or 0
    return Counter((*key, *some[:3], some[3] / some[4] if some[4] else None) for key, some in sums.items())


def records_of_batches(made: Tables) -> Counter[tuple[Any, ...]]:
    batches = Counter((*of_frame(one), one["batch"]) for one in made["batches"] if one["batch"] is not None)
    return Counter(
        {
            (*of_frame(one), one["batch"], one["offset"]): batches[*of_frame(one), one["batch"]]
            for one in made["records"]
            if one["batch"] is not None and batches[*of_frame(one), one["batch"]]
        }
    )


def by_software(made: Tables) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    sizes: Counter[tuple[Any, ...]] = Counter()
    for one in made["connections"]:
        if one["status"] == "ok":
            key = one["client_host"], one["software_name"], one["software_version"]
            found[key] += 1
            sizes[key] += one["client_bytes"]
    return Counter((*key, count, sizes[key]) for key, count in found.items())


def by_status(made: Tables) -> Counter[tuple[Any, ...]]:
    found = Counter(one["status"] for one in made["frames"])
    return Counter((status, count) for status, count in found.items())


def rebalances(made: Tables) -> Counter[tuple[Any, ...]]:
    of: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
    for one in made["group_events"]:
        if one["event"] == "rebalance_ended":
            of[one["group_id"], one["cause"], one["cause_member_id"]].append(one["duration_ms"])
    return Counter((*key, len(took), max(took)) for key, took in of.items())


def over_and_over(made: Tables) -> Counter[tuple[Any, ...]]:
    of: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for one in made["share_deliveries"]:
        if one["outcome"] in ("released", "expired"):
            of[one["topic"], one["partition"], one["first_offset"], one["last_offset"]].append(one)
    most = {key: max(one["delivery_count"] for one in some) for key, some in of.items()}
    return Counter(
        (*key, count, len({one["client_id"] for one in of[key]})) for key, count in most.items() if count > 2
    )


def moves(made: Tables) -> Counter[tuple[Any, ...]]:
    of: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
    for one in made["streams_tasks"]:
        if one["role"] == "active":
            of[one["group_id"], one["subtopology"], one["partition"]].append(one["duration_ms"])
    return Counter((*key, len(took), min(took)) for key, took in of.items())


CASES = {
    "README": [Case("sum(length(r.value)) AS bytes", by_client)],
    "frames": [
        Case("SELECT status, count(*) FROM frames", by_status),
        Case("LEFT ANTI JOIN frames a", unanswered, ("capture", "connection", "frame")),
    ],
    "messages": [Case("FROM commits", commits)],
    "partitions": [Case("GROUP BY ALL ORDER BY 4 DESC", errors), Case("newest - committed AS lag", lags)],
    "records": [Case("max(delivery_count) AS deliveries", again), Case("AS until_fetched", until_fetched)],
    "batches": [
        Case("AS ratio", by_compression),
        Case("FROM records JOIN batches", records_of_batches, ("capture", "connection", "frame", "batch", "offset")),
    ],
    "connections": [Case("software_name, software_version", by_software)],
    "group_events": [Case("AS longest_ms", rebalances)],
    "share_deliveries": [Case("AS clients", over_and_over)],
    "streams_tasks": [Case("AS owners", moves)],
}
CASES = {f"docs/reference/tables/{name}.md": cases for name, cases in CASES.items()}


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize(("page", "number"), [(page, at) for page, cases in CASES.items() for at in range(len(cases))])
def test_its_rows_are_those_that_python_makes_of_the_tables(
    spark: SparkSession, tables: Tables, page: str, number: int
) -> None:
    compare(spark, written(page)[number], CASES[page][number], tables)
