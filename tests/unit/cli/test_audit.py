"""``kwire audit``: what it writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kwire.cli import main

GOLDEN = Path(__file__).parents[2] / "golden"
OLD = str(GOLDEN / "kafka-3.9-zk-librdkafka" / "fallback-0.9.pcap")
NEW = str(GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap")


def test_a_table_with_the_worst_first_and_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", NEW, OLD]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["verdict", "client", "client_ids"]
    assert [line.split()[0] for line in lines[2:4]] == ["breaks", "works"]
    assert lines[-1] == "Brokers of Kafka 4.0: 1 would break, 1 would work."


def test_the_exit_code_gates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", NEW]) == 0
    assert main(["audit", OLD, "--target", "3.9.1"]) == 0
    assert main(["audit", OLD, "--target", "4.3"]) == 1
    assert main(["audit", OLD, "--target", "5.5"]) == 2
    assert "release '5.5' is not known" in capsys.readouterr().err
    assert main(["audit", "no such file"]) == 2
    assert main(["audit", OLD, "no such file"]) == 2


def test_of_a_capture_that_is_cut_off_there_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(OLD).read_bytes()[:20_010])
    assert main(["audit", str(cut)]) == 2
    said = capsys.readouterr()
    assert said.out.splitlines()[-1] == "Brokers of Kafka 4.0: 1 would break."
    assert "truncated" in said.err


def test_json_page_and_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", OLD, "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["target"], said["counts"]["breaks"], said["rows"][0]["verdict"]) == ("4.0", 1, "breaks")
    out = tmp_path / "audit.html"
    assert main(["audit", OLD, "--format", "html", "-o", str(out)]) == 1
    assert out.read_text().startswith("<!doctype html>")
    table = tmp_path / "audit.parquet"
    assert main(["audit", OLD, "--format", "parquet", "-o", str(table)]) == 1
    assert pq.read_table(table).to_pylist()[0]["verdict"] == "breaks"


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ([], [OLD, "--format", "parquet"], [OLD, "--format", "xml"]):
        with pytest.raises(SystemExit):
            main(["audit", *wrong])
    capsys.readouterr()
