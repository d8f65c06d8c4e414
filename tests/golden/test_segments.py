"""The segments in ``segments`` are read as Kafka's tool printed them; all records of Kafka's own topics are known.

So are the indexes that brokers wrote (folders ``*-indexes``), which must fit their segment, while damage is told.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import dumplog
import pytest
from valid_batches import valid

from kwire import cli, log
from kwire.log.files import named
from kwire.log.internal import decoded

pytestmark = pytest.mark.usefixtures("engine")

HERE = Path(__file__).parent / "segments"
SEGMENTS = sorted([*HERE.glob("*/*/*.log"), *HERE.glob("*/*/*.checkpoint")])
INDEXED = [path for path in SEGMENTS if path.with_suffix(".index").exists()]
PARTITIONS = sorted({path.parent for path in INDEXED})
OWN = [path for path in SEGMENTS if path.parent.name.startswith("__")]


def title(path: Path) -> str:
    return str(path.relative_to(HERE))


def test_there_are_segments_of_every_format() -> None:
    folders = {path.parent.parent.name for path in SEGMENTS}
    assert len(folders) == 8
    assert len(SEGMENTS) >= 45 + 41
    assert {row["magic"] for path in SEGMENTS for row in dumplog.rows(log.batches(path))} == {0, 1, 2}
    # None of a cluster with tiered storage has been recorded.
    assert {path.parent.name.rpartition("-")[0] for path in OWN} == {*log.internal.TOPICS} - {"__remote_log_metadata"}


@pytest.mark.wide(keep=40)
@pytest.mark.parametrize("path", SEGMENTS, ids=title)
def test_batches_and_records_are_those_that_the_brokers_tool_printed(path: Path) -> None:
    dumplog.compare(named(path), dumplog.printed(path))


@pytest.mark.wide(keep=40)
@pytest.mark.parametrize("path", SEGMENTS, ids=title)
def test_all_of_a_segment_is_read(path: Path) -> None:
    notes: list[str] = []
    batches = dumplog.rows(log.batches(path, on_note=notes.append))
    assert notes == []
    assert sum(row["size"] for row in batches) == path.stat().st_size
    assert {row["status"] for row in dumplog.rows(log.read(path))} == {"ok"}


@pytest.mark.parametrize("path", OWN, ids=title)
def test_every_record_of_kafkas_own_topics_is_decoded(path: Path) -> None:
    rows = [row for batch in valid(map(decoded, log.read(path, secrets=True))) for row in batch.to_pylist()]
    assert rows
    for row in rows:
        assert row["record_type"] is not None
        assert (row["decoded_value"] is None) == (row["value"] is None)
        assert (row["decoded_key"] is None) == (row["key"] is None)


@pytest.mark.parametrize("path", OWN, ids=title)
def test_a_decoded_value_has_the_version_that_its_bytes_have(path: Path) -> None:
    for batch in log.read(path, secrets=True):
        for row in decoded(batch).to_pylist():
            if row["value"] is None or row["topic"] == "__cluster_metadata":
                continue
            if not row["is_control"]:
                assert json.loads(row["decoded_value"])["version"] == int.from_bytes(row["value"][:2], "big")


@pytest.mark.parametrize("path", [path for path in SEGMENTS if path.suffix == ".log"], ids=title)
def test_indexes_made_of_what_the_tool_printed_fit_and_others_do_not(path: Path, tmp_path: Path) -> None:
    """An entry of each batch: more than brokers write."""
    segment = named(tmp_path / path.name)
    segment.path.write_bytes(path.read_bytes())
    base = int(path.stem)
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    for line in dumplog.printed(path).split("\n"):
        found = re.match(r"(?:.* lastO|o)ffset: (\d+) .*position: (\d+) \w+: (-?\d+) ", line)
        if found:
            last, position, time = map(int, found.groups())
            last -= base
            offsets.append((last, position))
            if time > max((one for one, _ in times), default=-1) and "isControl: true" not in line:
                times.append((time, last))
    assert offsets

    def problems() -> set[tuple[str, int]]:
        segment.index.write_bytes(b"".join(struct.pack(">ii", *one) for one in offsets) + bytes(16))
        segment.time_index.write_bytes(b"".join(struct.pack(">qi", *one) for one in times))
        return {(problem.file, problem.entry) for problem in log.check_indexes(segment)}

    assert problems() == set()
    offsets[-1] = (offsets[-1][0], offsets[-1][1] + 1)
    expected = {(segment.index.name, len(offsets) - 1)}
    if times:
        times[-1] = (times[-1][0] + 1_000_000, times[-1][1])
        expected.add((segment.time_index.name, len(times) - 1))
    assert problems() == expected


# --- indexes that brokers wrote ---------------------------------------------------------------------------------------


def test_there_are_indexes_of_old_and_new_releases_and_of_every_kind_of_topic() -> None:
    names = {(path.parent.parent.name, path.parent.name) for path in INDEXED}
    brokers = {"3.9-kraft-indexes", "4.3-kraft-indexes"}
    kinds = ("plain", "late", "append-time", "transactions", "compacted")
    assert names >= {(broker, f"index-{kind}-0") for broker in brokers for kind in kinds}
    assert all(len(log.find(folder)) > 1 for folder in PARTITIONS)
    # ZooKeeper clusters with so old a protocol have no topic ids.
    assert all((one.topic_id is None) == ("-zk-" in str(folder)) for folder in PARTITIONS for one in log.find(folder))
    assert {path.parent.parent.name for path in HERE.glob("*/index-transactions-0/*.txnindex")} == brokers
    entries = [len(log.read_index(named(path))) + len(log.read_time_index(named(path))) for path in INDEXED]
    assert sum(entries) >= 400


@pytest.mark.parametrize("path", INDEXED, ids=title)
def test_the_entries_of_an_index_are_those_that_the_brokers_tool_printed(path: Path) -> None:
    segment = named(path)
    count = dumplog.compare_indexes(segment, dumplog.printed(segment.index), dumplog.printed(segment.time_index))
    # The broker was shut down cleanly: there is nothing but entries.
    assert count == segment.index.stat().st_size / 8 + segment.time_index.stat().st_size / 12


@pytest.mark.parametrize("folder", PARTITIONS, ids=title)
def test_the_brokers_tool_and_kwire_differ_only_where_one_entry_is_for_several_messages(folder: Path) -> None:
    """Before 3.8 what was appended at once had one entry, for its last offset; the tool expects that of the first."""
    files = sorted(path.name for path in folder.iterdir() if path.suffix in (".index", ".timeindex"))
    said = (folder / "index-sanity-check.txt").read_text()
    assert re.findall(r"^(\S+) (?:passed sanity check\.|is empty\.)$", said, re.MULTILINE) == files
    said = (folder / "verify-index-only.txt").read_text()
    lines = [line for line in said.split("\n") if line and not line.startswith("Dumping ")]
    complaints: list[tuple[str, int, int]] = []
    file = ""
    for line in lines:
        if line.endswith(" is empty."):
            assert (folder / line.partition(" ")[0]).stat().st_size == 0
        elif found := re.fullmatch(r"Mismatches in :(\S+\.index)", line):
            file = found[1]
        else:
            found = re.fullmatch(r"  Index offset: (\d+), log offset: (\d+)", line)
            assert found, line
            complaints.append((file, int(found[1]), int(found[2])))
    assert bool(complaints) == folder.parent.name.startswith("3.7-zk-format-0.10")
    for file, offset, first in complaints:
        segment = named((folder / file).with_suffix(".log"))
        ends = {row["position"]: row["last_offset"] for row in dumplog.rows(log.batches(segment))}
        (position,) = (entry.position for entry in log.read_index(segment) if entry.offset == offset)
        assert ends[position] == first < offset
        assert offset in ends.values()


FORMS = {".index": ">ii", ".timeindex": ">qi"}
INDEXES = [path.with_suffix(suffix) for path in INDEXED for suffix in FORMS]
Entries = list[tuple[int, int]]
Damage = Callable[[Entries, str, int], int]


def change(entries: Entries, suffix: str, size: int) -> int:
    """The position, or the timestamp, of an entry in the middle is one more."""
    at = len(entries) // 2
    first, second = entries[at]
    entries[at] = (first + 1, second) if suffix == ".timeindex" else (first, second + 1)
    return at


def exchange(entries: Entries, suffix: str, size: int) -> int:
    """The last two entries are in the wrong order."""
    entries[-2:] = [entries[-1], entries[-2]]
    return len(entries) - 1


def repeat(entries: Entries, suffix: str, size: int) -> int:
    """The last entry is there twice."""
    entries.append(entries[-1])
    return len(entries) - 1


def beyond(entries: Entries, suffix: str, size: int) -> int:
    """There is one more entry, for what is behind the end of the segment, which has ``size`` bytes."""
    entries.append((entries[-1][0] + 1, 1000) if suffix == ".timeindex" else (1000, size))
    return len(entries) - 1


DAMAGES: list[tuple[Damage, int]] = [(change, 1), (exchange, 2), (repeat, 1), (beyond, 0)]
"""Each changes the entries of an index of that suffix, and says which one is the first that is wrong then.

