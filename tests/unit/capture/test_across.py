"""Captures that were cut into files, put together again: the rows are those of the one that was not cut."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_captures import exchange
from packets import Connection, metadata, metadata_answer, pcap, produce, produce_answer, sized
from split_captures import Row, compared, parts_of, rows_of

from kwire.capture import across
from kwire.capture.across import LATER_WINDOWS, scan, still_open
from kwire.capture.compressed import DamagedError
from kwire.capture.joining import digest, moved_on
from kwire.capture.parts import Part
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError
from kwire.tables.reading import read
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    """A capture as several, cut before these packets."""
    whole = packets.read(data)
    places = [0, *at, len(whole)]
    return [packets.write_pcap(whole[a:b], nano=True) for a, b in itertools.pairwise(places)]


def uncut(data: bytes, table: str, **options: Any) -> list[Row]:
    whole = packets.write_pcap(packets.read(data), nano=True)
    return [row for _, batch in read(io.BytesIO(whole), {table: None}, **options) for row in batch.to_pylist()]


def check(data: bytes, at: Sequence[int], table: str = "frames", expected: list[Row] | None = None) -> None:
    found = rows_of(cut(data, at), table)
    expected = uncut(data, table) if expected is None else expected
    assert compared(found) == compared(expected)


# --- what a scan keeps ------------------------------------------------------------------------------------------------


def scanned(*files: bytes, **options: Any) -> list[Row]:
    """What a scan of files that follow each other knows of each connection."""
    found: list[Row] = scan([io.BytesIO(one) for one in files], **options).edges.to_pylist()
    return found


def test_a_scan_says_which_connections_began_in_it() -> None:
    whole = exchange(Connection().open(), 2).packets
    assert [row["began"] for row in scanned(pcap(whole))] == [True]
    assert [row["began"] for row in scanned(pcap(whole[3:]))] == [False]


def test_a_connection_that_ended_concerns_no_other_file_unless_bytes_are_missing() -> None:
    whole = exchange(Connection().open(), 2).close().packets
    assert scanned(pcap(whole)) == []
    for k in [number for number, packet in enumerate(whole) if packet.payload]:
        assert len(scanned(pcap([*whole[:k], *whole[k + 1 :]]))) == 1


def test_a_head_goes_on_until_responses_have_come() -> None:
    """One packet of a window after the other: as many as the truth may differ for, and no more."""
    whole = exchange(Connection().open(), 40).packets[3:]
    asked = [packet for packet in whole if packet.dst[1] == 9092]
    (row,) = scanned(*cut(pcap(asked), range(1, len(asked))))
    assert len(row["head"]) == len(asked) == 40
    (row,) = scanned(*cut(pcap(whole), range(1, len(whole))))
    assert 1 < len(row["head"]) < 40


@pytest.mark.parametrize("client", ["10.0.0.1", "10.0.0.3"])
def test_a_head_goes_on_while_a_response_is_incomplete(client: str) -> None:
    answer = sized(metadata_answer(41))
    one = exchange(Connection(client=(client, 40_000)).open(), 40)
    one.send(metadata(41)).answer_raw(answer[:9])
    half = len(one.packets)
    one.answer_raw(answer[9:]).send(metadata(42)).answer(metadata_answer(42))
    # The end that is captured first is A, whether it asks or answers.
    for first in (3, 4):
        for end, count in ((half, len(one.packets)), (half + 1, half + 1)):
            (row,) = scanned(pcap(one.packets[first:end]), pcap(one.packets[end:]))
            assert len(row["head"]) == count - first


def test_heads_that_are_too_large_together_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = exchange(Connection().open(), 3).packets[3:]
    (row,) = scanned(pcap(whole))
    assert len(row["head"]) == len(whole)
    monkeypatch.setattr(across, "MOST_HEADS", 100)
    (row,) = scanned(pcap(whole))
    assert (row["head"], row["agreed"]) == ([], None)


def test_a_stream_that_ended_at_its_first_byte_is_another_state() -> None:
    tracker = Tracker()
    tracker.feed(pcap(exchange().packets))
    (row,) = tracker.save().to_pylist()
    row["a_to_b"]["end"] = -1
    ended = {**row, "a_to_b": {**row["a_to_b"], "end": 1}}
    assert digest(row) != digest(ended)


def test_connections_of_long_ago_are_not_open_any_more() -> None:
    first, second = (exchange(Connection(client=("10.0.0.1", port), time=port * 10**9).open()) for port in (1000, 2000))
    tracker = Tracker()
    tracker.feed(pcap([*first.packets, *second.packets]))
    ports = {
        since: sorted(one["a_port"] for one in still_open(tracker, since).column("connection").to_pylist())
        for since in (None, 1, 1500 * 10**9, 3000 * 10**9)
    }
    assert list(ports.values()) == [[1000, 2000], [1000, 2000], [2000], []]


# --- golden captures --------------------------------------------------------------------------------------------------

CUTS = {
    "kafka-4.3-kraft-java/share.pcap": 9,
    "kafka-4.3-kraft-brokers/quorum.pcap": 7,
    "kafka-3.9-zk-auth/mechanisms.pcap": 8,
    "kafka-4.3-kraft-kafka-python/unpinned.pcap": 10,
    "kafka-4.4-kraft-raw/every-version.pcap": 30,
}
"""Into how many files each is cut here."""


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("name", CUTS)
def test_a_capture_in_files_has_the_frames_of_the_whole(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    count = len(packets.read(data))
    check(data, [count * k // CUTS[name] for k in range(1, CUTS[name])])


@pytest.mark.wide
def test_a_capture_may_be_cut_at_any_packet() -> None:
    data = (GOLDEN / "kafka-4-telemetry/refusals.pcap").read_bytes()
    count = len(packets.read(data))
    expected = uncut(data, "frames")
    for at in range(1, count, 5):
        check(data, [at], expected=expected)


def test_connections_have_one_number_in_all_files_and_frames_are_numbered_in_order() -> None:
    data = (GOLDEN / "kafka-4.3-kraft-java/share.pcap").read_bytes()
    files = cut(data, [100, 200, 300])
    found, expected = rows_of(files, "frames"), uncut(data, "frames")
    assert len({row["frame"] for row in found}) == len(found)
    of_whole, numbers = ({} for _ in range(2))
    for rows, of in ((expected, of_whole), (found, numbers)):
        for row in rows:
            of.setdefault((row["client_host"], row["client_port"]), set()).add(row["connection"])
    assert all(len(one) == 1 for one in numbers.values())
    assert {key: len(one) for key, one in of_whole.items()} == {key: len(one) for key, one in numbers.items()}
    in_order = [sorted(rows, key=lambda row: row["frame"]) for rows in (found, expected)]
    assert [repr(row["timestamp"]) + repr(row["size"]) for row in in_order[0]] == [
        repr(row["timestamp"]) + repr(row["size"]) for row in in_order[1]
    ]


# --- captures made for it ---------------------------------------------------------------------------------------------


def test_what_was_seen_before_leads_to_the_same_state_and_nothing_is_read_again() -> None:
    connection = exchange(count=40)
    files = cut(pcap(connection.packets), [21, 43, 60])
    parts, chain = parts_of(files)
    assert (chain.joined, chain.read_again) == (3, 0)
    assert [part.state.num_rows for part in parts] == [0, 1, 1, 1]
    assert [len(part.left) for part in parts] == [1, 1, 1, 0]


@pytest.mark.parametrize("window", [3000, 20_000])
def test_scans_in_small_windows_lead_to_the_same_parts(window: int) -> None:
    """Where no head goes on, windows are larger."""
    data = (GOLDEN / "kafka-3.9-kraft-java/admin.pcap").read_bytes()
    files = cut(data, [40])
    parts, _ = parts_of(files, window)
    assert compared(row for one, part in zip(files, parts, strict=True) for row in made_of(one, part)) == compared(
        uncut(data, "frames")
    )
    source = Asked(files[1])
    assert scan([source], window=window).edges.num_rows
    assert (source.sizes[0], max(source.sizes)) == (window, LATER_WINDOWS * window)


def made_of(data: bytes, part: Part | None) -> list[Row]:
    return [row for _, batch in read(io.BytesIO(data), {"frames": None}, part=part) for row in batch.to_pylist()]


class Asked:
    """A source that notes how much it is asked for."""

    def __init__(self, data: bytes) -> None:
        self.stream = io.BytesIO(data)
        self.sizes: list[int] = []

    def read(self, size: int) -> bytes:
        self.sizes.append(size)
        return self.stream.read(size)


def test_a_scan_says_of_which_files_it_had_only_a_part() -> None:
    data = pcap(exchange(count=2).packets)
    sources = [
        io.BytesIO(data),
        Failing(b"", "not today"),
        Failing(data[:200], "gone"),
        io.BytesIO(b"no capture at all"),
    ]
    assert scan(sources).broken == {1: (0, "not today"), 2: (200, "gone")}
    # What the store says of itself is no damage: nothing is taken as read.
    with pytest.raises(pa.ArrowInvalid, match="not there"):
        scan([io.BytesIO(data), Failing(b"", "not there", pa.ArrowInvalid)])


class Failing:
    """A source that fails after some bytes."""

    def __init__(self, data: bytes, why: str, kind: type[Exception] = DamagedError) -> None:
        self.data, self.why, self.kind = data, why, kind

    def read(self, size: int) -> bytes:
        if not self.data:
            raise self.kind(self.why)
        given, self.data = self.data[:size], self.data[size:]
        return given


def test_a_frame_may_reach_over_several_files() -> None:
    connection = exchange(count=1)
    body = sized(produce(2, 1, b"x" * 3000))
    for at in range(0, len(body), 400):
        connection.send_raw(body[at : at + 400])
    connection.answer(produce_answer(2))
    data = pcap(connection.packets)
    for cuts in ([6, 8, 10], [7, 8, 9, 10, 11], [5, 12]):
        check(data, cuts)


def test_the_earlier_file_is_right_where_a_later_one_begins_with_what_looks_like_frames() -> None:
    # The records of this request are requests themselves: read alone, the second file begins with one.
    inner = b"".join(sized(metadata(number)) for number in range(77, 85))
    connection = exchange(count=1)
    outer = sized(produce(2, 1, inner))
    at = outer.index(inner)
    connection.send_raw(outer[:at]).send_raw(outer[at:]).answer(produce_answer(2)).send(metadata(3)).answer(
        metadata_answer(3)
    )
    data = pcap(connection.packets)
    place = next(k for k, one in enumerate(packets.read(data)) if inner in one.data)
    files = cut(data, [place])
    alone = [row for _, batch in read(io.BytesIO(files[1]), {"frames": None}) for row in batch.to_pylist()]
    assert 77 in [row["correlation_id"] for row in alone]
    _, chain = parts_of(files)
    assert chain.read_again == 1
    check(data, [place])


def test_a_broker_of_an_earlier_file_tells_what_a_new_connection_is() -> None:
    """Its only request is told by nothing else, and given in the file that has it: not in the next one again."""
    first = exchange(count=4)
    second = Connection(client=("10.0.0.1", 40_001), time=first.time).open().send(metadata(1, None))
    asked = len(second.packets)
    second.answer(metadata_answer(1))
    data = pcap([*first.packets, *second.packets])
    count = len(packets.read(data))
    check(data, [len(first.packets), len(first.packets) + asked, count - 1])


def test_ports_may_be_used_again_in_a_later_file() -> None:
    first = exchange(count=2)
    again = exchange(Connection(client_isn=77_000_000, broker_isn=5).open(), 2)
    data = pcap([*first.packets, *again.packets])
    count = len(packets.read(data))
    for at in range(1, count):
        check(data, [at])


def test_a_file_may_begin_with_an_rst_of_a_connection_of_another() -> None:
    """It says what was lost behind the last bytes, and that the connection is over; else it belongs to none."""
    first = exchange(count=2)
    at = len(first.packets)
    first.send(metadata(3)).answer(metadata_answer(3))
    del first.packets[-1]
    first.reset()
    later = Connection(time=first.time)
    later.reset()
    later.send(metadata(1)).answer(metadata_answer(1)).send(metadata(2)).answer(metadata_answer(2))
    data = pcap(first.packets)
    assert [row["status"] for row in uncut(data, "frames")].count("gap") == 1
    count = len(first.packets)
    for cuts in ([count - 1], [at], [at + 1, count - 1]):
        check(data, cuts)
    alone = pcap(later.packets)
    check(alone, [1])
    check(alone, [2])
    nothing = pcap(exchange(Connection(client=("10.0.0.7", 7), time=later.time - 10**9), 1).packets)
    files = [*cut(nothing, []), *cut(alone, [])]
    assert compared(rows_of(files, "frames")) == compared([*uncut(nothing, "frames"), *uncut(alone, "frames")])


@pytest.mark.wide
def test_positions_go_on_where_sequence_numbers_wrap_around() -> None:
    """What was acknowledged, and where holes are, is counted from the first file on."""
    connection = Connection(client_isn=(1 << 32) - 300, broker_isn=(1 << 32) - 200).open()
    for number in range(1, 30):
        connection.send(metadata(number)).answer(metadata_answer(number))
    for lost in (20, 31, 40):
        some = [one for k, one in enumerate(connection.packets) if k not in (lost, lost + 3)]
        data = pcap(some)
        expected = uncut(data, "frames")
        assert "gap" in [row["status"] for row in expected]
        for at in range(1, len(some), 7):
            check(data, [at, *([at + 5] if at + 5 < len(some) else [])], expected=expected)


def test_what_is_no_capture_or_damaged_leaves_the_others_as_they_are() -> None:
    connection = exchange(count=6)
    files = cut(pcap(connection.packets), [10])
    damaged = files[0] + b"\xff" * 40
    parts, _ = parts_of([damaged, b"nothing", files[1]])
    found = []
    for data, part in zip([damaged, b"nothing", files[1]], parts, strict=True):
        with contextlib.suppress(CaptureError):
            for _, batch in read(io.BytesIO(data), {"frames": None}, part=part):
                found += batch.to_pylist()
    assert compared(found) == compared(uncut(pcap(connection.packets), "frames"))


def test_what_is_held_moves_with_its_own_direction_and_acknowledges_the_other() -> None:
    whole = exchange(Connection().open(), 6).packets[3:]
    (edge,) = scanned(pcap(whole[:4] + whole[6:9]))
    assert {one["side"] for one in edge["segments"]} == {0, 1}
    # In truth the sequence numbers have wrapped around before: once in one direction, three times in the other.
    shifts = 1 << 32, 3 << 32
    true = {**edge, "a_to_b": dict(edge["a_to_b"]), "b_to_a": dict(edge["b_to_a"])}
    for way, seen, shift in zip(("a_to_b", "b_to_a"), ("a_seen", "b_seen"), shifts, strict=True):
        true[way]["reference"] = edge[seen] + shift
    for before, after in zip(edge["segments"], moved_on(true, edge, 1)["segments"], strict=True):
        side = before["side"]
        moved = {"pos": before["pos"] + shifts[side], "ack": before["ack"] + shifts[1 - side]}
        assert before["ack"] >= 0
        assert after == before | moved
