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
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    if shutil.which("tshark") is None:
        sys.exit("benchmarks/tshark.py: no tshark here (Debian, Ubuntu: tshark)")
    with tempfile.TemporaryDirectory() as folder:
        for title, options in CASES.items():
            one = case(title, args.size, **options)
            file = Path(folder) / "broker.pcap"
            file.write_bytes(one.data)
            times: dict[str, list[float]] = {"kwire": [], "tshark": []}
            for _ in range(args.rounds):
                for name, command in (("kwire", by_kwire(file)), ("tshark", by_tshark(file))):
                    seconds, lines = spent(command)
                    # tshark writes a line for each packet in which frames end.
                    assert lines == one.frames + 1 if name == "kwire" else lines > one.frames / 2, (name, lines)
                    times[name].append(seconds)
            medians = {name: statistics.median(some) for name, some in times.items()}
            print(
                f"{title}: {len(one.data) / 1e6:.0f} MB, {one.frames:,} frames: kwire {medians['kwire']:.2f} s, "
                f"tshark {medians['tshark']:.2f} s, {medians['tshark'] / medians['kwire']:.1f} times as long"
            )
    frames, named, malformed = known()
    print(f"golden captures: {frames:,} frames; API and version named: {named:,}; malformed to tshark: {malformed:,}")
    print(subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0])


if __name__ == "__main__":
    main()
