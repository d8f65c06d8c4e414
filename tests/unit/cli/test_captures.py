"""Which captures commands read, in which order, and captures that are one that was cut."""

from __future__ import annotations

import gzip
import json
import os
from itertools import pairwise
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


FINDINGS = WHOLE.parents[1] / "findings"


@pytest.mark.parametrize("capture", [WHOLE, FINDINGS / "sessions.gz", FINDINGS / "leaders.gz", FINDINGS / "shares.gz"])
def test_answers_of_a_capture_in_four_files_are_those_of_the_whole(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = capture.read_bytes()
    packets = packets_of(gzip.decompress(data) if capture.suffix == ".gz" else data)
    whole, folder = tmp_path / "x1", tmp_path / "cut"
    folder.mkdir()
    whole.write_bytes(write_pcap(packets))
    cuts = [k * len(packets) // 4 for k in range(5)]
    for k, (begin, end) in enumerate(pairwise(cuts)):
        (folder / f"x{4 - k}").write_bytes(write_pcap(packets[begin:end]))
    for command in ("findings", "audit", "lineage"):
        said = []
        for file in (whole, folder):
            assert main([command, str(file), "--format", "json"]) in (0, 1)
            said.append(json.loads(capsys.readouterr().out)["rows"])
        if command == "findings":
            assert said[0]
            for one, other in zip(*(map(evidence, rows_) for rows_ in said), strict=True):
                # Of many frames, which are shown depends on windows, and so on files.
                assert one & other
        assert said[0] == said[1]


def halves(folder: Path, seconds: float) -> list[str]:
    """A capture in two files, the second of them so much later."""
    packets = packets_of(WHOLE.read_bytes())
    files = []
    for k, part in enumerate((packets[: len(packets) // 2], packets[len(packets) // 2 :])):
        files.append(folder / f"x{k}")
        later = [one._replace(time=one.time + k * int(seconds * 1e9)) for one in part]
        files[-1].write_bytes(write_pcap(later))
    return [str(one) for one in files]


@pytest.mark.parametrize(("seconds", "apart"), [(0, 0), (30, 0), (-0.5, 0), (-20, 1), (90, 1), (86_400, 1)])
def test_captures_of_the_same_time_or_long_after_are_others(
    seconds: float, apart: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = []
    for folder, later in (("whole", 0.0), ("cut", seconds)):
        (tmp_path / folder).mkdir()
        assert main(["audit", *halves(tmp_path / folder, later), "--format", "json"]) == 0
        counts.append(sum(row["connections"] for row in json.loads(capsys.readouterr().out)["rows"]))
    assert (counts[1] > counts[0]) is bool(apart)


def test_what_is_wrong_with_a_file_is_said_once_and_the_next_goes_on(
    rotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / Path(name).name for name in names(rotated)]
    for name, file in zip(names(rotated), files, strict=True):
        file.write_bytes(Path(name).read_bytes())
    files[4].write_bytes(files[4].read_bytes()[:-40])
    files[6].write_bytes(b"\0" * 100)
    files[8].write_bytes(gzip.compress(files[8].read_bytes())[:60])
    found = []
    for chosen in (files, [*files[:4], *files[9:]]):
        code = main(["findings", *map(str, chosen), "--format", "json"])
        out, err = capsys.readouterr()
        found.append({row["rule"] for row in json.loads(out)["rows"]})
        wrong = [Path(line.split(": ")[1]).name.split()[0] for line in err.splitlines() if ": note: " not in line]
        assert sorted(wrong) == (["x4", "x6", "x8"] if chosen is files else [])
        assert code == (2 if chosen is files else 0)
    assert found[0] >= found[1] > set()


def test_a_frame_of_several_captures(rotated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(WHOLE), "--frame", "702"]) == 0
    shown = capsys.readouterr().out
    assert main(["explain", str(rotated), "--frame", "702"]) == 0
    assert capsys.readouterr().out == shown
    # As decode --across says it.
    number = [row["frame"] for row in rows(capsys, str(rotated), "--across", "--columns", "frame")][702]
    assert number > 1 << 32
    assert main(["explain", *names(rotated), "--frame", str(number)]) == 0
    assert capsys.readouterr().out == shown
    assert main(["explain", *names(rotated), "--frame", "99999"]) == 2
    assert "no frame 99999: 720 frames" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["explain", *names(rotated)])
    assert "several captures go with --frame N" in capsys.readouterr().err


def evidence(row: dict[str, Any]) -> set[tuple[int, int]]:
    """Where to look, which is taken out of a finding."""
    return {(one["connection"], one["frame"]) for one in row.pop("evidence")}


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
