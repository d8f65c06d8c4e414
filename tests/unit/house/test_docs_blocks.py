"""Blocks of the pages run: commands, and Python without Spark. tests/spark/test_docs_blocks.py has the others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import docs_blocks
import pytest

from kwire import cli

PAGES = docs_blocks.pages()
CHECKS = {"kwire audit": 1, "kwire segments": 1}
"""Commands that may find something, and the exit code with which they say so."""


def commands(page: str) -> list[str]:
    found = [one for one in docs_blocks.blocks(page) if one.language == "sh" and not one.why_not]
    lines = [line for one in found for line in one.code.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("kwire ")]


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_commands_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs_blocks.lay_out(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    for line in commands(page):
        words = shlex.split(line.partition(" #")[0].partition("  ")[0])
        if words[1] in ("spark", "compile"):
            continue  # tests/spark and tests/unit/kernels run these.
        code = cli.main(words[1:])
        assert code in (0, CHECKS.get(" ".join(words[:2]), 0)), (line, capsys.readouterr().err)
        said = capsys.readouterr()
        assert (
            said.out or "frames were looked at" in said.err or {"-o", "--output", "--otlp", "--pcapng"} & set(words)
        ), line


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("page", [one for one in PAGES if docs_blocks.python(one) and not docs_blocks.needs_spark(one)])
def test_the_python_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs_blocks.lay_out(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    for block in docs_blocks.python(page):
        exec(compile(block.code, f"docs/{page}, block {block.number}", "exec"), names)


def test_blocks_that_do_not_run_say_why() -> None:
    left = [one for page in PAGES for one in docs_blocks.blocks(page) if one.why_not]
    assert len(left) < 16
    assert all(len(one.why_not) > 10 for one in left)
    for page, test in docs_blocks.ELSEWHERE.items():
        assert re.search(re.escape(Path(page).stem), (docs_blocks.ROOT / test).read_text("utf-8")) or "sql" in page


def test_there_are_blocks() -> None:
    assert sum(len(docs_blocks.blocks(page)) for page in PAGES) > 90
