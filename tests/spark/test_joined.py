"""Batches of small files are joined before they go to the JVM. The rows are the same, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.capture.splits import Split
from kwire.spark.arrow import JOINED, SMALL, Joined
from kwire.spark.files import File
from kwire.spark.source import KwireDataSource

FILE = File(None, "/a.pcap", "/a.pcap", 100, asked=False)


def batch(*numbers: int, size: int = 1) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers), "text": ["x" * size] * len(numbers)})


def numbers(batches: Iterator[pa.RecordBatch]) -> list[list[int]]:
    return [one.column("n").to_pylist() for one in batches]


def test_batches_of_small_files_become_one_in_order() -> None:
    joined = Joined()
    for number in range(5):
        assert list(joined.of(FILE, iter([batch(number), batch(number + 10)]))) == []
    assert numbers(joined.rest()) == [[0, 10, 1, 11, 2, 12, 3, 13, 4, 14]]
    assert list(joined.rest()) == []


@pytest.mark.parametrize(
    "file",
    [
        replace(FILE, size=SMALL + 1),
        replace(FILE, size=None),
        replace(FILE, split=Split(0, 100, {})),
    ],
    ids=["large", "of no known size", "split"],
)
def test_a_large_file_waits_for_nothing_and_nothing_for_it(file: File) -> None:
    joined = Joined()
    assert list(joined.of(FILE, iter([batch(1)]))) == []

    def rows() -> Iterator[pa.RecordBatch]:
        begun.append(True)
        yield batch(2)
        yield batch(3)

    begun: list[bool] = []
    found = joined.of(file, rows())
    assert next(found).column("n").to_pylist() == [1]
    assert not begun, "rows of a small file waited for the first of a large one"
    assert numbers(found) == [[2], [3]]
    assert list(joined.rest()) == []


def test_waiting_batches_are_bounded_by_bytes_and_large_ones_are_not_copied() -> None:
    joined = Joined()
    small, large = batch(1), batch(2, size=JOINED)
    assert numbers(joined.of(FILE, iter([small, large]))) == [[1]]
    (last,) = joined.rest()
    assert last is large
    halves = [batch(number, size=JOINED // 2) for number in range(9)]
    found = numbers(joined.of(FILE, iter(halves))) + numbers(joined.rest())
    assert found == [[number] for number in range(9)]
    quarters = [batch(number, size=JOINED // 4) for number in range(6)]
    found = numbers(joined.of(FILE, iter(quarters))) + numbers(joined.rest())
    assert found == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("across", ["false", "true"])
@pytest.mark.parametrize("table", ["frames", "records"])
def test_a_task_gives_one_batch_for_its_small_files(captures: Path, tmp_path: Path, table: str, across: str) -> None:
    data = (captures / "first-light.pcap").read_bytes()
    for number in range(6):
        (tmp_path / f"{number}.pcap").write_bytes(b"not a capture" if number == 3 else data)
    options = {"path": str(tmp_path), "table": table, "across": across}
    source = KwireDataSource(options)
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    found = list(reader.read(partition))
    assert len(found) == 1
    rows: list[dict[str, Any]] = found[0].to_pylist()
    names = [Path(row["capture"]).name for row in rows]
    assert list(dict.fromkeys(names)) == (
        # With ``across`` what has no first packet comes first.
        ["3.pcap", "0.pcap", "1.pcap", "2.pcap", "4.pcap", "5.pcap"]
        if across == "true"
        else [f"{number}.pcap" for number in range(6)]
    )
    assert [row["status"] for row in rows if row["capture"].endswith("3.pcap")] == ["bad_file"]
    if across == "false":
        each = [one for file in partition.files for one in reader.rows_of(file)]
        assert len(each) > 5
        assert rows == [row for one in each for row in one.to_pylist()]
