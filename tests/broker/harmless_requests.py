"""One harmless, well-formed request for every API, as data: what to ask a real broker so that it has to answer.

``BODIES`` maps the name of an API to a function that returns the fields of a request, for a ``Case``: one version of
the API on one listener. Rules:

- Fields are those of all versions together; ``present`` leaves out what a version does not have. So a request names a
  topic and its id, and each version takes what it knows.
- What an answer worth reading needs beforehand (a topic to delete, a member of the group, a transaction) is made in
  the same function with ``Case.prepare``, on the same connection, in the newest version that the listener has.
- Nothing is asked that changes more than the topics, groups and ids that the requests name themselves. What could
  do harm between brokers and controllers carries an epoch that is over, an id that nobody has, or the id of another
  cluster, and is refused for that: an answer like any other.
"""

from __future__ import annotations

import hashlib
import struct
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import kwire
from kwire import messages, records, schema
from kwire.codec import registry
from kwire.schema import model

__all__ = ["BODIES", "METADATA_TOPIC", "METADATA_TOPIC_ID", "TOPIC", "Case", "Fields", "present"]

Fields = dict[str, Any]

TOPIC = "asked"
"""The topic that every listener has, with one partition."""
METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = uuid.UUID(int=1)

CREATED = 1_700_000_000_000
SETTLE_SECONDS = 5.0
STALE_EPOCH = 0
NOBODY = 99
"""The id of a broker and controller that does not exist."""
OTHER_CLUSTER = "another-cluster-id-x"
TOPIC_RESOURCE, GROUP_COORDINATOR, SHARE_COORDINATOR, LITERAL = 2, 0, 2, 3
READ, ALLOW, ANY = 3, 3, 1
MEMBER_ID_REQUIRED = 79


class Case(Protocol):
    """One version of one API on one listener, as the functions here see it."""

    version: int
    newest: bool
    """Whether the release is 4 or later."""
    zookeeper: bool
    controller: bool
    """Whether this is the listener that controllers have among themselves."""
    node: int
    """The id of the node that is asked."""
    topic_id: uuid.UUID
    data_folder: str
    features: list[Fields]
    """What the node supports: name, lowest and highest level."""

    def unique(self, prefix: str) -> str:
        """A name that no other case has."""
        ...

    def prepare(self, api: str, fields: Mapping[str, Any], version: int | None = None) -> Any:
        """The answer to another request; in the newest version of the listener when none is given."""
        ...

    def authenticate(self) -> None:
        """Log this connection in, on a listener that asks for it."""
        ...

    def leader_epoch(self) -> int:
        """The epoch of the KRaft quorum."""
        ...


def present(message: model.Message, version: int, fields: Mapping[str, Any]) -> Fields:
    """``fields`` without those that ``version`` of ``message`` does not have, at any depth."""
    return _present(model.layout(message, version), fields)


def _present(layout: model.StructLayout, fields: Mapping[str, Any]) -> Fields:
    known = {one.name: one for one in (*layout.fields, *layout.tagged)}
    unknown = set(fields) - set(known) - {one.name for one in layout.absent}
    if unknown:
        raise ValueError(f"{layout.name} has no field {', '.join(sorted(unknown))} in any version")
    return {name: _value(known[name].type, value) for name, value in fields.items() if name in known}


def _value(type_: model.TypeLayout, value: Any) -> Any:
    if isinstance(type_, model.StructLayout) and value is not None:
        return _present(type_, value)
    if isinstance(type_, model.ArrayLayout) and value is not None:
        return [_value(type_.element, one) for one in value]
    return value


# -- records -------------------------------------------------------------------------------------------------------


def produce(case: Case) -> Fields:
    magic = 0 if case.version < 2 else 1 if case.version == 2 else 2
    record = records.Record(key=b"asked", value=b"%d" % case.version, timestamp=CREATED if magic else None)
    partition = {"index": 0, "records": records.encode([record], magic=magic)}
    topic = {"name": TOPIC, "topic_id": case.topic_id, "partition_data": [partition]}
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [topic]}


