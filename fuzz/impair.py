# Invariant: what networks, hosts and disks do to a capture changes no row where nothing is lost, at any window size;
# where something is lost no row depends on windows, none says ok of what was never sent, no frame is gone without a row
# that stands for its bytes; and nothing but CaptureError is raised. NOT_YET lists what of this does not hold so far.
"""Captures of real brokers, impaired as ``kwire.testing.impair`` knows it, held against what they were before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

from kwire.kernels.engine import MACHINE, using
from kwire.testing.impair import KINDS, Grade, Impaired, Kind, impair
from kwire.testing.judge import Original, Verdict, judge
from kwire.tls import KeyLog

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
LARGEST = 120_000


class Case(NamedTuple):
    """A run that is not as it should be, and why."""

    capture: str
    """Below ``GOLDEN``."""
    seed: int
    reason: str


LAST = ("checksums-wrong", "corrupt-copies", "fragmented")
"""Kinds that come behind all others: what builds segments anew gives them checksums that are right, and passes over
fragments."""
TINY = {"one-byte-segments", "resegmented-at-random"}

NOT_YET: dict[str, dict[str, Case]] = {"differing": {}, "invented": {}, "unseen": {}, "behind": {}}
"""What does not hold so far, by what is wrong (the fields of ``kwire.testing.judge.Verdict``) and kind."""

_originals: dict[str, Original] = {}


def captures() -> list[str]:
    """The golden captures, by their paths below ``GOLDEN``; of those over TLS, the ones of real clients and brokers."""
    paths = sorted([*GOLDEN.glob("*/*.pcap*"), *GOLDEN.glob("tls/kafka*/*.pcap*")])
    return [path.relative_to(GOLDEN).as_posix() for path in paths if path.suffix != ".gz"]


def originals() -> list[str]:
    """The captures that are small enough for many rounds."""
    return [name for name in captures() if (GOLDEN / name).stat().st_size <= LARGEST]


def original(name: str) -> Original:
    """A capture, read once."""
    if name not in _originals:
        keys = (GOLDEN / name).with_suffix(".keys")
        _originals[name] = Original((GOLDEN / name).read_bytes(), KeyLog.open(keys) if keys.exists() else None)
    return _originals[name]


def wrong(impaired: Impaired, verdict: Verdict) -> list[str]:
    """What is wrong, except for what is known to be."""
    found = {"differing": verdict.differing, "invented": verdict.invented, "unseen": verdict.unseen}
    kinds = {kind.name for kind in impaired.account.kinds}
    return [f"{what}: {rows[:3]}" for what, rows in found.items() if rows and not kinds & NOT_YET[what].keys()]


def _draw(rng: random.Random) -> list[Kind]:
    """One lossy kind, with a lossless one perhaps; or up to three that lose nothing."""
    of = {grade: [kind for kind in KINDS.values() if kind.grade is grade] for grade in Grade}
    if rng.random() < 0.4:
        return [rng.choice(of[Grade.LOSSY])]
    if rng.random() < 0.2:
        return [rng.choice(of[Grade.REPEATED])]
    drawn = rng.sample(of[Grade.LOSSLESS], rng.choice((1, 1, 2, 3)))
    # Of copies whose checksums are wrong like all others, nothing says which is right.
    names = {kind.name for kind in drawn}
    if {"corrupt-copies", "checksums-wrong"} <= names:
        drawn = [kind for kind in drawn if kind.name != "checksums-wrong"]
    return sorted(drawn, key=lambda kind: LAST.index(kind.name) if kind.name in LAST else -1)


def run(rng: random.Random) -> None:
    """One round."""
    name = rng.choice(originals())
    kinds = [kind.name for kind in _draw(rng)]
    seed = rng.randrange(1 << 30)
    window = rng.choice((None, 1000, 5000, 50_000))
    try:
        with using(MACHINE):
            before = original(name)
            if before.keys is not None and "syn-late" in kinds:
                # Where TLS begins with some bytes of a hello, without a SYN, docs/explanation/losses.md says why.
                kinds = [kind for kind in kinds if kind not in TINY]
            impaired = impair(before.capture, *kinds, seed=seed)
            said = wrong(impaired, judge(before, impaired, window=window))
        assert not said, said
    except Exception as error:
        error.add_note(f"{name}, {kinds}, seed {seed}, window {window}")
        raise
