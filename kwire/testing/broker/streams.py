"""Streams groups (KIP-1071): the broker shares the tasks of a Kafka Streams application out among its members.

Members bring a topology: subtopologies, each with source topics, repartition topics and changelogs. Each partition of a
subtopology is a task. A member has tasks in three roles: ``active``, ``standby`` (it keeps a copy of the state) and
``warmup`` (it builds a copy, to take the task over).

Rules kept here, as Kafka's GroupMetadataManager has them:

- Epoch 0 joins and brings the topology, -1 leaves, -2 leaves for a while. Any other epoch is the member's, or the one
  before, if the member claims no more than it has: the answer to its last heartbeat may be lost.
- A member gives up what it is not to have, keeping its epoch. Then it gets the epoch of the group, and what is free.
- A task has one active member. No two members of one process have the same task.
- Repartition topics and changelogs are made by the broker. Without its source topics a group has no tasks.
- The assignor is sticky: who has a task, or a copy of its state, keeps or gets it before others.

Kafka 4.4 assigns no warm-up tasks. Here the configuration ``streams.num.warmup.replicas`` of a group allows some: a
task with state that is to move stays where it is, until its next member says that it has caught up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.topologies import Topology

if TYPE_CHECKING:
    from kwire.testing.broker.cluster import Cluster

__all__ = ["ROLES", "Streams", "StreamsMember", "Task", "Tasks", "by_subtopology"]

ROLES: Final = ("active", "standby", "warmup")
"""What a member may have a task as."""
STANDBYS: Final = "streams.num.standby.replicas"
WARMUPS: Final = "streams.num.warmup.replicas"
RECOVERY_LAG: Final = 10_000
"""Offsets by which a copy may be behind and count as caught up (acceptable.recovery.lag)."""
_MOST_COPIES: Final = 3
"""Standby tasks of a task."""
_MOST_TEXT: Final = 16 << 10
"""Characters that a member says about itself."""
_MOST_OFFSETS: Final = 2_000
"""Tasks whose offsets it says."""
_SHUTDOWN, _STALE = 4, 0

Task = tuple[str, int]
"""Type: subtopology and partition."""
Tasks = dict[str, set[Task]]
"""Type: role -> tasks."""


def _none() -> Tasks:
    return {role: set() for role in ROLES}


@dataclass(eq=False, slots=True)
class StreamsMember:
    """A member."""

    id: str
    client_id: str
    host: str
    heard: float
    instance_id: str | None = None
    rack_id: str | None = None
    process: str = ""
    endpoint: tuple[str, int] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    topology_epoch: int = -1
    epoch: int = 0
    before: int = 0
    """The epoch before its epoch."""
    owned: Tasks = field(default_factory=_none)
    """What it has been given, and has not given up."""
    target: Tasks = field(default_factory=_none)
    said: Tasks | None = None
    """What it was last told to have; None for nothing yet."""
    offsets: dict[Task, int] = field(default_factory=dict)
    """How far its copies are, as it says."""
    ends: dict[Task, int] = field(default_factory=dict)

    def has(self, task: Task) -> bool:
        """Whether it has a task in any role."""
        return any(task in some for some in self.owned.values())

    def caught_up(self, task: Task) -> bool:
        """Whether it says that its copy of a task's state is nearly complete."""
        return task in self.offsets and self.ends.get(task, 0) - self.offsets[task] <= RECOVERY_LAG


