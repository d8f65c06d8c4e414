"""Who writes and reads what: edges, against what clients told of themselves, and graphs of hostile names."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kwire import capture
from kwire.cli import main
from kwire.report.lineage import TABLES, Edge, Lineage, batch_of, dot, mermaid, summary

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
