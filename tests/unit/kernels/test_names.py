"""Byte strings as numbers, in tables that grow, on both engines."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hash_clusters import MOST, chosen, longest_run, old_hash_of_names
from packets import buffer

from kwire.kernels.engine import Engine
from kwire.kernels.names import LONGEST_NAME, NameTable, has_room, intern
from kwire.kernels.numbers import SLACK


def numbers(engine: Engine, table: NameTable, names: list[bytes | None]) -> list[int]:
    """The numbers of some names that stand in one array; None for null."""
    data = b"".join(name or b"" for name in names)
    lengths = np.array([-1 if name is None else len(name) for name in names], np.int64)
    offsets = np.concatenate(([0], np.cumsum(np.maximum(lengths, 0))))[:-1]
    return [int(one) for one in table.numbers(buffer(data + bytes(SLACK)), offsets, lengths, engine)]


def test_equal_names_have_the_same_number_and_others_the_next(engine: Engine) -> None:
    table = NameTable()
    assert numbers(engine, table, [b"a", b"b", b"a", None, b"ab", b"b"]) == [0, 1, 0, -1, 2, 1]
    assert table.add(b"ab", engine) == 2
    assert table.add(b"c", engine) == 3
    assert table.values() == [b"a", b"b", b"ab", b"c"]
    assert len(table) == 4


def test_texts_of_rows_are_copied_and_stand_elsewhere_then(engine: Engine) -> None:
    rng = random.Random(1)
    texts = [rng.randbytes(rng.randrange(40)) for _ in range(300)]
    data = b"".join(texts)
    rows = np.full((300, 5), 7, np.int64)
    ends = np.cumsum([len(one) for one in texts])
    for column, order in ((1, range(300)), (3, reversed(range(300)))):
        for row, one in zip(rows, order, strict=True):
            row[column : column + 2] = ends[one] - len(texts[one]), len(texts[one]) or -1
    table, read = NameTable(), rows.copy()
    table.copy(buffer(data + bytes(SLACK)), rows, np.array([1, 3]), engine)
    assert set(table.values()) == set(texts) - {b""}
    assert (rows[:, [0, 2, 4]] == read[:, [0, 2, 4]]).all()
    for column in (1, 3):
        found = [table.pool[at : at + size].tobytes() for at, size in rows[:, column : column + 2].tolist() if size > 0]
        assert found == [data[at : at + size] for at, size in read[:, column : column + 2].tolist() if size > 0]
        assert (rows[rows[:, 2] < 0, 1] == read[rows[:, 2] < 0, 1]).all()


def test_one_place_has_one_number_and_places_that_overlap_have_their_own(engine: Engine) -> None:
    data = buffer(b"abab" + bytes(SLACK))
    places = [(0, 2), (0, 2), (0, 1), (0, 1), (0, -1), (0, -1), (1, 1), (2, 1), (2, 1), (2, 2), (0, 2)]
    offsets, lengths = (np.array([one[k] for one in places], np.int64) for k in (0, 1))
    table = NameTable()
    assert table.numbers(data, offsets, lengths, engine).tolist() == [0, 0, 1, 1, -1, -1, 2, 1, 1, 0, 0]
    assert table.values() == [b"ab", b"a", b"b"]


def test_an_empty_name_is_a_name_and_null_is_none(engine: Engine) -> None:
    table = NameTable()
    assert numbers(engine, table, [b"", None, b"\0", b""]) == [0, -1, 1, 0]
    assert table.add(b"", engine) == 0
    assert table.values() == [b"", b"\0"]


def test_names_pool_and_lookup_grow_as_they_have_to(engine: Engine) -> None:
    chance = random.Random(1)
    names = [b"%d " % k + chance.randbytes(chance.randint(0, 60)) for k in range(1000)]
    table = NameTable()
    before = [len(table.names), len(table.pool), len(table.lookup)]
    first = numbers(engine, table, [name for name in names for _ in range(2)])
    assert first == [k for k in range(1000) for _ in range(2)]
    now = [len(table.names), len(table.pool), len(table.lookup)]
    assert all(one > other for one, other in zip(now, before, strict=True))
    # At most half full, and a power of two: otherwise names would be searched for ever, or not found.
    assert len(table.lookup) >= 2 * len(table)
    assert len(table.lookup) & (len(table.lookup) - 1) == 0
    assert table.values() == names
    chance.shuffle(names)
    again = numbers(engine, table, list(names))
    assert [table.values()[number] for number in again] == names
    assert len(table) == 1000


def test_the_longest_names_fit_and_differ_in_their_last_byte(engine: Engine) -> None:
    names: list[bytes | None] = [b"x" * (LONGEST_NAME - 1) + bytes([k]) for k in range(5)]
    table = NameTable()
    assert numbers(engine, table, names * 2) == [0, 1, 2, 3, 4] * 2
    assert table.values() == names


def test_names_that_collide_are_told_apart(engine: Engine) -> None:
    def small() -> NameTable:
        table = NameTable()
        table.lookup = np.full(128, -1, np.int64)
        return table

    names = [b"name %d" % k for k in range(60)]
    places = []
    for name in names:
        alone = small()
        alone.add(name, engine)
        places.append(int(np.flatnonzero(alone.lookup >= 0)[0]))
    assert len(set(places)) < len(names), "some of them belong at the same place"
    together = small()
    for _ in range(2):
        assert [together.add(name, engine) for name in names] == list(range(60))
    assert len(together.lookup) == 128
    assert sorted(together.lookup[together.lookup >= 0].tolist()) == list(range(60))


def names_that_collided(count: int) -> list[bytes | None]:
    """Names that all belong into 1024 places of 65536 without a key."""
    made = np.random.default_rng(1).integers(97, 123, (70 * count, 8))
    return [bytes(row) for row in made[chosen(old_hash_of_names(made), count, 1 << 16)].astype(np.uint8)]


@pytest.mark.wide
def test_names_that_are_chosen_to_collide_do_not(engine: Engine) -> None:
    names = list(dict.fromkeys(names_that_collided(20_000)))
    table = NameTable()
    assert numbers(engine, table, names * 2) == list(range(len(names))) * 2
    assert len(table.lookup) == 1 << 16
    assert longest_run(table.lookup) < MOST


def test_numbers_of_names_do_not_depend_on_the_key(engine: Engine) -> None:
    chance = random.Random(5)
    names: list[bytes | None] = [chance.randbytes(chance.randrange(20)) for _ in range(2_000)]
    found, places = [], []
    for key in ((0, 0), (1, -1), (-(1 << 63), 12345)):
        table = NameTable()
        table.used["key_a"], table.used["key_b"] = key
        found.append((numbers(engine, table, names), table.values()))
        places.append(table.lookup.tolist())
    assert found[0] == found[1] == found[2]
    assert places[0] != places[1] != places[2] != places[0]
    one, other = NameTable(), NameTable()
    assert one.used[["key_a", "key_b"]].tolist() != other.used[["key_a", "key_b"]].tolist()


def test_there_is_room_until_one_of_the_tables_is_full(engine: Engine) -> None:
    def fits(table: NameTable, length: int) -> bool:
        return bool(engine(has_room)(table.used[0], table.names, table.pool, table.lookup, length))

    table = NameTable()
    assert fits(table, len(table.pool))
    assert not fits(table, len(table.pool) + 1)
    table.used["count"] = len(table.names)
    assert not fits(table, 1)
    table.make_room(1, engine)
    assert fits(table, 1)
    table = NameTable()
    table.lookup = np.full(2, -1, np.int64)
    assert fits(table, 1)
    table.add(b"a", engine)
    assert not fits(table, 1)


def test_a_table_that_grew_keeps_the_numbers_of_its_names(engine: Engine) -> None:
    table = NameTable()
    data = buffer(b"abcdef" + bytes(SLACK))
    for k in range(6):
        assert engine(intern)(data, k, 1, table.names, table.pool, table.lookup, table.used[0]) == k
    for length in (1, 10_000, 1_000_000):
        table.make_room(length, engine)
        assert engine(has_room)(table.used[0], table.names, table.pool, table.lookup, length)
        assert numbers(engine, table, [b"f", b"a", b"c"]) == [5, 0, 2]


def test_names_that_come_again_are_told_from_others_of_their_length_and_last_byte(engine: Engine) -> None:
    names: list[bytes | None] = [b"orders-1", b"alerts-1", b"orders-1", b"s" * 9, b"orders-1", b"alerts-1", b"", b"1"]
    table = NameTable()
    for _ in range(2):
        assert numbers(engine, table, names) == [0, 1, 0, 2, 0, 1, 3, 4]
    longer: list[bytes | None] = [b"a longer name, of 24 bys", b"a longer name: of 24 bys", b"a longer name, of 24 bys"]
    assert numbers(engine, table, longer) == [5, 6, 5]
