"""Bodies as structs in Spark: the data source, ``from_json`` with ``schema_of``, and the column functions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

import kwire.capture
import kwire.spark
from kwire import messages

NAME = "first-light.pcap"


def test_bodies_of_the_data_source_are_those_of_the_capture_engine(spark: SparkSession, captures: Path) -> None:
    path = captures / NAME

    def load(**options: str) -> DataFrame:
        return spark.read.format("kwire").option("table", "messages").options(**options).load(str(path))

    found = load(api="Produce", direction="request")
    assert found.schema["body"].dataType == kwire.spark.schema_of("Produce", "request")
    with path.open("rb") as stream:
        batches = list(kwire.capture.read(stream, "messages", name=str(path), api="Produce", direction="request"))
    expected = [row for batch in batches for row in batch.to_pylist()]
    assert found.toArrow().to_pylist() == expected
    assert expected
    assert load(api="Produce").toArrow().to_pylist() == expected
    texts = load().where("api_name = 'Produce' AND direction = 'request'")
    again = texts.select(sql.from_json("body", kwire.spark.schema_of("Produce", "request")).alias("body"))
    assert again.toArrow().to_pylist() == [{"body": row["body"]} for row in expected]
    with pytest.raises(PySparkException, match="no API 'Nope'"):
        load(api="Nope", direction="request")


@pytest.mark.wide
def test_functions_give_bodies_of_one_api(spark: SparkSession) -> None:
    commit = messages.OffsetCommitRequest.from_dict(
        {"group_id": "g", "topics": [{"name": "t", "partitions": [{"partition_index": 1, "committed_offset": 2}]}]}
    )
    frames = [
        kwire.encode_request(commit, api_version=8, correlation_id=1, client_id="c"),
        kwire.encode_request(messages.HeartbeatRequest(), api_version=4, correlation_id=2),
        b"\0\x08\0\x08\0\0\0\1\xff\xff",
        None,
    ]
    payloads = spark.createDataFrame([(one,) for one in frames], "payload binary")
    rows = payloads.select(kwire.spark.decode_request("payload", api="OffsetCommit").alias("r")).collect()
    first, other, bad, none = (row.r for row in rows)
    assert (first.status, first.body.group_id, first.body.retention_time_ms) == ("ok", "g", None)
    assert first.body.topics[0].partitions[0].committed_offset == 2
    assert (other.status, other.api_name, other.body) == ("ok", "Heartbeat", None)
    assert (bad.status, bad.body, none) == ("malformed", None, None)
    done = messages.OffsetCommitResponse.from_dict({"topics": [{"name": "t", "partitions": [{"error_code": 16}]}]})
    answer = kwire.encode_response(done, api_version=8, correlation_id=1)
    payloads = spark.createDataFrame([(answer,)], "payload binary")
    decoded = kwire.spark.decode_response("payload", 8, 8, api="OffsetCommit")
    ((row,),) = payloads.select(decoded).collect()
    assert row.body.topics[0].partitions[0].error_code == "NOT_COORDINATOR"
