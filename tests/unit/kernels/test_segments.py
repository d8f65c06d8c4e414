"""The entries of log segments, found by both engines."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from record_sets import record_sets

from kwire.kernels.engine import MACHINE, PYTHON, Engine
from kwire.kernels.layouts import HEADER
from kwire.kernels.segments import EFFORT, framed, read_headers, resync


def test_python_and_machine_code_find_the_same_entries_of_a_segment() -> None:
    some = random.Random(1)
    data = b"".join(record_sets(some))
    whole = np.frombuffer(bytearray(data), np.uint8)
    broken = np.frombuffer(bytearray(some.randbytes(37) + data[5:]), np.uint8)

    def walked(engine: Engine) -> tuple[Any, ...]:
        table = np.empty(1000, HEADER)
        rows = engine(read_headers)(whole, table)
        return (
            table[:rows].tolist(),
            engine(framed)(whole, 0),
            engine(resync)(broken, 0, EFFORT),
            engine(resync)(broken[:200].copy(), 0, 0),
        )

    python, machine = walked(PYTHON), walked(MACHINE)
    assert python == machine
    # Plain messages are entries of their own, wrappers and batches one each.
    assert len(python[0]) == 2 * 35 + 2 * 3 + 5
    assert python[1] == (len(data), 0)
    assert python[2][0] > 37
