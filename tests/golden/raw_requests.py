"""Requests in versions that no client sends any more, or not yet: written by kwire, answered by a real broker.

``sweep`` asks a broker what it supports and sends every API in every version of that range, one connection per API.
Where a plain default body would make the broker answer with next to nothing, ``BODIES`` says what to send instead. The
client_id of all of them is ``kwire-raw``, so that the table of the captures can tell them from real clients.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from capturing import Recording
from plain_socket import Connection

import kwire
from kwire import messages, records, schema

__all__ = ["sweep", "unsupported_versions"]

NAME = "kwire-raw"
TOPIC, GROUP = "raw", "raw-group"
STALE = -1


class Context:
    """What bodies refer to: the topic with its id, and the group's member as the broker named it."""

    def __init__(self, topic_id: Any) -> None:
        self.topic_id = topic_id
        self.member = ""
        self.generation = -1

    def topic(self, version: int, ids_since: int, key: str = "topic") -> dict[str, Any]:
        return {"topic_id": self.topic_id} if version >= ids_since else {key: TOPIC}


def _produce(version: int, context: Context) -> dict[str, Any]:
    magic = 0 if version < 2 else 1 if version == 2 else 2
    record = records.Record(
        key=b"raw", value=b"version %d" % version, timestamp=None if magic == 0 else 1_700_000_000_000
    )
    data = records.encode([record], magic=magic, compression="gzip")
    partition = {"index": 0, "records": data}
    return {
        "acks": 1,
        "timeout_ms": 5000,
        "topic_data": [{**context.topic(version, 13, "name"), "partition_data": [partition]}],
    }


def _fetch(version: int, context: Context) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 4096}
    return {
        "max_wait_ms": 100,
        "min_bytes": 1,
        "topics": [{**context.topic(version, 13), "partitions": [partition]}],
    }


def _list_offsets(version: int, context: Context) -> dict[str, Any]:
    partition: dict[str, Any] = {"partition_index": 0, "timestamp": -1}
    if version == 0:
        partition["max_num_offsets"] = 10
    return {"topics": [{"name": TOPIC, "partitions": [partition]}]}


def _metadata(version: int, context: Context) -> dict[str, Any]:
    return {"topics": [{"name": TOPIC}, {"name": "no-such-topic"}], "allow_auto_topic_creation": version < 4}


def _offset_commit(version: int, context: Context) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": version, "committed_metadata": f"version {version}"}
    body: dict[str, Any] = {
        "group_id": GROUP,
        "topics": [{**context.topic(version, 10, "name"), "partitions": [partition]}],
    }
    if version >= 1:
        body["generation_id_or_member_epoch"] = -1
    return body


def _offset_fetch(version: int, context: Context) -> dict[str, Any]:
    topic = {**context.topic(version, 10, "name"), "partition_indexes": [0]}
    if version < 8:
        return {"group_id": GROUP, "topics": [topic]}
    return {"groups": [{"group_id": GROUP, "topics": [topic]}]}


def _find_coordinator(version: int, context: Context) -> dict[str, Any]:
    return {"key": GROUP} if version < 4 else {"coordinator_keys": [GROUP, "other"]}


def _join(version: int, context: Context) -> dict[str, Any]:
    subscription = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", -1)
    protocol = {"name": "range", "metadata": subscription}
    body: dict[str, Any] = {"group_id": f"{GROUP}-{version}", "session_timeout_ms": 6000, "member_id": context.member}
    body |= {"protocol_type": "consumer", "protocols": [protocol]}
    return body | ({"rebalance_timeout_ms": 6000} if version >= 1 else {})


def _create_topics(version: int, context: Context) -> dict[str, Any]:
    topic = {"name": f"raw-created-{version}", "num_partitions": 1, "replication_factor": 1}
    return {"topics": [topic], "timeout_ms": 5000}


def _delete_topics(version: int, context: Context) -> dict[str, Any]:
    name = f"raw-created-{version}"
    return {"timeout_ms": 5000} | ({"topics": [{"name": name}]} if version >= 6 else {"topic_names": [name]})


def _leave(version: int, context: Context) -> dict[str, Any]:
    group = {"group_id": GROUP}
    return group | ({"member_id": "gone"} if version < 3 else {"members": [{"member_id": "gone"}]})


def _describe_configs(version: int, context: Context) -> dict[str, Any]:
    wanted = {"resource_type": 2, "resource_name": TOPIC, "configuration_keys": ["retention.ms", "cleanup.policy"]}
    return {"resources": [wanted], **({"include_synonyms": True} if version >= 1 else {})}


def _partitions(name: str = TOPIC) -> list[dict[str, Any]]:
    return [{"name": name, "partitions": [0]}]


def _epochs(version: int, context: Context) -> dict[str, Any]:
    return {"topics": [{"topic": TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}]}


def _delete_records(version: int, context: Context) -> dict[str, Any]:
    return {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 0}]}], "timeout_ms": 1000}


def _quorum(version: int, context: Context) -> dict[str, Any]:
    return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


def _fetch_snapshot(version: int, context: Context) -> dict[str, Any]:
    wanted = {"partition": 0, "current_leader_epoch": 1, "snapshot_id": {"end_offset": 0, "epoch": 0}}
    return {"max_bytes": 1024, "topics": [{"name": "__cluster_metadata", "partitions": [wanted]}]}


def _transactional(version: int, context: Context) -> dict[str, Any]:
    return {"transactional_id": f"raw-{version}", "transaction_timeout_ms": 10000}


