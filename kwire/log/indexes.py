"""Reads ``.index`` and ``.timeindex`` files, and checks them against their segment.

An offset index maps offsets to positions. Its entries are an int32 offset (relative to the number in the file name) and
an int32 position. A time index maps timestamps to offsets. Its entries are an int64 timestamp and an int32 relative
offset (KIP-33). Both are sparse, both grow upwards, and both may end in zeros, since brokers allocate them in advance.

A lookup finds its record only if this holds:

- A position of an offset index is the start of an entry of the segment.
- Its offset is that of the last record of the entry there or of a later entry. Before Kafka 3.8, an append of several
  batches got one index entry, for its last offset.
- No record up to the offset of a time index entry has a later timestamp, and one of them has just this one.

Kafka's dump-log tool checks the same (``--index-sanity-check``, and when it prints an index). But it compares the
offset with that of the first entry only. Of an index from before 3.8 it says "Mismatches" although nothing is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kwire.errors import CaptureError, MissingExtraError

try:
    import numpy as np
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and log segments", "capture") from _missing

from kwire.kernels.layouts import joined
from kwire.log.files import Segment
from kwire.log.regions import headers, headers_of, regions
from kwire.naming import public
from kwire.opening import is_regular, open_file
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
    entries, _ = _entries(_content(segment.index), _OFFSETS)
    offsets = entries["offset"].astype(np.int64) + _base(segment)
    return list(map(OffsetEntry, offsets.tolist(), entries["position"].tolist()))


def read_time_index(segment: Segment) -> list[TimeEntry]:
    """The entries of the time index beside ``segment``, as ``read_index``."""
    entries, _ = _entries(_content(segment.time_index), _TIMES)
    offsets = entries["offset"].astype(np.int64) + _base(segment)
    return list(map(TimeEntry, entries["timestamp"].tolist(), offsets.tolist()))


def check_indexes(segment: Segment) -> list[IndexProblem]:
    """What is wrong with the index files of ``segment``. Nothing if there are none.

    A segment whose name is no offset cannot be checked: ``ValueError``. ``OSError`` if a file cannot be read.
    """
    _base(segment)
    if not segment.index.exists() and not segment.time_index.exists():
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
        found += _listed(segment.index.name, _check_offsets(_content(segment.index), table, base))
    if is_regular(segment.time_index):
        found += _listed(segment.time_index.name, _check_times(_content(segment.time_index), table, base))
    return found


def _content(path: Path) -> bytes:
    """An index. Raises ``CaptureError`` for one that is larger than an index can be, ``OSError``."""
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            raise CaptureError(f"an index of more than {_LARGEST} bytes", file=str(path))
        return file.read(_LARGEST)


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
