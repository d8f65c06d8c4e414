"""Numbers out of bytes, for all kernels: fixed width, varints, and copies between buffers.

Rules kept here:

- ``u16``, ``u32``, ``i16``, ``i32``, ``i64`` are big-endian, as Kafka and IP write numbers; capture files may have the
  other order (``little_u16``). Each checks, once, that all its bytes are inside of the array, and raises ``IndexError``
  if not. So a caller that forgot to look cannot do harm.
- ``load64`` and the copies in steps check nothing and touch more bytes than they are asked for. The condition stands
  beside each use. Output buffers end with ``SLACK`` spare bytes for them.
- What a kernel computes with is int64. Bits are taken apart as uint64, since shifts of signed numbers repeat the sign.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from kwire.kernels.engine import kernel, primitive
from kwire.kernels.layouts import moved

__all__ = [
    "SLACK",
    "copy",
    "copy_long",
    "copy_wide",
    "grown",
    "i16",
    "i32",
    "i64",
    "int64",
    "item_at",
    "little_u16",
    "little_u32",
    "load64",
    "long_varint",
    "plain",
    "set_item",
    "shift_wide",
    "short_varint",
    "u16",
    "u32",
    "unlike_wide",
    "unsigned_varint",
]

int64: Any = np.int64
"""``numpy.int64`` for use in kernels: what a kernel computes is an int to mypy, and numba checks the rest."""

Array = Any

SLACK: Final = 64
"""Spare bytes at the end of every output buffer that is written to in steps of 32 or 64."""

_ONES: Final = np.uint64(0xFFFFFFFF)


# --- what numba cannot say itself -------------------------------------------------------------------------------------
# The twins stand in ``intrinsics``. None of these checks anything: the caller has checked that the bytes are there.


def _load(array: Array, at: int, width: int, order: Literal["big", "little"]) -> int:
    # An int64, since what numbers are put together to must wrap around here as it does in machine code.
    value: int = int64(int.from_bytes(array[at : at + width].tobytes(), order))
    return value


@primitive
def plain(code: int) -> int:
    """A member of an enumeration as a number. Where kernels run as Python it is an int, since numpy compares its own
    numbers with members slowly."""
    return int(code)


@primitive
def big16(array: Array, at: int) -> int:
    """Two bytes, big-endian, unsigned."""
    return _load(array, at, 2, "big")


@primitive
def big32(array: Array, at: int) -> int:
    """Four bytes, big-endian, unsigned."""
    return _load(array, at, 4, "big")


@primitive
def big64(array: Array, at: int) -> Any:
    """Eight bytes, big-endian, signed."""
    return np.int64(int.from_bytes(array[at : at + 8].tobytes(), "big", signed=True))


@primitive
def little16(array: Array, at: int) -> int:
    """Two bytes, little-endian, unsigned."""
    return _load(array, at, 2, "little")


@primitive
def little32(array: Array, at: int) -> int:
    """Four bytes, little-endian, unsigned."""
    return _load(array, at, 4, "little")


@primitive
def load64(array: Array, at: int) -> Any:
    """Eight bytes from any position as a little-endian uint64."""
    return np.uint64(int.from_bytes(array[at : at + 8].tobytes(), "little"))


@primitive
def item_at(items: Array, at: int) -> int:
    """``items[at]`` of a one-dimensional array of integers, unchecked."""
    value: int = int64(items[at])
    return value


@primitive
def set_item(items: Array, at: int, value: int) -> None:
    """``items[at] = value`` in such an array, unchecked. Bits that have no place there are dropped."""
    items[at] = int64(value).astype(items.dtype)


@primitive
def prefetch(array: Array, at: int) -> None:
    """Has what stands around ``at``, which may be anywhere, brought near: it will be read soon. Nothing is read."""


@primitive
def copy_exact(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """``size`` bytes, no more."""
    target[to : to + size] = source[at : at + size]


@primitive
def copy_wide(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """``size`` bytes in steps of 32, at least one, so that up to 32 more are read and written. For what is short."""
    target[to : to + size] = source[at : at + size]


@primitive
def copy_long(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """The same in steps of 64: up to 64 more."""
    target[to : to + size] = source[at : at + size]


@primitive
def shift_wide(array: Array, at: int, to: int, count: int, more: int) -> None:
    """``array[to + i] = array[at + i] + more`` for ``count`` int32, in steps of 8, at least one. Up to 8 more are read
    and written."""
    array[to : to + count] = array[at : at + count] + np.int32(more)


@primitive
def unlike_wide(source: Array, at: int, form: Array, first: int, steps: int) -> Any:
    """0 where ``steps`` times 32 bytes of ``source``, masked, are those of ``form`` (uint64) from ``first`` on. Each
    step takes four words and four masks."""
    words = source[at : at + 32 * steps].view("<u8").reshape(-1, 4)
    pairs = form[first : first + 8 * steps].reshape(-1, 2, 4)
    return np.uint64(((words & pairs[:, 1]) ^ pairs[:, 0]).any())


# --- fixed width ------------------------------------------------------------------------------------------------------
# One check of a whole number, in place of one for each of its bytes, makes these small enough to become part of the
# kernels that call them.


@kernel
def u16(buf: Array, at: int) -> int:
    """Two bytes of a contiguous uint8 array, unsigned."""
    if at < 0 or at + 2 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    return big16(buf, at)


@kernel
def u32(buf: Array, at: int) -> int:
    """Four bytes, unsigned."""
    if at < 0 or at + 4 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    return big32(buf, at)


@kernel
def i16(buf: Array, at: int) -> int:
    """Two bytes, signed."""
    value = u16(buf, at)
    return value - ((value & 0x8000) << 1)


@kernel
def i32(buf: Array, at: int) -> int:
    """Four bytes, signed."""
    value = u32(buf, at)
    return value - ((value & 0x80000000) << 1)


@kernel
def i64(buf: Array, at: int) -> int:
    """Eight bytes, signed."""
    if at < 0 or at + 8 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    value: int = big64(buf, at)
    return value


@kernel
def little_u16(buf: Array, at: int) -> int:
    """Two bytes, little-endian, unsigned."""
    if at < 0 or at + 2 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    return little16(buf, at)


@kernel
def little_u32(buf: Array, at: int) -> int:
    """Four bytes, little-endian, unsigned."""
    if at < 0 or at + 4 > buf.shape[0]:
        raise IndexError("index is out of bounds")
    return little32(buf, at)


# --- varints ----------------------------------------------------------------------------------------------------------


@kernel
def unsigned_varint(buf: Array, pos: int, end: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits: (value, position after it). Position is -1 where the bytes end within it,
    -2 where it has more than 5."""
    if pos < end and buf[pos] < 128:
        return int64(buf[pos]), int64(pos + 1)
    value = int64(0)
    shift = int64(0)
    while True:
        if pos >= end:
            return int64(0), int64(-1)
        byte = int64(buf[pos])
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFF, int64(pos)
        shift += 7
        if shift > 28:
            return int64(0), int64(-2)


