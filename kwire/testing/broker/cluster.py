"""The state of a cluster: its nodes, topics, groups and producers, and the time.

A cluster has no sockets. Connections (``conversation``) ask it, and whoever has the sockets tells it that time has
passed (``advance``). All memory that a client can ask for is bounded by ``Settings``.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kwire import versions
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey
from kwire.schema.model import Versions
from kwire.testing.broker.acls import Acls
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.authentication import Sasl
from kwire.testing.broker.groups import Group
from kwire.testing.broker.logs import Log, RefusedError, Topic
from kwire.testing.broker.quotas import Quotas
from kwire.testing.broker.sessions import Sessions
from kwire.testing.broker.transactions import Transactions

__all__ = ["Cluster", "Node", "Settings"]

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FIRST_KRAFT: Final = "3.3"
"""The release from which a cluster is one of KRaft; before, it is one of ZooKeeper."""
_UNSAID: Final = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""A broker announces these if it has a receiver of telemetry, which none has as installed (KIP-714)."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a broker is configured with. Times are seconds, sizes bytes.

    - ``auto_create``: whether Metadata creates topics that are asked for, with ``partitions`` partitions.
    - ``rebalance_delay``: how long a new group waits for more members.
    - ``max_transaction``: the longest timeout that a transaction may have.
    - ``session_timeouts``: the shortest and the longest that a member may ask for.
    - ``consumer_heartbeat``, ``consumer_session``: how often members of the consumer protocol (KIP-848) say that they
      are alive, and for how long they may be silent.
    - ``produce_rate``, ``fetch_rate``: bytes of records a second for each client id; 0 for no end (KIP-13).
    - ``max_message``: the largest record set of a partition in one Produce request.
    - ``max_frame``: the largest request.
    - ``max_log``: all record sets together; more is refused with KAFKA_STORAGE_ERROR.
    - ``max_partitions``, ``max_groups``, ``max_members`` of a group, ``max_sessions`` of Fetch, ``max_producers``,
      ``max_connections``: how many there can be.
    - ``max_offsets``: committed offsets of all groups together.
    - ``max_membership``: bytes of what all members of classic groups say and get.
    - ``seed``: what ids and chance are made of.
    - ``max_recorded``: bytes of exchanges that are kept; older ones are forgotten.
    """

    auto_create: bool = True
    partitions: int = 1
    rebalance_delay: float = 0.0
    session_timeouts: tuple[float, float] = (6.0, 1800.0)
    max_transaction: float = 900.0
    consumer_heartbeat: float = 5.0
    consumer_session: float = 45.0
    produce_rate: float = 0.0
    fetch_rate: float = 0.0
    max_message: int = 1_048_588
    max_frame: int = 8 << 20
    max_log: int = 1 << 30
    max_partitions: int = 10_000
    max_groups: int = 1_000
    max_members: int = 1_000
    max_sessions: int = 1_000
    max_offsets: int = 100_000
    max_membership: int = 64 << 20
    max_producers: int = 100_000
    max_connections: int = 256
    seed: int = 0
    max_recorded: int = 64 << 20


