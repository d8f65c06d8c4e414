"""Rules about offsets that groups commit: too many commits, those that go back, how far they lag the log's end."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.naming import counted
from kwire.report.findings.committed import PLACE, Committed, InOrder, Place
from kwire.report.findings.rule import BROKER, CLIENT, PROCESS, Finding, Rule, Together, busiest, keyed, together
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally, firsts

__all__ = ["Commits", "Lag", "Limits", "Offsets", "OffsetsBack"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    commits: int = 300
    """OffsetCommit requests of one group and process in a minute, most of them without need."""
    commit_records: int = 10
    """A commit of this many records of a partition, or more, is of a batch."""
    offsets_back: int = 1
    """Commits of an offset that is lower than the one committed before."""
    lag: int = 10_000
    """Records between what a group has committed last and the end of the log, of all partitions of a topic."""
    growing_lag: int = 1000
    """By how many records that grew and did not fall, although the group goes on committing,"""
    growing_seconds: float = 30.0
    """for so long."""


class Offsets(Rule[Limits]):
    """What groups commit."""

    tables: tuple[str, ...] = ("partitions",)
    also: tuple[str, ...] = ("calls",)
    together: Together = "topic"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.commits: Committed = Committed()

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            self.commits.of_calls(rows)
        else:
            self.take_partitions(rows)

    def take_partitions(self, rows: Rows) -> None:
        """Take rows of ``partitions``."""
        raise NotImplementedError

    def before(self, found: InOrder) -> tuple[Array, Array]:
        """For each commit: whether there was one of its place before it, and the offset of that."""
        if not len(found.at):
            return found.at.astype(bool), found.offsets
        offsets = np.append(found.offsets[:1], found.offsets[:-1])
        known = np.ones(len(offsets), bool)
        known[found.first], offsets[found.first] = self.commits.before(found.places)
        return known, offsets


class Commits(Offsets):
    """A client commits offsets all the time, without need.

    A commit after each poll is what clients are made for, however little a poll brings. So it has a need if a Fetch
    response brought records since the last one, or if it is of a batch of records. Where the Fetch responses of a
    partition are not captured, nobody knows.
    """

    name = "over-committing"
    finds = (
        "a process that commits all the time, mostly without need: the same offsets again, or several times a few of "
        "the records that came together"
    )
    thresholds: Mapping[str, str] = {"commits": "{} in a minute", "commit_records": "fewer than {} records"}
    place = 110
    tables: tuple[str, ...] = ("calls", "partitions")
    also: tuple[str, ...] = ("connections",)
    together: Together = "client"
    keys: tuple[str, ...] = (*CLIENT, "group_id", *PROCESS)
    by_process = True
    severity = "low"
    advice = "commit by time or by batch (auto.commit.interval.ms), not for every record"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._same = Tallies(*CLIENT, "group_id")
        """Commits of what was committed."""
        self._few = Tallies(*CLIENT, "group_id", "topic", "partition")
        """Commits of a few records."""
        self._got = Tallies(*CLIENT, "topic", "partition")
        """Fetch responses with records."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            return
        super().take(name, rows)
        if name == "calls":
            self.tallies.add(rows, rows.where(api_name="OffsetCommit", direction="request", status="ok"))

    def take_partitions(self, rows: Rows) -> None:
        got = rows.where(api_name="Fetch", direction="response")
        self._got.add(rows, got[rows.values("record_bytes")[got] > 0])
        found = self.commits.of(rows)
        known, before = self.before(found)
        more, least = found.offsets - before, self.limits.commit_records
        few = known & (more > 0) & (before > found.offsets - least)
        self._few.add(found.rows, np.sort(found.at[few]))
        if len(found.at):
            frames = found.rows.numbers(("capture", "frame"), found.at)
            moved = np.bincount(frames, weights=~known | (more != 0)) > 0
            self._same.add(found.rows, np.sort(found.at[firsts(frames)[~moved]]))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.commits
        needless = Counter({key: one.count for key, one in self._same.items()})
        got = {key: one.count for key, one in self._got.items()}
        for (*who, group, topic, partition), one in self._few.items():
            brought = got.get((*who, topic, partition))
            if brought is not None:
                needless[*who, group] += max(0, one.count - brought)
        total = Counter[tuple[Any, ...]]()
        for key, one in self.tallies.items():
            total[key[: -len(PROCESS)]] += one.count
        for key, found in busiest(self.tallies, together(self.tallies)[1] >= limit):
            (host, client, group), one = key, found.tally
            if one.busiest >= limit and 2 * needless[key] > total[key]:
                said = f"{one.count} commits, {one.busiest} in a minute; {needless[key]} of {total[key]} without need"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group, **found.who)


