"""OffsetCommit, OffsetFetch and OffsetDelete: the offsets that groups have committed."""

from __future__ import annotations

from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.naming import topic_of
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.groups import Committed, Group

__all__ = ["commit", "delete", "fetch", "stored"]

_IDS_SINCE: Final = 10
_MOST_METADATA: Final = 4096
"""Bytes of metadata beside an offset (offset.metadata.max.bytes)."""
_COORDINATED_SINCE: Final = 1
"""Version 0 kept offsets in ZooKeeper, and had no coordinator."""


def commit(ask: Ask) -> WireMessage:
    """Keep offsets of a group."""
    kind, body = messages.OffsetCommitResponse, ask.body
    code = ask.refused() if ask.topic is None else 0
    group = None
    if not code and ask.version >= _COORDINATED_SINCE and ask.cluster.coordinator(body.group_id) is not ask.node:
        code = ErrorCode.NOT_COORDINATOR
    if not code:
        group = ask.cluster.group(body.group_id)
        if group is None:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif ask.version >= _COORDINATED_SINCE:
            code = group.may_commit(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
            if not code and body.member_id and body.member_id in group.members:
                group.members[body.member_id].heard = ask.now
    if not code and ask.cluster.offsets >= ask.cluster.settings.max_offsets:
        code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    by_id = ask.version >= _IDS_SINCE
    topics = []
    for one in body.topics:
        answers = []
        for part in one.partitions:
            topic = topic_of(ask.cluster, one.name, one.topic_id, by_id)
            own = code or ask.refused(one.name if topic is None else topic.name, part.partition_index)
            if not own and ask.cluster.log(topic, part.partition_index) is None:
                missing = by_id and topic is None
                own = ErrorCode.UNKNOWN_TOPIC_ID if missing else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not own and len(part.committed_metadata or "") > _MOST_METADATA:
                own = ErrorCode.OFFSET_METADATA_TOO_LARGE
            if not own:
                assert group is not None
                assert topic is not None
                group.offsets[topic.name, part.partition_index] = stored(part)
            answers.append(kind.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=own))
        topics.append(kind.OffsetCommitResponseTopic(name=one.name, topic_id=one.topic_id, partitions=answers))
    return kind(topics=topics)


def stored(part: Any) -> Committed:
    """What is kept of a partition of OffsetCommit or TxnOffsetCommit."""
    return Committed(part.committed_offset, part.committed_leader_epoch, part.committed_metadata)


def fetch(ask: Ask) -> WireMessage:
    """The committed offsets of a group, or of several (v8)."""
    kind, body = messages.OffsetFetchResponse, ask.body
    if ask.version >= 8:
        return kind(groups=[_group(ask, one) for one in body.groups])
    code, group = _found(ask, body.group_id)
    wanted = None if body.topics is None else [(one.name, one.partition_indexes) for one in body.topics]
    topics = []
    for name, numbers in _named(group, wanted):
        answers = []
        for number in numbers:
            own, known = _offset(ask, group, code, (name, number))
            answers.append(
                kind.OffsetFetchResponsePartition(
                    partition_index=number,
                    committed_offset=-1 if known is None else known.offset,
                    committed_leader_epoch=-1 if known is None else known.leader_epoch,
                    metadata="" if known is None else known.metadata,
                    error_code=own,
                )
            )
        topics.append(kind.OffsetFetchResponseTopic(name=name, partitions=answers))
    return kind(topics=topics, error_code=code)


def _group(ask: Ask, wanted: Any) -> messages.OffsetFetchResponse.OffsetFetchResponseGroup:
    kind = messages.OffsetFetchResponse
    code, group = _found(ask, wanted.group_id)
    made = kind.OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=code)
    if code:
        return made
    by_id, asked = ask.version >= _IDS_SINCE, None
    if wanted.topics is not None:
        asked = []
        for one in wanted.topics:
            topic = topic_of(ask.cluster, one.name, one.topic_id, by_id)
            asked.append((one.name if topic is None else topic.name, one.partition_indexes))
    ids = {} if wanted.topics is None else {place: one.topic_id for place, one in enumerate(wanted.topics)}
    for place, (name, numbers) in enumerate(_named(group, asked)):
        answers = []
        for number in numbers:
            own, known = _offset(ask, group, code, (name, number))
            answers.append(
                kind.OffsetFetchResponsePartitions(
                    partition_index=number,
                    committed_offset=-1 if known is None else known.offset,
                    committed_leader_epoch=-1 if known is None else known.leader_epoch,
                    metadata="" if known is None else known.metadata,
                    error_code=own,
                )
            )
        topic = ask.cluster.topics.get(name)
        number = ids.get(place) if topic is None else topic.id
        named: dict[str, Any] = {"topic_id": number} if by_id and number is not None else {"name": name}
        made.topics.append(kind.OffsetFetchResponseTopics(**named, partitions=answers))
    return made


def _found(ask: Ask, name: str) -> tuple[int, Group | None]:
    """An error code, and the group if there is one."""
    code = ask.refused()
    if not code and ask.version >= _COORDINATED_SINCE and ask.cluster.coordinator(name) is not ask.node:
        code = ErrorCode.NOT_COORDINATOR
    return code, None if code else ask.cluster.groups.get(name)


def _named(group: Group | None, wanted: list[tuple[str, Any]] | None) -> list[tuple[str, Any]]:
    """Topics and partitions: those that are wanted, or all of the group."""
    if wanted is not None:
        return wanted
    found: dict[str, list[int]] = {}
    for name, number in group.offsets if group is not None else ():
        found.setdefault(name, []).append(number)
    return list(found.items())


def _offset(ask: Ask, group: Group | None, code: int, place: tuple[str, int]) -> tuple[int, Committed | None]:
    if code or group is None:
        return code, None
    if ask.body.require_stable and any(place in one for one in group.unsettled.values()):
        return ErrorCode.UNSTABLE_OFFSET_COMMIT, None
    return ErrorCode.NONE, group.offsets.get(place)


def delete(ask: Ask) -> WireMessage:
    """Offsets of a group are forgotten, but for topics that its members read (KIP-496)."""
    kind, body = messages.OffsetDeleteResponse, ask.body
    code, group = _found(ask, body.group_id)
    if not code and group is None:
        code = ErrorCode.GROUP_ID_NOT_FOUND
    if not code and group is not None and group.members and group.protocol_type != "consumer":
        code = ErrorCode.NON_EMPTY_GROUP
    if code or group is None:
        return kind(error_code=code)
    topics = []
    for one in body.topics:
        answers = []
        for part in one.partitions:
            own = ask.refused(one.name, part.partition_index)
            if not own and ask.cluster.log(ask.cluster.topics.get(one.name), part.partition_index) is None:
                own = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not own and group.in_use:
                # What members subscribe to is in bytes of their own. Kafka reads them, here all topics count as read.
                own = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if not own:
                group.offsets.pop((one.name, part.partition_index), None)
            answers.append(kind.OffsetDeleteResponsePartition(partition_index=part.partition_index, error_code=own))
        topics.append(kind.OffsetDeleteResponseTopic(name=one.name, partitions=answers))
    return kind(topics=topics)
