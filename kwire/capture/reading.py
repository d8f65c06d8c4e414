"""From a source of bytes to the frames in it: what reads captures for the tables and for everybody else.

``Reading`` asks a binary file object for a window of bytes at a time, feeds a ``Tracker`` and yields ``Frames``.

Rules kept here:

- The source is read, never sought; nothing is written.
- After the last byte, or at damage that cannot be passed, everything left is handled as if the capture ended there.
  Only then a ``CaptureError`` is raised. Good data before bad is not lost.
- A live source is processed as its bytes come; only no bytes at all are its end.
- Where kernels are not loaded yet the first window is a small one, which needs none: the first rows come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO, FileIO
from typing import Any, Final, Protocol, Unpack

import pyarrow as pa

from kwire.capture.compressed import DamagedError, Decompressed
from kwire.capture.frames import Frames
from kwire.capture.parts import Part
from kwire.capture.tracker import Tracker
from kwire.errors import CaptureError, KwireError, MissingExtraError
from kwire.kernels import engine
from kwire.options import StreamedOptions, TrafficOptions, chosen
from kwire.records.buffers import BUFFERS
from kwire.tls import KeyLog

__all__ = ["UNREADABLE", "WINDOW", "Reading", "Rotated", "Source", "Then", "is_damage", "said_of"]

WINDOW: Final = 8 << 20
"""Bytes read at once, at most. Less costs calls, more costs cache misses and memory."""

LEAST_WINDOW: Final = 2 << 20
FRAMES_AT_ONCE: Final = 1000
"""Frames that a window should hold, if it need not be smaller than ``LEAST_WINDOW`` for that.

Each window costs some 0.3 ms, and more for ``messages``. With large windows, the tables that many frames need are no
longer in the caches when they are read. With 5,000 frames in a MiB, windows of 2 MiB take a sixth less time than those
of 8 MiB. With 76 frames in a MiB they take a tenth more.
"""

FIRST_WINDOW: Final = 256 << 10
"""Bytes of the first window while kernels run as Python."""

COMPRESSED_PIECE: Final = 4 << 10
"""Bytes read at once from a stream of Arrow that decompresses: the most that is lost where it is damaged. Also from
a live source that is decompressed."""

UNREADABLE: Final = (OSError, EOFError, pa.ArrowException)
"""What a source may raise where it cannot be read."""

_IN_PLACE: Final = (BytesIO, BufferedReader, FileIO, Decompressed, pa.CompressedInputStream)
"""Sources that write where the tracker reads.

New memory for each window would cost as much as reading its packets, and a copy half of that.
"""

_MOST_IN_PLACE: Final = 64 << 20
"""Bytes of a window that has its memory before anything is read. Larger ones grow with what there is."""


def said_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def is_damage(error: BaseException) -> bool:
    """Whether the bytes of a file are to blame for ``error``, and neither the machine nor the store that has them.

    What reading, decoding and ``Reading`` raise is asked about; of anything else the bytes are not to blame."""
    if isinstance(error, CaptureError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, KwireError | DamagedError | EOFError) and not isinstance(error, MissingExtraError)


class Source(Protocol):
    """A binary file object, or anything with its ``read``."""

    def read(self, size: int, /) -> bytes | None:
        """Up to ``size`` bytes; none at the end."""


Then = Callable[[Tracker, CaptureError | None], tuple[Source, str] | None]
"""Type: what gives the next file of a capture and its name, None after the last one.

