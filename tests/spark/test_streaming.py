"""A stream over a growing folder has the rows of the batch read, each once, however often it is killed."""

from __future__ import annotations

import base64
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import kwire.spark
from kwire.errors import CaptureError, KwireError
from kwire.options import values
from kwire.spark.discovery import Memory, Taken, Terms, Waiting, files_of, first_offset
from kwire.spark.files import File
from kwire.spark.options import Options
from kwire.testing import packets

COLUMNS = "capture string, correlation_id int, api_name string, size bigint, status string, error string"
BEGIN = datetime(2026, 11, 22, tzinfo=UTC)


# --- which files ------------------------------------------------------------------------------------------------------


def file(name: str, seconds: float = 0, size: int = 10) -> File:
    return File(fs.LocalFileSystem(), f"/f/{name}", f"/f/{name}", size, False, BEGIN + timedelta(seconds=seconds))


def take(
    offset: dict[str, Any], listed: list[File], closed: list[File] | None = None, /, **terms: Any
) -> dict[str, Any]:
    found = Memory.of(offset).next(listed, listed if closed is None else closed, Terms(**terms))
    return offset if found is None else found


def names(start: dict[str, Any], end: dict[str, Any], files: list[File]) -> list[str]:
    return [one.name.removeprefix("/f/") for one in files_of(start, end, files)]


def test_files_are_taken_once_in_order_of_time_within_the_limits_of_a_batch() -> None:
    files = [file("c", 3), file("b", 2, size=100), file("a", 2), file("d", 4)]
    offset, batches = first_offset(), []
    while (after := take(offset, files, files=2, size=110)) != offset:
        batches.append(names(offset, after, files))
        offset = after
    assert batches == [["a", "b"], ["c", "d"]]
    # One file at least, whatever its size; everything where the trigger asks for it.
    assert names(first_offset(), take(first_offset(), files, size=1), files) == ["a"]
    whole = Memory().next(files, files, Terms(files=1), everything=True)
    assert whole is not None
    assert names(first_offset(), whole, files) == ["a", "b", "c", "d"]


def test_an_offset_has_the_times_of_its_files() -> None:
    files = [file("c", 3), file("b", 2), file("a", 2)]
    known = Memory.of(take(first_offset(), files)).known
    assert sorted(known.values()) == [round((BEGIN.timestamp() + at) * 1e6) for at in (2, 2, 3)]


def test_late_files_are_taken_unless_they_are_older_than_what_was_forgotten() -> None:
    old = [file(f"{n:04d}", n) for n in range(100, 200)]
    offset = take(first_offset(), old, remember=10)
    size = len(str(offset))
    late, too_late = file("late", 195.5), file("too late", 150.5)
    after = take(offset, [*old, late, too_late], remember=10)
    assert names(offset, after, [*old, late]) == ["late"]
    assert take(after, [*old, late, too_late], remember=10) == after
    for n in range(300):
        old.append(file(f"{n + 200:04d}", n + 200))
        assert names(after, after := take(before := after, old, remember=10), old) in ([], [old[-1].name[3:]]), before
    assert len(str(after)) < size


def test_nothing_is_forgotten_that_is_younger_than_a_file_that_waits() -> None:
    waits, others = file("waits", 0), [file(f"{n}", n) for n in range(1, 50)]
    offset = take(first_offset(), [waits, *others], others, remember=5)
    after = take(offset, [waits, *others], remember=5)
    assert names(offset, after, [waits, *others]) == ["waits"]
    # Of many files that were written in one instant, as many as a file system has of them, each is taken once.
    same = [file(f"{n}", 7) for n in range(40)]
    offset, taken = first_offset(), []
    while (after := take(offset, same, files=3, remember=5)) != offset:
        taken += names(offset, after, same)
        offset = after
    assert sorted(taken) == sorted(one.name.removeprefix("/f/") for one in same)


def test_a_file_is_closed_when_a_later_one_of_its_series_exists_or_it_is_idle() -> None:
    now = BEGIN.timestamp() + 100
    files = [file("s1-1.pcap", 95), file("s1-2.pcap", 99), file("s2-1.pcap", 98), file("s2-0.pcap", 60)]
    waiting = Waiting(Terms(idle=30))
    assert [one.name[3:] for one in waiting.closed(files, now, 0)] == ["s2-0.pcap"]
    # The clock of a file system may be ahead: what did not change for so long while it was looked at is closed as well.
    files[2] = file("s2-1.pcap", 98, size=11)
    assert [one.name[3:] for one in waiting.closed(files, now, 29)] == ["s2-0.pcap"]
    assert [one.name[3:] for one in waiting.closed(files, now, 31)] == ["s1-1.pcap", "s1-2.pcap", "s2-0.pcap"]
    waiting = Waiting(Terms(idle=30, series=r"s\d"))
    assert [one.name[3:] for one in waiting.closed(files, now, 0)] == ["s1-1.pcap", "s2-0.pcap"]
    with pytest.raises(KwireError, match="the option 'series': nothing in /f/x matches"):
        waiting.closed([file("x")], now, 0)


