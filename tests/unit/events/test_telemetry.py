"""What KIP-714 says of subscriptions, errors and sizes, without any capture."""

from __future__ import annotations

import io
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LimitError, MissingExtraError
from kwire.events import otlp, telemetry
from kwire.events.telemetry import (
    CLIENT_ACTIONS,
    client_action,
    is_requested,
    unpack,
)
from kwire.protocol.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("requested", "metric", "matches"),
    [
        ([], "a.b", False),
        ([""], "a.b", True),
        (["*"], "a.b", True),
        (["a."], "a.b", True),
        (["a.b"], "a.b", True),
        (["a.b"], "a.bc", True),
        (["a.b.c"], "a.b", False),
        (["x", "a"], "a.b", True),
        (["x", "y"], "a.b", False),
        (["A."], "a.b", False),
        (["x", "*"], "a.b", False),
    ],
)
def test_requested_metrics_are_prefixes(requested: list[str], metric: str, matches: bool) -> None:
    assert is_requested(requested, metric) is matches


def test_every_code_of_the_kip_has_an_action() -> None:
    assert set(CLIENT_ACTIONS) == {31, 35, 42, 76, 87, 89, 117, 118}
    for code, action in CLIENT_ACTIONS.items():
        assert action.error == code
        assert client_action(code).startswith(f"{ErrorCode(code).name} ({code}): {action.reason}; the client ")


def test_an_unknown_subscription_and_a_refused_compression_are_asked_about_at_once() -> None:
    assert {code for code, action in CLIENT_ACTIONS.items() if action.retry == "at once"} == {76, 117}
    assert {code for code, action in CLIENT_ACTIONS.items() if action.retry == "next interval"} == {89, 118}
    assert {code for code, action in CLIENT_ACTIONS.items() if action.java_client != action.retry} == {31}


@pytest.mark.parametrize("code", [15, 9999])
def test_codes_that_the_kip_does_not_name_stop_kafkas_own_client(code: int) -> None:
    assert client_action(code).endswith("Kafka's own client stops pushing")
    assert f"({code})" in client_action(code)


def test_metrics_that_are_too_large_as_they_are_raise_a_limit_error() -> None:
    with pytest.raises(LimitError, match="11 bytes"):
        unpack(0, bytes(11), limit=10)
    assert unpack(0, bytes(10), limit=10) == bytes(10)


def test_without_the_extra_its_name_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1", None)
    otlp.metrics_data.cache_clear()
    with pytest.raises(MissingExtraError, match=r"kwire\[events\]"):
        telemetry.read(io.BytesIO(b""))


def field(number: int, content: bytes) -> bytes:
    """A field of a message of protobuf that has a length."""
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])
    return bytes([number << 3 | 2]) + length + content


def test_scopes_are_objects_one_after_the_other() -> None:
    data = field(1, field(2, b"") * 20_000)
    assert list(telemetry.points(data)) == []
    tracemalloc.start()
    found = list(telemetry.points(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == []
    assert peak < len(data)


def test_points_share_the_name_of_their_metric_and_are_few_for_their_bytes() -> None:
    # A metric whose points have two bytes each.
    name = b"m" * 100_000
    metric = field(1, name) + field(5, field(1, b"") * 100_000)
    data = field(1, field(2, field(2, metric)))
    found: list[telemetry.Point] = []
    with pytest.raises(LimitError, match="more data points than one for 16 bytes"):
        found.extend(telemetry.points(data))
    assert len(found) == 64 + len(data) // 16
    assert all(one.metric is found[0].metric for one in found)


@given(st.lists(st.text("ab.", max_size=4)), st.text("ab.", max_size=6))
def test_a_metric_is_looked_for_among_sorted_prefixes(requested: list[str], metric: str) -> None:
    assert is_requested(requested, metric) == metric.startswith(tuple(requested))


def test_fields_that_otlp_has_no_more_are_read_as_what_took_their_place() -> None:
    data = otlp.metrics_data()()
    resource = data.resource_metrics.add()
    old = resource.instrumentation_library_metrics.add().metrics
    new = resource.scope_metrics.add().metrics
    one = old.add(name="ints").int_gauge.data_points.add(value=-7, time_unix_nano=5)
    one.labels.add(key="a", value="b")
    total = old.add(name="total").int_sum
    total.aggregation_temporality, total.is_monotonic = 1, True
    total.data_points.add(value=3)
    spread = old.add(name="spread").int_histogram
    spread.aggregation_temporality = 2
    spread.data_points.add(count=3, sum=9, bucket_counts=[1, 2], explicit_bounds=[4])
    mixed = new.add(name="mixed").gauge.data_points.add(as_double=1.5)
    mixed.labels.add(key="a", value="label")
    mixed.labels.add(key="c", value="d")
    mixed.attributes.add(key="a").value.string_value = "attribute"
    new.add(name="labelled").summary.data_points.add(count=1, sum=2).labels.add(key="x", value="y")
    found = {one.metric: one for one in telemetry.points(data.SerializeToString())}
    assert set(found) == {"ints", "total", "spread", "mixed", "labelled"}
    gauge = found["ints"]
    assert (gauge.type, gauge.value, gauge.time, gauge.attributes) == ("gauge", -7.0, 5, {"a": "b"})
    total = found["total"]
    assert (total.type, total.value, total.temporality, total.is_monotonic) == ("sum", 3.0, "delta", True)
    spread = found["spread"]
    assert (spread.type, spread.count, spread.sum, spread.temporality) == ("histogram", 3, 9.0, "cumulative")
    assert spread.buckets == [(None, 4.0, 1), (4.0, None, 2)]
    assert (spread.min, spread.max) == (None, None)
    assert found["mixed"].attributes == {"a": "attribute", "c": "d"}
    assert found["labelled"].attributes == {"x": "y"}


def test_what_the_draft_said_stands_beside_what_the_kip_says() -> None:
    drafts = {code: one.draft for code, one in CLIENT_ACTIONS.items() if one.draft is not None}
    assert set(drafts) == {31, 76, 87, 89, 117}
    assert "5 minutes" in drafts[87]
    assert set(telemetry.DRAFT_ACTIONS) == {"FunctionalityNotEnabled", "UnsupportedEncoding"}


def test_edges_of_exponential_buckets_are_powers_whatever_scale_and_offset_are():
    class Side:
        def __init__(self, offset: int, count: int) -> None:
            self.offset = offset
            self.bucket_counts = [1] * count

    assert telemetry._edges(Side(-1, 3), 0) == [0.5, 1.0, 2.0, 4.0]
    assert telemetry._edges(Side(0, 2), 1) == [1.0, 2**0.5, 2.0]
    assert telemetry._edges(Side(-1, 2), -(2**31)) == [0.0, 1.0, None]
    assert telemetry._edges(Side(-1, 2), 2**31 - 1) == [1.0, 1.0, 1.0]
    assert telemetry._edges(Side(1023, 1), 0) == [2.0**1023, None]
    assert telemetry._edges(Side(-1075, 1), 0) == [0.0, 5e-324]
    assert telemetry._edges(Side(2**31 - 1, 1), -3) == [None, None]
