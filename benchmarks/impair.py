"""What damage does to the tables: every kind of impairment, on every golden capture.

    python benchmarks/impair.py [--seeds 1] [--first 0] [--only KIND] [--grade GRADE] [--largest N]
                                [--values [KIND]] [--values-seed 0]
                                [--json OUT]
    python benchmarks/impair.py --explain KIND --capture TEXT --first SEED

For each kind (``kwire.testing.impair``) as many seeds for each capture, or each with TEXT in its path (``--capture``),
or of up to N bytes (``--largest``). With ``--values``, record values are frames, as in topics that hold recorded
traffic: KIND is one of ``kwire.testing.impair.VALUES``, ``values-are-frames`` without one. They are drawn with
``--values-seed``, the same in all runs of one call. Captures in which such values become rows without any loss are left
out, and counted. What is encrypted is read with the key log beside it.
Each run is read in one window, and in a small one. One line per kind:

- runs: captures times seeds; bad: those that are not as they should be (``kwire.testing.judge``).
- differing: rows that are missing or others: where nothing was lost than those of the original, else in small windows
  than in one; of one run the larger of both numbers.
- invented: rows with the status ``ok`` or ``trailing`` of what was never sent.
- unseen: frames that are gone, though bytes of them are there, and no row stands for those.
- unconfirmed: rows with that status of frames that were sent.
- intact, missed: frames all of whose bytes are there; of those, the ones that are not given out.
- behind: whole frames passed over behind a loss, until one was recognised: median, 99th percentile, most.
- smallest: for each thing that is wrong the smallest capture in which it is, and the seed.

Exits with 1 if anything is bad.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kwire.kernels.engine import MACHINE, using
from kwire.testing.impair import KINDS, VALUES, Grade, impair
from kwire.testing.judge import Original, Verdict, judge
from kwire.tls import KeyLog

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
MEDIAN, RARELY = 2, 5
"""Frames behind a loss that may be passed over: in the median, and at the 99th percentile."""
WINDOWS = (1000, 7000, 40_000)


def percentile(numbers: Sequence[int], share: float) -> int:
    """The smallest number that so large a share of them does not exceed."""
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def verdicts(original: Original, kind: str, seed: int) -> list[Verdict]:
    """One run: read in one window, and in a small one."""
    impaired = impair(original.capture, kind, seed=seed)
    return [judge(original, impaired, window=window) for window in (None, WINDOWS[seed % 3])]


class Line:
    """The figures of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.runs = self.bad = self.frames = self.differing = self.invented = self.unseen = 0
        self.unconfirmed = 0
        self.intact = self.missed = 0
        self.passed_over: list[int] = []
        self.smallest: dict[str, tuple[int, str, int]] = {}

    def add(self, name: str, size: int, seed: int, run: Sequence[Verdict]) -> None:
        """Counts a run."""
        self.runs += 1
        self.frames += run[0].frames
        self.intact += run[0].intact
        self.missed += run[0].missed
        self.passed_over += run[0].passed_over
        self.invented += len(run[0].invented)
        self.unseen += len(run[0].unseen)
        self.unconfirmed += run[0].unconfirmed
        self.differing += max(
            max(sum(way == which for way, _ in one.differing) for which in ("missing", "instead")) for one in run
        )
        wrong = {
            "differing": any(one.differing for one in run),
            "invented": any(one.invented for one in run),
            "unseen": any(one.unseen for one in run),
            "behind": percentile(run[0].passed_over, 0.99) > RARELY or percentile(run[0].passed_over, 0.5) > MEDIAN,
        }
        self.bad += any(not one.good for one in run)
        for what in (what for what, is_wrong in wrong.items() if is_wrong):
            self.smallest[what] = min(self.smallest.get(what, (size, name, seed)), (size, name, seed))

    def figures(self) -> dict[str, object]:
        """What is printed."""
        passed_over = self.passed_over
        return {
            "kind": self.kind,
            "grade": KINDS[self.kind].grade.value,
            "runs": self.runs,
            "bad": self.bad,
            "frames": self.frames,
            "differing": self.differing,
            "invented": self.invented,
            "unseen": self.unseen,
            "unconfirmed": self.unconfirmed,
            "intact": self.intact,
            "missed": self.missed,
            "behind": "/".join(str(percentile(passed_over, share)) for share in (0.5, 0.99, 1)) if passed_over else "",
            "smallest": ", ".join(f"{what}: {name} {seed}" for what, (_, name, seed) in self.smallest.items()),
        }


