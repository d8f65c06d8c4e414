"""Transactions and the way of records on a report: the sums are those of the rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kwire import capture
from kwire.report.flows import ENDS, TABLES, Flows
from kwire.report.overview import TABLES as ALL
from kwire.report.overview import of_tables
from kwire.report.page import Source, render
from kwire.report.sums import Clock
from kwire.report.tallies import rows_of

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"


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
