"""Segments put in order: what is joined, what is waited for, what is given up and what is kept, on both engines."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from counted_work import lines

from kwire.kernels.engine import PYTHON, Engine
from kwire.kernels.layouts import ABSENT, ACKNOWLEDGED, AT_THE_END, CONNECTION, SEGMENT, STREAM, Role
from kwire.kernels.numbers import SLACK
from kwire.kernels.streams import ACKED_WAIT, LEAST, LINGERS, LONGEST_WAIT, MOST_BEFORE, MOST_WAITING, keep, place

PLENTY = 1 << 30
Piece = tuple[int, Any]
"""Position and bytes, or the number of lost bytes."""


class Window:
    """Segments of some connections, and what becomes of them."""

    def __init__(self, engine: Engine, connections: int = 1) -> None:
        self.engine = engine
        self.connections = np.zeros(connections, CONNECTION)
        self.connections["closed_order"] = AT_THE_END
        self.streams = np.full(2 * connections, -1, STREAM)
        self.streams["since"] = AT_THE_END
        self.streams["latest"] = self.streams["clock"] = ABSENT
        self.held_rows = 0
        self.segments = np.zeros(0, SEGMENT)
        self.buf = np.zeros(0, np.uint8)
        self.orders = 0

    def add(
        self, pos: int, data: bytes | int, *, stream: int = 0, time: int = 0, order: int | None = None, doubt: int = 0
    ) -> Window:
        """A segment; a number stands for so many bytes that the capture lacks."""
        one = np.zeros(1, SEGMENT)
        one["stream"], one["pos"], one["time"], one["clock"] = stream, pos, time, time
        one["order"] = self.orders if order is None else order
        one["off"] = -1 if isinstance(data, int) else len(self.buf)
        one["len"] = data if isinstance(data, int) else len(data)
        one["doubt"] = doubt
        if not isinstance(data, int):
            self.buf = np.concatenate([self.buf, np.frombuffer(data, np.uint8)])
        table = np.empty(len(self.segments) + 1, SEGMENT)
        table[:-1], table[-1:] = self.segments, one
        self.segments = table
        self.orders += 1
        return self

    def acknowledge(self, position: int, stream: int = 0, time: int = 0) -> Window:
        """What tracking writes down while there is a hole."""
        self.add(position, 0, stream=stream, time=time)
        self.segments["off"][-1] = ACKNOWLEDGED
        return self

    def at(self, position: int, stream: int = 0) -> Window:
        """The stream has been dealt with up to this position."""
        self.streams["next"][stream] = position
        return self

    def place(self, *, now: int = 0, ration: int = PLENTY, final: bool = False) -> Window:
        # The last packet comes at ``now``.
        fresh = self.segments[self.held_rows :]
        first = int(fresh["order"].min()) if len(fresh) else self.orders
        clock = np.zeros(max(0, int(fresh["order"].max()) + 1 - first) if len(fresh) else 0, np.int64)
        clock[fresh["order"] - first] = fresh["clock"]
        clock = np.maximum.accumulate(np.append(clock, now))
        self.orders = first + len(clock)
        self.data, self.pieces, self.active, self.order = place(
            self.buf,
            self.segments,
            self.held_rows,
            self.connections,
            self.streams,
            len(self.streams),
            clock,
            first,
            ration,
            final,
            self.engine,
        )
        return self

    def joined(self, stream: int = 0) -> list[Piece]:
        (row,) = self.active[self.active["stream"] == stream]
        return [
            (int(one["pos"]), self.data[one["off"] :][: one["len"]].tobytes() if one["off"] >= 0 else int(one["len"]))
            for one in self.pieces[row["first"] : row["end"]]
        ]

    def waits(self, stream: int = 0) -> bool:
        (row,) = self.active[self.active["stream"] == stream]
        return bool(row["waiting"])

    def keep(
        self, final: bool = False, spare: Any = None, following: int = AT_THE_END
    ) -> list[tuple[int, int, bytes | int]]:
        """What is kept, where packet ``following`` is the next: stream, position, bytes."""
        self.held, self.kept = keep(
            self.buf, self.segments, self.data, self.pieces, self.order, self.active, self.connections, self.streams,
            final, self.engine, spare, following,
        )  # fmt: skip
        return [
            (
                int(one["stream"]),
                int(one["pos"]),
                self.held[one["off"] :][: one["len"]].tobytes() if one["off"] >= 0 else int(one["len"]),
            )
            for one in self.kept
        ]


# Order and overlaps


def test_segments_out_of_order_are_put_in_order(engine: Engine) -> None:
    window = Window(engine).at(100).add(104, b"ef").add(100, b"ab").add(106, b"gh").add(102, b"cd").place()
    assert window.joined() == [(100, b"ab"), (102, b"cd"), (104, b"ef"), (106, b"gh")]
    # Touching pieces touch in the data as well, which ends with spare bytes.
    assert window.data.tobytes() == b"abcdefgh" + bytes(SLACK)
    assert not window.waits()


def test_what_the_stream_has_already_is_skipped(engine: Engine) -> None:
    window = Window(engine).at(103).add(100, b"ab").add(101, b"bcde").add(101, b"XX").place()
    assert window.joined() == [(103, b"de")]


def test_of_overlapping_segments_the_one_that_was_captured_first_wins(engine: Engine) -> None:
    window = Window(engine).at(0).add(2, b"cdef").add(0, b"ABCD").add(0, b"xxxxxxx").add(2, b"yyyyyyy").place()
    assert window.joined() == [(0, b"AB"), (2, b"cdef"), (6, b"x"), (7, b"yy")]


def test_any_cutting_repeating_and_shuffling_gives_the_same_bytes(engine: Engine) -> None:
    chance = random.Random(7)
    text = chance.randbytes(200)
    for _ in range(40):
        parts = [(at, min(at + size, 200)) for at in range(0, 200, 7) for size in (7, chance.randint(1, 60))]
        chance.shuffle(parts)
        window = Window(engine).at(0)
        for first, end in parts:
            window.add(first, text[first:end])
        window.place()
        assert b"".join(data for _, data in window.joined()) == text


def test_streams_are_joined_one_after_the_other_and_others_left_out(engine: Engine) -> None:
    window = Window(engine, 4)
    for stream in (5, 0, 3, 7, 2):
        window.add(10, bytes([65 + stream]) * 2, stream=stream).at(10, stream)
    window.connections["role"] = [Role.UNKNOWN, Role.A_REQUESTS, Role.ENCRYPTED, Role.OTHER]
    window.place()
    assert window.active["stream"].tolist() == [0, 2, 3]
    assert [window.joined(stream) for stream in (0, 2, 3)] == [[(10, b"AA")], [(10, b"CC")], [(10, b"DD")]]
    assert window.order.tolist() == [1, 4, 2]


def middle(engine: Engine) -> Window:
    """Of a stream whose beginning was not captured the second segment came first, at 1000."""
    return Window(engine).add(50, b"b", time=1000).add(40, b"a" * 10, time=2000)


WHOLE = [(40, b"a" * 10), (50, b"b")]


def test_a_stream_whose_beginning_was_not_seen_begins_with_the_first_of_what_is_acknowledged(engine: Engine) -> None:
    window = middle(engine).place(now=2000)
    assert (window.joined(), window.waits(), window.keep()) == ([], True, [(0, 50, b"b"), (0, 40, b"a" * 10)])
    assert (middle(engine).acknowledge(39).place().joined(), window.streams["next"][0]) == ([], -1)
    window = middle(engine).acknowledge(40, time=3000).add(30, b"late").place(now=3000)
    assert (window.joined(), window.waits()) == (WHOLE, False)
    assert (window.streams["next"][0], window.streams["synced"][0], window.streams["origin"][0]) == (40, 0, 40)
    assert window.pieces["order"].tolist() == [2, 2]
    assert window.streams["earlier"][0] == 30
    known = Window(engine).at(40).add(50, b"b").add(30, b"late").place()
    assert (known.streams["next"][0], known.streams["synced"][0], known.streams["earlier"][0]) == (40, -1, -1)


def test_a_stream_that_goes_on_where_it_was_acknowledged_begins_at_once(engine: Engine) -> None:
    window = Window(engine).acknowledge(50).add(50, b"b").add(40, b"late").place()
    assert (window.joined(), window.waits(), window.streams["earlier"][0]) == ([(50, b"b")], False, 40)


@pytest.mark.parametrize("acked", [-1, 39])
def test_a_stream_begins_with_what_there_is_after_some_time(engine: Engine, acked: int) -> None:
    longest = ACKED_WAIT if acked < 0 else LONGEST_WAIT
    for waited in (longest, longest + 1):
        window = middle(engine).acknowledge(acked).place(now=1000 + waited)
        assert (window.joined(), window.waits()) == (([], True) if waited == longest else (WHOLE, False))


def test_a_stream_begins_with_what_there_is_at_the_end_or_where_too_much_waits(engine: Engine) -> None:
    closed = middle(engine)
    closed.connections["closed_order"] = 2
    assert closed.place().joined() == middle(engine).place(final=True).joined() == WHOLE
    for size in (MOST_BEFORE - 2 * LEAST, MOST_BEFORE - 2 * LEAST + 1):
        window = middle(engine).add(51, bytes(size)).place()
        assert window.waits() == (size == MOST_BEFORE - 2 * LEAST)
    assert middle(engine).place(ration=2 * LEAST - 1).joined() == WHOLE


@pytest.mark.parametrize("start", [40, 38, 45])
def test_a_syn_that_comes_late_says_where_a_stream_begins(engine: Engine, start: int) -> None:
    """With its packet. One that stands behind what came is not of this stream."""
    for order in (2, 3):
        window = middle(engine)
        window.streams["start"], window.streams["start_order"] = start, order
        window.place()
        assert window.joined() == (WHOLE if (start, order) == (40, 2) else [])
        assert window.streams["next"][0] == (start if start <= 40 and order == 2 else -1)


def test_time_and_order_of_a_piece_are_those_of_the_latest_packet_before_its_end(engine: Engine) -> None:
    window = Window(engine).at(0)
    window.add(2, b"c", time=30, order=5).add(1, b"b", time=10, order=7).add(0, b"a", time=20, order=9).place()
    assert window.pieces["time"].tolist() == [20, 20, 30]
    assert window.pieces["order"].tolist() == [9, 9, 9]


def test_a_repetition_of_what_was_dealt_with_does_not_make_what_is_new_any_later(engine: Engine) -> None:
    window = Window(engine).at(4).add(4, b"new", time=20, order=2).add(0, b"old", time=40, order=4).place()
    assert window.joined() == [(4, b"new")]
    assert (window.pieces["time"].tolist(), window.pieces["order"].tolist()) == ([20], [2])


# Holes


def hole(engine: Engine) -> Window:
    """Bytes 10 to 19 are missing; what is behind them was captured at 1000."""
    return Window(engine).at(0).add(0, bytes(10)).add(20, b"behind", time=1000)


def test_a_hole_is_waited_for(engine: Engine) -> None:
    window = hole(engine).place(now=1000)
    assert (window.joined(), window.waits()) == ([(0, bytes(10))], True)


GIVEN_UP = [(0, bytes(10)), (20, b"behind")]


def test_a_hole_is_given_up_when_nothing_more_will_come(engine: Engine) -> None:
    assert hole(engine).place(final=True).joined() == GIVEN_UP
    closed = hole(engine)
    closed.connections["closed_order"] = 2
    assert (closed.place().joined(), closed.waits()) == (GIVEN_UP, False)


@pytest.mark.parametrize("waited", [ACKED_WAIT, ACKED_WAIT + 1])
@pytest.mark.parametrize("acked", [19, 20])
def test_a_hole_is_given_up_some_time_after_the_receiver_acknowledged_it(
    engine: Engine, waited: int, acked: int
) -> None:
    window = hole(engine).acknowledge(acked)
    window.place(now=1000 + waited)
    assert window.waits() == (acked < 20 or waited <= ACKED_WAIT)
    assert window.joined() == (GIVEN_UP[:1] if window.waits() else GIVEN_UP)


@pytest.mark.parametrize("waited", [LONGEST_WAIT, LONGEST_WAIT + 1])
def test_a_hole_is_given_up_after_the_longest_wait(engine: Engine, waited: int) -> None:
    assert hole(engine).place(now=1000 + waited).waits() == (waited <= LONGEST_WAIT)


@pytest.mark.parametrize("ration", [PLENTY, 500])
@pytest.mark.parametrize("more", [0, 1])
def test_a_hole_is_given_up_when_too_much_waits_behind_it(engine: Engine, ration: int, more: int) -> None:
    most = min(MOST_WAITING, ration)
    # The segment right behind the hole is among those that wait.
    window = hole(engine).add(26, bytes(most - LEAST + more)).place(now=1000, ration=ration)
    assert window.waits() == (more == 0)
    assert len(window.joined()) == (3 if more else 1)


@pytest.mark.parametrize("content", [b"x", 1])
def test_many_segments_behind_a_hole_wait_for_no_more_memory_than_few(engine: Engine, content: bytes | int) -> None:
    """Each is looked at again in every window, so a byte of each, or none, must not wait as long as a byte of one."""
    for count in (9, 10):
        window = hole(engine)
        for k in range(count):
            window.add(30 + 2 * k, content)
        found = window.place(now=1000, ration=10 * LEAST).joined()
        assert found == (GIVEN_UP[:1] if count == 9 else GIVEN_UP)


def test_what_the_snapshot_cut_off_is_a_piece_without_bytes_and_not_waited_for(engine: Engine) -> None:
    window = Window(engine).at(0).add(0, b"head", time=5).add(4, 6, time=7).add(10, b"next", time=9).place()
    assert window.joined() == [(0, b"head"), (4, 6), (10, b"next")]
    assert window.pieces["time"].tolist() == [5, 7, 9]
    assert window.pieces["order"].tolist() == [0, 1, 2]
    assert not window.waits()


def test_lost_bytes_end_a_stream_and_lie_next_to_each_other(engine: Engine) -> None:
    window = Window(engine).at(0).add(0, b"head").add(4, 6).add(8, 12, time=3).place()
    assert window.joined() == [(0, b"head"), (4, 6), (10, 10)]
    assert window.pieces["time"].tolist() == [0, 0, 3]


def test_lost_bytes_that_a_packet_before_has_are_not_lost(engine: Engine) -> None:
    window = Window(engine).at(0).add(2, b"cdefgh").add(2, 6).add(0, b"ab").place()
    assert window.joined() == [(0, b"ab"), (2, b"cdefgh")]


def test_a_hole_next_to_lost_bytes_is_waited_for_and_then_all_of_it_is_missing(engine: Engine) -> None:
    def window() -> Window:
        return Window(engine).at(0).add(0, b"ab").add(2, 3).add(9, b"end")

    assert (window().place().joined(), window().place().waits()) == ([(0, b"ab"), (2, 3)], True)
    assert window().place(final=True).joined() == [(0, b"ab"), (2, 3), (9, b"end")]


# What is in doubt


def damaged(engine: Engine) -> Window:
    """Of bytes 2 to 5 there is a copy that may be damaged, captured at 1000."""
    return Window(engine).at(0).add(0, b"ab").add(2, b"XXXX", time=1000, doubt=1)


def test_what_is_in_doubt_waits_for_another_copy(engine: Engine) -> None:
    window = damaged(engine).add(6, b"gh", time=1001).add(2, b"cdef", time=2000).place()
    assert window.joined() == [(0, b"ab"), (2, b"cdef"), (6, b"gh")]
    assert (window.pieces["time"].tolist(), window.pieces["order"].tolist()) == ([0, 2000, 2000], [0, 3, 3])
    assert window.pieces["since"].tolist() == [AT_THE_END, 1, 1]
    assert not window.waits()


@pytest.mark.parametrize("waited", [ACKED_WAIT, ACKED_WAIT + 1])
@pytest.mark.parametrize("acked", [5, 6])
def test_what_is_in_doubt_is_taken_some_time_after_the_receiver_acknowledged_it(
    engine: Engine, waited: int, acked: int
) -> None:
    window = damaged(engine).acknowledge(acked).place(now=1000 + waited)
    assert window.waits() == (acked < 6 or waited <= ACKED_WAIT)
    assert window.joined() == ([(0, b"ab")] if window.waits() else [(0, b"ab"), (2, b"XXXX")])


def test_what_is_in_doubt_is_taken_after_the_longest_wait_at_the_end_or_where_too_much_waits(engine: Engine) -> None:
    assert damaged(engine).place(now=1000 + LONGEST_WAIT).waits()
    for window in (
        damaged(engine).place(now=1001 + LONGEST_WAIT),
        damaged(engine).place(final=True),
        damaged(engine).place(ration=LEAST - 1),
    ):
        assert (window.joined(), window.waits()) == ([(0, b"ab"), (2, b"XXXX")], False)


def test_of_what_is_in_doubt_only_those_bytes_are_taken_that_nothing_else_has(engine: Engine) -> None:
    window = damaged(engine).add(4, b"ef").add(5, b"YYYY", doubt=1).add(12, b"end").place(final=True)
    assert window.joined() == [(0, b"ab"), (2, b"XX"), (4, b"ef"), (6, b"YYY"), (12, b"end")]


def test_a_copy_that_comes_too_late_does_not_wait(engine: Engine) -> None:
    window = Window(engine).at(0).add(0, b"abcd").add(1, b"XXX", doubt=1).place()
    assert (window.joined(), window.waits(), window.at(4).keep()) == ([(0, b"abcd")], False, [])


def test_what_is_in_doubt_waits_over_windows(engine: Engine) -> None:
    """Also where a copy of its first bytes came."""
    for good in (b"cdef", b"c"):
        window = damaged(engine).add(2, good[:1], time=1001).place(now=1001)
        assert (window.joined(), window.waits()) == ([(0, b"ab"), (2, b"c")], True)
        assert window.keep() == [(0, 0, b"ab"), (0, 2, b"c"), (0, 2, b"XXXX")]
        assert window.kept["doubt"].tolist() == [0, 0, 1]
        window.segments, window.buf, window.held_rows = window.kept, window.held, len(window.kept)
        window.add(2, good, time=1002).place(final=len(good) == 1)
        assert window.joined() == [(0, b"ab"), (2, b"c"), (3, b"def" if len(good) > 1 else b"XXX")]


# What is kept


def test_what_was_not_consumed_comes_again_in_the_next_window(engine: Engine) -> None:
    window = Window(engine).at(0).add(0, b"abcd", time=1).add(4, b"efgh", time=2).add(20, b"behind", time=3).place()
    window.at(2)
    # A piece as it is: it counts where it begins.
    assert window.keep() == [(0, 0, b"abcd"), (0, 4, b"efgh"), (0, 20, b"behind")]
    assert (window.kept["time"].tolist(), window.kept["order"].tolist()) == ([1, 2, 3], [0, 1, 2])
    assert window.held.tobytes() == b"abcdefghbehind"
    assert window.at(4).keep() == [(0, 4, b"efgh"), (0, 20, b"behind")]


def test_memory_of_what_was_kept_is_used_again_unless_it_is_too_little_or_far_too_much(engine: Engine) -> None:
    def window(size: int) -> Window:
        return Window(engine).at(0).add(0, bytes(range(size))).place()

    expected = [(0, 0, bytes(range(100)))]
    first = window(100)
    assert first.keep() == expected
    memory = first.held
    for size in (100, 90, 110):
        again = window(size)
        assert again.keep(spare=memory) == [(0, 0, bytes(range(size)))]
        assert np.shares_memory(again.held, memory)
    for spare in (np.zeros(99, np.uint8), np.zeros(401, np.uint8), None):
        other = window(100)
        assert other.keep(spare=spare) == expected
        assert spare is None or not np.shares_memory(other.held, spare)


def test_what_waits_is_kept_as_it_was_captured_and_repetitions_of_what_was_put_in_order_are_not(engine: Engine) -> None:
    window = Window(engine).at(0).add(0, b"ab").add(5, b"fgh").add(5, b"fghij").add(0, b"a").add(20, 7).place()
    assert window.at(2).keep() == [(0, 5, b"fgh"), (0, 5, b"fghij"), (0, 20, 7)]


def test_nothing_is_kept_of_what_is_over_or_of_no_interest(engine: Engine) -> None:
    window = Window(engine, 5)
    for stream in range(0, 10, 2):
        window.at(0, stream).add(0, b"abc", stream=stream)
    window.streams["end"][4] = 3
    window.place()
    window.at(3, 4)
    window.connections["closed_order"][0] = 9
    window.connections["role"][1] = Role.OTHER
    window.connections["role"][4] = Role.ENCRYPTED
    assert window.keep() == [(6, 0, b"abc")]
    assert window.keep(final=True) == []


@pytest.mark.parametrize("late", [0, 1])
def test_what_is_over_and_unknown_stays_for_a_while_whatever_waits_elsewhere(engine: Engine, late: int) -> None:
    window = Window(engine, 2).at(FAR).at(0, 2)
    window.add(FAR, b"ab").add(FAR + 5, b"fg").add(0, b"abc", stream=2).place().at(FAR + 2)
    window.connections["closed_order"][1] = 9
    kept = [(2, 0, b"abc")] if not late else []
    assert window.keep(following=9 + LINGERS + late) == [(0, FAR + 5, b"fg"), *kept]


FAR = 1 << 33
"""Positions begin there."""


# Overlaps


def first_captured(parts: list[tuple[int, bytes]]) -> dict[int, int]:
    """What stands at each position, where of all that have it the one in front gives it."""
    found: dict[int, int] = {}
    for pos, data in reversed(parts):
        found.update({pos + k: byte for k, byte in enumerate(data)})
    return found


def test_overlaps_in_any_order_lose_nothing_and_the_first_captured_wins(engine: Engine) -> None:
    chance = random.Random(11)
    for _ in range(150):
        span = chance.choice([8, 30, 200])
        parts = [
            (at, chance.randbytes(chance.randint(1, min(span, 40))))
            for at in (chance.randrange(span) for _ in range(chance.randint(1, 25)))
        ]
        window = Window(engine).at(0)
        for k, (pos, data) in enumerate(parts):
            window.add(pos, data, time=10 * k)
        window.place(final=True)
        wanted = first_captured(parts)
        joined = {pos + k: byte for pos, data in window.joined() for k, byte in enumerate(data)}
        assert joined == wanted
        # A piece is of one segment, and its time that of the latest up to there.
        owner: dict[int, int] = {}
        for k, (pos, data) in reversed(list(enumerate(parts))):
            owner.update(dict.fromkeys(range(pos, pos + len(data)), k))
        latest = -1
        for piece in window.pieces:
            own = {owner[pos] for pos in range(int(piece["pos"]), int(piece["pos"] + piece["len"]))}
            assert len(own) == 1
            latest = max(latest, *own)
            assert piece["time"] == 10 * latest


def test_overlaps_that_are_kept_give_the_same_bytes_in_the_next_window(engine: Engine) -> None:
    chance = random.Random(12)
    for _ in range(60):
        # The byte at 0 is missing, so that all waits behind a hole.
        parts = [(chance.randint(1, 30), chance.randbytes(chance.randint(1, 20))) for _ in range(12)]
        whole, window = Window(engine).at(0), Window(engine).at(0)
        for k, (pos, data) in enumerate(parts):
            whole.add(pos, data, order=k)
        for k, (pos, data) in enumerate(parts):
            window.add(pos, data, order=k).place()
            window.keep()
            window.segments, window.buf, window.held_rows = window.kept, window.held, len(window.kept)
        for each in (whole, window):
            each.add(0, b"!", order=12).place(final=True)
        assert b"".join(data for _, data in window.joined()) == b"".join(data for _, data in whole.joined())
        assert {pos for pos, _ in window.joined()} <= set(range(60))


def steps(parts: list[tuple[int, bytes | int]]) -> int:
    """Lines that run as Python to join and to keep these segments."""
    window = Window(PYTHON).at(0)
    for pos, data in parts:
        window.add(pos, data)
    return lines(lambda: window.place().keep(), 1 << 22)


@pytest.mark.wide(keep=3)
@pytest.mark.parametrize(
    "made",
    [
        lambda n: [(k % 100, b"x" * (1 + k % 50)) for k in range(n)],
        lambda n: [(0, b"x" * (k + 1)) for k in range(n)],
        lambda n: [(0, b"x" * (n - k)) for k in range(n)],
        lambda n: [(k, b"x" * n) for k in range(n)],
        lambda n: [(n - k, b"x" * n) for k in range(n)],
        lambda n: [(0, b"x" * (n + k)) for k in range(n // 2)] + [(n - 1, b"x")] * (n // 2),
        lambda n: [(0, b"x" * (n + k)) for k in range(n // 2)] + [(n - 1, 1)] * (n // 2),
        lambda n: [(1, b"x")] * n,
    ],
)
def test_work_on_overlaps_is_that_of_sorting_them(made: Callable[[int], list[tuple[int, bytes | int]]]) -> None:
    few, many = steps(made(250)), steps(made(1000))
    assert many < 6 * few
    assert many < 400 * 1000
