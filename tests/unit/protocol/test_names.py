"""Names of the time: both are accepted, and those of a release shown."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from kwire import messages, protocol, schema, versions
from kwire.codec import registry
from kwire.errors import EncodeError, UnsupportedVersionError
from kwire.protocol import connection, names
from kwire.protocol.error_codes import ErrorCode
from kwire.schema import model

sys.path.insert(0, str(Path(__file__).parents[2] / "kafka"))

from messages_of_kafka import Maker

DOCS = (Path(__file__).parents[3] / "docs" / "reference" / "names.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("code", "former", "last", "first"),
    [
        (-1, "UNKNOWN", "0.11.0", "1.0"),
        (6, "NOT_LEADER_FOR_PARTITION", "2.5", "2.6"),
        (14, "GROUP_LOAD_IN_PROGRESS", "0.10.2", "0.11.0"),
        (15, "GROUP_COORDINATOR_NOT_AVAILABLE", "0.10.2", "0.11.0"),
        (16, "NOT_COORDINATOR_FOR_GROUP", "0.10.2.2", "0.11.0"),
    ],
)
def test_error_codes_by_their_former_names(code: int, former: str, last: str, first: str) -> None:
    assert names.error_code(former) == code
    assert names.error_name(code, last) == names.error_name(code, "0.10.1") == former
    today = ErrorCode(code).name
    assert names.error_name(code, first) == names.error_name(code) == today
    assert names.error_code(today) == code


def test_what_was_never_renamed_has_its_name() -> None:
    assert names.error_name(3, "0.10.1") == names.error_name(3) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert names.error_name(9999, "0.10.1") is None
    with pytest.raises(UnsupportedVersionError, match="no error code 'NOPE'"):
        names.error_code("NOPE")
    with pytest.raises(UnsupportedVersionError, match=r"release '0\.7'"):
        names.error_name(6, "0.7")


@pytest.mark.parametrize(
    ("code", "release", "before", "now"),
    [(1, "0.9.0", True, False), (9, "2.6", False, True), (46, "1.0", True, False), (51, "3.3", False, True)],
)
def test_what_became_retriable_and_what_ceased_to_be(code: int, release: str, before: bool, now: bool) -> None:
    known = versions.releases()
    assert names.retriable(code, known[known.index(release) - 1]) is before
    assert names.retriable(code, release) is names.retriable(code) is now is ErrorCode(code).retriable


def test_retriable_of_what_did_not_change() -> None:
    assert names.retriable(6, "0.10.1") is names.retriable(6) is True
    assert names.retriable(10, "0.10.1") is names.retriable(9999) is False


@pytest.mark.parametrize(
    ("key", "release", "name"),
    [
        (2, "0.10.1", "Offsets"),
        (2, "1.0", "ListOffsets"),
        (10, "0.8.2", "ConsumerMetadata"),
        (10, "0.10.1", "GroupCoordinator"),
        (10, "0.11.0", "FindCoordinator"),
        (43, "2.3", "ElectPreferredLeaders"),
        (56, "3.1", "AlterIsr"),
        (74, "4.0", "ListClientMetricsResources"),
        (1, "0.8.0", "Fetch"),
    ],
)
def test_apis_by_their_former_names(key: int, release: str, name: str) -> None:
    assert names.api_name(key, release) == name
    assert names.api_key(name) == names.api_key(schema.api_keys()[key]) == key
    assert names.api_name(key) == schema.api_keys()[key]


def test_unknown_apis() -> None:
    assert names.api_name(9999, "0.10.1") is None
    with pytest.raises(UnsupportedVersionError):
        names.api_key("Nope")


def test_a_fetch_response_as_0_10_1_has_it() -> None:
    kind = messages.FetchResponse
    part = kind.PartitionData(partition_index=4, high_watermark=9, records=b"r")
    body = kind(responses=[kind.FetchableTopicResponse(topic="t", partitions=[part])])
    shown = names.to_dict(body, 2)
    (topic,) = shown["responses"]
    (partition,) = topic["partition_responses"]
    assert (partition["partition"], partition["record_set"]) == (4, b"r")
    assert names.field_names("FetchResponse")["responses.partitions.records"] == "record_set"
    assert names.field_names("VoteRequest") == {}


def test_every_layout_of_0_10_1_goes_there_and_back() -> None:
    checked = 0
    for key, served in versions.accepted("0.10.1").items():
        for message in (schema.request(key), schema.response(key)):
            assert message is not None
            for version in served:
                made = Maker(message, random.Random(f"{message.name} {version}")).struct(model.layout(message, version))
                shown = names.to_dict(made, version)
                cls = registry.message_class(message)
                assert names.from_dict(cls, shown) == made
                assert names.from_dict(cls, made.to_dict(version)) == made
                checked += 1
    assert checked > 60


def test_what_cannot_be_shown_or_accepted() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"0\.10\.1 has versions 0-3, not 4"):
        names.to_dict(messages.FetchRequest(), 4)
    with pytest.raises(UnsupportedVersionError, match="has versions none"):
        names.to_dict(messages.VoteRequest(), 0)
    with pytest.raises(EncodeError, match="given as 'timeout' and as 'timeout_ms'"):
        names.from_dict(messages.ProduceRequest, {"timeout_ms": 1, "timeout": 2})
    with pytest.raises(EncodeError):
        names.from_dict(messages.ProduceRequest, {"nope": 1})


def test_the_table_of_the_docs_has_every_former_name() -> None:
    for code, (former, since) in names.FORMER_ERROR_NAMES.items():
        assert f"| {int(code)} | `{former}` | `{code.name}` | {since} |" in DOCS
    for code, (_, since) in names.RETRIABLE_CHANGED.items():
        assert f"`{code.name}`" in DOCS
        assert since in DOCS


SPELT_OTHERWISE = {
    -1: "UNKNOWN_SERVER_ERROR",
    0: "NONE",
    2: "CORRUPT_MESSAGE",
    4: "INVALID_FETCH_SIZE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    40: "INVALID_CONFIG",
    56: "KAFKA_STORAGE_ERROR",
    106: "FETCH_SESSION_TOPIC_ID_ERROR",
}
"""Errors whose classes in kafka-python have other names than Kafka has."""


def test_error_codes_are_those_that_another_client_knows() -> None:
    errors = pytest.importorskip("kafka.errors")
    known = {code: one.__name__.removesuffix("Error") for code, one in errors.kafka_errors.items() if code is not None}
    assert len(known) > 40
    for code, name in known.items():
        spelt = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
        assert ErrorCode(code).name == SPELT_OTHERWISE.get(code, spelt)


def test_codes_of_errors_are_counted_without_a_hole_or_a_second_name() -> None:
    assert [one.value for one in ErrorCode.__members__.values()] == list(range(-1, len(ErrorCode) - 1))


def test_the_package_gives_a_connection_and_nothing_else_late() -> None:
    assert protocol.Connection is connection.Connection
    with pytest.raises(AttributeError, match=r"module 'kwire\.protocol' has no attribute 'Connections'"):
        protocol.Connections  # noqa: B018
