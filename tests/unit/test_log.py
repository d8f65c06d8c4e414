"""Log segments on disk: finding them, reading them, their indexes, and the records of Kafka's own topics."""

from __future__ import annotations

import io
import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire import log, schema
from kwire.codec import registry
from kwire.errors import CaptureError
from kwire.kernels.engine import Engine
from kwire.kernels.segments import resync
from kwire.log import internal, reading
from kwire.protocol.describe import encode_embedded
from kwire.records import Codec, Record, control_key, decode, encode

pytestmark = pytest.mark.usefixtures("engine")


def segment_bytes(batches: int = 50, *, codec: Codec = "none", magic: int = 2, each: int = 20) -> bytes:
    some = random.Random(batches)
    return b"".join(
        encode(
            [
                Record(
                    b"%d" % index,
                    some.randbytes(some.randrange(300)),
                    timestamp=1_700_000_000_000 + number * 100 + index,
                )
                for index in range(each)
            ],
            magic=magic,
            compression=codec,
            base_offset=number * each,
        )
        for number in range(batches)
    )


def table(source: Any, **options: Any) -> pa.Table:
    found = list(log.read(source, **options))
    return pa.Table.from_batches(found, schema=found[0].schema if found else log.RECORDS)


def small_windows(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setitem(reading.regions.__kwdefaults__, "size", size)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "my-topic-7"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (folder / f"{0:020}.log").write_bytes(segment_bytes())
    (folder / f"{1000:020}.log").write_bytes(
        encode([Record(b"k", b"v", timestamp=5)], base_offset=1000, compression="gzip")
    )
    return folder


def test_segments_are_found_with_what_their_names_say(partition: Path) -> None:
    for path in (partition, partition.parent):
        first, second = log.find(path)
        assert (first.topic, first.partition, first.topic_id) == ("my-topic", 7, "AAAAAAAAAAAAAAAAAAAAAQ")
        assert [first.base_offset, second.base_offset] == [0, 1000]
    (one,) = log.find(partition / f"{1000:020}.log")
    assert one == second


@pytest.mark.parametrize(
    ("name", "topic", "number"),
    [
        ("a-b-0", "a-b", 0),
        ("t-3.0123456789abcdef0123456789abcdef-delete", "t", 3),
        ("t-3.0123456789abcdef0123456789abcdef-future", "t", 3),
        ("plain", None, None),
    ],
)
def test_directory_names_say_topic_and_partition(tmp_path: Path, name: str, topic: str, number: int) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / f"{5:020}.log").write_bytes(b"")
    (one,) = log.find(folder)
    assert (one.topic, one.partition, one.base_offset, one.topic_id) == (topic, number, 5, None)


def test_a_directory_without_segments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="no log segments"):
        log.find(tmp_path)
    with pytest.raises(FileNotFoundError):
        log.find(tmp_path / "nothing")


def test_segments_are_told_from_other_files() -> None:
    for magic in (0, 1, 2):
        head = encode([Record(b"", b"")], magic=magic)[:17]
        assert log.is_segment(head)
        assert not log.is_segment(head[:16])
    assert not log.is_segment(b"\xd4\xc3\xb2\xa1\2\0\4\0" + bytes(16))
    assert not log.is_segment(b"\x0a\x0d\x0d\x0a" + b"\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0\xff\xff")
    assert not log.is_segment(b"")
    assert log.is_segment(b"", "00000000000000000000.log")
    assert log.is_segment(bytes(17), "00000000000000000000.log")


def test_the_records_of_a_segment_become_rows(partition: Path) -> None:
    data = segment_bytes()
    made = table(log.find(partition)[0])
    records = [one for each in decode(data) for one in each.records]
    assert made.schema == log.RECORDS
    assert made.column("offset").to_pylist() == list(range(1000))
    assert made.column("value").to_pylist() == [one.value for one in records]
    positions = [each.position for each in decode(data) for _ in each.records]
    assert made.column("position").to_pylist() == positions
    assert set(made.column("topic").to_pylist()) == {"my-topic"}
    assert set(made.column("partition").to_pylist()) == {7}
    assert set(made.column("status").to_pylist()) == {"ok"}
    assert set(made.column("error").to_pylist()) == {None}


