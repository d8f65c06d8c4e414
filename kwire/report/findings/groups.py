"""Rules about members of groups: rebalances, heartbeats, and members that do not work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.history.reconciling import SESSION
from kwire.naming import counted
from kwire.report.findings.rule import CLIENT, FRAME, Finding, Rule, Together, keyed
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally

__all__ = ["LateHeartbeats", "LatePolls", "Limits", "NoProgress", "Rebalances", "Stopped"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    rebalances: int = 10
    """Generations of one group in a minute."""
    heartbeat_gap: float = 1.0
    """Time between two heartbeats of a member, as a part of its session timeout."""
    late_polls: int = 1
    """How often a client left a group and joined it again on the same connection."""
    stopped_seconds: float = 60.0
    """How long before its last heartbeat a member of a group stopped to fetch."""
    restarts: int = 5
    """Connections on which a member of a group began at the same offset of a partition, and got records,"""
    restart_seconds: float = 20.0
    """if the last of them is at least this long after the first. By default clients commit each 5 s."""


class Rebalances(Rule[Limits]):
    """A group that rebalances over and over, and who joins it anew."""

    name = "rebalance-loop"
    finds = "a group that rebalances all the time, of any protocol; who joined, how many left, and why"
    thresholds: Mapping[str, str] = {"rebalances": "{} in a minute"}
    place = 70
    tables: tuple[str, ...] = ("calls",)
    also: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = ("group_id",)
    together: Together = "group"
    severity = "high"
    _COLUMNS = (
        "capture",
        "connection",
        "correlation_id",
        "direction",
        "api_name",
        "client_id",
        "group_id",
        "generation",
    )
    advice = (
        "see why members come and go: time between polls (max.poll.interval.ms), missed heartbeats, restarts; use "
        "static membership (group.instance.id) and cooperative assignment"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._asked: dict[tuple[str, int, int], str] = {}
        self._latest: dict[str, int] = {}
        self._joined: dict[str, Counter[str]] = {}
        self._left: Counter[str] = Counter()
        self._causes: dict[str, Counter[str]] = {}
        """Why groups rebalanced, as far as the history of groups is read."""
        self._newer: set[str] = set()
        """Groups of the newer protocols: they have no generations."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "group_events":
            self._history(rows)
            return
        told = rows.where(api_name=("JoinGroup", "LeaveGroup"), status="ok")
        hits: dict[int, str] = {}
        """Rows of responses that begin a generation, and their group."""
        for row, values in zip(told.tolist(), tuples(rows.part(self._COLUMNS, told)), strict=True):
            capture, connection, correlation, direction, api, client, group, generation = values
            at = (capture, connection, correlation)
            if direction == "request":
                if group is None:
                    continue
                if api == "LeaveGroup":
                    self._left[group] += 1
                    continue
                self._joined.setdefault(group, Counter())[client or "-"] += 1
                self._asked[at] = group
                if len(self._asked) > 1 << 16:
                    del self._asked[next(iter(self._asked))]
            elif api == "JoinGroup":
                group = self._asked.pop(at, None)
                if group is not None and generation is not None and generation > self._latest.get(group, 0):
                    self._latest[group] = generation
                    hits[row] = group
        if hits:
            made = rows.part(("capture", "connection", "frame", "frame_timestamp"), np.array(list(hits)))
            made = made.append_column("group_id", pa.array(list(hits.values())))
            self.tallies.add(Rows(made), np.arange(len(hits)), each=True)

    def _history(self, rows: Rows) -> None:
        began = rows.where(event="rebalance_began", status="ok")
        newer = began[~rows.mask("kind", "classic")[began]]
        self.tallies.add(rows, newer, each=True)
        for kind, group, cause in tuples(rows.part(("kind", "group_id", "cause"), began)):
            if group in self._causes or len(self._causes) < _MOST_CLOSED:
                self._causes.setdefault(group, Counter())[cause.replace("_", " ")] += 1
                if kind != "classic":
                    self._newer.add(group)

    def findings(self) -> Iterator[Finding]:
        for (group,), one in self.tallies.items(self.tallies.totals().count >= self.limits.rebalances):
            if one.busiest >= self.limits.rebalances:
                newer = group in self._newer
                said = f"{counted(one.count, 'rebalance' if newer else 'generation')}, {one.busiest} in a minute"
                if not newer:
                    joined = self._joined.get(group, Counter()).most_common(5)
                    said += f"; {counted(self._left[group], 'member')} left; joined: {_named(joined)}"
                if group in self._causes:
                    said += f"; causes: {_named(self._causes[group].most_common(5))}"
                yield self.found(said, one, group_id=group)


