"""The kernels of record sets: Python against machine code on whole and damaged input."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from record_sets import batch, record, record_sets, varint

from kwire.errors import DecodeError
from kwire.kernels import records
from kwire.kernels.engine import KERNELS, MACHINE, PYTHON, Engine, using
from kwire.records import Record, decode_sets, encode, to_arrow
from kwire.records.window import SCRATCH


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


@pytest.mark.parametrize(("size", "again"), [(8, False), (119, False), (120, True)])
def test_headers_of_up_to_128_bytes_are_not_read_again_where_they_are_like_those_before(
    monkeypatch: pytest.MonkeyPatch, size: int, again: bool
) -> None:
    read, calls = records._read_headers, []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments[1])
        return read(*arguments)

    monkeypatch.setattr(records, "_read_headers", counted)
    headers = [("trace", bytes(size))]
    with using(PYTHON):
        made = to_arrow(encode([Record(b"k", b"v" * 60, headers=headers) for _ in range(40)]))
    assert made.column("headers").to_pylist() == [[{"key": "trace", "value": bytes(size)}]] * 40
    assert len(calls) == 40 if again else len(calls) < 5


@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
def test_headers_are_the_same_however_many_bytes_were_expected(engine: Engine) -> None:
    some = [Record(b"k", b"v", headers=[("trace-id-of-20-bytes", b"%04d" % one)]) for one in range(20)]
    data = encode(some[:10]) + encode(some[10:], base_offset=10)
    expected = [[{"key": key, "value": value} for key, value in one.headers] for one in some]
    with using(engine):
        for share in np.linspace(0, 1, 21):
            SCRATCH.shares[:] = [share] * len(SCRATCH.shares)
            assert to_arrow(data).column("headers").to_pylist() == expected


@pytest.mark.parametrize("headers", [(), ((b"h", b"v"),)])
@pytest.mark.parametrize("engine", [PYTHON, MACHINE])
def test_bytes_behind_the_last_header_are_counted(engine: Engine, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    whole = record(headers=headers)
    problems: list[DecodeError] = []
    with using(engine):
        to_arrow(batch(varint(len(whole) + 2) + whole[1:] + b"xyz", 1), problems=problems)
    assert [one.message for one in problems] == ["record 0: 3 bytes behind its last header"]


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
