"""Golden captures, impaired in every way that ``kwire.testing.impair`` knows, against what they were before.

Which runs: for each kind some of the smaller captures, other ones for each kind, of those that lose nothing ``TINY``
more of the smallest, each with another seed, and the case that is known not to hold yet, if there is one: more than
1,000 in all. With ``--hypothesis-profile=exhaustive`` every capture, with many seeds. ``benchmarks/impair.py`` prints
the figures.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import settings

from fuzz.impair import GOLDEN, NOT_YET, captures, original, originals
from kwire.kernels.engine import MACHINE, using
from kwire.testing.impair import KINDS, VALUES, Grade, impair
from kwire.testing.judge import Original, Verdict, judge

TINY = 24
"""Runs of each kind that loses nothing with one of the smallest captures."""
SMALLEST = 30_000
"""Bytes of those: 30 to 50 frames."""
SMALL_WINDOWS = (1000, 7000, 40_000)
QUICK = 50
"""Examples of the profile that is the default."""

MEDIAN, RARELY = 2, 5
"""Frames that are passed over behind a loss: in the median, and at the 99th percentile."""

MENDED = (
    ("lost-many", "kafka-3.9-zk-kerberos/gssapi.pcap", 40),
    ("lost-bursts", "kafka-3.9-kraft-java/admin.pcap", 2),
    ("corrupted", "kafka-3.9-kraft-java/admin.pcap", 1),
    ("lost-some", "kafka-3.9-kraft-kafkajs/codecs.pcap", 108),
    # The first request, and the first token, are zeros.
    ("blanked", "kafka-4-telemetry/refusals.pcap", 1021),
    # The size of a request in front of a raw token is three bytes too large.
    ("false-sizes", "kafka-3.9-zk-kerberos/gssapi.pcap", 1026),
    # Of a connection 16 bytes are all that there is: `connections` has them.
    ("one-sided-responses", "kafka-4.3-kraft-brokers/quorum.pcap", 0),
    ("blanked", "kafka-3.9-zk-kerberos/gssapi.pcap", 1013),
    # All that a connection has is zeros.
    ("blanked", "kafka-4.4-kraft-raw/controller.pcap", 500_001),
    # A checksum that is right by chance.
    ("checksums-wrong", "kafka-4.4-kraft-raw/controller.pcap", 701_034),
    # The hello of a server before that of its client, times of plaintext where a clock is set back or packets are out
    # of order.
    ("reordered", "tls/kafka-4.3-kraft-java/agent.pcap", 100),
    ("clock-back-2s", "tls/kafka-4.3-kraft-java/agent.pcap", 100),
    ("reordered-in-the-file", "tls/kafka-4.3-kraft-franz-go/tour.pcap", 1002),
)
"""Runs that were not as they should be: rows of other windows, frames that were passed over or gone."""


def runs(kind: str) -> list[tuple[str, int]]:
    """Captures and seeds."""
    small = originals()
    seeds = settings().max_examples // QUICK
    if seeds > 1:
        return [(name, seed) for name in captures() for seed in range(seeds)]
    first = list(KINDS).index(kind)
    chosen = [(small[(first + 7 * k) % len(small)], k) for k in range(6)]
    tiny = [name for name in small if (GOLDEN / name).stat().st_size <= SMALLEST]
    if KINDS[kind].grade is not Grade.LOSSY:
        # Lossy ones leave less of them than can be told to be Kafka.
        chosen += [(tiny[(first + k) % len(tiny)], 10 + TINY * first + k) for k in range(TINY)]
    known = [(case.capture, case.seed) for cases in NOT_YET.values() for name, case in cases.items() if name == kind]
    return list(dict.fromkeys(chosen + known))


@cache
def verdicts(kind: str) -> list[tuple[str, int, int | None, Verdict]]:
    """What is to be said of each run, and of each window that it is read with."""
    made = []
    for name, seed in runs(kind):
        with using(MACHINE):
            before = original(name)
            impaired = impair(before.capture, kind, seed=seed)
            small = SMALL_WINDOWS[seed % len(SMALL_WINDOWS)]
            for window in (None, small):
                made.append((name, seed, window, judge(before, impaired, window=window)))
    return made


def of(what: str, *grades: Grade) -> Any:
    """Kinds as parameters; those that are known not to hold are expected to fail."""
    return pytest.mark.parametrize(
        "kind",
        [
            pytest.param(kind.name, marks=[pytest.mark.xfail(strict=True, reason=NOT_YET[what][kind.name].reason)])
            if kind.name in NOT_YET[what]
            else kind.name
            for kind in KINDS.values()
            if kind.grade in grades
        ],
    )


@pytest.mark.wide(keep=2)
@of("differing", Grade.LOSSLESS, Grade.REPEATED)
def test_where_nothing_is_lost_the_rows_are_the_same(kind: str) -> None:
    for name, seed, window, verdict in verdicts(kind):
        assert not verdict.differing, (name, seed, window)


@pytest.mark.wide(keep=7)
@of("differing", Grade.LOSSY)
def test_where_something_is_lost_the_rows_do_not_depend_on_windows(kind: str) -> None:
    for name, seed, window, verdict in verdicts(kind):
        assert not verdict.differing, (name, seed, window)


@of("invented", Grade.LOSSY)
def test_nothing_is_made_up(kind: str) -> None:
    for name, seed, window, verdict in verdicts(kind):
        assert not verdict.invented, (name, seed, window)


@of("unseen", Grade.LOSSY)
def test_nothing_is_gone_without_a_row_that_says_so(kind: str) -> None:
    for name, seed, window, verdict in verdicts(kind):
        assert not verdict.unseen, (name, seed, window)


@of("behind", Grade.LOSSY)
def test_frames_are_found_again_soon_behind_a_loss(kind: str) -> None:
    passed_over = sorted(
        count for _, _, window, verdict in verdicts(kind) if window is None for count in verdict.passed_over
    )
    if passed_over:
        assert passed_over[len(passed_over) // 2] <= MEDIAN
        assert passed_over[len(passed_over) * 99 // 100] <= RARELY


def test_the_first_segment_of_a_connection_may_be_a_damaged_copy() -> None:
    with using(MACHINE):
        before = original("kafka-3.9-zk-librdkafka/fallback-0.9.pcap")
        impaired = impair(before.capture, "corrupt-copies", "reordered-in-the-file", seed=621318574)
        for window in (None, *SMALL_WINDOWS):
            assert judge(before, impaired, window=window).good, window


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("kind", ["lost-many", "lost-first", "lost-one-way"])
@pytest.mark.parametrize(
    "name",
    [
        "kafka-3.9-kraft-kafkajs/codecs.pcap",
        "kafka-3.9-zk-kafka-python/first-light.pcap",
        "kafka-3.9-zk-kafka-python/pinned-0.9.pcap",
        "kafka-4.3-kraft-events/events.pcap",
    ],
)
def test_values_that_are_frames_are_not_made_into_rows(kind: str, name: str) -> None:
    with using(MACHINE):
        before = Original(impair((GOLDEN / name).read_bytes(), "values-are-frames").data)
        for seed in (0, 1, 50, 51, 52):
            impaired = impair(before.capture, kind, seed=seed)
            for window in (None, SMALL_WINDOWS[seed % 3]):
                assert judge(before, impaired, window=window).good, (seed, window)


@pytest.mark.wide
@pytest.mark.parametrize("level", VALUES)
def test_chains_of_frames_in_values_are_no_rows_that_say_ok(level: str) -> None:
    names = originals()
    if settings().max_examples == QUICK:
        # Half of the captures for each level, so that three levels or more have each of them.
        names = names[list(VALUES).index(level) % 2 :: 2]
    with using(MACHINE):
        for name in names:
            before = Original(impair(original(name).capture, level).data) if original(name).keys is None else None
            if before is None or any(row.status not in ("ok", "trailing", "unsupported") for row in before.rows):
                continue
            for kind in ("lost-one-way", "lost-many", "lost-stretches", "blanked"):
                assert not judge(before, impair(before.capture, kind, seed=0)).invented, (name, kind)


VALUES_MENDED = (
    ("values-go-on", "lost-stretches", "kafka-3.9-kraft-kafkajs/codecs.pcap", 112),
    ("values-partial", "lost-stretches", "kafka-3.9-kraft-kafkajs/codecs.pcap", 115),
    ("values-at-borders", "lost-stretches", "kafka-4.3-kraft-java/streams.pcap", 236),
    ("values-at-borders", "lost-bursts", "kafka-4-telemetry/zstd.pcap", 120),
    ("values-acknowledged", "corrupted", "kafka-4-telemetry/zstd.pcap", 211),
    ("values-acknowledged", "lost-syns", "kafka-3.9-kraft-kafkajs/codecs.pcap", 120),
    ("values-acknowledged", "lost-bursts", "kafka-3.9-kraft-kafkajs/codecs.pcap", 211),
    ("values-acknowledged", "lost-many", "kafka-3.9-kraft-kafkajs/codecs.pcap", 0),
    # A Fetch response under way: its request is missing, its beginning is, both are.
    ("values-acknowledged", "lost-first", "kafka-3.9-kraft-kafkajs/codecs.pcap", 203),
    ("values-acknowledged", "lost-one-way", "kafka-3.9-kraft-kafkajs/codecs.pcap", 228),
    ("values-acknowledged", "mid-stream", "kafka-3.9-kraft-kafkajs/codecs.pcap", 407),
    # The same, and holes hide the first answer that nobody asked for, or a request.
    ("values-acknowledged", "lost-many", "kafka-3.9-kraft-kafkajs/codecs.pcap", 230),
    ("values-acknowledged", "lost-many", "kafka-3.9-kraft-kafkajs/codecs.pcap", 404),
    # Whether a request without a client_id was believed depended on where a window ended.
    ("values-same-client", "lost-bursts", "kafka-4.3-kraft-java/streams.pcap", 229),
)
"""Runs in which a value was once a row that says ``ok``, or rows depended on windows."""


@pytest.mark.wide(keep=5)
@pytest.mark.parametrize(("level", "kind", "name", "seed"), VALUES_MENDED)
def test_a_value_that_was_taken_for_a_frame_once_is_none(level: str, kind: str, name: str, seed: int) -> None:
    with using(MACHINE):
        before = Original(impair(original(name).capture, level).data)
        impaired = impair(before.capture, kind, seed=seed)
        for window in (None, SMALL_WINDOWS[seed % 3]):
            assert judge(before, impaired, window=window).good, window


def test_requests_that_lead_up_to_a_certain_one_do_not_depend_on_windows() -> None:
    with using(MACHINE):
        data = original("kafka-4.3-kraft-java/streams.pcap").capture
        before = Original(impair(data, "values-go-on", seed=5000).data)
        impaired = impair(before.capture, "lost-many", seed=5001)
        for window in SMALL_WINDOWS:
            assert judge(before, impaired, window=window).good, window


def test_chains_of_frames_in_segments_that_begin_with_them_do_not_depend_on_windows() -> None:
    with using(MACHINE):
        before = Original(impair(original("kafka-3.9-kraft-kafkajs/codecs.pcap").capture, "values-at-borders").data)
        impaired = impair(before.capture, "mid-stream", seed=0)
        assert not judge(before, impaired, window=SMALL_WINDOWS[0]).differing


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize(("kind", "name", "seed"), MENDED)
def test_what_was_wrong_once_is_right(kind: str, name: str, seed: int) -> None:
    with using(MACHINE):
        before = original(name)
        impaired = impair(before.capture, kind, seed=seed)
        for window in (None, *SMALL_WINDOWS, 3000):
            verdict = judge(before, impaired, window=window)
            assert verdict.good, window
            assert max(verdict.passed_over, default=0) <= MEDIAN, window


def test_every_frame_of_the_golden_captures_is_judged() -> None:
    with using(MACHINE):
        for name in originals():
            # Where frames that are encrypted stand is not known.
            sealed = original(name).keys is not None
            assert (original(name).unplaced > 0) == sealed, name
