"""Requests and responses in a stream: paired across batches by a bounded state, each once, if it is killed too."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import kwire.messages
import kwire.spark
from kwire.errors import KwireError
from kwire.spark.pairing import Frame, Terms, Waiting, pair

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "host string, port int, direction string, time double, payload binary"
SAME = [
    "connection", "direction", "api_key", "api_name", "api_version", "correlation_id", "client_id", "latency_ms",
    "status", "error", "body",
]  # fmt: skip


def beat(number: int, client_id: str = "x") -> bytes:
    body = kwire.messages.HeartbeatRequest(group_id="orders", member_id="m")
    return kwire.encode_request(body, api_version=4, correlation_id=number, client_id=client_id)


def beaten(number: int) -> bytes:
    return kwire.encode_response(kwire.messages.HeartbeatResponse(), api_version=4, correlation_id=number)


def produce(number: int, acks: int) -> bytes:
    body = kwire.messages.ProduceRequest(acks=acks, timeout_ms=1)
    return kwire.encode_request(body, api_version=9, correlation_id=number, client_id="x")


# --- how frames are paired --------------------------------------------------------------------------------------------


def asks(number: int, at: int, payload: bytes | None = None) -> Frame:
    return Frame(True, "request", at * 10**9, None, payload or beat(number))


def answers(number: int, at: int) -> Frame:
    return Frame(False, "response", at * 10**9, None, beaten(number))


def about(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(one["direction"], one.get("correlation_id"), one.get("latency"), one.get("status")) for one in rows]


def test_a_response_has_what_is_known_of_its_request_whatever_the_order_of_rows() -> None:
    rows, waiting, latest = pair([answers(7, 3), asks(8, 2), asks(7, 1)], [], None, Terms())
    assert about(rows) == [
        ("request", None, None, None), ("request", None, None, None), ("response", 7, 2 * 10**9, None),
    ]  # fmt: skip
    assert (rows[2]["api_key"], rows[2]["api_version"], rows[2]["client_id"]) == (12, 4, "x")
    assert waiting == [Waiting(8, 2 * 10**9, 12, 4, "x")]
    rows, waiting, latest = pair([answers(8, 4), answers(8, 5)], waiting, latest, Terms())
    assert about(rows) == [("response", 8, 2 * 10**9, None), ("response", 8, None, "unpaired")]
    assert (waiting, latest) == ([], 5 * 10**9)


def test_of_two_requests_with_the_same_id_the_first_is_answered_first() -> None:
    rows, waiting, _ = pair([asks(7, 1), asks(7, 3), answers(7, 4), answers(7, 5)], [], None, Terms())
    assert [one.get("latency") for one in rows] == [None, None, 3 * 10**9, 2 * 10**9]
    assert waiting == []


def test_what_has_no_response_does_not_wait() -> None:
    frames = [asks(1, 1, produce(1, 0)), asks(2, 1, produce(2, 1)), asks(3, 1, b"no frame"), asks(4, 1, beat(4)[:-1])]
    rows, waiting, _ = pair(frames, [], None, Terms())
    assert len(rows) == 4
    # A body that is cut may be answered all the same.
    assert [one.id for one in waiting] == [2, 4]


def test_requests_are_given_up_after_a_time_and_beyond_a_number() -> None:
    terms = Terms(max_wait=10, max_waiting=2)
    rows, waiting, latest = pair([asks(1, 1), asks(2, 2), asks(3, 3)], [], None, terms)
    assert about(rows)[3] == ("request", 1, None, "given_up")
    assert rows[3]["error"] == "more than 2 requests wait: the request is given up"
    assert "payload" not in rows[3]
    rows, waiting, latest = pair([answers(9, 12)], waiting, latest, terms)
    assert [one.id for one in waiting] == [2, 3]
    rows, waiting, latest = pair([answers(2, 13)], waiting, latest, terms)
    assert about(rows) == [("request", 2, None, "given_up"), ("response", 2, None, "unpaired")]
    assert rows[0]["error"] == "no response within 10 s: the request is given up"
    assert [one.id for one in waiting] == [3]


def test_times_that_are_null_are_no_reason_to_give_up() -> None:
    early = Frame(True, "request", None, None, beat(1))
    rows, waiting, latest = pair([answers(2, 1000), early], [], None, Terms(max_wait=1))
    assert [one.get("time") for one in rows] == [None, 1000 * 10**9]
    assert [one.id for one in waiting] == [1]
    rows, waiting, _ = pair([answers(1, 1001)], waiting, latest, Terms(max_wait=1))
    assert about(rows) == [("response", 1, None, None)]


def test_short_responses_are_malformed() -> None:
    rows, _, _ = pair([Frame(False, "response", 1, None, b"\0\0")], [], None, Terms())
    assert (rows[0]["status"], rows[0]["error"]) == ("malformed", "2 bytes are too few for a correlation id")


# --- in Spark ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PROVIDER, ROCKS)
    yield spark
    spark.conf.unset(PROVIDER)


BATCHES: list[list[tuple[str, int, str, float, bytes]]] = [
    [
        ("a", 1, "request", 1.0, beat(1)),
        ("a", 1, "request", 1.1, beat(2)),
        ("b", 1, "request", 1.0, beat(1, "y")),
        ("a", 1, "response", 1.5, beaten(1)),
        ("b", 1, "request", 1.2, b"no frame"),
    ],
    [("a", 1, "response", 2.1, beaten(2)), ("c", 2, "request", 2.0, produce(5, 0)), ("c", 2, "request", 2.1, beat(6))],
    [("b", 1, "response", 3.0, beaten(1)), ("c", 2, "response", 3.1, beaten(6)), ("c", 2, "request", 3.2, beat(7))],
]


def write(spark: SparkSession, folder: Path, number: int) -> None:
    rows = [(*one[:-1], bytearray(one[-1])) for one in BATCHES[number]]
    path = folder / f"{number}"
    spark.createDataFrame(rows, SCHEMA).coalesce(1).write.parquet(str(path))
    (part,) = path.glob("*.parquet")
    (folder / "in").mkdir(exist_ok=True)
    part.rename(folder / "in" / f"{number}.parquet")


def stream(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:
    frames = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return kwire.spark.exchanges(frames, connection=["host", "port"], time_unit="s", **options)


def run(spark: SparkSession, folder: Path, fails: int | None = None, **options: Any) -> None:
    def sink(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").json(str(folder / f"out/{number}"))
        if number == fails:
            raise RuntimeError("killed")

    query = stream(spark, folder, **options).writeStream.foreachBatch(sink)
    query.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start().awaitTermination()


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted(folder.glob("out/*/*.json"))
        for line in file.read_text("utf-8").splitlines()
    ]


@pytest.mark.wide
def test_a_stream_that_is_killed_has_the_rows_of_the_table_once(rocks: SparkSession, tmp_path: Path) -> None:
    for number in range(len(BATCHES)):
        write(rocks, tmp_path, number)
    with pytest.raises(StreamingQueryException):
        run(rocks, tmp_path, fails=1)
    run(rocks, tmp_path)
    table = rocks.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    wanted = kwire.spark.exchanges(table, connection=["host", "port"], time_unit="s").select(SAME)
    same = [json.loads(line) for line in wanted.toJSON().collect()]
    found = [{name: one[name] for name in SAME if name in one} for one in rows_of(tmp_path)]
    # What a frame is that has no header, captures say in other words.
    assert len(found) == len(same) == sum(map(len, BATCHES))
    bad = [one for one in found if one["status"] == "unsupported"]
    assert [one["connection"]["host"] for one in bad] == ["b"]
    assert sorted(map(str, (one for one in found if one not in bad))) == sorted(
        str(one) for one in same if one["status"] != "malformed"
    )
    paired = {(one["connection"]["host"], one["correlation_id"]): one for one in found if "latency_ms" in one}
    assert {key: round(one["latency_ms"], 3) for key, one in paired.items()} == {
        ("a", 1): 500.0, ("a", 2): 1000.0, ("b", 1): 2000.0, ("c", 6): 1000.0,
    }  # fmt: skip
    assert paired["b", 1]["client_id"] == "y"


@pytest.mark.wide
def test_requests_are_given_up_in_a_row_that_says_so(rocks: SparkSession, tmp_path: Path) -> None:
    for number in range(len(BATCHES)):
        write(rocks, tmp_path, number)
    run(rocks, tmp_path, max_waiting=1, max_wait=1.5)
    lost = [one for one in rows_of(tmp_path) if one["status"] in ("given_up", "unpaired")]
    assert sorted(
        (one["connection"]["host"], one["direction"], one["correlation_id"], one["error"]) for one in lost
    ) == [
        ("a", "request", 1, "more than 1 requests wait: the request is given up"),
        ("a", "response", 1, "no request with the correlation id 1 waits on this connection"),
        ("b", "request", 1, "no response within 1.5 s: the request is given up"),
        ("b", "response", 1, "no request with the correlation id 1 waits on this connection"),
    ]
    (given_up,) = [one for one in lost if one["connection"]["host"] == "b" and one["status"] == "given_up"]
    assert (given_up["api_name"], given_up["client_id"], given_up.get("body")) == ("Heartbeat", "y", None)


@pytest.mark.wide
def test_a_connection_that_is_silent_gives_up_its_requests(rocks: SparkSession, tmp_path: Path) -> None:
    write(rocks, tmp_path, 0)
    run(rocks, tmp_path, max_wait=1)
    assert [one for one in rows_of(tmp_path) if one["status"] == "given_up"] == []
    # Other connections move the clock on.
    time.sleep(1)
    write(rocks, tmp_path, 1)
    run(rocks, tmp_path, max_wait=1)
    (lost,) = [one for one in rows_of(tmp_path) if one["status"] == "given_up"]
    assert (lost["connection"]["host"], lost["correlation_id"], lost["client_id"]) == ("b", 1, "y")
    assert lost["error"] == "no frame of the connection came for 1 s: the request is given up"


@pytest.mark.wide
def test_sizes_in_front_are_dropped_in_a_stream(rocks: SparkSession, tmp_path: Path) -> None:
    rows = [("a", 1, "request", 1.0, bytearray(len(beat(1)).to_bytes(4, "big") + beat(1)))]
    rocks.createDataFrame(rows, SCHEMA).write.parquet(str(tmp_path / "in"))
    run(rocks, tmp_path, sized=True)
    assert [(one["status"], one["api_name"]) for one in rows_of(tmp_path)] == [("ok", "Heartbeat")]


@pytest.mark.wide
def test_what_does_not_go_with_a_stream_is_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(KwireError, match=r"RocksDB keeps: spark\.conf\.set"):
        stream(spark, tmp_path)
    with pytest.raises(KwireError, match="leave out table"):
        stream(spark, tmp_path, table="records")
    with pytest.raises(KwireError, match="'apis' does not go with a stream: there are order, "):
        stream(spark, tmp_path, apis="Fetch")
