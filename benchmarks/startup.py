"""How long it takes until something is there: whole processes, with the files that they need in memory and without.

    python benchmarks/startup.py [--rounds 7] [--only TEXT] [--json OUT]

- python: an empty program, the floor below all others.
- import kwire
- first decode: ``import kwire`` and one Metadata request and response, whose layouts are compiled for it.
- kwire decode: the table ``frames`` of a golden capture (115 kB) as JSON lines. So little is read without machine code.

Each figure is the median over the rounds of the time that a process takes, interpreter included, in milliseconds;
rounds of all cases are interleaved. "warm": the files have just been read. "cold": the standard library, the installed
packages, kwire and the capture were dropped from the system's page cache before (``posix_fadvise``; what another
process has mapped stays). The last line has the times of the runs before the first round, in which Python compiles what
is new to it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import kwire

CAPTURE = Path(__file__).parent.parent / "tests/golden/kafka-3.9-zk-kafka-python/first-light.pcap"
PACKAGE = Path(kwire.__file__).parent

FIRST_DECODE = """
import kwire
kwire.decode_request(bytes.fromhex("0003 0001 00000007 0001 78 ffffffff"))
kwire.decode_response(bytes.fromhex("00000007 00000000 00000000 00000000"), api_key=3, api_version=1)
"""

CASES = {
    "python": ["-c", ""],
    "import kwire": ["-c", "import kwire"],
    "first decode": ["-c", FIRST_DECODE],
    "kwire decode": ["-m", "kwire.cli", "decode", "--table", "frames", "--format", "jsonl", str(CAPTURE)],
}


def run(arguments: list[str]) -> float:
    """Seconds that one process takes."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def program_files() -> list[Path]:
    """What a process may load: the standard library, the installed packages, kwire with its schemas, the capture."""
    paths = sysconfig.get_paths()
    roots = {Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {
        PACKAGE,
        PACKAGE.parent / "schemas",
    }
    return [CAPTURE, *(one for root in roots if root.is_dir() for one in root.rglob("*") if one.is_file())]


def drop(files: list[Path]) -> None:
    """Takes ``files`` out of the page cache."""
    os.sync()
    for path in files:
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def main() -> None:
    parser = argparse.ArgumentParser(description="How long it takes until something is there.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    cases = {name: arguments for name, arguments in CASES.items() if args.only in name}
    if not cases:
        parser.error(f"no case with {args.only!r} in its name: there are {', '.join(CASES)}")

    first = {name: run(arguments) for name, arguments in cases.items()}
    files = program_files()
    times: dict[str, dict[str, list[float]]] = {name: {"warm": [], "cold": []} for name in cases}
    for _ in range(args.rounds):
        for name, arguments in cases.items():
            run(arguments)
            times[name]["warm"].append(run(arguments))
            drop(files)
            times[name]["cold"].append(run(arguments))

    found = {name: {how: statistics.median(each) for how, each in one.items()} for name, one in times.items()}
    print(f"{'':14}{'warm':>9}{'cold':>9}   ms a process, medians of {args.rounds}")
    for name, one in found.items():
        print(f"{name:14}{one['warm'] * 1000:9.0f}{one['cold'] * 1000:9.0f}")
    print("first runs: " + ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in first.items()))
    if args.json:
        args.json.write_text(json.dumps({"seconds": found, "first": first}, indent=1) + "\n")


if __name__ == "__main__":
    main()
