"""A client without sockets, as a conversation needs it: it keeps what brokers have told it, and goes on from there.

``World`` is the broker, the time, and all clients. ``Client`` has one connection at a time. Steps (``steps``) tell it
what to do. What it answers by itself is here: it asks ApiVersions again after error 35, sends SyncGroup after
JoinGroup, and joins again when its group rebalances.

Rules kept here:

- Before a client does something, its earlier requests have been answered: time passes until then. Steps with ``held``
  are the exception: their bytes leave together with those of the next request.
- Nothing is sent that client and broker have no version for.
- Each piece of bytes leaves a millisecond after the one before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from kwire import messages, records, versions
from kwire.codec.objects import WireMessage
from kwire.errors import KwireError
from kwire.protocol import embedded
from kwire.protocol.connection import Connection, ResponseReceived
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.cluster import Cluster, Node, Settings
from kwire.testing.broker.conversation import Conversation as Talk
from kwire.testing.broker.conversation import Core

__all__ = ["BEGIN", "Client", "Membership", "Producer", "Said", "World"]

BEGIN: Final = 1_700_000_000
"""Seconds since 1970 at which a conversation begins."""
_STEP: Final = 0.001
_FIRST_PORT: Final = 50_000
_FIRST_ASKED: Final = "0.10.0"
"""The first release with ApiVersions."""
_VERSION_AT: Final = 6
"""Where the version stands in a request with its size; the correlation id comes after it."""
_IDS_OF_FETCH: Final = 13
_IDS_OF_METADATA: Final = 10
_MOST_WAITS: Final = 10_000
"""Times that something is due, before a client stops to wait."""
_SESSION_MS: Final = 10_000
_REBALANCE_MS: Final = 20_000
_PROTOCOL: Final = "range"
_LEFT: Final = -1
"""The epoch with which a member of the consumer protocol goes."""


class Said(NamedTuple):
    """A request or a response, as whoever has sent or taken it knows it."""

    connection: int
    """Connections are counted from 1."""
    direction: str
    """``request`` or ``response``."""
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any


@dataclass(slots=True)
class Producer:
    """An idempotent producer: what InitProducerId has given it, and how far it is in each partition."""

    id: int
    epoch: int
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    partitions: set[tuple[str, int]] = field(default_factory=set)
    """Those of the open transaction."""

    def take(self, place: tuple[str, int], count: int) -> int:
        """The sequence number of the first of ``count`` records."""
        first = self.sequences.get(place, 0)
        self.sequences[place] = first + count
        return first


@dataclass(slots=True)
class Membership:
    """What a client is in a group."""

    group: str
    topics: tuple[str, ...]
    instance: str | None = None
    consumer: bool = False
    """Whether it is the protocol of KIP-848."""
    member_id: str = ""
    generation: int = -1
    """The generation, or the epoch of a member."""
    owned: dict[UUID, list[int]] = field(default_factory=dict)


class Topic(NamedTuple):
    """What Metadata has said of a topic."""

    name: str
    id: UUID
    partitions: int


class _Link:
    """A connection, with the bytes of both sides."""

    def __init__(self, number: int, client_id: str, release: str, cluster: Cluster) -> None:
        known = versions.releases()
        ends = (release, cluster.release)
        self.asks: bool = all(known.index(one) >= known.index(_FIRST_ASKED) for one in ends)
        said = None if self.asks else versions.choose(dict(cluster.announced), pin=release)
        self.connection: Connection = Connection("client", client_id=client_id, versions=said, pin=release)
        self.number: int = number
        self.talk: Talk | None = None
        self.sent: bytearray = bytearray()
        self.received: bytearray = bytearray()
        self.outbox: bytearray = bytearray()
        self.got: bytearray = bytearray()
        self.closed: bool = False

    def write(self, data: bytes) -> None:
        """Bytes of the broker."""
        self.got += data
        self.received += data

    def close(self) -> None:
        """The broker has closed it."""
        self.closed = True


class World:
    """A broker, clients of it, and the time."""

    def __init__(self, release: str, topics: Sequence[tuple[str, int]], seed: int = 0) -> None:
        self.now: float = 0.0
        listed = [Node(1, "127.0.0.1", 9092)]
        settings = Settings(partitions=2, seed=seed)
        self.core: Core = Core(Cluster(release, listed, lambda: self.now, lambda: BEGIN + self.now, settings, seed))
        self.clients: list[Client] = []
        self.links: list[_Link] = []
        self.said: list[Said] = []
        for name, partitions in topics:
            self.core.cluster.create_topic(name, partitions)

    @property
    def time(self) -> int:
        """Milliseconds since 1970."""
        return int((BEGIN + self.now) * 1000)

    def open(self, client: Client) -> _Link:
        """A new connection."""
        made = _Link(len(self.links) + 1, client.name, client.release, self.core.cluster)
        peer = ("127.0.0.1", _FIRST_PORT + len(self.links))
        self.now += _STEP
        made.talk = self.core.connect(self.core.cluster.nodes[0], peer, made.write, made.close)
        self.links.append(made)
        return made

    def give(self, link: _Link) -> None:
        """Let the bytes leave that a client has for the broker."""
        if not link.outbox or link.closed or link.talk is None:
            return
        self.now += _STEP
        data = bytes(link.outbox)
        link.outbox.clear()
        link.sent += data
        link.talk.receive(data)

    def settle(self) -> None:
        """Let all clients take what has come for them."""
        while any(one.has_news for one in self.clients):
            for one in self.clients:
                one.hear()

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass."""
        until = self.now + seconds
        for _ in range(_MOST_WAITS):
            due = self.core.due()
            if due >= until:
                break
            self._go_to(due)
        self._go_to(until)

    def wait_for(self, client: Client) -> None:
        """Let time pass until a client has its answers. Members of groups say meanwhile that they are alive."""
        self.settle()
        if client.waits:
            for one in self.clients:
                if one is not client and not one.waits:
                    one.heartbeat()
                    one.flush()
        for _ in range(_MOST_WAITS):
            due = self.core.due()
            if not client.waits or due == NEVER:
                return
            self._go_to(due)

    def _go_to(self, time: float) -> None:
        self.now = max(self.now, time)
        self.core.settle()
        self.settle()


