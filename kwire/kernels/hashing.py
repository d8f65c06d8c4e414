"""Keyed hashing for tables of what traffic names: addresses and ports, client ids and topics, correlation ids.

Strategy: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) over the bytes of a name or over
a few words. CPython and Rust use this variant for their own tables. Whoever chooses names, addresses and ids does not
know the key of a table. So they cannot know which of them will share a place in it.

Rules kept here:

- Each table gets a key of its own from ``fresh_key`` when it is made. It hands the key to the kernels as numbers of a
  row. No key is a constant of a module (machine code is kept on disk, and shared). None is saved with the state of a
  capture: whoever restores one hashes anew.
- Nothing that is found may depend on a key. Tables number things in the order in which they appear.
- The words are int64, as everything is. Sums wrap around, and a shift to the right is followed by a mask.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.numbers import int64, load64

__all__ = ["fresh_key", "hash_bytes", "hash_three", "hash_two"]

Array = Any
_State = tuple[int, int, int, int]

_START_A: Final = 0x736F6D6570736575
_START_B: Final = 0x646F72616E646F6D
_START_C: Final = 0x6C7967656E657261
_START_D: Final = 0x7465646279746573
_END: Final = 0xFF


def fresh_key() -> tuple[int, int]:
    """The two halves of a key that nobody knows."""
    half = 1 << 63
    return secrets.randbits(64) - half, secrets.randbits(64) - half


@inlined
def _round(a: int, b: int, c: int, d: int) -> _State:
    a += b
    c += d
    b = ((b << 13) | ((b >> 51) & 0x1FFF)) ^ a
    d = ((d << 16) | ((d >> 48) & 0xFFFF)) ^ c
    a = (a << 32) | ((a >> 32) & 0xFFFFFFFF)
    c += b
    a += d
    b = ((b << 17) | ((b >> 47) & 0x1FFFF)) ^ c
    d = ((d << 21) | ((d >> 43) & 0x1FFFFF)) ^ a
    c = (c << 32) | ((c >> 32) & 0xFFFFFFFF)
    return a, b, c, d


@inlined
def _begin(key_a: int, key_b: int) -> _State:
    one, other = int64(key_a), int64(key_b)
    return one ^ _START_A, other ^ _START_B, one ^ _START_C, other ^ _START_D


@inlined
def _word(a: int, b: int, c: int, d: int, word: int) -> _State:
    a, b, c, d = _round(a, b, c, d ^ word)
    return a ^ word, b, c, d


@inlined
def _end(a: int, b: int, c: int, d: int, last: int) -> int:
    """``last``: what is left of the input, and its length in the highest byte."""
    a, b, c, d = _word(a, b, c, d, last)
    a, b, c, d = _round(a, b, c ^ _END, d)
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@kernel
def hash_two(key_a: int, key_b: int, one: int, two: int) -> int:
    """The hash of two words: that of their 16 bytes, little-endian."""
    a, b, c, d = _begin(key_a, key_b)
    a, b, c, d = _word(a, b, c, d, one)
    a, b, c, d = _word(a, b, c, d, two)
    return _end(a, b, c, d, int64(16) << 56)


@kernel
def hash_three(key_a: int, key_b: int, one: int, two: int, three: int) -> int:
    """The hash of three words: that of their 24 bytes, little-endian."""
    a, b, c, d = _begin(key_a, key_b)
    a, b, c, d = _word(a, b, c, d, one)
    a, b, c, d = _word(a, b, c, d, two)
    a, b, c, d = _word(a, b, c, d, three)
    return _end(a, b, c, d, int64(24) << 56)


@kernel
def hash_bytes(key_a: int, key_b: int, buf: Array, off: int, length: int) -> int:
    """The hash of ``buf[off : off + length]``, a range that the caller has checked."""
    a, b, c, d = _begin(key_a, key_b)
    whole = off + (length & ~7)
    for at in range(off, whole, 8):
        a, b, c, d = _word(a, b, c, d, int64(load64(buf, at)))
    last = int64(length) << 56
    for k in range(length & 7):
        last |= int64(buf[whole + k]) << (8 * k)
    return _end(a, b, c, d, last)
