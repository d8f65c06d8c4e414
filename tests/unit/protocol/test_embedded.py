"""What the members of a classic group tell each other: Connect's protocol, and the user data of assignors."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from body_texts import texts
from made_captures import exchange, read
from packets import pcap

import kwire
from kwire import messages
from kwire.errors import DecodeError, EncodeError
from kwire.kernels.engine import MACHINE, PYTHON, Engine, using
from kwire.log.internal import decode_record
from kwire.protocol.describe import describe, to_json, undescribe
from kwire.protocol.embedded import (
    ASSIGNMENT,
    SUBSCRIPTION,
    decode_embedded,
    encode_embedded,
    member_bytes,
    member_data,
)

GOLDEN = Path(__file__).parents[2] / "golden"
COOPERATIVE = {"schema": "CooperativeStickyUserData", "version": 0, "generation": 0}


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def ints(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


CONNECTORS = ints(1) + text("sink") + ints(2, -1, 0)
HEAD = struct.pack(">h", 0) + text("w-1") + text("http://w:8083/") + struct.pack(">q", 454)
ASSIGNED = {
    0: b"\0\0" + HEAD + CONNECTORS,
    1: b"\0\1" + HEAD + CONNECTORS + ints(0) + ints(300_000),
    2: b"\0\2" + HEAD + CONNECTORS + ints(-1) + ints(0),
}
"""An assignment of Connect, as ConnectProtocol and IncrementalCooperativeConnectProtocol write it, by its version."""
STATES = {
    0: b"\0\0" + text("http://w:8083/") + struct.pack(">q", 7),
    1: b"\0\1" + text("http://w:8083/") + struct.pack(">q", 7) + ints(-1),
    2: b"\0\2" + text("http://w:8083/") + struct.pack(">q", 7) + ints(len(ASSIGNED[2])) + ASSIGNED[2],
}

STICKY = ints(1) + text("orders") + ints(2, 0, 3)
TASK, NAMED = ints(0, 4), ints(0, 4) + ints(0)
HOST = text("h") + ints(9000)
PARTITION = text("orders") + ints(4)
NUMBERED = ints(1) + HOST + ints(1) + ints(0, 4)
STREAMS = {
    1: ints(1) + ints(1) + TASK + ints(1) + TASK + ints(1) + PARTITION,
    2: ints(2) + ints(1) + TASK + ints(0) + ints(1) + HOST + ints(1) + PARTITION,
    3: ints(3, 11) + ints(1) + TASK + ints(0) + ints(0),
    4: ints(4, 11) + ints(1) + TASK + ints(0) + ints(0) + ints(2),
    5: ints(5, 11) + ints(1) + TASK + ints(0) + ints(1, 0) + text("orders") + NUMBERED + ints(2),
    6: ints(6, 11) + ints(1) + TASK + ints(0) + ints(1, 0) + text("orders") + NUMBERED + ints(0) + ints(2),
    9: ints(9, 11) + ints(1) + TASK + ints(0) + ints(0) + ints(0) + ints(0) + ints(2) + struct.pack(">q", 5),
    11: ints(11, 11) + ints(1) + NAMED + ints(1) + NAMED + ints(0) + ints(0) * 3 + ints(1) + struct.pack(">q", 5),
}
"""AssignmentInfo of Kafka Streams, as its ``encode`` writes it, by its version."""


def with_user_data(place: str, data: bytes) -> bytes:
    fields = {"topics": ["orders"]} if place == SUBSCRIPTION else {"assigned_partitions": []}
    return encode_embedded(place, {"version": 0, "user_data": data, **fields})


@pytest.fixture(params=[PYTHON, MACHINE], ids=repr)
def engine(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("version", ASSIGNED)
def test_connectors_and_tasks_of_an_assignment_of_connect(version: int) -> None:
    body = messages.SyncGroupResponse(protocol_type="connect", protocol_name="sessioned", assignment=ASSIGNED[version])
    found = describe(body, 5)["assignment"]
    assert found["assignment"] == [{"connector": "sink", "tasks": [-1, 0]}]
    assert (found["version"], found["leader"], found["config_offset"]) == (version, "w-1", 454)
    assert found.get("delay") == {0: None, 1: 300_000, 2: 0}[version]
    assert undescribe("SyncGroupResponse", json.loads(to_json(body, 5))) == body


@pytest.mark.parametrize("version", STATES)
def test_the_state_of_a_worker_holds_what_it_runs(version: int) -> None:
    found = member_data(SUBSCRIPTION, STATES[version], "connect", "sessioned")
    assert isinstance(found, dict)
    assert (found["url"], found["config_offset"]) == ("http://w:8083/", 7)
    if version == 2:
        assert found["allocation"] == member_data(ASSIGNMENT, ASSIGNED[2], "connect", "sessioned")
    else:
        assert found.get("allocation") is None
    assert member_bytes(SUBSCRIPTION, found) == STATES[version]


def test_without_a_protocol_type_what_fits_as_an_assignment_of_connect_is_one() -> None:
    assert describe(messages.SyncGroupResponse(assignment=ASSIGNED[1]), 2)["assignment"]["leader"] == "w-1"
    cut = ASSIGNED[1][:-1]
    assert describe(messages.SyncGroupResponse(assignment=cut), 2)["assignment"] == cut
    assert member_data(ASSIGNMENT, b"\0\3" + ASSIGNED[1][2:], "connect", None) == b"\0\3" + ASSIGNED[1][2:]
    assert member_data(ASSIGNMENT, ASSIGNED[1], "other", None) == ASSIGNED[1]


@pytest.mark.parametrize(
    ("assignor", "data", "expected"),
    [
        ("sticky", STICKY, {"schema": "StickyUserData", "version": 0}),
        ("sticky", STICKY + ints(7), {"schema": "StickyUserData", "version": 1, "generation": 7}),
        ("cooperative-sticky", ints(7), {"schema": "CooperativeStickyUserData", "version": 0, "generation": 7}),
    ],
)
def test_user_data_of_sticky_assignors(assignor: str, data: bytes, expected: dict[str, Any]) -> None:
    whole = with_user_data(SUBSCRIPTION, data)
    found = member_data(SUBSCRIPTION, whole, "consumer", assignor)
    assert isinstance(found, dict)
    if assignor == "sticky":
        expected = {**expected, "previous_assignment": [{"topic": "orders", "partitions": [0, 3]}]}
    assert found["user_data"] == expected
    assert member_bytes(SUBSCRIPTION, found) == whole
    # Of another assignor nothing is known, and what does not fit stays bytes.
    for other, left in (("range", data), (None, data), (assignor, data + b"!")):
        some = member_data(SUBSCRIPTION, with_user_data(SUBSCRIPTION, left), "consumer", other)
        assert isinstance(some, dict)
        assert some["user_data"] == left


@pytest.mark.parametrize("version", STREAMS)
def test_user_data_of_streams_assignments(version: int) -> None:
    whole = with_user_data(ASSIGNMENT, STREAMS[version])
    found = member_data(ASSIGNMENT, whole, "consumer", "stream")
    assert isinstance(found, dict)
    data = found["user_data"]
    assert (data["schema"], data["version"]) == ("AssignmentInfoData", version)
    assert data["active_tasks"][0] | {"named_topology": []} == {"subtopology": 0, "partition": 4, "named_topology": []}
    assert data.get("assignor_error") == {4: 2, 5: 2, 6: 2, 9: 2, 11: 1}.get(version)
    assert data.get("topics", []) == ([{"number": 0, "name": "orders"}] if version in (5, 6) else [])
    assert member_bytes(ASSIGNMENT, found) == whole


def test_user_data_of_streams_subscriptions() -> None:
    data = ints(11, 11) + bytes(16) + ints(0) + ints(0) + b"\1" + ints(1) + ints(0)
    whole = with_user_data(SUBSCRIPTION, data)
    found = member_data(SUBSCRIPTION, whole, "consumer", "stream")
    assert isinstance(found, dict)
    shown = found["user_data"]
    assert (shown["latest_supported_version"], shown["unique_field"], shown["assignor_error"]) == (11, 1, 1)
    assert member_bytes(SUBSCRIPTION, found) == whole
    newer = ints(12) + data[4:]
    some = member_data(SUBSCRIPTION, with_user_data(SUBSCRIPTION, newer), "consumer", "stream")
    assert isinstance(some, dict)
    assert some["user_data"] == newer


def test_what_names_no_user_data_cannot_be_encoded() -> None:
    for wrong in ({"schema": "FetchRequest", "version": 0}, {"schema": "StickyUserData", "version": 9}):
        with pytest.raises(EncodeError):
            member_bytes(SUBSCRIPTION, {"version": 0, "topics": [], "user_data": wrong})


def join(protocol_type: str, *protocols: tuple[str, bytes]) -> tuple[Any, int]:
    offered = [{"name": name, "metadata": data} for name, data in protocols]
    values = {"group_id": "g", "protocol_type": protocol_type, "protocols": offered}
    return messages.JoinGroupRequest.from_dict(values), 4


FRAMES = [
    join("connect", ("sessioned", STATES[2]), ("compatible", STATES[1]), ("default", STATES[0])),
    join("consumer", ("sticky", with_user_data(SUBSCRIPTION, STICKY)), ("range", with_user_data(SUBSCRIPTION, b"u"))),
    join("consumer", ("range", with_user_data(SUBSCRIPTION, b""))),
    join("other", ("x", b"y")),
    (
        messages.SyncGroupResponse(
            protocol_type="consumer", protocol_name="stream", assignment=with_user_data(ASSIGNMENT, STREAMS[6])
        ),
        5,
    ),
    (messages.SyncGroupResponse(protocol_type="connect", protocol_name="eager", assignment=ASSIGNED[0]), 5),
    (messages.SyncGroupResponse(assignment=ASSIGNED[1]), 2),
]


def test_the_kernel_leaves_to_objects_what_depends_on_names(engine: Engine) -> None:
    found = texts(engine, *FRAMES)
    assert [one is None for one in found] == [True, True, False, False, True, True, True]
    assert [json.loads(found[one] or "") for one in (2, 3)] == [json.loads(to_json(*FRAMES[one])) for one in (2, 3)]


def test_tables_show_what_describe_shows(engine: Engine) -> None:
    connection = exchange()
    for number, (body, version) in enumerate(FRAMES, 2):
        if body.SCHEMA.kind == "request":
            frame = kwire.encode_request(body, api_version=version, correlation_id=number, client_id="c")
            connection.send(frame)
        else:
            asked = messages.SyncGroupRequest(group_id="g")
            connection.send(
                kwire.encode_request(asked, api_version=version, correlation_id=number, client_id="c")
            ).answer(kwire.encode_response(body, api_version=version, correlation_id=number))
    with using(engine):
        rows = read(pcap(connection.packets), "messages", columns=["correlation_id", "direction", "body"])
    found = {(row["correlation_id"], row["direction"]): json.loads(row["body"]) for row in rows}
    for number, (body, version) in enumerate(FRAMES, 2):
        assert found[number, body.SCHEMA.kind] == json.loads(to_json(body, version))


@pytest.mark.parametrize(
    ("protocol_type", "protocol", "subscription", "assignment"),
    [
        ("connect", "sessioned", STATES[1], ASSIGNED[1]),
        ("consumer", "sticky", with_user_data(SUBSCRIPTION, STICKY), with_user_data(ASSIGNMENT, b"")),
        ("consumer", "stream", with_user_data(SUBSCRIPTION, b"?"), with_user_data(ASSIGNMENT, STREAMS[4])),
    ],
)
def test_members_of_a_group_in_consumer_offsets(
    protocol_type: str, protocol: str, subscription: bytes, assignment: bytes
) -> None:
    member = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "h",
        "session_timeout": 1,
        "subscription": subscription,
        "assignment": assignment,
    }
    value = {"protocol_type": protocol_type, "generation": 1, "protocol": protocol, "leader": "m", "members": [member]}
    body = encode_embedded("GroupMetadataValue", {"version": 0, **value})
    found = decode_record("__consumer_offsets", b"\0\2" + text("g"), body)
    assert found is not None
    (shown,) = (found[2] or {})["members"]
    assert shown["subscription"] == member_data(SUBSCRIPTION, subscription, protocol_type, protocol)
    assert shown["assignment"] == member_data(ASSIGNMENT, assignment, protocol_type, protocol)
    assert isinstance(shown["assignment"], dict)


def test_user_data_that_a_java_client_wrote() -> None:
    """Consumers of Kafka 4.3 with ``cooperative-sticky`` behind ``range``."""
    data = (GOLDEN / "kafka-4.3-kraft-java" / "clients.pcap").read_bytes()
    with using(PYTHON):
        rows = read(data, "messages", columns=["body"], apis=["JoinGroup"])
    offered = [one for row in rows for one in json.loads(row["body"]).get("protocols", [])]
    found = [one["metadata"]["user_data"] for one in offered if one["name"] == "cooperative-sticky"]
    assert found
    assert all(one | {"generation": 0} == COOPERATIVE for one in found)


def test_what_follows_an_embedded_message_is_counted() -> None:
    data = encode_embedded(SUBSCRIPTION, {"version": 1, "topics": ["orders"]})
    assert decode_embedded(SUBSCRIPTION, data, exact=True)["topics"] == ["orders"]
    assert decode_embedded(SUBSCRIPTION, data + b"xyz")["topics"] == ["orders"]
    with pytest.raises(DecodeError, match="byte 22: 30 bytes after the end of the message"):
        decode_embedded(SUBSCRIPTION, data + bytes(30), exact=True)
