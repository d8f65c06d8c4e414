"""The audit, the findings and the lineage in Spark are those of the commands."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import kwire.spark
from kwire import capture
from kwire.errors import KwireError
from kwire.report import audit
from kwire.report import findings as rules
from kwire.report.lineage import TABLES, Lineage
from kwire.report.lineage import batch_of as edges_of
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


@pytest.mark.wide
def test_findings_and_lineage(spark: SparkSession) -> None:
    # So low that traffic of clients that do nothing wrong has findings of most rules.
    low = rules.Thresholds(
        tiny_batches=1, tiny_batch_records=9.0, uncompressed_bytes=1, metadata_requests=1, connections=1,
        single_produces=1, rebalances=1, empty_fetches=1, commits=1, skewed_bytes=1, skew=0.1, large_requests=100,
        stopped_seconds=0.0, lag=1, repeated_errors=1, stale_leaders=1, stalled_seconds=0.01, stalled_connections=1,
        aborted=1, reconciling_seconds=0.0, redeliveries=1, locks=1,
    )  # fmt: skip
    others = (GOLDEN / "kafka-3.9-zk-auth" / "mechanisms.pcap", GOLDEN / "kafka-4.3-kraft-java" / "share.pcap")
    paths = (*CAPTURES, *others)
    columns = {name: list(dict.fromkeys((*wanted, *TABLES.get(name, ())))) for name, wanted in rules.needed().items()}
    rows: dict[str, list[pa.RecordBatch]] = {name: [] for name in columns}
    finder, made = rules.Finder(None, low), Lineage()
    # In order of time, as Spark goes through them.
    for path in sorted(paths, key=_began):
        with path.open("rb") as file:
            for name, batch in capture.read(file, tables=list(columns), columns=columns, name=path.parent.name):
                rows[name].append(batch)
                finder.add(name, batch)
                if name in TABLES:
                    made.add(name, batch)
    tables = {name: spark.createDataFrame(pa.Table.from_batches(parts)) for name, parts in rows.items()}
    found = kwire.spark.findings(tables, thresholds=low).toArrow().to_pylist()
    expected = pa.Table.from_batches([rules.batch_of(finder.result())]).to_pylist()
    assert len({row["rule"] for row in expected}) >= 12
    assert sorted(map(_finding, found)) == sorted(map(_finding, expected))
    edges = kwire.spark.lineage(tables).toArrow().to_pylist()
    assert sorted(map(_edge, edges)) == sorted(map(_edge, edges_of(made.result()).to_pylist()))
    assert {edge["role"] for edge in edges} == {"reads", "writes"}
    frames = {"frames": tables["frames"]}
    for wrong, chosen in ((frames, ["lag"]), (tables, ["none"]), ({"other": tables["frames"]}, None)):
        with pytest.raises(KwireError):
            kwire.spark.findings(wrong, chosen)
    with pytest.raises(KwireError, match="partitions"):
        kwire.spark.lineage({"calls": tables["calls"]})


def _table(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> Any:
    schema = table(name).chosen(rules.COLUMNS[name])
    base = {"capture": "x", "connection": 3, "client_host": "h", "direction": "request", "status": "ok",
            "client_port": 5000, "broker_host": "b", "broker_port": 9092}  # fmt: skip
    made = []
    for row in rows:
        time = datetime(2026, 1, 1, 0, 0, row["frame"], tzinfo=UTC)
        values = base | {"frame_timestamp": time, "timestamp": time} | row
        made.append({one: values.get(one) for one in schema.names})
    return spark.createDataFrame(pa.Table.from_pylist(made, schema=schema))


@pytest.mark.wide
def test_findings_look_once_at_the_columns_of_each_table(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Spark Connect each look at the columns of a table asks the server."""
    tables = {
        name: spark.createDataFrame([], from_arrow_schema(table(name).chosen(columns)))
        for name, columns in rules.needed().items()
    }
    (frame,) = {type(one) for one in tables.values()}
    looked: list[Any] = []
    columns_of = frame.columns.fget
    monkeypatch.setattr(frame, "columns", property(lambda one: looked.append(one) or columns_of(one)))
    found = kwire.spark.findings(tables)
    ours = {id(one) for one in tables.values()}
    assert sorted(id(one) for one in looked if id(one) in ours) == sorted(ours)
    # Where pandas is not there, ``mapped`` looks once more, for each kind of rows that come together. Spark Connect
    # has pandas.
    assert len(looked) - len(ours) <= len({rule.together for rule in rules.RULES.values()})
    monkeypatch.undo()
    assert found.columns == rules.SCHEMA.names


