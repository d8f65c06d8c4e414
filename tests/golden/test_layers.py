"""Golden captures in tunnels, in fragments and on other links: their frames are those of the clean ones.

Each packet is taken out of its capture and put somewhere else (``tests/support/tunnels.py``). Small captures go through
everything, each of the others through some of it, so that all of them together go through all; with the profile
``exhaustive`` each capture goes through each tunnel. The tables are made from
the frames, so frames are what is compared, with all that is known of them, bytes included.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tunnels
from fed_in_parts import Seen, fed
from hypothesis import settings
from valid_batches import valid

from kwire import capture
from kwire.capture.tracker import Tracker
from kwire.kernels.engine import MACHINE, using
from kwire.kernels.packets import Count

Packets = Iterable[tuple[int, bytes]]

HERE = Path(__file__).parent
CAPTURES = sorted(HERE.glob("*/*.pcap*"))
SMALL = [path for path in CAPTURES if path.stat().st_size < 12_000]
EVERY = settings.default.max_examples > 50
LARGEST = 8000
"""Bytes of a packet that fits into any tunnel. Packets on loopback may have 64 KiB."""
MTU = 1480


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def cut_to(packets: Packets, size: int) -> Iterator[tuple[int, bytes]]:
    """The packets, larger ones cut into several as a network card does it: IPv4, or IPv6 without extensions."""
    for time, one in packets:
        six = one[0] >> 4 == 6
        at = 40 if six else (one[0] & 15) * 4
        head = one[: at + (one[at + 12] >> 4) * 4]
        if len(one) <= size:
            yield time, one
            continue
        (sequence,) = struct.unpack_from(">I", one, at + 4)
        for start in range(len(head), len(one), size - len(head)):
            part = bytearray(head + one[start : start + size - len(head)])
            struct.pack_into(">H", part, 4 if six else 2, len(part) - (40 if six else 0))
            struct.pack_into(">I", part, at + 4, sequence + start - len(head) & 0xFFFFFFFF)
            if start + size - len(head) < len(one):
                part[at + 13] &= ~9  # FIN and PSH are of the last one
            yield time, bytes(part)


def clean(path: Path) -> list[tuple[int, bytes]]:
    return list(cut_to(tunnels.taken_from(path.read_bytes()), LARGEST))


def frames(data: bytes) -> list[Seen]:
    with using(MACHINE):
        return fed(data)


def without_order(found: list[Seen]) -> list[Seen]:
    return [one._replace(order=0) for one in found]


def in_ethernet(packets: Packets) -> bytes:
    return tunnels.written([(time, tunnels.ethernet(one)) for time, one in packets])


def in_tunnels(packets: Packets, *names: str) -> bytes:
    def around(one: bytes) -> bytes:
        for name in names:
            one = tunnels.TUNNELS[name](one)
        return one

    return in_ethernet((time, around(one)) for time, one in packets)


def in_frames(packets: Packets, wrap: Callable[[bytes], bytes], link: int = 1) -> bytes:
    return tunnels.written([(time, wrap(one)) for time, one in packets], link)


def in_fragments(packets: Packets, size: int, seed: int, *, again: bool = False, shuffled: bool = False) -> Packets:
    some = random.Random(seed)
    for number, (time, one) in enumerate(packets):
        parts = tunnels.fragmented(one, size, number)
        if again:
            parts += some.sample(parts, min(len(parts), 2))
        if shuffled:
            some.shuffle(parts)
        for part in parts:
            yield time, part


def test_there_are_captures() -> None:
    assert len(CAPTURES) > 40
    assert len(SMALL) > 2
    assert len(CAPTURES) > max(len(tunnels.TUNNELS), len(tunnels.FRAMES), len(tunnels.LINKS))


@pytest.mark.parametrize("path", CAPTURES, ids=name_of)
def test_packets_that_are_taken_out_are_those_of_the_capture(path: Path) -> None:
    assert without_order(frames(in_ethernet(clean(path)))) == without_order(frames(path.read_bytes())) != []


@pytest.mark.parametrize("path", SMALL, ids=name_of)
def test_a_small_capture_in_each_tunnel_and_in_each_pair(path: Path) -> None:
    packets = clean(path)
    wanted = frames(in_ethernet(packets))
    for name in tunnels.TUNNELS:
        assert frames(in_tunnels(packets, name)) == wanted, name
    for outer in tunnels.TUNNELS:
        for inner in ("vxlan", "gre with all options", "erspan 2", "geneve with options", "ip in ipv6"):
            assert frames(in_tunnels(packets, inner, outer)) == wanted, (inner, outer)


@pytest.mark.parametrize("path", SMALL, ids=name_of)
def test_a_small_capture_on_each_link(path: Path) -> None:
    packets = clean(path)
    wanted = frames(in_ethernet(packets))
    for name, wrap in tunnels.FRAMES.items():
        assert frames(in_frames(packets, wrap)) == wanted, name
    for name, (link, wrap) in tunnels.LINKS.items():
        assert frames(in_frames(packets, wrap, link)) == wanted, name


@pytest.mark.wide(keep=8)
@pytest.mark.parametrize("path", CAPTURES, ids=name_of)
def test_every_capture_in_a_tunnel_in_two_on_a_link_and_in_fragments(path: Path) -> None:
    k = CAPTURES.index(path)
    packets = clean(path)
    wanted = frames(in_ethernet(packets))
    assert wanted
    names, kinds, links = list(tunnels.TUNNELS), list(tunnels.FRAMES.values()), list(tunnels.LINKS.values())
    one, another = names[k % len(names)], names[(7 * k + 3) % len(names)]
    for name in names if EVERY else [one]:
        assert frames(in_tunnels(packets, name)) == wanted, name
        assert frames(in_tunnels(packets, name, another)) == wanted, (name, another)
    assert frames(in_frames(packets, kinds[k % len(kinds)])) == wanted
    link, wrap = links[k % len(links)]
    assert frames(in_frames(packets, wrap, link)) == wanted
    wanted = without_order(wanted)
    inside = list(in_fragments(packets, 8 * (5 + k % 40), k, again=bool(k & 1), shuffled=True))
    assert without_order(frames(in_ethernet(inside))) == wanted
    around = [(time, tunnels.TUNNELS[one](part)) for time, part in packets]
    outside = in_ethernet(in_fragments(around, MTU, k, again=bool(k & 2), shuffled=bool(k & 1)))
    assert without_order(frames(outside)) == wanted


@pytest.mark.parametrize("path", SMALL, ids=name_of)
def test_fragments_of_packets_in_a_tunnel_whose_packets_are_fragments(path: Path) -> None:
    packets = clean(path)
    wanted = without_order(frames(in_ethernet(packets)))
    for k, name in enumerate(tunnels.TUNNELS):
        parts = [(time, tunnels.TUNNELS[name](part)) for time, part in in_fragments(packets, 64, k, shuffled=True)]
        assert without_order(frames(in_ethernet(in_fragments(parts, 48, k, shuffled=True)))) == wanted, name


@pytest.mark.parametrize("path", SMALL, ids=name_of)
def test_packets_that_are_captured_outside_and_inside_of_a_tunnel_count_once(path: Path) -> None:
    packets = clean(path)
    wanted = frames(in_ethernet(packets))
    for name in tunnels.TUNNELS:
        for order in (1, -1):
            both = [(time, copy) for time, one in packets for copy in (one, tunnels.TUNNELS[name](one))[::order]]
            found = frames(in_ethernet(both))
            assert without_order(found) == without_order(wanted), name


@pytest.mark.parametrize("path", SMALL, ids=name_of)
def test_mirrors_of_both_ends_in_sessions_of_their_own_count_once(path: Path) -> None:
    packets = clean(path)
    wanted = without_order(frames(in_ethernet(packets)))
    both = [
        (time, tunnels.ipv4(17, tunnels.udp(4789, tunnels.vxlan(one, number))))
        for time, one in packets
        for number in (1, 2)
    ]
    assert without_order(frames(in_ethernet(both))) == wanted


# Recorded over a VXLAN device of the kernel (record_vxlan.py)

REPLAYED = sorted((HERE / "tunnels" / "vxlan").glob("*.json"))
TIMES = {"frames": {"timestamp", "latency_ms"}, "messages": {"timestamp", "latency_ms"}, "records": {"frame_timestamp"}}
NETWORK = {"client_host", "client_port", "broker_host", "broker_port", "frame", "connection"}


def rows(path: Path, table: str, *, without: set[str]) -> list[dict[str, Any]]:
    """The rows by connection and frame, both of which are counted anew."""
    with path.open("rb") as file:
        found = [row for batch in valid(capture.read(file, table)) for row in batch.to_pylist()]
    found.sort(key=lambda row: (row["connection"], row["frame"]))
    return [{name: value for name, value in row.items() if name not in without} for row in found]


def notes(path: Path) -> list[str]:
    said: list[str] = []
    with path.open("rb") as file:
        for _ in capture.read(file, on_note=said.append):
            pass
    return said


def test_there_are_recordings() -> None:
    assert [path.stem for path in REPLAYED] == ["fragments", "ipv6", "plain"]


@pytest.mark.parametrize("path", REPLAYED, ids=lambda path: path.stem)
@pytest.mark.parametrize("table", ["frames", "messages", "records"])
def test_what_was_recorded_on_the_cable_of_a_tunnel_is_what_its_device_had(path: Path, table: str) -> None:
    replayed = HERE / json.loads(path.read_text())["replayed"]
    cable, device = path.with_suffix(".pcap"), path.with_name(f"{path.stem}-inside.pcap")
    assert rows(cable, table, without=TIMES[table]) == rows(device, table, without=TIMES[table])
    wanted = rows(replayed, table, without=TIMES[table] | NETWORK)
    assert rows(cable, table, without=TIMES[table] | NETWORK) == wanted
    assert wanted
    assert notes(cable) == notes(device) == []


# Recorded over Multipath TCP of the kernel (record_multipath.py)


def messages(path: Path) -> list[tuple[Any, ...]]:
    with path.open("rb") as file:
        found = (row for batch in valid(capture.read(file, "messages")) for row in batch.to_pylist())
        return [
            tuple(row[name] for name in ("direction", "api_key", "api_version", "correlation_id", "client_id", "body"))
            for row in found
            if row["status"] in ("ok", "trailing")
        ]


def test_a_connection_of_multipath_tcp_with_one_path_has_all_its_frames() -> None:
    path = HERE / "paths" / "multipath" / "one-path.pcap"
    replayed = HERE / json.loads(path.with_suffix(".json").read_text())["replayed"]
    assert rows(path, "frames", without=TIMES["frames"] | NETWORK) == rows(
        replayed, "frames", without=TIMES["frames"] | NETWORK
    )
    assert notes(path) == []


def test_no_frame_is_put_together_of_what_several_paths_had() -> None:
    path = HERE / "paths" / "multipath" / "two-paths.pcap"
    wanted = messages(HERE / json.loads(path.with_suffix(".json").read_text())["replayed"])
    found = messages(path)
    assert len(wanted) // 2 < len(found)
    assert set(found) <= set(wanted)
    note, doubted = notes(path)
    assert "other paths of Multipath TCP" in note
    assert doubted.startswith("unconfirmed frames: ")
    with path.open("rb") as file:
        statuses = [row["status"] for batch in capture.read(file) for row in batch.to_pylist()]
    assert statuses.count("gap") > 10


def test_the_kernel_has_sent_fragments() -> None:
    tracker = Tracker()
    tracker.feed((HERE / "tunnels" / "vxlan" / "fragments.pcap").read_bytes(), final=True)
    assert tracker._counts[Count.PART] > 80
    assert tracker._counts[Count.FRAGMENT] == 0
