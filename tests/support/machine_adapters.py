"""Adapters of ``kwire.testing.machine``: for real clients, for one of few lines, and for what is wrong in its ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker_sockets import Blocking

from kwire import messages, records
from kwire.records import Record
from kwire.testing.machine import Adapter

SECONDS = 10.0


class KafkaPython(Adapter):
    """kafka-python, whose producer is idempotent as installed."""

    idempotent = True

    def __init__(self, bootstrap: str) -> None:
        from kafka import KafkaConsumer, KafkaProducer

        super().__init__(bootstrap)
        self._producer: Any = KafkaProducer(bootstrap_servers=bootstrap, retry_backoff_ms=20)
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False, retry_backoff_ms=20
        )

    def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]:
        futures = [self._producer.send(topic, value, partition=partition) for value in values]
        self._producer.flush(SECONDS)
        return [value for value, future in zip(values, futures, strict=True) if future.succeeded()]

    def _place(self, topic: str, partition: int) -> Any:
        from kafka import TopicPartition

        return TopicPartition(topic, partition)

    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        place = self._place(topic, partition)
        self._consumer.assign([place])
        self._consumer.seek(place, offset)
        got: list[tuple[int, bytes]] = []
        for _ in range(int(SECONDS / 0.2)):
            found = self._consumer.poll(200, max_records=count - len(got)).get(place, [])
            got += [(one.offset, one.value) for one in found]
            if len(got) >= count:
                break
        return got

    def commit(self, topic: str, partition: int, offset: int) -> bool:
        from kafka.structs import OffsetAndMetadata

        self._consumer.commit({self._place(topic, partition): OffsetAndMetadata(offset, "", -1)})
        return True

    def committed(self, topic: str, partition: int) -> int | None:
        found: int | None = self._consumer.committed(self._place(topic, partition))
        return found

    def close(self) -> None:
        self._producer.close(timeout=1)
        self._consumer.close()


class ConfluentKafka(Adapter):
    """confluent-kafka with an idempotent producer."""

    idempotent = True

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Consumer, Producer

        super().__init__(bootstrap)
        fast = {"bootstrap.servers": bootstrap, "retry.backoff.ms": 20, "reconnect.backoff.ms": 20}
        self._producer: Any = Producer({**fast, "enable.idempotence": True, "linger.ms": 0})
        self._of_group = {
            **fast,
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 6000,
            "auto.offset.reset": "earliest",
        }
        self._consumer: Any = Consumer({**self._of_group, "group.id": "g"})
        self._members: dict[int, Any] = {}

    def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]:
        said: list[bytes] = []

        def told(error: Any, message: Any) -> None:
            if error is None:
                said.append(message.value())

        for value in values:
            self._producer.produce(topic, value, partition=partition, on_delivery=told)
        self._producer.flush(SECONDS)
        return said

    def _place(self, topic: str, partition: int, offset: int = -1001) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(topic, partition, offset)

    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        self._consumer.assign([self._place(topic, partition, offset)])
        got: list[tuple[int, bytes]] = []
        for _ in range(int(SECONDS / 0.2)):
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                got.append((message.offset(), message.value()))
            if len(got) >= count:
                break
        self._consumer.unassign()
        return got

    def commit(self, topic: str, partition: int, offset: int) -> bool:
        self._consumer.commit(offsets=[self._place(topic, partition, offset)], asynchronous=False)
        return True

    def committed(self, topic: str, partition: int) -> int | None:
        (found,) = self._consumer.committed([self._place(topic, partition)], timeout=SECONDS)
        return None if found.offset < 0 else int(found.offset)

    def join(self, member: int, topics: list[str]) -> None:
        from confluent_kafka import Consumer

        self._members[member] = Consumer({**self._of_group, "group.id": "members"})
        self._members[member].subscribe(topics)

    def assigned(self, member: int) -> set[tuple[str, int]]:
        self._members[member].poll(0.05)
        return {(one.topic, one.partition) for one in self._members[member].assignment()}

    def leave(self, member: int) -> None:
        self._members.pop(member).close()

    def close(self) -> None:
        for one in (self._consumer, *self._members.values()):
            one.close()


class Plain(Adapter):
    """A client of few lines, which asks node after node until one carries out what it wants."""

    idempotent = True

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._links: dict[str, Blocking] = {}
        self._producer: tuple[int, int] | None = None
        self._sequences: dict[tuple[str, int], int] = {}

    def ask(self, message: Any, version: int, code: Callable[[Any], int]) -> Any:
        """The first answer whose error code is 0, from whichever node."""
        for turn in range(40):
            addresses = self.bootstrap.split(",")
            address = addresses[turn % len(addresses)]
            try:
                link = self._links.get(address) or Blocking(address)
                self._links[address] = link
                answer = link.ask(message, version)
            except (OSError, EOFError):
                self._links.pop(address).close()
                continue
            if not code(answer):
                return answer
        raise AssertionError("no node carries it out")

    def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]:
        if self._producer is None:
            made = self.ask(messages.InitProducerIdRequest(transactional_id=None), 2, lambda one: one.error_code)
            self._producer = made.producer_id, made.producer_epoch
        first = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = first + len(values)
        data = records.encode(
            [Record(None, value) for value in values],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=first,
        )
        self.ask(_produce(topic, partition, data), 8, lambda one: one.responses[0].partition_responses[0].error_code)
        return values

    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        kind = messages.FetchRequest
        part = kind.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = kind(max_wait_ms=100, min_bytes=1, topics=[kind.FetchTopic(topic=topic, partitions=[part])])
        answer = self.ask(request, 6, lambda one: one.responses[0].partitions[0].error_code)
        batches = records.decode(answer.responses[0].partitions[0].records)
        found = [(one.offset or 0, one.value or b"") for batch in batches for one in batch.records]
        return [one for one in found if one[0] >= offset][:count]

    def commit(self, topic: str, partition: int, offset: int) -> bool:
        kind = messages.OffsetCommitRequest
        part = kind.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        request = kind(group_id="g", topics=[kind.OffsetCommitRequestTopic(name=topic, partitions=[part])])
        self.ask(request, 6, lambda one: one.topics[0].partitions[0].error_code)
        return True

    def committed(self, topic: str, partition: int) -> int | None:
        kind = messages.OffsetFetchRequest
        wanted = kind.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])
        answer = self.ask(kind(group_id="g", topics=[wanted]), 5, lambda one: one.error_code)
        offset = answer.topics[0].partitions[0].committed_offset
        return None if offset < 0 else int(offset)

    def close(self) -> None:
        for one in self._links.values():
            one.close()


def _produce(topic: str, partition: int, data: bytes) -> Any:
    kind = messages.ProduceRequest
    part = kind.PartitionProduceData(index=partition, records=data)
    return kind(acks=-1, timeout_ms=1000, topic_data=[kind.TopicProduceData(name=topic, partition_data=[part])])


class TakesErrorsForDone(Plain):
    """It does not look at the error code of Produce."""

    def ask(self, message: Any, version: int, code: Callable[[Any], int]) -> Any:
        produce = isinstance(message, messages.ProduceRequest)
        return super().ask(message, version, (lambda one: 0) if produce else code)


class WritesAgain(Plain):
    """It gives a batch another sequence number when it sends it again."""

    def produce(self, topic: str, partition: int, values: list[bytes]) -> list[bytes]:
        data = records.encode([Record(None, value) for value in values])
        self.ask(_produce(topic, partition, data), 8, lambda one: one.responses[0].partition_responses[0].error_code)
        return values


class ReadsFromTheBatch(Plain):
    """It gives records of a batch that are before the offset that was asked for."""

    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        return super().fetch(topic, partition, max(offset - 1, 0), count)


class ForgetsCommits(Plain):
    """It says that an offset is committed, and commits the one before."""

    def commit(self, topic: str, partition: int, offset: int) -> bool:
        return super().commit(topic, partition, max(offset - 1, 0))


class SaysNonsense(Plain):
    """It sends a request of which a part is missing."""

    def fetch(self, topic: str, partition: int, offset: int, count: int) -> list[tuple[int, bytes]]:
        link = Blocking(self.bootstrap.split(",")[0])
        link.socket.sendall(b"\0\0\0\x0c\0\x01\0\x04\0\0\0\x01\xff\xff\0\0")
        link.socket.recv(1)
        link.close()
        return super().fetch(topic, partition, offset, count)
