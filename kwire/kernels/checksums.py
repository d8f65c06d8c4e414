"""CRC-32 (messages of magic 0 and 1), CRC-32C (record batches) and the sum of TCP (RFC 1071) inside of kernels.

As Python they are zlib's, the library's and an integer's. As machine code (``kwire.kernels.intrinsics``) they use the
instructions that the processor has for them. Where it has none, they use tables.
"""

from __future__ import annotations

import zlib
from typing import Any

from crc32c import crc32c

from kwire.kernels.engine import primitive

__all__ = ["crc32_of", "crc32c_keeps_up", "crc32c_of", "sum_of"]


@primitive
def crc32_of(data: Any, start: int, end: int) -> int:
    """CRC-32 of ``data[start:end]``, a range that the caller has checked."""
    return zlib.crc32(data[start:end])


@primitive
def crc32c_of(data: Any, start: int, end: int) -> int:
    """CRC-32C of ``data[start:end]``, a range that the caller has checked."""
    return int(crc32c(data[start:end]))


@primitive
def crc32c_keeps_up(size: int) -> bool:
    """Whether ``crc32c_of`` is as fast for ``size`` bytes as a call of the library would be."""
    return True


@primitive
def sum_of(data: Any, start: int, end: int) -> int:
    """The sum of the 16-bit numbers in ``data[start:end]``, big-endian, modulo 65535. A last byte is the upper half of
    a number. Ones' complement addition wraps around at 65535. The caller has checked the range."""
    odd = int(end - start) & 1
    return (int.from_bytes(data[start:end].tobytes()) << 8 * odd) % 0xFFFF
