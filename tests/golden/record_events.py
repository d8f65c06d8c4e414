"""Record the capture of CloudEvents and Hono telemetry: what the CloudEvents SDK and a client of Hono's format send.

    python tests/golden/record_events.py               half a minute
    python tests/golden/record_events.py --out DIR     somewhere else than tests/golden/kafka-4.3-kraft-events

Needs what ``record.py`` needs. One broker, one capture with two topics, and beside it

    events.pcap             the packets
    events.json, .jsonl     what was recorded, and each record as the client sent or read it
                            (docs/results/golden-captures.md)
    events.meant.json       what the records mean, as the sender meant it: the events with their attributes, which of
                            them are wrong and why, and the violations of Hono's rules by rule, device and tenant

What is meant is written down by the code that sends, and never read back from the capture.
"""

from __future__ import annotations

import argparse
import base64
import json
import struct
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "broker")]

import kafka  # type: ignore[import-untyped]  # noqa: E402
from capturing import Record, Recording  # noqa: E402
from cloudevents.core.bindings import kafka as sdk  # noqa: E402
from cloudevents.core.v1.event import CloudEvent  # noqa: E402
from kafka.admin import NewTopic  # noqa: E402
from kafka_cluster import Cluster, Listener  # noqa: E402

ABOUT = """CloudEvents in both content modes, as the CloudEvents SDK for Python writes them, and Hono telemetry.

The topic orders has events of three types and some that are wrong. To hono.telemetry.factory and
hono.telemetry.greenhouse write an adapter for both qualities of service (idempotent, acks=all), one that does not wait
(acks=0), and one that breaks the rules (acks=1). A consumer reads everything.
"""
ORDERS = "orders"
FACTORY = "hono.telemetry.factory"
GREENHOUSE = "hono.telemetry.greenhouse"
START = int(time.time()) * 1000
"""Time of the first message, in ms since 1970; the others follow it second by second."""
OLD = START - 3_600_000
"""Creation time of messages that have expired."""

Headers = list[tuple[str, bytes]]


class Sender:
    """A producer whose records are told to the recording."""

    def __init__(self, recording: Recording, bootstrap: str, name: str, **options: Any) -> None:
        self.recording, self.name, self.acks = recording, name, options["acks"]
        recording.clients[name] = f"kafka-python {kafka.__version__}, CloudEvents SDK"
        self.producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap.split(","), client_id=name, linger_ms=50, **options
        )
        self.sent: list[tuple[Record, Any]] = []

    def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers, partition: int | None = None
    ) -> None:
        at = START + 1000 * len(self.sent)
        future = self.producer.send(topic, key=key, value=value, headers=headers, partition=partition, timestamp_ms=at)
        self.sent.append((Record(topic, partition, None, at, key, value, headers), future))

    def close(self) -> int:
        self.producer.flush(timeout=20)
        for record, future in self.sent:
            got = future.get(timeout=20)
            told = Record(
                record.topic,
                got.partition,
                None if got.offset < 0 else got.offset,
                record.timestamp,
                record.key,
                record.value,
                record.headers,
            )
            self.recording.produced(self.name, told, codec="none", acks=-1 if self.acks == "all" else self.acks)
        self.producer.close(timeout=10)
        return len(self.sent)


def events() -> Iterable[tuple[dict[str, Any], bytes | None, bytes | None, Headers]]:
    """What is meant, key, value and headers of each record of the topic ``orders``."""
    kinds = (("placed", 5, "binary"), ("paid", 3, "structured"), ("cancelled", 2, "binary"))
    number = 0
    for kind, count, mode in kinds:
        for i in range(count):
            number += 1
            attributes = {
                "specversion": "1.0",
                "id": f"{kind}-{i}",
                "source": "/shop/berlin",
                "type": f"com.example.order.{kind}",
                "subject": f"order-{number}",
                "time": datetime(2025, 11, 21, 4, 40, number, 123456, UTC),
                "partitionkey": f"customer-{number % 3}",
            }
            data: Any = None
            if kind != "cancelled":
                attributes["datacontenttype"] = "application/json"
                data = {"order": number, "items": [{"sku": "Ä-1", "n": i}], "total": 9.5}
            event = CloudEvent(dict(attributes), data)
            message = sdk.to_binary_event(event) if mode == "binary" else sdk.to_structured_event(event)
            meant = {name: value for name, value in attributes.items() if name not in ("time", "partitionkey")}
            meant |= {
                "time": attributes["time"].isoformat(),
                "extensions": {"partitionkey": attributes["partitionkey"]},
            }
            meant |= {"data": data, "mode": mode, "error": None}
            key = message.key.encode() if isinstance(message.key, str) else message.key
            # The SDK writes no data as no bytes; the binding's record without data has no value.
            yield meant, key, message.value or None, list(message.headers.items())

    good: Headers = [("ce_specversion", b"1.0"), ("ce_type", b"com.example.bad"), ("ce_source", b"/x")]
    structured = b"application/cloudevents"
    bad: list[tuple[str, str, bytes | None, Headers]] = [
        ("binary", "id is missing", b"1", good),
        ("binary", "time is not an RFC 3339 timestamp", b"2", [*good, ("ce_id", b"2"), ("ce_time", b"yesterday")]),
        (
            "structured",
            "value is not a JSON object, or repeats a name",
            b"{",
            [("content-type", structured + b"+json")],
        ),
        (
            "structured",
            "content-type is not an event format that is known",
            b"\x00\x01",
            [("content-type", structured + b"+avro")],
        ),
        (
            "structured",
            "content-type is batch content mode, which Kafka's binding does not have",
            b"[]",
            [("content-type", structured + b"-batch+json")],
        ),
    ]
    for mode, error, value, headers in bad:
        yield {"mode": mode, "error": error}, b"bad", value, headers
    yield {}, b"none", b"no event", [("trace", b"1")]


