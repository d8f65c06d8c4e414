"""What may still be decompressed, after some was and some could not be."""

from __future__ import annotations

import gzip

import pytest
import zstandard

from kwire.errors import DecodeError, LimitError
from kwire.limits import Limits
from kwire.records.budget import Budget
from kwire.records.compression import CODECS, compress, decompress, most_of

MIB = 1 << 20
ZSTD = CODECS.index("zstd")
ZSTD_HEADER = b"\x28\xb5\x2f\xfd\x00\x58"
REPEATED = (MIB // 8 << 3 | 2).to_bytes(3, "little") + b"a"
"""A block of 128 KiB that repeats one byte."""


def test_what_fails_costs_what_it_may_have_become_and_4_kib() -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=4 * MIB))
    # A quarter of the total is for failures, which cost 8 KiB each.
    for _ in range(MIB // 8192):
        assert budget.limit(4) == 4 * MIB
        budget.failed(budget.limit(4), 4096)
    assert budget.limit(4) == 64 * 4 + MIB
    # From now on they are charged to the total, but no more than they were allowed to become.
    budget.failed(budget.limit(4), 4096)
    assert budget.limit(MIB) == 4 * MIB - 8192
    budget.failed(100, 4096)
    assert budget.limit(MIB) == 4 * MIB - 8192 - 100


def test_failures_have_twice_the_limit_of_one_batch() -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=256 * MIB))
    for _ in range(2):
        assert budget.limit(10) == 4 * MIB
        budget.failed(4 * MIB, 9 * MIB)
    assert budget.limit(10) == MIB + 640
    budget.more(MIB)
    assert budget.limit(10) == 4 * MIB


@pytest.mark.parametrize(
    "bomb",
    [
        ZSTD_HEADER + REPEATED * 100 + b"\1\0\0",
        ZSTD_HEADER + REPEATED * 32,
        ZSTD_HEADER + REPEATED * 32 + b"\7\0\0",
        zstandard.ZstdCompressor(write_content_size=False).compress(bytes(40 * MIB)),
    ],
    ids=["blocks of one byte", "cut off", "wrong at the end", "compressed"],
)
def test_bombs_of_zstd_are_charged_with_what_was_made_of_them(bomb: bytes) -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=256 * MIB))
    for _ in range(3):
        with pytest.raises(DecodeError):
            budget.decompress(ZSTD, bomb)
    assert budget.limit(len(bomb)) == MIB + 64 * len(bomb)


@pytest.mark.parametrize(
    "sized", [zstandard.ZstdCompressor().compress(bytes(size)) for size in (200, 300, 70_000, MIB)]
)
def test_zstd_that_declares_too_much_is_refused_before_it_is_decompressed(
    sized: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(decompress(ZSTD, sized, MIB))
    monkeypatch.setattr("kwire.records.compression._zstd", None)
    monkeypatch.setattr("kwire.records.compression._Zstd", None)
    with pytest.raises(LimitError, match=f"more than the limit of {size - 1} bytes"):
        decompress(ZSTD, sized, size - 1)


@pytest.mark.parametrize("codec", range(1, len(CODECS)))
@pytest.mark.parametrize("data", [b"", b"a", bytes(MIB), bytes(range(256)) * 4096], ids=["none", "a", "zeros", "all"])
def test_nothing_becomes_more_than_the_most_that_is_charged(codec: int, data: bytes) -> None:
    assert most_of(codec, compress(codec, data), 2 * MIB) >= len(data)


def test_a_codec_that_is_not_defined_costs_nothing() -> None:
    assert most_of(7, b"abc", MIB) == 0


def test_a_bomb_of_gzip_is_charged_with_what_was_made_of_it() -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=64 * MIB))
    for _ in range(2):
        with pytest.raises(LimitError, match=r"Limits\(decompressed=...\) raises it"):
            budget.decompress(1, gzip.compress(bytes(8 * MIB)))
    with pytest.raises(LimitError, match=r"Limits\(total=...\) raises it"):
        budget.decompress(1, gzip.compress(bytes(8 * MIB)))


def test_a_long_capture_may_become_32_times_as_large() -> None:
    budget = Budget(Limits(decompressed=4 * MIB, total=4 * MIB))
    budget.made(4 * MIB)
    assert budget.limit(MIB) == 0
    budget.more(1000)
    assert budget.limit(MIB) == 32_000
