"""Scenarios in which something goes wrong: each names the rules that must find it, or what no rule is about yet."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
import time
from typing import Any

import kafka  # type: ignore[import-untyped]
from kafka import KafkaAdminClient
from plain_socket import Connection
from world import USERS, VALUE, World, scenario

import kwire
from kwire import messages, records

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def java_login(user: str, password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_jaas_config": f'{LOGIN} username="{user}" password="{password}";',
    }


# --- producers --------------------------------------------------------------------------------------------------------


@scenario("producer-per-message", clients="kcat")
def producer_for_each_message(x: World) -> None:
    """A script starts kcat for each message, once a second."""
    topic = x.topic(1)
    for _ in range(36):
        x.kcat("-P", "-t", topic, given=b"a\n")
        time.sleep(1)


@scenario("tiny-batches", clients="aiokafka")
def awaits_each_record(x: World) -> None:
    """A program waits for the answer to each record before it sends the next one."""
    topic = x.topic(1)

    async def play() -> None:
        async with x.aio_producer(acks=1) as one:
            for _ in range(1300):
                await one.send_and_wait(topic, VALUE)

    x.run(play())


@scenario("mixed-acks", clients="kcat")
def acks_of_two_kinds(x: World) -> None:
    """Two configurations of one program: acks=0 and acks=all."""
    topic = x.topic(1)
    for acks in ("0", "all"):
        x.kcat("-P", "-t", topic, given=b"a\nb\nc\n", acks=acks)


@scenario("no-compression", clients="Java")
def large_and_uncompressed(x: World) -> None:
    """Tens of megabytes in batches of some size, without compression."""
    x.java("produce", x.topic(3), 10, 1, 20_000, client_id=x.id("java"), linger_ms=50, batch_size=200_000, wait=True)


@scenario("skewed-partitions", clients="kafka-python")
def one_key_for_all(x: World) -> None:
    """19 of 20 records have the same key: one of six partitions gets nearly all."""
    topic = x.topic(6)
    with contextlib.closing(x.producer()) as one:
        for k in range(1500):
            one.send(topic, os.urandom(900), key=b"same" if k % 20 else b"k%d" % k)


@scenario("large-messages", clients="kafka-python")
def larger_than_the_broker_takes(x: World) -> None:
    """Messages of 3 MB, where brokers take 1 MiB."""
    topic = x.topic(1)
    with contextlib.closing(x.producer(max_request_size=5_000_000, enable_idempotence=False)) as one:
        for _ in range(3):
            with contextlib.suppress(kafka.errors.KafkaError):
                one.send(topic, b"x" * 3_000_000).get(10)


@scenario("throttled", clients="Java")
def beyond_its_quota(x: World) -> None:
    """A producer writes more than the quota of its client_id."""
    topic, client = x.topic(1), x.id("java")
    x.java("quota", client, 20_000, wait=True)
    x.java("produce", topic, 10, 10, 1000, client_id=client, wait=True)


@scenario("fatal-errors", clients="Java, kafka-python", alone=True)
def too_few_replicas(x: World) -> None:
    """min.insync.replicas is 2, there are two replicas, and the broker of one is down: acks=all cannot be kept."""
    topic = x.topic(1, replicas=2, min_insync_replicas=2)
    leader = x.leader(topic)
    with x.admin() as admin:
        ((one,),) = (told["partitions"] for told in admin.describe_topics([topic]))
    follower = next(node for node in x.cluster.nodes if node.node_id in one["replica_nodes"] and node is not leader)
    x.cluster.stop_node(follower)
    try:
        x.java("produce", topic, 5, 500, 100, client_id=x.id("java"), delivery_timeout_ms=8000, request_timeout_ms=3000)
        with contextlib.closing(x.producer(acks="all", delivery_timeout_ms=4000, request_timeout_ms=2000)) as producer:
            sent = producer.send(topic, VALUE)
            with contextlib.suppress(kafka.errors.KafkaError):
                sent.get(10)
        x.rest()
    finally:
        x.cluster.start_node(follower)
        x.cluster.wait_until_ready()


@scenario("fatal-errors", clients="kcat")
def no_keys_in_a_compacted_topic(x: World) -> None:
    """Records without keys for a topic that is compacted."""
    x.kcat("-P", "-t", x.topic(1, cleanup_policy="compact"), given=b"a\nb\nc\n", message_timeout_ms=8000)


@scenario("fatal-errors", clients="kafka-python", old=("wrong-times",))
def times_in_the_wrong_unit(x: World) -> None:
    """A program gives microseconds where milliseconds are asked for: its records are of the year 58,000. Brokers
    before 4.0 take them, and then retention by time never deletes them."""
    topic = x.topic(1)
    with contextlib.closing(x.producer(enable_idempotence=False)) as one:
        for _ in range(5):
            with contextlib.suppress(kafka.errors.KafkaError):
                one.send(topic, VALUE, timestamp_ms=time.time_ns() // 1000).get(10)


@scenario("wrong-times", clients="kafka-python")
def times_in_seconds(x: World) -> None:
    """A program gives seconds where milliseconds are asked for: its records are of January 1970, and retention by time
    deletes them at once."""
    topic = x.topic(1)
    with contextlib.closing(x.producer()) as one:
        for _ in range(5):
            one.send(topic, VALUE, timestamp_ms=int(time.time())).get(10)


@scenario("cut-off-clients", clients="kcat", old=())
def client_of_kafka_0_9(x: World) -> None:
    """A client that is set up for brokers of 0.9: 4.x closes its connections. 3.9 serves it."""
    x.kcat(
        "-P", "-t", x.topic(1), given=b"a\nb\nc\n", api_version_request="false", broker_version_fallback="0.9.0",
        message_timeout_ms=15_000,
    )  # fmt: skip


# --- transactions -----------------------------------------------------------------------------------------------------


@scenario("aborted-transactions", clients="Java")
def mostly_aborted(x: World) -> None:
    """Five of six transactions are aborted."""
    x.java("transactions", x.topic(2), 24, 6, 200, transactional_id=x.id("tx"), client_id=x.id("java"), wait=True)


@scenario("fenced-producers", clients="aiokafka")
def two_with_one_transactional_id(x: World) -> None:
    """A second producer with the same transactional.id: the first one is a zombie, and does not stop."""
    topic = x.topic(1)

    async def play() -> None:
        own: dict[str, Any] = {"transactional_id": x.id("tx")}
        async with x.aio_producer(x.id("one"), **own) as one:
            await one.begin_transaction()
            await one.send_and_wait(topic, VALUE)
            async with x.aio_producer(x.id("two"), **own) as two:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(one.send_and_wait(topic, VALUE), 10)
                await two.begin_transaction()
                await two.send_and_wait(topic, VALUE)
                await two.commit_transaction()

    x.run(play())


@scenario("fatal-errors", clients="Java")
def transaction_timeout_too_long(x: World) -> None:
    """transaction.timeout.ms is an hour, and brokers allow a quarter of an hour."""
    own: dict[str, Any] = {"transactional_id": x.id("tx"), "transaction_timeout_ms": 3_600_000}
    x.java("transactions", x.topic(1), 1, 0, 100, client_id=x.id("java"), wait=True, **own)


@scenario("hanging-transactions", clients="aiokafka, Java, kafka-python")
def transaction_that_hangs(x: World) -> None:
    """A transaction is begun and never ended. Others go on writing; readers of what is committed (Java) stand still."""
    topic = x.topic(1)
    x.java(
        "consume", topic, 90, 0, client_id=x.id("java"), group_id=x.name, isolation_level="read_committed",
        auto_offset_reset="earliest",
    )  # fmt: skip

    async def hangs() -> None:
        async with x.aio_producer(transactional_id=x.id("tx"), transaction_timeout_ms=600_000) as one:
            await one.begin_transaction()
            await one.send_and_wait(topic, VALUE)
            await asyncio.sleep(85)

    x.at_once(lambda: x.run(hangs()), lambda: x.feed(topic, 85, 10, partitions=1))


# --- groups -----------------------------------------------------------------------------------------------------------


@scenario("rebalance-loop", clients="kafka-python")
def comes_and_goes(x: World) -> None:
    """A member leaves after two seconds and starts again, over and over; another one stays."""
    topic = x.topic(3)

    def comes() -> None:
        for _ in range(9):
            x.drain(topic, 2, group=x.name, client_id=x.id("comes"))

    x.at_once(lambda: x.drain(topic, 40, group=x.name, client_id=x.id("stays")), comes)


@scenario("late-heartbeats", clients="kcat")
def process_that_freezes(x: World) -> None:
    """A member's process stands still for longer than its session timeout."""
    one = x.kcat("-G", x.name, x.topic(1), wait=False, session_timeout_ms=6000, heartbeat_interval_ms=1000)
    time.sleep(10)
    one.send_signal(signal.SIGSTOP)
    time.sleep(9)
    one.send_signal(signal.SIGCONT)
    time.sleep(10)
    one.terminate()


