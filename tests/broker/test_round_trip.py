"""kwire's codec against real brokers over a plain socket: what it writes is taken, what it reads is what was meant."""

from __future__ import annotations

import importlib
import time
import uuid
from collections.abc import Callable
from typing import Any

from kafka_cluster import Cluster
from plain_socket import Connection

import kwire
from kwire import messages, records

STAMP = 1_700_000_000_000
PATIENCE = 60.0  # seconds: a broker on a machine that has much else to do
# What a client asks again for: metadata may name a leader that has not yet taken the partition over. In none of these
# cases was anything appended. Every other error is an answer.
NOT_YET = {
    3,  # UNKNOWN_TOPIC_OR_PARTITION
    5,  # LEADER_NOT_AVAILABLE
    6,  # NOT_LEADER_OR_FOLLOWER
    100,  # UNKNOWN_TOPIC_ID
}


def offered(connection: Connection) -> dict[int, range]:
    rows = connection.ask(messages.ApiVersionsRequest(), 0).api_keys
    return {row.api_key: range(row.min_version, row.max_version + 1) for row in rows}


def new_topic(connection: Connection) -> tuple[str, Any]:
    """A topic of its own, made by asking for it, and its id (None where the broker has none)."""
    name = f"topic-{uuid.uuid4().hex[:12]}"
    version = offered(connection)[3][-1]
    known = messages.MetadataRequest.MetadataRequestTopic
    end = time.monotonic() + PATIENCE
    while True:
        topic = connection.ask(messages.MetadataRequest(topics=[known(name=name)]), min(version, 12)).topics[0]
        if topic.error_code == 0 and topic.partitions and topic.partitions[0].leader_id >= 0:
            return name, topic.topic_id
        assert time.monotonic() < end, f"{name} has no leader: {topic}"
        time.sleep(0.1)


def settled(ask: Callable[[], Any]) -> Any:
    """What ``ask`` answers for a partition once its leader has taken it over; an error that stays is the answer."""
    end = time.monotonic() + PATIENCE
    while (got := ask()).error_code in NOT_YET and time.monotonic() < end:
        time.sleep(0.1)
    return got


def named(name: str, identity: Any, version: int, key: str) -> dict[str, Any]:
    return {"topic_id": identity} if version >= 13 else {key: name}


def produce(connection: Connection, topic: tuple[str, Any], data: bytes, version: int) -> Any:
    body = {
        "acks": -1,
        "timeout_ms": 30_000,
        "topic_data": [
            {**named(*topic, version, "name"), "partition_data": [{"index": 0, "records": data}]},
        ],
    }
    request = messages.ProduceRequest.from_dict(body)
    return settled(lambda: connection.ask(request, version).responses[0].partition_responses[0])


