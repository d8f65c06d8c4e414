"""kwire beside Kafka's dump-log tool: whole processes that print all batches or all records of a segment.

    python benchmarks/dump_log.py [--size 16] [--rounds 5]

The segments have records of 100 and 1,000 bytes, in batches of 100 records. Both print a line for each batch, with its
checksum verified, or a line for each record, with key and value (``--deep-iteration --print-data-log``). Times are
those of the processes with their start, in turn, as medians: CPU seconds, and seconds on the clock. kwire's machine
code is there already (``kwire compile``). The tool runs with the settings of ``kafka-run-class.sh``. Needs Java, and
the jars of Kafka, which ``tests/broker/kafka_jars.py`` fetches with Maven.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "broker"))

import kafka_jars  # noqa: E402

from kwire.records import Codec, Record, encode  # noqa: E402

CASES: dict[str, tuple[int, Codec]] = {
    "100 bytes, not compressed": (100, "none"),
    "1,000 bytes, not compressed": (1000, "none"),
    "100 bytes, lz4": (100, "lz4"),
}
PER_BATCH = 100
JVM = ["-Xmx256M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
"""As ``kafka-run-class.sh`` sets them."""
WORDS = [f"{word:x}" for word in random.Random(5).sample(range(1 << 24), 2000)]


def segment(path: Path, size: int, codec: Codec, megabytes: int) -> int:
    """Writes a segment of at least so many megabytes of values. Returns its records."""
    some, offset = random.Random(7), 0
    with path.open("wb") as file:
        while offset * size < megabytes * 1_000_000:
            records = [
                Record(
                    offset=offset + number,
                    timestamp=1_700_000_000_000 + offset + number,
                    key=b"key-%08d" % (offset + number),
                    value=" ".join(some.choices(WORDS, k=size // 6 + 1))[:size].encode(),
                )
                for number in range(PER_BATCH)
            ]
            file.write(encode(records, compression=codec, base_offset=offset))
            offset += PER_BATCH
    return offset


def spent(command: list[str]) -> tuple[float, float, int]:
    """Seconds of CPU and on the clock of a process, and lines that it printed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    printed = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ).stdout
    clock = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, clock, printed.count(b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=16, help="megabytes of values of each segment")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    version = kafka_jars.NEWEST
    tool = [
        kafka_jars.java(),
        *JVM,
        "-cp",
        f"{kafka_jars.install(version)}/*",
        "org.apache.kafka.tools.DumpLogSegments",
    ]
    subprocess.run([sys.executable, "-m", "kwire.cli", "compile"], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    kwire = [sys.executable, "-m", "kwire.cli", "decode"]
    with tempfile.TemporaryDirectory() as folder:
        for title, (size, codec) in CASES.items():
            file = Path(folder) / "00000000000000000000.log"
            count = segment(file, size, codec, args.size)
            asked = {
                "batches": (
                    [*kwire, str(file), "--table", "batches", "--format", "csv"],
                    [*tool, "--files", str(file)],
                ),
                "records": (
                    [*kwire, str(file), "--table", "records", "--format", "csv"],
                    [*tool, "--deep-iteration", "--print-data-log", "--files", str(file)],
                ),
            }
            for table, (ours, theirs) in asked.items():
                times: dict[str, list[tuple[float, float]]] = {"kwire": [], "tool": []}
                for _ in range(args.rounds):
                    for name, command in (("kwire", ours), ("tool", theirs)):
                        cpu, clock, lines = spent(command)
                        least = count if table == "records" else count // PER_BATCH
                        assert lines > least, (name, lines)
                        times[name].append((cpu, clock))
                (cpu, clock), (their_cpu, their_clock) = (
                    tuple(statistics.median(one) for one in zip(*some, strict=True)) for some in times.values()
                )
                print(
                    f"{title}, {table}: {file.stat().st_size / 1e6:.0f} MB, {count:,} records: "
                    f"kwire {cpu:.2f} s CPU, {clock:.2f} s; dump-log {their_cpu:.2f} s CPU, {their_clock:.2f} s; "
                    f"{their_cpu / cpu:.1f} and {their_clock / clock:.1f} times as long",
                    flush=True,
                )
    print(f"Kafka {version}")
    said = subprocess.run([kafka_jars.java(), "-version"], capture_output=True, text=True, check=True).stderr
    print(said.splitlines()[0])


if __name__ == "__main__":
    main()
