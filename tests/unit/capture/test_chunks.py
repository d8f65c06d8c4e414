"""Chunks of streams have the rows of the capture that they were taken from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from packets import metadata, sized

from kwire import capture
from kwire.capture import chunks
from kwire.capture.chunks import BROKER_PORT, LARGEST, MOST_CONNECTIONS, Chunk, Chunks, _Pair
from kwire.capture.reading import Reading
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"
COLUMNS = ["timestamp", "direction", "api_name", "api_version", "correlation_id", "size", "latency_ms", "status"]


def chunks_of(path: Path, numbered: bool = False) -> list[Chunk]:
    """The segments with payload of a capture, as chunks."""
    whole = packets.read(path.read_bytes())
    flows = packets.Flows(whole)
    found = []
    for one, side in zip(flows.segments, flows.sides, strict=True):
        if one is not None and side is not None and one.payload:
            start = flows.flows[side.flow].starts[side.end]
            assert start is not None
            position = (one.seq - start) & 0xFFFFFFFF if numbered else None
            name = ("request", "response")[side.end]
            found.append(Chunk(side.flow, name, one.packet.time, one.payload, position))
    return found


def rows(chunks: Iterable[Chunk], requests: str | None = "request", **options: Any) -> list[dict[str, Any]]:
    ports = None if requests is None else (BROKER_PORT,)
    found = capture.read(Chunks(chunks, requests), "frames", ports=ports, columns=["connection", *COLUMNS], **options)
    return [row for batch in found for row in batch.to_pylist()]


def plain(found: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(repr([row[name] for name in COLUMNS]) for row in found)


@pytest.mark.parametrize("name", ["3.9-zk-kafka-python/first-light.pcap", "4.3-kraft-kafka-python/unpinned.pcap"])
def test_rows_are_those_of_the_capture(name: str) -> None:
    path = GOLDEN / f"kafka-{name}"
    with path.open("rb") as file:
        expected = plain(row for batch in capture.read(file, "frames", columns=COLUMNS) for row in batch.to_pylist())
    chunks = chunks_of(path)
    assert plain(rows(chunks)) == expected
    assert plain(rows(chunks, None)) == expected
    assert plain(rows(chunks_of(path, numbered=True), window=1000)) == expected
    # However the bytes are shared out to chunks; what is lost leaves a hole where positions say so.
    cut = [
        one._replace(payload=one.payload[at : at + 7]) for one in chunks[:60] for at in range(0, len(one.payload), 7)
    ]
    assert plain(rows(cut)) == plain(rows(chunks[:60]))
    lost = chunks_of(path, numbered=True)
    largest = max(range(20, len(lost)), key=lambda one: len(lost[one].payload))
    lost[largest] = lost[largest]._replace(payload=lost[largest].payload[:20])
    found = rows(lost)
    assert [row["status"] for row in found if row["status"] != "ok"] == ["gap"]
    assert len(found) == expected.total()


def test_connections_have_their_keys_and_large_chunks_are_more_than_one_segment() -> None:
    records = bytes(3 * LARGEST)
    body = b"\0\1" + bytes(4) + b"\0\0\0\1\0\1t" + b"\0\0\0\1" + bytes(4) + len(records).to_bytes(4, "big") + records
    frame = b"\0\0\0\2" + b"\0\0\0\7" + b"\0\1x" + body  # Produce v2
    frame = len(frame).to_bytes(4, "big") + frame
    sent = [(("b", 1), b""), (("a", 1), frame), (("b", 1), frame)]
    source = Chunks([Chunk(key, "in", 10**18, payload) for key, payload in sent], "in")
    found = [
        (row["size"], row["status"])
        for batch in capture.read(source, "frames", ports=(BROKER_PORT,))
        for row in batch.to_pylist()
    ]
    # Nobody answers them, and nothing says that they are no values within others.
    assert found == [(len(frame) - 4, "unconfirmed")] * 2
    whole = Chunks([Chunk(key, "in", 10**18, payload) for key, payload in sent], "in", from_start=True)
    made = [row for batch in capture.read(whole, "frames", ports=(BROKER_PORT,)) for row in batch.to_pylist()]
    assert [(row["size"], row["status"], row["direction"]) for row in made] == [(len(frame) - 4, "ok", "request")] * 2
    assert [source.key_of(one) for one in (0, 4)] == [("a", 1), ("b", 1)]


def test_times_are_those_of_the_chunks_to_the_nanosecond() -> None:
    frame = sized(metadata(1))
    sent = [Chunk("a", "in", 10**18 + number, frame) for number in (1, 999)]
    reading = Reading(Chunks(sent, "in", from_start=True), ports=(BROKER_PORT,))
    assert [one.time for frames in reading for one in frames] == [10**18 + 1, 10**18 + 999]


def test_the_last_connection_that_there_may_be_has_addresses_of_its_own() -> None:
    hosts = [_Pair(number, (1, 2), "in").hosts for number in (0, 1, MOST_CONNECTIONS - 1)]
    assert [len(one) for pair in hosts for one in pair] == [4] * 6
    assert len({one for pair in hosts for one in pair}) == 6


def test_more_connections_than_there_are_addresses_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST_CONNECTIONS", 2)
    source = Chunks([Chunk(number, "in", 10**18, b"1") for number in range(3)])
    with pytest.raises(ValueError, match="more than 2 connections"):
        source.read()
