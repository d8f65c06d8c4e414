"""What is kept of a window: frames, bytes of some, and what is about transactions."""

from __future__ import annotations

import numpy as np
import pytest

from kwire.kernels.engine import Engine
from kwire.kernels.gathering import (
    HELD,
    R_ERROR,
    R_OFFSET,
    R_RECORDS,
    R_TXN,
    R_WATERMARK,
    REGISTERS,
    TOLD,
    WRITES,
    gather,
    mark_of,
    of_transactions,
    rows_of,
    sort_out,
    weigh,
)  # fmt: skip
from kwire.kernels.layouts import ABSENT, CONNECTION, FRAME, Status


def frames(count: int) -> np.ndarray:
    rows = np.zeros(count, FRAME)
    rows["number"] = np.arange(count)
    rows["seen"] = np.arange(count) + 1
    rows["off"] = np.cumsum(rows["seen"]) - rows["seen"]
    return rows


def test_frames_are_kept_with_the_bytes_that_are_wanted(engine: Engine) -> None:
    rows, data = frames(5), np.arange(15, dtype=np.uint8)
    there, copied = np.array([1, 0, 1, 1, 1], bool), np.array([0, 0, 1, 0, 1], bool)
    table, kept = np.empty(4, FRAME), np.empty(8, np.uint8)
    engine(gather)(rows, data, there, copied, 100, table, kept)
    assert table["number"].tolist() == [0, 2, 3, 4]
    assert table["off"].tolist() == [-1, 100, -1, 103]
    assert kept.tolist() == [3, 4, 5, 10, 11, 12, 13, 14]
    assert rows["off"].tolist() == [0, 1, 3, 6, 10]


def test_bytes_that_a_frame_does_not_have_are_not_read(engine: Engine) -> None:
    rows = frames(1)
    rows["off"], rows["seen"] = -1, 4
    kept = np.full(4, 9, np.uint8)
    engine(gather)(rows, np.zeros(4, np.uint8), np.ones(1, bool), np.ones(1, bool), 0, np.empty(1, FRAME), kept)
    assert kept.tolist() == [9, 9, 9, 9]


def test_each_looker_is_given_the_frames_of_its_kinds_that_have_a_body(engine: Engine) -> None:
    rows = frames(6)
    rows["api"], rows["response"] = [0, 1, 1, 9, 0, ABSENT], [0, 1, 1, 0, 0, 0]
    rows["status"] = [Status.OK, Status.OK, Status.CUT_OFF, Status.OK, Status.MALFORMED, Status.OK]
    kinds = np.array([1, 0, 0, 6], np.uint8)
    found, counts = np.full((3, 6), -1), np.full(3, 9)
    assert engine(rows_of)(rows, kinds, found, counts) == 21
    assert [one[:count].tolist() for one, count in zip(found, counts.tolist(), strict=True)] == [[0], [1, 2], [1, 2]]
    there, copied = np.array([1, 0, 1, 0, 0, 1], bool), np.array([0, 0, 1, 0, 0, 1], bool)
    assert engine(weigh)(rows, there, copied) == (3, 9)


def test_frames_are_sorted_out_by_what_they_are_and_new_connections_are_told(engine: Engine) -> None:
    rows = frames(6)
    rows["api"], rows["slot"] = [2, 0, 1, 0, 2, 1], [0, 0, 0, 1, 1, 1]
    connections = np.zeros(2, CONNECTION)
    connections["number"] = [4, 9]
    part_of = np.array([1, 0, 2, 0, 3, 0], np.uint8)
    given, known, out = np.arange(6), np.full(4, -1), np.full(6, -1)
    assert engine(sort_out)(rows, given, part_of, connections, known, out) == (2, 4, True)
    assert out.tolist() == [1, 3, 2, 5, 0, 4]
    for number, new in ((4, True), (9, False)):
        known[number % 4] = number
        assert engine(sort_out)(rows, given, part_of, connections, known, out) == (2, 4, new)
    # Another connection with the same lower bits is none that is known.
    known[0] = 8
    assert engine(sort_out)(rows, given, part_of, connections, known, out)[2]


