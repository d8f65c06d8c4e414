"""Captures of TLS whose packets are lost, doubled, moved, cut and damaged: no row that was not said, in any window."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from made_captures import read
from packets import Connection, Packet, metadata, metadata_answer, pcap, sized
from tls_connections import made13

from kwire.errors import CaptureError
from kwire.tls import KeyLog

COUNT = 12
LINES = [(side, sized(made(n))) for n in range(1, COUNT + 1) for side, made in ((0, metadata), (1, metadata_answer))]
TALK = made13(LINES, updates=[9, 14], certificate=2000)
SAID = {(way, n) for way in ("request", "response") for n in range(1, COUNT + 1)}


def packets() -> list[Packet]:
    connection = Connection(mss=700).open()
    for side, data in TALK.wire:
        (connection.send_raw if side == 0 else connection.answer_raw)(data)
    return connection.close().packets


PACKETS = packets()
WINDOWS = st.one_of(st.none(), st.integers(50, 4000))


def rows(data: bytes, window: int | None) -> list[dict[str, Any]]:
    try:
        return read(data, keylog=KeyLog(TALK.keys), window=window)
    except CaptureError:
        return []


def kafka(found: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["direction"], row["correlation_id"]) for row in found if row["status"] == "ok"]


def test_without_damage_all_is_there() -> None:
    assert set(kafka(rows(pcap(PACKETS), None))) == SAID


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["lose", "double", "move"]), st.integers(0, 200)), max_size=8), WINDOWS)
def test_packets_that_are_lost_doubled_or_moved_invent_nothing(
    changes: list[tuple[str, int]], window: int | None
) -> None:
    changed = list(PACKETS)
    for kind, k in changes:
        k %= len(changed)
        if kind == "lose":
            del changed[k]
        elif kind == "double":
            changed.insert(min(len(changed), k + 3), changed[k])
        else:
            changed.insert(min(len(changed), k + 2), changed.pop(k))
    found = kafka(rows(pcap(changed), window))
    assert len(found) == len(set(found))
    assert set(found) <= SAID


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(24, 1 << 14), st.integers(1, 255)), max_size=6), WINDOWS)
def test_bytes_that_are_changed_give_rows_or_an_error(changes: list[tuple[int, int]], window: int | None) -> None:
    data = bytearray(pcap(PACKETS))
    for at, mask in changes:
        data[at % (len(data) - 24) + 24] ^= mask
    found = [row for row in rows(bytes(data), window) if row["status"] == "ok"]
    assert {(row["direction"], row["correlation_id"]) for row in found} <= SAID


@settings(deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=4), st.integers(60, 500), WINDOWS)
def test_packets_that_are_cut_invent_nothing(which: list[int], snaplen: int, window: int | None) -> None:
    cut = pcap(PACKETS, snaplen=snaplen)
    found = kafka(rows(cut, window))
    assert set(found) <= SAID