@dataclass(eq=False, slots=True)
class Node:
    """A broker of the cluster, and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(eq=False)
class Cluster:
    """Everything that the brokers of a cluster know.

    ``release`` is a Kafka release (``"2.8"``). ``clock`` gives seconds that never go back, ``wall`` seconds since 1970.
    Ids are made by ``seed``. Raises ``UnsupportedVersionError`` for a release that is not known.
    """

    release: str
    nodes: list[Node]
    clock: Callable[[], float]
    wall: Callable[[], float]
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    sasl: Sasl | None = None
    """Who may come in; None lets everybody in."""

    def __post_init__(self) -> None:
        self.release = versions.release_name(self.release)
        known = versions.releases()
        listener: versions.Listener = (
            "broker" if known.index(self.release) >= known.index(_FIRST_KRAFT) else "zookeeper"
        )
        self.accepted: Mapping[int, Versions] = versions.accepted(self.release, listener)
        self.announced: Mapping[int, Versions] = {
            key: one for key, one in versions.announced(self.release, listener).items() if key not in _UNSAID
        }
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[UUID, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.group_configs: dict[str, dict[str, str | None]] = {}
        """Group -> its configuration, which it may have before it has members."""
        self.acls: Acls = Acls()
        self.sessions: Sessions = Sessions(self.settings.max_sessions)
        self.transactions: Transactions = Transactions(self)
        rates = {ApiKey.PRODUCE: self.settings.produce_rate, ApiKey.FETCH: self.settings.fetch_rate}
        self.quotas: Quotas = Quotas({int(key): rate for key, rate in rates.items() if rate})
        self.next_producer: int = 0
        self.producers: dict[int, int] = {}
        """Producer id -> its newest epoch."""
        self._random = random.Random(self.seed)
        self.id: str = str(self.new_id())
        self.size: int = 0
        """Bytes of all logs."""
        self.partitions: int = 0

    def at_least(self, release: str) -> bool:
        """Whether the cluster is of ``release`` or newer."""
        known = versions.releases()
        return known.index(self.release) >= known.index(release)

    def new_id(self) -> UUID:
        """A uuid that nothing else has."""
        return UUID(int=self._random.getrandbits(128), version=4)

    # -- topics

    @property
    def magic(self) -> int:
        """The newest format of records (magic) of this release."""
        return 2 if self.at_least("0.11.0") else 1 if self.at_least("0.10.0") else 0

    def create_topic(
        self, name: str, partitions: int = -1, replication: int = -1, configs: Mapping[str, str | None] | None = None
    ) -> Topic:
        """A new topic; -1 stands for what is configured. Raises ``RefusedError``."""
        if not _NAME.fullmatch(name) or name in (".", ".."):
            raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, "a name has 1 to 249 letters, digits, '.', '_', '-'")
        if name in self.topics:
            raise RefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        count = self.settings.partitions if partitions == -1 else partitions
        copies = 1 if replication == -1 else replication
        if count < 1 or self.partitions + count > self.settings.max_partitions:
            raise RefusedError(ErrorCode.INVALID_PARTITIONS, f"{count} partitions")
        if not 1 <= copies <= len(self.nodes):
            raise RefusedError(
                ErrorCode.INVALID_REPLICATION_FACTOR, f"{copies} replicas, there are {len(self.nodes)} brokers"
            )
        topic = Topic(name, self.new_id(), [], dict(configs or {}))
        self.topics[name] = self.by_id[topic.id] = topic
        self.add_partitions(topic, count, copies)
        return topic

    def add_partitions(self, topic: Topic, count: int, copies: int = 1) -> None:
        """Let ``topic`` have ``count`` partitions, whose leaders take turns."""
        first = zlib.crc32(topic.name.encode()) % len(self.nodes)
        for number in range(len(topic.logs), count):
            order = [self.nodes[(first + number + k) % len(self.nodes)].id for k in range(copies)]
            topic.logs.append(Log(topic.name, number, order, order[0]))
            self.partitions += 1

    def delete_topic(self, topic: Topic) -> None:
        """Forget a topic with its records."""
        del self.topics[topic.name], self.by_id[topic.id]
        self.partitions -= len(topic.logs)
        self.size -= sum(log.size for log in topic.logs)

    def log(self, topic: Topic | None, partition: int) -> Log | None:
        """A partition of a topic; None if there is none."""
        if topic is None or not 0 <= partition < len(topic.logs):
            return None
        return topic.logs[partition]

    def node(self, number: int) -> Node | None:
        """The node of an id; None if there is none."""
        return next((one for one in self.nodes if one.id == number), None)

    # -- coordinators and producers

    def coordinator(self, key: str) -> Node:
        """The node that coordinates a group or a transactional id."""
        return self.nodes[zlib.crc32(key.encode("utf-8", "surrogateescape")) % len(self.nodes)]

    def group(self, name: str) -> Group | None:
        """The group of this name, made if there is none. None if there would be too many."""
        found = self.groups.get(name)
        if found is None and len(self.groups) < self.settings.max_groups:
            found = self.groups[name] = Group(name, self.settings.rebalance_delay, self.settings.max_members)
        return found

    @property
    def offsets(self) -> int:
        """Committed offsets of all groups, those of open transactions too."""
        return sum(len(group.offsets) + sum(map(len, group.unsettled.values())) for group in self.groups.values())

    @property
    def membership(self) -> int:
        """Bytes of what members of classic groups say and get."""
        return sum(one.size for group in self.groups.values() for one in group.members.values())

    def new_producer(self) -> tuple[int, int]:
        """The id and the epoch of a producer."""
        if len(self.producers) >= self.settings.max_producers:
            self.producers.pop(next(iter(self.producers)))
        self.next_producer += 1
        self.producers[self.next_producer] = 0
        return self.next_producer, 0

    # -- time

    def advance(self, now: float) -> None:
        """Let everything happen that happens by itself until ``now``."""
        self.transactions.advance(now)
        for group in self.groups.values():
            group.advance(now)

    def due(self) -> float:
        """When ``advance`` has something to do next; infinity for never."""
        groups = min((group.due() for group in self.groups.values()), default=NEVER)
        return min(groups, self.transactions.due())