@scenario("late-polls", clients="Java")
def works_longer_than_allowed(x: World) -> None:
    """A program works for 7 s between polls, and max.poll.interval.ms is 3 s."""
    topic = x.topic(1)
    x.feed(topic, 2, 60, partitions=1)
    x.java(
        "consume", topic, 35, 7000, client_id=x.id("java"), group_id=x.name, auto_offset_reset="earliest",
        max_poll_interval_ms=3000, max_poll_records=5, wait=True,
    )  # fmt: skip


@scenario("stopped-consumers", clients="kafka-python")
def stuck_in_its_work(x: World) -> None:
    """A consumer does not come back from its work. Its thread of heartbeats goes on."""
    topic = x.topic(1)
    x.fill(topic, 50)
    with contextlib.closing(x.consumer(topic, group_id=x.name, heartbeat_interval_ms=1000)) as one:
        end = time.monotonic() + 8
        while time.monotonic() < end:
            one.poll(timeout_ms=500)
        time.sleep(75)


@scenario("fatal-errors", clients="Java")
def two_of_one_instance_id(x: World) -> None:
    """Two members have the same group.instance.id: the first one is fenced."""
    topic = x.topic(1)
    x.java("consume", topic, 40, 0, client_id=x.id("one"), group_id=x.name, group_instance_id="same")
    time.sleep(15)
    x.java("consume", topic, 10, 0, client_id=x.id("two"), group_id=x.name, group_instance_id="same", wait=True)


