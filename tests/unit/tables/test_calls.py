"""The table ``calls``: what messages say of themselves is what their objects say."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from packets import Connection, metadata, metadata_answer, pcap, produce, request
from valid import valid

from kwire import capture
from kwire.capture.reading import Reading
from kwire.errors import KwireError
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
