"""Golden captures cut into files, at any packets: the rows of the whole, one connection is one in all of them.

``quick`` takes some cuts of small captures; the profile ``exhaustive`` cuts each at every packet, and into files of one
packet each.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from split_captures import compared, parts_of

from kwire.kernels.engine import MACHINE, using
from kwire.tables import table
from kwire.tables.reading import read
from kwire.testing import packets

EXHAUSTIVE = settings.default.max_examples > 50
TABLES = ("frames", "records", "messages", "partitions") if EXHAUSTIVE else ("frames", "records")
PATHS = sorted((Path(__file__).parents[1] / "golden").glob("*/*.pcap*"))
SMALL = [path for path in PATHS if path.stat().st_size < 12_000]
MIDDLE = [path for path in PATHS if path.stat().st_size < (300_000 if EXHAUSTIVE else 85_000)]
WANTED = {name: [*table(name).schema.names, *(["committed_offset"] if name == "records" else [])] for name in TABLES}
EXAMPLES = settings.default.max_examples // 2

Tables = dict[str, list[str]]


@cache
def packets_of(path: Path) -> tuple[packets.Packet, ...]:
    return tuple(packets.read(path.read_bytes()))


def names(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@cache
def uncut(path: Path) -> Tables:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    whole = packets.write_pcap(packets_of(path), nano=True)
    for name, batch in read(io.BytesIO(whole), WANTED):
        found[name] += batch.to_pylist()
    return {name: compared(rows) for name, rows in found.items()}


def cut(path: Path, places: Sequence[int]) -> Tables:
    whole = packets_of(path)
    at = [0, *places, len(whole)]
    files = [packets.write_pcap(whole[a:b], nano=True) for a, b in itertools.pairwise(at)]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    parts, _ = parts_of(files)
    for data, part in zip(files, parts, strict=True):
        for name, batch in read(io.BytesIO(data), WANTED, part=part):
            found[name] += batch.to_pylist()
    return {name: compared(rows) for name, rows in found.items()}


def test_there_are_captures() -> None:
    assert SMALL
    assert len(MIDDLE) > 8


@pytest.mark.wide
@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_golden_capture_cut_anywhere_has_the_rows_of_the_whole(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(MIDDLE))
    count = len(packets_of(path))
    places = data.draw(st.lists(st.integers(1, count - 1), min_size=1, max_size=8, unique=True).map(sorted))
    with using(MACHINE):
        assert cut(path, places) == uncut(path)


@pytest.mark.parametrize("path", MIDDLE if EXHAUSTIVE else SMALL[:1], ids=names)
def test_a_golden_capture_may_be_cut_at_every_packet(path: Path) -> None:
    count = len(packets_of(path))
    with using(MACHINE):
        for place in range(1, count, 1 if EXHAUSTIVE else 3):
            assert cut(path, [place]) == uncut(path), place


@pytest.mark.parametrize("path", SMALL if EXHAUSTIVE else SMALL[:2], ids=names)
def test_every_packet_may_be_a_file(path: Path) -> None:
    with using(MACHINE):
        assert cut(path, range(1, len(packets_of(path)))) == uncut(path)
