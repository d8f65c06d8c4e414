"""Checksums by both engines against the libraries'."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from types import ModuleType

import crc32c
import numpy as np
import pytest

from kwire.kernels import checksums, intrinsics

LENGTHS = [*range(70), 127, 128, 129, 255, 256, 257, 767, 768, 769, 1535, 1536, 1537, 4096, 10_000]


@pytest.mark.parametrize("made_by", [checksums, intrinsics], ids=["python", "machine"])
@pytest.mark.parametrize("shift", range(9))
def test_checksums_of_any_length_and_alignment_are_those_of_the_libraries(shift: int, made_by: ModuleType) -> None:
    data = random.Random(shift).randbytes(max(LENGTHS) + shift)
    array = np.frombuffer(bytearray(data), np.uint8)
    for length in LENGTHS:
        part = data[shift : shift + length]
        assert made_by.crc32_of(array, shift, shift + length) == zlib.crc32(part)
        assert made_by.crc32c_of(array, shift, shift + length) == crc32c.crc32c(part)
        words = [int.from_bytes((part + b"\0")[at : at + 2]) for at in range(0, length, 2)]
        assert made_by.sum_of(array, shift, shift + length) == sum(words) % 65535


@pytest.mark.wide
def test_without_the_instructions_checksums_are_the_same(tmp_path: object) -> None:
    code = (
        "import zlib, crc32c, numpy as np; from kwire.kernels import intrinsics as k; d = bytes(range(256)) * 20; "
        "a = np.frombuffer(bytearray(d), np.uint8); "
        "print([(int(k.crc32_of(a, 3, n)) == zlib.crc32(d[3:n]), int(k.crc32c_of(a, 3, n)) == crc32c.crc32c(d[3:n])) "
        "for n in (3, 4, 20, 300, 5000)])"
    )
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == str([(True, True)] * 5)
