"""The broker of ``kwire.testing``: what is produced is checked, kept as it came, and fetched."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import BATCH, THREE, Bench, fetch_request, part_of, produce

from kwire import messages, records
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Record
from kwire.testing.broker.logs import Topic
from kwire.wire import ZERO_UUID


def test_every_version_produces_and_fetches() -> None:
    for release in ("0.9.0", "0.10.1", "2.8", "4.4"):
        bench = Bench(release)
        topic = bench.cluster.create_topic("orders")
        client = bench.client()
        offset = 0
        for version in bench.cluster.accepted[0]:
            data = (
                records.encode(THREE, magic=2)
                if version >= 3
                else records.encode([Record(b"k", one.value) for one in THREE], magic=min(bench.cluster.magic, 1))
            )
            answer = produce(client, topic, data, version)
            assert (answer.error_code, answer.base_offset) == (0, offset), (release, version)
            offset += 3
        for version in bench.cluster.accepted[1]:
            answer = part_of(client.ask(fetch_request(topic, 0, version), version))
            assert (answer.error_code, answer.high_watermark) == (0, offset), (release, version)
            got = [one for batch in records.decode(answer.records) for one in batch.records]
            assert [one.offset for one in got] == list(range(offset)), (release, version)
            assert {one.value for one in got} == {b"v0", b"v1", b"v2"}
            magics = {batch.magic for batch in records.decode(answer.records)}
            assert max(magics) <= (0 if version < 2 else 1 if version < 4 else 2)


def test_a_batch_keeps_its_bytes_but_for_offset_and_epoch() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    data = records.encode(THREE, compression="zstd")
    for _ in range(2):
        produce(client, topic, data, 9)
    kept = part_of(client.ask(fetch_request(topic, 3, 12), 12)).records
    assert kept[:16].hex() == f"{3:016x}{len(data) - 12:08x}{0:08x}"
    assert kept[16:] == data[16:]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_message_sets_get_offsets(magic: int, codec: Any) -> None:
    bench = Bench("0.10.1")
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    plain = [Record(b"k", one.value, timestamp=one.timestamp if magic else None) for one in THREE]
    for base in (0, 3):
        assert produce(client, topic, records.encode(plain, magic=magic, compression=codec), 2).base_offset == base
    got = [one for batch in records.decode(topic.logs[0].entries[-1].data, verify_crc=True) for one in batch.records]
    assert got[-1].offset == 5


def broken(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (broken(BATCH), 9, ErrorCode.CORRUPT_MESSAGE),
        (BATCH[:-5], 9, ErrorCode.CORRUPT_MESSAGE),
        (b"", 9, ErrorCode.CORRUPT_MESSAGE),
        (BATCH + BATCH, 9, ErrorCode.INVALID_RECORD),
        (records.encode(THREE, magic=1), 9, ErrorCode.INVALID_RECORD),
        (BATCH, 2, ErrorCode.CORRUPT_MESSAGE),
        (records.encode(THREE, compression="zstd"), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (records.encode(THREE, is_control=True), 9, ErrorCode.INVALID_RECORD),
        (records.encode([Record(None, bytes(2 << 20))]), 9, ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_what_is_no_record_set_is_refused(data: bytes, version: int, code: int) -> None:
    bench = Bench("3.9")
    topic = bench.cluster.create_topic("orders")
    answer = produce(bench.client(), topic, data, version)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert topic.logs[0].end == 0


def test_where_nothing_can_be_produced() -> None:
    bench = Bench(nodes=2)
    topic = bench.cluster.create_topic("orders", 2)
    other = next(one for one in (0, 1) if bench.cluster.nodes[one].id != topic.logs[0].leader)
    answer = produce(bench.client(other), topic, BATCH, 12)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == topic.logs[0].leader
    client = bench.client(1 - other)
    assert produce(client, topic, BATCH, 12, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(client, topic, BATCH, 12, acks=5).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    gone = Topic("gone", ZERO_UUID, [])
    assert produce(client, gone, BATCH, 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_0_has_no_response_and_an_error_closes_the_connection() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    assert produce(client, topic, BATCH, 9, acks=0) is None
    assert (topic.logs[0].end, client.closed) == (3, False)
    assert produce(client, topic, broken(BATCH), 9, acks=0) is None
    assert client.closed


def test_an_idempotent_batch_is_taken_once_and_in_order() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    first = client.ask(messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)

    def batch(sequence: int, epoch: int = 0) -> Any:
        mine = records.encode(THREE, producer_id=first.producer_id, producer_epoch=epoch, base_sequence=sequence)
        answer = produce(client, topic, mine, 9)
        return answer.error_code, answer.base_offset

    assert [batch(0), batch(3), batch(0), batch(3)] == [(0, 0), (0, 3), (0, 0), (0, 3)]
    assert batch(9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert batch(0, epoch=1) == (0, 6)
    assert batch(6) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert topic.logs[0].end == 9


def test_an_epoch_is_renewed_for_who_knows_it() -> None:
    client = Bench().client()
    ask = messages.InitProducerIdRequest
    first = client.ask(ask(transactional_id=None), 4)
    again = client.ask(ask(transactional_id=None, producer_id=first.producer_id, producer_epoch=0), 4)
    assert (again.producer_id, again.producer_epoch) == (first.producer_id, 1)
    late = client.ask(ask(transactional_id=None, producer_id=first.producer_id, producer_epoch=0), 4)
    assert late.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_fetch_waits_for_records() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    reader, writer = bench.client(), bench.client()
    assert reader.ask(fetch_request(topic, 0, 12), 12) is None
    bench.wait(0.4)
    assert reader.answers() == []
    produce(writer, topic, BATCH, 9)
    (answer,) = reader.answers()
    assert len(part_of(answer).records) == len(BATCH)
    assert reader.ask(fetch_request(topic, 3, 12), 12) is None
    bench.wait(0.5)
    (answer,) = reader.answers()
    assert part_of(answer).records == b""


def test_requests_behind_one_that_waits_are_answered_in_order() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    client.send(fetch_request(topic, 0, 12), 12)
    client.send(messages.MetadataRequest(topics=[]), 12)
    assert client.answers() == []
    bench.wait(1)
    assert [type(one).__name__ for one in client.answers()] == ["FetchResponse", "MetadataResponse"]


def test_the_first_batch_is_given_whatever_its_size() -> None:
    bench = Bench("3.9")
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    for _ in range(2):
        produce(client, topic, BATCH, 9)
    small = part_of(client.ask(fetch_request(topic, 0, 12, partition_max_bytes=5), 12))
    assert len(small.records) == len(BATCH)
    cut = part_of(client.ask(fetch_request(topic, 0, 2, partition_max_bytes=5), 2))
    assert len(cut.records) == 5


def test_a_fetch_from_inside_of_a_batch_gives_the_batch() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    produce(client, topic, BATCH, 9)
    assert len(part_of(client.ask(fetch_request(topic, 2, 12), 12)).records) == len(BATCH)
    assert part_of(client.ask(fetch_request(topic, 4, 12), 12)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_session_says_only_what_is_new() -> None:
    bench = Bench()
    orders, other = (bench.cluster.create_topic(name) for name in ("orders", "other"))
    client = bench.client()
    request = fetch_request(orders, 0, 13, session_epoch=0, max_wait_ms=0)
    request.topics += fetch_request(other, 0, 13).topics
    first = client.ask(request, 13)
    assert first.session_id > 0
    assert [one.topic_id for one in first.responses] == [orders.id, other.id]
    quiet = fetch_request(None, 0, 13, session_id=first.session_id, session_epoch=1, max_wait_ms=0)
    assert client.ask(quiet, 13).responses == []
    produce(client, other, BATCH, 13)
    quiet.session_epoch = 2
    third = client.ask(quiet, 13)
    assert [one.topic_id for one in third.responses] == [other.id]
    assert client.ask(quiet, 13).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    quiet.session_id = 999
    assert client.ask(quiet, 13).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_zstd_is_not_given_to_who_may_not_know_it() -> None:
    bench = Bench("3.9")
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    produce(client, topic, records.encode(THREE, compression="zstd"), 9)
    answer = part_of(client.ask(fetch_request(topic, 0, 9), 9))
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_offsets_by_time() -> None:
    bench = Bench("3.9")
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    produce(client, topic, BATCH, 9)
    kind = messages.ListOffsetsRequest

    def at(timestamp: int, version: int = 7) -> Any:
        part = kind.ListOffsetsPartition(timestamp=timestamp)
        answer = client.ask(kind(topics=[kind.ListOffsetsTopic(name="orders", partitions=[part])]), version)
        return answer.topics[0].partitions[0]

    assert [at(when).offset for when in (-1, -2, -3, 0, 1001, 5000)] == [3, 0, 2, 0, 1, -1]
    assert at(1001).timestamp == 1001
    assert list(at(-1, 0).old_style_offsets) == [3]


def test_records_before_an_offset_are_deleted() -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    for _ in range(2):
        produce(client, topic, BATCH, 9)
    kind = messages.DeleteRecordsRequest
    part = kind.DeleteRecordsPartition(partition_index=0, offset=4)
    answer = client.ask(kind(topics=[kind.DeleteRecordsTopic(name="orders", partitions=[part])]), 2)
    assert answer.topics[0].partitions[0].low_watermark == 4
    assert part_of(client.ask(fetch_request(topic, 3, 12), 12)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert bench.cluster.size == len(BATCH)


def test_where_an_epoch_ended() -> None:
    bench = Bench(nodes=2)
    topic = bench.cluster.create_topic("orders", 1, 2)
    log = topic.logs[0]
    produce(bench.client(log.leader - 1), topic, BATCH, 9)
    log.lead(3 - log.leader)
    kind = messages.OffsetForLeaderEpochRequest
    part = kind.OffsetForLeaderPartition(partition=0, current_leader_epoch=1, leader_epoch=0)
    request = kind(topics=[kind.OffsetForLeaderTopic(topic="orders", partitions=[part])])
    answer = bench.client(log.leader - 1).ask(request, 4).topics[0].partitions[0]
    assert (answer.leader_epoch, answer.end_offset) == (0, 3)
    part.current_leader_epoch = 0
    late = bench.client(log.leader - 1).ask(request, 4).topics[0].partitions[0]
    assert late.error_code == ErrorCode.FENCED_LEADER_EPOCH
