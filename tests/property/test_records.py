"""Record sets under Hypothesis: they survive being written and read, and the two readers agree on damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kwire.errors import DecodeError
from kwire.records import CODECS, Limits, Record, decode, encode, encode_batch, to_arrow
from kwire.wire import printable

pytestmark = pytest.mark.usefixtures("engine")

LIMITS = Limits(decompressed=1 << 20, total=4 << 20)
"""Small, so that damage to a length inside of compressed data costs no time."""

FORMATS = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS if codec != "zstd" or magic == 2]
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
"""Milliseconds of the years 1 and 9999: what the timestamp column can show."""

contents = st.none() | st.binary(max_size=20) | st.integers(60, 70).map(lambda size: b"x" * size)
times = st.none() | st.integers(0, LAST) | st.integers(-(2**62), 2**62).filter(lambda value: value != -1)


headers = st.lists(st.tuples(st.text(max_size=5), contents), max_size=3)
forms = st.lists(st.tuples(st.text(max_size=5), st.none() | st.integers(0, 9) | st.integers(0, 70)), max_size=18)
"""Names and lengths: the records of a producer tend to have the same, and the columnar reader makes use of it."""


def of_form(form: list[tuple[str, int | None]]) -> st.SearchStrategy[list[tuple[str, bytes | None]]]:
    parts = [
        st.tuples(st.just(name), st.none() if size is None else st.binary(min_size=size, max_size=size))
        for name, size in form
    ]
    return st.tuples(*parts).map(list)


@st.composite
def record_lists(draw: Callable[..., Any], magic: int, least: int = 0) -> list[Record]:
    form = of_form(draw(forms))
    return draw(
        st.lists(
            st.builds(
                Record,
                contents,
                contents,
                timestamp=times if magic else st.none(),
                headers=form | form | headers if magic == 2 else st.just([]),
            ),
            min_size=least,
            max_size=8,
        )
    )


@st.composite
def record_sets(draw: Callable[..., Any]) -> bytes:
    """A few entries, of any format each."""
    parts = []
    for magic, codec in draw(st.lists(st.sampled_from(FORMATS), min_size=1, max_size=3)):
        options: dict[str, Any] = {"base_offset": draw(st.integers(0, 2**62))}
        if magic:
            options["log_append_time"] = draw(st.none() | st.integers(0, LAST))
        if magic == 2:
            options["is_control"] = draw(st.booleans())
            options["is_transactional"] = draw(st.booleans())
            options["producer_id"] = draw(st.sampled_from([-1, 7]))
            options["base_sequence"] = draw(st.sampled_from([-1, 0, 2**31 - 2]))
        records = draw(record_lists(magic, 0 if magic == 2 else 1))
        parts.append(encode(records, magic=magic, compression=codec, **options))
    return b"".join(parts)


@st.composite
def damaged(draw: Callable[..., Any]) -> bytes:
    data = bytearray(draw(record_sets()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at] = draw(st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255))
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    return bytes(data)


def shown(time: int | None) -> int | None:
    return time if time is not None and FIRST <= time <= LAST else None


def none(value: int) -> int | None:
    return None if value == -1 else value


def by_objects(data: bytes) -> tuple[list[tuple[Any, ...]], list[tuple[int | None, type]]]:
    problems: list[DecodeError] = []
    rows = [
        (
            one.offset,
            shown(one.timestamp),
            batch.timestamp_type,
            one.key,
            one.value,
            [(printable(name), value) for name, value in one.headers],
            batch.magic,
            batch.compression,
            one.crc_ok,
            batch.base_offset,
            none(batch.producer_id),
            none(batch.producer_epoch),
            batch.sequence(one),
            none(batch.partition_leader_epoch),
            batch.is_transactional,
            batch.is_control,
            batch.control_type(one),
        )
        for batch in decode(data, problems=problems, limits=LIMITS)
        for one in batch.records
    ]
    return rows, sorted(((one.offset, type(one)) for one in problems), key=str)


def by_columns(data: bytes) -> tuple[list[tuple[Any, ...]], list[tuple[int | None, type]]]:
    problems: list[DecodeError] = []
    made = to_arrow(data, problems=problems, limits=LIMITS)
    made.validate(full=True)
    columns = []
    for name in made.schema.names:
        column = made.column(name)
        if name == "timestamp":
            columns.append([None if time is None else time // 1000 for time in column.cast(pa.int64()).to_pylist()])
        elif name == "headers":
            columns.append([[(one["key"], one["value"]) for one in each] for each in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    return list(zip(*columns, strict=True)), sorted(((one.offset, type(one)) for one in problems), key=str)


@given(st.data())
def test_any_records_survive_any_format(data: st.DataObject) -> None:
    magic, codec = data.draw(st.sampled_from(FORMATS))
    records = data.draw(record_lists(magic, 0 if magic == 2 or codec == "none" else 1))
    made = encode(records, magic=magic, compression=codec, base_offset=3)
    batches = list(decode(made, verify_crc=True))
    got = [one for each in batches for one in each.records]
    for index, one in enumerate(records):
        one.offset = 3 + index
    assert got == records
    again = b"".join(encode_batch(each) for each in batches)
    assert list(decode(again)) == batches
    if codec == "none":
        assert again == made


@pytest.mark.wide
@given(damaged())
def test_objects_and_columns_agree_on_whole_and_damaged_input(data: bytes) -> None:
    assert by_columns(data) == by_objects(data)


@given(st.binary(max_size=200))
def test_objects_and_columns_agree_on_noise(data: bytes) -> None:
    assert by_columns(data) == by_objects(data)


@pytest.mark.wide
@given(record_sets(), st.data())
def test_a_flipped_byte_is_noticed_or_lies_outside_of_the_checksum(data: bytes, draw: st.DataObject) -> None:
    before = list(decode(data))
    at = draw.draw(st.integers(0, len(data) - 1))
    bad = bytearray(data)
    bad[at] ^= draw.draw(st.integers(1, 255))
    (hit,) = (each for each in before if each.position <= at < each.position + each.size)
    # Offset and length of any entry, and the leader epoch of a batch: brokers change them, no checksum covers them.
    # The magic byte of a batch is not covered either, but what it makes of the batch is checked.
    assume(at - hit.position >= (16 if hit.magic == 2 else 12))
    problems: list[DecodeError] = []
    after = list(decode(bytes(bad), problems=problems, limits=LIMITS))
    rows, _ = by_columns(bytes(bad))
    assert problems or not all(each.crc_ok for each in after)
    assert all(row[8] for row in rows) == all(one.crc_ok for each in after for one in each.records)
    # What stands before and behind it is untouched.
    assert [each for each in after if each.position != hit.position] == [each for each in before if each is not hit]
