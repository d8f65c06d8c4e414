"""The segments in ``segments`` are read as Kafka's tool printed them; all records of Kafka's own topics are known."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import dumplog
import pytest

from kwire import log
from kwire.log.files import named
from kwire.log.internal import decoded

HERE = Path(__file__).parent / "segments"
SEGMENTS = sorted([*HERE.glob("*/*/*.log"), *HERE.glob("*/*/*.checkpoint")])
OWN = [path for path in SEGMENTS if path.parent.name.startswith("__")]


def title(path: Path) -> str:
    return str(path.relative_to(HERE))


def test_there_are_segments_of_every_format() -> None:
    folders = {path.parent.parent.name for path in SEGMENTS}
    assert len(folders) == 4
    assert len(SEGMENTS) >= 45
    assert {row["magic"] for path in SEGMENTS for row in dumplog.rows(log.batches(path))} == {0, 1, 2}
    assert {path.parent.name.rpartition("-")[0] for path in OWN} == set(log.internal.TOPICS)


@pytest.mark.parametrize("path", SEGMENTS, ids=title)
def test_batches_and_records_are_those_that_the_brokers_tool_printed(path: Path) -> None:
    dumplog.compare(named(path), path.with_name(path.name + ".txt").read_text())


@pytest.mark.parametrize("path", SEGMENTS, ids=title)
def test_all_of_a_segment_is_read(path: Path) -> None:
    notes: list[str] = []
    batches = dumplog.rows(log.batches(path, on_note=notes.append))
    assert notes == []
    assert sum(row["size"] for row in batches) == path.stat().st_size
    assert {row["status"] for row in dumplog.rows(log.read(path))} == {"ok"}


@pytest.mark.parametrize("path", OWN, ids=title)
def test_every_record_of_kafkas_own_topics_is_decoded(path: Path) -> None:
    rows = [row for batch in log.read(path) for row in decoded(batch).to_pylist()]
    assert rows
    for row in rows:
        assert row["record_type"] is not None
        assert (row["decoded_value"] is None) == (row["value"] is None)
        assert (row["decoded_key"] is None) == (row["key"] is None)


@pytest.mark.parametrize("path", OWN, ids=title)
def test_a_decoded_value_has_the_version_that_its_bytes_have(path: Path) -> None:
    for batch in log.read(path):
        for row in decoded(batch).to_pylist():
            if row["value"] is None or row["topic"] == "__cluster_metadata":
                continue
            if not row["is_control"]:
                assert json.loads(row["decoded_value"])["version"] == int.from_bytes(row["value"][:2], "big")


@pytest.mark.parametrize("path", [path for path in SEGMENTS if path.suffix == ".log"], ids=title)
def test_indexes_made_of_what_the_tool_printed_fit_and_others_do_not(path: Path, tmp_path: Path) -> None:
    """The brokers' own are not kept: so small a segment gets no entry. ``tests/broker`` checks those of large ones."""
    segment = named(tmp_path / path.name)
    segment.path.write_bytes(path.read_bytes())
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    for line in path.with_name(path.name + ".txt").read_text(errors="replace").split("\n"):
        found = re.match(r"(?:.* lastO|o)ffset: (\d+) .*position: (\d+) \w+: (-?\d+) ", line)
        if found:
            last, position, time = map(int, found.groups())
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
