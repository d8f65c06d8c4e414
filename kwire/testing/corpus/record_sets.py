"""Cases that are record sets: every magic and codec, and damage inside of them whose checksum was put right.

A batch of magic 2 is made of its fields here. Damage is done to a field before the batch is compressed and its checksum
is made. So a parser that looks at checksums only does not notice it.

Source: Kafka protocol guide, "Record Batch" and "Record"; KIP-31, KIP-98. ``Kafka's readers`` are the classes
``MemoryRecords``, ``DefaultRecordBatch`` and ``DefaultRecord``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kwire import records
from kwire.records import CODECS, Codec, Record
from kwire.records.compression import compress
from kwire.records.crc import crc32c
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.damage import ACCEPT, MAY, REFUSE, Verdict

__all__ = ["RECORD_KINDS", "RecordKind", "record_cases"]

_TIME: Final = 1_700_000_000_000
_CODECS: Final = CODECS[:5]
_ASKED: Final = ("none", "gzip")
"""Codecs that Kafka's classes have without further libraries: only with these they are asked."""
_BOMB: Final = 4 << 20
"""Bytes of zeros in a compressed value."""
_READERS: Final = "Kafka's readers"


def _varint(value: int) -> bytes:
    """A signed varint: zigzag, as records have them."""
    left = (value << 1 ^ value >> 63) & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of magic 2 in pieces: a number is written as a varint, bytes as they are."""

    attributes: bytes = b"\x00"
    time: int | bytes = 5
    offset: int | bytes = 0
    key_size: int | bytes = 3
    key: bytes = b"key"
    value_size: int | bytes = 5
    value: bytes = b"value"
    count: int | bytes = 1
    headers: tuple[int | bytes, ...] = (1, b"h", 2, b"hv")
    size: int | bytes | None = None
    """None: what it is."""
    more: int = 0
    """Added to the size."""

    def written(self) -> bytes:
        parts = (self.time, self.offset, self.key_size, self.key, self.value_size, self.value, self.count)
        body = self.attributes + b"".join(
            _varint(one) if isinstance(one, int) else one for one in (*parts, *self.headers)
        )
        size = len(body) + self.more if self.size is None else self.size
        return (_varint(size) if isinstance(size, int) else size) + body


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of magic 2 before it is compressed."""

    records: tuple[_Record, ...] = (_Record(), _Record(offset=1))
    codec: Codec = "none"
    magic: int = 2
    count: int | None = None
    last_delta: int | None = None
    number: int | None = None
    """Of the codec, where it is another one."""
    payload: Callable[[bytes], bytes] = field(default=lambda data: data)
    """What is done to the bytes after they were compressed."""
    size: int | None = None
    """The length field; None: what it is."""
    crc: int = 0
    """Added to the checksum."""

    def written(self) -> bytes:
        data = b"".join(one.written() for one in self.records)
        if self.codec != "none" and data:
            data = compress(CODECS.index(self.codec), data, magic=2)
        data = self.payload(data)
        count = len(self.records) if self.count is None else self.count
        last = max(count - 1, 0) if self.last_delta is None else self.last_delta
        number = CODECS.index(self.codec) if self.number is None else self.number
        rest = struct.pack(">hiqqqhii", number, last, _TIME, _TIME + 5, -1, -1, -1, count) + data
        crc = crc32c(rest) + self.crc & 0xFFFF_FFFF
        body = struct.pack(">ibI", 0, self.magic, crc) + rest
        return struct.pack(">qi", 7, len(body) if self.size is None else self.size) + body


@dataclass(frozen=True, slots=True)
class RecordKind:
    """A kind of record set. ``kafka``: whether Kafka's readers read it."""

    name: str
    about: str
    verdict: Verdict
    source: str
    kafka: bool
    damage: bool
    make: Callable[[Codec], Sequence[bytes]]
    """The sets of this kind with a codec."""


