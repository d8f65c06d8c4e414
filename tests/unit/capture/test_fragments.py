"""Fragments of IP packets: joined whatever their order, never mixed, bounded, and told where they are not joined."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from typing import Any

import pytest
import tunnels
from fed_in_parts import fed, packet_ends
from made_captures import brief, by_time, exchange, read, several
from packets import Connection, Packet, request, response

from kwire.capture import fragments
from kwire.capture.tracker import Tracker
from kwire.kernels.engine import MACHINE, using
from kwire.kernels.packets import Count

SECOND = 1_000_000_000
FOUR = ("10.0.0.1", 40000), ("10.0.0.2", 9092)
SIX = ("fe80::1", 40000), ("2001:db8::2", 9092)


ASKED = struct.pack(">ih", 1, 594) + b"t" * 594
"""Metadata v0 for one topic."""
ANSWERED = struct.pack(">iih", 1, 7, 882) + b"h" * 882 + struct.pack(">ii", 9092, 0)
"""The answer: one broker, no topic."""


def long_exchange(ends: Any = FOUR, count: int = 3) -> list[Packet]:
    """Requests and responses of a few hundred bytes."""
    connection = Connection(*ends).open()
    for number in range(1, count + 1):
        connection.send(request(3, 0, number, ASKED)).answer(response(number, ANSWERED))
    return connection.packets


def pieces(packets: Sequence[Packet], size: int = 128) -> list[list[tuple[int, bytes]]]:
    """The fragments of each packet, with times a microsecond apart that end with the packet's own."""
    found = []
    for number, one in enumerate(packets):
        parts = tunnels.fragmented(one.ip(), size, number + 1)
        found.append([(one.time - 1000 * (len(parts) - 1 - k), part) for k, part in enumerate(parts)])
    return found


def captured(parts: Sequence[tuple[int, bytes]]) -> bytes:
    return tunnels.written([(time, tunnels.ethernet(one)) for time, one in parts])


def plain(packets: Sequence[Packet]) -> bytes:
    return captured([(one.time, one.ip()) for one in packets])


def flat(groups: Sequence[Sequence[tuple[int, bytes]]]) -> list[tuple[int, bytes]]:
    return [one for group in groups for one in group]


def content(data: bytes, cuts: Sequence[int] = (), **options: Any) -> list[Any]:
    return [one._replace(order=0) for one in fed(data, cuts, **options)]


def notes(data: bytes) -> list[str]:
    said: list[str] = []
    read(data, on_note=said.append)
    return said


def not_joined(number: int) -> list[str]:
    packets = "1 packet" if number == 1 else f"{number} packets"
    return [
        f"{packets} left out: fragments of IP packets that could not be joined, because others are missing or cut off"
    ]


both = pytest.mark.parametrize("ends", [FOUR, SIX], ids=["IPv4", "IPv6"])


@both
@pytest.mark.parametrize("size", [8, 64, 128, 800])
def test_fragments_of_any_size_are_joined(ends: Any, size: int) -> None:
    packets = long_exchange(ends)
    data = captured(flat(pieces(packets, size)))
    assert content(data) == content(plain(packets))
    assert notes(data) == []


@both
def test_fragments_in_any_order_are_joined_with_the_last_one(ends: Any) -> None:
    packets = long_exchange(ends)
    some = random.Random(3)
    for _ in range(5):
        groups = pieces(packets)
        for group in groups:
            times = [time for time, _ in group]
            some.shuffle(group)
            group[:] = [(time, part) for time, (_, part) in zip(times, group, strict=True)]
        assert content(captured(flat(groups))) == content(plain(packets))


@both
def test_fragments_that_are_captured_again_say_nothing_new(ends: Any) -> None:
    packets = long_exchange(ends)
    for times in (2, 3):
        # Each one again at once, all of a packet again, and all of it again in the wrong order.
        again = captured([one for one in flat(pieces(packets)) for _ in range(times)])
        assert (content(again), notes(again)) == (content(plain(packets)), [])
        again = captured(flat([group * times for group in pieces(packets)]))
        assert (content(again), notes(again)) == (content(plain(packets)), [])
        again = captured(flat([group + group[::-1] for group in pieces(packets)]))
        assert (content(again), notes(again)) == (content(plain(packets)), [])


@both
def test_fragments_of_packets_that_overtake_each_other_are_not_mixed(ends: Any) -> None:
    packets = long_exchange(ends)
    one, two = pieces(packets)[3:5]
    mixed = [part for pair in zip(one, two, strict=False) for part in pair] + two[len(one) :]
    parts = flat(pieces(packets)[:3]) + mixed + flat(pieces(packets)[5:])
    assert sorted(one._replace(time=0, latency=0, number=0) for one in content(captured(parts))) == sorted(
        one._replace(time=0, latency=0, number=0) for one in content(plain(packets))
    )


