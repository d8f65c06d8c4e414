"""The records and batches of log segments: whole, cut off, damaged."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from segments_made import segment_bytes
from valid_batches import valid

from kwire import log
from kwire.errors import CaptureError
from kwire.kernels.engine import Engine
from kwire.kernels.segments import resync
from kwire.log import regions
from kwire.records import Codec, Record, batching, decode, encode

pytestmark = pytest.mark.usefixtures("engine")


def table(source: Any, **options: Any) -> pa.Table:
    found = list(valid(log.read(source, **options)))
    return pa.Table.from_batches(found, schema=found[0].schema if found else log.RECORDS)


def small_windows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setitem(regions.regions.__kwdefaults__, "size", size)


def test_the_records_of_a_segment_become_rows(partition: Path) -> None:
    data = segment_bytes()
    made = table(log.find(partition)[0])
    records = [one for each in decode(data) for one in each.records]
    assert made.schema == log.RECORDS
    assert made.column("offset").to_pylist() == list(range(1000))
    assert made.column("value").to_pylist() == [one.value for one in records]
    positions = [each.position for each in decode(data) for _ in each.records]
    assert made.column("position").to_pylist() == positions
    assert set(made.column("topic").to_pylist()) == {"my-topic"}
    assert set(made.column("partition").to_pylist()) == {7}
    assert set(made.column("status").to_pylist()) == {"ok"}
    assert set(made.column("error").to_pylist()) == {None}


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("size", [64, 1000, 5000])
@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("magic", [1, 2])
def test_windows_do_not_show(monkeypatch: pytest.MonkeyPatch, magic: int, codec: Codec, size: int) -> None:
    data = segment_bytes(codec=codec, magic=magic)
    whole = table(io.BytesIO(data))
    batches = pa.Table.from_batches(valid(log.batches(io.BytesIO(data))))
    small_windows(monkeypatch, size)
    notes: list[str] = []
    assert table(io.BytesIO(data), on_note=notes.append).combine_chunks() == whole.combine_chunks()
    again = pa.Table.from_batches(valid(log.batches(io.BytesIO(data))))
    assert again.combine_chunks() == batches.combine_chunks()
    assert notes == []


def test_columns_can_be_chosen(partition: Path) -> None:
    made = table(partition / f"{0:020}.log", columns=["value", "status", "offset"])
    assert made.schema.names == ["value", "status", "offset"]
    with pytest.raises(ValueError, match="no column 'nope'"):
        table(partition / f"{0:020}.log", columns=["nope"])
    with pytest.raises(ValueError, match="2 segments"):
        table(partition)


def test_a_last_entry_that_is_cut_off_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    data = segment_bytes(3)
    small_windows(monkeypatch, 1000)
    for cut in (1, 11, 12, 60, 2000):
        notes: list[str] = []
        made = table(io.BytesIO(data[:-cut]), on_note=notes.append)
        assert made.num_rows == 40
        assert set(made.column("status").to_pylist()) == {"ok"}
        assert len(notes) == 1
        assert "at the end belong to an entry" in notes[0]


@pytest.mark.parametrize("zeros", [1, 16, 17, 10_000])
def test_zeros_at_the_end_are_space_not_used_yet(monkeypatch: pytest.MonkeyPatch, zeros: int) -> None:
    data = segment_bytes(3)
    for size in (1000, 1 << 20):
        small_windows(monkeypatch, size)
        notes: list[str] = []
        made = table(io.BytesIO(data + bytes(zeros)), on_note=notes.append)
        assert made.num_rows == 60
        assert set(made.column("status").to_pylist()) == {"ok"}
        # What is shorter than the beginning of an entry may be one that was not written to its end.
        assert zeros < 17 or notes == [f"{zeros} bytes at the end are zeros: space that was allocated in advance"]


class Breaking(io.BytesIO):
    """A stream that fails after its bytes."""

    def readinto(self, buffer: Any, /) -> int:
        got = super().readinto(buffer)
        if not got:
            raise OSError("the store has gone")
        return got


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_a_stream_that_fails_has_given_its_rows_before(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    data = segment_bytes(3)
    small_windows(monkeypatch, size)
    for read in (log.read, log.batches):
        rows: list[int] = []
        error = f"x.log at byte {len(data)}: cannot be read any further: the store"
        with pytest.raises(CaptureError, match=error) as said:
            rows.extend(batch.num_rows for batch in read(Breaking(data), name="x.log"))
        assert sum(rows) == sum(one.num_rows for one in read(io.BytesIO(data)))
        assert isinstance(said.value.__cause__, OSError)
    with pytest.raises(OSError, match="the store has gone"):
        list(log.read(Breaking(b"")))


@pytest.mark.parametrize("size", [1000, 1 << 20])
@pytest.mark.parametrize("length", [b"\0\0\0\3", b"\xff\xff\xff\xf0", b"\x7f\xff\xff\xff", b"\0\x10\0\0"])
def test_after_a_wrong_length_the_next_entry_is_found(
    monkeypatch: pytest.MonkeyPatch, length: bytes, size: int
) -> None:
    small_windows(monkeypatch, size)
    good = segment_bytes(6)
    starts = [each.position for each in decode(good)]
    bad = good[: starts[2] + 8] + length + good[starts[2] + 12 :]
    made = table(io.BytesIO(bad)).to_pylist()
    assert [one["offset"] for one in made] == [*range(40), None, *range(60, 120)]
    (wrong,) = (one for one in made if one["status"] != "ok")
    assert (wrong["status"], wrong["position"]) == ("malformed", starts[2])
    assert wrong["error"] == f"{starts[3] - starts[2]} bytes that are no entry"
    again = pa.Table.from_batches(log.batches(io.BytesIO(bad))).to_pylist()
    assert [one["base_offset"] for one in again] == [0, 20, None, 60, 80, 100]


def test_what_looks_like_entries_everywhere_does_not_end_the_search() -> None:
    """Around such bytes 5 of 1,005 good records were found."""
    good = segment_bytes(205, each=1)
    fifth = [each.position for each in decode(good)][5]
    looks = b"\0\2\0\0\0\1" * 15_000
    made = table(io.BytesIO(good[:fifth] + looks + good[fifth:]), columns=["offset", "status", "position"]).to_pylist()
    assert [one["offset"] for one in made] == [*range(5), None, *range(5, 205)]
    assert (made[5]["status"], made[5]["position"]) == ("malformed", fifth)
    assert {one["status"] for one in made[6:]} == {"ok"}


def test_searching_for_entries_costs_no_more_than_its_effort(engine: Engine) -> None:
    """All that can be checksummed in vain is what is given and 256 bytes for each position, and 1 kB in any case."""
    looks = np.frombuffer(bytearray(b"\0\2\0\0\0\1" * 10_000), np.uint8)
    found, keep, left = engine(resync)(looks, 0, 0)
    assert (found, keep > 0, left >= 0) == (-1, True, True)
    assert left < 256 * looks.size
    good = segment_bytes(3, each=1)
    data = np.frombuffer(bytearray(b"\xff" * 10 + good), np.uint8)
    assert engine(resync)(data, 0, 0)[::2] == (10, 256 * 11)
    # A batch that is larger than the effort allows is passed over, and the next one is found.
    large = encode([Record(None, bytes(100_000))])
    data = np.frombuffer(bytearray(large + good), np.uint8)
    assert engine(resync)(data, 0, 0)[0] == len(large)
    assert engine(resync)(data, 0, len(large))[0] == 0


def test_places_that_are_damaged_cost_no_batch_of_rows_each(monkeypatch: pytest.MonkeyPatch) -> None:
    good = segment_bytes(40, each=2)
    starts = [each.position for each in decode(good)]
    bad = bytearray(good)
    for start in starts[::2]:
        bad[start + 8 : start + 12] = b"\x7f\xff\xff\xff"
    for read, each in ((log.read, 2), (log.batches, 1)):
        small_windows(monkeypatch, 1 << 20)
        (made,) = read(io.BytesIO(bad))
        assert made.column("status").to_pylist() == ["malformed", *["ok"] * each] * 20
        at = [[start] * (each if number % 2 else 1) for number, start in enumerate(starts)]
        assert made.column("position").to_pylist() == [one for some in at for one in some]
        small_windows(monkeypatch, 3000)
        assert pa.Table.from_batches(read(io.BytesIO(bad))).to_pylist() == made.to_pylist()


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rows_are_in_the_order_of_positions_however_many_make_a_batch(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    good = segment_bytes(12, each=2)
    starts = [each.position for each in decode(good)]
    bad = bytearray(good)
    for start in starts[1::3]:
        bad[start + 8 : start + 12] = b"\x7f\xff\xff\xff"
    (whole,) = log.read(io.BytesIO(bad))
    monkeypatch.setitem(batching.batch_ranges.__kwdefaults__, "most_rows", rows)
    made = list(log.read(io.BytesIO(bad)))
    assert len(made) > 1
    assert pa.Table.from_batches(made).to_pylist() == whole.to_pylist()


def test_noise_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    small_windows(monkeypatch, 1000)
    noise = b"\xff" * 5000
    (row,) = table(io.BytesIO(noise)).to_pylist()
    assert (row["status"], row["position"], row["error"]) == ("malformed", 0, "5000 bytes that are no entry")


def test_a_batch_that_cannot_be_read_is_a_row_at_its_place() -> None:
    good = encode([Record(b"k", b"v", timestamp=1)], base_offset=1)
    bad = encode([Record(b"k", b"v", timestamp=1)], base_offset=2, compression="gzip")
    bad = bad[:70] + b"!!!!" + bad[74:]
    rows = table(io.BytesIO(good + bad + good)).to_pylist()
    assert [(one["status"], one["position"]) for one in rows] == [
        ("ok", 0),
        ("malformed", len(good)),
        ("ok", len(good) + len(bad)),
    ]
    assert "gzip" in rows[1]["error"]


def test_a_wrong_checksum_is_a_status() -> None:
    data = bytearray(encode([Record(b"k", b"value", timestamp=1)]))
    data[-3] ^= 1
    (row,) = table(io.BytesIO(bytes(data))).to_pylist()
    assert (row["status"], row["error"], row["crc_ok"]) == ("corrupt", "the checksum does not match", False)
    (row,) = pa.Table.from_batches(log.batches(io.BytesIO(bytes(data)))).to_pylist()
    assert (row["status"], row["crc_ok"]) == ("corrupt", False)


def test_batches_say_what_their_headers_say() -> None:
    data = encode(
        [Record(b"k", b"v", timestamp=5), Record(b"k", b"v", timestamp=9)],
        base_offset=100,
        compression="gzip",
        producer_id=8,
        producer_epoch=1,
        base_sequence=3,
        partition_leader_epoch=6,
        is_transactional=True,
        delete_horizon=77,
    )
    data += encode([Record(b"k", b"v", timestamp=5)], base_offset=102, magic=1)
    first, second = pa.Table.from_batches(log.batches(io.BytesIO(data), name="x.log")).to_pylist()
    assert first["segment"] == "x.log"
    assert (first["base_offset"], first["last_offset"], first["count"], first["magic"]) == (100, 101, 2, 2)
    assert (first["producer_id"], first["producer_epoch"], first["base_sequence"]) == (8, 1, 3)
    assert (first["partition_leader_epoch"], first["is_transactional"], first["is_control"]) == (6, True, False)
    assert (first["delete_horizon"].microsecond, first["max_timestamp"].microsecond) == (77_000, 9_000)
    assert (first["compression"], first["crc_ok"], first["size"] + second["size"]) == ("gzip", True, len(data))
    assert (second["base_offset"], second["last_offset"], second["count"], second["magic"]) == (None, 102, None, 1)
    assert (second["producer_id"], second["is_transactional"], second["timestamp_type"]) == (None, False, "CreateTime")
