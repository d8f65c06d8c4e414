"""A segment region by region: whole entries, and what is none between them. What the headers of entries say.

Strategy: the file is read window by window into one buffer. The rest of a window (an entry that continues in the next
one) is moved to the front of the buffer. The buffer grows only as bytes arrive, so a length that promises gigabytes
costs nothing. If a length is wrong, the next entry is found by its checksum (``resync``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from kwire.errors import CaptureError, MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and log segments", "capture") from _missing

from kwire.kernels.engine import PYTHON, choose
from kwire.kernels.layouts import HEADER, joined
from kwire.kernels.segments import EFFORT, framed, read_headers, resync

__all__ = ["WINDOW", "Bytes", "Ints", "Region", "headers", "headers_of", "regions"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
"""Type: a numpy array of bytes (``uint8``)."""
Ints = np.ndarray[Any, np.dtype[np.int64]]
"""Type: a numpy array of numbers (``int64``)."""

WINDOW: Final = 8 << 20
"""How much of a segment is read at once (int, bytes): 8 MiB."""
_UNREADABLE: Final = (OSError, EOFError, pa.ArrowException)
"""What a stream may raise where it cannot be read."""


@dataclass(slots=True)
class Region:
    """Whole entries of a segment: in ``data`` (uint8 array), which begins at byte ``position`` of the file.

    ``starts`` and ``lengths``: the runs of entries in ``data``, at least one, which may be empty. ``skipped``: what is
    no entry, before and between them, as (position in the file, sentence).
    """

    data: Bytes
    position: int
    starts: Ints
    lengths: Ints
    skipped: list[tuple[int, str]]


def regions(
    stream: BinaryIO,
    *,
    size: int = WINDOW,
    progress: Callable[[int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    name: str | None = None,
) -> Iterator[Region]:
    """``stream`` in regions of about ``size`` bytes. A region's data is valid until the next one is asked for.

    A file that is damaged in many places has no more regions than others: the work for each costs more than its bytes.

    A stream may fail after it has given bytes: damaged compression, a disk, an object store. Then the regions of these
    bytes come first, and after them a ``CaptureError`` with the offset and ``name``. Its ``__cause__`` is the error of
    the stream.
    """
    # The buffer is larger than a window. So its rest is moved once for each window, not once for each damaged place.
    buffer: Bytes = np.empty(2 * size, np.uint8)
    begin = filled = position = 0
    ended = False
    broken: Exception | None = None
    engine = PYTHON
    lost: int | None = None
    ahead: int | None = None
    effort = EFFORT
    zeros = True
    runs: list[tuple[int, int]] = []
    gathered = 0
    skipped: list[tuple[int, str]] = []

    def region() -> Region:
        nonlocal gathered
        low, high = (runs[0][0], sum(runs[-1])) if runs else (position, position)
        starts, lengths = np.array(runs or [(low, 0)], np.int64).T.copy()
        made = Region(buffer[low - position + begin : high - position + begin], low, starts - low, lengths, skipped[:])
        gathered = 0
        runs.clear()
        skipped.clear()
        return made

    while True:
        if not ended and filled - begin < size:
            if runs or skipped:
                yield region()
            filled -= begin
            buffer[:filled] = buffer[begin : begin + filled].copy()
            begin, before = 0, filled
            while filled < buffer.size and not ended:
                try:
                    got = stream.readinto(memoryview(buffer.data)[filled:])  # type: ignore[attr-defined]
                except _UNREADABLE as error:
                    if not position + filled:
                        raise
                    broken, got = error, 0
                ended = not got
                filled += got or 0
            engine = choose(filled - before)
            if progress is not None:
                progress(position + filled)
        data = buffer[begin : min(filled, begin + size)]
        last = ended and begin + data.size == filled
        used = 0
        if lost is not None:
            # Between entries: a length was wrong at byte ``lost``.
            if ahead is None:
                found, keep, effort = engine(resync)(data, min(max(lost + 1 - position, 0), data.size), effort)
                used = found if found >= 0 else data.size if last else keep
            else:
                found = used = ahead - position
                ahead = None
            zeros = zeros and not data[:used].any()
            if found >= 0 or (last and not zeros):
                skipped.append((lost, f"{position + used - lost} bytes that are no entry"))
            if found >= 0:
                lost = None
        start = used
        if lost is None:
            used, wrong = engine(framed)(data, start)
            if wrong:
                lost, zeros = position + used, True
            elif last and used < data.size:
                found, _, effort = engine(resync)(data, used + 1, effort)
                if found >= 0:
                    # The last entry reaches beyond the end of the file, but there are entries in it: its length is
                    # wrong.
                    lost, ahead, zeros = position + used, position + found, False
        if used > start:
            runs.append((position + start, used - start))
            gathered += used - start
        if 2 * gathered >= size:
            yield region()
        left = data.size - used
        if last and (lost is None or not left):
            if runs or skipped:
                yield region()
            if left and on_note is not None and broken is None:
                on_note(f"{left} bytes at the end belong to an entry that was not written to its end")
            if lost is not None and zeros and on_note is not None:
                on_note(f"{position + used - lost} bytes at the end are zeros: space that was allocated in advance")
            if broken is not None:
                said = " ".join(str(broken).split()) or type(broken).__name__
                raise CaptureError(
                    f"cannot be read any further: {said}", file=name, offset=position + filled - begin
                ) from broken
            return
        if not used and not last:
            # The entry is longer than the window. It grows as bytes arrive, not as lengths promise.
            size *= 2
            if buffer.size < 2 * size:
                buffer = np.concatenate([buffer, np.empty(buffer.size, np.uint8)])
        begin += used
        position += used


def headers_of(region: Region) -> Any:
    """``headers`` of all runs of a region. Positions count in its ``data``."""
    tables = []
    for start, length in zip(region.starts.tolist(), region.lengths.tolist(), strict=True):
        table = headers(region.data[start : start + length])
        table["position"] += start
        tables.append(table)
    return tables[0] if len(tables) == 1 else joined(tables)


def headers(data: Bytes) -> Any:
    """What the headers of the entries in ``data`` (a uint8 array) say: a table of ``kwire.kernels.layouts.HEADER``."""
    read_all = choose(data.size)(read_headers)
    table = np.empty(data.size // 512 + 16, HEADER)
    rows = read_all(data, table)
    if rows > len(table):
        table = np.empty(rows, HEADER)
        rows = read_all(data, table)
    return table[:rows]
