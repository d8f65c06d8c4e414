"""Record sets made by another library, or by hand, read as objects and as columns."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from kafka.record.memory_records import MemoryRecordsBuilder
from record_sets import batch, gzipped, message, record

from kwire.errors import CorruptRecordError, DecodeError, EncodeError, LimitError
from kwire.kernels.engine import Engine
from kwire.records import (
    CODECS,
    SCHEMA,
    Batch,
    Codec,
    Limits,
    Record,
    decode,
    decode_sets,
    encode,
    encode_batch,
    to_arrow,
)
from kwire.records.compression import compress
from kwire.records.reader import _RECORD

pytestmark = pytest.mark.usefixtures("engine")


def offsets(data: bytes) -> list[int | None]:
    """The offsets in a record set, after making sure that both readers see the same ones."""
    found = [one.offset for each in decode(data) for one in each.records]
    assert to_arrow(data, columns=["offset"]).column(0).to_pylist() == found
    return found


def test_importing_records_does_not_import_the_array_libraries() -> None:
    code = (
        "import sys, kwire.records as r; list(r.decode(b'')); "
        "print([m for m in ('numpy', 'pyarrow', 'numba', 'lz4', 'zstandard', 'cramjam') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_empty_record_set_has_the_whole_schema_and_no_rows() -> None:
    made = to_arrow(b"")
    assert made.num_rows == 0
    assert made.schema == SCHEMA
    assert list(decode(b"")) == []


def test_every_field_of_a_record_batch_becomes_a_column() -> None:
    headers = ((b"h", b"1"), (b"h", None), ("é".encode(), b""))
    data = batch(
        record(None, b"", time=5, headers=headers) + record(b"", None, offset=4, time=-7),
        2,
        base_offset=100,
        attributes=16,
        producer=(77, 3, 2**31 - 2),
        last_delta=9,
    )
    first, second = to_arrow(data).to_pylist()
    assert first["offset"] == 100
    assert second["offset"] == 104
    assert [one["timestamp"].timestamp() for one in (first, second)] == [1.005, 0.993]
    assert (first["key"], first["value"], second["key"], second["value"]) == (None, b"", b"", None)
    assert first["headers"] == [
        {"key": "h", "value": b"1"},
        {"key": "h", "value": None},
        {"key": "é", "value": b""},
    ]
    assert second["headers"] == []
    assert (first["producer_id"], first["producer_epoch"], first["partition_leader_epoch"]) == (77, 3, 3)
    assert first["sequence"] == 2**31 - 2
    assert second["sequence"] == 2, "sequence numbers wrap to 0 after 2**31 - 1"
    assert first["is_transactional"]
    assert not first["is_control"]
    assert (first["magic"], first["compression"], first["timestamp_type"]) == (2, "none", "CreateTime")
    (one,) = decode(data)
    assert one.last_offset == 109
    assert [one.sequence(each) for each in one.records] == [2**31 - 2, 2]
    assert one.records[0].headers == [("h", b"1"), ("h", None), ("é", b"")]


def test_without_a_producer_its_columns_are_null() -> None:
    row = to_arrow(batch(record(), 1)).to_pylist()[0]
    assert (row["producer_id"], row["producer_epoch"], row["sequence"], row["control_type"]) == (None,) * 4


def test_log_append_time_is_the_max_timestamp_of_a_batch() -> None:
    data = batch(record(time=5), 1, attributes=8)
    row = to_arrow(data).to_pylist()[0]
    assert row["timestamp"].timestamp() == 2.0
    assert row["timestamp_type"] == "LogAppendTime"
    assert next(decode(data)).records[0].timestamp == 2000


def test_a_delete_horizon_is_what_timestamps_are_relative_to() -> None:
    (one,) = decode(batch(record(time=-400), 1, attributes=64))
    assert one.has_delete_horizon
    assert one.records[0].timestamp == 600


def test_no_timestamp_is_null() -> None:
    data = batch(record(), 1, times=(-1, -1)) + message(time=-1) + message(magic=0)
    assert to_arrow(data, columns=["timestamp"]).column(0).to_pylist() == [None] * 3
    assert [each.records[0].timestamp for each in decode(data)] == [None] * 3


def test_a_timestamp_that_spark_cannot_show_is_null_in_columns_and_kept_in_objects() -> None:
    data = batch(record(), 1, times=(1_700_000_000_000_000, 0))
    assert to_arrow(data, columns=["timestamp"]).column(0).null_count == 1
    assert next(decode(data)).records[0].timestamp == 1_700_000_000_000_000


def test_an_empty_batch_has_no_records_and_is_no_problem() -> None:
    data = batch(b"", 0, last_delta=41) + batch(b"", 0, attributes=1) + batch(record(), 1, base_offset=42)
    assert offsets(data) == [42]
    assert [len(each.records) for each in decode(data)] == [0, 0, 1]


@pytest.mark.parametrize(("number", "name"), [(0, "abort"), (1, "commit"), (6, "kraft_voters"), (9, "unknown(9)")])
def test_control_records_have_a_type(number: int, name: str) -> None:
    data = batch(record(struct.pack(">hh", 0, number), b"..."), 1, attributes=48) + batch(record(), 1)
    first, second = to_arrow(data).to_pylist()
    assert (first["control_type"], first["is_control"], first["is_transactional"]) == (name, True, True)
    assert (second["control_type"], second["is_control"]) == (None, False)
    one = next(decode(data))
    assert one.control_type(one.records[0]) == name


def test_a_control_record_with_a_short_key_has_no_type() -> None:
    data = batch(record(b"\0\0\0"), 1, attributes=32)
    assert to_arrow(data).to_pylist()[0]["control_type"] is None


def test_offsets_in_a_wrapper_of_magic_1_are_relative_to_its_last_message() -> None:
    inner = b"".join(message(offset=each) for each in (0, 1, 4))
    data = message(None, gzipped(inner), attributes=1, offset=1004)
    assert offsets(data) == [1000, 1001, 1004]
    assert to_arrow(data).to_pylist()[0]["base_offset"] == 1000


def test_a_wrapper_whose_offset_the_broker_has_not_set_yet_counts_from_zero() -> None:
    inner = b"".join(message(offset=each) for each in range(3))
    assert offsets(message(None, gzipped(inner), attributes=1, offset=0)) == [0, 1, 2]


def test_offsets_in_a_wrapper_of_magic_0_are_absolute() -> None:
    inner = b"".join(message(magic=0, offset=each) for each in (7, 9))
    assert offsets(message(None, gzipped(inner), magic=0, attributes=1, offset=9)) == [7, 9]


def test_a_wrapper_with_log_append_time_overrides_the_timestamps_inside() -> None:
    inner = message(time=1) + message(time=2, offset=1)
    data = message(None, gzipped(inner), attributes=1 | 8, offset=1, time=5000)
    rows = to_arrow(data).to_pylist()
    assert [each["timestamp"].timestamp() for each in rows] == [5.0, 5.0]
    assert {each["timestamp_type"] for each in rows} == {"LogAppendTime"}
    assert [each.timestamp for each in next(decode(data)).records] == [5000, 5000]


def test_wrappers_inside_wrappers_are_read_in_order() -> None:
    deepest = message(b"a", offset=0) + message(b"b", offset=1)
    middle = message(b"first", offset=0) + message(None, gzipped(deepest), attributes=1, offset=2)
    middle += message(b"last", offset=3)
    data = message(b"before") + message(None, gzipped(middle), attributes=1, offset=503) + message(b"after", offset=504)
    rows = to_arrow(data, columns=["key", "offset"]).to_pylist()
    assert [each["key"] for each in rows] == [b"before", b"first", b"a", b"b", b"last", b"after"]
    assert [each["offset"] for each in rows] == [0, 500, 501, 502, 503, 504]
    assert offsets(data) == [0, 500, 501, 502, 503, 504]


def test_too_many_wrappers_inside_each_other_are_a_limit_error() -> None:
    data = message()
    for _ in range(3):
        data = message(None, gzipped(data), attributes=1)
    assert offsets(data) == [0]
    for read in (
        lambda: list(decode(data, limits=Limits(nesting=2))),
        lambda: to_arrow(data, limits=Limits(nesting=2)),
    ):
        with pytest.raises(LimitError, match="beyond the limit nesting of 2"):
            read()


def test_all_three_formats_may_follow_each_other() -> None:
    inner = message(offset=0) + message(offset=1)
    data = message(magic=0, offset=1) + message(offset=2) + message(None, gzipped(inner), attributes=1, offset=4)
    data += batch(record() + record(offset=1), 2, base_offset=5) + message(magic=0, offset=7)
    assert offsets(data) == [1, 2, 3, 4, 5, 6, 7]
    assert to_arrow(data, columns=["magic"]).column(0).to_pylist() == [0, 1, 1, 1, 2, 2, 0]


def test_a_cut_off_last_entry_is_no_problem_wherever_it_is_cut() -> None:
    whole = message(magic=0, offset=5)
    for last in (message(offset=6), batch(record(), 1, base_offset=6), message(magic=0, offset=6)):
        for cut in range(len(last)):
            assert offsets(whole + last[:cut]) == [5]


def test_consumed_says_where_the_entry_that_is_cut_off_starts() -> None:
    whole = message()
    buffer = np.frombuffer(whole + batch(record(), 1)[:-1], np.uint8)
    found = decode_sets(buffer, np.array([0, 0]), np.array([buffer.size, len(whole)]))
    assert found.consumed.tolist() == [len(whole), len(whole)]


def test_a_wrong_checksum_is_seen_and_loses_nothing() -> None:
    for good in (message(b"k", b"value"), message(b"k", b"value", magic=0), batch(record(b"k", b"value"), 1)):
        bad = bytearray(good)
        bad[bad.rindex(b"value")] ^= 1
        data = good + bytes(bad) + good
        assert to_arrow(data, columns=["crc_ok"]).column(0).to_pylist() == [True, False, True]
        assert to_arrow(data, columns=["offset", "value"]).equals(to_arrow(data).select(["offset", "value"]))
        assert [each.crc_ok for each in decode(data)] == [True, False, True]
        with pytest.raises(CorruptRecordError) as caught:
            list(decode(data, verify_crc=True))
        assert caught.value.offset == len(good)


def test_a_wrong_checksum_of_a_large_batch_is_seen() -> None:
    good = batch(record(value=b"x" * 10_000), 1)
    bad = good[:-100] + b"y" + good[-99:]
    assert to_arrow(good + bad, columns=["crc_ok"]).column(0).to_pylist() == [True, False]


def short(magic: int) -> bytes:
    """A message of magic 0, which is as short as one can be, that says it has another."""
    made = bytearray(message(None, None, magic=0))
    made[16] = magic
    made[12:16] = struct.pack(">I", zlib.crc32(made[16:]))
    return bytes(made)


def lengthened(data: bytes, at: int, more: int) -> bytes:
    """A message of magic 1 with another length at a position, and a checksum that is right."""
    (size,) = struct.unpack_from(">i", data, at)
    made = bytearray(data)
    made[at : at + 4] = struct.pack(">i", size + more)
    made[12:16] = struct.pack(">I", zlib.crc32(made[16:]))
    return bytes(made)


@pytest.mark.parametrize(
    ("bad", "where", "text"),
    [
        (b"\0" * 8 + struct.pack(">i", -5) + b"\0" * 30, 0, "an entry of -5 bytes"),
        (b"\0" * 8 + struct.pack(">i", 13) + b"\0" * 30, 0, "an entry of 13 bytes"),
        (message()[:16] + b"\x03" + message()[17:], 0, "magic 3"),
        (batch(record(), -1), 57, "record count of -1"),
        (batch(record(), 2**31 - 1), 70, "2147483647 records are claimed, 1 are there"),
        (batch(record() + b"\0", 1), 70, "1 bytes behind"),
        (batch(record()[:-1], 1), 61, "record 0: a length"),
        (batch(b"\x0e\0\0\0\x50" + b"\0" * 3, 1), 61, "record 0: a field"),
        (batch(b"\x0e\0\0\0\1\1\x40\0", 1), 61, "record 0: a header count of 32"),
        (message(None, None, attributes=1), 0, "without a value"),
        (message(None, b"no gzip", attributes=1), 0, "gzip data"),
        (message(None, gzipped(b""), attributes=1), 0, "end in the middle"),
        (message(None, gzipped(message(magic=0)), attributes=1), 0, "a message of magic 0 inside"),
        (short(1), 0, "14 bytes is too short for magic 1"),
        (message(None, gzipped(short(1)), attributes=1), 0, "14 bytes is too short for magic 1"),
        (message(None, gzipped(message()[:8] + struct.pack(">i", 13) + bytes(20)), attributes=1), 0, "13 bytes: what"),
        (message(None, gzipped(message(None, None, attributes=1)), attributes=1), 0, "without a value"),
        (lengthened(message(b"k", b"value"), 31, 1), 0, "a value of 6 bytes, 5 bytes left"),
        (lengthened(message(b"k", b"value"), 31, -1), 0, "a value of 4 bytes, but 5 bytes up to the end"),
        (lengthened(message(b"k", b"value"), 26, 100), 0, "a key of 101 bytes"),
        (batch(b"\x00" * 8, 1), 61, "record 0: "),
        (batch(b"\x0e" + b"\x80" * 7, 1), 61, "record 0: "),
        (batch(b"x", 1, attributes=7), 0, "codec 7 is not defined"),
        (message(None, b"x", attributes=4), 0, "zstd is not defined for magic 1"),
    ],
)
def test_what_is_wrong_is_said_and_what_is_around_it_is_kept(bad: bytes, where: int, text: str) -> None:
    lost_framing = text.startswith("an entry of")
    good = batch(record(), 1, base_offset=10)
    data = good + bad + good
    problems: list[DecodeError] = []
    rows = to_arrow(data, problems=problems, columns=["offset"]).column(0).to_pylist()
    seen: list[DecodeError] = []
    assert rows == [one.offset for each in decode(data, problems=seen) for one in each.records]
    assert rows[0] == 10
    assert lost_framing or rows[-1] == 10
    for found in (problems, seen):
        assert [each.offset for each in found] == [len(good) + where]
        assert text in str(found[0])
    for read in (lambda: to_arrow(data), lambda: list(decode(data))):
        with pytest.raises(DecodeError, match="record set"):
            read()


@pytest.mark.parametrize("behind", [b"", b"\1" * 20, b"\xff" * 20])
def test_nothing_is_told_of_bytes_behind_a_header_count_that_is_cut_off(engine: Engine, behind: bytes) -> None:
    data = batch(b"\x0c\0\0\0\1\1\x80", 1)
    problems: list[DecodeError] = []
    assert to_arrow(data + behind, problems=problems).num_rows == 0
    assert str(problems[0]) == "record set $ at byte 61: record 0: a field is longer than the record"


def test_a_bad_record_costs_only_itself() -> None:
    bad = b"\x0e\0\0\0\x50" + b"\0" * 3
    data = batch(record(b"a") + bad + record(b"c", offset=2), 3)
    problems: list[DecodeError] = []
    assert to_arrow(data, problems=problems, columns=["key"]).column(0).to_pylist() == [b"a", b"c"]
    assert len(problems) == 1


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("count", [15, 16, 17, 33, 1000])
def test_a_run_of_bad_messages_is_told_one_by_one(count: int, wrapped: bool) -> None:
    """However many there are: the table of problems starts small, and is full in the middle of the run."""
    bad = bytearray(message())
    bad[26:30] = struct.pack(">i", 1000)  # the key's length
    run = message(b"first") + bytes(bad) * count + message(b"last")
    data = message(None, gzipped(run), attributes=1) if wrapped else run
    problems: list[list[DecodeError]] = [[], []]
    made = to_arrow(data, problems=problems[0])
    rows = [one for each in decode(data, problems=problems[1]) for one in each.records]
    assert len(made.column("key").to_pylist()) == len(rows) == 2
    assert [one.offset for one in problems[0]] == [one.offset for one in problems[1]]
    assert len(problems[0]) == count


def test_record_sets_are_numbered_and_may_lie_anywhere() -> None:
    one, two = message(b"one"), batch(record(b"two") + record(b"three", offset=1), 2)
    buffer = np.frombuffer(one + b"????" + two, np.uint8)
    starts = np.array([len(one) + 4, 0, 0, 3])
    lengths = np.array([len(two), len(one), 0, len(one) + 1])
    found = decode_sets(buffer, starts, lengths, columns=["key", "magic"])
    assert found.batch.schema.names == ["key", "magic"]
    assert found.batch.column("key").to_pylist() == [b"two", b"three", b"one"]
    assert found.set_index.tolist() == [0, 0, 1]
    assert found.set_index.dtype == np.int32
    assert [each[0] for each in found.problems] in ([], [3])


def test_many_long_keys_and_headers_grow_the_buffers() -> None:
    headers = tuple((b"name" * 30, b"x" * 200) for _ in range(50))
    data = b"".join(batch(record(b"k" * 3000, headers=headers), 1, base_offset=each) for each in range(40))
    made = to_arrow(data)
    made.validate(full=True)
    assert made.column("key").to_pylist() == [b"k" * 3000] * 40
    assert made.column("headers").to_pylist() == [[{"key": "name" * 30, "value": b"x" * 200}] * 50] * 40


@pytest.mark.wide(keep=8)
@pytest.mark.parametrize(
    ("sets", "per_batch", "seed"),
    [
        *((sets, per_batch, seed) for sets in (1, 3, 40) for per_batch in (1, 7) for seed in range(4)),
        (1, 300, 0),
        (5, 300, 1),
    ],
)
def test_headers_that_resemble_each_other_are_read_as_any(sets: int, per_batch: int, seed: int) -> None:
    chance = random.Random(seed)

    def form() -> list[tuple[str, int | None]]:
        names = [f"{chance.choice(('trace', 'häder', 'x' * 40))}-{number}" for number in range(chance.randrange(20))]
        return [(name, chance.choice((None, 0, 1, 8, 31, 32, 33, 70))) for name in names]

    forms = [form() for _ in range(3)]
    data, expected = [], []
    for _ in range(sets):
        records = []
        for _ in range(per_batch):
            # Mostly the first form, and the others in between; one in twenty is like none.
            wanted = form() if chance.random() < 0.05 else chance.choice([forms[0]] * 6 + forms)
            headers = [(name, None if size is None else chance.randbytes(size)) for name, size in wanted]
            records.append(Record(b"k", b"v", timestamp=5, headers=headers))
        data.append(encode(records, magic=2))
        expected += [[{"key": name, "value": value} for name, value in one.headers] for one in records]
    lengths = np.array([len(one) for one in data], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(data) + bytes(64), np.uint8)
    found = decode_sets(buffer, starts, lengths)
    assert not found.problems
    found.batch.validate(full=True)
    assert found.batch.column("headers").to_pylist() == expected
    without = decode_sets(buffer, starts, lengths, columns=["offset", "value"])
    assert without.batch.num_rows == len(expected)
    # Damage anywhere in a batch is seen by both readers in the same way.
    for _ in range(20):
        bad = bytearray(data[0])
        for _ in range(3):
            bad[chance.randrange(61, len(bad))] = chance.choice((0, 1, 2, 127, 128, 255))
        problems: list[list[DecodeError]] = [[], []]
        made = to_arrow(bytes(bad) + data[0], problems=problems[0])
        rows = [one for batch in decode(bytes(bad) + data[0], problems=problems[1]) for one in batch.records]
        assert [one.offset for one in problems[0]] == [one.offset for one in problems[1]]
        assert made.column("value").to_pylist() == [one.value for one in rows]
        assert [[pair["value"] for pair in one] for one in made.column("headers").to_pylist()] == [
            [value for _, value in one.headers] for one in rows
        ]


def test_header_names_that_are_not_utf_8_are_shown_with_replacement_characters() -> None:
    data = batch(record(headers=((b"\xff\xfeok", b""),)), 1)
    assert to_arrow(data).column("headers").to_pylist() == [[{"key": "\ufffd\ufffdok", "value": b""}]]
    assert next(decode(data)).records[0].headers[0][0].encode("utf-8", "surrogateescape") == b"\xff\xfeok"


def test_each_bit_of_the_attributes_says_one_thing() -> None:
    names = ("timestamp_type", "is_transactional", "is_control", "has_delete_horizon")
    for bit in range(3, 16):
        (one,) = decode(batch(record(), 1, attributes=(1 << bit) - (bit == 15) * (1 << 16)))
        said = [getattr(one, name) for name in names]
        assert said == ["LogAppendTime" if bit == 3 else "CreateTime", bit == 4, bit == 5, bit == 6]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(ValueError, match="no column 'nope'"):
        to_arrow(b"", columns=["nope"])


@pytest.mark.parametrize(
    ("magic", "codec"),
    # kafka-python has these five.
    [(magic, codec) for magic in (0, 1, 2) for codec in CODECS[:5] if codec != "zstd" or magic == 2],
)
def test_what_kafka_python_writes_is_read(magic: int, codec: Codec) -> None:
    builder = MemoryRecordsBuilder(magic=magic, compression_type=CODECS.index(codec), batch_size=1 << 20)
    sent = [(b"key%d" % each, b"value" * each) for each in range(100)]
    for key, value in sent:
        builder.append(timestamp=1000, key=key, value=value)
    builder.close()
    data = bytes(builder.buffer())
    assert [(one.key, one.value) for each in decode(data) for one in each.records] == sent
    made = to_arrow(data)
    assert list(zip(made.column("key").to_pylist(), made.column("value").to_pylist(), strict=True)) == sent
    assert set(made.column("compression").to_pylist()) == {codec}
    assert all(made.column("crc_ok").to_pylist())
    assert made.column("offset").to_pylist() == list(range(100))


@pytest.mark.parametrize("number", range(1, len(CODECS)))
def test_both_readers_agree_on_compressed_records_cut_anywhere(number: int) -> None:
    """And none of the records of a cut batch is given: what is left of them is not what the producer wrote."""
    records = b"".join(record(value=random.Random(at).randbytes(20), offset=at) for at in range(5))
    packed = compress(number, records)
    after = batch(record(), 1, base_offset=9)
    for cut in range(len(packed) + 1):
        data = batch(packed[:cut], 5, attributes=number) + after
        objects: list[DecodeError] = []
        columns: list[DecodeError] = []
        found = [one.offset for each in decode(data, problems=objects) for one in each.records]
        assert to_arrow(data, columns=["offset"], problems=columns).column(0).to_pylist() == found
        assert list(map(str, objects)) == list(map(str, columns))
        whole = cut == len(packed)
        assert found == ([0, 1, 2, 3, 4, 9] if whole else [9])
        assert len(objects) == (not whole)


@pytest.mark.parametrize("number", range(len(CODECS), 8))
def test_a_codec_that_is_not_defined_has_no_name_in_either_reader(number: int) -> None:
    found = Batch(attributes=number)
    assert found.compression is None
    assert "compression=unknown" in repr(found)
    data = batch(record(), 1, attributes=number)
    problems: list[DecodeError] = []
    assert [one.compression for one in decode(data, problems=problems)] in ([], [None])
    assert to_arrow(data, problems=problems).num_rows == 0
    assert len({str(one) for one in problems}) == 1
    assert f"compression codec {number} is not defined" in str(problems[0])
    with pytest.raises(EncodeError, match=f"compression codec {number} is not defined"):
        encode_batch(Batch([Record(value=b"v")], attributes=number))


@pytest.mark.parametrize("after", [b"", b"\1", b"\x7f" * 20])
def test_a_record_that_ends_in_its_header_count_is_told_alike_whatever_follows(after: bytes) -> None:
    cut = batch(b"\x0c\0\0\0\1\1\x80", 1)
    buffer = np.frombuffer(cut + after + bytes(8), np.uint8)
    found = decode_sets(buffer, np.zeros(1, np.int64), np.array([len(cut)], np.int64))
    assert found.batch.num_rows == 0
    assert [text for _, _, text in found.problems] == ["record 0: a field is longer than the record"]


def wrong(data: bytes) -> bytes:
    """A message with another checksum."""
    return data[:12] + bytes([data[12] ^ 1]) + data[13:]


@pytest.mark.parametrize(
    ("outer", "middle", "inner", "right"),
    [(1, 1, 1, True), (0, 1, 1, False), (1, 0, 1, False), (1, 1, 0, False), (0, 0, 0, False)],
)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_is_right_only_if_all_wrappers_around_it_are(
    magic: int, outer: int, middle: int, inner: int, right: bool
) -> None:
    # Kafka checks a wrapper before it opens it: nothing in one that does not match is to be trusted.
    made = message(magic=magic)
    made = made if inner else wrong(made)
    for matches in (middle, outer):
        made = message(None, gzipped(made), magic=magic, attributes=1)
        made = made if matches else wrong(made)
    found = [one.crc_ok for each in decode(made) for one in each.records]
    assert to_arrow(made, columns=["crc_ok"]).column(0).to_pylist() == found == [right]


def test_of_many_problems_the_last_says_how_many_more_there_were() -> None:
    entry = bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\7" + bytes(9)
    for reader in (lambda *given, **options: [*decode(*given, **options)], to_arrow):
        for most in (0, 1, 10, 999):
            problems: list[DecodeError] = []
            reader(entry * 1000, limits=Limits(problems=most), problems=problems)
            assert len(problems) == most + 1
            text = f"{1000 - most} more problems, up to here: beyond the limit problems of {most}"
            assert text in problems[-1].message
            assert isinstance(problems[-1], LimitError)
            assert problems[-1].offset == 999 * len(entry)
        problems = []
        reader(entry * 1000, limits=Limits(problems=1000), problems=problems)
        assert [one.message for one in problems] == ["magic 7 is not known"] * 1000


@pytest.mark.wide(keep=1)
def test_little_input_of_wrappers_is_not_a_million_problems() -> None:
    entry = bytes(8) + b"\0\0\0\x0e" + bytes(4) + b"\0" + bytes(9)
    data = message(None, gzipped(entry * 50_000), magic=1, attributes=1)
    assert len(data) < 10_000
    for reader in (lambda *given, **options: [*decode(*given, **options)], to_arrow):
        problems: list[DecodeError] = []
        reader(data, problems=problems)
        assert len(problems) == Limits().problems + 1
        assert problems[-1].message.startswith(f"{50_000 - Limits().problems} more problems")


def test_more_records_than_the_limit_are_not_made_as_objects() -> None:
    small = b"\x0c\0\0\0\1\1\0"
    good, many = batch(small * 5, 5), batch(small * 6, 6)
    limits = Limits(objects=1000)
    problems: list[DecodeError] = []
    found = list(decode(good + many + good, limits=limits, problems=problems))
    assert [len(one.records) for one in found] == [5, 0, 5]
    (problem,) = problems
    assert isinstance(problem, LimitError)
    assert "6 records take more than 1000 bytes as objects: beyond the limit objects of 1000" in problem.message
    # Columns have no objects.
    assert to_arrow(good + many + good, limits=limits).num_rows == 16
    wrapper = message(None, gzipped(message(magic=1) * 6), magic=1, attributes=1)
    problems = []
    assert [len(one.records) for one in decode(wrapper, limits=limits, problems=problems)] == [5]
    assert isinstance(problems[0], LimitError)


def test_records_as_they_usually_are_need_no_slow_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> Record:
        raise AssertionError("the slow walk")

    monkeypatch.setattr("kwire.records.reader._record", slow)
    some = []
    for one in range(200):
        headers = [("h", b"x" * 60), ("n", None)] * (1 + one % 30)
        some.append(Record(b"k" * (one + 1), b"v" * one, timestamp=1_700_000_000_000 + 100 * one, headers=headers))
    (one,) = decode(encode(some))
    assert [(each.key, each.value, each.timestamp, each.headers) for each in one.records] == [
        (each.key, each.value, each.timestamp, each.headers) for each in some
    ]
    assert [each.offset for each in one.records] == list(range(200))


def test_a_count_beyond_what_the_bytes_can_hold_is_no_reason_to_refuse_those_that_are_there() -> None:
    problems: list[DecodeError] = []
    data = batch(b"".join(record(offset=one) for one in range(10)), 1000)
    (one,) = decode(data, limits=Limits(objects=20 * _RECORD), problems=problems)
    assert len(one.records) == 10
    assert not any(isinstance(each, LimitError) for each in problems)
    with pytest.raises(LimitError, match="records take more than"):
        list(decode(data, limits=Limits(objects=9 * _RECORD)))
