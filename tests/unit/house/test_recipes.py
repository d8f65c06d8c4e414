"""The commands of docs/how-to/ten-questions.md run. Its SQL is run by ``tests/spark/test_recipes.py``."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from kwire import cli

CHECKOUT = Path(__file__).parents[3]
RECIPES = (CHECKOUT / "docs" / "how-to" / "ten-questions.md").read_text(encoding="utf-8")
CAPTURE = CHECKOUT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = re.findall(r"^```sh\n(.*?)\n^```", RECIPES, re.DOTALL | re.MULTILINE)
    assert len(lines) == 10
    shutil.copy(CAPTURE, tmp_path / "broker.pcap")
    monkeypatch.chdir(tmp_path)
    for line in lines:
        program, *args = shlex.split(line)
        assert program == "kwire"
        # A client that an upgrade breaks is no mistake.
        assert cli.main(args) == (1 if args[0] == "audit" else 0), line
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert said.out or "-o" in args
