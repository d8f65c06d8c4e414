"""The files that a broker keeps beside its segments, each by itself: what kind it is by its name, and its entries.

    entries("00000000000000000042.index")     # Entries(kind="offset index", rows=[{"offset": 42, "position": 0}, ...])

Indexes are held against the segment beside them, where there is one: what is wrong with an entry stands at its number.

Source: those of ``kwire.log.folders`` and ``kwire.log.indexes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kwire.errors import CaptureError
from kwire.log.files import Segment
from kwire.log.folders import (
    CHECKPOINTS,
    read_aborted,
    read_epochs,
    read_offsets,
    read_partition_metadata,
    read_producers,
    read_properties,
)
from kwire.log.indexes import check_indexes, read_index, read_time_index
from kwire.opening import is_regular

__all__ = ["Entries", "entries", "has_entries"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """What a file holds.

    ``kind``: what it is. ``rows``: its entries, in order. ``problems``: what is wrong with some of them, by their
    numbers; a number may be one behind the last. ``is_checked``: it was held against its segment.
    """

    kind: str
    rows: list[Row]
    problems: Mapping[int, str] = field(default_factory=dict)
    is_checked: bool = False


def has_entries(name: str) -> bool:
    """Whether ``entries`` reads a file of this name (without its folder)."""
    return _kind(name) is not None


def entries(path: str | Path) -> Entries:
    """The entries of a file beside segments, by its name.

    Raises ``CaptureError`` for a name that is none of theirs and for content that is not what the name says,
    ``OSError`` where the file cannot be read.
    """
    path = Path(path)
    found = _kind(path.name)
    if found is None:
        raise CaptureError("no file of this name stands beside segments", file=str(path))
    kind, read = found
    made = read(path)
    return made if isinstance(made, Entries) else Entries(kind, made)


def _of_index(path: Path) -> Entries:
    segment = _segment(path)
    is_time = path.suffix == ".timeindex"
    read = read_time_index if is_time else read_index
    rows = [one._asdict() for one in read(segment)]
    kind = "time index" if is_time else "offset index"
    if not is_regular(segment.path):
        return Entries(kind, rows)
    found = [one for one in check_indexes(segment) if one.file == path.name]
    return Entries(kind, rows, {one.entry: one.message for one in reversed(found)}, True)


def _segment(path: Path) -> Segment:
    """The segment that an index belongs to; it may not exist."""
    stem = path.name.partition(".")[0]
    if len(stem) != 20 or not stem.isdecimal() or int(stem) >= 1 << 63:
        raise CaptureError("the name is no offset, which the entries count from", file=str(path))
    return Segment(path.with_name(f"{stem}.log"), base_offset=int(stem))


def _offsets(path: Path) -> list[Row]:
    return [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in read_offsets(path).items()
    ]


_BY_END: Final[Mapping[str, tuple[str, Callable[[Path], Entries | list[Row]]]]] = {
    ".timeindex": ("time index", _of_index),
    ".index": ("offset index", _of_index),
    ".txnindex": ("aborted transactions", lambda path: [one._asdict() for one in read_aborted(path)]),
    ".snapshot": ("producers", lambda path: [one._asdict() for one in read_producers(path)]),
    "leader-epoch-checkpoint": ("leader epochs", lambda path: [one._asdict() for one in read_epochs(path)]),
    **dict.fromkeys(CHECKPOINTS, ("offsets of partitions", _offsets)),
    "partition.metadata": ("id of a topic", lambda path: [read_partition_metadata(path)._asdict()]),
    "meta.properties": (
        "properties",
        lambda path: [{"name": name, "value": value} for name, value in read_properties(path).items()],
    ),
}


def _kind(name: str) -> tuple[str, Callable[[Path], Entries | list[Row]]] | None:
    return next((found for end, found in _BY_END.items() if name.endswith(end)), None)
