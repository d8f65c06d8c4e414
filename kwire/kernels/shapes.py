"""What the bodies of a kind have in common, so that its program need not be run over each of them.

Bodies of one API and version mostly differ in values alone. The program goes the same way through all of them. A shape
is that way, learnt from a body that was read to its end. It consists of stretches of bytes. Some bytes decide (counts,
nulls, tagged fields, error codes) and have to be the same again. After each stretch comes a string or bytes of any
length. To compare a body with it takes a few steps. The program has dozens of instructions, each of which waits for the
one before.

Rules kept here:

- A shape says what the program would say, or nothing. What it says is: the body is what its layout says, ends where the
  frame does, and has no error. All else is found out by the program.
- A body that is like a shape has room for all of it, within its frame. So its program would find each length and count
  possible, and read it to its end.
- Learning costs as much as some programs that are run. What a kind may spend on it is earned by bodies that are alike.
  Where they are not, it is given up (``Kind.credit``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.layouts import Row, table_type
from kwire.kernels.numbers import i16, int64, unlike_wide
from kwire.kernels.programs import COMPACT, MAX_DEPTH, Op, Trouble, length_there, skip_tags

__all__ = ["NOWHERE", "Memory", "is_like", "memory_for", "missed", "place_of"]

Array = Any

WAYS: Final = 4
"""Shapes of a kind that are remembered, a power of 2."""
_MOST_KINDS: Final = 32
_MOST_STRETCHES: Final = 32
_MOST_BLOCKS: Final = 32
"""Of a shape. Bodies with more are large, and seldom alike."""
_BLOCK: Final = 32
"""Bytes that are compared at once,"""
_WORDS: Final = 8
"""and the numbers that say what they are: four, and four masks, of 8 bytes each."""

_FIRST_CREDIT: Final = 48
_MOST_CREDIT: Final = 64
_TO_LEARN: Final = 16
"""Credit from which on a shape is learnt,"""
_PRICE: Final = 8
"""and what that costs. A body that is like a shape earns 1, one that is not costs 1."""

NOWHERE: Final = -1
_BYTE: Final = np.uint64(0xFF)


class Kind(Row):
    """Bodies of one API, version and direction."""

    credit: int
    """0 where shapes are no use."""
    latest: int
    """Which of its shapes a body was like last."""


class Stretch(Row):
    """Bytes of a fixed number, and the length of what follows them."""

    size: int
    blocks: int
    """How many blocks have bytes that decide."""
    width: int
    """Of the length after it, as in a program; 0 for the end of the body."""


KIND: Final = table_type(Kind)
STRETCH: Final = table_type(Stretch)


class Memory(NamedTuple):
    """The shapes of some kinds."""

    places: Array
    """By ``2 * api + response`` and version: the place of a kind in the other tables, NOWHERE before it was met."""
    used: Array
    """How many places are taken."""
    kinds: Array
    counts: Array
    """How many stretches each shape has, 0 for no shape."""
    stretches: Array
    words: Array
    """The blocks of each shape."""
    scratch: Array


def memory_for(starts: Array) -> Memory:
    """A memory without shapes, for the programs that ``Apis.layout_starts`` has."""
    shapes = _MOST_KINDS * WAYS
    return Memory(
        np.full(starts.shape, NOWHERE, np.int64),
        np.zeros(1, np.int64),
        np.empty(_MOST_KINDS, KIND),
        np.zeros(shapes, np.int64),
        np.empty(shapes * _MOST_STRETCHES, STRETCH),
        np.empty(shapes * _MOST_BLOCKS * _WORDS, np.uint64),
        np.empty(2 * MAX_DEPTH, np.int64),
    )


@inlined
def place_of(memory: Any, kind: int, version: int) -> int:
    """Where what is remembered of a kind stands. NOWHERE if it is no use, or there is no room for more."""
    place: int = memory.places[kind, version]
    if place < 0:
        place = memory.used[0]
        if place == memory.kinds.shape[0]:
            return int64(NOWHERE)
        memory.used[0] = place + 1
        memory.places[kind, version] = place
        memory.kinds[place].credit = _FIRST_CREDIT
        memory.kinds[place].latest = 0
    return place if memory.kinds[place].credit > 0 else int64(NOWHERE)


@inlined
def is_like(buf: Array, begin: int, end: int, memory: Any, place: int) -> bool:
    """Whether the program of the kind at ``place`` would read ``buf[begin:end]`` to its end and find no error. Shapes
    decide, as far as they can."""
    # Whole blocks are read, of which the last begins before ``end``.
    if end + _BLOCK > buf.shape[0]:
        return False
    kind = memory.kinds[place]
    way = int64(kind.latest)
    for _ in range(WAYS):
        if _has_shape(buf, begin, end, memory, place * WAYS + way):
            kind.latest = way
            kind.credit = min(kind.credit + 1, _MOST_CREDIT)
            return True
        way = (way + 1) & (WAYS - 1)
    return False


@inlined
def _has_shape(buf: Array, pos: int, end: int, memory: Any, shape: int) -> bool:
    first = shape * _MOST_STRETCHES
    word = shape * _MOST_BLOCKS * _WORDS
    for k in range(first, first + memory.counts[shape]):
        stretch = memory.stretches[k]
        blocks = stretch.blocks
        if stretch.size > end - pos:
            return False
        if blocks > 0:
            if unlike_wide(buf, pos, memory.words, word, blocks) != np.uint64(0):
                return False
            word += _WORDS * blocks
        pos += stretch.size
        if stretch.width == 0:
            return bool(pos == end)
        if stretch.width == COMPACT and pos < end and 0 < buf[pos] < 128:
            pos += int64(buf[pos])  # nearly always: a byte, and what it counts
            continue
        length, pos, trouble = length_there(buf, pos, end, stretch.width)
        if trouble != Trouble.NONE or length < 0:
            return False
        pos += length  # after the end, perhaps: then there is no room for the stretch that follows
    return False


@kernel
def missed(buf: Array, begin: int, end: int, code: Array, pc: int, whole: bool, memory: Any, place: int) -> None:
    """Notes that a body was like no shape of the kind at ``place``. ``whole``: its program, which begins at ``pc``, has
    read it to its end, without an error. Then its shape may be learnt."""
    kind = memory.kinds[place]
    kind.credit -= 1
    if whole and kind.credit >= _TO_LEARN:
        kind.credit -= _PRICE
        kind.latest = (kind.latest + 1) & (WAYS - 1)
        shape = place * WAYS + kind.latest
        memory.counts[shape] = _learn(buf, begin, end, code, pc, memory, shape)


@kernel
def _learn(buf: Array, pos: int, end: int, code: Array, pc: int, memory: Any, shape: int) -> int:
    """Makes a shape of a body that can be read to its end. Returns how many stretches it has, 0 if it cannot be one."""
    left = memory.scratch
    depth = int64(0)
    first_word = shape * _MOST_BLOCKS * _WORDS
    count = int64(0)
    used = int64(0)  # blocks of the stretches before
    size = int64(0)
    blocks = int64(0)
    while count < _MOST_STRETCHES:
        instruction = code[pc]
        op = instruction.op
        deciding = int64(0)
        after = pos
        pc += 1
        if op == Op.SKIP:
            after += instruction.width
        elif op == Op.BYTES or op == Op.STOP:
            length = int64(0)
            behind = pos
            width = int64(0)
            if op == Op.BYTES:
                width = instruction.width
                length, behind, _ = length_there(buf, pos, end, width)
            if length >= 0:
                stretch = memory.stretches[shape * _MOST_STRETCHES + count]
                stretch.size = size
                stretch.blocks = blocks
                stretch.width = width
                count += 1
                if op == Op.STOP:
                    return count
                used += blocks
                size = int64(0)
                blocks = int64(0)
                pos = behind + length
                continue
            deciding = behind - pos
            after = behind
        elif op == Op.ARRAY or op == Op.INTS:
            elements, after, _ = length_there(buf, pos, end, instruction.width)
            deciding = after - pos
            if op == Op.INTS:
                after += max(int64(0), elements) * instruction.least
            elif elements > 0:
                left[2 * depth] = elements
                left[2 * depth + 1] = after + elements * instruction.least
                depth += 1
            else:
                pc = instruction.target
        elif op == Op.NEXT:
            left[2 * depth - 2] -= 1
            if left[2 * depth - 2] > 0:
                pc = instruction.target
            elif pos < left[2 * depth - 1]:
                # Elements without bytes: another body that is as long so far may not have room for their number.
                return int64(0)
            else:
                depth -= 1
        elif op == Op.TAGS:
            after = skip_tags(buf, pos)
            deciding = after - pos
        elif op == Op.IF_PRESENT:
            after += 1
            deciding = int64(1)
            if buf[pos] > 127:
                pc = instruction.target
        elif op == Op.ERROR and i16(buf, pos) == 0:
            after += 2
            deciding = int64(2)
        else:
            return int64(0)
        for k in range(deciding):
            block = (size + k) >> 5
            if used + block >= _MOST_BLOCKS:
                return int64(0)
            for word in range(first_word + (used + blocks) * _WORDS, first_word + (used + block + 1) * _WORDS):
                memory.words[word] = np.uint64(0)
            blocks = block + 1
            word = first_word + (used + block) * _WORDS + ((size + k) >> 3 & 3)
            shift = np.uint64(8 * ((size + k) & 7))
            memory.words[word] |= np.uint64(buf[pos + k]) << shift
            memory.words[word + 4] |= _BYTE << shift
        size += after - pos
        pos = after
    return int64(0)