The number is that of the entries that an index needs for it.
"""
DAMAGED = [
    (index, damage)
    for index in INDEXES
    for damage, least in DAMAGES
    if index.stat().st_size >= least * struct.calcsize(FORMS[index.suffix])
]


def copied(partition: Path, target: Path) -> Path:
    """A copy of the folder of a partition, in which indexes may be damaged."""
    return Path(shutil.copytree(partition, target / partition.name))


def damaged(index: Path, damage: Damage) -> int:
    """Damages a file. Returns the number of the entry that is wrong."""
    form = FORMS[index.suffix]
    entries: Entries = list(struct.iter_unpack(form, index.read_bytes()))
    wrong = damage(entries, index.suffix, index.with_suffix(".log").stat().st_size)
    index.write_bytes(b"".join(struct.pack(form, *one) for one in entries))
    return wrong


def check(folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, list[str], list[str]]:
    """What ``kwire decode --check-indexes`` does: exit code, rows, and what it says without the name of the folder."""
    code = cli.main(["decode", str(folder), "--check-indexes", "--format", "jsonl"])
    told = capfd.readouterr()
    rows, said = (text.replace(f"{folder}/", "").split("\n")[:-1] for text in told)
    return code, rows, said


def test_each_kind_of_damage_is_done_to_nearly_every_index() -> None:
    assert len(INDEXES) == 82
    done = [damage for _, damage in DAMAGED]
    assert all(done.count(damage) > 70 for damage, _ in DAMAGES)


@pytest.mark.wide(keep=40)
@pytest.mark.parametrize(
    ("index", "damage"), DAMAGED, ids=lambda one: title(one) if isinstance(one, Path) else one.__name__
)
def test_a_damaged_entry_of_an_index_is_told(index: Path, damage: Damage, tmp_path: Path) -> None:
    copy = copied(index.parent, tmp_path) / index.name
    wrong = damaged(copy, damage)
    problems = log.check_indexes(named(copy.with_suffix(".log")))
    assert (problems[0].file, problems[0].entry) == (index.name, wrong)
    # An entry that is too late makes the one behind it look wrong too.
    assert {(one.file, one.entry) for one in problems} <= {(index.name, wrong), (index.name, wrong + 1)}


@pytest.mark.wide(keep=40)
@pytest.mark.parametrize("index", [index for index in INDEXES if index.stat().st_size], ids=title)
def test_an_index_that_ends_in_an_entry_is_told_and_the_entries_before_are_read(index: Path, tmp_path: Path) -> None:
    copy = copied(index.parent, tmp_path) / index.name
    segment = named(copy.with_suffix(".log"))
    whole = [log.read_index(segment), log.read_time_index(segment)]
    number = list(FORMS).index(index.suffix)
    copy.write_bytes(index.read_bytes()[:-3])
    size = struct.calcsize(FORMS[index.suffix])
    assert [str(problem) for problem in log.check_indexes(segment)] == [
        f"{index.name}: entry {len(whole[number]) - 1}: {size - 3} bytes behind the last whole entry"
    ]
    whole[number].pop()
    assert [log.read_index(segment), log.read_time_index(segment)] == whole


@pytest.mark.wide(keep=40)
@pytest.mark.parametrize("index", INDEXES, ids=title)
def test_space_that_a_running_broker_has_allocated_is_no_entry(index: Path, tmp_path: Path) -> None:
    copy = copied(index.parent, tmp_path) / index.name
    segment = named(copy.with_suffix(".log"))
    entries = [log.read_index(segment), log.read_time_index(segment)]
    copy.write_bytes(index.read_bytes().ljust(96 * 1024, b"\0"))
    assert [log.read_index(segment), log.read_time_index(segment)] == entries
    assert log.check_indexes(segment) == []


@pytest.mark.wide(keep=14)
@pytest.mark.parametrize("folder", PARTITIONS, ids=title)
def test_the_records_beside_right_and_damaged_indexes_are_read(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, rows, said = check(folder, capfd)
    assert (code, said) == (0, [])
    assert len(rows) == sum(batch.num_rows for segment in log.find(folder) for batch in log.read(segment))
    copy = copied(folder, tmp_path)
    last = log.find(copy)[-1]
    wrong = [f"kwire: {index.name}: entry {damaged(index, beyond)}: " for index in (last.index, last.time_index)]
    code, rows_of_damaged, said = check(copy, capfd)
    assert code == 2
    assert rows_of_damaged == rows
    assert len(said) == len(wrong)
    assert all(line.startswith(start) for line, start in zip(said, wrong, strict=True))
