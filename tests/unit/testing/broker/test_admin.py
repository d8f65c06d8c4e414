"""The broker of ``kwire.testing``: configurations are altered, transactions, producers and partitions described."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import BATCH, Bench, Producer, produce

from kwire import messages
from kwire.protocol.error_codes import ErrorCode

SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(bench: Bench, *entries: tuple[str, int, str | None], name: str = "orders", **more: Any) -> int:
    kind = messages.IncrementalAlterConfigsRequest
    configs = [kind.AlterableConfig(name=one, config_operation=how, value=value) for one, how, value in entries]
    resource = kind.AlterConfigsResource(resource_type=2, resource_name=name, configs=configs)
    answer = bench.client().ask(kind(resources=[resource], **more), 1)
    return int(answer.responses[0].error_code)


def configs(bench: Bench) -> dict[str, str | None]:
    kind = messages.DescribeConfigsRequest
    resource = kind.DescribeConfigsResource(resource_type=2, resource_name="orders", configuration_keys=None)
    answer = bench.client().ask(kind(resources=[resource]), 4)
    return {one.name: one.value for one in answer.results[0].configs}


def test_entries_of_a_configuration_change_one_by_one() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    assert alter(bench, ("cleanup.policy", SET, "compact"), ("retention.ms", SET, "1")) == 0
    assert alter(bench, ("cleanup.policy", APPEND, "delete,compact"), ("retention.ms", DELETE, None)) == 0
    assert configs(bench) == {"cleanup.policy": "compact,delete"}
    assert alter(bench, ("cleanup.policy", SUBTRACT, "compact")) == 0
    assert alter(bench, ("cleanup.policy", DELETE, None), validate_only=True) == 0
    assert configs(bench) == {"cleanup.policy": "delete"}


def test_what_cannot_be_altered_says_so() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    assert alter(bench, ("a", 9, "b")) == ErrorCode.INVALID_REQUEST
    assert alter(bench, ("a", SET, "b" * 20_000)) == ErrorCode.INVALID_CONFIG
    assert alter(bench, ("a", SET, "b"), name="others") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert configs(bench) == {}


def test_a_whole_configuration_takes_the_place_of_another() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders", configs={"retention.ms": "1"})
    kind = messages.AlterConfigsRequest
    resource = kind.AlterConfigsResource(
        resource_type=2, resource_name="orders", configs=[kind.AlterableConfig(name="a", value="b")]
    )
    assert bench.client().ask(kind(resources=[resource]), 2).responses[0].error_code == 0
    assert configs(bench) == {"a": "b"}


def described(bench: Bench, name: str = "t") -> Any:
    request = messages.DescribeTransactionsRequest(transactional_ids=[name])
    return bench.client().ask(request, 0).transaction_states[0]


def listed(bench: Bench, version: int = 1, **more: Any) -> Any:
    return bench.client().ask(messages.ListTransactionsRequest(**more), version)


def test_a_transaction_is_described_from_its_begin_to_its_end() -> None:
    bench = Bench("3.9")
    bench.cluster.create_topic("orders")
    producer = Producer(bench)
    assert described(bench).transaction_state == "Empty"
    bench.wait(1)
    producer.add("orders")
    bench.wait(2)
    found = described(bench)
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == (
        "Ongoing",
        producer.id,
        10_000,
    )
    assert found.transaction_start_time_ms == 1_700_000_001_000
    assert [(one.topic, list(one.partitions)) for one in found.topics] == [("orders", [0])]
    producer.end(True)
    assert described(bench).transaction_state == "CompleteCommit"
    assert described(bench, "others").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_transactions_are_listed_by_what_is_asked() -> None:
    bench = Bench("4.4")
    bench.cluster.create_topic("orders")
    first, second = Producer(bench, "a"), Producer(bench, "b")
    first.add("orders")
    bench.wait(3)
    names = lambda answer: [one.transactional_id for one in answer.transaction_states]  # noqa: E731
    assert names(listed(bench)) == ["a", "b"]
    assert names(listed(bench, state_filters=["Ongoing"])) == ["a"]
    assert names(listed(bench, producer_id_filters=[second.id])) == ["b"]
    assert names(listed(bench, duration_filter=2000)) == ["a"]
    assert names(listed(bench, duration_filter=4000)) == []
    assert list(listed(bench, state_filters=["Nonsense"]).unknown_state_filters) == ["Nonsense"]
    assert listed(bench, 2, transactional_id_pattern="a.*").error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_producers_of_a_partition_are_described() -> None:
    bench = Bench("3.9")
    topic = bench.cluster.create_topic("orders")
    producer = Producer(bench)
    producer.add("orders")
    produce(bench.client(), topic, BATCH, 9)
    producer.write(topic)
    kind = messages.DescribeProducersRequest
    request = kind(topics=[kind.TopicRequest(name="orders", partition_indexes=[0, 7])])
    there, missing = bench.client().ask(request, 0).topics[0].partitions
    (one,) = there.active_producers
    assert (one.producer_id, one.last_sequence, one.current_txn_start_offset) == (producer.id, 2, 3)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_are_described_page_by_page() -> None:
    bench = Bench("4.4")
    for name, count in (("a", 2), ("b", 3), ("c", 1)):
        bench.cluster.create_topic(name, count)
    kind = messages.DescribeTopicPartitionsRequest
    found: list[tuple[str, int]] = []
    pages, cursor = 0, None
    while pages == 0 or cursor is not None:
        request = kind(topics=[], response_partition_limit=2)
        if cursor is not None:
            request.cursor = kind.Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index)
        answer = bench.client().ask(request, 0)
        page = [(one.name, part.partition_index) for one in answer.topics for part in one.partitions]
        assert len(page) <= 2
        found, cursor, pages = found + page, answer.next_cursor, pages + 1
    assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    missing = bench.client().ask(kind(topics=[kind.TopicRequest(name="x")]), 0)
    assert missing.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("release", "version", "supported", "finalized"),
    [("3.9", 3, [], []), ("4.4", 3, [], [1, 2]), ("4.4", 4, [1, 2], [1, 2])],
)
def test_a_new_release_says_its_features(
    release: str, version: int, supported: list[int], finalized: list[int]
) -> None:
    request = messages.ApiVersionsRequest(client_software_name="me", client_software_version="1")
    answer = Bench(release).client().ask(request, version)
    assert [one.max_version for one in answer.supported_features] == supported
    assert [one.max_version_level for one in answer.finalized_features] == finalized
