"""The examples in docs/how-to/cloudevents.md and docs/how-to/hono.md that need no Spark (others: tests/spark)."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from kwire import cli
from kwire.events import cloudevents, columns, hono

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "how-to"
CAPTURE = ROOT / "tests" / "golden" / "kafka-4.3-kraft-events" / "events.pcap"
PAGES = ("cloudevents.md", "hono.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


COMMANDS = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]


def test_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in blocks("cloudevents.md", "python") if "spark" not in block]
    namespace: dict[str, Any] = {}
    exec(compile(example, "cloudevents.md", "exec"), namespace)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == """com.example.someevent b'{"n": 1}'"""
    assert said[1].startswith("b'customer-7' b'{")


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(CAPTURE, tmp_path / "events.pcap")
    monkeypatch.chdir(tmp_path)
    program, *args = shlex.split(line)
    assert program == "kwire"
    assert cli.main(args) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out or any(one.stat().st_size > 1000 for one in tmp_path.glob("*.parquet"))


def test_there_are_commands() -> None:
    assert len(COMMANDS) == 4


def test_every_column_and_every_rule_is_explained() -> None:
    first = {
        page: re.findall(r"^\| (.*?) \|", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE) for page in PAGES
    }
    named = {page: set(re.findall(r"`(\w+)`", " ".join(cells))) for page, cells in first.items()}
    assert set(cloudevents.COLUMNS) <= named["cloudevents.md"]
    assert {field.name for field in columns.HONO_MESSAGE} | set(hono.RULES) <= named["hono.md"]
