"""``kwire top``: the screen, live from a pipe, and mistakes."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from made_captures import exchange
from packets import Connection, pcap, produce, produce_answer

from kwire.cli import main, top

GOLDEN = Path(__file__).parents[2] / "golden"

HOSTILE = "[red]\x1b[2J</x>"


def test_the_last_seconds_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcap"
    made = exchange(Connection().open(), 5).send(produce(9, 1, b"", HOSTILE)).answer(produce_answer(9, HOSTILE))
    path.write_bytes(pcap(made.packets))
    for sort in ("requests", "bytes", "errors", "p99"):
        assert main(["top", str(path), "--sort", sort]) == 0
        out = capsys.readouterr().out
        assert "Metadata" in out
        assert "12 frames" in out
        assert "\x1b[2J" not in out
        assert "[red]\\x1b[2J" in out
    path.write_bytes(pcap(made.packets)[:-3])
    assert main(["top", "--port", "9092", str(path)]) == 2
    said = capsys.readouterr()
    assert "truncated" in said.err
    assert "Metadata" in said.out


def test_of_what_cannot_be_read_no_empty_tables_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    for path, said in ((empty, "no Kafka traffic"), (tmp_path / "none", "No such file")):
        assert main(["top", str(path)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert said in err


@pytest.mark.parametrize("width", [1, 20, 40, 60, 80, 500])
def test_names_have_room_on_a_narrow_screen(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(exchange(Connection().open(), 5).packets))
    assert main(["top", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    if width >= 40:
        (row,) = (line.split() for line in lines if line.startswith("Metadata "))
        assert row[1] == "5"  # in a capture of less than a second


def test_a_pipe_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    data = pcap(exchange(Connection().open(), 3).packets)

    def slowly() -> None:
        with os.fdopen(write, "wb", buffering=0) as file:
            for k in range(0, len(data), 100):
                file.write(data[k : k + 100])

    monkeypatch.setattr(sys, "stdin", os.fdopen(read, "r"))
    thread = threading.Thread(target=slowly)
    thread.start()
    assert main(["top"]) == 0
    thread.join()
    assert "6 frames" in capsys.readouterr().out


@pytest.mark.wide
def test_what_is_found_stands_in_the_same_order_however_often_it_was_looked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(GOLDEN / "findings" / "findings.gz")
    said = []
    for seconds in (-1, 1e9):
        monkeypatch.setattr(top, "_LOOK", seconds)
        assert main(["top", "--seconds", "60", path]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    found = [line.split()[0] for line in said[0].splitlines() if line.split()[:1] in (["high"], ["medium"], ["low"])]
    assert found == ["high"] * 5
    assert " more: kwire findings shows them all" in said[0]


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "http.pcap"
    other.write_bytes(pcap(Connection(broker=("10.0.0.2", 80)).open().send_raw(b"GET / HTTP/1.1\r\n\r\n").packets))
    assert main(["top", str(other)]) == 2
    assert main(["top", str(tmp_path / "none")]) == 2
    assert main(["top", str(other), "--set", "none=1"]) == 2
    assert "no threshold" in capsys.readouterr().err
    for wrong in (["x", "--seconds", "0"], ["x", "--port", "9092", "y"]):
        with pytest.raises(SystemExit):
            main(["top", *wrong])
