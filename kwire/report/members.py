"""Members of groups over time, for a report: from when to when each was there, and when the group rebalanced.

Rules kept here:

- At most ``MOST_GROUPS`` groups, ``MOST_MEMBERS`` members of each and ``MOST_SPANS`` spans of each member are kept.
- A span that the capture does not end reaches to the last event of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Rows

__all__ = ["MOST_GROUPS", "MOST_MEMBERS", "MOST_SPANS", "TABLES", "Course", "Members"]

MOST_GROUPS: Final = 64
"""Groups that are kept (int)."""
MOST_MEMBERS: Final = 64
"""Members of each (int)."""
MOST_SPANS: Final = 64
"""Spans of each member, and rebalances of a group (int)."""

TABLES: Final[dict[str, Sequence[str]]] = {
    "group_events": (
        "timestamp", "group_id", "event", "member_id", "group_instance_id", "client_id", "partitions", "status",
    )
}  # fmt: skip
"""The table that is read, with its columns."""

_BEGINS: Final = ("joined", "rejoined", "synced", "assigned")
_ENDS: Final = ("left", "fenced")


@dataclass(slots=True)
class Course:
    """A member, or the rebalances of a group. Times are microseconds since 1970."""

    name: str
    client_id: str | None = None
    spans: list[list[int]] = field(default_factory=list)
    open: bool = False
    partitions: int | None = None
    """How many it had at last, while it was there."""
    more: int = 0
    """Spans that were not kept."""

    def begin(self, time: int) -> None:
        """A span begins, unless one has begun."""
        if not self.open:
            self.open = True
            if len(self.spans) < MOST_SPANS:
                self.spans.append([time, time])
            else:
                self.more += 1

    def end(self, time: int) -> None:
        """The span that is open ends."""
        if self.open and not self.more:
            self.spans[-1][1] = time
        self.open = False


@dataclass(slots=True)
class _Group:
    rebalances: Course = field(default_factory=lambda: Course("rebalances"))
    members: dict[str, Course] = field(default_factory=dict)
    first: int | None = None
    last: int = 0
    more: int = 0


class Members:
    """Takes rows of ``group_events``."""

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}

    def add(self, rows: Rows) -> None:
        """Take rows of the table."""
        known = rows.where(status="ok")
        times = rows.times[known].tolist()
        columns = ("group_id", "event", "member_id", "group_instance_id", "client_id", "partitions")
        for time, (group, event, member, instance, client, count) in zip(
            times, tuples(rows.part(columns, known)), strict=True
        ):
            if group is None or time == UNDATED:
                continue
            if group not in self.groups and len(self.groups) >= MOST_GROUPS:
                continue
            one = self.groups.setdefault(group, _Group())
            one.first = time if one.first is None else min(one.first, time)
            one.last = max(one.last, time)
            if event == "rebalance_began":
                one.rebalances.begin(time)
            elif event == "rebalance_ended":
                one.rebalances.end(time)
            elif member is not None:
                self._member(one, instance or member, client, event, time, count)

    @staticmethod
    def _member(one: _Group, name: str, client: str | None, event: str, time: int, count: int | None) -> None:
        mine = one.members.get(name)
        if mine is None:
            if len(one.members) >= MOST_MEMBERS:
                one.more += 1
                return
            mine = one.members[name] = Course(name, client)
        if event in _ENDS:
            mine.end(time)
        elif event in _BEGINS:
            mine.begin(time)
        if count is not None and event not in _ENDS:
            # Whoever has left has none. What it had until then is what somebody looks for.
            mine.partitions = count

    def courses(self, group: str) -> list[Course]:
        """The rebalances of a group, and its members in the order in which they came."""
        one = self.groups[group]
        found = [one.rebalances, *one.members.values()]
        for each in found:
            if each.open and each.spans and not each.more:
                each.spans[-1][1] = one.last
        return found
