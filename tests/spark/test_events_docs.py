"""The examples in docs/how-to/cloudevents.md and docs/how-to/hono.md that need Spark run, and show what is promised."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "how-to"
CAPTURE = ROOT / "tests" / "golden" / "kafka-4.3-kraft-events" / "events.pcap"


def run(page: str, spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Runs the examples of a page, which have a session, in the folder of their capture; gives their names."""
    shutil.copy(CAPTURE, folder / "events.pcap")
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [one for one in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "spark" in one]
    names: dict[str, Any] = {"spark": spark}
    for block in found:
        exec(compile(block.replace('"events.pcap"', f'"{folder}/events.pcap"'), page, "exec"), names)
    return names


@pytest.mark.wide
def test_cloudevents(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("cloudevents.md", spark, tmp_path)
    counts = [tuple(row) for row in names["by_type"].collect()]
    assert counts == [
        ("com.example.order.cancelled", 2),
        ("com.example.order.paid", 3),
        ("com.example.order.placed", 5),
    ]
    assert "id is missing" in capsys.readouterr().out
    assert names["ping"].collect()[0].type == "ping"
    assert names["http"].collect() == []
    headers = "array(struct('Ce-Id' AS key, X'31' AS value))"
    spark.sql(f"SELECT 't' AS topic, {headers} AS headers").createOrReplaceTempView("records")
    text = (DOCS / "cloudevents.md").read_text(encoding="utf-8")
    (query,) = re.findall(r'^http = spark.sql\("""\n(.*?)^"""\)', text, re.DOTALL | re.MULTILINE)
    assert [tuple(row) for row in spark.sql(query).collect()] == [("t", 1)]


@pytest.mark.wide
def test_hono(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("hono.md", spark, tmp_path)
    assert "greenhouse" in capsys.readouterr().out
    rules = {row.rule for row in names["violations"].collect()}
    assert {"two_partitions", "two_producers", "missing_header"} <= rules
    assert {row.client_id for row in names["producers"].collect()} == {"adapter-both", "adapter-fast", "adapter-bad"}
