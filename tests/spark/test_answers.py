"""The audit in Spark is that of the command."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import kwire.spark
from kwire import capture
from kwire.report import audit
from kwire.tables import table

GOLDEN = Path(__file__).parents[1] / "golden"
CAPTURES = (
    GOLDEN / "kafka-3.9-zk-kafka-python" / "pinned-0.9.pcap",
    GOLDEN / "kafka-3.9-zk-librdkafka" / "fallback-0.9.pcap",
    GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap",
)
COLUMNS = {"connections": audit.CONNECTIONS, "records": audit.RECORDS}


def test_audit(spark: SparkSession) -> None:
    frames = {}
    for name, columns in COLUMNS.items():
        schema = from_arrow_schema(table(name).chosen(columns))
        for one in schema.fields:
            one.nullable = True
        read = spark.read.format("kwire").option("table", name).schema(schema)
        frames[name] = read.load(list(map(str, CAPTURES)))
    auditor = audit.Auditor("4.0")
    for path in CAPTURES:
        with path.open("rb") as file:
            for name, batch in capture.read(file, tables=list(COLUMNS), columns=COLUMNS, name=str(path)):
                (auditor.add_connections if name == "connections" else auditor.add_records)(batch)
    expected = auditor.result()
    found = kwire.spark.audit(frames, "4.0").toArrow().to_pylist()
    key = lambda row: str((row["client_host"], row["client_ids"], row["software_name"]))  # noqa: E731
    assert sorted(found, key=key) == sorted(expected.rows(), key=key)
    assert {row["verdict"] for row in found} == {"breaks", "works"}
    # Without record formats, and without what the brokers said.
    brief = kwire.spark.audit({"connections": frames["connections"].drop("broker_apis")}).toArrow().to_pylist()
    assert len(brief) == len(found)
    assert {tuple(row["formats"]) for row in brief} == {()}
