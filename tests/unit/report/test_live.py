"""What happens now: rates of the last seconds, whatever comes late, and findings that are told once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import capture
from kwire.report import live
from kwire.report.findings import Thresholds
from kwire.report.live import TABLES, Live
from kwire.tables import table

GOLDEN = Path(__file__).parents[2] / "golden"
SECOND = 1_000_000
SCHEMA = table("frames").chosen(TABLES["frames"])


def frames(*seconds: float, api: str = "Fetch", client: str = "c", **more: Any) -> pa.RecordBatch:
    rows = [
        {
            "capture": "x", "connection": 0, "frame": k, "timestamp": int(at * SECOND), "direction": "request",
            "client_host": "h", "client_id": client,
            "client_port": 5000, "broker_host": "b", "broker_port": 9092,
            "api_name": api, "size": 10, "latency_ms": None, "errors": [],
        } | more
        for k, at in enumerate(seconds)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def test_only_the_last_seconds_count() -> None:
    seen = Live(10)
    assert (seen.rates("api"), seen.all().requests) == ([], 0)
    seen.add("frames", frames(1, 2, 3, 12))
    assert seen.all().requests == 2  # 3 and 12
    seen.add("frames", frames(2.5, 11, api="Produce"))
    assert [(key, one.requests, one.bytes) for key, one in seen.rates("api")] == [("Fetch", 2, 20), ("Produce", 1, 10)]
    assert seen.all(20 * SECOND).requests == 2
    assert seen.all(40 * SECOND).requests == 0
    assert seen.frames == 6
    answers = {"direction": "response", "latency_ms": 5.0, "errors": ["NOT_LEADER_OR_FOLLOWER"]}
    seen.add("frames", frames(12, 12, client="d", **answers))
    (_, one), _ = seen.rates("client")[::-1]
    assert (one.responses, one.errors, one.latencies.quantile(0.5)) == (2, 2, 5.0)


def test_keys_are_bounded_and_old_seconds_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(live, "MOST_KEYS", 10)
    seen = Live(5)
    for second in range(20):
        clients = [frames(second, client=f"{second} {client}") for client in range(30)]
        (batch,) = pa.Table.from_batches(clients).combine_chunks().to_batches()
        seen.add("frames", batch)
    assert len(seen._of) <= 5
    assert all(len(one) <= 12 for one in seen._of.values())
    assert seen.all().requests == 150
    assert sum(one.requests for _, one in seen.rates("client")) == 150


@pytest.mark.wide
def test_keys_of_all_seconds_together_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(live, "MOST_OF_ALL", 40)
    seen = Live(10)
    for second in range(30):
        for client in range(30):
            seen.add("frames", frames(second, client=f"{second} {client}"))
        assert sum(map(len, seen._of.values())) == seen._held <= 40 + 3 * 10
        assert sum(one.requests for _, one in seen.rates("client")) == seen.all().requests == 30 * min(10, second + 1)


@pytest.mark.wide
def test_rules_that_remember_too_much_begin_anew(monkeypatch: Any) -> None:
    monkeypatch.setattr(live, "MOST_KEPT", 500)
    seen = Live(10)
    most = renewed = 0
    wrong = {"direction": "response", "errors": ["UNKNOWN_SERVER_ERROR"], "latency_ms": 1.0}
    for second in range(40):
        clients = [frames(second, client=f"{second} {client}", **wrong) for client in range(100)]
        (batch,) = pa.Table.from_batches(clients).combine_chunks().to_batches()
        before = seen._finder
        seen.add("frames", batch)
        most = max(most, before.kept())
        seen.look()
        renewed += seen._finder is not before
    assert renewed >= 5
    assert 500 < most < 2_000
    assert len(seen._known) < 2_000


def test_a_golden_capture_as_a_whole() -> None:
    path = GOLDEN / "kafka-4.3-kraft-java" / "share.pcap"
    made = []
    for window in (None, 5_000):
        seen = Live(600)
        with path.open("rb") as file:
            for name, batch in capture.read(file, tables=list(TABLES), columns=TABLES, name="x", window=window):
                seen.add(name, batch)
                seen.look()
        assert seen.look() == []
        topics = [(key, one.bytes, one.records) for key, one in seen.rates("topic")]
        made.append((seen.frames, topics, seen.all().errors))
    assert made[0] == made[1]
    rows = [row for batch in capture.read(io.BytesIO(path.read_bytes())) for row in batch.to_pylist()]
    assert made[0][0] == len(rows)
    assert made[0][2] == sum(bool(row["errors"]) for row in rows)
    told: dict[str, int] = {}
    for batch in capture.read(io.BytesIO(path.read_bytes()), "partitions"):
        for row in batch.to_pylist():
            if row["api_name"] in ("Produce", "Fetch", "ShareFetch") and row["status"] == "ok":
                told[row["topic"]] = told.get(row["topic"], 0) + (row["record_bytes"] or 0)
    assert {key: size for key, size, _ in made[0][1]} == told


def test_findings_are_told_once() -> None:
    seen = Live(10)
    wrong = {"direction": "response", "errors": ["PRODUCER_FENCED"], "latency_ms": 1.0}
    for _ in range(3):
        seen.add("frames", frames(1, **wrong))
        seen.look()
    assert [one.rule for one in seen.found] == ["fenced-producers"]
    # As many as there are by now, and no longer what is over.
    assert [one.count for one in seen.found] == [3]
    seen = Live(10, Thresholds(stopped_seconds=5.0))
    beat = {
        "capture": "x", "connection": 1, "frame": 7, "direction": "request", "status": "ok", "client_host": "h",
        "client_id": "c", "client_port": 5000, "broker_host": "b", "broker_port": 9092, "api_name": "Heartbeat",
        "group_id": "g", "member_id": "m", "generation": 3,
    }  # fmt: skip
    calls = table("calls").chosen(TABLES["calls"])
    beats = [{name: (beat | {"frame_timestamp": at * SECOND}).get(name) for name in calls.names} for at in (0, 9)]
    seen.add("frames", frames(0.5))
    seen.add("calls", pa.RecordBatch.from_pylist(beats, schema=calls))
    assert [one.rule for one in seen.look()] == ["stopped-consumers"]
    seen.add("frames", frames(10))
    assert seen.look() == []
    assert seen.found == []


def test_a_capture_that_is_shorter_than_the_seconds_is_not_divided_by_them() -> None:
    seen = Live(60)
    assert seen.span() == 60
    seen.add("frames", frames(*(k / 10 for k in range(41))))
    assert (seen.all().requests, seen.span()) == (41, 4.0)
    assert seen.span(14 * SECOND) == 14.0
    assert seen.span(600 * SECOND) == 59.0  # the second that has begun is not whole
    seen = Live(60)
    seen.add("frames", frames(5, 5.01))
    assert seen.span() == 1.0


def test_the_slow_second_is_told_when_it_is_long_gone() -> None:
    seen = Live(5)
    told = {"direction": "response", "api": "Produce"}
    for second in range(60):
        count, milliseconds = (9, 4000.0) if second == 20 else (9, 2.0)
        seen.add("frames", frames(*[second + k / 10 for k in range(count)], latency_ms=milliseconds, **told))
        slow = seen.slowest()
        assert (slow is not None) == (second >= 20)
    assert slow is not None
    assert (slow.at, slow.slow, slow.responses) == (20, 9, 9)
