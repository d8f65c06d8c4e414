"""Clients that ``kwire audit`` names fail with a real broker of Kafka 4.x, and those that it clears work.

Verdicts are those on the golden captures, in which the same clients, set up alike, talk to a broker that serves them.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kafka_jars
import pytest
from aiokafka import AIOKafkaProducer
from conftest import give_up
from kafka import KafkaProducer
from kafka_cluster import Cluster, Listener
from missing import give_up as lacks
from missing import no_program

from kwire import capture
from kwire.report import audit

GOLDEN = Path(__file__).parents[1] / "golden"
COLUMNS = {"connections": audit.CONNECTIONS, "records": audit.RECORDS}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker of the newest release."""
    try:
        made = Cluster(mode="kraft", version=kafka_jars.NEWEST_BROKER, listeners={"CLIENT": Listener()})
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise
    with made:
        yield made.bootstrap("CLIENT")


def with_kafka_python(bootstrap: str, **pinned: Any) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, max_block_ms=10_000, request_timeout_ms=8_000, delivery_timeout_ms=10_000,
        linger_ms=0, retries=0, **pinned,
    )  # fmt: skip
    try:
        producer.send(f"audit-{uuid.uuid4().hex[:8]}", b"value").get(timeout=15)
    finally:
        producer.close(timeout=1)


def with_aiokafka(bootstrap: str) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=10_000)
        await producer.start()
        try:
            await producer.send_and_wait(f"audit-{uuid.uuid4().hex[:8]}", b"value")
        finally:
            await producer.stop()

    asyncio.run(send())


def with_librdkafka(bootstrap: str, *options: str) -> None:
    """kcat; it retries for as long as the message lives."""
    kcat = shutil.which("kcat")
    if kcat is None:
        lacks(no_program("kcat"))
    more = [part for one in ("message.timeout.ms=8000", *options) for part in ("-X", one)]
    topic = f"audit-{uuid.uuid4().hex[:8]}"
    done = subprocess.run(
        [kcat, "-P", "-b", bootstrap, "-t", topic, *more], input=b"value\n", capture_output=True, timeout=60
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace"))


CLIENTS: dict[str, tuple[str, str, Callable[[str], None]]] = {
    "kafka-python pinned to 0.9": (
        "kafka-3.9-zk-kafka-python/pinned-0.9.pcap", "pinned-0.9-producer",
        lambda at: with_kafka_python(at, api_version=(0, 9)),
    ),
    "kafka-python pinned to 0.10.1": (
        "kafka-3.9-zk-kafka-python/pinned-0.10.1.pcap", "pinned-0.10.1-producer",
        lambda at: with_kafka_python(at, api_version=(0, 10, 1)),
    ),
    "kafka-python pinned to 1.0": (
        "kafka-3.9-kraft-kafka-python/pinned-1.0.pcap", "pinned-1.0-producer",
        lambda at: with_kafka_python(at, api_version=(1, 0)),
    ),
    "kafka-python": ("kafka-4.3-kraft-kafka-python/unpinned.pcap", "", with_kafka_python),
    "librdkafka that takes brokers for 0.9 (magic 0)": (
        "kafka-3.9-zk-librdkafka/fallback-0.9.pcap", "rdkafka-old",
        lambda at: with_librdkafka(at, "api.version.request=false", "broker.version.fallback=0.9.0"),
    ),
    "librdkafka": ("kafka-4.3-kraft-librdkafka/current.pcap", "rdkafka-new", with_librdkafka),
    "aiokafka": ("kafka-4.3-kraft-aiokafka/current.pcapng", "", with_aiokafka),
}  # fmt: skip
"""For each client: a capture of it, what its client_id has in it there, and what it does."""


def verdicts(name: str, client_id: str) -> set[str]:
    with (GOLDEN / name).open("rb") as file:
        found = audit.of_tables(capture.read(file, tables=list(COLUMNS), columns=COLUMNS, name=name))
    return {one.verdict for one in found.clients if any(client_id in (each or "") for each in one.client_ids)}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_the_audit_says_comes_true(bootstrap: str, client: str) -> None:
    name, client_id, send = CLIENTS[client]
    (verdict,) = verdicts(name, client_id)
    if verdict == "breaks":
        with pytest.raises(Exception):  # noqa: B017, PT011 # a client's own, of any kind
            send(bootstrap)
    else:
        assert verdict == "works"
        send(bootstrap)
