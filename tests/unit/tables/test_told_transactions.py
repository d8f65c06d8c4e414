"""The table ``transactions``: random histories with a known truth, whole, with holes and in several files."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from made_captures import read
from told_transactions import Told, check_part, check_whole, rows_of

from kwire.capture import frames
from kwire.tables.transactions import Steps
from kwire.testing import packets


@pytest.mark.parametrize("seed", range(2))
def test_each_transaction_is_a_row(seed: int) -> None:
    told = Told(seed)
    check_whole(told, rows_of([told.packets()]))


@pytest.mark.parametrize("seed", range(2))
def test_with_holes_rows_are_part_of_the_truth(seed: int) -> None:
    told = Told(100 + seed)
    check_part(told, rows_of([told.lossy(0.1)]))


@pytest.mark.parametrize("seed", range(2))
def test_files_give_the_rows_of_the_whole(seed: int) -> None:
    told = Told(200 + seed)
    whole = told.packets()
    cuts = sorted(Random(seed).sample(range(1, len(whole)), 3))
    parts = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    rows, in_parts = rows_of([whole]), rows_of(parts)
    free = ("capture", "frame", "end_frame", "events", "connection", "end_connection", "cause")
    assert [{k: v for k, v in row.items() if k not in free} for row in in_parts] == [
        {k: v for k, v in row.items() if k not in free} for row in rows
    ]


@pytest.mark.parametrize("loss", [0, 0.1])
@pytest.mark.parametrize("windows", [1, 4, 100])
def test_what_waits_for_other_windows_gives_the_same_rows(
    windows: int, loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(300)
    data = packets.write_pcapng(told.lossy(loss) if loss else told.packets())
    rows = read(data, "transactions")
    waited: list[int] = []
    plain = Steps.of

    def of(self: Steps, *args: Any) -> Any:
        waited.append(len(self._waiting))
        return plain(self, *args)

    monkeypatch.setattr(Steps, "of", of)
    monkeypatch.setattr(frames, "SMALL_WINDOW", 0)
    monkeypatch.setattr(frames, "GATHERED_WINDOWS", windows)
    assert read(data, "transactions", window=5000) == rows
    assert rows
    assert (max(waited) > 1) == (windows > 1)