@scenario("fatal-errors", clients="Java, kcat")
def no_strategy_in_common(x: World) -> None:
    """Two programs use one group, with assignment strategies of their own."""
    topic = x.topic(2)
    sticky = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    x.java("consume", topic, 30, 0, client_id=x.id("java"), group_id=x.name, partition_assignment_strategy=sticky)
    time.sleep(15)
    one = x.kcat("-G", x.name, topic, wait=False, partition_assignment_strategy="roundrobin")
    time.sleep(8)
    one.terminate()


# --- consumers --------------------------------------------------------------------------------------------------------


@scenario("offset-resets", clients="kafka-python, Java, kcat")
def deleted_before_it_was_read(x: World) -> None:
    """Records are deleted that three groups have not read."""
    topic = x.topic(2)

    def read() -> None:
        x.drain(topic, 4, group=x.id("py"), max_poll_records=50, commit=True)
        x.java(
            "consume", topic, 6, 0, client_id=x.id("java"), group_id=x.id("java"), auto_offset_reset="earliest",
            wait=True,
        )  # fmt: skip
        x.kcat("-G", x.id("kcat"), "-c", 20, topic, auto_offset_reset="earliest")

    x.feed(topic, 2, 150, partitions=2)
    read()
    x.feed(topic, 2, 150, partitions=2)
    x.delete_records(topic, 2)
    x.feed(topic, 1, 60, partitions=2)
    read()


@scenario("offsets-back", clients="aiokafka")
def commits_what_it_has_read_before(x: World) -> None:
    """A consumer goes back to the beginning and commits there, without anybody having asked for it."""
    topic = x.topic(1)
    x.fill(topic, 100)

    async def play() -> None:
        async with x.aio_consumer(topic, group_id=x.name, enable_auto_commit=False) as one:
            for _ in range(50):
                await one.getone()
            await one.commit()
            await one.seek_to_beginning()
            for _ in range(10):
                await one.getone()
            await one.commit()

    x.run(play())


@scenario("over-committing", clients="aiokafka")
def commits_each_record(x: World) -> None:
    """A consumer commits after each record."""
    topic = x.topic(1)
    x.fill(topic, 450)

    async def play() -> None:
        async with x.aio_consumer(topic, group_id=x.name, enable_auto_commit=False) as one:
            for _ in range(400):
                await one.getone()
                await one.commit()

    x.run(play())