def telemetry(i: int, device: str, *, binary: bool = False, **more: bytes | None) -> Headers:
    """The headers of a message: decimal text, or integers as Java's serializers write them; None leaves one out."""

    def number(value: int, form: str) -> bytes:
        return struct.pack(form, value) if binary else str(value).encode()

    headers: dict[str, bytes | None] = {
        "content-type": b"application/json",
        "device_id": device.encode(),
        "creation-time": number(START + 1000 * i, ">q"),
        "qos": number(1, ">i"),
        "ttd": number(30, ">i"),
        "ttl": number(60_000, ">q"),
    }
    headers |= {name.replace("_", "-") if name != "device_id" else name: value for name, value in more.items()}
    return [(name, value) for name, value in headers.items() if value is not None]


def devices(recording: Recording, bootstrap: str) -> tuple[int, list[list[str | None]]]:
    """Sends the telemetry; the number of messages, and the violations as [tenant, device, rule]."""
    value = b'{"temperature":21.5}'
    both = Sender(recording, bootstrap, "adapter-both", acks="all", enable_idempotence=True)
    for i in range(12):
        device = f"press-{i % 4}"
        both.send(FACTORY, device.encode(), value, telemetry(i, device, binary=i % 2 == 1), partition=i % 4 % 2)
    sent = both.close()

    fast = Sender(recording, bootstrap, "adapter-fast", acks=0, enable_idempotence=False)
    for i in range(6):
        device = f"plant-{i % 2}"
        old = {"creation_time": str(OLD).encode()} if device == "plant-1" else {}
        fast.send(GREENHOUSE, device.encode(), value, telemetry(i, device, qos=b"0", **old), partition=0)
    sent += fast.close()

    bad = Sender(recording, bootstrap, "adapter-bad", acks=1, enable_idempotence=False)
    wrong: list[tuple[str, str | None, bytes | None, Headers, int]] = [
        ("missing_header", None, b"a", telemetry(0, "a", device_id=None), 0),
        ("missing_header", "b", b"b", telemetry(1, "b", content_type=None), 0),
        ("bad_header", "c", b"c", telemetry(2, "c", qos=b"2"), 0),
        ("bad_header", "d", b"d", telemetry(3, "d", ttl=b"\x00\x01"), 0),
        ("bad_header", "e", b"e", telemetry(4, "e", content_type=b"json"), 0),
        ("creation_time_missing", "f", b"f", telemetry(5, "f", creation_time=None), 0),
        ("key_is_not_device_id", "g", b"other", telemetry(6, "g"), 0),
        ("repeated_header", "h", b"h", [*telemetry(7, "h"), ("qos", b"0")], 0),
    ]
    violations: list[list[str | None]] = []
    for rule, device, key, headers, partition in wrong:
        bad.send(FACTORY, key, value, headers, partition)
        violations.append(["factory", device, rule])
    bad.send(FACTORY, b"i", None, telemetry(8, "i"), 0)
    violations.append(["factory", "i", "no_value"])
    for partition in (0, 1):
        bad.send(FACTORY, b"j", value, telemetry(9, "j"), partition)
    violations.append(["factory", "j", "two_partitions"])
    bad.send(FACTORY, b"press-1", value, telemetry(10, "press-1"), 1)
    violations.append(["factory", "press-1", "two_producers"])
    return sent + bad.close(), violations


def read(recording: Recording, bootstrap: str, expect: int) -> None:
    """A consumer without a group reads every topic from its start."""
    name = "application"
    recording.clients[name] = f"kafka-python {kafka.__version__}"
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap.split(","), client_id=name, group_id=None, enable_auto_commit=False
    )
    try:
        assigned = [kafka.TopicPartition(topic, p) for topic in (ORDERS, FACTORY, GREENHOUSE) for p in (0, 1)]
        consumer.assign(assigned)
        for each in assigned:
            consumer.seek(each, 0)
        count = 0
        while count < expect:
            for batch in consumer.poll(timeout_ms=5000).values():
                for got in batch:
                    count += 1
                    recording.fetched(
                        name,
                        Record(
                            got.topic,
                            got.partition,
                            got.offset,
                            got.timestamp,
                            got.key,
                            got.value,
                            list(got.headers or ()),
                            got.timestamp_type,
                        ),
                    )
    finally:
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE / "kafka-4.3-kraft-events")
    out: Path = parser.parse_args().out
    with Cluster(listeners={"CLIENT": Listener(port=9092)}) as cluster:
        bootstrap = cluster.bootstrap("CLIENT")
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap().split(","))
        topics = [ORDERS, FACTORY, GREENHOUSE]
        admin.create_topics([NewTopic(name, 2, 1) for name in topics])
        admin.wait_for_topics(topics)
        admin.close()
        broker = f"Apache Kafka {cluster.version}, KRaft mode"
        with Recording(out / "events", cluster.ports("CLIENT"), ABOUT, broker) as recording:
            shop = Sender(recording, bootstrap, "shop", acks="all", enable_idempotence=True)
            meant = []
            for each, key, value, headers in events():
                shop.send(ORDERS, key, value, headers)
                meant.append(each | {"key": None if key is None else base64.b64encode(key).decode()})
            count = shop.close()
            more, violations = devices(recording, bootstrap)
            read(recording, bootstrap, count + more)
    told = {"events": meant, "violations": violations, "messages": more, "expired": ["plant-1"]}
    (out / "events.meant.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
