"""Primitive types outside of messages: varints, uuids, text and bytes, the times that can be shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from kwire import wire
from kwire.errors import DecodeError


def test_the_times_that_can_be_shown_are_those_of_datetime():
    began = datetime(1970, 1, 1, tzinfo=UTC)
    first, last = datetime.min.replace(tzinfo=UTC) - began, datetime.max.replace(tzinfo=UTC) - began
    for unit, shown in (
        (timedelta(milliseconds=1), (wire.FIRST_MS, wire.LAST_MS)),
        (timedelta(microseconds=1), (wire.FIRST_US, wire.LAST_US)),
    ):
        assert shown == (first // unit, last // unit)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 4095, 4096, 16383, 16384, 2**28 - 1, 2**28, 2**32 - 1])
def test_an_unsigned_varint_is_read_as_it_is_written(value: int) -> None:
    data = wire.pack_uvarint(value)
    assert wire.read_uvarint(b"\xff" + data, 1) == (value, 1 + len(data))
    assert len(data) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize("value", [-1, 2**32])
def test_what_is_no_unsigned_varint_is_not_written(value: int) -> None:
    with pytest.raises(ValueError, match=f"{value} does not fit an unsigned varint"):
        wire.pack_uvarint(value)


@pytest.mark.parametrize("size", range(6))
def test_a_varint_that_is_cut_off_or_too_long_is_none(size: int) -> None:
    with pytest.raises(IndexError if size < 5 else ValueError):
        wire.read_uvarint(b"\x80" * size, 0)


@pytest.mark.parametrize(
    ("value", "length"),
    [(0, -1), (1, 0), (2**31 - 1, 2**31 - 2), (2**31, 2**31 - 1), (2**31 + 1, -(2**31)), (2**32 - 1, -2)],
)
def test_a_compact_length_is_one_less_and_an_int_of_java(value: int, length: int) -> None:
    assert wire.compact_length(value) == length


def test_a_uuid_has_two_texts() -> None:
    one = UUID(int=0x0123456789ABCDEF_FEDCBA9876543210)
    assert wire.uuid_text(one) == "ASNFZ4mrze_-3LqYdlQyEA"
    assert wire.parse_uuid(wire.uuid_text(one)) == wire.parse_uuid(str(one)) == one
    # Kafka's Uuid.fromString knows the alphabet for URLs alone.
    other = "ASNFZ4mrze/+3LqYdlQyEA"
    for wrong in (other, "ASNFZ4mrze_-3LqYdlQy!A", "ASNFZ4mrze_-3LqYdlQy A", "x" * 21, "", "ASNFZ4mrze_-3LqYdlQyEA="):
        with pytest.raises(ValueError, match=r".+"):
            wire.parse_uuid(wrong)


def test_equal_uuids_are_one_object_and_few_are_kept() -> None:
    data = [n.to_bytes(16, "big") for n in range(wire._UuidMemo.LIMIT + 10)]
    assert wire.uuid_from_bytes(data[0]) is wire.uuid_from_bytes(bytes(data[0]))
    made = [wire.uuid_from_bytes(one) for one in data]
    assert [one.bytes for one in made] == data
    assert len(wire._UUIDS) <= wire._UuidMemo.LIMIT
    assert all(one is wire.uuid_from_bytes(one.bytes) for one in made[-10:])


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain é", "plain é"), ("a\udcff\udcc3", "a\ufffd\ufffd"), ("a\ud800b", "a\ufffdb"), ("\udcc3\udca9", "é")],
)
def test_text_for_people_is_valid_unicode(text: str, shown: str) -> None:
    assert wire.printable(text) == shown


def test_bytes_are_taken_from_what_has_them_and_from_nothing_else() -> None:
    data = b"abc"
    assert wire.as_bytes(data, "frame") is data
    assert wire.as_bytes(bytearray(data), "frame") == wire.as_bytes(memoryview(data), "frame") == data
    for wrong, said in (
        (3, "expected bytes, not int$"),
        ("ab", "not str: bytes.fromhex and base64.b64decode make them"),
    ):
        with pytest.raises(DecodeError, match=said) as caught:
            wire.as_bytes(wrong, "frame")  # type: ignore[arg-type]
        assert caught.value.layout == "frame"


def test_attributes_of_a_batch_have_the_bits_that_kafka_gives_them() -> None:
    # org.apache.kafka.common.record.DefaultRecordBatch: three bits of a codec, then a flag in each bit.
    flags = (wire.LOG_APPEND_TIME, wire.TRANSACTIONAL, wire.CONTROL, wire.DELETE_HORIZON)
    assert (wire.CODEC, *flags) == (0b111, *(1 << bit for bit in (3, 4, 5, 6)))


def test_the_most_that_is_positive_is_that_of_an_int_of_java() -> None:
    assert wire.MOST_POSITIVE == 2**31 - 1
