"""Sums that stay small: nothing is forgotten, and how the traffic is cut into batches changes nothing."""

from __future__ import annotations

import io
import math
import random
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packets import Connection, metadata, metadata_answer, pcap, produce, produce_answer

from kwire import capture
from kwire.report.overview import TABLES, Overview
from kwire.report.sums import (
    MOST_BUCKETS,
    UNDATED,
    WIDTHS,
    Clock,
    Latencies,
    Spans,
    Top,
    latency_steps,
    slowest,
    tuples,
)


def test_equal_texts_of_a_table_are_one_object_however_they_are_stored() -> None:
    # Keys are kept for as long as a capture is read: a million rows of one topic are one text.
    texts = ["a topic", "another topic", None] * 2
    plain = pa.array(texts)
    for column in (plain, plain.dictionary_encode()):
        rows = [row for part in (column, column) for row in tuples(pa.table({"topic": part, "n": range(6)}))]
        assert rows == [*zip(texts, range(6), strict=True)] * 2
        assert len({id(topic) for topic, _ in rows if topic is not None}) == 2


def test_values_of_a_dictionary_stay_what_they_are() -> None:
    values = [1, None, 300, 1]
    assert list(tuples(pa.table({"n": pa.array(values, pa.int64()).dictionary_encode()}))) == [(one,) for one in values]


def test_the_largest_stay_and_the_others_are_added_up() -> None:
    random.seed(1)
    top, exact = Top(2, keep=50), {}
    for _ in range(20_000):
        key = int(random.paretovariate(0.5)) % 5_000
        top.add(key, 10 if key < 20 else 1, 1)
        exact[key] = exact.get(key, 0) + (10 if key < 20 else 1)
        assert len(top.sums) <= 100
    assert top.total() == [sum(exact.values()), 20_000]
    assert len(top) >= len(exact)
    largest = sorted(exact, key=lambda key: -exact[key])[:10]
    assert [key for key, _ in top.largest(10)] == largest
    assert all(sums[0] == exact[key] for key, sums in top.largest(10))


def test_few_keys_are_all_there() -> None:
    top = Top(1, keep=4)
    for key in (None, ("a", None), "b"):
        top.add(key, 1)
    assert len(top) == 3
    assert top.others == [0]


