"""The codecs of record sets: what a compressed batch or wrapper message holds, and how it is written.

Rules kept here:

- ``decompress`` never makes more than ``limit`` bytes, and stops while decompressing, not afterwards. A declared size
  is compared with the limit before anything is allocated for it, and is otherwise not trusted.
- Data that is cut off is an error; no part of it is returned. There is one exception, a xerial stream that ends between
  two blocks. It looks like a whole one, since that framing has no end mark.
- What a library says about bad input becomes a ``DecodeError``; nothing else leaves this module.
- The libraries are imported on first use: a program that never meets a codec does not load it.

What the codecs look like inside of Kafka:

- gzip: RFC 1952, one member (more are accepted, as Java's reader does).
- snappy: Java clients write "xerial" framing. It begins with eight bytes ``82 53 4e 41 50 50 59 00`` and two int32
  version numbers. Some writers put these little-endian, so they are not looked at. Then come blocks, each an int32
  length and one snappy block. librdkafka and others write a single bare block. Both are read everywhere.
- lz4: the LZ4 frame format. Kafka 0.8 and 0.9 computed the header checksum over the frame's magic number as well
  (KAFKA-3160). Magic 0 keeps that mistake for ever, magic 1 and 2 follow the specification. In magic 0 the header
  checksum is not looked at, as in Kafka's reader. The wrong one is written, since that is what old readers want.
- zstd: RFC 8878, magic 2 only (KIP-110), usually streamed and so without a content size.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from kwire.errors import DecodeError, EncodeError, LimitError

__all__ = ["CODECS", "Codec", "compress", "decompress", "most_of"]

Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
"""Type: name of a compression codec of a record batch.

Source: Kafka's ``CompressionType``, whose ids are the places in ``CODECS``.
"""

CODECS: Final[tuple[Codec, ...]] = get_args(Codec)
"""Codec names, by their number in the attributes of a batch or message (bits 0 to 2).

The numbers after these, up to 7, are not defined.
"""
_ZSTD: Final = CODECS.index("zstd")

Data = bytes | bytearray | memoryview

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_LARGE: Final = 8 << 20
_GZIP_MEMBERS: Final = 100
_LZ4_RATIO: Final = 256
"""No LZ4 block expands by more than this: each byte of a length adds at most 255 bytes of output."""
_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPED: Final = 0x184D2A50
"""The first of 16 magic numbers of frames that readers skip."""
_ZSTD_START: Final = struct.Struct("<IB").unpack_from
# How long a frame's header is, by its flags. Its parts: magic and flags, the window unless it is a single segment, the
# dictionary's id, the content size.
_ZSTD_HEADER: Final = tuple(
    5 + (1 - (flags >> 5 & 1)) + (0, 1, 2, 4)[flags & 3] + (flags >> 5 & 1, 2, 4, 8)[flags >> 6] for flags in range(256)
)
_ZSTD_BLOCK: Final = 1 << 17
"""No block becomes more than this (RFC 8878, 3.1.1.2.4)."""
_ZSTD_WINDOW: Final = 1 << 27
"""The largest window that zstd's own strongest level asks for; more is refused, since it is allocated up front."""


def decompress(codec: int, data: Data, limit: int, *, magic: int = 2) -> bytes:
    """What ``data`` decompresses to with codec number ``codec`` (its place in ``CODECS``, from 1).

    ``limit`` is the most bytes that may come out. ``magic`` is that of the batch or message; magic 0 allows the old LZ4
    header checksum. Raises ``LimitError`` when it would be more. Raises ``DecodeError`` when the data is not what the
    codec writes or the codec is not defined.
    """
    try:
        read = _KINDS[codec].read
    except KeyError:
        raise DecodeError(f"compression codec {codec} is not defined") from None
    if codec == _ZSTD and magic < 2:
        raise DecodeError(f"compression zstd is not defined for magic {magic}")
    try:
        return read(data, limit, magic)
    except (DecodeError, MemoryError):
        raise
    except Exception as wrong:
        # Each library has its own exceptions, some of them not public.
        raise DecodeError(f"{CODECS[codec]} data cannot be decompressed: {wrong}") from wrong


