"""The capture matrix: what the clients say that they sent and read is in the captures, record for record.

``NAME.told.jsonl`` is the clients' own account, and the wire may hold more than it
(docs/results/golden-captures.md). The reader of ``matrix.py`` shares nothing with ``kwire.capture`` but the codec, and
counts frames: the two are held against each other.
"""

from __future__ import annotations

import collections
import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from valid_batches import valid

from kwire import capture

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import matrix  # noqa: E402  (stands beside this file, which is no package)

ABOUT = sorted(path for path in HERE.glob("kafka-*/*.json") if matrix.is_about(json.loads(path.read_text())))
TOLD = [path for path in ABOUT if path.with_suffix(".told.jsonl").exists()]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def capture_of(path: Path) -> Path:
    return path.with_name(json.loads(path.read_text())["capture"])


def rows(path: Path, table: Any) -> list[dict[str, Any]]:
    ports = json.loads(path.read_text())["ports"]
    with capture_of(path).open("rb") as file:
        return [row for batch in valid(capture.read(file, table, ports=ports)) for row in batch.to_pylist()]


def text(value: str | None) -> bytes | None:
    return None if value is None else b64decode(value)


def millis(row: dict[str, Any]) -> int | None:
    return None if row["timestamp"] is None else round(row["timestamp"].timestamp() * 1000)


def content(row: dict[str, Any]) -> tuple[Any, ...]:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    return (row["topic"], row["key"], row["value"], headers)


def told(line: dict[str, Any]) -> tuple[Any, ...]:
    headers = tuple((key, text(value)) for key, value in line["headers"])
    return (line["topic"], text(line["key"]), text(line["value"]), headers)


@pytest.mark.parametrize("path", TOLD, ids=name_of)
def test_what_clients_sent_and_read_is_in_the_capture(path: Path) -> None:
    lines = [json.loads(line) for line in path.with_suffix(".told.jsonl").read_text().splitlines()]
    assert lines
    found = rows(path, "records")
    assert {row["status"] for row in found} <= {"ok", "not_acquired"}
    found = [row for row in found if row["status"] == "ok"]
    wire = collections.Counter(content(row) for row in found if row["source"] == "produce")
    sent = [line for line in lines if line["direction"] == "produce" and not line.get("encrypted")]
    assert not collections.Counter(map(told, sent)) - wire
    # Fetch and ShareFetch: at the offset that the client names, with the timestamp that it was given.
    fetched = {
        (*content(row), row["partition"], row["offset"], millis(row)) for row in found if row["source"] != "produce"
    }
    read = [line for line in lines if line["direction"] == "fetch"]
    missing = [
        line for line in read if (*told(line), line["partition"], line["offset"], line["timestamp"]) not in fetched
    ]
    assert missing == []


@pytest.mark.parametrize("path", ABOUT, ids=name_of)
def test_an_independent_reader_finds_the_same_frames(path: Path) -> None:
    found = matrix.Findings()
    matrix.look(path, found)
    assert found.problems == []
    ours = collections.Counter(row["direction"] for row in rows(path, "frames") if row["status"] == "ok")
    assert (ours["request"], ours["response"]) == (found.frames["requests"], found.frames["responses"])


def test_the_matrix_is_as_wide_as_it_has_to_be() -> None:
    found = matrix.Findings()
    for path in [*ABOUT, *HERE.glob("odd/kafka-*/*.json")]:
        matrix.look(path, found)
    assert len({key for key, _ in found.pairs}) >= 60
    assert len(found.pairs) >= 120
    assert {(magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")} <= set(found.record_sets)
    assert {(2, codec) for codec in matrix.CODECS.values()} <= set(found.record_sets)
