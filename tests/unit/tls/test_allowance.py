"""What TLS connections may ask for beside reading each record once: paid for by bytes, for the whole capture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from made_captures import Row, read
from packets import ACK, Connection, Packet, metadata, metadata_answer, pcap, sized
from tls_connections import End, Talk, heard, hello13, made13, message

from kwire import capture
from kwire.tls import Decryptor, KeyLog, Verdict, handshake, protection
from kwire.tls.allowance import GENERATION, GRANT

KEYS = made13([]).keys
BEGIN = 1_700_000_000_000_000_000
LEAST = 8
"""What an attempt costs at least."""


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How many records are tried, and how many keys are derived."""
    counts = {"tried": 0, "keys": 0, "generations": 0}
    opening, deriving, following = protection._Tls13.open, handshake.opener13, handshake.next_generation

    def open_(self: Any, head: bytes, body: Any, number: int) -> bytes | None:
        counts["tried"] += 1
        return opening(self, head, body, number)

    def derive(*args: Any) -> Any:
        counts["keys"] += 1
        return deriving(*args)

    def follow(*args: Any) -> Any:
        counts["generations"] += 1
        return following(*args)

    with monkeypatch.context() as patch:
        patch.setattr(protection._Tls13, "open", open_)
        patch.setattr(handshake, "opener13", derive)
        patch.setattr(handshake, "next_generation", follow)
        yield counts


def with_a_hole(number: int) -> list[Packet]:
    """A connection of 370 bytes: behind the hellos there is a hole, and behind it a record that no key opens."""
    one = Connection(client=("10.0.0.9", 20_000 + number))
    first, second = hello13(0x1301)
    one.open().send_raw(first).answer_raw(second)
    one._next[1] += 300_000
    return one.answer_raw(b"\x17\x03\x03\x00\x20" + bytes(32)).packets


def test_holes_of_many_connections_are_tried_within_one_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pcap([packet for number in range(60) for packet in with_a_hole(number)])
    with counted(monkeypatch) as counts:
        rows = read(data, "connections", keylog=KeyLog(KEYS))
    assert len(rows) == 60
    assert GRANT / LEAST / 2 < counts["tried"] < (GRANT + len(data)) / LEAST


def _by(number: str, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row[number]))


def test_who_tries_first_does_not_depend_on_windows() -> None:
    """All connections spend one allowance, so the order in which they do is that of packets."""
    each = [with_a_hole(number) for number in range(40)]
    packets = [packet for step in range(len(each[0])) for one in each for packet in one[step : step + 1]]
    # One that can be read with three thousand attempts, if the others leave it so many: they have theirs later.
    honest = Connection(client=("10.0.0.8", 9)).open()
    for side, wire in made13([(0, sized(metadata(1))), (1, sized(metadata_answer(1)))]).wire[:6]:
        (honest.send_raw if side == 0 else honest.answer_raw)(wire)
    honest._next[0] += 300_000
    behind = End(0x1301, bytes((0, 2)) * 16, 3000).sealed(23, sized(metadata(3000)))
    honest.send_raw(behind)
    for _ in range(40):
        # The hole is given up when what is behind it has been acknowledged for 200 ms.
        honest._add(1, b"", ACK)
    packets[60:60] = honest.packets
    packets = [replace(packet, time=BEGIN + k * 10_000_000) for k, packet in enumerate(packets)]
    data = pcap(packets)
    for table, number in (("frames", "frame"), ("connections", "connection")):
        wanted = _by(number, read(data, table, keylog=KeyLog(KEYS)))
        assert table == "connections" or 3000 in [row["correlation_id"] for row in wanted]
        for window in (200, 1000, 5000):
            assert _by(number, read(data, table, keylog=KeyLog(KEYS), window=window)) == wanted


