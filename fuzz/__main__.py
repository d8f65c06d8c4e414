"""Runs the harnesses for a bounded time: ``python -m fuzz [--seconds 60] [--only codec] [--seed N]``.

Every round has a seed of its own, so that a failure can be repeated: it is printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

HARNESSES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all harnesses together")
    parser.add_argument("--only", choices=HARNESSES, help="run just this one")
    parser.add_argument("--seed", type=int, help="first round's seed (default: the clock)")
    parser.add_argument("--rounds", type=int, help="stop after so many rounds of each harness")
    args = parser.parse_args()
    names = [args.only] if args.only else HARNESSES
    first = args.seed if args.seed is not None else time.time_ns() % 1_000_000_007
    failed = False
    for name in names:
        harness = import_module(f"fuzz.{name}")
        end = time.monotonic() + args.seconds / len(names)
        rounds = 0
        while time.monotonic() < end and (args.rounds is None or rounds < args.rounds):
            seed = first + rounds
            try:
                harness.run(random.Random(seed))
            except Exception:
                traceback.print_exc()
                print(f"\nrepeat it with: python -m fuzz --only {name} --seed {seed} --rounds 1", file=sys.stderr)
                failed = True
                break
            rounds += 1
        print(f"{name}: {rounds} rounds from seed {first}{', then a failure' if failed else ''}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
