"""Blocks of Python of the pages that have a session run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import docs_blocks
import pytest
from pyspark.sql import SparkSession

PAGES = [page for page in docs_blocks.pages() if docs_blocks.needs_spark(page)]


def placed(code: str, folder: Path) -> str:
    """The code with whole paths: workers of Spark have another folder than the test."""
    code = re.sub(r"s3a?://(?:bucket/)?", "", code)
    names = "|".join(sorted({one.name for one in folder.iterdir()} | {"tables", "records/", 'records"'}, reverse=True))
    return re.sub(rf"""(["'])({names})(?=["'/*])""", rf"\1{folder}/\2", code)


@pytest.mark.wide(keep=2)
@pytest.mark.parametrize("page", PAGES)
def test_the_python_runs(
    spark: SparkSession, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs_blocks.lay_out(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark, "__name__": "docs"}
    try:
        for block in docs_blocks.python(page):
            code = placed(block.code, tmp_path)
            exec(compile(code, f"docs/{page}, block {block.number}", "exec"), names)
        for one in [one for one in names.values() if hasattr(one, "isStreaming") and not one.isStreaming]:
            one.limit(1).collect()
    finally:
        for query in spark.streams.active:
            query.processAllAvailable()
            query.stop()
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
