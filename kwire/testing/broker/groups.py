"""Groups of consumers with the classic protocol, and the offsets that groups have committed.

A group is a state machine without sockets. ``join`` and ``sync`` give a response, or ``Pending``: then the response is
in ``Pending.outcome`` once the other members have come. ``advance`` is to be called as time passes.

    EMPTY       no members; offsets stay
    PREPARING   members join; it ends when all have, or the longest rebalance timeout is over
    COMPLETING  the leader has to bring the assignment
    STABLE      members send heartbeats

Rules kept here, as Kafka's GroupCoordinator has them:

- A member without an id gets one first, and joins with it then (JoinGroup v4 and later, KIP-394).
- A static member (KIP-345) that joins anew keeps its place, and its former id is fenced.
- A member that waits in JoinGroup does not time out; what has no generation may commit while there are no members.

Sources: protocol guide, "Group Membership API"; KIP-62, KIP-345, KIP-394, KIP-814.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from kwire import messages
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.consumers import Consumers
from kwire.testing.broker.sharing import ISOLATION, RESET, Share
from kwire.testing.broker.streams import Streams

if TYPE_CHECKING:
    from kwire.messages import JoinGroupRequest, JoinGroupResponse, SyncGroupRequest, SyncGroupResponse
    from kwire.testing.broker.cluster import Cluster

__all__ = ["Committed", "Group", "Member", "Pending", "Phase"]

_MOST_MEMBER_BYTES: Final = 1 << 20
"""Metadata and assignment of a member."""


class Phase(Enum):
    """The state of a group, by its name in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(eq=False, slots=True)
class Pending:
    """A response that waits for other members."""

    outcome: Any = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed offset of a partition."""

    offset: int
    leader_epoch: int
    metadata: str | None


@dataclass(eq=False, slots=True)
class Member:
    """A member of a group."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: dict[str, bytes]
    heard: float
    version: int
    joining: Pending | None = None
    syncing: Pending | None = None
    assignment: bytes = b""

    @property
    def size(self) -> int:
        """Bytes of what it says and gets."""
        return len(self.assignment) + sum(len(name) + len(data) for name, data in self.protocols.items())


