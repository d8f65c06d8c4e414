"""What a broker keeps beside its segments: checkpoints, producers, aborted transactions, and who it is.

    read_offsets(data / "replication-offset-checkpoint")     # {("orders", 0): 42, ...}
    read_epochs(partition / "leader-epoch-checkpoint")       # [Epoch(epoch=0, start_offset=0), ...]
    read_producers(partition / "00000000000000000042.snapshot")
    read_aborted(partition / "00000000000000000000.txnindex")
    describe(data)                                           # all of it, partition by partition

A data directory has ``meta.properties`` and four checkpoints. Each has an offset for each partition:

- ``recovery-point-offset-checkpoint``: up to where it is flushed
- ``replication-offset-checkpoint``: the high watermark
- ``log-start-offset-checkpoint``: below it, records were deleted on demand
- ``cleaner-offset-checkpoint``: up to where it is compacted

A file of no bytes has no entries. A partition's directory has ``leader-epoch-checkpoint`` (KIP-101) and
``partition.metadata`` (KIP-516). Some segments have ``.txnindex`` and ``.snapshot``, whose name is the offset up to
which it counts.

Rules kept here:

- A file that is not as it should be raises ``CaptureError`` with the file and the byte. ``describe`` goes on and lists
  it.
- Lengths are checked before anything is made, and files are not larger than brokers make them: ``LARGEST``.
- No code or class is loaded from a file: properties are texts.

Sources: Kafka's CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile,
ProducerStateManager, AbortedTxn and MetaProperties, and what brokers of 3.9 and 4.3 wrote (``tests/golden/segments``).
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from kwire.errors import CaptureError
from kwire.log.files import LARGEST, Segment, content, find
from kwire.log.transaction_index import Aborted, read_aborted
from kwire.opening import open_file
from kwire.records.crc import crc32c

if TYPE_CHECKING:
    from kwire.log.indexes import IndexProblem

__all__ = [
    "CHECKPOINTS",
    "Epoch",
    "Folder",
    "Overlap",
    "Partition",
    "PartitionMetadata",
    "Producer",
    "describe",
    "overlaps",
    "producers_of",
    "read_epochs",
    "read_offsets",
    "read_partition_metadata",
    "read_producers",
    "read_properties",
]

CHECKPOINTS: Final = {
    "recovery-point-offset-checkpoint": "recovery_point",
    "replication-offset-checkpoint": "high_watermark",
    "log-start-offset-checkpoint": "log_start",
    "cleaner-offset-checkpoint": "cleaned_up_to",
}
"""The checkpoints of a data directory, and the field of ``Partition`` that each fills."""

TWICE: Final = "is there twice, with different values: the last one counts"
"""A problem of a name in ``meta.properties``."""

_LONGEST: Final = 64 << 10
"""Bytes of ``meta.properties`` and ``partition.metadata``: brokers write a few lines."""

_NUMBER: Final = re.compile(rb"-?[0-9]{1,19}")
_OFFSETS: Final = re.compile(rb"(\S+) (-?[0-9]{1,10}) (-?[0-9]{1,19})")
_EPOCHS: Final = re.compile(rb"(-?[0-9]{1,10}) (-?[0-9]{1,19})")
_INT64: Final = 1 << 63

_SNAPSHOT: Final = struct.Struct(">hIi")
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_SUMMED: Final = 6
"""Bytes before those that the checksum of a snapshot covers."""

_T = TypeVar("_T")


class Epoch(NamedTuple):
    """The term of a leader, and the offset of the first record that it wrote."""

    epoch: int
    start_offset: int


class PartitionMetadata(NamedTuple):
    """What ``partition.metadata`` says. ``topic_id`` is in Kafka's text form."""

    version: int
    topic_id: str