@pytest.mark.parametrize("size", [64, 1000, 5000])
@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("magic", [1, 2])
def test_windows_do_not_show(monkeypatch: pytest.MonkeyPatch, magic: int, codec: Codec, size: int) -> None:
    data = segment_bytes(codec=codec, magic=magic)
    whole = table(io.BytesIO(data))
    batches = pa.Table.from_batches(log.batches(io.BytesIO(data)))
    small_windows(monkeypatch, size)
    notes: list[str] = []
    assert table(io.BytesIO(data), on_note=notes.append).combine_chunks() == whole.combine_chunks()
    again = pa.Table.from_batches(log.batches(io.BytesIO(data)))
    assert again.combine_chunks() == batches.combine_chunks()
    assert notes == []


def test_columns_can_be_chosen(partition: Path) -> None:
    made = table(partition / f"{0:020}.log", columns=["value", "status", "offset"])
    assert made.schema.names == ["value", "status", "offset"]
    with pytest.raises(ValueError, match="no column 'nope'"):
        table(partition / f"{0:020}.log", columns=["nope"])
    with pytest.raises(ValueError, match="2 segments"):
        table(partition)


def test_a_last_entry_that_is_cut_off_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    data = segment_bytes(3)
    small_windows(monkeypatch, 1000)
    for cut in (1, 11, 12, 60, 2000):
        notes: list[str] = []
        made = table(io.BytesIO(data[:-cut]), on_note=notes.append)
        assert made.num_rows == 40
        assert set(made.column("status").to_pylist()) == {"ok"}
        assert len(notes) == 1
        assert "at the end belong to an entry" in notes[0]


@pytest.mark.parametrize("zeros", [1, 16, 17, 10_000])
def test_zeros_at_the_end_are_space_not_used_yet(monkeypatch: pytest.MonkeyPatch, zeros: int) -> None:
    data = segment_bytes(3)
    for size in (1000, 1 << 20):
        small_windows(monkeypatch, size)
        made = table(io.BytesIO(data + bytes(zeros)))
        assert made.num_rows == 60
        assert set(made.column("status").to_pylist()) == {"ok"}


@pytest.mark.parametrize("size", [1000, 1 << 20])
@pytest.mark.parametrize("length", [b"\0\0\0\3", b"\xff\xff\xff\xf0", b"\x7f\xff\xff\xff", b"\0\x10\0\0"])
def test_after_a_wrong_length_the_next_entry_is_found(
    monkeypatch: pytest.MonkeyPatch, length: bytes, size: int
) -> None:
    small_windows(monkeypatch, size)
    good = segment_bytes(6)
    starts = [each.position for each in decode(good)]
    bad = good[: starts[2] + 8] + length + good[starts[2] + 12 :]
    made = table(io.BytesIO(bad)).to_pylist()
    assert [one["offset"] for one in made] == [*range(40), None, *range(60, 120)]
    (wrong,) = (one for one in made if one["status"] != "ok")
    assert (wrong["status"], wrong["position"]) == ("malformed", starts[2])
    assert wrong["error"] == f"{starts[3] - starts[2]} bytes that are no entry"
    again = pa.Table.from_batches(log.batches(io.BytesIO(bad))).to_pylist()
    assert [one["base_offset"] for one in again] == [0, 20, None, 60, 80, 100]


def test_what_looks_like_entries_everywhere_does_not_end_the_search() -> None:
    """Around such bytes 5 of 1,005 good records were found."""
    good = segment_bytes(205, each=1)
    fifth = [each.position for each in decode(good)][5]
    looks = b"\0\2\0\0\0\1" * 15_000
    made = table(io.BytesIO(good[:fifth] + looks + good[fifth:]), columns=["offset", "status", "position"]).to_pylist()
    assert [one["offset"] for one in made] == [*range(5), None, *range(5, 205)]
    assert (made[5]["status"], made[5]["position"]) == ("malformed", fifth)
    assert {one["status"] for one in made[6:]} == {"ok"}


def test_searching_for_entries_costs_no_more_than_its_effort(engine: Engine) -> None:
    """All that can be checksummed in vain is what is given and 256 bytes for each position, and 1 kB in any case."""
    looks = np.frombuffer(bytearray(b"\0\2\0\0\0\1" * 10_000), np.uint8)
    found, keep, left = engine(resync)(looks, 0, 0)
    assert (found, keep > 0, left >= 0) == (-1, True, True)
    assert left < 256 * looks.size
    good = segment_bytes(3, each=1)
    data = np.frombuffer(bytearray(b"\xff" * 10 + good), np.uint8)
    assert engine(resync)(data, 0, 0)[::2] == (10, 256 * 11)
    # A batch that is larger than the effort allows is passed over, and the next one is found.
    large = encode([Record(None, bytes(100_000))])
    data = np.frombuffer(bytearray(large + good), np.uint8)
    assert engine(resync)(data, 0, 0)[0] == len(large)
    assert engine(resync)(data, 0, len(large))[0] == 0


