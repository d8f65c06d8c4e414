"""librdkafka (through confluent-kafka) as a recorded client; a program, so that an old librdkafka can be used as well.

    python librdkafka.py PLAN.json

The plan: ``bootstrap``, ``prefix`` of topics and groups, ``codecs``, ``samples``, ``config`` (further client settings),
and ``steps`` out of produce, read, group, transactions, admin.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
import uuid
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

# Not installed where this file is checked, and differently typed from release to release.
ck: Any = importlib.import_module("confluent_kafka")
ca: Any = importlib.import_module("confluent_kafka.admin")

PLAN = json.loads(Path(sys.argv[1]).read_text())
PREFIX: str = PLAN["prefix"]
COMMON: dict[str, Any] = {"bootstrap.servers": PLAN["bootstrap"], "client.id": f"rdkafka-{PREFIX}", **PLAN["config"]}
LEGACY = COMMON.get("api.version.request") is False
SEEN: set[tuple[str, int, int]] = set()
LOCK = threading.Lock()


def say(**line: Any) -> None:
    with LOCK:
        print(json.dumps(line), flush=True)


def raw(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def produce(topic: str, what: list[dict[str, Any]], codec: str, acks: int, **options: Any) -> None:
    config = {**COMMON, "compression.type": codec, "acks": acks, "linger.ms": 50, **options}
    transactional = "transactional.id" in config
    abort = bool(config.pop("abort", False))
    producer = ck.Producer(config)
    if transactional:
        producer.init_transactions(20)
        producer.begin_transaction()

    def report(each: dict[str, Any]) -> Any:
        def delivered(error: Any, message: Any) -> None:
            line: dict[str, Any] = {
                "direction": "produce",
                "topic": topic,
                "partition": message.partition(),
                "offset": message.offset() if message.offset() is not None and message.offset() >= 0 else None,
                "timestamp": None
                if LEGACY
                else message.timestamp()[1]
                if message.timestamp()[0]
                else each["timestamp"],
                "timestamp_type": None,
                "key": each["key"],
                "value": each["value"],
                "headers": [] if LEGACY else each["headers"],
                "codec": codec,
                "acks": acks,
            }
            if transactional:
                line["transaction"] = "aborted" if abort else "committed"
            if error is not None:
                line["error"] = error.name()
            say(**line)

        return delivered

    for each in what:
        extra: dict[str, Any] = {}
        if each["timestamp"] is not None and not LEGACY:
            extra["timestamp"] = each["timestamp"]
        if each["headers"] and not LEGACY:
            extra["headers"] = [(name, raw(value)) for name, value in each["headers"]]
        producer.produce(topic, raw(each["value"]), raw(each["key"]), on_delivery=report(each), **extra)
    producer.flush(20)
    if transactional:
        if abort:
            producer.abort_transaction(20)
        else:
            producer.commit_transaction(20)


def fetched(message: Any) -> None:
    kind, stamp = message.timestamp()
    with LOCK:
        SEEN.add((message.topic(), message.partition(), message.offset()))
    say(
        direction="fetch",
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=stamp if kind else None,
        timestamp_type=kind - 1 if kind else None,
        key=text(message.key()),
        value=text(message.value()),
        headers=[[name, text(value)] for name, value in message.headers() or []],
    )


def drain(consumer: Any, seconds: float, idle: float = 1.0) -> None:
    end = time.monotonic() + seconds
    last = time.monotonic() + 2.0
    while time.monotonic() < end and time.monotonic() < last + idle:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            say(note="read error", error=message.error().name())
            continue
        last = time.monotonic()
        fetched(message)


def settle(consumer: Any) -> None:
    """Let the last Fetch be answered: a client that hangs up meanwhile leaves half a response in the capture."""
    consumer.pause(consumer.assignment())
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        consumer.poll(0.1)


def read(topics: list[str], isolation: str = "read_uncommitted") -> None:
    config = {**COMMON, "group.id": "unused", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    if not LEGACY:
        config["isolation.level"] = isolation
    consumer = ck.Consumer(config)
    consumer.assign([ck.TopicPartition(topic, partition, 0) for topic in topics for partition in (0, 1)])
    drain(consumer, 15)
    settle(consumer)
    consumer.close()


def group(topics: list[str], protocol: str | None) -> None:
    """Two members, the second joins late and leaves early, so that the group balances three times."""
    name = f"{PREFIX}-group" + (f"-{protocol}" if protocol else "")
    config: dict[str, Any] = {**COMMON, "group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    config["fetch.wait.max.ms"] = 500
    if protocol == "consumer":
        config["group.protocol"] = "consumer"
    else:
        config |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}

    def assigned(consumer: Any, partitions: list[Any]) -> None:
        say(note="assigned", group=name, partitions=[f"{each.topic}-{each.partition}" for each in partitions])

    def member(delay: float, life: float) -> None:
        time.sleep(delay)
        consumer = ck.Consumer(config)
        consumer.subscribe(topics, on_assign=assigned)
        drain(consumer, life, idle=life)
        try:
            done = consumer.commit(asynchronous=False)
            say(note="committed", group=name, offsets={f"{each.topic}-{each.partition}": each.offset for each in done})
        except ck.KafkaException as error:
            say(note="commit failed", group=name, error=error.args[0].name())
        settle(consumer)
        consumer.close()

    members = [threading.Thread(target=member, args=(0.0, 6.0)), threading.Thread(target=member, args=(1.5, 2.5))]
    for each in members:
        each.start()
    for each in members:
        each.join()


def attempt(what: str, call: Any) -> None:
    """Run one administrative call, wait for its futures and say how it ended."""
    try:
        got = call()
        futures = list(got.values()) if isinstance(got, dict) else [got]
        for future in futures:
            if hasattr(future, "result"):
                future.result(timeout=15)
        say(note="admin", call=what, error=None)
    except ck.KafkaException as error:
        say(note="admin", call=what, error=error.args[0].name())


def admin(topics: list[str]) -> None:
    client = ca.AdminClient(COMMON)
    topic = f"{PREFIX}-admin"
    attempt(
        "create_topics", lambda: client.create_topics([ca.NewTopic(topic, 1, 1, config={"retention.ms": "3600000"})])
    )
    time.sleep(0.3)
    resource = ca.ConfigResource(ca.ConfigResource.Type.TOPIC, topic)
    attempt("describe_configs", lambda: client.describe_configs([resource]))
    changed = ca.ConfigResource(ca.ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "7200000"})
    attempt("alter_configs", lambda: client.alter_configs([changed]))
    entry = ca.ConfigEntry("cleanup.policy", "compact", incremental_operation=ca.AlterConfigOpType.APPEND)
    changed = ca.ConfigResource(ca.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    attempt("incremental_alter_configs", lambda: client.incremental_alter_configs([changed]))
    attempt("create_partitions", lambda: client.create_partitions([ca.NewPartitions(topic, 3)]))
    attempt("describe_topics", lambda: client.describe_topics(ck.TopicCollection([topic])))
    attempt("describe_cluster", client.describe_cluster)
    attempt("list_groups", client.list_consumer_groups)
    attempt("describe_groups", lambda: client.describe_consumer_groups([f"{PREFIX}-group"]))
    partition = ck.TopicPartition(topics[0], 0)
    attempt("list_offsets", lambda: client.list_offsets({partition: ca.OffsetSpec.latest()}))
    wanted = [ck.ConsumerGroupTopicPartitions(f"{PREFIX}-group", None)]
    attempt("list_group_offsets", lambda: client.list_consumer_group_offsets(wanted))
    moved = [ck.ConsumerGroupTopicPartitions(f"{PREFIX}-group", [ck.TopicPartition(topics[0], 0, 1)])]
    attempt("alter_group_offsets", lambda: client.alter_consumer_group_offsets(moved))
    attempt("delete_records", lambda: client.delete_records([ck.TopicPartition(topics[0], 0, 1)]))
    attempt("elect_leaders", lambda: client.elect_leaders(ck.ElectionType.PREFERRED, [ck.TopicPartition(topic, 0)]))
    acl = ca.AclBinding(
        ca.ResourceType.TOPIC,
        topic,
        ca.ResourcePatternType.LITERAL,
        "User:someone",
        "*",
        ca.AclOperation.READ,
        ca.AclPermissionType.ALLOW,
    )
    attempt("create_acls", lambda: client.create_acls([acl]))
    pattern = ca.AclBindingFilter(
        ca.ResourceType.TOPIC,
        topic,
        ca.ResourcePatternType.ANY,
        None,
        None,
        ca.AclOperation.ANY,
        ca.AclPermissionType.ANY,
    )
    attempt("describe_acls", lambda: client.describe_acls(pattern))
    attempt("delete_acls", lambda: client.delete_acls([pattern]))
    attempt("describe_user_scram_credentials", lambda: client.describe_user_scram_credentials(["someone"]))
    attempt("delete_groups", lambda: client.delete_consumer_groups([f"{PREFIX}-group"]))
    attempt("delete_topics", lambda: client.delete_topics([topic]))


def credentials() -> None:
    """librdkafka writes one byte too many behind this request."""
    client = ca.AdminClient(COMMON)
    mechanism = ca.ScramCredentialInfo(ca.ScramMechanism.SCRAM_SHA_256, 4096)
    upsert = ca.UserScramCredentialUpsertion("someone", mechanism, b"not-a-secret", uuid.uuid4().bytes)
    attempt("alter_user_scram_credentials", lambda: client.alter_user_scram_credentials([upsert]))


def main() -> None:
    say(note="version", version=f"librdkafka {ck.libversion()[0]} (confluent-kafka {ck.version()})")
    codecs = PLAN["codecs"]
    topics = [f"{PREFIX}-{codec}" for codec in codecs]
    steps = PLAN["steps"]
    what = PLAN["samples"]
    if "create" in steps:
        client = ca.AdminClient(COMMON)
        wanted = [ca.NewTopic(topic, 2, 1) for topic in [*topics, f"{PREFIX}-tx"]]
        attempt("create_topics", lambda: client.create_topics(wanted))
    if "produce" in steps:
        for codec, topic in zip(codecs, topics, strict=True):
            produce(topic, what, codec, -1)
            produce(topic, what[:3], codec, 1)
            produce(topic, what[:2], codec, 0)
    if "idempotent" in steps:
        produce(topics[0], what[:5], codecs[-1], -1, **{"enable.idempotence": True})
    if "transactions" in steps:
        for number, abort in enumerate((False, True, False)):
            name = f"{PREFIX}-tx-{number}"
            produce(f"{PREFIX}-tx", what[:4], "none", -1, **{"transactional.id": name, "abort": abort})
        read([f"{PREFIX}-tx"], "read_committed")
    if "read" in steps:
        read(topics + PLAN.get("read_also", []))
    if "group" in steps:
        group(topics, None)
    if "group-consumer" in steps:
        group(topics, "consumer")
    if "admin" in steps:
        admin(topics)
    if "credentials" in steps:
        credentials()


main()
