"""Fetch sessions: what each request covers in full is what a broker would make of it, and what it answers about."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from packets import Connection, pcap
from pyspark.sql import DataFrame, SparkSession

import kwire
import kwire.spark
from kwire import capture, messages
from kwire.capture.reading import Reading
from kwire.errors import KwireError
from kwire.testing import packets

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = (
    "kafka-3.9-kraft-brokers/quorum.pcap",
    "kafka-4.3-kraft-java/clients.pcap",
    "kafka-4.3-kraft-kafka-python/unpinned.pcap",
    "kafka-3.9-zk-brokers/protocol-2.4.pcap",
)
TABLES = ("calls", "partitions")

Request = tuple[str, int, int]
"""A capture, a connection, a frame."""
Part = tuple[str, int, int]
"""A topic, by name or id, a partition, and the offset that is fetched."""


def said(body: Any, version: int) -> tuple[dict[tuple[str, int], int], set[tuple[str, int]]]:
    """What a Fetch request adds or changes, and what it forgets."""
    name = "topic_id" if version >= 13 else "topic"
    adds = {(str(getattr(one, name)), p.partition): p.fetch_offset for one in body.topics for p in one.partitions}
    return adds, {(str(getattr(one, name)), p) for one in body.forgotten_topics_data for p in one.partitions}


def as_brokers_do(path: Path) -> tuple[dict[Request, set[Part]], dict[Request, set[tuple[str, int]]]]:
    """What each Fetch request covers, and of which partitions its response has something."""
    sessions: dict[int, dict[tuple[str, int], int]] = {}
    covers: dict[Request, set[Part]] = {}
    answers: dict[Request, set[tuple[str, int]]] = {}
    waits: dict[tuple[int, int], Request] = {}
    with path.open("rb") as file:
        for frame in (one for frames in Reading(file) for one in sorted(frames, key=lambda one: one.number)):
            if frame.api_key != 1 or frame.status.name != "OK":
                continue
            version, id_ = frame.api_version or 0, (frame.connection, frame.correlation_id or 0)
            body: Any = frame.body
            if frame.is_response:
                name = "topic_id" if version >= 13 else "topic"
                answers[waits[id_]] = {
                    (str(getattr(one, name)), p.partition_index) for one in body.responses for p in one.partitions
                }
                continue
            adds, forgets = said(body, version)
            if body.session_epoch <= 0:
                sessions[frame.connection] = {}
            full = sessions.setdefault(frame.connection, {})
            full |= adds
            for one in forgets:
                full.pop(one, None)
            waits[id_] = str(path), frame.connection, frame.number
            covers[waits[id_]] = {(topic, partition, offset) for (topic, partition), offset in full.items()}
    return covers, answers


def text_of(topic_id: str | None) -> str | None:
    return None if topic_id is None else str(UUID(bytes=base64.urlsafe_b64decode(f"{topic_id}==")))


def tables(spark: SparkSession, paths: Iterable[Path]) -> dict[str, DataFrame]:
    read, named = spark.read.format("kwire"), list(map(str, paths))
    return {name: read.option("table", name).load(named) for name in TABLES}


def test_what_requests_cover_is_what_brokers_make_of_them(spark: SparkSession) -> None:
    found = kwire.spark.fetch_sessions(tables(spark, (GOLDEN / name for name in NAMES))).toArrow().to_pylist()
    inherited = 0
    for path in (GOLDEN / name for name in NAMES):
        covers, answers = as_brokers_do(path)
        mine: dict[Request, set[Part]] = {one: set() for one in covers}
        for row in (row for row in found if row["capture"] == str(path)):
            topic = text_of(row["topic_id"]) or row["topic"]
            spans = [
                one
                for one in covers
                if one[1] == row["connection"] and row["frame"] <= one[2] < (row["until_frame"] or 1 << 62)
            ]
            assert row["requests"] == len(spans) > 0
            assert row["complete"]
            inherited += len(spans) - 1
            for one in spans:
                mine[one].add((topic, row["partition"], row["offset"]))
        assert mine == covers
        for one, some in answers.items():
            assert some <= {(topic, partition) for topic, partition, _ in covers[one]}
    assert inherited > 200
    ids = {row["session_id"] for row in found}
    assert len(ids - {None}) > 10


def test_sessions_go_on_from_file_to_file(spark: SparkSession, tmp_path: Path) -> None:
    path = GOLDEN / NAMES[1]
    whole = packets.read(path.read_bytes())
    places = [0, *(len(whole) * k // 5 for k in range(1, 5)), len(whole)]
    for k, (a, b) in enumerate(itertools.pairwise(places)):
        (tmp_path / f"{k}.pcap").write_bytes(packets.write_pcap(whole[a:b], nano=True))
    cut = {name: kwire.spark.read(str(tmp_path), table=name) for name in TABLES}
    across = kwire.spark.fetch_sessions(cut, across=True).toArrow().to_pylist()
    alone = kwire.spark.fetch_sessions(tables(spark, [path])).toArrow().to_pylist()
    columns = ("client_port", "session_id", "topic", "topic_id", "partition", "offset", "since", "until", "requests")
    assert {row["capture"] for row in across} > {str(tmp_path / "2.pcap")}
    assert sorted(repr([row[one] for one in columns]) for row in across) == sorted(
        repr([row[one] for one in columns]) for row in alone
    )


def asks(number: int, epoch: int, adds: Iterable[int] = (), forgets: Iterable[int] = (), version: int = 11) -> bytes:
    body = {
        "max_wait_ms": 1,
        "min_bytes": 1,
        "session_id": 77 if epoch else 0,
        "session_epoch": epoch,
        "topics": [{"topic": "t", "partitions": [{"partition": k, "fetch_offset": number} for k in adds]}],
        "forgotten_topics_data": [{"topic": "t", "partitions": list(forgets)}],
    }
    if version < 7:
        body = {name: value for name, value in body.items() if "session" not in name and "forgot" not in name}
    made = messages.FetchRequest.from_dict(body)
    return kwire.encode_request(made, api_version=version, correlation_id=number, client_id="c")


def spans(spark: SparkSession, folder: Path, talk: Connection) -> list[tuple[Any, ...]]:
    """Partition, offset, first request and that which ends it, how many, whether all is known; by partition."""
    data = pcap(talk.packets)
    (folder / "made.pcap").write_bytes(data)
    found = kwire.spark.fetch_sessions(tables(spark, [folder / "made.pcap"])).toArrow().to_pylist()
    columns = ("partition", "offset", "frame", "until_frame", "requests", "complete", "session_id")
    return sorted(tuple(row[one] for one in columns) for row in found)


def test_what_is_added_changed_forgotten_and_begun_anew(spark: SparkSession, tmp_path: Path) -> None:
    talk = Connection().open().send(
        asks(0, 0, (1, 2)), asks(1, 1), asks(2, 2, (2, 3)), asks(3, 3, (), (1,)), asks(4, 4, (5,), (5,)),
        asks(5, 0, (1,)), asks(6, -1), asks(7, -1, (9,)), asks(8, 0, (4,), version=4), asks(9, 0, (4,), version=4),
    )  # fmt: skip
    assert spans(spark, tmp_path, talk) == [
        (1, 0, 0, 3, 3, True, 77),
        (1, 5, 5, 6, 1, True, None),
        (2, 0, 0, 2, 2, True, 77),
        (2, 2, 2, 5, 3, True, 77),
        (3, 2, 2, 5, 3, True, 77),
        (4, 8, 8, 9, 1, True, None),
        (4, 9, 9, None, 1, True, None),
        (9, 7, 7, 8, 1, True, 77),
    ]


def test_what_is_missing_is_said(spark: SparkSession, tmp_path: Path) -> None:
    most = (1 << 31) - 1
    talk = Connection().open().send(asks(0, 5, (1,)), asks(1, 0, (1,)), asks(2, 1, (2,)), asks(3, 3, (3,)))
    assert [(row[0], row[-2]) for row in spans(spark, tmp_path, talk)] == [(1, False), (1, True), (2, True), (3, False)]
    # Behind the greatest epoch comes 1.
    talk = Connection().open().send(asks(0, most - 1, (1,)), asks(1, most, (2,)), asks(2, 1, (3,)), asks(3, 2, (4,)))
    assert len(spans(spark, tmp_path, talk)) == 4
    with pytest.raises(KwireError, match="fetch sessions need the table partitions"):
        kwire.spark.fetch_sessions({"calls": spark.createDataFrame(pa.table({"a": [1]}))})


def test_calls_have_sessions() -> None:
    with (GOLDEN / NAMES[1]).open("rb") as file:
        columns = ["api_name", "direction", "session_id", "session_epoch"]
        rows = [row for one in capture.read(file, "calls", columns=columns) for row in one.to_pylist()]
    given = {row["session_id"] for row in rows if row["direction"] == "response" and row["session_id"]}
    asked = {row["session_id"] for row in rows if row["direction"] == "request" and (row["session_epoch"] or 0) > 0}
    assert asked <= given
    assert asked
