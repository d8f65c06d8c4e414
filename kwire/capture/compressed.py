"""Files that are decompressed while they are read, by what they begin with: names may be wrong, and pipes have none.

Imports pyarrow only for a file that is compressed, and not for gzip.
"""

from __future__ import annotations

import io
import zlib
from typing import Any, Final

from kwire.capture.magics import compression

__all__ = ["UNREAD", "Around", "DamagedError", "Decompressed", "decompressed"]

_HEAD: Final = 4
_LEAST_PIECE: Final = 64
_MOST_PIECE: Final = 4 << 10
"""Bytes that are decompressed at once."""
_READ: Final = 256 << 10
_COMPRESSED: Final = 16 << 10
"""Bytes of gzip that are taken at once: what is left of them is copied for each member, which may have 20 bytes."""
_ALL: Final = 1 << 62
_OF_GZIP: Final = 31
"""``wbits`` of zlib: gzip and nothing else, with the largest window."""
UNREAD: Final = ("xz", "zip")
"""Arrow does not know them: whoever reads the file says what it is."""


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
    if codec is None or codec in UNREAD:
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
        """Fill ``buffer``. Returns the number of bytes, which is 0 at the end only."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class Decompressed(Around):
    """What ``source`` holds, decompressed.

    Reading raises ``DamagedError``, and what ``source`` raises as it is. It does so after it has given the bytes before
    the damage. All of them for gzip. For other formats the last ones may be missing: up to ``_MOST_PIECE`` bytes.
    """

    def __init__(self, source: Any, codec: str) -> None:
        self._is_exact = codec == "gzip"
        if self._is_exact:
            super().__init__(_Gzip(source))
        else:
            import pyarrow as pa

            super().__init__(pa.CompressedInputStream(source, codec))
        self._error: Exception | None = None
        self._given = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (-1 or None: all); none at the end only."""
        left = _ALL if size is None or size < 0 else size
        parts: list[bytes] = []
        buffer = bytearray(min(left, _READ))
        # An error is raised by the next call.
        while left and not (parts and self._error) and (got := self.readinto(memoryview(buffer)[:left])):
            parts.append(bytes(memoryview(buffer)[:got]))
            left -= got
        return b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` as far as the source goes. Returns the number of bytes, which is 0 at the end only."""
        view = memoryview(buffer)
        filled = 0
        while filled < len(view) and self._error is None:
            # Arrow loses the bytes of the call that fails: of a small file that must be few.
            piece = _READ if self._is_exact else min(_MOST_PIECE, _LEAST_PIECE + self._given // 16)
            try:
                got = int(self._source.readinto(view[filled : filled + piece]))
            except Exception as problem:
                self._error = problem
                break
            if not got:
                break
            filled += got
            self._given += got
        error = self._error
        if filled or error is None:
            return filled
        # Arrow's own errors are plain ones without a number. Those of a source come through it as they are.
        if type(error) is OSError and error.errno is None:
            raise DamagedError(*error.args) from None
        raise error


class _Gzip(Around):
    """The content of gzip: its members one after the other, up to the byte before the damage."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._member: Any = None
        """The decompressor of the current member."""
        self._members = 0
        self._input = b""
        self._damage: str | None = None
        """What is wrong after the bytes that were given."""

    def readinto(self, buffer: Any) -> int:
        """Decompress into ``buffer``. Returns 0 at the end only, and raises ``DamagedError``."""
        view = memoryview(buffer)
        while self._damage is None:
            if not self._input:
                self._input = bytes(self._source.read(_COMPRESSED) or b"")
            ended = not self._input
            if self._member is None:
                if self._members:
                    # Padding, which gzip(1) ignores too.
                    self._input = self._input.lstrip(b"\0")
                if ended:
                    return 0
                if self._input:
                    self._members += 1
                    self._member = zlib.decompressobj(wbits=_OF_GZIP)
                continue
            if ended:
                self._damage = "the compressed data is truncated: copy the file again, or wait until it is written"
                break
            made = self._decompressed(len(view))
            if self._member.eof:
                self._input, self._member = self._member.unused_data, None
            if made:
                view[: len(made)] = made
                return len(made)
        raise DamagedError(self._damage)

    def _decompressed(self, size: int) -> bytes:
        """Up to ``size`` bytes of the current member, out of the input that there is."""
        before = self._member.copy()
        try:
            made: bytes = self._member.decompress(self._input, size)
        except zlib.error as error:
            damage = f"the compressed data is damaged: {error}"
        else:
            self._input = self._member.unconsumed_tail
            return made
        # A call that fails gives nothing. So the input is taken byte by byte, as far as that goes.
        self._member = before
        parts: list[bytes] = []
        at, tail = 0, b""
        while size and (tail or at < len(self._input)):
            one = tail or self._input[at : at + 1]
            at += not tail
            try:
                parts.append(before.decompress(one, size))
            except zlib.error:
                self._damage = damage
                break
            size -= len(parts[-1])
            tail = before.unconsumed_tail
        self._input = tail + self._input[at:]
        return b"".join(parts)


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
