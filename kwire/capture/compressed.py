"""Files that are decompressed while they are read, by what they begin with: names may be wrong, and pipes have none.

Imports pyarrow only for a file that is compressed.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

from kwire.capture.magics import compression

__all__ = ["Around", "DamagedError", "Decompressed", "decompressed"]

_HEAD: Final = 4
_NOT_HERE: Final = "xz"
"""Arrow does not know it: whoever reads the file says what it is."""


def decompressed(source: Any) -> Any:
    """A binary stream of what ``source``, one that was not read yet, holds: decompressed if it is compressed.

    ``source`` has ``read``, and is closed with the returned object, which may be ``source`` itself. Known formats are
    gzip, zstd, bzip2 and lz4 (as frames). Raises what reading raises.
    """
    if hasattr(source, "peek") and len(head := source.peek(_HEAD)[:_HEAD]) == _HEAD:
        stream = source
    else:
        head = b""
        while len(head) < _HEAD and (more := source.read(_HEAD - len(head))):
            head += more
        stream = _WithHead(head, source)
    codec = compression(head)
    if codec is None or codec == _NOT_HERE:
        return stream
    return Decompressed(stream, codec)


class DamagedError(OSError):
    """The bytes of a file are to blame: what is compressed is damaged, or the file has become shorter.

    Any other ``OSError`` of a source speaks of the machine, or of the store that has the file.
    """


class Around(io.RawIOBase):
    """A stream made of another one, which is closed with it.

    Whoever derives from it says what ``read`` gives.
    """

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class Decompressed(Around):
    """What ``source`` holds, decompressed.

    Reading raises ``DamagedError``, and what ``source`` raises as it is.
    """

    def __init__(self, source: Any, codec: str) -> None:
        import pyarrow as pa

        super().__init__(pa.CompressedInputStream(source, codec))

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (-1 or None: all); none at the end only."""
        return bytes(self._of_source(self._source.read, None if size is None or size < 0 else size))

    def readinto(self, buffer: Any) -> int:
        return int(self._of_source(self._source.readinto, buffer))

    @staticmethod
    def _of_source(read: Callable[[Any], Any], how_much: Any) -> Any:
        try:
            return read(how_much)
        except OSError as error:
            # Arrow's own errors are plain ones without a number. Those of a source come through it as they are.
            if type(error) is not OSError or error.errno is not None:
                raise
            raise DamagedError(*error.args) from None


class _WithHead(Around):
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, source: Any) -> None:
        super().__init__(source)
        self._head = head

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (-1 or None: all); none at the end only."""
        everything = size is None or size < 0
        if not self._head:
            return bytes(self._source.read(-1 if everything else size) or b"")
        if everything:
            first, self._head = self._head, b""
            return first + bytes(self._source.read(-1) or b"")
        first, self._head = self._head[:size], self._head[size:]
        return first
