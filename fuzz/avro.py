# Invariant: Avro values of any schema, read as any schema that is related to it by the rules of resolution, are the
# same for kwire and for fastavro, and what one of them refuses the other one refuses too. Damaged values included; what
# fastavro reads all the same is named in tests/support/avro_pairs.py (LAXER). A campaign of 100,000 pairs:
# python -m fuzz --only avro --rounds 100000 --seconds 3600 --seed 0
"""Pairs of Avro schemas of all types, with values, whole and damaged, by kwire and by fastavro."""

from __future__ import annotations

import random

from kwire.kernels.engine import MACHINE, using
from tests.support.avro_pairs import differences

VALUES = 20
"""Of each pair, and as many that are damaged: so many are read in lanes."""


def run(rng: random.Random) -> None:
    """A pair of schemas."""
    with using(MACHINE):
        found = differences(rng, VALUES)
    assert not found, found[0]
