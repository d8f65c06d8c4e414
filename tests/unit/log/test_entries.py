"""The files beside segments, each by its name: their entries, and what is wrong with them."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from kwire import cli, log
from kwire.errors import CaptureError
from kwire.log.entries import entries, has_entries

SEGMENTS = Path(__file__).parents[2] / "golden" / "segments"
INDEXED = SEGMENTS / "4.3-kraft-indexes" / "index-transactions-0"
NODE = SEGMENTS / "4.3-kraft-folder" / "node-1"
DUMPED = sorted(one.relative_to(SEGMENTS).as_posix() for one in SEGMENTS.rglob("*index.txt"))


@pytest.mark.parametrize("dump", DUMPED)
def test_indexes_of_brokers_are_right_and_have_the_entries_that_kafkas_tool_prints(dump: str) -> None:
    text = (SEGMENTS / dump).read_text()
    found = entries(SEGMENTS / dump.removesuffix(".txt"))
    assert not found.problems
    assert found.is_checked
    names = {
        "offset index": r"offset: (-?\d+) position: (-?\d+)",
        "time index": r"timestamp: (-?\d+) offset: (-?\d+)",
        "aborted transactions": r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)",
    }
    printed = [tuple(map(int, one)) for one in re.findall(names[found.kind], text)]
    rows = [tuple(row.values()) for row in found.rows]
    # The tool prints one entry of an index that has none.
    assert rows == [one for one in printed if rows or any(one[: len(one) - 1])]


def test_every_file_of_a_data_folder_is_known_by_its_name() -> None:
    found: dict[str, Any] = {}
    for file in NODE.rglob("*"):
        if file.is_file() and not file.name.endswith((".log", ".txt")):
            assert has_entries(file.name), file
            found.setdefault(entries(file).kind, entries(file).rows)
    assert set(found) == {
        "aborted transactions",
        "producers",
        "leader epochs",
        "offsets of partitions",
        "id of a topic",
        "properties",
    }
    assert {"name": "node.id", "value": "1"} in found["properties"]
    assert all(set(row) == {"topic", "partition", "offset"} for row in found["offsets of partitions"])
    assert found["producers"] == [one._asdict() for one in log.read_producers(next(NODE.rglob("*.snapshot")))]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(INDEXED, tmp_path / "orders-0"))


def test_an_entry_that_leads_to_the_wrong_place_says_so(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = copy / f"{24:020}.index"
    data = bytearray(index.read_bytes())
    struct.pack_into(">i", data, 12, struct.unpack_from(">i", data, 12)[0] - 1)
    index.write_bytes(bytes(data[:16]) + b"!!!")
    assert entries(index).problems.keys() == {1, 2}
    assert cli.main(["segments", str(index)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith(".index: offset index, 2 entries, held against the segment")
    assert out[1] == "  0: offset 27, position 223"
    assert out[2] == "  1: offset 30, position 431: problem: no entry of the segment starts at position 431"
    assert out[3] == "  2: problem: 3 bytes behind the last whole entry"
    assert cli.main(["segments", str(index), "--format", "jsonl"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["entry"], row["problem"] is None) for row in rows] == [(0, True), (1, False), (2, False)]
    # Without its segment nothing can be said of it.
    (copy / f"{24:020}.log").unlink()
    assert not entries(index).is_checked
    assert cli.main(["segments", str(index)]) == 0
    capsys.readouterr()


def test_what_is_wrong_with_one_index_is_no_problem_of_another(copy: Path) -> None:
    times, index = (copy / f"{24:020}{suffix}" for suffix in (".timeindex", ".index"))
    times.write_bytes(times.read_bytes() + b"!!!")
    assert list(entries(times).problems.values()) == ["3 bytes behind the last whole entry"]
    assert entries(index).problems == {}
    assert entries(copy / f"{24:020}.txnindex").problems == {}


def test_files_that_are_not_what_their_names_say_are_errors(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x.index", "leader-epoch-checkpoint", f"{7:020}.snapshot", "partition.metadata"):
        file = copy / name
        file.write_bytes(b"nonsense")
        with pytest.raises(CaptureError):
            entries(file)
        assert cli.main(["segments", str(file)]) == 2
        assert name in capsys.readouterr().err
    with pytest.raises(CaptureError, match="no file of this name"):
        entries(copy / "server.log")
    # Decoding one says what shows it.
    assert cli.main(["decode", str(copy / f"{24:020}.index")]) == 2
    assert "the offset index of a segment: `kwire segments` shows it" in capsys.readouterr().err
