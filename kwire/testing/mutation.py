"""Damaged bytes: cut off, lengthened, with bits flipped, with lengths that lie.

A ``Damage`` is one of them, as a value that can be pasted. ``mutate`` takes a ``random.Random``, for fuzzers and
scripts. ``mutations`` is the same as a Hypothesis strategy, so that a failing example shrinks. The kinds of damage are
those that parsers get wrong. A byte is replaced by a value at the edge of a length or varint (0, 127, 128, 255). A
four-byte length is replaced by an absurd one. A piece is repeated or left out. An end is missing or goes on.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kwire.testing.recipes import Recipe

__all__ = ["Damage", "damages", "mutate", "mutations"]

KINDS: Final = ("cut", "more", "flip", "edge", "absurd", "overlong", "twice", "without")
EDGES: Final = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
ABSURD: Final = (
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x0f\xff\xff",
)
OVERLONG: Final = (b"\x80\x00", b"\x81\x80\x00", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01")


@dataclass(frozen=True, repr=False)
class Damage(Recipe):
    """One thing that is done to bytes, at the place ``at`` (taken modulo their number).

    - ``cut``: nothing follows
    - ``more``: ``extra`` follows the end
    - ``flip``: the bit ``byte`` is another one
    - ``edge``: the byte becomes one of ``EDGES``
    - ``absurd``: four bytes become one of ``ABSURD``, a length that lies
    - ``overlong``: a byte becomes one of ``OVERLONG``, a varint
    - ``twice``: ``amount`` bytes are there twice
    - ``without``: ``amount`` bytes are not there
    """

    kind: str
    at: int = 0
    amount: int = 1
    byte: int = 0
    extra: bytes = b"\0"

    def apply(self, data: bytes) -> bytes:
        """The damaged bytes."""
        return _damage(data, KINDS.index(self.kind), self.at % (len(data) + 1), self.amount, self.byte, self.extra)


def mutate(data: bytes, rng: random.Random, times: int = 1) -> bytes:
    """``data`` with ``times`` damages, chosen by ``rng``. The result may, rarely, be as valid as the input."""
    for _ in range(times):
        kind = rng.randrange(8)
        at = rng.randrange(len(data) + 1)
        amount = rng.randrange(1, 9)
        data = _damage(data, kind, at, amount, rng.randrange(256), rng.randbytes(amount))
    return data


def damages(size: int) -> SearchStrategy[Damage]:
    """A Hypothesis strategy for what can be done to so many bytes."""
    return st.builds(
        Damage,
        st.sampled_from(KINDS),
        at=st.integers(0, max(size, 1) + 8),
        amount=st.integers(1, 8),
        byte=st.integers(0, 255),
        extra=st.binary(min_size=1, max_size=8),
    )


def mutations(data: bytes, max_times: int = 4) -> SearchStrategy[bytes]:
    """A Hypothesis strategy for ``data`` with 1 to ``max_times`` damages."""

    def apply(some: list[Damage]) -> bytes:
        out = data
        for one in some:
            out = one.apply(out)
        return out

    return st.lists(damages(len(data)), min_size=1, max_size=max_times).map(apply)


def _damage(data: bytes, kind: int, at: int, amount: int, byte: int, extra: bytes) -> bytes:
    before, after = data[:at], data[at:]
    if kind == 0:
        return before
    if kind == 1:
        return data + extra
    if kind == 2:
        return before + bytes([after[0] ^ 1 << byte % 8]) + after[1:] if after else data
    if kind == 3:
        return before + bytes([EDGES[byte % len(EDGES)]]) + after[1:]
    if kind == 4:
        return before + ABSURD[byte % len(ABSURD)] + after[4:]
    if kind == 5:
        return before + OVERLONG[byte % len(OVERLONG)] + after[1:]
    if kind == 6:
        return before + after[:amount] * 2 + after[amount:]
    return before + after[amount:]
