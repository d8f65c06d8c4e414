"""Columns of frames in one pass, against what numpy makes of the same rows column by column."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kwire.kernels.columns import Seen, Stat, begin_alike, columns_of, frame_columns, spread_texts
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import ABSENT, CONNECTION, FRAME
from kwire.kernels.numbers import SLACK

COUNT, SLOTS, CLIENTS, NAMED = 203, 5, 4, 90


def rows(some: np.random.Generator) -> np.ndarray:
    made = np.zeros(COUNT, FRAME)
    made["number"] = np.arange(1000, 1000 + COUNT)
    made["slot"], made["client_side"] = some.integers(0, SLOTS, COUNT), some.integers(0, 2, COUNT)
    made["reason"] = some.integers(0, 3, COUNT)
    made["response"], made["client"] = some.integers(0, 2, COUNT), some.integers(-1, CLIENTS, COUNT)
    made["time"], made["size"] = some.integers(-(1 << 50), 1 << 50, COUNT), some.integers(0, 1 << 40, COUNT)
    for name, high in (("api", NAMED), ("version", 20), ("id", 1 << 31), ("latency", 1 << 40)):
        made[name] = np.where(some.integers(0, 9, COUNT) == 0, ABSENT, some.integers(-5, high, COUNT))
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("chosen", [False, True])
def test_each_column_is_what_numpy_makes_of_the_rows(engine: Engine, seed: int, chosen: bool) -> None:
    some = np.random.default_rng(seed)
    table = rows(some)
    connections = np.zeros(SLOTS, CONNECTION)
    for name in ("number", "a_port", "b_port"):
        connections[name] = some.integers(0, 65536, SLOTS)
    has_name = np.ones(NAMED, np.uint8)
    has_name[7] = 0
    seen = Seen(np.full(2 * SLOTS, -1, np.int32), np.full(CLIENTS + 1, -1, np.int32))
    which = some.integers(0, COUNT, 77) if chosen else np.zeros(0, np.int64)
    picked = table[which] if chosen else table[10:110]
    made = columns_of(len(picked))
    for _ in range(2):  # the lists of what was met are as before
        engine(frame_columns)(table, 10, which, connections, has_name, seen, made)
    of = connections[picked["slot"]]
    b_asks = picked["client_side"] == 1
    stats = made.stats
    assert made.number.tolist() == picked["number"].tolist()
    assert made.connection.tolist() == of["number"].tolist()
    assert made.client_port.tolist() == np.where(b_asks, of["b_port"], of["a_port"]).tolist()
    assert made.broker_port.tolist() == np.where(b_asks, of["a_port"], of["b_port"]).tolist()
    assert made.micros.tolist() == (picked["time"] // 1000).tolist()
    assert made.response.tolist() == picked["response"].tolist()
    assert stats[Stat.RESPONSES] == picked["response"].sum()
    assert made.size.tolist() == picked["size"].tolist()
    ends, clients = made.ends[: stats[Stat.ENDS]], made.clients[: stats[Stat.CLIENTS]]
    assert ends[made.end].tolist() == (2 * picked["slot"] + picked["client_side"]).tolist()
    assert clients[made.client].tolist() == picked["client"].tolist()
    assert len(set(ends.tolist())) == len(ends)
    assert len(set(clients.tolist())) == len(clients)
    for name, column, counted in (
        ("api", made.api, Stat.NO_API),
        ("version", made.version, Stat.NO_VERSION),
        ("id", made.id, Stat.NO_ID),
    ):
        absent = picked[name] == ABSENT
        assert stats[counted] == absent.sum()
        assert column.tolist() == np.where(absent, 0, picked[name]).tolist()
    assert made.named.tolist() == made.api.tolist()
    api = picked["api"]
    assert stats[Stat.NO_NAME] == ((api < 0) | (api == 7)).sum()
    timed = picked["latency"] != ABSENT
    assert stats[Stat.NO_LATENCY] == (~timed).sum()
    assert np.unpackbits(made.timed, count=len(picked), bitorder="little").astype(bool).tolist() == timed.tolist()
    assert made.millis[timed].tolist() == (np.maximum(picked["latency"], 0)[timed] / 1e6).tolist()
    assert stats[Stat.MIXED] != 0
    assert stats[Stat.WRONG] == (picked["reason"] != 0).sum()
    assert stats[Stat.ASKING] == (api == 18).sum()


def test_whether_all_are_of_one_api(engine: Engine) -> None:
    table = np.zeros(3, FRAME)
    table["api"] = 18
    seen = Seen(np.full(2, -1, np.int32), np.full(1, -1, np.int32))
    table["client"] = -1
    for api, mixed in ((18, False), (3, True)):
        table["api"][1] = api
        made = columns_of(3)
        engine(frame_columns)(
            table, 0, np.zeros(0, np.int64), np.zeros(1, CONNECTION), np.ones(20, np.uint8), seen, made
        )
        assert bool(made.stats[Stat.MIXED]) is mixed


def test_texts_are_spread_over_rows(engine: Engine) -> None:
    words = ["", "request", "x" * 40, "ü"]
    raw = [word.encode() for word in words]
    texts = np.frombuffer(b"".join(raw) + bytes(SLACK), np.uint8)
    ends = np.cumsum([0, *map(len, raw)]).astype(np.int32)
    numbers = np.array([1, 3, 0, 2, 1, 1], np.int32)
    offsets = np.empty(7, np.int32)
    total = sum(len(raw[one]) for one in numbers)
    out = np.empty(total + SLACK, np.uint8)
    engine(spread_texts)(numbers, ends, texts, offsets, out)
    found = [out[begin:end].tobytes().decode() for begin, end in itertools.pairwise(offsets)]
    assert found == [words[one] for one in numbers]
    with pytest.raises(ValueError, match="outside"):
        engine(spread_texts)(numbers, ends, texts, offsets, out[:-1])


@pytest.mark.parametrize(
    ("values", "alike"),
    [
        ([b"headA", b"headBcd", b"head"], True),
        ([b"head", b"heap"], False),
        ([b"heap", b"head", b"head"], False),
        ([b"head", b"hea", b"head"], False),
        ([b"hea", b"head"], False),
        ([b"head"], True),
        ([b"", b""], False),
    ],
)
def test_values_that_begin_alike(values: list[bytes], alike: bool, engine: Engine) -> None:
    data = np.frombuffer(b"before" + b"".join(values) + b"d" * 8, np.uint8).copy()
    ends = np.cumsum([6, *map(len, values)])
    assert bool(engine(begin_alike)(data, ends, 4)) is alike


@pytest.mark.parametrize("ends", [[0, 4, 8], [4, 8, 12], [-1, 4], [-20, -10], [2, -9, 4], [0, 1 << 40, 4]])
def test_what_lies_outside_begins_like_nothing(ends: list[int], engine: Engine) -> None:
    data = np.frombuffer(b"headhead", np.uint8).copy()
    assert not engine(begin_alike)(data, np.array(ends), 4)