@dataclass(eq=False)
class Group:
    """A group, by its name."""

    name: str
    delay: float
    """Seconds for which a new group waits for more members."""
    most: int
    """Members that there can be."""
    phase: Phase = Phase.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    """Ids that were given to members that have yet to join, and until when."""
    offsets: dict[tuple[str, int], Committed] = field(default_factory=dict)
    unsettled: dict[int, dict[tuple[str, int], Committed]] = field(default_factory=dict)
    """Producer id -> the offsets of its open transaction."""
    consumers: Consumers | None = None
    """Members of the consumer protocol (KIP-848), where the group is of that one."""
    share: Share | None = None
    """The members and records of a share group (KIP-932), where it is one."""
    streams: Streams | None = None
    """The members and tasks of a streams group (KIP-1071), where it is one."""
    _initial: bool = False
    """Whether the rebalance is that of a group without members."""
    _begun: float = 0.0
    _until: float = NEVER

    @property
    def in_use(self) -> bool:
        """Whether it has members, of either protocol."""
        others = (self.consumers, self.share, self.streams)
        return bool(self.members) or any(one is not None and one.members for one in others)

    def shared(self, cluster: Cluster) -> Share:
        """This group as a share group."""
        if self.share is None:
            configs = cluster.group_configs.get(self.name, {})
            self.share = Share(cluster, configs.get(RESET) == "earliest", configs.get(ISOLATION) == "read_committed")
        return self.share

    @property
    def type(self) -> str:
        """The protocol, as ListGroups has it."""
        if self.share is not None:
            return "share"
        if self.streams is not None:
            return "streams"
        return "classic" if self.consumers is None or self.members else "consumer"

    @property
    def state(self) -> str:
        """The state, as ListGroups has it."""
        if self.streams is not None:
            return self.streams.state
        return "Stable" if self.type != "classic" and self.in_use else self.phase.value

    # -- joining

    def join(
        self, request: JoinGroupRequest, version: int, client: tuple[str, str], new_id: str, now: float
    ) -> JoinGroupResponse | Pending:
        """JoinGroup of the ``client`` (its client id, its host); ``new_id`` is what a member without id gets."""
        code = self._refused(request)
        if code:
            return messages.JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name="")
        instance, number = request.group_instance_id, request.member_id
        known = self.members.get(number)
        if known is None and instance is not None:
            known = next((one for one in self.members.values() if one.instance_id == instance), None)
            if known is not None and number:
                return self._join_error(ErrorCode.FENCED_INSTANCE_ID, number)
        if not number and known is None and instance is None and version >= 4:
            self.expected[new_id] = now + request.session_timeout_ms / 1000
            return self._join_error(ErrorCode.MEMBER_ID_REQUIRED, new_id)
        if number and known is None and number not in self.expected:
            return self._join_error(ErrorCode.UNKNOWN_MEMBER_ID, number)
        self.expected.pop(number, None)
        protocols = {one.name: bytes(one.metadata) for one in request.protocols}
        if known is None:
            return self._added(request, version, client, number or new_id, now, protocols)
        if not number:
            self._replace(known, new_id)
        changed = known.protocols != protocols
        known.protocols, known.version, known.heard = protocols, version, now
        known.session_timeout = request.session_timeout_ms / 1000
        known.rebalance_timeout = _rebalance(request)
        if self.phase is Phase.STABLE and not changed and (known.id != self.leader or instance is not None):
            # A static member that is back, or a follower that has not heard of the answer, changes nothing.
            return self._joined(known, skip=known.id == self.leader)
        if self.phase is Phase.COMPLETING and not changed:
            return self._joined(known)
        return self._wait_to_join(known, now)

    def _added(
        self,
        request: JoinGroupRequest,
        version: int,
        client: tuple[str, str],
        number: str,
        now: float,
        protocols: dict[str, bytes],
    ) -> Pending:
        new = Member(
            number,
            request.group_instance_id,
            *client,
            session_timeout=request.session_timeout_ms / 1000,
            rebalance_timeout=_rebalance(request),
            protocols=protocols,
            heard=now,
            version=version,
        )
        if not self.members:
            self.protocol_type = request.protocol_type
        self.members[new.id] = new
        return self._wait_to_join(new, now)

    def _refused(self, request: JoinGroupRequest) -> int:
        others = (self.share, self.streams)
        if (self.consumers is not None and self.consumers.members) or any(one is not None for one in others):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        size = sum(len(one.metadata) + len(one.name) for one in request.protocols)
        known = request.member_id in self.members
        if size > _MOST_MEMBER_BYTES or (not known and len(self.members) + len(self.expected) >= self.most):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not request.protocols or not request.protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        others = [one for one in self.members.values() if one.id != request.member_id]
        if others:
            if request.protocol_type != self.protocol_type:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            offered = {one.name for one in request.protocols}
            if not any(all(name in one.protocols for one in others) for name in offered):
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _replace(self, known: Member, new_id: str) -> None:
        """Give a static member another id."""
        for pending, kind in ((known.joining, messages.JoinGroupResponse), (known.syncing, messages.SyncGroupResponse)):
            if pending is not None:
                pending.outcome = kind(error_code=ErrorCode.FENCED_INSTANCE_ID)
        known.joining = known.syncing = None
        del self.members[known.id]
        if self.leader == known.id:
            self.leader = new_id
        known.id = new_id
        self.members[new_id] = known

    def _wait_to_join(self, member: Member, now: float) -> Pending:
        if member.joining is not None:
            member.joining.outcome = self._join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.id)
        pending = member.joining = Pending()
        if self.phase is not Phase.PREPARING:
            self._prepare(now)
        self.advance(now)
        return pending

    def _prepare(self, now: float) -> None:
        """Begin a rebalance."""
        for one in self.members.values():
            if one.syncing is not None:
                one.syncing.outcome = messages.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
                one.syncing = None
        self._initial = self.phase is Phase.EMPTY
        self.phase = Phase.PREPARING
        self._begun = now + self.delay if self._initial else now
        self._until = now + max((one.rebalance_timeout for one in self.members.values()), default=0.0)

    def _complete(self, now: float) -> None:
        """End the joining: who is there is in the new generation."""
        for one in [one for one in self.members.values() if one.joining is None]:
            del self.members[one.id]
        self.generation += 1
        self._until = NEVER
        if not self.members:
            self.phase, self.protocol, self.leader = Phase.EMPTY, None, ""
            return
        self.phase = Phase.COMPLETING
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = self._chosen()
        for one in self.members.values():
            assert one.joining is not None
            one.joining.outcome = self._joined(one)
            one.joining, one.heard, one.assignment = None, now, b""

    def _chosen(self) -> str:
        """The protocol that most members like best, of those that all have."""
        common = [
            name
            for name in self.members[self.leader].protocols
            if all(name in m.protocols for m in self.members.values())
        ]
        votes = dict.fromkeys(common, 0)
        for one in self.members.values():
            favourite = next(name for name in one.protocols if name in votes)
            votes[favourite] += 1
        return max(votes, key=lambda name: votes[name])

    def _joined(self, member: Member, *, skip: bool = False) -> JoinGroupResponse:
        kind = messages.JoinGroupResponse
        listed = []
        if member.id == self.leader:
            listed = [
                kind.JoinGroupResponseMember(
                    member_id=one.id,
                    group_instance_id=one.instance_id,
                    metadata=one.protocols.get(self.protocol or "", b""),
                )
                for one in self.members.values()
            ]
        return kind(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader,
            skip_assignment=skip and member.version >= 9,
            member_id=member.id,
            members=listed,
        )

    @staticmethod
    def _join_error(code: int, member_id: str) -> JoinGroupResponse:
        return messages.JoinGroupResponse(error_code=code, member_id=member_id, protocol_name="")

    # -- members

    def check(self, member_id: str, instance_id: str | None, generation: int | None) -> int:
        """The error that a member of this id and generation gets (None: it says none), or 0."""
        known = self.members.get(member_id)
        if known is None:
            if instance_id is not None and any(one.instance_id == instance_id for one in self.members.values()):
                return ErrorCode.FENCED_INSTANCE_ID
            return ErrorCode.UNKNOWN_MEMBER_ID
        if instance_id is not None and known.instance_id != instance_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if generation is not None and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.NONE

    def sync(self, request: SyncGroupRequest, now: float) -> SyncGroupResponse | Pending:
        """SyncGroup: the leader brings the assignment, the others get theirs."""
        kind = messages.SyncGroupResponse
        code = self.check(request.member_id, request.group_instance_id, request.generation_id)
        named = request.protocol_name
        if not code and named is not None and named != self.protocol:
            code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not code and self.phase is Phase.PREPARING:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        if code:
            return kind(error_code=code)
        member = self.members[request.member_id]
        member.heard = now
        if self.phase is Phase.STABLE:
            return self._synced(member)
        if member.id != self.leader:
            if member.syncing is not None:
                member.syncing.outcome = kind(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            member.syncing = Pending()
            return member.syncing
        if sum(len(one.assignment) for one in request.assignments) > _MOST_MEMBER_BYTES * len(self.members):
            return kind(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        for given in request.assignments:
            if given.member_id in self.members:
                self.members[given.member_id].assignment = bytes(given.assignment)
        self.phase = Phase.STABLE
        for one in self.members.values():
            if one.syncing is not None:
                one.syncing.outcome, one.syncing, one.heard = self._synced(one), None, now
        return self._synced(member)

    def _synced(self, member: Member) -> SyncGroupResponse:
        return messages.SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> int:
        """A sign of life. Gives an error code."""
        code = self.check(member_id, instance_id, generation)
        if code:
            return code
        self.members[member_id].heard = now
        return ErrorCode.REBALANCE_IN_PROGRESS if self.phase is Phase.PREPARING else ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None, now: float) -> int:
        """A member goes. A static one may be named by its instance alone. Gives an error code."""
        if not member_id and instance_id is not None:
            found = next((one.id for one in self.members.values() if one.instance_id == instance_id), "")
            member_id = found
        if self.expected.pop(member_id, None) is not None:
            return ErrorCode.NONE
        code = self.check(member_id, instance_id, None)
        if not code:
            self._drop(self.members[member_id], now)
        return code

    def _drop(self, member: Member, now: float) -> None:
        for pending, kind in (
            (member.joining, messages.JoinGroupResponse),
            (member.syncing, messages.SyncGroupResponse),
        ):
            if pending is not None:
                pending.outcome = kind(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        del self.members[member.id]
        if self.phase in (Phase.COMPLETING, Phase.STABLE):
            self._prepare(now)
        self.advance(now)

    # -- time

    def advance(self, now: float) -> None:
        """Drop who has been silent for too long, and end the joining if it is over."""
        if self.consumers is not None:
            self.consumers.advance(now)
        if self.share is not None:
            self.share.advance(now)
        if self.streams is not None:
            self.streams.advance(now)
        for number in [number for number, until in self.expected.items() if until <= now]:
            del self.expected[number]
        silent = [
            one for one in self.members.values() if one.joining is None and one.heard + one.session_timeout <= now
        ]
        for one in silent:
            if one.id in self.members:
                self._drop(one, now)
        if self.phase is Phase.PREPARING and ((self._all_joined and now >= self._begun) or now >= self._until):
            self._complete(now)

    @property
    def _all_joined(self) -> bool:
        """Whether nobody is waited for. The first rebalance does not wait for members that were given an id."""
        there = all(one.joining is not None for one in self.members.values())
        return there and (self._initial or not self.expected)

    def due(self) -> float:
        """When ``advance`` has something to do."""
        found = min(self.expected.values(), default=NEVER)
        if self.consumers is not None:
            found = min(found, self.consumers.due())
        if self.share is not None:
            found = min(found, self.share.due())
        if self.streams is not None:
            found = min(found, self.streams.due())
        for one in self.members.values():
            if one.joining is None:
                found = min(found, one.heard + one.session_timeout)
        if self.phase is Phase.PREPARING:
            found = min(found, self._until)
            if self._all_joined:
                found = min(found, self._begun)
        return found

    # -- offsets

    def may_commit(self, member_id: str, instance_id: str | None, generation: int) -> int:
        """The error that a commit of this member gets, or 0."""
        if self.consumers is not None and self.consumers.members:
            return self.consumers.check(member_id, generation)
        if self.streams is not None and self.streams.members:
            return self.streams.check(member_id, generation)
        if generation < 0 and not member_id:
            return ErrorCode.NONE if not self.members else ErrorCode.UNKNOWN_MEMBER_ID
        code = self.check(member_id, instance_id, generation)
        if not code and self.phase is Phase.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return code


def _rebalance(request: JoinGroupRequest) -> float:
    """Seconds; before v1 the session timeout is meant."""
    wanted = request.rebalance_timeout_ms
    return (request.session_timeout_ms if wanted < 0 else wanted) / 1000