def _named(counts: list[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts)


class LateHeartbeats(Rule[Limits]):
    """Members whose heartbeats come later than their session timeout.

    They got the answer that they are not known.
    """

    name = "late-heartbeats"
    finds = (
        "a member whose heartbeats come later than its session timeout, or than the one that brokers have by default "
        "for groups of the newer protocols"
    )
    thresholds: Mapping[str, str] = {"heartbeat_gap": "{} of it"}
    place = 80
    tables: tuple[str, ...] = ("calls",)
    also: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = ("client_host", "group_id", "client_id", "timeout")
    largest = True
    severity = "high"
    advice = "find what stops the client (long pauses, starved processors); a larger session.timeout.ms tolerates it"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._timeout: dict[tuple[Any, ...], int] = {}
        """By host, group and client_id: the session timeout that was asked for last."""
        self._last: dict[tuple[Any, ...], int | None] = {}
        """By capture, group and member: when the last heartbeat came, None if the member has joined anew since.

        What came between two captures is not known.
        """
        self._member: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        """By capture, connection and group: the last member id."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "group_events":
            self._history(rows)
            return
        asked = rows.where(api_name=("JoinGroup", "Heartbeat"), direction="request", status="ok")
        asked = asked[rows.times[asked] != UNDATED]
        if not len(asked):
            return
        times = rows.times[asked]
        joins = rows.mask("api_name", "JoinGroup")[asked]
        clients, client_keys = keyed(rows, ("client_host", "group_id", "client_id"), asked)
        timeouts = self._timeouts(rows.values("session_timeout_ms")[asked], joins, clients, client_keys)
        # The heartbeats and joins of a member are together, each after the one before.
        members, member_keys = keyed(rows, ("capture", "group_id", "member_id"), asked)
        members = self._named(rows, asked, joins, members, member_keys)
        order = np.argsort(members, kind="stable")
        own = members[order]
        begins = np.append(True, own[1:] != own[:-1])
        before = np.append(times[order[:1]], times[order[:-1]])
        known = np.append(False, ~joins[order[:-1]])
        first, last = np.flatnonzero(begins), np.append(np.flatnonzero(begins[1:]), len(own) - 1)
        # Of the first ones, what earlier batches had.
        for at, number in zip(first.tolist(), own[first].tolist(), strict=True):
            earlier = self._last.get(member_keys[number])
            known[at], before[at] = earlier is not None, earlier or 0
        for at, number in zip(order[last].tolist(), own[last].tolist(), strict=True):
            self._last[member_keys[number]] = None if joins[at] else int(times[at])
        gaps = times[order] - before
        allowed = timeouts[order] * (self.limits.heartbeat_gap * 1000)
        late = known & ~joins[order] & (gaps > 0) & (allowed > 0) & (gaps >= allowed)
        hits = np.flatnonzero(late)
        hits = hits[np.argsort(order[hits])]
        told = order[hits]
        made = rows.part((*FRAME, "frame_timestamp", *CLIENT, "group_id"), asked[told])
        made = made.append_column("timeout", pa.array(timeouts[told]))
        self.tallies.add(Rows(made), np.arange(len(told)), amount=gaps[hits], each=True)

    def _history(self, rows: Rows) -> None:
        late = rows.where(event="heartbeat_late", kind=("consumer", "share", "streams"), status="ok")
        gaps = rows.values("duration_ms", 0)[late].astype(np.int64)
        there = gaps >= self.limits.heartbeat_gap * SESSION
        late, gaps = late[there], gaps[there]
        made = rows.part((*FRAME, "timestamp", *CLIENT, "group_id"), late)
        made = made.append_column("timeout", pa.array(np.full(len(late), SESSION)))
        self.tallies.add(Rows(made), np.arange(len(late)), amount=gaps * 1000, each=True)

    def _named(self, rows: Rows, asked: Array, joins: Array, members: Array, keys: list[tuple[Any, ...]]) -> Array:
        """The member of each row; adds those of earlier batches to ``keys``.

        librdkafka forgets its member id once its own clock says that the session has ended. A heartbeat without a
        member id belongs to the member before it on the connection.
        """
        nameless = rows.mask("member_id", "")[asked]
        of, connections = keyed(rows, ("capture", "connection", "group_id"), asked)
        order = np.argsort(of, kind="stable")
        at = np.arange(len(order))
        begins = np.append(True, of[order[1:]] != of[order[:-1]])
        start = np.maximum.accumulate(np.where(begins, at, 0))
        latest = np.maximum.accumulate(np.where(nameless[order], -1, at))
        wanted = (nameless & ~joins)[order]
        made = members.copy()
        here = wanted & (latest >= start)
        made[order[here]] = members[order[latest[here]]]
        new: dict[tuple[Any, ...], int] = {}
        for row in order[wanted & (latest < start)].tolist():
            earlier = self._member.get(connections[of[row]])
            if earlier is None:
                continue
            if earlier not in new:
                new[earlier] = len(keys)
                keys.append(earlier)
            made[row] = new[earlier]
        ends = np.append(np.flatnonzero(begins[1:]), len(order) - 1)
        for end in ends[latest[ends] >= start[ends]].tolist():
            row = int(order[latest[end]])
            if connections[of[row]] in self._member or len(self._member) < _MOST_CLOSED:
                self._member[connections[of[row]]] = keys[members[row]]
        return made

    def _timeouts(self, asked: Array, joins: Array, clients: Array, keys: Sequence[tuple[Any, ...]]) -> Array:
        """The session timeout of each row: that of the JoinGroup request before it, of the same client."""
        asked = asked.astype(np.int64)
        earlier = np.array([self._timeout.get(key, 0) for key in keys], np.int64)
        if not joins.any():
            return earlier[clients]
        order = np.argsort(clients, kind="stable")
        at = np.arange(len(order))
        begins = np.append(True, clients[order[1:]] != clients[order[:-1]])
        start = np.maximum.accumulate(np.where(begins, at, 0))
        latest = np.maximum.accumulate(np.where(joins[order], at, -1))
        found = np.empty(len(order), np.int64)
        found[order] = np.where(latest >= start, asked[order[latest]], earlier[clients[order]])
        for number, timeout in zip(clients[joins].tolist(), asked[joins].tolist(), strict=True):
            self._timeout[keys[number]] = timeout
        return found

    def findings(self) -> Iterator[Finding]:
        for (host, group, client, timeout), one in self.tallies.items():
            said = f"up to {one.amount / 1e6:.1f} s between heartbeats, with a session timeout of {timeout / 1000:g} s"
            yield self.found(said, one, client_host=host, client_id=client, group_id=group)


class LatePolls(Rule[Limits]):
    """Consumers that leave their group and join it again.

    A client does that for a program that did not poll for longer than ``max.poll.interval.ms``.
    """

    name = "late-polls"
    finds = (
        "a consumer that leaves its group and joins it again: its program did not poll within `max.poll.interval.ms`"
    )
    thresholds: Mapping[str, str] = {"late_polls": "{}"}
    place = 90
    tables: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = (*CLIENT, "group_id")
    severity = "high"
    advice = (
        "unless the program unsubscribes on purpose: work on fewer records between polls (max.poll.records), or raise "
        "max.poll.interval.ms"
    )
    _MOST = 1 << 16
    """Members that have left and may come back."""
    _HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
    _COLUMNS = (
        "capture", "connection", *CLIENT, "group_id", "api_name", "generation", "rebalance_timeout_ms",
    )  # fmt: skip

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._left: dict[tuple[Any, ...], None] = {}
        self._allowed: dict[tuple[Any, ...], int] = {}

    def take(self, name: str, rows: Rows) -> None:
        # In the newer protocols a member leaves with the epoch -1 and joins with 0.
        old = ("JoinGroup", "LeaveGroup")
        told = rows.where(api_name=(*old, *self._HEARTBEATS), direction="request", status="ok")
        told = told[(rows.mask("api_name", old) | rows.mask("generation", (-1, 0)))[told]]
        hits = []
        for row, values in zip(told.tolist(), tuples(rows.part(self._COLUMNS, told)), strict=True):
            capture, connection, host, client, group, api, generation, allowed = values
            at = (capture, connection, group)
            if api == "LeaveGroup" or (generation == -1 and api != "JoinGroup"):
                self._left[at] = None
                if len(self._left) > self._MOST:
                    del self._left[next(iter(self._left))]
            elif at in self._left:
                del self._left[at]
                hits.append(row)
                if (allowed or 0) > 0:
                    self._allowed[host, client, group] = allowed
        self.tallies.add(rows, np.array(hits, np.int64), each=True)

    def findings(self) -> Iterator[Finding]:
        for key, one in self.tallies.items(self.tallies.totals().count >= self.limits.late_polls):
            host, client, group = key
            said = f"it left the group and joined it again {_times(one.count)}"
            if key in self._allowed:
                said += f"; its max.poll.interval.ms is {self._allowed[key] / 1000:g} s"
            yield self.found(said, one, client_host=host, client_id=client, group_id=group)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


class Stopped(Rule[Limits]):
    """A member of a group that still sends heartbeats, but fetches no more.

    A member without a partition does not fetch either. Partitions go with a new generation, so it must have fetched in
    the present one. And a client that was closed is not stuck, if another has its client_id.
    """

    name = "stopped-consumers"
    finds = (
        "a member that sends heartbeats and fetches no more, although it has fetched in this generation: one "
        "that has no partition left is none"
    )
    thresholds: Mapping[str, str] = {"stopped_seconds": "{}"}
    place = 280
    tables: tuple[str, ...] = ("frames", "calls")
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "capture", "connection")
    severity = "high"
    advice = "the consumer is stuck or paused while its heartbeats go on: see what it does with the records that it got"
    _BEATS = ("SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._beats = Tallies(*CLIENT, "group_id", "member_id", "generation")
        self._closed: dict[tuple[str, int], int] = {}
        """When clients closed connections, by capture and connection."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            self.tallies.add(rows, rows.where(api_name="Fetch", direction="request"))
        elif name == "calls":
            beats = rows.where(api_name=self._BEATS, direction="request", status="ok")
            # With the epoch 0 a member joins, with -1 it leaves.
            self._beats.add(rows, beats[rows.values("generation", 1)[beats] > 0])
        else:
            closed = rows.where(ended_by="client")
            columns = ("capture", "connection", "last_seen")
            times = rows.values("last_seen")[closed].tolist()
            for time, (capture, connection, _) in zip(times, tuples(rows.part(columns, closed)), strict=True):
                if len(self._closed) < _MOST_CLOSED:
                    self._closed[capture, connection] = time

    def findings(self) -> Iterator[Finding]:
        # The last that was fetched, on which connection.
        fetched: dict[tuple[Any, ...], Tally] = {}
        where: dict[tuple[Any, ...], tuple[str, int]] = {}
        for (host, client, capture, connection), one in self.tallies.items():
            mine = fetched.setdefault((host, client), Tally())
            if mine.last is None or (one.last or 0) >= mine.last:
                where[host, client] = capture, connection
            mine.join(one)
        members: dict[tuple[Any, ...], Tally] = {}
        for (host, client, group, member, _), one in self._beats.items():
            latest = members.get((host, client, group, member))
            if latest is None or (one.last or 0) > (latest.last or 0):
                members[host, client, group, member] = one
        told: set[tuple[Any, ...]] = set()
        for (host, client, group, _), beat in members.items():
            one = fetched.get((host, client), Tally())
            if one.last is None or beat.last is None or beat.first is None or (host, client, group) in told:
                continue
            quiet = (beat.last - one.last) / 1e6
            closed = self._closed.get(where[host, client])
            gone = closed is not None and closed - one.last < self.limits.stopped_seconds * 1e6
            if quiet >= self.limits.stopped_seconds and one.last >= beat.first and not gone:
                told.add((host, client, group))
                said = f"no Fetch request in the {quiet:.0f} s before its last heartbeat"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)


