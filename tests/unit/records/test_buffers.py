"""Memory that is used again: never while somebody has a part of it, and bounded."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire import records
from kwire.records import buffers
from kwire.records.buffers import Buffers

SIZE = buffers.LEAST + 100


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize(
    "part",
    [
        lambda one: one[5:9],
        lambda one: memoryview(one)[:3],
        lambda one: pa.py_buffer(one[:8]),
        lambda one: pa.Array.from_buffers(pa.uint8(), 8, [None, pa.py_buffer(one)]).slice(2, 3),
        lambda one: one[:8].view(np.int64),
    ],
    ids=["slice", "memoryview", "buffer", "column", "view"],
)
def test_what_somebody_has_a_part_of_is_not_used_again(part: Callable[[Any], Any]) -> None:
    some = Buffers()
    first = some.take(SIZE)
    assert len(first) == SIZE
    place, held = address(first), part(first)
    del first
    second = some.take(SIZE)
    assert address(second) != place
    del held, second
    assert place in {address(some.take(SIZE)), address(some.take(SIZE))}


def test_what_is_kept_is_bounded_and_of_the_thread() -> None:
    some = Buffers()
    held = [some.take(SIZE + n) for n in range(3 * buffers.KEPT)]
    assert len({address(one) for one in held}) == len(held)
    assert len(some._kept) == buffers.KEPT
    del held
    few, large = some.take(10), some.take(buffers.MOST + 1)
    assert (len(few), len(large)) == (10, buffers.MOST + 1)
    assert len(some._kept) == buffers.KEPT
    # Small arrays are the allocator's.
    before = list(map(id, some._kept))
    some.take(buffers.LEAST - 1)
    assert list(map(id, some._kept)) == before
    assert (buffers.LEAST, buffers.MOST) == (2**20, 2**24)
    seen: list[int] = []
    other = threading.Thread(target=lambda: seen.append(len(some._kept)))
    other.start()
    other.join()
    assert seen == [0]


def test_arrays_are_made_an_eighth_larger_than_asked_for_up_to_the_most() -> None:
    some = Buffers()
    assert len(some.take(SIZE)) == SIZE
    assert len(some.take(buffers.MOST - 8)) == buffers.MOST - 8
    assert [len(one) for one in some._kept] == [SIZE + SIZE // 8, buffers.MOST]


FAULTS = """
import resource
import numpy as np
from kwire.records.buffers import LEAST, Buffers
Buffers().take(LEAST)
counts = []
for _ in range(20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [np.ones(LEAST // 2, np.uint8) for _ in range(12)]
    del held
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(counts))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators keep memory by rules of their own")
def test_arrays_of_a_window_that_are_given_back_do_not_go_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=60)
    # Each has 128 pages, or one where pages are huge.
    assert int(done.stdout) < 12


def test_batches_that_are_kept_keep_their_values() -> None:
    sets = [
        records.encode([records.Record(b"k", bytes([number]) * 4000, timestamp=1) for _ in range(400)])
        for number in range(8)
    ]
    batches = [records.to_arrow(one) for one in sets]
    for number, batch in enumerate(batches):
        assert set(batch.column("value").to_pylist()) == {bytes([number]) * 4000}
