"""A time that the capture does not state is null, in every table: packets of pcapng without a time."""

from __future__ import annotations

import datetime
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_captures import ONE, Row, brief, exchange, read
from packets import (
    ACK,
    SYN,
    Connection,
    Packet,
    block,
    enhanced,
    interface,
    metadata,
    metadata_answer,
    section,
    simple,
)

from kwire import capture, cli, tables
from kwire.capture.containers import Container, first_time, first_time_in
from kwire.capture.tracker import IDLE, Tracker
from kwire.capture.writing import PcapngWriter, Raw
from kwire.errors import CaptureError
from kwire.kernels.engine import Engine
from kwire.kernels.packets import Count
from kwire.report import findings, lineage, live, overview, spans
from kwire.testing import packets as whole_packets

GOLDEN = Path(__file__).parents[2] / "golden"
TIMES = ("timestamp", "frame_timestamp", "latency_ms", "first_seen", "last_seen", "handshake_ms")
OF_TIMES = (*TIMES, "most_in_flight", "committed_offset", "expired")
"""Columns that are another value where a packet has no time."""
EVERY = [*tables.names("capture"), *tables.names("events")]
OF_TABLE = {
    "journeys": ("produced", "acknowledged", "fetched", "committed", "ack_ms", "fetch_ms", "commit_ms", "total_ms"),
}
"""The same, of one table."""
OF_RECORDS = ("records", "batches", "partitions")
"""Tables whose ``timestamp`` is in the message."""
START = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)


def capture_of(packets: list[Packet], *untimed: int) -> bytes:
    """A pcapng file in which the packets with these numbers have no time."""
    numbered = enumerate(packets)
    blocks = [simple(one) if k in untimed else enhanced(one, resolution=9) for k, one in numbered]
    return section() + interface(resolution=9) + b"".join(blocks)


def written(path: Path, which: Callable[[int], bool]) -> bytes:
    """A golden capture, the packets with the numbers ``which`` without a time."""
    out = io.BytesIO()
    writer = PcapngWriter(out)
    for number, one in enumerate(whole_packets.read(path.read_bytes())):
        writer.write(Raw(None if which(number) else one.time, bytes(one.data), one.size, one.link))
    return out.getvalue()


