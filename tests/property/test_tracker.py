"""A capture in parts: the same frames as from the whole, with the same numbers, whoever reads the parts.

- A tracker that takes over the state of another goes on as if it were the other: for any capture, cut anywhere.
- However a capture is cut, its frames are the same, their numbers, order, client ids, statuses and latencies included.

The profile ``exhaustive`` takes golden captures of any size and many more of those made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fed_in_parts import PCAP_HEADER, Seen, fed, packet_ends, seen
from hypothesis import given, settings
from hypothesis import strategies as st
from mixed_connections import close_together, mixture, out_of_order, with_loss
from packets import Connection, Packet, metadata, pcap, pcapng

from kwire.capture.state import STATE, STATE_VERSION
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.kernels.layouts import Status

LARGEST = 300_000
EVERY_SIZE = settings.default.max_examples > 50
GOLDEN = [
    path
    for path in sorted((Path(__file__).parents[1] / "golden").glob("*/*.pcap*"))
    if EVERY_SIZE or path.stat().st_size < LARGEST
]
# Of one traffic in five compressions, two: what compresses a body is nothing to who reads frames.
SAME = tuple(f"kafka-4-telemetry/{name}.pcap" for name in ("gzip", "lz4", "snappy"))
MIDDLE = [
    path
    for path in GOLDEN
    if EVERY_SIZE or (path.stat().st_size < 85_000 and f"{path.parent.name}/{path.name}" not in SAME)
]
SMALL = [path for path in GOLDEN if path.stat().st_size < 12_000]

golden = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.name}")


def test_there_are_captures() -> None:
    assert len(GOLDEN) > 30
    assert len(MIDDLE) > 8
    assert SMALL


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("path", MIDDLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_golden_capture_handed_on_after_every_packet_gives_the_frames_of_the_whole(path: Path) -> None:
    data = path.read_bytes()
    with using(MACHINE):
        whole = fed(data)
        assert whole
        assert [one.number for one in whole] == list(range(len(whole)))
        assert fed(data, packet_ends(data), handed_on=True) == whole


@pytest.mark.wide(keep=9)
@golden
def test_a_golden_capture_in_windows_of_any_size_gives_the_frames_of_the_whole(path: Path) -> None:
    data = path.read_bytes()
    with using(MACHINE):
        whole = fed(data)
        # Small ones, but not so many that a large capture takes long.
        for window in (max(700, len(data) // 100), max(5000, len(data) // 30), 100_000):
            assert fed(data, range(window, len(data), window)) == whole
            if window >= 5000:
                assert fed(data, range(window, len(data), window), handed_on=True) == whole


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("path", SMALL, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_golden_capture_byte_by_byte_gives_the_frames_of_the_whole(path: Path) -> None:
    data = path.read_bytes()
    with using(MACHINE):
        assert fed(data, range(1, len(data))) == fed(data)


def file_of(packets: list[Packet], seed: int, **options: Any) -> bytes:
    return pcap(packets, **options) if seed % 2 or options else pcapng(packets)


def cuts_of(data: bytes, window: int) -> list[int]:
    """After every packet, or at each multiple of a number of bytes."""
    return list(range(window, len(data), window)) if window else packet_ends(data)


windows = st.sampled_from([0, 0, 700, 5000])


# The states of all connections after every packet, by Python too: minutes, for fifty of them.
@pytest.mark.wide
@settings(max_examples=settings.default.max_examples if EVERY_SIZE else 12)
@given(
    seed=st.integers(0, 1 << 32),
    opened=st.booleans(),
    loss=st.booleans(),
    disorder=st.booleans(),
    snaplen=st.sampled_from([None, None, 60, 100, 400]),
    window=windows,
    ports=st.sampled_from([None, None, [9092], [9093, 80]]),
    engine=st.sampled_from([MACHINE] * 9 + [PYTHON]),
)
def test_a_state_that_is_handed_on_changes_nothing_whatever_the_capture_is(
    seed: int,
    opened: bool,
    loss: bool,
    disorder: bool,
    snaplen: int | None,
    window: int,
    ports: list[int] | None,
    engine: Any,
) -> None:
    packets = mixture(seed, opened=opened)
    packets = with_loss(packets, seed) if loss else packets
    packets = out_of_order(packets, seed) if disorder else packets
    data = file_of(packets, seed, **({} if snaplen is None else {"snaplen": snaplen}))
    with using(engine):
        cuts = cuts_of(data, window)
        assert fed(data, cuts, handed_on=True, ports=ports) == fed(data, cuts, ports=ports)


@pytest.mark.wide
@given(seed=st.integers(0, 1 << 32), window=windows, engine=st.sampled_from([MACHINE] * 9 + [PYTHON]))
def test_frames_and_their_numbers_do_not_depend_on_the_windows(seed: int, window: int, engine: Any) -> None:
    data = file_of(mixture(seed), seed)
    with using(engine):
        whole = fed(data)
        assert {one.status for one in whole} >= {Status.OK}
        assert fed(data, cuts_of(data, window)) == whole


# What old brokers send is left out. An empty token that answers one, and a FindCoordinator response with correlation id
# 0, say nothing by which they could be told from others when they were captured before what they answer.
@pytest.mark.wide
@given(seed=st.integers(0, 1 << 32), window=windows)
def test_disorder_does_not_make_frames_depend_on_the_windows(seed: int, window: int) -> None:
    packets = close_together(out_of_order(mixture(seed, old=False, ends=False), seed))
    data = file_of(packets, seed)
    with using(MACHINE):
        assert fed(data, cuts_of(data, window)) == fed(data)


@pytest.mark.wide
@given(seed=st.integers(0, 1 << 32), window=windows)
def test_missing_packets_do_not_make_frames_depend_on_the_windows(seed: int, window: int) -> None:
    data = file_of(impaired(seed), seed)
    with using(MACHINE):
        assert fed(data, cuts_of(data, window)) == fed(data)


def impaired(seed: int) -> list[Packet]:
    """Packets out of order, of connections whose beginning was not captured in one case of three. Some are missing."""
    return out_of_order(with_loss(mixture(seed, opened=bool(seed % 3)), seed), seed)


# When a request was settled depended on the window, where all that is captured of the answers before it was skipped.
@pytest.mark.parametrize("seed", [100_039, 100_900])
def test_answers_that_were_skipped_put_requests_in_doubt_in_any_window(seed: int) -> None:
    data = file_of(impaired(seed), seed)
    with using(MACHINE):
        whole = fed(data)
        for window in (700, 3000):
            assert fed(data, cuts_of(data, window)) == whole


def test_numbers_of_connections_do_not_depend_on_the_windows() -> None:
    for seed, engine in ((0, MACHINE), (1, MACHINE), (2, MACHINE), (3, PYTHON)):
        data = pcap(mixture(seed, opened=False))
        known = []
        for window in (len(data), 5000, 700):
            with using(engine):
                tracker = Tracker()
                for at in range(0, len(data), window):
                    tracker.feed(data[at : at + window], final=at + window >= len(data))
            known.append([(one.number, one.a, one.b, one.opener, one.closed) for one in tracker.connections()])
        assert known[0] == known[1] == known[2]
        assert [one[0] for one in known[0]] == list(range(len(known[0])))


# Chosen connections


def content(frames: list[Seen]) -> list[Seen]:
    """Frames without what is counted anew in another capture."""
    return sorted(one._replace(number=0, connection=0, order=0, client_id=str(one.client_id)) for one in frames)


@pytest.mark.wide(keep=62)
@pytest.mark.parametrize("part", range(1, 5))
@golden
def test_chosen_connections_go_on_in_the_next_file(path: Path, part: int) -> None:
    data = path.read_bytes()
    # In pcapng, blocks in front of the first packet describe it: golden ones have one section and one interface.
    header = data[: packet_ends(data)[1]] if path.suffix == ".pcapng" else data[:PCAP_HEADER]
    ends = packet_ends(data)
    cut = ends[len(ends) * part // 5]
    with using(MACHINE):
        whole = fed(data)
        first = Tracker()
        before = seen(first.feed(data[:cut]))
        known = first.connections()
        chosen = [one.number for one in known if one.number % 2 == part % 2]
        second = Tracker()
        second.restore(first.save(chosen))
        after = seen(second.feed(header + data[cut:], final=True))
    # They are in front of the connections that the next file begins with, and numbered anew.
    assert [(one.a, one.b) for one in second.connections()[: len(chosen)]] == [
        (known[number].a, known[number].b) for number in chosen
    ]
    of_chosen = [one for one in after if one.connection < len(chosen)]
    wanted = [one for one in whole if one.connection in set(chosen)]
    early = [one for one in before if one.connection in set(chosen)]
    assert content(early + of_chosen) == content(wanted)


def test_a_connection_that_there_is_not_cannot_be_chosen() -> None:
    tracker = Tracker()
    tracker.feed(pcap(mixture(1)))
    assert tracker.save([]).num_rows == 0
    assert tracker.save([1]).num_rows == 1
    with pytest.raises(ValueError, match="no connection 99"):
        tracker.save([0, 99])


# What is refused


def state(packets: int = 4) -> pa.Table:
    """The state in the middle of the first request, which came in two packets."""
    connection = Connection(mss=20).open().send(metadata(1))
    tracker = Tracker()
    tracker.feed(pcap(connection.packets[:packets]))
    return tracker.save()


def test_a_state_is_what_its_schema_says() -> None:
    saved = state()
    assert saved.num_rows
    assert saved.schema.equals(STATE)
    saved.validate(full=True)


def test_what_is_no_state_is_refused() -> None:
    saved = state()
    for wrong in (
        saved.drop_columns(["waiting"]),
        saved.select(list(reversed(saved.schema.names))),
        saved.rename_columns(["other", *saved.schema.names[1:]]),
        pa.table({"connection": [1]}),
    ):
        with pytest.raises(CaptureError, match="not the state of a capture"):
            Tracker().restore(wrong)


@pytest.mark.parametrize("said", [{}, {b"kwire": b'{"version": 99, "now": 0}'}, {b"kwire": b"{}"}, {b"other": b"1"}])
def test_a_state_of_another_version_is_refused(said: dict[bytes, bytes]) -> None:
    with pytest.raises(CaptureError, match=rf"a state of version (None|99): this is version {STATE_VERSION}"):
        Tracker().restore(state().replace_schema_metadata(said))


def test_a_state_whose_bytes_are_too_few_is_refused() -> None:
    saved = state()
    changed = 0
    rows = saved.column("segments").to_pylist()
    for segments in rows:
        for one in segments:
            if one["bytes"]:
                one["bytes"] = one["bytes"][:-1]
                changed += 1
    assert changed
    at = saved.schema.get_field_index("segments")
    wrong = saved.set_column(at, saved.schema.field(at), pa.array(rows, saved.schema.field(at).type))
    with pytest.raises(CaptureError, match="not the state of a capture: segments"):
        Tracker().restore(wrong)


def test_a_state_is_restored_before_anything_else() -> None:
    saved = state()
    fed_already, restored_already = Tracker(), Tracker()
    fed_already.feed(pcap([])[:10])
    restored_already.restore(saved)
    for tracker in (fed_already, restored_already):
        with pytest.raises(ValueError, match="a state is restored before anything else"):
            tracker.restore(saved)
    with pytest.raises(ValueError, match="a state is restored before anything else"):
        fed_already.restore(state(packets=0))