class OffsetsBack(Offsets):
    """A group commits an offset that is lower than the one before."""

    name = "offsets-back"
    finds = "commits of an offset that is lower than the one before"
    thresholds: Mapping[str, str] = {"offsets_back": "{}"}
    place = 120
    keys: tuple[str, ...] = (*PLACE, *CLIENT)
    advice = "see who commits: two members may believe that they own the partition, or a program goes back by itself"
    _MOST = 1 << 14
    """Groups and frames that are remembered."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._members: dict[str, None] = {}
        """Groups in which members commit."""
        self._outside: dict[tuple[str, int], str] = {}
        """By capture and frame: commits of nobody, and of which group.

        If that has members, brokers take them only while none is there, from a tool that sets it back.
        """

    def take(self, name: str, rows: Rows) -> None:
        super().take(name, rows)
        if name != "calls":
            return
        sent = rows.where(api_name="OffsetCommit", direction="request", status="ok")
        sent = sent[rows.valid("group_id")[sent]]
        outside = rows.values("generation", -1)[sent] < 0
        members = sent[~outside]
        members = members[firsts(rows.numbers(("group_id",), members))] if len(members) else members
        self._members |= dict.fromkeys(group for (group,) in tuples(rows.part(("group_id",), members)))
        for *place, group in tuples(rows.part(("capture", "frame", "group_id"), sent[outside])):
            self._outside[tuple(place)] = group
        while len(self._members) > self._MOST:
            del self._members[next(iter(self._members))]
        while len(self._outside) > self._MOST:
            del self._outside[next(iter(self._outside))]

    def take_partitions(self, rows: Rows) -> None:
        self._judge(self.commits.of(rows), self.tallies)

    def _judge(self, found: InOrder, tallies: Tallies) -> None:
        offsets = found.offsets
        known, before = self.before(found)
        back = np.flatnonzero(known & (offsets < before))
        back = back[np.argsort(found.at[back])]
        frames = tuples(found.rows.part(("capture", "frame"), found.at[back]))
        back = back[np.array([self._outside.get(one) not in self._members for one in frames], bool)]
        # In floating point: offsets of 64 bits may be farther apart than these hold.
        by = before[back].astype(np.float64) - offsets[back]
        tallies.add(found.rows, found.at[back], amount=by, each=True)

    def findings(self) -> Iterator[Finding]:
        # Waiting rows are judged as they stand, and once more when more was read.
        more = Tallies(*self.keys)
        rest = self.commits.rest()
        if rest is not None:
            self._judge(rest, more)
        late = dict(more.items())
        for key, one in self.tallies.items():
            one.join(late.pop(key, Tally()))
            yield from self._said(key, one)
        for key, one in late.items():
            yield from self._said(key, one)

    def _said(self, key: tuple[Any, ...], one: Tally) -> Iterator[Finding]:
        group, topic, partition, host, client = key[len(BROKER) :]
        if one.count >= self.limits.offsets_back:
            records = counted(int(one.amount), "record")
            said = f"{counted(one.count, 'commit')} of a lower offset than before, by {records} together"
            yield self.found(
                said, one, client_host=host, client_id=client, group_id=group, topic=topic, partition=partition
            )


_Log = tuple[str | None, int | None]
_OfCluster = tuple[Hashable, str | None, int | None]
"""Topic and partition, of a cluster."""

_STEP: Final = 10_000_000
_MOST_STEPS: Final = 60
_FALLS: Final = 0.1
"""Of what lag grows by: less than this is no fall.

Commits come now and then, so what is known jumps a bit.
"""
_ALIVE: Final = 0.3
"""In this last part of the time a group must have committed: else nobody works, perhaps on purpose."""
_LATER: Final = 0.25
"""In the second half lag must have grown by this part of the total.