def test_a_batch_has_the_bytes_that_were_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(bytes(100))
    found = Taken(fs.LocalFileSystem(), str(path), "a", 60, False)
    assert len(found.open().read(-1)) == 60
    path.write_bytes(bytes(50))
    stream = found.open()
    assert stream.read(4) == bytes(4)
    with pytest.raises(OSError, match="it has 50 bytes, and had 60"):
        stream.read(-1)


def test_an_offset_that_is_of_something_else_is_refused() -> None:
    for wrong in ({}, {"kwire": 2}, {**first_offset(), "known": "AAAA"}, {**first_offset(), "batch": "x"}):
        with pytest.raises(KwireError, match="the checkpoint is of another source"):
            Memory.of(wrong)
    bomb = {**first_offset(), "known": base64.b64encode(zlib.compress(bytes(1 << 20))).decode()}
    for wrong in (
        bomb,
        {**first_offset(), "batch": 1e999},
        {**first_offset(), "floor": 1 << 70},
        first_offset() | {"known": ""},
    ):
        with pytest.raises(KwireError, match="the checkpoint is of another source"):
            Memory.of(wrong)
    for name in ("files", "changed"):
        for value in (None, 5, [5], [[1, 2]], [["a", "x"]], [["a", 1e999]], [["a"]], [[[], 1]], [None]):
            offset = take(first_offset(), [file("a")]) | {name: value}
            with pytest.raises(KwireError, match="the checkpoint has an offset that kwire has not written"):
                files_of(first_offset(), offset, [])
    second = take(take(first_offset(), [file("a")]), [file("a"), file("b", 1)])
    with pytest.raises(KwireError, match="the checkpoint has lost a batch: 2 follows 0"):
        files_of(first_offset(), second, [])


def test_options_that_are_none_fail_at_load(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="not '0': the option 'maxFilesPerTrigger' is a number of files"):
        spark.readStream.format("kwire").option("maxFilesPerTrigger", "0").load("/")
    for name, value, said in (
        ("maxbytespertrigger", "much", "not 'much': the option 'maxBytesPerTrigger' is bytes, such as 1000000 or 2g"),
        ("idle", "soon", "not 'soon': the option 'idle' is a time, such as 90s, 5m or 1h"),
        ("series", "(", "the option 'series': it is no pattern"),
    ):
        with pytest.raises(KwireError, match=said):
            Terms.of(values({name.lower(): value}))


@pytest.mark.parametrize("name", ["sensor", "stateLocation", "stateTimeout"])
def test_what_goes_with_across_is_refused_without_it(name: str) -> None:
    with pytest.raises(KwireError, match=f"the option '{name}' goes with 'across'"):
        Options.of({"path": "/", name.lower(): "1"})


def test_options_are_read_as_spark_has_them() -> None:
    given = {"maxfilespertrigger": "7", "maxbytespertrigger": "2g", "idle": "1.5m", "remember": "20"}
    terms = Terms.of(values(given))
    assert (terms.files, terms.size, terms.idle, terms.remember) == (7, 2 << 30, 90.0, 20)
    assert Terms.of(values({"maxbytespertrigger": "12 MiB"})).size == 12 << 20


# --- queries ----------------------------------------------------------------------------------------------------------


