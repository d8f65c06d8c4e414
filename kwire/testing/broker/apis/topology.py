"""ApiVersions, Metadata, FindCoordinator, DescribeCluster: which versions, nodes and topics there are."""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.cluster import Cluster
from kwire.testing.broker.logs import Log, RefusedError, Topic

__all__ = ["api_versions", "describe_cluster", "find_coordinator", "metadata"]

FEATURES: Final = (("group.version", 1), ("transaction.version", 2))
"""What a cluster of a new release has enabled: the consumer protocol (KIP-848), transactions v2 (KIP-890)."""
_FEATURES_SINCE: Final = "4.0.0"
_ZERO_SINCE: Final = 4
"""The version from which clients know features that begin with 0. Before, they are left out."""
_NAMES_ITSELF: Final = 3
"""The version from which a client says which software it is."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What name and version of the software may be (KIP-511)."""
_LISTS_ITS_OWN = "2.4"
"""The release from which a refused ApiVersions says which versions of it there are (KIP-511)."""


def api_versions(ask: Ask) -> WireMessage:
    """What the release announces. Error 35 for a version that it does not have, 42 for a client that does not name its
    software (KIP-511)."""
    kind, cluster = messages.ApiVersionsResponse, ask.cluster
    own = cluster.announced[ApiKey.API_VERSIONS]
    if ask.version not in own:
        row = kind.ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=own.low, max_version=own.high)
        listed = [row] if cluster.at_least(_LISTS_ITS_OWN) else []
        return kind(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=listed)
    code, said = ask.refused(), (ask.body.client_software_name, ask.body.client_software_version)
    if not code and ask.version >= _NAMES_ITSELF and not all(map(_SOFTWARE.fullmatch, said)):
        return kind(error_code=ErrorCode.INVALID_REQUEST)
    rows = [
        kind.ApiVersion(api_key=key, min_version=one.low, max_version=one.high)
        for key, one in cluster.announced.items()
    ]
    made = kind(error_code=code, api_keys=rows)
    if cluster.at_least(_FEATURES_SINCE):
        if ask.version >= _ZERO_SINCE:
            made.supported_features = [
                kind.SupportedFeatureKey(name=name, min_version=0, max_version=level) for name, level in FEATURES
            ]
        made.finalized_features_epoch = 1
        made.finalized_features = [
            kind.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in FEATURES
        ]
    return made


def metadata(ask: Ask) -> WireMessage:
    """Nodes, and the topics that were asked for. Missing ones are made where both sides want that."""
    kind, cluster, body = messages.MetadataResponse, ask.cluster, ask.body
    wanted = body.topics
    everything = wanted is None or (ask.version == 0 and not wanted)
    listed = []
    if everything:
        listed = [_topic(ask, one) for one in cluster.topics.values()]
    else:
        for one in wanted:
            listed.append(_wanted(ask, one.name, one.topic_id, body.allow_auto_topic_creation))
    return kind(
        brokers=[
            kind.MetadataResponseBroker(node_id=one.id, host=one.host, port=one.port, rack=one.rack)
            for one in cluster.nodes
        ],
        cluster_id=cluster.id,
        controller_id=cluster.nodes[0].id,
        topics=listed,
    )


def _wanted(ask: Ask, name: str | None, number: UUID, create: bool) -> messages.MetadataResponse.MetadataResponseTopic:
    kind, cluster = messages.MetadataResponse.MetadataResponseTopic, ask.cluster
    if name is None:
        topic = cluster.by_id.get(number)
        if topic is None:
            return kind(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None if ask.version >= 12 else "", topic_id=number)
        return _topic(ask, topic)
    topic = cluster.topics.get(name)
    code = ask.refused(name)
    if topic is None and not code:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if create and cluster.settings.auto_create:
            try:
                topic = cluster.create_topic(name)
            except RefusedError as error:
                code = ErrorCode(error.code)
    return kind(error_code=code, name=name) if topic is None else _topic(ask, topic)


def _topic(ask: Ask, topic: Topic) -> messages.MetadataResponse.MetadataResponseTopic:
    kind = messages.MetadataResponse
    code = ask.refused(topic.name)
    return kind.MetadataResponseTopic(
        error_code=code,
        name=topic.name,
        topic_id=topic.id,
        partitions=[] if code else [_partition(ask.cluster, log) for log in topic.logs],
    )


def _partition(cluster: Cluster, log: Log) -> messages.MetadataResponse.MetadataResponsePartition:
    return messages.MetadataResponse.MetadataResponsePartition(
        partition_index=log.partition,
        leader_id=log.leader,
        leader_epoch=log.epoch,
        replica_nodes=log.replicas,
        isr_nodes=log.replicas,
    )


def find_coordinator(ask: Ask) -> WireMessage:
    """The node that coordinates a group (key type 0) or a transactional id (1)."""
    kind, code = messages.FindCoordinatorResponse, ask.refused()
    if ask.version < 4:
        node = ask.cluster.coordinator(ask.body.key)
        if code:
            return kind(error_code=code, node_id=-1, port=-1)
        return kind(error_message="NONE", node_id=node.id, host=node.host, port=node.port)
    listed = []
    for key in ask.body.coordinator_keys:
        node = ask.cluster.coordinator(key)
        if code:
            listed.append(kind.Coordinator(key=key, node_id=-1, port=-1, error_code=code))
        else:
            listed.append(kind.Coordinator(key=key, node_id=node.id, host=node.host, port=node.port))
    return kind(coordinators=listed)


def describe_cluster(ask: Ask) -> WireMessage:
    """The nodes alone (KIP-700)."""
    kind, cluster = messages.DescribeClusterResponse, ask.cluster
    return kind(
        error_code=ask.refused(),
        endpoint_type=ask.body.endpoint_type,
        cluster_id=cluster.id,
        controller_id=cluster.nodes[0].id,
        brokers=[
            kind.DescribeClusterBroker(broker_id=one.id, host=one.host, port=one.port, rack=one.rack)
            for one in cluster.nodes
        ],
    )
