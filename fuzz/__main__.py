"""Runs the harnesses for a bounded time: ``python -m fuzz [--seconds 60] [--only codec] [--seed N]``.

Every round has a seed of its own, so that a failure can be repeated: it is printed with the command that repeats it.
A harness ends with its first failure; with ``--failures 20`` it ends with the twentieth. A long run is made of short
ones: ``--state FILE`` keeps what was done (the seeds, rounds and failures of each harness), and the next run goes on
with the seed behind it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

HARNESSES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))

KEEP_EVERY = 200
"""Rounds after which the state is written: so many are done again after a run that was killed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all harnesses together")
    parser.add_argument("--only", choices=HARNESSES, help="run just this one")
    parser.add_argument("--seed", type=int, help="first round's seed (default: the clock)")
    parser.add_argument("--rounds", type=int, help="stop after so many rounds of each harness, all runs of a state")
    parser.add_argument("--failures", type=int, default=1, help="stop a harness after so many failures")
    parser.add_argument("--state", type=Path, help="file to go on from, and to keep what was done")
    args = parser.parse_args()
    names = [args.only] if args.only else HARNESSES
    first = args.seed if args.seed is not None else time.time_ns() % 1_000_000_007
    kept: dict[str, Any] = json.loads(args.state.read_text()) if args.state and args.state.exists() else {}
    failed = False

    def keep() -> None:
        if args.state:
            made = args.state.with_name(args.state.name + ".new")
            made.write_text(json.dumps(kept, indent=1))
            made.replace(args.state)

    for name in names:
        harness = import_module(f"fuzz.{name}")
        done = kept.setdefault(name, {"first": first, "rounds": 0, "failed": []})
        end = time.monotonic() + args.seconds / len(names)
        failures = 0
        while time.monotonic() < end and (args.rounds is None or done["rounds"] < args.rounds):
            seed = done["first"] + done["rounds"]
            try:
                harness.run(random.Random(seed))
            except Exception as error:
                traceback.print_exc()
                print(f"\nrepeat it with: python -m fuzz --only {name} --seed {seed} --rounds 1", file=sys.stderr)
                done["failed"].append({"seed": seed, "error": f"{type(error).__name__}: {error}"[:200]})
                failures += 1
            done["rounds"] += 1
            if done["rounds"] % KEEP_EVERY == 0:
                keep()
            if failures >= args.failures:
                break
        keep()
        failed |= failures > 0
        wrong = f", {len(done['failed'])} failures" if done["failed"] else ""
        print(f"{name}: {done['rounds']} rounds from seed {done['first']}{wrong}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
