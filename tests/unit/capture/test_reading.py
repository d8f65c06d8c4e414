"""From a source of bytes to rows: sources of every kind, progress, notes, and what is left out."""

from __future__ import annotations

import gzip
import io
import random
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_captures import brief, exchange, read, several
from packets import (
    Connection,
    pcap,
    request,
    response,
)

from kwire import capture
from kwire.capture import reading as reading_module
from kwire.capture.reading import Reading
from kwire.errors import CaptureError


def test_a_capture_without_kafka_is_no_error_but_told() -> None:
    notes: list[str] = []
    assert read(pcap(Connection().open().packets), on_note=notes.append) == []
    assert notes == [
        "no Kafka traffic among 3 packets and 1 TCP connections",
        "left out: 1 connection without a byte (port 9092: 1)",
    ]


def test_progress_counts_the_bytes_read() -> None:
    told: list[int] = []
    data = pcap(exchange().packets)
    read(data, progress=told.append, window=100)
    assert told == sorted(told)
    assert told[-1] == len(data)


def test_a_source_may_be_a_path_which_is_the_name_of_its_rows_too(tmp_path: Path) -> None:
    path = tmp_path / "broker.pcap"
    path.write_bytes(pcap(exchange(count=2).packets))
    for source in (path, str(path), [path], [str(path)]):
        rows = [row for batch in capture.read(source) for row in batch.to_pylist()]
        assert brief(rows) == several(2)
        assert {row["capture"] for row in rows} == {str(path)}
    (batch,) = capture.read(path, name="mine")
    assert set(batch.column("capture").to_pylist()) == {"mine"}
    assert [name for name, _ in capture.read(path, tables=["frames", "messages"])] == ["frames", "messages"]
    with pytest.raises(FileNotFoundError, match=r"none\.pcap"):
        capture.read(tmp_path / "none.pcap")


def test_a_source_may_give_less_than_it_is_asked_for() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, 7))

    source = Slow(pcap(exchange(count=2).packets))
    assert brief([row for batch in capture.read(source) for row in batch.to_pylist()]) == several(2)


def test_sources_that_write_in_place_have_the_rows_of_those_that_do_not(tmp_path: Path) -> None:
    packets = exchange(count=5).packets
    data, cut = pcap(packets), pcap(packets)[:-3]
    (tmp_path / "a.pcap").write_bytes(data)

    class Plain:
        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def read(self, size: int, /) -> bytes:
            return self._data.read(size)

    expected = rows_of(Plain(data), window=1 << 20)
    assert len(expected) == 10
    for window in (300, len(data) - 1, len(data), 1 << 20):
        with (tmp_path / "a.pcap").open("rb") as buffered, (tmp_path / "a.pcap").open("rb", buffering=0) as raw:
            packed = pa.CompressedInputStream(io.BytesIO(gzip.compress(data)), "gzip")
            for source in (io.BytesIO(data), buffered, raw, packed):
                assert rows_of(source, window=window) == expected
        with pytest.raises(CaptureError, match="truncated"):
            rows_of(io.BytesIO(cut), window=window)


def test_the_more_frames_there_are_the_smaller_windows_become(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "WINDOW", 1 << 14)
    monkeypatch.setattr(reading_module, "LEAST_WINDOW", 1 << 12)
    monkeypatch.setattr(reading_module, "FRAMES_AT_ONCE", 40)
    filler = Connection(client=("10.0.0.9", 40_009), mss=1 << 15).open().send_raw(b"\xff" * (1 << 16)).packets
    data = pcap([*exchange(count=200).packets, *filler, *filler])

    def windows(window: int | None) -> list[int]:
        reading = Reading(io.BytesIO(data), window=window)
        return [reading.window for _ in reading]

    dense, *others = windows(None)
    assert dense == 1 << 12 < others[-1]
    assert set(windows(5000)) == {5000}


def rows_of(source: Any, window: int) -> list[dict[str, Any]]:
    return [row for batch in capture.read(source, window=window) for row in batch.to_pylist()]


def test_notes_are_told_at_the_end_only_and_before_an_error() -> None:
    packets = exchange(count=20).packets
    notes: list[str] = []
    batches = capture.read(io.BytesIO(pcap(packets, snaplen=75)), window=200, on_note=notes.append)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert notes == []
    with pytest.raises(CaptureError, match="truncated"):
        read(pcap(packets, snaplen=75)[:-1], on_note=notes.append)
    assert "cut off by the snapshot length" in notes[0]


def test_a_compressed_capture_that_is_cut_off_costs_only_what_is_behind_the_cut() -> None:
    chance = random.Random(5)
    connection = Connection().open()
    for number in range(2000):
        connection.send(request(3, 1, number, struct.pack(">ih", 1, 300) + chance.randbytes(300))).answer(
            response(number, bytes(8))
        )
    plain = pcap(connection.packets)
    whole = len(list(read(plain)))
    packed = gzip.compress(plain)
    source = pa.CompressedInputStream(io.BytesIO(packed[: len(packed) * 2 // 3]), "gzip")
    rows = 0

    def count() -> None:
        nonlocal rows
        for batch in capture.read(source):
            rows += batch.num_rows

    with pytest.raises(CaptureError, match="cannot be read any further"):
        count()
    assert whole // 2 < rows < whole


@pytest.mark.parametrize("wrong", [{"ports": [1 << 70]}, {"ports": [-1, 9092]}, {"window": 0}, {"window": -5}])
def test_what_is_no_port_or_no_window_is_a_value_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"port|window"):
        list(Reading(io.BytesIO(pcap([])), **wrong))


def test_frames_of_a_live_source_come_before_its_end() -> None:
    told: list[int] = []

    class Growing:
        """Gives a packet for each read, and fails where it is asked again before its frame was given."""

        def __init__(self) -> None:
            packets = exchange().packets
            self.parts = [pcap(packets[:1])]
            self.parts += [pcap(packets[: k + 1])[len(pcap(packets[:k])) :] for k in range(1, len(packets))]
            self.data = pcap(packets)

        def read(self, size: int) -> bytes:
            return self.parts.pop(0) if self.parts else b""

    source = Growing()
    left = []
    for frames in Reading(source, live=True, progress=told.append):
        left += [len(source.parts)] * len(frames)
    whole = read(source.data)
    assert len(left) == len(whole) > 1
    # The first one was there before the packet of the next was read.
    assert left[0] > left[1] >= 0
    assert told[-1] == len(source.data)
    assert next(iter(capture.read(Growing(), live=True))).num_rows == 1


def test_a_live_source_that_is_cut_off_says_so() -> None:
    data = pcap(exchange().packets)[:-1]
    found = capture.read(io.BytesIO(data), live=True)
    assert next(found).num_rows
    with pytest.raises(CaptureError, match="truncated"):
        list(found)
