"""What ``read_committed`` costs: a log segment with it, beside the same segment without.

    python benchmarks/committed.py [--size 50] [--segments 4] [--rounds 5] [--only TEXT]

With it the headers of a segment are read before its records, for the markers of transactions. Each case is a segment
of ``--size`` MB in a folder of its own. Every tenth batch of one that has transactions is a marker, every fifth of
these aborts. ``open``: a transaction begins in the first of ``--segments`` segments and never ends, so the headers of
all are read. Columns are offset, timestamp, key and value, or all of them. Rounds are interleaved; figures are medians
of CPU time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kwire import log
from kwire.records import Codec, Record, encode

FOUR = ("offset", "timestamp", "key", "value")
BATCHES = 200
"""Different batches of a segment, which are repeated."""
PRODUCER = 7


def batches(per_batch: int, codec: Codec, *, transactional: bool) -> Iterator[tuple[bytes, int]]:
    """Batches, each with the number of its offsets."""
    some = random.Random(per_batch)
    for number in range(BATCHES):
        if transactional and number % 10 == 9:
            kind = number % 50 != 49  # 0 is an abort
            marker = Record(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0), timestamp=1_700_000_000_000)
            yield encode([marker], producer_id=PRODUCER, is_transactional=True, is_control=True), 1
            continue
        records = [
            Record(b"key-%06d" % some.randrange(10**6), some.randbytes(50).hex().encode(), timestamp=1_700_000_000_000)
            for _ in range(per_batch)
        ]
        producer = PRODUCER if transactional else -1
        yield encode(records, compression=codec, producer_id=producer, is_transactional=transactional), per_batch


def segment(folder: Path, size: int, base: int, some: list[tuple[bytes, int]]) -> tuple[Path, int]:
    """A segment of ``size`` bytes, and the offset behind it."""
    path = folder / f"{base:020}.log"
    with path.open("wb") as file:
        while file.tell() < size:
            for data, count in some:
                file.write(base.to_bytes(8) + data[8:])
                base += count
    return path, base


def spent(path: Path, columns: tuple[str, ...] | None, *, committed: bool) -> tuple[float, int]:
    """Seconds of CPU, and rows."""
    begin, rows = time.process_time(), 0
    for batch in log.read(path, columns=columns, read_committed=committed):
        rows += batch.num_rows
    return time.process_time() - begin, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("size", 50), ("segments", 4), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    cases: dict[str, tuple[int, Codec, bool]] = {
        "100 a batch": (100, "none", False),
        "100 a batch, transactions": (100, "none", True),
        "100 a batch, lz4, transactions": (100, "lz4", True),
        "100 a batch, transactions, open": (100, "none", True),
        "1 a batch, transactions": (1, "none", True),
    }
    with tempfile.TemporaryDirectory() as name:
        for number, (title, (per_batch, codec, transactional)) in enumerate(cases.items()):
            if args.only not in title:
                continue
            folder = Path(name, f"orders-{number}")
            folder.mkdir()
            some = [*batches(per_batch, codec, transactional=transactional)]
            path, base = segment(folder, args.size * 10**6, 0, some)
            if title.endswith("open"):
                began = encode([Record(b"k", b"v")], producer_id=PRODUCER + 1, is_transactional=True, base_offset=base)
                with path.open("ab") as file:
                    file.write(began)
                base += 1
                for _ in range(args.segments - 1):
                    _, base = segment(folder, args.size * 10**6, base, some)
            for columns in (FOUR, None):
                times: tuple[list[float], list[float]] = [], []
                rows = [0, 0]
                for turn in range(args.rounds + 1):
                    for which in (0, 1):
                        took, rows[which] = spent(path, columns, committed=bool(which))
                        if turn:
                            times[which].append(took)
                plain, committed = map(statistics.median, times)
                shown = "all columns" if columns is None else f"{len(columns)} columns"
                print(
                    f"{title:32} {shown:12} {rows[0]:9,} rows {plain:6.3f} s   "
                    f"committed {rows[1]:9,} rows {committed:6.3f} s: {committed / plain:4.2f} x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
