"""The broker of ``kwire.testing``: log folders, reassignments, elections, offsets, tokens."""

from __future__ import annotations

from typing import Any

from broker_talk import BATCH, Bench, Client, produce

from kwire import messages
from kwire.protocol.error_codes import ErrorCode


def test_log_folders_have_the_sizes_of_the_replicas_of_a_node() -> None:
    bench = Bench(nodes=2)
    topic = bench.cluster.create_topic("orders", 2)
    log = topic.logs[0]
    client = bench.client(log.leader - 1)
    assert produce(client, topic, BATCH, 9).error_code == 0
    (folder,) = client.ask(messages.DescribeLogDirsRequest(topics=None), 4).results
    (told,) = folder.topics
    assert (told.name, [(one.partition_index, one.partition_size) for one in told.partitions]) == (
        "orders",
        [(0, log.size)],
    )
    assert folder.total_bytes - folder.usable_bytes == log.size
    kind = messages.DescribeLogDirsRequest
    wanted = kind(topics=[kind.DescribableLogDirTopic(topic="orders", partitions=[1])])
    assert client.ask(wanted, 4).results[0].topics == []
    alter = messages.AlterReplicaLogDirsRequest
    dirs = [
        alter.AlterReplicaLogDir(path=path, topics=[alter.AlterReplicaLogDirTopic(name="orders", partitions=[0, 1])])
        for path in (folder.log_dir, "/elsewhere")
    ]
    (result,) = client.ask(alter(dirs=dirs), 2).results
    assert [(one.partition_index, one.error_code) for one in result.partitions] == [
        (0, 0),
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.LOG_DIR_NOT_FOUND),
        (1, ErrorCode.LOG_DIR_NOT_FOUND),
    ]


def reassign(client: Client, version: int, replicas: list[int] | None, fixed: bool = False) -> int:
    kind = messages.AlterPartitionReassignmentsRequest
    part = kind.ReassignablePartition(partition_index=0, replicas=replicas)
    asked = kind(topics=[kind.ReassignableTopic(name="orders", partitions=[part])])
    if fixed:
        asked.allow_replication_factor_change = False
    (topic,) = client.ask(asked, version).responses
    return int(topic.partitions[0].error_code)


def test_a_partition_gets_other_replicas_and_then_its_first_one_leads() -> None:
    bench = Bench(nodes=3)
    log = bench.cluster.create_topic("orders").logs[0]
    client = bench.client()
    others = [number for number in (1, 2, 3) if number != log.leader]
    assert reassign(client, 1, others) == 0
    assert (log.replicas, log.leader, log.epoch) == (others, others[0], 1)
    log.lead(others[1])
    kind = messages.ElectLeadersRequest
    wanted = kind(topic_partitions=[kind.TopicPartitions(topic="orders", partitions=[0, 1])])
    told = [
        [
            (one.partition_id, one.error_code)
            for one in client.ask(wanted, 2).replica_election_results[0].partition_result
        ]
        for _ in range(2)
    ]
    missing = (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert told == [[(0, 0), missing], [(0, ErrorCode.ELECTION_NOT_NEEDED), missing]]
    assert log.leader == others[0]
    assert client.ask(kind(topic_partitions=None), 2).replica_election_results == []
    assert reassign(client, 1, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassign(client, 1, [1, 9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(client, 1, []) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(client, 1, [1], fixed=True) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert log.replicas == others
    assert client.ask(messages.ListPartitionReassignmentsRequest(), 0).topics == []


def test_committed_offsets_are_forgotten() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    client = bench.client()
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    client.ask(kind(group_id="g", topics=[kind.OffsetCommitRequestTopic(name="orders", partitions=[part])]), 8)
    delete = messages.OffsetDeleteRequest

    def forget(group: str) -> Any:
        parts = [delete.OffsetDeleteRequestPartition(partition_index=number) for number in (0, 1)]
        return client.ask(
            delete(group_id=group, topics=[delete.OffsetDeleteRequestTopic(name="orders", partitions=parts)]), 0
        )

    assert forget("h").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert [one.error_code for one in forget("g").topics[0].partitions] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert bench.cluster.groups["g"].offsets == {}


def test_tokens_are_refused_as_a_broker_without_a_key_does() -> None:
    client = Bench().client()
    for asked in (messages.CreateDelegationTokenRequest(), messages.DescribeDelegationTokenRequest(owners=None)):
        assert client.ask(asked, 3).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
