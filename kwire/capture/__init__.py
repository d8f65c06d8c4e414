"""Captures (pcap, pcapng) as tables of frames, messages and records.

``read`` takes a binary file object and yields ``pyarrow.RecordBatch`` with the columns of ``kwire.capture.tables``.
How a capture goes through it is described in ``kwire.capture.pipeline``.

Importing this package imports neither numpy, pyarrow nor numba: ``read`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kwire.errors import CaptureError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.columns import Builder
    from kwire.capture.pipeline import Pipeline, Source
    from kwire.capture.tables import Table

__all__ = ["read"]


def read(
    source: Source,
    table: Table = "frames",
    *,
    ports: Iterable[int] | None = None,
    name: str = "",
    progress: Callable[[int], None] | None = None,
    window: int | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of ``frames``, ``messages`` or ``records`` of one capture, as Arrow batches that are not empty.

    ``source`` is a binary file object, read once from where it stands. ``ports`` names the broker ports to look at;
    without it, connections are recognised by what they carry. ``name`` fills the column ``capture`` and stands in
    errors. ``progress`` is called with the bytes read so far. ``window`` is how many bytes are read at once
    (default 8 MiB). ``on_note`` is called after the last batch with sentences about what was left out (fragments,
    other link types).

    Raises ``CaptureError`` for what is no capture, and for one that is truncated or damaged, but then after all
    batches of what stands before the damage; ``ValueError`` for an unknown table; ``MissingExtraError`` without the
    extra ``capture``.
    """
    try:
        from kwire.capture.columns import Builder
        from kwire.capture.pipeline import WINDOW, Pipeline
        from kwire.capture.tables import SCHEMAS
    except ModuleNotFoundError as missing:
        if missing.name in ("numba", "numpy", "pyarrow"):
            raise MissingExtraError("reading captures", "capture") from None
        raise
    if table not in SCHEMAS:
        raise ValueError(f"no table {table!r}: there are {', '.join(SCHEMAS)}")
    pipeline = Pipeline(source, ports=ports, window=window or WINDOW, progress=progress)
    builder = Builder(pipeline, table, name)
    return _batches(pipeline, builder, name, on_note)


def _batches(
    pipeline: Pipeline, builder: Builder, name: str, on_note: Callable[[str], None] | None
) -> Iterator[pa.RecordBatch]:
    error: CaptureError | None = None
    try:
        for found in pipeline.windows():
            batch = builder.batch(found)
            if batch.num_rows:
                yield batch
    except CaptureError as problem:
        error = CaptureError(problem.message, file=name or None, offset=problem.offset)
    # Not where the caller stopped early: what was left out is known at the end only.
    if on_note is not None:
        for note in pipeline.notes():
            on_note(note)
    if error is not None:
        raise error
