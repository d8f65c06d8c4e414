"""Record sets counted by their headers, and lists of integers, of a row of the table ``partitions``.

Also: which records of a set a ShareFetch response gives to its client, and how often they were delivered.

Rules kept here:

- Nothing is decompressed and no record is looked at. What is counted is what headers of batches say. Brokers may cut
  off a batch at the end of its set. Such a batch is not counted, nor what follows bytes that are no batch.
- Work is linear in the bytes of the sets and lists. Their callers have checked that these are there.

    byte   0        8     12      16     17                21          23          57
           offset   size  leader  magic  crc               attributes  last delta  count      magic 2
           offset   size  crc     magic  attributes                                           magic 0 and 1

- A ShareFetch response has whole batches, and after them ranges of offsets: only these were acquired (KIP-932). Where
  ranges or batches are not in order, nothing is said of them.

    byte   0             8            16              18
           first offset  last offset  delivery count  tagged section
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.numbers import i16, i32, i64, int64, unsigned_varint
from kwire.kernels.programs import skip_tags
from kwire.wire import CODEC

__all__ = ["MIXED", "NOT_ACQUIRED", "RANGE", "UNKNOWN", "count_records", "deliveries", "int_lists"]

Array = Any

MIXED: Final = 8
"""In place of a codec: batches of one set have several."""

_SIZE_AT: Final = 8
_SIZED: Final = 12
"""Bytes of an entry that its size does not count."""
_MAGIC_AT: Final = 16
_LEAST_MESSAGE: Final = 14
"""The least size of a message of magic 0 and 1. It has checksum, magic, attributes and two lengths."""
_LEAST_BATCH: Final = 49
"""The least size of a batch of magic 2: its header."""


RANGE: Final = 18
"""Bytes of a range of offsets that were acquired, without its tagged section."""
NOT_ACQUIRED: Final = -1
UNKNOWN: Final = -2
"""In place of how often a record was delivered."""


@kernel
def _in_order(buf: Array, at: int, count: int) -> bool:
    """Whether each of some ranges begins after the one before it."""
    last = int64(-1)
    for _ in range(count):
        first = i64(buf, at)
        if first <= last or i64(buf, at + 8) < first:
            return False
        last = i64(buf, at + 8)
        at = skip_tags(buf, at + RANGE)
    return True


@kernel
def _count_set(buf: Array, pos: int, end: int, at: int, left: int) -> tuple[int, int, int]:
    """(batches, records, codec) of one record set. records are -1 where they cannot be known, codec is -1 where there
    is no batch. ``left``: ranges that stand from ``at`` on. Each batch has no more records than they cover. -1: records
    are counted as they are."""
    batches, records, codec = int64(0), int64(0), int64(-1)
    limited, loaded, in_order = left >= 0, False, _in_order(buf, at, left)
    first = last = high = int64(-1)
    while end - pos >= _SIZED + _LEAST_MESSAGE:
        size = i32(buf, pos + _SIZE_AT)
        if size < _LEAST_MESSAGE or size > end - pos - _SIZED:
            break
        magic = int64(buf[pos + _MAGIC_AT])
        if magic > 2 or (magic == 2 and size < _LEAST_BATCH):
            break
        count = int64(1)
        if magic == 2:
            own = i16(buf, pos + 21) & CODEC
            count = i32(buf, pos + 57)
        else:
            own = int64(buf[pos + 17]) & CODEC
            if own != 0:
                count = int64(-1)
        if limited:
            covered, low = int64(0), i64(buf, pos)
            in_order = in_order and low > high
            high = low + i32(buf, pos + 23) if magic == 2 else low
            while loaded or left > 0:
                if not loaded:
                    first, last = i64(buf, at), i64(buf, at + 8)
                    at, left, loaded = skip_tags(buf, at + RANGE), left - 1, True
                if first > high:
                    break
                if last >= low:
                    covered += min(last, high) - max(first, low) + 1
                if last > high:
                    break
                loaded = False
            count = min(count, covered) if in_order else int64(-1)
        if count < 0 or records < 0:
            records = int64(-1)
        else:
            records += count
        codec = own if batches == 0 or codec == own else int64(MIXED)
        batches += 1
        pos += _SIZED + size
    return batches, records, codec


@kernel
def count_records(buf: Array, sets: Array, batches: Array, records: Array, codecs: Array) -> None:
    """Writes ``_count_set`` of each of some sets; -1 thrice where the length is negative.

    ``sets``: of each where it begins, its length, where its ranges begin and how many there are (negative: it has
    none)."""
    for k in range(sets.shape[0]):
        batches[k] = records[k] = codecs[k] = -1
        start, length = sets[k, 0], sets[k, 1]
        if length >= 0:
            batches[k], records[k], codecs[k] = _count_set(buf, start, start + length, sets[k, 2], sets[k, 3])


@kernel
def _ranges(buf: Array, at: int, end: int) -> tuple[int, int]:
    """Where an array of ranges begins, and how many it has. -1 where it is not there whole, not in order, or has tagged
    fields, which no version knows."""
    count, at = unsigned_varint(buf, at, end)
    if at < 0 or count < 1 or (count - 1) * (RANGE + 1) > end - at:
        return int64(0), int64(-1)
    last, pos = int64(-1), at
    for _ in range(count - 1):
        first = i64(buf, pos)
        if first <= last or i64(buf, pos + 8) < first or buf[pos + RANGE] != 0:
            return int64(0), int64(-1)
        last = i64(buf, pos + 8)
        pos += RANGE + 1
    return at, count - 1


@kernel
def deliveries(buf: Array, places: Array, sets: Array, offsets: Array, found: Array) -> None:
    """How often each of some records was delivered with this response. ``NOT_ACQUIRED`` where the response does not
    give it to the client, ``UNKNOWN`` where that is not known.

    ``places``: where the array of ranges of each set begins (-1: it has none). Also where its frame ends. ``sets`` and
    ``offsets`` are those of the records; those of a set stand together.
    """
    before = int64(-1)
    at, count = int64(0), int64(-1)
    for k in range(sets.shape[0]):
        of = int64(sets[k])
        if of != before:
            before, at, count = of, int64(0), int64(-1)
            if places[of, 0] >= 0:
                at, count = _ranges(buf, places[of, 0], places[of, 1])
        found[k] = UNKNOWN
        if count < 0:
            continue
        # The last range that begins at this offset or before it.
        low, high = int64(0), count
        while low < high:
            middle = (low + high) // 2
            if i64(buf, at + middle * (RANGE + 1)) <= offsets[k]:
                low = middle + 1
            else:
                high = middle
        pos = at + (low - 1) * (RANGE + 1)
        if low == 0 or i64(buf, pos + 8) < offsets[k]:
            found[k] = NOT_ACQUIRED
        elif i16(buf, pos + 16) >= 0:
            found[k] = i16(buf, pos + 16)


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
