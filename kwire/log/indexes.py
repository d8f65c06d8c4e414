"""Reads ``.index`` and ``.timeindex`` files, and checks them and ``.txnindex`` files against their segment.

An offset index maps offsets to positions. Its entries are an int32 offset (relative to the number in the file name) and
an int32 position. A time index maps timestamps to offsets. Its entries are an int64 timestamp and an int32 relative
offset (KIP-33). Both are sparse, both grow upwards, and both may end in zeros, since brokers allocate them in advance.

A lookup finds its record only if this holds:

- A position of an offset index is the start of an entry of the segment.
- Its offset is that of the last record of the entry there or of a later entry. Before Kafka 3.8, an append of several
  batches got one index entry, for its last offset.
- No record up to the offset of a time index entry has a later timestamp, and one of them has just this one.
- Where an entry of a transaction index says that a producer aborts, the segment has that producer's abort marker.
  The log cleaner may have removed it.

Kafka's dump-log tool checks the same (``--index-sanity-check``, and when it prints an index). But it compares the
offset with that of the first entry only. Of an index from before 3.8 it says "Mismatches" although nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kwire.errors import MissingExtraError

try:
    import numpy as np
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and log segments", "capture") from _missing

from kwire.kernels.layouts import joined
from kwire.log.files import CONTROL_BATCH, Segment, content
from kwire.log.regions import headers, headers_of, regions
from kwire.log.transaction_index import Aborted, read_aborted
from kwire.naming import public
from kwire.opening import is_regular, open_file
from kwire.records.control import control_type
from kwire.records.isolation import ABORT
from kwire.records.reader import decode
from kwire.wire import CONTROL

__all__ = [
    "IndexProblem",
    "OffsetEntry",
    "TimeEntry",
    "check_against",
    "check_indexes",
    "read_index",
    "read_time_index",
]

_OFFSETS: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIMES: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])

_LARGEST: Final = 128 << 20
"""Bytes of an index. Brokers make them of 10 MiB (``segment.index.bytes``)."""
_MOST: Final = 100
"""Problems that are listed for one index file. After these, one line says how many more there are."""


@dataclass(frozen=True, slots=True)
class IndexProblem:
    """``file``: name of the index file; ``entry``: number of the entry in it, from 0; ``message``: what is wrong."""

    file: str
    entry: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}: entry {self.entry}: {self.message}"


class OffsetEntry(NamedTuple):
    """An entry of an offset index: a lookup of ``offset`` or a later one may begin at ``position`` (bytes)."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a time index: up to ``offset``, no record is later than ``timestamp`` (milliseconds since 1970)."""

    timestamp: int
    offset: int


def read_index(segment: Segment) -> list[OffsetEntry]:
    """The entries of the offset index beside ``segment``, as they are there, with absolute offsets.

    Zeros at the end are space that was allocated in advance, and no entries. Bytes after the last whole entry are left
    out. ``check_indexes`` says whether the entries are right. Raises ``ValueError`` for a segment whose name is no
    offset, and ``OSError`` if the index cannot be read, or there is none.
    """
    entries, _ = _entries(content(segment.index, _LARGEST), _OFFSETS)
    offsets = entries["offset"].astype(np.int64) + _base(segment)
    return list(map(OffsetEntry, offsets.tolist(), entries["position"].tolist()))


def read_time_index(segment: Segment) -> list[TimeEntry]:
    """The entries of the time index beside ``segment``, as ``read_index``."""
    entries, _ = _entries(content(segment.time_index, _LARGEST), _TIMES)
    offsets = entries["offset"].astype(np.int64) + _base(segment)
    return list(map(TimeEntry, entries["timestamp"].tolist(), offsets.tolist()))


def check_indexes(segment: Segment) -> list[IndexProblem]:
    """What is wrong with the index files of ``segment``. Nothing if there are none.

    A segment whose name is no offset cannot be checked: ``ValueError``. ``OSError`` if a file cannot be read.
    """
    _base(segment)
    if not any(one.exists() for one in (segment.index, segment.time_index, segment.transaction_index)):
        return []
    tables = []
    with open_file(segment.path, buffering=0) as stream:
        for region in regions(stream):
            table = headers_of(region)
            table["position"] += region.position
            tables.append(table)
    return check_against(segment, tables)


def check_against(segment: Segment, tables: Sequence[Any]) -> list[IndexProblem]:
    """The same for a segment that was read: ``tables`` are the headers of its regions, with positions in the file."""
    base = _base(segment)
    table = joined(tables) if tables else headers(np.zeros(0, np.uint8))
    table = table[table["crc_ok"] >= 0]
    found: list[IndexProblem] = []
    if is_regular(segment.index):
        found += _listed(segment.index.name, _check_offsets(content(segment.index, _LARGEST), table, base))
    if is_regular(segment.time_index):
        found += _listed(segment.time_index.name, _check_times(content(segment.time_index, _LARGEST), table, base))
    if is_regular(segment.transaction_index):
        aborted = read_aborted(segment.transaction_index)
        found += _listed(segment.transaction_index.name, _check_aborted(aborted, table, segment.path))
    return found


