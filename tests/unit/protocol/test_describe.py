"""Messages for people: error codes by name, embedded group schemas decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.codec.redacting import SIZE
from kwire.codec.registry import message_class
from kwire.errors import DecodeError, EncodeError
from kwire.protocol.describe import Shown, decode_embedded, describe, described, encode_embedded, to_json, undescribe
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.schema.loader import Catalog

SUBSCRIPTION = bytes.fromhex("0001 00000001 0003 616263 ffffffff 00000000")


def join_group(metadata: bytes, protocol_type: str = "consumer") -> messages.JoinGroupRequest:
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    return messages.JoinGroupRequest(group_id="g", protocol_type=protocol_type, protocols=[protocol])


def test_error_codes_are_named_and_unknown_ones_stay_numbers() -> None:
    assert error_name(16) == "NOT_COORDINATOR"
    assert error_name(9999) is None
    assert ErrorCode.NOT_COORDINATOR.retriable
    assert not ErrorCode.UNKNOWN_SERVER_ERROR.retriable
    topics = [
        messages.MetadataResponse.MetadataResponseTopic(name=name, error_code=code)
        for name, code in (("a", 3), ("b", 0), ("c", 9999))
    ]
    shown = describe(messages.MetadataResponse(topics=topics), 1)
    assert [one["error_code"] for one in shown["topics"]] == ["UNKNOWN_TOPIC_OR_PARTITION", "NONE", 9999]


def test_errors_are_named_as_the_schema_that_replaced_a_message_says(tmp_path: Path) -> None:
    described = []
    # The built-in request has no error code, the replacements have one or not: no verdict may stand for another.
    describe(messages.HeartbeatRequest(), 0)
    for code in ("  error_code  int16\n", "", "  error_code  int16\n"):
        tmp_path.joinpath("mine.kwire").write_text(f"request Heartbeat key 12 versions 0\n  a  int8\n{code}", "utf-8")
        (replacement,) = Catalog().load_folder(tmp_path)
        made: Any = message_class(replacement)()
        if code:
            made.error_code = 35
        described.append(describe(made, 0))
    assert described == [{"a": 0, "error_code": "UNSUPPORTED_VERSION"}, {"a": 0}, described[0]]
    assert json.loads(to_json(made, 0)) == described[0]


def test_a_subscription_is_decoded_when_the_protocol_type_is_consumer() -> None:
    shown = describe(join_group(SUBSCRIPTION), 4)
    assert shown["protocols"][0]["metadata"] == {
        "version": 1,
        "topics": ["abc"],
        "user_data": None,
        "owned_partitions": [],
    }


def test_metadata_of_other_protocol_types_stays_bytes() -> None:
    assert describe(join_group(SUBSCRIPTION, "connect"), 4)["protocols"][0]["metadata"] == SUBSCRIPTION


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x00", b"\xff\xff" + SUBSCRIPTION[2:], b"arbitrary"])
def test_what_is_no_subscription_stays_bytes(data: bytes) -> None:
    assert describe(join_group(data), 4)["protocols"][0]["metadata"] == data


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\x00\x09" + SUBSCRIPTION[2:] + bytes.fromhex("00000007 ffff 99")
    found = decode_embedded("ConsumerProtocolSubscription", newer)
    assert (found["version"], found["generation_id"]) == (9, 7)
    with pytest.raises(DecodeError):
        decode_embedded("ConsumerProtocolSubscription", newer, exact=True)


def test_without_a_protocol_type_only_what_fits_exactly_is_taken_for_an_assignment() -> None:
    assignment = bytes.fromhex("0000 00000001 0001 74 00000001 00000005 ffffffff")
    shown = describe(messages.SyncGroupResponse(assignment=assignment), 2)
    assert shown["assignment"]["assigned_partitions"] == [{"topic": "t", "partitions": [5]}]
    shown = describe(messages.SyncGroupResponse(assignment=assignment + b"\x00"), 2)
    assert shown["assignment"] == assignment + b"\x00"


def test_what_was_described_can_be_read_back_from_json() -> None:
    for message, version in (
        (join_group(SUBSCRIPTION), 4),
        (join_group(b"arbitrary"), 4),
        (messages.MetadataResponse(topics=[messages.MetadataResponse.MetadataResponseTopic(error_code=3)]), 1),
    ):
        assert undescribe(type(message).__name__, json.loads(to_json(message, version))) == message


def test_names_and_versions_that_do_not_exist_are_encode_errors() -> None:
    with pytest.raises(EncodeError, match="NO_SUCH_ERROR"):
        undescribe("HeartbeatResponse", {"error_code": "NO_SUCH_ERROR"})
    with pytest.raises(EncodeError, match="version 77"):
        encode_embedded("ConsumerProtocolSubscription", {"version": 77})


def test_a_subscription_that_says_a_later_version_than_it_is_is_read_to_its_last_byte() -> None:
    """segmentio/kafka-go says version 1 and writes version 0."""
    plain = encode_embedded("ConsumerProtocolSubscription", {"version": 0, "topics": ["a", "b"], "user_data": b"u"})
    for version in (1, 2, 3, 77):
        said = version.to_bytes(2, "big") + plain[2:]
        for exact in (False, version <= 3):
            found = decode_embedded("ConsumerProtocolSubscription", said, exact=exact)
            assert found == {"version": version, "topics": ["a", "b"], "user_data": b"u"}
        for damaged in (said[:-1], said + b"!"):
            with pytest.raises(DecodeError):
                decode_embedded("ConsumerProtocolSubscription", damaged)
    # No other message is read so.
    assignment = encode_embedded(
        "ConsumerProtocolAssignment", {"version": 0, "assigned_partitions": [], "user_data": b""}
    )
    with pytest.raises(DecodeError):
        decode_embedded("ConsumerProtocolAssignment", b"\0\1" + assignment[2:-1])


def test_record_sets_within_structs_are_shown_by_their_size() -> None:
    kind = messages.ProduceRequest
    parts = [kind.PartitionProduceData(index=0, records=b"12345"), kind.PartitionProduceData(index=1, records=None)]
    body = kind(topic_data=[kind.TopicProduceData(name="a", partition_data=parts)])
    for typed in (False, True):
        made = described(body, 3, Shown(payloads=False, typed=typed))
        (topic,) = made["topic_data"]
        assert [one["records"] for one in topic["partition_data"]] == [{SIZE: 5}, None]
