"""The table ``frames``: its columns."""

from __future__ import annotations

import datetime
import io
import struct

import pytest
from made_captures import exchange, read
from packets import Connection, pcap, produce, produce_answer, request, response

from kwire import capture
from kwire.capture.tracker import Tracker
from kwire.kernels.engine import Engine, using
from kwire.records.arrow_types import DICTIONARY


def test_a_frame_has_its_columns() -> None:
    asked, answered = read(pcap(exchange().packets, nano=True), name="x.pcap")
    expected = {
        "capture": "x.pcap",
        "connection": 0,
        "frame": 0,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 3000, datetime.UTC),
        "direction": "request",
        "client_host": "10.0.0.1",
        "client_port": 40000,
        "broker_host": "10.0.0.2",
        "broker_port": 9092,
        "api_key": 3,
        "api_name": "Metadata",
        "api_version": 0,
        "correlation_id": 1,
        "client_id": "test",
        "size": 18,
        "latency_ms": None,
        "errors": None,
        "status": "ok",
        "error": None,
    }
    assert {name: asked[name] for name in expected} == expected
    expected |= {
        "frame": 1,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 4000, datetime.UTC),
        "direction": "response",
        "size": 12,
        "latency_ms": 1.0,
        "errors": [],
    }
    assert {name: answered[name] for name in expected} == expected


def test_controlled_shutdown_names_its_client_from_version_1_on(engine: Engine) -> None:
    talk = Connection().open()
    talk.send(request(7, 1, 1, struct.pack(">i", 5), "broker-5"))
    talk.answer(response(1, struct.pack(">hi", 0, 0)))
    talk.send(struct.pack(">hhii", 7, 0, 2, 5))
    with using(engine):
        rows = [row for row in read(pcap(talk.packets)) if row["direction"] == "request"]
    found = [(row["api_version"], row["client_id"], row["status"]) for row in rows]
    assert found == [(1, "broker-5", "ok"), (0, None, "ok")]


def test_a_frame_without_an_api_beside_those_of_one(engine: Engine) -> None:
    talk = Connection().open()
    for number in (1, 2):
        talk.send(produce(number, -1)).answer(produce_answer(number))
    talk.answer(response(99, struct.pack(">ii", 0, 0)))
    with using(engine):
        rows = read(pcap(talk.packets))
    assert [(row["api_key"], row["api_name"]) for row in rows] == [(0, "Produce")] * 4 + [(None, None)]


def clients(count: int) -> tuple[bytes, list[tuple[str, str, str, int, str]]]:
    """A capture of one exchange of each of many clients, some with several words in common, and what its rows say."""
    packets, said = [], []
    for k in range(count):
        client, broker = f"10.{k % 7}.{k // 250}.{k % 250}", f"10.9.0.{k % 3}"
        name = f"client-{k % 40}" if k % 5 else ""
        talk = Connection((client, 40000 + k % 9), (broker, 9092), time=1_700_000_000_000_000_000 + 10_000_000 * k)
        talk.open().send(request(3, 0, k + 1, struct.pack(">i", 0), name)).answer(response(k + 1, bytes(8)))
        packets += talk.packets
        said += [(way, client, broker, 40000 + k % 9, name) for way in ("request", "response")]
    return pcap(packets), said


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("window", [None, 1 << 10, 1 << 14])
@pytest.mark.parametrize("dictionaries", [False, True])
def test_addresses_and_names_of_many_clients(engine: Engine, window: int | None, dictionaries: bool) -> None:
    data, said = clients(300)
    named = ["direction", "client_host", "broker_host", "client_port", "client_id"]
    with using(engine):
        found = list(capture.read(io.BytesIO(data), "frames", window=window, columns=named, dictionaries=dictionaries))
    for batch in found:
        batch.validate(full=True)
        assert (batch.schema.field("client_host").type == DICTIONARY) is dictionaries
    assert [tuple(row[name] for name in named) for batch in found for row in batch.to_pylist()] == said


def test_a_status_is_that_of_its_frame_whatever_its_neighbours_have(engine: Engine) -> None:
    talk = Connection().open()
    for number in range(1, 9):
        left = b"\0" * (number % 3 == 0)
        talk.send(request(3, 0, number, struct.pack(">i", 0) + left))
        talk.answer(response(number, bytes(8) if number % 4 else bytes(8) + b"\0\0"))
    with using(engine):
        both = read(pcap(talk.packets))
        alone = [read(pcap(talk.packets), columns=["status"], window=size) for size in (200, 1000)]
    words = [
        word
        for number in range(1, 9)
        for word in ("ok" if number % 3 else "trailing", "ok" if number % 4 else "trailing")
    ]
    assert [row["status"] for row in both] == words
    assert [[row["status"] for row in rows] for rows in alone] == [words, words]
    assert [row["error"] is None for row in both] == [word == "ok" for word in words]


def test_each_frame_has_its_own_sentence(engine: Engine) -> None:
    """Of few kinds, with other numbers in them, beside frames with none and with one that is found later."""
    talk = Connection().open()
    for number in range(1, 13):
        if number % 3 == 0:
            talk.send(request(3, 50 + number % 2, number, struct.pack(">i", 0)))
            talk.send(request(900 + number % 2, 0, 100 + number, struct.pack(">i", 0)))
        else:
            talk.send(request(3, 0, number, struct.pack(">i", 0) + b"\0" * (number % 4 == 0)))
            talk.answer(response(number, bytes(8)))
    with using(engine):
        rows = read(pcap(talk.packets))
    found = {row["correlation_id"]: row["error"] for row in rows if row["direction"] == "request"}
    assert len(found) == 16
    for number in range(1, 13):
        if number % 3 == 0:
            assert found[number] == f"version {50 + number % 2} of this API is unknown"
            assert found[100 + number] == f"API key {900 + number % 2} is unknown"
        else:
            assert (found[number] is None) == (number % 4 > 0)


def test_each_client_id_has_its_size() -> None:
    talk = Connection().open()
    for number, name in enumerate(("a", "longer", "longest"), start=1):
        talk.send(request(3, 0, number, struct.pack(">i", 0), name)).answer(response(number, bytes(8)))
    talk.answer(response(99, bytes(8)))
    frames = Tracker().feed(pcap(talk.packets), final=True)
    assert frames.client_sizes(frames["client"]).tolist() == [1, 1, 6, 6, 7, 7, 0]
    assert frames.client_sizes(frames["client"][:0]).tolist() == []
