"""The kernels of record sets: checksums against the libraries, and Python against machine code on damaged input."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from types import ModuleType
from typing import Any

import crc32c
import numpy as np
import pytest

from kwire.kernels import checksums, intrinsics
from kwire.kernels.engine import KERNELS, MACHINE, PYTHON, Engine, using
from kwire.kernels.layouts import HEADER
from kwire.kernels.segments import EFFORT, framed, read_headers, resync
from kwire.records import CODECS, Record, decode_sets, encode

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


def record_sets(some: random.Random) -> list[bytes]:
    """A set of each magic and codec, with headers of one form and of many, nulls, and a producer."""
    made = []
    for magic in (0, 1, 2):
        for codec in CODECS:
            if codec == "zstd" and magic < 2:
                continue
            records = [
                Record(
                    some.choice([None, b"", some.randbytes(some.randrange(90))]),
                    some.choice([None, some.randbytes(some.randrange(90))]),
                    timestamp=some.randrange(1 << 41) if magic else None,
                    headers=[
                        ("name" * some.randrange(3), some.choice([None, some.randbytes(some.randrange(40))]))
                        for _ in range(some.choice([0, 2, some.randrange(20)]))
                    ]
                    if magic == 2
                    else [],
                )
                for _ in range(30)
            ]
            records += [Record(b"k", b"v", headers=[("a", b"1"), ("b", None)] if magic == 2 else [])] * 5
            made.append(encode(records, magic=magic, compression=codec, base_offset=some.randrange(1000)))
    return made


def damaged(data: bytes, some: random.Random) -> bytes:
    bad = bytearray(data)
    for _ in range(some.randrange(4)):
        bad[some.randrange(len(bad))] = some.choice([0, 1, 127, 128, 255, some.randrange(256)])
    return bytes(bad[: some.choice([len(bad), len(bad), some.randrange(len(bad))])])


@pytest.mark.parametrize("seed", range(6))
def test_python_and_machine_code_read_the_same_out_of_whole_and_damaged_sets(seed: int) -> None:
    some = random.Random(seed)
    sets = [damaged(each, some) if seed else each for each in record_sets(some)]
    lengths = np.array([len(each) for each in sets], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    buffer = np.frombuffer(b"".join(sets), np.uint8)
    found: list[Any] = []
    for engine in (PYTHON, MACHINE):
        with using(engine):
            found.append(decode_sets(buffer, starts, lengths))
    python, machine = found
    assert python.batch.equals(machine.batch)
    assert python.batch.num_rows > (100 if seed else 400)
    assert python.problems == machine.problems
    assert bool(python.problems) == bool(seed)
    assert python.set_index.tolist() == machine.set_index.tolist()
    assert python.consumed.tolist() == machine.consumed.tolist()


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


def test_kernels_return_no_arrays() -> None:
    """They count no references: an array that one of them returned would be given back while it is used."""
    sets = record_sets(random.Random(2))
    lengths = np.array([len(each) for each in sets], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(np.int64)
    buffer = np.frombuffer(bytearray(b"".join(sets)), np.uint8)
    with using(MACHINE):
        decode_sets(buffer, starts, lengths)
    returned = [
        (kernel.__qualname__, signature.return_type)
        for kernel in KERNELS
        for signature in MACHINE(kernel).nopython_signatures  # type: ignore[attr-defined]
    ]
    assert {"scan", "read_records"} <= {name for name, _ in returned}
    assert [name for name, kind in returned if "array" in str(kind).lower()] == []