@pytest.mark.wide
def test_rules_of_histories_and_producers(spark: SparkSession) -> None:
    """A group, a topic and a producer each come together, whichever clients and tables their rows are of."""
    event = {"group_id": "g", "kind": "consumer"}
    events = [
        {**event, "frame": 1, "event": "rebalance_began"},
        {**event, "frame": 2, "event": "revoked", "member_id": "m", "client_id": "slow", "client_host": "i"},
        {**event, "frame": 3, "event": "joined", "member_id": "n"},
        {**event, "frame": 4, "event": "joined", "group_id": "old", "kind": "classic", "assignor": "range"},
        *({**event, "frame": k, "event": "commit_refused", "error_name": "STALE_MEMBER_EPOCH"} for k in range(5, 10)),
        *(
            {
                **event,
                "frame": k,
                "event": "revoked",
                "group_id": "sticky",
                "kind": "classic",
                "member_id": "m",
                "assignor": "cooperative-sticky",
                "lost": [{"topic": "t", "partition": 1}],
            }
            for k in range(10, 14)
        ),
        *({**event, "frame": k, "event": "coordinator_moved"} for k in range(14, 18)),
    ]
    lost = {"group_id": "s", "topic": "t", "partition": 0, "member_id": "m", "outcome": "expired", "delivery_count": 4}
    beat = {"frame": 50, "api_name": "ConsumerGroupHeartbeat", "group_id": "g"}
    wrote = {"source": "produce", "producer_id": 7, "partition": 0}
    made = {
        "group_events": events,
        "share_deliveries": [{**lost, "frame": k, "first_offset": k, "last_offset": k} for k in range(5)] + [
            {**lost, "frame": 9, "first_offset": 10, "last_offset": 30, "outcome": "rejected"},
            {**lost, "frame": 9, "first_offset": 31, "last_offset": 200, "outcome": "released", "delivery_count": 1},
        ],
        "calls": [beat],
        # Of two topics: each alone has but one writer.
        "records": [{**wrote, "frame": 1, "topic": "t", "producer_epoch": 2},
                    {**wrote, "frame": 2, "topic": "u", "producer_epoch": 1, "connection": 4}],
        "frames": [{"frame": 2, "api_name": "Produce", "connection": 4, "client_id": "zombie", "size": 100}],
    }  # fmt: skip
    tables = {name: _table(spark, name, rows) for name, rows in made.items()}
    chosen = [
        "classic-group", "commits-in-rebalance", "cooperative-churn", "coordinator-churn", "dead-letters",
        "lock-timeouts", "poison-records", "released-records", "stuck-reconciliation", "zombie-producers",
    ]  # fmt: skip
    found = kwire.spark.findings(tables, chosen, rules.Thresholds(reconciling_seconds=49.0)).toArrow().to_pylist()
    assert sorted((row["rule"], row["client_id"] or row["group_id"]) for row in found) == [
        ("classic-group", "old"), ("commits-in-rebalance", "g"), ("cooperative-churn", "sticky"),
        ("coordinator-churn", "g"), ("dead-letters", "s"), ("lock-timeouts", "s"), ("poison-records", "s"),
        ("released-records", "s"), ("stuck-reconciliation", "g"), ("zombie-producers", "zombie"),
    ]  # fmt: skip


