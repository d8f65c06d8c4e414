"""Record sets: kwire's columns and objects, four peers in Python, three in Java, Go and Rust, and the floor.

    python benchmarks/records.py [--rounds 7] [--records 50000] [--only TEXT] [--scaling] [--outside] [--json OUT]

Each case is one buffer of record sets; every contestant reads all records of it with checksums verified, and touches
offset, timestamp, key, value and headers of each. What these add up to must be the same for all. They take turns, so
that the machine's mood is the same for all; figures are medians over the rounds, in nanoseconds of processor time per
record, and ratios are taken of medians. "x" is how many times as long the other one takes: above 1 kwire's columns are
faster.

- kwire columns: ``decode_sets`` to Arrow. Nothing looks at single values in Python, as in pandas, polars or Spark.
- kwire objects: ``decode``, a Python object for each record.
- kafka-python, aiokafka (compiled with Cython), kio (not compressed, times cut to seconds): record objects.
- construct, and construct compiled: batches declared with its stock classes (``_construct_records.py``).
- With ``--outside``, Kafka's own classes in Java, kgo in Go and kafka-protocol in Rust (``peers``), each a process.
  Java copies keys and values, as a consumer's deserializers get them. The other two give pieces of what they
  decompressed.
- floor: what nobody who uses the same libraries can beat. It decompresses each batch, checksums all bytes and copies
  them once.

``--scaling`` measures how the time grows with batches per call and records per batch and fits cost per call, per batch
and per record.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import _construct_records
import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from _measuring import Spread, Turn, measure, passes
from peers import Peer, UnableError, pieces, started

from kwire.kernels.engine import MACHINE, using
from kwire.records import CODECS, Codec, Record, decode, decode_sets, encode
from kwire.records.compression import decompress


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

    @property
    def sets(self) -> list[bytes]:
        """The record sets."""
        return [self.data[at : at + size] for at, size in zip(self.starts, self.lengths, strict=True)]


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


# --- contestants -----------------------------------------------------------------------------------------------------

Batches = Iterator[Iterable[Any]]
"""Records of batches: objects with offset, timestamp, key, value and headers."""


def columns(one: Case) -> pa.RecordBatch:
    with using(MACHINE):
        return decode_sets(np.frombuffer(one.data, np.uint8), one.starts, one.lengths).batch


def objects(one: Case) -> Batches:
    return (batch.records for batch in decode(one.data, verify_crc=True))


def _client(one: Case, reader: Any) -> Batches:
    records = reader(one.data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        yield batch


def kafka_python(one: Case) -> Batches:
    from kafka.record.memory_records import MemoryRecords

    return _client(one, MemoryRecords)


def aiokafka(one: Case) -> Batches:
    from aiokafka.record.memory_records import MemoryRecords

    return _client(one, MemoryRecords)


def kio(one: Case) -> Batches:
    from kio.records.readers import read_batch

    at = 0
    while at < len(one.data):
        batch, size = read_batch(one.data, at)
        yield batch.records
        at += size


def _decompress(codec: int, data: bytes) -> bytes:
    return bytes(decompress(codec, data, 1 << 25))


def construct(one: Case) -> Batches:
    return _construct_records.PLAIN(one.data, _decompress)


@cache
def _compiled() -> _construct_records.Reader:
    return _construct_records.compiled()


def construct_compiled(one: Case) -> Batches:
    return _compiled()(one.data, _decompress)


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


OBJECTS: dict[str, Callable[[Case], Batches]] = {
    "kwire objects": objects,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "kio": kio,
    "construct": construct,
    "construct compiled": construct_compiled,
}
FLOOR = "floor"
COLUMNS = "kwire columns"


def why_not(name: str, one: Case) -> str | None:
    """Why a contestant here cannot read a case; None where it can."""
    if name in ("kio", "construct", "construct compiled") and one.magic != 2:
        return "it reads magic 2 only"
    if name == "kio" and one.codec != "none":
        return "it reads no compressed batches"
    if name == "aiokafka" and one.magic == 0 and one.codec == "lz4":
        return "it reads lz4 from magic 1 on"
    return None


def touched(batches: Batches) -> None:
    """Reads the fields of all records."""
    for batch in batches:
        for record in batch:
            _ = record.offset, record.timestamp, record.key, record.value, record.headers


def account(batches: Batches, *, times: bool = True) -> tuple[int, int]:
    """How many records there are, and what their fields add up to: see ``peers``. ``times``: those too."""
    count = total = 0
    for batch in batches:
        for record in batch:
            total += record.offset + len(record.key or b"") + len(record.value or b"")
            total += record.timestamp if times else 0
            for header in record.headers:
                name, content = header if isinstance(header, tuple) else (header.key, header.value)
                total += len(name) + len(content or b"")
            count += 1
    return count, total


def account_of_columns(batch: pa.RecordBatch) -> tuple[int, int]:
    """The same of columns."""
    total = pc.sum(batch["offset"]).as_py() + pc.sum(pc.divide(batch["timestamp"].cast(pa.int64()), 1000)).as_py()
    total += sum(pc.sum(pc.binary_length(batch[name])).as_py() or 0 for name in ("key", "value"))
    headers = pc.list_flatten(batch["headers"])
    for name in ("key", "value"):
        total += pc.sum(pc.binary_length(pc.struct_field(headers, name))).as_py() or 0
    return batch.num_rows, total


def run_case(
    one: Case, outside: Mapping[str, Peer], rounds: int, seconds: float, names: Iterable[str] = OBJECTS
) -> dict[str, Any]:
    """Seconds of CPU for a record (``read``), by contestant. ``unable``: who cannot read the case, and why."""
    unable: dict[str, str] = {}
    turns: dict[str, Turn] = {COLUMNS: passes(lambda: columns(one)), FLOOR: passes(lambda: floor(one))}
    expected = account(objects(one))
    assert account_of_columns(columns(one)) == expected, one.name
    for name in names:
        why = why_not(name, one)
        if why is not None:
            unable[name] = why
            continue
        read = OBJECTS[name]
        times = name != "kio"
        assert account(read(one), times=times) == (expected if times else account(objects(one), times=False)), name
        turns[name] = passes(lambda read=read: touched(read(one)))
    with tempfile.TemporaryDirectory() as folder:
        file = pieces(Path(folder) / "sets", one.sets)
        for name, peer in outside.items():
            try:
                found = tuple(map(int, peer.ask("records", file)))
            except UnableError as error:
                unable[name] = str(error)
                continue
            assert found == expected, (name, one.name, found, expected)
            turns[name] = peer.turn("read")
    took = measure(turns, rounds, seconds)
    return {
        "label": one.name,
        "bytes": len(one.data) // one.records,
        "read": {name: value.each(one.records) for name, value in took.items()},
        "unable": unable,
    }


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


def all_cases(records: int) -> list[Case]:
    """Formats, codecs and sizes."""
    return [
        case(magic, codec, size, headers, records=records // (4 if size > 500 else 1))
        for magic in (2, 1)
        for codec in CODECS
        if codec != "zstd" or magic == 2
        for size in (100, 1000)
        for headers in ((False, True) if magic == 2 else (False,))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.05, help="time per contestant, case and round")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--kwire", action="store_true", help="columns and floor only")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--outside", action="store_true", help="peers in Java, Go and Rust, too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.scaling:
        result["scaling"] = scaling(options.rounds)
    else:
        outside, missing = started() if options.outside else ({}, {})
        for name, why in missing.items():
            print(f"{name}: {why}")
        names = [] if options.kwire else [*OBJECTS]
        others = [*names, FLOOR, *outside]
        widths = {name: max(13, len(name) + 1) for name in others}
        print(f"{'':46}{COLUMNS:>14} {'MB/s':>6}" + "".join(f"{name:>{widths[name]}} {'x':>6}" for name in others))
        result["cases"] = []
        for one in all_cases(options.records):
            if options.only not in one.name:
                continue
            found = run_case(one, outside, options.rounds, options.seconds, names)
            by = {name: Spread(*value).median * 1e9 for name, value in found["read"].items()}
            line = f"{one.name:46}{by[COLUMNS]:14.1f} {found['bytes'] / by[COLUMNS] * 1000:6.0f}"
            for name in others:
                cell = f"{by[name]:{widths[name]}.1f} {by[name] / by[COLUMNS]:6.2f}" if name in by else ""
                line += cell or f"{'-':>{widths[name]}} {'':6}"
            print(line, flush=True)
            result["cases"].append(found)
        for peer in outside.values():
            print(f"{peer.label}: {peer.versions}")
            peer.close()
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
