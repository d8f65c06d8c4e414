"""SipHash in kernels: the numbers of its authors, on both engines, and keys that differ."""

from __future__ import annotations

import numpy as np
import pytest

from kwire.kernels.engine import Engine
from kwire.kernels.hashing import fresh_key, hash_bytes, hash_three, hash_two

ONES = (1 << 64) - 1


def siphash(key: bytes, data: bytes, rounds: int = 1, last_rounds: int = 3) -> int:
    """SipHash as its paper has it, on Python's integers."""
    low, high = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    v = [low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D, low ^ 0x6C7967656E657261, high ^ 0x7465646279746573]

    def rotated(value: int, bits: int) -> int:
        return (value << bits | value >> 64 - bits) & ONES

    def mix(times: int) -> None:
        for _ in range(times):
            for a, b, turn, d, e, other in ((0, 1, 13, 2, 3, 16), (2, 1, 17, 0, 3, 21)):
                v[a] = (v[a] + v[b]) & ONES
                v[b] = rotated(v[b], turn) ^ v[a]
                v[a] = rotated(v[a], 32)
                v[d] = (v[d] + v[e]) & ONES
                v[e] = rotated(v[e], other) ^ v[d]

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        mix(rounds)
        v[0] ^= word
    v[2] ^= 255
    mix(last_rounds)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def halves(key: bytes) -> tuple[int, int]:
    low, high = np.frombuffer(key, np.int64)
    return low, high


KEYS = [bytes(range(16)), bytes(16), b"\xff" * 16, bytes(range(240, 256))]


def test_the_reference_gives_the_number_of_the_paper() -> None:
    assert siphash(bytes(range(16)), bytes(range(15)), 2, 4) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("key", KEYS)
def test_bytes_and_words_are_hashed_as_siphash_1_3_does(engine: Engine, key: bytes) -> None:
    data = np.frombuffer(bytearray(range(100, 160)), np.uint8)
    for length in range(50):
        found = int(engine(hash_bytes)(*halves(key), data, 3, length)) & ONES
        assert found == siphash(key, data[3 : 3 + length].tobytes())
    for words in ((0, 0, 0), (1, 2, 3), (-1, 1 << 62, -(1 << 63))):
        raw = np.array(words, np.int64)
        assert int(engine(hash_two)(*halves(key), *raw[:2])) & ONES == siphash(key, raw[:2].tobytes())
        assert int(engine(hash_three)(*halves(key), *raw)) & ONES == siphash(key, raw.tobytes())


def test_keys_are_fresh() -> None:
    keys = {fresh_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(-(1 << 63) <= half < 1 << 63 for key in keys for half in key)
