"""Partitions with transactions, as brokers write them, and what Kafka's consumer gets of them, entry by entry."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kwire.records import Record, encode
from kwire.records.control import control_key
from kwire.records.crc import crc32c

PLAIN = -1
"""The producer of records that are in no transaction."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch of a producer, or a marker of its: ``kind`` is ``data``, ``commit`` or ``abort``."""

    producer: int
    kind: str
    first: int
    count: int = 1

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def encoded(self) -> bytes:
        if self.kind != "data":
            marker = Record(control_key(self.kind), struct.pack(">hi", 0, 0), timestamp=1)
            return encode(
                [marker], base_offset=self.first, producer_id=self.producer, is_transactional=True, is_control=True
            )
        some = [Record(b"k", b"%d" % (self.first + one), timestamp=1) for one in range(self.count)]
        return encode(some, base_offset=self.first, producer_id=self.producer, is_transactional=self.producer != PLAIN)


def log_of(*batches: tuple[int, str] | tuple[int, str, int]) -> list[Entry]:
    """A log of batches (producer, kind, records), with the offsets that follow."""
    entries: list[Entry] = []
    for producer, kind, *count in batches:
        entries.append(Entry(producer, kind, entries[-1].last + 1 if entries else 0, *count))
    return entries


def drawn(seed: int, length: int = 60, producers: int = 4) -> list[Entry]:
    """A log in which some transactions are aborted, and some may be open at the end."""
    some = random.Random(seed)
    batches: list[tuple[int, str, int]] = []
    begun: set[int] = set()
    for _ in range(length):
        producer = some.choice([PLAIN, *range(producers)])
        if producer in begun and some.random() < 0.5:
            batches.append((producer, some.choice(["commit", "abort"]), 1))
            begun.discard(producer)
        else:
            batches.append((producer, "data", some.randint(1, 3)))
            begun.add(producer)
    return log_of(*batches)


def transactions(entries: Sequence[Entry]) -> tuple[list[tuple[int, int, int]], dict[int, int]]:
    """What a broker knows: the aborted transactions as (producer, first offset, offset of the marker), and the first
    offset of each that is open, by its producer."""
    begun: dict[int, int] = {}
    aborted = []
    for one in entries:
        if one.producer == PLAIN:
            continue
        if one.kind == "data":
            begun.setdefault(one.producer, one.first)
        else:
            first = begun.pop(one.producer, one.first)
            if one.kind == "abort":
                aborted.append((one.producer, first, one.last))
    return aborted, begun


def stable(entries: Sequence[Entry]) -> int:
    """The last stable offset."""
    return min(transactions(entries)[1].values(), default=entries[-1].last + 1)


def listed(entries: Sequence[Entry], fetched: Sequence[Entry]) -> list[tuple[int, int]]:
    """The aborted transactions that a broker lists with a fetch."""
    if not fetched:
        return []
    return [
        (producer, first)
        for producer, first, last in transactions(entries)[0]
        if last >= fetched[0].first and first <= fetched[-1].last
    ]


def consumed(fetched: Sequence[Entry], aborted: Sequence[tuple[int, int]]) -> list[int]:
    """The offsets that Kafka's consumer hands on: ``CompletedFetch.nextFetchedRecord``, line by line."""
    waiting = sorted(aborted, key=lambda one: one[1])
    ids: set[int] = set()
    found: list[int] = []
    for batch in fetched:
        if batch.producer != PLAIN:
            while waiting and waiting[0][1] <= batch.last:
                ids.add(waiting.pop(0)[0])
            if batch.kind == "abort":
                ids.discard(batch.producer)
            elif batch.kind == "data" and batch.producer in ids:
                continue
        if batch.kind == "data":
            found += range(batch.first, batch.last + 1)
    return found


def committed(entries: Sequence[Entry]) -> list[int]:
    """The offsets that a consumer of the whole log gets."""
    whole = [one for one in entries if one.last < stable(entries)]
    return consumed(whole, listed(entries, whole))


def write(folder: Path, entries: Sequence[Entry], cuts: Sequence[int], *, beside: bool = True) -> list[Path]:
    """A partition's folder with segments that begin at the entries ``cuts``; with the files ``beside`` them."""
    folder.mkdir()
    files = []
    for begin, end in zip((0, *cuts), (*cuts, len(entries)), strict=True):
        base = entries[begin].first
        file = folder / f"{base:020}.log"
        file.write_bytes(b"".join(one.encoded() for one in entries[begin:end]))
        files.append(file)
        if beside:
            last = entries[end - 1].last
            rows = [struct.pack(">hqqqq", 0, *one, 0) for one in transactions(entries)[0] if base <= one[2] <= last]
            file.with_suffix(".txnindex").write_bytes(b"".join(rows))
            begun = transactions(entries[:begin])[1]
            body = struct.pack(">i", len(begun)) + b"".join(
                struct.pack(">qhiqiqiq", producer, 0, 0, first, 0, 1, 0, first) for producer, first in begun.items()
            )
            file.with_suffix(".snapshot").write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
    return files
