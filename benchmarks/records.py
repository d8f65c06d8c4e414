"""Record sets: kwire's columns and objects, kafka-python 3, aiokafka (compiled), Java, and the floor.

    python benchmarks/records.py [--rounds 7] [--records 50000] [--only TEXT] [--scaling] [--java] [--json OUT]

Each case is one buffer of record sets; every contestant reads all records of it with checksums verified, and touches
offset, timestamp, key, value and headers of each. All in one process, interleaved, so that the machine's mood is the
same for all; figures are medians over the rounds, in nanoseconds of processor time per record, and ratios are taken
of medians. "x"
is how many times as long the other one takes: above 1 kwire's columns are faster.

The floor is what nobody who uses the same libraries can beat: decompress each batch, checksum all bytes and copy them
once. ``--scaling`` measures how the time grows with batches per call and records per batch and fits cost per call, per
batch and per record. ``--java`` runs Kafka's own record classes on the same bytes (``benchmarks/java``: needs Maven).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from kafka.record.memory_records import MemoryRecords

from kwire.records import CODECS, Codec, Record, decode, decode_sets, encode
from kwire.records.compression import decompress

JAVA = Path(__file__).parent / "java"


@dataclass
class Case:
    """A buffer with record sets of one kind."""

    name: str
    magic: int
    codec: Codec
    data: bytes
    starts: np.ndarray[Any, np.dtype[np.int64]]
    lengths: np.ndarray[Any, np.dtype[np.int64]]
    records: int


WORDS = [f"{word:x}" for word in random.Random(5).sample(range(1 << 24), 2000)]


def value(some: random.Random, size: int) -> bytes:
    """Text that compresses to about a third, as JSON does."""
    text = " ".join(some.choices(WORDS, k=size // 6 + 1))
    return text.encode()[:size]


def case(
    magic: int, codec: Codec, size: int, headers: bool, *, records: int, per_batch: int = 100, per_set: int = 1
) -> Case:
    """``records`` records in batches of ``per_batch``, ``per_set`` batches in each record set."""
    some = random.Random(size)
    sets: list[bytes] = []
    offset = 0
    batches: list[bytes] = []
    while offset < records:
        made = [
            Record(
                b"key-%06d" % some.randrange(10**6),
                value(some, size),
                timestamp=(1_700_000_000_000 + offset + index) if magic else None,
                headers=[("trace", b"0123456789abcdef"), ("type", b"x")] if headers else [],
            )
            for index in range(min(per_batch, records - offset))
        ]
        batches.append(encode(made, magic=magic, compression=codec, base_offset=offset))
        offset += len(made)
        if len(batches) == per_set:
            sets.append(b"".join(batches))
            batches = []
    if batches:
        sets.append(b"".join(batches))
    lengths = np.array([len(each) for each in sets], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    name = f"magic {magic} {codec:6} {size:5} B {'headers' if headers else '       '} {per_batch:4}/batch"
    return Case(name, magic, codec, b"".join(sets), starts, lengths, records)


# --- contestants: each reads a case and returns how many records it saw ----------------------------------------------


def columns(one: Case) -> int:
    return decode_sets(np.frombuffer(one.data, np.uint8), one.starts, one.lengths).batch.num_rows


def objects(one: Case) -> int:
    count = 0
    for batch in decode(one.data, verify_crc=True):
        for record in batch.records:
            _ = record.offset, record.timestamp, record.key, record.value, record.headers
            count += 1
    return count


def _peer(one: Case, reader: Any) -> int:
    count = 0
    records = reader(one.data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value, record.headers
            count += 1
    return count


def kafka_python(one: Case) -> int:
    return _peer(one, MemoryRecords)


def aiokafka(one: Case) -> int:
    return _peer(one, AioRecords)


def floor(one: Case) -> int:
    """Decompress, checksum, copy; framing by the length fields alone, batches of magic 2 and wrappers only."""
    view = memoryview(one.data)
    if one.codec == "none":
        (crc32c.crc32c if one.magic == 2 else zlib.crc32)(view)
        bytearray(view)
        return one.records
    codec = CODECS.index(one.codec)
    pos = 0
    while pos < len(view):
        end = pos + 12 + int.from_bytes(view[pos + 8 : pos + 12], "big")
        if one.magic == 2:
            crc32c.crc32c(view[pos + 21 : end])
            made = decompress(codec, view[pos + 61 : end], 1 << 25)
        else:
            zlib.crc32(view[pos + 16 : end])
            made = decompress(codec, view[pos + 26 + 8 * one.magic : end], 1 << 25, magic=one.magic)
            zlib.crc32(made)
        bytearray(made)
        pos = end
    return one.records


CONTESTANTS: dict[str, Callable[[Case], int]] = {
    "columns": columns,
    "objects": objects,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "floor": floor,
}


def measure(
    cases: list[Case], contestants: dict[str, Callable[[Case], int]], rounds: int
) -> dict[str, dict[str, float]]:
    """Median nanoseconds per record: case -> contestant -> time."""
    times: dict[str, dict[str, list[float]]] = {one.name: {name: [] for name in contestants} for one in cases}
    for one in cases:
        for name, read in contestants.items():
            if name == "aiokafka" and one.magic == 0 and one.codec == "lz4":
                continue
            assert read(one) == one.records, name
            for _ in range(3 if name in ("columns", "floor") else 0):
                read(one)
    for _ in range(rounds):
        for one in cases:
            for name, read in contestants.items():
                if name == "aiokafka" and one.magic == 0 and one.codec == "lz4":
                    continue
                # The fast ones are repeated, so that each measurement lasts long enough.
                repeat = 5 if name in ("columns", "floor") else 1
                start = time.thread_time_ns()
                for _ in range(repeat):
                    read(one)
                times[one.name][name].append((time.thread_time_ns() - start) / repeat / one.records)
    return {one: {name: statistics.median(found) for name, found in by.items() if found} for one, by in times.items()}


def scaling(rounds: int) -> dict[str, float]:
    """Cost per call, per batch and per record of the columns, fitted to a grid of sizes (magic 2, 100-byte values)."""
    grid = [
        (batches, each)
        for batches in (1, 3, 10, 30, 100, 300, 1000)
        for each in (1, 10, 100, 1000)
        if batches * each <= 100_000
    ]
    cases = {
        (batches, each): case(2, "none", 100, False, records=batches * each, per_batch=each) for batches, each in grid
    }
    times: dict[tuple[int, int], list[float]] = {size: [] for size in grid}
    for one in cases.values():
        columns(one)
    for _ in range(rounds):
        for size, one in cases.items():
            repeat = max(1, 20_000 // one.records)
            start = time.thread_time_ns()
            for _ in range(repeat):
                columns(one)
            times[size].append((time.thread_time_ns() - start) / repeat)
    found = {size: statistics.median(each) for size, each in times.items()}
    # Least squares of the relative error, so that small calls count as much as large ones.
    rows = np.array([[1.0, batches, batches * each] for batches, each in grid])
    wanted = np.array([found[size] for size in grid])
    fitted = np.linalg.lstsq(rows / wanted[:, None], np.ones(len(grid)), rcond=None)[0]
    print(f"{'batches':>8} {'records each':>13} {'us per call':>12} {'fitted':>8} {'ns per record':>14}")
    for size, model in zip(grid, rows @ fitted, strict=True):
        each_us, each_ns = found[size] / 1000, found[size] / size[0] / size[1]
        print(f"{size[0]:8} {size[1]:13} {each_us:12.1f} {model / 1000:8.1f} {each_ns:14.1f}")
    call, batch, record = (float(value) for value in fitted)
    print(f"\n{call / 1000:.0f} us per call + {batch / 1000:.2f} us per batch + {record:.0f} ns per record")
    # What ten times the records in the same batches take more: calls and batches are the same on both sides.
    print("one more record, from the two largest sizes of batches:")
    for batches in sorted({batches for batches, _ in grid}):
        few, many = sorted(each for other, each in grid if other == batches)[-2:]
        more = (found[batches, many] - found[batches, few]) / (batches * (many - few))
        print(f"  {batches:5} batches of {few} and {many}: {more:6.1f} ns")
    return {"call_us": call / 1000, "batch_us": batch / 1000, "record_ns": record}


def java(cases: list[Case], rounds: int) -> dict[str, float]:
    """Median nanoseconds per record of Kafka's own record classes, by case."""
    subprocess.run(["mvn", "-q", "-B", "package"], cwd=JAVA, check=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index, one in enumerate(cases):
            path = Path(folder) / f"{index}.records"
            path.write_bytes(one.data)
            paths.append(str(path))
        done = subprocess.run(
            ["java", "-cp", f"{JAVA}/target/classes:{JAVA}/target/lib/*", "ReadRecords", str(rounds), *paths],
            check=True,
            capture_output=True,
            text=True,
        )
    found = [line.split() for line in done.stdout.splitlines()]
    assert [int(count) for count, _ in found] == [one.records for one in cases]
    return {one.name: float(ns) for one, (_, ns) in zip(cases, found, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--kwire", action="store_true", help="columns and floor only")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.scaling:
        result["scaling"] = scaling(options.rounds)
    else:
        cases = [
            case(magic, codec, size, headers, records=options.records // (4 if size > 500 else 1))
            for magic in (2, 1)
            for codec in CODECS
            if codec != "zstd" or magic == 2
            for size in (100, 1000)
            for headers in ((False, True) if magic == 2 else (False,))
        ]
        cases = [one for one in cases if options.only in one.name]
        contestants = {
            name: read for name, read in CONTESTANTS.items() if not options.kwire or name in ("columns", "floor")
        }
        times = measure(cases, contestants, options.rounds)
        if options.java:
            for name, took in java(cases, options.rounds).items():
                times[name]["java"] = took
        others = [name for name in [*contestants, "java"] if name != "columns"]
        print(f"{'':46}{'columns':>9} {'MB/s':>6}" + "".join(f"{name:>13} {'x':>5}" for name in others))
        for one in cases:
            by = times[one.name]
            line = f"{one.name:46}{by['columns']:9.1f} {len(one.data) / one.records / by['columns'] * 1000:6.0f}"
            for name in others:
                line += f"{by[name]:13.1f} {by[name] / by['columns']:5.2f}" if name in by else f"{'-':>13} {'':5}"
            print(line)
        result["cases"] = times
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