def most_of(codec: int, data: Data, limit: int) -> int:
    """The most bytes, up to ``limit``, that ``data`` becomes before a library fails: what a failure may have cost."""
    if codec == _ZSTD:
        return min(_zstd_blocks(data, limit)[1], limit)
    return min(_KINDS[codec].ratio * len(data), limit) if codec in _KINDS else 0


def compress(codec: int, data: Data, *, magic: int = 2, level: int | None = None) -> bytes:
    """``data`` compressed with codec number ``codec``, framed as Kafka's Java client frames it.

    ``level`` is one of the codec's own (``_KINDS_BY_NAME``). ``None`` is the library's default. ``magic`` 0 writes LZ4
    with the old header checksum. Raises ``EncodeError`` for a codec that is not defined (zstd: not before magic 2) or a
    level that it does not have.
    """
    try:
        kind = _KINDS[codec]
    except KeyError:
        raise EncodeError(f"compression codec {codec} is not defined") from None
    if codec == _ZSTD and magic < 2:
        raise EncodeError(f"compression zstd is not defined for magic {magic}")
    if level is not None and level not in kind.levels:
        allowed = f"{kind.levels[0]} to {kind.levels[-1]}" if kind.levels else "none"
        raise EncodeError(f"{CODECS[codec]} has no level {level} (levels: {allowed})")
    return kind.write(data, level, magic)


def _too_much(codec: str, limit: int) -> LimitError:
    return LimitError(f"{codec} data decompresses to more than the limit of {limit} bytes")


# --- gzip -------------------------------------------------------------------------------------------------------------


def _read_gzip(data: Data, limit: int, magic: int) -> bytes:
    made = _gzip_members(data, limit, _GZIP_LARGE)
    if made is None:
        made = _read_large_gzip(data, limit)
    if made is None:
        made = _gzip_members(data, limit, limit)
    assert made is not None
    return made


def _gzip_members(data: Data, limit: int, most: int) -> bytes | None:
    """What zlib makes of it; None when a member becomes more than ``most``."""
    parts: list[bytes] = []
    rest: Data = data
    left = limit
    while len(parts) < _GZIP_MEMBERS:
        stream = zlib.decompressobj(31)
        part = stream.decompress(rest, min(left, most) + 1)
        if len(part) > left:
            raise _too_much("gzip", limit)
        if len(part) > most:
            return None
        if not stream.eof:
            raise DecodeError("gzip data is cut off")
        left -= len(part)
        parts.append(part)
        rest = stream.unused_data
        # Java's reader goes on when another member follows, and ignores anything else after the first one.
        if not rest.startswith(_GZIP_MAGIC):
            return part if len(parts) == 1 else b"".join(parts)
    # zlib copies what is left for each of them, and nobody writes more than one.
    raise DecodeError(f"gzip data of more than {_GZIP_MEMBERS} members")


def _read_large_gzip(data: Data, limit: int) -> bytes | None:
    # zlib takes 80 ms for 32 MiB of zeros, the library behind cramjam 6 ms. On text zlib is the faster one. But a bomb
    # must not cost much more than a batch of usual size. None for what only zlib understands: bytes after the end.
    from cramjam import gzip

    made = bytearray(limit)
    try:
        size = gzip.decompress_into(data, made)
    except Exception as wrong:
        if "whole buffer" in str(wrong):
            raise _too_much("gzip", limit) from wrong
        return None
    return bytes(memoryview(made)[:size])


def _write_gzip(data: Data, level: int | None, magic: int) -> bytes:
    stream = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return stream.compress(data) + stream.flush()


# --- snappy -----------------------------------------------------------------------------------------------------------