Otherwise some records came at once, and the growth is over.
"""


class _Course:
    """How a number grew: the largest in each step of time, wider steps the longer it is."""

    __slots__ = ("of", "width")

    def __init__(self) -> None:
        self.width = 1
        self.of: dict[int, int] = {}

    @property
    def kept(self) -> int:
        """How many values it has in memory."""
        return len(self.of)

    def add(self, step: int, value: int) -> None:
        """Take a value in a step of ten seconds."""
        at = step // self.width
        self.of[at] = max(value, self.of.get(at, value))
        while len(self.of) > _MOST_STEPS:
            self.width *= 2
            made: dict[int, int] = {}
            for at, value in self.of.items():
                made[at // 2] = max(value, made.get(at // 2, value))
            self.of = made

    def values(self, steps: Sequence[int]) -> list[int | None]:
        """What it was at the end of each of some steps of ten seconds, which ascend. None: not known yet."""
        order = sorted(self.of)
        made: list[int | None] = []
        at, value = 0, None
        for step in steps:
            while at < len(order) and (order[at] + 1) * self.width - 1 <= step:
                value = self.of[order[at]]
                at += 1
            made.append(value)
        return made


@dataclass(slots=True)
class _Lag:
    """A group and what it has committed last of a topic."""

    rows: dict[int | None, tuple[dict[str, Any], int]]
    """By partition: the commit, and its lag."""
    grew: int = 0
    seconds: float = 0.0

    @property
    def lag(self) -> int:
        """The lag in all partitions."""
        return sum(lag for _, lag in self.rows.values())


class Lag(Offsets):
    """How far a group's last commits lag the end of its topics, and whether that only grows."""

    name = "lag"
    finds = (
        "how far what a group has committed last is behind the end of the log, of all partitions of a topic; "
        "or lag that only grows, although the group goes on committing"
    )
    thresholds: Mapping[str, str] = {"lag": "{} records", "growing_lag": "{} records", "growing_seconds": "{}"}
    place = 290
    advice = "add members (up to the number of partitions), or see what makes the consumer slow"
    _MOST_ASKED = 1_000
    """Produce requests of a connection and partition that wait for their responses."""
    _MOST_WAITING = 1 << 14
    """Connections and partitions with such."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._newest: dict[tuple[Any, ...], int] = {}
        """By broker, topic and partition: the largest offset that was reported."""
        self._ends: dict[tuple[Any, ...], _Course] = {}
        self._offsets: dict[Place, _Course] = {}
        self._waiting: dict[tuple[Any, ...], array[int]] = {}
        """By capture, connection, broker, topic and partition: the newest batch that was written.

        It has its offset, its records, and the records of requests without a response: one object, there may be many.
        """

    def take_partitions(self, rows: Rows) -> None:
        found = self.commits.of(rows)
        self._grow(self._offsets, found.rows, PLACE, found.at, found.offsets)
        told = rows.where(api_name="Fetch", direction="response", status="ok")
        self._seen_end(rows, told, "high_watermark")
        # No offset that a broker gives here is beyond the high watermark.
        self._seen_end(rows, rows.where(api_name="ListOffsets", direction="response", status="ok"), "offset")
        self._written(rows)

    @staticmethod
    def _grow(courses: dict[Any, _Course], rows: Rows, keys: Sequence[str], at: Array, values: Array) -> dict[Any, int]:
        """Add values of the rows ``at`` to courses. Returns the largest of each of ``keys``."""
        largest: dict[Any, int] = {}
        if not len(at):
            return largest
        made = (
            rows.part(keys, at)
            .append_column("step", pa.array(rows.times[at] // _STEP))
            .append_column("most", pa.array(values))
        )
        made = made.group_by([*keys, "step"], use_threads=False).aggregate([("most", "max")])
        for *key, step, most in tuples(made.select([*keys, "step", "most_max"])):
            if step != UNDATED // _STEP:
                course = courses.get(tuple(key))
                if course is None:
                    course = courses[tuple(key)] = _Course()
                course.add(step, most)
            largest[tuple(key)] = max(most, largest.get(tuple(key), most))
        return largest

    def _seen_end(self, rows: Rows, told: Array, column: str) -> None:
        told = told[rows.values(column, -1)[told] >= 0]
        largest = self._grow(self._ends, rows, _LOG, told, rows.values(column)[told])
        for log, most in largest.items():
            self._newest[log] = max(most, self._newest.get(log, 0))

    def _written(self, rows: Rows) -> None:
        """Produce: the response says where the batch begins, and the request how many records it has. Responses come
        in the order of requests."""
        made = rows.where(api_name="Produce", status="ok")
        if not len(made):
            return
        logs, keys = keyed(rows, ("capture", "connection", *_LOG), made)
        asked = rows.mask("direction", "request")[made]
        known = made[~asked & (rows.values("offset", -1)[made] >= 0)]
        self._grow(self._ends, rows, _LOG, known, rows.values("offset")[known])
        offsets = rows.values("offset", -1)[made]
        records = rows.values("records", 1)[made]
        order = np.argsort(logs, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(logs[order]) != 0) + 1, len(order))
        last = 0
        for end in ends:
            mine, last = order[last:end], end
            key = keys[int(logs[mine[0]])]
            begin, count, *queue = self._waiting.pop(key, (-1, 0))
            queue.extend(records[mine[asked[mine]]].tolist())
            told = offsets[mine[~asked[mine]]]
            if len(told):
                latest = int(np.argmax(told))
                if told[latest] > begin:
                    begin, count = int(told[latest]), queue[latest] if latest < len(queue) else 1
                del queue[: len(told)]
            if queue or begin < 0:
                del queue[: -self._MOST_ASKED]
                self._waiting[key] = array("q", (begin, count, *queue))
                if len(self._waiting) > self._MOST_WAITING:
                    self._settle(next(iter(self._waiting)))
            else:
                self._reach(key[2:], begin + count)

    def _reach(self, log: tuple[Any, ...], end: int) -> None:
        self._newest[log] = max(end, self._newest.get(log, 0))

    def _settle(self, key: tuple[Any, ...]) -> None:
        """What is known to be written, although some requests had no response.

        The last response may not belong to the last of them, so the smallest of them counts.
        """
        begin, count, *queue = self._waiting.pop(key)
        if begin >= 0:
            self._reach(key[2:], begin + min(count, *queue))

    def _newest_of(self) -> dict[_OfCluster, int]:
        """The end of each log, as far as it is known: the newest high watermark, what was written."""
        ends = list(self._newest.items())
        for key, (begin, count, *queue) in self._waiting.items():
            if begin >= 0:
                ends.append((key[2:], begin + min(count, *queue)))
        made: dict[_OfCluster, int] = {}
        for (host, port, topic, partition), end in ends:
            place = self.commits.clusters.of((host, port)), topic, partition
            made[place] = max(end, made.get(place, 0))
        return made

    @property
    def newest(self) -> dict[_Log, int]:
        """The end of each topic and partition, as far as it is known; of several clusters the largest."""
        made: dict[_Log, int] = {}
        for (_, topic, partition), end in self._newest_of().items():
            made[topic, partition] = max(end, made.get((topic, partition), 0))
        return made

    def _groups(self) -> dict[tuple[Any, ...], _Lag]:
        """By cluster, group and topic: the lag, where it is known."""
        ends = self._newest_of()
        last: dict[tuple[Any, ...], dict[str, Any]] = {}
        for (host, port, group, topic, partition), row in self.commits.last():
            # Its coordinator may have moved.
            key = self.commits.clusters.of((host, port)), group, topic, partition
            if key not in last or row["time"] >= last[key]["time"]:
                last[key] = row
        made: dict[tuple[Any, ...], _Lag] = {}
        for (cluster, group, topic, partition), row in last.items():
            end = ends.get((cluster, topic, partition))
            if end is not None and row["offset"] >= 0:
                one = made.setdefault((cluster, group, topic), _Lag({}))
                one.rows[partition] = row, max(0, end - row["offset"])
        return made

    def lags(self) -> Iterator[tuple[str, str | None, int | None, int]]:
        """Group, topic, partition and its lag in records."""
        for (_, group, topic), one in self._groups().items():
            if group is not None:
                for partition, (_, lag) in one.rows.items():
                    yield group, topic, partition, lag

    def _growth(self, groups: Mapping[tuple[Any, ...], _Lag]) -> None:
        """Find out by how much lag grew, where it only grew."""
        ends: dict[_OfCluster, list[_Course]] = {}
        for (host, port, topic, partition), course in self._ends.items():
            ends.setdefault((self.commits.clusters.of((host, port)), topic, partition), []).append(course)
        places: dict[tuple[Any, ...], dict[int | None, list[_Course]]] = {}
        for (host, port, group, topic, partition), course in self._offsets.items():
            key = self.commits.clusters.of((host, port)), group, topic
            if key in groups and groups[key].lag >= self.limits.growing_lag:
                places.setdefault(key, {}).setdefault(partition, []).append(course)
        for key, partitions in places.items():
            one = groups[key]
            known = [
                (courses, ends[key[0], key[2], partition])
                for partition, courses in partitions.items()
                if (key[0], key[2], partition) in ends
            ]
            one.grew, one.seconds = _grown(known)

    def findings(self) -> Iterator[Finding]:
        groups = self._groups()
        self._growth(groups)
        for (_, group, topic), one in groups.items():
            grows = one.grew >= self.limits.growing_lag and one.seconds >= self.limits.growing_seconds
            if one.lag < self.limits.lag and not grows:
                continue
            lagging = {partition: (row, lag) for partition, (row, lag) in one.rows.items() if lag}
            tally = Tally(where=())
            who: set[tuple[str, str]] = set()
            for row, _ in lagging.values():
                where = (row["capture"], row["connection"], row["frame"])
                tally.join(Tally(1, 0, row["time"], row["time"], (where,)))
                who.add((row["client_host"], row["client_id"]))
            if len(lagging) == 1:
                ((partition, (row, lag)),) = lagging.items()
                said = (
                    f"{counted(lag, 'record')} behind: {row['offset']} committed, the log ends at {row['offset'] + lag}"
                )
            else:
                partition, most = None, max(lag for _, lag in lagging.values())
                said = f"{counted(one.lag, 'record')} behind in {len(lagging)} partitions, {most} at most in one"
            if grows:
                said += f"; that grew by {one.grew} in {one.seconds:.0f} s, although the group works"
            host, client = who.pop() if len(who) == 1 else (None, None)
            yield self.found(
                said, tally, count=one.lag, client_host=host, client_id=client, group_id=group, topic=topic,
                partition=partition,
            )  # fmt: skip


_LOG: Final = (*BROKER, "topic", "partition")


def _grown(partitions: Sequence[tuple[Sequence[_Course], Sequence[_Course]]]) -> tuple[int, float]:
    """By how much lag grew, and in how many seconds; 0 if it did not only grow.

    ``partitions``: the courses of commits and of the log's end. If one has several, the largest counts.
    """
    courses = [course for pair in partitions for part in pair for course in part]
    if not courses:
        return 0, 0.0
    width = max(course.width for course in courses)
    # The last step of ten seconds of each wider one. Few have something in them, though they may be far apart.
    steps = sorted({at * course.width // width for course in courses for at in course.of})
    ends = [(step + 1) * width - 1 for step in steps]
    growth: list[int | None] = [None] * len(steps)
    committed = 0
    for commits, logs in partitions:
        offsets, newest = (_largest([course.values(ends) for course in part]) for part in (commits, logs))
        lags = [None if a is None or b is None else max(0, b - a) for a, b in zip(offsets, newest, strict=True)]
        # What one partition adds as soon as it is known is no growth.
        for k, (before, lag) in enumerate(pairwise(lags), 1):
            if before is not None and lag is not None:
                growth[k] = (growth[k] or 0) + lag - before
        committed = max(committed, *((max(course.of) + 1) * course.width - 1 for course in commits))
    known = [(end, one) for end, one in zip(ends, growth, strict=True) if one is not None]
    if not known:
        return 0, 0.0
    begin, end = ends[growth.index(known[0][1]) - 1], ends[-1]
    total, falls = sum(one for _, one in known), -sum(one for _, one in known if one < 0)
    later = sum(one for at, one in known if 2 * at > begin + end)
    alive = committed >= end - max(width, _ALIVE * (end - begin))
    if total <= 0 or falls > _FALLS * total or later < _LATER * total or not alive:
        return 0, 0.0
    return total, (end - begin) * _STEP / 1e6


def _largest(courses: Sequence[Sequence[int | None]]) -> list[int | None]:
    return [max((one for one in each if one is not None), default=None) for each in zip(*courses, strict=True)]