It gets the tracker, and what was wrong with the file before it: nothing of that is raised.
"""


@dataclass(frozen=True, slots=True)
class Rotated:
    """A capture in several files: the first, and what gives each of the others."""

    first: Source
    then: Then


class Reading:
    """One capture, read from ``source``: iterate over it, once, for its ``Frames``.

    - ``name`` is what errors call the capture.
    - ``keys`` are the secrets of its connections that speak TLS.
    - ``part``: the part of a whole that this is.
    - ``account``: the tracker adds up what becomes of each byte.
    - ``forgets``: it forgets connections that are idle.
    - ``options`` are those of ``kwire.options.StreamedOptions``.

    Raises ``ValueError`` for a number that is no port, or a window without a byte. Iterating raises ``CaptureError``
    for what is no capture. A capture that is truncated or damaged raises it too, after the frames that stand before the
    damage. Where the source could not be read any further, what it raised is the ``__cause__``.
    """

    def __init__(
        self,
        source: Source | Rotated,
        *,
        name: str = "",
        keys: KeyLog | None = None,
        part: Part | None = None,
        account: bool = False,
        forgets: bool = False,
        **options: Unpack[StreamedOptions],
    ) -> None:
        traffic = chosen(options, TrafficOptions)
        if part is None:
            self.tracker: Tracker = Tracker(**traffic, keys=keys, account=account, forgets=forgets)
        else:
            self.tracker = part.tracker(**traffic, keys=keys)
        window, live = options.get("window"), options.get("live", False)
        self._part = part
        self._then = source.then if isinstance(source, Rotated) else None
        self.tracker.goes_on |= self._then is not None
        if window is not None and window < 1:
            raise ValueError(f"a window of {window} bytes")
        # How large frames are is not known yet, and somebody waits for rows. The memory that 8 MiB of small frames need
        # would be given back with the second window.
        self.window: int = window or LEAST_WINDOW
        """Bytes that are read at once from the next window on."""
        self._measures = window is None
        self._live = live
        self._progress = options.get("progress")
        self._name = name
        self._begin(source.first if isinstance(source, Rotated) else source)
        split = None if part is None else part.split
        self._until = None if split is None or split.end is None else split.end - split.begin
        self.over: bool = False
        """In a split: it took the splits after it as well, since they cannot be read without it."""

    def _begin(self, source: Source) -> None:
        self._source = source
        self._bytes_read = 0
        self._broken: BaseException | None = None
        # One of Arrow gives nothing of a read in which it fails, and each waits for all bytes that are asked for.
        in_pieces = isinstance(source, pa.CompressedInputStream) or (self._live and isinstance(source, Decompressed))
        self._piece = COMPRESSED_PIECE if in_pieces else WINDOW
        # Not what derives from these: its ``read`` may be another one.
        self._into = type(source) in _IN_PLACE and not self._live and self.window <= _MOST_IN_PLACE

    def __iter__(self) -> Iterator[Frames]:
        yield from self._of_file()
        wrong = self._wrong()
        while self._then is not None and (more := self._then(self.tracker, wrong)) is not None:
            source, self._name = more
            self.tracker.begin_file()
            self._begin(source)
            try:
                yield from self._of_file()
                wrong = self._wrong()
            except CaptureError as error:
                wrong = error
            except UNREADABLE as error:
                wrong = CaptureError(said_of(error), file=self._name)
        BUFFERS.forget()
        self.over = self.over or self.tracker.error is not None
        if self._then is not None:
            yield self.tracker.finish()
            return
        if self._part is not None and self._part.left is not None:
            yield self.tracker.finish(self._part.going_on(self.tracker))
        if wrong is not None:
            raise wrong from self._broken

    def _wrong(self) -> CaptureError | None:
        error = self.tracker.error
        return None if error is None else self._named(error)

    def _of_file(self) -> Iterator[Frames]:
        window = self.window if engine.loaded() else min(self.window, FIRST_WINDOW)
        tracker = self.tracker
        final = False
        while not final and tracker.error is None:
            wanted = window if self._until is None else min(window, self._until - self._bytes_read)
            fresh = self._read(wanted)
            final = not fresh if self._live else len(fresh) < wanted
            try:
                broken = None if self._broken is None else said_of(self._broken)
                frames = tracker.feed(fresh, final=final, broken=broken)
            except CaptureError as error:
                raise self._named(error) from self._broken
            if self._measures and len(fresh):
                per_frame = len(fresh) // max(1, len(frames))
                self.window = min(max(LEAST_WINDOW, FRAMES_AT_ONCE * per_frame), WINDOW)
            yield frames
            # The next window takes as much memory.
            del frames
            window = self.window
            if self._bytes_read == self._until and not final:
                final = tracker.stands_alone()
                self.over = not final
                self._until = None

    def _named(self, error: CaptureError) -> CaptureError:
        return CaptureError(error.message, file=self._name or None, offset=error.offset)

    @property
    def broken(self) -> tuple[int, str] | None:
        """After how many bytes the source could not be read any further, and why; None where it could."""
        return None if self._broken is None else (self._bytes_read, said_of(self._broken))

    def notes(self) -> list[str]:
        """Sentences about what was left out, most important first; empty if nothing was.

        Complete at the end only.
        """
        return self.tracker.notes()

    def _read(self, size: int) -> bytes | memoryview:
        """``size`` bytes, fewer only at the end of the source, where it cannot be read any further, or of a live one.

        A source may fail after it has given bytes: damaged compression, a disk, a connection to an object store. This
        is treated as a capture that is damaged there. What came before is not lost.
        """
        source: Any = self._source
        room = self.tracker.room(size) if self._into else memoryview(b"")
        parts: list[bytes] = []
        read = 0
        while read < size and self._broken is None:
            wanted = min(size - read, self._piece)
            try:
                if self._into:
                    got = source.readinto(room[read : read + wanted])
                else:
                    parts.append(source.read(wanted) or b"")
                    got = len(parts[-1])
            except UNREADABLE as error:
                if not self._bytes_read:
                    raise
                self._broken = error
                break
            if not got:
                break
            read += got
            self._bytes_read += got
            if self._progress is not None:
                self._progress(self._bytes_read)
            if self._live:
                break
        if self._into:
            return room[:read]
        return parts[0] if len(parts) == 1 else b"".join(parts)
