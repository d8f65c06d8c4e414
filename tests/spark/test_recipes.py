"""The SQL of docs/how-to/ten-questions.md: its rows, and what the commands say. tests/unit/house runs its commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from docs_queries import ROOT, Case, Row, Rows, Tables, compare, grouped, path_of, read, total, views, written
from pyspark.sql import SparkSession

from kwire import capture
from kwire.report.lineage import Lineage
from kwire.report.overview import TABLES, Overview

CAPTURES = (
    "kafka-3.9-zk-auth/mechanisms",
    "kafka-3.9-zk-kafka-python/pinned-0.9",
    "kafka-4.3-kraft-librdkafka/current",
)
NAMES = ("frames", "partitions", "calls", "connections")
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
FETCHES = ("Fetch", "ShareFetch")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[Tables]:
    with views(spark, read(CAPTURES, dict.fromkeys(NAMES, ()))) as made:
        yield made


def ok(made: Tables, name: str, direction: str | None = None) -> list[Row]:
    return [one for one in made[name] if one["status"] == "ok" and direction in (None, one.get("direction"))]


def carried(made: Tables) -> Rows:
    some = grouped((one for one in ok(made, "partitions") if one["api_name"] in ("Produce", *FETCHES)), "topic")
    return Counter(
        (
            *key,
            total(one["record_bytes"] if one["direction"] == "request" else 0 for one in rows),
            total(one["record_bytes"] if one["direction"] == "response" else 0 for one in rows),
        )
        for key, rows in some.items()
    )


def edges(made: Tables) -> Rows:
    rows = [
        one | {"role": role}
        for role, direction, apis in (("writes", "request", ("Produce",)), ("reads", "response", FETCHES))
        for one in ok(made, "partitions", direction)
        if one["api_name"] in apis and (one["record_bytes"] or 0) > 0
    ]
    some = grouped(rows, "topic", "role", "client_host", "client_id")
    return Counter(
        (*key, total(one["records"] for one in each), sum(one["record_bytes"] for one in each))
        for key, each in some.items()
    )


def slow(made: Tables) -> Rows:
    rows = (one for one in made["frames"] if one["latency_ms"] is not None)
    found: Rows = Counter()
    for key, each in grouped(rows, "api_name", "broker_host", "broker_port").items():
        times = [one["latency_ms"] for one in each]
        found[*key, len(each), float(np.percentile(times, 50)), float(np.percentile(times, 99))] += 1
    return found


def errors(made: Tables) -> Rows:
    found = Counter(
        (one["api_name"], error, one["client_host"], one["client_id"])
        for one in made["frames"]
        for error in one["errors"] or ()
    )
    return Counter((*key, times) for key, times in found.items())


def lags(made: Tables) -> Rows:
    key = ("capture", "connection", "correlation_id", "topic", "partition")
    refused = {
        tuple(one[name] for name in key)
        for one in made["partitions"]
        if one["api_name"] in COMMITS and one["direction"] == "response" and one["error"] not in (None, "NONE")
    }
    last: dict[tuple[Any, ...], tuple[Any, int]] = {}
    for one in ok(made, "partitions", "request"):
        if one["api_name"] in COMMITS and tuple(one[name] for name in key) not in refused:
            group = one["group_id"], one["topic"], one["partition"]
            last[group] = max(last.get(group, (one["frame_timestamp"], -1)), (one["frame_timestamp"], one["offset"]))
    newest: dict[tuple[Any, ...], int] = {}
    for one in ok(made, "partitions"):
        if one["api_name"] == "Fetch" and (one["high_watermark"] or -1) >= 0:
            where = one["topic"], one["partition"]
            newest[where] = max(newest.get(where, -1), one["high_watermark"])
    return Counter(
        (*group, newest[group[1:]] - offset)
        for group, (_, offset) in last.items()
        if group[1:] in newest and None not in group[1:]
    )


def old(made: Tables) -> Rows:
    least = {"Produce": 3, "Fetch": 4}
    found: Rows = Counter()
    for one in made["connections"]:
        for api in one["apis"] or ():
            if api["api_version"] < least.get(api["api_name"], 0):
                client = one["client_host"], tuple(one["client_ids"]), one["software_name"]
                found[*client, api["api_name"], api["api_version"]] += api["requests"]
    return Counter((*key, requests) for key, requests in found.items())


def sent(made: Tables) -> Rows:
    rows = (one for one in ok(made, "partitions", "request") if one["api_name"] == "Produce")
    found: Rows = Counter()
    for key, each in grouped(rows, "client_host", "client_id", "topic", "compression").items():
        records, batches = total(one["records"] for one in each), total(one["batches"] for one in each)
        ratio = None if records is None or not batches else records / batches
        found[*key, total(one["record_bytes"] for one in each), ratio] += 1
    return found


def _beats(one: Mapping[str, Any]) -> bool:
    """Whether it is a heartbeat of the newer protocols, which joins with epoch 0 and leaves with -1 or -2."""
    return str(one["api_name"]).endswith("GroupHeartbeat") and one["generation"] is not None


def rebalances(made: Tables) -> Rows:
    rows = (one for one in ok(made, "calls", "request") if one["group_id"] is not None)
    found = Counter(
        (
            *key,
            sum(one["api_name"] == "JoinGroup" or (_beats(one) and one["generation"] == 0) for one in each),
            sum(one["api_name"] == "LeaveGroup" or (_beats(one) and one["generation"] < 0) for one in each),
            max((one["generation"] for one in each if one["generation"] is not None), default=None),
        )
        for key, each in grouped(rows, "group_id", "client_host", "client_id").items()
    )
    return Counter({row: times for row, times in found.items() if row[3] or row[4]})


def failed(made: Tables) -> Rows:
    rows = (one for one in made["connections"] if one["sasl_outcome"] == "failed")
    some = grouped(rows, "client_host", "client_ids", "sasl_mechanism", "sasl_error")
    return Counter((*key, len(each)) for key, each in some.items())


def whole(made: Tables) -> Rows:
    some = grouped(ok(made, "connections"), "client_host", "broker_host", "broker_port")
    return Counter(
        (
            *key,
            len(each),
            sum(one["client_missing_bytes"] + one["broker_missing_bytes"] for one in each),
            sum(one["client_repeats"] + one["broker_repeats"] for one in each),
            sum(one["unanswered"] for one in each),
        )
        for key, each in some.items()
    )


CASES = [
    Case("AS written", carried),
    Case("AS role", edges),
    Case("AS p99", slow),
    Case("explode(errors)", errors),
    Case("newest - committed AS lag", lags),
    Case("explode(apis)", old),
    Case("AS records_a_batch", sent),
    Case("AS joins", rebalances),
    Case("sasl_error", failed),
    Case("AS repeats", whole),
]


@pytest.mark.wide
@pytest.mark.parametrize("number", range(len(CASES)))
def test_its_rows_are_those_that_python_makes_of_the_tables(spark: SparkSession, tables: Tables, number: int) -> None:
    compare(spark, written("docs/how-to/ten-questions.md")[number], CASES[number], tables)


def test_the_page_says_which_tables_it_needs() -> None:
    page = (ROOT / "docs" / "how-to" / "ten-questions.md").read_text("utf-8")
    assert all(f'"{name}"' in page for name in NAMES)


@pytest.mark.wide
def test_the_commands_say_the_same(tables: Tables) -> None:
    over = Overview()
    for one in CAPTURES:
        for name, batch in capture.read(path_of(one), tables=list(TABLES), columns=TABLES, name=one):
            over.add(name, batch)
    over.finish()
    assert {key[0]: key[1:] for key in carried(tables) if any(key[1:])} == {
        topic: (sums[1], sums[4]) for topic, sums in over.topics.sums.items()
    }
    lineage: Lineage = over.lineage
    assert {(topic, role, client) for topic, role, _, client, *_ in edges(tables)} == {
        (one.topic, one.role, one.client_id) for one in lineage.result()
    }
    assert sum(key[3] for key in slow(tables)) == over.totals["latencies"]
    assert sum(key[-1] for key in errors(tables)) == over.totals["error_codes"]
    assert {key[:3]: max(0, key[3]) for key in lags(tables)} == {
        (group, topic, partition): lag for group, topic, partition, lag in over.finder.lags()
    }
    assert sum(key[4] for key in sent(tables)) == over.totals["written_bytes"]
    assert sum(key[3] for key in rebalances(tables)) == sum(sums[1] for sums in over.groups.sums.values())
    (finding,) = {one.count for one in over.finder.result() if one.rule == "sasl-failures"}
    assert finding in {key[-1] for key in failed(tables)}
