"""Groups of the consumer protocol (KIP-848), where the broker assigns partitions and heartbeats carry everything.

A group has an epoch, which grows when members or topics change, and a target: who is to have which partitions. Each
member comes to it by itself, in three steps, with one heartbeat or several for each:

    it gives up what it is not to have any more, keeping its epoch
    it says that it has given that up, and gets the epoch of the group
    it gets what it is to have, as soon as no other member owns it

Rules kept here, as Kafka's GroupMetadataManager has them:

- Epoch 0 joins, -1 leaves, -2 leaves for a while (a static member). Any other epoch must be the member's.
- The answer has an assignment where that changed, or where the member asks for all.
- Who is silent for ``session`` seconds is dropped.

- A regular expression subscribes to the topics whose whole names match it. Kafka takes those of RE2/J. Here they are
  Python's, with no more than ``_MOST_REPEATS`` repeats and no repeated group, so that matching takes no time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import NEVER

if TYPE_CHECKING:
    from kwire.testing.broker.logs import Topic

__all__ = ["ASSIGNORS", "Consumer", "Consumers", "by_topic", "compiled"]

ASSIGNORS: Final = ("uniform", "range")
"""Assignors of the broker. Both share the partitions of all topics out in turn here."""

_MOST_REPEATS: Final = 3
_REPEAT: Final = re.compile(r"[*+{]|(?<!\()\?")
_REPEATED_GROUP: Final = re.compile(r"\)[*+{?]")

Place = tuple[UUID, int]


@dataclass(eq=False, slots=True)
class Consumer:
    """A member."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    heard: float
    epoch: int = 0
    topics: tuple[str, ...] = ()
    owned: set[Place] = field(default_factory=set)
    """What it has been given, and has not given up."""
    target: set[Place] = field(default_factory=set)
    said: set[Place] | None = None
    """What it was last told to have; None for nothing yet."""
    pattern: re.Pattern[str] | None = None
    """What else it subscribes to."""

    def wants(self, topic: str) -> bool:
        """Whether it subscribes to a topic."""
        return topic in self.topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)


