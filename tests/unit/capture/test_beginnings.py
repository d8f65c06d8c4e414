"""Connections whose beginning was not captured, and whose first packets are in the wrong order."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
from made_captures import Row, exchange, read
from packets import SYN, Connection, Packet, metadata, metadata_answer, pcap
from split_captures import compared, rows_of

from kwire.capture.account import total
from kwire.capture.reading import Reading
from kwire.capture.tracker import Tracker

SECOND = 1_000_000_000
MILLISECOND = SECOND // 1000


def talk(count: int = 5) -> list[Packet]:
    """Two requests one behind the other, both answers, and exchanges: without the packets that opened it."""
    connection = Connection(step=MILLISECOND)
    connection.send(metadata(1)).send(metadata(2)).answer(metadata_answer(1)).answer(metadata_answer(2))
    for number in range(3, count + 1):
        connection.send(metadata(number)).answer(metadata_answer(number))
    return connection.packets


def in_order(packets: Sequence[Packet], *places: int) -> list[Packet]:
    """The packets, of which the first ones are captured in another order, 0.1 ms apart."""
    first = [packets[place] for place in places]
    time = packets[0].time
    moved = [replace(one, time=time + k * MILLISECOND // 10) for k, one in enumerate(first)]
    return [*moved, *packets[len(places) :]]


def asked(rows: Sequence[Row]) -> list[int]:
    """The requests that were recognised. What confirms them is in ``test_unconfirmed``."""
    found = (row for row in rows if row["direction"] == "request" and row["status"] in ("ok", "unconfirmed"))
    return sorted(row["correlation_id"] for row in found)


def in_any_window(packets: Sequence[Packet], cuts: Sequence[int] = (1, 2, 3, 4, 6)) -> list[Row]:
    """The rows, which are the same in any window, from state to state with each packet, and of several files."""
    data = pcap(packets)
    rows = read(data)
    for window in (60, 333):
        assert compared(read(data, window=window)) == compared(rows)
    tracker, states = Tracker(), []
    for at in range(0, len(data), 60):
        states.append(tracker.save())
        tracker = Tracker()
        tracker.restore(states[-1])
        tracker.feed(data[at : at + 60])
    for cut in cuts:
        files = [pcap(packets[:cut], nano=True), pcap(packets[cut:], nano=True)]
        assert compared(rows_of(files, "frames")) == compared(read(pcap(packets, nano=True))), cut
    reading = Reading(io.BytesIO(data), account=True)
    for _ in reading:
        pass
    balance = total(reading.tracker.account())
    assert (balance.nowhere, balance.twice) == (0, 0)
    return rows


def test_the_second_request_may_be_captured_before_the_first() -> None:
    rows = in_any_window(in_order(talk(), 1, 0))
    assert asked(rows) == [1, 2, 3, 4, 5]
    assert [row["status"] for row in rows] == ["ok"] * 10
    (line,) = read(pcap(in_order(talk(), 1, 0)), "connections")
    assert (line["client_repeated_bytes"], line["client_late"], line["client_missing_bytes"]) == (0, 1, 0)


@pytest.mark.wide(keep=7)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_whatever_the_order_is_no_byte_is_lost_unseen(order: tuple[int, ...]) -> None:
    rows = in_any_window(in_order(talk(), *order), [order.index(0)])
    # Before what is acknowledged nothing is waited for.
    if order.index(0) < min(order.index(2), order.index(3)):
        assert asked(rows) == [1, 2, 3, 4, 5]
    missing = [row for row in rows if row["status"] == "gap"]
    assert asked(rows) == [1, 2, 3, 4, 5] or missing


def test_what_comes_too_late_is_a_gap() -> None:
    packets = talk()
    late = [*packets[1:6], replace(packets[0], time=packets[5].time), *packets[6:]]
    rows = in_any_window(late)
    assert asked(rows) == [2, 3, 4, 5]
    (gap,) = (row for row in rows if row["status"] == "gap")
    assert (gap["direction"], gap["size"]) == ("request", len(packets[0].payload))
    assert "came too late" in gap["error"]


def test_a_syn_that_is_captured_late_says_where_the_connection_begins() -> None:
    opened = Connection(step=MILLISECOND).open()
    exchange(opened, 3)
    syn, _, _, first, *rest = opened.packets
    rows = in_any_window([first, syn, *rest])
    assert [row["status"] for row in rows] == ["ok"] * 6


def test_where_one_direction_was_captured_it_begins_a_while_after_its_first_packet() -> None:
    packets = [one for one in in_order(talk(30), 1, 0) if one.dst[1] == 9092]
    assert asked(in_any_window(packets)) == list(range(1, 31))
    tracker = Tracker()
    tracker.feed(pcap([])[:24])
    shown = [len(tracker.feed(pcap([replace(one, time=packets[0].time + 4 * k * SECOND)])[24:])) for k, one in
             enumerate(packets[:6])]  # fmt: skip
    # What may confirm a request is waited for, for 10 seconds.
    assert shown == [0, 0, 0, 0, 2, 1]


def test_a_frame_is_shown_when_it_is_acknowledged_however_quiet_the_broker_is() -> None:
    tracker = Tracker()
    tracker.feed(pcap([])[:24])
    # With five more answers it is clear that nothing of the first exchange is a value.
    found = [len(tracker.feed(pcap([one])[24:])) for one in exchange(Connection(), 7).packets]
    assert (found[:-4], sum(found)) == ([0] * 10, 14)
    # The next one follows what was acknowledged.
    idle = exchange(Connection(), 7)
    idle.send(metadata(8))
    assert len(tracker.feed(pcap(idle.packets[14:])[24:])) == 1


def test_a_syn_inside_of_a_connection_loses_nothing_of_it_unseen() -> None:
    """What goes on behind it begins in the middle."""
    packets = talk(9)
    stray = replace(packets[0], seq=3_000_000_000, payload=b"", flags=SYN, time=packets[6].time + 1)
    behind = in_order(packets[6:], 2, 1, 0)
    rows = in_any_window([*packets[:6], stray, *behind])
    assert asked(rows) == list(range(1, 10)) or any(row["status"] == "gap" for row in rows)
