"""``read_committed=True`` of log segments gives what Kafka's consumer gives, wherever the log is cut."""

from __future__ import annotations

import io
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from segments_made import segment_bytes
from transactions import PLAIN, Entry, committed, drawn, log_of, write

from kwire import log
from kwire.log.decided import NEEDED, Decided, _later, _Log
from kwire.records import Record, encode
from kwire.records.control import control_key
from kwire.tables import table

SEGMENTS = Path(__file__).parents[2] / "golden" / "segments"
CROSSING = SEGMENTS / "4.3-kraft-indexes" / "index-transactions-0"
"""Producer 1 begins a transaction in the first of three segments and aborts it in the last, as a broker wrote it."""


def offsets(source: Any, **options: Any) -> list[int]:
    found = log.read(source, columns=["offset"], read_committed=True, **options)
    return [row for batch in found for row in batch.column("offset").to_pylist()]


def of_folder(folder: Path, notes: list[str] | None = None) -> list[int]:
    on_note = None if notes is None else notes.append
    return [one for segment in log.find(folder) for one in offsets(segment, on_note=on_note)]


@pytest.mark.parametrize("broker", ["3.9-kraft", "4.3-kraft"])
def test_aborted_records_and_markers_of_a_brokers_segment_are_left_out(broker: str) -> None:
    notes: list[str] = []
    assert of_folder(SEGMENTS / broker / "log-tx-0", notes) == [0, 1, 2, 3, 10, 11, 12, 13]
    assert notes == []


@pytest.mark.parametrize("broker", ["3.9-kraft-indexes", "4.3-kraft-indexes"])
def test_a_transaction_that_ends_in_a_later_segment_is_decided_there(broker: str) -> None:
    found = of_folder(SEGMENTS / broker / "index-transactions-0")
    assert found == [0, 1, 3, 4, 14, 15, 17, 18, 21, 22, 24, 25, 35, 36, 38, 39, 42, 43, 45, 46, 50]


@pytest.mark.parametrize("seed", range(40))
def test_segments_give_what_a_consumer_of_the_log_gets(tmp_path: Path, seed: int) -> None:
    some = random.Random(seed)
    entries = drawn(seed)
    cuts = sorted(some.sample(range(1, len(entries)), some.randint(0, 5)))
    write(tmp_path / "orders-0", entries, cuts)
    notes: list[str] = []
    expected = committed(entries)
    assert of_folder(tmp_path / "orders-0", notes) == expected
    every = [one for entry in entries if entry.kind == "data" for one in range(entry.first, entry.last + 1)]
    assert 0 < len(expected) < len(every)


def test_records_of_a_transaction_without_an_end_are_counted_with_all_behind_it(tmp_path: Path) -> None:
    entries = log_of((PLAIN, "data", 2), (7, "data", 3), (PLAIN, "data", 2), (8, "data"), (8, "commit"))
    write(tmp_path / "orders-0", entries, [])
    notes: list[str] = []
    assert of_folder(tmp_path / "orders-0", notes) == [0, 1]
    assert notes == [
        "6 records are left out from offset 2 on: the transaction of producer 7 that began there is still open at the "
        "end of the log"
    ]


def test_a_transaction_that_was_open_before_the_segment_is_known_from_its_snapshot(tmp_path: Path) -> None:
    entries = log_of((7, "data"), (PLAIN, "data", 2), (PLAIN, "data", 2))
    first, second = write(tmp_path / "orders-0", entries, [2])
    assert offsets(second) == []
    first.unlink()
    assert offsets(second) == []
    second.with_suffix(".snapshot").unlink()
    assert offsets(second) == [3, 4]


def test_a_txnindex_stands_in_for_a_segment_whose_marker_is_damaged(tmp_path: Path) -> None:
    entries = log_of((7, "data", 2), (PLAIN, "data"), (7, "abort"), (PLAIN, "data"))
    first, second = write(tmp_path / "orders-0", entries, [2])
    broken = bytearray(second.read_bytes())
    broken[70] ^= 1
    second.write_bytes(broken)
    assert offsets(first) == [2]
    second.with_suffix(".txnindex").unlink()
    assert offsets(first) == []


@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot"])
def test_a_damaged_file_beside_a_segment_is_said(tmp_path: Path, suffix: str) -> None:
    (first,) = write(tmp_path / "orders-0", log_of((7, "data", 2), (7, "commit")), [])
    first.with_suffix(suffix).write_bytes(b"\x00\x09" + bytes(39))
    notes: list[str] = []
    assert offsets(first, on_note=notes.append) == [0, 1]
    (note,) = notes
    assert f"{first.stem}{suffix}" in note
    assert note.endswith("a transaction that it alone knows to be aborted counts as committed")


def test_a_commit_in_a_later_segment_counts_although_its_txnindex_has_the_producers_next_abort(tmp_path: Path) -> None:
    entries = log_of((7, "data", 2), (PLAIN, "data"), (7, "commit"), (7, "data"), (7, "abort"))
    first, _ = write(tmp_path / "orders-0", entries, [2])
    assert offsets(first) == [0, 1, 2]


