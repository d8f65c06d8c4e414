"""kafka-python as a recorded client: produce, read, groups and administration, pinned to a broker version or not.

Pinning (``api_version=(0, 10, 1)``) makes kafka-python choose the API versions and the message format that a client of
that broker's time had, without asking with ApiVersions: (0, 9) is magic 0, (0, 10, 1) magic 1, (1, 0) magic 2 with
inflexible versions, and no pin the newest that both sides have.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import kafka  # type: ignore[import-untyped]
from capturing import Record, Recording

__all__ = ["CODECS", "SAMPLES", "KafkaPython", "Sample"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A record to send; ``timestamp`` None lets the client choose."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def samples(count: int = 12, headers: bool = False) -> list[Sample]:
    """The corner cases of keys and values first, then ``count`` records that compress."""
    corner = [
        Sample(b"key", b"value"),
        Sample(None, b"no key"),
        Sample(b"", b"empty key"),
        Sample(b"no value", None),
        Sample(b"empty value", b""),
        Sample(None, None),
        Sample("schlüssel".encode(), "wert \u2603".encode()),
        Sample(b"binary", bytes(range(256))),
    ]
    rest = [
        Sample(b"device-%02d" % (n % 5), b'{"device":%d,"state":"running","reading":%d}' % (n % 5, n * 7), BASE_MS + n)
        for n in range(count)
    ]
    if not headers:
        return corner + rest
    marks: list[tuple[tuple[str, bytes | None], ...]] = [
        (("trace", b"abc"),),
        (("empty", b""), ("null", None)),
        (("twice", b"1"), ("twice", b"2"), ("ünï", b"\x00\xff")),
    ]
    return [
        Sample(each.key, each.value, each.timestamp, marks[n % 4] if n % 4 < 3 else ())
        for n, each in enumerate(corner + rest)
    ]


SAMPLES = samples()


class KafkaPython:
    """One kafka-python "user": a name for the expectations, and the pin."""

    def __init__(self, recording: Recording, bootstrap: str, pin: tuple[int, ...] | None, **security: Any) -> None:
        self.recording = recording
        self.bootstrap = bootstrap.split(",")
        self.pin = pin
        self.security = security
        self.name = "kafka-python" + ("" if pin is None else "-pinned-" + ".".join(map(str, pin)))
        recording.clients[self.name] = f"kafka-python {kafka.__version__}"

    def _common(self, role: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "api_version": self.pin,
            "client_id": f"{self.name}-{role}",
            **self.security,
        }

    def codecs(self) -> tuple[str, ...]:
        return CODECS if self.pin is None or self.pin >= (2, 1) else CODECS[:4]

    def produce(
        self,
        topic: str,
        what: Iterable[Sample],
        *,
        codec: str = "none",
        acks: int | str = "all",
        partition: int | None = None,
        linger_ms: int = 100,
        **options: Any,
    ) -> int:
        """Send and wait; reports every record with the offset that the broker gave it. Returns how many were sent."""
        producer = kafka.KafkaProducer(
            acks=acks,
            compression_type=None if codec == "none" else codec,
            linger_ms=linger_ms,
            enable_idempotence=options.pop("enable_idempotence", False),
            **self._common("producer"),
            **options,
        )
        sent = []
        try:
            for each in what:
                if each.key is None and each.value is None:
                    continue  # kafka-python refuses to send nothing at all
                extra = {"headers": list(each.headers)} if each.headers else {}
                future = producer.send(
                    topic, key=each.key, value=each.value, timestamp_ms=each.timestamp, partition=partition, **extra
                )
                sent.append((each, future))
            producer.flush(timeout=20)
            for each, future in sent:
                more = {"codec": codec, "acks": -1 if acks == "all" else acks}
                try:
                    got = future.get(timeout=20)
                except kafka.errors.KafkaError as error:
                    record = Record(topic, partition, None, each.timestamp, each.key, each.value, each.headers)
                    self.recording.produced(self.name, record, error=type(error).__name__, **more)
                    continue
                record = Record(
                    topic,
                    got.partition,
                    None if got.offset < 0 else got.offset,
                    each.timestamp if got.timestamp is None or got.timestamp < 0 else got.timestamp,
                    each.key,
                    each.value,
                    each.headers,
                )
                self.recording.produced(self.name, record, **more)
        finally:
            producer.close(timeout=10)
        return sum(future.succeeded() for _, future in sent)

    def read(self, topic: str, partitions: Sequence[int], expect: int, seconds: float = 20, **options: Any) -> int:
        """Read ``expect`` records from the start of the given partitions, without a group."""
        consumer = kafka.KafkaConsumer(
            group_id=None, enable_auto_commit=False, fetch_max_wait_ms=100, **self._common("consumer"), **options
        )
        try:
            assigned = [kafka.TopicPartition(topic, partition) for partition in partitions]
            consumer.assign(assigned)
            for each in assigned:
                consumer.seek(each, 0)
            return self._drain(consumer, expect, seconds)
        finally:
            consumer.close()

    def _drain(self, consumer: Any, expect: int, seconds: float) -> int:
        count = 0
        deadline = time.monotonic() + seconds
        while count < expect and time.monotonic() < deadline:
            for batch in consumer.poll(timeout_ms=200).values():
                for got in batch:
                    count += 1
                    self.recording.fetched(
                        self.name,
                        Record(
                            got.topic,
                            got.partition,
                            got.offset,
                            None if got.timestamp is None or got.timestamp < 0 else got.timestamp,
                            got.key,
                            got.value,
                            list(got.headers or ()),
                            None if got.timestamp is None or got.timestamp < 0 else got.timestamp_type,
                        ),
                    )
        if count < expect:
            self.recording.note(self.name, "read fewer records than were sent", read=count, sent=expect)
        return count