def several(data: bytes, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Some tables, with their columns."""
    return capture.read(io.BytesIO(data), tables=list(wanted), columns=wanted)


def ends(data: bytes, **options: Any) -> Row:
    (row,) = read(data, "connections", **options)
    return row


def after(milliseconds: int) -> datetime.datetime:
    return START + datetime.timedelta(milliseconds=milliseconds)


# A request in packet 3, its response in packet 4; each packet comes a millisecond after the one before.


@pytest.mark.parametrize(
    ("untimed", "asked", "answered", "latency"),
    [
        ((), 3, 4, 1.0),
        ((3,), None, 4, None),
        ((4,), 3, None, None),
        ((3, 4), None, None, None),
        ((0, 1, 2), 3, 4, 1.0),
        ((0, 1, 2, 3, 4), None, None, None),
    ],
)
def test_a_frame_has_the_time_of_its_packet_or_none(
    engine: Engine, untimed: tuple[int, ...], asked: int | None, answered: int | None, latency: float | None
) -> None:
    data = capture_of(exchange().packets, *untimed)
    for window in (None, 64):
        found = read(data, window=window)
        assert brief(found) == ONE
        wanted = [None if one is None else after(one) for one in (asked, answered)]
        assert [row["timestamp"] for row in found] == wanted
        assert [row["latency_ms"] for row in found] == [None, latency]


@pytest.mark.parametrize(
    ("untimed", "first", "last", "handshake"),
    [
        ((), 0, 4, 2.0),
        ((0,), 1, 4, None),
        ((1,), 0, 4, None),
        ((2,), 0, 4, None),
        ((4,), 0, 3, 2.0),
        ((0, 1, 2, 3), 4, 4, None),
        ((0, 1, 2, 3, 4), None, None, None),
    ],
)
def test_a_connection_has_the_times_of_the_packets_that_have_one(
    engine: Engine, untimed: tuple[int, ...], first: int | None, last: int | None, handshake: float | None
) -> None:
    row = ends(capture_of(exchange().packets, *untimed))
    wanted = [None if one is None else after(one) for one in (first, last)]
    assert [row["first_seen"], row["last_seen"], row["handshake_ms"]] == [*wanted, handshake]
    assert (row["status"], row["requests"], row["responses"]) == ("ok", 1, 1)


def test_a_frame_of_several_packets_has_the_time_of_the_last(engine: Engine) -> None:
    connection = Connection(mss=20).open().send(metadata(1, "a" * 40)).answer(metadata_answer(1))
    sent = [k for k, one in enumerate(connection.packets) if one.payload and one.dst[1] == 9092]
    assert len(sent) > 2
    for untimed in sent:
        found = read(capture_of(connection.packets, untimed))
        assert found[0]["timestamp"] == (None if untimed == sent[-1] else after(sent[-1]))


def test_what_is_missing_at_the_end_of_a_capture_without_times_has_none(engine: Engine) -> None:
    packets = Connection(mss=20).open().send(metadata(1, "a" * 40)).packets
    for whole in (packets[:-1], [*packets[:3], packets[4]]):
        data = capture_of(whole, *range(len(whole)))
        found = read(data, ports=(9092,))
        assert {row["timestamp"] for row in found} == {None}
        assert found == read(data, window=64, ports=(9092,))


def test_a_syn_without_a_time_is_the_first_again(engine: Engine) -> None:
    """Later than any copy would be another connection; how much later this one is, nobody knows."""
    packets = exchange().packets
    again = Packet(packets[0].src, packets[0].dst, packets[0].seq, b"", SYN, 0, packets[-1].time + 10**12)
    rest = exchange(count=2).packets[5:]
    assert len(read(capture_of([*packets, again, *rest]), "connections")) == 2
    for untimed in ((5,), (0, 1, 2, 3, 4)):
        found = read(capture_of([*packets, again, *rest], *untimed), "connections")
        assert [row["requests"] for row in found] == [2]


def test_rows_without_a_time_come_behind_those_that_were_known_before(engine: Engine) -> None:
    packets = exchange(count=6).packets
    for untimed in (range(5, 9), (3, 8, 11), range(len(packets))):
        data = capture_of(packets, *untimed)
        found = read(data)
        assert [row["frame"] for row in found] == list(range(12))
        assert found == read(data, window=64)


@pytest.mark.parametrize(
    "which", [lambda k: True, lambda k: k % 3 == 1, lambda k: k < 100], ids=["all", "some", "first"]
)
@pytest.mark.parametrize("name", ["kafka-3.9-zk-kafka-python/first-light.pcap", "kafka-4.3-kraft-events/events.pcap"])
@pytest.mark.wide(keep=2)
def test_every_table_has_the_same_rows_but_for_their_times(name: str, which: Callable[[int], bool]) -> None:
    path = GOLDEN / name
    timed, untimed = written(path, lambda _: False), written(path, which)
    for table in EVERY:
        kept = [one for one in OF_TIMES if one != "timestamp" or table not in OF_RECORDS] + [*OF_TABLE.get(table, ())]
        expected, found = (
            Counter(repr({name: value for name, value in row.items() if name not in kept}) for row in read(one, table))
            for one in (timed, untimed)
        )
        assert found == expected, table


@pytest.mark.parametrize("name", ["kafka-3.9-zk-kafka-python/first-light.pcap", "kafka-4.3-kraft-events/events.pcap"])
def test_no_table_makes_up_a_time(name: str) -> None:
    data = written(GOLDEN / name, lambda _: True)
    for table in EVERY:
        named = [one for one in TIMES if table not in OF_RECORDS or one != "timestamp"]
        for row in read(data, table):
            assert {row[one] for one in named if one in row} <= {None}, table


def test_a_committed_offset_needs_the_times_of_both(engine: Engine) -> None:
    path = GOLDEN / "kafka-3.9-zk-kafka-python/first-light.pcap"
    timed = read(written(path, lambda _: False), "records", columns=["frame", "committed_offset"])
    assert any(row["committed_offset"] is not None for row in timed)
    for window in (None, 3000):
        found = read(written(path, lambda _: True), "records", columns=["frame", "committed_offset"], window=window)
        assert [row["committed_offset"] for row in found] == [None] * len(timed)


def test_filters_by_time_find_no_row_without_one() -> None:
    data = capture_of(exchange().packets, 4)
    for only in ({"start": "2020-01-01"}, {"end": "2030-01-01"}, {"start": "2020-01-01", "end": "2030-01-01"}):
        assert [row["direction"] for row in read(data, **only)] == ["request"]
    assert len(read(data)) == 2


def test_a_state_without_times_goes_on(engine: Engine) -> None:
    packets = exchange(count=3).packets
    for untimed in ((), range(len(packets)), (0, 4, 5)):
        data = capture_of(packets, *untimed)
        for at in range(60, len(data), 97):
            tracker, other = Tracker(), Tracker()
            frames = [*tracker.feed(data[:at])]
            other.restore(tracker.save())
            frames += [*other.feed(data[at:], final=True)]
            found = [(one.number, one.time, one.latency) for one in frames]
            whole = [(one.number, one.time, one.latency) for one in Tracker().feed(data, final=True)]
            assert found == whole


def test_an_endless_capture_without_times_gives_up_no_connection() -> None:
    tracker = Tracker(forgets=True)
    many = [Connection(("10.1.0.1", 1024 + k), time=k).open().packets for k in range(1100)]
    tracker.feed(capture_of([one for each in many for one in each], *range(3300)))
    later = Packet(("10.0.0.9", 99), ("10.0.0.2", 9092), 1, b"x", ACK, 1, 2 * IDLE)
    for _ in range(2):
        tracker.feed(enhanced(later, resolution=9))
    assert len(tracker.connections()) == 1101


def test_the_first_time_of_a_file_is_the_first_that_is_stated() -> None:
    packets = exchange().packets
    assert first_time(capture_of(packets, 0, 1)) == packets[2].time
    assert first_time(capture_of(packets, *range(5))) is None


@pytest.mark.parametrize("size", [0, 1, 8, 13, 40_000])
def test_the_first_time_is_found_behind_blocks_that_say_nothing(size: int) -> None:
    packet = exchange().packets[0]
    before = section() + block(5, bytes(size)) + interface(resolution=9)
    data = before + enhanced(packet, resolution=9)
    assert Container(np.zeros(len(Count), np.int64)).described(data) == len(before)

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 1000))

    assert first_time_in(Slow(data)) == (packet.time, None)


@pytest.mark.parametrize("size", [13, 14, 15, 18])
def test_a_block_whose_length_is_no_multiple_of_four_is_damage(size: int) -> None:
    wrong = (0xBAD).to_bytes(4, "little") + size.to_bytes(4, "little") + bytes(size - 8)
    with pytest.raises(CaptureError, match="a block cannot be as long"):
        Container(np.zeros(len(Count), np.int64)).described(section() + interface() + wrong + bytes(100))


def test_packets_without_a_time_are_written_without_one() -> None:
    """A simple packet block says neither its interface nor how much of the packet was captured."""
    raw = [
        Raw(None, b"abc", 3, 1),
        Raw(5, b"abcd", 9, 113),
        Raw(None, b"ab", 2, 113),
        Raw(None, b"abcde", 77, 113),
        Raw(7, b"abcdef", 6, 1),
        Raw(None, b"abcdefg", 77, 113),
        Raw(None, b"a", 1, 1),
    ]
    out = io.BytesIO()
    writer = PcapngWriter(out)
    for one in raw:
        writer.write(one)
    assert writer.packets == len(raw)
    data = np.frombuffer(out.getvalue(), np.uint8)
    tracker = Tracker(part=0)
    tracker.feed(data.tobytes(), final=True)
    assert tracker.window is not None
    assert [
        Raw(
            None if row["time"] == np.iinfo(np.int64).min else int(row["time"]),
            tracker.window.data[row["off"] : row["off"] + row["captured"]].tobytes(),
            int(row["size"]),
            int(row["link"]),
        )
        for row in tracker.window.packets
    ] == raw


@pytest.fixture
def untimed(tmp_path: Path) -> str:
    """A capture without times."""
    path = tmp_path / "untimed.pcapng"
    path.write_bytes(written(GOLDEN / "kafka-3.9-zk-kafka-python/first-light.pcap", lambda _: True))
    return str(path)


def test_an_export_of_packets_has_the_same_rows(untimed: str, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert cli.main(["export", untimed, "--pcapng", str(out)]) == 0
    kept = ("direction", "api_name", "correlation_id", "size", "status", "timestamp", "latency_ms")
    one, other = (
        [[row[name] for name in kept] for row in read(Path(path).read_bytes())] for path in (untimed, str(out))
    )
    assert one == other


def test_what_has_no_time_is_no_span(untimed: str, tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    out = tmp_path / "spans.jsonl"
    assert cli.main(["export", untimed, "--otlp", str(out)]) == 0
    assert not out.exists() or "startTimeUnixNano" not in out.read_text()


@pytest.mark.parametrize(("untimed", "wanted"), [((), [(3, 4)]), ((4,), [(3, 3)]), ((3,), []), ((3, 4), [])])
def test_a_span_needs_the_time_of_its_request_only(untimed: tuple[int, ...], wanted: list[tuple[int, int]]) -> None:
    pytest.importorskip("opentelemetry.proto")
    data, made = capture_of(exchange().packets, *untimed), spans.Spans()
    found = [one for name, batch in several(data, spans.TABLES) for one in made.add(name, batch)]
    assert [one.response is not None for one in found] == [True] * len(wanted)
    assert not [*made.rest()]
    text = spans.json_line(found) if found else "{}"
    times = [
        (int(one["startTimeUnixNano"]), int(one["endTimeUnixNano"]))
        for resource in json.loads(text).get("resourceSpans", ())
        for scope in resource["scopeSpans"]
        for one in scope["spans"]
    ]
    begin = exchange().packets[0].time
    assert times == [(begin + 1_000_000 * one, begin + 1_000_000 * other) for one, other in wanted]


@pytest.mark.parametrize("which", [lambda k: True, lambda k: k % 3 == 1], ids=["all", "some"])
def test_reports_count_what_has_no_time_and_show_none(which: Callable[[int], bool]) -> None:
    path = GOLDEN / "kafka-3.9-zk-kafka-python/first-light.pcap"
    timed, untimed = written(path, lambda _: False), written(path, which)
    before, after_ = (overview.of_tables(several(one, overview.TABLES)) for one in (timed, untimed))
    assert after_.totals["frames"] == before.totals["frames"] > 0
    assert after_.totals["requests"] == before.totals["requests"]
    assert (after_.clock.between() is None) == which(0)
    edges = []
    for one in (timed, untimed):
        made = lineage.Lineage()
        for name, batch in several(one, lineage.TABLES):
            made.add(name, batch)
        edges.append(lineage.batch_of(made.result()).to_pylist())
    assert edges[0]
    for row, other in zip(*edges, strict=True):
        assert row | dict.fromkeys(("first_seen", "last_seen")) == other | dict.fromkeys(("first_seen", "last_seen"))
        assert {other["first_seen"], other["last_seen"]} == {None} or not which(0)
    finder = findings.Finder()
    for name, batch in several(untimed, findings.needed()):
        finder.add(name, batch)
    for row in findings.batch_of(finder.result()).to_pylist():
        assert row["first_seen"] is None or row["first_seen"].year > 2000
    now = live.Live()
    for name, batch in several(untimed, live.TABLES):
        now.add(name, batch)
    now.look()
    assert now.frames == before.totals["frames"]
    assert (now.last is None) == which(0)


def test_commands_take_a_capture_without_times(
    untimed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    for argv in (
        ["report", untimed, "-o", str(page)],
        ["findings", untimed],
        ["audit", untimed],
        ["lineage", untimed],
        ["decode", untimed, "--table", "connections"],
        ["decode", untimed, "--format", "jsonl"],
    ):
        assert cli.main(argv) in (0, 1), argv
        assert "1970-" not in capsys.readouterr().out, argv
    assert "1970-" not in page.read_text(encoding="utf-8")
    assert cli.main(["decode", untimed, "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["timestamp"] for line in lines} == {None}
