"""``kwire findings``: what it writes, and its options."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_captures import exchange
from packets import Connection, pcap

from kwire.cli import main
from kwire.report.findings import SCHEMA

CAPTURE = str(Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-auth" / "mechanisms.pcap")


def test_a_table_json_a_page_and_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = [CAPTURE, "--rule", "sasl-failures"]
    assert main(["findings", *chosen]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:2] == ["high", "sasl-failures"]
    assert lines[-1] == "1 finding: 1 high."
    assert main(["findings", *chosen, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert list(row) == SCHEMA.names
    assert row["evidence"][0]["capture"] == CAPTURE
    for form in ("html", "parquet"):
        assert main(["findings", *chosen, "--format", form, "-o", str(tmp_path / form)]) == 0
    assert "sasl-failures" in (tmp_path / "html").read_text()
    assert pq.read_schema(tmp_path / "parquet").names == SCHEMA.names


def test_thresholds_and_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", CAPTURE, "--rule", "sasl-failures", "--set", "sasl_failures=4"]) == 0
    assert capsys.readouterr().out == "No findings.\n"
    assert main(["findings", CAPTURE, "--rule", "lag", "-o", "-"]) == 0
    assert capsys.readouterr().out == "No findings.\n"
    assert not Path("-").exists()
    for wrong in (["--set", "no=1"], ["--rule", "none"]):
        assert main(["findings", CAPTURE, *wrong]) == 2
        assert "there are" in capsys.readouterr().err
    assert main(["findings", CAPTURE, "--set", "lag"]) == 2
    assert "needs a number: lag=N" in capsys.readouterr().err
    assert main(["findings", CAPTURE, "--rule", "lag", "--set", "sasl_failures=4"]) == 2
    assert "'sasl_failures' is for sasl-failures, which is not looked for" in capsys.readouterr().err
    assert main(["findings", "no such file"]) == 2


def test_values_that_break_their_schema_are_seen_by_each_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = str(Path(__file__).parents[2] / "golden" / "values" / "shop.pcap")
    (tmp_path / "5.json").write_text('{"type": "object", "properties": {"id": {"type": "string"}}}')
    values = [shop, "--values", str(tmp_path)]
    assert main(["findings", *values, "--validate", "--rule", "invalid-values", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["client_id"], row["topic"], row["count"]) == ("test", "documents", 1)
    said = "schema 5: $.id: the value is not of type"
    assert row["summary"].startswith(f"1 value that breaks the schema: {said}")
    for command, more in (("report", []), ("explain", ["--frame", "8"])):
        assert main([command, *values, *more]) == 0
        assert said not in capsys.readouterr().out
        assert main([command, *values, *more, "--validate"]) == 0
        assert said in capsys.readouterr().out
    for words in (
        ["findings", *values, "--rule", "invalid-values"],
        ["findings", shop, "--validate"],
        ["report", shop, "--validate"],
        ["explain", shop, "--frame", "8", "--validate"],
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert "--values" in capsys.readouterr().err


def test_of_several_captures_the_evidence_says_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parents[2] / "golden" / "findings"
    some = [str(golden / "lag.gz"), str(golden / "denials.gz")]
    assert main(["findings", *some, "--rule", "denials,classic-group"]) == 0
    said = capsys.readouterr().out
    assert "frame 53 of denials.gz, frame 71 of denials.gz" in said
    assert "frame 88 of lag.gz" in said
    assert main(["report", *some, "-o", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text()
    assert "frame 53 of denials.gz" in page
    assert "<td>lag.gz</td>" in page


def test_those_of_some_topics(capsys: pytest.CaptureFixture[str]) -> None:
    lag = str(Path(__file__).parents[2] / "golden" / "findings" / "lag.gz")
    for topics, found in (("orders", {"orders"}), ("orders,clicks", {"orders", "clicks"}), ("none", set())):
        chosen = ["--rule", "lag,mixed-acks", "--set", "lag=1", "--topic", topics]
        assert main(["findings", lag, *chosen, "--format", "json"]) == 0
        assert {row["topic"] for row in json.loads(capsys.readouterr().out)["rows"]} == found


def test_a_capture_without_what_a_rule_looks_at_is_no_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = exchange(Connection().open(), 2).packets
    path = tmp_path / "quiet.pcap"
    path.write_bytes(pcap(quiet))
    assert main(["findings", str(path), "--rule", "retried-batches"]) == 0
    assert capsys.readouterr().out == "No findings.\n"
    path.write_bytes(pcap(Connection(broker=("10.0.0.2", 80)).open().send_raw(b"GET / HTTP/1.1\r\n\r\n").packets))
    for command in ("findings", "audit", "lineage"):
        assert main([command, str(path)]) == 2
        assert "no Kafka traffic" in capsys.readouterr().err
