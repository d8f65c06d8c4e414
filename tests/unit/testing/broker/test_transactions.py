"""The broker of ``kwire.testing``: transactions, their markers, and what is read of them."""

from __future__ import annotations

from typing import Any

from broker_talk import Bench, Client, Producer, fetch_request, part_of

from kwire import messages, records
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.logs import Topic


def committed(client: Client, topic: Topic, offset: int = 0) -> Any:
    request = fetch_request(topic, offset, 12, isolation_level=1, max_wait_ms=0)
    return part_of(client.ask(request, 12))


def start() -> tuple[Bench, Topic, Producer]:
    bench = Bench("3.9")
    return bench, bench.cluster.create_topic("orders"), Producer(bench)


def test_a_committed_transaction_is_read_and_has_a_marker() -> None:
    bench, topic, producer = start()
    assert producer.add("orders") == [0]
    assert producer.write(topic) == 0
    reader = bench.client()
    before = committed(reader, topic)
    assert (before.high_watermark, before.last_stable_offset, before.records) == (3, 0, b"")
    assert producer.end(True).error_code == 0
    after = committed(reader, topic)
    assert (after.high_watermark, after.last_stable_offset, after.aborted_transactions) == (4, 4, [])
    data, marker = records.decode(after.records, verify_crc=True)
    assert (data.is_transactional, data.is_control) == (True, False)
    assert (marker.is_control, marker.base_offset, marker.producer_id) == (True, 3, producer.id)
    assert [marker.control_type(one) for one in marker.records] == ["commit"]


def test_an_aborted_transaction_is_listed() -> None:
    bench, topic, producer = start()
    producer.add("orders")
    producer.write(topic)
    producer.end(False)
    producer.add("orders")
    producer.write(topic)
    producer.end(True)
    part = committed(bench.client(), topic)
    assert [(one.producer_id, one.first_offset) for one in part.aborted_transactions] == [(producer.id, 0)]
    assert [batch.base_offset for batch in records.decode(part.records)] == [0, 3, 4, 7]
    assert committed(bench.client(), topic, 4).aborted_transactions == []


def test_a_reader_of_committed_records_waits_for_the_end() -> None:
    bench, topic, producer = start()
    producer.add("orders")
    producer.write(topic)
    reader = bench.client()
    assert reader.ask(fetch_request(topic, 0, 12, isolation_level=1, max_wait_ms=9000), 12) is None
    producer.end(True)
    (answer,) = reader.answers()
    assert part_of(answer).last_stable_offset == 4


def test_a_partition_must_have_been_added() -> None:
    _, topic, producer = start()
    assert producer.write(topic) == ErrorCode.INVALID_TXN_STATE
    assert producer.add("orders", "none") == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert topic.logs[0].end == 0


def test_who_initialises_next_fences_the_other() -> None:
    bench, topic, old = start()
    old.add("orders")
    old.write(topic)
    new = Producer(bench)
    assert (new.id, new.epoch) == (old.id, old.epoch + 1)
    assert [one.control for one in topic.logs[0].entries] == [False, True]
    assert old.add("orders") == [ErrorCode.PRODUCER_FENCED]
    assert old.write(topic) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.end(True).error_code == ErrorCode.PRODUCER_FENCED
    assert old.init(producer_id=old.id, producer_epoch=old.epoch).error_code == ErrorCode.PRODUCER_FENCED
    new.add("orders")
    assert new.write(topic) == 0


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    bench, topic, producer = start()
    producer.add("orders")
    producer.write(topic)
    bench.wait(11)
    assert len(topic.logs[0].aborted) == 1
    assert producer.end(True).error_code == ErrorCode.PRODUCER_FENCED


def test_an_end_is_repeated_but_not_changed() -> None:
    _, topic, producer = start()
    assert producer.end(True).error_code == ErrorCode.INVALID_TXN_STATE
    producer.add("orders")
    producer.write(topic)
    codes = [producer.end(one).error_code for one in (True, True, False)]
    assert codes == [0, 0, ErrorCode.INVALID_TXN_STATE]


def test_end_txn_v5_gives_the_next_epoch() -> None:
    bench = Bench("4.4")
    topic = bench.cluster.create_topic("orders")
    producer = Producer(bench)
    producer.add("orders")
    producer.write(topic)
    answer = producer.end(True, 5)
    assert (answer.producer_id, answer.producer_epoch) == (producer.id, producer.epoch + 1)


def test_offsets_count_when_the_transaction_is_committed() -> None:
    _, _, producer = start()
    kind = messages.TxnOffsetCommitRequest

    def commit(offset: int) -> int:
        part = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = kind(
            transactional_id="t",
            group_id="g",
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            generation_id_or_member_epoch=-1,
            topics=[kind.TxnOffsetCommitRequestTopic(name="orders", partitions=[part])],
        )
        return int(producer.client.ask(request, 3).topics[0].partitions[0].error_code)

    def add() -> int:
        request = messages.AddOffsetsToTxnRequest(
            transactional_id="t", producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
        return int(producer.client.ask(request, 3).error_code)

    def fetched(stable: bool) -> tuple[int, int]:
        asked = messages.OffsetFetchRequest
        topics = [asked.OffsetFetchRequestTopics(name="orders", partition_indexes=(0,))]
        request = asked(groups=[asked.OffsetFetchRequestGroup(group_id="g", topics=topics)], require_stable=stable)
        part = producer.client.ask(request, 8).groups[0].topics[0].partitions[0]
        return part.committed_offset, part.error_code

    assert commit(5) == ErrorCode.INVALID_TXN_STATE
    assert [add(), commit(5)] == [0, 0]
    assert [fetched(False), fetched(True)] == [(-1, 0), (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    producer.end(False)
    assert fetched(True) == (-1, 0)
    assert [add(), commit(6)] == [0, 0]
    producer.end(True)
    assert fetched(True) == (6, 0)


def test_in_version_2_what_nothing_was_sent_of_is_aborted() -> None:
    bench = Bench("4.4")
    bench.cluster.create_topic("orders")
    producer = Producer(bench)
    assert producer.end(True, 5).error_code == ErrorCode.INVALID_TXN_STATE
    answer = producer.end(False, 5)
    assert (answer.error_code, answer.producer_epoch) == (0, producer.epoch + 1)


def test_in_version_2_a_client_asks_again_with_the_epoch_that_it_had() -> None:
    bench = Bench("4.4")
    bench.cluster.create_topic("orders")
    producer = Producer(bench)
    producer.add("orders")
    first, again = producer.end(True, 5), producer.end(True, 5)
    assert (first.error_code, first.producer_epoch) == (0, producer.epoch + 1)
    assert (again.error_code, again.producer_epoch) == (0, producer.epoch + 1)
    assert producer.end(False, 5).error_code == ErrorCode.PRODUCER_FENCED
