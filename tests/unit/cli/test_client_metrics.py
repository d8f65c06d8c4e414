"""``kwire decode --table client_metrics``."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Metric,
)
from packets import Connection, pcap
from telemetry_samples import GOLDEN, gauge, golden, otlp, push

from kwire.cli import main
from kwire.tables.client_metrics import SCHEMA


def refuse(word: str) -> None:
    """For ``json.loads``: what Python takes for numbers and JSON does not."""
    raise AssertionError(f"{word} is no JSON")


def test_kwire_decode_writes_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(GOLDEN / "gzip.pcap")
    assert main(["decode", file, "--table", "client_metrics", "--format", "jsonl"]) == 0
    lines = [json.loads(line, parse_constant=refuse) for line in capsys.readouterr().out.splitlines()]
    found = golden("gzip", name=file, told=True)
    assert len(lines) == len(found)
    for line, row in zip(lines, found, strict=True):
        assert list(line) == SCHEMA.names
        assert line["value"] == row["value"]
        assert (line["attributes"] or {}) == dict(row["attributes"] or {})
        assert (line["resource_attributes"] or {}) == dict(row["resource_attributes"] or {})


def test_numbers_that_json_does_not_have_are_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = Metric(name="s")
    summary.summary.data_points.add(sum=math.inf).quantile_values.add(quantile=0.5, value=math.nan)
    file = tmp_path / "x.pcap"
    connection = Connection().open().send(push(1, otlp(gauge("g", math.nan, -math.inf, 1), summary)))
    file.write_bytes(pcap(connection.packets))
    assert main(["decode", str(file), "--table", "client_metrics", "--format", "jsonl"]) == 0
    lines = [json.loads(line, parse_constant=refuse) for line in capsys.readouterr().out.splitlines()]
    assert [line["value"] for line in lines] == ["NaN", "-Infinity", 1.0, None]
    assert lines[3]["sum"] == "Infinity"
    assert lines[3]["quantiles"] == [{"quantile": 0.5, "value": "NaN"}]
    assert main(["decode", str(file), "--table", "client_metrics"]) == 0
    shown = capsys.readouterr().out.splitlines()[2:]
    for line, value in zip(shown, (" NaN", " -Infinity", " 1", " 0, sum Infinity"), strict=True):
        assert value in line


def test_kwire_decode_writes_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(GOLDEN / "gzip.pcap"), "--table", "client_metrics"]) == 0
    title, rule, *lines = capsys.readouterr().out.splitlines()
    assert title.split()[:4] == ["time", "client_id", "instance", "metric"]
    assert set(rule) == {"─", " "}
    assert len(lines) == len(golden("gzip", told=True))
    assert any("org.apache.kafka.producer.record.send.total" in line and "sum delta" in line for line in lines)


def test_kwire_decode_writes_parquet(tmp_path: Path) -> None:
    out = tmp_path / "metrics.parquet"
    files = [str(GOLDEN / f"{name}.pcap") for name in ("snappy", "refusals")]
    assert main(["decode", *files, "--table", "client_metrics", "--format", "parquet", "-o", str(out)]) == 0
    assert pq.read_table(out).num_rows == len(golden("snappy", told=True)) + len(golden("refusals", told=True))


def test_kwire_decode_of_a_capture_without_telemetry_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    capture = GOLDEN.parent / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
    assert main(["decode", str(capture), "--table", "client_metrics"]) == 0
    assert capsys.readouterr() == ("", "")
