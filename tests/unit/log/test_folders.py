"""What brokers keep beside their segments: files of real brokers against Kafka's dump-log tool, and hostile ones."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire import log
from kwire.cli import main
from kwire.errors import CaptureError
from kwire.log.folders import Epoch, Producer
from kwire.log.transaction_index import Aborted
from kwire.records.crc import crc32c

SEGMENTS = Path(__file__).parents[2] / "golden" / "segments"
KRAFT = SEGMENTS / "4.3-kraft-folder"
ZOOKEEPER = SEGMENTS / "3.9-zk-folder"
INDEXES = SEGMENTS / "3.9-kraft-indexes"


def printed(file: Path) -> list[dict[str, str]]:
    """What the dump-log tool printed of a file: of each line its names and values."""
    lines = file.with_name(file.name + ".txt").read_text().splitlines()
    return [dict(re.findall(r"(\w+): (\S+)", line)) for line in lines if ": " in line]


def test_aborted_transactions_are_those_that_kafkas_tool_prints() -> None:
    files = [file for file in SEGMENTS.glob("*/*/*.txnindex") if file.with_name(file.name + ".txt").exists()]
    assert len(files) > 4
    seen = 0
    for file in files:
        told = printed(file)
        names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        assert log.read_aborted(file) == [Aborted(*(int(line[name]) for name in names)) for line in told]
        seen += len(told)
    assert seen > 4


def test_producers_are_those_that_kafkas_tool_prints() -> None:
    files = [file for file in SEGMENTS.glob("*/*/*.snapshot") if file.with_name(file.name + ".txt").exists()]
    assert len(files) > 20
    seen = 0
    for file in files:
        told = printed(file)
        found = log.read_producers(file)
        assert len(found) == len(told)
        for one, line in zip(found, told, strict=True):
            names = ("producerId", "producerEpoch", "lastSequence", "lastOffset", "offsetDelta", "lastTimestamp")
            assert one[:6] == tuple(int(line[name]) for name in names)
            assert one.coordinator_epoch == int(line["coordinatorEpoch"])
            first = re.search(r"\d+", line["currentTxnFirstOffset"])
            assert one.current_first_offset == (int(first[0]) if first else None)
        seen += len(told)
    assert seen > 10


def test_a_folder_of_a_broker_is_described() -> None:
    first, second = log.describe(KRAFT / "node-1"), log.describe(KRAFT / "node-2")
    assert first.sound
    assert first.properties["node.id"] == "1"
    assert first.properties["cluster.id"] == second.properties["cluster.id"] == "mbuqtOLnT0ep9FaapERBaQ"
    assert len(first.properties["directory.id"]) == 22
    compacted, plain, other = first.partitions
    assert (compacted.topic, compacted.cleaned_up_to, compacted.high_watermark, compacted.log_start) == (
        "folder-compacted", 19, 20, None,
    )  # fmt: skip
    assert [(one.first, one.last, one.batches) for one in compacted.segments] == [(18, 18, 1), (19, 19, 1)]
    assert (plain.log_start, plain.recovery_point, plain.high_watermark) == (2, 6, 6)
    assert plain.topic_id == other.topic_id == "d0vHbN_5QkqGQyirZTzNvw"
    assert plain.epochs == [Epoch(0, 2)]
    assert other.epochs == [Epoch(0, 0), Epoch(1, 6)]
    assert plain.aborted == [Aborted(0, 2, 3, 4)]
    (producer,) = plain.producers
    assert (producer.producer_id, producer.last_sequence, producer.last_offset) == (0, 2, 4)
    assert second.gone == [("__transaction_state", 0)]


def test_checkpoints_of_either_mode_are_read() -> None:
    for folder in (*KRAFT.iterdir(), *ZOOKEEPER.iterdir()):
        for name in log.CHECKPOINTS:
            for (topic, partition), offset in log.read_offsets(folder / name).items():
                assert (topic.startswith(("folder-", "__")), partition >= 0, offset >= 0) == (True, True, True)
    assert log.read_offsets(ZOOKEEPER / "node-1" / "cleaner-offset-checkpoint") == {}
    assert log.read_properties(ZOOKEEPER / "node-2" / "meta.properties")["broker.id"] == "2"


def test_a_partition_knows_the_checkpoints_around_it() -> None:
    found = log.describe(KRAFT / "node-1" / "folder-plain-0")
    (one,) = found.partitions
    assert (one.high_watermark, one.log_start, found.gone) == (6, 2, [])
    assert found.properties["node.id"] == "1"


def test_segments_of_brokers_do_not_overlap_and_those_that_do_are_said(tmp_path: Path) -> None:
    for folder in SEGMENTS.glob("*-indexes"):
        assert log.overlaps(folder) == []
    place = tmp_path / "index-plain-0"
    shutil.copytree(INDEXES / "index-plain-0", place)
    # As Kafka 3.9 leaves it when an append fails in the middle: offsets are given away again.
    first, second = sorted(place.glob("*.log"))[:2]
    first.write_bytes(first.read_bytes() + second.read_bytes())
    shutil.copy(second, place / "00000000000000000099.log.deleted")
    (found,) = log.overlaps(place)
    assert (found.earlier, found.later, found.first) == (first, second, 25)
    assert found.last >= 25
    described = log.describe(place)
    assert described.partitions[0].problems == [str(found)]
    assert not described.sound


@pytest.mark.parametrize("end", [".index", ".timeindex"])
def test_a_ruined_index_is_a_problem_of_its_partition(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in SEGMENTS.glob("*-indexes"):
        assert log.describe(folder).sound
    place = tmp_path / "index-plain-0"
    shutil.copytree(INDEXES / "index-plain-0", place)
    index = sorted(place.glob(f"*{end}"))[0]
    index.write_bytes(b"\xff" * 24)
    found = log.describe(place)
    (problem,) = found.partitions[0].problems
    assert problem.startswith(f"{index.name}: entry 0: ")
    assert problem.endswith(f" more: kwire segments {index.name} shows them")
    assert main(["segments", str(place)]) == 1
    assert problem in capsys.readouterr().out
    index.write_bytes(b"abc")
    (problem,) = log.describe(place).partitions[0].problems
    assert problem == f"{index.name}: entry 0: 3 bytes behind the last whole entry"


def test_a_property_that_is_there_twice_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    shutil.copytree(KRAFT / "node-1", data)
    file = data / "meta.properties"
    file.write_bytes(file.read_bytes() + b"node.id=7\nversion=1\nssl.key.password=hunter2\n")
    found = log.describe(data)
    assert found.problems == [f"{file}: node.id is there twice, with different values: the last one counts"]
    assert main(["segments", str(file)]) == 1
    out = capsys.readouterr().out
    assert "name node.id, value 7: problem: is there twice" in out
    assert "hunter2" not in out


def test_a_compressed_segment_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "00000000000000000000.log.gz"
    file.write_bytes(b"\x1f\x8b" + bytes(20))
    assert main(["segments", str(file)]) == 2
    assert "compressed: `kwire decode` reads it as it is" in capsys.readouterr().err


READERS: list[tuple[Callable[[Path], Any], Path]] = [
    (log.read_offsets, KRAFT / "node-1" / "replication-offset-checkpoint"),
    (log.read_epochs, KRAFT / "node-1" / "folder-plain-1" / "leader-epoch-checkpoint"),
    (log.read_partition_metadata, KRAFT / "node-1" / "folder-plain-1" / "partition.metadata"),
    (log.read_properties, KRAFT / "node-1" / "meta.properties"),
    (log.read_aborted, KRAFT / "node-1" / "folder-plain-0" / "00000000000000000000.txnindex"),
    (log.read_producers, KRAFT / "node-1" / "folder-plain-0" / "00000000000000000006.snapshot"),
]


@pytest.mark.parametrize(("read", "file"), READERS)
def test_any_bytes_are_an_answer_or_an_error_with_the_file(
    read: Callable[[Path], Any], file: Path, tmp_path: Path
) -> None:
    good = file.read_bytes()
    target = tmp_path / "file"
    random_ = random.Random(15)
    inputs = [good[:n] for n in range(len(good))]
    for _ in range(300):
        changed = bytearray(good)
        for _ in range(random_.randint(1, 4)):
            changed[random_.randrange(len(good))] = random_.randrange(256)
        inputs.append(bytes(changed))
    inputs += [b"\n" * 1000, b"0\n" + b"9" * 10_000 + b"\n", b"\\" * 1001, b"\xff" * 100, good + b"x", good * 2]
    refused = 0
    for data in inputs:
        target.write_bytes(data)
        try:
            read(target)
        except CaptureError as error:
            refused += error.file == str(target)
    # Nearly any bytes are properties.
    assert refused >= (0 if read is log.read_properties else 50)


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    def refused(read: Callable[[Path], Any], data: bytes) -> str:
        target = tmp_path / "file"
        target.write_bytes(data)
        with pytest.raises(CaptureError) as caught:
            read(target)
        return str(caught.value).removeprefix(str(target))

    assert refused(log.read_offsets, b"7\n0\n") == " at byte 0: version 7 is not known"
    assert refused(log.read_offsets, b"0\n2\na 0 1\n") == " at byte 4: 2 entries were announced, and there are 1"
    assert refused(log.read_offsets, b"0\n1\na 0\n") == " at byte 4: a topic, a partition and an offset was expected"
    assert refused(log.read_offsets, b"0\n2\na 0 1\na 0 2\n") == ": a-0 is there twice"
    assert refused(log.read_offsets, b"0\n1\na 0 9999999999999999999\n").endswith("is no int64")
    assert refused(log.read_offsets, b"0\n1\na -1 5\n") == ": partition -1, offset 5: these cannot be"
    assert refused(log.read_offsets, b"0\n1\na 1 -5\n") == ": partition 1, offset -5: these cannot be"
    assert refused(log.read_epochs, b"0\n2\n3 5\n2 6\n") == ": epoch 2 from 6 behind epoch 3 from 5"
    assert refused(log.read_partition_metadata, b"version: 0\ntopic_id: x\n").startswith(" at byte 0")
    assert refused(log.read_properties, b"a=\\u12").endswith(r"a \u without four hexadecimal digits")
    assert refused(log.read_properties, bytes(70_000)).endswith("more than 65536 bytes")
    assert refused(log.read_aborted, struct.pack(">hqqqq", 1, 1, 2, 3, 4)) == " at byte 0: version 1 is not known"
    assert refused(log.read_aborted, struct.pack(">hqqqq", 0, 1, 9, 3, 4)).endswith("from offset 9 to 3")
    assert refused(log.read_aborted, bytes(35)) == " at byte 34: 1 bytes behind the last whole entry"
    assert refused(log.read_producers, bytes(5)).startswith(" at byte 0: 5 bytes")
    assert refused(log.read_producers, struct.pack(">hIi", 1, 1, 0)) == " at byte 2: the checksum does not match"
    many = struct.pack(">i", 2_000_000_000)
    assert "2000000000 producers" in refused(log.read_producers, struct.pack(">hI", 1, crc32c(many)) + many)


def test_properties_are_read_as_java_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "meta.properties"
    file.write_bytes(b"#a\n!b\n\n a\\ b = c\\:\\u0041 \r\nd:e\\\n   f\nempty=\ntwice=1\ntwice=2\nalone\n")
    assert log.read_properties(file) == {"a b": "c:A ", "d": "ef", "empty": "", "twice": "2", "alone": ""}


def test_a_snapshot_may_have_an_open_transaction(tmp_path: Path) -> None:
    entry = struct.pack(">qhiqiqiq", 5, 1, 9, 100, 2, 1_700_000_000_000, 3, 98)
    body = struct.pack(">i", 1) + entry
    file = tmp_path / "00000000000000000101.snapshot"
    file.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
    assert log.read_producers(file) == [Producer(5, 1, 9, 100, 2, 1_700_000_000_000, 3, 98)]


def test_damaged_files_are_listed_and_the_rest_is_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(KRAFT / "node-1", data)
    (data / "replication-offset-checkpoint").write_bytes(b"x")
    (data / "folder-plain-0" / "leader-epoch-checkpoint").write_bytes(b"0\n9\n")
    (data / "folder-plain-0" / "00000000000000000006.snapshot").write_bytes(b"")
    os.mkfifo(data / "folder-plain-1" / "00000000000000000001.txnindex")
    found = log.describe(data)
    assert len(found.problems) == 1
    assert [len(one.problems) for one in found.partitions] == [0, 2, 1]
    plain = found.partitions[1]
    assert (plain.high_watermark, plain.recovery_point, plain.epochs, plain.producers) == (None, 6, [], [])
    assert plain.aborted


def test_kwire_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["segments", str(KRAFT / "node-1"), str(KRAFT / "node-2")]) == 0
    out = capsys.readouterr().out
    assert "node 1, cluster mbuqtOLnT0ep9FaapERBaQ, directory GurBwVif7Wn2QXOhk7PQWA" in out
    assert "folder-plain-0: topic id d0vHbN_5QkqGQyirZTzNvw, log start 2, recovery point 6, high watermark 6" in out
    assert "  leader epochs: 0 from 0, 1 from 6" in out
    assert "  aborted: offsets 2 to 3 of producer 0" in out
    assert "in checkpoints, but not there: __transaction_state-0" in out
    data = tmp_path / "data"
    shutil.copytree(KRAFT / "node-1", data)
    (data / "folder-plain-0" / "partition.metadata").write_bytes(b"\x1b[31mred")
    assert main(["segments", str(data), "--format", "jsonl"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["topic"], line["partition"], len(line["problems"])) for line in lines] == [
        ("folder-compacted", 0, 0), ("folder-plain", 0, 1), ("folder-plain", 1, 0),
    ]  # fmt: skip
    assert lines[1]["producers"][0]["last_offset"] == 4
    assert lines[1]["segments"] == [
        {"file": "00000000000000000000.log", "first_offset": 0, "last_offset": 5, "batches": 6, "bytes": 453}
    ]
    assert main(["segments", str(data)]) == 1
    assert "\x1b" not in capsys.readouterr().out
    assert main(["segments", str(tmp_path / "nothing"), str(tmp_path)]) == 2
    assert "no log segments in this folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entries", "good"),
    [
        ([(0, 0), (5, 10), (7, 10)], True),
        ([(5, 10), (5, 20)], False),
        ([(5, 10), (4, 20)], False),
        ([(5, 10), (6, 9)], False),
    ],
)
def test_epochs_go_upwards_and_their_offsets_not_down(
    tmp_path: Path, entries: list[tuple[int, int]], good: bool
) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(f"0\n{len(entries)}\n" + "".join(f"{epoch} {offset}\n" for epoch, offset in entries))
    if good:
        assert [tuple(one) for one in log.read_epochs(path)] == entries
        return
    with pytest.raises(CaptureError, match=r"epoch \d from \d+ behind epoch 5 from 10"):
        log.read_epochs(path)
