"""Work that is counted instead of timed: bytes out of the decompressors, and lines of kwire that are run.

A test that measures time fails on a busy machine and passes on one that is fast enough; a count is the same on both.
Both counters stop what they count at a bound: where a limit is missing, a test fails and does not hang.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard

from kwire.records import compression

LZ4_RATIO = 256


class TooMuchWorkError(BaseException):
    """More than a test allows. No exception of ``Exception``: nothing that is tested takes it for bad input."""


class Work:
    """What the libraries behind ``kwire.records.compression`` were called for, by the library's name.

    ``calls`` counts calls, ``made`` bytes: those that came out, or for a call that failed those that it was allowed.
    """

    def __init__(self, most: int) -> None:
        self.calls: Counter[str] = Counter()
        self.made: Counter[str] = Counter()
        self._most = most

    def call(self, library: str, allowed: int, run: Callable[[], Any]) -> Any:
        """``run()``, which may make up to ``allowed`` bytes; ``TooMuchWorkError`` where that is beyond the bound."""
        self.calls[library] += 1
        if self.made.total() + allowed > self._most:
            raise TooMuchWorkError(f"{library} may make {allowed} bytes after {self.made}: the bound is {self._most}")
        self.made[library] += allowed
        made = run()
        self.made[library] += (made if isinstance(made, int) else len(made)) - allowed
        return made


class _Zlib:
    """The module ``zlib``; decompression is counted."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(zlib, name)

    def decompressobj(self, *args: Any) -> Any:
        return _Stream(self._work, "zlib", zlib.decompressobj(*args))


class _Stream:
    """A stream of zlib or LZ4: ``decompress(data, most)``. Zlib takes no ``most``, or 0, for "any number"."""

    def __init__(self, work: Work, library: str, stream: Any) -> None:
        self._work, self._library, self._stream = work, library, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def decompress(self, data: Any, max_length: int = 0) -> Any:
        most = max_length if max_length > 0 else 1 << 60
        return self._work.call(self._library, most, lambda: self._stream.decompress(data, max_length))


class _Zstd:
    """A decompressor of zstandard, and the reader that it makes."""

    def __init__(self, work: Work, inner: Any) -> None:
        self._work, self._inner = work, inner

    def stream_reader(self, *args: Any, **options: Any) -> _Zstd:
        return _Zstd(self._work, self._inner.stream_reader(*args, **options))

    def __enter__(self) -> _Zstd:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._inner.__exit__(*error)

    def read(self, size: int = -1) -> Any:
        return self._work.call("zstd", size if size >= 0 else 1 << 60, lambda: self._inner.read(size))


def _declared(block: Any) -> int:
    """The size at the front of a snappy block, which the library allocates."""
    size = 0
    for at, byte in enumerate(bytes(block[:5])):
        size |= (byte & 127) << 7 * at
        if byte < 128:
            break
    return size


@contextmanager
def decompression(most: int) -> Iterator[Work]:
    """Counts what the libraries decompress until the block ends, and stops it at ``most`` bytes in all."""
    work = Work(most)
    # Taken before they are replaced.
    into, block, frame = cramjam.gzip.decompress_into, snappy.decompress, lz4.frame.decompress
    stream, context = lz4.frame.LZ4FrameDecompressor, zstandard.ZstdDecompressor
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "zlib", _Zlib(work))
        patch.setattr(
            cramjam.gzip,
            "decompress_into",
            lambda data, output: work.call("cramjam", len(output), lambda: into(data, output)),
        )
        patch.setattr(snappy, "decompress", lambda data: work.call("snappy", _declared(data), lambda: block(data)))
        patch.setattr(
            lz4.frame, "decompress", lambda data: work.call("lz4", LZ4_RATIO * len(data), lambda: frame(data))
        )
        patch.setattr(lz4.frame, "LZ4FrameDecompressor", lambda: _Stream(work, "lz4", stream()))
        patch.setattr(zstandard, "ZstdDecompressor", lambda **options: _Zstd(work, context(**options)))
        patch.setattr(compression, "_zstd", None)  # The context that is kept would not be counted.
        yield work


def lines(run: Callable[[], object], most: int) -> int:
    """How many lines of kwire ``run()`` executes; ``TooMuchWorkError`` when they become more than ``most``.

    Compiled kernels are not seen: they are with ``NUMBA_DISABLE_JIT=1`` only.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if not frame.f_globals.get("__name__", "").startswith("kwire."):
            return None
        count += event == "line"
        if count > most:
            raise TooMuchWorkError(f"more than {most} lines, the last in {frame.f_code.co_qualname}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count
