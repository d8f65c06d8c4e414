"""TLS connections that are cut, damaged and interrupted anywhere: what is read is what was said, and nothing else."""

from __future__ import annotations

import functools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tls_connections import Talk, between, heard, made13, vector

from kwire.errors import CaptureError
from kwire.tls import Decryptor, KeyLog

LINES = [(k % 2, b"%03d." % k * (1 + k * k % 40)) for k in range(24)]
NAMES = ("tls12-cbc-sha384", "tls12-renegotiation", "tls13-early-data", "tls13-key-update", "tls12-rsa-aes128-gcm")


@functools.cache
def talks() -> list[Talk]:
    """Connections of several kinds."""
    recorded = [vector(name) for name in NAMES]
    recorded = [Talk(one.wire, one.keys, heard(one).said) for one in recorded]
    return [made13(LINES, updates=[5, 12]), made13(LINES, 0x1303, padding=3), between(LINES), *recorded]


TALKS = st.builds(lambda k: talks()[k], st.integers(0, 3 + len(NAMES) - 1))


def is_part_of(read: list[bytes], said: bytes) -> bool:
    """Whether the records, one after the other, stand in what was said, perhaps with something left out between."""
    at = 0
    for record in read:
        at = said.find(record, at)
        if at < 0:
            return False
        at += len(record)
    return True


def records(found: Any, side: int) -> list[bytes]:
    read = []
    for plain in found.plains:
        if plain.side == side:
            at = 0
            for length in plain.lengths:
                read.append(plain.data[at : at + length])
                at += length
    return read


@given(TALKS, st.integers(1, 3000))
def test_pieces_of_any_size_give_the_same(talk: Talk, size: int) -> None:
    found = heard(talk, size=size)
    assert found.said == talk.said
    assert found.lost == (0, 0)


@given(TALKS, st.data())
def test_damage_invents_nothing(talk: Talk, data: st.DataObject) -> None:
    wire = [(side, bytearray(one)) for side, one in talk.wire]
    for _ in range(data.draw(st.integers(1, 4))):
        side, one = wire[data.draw(st.integers(0, len(wire) - 1))]
        kind = data.draw(st.sampled_from(["change", "cut", "insert", "repeat"]))
        at = data.draw(st.integers(0, len(one)))
        if kind == "change" and at < len(one):
            one[at] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            del one[at : at + data.draw(st.integers(1, 40))]
        elif kind == "insert":
            one[at:at] = data.draw(st.binary(max_size=40))
        else:
            one[at:at] = one[: data.draw(st.integers(0, len(one)))]
    found = heard(Talk([(side, bytes(one)) for side, one in wire], talk.keys))
    for side in (0, 1):
        assert is_part_of(records(found, side), talk.said[side])


@given(TALKS, st.data())
def test_holes_invent_nothing(talk: Talk, data: st.DataObject) -> None:
    lengths = [sum(len(one) for side, one in talk.wire if side == which) for which in (0, 1)]
    holes = []
    for _ in range(data.draw(st.integers(1, 3))):
        side = data.draw(st.integers(0, 1))
        begin = data.draw(st.integers(0, lengths[side]))
        holes.append((side, begin, begin + data.draw(st.integers(1, 300))))
    found = heard(
        talk,
        size=16,
        without=lambda side, at: any(which == side and begin <= at < end for which, begin, end in holes),
    )
    for side in (0, 1):
        assert is_part_of(records(found, side), talk.said[side])


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=200)), max_size=20), st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(wire: list[tuple[int, bytes]], keys: bytes) -> None:
    found = heard(Talk(wire, keys))
    assert found.plains == []
    assert found.decryptor.why


@given(TALKS, st.integers(1, 3000), st.data())
def test_a_state_that_was_changed_is_read_or_refused(talk: Talk, size: int, data: st.DataObject) -> None:
    keys = KeyLog(talk.keys)
    decryptor = Decryptor(keys)
    at = [0, 0]
    stop = data.draw(st.integers(0, len(talk.wire)))
    for side, one in talk.wire[:stop]:
        decryptor.feed(side, one, at[side])
        at[side] += len(one)
    state = json.loads(json.dumps(decryptor.state()))
    places: list[Any] = [state, state["agreed"], *state["ways"]]
    where = data.draw(st.sampled_from(places))
    name = data.draw(st.sampled_from(sorted(where)))
    where[name] = data.draw(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.lists(st.text(max_size=4)))
    )
    try:
        again = Decryptor.restored(state, keys)
    except CaptureError:
        return
    read: list[list[bytes]] = [[], []]
    for side, one in talk.wire[stop:]:
        for plain in again.feed(side, one, at[side]):
            read[plain.side].append(plain.data)
        at[side] += len(one)
    again.finish()
    for side in (0, 1):
        assert is_part_of(read[side], talk.said[side])
