"""``committed_offset`` of the golden captures: what brokers gave out at that offset is the record that was sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire import capture
from kwire.kernels.engine import MACHINE, using

CAPTURES = sorted(Path(__file__).parent.glob("*/*.pcap*"))
COLUMNS = ["source", "topic", "topic_id", "partition", "offset", "key", "value", "magic", "compression", "status"]

Row = dict[str, Any]


def place(row: Row, offset: int) -> tuple[Any, ...]:
    return row["topic"] or row["topic_id"], row["partition"], offset


def rows_of(path: Path, table: str, columns: list[str]) -> list[Row]:
    with using(MACHINE), path.open("rb") as file:
        return [row for batch in capture.read(file, table, columns=columns) for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def every() -> dict[Path, list[Row]]:
    return {path: rows_of(path, "records", [*COLUMNS, "connection", "frame", "committed_offset"]) for path in CAPTURES}


def test_what_was_fetched_at_the_offset_is_what_was_produced(every: dict[Path, list[Row]]) -> None:
    formats: dict[tuple[int, str], int] = {}
    for path, rows in every.items():
        fetched = {place(row, row["offset"]): row for row in rows if row["source"] == "fetch" and row["status"] == "ok"}
        for row in rows:
            if row["source"] == "fetch":
                assert row["committed_offset"] is None
            elif row["committed_offset"] is not None:
                there = fetched.get(place(row, row["committed_offset"]))
                if there is not None:
                    assert (there["key"], there["value"]) == (row["key"], row["value"]), (path, row)
                    kind = row["magic"], row["compression"]
                    formats[kind] = formats.get(kind, 0) + 1
    codecs = [(magic, codec) for magic in (0, 1, 2) for codec in ("none", "gzip", "snappy", "lz4")]
    assert set(formats) == {*codecs, (2, "zstd")}
    assert min(formats.values()) > 40


def test_it_is_null_where_nothing_was_answered_or_an_error_was(every: dict[Path, list[Row]]) -> None:
    unknown = 0
    for path, rows in every.items():
        missing = {(row["connection"], row["frame"]) for row in rows if _is_missing(row)}
        if not missing:
            continue
        unknown += len(missing)
        calls = rows_of(path, "calls", ["connection", "frame", "direction", "api_name", "acks", "correlation_id"])
        said = rows_of(
            path, "partitions", ["connection", "frame", "direction", "api_name", "error", "offset", "correlation_id"]
        )
        good = {
            (row["connection"], row["correlation_id"])
            for row in said
            if (row["api_name"], row["direction"], row["error"]) == ("Produce", "response", "NONE")
            and row["offset"] >= 0
        }
        for row in calls:
            if row["api_name"] == "Produce" and (row["connection"], row["frame"]) in missing:
                assert row["acks"] == 0 or (row["connection"], row["correlation_id"]) not in good, (path, row)
    assert unknown > 20


def _is_missing(row: Row) -> bool:
    return bool(row["source"] == "produce" and row["status"] == "ok" and row["committed_offset"] is None)
