"""Record sets written by ``encode`` and ``encode_batch``."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.errors import DecodeError, EncodeError
from kwire.records import CODECS, Batch, Codec, Record, control_key, decode, encode, encode_batch, to_arrow

pytestmark = pytest.mark.usefixtures("engine")

FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS if codec != "zstd" or magic == 2]


def records(magic: int, count: int = 20) -> list[Record]:
    return [
        Record(
            None if index % 5 == 0 else b"k" * (index % 3),
            None if index % 7 == 0 else b"value" * (index % 4),
            timestamp=1_700_000_000_000 + index * (-1) ** index if magic else None,
            headers=[("name", b"x"), ("näme", None)] if magic == 2 and index % 2 else [],
        )
        for index in range(count)
    ]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_records_survive_every_format(magic: int, codec: Codec) -> None:
    sent = records(magic)
    data = encode(sent, magic=magic, compression=codec, base_offset=1000)
    batches = list(decode(data, verify_crc=True))
    got = [one for each in batches for one in each.records]
    assert [(one.key, one.value, one.timestamp, one.headers) for one in got] == [
        (one.key, one.value, one.timestamp, one.headers) for one in sent
    ]
    assert [one.offset for one in got] == list(range(1000, 1020))
    assert {each.compression for each in batches} == {codec}
    assert {each.magic for each in batches} == {magic}
    assert len(batches) == (1 if magic == 2 or codec != "none" else 20)
    made = to_arrow(data)
    assert made.column("offset").to_pylist() == list(range(1000, 1020))
    assert made.column("key").to_pylist() == [one.key for one in sent]
    assert all(made.column("crc_ok").to_pylist())


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_what_was_decoded_is_written_again(magic: int, codec: Codec) -> None:
    data = encode(records(magic), magic=magic, compression=codec, base_offset=7)
    again = b"".join(encode_batch(each) for each in decode(data))
    if codec == "none":
        assert again == data
    assert list(decode(again)) == list(decode(data))


def test_every_field_of_a_batch_is_written_again() -> None:
    batch = Batch(
        [Record(b"k", b"v", offset=105, timestamp=900, attributes=3)],
        attributes=16 | 32 | 64 | 0x1000,
        base_offset=100,
        last_offset=120,
        base_timestamp=1000,
        max_timestamp=5000,
        partition_leader_epoch=9,
        producer_id=2**40,
        producer_epoch=4,
        base_sequence=55,
    )
    data = encode_batch(batch)
    (again,) = decode(data, verify_crc=True)
    assert again == batch
    assert encode_batch(again) == data


def test_an_empty_batch_is_written_with_any_codec() -> None:
    for codec in CODECS:
        (batch,) = decode(encode([], compression=codec, base_offset=4))
        assert (batch.records, batch.compression, batch.size) == ([], codec, 61)


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_log_append_time_overrides_the_timestamps(magic: int, codec: Codec) -> None:
    data = encode(records(magic), magic=magic, compression=codec, log_append_time=123_456)
    for batch in decode(data):
        assert batch.timestamp_type == "LogAppendTime"
        assert {one.timestamp for one in batch.records} == {123_456}
    assert set(to_arrow(data).column("timestamp_type").to_pylist()) == {"LogAppendTime"}
    if codec == "none":
        batches = list(decode(data))
        again = b"".join(map(encode_batch, batches))
        assert list(decode(again)) == batches


def test_a_delete_horizon_does_not_change_the_timestamps() -> None:
    (batch,) = decode(encode(records(2), delete_horizon=42))
    assert batch.has_delete_horizon
    assert batch.base_timestamp == 42
    assert [one.timestamp for one in batch.records] == [one.timestamp for one in records(2)]


def test_idempotent_transactional_and_control_batches() -> None:
    marker = Record(control_key("commit"), b"\0\0\0\0\0\x05", timestamp=1)
    (batch,) = decode(
        encode([marker], producer_id=9, producer_epoch=2, is_transactional=True, is_control=True, base_sequence=-1)
    )
    assert (batch.producer_id, batch.producer_epoch, batch.is_transactional, batch.is_control) == (9, 2, True, True)
    assert batch.control_type(batch.records[0]) == "commit"
    assert batch.sequence(batch.records[0]) is None


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_gaps_between_offsets_are_kept(magic: int, codec: Codec) -> None:
    sent = [Record(b"a", offset=50), Record(b"b"), Record(b"c", offset=90)]
    data = encode(sent, magic=magic, compression=codec, base_offset=50)
    assert [one.offset for each in decode(data) for one in each.records] == [50, 51, 90]
    assert to_arrow(data).column("offset").to_pylist() == [50, 51, 90]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (lambda: encode([Record(headers=[("h", b"")])], magic=1), "no headers"),
        (lambda: encode([Record(timestamp=5)], magic=0), "no timestamp"),
        (lambda: encode([Record()], magic=1, producer_id=5), "no producer"),
        (lambda: encode([Record()], magic=1, partition_leader_epoch=5), "no partition leader epoch"),
        (lambda: encode([Record()], magic=3), "magic 3"),
        (lambda: encode([Record()], magic=1, compression="zstd"), "zstd is not defined"),
        (lambda: encode([Record()], compression="brotli"), "no codec 'brotli'"),
        (lambda: encode([Record()], compression="gzip", level=11), "no level 11"),
        (lambda: encode([Record()], compression="snappy", level=1), "no level 1"),
        (lambda: encode([], magic=1, compression="gzip"), "at least one message"),
        (lambda: encode([Record(offset=2**31)]), "too far from the base offset"),
        (lambda: encode([Record(timestamp=0), Record(timestamp=2**63)]), "too far from the base timestamp"),
        (lambda: encode([Record()], base_offset=2**63), "does not fit"),
        (lambda: encode([Record()], magic=1, base_offset=2**63), "does not fit"),
        (lambda: encode([Record(attributes=256)]), "do not fit one byte"),
        (lambda: encode_batch(Batch([Record()], magic=1, attributes=16 << 4)), "do not fit one byte"),
        (lambda: encode_batch(Batch([Record(), Record()], magic=1)), "one record, not 2"),
        (lambda: encode_batch(Batch(magic=4)), "magic 4"),
        (lambda: encode_batch(Batch(attributes=6)), "codec 6"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(code: object, text: str) -> None:
    assert callable(code)
    with pytest.raises(EncodeError, match=text):
        code()


def test_levels_reach_the_codec() -> None:
    sent = [Record(value=b"".join(b"%d %d, " % (each * each, each % 77) for each in range(20_000)))]
    assert len(encode(sent, compression="gzip", level=9)) < len(encode(sent, compression="gzip", level=1))
    assert len(encode(sent, compression="zstd", level=19)) < len(encode(sent, compression="zstd", level=1))
    assert len(encode(sent, compression="lz4", level=12)) < len(encode(sent, compression="lz4", level=1))


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize(
    ("wrong", "path", "said"),
    [
        (Record("k", b"v"), "key", "expected bytes or None, not str: encode() makes them of text"),  # type: ignore[arg-type]
        (Record(b"k", "v"), "value", "expected bytes or None, not str: encode() makes them of text"),  # type: ignore[arg-type]
        (Record(b"k", 5), "value", "expected bytes or None, not int"),  # type: ignore[arg-type]
        (Record(b"k", b"v", timestamp="now"), "timestamp", "expected an int or None, not str"),  # type: ignore[arg-type]
        (Record(b"k", b"v", offset="1"), "offset", "expected an int or None, not str"),  # type: ignore[arg-type]
        ((b"k", b"v"), "", "expected a Record, not tuple"),
    ],
)
def test_a_field_of_a_wrong_type_is_an_error_with_its_path(
    magic: int, codec: Codec, wrong: Record, path: str, said: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        encode([Record(b"k", b"v"), wrong], magic=magic, compression=codec)
    assert caught.value.path == "$.records[1]" + (f".{path}" if path else "")
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("headers", "path", "said"),
    [
        ([("h", "v")], "[0][1]", "expected bytes or None, not str: encode() makes them of text"),
        ([("a", b""), (b"h", b"v")], "[1][0]", "expected a string, not bytes"),
        ([("a", b"", 1)], "[0]", "expected a name and a value, not tuple"),
        (["ab"], "[0]", "expected a name and a value, not str"),
    ],
)
def test_a_header_of_a_wrong_type_is_an_error_with_its_path(headers: list[Any], path: str, said: str) -> None:
    for write in (lambda one: encode([one]), lambda one: encode_batch(Batch([one]))):
        with pytest.raises(EncodeError) as caught:
            write(Record(b"k", b"v", headers=headers))
        assert (caught.value.path, caught.value.message) == (f"$.records[0].headers{path}", said)


@pytest.mark.parametrize("wrong", [None, "text", 5, ["a"]])
def test_what_is_no_bytes_is_an_error_that_says_so(wrong: Any) -> None:
    with pytest.raises(DecodeError, match=f"expected bytes, not {type(wrong).__name__}"):
        list(decode(wrong))