@scenario("empty-fetches", clients="kcat, Java")
def does_not_let_the_broker_wait(x: World) -> None:
    """fetch.max.wait.ms is 5, and nobody writes."""
    topic = x.topic(1)
    own: dict[str, Any] = {"client_id": x.id("java"), "group_id": x.name, "fetch_max_wait_ms": 5}
    x.java("consume", topic, 18, 0, **own)
    one = x.kcat("-C", "-t", topic, wait=False, fetch_wait_max_ms=5)
    time.sleep(20)
    one.terminate()


@scenario("lag", clients="Java, kafka-python", true=("no-compression",))
def slower_than_what_is_written(x: World) -> None:
    """A job writes tens of thousands of records; a group reads 60 a second."""
    topic = x.topic(6)
    x.java("produce", topic, 3, 0, 20, client_id=x.id("writer"), linger_ms=100, wait=True)
    x.drain(topic, 16, group=x.name, max_poll_records=20, pause=0.3, commit=True)


@scenario("lag", clients="Java, kafka-python")
def lag_that_only_grows(x: World) -> None:
    """A consumer falls behind by 60 records each second, and goes on committing."""
    topic = x.topic(3)
    x.java("produce", topic, 60, 10, 100, client_id=x.id("writer"), linger_ms=100)
    x.drain(topic, 56, group=x.name, max_poll_records=20, pause=0.7, commit=True)


@scenario("no-progress", clients="kafka-python", true=("rebalance-loop",))
def crashes_at_the_same_record(x: World) -> None:
    """A consumer ends with an error at a record that it cannot read, and is started again after some seconds."""
    topic = x.topic(1)
    x.fill(topic, 50)
    for _ in range(7):
        x.drain(topic, 2, group=x.name, enable_auto_commit=False)
        time.sleep(7)


@scenario("lookup-storm", clients="Java")
def asks_for_the_end_of_the_log(x: World) -> None:
    """A program asks for the end of the log in each turn of a loop, some hundred times a second."""
    x.java("lookups", x.topic(1), 20, 5, client_id=x.id("java"), wait=True)


@scenario("small-fetches", clients="Java")
def reads_in_crumbs(x: World) -> None:
    """max.partition.fetch.bytes is 1: each Fetch brings one batch of a log that has thousands."""
    topic = x.topic(1)
    x.fill(topic, 5000, linger_ms=5, batch_size=450)
    x.java(
        "consume", topic, 15, 0, client_id=x.id("java"), group_id=x.name, auto_offset_reset="earliest",
        max_partition_fetch_bytes=1, wait=True,
    )  # fmt: skip


# --- clients ----------------------------------------------------------------------------------------------------------


@scenario("metadata-storm", clients="kafka-python")
def asks_for_metadata_in_a_loop(x: World) -> None:
    """A program lists topics ten times a second."""
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=x.at, client_id=x.id("py"))) as one:
        for _ in range(150):
            one.list_topics()
            time.sleep(0.1)


@scenario("connection-churn", clients="kcat")
def new_connections_all_the_time(x: World) -> None:
    """A probe of some monitoring starts kcat three times a second."""
    for _ in range(120):
        x.kcat("-L")


@scenario("unknown-topics", clients="aiokafka")
def topic_that_does_not_exist(x: World) -> None:
    """A consumer is set up for a topic whose name is wrong."""

    async def play() -> None:
        async with x.aio_consumer() as one:
            import aiokafka  # type: ignore[import-untyped]

            one.assign([aiokafka.TopicPartition(f"{x.name}-nothing", 0)])
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(one.getone(), 30)

    x.run(play())


@scenario("unknown-topics", clients="Java, kafka-python")
def topic_that_is_deleted(x: World) -> None:
    """A topic is deleted while programs write to it and read it."""
    topic = x.topic(3)

    def delete() -> None:
        time.sleep(12)
        with x.admin() as admin:
            admin.delete_topics([topic])

    x.java("produce", topic, 40, 50, 100, client_id=x.id("java"), max_block_ms=5000)
    x.at_once(delete, lambda: x.drain(topic, 40, group=x.name))


@scenario("denials", clients="Java, kcat", lane="SASL")
def may_not_write(x: World) -> None:
    """A user without rights writes and reads."""
    topic = x.topic(1)
    login = java_login("mallory", USERS["mallory"])
    x.java("produce", topic, 3, 500, 100, client_id=x.id("java"), max_block_ms=4000, **login)
    kcat: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanisms": "PLAIN",
        "sasl_username": "mallory",
    }
    one = x.kcat("-C", "-t", topic, wait=False, sasl_password=USERS["mallory"], **kcat)
    time.sleep(10)
    one.terminate()


