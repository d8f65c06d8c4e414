"""kwire beside tshark: whole processes that write a line for each Kafka frame of a capture, and what they make of it.

    python benchmarks/tshark.py [--size 16] [--rounds 3]

Both write the time, both ends, the API, its version, the correlation id and the client_id of each frame as text. The
captures are those of ``capture.py``. Figures are medians of the CPU time of the process, with its start; rounds are
interleaved. kwire's machine code is there already (``kwire compile``). Needs tshark.

The last lines are of the golden captures, whose account by tshark is ``tests/golden/frames.tshark.json``: frames whose
API and version tshark names, and frames that it calls malformed. kwire names all of them (``tests/golden``).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measuring import Spread, Turn, measure
from capture import PORT, case

ROOT = Path(__file__).resolve().parents[1]
ACCOUNT = ROOT / "tests" / "golden" / "frames.tshark.json"
CASES = {"100 records a batch": {"per_batch": 100}, "1 record a batch": {"per_batch": 1}, "small requests": {}}
FIELDS = (
    "frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "kafka.request_key",
    "kafka.request.version", "kafka.response_key", "kafka.response.version", "kafka.correlation_id", "kafka.client_id",
)  # fmt: skip
COLUMNS = (
    "timestamp", "client_host", "client_port", "broker_host", "broker_port", "direction", "api_key", "api_version",
    "correlation_id", "client_id",
)  # fmt: skip


def by_tshark(file: Path) -> list[str]:
    """The command of tshark."""
    found = ["tshark", "-r", str(file), "-d", f"tcp.port=={PORT},kafka", "-Y", "kafka", "-T", "fields"]
    return found + [word for one in FIELDS for word in ("-e", one)]


def by_kwire(file: Path) -> list[str]:
    """The command of kwire."""
    return [sys.executable, "-m", "kwire.cli", "decode", str(file), "--format", "csv", "--columns", ",".join(COLUMNS)]


def spent(command: list[str]) -> tuple[float, int]:
    """Seconds of CPU of a process, and lines that it wrote."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(
        command, check=True, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said.count(b"\n")


def _turn(command: list[str], fits: Callable[[int], bool]) -> Turn:
    """A command as a contestant. ``fits``: whether it may have written so many lines."""

    def turn(count: int) -> float:
        took = 0.0
        for _ in range(count):
            seconds, lines = spent(command)
            assert fits(lines), (command[0], lines)
            took += seconds
        return took

    return turn


def run_case(title: str, size: int, rounds: int) -> dict[str, Any]:
    """Seconds of CPU for a capture of so many megabytes (``read``), by contestant."""
    one = case(title, size, **CASES[title])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "broker.pcap"
        file.write_bytes(one.data)
        turns = {"kwire": _turn(by_kwire(file), lambda lines: lines == one.frames + 1)}
        # It writes a line for each packet in which frames end.
        turns["tshark"] = _turn(by_tshark(file), lambda lines: one.frames / 2 < lines <= one.frames + 1)
        took = measure(turns, rounds, 0.0)
    return {"label": title, "bytes": len(one.data), "frames": one.frames, "read": took, "unable": {}}


def version() -> str | None:
    """That of tshark; None where there is none."""
    if shutil.which("tshark") is None:
        return None
    said = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0]


def known() -> tuple[int, int, int]:
    """Frames of the golden captures, those that tshark names, and those that it calls malformed."""
    told = json.loads(ACCOUNT.read_text("utf-8"))
    lines = [line for capture in told.values() for frames in capture.values() for line in frames]
    named = sum("-" not in line.split(" ", 4)[2:4] for line in lines)
    return len(lines), named, sum(line.endswith("*") for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=16, help="megabytes of each capture")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if version() is None:
        sys.exit("benchmarks/tshark.py: no tshark here (Debian, Ubuntu: tshark)")
    for title in CASES:
        one = run_case(title, args.size, args.rounds)
        medians = {name: Spread(*value).median for name, value in one["read"].items()}
        print(
            f"{title}: {one['bytes'] / 1e6:.0f} MB, {one['frames']:,} frames: kwire {medians['kwire']:.2f} s, "
            f"tshark {medians['tshark']:.2f} s, {medians['tshark'] / medians['kwire']:.1f} times as long"
        )
    frames, named, malformed = known()
    print(f"golden captures: {frames:,} frames; API and version named: {named:,}; malformed to tshark: {malformed:,}")
    print(version())


if __name__ == "__main__":
    main()
