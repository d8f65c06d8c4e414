"""Topics, and the log of each partition: entries of record sets as the bytes that came.

``appended`` takes the bytes of a Produce request. It checks each batch as a broker does, gives it offsets, and keeps
its bytes. Only the fields outside of the checksum change: base offset and leader epoch.

Rules kept here:

- A batch is read to its end before it is kept: checksum, compressed content, number of records.
- Bytes change beyond that in one case. Compressed messages of magic 0 have absolute offsets inside, so they are written
  anew, as Kafka's brokers do.
- An idempotent producer's batch is taken once (KIP-98). The last five batches of each producer are remembered.
- The last stable offset is the first offset of the oldest open transaction.

Sources: Kafka's LogValidator and ProducerStateManager, 0.10 to 4.4; KIP-31, KIP-98, KIP-360.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kwire import records
from kwire.errors import CorruptRecordError, KwireError, LimitError
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Batch, Record
from kwire.wire import CODEC, CONTROL, TRANSACTIONAL

__all__ = ["Aborted", "Appended", "Entry", "Log", "RefusedError", "Topic"]

_REMEMBERED: Final = 5
"""Batches of a producer for which a repetition is recognised."""
_LAST_SEQUENCE: Final = 0x7FFFFFFF
_ZSTD: Final = records.CODECS.index("zstd")


class RefusedError(Exception):
    """Record sets that a broker does not take; ``code`` is what it answers."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch, or a message, in a log."""

    data: bytes
    first: int
    last: int
    magic: int
    attributes: int
    max_timestamp: int
    producer_id: int

    @property
    def zstd(self) -> bool:
        """Compressed with zstd."""
        return self.attributes & CODEC == _ZSTD

    @property
    def transactional(self) -> bool:
        """Part of a transaction."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def control(self) -> bool:
        """Written by the broker: the end of a transaction."""
        return self.magic == 2 and bool(self.attributes & CONTROL)

    def batches(self) -> Iterator[Batch]:
        """Its records as objects."""
        return records.decode(self.data)


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a record set was put."""

    base_offset: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Aborted:
    """A transaction that was aborted, in one partition."""

    producer_id: int
    first: int
    last: int
    """The offset of its marker."""