def fetch(case: Case) -> Fields:
    """The test topic from a client; the metadata log from an observer that does not exist."""
    if case.controller:
        partition = {
            "partition": 0,
            "current_leader_epoch": case.leader_epoch(),
            "fetch_offset": 0,
            "last_fetched_epoch": 0,
            "partition_max_bytes": 4096,
        }
        topic = {"topic": METADATA_TOPIC, "topic_id": METADATA_TOPIC_ID, "partitions": [partition]}
        replica = {"replica_id": NOBODY, "replica_epoch": -1}
        return {
            "replica_id": NOBODY,
            "replica_state": replica,
            "max_wait_ms": 0,
            "session_epoch": -1,
            "topics": [topic],
        }
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 4096}
    topic = {"topic": TOPIC, "topic_id": case.topic_id, "partitions": [partition]}
    return {"max_wait_ms": 100, "min_bytes": 1, "session_epoch": -1, "topics": [topic]}


def list_offsets(case: Case) -> Fields:
    partition = {"partition_index": 0, "timestamp": -1, "max_num_offsets": 10}
    return {
        "replica_id": -1,
        "topics": [{"name": TOPIC, "partitions": [partition]}],
        "timeout_ms": 5000,
    }


def delete_records(case: Case) -> Fields:
    return {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": 0}]}], "timeout_ms": 5000}


def offset_for_leader_epoch(case: Case) -> Fields:
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    return {"replica_id": -1, "topics": [{"topic": TOPIC, "partitions": [partition]}]}


def describe_producers(case: Case) -> Fields:
    return {"topics": [{"name": TOPIC, "partition_indexes": [0]}]}


# -- topics, brokers, configuration ------------------------------------------------------------------------------


def metadata(case: Case) -> Fields:
    return (
        {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
        if case.version >= 4
        else {"topics": [{"name": TOPIC}]}
    )


def describe_topic_partitions(case: Case) -> Fields:
    return {"topics": [{"name": TOPIC}]}


def _new_topic(name: str) -> Fields:
    return {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 5000}


def _topic_made(case: Case, prefix: str) -> str:
    name = case.unique(prefix)
    case.prepare("CreateTopics", _new_topic(name))
    return name


def create_topics(case: Case) -> Fields:
    return _new_topic(case.unique("created"))


def delete_topics(case: Case) -> Fields:
    name = _topic_made(case, "deleted")
    return {"topics": [{"name": name}], "topic_names": [name], "timeout_ms": 5000}


def create_partitions(case: Case) -> Fields:
    name = _topic_made(case, "widened")
    return {"topics": [{"name": name, "count": 2, "assignments": None}], "timeout_ms": 5000}


def elect_leaders(case: Case) -> Fields:
    return {"election_type": 0, "topic_partitions": [{"topic": TOPIC, "partitions": [0]}], "timeout_ms": 5000}


def alter_partition_reassignments(case: Case) -> Fields:
    partition = {"partition_index": 0, "replicas": [case.node]}
    return {"timeout_ms": 5000, "topics": [{"name": TOPIC, "partitions": [partition]}]}


def list_partition_reassignments(case: Case) -> Fields:
    return {"timeout_ms": 5000, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}


def describe_cluster(case: Case) -> Fields:
    # Controllers answer for controllers only (KIP-919), and v0 cannot ask for them.
    return {"endpoint_type": 2 if case.controller and case.version >= 1 else 1}


def describe_configs(case: Case) -> Fields:
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configuration_keys": ["retention.ms"]}
    return {"resources": [resource], "include_synonyms": True, "include_documentation": True}


def alter_configs(case: Case) -> Fields:
    configs = [{"name": "retention.ms", "value": "604800000"}]
    return {"resources": [{"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configs": configs}]}


def list_config_resources(case: Case) -> Fields:
    return {"resource_types": []}


def describe_log_dirs(case: Case) -> Fields:
    return {"topics": [{"topic": TOPIC, "partitions": [0]}]}


def alter_replica_log_dirs(case: Case) -> Fields:
    return {"dirs": [{"path": case.data_folder, "topics": [{"name": TOPIC, "partitions": [0]}]}]}


def update_features(case: Case) -> Fields:
    """The level of a feature that it has already; with ZooKeeper, where there is none, one that nobody knows."""
    if case.zookeeper:
        update = {"feature": "unknown.version", "max_version_level": 1}
    else:
        told = case.prepare("ApiVersions", {"client_software_name": "kwire", "client_software_version": "1"}, 3)
        (level,) = [one.max_version_level for one in told.finalized_features if one.name == "metadata.version"]
        update = {"feature": "metadata.version", "max_version_level": level}
    return {"timeout_ms": 5000, "feature_updates": [update], "validate_only": True}


# -- groups --------------------------------------------------------------------------------------------------------


def find_coordinator(case: Case) -> Fields:
    return {"key": "asked-group", "key_type": GROUP_COORDINATOR, "coordinator_keys": ["asked-group"]}


def _join(group: str, member: str) -> Fields:
    subscription = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">i", -1)
    return {
        "group_id": group,
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 6000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription}],
    }


