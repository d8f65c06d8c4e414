"""Records of Kafka's own topics."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire import log, schema
from kwire.codec import registry
from kwire.errors import DecodeError
from kwire.log import internal
from kwire.protocol.describe import encode_embedded
from kwire.records import Record, control_key, encode

pytestmark = pytest.mark.usefixtures("engine")


def body(kind: str, number: int, /, **values: Any) -> bytes:
    message = schema.message(kind)
    return registry.codec(message, number).encode(registry.message_class(message)(**values))


def test_records_of_consumer_offsets_are_decoded() -> None:
    key = b"\0\1" + body("OffsetCommitKey", 0, group="g", topic="t", partition=3)
    value = encode_embedded(
        "OffsetCommitValue", {"version": 3, "offset": 42, "leader_epoch": 7, "metadata": "", "commit_timestamp": 5}
    )
    name, made_key, made_value = internal.decode_record("__consumer_offsets", key, value) or ("", None, None)
    assert name == "OffsetCommit"
    assert made_key == {"group": "g", "topic": "t", "partition": 3}
    assert made_value is not None
    assert (made_value["version"], made_value["offset"], made_value["leader_epoch"]) == (3, 42, 7)
    assert internal.decode_record("__consumer_offsets", key, None) == (name, made_key, None)
    assert internal.decode_record("__consumer_offsets", b"\x7f\0", value) is None
    assert internal.decode_record("something else", key, value) is None


def test_records_of_the_transaction_and_share_topics_are_decoded() -> None:
    found = internal.decode_record(
        "__transaction_state", b"\0\0" + body("TransactionLogKey", 0, transactional_id="tx"), None
    )
    assert found == ("TransactionLog", {"transactional_id": "tx"}, None)
    key = b"\0\1" + body("ShareUpdateKey", 0, group_id="g", partition=2)
    value = b"\0\0" + body("ShareUpdateValue", 0)
    name, made_key, made_value = internal.decode_record("__share_group_state", key, value) or ("", None, None)
    assert (name, (made_key or {})["group_id"]) == ("ShareUpdate", "g")
    assert made_value is not None


def test_records_of_remote_log_metadata_are_decoded() -> None:
    for key, name in enumerate(
        (
            "RemoteLogSegmentMetadataRecord",
            "RemoteLogSegmentMetadataUpdateRecord",
            "RemotePartitionDeleteMetadataRecord",
            "RemoteLogSegmentMetadataSnapshotRecord",
        )
    ):
        message = schema.message(name)
        value = bytes([key, 0]) + body(name, 0)
        found = internal.decode_record("__remote_log_metadata", None, value)
        assert found == (name, None, {"version": 0, **registry.message_class(message)().to_dict(0)})
        with pytest.raises(DecodeError):
            internal.decode_record("__remote_log_metadata", None, value[:-1])
        with pytest.raises(DecodeError):
            internal.decode_record("__remote_log_metadata", None, bytes([key, 99]) + value[2:])
    for short in (b"", b"\0", b"\x80", b"\0\xff\xff\xff\xff\xff"):
        with pytest.raises(DecodeError, match="too few for a type and a version"):
            internal.decode_record("__remote_log_metadata", None, short)
    assert internal.decode_record("__remote_log_metadata", None, b"\x63\0") is None
    assert internal.decode_record("__remote_log_metadata", None, None) is None


def test_records_of_cluster_metadata_are_decoded() -> None:
    value = b"\1\x0c\0" + body("FeatureLevelRecord", 0, name="metadata.version", feature_level=20)
    assert internal.decode_record("__cluster_metadata", None, value) == (
        "FeatureLevelRecord",
        None,
        {"version": 0, "name": "metadata.version", "feature_level": 20},
    )
    assert internal.decode_record("__cluster_metadata", None, b"\1\xff\x7f\0") is None


@pytest.mark.parametrize("topic", internal.TOPICS)
def test_bytes_that_are_something_else_are_nulls(topic: str) -> None:
    some = random.Random(1)
    rows = [
        Record(some.choice((None, some.randbytes(some.randrange(9)), b"\0\1\0\1g")), some.randbytes(some.randrange(9)))
        for _ in range(300)
    ]
    for row in rows:
        row.timestamp = 1
    segment = log.Segment(Path("x"), topic=topic)
    found = pa.Table.from_batches(log.read(io.BytesIO(encode(rows))))
    at = found.schema.get_field_index("topic")
    batch = found.set_column(at, "topic", pa.array([segment.topic] * len(rows))).combine_chunks().to_batches()[0]
    made = internal.decoded(batch)
    assert made.schema.names[-3:] == ["record_type", "decoded_key", "decoded_value"]
    assert made.num_rows == 300


def test_control_records_are_decoded_in_any_topic() -> None:
    marker = encode(
        [Record(control_key("commit"), b"\0\0\0\0\0\x05", timestamp=1)], is_control=True, is_transactional=True
    )
    leader = encode(
        [Record(control_key("leader_change"), body("LeaderChangeMessage", 1, version=1, leader_id=4), timestamp=1)],
        is_control=True,
    )
    unknown = encode([Record(b"\0\0\0\x63", b"?", timestamp=1)], is_control=True)
    (batch,) = log.read(io.BytesIO(marker + leader + unknown))
    rows = internal.decoded(batch).to_pylist()
    assert [one["record_type"] for one in rows] == ["commit", "leader_change", None]
    assert json.loads(rows[0]["decoded_value"]) == {"version": 0, "coordinator_epoch": 5}
    assert json.loads(rows[0]["decoded_key"]) == {"version": 0, "type": 1}
    assert json.loads(rows[1]["decoded_value"])["leader_id"] == 4


def test_control_records_say_what_they_can_and_no_more() -> None:
    key = control_key("commit")
    found = internal.decode_control(key, None)
    assert found is not None
    assert (found[0], found[1]["type"], found[2]) == ("commit", 1, None)
    for value in (b"", b"\0"):
        with pytest.raises(DecodeError):
            internal.decode_control(control_key("leader_change"), value)
    for nothing in (None, b"", b"\0\0", b"\0\0\x7f\x7f"):
        assert internal.decode_control(nothing, b"\0\0") is None
