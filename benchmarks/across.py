"""What it costs to read captures across files: CPU time beside reading them alone, and bytes that are shuffled.

    python benchmarks/across.py [--size 100] [--files 5] [--connections 64] [--rounds 3] [--batch 100] [--spark]

A capture of Produce requests, made in memory as in ``benchmarks/capture.py``, is cut into files of equal size.
``scan``, ``chain`` and ``decode`` are the stages of ``kwire.spark.read`` without Spark; ``alone``: each by itself.
``shuffled`` are the bytes of edges and states, packed as the tasks send them. Rounds are interleaved; figures are
medians of CPU time. ``--spark``: the same in Spark, ``kwire.spark.read`` beside ``load``, into nothing; CPU time is
that of this process and all below it, the JVM and its workers.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import capture as made

from kwire.capture.across import Chain, scan, together
from kwire.capture.parts import Part
from kwire.spark.across import packed
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


def spent_by_all() -> float:
    """CPU seconds of this process and all below it, those that have ended too (Linux)."""
    times: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            number, _, said = file.read_text().partition(" ")
            fields = said.rpartition(")")[2].split()
            times[int(number)] = sum(map(int, fields[11:15]))
            below.setdefault(int(fields[1]), []).append(int(number))
    found, left = 0, [os.getpid()]
    while left:
        process = left.pop()
        found += times.get(process, 0)
        left += below.get(process, [])
    return found / os.sysconf("SC_CLK_TCK")


def in_spark(files: list[bytes], rounds: int) -> None:
    """Prints what queries take in Spark, all in all; the first round is not counted."""
    from pyspark.sql import SparkSession

    import kwire.spark

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(files):
            Path(folder, f"{number:05}.pcap").write_bytes(one)
        spent: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            for table in ("frames", "records"):
                alone = spark.read.format("kwire").option("table", table).load(folder)
                for name, frame in (("alone", alone), ("across", kwire.spark.read(folder, table=table))):
                    begin = spent_by_all()
                    frame.write.format("noop").mode("overwrite").save()
                    if number:
                        spent.setdefault(f"{table} {name}", []).append(spent_by_all() - begin)
    for stage, times in spent.items():
        print(f"Spark, {stage:16} {statistics.median(times):8.2f} s")
    spark.stop()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("size", 100), ("files", 5), ("connections", 64), ("rounds", 3), ("batch", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--spark", action="store_true")
    args = parser.parse_args()
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
        scans = [scan(io.BytesIO(one)) for one in files]
        begin = timed("scan", begin)
        chain, common, seen, links = Chain(), {}, [], []
        for place, (one, found) in enumerate(zip(files, scans, strict=True)):
            seen.append(common)
            links.append(chain.add(place, found.edges, common, lambda one=one: contextlib.closing(io.BytesIO(one))))
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