RECORD_KINDS: Final[dict[str, RecordKind]] = {}
"""Every kind of record set by its name."""

_GUIDE: Final = "protocol guide, Record Batch"


def _valid(name: str, about: str, make: Callable[[Codec], Sequence[bytes]], source: str = _GUIDE) -> None:
    RECORD_KINDS[name] = RecordKind(name, about, ACCEPT, source, True, False, make)


def _wrong(name: str, about: str, *batches: _Batch | _Record, why: str, **more: Any) -> None:
    """Enters a kind of damage: batches, or records that stand in one after a record that is right."""
    verdict: Verdict = more.get("verdict", REFUSE)

    def make(codec: Codec) -> list[bytes]:
        made = []
        for one in batches:
            batch = one if isinstance(one, _Batch) else _Batch((_Record(), one))
            made.append(replace(batch, codec=codec).written())
        return made

    RECORD_KINDS[name] = RecordKind(name, about, verdict, why, more.get("kafka", verdict != REFUSE), True, make)


def _encoded(some: Sequence[Record]) -> Callable[[Codec], list[bytes]]:
    def make(codec: Codec) -> list[bytes]:
        magics = (2,) if codec == "zstd" else (0, 1, 2)
        out = []
        for magic in magics:
            kept = [Record(one.key, one.value, timestamp=_TIME if magic else None) for one in some]
            if magic == 2:
                for one, other in zip(kept, some, strict=True):
                    one.headers = other.headers
            out.append(records.encode(kept, magic=magic, compression=codec, base_offset=7))
        return out

    return make


def _one(magic: int) -> bytes:
    return records.encode([Record(b"k", b"v", timestamp=_TIME if magic else None)], magic=magic, base_offset=7 + magic)


_valid("records-one", "one record", _encoded([Record(b"key", b"value")]))
_valid("records-many", "20 records", _encoded([Record(b"key", b"value" * n) for n in range(20)]))
_valid("records-nulls", "keys and values that are null or empty", _encoded([Record(None, b""), Record(b"", None)]))
_valid(
    "records-headers",
    "headers, one of them null, one twice, one without a name",
    lambda codec: _encoded([Record(b"k", b"v", headers=[("a", None), ("a", b"1"), ("", b"")])])(codec)[-1:],
)
_valid(
    "records-empty",
    "a batch without records, as compaction leaves it",
    lambda codec: [_Batch((), last_delta=3).written()] if codec == "none" else [],
    "KIP-98: a batch stays when all of its records are gone",
)
_valid(
    "records-mixed",
    "magic 0, 1 and 2 one after the other, as brokers send them after an upgrade",
    lambda codec: [b"".join(map(_one, order)) for order in ((0, 1, 2), (2, 1, 0))] if codec == "none" else [],
    "KIP-32: formats stand side by side in a log",
)
_valid(
    "records-cut",
    "a whole batch, and one that is cut off, as a broker cuts a Fetch response",
    lambda codec: [_one(2) + _Batch(codec=codec).written()[:at] for at in (1, 11, 13, 30, 60)],
    "protocol guide, Record Batch: the last one may be partial",
)

