"""The two checksums of record sets.

CRC-32 (the polynomial of zlib) protects each message of magic 0 and 1, from the magic byte to the end of the value.
CRC-32C (Castagnoli) protects a record batch of magic 2, from its attributes to its end. Partition leader epoch, base
offset and length are outside, because brokers rewrite them. Both are returned as unsigned 32-bit integers.

The columnar reader computes short ones in its kernels (``kwire.kernels.checksums``). A call from Python costs more than
the checksum of a small batch.

Source: Kafka protocol guide, "Record Batch" and "Old Message Format"; KIP-98 for CRC-32C.
"""

from __future__ import annotations

import zlib
from typing import Final

import crc32c as _crc32c

__all__ = ["WRONG_CHECKSUM", "crc32", "crc32c"]

WRONG_CHECKSUM: Final = "the checksum does not match"
"""The sentence for a record or batch whose checksum is not the one that it shows."""


def crc32(data: bytes | memoryview) -> int:
    """CRC-32 of ``data``, as in messages of magic 0 and 1."""
    return zlib.crc32(data)


def crc32c(data: bytes | memoryview) -> int:
    """CRC-32C of ``data``, as in record batches of magic 2."""
    return _crc32c.crc32c(data)
