"""What the broker of ``kwire.testing`` knows of the tasks of a streams group: the truth for ``streams_tasks``.

with observed() as truth:
    ...                                  # clients talk to the broker
truth.over()
assert in_capture(data) == truth.ended
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from kwire import capture
from kwire.testing.broker.streams import ROLES, Streams, StreamsMember, Tasks

Span = tuple[str, str, str, int, int]


class Truth:
    """The spans that the broker gave: member, role, subtopology, partition, and the epoch in which they began."""

    def __init__(self) -> None:
        self.has: dict[str, dict[tuple[str, str, int], Span]] = {}
        self.ended: Counter[tuple[Span, str]] = Counter()

    def told(self, member: StreamsMember, joined: bool, tasks: Tasks | None) -> None:
        """The broker answers a heartbeat."""
        if joined:
            self.ends(member.id, "rejoined")
        has = self.has.setdefault(member.id, {})
        if tasks is None:
            return
        now = [(role, *task) for role in ROLES for task in tasks[role]]
        for task in [one for one in has if one not in now]:
            self.ended[has.pop(task), "revoked"] += 1
        for task in now:
            has.setdefault(task, (member.id, *task, member.epoch))

    def ends(self, member: str, how: str) -> None:
        """A member is none any more."""
        for span in self.has.pop(member, {}).values():
            self.ended[span, how] += 1

    def over(self) -> None:
        """The capture ends."""
        for name in list(self.has):
            self.ends(name, "open")


@contextmanager
def observed() -> Iterator[Truth]:
    """Lets all streams groups say what they tell their members, and who leaves."""
    truth, told, leave = Truth(), Streams.told, Streams.leave

    def on_told(self: Streams, member: StreamsMember, everything: bool) -> Tasks | None:
        made = told(self, member, everything)
        truth.told(member, everything, made)
        return made

    def on_leave(self: Streams, member_id: str, for_a_while: bool) -> int:
        code = leave(self, member_id, for_a_while)
        if not code:
            truth.ends(member_id, "left")
        return code

    with mock.patch.object(Streams, "told", on_told), mock.patch.object(Streams, "leave", on_leave):
        yield truth


def in_capture(data: bytes) -> Counter[tuple[Span, str]]:
    """The same of the rows of ``streams_tasks``."""
    found: Counter[tuple[Span, str]] = Counter()
    for batch in capture.read(io.BytesIO(data), "streams_tasks"):
        for row in batch.to_pylist():
            assert row["status"] == "ok"
            span = row["member_id"], row["role"], row["subtopology"], row["partition"], row["epoch"]
            found[span, row["ended"]] += 1
    return found