@dataclass(eq=False)
class Consumers:
    """The members of a group of this protocol."""

    session: float
    most: int
    epoch: int = 0
    assignor: str = "uniform"
    members: dict[str, Consumer] = field(default_factory=dict)
    _seen: tuple[Any, ...] = ()

    def heartbeat(
        self, request: Any, client: tuple[str, str], new_id: str, topics: dict[str, Topic], now: float
    ) -> Consumer | int:
        """A heartbeat of the ``client`` (its client id, its host). Gives the member, or an error code."""
        found = self._member(request, client, new_id, now)
        if not isinstance(found, Consumer):
            return found
        found.heard = now
        if request.subscribed_topic_regex:
            try:
                found.pattern = compiled(request.subscribed_topic_regex)
            except ValueError:
                return ErrorCode.INVALID_REGULAR_EXPRESSION
        elif request.subscribed_topic_regex is not None:
            found.pattern = None
        if request.server_assignor is not None:
            if request.server_assignor not in ASSIGNORS:
                return ErrorCode.UNSUPPORTED_ASSIGNOR
            self.assignor = request.server_assignor
        if request.subscribed_topic_names is not None:
            found.topics = tuple(sorted(set(request.subscribed_topic_names)))
        self._assign(topics)
        if request.topic_partitions is not None:
            said = {(one.topic_id, number) for one in request.topic_partitions for number in one.partitions}
            # What it has given up is free. What it claims on top of that it has not been given.
            found.owned &= said
        self._reconcile(found)
        return found

    def _member(self, request: Any, client: tuple[str, str], new_id: str, now: float) -> Consumer | int:
        number, instance = request.member_id, request.instance_id
        known = self.members.get(number)
        if request.member_epoch == 0:
            if request.topic_partitions:
                return ErrorCode.INVALID_REQUEST
            if instance is not None:
                there = next((one for one in self.members.values() if one.instance_id == instance), None)
                if there is not None and there is not known:
                    if there.epoch != -2:
                        return ErrorCode.UNRELEASED_INSTANCE_ID
                    del self.members[there.id]
            if known is None:
                if len(self.members) >= self.most:
                    return ErrorCode.GROUP_MAX_SIZE_REACHED
                known = Consumer(number or new_id, instance, *client, heard=now)
                self.members[known.id] = known
                # One of the same name may have been there before.
                self._seen = ()
            known.owned, known.said, known.epoch = set(), None, 0
            return known
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return known if request.member_epoch == known.epoch else ErrorCode.FENCED_MEMBER_EPOCH

    def leave(self, member_id: str, for_a_while: bool) -> int:
        """A member goes. Gives an error code."""
        known = self.members.get(member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        known.owned = set()
        if for_a_while:
            known.epoch = -2
        else:
            del self.members[member_id]
        return ErrorCode.NONE

    def check(self, member_id: str, epoch: int) -> int:
        """The error of a request about offsets, or 0."""
        known = self.members.get(member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == known.epoch else ErrorCode.STALE_MEMBER_EPOCH

    # -- who has what

    def _assign(self, topics: dict[str, Topic]) -> None:
        """Find the target, if members, subscriptions or topics have changed."""
        wanted = sorted(name for name in topics if any(one.wants(name) for one in self.members.values()))
        seen = (
            tuple((one.id, one.topics, one.pattern) for one in self.members.values()),
            tuple((topics[name].id, len(topics[name].logs)) for name in wanted),
        )
        if seen == self._seen:
            return
        self._seen = seen
        self.epoch += 1
        before = {one.id: one.target for one in self.members.values()}
        for one in self.members.values():
            one.target = set()
        for name in wanted:
            places = [(topics[name].id, number) for number in range(len(topics[name].logs))]
            self._share(places, [one for one in self.members.values() if one.wants(name)], before)

    @staticmethod
    def _share(places: list[Place], members: list[Consumer], before: dict[str, set[Place]]) -> None:
        """Share the partitions of a topic out, so that each member keeps what it may keep."""
        least, more = divmod(len(places), len(members))
        left = set(places)
        room = {}
        for one in members:
            most = least + (more > 0)
            kept = sorted(before[one.id] & left)[:most]
            more -= len(kept) > least
            one.target |= set(kept)
            left -= set(kept)
            room[one.id] = least - len(kept)
        rest = sorted(left)
        for one in members:
            count = max(room[one.id], 0)
            one.target |= set(rest[:count])
            rest = rest[count:]
        for one in members:
            if rest and room[one.id] >= 0:
                one.target.add(rest.pop(0))

    def _reconcile(self, member: Consumer) -> None:
        if member.owned - member.target:
            # It still has to give something up. Until it says that it has, its epoch stays.
            if member.epoch == 0:
                member.epoch = self.epoch
            return
        member.epoch = self.epoch
        taken = {place for one in self.members.values() if one is not member for place in one.owned}
        member.owned |= member.target - taken

    def told(self, member: Consumer, everything: bool) -> set[Place] | None:
        """The assignment to tell a member; None if it has not changed."""
        now = member.owned & member.target
        if now == member.said and not everything:
            return None
        member.said = now
        return now

    # -- time

    def advance(self, now: float) -> None:
        """Drop who has been silent for too long."""
        for one in [one for one in self.members.values() if one.heard + self.session <= now]:
            del self.members[one.id]

    def due(self) -> float:
        """When ``advance`` has something to do."""
        return min((one.heard + self.session for one in self.members.values()), default=NEVER)


def compiled(text: str) -> re.Pattern[str]:
    """A regular expression. Raises ``ValueError`` for a text that is none, or one that may take long."""
    if len(_REPEAT.findall(text)) > _MOST_REPEATS or _REPEATED_GROUP.search(text) or "\\" in text.replace("\\.", ""):
        raise ValueError("too many repeats")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


def by_topic(places: Iterable[Place]) -> dict[UUID, list[int]]:
    """Partitions by topic, in order."""
    found: dict[UUID, list[int]] = {}
    for number, partition in sorted(places):
        found.setdefault(number, []).append(partition)
    return found
