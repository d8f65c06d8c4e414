"""The table ``frames``: its columns."""

from __future__ import annotations

import datetime

from made_captures import exchange, read
from packets import (
    pcap,
)


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
