"""``--keylog``: connections over TLS on the command line; and docs/how-to/tls.md, which says what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire import cli
from kwire.capture.frames import sentence
from kwire.kernels.layouts import Reason

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "tls" / "kafka-4.3-kraft-java"
CAPTURE, KEYS = str(GOLDEN / "agent.pcap"), str(GOLDEN / "agent.keys")


def test_a_key_log_opens_a_capture(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", CAPTURE, "--keylog", KEYS, "--format", "jsonl"]) == 0
    said = capsys.readouterr()
    assert {json.loads(line)["status"] for line in said.out.splitlines()} == {"ok"}
    assert said.err == ""


def test_several_key_logs_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path(KEYS).read_text().splitlines(keepends=True)
    (tmp_path / "a").write_text("".join(lines[::2]))
    (tmp_path / "b").write_text("".join(lines[1::2]))
    options = ["--keylog", str(tmp_path / "a"), "--keylog", str(tmp_path / "b"), "--columns", "status"]
    assert cli.main(["decode", CAPTURE, *options, "--format", "jsonl"]) == 0
    assert set(capsys.readouterr().out.splitlines()) == {'{"status":"ok"}'}


def test_why_a_connection_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "keys").write_text("# nothing\n")
    assert cli.main(["decode", CAPTURE, "--keylog", str(tmp_path / "keys"), "--columns", "status,error"]) == 0
    said = capsys.readouterr()
    assert said.out.count("no key for this connection in the key log") == 10
    assert said.err == f"kwire: {tmp_path / 'keys'}: note: there is no secret in the key log\n"


def test_a_file_that_is_no_key_log_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", CAPTURE, "--keylog", CAPTURE]) == 0
    assert "note: there is no secret in the key log: none of " in capsys.readouterr().err


def test_a_key_log_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decode", CAPTURE, "--keylog", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_key_logs_are_for_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segments = next((ROOT / "tests" / "golden" / "segments").rglob("*.log"))
    with pytest.raises(SystemExit):
        cli.main(["decode", str(segments), "--keylog", KEYS])
    assert "--keylog is for captures" in capsys.readouterr().err


def test_a_frame_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", CAPTURE, "--frame", "0", "--keylog", KEYS]) == 0
    assert "ApiVersionsRequest" in capsys.readouterr().out


def test_the_documentation_has_every_reason() -> None:
    text = (ROOT / "docs" / "how-to" / "tls.md").read_text(encoding="utf-8")
    details = {Reason.TLS_SUITE: 0x000A, Reason.TLS_VERSION: 0x0301}
    for reason in Reason:
        if reason >= Reason.NO_KEY:
            assert f"| {sentence(reason, details.get(reason, 0))} |" in text
