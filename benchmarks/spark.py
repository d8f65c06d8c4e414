"""What Spark adds to reading captures: each table beside an identity source of the same batches.

    python benchmarks/spark.py [--size 100] [--files 2] [--rounds 5] [--warm 5] [--only TEXT] [--export | --payloads]

The captures are those of ``benchmarks/capture.py``. The identity source is a Python data source that maps files of
Arrow batches, made before by ``kwire.capture.read`` of the same captures and columns, and yields them: what it takes is
what Spark takes for any Python data source that gives these rows. Both are written to Spark's ``noop`` sink, one task
for each file, in workers that have done it before; rounds are interleaved, figures are medians: of the time on the
clock, and of the CPU time of this process and all below it, which is what to compare on a busy machine (Linux). What
any query costs, whatever it reads, is some 80 ms in both, so ratios of small captures are nearer to 1 than those of
large ones: say the size with the figure. The JVM goes on compiling for some 20 rounds (``--warm``: rounds that do not
count). With ``--export``, the rows are written as Parquet in place of that: by ``kwire.spark.export``, and by
``df.write.parquet``; how many of them there are then is looked at. With
``--payloads``, what decoding a column of payloads takes, beside a function that gives back its column, and one that is
written by hand on kafka-python's decoder of records: the cases of ``benchmarks/payloads.py --spark``. Needs
``kwire[spark]`` and Java.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

import kwire.spark
from kwire import capture

sys.path.insert(0, str(Path(__file__).parent))

from _spent import spent_by_all
from capture import CASES, case
from payloads import compared

FOUR = ("offset", "timestamp", "key", "value")
QUERIES: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    "records, 4 columns": ("100 records/batch", "records", FOUR),
    "records, all columns": ("100 records/batch", "records", None),
    "records, 4 columns, 1 a batch": ("1 record/batch", "records", FOUR),
    "records, all columns, 1 a batch": ("1 record/batch", "records", None),
    "frames": ("1 record/batch", "frames", None),
}
"""Which capture, table and columns."""


class Identity(DataSource):
    """Files of Arrow batches as they are: ``paths``, with a line break between them."""

    @classmethod
    def name(cls) -> str:
        return "identity"

    def _paths(self) -> list[str]:
        return self.options["paths"].split("\n")

    def schema(self) -> StructType:
        with pa.memory_map(self._paths()[0]) as file:
            return from_arrow_schema(pa.ipc.open_file(file).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return IdentityReader(self._paths())


class IdentityReader(DataSourceReader):
    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        with pa.memory_map(partition.value) as file:
            batches = pa.ipc.open_file(file)
            for number in range(batches.num_record_batches):
                yield batches.get_batch(number)


def made(spark: SparkSession, folder: Path, files: list[Path], name: str) -> tuple[DataFrame, DataFrame, int]:
    """What a query reads, from kwire and from the identity source, and how many rows that is."""
    _, table, chosen = QUERIES[name]
    same, rows = [], 0
    for number, file in enumerate(files):
        path = folder / f"{len(list(folder.iterdir()))}-{number}.arrow"
        with file.open("rb") as stream:
            batches = capture.read(stream, table, name=str(file), columns=chosen)
            first = next(batches)
            with pa.ipc.new_file(str(path), first.schema) as out:
                out.write_batch(first)
                rows += first.num_rows
                for batch in batches:
                    out.write_batch(batch)
                    rows += batch.num_rows
        same.append(str(path))
    reader = spark.read.format("kwire").option("table", table)
    if chosen is not None:
        reader = reader.option("columns", ",".join(chosen))
    identity = spark.read.format("identity").option("paths", "\n".join(same)).load()
    return reader.load([str(file) for file in files]), identity, rows


def spent(frame: DataFrame) -> tuple[float, float]:
    """Seconds on the clock, and of CPU."""
    begin, used = time.perf_counter(), spent_by_all()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin, spent_by_all() - used


def written(spark: SparkSession, folder: Path, files: list[Path], name: str, rounds: int) -> None:
    """Prints what it takes to write what a query reads as Parquet: by ``export``, and by Spark, which reads that."""
    _, table, chosen = QUERIES[name]
    reader = spark.read.format("kwire").option("table", table)
    if chosen is not None:
        reader = reader.option("columns", ",".join(chosen))
    paths = [str(file) for file in files]
    times: tuple[list[float], list[float]] = [], []
    ours, theirs = str(folder / "exported"), str(folder / "written")
    for turn in range(1 + rounds):
        begin = time.perf_counter()
        kwire.spark.export(spark, paths, ours, table=table, columns=chosen, mode="overwrite")
        between = time.perf_counter()
        reader.load(paths).write.parquet(theirs, mode="overwrite")
        if turn:
            times[0].append(between - begin)
            times[1].append(time.perf_counter() - between)
    counts = [spark.read.parquet(one).count() for one in (ours, theirs)]
    sizes = [sum(file.stat().st_size for file in Path(one).glob("*.parquet")) for one in (ours, theirs)]
    fast, slow = map(statistics.median, times)
    print(
        f"{name:32} {counts[0]:10,} and {counts[1]:,} rows   export {fast:5.2f} s, {sizes[0] / 1e6:.0f} MB   "
        f"df.write.parquet {slow:5.2f} s, {sizes[1] / 1e6:.0f} MB: {slow / fast:4.2f} x",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=100, help="megabytes of each capture, in all files together")
    parser.add_argument("--files", type=int, default=2, help="files of each capture, and tasks at once")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=5, help="rounds before those that count")
    parser.add_argument("--only", default="", help="queries whose name contains this")
    parser.add_argument("--export", action="store_true", help="what it takes to write Parquet")
    parser.add_argument("--payloads", action="store_true", help="what it takes to decode columns of payloads")
    args = parser.parse_args()
    if args.payloads:
        compared(400_000, args.rounds, args.only, [])
        return
    builder: Any = SparkSession.builder
    spark = (
        builder.master(f"local[{args.files}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    kwire.spark.register(spark)
    spark.dataSource.register(Identity)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files: dict[str, list[Path]] = {}
        for query, (title, _, _) in QUERIES.items():
            if args.only not in query or title in files:
                continue
            data = case(title, args.size // args.files, **CASES[title]).data
            files[title] = [folder / f"{len(files)}-{number}.pcap" for number in range(args.files)]
            for file in files[title]:
                file.write_bytes(data)
        for query, (title, _, _) in QUERIES.items():
            if args.only not in query:
                continue
            if args.export:
                written(spark, folder, files[title], query, args.rounds)
                continue
            own, identity, rows = made(spark, folder, files[title], query)
            times: tuple[list[tuple[float, float]], ...] = ([], [])
            for turn in range(args.warm + args.rounds):
                for one, frame in zip(times, (own, identity), strict=True):
                    taken = spent(frame)
                    if turn >= args.warm:
                        one.append(taken)
            print(f"{query:32} {rows:10,} rows", end="")
            for which, kind in enumerate(("clock", "CPU")):
                ours, theirs = (statistics.median(taken[which] for taken in one) for one in times)
                print(f"   {kind} {ours:5.2f} s, identity {theirs:5.2f} s: {ours / theirs:4.2f} x", end="")
            print(flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
