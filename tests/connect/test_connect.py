"""With Spark Connect everything of ``kwire.spark`` works: this process is a client without a JVM, and starts a server.

``make test-connect`` runs this in an environment of its own, since Spark Connect needs pandas and kwire does not. A
session of Connect and one with a JVM cannot be in one process, so what is right is worked out without Spark.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import kwire
import kwire.messages
import kwire.spark
from kwire import capture
from kwire.cli import main
from kwire.records import Record, encode
from kwire.report import audit, findings
from kwire.report.lineage import TABLES, Lineage
from kwire.report.lineage import batch_of as edges_of
from kwire.spark.workers import context_of

GOLDEN = Path(__file__).parents[1] / "golden"
CAPTURE = GOLDEN / "kafka-4.3-kraft-librdkafka" / "current.pcap"
SHARED = GOLDEN / "kafka-4.3-kraft-java" / "share.pcap"
EVENTS = GOLDEN / "kafka-4.3-kraft-events" / "events.pcap"
REQUEST = bytes.fromhex("001200000000000700056b77697265")


SERVER = """
import sys
import kwire.spark
from pyspark.sql import SparkSession
made = (
    SparkSession.builder.master("local[2]")
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.port", sys.argv[1])
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.log.level", "OFF")
    .config("spark.python.authenticate.socketTimeout", "120s")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", sys.argv[2])
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
print("ready", flush=True)
sys.stdin.read()
made.stop()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server, which is a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVER, str(port), str(tmp_path_factory.mktemp("server"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield f"sc://127.0.0.1:{port}"
        server.stdin.close()


@pytest.fixture(scope="module")
def spark(address: str) -> Iterator[SparkSession]:
    made = SparkSession.builder.remote(address).getOrCreate()
    kwire.spark.register(made)
    yield made
    made.stop()


def load(spark: SparkSession, name: str, path: Path = CAPTURE, **options: Any) -> DataFrame:
    return spark.read.format("kwire").options(table=name, **options).load(str(path))


def rows_of(name: str, path: Path = CAPTURE, **options: Any) -> list[dict[str, Any]]:
    return pa.Table.from_batches(capture.read(path, name, name=str(path), **options)).to_pylist()


def same(found: DataFrame, wanted: list[dict[str, Any]]) -> None:
    assert wanted
    assert Counter(map(_key, found.toArrow().to_pylist())) == Counter(map(_key, wanted))


def _key(row: dict[str, Any]) -> str:
    """Times are the same in any time zone."""
    return str({name: one.timestamp() if isinstance(one, datetime) else one for name, one in row.items()})


def test_the_session_is_one_of_connect(spark: SparkSession) -> None:
    assert "connect" in type(spark).__module__
    assert context_of(spark) is None
    # Harmless to repeat.
    kwire.spark.register(spark)


def test_functions_of_sql(spark: SparkSession) -> None:
    spark.createDataFrame([(REQUEST,)], "payload binary").createOrReplaceTempView("payloads")
    (row,) = spark.sql("""
        SELECT kwire_api_name(18) AS name, kwire_decode_request(payload) AS request,
               kwire_decode_request_header(payload) AS header, kwire_decode_records(X'00') AS records,
               kwire_decode_response(X'00000007000000000000', 18, 0) AS response
        FROM payloads
    """).collect()
    assert row.name == row.request.api_name == row.header.api_name == row.response.api_name == "ApiVersions"
    assert (row.request.client_id, row.request.body, row.header.status) == ("kwire", "{}", "ok")
    assert (row.response.correlation_id, row.response.status) == (7, "ok")
    assert [one.status for one in row.records] == ["cut_off"]


def test_column_functions(spark: SparkSession) -> None:
    payloads = spark.createDataFrame([(REQUEST, "t")], "payload binary, topic string")
    (row,) = payloads.select(
        kwire.spark.decode_request("payload", api="ApiVersions").alias("request"),
        kwire.spark.decode_response("payload", 18, sql.lit(0)).alias("response"),
        kwire.spark.decode_records("payload", topic="topic").alias("records"),
        kwire.spark.api_name(sql.lit(0)).alias("name"),
    ).collect()
    assert (row.request.status, row.request.body.client_software_name, row.name) == ("ok", None, "Produce")
    assert row.response.status == "malformed"
    assert len(row.records) == 1


def test_tables_one_file_at_a_time_and_across_files(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("frames", "records"):
        wanted = rows_of(name)
        same(load(spark, name), wanted)
        # Across files numbers say only which frame and connection it is.
        numbers = ("frame", "connection")
        wanted = [{key: one[key] for key in one if key not in numbers} for one in wanted]
        for found in (load(spark, name, across="true"), kwire.spark.read(str(CAPTURE), table=name)):
            same(found.drop(*numbers), wanted)
    assert kwire.spark.read(str(CAPTURE), modifiedAfter="2037-01-01T00:00:00").collect() == []


def test_audit_findings_and_lineage(spark: SparkSession) -> None:
    low = findings.Thresholds(tiny_batches=1, metadata_requests=1, connections=1, commits=1, lag=1, repeated_errors=1)
    columns: dict[str, list[str]] = {}
    for some in (findings.needed(), TABLES, {"connections": audit.CONNECTIONS, "records": audit.RECORDS}):
        for name, wanted in some.items():
            columns[name] = list(dict.fromkeys((*columns.get(name, ()), *wanted)))
    auditor, finder, lineage = audit.Auditor("4.0"), findings.Finder(None, low), Lineage()
    frames = {name: load(spark, name, columns=",".join(some)) for name, some in columns.items()}
    for name, batch in capture.read(CAPTURE, tables=list(columns), columns=columns, name=str(CAPTURE)):
        if name == "connections":
            auditor.add_connections(batch.select(audit.CONNECTIONS))
        if name == "records":
            auditor.add_records(batch.select(audit.RECORDS))
        finder.add(name, batch)
        if name in TABLES:
            lineage.add(name, batch)
    same(kwire.spark.audit(frames, "4.0"), auditor.result().rows())
    said = ["rule", "severity", "summary", "count"]
    found = kwire.spark.findings(frames, thresholds=low).select(*said)
    same(found, pa.Table.from_batches([findings.batch_of(finder.result())]).select(said).to_pylist())
    edges = ["topic", "role", "client_id", "records", "bytes"]
    same(
        kwire.spark.lineage(frames).select(*edges),
        pa.Table.from_batches([edges_of(lineage.result())]).select(edges).to_pylist(),
    )


def test_sessions(spark: SparkSession) -> None:
    tables = {name: load(spark, name, SHARED) for name in ("calls", "partitions")}
    consumed = {name: load(spark, name) for name in ("calls", "partitions")}
    topics = {row.topic for row in kwire.spark.fetch_sessions(consumed).collect()}
    assert topics == {
        row["topic"] for row in rows_of("partitions") if row["api_name"] == "Fetch" and row["direction"] == "request"
    }
    members = {row["member_id"] for row in rows_of("calls", SHARED) if row["api_name"] == "ShareFetch"} - {None}
    assert {row.member_id for row in kwire.spark.share_sessions(tables).collect()} == members != set()


def test_chunks(spark: SparkSession) -> None:
    chunk = len(REQUEST).to_bytes(4, "big") + REQUEST
    chunks = spark.createDataFrame([("c", "request", 1, chunk)], "c string, side string, at long, data binary")
    made = kwire.spark.decode_frames(
        chunks, connection="c", direction="side", time="at", time_unit="s", payload="data", from_start=True,
        table="messages",
    )  # fmt: skip
    (row,) = made.collect()
    assert (row.connection, row.api_name, row.client_id, row.status) == ("c", "ApiVersions", "kwire", "ok")


def frames_of_a_connection() -> list[tuple[str, str, float, bytes]]:
    kind = kwire.messages.ProduceRequest
    batch = encode([Record(b"k", b"v", offset=number) for number in range(3)])
    data = kind.TopicProduceData(name="orders", partition_data=[kind.PartitionProduceData(index=1, records=batch)])
    asked = kwire.encode_request(kind(acks=1, topic_data=[data]), api_version=9, correlation_id=7, client_id="billing")
    topic = kwire.messages.ProduceResponse.TopicProduceResponse(
        name="orders",
        partition_responses=[kwire.messages.ProduceResponse.PartitionProduceResponse(index=1, base_offset=40)],
    )
    answered = kwire.encode_response(kwire.messages.ProduceResponse(responses=[topic]), api_version=9, correlation_id=7)
    return [("c", "request", 1.0, asked), ("c", "response", 1.5, answered)]


FRAMES = "connection string, direction string, time double, payload binary"


def test_what_is_in_payloads(spark: SparkSession) -> None:
    (_, _, _, asked), (_, _, _, answered) = frames_of_a_connection()
    sized = len(asked).to_bytes(4, "big") + asked
    df = spark.createDataFrame([("h", asked, answered), ("h", sized * 2, answered)], "host string, a binary, b binary")
    rows = df.select(
        kwire.spark.decode_request("a", sized="auto", several=True, fields=["api_name", "status"]).alias("asked"),
        sql.size(kwire.spark.request_records("a", sized="auto")).alias("records"),
        sql.size(kwire.spark.request_partitions("a", sized="auto")).alias("partitions"),
        sql.size(kwire.spark.response_partitions("b", 0, 9)).alias("answered"),
    ).collect()
    assert [[tuple(one) for one in row.asked] for row in rows] == [[("Produce", "ok")], [("Produce", "ok")] * 2]
    assert [(row.records, row.partitions, row.answered) for row in rows] == [(3, 1, 1), (6, 2, 1)]
    records = kwire.spark.records_of(df.drop("b"), "a", sized="auto", fields=["topic", "partition", "value", "status"])
    same(records, [{"host": "h", "topic": "orders", "partition": 1, "value": b"v", "status": "ok"}] * 9)
    (row,) = kwire.spark.partitions_of(df.drop("a").limit(1), "b", api_key=0, api_version=9).collect()
    assert (row.host, row.topic, row.partition) == ("h", "orders", 1)


def test_exchanges_of_a_table_and_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    rows = frames_of_a_connection()
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    for number, one in enumerate(rows):
        spark.createDataFrame([one], FRAMES).coalesce(1).write.mode("append").parquet(str(tmp_path / f"in/{number}"))
    stream = spark.readStream.schema(FRAMES).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in/*"))
    query = (
        kwire.spark.exchanges(stream, time_unit="s")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.conf.unset(provider)
    said = ["direction", "api_name", "api_version", "client_id", "latency_ms", "status"]
    wanted = [("request", "Produce", 9, "billing", None, "ok"), ("response", "Produce", 9, "billing", 500.0, "ok")]
    table = kwire.spark.exchanges(spark.createDataFrame(rows, FRAMES), time_unit="s")
    for found in (table, spark.read.parquet(str(tmp_path / "out"))):
        assert sorted((tuple(row) for row in found.select(said).collect()), key=str) == wanted


def test_events(spark: SparkSession) -> None:
    messages, records, frames = (load(spark, name, EVENTS) for name in ("messages", "records", "frames"))
    kinds = {row.type for row in kwire.spark.cloudevents(records).select("type").collect()}
    assert "com.example.order.placed" in kinds
    assert kwire.spark.hono_messages(records).count() == len(
        [one for one in rows_of("records", EVENTS) if (one["topic"] or "").startswith("hono.")]
    )
    assert {"two_partitions", "missing_header"} <= {
        row.rule for row in kwire.spark.hono_violations(records, frames).collect()
    }
    clients = {row.client_id for row in kwire.spark.hono_producers(messages, records).collect()}
    assert clients == {"adapter-both", "adapter-fast", "adapter-bad"}


def test_a_stream_and_an_export(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(CAPTURE, tmp_path / "in")
    for name, options in (("alone", {}), ("across", {"across": "true", "stateLocation": str(tmp_path / "state")})):
        stream = spark.readStream.format("kwire").options(table="frames", idle="0s", **options)
        query = (
            stream.load(str(tmp_path / "in"))
            .writeStream.format("parquet")
            .option("path", str(tmp_path / name))
            .option("checkpointLocation", str(tmp_path / f"{name}-checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert spark.read.parquet(str(tmp_path / name)).count() > 0
    assert spark.read.parquet(str(tmp_path / "alone")).count() == len(rows_of("frames"))
    made = kwire.spark.export(spark, str(CAPTURE), str(tmp_path / "out"), table="records", partition_by=["topic"])
    assert made.rows == len(rows_of("records")) == spark.read.parquet(str(tmp_path / "out")).count()


def test_the_command_takes_the_address_of_a_server(spark: SparkSession, address: str, tmp_path: Path) -> None:
    assert main(["spark", "export", str(CAPTURE), str(tmp_path / "out"), "--master", address]) == 0
    assert spark.read.parquet(str(tmp_path / "out")).count() == len(rows_of("frames"))
