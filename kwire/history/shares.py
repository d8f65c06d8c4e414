"""The history ``share_deliveries``: which records of share groups were delivered, to whom, and what became of them.

``Shares`` is the state machine of a group. It knows where the session of each member is, and has ``Deliveries`` for
each partition: ranges of offsets that somebody has acquired, and those that were given back. A row is a range with one
outcome.

Rules kept here:

- A request acknowledges. Its response says whether the broker took that: the outcome is known then. An error of the
  whole response refuses all of it.
- Offsets that end before they begin are none.
- A lock that is over, by the clock of the capture, is ``expired``. That is seen with the next frame of the partition.
- Records that are delivered again while somebody has them were given back by the broker: the member's session ended,
  or it left.
- Requests of a session are numbered. If one is missing, or was not answered in the capture, what the member had is
  ``unknown`` from there on. So is what it gets by responses to earlier requests that the capture shows later: after a
  loss, a response may be settled after the next request.
- At most ``MOST_RANGES`` ranges of a partition are kept. The oldest is a row with the status ``given_up``.

Source: KIP-932 (share groups), KIP-1222 (renewals); Kafka's SharePartition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kwire import stored
from kwire.history.fold import GIVEN_UP, Fold, History, Plain, Row
from kwire.history.members import MS
from kwire.history.steps import Names, Reader, Said, Step, kind_of, topic_of
from kwire.protocol.error_codes import error_name
from kwire.schema.keys import ApiKey

__all__ = ["DELIVERIES", "OUTCOMES", "Deliveries", "Shares", "acks_of"]

MOST_RANGES: Final = 4096
"""Ranges of one partition that somebody has."""
MOST_MEMBERS: Final = 4096
"""Members of one group whose sessions are followed."""
MOST_ENDED: Final = 1024
"""Ranges that were given back, and are remembered until they are delivered again."""

OUTCOMES: Final = {
    "accepted": "the member has processed them",
    "released": "the member gave them back: they are delivered again",
    "rejected": "the member refused them: they are never delivered again",
    "gap": "the member says that there are no such records",
    "renewed": "the member keeps them for another lock timeout (KIP-1222)",
    "expired": "the lock timeout was over before the member acknowledged",
    "taken_back": "they were delivered again before that: the session of the member ended, or it left",
    "refused": "the broker did not take the acknowledgement: `error_name` says why",
    "held": "the capture ends while the member has them",
    "unknown": "frames of the member are missing in the capture",
}
"""What each ``outcome`` means."""

_TYPES: Final = ("gap", "accepted", "released", "rejected", "renewed")
"""The outcome by the number in ``acknowledge_types``."""
_NEVER: Final = 1 << 63
_PLAIN: Final = (
    "group_id", "topic", "topic_id", "partition", "first_offset", "last_offset", "member_id", "delivery_count",
    "previous_outcome", "acquired_at", "acquired_capture", "acquired_connection", "acquired_frame", "lock_timeout_ms",
    "outcome", "held_ms",
)  # fmt: skip
"""The columns of a range with an outcome."""
_AGAIN: Final = ("released", "expired", "taken_back")

_made: Final = tuple.__new__

_Made = Iterator[tuple[str | None, str, Said]]


# --- steps ------------------------------------------------------------------------------------------------------------


_Place = tuple[str | None, int]
"""Type: the id of a topic, and a partition."""


def acks_of(batches: Iterable[tuple[int, int, Sequence[int]]]) -> list[list[int]]:
    """Runs of offsets with one type: [first, last, type]. ``batches``: first and last offset, and types."""
    made: list[list[int]] = []
    for first, last, types in batches:
        if len(types) <= 1:
            made.append([first, last, *(types or [0])])
            continue
        for offset, type_ in zip(range(first, last + 1), types, strict=False):
            if made and made[-1][2] == type_ and made[-1][1] == offset - 1 >= first:
                made[-1][1] = offset
            else:
                made.append([offset, offset, type_])
    return made


def _asks(body: Any, names: Names) -> _Made:
    acks = []
    for topic in body.topics:
        named = topic_of(topic.topic_id, names)
        for one in topic.partitions:
            batches = one.acknowledgement_batches
            some = acks_of((each.first_offset, each.last_offset, list(each.acknowledge_types)) for each in batches)
            if some:
                acks.append([named, one.partition_index, some])
    yield body.group_id or "", "", {"member": body.member_id, "epoch": body.share_session_epoch, "acks": acks}


def _fetched(body: Any, names: Names) -> _Made:
    parts = []
    for topic in body.responses:
        named = topic_of(topic.topic_id, names)
        for one in topic.partitions:
            some = [[each.first_offset, each.last_offset, each.delivery_count] for each in one.acquired_records]
            parts.append([named, one.partition_index, one.acknowledge_error_code, some])
    yield None, "", {"code": body.error_code, "lock": body.acquisition_lock_timeout_ms, "parts": parts}


def _acknowledged(body: Any, names: Names) -> _Made:
    parts = []
    for topic in body.responses:
        named = topic_of(topic.topic_id, names)
        parts += [[named, one.partition_index, one.error_code, []] for one in topic.partitions]
    yield None, "", {"code": body.error_code, "lock": body.acquisition_lock_timeout_ms, "parts": parts}


_READS: Final[dict[int, Reader]] = {
    kind_of(ApiKey.SHARE_FETCH, False): _asks,
    kind_of(ApiKey.SHARE_FETCH, True): _fetched,
    kind_of(ApiKey.SHARE_ACKNOWLEDGE, False): _asks,
    kind_of(ApiKey.SHARE_ACKNOWLEDGE, True): _acknowledged,
}


# --- the fold ---------------------------------------------------------------------------------------------------------


class _Range(NamedTuple):
    """Offsets that a member has, or had. ``lock``: milliseconds, 0 if it is not known. Times are nanoseconds."""

    first: int
    last: int
    member: str
    deliveries: int
    since: int | None
    """When they were acquired,"""
    until: int | None
    """and when the lock is over."""
    lock: int
    capture: str
    connection: int
    frame: int
    outcome: str = ""
    before: str | None = None
    """The outcome of the delivery before this one."""

    def within(self, first: int, last: int) -> _Range:
        """The part of it that is in another range."""
        if first <= self.first and self.last <= last:
            return self
        return self._replace(first=max(self.first, first), last=min(self.last, last))

    def without(self, first: int, last: int) -> Iterator[_Range]:
        """The parts of it that are not."""
        if self.first < first:
            yield self._replace(last=min(self.last, first - 1))
        if self.last > last:
            yield self._replace(first=max(self.first, last + 1))


class Deliveries:
    """The deliveries of one partition to one group."""

    def __init__(self, owner: str, place: _Place) -> None:
        self.owner = owner
        self.topic: list[str | None] = [None, place[0]]
        self.partition: int = place[1]
        self.held: dict[int, _Range] = {}
        """Ranges that members have, by their first offsets. No two have an offset in common."""
        self._firsts: list[int] = []
        """These offsets in order."""
        self.ended: list[_Range] = []
        """Ranges that were given back."""
        self.now: int | None = None
        self._soonest = _NEVER
        """No lock is over before this time."""

    @property
    def size(self) -> int:
        """How many ranges it knows."""
        return 1 + len(self.held) + len(self.ended)

    def heard(self, now: int | None, topic: list[str | None]) -> list[Plain]:
        """Takes a frame that names this partition. Gives the rows of locks that are over."""
        self.now = now
        if topic[0]:
            self.topic = topic
        return self._expired()

    def answered(
        self, acks: Sequence[list[int]], code: int, acquired: Sequence[list[int]], step: Step, member: str
    ) -> list[Row | Plain]:
        """The rows of an answer to a ``member``. ``acks``: what its request acknowledged here, ``acquired``: what it
        has now, ``step``: the whole response."""
        made: list[Row | Plain] = []
        lock = step.said["lock"]
        for first, last, type_ in acks:
            if last < first:
                continue
            if code:
                name = error_name(code) or str(code)
                made.append(self._unknown(first, last, member, "refused") | {"error_name": name})
            else:
                made += self._acknowledged(first, last, type_, member, lock)
        for first, last, count in acquired:
            if last >= first:
                made += self._acquired(first, last, count, step, member)
        while len(self.held) > MOST_RANGES:
            one = self._drop(next(iter(self.held.values())))
            why = f"more than {MOST_RANGES} ranges of a partition are kept"
            row = dict(zip(_PLAIN, self._row(one, None), strict=True))
            made.append(row | {"status": GIVEN_UP, "error": why})
        return made

    def lose(self, member: str, outcome: str, now: int | None) -> Iterator[Plain]:
        """The rows of what a member does not have any more, or may not have."""
        self.now = self.now if now is None else now
        yield from self._expired()
        for one in [one for one in self.held.values() if one.member == member]:
            self._drop(one)
            yield self._ends(one, outcome, None if outcome == "unknown" else self.now)

    def over(self, now: int | None) -> Iterator[Plain]:
        """The rows of what is held at the end."""
        self.now = self.now if now is None else now
        yield from self._expired()
        for one in self.held.values():
            yield self._row(one, "held", self.now)
        self.held, self._firsts = {}, []

    def named(self) -> Row:
        """The columns that say which partition and group it is."""
        topic, id_ = self.topic
        return {"group_id": self.owner, "topic": topic, "topic_id": id_, "partition": self.partition}

    def _row(self, one: _Range, outcome: str | None, at: int | None = None) -> Plain:
        """The values of ``_PLAIN``."""
        held = None if at is None or one.since is None else max(0, at - one.since) / MS
        first, last, member, count, since, _, lock, capture, connection, frame, _, before = one
        return (
            self.owner, *self.topic, self.partition, first, last, member, count, before, since, capture, connection,
            frame, lock or None, outcome, held,
        )  # fmt: skip

    def _expired(self) -> list[Plain]:
        """The rows of locks that are over."""
        now = self.now
        if now is None or now < self._soonest:
            return []
        over = [one for one in self.held.values() if one.until is not None and one.until <= now]
        for one in over:
            self._drop(one)
        self._soonest = min((one.until for one in self.held.values() if one.until is not None), default=_NEVER)
        return [self._ends(one, "expired", one.until) for one in over]

    def _holds(self, one: _Range) -> None:
        if one.first not in self.held:
            insort(self._firsts, one.first)
        self.held[one.first] = one
        if one.until is not None and one.until < self._soonest:
            self._soonest = one.until

    def _drop(self, one: _Range) -> _Range:
        del self.held[one.first]
        del self._firsts[bisect_left(self._firsts, one.first)]
        return one

    def _ends(self, one: _Range, outcome: str, at: int | None) -> Plain:
        if outcome in _AGAIN:
            self.ended.append(one._replace(outcome=outcome))
            del self.ended[:-MOST_ENDED]
        return self._row(one, outcome, at)

    def _unknown(self, first: int, last: int, member: str, outcome: str) -> Row:
        """The row of a range that is not known to have been acquired."""
        return {
            **self.named(),
            "first_offset": first,
            "last_offset": last,
            "member_id": member,
            "outcome": outcome,
        }

    def _taken(self, first: int, last: int, member: str | None = None) -> list[_Range]:
        """Takes a range out of what is held (by a member): the parts that were."""
        whole = self.held.get(first)
        if whole is not None and whole.last == last and (member is None or whole.member == member):
            return [self._drop(whole)]
        found = []
        low, high = bisect_right(self._firsts, first), bisect_right(self._firsts, last)
        for one in [self.held[each] for each in self._firsts[max(low - 1, 0) : high]]:
            if one.last < first or (member is not None and one.member != member):
                continue
            found.append(self._drop(one).within(first, last))
            for left in one.without(first, last):
                self._holds(left)
        return found

    def _acknowledged(self, first: int, last: int, type_: int, member: str, lock: int) -> list[Row | Plain]:
        outcome = _TYPES[type_] if 0 <= type_ < len(_TYPES) else str(type_)
        done = first
        made: list[Row | Plain] = []
        some = self._taken(first, last, member)
        if len(some) > 1:
            some.sort(key=lambda each: each.first)
        for one in some:
            if one.first > done:
                made.append(self._unknown(done, one.first - 1, member, outcome))
            done = one.last + 1
            if outcome == "renewed":
                lasts = lock or one.lock
                until = None if self.now is None or not lasts else self.now + lasts * MS
                self._holds(one._replace(until=until, lock=lasts))
                made.append(self._row(one, outcome, self.now))
            else:
                made.append(self._ends(one, outcome, self.now))
        if done <= last:
            # It was acquired before the capture began.
            made.append(self._unknown(done, last, member, outcome))
        return made

    def _acquired(self, first: int, last: int, count: int, step: Step, member: str) -> list[Plain]:
        made = [self._ends(one, "taken_back", self.now) for one in self._taken(first, last)] if self.held else []
        lock = max(0, step.said["lock"])
        until = None if self.now is None or not lock else self.now + lock * MS
        # The first three of a step: capture, connection and frame.
        new = _made(_Range, (first, last, member, count, self.now, until, lock, *step[:3], "", None))
        if not self.ended:
            self._holds(new)
            return made
        ended, self.ended = self.ended, []
        mine = []
        for one in ended:
            if one.last < first or one.first > last:
                self.ended.append(one)
            else:
                self.ended += one.without(first, last)
                mine.append(one.within(first, last))
        spans: list[tuple[int, int, str | None]] = []
        for one in sorted(mine, key=lambda each: each.first):
            spans += [(first, one.first - 1, None), (one.first, one.last, one.outcome)]
            first = one.last + 1
        pieces: list[_Range] = []
        for begin, end, before in (*spans, (first, last, None)):
            if pieces and pieces[-1].before == before:
                # What ended in the same way is one range again, in however many it was.
                pieces[-1] = pieces[-1]._replace(last=max(end, pieces[-1].last))
            elif begin <= end:
                pieces.append(new._replace(first=begin, last=end, before=before))
        for one in pieces:
            self._holds(one)
        return made

    # --- state --------------------------------------------------------------------------------------------------------

    def save(self) -> Any:
        """What it knows, as JSON has it."""
        some = [[list(one) for one in each] for each in (self.held.values(), self.ended)]
        return {"topic": self.topic, "held": some[0], "ended": some[1], "now": self.now}

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        topic, id_ = state["topic"]
        self.topic = [None if topic is None else stored.text(topic), None if id_ is None else stored.text(id_)]
        self.held, self._firsts = {}, []
        for one in state["held"]:
            self._holds(_restored(one))
        self.ended = [_restored(one) for one in state["ended"]]
        self.now = stored.optional(state["now"], -(1 << 63), (1 << 63) - 1)


def _restored(values: Any) -> _Range:
    first, last, member, count, since, until, lock, capture, connection, frame, outcome, before = values
    times = (stored.optional(one, -(1 << 63), (1 << 63) - 1) for one in (since, until))
    return _Range(
        stored.number(first, -(1 << 63), (1 << 63) - 1),
        stored.number(last, -(1 << 63), (1 << 63) - 1),
        stored.text(member),
        stored.number(count, -(1 << 15)),
        next(times),
        next(times),
        stored.number(lock, 0),
        stored.text(capture),
        stored.number(connection, 0),
        stored.number(frame, 0),
        stored.text(outcome),
        None if before is None else stored.text(before),
    )


@dataclass(slots=True)
class _Session:
    """Where the requests of a member are. ``open``: the latest of them has no response yet. ``lost``: the frame of the
    latest at which it was seen that frames are missing before it, -1 for none."""

    connection: int
    epoch: int
    open: bool
    lost: int = -1


class Shares(Fold):
    """The deliveries of all partitions to one group."""

    def __init__(self, owner: str, place: str) -> None:
        super().__init__(owner, place)
        self.size = 0
        self.parts: dict[_Place, Deliveries] = {}
        self.sessions: dict[str, _Session] = {}
        self.held: dict[str, dict[_Place, None]] = {}
        """In which partitions members have got records."""
        self.now: int | None = None

    def take(self, step: Step) -> Iterable[Row | Plain]:
        self.now = self.now if step.time is None else step.time
        if not step.response:
            return self._asked(step)
        return () if step.request is None else self._answered(step, step.request)

    def _part(self, topic: list[str | None], partition: int) -> Deliveries:
        place = (topic[1], partition)
        part = self.parts.get(place)
        if part is None:
            part = self.parts[place] = Deliveries(self.owner, place)
            self.size += part.size
        return part

    def _asked(self, step: Step) -> list[Row | Plain]:
        said = step.said
        made: list[Row | Plain] = []
        member, epoch = said["member"] or "", said["epoch"]
        session = self.sessions.pop(member, None)
        if session is None:
            self.size += 1
            session = _Session(step.connection, epoch, True)
        else:
            if epoch >= 0 and (session.open or epoch not in (0, _after(session.epoch))):
                made += self._lose(member, "unknown")
                session.lost = step.frame
            session.connection, session.epoch, session.open = step.connection, epoch, True
        self.sessions[member] = session
        if len(self.sessions) > MOST_MEMBERS:
            gone = next(iter(self.sessions))
            del self.sessions[gone]
            self.size -= 1
            made += self._lose(gone, "unknown")
        for topic, partition, _ in said["acks"]:
            part = self._part(topic, partition)
            size = part.size
            made += part.heard(self.now, topic)
            self.size += part.size - size
        return made

    def _answered(self, step: Step, request: Step) -> list[Row | Plain]:
        asked = request.said
        made: list[Row | Plain] = []
        member = asked["member"] or ""
        session = self.sessions.get(member)
        acks = {(topic[1], partition): some for topic, partition, some in asked["acks"]}
        whole = step.said["code"]
        parts = [(topic, place, whole, ()) for topic, place, _ in asked["acks"]] if whole else step.said["parts"]
        for topic, partition, code, acquired in parts:
            part = self._part(topic, partition)
            size = part.size
            made += part.heard(self.now, topic)
            made += part.answered(acks.get((topic[1], partition), ()), code, acquired, step, member)
            if acquired:
                self.held.setdefault(member, {})[topic[1], partition] = None
            if session is not None and request.frame < session.lost:
                # It is told after a request that shows a loss: a request that is missing may have given them back.
                made += part.lose(member, "unknown", self.now)
            self.size += part.size - size
        if session is not None and session.epoch == asked["epoch"]:
            session.open = False
        if asked["epoch"] < 0:
            # The session is over: the broker takes back what it had.
            made += self._lose(member, "taken_back")
            if self.sessions.pop(member, None) is not None:
                self.size -= 1
        return made

    def _lose(self, member: str, outcome: str) -> Iterator[Row | Plain]:
        for place in self.held.pop(member, ()):
            part = self.parts[place]
            self.size -= part.size
            yield from part.lose(member, outcome, self.now)
            self.size += part.size

    def over(self) -> Iterable[Plain]:
        for part in self.parts.values():
            yield from part.over(self.now)

    def named(self) -> Row:
        return {"group_id": self.owner}

    def save(self) -> Any:
        return {
            "parts": [[f"{id_ or ''}:{number}", one.save()] for (id_, number), one in self.parts.items()],
            "sessions": [[who, one.connection, one.epoch, one.open, one.lost] for who, one in self.sessions.items()],
            "now": self.now,
        }

    def restore(self, state: Any) -> None:
        for named, said in state["parts"]:
            id_, _, number = stored.text(named).rpartition(":")
            place = (id_ or None, int(number))
            one = self.parts[place] = Deliveries(self.owner, place)
            one.restore(said)
            for each in one.held.values():
                self.held.setdefault(each.member, {})[place] = None
        for who, connection, epoch, is_open, lost in state["sessions"]:
            self.sessions[stored.text(who)] = _Session(
                stored.number(connection, 0), stored.number(epoch, -1), stored.truth(is_open), stored.number(lost, -1)
            )
        self.now = stored.optional(state["now"], -(1 << 63), (1 << 63) - 1)
        self.size: int = sum(one.size for one in self.parts.values()) + len(self.sessions)


def _after(epoch: int) -> int:
    """The number of the next request of a session."""
    return 1 if epoch == (1 << 31) - 1 else epoch + 1


DELIVERIES: Final = History(
    name="share_deliveries", reads=_READS, fold=Shares, by_place=False, at_end=True, plain=_PLAIN
)
"""The history of the records of share groups (``History``)."""
