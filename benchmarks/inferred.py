"""Whether a response tells by itself which API and version it is of: why there is no status ``inferred``.

    python benchmarks/inferred.py [--capture TEXT] [--least 32]

Of each response of the golden captures that was paired, the layouts of all APIs and versions are tried on its body:
which are exactly as long as it is? One line per question, with how often the answer is right and wrong:

- one pair: exactly one API and version fits.
- one API: all that fit are versions of one API.
- with the next: one pair fits, or of one API the one version that one of the next three requests of the connection has.
- damaged: one pair fits after one to three bits of the body were changed.
- of another: without its own API, all that fit are versions of one other: what an API that is not known would become.

Then how many bodies of small numbers, drawn at random, one API fits; and, where captures begin in the middle (20 times
each of those of up to 120 kB), how many responses are ``unpaired``, and of how many of them one pair fits.

With ``--least`` only bodies of so many bytes, the correlation id included, are tried.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from kwire.capture.reading import Reading
from kwire.errors import CaptureError
from kwire.kernels.directions import DIRECTION, Scratch
from kwire.kernels.engine import MACHINE, using
from kwire.kernels.judging import FITS, fits_all
from kwire.kernels.layouts import Status
from kwire.kernels.programs import MAX_DEPTH, registers_of
from kwire.protocol.api_table import api_table
from kwire.testing.impair import impair

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
NEXT = 3

Pair = tuple[int, int]


class Layouts:
    """All layouts of responses."""

    def __init__(self) -> None:
        starts = api_table().layout_starts
        kinds, versions = np.nonzero(starts[1::2] >= 0)
        self.pairs: list[Pair] = list(zip(kinds.tolist(), versions.tolist(), strict=True))
        self._scratch = Scratch(
            np.zeros(2, DIRECTION), registers_of(1), np.zeros(MAX_DEPTH, np.int64), np.zeros((0, 3), int)
        )
        self._known: dict[bytes, list[Pair]] = {}

    def that_fit(self, data: bytes) -> list[Pair]:
        """Of a response without its size."""
        body = data[4:]
        if body not in self._known:
            buf = np.frombuffer(len(data).to_bytes(4, "big") + data, np.uint8)
            fits = MACHINE(fits_all)
            self._known[body] = [
                (api, version)
                for api, version in self.pairs
                if fits(buf, 0, len(buf), 1, api, version, api_table(), self._scratch) == FITS
            ]
        return self._known[body]


def responses(path: Path) -> dict[int, list[tuple[Pair, bytes]]]:
    """The paired responses of a capture: those of each connection, in order."""
    found: dict[int, list[tuple[int, Pair, bytes]]] = defaultdict(list)
    try:
        for frames in Reading(io.BytesIO(path.read_bytes())):
            for row in np.flatnonzero((frames["response"] == 1) & (frames.statuses == Status.OK)).tolist():
                frame = frames[row]
                pair = int(frames["api"][row]), int(frames["version"][row])
                found[frame.connection].append((frame.number, pair, frame.data))
    except CaptureError:
        pass  # what stands before the damage was read
    return {one: [(pair, data) for _, pair, data in sorted(own)] for one, own in found.items()}


def small_numbers(layouts: Layouts, rng: random.Random) -> None:
    """Bodies that are no response."""
    for size in (32, 64, 200):
        bodies = [
            bytes(rng.choice((0, 0, 0, 0, 0, 1, 2, 3, rng.randrange(256))) for _ in range(size)) for _ in range(300)
        ]
        one = sum(len({api for api, _ in layouts.that_fit(body)}) == 1 for body in bodies)
        print(f"of 300 bodies of {size} small numbers one API fits {one}")


def cut(layouts: Layouts, paths: list[Path], least: int) -> None:
    """What there is to gain."""
    count: Counter[str] = Counter()
    for path in paths:
        data = path.read_bytes()
        for seed in range(20 if len(data) <= 120_000 else 0):
            for frames in Reading(io.BytesIO(impair(data, "mid-stream", seed=seed).data)):
                count["frames"] += len(frames)
                for row in np.flatnonzero(frames["status"] == Status.UNPAIRED).tolist():
                    body = frames.bytes_of(row)
                    count["unpaired"] += 1
                    count["one pair"] += len(body) >= least and len(layouts.that_fit(body)) == 1
    print(f"captures that begin in the middle: {dict(count)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capture", default="", help="captures with this text in their path")
    parser.add_argument("--least", type=int, default=32)
    args = parser.parse_args()
    layouts, rng = Layouts(), random.Random(7)
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    total = tried = 0

    def said(question: str, answer: Any, truth: Any) -> None:
        (right if answer == truth else wrong)[question] += 1

    paths = [
        path
        for path in sorted(GOLDEN.glob("*/*.pcap*"))
        if args.capture in path.relative_to(GOLDEN).as_posix() and path.suffix != ".gz"
    ]
    with using(MACHINE):
        for path in paths:
            for own in responses(path).values():
                for k, (truth, data) in enumerate(own):
                    total += 1
                    if len(data) < args.least:
                        continue
                    tried += 1
                    fitting = layouts.that_fit(data)
                    apis = {api for api, _ in fitting}
                    if len(apis) == 1:
                        said("one API", apis, {truth[0]})
                    asked = {pair for pair, _ in own[k + 1 : k + 1 + NEXT]}
                    chosen = fitting if len(fitting) == 1 else [pair for pair in fitting if pair in asked]
                    if len(fitting) == 1:
                        said("one pair", fitting[0], truth)
                    if len(apis) == len(chosen) == 1:
                        said("with the next", chosen[0], truth)
                    others = {api for api in apis if api != truth[0]}
                    wrong["of another"] += len(others) == 1
                    damaged = bytearray(data)
                    for _ in range(rng.randrange(1, 4)):
                        damaged[rng.randrange(4, len(data))] ^= 1 << rng.randrange(8)
                    fitting = layouts.that_fit(bytes(damaged))
                    if len(fitting) == 1:
                        said("damaged", fitting[0], truth)
    print(f"{total} responses, {tried} of {args.least} bytes or more; {len(layouts.pairs)} layouts")
    for question in ("one pair", "one API", "with the next", "damaged", "of another"):
        print(f"{question:<14} right {right[question]:>5}  wrong {wrong[question]:>5}")
    with using(MACHINE):
        small_numbers(layouts, rng)
        cut(layouts, paths, args.least)
    return 0


if __name__ == "__main__":
    sys.exit(main())
