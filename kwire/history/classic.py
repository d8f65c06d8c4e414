"""Groups of the classic protocol, for their history: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A rebalance begins with a member that joins or leaves, or is silent for too long. Then heartbeats are answered with
REBALANCE_IN_PROGRESS, and all join. The first answer to JoinGroup has the next generation. The first answer to
SyncGroup ends the rebalance: the leader has brought the assignment.

Source: Kafka's GroupCoordinator; KIP-62, KIP-345, KIP-394.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kwire.history.members import MS, NOT_CAPTURED, Cause, Member
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey

if TYPE_CHECKING:
    from kwire.history.fold import Row
    from kwire.history.groups import Group
    from kwire.history.steps import Said, Step

__all__ = ["answered", "asked", "is_quiet"]

_ASKED_TO: Final = "group is already rebalancing"
"""The reason in JoinGroup (KIP-800) of Java clients that a heartbeat told to join."""


def asked(group: Group, step: Step) -> Iterator[Row]:
    """The rows of a request."""
    said = step.said
    if step.api == ApiKey.LEAVE_GROUP:
        for number, instance, _ in said["members"]:
            one = _named(group, number, instance)
            if one is not None:
                one.removed = _of(step, "leave", one.id)
            group.may_begin("leave", number if one is None else one.id, step)
        return
    if step.api == ApiKey.JOIN_GROUP:
        _joins(group, step)
        return
    if not said["member"]:
        # librdkafka forgets its id once it thinks that its session is over.
        return
    one = group.member(step, said)
    if one.epoch is None:
        one.epoch = said["generation"]
    if step.api == ApiKey.HEARTBEAT:
        yield from group.late(one, one.session * MS)
    group.hears(one)


def is_quiet(one: Member, said: Said, waited: int) -> bool:
    """Whether a heartbeat says nothing but that its member is there. ``waited``: nanoseconds since it was heard."""
    return one.epoch is not None and (not one.session or waited < one.session * MS)


def answered(group: Group, step: Step, request: Step) -> Iterator[Row]:
    """The rows of a response."""
    if step.api == ApiKey.JOIN_GROUP:
        yield from _joined(group, step, request)
    elif step.api == ApiKey.SYNC_GROUP:
        yield from _synced(group, step, request)
    elif step.api == ApiKey.HEARTBEAT:
        yield from _beat(group, step, request)
    else:
        yield from _left(group, step, request)


def _of(step: Step, word: str, member: str | None) -> Cause:
    return Cause(word, member or None, step.capture, step.connection, step.frame, step.time)


def _named(group: Group, number: str, instance: str | None) -> Member | None:
    """The member that LeaveGroup names: an administrator may give its instance id only."""
    if number or instance is None:
        return group.members.get(number)
    return next(iter(group.of_instance(instance)), None)


def _is_past(group: Group, generation: int) -> bool:
    """Whether the group is in a later generation than an answer is of.

    Where a connection waits for packets that are missing, those of the other members are read before. A group that
    everybody has left begins anew with the first generation.
    """
    return group.epoch is not None and 1 < generation < group.epoch


def _who(number: str, wants: Said) -> Row:
    """The columns of a member as a request names it."""
    return {"member_id": number, "group_instance_id": wants["instance"]}


# --- JoinGroup --------------------------------------------------------------------------------------------------------


def _joins(group: Group, step: Step) -> None:
    said = step.said
    word = "join"
    if said["member"]:
        there, new = said["member"] in group.members, _is_new(group, said["member"])
        one = group.member(step, said, new=new)
        if one.topics and said["topics"] and one.topics != said["topics"]:
            word = "subscription"
        elif not new and (not there or one.epoch is not None):
            word = "rejoin"
        one.session, one.rebalance = max(0, said["session"]), said["rebalance"]
        one.topics = said["topics"] or one.topics
        group.hears(one)
    on = group.rebalance
    # While members join, who joins follows.
    if (on is None or on.bumped) and not (word == "rejoin" and said["reason"] == _ASKED_TO):
        group.may_begin(word, said["member"], step)


def _is_new(group: Group, number: str) -> bool:
    """Whether a member got its id just now, or is in no list of the present generation, which the capture has."""
    if number in group.invited:
        return True
    return group.there is not None and group.there[0] == group.epoch and number not in group.there[1]


def _joined(group: Group, step: Step, request: Step) -> Iterator[Row]:
    said, wants = step.said, request.said
    if said["code"] == ErrorCode.MEMBER_ID_REQUIRED:
        group.took_back(request)
        if said["member"] and said["member"] not in group.members:
            group.invite(said["member"])
        return
    if said["code"]:
        if said["code"] != ErrorCode.REBALANCE_IN_PROGRESS:
            group.took_back(request)
        yield from group.fenced(step, wants, said["code"])
        return
    generation = said["generation"]
    if _is_past(group, generation):
        group.took_back(request)
        there = group.members.get(said["member"])
        first = not wants["member"] or (there is not None and there.epoch is None and there.parts is not None)
        yield group.row("joined" if first else "rejoined", **_who(said["member"], wants), epoch=generation)
        return
    anew = generation == group.epoch and request.said["instance"] is None and _is_new(group, said["member"])
    one = _who_joined(group, said, request)
    new = one.epoch is None and (one.parts is not None or generation == 1)
    if said["assignor"]:
        group.assignor = said["assignor"]
    if generation != group.epoch or (anew and group.rebalance is None):
        if anew:
            # Who left had left a group that is no more.
            group.pending = [each for each in group.pending if each.word != "leave"]
        yield from _next(group, generation)
    elif group.rebalance is None:
        # A member that is back, and changes nothing.
        group.took_back(request)
    group.gone.pop(one.id, None)
    one.epoch, one.joined = generation, _of(request, "join", one.id)
    one.session, one.rebalance = max(0, wants["session"]), wants["rebalance"]
    group.hears(one)
    one.topics = wants["topics"] or one.topics
    if new and one.parts is None:
        one.parts = frozenset()
    leads = "leader" if said["leader"] == one.id else None
    yield group.row("joined" if new else "rejoined", member=one, detail=leads)
    if said["members"]:
        group.lists(generation, [number for number, _ in said["members"]])
        yield from _missed(group, said["members"], generation)


def _who_joined(group: Group, said: Said, request: Step) -> Member:
    """The member that joined. A static member that is back may have another id."""
    instance = request.said["instance"]
    before = None
    if instance is not None and said["member"] not in group.members:
        before = next(iter(group.of_instance(instance)), None)
    one = group.member(request, {**request.said, "member": said["member"]}, new=not request.said["member"])
    if before is not None:
        group.remove(before.id)
        one.epoch = before.epoch
        group.size += len(before.parts or ()) - len(one.parts or ())
        one.parts = before.parts
    return one


def _next(group: Group, generation: int) -> Iterator[Row]:
    """The rows of a new generation."""
    known = (group.epoch is not None and generation > group.epoch) or generation == 1
    if group.rebalance is None or group.rebalance.bumped:
        cause = group.cause(known=known)
        # Nobody was there before the first generation.
        yield group.begin(cause._replace(word="join") if generation == 1 and cause.word == "rejoin" else cause)
    assert group.rebalance is not None
    before, group.epoch = group.epoch, generation
    group.rebalance = group.rebalance._replace(bumped=True)
    # Who joins or leaves from now on begins another one.
    group.pending.clear()
    yield group.row("epoch_bumped", cause=group.rebalance.cause, previous_epoch=before)


def _missed(group: Group, listed: Any, generation: int) -> Iterator[Row]:
    """The rows of members that the leader does not find in the new generation."""
    there = {number for number, _ in listed}
    instances = {instance for _, instance in listed if instance is not None}
    gone = [one for one in group.members.values() if one.id not in there and one.epoch not in (None, generation)]
    for one in gone:
        lost = group.has_lost(one)
        group.remove(one.id)
        if one.instance is None or one.instance not in instances:
            cause = group.gone_for(one.id, _why_gone(group, one))
            yield group.row("left", member=one, cause=cause, **lost)


def _why_gone(group: Group, one: Member) -> Cause:
    if one.removed is not None:
        return one.removed
    when = one.silent_since(group.now)
    if when is not None:
        return Cause("session_timeout", one.id, None, None, None, when)
    on = group.rebalance
    if on is not None and one.is_behind(on.since, group.now):
        return Cause("rebalance_timeout", one.id, None, None, None, None)
    return NOT_CAPTURED


# --- SyncGroup, Heartbeat, LeaveGroup ---------------------------------------------------------------------------------


def _synced(group: Group, step: Step, request: Step) -> Iterator[Row]:
    said, wants = step.said, request.said
    if said["code"]:
        yield from _told(group, wants, said["code"], step)
        return
    if _is_past(group, wants["generation"]):
        yield group.row("synced", **_who(wants["member"], wants), epoch=wants["generation"])
        return
    yield from _confirmed(group, wants["generation"], done=True)
    if said["assignor"] or wants["assignor"]:
        group.assignor = said["assignor"] or wants["assignor"]
    one = group.member(request, wants)
    one.epoch = wants["generation"]
    group.hears(one)
    yield group.row("synced", member=one)
    if said["has"] is not None:
        yield from group.changed(one, said["has"], group.last)


def _beat(group: Group, step: Step, request: Step) -> Iterator[Row]:
    wants, code = request.said, step.said["code"]
    if code:
        yield from _told(group, wants, code, step)
    elif wants["member"]:
        yield from _confirmed(group, wants["generation"], done=False)


def _told(group: Group, wants: Said, code: int, step: Step) -> Iterator[Row]:
    """The rows of an error that a member of some generation got."""
    if code != ErrorCode.REBALANCE_IN_PROGRESS:
        yield from group.fenced(step, wants, code)
        return
    known = group.epoch is not None
    if group.epoch is None or wants["generation"] > group.epoch:
        known, group.epoch = False, wants["generation"]
    on = group.rebalance
    if wants["generation"] == group.epoch and (on is None or on.bumped):
        yield group.begin(group.cause(known=known))


def _confirmed(group: Group, generation: int, *, done: bool) -> Iterator[Row]:
    """The rows of a generation that the broker takes as the present one. ``done``: it has its assignment."""
    if group.epoch is None:
        group.epoch = generation
    elif generation > group.epoch:
        # What led to it was not captured, nor who got what.
        before, group.epoch = group.epoch, generation
        group.rebalance, group.last = None, NOT_CAPTURED
        group.pending.clear()
        for one in group.members.values():
            group.size -= len(one.parts or ())
            one.parts = None
        yield group.row("epoch_bumped", cause=NOT_CAPTURED, previous_epoch=before)
    elif generation < group.epoch:
        return
    if done and group.rebalance is not None and group.rebalance.bumped:
        yield from group.end()


def _left(group: Group, step: Step, request: Step) -> Iterator[Row]:
    said = step.said
    if said["code"]:
        group.took_back(request)
        yield from group.fenced(step, {"member": request.said["members"][0][0]}, said["code"])
        return
    refused = {(number, instance) for number, instance, code in said["members"] if code}
    gone = 0
    for number, instance, reason in request.said["members"]:
        if (number, instance) in refused:
            continue
        gone += 1
        one = _named(group, number, instance)
        lost = group.has_lost(one)
        if one is not None:
            group.remove(one.id)
        who = {"member_id": number or None, "group_instance_id": instance} if one is None else {}
        cause = _of(request, "leave", number if one is None else one.id)
        group.gone_for(number if one is None else one.id, cause)
        yield group.row("left", member=one, cause=cause, detail=reason, **who, **lost)
    if not gone:
        group.took_back(request)
