"""What ``transactions`` and ``journeys`` remember is saved and goes on elsewhere; what is damaged is refused."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kwire import stored
from kwire.capture.across import in_order
from kwire.tables import table
from kwire.tables.reading import read
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "clients.pcap"
TABLES = ("transactions", "journeys")


def rows(files: list[bytes], name: str, *, saved: bool) -> list[dict[str, Any]]:
    """The rows of files that follow each other. ``saved``: the memory is written and read again between them."""
    made: list[dict[str, Any]] = []
    for number, (data, (part, ended)) in enumerate(zip(files, in_order(range(len(files))), strict=True)):
        if saved and name in part.memory:
            text = json.dumps(part.memory[name].save())
            remembers = table(name).remembers
            part.memory[name] = remembers()
            part.memory[name].restore(json.loads(text))
        found = read(io.BytesIO(data), {name: None}, name=str(number), part=part, on_end=ended)
        made += [row for _, batch in found for row in batch.to_pylist()]
    return made


def cut(seed: int) -> list[bytes]:
    whole = packets.read(GOLDEN.read_bytes())
    cuts = [0, *sorted(Random(seed).sample(range(1, len(whole)), 5)), len(whole)]
    return [packets.write_pcapng(whole[begin:end]) for begin, end in pairwise(cuts)]


@pytest.mark.parametrize("name", TABLES)
def test_a_memory_goes_on_where_it_was_left(name: str) -> None:
    for seed in (1, 2):
        plain = rows(cut(seed), name, saved=False)
        assert plain
        assert rows(cut(seed), name, saved=True) == plain


def damaged(value: Any) -> list[Any]:
    """A state with one value of another kind, for each of its values; of lists the first and the last."""
    if isinstance(value, dict) and value:
        return [{**value, name: one} for name in value for one in damaged(value[name])]
    if isinstance(value, list):
        return [
            [*value[:at], one, *value[at + 1 :]] for at in {0, len(value) - 1} if value for one in damaged(value[at])
        ]
    return [{}]


@pytest.mark.parametrize("name", TABLES)
def test_a_damaged_memory_is_refused(name: str) -> None:
    files = cut(1)
    ((part, ended), *_) = in_order(range(len(files)))
    list(read(io.BytesIO(b"".join(files[:1])), {name: None}, part=part, on_end=ended))
    list(read(io.BytesIO(GOLDEN.read_bytes()), {name: None}, part=part, on_end=ended))
    state = json.loads(json.dumps(part.memory[name].save()))
    remembers = table(name).remembers
    remembers().restore(state)
    some = damaged(state)
    assert len(some) > 10
    for one in some:
        with pytest.raises(stored.UNFIT):
            remembers().restore(one)


def test_numbers_of_nothing_are_refused() -> None:
    name = "journeys"
    files = cut(1)
    ((part, ended), *_) = in_order(range(len(files)))
    list(read(io.BytesIO(GOLDEN.read_bytes()), {name: None}, part=part, on_end=ended))
    state = json.loads(json.dumps(part.memory[name].save()))
    for names in ("topics", "whos", "groups"):
        with pytest.raises(stored.UNFIT):
            table(name).remembers().restore({**state, names: []})
    with pytest.raises(stored.UNFIT):
        table(name).remembers().restore({**state, "journeys": {**state["journeys"], "next": 1 << 40}})
