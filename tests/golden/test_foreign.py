"""Captures of other protocols (``record_foreign.py``): nothing in them is Kafka, whatever is asked for."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest

from kwire import capture

HERE = Path(__file__).parent
CAPTURES = sorted((HERE / "foreign").glob("*/*.pcap"))
every_capture = pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)


def statuses(data: bytes, table: str, **options: object) -> Counter[str]:
    """How many rows of each status."""
    batches = capture.read(io.BytesIO(data), table, columns=["status"], **options)  # type: ignore[call-overload]
    return Counter(status for batch in batches for status in batch.column("status").to_pylist())


def without_the_first(data: bytes, count: int) -> bytes:
    """A capture that began later."""
    at = 24
    for _ in range(count):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    return data[:24] + data[at:]


def test_there_are_captures_of_many_protocols() -> None:
    assert len(CAPTURES) >= 12


@every_capture
def test_nothing_in_them_is_kafka(path: Path) -> None:
    data = path.read_bytes()
    notes: list[str] = []
    assert not statuses(data, "frames", on_note=notes.append)
    assert notes[0].startswith("no Kafka traffic")
    for begun in (4, 7, 30):
        assert not statuses(without_the_first(data, begun), "frames")


@every_capture
def test_no_row_says_ok_where_their_port_is_named(path: Path) -> None:
    data = path.read_bytes()
    ports = json.loads(path.with_suffix(".json").read_text())["ports"]
    found = statuses(data, "frames", ports=ports) + statuses(data, "messages", ports=ports)
    assert found
    assert "ok" not in found
    assert not statuses(data, "records", ports=ports)["ok"]