class Producer(NamedTuple):
    """The state of a producer at the offset in the name of a snapshot.

    ``last_sequence`` and ``last_offset`` are those of its last batch, which has ``offset_delta + 1`` records and the
    largest ``timestamp`` (ms since 1970). All are -1 if only a marker is known. ``current_first_offset`` is where its
    open transaction began, None if there is none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_first_offset: int | None


class Overlap(NamedTuple):
    """Two segments of a partition with the same offsets: ``first`` to ``last`` are in both, each by its path."""

    earlier: Path
    later: Path
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.earlier.name} has offsets up to {self.last}, and {self.later.name} begins at {self.first}"


# --- Files ------------------------------------------------------------------------------------------------------------


def _checkpoint(path: Path, entry: re.Pattern[bytes], what: str) -> Iterator[tuple[bytes, ...]]:
    """The entries of a checkpoint: a version, how many there are, and a line for each."""
    data = content(path, LARGEST)
    if not data:
        return
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    at = 0

    def wrong(text: str) -> CaptureError:
        return CaptureError(text, file=str(path), offset=at)

    numbers = []
    for number, name in enumerate(("a version", "a number of entries")):
        line = lines[number].rstrip(b"\r") if number < len(lines) else b""
        if _NUMBER.fullmatch(line) is None:
            raise wrong(f"{name} was expected")
        numbers.append(int(line))
        at += len(lines[number]) + 1
    version, count = numbers
    if version not in (0, 1):
        raise CaptureError(f"version {version} is not known", file=str(path), offset=0)
    if count != len(lines) - 2:
        raise wrong(f"{count} entries were announced, and there are {len(lines) - 2}")
    for line in lines[2:]:
        found = entry.fullmatch(line.rstrip(b"\r"))
        if found is None:
            raise wrong(f"{what} was expected")
        at += len(line) + 1
        yield found.groups()


def read_offsets(path: str | Path) -> dict[tuple[str, int], int]:
    """The offsets of a checkpoint of a data directory, by topic and partition, in the order of the file.

    Raises ``CaptureError`` for one that is none, or names a partition twice, ``OSError`` if it cannot be read.
    """
    path = Path(path)
    found: dict[tuple[str, int], int] = {}
    for topic, partition, offset in _checkpoint(path, _OFFSETS, "a topic, a partition and an offset"):
        key = (topic.decode("utf-8", "replace"), int(partition))
        if not 0 <= key[1] < 1 << 31 or int(offset) < -1:
            raise CaptureError(f"partition {key[1]}, offset {int(offset)}: these cannot be", file=str(path))
        if key in found:
            raise CaptureError(f"{key[0]}-{key[1]} is there twice", file=str(path))
        found[key] = _int64(path, offset)
    return found


def read_epochs(path: str | Path) -> list[Epoch]:
    """The leader epochs of ``leader-epoch-checkpoint``, in the order of the file, which is upwards in both numbers.

    Raises ``CaptureError`` for a file that is none, ``OSError`` if it cannot be read.
    """
    path = Path(path)
    found: list[Epoch] = []
    for epoch, start in _checkpoint(path, _EPOCHS, "an epoch and an offset"):
        made = Epoch(int(epoch), _int64(path, start))
        if found and (made.epoch <= found[-1].epoch or made.start_offset < found[-1].start_offset):
            last = found[-1]
            said = f"epoch {made.epoch} from {made.start_offset} behind epoch {last.epoch} from {last.start_offset}"
            raise CaptureError(said, file=str(path))
        found.append(made)
    return found


def _int64(path: Path, digits: bytes) -> int:
    number = int(digits)
    if not -_INT64 <= number < _INT64:
        raise CaptureError(f"{number} is no int64", file=str(path))
    return number


def read_partition_metadata(path: str | Path) -> PartitionMetadata:
    """What ``partition.metadata`` says. Raises ``CaptureError`` for a file that is none, ``OSError`` without one."""
    path = Path(path)
    text = content(path, _LONGEST).decode("ascii", "replace")
    found = re.fullmatch(r"version: *([0-9]{1,9})\s*\ntopic_id: *([A-Za-z0-9_-]{22})\s*", text)
    if found is None:
        raise CaptureError("a version and a topic id were expected", file=str(path), offset=0)
    return PartitionMetadata(int(found[1]), found[2])


def read_properties(path: str | Path, on_lost: Callable[[str], None] | None = None) -> dict[str, str]:
    """``meta.properties`` (any file of Java properties): texts by name, the last of equal names as in Java.

    ``on_lost`` is called with a name that has another value before. Raises ``CaptureError`` for a file that is too
    large or has an escape that is none, ``OSError`` without one.
    """
    path = Path(path)
    text = content(path, _LONGEST).decode("latin-1")
    found: dict[str, str] = {}
    # A line that ends in an odd number of backslashes continues in the next. The first spaces there do not count.
    whole = re.sub(r"(?<!\\)((?:\\\\)*)\\(?:\r\n|\r|\n)[ \t\f]*", r"\1", text)
    for line in re.split(r"\r\n|\r|\n", whole):
        line = line.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        named = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        if named is None:  # pragma: no cover - any line matches
            continue
        name, value = _unescaped(path, named[1]), _unescaped(path, named[2])
        if found.get(name, value) != value and on_lost is not None:
            on_lost(name)
        found[name] = value
    return found


def _unescaped(path: Path, text: str) -> str:
    def one(found: re.Match[str]) -> str:
        what = found[1]
        if what[0] != "u":
            return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(what, what)
        if len(what) != 5:
            raise CaptureError(r"a \u without four hexadecimal digits", file=str(path))
        return chr(int(what[1:], 16))

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", one, text, flags=re.DOTALL) if "\\" in text else text


def read_producers(path: str | Path) -> list[Producer]:
    """The producers of a ``.snapshot``. Raises ``CaptureError`` for a file that is none, ``OSError`` without one."""
    return producers_of(content(Path(path), LARGEST), path)


def producers_of(data: bytes, path: str | Path) -> list[Producer]:
    """The producers of a ``.snapshot`` that holds ``data``. ``path`` is for errors: ``CaptureError``."""
    if len(data) < _SNAPSHOT.size:
        raise CaptureError(f"{len(data)} bytes, and a snapshot has {_SNAPSHOT.size} or more", file=str(path), offset=0)
    version, checksum, count = _SNAPSHOT.unpack_from(data)
    if version != 1:
        raise CaptureError(f"version {version} is not known", file=str(path), offset=0)
    if crc32c(memoryview(data)[_SUMMED:]) != checksum:
        raise CaptureError("the checksum does not match", file=str(path), offset=2)
    if count < 0 or len(data) != _SNAPSHOT.size + count * _PRODUCER.size:
        said = f"{count} producers were announced in {len(data) - _SNAPSHOT.size} bytes, {_PRODUCER.size} for each"
        raise CaptureError(said, file=str(path), offset=_SUMMED)
    return [
        Producer._make([*fields[:7], None if fields[7] < 0 else fields[7]])
        for fields in _PRODUCER.iter_unpack(data[_SNAPSHOT.size :])
    ]


# --- Folders ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Partition:
    """A partition's directory, and what the checkpoints of its data directory say of it. None if they do not.

    - ``segments`` have the first and last offset, the number of batches and the bytes of each.
    - ``producers`` are those of the newest snapshot.
    - ``aborted`` are those of all indexes, by their segment.
    - ``problems`` are sentences.
    """

    topic: str
    partition: int
    path: Path
    topic_id: str | None = None
    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start: int | None = None
    cleaned_up_to: int | None = None
    epochs: list[Epoch] = field(default_factory=list)
    segments: list[Extent] = field(default_factory=list)
    aborted: list[Aborted] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Extent(NamedTuple):
    """What a segment holds: offsets from ``first`` to ``last`` (None if it is empty), batches and bytes."""

    segment: Segment
    first: int | None
    last: int | None
    batches: int
    size: int


@dataclass(slots=True)
class Folder:
    """A data directory, or the directory of one partition.

    - ``properties`` are those of ``meta.properties``.
    - ``gone``: the partitions that checkpoints name and the directory does not have.
    - ``problems``: what is wrong with files that belong to no partition.
    """

    path: Path
    properties: dict[str, str] = field(default_factory=dict)
    partitions: list[Partition] = field(default_factory=list)
    gone: list[tuple[str, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not any(one.problems for one in self.partitions)


def describe(path: str | Path, progress: Callable[[int], None] | None = None) -> Folder:
    """What stands in a data directory, or in the directory of one partition.

    The headers of all batches are read, as far as they can be, and compared with the indexes. Errors are listed in
    ``problems``. ``progress`` gets the number of bytes of segments read so far. Raises ``CaptureError`` for a directory
    without segments, and ``OSError`` if there is no directory.
    """
    path = Path(path)
    folder = Folder(path)
    found: dict[Path, list[Segment]] = {}
    for segment in find(path):
        found.setdefault(segment.path.parent, []).append(segment)
    done = 0
    for place, segments in found.items():
        known = segments[0]
        one = Partition(known.topic or place.name, known.partition or 0, place, known.topic_id)
        folder.partitions.append(one)
        for segment in segments:
            found_in = _tried(one.problems, _read, segment)
            if found_in is not None:
                extent, wrong = found_in
                one.problems += wrong
                one.segments.append(extent)
                done += extent.size
                if progress is not None:
                    progress(done)
        one.problems += map(str, _overlaps(one.segments))
        _partition(one)
    _checkpoints(folder)
    return folder


def _tried(problems: list[str], read: Callable[..., _T], *arguments: object) -> _T | None:
    """What ``read`` gives. If it fails, None, and a sentence in ``problems``."""
    try:
        return read(*arguments)
    except (CaptureError, OSError) as error:
        problems.append(str(error))
        return None


def _partition(one: Partition) -> None:
    """Reads the small files of a partition's directory."""
    epochs = one.path / "leader-epoch-checkpoint"
    if epochs.exists():
        one.epochs = _tried(one.problems, read_epochs, epochs) or []
    metadata = one.path / "partition.metadata"
    if metadata.exists():
        said = _tried(one.problems, read_partition_metadata, metadata)
        one.topic_id = said.topic_id if said is not None else None
    snapshots = []
    for file in sorted(one.path.iterdir()):
        if file.suffix == ".txnindex":
            one.aborted += _tried(one.problems, read_aborted, file) or []
        elif re.fullmatch(r"[0-9]{20}\.snapshot", file.name):
            snapshots.append(_tried(one.problems, read_producers, file))
    one.producers = next((known for known in reversed(snapshots) if known is not None), [])


