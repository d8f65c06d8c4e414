"""Transactions of librdkafka on a broker of 4.3: rows are what the producers did, and what the broker's tool said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire import capture

HERE = Path(__file__).parent / "transactions"
FOUND = ("transactional_id", "end", "records")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [row for batch in capture.read(HERE / "transactions.gz", "transactions") for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def told() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((HERE / "transactions.told").read_text())
    return found


def test_each_transaction_ends_as_its_producer_knows(rows: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    true = [(one["truth"], one["end"], one["records"]) for one in told if "truth" in one]
    assert [tuple(row[name] for name in FOUND) for row in rows] == true
    assert {row["status"] for row in rows} == {"ok"}
    (fenced,) = (row for row in rows if row["end"] == "fenced")
    assert "second" in fenced["cause"]


def test_the_tool_of_the_broker_says_the_same(rows: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    compared = 0
    for one in told:
        if "describe" not in one:
            continue
        head, values, *_ = (line.split("\t") for line in one["says"].splitlines() if line.count("\t") > 5)
        said = {name.strip(): value.strip() for name, value in zip(head, values, strict=False)}
        assert said["TransactionalId"] == one["describe"]
        begun = int(said["CurrentTransactionStartTimeMs"]) if said["CurrentTransactionStartTimeMs"].isdigit() else None
        same = [
            row
            for row in rows
            if row["transactional_id"] == one["describe"] and row["producer_id"] == int(said["ProducerId"])
            and begun is not None and abs(row["began"].timestamp() * 1000 - begun) < 1000
        ]  # fmt: skip
        if begun is None:
            continue
        (row,) = same
        compared += 1
        assert row["timeout_ms"] == int(said["TransactionTimeoutMs"])
        if said["TransactionState"] == "Ongoing":
            assert row["ended"] is None or row["ended"].timestamp() > one["time"] - 60
        else:
            assert said["TransactionState"] in ("CompleteAbort", "PrepareAbort")
            assert row["end"] in ("aborted", "timed_out")
    assert compared >= 3


def test_the_reader_that_waited_is_named(rows: list[dict[str, Any]]) -> None:
    (hang,) = (row for row in rows if row["end"] == "open")
    assert hang["held_readers"] == ["reader on 127.0.0.1"]
    assert hang["held_ms"] > 1000
