"""The table ``frames``: its columns."""

from __future__ import annotations

import datetime
import struct

from made_captures import exchange, read
from packets import Connection, pcap, produce, produce_answer, request, response

from kwire.kernels.engine import Engine, using


def test_a_frame_has_its_columns() -> None:
    asked, answered = read(pcap(exchange().packets, nano=True), name="x.pcap")
    assert asked == {
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
    assert answered == asked | {
        "frame": 1,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 4000, datetime.UTC),
        "direction": "response",
        "size": 12,
        "latency_ms": 1.0,
        "errors": [],
    }


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
