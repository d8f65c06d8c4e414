"""Inputs that are made to cost as much as they can: the table ``ATTACKS``, which ``hostile.py`` reads and judges.

Each ``Attack`` has a name, a function that makes its bytes, and what they are (``kind``), which says how they are read.
Everything is made with ``struct`` from what stands here and with fixed seeds, not with kwire's own writers: those
refuse most of it. Only checksums and schemas are kwire's.

``ATTACKS`` asks of every reader: what is the smallest input that costs most? So an attack is one of

- little that becomes much: what a compressor, a count, or a value that is repeated for each row makes of it;
- the shortest form of a thing, as often as it fits: records of 7 bytes, structs and headers of two, responses of eight;
- what is looked for: names with one hash, frames that look like others, definitions that hold each other;
- what is wrong, over and over: each problem is an error to word and a row to make.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import struct
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import cramjam
import lz4.frame
import numpy as np
import pyarrow as pa
import zstandard
from tls_connections import End as Sealing
from tls_connections import Talk, clear, hello13, made13
from tls_connections import message as handshake

from kwire import schema
from kwire.records.crc import crc32, crc32c
from kwire.schema import model

__all__ = ["ATTACKS", "BENIGN", "Attack", "Kind", "as_capture", "made"]

Kind = Literal[
    "records",
    "request",
    "response",
    "giant",
    "stream",
    "capture",
    "topics",
    "events",
    "segment",
    "index",
    "metrics",
    "schema",
    "definition",
    "state",
]

MiB: Final = 1 << 20
BOMB: Final = 30 * MiB
"""Bytes of a compressed batch that is within kwire's limit (32 MiB)."""
REFUSED: Final = 40 * MiB
"""Bytes of one that is not."""


_part = [1.0]
"""Of how many parts of its own number an attack consists."""


def n(count: int) -> int:
    """``count``, or fewer where the input is to be small (``made``). For what repeats, not for what must be large."""
    return max(round(count * _part[0]), 1)


@dataclass(frozen=True)
class Attack:
    """``make()`` gives the input. ``readers``: those it goes through, where they are not all of its kind.

    ``api``, ``version``: what a response answers. ``topic``: where a record set stands that becomes a capture.
    ``damaged``: a reader of files may say that the whole of it cannot be read. ``framed``: as a capture it has frames.
    """

    name: str
    kind: Kind
    make: Callable[[], bytes]
    readers: tuple[str, ...] = ()
    api: int = 0
    version: int = 0
    topic: bytes = b"t"
    damaged: bool = False
    framed: bool = True


# --- Records ----------------------------------------------------------------------------------------------------------


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    return uvarint(value << 1 if value >= 0 else ~(value << 1))


SMALL: Final = b"\x0c\0\0\0\1\1\0"
"""A record of seven bytes: no key, no value, no headers."""


WRONG: Final = b"\x0c\0\0\0\1\x7e\0"
"""One whose value is longer than it is."""


def record(value: bytes = b"", headers: bytes = b"\0", key: bytes | None = None, delta: int = 0) -> bytes:
    """A record of magic 2; ``headers`` with their count in front."""
    named = b"\1" if key is None else varint(len(key)) + key
    body = b"\0\0" + varint(delta) + named + varint(len(value)) + value + headers
    return varint(len(body)) + body


def batch(records: bytes, count: int, codec: int = 0, attributes: int = 0, crc: int | None = None) -> bytes:
    """A record batch whose records are ``records``, which are compressed already where ``codec`` says so."""
    rest = struct.pack(">hiqqqhii", codec | attributes, max(count - 1, 0), 10**12, 10**12, -1, -1, -1, count) + records
    head = struct.pack(">ibI", 0, 2, crc32c(rest) if crc is None else crc)
    return struct.pack(">qi", 0, len(head) + len(rest)) + head + rest


def message(magic: int, value: bytes | None, codec: int = 0) -> bytes:
    """A message of magic 0 or 1 without a key."""
    body = bytes([magic, codec]) + (struct.pack(">q", 10**12) if magic else b"") + struct.pack(">i", -1)
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body