def _named(case: Case, group: str, version: int | None = None) -> str:
    """The member id that the coordinator gives to a newcomer (KIP-394)."""
    told = case.prepare("JoinGroup", _join(group, ""), version)
    return str(told.member_id)


def _member(case: Case, group: str) -> tuple[str, int]:
    """Join a group: the member id and the generation."""
    member = _named(case, group)
    joined = case.prepare("JoinGroup", _join(group, member))
    return member, int(joined.generation_id)


def _stable_member(case: Case, group: str) -> tuple[str, int]:
    member, generation = _member(case, group)
    case.prepare("SyncGroup", _sync(group, member, generation))
    return member, generation


def _sync(group: str, member: str, generation: int) -> Fields:
    assignment = struct.pack(">hih", 0, 1, len(TOPIC)) + TOPIC.encode() + struct.pack(">iii", 1, 0, -1)
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member, "assignment": assignment}],
    }


def join_group(case: Case) -> Fields:
    group = case.unique("joined")
    return _join(group, _named(case, group, case.version) if case.version >= 4 else "")


def sync_group(case: Case) -> Fields:
    group = case.unique("synced")
    return _sync(group, *_member(case, group))


def heartbeat(case: Case) -> Fields:
    group = case.unique("beating")
    member, generation = _stable_member(case, group)
    return {"group_id": group, "generation_id": generation, "member_id": member}


def leave_group(case: Case) -> Fields:
    group = case.unique("left")
    member, _ = _stable_member(case, group)
    return {"group_id": group, "member_id": member, "members": [{"member_id": member, "reason": "asked"}]}


def describe_groups(case: Case) -> Fields:
    group = case.unique("described")
    _stable_member(case, group)
    return {"groups": [group], "include_authorized_operations": True}


def _commit(case: Case, group: str) -> Fields:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": "asked"}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": TOPIC, "topic_id": case.topic_id, "partitions": [partition]}],
    }


def _group_with_offsets(case: Case, prefix: str) -> str:
    group = case.unique(prefix)
    case.prepare("OffsetCommit", _commit(case, group))
    return group


def offset_commit(case: Case) -> Fields:
    return _commit(case, case.unique("committed"))


def offset_fetch(case: Case) -> Fields:
    group = case.unique("read")
    # Version 0 of both has the offsets in ZooKeeper.
    case.prepare("OffsetCommit", _commit(case, group), 0 if case.version == 0 else None)
    topics = [{"name": TOPIC, "topic_id": case.topic_id, "partition_indexes": [0]}]
    by_name = [{"name": TOPIC, "partition_indexes": [0]}]
    return {"group_id": group, "topics": by_name, "groups": [{"group_id": group, "topics": topics}]}


def offset_delete(case: Case) -> Fields:
    group = _group_with_offsets(case, "forgotten")
    return {"group_id": group, "topics": [{"name": TOPIC, "partitions": [{"partition_index": 0}]}]}


def delete_groups(case: Case) -> Fields:
    return {"groups_names": [_group_with_offsets(case, "deleted-group")]}


def _consumer(group: str, member: str) -> Fields:
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": 0,
        "rebalance_timeout_ms": 6000,
        "subscribed_topic_names": [TOPIC],
        "topic_partitions": [],
    }


def consumer_group_heartbeat(case: Case) -> Fields:
    # From v1 on the member chooses its own id (KIP-1082).
    return _consumer(case.unique("consumers"), str(uuid.uuid4()) if case.version else "")


def consumer_group_describe(case: Case) -> Fields:
    group = case.unique("consumers-described")
    version = 0 if not case.newest else None
    case.prepare("ConsumerGroupHeartbeat", _consumer(group, str(uuid.uuid4()) if case.newest else ""), version)
    return {"group_ids": [group], "include_authorized_operations": True}


