"""Every example in the README runs: Python blocks in order, and the commands of the ``sh`` block.

Blocks that need Spark are run by ``tests/spark/test_readme.py``.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from kwire import cli

CHECKOUT = Path(__file__).parents[3]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
CAPTURE = CHECKOUT / "tests" / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
SEGMENTS = CHECKOUT / "tests" / "golden" / "segments" / "4.3-kraft" / "__consumer_offsets-0"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    examples = [block for block in blocks("python") if "spark" not in block]
    assert len(examples) == 4
    for block in examples:
        exec(compile(block, "README.md", "exec"), namespace)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith('{"topics":[{"name":"orders"')
    assert "at byte" in said[1]


@pytest.mark.parametrize("line", [line for block in blocks("sh") for line in block.splitlines()])
def test_commands_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(CAPTURE, tmp_path / "broker.pcap")
    shutil.copytree(SEGMENTS, tmp_path / SEGMENTS.name)
    monkeypatch.chdir(tmp_path)
    program, *args = shlex.split(line)
    assert program == "kwire"
    assert cli.main(args) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out or (tmp_path / "messages.parquet").stat().st_size > 1000