@kernel
def long_varint(data: Array, pos: int, end: int, most: int) -> tuple[int, int]:
    """A zigzag varint of at most ``most`` bytes, byte by byte: (value, position after it), -1 if there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(most):
        if pos >= end:
            return int64(0), int64(-1)
        byte = np.uint64(data[pos])
        pos += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            if most == 5:
                # Kafka collects it in an int: bits beyond the 32nd are lost.
                value &= _ONES
            return int64(value >> np.uint64(1)) ^ -int64(value & np.uint64(1)), int64(pos)
        shift += np.uint64(7)
    return int64(0), int64(-1)


@kernel
def short_varint(word: Any) -> int:
    """The zigzag varint that ``word`` starts with, as value * 256 + size; 0 when it has more than four bytes."""
    if word & np.uint64(0x80) == np.uint64(0):
        value = word & np.uint64(0x7F)
        size = int64(1)
    elif word & np.uint64(0x8000) == np.uint64(0):
        value = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
        size = int64(2)
    elif word & np.uint64(0x80000000) != np.uint64(0) and word & np.uint64(0x800000) != np.uint64(0):
        return int64(0)
    else:
        value = (
            word & np.uint64(0x7F)
            | (word >> np.uint64(1)) & np.uint64(0x3F80)
            | (word >> np.uint64(2)) & np.uint64(0x1FC000)
        )
        size = int64(3)
        if word & np.uint64(0x800000) != np.uint64(0):
            value |= (word >> np.uint64(3)) & np.uint64(0xFE00000)
            size = int64(4)
    made: int = (int64(value >> np.uint64(1)) ^ -int64(value & np.uint64(1))) * 256 + size
    return made


# --- buffers ----------------------------------------------------------------------------------------------------------


@kernel
def copy(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """``size`` bytes, exactly, if both ranges are inside of their arrays."""
    if size > 0 and at >= 0 and to >= 0 and at + size <= source.shape[0] and to + size <= target.shape[0]:
        copy_exact(source, at, target, to, size)


def grown(table: Array, least: int = 0) -> Array:
    """A copy of a table with twice the rows, at least 16 and ``least``; for Python, between calls of kernels."""
    bigger = np.empty((max(16, table.shape[0] * 2, least), *table.shape[1:]), table.dtype)
    if table.dtype.names:
        moved(table, bigger)
    else:
        bigger[: table.shape[0]] = table
    return bigger