def test_places_that_are_damaged_cost_no_batch_of_rows_each(monkeypatch: pytest.MonkeyPatch) -> None:
    good = segment_bytes(40, each=2)
    starts = [each.position for each in decode(good)]
    bad = bytearray(good)
    for start in starts[::2]:
        bad[start + 8 : start + 12] = b"\x7f\xff\xff\xff"
    for read, each in ((log.read, 2), (log.batches, 1)):
        small_windows(monkeypatch, 1 << 20)
        (made,) = read(io.BytesIO(bad))
        assert made.column("status").to_pylist() == ["malformed", *["ok"] * each] * 20
        at = [[start] * (each if number % 2 else 1) for number, start in enumerate(starts)]
        assert made.column("position").to_pylist() == [one for some in at for one in some]
        small_windows(monkeypatch, 3000)
        assert pa.Table.from_batches(read(io.BytesIO(bad))).to_pylist() == made.to_pylist()


def test_noise_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    small_windows(monkeypatch, 1000)
    noise = b"\xff" * 5000
    (row,) = table(io.BytesIO(noise)).to_pylist()
    assert (row["status"], row["position"], row["error"]) == ("malformed", 0, "5000 bytes that are no entry")


def test_a_batch_that_cannot_be_read_is_a_row_at_its_place() -> None:
    good = encode([Record(b"k", b"v", timestamp=1)], base_offset=1)
    bad = encode([Record(b"k", b"v", timestamp=1)], base_offset=2, compression="gzip")
    bad = bad[:70] + b"!!!!" + bad[74:]
    rows = table(io.BytesIO(good + bad + good)).to_pylist()
    assert [(one["status"], one["position"]) for one in rows] == [
        ("ok", 0),
        ("malformed", len(good)),
        ("ok", len(good) + len(bad)),
    ]
    assert "gzip" in rows[1]["error"]


def test_a_wrong_checksum_is_a_status() -> None:
    data = bytearray(encode([Record(b"k", b"value", timestamp=1)]))
    data[-3] ^= 1
    (row,) = table(io.BytesIO(bytes(data))).to_pylist()
    assert (row["status"], row["error"], row["crc_ok"]) == ("corrupt", "the checksum does not match", False)
    (row,) = pa.Table.from_batches(log.batches(io.BytesIO(bytes(data)))).to_pylist()
    assert (row["status"], row["crc_ok"]) == ("corrupt", False)


def test_batches_say_what_their_headers_say() -> None:
    data = encode(
        [Record(b"k", b"v", timestamp=5), Record(b"k", b"v", timestamp=9)],
        base_offset=100,
        compression="gzip",
        producer_id=8,
        producer_epoch=1,
        base_sequence=3,
        partition_leader_epoch=6,
        is_transactional=True,
        delete_horizon=77,
    )
    data += encode([Record(b"k", b"v", timestamp=5)], base_offset=102, magic=1)
    first, second = pa.Table.from_batches(log.batches(io.BytesIO(data), name="x.log")).to_pylist()
    assert first["segment"] == "x.log"
    assert (first["base_offset"], first["last_offset"], first["count"], first["magic"]) == (100, 101, 2, 2)
    assert (first["producer_id"], first["producer_epoch"], first["base_sequence"]) == (8, 1, 3)
    assert (first["partition_leader_epoch"], first["is_transactional"], first["is_control"]) == (6, True, False)
    assert (first["delete_horizon"].microsecond, first["max_timestamp"].microsecond) == (77_000, 9_000)
    assert (first["compression"], first["crc_ok"], first["size"] + second["size"]) == ("gzip", True, len(data))
    assert (second["base_offset"], second["last_offset"], second["count"], second["magic"]) == (None, 102, None, 1)
    assert (second["producer_id"], second["is_transactional"], second["timestamp_type"]) == (None, False, "CreateTime")


# --- indexes ----------------------------------------------------------------------------------------------------------


def write_indexes(folder: Path, offsets: list[tuple[int, int]], times: list[tuple[int, int]], zeros: int = 0) -> Any:
    """Index files of the first segment; entries are relative to offset 0."""
    (folder / f"{0:020}.index").write_bytes(b"".join(struct.pack(">ii", *one) for one in offsets) + bytes(8 * zeros))
    (folder / f"{0:020}.timeindex").write_bytes(b"".join(struct.pack(">qi", *one) for one in times) + bytes(12 * zeros))
    return log.find(folder)[0]


