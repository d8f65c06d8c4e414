"""Numbers out of bytes, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from kwire.kernels import numbers
from kwire.kernels.engine import MACHINE, PYTHON, Engine


@pytest.mark.parametrize("run", [PYTHON, MACHINE], ids=["python", "machine"])
def test_numbers_are_read_in_both_orders_and_never_outside_of_the_array(run: Engine) -> None:
    data = np.array([0x81, 0x02, 0x03, 0x84, 0x05], np.uint8)
    assert (run(numbers.u16)(data, 0), run(numbers.little_u16)(data, 0), run(numbers.i16)(data, 0)) == (
        0x8102,
        0x0281,
        0x8102 - 0x10000,
    )
    assert (run(numbers.u32)(data, 0), run(numbers.little_u32)(data, 0)) == (0x81020384, 0x84030281)
    assert run(numbers.i32)(data, 0) == 0x81020384 - 0x100000000
    assert run(numbers.u32)(data, 1) == 0x02038405
    assert run(numbers.i64)(np.full(8, 0xFF, np.uint8), 0) == -1
    for read, width in ((numbers.u16, 2), (numbers.little_u16, 2), (numbers.u32, 4), (numbers.little_u32, 4)):
        assert run(read)(data, 5 - width) >= 0
        for outside in (5 - width + 1, -1, 5, 1 << 40):
            with pytest.raises(IndexError):
                run(read)(data, outside)


@pytest.mark.parametrize("run", [PYTHON, MACHINE], ids=["python", "machine"])
def test_sums_beyond_64_bits_wrap_around_and_say_nothing(run: Engine, recwarn: pytest.WarningsRecorder) -> None:
    most = np.full(8, 0xFF, np.uint8)
    assert run(numbers.long_varint)(np.append(most, [0xFF, 0x01]).astype(np.uint8), 0, 10, 10) == (-(1 << 63), 10)
    assert not recwarn.list


@pytest.mark.parametrize("run", [PYTHON, MACHINE], ids=["python", "machine"])
def test_bits_of_a_varint_beyond_32_are_lost(run: Engine) -> None:
    for data, value, signed in (
        (b"\xff\xff\xff\xff\x7f", 0xFFFFFFFF, -(1 << 31)),
        (b"\x84\x80\x80\x80\x70", 4, 2),
        (b"\x80\x80\x80\x80\x18", 0x80000000, 1 << 30),
    ):
        array = np.frombuffer(data, np.uint8).copy()
        assert run(numbers.unsigned_varint)(array, 0, 5) == (value, 5)
        assert run(numbers.long_varint)(array, 0, 5, 5) == (signed, 5)