WIDTHS = {"kind": 28, "grade": 9, "unconfirmed": 11, "behind": 10, "smallest": 1}


def shown(figures: dict[str, object]) -> str:
    """One line of the table."""
    cells = []
    for name, value in figures.items():
        width = WIDTHS.get(name, 9)
        cells.append(f"{value:<{width}}" if name in ("kind", "grade", "smallest") else f"{value:>{width}}")
    return " ".join(cells)


def explain(originals: dict[str, Original], kind: str, seed: int) -> None:
    """Prints each row that is not as it should be."""
    for name, original in originals.items():
        for window, verdict in zip((None, "small"), verdicts(original, kind, seed), strict=False):
            print(f"{name}, {kind}, seed {seed}, window {window}: {verdict.frames} frames")
            for way, row in verdict.differing[:40]:
                print("  ", way, row._replace(digest=b""))
            for row in verdict.invented[:40]:
                print("   invented", row._replace(digest=b""))
            for row in verdict.unseen[:40]:
                print("   unseen", row._replace(digest=b""))
            print("   behind", [n for n in verdict.passed_over if n > 2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=KINDS, action="append", help="this kind; may be given more than once")
    parser.add_argument("--grade", choices=[grade.value for grade in Grade])
    parser.add_argument(
        "--values",
        nargs="?",
        const="values-are-frames",
        choices=VALUES,
        help="in captures whose record values are frames: of this kind",
    )
    parser.add_argument("--values-seed", type=int, default=0, help="the seed that those frames are drawn with")
    parser.add_argument("--capture", default="", help="captures with this text in their path")
    parser.add_argument("--largest", type=int, default=1 << 30, help="bytes of the largest capture that is taken")
    parser.add_argument("--explain", choices=KINDS, help="print what is wrong in one run of this kind")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with using(MACHINE):
        originals: dict[str, Original] = {}
        odd = 0
        for path in sorted([*GOLDEN.glob("*/*.pcap*"), *GOLDEN.glob("tls/kafka*/*.pcap*")]):
            name = path.relative_to(GOLDEN).as_posix()
            if args.capture in name and path.suffix != ".gz" and path.stat().st_size <= args.largest:
                data = path.read_bytes()
                keys = path.with_suffix(".keys")
                one = Original(
                    impair(data, args.values, seed=args.values_seed).data if args.values else data,
                    KeyLog.open(keys) if keys.exists() else None,
                )
                if args.values and any(row.status not in ("ok", "trailing", "unsupported") for row in one.rows):
                    odd += 1
                else:
                    originals[name] = one
        if args.explain:
            explain(originals, args.explain, args.first)
            return 0
        placed = sum(len(stream.places) for one in originals.values() for stream in one.streams.values())
        unplaced = sum(one.unplaced for one in originals.values())
        print(
            f"{len(originals)} captures; frames whose bytes are known: {placed}, not known: {unplaced}; left out: {odd}"
        )
        names = [
            name
            for name, kind in KINDS.items()
            if kind.grade is not Grade.PAYLOAD
            and (not args.only or name in args.only)
            and args.grade in (None, kind.grade.value)
        ]
        lines = []
        began = time.perf_counter()
        for kind in names:
            line = Line(kind)
            for seed in range(args.first, args.first + args.seeds):
                for name, original in originals.items():
                    line.add(name, len(original.capture), seed, verdicts(original, kind, seed))
            if not lines:
                print(shown({name: name for name in line.figures()}))
            lines.append(line.figures())
            print(shown(lines[-1]), flush=True)
        print(f"{time.perf_counter() - began:.0f} s")
    if args.json:
        args.json.write_text(json.dumps(lines, indent=1))
    return int(any(line["bad"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
