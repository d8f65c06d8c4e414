"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what is said of groups."""

from __future__ import annotations

from kwire import messages
from kwire.codec.objects import WireMessage
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.asking import NEVER, Ask, Wait
from kwire.testing.broker.groups import Group, Pending, Phase

__all__ = ["delete", "describe", "heartbeat", "join", "leave", "list_all", "sync"]


def _error(ask: Ask, group_id: str) -> int:
    """The error of a request about a group, before the group is asked."""
    if ask.refused():
        return ask.refused()
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    return ErrorCode.NONE if ask.cluster.coordinator(group_id) is ask.node else ErrorCode.NOT_COORDINATOR


def _known(ask: Ask, group_id: str) -> Group:
    """The group of this name; one without members if there is none."""
    return ask.cluster.groups.get(group_id) or Group(group_id, 0.0, 0)


def _waited(pending: WireMessage | Pending) -> WireMessage | Wait:
    if not isinstance(pending, Pending):
        return pending
    waiting = pending
    return waiting.outcome or Wait(NEVER, lambda now: waiting.outcome)


def join(ask: Ask) -> WireMessage | Wait:
    """A member joins. The answer comes when all members have."""
    body, kind = ask.body, messages.JoinGroupResponse
    code = _error(ask, body.group_id)
    shortest, longest = ask.cluster.settings.session_timeouts
    if not code and not shortest <= body.session_timeout_ms / 1000 <= longest:
        code = ErrorCode.INVALID_SESSION_TIMEOUT
    if not code and ask.cluster.membership > ask.cluster.settings.max_membership:
        code = ErrorCode.GROUP_MAX_SIZE_REACHED
    group = None
    if not code:
        known = ask.cluster.groups.get(body.group_id)
        if known is None and body.member_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            group = known or ask.cluster.group(body.group_id)
            code = ErrorCode.NONE if group is not None else ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code or group is None:
        return kind(error_code=code, member_id=body.member_id, protocol_name="")
    new_id = f"{body.group_instance_id or ask.client_id}-{ask.cluster.new_id()}"
    return _waited(group.join(body, ask.version, (ask.client_id, ask.host), new_id, ask.now))


def sync(ask: Ask) -> WireMessage | Wait:
    """A member asks for its assignment. The leader brings that of all."""
    code = _error(ask, ask.body.group_id)
    if code:
        return messages.SyncGroupResponse(error_code=code)
    return _waited(_known(ask, ask.body.group_id).sync(ask.body, ask.now))


def heartbeat(ask: Ask) -> WireMessage:
    """A member is alive."""
    body = ask.body
    code = _error(ask, body.group_id)
    if not code:
        group = _known(ask, body.group_id)
        code = group.heartbeat(body.member_id, body.group_instance_id, body.generation_id, ask.now)
    return messages.HeartbeatResponse(error_code=code)


def leave(ask: Ask) -> WireMessage:
    """A member goes, or several (v3)."""
    body, kind = ask.body, messages.LeaveGroupResponse
    code = _error(ask, body.group_id)
    if code:
        return kind(error_code=code)
    group = _known(ask, body.group_id)
    if ask.version < 3:
        return kind(error_code=group.leave(body.member_id, None, ask.now))
    answers = []
    for one in body.members:
        answers.append(
            kind.MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=group.leave(one.member_id, one.group_instance_id, ask.now),
            )
        )
    return kind(members=answers)


def describe(ask: Ask) -> WireMessage:
    """The members of groups, and what each has."""
    kind = messages.DescribeGroupsResponse
    made = []
    for name in ask.body.groups:
        code = _error(ask, name)
        group = None if code else ask.cluster.groups.get(name)
        if group is None:
            if not code and ask.version >= 6:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            made.append(kind.DescribedGroup(error_code=code, group_id=name, group_state="" if code else "Dead"))
            continue
        told = group.phase in (Phase.STABLE, Phase.COMPLETING)
        members = [
            kind.DescribedGroupMember(
                member_id=one.id,
                group_instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=f"/{one.host}",
                member_metadata=one.protocols.get(group.protocol or "", b"") if told else b"",
                member_assignment=one.assignment,
            )
            for one in group.members.values()
        ]
        made.append(
            kind.DescribedGroup(
                group_id=name,
                group_state=group.phase.value,
                protocol_type=group.protocol_type,
                protocol_data=(group.protocol or "") if told else "",
                members=members,
            )
        )
    return kind(groups=made)


def list_all(ask: Ask) -> WireMessage:
    """The groups that this node coordinates."""
    kind, states, types = messages.ListGroupsResponse, ask.body.states_filter, ask.body.types_filter
    types = [one.lower() for one in types]
    mine = [one for one in ask.cluster.groups.values() if ask.cluster.coordinator(one.name) is ask.node]
    return kind(
        error_code=ask.refused(),
        groups=[
            kind.ListedGroup(
                group_id=one.name, protocol_type=one.protocol_type, group_state=one.state, group_type=one.type
            )
            for one in mine
            if (not states or one.state in states) and (not types or one.type in types)
        ],
    )


def delete(ask: Ask) -> WireMessage:
    """Forget groups without members, with their offsets."""
    kind, made = messages.DeleteGroupsResponse, []
    for name in ask.body.groups_names:
        code = _error(ask, name)
        group = ask.cluster.groups.get(name)
        if not code and group is None:
            code = ErrorCode.GROUP_ID_NOT_FOUND
        elif not code and group is not None and group.in_use:
            code = ErrorCode.NON_EMPTY_GROUP
        if not code:
            del ask.cluster.groups[name]
        made.append(kind.DeletableGroupResult(group_id=name, error_code=code))
    return kind(results=made)
