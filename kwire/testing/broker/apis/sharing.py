"""Share groups: ShareGroupHeartbeat, ShareGroupDescribe, ShareFetch and ShareAcknowledge (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.leading import current_leader, leader_error, newer_leaders
from kwire.testing.broker.asking import Ask, Wait
from kwire.testing.broker.consumers import by_topic
from kwire.testing.broker.logs import Log
from kwire.testing.broker.sharing import LOCK, RENEW, Acquired, Place, Share, ShareMember, ShareSession

__all__ = ["acknowledge", "describe", "fetch", "heartbeat"]

_LEAVES: Final = -1
_RENEWS_SINCE: Final = 2
"""The version from which locks are renewed (KIP-1222), and the number of records can be kept (KIP-1206)."""
_RECORD_LIMIT: Final = 1
"""The acquire mode in which it is."""
_ENDS: Final = -1
"""The session epoch of the last request of a session."""


def _error(ask: Ask, group_id: str | None) -> int:
    if ask.refused():
        return ask.refused()
    if not group_id:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if ask.cluster.coordinator(group_id) is ask.node else ErrorCode.NOT_COORDINATOR


def heartbeat(ask: Ask) -> WireMessage:
    """A member joins, stays or goes, and hears which partitions it reads."""
    kind, body = messages.ShareGroupHeartbeatResponse, ask.body
    code = _error(ask, body.group_id) or (0 if body.member_id else ErrorCode.INVALID_REQUEST)
    group = None if code else ask.cluster.group(body.group_id)
    if not code and group is None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not code and group is not None and (group.members or group.consumers is not None or group.streams is not None):
        code = ErrorCode.GROUP_ID_NOT_FOUND
    if code or group is None:
        return kind(error_code=code)
    share = group.shared(ask.cluster)
    if body.member_epoch == _LEAVES:
        return kind(error_code=share.leave(body.member_id), member_id=body.member_id, member_epoch=_LEAVES)
    client = ask.client_id, ask.host
    found = share.heartbeat(body.member_id, body.member_epoch, body.subscribed_topic_names, client, ask.now)
    if not isinstance(found, ShareMember):
        return kind(error_code=found)
    places = share.assigned(found, everything=body.member_epoch == 0)
    listed = kind.TopicPartitions
    assignment = None
    if places is not None:
        parts = [listed(topic_id=number, partitions=some) for number, some in by_topic(places).items()]
        assignment = kind.Assignment(topic_partitions=parts)
    return kind(
        member_id=found.id,
        member_epoch=found.epoch,
        heartbeat_interval_ms=int(ask.cluster.settings.consumer_heartbeat * 1000),
        assignment=assignment,
    )


def describe(ask: Ask) -> WireMessage:
    """The members of share groups."""
    kind, made = messages.ShareGroupDescribeResponse, []
    for name in ask.body.group_ids:
        code = _error(ask, name)
        group = None if code else ask.cluster.groups.get(name)
        if group is None or group.share is None:
            made.append(kind.DescribedGroup(error_code=code or ErrorCode.GROUP_ID_NOT_FOUND, group_id=name))
            continue
        share = group.share
        members = []
        for one in share.members.values():
            parts = []
            for number, some in by_topic(share.assigned(one, everything=True) or ()).items():
                topic = ask.cluster.by_id.get(number)
                named = "" if topic is None else topic.name
                parts.append(kind.TopicPartitions(topic_id=number, topic_name=named, partitions=some))
            members.append(
                kind.Member(
                    member_id=one.id,
                    member_epoch=one.epoch,
                    client_id=one.client_id,
                    client_host=f"/{one.host}",
                    subscribed_topic_names=list(one.topics),
                    assignment=kind.Assignment(topic_partitions=parts),
                )
            )
        made.append(
            kind.DescribedGroup(
                group_id=name,
                group_state="Stable" if members else "Empty",
                group_epoch=share.epoch,
                assignment_epoch=share.epoch,
                assignor_name="simple",
                members=members,
            )
        )
    return kind(groups=made)


def _session(ask: Ask) -> tuple[Share, ShareSession] | int:
    """The group and the session of a request, or an error code."""
    body = ask.body
    code = ask.refused() if ask.topic is None else 0
    group = ask.cluster.groups.get(body.group_id or "")
    if not code and (group is None or group.share is None or body.member_id not in group.share.members):
        code = ErrorCode.UNKNOWN_MEMBER_ID
    if code or group is None or group.share is None:
        return code
    session = group.share.session(body.member_id, ask.connection, body.share_session_epoch)
    return (group.share, session) if isinstance(session, ShareSession) else session


def _acknowledged(ask: Ask, share: Share, place: Place, batches: Iterable[Any]) -> int:
    """Apply acknowledgements. Gives the first error code."""
    topic = ask.cluster.by_id.get(place[0])
    if topic is None or not 0 <= place[1] < len(topic.logs):
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    part, code = share.partition(topic, place[1]), 0
    for one in batches:
        types = list(one.acknowledge_types)
        if RENEW in types and not (ask.version >= _RENEWS_SINCE and ask.body.is_renew_ack):
            code = code or ErrorCode.INVALID_REQUEST
        code = code or part.acknowledge(ask.body.member_id, one.first_offset, one.last_offset, types, ask.now)
    return code


def acknowledge(ask: Ask) -> WireMessage:
    """What a member has made of records."""
    kind, body = messages.ShareAcknowledgeResponse, ask.body
    found = ErrorCode.INVALID_SHARE_SESSION_EPOCH if body.share_session_epoch == 0 else _session(ask)
    if not isinstance(found, tuple):
        return kind(error_code=found)
    share, _ = found
    made = kind()
    for one in body.topics:
        answers = []
        for part in one.partitions:
            code = _acknowledged(ask, share, (one.topic_id, part.partition_index), part.acknowledgement_batches)
            answers.append(kind.PartitionData(partition_index=part.partition_index, error_code=code))
        made.responses.append(kind.ShareAcknowledgeTopicResponse(topic_id=one.topic_id, partitions=answers))
    if ask.version >= 2:
        made.acquisition_lock_timeout_ms = int(LOCK * 1000)
    if body.share_session_epoch == _ENDS:
        share.give_back(body.member_id)
    return made


def fetch(ask: Ask) -> WireMessage | Wait:
    """Records that nobody else has, after the acknowledgements of those that the member has."""
    kind, body = messages.ShareFetchResponse, ask.body
    renews = ask.version >= _RENEWS_SINCE and body.is_renew_ack
    limits = body.max_wait_ms, body.min_bytes, body.max_bytes, body.max_records if ask.version else 0
    found = ErrorCode.INVALID_REQUEST if renews and any(limits) else _session(ask)
    if not isinstance(found, tuple):
        return kind(error_code=found)
    share, session = found
    acknowledged: dict[Place, int] = {}
    for one in body.topics:
        for part in one.partitions:
            place = one.topic_id, part.partition_index
            session.places[place] = None
            if part.acknowledgement_batches:
                acknowledged[place] = _acknowledged(ask, share, place, part.acknowledgement_batches)
    for one in body.forgotten_topics_data:
        for number in one.partitions:
            session.places.pop((one.topic_id, number), None)
    if body.share_session_epoch == _ENDS:
        share.give_back(body.member_id)
        session.places.clear()
    due = ask.now + max(body.max_wait_ms, 0) / 1000

    def poll(now: float) -> WireMessage | None:
        made = kind(acquisition_lock_timeout_ms=int(LOCK * 1000))
        topics: dict[Any, Any] = {}
        leaders: list[int] = []
        left = 0 if renews else max(body.max_records, 1)
        some = False
        for place in session.places | acknowledged:
            answer, log = _partition(ask, share, place, left if place in session.places else 0, now)
            answer.acknowledge_error_code = acknowledged.get(place, 0)
            count = sum(one.last_offset - one.first_offset + 1 for one in answer.acquired_records)
            left = max(left - count, 0)
            if answer.error_code or count or place in acknowledged:
                some = True
            else:
                continue
            leader = None if log is None else current_leader(log, answer.error_code, kind.LeaderIdAndEpoch)
            if leader is not None:
                answer.current_leader = leader
                leaders.append(leader.leader_id)
            if place[0] not in topics:
                topics[place[0]] = kind.ShareFetchableTopicResponse(topic_id=place[0])
            topics[place[0]].partitions.append(answer)
        if not some and not renews and now < due:
            return None
        made.responses = list(topics.values())
        made.node_endpoints = newer_leaders(ask.cluster, leaders, kind.NodeEndpoint)
        return made

    answer = poll(ask.now)
    return Wait(due, poll) if answer is None else answer


def _partition(ask: Ask, share: Share, place: Place, most: int, now: float) -> tuple[Any, Log | None]:
    """The records of a partition for a member, ``most`` of them or a few more."""
    kind = messages.ShareFetchResponse
    made = kind.PartitionData(partition_index=place[1], records=b"")
    topic = ask.cluster.by_id.get(place[0])
    log = ask.cluster.log(topic, place[1])
    if topic is None or log is None:
        made.error_code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return made, None
    made.error_code = ask.refused(topic.name, place[1]) or leader_error(log, ask.node)
    if made.error_code or not most:
        return made, log
    part = share.partition(topic, place[1])
    strict = ask.version >= _RENEWS_SINCE and ask.body.share_acquire_mode == _RECORD_LIMIT
    got = part.acquire(ask.body.member_id, most, now, strict=strict, committed=share.committed)
    if got:
        made.records = _records(log, got)
        made.acquired_records = [
            kind.AcquiredRecords(first_offset=one.first, last_offset=one.last, delivery_count=one.count) for one in got
        ]
    return made, log


def _records(log: Log, got: list[Acquired]) -> bytes:
    """The batches that hold what was acquired."""
    first, last = got[0].first, got[-1].last
    parts = []
    for entry in log.after(first):
        if entry.first > last:
            break
        if any(one.first <= entry.last and entry.first <= one.last for one in got):
            parts.append(entry.data)
    return b"".join(parts)
