"""What stands beside the values of records of ``__cluster_metadata``: keys and headers, which Kafka does not write."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from canaries import canary, found
from packets import Connection, pcap, produce_answer

from kwire import capture, log, messages, tables
from kwire.codec import registry
from kwire.log.internal import of_metadata
from kwire.records import Record, encode
from kwire.records.arrow_types import HEADERS

NAMES = ("record key", "header name", "header value", "control key", "control header")
VALUE = b"\x01\x14\x00\x00"
"""A NoOpRecord."""


def one_set() -> bytes:
    """A record with a key and headers, one of a control batch with both, one with the key of such, a plain one."""
    headers = [(canary("header name"), canary("header value").encode()), ("a", None)]
    plain = encode([Record(canary("record key").encode(), VALUE, headers=headers), Record(None, VALUE)])
    control = [
        Record(canary("control key").encode(), b"\0\0", headers=[("a", canary("control header").encode())]),
        Record(b"\0\0\0\2", b"\0\0" + b"\0" * 8),
    ]
    return plain + encode(control, is_control=True)


def rows_of_segment(deep: bool, **options: Any) -> list[dict[str, Any]]:
    table: Any = tables.table("records", tables.LOG)
    read = table.deep.read if deep else log.read
    source = io.BytesIO(one_set())
    name = "__cluster_metadata-0/00000000000000000000.log"
    return [row for batch in read(source, name=name, **options) for row in batch.to_pylist()]


def rows_of_capture(**options: Any) -> list[dict[str, Any]]:
    kind = messages.ProduceRequest
    data = kind.PartitionProduceData(index=0, records=one_set())
    topic = kind.TopicProduceData(name="__cluster_metadata", partition_data=[data])
    body = registry.codec(kind.SCHEMA, 3).encode(kind(acks=1, timeout_ms=1, topic_data=[topic]))
    frame = b"\0\0\0\3\0\0\0\1\0\4test" + body
    packets = Connection().open().send(frame).answer(produce_answer(1)).close().packets
    return [row for batch in capture.read(io.BytesIO(pcap(packets)), "records", **options) for row in batch.to_pylist()]


@pytest.mark.parametrize("columns", [None, ["key"], ["headers"], ["key", "is_control", "headers", "value"]])
def test_keys_and_headers_are_hidden_unless_asked_for(columns: list[str] | None):
    for rows in (
        rows_of_segment(False, columns=columns),
        rows_of_segment(True, columns=columns),
        rows_of_capture(columns=columns),
    ):
        assert not found(repr(rows), NAMES)
        assert len(rows) == 4
        if "key" in rows[0]:
            # What Kafka writes stays.
            assert [row["key"] for row in rows] == [b'{"redacted": 18}', None, b'{"redacted": 18}', b"\0\0\0\2"]
        if "headers" in rows[0]:
            assert [row["headers"] for row in rows] == [
                [{"key": "redacted", "value": b'{"redacted": 37}'}],
                [],
                [{"key": "redacted", "value": b'{"redacted": 19}'}],
                [],
            ]
        if "value" in rows[0]:
            assert [row["value"] for row in rows[:2]] == [VALUE, VALUE]
    if columns is None or len(columns) > 2:
        for rows in (
            rows_of_segment(False, columns=columns, secrets=True),
            rows_of_segment(True, columns=columns, secrets=True),
            rows_of_capture(columns=columns, secrets=True),
        ):
            assert found(repr(rows), NAMES) == set(NAMES)


def test_only_the_rows_of_the_topic_are_changed():
    headers = pa.array([[{"key": "a", "value": b"bc"}], None, [{"key": "d", "value": None}] * 2, []], HEADERS)
    key = pa.array([b"k", None, b"kk", b""], pa.binary())
    rows, control = np.array([False, True, True, True]), np.zeros(4, bool)
    # Slices have offsets.
    for cut in (0, 1):
        made = of_metadata({"key": key[cut:], "headers": headers[cut:]}, rows[cut:], control[cut:])
        for one in made.values():
            one.validate(full=True)
        assert made["key"].to_pylist() == [b"k", None, b'{"redacted": 2}', b""][cut:]
        hidden = [{"key": "redacted", "value": b'{"redacted": 2}'}]
        assert made["headers"].to_pylist() == [[{"key": "a", "value": b"bc"}], None, hidden, []][cut:]
        assert made["headers"].type == HEADERS