_MOST_CLOSED: Final = 1 << 16
"""Connections that are kept, with the time at which they were closed, or their member."""


class NoProgress(Rule[Limits]):
    """A member of a group that begins at the same offset after each start, and gets records there.

    Its program fails at one of them, or it never commits.
    """

    name = "no-progress"
    finds = (
        "a member of a group that begins at the same offset after each start, and gets records there: its program "
        "fails at one, or nothing is committed"
    )
    thresholds: Mapping[str, str] = {"restarts": "{}", "restart_seconds": "in {} or more"}
    place = 95
    tables: tuple[str, ...] = ("partitions", "calls")
    _PLACE = (*CLIENT, "topic", "partition")
    keys: tuple[str, ...] = ("capture", "connection", *_PLACE, "offset")
    severity = "high"
    advice = (
        "see whether its program fails at a record, and set that one aside (a dead letter topic); or commit offsets, "
        "since it reads the same again after each start"
    )
    _JOINS = ("JoinGroup", "ConsumerGroupHeartbeat")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._joined = Tallies("capture", "connection", *CLIENT, "group_id")
        self._filled = Tallies(*self._PLACE)
        self._earliest = Tallies("capture", "connection", *self._PLACE)
        """Who asked for the beginning of a log: some members do so, and do not ask for committed offsets."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            told = rows.where(api_name=self._JOINS, direction="request", status="ok")
            self._joined.add(rows, told[rows.valid("group_id")[told]], each=True)
            return
        answers = rows.mask("direction", "response") & rows.mask("status", "ok")
        fetched = np.flatnonzero(answers & rows.mask("api_name", "Fetch"))
        self._filled.add(rows, fetched[rows.values("record_bytes")[fetched] > 0])
        begun = answers & rows.mask("api_name", "OffsetFetch") & rows.mask("error", "NONE")
        self.tallies.add(rows, np.flatnonzero(begun & rows.valid("offset")), each=True)
        asked = rows.where(api_name="ListOffsets", direction="request", offset_spec="earliest", status="ok")
        self._earliest.add(rows, asked, each=True)

    def _begun(self) -> Iterator[tuple[tuple[Any, ...], int, Tally]]:
        """Client, group, topic and partition; the offset at which it began; its connections."""
        groups: dict[tuple[str, int], str] = {}
        starts: Counter[tuple[Any, ...]] = Counter()
        for (capture, connection, host, client, group), _ in self._joined.items():
            groups[capture, connection] = group
            starts[host, client, group] += 1
        begun: dict[tuple[Any, ...], Tally] = {}
        asked: set[tuple[Any, ...]] = set()
        for (capture, connection, *place, offset), one in self.tallies.items():
            # A client asks again on its connection after each rebalance.
            group = groups.get((capture, connection))
            if group is not None:
                asked.add(tuple(place))
                begun.setdefault((*place, group, offset), Tally()).join(_once(one))
        earliest: dict[tuple[Any, ...], Tally] = {}
        for (_, _, *place), one in self._earliest.items():
            if tuple(place) not in asked:
                earliest.setdefault(tuple(place), Tally()).join(_once(one))
        for (host, client, group), count in starts.items():
            if count >= self.limits.restarts:
                mine = [one for one in earliest.items() if one[0][: len(CLIENT)] == (host, client)]
                begun |= {(*place, group, -1): one for place, one in mine}
        for (host, client, topic, partition, group, offset), one in begun.items():
            seconds = ((one.last or 0) - (one.first or 0)) / 1e6
            if one.count >= self.limits.restarts and seconds >= self.limits.restart_seconds:
                yield (host, client, group, topic, partition), offset, one

    def findings(self) -> Iterator[Finding]:
        filled: dict[tuple[Any, ...], Tally] | None = None
        members: dict[tuple[Any, ...], tuple[Tally, list[tuple[int, int, int]]]] = {}
        for (host, client, group, topic, partition), offset, one in self._begun():
            if filled is None:
                filled = dict(self._filled.items())
            if filled.get((host, client, topic, partition), Tally()).count >= one.count:
                tally, where = members.setdefault((host, client, group, topic), (Tally(), []))
                tally.join(one)
                where.append((partition, offset, one.count))
        for (host, client, group, topic), (tally, where) in members.items():
            partition, offset, most = where[0]
            begins = f"at offset {offset}" if offset >= 0 else "where nothing was committed"
            said = f"it began {_times(most)} {begins}, and got records each time"
            if len(where) > 1:
                said += f"; so in {len(where)} partitions"
            only = partition if len(where) == 1 else None
            yield self.found(
                said, tally, client_host=host, client_id=client, group_id=group, topic=topic, partition=only
            )


def _once(one: Tally) -> Tally:
    """A connection counts once."""
    return Tally(1, 0, one.first, one.last, one.where)
