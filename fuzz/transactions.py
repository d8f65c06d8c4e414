# Invariant: of a whole capture each transaction is a row of ``transactions``; of one with holes, or cut into files, a
# row is what is true, part of it, or says that it is not known.
"""Random histories of transactions on the broker of ``kwire.testing``, whole, with holes and in several files."""

from __future__ import annotations

import random
import sys
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from told_transactions import Told, check_part, check_whole, rows_of

LOSSES = (0.02, 0.1, 0.3)


def run(rng: random.Random) -> None:
    """One history."""
    told = Told(rng.getrandbits(40), rng.randint(20, 120))
    whole = told.packets()
    check_whole(told, rows_of([whole]))
    for loss in LOSSES:
        check_part(told, rows_of([told.lossy(loss)]))
    cuts = [0, *sorted(rng.sample(range(1, len(whole)), 3)), len(whole)]
    check_whole(told, rows_of([whole[begin:end] for begin, end in pairwise(cuts)]))
    left_out = rng.randrange(4)
    parts = [whole[begin:end] for number, (begin, end) in enumerate(pairwise(cuts)) if number != left_out]
    check_part(told, rows_of(parts))