class Sink:
    """The rows of each batch, and what kills the query."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Any]] = {}
        self.repeated = 0
        self.dies: Callable[[int, str], bool] = lambda batch, when: False

    def __call__(self, frame: DataFrame, batch: int) -> None:
        if self.dies(batch, "before"):
            raise RuntimeError("killed")
        rows = sorted(map(tuple, frame.collect()), key=repr)
        if batch in self.batches:
            assert rows == self.batches[batch]
            self.repeated += 1
        self.batches[batch] = rows
        if self.dies(batch, "after"):
            raise RuntimeError("killed")

    @property
    def rows(self) -> Counter[Any]:
        return Counter(row for rows in self.batches.values() for row in rows)


def stream(spark: SparkSession, folder: Path, **options: object) -> DataFrame:
    return spark.readStream.format("kwire").schema(COLUMNS).options(**options).load(str(folder))


def run(frame: DataFrame, sink: Sink, checkpoint: Path) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


@pytest.fixture
def folder(captures: Path, tmp_path: Path) -> Path:
    """A capture in four files, written one second after the other, and something else."""
    made = tmp_path / "growing"
    made.mkdir()
    whole = packets.read((captures / "first-light.pcap").read_bytes())
    step = len(whole) // 4 + 1
    for n in range(4):
        path = made / f"s-{n}.pcap"
        path.write_bytes(packets.write_pcap(whole[n * step : (n + 1) * step]))
        os.utime(path, (BEGIN.timestamp() + n, BEGIN.timestamp() + n))
    (made / "notes.json").write_text("{}")
    (made / "broken.pcap").write_bytes(b"nothing")
    return made


@pytest.mark.wide
def test_killed_between_and_within_batches_a_stream_has_the_rows_of_the_batch_read(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    expected = Counter(map(tuple, spark.read.format("kwire").schema(COLUMNS).load(str(folder)).collect()))
    checkpoint, sink = tmp_path / "checkpoint", Sink()
    later = tmp_path / "s-3.pcap"
    shutil.move(folder / "s-3.pcap", later)
    for dies in ((0, "after"), (1, "before")):
        sink.dies = lambda batch, when, dies=dies: (batch, when) == dies
        with pytest.raises(StreamingQueryException, match="killed"):
            run(stream(spark, folder, maxFilesPerTrigger=2, idle="0s"), sink, checkpoint).awaitTermination()
    # What is read again has the bytes that were taken, although the file has grown; the rest is told of.
    grown = folder / "s-1.pcap"
    taken = grown.read_bytes()
    grown.write_bytes(taken + taken[-100:])
    shutil.move(later, folder / "s-3.pcap")
    sink.dies = lambda batch, when: False
    run(stream(spark, folder, maxFilesPerTrigger=2, idle="0s"), sink, checkpoint).awaitTermination()
    # Killed behind the sink, before Spark noted that the batch is done.
    last = max((checkpoint / "commits").iterdir(), key=lambda one: (one.name.isdecimal(), one.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()
    run(stream(spark, folder, maxFilesPerTrigger=2, idle="0s"), sink, checkpoint).awaitTermination()
    assert sink.repeated == 2
    told = [row for row in sink.rows if "it was written to after it was read" in str(row)]
    assert [(row[0], row[4]) for row in told] == [(str(grown), "bad_file")]
    assert sink.rows - Counter(told) == expected
    assert len(sink.batches) == 4
    assert sum(expected.values()) > 208


@pytest.mark.wide
def test_a_stream_goes_on_with_files_that_are_closed_later(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    (folder / "broken.pcap").unlink()
    shutil.move(folder / "s-3.pcap", tmp_path / "s-3.pcap")
    (folder / "s-2.pcap").touch()  # its series has no later file, and it is not idle
    frame, sink = stream(spark, folder, idle="1h", series="s-", maxBytesPerTrigger="10m", pathGlobFilter="s-*"), Sink()
    started = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        started.processAllAvailable()
        assert {Path(row[0]).name for row in sink.rows} == {f"s-{n}.pcap" for n in range(2)}
        shutil.copy(tmp_path / "s-3.pcap", folder / "s-3.pcap")
        while len(sink.batches) < 2 and started.isActive:
            started.processAllAvailable()
    finally:
        started.stop()
    assert {Path(row[0]).name for row in sink.batches[1]} == {"s-2.pcap"}


@pytest.mark.wide
def test_what_cannot_be_streamed_is_refused_with_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(KwireError, match=r"the option 'across' is for spark\.read"):
        kwire.spark.KwireDataSource({"path": "/", "across": "true"}).streamReader(kwire.spark.table_schema("frames"))
    with pytest.raises(PySparkException, match=r"the option 'idle' is for streams: spark\.readStream"):
        spark.read.format("kwire").option("idle", "5m").load(str(tmp_path)).collect()
    with pytest.raises(StreamingQueryException, match="no such file"):
        run(stream(spark, tmp_path / "nowhere"), Sink(), tmp_path / "checkpoint").awaitTermination()
    with pytest.raises(CaptureError, match="does not say when files were written"):
        Memory().next([], [File(fs.LocalFileSystem(), "a", "a", 1, False)], Terms())
