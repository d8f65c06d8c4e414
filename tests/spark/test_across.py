"""Captures that were cut into files are read as one: the rows are those of the one that was not cut."""

from __future__ import annotations

import ast
import datetime
import io
import itertools
import json
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import busy_capture
import pyarrow as pa
import pytest
from packets import pcap
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from split_captures import compared

import kwire.spark
from kwire import capture, tables
from kwire.capture.compressed import Around, DamagedError
from kwire.capture.splits import Split
from kwire.errors import KwireError
from kwire.spark import across
from kwire.spark.files import File, find
from kwire.spark.options import Options, spark_schema
from kwire.spark.reader import FileReader
from kwire.spark.sensors import SensorFiles, parts_of
from kwire.spark.workers import LackError
from kwire.testing import packets

pytestmark = pytest.mark.wide

SHARE = Path(__file__).parents[1] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
COLUMNS = {
    "frames": ["timestamp", "client_port", "broker_port", "api_name", "correlation_id", "size", "latency_ms", "status"],
    "records": ["topic", "topic_id", "partition", "offset", "key", "value", "status", "error"],
}

Rows = Iterable[dict[str, Any]]


def plain(rows: Rows) -> Counter[str]:
    return Counter(repr({name: str(value) for name, value in row.items()}) for row in rows)


