"""kwire's record sets against those of kafka-python and aiokafka, in both directions."""

from __future__ import annotations

import random

import pytest
from aiokafka.record import default_records as aio_default
from aiokafka.record import legacy_records as aio_legacy
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from kwire.records import CODECS, Codec, Record, decode, encode, encode_batch

pytestmark = pytest.mark.usefixtures("engine")

# The peers have these five.
FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS[:5] if codec != "zstd" or magic == 2]


def sample(magic: int, count: int = 300) -> list[Record]:
    some = random.Random(magic)
    return [
        Record(
            some.choice((None, b"", some.randbytes(some.randrange(200)))),
            some.choice((None, b"", some.randbytes(some.randrange(20_000)) if index % 50 == 0 else b"text" * 30)),
            timestamp=1_700_000_000_000 + some.randrange(-(10**9), 10**9) if magic else None,
            headers=[("n" * each, some.choice((None, b"", b"x" * each))) for each in range(some.choice((0, 0, 1, 70)))]
            if magic == 2
            else [],
        )
        for index in range(count)
    ]


def by_kafka_python(records: list[Record], magic: int, codec: Codec) -> bytes:
    extra = {"transactional": True, "producer_id": 4000, "producer_epoch": 3, "base_sequence": 17} if magic == 2 else {}
    builder = MemoryRecordsBuilder(magic=magic, compression_type=CODECS.index(codec), batch_size=1 << 30, **extra)
    for one in records:
        if magic == 2:
            builder.append(timestamp=one.timestamp, key=one.key, value=one.value, headers=one.headers)
        else:
            builder.append(timestamp=one.timestamp, key=one.key, value=one.value)
    builder.close()
    return bytes(builder.buffer())


def by_aiokafka(records: list[Record], magic: int, codec: Codec) -> bytes:
    if magic == 2:
        builder = aio_default.DefaultRecordBatchBuilder(
            magic=2,
            compression_type=CODECS.index(codec),
            is_transactional=1,
            producer_id=4000,
            producer_epoch=3,
            base_sequence=17,
            batch_size=1 << 30,
        )
    else:
        builder = aio_legacy.LegacyRecordBatchBuilder(magic, CODECS.index(codec), 1 << 30)
    for offset, one in enumerate(records):
        builder.append(offset, one.timestamp, one.key, one.value, headers=one.headers)
    return bytes(builder.build())


def pairs(kafka_python: object, aiokafka: object) -> list[tuple[object, int, Codec]]:
    """Every format with both libraries; aiokafka does not do LZ4 in magic 0."""
    theirs = [(one, magic, codec) for one in (kafka_python, aiokafka) for magic, codec in FORMATS]
    return [each for each in theirs if each != (aiokafka, 0, "lz4")]


def what(records: list[Record]) -> list[tuple[object, ...]]:
    return [(one.key, one.value, one.timestamp, [(name, value) for name, value in one.headers]) for one in records]


@pytest.mark.parametrize("build", [by_kafka_python, by_aiokafka])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_uncompressed_bytes_are_the_same(magic: int, build: object) -> None:
    assert callable(build)
    records = sample(magic)
    theirs = build(records, magic, "none")
    extra = {}
    if magic == 2:
        # Which partition leader epoch a producer writes is its own choice: the broker sets it.
        (batch,) = decode(theirs)
        extra = {"partition_leader_epoch": batch.partition_leader_epoch, "is_transactional": True}
        extra |= {"producer_id": 4000, "producer_epoch": 3, "base_sequence": 17}
    assert encode(records, magic=magic, **extra) == theirs
    assert b"".join(encode_batch(each) for each in decode(theirs, verify_crc=True)) == theirs


@pytest.mark.parametrize(("build", "magic", "codec"), pairs(by_kafka_python, by_aiokafka))
def test_what_they_write_is_read(magic: int, codec: Codec, build: object) -> None:
    assert callable(build)
    records = sample(magic)
    got = [one for each in decode(build(records, magic, codec), verify_crc=True) for one in each.records]
    assert what(got) == what(records)
    assert [one.offset for one in got] == list(range(len(records)))


@pytest.mark.parametrize(("reader", "magic", "codec"), pairs(MemoryRecords, AioRecords))
def test_they_read_what_is_written(magic: int, codec: Codec, reader: type) -> None:
    records = sample(magic)
    data = encode(records, magic=magic, compression=codec, base_offset=500)
    theirs = reader(data)
    got = []
    while (batch := theirs.next_batch()) is not None:
        assert batch.validate_crc()
        got += list(batch)
    assert [
        (
            one.key,
            one.value,
            None if one.timestamp in (None, -1) else one.timestamp,
            [tuple(each) for each in one.headers],
        )
        for one in got
    ] == what(records)
    assert [one.offset for one in got] == list(range(500, 500 + len(records)))