def _share(group: str, member: str, epoch: int = 0) -> Fields:
    return {"group_id": group, "member_id": member, "member_epoch": epoch, "subscribed_topic_names": [TOPIC]}


def _share_member(case: Case, prefix: str) -> tuple[str, str]:
    group, member = case.unique(prefix), str(uuid.uuid4())
    told = case.prepare("ShareGroupHeartbeat", _share(group, member))
    return group, told.member_id or member


def share_group_heartbeat(case: Case) -> Fields:
    return _share(case.unique("sharers"), str(uuid.uuid4()) if case.newest else "")


def share_group_describe(case: Case) -> Fields:
    group, _ = _share_member(case, "sharers-described")
    return {"group_ids": [group], "include_authorized_operations": True}


def _share_fetch(case: Case, group: str, member: str) -> Fields:
    partition = {"partition_index": 0, "partition_max_bytes": 4096, "acknowledgement_batches": []}
    return {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": 0,
        "max_wait_ms": 100,
        "max_records": 10,
        "batch_size": 10,
        "topics": [{"topic_id": case.topic_id, "partitions": [partition]}],
    }


def share_fetch(case: Case) -> Fields:
    return _share_fetch(case, *_share_member(case, "share-fetch"))


def share_acknowledge(case: Case) -> Fields:
    group, member = _share_member(case, "share-acknowledge")
    case.prepare("ShareFetch", _share_fetch(case, group, member))
    partition = {"partition_index": 0, "acknowledgement_batches": []}
    topic = {"topic_id": case.topic_id, "partitions": [partition]}
    return {"group_id": group, "member_id": member, "share_session_epoch": 1, "topics": [topic]}


def _empty_share_group(case: Case, prefix: str) -> str:
    group, member = _share_member(case, prefix)
    case.prepare("ShareGroupHeartbeat", _share(group, member, -1))
    return group


def describe_share_group_offsets(case: Case) -> Fields:
    topic = {"topic_name": TOPIC, "partitions": [0]}
    return {"groups": [{"group_id": _empty_share_group(case, "share-offsets"), "topics": [topic]}]}


