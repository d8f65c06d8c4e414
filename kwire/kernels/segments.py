"""The loops over whole segments and record sets: where entries are, and what their headers say.

Rules kept here: as in ``kwire.kernels.records``. Positions count in the array that is passed in.

Source: Kafka protocol guide, "Record Batch" and "Old Message Format".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.kernels.checksums import crc32_of, crc32c_of
from kwire.kernels.engine import kernel
from kwire.kernels.numbers import i16, i32, i64, int64, u32
from kwire.kernels.records import LEAST_BATCH, LEAST_MESSAGE, LOG_OVERHEAD

__all__ = ["EFFORT", "LARGEST", "framed", "read_headers", "read_set_headers", "resync"]

Array = Any
Row = Any

LARGEST: Final = 256 << 20
"""An entry that claims more bytes is damage. Brokers refuse batches above ``message.max.bytes``, 1 MiB by default."""

EFFORT: Final = 32 << 20
"""Bytes that ``resync`` may checksum in vain before it has looked at any position."""
_EFFORT_PER_POSITION: Final = 256
"""Bytes more for each position that it looks at. Work is in proportion to the input, whatever looks like an entry."""
_ALWAYS: Final = 1024
"""An entry of so many bytes or fewer is tried in any case. Many that are larger cannot be in its way."""


@kernel
def framed(data: Array, pos: int) -> tuple[int, int]:
    """Walks entries from ``pos``. Returns where it stopped, and 1 if a length there cannot be one, 0 if the entry goes
    on."""
    while data.shape[0] - pos >= LOG_OVERHEAD:
        size = i32(data, pos + 8)
        if size < LEAST_MESSAGE or size > LARGEST:
            return int64(pos), int64(1)
        if size > data.shape[0] - pos - LOG_OVERHEAD:
            return int64(pos), int64(0)
        pos += LOG_OVERHEAD + size
    return int64(pos), int64(0)


@kernel
def _right(data: Array, pos: int, end: int, magic: int) -> Any:
    """Whether the checksum of the entry ``data[pos:end]``, which is long enough for its magic, is right."""
    if magic == 2:
        return crc32c_of(data, pos + 21, end) == u32(data, pos + 17)
    return crc32_of(data, pos + 16, end) == u32(data, pos + 12)


@kernel
def resync(data: Array, start: int, effort: int) -> tuple[int, int, int]:
    """The first position from ``start`` at which a whole entry stands whose checksum is right. -1 if there is none.

    The second number is where a search in this data, with more after it, should begin. Everything before it is no
    entry, or one that would be longer than half of what is here.

    ``effort`` is how many bytes may be checksummed in vain (of a file: ``EFFORT`` at first). The third number is what
    the next search may. What looks like an entry and is more than that is skipped, and the search goes on after it. A
    batch that was skipped so is lost; those after it are not.
    """
    length = int64(data.shape[0])
    effort = int64(effort)
    keep = int64(-1)
    for at in range(start, length - 16):
        pos = int64(at)
        effort += _EFFORT_PER_POSITION
        magic = int64(data[pos + 16])
        # The offset is not negative, the magic is known: nothing else costs more than a look.
        if magic > 2 or data[pos] > 127:
            continue
        size = i32(data, pos + 8)
        least = LEAST_BATCH if magic == 2 else LEAST_MESSAGE + 8 * magic
        if size < least or size > LARGEST:
            continue
        if size > length - pos - LOG_OVERHEAD:
            if keep < 0 and pos >= length // 2:
                keep = pos
            continue
        if size > _ALWAYS:
            if size > effort:
                continue
            effort -= size
        if _right(data, pos, pos + LOG_OVERHEAD + size, magic):
            return pos, keep, effort
    if keep < 0:
        keep = max(int64(start), length - 16)
    return int64(-1), keep, effort


@kernel
def _read_header(data: Array, pos: int, end: int, header: Row) -> None:
    """What the header of the entry ``data[pos:end]`` says."""
    size = end - pos - LOG_OVERHEAD
    magic = int64(np.int8(data[pos + 16]))
    header.position = pos
    header.size = end - pos
    header.magic = magic
    header.base = -1
    header.last = -1
    header.count = -1
    header.max_timestamp = -1
    header.attributes = -1
    header.crc = -1
    header.crc_ok = -1
    header.producer = -1
    header.epoch = -1
    header.sequence = -1
    header.leader = -1
    header.base_timestamp = -1
    if magic == 2 and size >= LEAST_BATCH:
        header.base = i64(data, pos)
        header.last = header.base + i32(data, pos + 23)
        header.count = i32(data, pos + 57)
        header.max_timestamp = i64(data, pos + 35)
        header.attributes = i16(data, pos + 21)
        header.crc = u32(data, pos + 17)
        header.producer = i64(data, pos + 43)
        header.epoch = i16(data, pos + 51)
        header.sequence = i32(data, pos + 53)
        header.leader = i32(data, pos + 12)
        header.base_timestamp = i64(data, pos + 27)
    elif (magic == 0 or magic == 1) and size >= LEAST_MESSAGE + 8 * magic:
        header.last = i64(data, pos)
        if magic == 1:
            header.max_timestamp = i64(data, pos + 18)
        header.attributes = int64(data[pos + 17])
        header.crc = u32(data, pos + 12)
    else:
        return
    header.crc_ok = int64(_right(data, pos, end, magic))


@kernel
def read_headers(data: Array, table: Array) -> Any:
    """Writes a row of ``layouts.HEADER`` for each whole entry in ``data``, as many as ``table`` has room for.

    Returns how many entries there are.
    """
    rows = int64(0)
    pos = int64(0)
    while data.shape[0] - pos >= LOG_OVERHEAD:
        size = i32(data, pos + 8)
        if size < LEAST_MESSAGE or size > data.shape[0] - pos - LOG_OVERHEAD:
            break
        end = pos + LOG_OVERHEAD + size
        if rows < table.shape[0]:
            _read_header(data, pos, end, table[rows])
        rows += 1
        pos = end
    return rows


@kernel
def read_set_headers(data: Array, starts: Array, lengths: Array, table: Array, sets: Array) -> Any:
    """``read_headers`` of many record sets, ``data[starts[i] : starts[i] + lengths[i]]``.

    ``sets`` becomes, for each row of ``table``, the set that it is of.
    """
    rows = int64(0)
    for one in range(starts.shape[0]):
        pos = int64(starts[one])
        last = pos + lengths[one]
        if pos < 0 or lengths[one] < 0 or last > data.shape[0]:
            raise ValueError("a record set lies outside of the buffer")
        while last - pos >= LOG_OVERHEAD:
            size = i32(data, pos + 8)
            if size < LEAST_MESSAGE or size > last - pos - LOG_OVERHEAD:
                break
            end = pos + LOG_OVERHEAD + size
            if rows < table.shape[0]:
                _read_header(data, pos, end, table[rows])
                sets[rows] = one
            rows += 1
            pos = end
    return rows
