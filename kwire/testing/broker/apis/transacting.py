"""Transactions: AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.committing import stored
from kwire.testing.broker.apis.naming import topic_of
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.transactions import Transaction

__all__ = ["add_offsets", "add_partitions", "commit_offsets", "end"]

_BATCHED_SINCE: Final = 4
_FENCED_SINCE: Final = 2
"""The version from which an old epoch is PRODUCER_FENCED; before, it is INVALID_PRODUCER_EPOCH."""
_BUMPS_SINCE: Final = 5
_IMPLICIT_SINCE: Final = 5
"""The version of TxnOffsetCommit from which the group joins the transaction by itself (KIP-890)."""
_IDS_SINCE: Final = 6


def _found(ask: Ask, name: str, producer_id: int, epoch: int, fenced: bool) -> Transaction | ErrorCode:
    """What is known of a transactional id, or the error."""
    if ask.refused():
        return ErrorCode(ask.refused())
    if ask.cluster.coordinator(name) is not ask.node:
        return ErrorCode.NOT_COORDINATOR
    found = ask.cluster.transactions.check(name, producer_id, epoch)
    return ErrorCode.INVALID_PRODUCER_EPOCH if found is ErrorCode.PRODUCER_FENCED and not fenced else found


def add_partitions(ask: Ask) -> WireMessage:
    """Partitions join a transaction, or one of several (v4)."""
    kind, body = messages.AddPartitionsToTxnResponse, ask.body
    if ask.version < _BATCHED_SINCE:
        producer = body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
        found = _found(ask, body.v3_and_below_transactional_id, *producer, fenced=ask.version >= _FENCED_SINCE)
        return kind(results_by_topic_v3_and_below=_added(ask, found, body.v3_and_below_topics, False))
    results = []
    for one in body.transactions:
        found = _found(ask, one.transactional_id, one.producer_id, one.producer_epoch, fenced=True)
        topics = _added(ask, found, one.topics, one.verify_only)
        results.append(kind.AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=topics))
    return kind(results_by_transaction=results)


def _added(
    ask: Ask, found: Transaction | ErrorCode, topics: Iterable[Any], verify: bool
) -> list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    kind, cluster = messages.AddPartitionsToTxnResponse, ask.cluster
    wanted = [
        (one.name, number, cluster.log(cluster.topics.get(one.name), number))
        for one in topics
        for number in one.partitions
    ]
    logs = [log for _, _, log in wanted if log is not None]
    whole = len(logs) == len(wanted)
    if isinstance(found, Transaction) and whole and not verify:
        cluster.transactions.add(found, logs, (), ask.now)
    made: dict[str, messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = {}
    for name, number, log in wanted:
        if not isinstance(found, Transaction):
            code: int = found
        elif not whole:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else ErrorCode.OPERATION_NOT_ATTEMPTED
        else:
            code = ErrorCode.NONE if log in found.logs else ErrorCode.TRANSACTION_ABORTABLE
        answer = kind.AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
        if name not in made:
            made[name] = kind.AddPartitionsToTxnTopicResult(name=name)
        made[name].results_by_partition.append(answer)
    return list(made.values())


def add_offsets(ask: Ask) -> WireMessage:
    """The offsets of a group join a transaction."""
    body = ask.body
    found = _found(ask, body.transactional_id, body.producer_id, body.producer_epoch, ask.version >= _FENCED_SINCE)
    if isinstance(found, Transaction):
        ask.cluster.transactions.add(found, (), (body.group_id,), ask.now)
        return messages.AddOffsetsToTxnResponse()
    return messages.AddOffsetsToTxnResponse(error_code=found)


def commit_offsets(ask: Ask) -> WireMessage:
    """Offsets that count when the transaction is committed. The coordinator of the group is asked."""
    kind, body, cluster = messages.TxnOffsetCommitResponse, ask.body, ask.cluster
    code = ask.refused() if ask.topic is None else 0
    group = None
    if not code and cluster.coordinator(body.group_id) is not ask.node:
        code = ErrorCode.NOT_COORDINATOR
    if not code:
        found = cluster.transactions.check(body.transactional_id, body.producer_id, body.producer_epoch)
        group = cluster.group(body.group_id)
        if not isinstance(found, Transaction):
            stale = found is ErrorCode.PRODUCER_FENCED
            code = ErrorCode.INVALID_PRODUCER_EPOCH if stale else found
        elif group is None:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        elif body.member_id:
            code = group.check(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
        if not code and isinstance(found, Transaction):
            if ask.version >= _IMPLICIT_SINCE:
                cluster.transactions.add(found, (), (body.group_id,), ask.now)
            elif body.group_id not in found.groups:
                code = ErrorCode.INVALID_TXN_STATE
    if not code and cluster.offsets >= cluster.settings.max_offsets:
        code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    topics = []
    for one in body.topics:
        answers = []
        for part in one.partitions:
            topic = topic_of(cluster, one.name, one.topic_id, ask.version >= _IDS_SINCE)
            own = code or ask.refused(one.name if topic is None else topic.name, part.partition_index)
            if not own and cluster.log(topic, part.partition_index) is None:
                own = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if not own and group is not None and topic is not None:
                waiting = group.unsettled.setdefault(body.producer_id, {})
                waiting[topic.name, part.partition_index] = stored(part)
            answers.append(kind.TxnOffsetCommitResponsePartition(partition_index=part.partition_index, error_code=own))
        topics.append(kind.TxnOffsetCommitResponseTopic(name=one.name, topic_id=one.topic_id, partitions=answers))
    return kind(topics=topics)


def end(ask: Ask) -> WireMessage:
    """A transaction is committed or aborted."""
    kind, body = messages.EndTxnResponse, ask.body
    found = _found(ask, body.transactional_id, body.producer_id, body.producer_epoch, ask.version >= _FENCED_SINCE)
    bump = ask.version >= _BUMPS_SINCE
    if not isinstance(found, Transaction):
        again = ask.cluster.transactions.ended(
            body.transactional_id, body.producer_id, body.producer_epoch, body.committed
        )
        if found is ErrorCode.PRODUCER_FENCED and bump and again is not None:
            return kind(producer_id=again.producer_id, producer_epoch=again.epoch)
        return kind(error_code=found)
    code = ask.cluster.transactions.end(found, body.committed, bump)
    if code or not bump:
        return kind(error_code=code)
    return kind(producer_id=found.producer_id, producer_epoch=found.epoch)
