"""TCP segments, their connections and positions, on both engines."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hash_clusters import MOST, chosen, longest_run, old_hash_of_connections
from packets import ACK, FIN, RST, SYN, Connection, Packet, link
from tunnels import checksum

from kwire.kernels.engine import Engine
from kwire.kernels.layouts import ACKNOWLEDGED, AT_THE_END, CONNECTION, PACKET, SEGMENT, STREAM, Role
from kwire.kernels.packets import Count
from kwire.kernels.tracking import (
    ENOUGH_SUMS,
    FARTHEST_AHEAD,
    FARTHEST_BEHIND,
    LATE,
    LATEST_SYN,
    MOST_SUMS,
    MOST_WINDOW,
    WINDOW_BEHIND,
    WRONG_SUM,
    Known,
    clock_of,
    note_closed,
    nothing_known,
    restored,
    tcp_segments,
)

MASK = 0xFFFFFFFF
A, B = ("10.0.0.1", 40000), ("10.0.0.2", 9092)


class Capture:
    """Packets are given to ``tcp_segments``; what it has found so far."""

    def __init__(self, engine: Engine, ports: Sequence[int] = (), known: Known | None = None) -> None:
        self.engine = engine
        self.ports = np.array(ports, np.int64)
        self.known = known or nothing_known()
        self.counts = np.zeros(len(Count), np.int64)
        self.segments: list[dict[str, int]] = []
        self.now = 0
        self.data: list[bytes] = []
        self.acknowledged: list[tuple[int, int, int]] = []
        self.order = 0

    def see(self, *packets: Packet, snaplen: int = 1 << 18) -> Capture:
        raw = [link(one)[:snaplen] for one in packets]
        table = np.zeros(len(raw), PACKET)
        table["captured"] = [len(one) for one in raw]
        table["off"] = np.cumsum(table["captured"]) - table["captured"]
        table["time"] = [one.time for one in packets]
        table["link"] = 1
        buf = np.frombuffer(bytearray(b"".join(raw)), np.uint8)
        clock = np.maximum(np.maximum.accumulate(table["time"]), self.now)
        self.now = int(clock[-1])
        segments, self.known, read, fragment = tcp_segments(
            buf,
            table,
            clock,
            self.ports,
            np.empty(0, np.int64),
            self.known,
            self.counts,
            np.empty(0, SEGMENT),
            0,
            self.order,
            np.empty(len(table), np.int64),
            self.engine,
        )
        assert (read, fragment) == (len(table), None)
        self.order += len(packets)
        for row in segments.tolist():
            one = dict(zip(SEGMENT.names, row, strict=True))
            if one["off"] == ACKNOWLEDGED:
                self.acknowledged.append((one["stream"], one["pos"], one["order"]))
                continue
            self.data.append(bytes(buf[one["off"] : one["off"] + one["len"]]) if one["off"] >= 0 else b"")
            self.segments.append(one)
        return self

    def connections(self, *names: str) -> list[Any]:
        rows = self.known.connections[: int(self.known.n_connections)]
        return rows[names[0]].tolist() if len(names) == 1 else rows[list(names)].tolist()

    def stream(self, number: int) -> dict[str, int]:
        return dict(zip(STREAM.names, self.known.streams[number].tolist(), strict=True))

    def positions(self) -> list[tuple[int, int]]:
        """Stream and position of each segment, relative to the first of all."""
        first = self.segments[0]["pos"]
        return [(one["stream"], one["pos"] - first) for one in self.segments]


def packet(payload: bytes = b"", seq: int = 1000, flags: int = ACK, back: bool = False, ack: int = 0) -> Packet:
    return Packet(B if back else A, A if back else B, seq, payload, flags, ack)


def test_segments_say_where_their_bytes_stand_and_which_packet_brought_them(engine: Engine) -> None:
    packets = Connection(mss=4).open().send_raw(b"abcdefgh").answer_raw(b"xy").packets
    capture = Capture(engine).see(*packets[:4]).see(*packets[4:])
    assert capture.data == [b"abcd", b"efgh", b"xy"]
    assert [(one["stream"], one["order"]) for one in capture.segments] == [(0, 3), (0, 4), (1, 5)]
    assert [one["time"] for one in capture.segments] == [one.time for one in packets[3:]]
    assert capture.segments[1]["pos"] == capture.segments[0]["pos"] + 4
    assert capture.segments[0]["pos"] == capture.stream(0)["start"] == capture.stream(0)["next"]
    assert capture.stream(0)["synced"] == capture.stream(1)["synced"] == 1
    assert capture.connections("number", "family", "a_port", "b_port", "opener", "closed", "role") == [
        (0, 4, 40000, 9092, 0, 0, Role.UNKNOWN)
    ]


def test_segments_and_numbers_are_the_same_however_the_packets_are_cut(engine: Engine) -> None:
    first = Connection(mss=3).open().send_raw(b"abcdefgh").answer_raw(b"xyz").close()
    again = Connection(mss=3, client_isn=77_000_000, broker_isn=5).open().send_raw(b"again").reset()
    packets = [*first.packets, *again.packets]
    whole = Capture(engine).see(*packets)
    single = Capture(engine)
    for one in packets:
        single.see(one)
    assert [one | {"off": 0} for one in single.segments] == [one | {"off": 0} for one in whole.segments]
    assert single.data == whole.data
    assert single.connections(*CONNECTION.names) == whole.connections(*CONNECTION.names)
    assert single.known.streams[:4].tolist() == whole.known.streams[:4].tolist()


# Checksums


def pseudo(one: Packet, length: bool = True) -> bytes:
    """What the checksum of a packet is of, besides TCP."""
    ends = b"".join(ipaddress.ip_address(host).packed for host, _ in (one.src, one.dst))
    return ends + (6).to_bytes(2) + (len(one.tcp()) if length else 0).to_bytes(2)


def summed(one: Packet) -> Packet:
    return replace(one, checksum=checksum(pseudo(one) + one.tcp()))


def wrong(one: Packet, by: int = 7) -> Packet:
    return replace(summed(one), checksum=(summed(one).checksum + by) % 65536)


def doubts(capture: Capture) -> list[int]:
    return [one["doubt"] for one in capture.segments]


SIX = ("2001:db8::1:ffff", 40000), ("2001:db8:ffff::2", 9092)


@pytest.mark.parametrize("ends", [(A, B), SIX])
@pytest.mark.parametrize("size", [1, 2, 63, 64, 200])
def test_a_wrong_checksum_is_in_doubt_where_two_of_the_connection_were_right(
    engine: Engine, ends: tuple[tuple[str, int], tuple[str, int]], size: int
) -> None:
    data = bytes(range(1, size + 1))
    there = Packet(*ends, 1000, data, ack=5)
    back = Packet(ends[1], ends[0], 5, data, ack=1000)
    acknowledged = Packet(*ends, 1000, ack=5)
    enough = [summed(there)] * ENOUGH_SUMS
    said = doubts(Capture(engine).see(*enough, wrong(there), wrong(back), summed(back)))
    assert said == [0, 0, 1, 1, 0]
    assert doubts(Capture(engine).see(summed(there), summed(back), wrong(back))) == [0, 0, 1]
    # Those without data will do, a wrong one of those is nothing.
    some = [summed(acknowledged)] * ENOUGH_SUMS
    assert doubts(Capture(engine).see(*some, wrong(acknowledged), wrong(there))) == [1]
    assert doubts(Capture(engine).see(wrong(there), wrong(there))) == [0, 0]
    # One may be right by chance, and none counts behind a wrong one.
    assert doubts(Capture(engine).see(summed(there), wrong(there), wrong(back), wrong(there))) == [0, 0, 0, 0]
    capture = Capture(engine).see(wrong(there), *enough, wrong(there))
    assert (doubts(capture), capture.counts[Count.WRONG]) == ([0, 0, 0, 0], 0)
    assert Capture(engine).see(*enough, wrong(back)).counts[Count.WRONG] == 1


def test_what_the_network_card_was_to_compute_is_not_in_doubt(engine: Engine) -> None:
    right = summed(packet(b"abc"))
    for left in (
        replace(right, checksum=0),
        replace(right, checksum=checksum(pseudo(right)) ^ 0xFFFF),
        replace(right, checksum=checksum(pseudo(right, length=False)) ^ 0xFFFF),
    ):
        capture = Capture(engine).see(right, right, left)
        assert (doubts(capture), capture.stream(0)["sums"]) == ([0, 0, 0], MOST_SUMS)


def test_nor_what_the_snapshot_length_cut_off(engine: Engine) -> None:
    capture = Capture(engine).see(*[summed(packet(b"abc"))] * ENOUGH_SUMS).see(wrong(packet(b"x" * 100)), snaplen=80)
    assert not any(doubts(capture))
    # Not even the header: nothing behind it is looked at.
    cut = replace(summed(packet(flags=ACK)), options=bytes(40))
    assert Capture(engine).see(cut, snaplen=60).stream(0)["sums"] == MOST_SUMS


def test_where_many_checksums_of_a_direction_are_wrong_they_say_nothing(engine: Engine) -> None:
    capture = Capture(engine).see(*[summed(packet(b"a"))] * ENOUGH_SUMS)
    many = MOST_SUMS // WRONG_SUM
    for _ in range(many + 2):
        capture.see(wrong(packet(b"b")))
    assert doubts(capture) == ENOUGH_SUMS * [0] + many * [1] + [0, 0]
    capture.see(*WRONG_SUM * [summed(packet(b"b"))], wrong(packet(b"b")), wrong(packet(b"b", back=True)))
    assert doubts(capture)[-2:] == [1, 1]


def test_what_is_in_doubt_is_a_hole_for_which_acknowledgements_are_written_down(engine: Engine) -> None:
    right = summed(packet(b"abc", ack=5))
    capture = Capture(engine).see(right, right, wrong(packet(b"def", seq=1003)), packet(back=True, ack=1006))
    first = capture.segments[0]["pos"]
    assert [(stream, pos - first) for stream, pos, _ in capture.acknowledged if pos > 0] == [(0, 6)]


# The same ports again


def test_a_syn_with_another_sequence_number_begins_another_connection(engine: Engine) -> None:
    capture = Capture(engine).see(*Connection().open().packets)
    capture.see(*Connection(client_isn=123_456).open().send_raw(b"new").packets)
    assert capture.connections("closed", "closed_order") == [(1, 3), (0, AT_THE_END)]
    assert capture.segments[0]["stream"] == 2


def test_a_repeated_syn_begins_none(engine: Engine) -> None:
    packets = Connection().open().send_raw(b"data").packets
    capture = Capture(engine).see(*packets[:2], packets[0], packets[1], *packets[2:], packets[0])
    assert capture.connections("closed", "opener") == [(0, 0)]


def test_a_syn_that_was_captured_behind_its_data_belongs_to_it(engine: Engine) -> None:
    data = packet(b"data", seq=5000)
    for behind in (5, LATEST_SYN - 1):
        capture = Capture(engine).see(data, packet(seq=5000 + 4 - behind, flags=SYN))
        assert capture.connections("closed") == [0]
    assert capture.stream(0)["start"] == capture.stream(0)["reference"] - behind + 1
    capture = Capture(engine).see(data, packet(seq=5000 + 4 - LATEST_SYN, flags=SYN))
    assert capture.connections("closed") == [1, 0]
    assert Capture(engine).see(data, packet(seq=5005, flags=SYN)).connections("closed") == [1, 0]


@pytest.mark.parametrize("syn_first", [True, False])
def test_syn_and_its_answer_are_one_connection_in_either_order(engine: Engine, syn_first: bool) -> None:
    syn, answer, *rest = Connection().open().send_raw(b"data").packets
    capture = Capture(engine).see(*((syn, answer) if syn_first else (answer, syn)), *rest)
    assert capture.connections("closed", "opener", "a_port") == [
        (0, 0, 40000) if syn_first else (0, 1, 9092),
    ]
    assert capture.segments[0]["stream"] == (0 if syn_first else 1)


def test_a_syn_against_data_of_the_other_direction_alone_begins_another(engine: Engine) -> None:
    capture = Capture(engine).see(packet(b"old", back=True), packet(flags=SYN))
    assert capture.connections("closed") == [1, 0]
    # Its answer, however, belongs to what is there.
    assert Capture(engine).see(packet(b"old", back=True), packet(flags=SYN | ACK)).connections("closed") == [0]


@pytest.mark.parametrize(
    ("step", "another"),
    [
        (FARTHEST_AHEAD, False),
        (FARTHEST_AHEAD + 1, True),
        (-FARTHEST_BEHIND, False),
        (-FARTHEST_BEHIND - 1, True),
        (1 << 31, True),
    ],
)
def test_data_too_far_away_begins_another_connection(engine: Engine, step: int, another: bool) -> None:
    capture = Capture(engine).see(packet(b"data", seq=96), packet(b"x", seq=100 + step))
    assert capture.connections("closed") == ([1, 0] if another else [0])
    if not another:
        assert capture.positions() == [(0, 0), (0, 4 + step)]
    # Without bytes it says nothing, and moves nothing: keep-alives, late acknowledgements.
    capture = Capture(engine).see(packet(b"data", seq=96), packet(seq=100 + step))
    assert capture.connections("closed") == [0]
    assert not another or capture.stream(0)["reference"] - capture.stream(0)["lowest"] == 4


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("step", [2, 65537, 1 << 20, 500_000_000, 1 << 31, -1 << 20, -500_000_000])
def test_nothing_behind_both_fins_belongs_to_a_connection(engine: Engine, step: int, back: bool, bare: bool) -> None:
    connection = Connection().open().send_raw(b"12345").answer_raw(b"abc").close()
    capture = Capture(engine).see(*connection.packets)
    asked, answered = capture.stream(0), capture.stream(1)
    seq, ack = connection._next[:: -1 if back else 1]
    if bare:
        capture.see(packet(seq=(seq + step) & MASK, ack=(ack + step) & MASK, back=back))
    assert [capture.stream(k)["reference"] for k in (0, 1)] == [asked["reference"], answered["reference"]]
    capture.see(packet(b"new", seq=(seq + step) & MASK, ack=(ack + step) & MASK, back=back))
    # Its other direction goes on where that acknowledged it.
    capture.see(packet(b"answer", seq=(ack + step) & MASK, ack=(seq + step + 3) & MASK, back=not back))
    assert capture.connections("closed") == [1, 0]
    assert [one["stream"] for one in capture.segments[-2:]] == [2, 3]
    # What was sent before them, and comes once more, does; unless it stands where the new one may soon be.
    again = [one for one in connection.packets if one.payload]
    assert len(capture.see(*again).connections("closed")) == 2
    soon = -MOST_WINDOW <= step < 0
    assert sorted(one["stream"] for one in capture.segments[-2:]) == ([2, 3] if soon else [0, 1])


@pytest.mark.parametrize(
    ("step", "acked", "another"),
    [
        # Of one direction a capture may lack much; then it lacks little of the other.
        (MOST_WINDOW + 1, 0, False),
        (500_000_000, MOST_WINDOW, False),
        (MOST_WINDOW, 500_000_000, False),
        (MOST_WINDOW + 1, MOST_WINDOW + 1, True),
        (500_000_000, 500_000_000, True),
        (-MOST_WINDOW - 1, MOST_WINDOW + 1, True),
        # What was acknowledged does not go back, nor so far ahead.
        (0, -FARTHEST_BEHIND, False),
        (0, -FARTHEST_BEHIND - 1, True),
        (0, FARTHEST_AHEAD + 1, True),
    ],
)
@pytest.mark.parametrize("both", [False, True])
def test_a_jump_that_no_window_allows_is_another_connection(
    engine: Engine, step: int, acked: int, another: bool, both: bool
) -> None:
    other = 1 << 31
    capture = Capture(engine).see(packet(b"data", seq=96, ack=other))
    if both:
        capture.see(packet(b"answer", seq=other - 6, ack=100, back=True))
    capture.see(packet(b"new", seq=(100 + step) & MASK, ack=(other + acked) & MASK))
    assert capture.connections("closed") == ([1, 0] if another else [0])


def test_a_reset_from_far_away_ends_nothing(engine: Engine) -> None:
    capture = Capture(engine).see(
        packet(b"data", seq=96), packet(b"why", seq=1 << 31, flags=RST), packet(b"x", seq=100)
    )
    assert capture.connections("closed") == [0]


# Positions


def test_sequence_numbers_wrap_around(engine: Engine) -> None:
    packets = Connection(client_isn=0xFFFFFFF0, mss=7).open().send_raw(bytes(range(70))).packets
    capture = Capture(engine).see(*packets)
    assert capture.positions() == [(0, 7 * k) for k in range(10)]


def test_positions_go_on_beyond_32_bits(engine: Engine) -> None:
    step = FARTHEST_AHEAD - 1
    capture = Capture(engine).see(*(packet(b"x", seq=k * step) for k in range(9)))
    assert capture.positions() == [(0, k * step) for k in range(9)]


def test_data_before_the_first_that_was_seen_has_a_position(engine: Engine) -> None:
    capture = Capture(engine).see(packet(b"later", seq=3), packet(b"early", seq=(3 - 5) & 0xFFFFFFFF))
    assert capture.positions() == [(0, 0), (0, -5)]
    assert capture.segments[1]["pos"] > 0


def test_acknowledgements_and_the_end_are_noted(engine: Engine) -> None:
    connection = Connection().open().send_raw(b"12345").answer_raw(b"abc").close()
    capture = Capture(engine).see(*connection.packets)
    asked, answered = capture.stream(0), capture.stream(1)
    assert asked["acked"] - asked["start"] == 6  # the FIN counts
    assert answered["acked"] - answered["start"] == 3
    assert (asked["end"] - asked["start"], answered["end"] - answered["start"]) == (5, 3)
    late = packet(b"", seq=capture.order, back=True, ack=1001)
    assert capture.see(late).stream(0)["acked"] == asked["acked"]


# What is left out


def test_rst_closes_and_carries_no_data(engine: Engine) -> None:
    capture = Capture(engine).see(packet(b"data"), packet(b"why", back=True, flags=RST | FIN))
    assert (capture.data, capture.connections("closed", "closed_order")) == ([b"data"], [(1, AT_THE_END)])
    # What was sent before it may be captured behind it, for a while.
    assert capture.connections("closed_clock") == [capture.now + LATE]
    assert capture.stream(1)["end"] == -1
    assert Capture(engine).see(packet(flags=RST)).connections("closed") == []


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize(
    ("away", "closes"),
    [
        (0, True),
        (-WINDOW_BEHIND, True),
        (-WINDOW_BEHIND - 1, False),
        (MOST_WINDOW, True),
        (MOST_WINDOW + 1, False),
        (1 << 31, False),
    ],
)
def test_rst_counts_where_its_stream_is(engine: Engine, back: bool, away: int, closes: bool) -> None:
    """A receiver ignores others: a scan, or a forged one, must not end the connection, nor move its stream."""
    reference = 1004
    capture = Capture(engine).see(packet(b"data", back=back))
    before = capture.stream(int(back))
    capture.see(packet(seq=reference + away, back=back, flags=RST), packet(b"more", seq=1004, back=back))
    assert capture.connections("closed") == [int(closes)] + [0] * (len(capture.connections("closed")) - 1)
    if not closes:
        assert capture.data == [b"data", b"more"]
        assert capture.positions() == [(0, 0), (0, 4)]
        assert before["next"] == capture.stream(0)["next"]


def test_the_clock_shows_the_latest_time(engine: Engine) -> None:
    packets, clock = np.zeros(5, PACKET), np.empty(5, np.int64)
    packets["time"] = [-7, 3, 9, 4, 10]
    engine(clock_of)(packets, -9, clock)
    assert clock.tolist() == [-7, 3, 9, 9, 10]
    engine(clock_of)(packets, 9, clock)
    assert clock.tolist() == [9, 9, 9, 9, 10]


def test_a_connection_that_was_reset_is_over_with_the_first_packet_that_is_later(engine: Engine) -> None:
    clock = np.array([10, 20, 20, 30])
    rows = np.zeros(8, CONNECTION)
    rows["closed"] = [1, 1, 1, 1, 1, 1, 0, 1]
    rows["closed_clock"] = [9, 10, 19, 20, 29, 30, 10, 10]
    rows["closed_order"] = [*[AT_THE_END] * 7, 3]
    engine(note_closed)(rows, len(rows), clock, 100)
    assert rows["closed_order"].tolist() == [100, 101, 101, 103, 103, AT_THE_END, AT_THE_END, 3]
    engine(note_closed)(rows, len(rows), clock[:0], 104)
    assert rows["closed_order"][5] == AT_THE_END


def test_bytes_that_the_capture_lacks_are_a_segment_of_their_own(engine: Engine) -> None:
    capture = Capture(engine).see(packet(b"0123456789"), snaplen=54 + 4)
    assert [(one["len"], one["off"] >= 0) for one in capture.segments] == [(4, True), (6, False)]
    assert capture.positions() == [(0, 0), (0, 4)]
    assert capture.counts[Count.SNAPPED] == 1
    nothing = Capture(engine).see(packet(b"0123456789"), snaplen=54)
    assert [(one["len"], one["off"]) for one in nothing.segments] == [(10, -1)]


@pytest.mark.parametrize(
    ("ports", "role"),
    [
        ([], Role.UNKNOWN),
        ([9092], Role.A_REQUESTS),
        ([40000], Role.B_REQUESTS),
        ([1, 40000, 9092], Role.UNKNOWN),
        ([1, 2], Role.OTHER),
    ],
)
def test_ports_that_were_asked_for_settle_the_role(engine: Engine, ports: list[int], role: Role) -> None:
    capture = Capture(engine, ports).see(packet(b"data"))
    assert capture.connections("role") == [role]
    assert capture.data == ([] if role == Role.OTHER else [b"data"])


def test_numbers_do_not_depend_on_when_a_connection_turned_out_to_be_other(engine: Engine) -> None:
    far = 1 << 29
    packets = [
        *Connection().open().send_raw(b"one").packets,
        *(packet(b"x", seq=1004 + k * far) for k in range(6)),
        *Connection(client_isn=(1004 + 5 * far) & 0xFFFFFFFF, broker_isn=9).open().send_raw(b"two").packets,
        packet(b"far", seq=(1004 + 9 * far) & 0xFFFFFFFF),
        packet(flags=SYN, seq=17),
    ]
    wanted = Capture(engine).see(*packets)
    assert len(wanted.connections("number")) == 4
    begun = [0, 10, 14, 15]
    for settled in range(1, len(packets)):
        capture = Capture(engine).see(*packets[:settled])
        capture.known.connections["role"] = Role.OTHER
        before = len(capture.segments)
        capture.see(*packets[settled:])
        same = [name for name in CONNECTION.names if name != "role"]
        assert capture.connections(*same) == wanted.connections(*same)
        capture.known.streams["holed"] = wanted.known.streams["holed"]
        assert capture.known.streams[:8].tolist() == wanted.known.streams[:8].tolist()
        dropped = {slot for slot, first in enumerate(begun) if first < settled}
        assert [one["order"] for one in capture.segments[before:]] == [
            one["order"] for one in wanted.segments if one["order"] >= settled and one["stream"] >> 1 not in dropped
        ]


# Tables


def test_tables_grow_and_connections_are_found_again(engine: Engine) -> None:
    ports = range(20_000, 20_700)
    packets = [Packet(("10.0.0.1", port), B, 1000, b"x") for port in ports]
    answers = [Packet(B, ("10.0.0.1", port), 5000, b"y") for port in ports]
    capture = Capture(engine).see(*packets).see(*answers)
    assert capture.connections("a_port") == list(ports)
    assert [one["stream"] for one in capture.segments] == [2 * k for k in range(700)] + [2 * k + 1 for k in range(700)]
    known = capture.known
    again = Capture(engine, known=restored(known.connections, known.streams, int(known.n_connections), engine))
    again.see(*answers)
    assert [one["stream"] for one in again.segments] == [2 * k + 1 for k in range(700)]


@pytest.mark.wide
def test_connections_that_are_chosen_to_collide_do_not(engine: Engine) -> None:
    low = np.random.default_rng(2).integers(0, 1 << 62, 70 * 20_000)
    high, to = 0x20010DB8 << 32, (0x20010DB8 << 32, 1, 9092)
    for_old = old_hash_of_connections(np.full(len(low), high), low, 40_000, to)
    low = low[chosen(for_old, 20_000, 1 << 16)].tolist()
    broker = (str(ipaddress.IPv6Address(to[0] << 64 | to[1])), to[2])
    clients = [str(ipaddress.IPv6Address(high << 64 | one)) for one in low]
    capture = Capture(engine).see(*(Packet((client, 40_000), broker, 1, b"x") for client in clients))
    assert capture.connections("a_low") == low
    assert capture.see(*(Packet(broker, (client, 40_000), 1, b"y") for client in clients[:100])).connections(
        "number"
    ) == list(range(20_000))
    assert len(capture.known.lookup) == 1 << 16
    assert longest_run(capture.known.lookup) < MOST
    known = capture.known
    again = restored(known.connections, known.streams, 20_000, engine)
    assert longest_run(again.lookup) < MOST


@pytest.mark.wide
def test_numbers_of_connections_do_not_depend_on_the_key(engine: Engine) -> None:
    ends = [(f"10.0.{k >> 8}.{k & 255}", 40_000 + k % 7) for k in range(600)]
    ends += [(f"fd00::{k:x}", 40_000 + k % 7) for k in range(600)]
    packets = [Packet(one, ("fd00::ffff", 9092) if ":" in one[0] else B, 1, b"x") for one in ends]
    packets += [Packet(one.dst, one.src, 1, b"y") for one in packets]
    found, places = [], []
    for key in ((0, 0), (1, -1), (-(1 << 63), 12345)):
        known = nothing_known()
        known.finder["key_a"], known.finder["key_b"] = key
        capture = Capture(engine, known=known).see(*packets)
        found.append((capture.segments, capture.connections(*CONNECTION.names)))
        places.append(capture.known.lookup.tolist())
    assert found[0] == found[1] == found[2]
    assert len(found[0][1]) == 1200
    assert places[0] != places[1] != places[2] != places[0]
    assert nothing_known().finder.tolist() != nothing_known().finder.tolist()


def test_of_two_connections_on_the_same_ports_the_later_is_restored(engine: Engine) -> None:
    capture = Capture(engine).see(packet(flags=SYN, seq=1), packet(flags=SYN, seq=9_000_000))
    known = restored(capture.known.connections, capture.known.streams, 2, engine)
    again = Capture(engine, known=known).see(packet(b"new", seq=9_000_001))
    assert [one["stream"] for one in again.segments] == [2]


def test_nothing_of_what_was_in_the_tables_is_left_in_a_new_connection(engine: Engine) -> None:
    known = nothing_known()
    for table in (known.connections, known.streams):
        for name in table.dtype.names:
            table[name] = 1234567
    for capture in (Capture(engine, known=known), Capture(engine)):
        capture.see(replace(packet(b"x"), seq=1))
        row = capture.known.connections[0].tolist()
        assert 1234567 not in row + tuple(capture.known.streams[:2].tolist()[0] + capture.known.streams[:2].tolist()[1])