@functools.cache
def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def filled(unit: bytes, size: int) -> bytes:
    return unit * (size // len(unit))


def zstd_batch(unit: bytes, size: int = BOMB) -> bytes:
    """A batch that holds ``unit`` as often as it fits into ``size`` bytes, compressed."""
    return batch(zstd(filled(unit, size)), size // len(unit), 4)


def headers_of(count: int, one: bytes = b"\0\1") -> bytes:
    """A count and so many headers; the shortest has a name of no bytes and is null."""
    return varint(count) + one * count


def refused(codec: int, size: int) -> bytes:
    """Batches, ``size`` bytes of them but one at least, that become more than is allowed."""
    compressors: tuple[Callable[[bytes], Any], ...] = (gzipped, cramjam.snappy.compress_raw, lz4.frame.compress, zstd)
    one = batch(bytes(compressors[codec - 1](bytes(REFUSED))), 1, codec)
    return one * max(size // len(one), 1)


def different_headers(count: int) -> bytes:
    """Records with one header each, no two of one name."""
    return b"".join(record(headers=b"\2" + varint(6) + b"%06x" % k + b"\1") for k in range(count))


def wrapped_bombs(magic: int, bombs: int) -> bytes:
    """Two wrappers around many messages, each of which would decompress to more than is allowed."""
    bomb = message(magic, gzipped(gzipped(bytes(REFUSED))), 1)
    small = message(magic, gzipped(bytes(REFUSED)), 1)
    inner = gzipped(small * min(bombs, BOMB // len(small)))
    return message(magic, inner, 1) * 8 + bomb * 8


def xerial(block: bytes, size: int) -> bytes:
    """Snappy in Java's framing."""
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + filled(struct.pack(">i", len(block)) + block, size)


def _records() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes], **more: Any) -> Attack:
        return Attack(f"records: {name}", "records", make, **more)

    few = MiB // len(SMALL)
    yield add("7 bytes each, 1 MB", lambda: batch(SMALL * n(few), n(few)))
    yield add("7 bytes each, zstd", lambda: zstd_batch(SMALL))
    yield add("7 bytes each, zstd, 8 times", lambda: zstd_batch(SMALL) * 8)
    yield add("7 bytes each, zstd, 100 times", lambda: zstd_batch(SMALL) * n(100))
    yield add("each wrong, zstd", lambda: zstd_batch(WRONG))
    yield add("each wrong, 1 MB", lambda: batch(WRONG * n(few), n(few)))
    yield add("wrong checksums", lambda: filled(batch(SMALL, 1, crc=1), n(MiB)))
    yield add("one in a batch", lambda: filled(batch(SMALL, 1), n(MiB)))
    yield add("one in a zstd batch", lambda: filled(batch(zstd(SMALL), 1, 4), n(MiB)))
    yield add("one in an LZ4 batch", lambda: filled(batch(lz4.frame.compress(SMALL), 1, 3), n(MiB)))
    yield add("one in a gzip batch", lambda: filled(batch(gzipped(SMALL), 1, 1), n(MiB)))
    yield add("batches without one", lambda: filled(batch(b"", 0), n(MiB)))
    yield add("empty zstd batches", lambda: filled(batch(zstd(b""), 0, 4), n(MiB)))
    yield add("a count of 2**31", lambda: filled(batch(b"", 2**31 - 1), n(MiB)))
    yield add("control batches", lambda: filled(batch(record(b"", key=b"\0\0\0\7"), 1, attributes=0x30), n(MiB)))
    yield add("two-byte headers of one", lambda: batch(record(headers=headers_of(n(MiB // 2))), 1))
    yield add("two-byte headers of one, zstd", lambda: zstd_batch(record(headers=headers_of(BOMB // 2 - 20))))
    yield add("100 two-byte headers, zstd", lambda: zstd_batch(record(headers=headers_of(100))))
    yield add(
        "two-byte headers, other each time",
        lambda: batch(b"".join(record(headers=headers_of(k % 7)) for k in range(n(80_000))), n(80_000)),
    )
    yield add("names of headers, all different", lambda: batch(different_headers(n(50_000)), n(50_000)))
    yield add("empty values, zstd", lambda: zstd_batch(record(b"", key=b"")))
    yield add("LZ4 of zeros", lambda: batch(lz4.frame.compress(bytes(BOMB)), 1, 3))

    # Decompression that comes to nothing, or takes many steps.
    for codec, name in enumerate(("gzip", "snappy", "LZ4", "zstd"), 1):
        yield add(f"a bomb refused, {name}", functools.partial(refused, codec, 1))
        yield add(f"bombs refused, {name}, 1 MB", lambda codec=codec: refused(codec, n(MiB)))
    for name, end in (("too large", b"\1\0\0"), ("wrong at the end", b"\7\0\0"), ("cut off", b"")):
        # 128 KiB for each 4 bytes.
        bomb = b"\x28\xb5\x2f\xfd\0\x58" + (b"\2\0\x10a" * (300 if name == "too large" else 250)) + end
        yield add(f"zstd of one byte, {name}", functools.partial(lambda one: filled(batch(one, 1, 4), n(MiB)), bomb))
    small = b"\x28\xb5\x2f\xfd\0\x58" + b"\2\0\x10a" * 10
    yield add("small zstd of one byte, wrong at the end", lambda: filled(batch(small + b"\7\0\0", 1, 4), n(MiB)))
    yield add("gzip of 31 MB, cut off", lambda: filled(batch(gzipped(bytes(31 * MiB))[:-5], 1, 1), n(MiB)))
    yield add("zstd of empty frames", lambda: batch(filled(zstd(b""), n(MiB)), 1, 4))
    yield add("zstd of skipped frames", lambda: batch(filled(struct.pack("<II", 0x184D2A50, 0), n(MiB)), 1, 4))
    yield add("gzip of empty members", lambda: batch(filled(gzipped(b""), n(MiB)), 1, 1))
    yield add("gzip of 99 empty members, often", lambda: filled(batch(gzipped(b"") * 99, 1, 1), n(MiB)))
    yield add("xerial of empty blocks", lambda: batch(xerial(b"\0", n(MiB)), 1, 2))
    yield add("xerial of its own headers", lambda: batch(filled(b"\x82SNAPPY\0" + bytes(8), n(MiB)), 1, 2))
    yield add("zstd that asks for a window", lambda: filled(batch(b"\x28\xb5\x2f\xfd\0\x88\1\0\0", 1, 4), n(MiB)))
    yield add("an unknown magic, over and over", lambda: filled(message(7, None), n(MiB)))


def _messages(magic: int) -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"records: {name}, magic {magic}", "records", make)

    def wrapper(*inner: bytes, size: int = 0) -> bytes:
        """A wrapper around messages, the first so often that they are ``size`` bytes."""
        return message(magic, gzipped(filled(inner[0], size) if size else b"".join(inner)), 1)

    plain = message(magic, None)
    yield add("messages", lambda: filled(plain, n(MiB)))
    yield add("messages in a wrapper", lambda: wrapper(plain, size=BOMB))
    yield add("one in a wrapper", lambda: filled(wrapper(plain), n(MiB)))
    yield add("problems in a wrapper", lambda: wrapper(message(7, None), size=BOMB))
    yield add("bombs in wrappers", lambda: wrapped_bombs(magic, n(900)))
    yield add("wrappers in wrappers", lambda: wrapper(wrapper(wrapper(plain)), size=4 * MiB))


# --- Bodies -----------------------------------------------------------------------------------------------------------


def text(value: bytes) -> bytes:
    """A string as it is in versions that are not flexible."""
    return struct.pack(">h", len(value)) + value


def request(api: int, version: int, body: bytes, *, number: int = 1, client: bytes | None = b"a") -> bytes:
    """A request frame, with the tagged section of its header where it has one."""
    name = b"\xff\xff" if client is None else text(client)
    return struct.pack(">hhi", api, version, number) + name + (b"\0" if _is_flexible(api, version) else b"") + body


def response(api: int, version: int, body: bytes, number: int = 1) -> bytes:
    flexible = _is_flexible(api, version) and api != 18
    return struct.pack(">i", number) + (b"\0" if flexible else b"") + body


def _is_flexible(api: int, version: int) -> bool:
    made = schema.request(api)
    return made is not None and version in made.versions and model.layout(made, version).flexible


def repeated(name: str, version: int, field: str, size: int, *, unit: bytes | None = None) -> bytes:
    """A message that is as short as it can be, but for the array ``field`` of its own: as many of its shortest element
    (or of ``unit``) as ``size`` bytes hold."""
    made = b""
    layout = model.layout(schema.message(name), version)
    for one in layout.fields:
        if one.name != field:
            made += _shortest(one.type, one.nullable)
            continue
        assert isinstance(one.type, model.ArrayLayout)
        element = _shortest(one.type.element, False) if unit is None else unit
        count = max(size // len(element), 1)
        made += (uvarint(count + 1) if one.type.compact else struct.pack(">i", count)) + element * count
    return made + (b"\0" if layout.flexible else b"")


def _shortest(type_: model.TypeLayout, nullable: bool) -> bytes:
    """The shortest value of a type; empty rather than null, which costs less."""
    if isinstance(type_, model.StructLayout):
        if nullable:
            return b"\xff"
        fields = b"".join(_shortest(one.type, one.nullable) for one in type_.fields)
        return fields + (b"\0" if type_.flexible else b"")
    if isinstance(type_, model.ArrayLayout) or type_.name in ("string", "bytes", "records"):
        return b"\1" if type_.compact else bytes(type_.min_size)
    return bytes(type_.min_size)


def tags(count: int) -> bytes:
    """A tagged section of so many tags that nobody knows, each without bytes."""
    return uvarint(count) + b"".join(uvarint(1000 + k) + b"\0" for k in range(count))


def _bodies(size: int, kind: Kind, label: str) -> Iterator[Attack]:
    def add(name: str, api: int, version: int, body: Callable[[], bytes], **more: Any) -> Attack:
        return Attack(f"{label}: {name}", kind, lambda: request(api, version, body()), **more)

    yield add("Metadata, topics of 2 bytes", 3, 9, lambda: repeated("MetadataRequest", 9, "topics", n(size)))
    yield add("Produce, topics of 3 bytes", 0, 9, lambda: repeated("ProduceRequest", 9, "topic_data", n(size)))
    yield add(
        "Produce, partitions of 6 bytes",
        0,
        9,
        lambda: repeated(
            "ProduceRequest",
            9,
            "topic_data",
            1,
            unit=b"\2t" + uvarint(n(size) // 6 + 1) + filled(bytes(6), n(size)) + b"\0",
        ),
    )
    yield add("OffsetFetch, groups of 3 bytes", 9, 8, lambda: repeated("OffsetFetchRequest", 8, "groups", n(size)))
    yield add("OffsetCommit, topics of 3 bytes", 8, 8, lambda: repeated("OffsetCommitRequest", 8, "topics", n(size)))
    yield add("CreateTopics, topics", 19, 5, lambda: repeated("CreateTopicsRequest", 5, "topics", n(size)))
    yield add(
        "AlterConfigs, resources of 4 bytes",
        44,
        1,
        lambda: repeated("IncrementalAlterConfigsRequest", 1, "resources", n(size)),
    )
    yield add("JoinGroup, protocols of 3 bytes", 11, 6, lambda: repeated("JoinGroupRequest", 6, "protocols", n(size)))
    yield add("DescribeGroups, names of 1 byte", 15, 5, lambda: repeated("DescribeGroupsRequest", 5, "groups", n(size)))
    yield add(
        "unknown tags of 3 bytes", 3, 9, lambda: b"\0\0\0\0" + tags(n(size) // 3 if size < 16 * MiB else n(2_000_000))
    )
    yield add(
        "a topic with tags of 2 bytes, often",
        3,
        9,
        lambda: repeated(
            "MetadataRequest",
            9,
            "topics",
            n(size),
            unit=b"\1" + uvarint(100) + bytes(x for k in range(100) for x in (k, 0)),
        ),
    )
    yield add(
        "a string of control characters",
        3,
        1,
        lambda: struct.pack(">i", n(size) // 32769) + filled(text(b"\1" * 32767), n(size)),
    )
    yield add("wrong at its end", 3, 9, lambda: repeated("MetadataRequest", 9, "topics", n(size))[:-2] + b"\7\7")
    yield add(
        "not UTF-8 at its end",
        3,
        9,
        lambda: uvarint(n(size) // 2 + 2) + filled(b"\1\0", n(size)) + b"\2\xff\0" + bytes(4),
    )
    yield add(
        "JoinGroup, a subscription of 2-byte topics",
        11,
        5,
        lambda: join_group(struct.pack(">hi", 0, n(size) // 2) + filled(b"\0\0", n(size)) + b"\xff\xff\xff\xff"),
    )
    yield add("JoinGroup, subscriptions that are none", 11, 5, lambda: join_group(b"\0\0\0\0\0\1\0", n(size) // 13))
    yield add("SaslAuthenticate of one token", 36, 2, lambda: uvarint(n(size) + 1) + bytes(n(size)) + b"\0")
    yield add("Produce, records of 7 bytes", 0, 3, lambda: produce_body(batch(SMALL * (n(size) // 7), n(size) // 7)))


def join_group(metadata: bytes, count: int = 1) -> bytes:
    """JoinGroup v5 of one member with so many protocols."""
    protocol = text(b"") + struct.pack(">i", len(metadata)) + metadata
    head = text(b"g") + struct.pack(">ii", 1000, 1000) + text(b"") + b"\xff\xff" + text(b"consumer")
    return head + struct.pack(">i", count) + protocol * count


def produce_body(records: bytes, topic: bytes = b"t") -> bytes:
    """Produce v3, one partition, no answer expected."""
    return struct.pack(">hhii", -1, 0, 1000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records


def _responses() -> Iterator[Attack]:
    def add(name: str, api: int, version: int, body: Callable[[], bytes]) -> Attack:
        return Attack(f"response: {name}", "response", lambda: response(api, version, body()), (), api, version)

    def shortest(name: str, version: int, array: str) -> Callable[[], bytes]:
        return lambda: repeated(name, version, array, n(MiB))

    for api, version, name, array in (
        (3, 12, "MetadataResponse", "topics"),
        (1, 12, "FetchResponse", "responses"),
        (18, 3, "ApiVersionsResponse", "api_keys"),
        (9, 8, "OffsetFetchResponse", "groups"),
        (15, 5, "DescribeGroupsResponse", "groups"),
        (32, 4, "DescribeConfigsResponse", "results"),
        (16, 4, "ListGroupsResponse", "groups"),
        (48, 1, "DescribeClientQuotasResponse", "entries"),
    ):
        yield add(f"{name} v{version}, {array}", api, version, shortest(name, version, array))
    for what, name in (("dots", b"." * 500), ("words", b"ssl.key." * 62)):
        yield add(f"synonyms of an entry of {what}", 32, 4, lambda name=name: entries(1, name, [b"a"] * n(60_000)))
    yield add("synonyms, all different", 32, 4, lambda: entries(1, b"x", [b"%x" % k for k in range(n(60_000))]))
    yield add("entries of dots", 32, 4, lambda: entries(n(1500), b"." * 500, []))


def shared(sets: Iterable[tuple[bytes, Iterable[tuple[int, int]]]]) -> bytes:
    """The body of a ShareFetch v1 response: record sets, each with the ranges of offsets that are acquired of it."""
    made = []
    for records, ranges in sets:
        acquired = [struct.pack(">qqhx", *one, 1) for one in ranges]
        head = struct.pack(">ihxhxiix", 0, 0, 0, 0, 0) + uvarint(len(records) + 1) + records
        made.append(head + uvarint(len(acquired) + 1) + b"".join(acquired) + b"\0")
    topic = b"\1" * 16 + uvarint(len(made) + 1) + b"".join(made) + b"\0"
    return struct.pack(">ihxi", 0, 0, 0) + b"\2" + topic + b"\1\0"


def _shared() -> Iterator[Attack]:
    def add(name: str, sets: Callable[[], Iterable[tuple[bytes, Iterable[tuple[int, int]]]]]) -> Attack:
        readers = ("response", "messages", "partitions", "records", "batches", "lineage")
        made = lambda: response(78, 1, shared(sets()))  # noqa: E731
        return Attack(f"shared: {name}", "response", made, readers, 78, 1)

    def many() -> bytes:
        return batch(b"".join(record(delta=k) for k in range(n(50_000))), n(50_000))

    def each() -> list[tuple[int, int]]:
        return [(k, k) for k in range(n(50_000))]

    one = batch(SMALL, 1)
    yield add("a range for each of many records", lambda: [(many(), each())])
    yield add("ranges in another order", lambda: [(many(), each()[::-1])])
    yield add("one range, many batches", lambda: [(one * n(15_000), [(0, 1 << 62)])])
    yield add("many ranges, one record", lambda: [(one, each())])
    yield add("many sets", lambda: [(one, [(0, 0)])] * n(10_000))


def entries(count: int, name: bytes, synonyms: list[bytes]) -> bytes:
    """The body of a response to DescribeConfigs v4: entries of one name, with synonyms."""

    def short(value: bytes) -> bytes:
        return uvarint(len(value) + 1) + value

    inner = b"".join(short(one) + short(b"v") + b"\1\0" for one in synonyms)
    one = short(name) + short(b"v") + b"\0\5\0" + uvarint(len(synonyms) + 1) + inner + b"\2\0\0"
    return struct.pack(">i", 0) + b"\2\0\0\0\2\2t" + uvarint(count + 1) + one * count + b"\0\0"


# --- Captures ---------------------------------------------------------------------------------------------------------

SYN, ACK, FIN = 2, 16, 1
CLIENT, BROKER = (b"\x0a\0\0\1", 40000), (b"\x0a\0\0\2", 9092)
End = tuple[bytes, int]


def packet(src: End, dst: End, seq: int, data: bytes = b"", flags: int = ACK) -> bytes:
    """A packet with IP and TCP headers; the version of IP by the length of the address."""
    tcp = struct.pack(">HHIIBBHHH", src[1], dst[1], seq & 0xFFFFFFFF, 0, 0x50, flags, 65535, 0, 0) + data
    if len(src[0]) == 4:
        return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, src[0], dst[0]) + tcp
    return struct.pack(">IHBB16s16s", 6 << 28, len(tcp), 6, 64, src[0], dst[0]) + tcp


def pcap(packets: Iterable[bytes], link: int = 101) -> bytes:
    """A capture of IP packets, one in each microsecond."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, link)
    return head + b"".join(
        struct.pack("<IIII", 1_700_000_000 + k // 10**6, k % 10**6, len(one), len(one)) + one
        for k, one in enumerate(packets)
    )


def stream(data: bytes, side: int = 0, seq: int = 1001, mss: int = 32_000) -> Iterator[bytes]:
    """Bytes that one side sends."""
    src, dst = (CLIENT, BROKER) if side == 0 else (BROKER, CLIENT)
    for at in range(0, len(data), mss):
        yield packet(src, dst, seq + at, data[at : at + mss])


def opened() -> Iterator[bytes]:
    yield packet(CLIENT, BROKER, 1000, flags=SYN)
    yield packet(BROKER, CLIENT, 1000, flags=SYN | ACK)


def talk(asked: bytes, answered: bytes = b"", mss: int = 32_000) -> bytes:
    """A capture of one connection: what the client sends, then what the broker sends."""
    return pcap([*opened(), *stream(asked, mss=mss), *stream(answered, 1, mss=mss)])


def sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def as_capture(attack: Attack, data: bytes) -> bytes:
    """What is no capture, inside of one."""
    if attack.kind in ("records", "topics", "events"):
        return talk(sized(request(0, 3, produce_body(data, attack.topic))))
    if attack.kind == "segment":
        raise ValueError("a segment is no capture")
    if attack.kind in ("request", "giant"):
        return talk(sized(data))
    if attack.kind == "response":
        asked = request(attack.api, attack.version, _shortest_body(attack.api, attack.version))
        return talk(sized(asked), sized(data))
    if attack.kind == "metrics":
        return talk(sized(push(data)))
    return data


TRIES: Final = 6
"""How often an input is made again with fewer parts."""


def made(attack: Attack, captured: bool, most: int | None = None) -> bytes:
    """The input of an attack, inside of a capture or not.

    ``most``: about how many bytes it may have. It is not cut to them: it repeats less often, so that each frame in it
    is whole. It has more bytes where a single part does.
    """
    part, data = 1 / 128 if most is not None and attack.kind == "giant" else 1.0, b""
    for _ in range(TRIES):
        _part[0] = part
        try:
            data = attack.make()
            if captured:
                data = as_capture(attack, data)
        finally:
            _part[0] = 1.0
        if most is None or len(data) <= most:
            break
        part *= 0.99 * most / len(data)
    return data


def _shortest_body(api: int, version: int) -> bytes:
    made = schema.request(api)
    assert made is not None
    return _shortest(model.layout(made, version), False)


def fetch_by_id(number: int) -> bytes:
    """Fetch v13 of a topic that is named by its id."""
    head = struct.pack(">hhih", 1, 13, number, -1) + b"\0" + struct.pack(">iiibii", 0, 0, 0, 0, 0, -1)
    topic = struct.pack(">QQ", 1 << 40, number) + b"\2" + struct.pack(">iiqiqi", 0, 0, 0, -1, -1, 0) + b"\0\0"
    return head + b"\2" + topic + b"\1\1\0"


METADATA = struct.pack(">i", 0)
"""The body of Metadata v0 for all topics; the frame with it looks like what a client sends."""


# Names with one place in a table of hashes: an FNV-1a with this multiplier and no key is what kwire 0.1.0 had.
_FNV: Final = np.uint64(0x100000001B3)


def fnv(names: Any) -> Any:
    """The hash of names of one length: rows of bytes."""
    hashed = np.full(len(names), names.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        for k in range(names.shape[1]):
            hashed = (hashed ^ names[:, k].astype(np.uint64)) * _FNV
    return hashed ^ (hashed.astype(np.int64) >> 31).astype(np.uint64)


@functools.cache
def colliding_names(count: int, length: int = 8) -> list[bytes]:
    """Different names that begin to look for their place among the same few of tables of up to 2**18 places."""
    letters = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef", np.uint8)
    found: list[bytes] = []
    at = 0
    while len(found) < count:
        numbers = np.arange(at, at + MiB)
        at += MiB
        names = np.stack([letters[numbers >> 5 * k & 31] for k in range(length)], axis=1)
        # Bits 10 to 17 of the hash are 0: one name in 256, at one of 1,024 places.
        hits = names[fnv(names) & np.uint64(0x3FC00) == 0]
        found += [bytes(one) for one in hits]
    return found[:count]


_SPREAD: Final = 0x3C79AC492BA7B653
_WORD: Final = (1 << 64) - 1


def mixed(value: int) -> int:
    """The mixing of connections' ends in kwire 0.1.0: shifts of signed numbers, and a multiplication."""

    def signed(one: int) -> int:
        return one - (1 << 64) if one >> 63 else one

    value = (value ^ (signed(value) >> 29)) & _WORD
    value = value * _SPREAD & _WORD
    return (value ^ (signed(value) >> 32)) & _WORD


def colliding_hosts(count: int) -> list[bytes]:
    """IPv6 addresses whose halves together make one number: hash(high) + low is the same for all of them."""
    some = random.Random(1)
    highs = [some.getrandbits(64) for _ in range(count)]
    return [struct.pack(">QQ", high, (12345 - mixed(high)) & _WORD) for high in highs]


def clustered_hosts(count: int) -> Iterator[End]:
    """IPv4 addresses and ports that begin to look among the same 512 places for the connection to ``BROKER``."""
    some = np.random.Generator(np.random.PCG64(2))
    numbers = np.uint64

    def spread(value: Any) -> Any:  # ``mixed``, by the column
        value = (value ^ (value.astype(np.int64) >> 29).astype(numbers)) * numbers(_SPREAD)
        return value ^ (value.astype(np.int64) >> 32).astype(numbers)

    broker = mixed((mixed((mixed(0) + int.from_bytes(BROKER[0], "big")) & _WORD) + BROKER[1]) & _WORD)
    with np.errstate(over="ignore"):
        while count > 0:
            hosts = some.integers(1 << 32, size=MiB, dtype=numbers)
            ports = some.integers(1024, 65536, size=MiB, dtype=numbers)
            own = spread(spread(hosts + numbers(mixed(0))) + ports)
            hits = np.flatnonzero(spread(own + numbers(broker)) & numbers(0x1FE00) == 0)[:count]
            count -= len(hits)
            for host, port in zip(hosts[hits].tolist(), ports[hits].tolist(), strict=True):
                yield struct.pack(">I", host), port


def pairs(count: int, ask: Callable[[int], bytes], answer: Callable[[int], bytes], *, backwards: bool = False) -> bytes:
    """Requests and their responses, in order or the last first."""
    order = range(count - 1, -1, -1) if backwards else range(count)
    return talk(b"".join(sized(ask(k)) for k in range(count)), b"".join(sized(answer(k)) for k in order))


GOOD: Final = sized(request(3, 0, METADATA, number=0, client=b"test"))


def after_a_good_one(packets: Iterable[bytes]) -> bytes:
    """A request by which the connection is known to be Kafka's, and packets."""
    return pcap([*opened(), *stream(GOOD), *packets])


def every_other_byte(count: int) -> Iterator[bytes]:
    """Bytes one by one, every other missing, so that all of them wait."""
    for k in range(count):
        yield packet(CLIENT, BROKER, 1001 + len(GOOD) + 2 * k + 1, b"x")


def to_one_long_name(count: int) -> bytes:
    """Headers of requests that all end where the same long client id begins, which is none."""
    end = 14 * count
    made = [struct.pack(">ihhih", end - 14 * k - 4, 3, 0, 1, -1) for k in range(count)]
    return b"".join(made) + struct.pack(">ihhih", 8000, 3, 0, 1, 4096) + b"c" * 4095 + b"\1"


def block(kind: int, body: bytes = b"") -> bytes:
    """A block of pcapng."""
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


SECTION: Final = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE: Final = block(1, struct.pack("<HHI", 101, 0, 0))
TABLES: Final = ("frames", "messages", "partitions", "records", "batches", "report")
PACKETS: Final = ("frames", "connections", "splits", "packets")
"""What reads packets with which there is no frame."""


def sasl_tokens(token: bytes, count: int) -> bytes:
    """SaslHandshake v0, after which both sides send tokens that are no frames."""
    return talk(sized(request(17, 0, text(b"PLAIN"))) + sized(token) * count, sized(response(17, 0, bytes(6))))


def after_a_gap(unit: bytes, size: int) -> bytes:
    """A good request, missing bytes, then bytes in which frames are looked for."""
    return after_a_good_one(stream(filled(unit, size), seq=200_000))


def nested_headers(layers: int) -> bytes:
    """A packet with as many IPv6 extension headers as it holds."""
    inner = struct.pack(">HHIIBBHHH", 1, 9092, 1, 0, 0x50, ACK, 0, 0, 0)
    chain = struct.pack(">BB6x", 60, 0) * (layers - 1) + struct.pack(">BB6x", 6, 0)
    return struct.pack(">IHBB16s16s", 6 << 28, len(chain) + len(inner), 60, 64, bytes(16), bytes(16)) + chain + inner


def gre_in_gre(layers: int) -> bytes:
    """IP in GRE in IP in GRE ..."""
    made = packet(CLIENT, BROKER, 1)
    for _ in range(layers):
        made = struct.pack(">HH", 0, 0x0800) + made
        made = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(made), 0, 0, 64, 47, 0, CLIENT[0], BROKER[0]) + made
    return made


def every_layout() -> bytes:
    """The shortest request of every API and version."""
    made = []
    for name in schema.names():
        one = schema.message(name)
        if one.kind == "request" and one.api_key is not None:
            made += [
                sized(request(one.api_key, v, _shortest(model.layout(one, v), False), number=k))
                for k, v in enumerate(one.versions)
            ]
    return talk(b"".join(made))


def many_sets(names: Iterable[bytes], records: bytes) -> bytes:
    """Produce v3 with a topic for each name, and one record set in each."""
    one = struct.pack(">iii", 1, 0, len(records)) + records
    sets = [text(name) + one for name in names]
    body = struct.pack(">hhii", -1, 0, 1000, len(sets)) + b"".join(sets)
    return talk(sized(request(0, 3, body)))


def many_partitions(topic: bytes, count: int, records: bytes) -> bytes:
    """Produce v3 with one topic and the same record set in so many partitions."""
    sets = b"".join(struct.pack(">ii", k, len(records)) + records for k in range(count))
    body = struct.pack(">hhii", -1, 0, 1000, 1) + text(topic) + struct.pack(">i", count) + sets
    return talk(sized(request(0, 3, body)))


def _wrong_at_its_end(data: bytes) -> bytes:
    return data[:-6] + b"\xff\xff" + data[-4:]


def _captures() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes], readers: tuple[str, ...] = (), damaged: bool = False) -> Attack:
        return Attack(f"capture: {name}", "capture", make, readers, damaged=damaged, framed=readers != PACKETS)

    def ask(k: int) -> bytes:
        return request(3, 0, METADATA, number=k)

    def answer(k: int) -> bytes:
        return response(3, 0, bytes(8), k)

    yield add(
        "client ids with one hash",
        lambda: talk(
            b"".join(
                sized(request(3, 0, METADATA, number=k, client=name))
                for k, name in enumerate(colliding_names(n(65_000)))
            )
        ),
    )
    yield add("gzip, members of nothing", lambda: gzip.compress(b"") * n(50_000), ("lines",), damaged=True)
    yield add(
        "gzip with a wrong checksum",
        lambda: _wrong_at_its_end(gzip.compress(many_sets([b"t"], b""))),
        ("lines",),
        damaged=True,
    )
    yield add(
        "gzip with a wrong checksum, random bytes",
        lambda: _wrong_at_its_end(gzip.compress(random.Random(1).randbytes(n(1_000_000)))),
        ("lines",),
        damaged=True,
    )
    yield add("topics with one hash", lambda: many_sets(colliding_names(n(32_000)), b""), TABLES)
    yield add(
        "topics with one hash, a record each", lambda: many_sets(colliding_names(n(32_000)), batch(SMALL, 1)), TABLES
    )
    yield add(
        "IPv6 hosts with one hash",
        lambda: pcap(packet((host, 40000), (bytes(16), 9092), 1, flags=SYN) for host in colliding_hosts(n(60_000))),
        PACKETS,
    )
    yield add(
        "IPv4 hosts with near hashes",
        lambda: pcap(packet(end, BROKER, 1, flags=SYN) for end in clustered_hosts(n(60_000))),
        PACKETS,
    )
    yield add(
        "connections of one packet",
        lambda: pcap(packet((struct.pack(">I", k), 1), BROKER, 1, flags=SYN) for k in range(n(60_000))),
        PACKETS,
    )
    yield add(
        "connections of one request",
        lambda: pcap(packet((struct.pack(">I", k), 1), BROKER, 1, sized(ask(k))) for k in range(n(30_000))),
    )
    yield add(
        "the same ports again and again",
        lambda: pcap(packet(CLIENT, BROKER, 1000 * k, flags=SYN) for k in range(n(60_000))),
        PACKETS,
    )
    yield add("requests without a response", lambda: talk(b"".join(sized(ask(k)) for k in range(n(15_000)))))
    yield add(
        "heartbeats without a response",
        lambda: talk(b"".join(sized(struct.pack(">hhih", 18, 0, k, -1)) for k in range(n(60_000)))),
    )
    yield add(
        "heartbeats without a response, a packet each",
        lambda: talk(b"".join(sized(struct.pack(">hhih", 18, 0, k, -1)) for k in range(n(14_000))), mss=14),
    )
    yield add(
        "topic ids, all different",
        lambda: talk(GOOD + b"".join(sized(fetch_by_id(k)) for k in range(n(12_000)))),
        TABLES,
    )
    yield add("requests of one id", lambda: talk(b"".join(sized(ask(1)) for _ in range(n(60_000)))))
    yield add("responses in reverse", lambda: pairs(n(30_000), ask, answer, backwards=True))
    yield add(
        "responses to nothing", lambda: talk(sized(ask(0)), b"".join(sized(answer(-k)) for k in range(n(80_000))))
    )
    yield add("responses of 8 bytes", lambda: talk(sized(ask(0)), sized(response(12, 0, b"", 7)) * n(130_000)))
    yield add(
        "responses of 6 bytes of body",
        lambda: pairs(n(60_000), lambda k: request(12, 0, bytes(8), number=k), lambda k: response(12, 0, bytes(2), k)),
    )
    yield add("SASL tokens of no bytes", lambda: sasl_tokens(b"", n(250_000)))
    yield add("SASL tokens of one byte", lambda: sasl_tokens(b"\0", n(200_000)))
    yield add(
        "frames that are not UTF-8",
        lambda: talk(
            b"".join(sized(request(3, 0, struct.pack(">i", 1) + text(b"\xff"), number=k)) for k in range(n(40_000)))
        ),
    )
    yield add(
        "frames that are wrong",
        lambda: talk(
            GOOD
            + b"".join(sized(request(3, 0, struct.pack(">ih", 1, 9), number=k, client=b"c")) for k in range(n(40_000)))
        ),
    )
    yield add(
        "client ids that are not UTF-8",
        lambda: talk(
            b"".join(sized(request(3, 0, METADATA, number=k, client=b"\xff%d" % k)) for k in range(n(40_000)))
        ),
    )
    yield add(
        "long client ids, all different",
        lambda: talk(
            b"".join(sized(request(3, 0, METADATA, number=k, client=b"%04d" % k + b"c" * 4000)) for k in range(n(250)))
        ),
    )
    yield add(
        "unknown APIs",
        lambda: talk(sized(ask(0)) + b"".join(sized(request(999, 0, b"", number=k)) for k in range(n(60_000)))),
    )
    yield add("every layout once", every_layout)
    yield add("bytes one by one", lambda: talk(b"".join(sized(ask(k)) for k in range(n(1_000))), mss=1))
    yield add("bytes one by one, half of them missing", lambda: after_a_good_one(every_other_byte(n(18_000))))
    yield add(
        "one segment over and over",
        lambda: pcap([*opened(), *[packet(CLIENT, BROKER, 1001, sized(ask(0)) + b"\0")] * n(15_000)]),
    )
    yield add(
        "segments that overlap",
        lambda: after_a_good_one(packet(CLIENT, BROKER, 1101 + k, bytes(1000)) for k in reversed(range(n(1000)))),
    )
    yield add(
        "each frame after a gap",
        lambda: pcap([*opened(), *(packet(CLIENT, BROKER, 1001 + 1000 * k, sized(ask(k))) for k in range(n(14_000)))]),
    )
    yield add(
        "after a gap: starts of long frames",
        lambda: after_a_gap(struct.pack(">ihhih", n(1_000_000), 3, 0, 1, 0), n(MiB)),
    )
    yield add("after a gap: starts of short frames", lambda: after_a_gap(struct.pack(">ihhih", 40, 3, 0, 1, 4), n(MiB)))
    yield add("after a gap: sizes", lambda: after_a_gap(b"\0\0\1\0", n(MiB)))
    yield add("after a gap: zeros", lambda: after_a_gap(b"\0", n(MiB)))
    yield add(
        "after a gap: requests that lead to one long name",
        lambda: after_a_good_one(stream(to_one_long_name(n(74_000)), seq=200_000)),
    )
    yield add(
        "after a gap: responses among 10,000 requests",
        lambda: pcap(
            [
                *opened(),
                *stream(b"".join(sized(ask(k + 5000)) for k in range(n(10_000)))),
                *stream(filled(b"\0\0\0\x10", n(MiB)), 1, 200_000),
            ]
        ),
    )
    yield add(
        "responses to nothing among 10,000 requests",
        lambda: talk(b"".join(sized(ask(k)) for k in range(n(10_000))), sized(answer(-1)) * n(60_000)),
    )
    yield add("packets of no bytes", lambda: pcap(b"" for _ in range(n(65_000))), PACKETS)
    yield add("IPv6 extension headers", lambda: pcap([nested_headers(4000)] * n(32)), PACKETS)
    yield add("GRE in GRE", lambda: pcap([gre_in_gre(1000)] * n(40)), PACKETS)
    yield add("pcapng of interfaces", lambda: SECTION + filled(INTERFACE, n(MiB)), PACKETS)
    yield add("pcapng of sections", lambda: filled(SECTION, n(MiB)), PACKETS)
    yield add("pcapng of sections with an interface", lambda: filled(SECTION + INTERFACE, n(MiB)), PACKETS)
    yield add("pcapng of unknown blocks", lambda: SECTION + filled(block(77), n(MiB)), PACKETS)
    yield add(
        "pcapng of options",
        lambda: SECTION + block(1, struct.pack("<HHI", 101, 0, 0) + filled(struct.pack("<HHI", 9, 1, 6), n(MiB))),
        PACKETS,
    )
    yield add(
        "a client id of 32 kB and responses",
        lambda: pairs(n(30), lambda k: request(3, 0, METADATA, number=k, client=b"c" * (32_000 if k else 1)), answer),
    )


# --- TLS --------------------------------------------------------------------------------------------------------------

KEYS: Final = made13([]).keys
HELLO, ANSWER = hello13(0x1301)
JUNK: Final = b"\x17\3\3\0\x20" + bytes(32)
"""A record that no key opens."""


def with_keys(packets: Iterable[bytes], keys: bytes = KEYS) -> bytes:
    """A pcapng that holds the secrets of its connections."""
    made = [SECTION, INTERFACE, block(10, struct.pack("<II", 0x544C534B, len(keys)) + keys + bytes(-len(keys) % 4))]
    for k, one in enumerate(packets):
        head = struct.pack("<5I", 0, k >> 32, k & 0xFFFFFFFF, len(one), len(one))
        made.append(block(6, head + one + bytes(-len(one) % 4)))
    return b"".join(made)


def over_tls(count: int, behind: bytes, missing: int = 0, side: int = 1, answer: bytes = ANSWER) -> Iterator[bytes]:
    """Connections that say hello, then the same bytes behind a hole."""
    for k in range(count):
        client = struct.pack(">I", 0x0A000100 + k), 40000
        ends = (client, BROKER), (BROKER, client)
        greetings = HELLO, answer
        for who in (0, 1):
            if greetings[who]:
                yield packet(*ends[who], 1001, greetings[who])
        for at in range(0, len(behind), 32_000):
            yield packet(*ends[side], 1001 + len(greetings[side]) + missing + at, behind[at : at + 32_000])


def sealed(records: Iterable[tuple[int, bytes]]) -> bytes:
    """What a client says behind its handshake, by types of records."""
    wire: Talk = made13([])
    end = Sealing(0x1301, bytes((0, 2)) * 16)
    said = b"".join(data for who, data in wire.wire[:4] if who == 0) + b"".join(end.sealed(*one) for one in records)
    return said[len(HELLO) :]


def key_updates(count: int) -> bytes:
    """KeyUpdates, each with the key that the one before has brought."""
    end, made = Sealing(0x1301, bytes((0, 2)) * 16), []
    for _ in range(count):
        made.append(end.sealed(22, handshake(24, b"\0")))
        end.update()
    return sealed([]) + b"".join(made)


def without(label: bytes) -> bytes:
    return b"".join(line for line in KEYS.splitlines(keepends=True) if label not in line)


def _tls() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"TLS: {name}", "capture", make, ("frames", "connections", "messages"), framed=False)

    yield add("a key and a hole", lambda: with_keys(over_tls(1, JUNK, 300_000)))
    yield add("a key and a hole, 40 connections", lambda: with_keys(over_tls(40, JUNK, 300_000)))
    yield add("a key and a hole, 3,000 connections", lambda: with_keys(over_tls(n(3000), JUNK, 300_000)))
    yield add("records behind a hole", lambda: with_keys(over_tls(1, JUNK * n(25_000), 300_000)))
    yield add("long records behind a hole", lambda: with_keys(over_tls(1, clear(23, bytes(16_000)) * n(60), 1 << 30)))
    yield add(
        "starts of records behind a hole", lambda: with_keys(over_tls(1, b"\x17\3\3\0\x20" * n(200_000), 1 << 30))
    )
    yield add("a key and a record, 3,000 connections", lambda: with_keys(over_tls(n(3000), JUNK)))
    yield add("hellos of clients alone", lambda: with_keys(over_tls(n(4000), clear(20, b"\1") + JUNK, 0, 0, b"")))
    yield add(
        "records of no bytes where some may be passed over",
        lambda: with_keys(over_tls(4, clear(23, b"") * n(50_000)), without(b"SERVER_HANDSHAKE")),
    )
    yield add(
        "small records where some may be passed over",
        lambda: with_keys(over_tls(4, clear(23, bytes(17)) * n(11_000)), without(b"SERVER_HANDSHAKE")),
    )
    yield add("many KeyUpdates in a record", lambda: with_keys(over_tls(n(60), packed_updates(), 0, 0)))
    yield add("a KeyUpdate in each record", lambda: with_keys(over_tls(8, key_updates(n(4000)), 0, 0)))
    yield add("records of a byte", lambda: with_keys(over_tls(1, sealed([(23, b"x")] * n(40_000)), 0, 0)))
    yield add("records of no plaintext", lambda: with_keys(over_tls(1, sealed([(23, b"")] * n(40_000)), 0, 0)))
    endless = clear(22, b"\1\xff\xff\xff")
    for name, wrap in (("without keys", pcap), ("with keys", with_keys)):
        for side, kind in ((0, b"\1"), (1, b"\2")):
            yield add(
                f"a hello in records of a byte, {'client' if side == 0 else 'server'}, {name}",
                lambda wrap=wrap, side=side, kind=kind: wrap(
                    [
                        *opened(),
                        *stream(clear(22, kind + b"\xff\xff\xff"), side),
                        *stream(clear(22, b"x") * n(4_000), side, 1010, 1),
                    ]
                ),
            )
        yield add(
            f"hellos without an end, 3,000 connections, {name}",
            lambda wrap=wrap: wrap(
                packet((struct.pack(">I", 0x0A000100 + k), 1), BROKER, 1001 + at, part)
                for at, part in ((0, endless), (len(endless), clear(22, b"x")), (len(endless) + 6, clear(22, b"xx")))
                for k in range(n(3_000))
            ),
        )
        yield add(
            f"hellos over and over, {name}",
            lambda wrap=wrap: wrap(
                over_tls(1, b"".join(HELLO[:11] + struct.pack(">I", k) + HELLO[15:] for k in range(n(9_000))), 0, 0)
            ),
        )


def packed_updates() -> bytes:
    return sealed([(22, handshake(24, b"\0") * 3200)])


# --- Fragments --------------------------------------------------------------------------------------------------------


def fragment(number: int, at: int, more: bool, data: bytes) -> bytes:
    flags = (0x2000 if more else 0) | at // 8
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), number & 0xFFFF, flags, 64, 6, 0)
    return head + struct.pack(">I", 0x0A000000 + (number >> 16)) + BROKER[0] + data


def _fragments() -> Iterator[Attack]:
    def add(name: str, one: Callable[[int], bytes]) -> Attack:
        return Attack(f"fragments: {name}", "capture", lambda: pcap(map(one, range(n(24_000)))), PACKETS, framed=False)

    yield add("each of another packet", lambda k: fragment(k, 8, True, bytes(8)))
    yield add("one packet after the other", lambda k: fragment(k // 8000, 8 * (k % 8000), True, bytes(8)))
    yield add("backwards", lambda k: fragment(k // 8000, 8 * (8000 - k % 8000), True, bytes(8)))
    yield add("pairs", lambda k: fragment(k // 2, 8 * (k % 2), k % 2 == 0, bytes(8)))
    yield add("one over and over", lambda k: fragment(1, 8, True, bytes(8)))


def _topics() -> Iterator[Attack]:
    def add(name: str, topic: bytes, make: Callable[[], bytes]) -> Attack:
        return Attack(f"topic: {name}", "topics", make, ("records",), topic=topic)

    def small(count: int) -> Callable[[], bytes]:
        return lambda: batch(SMALL * n(count), n(count))

    long = b"t" * 32_000
    for count in (9_000, 70_000, 140_000):
        yield add(f"32 kB, {count:,} records of 7 bytes", long, small(count))
    yield add("32 kB, records of 7 bytes, zstd", long, lambda: zstd_batch(SMALL))
    yield add(
        "32 kB of control characters, each record wrong",
        b"\1" * 32_000,
        lambda: batch(WRONG * n(9_000), n(9_000)),
    )
    yield add("32 kB, empty values, wrong checksum", long, lambda: batch(SMALL * n(9_000), n(9_000), crc=1))


# --- Events -----------------------------------------------------------------------------------------------------------


def headers(*several: tuple[bytes, bytes]) -> bytes:
    return varint(len(several)) + b"".join(varint(len(n)) + n + varint(len(v)) + v for n, v in several)


CORE: Final = ((b"ce_specversion", b"1.0"), (b"ce_id", b"1"), (b"ce_source", b"s"), (b"ce_type", b"t"))
EVENT: Final = b'{"specversion":"1.0","id":"1","source":"s","type":"t",'
JSON: Final = headers((b"content-type", b"application/cloudevents+json"))


def structured(value: bytes, times: int = 1) -> bytes:
    """Records of one structured event; ``value`` is what its member ``x`` is."""
    event = EVENT + b'"x":' + value + b"}"
    return batch(record(event, JSON) * times, times)


def structured_data(value: bytes) -> bytes:
    event = EVENT + b'"data":' + value + b"}"
    return batch(record(event, JSON), 1)


def _events() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes], readers: tuple[str, ...] = ("cloudevents", "events")) -> Attack:
        return Attack(f"CloudEvents: {name}", "events", make, readers)

    yield add("events of core attributes", lambda: batch(record(headers=headers(*CORE)) * n(15_000), n(15_000)))
    yield add(
        "one bad attribute of 5 bytes", lambda: batch(record(headers=headers((b"ce_", b""))) * n(80_000), n(80_000))
    )
    yield add("one bad attribute, zstd", lambda: zstd_batch(record(headers=headers((b"ce_", b"")))))
    yield add(
        "an extension of its own in each",
        lambda: batch(
            b"".join(record(headers=headers(*CORE, (b"ce_x%05d" % k, b"v"))) for k in range(n(12_000))), n(12_000)
        ),
    )
    yield add(
        "bad attributes by the thousand in one",
        lambda: batch(record(headers=headers(*((b"ce_%05d-" % k, b"\xff") for k in range(n(60_000))))), 1),
    )
    yield add(
        "extensions by the thousand in one",
        lambda: batch(record(headers=headers(*CORE, *((b"ce_x%05d" % k, b"v") for k in range(n(60_000))))), 1),
    )
    yield add("one attribute twice, often", lambda: batch(record(headers=headers(*[(b"ce_a", b"")] * n(100_000))), 1))
    yield add("JSON of 5,000 digits", lambda: structured(b"1" * 5000, n(100)))
    yield add(
        "JSON of 4,000 digits as data",
        lambda: structured_data(b"[" + b"1" * 4000 + b"," + filled(b"1" * 4000 + b",", n(MiB)) + b"1]"),
    )
    yield add("JSON numbers with large exponents", lambda: structured_data(b"[" + filled(b"1e308,", n(MiB)) + b"1]"))
    yield add("JSON in brackets", lambda: structured_data(b"[" * n(500_000) + b"]" * n(500_000)))
    yield add(
        "JSON of 900 brackets, often",
        lambda: batch(record(EVENT + b'"data":' + b"[" * 900 + b"]" * 900 + b"}", JSON) * n(500), n(500)),
    )
    yield add("JSON of empty lists", lambda: structured_data(b"[" + filled(b"[],", n(MiB)) + b"1]"))
    yield add("JSON of empty objects", lambda: structured_data(b"[" + filled(b"{},", n(MiB)) + b"1]"))
    yield add(
        "JSON of members",
        lambda: batch(
            record(
                json.dumps(
                    {"specversion": "1.0", "id": "1", "source": "s", "type": "t"}
                    | {f"x{k}": 1 for k in range(n(100_000))}
                ).encode(),
                JSON,
            ),
            1,
        ),
    )
    yield add(
        "JSON of bad members",
        lambda: batch(
            record(json.dumps({"specversion": "1.0"} | {f"X-{k}": [] for k in range(n(80_000))}).encode(), JSON), 1
        ),
    )
    yield add(
        "JSON of one member, over and over", lambda: batch(record(b"{" + filled(b'"":0,', n(MiB)) + b'"":0}', JSON), 1)
    )
    yield add("JSON of escapes", lambda: structured_data(b'"' + filled(rb"\u0001", n(MiB)) + b'"'))
    yield add("JSON as value, no content type", lambda: batch(record(b"{}") * n(100_000), n(100_000)))
    yield add(
        "base64 of data", lambda: batch(record(EVENT + b'"data_base64":"' + b"AAAA" * n(250_000) + b'"}', JSON), 1)
    )
    yield add(
        "a batch of events",
        lambda: batch(
            record(
                b"[" + filled(b"{},", n(MiB)) + b"{}]",
                headers((b"content-type", b"application/cloudevents-batch+json")),
            ),
            1,
        ),
    )
    yield add(
        "times of many digits",
        lambda: batch(
            record(headers=headers(*CORE, (b"ce_time", b"2024-01-01T00:00:00." + b"1" * n(900_000) + b"Z"))), 1
        ),
    )
    yield add(
        "a source of a megabyte",
        lambda: batch(
            record(headers=headers(*CORE[:2], (b"ce_source", b"a:" + b"%20/" * n(250_000) + b"|"), CORE[3])), 1
        ),
    )
    yield add(
        "a content type of a megabyte",
        lambda: batch(record(headers=headers(*CORE, (b"content-type", b"a/b;" + b'a="\\' * n(250_000)))), 1),
    )
    yield add(
        "a content type of blanks",
        lambda: batch(record(headers=headers(*CORE, (b"content-type", b" " * 60_000 + b"x"))) * n(16), n(16)),
    )

    def hono(name: str, make: Callable[[], bytes], topic: bytes = b"hono.telemetry.t") -> Attack:
        return Attack(f"Hono: {name}", "events", make, ("hono",), topic=topic)

    yield hono("records of 7 bytes", lambda: batch(SMALL * n(140_000), n(140_000)))
    yield hono("records of 7 bytes, zstd", lambda: zstd_batch(SMALL))
    yield hono("records of 7 bytes, no tenant", lambda: batch(SMALL * n(140_000), n(140_000)), b"hono.telemetry.")
    yield hono("a tenant of 32 kB", lambda: batch(SMALL * n(9_000), n(9_000)), b"hono.telemetry." + b"t" * 32_000)
    yield hono(
        "devices, all different",
        lambda: batch(
            b"".join(
                record(b"v", headers((b"device_id", b"%05d" % k), (b"content-type", b"a/b")), b"%05d" % k)
                for k in range(n(25_000))
            ),
            n(25_000),
        ),
    )
    yield hono(
        "two headers twice",
        lambda: batch(record(headers=headers(*[(b"qos", b"")] * 2, *[(b"ttl", b"")] * 2)) * n(40_000), n(40_000)),
    )
    yield hono("one header by the thousand", lambda: batch(record(headers=headers(*[(b"ttl", b"")] * n(150_000))), 1))
    yield hono(
        "numbers of many digits",
        lambda: batch(
            record(headers=headers((b"ttl", b"1" * 4000), (b"creation-time", b"1" * 4000), (b"qos", b"1" * 4000)))
            * n(80),
            n(80),
        ),
    )

    yield Attack(
        "Hono: one device on many partitions",
        "capture",
        lambda: many_partitions(
            b"hono.telemetry.t",
            n(8_000),
            batch(record(headers=headers((b"device_id", b"d"), (b"content-type", b"a/b"))), 1),
        ),
        ("hono",),
    )


# --- Client telemetry -------------------------------------------------------------------------------------------------


def proto(number: int, content: bytes) -> bytes:
    """A field of protobuf with a length."""
    return uvarint(number << 3 | 2) + uvarint(len(content)) + content


def otlp(metrics: bytes, resource: bytes = b"", scopes: int = 1) -> bytes:
    """MetricsData of one resource; ``metrics`` as in a scope."""
    return proto(1, (proto(1, resource) if resource else b"") + proto(2, metrics) * scopes)


def gauge(points: bytes, name: bytes = b"m") -> bytes:
    return proto(2, proto(1, name) + proto(5, points))


def push(metrics: bytes, codec: int = 0, number: int = 1) -> bytes:
    """A PushTelemetry request."""
    packed = zstd(metrics) if codec == 4 else metrics
    body = bytes(16) + struct.pack(">i?b", 7, False, codec) + uvarint(len(packed) + 1) + packed + b"\0"
    return request(72, 0, body, number=number)


def subscription(metrics: Iterable[bytes]) -> tuple[bytes, bytes]:
    """A request for a subscription and its answer, which asks for ``metrics``."""
    wanted = [uvarint(len(one) + 1) + one for one in metrics]
    answer = struct.pack(">ih16si", 0, 0, bytes(15) + b"\1", 7) + b"\1" + struct.pack(">ii?", 1000, 1000, False)
    answer += uvarint(len(wanted) + 1) + b"".join(wanted) + b"\0"
    return request(71, 0, bytes(16) + b"\0"), response(71, 0, answer)


def subscribed(metrics: Iterable[bytes], data: bytes, times: int = 1, codec: int = 0) -> bytes:
    """A capture in which a client pushes what it was asked for."""
    asked, answered = subscription(metrics)
    some = b"".join(sized(push(data, codec, 2 + k).replace(bytes(16), bytes(15) + b"\1", 1)) for k in range(times))
    whole = sized(asked)
    packets = [*opened(), *stream(whole), *stream(sized(answered), 1), *stream(some, seq=1001 + len(whole))]
    return pcap(packets)


def nested_value(levels: int) -> bytes:
    """An attribute whose value is a list of a list of ..."""
    value = b""
    for _ in range(levels):
        value = proto(5, proto(1, value))
    return proto(1, proto(1, b"k") + proto(2, value))


def _telemetry() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"telemetry: {name}", "metrics", make)

    def capture(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"telemetry: {name}", "capture", make, ("client_metrics", "messages"))

    empty = proto(1, b"")

    def long() -> bytes:
        return proto(1, proto(1, b"k") + proto(2, proto(1, b"v" * n(300_000))))

    yield add("points of 2 bytes", lambda: otlp(gauge(filled(empty, n(190_000)))))
    yield add("metrics of 2 bytes", lambda: otlp(filled(proto(2, b""), n(500_000))))
    yield add("scopes of 2 bytes", lambda: otlp(b"", scopes=n(250_000)))
    yield add("resources of 2 bytes", lambda: filled(empty, n(500_000)))
    yield add("attributes of 2 bytes", lambda: otlp(gauge(empty), filled(empty, n(500_000))))
    yield add("an attribute of 300 kB, points of 2 bytes", lambda: otlp(gauge(filled(empty, n(190_000))), long()))
    yield add(
        "a metric's name of 300 kB, points of 2 bytes",
        lambda: otlp(gauge(filled(empty, n(190_000)), b"m" * n(300_000))),
    )
    yield add("lists in lists", lambda: otlp(gauge(empty), nested_value(45)))
    yield add("lists in lists, often", lambda: otlp(gauge(empty), nested_value(45) * n(2000)))
    yield add("lists in lists, too deep", lambda: otlp(gauge(empty), nested_value(300)))
    yield add(
        "empty values in a list",
        lambda: otlp(gauge(empty), proto(1, proto(1, b"k") + proto(2, proto(5, filled(empty, n(500_000)))))),
    )
    yield add(
        "histograms of buckets",
        lambda: otlp(filled(proto(2, proto(9, proto(1, proto(6, bytes(8 * 100)) + proto(7, bytes(8 * 99))))), n(MiB))),
    )
    yield add(
        "exponential histograms",
        lambda: otlp(
            filled(proto(2, proto(10, proto(1, proto(8, b"\x10\xff\xff\xff\xff\7" + proto(2, b"\1" * 9_000))))), n(MiB))
        ),
    )
    yield add("quantiles of 2 bytes", lambda: otlp(proto(2, proto(11, proto(1, filled(proto(6, b""), n(500_000)))))))
    yield add("unknown fields", lambda: filled(b"\xf8\1\0", n(500_000)))
    yield capture(
        "a bomb of points, 100 times",
        lambda: subscribed([b""], otlp(gauge(filled(empty, n(190_000))), proto(1, proto(1, b"k"))), 100, 4),
    )
    yield capture(
        "300 kB for each point, zstd, 100 times",
        lambda: subscribed([b""], otlp(gauge(filled(empty, n(190_000))), long()), 100, 4),
    )
    yield capture(
        "32,000 metrics asked for, points of 2 bytes",
        lambda: subscribed((b"%x" % k for k in range(n(5_000))), otlp(gauge(filled(empty, n(190_000))))),
    )
    yield capture(
        "asked for, each metric another",
        lambda: subscribed((b"z%x" % k for k in range(n(5_000))), otlp(filled(gauge(empty, b""), n(500_000)))),
    )
    yield capture(
        "5,000 metrics asked for, pushes of one point",
        lambda: subscribed((b"%d" % k for k in range(n(5_000))), otlp(gauge(empty)), n(4_000)),
    )
    yield capture("a metric asked for that is not UTF-8", lambda: subscribed([b"\xff"], otlp(gauge(empty))))
    yield capture("pushes of nothing", lambda: subscribed([b""], b"", n(20_000)))
    yield capture("pushes of bombs", lambda: subscribed([b""], bytes(REFUSED), n(600), 4))
    yield capture(
        "pushes of bombs of one attribute", lambda: subscribed([b""], otlp(proto(99, bytes(8 * MiB - 32))), n(600), 4)
    )


# --- Segments ---------------------------------------------------------------------------------------------------------


def segment(each: Callable[[int, bytes], bytes], count: int = 2000, size: int = 150) -> bytes:
    """Batches of one record, with offsets, each after it has been damaged."""
    some = random.Random(3)
    made = []
    for k in range(n(count)):
        good = batch(record(some.randbytes(size)), 1)
        made.append(each(k, struct.pack(">q", k) + good[8:]))
    return b"".join(made)


def _segments() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes], readers: tuple[str, ...] = ()) -> Attack:
        return Attack(f"segment: {name}", "segment", make, readers)

    yield add(
        "every other length is wrong",
        lambda: segment(lambda k, one: one[:8] + b"\x7f\xff\xff\xff" + one[12:] if k % 2 else one),
    )
    yield add("every length is too small", lambda: segment(lambda k, one: one[:8] + b"\0\0\0\1" + one[12:]))
    yield add(
        "every length is too large by one",
        lambda: segment(lambda k, one: one[:8] + struct.pack(">i", len(one) - 11) + one[12:]),
    )
    yield add("an unknown magic in each", lambda: segment(lambda k, one: one[:16] + b"\x09" + one[17:]))
    yield add("five bytes between batches", lambda: segment(lambda k, one: one + b"abcde"))
    yield add(
        "headers of batches in a value",
        lambda: segment(lambda k, one: one, 5) + batch(SMALL, 1)[:-1] + filled(batch(SMALL, 1)[:61], n(MiB)),
    )
    yield add("starts of long batches", lambda: filled(struct.pack(">qiibI", 1, n(800_000), 0, 2, 0), n(MiB)))
    yield add("small batches in damage", lambda: b"\0\0\2\0" * n(20_000) + segment(lambda k, one: one, 500))
    yield add("0 0 2 0", lambda: filled(b"\0\0\2\0", n(MiB)))
    yield add("zeros", lambda: bytes(n(MiB)))

    def internal(name: str, make: Callable[[], bytes]) -> Attack:
        topic = name.partition(",")[0]
        return Attack(f"segment: {name}", "segment", make, ("deep",), topic=topic.encode())

    def offsets(name: str, make: Callable[[], bytes]) -> Attack:
        return internal(f"__consumer_offsets, {name}", make)

    yield internal(
        "__transaction_state, keys of no bytes",
        lambda: batch(record(struct.pack(">hqhi", 0, 0, 0, 0), key=b"\0\0\0\0") * n(40_000), n(40_000)),
    )
    yield internal(
        "__transaction_state, a transaction of many partitions",
        lambda: batch(
            record(
                struct.pack(">hqhibi", 0, 0, 0, 0, 0, n(150_000)) + bytes(6 * n(150_000)) + bytes(16), key=b"\0\0\0\1t"
            ),
            1,
        ),
    )
    yield internal("__cluster_metadata, values of 4 bytes", lambda: batch(record(b"\1\x14\0\0") * n(90_000), n(90_000)))
    yield internal(
        "__cluster_metadata, values that are cut off", lambda: batch(record(b"\1\3\0") * n(90_000), n(90_000))
    )
    yield internal("__cluster_metadata, tags of 2 bytes", lambda: batch(record(b"\1\x14\0" + tags(n(300_000))), 1))
    yield offsets("2-byte keys", lambda: batch(record(b"\0\1", key=b"\0\1") * n(80_000), n(80_000)))
    yield offsets(
        "keys that are read",
        lambda: batch(record(struct.pack(">hqhq", 1, 1, 0, 0), key=b"\0\1\0\0\0\0\0\0\0\0") * n(30_000), n(30_000)),
    )
    yield offsets(
        "a group of many members",
        lambda: batch(
            record(struct.pack(">hhihhi", 0, 0, 0, -1, -1, n(90_000)) + bytes(12 * n(90_000)), key=b"\0\2\0\1g"), 1
        ),
    )


# --- Schemas ----------------------------------------------------------------------------------------------------------


def definition(fields: list[Any], **more: Any) -> bytes:
    """One of Kafka's JSON definitions."""
    head = {"type": "data", "name": "Hostile", "validVersions": "0", "flexibleVersions": "none", "fields": fields}
    return json.dumps(head | more).encode()


def field(name: str, type_: str = "int8", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "versions": "0+"} | more


def levels(count: int, type_: str = "S{}") -> list[Any]:
    """Structs in structs."""
    made: list[Any] = [field("x")]
    for k in range(count):
        made = [field(f"s{k}", type_.format(k), fields=made)]
    return made


def doubling(count: int) -> bytes:
    """Structs that hold the next one twice."""
    structs = [
        {"name": f"S{k}", "versions": "0+", "fields": [field("a", f"S{k + 1}"), field("b", f"S{k + 1}")]}
        for k in range(count)
    ]
    structs.append({"name": f"S{count}", "versions": "0+", "fields": [field("x")]})
    return definition([field("a", "S0")], commonStructs=structs)


def schema_doubling(count: int) -> bytes:
    """The same as schema text, where a struct is written once and named twice."""
    lines = ["data Hostile versions 0"]
    for k in range(count):
        lines.append("  " * (k + 1) + f"a{k} S{k}")
    lines.append("  " * (count + 1) + "x int8")
    for k in range(count - 1, -1, -1):
        lines.append("  " * (k + 1) + f"b{k} S{k}")
    return "\n".join(lines).encode()


def columns_of_fields(count: int, versions: str) -> bytes:
    return (f"data Hostile versions {versions}\n" + "".join(f"  f{k} int8\n" for k in range(count))).encode()


def jar(count: int, content: bytes, suffix: str = ".json") -> bytes:
    """A zip file of so many entries and a definition."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as into:
        for k in range(count):
            into.writestr(zipfile.ZipInfo(f"{k}{suffix}"), content, zipfile.ZIP_DEFLATED)
        into.writestr(zipfile.ZipInfo("good.json"), definition([field("a")]))
    return made.getvalue()


def _schemas() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"schema: {name}", "schema", make)

    def kafka(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"definition: {name}", "definition", make)

    yield add(
        "messages by the thousand", lambda: b"".join(b"data D%d versions 0\n  a int8\n" % k for k in range(4_000))
    )
    yield add("one name by the thousand", lambda: b"data D versions 0\n" * 5_000)
    yield add("1,000 fields", lambda: columns_of_fields(1000, "0"))
    yield add("1,000 fields, 30,000 versions", lambda: columns_of_fields(1000, "0-30000"))
    yield add("30,000 versions", lambda: b"data D versions 0-30000\n  a int8\n")
    yield add(
        "30,000 versions, often", lambda: b"".join(b"data D%d versions 0-30000\n  a int8\n" % k for k in range(900))
    )
    yield add("comments", lambda: filled(b"# a\n", 100_000) + b"data D versions 0\n  a int8\n")
    yield add(
        "versions of comments",
        lambda: (
            b"".join(b"# v%d a KIP-1\n" % (k % 30_000) for k in range(n(30_000)))
            + (b"data D versions 0-30000\n  a int8\n")
        ),
    )
    yield add(
        "structs in structs",
        lambda: (
            b"data D versions 0\n"
            + b"\n".join(b"  " * (k + 1) + b"a%d S%d" % (k, k) for k in range(n(900)))
            + b"\n"
            + b"  " * (n(900) + 1)
            + b"x int8\n"
        ),
    )
    yield add("structs that hold each other twice", lambda: schema_doubling(7))
    yield add("structs that hold each other twice, 30 levels", lambda: schema_doubling(30))
    yield add("a line of blanks", lambda: b"data D versions 0\n  a" + b" " * 9_000 + b"int8!\n")
    yield add("a default of digits", lambda: b"data D versions 0\n  a int64 = " + b"1" * 9_000 + b"\n")
    yield add("strings of quotes", lambda: b'data D versions 0\n  a string = "' + b'\\"' * 4_000 + b"\n")

    yield kafka("escaped quotes", lambda: b'{"validVersions":"0","name":"' + b'\\"' * 20_000)
    yield kafka("quotes and slashes", lambda: b'{"validVersions":"0","name":"\\\\' + b'" //' * 10_000)
    yield kafka("brackets", lambda: b'{"validVersions":"0","x":' + b"[" * 100_000)
    yield kafka("structs in structs", lambda: definition(levels(60)))
    yield kafka("arrays of structs in structs", lambda: definition(levels(7, "[]S{}")))
    yield kafka("structs that hold each other, 7 levels", lambda: doubling(6))
    yield kafka("structs that hold each other, 20 levels", lambda: doubling(20))
    yield kafka("structs that hold each other, 40 levels", lambda: doubling(40))
    yield kafka("an array of empty structs", lambda: definition([field("a", "[]S", fields=[])]))
    yield kafka(
        "an array of structs that are never there",
        lambda: definition([field("a", "[]S", fields=[field("x", versions="1+")])], validVersions="0-1"),
    )
    yield kafka("an array of empty arrays", lambda: definition([field("a", "[]S", fields=[field("b", "[]int8")])]))
    yield kafka("30,000 versions", lambda: definition([field("a")], validVersions="0-30000"))
    yield kafka("1,000 fields", lambda: definition([field(f"f{k}") for k in range(1000)]))
    yield kafka(
        "1,000 fields, 30,000 versions",
        lambda: definition([field(f"f{k}") for k in range(1000)], validVersions="0-30000"),
    )
    yield kafka("5,000 fields", lambda: definition([field(f"f{k}") for k in range(n(5000))]))
    yield kafka("a number of 5,000 digits", lambda: b'{"validVersions":"0","apiKey":' + b"1" * 5000 + b"}")
    yield kafka("a default of 5,000 digits", lambda: definition([field("a", "int64", default="1" * 5000)]))
    yield kafka("lists for words", lambda: definition([field("a", type=["int8"])], name=["x"], validVersions=["0"]))
    yield kafka("names that are commands", lambda: definition([field("y=[][__import__('os').system('false')],z")]))
    yield kafka("comments", lambda: filled(b"// x\n", n(500_000)) + definition([field("a")]))
    yield kafka("a jar of blanks", lambda: jar(n(1_000), b" " * 999_000))
    yield kafka("a jar of definitions", lambda: jar(n(4_000), definition([field("a")])))
    yield kafka("a jar of directories", lambda: jar(n(10_000), b"", "/"))
    yield kafka(
        "common structs",
        lambda: definition(
            [field("a", "S0")],
            commonStructs=[{"name": f"S{k}", "versions": "0+", "fields": [field("x")]} for k in range(n(5_000))],
        ),
    )


def _streams() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"stream: {name}", "stream", make)

    yield add("frames of no bytes", lambda: bytes(n(MiB)))
    yield add("frames of one byte", lambda: filled(b"\0\0\0\1x", n(MiB)))
    yield add("a frame of 16 MiB in small pieces", lambda: sized(bytes(n(16 * MiB))))
    yield add("a frame that is never whole", lambda: struct.pack(">i", 100 * MiB) + bytes(n(16 * MiB)))
    yield Attack("index: zeros", "index", lambda: bytes(n(MiB)))
    yield Attack("index: backwards", "index", lambda: filled(struct.pack(">qiqi", 1, 1, 0, 0), n(MiB)))


# --- States of streams ------------------------------------------------------------------------------------------------


def state(**more: Any) -> bytes:
    """What a state says besides connections."""
    common = {"now": 0, "brokers": [], "fragments": None}
    said = {"common": common, "topics": {}, "memory": {}, "place": 1, "begun": 0}
    return json.dumps(said | more).encode() + b"\n"


def connections(compression: str | None = None) -> bytes:
    """The table of a state: of one connection, or of many, with buffers that are compressed."""
    from kwire.capture.state import STATE
    from kwire.capture.tracker import Tracker

    made, sink = Tracker(), pa.BufferOutputStream()
    made.feed(talk(sized(request(3, 0, METADATA))))
    one = made.save(range(1))
    how = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, STATE, options=how) as writer:
        writer.write_table(pa.concat_tables([one] * (20_000 if compression else 1)).combine_chunks())
    return bytes(sink.getvalue())


def _states() -> Iterator[Attack]:
    def add(name: str, make: Callable[[], bytes]) -> Attack:
        return Attack(f"state: {name}", "state", make)

    memory = {"client_metrics": {"asked": [], "links": [], "instances": [], "subscriptions": []}}

    def asked() -> dict[str, Any]:
        return {"client_metrics": {**memory["client_metrics"], "asked": [[0, 0, "0" * 32, 0]] * n(20_000)}}

    yield add("nested", lambda: filled(b"[", n(MiB)) + b"\n")
    yield add("empty lists", lambda: state(place=[[]] * n(300_000)))
    yield add("topics", lambda: state(topics={f"{k:032x}": "" for k in range(n(20_000))}))
    yield add("brokers", lambda: state(common={"now": 0, "brokers": [[0, k, 1] for k in range(n(50_000))]}))
    yield add("memory", lambda: state(memory=asked()))
    yield add("zeros, compressed", lambda: state() + zstd(bytes(1024 * MiB)))
    yield add("buffers that are compressed too", lambda: state() + zstd(connections("zstd")))
    yield add("damaged connections", lambda: state() + zstd(connections()[:-5000] + bytes(5000)))


# --- Giants -----------------------------------------------------------------------------------------------------------


def _giants() -> Iterator[Attack]:
    yield from _bodies(127 * MiB, "giant", "128 MiB")


ATTACKS: Final[tuple[Attack, ...]] = (
    *_topics(),
    *_records(),
    *_messages(0),
    *_messages(1),
    *_bodies(MiB, "request", "request"),
    *_responses(),
    *_shared(),
    *_captures(),
    *_tls(),
    *_fragments(),
    *_events(),
    *_telemetry(),
    *_segments(),
    *_streams(),
    *_states(),
    *_schemas(),
    *_giants(),
)
assert len({one.name for one in ATTACKS}) == len(ATTACKS), "two attacks of one name"


# --- What is good -----------------------------------------------------------------------------------------------------


def _plain_set() -> bytes:
    """Record sets of every format and codec, with headers and with a damaged batch."""
    good = record(b"value", headers((b"a", b"b")), b"key") + record(b"more")
    made = b"".join(
        batch(packed, 2, codec)
        for codec, packed in (
            (0, good),
            (1, gzipped(good)),
            (2, bytes(cramjam.snappy.compress_raw(good))),
            (3, lz4.frame.compress(good)),
            (4, zstd(good)),
        )
    )
    made += batch(good, 2, crc=1) + batch(record(b"", key=b"\0\0\0\1"), 1, attributes=0x30)
    return made + b"".join(message(m, b"v") + message(m, gzipped(message(m, b"v") * 3), 1) for m in (0, 1))


def _plain_capture() -> bytes:
    """A little of everything: Metadata with answers, Produce, a push of telemetry, events."""
    point = proto(1, struct.pack("<Bd", 4 << 3 | 1, 1.0))
    asked = [
        request(3, 0, METADATA, number=1, client=b"test"),
        request(3, 9, b"\2\2t\0\0\0\0\0", number=2),
        request(0, 3, produce_body(_plain_set()), number=3),
        request(0, 3, produce_body(batch(record(headers=headers(*CORE)), 1), b"hono.telemetry.t"), number=4),
        push(otlp(gauge(point)), number=5),
    ]
    answered = [response(3, 0, bytes(8)), response(3, 9, b"\0\0\0\0\1\0\0\0\0\0\1\0\0\0\0\0", 2)]
    return talk(b"".join(map(sized, asked)), b"".join(map(sized, answered)), 200)


BENIGN: Final[dict[str, Callable[[], bytes]]] = {
    "records": _plain_set,
    "segment": lambda: b"".join(segment(lambda k, one: one, 3) for _ in range(2)) + b"abcde" + _plain_set(),
    "stream": lambda: sized(METADATA) * 3,
    "request": lambda: request(3, 9, b"\2\2t\0\0\0\0\0"),
    "response": lambda: response(3, 12, _shortest(model.layout(schema.message("MetadataResponse"), 12), False)),
    "capture": _plain_capture,
    "metrics": lambda: otlp(gauge(proto(1, b""))),
    "schema": lambda: b"data D versions 0-1\n  a int8\n  b [S]\n    c string? 1+\n",
    "definition": lambda: definition([field("a"), field("b", "[]S", fields=[field("c", "string")])]),
    "state": lambda: state() + zstd(connections()),
}
"""Small inputs of each kind, for what a process does only once."""