@dataclass(slots=True)
class _Producer:
    """What a log knows of an idempotent producer."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """First and last sequence number, and base offset."""


@dataclass(eq=False, slots=True)
class Log:
    """One partition of a topic."""

    topic: str
    partition: int
    replicas: list[int]
    leader: int
    epoch: int = 0
    start: int = 0
    end: int = 0
    size: int = 0
    """Bytes of all entries."""
    entries: list[Entry] = field(default_factory=list)
    aborted: list[Aborted] = field(default_factory=list)
    open_transactions: dict[int, int] = field(default_factory=dict)
    """Producer id -> its first offset."""
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """Each epoch of a leader, with its first offset."""
    _lasts: list[int] = field(default_factory=list)
    _producers: dict[int, _Producer] = field(default_factory=dict)

    @property
    def stable(self) -> int:
        """The last stable offset."""
        return min(self.open_transactions.values(), default=self.end)

    def lead(self, node: int) -> None:
        """Let another node lead, in the next epoch."""
        self.leader = node
        self.epoch += 1
        self.epochs.append((self.epoch, self.end))
        if node not in self.replicas:
            self.replicas = [*self.replicas, node]

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The newest epoch that is not newer than ``epoch``, and the offset after its last record; -1 for none."""
        if epoch > self.epoch or epoch < 0:
            return -1, -1
        place = bisect_right([number for number, _ in self.epochs], epoch) - 1
        after = self.epochs[place + 1][1] if place + 1 < len(self.epochs) else self.end
        return self.epochs[place][0], after

    # -- writing

    def appended(
        self,
        data: bytes,
        *,
        oldest: int = 0,
        newest: int = 2,
        zstd: bool = True,
        may: Callable[[Batch], int] | None = None,
    ) -> Appended:
        """Put the record set ``data`` at the end.

        ``oldest`` and ``newest`` are the magics that the request may have, and ``zstd`` says whether it may have that
        codec. ``may`` gives the error for a transactional batch, or 0. Raises ``RefusedError``; nothing has been kept
        then.
        """
        batches = _checked(data, oldest, newest, zstd)
        for batch in batches:
            code = may(batch) if may is not None and batch.is_transactional else ErrorCode.NONE
            if code:
                raise RefusedError(code, "the transaction does not have this partition")
        repeated = self._repeated(batches[0])
        if repeated is not None:
            return Appended(repeated, repeated=True)
        base = self.end
        for batch in batches:
            self.put(self._placed(batch, data))
        return Appended(base)

    def _placed(self, batch: Batch, data: bytes) -> Entry:
        body = data[batch.position : batch.position + batch.size]
        base = self.end
        if batch.magic == 2:
            last = base + batch.last_offset - batch.base_offset
            kept = struct.pack(">q", base) + body[8:12] + struct.pack(">i", self.epoch) + body[16:]
        else:
            last = base + len(batch.records) - 1
            compressed = batch.attributes & CODEC
            inside = [one.offset or 0 for one in batch.records]
            if compressed and (batch.magic == 0 or inside != list(range(inside[0], inside[0] + len(inside)))):
                kept = _renumbered(batch, base)
            else:
                kept = struct.pack(">q", last) + body[8:]
        return Entry(kept, base, last, batch.magic, batch.attributes, _newest(batch), batch.producer_id)

    def put(self, entry: Entry) -> None:
        """Put an entry whose offsets are right at the end."""
        self.entries.append(entry)
        self._lasts.append(entry.last)
        self.end = entry.last + 1
        self.size += len(entry.data)
        if entry.transactional and not entry.control:
            self.open_transactions.setdefault(entry.producer_id, entry.first)

    def _repeated(self, batch: Batch) -> int | None:
        """The base offset of an idempotent batch that is here already. Raises ``RefusedError``."""
        if batch.magic != 2 or batch.producer_id < 0:
            return None
        first = batch.base_sequence
        last = (first + batch.last_offset - batch.base_offset) & _LAST_SEQUENCE
        known = self._producers.get(batch.producer_id)
        if known is not None and batch.producer_epoch < known.epoch:
            raise RefusedError(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {batch.producer_epoch} of {known.epoch}")
        if known is None or batch.producer_epoch > known.epoch:
            if known is not None and first:
                raise RefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"sequence {first} in a new epoch")
            known = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        for begin, end, offset in known.batches:
            if (begin, end) == (first, last):
                return offset
        if known.batches:
            expected = (known.batches[-1][1] + 1) & _LAST_SEQUENCE
            if first != expected:
                raise RefusedError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"sequence {first}, {expected} comes next")
        known.batches.append((first, last, self.end))
        return None

    def producers(self) -> list[tuple[int, int, int]]:
        """The idempotent producers that have written: id, epoch, and last sequence number, -1 for none."""
        return [(id_, one.epoch, one.batches[-1][1] if one.batches else -1) for id_, one in self._producers.items()]

    def fence(self, producer_id: int, epoch: int) -> None:
        """Take batches of ``producer_id`` from ``epoch`` on only."""
        known = self._producers.get(producer_id)
        if known is None or known.epoch < epoch:
            self._producers[producer_id] = _Producer(epoch)

    def cut(self, offset: int) -> None:
        """Delete what is before ``offset``."""
        self.start = max(self.start, min(offset, self.end))
        place = bisect_left(self._lasts, self.start)
        self.size -= sum(len(one.data) for one in self.entries[:place])
        del self.entries[:place], self._lasts[:place]

    # -- reading

    def after(self, offset: int) -> Iterator[Entry]:
        """The entries from the one that holds ``offset``, or the first one after it."""
        for place in range(bisect_left(self._lasts, offset), len(self.entries)):
            yield self.entries[place]

    def at_time(self, timestamp: int) -> tuple[int, int] | None:
        """Offset and time of the first record that is not older than ``timestamp``; None if there is none."""
        for entry in self.entries:
            if entry.max_timestamp < timestamp:
                continue
            for one in _records(entry):
                if one.timestamp is not None and one.timestamp >= timestamp and (one.offset or 0) >= self.start:
                    return one.offset or 0, one.timestamp
        return None

    def newest_record(self) -> tuple[int, int] | None:
        """Offset and time of the record with the largest timestamp; None if there is none."""
        best: tuple[int, int] | None = None
        for entry in self.entries:
            if best is not None and entry.max_timestamp <= best[1]:
                continue
            for one in _records(entry):
                if one.timestamp is not None and (best is None or one.timestamp > best[1]):
                    best = one.offset or 0, one.timestamp
        return best

    def aborted_between(self, first: int, end: int) -> list[Aborted]:
        """The aborted transactions that have records from ``first`` to before ``end``."""
        place = bisect_right([one.last for one in self.aborted], first - 1)
        return [one for one in self.aborted[place:] if one.first < end]


@dataclass(eq=False, slots=True)
class Topic:
    """A topic with its partitions."""

    name: str
    id: UUID
    logs: list[Log]
    configs: dict[str, str | None] = field(default_factory=dict)


def _checked(data: bytes, oldest: int, newest: int, zstd: bool) -> list[Batch]:
    """The batches of a record set from a producer. Raises ``RefusedError``."""
    try:
        batches = list(records.decode(data, verify_crc=True))
    except CorruptRecordError as error:
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    except LimitError as error:
        raise RefusedError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except KwireError as error:
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not batches or batches[-1].position + batches[-1].size != len(data):
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "the record set is empty or cut off")
    for batch in batches:
        if not oldest <= batch.magic <= newest:
            code = ErrorCode.INVALID_RECORD if batch.magic < oldest else ErrorCode.CORRUPT_MESSAGE
            raise RefusedError(code, f"magic {batch.magic}, this version takes {oldest} to {newest}")
        if batch.compression == "zstd" and not zstd:
            raise RefusedError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd is allowed from Produce v7")
        if batch.is_control:
            raise RefusedError(ErrorCode.INVALID_RECORD, "a producer writes no control batches")
        delta = batch.last_offset - batch.base_offset
        if not batch.records or (batch.magic == 2 and delta + 1 != len(batch.records)):
            raise RefusedError(ErrorCode.INVALID_RECORD, f"{len(batch.records)} records, last offset delta {delta}")
    if oldest == 2 and len(batches) != 1:
        raise RefusedError(ErrorCode.INVALID_RECORD, f"{len(batches)} batches, from Produce v3 there is one")
    return batches


def _renumbered(batch: Batch, base: int) -> bytes:
    again = [
        Record(one.key, one.value, timestamp=one.timestamp, offset=base + place)
        for place, one in enumerate(batch.records)
    ]
    return records.encode(again, magic=batch.magic, compression=batch.compression or "none")


def _newest(batch: Batch) -> int:
    if batch.magic:
        return batch.max_timestamp
    return -1


def _records(entry: Entry) -> Iterator[Record]:
    if not entry.control:
        for batch in entry.batches():
            yield from batch.records
