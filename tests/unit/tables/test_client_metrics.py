"""Client metrics (KIP-714): golden captures against what a broker's receiver got; pushes made here, good and bad."""

from __future__ import annotations

import datetime
import io
import json
import math
import random
import struct
from collections import Counter
from typing import Any

import pytest
from counted_work import decompression
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Gauge,
    Metric,
)
from packets import Connection, pcap
from telemetry_samples import (
    GOLDEN,
    INSTANCE,
    NOW,
    OTHER,
    SECOND,
    START,
    Row,
    asked,
    gauge,
    golden,
    otlp,
    push,
    pushed,
    read,
    rows_of,
    told,
)

import kwire
from kwire import messages
from kwire.capture.reading import Reading
from kwire.errors import CaptureError, DecodeError
from kwire.events import telemetry
from kwire.events.sessions import Recent
from kwire.events.telemetry import (
    CLIENT_ACTIONS,
    points,
    unpack,
)
from kwire.limits import Limits
from kwire.records.compression import CODECS, compress
from kwire.tables import client_metrics
from kwire.tables.client_metrics import SCHEMA, STATUSES
from kwire.wire import ZERO_UUID, parse_uuid, uuid_text

RECORDED = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codecs of which there is a capture."""

# What real clients pushed


@pytest.mark.parametrize("codec", RECORDED)
def test_metrics_of_java_and_librdkafka_are_those_that_the_brokers_receiver_got(codec: str) -> None:
    def content(row: Row) -> tuple[Any, ...]:
        return (
            row["client_id"],
            row["client_instance_id"],
            row["terminating"],
            row["metric"],
            row["unit"],
            row["type"],
            row["temporality"],
            row["is_monotonic"],
            str(row["value"]),
            row["start_time"],
            row["time"],
            tuple(sorted(row["attributes"])),
            tuple(sorted(row["resource_attributes"])),
        )

    def micros(nanoseconds: int) -> datetime.datetime | None:
        since = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return since + datetime.timedelta(microseconds=nanoseconds // 1000) if nanoseconds else None

    # A client that ends does not wait for its last answer, and the broker may have dropped that push unread.
    sent = golden(codec)
    answered = answered_pushes(codec)
    found = [row for row in sent if row["frame"] in answered]
    assert {row["client_id"] for row in sent if row["frame"] not in answered} <= {"librdkafka-consumer"}
    assert len({row["frame"] for row in sent} - answered) <= 1
    assert {row["status"] for row in sent} == {"ok"}
    assert {row["compression"] for row in found} == {codec}
    told = []
    for line in (GOLDEN / f"{codec}.received.jsonl").read_text().splitlines():
        push = json.loads(line)
        for name, unit, kind, temporality, monotonic, value, start, time, attributes in push["points"]:
            told.append(
                (
                    push["client_id"],
                    push["client_instance_id"],
                    push["terminating"],
                    name,
                    unit or None,
                    kind,
                    temporality and temporality.removeprefix("AGGREGATION_TEMPORALITY_").lower(),
                    monotonic,
                    str(float(value)),
                    micros(start),
                    micros(time),
                    tuple(sorted(attributes.items())),
                    tuple(sorted(push["resource_attributes"].items())),
                )
            )
    assert Counter(map(content, found)) == Counter(told)
    clients = {row["client_id"] for row in found}
    assert clients == {"java-producer", "java-consumer", "librdkafka-producer", "librdkafka-consumer"}
    assert {row["type"] for row in found} == {"gauge", "sum"}
    assert any(row["terminating"] for row in found)


def answered_pushes(capture: str) -> set[int]:
    """The frames of pushes that the broker answered."""
    waiting: dict[tuple[int, int], int] = {}
    answered = set()
    with (GOLDEN / f"{capture}.pcap").open("rb") as file:
        for batch in kwire.capture.read(file, "frames"):
            for row in batch.to_pylist():
                if row["api_name"] == "PushTelemetry":
                    exchange = (row["connection"], row["correlation_id"])
                    if row["direction"] == "request":
                        waiting[exchange] = row["frame"]
                    else:
                        answered.add(waiting.pop(exchange))
    return answered


@pytest.mark.parametrize("codec", RECORDED)
def test_golden_rows_know_their_subscription(codec: str) -> None:
    for row in golden(codec):
        assert row["push_interval_ms"] == 1000
        assert row["requested"] is True
        assert any(row["metric"].startswith(prefix) for prefix in row["requested_metrics"])


def bodies(name: str, api: int) -> list[Any]:
    """The decoded bodies of one API in a golden capture, after a check that they encode to the same bytes."""
    made = []
    with (GOLDEN / f"{name}.pcap").open("rb") as file:
        for frames in Reading(file):
            for frame in (one for one in frames if one.api_key == api):
                data, number = frame.data, frame.correlation_id
                assert number is not None
                if frame.is_response:
                    body = kwire.decode_response(data, api_key=api, api_version=0).body
                    assert kwire.encode_response(body, api_version=0, correlation_id=number) == data
                else:
                    asked = kwire.decode_request(data)
                    body = asked.body
                    client_id = asked.header.client_id
                    assert data == kwire.encode_request(body, api_version=0, correlation_id=number, client_id=client_id)
                made.append(body)
    return made


@pytest.mark.parametrize("name", [*RECORDED, "refusals"])
def test_golden_requests_and_answers_encode_to_the_same_bytes(name: str) -> None:
    asked = bodies(name, 71)
    pushed = bodies(name, 72)
    assert {type(body).__name__ for body in asked} == {
        "GetTelemetrySubscriptionsRequest",
        "GetTelemetrySubscriptionsResponse",
    }
    assert {type(body).__name__ for body in pushed} == {"PushTelemetryRequest", "PushTelemetryResponse"}
    requests = [body for body in pushed if isinstance(body, messages.PushTelemetryRequest)]
    if name != "refusals":
        assert {body.compression_type for body in requests} == {[*map(str, CODECS)].index(name)}


def test_snappy_comes_from_java_in_xerial_framing_and_from_librdkafka_as_a_bare_block() -> None:
    pushed = [body for body in bodies("snappy", 72) if isinstance(body, messages.PushTelemetryRequest)]
    framed = [body.metrics.startswith(b"\x82SNAPPY\x00") for body in pushed]
    assert set(framed) == {True, False}
    for body in pushed:
        assert list(points(unpack(body.compression_type, body.metrics)))


def test_pushes_that_a_broker_refused_are_rows_with_the_clients_action() -> None:
    told = json.loads((GOLDEN / "refusals.json").read_text())["notes"]
    refused = [row for row in golden("refusals") if row["status"] == "refused"]
    assert [row["error"].partition("(")[2].partition(")")[0] for row in refused] == [
        str(note["error"]) for note in told if note["error"]
    ]
    expected = {parse_uuid(note["client_instance_id"]) for note in told if note["error"]}
    assert {parse_uuid(row["client_instance_id"]) for row in refused} == expected
    assert {note["error"] for note in told} == {0, 42, 76, 87, 89, 117, 118}
    for row in refused:
        code = int(row["error"].partition("(")[2].partition(")")[0])
        assert row["error"].endswith(f"{CLIENT_ACTIONS[code].reason}; the client {CLIENT_ACTIONS[code].action}")
        assert row["error"].startswith(("PushTelemetry: ", "GetTelemetrySubscriptions: "))


def test_what_was_wrong_with_refused_pushes_is_told_too() -> None:
    statuses = Counter(row["status"] for row in golden("refusals"))
    # Of an undefined compression, of bytes that are no OTLP and of zeros beyond the broker's limit; the rest is empty.
    assert statuses == {"refused": 7, "empty": 5, "malformed": 2, "unsupported": 1}


@pytest.mark.parametrize("window", [500, 4000])
def test_windows_of_any_size_give_the_same_rows(window: int) -> None:
    assert golden("zstd", window=window) == golden("zstd")


def test_frames_are_numbered_as_in_the_table_of_frames() -> None:
    with (GOLDEN / "gzip.pcap").open("rb") as file:
        frames = [row for batch in kwire.capture.read(file, "frames") for row in batch.to_pylist()]
    pushes = {
        (row["connection"], row["frame"], row["timestamp"], row["client_id"])
        for row in frames
        if (row["api_key"], row["direction"]) == (72, "request")
    }
    rows = golden("gzip")
    assert {(row["connection"], row["frame"], row["timestamp"], row["client_id"]) for row in rows} == pushes


# Pushes made here


def one_point(*metrics: Metric) -> Row:
    (row,) = read(Connection().open().send(push(1, otlp(*metrics))).answer(pushed(1)))
    return row


def test_a_data_point_has_its_columns() -> None:
    metric = Metric(name="org.apache.kafka.producer.record.send.total", unit="1")
    metric.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
    metric.sum.is_monotonic = True
    point = metric.sum.data_points.add(as_int=42, start_time_unix_nano=START, time_unix_nano=NOW)
    point.attributes.add(key="topic").value.string_value = "orders"
    connection = Connection().open().send(asked(1)).answer(told(1, ["org.apache.kafka.producer."]))
    metrics = compress(4, otlp(metric, client_rack="a"))
    connection.send(push(2, metrics, 4, last=True)).answer(pushed(2))
    (row,) = read(connection, name="x.pcap")
    assert row == {
        "capture": "x.pcap",
        "connection": 0,
        "frame": 2,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 5000, datetime.UTC),
        "client_id": "client",
        "client_instance_id": "dp06ONA9T_2NQL1USxsj1g",
        "subscription_id": 7,
        "push_interval_ms": 60_000,
        "requested_metrics": ["org.apache.kafka.producer."],
        "accepted_compression_types": ["zstd", "lz4"],
        "telemetry_max_bytes": 1_048_576,
        "delta_temporality": True,
        "terminating": True,
        "compression": "zstd",
        "metrics_bytes": len(metrics),
        "metric": "org.apache.kafka.producer.record.send.total",
        "requested": True,
        "type": "sum",
        "unit": "1",
        "temporality": "delta",
        "is_monotonic": True,
        "attributes": [("topic", "orders")],
        "resource_attributes": [("client_rack", "a")],
        "start_time": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC),
        "time": datetime.datetime(2023, 11, 14, 22, 14, 20, tzinfo=datetime.UTC),
        "value": 42.0,
        "count": None,
        "sum": None,
        "min": None,
        "max": None,
        "buckets": None,
        "quantiles": None,
        "violations": [],
        "status": "ok",
        "error": None,
    }


@pytest.mark.parametrize(("number", "temporality"), [(0, None), (1, "delta"), (2, "cumulative"), (9, "unknown(9)")])
def test_temporality_is_delta_or_cumulative(number: int, temporality: str | None) -> None:
    metric = Metric(name="m")
    metric.sum.aggregation_temporality = number  # type: ignore[assignment]
    metric.sum.data_points.add(as_double=1)
    assert one_point(metric)["temporality"] == temporality


def test_a_point_that_says_that_it_has_no_value_has_none() -> None:
    metric = Metric(name="m")
    metric.gauge.data_points.add(as_double=0.0, flags=1)
    row = one_point(metric)
    assert (row["value"], row["status"], row["time"]) == (None, "ok", None)


def test_histograms_have_buckets_with_bounds() -> None:
    metric = Metric(name="m")
    point = metric.histogram.data_points.add(count=6, sum=12.5, bucket_counts=[1, 2, 3], explicit_bounds=[0.5, 4])
    point.min, point.max = 0.1, 9
    metric.histogram.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    row = one_point(metric)
    assert row["buckets"] == [
        {"lower": None, "upper": 0.5, "count": 1},
        {"lower": 0.5, "upper": 4.0, "count": 2},
        {"lower": 4.0, "upper": None, "count": 3},
    ]
    names = ("type", "count", "sum", "min", "max", "value", "temporality", "status")
    assert [row[name] for name in names] == ["histogram", 6, 12.5, 0.1, 9.0, None, "cumulative", "ok"]


def test_a_histogram_may_have_no_buckets_and_no_sum() -> None:
    metric = Metric(name="m")
    metric.histogram.data_points.add(count=6)
    row = one_point(metric)
    assert (row["count"], row["sum"], row["buckets"], row["status"]) == (6, None, None, "ok")


def test_exponential_histograms_have_buckets_with_bounds() -> None:
    metric = Metric(name="m")
    point = metric.exponential_histogram.data_points.add(count=15, scale=0, zero_count=2, zero_threshold=0.25)
    point.positive.offset = 1
    point.positive.bucket_counts.extend([3, 4])
    point.negative.offset = 0
    point.negative.bucket_counts.extend([1, 5])
    row = one_point(metric)
    assert [tuple(bucket.values()) for bucket in row["buckets"]] == [
        (-4.0, -2.0, 5),
        (-2.0, -1.0, 1),
        (-0.25, 0.25, 2),
        (2.0, 4.0, 3),
        (4.0, 8.0, 4),
    ]


@pytest.mark.parametrize("scale", [-(1 << 31), -2000, 2000, (1 << 31) - 1])
def test_absurd_scales_have_no_bound_where_a_double_has_none(scale: int) -> None:
    metric = Metric(name="m")
    point = metric.exponential_histogram.data_points.add(count=1, scale=scale)
    point.positive.offset = 5
    point.positive.bucket_counts.append(1)
    point.negative.offset = -5
    point.negative.bucket_counts.append(1)
    row = one_point(metric)
    assert row["status"] == "ok"
    assert len(row["buckets"]) == 2
    for bucket in row["buckets"]:
        assert all(bound is None or math.isfinite(bound) for bound in (bucket["lower"], bucket["upper"]))


def test_summaries_have_quantiles() -> None:
    metric = Metric(name="m")
    point = metric.summary.data_points.add(count=3, sum=6)
    point.quantile_values.add(quantile=0.5, value=2)
    row = one_point(metric)
    assert (row["type"], row["count"], row["sum"]) == ("summary", 3, 6.0)
    assert row["quantiles"] == [{"quantile": 0.5, "value": 2.0}]


def test_attributes_of_any_kind_are_text_and_the_last_of_equal_keys_counts() -> None:
    metric = gauge()
    add = metric.gauge.data_points[0].attributes.add
    add(key="text").value.string_value = "ü"
    add(key="bool").value.bool_value = True
    add(key="int").value.int_value = -3
    add(key="double").value.double_value = 0.5
    add(key="bytes").value.bytes_value = b"\xff"
    nested = add(key="nested").value.kvlist_value.values.add(key="k").value.array_value.values
    nested.add().string_value = "v"
    nested.add().int_value = 1
    add(key="none")
    add(key="twice").value.string_value = "1"
    add(key="twice").value.string_value = "2"
    assert dict(one_point(metric)["attributes"]) == {
        "text": "ü",
        "bool": "true",
        "int": "-3",
        "double": "0.5",
        "bytes": "/w==",
        "nested": '{"k":["v",1]}',
        "none": None,
        "twice": "2",
    }


@pytest.mark.parametrize("codec", range(5))
def test_each_compression_gives_the_same_rows(codec: int) -> None:
    data = otlp(gauge("a", 1, math.nan), gauge("b", -0.0))
    connection = Connection().open().send(push(1, data if codec == 0 else compress(codec, data), codec))
    rows = read(connection.answer(pushed(1)))
    assert [(row["metric"], str(row["value"]), row["compression"]) for row in rows] == [
        ("a", "1.0", CODECS[codec]),
        ("a", "nan", CODECS[codec]),
        ("b", "-0.0", CODECS[codec]),
    ]


# Subscriptions


def test_a_metric_that_was_not_asked_for_is_told() -> None:
    connection = Connection().open().send(asked(1)).answer(told(1, ["a."]))
    connection.send(push(2, otlp(gauge("a.x"), gauge("b.x"))))
    assert [(row["metric"], row["requested"]) for row in read(connection)] == [("a.x", True), ("b.x", False)]


def test_a_requested_metric_that_is_not_utf_8_has_replacement_characters() -> None:
    wanted = ["a.", b"\xff\xfeb".decode("utf-8", "surrogateescape")]
    connection = Connection().open().send(asked(1)).answer(told(1, wanted))
    connection.send(push(2, otlp(gauge("a.x"), gauge("\ufffd\ufffdb"))))
    assert [(row["status"], row["requested_metrics"], row["requested"]) for row in read(connection)] == [
        ("ok", ["a.", "\ufffd\ufffdb"], True),
        ("ok", ["a.", "\ufffd\ufffdb"], False),
    ]


def test_without_the_answer_in_the_capture_nothing_is_said_of_the_subscription() -> None:
    row = one_point(gauge())
    assert (row["push_interval_ms"], row["requested_metrics"], row["requested"]) == (None, None, None)


def test_a_subscription_holds_on_other_connections_and_for_its_client_and_id_only() -> None:
    first = Connection().open().send(asked(1)).answer(told(1, [""]))
    second = Connection(client=("10.0.0.1", 40001), broker=("10.0.0.3", 9092), time=first.time + SECOND).open()
    second.send(push(1, otlp(gauge("mine"))))
    second.send(push(2, otlp(gauge("other client")), instance=OTHER))
    second.send(push(3, otlp(gauge("other id")), subscription=8))
    rows = read(first, second)
    assert [(row["metric"], row["push_interval_ms"]) for row in rows] == [
        ("mine", 60_000),
        ("other client", None),
        ("other id", None),
    ]


@pytest.mark.parametrize("window", [64, 1000, None])
def test_what_a_client_did_before_is_what_was_captured_before(window: int | None) -> None:
    first = Connection().open().send(asked(1)).answer(told(1, [""])).send(push(2, otlp(gauge()), last=True))
    # The clock was set back.
    second = Connection(client=("10.0.0.1", 40001), time=first.time - 3 * SECOND).open().send(push(3, otlp(gauge())))
    data = pcap([*first.packets, *second.packets])
    columns = ["terminating", "violations"]
    found = [
        row
        for batch in kwire.capture.read(io.BytesIO(data), "client_metrics", window=window, columns=columns)
        for row in batch.to_pylist()
        if row["terminating"] is not None
    ]
    assert [row["terminating"] for row in found] == [True, False]
    assert [[one["rule"] for one in row["violations"]] for row in found] == [[], ["after_terminating"]]


def test_an_answer_may_leave_out_the_id_that_the_client_knows() -> None:
    connection = Connection().open().send(asked(1, INSTANCE)).answer(told(1, ["a"], instance=ZERO_UUID))
    connection.send(push(2, otlp(gauge())))
    assert [row["push_interval_ms"] for row in read(connection)] == [60_000]


def test_the_newest_answer_counts() -> None:
    connection = Connection().open().send(asked(1)).answer(told(1, ["a"], interval=100))
    connection.send(asked(2, INSTANCE)).answer(told(2, ["b"], interval=200)).send(push(3, otlp(gauge())))
    (row,) = read(connection)
    assert (row["push_interval_ms"], row["requested"]) == (200, False)


def test_what_is_remembered_is_bounded() -> None:
    recent: Recent[str] = Recent(10, len)
    for key in "abcd":
        recent.put(key, key * 3)
    recent.put("b", "new")
    assert [recent.get(key) for key in "abcd"] == [None, "new", "ccc", "ddd"]
    recent.put("e", "e" * 11)
    assert [recent.get(key) for key in "bcde"] == [None] * 4


def test_a_subscription_of_absurd_length_is_not_remembered() -> None:
    connection = Connection().open().send(asked(1)).answer(told(1, ["x" * 1000] * 100)).send(push(2, otlp(gauge())))
    assert [(row["requested_metrics"], row["status"]) for row in read(connection)] == [
        (None, "too_large"),
        (None, "ok"),
    ]


# What a client does after an error


def test_a_refused_push_is_a_row_beside_the_push() -> None:
    connection = Connection().open().send(push(1, otlp(gauge()))).answer(pushed(1, 117))
    good, refused = read(connection)
    assert good["status"] == "ok"
    assert (refused["status"], refused["frame"], refused["subscription_id"]) == ("refused", 1, 7)
    assert refused["client_instance_id"] == uuid_text(INSTANCE)
    assert refused["error"].startswith("PushTelemetry: UNKNOWN_SUBSCRIPTION_ID (117)")


def test_a_refused_question_is_a_row() -> None:
    connection = Connection().open().send(asked(1)).answer(told(1, [], instance=ZERO_UUID, code=31))
    (row,) = read(connection)
    assert (row["status"], row["client_instance_id"]) == ("refused", None)
    assert row["error"].startswith("GetTelemetrySubscriptions: CLUSTER_AUTHORIZATION_FAILED (31)")


# Bad input


def around(*bad: bytes) -> list[Row]:
    """The rows of ``bad`` frames that stand between two good pushes, which must be there, each in its segment."""
    connection = Connection().open()
    for frame in (push(1, otlp(gauge("first"))), *bad, push(99, otlp(gauge("last")))):
        connection.send(frame)
    first, *rows, last = read(connection)
    assert (first["metric"], last["metric"]) == ("first", "last")
    assert all(row["status"] in STATUSES for row in rows)
    assert all(bool(row["error"]) == (row["status"] not in ("ok", "empty")) for row in rows)
    return rows


@pytest.mark.parametrize("real", range(5))
@pytest.mark.parametrize("said", range(5))
def test_a_wrong_compression_type_is_a_malformed_row(said: int, real: int) -> None:
    data = otlp(gauge("m", *range(50)), client_rack="rack " * 10)
    (row, *more) = around(push(2, data if real == 0 else compress(real, data), said))
    if said == real:
        assert (row["status"], len(more)) == ("ok", 49)
    else:
        assert (row["status"], row["compression"], row["metric"], more) == ("malformed", CODECS[said], None, [])


@pytest.mark.parametrize("codec", [-1, len(CODECS), 127])
def test_a_compression_type_that_is_not_defined_is_unsupported(codec: int) -> None:
    (row,) = around(push(2, b"x", codec))
    assert (row["status"], row["compression"]) == ("unsupported", None)
    assert f"compression type {codec} is not defined" in row["error"]


@pytest.mark.parametrize("codec", range(1, len(CODECS)))
def test_a_bomb_is_too_large(codec: int) -> None:
    (row,) = around(push(2, compress(codec, bytes(64 << 20)), codec))
    assert row["status"] == "too_large"
    assert str(8 << 20) in row["error"]


def test_what_many_pushes_decompress_to_is_bounded_for_the_whole_capture() -> None:
    """Ten bombs of 64 MiB in 2 KB each: two are tried in full, and the next may become 1 MiB."""
    connection = Connection().open().send(asked(1, INSTANCE)).answer(told(1, ["m"]))
    for number in range(2, 12):
        connection.send(push(number, compress(4, bytes(64 << 20)), 4))
    with decompression(most=40 << 20) as work:
        rows = read(connection, limits=Limits(decompressed=4 << 20))
    assert [row["status"] for row in rows if row["compression"]] == ["too_large"] * 10
    assert work.made.total() < 20 << 20
    assert "Limits(decompressed=...) raises it" in rows[1]["error"]
    assert "Limits(total=...) raises it" in rows[-1]["error"]


@pytest.mark.parametrize("data", [b"\xff" * 20, b"\x0a\x7f", b"\x12\x00", b"\x0a\x02\x12\xff", b"{}", b"metrics"])
def test_bytes_that_are_no_otlp_are_malformed(data: bytes) -> None:
    (row,) = around(push(2, data))
    assert row["status"] == "malformed"
    assert row["client_instance_id"] == uuid_text(INSTANCE)
    with pytest.raises(DecodeError):
        points(data)


@pytest.mark.parametrize("codec", range(5))
def test_a_push_of_nothing_is_empty(codec: int) -> None:
    (row,) = around(push(2, b"", codec, last=True))
    assert (row["status"], row["terminating"], row["metric"]) == ("empty", True, None)


def test_metrics_without_data_points_are_empty() -> None:
    (row,) = around(push(2, otlp(Metric(name="no kind"), Metric(name="no points", gauge=Gauge()))))
    assert row["status"] == "empty"


def test_too_many_data_points_end_with_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_metrics, "MOST_POINTS", 10)
    rows = around(push(2, otlp(gauge("m", *range(11)))))
    assert [row["value"] for row in rows] == [*range(10), None]
    assert [row["status"] for row in rows] == ["ok"] * 10 + ["too_large"]


def test_parts_that_become_no_rows_are_limited() -> None:
    (row,) = around(push(2, compress(4, b"\x0a\x00" * 400_000), 4))
    assert (row["status"], row["metric"]) == ("too_large", None)
    assert "300000 resources, scopes, metrics and attributes" in row["error"]
    metric = gauge("many", 1, 2)
    values = metric.gauge.data_points[1].attributes.add(key="a").value.array_value.values
    values.extend([AnyValue()] * 300_001)
    good, bad = around(push(2, compress(4, otlp(metric)), 4))
    assert (good["status"], good["value"], bad["status"]) == ("ok", 1.0, "too_large")


def test_attributes_that_every_row_repeats_are_limited() -> None:
    # 1 MiB of resource attributes for 1,000 data points is 1 GiB of rows.
    rows = around(push(2, compress(4, otlp(gauge("m", *range(1000)), big="x" * (1 << 20))), 4))
    assert [row["status"] for row in rows[:-1]] == ["ok"] * (len(rows) - 1)
    assert rows[-1]["status"] == "too_large"
    assert 25 < len(rows) < 33


def test_the_limits_of_a_run_hold_for_pushes() -> None:
    data = pcap(Connection().open().send(push(1, compress(4, otlp(gauge("m", *range(100)))), 4)).packets)

    def statuses(**limits: int) -> tuple[int, Row]:
        batches = telemetry.read(io.BytesIO(data), limits=Limits(**limits))
        rows = [row for batch in batches for row in batch.to_pylist()]
        return len(rows), rows[-1]

    assert statuses()[0] == 100
    count, last = statuses(text=3000)
    assert 5 < count < 20
    assert last["status"] == "too_large"
    assert "beyond the limit text of 3000" in last["error"]
    count, last = statuses(decompressed=1000)
    assert (count, last["status"]) == (1, "too_large")
    assert "beyond the limit decompressed of 1000" in last["error"]


def test_a_push_with_many_rows_comes_in_several_batches() -> None:
    connection = Connection().open().send(push(1, otlp(gauge("m", *range(20_000)))))
    batches = list(telemetry.read(io.BytesIO(pcap(connection.packets))))
    assert [batch.num_rows for batch in batches] == [8192, 8192, 3616]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"bucket_counts": [1, 2], "explicit_bounds": [1, 2]}, "2 buckets and 2 bounds"),
        ({"explicit_bounds": [1]}, "0 buckets and 1 bounds"),
        ({"bucket_counts": [1 << 63]}, "does not fit an int64"),
        ({"bucket_counts": [0] * 10_001}, "10001 buckets, more than the limit"),
        ({"count": 1 << 63}, "does not fit an int64"),
    ],
)
def test_a_histogram_that_makes_no_sense_is_malformed_and_the_next_point_is_read(fields: Row, error: str) -> None:
    metric = Metric(name="m")
    metric.histogram.data_points.add(**({"count": 3, "sum": 1.5} | fields))
    metric.histogram.data_points.add(count=4)
    bad, good = around(push(2, otlp(metric)))
    assert (bad["status"], bad["metric"], bad["sum"]) == ("malformed", "m", 1.5)
    assert error in bad["error"]
    assert (good["status"], good["count"]) == ("ok", 4)


def test_exponential_histograms_and_summaries_have_the_same_limits() -> None:
    metric, summary = Metric(name="e"), Metric(name="s")
    point = metric.exponential_histogram.data_points.add()
    point.positive.bucket_counts.extend([0] * 5001)
    point.negative.bucket_counts.extend([0] * 5000)
    metric.exponential_histogram.data_points.add(zero_count=1 << 63)
    values = summary.summary.data_points.add().quantile_values
    for _ in range(10_001):
        values.add()
    summary.summary.data_points.add(count=1 << 63)
    rows = around(push(2, otlp(metric, summary)))
    assert [row["status"] for row in rows] == ["malformed"] * 4
    assert ["10001" in row["error"] or "int64" in row["error"] for row in rows] == [True] * 4


def test_damaged_metrics_give_points_or_a_decode_error_and_nothing_else() -> None:
    data = next(body.metrics for body in bodies("none", 72) if isinstance(body, messages.PushTelemetryRequest))
    chance = random.Random(714)
    ends: Counter[str] = Counter()
    for _ in range(2000):
        bad = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        cut = bytes(bad[: chance.randint(1, 2 * len(bad))])
        try:
            for point in points(cut):
                assert point.error is None or point.error
            ends["read"] += 1
        except DecodeError:
            ends["refused"] += 1
    assert min(ends["read"], ends["refused"]) > 100


def test_a_frame_that_is_cut_off_is_unreadable() -> None:
    connection = Connection().open().send(push(1, otlp(gauge("first"))))
    frame = push(2, otlp(gauge("m", *range(500))))
    connection.send_raw(struct.pack(">i", len(frame)) + frame[:1000])
    first, row = read(connection)
    assert first["status"] == "ok"
    assert (row["status"], row["client_id"]) == ("unreadable", "client")
    assert row["error"]


def test_a_body_that_is_cut_short_is_malformed() -> None:
    (row,) = around(push(2, otlp(gauge()))[:-4])
    assert row["status"] == "malformed"
    assert "PushTelemetryRequest v0 $.metrics" in row["error"]


def test_a_damaged_answer_is_a_row_and_costs_nothing_else() -> None:
    connection = Connection().open().send(asked(1)).answer(told(1, ["a"])[:-3]).send(push(2, otlp(gauge())))
    bad, good = read(connection)
    assert bad["status"] == "malformed"
    assert "GetTelemetrySubscriptionsResponse v0" in bad["error"]
    assert (good["status"], good["requested"]) == ("ok", None)


def test_a_version_from_the_future_is_unsupported() -> None:
    frame = bytearray(push(2, otlp(gauge())))
    frame[2:4] = b"\x00\x01"
    connection = Connection().open().send(push(1, otlp(gauge()))).answer(pushed(1)).send(bytes(frame))
    rows = read(connection, ports=[9092])
    assert [row["status"] for row in rows] == ["ok", "unsupported"]


# The table


def test_batches_have_exactly_the_schema() -> None:
    for batch in telemetry.read(io.BytesIO((GOLDEN / "refusals.pcap").read_bytes())):
        assert batch.schema.equals(SCHEMA, check_metadata=True)
        batch.validate(full=True)
        for field in batch.schema:
            assert field.nullable or batch.column(field.name).null_count == 0


def test_a_capture_without_telemetry_has_no_rows() -> None:
    capture = GOLDEN.parent / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    assert rows_of(capture.read_bytes()) == []


def test_what_is_no_capture_is_said_with_its_name() -> None:
    with pytest.raises(CaptureError, match=r"^x\.bin"):
        rows_of(b"no capture at all, but some text", name="x.bin")


def test_rows_before_the_damage_of_a_file_are_there() -> None:
    data = (GOLDEN / "lz4.pcap").read_bytes()
    batches = telemetry.read(io.BytesIO(data[:-20]))
    assert next(batches).num_rows
    with pytest.raises(CaptureError, match="truncated"):
        list(batches)


def test_notes_are_told() -> None:
    notes: list[str] = []
    assert rows_of(pcap([]), on_note=notes.append) == []
    assert "no Kafka traffic" in notes[0]