def right_entries() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    batches = list(decode(segment_bytes()))[5::10]
    return [(each.last_offset, each.position) for each in batches], [
        (each.max_timestamp, each.last_offset) for each in batches
    ]


@pytest.mark.parametrize("zeros", [0, 100])
def test_right_indexes_have_no_problems(partition: Path, zeros: int) -> None:
    assert log.check_indexes(write_indexes(partition, *right_entries(), zeros)) == []


def test_an_index_entry_for_the_last_of_several_batches_is_right(partition: Path) -> None:
    offsets, times = right_entries()
    offsets[1] = (offsets[1][0] + 40, offsets[1][1])
    assert log.check_indexes(write_indexes(partition, offsets, times)) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda offsets, times: offsets.__setitem__(1, (offsets[1][0], offsets[1][1] + 1)), "no entry .* at position"),
        (lambda offsets, times: offsets.__setitem__(1, (offsets[1][0] - 1, offsets[1][1])), "ends at"),
        (
            lambda offsets, times: offsets.__setitem__(1, (offsets[1][0] + 1, offsets[1][1])),
            "no entry .* ends at offset",
        ),
        (lambda offsets, times: offsets.__setitem__(1, offsets[0]), "not behind the entry before"),
        (lambda offsets, times: times.__setitem__(1, (times[1][0] + 1, times[1][1])), "but the largest up to"),
        (lambda offsets, times: times.__setitem__(1, (times[0][0], times[1][1])), "not behind the entry before"),
        (lambda offsets, times: times.append((times[-1][0] + 1, 5000)), "not in the segment"),
    ],
)
def test_a_wrong_index_entry_is_named(partition: Path, change: Any, text: str) -> None:
    offsets, times = right_entries()
    change(offsets, times)
    problems = log.check_indexes(write_indexes(partition, offsets, times))
    assert problems
    import re

    assert re.search(text, problems[0].message)
    assert problems[0].file.startswith("0" * 20)


def test_an_index_that_ends_in_the_middle_of_an_entry_is_told(partition: Path) -> None:
    segment = write_indexes(partition, *right_entries())
    segment.index.write_bytes(segment.index.read_bytes() + b"\0\0\0")
    (problem,) = log.check_indexes(segment)
    assert str(problem) == f"{0:020}.index: entry 5: 3 bytes behind the last whole entry"


def test_the_entries_of_indexes_have_absolute_offsets(tmp_path: Path) -> None:
    segment = log.Segment(tmp_path / f"{1000:020}.log", base_offset=1000)
    segment.index.write_bytes(struct.pack(">iiii", 0, 0, 7, 4096) + bytes(24))
    segment.time_index.write_bytes(struct.pack(">qiqi", 5, 0, 1_700_000_000_000, 2**31 - 1) + b"cut off")
    assert log.read_index(segment) == [log.OffsetEntry(1000, 0), log.OffsetEntry(offset=1007, position=4096)]
    assert log.read_time_index(segment) == [
        log.TimeEntry(5, 1000),
        log.TimeEntry(timestamp=1_700_000_000_000, offset=1000 + 2**31 - 1),
    ]
    segment.index.write_bytes(b"")
    assert log.read_index(segment) == []


@pytest.mark.parametrize("read", [log.read_index, log.read_time_index])
def test_entries_of_an_index_need_the_file_and_a_segment_that_is_named_by_its_offset(tmp_path: Path, read: Any) -> None:
    with pytest.raises(FileNotFoundError):
        read(log.Segment(tmp_path / f"{7:020}.log", base_offset=7))
    segment = log.Segment(tmp_path / "other.log")
    for file in (segment.index, segment.time_index):
        file.write_bytes(bytes(range(24)))
    with pytest.raises(ValueError, match="not named by its first offset"):
        read(segment)


def test_a_segment_without_indexes_has_no_problems(partition: Path) -> None:
    assert log.check_indexes(log.find(partition)[0]) == []


# --- Kafka's own topics -----------------------------------------------------------------------------------------------


def body(kind: str, number: int, /, **values: Any) -> bytes:
    message = schema.message(kind)
    return registry.codec(message, number).encode(registry.message_class(message)(**values))


