"""The table ``client_metrics`` in Spark, over what real clients pushed; examples of docs/how-to/client-metrics.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from telemetry_seeds import SEEDS, before_interval, nothing, other_temporality, seeded, too_many_bytes

import kwire.spark
from kwire import tables
from kwire.events import telemetry
from kwire.testing import packets

pytestmark = pytest.mark.wide

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "kafka-4-telemetry"


def expected(name: str) -> list[dict[str, Any]]:
    path = GOLDEN / name
    with path.open("rb") as file:
        return [row for batch in telemetry.read(file, name=str(path)) for row in batch.to_pylist()]


def test_rows_are_those_of_the_library(spark: SparkSession) -> None:
    found = spark.read.format("kwire").option("table", "client_metrics").load(str(GOLDEN / "*.pcap"))
    assert found.schema == kwire.spark.table_schema("client_metrics")
    assert found.columns == tables.table("client_metrics").schema.names
    rows = [
        (row.capture, row.frame, row.client_instance_id, row.metric, str(row.value), row.attributes, row.status)
        for row in found.collect()
    ]
    wanted = [
        (
            row["capture"],
            row["frame"],
            row["client_instance_id"],
            row["metric"],
            str(row["value"]),
            None if row["attributes"] is None else dict(row["attributes"]),
            row["status"],
        )
        for path in GOLDEN.glob("*.pcap")
        for row in expected(path.name)
    ]
    assert sorted(map(str, rows)) == sorted(map(str, wanted))
    assert len(rows) > 300


def test_each_compression_gives_the_same_metrics_of_the_same_clients(spark: SparkSession) -> None:
    found = spark.read.format("kwire").option("table", "client_metrics").load(str(GOLDEN / "*.pcap"))
    metrics: dict[str, set[tuple[str, str]]] = {}
    for row in found.where("status = 'ok'").select("compression", "client_id", "metric").distinct().collect():
        metrics.setdefault(row.compression, set()).add((row.client_id, row.metric))
    assert set(metrics) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert all(found == metrics["none"] for found in metrics.values())


def test_maps_and_arrays_can_be_queried(spark: SparkSession) -> None:
    found = spark.read.format("kwire").option("table", "client_metrics").load(str(GOLDEN / "lz4.pcap"))
    groups = found.where("resource_attributes.group_id IS NOT NULL").select("resource_attributes.group_id").distinct()
    assert {row.group_id for row in groups.collect()} >= {"java-telemetry-lz4"}
    everything = found.where("exists(requested_metrics, prefix -> startswith(metric, prefix))").count()
    assert everything == found.where("status = 'ok'").count()
    assert found.count() == len(expected("lz4.pcap"))


def test_what_is_seeded_in_recorded_sessions_is_what_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    wanted = []
    for seed in SEEDS:
        data, expected = seeded("zstd", seed)
        (tmp_path / f"{seed.__name__}.pcap").write_bytes(data)
        wanted += [(seed.__name__, *one) for one in expected]
    metrics = spark.read.format("kwire").option("table", "client_metrics").load(str(tmp_path))
    found = kwire.spark.telemetry_violations(metrics)
    assert found.columns == [*telemetry.PLACE, "metric", "rule", "detail"]
    rows = [(Path(row.capture).stem, row.client_id, row.rule, row.metric) for row in found.collect()]
    assert sorted(map(str, rows)) == sorted(map(str, wanted))
    assert {rule for _, _, rule, _ in rows} == set(telemetry.RULES)


def test_what_is_seeded_is_what_is_reported_where_a_session_lies_in_several_captures(
    spark: SparkSession, tmp_path: Path
) -> None:
    wanted = []
    # Four of them: each is a sensor with tasks of its own. All of them are cut in tests/unit/tables/test_subscribed.py.
    for seed in (nothing, before_interval, too_many_bytes, other_temporality):
        data, expected = seeded("zstd", seed)
        whole = packets.read(data)
        (tmp_path / seed.__name__).mkdir()
        # A seed is a sensor of its own; the order of the names is not that of the times.
        for name, (a, b) in zip("ba", [(0, 14), (14, None)], strict=True):
            (tmp_path / seed.__name__ / f"{name}.pcap").write_bytes(packets.write_pcap(whole[a:b], nano=True))
        wanted += [str((seed.__name__, *one)) for one in expected]
    (tmp_path / "nothing" / "f.pcap").write_bytes(b"nothing")
    at_once = kwire.spark.read(str(tmp_path), table="client_metrics", sensor=1, buckets=1)
    assert at_once.schema == kwire.spark.table_schema("client_metrics")
    one_by_one = spark.read.format("kwire").options(table="client_metrics", across="true", sensor="1")
    for metrics in (at_once, one_by_one.load(str(tmp_path))):
        metrics.cache()
        rows = [
            str((Path(row.capture).parent.name, row.client_id, row.rule, row.metric))
            for row in kwire.spark.telemetry_violations(metrics).collect()
        ]
        assert sorted(rows) == sorted(wanted)
        assert [Path(row.capture).name for row in metrics.where("status = 'bad_file'").collect()] == ["f.pcap"]
        assert metrics.where("capture like '%/nothing/%' and status = 'ok' and requested is null").count() == 0
        metrics.unpersist()
    some = kwire.spark.read(str(tmp_path), table="client_metrics", columns=["requested", "metric"], sensor=1)
    assert some.columns == ["requested", "metric"]


def test_a_filter_changes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    whole = packets.read((GOLDEN / "zstd.pcap").read_bytes())
    half = len(whole) // 2
    for name, some in (("a", whole[:half]), ("b", whole[half:])):
        (tmp_path / f"{name}.pcap").write_bytes(packets.write_pcap(some, nano=True))
    (tmp_path / "f.pcap").write_bytes(b"nothing")
    every = kwire.spark.read(str(tmp_path), table="client_metrics")
    wanted = every.where("status in ('ok', 'bad_file')")
    assert wanted.where("requested").count()
    filters = {"apis": "PushTelemetry", "status": "ok"}
    at_once = kwire.spark.read(str(tmp_path), table="client_metrics", **filters)

    def one_by_one(**options: str) -> DataFrame:
        how = {"table": "client_metrics", "across": "true", **options}
        return spark.read.format("kwire").options(**how).load(str(tmp_path))

    kept = one_by_one().where("status in ('ok', 'bad_file')")
    for found, rows in ((at_once, wanted), (one_by_one(**filters), kept)):
        assert sorted(map(str, found.collect())) == sorted(map(str, rows.collect()))
    # The second half of the pushes, by WHERE.
    since = whole[half].time // 1000
    where = f"timestamp >= timestamp_micros({since}) and status = 'ok'"
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = one_by_one(pushFilters="true").where(where).collect()
        assert sorted(map(str, pushed)) == sorted(map(str, one_by_one().where(where).collect()))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_damaged_file_is_a_row_and_the_rest_is_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes((GOLDEN / "gzip.pcap").read_bytes()[:-30])
    (tmp_path / "none.pcap").write_bytes(b"this is no capture, but text")
    (tmp_path / "whole.pcap").write_bytes((GOLDEN / "gzip.pcap").read_bytes())
    found = spark.read.format("kwire").option("table", "client_metrics").load(str(tmp_path))
    statuses = {(Path(row.capture).name, row.status) for row in found.collect()}
    read = {(name, status) for name in ("cut.pcap", "whole.pcap") for status in ("ok", "asked", "subscribed")}
    assert statuses == read | {("cut.pcap", "bad_file"), ("none.pcap", "bad_file")}


def test_a_schema_chooses_columns(spark: SparkSession) -> None:
    reader = spark.read.format("kwire").option("table", "client_metrics")
    found = reader.schema("metric string, attributes map<string,string>, time timestamp").load(str(GOLDEN / "lz4.pcap"))
    assert found.columns == ["metric", "attributes", "time"]
    assert found.count() == len(expected("lz4.pcap"))


def test_the_examples_of_the_documentation_run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "how-to" / "client-metrics.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    examples = [block for block in examples if "decode_request" not in block]
    assert len(examples) == 5
    namespace: dict[str, Any] = {"spark": spark}
    for block in examples:
        exec(compile(block.replace('"captures/', f'"{GOLDEN}/'), "docs/how-to/client-metrics.md", "exec"), namespace)
    shown = capsys.readouterr().out
    assert "UNKNOWN_SUBSCRIPTION_ID (117)" in shown
    totals = {
        (row.client_id, row.metric): row.total
        for row in namespace["totals"].collect()
        if row.client_id == "java-producer"
    }
    assert totals["java-producer", "org.apache.kafka.producer.record.send.total"] > 0
    gauges = {(row.client_id, row.metric) for row in namespace["gauges"].collect()}
    assert ("librdkafka-producer", "org.apache.kafka.producer.connection.creation.rate") in gauges
