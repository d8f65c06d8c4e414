"""Index files beside a segment: their entries, and what is wrong with them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from segments_made import segment_bytes

from kwire import log
from kwire.records import decode

pytestmark = pytest.mark.usefixtures("engine")


def write_indexes(folder: Path, offsets: list[tuple[int, int]], times: list[tuple[int, int]], zeros: int = 0) -> Any:
    """Index files of the first segment; entries are relative to offset 0."""
    (folder / f"{0:020}.index").write_bytes(b"".join(struct.pack(">ii", *one) for one in offsets) + bytes(8 * zeros))
    (folder / f"{0:020}.timeindex").write_bytes(b"".join(struct.pack(">qi", *one) for one in times) + bytes(12 * zeros))
    return log.find(folder)[0]


def right_entries() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    batches = list(decode(segment_bytes()))[5::10]
    return [(each.last_offset, each.position) for each in batches], [
        (each.max_timestamp, each.last_offset) for each in batches
    ]


@pytest.mark.parametrize("zeros", [0, 100])
def test_right_indexes_have_no_problems(partition: Path, zeros: int) -> None:
    assert log.check_indexes(write_indexes(partition, *right_entries(), zeros)) == []


def test_an_index_entry_for_the_last_of_several_batches_is_right(partition: Path) -> None:
    offsets, times = right_entries()
    offsets[1] = (offsets[1][0] + 40, offsets[1][1])
    assert log.check_indexes(write_indexes(partition, offsets, times)) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda offsets, times: offsets.__setitem__(1, (offsets[1][0], offsets[1][1] + 1)), "no entry .* at position"),
        (lambda offsets, times: offsets.__setitem__(1, (offsets[1][0] - 1, offsets[1][1])), "ends at"),
        (
            lambda offsets, times: offsets.__setitem__(1, (offsets[1][0] + 1, offsets[1][1])),
            "no entry .* ends at offset",
        ),
        (lambda offsets, times: offsets.__setitem__(1, offsets[0]), "not behind the entry before"),
        (lambda offsets, times: times.__setitem__(1, (times[1][0] + 1, times[1][1])), "but the largest up to"),
        (lambda offsets, times: times.__setitem__(1, (times[0][0], times[1][1])), "not behind the entry before"),
        (lambda offsets, times: times.append((times[-1][0] + 1, 5000)), "not in the segment"),
    ],
)
def test_a_wrong_index_entry_is_named(partition: Path, change: Any, text: str) -> None:
    offsets, times = right_entries()
    change(offsets, times)
    problems = log.check_indexes(write_indexes(partition, offsets, times))
    assert problems
    import re

    assert re.search(text, problems[0].message)
    assert problems[0].file.startswith("0" * 20)


def test_of_many_wrong_entries_the_first_hundred_are_listed_and_the_others_counted(partition: Path) -> None:
    segment = write_indexes(partition, [(one, -1) for one in range(104)], [])
    *listed, last = log.check_indexes(segment)
    assert [one.entry for one in listed] == list(range(100))
    assert str(last) == f"{0:020}.index: entry 100: this and 3 more are wrong"


def test_an_index_that_ends_in_the_middle_of_an_entry_is_told(partition: Path) -> None:
    segment = write_indexes(partition, *right_entries())
    segment.index.write_bytes(segment.index.read_bytes() + b"\0\0\0")
    (problem,) = log.check_indexes(segment)
    assert str(problem) == f"{0:020}.index: entry 5: 3 bytes behind the last whole entry"


def test_the_entries_of_indexes_have_absolute_offsets(tmp_path: Path) -> None:
    segment = log.Segment(tmp_path / f"{1000:020}.log", base_offset=1000)
    segment.index.write_bytes(struct.pack(">iiii", 0, 0, 7, 4096) + bytes(24))
    segment.time_index.write_bytes(struct.pack(">qiqi", 5, 0, 1_700_000_000_000, 2**31 - 1) + b"cut off")
    assert log.read_index(segment) == [log.OffsetEntry(1000, 0), log.OffsetEntry(offset=1007, position=4096)]
    assert log.read_time_index(segment) == [
        log.TimeEntry(5, 1000),
        log.TimeEntry(timestamp=1_700_000_000_000, offset=1000 + 2**31 - 1),
    ]
    segment.index.write_bytes(b"")
    assert log.read_index(segment) == []
    # A number that is not zero makes an entry.
    segment.index.write_bytes(struct.pack(">iiii", 0, 4096, 0, 0))
    segment.time_index.write_bytes(struct.pack(">qi", 5, 0) + bytes(12))
    assert log.read_index(segment) == [log.OffsetEntry(1000, 4096)]
    assert log.read_time_index(segment) == [log.TimeEntry(5, 1000)]


@pytest.mark.parametrize("read", [log.read_index, log.read_time_index])
def test_entries_of_an_index_need_the_file_and_a_segment_that_is_named_by_its_offset(tmp_path: Path, read: Any) -> None:
    with pytest.raises(FileNotFoundError):
        read(log.Segment(tmp_path / f"{7:020}.log", base_offset=7))
    segment = log.Segment(tmp_path / "other.log")
    for file in (segment.index, segment.time_index):
        file.write_bytes(bytes(range(24)))
    with pytest.raises(ValueError, match="not named by its first offset"):
        read(segment)


def test_a_segment_without_indexes_has_no_problems(partition: Path) -> None:
    assert log.check_indexes(log.find(partition)[0]) == []


TRANSACTIONS = Path(__file__).parents[2] / "golden" / "segments" / "4.3-kraft" / "log-tx-0" / f"{0:020}.log"
"""Of producer 0: records up to 3, a commit marker at 4, records up to 8, abort at 9, commit at 14."""


@pytest.mark.parametrize(
    ("producer", "marker", "text"),
    [
        (0, 9, None),
        (0, 4, "producer 0 aborts at offset 4, where the segment has a commit marker"),
        (0, 3, "producer 0 aborts at offset 3, where the segment has records of producer 0"),
        (7, 9, "producer 7 aborts at offset 9, where the segment has a marker of producer 0"),
        # What the log cleaner has removed is not there, and a later segment may have it.
        (0, 15, None),
    ],
)
def test_a_transaction_index_is_held_against_the_markers(
    tmp_path: Path, producer: int, marker: int, text: str | None
) -> None:
    segment = tmp_path / "tx-0" / TRANSACTIONS.name
    segment.parent.mkdir()
    segment.write_bytes(TRANSACTIONS.read_bytes())
    right = struct.pack(">hqqqq", 0, 0, 5, 9, 10)
    segment.with_suffix(".txnindex").write_bytes(right + struct.pack(">hqqqq", 0, producer, 0, marker, 10))
    found = log.check_indexes(log.find(segment)[0])
    told = [] if text is None else [f"{segment.stem}.txnindex: entry 1: {text}"]
    assert list(map(str, found)) == told
    (partition,) = log.describe(segment.parent).partitions
    assert partition.problems == told


def test_a_marker_that_cannot_be_read_is_no_abort(tmp_path: Path) -> None:
    segment = tmp_path / "tx-0" / TRANSACTIONS.name
    segment.parent.mkdir()
    whole = bytearray(TRANSACTIONS.read_bytes())
    batch = next(one for one in decode(bytes(whole), problems=[]) if one.base_offset == 9)
    assert batch.records[0].key is not None
    at = whole.index(bytes([8]) + batch.records[0].key, whole.index(struct.pack(">q", 9)))
    whole[at] = 1  # a key that is null
    segment.write_bytes(whole)
    segment.with_suffix(".txnindex").write_bytes(struct.pack(">hqqqq", 0, 0, 5, 9, 10))
    (found,) = log.check_indexes(log.find(segment)[0])
    assert "a marker that is no abort" in found.message
