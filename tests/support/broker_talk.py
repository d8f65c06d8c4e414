"""A client without sockets that talks to the broker of ``kwire.testing``, and a clock that a test moves."""

from __future__ import annotations

from typing import Any

from kwire import messages, records
from kwire.protocol import Connection
from kwire.protocol.connection import ResponseReceived
from kwire.records import Record
from kwire.testing.broker.cluster import Cluster, Node, Settings
from kwire.testing.broker.conversation import Core
from kwire.testing.broker.logs import Topic

THREE = [Record(b"k", b"v%d" % number, timestamp=1000 + number) for number in range(3)]
BATCH = records.encode(THREE)


class Clock:
    """Seconds, which pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A cluster without sockets."""

    def __init__(self, release: str = "4.4", nodes: int = 1, **settings: Any) -> None:
        self.clock = Clock()
        listed = [Node(number + 1, "127.0.0.1", 9092 + number) for number in range(nodes)]
        wall = lambda: 1_700_000_000 + self.clock.now  # noqa: E731
        sasl = settings.pop("sasl", None)
        self.core = Core(Cluster(release, listed, self.clock, wall, Settings(**settings), sasl=sasl))
        self.cluster = self.core.cluster

    def client(self, node: int = 0, client_id: str = "me", port: int = 50_000) -> Client:
        return Client(self, node, client_id, port)

    def wait(self, seconds: float) -> None:
        """Let time pass, as whoever has the sockets would."""
        until = self.clock.now + seconds
        while self.core.due() < until:
            self.clock.now = max(self.clock.now, self.core.due())
            self.core.settle()
            assert self.core.due() > self.clock.now  # or it would be asked again at once, and for ever
        self.clock.now = until
        self.core.settle()


class Client:
    """One connection."""

    def __init__(self, bench: Bench, node: int, client_id: str, port: int = 50_000) -> None:
        self.bench = bench
        self.got = bytearray()
        self.closed = False
        self.connection = Connection("client", client_id=client_id, sasl=bench.cluster.sasl is not None)
        made = bench.core.connect(bench.cluster.nodes[node], ("127.0.0.1", port), self.got.extend, self._close)
        assert made is not None
        self.talk = made

    def _close(self) -> None:
        self.closed = True

    def send(self, message: Any, version: int) -> None:
        self.talk.receive(self.connection.send(message, version=version))

    def answers(self) -> list[Any]:
        """The responses that have come since the last question."""
        data = bytes(self.got)
        self.got.clear()
        events = self.connection.receive(data) if data else ()
        return [one.body for one in events if isinstance(one, ResponseReceived)]

    def ask(self, message: Any, version: int) -> Any:
        """The response, or None if there is none yet."""
        self.send(message, version)
        found = self.answers()
        assert len(found) <= 1
        return found[0] if found else None


def produce(
    client: Client,
    topic: Topic,
    data: bytes,
    version: int,
    *,
    acks: int = -1,
    partition: int = 0,
    transactional_id: str | None = None,
) -> Any:
    kind = messages.ProduceRequest
    named: dict[str, Any] = {"topic_id": topic.id} if version >= 13 else {"name": topic.name}
    part = kind.PartitionProduceData(index=partition, records=data)
    request = kind(acks=acks, timeout_ms=1000, topic_data=[kind.TopicProduceData(**named, partition_data=[part])])
    request.transactional_id = transactional_id
    answer = client.ask(request, version)
    return answer and answer.responses[0].partition_responses[0]


class Producer:
    """A transactional producer, as of Kafka 3.9."""

    def __init__(self, bench: Bench, name: str = "t") -> None:
        self.bench, self.name, self.sequence = bench, name, 0
        self.client = bench.client()
        answer = self.init()
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def init(self, **more: Any) -> Any:
        request = messages.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=10_000, **more)
        return self.client.ask(request, 4)

    def add(self, *topics: str) -> list[int]:
        kind = messages.AddPartitionsToTxnRequest
        request = kind(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in topics],
        )
        answer = self.client.ask(request, 3)
        return [one.results_by_partition[0].partition_error_code for one in answer.results_by_topic_v3_and_below]

    def write(self, topic: Topic) -> int:
        data = records.encode(
            THREE,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        code = int(produce(self.client, topic, data, 9, transactional_id=self.name).error_code)
        self.sequence += 0 if code else 3
        return code

    def end(self, committed: bool, version: int = 3) -> Any:
        request = messages.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        return self.client.ask(request, version)


def fetch_request(topic: Topic | None, offset: int, version: int, **more: Any) -> Any:
    kind = messages.FetchRequest
    size = more.pop("partition_max_bytes", 1 << 20)
    request = kind(max_wait_ms=500, min_bytes=1, max_bytes=1 << 20)
    if topic is not None:
        named: dict[str, Any] = {"topic_id": topic.id} if version >= 13 else {"topic": topic.name}
        part = kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=size)
        request.topics = [kind.FetchTopic(**named, partitions=[part])]
    for name, value in more.items():
        setattr(request, name, value)
    return request


def part_of(answer: Any) -> Any:
    return answer.responses[0].partitions[0]
