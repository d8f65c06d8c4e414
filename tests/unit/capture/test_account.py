"""What becomes of every byte of a Kafka connection."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import pytest
from made_captures import exchange
from packets import Connection, metadata, metadata_answer, pcap

from kwire.capture.account import Balance, Line, whole
from kwire.capture.reading import Reading
from kwire.errors import CaptureError
from kwire.kernels.layouts import Status
from kwire.testing.impair import KINDS, impair

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4-telemetry" / "none.pcap"


def account(data: bytes, window: int | None = None) -> list[Line]:
    reading = Reading(io.BytesIO(data), window=window, account=True)
    with contextlib.suppress(CaptureError):
        for _ in reading:
            pass
    return reading.tracker.account()


def balanced(lines: list[Line]) -> Balance:
    for line in lines:
        balance = line.balance
        assert (balance.nowhere, balance.twice) == (0, 0), line
        assert sum(balance.rows.values()) == balance.captured
    return whole(lines)


def test_every_byte_is_in_a_row_or_was_seen_before() -> None:
    packets = exchange(count=3).packets
    asked, answered = account(pcap([*packets, packets[-1], packets[-2]]))
    size = 4 + len(metadata(1))
    assert (asked.way, answered.way) == ("request", "response")
    assert asked.balance == Balance(captured=3 * size, rows={"ok": 3 * size}, repeated=size)
    size = 4 + len(metadata_answer(1))
    assert answered.balance == Balance(captured=3 * size, rows={"ok": 3 * size}, repeated=size)
    assert str(asked).startswith("connection 0, requests, 10.0.0.1:40000 > 10.0.0.2:9092: ")


def test_an_account_is_kept_where_it_is_asked_for() -> None:
    reading = Reading(io.BytesIO(pcap(exchange().packets)))
    assert len(list(reading)) == 1
    with pytest.raises(ValueError, match="from the beginning"):
        reading.tracker.account()


def test_connections_without_frames_are_counted_by_reason_and_port() -> None:
    for name, text in (
        ("dns", "4 connections of which nothing tells that they are Kafka, 402 bytes (port 15353: 4)"),
        ("mqtt", "2 connections that are not Kafka, 2,252 bytes (port 11883: 2)"),
    ):
        with (GOLDEN.parents[1] / "foreign" / name / f"{name}.pcap").open("rb") as file:
            reading = Reading(file)
            assert sum(map(len, reading)) == 0
        assert reading.tracker.left_out() == [f"left out: {text}"]
    reading = Reading(io.BytesIO(pcap(exchange().packets)), ports=[1])
    assert sum(map(len, reading)) == 0
    size = 8 + len(metadata(1)) + len(metadata_answer(1))
    assert reading.tracker.left_out() == [
        f"left out: 1 connection to ports that were not named, {size} bytes (port 9092: 1)"
    ]
    reading = Reading(io.BytesIO(pcap(exchange().packets)))
    assert sum(map(len, reading)) == 2
    assert reading.tracker.left_out() == []


def test_what_is_lost_in_a_stream_and_at_its_end_is_missing_and_in_rows() -> None:
    # What follows the last request says that it was sent.
    *rest, last = exchange(count=2).send(metadata(3)).packets
    size = len(last.payload)
    data = pcap([*rest, replace(last, payload=b"", seq=last.seq + size)])
    asked, _ = account(data)
    assert asked.balance.missing == size
    assert balanced(account(data)).captured
    rows = [(frame.status, frame.size) for frames in Reading(io.BytesIO(data)) for frame in frames]
    assert (Status.GAP, size) in rows


@pytest.mark.parametrize("kind", KINDS)
def test_the_balance_holds_whatever_a_capture_went_through(kind: str) -> None:
    data = impair(GOLDEN.read_bytes(), kind, seed=1).data
    for window in (None, 4000):
        balanced(account(data, window))


def test_what_is_not_kafka_has_no_account() -> None:
    assert account(pcap(Connection().open().send(b"GET / HTTP/1.1\r\n\r\n").packets)) == []