def uncut(table: str) -> Counter[str]:
    data = io.BytesIO(SHARE.read_bytes())
    return plain(row for batch in capture.read(data, table, columns=COLUMNS[table]) for row in batch.to_pylist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The capture in four files; the order of their names is not that of their times."""
    made = tmp_path_factory.mktemp("across")
    whole = packets.read(SHARE.read_bytes())
    places = [0, 90, 200, 330, len(whole)]
    for name, (a, b) in zip("dbca", itertools.pairwise(places), strict=True):
        (made / f"{name}.pcap").write_bytes(packets.write_pcap(whole[a:b], nano=True))
    return made


@pytest.mark.parametrize("part_bytes", [0, 20_000, None])
def test_all_at_once(spark: SparkSession, folder: Path, part_bytes: int | None) -> None:
    (folder / "e.pcap").write_bytes(b"nothing")
    columns = ["capture", *COLUMNS["records"]]
    frame = kwire.spark.read(str(folder), table="records", columns=columns, buckets=2, part_bytes=part_bytes)
    rows = frame.toArrow().to_pylist()
    (folder / "e.pcap").unlink()
    assert [row["status"] for row in rows if row["capture"].endswith("e.pcap")] == ["bad_file"]
    assert {Path(row["capture"]).name for row in rows} > {"b.pcap", "c.pcap"}
    found = plain({name: row[name] for name in COLUMNS["records"]} for row in rows if row["status"] != "bad_file")
    assert found == uncut("records")


def test_one_after_the_other(spark: SparkSession, folder: Path) -> None:
    for table, columns in COLUMNS.items():
        frame = spark.read.format("kwire").option("table", table).option("across", "true").load(str(folder))
        assert plain(frame.select(*columns).toArrow().to_pylist()) == uncut(table)


def test_a_large_file_is_read_in_splits(spark: SparkSession, tmp_path: Path) -> None:
    whole = packets.read(SHARE.read_bytes())
    # Packets that are not IP make it large.
    more = [[one, *(one._replace(data=bytes(12) + b"\x08\x06" + bytes(1400)) for _ in range(8))] for one in whole]
    file = tmp_path / "large.pcap"
    file.write_bytes(packets.write_pcap([one for some in more for one in some], nano=True))
    assert file.stat().st_size > 4 << 20
    frame = kwire.spark.read(str(file), table="frames", maxSplitBytes="1MiB")
    rows = frame.select("capture", "frame", "connection", *COLUMNS["frames"]).toArrow().to_pylist()
    assert {row["capture"] for row in rows} == {str(file)}
    assert len({row["frame"] >> 32 for row in rows}) == len(find([str(file)])[0].splits(1 << 20)) > 2
    assert len({row["frame"] for row in rows}) == len(rows)
    assert plain({name: row[name] for name in COLUMNS["frames"]} for row in rows) == uncut("frames")
    with pytest.raises(KwireError, match="not '10': the option 'maxSplitBytes' is a number of bytes"):
        kwire.spark.read(str(file), maxSplitBytes=10)
    with pytest.raises(KwireError, match=r"'maxPartitionBytes' is for spark\.read"):
        kwire.spark.read(str(file), maxPartitionBytes=10)
    with pytest.raises(PySparkException, match="'maxSplitBytes' is for kwire"):
        spark.read.format("kwire").option("maxSplitBytes", "1MiB").load(str(file)).count()


@pytest.mark.parametrize(
    ("size", "at_once", "splits"),
    [(1300, 1, 2), (1300, 2, 2), (1300, 4, 4), (1300, 64, 6), (3000, 2, 4), (200, 2, 1), (0, 2, 0), (100_000, 64, 128)],
)
def test_a_split_for_each_task_that_runs_at_once(size: int, at_once: int, splits: int) -> None:
    """MiB of a capture, and splits of it: of 256 to 1024 MiB."""
    assert -(-(size << 20) // across._split_bytes(size << 20, at_once)) == splits


def test_parts_are_the_same_in_all_reads(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though executors come and go: numbers of frames have the places of parts in them."""

    def running(count: int) -> property:
        return property(lambda _: count)

    whole = sorted(kwire.spark.read(str(folder)).select("capture", "connection", "frame").collect())
    monkeypatch.setattr(across, "LEAST_PART", 1)
    across._first_parallelism.cache_clear()
    numbers = []
    for now in (1, 64):
        monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", running(now))
        numbers.append(sorted(kwire.spark.read(str(folder)).select("capture", "connection", "frame").collect()))
    across._first_parallelism.cache_clear()
    assert numbers[0] == numbers[1] != whole


def test_sensors_are_kept_apart(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    for sensor in ("one", "two"):
        (tmp_path / sensor).mkdir()
        for file in folder.iterdir():
            (tmp_path / sensor / file.name).write_bytes(file.read_bytes())
    frame = spark.read.format("kwire").options(across="true", sensor="1").load(str(tmp_path))
    found = plain(frame.select(*COLUMNS["frames"]).toArrow().to_pylist())
    assert found == Counter({row: 2 * count for row, count in uncut("frames").items()})
    with pytest.raises(KwireError, match=r"nothing in .* matches 'broker-'"):
        kwire.spark.read(str(tmp_path), sensor="broker-")


def test_what_cannot_be_put_together_is_refused(spark: SparkSession, folder: Path) -> None:
    with pytest.raises(KwireError, match="the table connections has rows of whole files"):
        kwire.spark.read(str(folder), table="connections")
    with pytest.raises(PySparkException, match="the option 'sensor' goes with 'across'"):
        spark.read.format("kwire").option("sensor", "1").load(str(folder)).schema  # noqa: B018


# --- 64 connections ---------------------------------------------------------------------------------------------------

RECORDS = [*tables.table("records").schema.names, "committed_offset"]


@cache
def shopped() -> tuple[str, ...]:
    """The records of the capture of 64 connections that was not cut."""
    data = io.BytesIO(pcap(busy_capture.capture(), nano=True))
    return rows_in_order(row for batch in capture.read(data, "records", columns=RECORDS) for row in batch.to_pylist())


def cut_into(folder: Path, count: int, seed: int = 0) -> list[str]:
    """That capture in so many files, in any order of their names."""
    whole = busy_capture.capture()
    names = [f"{k:03}.pcap" for k in range(count)]
    random.Random(seed).shuffle(names)
    for k, name in enumerate(names):
        part = whole[len(whole) * k // count : len(whole) * (k + 1) // count]
        (folder / name).write_bytes(pcap(part, nano=True))
    return names


@pytest.mark.parametrize(
    ("files", "buckets", "part_bytes"), [(7, 1, 0), (7, 5, 0), (60, None, 0), (60, 3, 40_000), (60, None, None)]
)
def test_64_connections(
    spark: SparkSession, tmp_path: Path, files: int, buckets: int | None, part_bytes: int | None
) -> None:
    cut_into(tmp_path, files, seed=files)
    frame = kwire.spark.read(str(tmp_path), table="records", columns=RECORDS, buckets=buckets, part_bytes=part_bytes)
    rows = frame.toArrow().to_pylist()
    assert len({row["capture"] for row in rows}) > files / 2
    assert rows_in_order(rows) == shopped()


def test_64_connections_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    cut_into(tmp_path, 7)
    reader = spark.read.format("kwire").option("table", "records").option("across", "true")
    frame = reader.option("columns", ",".join(RECORDS)).load(str(tmp_path))
    assert rows_in_order(frame.toArrow().to_pylist()) == shopped()


def test_a_last_file_that_is_gone_fails_the_task(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of the files before may wait for what it says: none is given as if that were known."""
    names = cut_into(tmp_path, 7)
    given = {"table": "records", "across": "true", "columns": ",".join(RECORDS), "paths": json.dumps([str(tmp_path)])}
    options = Options.of(given)
    definition = options.definition
    schema = StructType([spark_schema(definition, asked=True)[name] for name in RECORDS])
    reader = FileReader(options, schema)
    (partition,) = reader.partitions()
    (tmp_path / names[-1]).unlink()
    with pytest.raises(LackError, match="is gone: it was there when the query began"):
        for _ in reader.read(partition):
            pass


COMPARED = ["partition", "value", "status", "committed_offset"]


def rows_in_order(rows: Rows) -> tuple[str, ...]:
    """Rows without what depends on files, with times in one form."""
    return tuple(
        compared(
            {
                name: value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value
                for name, value in row.items()
            }
            for row in rows
        )
    )


KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from pyspark.sql import SparkSession
import kwire.spark
from kwire.spark import across

folder, columns = sys.argv[1], sys.argv[2].split(",")
made, stages = across.mapped, itertools.count()

def mapped(frame, function, schema):
    # The first task that has given something, of each stage, kills its worker.
    mark = os.path.join(folder, f"_stage{next(stages)}")

    def run(batches):
        for batch in function(batches):
            yield batch
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    return made(frame, run, schema)

across.mapped = mapped
builder = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false")
builder = builder.config("spark.log.level", "OFF").config("spark.driver.host", "127.0.0.1")
builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
frame = kwire.spark.read(folder, table="records", columns=columns, buckets=2, part_bytes=0)
rows = frame.toArrow().to_pylist()
print(sorted(repr(row) for row in rows))
"""


def test_tasks_that_are_killed_in_each_stage_give_the_same_when_they_are_run_again(tmp_path: Path) -> None:
    cut_into(tmp_path, 5)
    command = [sys.executable, "-c", KILLED, str(tmp_path), ",".join(COMPARED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sorted(one.name for one in tmp_path.glob("_stage*")) == ["_stage0", "_stage1", "_stage2"]
    data = io.BytesIO(pcap(busy_capture.capture(), nano=True))
    whole = [row for batch in capture.read(data, "records", columns=COMPARED) for row in batch.to_pylist()]
    assert ast.literal_eval(done.stdout) == sorted(map(repr, whole))


# --- files that cannot be read ----------------------------------------------------------------------------------------

FAILS: dict[str, list[int | None]] = {}
"""By path, for each time that a file is opened: behind which byte reading fails, -1 where opening does; None: it does
not, nor does it later."""


class Flaky:
    """A file system that fails for a time."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def open_input_file(self, path: str) -> Any:
        fails = FAILS.get(path)
        at = fails.pop(0) if fails else None
        if at == -1:
            raise OSError(5, f"no luck with {path}")
        return FlakyFile(self.files[path], path, at)


class FlakyFile:
    def __init__(self, data: bytes, path: str, at: int | None) -> None:
        self.data, self.path, self.at = data, path, at

    def size(self) -> int:
        return len(self.data)

    def read_at(self, count: int, offset: int) -> bytes:
        if self.at is not None and offset + count > self.at:
            raise OSError(f"no more luck with {self.path}")
        return self.data[offset : offset + count]

    def close(self) -> None:
        pass


class Damaged(File):
    """A file of which that says that its bytes are to blame."""

    def raw(self, begin: int = 0) -> Any:
        try:
            return DamagedStream(super().raw(begin))
        except OSError as error:
            raise DamagedError(str(error)) from None


class DamagedStream(Around):
    def read(self, size: int | None = -1, /) -> bytes:
        try:
            return bytes(self._source.read(size))
        except OSError as error:
            raise DamagedError(str(error)) from None


def in_stages(files: dict[str, bytes], part_bytes: int, kind: type[File] = Damaged) -> list[dict[str, Any]]:
    """The rows of ``frames``, as the stages of ``kwire.spark.read`` give them, one task after the other."""
    options = Options.of({"table": "frames", "paths": '["x"]'})
    found = [kind(Flaky(files), path, path, len(data), False) for path, data in files.items()]
    parts = across.parts_of(across.by_sensor(found, None), part_bytes)
    work = across._Work(options, across._Files.of(parts), 2, False)
    places = pa.RecordBatch.from_pydict({"place": list(range(len(parts)))})
    edges = [row for batch in work.scanned([places]) for row in batch.to_pylist()]
    edges.sort(key=lambda row: (row["task"], row["sensor"], row["place"]))
    states = list(work.chained([pa.RecordBatch.from_pylist(edges, schema=across._EDGES)]))
    decoding = across._Decoding(work, spark_schema(options.definition))
    return [row for batch in decoding.rows(states) for row in batch.to_pylist()]


@pytest.mark.parametrize("part_bytes", [0, 1 << 20])
@pytest.mark.parametrize(
    ("fails", "lost"),
    [
        ([-1], 0),  # when the driver looks when it begins
        ([None, -1], 0),  # in the scan, and not when it is decoded
        ([None, 0], 0),
        ([None, 65536], 65536),  # behind the first of what is fetched
        ([None] + 5 * [-1], 0),
    ],
)
def test_what_a_scan_could_not_read_is_not_read_by_others(part_bytes: int, fails: list[int | None], lost: int) -> None:
    """Its neighbours go on as if its packets had been lost."""
    whole = packets.read(SHARE.read_bytes())
    places = [0, 90, 330, 400, len(whole)]
    of_files = [whole[a:b] for a, b in itertools.pairwise(places)]
    # Packets that are not IP make the second one larger than what is fetched first.
    more = [[one, *[one._replace(data=bytes(12) + b"\x08\x06" + bytes(300))] * 3] for one in of_files[1]]
    of_files[1] = [one for some in more for one in some]
    files = {f"{k}.pcap": packets.write_pcap(some, nano=True) for k, some in enumerate(of_files)}
    assert len(files["1.pcap"]) > 200_000
    FAILS.clear()
    FAILS["1.pcap"] = list(fails)
    rows = in_stages(files, part_bytes)
    (bad,) = (row for row in rows if row["status"] == "bad_file")
    assert bad["capture"] == "1.pcap"
    assert "luck with 1.pcap" in bad["error"]
    there = packets.read(files["1.pcap"][:lost]) if lost else []
    data = packets.write_pcap([one for some in (of_files[0], there, *of_files[2:]) for one in some], nano=True)
    columns = COLUMNS["frames"]
    expected = (row for batch in capture.read(io.BytesIO(data), "frames", columns=columns) for row in batch.to_pylist())
    assert plain({name: row[name] for name in columns} for row in rows if row is not bad) == plain(expected)


@pytest.mark.parametrize("part_bytes", [0, 1 << 20])
@pytest.mark.parametrize("fails", [[-1], [None, -1], [None, 0], [None, 65536], [None, None, -1], [None, None, 65536]])
def test_a_store_that_does_not_answer_fails_each_stage(part_bytes: int, fails: list[int | None]) -> None:
    """Nothing says that the file was read."""
    whole = packets.write_pcap(packets.read(SHARE.read_bytes()) * 4, nano=True)
    assert len(whole) > 200_000
    FAILS.clear()
    FAILS["0.pcap"] = list(fails)
    with pytest.raises(KwireError, match=r"0\.pcap could not be read, and its bytes are not to blame.*luck with 0"):
        in_stages({"0.pcap": whole}, part_bytes, File)


def test_a_worker_unpacks_the_files_once(tmp_path: Path) -> None:
    """What is sent to each task is sent as often as there are files."""
    cut_into(tmp_path, 7)
    files = find([str(tmp_path)])
    sent = pickle.dumps(across._Files.of([((file,), place // 4) for place, file in enumerate(files)]))
    one, other = pickle.loads(sent), pickle.loads(sent)
    assert one is not other
    assert one[3] is other[3]
    assert one[3] == (files[3],)
    assert [one.sensor(place) for place in range(7)] == [0, 0, 0, 0, 1, 1, 1]
    assert one.sensors == 2


def test_small_files_are_read_together() -> None:
    def file(name: str, size: int | None) -> File:
        return File(None, name, name, size, False)

    one = SensorFiles((file("a", 10), file("b", 80), file("c", 20), file("d", None), file("e", 300)), tuple(range(5)))
    other = SensorFiles((file("f", 1),), (5,))
    split = SensorFiles(tuple(replace(file("g", 5), split=Split(k, k + 1, {})) for k in range(2)), (6, 7))
    parts = parts_of([one, other, split], 100)
    assert [("".join(file.name for file in files), sensor) for files, sensor in parts] == [
        ("ab", 0), ("c", 0), ("d", 0), ("e", 0), ("f", 1), ("g", 2), ("g", 2)
    ]  # fmt: skip
    assert len(parts_of([one, other, split], 0)) == 8
