"""Log segments for ``kwire decode``: which paths are segments, their tables, and what is said beside the rows.

``kwire decode`` hands a path over when ``holds_segments`` says so: a directory, or a file that begins as a segment
does. The tables are ``records`` (the default) and ``batches``; ``--deep`` adds the decoded records of Kafka's own
topics to ``records``; ``--check-indexes`` compares the index files beside each segment and reports what is wrong with
them, one line each, after the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kwire import log
from kwire.errors import KwireError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TABLES", "decode", "holds_segments", "schema"]

TABLES = ("records", "batches")
"""Tables of a segment, the default first."""


def holds_segments(path: str) -> bool:
    """Whether ``path`` is a log segment or a directory of them; False for what cannot be read: the reader says why."""
    try:
        if Path(path).is_dir():
            return bool(log.find(path))
        with Path(path).open("rb") as file:
            return log.is_segment(file.read(17), path)
    except (KwireError, OSError):
        return False


def schema(table: str = "records", *, deep: bool = False) -> pa.Schema:
    """The schema of the rows that ``decode`` writes."""
    if table == "batches":
        return log.BATCHES
    if not deep:
        return log.RECORDS
    import pyarrow as pa

    from kwire.log.internal import DECODED

    return pa.schema([*log.RECORDS, *(pa.field(name, pa.string()) for name in DECODED)])


def decode(
    path: str,
    write: Callable[[pa.RecordBatch], None],
    say: Callable[[str], None],
    *,
    table: str = "records",
    deep: bool = False,
    check_indexes: bool = False,
    progress: Callable[[int], None] | None = None,
) -> bool:
    """Writes the rows of all segments in ``path``, in order. Returns False where an index is wrong.

    ``write`` gets batches with ``schema(table, deep=deep)``, ``say`` sentences about what is no row, each with the
    file's name, ``progress`` the bytes read so far of all segments together. Raises ``KwireError`` for a directory
    without segments and ``OSError`` for what cannot be read.
    """
    from kwire.log.internal import decoded

    right = True
    done = 0
    for segment in log.find(path):
        notes: list[str] = []
        seen = 0

        def count(size: int, before: int = done) -> None:
            nonlocal seen
            seen = size
            if progress is not None:
                progress(before + size)

        read = log.batches if table == "batches" else log.read
        for batch in read(segment, progress=count, on_note=notes.append):
            write(decoded(batch) if deep and table == "records" else batch)
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
