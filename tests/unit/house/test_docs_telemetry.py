"""docs/how-to/client-metrics.md: its commands run, its Python runs, and its tables are those of the code."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

import kwire
from kwire import messages
from kwire.cli import main
from kwire.events.telemetry import CLIENT_ACTIONS, RULES
from kwire.records.compression import compress

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "kafka-4-telemetry"
TEXT = (ROOT / "docs" / "how-to" / "client-metrics.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "client-metrics.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def cells(title: str) -> list[list[str]]:
    """The rows of the table whose first title is ``title``."""
    _, found, rest = REFERENCE.partition(f"\n| {title} |")
    assert found, title
    lines = rest.splitlines()[2:]
    rows = lines[: next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(GOLDEN, tmp_path / "captures")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands:
        assert command[0] == "kwire"
        assert main(command[1:]) == 0
    assert "org.apache.kafka.producer.record.send.total" in capsys.readouterr().out
    assert (tmp_path / "metrics.parquet").stat().st_size > 1000


def test_the_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="a.metric")
    metric.gauge.data_points.add(as_double=1.5)
    push = messages.PushTelemetryRequest(compression_type=3, metrics=compress(3, data.SerializeToString()))
    (block,) = (
        block
        for block in blocks("python")
        if "spark" not in block and "metrics." not in block.replace("push.metrics", "")
    )
    frame = kwire.encode_request(push, api_version=0, correlation_id=1)
    exec(compile(block, "telemetry.md", "exec"), {"frame": frame})
    assert capsys.readouterr().out == "a.metric gauge 1.5 {}\n"


def test_the_table_of_errors_is_that_of_the_code() -> None:
    assert cells("code") == [
        [str(code), f"`{one.error.name}`", one.reason, one.action, one.draft or "", one.java_client]
        for code, one in sorted(CLIENT_ACTIONS.items())
    ]


def test_the_table_of_rules_is_that_of_the_code() -> None:
    assert cells("rule") == [[f"`{rule}`", asks] for rule, asks in RULES.items()]
