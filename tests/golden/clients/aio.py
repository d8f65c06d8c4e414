"""aiokafka as a recorded client.

    python aio.py PLAN.json

The plan: ``bootstrap``, ``prefix`` of topics and groups, ``codecs``, ``samples``, ``config`` (further settings of every
client).
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import aiokafka  # type: ignore[import-untyped]
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic  # type: ignore[import-untyped]
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

PLAN = json.loads(Path(sys.argv[1]).read_text())
PREFIX: str = PLAN["prefix"]
COMMON: dict[str, Any] = {"bootstrap_servers": PLAN["bootstrap"], **PLAN["config"]}


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def raw(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


async def produce(topic: str, what: list[dict[str, Any]], codec: str, acks: int | str, **options: Any) -> None:
    abort = options.pop("abort", False)
    producer = aiokafka.AIOKafkaProducer(
        **COMMON, compression_type=None if codec == "none" else codec, acks=acks, linger_ms=50, **options
    )
    await producer.start()
    transactional = "transactional_id" in options
    try:
        if transactional:
            await producer.begin_transaction()
        sent = []
        for each in what:
            if each["key"] is None and each["value"] is None:
                continue  # aiokafka refuses to send nothing at all
            headers = [(name, raw(value)) for name, value in each["headers"]]
            future = await producer.send(
                topic, raw(each["value"]), raw(each["key"]), timestamp_ms=each["timestamp"], headers=headers
            )
            sent.append((each, future))
        for each, future in sent:
            line: dict[str, Any] = {
                "direction": "produce",
                "topic": topic,
                "partition": None,
                "offset": None,
                "timestamp": each["timestamp"],
                "timestamp_type": None,
                "key": each["key"],
                "value": each["value"],
                "headers": each["headers"],
                "codec": codec,
                "acks": -1 if acks == "all" else acks,
            }
            if transactional:
                line["transaction"] = "aborted" if abort else "committed"
            try:
                got = await future
                if got is not None:
                    line |= {"partition": got.partition, "offset": got.offset if got.offset >= 0 else None}
                    if got.timestamp is not None and got.timestamp >= 0:
                        line["timestamp"] = got.timestamp
            except KafkaError as error:
                line["error"] = type(error).__name__
            say(**line)
        if transactional:
            await (producer.abort_transaction() if abort else producer.commit_transaction())
    finally:
        await producer.stop()


def fetched(got: Any) -> None:
    say(
        direction="fetch",
        topic=got.topic,
        partition=got.partition,
        offset=got.offset,
        timestamp=got.timestamp,
        timestamp_type=got.timestamp_type,
        key=text(got.key),
        value=text(got.value),
        headers=[[name, text(value)] for name, value in got.headers],
    )


async def member(topics: list[str], delay: float, life: float, **options: Any) -> None:
    await asyncio.sleep(delay)
    consumer = aiokafka.AIOKafkaConsumer(
        *topics,
        **COMMON,
        group_id=f"{PREFIX}-group",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        fetch_max_wait_ms=500,
        **options,
    )
    await consumer.start()
    end = asyncio.get_running_loop().time() + life
    try:
        while asyncio.get_running_loop().time() < end:
            batches = await consumer.getmany(timeout_ms=200)
            for batch in batches.values():
                for got in batch:
                    fetched(got)
            if batches:
                try:
                    await consumer.commit()
                except KafkaError as error:
                    say(note="commit failed", error=type(error).__name__)
        names = sorted(f"{each.topic}-{each.partition}" for each in consumer.assignment())
        say(note="assigned", group=f"{PREFIX}-group", partitions=names)
    finally:
        await consumer.stop()


async def attempt(what: str, call: Any) -> None:
    try:
        await call
        say(note="admin", call=what, error=None)
    except KafkaError as error:
        say(note="admin", call=what, error=type(error).__name__)


async def main() -> None:
    say(note="version", version=f"aiokafka {aiokafka.__version__}")
    codecs = PLAN["codecs"]
    topics = [f"{PREFIX}-{codec}" for codec in codecs]
    what = PLAN["samples"]
    admin = AIOKafkaAdminClient(**COMMON)
    await admin.start()
    wanted = [NewTopic(name, 2, 1) for name in [*topics, f"{PREFIX}-tx"]]
    await attempt("create_topics", admin.create_topics(wanted))
    for codec, topic in zip(codecs, topics, strict=True):
        await produce(topic, what, codec, "all")
        await produce(topic, what[:3], codec, 1)
        await produce(topic, what[:2], codec, 0)
    await produce(topics[0], what[:5], codecs[-1], "all", enable_idempotence=True)
    for number, abort in enumerate((False, True, False)):
        await produce(f"{PREFIX}-tx", what[:4], "none", "all", transactional_id=f"{PREFIX}-{number}", abort=abort)
    reader = aiokafka.AIOKafkaConsumer(**COMMON, isolation_level="read_committed", fetch_max_wait_ms=100)
    await reader.start()
    partitions = [aiokafka.TopicPartition(f"{PREFIX}-tx", partition) for partition in (0, 1)]
    reader.assign(partitions)
    await reader.seek_to_beginning(*partitions)
    for _ in range(10):
        for batch in (await reader.getmany(timeout_ms=200)).values():
            for got in batch:
                fetched(got)
    await reader.stop()
    await asyncio.gather(member(topics, 0.0, 5.5), member(topics, 1.5, 2.0))
    await attempt("list_topics", admin.list_topics())
    await attempt("describe_cluster", admin.describe_cluster())
    await attempt("describe_topics", admin.describe_topics(topics))
    resource = ConfigResource(ConfigResourceType.TOPIC, topics[0])
    await attempt("describe_configs", admin.describe_configs([resource]))
    changed = ConfigResource(ConfigResourceType.TOPIC, topics[0], {"retention.ms": "3600000"})
    await attempt("alter_configs", admin.alter_configs([changed]))
    await attempt("create_partitions", admin.create_partitions({topics[0]: NewPartitions(3)}))
    await attempt("list_consumer_groups", admin.list_consumer_groups())
    await attempt("describe_consumer_groups", admin.describe_consumer_groups([f"{PREFIX}-group"]))
    await attempt("list_consumer_group_offsets", admin.list_consumer_group_offsets(f"{PREFIX}-group"))
    await attempt("delete_topics", admin.delete_topics([f"{PREFIX}-tx"]))
    await admin.close()


asyncio.run(main())
