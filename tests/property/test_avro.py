"""Avro values of any schema, read as any that is related: kwire's kernel and fastavro make the same of them."""

from __future__ import annotations

import contextlib
import json
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import KwireError
from kwire.kernels.engine import MACHINE, Engine
from kwire.values.avro import decode, parse
from tests.support.avro_pairs import Pairs, damaged_schema, differences


@given(seed=st.integers(0, (1 << 32) - 1))
def test_kwire_and_fastavro_agree_about_values_and_about_damage(engine: Engine, seed: int) -> None:
    assert differences(random.Random(seed), 40 if engine is MACHINE else 4) == []


@given(seed=st.integers(0, (1 << 32) - 1))
def test_a_schema_that_is_damaged_raises_nothing_but_errors_of_kwire(seed: int) -> None:
    some = random.Random(seed)
    whole = Pairs(some).schema()
    texts = [json.dumps(damaged_schema(whole, some) if some.random() < 0.8 else whole) for _ in range(2)]
    with contextlib.suppress(KwireError):
        writer, reader = map(parse, texts)
        assert isinstance(writer.fingerprint, int)
        made = decode(pa.array([b"", bytes(9)]), [writer], reader=reader, recursive="json", spark=some.random() < 0.5)
        made.values.validate(full=True)
