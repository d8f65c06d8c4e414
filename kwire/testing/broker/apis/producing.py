"""Produce and InitProducerId: record sets are checked, get their offsets and are kept."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Batch
from kwire.testing.broker.apis.leading import current_leader, newer_leaders
from kwire.testing.broker.apis.naming import topic_of
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.logs import Log, RefusedError
from kwire.testing.broker.transactions import Transaction

__all__ = ["init_producer_id", "produce"]

_BATCHES_SINCE = 3
"""The version from which there is one batch of magic 2."""
_ZSTD_SINCE = 7
_ENDPOINTS_SINCE = 10
_IMPLICIT_SINCE = 12
"""The version from which partitions join a transaction by being written to (KIP-890)."""
_FENCED_SINCE = 4
_VERIFIED_SINCE = "3.6"
"""The release from which a transactional batch needs its transaction (KIP-890)."""
_IDS_SINCE = 13


def produce(ask: Ask) -> WireMessage:
    """Append record sets. Each partition has an offset or an error of its own."""
    kind = messages.ProduceResponse
    made, leaders = kind(), []
    for data in ask.body.topic_data:
        by_id = ask.version >= _IDS_SINCE
        topic = topic_of(ask.cluster, data.name, data.topic_id, by_id)
        name = data.name if topic is None else topic.name
        answers = []
        for part in data.partition_data:
            log = ask.cluster.log(topic, part.index)
            missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer = _partition(ask, name, log, part, missing)
            answers.append(answer)
            if log is not None and ask.version >= _ENDPOINTS_SINCE:
                leader = current_leader(log, answer.error_code, kind.LeaderIdAndEpoch)
                if leader is not None:
                    answer.current_leader = leader
                    leaders.append(log.leader)
        made.responses.append(
            kind.TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)
        )
    if leaders:
        made.node_endpoints = newer_leaders(ask.cluster, leaders, kind.NodeEndpoint)
    return made


def _partition(
    ask: Ask, name: str, log: Log | None, part: Any, missing: int
) -> messages.ProduceResponse.PartitionProduceResponse:
    kind = messages.ProduceResponse.PartitionProduceResponse
    code = ask.refused(name, part.index) or (missing if log is None else ErrorCode.NONE)
    why = None
    if not code:
        assert log is not None
        try:
            return kind(index=part.index, base_offset=_append(ask, log, part.records), log_start_offset=log.start)
        except RefusedError as error:
            code, why = error.code, error.why
    return kind(index=part.index, error_code=code, base_offset=-1, error_message=why)


def _append(ask: Ask, log: Log, data: bytes | memoryview | None) -> int:
    """The base offset of the records. Raises ``RefusedError``."""
    cluster = ask.cluster
    if ask.body.acks not in (-1, 0, 1):
        raise RefusedError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={ask.body.acks}")
    if log.leader != ask.node.id:
        raise RefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"node {log.leader} leads this partition")
    if data is None:
        raise RefusedError(ErrorCode.INVALID_RECORD, "no record set")
    if len(data) > cluster.settings.max_message:
        raise RefusedError(ErrorCode.MESSAGE_TOO_LARGE, f"{len(data)} bytes, at most {cluster.settings.max_message}")
    if cluster.size + len(data) > cluster.settings.max_log:
        raise RefusedError(ErrorCode.KAFKA_STORAGE_ERROR, "all logs together are full")
    batches_only = ask.version >= _BATCHES_SINCE
    before = log.size

    def may(batch: Batch) -> int:
        transactions, name = cluster.transactions, ask.body.transactional_id
        if ask.version >= _IMPLICIT_SINCE:
            known = transactions.check(name or "", batch.producer_id, batch.producer_epoch)
            if isinstance(known, Transaction):
                transactions.add(known, (log,), (), ask.now)
        return transactions.may_write(name, batch.producer_id, batch.producer_epoch, log)

    put = log.appended(
        bytes(data),
        oldest=2 if batches_only else 0,
        newest=2 if batches_only else min(cluster.magic, 1),
        zstd=ask.version >= _ZSTD_SINCE,
        may=may if cluster.at_least(_VERIFIED_SINCE) else None,
    )
    cluster.size += log.size - before
    return put.base_offset


def init_producer_id(ask: Ask) -> WireMessage:
    """The id and the epoch of an idempotent producer; one that says what it has gets the next epoch (KIP-360)."""
    kind, body, cluster = messages.InitProducerIdResponse, ask.body, ask.cluster
    code = ask.refused()
    if code:
        return kind(error_code=code, producer_epoch=-1)
    if body.transactional_id is not None:
        return _transactional(ask)
    if body.producer_id >= 0:
        epoch = cluster.producers.get(body.producer_id)
        if epoch is None or body.producer_epoch != epoch:
            return kind(error_code=ErrorCode.INVALID_PRODUCER_EPOCH, producer_epoch=-1)
        if epoch < 0x7FFE:
            cluster.producers[body.producer_id] = epoch + 1
            return kind(producer_id=body.producer_id, producer_epoch=epoch + 1)
    number, epoch = cluster.new_producer()
    return kind(producer_id=number, producer_epoch=epoch)


def _transactional(ask: Ask) -> WireMessage:
    """The producer of a transactional id from here on."""
    kind, body, name = messages.InitProducerIdResponse, ask.body, ask.body.transactional_id
    timeout = body.transaction_timeout_ms / 1000
    found: Transaction | ErrorCode
    if not name:
        found = ErrorCode.INVALID_REQUEST
    elif ask.cluster.coordinator(name) is not ask.node:
        found = ErrorCode.NOT_COORDINATOR
    elif not 0 < timeout <= ask.cluster.settings.max_transaction:
        found = ErrorCode.INVALID_TRANSACTION_TIMEOUT
    else:
        found = ask.cluster.transactions.begin(name, timeout, body.producer_id, body.producer_epoch)
    if isinstance(found, Transaction):
        return kind(producer_id=found.producer_id, producer_epoch=found.epoch)
    if found is ErrorCode.PRODUCER_FENCED and ask.version < _FENCED_SINCE:
        found = ErrorCode.INVALID_PRODUCER_EPOCH
    return kind(error_code=found, producer_epoch=-1)
