"""kafka-python as a recorded client: produce, read, groups and administration, pinned to a broker version or not.

Pinning (``api_version=(0, 10, 1)``) makes kafka-python choose the API versions and the message format that a client of
that broker's time had, without asking with ApiVersions: (0, 9) is magic 0, (0, 10, 1) magic 1, (1, 0) magic 2 with
inflexible versions, and no pin the newest that both sides have.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import kafka  # type: ignore[import-untyped]
from capturing import Record, Recording
from kafka import admin as ka
from samples import CODECS, Sample

__all__ = ["KafkaPython"]


def settle(consumer: Any) -> None:
    """Let the last Fetch be answered: a client that hangs up meanwhile leaves half a response in the capture."""
    consumer.pause(*consumer.assignment())
    end = time.monotonic() + 0.8
    while time.monotonic() < end:
        consumer.poll(timeout_ms=100)


class KafkaPython:
    """One kafka-python "user": a name for the expectations, and the pin."""

    def __init__(self, recording: Recording, bootstrap: str, pin: tuple[int, ...] | None, **security: Any) -> None:
        self.recording = recording
        self.bootstrap = bootstrap.split(",")
        self.pin = pin
        self.security = security
        encrypted = security.get("security_protocol", "PLAINTEXT") in ("SSL", "SASL_SSL")
        self.remarks: dict[str, Any] = {"encrypted": True} if encrypted else {}
        self.name = "kafka-python" + ("" if pin is None else "-pinned-" + ".".join(map(str, pin)))
        recording.clients[self.name] = f"kafka-python {kafka.__version__}"

    def _common(self, role: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.bootstrap,
            "api_version": self.pin,
            "client_id": f"{self.name}-{role}",
            **self.security,
        }

    def _headers(self, sample: Sample) -> list[tuple[str, bytes]]:
        """The headers that can be sent: none before magic 2, and kafka-python refuses null values."""
        if self.pin is not None and self.pin < (0, 11):
            return []
        return [(name, value) for name, value in sample.headers if value is not None]

    def _stamp(self, sample: Sample, told: int | None) -> int | None:
        """The timestamp that was sent: what the producer says, unless it says nothing or the format has none."""
        if self.pin is not None and self.pin < (0, 10):
            return None
        return sample.timestamp if told is None or told < 0 else told

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
                headers = self._headers(each)
                extra = {"headers": headers} if headers else {}
                future = producer.send(
                    topic, key=each.key, value=each.value, timestamp_ms=each.timestamp, partition=partition, **extra
                )
                sent.append((each, future))
            producer.flush(timeout=20)
            for each, future in sent:
                more = {"codec": codec, "acks": -1 if acks == "all" else acks, **self.remarks}
                if self.pin is not None and self.pin < (0, 10):
                    each = replace(each, timestamp=None)  # magic 0 has none
                try:
                    got = future.get(timeout=20)
                except kafka.errors.KafkaError as error:
                    record = Record(topic, partition, None, each.timestamp, each.key, each.value, self._headers(each))
                    self.recording.produced(self.name, record, error=type(error).__name__, **more)
                    continue
                record = Record(
                    topic,
                    got.partition,
                    None if got.offset < 0 else got.offset,
                    self._stamp(each, got.timestamp),
                    each.key,
                    each.value,
                    self._headers(each),
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
            count = self._drain(consumer, expect, seconds)
            settle(consumer)
            return count
        finally:
            consumer.close()

    def group(self, topics: Sequence[str], name: str, life: float = 5.0, **options: Any) -> None:
        """Two members; the second joins late and leaves early, so that the group balances three times."""

        def member(number: int, delay: float, seconds: float) -> None:
            time.sleep(delay)
            consumer = kafka.KafkaConsumer(
                group_id=name,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6000,
                heartbeat_interval_ms=500,
                fetch_max_wait_ms=500,
                **self._common(f"member-{number}"),
                **options,
            )
            try:
                consumer.subscribe(list(topics))
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    batches = consumer.poll(timeout_ms=200)
                    for batch in batches.values():
                        for got in batch:
                            self._fetched(got)
                    try:
                        if batches:
                            consumer.commit()
                    except kafka.errors.KafkaError as error:
                        self.recording.note(self.name, "commit failed", group=name, error=type(error).__name__)
                settle(consumer)
                held = sorted(f"{each.topic}-{each.partition}" for each in consumer.assignment())
                self.recording.note(self.name, "assigned", group=name, member=number, partitions=held)
            finally:
                consumer.close()

        members = [
            threading.Thread(target=member, args=(1, 0.0, life)),
            threading.Thread(target=member, args=(2, life * 0.25, life * 0.45)),
        ]
        for each in members:
            each.start()
        for each in members:
            each.join()

    def transactions(self, topic: str, what: Sequence[Sample]) -> None:
        """Three transactions, the middle one aborted."""
        producer = kafka.KafkaProducer(
            transactional_id=f"{topic}-id", acks="all", linger_ms=50, **self._common("transactions")
        )
        try:
            producer.init_transactions()
            for ending in ("committed", "aborted", "committed"):
                producer.begin_transaction()
                sent = []
                for each in what:
                    if each.key is None and each.value is None:
                        continue
                    future = producer.send(topic, key=each.key, value=each.value, headers=self._headers(each))
                    sent.append((each, future))
                producer.flush(timeout=20)
                for each, future in sent:
                    got = future.get(timeout=20)
                    record = Record(
                        topic, got.partition, got.offset, got.timestamp, each.key, each.value, self._headers(each)
                    )
                    self.recording.produced(self.name, record, codec="none", acks=-1, transaction=ending)
                if ending == "aborted":
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
        finally:
            producer.close(timeout=10)

    def attempt(self, call: str, run: Callable[[], object]) -> None:
        """One administrative call; how it ended is noted, an error of the broker included."""
        error = None
        try:
            run()
        except (kafka.errors.KafkaError, ValueError, NotImplementedError) as problem:
            error = type(problem).__name__
        self.recording.note(self.name, "admin", call=call, error=error)

    def create(self, *topics: str, partitions: int = 2) -> None:
        """Create topics, in the recording."""
        client = kafka.KafkaAdminClient(**self._common("admin"))
        try:
            self.attempt("create_topics", lambda: client.create_topics([ka.NewTopic(t, partitions, 1) for t in topics]))
        finally:
            client.close()

    def administer(self, topic: str, group: str) -> None:
        """Calls of the admin client that this pin can make; ``topic`` and ``group`` exist."""
        client = kafka.KafkaAdminClient(**self._common("admin"))
        own = f"{topic}-admin"
        first = kafka.TopicPartition(topic, 0)
        resource = ka.ConfigResource(ka.ConfigResourceType.TOPIC, own)
        changed = ka.ConfigResource(ka.ConfigResourceType.TOPIC, own, {"retention.ms": "3600000"})
        pattern = ka.ResourcePattern(ka.ResourceType.TOPIC, own)
        acl = ka.ACL("User:someone", "*", ka.ACLOperation.READ, ka.ACLPermissionType.ALLOW, pattern)
        calls: list[tuple[str, Callable[[], object]]] = [
            ("create_topics", lambda: client.create_topics([ka.NewTopic(own, 1, 1)])),
            ("list_topics", client.list_topics),
            ("describe_topics", lambda: client.describe_topics([own])),
            ("describe_cluster", client.describe_cluster),
            ("describe_configs", lambda: client.describe_configs([resource])),
            ("alter_configs", lambda: client.alter_configs([changed])),
            ("create_partitions", lambda: client.create_partitions({own: 3})),
            ("describe_log_dirs", client.describe_log_dirs),
            ("list_partition_offsets", lambda: client.list_partition_offsets({first: ka.OffsetSpec.LATEST})),
            ("delete_records", lambda: client.delete_records({first: 1})),
            ("list_groups", client.list_groups),
            ("describe_groups", lambda: client.describe_groups([group])),
            ("list_group_offsets", lambda: client.list_group_offsets({group: None})),
            ("create_acls", lambda: client.create_acls([acl])),
            ("describe_acls", lambda: client.describe_acls(acl)),
            ("delete_acls", lambda: client.delete_acls([acl])),
            ("elect_leaders", lambda: client.elect_leaders(0, {topic: [0]})),
            ("list_partition_reassignments", client.list_partition_reassignments),
            ("describe_user_scram_credentials", client.describe_user_scram_credentials),
            ("describe_topic_partitions", lambda: client.describe_topic_partitions([topic])),
            ("list_transactions", client.list_transactions),
            ("describe_metadata_quorum", client.describe_metadata_quorum),
            ("delete_group_offsets", lambda: client.delete_group_offsets(group, [first])),
            ("delete_groups", lambda: client.delete_groups([group])),
            ("delete_topics", lambda: client.delete_topics([own])),
        ]
        try:
            for name, call in calls:
                self.attempt(name, call)
        finally:
            client.close()

    def _fetched(self, got: Any) -> None:
        known = got.timestamp is not None and got.timestamp >= 0
        self.recording.fetched(
            self.name,
            Record(
                got.topic,
                got.partition,
                got.offset,
                got.timestamp if known else None,
                got.key,
                got.value,
                list(got.headers or ()),
                got.timestamp_type if known else None,
            ),
        )

    def _drain(self, consumer: Any, expect: int, seconds: float) -> int:
        count = 0
        deadline = time.monotonic() + seconds
        while count < expect and time.monotonic() < deadline:
            try:
                batches = consumer.poll(timeout_ms=200)
            except kafka.errors.KafkaError as error:
                self.recording.note(self.name, "read error", error=type(error).__name__)
                break
            for batch in batches.values():
                for got in batch:
                    count += 1
                    self._fetched(got)
        if count < expect:
            self.recording.note(self.name, "read fewer records than were sent", read=count, sent=expect)
        return count
