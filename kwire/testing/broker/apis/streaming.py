"""StreamsGroupHeartbeat and StreamsGroupDescribe: streams groups (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.streams import RECOVERY_LAG, ROLES, Streams, StreamsMember, Task, Tasks, by_subtopology
from kwire.testing.broker.topologies import Internal, Topology

__all__ = ["describe", "heartbeat"]

_LEAVES: Final = (-1, -2)
_OFFSET_INTERVAL: Final = 60_000
"""Milliseconds between two reports of how far copies are (task.offset.interval.ms)."""


def _error(ask: Ask, group_id: str) -> int:
    if ask.refused():
        return ask.refused()
    if not group_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if ask.cluster.coordinator(group_id) is ask.node else ErrorCode.NOT_COORDINATOR


def heartbeat(ask: Ask) -> WireMessage:
    """A member joins, stays or goes, and hears which tasks it has."""
    kind, body, cluster = messages.StreamsGroupHeartbeatResponse, ask.body, ask.cluster
    code = _error(ask, body.group_id)
    group = None if code else cluster.group(body.group_id)
    if not code and group is None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not code and group is not None and (group.members or group.consumers is not None or group.share is not None):
        code = ErrorCode.GROUP_ID_NOT_FOUND
    if code or group is None:
        return kind(error_code=code)
    streams = group.streams
    if streams is None:
        if body.member_epoch:
            return kind(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        streams = group.streams = Streams(group.name, cluster)
    if body.member_epoch in _LEAVES:
        code = streams.leave(body.member_id, body.member_epoch == _LEAVES[1])
        return kind(error_code=code, member_id=body.member_id, member_epoch=body.member_epoch)
    found = streams.heartbeat(body, (ask.client_id, ask.host), ask.now)
    if not isinstance(found, StreamsMember):
        return kind(error_code=found)
    made = kind(
        member_id=found.id,
        member_epoch=found.epoch,
        heartbeat_interval_ms=int(cluster.settings.consumer_heartbeat * 1000),
        task_offset_interval_ms=_OFFSET_INTERVAL,
        status=[kind.Status(status_code=number, status_detail=text) for number, text in streams.status_of(found)],
        endpoint_information_epoch=streams.endpoint_epoch,
    )
    if ask.version:
        made.acceptable_recovery_lag = RECOVERY_LAG
    else:
        made.acceptable_recovery_lag_legacy = RECOVERY_LAG
    told = streams.told(found, everything=body.member_epoch == 0)
    if told is not None:
        made.active_tasks, made.standby_tasks, made.warmup_tasks = (_tasks(kind.TaskIds, told[role]) for role in ROLES)
    if body.endpoint_information_epoch != streams.endpoint_epoch:
        made.partitions_by_user_endpoint = [
            _endpoint(ask, streams, one) for one in streams.members.values() if one.endpoint is not None
        ]
    return made


def _tasks(kind: Any, tasks: Iterable[Task]) -> list[Any]:
    return [kind(subtopology_id=name, partitions=parts) for name, parts in by_subtopology(tasks).items()]


def _endpoint(ask: Ask, streams: Streams, member: StreamsMember) -> Any:
    """The partitions that a member serves queries for."""
    kind = messages.StreamsGroupHeartbeatResponse
    host, port = member.endpoint or ("", 0)
    return kind.EndpointToPartitions(
        user_endpoint=kind.Endpoint(host=host, port=port),
        active_partitions=_partitions(ask, streams.topology, member.owned["active"]),
        standby_partitions=_partitions(ask, streams.topology, member.owned["standby"]),
    )


def _partitions(ask: Ask, topology: Topology | None, tasks: Iterable[Task]) -> list[Any]:
    kind = messages.StreamsGroupHeartbeatResponse.TopicPartition
    numbers = by_subtopology(tasks)
    listed = []
    for part in () if topology is None else topology.parts:
        for name in topology.topics(part, ask.cluster) if topology is not None and part.id in numbers else ():
            count = len(ask.cluster.topics[name].logs)
            some = [number for number in numbers[part.id] if number < count]
            listed.append(kind(topic=name, partitions=some))
    return listed


def describe(ask: Ask) -> WireMessage:
    """Topology and members of streams groups, and what each member has."""
    kind, made = messages.StreamsGroupDescribeResponse, []
    for name in ask.body.group_ids:
        code = _error(ask, name)
        group = None if code else ask.cluster.groups.get(name)
        if group is None or group.streams is None:
            made.append(kind.DescribedGroup(error_code=code or ErrorCode.GROUP_ID_NOT_FOUND, group_id=name))
            continue
        streams = group.streams
        answer = kind.DescribedGroup(
            group_id=name,
            group_state=streams.state,
            group_epoch=streams.epoch,
            assignment_epoch=streams.epoch,
            topology=None if streams.topology is None else _topology(streams.topology),
            members=[_member(one) for one in streams.members.values()],
        )
        if ask.version:
            answer.assignor_name = "sticky"
        made.append(answer)
    return kind(groups=made)


def _topology(topology: Topology) -> Any:
    kind = messages.StreamsGroupDescribeResponse
    return kind.Topology(
        epoch=topology.epoch,
        subtopologies=[
            kind.Subtopology(
                subtopology_id=one.id,
                source_topics=list(one.sources),
                repartition_sink_topics=list(one.sinks),
                state_changelog_topics=[_internal(each) for each in one.changelogs],
                repartition_source_topics=[_internal(each) for each in one.repartitions],
            )
            for one in topology.parts
        ],
    )


def _internal(one: Internal) -> Any:
    kind = messages.StreamsGroupDescribeResponse
    return kind.TopicInfo(
        name=one.name,
        partitions=one.partitions,
        replication_factor=one.replication,
        topic_configs=[kind.KeyValue(key=key, value=value) for key, value in one.configs],
    )


def _member(one: StreamsMember) -> Any:
    kind = messages.StreamsGroupDescribeResponse

    def assignment(tasks: Tasks) -> Any:
        active, standby, warmup = (_tasks(kind.TaskIds, tasks[role]) for role in ROLES)
        return kind.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)

    def offsets(some: dict[Task, int]) -> list[Any]:
        return [
            kind.TaskOffset(subtopology_id=name, partition=number, offset=offset)
            for (name, number), offset in some.items()
        ]

    made = kind.Member(
        member_id=one.id,
        member_epoch=one.epoch,
        instance_id=one.instance_id,
        rack_id=one.rack_id,
        client_id=one.client_id,
        client_host=f"/{one.host}",
        topology_epoch=one.topology_epoch,
        process_id=one.process,
        client_tags=[kind.KeyValue(key=key, value=value) for key, value in one.tags.items()],
        task_offsets=offsets(one.offsets),
        task_end_offsets=offsets(one.ends),
        assignment=assignment(one.owned),
        target_assignment=assignment(one.target),
    )
    if one.endpoint is not None:
        made.user_endpoint = kind.Endpoint(host=one.endpoint[0], port=one.endpoint[1])
    return made