def _checkpoints(folder: Folder) -> None:
    """Reads the files of the data directory: ``folder`` itself, or the one that the partition is in."""
    inside = any(one.path == folder.path for one in folder.partitions)
    data = folder.path.absolute().parent if inside else folder.path
    if (data / "meta.properties").exists():
        file = data / "meta.properties"

        def twice(name: str) -> None:
            folder.problems.append(f"{file}: {name} {TWICE}")

        folder.properties = _tried(folder.problems, read_properties, file, twice) or {}
    by_name = {(one.topic, one.partition): one for one in folder.partitions}
    gone: dict[tuple[str, int], None] = {}
    for name, what in CHECKPOINTS.items():
        if not (data / name).exists():
            continue
        for key, offset in (_tried(folder.problems, read_offsets, data / name) or {}).items():
            if key in by_name:
                setattr(by_name[key], what, offset)
            elif not inside:
                gone[key] = None
    folder.gone = list(gone)


# --- Segments ---------------------------------------------------------------------------------------------------------


def extent_of(segment: Segment) -> Extent:
    """The offsets of a segment, by the headers of its batches. Damaged batches are left out."""
    return _read(segment, indexes=False)[0]


def _read(segment: Segment, *, indexes: bool = True) -> tuple[Extent, list[str]]:
    """The offsets of a segment, and what is wrong with the indexes beside it. The segment is read once."""
    import numpy as np

    from kwire.log.regions import headers_of, regions

    first = last = None
    batches = 0
    tables = []
    indexes = (
        indexes
        and segment.base_offset is not None
        and any(one.exists() for one in (segment.index, segment.time_index, segment.transaction_index))
    )
    with open_file(segment.path, buffering=0) as stream:
        for region in regions(stream):
            table = headers_of(region)
            if indexes:
                whole = table.copy()
                whole["position"] += region.position
                tables.append(whole)
            table = table[table["crc_ok"] == 1]
            if not len(table):
                continue
            batches += len(table)
            # The offsets before the last message of a wrapper are not in its header.
            low = int(np.min(np.where(table["base"] < 0, segment.base_offset or 0, table["base"])))
            high = int(np.max(table["last"]))
            first = low if first is None else min(first, low)
            last = high if last is None else max(last, high)
        size = os.fstat(stream.fileno()).st_size
    problems: list[str] = []
    if indexes:
        from kwire.log.indexes import check_against

        wrong: dict[str, list[IndexProblem]] = {}
        for one in _tried(problems, check_against, segment, tables) or []:
            wrong.setdefault(one.file, []).append(one)
        for file, found in wrong.items():
            several = f", and {len(found) - 1} more: kwire segments {file} shows them" if len(found) > 1 else ""
            problems.append(f"{file}: entry {found[0].entry}: {found[0].message}{several}")
    return Extent(segment, first, last, batches, size), problems


