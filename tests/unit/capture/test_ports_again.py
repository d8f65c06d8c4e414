"""Connections on ports that another one had before: what belongs to which."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from made_captures import Row, exchange, read
from packets import ACK, SYN, Connection, Packet, metadata, metadata_answer, pcap
from split_captures import compared, rows_of

from kwire.capture.account import Balance, total
from kwire.capture.reading import Reading
from kwire.capture.tracker import Tracker

SECOND = 1_000_000_000


def in_time(packets: Sequence[Packet]) -> list[Packet]:
    return sorted(packets, key=lambda one: one.time)


def in_any_window(packets: Sequence[Packet], cuts: Sequence[int] = ()) -> list[Row]:
    """The rows, which are the same in any window, from state to state, and in files that are cut at ``cuts``."""
    data = pcap(packets)
    rows = read(data)
    for window in (60, 333):
        assert compared(read(data, window=window)) == compared(rows)
    tracker = Tracker()
    found = 0
    for at in range(0, len(data), 300):
        saved = tracker.save()
        tracker = Tracker()
        tracker.restore(saved)
        found += len(tracker.feed(data[at : at + 300], final=at + 300 >= len(data)))
    assert found == len(rows)
    for cut in cuts:
        files = [pcap(packets[:cut], nano=True), pcap(packets[cut:], nano=True)]
        assert compared(rows_of(files, "frames")) == compared(read(pcap(packets, nano=True))), cut
    return rows


def balance(packets: Sequence[Packet]) -> Balance:
    reading = Reading(io.BytesIO(pcap(packets)), account=True)
    for _ in reading:
        pass
    found = total(reading.tracker.account())
    assert (found.nowhere, found.twice) == (0, 0)
    return found


def oks(rows: Sequence[Row]) -> int:
    return sum(row["status"] == "ok" for row in rows)


def again(first: Connection, after: int, count: int = 3) -> Connection:
    """Another connection on the same ports, with the same first sequence numbers."""
    made = Connection(time=first.time + after).open()
    for number in range(1001, 1001 + count):
        made.send(metadata(number, "other")).answer(metadata_answer(number))
    return made


# --- the same first sequence numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "reset"])
def test_ports_may_be_used_again_with_the_same_first_sequence_numbers(end: str) -> None:
    first = exchange(count=3)
    getattr(first, end)()
    second = again(first, 120 * SECOND)
    packets = [*first.packets, *second.packets]
    rows = in_any_window(packets, range(1, len(packets), 3))
    assert oks(rows) == 12
    assert len({row["connection"] for row in rows}) == 2
    assert balance(packets).repeated == 0


def test_so_they_may_where_no_end_was_captured() -> None:
    first = exchange(count=3)
    assert oks(in_any_window([*first.packets, *again(first, 121 * SECOND).packets])) == 12


def test_a_capture_that_has_all_packets_twice_has_one_connection() -> None:
    """Files that were put one behind the other, of which the later repeats the earlier; or two devices."""
    first = exchange(count=3).close()
    later = exchange(Connection(client=("10.0.0.3", 40_000), time=first.time + 300 * SECOND).open(), 3)
    for packets in (
        [*first.packets, *later.packets, *first.packets, *later.packets],
        [one for packet in first.packets for one in (packet, packet)],
        [*first.packets, *(replace(one, time=one.time + 5 * SECOND) for one in first.packets)],
    ):
        rows = in_any_window(packets)
        assert oks(rows) == 6 * len({one.src for one in packets if one.src[1] != 9092})
        assert balance(packets).repeated == balance(packets).captured


def test_a_copy_of_a_syn_begins_nothing_while_its_connection_goes_on() -> None:
    first = exchange(count=3)
    copy = replace(first.packets[0], time=first.time + 1)
    first.time += SECOND
    exchange(first, 3)
    rows = in_any_window(in_time([*first.packets, copy]))
    assert len({row["connection"] for row in rows}) == 1


# --- late copies ------------------------------------------------------------------------------------------------------


def used_again(client_isn: int = 1_500_000_000, broker_isn: int = 1_700_000_000) -> tuple[Connection, Connection]:
    first = exchange(Connection(client_isn=client_isn, broker_isn=broker_isn).open(), 3).close()
    return first, exchange(Connection(time=first.time + SECOND).open(), 8)


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("which", range(11))
@pytest.mark.parametrize("isn", [1_500_000_000, 900_000_000, 3_900_000_000])
def test_a_late_copy_of_a_packet_of_the_connection_before_is_none_of_the_one_that_goes_on(which: int, isn: int) -> None:
    """Whatever it is, and wherever its sequence numbers are; it was captured before."""
    first, second = used_again(isn, isn + 200_000_000)
    for place in (4, 12):
        late = replace(first.packets[which], time=second.packets[place].time + 1)
        packets = in_time([*first.packets, *second.packets, late])
        assert oks(read(pcap(packets))) == 6 + 16
        assert balance(packets).repeated == len(late.payload)
    rows = in_any_window(packets, (2, 5))
    assert len({row["connection"] for row in rows}) == 2


def test_late_copies_may_be_of_the_connection_before_the_one_before() -> None:
    first, second = used_again()
    second.close()
    third = exchange(Connection(client_isn=700_000_000, broker_isn=3_000_000_000, time=second.time + SECOND).open(), 8)
    late = [replace(one, time=third.packets[9].time + 1) for one in (first.packets[3], second.packets[4])]
    packets = in_time([*first.packets, *second.packets, *third.packets, *late])
    assert oks(in_any_window(packets)) == 6 + 16 + 16


def test_what_the_connection_before_never_sent_begins_another() -> None:
    """No SYN of it was captured, and it goes on behind what the first one had."""
    first, second = used_again()
    third = Connection(client_isn=1_500_100_000, broker_isn=1_700_100_000, time=second.time + SECOND)
    exchange(third, 4)
    rows = in_any_window([*first.packets, *second.packets, *third.packets])
    assert oks(rows) == 6 + 16 + 8
    assert len({row["connection"] for row in rows}) == 3


def test_a_syn_behind_the_end_begins_another_with_the_numbers_of_any_before() -> None:
    first, second = used_again()
    second.close()
    third = exchange(
        Connection(client_isn=first.client_isn, broker_isn=first.broker_isn, time=second.time + SECOND).open(), 3
    )
    rows = in_any_window([*first.packets, *second.packets, *third.packets])
    assert oks(rows) == 6 + 16 + 6
    assert [one.flags for one in third.packets[:2]] == [SYN, SYN | ACK]


# --- without a SYN ----------------------------------------------------------------------------------------------------


NEAR, FAR = (2, 100_000, -1000), (30_000_000, 500_000_000, 1 << 30, 1 << 31, -500_000_000)


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize(
    ("closed", "step"), [*((True, step) for step in (*NEAR, *FAR)), *((False, step) for step in FAR)]
)
@pytest.mark.parametrize("pause", [SECOND, 3600 * SECOND])
def test_a_request_before_the_end_is_not_answered_behind_it(closed: bool, step: int, pause: int) -> None:
    """The capture lacks the SYN of the second; the first one ended, or jumps as no window allows."""
    first = exchange(count=1).send(metadata(2))
    if closed:
        first.close()
    starts = [(number + step - 1) % (1 << 32) for number in first._next]
    second = Connection(client_isn=starts[0], broker_isn=starts[1], time=first.time + pause)
    for number in (2, 3):
        second.send(metadata(number)).answer(metadata_answer(number))
    packets = [*first.packets, *second.packets]
    rows = in_any_window(packets, range(1, len(packets), 2))
    assert {row["status"] for row in rows} == {"ok"}
    found = sorted((row["connection"], row["correlation_id"], row["direction"]) for row in rows)
    assert found == [
        (0, 1, "request"), (0, 1, "response"), (0, 2, "request"),
        (1, 2, "request"), (1, 2, "response"), (1, 3, "request"), (1, 3, "response"),
    ]  # fmt: skip
    assert balance(packets).repeated == 0