@scenario("sasl-failures", clients="Java, aiokafka", lane="SASL")
def wrong_password(x: World) -> None:
    """A password that was changed yesterday."""
    topic = x.topic(1)
    x.java("produce", topic, 3, 500, 100, client_id=x.id("java"), max_block_ms=3000, **java_login("kwire", "old"))

    async def play() -> None:
        login: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "kwire",
        }
        with contextlib.suppress(Exception):
            async with x.aio_producer(sasl_plain_password="old", **login):
                pass

    x.run(play())


@scenario("tls-mismatch", clients="Java, kcat")
def tls_where_there_is_none(x: World) -> None:
    """Clients speak TLS to a listener that does not."""
    topic = x.topic(1)
    x.java("produce", topic, 3, 500, 100, client_id=x.id("java"), max_block_ms=15_000, security_protocol="SSL")
    one = x.kcat("-L", "-m", 15, wait=False, security_protocol="ssl", enable_ssl_certificate_verification="false")
    time.sleep(17)
    one.terminate()


@scenario("tls-mismatch", clients="Java, kcat", lane="TLS")
def no_tls_where_there_is_some(x: World) -> None:
    """Clients do not speak TLS to a listener that does."""
    topic = x.topic(1)
    x.java("produce", topic, 3, 500, 100, client_id=x.id("java"), max_block_ms=15_000)
    x.kcat("-L", "-m", 15)


# --- what stands between, and what no current client does -------------------------------------------------------------


