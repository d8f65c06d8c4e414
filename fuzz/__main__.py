"""Runs the harnesses for a bounded time: ``python -m fuzz [--seconds 60] [--only codec] [--seed N]``.

Time is that of the processor: on a busy machine a run takes longer, and does as much. Half of it goes to inputs made at
random, half to inputs that coverage guides (``fuzz._guided``; it needs atheris). ``--way`` chooses one of them.

At random: every round has a seed of its own, so that a failure can be repeated: it is printed with the command that
repeats it. A harness ends with its first failure; with ``--failures 20`` it ends with the twentieth. A long run is made
of short ones: ``--state FILE`` keeps what was done (the seeds, rounds and failures of each harness), and the next run
goes on with the seed behind it.

Guided: what is found stands in ``build/fuzz``, and ``--input FILE`` repeats it. With ``--turn 120`` each harness has
two minutes at a time, until the seconds are over.
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

from fuzz import _guided

HARNESSES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
GUIDED = _guided.harnesses(HARNESSES)
AT_RANDOM = [name for name in HARNESSES if "\ndef run(rng" in (Path(__file__).parent / f"{name}.py").read_text()]

KEEP_EVERY = 200
"""Rounds after which the state is written: so many are done again after a run that was killed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for all harnesses together")
    parser.add_argument("--only", choices=HARNESSES, help="run just this one")
    parser.add_argument("--way", choices=("random", "guided", "both"), default="both", help="how inputs are chosen")
    parser.add_argument("--seed", type=int, help="first round's seed (default: the clock)")
    rounds = parser.add_argument_group("at random")
    rounds.add_argument("--rounds", type=int, help="stop after so many rounds of each harness, all runs of a state")
    rounds.add_argument("--failures", type=int, default=1, help="stop a harness after so many failures")
    rounds.add_argument("--state", type=Path, help="file to go on from, and to keep what was done")
    guided = parser.add_argument_group("guided by coverage")
    guided.add_argument(
        "--kernels", choices=(*_guided.KERNELS, _guided.BOTH), default=_guided.BOTH, help="how kernels run"
    )
    guided.add_argument("--turn", type=float, help="seconds of a harness at a time, again and again")
    guided.add_argument("--folder", type=Path, default=_guided.FOLDER, help="what is kept (build/fuzz)")
    guided.add_argument("--input", type=Path, help="check this input of the harness --only, and end")
    guided.add_argument("--write-seeds", type=Path, help="write seeds and dictionary of --only into a folder, and end")
    guided.add_argument("--list", action="store_true", help="the names of the harnesses that take bytes, and end")
    guided.add_argument("--most", type=int, help="how many seeds")
    args = parser.parse_args()
    if args.list:
        print(*GUIDED, sep="\n")
        return 0
    if args.input or args.write_seeds:
        if args.only not in GUIDED:
            parser.error(f"--only names a harness that takes bytes: {', '.join(GUIDED)}")
        if args.write_seeds:
            _guided.write_seeds(args.only, args.write_seeds, args.most, args.seed or 0)
        else:
            import_module(f"fuzz.{args.only}").check(args.input.read_bytes())
        return 0
    if args.way == "random" and args.only and args.only not in AT_RANDOM:
        parser.error(f"{args.only} takes bytes: it is guided, and has no rounds")
    names = [args.only] if args.only else HARNESSES
    args.seed = args.seed if args.seed is not None else time.time_ns() % 1_000_000_007
    at_random = [name for name in names if name in AT_RANDOM and args.way != "guided" and not args.turn]
    by_coverage = [name for name in names if name in GUIDED and args.way != "random" and args.rounds is None]
    why = _guided.missing()
    if by_coverage and why is not None:
        print(f"not guided by coverage: {why}", file=sys.stderr)
        if args.way == "guided":
            return 2
        by_coverage = []
    share = args.seconds / (bool(at_random) + bool(by_coverage) or 1)
    failed = bool(at_random) and _rounds(at_random, share, args)
    if by_coverage:
        options = {"kernels": args.kernels, "seed": args.seed, "turn": args.turn, "folder": args.folder}
        failed |= _guided.run(by_coverage, share, **options)
    return int(failed)


def _rounds(names: list[str], seconds: float, args: argparse.Namespace) -> bool:
    """Rounds of harnesses that make their own inputs; whether one has failed."""
    kept: dict[str, Any] = json.loads(args.state.read_text()) if args.state and args.state.exists() else {}
    failed = False

    def keep() -> None:
        if args.state:
            made = args.state.with_name(args.state.name + ".new")
            made.write_text(json.dumps(kept, indent=1))
            made.replace(args.state)

    for name in names:
        harness = import_module(f"fuzz.{name}")
        done = kept.setdefault(name, {"first": args.seed, "rounds": 0, "failed": []})
        end = _guided.used() + seconds / len(names)
        failures = 0
        while _guided.used() < end and (args.rounds is None or done["rounds"] < args.rounds):
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
    return failed


if __name__ == "__main__":
    sys.exit(main())