def _base(segment: Segment) -> int:
    if segment.base_offset is None:
        raise ValueError(f"{public(segment.path)} is not named by its first offset, which its indexes count from")
    return segment.base_offset


def _listed(file: str, problems: list[tuple[int, str]]) -> list[IndexProblem]:
    made = [IndexProblem(file, entry, text) for entry, text in problems[:_MOST]]
    if len(problems) > _MOST:
        made.append(IndexProblem(file, problems[_MOST][0], f"this and {len(problems) - _MOST - 1} more are wrong"))
    return made


def _entries(raw: bytes, kind: Any) -> tuple[Any, list[tuple[int, str]]]:
    """The entries that are in use, and whether the file has a length that it can have."""
    whole = len(raw) // kind.itemsize
    entries = np.frombuffer(raw, kind, whole)
    used = entries["offset"] != 0
    used |= entries[kind.names[0] if kind.names[0] != "offset" else "position"] != 0
    # Only the first entry may be zero in both (offset 0 of the segment, at its beginning). More are unused space.
    last = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0
    problems = []
    if len(raw) % kind.itemsize:
        problems.append((whole, f"{len(raw) % kind.itemsize} bytes behind the last whole entry"))
    return entries[:last], problems


def _check_offsets(raw: bytes, table: Any, base: int) -> list[tuple[int, str]]:
    entries, problems = _entries(raw, _OFFSETS)
    offsets = entries["offset"].astype(np.int64) + base
    positions = entries["position"].astype(np.int64)
    starts, lasts = table["position"], table["last"]
    where = np.minimum(np.searchsorted(starts, positions), max(len(starts) - 1, 0))
    known = np.unique(lasts)
    for entry, (offset, position) in enumerate(zip(offsets.tolist(), positions.tolist(), strict=True)):
        if entry and (offset <= offsets[entry - 1] or position <= positions[entry - 1]):
            problems.append((entry, f"offset {offset} at position {position} is not behind the entry before it"))
        elif not len(starts) or starts[where[entry]] != position:
            problems.append((entry, f"no entry of the segment starts at position {position}"))
        elif lasts[where[entry]] > offset:
            problems.append(
                (entry, f"offset {offset}, but the entry at position {position} ends at {lasts[where[entry]]}")
            )
        elif known[min(np.searchsorted(known, offset), len(known) - 1)] != offset:
            problems.append((entry, f"no entry of the segment ends at offset {offset}"))
    return problems


def _check_times(raw: bytes, table: Any, base: int) -> list[tuple[int, str]]:
    entries, problems = _entries(raw, _TIMES)
    offsets = entries["offset"].astype(np.int64) + base
    times = entries["timestamp"].astype(np.int64)
    lasts = table["last"]
    # Largest timestamp of everything up to each entry of the segment. Control batches do not count: the broker keeps
    # them out of its time index.
    own = np.where(table["attributes"] & CONTROL != 0, -1, table["max_timestamp"])
    largest = np.maximum.accumulate(own) if len(own) else own
    every = np.maximum.accumulate(table["max_timestamp"]) if len(own) else own
    where = np.searchsorted(lasts, offsets)
    for entry, (time, offset) in enumerate(zip(times.tolist(), offsets.tolist(), strict=True)):
        if entry and (time <= times[entry - 1] or offset < offsets[entry - 1]):
            problems.append((entry, f"timestamp {time} of offset {offset} is not behind the entry before it"))
        elif where[entry] >= len(lasts):
            problems.append((entry, f"offset {offset} is not in the segment"))
        elif time not in (largest[where[entry]], every[where[entry]]):
            problems.append(
                (entry, f"timestamp {time}, but the largest up to offset {offset} is {largest[where[entry]]}")
            )
    return problems


def _check_aborted(entries: Sequence[Aborted], table: Any, path: Path) -> list[tuple[int, str]]:
    problems = []
    where = np.searchsorted(table["last"], np.array([one.last_offset for one in entries], np.int64))
    with open_file(path, buffering=0) as file:
        for entry, (one, at) in enumerate(zip(entries, where.tolist(), strict=True)):
            # What the log cleaner has removed says nothing against an entry.
            if at == len(table) or table["base"][at] > one.last_offset:
                continue
            batch = table[at]
            if batch["attributes"] & CONTROL and batch["producer"] == one.producer_id:
                file.seek(int(batch["position"]))
                kind = _marker(file.read(min(int(batch["size"]), CONTROL_BATCH)))
                if kind == ABORT:
                    continue
                there = "a marker that is no abort" if kind is None else f"a {kind} marker"
            else:
                there = f"{'a marker' if batch['attributes'] & CONTROL else 'records'} of producer {batch['producer']}"
                there = "records without a producer" if batch["producer"] < 0 else there
            problems.append(
                (entry, f"producer {one.producer_id} aborts at offset {one.last_offset}, where the segment has {there}")
            )
    return problems


def _marker(data: bytes) -> str | None:
    """The kind of a control batch. None if it cannot be read."""
    batch = next(decode(data, problems=[]), None)
    return None if batch is None or not batch.records else control_type(batch.records[0].key)