@pytest.mark.wide
def test_what_an_aborted_transaction_commits_does_not_count(spark: SparkSession) -> None:
    place = {"group_id": "g", "topic": "t", "partition": 0}
    calls = [
        {"frame": at, "api_name": api, "transactional_id": "t1", "committed": committed}
        for at, api, committed in (
            (2, "TxnOffsetCommit", None), (3, "EndTxn", False), (4, "TxnOffsetCommit", None), (5, "EndTxn", True),
        )
    ]  # fmt: skip
    partitions = [
        {**place, "frame": 1, "api_name": "OffsetCommit", "offset": 5},
        {**place, "frame": 2, "api_name": "TxnOffsetCommit", "offset": 30},
        {**place, "frame": 4, "api_name": "TxnOffsetCommit", "offset": 20},
        {**place, "frame": 6, "api_name": "Fetch", "direction": "response", "high_watermark": 20_000},
    ]
    tables = {"partitions": _table(spark, "partitions", partitions), "calls": _table(spark, "calls", calls)}
    found = kwire.spark.findings(tables, ["offsets-back", "lag"]).toArrow().to_pylist()
    assert [(row["rule"], row["count"]) for row in found] == [("lag", 19_980)]
    # Without calls nobody knows.
    found = kwire.spark.findings({"partitions": tables["partitions"]}, ["offsets-back", "lag"]).toArrow().to_pylist()
    assert sorted((row["rule"], row["count"]) for row in found) == [("lag", 19_980), ("offsets-back", 1)]


@pytest.mark.wide
def test_a_tool_that_sets_a_group_back_is_no_finding(spark: SparkSession) -> None:
    commit = {"api_name": "OffsetCommit", "group_id": "g", "topic": "t", "partition": 0}
    for generations, count in (((4, -1), 0), ((4, 4), 1), ((-1, -1), 1)):
        sent = [{**commit, "frame": k, "generation": one, "offset": 9 - k} for k, one in enumerate(generations)]
        tables = {name: _table(spark, name, sent) for name in ("partitions", "calls")}
        assert kwire.spark.findings(tables, ["offsets-back"]).count() == count


@pytest.mark.wide
def test_a_group_is_compared_with_logs_of_its_own_cluster(spark: SparkSession) -> None:
    place = {"group_id": "g", "topic": "t", "partition": 0}
    end = {**place, "group_id": None, "api_name": "Fetch", "direction": "response"}
    partitions = [
        {**place, "frame": 1, "api_name": "OffsetCommit", "offset": 5},
        {**end, "frame": 2, "high_watermark": 10},
        {**end, "frame": 3, "high_watermark": 20_000, "broker_port": 9093},
    ]
    calls = [
        {"frame": k, "api_name": "Metadata", "direction": "response", "cluster_id": name, "broker_port": port}
        for k, (name, port) in enumerate((("A", 9092), ("B", 9093)))
    ]
    tables = {"partitions": _table(spark, "partitions", partitions), "calls": _table(spark, "calls", calls)}
    assert kwire.spark.findings(tables, ["lag"]).toArrow().to_pylist() == []
    without = {"partitions": tables["partitions"]}
    assert [row["count"] for row in kwire.spark.findings(without, ["lag"]).toArrow().to_pylist()] == [19_995]


def _began(path: Path) -> Any:
    with path.open("rb") as file:
        return next(iter(capture.read(file, columns=["timestamp"]))).column(0)[0].as_py()


def _finding(row: dict[str, Any]) -> str:
    """A finding as text, without which frames it names: there may be more than it does."""
    times = [row[name].timestamp() for name in ("first_seen", "last_seen")]
    return str(
        [row[name] for name in rules.SCHEMA.names if name not in ("evidence", "first_seen", "last_seen")] + times
    )


def _edge(row: dict[str, Any]) -> str:
    times = [row.pop(name).timestamp() for name in ("first_seen", "last_seen")]
    return str((sorted(row.items()), times))
