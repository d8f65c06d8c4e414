"""Log segments for ``kwire decode``: which paths are segments, and what is printed beside the rows.

``kwire decode`` hands a path over if ``holds_segments`` says so: a directory, or a file that begins as a segment does.
``--check-indexes`` compares the index files beside each segment. It reports each error in one line, after the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kwire import log
from kwire.capture.compressed import decompressed
from kwire.capture.magics import compression, is_capture
from kwire.errors import CaptureError, KwireError
from kwire.log.decided import InFolder
from kwire.log.files import named, plain, with_topic
from kwire.log.files import what_else as what_else_by_name
from kwire.opening import is_regular, open_file

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.tables.definition import LogTable

__all__ = ["decode", "holds_segments", "segments", "what_else"]


_HEAD: Final = 17
"""Bytes that tell a segment."""


def holds_segments(path: str) -> bool:
    """Whether ``path`` is a log segment or a directory of them. False if it cannot be read: the reader says why."""
    try:
        if Path(path).is_dir():
            return bool(log.find(path))
        with open_file(path) as file, decompressed(file) as stream:
            head = _head(stream)
            # No offset begins like a capture, but the bytes after that may look like the rest of an entry.
            return not is_capture(head) and compression(head) is None and log.is_segment(head, plain(path))
    except (KwireError, OSError, EOFError):
        return False


def _head(stream: Any) -> bytes:
    """The first 17 bytes."""
    head = b""
    while len(head) < _HEAD and (more := stream.read(_HEAD - len(head))):
        head += more
    return head


def _compressed(path: Path) -> bool:
    """Whether a file is compressed. Raises ``OSError``."""
    if not is_regular(path):
        return False
    with open_file(path) as file:
        return compression(file.read(4)) is not None


@dataclass(frozen=True, slots=True)
class _Decompressed(InFolder):
    """A folder in which segments may be compressed."""

    def names(self) -> list[str]:
        """The files in the folder. Raises ``OSError``."""
        return [one.name for one in self.path.absolute().parent.iterdir() if is_regular(one)]

    def open(self, name: str) -> BinaryIO:
        """One of the files, decompressed. Raises ``OSError``."""
        stream: BinaryIO = decompressed(open_file(self.path.parent / name))
        return stream


def what_else(path: str) -> str | None:
    """What ``path`` is, if it is another file of a data directory: no segment and no capture. A sentence."""
    said = what_else_by_name(Path(path).name)
    if said is None or not is_regular(path):
        return None
    with open_file(path) as file:
        head = file.read(4)
    return None if is_capture(head) or compression(head) is not None else said


def decode(
    path: str | log.Segment,
    write: Callable[[pa.RecordBatch], None],
    say: Callable[[str], None],
    *,
    table: LogTable,
    columns: Sequence[str] | None = None,
    check_indexes: bool = False,
    progress: Callable[[int], None] | None = None,
    how: Mapping[str, Any],
) -> bool:
    """Writes the rows of all segments in ``path``, in order, or of one segment. Returns False where an index is wrong.

    ``write`` gets batches of ``table`` with the columns that are chosen. ``how`` are the options of ``kwire.log.read``.
    ``say`` gets sentences about what is no row, each with the file's name. ``progress`` gets the bytes read so far of
    all segments together. Raises ``KwireError`` for a directory without segments and ``OSError`` for what cannot be
    read. Its keys ``topic`` and ``partition`` say which segments these are, where their folder does not.
    """
    right = True
    done = 0
    how = dict(how)
    topic, partition = how.pop("topic", None), how.pop("partition", None)
    for segment in segments(path) if isinstance(path, str) else [path]:
        if isinstance(segment, str):
            # It is none: this says why.
            log.find(segment)
            continue
        if topic is not None:
            segment = with_topic(segment, topic, partition)
        notes: list[str] = []
        seen = 0

        def count(size: int, before: int = done) -> None:
            nonlocal seen
            seen = size
            if progress is not None:
                progress(before + size)

        for batch in _read(table, segment, {"columns": columns, "progress": count, "on_note": notes.append, **how}):
            write(batch)
        done += seen
        for note in notes:
            say(f"{segment.path}: note: {note}")
        if check_indexes:
            if _compressed(segment.path):
                raise CaptureError("indexes count in the segment as it was: decompress it", file=str(segment.path))
            try:
                problems = log.check_indexes(segment)
            except ValueError as wrong:
                raise KwireError(str(wrong)) from wrong
            for problem in problems:
                right = False
                say(f"{segment.path.parent / problem.file}: entry {problem.entry}: {problem.message}")
    return right


def _read(table: LogTable, segment: log.Segment, how: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
    """The rows of a segment, which may be compressed."""
    beside = {"beside": _Decompressed(segment.path)} if how.get("read_committed") else {}
    if not _compressed(segment.path):
        yield from table.read(segment, **how, **beside)
        return
    with open_file(segment.path) as file, decompressed(file) as stream:
        yield from table.read(stream, name=segment, **how, **beside)


def segments(path: str) -> Sequence[log.Segment | str]:
    """The segments in ``path``. If that is not known, ``path`` itself: ``decode`` says why."""
    try:
        if _compressed(Path(path)):
            return [named(Path(path))] if holds_segments(path) else [path]
        return log.find(path)
    except (KwireError, OSError):
        return [path]
