"""Which captures commands read, in which order, and captures that are one that was cut."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kwire.cli import main
from kwire.cli.captures import captures, in_order
from kwire.testing.packets import read as packets_of
from kwire.testing.packets import write_pcap

WHOLE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-librdkafka" / "current.pcap"
PARTS = 12


@pytest.fixture(scope="module")
def rotated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``tcpdump -C`` names files: x, x1, ... x11, which a shell sorts as x, x1, x10, x11, x2."""
    folder = tmp_path_factory.mktemp("rotated")
    packets = packets_of(WHOLE.read_bytes())
    for number in range(PARTS):
        part = packets[number * len(packets) // PARTS : (number + 1) * len(packets) // PARTS]
        (folder / f"x{number or ''}").write_bytes(write_pcap(part))
    return folder


def names(folder: Path) -> list[str]:
    return [str(folder / f"x{number or ''}") for number in range(PARTS)]


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["decode", *words, "--format", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_folder_stands_for_its_captures_in_order_of_time(rotated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(rotated), "--columns", "capture")
    assert list(dict.fromkeys(row["capture"] for row in found)) == names(rotated)
    assert found == rows(capsys, *reversed(names(rotated)), "--columns", "capture")
    for command, *words in (["findings"], ["audit"], ["lineage"], ["why", "--group", "new-group"]):
        said = []
        for files in ([str(rotated)], names(rotated)):
            assert main([command, *words, *files, "--format", "json"]) in (0, 1)
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]


def test_only_captures_of_a_folder_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = tmp_path / "day" / "sensor"
    inside.mkdir(parents=True)
    (inside / "b.gz").write_bytes(gzip.compress(WHOLE.read_bytes()))
    (inside / "text.gz").write_bytes(gzip.compress(b"no capture"))
    (tmp_path / "keys.log").write_text("CLIENT_RANDOM")
    (tmp_path / ".hidden").write_bytes(WHOLE.read_bytes())
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "c").write_bytes(WHOLE.read_bytes())
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    (inside / "cut.pcap").write_bytes(WHOLE.read_bytes()[:100])
    found = captures([str(tmp_path), str(inside / "b.gz")])
    assert sorted(found[:2]) == [str(inside / "b.gz"), str(inside / "cut.pcap")]
    # What is named is read, also where the folder has it.
    assert found[2:] == [str(inside / "b.gz")]
    assert capsys.readouterr().err == f"kwire: {tmp_path}: note: files that are no captures: 2\n"


@pytest.mark.parametrize("command", ["decode", "findings", "report", "audit", "lineage"])
def test_a_folder_without_captures_is_one_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert main([command, str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kwire: {tmp_path}: a folder, not a file")


def test_what_has_no_time_stays_where_it_is(rotated: Path, tmp_path: Path) -> None:
    early, late = names(rotated)[0], names(rotated)[5]
    packed = tmp_path / "first.gz"
    packed.write_bytes(gzip.compress(Path(early).read_bytes()))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "damaged").write_bytes(packed.read_bytes()[:20])
    others = ["-", str(pipe), str(tmp_path), str(tmp_path / "none"), str(tmp_path / "damaged")]
    assert in_order([late, *others, str(packed)]) == [str(packed), late, *others]


def without_places(value: Any) -> Any:
    if isinstance(value, list):
        return [without_places(one) for one in value]
    if not isinstance(value, dict):
        return value
    left = {name: one for name, one in value.items() if not name.endswith(("capture", "connection"))}
    return {name: without_places(one) for name, one in left.items() if "frame" not in name}


@pytest.mark.parametrize("table", ["frames", "partitions", "records", "calls", "group_events", "transactions"])
def test_across_gives_the_rows_of_the_capture_that_was_cut(
    table: str, rotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = rows(capsys, str(WHOLE), "--table", table)
    found = rows(capsys, str(rotated), "--across", "--table", table)
    assert len(whole) > 2
    # Captures, frames and connections have numbers of their own; all else is the same.
    assert without_places(found) == without_places(whole)


def test_without_across_connections_are_cut(rotated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {row["status"] for row in rows(capsys, str(rotated), "--columns", "status")}
    assert words - {"ok"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--across", "--table", "connections"], "the rows of connections are of whole files"),
        (["--across", "-j", "2"], "not with -j"),
        (["--across", "--account"], "not with -j, --follow, --account"),
        (["group_events"], "there is no file group_events: --table group_events says what a row is"),
        (["-", "--across"], "not with -j, --follow, --account or -"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: list[str], said: str, rotated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["decode", str(rotated), *words])
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_a_capture_that_is_damaged_does_not_end_the_others(
    rotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name in names(rotated):
        files.append(str(tmp_path / Path(name).name))
        Path(files[-1]).write_bytes(Path(name).read_bytes())
    damaged = Path(files[4])
    damaged.write_bytes(damaged.read_bytes()[:-40])
    assert main(["decode", "--across", *files, "--columns", "capture,status", "--format", "jsonl"]) == 2
    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    assert {row["capture"] for row in found} == set(files)
    assert str(damaged) in err
