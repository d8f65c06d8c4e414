"""Log segments for ``kwire decode``: which paths are segments, and what is said beside the rows.

``kwire decode`` hands a path over when ``holds_segments`` says so: a directory, or a file that begins as a segment
does. ``--check-indexes`` compares the index files beside each segment and reports what is wrong with them, one line
each, after the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire import log
from kwire.capture.magics import compression, is_capture
from kwire.errors import KwireError
from kwire.log.files import what_else as what_else_by_name
from kwire.opening import is_regular, open_file

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.tables.definition import LogTable

__all__ = ["decode", "holds_segments", "segments", "what_else"]


def holds_segments(path: str) -> bool:
    """Whether ``path`` is a log segment or a directory of them; False for what cannot be read: the reader says why."""
    try:
        if Path(path).is_dir():
            return bool(log.find(path))
        with open_file(path) as file:
            head = file.read(17)
            # No offset begins like a compressed file, but what is behind that may look like the rest of an entry.
            return compression(head) is None and log.is_segment(head, path)
    except (KwireError, OSError):
        return False


def what_else(path: str) -> str | None:
    """What ``path`` is if it is another file of a data directory, and neither a segment nor a capture; a sentence."""
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
    read.
    """
    right = True
    done = 0
    for segment in log.find(path) if isinstance(path, str) else [path]:
        notes: list[str] = []
        seen = 0

        def count(size: int, before: int = done) -> None:
            nonlocal seen
            seen = size
            if progress is not None:
                progress(before + size)

        for batch in table.read(segment, columns=columns, progress=count, on_note=notes.append, **how):
            write(batch)
        done += seen
        for note in notes:
            say(f"{segment.path}: note: {note}")
        if check_indexes:
            try:
                problems = log.check_indexes(segment)
            except ValueError as wrong:
                raise KwireError(str(wrong)) from wrong
            for problem in problems:
                right = False
                say(f"{segment.path.parent / problem.file}: entry {problem.entry}: {problem.message}")
    return right


def segments(path: str) -> Sequence[log.Segment | str]:
    """The segments in ``path``; itself where that cannot be said: ``decode`` says why."""
    try:
        return log.find(path)
    except (KwireError, OSError):
        return [path]