def _add_partitions(version: int, context: Context) -> dict[str, Any]:
    topics = [{"name": TOPIC, "partitions": [0]}]
    if version < 4:
        return {
            "v3_and_below_transactional_id": "raw-1",
            "v3_and_below_producer_id": 1,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": topics,
        }
    # A broker never answers when there is no transaction in it.
    return {"transactions": [{"transactional_id": "raw-1", "producer_id": 1, "producer_epoch": 0, "topics": topics}]}


def _acl_filter(version: int, context: Context) -> dict[str, Any]:
    everything = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    return everything | ({"pattern_type_filter": 1} if version >= 1 else {})


def _nothing(version: int, context: Context) -> dict[str, Any]:
    return {}


BODIES: dict[str, Callable[[int, Context], dict[str, Any]]] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "OffsetCommit": _offset_commit,
    "OffsetFetch": _offset_fetch,
    "FindCoordinator": _find_coordinator,
    "JoinGroup": _join,
    "LeaveGroup": _leave,
    "SyncGroup": lambda version, context: {"group_id": GROUP, "generation_id": 1, "member_id": "gone"},
    "Heartbeat": lambda version, context: {"group_id": GROUP, "generation_id": 1, "member_id": "gone"},
    "DescribeGroups": lambda version, context: {"groups": [GROUP, "no-such-group"]},
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "DescribeConfigs": _describe_configs,
    "OffsetForLeaderEpoch": _epochs,
    "DeleteRecords": _delete_records,
    "InitProducerId": _transactional,
    "DescribeQuorum": _quorum,
    "AddPartitionsToTxn": _add_partitions,
    "DescribeAcls": _acl_filter,
    "FetchSnapshot": _fetch_snapshot,
    "DeleteGroups": lambda version, context: {"groups_names": [f"{GROUP}-{version}"]},
    "DescribeTransactions": lambda version, context: {"transactional_ids": ["raw-0", "no-such-id"]},
    "DescribeProducers": lambda version, context: {"topics": [{"name": TOPIC, "partition_indexes": [0]}]},
    "DescribeTopicPartitions": lambda version, context: {"topics": [{"name": TOPIC}]},
    "ElectLeaders": lambda version, context: {"topic_partitions": [{"topic": TOPIC, "partitions": [0]}]},
    "SaslHandshake": lambda version, context: {"mechanism": "PLAIN"},
    "ApiVersions": lambda version, context: (
        {"client_software_name": NAME, "client_software_version": "1"} if version >= 3 else {}
    ),
    # Brokers reject these from anyone but a controller or broker of the right epoch, which is what is wanted here.
    "LeaderAndIsr": lambda version, context: {"controller_id": 1, "controller_epoch": STALE},
    "StopReplica": lambda version, context: {"controller_id": 1, "controller_epoch": STALE},
    "UpdateMetadata": lambda version, context: {"controller_id": 1, "controller_epoch": STALE},
    "ControlledShutdown": lambda version, context: {"broker_id": 99},
    "UnregisterBroker": lambda version, context: {"broker_id": 99},
}


def sweep(recording: Recording, address: str, topic_id: Any, seen: set[tuple[int, int]]) -> None:
    """Send every API of a broker in every version that it announces and that is not in ``seen`` yet; adds to it.

    Each request has a connection of its own, since some leave a state behind or make the broker hang up.
    """
    context = Context(topic_id)
    recording.clients[NAME] = f"kwire {kwire.__version__}"
    with Connection(address) as connection:
        offered = connection.ask(messages.ApiVersionsRequest(), 0).api_keys
    for each in offered:
        request = schema.request(each.api_key)
        if request is None:
            continue
        for version in range(each.min_version, each.max_version + 1):
            if version not in request.versions:
                recording.note(NAME, "version without a schema", api_key=each.api_key, version=version)
                continue
            if (each.api_key, version) in seen:
                continue
            make = BODIES.get(request.name.removesuffix("Request"), _nothing)
            message: Any = getattr(messages, request.name)
            body = message.from_dict(make(version, context))
            try:
                with Connection(address, seconds=6.0) as connection:
                    got = connection.ask(body, version)
                seen.add((each.api_key, version))
            except (ConnectionError, TimeoutError) as error:
                # Telling: brokers hang up on what they cannot parse, and on versions they announce but do not take.
                problem = type(error).__name__
                recording.note(NAME, "no answer", api_key=each.api_key, version=version, error=problem)
                continue
            if request.name == "JoinGroupRequest" and version >= 4 and got.error_code == 79:  # MEMBER_ID_REQUIRED
                context.member = got.member_id
                body = message.from_dict(make(version, context))
                with Connection(address, seconds=8.0) as connection:
                    connection.ask(body, version)
                context.member = ""


def unsupported_versions(recording: Recording, address: str) -> None:
    """ApiVersions in a version from the future: the answer is version 0, error 35, with the ApiVersions row alone."""
    recording.clients[NAME] = f"kwire {kwire.__version__}"
    for version in (6, 99):
        with Connection(address) as connection:
            header = struct.pack(">hhih", 18, version, 7, len(NAME)) + NAME.encode() + b"\0"
            connection.send(header + b"\x0akwire-raw\x021\0")
            got = kwire.decode_response(connection.receive(), api_key=18, api_version=version)
            rows = [[row.api_key, row.min_version, row.max_version] for row in got.body.api_keys]
            recording.note(
                NAME,
                "unsupported ApiVersions",
                asked=version,
                read_as=got.api_version,
                error=got.body.error_code,
                rows=rows,
            )
            # The same connection goes on: the broker has not hung up.
            connection.ask(messages.ApiVersionsRequest(), 0)
