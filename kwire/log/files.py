"""Where the segments of a broker are, and what their names say.

A data directory (``log.dirs``) holds one directory per partition, ``<topic>-<partition>``. In it are:

- segments named by their first offset: ``00000000000000000042.log``
- ``.index`` and ``.timeindex`` beside each segment
- ``partition.metadata`` with the topic id (KIP-516)
- snapshots of the metadata log (KIP-630), beside its segments and in their format:
  ``<20 digits>-<10 digits>.checkpoint``

A directory of a partition that is being deleted, moved or that nobody knows any more has a suffix:
``<topic>-<partition>.<32 hex digits>-delete``, ``-future`` or ``-stray``.

Rules kept here:

- Names are facts about where a file was found, not promises.
- A file with another name is a segment too if it is given by name. Its topic, partition and first offset are not known.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kwire.codec.redacting import METADATA_TOPIC
from kwire.errors import CaptureError, KwireError
from kwire.opening import is_regular, open_file
from kwire.records.control import KRAFT_TYPES
from kwire.records.reader import decode

__all__ = [
    "CONTROL_BATCH",
    "LARGEST",
    "Segment",
    "content",
    "find",
    "has_segment_name",
    "is_segment",
    "named",
    "plain",
    "what_else",
    "with_topic",
]

_PARTITION: Final = re.compile(r"(?P<topic>.+)-(?P<partition>[0-9]{1,10})(?:\.[0-9a-f]{32}-(?:delete|future|stray))?")
_LAST_OFFSET: Final = 2**63 - 1
_LAST_PARTITION: Final = 2**31 - 1
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that Kafka gives topics."""
_SEGMENT: Final = re.compile(r"(?P<offset>[0-9]{20})\.log(?:\.deleted)?")
_CHECKPOINT: Final = re.compile(r"[0-9]{20}-[0-9]{10}\.checkpoint")
_COMPRESSED: Final = re.compile(r"\.(?:gz|zst|bz2|lz4)$")
"""Ends of names that compressing adds."""
_HEAD: Final = 17
"""Bytes that tell a segment."""
CONTROL_BATCH: Final = 4096
"""Bytes that hold a batch with a control record."""
LARGEST: Final = 8 << 20
"""Bytes of a small file: 200,000 partitions in a checkpoint, 180,000 producers in a snapshot."""
_LONGEST_METADATA: Final = 4096
"""Bytes of a partition.metadata: a broker writes two short lines."""
_TOPIC_ID: Final = re.compile(r"^topic_id: *(\S{22}) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file. What its name, its directory and ``partition.metadata`` do not say is ``None``.

    ``topic_id`` is in Kafka's text form. ``base_offset`` is the number in the name. ``has_given_topic``: a user
    named its topic. That is no proof, so secrets of ``__cluster_metadata`` are looked for anyway.
    """

    path: Path
    topic: str | None = None
    partition: int | None = None
    topic_id: str | None = None
    base_offset: int | None = None
    has_given_topic: bool = False

    @property
    def index(self) -> Path:
        """The offset index beside the segment (it may not exist)."""
        return self.path.with_suffix(".index")

    @property
    def time_index(self) -> Path:
        """The time index beside the segment (it may not exist)."""
        return self.path.with_suffix(".timeindex")

    @property
    def transaction_index(self) -> Path:
        """The index of aborted transactions beside the segment (it may not exist)."""
        return self.path.with_suffix(".txnindex")


def content(path: Path, most: int) -> bytes:
    """A small file. Raises ``CaptureError`` if it has more than ``most`` bytes, ``OSError``."""
    with open_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise CaptureError(f"more than {most} bytes", file=str(path), offset=most)
    return data


def find(path: str | Path) -> list[Segment]:
    """The segments of ``path``: a file, a partition's directory, or a data directory with such directories.

    Sorted by topic, partition and first offset. Raises ``CaptureError`` for a directory without segments and for a file
    that is none. Raises ``OSError`` if there is nothing or it cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        with open_file(path, named=True) as file:
            head = file.read(_HEAD) if is_regular(path) else None
        if head is not None and not is_segment(head, path.name):
            compressed = "compressed: `kwire decode` reads it as it is" if _COMPRESSED.search(path.name) else None
            nothing = "no log segment: no batch begins there (of captures, there is `kwire decode`)"
            said = what_else(path.name) or compressed or nothing
            raise CaptureError(said, file=str(path))
        return [_segment(path)]
    found = [_segment(one) for one in path.iterdir() if has_segment_name(one.name)]
    if not found:
        found = [
            _segment(one)
            for folder in path.iterdir()
            if _PARTITION.fullmatch(folder.name) and folder.is_dir()
            for one in folder.iterdir()
            if has_segment_name(one.name)
        ]
    if not found:
        raise CaptureError(
            "no log segments in this folder: they are files such as 00000000000000000000.log", file=str(path)
        )
    return sorted(
        found, key=lambda one: (one.topic or "", one.partition or 0, str(one.path.parent), one.base_offset or 0)
    )


_OTHERS: Final = (
    (".timeindex", "the time index of a segment", "`kwire segments` shows it"),
    (".index", "the offset index of a segment", "`kwire segments` shows it"),
    (".txnindex", "the aborted transactions of a segment", "`kwire segments` shows it"),
    (".snapshot", "the state of producers", "`kwire segments` shows it"),
    ("leader-epoch-checkpoint", "the epochs of leaders", "`kwire segments` shows it"),
    ("-checkpoint", "offsets of partitions", "`kwire segments` shows it"),
    ("partition.metadata", "the id of a topic", "`kwire segments` shows it"),
    ("meta.properties", "the id of a broker and its cluster", "`kwire segments` shows it"),
)
"""Other files of a data directory, by the ends of their names: what they hold, and what reads them."""


def what_else(name: str) -> str | None:
    """What a file of this name is, if it is one of those beside the segments, and how to read it: a sentence."""
    for end, what, reader in _OTHERS:
        if name.endswith(end):
            return f"no log segment, but {what}: {reader}"
    return None


def with_topic(segment: Segment, topic: str, partition: int | None = None) -> Segment:
    """``segment`` as one of a topic (and partition) that its folder does not name.

    Raises ``CaptureError`` where its folder, or its first record, names another, and for a name that no topic can have.
    """
    if _TOPIC.fullmatch(topic) is None or topic in (".", ".."):
        said = "a name has 1 to 249 letters, digits, '.', '_' and '-'"
        raise CaptureError(f"no topic is called {topic!r}: {said}", file=str(segment.path))
    known = segment.topic if segment.topic not in (None, topic) else None
    if known is not None or (None not in (segment.partition, partition) and segment.partition != partition):
        said = f"the segment is one of {segment.topic}-{segment.partition}, not of {topic}"
        raise CaptureError(said if known is not None else f"{said}-{partition}", file=str(segment.path))
    if segment.topic == topic:
        return segment
    return replace(segment, topic=topic, partition=partition, has_given_topic=topic != METADATA_TOPIC)


def is_segment(head: bytes, name: str = "") -> bool:
    """Whether a file that starts with ``head`` (17 bytes are enough) is a log segment.

    It is one if its first entry has a size, a magic byte and an offset that entries have. An empty file is one if
    ``name`` ends like a segment's. So is a file that begins with zeros (preallocated and never written).
    """
    named = name.endswith((".log", ".log.deleted"))
    if not head.strip(b"\0"):
        return named
    if len(head) < 17:
        return False
    size = int.from_bytes(head[8:12], "big", signed=True)
    return size >= (14, 22, 49)[head[16]] and head[0] < 128 if head[16] < 3 else False


def has_segment_name(name: str) -> bool:
    """Whether a file of this name (without its folder) is taken from a directory: ``<20 digits>.log[.deleted]``."""
    return _SEGMENT.fullmatch(name) is not None


def plain(name: str) -> str:
    """The name of what is compressed, without the end that says so (``.gz``, ``.zst``, ``.bz2``, ``.lz4``)."""
    return _COMPRESSED.sub("", name)


def named(path: Path, metadata: str | None = None) -> Segment:
    """What ``path`` says, and ``metadata``: the text of the ``partition.metadata`` beside it. Nothing is read. A
    compressed file is named after its content: ``<20 digits>.log.gz``.

    Checkpoints of the metadata log have a topic and a partition too, but no base offset: no index counts from theirs.
    """
    name = plain(path.name)
    found = _SEGMENT.fullmatch(name)
    if found and int(found["offset"]) > _LAST_OFFSET:
        found = None
    known = found or _CHECKPOINT.fullmatch(name)
    folder = _PARTITION.fullmatch(path.absolute().parent.name) if known else None
    if folder and int(folder["partition"]) > _LAST_PARTITION:
        folder = None
    topic_id = _TOPIC_ID.search(metadata or "") if folder else None
    return Segment(
        path,
        topic=folder["topic"] if folder else None,
        partition=int(folder["partition"]) if folder else None,
        topic_id=topic_id[1] if topic_id else None,
        base_offset=int(found["offset"]) if found else None,
    )


def _segment(path: Path) -> Segment:
    beside = path.parent / "partition.metadata"
    metadata = None
    with contextlib.suppress(OSError), open_file(beside) as file:
        metadata = file.read(_LONGEST_METADATA).decode("ascii", "replace")
    found = named(path, metadata)
    if found.topic is None and _is_of_metadata(path):
        found = replace(found, topic=METADATA_TOPIC, partition=0)
    return found


def _is_of_metadata(path: Path) -> bool:
    """Whether a file begins with a control record that only ``__cluster_metadata`` and its snapshots have."""
    try:
        with open_file(path) as file:
            head = file.read(CONTROL_BATCH)
        first = next(decode(head, problems=[]), None)
    except (OSError, KwireError):
        return False
    return first is not None and any(first.control_type(one) in KRAFT_TYPES for one in first.records[:1])
