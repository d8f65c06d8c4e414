"""The history ``group_events``: what happened to the members of groups, and why.

``Group`` is the state machine of one group, of any of the four protocols. It holds what is known of each member, and of
the rebalance that is on. ``classic`` and ``reconciling`` have the rules of the protocols: JoinGroup and SyncGroup, and
the heartbeats of KIP-848, KIP-932 and KIP-1071.

Rules kept here:

- A rebalance begins with the first frame that shows it. Its cause is the first request since the last rebalance that
  begins one. Without such a request, it is a member whose session timeout was over. Else it is not in the capture.
- Where the capture began within the life of a group, the cause of what was going on is not known.
- What a member has is known from its joining on, or from the first assignment that names all it has.
- Most heartbeats and commits change nothing but when a member was last heard. ``beats`` takes these. It does what
  ``take`` does, or leaves all as it is and says so.
- A late heartbeat of a classic group is later than its session timeout. The other protocols do not tell it: there, a
  heartbeat is late after three of the intervals that the broker asked for.

Source: Kafka's GroupCoordinator and GroupMetadataManager; KIP-62, KIP-345, KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from kwire import stored
from kwire.history import classic, reconciling
from kwire.history.beats import Beat
from kwire.history.fold import GIVEN_UP, Fold, History, Row
from kwire.history.group_steps import CLASSIC, HEARTBEATS, KINDS, READS
from kwire.history.members import MS, NOT_CAPTURED, Cause, Member, Parts, Rebalance, duration, flat, listed
from kwire.history.steps import Said, Step, kind_of
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.schema.keys import ApiKey

__all__ = ["CAUSES", "EVENTS", "GROUPS", "Group"]

MOST_MEMBERS: Final = 1 << 15
"""Members of one group."""
MOST_FORGOTTEN: Final = 1 << 10
"""Members of one group that were silent, and may come back."""
_LONGEST_ID: Final = 512
"""Characters of the longest id of a member that is remembered after it left."""
_NEVER: Final = 1 << 63
MOST_PENDING: Final = 64
"""Requests of one group that may have begun a rebalance."""

EVENTS: Final = {
    "joined": "a member is in the group, with this epoch",
    "rejoined": "a member that was in the group joined the new generation (classic)",
    "left": "a member is not in the group any more: it left, was removed, or did not come back",
    "fenced": "the broker does not take a member for one any more: `error_name` says as what",
    "synced": "a member has what it was assigned: SyncGroup was answered, or it said that it owns just that",
    "assigned": "a member got partitions, or tasks",
    "revoked": "partitions, or tasks, were taken from a member",
    "heartbeat_late": "a heartbeat came late: `duration_ms` after the last sign of life",
    "epoch_bumped": "the generation of a classic group, or the epoch of a member, is another",
    "rebalance_began": "the first sign of a rebalance, with its cause",
    "rebalance_ended": "the assignment is there (classic), or each member has what it is to have; `duration_ms` since "
    "its cause, or its first sign",
    "coordinator_moved": "another broker coordinates the group",
    "commit_refused": "the broker did not take committed offsets: `error_name` says why",
}
"""What each ``event`` means."""

CAUSES: Final = {
    "join": "a member joined, and was none before",
    "rejoin": "a member joined again, without having been asked to",
    "subscription": "a member wants other topics, or brought another topology",
    "leave": "a member left, or an administrator removed it",
    "session_timeout": "a member was silent for as long as its session timeout, or for several intervals",
    "rebalance_timeout": "a member did not follow a rebalance within its rebalance timeout",
    "instance": "another member has the same group_instance_id",
    "coordinator": "a broker said that it does not coordinate the group",
    "not_in_capture": "the capture does not show it; brokers begin some by themselves: a topic is another, or what a "
    "share or streams group needs is there",
}
"""What each ``cause`` means."""

_FENCED: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)
_OVERTAKEN: Final = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
"""Errors of commits that a rebalance explains."""


class Group(Fold):
    """One group."""

    def __init__(self, owner: str, place: str) -> None:
        super().__init__(owner, place)
        self.size = 0
        self.kind: str | None = None
        self.epoch: int | None = None
        self.members: dict[str, Member] = {}
        self.pending: list[Cause] = []
        """Requests since the last rebalance that may have begun the next, in order."""
        self.rebalance: Rebalance | None = None
        self.last: Cause = NOT_CAPTURED
        """Why the epoch is what it is."""
        self.assignor: str | None = None
        self.names: dict[str, str] = {}
        """Names of topics by their ids."""
        self.loose: set[tuple[str, int]] = set()
        """Partitions that were taken from members in this rebalance, and given to nobody yet."""
        self.forgotten: dict[str, None] = {}
        """Members that were silent when a rebalance ended: they may be there all the same."""
        self.moved: int | None = None
        """When the epoch or an assignment was last seen to change."""
        self.now: int | None = None
        self.broker: tuple[str, int] | None = None
        self.node: int | None = None
        self.there: tuple[int, frozenset[str]] | None = None
        """Of a classic group: a generation, and who is in the list that its leader got."""
        self.gone: dict[str, Cause] = {}
        """Why members left that were the last to do so."""
        self.invited: dict[str, None] = {}
        """Who got an id to join with (KIP-394), and has not done so."""
        # All below is made anew where a state goes on.
        self.calm = False
        """Whether all members have the epoch of the group and have confirmed what they got."""
        self._instances: dict[str, dict[str, None]] = {}
        """Members by the names of static ones."""
        self._silent: tuple[int, str] | None = None
        """Whose session timeout is over first and when, or one that was to be. None: it is not known."""
        self._order: list[Member] = []
        """Members, and some that are none any more."""
        self._at = 0

    # --- what steps come to -------------------------------------------------------------------------------------------

    def take(self, step: Step) -> Iterable[Row]:
        if step.time is not None:
            self.now = step.time
        self.kind = KINDS.get(ApiKey(step.api), self.kind)
        if step.api == ApiKey.FIND_COORDINATOR:
            yield from self._found(step)
        elif not step.response:
            yield from self._asked(step)
        elif step.request is not None:
            yield from self._answered(step, step.request)
        while len(self.members) > MOST_MEMBERS:
            yield self._forgotten()

    def _asked(self, step: Step) -> Iterator[Row]:
        self.size = max(self.size, 1)
        if step.api in CLASSIC:
            yield from classic.asked(self, step)
        elif step.api in HEARTBEATS:
            yield from reconciling.asked(self, step)
        elif self._is_sign(step.api):
            one = self.members.get(step.said["member"])
            if one is not None and one.interval == 0:
                self.hears(one)

    def _answered(self, step: Step, request: Step) -> Iterator[Row]:
        code = step.said["code"]
        yield from self._of_broker(step, code)
        if step.api in CLASSIC:
            yield from classic.answered(self, step, request)
        elif step.api in HEARTBEATS:
            yield from reconciling.answered(self, step, request)
        else:
            yield from self._committed(step, request)

    def beats(self, beats: Sequence[Beat], now: int, broker: tuple[str, int]) -> bool:
        first, latest = min(one.earliest for one in beats), max(one.latest for one in beats)
        if not all(self._is_quiet(one, first, latest) for one in beats):
            return False
        for beat in beats:
            one = self.members.get(beat.asked["member"])
            if beat.kind >> 1 not in _COMMITS:
                assert one is not None
                one.heard, one.was_silent = beat.last, None
                self.watch(one)
                self._call(one, beat.asked.get("instance"))
            elif self._is_sign(beat.kind >> 1) and one is not None and one.interval == 0:
                one.heard = beat.last
                self.watch(one)
        self.now, self.broker = now, broker
        return True

    def _is_quiet(self, beat: Beat, first: int, latest: int) -> bool:
        """Whether exchanges change nothing. ``first`` and ``latest``: times of all requests."""
        kind, said, told = beat[:3]
        api = kind >> 1
        if told["code"] or told.get("codes"):
            return False
        if api in _COMMITS:
            return True
        of = _QUIET.get(api)
        one = None if of is None else self.members.get(said["member"])
        if of is None or of[0] != self.kind or one is None:
            return False
        since = first if one.heard is None else min(first, one.heard)
        if not of[1](one, said, latest - since):
            return False
        return said["generation"] == self.epoch if api == ApiKey.HEARTBEAT else reconciling.is_settled(self, told, said)

    def _is_sign(self, api: int) -> bool:
        """Whether a commit counts as a sign of life (KIP-62)."""
        return api == ApiKey.OFFSET_COMMIT and self.kind == "classic"

    # --- the coordinator ----------------------------------------------------------------------------------------------

    def _of_broker(self, step: Step, code: int) -> Iterator[Row]:
        if code == ErrorCode.NOT_COORDINATOR:
            if self.broker == step.broker:
                self.broker = self.node = None
                cause = Cause("coordinator", None, step.capture, step.connection, step.frame, step.time)
                yield self.row("coordinator_moved", cause=cause, detail=f"{_place(step.broker)} is not it any more")
        elif code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.broker = step.broker

    def _found(self, step: Step) -> Iterator[Row]:
        said, request = step.said, step.request
        if request is None or said["code"] != 0 or said["node"] < 0:
            return
        self.size = max(self.size, 1)
        before, self.node = self.node, said["node"]
        if before is not None and before != self.node:
            self.broker = None
            cause = Cause("coordinator", None, request.capture, request.connection, request.frame, request.time)
            detail = f"node {self.node} ({_place((said['host'], said['port']))}) after node {before}"
            yield self.row("coordinator_moved", cause=cause, detail=detail)

    # --- commits ------------------------------------------------------------------------------------------------------

    def _committed(self, step: Step, request: Step) -> Iterator[Row]:
        asked = request.said
        for code, count in step.said["codes"]:
            overtaken = code in _OVERTAKEN
            cause = self.rebalance.cause if self.rebalance is not None else self.last
            yield self.row(
                "commit_refused",
                member=self.members.get(asked["member"]),
                member_id=asked["member"] or None,
                group_instance_id=asked["instance"],
                epoch=asked["generation"],
                error_name=error_name(code) or str(code),
                cause=cause if overtaken else None,
                detail="1 partition" if count == 1 else f"{count} partitions",
            )

    # --- for the protocols --------------------------------------------------------------------------------------------

    def row(self, event: str, *, member: Member | None = None, cause: Cause | None = None, **columns: Any) -> Row:
        """A row of this group."""
        made: Row = {
            "group_id": self.owner,
            "kind": self.kind,
            "event": event,
            "epoch": self.epoch,
            "assignor": self.assignor,
        }
        if member is not None:
            made |= {"member_id": member.id, "group_instance_id": member.instance, "epoch": member.epoch}
        if cause is not None:
            made |= cause.columns()
        return made | columns

    def named(self) -> Row:
        return {"group_id": self.owner, "kind": self.kind}

    def member(self, step: Step, said: Said, *, new: bool = False) -> Member:
        """The member that a request is of. It is added if it is not known."""
        number = said["member"]
        one = self.members.get(number)
        if one is None:
            one = self.members[number] = Member(number, parts=frozenset() if new else None)
            self.size += one.size - (number in self.invited)
            self.invited.pop(number, None)
            self._order.append(one)
        host, _, client = step.client
        one.host, one.client_id = host, client
        self._call(one, said.get("instance"))
        return one

    def _call(self, one: Member, instance: str | None) -> None:
        """A static member says its name."""
        if instance is None or one.instance == instance:
            return
        if one.instance is not None:
            del self._instances[one.instance][one.id]
        one.instance = instance
        self._instances.setdefault(instance, {})[one.id] = None

    def of_instance(self, instance: str | None) -> Iterator[Member]:
        """The members with this name, the one that was named first before others."""
        some = () if instance is None else self._instances.get(instance, ())
        return (self.members[number] for number in some)

    def hears(self, one: Member) -> None:
        """A member gives a sign of life."""
        one.heard = self.now
        self.watch(one)

    def watch(self, one: Member) -> None:
        """A member has another session timeout, or another last sign of life."""
        when = one.over_at
        if self._silent is None or when is None or when > self._silent[0]:
            return
        # The one that is a member for longest counts among several.
        self._silent = (when, one.id) if when < self._silent[0] else None

    def lists(self, generation: int, there: list[str]) -> None:
        """The leader of a classic group gets a list of all members."""
        self.size -= _size_of(self.there)
        self.there = generation, frozenset(there)
        self.size += _size_of(self.there)

    def invite(self, number: str) -> None:
        """Somebody gets an id to join with."""
        self.invited[number] = None
        self.size += 1
        if len(self.invited) > MOST_FORGOTTEN:
            del self.invited[next(iter(self.invited))]
            self.size -= 1

    def gone_for(self, number: str, cause: Cause) -> Cause:
        """Remembers why a member left. Gives ``cause``."""
        self.gone.pop(number, None)
        if len(number) <= _LONGEST_ID:
            self.gone[number] = cause
        if len(self.gone) > MOST_FORGOTTEN:
            del self.gone[next(iter(self.gone))]
        return cause

    def any_member(self, wanted: Callable[[Member], bool]) -> bool:
        """Whether there is such a member that is not silent.

        It is looked for from the one on that was found last. So if members cease to be wanted one by one, each is
        looked at a few times, and not as often as there are members.
        """
        for _ in range(len(self._order)):
            self._at = self._at if self._at < len(self._order) else 0
            one = self._order[self._at]
            if self.members.get(one.id) is one and wanted(one) and not one.is_silent(self.now):
                return True
            self._at += 1
        return False

    def remove(self, number: str) -> Member | None:
        """Forgets a member."""
        one = self.members.pop(number, None)
        if one is not None:
            self.size -= one.size
            if one.instance is not None:
                del self._instances[one.instance][number]
                if not self._instances[one.instance]:
                    del self._instances[one.instance]
            if len(self._order) > 2 * len(self.members) + 8:
                self._order, self._at = list(self.members.values()), 0
        return one

    def forget(self, number: str) -> None:
        """Forgets a member of which it is not known whether it is one."""
        self.remove(number)
        self.size += number not in self.forgotten
        self.forgotten.pop(number, None)
        self.forgotten[number] = None
        if len(self.forgotten) > MOST_FORGOTTEN:
            del self.forgotten[next(iter(self.forgotten))]
            self.size -= 1

    def _forgotten(self) -> Row:
        one = self.remove(next(iter(self.members)))
        assert one is not None
        why = f"more than {MOST_MEMBERS} members of one group are kept"
        return {**self.named(), "member_id": one.id, "status": GIVEN_UP, "error": why}

    def give(self, one: Member, has: Any) -> tuple[Parts | None, Parts | None]:
        """Gives a member what it has from now on. Returns what it gained and lost, None if that is not known."""
        before, after = one.parts, flat(has)
        for topic, id_, _ in (each for each in has if len(each) == 3):
            if id_ is not None and topic is not None:
                self.names[id_] = topic
        self.size += len(after) - len(before or ())
        one.parts = after
        if before is None:
            return None, None
        return after - before, before - after

    def changed(self, one: Member, has: Any, cause: Cause | None, **columns: Any) -> Iterator[Row]:
        """The rows of another assignment."""
        gained, lost = self.give(one, has)
        assert one.parts is not None
        count = len(one.parts)
        if gained is None:
            # What it had before is not known.
            yield self.row("assigned", member=one, cause=cause, partitions=count, **columns)
            return
        if lost:
            shown = listed(lost, self.names)
            yield self.row("revoked", member=one, cause=cause, lost=shown, partitions=count, **columns)
        if gained:
            shown = listed(gained, self.names)
            yield self.row("assigned", member=one, cause=cause, gained=shown, partitions=count, **columns)

    def has_lost(self, one: Member | None) -> Row:
        """The column ``lost`` of a member that is no member any more."""
        if one is None or one.parts is None:
            return {}
        return {"lost": listed(one.parts, self.names), "partitions": 0}

    def may_begin(self, word: str, member_id: str | None, step: Step) -> None:
        """A request that may begin a rebalance."""
        self.pending.append(Cause(word, member_id or None, step.capture, step.connection, step.frame, self.now))
        if len(self.pending) > MOST_PENDING:
            del self.pending[1]

    def took_back(self, step: Step) -> None:
        """A request began no rebalance."""
        self.pending = [one for one in self.pending if not one.is_of(step)]

    def begin(self, cause: Cause) -> Row:
        """The row of a rebalance that begins."""
        since = cause.time if cause.time is not None else self.now
        self.rebalance = Rebalance(since, cause, False)
        self.last = cause
        return self.row("rebalance_began", cause=cause)

    def end(self, *, at: int | None = None) -> Iterator[Row]:
        """The row of a rebalance that ends, if one was on."""
        on, self.rebalance = self.rebalance, None
        self.loose.clear()
        self.pending = [one for one in self.pending if on is not None and _is_later(one, at or self.now)]
        if on is not None:
            took = duration(on.since, self.now if at is None else at)
            yield self.row("rebalance_ended", cause=on.cause, duration_ms=took)

    def cause(self, *, known: bool) -> Cause:
        """Why a rebalance begins. ``known``: whether the capture has the group from before it."""
        if not known:
            return NOT_CAPTURED
        # Who was silent for too long is dropped then, whatever comes later.
        silence = self.silence()
        # Where packets are missing, a response may be read after requests that came later.
        some = [one for one in self.pending if one.time is None or self.now is None or one.time <= self.now]
        some += [] if silence is None else [silence]
        return min(some, key=lambda each: each.time or 0, default=NOT_CAPTURED)

    def silence(self) -> Cause | None:
        """The session timeout that was over first, if one is."""
        if self.now is None:
            return None
        if self._silent is not None and self._silent[0] <= self.now:
            one = self.members.get(self._silent[1])
            if one is None or one.over_at != self._silent[0]:
                self._silent = None
        if self._silent is None:
            times = ((one.over_at, one.id) for one in self.members.values())
            some = ((when, number) for when, number in times if when is not None)
            self._silent = min(some, key=lambda each: each[0], default=(_NEVER, ""))
        when, number = self._silent
        return Cause("session_timeout", number, None, None, None, when) if when <= self.now else None

    def fenced(self, step: Step, said: Said, code: int) -> Iterator[Row]:
        """A member that is none for the broker, if ``code`` says so."""
        if code not in _FENCED:
            return
        number = said["member"]
        one = self.members.get(number)
        cause = self._of_fence(one, said, code)
        columns: Row = {"member_id": number or None, "group_instance_id": said.get("instance")}
        if code not in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNRELEASED_INSTANCE_ID):
            columns |= self.has_lost(one)
            self.remove(number)
            if cause.word in ("session_timeout", "rebalance_timeout") and cause is not self.gone.get(number):
                self.pending.append(cause if cause.time is not None else cause._replace(time=self.now))
        epoch = said.get("generation", said.get("epoch"))
        epoch = None if epoch is None or epoch < 0 else epoch
        yield self.row("fenced", cause=cause, **columns | {"epoch": epoch, "error_name": error_name(code) or str(code)})

    def _of_fence(self, one: Member | None, said: Said, code: int) -> Cause:
        if code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID):
            other = next(
                (
                    each
                    for each in self.of_instance(said.get("instance"))
                    if each.id != said["member"] and each.joined is not None
                ),
                None,
            )
            return NOT_CAPTURED if other is None or other.joined is None else other.joined._replace(word="instance")
        if one is not None and one.removed is not None:
            return one.removed
        if one is not None and one.was_silent is not None:
            return Cause("session_timeout", one.id, None, None, None, one.was_silent)
        on = self.rebalance
        if one is not None and on is not None and one.is_behind(on.since, self.now):
            return Cause("rebalance_timeout", one.id, None, None, None, None)
        if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.STALE_MEMBER_EPOCH):
            return self.last
        return self.gone.get(said["member"], NOT_CAPTURED)

    def late(self, one: Member, most: int | None) -> Iterator[Row]:
        """The row of a heartbeat that is late. ``most``: nanoseconds from the last sign of life, None if not known."""
        one.was_silent = None
        if most and one.heard is not None and self.now is not None and self.now - one.heard >= most:
            one.was_silent = one.heard + most
            took = duration(one.heard, self.now)
            said = f"allowed: {most // MS / 1000:g} s"
            yield self.row("heartbeat_late", member=one, duration_ms=took, detail=said)

    # --- state --------------------------------------------------------------------------------------------------------

    def save(self) -> Any:
        on = self.rebalance
        return {
            "kind": self.kind,
            "epoch": self.epoch,
            "members": [one.save() for one in self.members.values()],
            "pending": [list(one) for one in self.pending],
            "rebalance": None if on is None else [on.since, list(on.cause), on.bumped],
            "last": list(self.last),
            "assignor": self.assignor,
            "names": self.names,
            "loose": sorted(self.loose),
            "forgotten": list(self.forgotten),
            "moved": self.moved,
            "now": self.now,
            "broker": self.broker,
            "node": self.node,
            "there": None if self.there is None else [self.there[0], sorted(self.there[1])],
            "invited": list(self.invited),
            "gone": [[number, list(cause)] for number, cause in self.gone.items()],
        }

    def restore(self, state: Any) -> None:
        self.kind = None if state["kind"] is None else stored.text(state["kind"])
        self.epoch = stored.optional(state["epoch"], -(1 << 31), 1 << 31)
        for said in state["members"]:
            one = Member.restored(said)
            self.members[one.id] = one
        self.pending = [Cause.restored(one) for one in state["pending"]]
        if state["rebalance"] is not None:
            since, cause, bumped = state["rebalance"]
            self.rebalance = Rebalance(_time(since), Cause.restored(cause), stored.truth(bumped))
        self.last = Cause.restored(state["last"])
        self.assignor = None if state["assignor"] is None else stored.text(state["assignor"])
        self.names = {stored.text(id_): stored.text(name) for id_, name in state["names"].items()}
        self.loose = {(stored.text(one), stored.number(part, -(1 << 31))) for one, part in state["loose"]}
        self.forgotten = dict.fromkeys(map(stored.text, state["forgotten"]))
        self.moved = _time(state["moved"])
        self.now = _time(state["now"])
        if state["broker"] is not None:
            host, port = state["broker"]
            self.broker = (stored.text(host), stored.number(port, 0))
        self.node = stored.optional(state["node"], -(1 << 31))
        if state["there"] is not None:
            generation, there = state["there"]
            self.there = stored.number(generation, -(1 << 31)), frozenset(map(stored.text, there))
        self.invited = dict.fromkeys(map(stored.text, state["invited"]))
        self.gone = {stored.text(number): Cause.restored(cause) for number, cause in state["gone"]}
        for one in self.members.values():
            if one.instance is not None:
                self._instances.setdefault(one.instance, {})[one.id] = None
        self._order = list(self.members.values())
        self.size: int = (
            _size_of(self.there)
            + len(self.invited)
            + 1
            + len(self.forgotten)
            + sum(one.size for one in self.members.values())
        )


_COMMITS: Final = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)
_QUIET: Final[dict[int, tuple[str, Callable[[Member, Said, int], bool]]]] = {
    ApiKey.HEARTBEAT: ("classic", classic.is_quiet),
    **{api: (kind, reconciling.is_quiet) for api, kind in HEARTBEATS.items()},
}
"""By API: the kind of group, and what says whether a heartbeat of a member changes nothing but when it was heard."""


def _size_of(there: tuple[int, frozenset[str]] | None) -> int:
    return 0 if there is None else len(there[1])


def _time(value: Any) -> int | None:
    return stored.optional(value, -(1 << 63), (1 << 63) - 1)


def _is_later(cause: Cause, than: int | None) -> bool:
    return cause.time is not None and than is not None and cause.time > than


def _place(broker: tuple[str, int]) -> str:
    host, port = broker
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


GROUPS: Final = History(
    name="group_events",
    reads=READS,
    fold=Group,
    heads={kind_of(api, False): ("group_instance_id", "member_id", "group_id") for api in _COMMITS},
    errors=frozenset(kind_of(api, True) for api in _COMMITS),
)
"""The history of groups (``History``)."""