def test_a_packet_counts_when_its_last_fragment_was_captured() -> None:
    packets = long_exchange(count=1)
    asked = pieces(packets)[3]
    late = asked[:2] + asked[3:] + [(asked[-1][0] + 5_000_000, asked[2][1])]
    answer = [(time + 10_000_000, part) for time, part in pieces(packets)[4]]
    found = content(captured(flat(pieces(packets)[:3]) + late + answer))
    assert [one.time for one in found] == [late[-1][0], answer[-1][0]]
    assert found[1].latency == answer[-1][0] - late[-1][0]


@both
def test_a_packet_of_which_a_fragment_is_missing_is_a_gap_and_told(ends: Any) -> None:
    packets = long_exchange(ends)
    whole = brief(read(plain(packets)))
    groups = pieces(packets)
    for k in range(len(groups[5])):
        parts = flat([group if n != 5 else group[:k] + group[k + 1 :] for n, group in enumerate(groups)])
        data = captured(parts)
        found = brief(by_time(read(data)))
        assert found[:2] == whole[:2]
        assert found[-2:] == whole[-2:]
        assert notes(data) == not_joined(len(groups[5]) - 1)


@both
def test_fragments_that_say_something_else_are_left_out(ends: Any) -> None:
    packets = long_exchange(ends)
    groups = pieces(packets)
    other = [(time, part[:-9] + b"otherdata") for time, part in groups[5]]
    shifted = pieces([*packets[:5], packets[5]], 136)[5]
    for wrong in (other[1], other[-1], shifted[1], shifted[2]):
        # In front of the last fragment, so that there is something to contradict.
        group = [*groups[5][:-1], wrong, groups[5][-1]] if wrong[1] != other[-1][1] else [*groups[5], wrong]
        data = captured(flat(groups[:5]) + group + flat(groups[6:]))
        assert content(data) == content(plain(packets))
        assert notes(data) == not_joined(1)


@pytest.mark.parametrize("there", [1, 2, 3])
def test_a_fragment_may_overlap_the_one_before_it_only(there: int) -> None:
    """Those behind it come later: nothing but that one contradicts it."""
    packets = long_exchange()
    groups = pieces(packets)
    wrong = groups[5][there - 1][0], tunnels.fragmented(packets[5].ip(), 120, 6)[there]
    data = captured([*flat(groups[:5]), *groups[5][:there], wrong, *groups[5][there:], *flat(groups[6:])])
    assert content(data) == content(plain(packets))
    assert notes(data) == not_joined(1)


@pytest.mark.parametrize("names", [[0], [60], [0, 60], [51], [0, 51]], ids=repr)
def test_other_headers_may_stand_before_that_of_a_fragment(names: list[int]) -> None:
    """Hop-by-hop options (0), options for the destination (60), of one and two times 8 bytes; authentication (51)."""
    packets = long_exchange(SIX)

    def longer(packet: bytes) -> bytes:
        following, extra = packet[6], b""
        for name in reversed(names):
            size = 24 if name == 51 else 8 if name == 0 else 16
            length = size // 4 - 2 if name == 51 else size // 8 - 1
            extra = struct.pack(">BBBB", following, length, 1, size - 4) + bytes(size - 4) + extra
            following = name
        (held,) = struct.unpack_from(">H", packet, 4)
        return packet[:4] + struct.pack(">HB", held + len(extra), following) + packet[7:40] + extra + packet[40:]

    parts = [(time, longer(part)) for time, part in flat(pieces(packets))]
    assert content(captured(parts)) == content(plain(packets))
    assert notes(captured(parts)) == []


def test_fragments_without_sense_are_left_out() -> None:
    packets = long_exchange()
    ((time, first), *_) = pieces(packets)[3]

    def with_place(place: int, body: bytes = first[20:]) -> bytes:
        top = first[:2] + struct.pack(">HHH", 20 + len(body), 999, place) + first[8:20]
        return top + body

    wrong = [
        with_place(0x2000, bytes(13)),  # more follow, but not behind a multiple of 8
        with_place(0x1FFF, bytes(16)),  # behind the largest packet
        with_place(0x2001, b""),
        first[:2] + struct.pack(">H", 500) + first[4:],  # cut off by the capture
    ]
    data = captured([(time, one) for one in wrong] + [(one.time, one.ip()) for one in packets])
    assert content(data) == content(plain(packets))
    assert notes(data)[0] == not_joined(4)[0]


@both
def test_what_has_waited_too_long_is_given_up(ends: Any) -> None:
    packets = long_exchange(ends)
    asked = pieces(packets)[3]
    for wait, joined in ((29 * SECOND, True), (31 * SECOND, False)):
        late = [(time + wait, part) for time, part in asked[2:]]
        data = captured(flat(pieces(packets)[:3]) + asked[:2] + late)
        assert bool(fed(data)) == joined
        assert (notes(data)[:1] == not_joined(len(asked))) != joined