def _read_snappy(data: Data, limit: int, magic: int) -> bytes:
    import snappy

    if bytes(data[:8]) != _XERIAL:
        return _snappy_block(snappy, data, limit, limit)
    view = memoryview(data)
    parts: list[bytes] = []
    left = limit
    pos = 16
    if len(view) < pos:
        raise DecodeError("snappy data is cut off in the xerial header")
    while pos < len(view):
        if bytes(view[pos : pos + 8]) == _XERIAL:
            # Streams that were appended to each other: xerial's own reader skips the second header as well.
            pos += 16
            continue
        if len(view) - pos < 4:
            raise DecodeError("snappy data is cut off in a block length")
        (size,) = struct.unpack_from(">i", view, pos)
        pos += 4
        if not 0 <= size <= len(view) - pos:
            raise DecodeError(f"snappy block of {size} bytes, {len(view) - pos} bytes left")
        part = _snappy_block(snappy, view[pos : pos + size], left, limit)
        left -= len(part)
        pos += size
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_block(snappy: Any, block: Data, left: int, limit: int) -> bytes:
    # A block starts with its uncompressed size as a varint, and the library allocates that much.
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    else:
        raise DecodeError("snappy block without a size")
    if size > left:
        raise _too_much("snappy", limit)
    made: bytes = snappy.decompress(block)
    return made


def _write_snappy(data: Data, level: int | None, magic: int) -> bytes:
    import snappy

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    # Blocks of 32 KiB, as xerial's writer makes them. An empty stream has no block.
    for pos in range(0, len(view), _XERIAL_BLOCK):
        block = snappy.compress(view[pos : pos + _XERIAL_BLOCK])
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


# --- lz4 --------------------------------------------------------------------------------------------------------------


def _read_lz4(data: Data, limit: int, magic: int) -> bytes:
    from lz4 import frame

    if len(data) < 7:
        raise DecodeError("lz4 data is cut off in the frame header")
    flags = data[4]
    if magic == 0:
        data = _repaired_lz4(data)
    sized = flags & 0x08
    if not sized and len(data) * _LZ4_RATIO <= limit:
        return cast("bytes", frame.decompress(data))
    if sized and int.from_bytes(data[6:14], "little") > limit:
        raise _too_much("lz4", limit)
    stream = frame.LZ4FrameDecompressor()
    part: bytes = stream.decompress(data, limit + 1)
    if len(part) > limit:
        raise _too_much("lz4", limit)
    if not stream.eof:
        raise DecodeError("lz4 data is cut off")
    return part


def _write_lz4(data: Data, level: int | None, magic: int) -> bytes:
    from lz4 import frame

    # Independent blocks of 64 KiB and no content size: what Kafka's own writer makes and its old readers require.
    made: bytes = frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    if magic:
        return made
    at = _lz4_checksum_at(made)
    return made[:at] + bytes([xxh32(made[:at]) >> 8 & 0xFF]) + made[at + 1 :]


def _lz4_checksum_at(data: Data) -> int:
    """Position of the header checksum in an LZ4 frame: after magic, FLG, BD and the optional size and dictionary id."""
    return 6 + (8 if data[4] & 0x08 else 0) + (4 if data[4] & 0x01 else 0)


def _repaired_lz4(data: Data) -> Data:
    """``data`` with the header checksum that libraries want, whatever is there: Kafka does not look at it either."""
    at = _lz4_checksum_at(data)
    if len(data) <= at or bytes(data[:4]) != _LZ4_MAGIC:
        return data
    return b"".join((data[:at], bytes([xxh32(bytes(data[4:at])) >> 8 & 0xFF]), data[at + 1 :]))


