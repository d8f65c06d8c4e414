"""The README's Spark example runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from shown_output import steps


def test_spark_example_runs(
    spark: SparkSession, captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "captures").mkdir()
    shutil.copy(captures / "first-light.pcap", tmp_path / "captures")
    (example,) = (step.code for step in steps("README.md") if "spark" in step.code)
    assert len([line for line in example.splitlines() if line]) == 3
    # The session runs already, in the folder of the tests; the example stands in that of its captures.
    exec(compile(example.replace('"captures/', f'"{tmp_path}/captures/'), "README.md", "exec"), {"spark": spark})
    shown = capsys.readouterr().out
    assert "kafka-python-pinn..." in shown
    assert "max(latency_ms)" in shown
