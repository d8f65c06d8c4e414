"""Where share groups begin to read: described, set and forgotten (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.groups import Group
from kwire.testing.broker.logs import Topic
from kwire.testing.broker.sharing import Share

__all__ = ["alter", "delete", "describe"]

_UNKNOWN = -1


def _code(ask: Ask, group_id: str) -> int:
    if ask.refused():
        return ask.refused()
    return ErrorCode.NONE if ask.cluster.coordinator(group_id) is ask.node else ErrorCode.NOT_COORDINATOR


def _share(ask: Ask, group_id: str, *, make: bool = False) -> Share | int:
    """The share group of a name; an error code where there is none, or it is of another kind."""
    code = _code(ask, group_id)
    if code:
        return code
    group: Group | None = ask.cluster.groups.get(group_id)
    if group is None and make and group_id:
        group = ask.cluster.group(group_id)
        if group is not None:
            return group.shared(ask.cluster)
    if group is None or group.share is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return group.share


def describe(ask: Ask) -> WireMessage:
    """The start offset of each partition; -1 where the group has none, or there is no such group or partition."""
    kind, made = messages.DescribeShareGroupOffsetsResponse, []
    for one in ask.body.groups:
        share = _share(ask, one.group_id)
        if share == ErrorCode.GROUP_ID_NOT_FOUND and one.topics is not None and not ask.refused():
            share = Share(ask.cluster)  # Kafka 4.4 looks for a group only where it is to list the topics
        answer = kind.DescribeShareGroupOffsetsResponseGroup(group_id=one.group_id)
        made.append(answer)
        if not isinstance(share, Share):
            answer.error_code = share
            continue
        wanted: Iterable[tuple[str, Iterable[int]]] = (
            [(topic.topic_name, topic.partitions) for topic in one.topics]
            if one.topics is not None
            else [(topic.name, range(len(topic.logs))) for topic in _begun(ask, share)]
        )
        for name, numbers in wanted:
            topic = ask.cluster.topics.get(name)
            parts = [_described(ask, share, name, number) for number in numbers]
            answer.topics.append(
                kind.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name, partitions=parts, **({} if topic is None else {"topic_id": topic.id})
                )
            )
    return kind(groups=made)


def _begun(ask: Ask, share: Share) -> list[Topic]:
    """The topics of which the group has read something."""
    ids = dict.fromkeys(number for number, _ in share.partitions)
    return [ask.cluster.by_id[one] for one in ids if one in ask.cluster.by_id]


def _described(ask: Ask, share: Share, name: str, number: int) -> Any:
    made = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(
        partition_index=number, start_offset=_UNKNOWN, leader_epoch=0
    )
    topic = ask.cluster.topics.get(name)
    log = ask.cluster.log(topic, number)
    known = None if topic is None else share.partitions.get((topic.id, number))
    if known is not None and log is not None:
        made.start_offset, made.leader_epoch = known.start, log.epoch
        if ask.version >= 1:
            made.lag = known.lag()
    return made


def alter(ask: Ask) -> WireMessage:
    """Partitions of a group without members begin elsewhere."""
    kind, share = messages.AlterShareGroupOffsetsResponse, _share(ask, ask.body.group_id, make=True)
    if isinstance(share, Share) and share.members:
        share = ErrorCode.NON_EMPTY_GROUP
    if not isinstance(share, Share):
        return kind(error_code=share)
    topics = []
    for one in ask.body.topics:
        topic, answers = ask.cluster.topics.get(one.topic_name), []
        for part in one.partitions:
            code = ask.refused(one.topic_name, part.partition_index)
            if topic is None or ask.cluster.log(topic, part.partition_index) is None:
                code = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not code:
                share.restart(topic, part.partition_index, part.start_offset)
            answers.append(
                kind.AlterShareGroupOffsetsResponsePartition(partition_index=part.partition_index, error_code=code)
            )
        named = kind.AlterShareGroupOffsetsResponseTopic(topic_name=one.topic_name, partitions=answers)
        if topic is not None:
            named.topic_id = topic.id
        topics.append(named)
    return kind(responses=topics)


def delete(ask: Ask) -> WireMessage:
    """A group without members forgets topics."""
    kind, share = messages.DeleteShareGroupOffsetsResponse, _share(ask, ask.body.group_id)
    if isinstance(share, Share) and share.members:
        share = ErrorCode.NON_EMPTY_GROUP
    if not isinstance(share, Share):
        return kind(error_code=share)
    topics = []
    for one in ask.body.topics:
        topic = ask.cluster.topics.get(one.topic_name)
        code = ask.refused(one.topic_name) or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else 0)
        named = kind.DeleteShareGroupOffsetsResponseTopic(topic_name=one.topic_name, error_code=code)
        if topic is not None:
            named.topic_id = topic.id
            if not code:
                share.forget(topic)
        topics.append(named)
    return kind(responses=topics)