_wrong("record-size-negative", "a record of -1 bytes", _Record(size=-1), why=_READERS)
_wrong("record-size-too-large", "a record that is longer than its batch", _Record(size=1000), why=_READERS)
_wrong(
    "record-size-more",
    "a record with a byte behind its headers, as its size says",
    _Record(headers=(1, b"h", 2, b"hv", b"\x00")),
    why=_READERS,
)
_wrong("record-size-less", "a record whose size ends within its last header", _Record(more=-1), why=_READERS)
_wrong("record-varint-too-long", "a record size of six bytes", _Record(size=b"\xb0\x80\x80\x80\x80\x00"), why=_READERS)
_wrong(
    "record-varlong-too-long",
    "a timestamp of eleven bytes",
    _Record(time=b"\x8a" + b"\x80" * 9 + b"\x00"),
    why=_READERS,
)
_wrong("record-key-too-large", "a key that is longer than its record", _Record(key_size=1000), why=_READERS)
_wrong("record-value-too-large", "a value that is longer than its record", _Record(value_size=1000), why=_READERS)
_wrong("record-headers-negative", "-1 headers", _Record(count=-1, headers=()), why=_READERS)
_wrong("record-headers-too-many", "more headers than there are bytes", _Record(count=2**31 - 1), why=_READERS)
_wrong("record-header-name-null", "a header without a name", _Record(headers=(-1, 2, b"hv")), why=_READERS)
_wrong(
    "record-header-too-large",
    "a header value that is longer than its record",
    _Record(headers=(1, b"h", 1000)),
    why=_READERS,
)
_wrong(
    "record-negative-null",
    "a key, a value and a header value of -2 bytes",
    _Record(key_size=-2, key=b""),
    _Record(value_size=-2, value=b""),
    _Record(headers=(1, b"h", -2)),
    why=f"{_READERS} take any negative size for null; the guide knows -1",
    verdict=MAY,
)
_wrong(
    "record-varint-overlong",
    "a key size of one byte more than it needs",
    _Record(key_size=b"\x86\x00"),
    why=f"{_READERS} accept it; the guide does not say",
    verdict=MAY,
)
_wrong("batch-count-more", "a batch that has one record less than it says", _Batch(count=3), why=_READERS)
_wrong("batch-count-less", "a batch that has one record more than it says", _Batch(count=1), why=_READERS)
_wrong("batch-count-negative", "a batch of -1 records", _Batch(count=-1), why=_READERS)
_wrong("batch-magic", "a batch of magic 3", _Batch(magic=3), why=_READERS)
_wrong(
    "batch-size",
    "a batch whose length is less than the least one, and a negative one",
    _Batch(size=13),
    _Batch(size=-1),
    why=_READERS,
)
_wrong("batch-codec", "a codec that there is not", *(_Batch(number=one) for one in (5, 6, 7)), why=_READERS)
_wrong(
    "batch-checksum",
    "a wrong checksum",
    _Batch(crc=1),
    why="a client may be told not to look at checksums (check.crcs)",
    verdict=MAY,
    kafka=False,
)


def _broken(codec: Codec) -> list[bytes]:
    if codec == "none":
        return []
    return [_Batch(codec=codec, payload=lambda data: data[: len(data) // 2]).written()]


RECORD_KINDS["batch-compressed-cut"] = RecordKind(
    "batch-compressed-cut", "compressed data of which half is missing", REFUSE, _READERS, False, True, _broken
)


def _bombs(codec: Codec) -> list[bytes]:
    if codec == "none":
        return []
    return [_Batch((_Record(value_size=_BOMB, value=bytes(_BOMB)),), codec=codec).written()]


RECORD_KINDS["batch-bomb"] = RecordKind(
    "batch-bomb",
    "4 MiB of zeros, compressed: a parser may have a bound, and must not go far beyond it",
    MAY,
    "the protocol has no bound",
    True,
    True,
    _bombs,
)


def record_cases(kinds: Sequence[str]) -> Iterator[Case]:
    """The cases of these kinds, with each codec."""
    for name in kinds:
        kind = RECORD_KINDS[name]
        for codec in _CODECS:
            for number, data in enumerate(kind.make(codec)):
                yield Case(
                    name=f"records/{codec}/{name}-{'abcde'[number]}",
                    role="records",
                    data=data,
                    verdict=kind.verdict,
                    source=kind.source,
                    kafka=kind.kafka if codec in _ASKED else None,
                    api="records",
                    version=data[16] if len(data) > 16 else -1,
                    shape="one" if kind.damage else name,
                    damage=name if kind.damage else None,
                    path=None,
                    offset=0 if kind.damage else None,
                )
