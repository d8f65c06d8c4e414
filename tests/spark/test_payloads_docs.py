"""Every block of docs/how-to/payload-columns.md runs, and what is printed is what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs/how-to/payload-columns.md"


@pytest.mark.wide
def test_blocks_run_and_print_what_they_say(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text("utf-8")
    text = re.sub(r"<!-- not run: .*?\n```.*?^```\n", "", text, flags=re.DOTALL | re.MULTILINE)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    printed = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 8
    assert len(printed) == 2
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/how-to/payload-columns.md, block {number}", "exec"), names)
        shown = capsys.readouterr().out
        if number < len(printed):
            assert shown == printed[number]
        else:
            assert "|malformed|" not in shown.replace(" ", "") or number == len(blocks) - 1