def test_a_number_that_is_used_again_does_not_mix_two_packets() -> None:
    packets = long_exchange()
    first, *others = pieces(packets)[3]
    # The last fragments of a packet are there already, from long before: of another packet with the same number.
    stale = [(first[0] - 100, part[:20] + b"?" * len(part[20:])) for _, part in others]
    between = [(first[0] - 50, one) for k in range(3000) for one in tunnels.fragmented(packets[3].ip()[:84], 24, 9 + k)]
    data = captured(flat(pieces(packets)[:3]) + stale + between[: fragments.FARTHEST + 1] + [first, *others])
    with using(MACHINE):
        found = content(data)
    assert [one.data for one in found] == [content(plain(packets))[0].data]


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "MOST_WAITING", 5)
    packets = long_exchange(count=12)
    groups = pieces(packets)
    data = captured([group[0] for group in groups if len(group) > 1] + [one for group in groups for one in group[1:]])
    tracker = Tracker()
    tracker.feed(data)
    assert tracker._fragments.waiting <= 5 * max(map(len, groups))
    assert len(tracker.save().schema.metadata[b"kwire"]) < 20_000
    monkeypatch.setattr(fragments, "MOST_WAITING", 4096)
    monkeypatch.setattr(fragments, "MOST_BYTES", 3000)
    tracker = Tracker()
    tracker.feed(data)
    assert tracker._fragments._size <= 3000
    assert sum(one.cost for one in tracker._fragments._waiting.values()) == tracker._fragments._size


# Tunnels


@pytest.mark.parametrize("name", ["vxlan", "gre in ipv6", "erspan 2", "geneve with options", "ip in ipv6"])
@both
def test_fragments_inside_of_a_tunnel_of_the_tunnel_and_of_both_are_joined(ends: Any, name: str) -> None:
    packets = long_exchange(ends)
    wrap = tunnels.TUNNELS[name]
    inside = captured([(time, wrap(part)) for time, part in flat(pieces(packets))])
    assert (content(inside), notes(inside)) == (content(plain(packets)), [])
    outside = captured(
        [(one.time, part) for k, one in enumerate(packets) for part in tunnels.fragmented(wrap(one.ip()), 200, k)]
    )
    assert (content(outside), notes(outside)) == (content(plain(packets)), [])
    both_of_them = [
        (time, outer)
        for k, (time, part) in enumerate(flat(pieces(packets, 256)))
        for outer in tunnels.fragmented(wrap(part), 96, k)
    ]
    assert (content(captured(both_of_them)), notes(captured(both_of_them))) == (content(plain(packets)), [])
    some = random.Random(1)
    for at in range(0, len(both_of_them), 12):
        group = both_of_them[at : at + 12]
        some.shuffle(group)
        both_of_them[at : at + 12] = group
    assert [one.data for one in content(captured(both_of_them))] == [one.data for one in content(plain(packets))]


def test_equal_numbers_of_packets_in_two_networks_are_not_mixed() -> None:
    packets = long_exchange()
    parts = pieces(packets)[3]
    other = [(time, part[:20] + bytes(len(part) - 20)) for time, part in parts]
    mixed = [
        (time, tunnels.ipv4(17, tunnels.udp(4789, tunnels.vxlan(part, number))))
        for pair in zip(other, parts, strict=True)
        for number, (time, part) in enumerate(pair)
    ]
    data = captured([(one.time, one.ip()) for one in packets[:3]] + mixed)
    assert brief(read(data)) == brief(read(plain(packets)))[:1]


# Parts


@pytest.mark.wide(keep=1)
@both
def test_windows_and_hands_do_not_matter(ends: Any) -> None:
    packets = long_exchange(ends, 2)
    groups = pieces(packets, 64)
    for group in groups:
        group[::2] = group[::2][::-1]
    data = captured([one for group in groups for one in group + group[:1]])
    whole = fed(data)
    assert [one.data for one in whole] == [one.data for one in fed(plain(packets))]
    with using(MACHINE):
        assert fed(data, packet_ends(data)) == whole
        assert fed(data, packet_ends(data), handed_on=True) == whole
        assert fed(data, range(97, len(data), 97), handed_on=True) == whole


def test_what_waits_is_part_of_the_state() -> None:
    packets = long_exchange()
    data = captured(flat(pieces(packets)))
    for cut in packet_ends(data):
        one = Tracker()
        one.feed(data[:cut])
        two = Tracker()
        two.restore(one.save())
        assert two._fragments.state() == one._fragments.state()
        assert json.loads(two.save().schema.metadata[b"kwire"]) == json.loads(one.save().schema.metadata[b"kwire"])


def test_fragments_cost_nothing_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(fragments.Fragments, "put", never)
    assert brief(read(tunnels.written([(p.time, tunnels.ethernet(p.ip())) for p in exchange(count=3).packets]))) == (
        several(3)
    )


def test_what_becomes_of_fragments_is_counted() -> None:
    packets = long_exchange()
    tracker = Tracker()
    parts = flat(pieces(packets))
    tracker.feed(captured(parts), final=True)
    assert tracker._counts[Count.PACKETS] == len(parts)
    assert tracker._counts[Count.PART] == len(parts) - len(packets)
    assert tracker._counts[Count.FRAGMENT] == 0