def alter_share_group_offsets(case: Case) -> Fields:
    topic = {"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 0}]}
    return {"group_id": _empty_share_group(case, "share-altered"), "topics": [topic]}


def delete_share_group_offsets(case: Case) -> Fields:
    group = _empty_share_group(case, "share-deleted")
    return {"group_id": group, "topics": [{"topic_name": TOPIC}]}


def _share_state(case: Case, group: str, **partition: Any) -> Fields:
    one = {"partition": 0, **partition}
    return {"group_id": group, "topics": [{"topic_id": case.topic_id, "partitions": [one]}]}


def _share_state_made(case: Case, prefix: str) -> str:
    group = case.unique(prefix)
    key = f"{group}:{_kafka_id(case.topic_id)}:0"
    case.prepare("FindCoordinator", {"key_type": SHARE_COORDINATOR, "coordinator_keys": [key]})
    case.prepare("InitializeShareGroupState", _share_state(case, group, state_epoch=1, start_offset=0))
    return group


def _kafka_id(one: uuid.UUID) -> str:
    """A uuid as Kafka writes it: base64 for URLs, without padding."""
    return urlsafe_b64encode(one.bytes).decode().rstrip("=")


def initialize_share_group_state(case: Case) -> Fields:
    group = case.unique("state-new")
    key = f"{group}:{_kafka_id(case.topic_id)}:0"
    case.prepare("FindCoordinator", {"key_type": SHARE_COORDINATOR, "coordinator_keys": [key]})
    return _share_state(case, group, state_epoch=1, start_offset=0)


def read_share_group_state(case: Case) -> Fields:
    return _share_state(case, _share_state_made(case, "state-read"), leader_epoch=0)


def write_share_group_state(case: Case) -> Fields:
    group = _share_state_made(case, "state-written")
    batches = [{"first_offset": 0, "last_offset": 0, "delivery_state": 0, "delivery_count": 1}]
    return _share_state(case, group, state_epoch=1, leader_epoch=0, start_offset=0, state_batches=batches)


def delete_share_group_state(case: Case) -> Fields:
    return _share_state(case, _share_state_made(case, "state-deleted"))


def read_share_group_state_summary(case: Case) -> Fields:
    return _share_state(case, _share_state_made(case, "state-summary"), leader_epoch=0)


def _streams(group: str) -> Fields:
    subtopology = {"subtopology_id": "0", "source_topics": [TOPIC]}
    return {
        "group_id": group,
        "member_id": str(uuid.uuid4()),
        "member_epoch": 0,
        "rebalance_timeout_ms": 6000,
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "asked",
        "client_tags": [],
    }


def streams_group_heartbeat(case: Case) -> Fields:
    return _streams(case.unique("streams"))


def streams_group_describe(case: Case) -> Fields:
    group = case.unique("streams-described")
    case.prepare("StreamsGroupHeartbeat", _streams(group))
    return {"group_ids": [group], "include_topology_description": True}


def streams_group_topology_description_update(case: Case) -> Fields:
    group = case.unique("streams-topology")
    joining = _streams(group)
    case.prepare("StreamsGroupHeartbeat", joining)
    node = {"name": "source", "node_type": 1, "source_topics": [TOPIC]}
    description = {"subtopologies": [{"subtopology_id": "0", "nodes": [node]}], "global_stores": []}
    return {
        "group_id": group,
        "member_id": joining["member_id"],
        "topology_epoch": 0,
        "topology_description": description,
    }


# -- transactions --------------------------------------------------------------------------------------------------


def _transaction(case: Case, prefix: str) -> Fields:
    """A transactional id with its producer id and epoch."""
    name = case.unique(prefix)
    told = case.prepare("InitProducerId", {"transactional_id": name, "transaction_timeout_ms": 10000}, 4)
    return {"transactional_id": name, "producer_id": told.producer_id, "producer_epoch": told.producer_epoch}


def init_producer_id(case: Case) -> Fields:
    return {"transactional_id": case.unique("transaction"), "transaction_timeout_ms": 10000}


def _partitions(transaction: Fields) -> Fields:
    """A partition for a transaction: in the old form, and in that which brokers use among themselves."""
    topics = [{"name": TOPIC, "partitions": [0]}]
    old = {f"v3_and_below_{name}": value for name, value in transaction.items()}
    return {**old, "v3_and_below_topics": topics, "transactions": [{**transaction, "topics": topics}]}


def add_partitions_to_txn(case: Case) -> Fields:
    return _partitions(_transaction(case, "with-partitions"))


def add_offsets_to_txn(case: Case) -> Fields:
    return {**_transaction(case, "with-offsets"), "group_id": case.unique("txn-group")}


def end_txn(case: Case) -> Fields:
    transaction = _transaction(case, "ended")
    case.prepare("AddPartitionsToTxn", _partitions(transaction), 3)
    return {**transaction, "committed": True}


def txn_offset_commit(case: Case) -> Fields:
    transaction, group = _transaction(case, "with-commit"), case.unique("txn-commit-group")
    case.prepare("AddOffsetsToTxn", {**transaction, "group_id": group}, 3)
    return {**_commit(case, group), **transaction}


def write_txn_markers(case: Case) -> Fields:
    marker = {
        "producer_id": 4_000_000 + case.version,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": [{"name": TOPIC, "partition_indexes": [0]}],
        "coordinator_epoch": 0,
    }
    return {"markers": [marker]}


def describe_transactions(case: Case) -> Fields:
    return {"transactional_ids": [_transaction(case, "transaction-described")["transactional_id"]]}


def list_transactions(case: Case) -> Fields:
    return {"state_filters": ["Empty"]}


# -- security ------------------------------------------------------------------------------------------------------


def sasl_handshake(case: Case) -> Fields:
    return {"mechanism": "PLAIN"}


def sasl_authenticate(case: Case) -> Fields:
    # On a listener without SASL this is refused, as the other one is.
    case.prepare("SaslHandshake", {"mechanism": "PLAIN"}, 1)
    return {"auth_bytes": b"\0kwire\0kwire-secret"}


def _acl(name: str) -> Fields:
    return {
        "resource_type": TOPIC_RESOURCE,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:nobody",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }


def _acl_filter(name: str) -> Fields:
    return {
        "resource_type_filter": TOPIC_RESOURCE,
        "resource_name_filter": name,
        "pattern_type_filter": LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }


def create_acls(case: Case) -> Fields:
    return {"creations": [_acl(case.unique("no-topic"))]}


def describe_acls(case: Case) -> Fields:
    name = case.unique("no-topic")
    case.prepare("CreateAcls", {"creations": [_acl(name)]})
    return _acl_filter(name)


def delete_acls(case: Case) -> Fields:
    name = case.unique("no-topic")
    case.prepare("CreateAcls", {"creations": [_acl(name)]})
    return {"filters": [_acl_filter(name)]}


_TOKEN: Fields = {
    "owner_principal_type": None,
    "owner_principal_name": None,
    "renewers": [],
    "max_lifetime_ms": -1,
}


def _token(case: Case) -> bytes:
    """The HMAC of a new delegation token, once the broker knows it: KRaft publishes it after the answer."""
    case.authenticate()
    made = case.prepare("CreateDelegationToken", _TOKEN)
    deadline = time.monotonic() + SETTLE_SECONDS
    while made.error_code == 0 and time.monotonic() < deadline:
        known = case.prepare("DescribeDelegationToken", {"owners": None}).tokens
        if any(one.token_id == made.token_id for one in known):
            break
        time.sleep(0.05)
    return bytes(made.hmac)


def create_delegation_token(case: Case) -> Fields:
    case.authenticate()
    return _TOKEN


def renew_delegation_token(case: Case) -> Fields:
    return {"hmac": _token(case), "renew_period_ms": 60000}


def expire_delegation_token(case: Case) -> Fields:
    return {"hmac": _token(case), "expiry_time_period_ms": -1}


def describe_delegation_token(case: Case) -> Fields:
    _token(case)
    return {"owners": None}


def describe_user_scram_credentials(case: Case) -> Fields:
    return {"users": []}


def alter_user_scram_credentials(case: Case) -> Fields:
    salt = b"salt of a test"
    upsertion = {
        "name": case.unique("scram"),
        "mechanism": 1,
        "iterations": 4096,
        "salt": salt,
        "salted_password": hashlib.pbkdf2_hmac("sha256", b"secret of a test", salt, 4096),
    }
    return {"upsertions": [upsertion]}


def describe_client_quotas(case: Case) -> Fields:
    return {"components": [{"entity_type": "user", "match_type": 0, "match": "nobody"}]}


def alter_client_quotas(case: Case) -> Fields:
    change = {"key": "producer_byte_rate", "value": 1048576.0, "remove": False}
    return {"entries": [{"entity": [{"entity_type": "user", "entity_name": "nobody"}], "ops": [change]}]}


# -- client metrics ------------------------------------------------------------------------------------------------


def push_telemetry(case: Case) -> Fields:
    told = case.prepare("GetTelemetrySubscriptions", {})
    return {
        "client_instance_id": told.client_instance_id,
        "subscription_id": told.subscription_id,
        "terminating": True,
        "metrics": b"",
    }


# -- among brokers and controllers ---------------------------------------------------------------------------------


def from_controller(case: Case) -> Fields:
    """LeaderAndIsr, StopReplica and UpdateMetadata of a controller that was replaced long ago."""
    return {"controller_id": NOBODY, "controller_epoch": STALE_EPOCH}


def nobody(case: Case) -> Fields:
    return {"broker_id": NOBODY}


def alter_partition(case: Case) -> Fields:
    return {"broker_id": case.node, "broker_epoch": STALE_EPOCH}


def allocate_producer_ids(case: Case) -> Fields:
    return {"broker_id": case.node, "broker_epoch": STALE_EPOCH}


def assign_replicas_to_dirs(case: Case) -> Fields:
    return {"broker_id": case.node, "broker_epoch": STALE_EPOCH}


def broker_registration(case: Case) -> Fields:
    return {"broker_id": NOBODY, "cluster_id": OTHER_CLUSTER, "incarnation_id": uuid.uuid4(), "rack": None}


def broker_heartbeat(case: Case) -> Fields:
    return {"broker_id": NOBODY, "broker_epoch": STALE_EPOCH, "want_fence": True}


def controller_registration(case: Case) -> Fields:
    """A controller that never comes; what it supports is what this one supports."""
    return {"controller_id": NOBODY, "incarnation_id": uuid.uuid4(), "features": case.features}


def unregister_controller(case: Case) -> Fields:
    """A controller that registered and never came; from a broker, one that never was."""
    if not case.controller:
        return {"controller_id": NOBODY + 1}
    case.prepare("ControllerRegistration", controller_registration(case))
    return {"controller_id": NOBODY}


def _quorum(**partition: Any) -> Fields:
    one = {"partition_index": 0, **partition}
    return {"topics": [{"topic_name": METADATA_TOPIC, "partitions": [one]}]}


def vote(case: Case) -> Fields:
    """A vote in the epoch that has its leader already."""
    candidate = {"replica_id": NOBODY, "replica_directory_id": uuid.uuid4()}
    epoch = case.leader_epoch()
    return {"voter_id": case.node, **_quorum(replica_epoch=epoch, **candidate, last_offset_epoch=0, last_offset=0)}


def begin_quorum_epoch(case: Case) -> Fields:
    return {"voter_id": case.node, **_quorum(leader_id=NOBODY, leader_epoch=STALE_EPOCH)}


def end_quorum_epoch(case: Case) -> Fields:
    return _quorum(leader_id=NOBODY, leader_epoch=STALE_EPOCH)


def describe_quorum(case: Case) -> Fields:
    return _quorum()


def fetch_snapshot(case: Case) -> Fields:
    """The beginning of a snapshot that the controller has made."""
    epoch = case.leader_epoch()
    end_offset = snapshot_epoch = 0
    deadline = time.monotonic() + SETTLE_SECONDS
    while case.controller and end_offset == 0 and time.monotonic() < deadline:
        files = sorted(Path(case.data_folder).glob("__cluster_metadata-0/*.checkpoint"))
        if files:
            end_offset, snapshot_epoch = map(int, files[-1].stem.split("-"))
        time.sleep(0.05)
    snapshot = {"end_offset": end_offset, "epoch": snapshot_epoch}
    partition = {"partition": 0, "current_leader_epoch": epoch, "snapshot_id": snapshot}
    return {"max_bytes": 1024, "topics": [{"name": METADATA_TOPIC, "partitions": [partition]}]}


def envelope(case: Case) -> Fields:
    """A request of somebody else, handed on: only to be checked, and for a topic of its own."""
    body = messages.CreateTopicsRequest.from_dict({**_new_topic(case.unique("enveloped")), "validate_only": True})
    principal = messages.DefaultPrincipalData(type="User", name="ANONYMOUS", token_authenticated=False)
    packed = registry.codec(schema.message("DefaultPrincipalData"), 0).encode(principal)
    return {
        "request_data": kwire.encode_request(body, api_version=7, correlation_id=1, client_id="kwire-inside"),
        "request_principal": b"\0\0" + packed,  # the version, then the data
        "client_host_address": bytes([127, 0, 0, 1]),
    }


def add_raft_voter(case: Case) -> Fields:
    listeners = [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}]
    voter = {"voter_id": NOBODY, "voter_directory_id": uuid.uuid4()}
    return {"cluster_id": OTHER_CLUSTER, "timeout_ms": 1000, **voter, "listeners": listeners}


def remove_raft_voter(case: Case) -> Fields:
    return {"cluster_id": OTHER_CLUSTER, "voter_id": NOBODY, "voter_directory_id": uuid.uuid4()}


def update_raft_voter(case: Case) -> Fields:
    feature = {"min_supported_version": 0, "max_supported_version": 1}
    voter = {"voter_id": NOBODY, "voter_directory_id": uuid.uuid4(), "listeners": []}
    return {
        "cluster_id": OTHER_CLUSTER,
        "current_leader_epoch": STALE_EPOCH,
        **voter,
        "k_raft_version_feature": feature,
    }


def api_versions(case: Case) -> Fields:
    return {"client_software_name": "kwire", "client_software_version": kwire.__version__}


def nothing(case: Case) -> Fields:
    return {}


BODIES: dict[str, Callable[[Case], Fields]] = {
    "Produce": produce,
    "Fetch": fetch,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "LeaderAndIsr": from_controller,
    "StopReplica": from_controller,
    "UpdateMetadata": from_controller,
    "ControlledShutdown": nobody,
    "OffsetCommit": offset_commit,
    "OffsetFetch": offset_fetch,
    "FindCoordinator": find_coordinator,
    "JoinGroup": join_group,
    "Heartbeat": heartbeat,
    "LeaveGroup": leave_group,
    "SyncGroup": sync_group,
    "DescribeGroups": describe_groups,
    "ListGroups": nothing,
    "SaslHandshake": sasl_handshake,
    "ApiVersions": api_versions,
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "DeleteRecords": delete_records,
    "InitProducerId": init_producer_id,
    "OffsetForLeaderEpoch": offset_for_leader_epoch,
    "AddPartitionsToTxn": add_partitions_to_txn,
    "AddOffsetsToTxn": add_offsets_to_txn,
    "EndTxn": end_txn,
    "WriteTxnMarkers": write_txn_markers,
    "TxnOffsetCommit": txn_offset_commit,
    "DescribeAcls": describe_acls,
    "CreateAcls": create_acls,
    "DeleteAcls": delete_acls,
    "DescribeConfigs": describe_configs,
    "AlterConfigs": alter_configs,
    "AlterReplicaLogDirs": alter_replica_log_dirs,
    "DescribeLogDirs": describe_log_dirs,
    "SaslAuthenticate": sasl_authenticate,
    "CreatePartitions": create_partitions,
    "CreateDelegationToken": create_delegation_token,
    "RenewDelegationToken": renew_delegation_token,
    "ExpireDelegationToken": expire_delegation_token,
    "DescribeDelegationToken": describe_delegation_token,
    "DeleteGroups": delete_groups,
    "ElectLeaders": elect_leaders,
    "IncrementalAlterConfigs": alter_configs,
    "AlterPartitionReassignments": alter_partition_reassignments,
    "ListPartitionReassignments": list_partition_reassignments,
    "OffsetDelete": offset_delete,
    "DescribeClientQuotas": describe_client_quotas,
    "AlterClientQuotas": alter_client_quotas,
    "DescribeUserScramCredentials": describe_user_scram_credentials,
    "AlterUserScramCredentials": alter_user_scram_credentials,
    "Vote": vote,
    "BeginQuorumEpoch": begin_quorum_epoch,
    "EndQuorumEpoch": end_quorum_epoch,
    "DescribeQuorum": describe_quorum,
    "AlterPartition": alter_partition,
    "UpdateFeatures": update_features,
    "Envelope": envelope,
    "FetchSnapshot": fetch_snapshot,
    "DescribeCluster": describe_cluster,
    "DescribeProducers": describe_producers,
    "BrokerRegistration": broker_registration,
    "BrokerHeartbeat": broker_heartbeat,
    "UnregisterBroker": nobody,
    "DescribeTransactions": describe_transactions,
    "ListTransactions": list_transactions,
    "AllocateProducerIds": allocate_producer_ids,
    "ConsumerGroupHeartbeat": consumer_group_heartbeat,
    "ConsumerGroupDescribe": consumer_group_describe,
    "ControllerRegistration": controller_registration,
    "GetTelemetrySubscriptions": nothing,
    "PushTelemetry": push_telemetry,
    "AssignReplicasToDirs": assign_replicas_to_dirs,
    "ListConfigResources": list_config_resources,
    "DescribeTopicPartitions": describe_topic_partitions,
    "ShareGroupHeartbeat": share_group_heartbeat,
    "ShareGroupDescribe": share_group_describe,
    "ShareFetch": share_fetch,
    "ShareAcknowledge": share_acknowledge,
    "AddRaftVoter": add_raft_voter,
    "RemoveRaftVoter": remove_raft_voter,
    "UpdateRaftVoter": update_raft_voter,
    "InitializeShareGroupState": initialize_share_group_state,
    "ReadShareGroupState": read_share_group_state,
    "WriteShareGroupState": write_share_group_state,
    "DeleteShareGroupState": delete_share_group_state,
    "ReadShareGroupStateSummary": read_share_group_state_summary,
    "StreamsGroupHeartbeat": streams_group_heartbeat,
    "StreamsGroupDescribe": streams_group_describe,
    "DescribeShareGroupOffsets": describe_share_group_offsets,
    "AlterShareGroupOffsets": alter_share_group_offsets,
    "DeleteShareGroupOffsets": delete_share_group_offsets,
    "StreamsGroupTopologyDescriptionUpdate": streams_group_topology_description_update,
    "UnregisterController": unregister_controller,
}
