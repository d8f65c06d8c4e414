"""Limits as a text, which the command line and Spark take, and as the object that functions of Python take."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire import log, messages, payloads, records, schema
from kwire.codec import reference
from kwire.events import cloudevents, columns, telemetry
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.log import internal
from kwire.protocol import embedded
from kwire.records import columnar
from kwire.report import findings
from kwire.values import avro, decoding


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", DEFAULT_LIMITS),
        ("nesting=2", Limits(nesting=2)),
        (" decompressed = 64MiB , total=1k ", Limits(decompressed=64 << 20, total=1000)),
        ("decompressed=3 GB", Limits(decompressed=3 * 10**9)),
        ("decompressed=7Ki,", Limits(decompressed=7 << 10)),
    ],
)
def test_limits_have_units(text: str, limits: Limits) -> None:
    assert Limits.parse(text) == limits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("depth=1", "no limit 'depth'"),
        ("nesting", "not ''"),
        ("nesting=-1", "not '-1'"),
        ("nesting=1.5", "not '1.5'"),
        ("nesting=٣", "not"),
        ("nesting=1BB", "not '1BB'"),
        ("nesting=" + "9" * 5000, "not"),
        ("nesting=1,nesting=1", "given twice"),
        ("total=2GiB", "1 GiB"),
    ],
)
def test_what_is_no_limit_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limits.parse(text)


REQUEST = kwire.encode_request(messages.ApiVersionsRequest(), api_version=0, correlation_id=1)
BODY = kwire.encode_body(messages.ApiVersionsRequest(), 0)
COLUMN = pa.array([REQUEST])
HEADERS = pa.array([[]], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
AVRO = avro.parse('"int"')
TAKES_LIMITS: dict[str, Callable[[Any], Any]] = {
    "decode_request": lambda limits: kwire.decode_request(REQUEST, limits=limits),
    "decode_request_header": lambda limits: kwire.decode_request_header(REQUEST, limits=limits),
    "decode_response": lambda limits: kwire.decode_response(bytes(10), api_key=18, api_version=0, limits=limits),
    "decode_body": lambda limits: kwire.decode_body(BODY, messages.ApiVersionsRequest, 0, limits=limits),
    "reference": lambda limits: reference.decode(schema.message("ApiVersionsRequest"), 0, BODY, 0, limits),
    "embedded": lambda limits: embedded.decode_embedded("ConsumerProtocolSubscription", bytes(12), limits=limits),
    "records.decode": lambda limits: list(records.decode(b"", limits=limits)),
    "records.to_arrow": lambda limits: records.to_arrow(b"", limits=limits),
    "decode_batches": lambda limits: columnar.decode_batches(*[columnar._as_array(b"")] * 3, limits=limits),
    "log.read": lambda limits: list(log.read(io.BytesIO(), limits=limits)),
    "log.batches": lambda limits: list(log.batches(io.BytesIO(), limits=limits)),
    "decode_record": lambda limits: internal.decode_record("__consumer_offsets", bytes(8), bytes(30), limits=limits),
    "decode_control": lambda limits: internal.decode_control(bytes(4), bytes(6), limits=limits),
    "internal.decoded": lambda limits: internal.decoded(pa.RecordBatch.from_pylist([]), limits=limits),
    "cloudevents.read": lambda limits: cloudevents.read([], b"", limits=limits),
    "cloudevents": lambda limits: columns.cloudevents(HEADERS, pa.array([b""]), limits=limits),
    "telemetry": lambda limits: next(telemetry.read(io.BytesIO(), limits=limits)),
    "requests": lambda limits: payloads.decode_requests(COLUMN, limits=limits),
    "responses": lambda limits: payloads.decode_responses(COLUMN, 18, 0, limits=limits),
    "records": lambda limits: payloads.decode_records(COLUMN, limits=limits),
    "request_records": lambda limits: payloads.request_records(COLUMN, limits=limits),
    "request_partitions": lambda limits: payloads.request_partitions(COLUMN, limits=limits),
    "values": lambda limits: decoding.decode(pa.array([b""]), None, limits=limits),
    "avro": lambda limits: avro.decode(pa.array([b"\0"]), [AVRO], limits=limits),
}


@pytest.mark.parametrize("name", TAKES_LIMITS)
@pytest.mark.parametrize("wrong", [5, 0])
def test_what_is_no_limits_is_refused_by_name(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=f"not {wrong!r}: .*limits.* is kwire.limits.Limits"):
        TAKES_LIMITS[name](wrong)


@pytest.mark.parametrize("wrong", [5, DEFAULT_LIMITS])
def test_what_is_no_thresholds_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"thresholds is kwire\.report\.findings\.Thresholds"):
        findings.Finder(None, wrong)  # type: ignore[arg-type]
