"""Avro values of any schema, read as any that is related: kwire's kernel and fastavro make the same of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kwire.kernels.engine import MACHINE, Engine
from tests.support.avro_pairs import differences


@given(seed=st.integers(0, (1 << 32) - 1))
def test_kwire_and_fastavro_agree_about_values_and_about_damage(engine: Engine, seed: int) -> None:
    assert differences(random.Random(seed), 40 if engine is MACHINE else 4) == []
