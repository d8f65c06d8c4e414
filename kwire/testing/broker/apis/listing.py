"""ListOffsets and OffsetForLeaderEpoch: offsets by time, and where an epoch of a leader ended."""

from __future__ import annotations

from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.leading import leader_error
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.logs import Log

__all__ = ["list_offsets", "offset_for_leader_epoch"]

_LATEST: Final = -1
_EARLIEST: Final = -2
_NEWEST_TIME: Final = -3
_EARLIEST_LOCAL: Final = -4
_COMMITTED: Final = 1
_EPOCHS_SINCE: Final = 4


def list_offsets(ask: Ask) -> WireMessage:
    """The first offset at a time, or one of the ends."""
    kind = messages.ListOffsetsResponse
    return kind(
        topics=[
            kind.ListOffsetsTopicResponse(
                name=one.name, partitions=[_partition(ask, one.name, part) for part in one.partitions]
            )
            for one in ask.body.topics
        ]
    )


def _partition(ask: Ask, name: str, part: Any) -> messages.ListOffsetsResponse.ListOffsetsPartitionResponse:
    made = messages.ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=part.partition_index)
    log = ask.cluster.log(ask.cluster.topics.get(name), part.partition_index)
    made.error_code = ask.refused(name, part.partition_index)
    if not made.error_code:
        if log is None:
            made.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            made.error_code = leader_error(log, ask.node, part.current_leader_epoch)
    if made.error_code or log is None:
        return made
    if ask.version == 0:
        made.old_style_offsets = _old_style(log, part.timestamp, part.max_num_offsets)
        return made
    found = _found(log, part.timestamp, ask.body.isolation_level == _COMMITTED)
    if found is not None:
        made.offset, made.timestamp = found
        made.leader_epoch = log.epoch if ask.version >= _EPOCHS_SINCE else -1
    return made


def _found(log: Log, timestamp: int, committed: bool) -> tuple[int, int] | None:
    """Offset and time; the ends have no time."""
    end = log.stable if committed else log.end
    if timestamp == _LATEST:
        return end, -1
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        return log.start, -1
    if timestamp == _NEWEST_TIME:
        return log.newest_record()
    found = log.at_time(timestamp) if timestamp >= 0 else None
    return None if found is None or found[0] >= end else found


def _old_style(log: Log, timestamp: int, most: int) -> tuple[int, ...]:
    """Where segments begin, the newest first (v0). A log is one segment."""
    found = {log.end: None, log.start: None} if timestamp == _LATEST else {log.start: None}
    return tuple(found)[: max(most, 0)]


def offset_for_leader_epoch(ask: Ask) -> WireMessage:
    """Where an epoch ended (KIP-101): each is remembered by the offset at which the next one began."""
    kind = messages.OffsetForLeaderEpochResponse
    topics = []
    for one in ask.body.topics:
        answers = []
        for part in one.partitions:
            log = ask.cluster.log(ask.cluster.topics.get(one.topic), part.partition)
            code = ask.refused(one.topic, part.partition)
            if not code and log is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not code and log is not None:
                code = leader_error(log, ask.node, part.current_leader_epoch)
            answer = kind.EpochEndOffset(error_code=code, partition=part.partition)
            if not code and log is not None:
                answer.leader_epoch, answer.end_offset = log.end_of(part.leader_epoch)
            answers.append(answer)
        topics.append(kind.OffsetForLeaderTopicResult(topic=one.topic, partitions=answers))
    return kind(topics=topics)
