"""The table ``calls``: what messages say of themselves is what their objects say."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from packets import Connection, metadata, metadata_answer, pcap, produce, request
from valid_batches import valid

from kwire import capture, encode_request, messages, schema
from kwire.capture.reading import Reading
from kwire.errors import KwireError
from kwire.schema import model
from kwire.tables import table
from kwire.tables.calls import _FIELDS

GOLDEN = Path(__file__).parents[2] / "golden"
CAPTURES = ("kafka-4.3-kraft-java/share.pcap",)
Row = dict[str, Any]


def rows(data: bytes, **options: Any) -> list[Row]:
    found = valid(capture.read(io.BytesIO(data), "calls", **options))
    return [row for batch in found for row in batch.to_pylist()]


def expected(data: bytes) -> dict[int, Row]:
    """The fields of every message that has one, by the number of its frame."""
    made: dict[int, Row] = {}
    for frames in Reading(io.BytesIO(data)):
        for frame in frames:
            try:
                body = frame.body.to_dict(frame.message.api_version if frame.is_response else frame.api_version)
            except KwireError:
                continue
            there = {}
            for column, (_, names) in _FIELDS.items():
                for name, _ in names:
                    if name in body:
                        there[column] = body[name]
                        break
            if there:
                made[frame.number] = there
    return made


@pytest.mark.parametrize("name", CAPTURES)
def test_fields_are_those_of_the_objects(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    found = {row["frame"]: row for row in rows(data)}
    wanted = expected(data)
    assert {frame for frame, row in found.items() if row["status"] == "ok"} >= {
        frame for frame, row in wanted.items() if frame in found
    }
    assert len(wanted.keys() - found.keys()) == 0
    for frame, there in wanted.items():
        for column in _FIELDS:
            assert found[frame][column] == there.get(column), (frame, column)


OTHERS = {"ongoing_txn_producer_id", "ongoing_txn_producer_epoch", "ack_when_committed"}
"""Fields that end like a column and are about something else."""


def test_no_field_is_left_out_because_a_version_calls_it_otherwise() -> None:
    left = []
    for key in schema.api_keys():
        for message in filter(None, (schema.request(key), schema.response(key))):
            for version in message.versions:
                for one in model.layout(message, version).fields:
                    if not isinstance(one.type, model.PrimitiveLayout) or one.name in OTHERS:
                        continue
                    ends = [column for column in _FIELDS if f"_{one.name}".endswith(f"_{column}")]
                    known = {name for _, names in _FIELDS.values() for name, type_ in names if type_ == one.type.name}
                    if ends and one.name not in known:
                        left.append((message.name, version, one.name))
    assert not left


@pytest.mark.parametrize("version", range(4))
def test_who_adds_partitions_to_a_transaction_is_told(version: int) -> None:
    kind = messages.AddPartitionsToTxnRequest
    asked = kind(
        v3_and_below_transactional_id="pay",
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=2,
        v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name="orders", partitions=[0, 1])],
    )
    frame = encode_request(asked, api_version=version, correlation_id=1, client_id="c")
    (row,) = rows(pcap(Connection().open().send(frame).packets))
    assert (row["transactional_id"], row["producer_id"], row["producer_epoch"]) == ("pay", 7, 2)


def test_a_message_without_such_a_field_has_no_row_and_a_damaged_one_says_so() -> None:
    connection = Connection().open().send(metadata(1)).answer(metadata_answer(1))
    connection.send(produce(2, -1)).send(produce(3, 0)).send(request(12, 0, 4, b"\x00\x05gro"))
    found = rows(pcap(connection.packets))
    assert [(row["api_name"], row["acks"], row["status"]) for row in found] == [
        ("Produce", -1, "ok"),
        ("Produce", 0, "ok"),
        ("Heartbeat", None, "malformed"),
    ]
    assert found[2]["error"].startswith("HeartbeatRequest v0 $.group_id at byte")


def test_columns_can_be_chosen_and_windows_do_not_matter() -> None:
    connection = Connection().open().send(produce(2, -1)).send(produce(3, 0))
    connection.send(request(12, 0, 4, b"\x00\x01g\x00\x00\x00\x05\x00\x01m")).send(request(12, 0, 5, b"\x00\x05gro"))
    data = pcap(connection.packets)
    whole = rows(data)
    assert [row["group_id"] for row in whole] == [None, None, "g", None]
    assert rows(data, window=4096) == whole
    for name in table("calls").schema.names:
        assert [row[name] for row in rows(data, columns=[name])] == [row[name] for row in whole]


def test_clusters_and_brokers_are_columns_that_are_asked_for() -> None:
    data = (GOLDEN / CAPTURES[0]).read_bytes()
    usual = rows(data)
    columns = ["frame", "api_name", "direction", "broker_host", "broker_port", "cluster_id"]
    more = rows(data, columns=columns)
    assert "cluster_id" not in usual[0]
    # A response that says nothing but its cluster is a row then.
    assert {row["frame"] for row in usual} <= {row["frame"] for row in more}
    named = [row for row in more if row["cluster_id"] is not None]
    assert {row["cluster_id"] for row in named} == {"le8tBi_NTs6lclBjV4vrCQ"}
    assert {(row["api_name"], row["direction"]) for row in named} >= {("Metadata", "response")}
    of_frames = {
        row["frame"]: (row["broker_host"], row["broker_port"])
        for batch in capture.read(io.BytesIO(data), columns=["frame", "broker_host", "broker_port"])
        for row in batch.to_pylist()
    }
    of_partitions = capture.read(io.BytesIO(data), "partitions", columns=columns[:-1])
    for found in (more, [row for batch in of_partitions for row in batch.to_pylist()]):
        assert all(of_frames[row["frame"]] == (row["broker_host"], row["broker_port"]) for row in found)


def test_a_body_that_is_damaged_behind_its_fields_has_the_verdict_of_frames() -> None:
    secret = b"Wq7zHUNTER2pwXk9" * 30
    connection = Connection().open().send(metadata(1)).answer(metadata_answer(1))
    # The length of the transactional id reaches into the record set.
    good = b"\xff\xff" + struct.pack(">hii", 1, 1000, 1) + b"\x00\x01t" + struct.pack(">iii", 1, 0, 60 + len(secret))
    good += bytes(60) + secret
    damaged = b"\x01\xff" + good[2:]
    connection.send(request(0, 3, 2, good)).send(request(0, 3, 3, damaged)).send(produce(4, -1))
    data = pcap(connection.packets)
    for window in (None, 4096):
        found = {row["correlation_id"]: row for row in rows(data, window=window)}
        assert [(number, row["status"], row["acks"]) for number, row in found.items()] == [
            (2, "ok", 1),
            (3, "malformed", None),
            (4, "ok", -1),
        ]
        assert found[3]["transactional_id"] is None
        assert found[3]["error"] == "the body is not what version 3 says"
        assert "HUNTER" not in repr(found)
        of_frames = [row for batch in capture.read(io.BytesIO(data), window=window) for row in batch.to_pylist()]
        assert {row["correlation_id"]: row["status"] for row in of_frames if row["correlation_id"] in found} == {
            number: row["status"] for number, row in found.items()
        }
