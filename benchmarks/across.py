"""What it costs to read captures across files: CPU time beside reading them alone, and bytes that are shuffled.

    python benchmarks/across.py [--size 100] [--files 5] [--connections 64] [--rounds 3] [--batch 100]
    [--spark | --scale driver | --scale worker | --scale cores]

A capture of Produce requests, made in memory as in ``benchmarks/capture.py``, is cut into files of equal size.
``scan``, ``chain`` and ``decode`` are the stages of ``kwire.spark.read`` without Spark; ``alone``: each by itself.
``shuffled`` are the bytes of edges and states, packed as the tasks send them. Rounds are interleaved; figures are
medians of CPU time. ``--spark``: the same in Spark, ``kwire.spark.read`` beside ``load``, into nothing: the time on the
clock and CPU time, which is that of this process and all below it, the JVM and its workers. ``--size 60 --files 5000``
shows what a small file costs.

``--scale`` asks of ``kwire.spark.read`` what grows, each in a process of its own. ``driver``: the memory of the driver,
where the capture is cut into 10, 100 and so on up to ``--files`` files: its Python process at its peak, and the heap of
the JVM (which has the executor in it here) after a collection. ``worker``: the peak of a Python worker, of ``--files``
captures of ``--size`` MB, each of a sensor of its own, so that they are one file on the disk. ``cores``: the time on
the clock that one file takes with one core and with two, in splits: the median of three runs behind the first, and how
much of it is planning. Everything is bound to that many cores (Linux): with ``local[1]`` alone the JVM takes the core
that the worker leaves. On a busy machine the CPU time of each worker says how the work is shared out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import capture as made
from _spent import spent_by, spent_by_all

from kwire.capture.across import Chain, scan, together
from kwire.capture.parts import Part
from kwire.spark.arrow import packed
from kwire.tables.reading import read

HEADER = 24


def cut(data: bytes, count: int) -> list[bytes]:
    """The capture as ``count`` files, cut between packets."""
    files, at, begin = [], HEADER, HEADER
    step = (len(data) - HEADER) // count + 1
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        if at - begin >= step or at >= len(data):
            files.append(data[:HEADER] + data[begin:at])
            begin = at
    return files


def in_spark(files: list[bytes], rounds: int) -> None:
    """Prints what queries take in Spark, all in all; the first round is not counted."""
    from pyspark.sql import SparkSession

    import kwire.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(files):
            Path(folder, f"{number:05}.pcap").write_bytes(one)
        spent: dict[str, list[tuple[float, float]]] = {}
        for number in range(rounds + 1):
            for table in ("frames", "records"):
                alone = spark.read.format("kwire").option("table", table).load(folder)
                for name, frame in (("alone", alone), ("across", kwire.spark.read(folder, table=table))):
                    began, begin = time.perf_counter(), spent_by_all()
                    frame.write.format("noop").mode("overwrite").save()
                    if number:
                        took = time.perf_counter() - began, spent_by_all() - begin
                        spent.setdefault(f"{table} {name}", []).append(took)
    for stage, times in spent.items():
        clock, used = (statistics.median(one) for one in zip(*times, strict=True))
        print(f"Spark, {stage:16} {clock:8.2f} s, CPU {used:.2f} s, {1000 * used / len(files):.2f} ms a file")
    spark.stop()


def peak(process: int | str) -> int:
    """The most memory that a process has had, in bytes (Linux)."""
    said = Path("/proc", str(process), "status").read_text()
    return int(said.partition("VmHWM:")[2].split()[0]) << 10


def workers() -> Iterator[int]:
    """The Python workers below this process."""
    parents: dict[int, int] = {}
    python = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if b"pyspark" in (folder / "cmdline").read_bytes() and b"java" not in (folder / "cmdline").read_bytes():
                python.add(int(folder.name))
    for process in python - {os.getpid()}:
        above = process
        while above > 1 and above != os.getpid():
            above = parents.get(above, 0)
        if above == os.getpid():
            yield process


def measured(what: str, folder: str, cores: int, table: str) -> None:
    """Reads a folder across files, once or twice, and prints one figure, or two."""
    from pyspark.sql import SparkSession

    import kwire.spark

    if what == "cores":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    # Left alone, a JVM takes another garbage collector on one core than on two, which would be measured as well.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseG1GC")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    runs = []
    for _ in range(4 if what == "cores" else 1):
        begin, used, by = time.perf_counter(), spent_by_all(), {one: spent_by(one) for one in workers()}
        read = kwire.spark.read(folder, table=table, sensor=1 if what == "worker" else None)
        planned = time.perf_counter() - begin
        read.write.format("noop").mode("overwrite").save()
        each = sorted(spent_by(one) - by.get(one, 0.0) for one in workers())
        runs.append((time.perf_counter() - begin, planned, spent_by_all() - used, *each[-cores:]))
    spent = runs[-1][0]
    if what == "cores":
        spent, planned, used, *each = (statistics.median(one) for one in zip(*runs[1:], strict=True))
        shares = " and ".join(f"{one:.1f}" for one in each)
        print(f"{cores} cores: {spent:.2f} s, planning {planned:.2f} s, CPU {used:.1f} s, of workers {shares} s")
    elif what == "worker":
        print(f"peaks of workers: {', '.join(f'{peak(one) / 1e6:.0f} MB' for one in workers())}")
    else:
        jvm: Any = spark._jvm
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        heap = runtime.totalMemory() - runtime.freeMemory()
        print(f"driver {peak('self') / 1e6:.0f} MB, heap of the JVM {heap / 1e6:.0f} MB, {spent:.0f} s")
    spark.stop()


def scaled(args: argparse.Namespace) -> None:
    """Prints what grows with files and bytes."""

    def run(folder: str, cores: int = 2) -> str:
        command = [sys.executable, __file__, "--measure", args.scale, folder, str(cores), args.table]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    data = made.case("scale", args.size, per_batch=args.batch, connections=args.connections).data
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.scale == "driver":
            for count in (10**k for k in range(1, len(str(args.files)))):
                (folder / str(count)).mkdir()
                for number, one in enumerate(cut(data, count)):
                    (folder / str(count) / f"{number:05}.pcap").write_bytes(one)
                print(f"{count:6} files: {run(str(folder / str(count)))}", flush=True)
            return
        (folder / "one.pcap").write_bytes(data)
        if args.scale == "worker":
            for number in range(args.files):
                (folder / "sensors" / f"{number:04}").mkdir(parents=True)
                (folder / "sensors" / f"{number:04}" / "a.pcap").hardlink_to(folder / "one.pcap")
            print(f"{args.files * len(data) / 1e9:.1f} GB of {args.table}: {run(str(folder / 'sensors'))}")
            return
        for _ in range(args.rounds):
            print("; ".join(run(str(folder / "one.pcap"), cores) for cores in (1, 2)), flush=True)


def main() -> None:
    """Prints the figures."""
    if sys.argv[1:2] == ["--measure"]:
        what, folder, cores, table = sys.argv[2:]
        measured(what, folder, int(cores), table)
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("size", 100), ("files", 5), ("connections", 64), ("rounds", 3), ("batch", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--scale", choices=("driver", "worker", "cores"))
    parser.add_argument("--table", default="frames", help="with --scale")
    args = parser.parse_args()
    if args.scale:
        scaled(args)
        return
    case = made.case("across", args.size, per_batch=args.batch, connections=args.connections)
    files = cut(case.data, args.files)
    if args.spark:
        in_spark(files, args.rounds)
        return
    spent: dict[str, list[float]] = {}
    shuffled = 0
    chain = Chain()

    def timed(stage: str, begin: float) -> float:
        now = time.process_time()
        spent.setdefault(stage, []).append(now - begin)
        return now

    for _ in range(args.rounds):
        for table in ("frames", "records"):
            begin = time.process_time()
            for one in files:
                for _ in read(io.BytesIO(one), {table: None}):
                    pass
            timed(f"alone {table}", begin)
        begin = time.process_time()
        scans = [scan([io.BytesIO(one)]) for one in files]
        begin = timed("scan", begin)
        chain, common, seen, links = Chain(), {}, [], []
        for place, (one, found) in enumerate(zip(files, scans, strict=True)):
            seen.append(common)
            links.append(chain.add(place, found.edges, common, lambda one=one: [io.BytesIO(one)]))
            common = together(common, found.common)
        timed("chain", begin)
        shuffled = sum(len(packed(found.edges)) for found in scans) + sum(len(packed(link.state)) for link in links)
        left: list[set[bytes]] = [set() for _ in files]
        for link in links:
            for key, place in link.gone_on.items():
                left[place].add(key)
        for table in ("frames", "records"):
            begin = time.process_time()
            rows = 0
            for place, (one, link) in enumerate(zip(files, links, strict=True)):
                part: Any = Part(place=place, state=link.state, common=seen[place], left=frozenset(left[place]))
                for _, batch in read(io.BytesIO(one), {table: None}, part=part):
                    rows += batch.num_rows
            timed(f"decode {table}", begin)
    size = sum(map(len, files))
    print(f"{size / 1e6:.0f} MB in {len(files)} files, {args.connections} connections")
    for stage, times in spent.items():
        print(f"{stage:16} {statistics.median(times):8.3f} s")
    print(f"shuffled {shuffled / 1e6:.2f} MB, {100 * shuffled / size:.2f} % of the capture")
    print(f"joined {chain.joined}, read again {chain.read_again}")


if __name__ == "__main__":
    main()