@scenario("stale-leaders", clients="plain socket")
def never_asks_who_leads(x: World) -> None:
    """A client goes on writing to a broker that does not lead."""
    topic = x.topic(1)
    leader = x.leader(topic)
    other = next(node for node in x.cluster.nodes if node is not leader)
    partition = {"index": 0, "records": records.encode([records.Record(value=VALUE)])}
    body = {"acks": 1, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": [partition]}]}
    with Connection(x.cluster.address(x.lane, other), x.id("raw")) as one:
        for _ in range(30):
            one.ask(messages.ProduceRequest.from_dict(body), 9)
            time.sleep(0.1)


@scenario("out-of-order-responses", clients="plain socket")
def proxy_that_mixes_up_responses(x: World) -> None:
    """A proxy hands on the second of two responses first. The capture has both its sides."""
    address = x.cluster.address(x.lane, x.cluster.nodes[0])
    with socket.create_server(("127.0.0.1", x.spare)) as server:
        threading.Thread(target=_mixes_up, args=(server, address), daemon=True).start()
        with Connection(f"127.0.0.1:{x.spare}", x.id("raw")) as one:
            for pair in range(10):
                for k in (2 * pair, 2 * pair + 1):
                    body = messages.MetadataRequest(topics=None)
                    one.send(kwire.encode_request(body, api_version=8, correlation_id=k, client_id=x.id("raw")))
                one.receive()
                one.receive()


def _mixes_up(server: socket.socket, address: str) -> None:
    client, _ = server.accept()
    with client, Connection(address) as broker:
        end = Connection.__new__(Connection)
        end.socket = client
        with contextlib.suppress(OSError, ConnectionError):
            while True:
                for _ in range(2):
                    broker.send(end.receive())
                for frame in reversed([broker.receive() for _ in range(2)]):
                    end.send(frame)


# --- brokers ----------------------------------------------------------------------------------------------------------


@scenario("stalled-brokers", clients="Java, kafka-python, aiokafka", alone=True)
def broker_that_stands_still(x: World) -> None:
    """A broker stands still for 5 s, as in a long garbage collection."""
    topic = x.topic(3)
    node = x.leader(topic)

    def stop() -> None:
        time.sleep(8)
        with x.stands_still(node):
            time.sleep(5)

    async def writes() -> None:
        async with x.aio_producer() as one:
            for _ in range(360):
                await one.send(topic, VALUE)
                await asyncio.sleep(0.05)

    x.java("produce", topic, 18, 50, 100, client_id=x.id("java-p"))
    x.java("consume", topic, 18, 0, client_id=x.id("java-c"), group_id=x.id("java"))
    feed = lambda: x.feed(topic, 18, 20)  # noqa: E731
    x.at_once(feed, lambda: x.drain(topic, 18, group=x.id("py")), lambda: x.run(writes()), stop)


@scenario("duplicate-produces", clients="kafka-python, Java", true=("stalled-brokers",), alone=True)
def sends_again_without_idempotence(x: World) -> None:
    """A leader stands still for longer than the request timeout of producers without idempotence."""
    topic = x.topic(1)
    node = x.leader(topic)
    own: dict[str, Any] = {
        "acks": 1,
        "enable_idempotence": False,
        "request_timeout_ms": 2000,
        "delivery_timeout_ms": 30_000,
    }

    def stop() -> None:
        time.sleep(6)
        with x.stands_still(node):
            time.sleep(4)

    java: dict[str, Any] = {key: str(value).lower() for key, value in own.items()}
    x.java("produce", topic, 14, 100, 100, client_id=x.id("java"), **java)
    x.at_once(lambda: x.feed(topic, 14, 10, partitions=1, client_id=x.id("py"), **own), stop)


@scenario("retried-batches", clients="Java", true=("stalled-brokers",), alone=True)
def sends_again_with_idempotence(x: World) -> None:
    """The same with idempotence: nothing is there twice, but somebody was slow."""
    topic = x.topic(1)
    node = x.leader(topic)

    def stop() -> None:
        time.sleep(6)
        with x.stands_still(node):
            time.sleep(4)

    own: dict[str, Any] = {"request_timeout_ms": 2000, "delivery_timeout_ms": 30_000}
    x.java("produce", topic, 14, 100, 100, client_id=x.id("java"), **own)
    stop()


@scenario(
    "stalled-brokers", clients="Java, kafka-python, kcat", true=("duplicate-produces", "retried-batches"), alone=True
)
def broker_that_never_answers_again(x: World) -> None:
    """A broker stands still for 40 s: its clients give up after 5 s, close their connections, and try again."""
    topic = x.topic(3)
    node = x.leader(topic)

    def stop() -> None:
        time.sleep(8)
        with x.stands_still(node):
            time.sleep(40)

    own: dict[str, Any] = {"request_timeout_ms": 5000, "delivery_timeout_ms": 60_000}
    x.java("produce", topic, 55, 50, 100, client_id=x.id("java-p"), **own)
    x.java("consume", topic, 55, 0, client_id=x.id("java-c"), group_id=x.id("java"), request_timeout_ms=5000)
    kcat = x.kcat("-C", "-t", topic, wait=False, socket_timeout_ms=6000)
    x.at_once(lambda: x.feed(topic, 55, 10, **own), stop)
    kcat.terminate()


@scenario(
    "offline-partitions", "unreachable-brokers", clients="Java, kafka-python", true=("retried-batches",), alone=True
)
def broker_that_is_gone(x: World) -> None:
    """A broker is killed and does not come back for 85 s. Topics have one replica, and a consumer knows this broker
    only."""
    topic = x.topic(3, replicas=1)
    node = x.leader(topic)
    x.java("produce", topic, 95, 50, 100, client_id=x.id("java-p"))

    def kill() -> None:
        time.sleep(15)
        assert node.process is not None
        node.process.kill()
        node.process.wait(10)
        only = x.cluster.address(x.lane, node)
        x.java("consume", topic, 45, 0, client_id=x.id("java-c"), group_id=x.name, bootstrap_servers=only)
        time.sleep(85)
        x.cluster.start_node(node)

    x.at_once(kill, lambda: x.feed(topic, 105, 10))


@scenario("late-acks", clients="Java, kafka-python", true=("stalled-brokers",), alone=True)
def follower_that_stands_still(x: World) -> None:
    """A follower stands still for 15 s: with acks=all the leader does not answer Produce until it is given up. A
    consumer still gets answers."""
    topic = x.topic(1)
    leader = x.leader(topic)
    node = next(one for one in x.cluster.nodes if one is not leader)

    def stop() -> None:
        time.sleep(8)
        with x.stands_still(node):
            time.sleep(15)

    for k in range(2):
        x.java("produce", topic, 30, 50, 100, client_id=x.id(f"java-{k}"), acks="all")
    x.at_once(stop, lambda: x.drain(topic, 30, group=None))