def overlaps(path: str | Path) -> list[Overlap]:
    """The segments of ``path`` (as of ``kwire.log.find``) that have offsets of a later segment.

    A reader that goes from one segment to the next meets such records twice. A lookup finds only one of them. Kafka 3.9
    makes such segments if an append fails in the middle. Segments that wait to be deleted are left out.
    """
    by_place: dict[Path, list[Extent]] = {}
    for segment in find(path):
        by_place.setdefault(segment.path.parent, []).append(extent_of(segment))
    return [one for extents in by_place.values() for one in _overlaps(extents)]


def _overlaps(extents: Iterable[Extent]) -> list[Overlap]:
    found = []
    known = [one for one in extents if one.segment.path.suffix == ".log" and one.segment.base_offset is not None]
    # Each against the earlier one that reaches farthest: an overlap of three is reported twice, not three times.
    farthest: Extent | None = None
    for one in sorted(known, key=lambda each: each.segment.base_offset or 0):
        base = one.segment.base_offset or 0
        begins = base if one.first is None else min(base, one.first)
        if farthest is not None and farthest.last is not None and farthest.last >= begins:
            found.append(Overlap(farthest.segment.path, one.segment.path, begins, farthest.last))
        if farthest is None or (one.last is not None and (farthest.last is None or one.last > farthest.last)):
            farthest = one
    return found
