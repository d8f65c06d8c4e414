"""What stands within a row of the table ``partitions``: record sets counted by their headers, and lists of integers.

Rules kept here:

- Nothing is decompressed and no record is looked at: what is counted is what headers of batches say. A batch that is
  cut off at the end of its set, as brokers do, is not counted, nor what follows bytes that are no batch.
- Work is linear in the bytes of the sets and lists, which their callers have checked to be there.

    byte   0        8     12      16     17                21          57
           offset   size  leader  magic  crc               attributes  count      magic 2
           offset   size  crc     magic  attributes                               magic 0 and 1
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.numbers import i16, i32, int64
from kwire.kernels.programs import skip_tags

__all__ = ["MIXED", "count_records", "int_lists"]

Array = Any

MIXED: Final = 8
"""In place of a codec: batches of one set have several."""

_CODEC: Final = 7
_SIZE_AT: Final = 8
_SIZED: Final = 12
"""Bytes of an entry that its size does not count."""
_MAGIC_AT: Final = 16
_LEAST_MESSAGE: Final = 14
"""The least size of a message of magic 0 and 1: its checksum, magic, attributes and two lengths."""
_LEAST_BATCH: Final = 49
"""The least size of a batch of magic 2: its header."""


@kernel
def _count_set(buf: Array, pos: int, end: int) -> tuple[int, int, int]:
    """(batches, records, codec) of one record set; records are -1 where they cannot be known, codec where there is no
    batch."""
    batches, records, codec = int64(0), int64(0), int64(-1)
    while end - pos >= _SIZED + _LEAST_MESSAGE:
        size = i32(buf, pos + _SIZE_AT)
        if size < _LEAST_MESSAGE or size > end - pos - _SIZED:
            break
        magic = int64(buf[pos + _MAGIC_AT])
        if magic > 2 or (magic == 2 and size < _LEAST_BATCH):
            break
        count = int64(1)
        if magic == 2:
            own = i16(buf, pos + 21) & _CODEC
            count = i32(buf, pos + 57)
        else:
            own = int64(buf[pos + 17]) & _CODEC
            if own != 0:
                count = int64(-1)
        if count < 0 or records < 0:
            records = int64(-1)
        else:
            records += count
        codec = own if batches == 0 or codec == own else int64(MIXED)
        batches += 1
        pos += _SIZED + size
    return batches, records, codec


@kernel
def count_records(buf: Array, starts: Array, lengths: Array, batches: Array, records: Array, codecs: Array) -> None:
    """Writes ``_count_set`` of each set ``buf[start : start + length]``; -1 thrice where the length is negative."""
    for k in range(starts.shape[0]):
        batches[k] = records[k] = codecs[k] = -1
        if lengths[k] >= 0:
            batches[k], records[k], codecs[k] = _count_set(buf, starts[k], starts[k] + lengths[k])


@kernel
def int_lists(buf: Array, starts: Array, counts: Array, steps: Array, ends: Array, found: Array) -> None:
    """The int32 that each element of some arrays begins with: those of array ``k`` up to ``found[ends[k]]``.

    ``steps``: the bytes of an element; negative where a tagged section follows them. A negative count is no array.
    """
    at = int64(0)
    for k in range(starts.shape[0]):
        pos = starts[k]
        step = abs(steps[k])
        for _ in range(counts[k]):
            found[at] = i32(buf, pos)
            at += 1
            pos += step
            if steps[k] < 0:
                pos = skip_tags(buf, pos)
        ends[k] = at
