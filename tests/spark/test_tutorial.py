"""The tutorial for data engineers runs as it stands, and prints what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from shown_output import Step, run, same, steps

PAGE = "docs/tutorial/data-engineer.md"


@pytest.mark.wide
def test_it_prints_what_it_shows(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for step in steps(PAGE):
        # The JVM runs already, in the folder of the tests.
        code = step.code
        for path in ('"*.pcap"', '"old.pcap"', '"frames.parquet"'):
            code = code.replace(path, f'"{tmp_path}/{path[1:]}')
        printed = run(Step(step.kind, code, step.shown), space)
        assert step.shown is None or same(step.shown, printed), step.code
