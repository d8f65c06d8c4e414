"""What becomes of every byte of a Kafka connection."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path

import pytest
from made_captures import exchange
from packets import Connection, Packet, metadata, metadata_answer, pcap, sized
from tls_connections import made13

from kwire.capture.account import Balance, Line, total
from kwire.capture.frames import Endpoint
from kwire.capture.reading import Reading
from kwire.errors import CaptureError
from kwire.kernels.layouts import Status
from kwire.testing.impair import KINDS, impair
from kwire.tls import KeyLog

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4-telemetry" / "none.pcap"


LINES = [(side, sized(made(n))) for n in range(1, 9) for side, made in ((0, metadata), (1, metadata_answer))]
TALK = made13(LINES)


def account(data: bytes, window: int | None = None, keys: KeyLog | None = None) -> list[Line]:
    reading = Reading(io.BytesIO(data), window=window, keys=keys, account=True)
    with contextlib.suppress(CaptureError):
        for _ in reading:
            pass
    return reading.tracker.account()


def balanced(lines: list[Line]) -> Balance:
    for line in lines:
        balance = line.balance
        assert (balance.nowhere, balance.twice) == (0, 0), line
        assert sum(balance.rows.values()) == balance.captured
    return total(lines)


def test_every_byte_is_in_a_row_or_was_seen_before() -> None:
    packets = exchange(count=3).packets
    asked, answered = account(pcap([*packets, packets[-1], packets[-2]]))
    size = 4 + len(metadata(1))
    assert (asked.direction, answered.direction) == ("request", "response")
    assert asked.balance == Balance(captured=3 * size, rows={"ok": 3 * size}, repeated=size)
    size = 4 + len(metadata_answer(1))
    assert answered.balance == Balance(captured=3 * size, rows={"ok": 3 * size}, repeated=size)
    assert str(asked).startswith("connection 0, requests, 10.0.0.1:40000 > 10.0.0.2:9092: ")


def test_bytes_of_two_rows_are_told_of_their_direction() -> None:
    """Which kwire never gives: the frames are taken twice."""
    talk = exchange(count=2).packets + exchange(Connection(client=("10.0.0.3", 50_000)), 3).packets
    reading = Reading(io.BytesIO(pcap(talk)), account=True)
    kept = reading.tracker._account
    assert kept is not None
    for frames in reading:
        kept.frames(frames)
    lines = reading.tracker.account()
    assert len({line.balance.captured for line in lines}) == len(lines) == 4
    assert [line.balance.twice for line in lines] == [line.balance.captured for line in lines]


def test_a_total_is_the_sum_of_its_lines() -> None:
    ends = (Endpoint("10.0.0.1", 1), Endpoint("10.0.0.2", 2))
    one, two = Balance(3, {"ok": 1}, 3, 7, 1, 5), Balance(3, {"ok": 1, "gap": 2}, 1, 1, 1, 5)
    lines = [Line(0, "request", *ends, one), Line(0, "response", *ends, two)]
    assert total(lines) == Balance(6, {"ok": 2, "gap": 2}, 4, 8, 2, 10)


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


def test_only_the_ports_of_most_connections_are_named() -> None:
    many = [
        packet
        for number in range(11)
        for packet in Connection(("10.0.0.1", 4000 + number), ("10.0.0.2", 100 + number)).open().send(b"GET /").packets
    ]
    reading = Reading(io.BytesIO(pcap(many)))
    assert sum(map(len, reading)) == 0
    (said,) = reading.tracker.left_out()
    assert said.endswith("port 107: 1, 3 other ports: 3)")


def test_what_the_capture_cuts_off_is_not_captured() -> None:
    whole = exchange(count=3).packets
    for k in [number for number, packet in enumerate(whole) if packet.payload]:
        cut = pcap([whole[k]], snaplen=54)[24:]
        data = pcap(whole[:k]) + cut + pcap(whole[k + 1 :])[24:]
        assert balanced(account(data)).captured == sum(len(one.payload) for one in whole) - len(whole[k].payload)


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


@pytest.mark.wide(keep=29)
@pytest.mark.parametrize("kind", KINDS)
def test_the_balance_holds_whatever_a_capture_went_through(kind: str) -> None:
    data = impair(GOLDEN.read_bytes(), kind, seed=1).data
    for window in (None, 4000):
        balanced(account(data, window))


@pytest.mark.parametrize("back", [1, 100, 1 << 18])
def test_bytes_in_front_of_a_syn_are_none_of_the_connection(back: int) -> None:
    opened, packets = len(Connection().open().packets), exchange(Connection(client_isn=3_000_000_000).open(), 3).packets
    first = packets[opened]
    stray = replace(first, seq=first.seq - back, payload=bytes(1))
    asked, answered = account(pcap([*packets[:opened], stray, *packets[opened:]]))
    size = 4 + len(metadata(1))
    assert asked.balance == Balance(captured=3 * size, rows={"ok": 3 * size}, repeated=1)
    # As of a packet whose sequence number was damaged: it is missing where it belongs.
    asked, answered = account(pcap([*packets[:opened], replace(first, seq=first.seq - 1000), *packets[opened + 1 :]]))
    assert asked.balance == Balance(captured=2 * size, rows={"ok": 2 * size}, repeated=size, missing=size)
    assert balanced([asked, answered]).captured


def test_what_is_not_kafka_has_no_account() -> None:
    assert account(pcap(Connection().open().send(b"GET / HTTP/1.1\r\n\r\n").packets)) == []


def over_tls() -> list[Packet]:
    connection = Connection(client=("10.0.0.3", 41000), mss=40).open()
    for side, data in TALK.wire:
        (connection.send_raw if side == 0 else connection.answer_raw)(data)
    return connection.packets


@pytest.mark.parametrize("window", [None, 300])
def test_what_tls_adds_was_not_captured_again(window: int | None) -> None:
    packets = over_tls()
    sent = [sum(len(packet.payload) for packet in packets if packet.src[1] == port) for port in (41000, 9092)]
    for again, repeated in ((0, 0), (1, len(packets[-1].payload))):
        data = pcap([*packets, *packets[-1:] * again])
        # Of plaintext, but what was captured again; without its key, of ciphertext.
        lines = account(data, window, KeyLog(TALK.keys))
        for line, said in zip(lines, TALK.said, strict=True):
            assert line.balance.rows == {"ok": len(said)}
            assert line.balance.captured == len(said)
        assert balanced(lines).repeated == repeated
        for keys in (None, KeyLog(b"RSA 0000000000000000 " + b"00" * 48 + b"\n")):
            lines = account(data, window, keys)
            assert [line.balance.rows for line in lines] == [{"encrypted": size} for size in sent]
            assert balanced(lines).repeated == repeated


@pytest.mark.parametrize("window", [None, 300])
def test_the_balance_holds_where_the_first_bytes_of_a_hello_are_missing(window: int | None) -> None:
    packets = over_tls()
    first = next(packet for packet in packets if packet.payload)
    rest = [packet for packet in packets if packet is not first]
    lines = account(pcap([*exchange().packets, *rest]), window, KeyLog(TALK.keys))
    both = [line.balance for line in lines if line.direction == "encrypted"]
    assert sum(one.captured for one in both) == sum(len(packet.payload) for packet in rest) > 0
    balanced(lines)