@dataclass(eq=False)
class Streams:
    """A streams group."""

    name: str
    cluster: Cluster
    epoch: int = 0
    topology: Topology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)
    endpoint_epoch: int = 0
    shut_by: str | None = None
    """The member that wants all members to end."""
    ready: bool = False
    """Whether all source topics are there."""
    statuses: list[tuple[int, str]] = field(default_factory=list)
    """What is wrong with the topology: code and text."""
    _seen: Any = None

    # -- members

    def heartbeat(self, request: Any, client: tuple[str, str], now: float) -> StreamsMember | int:
        """A member joins or stays. Gives it, or an error code."""
        code = _wrong(request)
        if code:
            return code
        found = self._joined(request, client, now) if request.member_epoch == 0 else self._known(request)
        if not isinstance(found, StreamsMember):
            return found
        found.heard = now
        self._take(found, request)
        self._assign()
        self._reconcile(found)
        return found

    def _joined(self, request: Any, client: tuple[str, str], now: float) -> StreamsMember | int:
        topology = Topology.of(request.topology)
        if isinstance(topology, int):
            return topology
        mine = self.topology
        if mine is not None and topology.epoch == mine.epoch and topology != mine:
            return ErrorCode.STREAMS_INVALID_TOPOLOGY
        known = self.members.get(request.member_id)
        if known is None and request.instance_id is not None:
            there = next((one for one in self.members.values() if one.instance_id == request.instance_id), None)
            if there is not None:
                if there.epoch != -2:
                    return ErrorCode.UNRELEASED_INSTANCE_ID
                # It comes back under another id, to what it had.
                del self.members[there.id]
                known = there
                known.id = request.member_id
                self.members[known.id] = known
        if known is None:
            if len(self.members) >= self.cluster.settings.max_members:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
            known = self.members[request.member_id] = StreamsMember(request.member_id, *client, heard=now)
            self._seen = None
        if mine is None or topology.epoch > mine.epoch:
            self.topology = topology
        known.instance_id, known.rack_id = request.instance_id, request.rack_id
        known.topology_epoch = topology.epoch
        known.owned, known.said, known.epoch = _none(), None, 0
        known.offsets, known.ends = {}, {}
        return known

    def _known(self, request: Any) -> StreamsMember | int:
        known = self.members.get(request.member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.member_epoch == known.epoch:
            return known
        claimed = _claimed(request)
        lost = request.member_epoch == known.before and known.epoch > 0
        if not lost or not all(some <= known.owned[role] for role, some in claimed.items()):
            return ErrorCode.FENCED_MEMBER_EPOCH
        known.said = None  # the answer was lost
        return known

    def _take(self, member: StreamsMember, request: Any) -> None:
        """What a heartbeat says about a member."""
        if request.process_id is not None:
            member.process = request.process_id
        if request.user_endpoint is not None:
            endpoint = request.user_endpoint.host, request.user_endpoint.port
            self.endpoint_epoch += endpoint != member.endpoint
            member.endpoint = endpoint
        if request.client_tags is not None:
            member.tags = {one.key: one.value for one in request.client_tags}
        for given, kept in ((request.task_offsets, member.offsets), (request.task_end_offsets, member.ends)):
            if given is not None:
                kept.clear()
                kept.update({(one.subtopology_id, one.partition): one.offset for one in given})
        for role, some in _claimed(request).items():
            # What it has given up is free. What it claims on top of that it has not been given.
            member.owned[role] &= some
        if request.shutdown_application and self.shut_by is None:
            self.shut_by = member.id

    def leave(self, member_id: str, for_a_while: bool) -> int:
        """A member goes. Gives an error code."""
        known = self.members.get(member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        known.owned = _none()
        if for_a_while:
            known.epoch = -2
        else:
            self._drop(known)
        return ErrorCode.NONE

    def _drop(self, member: StreamsMember) -> None:
        del self.members[member.id]
        self.endpoint_epoch += member.endpoint is not None
        if not self.members:
            self.shut_by = None

    def check(self, member_id: str, epoch: int) -> int:
        """The error of a request about offsets, or 0."""
        known = self.members.get(member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == known.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def told(self, member: StreamsMember, everything: bool) -> Tasks | None:
        """The tasks to tell a member; None if they have not changed."""
        now = {role: member.owned[role] & member.target[role] for role in ROLES}
        if now == member.said and not everything:
            return None
        member.said = now
        return now

    def status_of(self, member: StreamsMember) -> list[tuple[int, str]]:
        """Code and text of what a member has to know."""
        found = list(self.statuses)
        if self.topology is not None and member.topology_epoch < self.topology.epoch:
            found.append((_STALE, f"The member's topology epoch {member.topology_epoch} is behind."))
        if self.shut_by is not None:
            found.append((_SHUTDOWN, f"Streams group member {self.shut_by} requested a shutdown of the application."))
        return found

    @property
    def state(self) -> str:
        """The state, as StreamsGroupDescribe has it."""
        if not self.members:
            return "Empty"
        if not self.ready:
            return "NotReady"
        settled = all(one.epoch == self.epoch and one.owned == one.target for one in self.members.values())
        return "Stable" if settled else "Reconciling"

    # -- who has what

    def _assign(self) -> None:
        """Find the target, if members, topology, topics or copies of states have changed."""
        assert self.topology is not None
        counts, self.statuses = self.topology.tasks(self.cluster)
        self.ready = not self.statuses
        standbys, warmups = (self._configured(name) for name in (STANDBYS, WARMUPS))
        ready = {
            (one.id, task)
            for one in self.members.values()
            for task in one.target["warmup"]
            if warmups and one.caught_up(task)
        }
        members = tuple((one.id, one.process, one.topology_epoch) for one in self.members.values())
        seen = (members, self.topology.epoch, tuple(counts.items()), standbys, warmups, frozenset(ready))
        if seen == self._seen:
            return
        self._seen = seen
        self.epoch += 1
        self.endpoint_epoch += 1
        able = [one for one in self.members.values() if one.topology_epoch == self.topology.epoch]
        before = {one.id: one.target for one in self.members.values()}
        for one in self.members.values():
            one.target = _none()
        if able:
            _share(able, _listed(counts), before)
            stateful = [task for task in _listed(counts) if task[0] in self.topology.stateful]
            _warm_up(able, stateful, before, ready, warmups)
            for _ in range(min(standbys, _MOST_COPIES)):
                _copy(able, stateful, before)

    def _configured(self, name: str) -> int:
        text = self.cluster.group_configs.get(self.name, {}).get(name) or "0"
        return int(text[:9]) if text.isascii() and text.isdecimal() else 0

    def _reconcile(self, member: StreamsMember) -> None:
        if any(member.owned[role] - member.target[role] for role in ROLES):
            # It has to give something up. Until it says that it has, its epoch stays.
            if member.epoch == 0:
                member.before, member.epoch = 0, self.epoch
            return
        if member.epoch != self.epoch:
            member.before, member.epoch = member.epoch, self.epoch
        others = [one for one in self.members.values() if one is not member]
        near = [one for one in others if one.process == member.process]
        for role in ROLES:
            for task in member.target[role] - member.owned[role]:
                taken = role == "active" and any(task in one.owned["active"] for one in others)
                if not taken and not any(one.has(task) for one in near):
                    member.owned[role].add(task)
                    self.endpoint_epoch += member.endpoint is not None

    # -- time

    def advance(self, now: float) -> None:
        """Drop who has been silent for too long."""
        session = self.cluster.settings.consumer_session
        for one in [one for one in self.members.values() if one.epoch != -2 and one.heard + session <= now]:
            self._drop(one)

    def due(self) -> float:
        """When ``advance`` has something to do."""
        session = self.cluster.settings.consumer_session
        return min((one.heard + session for one in self.members.values() if one.epoch != -2), default=NEVER)


def _wrong(request: Any) -> int:
    """The error of a request that no member may send, or 0."""
    claimed = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    joins = request.member_epoch == 0
    wrong = not request.member_id or request.instance_id == "" or request.member_epoch < 0
    if joins:
        wrong = wrong or request.topology is None or request.rebalance_timeout_ms < 0 or any(claimed)
    elif request.topology is not None:
        wrong = True
    end, tags = request.user_endpoint, request.client_tags or ()
    texts = [request.process_id, request.rack_id, request.instance_id, end and end.host]
    texts += [word for one in tags for word in (one.key, one.value)]
    wrong = wrong or len(request.member_id) + sum(len(one or "") for one in texts) + len(texts) > _MOST_TEXT
    wrong = wrong or any(len(some or ()) > _MOST_OFFSETS for some in (request.task_offsets, request.task_end_offsets))
    return ErrorCode.INVALID_REQUEST if wrong else ErrorCode.NONE


def _claimed(request: Any) -> Tasks:
    """The tasks that a member says it has, by the roles of which it says something."""
    given = zip(ROLES, (request.active_tasks, request.standby_tasks, request.warmup_tasks), strict=True)
    return {
        role: {(one.subtopology_id, number) for one in some for number in one.partitions}
        for role, some in given
        if some is not None
    }


def _listed(counts: Mapping[str, int]) -> list[Task]:
    return [(name, number) for name, count in counts.items() for number in range(count)]


def _share(members: list[StreamsMember], tasks: list[Task], before: dict[str, Tasks]) -> None:
    """Share active tasks out: first to who has them, then to who has a copy of their state, then to who has least."""
    least, more = divmod(len(tasks), len(members))
    left = dict.fromkeys(tasks)
    room = {}
    for role in ("active", "warmup", "standby"):
        for one in members:
            if role == "active":
                room[one.id] = least
            for task in sorted(before[one.id][role] & left.keys()):
                if room[one.id] <= 0:
                    if more <= 0 or room[one.id] < 0:
                        break
                    more -= 1
                room[one.id] -= 1
                one.target["active"].add(task)
                del left[task]
    for task in left:
        free = max(members, key=lambda one: room[one.id])
        room[free.id] -= 1
        free.target["active"].add(task)


def _warm_up(
    members: list[StreamsMember], stateful: list[Task], before: dict[str, Tasks], ready: Iterable[Any], most: int
) -> None:
    """Let tasks with state stay where they are, while their next members build a copy."""
    ready = set(ready)
    for task in stateful:
        was = next((one for one in members if task in before[one.id]["active"]), None)
        new = next((one for one in members if task in one.target["active"]), None)
        if most <= 0 or was is None or new is None or was is new or was.process == new.process:
            continue
        if task in before[new.id]["standby"] or (new.id, task) in ready:
            continue
        new.target["active"].discard(task)
        was.target["active"].add(task)
        new.target["warmup"].add(task)
        most -= 1


def _copy(members: list[StreamsMember], stateful: list[Task], before: dict[str, Tasks]) -> None:
    """One more standby task for each task with state, where there is a process that has none of it."""
    size = {one.id: sum(map(len, one.target.values())) for one in members}
    having: dict[Task, set[str]] = {}
    for one in members:
        for task in set().union(*one.target.values()):
            having.setdefault(task, set()).add(one.process)
    for task in stateful:
        free = [one for one in members if one.process not in having.get(task, ())]
        if free:
            # Who had a copy, or was active, has the state.
            one = min(free, key=lambda one: (not any(task in some for some in before[one.id].values()), size[one.id]))
            one.target["standby"].add(task)
            having.setdefault(task, set()).add(one.process)
            size[one.id] += 1


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Partitions by subtopology, in order."""
    found: dict[str, list[int]] = {}
    for name, number in sorted(tasks):
        found.setdefault(name, []).append(number)
    return found
