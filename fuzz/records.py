# Invariant: for any bytes, the object reader and the columnar reader of record sets find the same records, at the same
# offsets, with the same keys, values and checksum verdicts, and report problems at the same places; neither raises
# anything, and both stay within their limits.
"""Record sets of every format, damaged, through both readers."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

import crc32c

from fuzz import damaged
from kwire.errors import DecodeError
from kwire.records import CODECS, Limits, Record, decode, encode, to_arrow
from kwire.testing.corpus.record_sets import RECORD_KINDS, record_cases
from kwire.wire import read_uvarint

LIMITS = Limits(decompressed=1 << 20, total=4 << 20)


def _content(rng: random.Random) -> bytes | None:
    return rng.choice((None, b"", rng.randbytes(5), b"x" * rng.randrange(200)))


def _record_set(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.randint(1, 4)):
        magic = rng.choice((0, 1, 2, 2))
        codec = rng.choice([one for one in CODECS if magic == 2 or one != "zstd"])
        records = []
        for _ in range(rng.randint(1, 12)):
            headers = [("h", _content(rng)) for _ in range(rng.choice((0, 0, 1, 3)))] if magic == 2 else []
            time = rng.getrandbits(41) if magic else None
            records.append(Record(_content(rng), _content(rng), timestamp=time, headers=headers))
        parts.append(encode(records, magic=magic, compression=codec, base_offset=rng.getrandbits(30)))
    return b"".join(parts)


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_uvarint(data, at)
    return number >> 1 ^ -(number & 1), at


def _off_by_one(rng: random.Random) -> bytes:
    """A batch with lengths or counts of a record that are one too large or too small.

    Mostly it is the last record. If its own length and that of its value are, it fits into itself and not into the
    batch. Often another batch follows, whose bytes it takes then."""
    headers = [("h", b"x")] * rng.choice((0, 0, 1))
    records = [Record(_content(rng), b"v" * rng.randrange(40), headers=headers) for _ in range(rng.randint(1, 3))]
    made = bytearray(encode(records))
    places, at = [], 61
    while at < len(made):
        begin = at
        size, at = _zigzag(made, at)
        end = at + size
        # Its attributes, its time and its offset, which take a byte each.
        of_key = at + 3
        size, at = _zigzag(made, of_key)
        of_value = at + max(size, 0)
        size, at = _zigzag(made, of_value)
        places.append((begin, of_key, of_value, at + max(size, 0)))
        at = end
    record = places[-1] if rng.random() < 0.7 else rng.choice(places)
    # A zigzag varint has one more where its byte has two more.
    more = rng.choice((-2, 2))
    for place in (record[0], record[2]) if rng.random() < 0.5 else (rng.choice(record),):
        made[place] = (made[place] + more) % 256
    data = bytes(made) + (encode(records) if rng.random() < 0.5 else b"")
    return mended(data)


def one(rng: random.Random) -> bytes:
    """One input."""
    if rng.random() < 0.2:
        return _off_by_one(rng)
    data = _record_set(rng)
    data = damaged(data, rng, rng.choice((1, 1, 2, 6))) if rng.random() < 0.95 else data
    return mended(data) if rng.random() < 0.5 else data


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    found: list[DecodeError] = []
    objects: list[tuple[Any, ...]] = [
        (record.offset, record.key, record.value, record.crc_ok, batch.magic, batch.compression)
        for batch in decode(data, problems=found, limits=LIMITS)
        for record in batch.records
    ]
    expected: list[DecodeError] = []
    columns = to_arrow(data, problems=expected, limits=LIMITS)
    columns.validate(full=True)
    names = ("offset", "key", "value", "crc_ok", "magic", "compression")
    assert objects == list(zip(*(columns.column(name).to_pylist() for name in names), strict=True))
    assert sorted(str(one.offset) for one in found) == sorted(str(one.offset) for one in expected)


def run(rng: random.Random) -> None:
    """One round."""
    data = one(rng)
    try:
        check(data)
    except Exception as error:
        error.add_note(data.hex())
        raise


def seeds() -> Iterator[bytes]:
    """The record sets of the corpus: all kinds, magics and codecs."""
    for case in record_cases(list(RECORD_KINDS)):
        if len(case.data) <= 2000:
            yield case.data


def words() -> Iterator[bytes]:
    """Varints at the edges, and how compressed data begins."""
    yield from (b"\x01", b"\x80\x00", b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01")
    yield from (b"\x1f\x8b\x08", b"\x82SNAPPY\0", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")


def mended(data: bytes) -> bytes:
    """The same record set with the checksums of magic 2 put right."""
    made, at = bytearray(data), 0
    while at + 61 <= len(made):
        (size,) = struct.unpack_from(">i", made, at + 8)
        end = at + 12 + size
        if size < 49 or end > len(made):
            break
        if made[at + 16] == 2:
            struct.pack_into(">I", made, at + 17, crc32c.crc32c(bytes(made[at + 21 : end])))
        at = end
    return bytes(made)
