"""Who writes and reads what: edges, against what clients told of themselves, and graphs of hostile names."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.cli import main
from kwire.report.lineage import TABLES, Edge, Lineage, batch_of, dot, mermaid, summary
from kwire.tables import table

GOLDEN = Path(__file__).parents[2] / "golden"
SHARED = GOLDEN / "kafka-4.3-kraft-java" / "share.pcap"
BROKERS = GOLDEN / "kafka-3.9-zk-brokers" / "protocol-3.9.pcap"


def edges(path: Path) -> list[Edge]:
    made = Lineage()
    with path.open("rb") as file:
        for name, batch in capture.read(file, tables=list(TABLES), columns=TABLES, name="x"):
            made.add(name, batch)
    found = made.result()
    batch_of(found).validate(full=True)
    return found


def test_readers_and_their_groups_are_what_the_clients_told() -> None:
    found = edges(SHARED)
    told = [json.loads(line) for line in SHARED.with_suffix(".told.jsonl").read_text().splitlines()]
    read = {(one["topic"], one["group"]) for one in told if one["direction"] == "fetch"}
    assert read <= {(edge.topic, group) for edge in found if edge.role == "reads" for group in edge.groups}


def test_records_that_are_written_are_counted() -> None:
    path = GOLDEN / "kafka-4.3-kraft-franz-go" / "current.pcap"
    told = [json.loads(line) for line in path.with_suffix(".told.jsonl").read_text().splitlines()]
    sent = Counter(one["topic"] for one in told if one.get("direction") == "produce")
    written: Counter[str] = Counter()
    for edge in edges(path):
        if edge.role == "writes":
            written[edge.topic] += edge.records
            assert edge.messages > 0
            assert edge.first_seen <= edge.last_seen
    assert sent
    assert all(written[topic] == count for topic, count in sent.items())


def test_followers_replicate() -> None:
    found = edges(BROKERS)
    assert {one.role for one in found} == {"writes", "reads", "replicates"}
    assert all("fetcher" in (one.client_id or "") for one in found if one.role == "replicates")


HOSTILE = [
    Edge('a"]; x -> y [label="', "writes", "10.0.0.1", "<script>alert(1)</script>", [], 1, 2, 3),
    Edge("b\\", "reads", "10.0.0.1", "\x1b]0;x\x07", ['g"|--> n9[["'], 1, 2, 3),
]


def test_graphs_show_hostile_names_as_text() -> None:
    made = dot(HOSTILE)
    # Between quotes, and what is quoted ends where it should.
    statement = r'  n\d+( -> n\d+)? \[(shape=\w+, )?label="(\\.|[^"\\])*"\];'
    assert len(made.splitlines()) == 9
    assert all(re.fullmatch(statement, line) for line in made.splitlines()[2:-1])
    drawn = mermaid(HOSTILE)
    assert "<script" not in drawn
    assert "\x1b" not in drawn
    arrow = r'  n\d+ -->\|"2 records, 3 bytes"\| n\d+'
    node = r'  n\d+(\[\(|\[\[|\[)"[\w .:/#;<>-]*"(\)\]|\]\]|\])'
    assert all(re.fullmatch(f"{arrow}|{node}", line) for line in drawn.splitlines()[1:])


def test_what_is_written_and_not_read_is_told() -> None:
    assert summary(HOSTILE) == ["2 topics: 1 written, 1 read; 1 written and not read."]
    assert summary([]) == ["No topic was written or read."]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lineage", str(SHARED)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:2] == ["topic", "role"]
    for form, begin in (("dot", "digraph lineage {"), ("mermaid", "flowchart LR"), ("json", "{")):
        assert main(["lineage", str(SHARED), "--format", form]) == 0
        assert capsys.readouterr().out.startswith(begin)
    assert main(["lineage", "no such file"]) == 2


def test_what_is_refused_was_not_written() -> None:
    base = {
        "capture": "x", "connection": 0, "client_host": "h", "client_id": "c", "api_name": "Produce", "topic": "t",
        "partition": 0, "status": "ok", "record_bytes": 10, "records": 1,
    }  # fmt: skip
    rows: list[dict[str, Any]] = []

    def said(of: int, **more: Any) -> None:
        row = {**base, "correlation_id": of, "frame_timestamp": len(rows), "direction": "request"} | more
        rows.append({**row, "frame": 2 * of + (row["direction"] == "response")})

    for number in range(9):
        said(number, topic="never")
        said(number, topic="never", direction="response", error="NOT_ENOUGH_REPLICAS")
    # Of two partitions one is refused; several are in flight; the last is not answered.
    for number in range(10, 14):
        said(number)
        said(number, partition=1)
    for number in range(10, 13):
        said(number, direction="response", error="NONE")
        said(number, partition=1, direction="response", error="TOPIC_AUTHORIZATION_FAILED")
    schema = table("partitions").chosen(TABLES["partitions"])
    whole = pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)
    for size in (2, 6, len(rows)):
        made = Lineage()
        for first in range(0, len(rows), size):
            made.add("partitions", whole.slice(first, size))
        (edge,) = made.result()
        assert (edge.topic, edge.messages, edge.records) == ("t", 4, 5)
        assert made.result() == [edge]
