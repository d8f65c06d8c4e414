"""Real clients with their default settings, each against a broker of ``kwire.testing``.

``CLIENTS`` has a function for each that runs without being built. It writes ``VALUES`` to a topic, reads them as a
member of a group, commits, and gives what it has read. One that is no Python package may be missing: ``MissingError``.
``tests/broker/test_mock_broker.py`` has the others. ``cells`` are those of the table in the docs. ``check`` tests one.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from missing import MissingError, give_up, no_program

from kwire.testing.broker import Broker
from kwire.testing.proxy import Proxy

VALUES: Final = [b"value %d" % number for number in range(20)]
TOPIC: Final = "orders"
BUILT: Final = ("Java 4.4", "franz-go", "Sarama", "KafkaJS")
"""Clients that ``tests/broker`` runs."""
_PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "mock-broker.md"
_SECONDS: Final = 15.0


def kafka_python(broker: Broker | Proxy, topic: str = TOPIC) -> list[bytes]:
    """kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer

    producer: Any = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for value in VALUES:
        producer.send(topic, value)
    producer.flush(_SECONDS)
    producer.close()
    consumer: Any = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=f"g-{topic}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=_SECONDS * 1000,
    )
    got = [message.value for _, message in zip(VALUES, consumer, strict=False)]
    consumer.commit()
    consumer.close()
    return got


def aiokafka(broker: Broker | Proxy, topic: str = TOPIC) -> list[bytes]:
    """aiokafka."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        consumer: Any = AIOKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, group_id=f"g-{topic}", auto_offset_reset="earliest"
        )
        async with consumer:
            got = [(await asyncio.wait_for(consumer.getone(), _SECONDS)).value for _ in VALUES]
            await consumer.commit()
        return got

    return asyncio.run(run())


def confluent_kafka(broker: Broker | Proxy, topic: str = TOPIC) -> list[bytes]:
    """confluent-kafka, which is librdkafka."""
    try:
        from confluent_kafka import Consumer, Producer
    except ImportError:
        raise MissingError("confluent-kafka is not installed: it is in the extra bench") from None

    producer: Any = Producer({"bootstrap.servers": broker.bootstrap})
    for value in VALUES:
        producer.produce(topic, value)
    producer.flush(_SECONDS)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"}
    consumer: Any = Consumer(settings)
    consumer.subscribe([topic])
    got: list[bytes] = []
    until = time.monotonic() + _SECONDS
    while len(got) < len(VALUES) and time.monotonic() < until:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            got.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return got


def kcat(broker: Broker | Proxy, topic: str = TOPIC) -> list[bytes]:
    """kcat, which is librdkafka too, mostly of an older version."""
    if shutil.which("kcat") is None:
        raise no_program("kcat")

    def run(*words: str, given: bytes = b"") -> bytes:
        command = ["kcat", "-b", broker.bootstrap, *words]
        return subprocess.run(command, input=given, capture_output=True, check=True, timeout=_SECONDS * 2).stdout

    run("-P", "-t", topic, given=b"\n".join(VALUES))
    return run("-G", f"g-{topic}", "-c", str(len(VALUES)), "-X", "auto.offset.reset=earliest", topic).splitlines()


CLIENTS: Final[Mapping[str, Callable[..., list[bytes]]]] = {
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent-kafka": confluent_kafka,
    "kcat": kcat,
}


def cells(clients: Collection[str]) -> list[tuple[str, str, str]]:
    """Client, release, and what the page says of them."""
    lines = re.search(r"^\| client \|.*\n(?:\|.*\n)+", _PAGE.read_text(), re.MULTILINE)
    assert lines is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].splitlines()]
    assert {row[0] for row in rows[2:]} == {*CLIENTS, *BUILT}
    releases = rows[0][1:]
    found = [(row[0], release, said) for row in rows[2:] for release, said in zip(releases, row[1:], strict=True)]
    return [one for one in found if one[0] in clients]


def check(client: Callable[..., list[bytes]], release: str, said: str) -> None:
    """A client does with a broker of a release what the page says."""
    with Broker(release=release, nodes=2, topics={TOPIC: 3}) as broker:
        try:
            if said != "yes":
                with pytest.raises(Exception, match=r".") as refused:
                    client(broker)
                if isinstance(refused.value, MissingError):
                    raise refused.value
                return
            got = client(broker)
        except MissingError as missing:
            give_up(missing)
        assert sorted(got) == sorted(VALUES)
        kept = [one.value or b"" for number in range(3) for one in broker.records(TOPIC, number)]
        assert sorted(kept) == sorted(VALUES)
        assert broker.exchanges("JoinGroup")
        assert broker.exchanges("OffsetCommit")
        assert broker.errors() == []
