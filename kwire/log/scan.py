"""The loops over whole segments, compiled: where entries are, and what their headers say.

Rules kept here: as in ``kwire.records.kernels``. Positions count in the array that is passed in.

Source: Kafka protocol guide, "Record Batch" and "Old Message Format".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.jit import kernel
from kwire.records.kernels import be16, be32, be64, crc32_of, crc32c_of

__all__ = ["HEADER_FIELDS", "LARGEST", "Header", "framed", "headers", "resync"]

LARGEST: Final = 256 << 20
"""An entry that claims more bytes is damage: brokers refuse batches above ``message.max.bytes``, 1 MiB by default."""

_EFFORT: Final = 64
"""How many times its own size ``resync`` may checksum of an array: what looks like an entry everywhere ends there."""


class Header:
    """Columns of the table that ``headers`` makes, one row per entry; -1 where the format has no such field."""

    POSITION: Final = 0
    SIZE: Final = 1
    MAGIC: Final = 2
    BASE: Final = 3
    LAST: Final = 4
    COUNT: Final = 5
    MAX_TIMESTAMP: Final = 6
    ATTRIBUTES: Final = 7
    CRC: Final = 8
    CRC_OK: Final = 9
    PRODUCER: Final = 10
    EPOCH: Final = 11
    SEQUENCE: Final = 12
    LEADER: Final = 13
    BASE_TIMESTAMP: Final = 14


HEADER_FIELDS: Final = 15


@kernel
def framed(data: Any, pos: Any) -> Any:
    """Walks entries from ``pos``: where it stopped, and 1 if a length there cannot be one, 0 if the entry goes on."""
    while data.size - pos >= 12:
        size = be32(data, pos + 8)
        if size < 14 or size > LARGEST:
            return pos, 1
        if size > data.size - pos - 12:
            return pos, 0
        pos += 12 + size
    return pos, 0


@kernel
def resync(data: Any, start: Any) -> Any:
    """The first position from ``start`` at which a whole entry stands whose checksum is right; -1 if there is none.

    The second number is where a search in this data with more behind it should begin: everything before it is no
    entry, or one that would be longer than half of what is here.
    """
    budget = _EFFORT * data.size
    keep = np.int64(-1)
    for pos in range(start, data.size - 16):
        magic = data[pos + 16]
        # The offset is not negative, the magic is known: nothing else costs more than a look.
        if magic > 2 or data[pos] > 127:
            continue
        size = be32(data, pos + 8)
        least = 49 if magic == 2 else 14 + 8 * np.int64(magic)
        if size < least or size > LARGEST:
            continue
        if size > data.size - pos - 12:
            if keep < 0 and pos >= data.size // 2:
                keep = np.int64(pos)
            continue
        budget -= size
        if budget < 0:
            return np.int64(-1), np.int64(data.size)
        end = pos + 12 + size
        if magic == 2:
            if crc32c_of(data, pos + 21, end) == be32(data, pos + 17) & 0xFFFFFFFF:
                return np.int64(pos), keep
        elif crc32_of(data, pos + 16, end) == be32(data, pos + 12) & 0xFFFFFFFF:
            return np.int64(pos), keep
    if keep < 0:
        keep = np.int64(max(start, data.size - 16))
    return np.int64(-1), keep


@kernel
def _headers(data: Any, table: Any) -> Any:
    rows = 0
    pos = np.int64(0)
    while data.size - pos >= 12:
        size = be32(data, pos + 8)
        if size < 14 or size > data.size - pos - 12:
            break
        end = pos + 12 + size
        if rows < table.shape[0]:
            row = table[rows]
            row[:] = -1
            magic = np.int64(np.int8(data[pos + 16]))
            row[0] = pos
            row[1] = 12 + size
            row[2] = magic
            row[9] = -1
            if magic == 2 and size >= 49:
                row[3] = be64(data, pos)
                row[4] = be64(data, pos) + be32(data, pos + 23)
                row[5] = be32(data, pos + 57)
                row[6] = be64(data, pos + 35)
                row[7] = be16(data, pos + 21)
                row[8] = be32(data, pos + 17) & 0xFFFFFFFF
                row[9] = np.int64(crc32c_of(data, pos + 21, end) == row[8])
                row[10] = be64(data, pos + 43)
                row[11] = be16(data, pos + 51)
                row[12] = be32(data, pos + 53)
                row[13] = be32(data, pos + 12)
                row[14] = be64(data, pos + 27)
            elif magic == 0 or (magic == 1 and size >= 22):
                row[4] = be64(data, pos)
                row[6] = be64(data, pos + 18) if magic == 1 else np.int64(-1)
                row[7] = np.int64(data[pos + 17])
                row[8] = be32(data, pos + 12) & 0xFFFFFFFF
                row[9] = np.int64(crc32_of(data, pos + 16, end) == row[8])
        rows += 1
        pos = end
    return rows


def headers(data: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """What the headers of the entries in ``data`` (a uint8 array) say: an int64 array with the columns of ``Header``.

    An entry of unknown magic, or too short for its magic, has CRC_OK -1.
    """
    table = np.empty((data.size // 512 + 16, HEADER_FIELDS), np.int64)
    rows = _headers(data, table)
    if rows > len(table):
        table = np.empty((rows, HEADER_FIELDS), np.int64)
        rows = _headers(data, table)
    return table[:rows]
