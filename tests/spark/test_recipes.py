"""The SQL of docs/recipes.md runs, and says what the commands say. Its commands are run by tests/unit/house."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kwire import capture
from kwire.report.lineage import Lineage
from kwire.report.overview import TABLES, Overview

HERE = Path(__file__).parents[1]
RECIPES = (HERE.parent / "docs" / "recipes.md").read_text("utf-8")
CAPTURES = (
    "kafka-3.9-zk-auth/mechanisms",
    "kafka-3.9-zk-kafka-python/pinned-0.9",
    "kafka-4.3-kraft-librdkafka/current",
)
NAMES = ("frames", "partitions", "calls", "connections")


def batches() -> Iterator[tuple[str, pa.RecordBatch]]:
    for one in CAPTURES:
        with (HERE / "golden" / f"{one}.pcap").open("rb") as file:
            yield from capture.read(file, tables=list(TABLES), columns={"records": TABLES["records"]}, name=one)


def test_every_question_has_an_answer(spark: SparkSession) -> None:
    assert all(f'"{name}"' in RECIPES for name in NAMES)
    over, made = Overview(), {name: [] for name in NAMES}  # type: ignore[var-annotated]
    for name, batch in batches():
        if name in made:
            made[name].append(batch)
    for one in CAPTURES:
        with (HERE / "golden" / f"{one}.pcap").open("rb") as file:
            for name, batch in capture.read(file, tables=list(TABLES), columns=TABLES, name=one):
                if name != "records":
                    over.add(name, batch)
    over.finish()
    for name, parts in made.items():
        spark.createDataFrame(pa.Table.from_batches(parts)).coalesce(1).cache().createOrReplaceTempView(name)
    queries = re.findall(r"^```sql\n(.*?)\n^```", RECIPES, re.DOTALL | re.MULTILINE)
    assert len(queries) == 10
    assert not any("\n" in query for query in queries)
    answers: list[list[dict[str, Any]]] = [spark.sql(query).toArrow().to_pylist() for query in queries]
    assert all(answers)
    topics, edges, slow, errors, lags, old, sent, groups, failed, whole = answers
    assert {
        row["topic"]: (row["written"] or 0, row["read"] or 0) for row in topics if row["written"] or row["read"]
    } == {topic: (sums[1], sums[4]) for topic, sums in over.topics.sums.items()}
    lineage: Lineage = over.lineage
    assert {(row["topic"], row["role"], row["client_id"]) for row in edges} == {
        (one.topic, one.role, one.client_id) for one in lineage.result()
    }
    assert sum(row["responses"] for row in slow) == over.totals["latencies"]
    assert sum(row["times"] for row in errors) == over.totals["error_codes"]
    assert {(row["group_id"], row["topic"], row["partition"]): max(0, row["lag"]) for row in lags} == {
        (group, topic, partition): lag for group, topic, partition, lag in over.finder.lags()
    }
    assert {row["api_version"] for row in old if row["api_name"] == "Produce"} <= {0, 1, 2}
    assert sum(row["bytes"] for row in sent) == over.totals["written_bytes"]
    assert sum(row["joins"] for row in groups) == sum(sums[1] for sums in over.groups.sums.values())
    (finding,) = {one.count for one in over.finder.result() if one.rule == "sasl-failures"}
    assert finding in {row["connections"] for row in failed}
    assert sum(row["repeats"] for row in whole) <= over.totals["repeats"]
    for name in NAMES:
        spark.catalog.uncacheTable(name)
        spark.catalog.dropTempView(name)
