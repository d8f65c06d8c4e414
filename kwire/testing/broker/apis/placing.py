"""Where replicas lie and who leads: log folders, reassignments, elections (KIP-113, KIP-183, KIP-455)."""

from __future__ import annotations

from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import Ask

__all__ = ["alter_log_dirs", "alter_reassignments", "describe_log_dirs", "elect_leaders", "list_reassignments"]

FOLDER: Final = "/var/lib/kafka/data"
"""The only log folder of each node, as it is named to clients. There is none: records are in memory."""
_DISK: Final = 1 << 40


def describe_log_dirs(ask: Ask) -> WireMessage:
    """The sizes of the replicas that a node has."""
    kind, body = messages.DescribeLogDirsResponse, ask.body
    code = ask.refused()
    if code and ask.version >= 3:
        return kind(error_code=code)
    wanted = None if body.topics is None else {one.topic: set(one.partitions) for one in body.topics}
    topics, used = [], 0
    for topic in ask.cluster.topics.values():
        mine = [log for log in topic.logs if ask.node_id in log.replicas]
        used += sum(log.size for log in mine)
        parts = [
            kind.DescribeLogDirsPartition(partition_index=log.partition, partition_size=log.size)
            for log in mine
            if wanted is None or log.partition in wanted.get(topic.name, ())
        ]
        if parts and not code:
            topics.append(kind.DescribeLogDirsTopic(name=topic.name, partitions=parts))
    folder = kind.DescribeLogDirsResult(error_code=code, log_dir=FOLDER, topics=topics)
    if ask.version >= 4:
        folder.total_bytes, folder.usable_bytes = _DISK, _DISK - used
    return kind(results=[folder])


def alter_log_dirs(ask: Ask) -> WireMessage:
    """Replicas are to lie in a folder: there is one only, where they are already."""
    kind = messages.AlterReplicaLogDirsResponse
    topics: dict[str, Any] = {}
    for folder in ask.body.dirs:
        for one in folder.topics:
            if one.name not in topics:
                topics[one.name] = kind.AlterReplicaLogDirTopicResult(topic_name=one.name)
            for number in one.partitions:
                log = ask.cluster.log(ask.cluster.topics.get(one.name), number)
                code = ask.refused(one.name, number)
                if not code and folder.path != FOLDER:
                    code = ErrorCode.LOG_DIR_NOT_FOUND
                if not code and (log is None or ask.node_id not in log.replicas):
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                topics[one.name].partitions.append(
                    kind.AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
                )
    return kind(results=list(topics.values()))


def alter_reassignments(ask: Ask) -> WireMessage:
    """Partitions get other replicas, at once: nothing has to be copied."""
    kind, cluster = messages.AlterPartitionReassignmentsResponse, ask.cluster
    nodes = {one.id for one in cluster.nodes}
    topics = []
    for one in ask.body.topics:
        answers = []
        for part in one.partitions:
            log = cluster.log(cluster.topics.get(one.name), part.partition_index)
            code = ask.refused(one.name, part.partition_index)
            wanted = None if part.replicas is None else list(part.replicas)
            if not code and log is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not code and wanted is None:
                code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            elif not code and (not wanted or len(set(wanted)) != len(wanted) or not set(wanted) <= nodes):
                code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
            elif not code and log is not None and wanted:
                fixed = ask.version >= 1 and not ask.body.allow_replication_factor_change
                if fixed and len(wanted) != len(log.replicas):
                    code = ErrorCode.INVALID_REPLICATION_FACTOR
                else:
                    log.replicas = wanted
                    if log.leader not in wanted:
                        log.lead(wanted[0])
            answers.append(
                kind.ReassignablePartitionResponse(
                    partition_index=part.partition_index, error_code=code, error_message=None
                )
            )
        topics.append(kind.ReassignableTopicResponse(name=one.name, partitions=answers))
    return kind(error_message=None, responses=topics)


def list_reassignments(ask: Ask) -> WireMessage:
    """None is ever under way."""
    return messages.ListPartitionReassignmentsResponse(error_code=ask.refused(), error_message=None)


def elect_leaders(ask: Ask) -> WireMessage:
    """The first replica of each partition becomes its leader."""
    kind, cluster, wanted = messages.ElectLeadersResponse, ask.cluster, ask.body.topic_partitions
    named: dict[str, list[int]] = {}
    if wanted is None:
        for topic in cluster.topics.values():
            moved = [log.partition for log in topic.logs if log.leader != log.replicas[0]]
            if moved:
                named[topic.name] = moved
    else:
        for one in wanted:
            named.setdefault(one.topic, []).extend(one.partitions)
    topics = []
    for name, numbers in named.items():
        results = []
        for number in numbers:
            log = cluster.log(cluster.topics.get(name), number)
            code = ask.refused(name, number)
            if not code and log is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not code and log is not None and (ask.body.election_type or log.leader == log.replicas[0]):
                # Type 1 is for partitions without a leader, which none is here.
                code = ErrorCode.ELECTION_NOT_NEEDED
            elif not code and log is not None:
                log.lead(log.replicas[0])
            results.append(kind.PartitionResult(partition_id=number, error_code=code, error_message=None))
        topics.append(kind.ReplicaElectionResult(topic=name, partition_result=results))
    return kind(replica_election_results=topics)
