"""The table ``journeys``: the rows of captures of real clients do not depend on windows, engines or files."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kwire import capture
from kwire.kernels.engine import MACHINE, using
from kwire.tables.reading import read
from kwire.testing import packets

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = ("kafka-4.3-kraft-java/clients.pcap", "kafka-4.3-kraft-librdkafka/current.pcap")
_FREE = ("capture", "connection", "frame")
_NUMBERS = ("_frame", "_connection")


def _rows(data: bytes, table: str, window: int | None = None) -> list[dict[str, Any]]:
    return [row for _, batch in read(BytesIO(data), {table: None}, window=window) for row in batch.to_pylist()]


@pytest.mark.parametrize("table", ["journeys", "transactions"])
@pytest.mark.parametrize("name", CAPTURES)
def test_rows_are_the_same_in_any_window(name: str, table: str) -> None:
    data = (GOLDEN / name).read_bytes()
    whole = _rows(data, table)
    assert whole
    assert _rows(data, table, 20_000) == whole
    with using(MACHINE):
        assert _rows(data, table, 60_000) == whole


def test_rows_go_on_from_file_to_file() -> None:
    whole = packets.read((GOLDEN / CAPTURES[0]).read_bytes())
    cuts = [0, *sorted(Random(1).sample(range(1, len(whole)), 3)), len(whole)]
    files = [BytesIO(packets.write_pcapng(whole[begin:end])) for begin, end in pairwise(cuts)]

    def plain(batches: Any) -> list[dict[str, Any]]:
        rows = (row for batch in batches for row in batch.to_pylist())
        return [
            {name: value for name, value in row.items() if name not in _FREE and not name.endswith(_NUMBERS)}
            for row in rows
        ]

    one = capture.read(BytesIO(packets.write_pcapng(whole)), "journeys")
    assert plain(capture.read(files, "journeys")) == plain(one)


def test_what_a_group_read_is_committed() -> None:
    rows = _rows((GOLDEN / CAPTURES[0]).read_bytes(), "journeys")
    mine = [row for row in rows if row["group_id"] == "java-classic"]
    assert {row["status"] for row in mine} == {"committed"}
    assert all(row["produced"] <= row["acknowledged"] <= row["fetched"] <= row["committed"] for row in mine
               if row["produced"] is not None)  # fmt: skip
