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

pytestmark = pytest.mark.wide

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


# --- share groups -----------------------------------------------------------------------------------------------------

SHARE = GOLDEN / "kafka-4.3-kraft-java" / "share.pcap"
Shared = tuple[int, str, str]
"""A connection, a group, a member."""


def as_share_brokers_do(path: Path) -> dict[int, tuple[Shared, set[tuple[str, int]]]]:
    """What each ShareFetch request covers, by its frame."""
    sessions: dict[Shared, set[tuple[str, int]]] = {}
    covers: dict[int, tuple[Shared, set[tuple[str, int]]]] = {}
    with path.open("rb") as file:
        for frame in (one for frames in Reading(file) for one in sorted(frames, key=lambda one: one.number)):
            if frame.api_key not in (78, 79) or frame.is_response or frame.status.name != "OK":
                continue
            body: Any = frame.body
            key = frame.connection, body.group_id, body.member_id
            if body.share_session_epoch <= 0:
                sessions[key] = set()
            if frame.api_key == 78 and body.share_session_epoch >= 0:
                full = sessions.setdefault(key, set())
                full |= {(str(one.topic_id), p.partition_index) for one in body.topics for p in one.partitions}
                full -= {(str(one.topic_id), p) for one in body.forgotten_topics_data for p in one.partitions}
                covers[frame.number] = key, set(full)
    return covers


def test_what_share_requests_cover_is_what_brokers_make_of_them(spark: SparkSession) -> None:
    found = kwire.spark.share_sessions(tables(spark, [SHARE])).toArrow().to_pylist()
    covers = as_share_brokers_do(SHARE)
    mine: dict[int, set[tuple[str, int]]] = {one: set() for one in covers}
    for row in found:
        key = row["connection"], row["group_id"], row["member_id"]
        spans = [
            one for one in covers if covers[one][0] == key and row["frame"] <= one < (row["until_frame"] or 1 << 62)
        ]
        assert row["requests"] == len(spans) > 0
        assert row["complete"]
        for one in spans:
            mine[one].add((text_of(row["topic_id"]) or "", row["partition"]))
    assert mine == {one: some for one, (_, some) in covers.items()}
    assert sum(row["requests"] for row in found) > 50
    assert len({row["member_id"] for row in found}) == 2


def shares(number: int, epoch: int, adds: Iterable[int] = (), forgets: Iterable[int] = (), member: str = "m") -> bytes:
    """A ShareFetch; of ``adds`` those are acknowledged that were there before."""
    topic = UUID(int=7)
    body = {
        "group_id": "g",
        "member_id": member,
        "share_session_epoch": epoch,
        "topics": [{"topic_id": topic, "partitions": [{"partition_index": k} for k in adds]}],
        "forgotten_topics_data": [{"topic_id": topic, "partitions": list(forgets)}],
    }
    made = messages.ShareFetchRequest.from_dict(body)
    return kwire.encode_request(made, api_version=1, correlation_id=number, client_id="c")


def acknowledges(number: int, epoch: int, *partitions: int) -> bytes:
    some = [{"partition_index": k} for k in partitions]
    body = {"group_id": "g", "member_id": "m", "share_session_epoch": epoch}
    made = messages.ShareAcknowledgeRequest.from_dict(
        {**body, "topics": [{"topic_id": UUID(int=7), "partitions": some}]}
    )
    return kwire.encode_request(made, api_version=1, correlation_id=number, client_id="c")


def test_what_is_shared_acknowledged_forgotten_and_closed(spark: SparkSession, tmp_path: Path) -> None:
    talk = Connection().open().send(
        shares(0, 0, (1, 2)), acknowledges(1, 1, 1, 9), shares(2, 2, (1, 3)), shares(3, 3, (4,), (2, 4)),
        shares(4, 4, (2,)), shares(5, 0, (8,), member="other"), acknowledges(6, -1, 1), shares(7, 0, (1,)),
        shares(8, 1, (), (1,)), shares(9, -1, (5,)), shares(10, 0, (6,)), shares(11, 2, (7,)), acknowledges(12, 3),
    )  # fmt: skip
    (tmp_path / "made.pcap").write_bytes(pcap(talk.packets))
    found = kwire.spark.share_sessions(tables(spark, [tmp_path / "made.pcap"])).toArrow().to_pylist()
    columns = ("partition", "frame", "until_frame", "requests", "complete", "member_id")
    assert sorted(tuple(row[one] for one in columns) for row in found) == [
        (1, 0, 6, 4, True, "m"),
        (1, 7, 8, 1, True, "m"),
        (2, 0, 3, 2, True, "m"),
        (2, 4, 6, 1, True, "m"),
        (3, 2, 6, 3, True, "m"),
        (6, 10, None, 2, True, "m"),
        (7, 11, None, 1, False, "m"),
        (8, 5, None, 1, True, "other"),
    ]
    with pytest.raises(KwireError, match="share sessions need the table calls"):
        kwire.spark.share_sessions({})
