"""What clients do in a conversation, a step each. A step is a value: ``repr`` gives the code that makes it.

Every step can follow every other one. A client asks for what it needs first: versions, Metadata, a coordinator, a
producer id. It does nothing where client and broker have no version for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from kwire import messages, records
from kwire.codec.objects import WireMessage
from kwire.records import Codec, Record
from kwire.schema.keys import ApiKey
from kwire.testing.recipes import Recipe
from kwire.testing.talks.clients import Client, Membership, Producer, World

__all__ = [
    "Ask",
    "Beat",
    "Close",
    "Commit",
    "Committed",
    "End",
    "Find",
    "Join",
    "Leave",
    "Metadata",
    "Pause",
    "Read",
    "Step",
    "Write",
]

_TRANSACTIONAL_ID: Final = "t"
"""The transactional id of a client is this and its number."""
_IDS_OF_PRODUCE: Final = 13
_IDS_OF_COMMITS: Final = 10
_ZSTD_SINCE: Final = 7


@dataclass(frozen=True, repr=False, kw_only=True)
class Step(Recipe):
    """Something that a client does."""

    client: int = 0
    """The number of the client."""

    def play(self, client: Client, world: World) -> None:
        """Do it."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False, kw_only=True)
class Write(Step):
    """Produce: a record for each of ``values``.

    ``producer`` is ``plain``, ``idempotent``, or ``transactional``, which opens a transaction if none is open. The
    format of records (magic) is the newest that the version takes. With ``held``, the request leaves together with the
    next one of this client.
    """

    topic: str = "a"
    partition: int = 0
    values: tuple[bytes | None, ...] = (b"",)
    codec: Codec = "none"
    acks: int = -1
    producer: Literal["plain", "idempotent", "transactional"] = "plain"
    held: bool = False

    def play(self, client: Client, world: World) -> None:
        topic = client.topic(self.topic)
        version = client.version(ApiKey.PRODUCE)
        if topic is None or version is None:
            return
        transactional_id = _id_of(self.client) if self.producer == "transactional" else None
        known = None if self.producer == "plain" or version < 3 else client.producer(transactional_id)
        place = topic.name, self.partition
        if known is None:
            transactional_id = None
        elif transactional_id is not None and not client.transactions_v2:
            version = min(version, 11)
            self._add(client, known, transactional_id)
        acks = -1 if known is not None else self.acks
        kind = messages.ProduceRequest
        part = kind.PartitionProduceData(
            index=self.partition, records=self._records(client, known, transactional_id is not None, version)
        )
        if known is not None and transactional_id is not None:
            known.partitions.add(place)
        named: dict[str, Any] = {"topic_id": topic.id} if version >= _IDS_OF_PRODUCE else {"name": topic.name}
        request = kind(acks=acks, timeout_ms=1000, topic_data=[kind.TopicProduceData(**named, partition_data=[part])])
        if version >= 3:
            request.transactional_id = transactional_id
        client.send(request, version)

    def _records(self, client: Client, producer: Producer | None, transactional: bool, version: int) -> bytes:
        magic = 0 if version < 2 else 1 if version < 3 else 2
        codec: Codec = "none" if self.codec == "zstd" and version < _ZSTD_SINCE else self.codec
        time = client.time
        listed = [Record(None, value, timestamp=time if magic else None) for value in self.values]
        if producer is None:
            return records.encode(listed, magic=magic, compression=codec)
        return records.encode(
            listed,
            compression=codec,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=producer.take((self.topic, self.partition), len(listed)),
            is_transactional=transactional,
        )

    def _add(self, client: Client, producer: Producer, transactional_id: str) -> None:
        version = client.version(ApiKey.ADD_PARTITIONS_TO_TXN, 3)
        if version is None or (self.topic, self.partition) in producer.partitions:
            return
        kind = messages.AddPartitionsToTxnRequest
        request = kind(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=self.topic, partitions=[self.partition])],
        )
        client.ask(request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class End(Step):
    """EndTxn of the open transaction. With ``group``, the offsets that the client has read to are a part of it."""

    commit: bool = True
    group: str | None = None

    def play(self, client: Client, world: World) -> None:
        name = _id_of(self.client)
        known = client.producers.get(name)
        version = client.version(ApiKey.END_TXN)
        if known is None or not known.partitions or version is None:
            return
        second = client.transactions_v2
        if self.group is not None:
            self._offsets(client, known, name, self.group)
        request = messages.EndTxnRequest(
            transactional_id=name, producer_id=known.id, producer_epoch=known.epoch, committed=self.commit
        )
        answer = client.ask(request, version if second else min(version, 4))
        known.partitions.clear()
        if answer is not None and second and not answer.error_code:
            known.id, known.epoch = answer.producer_id, answer.producer_epoch
            known.sequences.clear()
        elif answer is None or answer.error_code:
            del client.producers[name]

    def _offsets(self, client: Client, known: Producer, name: str, group: str) -> None:
        second = client.transactions_v2
        client.coordinator(group, 0)
        first = client.version(ApiKey.ADD_OFFSETS_TO_TXN)
        version = client.version(ApiKey.TXN_OFFSET_COMMIT, 5 if second else 4)
        if first is None or version is None:
            return
        if not second or version < 5:
            request = messages.AddOffsetsToTxnRequest(
                transactional_id=name, producer_id=known.id, producer_epoch=known.epoch, group_id=group
            )
            client.ask(request, first)
        kind = messages.TxnOffsetCommitRequest
        made = kind(transactional_id=name, group_id=group, producer_id=known.id, producer_epoch=known.epoch)
        mine = client.membership
        if version >= 3:
            made.generation_id_or_member_epoch = -1
            if mine is not None and mine.group == group:
                made.generation_id_or_member_epoch, made.member_id = mine.generation, mine.member_id
        for (topic, number), offset in client.positions.items():
            part = kind.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
            made.topics.append(kind.TxnOffsetCommitRequestTopic(name=topic, partitions=[part]))
        client.ask(made, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Read(Step):
    """Fetch of one partition, from ``offset`` or from where the client is. ``wait``: milliseconds for more bytes.

    With ``committed``, records of open and aborted transactions are left out. The client does not wait for the answer.
    """

    topic: str = "a"
    partition: int = 0
    offset: int | None = None
    wait: int = 0
    committed: bool = False

    def play(self, client: Client, world: World) -> None:
        client.wait()
        version = client.version(ApiKey.FETCH)
        if version is None:
            return
        place = self.topic, self.partition
        offset = client.positions.get(place, 0) if self.offset is None else self.offset
        isolation = int(self.committed and version >= 4)
        request = client.fetch_request(place, offset, version, self.wait, isolation)
        if request is not None:
            client.send(request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Find(Step):
    """ListOffsets: -1 is the end of a partition, -2 its begin, else it is a time in milliseconds."""

    topic: str = "a"
    partition: int = 0
    timestamp: int = -1
    held: bool = False

    def play(self, client: Client, world: World) -> None:
        topic = client.topic(self.topic)
        version = client.version(ApiKey.LIST_OFFSETS)
        if topic is None or version is None:
            return
        kind = messages.ListOffsetsRequest
        part = kind.ListOffsetsPartition(partition_index=self.partition, timestamp=self.timestamp)
        request = kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=topic.name, partitions=[part])])
        client.send(request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Metadata(Step):
    """Metadata of some topics, or of all."""

    topics: tuple[str, ...] | None = None

    def play(self, client: Client, world: World) -> None:
        version = client.version(ApiKey.METADATA)
        if version is None:
            return
        kind = messages.MetadataRequest
        wanted = None if self.topics is None else [kind.MetadataRequestTopic(name=name) for name in self.topics]
        client.send(kind(topics=wanted if version or wanted else []), version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Join(Step):
    """Become a member of a group. ``instance`` makes it a static member, ``consumer`` is the protocol of KIP-848.

    The client does not wait for the answer, which may depend on other members.
    """

    group: str = "g"
    topics: tuple[str, ...] = ("a",)
    instance: str | None = None
    consumer: bool = False

    def play(self, client: Client, world: World) -> None:
        known = client.membership
        if known is not None and (known.group, known.consumer) != (self.group, self.consumer):
            client.leave()
            client.wait()
            known = None
        for name in self.topics:
            client.topic(name)
        client.coordinator(self.group, 0)
        made = Membership(self.group, self.topics, self.instance, self.consumer)
        if self.consumer:
            made.generation = 0
        if known is not None:
            made.member_id = known.member_id
        client.membership = made
        client.join()


@dataclass(frozen=True, repr=False, kw_only=True)
class Beat(Step):
    """A heartbeat. A member that hears of a rebalance joins again."""

    def play(self, client: Client, world: World) -> None:
        client.heartbeat()


@dataclass(frozen=True, repr=False, kw_only=True)
class Leave(Step):
    """Leave the group."""

    def play(self, client: Client, world: World) -> None:
        client.leave()


@dataclass(frozen=True, repr=False, kw_only=True)
class Commit(Step):
    """OffsetCommit, as a member of the group if the client is one."""

    group: str = "g"
    topic: str = "a"
    partition: int = 0
    offset: int = 0

    def play(self, client: Client, world: World) -> None:
        topic = client.topic(self.topic)
        version = client.version(ApiKey.OFFSET_COMMIT)
        if topic is None or version is None:
            return
        if version:
            client.coordinator(self.group, 0)
        kind = messages.OffsetCommitRequest
        request = kind(group_id=self.group)
        mine = client.membership
        if version and mine is not None and mine.group == self.group and not (mine.consumer and version < 9):
            request.generation_id_or_member_epoch, request.member_id = mine.generation, mine.member_id
            if version >= 7:
                request.group_instance_id = mine.instance
        part = kind.OffsetCommitRequestPartition(
            partition_index=self.partition, committed_offset=self.offset, committed_metadata=""
        )
        named: dict[str, Any] = {"topic_id": topic.id} if version >= _IDS_OF_COMMITS else {"name": topic.name}
        request.topics = [kind.OffsetCommitRequestTopic(**named, partitions=[part])]
        client.send(request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Committed(Step):
    """OffsetFetch: what a group has committed in one partition."""

    group: str = "g"
    topic: str = "a"
    partition: int = 0

    def play(self, client: Client, world: World) -> None:
        topic = client.topic(self.topic)
        version = client.version(ApiKey.OFFSET_FETCH)
        if topic is None or version is None:
            return
        if version:
            client.coordinator(self.group, 0)
        kind = messages.OffsetFetchRequest
        if version < 8:
            one = kind.OffsetFetchRequestTopic(name=topic.name, partition_indexes=[self.partition])
            request = kind(group_id=self.group, topics=[one])
        else:
            named: dict[str, Any] = {"topic_id": topic.id} if version >= _IDS_OF_COMMITS else {"name": topic.name}
            several = kind.OffsetFetchRequestTopics(**named, partition_indexes=[self.partition])
            request = kind(groups=[kind.OffsetFetchRequestGroup(group_id=self.group, topics=[several])])
        client.send(request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Ask(Step):
    """Any other request, in the version that client and broker have agreed on."""

    request: WireMessage

    def play(self, client: Client, world: World) -> None:
        key = self.request.SCHEMA.api_key
        version = None if key is None else client.version(key)
        if version is not None:
            client.send(self.request, version)


@dataclass(frozen=True, repr=False, kw_only=True)
class Close(Step):
    """Close the connection. The next step of the client opens another one."""

    def play(self, client: Client, world: World) -> None:
        client.close()


@dataclass(frozen=True, repr=False, kw_only=True)
class Pause(Step):
    """Time passes."""

    seconds: int = 1

    def play(self, client: Client, world: World) -> None:
        world.pass_time(self.seconds)


def _id_of(client: int) -> str:
    return f"{_TRANSACTIONAL_ID}{client}"
