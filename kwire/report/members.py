"""Members of groups over time, for a report: when each was there and what it had, and why the group rebalanced.

Rules kept here:

- At most ``MOST_GROUPS`` groups, ``MOST_MEMBERS`` members of each and ``MOST_SPANS`` spans of each member are kept. The
  partitions of ``MOST_PARTITIONS`` are known by their names, of others their number.
- A span that the capture does not end reaches to the last event of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Rows
from kwire.tables.group_events import ranges

__all__ = ["MOST_GROUPS", "MOST_MEMBERS", "MOST_PARTITIONS", "MOST_SPANS", "TABLES", "Course", "Members", "Rebalance"]

MOST_GROUPS: Final = 64
"""Groups that are kept (int)."""
MOST_MEMBERS: Final = 64
"""Members of each (int)."""
MOST_SPANS: Final = 64
"""Spans of each member, and rebalances of a group (int)."""
MOST_PARTITIONS: Final = 1 << 15
"""Partitions that members have, of all groups (int)."""

_COLUMNS: Final = (
    "group_id", "event", "member_id", "group_instance_id", "client_id", "client_host", "partitions", "gained", "lost",
    "duration_ms", "cause", "cause_member_id", "cause_capture", "cause_frame",
)  # fmt: skip
TABLES: Final[dict[str, Sequence[str]]] = {"group_events": ("timestamp", "status", *_COLUMNS)}
"""The table that is read, with its columns."""

_MOST_TOPICS: Final = 8
"""Topics of a span whose partitions are said,"""
_MOST_TEXT: Final = 60
"""and characters of their numbers."""
_BEGINS: Final = ("joined", "rejoined", "synced", "assigned")
_ENDS: Final = ("left", "fenced")


@dataclass(slots=True)
class Span:
    """From when to when a member had the same partitions. Times are microseconds since 1970."""

    begin: int
    end: int
    count: int
    has: Mapping[str, str]
    """Partitions as a text, by topic: of the first ones."""
    topics: int
    """Of how many topics they are."""


@dataclass(slots=True)
class Course:
    """A member, or the rebalances of a group. Times are microseconds since 1970."""

    name: str
    client_id: str | None = None
    host: str | None = None
    spans: list[list[int]] = field(default_factory=list)
    open: bool = False
    partitions: int | None = None
    """How many it had at last, while it was there."""
    held: list[Span] = field(default_factory=list)
    has: dict[str, set[int]] = field(default_factory=dict)
    """What it has now, by topic."""
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

    def hold(self, time: int, count: int) -> None:
        """From now on it has ``count`` partitions, of which ``has`` says some."""
        if len(self.held) > MOST_SPANS:
            return
        if self.held and self.held[-1].count:
            self.held[-1].end = time
        # The last one that is kept ends too.
        count = count if len(self.held) < MOST_SPANS else 0
        some = ((topic, ranges(parts)) for topic, parts in islice(self.has.items(), _MOST_TOPICS))
        has = {topic: text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…" for topic, text in some}
        self.held.append(Span(time, time, count, has, len(self.has)))


@dataclass(slots=True)
class Rebalance:
    """A rebalance of a group: when it began, its cause, the member of that and its frame, and how long it took."""

    time: int
    cause: str
    member: str | None
    frame: int | None
    capture: str | None
    took_ms: float | None = None


@dataclass(slots=True)
class _Group:
    rebalances: Course = field(default_factory=lambda: Course("rebalances"))
    whys: list[Rebalance] = field(default_factory=list)
    """One for each span of ``rebalances``."""
    members: dict[str, Course] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    """Names of members by their ids."""
    first: int | None = None
    last: int = 0
    more: int = 0
    """Events of members that were not kept."""


class Members:
    """Takes rows of ``group_events``."""

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}
        self._named = 0
        """Partitions that members have and whose names are kept."""
        self._topics: dict[str, str] = {}
        """Names by ids. A capture may show a name after the first assignment."""

    def add(self, rows: Rows) -> None:
        """Take rows of the table."""
        known = rows.where(status="ok")
        times = rows.times[known].tolist()
        for time, values in zip(times, tuples(rows.part(_COLUMNS, known)), strict=True):
            row = dict(zip(_COLUMNS, values, strict=True))
            group, event = row["group_id"], row["event"]
            if group is None or time == UNDATED:
                continue
            if group not in self.groups and len(self.groups) >= MOST_GROUPS:
                continue
            one = self.groups.setdefault(group, _Group())
            one.first = time if one.first is None else min(one.first, time)
            one.last = max(one.last, time)
            if event == "rebalance_began":
                before = len(one.rebalances.spans)
                one.rebalances.begin(time)
                if len(one.rebalances.spans) > before:
                    why = row["cause"] or "not_in_capture"
                    where = row["cause_frame"], row["cause_capture"]
                    one.whys.append(Rebalance(time, why, row["cause_member_id"], *where))
            elif event == "rebalance_ended":
                if one.rebalances.open and not one.rebalances.more:
                    one.whys[-1].took_ms = row["duration_ms"]
                one.rebalances.end(time)
            elif row["member_id"] is not None:
                self._member(one, row, time)

    def _member(self, one: _Group, row: Mapping[str, Any], time: int) -> None:
        name, event, count = row["group_instance_id"] or row["member_id"], row["event"], row["partitions"]
        mine = one.members.get(name)
        if mine is None:
            if len(one.members) >= MOST_MEMBERS:
                one.more += 1
                return
            mine = one.members[name] = Course(name)
        if len(one.ids) < MOST_MEMBERS * MOST_SPANS:
            one.ids[row["member_id"]] = name
        if event not in _ENDS and mine.client_id is None:
            # Another client may remove a member.
            mine.client_id, mine.host = row["client_id"], row["client_host"]
        moved = list(self._moved(row))
        for topic, part, gained in moved:
            some = mine.has.get(topic, set())
            if gained and part not in some and self._named < MOST_PARTITIONS:
                mine.has.setdefault(topic, some).add(part)
                self._named += 1
            elif not gained and part in some:
                some.remove(part)
                self._named -= 1
                if not some:
                    del mine.has[topic]
        if event in _ENDS:
            mine.end(time)
            mine.hold(time, 0)
            count = None
        elif event in _BEGINS:
            mine.begin(time)
        if count is not None:
            if moved or count != mine.partitions:
                mine.hold(time, count)
            # Whoever has left has none. What it had until then is what somebody looks for.
            mine.partitions = count

    def _moved(self, row: Mapping[str, Any]) -> Iterator[tuple[str, int, bool]]:
        for gained, name in ((True, "gained"), (False, "lost")):
            for one in row[name] or ():
                topic, id_ = one["topic"], one["topic_id"]
                if topic is not None and id_ is not None and len(self._topics) < MOST_PARTITIONS:
                    self._topics[id_] = topic
                yield id_ or topic or one["subtopology"], one["partition"], gained

    def text(self, span: Span) -> str:
        """What a member had: ``orders[0-2]``."""
        said = " ".join(f"{self._topics.get(topic, topic)}[{parts}]" for topic, parts in span.has.items())
        return said + (" …" if span.topics > len(span.has) else "")

    def courses(self, group: str) -> list[Course]:
        """The rebalances of a group, and its members in the order in which they came."""
        one = self.groups[group]
        found = [one.rebalances, *one.members.values()]
        for each in found:
            if each.open and each.spans and not each.more:
                each.spans[-1][1] = one.last
            if each.held and each.held[-1].count:
                each.held[-1].end = one.last
        return found

    def who(self, group: str, member: str | None) -> str | None:
        """A member by its client and host."""
        one = self.groups[group]
        course = one.members.get(one.ids.get(member or "", ""))
        if course is None:
            return member
        return called(course.client_id or course.name, course.host)

    def rebalances(self) -> Iterator[tuple[str, Rebalance]]:
        """The rebalances of each group."""
        return ((group, each) for group, one in self.groups.items() for each in one.whys)


def called(name: str, host: str | None) -> str:
    """``app on 10.0.0.1``."""
    return name if host is None else f"{name} on {host}"