@given(st.lists(st.floats(0.001, 1e7), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_right_to_one_percent(milliseconds: list[float], part: float) -> None:
    found = Latencies()
    for step, one in zip(latency_steps(milliseconds), milliseconds, strict=True):
        found.add(int(step), 1, one)
    exact = sorted(milliseconds)[math.ceil(part * len(milliseconds)) - 1]
    assert found.quantile(part) == pytest.approx(exact, rel=0.0101)
    other = Latencies()
    other.merge(found)
    assert other.quantile(part) == found.quantile(part)


def test_latencies_that_no_clock_measures() -> None:
    steps = latency_steps([float("nan"), -5.0, 0.0, float("inf"), 1e300])
    assert [int(one) for one in steps[:3]] == [0, 0, 0]
    assert steps.max() == 2_000
    assert Latencies().quantile(0.5) is None


def test_each_width_is_a_multiple_of_the_one_before() -> None:
    assert all(wide % narrow == 0 and wide > narrow for narrow, wide in pairwise(WIDTHS))


TIMES = st.lists(st.integers(UNDATED + 1, 2**62) | st.integers(0, 10**9), min_size=1, max_size=60)


@given(TIMES, st.integers(1, 59))
def test_buckets_do_not_depend_on_batches(times: list[int], cut: int) -> None:
    made = []
    for batches in ([times], [times[:cut], times[cut:]]):
        clock = Clock()
        line = clock.timeline(2, largest=1)
        for batch in batches:
            buckets = clock.buckets(np.array(batch, np.int64))
            for bucket, time in zip(buckets.tolist(), batch, strict=True):
                line.add("a", bucket, 1, time % 7)
        assert len(clock.range()) <= MOST_BUCKETS
        out = [bucket for bucket, _, _ in clock.strays()]
        assert sum(line.values("a", clock.range())) + sum(line.values("a", out)) == len(times)
        assert sum(one is not None for one in line.values("a", clock.range(), 1)) == len(line.of["a"]) - len(out)
        made.append((clock.width, line.of, clock.between(), out))
    assert made[0] == made[1]
    (_, of, between, _), exact = made[0], np.floor_divide(times, made[0][0])
    assert sorted(of["a"]) == sorted(set(exact.tolist()))
    assert between is not None
    assert set(between) <= set(times)


def test_a_wild_time_does_not_squeeze_the_others() -> None:
    day, begin = 86_400_000_000, 1_790_000_000_000_000
    usual = [begin + k * 10_000 for k in range(3000)]

    def seen(*more: int) -> tuple[int, int, int, int]:
        clock = Clock()
        for batch in (usual[:7], more, usual[7:]):
            clock.buckets(np.array(batch, np.int64))
        between = clock.between()
        assert between is not None
        return len(clock.range()), clock.width, between[1] - between[0], len(clock.strays())

    plain = seen()
    assert plain == (300, 100_000, 29_990_000, 0)
    # 1970, 2100, the largest there is; a bit of a time that is wrong.
    for more in ([0], [4_102_444_800_000_000], [0, 2**62, -(2**61)], [begin + 5 * day]):
        assert seen(*more) == (*plain[:3], len(more))
    # Hours later, or as many as all others, is traffic.
    assert seen(begin + day // 2)[2:] == (day // 2, 0)
    assert seen(*(begin - 400 * day + k for k in range(1000)))[3] == 0


def test_keys_of_a_timeline_are_bounded_and_none_is_forgotten() -> None:
    clock = Clock()
    line = clock.timeline(1, keep=4)
    clock.buckets(np.array([0, 1000]))
    for key in range(1000):
        line.add(f"key {key}", 0, 1 if key else 100)
        assert len(line.of) <= 17
    assert sum(values[0][0] for values in line.of.values()) == 1099
    assert line.keys()[0] == "key 0"


def test_time_that_several_spans_cover_counts_once() -> None:
    made = Spans(most=2)
    for begin, end in ((0, 10), (5, 12), (3, 4), (20, 30)):
        made.add("a", begin, end)
    assert (made.covered("a"), made.covered("a", 25), made.covered("a", 40), made.covered("b")) == (22, 17, 22, 0)
    for key in "bcd":
        made.add(key, 0, 10)
    assert (made.covered("b"), made.covered("c"), made.covered(None)) == (10, 0, 10)


def test_the_moment_when_most_was_slow() -> None:
    def told(**milliseconds: list[float]) -> dict[str, Latencies]:
        made = {}
        for api, values in milliseconds.items():
            made[api] = Latencies()
            for value in values:
                made[api].add(int(latency_steps([value])[0]), 1, value)
        return made

    quick = told(Produce=[2.0] * 50, Fetch=[500.0] * 50)
    usual = told(Produce=[2.0] * 500 + [3000.0] * 9, Fetch=[500.0] * 50, CreateTopics=[150.0] * 6)
    assert slowest({1: quick, 2: quick}, usual) is None
    slow = slowest({1: quick, 2: told(Produce=[3000.0] * 6 + [2.0] * 3, Fetch=[3000.0] * 9), 3: quick}, usual)
    assert slow is not None
    assert (slow.at, slow.slow, slow.responses, round(slow.longest, -2)) == (2, 6, 9, 3000)
    # As long as ever; too few; not most; on purpose.
    assert slowest({1: told(CreateTopics=[150.0] * 6)}, usual) is None
    assert slowest({1: told(Produce=[3000.0] * 4)}, usual) is None
    assert slowest({1: told(Produce=[3000.0] * 9 + [2.0] * 9)}, usual) is None
    assert slowest({1: told(JoinGroup=[3000.0] * 9)}, usual) is None


def test_the_report_shows_no_client_waiting_for_longer_than_the_capture_goes_on() -> None:
    # Told to wait for a minute each second, on two connections at once; the capture ends after ten seconds.
    packets = []
    for client in (40000, 40001):
        connection = Connection(client=("10.0.0.1", client)).open()
        for number in range(1, 10):
            connection.time = 1_700_000_000_000_000_000 + number * 1_000_000_000
            connection.send(produce(number, 1)).answer(produce_answer(number)[:-4] + struct.pack(">i", 60_000))
        packets += connection.packets
    calm = Connection(client=("10.0.0.9", 40000), time=1_700_000_000_000_000_000).open()
    calm.send(produce(1, 1)).answer(produce_answer(1)[:-4] + struct.pack(">i", 40))
    calm.time += 9_998_000_000
    packets += calm.send(metadata(2)).answer(metadata_answer(2)).packets
    overview = Overview()
    data = io.BytesIO(pcap(sorted(packets, key=lambda one: one.time)))
    for name, batch in capture.read(data, tables=list(TABLES), columns=TABLES):
        overview.add(name, batch)
    overview.finish()
    assert overview.seconds() == pytest.approx(10, abs=0.1)
    # From the first answer to the end.
    assert overview.throttled("10.0.0.1", "test") == pytest.approx(9000, abs=100)
    assert overview.throttled("10.0.0.9", "test") == 40
    assert overview.throttled("10.0.0.8", "test") is None


def test_what_has_no_time_is_in_no_bucket_of_a_chart() -> None:
    clock = Clock(most=4)
    line = clock.timeline(1)
    for bucket in clock.buckets(np.array([UNDATED, 10**15, UNDATED, 10**15 + 10**12])).tolist():
        line.add("a", bucket, 1)
    assert clock.between() == (10**15, 10**15 + 10**12)
    clock.buckets(np.arange(10**15, 10**15 + 10**9, 10**7))
    assert sum(line.values("a", clock.range())) == 2
    assert clock.strays() == []
    assert sum(values[0] for values in line.of["a"].values()) == 4
    assert clock.buckets(np.array([UNDATED])).tolist() == [UNDATED]
