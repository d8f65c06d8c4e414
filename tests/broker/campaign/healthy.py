"""Scenarios in which all is well: nothing may be found."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from kafka import KafkaAdminClient, TopicPartition  # type: ignore[import-untyped]
from kafka.admin import ConfigResource, NewTopic  # type: ignore[import-untyped]
from world import VALUE, World, scenario


@scenario(clients="Java, kcat, aiokafka, kafka-python")
def idle_consumers(x: World) -> None:
    """Consumers with default settings and ids of four clients wait on three brokers, and nobody writes."""
    topic = x.topic(6)
    x.java("consume", topic, 60, 0, group_id=x.id("java"))
    kcats = [x.kcat("-C", "-t", topic, wait=False, client_id=None)]
    kcats.append(x.kcat("-G", x.id("kcat"), topic, wait=False, client_id=None))

    async def reads() -> None:
        async with x.aio_consumer(topic, group_id=x.id("aio"), client_id="aiokafka") as one:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(one.getone(), 60)

    def drain() -> None:
        x.drain(topic, 60, group=x.id("py"), client_id="kafka-python")

    x.at_once(drain, drain, lambda: x.run(reads()))
    for one in kcats:
        one.terminate()


@scenario(clients="Java")
def reads_and_writes_in_transactions(x: World) -> None:
    """Two programs read, write and commit in transactions, as Kafka Streams does; one in twelve is aborted."""
    topic, out = x.topic(3), x.topic(3, called="-out")
    for k in range(2):
        own: dict[str, Any] = {"consumer.group.id": x.name, "producer.transactional.id": f"{x.name}-{k}"}
        x.java("loop", topic, out, 45, 12, consumer_auto_offset_reset="earliest", **own)
    x.java("consume", out, 45, 0, group_id=x.id("out"), isolation_level="read_committed")
    x.feed(topic, 40, 40)


@scenario(clients="Java, kafka-python", true=("held-back-readers",))
def long_transactions(x: World) -> None:
    """Transactions of 10 s, and readers of what is committed."""
    topic = x.topic(1)
    x.java("transactions", topic, 6, 0, 10_000, client_id=x.id("java"), transactional_id=x.id("tx"))
    x.java("consume", topic, 62, 0, group_id=x.name, isolation_level="read_committed")
    x.feed(topic, 60, 10, partitions=1)


@scenario(clients="Java, kafka-python")
def slow_by_design(x: World) -> None:
    """Consumers that poll each 4 s and each 10 s."""
    topic = x.topic(3)
    x.java("consume", topic, 65, 4000, group_id=x.id("java"), auto_offset_reset="earliest")
    drain = lambda: x.drain(topic, 65, group=x.id("py"), pause=10, commit=True)  # noqa: E731
    x.at_once(lambda: x.feed(topic, 65, 25), drain)


@scenario(clients="kafka-python, kcat, Java")
def compacted_topic(x: World) -> None:
    """A topic is compacted while it is written and read from its beginning."""
    topic = x.topic(2, cleanup_policy="compact", segment_ms=1000, min_cleanable_dirty_ratio=0.01)
    x.feed(topic, 20, 100, partitions=0, linger_ms=50)
    x.kcat("-C", "-t", topic, "-o", "beginning", "-e")
    x.java("consume", topic, 12, 0, group_id=x.id("java"), auto_offset_reset="earliest")
    x.drain(topic, 10, group=x.id("py"))


@scenario(clients="kafka-python, Java", true=("mixed-versions",))
def many_processes_with_one_id(x: World) -> None:
    """14 producers have the client_id of the application."""
    topic = x.topic(3)
    own: dict[str, Any] = {"client_id": "app", "acks": 1}
    for _ in range(2):
        x.java("produce", topic, 30, 60, 100, enable_idempotence="false", **own)
    x.at_once(*[lambda: x.feed(topic, 30, 15, enable_idempotence=False, **own)] * 12)


@scenario(clients="kafka-python, Java")
def scaled_out_and_in(x: World) -> None:
    """Members come and go twice."""
    topic = x.topic(6)
    strategy = "org.apache.kafka.clients.consumer.RangeAssignor"
    x.java("consume", topic, 40, 0, group_id=x.name, partition_assignment_strategy=strategy)

    def later() -> None:
        time.sleep(8)
        x.drain(topic, 25, group=x.name, client_id="worker")

    first = lambda: x.drain(topic, 38, group=x.name, client_id="worker")  # noqa: E731
    x.at_once(lambda: x.feed(topic, 40, 40, partitions=6), first, later)


@scenario(clients="Java, kcat, kafka-python")
def batch_job(x: World) -> None:
    """A job writes as fast as it can, in compressed batches, and others read all of it from the beginning."""
    topic = x.topic(3)
    own: dict[str, Any] = {"compression_type": "lz4", "linger_ms": 10}
    x.java("produce", topic, 3, 0, 100, client_id=x.id("java"), wait=True, **own)
    x.kcat("-C", "-t", topic, "-o", "beginning", "-e")
    x.drain(topic, 25, group=x.id("py"), max_poll_records=20_000)


@scenario(clients="Java, kafka-python", since="4.0")
def share_group_and_new_protocol(x: World) -> None:
    """A share group and a group of the new protocol (KIP-848) read what is written."""
    topic = x.topic(2)
    own = ("--bootstrap-server", x.at, "--topic", topic, "--timeout-ms", "12000")

    def share() -> None:
        x.cluster.tool("console-share-consumer", *own, "--group", x.id("share"), check=False)

    new = x.java("consume", topic, 25, 0, group_id=x.id("new"), group_protocol="consumer")
    x.at_once(share, lambda: x.feed(topic, 25, 30, partitions=2))
    new.wait(60)


@scenario(clients="Java, kcat")
def long_polls(x: World) -> None:
    """Consumers let brokers wait for 8 s; a little is written now and then."""
    topic = x.topic(3)
    for k in range(2):
        x.java("consume", topic, 40, 0, group_id=x.id(str(k)), fetch_max_wait_ms=8000, fetch_min_bytes=100_000)
    for _ in range(8):
        x.kcat("-P", "-t", topic, given=b"a\nb\n", acks="all", client_id=None)
        time.sleep(4)


@scenario(clients="kafka-python, aiokafka")
def looks_around(x: World) -> None:
    """A program goes to the beginning and to the end of a log, as a tool for looking at topics does."""
    topic = x.topic(2)
    x.feed(topic, 3, 100, partitions=2)

    def seeks() -> None:
        with contextlib.closing(x.consumer(group_id=x.name)) as one:
            one.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            for _ in range(10):
                one.seek_to_beginning()
                one.poll(timeout_ms=1000)
                one.seek_to_end()
                one.end_offsets(one.assignment())
                one.poll(timeout_ms=1000)

    async def reads() -> None:
        async with x.aio_consumer(topic, group_id=x.id("aio")) as one:
            for _ in range(50):
                await one.getmany(timeout_ms=500)

    x.at_once(seeks, lambda: x.run(reads()), lambda: x.feed(topic, 25, 20, partitions=2))


@scenario(clients="kcat, kafka-python")
def short_scripts(x: World) -> None:
    """Scripts that start each 4 s, write twenty records or read some, and end."""
    topic = x.topic(3)
    for k in range(12):
        x.kcat("-P", "-t", topic, given=b"a\n" * 20, client_id=None)
        x.kcat("-C", "-t", topic, "-o", "-5", "-e", client_id=None)
        if k % 3 == 0:
            x.feed(topic, 0.5, 40, linger_ms=20, client_id="script")
        time.sleep(4)


@scenario(clients="Java, kafka-python")
def tools_of_an_administrator(x: World) -> None:
    """Topics are made, described, given more partitions and deleted; groups are looked at and set back."""
    topic, own = x.topic(3), ("--bootstrap-server", x.at)
    x.feed(topic, 5, 40)
    x.drain(topic, 6, group=x.name)
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=x.at, client_id=x.id("admin"))) as one:
        for k in range(5):
            name = f"{x.name}-{k}"
            one.create_topics([NewTopic(name, 2, 3)])
            time.sleep(1)
            one.describe_topics([name])
            one.list_topics()
            one.delete_topics([name])
        one.alter_configs([ConfigResource("TOPIC", topic, {"retention.ms": "3600000"})])
        one.describe_cluster()
    for _ in range(2):
        x.cluster.tool("consumer-groups", *own, "--describe", "--all-groups")
    x.cluster.tool("consumer-groups", *own, "--describe", "--group", x.name, "--members")


@scenario(clients="kafka-python")
def worker_of_connect(x: World) -> None:
    """One process has many clients, as a worker of Connect: tasks that write and read, a compacted topic of offsets,
    and one task that is started again."""
    topic, out = x.topic(3), x.topic(3, called="-sink")
    offsets = x.topic(1, called="-offsets", cleanup_policy="compact")

    def source(task: int) -> None:
        own: dict[str, Any] = {"client_id": f"connector-producer-source-{task}", "acks": "all", "linger_ms": 20}
        x.feed(topic, 40, 30, **own)

    def sink(task: int, wait: float, seconds: float) -> None:
        time.sleep(wait)
        own: dict[str, Any] = {"group_id": "connect-sink", "client_id": f"connector-consumer-sink-{task}"}
        with contextlib.closing(x.consumer(topic, enable_auto_commit=False, **own)) as one:
            end, last = time.monotonic() + seconds, time.monotonic()
            while time.monotonic() < end:
                one.poll(timeout_ms=500)
                if time.monotonic() - last > 5:
                    one.commit()
                    last = time.monotonic()

    def worker() -> None:
        with contextlib.closing(x.producer("connect-1-offsets", acks="all")) as one:
            for k in range(8):
                one.send(offsets, VALUE, key=b"source-%d" % (k % 2))
                time.sleep(5)

    x.at_once(
        lambda: source(0), lambda: source(1), lambda: sink(0, 0, 42), lambda: sink(1, 2, 15), lambda: sink(1, 22, 20),
        lambda: x.drain(offsets, 42, group=None, client_id="connect-1-offsets"), worker,
        lambda: x.drain(out, 42, group="connect-other", client_id="connector-consumer-other-0"),
    )  # fmt: skip


@scenario(clients="Java")
def members_with_instance_ids(x: World) -> None:
    """Members with a group.instance.id are started again within their session timeout."""
    topic = x.topic(4)
    own: dict[str, Any] = {"group_id": x.name, "session_timeout_ms": 30_000}
    x.java("consume", topic, 45, 0, client_id=x.id("0"), group_instance_id="zero", **own)
    for _ in range(3):
        x.java("consume", topic, 10, 0, client_id=x.id("1"), group_instance_id="one", wait=True, **own)


@scenario(clients="Java, kcat", lane="TLS")
def over_tls(x: World) -> None:
    """Clients speak TLS to a listener that does too; the capture has no keys."""
    topic, tls = x.topic(3), x.cluster.tls
    assert tls is not None
    own: dict[str, Any] = {
        "security_protocol": "SSL", "ssl_truststore_location": tls.truststore, "ssl_truststore_password": tls.password,
        "ssl_endpoint_identification_algorithm": "",
    }  # fmt: skip
    x.java("produce", topic, 25, 50, 100, **own)
    x.java("consume", topic, 25, 0, group_id=x.name, **own)
    for _ in range(4):
        x.kcat("-L", security_protocol="ssl", ssl_ca_location=tls.ca, ssl_endpoint_identification_algorithm="none")
        time.sleep(5)


@scenario(clients="Java, kafka-python", true=("no-compression",))
def catches_up(x: World) -> None:
    """A new group begins with 30,000 records that are there already, and is through with them soon."""
    topic = x.topic(3)
    x.java("produce", topic, 4, 0, 20, client_id=x.id("writer"), linger_ms=20, wait=True)
    x.at_once(
        lambda: x.feed(topic, 40, 20), lambda: x.drain(topic, 40, group=x.name, commit=True, max_poll_records=5000)
    )


@scenario(clients="Java, kcat, aiokafka, kafka-python", alone=True)
def rolling_restart(x: World) -> None:
    """Brokers are restarted one after the other, each once all is well, while four clients write and read."""
    topic = x.topic(6, min_insync_replicas=2)
    x.java("produce", topic, 110, 100, 200)
    x.java("consume", topic, 110, 0, group_id=x.id("java"))
    kcat = x.kcat("-G", x.id("kcat"), topic, wait=False, client_id=None)

    def roll() -> None:
        time.sleep(8)
        for node in x.cluster.nodes:
            x.cluster.stop_node(node)
            time.sleep(1)
            x.cluster.start_node(node)
            x.cluster.wait_until_ready()
            time.sleep(8)

    async def writes() -> None:
        async with x.aio_producer(client_id="aiokafka", acks="all", enable_idempotence=True) as one:
            end = time.monotonic() + 110
            while time.monotonic() < end:
                await one.send(topic, VALUE)
                await asyncio.sleep(0.1)

    feed = lambda: x.feed(topic, 110, 10, partitions=6, client_id="kafka-python-producer-1")  # noqa: E731
    x.at_once(roll, lambda: x.drain(topic, 110, group=x.id("py")), feed, lambda: x.run(writes()))
    kcat.terminate()