class Client:
    """One client of a conversation, which speaks as ``release`` does."""

    def __init__(self, world: World, number: int, release: str) -> None:
        self.name: str = f"client-{number}"
        self.release = release
        self.membership: Membership | None = None
        self.producers: dict[str | None, Producer] = {}
        self.positions: dict[tuple[str, int], int] = {}
        """How far it has read."""
        self._world = world
        self._link: _Link | None = None
        self._topics: dict[str, Topic] = {}
        self._coordinators: set[tuple[str, int]] = set()
        self._session = 0, 0
        self._asked: dict[tuple[str, int], tuple[int, int]] = {}
        """What the session of Fetch has of each partition: offset, and bytes at most."""
        self._last: Any = None

    # -- the connection

    @property
    def has_news(self) -> bool:
        """Whether bytes have come."""
        return self._link is not None and bool(self._link.got)

    @property
    def waits(self) -> bool:
        """Whether a request has no answer yet."""
        link = self._link
        return link is not None and not link.closed and bool(link.connection.in_flight)

    @property
    def holds(self) -> bool:
        """Whether bytes wait for the next request."""
        return self._link is not None and bool(self._link.outbox) and not self._link.closed

    @property
    def time(self) -> int:
        """Milliseconds since 1970."""
        return self._world.time

    def connected(self) -> _Link:
        """The connection; a new one where there is none."""
        if self._link is None or self._link.closed:
            self._session, self._asked = (0, 0), {}
            self._link = self._world.open(self)
            if self._link.asks:
                self.ask(messages.ApiVersionsRequest(client_software_name="kwire", client_software_version="1"))
        return self._link

    def close(self) -> None:
        """End the connection."""
        if self._link is not None and not self._link.closed and self._link.talk is not None:
            self.flush()
            self._link.talk.receive(b"")
            self._link.closed = True

    def version(self, key: int, most: int = 0x7FFF) -> int | None:
        """The version for an API, ``most`` at most; None if client and broker have none in common."""
        found = (self.connected().connection.versions or {}).get(key)
        return None if found is None else min(found, most)

    def send(self, message: WireMessage, version: int | None = None) -> None:
        """Write a request, whose bytes leave with ``flush``. What the version cannot hold is not sent."""
        link = self._link
        if link is None or link.closed:
            return
        try:
            frame = link.connection.send(message, version=version)
        except KwireError:
            return
        link.outbox += frame
        key = message.SCHEMA.api_key
        assert key is not None
        number, correlation_id = struct.unpack_from(">hi", frame, _VERSION_AT)
        self._world.said.append(Said(link.number, "request", key, number, correlation_id, self.name, message))

    def flush(self) -> None:
        """Let what was written leave."""
        if self._link is not None:
            self._world.give(self._link)
            self._world.settle()

    def wait(self) -> None:
        """Let time pass until all is answered."""
        self.flush()
        self._world.wait_for(self)

    def ask(self, message: WireMessage, version: int | None = None) -> Any:
        """The answer to a request, for which time passes; None if none comes."""
        self._last = None
        self.send(message, version)
        self.wait()
        return self._last

    def hear(self) -> None:
        """Take what has come."""
        link = self._link
        if link is None or not link.got:
            return
        data = bytes(link.got)
        link.got.clear()
        for event in link.connection.receive(data):
            if isinstance(event, ResponseReceived):
                about = event.api_key, event.api_version, event.correlation_id
                self._world.said.append(Said(link.number, "response", *about, self.name, event.body))
                self._last = event.body
                self._take(event)

    # -- what it knows

    def topic(self, name: str) -> Topic | None:
        """A topic, for which Metadata is asked where it is not known; None if there is none."""
        known = self._topics.get(name)
        version = self.version(ApiKey.METADATA)
        if known is None and version is not None:
            wanted = messages.MetadataRequest.MetadataRequestTopic(name=name)
            self.ask(messages.MetadataRequest(topics=[wanted]), version)
            known = self._topics.get(name)
        return known

    def coordinator(self, key: str, kind: int) -> None:
        """Ask who coordinates a group (0) or a transactional id (1), if that was not asked yet."""
        version = self.version(ApiKey.FIND_COORDINATOR)
        if version is None or (key, kind) in self._coordinators or (kind and not version):
            return
        request = messages.FindCoordinatorRequest()
        if version >= 1:
            request.key_type = kind
        if version >= 4:
            request.coordinator_keys = [key]
        else:
            request.key = key
        self.ask(request, version)
        self._coordinators.add((key, kind))

    def producer(self, transactional_id: str | None) -> Producer | None:
        """The idempotent producer; None where client and broker have no versions for it."""
        known = self.producers.get(transactional_id)
        version = self.version(ApiKey.INIT_PRODUCER_ID, 5)
        if known is not None or version is None:
            return known
        if transactional_id is not None:
            self.coordinator(transactional_id, 1)
        request = messages.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answer = self.ask(request, version)
        if answer is None or answer.error_code:
            return None
        known = self.producers[transactional_id] = Producer(answer.producer_id, answer.producer_epoch)
        return known

    @property
    def transactions_v2(self) -> bool:
        """Whether partitions join a transaction by being written to (KIP-890)."""
        end, produce = self.version(ApiKey.END_TXN), self.version(ApiKey.PRODUCE)
        return end is not None and produce is not None and end >= 5 and produce >= 12

    # -- Fetch

    def fetch_request(
        self, place: tuple[str, int], offset: int, version: int, wait: int, isolation: int
    ) -> messages.FetchRequest | None:
        """A request for a partition, in the session that the client has; None if there is no such topic."""
        topic = self.topic(place[0])
        if topic is None:
            return None
        kind = messages.FetchRequest
        request = kind(min_bytes=1, max_wait_ms=wait, isolation_level=isolation)
        if version >= 7:
            request.session_id, request.session_epoch = self._session
        asked = offset, 1 << 20
        if version < 7 or self._session[1] <= 0 or self._asked.get(place) != asked:
            part = kind.FetchPartition(partition=place[1], fetch_offset=offset, partition_max_bytes=asked[1])
            named: dict[str, Any] = {"topic_id": topic.id} if version >= _IDS_OF_FETCH else {"topic": topic.name}
            request.topics = [kind.FetchTopic(**named, partitions=[part])]
        if version >= 7 and self._session[1] > 0:
            request.forgotten_topics_data = list(self._forgotten(place, version))
        self._asked = {place: asked}
        return request

    def _forgotten(self, place: tuple[str, int], version: int) -> Iterator[Any]:
        kind = messages.FetchRequest.ForgottenTopic
        for name, number in self._asked:
            if (name, number) != place:
                topic = self._topics[name]
                named: dict[str, Any] = {"topic_id": topic.id} if version >= _IDS_OF_FETCH else {"topic": name}
                yield kind(**named, partitions=[number])

    def _fetched(self, event: ResponseReceived) -> None:
        body = event.body
        if event.api_version >= 7:
            if body.error_code or not body.session_id:
                self._session, self._asked = (0, 0), {}
            else:
                self._session = body.session_id, max(event.request.session_epoch, 0) + 1
        by_id = {topic.id: topic.name for topic in self._topics.values()}
        for one in body.responses:
            name = by_id.get(one.topic_id, "") if event.api_version >= _IDS_OF_FETCH else one.topic
            for part in one.partitions:
                place = name, part.partition_index
                if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.positions[place] = 0
                for batch in _batches(part.records):
                    self.positions[place] = max(self.positions.get(place, 0), batch.last_offset + 1)

    # -- groups

    def join(self) -> None:
        """Join the group of the membership, or say there that this client is alive."""
        mine = self.membership
        if mine is None:
            return
        if mine.consumer:
            self._heartbeat_of_consumer(mine)
            return
        version = self.version(ApiKey.JOIN_GROUP)
        if version is None:
            return
        subscription = {"version": 0, "topics": list(mine.topics), "user_data": None}
        kind = messages.JoinGroupRequest
        metadata = embedded.encode_embedded(embedded.SUBSCRIPTION, subscription)
        request = kind(
            group_id=mine.group,
            session_timeout_ms=_SESSION_MS,
            member_id=mine.member_id,
            protocol_type=embedded.CONSUMER,
            protocols=[kind.JoinGroupRequestProtocol(name=_PROTOCOL, metadata=metadata)],
        )
        if version >= 1:
            request.rebalance_timeout_ms = _REBALANCE_MS
        if version >= 5:
            request.group_instance_id = mine.instance
        self.send(request, version)

    def leave(self) -> None:
        """Go out of the group."""
        mine = self.membership
        if mine is None:
            return
        self.membership = None
        if mine.consumer:
            mine.generation = _LEFT
            self._heartbeat_of_consumer(mine)
            return
        version = self.version(ApiKey.LEAVE_GROUP)
        if version is None or not mine.member_id:
            return
        request = messages.LeaveGroupRequest(group_id=mine.group)
        if version >= 3:
            member = messages.LeaveGroupRequest.MemberIdentity(
                member_id=mine.member_id, group_instance_id=mine.instance
            )
            request.members = [member]
        else:
            request.member_id = mine.member_id
        self.send(request, version)

    def heartbeat(self) -> None:
        """Say that this client is alive, if it is a member of a group."""
        mine = self.membership
        if mine is None:
            return
        if mine.consumer:
            self._heartbeat_of_consumer(mine)
            return
        version = self.version(ApiKey.HEARTBEAT)
        if version is None:
            return
        request = messages.HeartbeatRequest(
            group_id=mine.group, generation_id=mine.generation, member_id=mine.member_id
        )
        if version >= 3:
            request.group_instance_id = mine.instance
        self.send(request, version)

    def _heartbeat_of_consumer(self, mine: Membership) -> None:
        version = self.version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        if version is None:
            return
        kind = messages.ConsumerGroupHeartbeatRequest
        request = kind(group_id=mine.group, member_id=mine.member_id, member_epoch=max(mine.generation, _LEFT))
        if mine.generation == 0:
            request.instance_id = mine.instance
            request.rebalance_timeout_ms = _REBALANCE_MS
            request.subscribed_topic_names = list(mine.topics)
            request.topic_partitions = []
            if version >= 1 and not mine.member_id:
                request.member_id = mine.member_id = f"{self.name}-of-{mine.group}"
        elif mine.generation > 0:
            request.topic_partitions = [
                kind.TopicPartitions(topic_id=topic, partitions=numbers) for topic, numbers in mine.owned.items()
            ]
        self.send(request, version)

    def _joined(self, event: ResponseReceived) -> None:
        mine, body = self.membership, event.body
        if mine is None or mine.consumer or event.request.group_id != mine.group:
            return
        if body.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            mine.member_id = body.member_id
            self.join()
        elif body.error_code:
            self._lost_place(body.error_code)
        else:
            mine.member_id, mine.generation = body.member_id, body.generation_id
            self._sync(mine, body)
        self.flush()

    def _sync(self, mine: Membership, body: Any) -> None:
        version = self.version(ApiKey.SYNC_GROUP)
        if version is None:
            return
        kind = messages.SyncGroupRequest
        request = kind(group_id=mine.group, generation_id=mine.generation, member_id=mine.member_id)
        if version >= 3:
            request.group_instance_id = mine.instance
        if version >= 5:
            request.protocol_type, request.protocol_name = body.protocol_type, body.protocol_name
        members = [one.member_id for one in body.members]
        for place, member in enumerate(members):
            given = []
            for name in mine.topics:
                topic = self._topics.get(name)
                numbers = range(place, 0 if topic is None else topic.partitions, len(members))
                if numbers:
                    given.append({"topic": name, "partitions": list(numbers)})
            data = embedded.encode_embedded(
                embedded.ASSIGNMENT, {"version": 0, "assigned_partitions": given, "user_data": None}
            )
            request.assignments.append(kind.SyncGroupRequestAssignment(member_id=member, assignment=data))
        self.send(request, version)

    def _lost_place(self, code: int) -> None:
        """Do what a member does after an error."""
        mine = self.membership
        if mine is None:
            return
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            mine.member_id, mine.generation = "", -1
        else:
            self.membership = None

    def _of_consumer(self, event: ResponseReceived) -> None:
        mine, body = self.membership, event.body
        if mine is None or not mine.consumer or event.request.group_id != mine.group:
            return
        if body.error_code:
            mine.generation, mine.owned = 0, {}
            return
        mine.member_id = body.member_id or mine.member_id
        mine.generation = body.member_epoch
        if body.assignment is not None:
            mine.owned = {one.topic_id: list(one.partitions) for one in body.assignment.topic_partitions}

    # -- answers

    def _take(self, event: ResponseReceived) -> None:
        key, body = event.api_key, event.body
        if key == ApiKey.API_VERSIONS:
            assert self._link is not None
            if self._link.connection.versions is None and not self._link.connection.in_flight:
                self.send(type(event.request)(client_software_name="kwire", client_software_version="1"))
                self.flush()
        elif key == ApiKey.METADATA:
            for one in body.topics:
                if not one.error_code and one.name is not None:
                    number = one.topic_id if event.api_version >= _IDS_OF_METADATA else UUID(int=0)
                    self._topics[one.name] = Topic(one.name, number, len(one.partitions))
        elif key == ApiKey.FETCH:
            self._fetched(event)
        elif key == ApiKey.JOIN_GROUP:
            self._joined(event)
        elif key in (ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT):
            mine = self.membership
            if body.error_code and mine is not None and event.request.group_id == mine.group:
                self._lost_place(body.error_code)
                self.flush()
        elif key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._of_consumer(event)


def _batches(data: Any) -> list[records.Batch]:
    """The batches of a record set, which may be cut off."""
    try:
        return list(records.decode(data)) if data else []
    except KwireError:
        return []
