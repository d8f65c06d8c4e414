"""Share groups (KIP-932): members that share the records of partitions, one record each, and acknowledge them.

A partition of a group keeps the state of each record from its start offset on:

    available      nobody has it. It was delivered ``count`` times
    acquired       a member has it, until its lock ends
    done           it was accepted, rejected, or delivered too often

The start offset goes on when the records at it are done.

Rules kept here, as Kafka's SharePartition and GroupMetadataManager have them:

- Epoch 0 joins, -1 leaves. Each member is assigned all partitions of its topics: members may share a partition.
- Fetch sessions belong to a member and its connection. They count 1, 2, ... after the request with epoch 0. The
  request with -1 ends a session.
- Whole batches are acquired, as many as ``max_records`` begins. In the acquire mode ``RECORD_LIMIT`` (KIP-1206) the
  number of records is kept.
- What a transaction wrote is read as soon as it is there. With ``share.isolation.level`` of the group at
  ``read_committed``, it is read when the transaction has ended, and what was aborted is done.
- Renewing (KIP-1222) begins the lock of a record anew. The request says so, and fetches nothing.
- A record is delivered ``MOST_DELIVERIES`` times at most. Markers of transactions are not delivered.

Groups read from the end of a partition unless ``share.auto.offset.reset`` is ``earliest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import NEVER

if TYPE_CHECKING:
    from kwire.testing.broker.cluster import Cluster
    from kwire.testing.broker.logs import Log, Topic

__all__ = [
    "ISOLATION",
    "LOCK",
    "RENEW",
    "RESET",
    "Acquired",
    "Place",
    "Share",
    "ShareMember",
    "SharePartition",
    "ShareSession",
]

LOCK: Final = 30.0
"""Seconds for which a member has a record (group.share.record.lock.duration.ms)."""
RESET: Final = "share.auto.offset.reset"
"""The entry of a group's configuration that says where it begins."""
ISOLATION: Final = "share.isolation.level"
"""The entry of a group's configuration that says what it reads of transactions."""
MOST_DELIVERIES: Final = 5
"""Times that a record is delivered (group.share.delivery.count.limit)."""
_MOST_IN_FLIGHT: Final = 2000
"""Records that are not done (group.share.partition.max.record.locks)."""
_GAP, _ACCEPT, _RELEASE, _REJECT = range(4)
RENEW: Final = 4
"""The acknowledge type that begins a lock anew (KIP-1222)."""
_LAST: Final = -1
"""The epoch of the last request of a session."""

Place = tuple[UUID, int]
"""Type: a partition, by the id of its topic."""


@dataclass(slots=True)
class _State:
    """A record that is not done."""

    count: int = 0
    member: str | None = None
    until: float = NEVER


@dataclass(frozen=True, slots=True)
class Acquired:
    """Records that a member has got."""

    first: int
    last: int
    count: int


@dataclass(eq=False, slots=True)
class SharePartition:
    """What a group has made of a partition."""

    log: Log
    start: int
    states: dict[int, _State | None] = field(default_factory=dict)
    """Offset -> its state, None for done. What is behind all of them is available."""

    def acquire(
        self, member: str, most: int, now: float, *, strict: bool = False, committed: bool = False
    ) -> list[Acquired]:
        """Records for a member: at least one batch, if there is one, and no more when ``most`` records are there.

        ``strict``: not one more than ``most``. ``committed``: nothing of transactions that are open or were aborted.
        """
        got: list[Acquired] = []
        taken = 0
        end = self.log.stable if committed else self.log.end
        aborted = self.log.aborted_between(self.start, end) if committed else []
        for entry in self.log.after(self.start):
            if entry.first >= end:
                break
            dropped = entry.transactional and any(
                one.producer_id == entry.producer_id and one.first <= entry.first < one.last for one in aborted
            )
            if entry.control or dropped:
                for offset in range(max(entry.first, self.start), entry.last + 1):
                    self.states[offset] = None
                continue
            for offset in range(max(entry.first, self.start), entry.last + 1):
                state = self.states.setdefault(offset, _State())
                if state is None or state.member is not None or (strict and taken >= most):
                    continue
                state.member, state.until, state.count = member, now + LOCK, state.count + 1
                taken += 1
                last = got[-1] if got else None
                if last is not None and last.last == offset - 1 and last.count == state.count:
                    got[-1] = Acquired(last.first, offset, state.count)
                else:
                    got.append(Acquired(offset, offset, state.count))
            if taken >= most or len(self.states) >= _MOST_IN_FLIGHT:
                break
        self._go_on()
        return got

    def acknowledge(self, member: str, first: int, last: int, types: Sequence[int], now: float) -> int:
        """What a member has made of some records: a type for all, or one for each. Gives an error code."""
        size = last - first + 1
        if not 0 < size <= _MOST_IN_FLIGHT or len(types) not in (1, size):
            return ErrorCode.INVALID_REQUEST
        if any(not _GAP <= one <= RENEW for one in types):
            return ErrorCode.INVALID_REQUEST
        mine = [self.states.get(offset) for offset in range(first, last + 1)]
        if any(one is None or one.member != member for one in mine):
            return ErrorCode.INVALID_RECORD_STATE
        for number, offset in enumerate(range(first, last + 1)):
            kind = types[0] if len(types) == 1 else types[number]
            state = self.states[offset]
            if kind == RENEW and state is not None:
                state.until = now + LOCK
                continue
            self._release(offset, done=kind != _RELEASE)
        self._go_on()
        return ErrorCode.NONE

    def _release(self, offset: int, done: bool) -> None:
        state = self.states[offset]
        if state is not None:
            over = done or state.count >= MOST_DELIVERIES
            self.states[offset] = None if over else _State(state.count)

    def drop(self, member: str | None, now: float) -> None:
        """Give back what a member has, or what is locked no more (None)."""
        for offset, state in list(self.states.items()):
            if state is not None and state.member is not None:
                ended = state.until <= now if member is None else state.member == member
                if ended:
                    self._release(offset, done=False)
        self._go_on()

    def _go_on(self) -> None:
        while self.start in self.states and self.states[self.start] is None:
            del self.states[self.start]
            self.start += 1

    def lag(self) -> int:
        """Records from the start on that are not done."""
        return self.log.end - self.start - sum(one is None for one in self.states.values())

    def due(self) -> float:
        """When a lock ends."""
        return min((one.until for one in self.states.values() if one is not None), default=NEVER)


