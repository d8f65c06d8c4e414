"""``kwire decode -j``: the same rows, lines and exit codes as without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cli import main
from kwire.records import Record, encode

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = (
    GOLDEN / "kafka-4-telemetry" / "refusals.pcap",
    GOLDEN / "kafka-4.4-kraft-raw" / "controller.pcap",
    GOLDEN / "kafka-4.3-kraft-events" / "events.pcap",
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Captures, and between them one that is cut off, one that is none and one that is not there."""
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(CAPTURES[2].read_bytes()[:-7])
    (tmp_path / "none.pcap").write_bytes(b"no capture")
    return [str(one) for one in (CAPTURES[0], cut, tmp_path / "none.pcap", CAPTURES[1], tmp_path / "gone", CAPTURES[2])]


@pytest.mark.wide
def test_rows_errors_and_exit_codes_are_those_of_one_after_the_other(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / f"out-{jobs}" / "{table}.jsonl"
        out.parent.mkdir()
        code = main(["decode", "-j", jobs, "--table", "frames,records", "--format", "jsonl", "-o", str(out), *files])
        said = capsys.readouterr()
        found.append((code, said.out, said.err, *(one.read_text() for one in sorted(out.parent.iterdir()))))
    assert found[0] == found[1]
    assert found[0][0] == 2
    assert found[0][2].count("\n") == 3


@pytest.mark.wide
def test_the_command_itself(files: list[str]) -> None:
    command = [sys.executable, "-m", "kwire.cli", "decode", "--format", "csv", files[0], files[3]]
    one, both = (subprocess.run([*command, *more], capture_output=True, check=True) for more in ([], ["-j", "2"]))
    assert one.stdout == both.stdout
    assert one.stdout.count(b"\n") > 10


def test_segments_at_once_have_the_rows_lines_and_code_of_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    for number, name in enumerate(("orders-0", "orders-1", "torn-0")):
        folder = data / name
        folder.mkdir(parents=True)
        for base in (0, 100):
            made = [Record(b"k%d" % n, b"%d" % number, timestamp=1_700_000_000_000 + n) for n in range(base, base + 9)]
            bytes_ = encode(made, base_offset=base)
            (folder / f"{base:020}.log").write_bytes(bytes_[:-5] if name == "torn-0" and base else bytes_)
    # An index that is wrong, and one that cannot be read as one.
    (data / "orders-1" / f"{0:020}.index").write_bytes(bytes.fromhex("0000000500000fff"))
    alone = data / "orders-0" / f"{100:020}.log"
    found = []
    for jobs in ("1", "3"):
        command = ["decode", "-j", jobs, "--format", "csv", "--check-indexes", str(data), str(alone)]
        found.append((main(command), *capsys.readouterr()))
    assert found[0] == found[1]
    code, out, said = found[0]
    assert code == 2
    assert out.count("\n") == 1 + 5 * 9 + 9
    assert "torn-0" in said
    assert "entry 0" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-j", "2", "-"], "-j is for files that are there"),
        (["-j", "2", "--follow", "x.pcap"], "-j is for files that are there"),
        (["-j", "many", "x.pcap"], "many is no number of processes"),
        (["-j", "2", "--as", "hono", "x.pcap"], "-j is not for --as hono"),
    ],
)
def test_what_cannot_be_done_at_once(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["decode", *arguments])
    assert said in capsys.readouterr().err
