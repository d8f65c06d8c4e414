"""Clients for ``kwire fuzz server``: each writes to a topic, reads it as a member of a group, and commits.

    kwire fuzz server --cmd 'python -m fuzz.peers.clients kafka-python {}'

It ends with 0 when it has read what it wrote, with 3 when the client has said that it failed, by an exception that it
documents, and with 1 after any other one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

VALUES = [b"value %d" % number for number in range(3)]
TOPIC = "orders"
SECONDS = 12.0
FAILED = 3


class FailedError(Exception):
    """The client says that it failed."""


def kafka_python(bootstrap: str) -> list[bytes]:
    """kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    try:
        producer: Any = KafkaProducer(
            bootstrap_servers=bootstrap, request_timeout_ms=3000, retry_backoff_ms=50, delivery_timeout_ms=10_000
        )
        sent = [producer.send(TOPIC, value) for value in VALUES]
        for one in sent:
            one.get(SECONDS)
        producer.close(timeout=2)
        consumer: Any = KafkaConsumer(
            TOPIC,
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            consumer_timeout_ms=SECONDS * 1000,
            request_timeout_ms=4000,
            session_timeout_ms=6000,
            heartbeat_interval_ms=1000,
            retry_backoff_ms=50,
        )
        got = [message.value for _, message in zip(VALUES, consumer, strict=False)]
        consumer.commit()
        consumer.close()
    except KafkaError as error:
        raise FailedError(repr(error)) from error
    return got


def aiokafka(bootstrap: str) -> list[bytes]:
    """aiokafka."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError

    async def run() -> list[bytes]:
        producer: Any = AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=3000)
        async with producer:
            for value in VALUES:
                await producer.send_and_wait(TOPIC, value)
        consumer: Any = AIOKafkaConsumer(
            TOPIC, bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest", request_timeout_ms=3000
        )
        async with consumer:
            got = [(await asyncio.wait_for(consumer.getone(), SECONDS)).value for _ in VALUES]
            await consumer.commit()
        return got

    try:
        return asyncio.run(run())
    except (KafkaError, TimeoutError) as error:
        raise FailedError(repr(error)) from error


def confluent_kafka(bootstrap: str) -> list[bytes]:
    """confluent-kafka, which is librdkafka."""
    from confluent_kafka import Consumer, KafkaException, Producer

    fast = {"bootstrap.servers": bootstrap, "socket.timeout.ms": 3000, "log_level": 0}
    failed: list[Any] = []
    try:
        producer: Any = Producer({**fast, "message.timeout.ms": 10_000})
        for value in VALUES:
            producer.produce(TOPIC, value, on_delivery=lambda error, _: failed.append(error) if error else None)
        if producer.flush(SECONDS) or failed:
            raise FailedError(str(failed))
        consumer: Any = Consumer({**fast, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe([TOPIC])
        got: list[bytes] = []
        until = time.monotonic() + SECONDS
        while len(got) < len(VALUES) and time.monotonic() < until:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                got.append(message.value())
        if got:
            consumer.commit(asynchronous=False)
        consumer.close()
    except KafkaException as error:
        raise FailedError(str(error)) from error
    return got


CLIENTS: dict[str, Callable[[str], list[bytes]]] = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent-kafka": confluent_kafka,
}


if __name__ == "__main__":
    try:
        read = CLIENTS[sys.argv[1]](sys.argv[2])
        if not set(VALUES) <= set(read):
            raise FailedError(f"read {read}")
    except FailedError as failed_error:
        print(f"failed: {failed_error}", file=sys.stderr)
        sys.exit(FAILED)
