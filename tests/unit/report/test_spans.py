"""Exchanges as spans: each request is one, with its response, what it is about, and the spans that records name."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from made_captures import exchange
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from packets import Connection, pcap, produce, produce_answer

from kwire import capture
from kwire.records import Record, encode
from kwire.report import spans
from kwire.report.spans import TABLES, Exchange, Frame, Spans, json_line, traces

GOLDEN = Path(__file__).parents[2] / "golden"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01".encode()


def exchanges(data: bytes, **options: int) -> list[Exchange]:
    made = Spans()
    found = []
    for name, batch in capture.read(io.BytesIO(data), tables=list(TABLES), columns=TABLES, name="x", **options):
        found += made.add(name, batch)
    return [*found, *made.rest()]


def test_a_span_for_each_request_of_a_golden_capture() -> None:
    data = (GOLDEN / "kafka-4.3-kraft-java" / "share.pcap").read_bytes()
    found = exchanges(data)
    rows = [row for batch in capture.read(io.BytesIO(data), name="x") for row in batch.to_pylist()]
    asked = {row["frame"]: row for row in rows if row["direction"] == "request"}
    assert {one.request.frame for one in found} == set(asked)
    assert len(found) == len(asked)
    told = {row["frame"]: row for row in rows if row["latency_ms"] is not None}
    assert {one.response.frame for one in found if one.response} == set(told)
    for one in found:
        if one.response is not None:
            taken = (one.response.timestamp - one.request.timestamp) / 1000
            assert taken == pytest.approx(one.response.latency_ms, abs=0.002)
    assert len({one.ids for one in found}) == len(found)
    assert [one.ids for one in exchanges(data, window=10_000)] == [one.ids for one in found]
    made = traces(found)
    lines = json.loads(json_line(found))
    (one,) = {span["name"] for of in lines["resourceSpans"] for span in of["scopeSpans"][0]["spans"]} & {"Metadata"}
    assert _read_as_otlp(lines) == made
    half = len(found) // 2
    parts = traces(found[:half]).SerializeToString() + traces(found[half:]).SerializeToString()
    again = TracesData.FromString(parts)
    assert sum(len(of.scope_spans[0].spans) for of in again.resource_spans) == len(found)


def _read_as_otlp(said: dict[str, Any]) -> TracesData:
    """Lines of OTLP/JSON by its own rules, which are not those of protobuf: ids in hexadecimal, enumerations as
    numbers, numbers of 64 bits as strings, names in lower camel case."""

    def check(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            assert all(re.fullmatch("[a-z][A-Za-z0-9]*", key) for key in value)
            return {key: check(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [check(each, name) for each in value]
        if name in ("traceId", "spanId"):
            assert re.fullmatch(r"[0-9a-f]{32}" if name == "traceId" else r"[0-9a-f]{16}", value)
            assert set(value) != {"0"}
            return base64.b64encode(bytes.fromhex(value)).decode()
        if name in ("startTimeUnixNano", "endTimeUnixNano", "intValue"):
            assert re.fullmatch(r"-?\d+", value)
        elif name in ("kind", "code"):
            assert isinstance(value, int)
        return value

    return ParseDict(check(said), TracesData())


def test_what_records_name_are_links() -> None:
    headers = [
        (("traceparent", GOOD),),
        (("other", GOOD), ("traceparent", GOOD + b"-more")),
        (("traceparent", b"00-" + b"0" * 32 + f"-{SPAN}-01".encode()),),
        (("traceparent", b"ff" + GOOD[2:]),),
        (("traceparent", GOOD.upper()),),
        (("traceparent", None), ("traceparent", b"\xff\xfe")),
    ]
    sets = encode([Record(b"k", b"v", timestamp=1, headers=one) for one in headers], magic=2)
    made = Connection().open().send(produce(1, 1, sets, "<t>")).answer(produce_answer(1, "<t>"))
    made.send(produce(2, 0, encode([Record(b"k", b"v", timestamp=1)] * 3, magic=2)))
    one, other = exchanges(pcap(made.packets))
    assert [(link.trace_id.hex(), link.span_id.hex(), link.offset) for link in one.links] == [
        (TRACE, SPAN, 0), (TRACE, SPAN, 1),
    ]  # fmt: skip
    assert (one.topics, one.records, other.records) == (["<t>"], 6, 3)
    assert other.response is None
    said = json.loads(json_line([one, other]))
    assert _read_as_otlp(said) == traces([one, other])
    first, second = said["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert first["name"] == "Produce <t>"
    assert first["links"][0]["traceId"] == TRACE
    told = {one["key"]: next(iter(one["value"].values())) for one in second["attributes"]}
    assert told["kwire.answered"] is False
    assert second["startTimeUnixNano"] == second["endTimeUnixNano"]


def test_links_and_waiting_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = encode([Record(b"k", b"v", timestamp=1, headers=(("traceparent", GOOD),))] * 200, magic=2)
    (one,) = exchanges(pcap(Connection().open().send(produce(1, 1, sets)).packets))
    assert (len(one.links), one.dropped_links) == (spans.MOST_LINKS, 200 - spans.MOST_LINKS)
    monkeypatch.setattr(spans, "_MOST_WAITING", 2)
    late = exchange(Connection().open(), 4)
    asked = [packet for packet in late.packets if packet.dst[1] == 9092]
    assert len(exchanges(pcap(asked), ports=[9092])) == 4


def test_names_that_are_no_text_are_written() -> None:
    row: dict[str, Any] = dict.fromkeys(TABLES["frames"])
    row |= {"capture": "\udcff", "frame": 1, "timestamp": -1, "client_host": "h", "api_name": "Fetch", "status": "ok"}
    row |= {"client_port": 1, "broker_host": "b", "broker_port": 2, "connection": 0, "size": 1, "client_id": "\udcff"}
    made = [Exchange(Frame(**row), None, ["a", "\ud800"])]
    assert _read_as_otlp(json.loads(json_line(made))) == traces(made)