def test_of_a_later_segment_that_is_there_twice_the_plain_one_counts() -> None:
    first, second, third = (f"{one:020}.log" for one in (0, 10, 20))
    names = [f"{third}.zst", second, f"{second}.gz", "notes.txt", first, f"{second}.lz4"]
    for given in (names, names[::-1]):
        assert list(_later(given, 0)) == [second, f"{third}.zst"]


def test_a_stream_is_decided_by_its_own_markers_and_read_from_where_it_stands(tmp_path: Path) -> None:
    data = b"".join(one.encoded() for one in log_of((7, "data", 2), (7, "abort"), (8, "data"), (8, "commit")))
    stream = io.BytesIO(b"before" + data)
    stream.seek(6)
    assert offsets(stream) == [3]

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(ValueError, match="a stream has to be seekable"):
        offsets(Pipe(data))


def test_what_is_damaged_stays_a_row_that_says_so(tmp_path: Path) -> None:
    entries = log_of((7, "data"), (7, "commit"), (PLAIN, "data"))
    (file,) = write(tmp_path / "orders-0", entries, [], beside=False)
    broken = bytearray(file.read_bytes())
    size = len(entries[0].encoded())
    broken[size - 2] ^= 1
    file.write_bytes(bytes(broken[:size]) + b"\1" * 40 + bytes(broken[size:]))
    found = [row for one in log.read(file, read_committed=True) for row in one.to_pylist()]
    assert [(row["offset"], row["status"]) for row in found] == [(0, "corrupt"), (None, "malformed"), (2, "ok")]


def test_a_marker_that_no_broker_spells_so_is_read_all_the_same() -> None:
    # A record with a header is longer than the usual one, and its timestamp takes more bytes.
    marker = Record(control_key("abort"), bytes(6), headers=[("h", b"v" * 100)], timestamp=1 << 40)
    odd = encode([marker], base_offset=1, producer_id=7, is_transactional=True, is_control=True)
    data = Entry(7, "data", 0).encoded() + odd + Entry(7, "data", 2).encoded() + Entry(7, "commit", 3).encoded()
    assert offsets(io.BytesIO(data)) == [2]


def test_markers_as_brokers_write_them_need_no_slow_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any, **__: Any) -> Any:
        raise AssertionError("a batch was decoded")

    monkeypatch.setattr("kwire.log.decided.decode", slow)
    entries = log_of((7, "data"), (7, "abort"), (8, "data"), (8, "commit"))
    known = _Log()
    known.read(io.BytesIO(b"".join(one.encoded() for one in entries)))
    assert [each.tolist() for each in (*known.producers, *known.offsets, *known.aborts)] == [
        [7, 8],
        [1, 3],
        [True, False],
    ]


def test_records_of_no_transaction_are_all_there() -> None:
    data = segment_bytes(20, codec="gzip")
    assert offsets(io.BytesIO(data)) == list(range(400))
    assert offsets(io.BytesIO(segment_bytes(5, magic=1))) == list(range(100))


def test_decoded_records_are_left_out_likewise(tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-0"
    shutil.copytree(SEGMENTS / "4.3-kraft" / "log-tx-0", folder)
    deep = table("records", "log").deep
    assert deep is not None
    (segment,) = log.find(folder)
    found = deep.read(segment, columns=["offset", "record_type"], read_committed=True)
    assert [row["offset"] for one in found for row in one.to_pylist()] == [0, 1, 2, 3, 10, 11, 12, 13]


@pytest.mark.parametrize("seed", range(8))
def test_neighbours_are_decided_as_each_alone_whatever_stands_between_them(seed: int) -> None:
    """A marker may be no row, producers may take turns, and offsets of a damaged segment may go back."""
    some = random.Random(seed)
    known = _Log()
    marks = sorted(some.sample(range(400), 30))
    known.mark(
        np.array([some.randrange(3) for _ in marks]),
        np.array(marks),
        np.array([some.random() < 0.5 for _ in marks]),
    )
    rows: list[tuple[int, int | None, bool, bool]] = []
    at = 0
    while len(rows) < 300:
        producer, transactional = some.choice([None, 0, 1, 2]), some.random() < 0.8
        for _ in range(some.randrange(1, 20)):
            at += some.choice([1, 1, 1, 30])
            if some.random() < 0.01:
                at = some.randrange(400)
            rows.append((at, producer, transactional, some.random() < 0.05))
    kinds = (pa.int64(), pa.int64(), pa.bool_(), pa.bool_())
    schema = pa.schema(list(zip(NEEDED, kinds, strict=True)))
    batch = pa.RecordBatch.from_pylist([dict(zip(NEEDED, row, strict=True)) for row in rows], schema)
    kept = Decided(known).kept(batch)
    assert kept is not None
    each = [Decided(known).kept(batch.slice(row, 1)) for row in range(len(rows))]
    assert kept.tolist() == [one is None or bool(one[0]) for one in each]
    assert 0 < int(kept.sum()) < len(rows)
