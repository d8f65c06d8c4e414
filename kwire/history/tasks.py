"""The history ``streams_tasks``: which member of a streams group (KIP-1071) has which tasks, from when to when.

``Tasks`` is the state machine of one group. A row is a span: a task that a member had in one role, from the response
that gave it to the frame that took it. Tasks that members have when the capture ends are rows too, without an end.

Rules kept here:

- A response that names no tasks leaves them as they are.
- A member that leaves, or joins anew, has none from then on.
- What a member says that it has is not looked at: a row is what the broker assigned.
- At most ``MOST_MEMBERS`` members of a group are kept. The first is given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kwire import stored
from kwire.history.fold import GIVEN_UP, Fold, History, Row
from kwire.history.members import MS
from kwire.history.steps import Names, Reader, Said, Step, kind_of, shown
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey

__all__ = ["ENDS", "ROLES", "TASKS", "Tasks"]

MOST_MEMBERS: Final = 1 << 14
"""Members of one group."""

ROLES: Final = {
    "active": "the member processes the task",
    "standby": "the member keeps a copy of its state",
    "warmup": "the member builds a copy of its state, to take the task over",
}
"""What each ``role`` means."""

ENDS: Final = {
    "revoked": "the broker took the task from the member, or gave it another role",
    "left": "the member left",
    "fenced": "the broker does not take the member for one any more",
    "rejoined": "the member joined anew",
    "open": "the member has it when the capture ends",
}
"""What each ``ended`` means."""

_GONE: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)

Task = tuple[str, str, int]
"""Type: role, subtopology, partition."""
_Made = Iterator[tuple[str | None, str, Said]]


def _asks(body: Any, names: Names) -> _Made:
    end = body.user_endpoint
    said = {
        "member": body.member_id,
        "instance": body.instance_id,
        "epoch": body.member_epoch,
        "process": body.process_id,
        "endpoint": None if end is None else f"{end.host}:{end.port}",
        "topology": None if body.topology is None else body.topology.epoch,
    }
    yield body.group_id, "", said


def _told(body: Any, names: Names) -> _Made:
    roles = zip(ROLES, (body.active_tasks, body.standby_tasks, body.warmup_tasks), strict=True)
    said = {
        "code": body.error_code,
        "member": body.member_id,
        "epoch": body.member_epoch,
        "tasks": [
            [role, None if some is None else [[one.subtopology_id, list(one.partitions)] for one in some]]
            for role, some in roles
        ],
    }
    yield None, "", said


_READS: Final[dict[int, Reader]] = {
    kind_of(ApiKey.STREAMS_GROUP_HEARTBEAT, False): _asks,
    kind_of(ApiKey.STREAMS_GROUP_HEARTBEAT, True): _told,
}


@dataclass(slots=True)
class _Since:
    """Where a span begins. ``time``: nanoseconds since 1970."""

    time: int | None
    epoch: int
    capture: str
    connection: int
    frame: int


@dataclass(slots=True)
class _Member:
    instance: str | None = None
    process: str | None = None
    endpoint: str | None = None
    tasks: dict[Task, _Since] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many things it holds."""
        return 2 + len(self.tasks)