@dataclass(slots=True)
class ShareMember:
    """A member."""

    id: str
    client_id: str
    host: str
    heard: float
    epoch: int = 0
    topics: tuple[str, ...] = ()
    told: set[Place] | None = None


@dataclass(slots=True)
class ShareSession:
    """What a member fetches on one connection."""

    epoch: int = 1
    places: dict[Place, None] = field(default_factory=dict)


@dataclass(eq=False)
class Share:
    """A share group."""

    cluster: Cluster
    begins_at_start: bool = False
    committed: bool = False
    """Whether records of transactions are read when these were committed."""
    epoch: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)
    sessions: dict[tuple[str, int], ShareSession] = field(default_factory=dict)
    """Member and connection -> its session."""
    partitions: dict[Place, SharePartition] = field(default_factory=dict)

    # -- members

    def heartbeat(
        self, member_id: str, epoch: int, topics: Iterable[str] | None, client: tuple[str, str], now: float
    ) -> ShareMember | int:
        """A member joins or stays. Gives it, or an error code."""
        known, joined = self.members.get(member_id), False
        if epoch == 0 and known is None:
            if len(self.members) >= self.cluster.settings.max_members:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
            known = self.members[member_id] = ShareMember(member_id, *client, heard=now)
            joined = True
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch not in (0, known.epoch):
            return ErrorCode.FENCED_MEMBER_EPOCH
        wanted = known.topics if topics is None else tuple(sorted(set(topics)))
        if joined or wanted != known.topics:
            known.topics = wanted
            self.epoch += 1
        known.heard, known.epoch = now, self.epoch
        return known

    def assigned(self, member: ShareMember, everything: bool) -> set[Place] | None:
        """The partitions of a member; None if it has been told."""
        known = [self.cluster.topics[name] for name in member.topics if name in self.cluster.topics]
        places = {(topic.id, number) for topic in known for number in range(len(topic.logs))}
        if places == member.told and not everything:
            return None
        member.told = places
        return places

    def leave(self, member_id: str) -> int:
        """A member goes, and gives back its records. Gives an error code."""
        if self.members.pop(member_id, None) is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.epoch += 1
        self.give_back(member_id)
        return ErrorCode.NONE

    def give_back(self, member_id: str) -> None:
        """Let others have what a member has got."""
        for one in self.partitions.values():
            one.drop(member_id, 0.0)
        for key in [key for key in self.sessions if key[0] == member_id]:
            del self.sessions[key]

    # -- sessions

    def session(self, member_id: str, connection: int, epoch: int) -> ShareSession | int:
        """The session of a request. Epoch 0 begins one. Gives an error code where there is none."""
        key = member_id, connection
        if epoch == 0:
            if len(self.sessions) >= self.cluster.settings.max_sessions and key not in self.sessions:
                return ErrorCode.SHARE_SESSION_LIMIT_REACHED
            made = self.sessions[key] = ShareSession()
            return made
        known = self.sessions.get(key)
        if known is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == _LAST:
            return self.sessions.pop(key)
        if epoch != known.epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        known.epoch = epoch % 0x7FFFFFFF + 1
        return known

    def partition(self, topic: Topic, number: int) -> SharePartition:
        """What the group has made of a partition, from its first fetch on."""
        place = topic.id, number
        found = self.partitions.get(place)
        if found is None:
            log = topic.logs[number]
            found = self.partitions[place] = SharePartition(log, log.start if self.begins_at_start else log.end)
        # Records that were deleted are nobody's.
        if found.start < found.log.start:
            found.states = {offset: one for offset, one in found.states.items() if offset >= found.log.start}
            found.start = found.log.start
        return found

    def restart(self, topic: Topic, number: int, offset: int) -> None:
        """Let a partition begin at an offset, and forget what was made of its records."""
        log = topic.logs[number]
        self.partitions[topic.id, number] = SharePartition(log, min(max(offset, log.start), log.end))

    def forget(self, topic: Topic) -> None:
        """Forget what was made of a topic."""
        for place in [place for place in self.partitions if place[0] == topic.id]:
            del self.partitions[place]

    # -- time

    def advance(self, now: float) -> None:
        """Drop who has been silent for too long, and end locks."""
        for one in list(self.members.values()):
            if one.heard + self.cluster.settings.consumer_session <= now:
                self.leave(one.id)
        for part in self.partitions.values():
            if part.due() <= now:
                part.drop(None, now)

    def due(self) -> float:
        """When ``advance`` has something to do."""
        session = self.cluster.settings.consumer_session
        members = min((one.heard + session for one in self.members.values()), default=NEVER)
        return min(members, min((one.due() for one in self.partitions.values()), default=NEVER))
