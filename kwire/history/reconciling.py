"""Groups whose members reconcile by heartbeats, for their history: KIP-848, KIP-932 and KIP-1071.

The group has an epoch. It grows when somebody joins or leaves, or wants other topics. Each member comes to its part of
the new assignment by itself: it gives up what it is not to have any more, says so, gets the epoch, and gets what the
others have given up. A member of a share group confirms nothing.

Rules kept here:

- A rebalance ends when all members have the epoch of the group, have confirmed what they were told, and what was taken
  was given to somebody. If nobody is to get it, it ended with the last change, which all have outlived by a heartbeat.
- The session timeout is not told. ``SESSION`` is the default of brokers, ``INTERVALS`` the default ratio.

Source: Kafka's GroupMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kwire.history.members import MS, NOT_CAPTURED, UNTIMED, Cause, Member, duration, flat

if TYPE_CHECKING:
    from kwire.history.fold import Row
    from kwire.history.groups import Group
    from kwire.history.steps import Said, Step

__all__ = ["INTERVALS", "LATE", "SESSION", "answered", "asked", "is_quiet", "is_settled"]

SESSION: Final = 45_000
"""Milliseconds (int) of silence after which brokers remove a member (``group.consumer.session.timeout.ms``)."""
INTERVALS: Final = 9
"""How many intervals between heartbeats (int) that is, by default."""
LATE: Final = 3
"""Intervals (int) between heartbeats from where on one is late."""


def asked(group: Group, step: Step) -> Iterator[Row]:
    """The rows of a request."""
    said = step.said
    epoch, number = said["epoch"], said["member"]
    if epoch == 0:
        if number:
            _anew(group, group.member(step, said, new=True), step)
        group.may_begin("join", number, step)
        return
    group.calm = group.calm and number in group.members and not group.members[number].is_silent(group.now)
    one = group.member(step, said) if number else None
    if epoch < 0:
        if one is not None:
            one.removed = Cause("leave", number, step.capture, step.connection, step.frame, step.time)
        group.may_begin("leave", number, step)
        return
    if one is None:
        return
    if one.epoch is None:
        one.epoch = epoch
    yield from group.late(one, LATE * one.interval * MS)
    group.hears(one)
    if said.get("rebalance", -1) > 0:
        one.rebalance = said["rebalance"]
    if said["topics"] is not None:
        if one.topics and one.topics != said["topics"]:
            group.may_begin("subscription", number, step)
        one.topics = said["topics"]
    yield from _owns(group, one, said.get("has", said.get("tasks")))


def is_quiet(one: Member, said: Said, waited: int) -> bool:
    """Whether a heartbeat says nothing but that its member is there. ``waited``: nanoseconds since it was heard."""
    if said["epoch"] <= 0 or one.epoch is None or said.get("rebalance", -1) > 0 or said["topics"] is not None:
        return False
    if said.get("has", said.get("tasks")) is not None:
        return False
    most = LATE * one.interval * MS
    return not most or waited < most


def is_settled(group: Group, said: Said, asked: Said) -> bool:
    """Whether the response to such a heartbeat says nothing new either."""
    one = group.members.get(said["member"] or asked["member"])
    if one is None or group.rebalance is not None or group.epoch is None or group.epoch < said["epoch"]:
        return False
    if said.get("has", said.get("tasks")) is not None or one.epoch != said["epoch"]:
        return False
    return one.interval == max(0, said["interval"]) and one.session == min(SESSION, INTERVALS * one.interval)


def _anew(group: Group, one: Member, step: Step) -> None:
    """A member that begins: it has nothing."""
    group.size -= len(one.parts or ())
    one.parts, one.epoch, one.changed, one.removed = frozenset(), 0, None, None
    group.calm = False
    group.gone.pop(one.id, None)
    group.hears(one)
    one.topics = step.said["topics"] or ""
    one.rebalance = max(0, step.said.get("rebalance", 0))
    one.joined = Cause("join", one.id, step.capture, step.connection, step.frame, step.time)


def _owns(group: Group, one: Member, has: Any) -> Iterator[Row]:
    """The rows of a member that says what it has."""
    if has is None:
        return
    if one.parts is None:
        group.give(one, has)
        if one.id in group.forgotten:
            # Who adds up what members gain and lose has to know that it is not what it was.
            del group.forgotten[one.id]
            group.size -= 1
            yield group.row("assigned", member=one, partitions=len(one.parts or ()))
    elif one.changed is not None and flat(has) == one.parts:
        took = None if one.changed == UNTIMED else duration(one.changed, group.now)
        one.changed = None
        yield group.row("synced", member=one, duration_ms=took, partitions=len(one.parts))


def answered(group: Group, step: Step, request: Step) -> Iterator[Row]:
    """The rows of a response."""
    said, wants = step.said, request.said
    if said["code"]:
        group.took_back(request)
        yield from group.fenced(step, wants, said["code"])
        return
    number = said["member"] or wants["member"]
    if wants["epoch"] < 0:
        yield from _left(group, number, request)
        return
    one = group.members.get(number)
    if one is None:
        one = group.member(request, {**wants, "member": number}, new=wants["epoch"] == 0)
        if wants["epoch"] == 0:
            _anew(group, one, request)
    before, known = one.epoch, group.epoch
    one.interval = max(0, said["interval"])
    one.session = min(SESSION, INTERVALS * one.interval)
    group.watch(one)
    yield from _follow(group, said["epoch"], request, one)
    one.epoch = said["epoch"]
    if wants["epoch"] == 0:
        yield group.row("joined", member=one)
    elif before is not None and one.epoch != before:
        yield group.row("epoch_bumped", member=one, cause=group.last, previous_epoch=before)
    told = said.get("has", said.get("tasks"))
    group.calm = group.calm and told is None and (before, known) == (one.epoch, group.epoch)
    if told is not None:
        yield from _assigned(group, one, told)
    yield from _settled(group, quiet=told is None)


def _left(group: Group, number: str, request: Step) -> Iterator[Row]:
    one = group.members.get(number)
    for_a_while = request.said["epoch"] < -1
    lost = {} if for_a_while else group.has_lost(one)
    if one is not None and one.parts and not for_a_while:
        group.loose |= one.parts
    group.remove(number)
    cause = Cause("leave", number, request.capture, request.connection, request.frame, request.time)
    group.gone_for(number, cause)
    detail = "for a while: a static member" if for_a_while else None
    columns: Row = {
        "epoch": None if one is None else one.epoch,
        "member_id": number,
        "group_instance_id": request.said.get("instance"),
    }
    yield group.row("left", cause=cause, detail=detail, **columns, **lost)
    if for_a_while:
        # Its partitions wait for it, and the group stays as it is.
        group.took_back(request)


def _follow(group: Group, epoch: int, request: Step, one: Member) -> Iterator[Row]:
    """The rows of an epoch that is newer than that of the group."""
    joins = request.said["epoch"] == 0
    if joins and group.epoch is not None and epoch < group.epoch and len(group.members) == 1:
        # Everybody had left, and the group was removed: this one has the same name.
        group.epoch, group.rebalance = 0, None
        group.pending = [each for each in group.pending if each.word != "leave"]
    if group.epoch is None and not joins:
        group.epoch = epoch
        return
    if group.epoch is not None and epoch <= group.epoch:
        if joins and request.said.get("instance") is not None:
            # A static member that is back. Others find the epoch raised later: brokers may wait for more members.
            group.took_back(request)
        return
    if one.epoch == epoch and not joins:
        # It was there before the capture began.
        group.epoch = epoch
        return
    known = group.epoch is not None or (joins and request.said.get("instance") is None)
    jump = epoch - (group.epoch or 0)
    first = group.cause(known=known)
    latest = first
    if known and group.pending and (joins or jump <= len(group.pending)):
        latest = group.pending[-1]
    elif group.pending:
        latest = NOT_CAPTURED
    if group.rebalance is None:
        yield group.begin(first)
    group.epoch, group.last, group.moved = epoch, latest, group.now
    group.pending.clear()


def _assigned(group: Group, one: Member, told: Any) -> Iterator[Row]:
    before = one.parts
    yield from group.changed(one, told, group.last)
    if one.parts == before:
        return
    assert one.parts is not None
    group.moved = group.now
    group.loose |= (before or frozenset()) - one.parts
    group.loose -= one.parts
    if group.kind != "share":
        one.changed = UNTIMED if group.now is None else group.now


def _settled(group: Group, *, quiet: bool) -> Iterator[Row]:
    """The row of a rebalance that is over, if it is."""
    if group.rebalance is None:
        return
    if not group.calm:
        if group.any_member(lambda one: one.epoch != group.epoch or one.changed is not None):
            return
        group.calm = True
    moved = group.moved
    if group.loose and (
        not quiet or moved is None or group.any_member(lambda one: one.heard is None or one.heard <= moved)
    ):
        return
    yield from group.end(at=moved if group.loose else None)
    if group.silence() is not None:
        for one in [one for one in group.members.values() if one.is_silent(group.now)]:
            group.forget(one.id)
