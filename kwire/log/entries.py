"""The files that a broker keeps beside its segments, each by itself: what kind it is by its name, and its entries.

    entries("00000000000000000042.index")     # Entries(kind="offset index", rows=[{"offset": 42, "position": 0}, ...])

Indexes are compared with the segment beside them, if there is one. An error of an entry stands at its number.

Source: those of ``kwire.log.folders`` and ``kwire.log.indexes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kwire.codec.redacting import REDACTED
from kwire.errors import CaptureError
from kwire.log.files import Segment
from kwire.log.folders import (
    CHECKPOINTS,
    TWICE,
    read_epochs,
    read_offsets,
    read_partition_metadata,
    read_producers,
    read_properties,
)
from kwire.log.indexes import check_indexes, read_index, read_time_index
from kwire.log.transaction_index import read_aborted
from kwire.opening import is_regular
from kwire.schema.configs import is_secret

__all__ = ["Entries", "entries", "has_entries"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """What a file holds.

    ``kind``: what it is. ``rows``: its entries, in order. ``problems``: what is wrong with some of them, by their
    numbers. A number may be one after the last. ``is_checked``: it was compared with its segment.
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

    Raises ``CaptureError`` for a name that is none of theirs and for content that does not match the name. Raises
    ``OSError`` if the file cannot be read.
    """
    path = Path(path)
    found = _kind(path.name)
    if found is None:
        raise CaptureError("no file of this name stands beside segments", file=str(path))
    kind, read = found
    made = read(path)
    return made if isinstance(made, Entries) else Entries(kind, made)


_INDEXES: Final[Mapping[str, tuple[str, Callable[[Segment], Sequence[Any]]]]] = {
    ".timeindex": ("time index", read_time_index),
    ".index": ("offset index", read_index),
    ".txnindex": ("aborted transactions", lambda segment: read_aborted(segment.transaction_index)),
}


def _of_index(path: Path) -> Entries:
    segment = _segment(path)
    kind, read = _INDEXES[path.suffix]
    rows = [one._asdict() for one in read(segment)]
    if not is_regular(segment.path):
        return Entries(kind, rows)
    found = [one for one in check_indexes(segment) if one.file == path.name]
    return Entries(kind, rows, {one.entry: one.message for one in reversed(found)}, True)


def _segment(path: Path) -> Segment:
    """The segment that an index belongs to. It may not exist."""
    stem = path.name.partition(".")[0]
    if len(stem) != 20 or not stem.isdecimal() or int(stem) >= 1 << 63:
        raise CaptureError("the name is no offset, which the entries count from", file=str(path))
    return Segment(path.with_name(f"{stem}.log"), base_offset=int(stem))


def _offsets(path: Path) -> list[Row]:
    return [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in read_offsets(path).items()
    ]


def _properties(path: Path) -> Entries:
    lost: list[str] = []
    found = read_properties(path, lost.append)
    rows = [{"name": name, "value": REDACTED if is_secret(name, value) else value} for name, value in found.items()]
    return Entries("properties", rows, {k: TWICE for k, name in enumerate(found) if name in lost})


_BY_END: Final[Mapping[str, tuple[str, Callable[[Path], Entries | list[Row]]]]] = {
    **{suffix: (kind, _of_index) for suffix, (kind, _) in _INDEXES.items()},
    ".snapshot": ("producers", lambda path: [one._asdict() for one in read_producers(path)]),
    "leader-epoch-checkpoint": ("leader epochs", lambda path: [one._asdict() for one in read_epochs(path)]),
    **dict.fromkeys(CHECKPOINTS, ("offsets of partitions", _offsets)),
    "partition.metadata": ("id of a topic", lambda path: [read_partition_metadata(path)._asdict()]),
    "meta.properties": ("properties", _properties),
}


def _kind(name: str) -> tuple[str, Callable[[Path], Entries | list[Row]]] | None:
    return next((found for end, found in _BY_END.items() if name.endswith(end)), None)
