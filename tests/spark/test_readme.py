"""The README's Spark examples run."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

README = Path(__file__).parents[2] / "README.md"


def test_spark_examples_run(
    spark: SparkSession,
    captures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "captures").mkdir()
    shutil.copy(captures / "first-light.pcap", tmp_path / "captures")
    examples = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    examples = [block for block in examples if "spark" in block]
    assert len(examples) == 2
    namespace: dict[str, object] = {}
    for block in examples:
        # The session runs already, in the folder of the tests; the examples stand in that of their captures.
        exec(compile(block.replace('"captures/', f'"{tmp_path}/captures/'), "README.md", "exec"), namespace)
    shown = capsys.readouterr().out
    assert "kafka-python-pinn..." in shown
    assert "ApiVersions|    kwire" in shown
    assert namespace["records"].count() == 516  # type: ignore[attr-defined]
    assert namespace["messages"].count() == 208  # type: ignore[attr-defined]