class Tasks(Fold):
    """The tasks of one streams group."""

    def __init__(self, owner: str, place: str) -> None:
        super().__init__(owner, place)
        self.members: dict[str, _Member] = {}
        self.topology: int | None = None
        self.now: int | None = None
        self.size = 0

    def take(self, step: Step) -> Iterable[Row]:
        self.now = self.now if step.time is None else step.time
        if not step.response:
            if step.said["member"]:
                self._knows(step.said["member"], step.said)
        elif step.request is not None:
            yield from self._answered(step, step.request)
        while len(self.members) > MOST_MEMBERS:
            number = next(iter(self.members))
            self._without(number)
            why = f"more than {MOST_MEMBERS} members of one group are kept"
            yield {**self.named(), "member_id": number, "status": GIVEN_UP, "error": why}

    def _knows(self, number: str, said: Said) -> _Member:
        one = self.members.get(number)
        if one is None:
            one = self.members[number] = _Member()
            self.size += one.size
        one.instance = said["instance"] or one.instance
        one.process = said["process"] or one.process
        one.endpoint = said["endpoint"] or one.endpoint
        if said["topology"] is not None:
            self.topology = said["topology"]
        return one

    def _without(self, number: str) -> None:
        self.size -= self.members.pop(number).size

    def _answered(self, step: Step, request: Step) -> Iterator[Row]:
        said, wants = step.said, request.said
        number = said["member"] or wants["member"]
        if said["code"]:
            if said["code"] in _GONE and wants["member"] in self.members:
                yield from self._ends(wants["member"], "fenced", said["epoch"])
                self._without(wants["member"])
            return
        if wants["epoch"] < 0:
            if number in self.members:
                yield from self._ends(number, "left", said["epoch"])
                self._without(number)
            return
        one = self._knows(number, wants)
        if wants["epoch"] == 0:
            yield from self._ends(number, "rejoined", said["epoch"])
        now = dict.fromkeys(one.tasks)
        for role, some in said["tasks"]:
            if some is not None:
                now = {task: None for task in now if task[0] != role}
                now |= {(role, name, part): None for name, parts in some for part in parts}
        gone = [task for task in one.tasks if task not in now]
        yield from self._ends(number, "revoked", said["epoch"], gone)
        for task in now:
            if task not in one.tasks:
                one.tasks[task] = _Since(self.now, said["epoch"], step.capture, step.connection, step.frame)
                self.size += 1

    def _ends(self, number: str, how: str, epoch: int, tasks: Iterable[Task] | None = None) -> Iterator[Row]:
        one = self.members[number]
        for task in list(one.tasks) if tasks is None else tasks:
            since = one.tasks.pop(task)
            self.size -= 1
            yield self._row(number, one, task, since) | {
                "ended": how,
                "end_epoch": epoch if epoch >= 0 else None,
                "duration_ms": None if since.time is None or self.now is None else max(0, self.now - since.time) / MS,
            }

    def _row(self, number: str, one: _Member, task: Task, since: _Since) -> Row:
        role, subtopology, partition = task
        return {
            "group_id": self.owner,
            "member_id": number,
            "group_instance_id": one.instance,
            "process_id": one.process,
            "endpoint": one.endpoint,
            "role": role,
            "subtopology": shown(subtopology),
            "partition": partition,
            "topology_epoch": self.topology,
            "epoch": since.epoch,
            "assigned_at": since.time,
            "assigned_capture": since.capture,
            "assigned_connection": since.connection,
            "assigned_frame": since.frame,
        }

    def over(self) -> Iterable[Row]:
        for number, one in self.members.items():
            for task, since in one.tasks.items():
                yield self._row(number, one, task, since) | {"ended": "open"}

    def named(self) -> Row:
        return {"group_id": self.owner}

    def save(self) -> Any:
        return {
            "members": [
                [
                    number,
                    [one.instance, one.process, one.endpoint],
                    [
                        [*task, since.time, since.epoch, since.capture, since.connection, since.frame]
                        for task, since in one.tasks.items()
                    ],
                ]
                for number, one in self.members.items()
            ],
            "topology": self.topology,
            "now": self.now,
        }

    def restore(self, state: Any) -> None:
        for number, texts, tasks in state["members"]:
            instance, process, endpoint = (None if one is None else stored.text(one) for one in texts)
            one = self.members[stored.text(number)] = _Member(instance, process, endpoint)
            for role, name, part, time, epoch, capture, connection, frame in tasks:
                if role not in ROLES:
                    raise ValueError("no role")
                one.tasks[role, stored.text(name), stored.number(part, -(1 << 31))] = _Since(
                    stored.optional(time, -(1 << 63), (1 << 63) - 1),
                    stored.number(epoch, -(1 << 31)),
                    stored.text(capture),
                    stored.number(connection, 0),
                    stored.number(frame, 0),
                )
        self.topology = stored.optional(state["topology"], -(1 << 31))
        self.now = stored.optional(state["now"], -(1 << 63), (1 << 63) - 1)
        self.size: int = sum(one.size for one in self.members.values())


TASKS: Final = History(name="streams_tasks", reads=_READS, fold=Tasks, at_end=True)
"""The history of the tasks of streams groups (``History``)."""