def fetch(connection: Connection, topic: tuple[str, Any], version: int, offset: int = 0) -> list[Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    body = {
        "max_wait_ms": 500,
        "min_bytes": 1,
        "topics": [{**named(*topic, version, "topic"), "partitions": [partition]}],
    }
    request = messages.FetchRequest.from_dict(body)
    got = settled(lambda: connection.ask(request, version).responses[0].partitions[0])
    assert got.error_code == 0, version
    return [record for batch in records.decode(got.records or b"") for record in batch.records]


def test_api_versions_is_answered_in_every_version(cluster: Cluster) -> None:
    with Connection(cluster.bootstrap("CLIENT")) as connection:
        rows = offered(connection)
        for version in rows[18]:
            body = messages.ApiVersionsRequest()
            if version >= 3:
                body = messages.ApiVersionsRequest(client_software_name="kwire", client_software_version="1")
            got = connection.ask(body, version)
            assert got.error_code == 0
            assert {row.api_key for row in got.api_keys} >= {0, 1, 3, 18}


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(cluster: Cluster) -> None:
    with Connection(cluster.bootstrap("CLIENT")) as connection:
        connection.send(b"\0\x12\0\x63" + b"\0\0\0\x07" + b"\xff\xff" + b"\0\0\0\0")
        got = kwire.decode_response(connection.receive(), api_key=18, api_version=99)
        assert (got.api_version, got.body.error_code) == (0, 35)
        assert [row.api_key for row in got.body.api_keys] == [18]


def test_metadata_names_the_broker_in_every_version(cluster: Cluster) -> None:
    with Connection(cluster.bootstrap("CLIENT")) as connection:
        for version in offered(connection)[3]:
            got = connection.ask(messages.MetadataRequest(topics=[]), version)
            assert [broker.port for broker in got.brokers] == cluster.ports("CLIENT")


def test_records_go_in_and_come_back_in_every_version_with_every_codec(cluster: Cluster) -> None:
    with Connection(cluster.bootstrap("CLIENT")) as connection:
        rows = offered(connection)
        # 4.x announces Produce v0-2 without taking them (KAFKA-18659), for the sake of an old librdkafka.
        modern = rows[1][0] >= 4
        checked = 0
        for version in rows[0]:
            if modern and version < 3:
                continue
            magic = 0 if version < 2 else 1 if version == 2 else 2
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                if codec == "zstd" and (version < 7 or cluster.legacy):
                    continue
                topic = new_topic(connection)
                headers = [("h", b"1"), ("null", None)] if magic == 2 and not cluster.legacy else []
                sent = [
                    records.Record(key=b"k", value=b"v" * 100, timestamp=STAMP if magic else None, headers=headers),
                    records.Record(key=None, value=b"", timestamp=STAMP + 1 if magic else None),
                    records.Record(key=b"", value=None, timestamp=STAMP + 2 if magic else None),
                ]
                answer = produce(connection, topic, records.encode(sent, magic=magic, compression=codec), version)
                assert (answer.error_code, answer.base_offset) == (0, 0), (version, codec)
                got = fetch(connection, topic, min(rows[1][-1], 12))
                assert [(one.key, one.value, one.headers) for one in got] == [
                    (one.key, one.value, one.headers) for one in sent
                ]
                assert [one.offset for one in got] == [0, 1, 2]
                if magic:
                    assert [one.timestamp for one in got] == [one.timestamp for one in sent]
                checked += 1
        assert checked > 20


def test_fetch_gives_the_same_records_in_every_version(cluster: Cluster) -> None:
    with Connection(cluster.bootstrap("CLIENT")) as connection:
        rows = offered(connection)
        topic = new_topic(connection)
        sent = [records.Record(key=b"%d" % n, value=b"value %d" % n, timestamp=STAMP + n) for n in range(20)]
        answer = produce(connection, topic, records.encode(sent, compression="lz4"), 9)
        assert answer.error_code == 0
        for version in rows[1]:
            if version >= 13 and topic[1].int == 0:
                continue  # this broker stores no topic ids
            # Below version 4 the broker converts down, to a compressed message set whose LZ4 header is the old one.
            got = fetch(connection, topic, version)
            assert [(one.offset, one.key, one.value) for one in got] == [
                (n, one.key, one.value) for n, one in enumerate(sent)
            ], version


def test_kafka_python_reads_what_kwire_wrote_and_the_other_way_round(cluster: Cluster) -> None:
    kafka: Any = importlib.import_module("kafka")  # missing, it is a failure: nobody would notice a skip
    address = cluster.bootstrap("CLIENT")
    with Connection(address) as connection:
        topic = new_topic(connection)
        sent = [records.Record(key=b"%d" % n, value=b"from kwire", timestamp=STAMP + n) for n in range(5)]
        assert produce(connection, topic, records.encode(sent, compression="gzip"), 9).error_code == 0
        producer = kafka.KafkaProducer(bootstrap_servers=address, compression_type="lz4", enable_idempotence=False)
        try:
            told = [producer.send(topic[0], key=b"%d" % n, value=b"from kafka-python") for n in range(5)]
            producer.flush(timeout=PATIENCE)
            assert [future.get(timeout=PATIENCE).offset for future in told] == [5, 6, 7, 8, 9]
        finally:
            producer.close()
        ours: list[Any] = []
        while len(ours) < 10:  # one answer need not hold all of it
            more = fetch(connection, topic, 11, len(ours))
            assert more
            ours += more
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, group_id=None)
    try:
        partition = kafka.TopicPartition(topic[0], 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        theirs: list[Any] = []
        end = time.monotonic() + PATIENCE
        while len(theirs) < 10 and time.monotonic() < end:
            theirs += [one for batch in consumer.poll(timeout_ms=200).values() for one in batch]
    finally:
        consumer.close()
    assert len(theirs) == 10
    assert [(one.offset, one.key, one.value, one.timestamp) for one in ours] == [
        (one.offset, one.key, one.value, one.timestamp) for one in theirs
    ]