def xxh32(data: bytes) -> int:
    """xxHash-32 of ``data`` with seed 0, for the LZ4 header checksum (a few bytes, once a frame)."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = 0xFFFFFFFF

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> 32 - by) & mask

    pos = 0
    if len(data) >= 16:
        lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while pos + 16 <= len(data):
            for lane, word in enumerate(struct.unpack_from("<4I", data, pos)):
                lanes[lane] = rotated((lanes[lane] + word * p2) & mask, 13) * p1 & mask
            pos += 16
        value = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    else:
        value = p5
    value = (value + len(data)) & mask
    while pos + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, pos)
        value = rotated((value + word * p3) & mask, 17) * p4 & mask
        pos += 4
    for byte in data[pos:]:
        value = rotated((value + byte * p5) & mask, 11) * p1 & mask
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


# --- zstd -------------------------------------------------------------------------------------------------------------


class _Zstd(threading.local):
    """One decompression context per thread: making one costs more than a small batch, and they cannot be shared."""

    def __init__(self) -> None:
        import zstandard

        self.decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)


_zstd: _Zstd | None = None


def _read_zstd(data: Data, limit: int, magic: int) -> bytes:
    global _zstd
    if not len(data):
        raise DecodeError("zstd data is empty")
    if _zstd_declared(data) > limit:
        raise _too_much("zstd", limit)
    if _zstd is None:
        _zstd = _Zstd()
    # More frames than one may follow each other (RFC 8878, 3.1). The first read is for the usual case: text that
    # shrinks to a quarter. A hostile frame costs at most one read more than the limit.
    with _zstd.decompressor.stream_reader(data, read_across_frames=True) as reader:
        wanted = min(max(4 * len(data), 16384), limit + 1)
        parts = [reader.read(wanted)]
        got = len(parts[0])
        # A read that gives less than it was asked for has reached the end.
        while got == wanted and got <= limit:
            more = min(max(got, 16384), limit + 1 - got)
            parts.append(reader.read(more))
            got += len(parts[-1])
            wanted += more
    if got > limit:
        raise _too_much("zstd", limit)
    if _zstd_blocks(data)[0]:
        raise DecodeError("zstd data is cut off")
    return b"".join(parts)


def _zstd_declared(data: Data) -> int:
    """The size that the header of the first frame says; 0 if it says none."""
    if len(data) < 5 or _ZSTD_START(data)[0] != _ZSTD_MAGIC:
        return 0
    flags = data[4]
    width = (flags >> 5 & 1, 2, 4, 8)[flags >> 6]
    end = _ZSTD_HEADER[flags]
    return int.from_bytes(data[end - width : end], "little") + (256 if width == 2 else 0)


def _zstd_blocks(data: Data, enough: int = 1 << 62) -> tuple[bool, int]:
    """Whether ``data`` ends within a frame, and the most that it becomes, by its blocks' headers (RFC 8878, 3.1).

    Does not look on when that is ``enough``.

    The library's reader gives what it has and does not say that a frame goes on. What is no frame, or has a block that
    is none, is left to the library, which fails there.
    """
    size = len(data)
    pos = most = 0
    while pos < size and most < enough:
        if size - pos < 5:
            return True, most
        magic, flags = _ZSTD_START(data, pos)
        if magic != _ZSTD_MAGIC:
            if magic & 0xFFFFFFF0 != _ZSTD_SKIPPED:
                return False, most
            pos += 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
            continue
        pos += _ZSTD_HEADER[flags]
        last = 0
        while not last and most < enough:
            header = int.from_bytes(data[pos : pos + 3], "little")
            last, kind = header & 1, header >> 1 & 3
            if kind == 3:
                return False, most
            # If a block repeats one byte, only that byte is there. A compressed one does not say what it becomes.
            most += _ZSTD_BLOCK if kind == 2 else min(header >> 3, _ZSTD_BLOCK)
            pos += 3 + (1 if kind == 1 else header >> 3)
            if pos > size:
                return True, most
        pos += 4 * (flags >> 2 & 1)
    return pos > size, most


def _write_zstd(data: Data, level: int | None, magic: int) -> bytes:
    import zstandard

    # Without a content size, as Kafka's own streaming writer leaves it out.
    return zstandard.ZstdCompressor(level=3 if level is None else level, write_content_size=False).compress(data)


class _Kind(NamedTuple):
    """How a codec is read and written, the levels that it has, and how many bytes one byte of it becomes at most."""

    read: Callable[[Data, int, int], bytes]
    write: Callable[[Data, int | None, int], bytes]
    levels: range = range(0)
    ratio: int = 1 << 15


_KINDS_BY_NAME: Final[dict[Codec, _Kind]] = {
    "gzip": _Kind(_read_gzip, _write_gzip, range(10), 1032),
    "snappy": _Kind(_read_snappy, _write_snappy, ratio=22),
    "lz4": _Kind(_read_lz4, _write_lz4, range(-16, 18), _LZ4_RATIO),
    "zstd": _Kind(_read_zstd, _write_zstd, range(-131072, 23)),
}
_KINDS: Final = {CODECS.index(name): kind for name, kind in _KINDS_BY_NAME.items()}
