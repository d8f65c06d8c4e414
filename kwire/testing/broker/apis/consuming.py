"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.consumers import Consumer, Consumers, by_topic

__all__ = ["describe", "heartbeat"]

_SINCE: Final = "4.0.0"
"""The release in which the protocol is on as installed."""
_LEAVES: Final = -1
_LEAVES_FOR_A_WHILE: Final = -2


def heartbeat(ask: Ask) -> WireMessage:
    """A member joins, stays or goes, and hears what it is to have."""
    kind, body, cluster = messages.ConsumerGroupHeartbeatResponse, ask.body, ask.cluster
    code = ask.refused() or _error(ask, body.group_id)
    group = None if code else cluster.group(body.group_id)
    if not code and group is None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not code and group is not None and (group.members or group.share is not None or group.streams is not None):
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if code or group is None:
        return kind(error_code=code)
    settings = cluster.settings
    if group.consumers is None:
        group.consumers = Consumers(settings.consumer_session, settings.max_members)
    consumers = group.consumers
    if body.member_epoch in (_LEAVES, _LEAVES_FOR_A_WHILE):
        code = consumers.leave(body.member_id, body.member_epoch == _LEAVES_FOR_A_WHILE)
        return kind(error_code=code, member_id=body.member_id, member_epoch=body.member_epoch)
    client = ask.client_id, ask.host
    found = consumers.heartbeat(body, client, str(cluster.new_id()), cluster.topics, ask.now)
    if not isinstance(found, Consumer):
        return kind(error_code=found)
    told = consumers.told(found, everything=body.member_epoch == 0 or body.subscribed_topic_names is not None)
    return kind(
        member_id=found.id,
        member_epoch=found.epoch,
        heartbeat_interval_ms=int(settings.consumer_heartbeat * 1000),
        assignment=None if told is None else kind.Assignment(topic_partitions=_listed(kind.TopicPartitions, told)),
    )


def _error(ask: Ask, group_id: str) -> int:
    if not ask.cluster.at_least(_SINCE):
        return ErrorCode.UNSUPPORTED_VERSION
    if not group_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if ask.cluster.coordinator(group_id) is ask.node else ErrorCode.NOT_COORDINATOR


def _listed(kind: Any, places: Any) -> list[Any]:
    return [kind(topic_id=number, partitions=parts) for number, parts in by_topic(places).items()]


def describe(ask: Ask) -> WireMessage:
    """The members of groups, and what each has."""
    kind, made = messages.ConsumerGroupDescribeResponse, []
    for name in ask.body.group_ids:
        code = ask.refused() or _error(ask, name)
        group = None if code else ask.cluster.groups.get(name)
        if group is None or group.consumers is None:
            made.append(kind.DescribedGroup(error_code=code or ErrorCode.GROUP_ID_NOT_FOUND, group_id=name))
            continue
        consumers = group.consumers
        members = []
        for one in consumers.members.values():
            now, later = (_assignment(ask, places) for places in (one.owned, one.target))
            members.append(
                kind.Member(
                    member_id=one.id,
                    instance_id=one.instance_id,
                    member_epoch=one.epoch,
                    client_id=one.client_id,
                    client_host=f"/{one.host}",
                    subscribed_topic_names=list(one.topics),
                    subscribed_topic_regex=None if one.pattern is None else one.pattern.pattern,
                    assignment=now,
                    target_assignment=later,
                    member_type=1,
                )
            )
        settled = all(one.epoch == consumers.epoch and one.owned == one.target for one in consumers.members.values())
        made.append(
            kind.DescribedGroup(
                group_id=name,
                group_state="Empty" if not members else "Stable" if settled else "Reconciling",
                group_epoch=consumers.epoch,
                assignment_epoch=consumers.epoch,
                assignor_name=consumers.assignor,
                members=members,
            )
        )
    return kind(groups=made)


def _assignment(ask: Ask, places: Any) -> messages.ConsumerGroupDescribeResponse.Assignment:
    kind = messages.ConsumerGroupDescribeResponse
    listed = []
    for number, parts in by_topic(places).items():
        topic = ask.cluster.by_id.get(number)
        name = "" if topic is None else topic.name
        listed.append(kind.TopicPartitions(topic_id=number, topic_name=name, partitions=parts))
    return kind.Assignment(topic_partitions=listed)