def test_a_connection_earns_what_its_own_holes_need() -> None:
    """After others have spent all there was, an honest one is read behind its hole as it is without them."""
    lines = [(side, sized(made(n))) for n in range(1, 41) for side, made in ((0, metadata), (1, metadata_answer))]
    talk = made13(lines)
    honest = Connection(client=("10.0.0.8", 9), time=1_800_000_000_000_000_000).open()
    for side, wire in talk.wire:
        (honest.send_raw if side == 0 else honest.answer_raw)(wire)
    del honest.packets[-20]
    bad = [packet for number in range(30) for packet in with_a_hole(number)]
    alone = read(pcap(honest.packets), keylog=KeyLog(KEYS))
    behind = [row for row in read(pcap(bad + honest.packets), keylog=KeyLog(KEYS)) if row["client_port"] == 9]
    assert [row["status"] for row in behind] == [row["status"] for row in alone]
    assert sum(row["status"] == "ok" for row in alone) == 78


def test_many_key_updates_in_a_record_are_not_all_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = made13([(0, b"x")])
    end = End(0x1301, b"\0\2" * 16, 1)
    packed = end.sealed(22, message(24, b"\0") * 3000)
    with counted(monkeypatch) as counts:
        found = heard(Talk([*talk.wire[:5], (0, packed)], talk.keys))
    assert counts["generations"] + counts["keys"] < 2 * (GRANT + 2000 + len(packed)) / (32 + GENERATION)
    assert found.decryptor.why == "as much was tried in this capture as its bytes allow"


def test_records_that_are_passed_over_cost_what_they_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of no bytes, where some may be due that have no secret: each would be tried with every later key."""
    keys = b"\n".join(line for line in KEYS.splitlines() if b"SERVER_HANDSHAKE" not in line)
    talk = made13([])
    junk = b"\x17\x03\x03\x00\x00" * 40_000
    with counted(monkeypatch) as counts:
        found = heard(Talk([talk.wire[0], (1, hello13(0x1301)[1] + junk)], keys))
    assert counts["keys"] < 10
    assert counts["tried"] < 2 * (GRANT + len(junk)) / LEAST
    assert found.plains == []


def test_generations_of_a_saved_state_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    talk = made13([(0, b"x" * 50), (1, b"y" * 50)])
    decryptor = Decryptor(KeyLog(talk.keys))
    at = [0, 0]
    for side, data in talk.wire:
        decryptor.feed(side, data, at[side])
        at[side] += len(data)
    state = decryptor.state()
    for way in state["ways"]:
        way["generation"] = 1 << 16
    with counted(monkeypatch) as counts:
        again = Decryptor.restored(state, KeyLog(talk.keys))
    assert counts["generations"] <= GRANT / GENERATION
    again.feed(0, b"\x17\x03\x03\x00\x20" + bytes(32), at[0])
    assert again.why == "as much was tried in this capture as its bytes allow"


@pytest.mark.wide
def test_states_of_many_connections_are_all_restored() -> None:
    """A state is bytes that were read: what it needs to go on is never refused to it."""
    from kwire.capture.tracker import Tracker

    talk = made13([(0, sized(metadata(1))), (1, sized(metadata_answer(1))), (0, sized(metadata(2)))])
    packets, rest = [], []
    for number in range(1200):
        one = Connection(client=("10.0.0.9", 20_000 + number)).open()
        for side, data in talk.wire[:6]:
            (one.send_raw if side == 0 else one.answer_raw)(data)
        packets += one.packets
        one.packets = []
        rest += one.send_raw(talk.wire[6][1]).packets
    first, second = Tracker(keys=KeyLog(talk.keys)), Tracker(keys=KeyLog(talk.keys))
    data, more = pcap(packets), pcap(rest)
    assert len(first.feed(data)) == 2400
    second.restore(first.save())
    assert len([row for row in second.feed(more[24:]) if row.correlation_id == 2]) == 1200


def test_without_a_secret_nothing_is_paid() -> None:
    found = heard(made13([(0, b"x")]), keys=KeyLog())
    assert found.decryptor.verdict is Verdict.NO_KEY
    assert found.decryptor.why == Verdict.NO_KEY.value


def test_frames_are_those_of_the_same_capture_read_alone() -> None:
    """The allowance is per capture: a second one begins with its own."""
    data = pcap([packet for number in range(30) for packet in with_a_hole(number)])
    once = [batch.to_pylist() for batch in capture.read(io.BytesIO(data), "frames", keylog=KeyLog(KEYS))]
    assert once == [batch.to_pylist() for batch in capture.read(io.BytesIO(data), "frames", keylog=KeyLog(KEYS))]