def batch(count: int, producer: int, epoch: int, *, more: int = 0, magic: int = 2) -> bytes:
    made = bytearray(61 + more)
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    made[16] = magic
    made[43:51] = producer.to_bytes(8, "big", signed=True)
    made[51:53] = epoch.to_bytes(2, "big", signed=True)
    made[57:61] = count.to_bytes(4, "big", signed=True)
    return bytes(made)


def said(job: int, **registers: tuple[int, int]) -> list[int]:
    row = [job] + [ABSENT] * (2 * REGISTERS)
    for name, (value, length) in registers.items():
        at = (
            1
            + 2 * {"error": R_ERROR, "offset": R_OFFSET, "records": R_RECORDS, "txn": R_TXN, "high": R_WATERMARK}[name]
        )
        row[at : at + 2] = value, length
    return row


def kept_of(
    engine: Engine, sets: bytes, found: list[list[int]], marks: np.ndarray
) -> tuple[np.ndarray, list[int], int]:
    rows = np.zeros(4, FRAME)
    rows["slot"], rows["id"] = [0, 0, 1, 1], [7, 7, 7, ABSENT]
    connections = np.zeros(2, CONNECTION)
    connections["number"] = [5, 6]
    table = np.array(found, np.int64)
    kept, places = np.empty_like(table), np.empty(len(table), np.int64)
    count, writes = engine(of_transactions)(
        np.frombuffer(sets, np.uint8), table, np.arange(4), rows, connections, marks, kept, places
    )
    return kept[:count], places[:count].tolist(), writes


def test_what_is_about_transactions_is_kept(engine: Engine) -> None:
    sets = batch(3, 40, 2) + batch(5, 40, 2, more=9)
    marks = np.zeros(64, np.uint8)
    kept, places, writes = kept_of(
        engine,
        sets,
        [
            said(0, txn=(0, 4), records=(0, len(sets))),
            said(0, txn=(0, -1), records=(0, len(sets))),
            said(1, error=(0, 0), offset=(12, 0)),
            said(2, error=(0, 0), offset=(12, 0)),
            said(2, error=(0, 0), offset=(12, 0), high=(13, 0), records=(0, 0)),
            said(2, error=(3, 0), offset=(12, 0), high=(13, 0), records=(0, 0)),
            said(2, error=(0, 0), offset=(13, 0), high=(13, 0), records=(0, 0)),
            said(2, error=(0, 0), offset=(-1, 0), high=(13, 0), records=(0, 0)),
        ],
        marks,
    )
    assert kept[:, 0].tolist() == [WRITES, TOLD, HELD]
    assert places == [0, 1, 2]
    assert writes == 1
    assert [kept[0, 1 + 2 * one] for one in (R_ERROR, R_OFFSET, R_WATERMARK)] == [40, 2, 8]
    assert np.flatnonzero(marks).tolist() == [mark_of(5, 7, 64)]


def test_a_response_is_kept_whose_request_was_marked_earlier(engine: Engine) -> None:
    marks = np.zeros(64, np.uint8)
    marks[mark_of(6, 0, 64)] = 1
    _, places, writes = kept_of(
        engine, b"", [said(2, error=(0, 0), offset=(1, 0)), said(3, error=(0, 0), offset=(1, 0))], marks
    )
    assert (places, writes) == ([3], 0)


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (batch(3, 40, 2, magic=1), (ABSENT, ABSENT, 0)),
        (batch(3, -1, -1), (-1, -1, 3)),
        (batch(-3, 40, 2), (40, 2, 0)),
        (batch(3, 40, 2) + batch(4, 40, 2)[:60], (40, 2, 3)),
        (batch(3, 40, 2) + batch(4, 40, 2, more=5)[:64], (40, 2, 3)),
        (batch(3, 40, 2)[:8] + b"\xff\xff\xff\xff" + batch(3, 40, 2)[12:], (ABSENT, ABSENT, 0)),
    ],
)
def test_only_whole_batches_of_a_set_count(engine: Engine, sets: bytes, expected: tuple[int, int, int]) -> None:
    kept, _, _ = kept_of(engine, sets, [said(0, txn=(0, 4), records=(0, len(sets)))], np.zeros(64, np.uint8))
    assert tuple(int(kept[0, 1 + 2 * one]) for one in (R_ERROR, R_OFFSET, R_WATERMARK)) == expected
