"""Files of object stores, fetched ahead of their reader: ``Prefetched``.

Each read of such a file is a request of its own, and takes some 50 ms before the first byte comes. So the next pieces
are fetched while one piece is processed.

Rules kept here:

- Memory is bounded: the piece that is read, and ``AT_ONCE`` more.
- If only the beginning of a file is read, to see what it is, ``FIRST`` bytes are requested and no more.
- A failure is raised by the read that it belongs to, as a ``StoreError``. A failure of a store says nothing of the
  bytes that it has.
- Arrow asks again by itself if a store refuses. It does not if a connection ends within an answer. So a piece is
  requested ``ATTEMPTS`` times.
"""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pyarrow as pa

__all__ = ["ATTEMPTS", "AT_ONCE", "FIRST", "PIECE", "Prefetched", "StoreError"]

FIRST: Final = 64 << 10
"""Bytes of the first request."""
PIECE: Final = 8 << 20
"""Bytes of the others."""
AT_ONCE: Final = 2
"""Requests that are out while a piece is read."""
ATTEMPTS: Final = 3
"""Times that a piece is asked for until its failure is that of the read."""


class StoreError(OSError):
    """A store has not given what it was asked for."""


class Prefetched(io.RawIOBase):
    """The bytes of ``file``, one with ``read_at`` and ``size`` as Arrow has them, from ``begin`` on. Closes it."""

    def __init__(self, file: Any, begin: int = 0) -> None:
        super().__init__()
        self._pool: ThreadPoolExecutor | None = None
        self._file = file
        self._size = int(file.size())
        self._here = memoryview(b"")
        """What was fetched and not read yet."""
        self._next = begin
        """The first byte that was not asked for."""
        self._out: deque[Future[bytes]] = deque()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Reads at most as many bytes as ``buffer`` holds. No bytes only at the end. Raises ``OSError``."""
        into = memoryview(buffer).cast("B")
        if not self._here and len(into):
            self._here = memoryview(self._fetched())
        count = min(len(into), len(self._here))
        into[:count] = self._here[:count]
        self._here = self._here[count:]
        return count

    def _fetched(self) -> bytes:
        """The next piece, empty at the end."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(AT_ONCE)
            begin, self._next = self._next, min(self._next + FIRST, self._size)
            return self._read_at(begin, self._next - begin)
        # The piece that is wanted, and those after it.
        while len(self._out) <= AT_ONCE and self._next < self._size:
            count = min(PIECE, self._size - self._next)
            self._out.append(self._pool.submit(self._read_at, self._next, count))
            self._next += count
        return self._out.popleft().result() if self._out else b""

    def _read_at(self, begin: int, count: int) -> bytes:
        for left in reversed(range(ATTEMPTS)):
            try:
                found = bytes(self._file.read_at(count, begin)) if count > 0 else b""
                break
            except (OSError, pa.ArrowException) as error:
                if not left or isinstance(error, PermissionError | FileNotFoundError):
                    raise StoreError(str(error)) from error
        if len(found) < count:
            raise StoreError(f"the file has become shorter: {len(found)} of {count} bytes from byte {begin} on")
        return found

    def close(self) -> None:
        """Ends what is being fetched, and closes the file."""
        if not self.closed:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            self._out.clear()
            self._file.close()
        super().close()
