"""What administrators look at: producers, transactions, and partitions page by page (KIP-664, KIP-966)."""

from __future__ import annotations

from typing import Any, Final

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.apis.leading import leader_error
from kwire.testing.broker.asking import Ask
from kwire.testing.broker.transactions import STATES

__all__ = ["describe_producers", "describe_topic_partitions", "describe_transactions", "list_transactions"]

_MOST_PARTITIONS: Final = 2000
"""Partitions of a page (max.request.partition.size.limit)."""


def describe_producers(ask: Ask) -> WireMessage:
    """The idempotent producers that have written to partitions."""
    kind, topics = messages.DescribeProducersResponse, []
    for one in ask.body.topics:
        answers = []
        for number in one.partition_indexes:
            log = ask.cluster.log(ask.cluster.topics.get(one.name), number)
            code = ask.refused(one.name, number)
            code = code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if log is None else leader_error(log, ask.node))
            answer = kind.PartitionResponse(partition_index=number, error_code=code)
            if not code and log is not None:
                answer.active_producers = [
                    kind.ProducerState(
                        producer_id=id_,
                        producer_epoch=epoch,
                        last_sequence=last,
                        coordinator_epoch=-1,
                        current_txn_start_offset=log.open_transactions.get(id_, -1),
                    )
                    for id_, epoch, last in log.producers()
                ]
            answers.append(answer)
        topics.append(kind.TopicResponse(name=one.name, partitions=answers))
    return kind(topics=topics)


def describe_transactions(ask: Ask) -> WireMessage:
    """State, producer and partitions of transactional ids."""
    kind, made, cluster = messages.DescribeTransactionsResponse, [], ask.cluster
    for name in ask.body.transactional_ids:
        known = cluster.transactions.known(name)
        code = ask.refused()
        if not code and cluster.coordinator(name) is not ask.node:
            code = ErrorCode.NOT_COORDINATOR
        elif not code and known is None:
            code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        state = kind.TransactionState(transactional_id=name, error_code=code)
        if not code and known is not None:
            state.transaction_state = known.state
            state.transaction_timeout_ms = int(known.timeout * 1000)
            state.transaction_start_time_ms = -1
            if known.begun is not None:
                since = ask.now - known.begun
                state.transaction_start_time_ms = int((cluster.wall() - since) * 1000)
            state.producer_id, state.producer_epoch = known.producer_id, known.epoch
            places: dict[str, list[int]] = {}
            for log in known.logs:
                places.setdefault(log.topic, []).append(log.partition)
            state.topics = [kind.TopicData(topic=topic, partitions=numbers) for topic, numbers in places.items()]
        made.append(state)
    return kind(transaction_states=made)


def list_transactions(ask: Ask) -> WireMessage:
    """The transactional ids that this node coordinates, by state, producer and duration."""
    kind, body, cluster = messages.ListTransactionsResponse, ask.body, ask.cluster
    made = []
    for known in cluster.transactions.all():
        if cluster.coordinator(known.id) is not ask.node:
            continue
        open_for = -1.0 if known.begun is None else (ask.now - known.begun) * 1000
        if (body.state_filters and known.state not in body.state_filters) or (
            body.producer_id_filters and known.producer_id not in body.producer_id_filters
        ):
            continue
        if ask.version >= 1 and body.duration_filter >= 0 and open_for <= body.duration_filter:
            continue
        made.append(
            kind.TransactionState(
                transactional_id=known.id, producer_id=known.producer_id, transaction_state=known.state
            )
        )
    code = ask.refused()
    if not code and ask.version >= 2 and body.transactional_id_pattern:
        # Kafka takes expressions of RE2/J, which no library here has.
        code = ErrorCode.INVALID_REGULAR_EXPRESSION
    unknown = [one for one in body.state_filters if one not in STATES]
    return kind(error_code=code, unknown_state_filters=unknown, transaction_states=[] if code else made)


def describe_topic_partitions(ask: Ask) -> WireMessage:
    """Topics and partitions in the order of their names, as many as are wanted, and where to go on."""
    kind, body, cluster = messages.DescribeTopicPartitionsResponse, ask.body, ask.cluster
    names = sorted({one.name for one in body.topics} or cluster.topics)
    begin = ("", 0) if body.cursor is None else (body.cursor.topic_name, max(body.cursor.partition_index, 0))
    left = min(max(body.response_partition_limit, 1), _MOST_PARTITIONS)
    made = kind()
    for name in names:
        if name < begin[0]:
            continue
        topic = cluster.topics.get(name)
        code = ask.refused(name) or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else 0)
        answer = kind.DescribeTopicPartitionsResponseTopic(name=name, error_code=code)
        if topic is None or code:
            made.topics.append(answer)
            continue
        answer.topic_id = topic.id
        first = begin[1] if name == begin[0] else 0
        if left == 0:
            made.next_cursor = kind.Cursor(topic_name=name, partition_index=first)
            break
        answer.partitions = [_partition(kind, log) for log in topic.logs[first : first + left]]
        made.topics.append(answer)
        left -= len(answer.partitions)
        if first + len(answer.partitions) < len(topic.logs):
            made.next_cursor = kind.Cursor(topic_name=name, partition_index=first + len(answer.partitions))
            break
    return made


def _partition(kind: Any, log: Any) -> Any:
    return kind.DescribeTopicPartitionsResponsePartition(
        partition_index=log.partition,
        leader_id=log.leader,
        leader_epoch=log.epoch,
        replica_nodes=list(log.replicas),
        isr_nodes=list(log.replicas),
        eligible_leader_replicas=[],
        last_known_elr=[],
    )
