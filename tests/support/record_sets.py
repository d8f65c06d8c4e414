"""Record sets that tests make by hand: right ones, compressed bombs, and a sample of every format."""

from __future__ import annotations

import random
import struct
import zlib

import crc32c
import lz4.frame
import zstandard
from cramjam import snappy

from kwire.records import CODECS, Record, encode


def varint(value: int) -> bytes:
    value = (value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    offset: int = 0,
    time: int = 0,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:
    body = b"\0" + varint(time) + varint(offset) + sized(key) + sized(value) + varint(len(headers))
    body += b"".join(sized(name) + sized(content) for name, content in headers)
    return varint(len(body)) + body


def batch(
    records: bytes,
    count: int,
    *,
    attributes: int = 0,
    base_offset: int = 0,
    times: tuple[int, int] = (1000, 2000),
    producer: tuple[int, int, int] = (-1, -1, -1),
    last_delta: int | None = None,
) -> bytes:
    last = count - 1 if last_delta is None else last_delta
    rest = struct.pack(">hiqqqhii", attributes, last, *times, *producer, count) + records
    checked = struct.pack(">ibI", 3, 2, crc32c.crc32c(rest)) + rest
    return struct.pack(">qi", base_offset, len(checked)) + checked


def message(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *,
    magic: int = 1,
    attributes: int = 0,
    offset: int = 0,
    time: int = 1000,
) -> bytes:
    def field(data: bytes | None) -> bytes:
        return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data

    body = struct.pack(">bB", magic, attributes) + (struct.pack(">q", time) if magic else b"")
    body += field(key) + field(value)
    checked = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(checked)) + checked


def gzipped(data: bytes) -> bytes:
    stream = zlib.compressobj(6, zlib.DEFLATED, 31)
    return stream.compress(data) + stream.flush()


GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def bomb(codec: int, size: int) -> bytes:
    """``size`` bytes or more that decompress to far more: the same compressed megabytes of zeros again and again."""
    if codec == GZIP:
        # A full flush makes the block independent of what was before it, so that it can be repeated.
        stream = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = stream.compress(bytes(1 << 20)) + stream.flush(zlib.Z_FULL_FLUSH)
        return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + block * (size // len(block) + 1)
    if codec == SNAPPY:
        block = bytes(snappy.compress_raw(bytes(1 << 20)))
        part = struct.pack(">i", len(block)) + block
        return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + part * (size // len(part) + 1)
    if codec == LZ4:
        frame: bytes = lz4.frame.compress(bytes(64 << 10), block_linked=False, store_size=False)
        # One block of 64 KiB: header of 7 bytes, block, end mark of 4.
        block = frame[7:-4]
        return frame[:7] + block * (size // len(block) + 1) + b"\0\0\0\0"
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(8 << 20))
    return frame * (size // len(frame) + 1)


def record_sets(some: random.Random) -> list[bytes]:
    """A set of each magic and codec, with headers of one form and of many, nulls, and a producer."""
    made = []
    for magic in (0, 1, 2):
        for codec in CODECS:
            if codec == "zstd" and magic < 2:
                continue
            records = [
                Record(
                    some.choice([None, b"", some.randbytes(some.randrange(90))]),
                    some.choice([None, some.randbytes(some.randrange(90))]),
                    timestamp=some.randrange(1 << 41) if magic else None,
                    headers=[
                        ("name" * some.randrange(3), some.choice([None, some.randbytes(some.randrange(40))]))
                        for _ in range(some.choice([0, 2, some.randrange(20)]))
                    ]
                    if magic == 2
                    else [],
                )
                for _ in range(30)
            ]
            records += [Record(b"k", b"v", headers=[("a", b"1"), ("b", None)] if magic == 2 else [])] * 5
            made.append(encode(records, magic=magic, compression=codec, base_offset=some.randrange(1000)))
    return made
