"""A stream of bytes cut into frames: the object form, for programs that read from a socket.

A frame is an int32 size (big-endian, Kafka protocol guide, "Protocol primitive types") and that many bytes.
``FrameSplitter`` takes bytes in any portions. It gives each frame once it is whole, without its size. That is what
``kwire.decode_request`` and ``kwire.decode_response`` take. For captures, ``kwire.protocol.framing`` does the same for
all connections of a window at once.

Rules kept here:

- A size below 0 or above the limit is an error before anything is allocated for it. After an error nothing can be
  read any more: where the next frame begins is not known.
- "Need more bytes" is not an error; ``close`` says whether the stream ended between two frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwire.errors import DecodeError, LimitError

__all__ = ["DEFAULT_LIMIT", "FrameSplitter"]

DEFAULT_LIMIT: Final = 128 << 20
"""Bytes. By default a broker takes requests of up to 100 MiB (socket.request.max.bytes)."""

_SIZE: Final = 4


class FrameSplitter:
    """Cuts one direction of one connection into frames.

    ``limit`` is the largest frame in bytes, its size not counted. Not for use by several threads.
    """

    __slots__ = ("_broken", "_buffer", "_limit", "_offset")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._offset = 0
        self._broken: DecodeError | None = None

    @property
    def offset(self) -> int:
        """Where in the stream the next frame (its size) begins, in bytes from its start."""
        return self._offset

    @property
    def pending(self) -> int:
        """Bytes that are held because their frame is not whole."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take the next bytes of the stream and yield the frames that are whole now, without their size.

        The bytes are taken when this is called, whether or not the frames are collected. Raises ``LimitError`` for a
        size above the limit and ``DecodeError`` for a negative one. They have the offset in the stream, and come after
        the frames before it. Every later call raises it again.
        """
        if self._broken is None:
            self._buffer += data
        return self._frames()

    def close(self) -> None:
        """Say that the stream has ended. Raises ``DecodeError`` if it ended within a frame."""
        if self._broken is not None:
            raise self._broken
        if self._buffer:
            held = len(self._buffer)
            if held < _SIZE:
                text = f"the stream ends within a frame: {held} of the 4 bytes of its size"
            else:
                size = int.from_bytes(self._buffer[:_SIZE], "big", signed=True)
                text = f"the stream ends within a frame: {held - _SIZE} of {size} bytes"
            raise DecodeError(text, layout="frame", offset=self._offset)

    def _frames(self) -> Iterator[bytes]:
        while True:
            if self._broken is not None:
                raise self._broken
            if len(self._buffer) < _SIZE:
                return
            size = int.from_bytes(self._buffer[:_SIZE], "big", signed=True)
            if size < 0:
                self._break(DecodeError(f"a size of {size}", layout="frame", offset=self._offset))
            elif size > self._limit:
                text = f"a size of {size}, the limit is {self._limit}"
                self._break(LimitError(text, layout="frame", offset=self._offset))
            else:
                end = _SIZE + size
                if len(self._buffer) < end:
                    return
                frame = bytes(memoryview(self._buffer)[_SIZE:end])
                del self._buffer[:end]
                self._offset += end
                yield frame

    def _break(self, error: DecodeError) -> None:
        self._broken = error
        self._buffer.clear()
