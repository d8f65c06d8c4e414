"""What is kept of a window, for those who look at the frames of many windows at once.

``gather`` keeps frames, and bytes of some. ``of_transactions`` keeps what programs found in the bodies of Produce and
Fetch, where it is about transactions: the bodies themselves are large, and not kept.

Rules kept here:

- What is kept has no part in the memory of its window.
- Work is linear in the frames, in what was found, and in the bytes that are kept. Of a record set, only the headers of
  its batches are looked at.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import ABSENT
from kwire.kernels.numbers import copy, i16, i32, i64, int64
from kwire.kernels.ordering import body_of

__all__ = [
    "HELD", "REGISTERS", "R_ERROR", "R_INDEX", "R_OFFSET", "R_RECORDS", "R_TOPIC", "R_TOPIC_ID", "R_TXN",
    "R_WATERMARK", "TOLD", "WRITES", "gather", "mark_of", "of_transactions", "rows_of", "sort_out", "weigh",
]  # fmt: skip

Array = Any

REGISTERS: Final = 8
R_TOPIC, R_TOPIC_ID, R_INDEX, R_RECORDS, R_ERROR, R_OFFSET, R_WATERMARK, R_TXN = range(REGISTERS)
"""The registers of what was found."""
WRITES, TOLD, HELD = range(3)
"""What is said of a partition: by a Produce request of a transaction, by a Produce response, or by a Fetch response
whose last stable offset is before its high watermark."""

_BATCH: Final = 61
"""Bytes of the header of a batch."""
_SIZED: Final = 12
"""Bytes of a batch that its size does not count."""
_MAGIC_AT, _PRODUCER_AT, _EPOCH_AT, _COUNT_AT = 16, 43, 51, 57
_MAGIC: Final = 2
_SPREAD: Final = 40503


@kernel
def gather(rows: Array, data: Array, there: Array, copied: Array, begin: int, table: Array, kept: Array) -> None:
    """Copies the frames of ``rows`` that are ``there`` to ``table``, and the bytes of those that are ``copied`` too to
    ``kept``, which follows ``begin`` bytes of other windows. Those without bytes have -1 as their place."""
    n, at = int64(0), int64(0)
    for k in range(rows.shape[0]):
        if not there[k]:
            continue
        row = rows[k]
        place = int64(-1)
        if copied[k]:
            copy(data, row.off, kept, at, row.seen)
            place = begin + at
            at += row.seen
        table[n] = row
        table[n].off = place
        n += 1


@kernel
def rows_of(frames: Array, kinds: Array, rows: Array, counts: Array) -> int:
    """Fills each of ``rows`` with the frames of which ``kinds`` has its bit (``body_of``), and ``counts`` with how many
    these are. Returns how many bytes of all frames there are."""
    for j in range(counts.shape[0]):
        counts[j] = 0
    size = int64(0)
    for k in range(frames.shape[0]):
        size += frames[k].seen
        bits = body_of(frames[k], kinds)
        for j in range(counts.shape[0]):
            if bits >> j & 1:
                rows[j, counts[j]] = k
                counts[j] += 1
    return size


@kernel
def weigh(frames: Array, there: Array, copied: Array) -> tuple[int, int]:
    """How many frames are ``there``, and how many bytes are ``copied``."""
    count, size = int64(0), int64(0)
    for k in range(frames.shape[0]):
        count += there[k]
        if copied[k]:
            size += frames[k].seen
    return count, size


@kernel
def sort_out(
    frames: Array, rows: Array, part_of: Array, connections: Array, known: Array, sorted_: Array
) -> tuple[int, int, bool]:
    """Fills ``sorted_`` with ``rows`` by their parts, 1 to 3: ``part_of`` has that of each kind of message. Returns
    where the second and the third part begin, and whether the second has a connection that ``known`` may not have.

    ``known``: numbers of connections by their lower bits. It has a power of 2 of places.
    """
    first, second, n = int64(0), int64(0), int64(0)
    for k in range(rows.shape[0]):
        part = part_of[2 * frames[rows[k]].api + frames[rows[k]].response]
        first += part == 1
        second += part == 2
    at, new = int64(0), False
    to, last = first, first + second
    for k in range(rows.shape[0]):
        row = frames[rows[k]]
        part = part_of[2 * row.api + row.response]
        if part == 1:
            sorted_[at] = rows[k]
            at += 1
        elif part == 2:
            number = connections[row.slot].number
            new = new or known[number & (known.shape[0] - 1)] != number
            sorted_[to] = rows[k]
            to += 1
        else:
            sorted_[last + n] = rows[k]
            n += 1
    return first, first + second, new


@kernel
def mark_of(connection: int, number: int, places: int) -> int:
    """The place of a request among marks, of which there are a power of 2. Others may have the same."""
    found: int = (connection * _SPREAD + number) & (places - 1)
    return found


@kernel
def _mark(row: Any, connections: Array, places: int) -> int:
    number = int64(0) if row.id == ABSENT else int64(row.id)
    return mark_of(connections[row.slot].number, number, places)


@kernel
def _first_batch(data: Array, at: int, end: int) -> tuple[int, int, int]:
    """Producer id and epoch of a record set, and how many records its batches state. ABSENT where it has no batch."""
    producer, epoch, count = int64(ABSENT), int64(ABSENT), int64(0)
    while end - at >= _BATCH and data[at + _MAGIC_AT] == _MAGIC:
        size = i32(data, at + 8)
        if size < _BATCH - _SIZED or size > end - at - _SIZED:
            break
        if producer == ABSENT:
            producer, epoch = i64(data, at + _PRODUCER_AT), int64(i16(data, at + _EPOCH_AT))
        count += max(int64(0), int64(i32(data, at + _COUNT_AT)))
        at += size + _SIZED
    return producer, epoch, count


@kernel
def of_transactions(
    data: Array, found: Array, of_job: Array, rows: Array, connections: Array, marks: Array, kept: Array, places: Array
) -> tuple[int, int]:
    """Copies what is about transactions from ``found`` to ``kept``, with its kind in place of the job, and to
    ``places`` the numbers of its frames among ``rows``. Returns how much that is, and how many writes are among it.

    ``of_job``: the frames of jobs. ``connections``: rows of CONNECTION, by slot. ``marks`` (uint8) has 1 for
    requests of transactions, and some others (``mark_of``). Those that are found are added. A response is kept if its
    request is marked. A write has its producer id, epoch and records as error, offset and watermark: a request has none
    of these.
    """
    n, n_writes = int64(0), int64(0)
    for k in range(found.shape[0]):
        one = found[k]
        if one[2 + 2 * R_TXN] >= 0 and one[2 + 2 * R_RECORDS] >= _BATCH:
            marks[_mark(rows[of_job[one[0]]], connections, marks.shape[0])] = 1
            n_writes += 1
    for k in range(found.shape[0]):
        one = found[k]
        place = of_job[one[0]]
        kind = int64(-1)
        if one[2 + 2 * R_TXN] >= 0 and one[2 + 2 * R_RECORDS] >= _BATCH:
            kind = int64(WRITES)
        elif one[2 + 2 * R_ERROR] == 0 and one[2 + 2 * R_WATERMARK] != 0:
            if marks[_mark(rows[place], connections, marks.shape[0])] == 1:
                kind = int64(TOLD)
        elif 0 <= one[1 + 2 * R_OFFSET] < one[1 + 2 * R_WATERMARK] and one[1 + 2 * R_ERROR] == 0:
            kind = int64(HELD)
        if kind < 0:
            continue
        other = kept[n]
        for j in range(one.shape[0]):
            other[j] = one[j]
        other[0] = kind
        places[n] = place
        if kind == WRITES:
            at = one[1 + 2 * R_RECORDS]
            producer, epoch, count = _first_batch(data, at, at + one[2 + 2 * R_RECORDS])
            other[1 + 2 * R_ERROR], other[1 + 2 * R_OFFSET], other[1 + 2 * R_WATERMARK] = producer, epoch, count
        n += 1
    return n, n_writes
