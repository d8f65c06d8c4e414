"""A folder that keeps growing: which of its files a stream takes next, and what it remembers of those that it took.

An *offset* is what Spark keeps of a stream in its checkpoint, as JSON. This one says which files the batch that ends
with it has, by name and size, and what is remembered of files before it. So the batch can be read again, the same,
after the driver was killed, by another process, on another machine.

Rules kept here:

- A file is taken once, when it is *closed*: it has not been written to for ``Terms.idle`` seconds, or one of the same
  series was written later. Which files are a series is only known where it is said (``Terms.series``): of two in a
  folder, two sensors may be the writers, whatever their names have in common.
- Of a file that was taken, as many bytes are read as it had then. One that is written to afterwards is taken once more
  to say so, and for nothing else.
- Files are taken in the order in which they were last written, then by name, up to ``Terms.files`` and ``Terms.size`` a
  batch, but one at least.
- What is remembered is bounded. Of the ``Terms.remember`` files that were written last it is a hash of the name (64
  bits) and the time, 16 bytes before compression. Of all others it is the *floor*: the time of the latest of them. A
  file that turns up late is taken if it was written after the floor; one that was written before it is passed over,
  since it cannot be told from those that were taken. While a file waits, nothing that was written at its time or
  later is forgotten. So none is lost because others overtook it. That may be more than ``Terms.remember`` names:
  those of the files that were written meanwhile.
- Nothing here opens a file, and nothing knows of Spark.
"""

from __future__ import annotations

import base64
import hashlib
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from kwire import stored
from kwire.capture.compressed import Around, DamagedError, decompressed
from kwire.errors import CaptureError, KwireError
from kwire.spark.files import File, pairs_of
from kwire.spark.sensors import sensor_of

__all__ = ["Memory", "Taken", "Terms", "Waiting", "files_of", "first_offset", "names_of"]

FORM: Final = 1
"""The form of an offset."""
NEVER: Final = -(1 << 63)
"""The floor where nothing was forgotten yet."""
MOST_MEMORY: Final = 1 << 28
"""Bytes that the memory of an offset may have, whoever wrote it."""

