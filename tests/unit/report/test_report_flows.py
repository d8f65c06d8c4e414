"""Transactions and the way of records on a report: the sums are those of the rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.report.flows import ENDS, TABLES, Flows
from kwire.report.members import TABLES as OF_MEMBERS
from kwire.report.members import Members
from kwire.report.overview import TABLES as ALL
from kwire.report.overview import of_tables
from kwire.report.page import Source, render
from kwire.report.sums import Clock
from kwire.report.tallies import rows_of

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
GROUPS = Path(__file__).parents[2] / "golden" / "groups" / "java.gz"


@pytest.fixture(scope="module")
def made() -> tuple[Flows, dict[str, list[dict[str, Any]]]]:
    flows, rows = Flows(Clock()), {}
    for name, columns in TABLES.items():
        batches = list(capture.read(CAPTURE, name, columns=list(columns), dictionaries=True))
        for batch in batches:
            for first in range(0, batch.num_rows, 13):
                getattr(flows, name)(rows_of(name, [batch.slice(first, 13)]))
        rows[name] = [row for batch in batches for row in batch.to_pylist()]
    return flows, rows


def test_transactions_are_counted_by_their_ends(made: tuple[Flows, dict[str, list[dict[str, Any]]]]) -> None:
    flows, rows = made
    ((name, (count, *ends)),) = flows.ends.largest(5)
    assert name == "java-id"
    assert count == len(rows["transactions"])
    words = Counter(row["end"] for row in rows["transactions"])
    assert dict(zip(ENDS, ends, strict=True)) == {word: words[word] for word in ENDS}
    assert flows.wrote.sums["java-id"][:2] == [
        sum(row[one] for row in rows["transactions"]) for one in ("records", "record_bytes")
    ]
    assert flows.durations["java-id"].most == max(row["duration_ms"] for row in rows["transactions"])


def test_records_are_counted_by_topic_and_reader(made: tuple[Flows, dict[str, list[dict[str, Any]]]]) -> None:
    flows, rows = made
    got: Counter[tuple[str, str]] = Counter()
    again: Counter[tuple[str, str]] = Counter()
    for row in rows["journeys"]:
        if row["status"] in ("committed", "delivered"):
            key = row["topic"], row["group_id"] or row["client_id"]
            got[key] += row["records"]
            again[key] += row["records"] if row["deliveries"] > 1 else 0
    assert {key: sums[0] for key, sums in flows.ways.sums.items()} == got
    assert {key: sums[1] for key, sums in flows.ways.sums.items()} == again
    known = Counter[tuple[str, str]]()
    for row in rows["journeys"]:
        if row["fetch_ms"] is not None:
            known[row["topic"], row["group_id"] or row["client_id"]] += row["records"]
    assert {key: one.count for key, one in flows.fetched.items()} == known
    nobody = sum(row["records"] for row in rows["journeys"] if row["status"] == "undelivered")
    assert sum(flows.nobody.values()) == nobody
    over_time = sum(count for line in flows.waits.of.values() for (count,) in line.values())
    assert over_time == known.total()


def test_the_page_has_sections_for_both() -> None:
    columns = {name: list(one) for name, one in ALL.items()}
    page = render(of_tables(capture.read(CAPTURE, tables=list(ALL), columns=columns)), [Source("x.pcap")])
    for name in ("transactions", "journeys"):
        assert f'<section id="{name}">' in page
    assert "java-id" in page
    assert "java-classic" in page


def test_members_are_there_from_their_join_to_their_leave() -> None:
    made = Members()
    for batch in capture.read(CAPTURE, "group_events", columns=list(OF_MEMBERS["group_events"])):
        for first in range(0, batch.num_rows, 5):
            made.add(rows_of("group_events", [batch.slice(first, 5)]))
    rebalances, one, other = made.courses("java-classic")
    group = made.groups["java-classic"]
    assert len(rebalances.spans) == 2
    assert [end for _, end in one.spans] == [group.last]
    assert other.name == "second"
    assert other.partitions == 5
    assert group.first is not None
    assert group.first <= one.spans[0][0] < other.spans[0][0] < group.last


def test_a_member_may_come_again() -> None:
    names = ["a", "a", "a", None, "b"]
    rows = {
        "timestamp": pa.array([1, 2, 5, 7, 8], pa.timestamp("us", "UTC")),
        "group_id": ["g"] * 5,
        "event": ["joined", "left", "joined", "rebalance_began", "joined"],
        "member_id": pa.array(names, pa.string()),
        "group_instance_id": pa.nulls(5, pa.string()),
        "client_id": ["c"] * 5,
        "partitions": pa.array([None, None, 3, None, 1], pa.int32()),
        "status": ["ok"] * 5,
    }
    made = Members()
    made.add(rows_of("group_events", [pa.RecordBatch.from_pydict(rows)]))
    rebalances, a, b = made.courses("g")
    assert (rebalances.spans, a.spans, b.spans) == ([[7, 8]], [[1, 2], [5, 8]], [[8, 8]])
    assert (a.partitions, b.partitions) == (3, 1)


def test_of_a_member_that_has_left_what_it_had_is_shown() -> None:
    rows = {
        "timestamp": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
        "group_id": ["g"] * 4,
        "event": ["joined", "assigned", "left", "fenced"],
        "member_id": ["a", "b", "a", "b"],
        "group_instance_id": pa.nulls(4, pa.string()),
        "client_id": ["c"] * 4,
        "partitions": pa.array([6, 2, 0, 0], pa.int32()),
        "status": ["ok"] * 4,
    }
    made = Members()
    made.add(rows_of("group_events", [pa.RecordBatch.from_pydict(rows)]))
    assert [one.partitions for one in made.courses("g")[1:]] == [6, 2]


def test_groups_of_all_protocols_have_joins_and_leaves_and_share_groups_are_readers() -> None:
    columns = {name: list(one) for name, one in ALL.items()}
    over = of_tables(capture.read(GROUPS, tables=list(ALL), columns=columns))
    joined = {group: (joins, leaves) for group, (_, joins, leaves, *_) in over.groups.sums.items()}
    events: Counter[tuple[str, str]] = Counter()
    for batch in capture.read(GROUPS, "group_events", columns=["group_id", "event"]):
        events.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for group in ("consumer", "share", "streams"):
        assert joined[group] == (events[group, "joined"], events[group, "left"]) == (2, 2)
    page = render(over, [Source("x.pcap")])
    nobody = page.split("Records that nobody got in the capture", 1)[1].split("</table>")[0]
    assert "paid" in nobody
    assert "shared" not in nobody
    assert "Topics that share groups read are left out." in nobody
