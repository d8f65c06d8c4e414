"""Tallies as columns say what counting row by row says, however rows are cut into batches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.report import tallies
from kwire.report.tallies import MOST_EVIDENCE, Rows, Tallies, WithEarlier, among, numbers
from kwire.tables.columns import with_dictionaries

_TIMES = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("capture", pa.string()), ("connection", pa.int64()), ("frame", pa.int64()), ("timestamp", _TIMES),
        ("client", pa.string()), ("partition", pa.int32()), ("amount", pa.int64()),
    ]
)  # fmt: skip
Row = dict[str, Any]


def rows(count: int, seed: int, *, clients: int = 20, seconds: int = 100) -> list[Row]:
    some = random.Random(seed)
    return [
        {
            "capture": some.choice(("a", "b")),
            "connection": some.randrange(9),
            "frame": frame,
            "timestamp": some.randrange(seconds * 1_000_000),
            "client": some.choice((None, "", *(f"c{k}" for k in range(clients)))),
            "partition": some.choice((None, -1, 0, 1 << 30)),
            "amount": some.randrange(1000),
        }
        for frame in range(count)
    ]


def table(some: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(some, schema=_SCHEMA)


def expected(some: list[Row], *, largest: bool = False) -> dict[tuple[Any, ...], Row]:
    made: dict[tuple[Any, ...], Row] = {}
    for row in some:
        one = made.setdefault(
            (row["client"], row["partition"]), {"count": 0, "amounts": [], "times": [], "where": [], "steps": {}}
        )
        one["count"] += 1
        one["amounts"].append(row["amount"])
        one["times"].append(row["timestamp"])
        one["where"].append((row["capture"], row["connection"], row["frame"]))
        step = row["timestamp"] // 10_000_000
        one["steps"][step] = one["steps"].get(step, 0) + 1
    for one in made.values():
        one["amount"] = max(one["amounts"]) if largest else sum(one["amounts"])
    return made


@pytest.mark.parametrize("waiting", [1, 100, 1 << 14])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_they_say_what_counting_says(monkeypatch: pytest.MonkeyPatch, waiting: int, each: bool, largest: bool) -> None:
    monkeypatch.setattr(tallies, "_WAITING", waiting)
    some = rows(3000, 1)
    made = Tallies("client", "partition", largest=largest)
    cut = random.Random(2)
    first = 0
    while first < len(some):
        last = first + cut.choice((1, 7, 200))
        part = Rows(table(some[first:last]))
        at = np.arange(part.table.num_rows)
        made.add(part, at, amount=part.values("amount"), each=each)
        first = last
    wanted = expected(some, largest=largest)
    found = dict(made.items())
    assert list(found) == list(wanted)
    totals = made.totals()
    assert totals.count.tolist() == [one["count"] for one in wanted.values()]
    for key, one in wanted.items():
        mine = found[key]
        assert (mine.count, mine.amount, mine.steps) == (one["count"], one["amount"], one["steps"])
        assert (mine.first, mine.last) == (min(one["times"]), max(one["times"]))
        assert set(mine.where) <= set(one["where"])
        assert len(mine.where) == len(set(mine.where)) == min(MOST_EVIDENCE, one["count"])
    some_keys = totals.count > 30
    assert [key for key, _ in made.items(some_keys)] == [key for key, one in wanted.items() if one["count"] > 30]


def test_rows_of_tables_of_which_one_has_no_nulls_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_WAITING", 1)
    some = [row for row in rows(300, 3) if row["client"] is not None]
    strict = pa.schema([one.with_nullable(one.name != "client") for one in _SCHEMA])
    made = Tallies("client", "partition")
    for k, schema in enumerate((_SCHEMA, strict, with_dictionaries(strict))):
        part = Rows(table(some[k::3]).cast(schema))
        made.add(part, np.arange(part.table.num_rows))
    wanted = expected(some)
    found = dict(made.items())
    assert {key: one.count for key, one in found.items()} == {key: one["count"] for key, one in wanted.items()}


def test_a_part_of_any_table_has_columns_that_may_have_nulls() -> None:
    some = [row for row in rows(20, 4) if row["client"] is not None]
    strict = pa.schema([one.with_nullable(one.name != "client") for one in _SCHEMA])
    whole = Rows(table(some).cast(strict))
    for at in (np.arange(whole.table.num_rows), np.arange(2)):
        assert all(one.nullable for one in whole.part(("client", "partition"), at).schema)


def test_rows_are_added_up_by_columns_and_integers() -> None:
    some = rows(500, 8)
    coded = table(some).cast(with_dictionaries(_SCHEMA))
    parity = np.arange(500) % 2
    for part in (Rows(table(some)), Rows(coded)):
        at = part.where(capture="a")
        made = list(
            part.totals(at, ("client", parity[at]), part.values("amount")[at], at.astype(float), between=part.times[at])
        )
        wanted: dict[Any, list[Any]] = {}
        for k, row in enumerate(some):
            if row["capture"] == "a":
                one = wanted.setdefault((row["client"], k % 2), [0, 0, 0.0, row["timestamp"], row["timestamp"]])
                one[0] += 1
                one[1] += row["amount"]
                one[2] = max(one[2], k)
                one[3:] = [min(one[3], row["timestamp"]), max(one[4], row["timestamp"])]
        assert made == [(*key, *one) for key, one in wanted.items()]


def test_what_is_told_of_a_batch_counts_as_often_as_it_says() -> None:
    part = Rows(table(rows(50, 3, clients=0)))
    made = Tallies("client")
    made.add(part, np.arange(50), count=np.full(50, 3))
    assert made.totals().count.sum() == 150


def test_memory_grows_with_keys_and_not_with_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_WAITING", 64)
    made = Tallies("client")
    for seed in range(200):
        part = Rows(table(rows(100, seed, clients=3, seconds=1)))
        made.add(part, np.arange(100), each=True)
    # Five clients with ten pieces of evidence each, one row of what is behind them, and what waits.
    assert sum(map(len, made._pieces)) <= 5 * (MOST_EVIDENCE + 1) + 64 + 100
    assert made.totals().count.sum() == 20_000


def test_of_very_long_ones_the_last_steps_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_WAITING", 64)
    monkeypatch.setattr(tallies, "_MOST_STEPS", 20)
    made = Tallies("client")
    for k in range(300):
        row = rows(1, 4)[0] | {"client": "c", "timestamp": k * 10_000_000}
        made.add(Rows(table([row])), np.arange(1))
    ((_, one),) = made.items()
    assert one.count == 300
    # Those that are evidence keep theirs.
    assert len(one.steps) <= 20 + MOST_EVIDENCE + 64
    assert max(one.steps) == 299
    assert one.busiest == 6


@pytest.mark.parametrize("coded", [False, True])
def test_rows_behind_others_are_those_of_both(coded: bool) -> None:
    some, more = rows(9, 5), rows(200, 6)
    own = table(more).cast(with_dictionaries(_SCHEMA) if coded else _SCHEMA)
    both = WithEarlier(Rows(table(some)), Rows(own), _SCHEMA.names)
    whole = Rows(table(some + more))
    at = np.arange(209)
    for name in ("capture", "client", "partition", "connection"):
        assert both.numbers((name,), at).tolist() == whole.numbers((name,), at).tolist()
    assert (
        both.numbers(("capture", "client", "partition"), at).tolist()
        == numbers(whole.table, ("capture", "client", "partition")).tolist()
    )
    assert (
        both.where(capture="a", client=("c1", "c2")).tolist() == whole.where(capture="a", client=("c1", "c2")).tolist()
    )
    assert both.valid("client", "partition").tolist() == whole.valid("client", "partition").tolist()
    assert both.values("partition", -7).tolist() == whole.values("partition", -7).tolist()


@pytest.mark.parametrize(
    "texts",
    [
        ["x"] * 9,
        ["x"] * 8 + ["y"],
        ["x", "yy", "x"],
        ["", ""],
        [None, None],
        ["x", None],
        [],
        ["ab", "cd", "ab"],
        ["x"] * 300,
        ["x"] * 299 + ["y", "x"],
        [""] * 300,
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_are_the_same_where_texts_are(texts: list[str | None], first: int) -> None:
    made = pa.table({"text": pa.chunked_array([pa.array(texts, pa.string())])}).slice(first)
    order = list(dict.fromkeys(texts[first:]))
    assert numbers(made, ("text",)).tolist() == [order.index(one) for one in texts[first:]]


def test_keys_among_others() -> None:
    keys = pa.table({"a": ["x", None, "y", "z"], "b": pa.array([1, 2, None, 1], pa.int32())})
    others = pa.table({"a": ["z", "y", None], "b": pa.array([1, None, 3], pa.int32())})
    assert among(keys, others).tolist() == [-1, -1, 1, 0]
    assert among(keys, others.slice(0, 0)).tolist() == [-1] * 4
    assert not len(among(keys.slice(0, 0), others))


def test_of_nothing_there_is_nothing() -> None:
    made = Tallies("client")
    made.add(Rows(table([])), np.arange(0))
    assert not list(made.items())
    assert not len(made.totals().count)