PIECE: Final = 1 << 20
"""Bytes that are read at once where all of a file is asked for."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The options of a stream."""

    files: int = 1000
    """Files of one batch, at most."""
    size: int | None = None
    """Bytes of the files of one batch, as they are stored; a batch has one file at least, whatever its size."""
    idle: float = 60.0
    """Seconds after which a file that nobody has written to is closed."""
    series: int | str | None = None
    """Which files one writer has written, one after the other: a level of folders or a pattern, as ``sensor``."""
    remember: int = 10_000
    """Files of which the names are remembered."""
    state: str | None = field(default=None, repr=False)
    """The folder in which connections are kept from batch to batch (``kwire.spark.checkpoint``)."""
    timeout: float = 900.0
    """Seconds without a packet after which a connection is not kept any more."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Terms:
        """From the values of options (``kwire.options.values``)."""
        return cls(
            files=values["maxFilesPerTrigger"],
            size=values["maxBytesPerTrigger"],
            idle=values["idle"],
            series=values["series"],
            remember=values["remember"],
            state=values["stateLocation"],
            timeout=values["stateTimeout"],
        )


# --- what was taken ---------------------------------------------------------------------------------------------------


def first_offset() -> dict[str, Any]:
    """The offset of a stream that has taken nothing."""
    return Memory().offset([], [])


@dataclass(slots=True)
class Memory:
    """What is remembered of the files that were taken."""

    batch: int = 0
    """Batches so far."""
    floor: int = NEVER
    """When the latest of the files that were forgotten was written, in microseconds since 1970."""
    known: dict[int, int] = field(default_factory=dict)
    """When each of the files that are remembered was written last, by the hash of its name."""

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Memory:
        """The memory of an offset. Raises ``KwireError`` for one that kwire has not written."""
        try:
            if offset["kwire"] != FORM:
                raise ValueError
            packed, known = zlib.decompressobj(), stored.as_bytes(offset["known"])
            # Hashes cannot be compressed, so these bytes become at most little more than twice as many.
            data = packed.decompress(known, min(MOST_MEMORY, 4 * len(known)) or 1)
            count = len(data) // 16
            if len(data) % 16 or not packed.eof:
                raise ValueError
            names = np.frombuffer(data, "<u8", count).tolist()
            times = np.cumsum(np.frombuffer(data, "<i8", count, 8 * count)).tolist()
            batch, floor = stored.number(offset["batch"], 0), stored.number(offset["floor"], NEVER, (1 << 63) - 1)
            return cls(batch, floor, dict(zip(names, times, strict=True)))
        except (*stored.UNFIT, zlib.error):
            raise KwireError(
                "the checkpoint is of another source, or of another version of kwire: begin the stream with a new one"
            ) from None

    def offset(self, files: Iterable[File], changed: Iterable[File]) -> dict[str, Any]:
        """The offset at the end of a batch of ``files``; those of ``changed`` were taken before, and written to."""
        items = sorted(self.known.items(), key=lambda one: (one[1], one[0]))
        names = np.array([name for name, _ in items], "<u8")
        times = np.diff(np.array([when for _, when in items], "<i8"), prepend=np.int64(0)).astype("<i8")
        return {
            "kwire": FORM,
            "batch": self.batch,
            "floor": self.floor,
            "files": [[one.name, one.size] for one in files],
            "changed": [one.name for one in changed],
            "known": base64.b64encode(zlib.compress(names.tobytes() + times.tobytes())).decode(),
        }

    def next(
        self, listed: Sequence[File], closed: Iterable[File], terms: Terms, *, everything: bool = False
    ) -> dict[str, Any] | None:
        """The offset after one more batch; None where there is nothing to take.

        ``listed``: all files that there are; ``closed``: those of them that may be taken. ``everything``: whatever the
        terms say of files and bytes of a batch.
        """
        candidates = []
        for one in closed:
            when, before = written(one), self.known.get(key_of(one))
            if before is None and when > self.floor:
                candidates.append((when, one.name, one, False))
            elif before is not None and when > before:
                candidates.append((when, one.name, one, True))
        candidates.sort(key=lambda one: one[:2])
        files: list[File] = []
        changed: list[File] = []
        size = 0
        for when, _, one, again in candidates:
            if not everything and (files or changed):
                full = terms.size is not None and not again and size + (one.size or 0) > terms.size
                if full or len(files) + len(changed) >= terms.files:
                    break
            (changed if again else files).append(one)
            size += 0 if again else one.size or 0
            self.known[key_of(one)] = when
        if not candidates:
            return None
        self.batch += 1
        self._forget(listed, terms.remember)
        return self.offset(files, changed)

    def _forget(self, listed: Iterable[File], most: int) -> None:
        if len(self.known) <= most:
            return
        waiting = (written(one) for one in listed if key_of(one) not in self.known)
        oldest = min((when for when in waiting if when > self.floor), default=1 << 63)
        for name, when in sorted(self.known.items(), key=lambda one: one[1])[: len(self.known) - most]:
            if when >= oldest:
                break
            del self.known[name]
            self.floor = max(self.floor, when)


def key_of(file: File) -> int:
    """The hash of a file's name."""
    return int.from_bytes(hashlib.blake2b(file.name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def written(file: File) -> int:
    """When a file was last written, in microseconds since 1970. Raises ``CaptureError`` where nobody knows."""
    if file.changed is None:
        raise CaptureError(
            "its file system does not say when files were written, so no stream is read from it", file=file.name
        )
    return (file.changed - _EPOCH) // _MICROSECOND


# --- what is closed ---------------------------------------------------------------------------------------------------


class Waiting:
    """Which files nobody writes to any more. It remembers how large files were when it last looked."""

    def __init__(self, terms: Terms) -> None:
        self._idle = terms.idle
        self._series = terms.series
        self._seen: dict[str, tuple[int, int | None, float]] = {}

    def closed(self, files: Sequence[File], now: float, clock: float | None = None) -> list[File]:
        """Those of ``files`` that are closed at ``now`` (seconds since 1970), by ``clock`` (seconds of any beginning).

        A file is idle by its time, or because nothing was new about it for so long as this object looks at it: the
        clock of a file system may be another. Raises ``KwireError`` for a file of which ``Terms.series`` says nothing.
        """
        clock = time.monotonic() if clock is None else clock
        latest: dict[str, int] = {}
        of = {}
        if self._series is not None:
            for one in files:
                of[one.name] = series = sensor_of(one.name, self._series, "series")
                latest[series] = max(latest.get(series, NEVER), written(one))
        found = []
        seen: dict[str, tuple[int, int | None, float]] = {}
        for one in files:
            when = written(one)
            before = self._seen.get(one.name)
            since = before[2] if before is not None and before[:2] == (when, one.size) else clock
            seen[one.name] = (when, one.size, since)
            later = one.name in of and when < latest[of[one.name]]
            if later or now - when / 1e6 >= self._idle or clock - since >= self._idle:
                found.append(one)
        self._seen = seen
        return found


# --- what is read -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Taken(File):
    """A file as it was when it was taken: ``size`` bytes of it are read. ``trouble``: why it is not read at all."""

    trouble: str | None = None

    def is_foreign(self) -> bool:
        """As of any file of a folder; of one that is gone nobody knows."""
        if self.filesystem is None:
            return False
        return File(self.filesystem, self.path, self.name, self.size, self.asked, self.changed).is_foreign()

    def open(self) -> Any:
        """A stream of those bytes, decompressed. Raises ``OSError``, ``CaptureError``; reading also where the file has
        become shorter."""
        if self.trouble is not None:
            raise CaptureError(self.trouble)
        stream = self.raw()
        return decompressed(stream if self.size is None else _FirstBytes(stream, self.size))


def files_of(start: Mapping[str, Any], end: Mapping[str, Any], files: Iterable[File]) -> list[Taken]:
    """The files of the batch between two offsets; ``files`` are those that there are.

    Raises ``KwireError`` where more than one batch lies between them, or none that kwire has written.
    """
    before, after = Memory.of(start), Memory.of(end)
    if before.batch == after.batch:
        return []
    if after.batch != before.batch + 1:
        raise KwireError(f"the checkpoint has lost a batch: {after.batch} follows {before.batch}")
    there = {one.name: one for one in files}
    taken, changed = names_of(end)
    said = "it was written to after it was read: what came later is in no row, and the option 'idle' too short"
    found = [_taken(there.get(name), name, size, None) for name, size in taken]
    return found + [_taken(there.get(name), name, None, said) for name in changed]


def names_of(end: Mapping[str, Any]) -> tuple[list[tuple[str, int | None]], list[str]]:
    """What an offset says of its batch: the files with their sizes, and those that were written to after they had been
    read. Raises ``KwireError`` for one that kwire has not written."""
    try:
        files = [(stored.text(name), stored.optional(size, 0)) for name, size in end["files"]]
        return files, [stored.text(name) for name in end["changed"]]
    except stored.UNFIT:
        raise KwireError("the checkpoint has an offset that kwire has not written") from None


def _taken(file: File | None, name: str, size: int | None, trouble: str | None) -> Taken:
    if file is None:
        gone = trouble or "it was there when the stream took it, and is gone"
        return Taken(None, name, name, size, True, None, gone, pairs=pairs_of(name))
    return Taken(file.filesystem, file.path, name, size, file.asked, file.changed, trouble, pairs=file.pairs)


class _FirstBytes(Around):
    """The first ``size`` bytes of a stream; fewer are a ``DamagedError``."""

    def __init__(self, source: Any, size: int) -> None:
        super().__init__(source)
        self._left = size
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(PIECE), b""))
        wanted = min(size, self._left)
        if not wanted:
            return b""
        data = bytes(self._source.read(wanted))
        if not data:
            raise DamagedError(f"it has {self._size - self._left} bytes, and had {self._size} when the stream took it")
        self._left -= len(data)
        return data
