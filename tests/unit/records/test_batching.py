"""Where rows are cut so that no column is more than Arrow can hold."""

from __future__ import annotations

import numpy as np
import pytest
from record_sets import batch, record

from kwire.errors import LimitError
from kwire.records import Record, columnar, columns, encode, to_arrow
from kwire.records.batching import batch_ranges


def cut(costs: list[int], counts: list[int] | None = None, **limits: int) -> list[tuple[int, int]]:
    return list(
        batch_ranges(np.array(costs, np.int64), None if counts is None else np.array(counts, np.int64), **limits)
    )


@pytest.mark.parametrize(
    ("costs", "most", "parts"),
    [
        ([], 10, []),
        ([10], 10, [(0, 1)]),
        ([5, 5], 10, [(0, 2)]),
        ([5, 6], 10, [(0, 1), (1, 2)]),
        ([5, 5, 1], 10, [(0, 2), (2, 3)]),
        ([11, 1], 10, [(0, 1), (1, 2)]),
        ([1, 99, 1, 9], 10, [(0, 1), (1, 2), (2, 4)]),
        ([0, 0, 0], 0, [(0, 3)]),
    ],
)
def test_no_part_costs_more_than_the_most(costs: list[int], most: int, parts: list[tuple[int, int]]) -> None:
    assert cut(costs, most=most) == parts
    assert cut(costs, [1] * len(costs), most=most) == parts


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ([3], [(0, 1)]),
        ([1, 2], [(0, 2)]),
        ([1, 2, 1], [(0, 2), (2, 3)]),
        ([4, 0, 3], [(0, 1), (1, 3)]),
    ],
)
def test_no_part_has_more_than_the_most_rows(counts: list[int], parts: list[tuple[int, int]]) -> None:
    assert cut([0] * len(counts), counts, most=10, most_rows=3) == parts


def test_rows_are_counted_where_each_thing_is_one() -> None:
    assert cut([0] * 7, most=10, most_rows=3) == [(0, 3), (3, 6), (6, 7)]
    assert cut([0] * 3, most=10, most_rows=3) == [(0, 3)]


def test_one_batch_has_as_many_records_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    data = batch(b"".join(record(offset=n) for n in range(3)), 3)
    monkeypatch.setattr(columns, "MOST_ROWS_TOGETHER", 3)
    assert to_arrow(data).num_rows == 3
    monkeypatch.setattr(columns, "MOST_ROWS_TOGETHER", 2)
    with pytest.raises(LimitError, match="3 records are beyond the limit of one Arrow batch"):
        to_arrow(data)


def test_record_sets_and_records_beyond_a_batch_are_cut() -> None:
    value = bytes(9 << 20)
    one = batch(record(value=value), 1)
    two = batch(record(value=value) + record(offset=1, value=value), 2)
    for data, sets in ((one + one, [len(one), len(one)]), (two, [len(two)])):
        starts = np.cumsum([0, *sets[:-1]]).astype(np.int64)
        taken = (np.frombuffer(data, np.uint8), starts, np.array(sets, np.int64))
        assert [each.found.batch.num_rows for each in columnar.decode_pieces(*taken)] == [1, 1]
        rows = [each.found.batch.num_rows for each in columnar.decode_groups(*taken)]
        assert rows == ([1, 1] if len(sets) == 2 else [2])


def test_what_was_decompressed_for_later_pieces_stays_while_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(batch_ranges.__kwdefaults__, "most_rows", 2)

    def sets(letter: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        data = b"".join(encode([Record(None, letter * 50)] * 2, compression="gzip") for _ in range(3))
        return np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)], np.int64)

    turns = zip(columnar.decode_pieces(*sets(b"x")), columnar.decode_pieces(*sets(b"y")), strict=True)
    found = [[piece.found.batch.column("value").to_pylist() for piece in pair] for pair in turns]
    assert found == [[[b"x" * 50] * 2, [b"y" * 50] * 2]] * 3


def test_pieces_of_one_batch_are_together_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(batch_ranges.__kwdefaults__, "most_rows", 2)
    monkeypatch.setattr(columns, "MOST_ROWS", 2)
    headers = [(("a", b"1"),), (), (("b", None), ("c", b"22")), (("d", b""),), (("e", b"5"), ("f", b"6"))]
    data = encode([Record(b"%d" % n, b"v", timestamp=n, headers=list(each)) for n, each in enumerate(headers)])
    taken = (np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)], np.int64))
    found = [one.found for one in columnar.decode_pieces(*taken)]
    assert [one.batch.num_rows for one in found] == [len(one.set_index) for one in found] == [2, 2, 1]
    rows = [row for one in found for row in one.batch.to_pylist()]
    assert rows == to_arrow(data).to_pylist()
    assert [len(row["headers"]) for row in rows] == [1, 0, 2, 1, 2]


def test_no_record_sets_are_one_group_of_none() -> None:
    none = np.zeros(0, np.int64)
    (group,) = columnar.decode_groups(np.zeros(0, np.uint8), none, none)
    assert (group.first, group.sets, group.found.batch.num_rows, len(group.found.consumed)) == (0, 0, 0, 0)


def test_keys_of_headers_that_are_too_large_as_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # The second key claims a gigabyte. Its text stands for one of 2 GiB, which would take that much memory.
    bounds = np.array([0, 0, 1 << 30], np.int32)
    assert columns._text(np.zeros(1, np.uint8), bounds, 2).to_pylist() == ["", "\0"]
    monkeypatch.setattr(columns, "text_size", lambda text: len(text) << 31)
    with pytest.raises(LimitError, match="keys of headers as text"):
        columns._text(np.zeros(1, np.uint8), bounds, 2)