def test_records_of_consumer_offsets_are_decoded() -> None:
    key = b"\0\1" + body("OffsetCommitKey", 0, group="g", topic="t", partition=3)
    value = encode_embedded(
        "OffsetCommitValue", {"version": 3, "offset": 42, "leader_epoch": 7, "metadata": "", "commit_timestamp": 5}
    )
    name, made_key, made_value = internal.decode_record("__consumer_offsets", key, value) or ("", None, None)
    assert name == "OffsetCommit"
    assert made_key == {"group": "g", "topic": "t", "partition": 3}
    assert made_value is not None
    assert (made_value["version"], made_value["offset"], made_value["leader_epoch"]) == (3, 42, 7)
    assert internal.decode_record("__consumer_offsets", key, None) == (name, made_key, None)
    assert internal.decode_record("__consumer_offsets", b"\x7f\0", value) is None
    assert internal.decode_record("something else", key, value) is None


def test_records_of_the_transaction_and_share_topics_are_decoded() -> None:
    found = internal.decode_record(
        "__transaction_state", b"\0\0" + body("TransactionLogKey", 0, transactional_id="tx"), None
    )
    assert found == ("TransactionLog", {"transactional_id": "tx"}, None)
    key = b"\0\1" + body("ShareUpdateKey", 0, group_id="g", partition=2)
    value = b"\0\0" + body("ShareUpdateValue", 0)
    name, made_key, made_value = internal.decode_record("__share_group_state", key, value) or ("", None, None)
    assert (name, (made_key or {})["group_id"]) == ("ShareUpdate", "g")
    assert made_value is not None


def test_records_of_cluster_metadata_are_decoded() -> None:
    value = b"\1\x0c\0" + body("FeatureLevelRecord", 0, name="metadata.version", feature_level=20)
    assert internal.decode_record("__cluster_metadata", None, value) == (
        "FeatureLevelRecord",
        None,
        {"version": 0, "name": "metadata.version", "feature_level": 20},
    )
    assert internal.decode_record("__cluster_metadata", None, b"\1\xff\x7f\0") is None


@pytest.mark.parametrize("topic", internal.TOPICS)
def test_bytes_that_are_something_else_are_nulls(topic: str) -> None:
    some = random.Random(1)
    rows = [
        Record(some.choice((None, some.randbytes(some.randrange(9)), b"\0\1\0\1g")), some.randbytes(some.randrange(9)))
        for _ in range(300)
    ]
    for row in rows:
        row.timestamp = 1
    segment = log.Segment(Path("x"), topic=topic)
    found = pa.Table.from_batches(log.read(io.BytesIO(encode(rows))))
    at = found.schema.get_field_index("topic")
    batch = found.set_column(at, "topic", pa.array([segment.topic] * len(rows))).combine_chunks().to_batches()[0]
    made = internal.decoded(batch)
    assert made.schema.names[-3:] == ["record_type", "decoded_key", "decoded_value"]
    assert made.num_rows == 300


def test_control_records_are_decoded_in_any_topic() -> None:
    marker = encode(
        [Record(control_key("commit"), b"\0\0\0\0\0\x05", timestamp=1)], is_control=True, is_transactional=True
    )
    leader = encode(
        [Record(control_key("leader_change"), body("LeaderChangeMessage", 1, version=1, leader_id=4), timestamp=1)],
        is_control=True,
    )
    unknown = encode([Record(b"\0\0\0\x63", b"?", timestamp=1)], is_control=True)
    (batch,) = log.read(io.BytesIO(marker + leader + unknown))
    rows = internal.decoded(batch).to_pylist()
    assert [one["record_type"] for one in rows] == ["commit", "leader_change", None]
    assert json.loads(rows[0]["decoded_value"]) == {"version": 0, "coordinator_epoch": 5}
    assert json.loads(rows[0]["decoded_key"]) == {"version": 0, "type": 1}
    assert json.loads(rows[1]["decoded_value"])["leader_id"] == 4


@pytest.mark.parametrize("name", ["99999999999999999999.log", "\N{ARABIC-INDIC DIGIT ZERO}" * 20 + ".log"])
def test_a_file_name_that_is_no_offset_names_no_segment(name: str, tmp_path: Path) -> None:
    path = tmp_path / "t-4294967295" / name
    path.parent.mkdir()
    path.write_bytes(encode([Record(b"k", b"v", timestamp=1)]))
    path.with_suffix(".index").write_bytes(bytes(8))
    (found,) = log.find(path)
    assert (found.base_offset, found.partition) == (None, None)
    assert sum(batch.num_rows for batch in log.read(found)) == 1
    with pytest.raises(ValueError, match="not named by its first offset"):
        log.check_indexes(found)
