"""Edges of record sets that brokers do not reach; each test stands for a change of code that no other test noticed."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from record_sets import batch, gzipped, message, record

from kwire.errors import DecodeError, LimitError
from kwire.limits import Limits
from kwire.records import Batch, Record, decode, encode, encode_batch, to_arrow
from kwire.records.columnar import decode_batches

MOST = 2**63 - 1


def offsets(data: bytes) -> list[int]:
    """Of both readers."""
    found = [one.offset for each in decode(data, problems=[]) for one in each.records]
    rows = to_arrow(data, columns=["offset"], problems=[]).column(0).to_pylist()
    assert found == rows
    return found  # type: ignore[return-value]


def test_a_last_offset_wraps_as_kafkas_does() -> None:
    data = batch(record(offset=0) + record(offset=5), 2, base_offset=MOST - 1, last_delta=5)
    (one,) = decode(data)
    assert one.last_offset == -MOST - 1 + 3
    assert offsets(data) == [MOST - 1, -MOST - 1 + 3]


def test_as_many_wrappers_as_the_limit_are_opened() -> None:
    data = message(b"deep")
    for _ in range(2):
        data = message(None, gzipped(data), attributes=1)
    for limits in (Limits(nesting=2), Limits(nesting=3)):
        assert [one.key for each in decode(data, limits=limits) for one in each.records] == [b"deep"]
        assert to_arrow(data, limits=limits).column("key").to_pylist() == [b"deep"]
    with pytest.raises(LimitError):
        list(decode(data, limits=Limits(nesting=1)))
    with pytest.raises(LimitError):
        to_arrow(data, limits=Limits(nesting=1))


def bad(offset: int) -> bytes:
    """A message whose key is longer than the message."""
    good = bytearray(message(offset=offset))
    good[26:30] = struct.pack(">i", 1000)
    good[12:16] = struct.pack(">I", zlib.crc32(good[16:]))
    return bytes(good)


def test_the_base_offset_counts_from_the_last_message_although_it_is_bad() -> None:
    data = message(None, gzipped(message(offset=0) + message(offset=2) + bad(7)), attributes=1, offset=1007)
    assert offsets(data) == [1000, 1002]


def unpacked(wrapper: bytes) -> list[tuple[int, int, int]]:
    """(offset, attributes, timestamp) of the messages inside of a gzip wrapper of magic 1."""
    (size,) = struct.unpack_from(">i", wrapper, 30)
    inner, found, pos = zlib.decompress(wrapper[34 : 34 + size], 31), [], 0
    while pos < len(inner):
        offset, length, _, _, attributes, time = struct.unpack_from(">qiIbbq", inner, pos)
        found.append((offset, attributes, time))
        pos += 12 + length
    return found


def test_offsets_inside_of_a_wrapper_are_relative_to_its_base() -> None:
    data = encode([Record(key=b"%d" % n, timestamp=n) for n in range(3)], magic=1, compression="gzip", base_offset=1000)
    assert struct.unpack_from(">q", data) == (1002,)
    assert [one[0] for one in unpacked(data)] == [0, 1, 2]
    assert offsets(data) == [1000, 1001, 1002]


def test_messages_inside_of_a_wrapper_have_no_codec_of_their_own() -> None:
    one = Batch(magic=1, attributes=1, base_offset=5, last_offset=6)
    one.records = [Record(key=b"a", offset=5, timestamp=1, attributes=3), Record(key=b"b", offset=6, timestamp=2)]
    one.records[1].attributes = 2 | 8
    data = encode_batch(one)
    assert [each[1] for each in unpacked(data)] == [0, 8]
    assert offsets(data) == [5, 6]


@pytest.mark.parametrize(
    ("time", "offset", "found"),
    [
        (b"\x02", b"\x84\x80\x80\x80\x70", (2, 1001)),
        (b"\x82\x80\x80\x80\x80\x80\x80\x80\x80\x7e", b"\x04", (2, 1001)),
        (b"\x82\x80\x80\x80\x10", b"\x04", (2, 1001 + (1 << 31))),
    ],
)
def test_bits_of_a_records_numbers_beyond_32_and_64_are_lost(
    time: bytes, offset: bytes, found: tuple[int, int]
) -> None:
    body = b"\0" + time + offset + b"\x02k\x02v\0"
    data = batch(bytes([2 * len(body)]) + body, 1, last_delta=2)
    (one,) = [each for made in decode(data) for each in made.records]
    rows = to_arrow(data, columns=["offset", "timestamp"])
    assert (one.offset, one.timestamp) == found
    assert (rows["offset"].to_pylist(), rows["timestamp"].cast("int64").to_pylist()) == ([found[0]], [found[1] * 1000])


def test_a_wrapper_whose_offset_the_broker_has_not_set_has_no_base() -> None:
    data = message(None, gzipped(message(offset=0) + message(offset=1)), attributes=1, offset=0)
    assert offsets(data) == [0, 1]
    assert [one.base_offset for one in decode(data)] == [0]


def test_records_of_a_batch_without_a_producer_have_no_sequence_number() -> None:
    (found,) = decode(encode([Record(b"a"), Record(b"b")]))
    assert [found.sequence(one) for one in found.records] == [None, None]
    (found,) = decode(encode([Record(b"a"), Record(b"b")], producer_id=1, producer_epoch=0, base_sequence=7))
    assert [found.sequence(one) for one in found.records] == [7, 8]
    assert found.sequence(Record(b"a")) is None


def test_what_was_decompressed_before_counts_against_the_total() -> None:
    one = encode([Record(value=bytes(1000), timestamp=1)], compression="gzip")
    inside = len(zlib.decompress(one[61:], 31))
    # As many as fit, and one more: the sets of a call share the total.
    for most in (1, 3):
        limits = Limits(total=most * inside)
        assert len(list(decode(one * most, limits=limits))) == most
        problems: list[DecodeError] = []
        found = [len(each.records) for each in decode(one * (most + 1), limits=limits, problems=problems)]
        assert found == [1] * most + [0]
        assert [type(each) for each in problems] == [LimitError]
        assert "limit total" in str(problems[0])
        problems.clear()
        assert to_arrow(one * (most + 1), limits=limits, problems=problems).num_rows == most
        assert [(type(each), each.offset) for each in problems] == [(LimitError, most * len(one))]


def test_sizes_of_batches_are_those_of_their_own_set() -> None:
    plain, packed = batch(record(value=b"v" * 100) * 3, 3), encode([Record(b"k", b"v" * 500)] * 4, compression="gzip")
    inner = message(b"k", b"v" * 300, magic=1)
    wrapped, single = message(None, gzipped(inner), magic=1, attributes=1), message(b"k", b"v", magic=1)
    sets = [plain, packed + plain, wrapped, single, packed]
    lengths = np.array([len(one) for one in sets], np.int64)
    starts = np.cumsum(lengths) - lengths
    found = decode_batches(np.frombuffer(b"".join(sets), np.uint8), starts, lengths)
    records, unpacked = len(plain) - 61, 4 * len(record(value=b"v" * 500))
    assert found.set_index.tolist() == [0, 1, 1, 2, 3, 4]
    assert found.stored.tolist() == [
        records,
        len(packed) - 61,
        records,
        len(gzipped(inner)),
        len(single),
        len(packed) - 61,
    ]
    assert found.unpacked.tolist() == [records, unpacked, records, len(inner), len(single), unpacked]
    assert found.records.tolist() == [3, 4, 3, 1, 1, 4]


def test_a_record_without_a_header_count_is_none_although_a_zero_follows() -> None:
    problems: list[DecodeError] = []
    # What follows is the next batch, whose first byte is 0.
    data = batch(record() + b"\x0a\0\0\0\1\1", 2) + batch(record(), 1)
    assert to_arrow(data, problems=problems).num_rows == 2
    assert [one.message for one in problems] == ["record 1: a field is longer than the record"]
