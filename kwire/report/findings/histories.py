"""Rules about what happened to groups: rebalances that do not end, commits during one, records that come back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.naming import counted
from kwire.report.findings.rule import BROKER, CLIENT, Finding, Rule, Together
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Rows, Tallies, Tally

__all__ = [
    "ClassicGroups", "CommitsInRebalances", "CooperativeChurn", "DeadLetters", "GivenBack", "Limits", "LocksRunOut",
    "Reconciling", "ReleasedAgain",
]  # fmt: skip

_MOST: Final = 1 << 16
"""Groups that are followed."""
_NEW: Final = ("consumer", "streams")
"""Kinds of groups whose members confirm what they are assigned."""
_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Assignors of consumers: other classic groups (Connect, Kafka Streams) have assignors of their own."""


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    reconciling_seconds: float = 60.0
    """How long a rebalance of the newer protocols takes, from its cause on."""
    refused_commits: int = 5
    """Commits of a client that a rebalance overtook."""
    moves: int = 4
    """How often a partition was taken from a living member of a cooperative group in a minute."""
    redeliveries: int = 4
    """Deliveries of a record that was released, or whose lock ran out, each time."""
    locks: int = 5
    """Ranges of records of a share group that a client did not acknowledge in time."""
    released: int = 100
    """Records that a member of a share group released,"""
    released_part: float = 0.5
    """if they are so large a part of what it got."""
    dead_letters: int = 1
    """Records that brokers wrote to a dead letter topic of share groups."""
    rejected: int = 20
    """Records of a partition that members of a share group rejected."""


class Reconciling(Rule[Limits]):
    """A group of KIP-848 or KIP-1071 whose members do not come to what they are assigned."""

    name = "stuck-reconciliation"
    finds = "a group whose members do not come to their new assignment, and who has not confirmed it"
    thresholds: Mapping[str, str] = {"reconciling_seconds": "{} or more"}
    place = 75
    tables: tuple[str, ...] = ("group_events", "calls")
    keys: tuple[str, ...] = ("group_id",)
    together: Together = "group"
    severity = "high"
    advice = (
        "see why the members that are named do not give up partitions: a rebalance listener or a poll that takes long; "
        "brokers remove them after their rebalance timeout"
    )
    _BEATS = ("ConsumerGroupHeartbeat", "StreamsGroupHeartbeat")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._open: dict[str, int] = {}
        """When the rebalance began that is on, by group."""
        self._waits: dict[str, dict[str, str]] = {}
        """By group: the members that have not confirmed, and their client ids."""
        self._long: dict[str, tuple[float, list[str]]] = {}
        """The longest rebalance of each group, in seconds, and who was last."""
        self._last: dict[str, int] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            beats = rows.where(api_name=self._BEATS, direction="request", status="ok")
            times = rows.times[beats]
            for (group,), time in zip(tuples(rows.part(("group_id",), beats)), times.tolist(), strict=True):
                # Which of the tables comes first is not known: the rebalance may be read later.
                if time != UNDATED and (group in self._last or len(self._last) < _MOST):
                    self._last[group] = max(time, self._last.get(group, time))
            return
        some = rows.where(kind=_NEW, status="ok")
        columns = ("group_id", "event", "member_id", "client_id")
        times = rows.times[some].tolist()
        hits = []
        for row, time, values in zip(some.tolist(), times, tuples(rows.part(columns, some)), strict=True):
            group, event, member, client = values
            waits = self._waits.setdefault(group, {})
            if event == "rebalance_began":
                if time != UNDATED and len(self._open) < _MOST:
                    self._open.setdefault(group, time)
                hits.append(row)
            elif event in ("assigned", "revoked"):
                waits[member] = client or "-"
            elif event in ("synced", "left", "fenced"):
                waits.pop(member, None)
            elif event == "rebalance_ended":
                self._ended(group, time, [client or "-"])
        self.tallies.add(rows, np.array(hits, np.int64), each=True)

    def _ended(self, group: str, time: int, who: list[str]) -> None:
        began = self._open.pop(group, None)
        if began is not None and time != UNDATED:
            took = (time - began) / 1e6
            if took > self._long.get(group, (0.0, []))[0]:
                self._long[group] = took, who

    def findings(self) -> Iterator[Finding]:
        for (group,), one in self.tallies.items():
            took, who = self._long.get(group, (0.0, []))
            said = f"a rebalance took {took:.0f} s; the last to confirm: {', '.join(who)}"
            if group in self._open:
                still = (self._last.get(group, 0) - self._open[group]) / 1e6
                if still > took:
                    took = still
                    names = sorted(set(self._waits.get(group, {}).values()))[:5]
                    said = f"a rebalance is on for {took:.0f} s; not confirmed by: {', '.join(names) or '-'}"
            if took >= self.limits.reconciling_seconds:
                yield self.found(said, one, group_id=group)


class ClassicGroups(Rule[Limits]):
    """Consumers of the classic protocol, where the broker serves groups of the newer one."""

    name = "classic-group"
    finds = "a group of the classic protocol at a broker that also serves groups of the newer one (KIP-848)"
    place = 300
    tables: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = ("group_id", *BROKER)
    together: Together = "broker"
    severity = "low"
    advice = (
        "set group.protocol=consumer: members reconcile one by one, and nobody stops for the others (Kafka 4.0, Java "
        "clients 4.0, librdkafka 2.12 and later)"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._serves: set[tuple[str, int]] = set()

    def take(self, name: str, rows: Rows) -> None:
        new = rows.where(kind="consumer", event="joined", status="ok")
        for host, port in tuples(rows.part(BROKER, new)):
            if len(self._serves) < _MOST:
                self._serves.add((host, port))
        self.tallies.add(
            rows, rows.where(kind="classic", event=("joined", "rejoined"), assignor=_ASSIGNORS, status="ok")
        )

    def findings(self) -> Iterator[Finding]:
        for (group, host, port), one in self.tallies.items():
            if (host, port) in self._serves:
                yield self.found(f"{counted(one.count, 'JoinGroup')} at {host}:{port}", one, group_id=group)


class CooperativeChurn(Rule[Limits]):
    """Partitions of a cooperative group go from member to member, although the members that had them are still there.

    Cooperative-sticky assignment is made to leave partitions where they are.
    """

    name = "cooperative-churn"
    finds = (
        "a group with cooperative-sticky assignment whose partitions are taken from living members over and over, "
        "which its assignor is made to avoid"
    )
    thresholds: Mapping[str, str] = {"moves": "{} times the same partition in a minute"}
    place = 74
    tables: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = ("group_id", "topic", "partition")
    together: Together = "group"
    advice = (
        "see which members come and go (kwire why --group): give them a group.instance.id, so that a restart moves "
        "nothing, or use group.protocol=consumer; old clients lose track of what they own (KAFKA-12984)"
    )
    _ASSIGNOR = "cooperative-sticky"

    def take(self, name: str, rows: Rows) -> None:
        taken = rows.where(event="revoked", kind="classic", assignor=self._ASSIGNOR, status="ok")
        if not len(taken):
            return
        lists = rows.table["lost"].combine_chunks().take(pa.array(taken))
        lost, of = pc.list_flatten(lists), pc.list_parent_indices(lists)
        made = rows.part(("capture", "connection", "frame", "timestamp", "group_id"), taken).take(of)
        for column in ("topic", "partition"):
            made = made.append_column(column, pc.struct_field(lost, column))
        self.tallies.add(Rows(made), np.arange(made.num_rows), each=True)

    def findings(self) -> Iterator[Finding]:
        groups: dict[str, tuple[Tally, int, str]] = {}
        for (group, topic, partition), one in self.tallies.items(self.tallies.totals().count >= self.limits.moves):
            if one.busiest >= self.limits.moves:
                tally, most, which = groups.get(group, (Tally(), 0, ""))
                tally.join(one)
                if one.count > most:
                    most, which = one.count, f"{topic}[{partition}]"
                groups[group] = tally, most, which
        for group, (one, most, which) in groups.items():
            said = f"partitions were taken from living members {one.count} times; {which} {most} times"
            yield self.found(said, one, group_id=group)


class CommitsInRebalances(Rule[Limits]):
    """Commits that come too late: the partitions are somebody else's by then."""

    name = "commits-in-rebalance"
    finds = "a client whose commits are refused since a rebalance overtook them: others read the records again"
    thresholds: Mapping[str, str] = {"refused_commits": "{}"}
    place = 92
    tables: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = (*CLIENT, "group_id", "error_name")
    severity = "medium"
    advice = (
        "commit before partitions go (a rebalance listener), work on fewer records between polls (max.poll.records), "
        "and use cooperative-sticky assignment or group.protocol=consumer"
    )
    _ERRORS = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")

    def take(self, name: str, rows: Rows) -> None:
        at = rows.where(event="commit_refused", error_name=self._ERRORS, status="ok")
        self.tallies.add(rows, at, each=True)

    def findings(self) -> Iterator[Finding]:
        for (host, client, group, error), one in self.tallies.items():
            if one.count >= self.limits.refused_commits:
                said = f"{counted(one.count, 'commit')} refused: {error}"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)


class ReleasedAgain(Rule[Limits]):
    """Records of a share group that are delivered over and over."""

    name = "poison-records"
    finds = "records of a share group that come back over and over: each time released, or not acknowledged in time"
    thresholds: Mapping[str, str] = {"redeliveries": "{} deliveries"}
    place = 97
    tables: tuple[str, ...] = ("share_deliveries",)
    keys: tuple[str, ...] = ("group_id", "topic", "partition")
    together: Together = "topic"
    severity = "high"
    advice = (
        "see what the program does with these records, and reject those that it can never process; brokers give up "
        "after share.delivery.count.limit deliveries (5)"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._most: dict[tuple[str, str | None, int | None], tuple[int, int]] = {}
        """By group, topic and partition: the most deliveries, and the first offset of such a record."""

    def take(self, name: str, rows: Rows) -> None:
        at = rows.where(outcome=("released", "expired"), status="ok")
        at = at[rows.values("delivery_count", 0)[at] >= self.limits.redeliveries]
        columns = ("group_id", "topic", "partition", "delivery_count", "first_offset")
        for group, topic, partition, count, offset in tuples(rows.part(columns, at)):
            place = (group, topic, partition)
            most = self._most.get(place, (0, 0))
            # Of several the first in the log, in whichever order rows come.
            more = count > most[0] or (count == most[0] and offset < most[1])
            if more and (place in self._most or len(self._most) < _MOST):
                self._most[place] = count, offset
        self.tallies.add(rows, at, each=True)

    def findings(self) -> Iterator[Finding]:
        for (group, topic, partition), one in self.tallies.items():
            count, offset = self._most.get((group, topic, partition), (0, 0))
            said = f"offset {offset} was delivered {count} times without being accepted"
            yield self.found(said, one, group_id=group, topic=topic, partition=partition)


class LocksRunOut(Rule[Limits]):
    """Members of share groups that do not acknowledge in time."""

    name = "lock-timeouts"
    finds = "a member of a share group that does not acknowledge before its locks run out: others get the records too"
    thresholds: Mapping[str, str] = {"locks": "{} ranges"}
    place = 98
    tables: tuple[str, ...] = ("share_deliveries",)
    keys: tuple[str, ...] = ("group_id", "member_id")
    together: Together = "group"
    severity = "medium"
    advice = (
        "fetch fewer records at once (max.poll.records), acknowledge as they are done, or renew the locks (KIP-1222); "
        "group.share.record.lock.duration.ms allows more time"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._lock: Tallies = Tallies("group_id", "lock_timeout_ms")

    def take(self, name: str, rows: Rows) -> None:
        at = rows.where(outcome="expired", status="ok")
        self.tallies.add(rows, at, each=True)
        self._lock.add(rows, at)

    def findings(self) -> Iterator[Finding]:
        allowed = {group: lock for (group, lock), _ in self._lock.items()}
        for (group, member), one in self.tallies.items():
            if one.count >= self.limits.locks:
                said = f"{counted(one.count, 'range')} of records not acknowledged by member {member}"
                if allowed.get(group) is not None:
                    said += f" within {allowed[group] / 1000:g} s"
                yield self.found(said, one, group_id=group)


class _Ranges(Rule[Limits]):
    """Records of share groups, by member or topic: how many with which outcome."""

    tables: tuple[str, ...] = ("share_deliveries",)
    _TAKEN = ("accepted", "released", "rejected", "expired")

    def take(self, name: str, rows: Rows) -> None:
        at = rows.where(outcome=self._TAKEN, status="ok")
        self.tallies.add(rows, at, count=rows.values("last_offset")[at] - rows.values("first_offset")[at] + 1)

    def _by_outcome(self) -> dict[tuple[Any, ...], dict[str, Tally]]:
        made: dict[tuple[Any, ...], dict[str, Tally]] = {}
        for (*key, outcome), one in self.tallies.items():
            made.setdefault(tuple(key), {})[outcome] = one
        return made


class GivenBack(_Ranges):
    """A member of a share group gives most of its records back, so that they are delivered again."""

    name = "released-records"
    finds = "a member of a share group that releases most of the records that it gets: each is delivered again"
    thresholds: Mapping[str, str] = {"released": "{} records", "released_part": "{} of what it got"}
    place = 99
    keys: tuple[str, ...] = ("group_id", *CLIENT, "member_id", "outcome")
    together: Together = "group"
    advice = (
        "see why the program cannot work on them (something that it needs is down?), and let it poll less meanwhile; "
        "each release brings a record nearer to the limit of deliveries"
    )

    def findings(self) -> Iterator[Finding]:
        for (group, host, client, _), of in self._by_outcome().items():
            total = sum(one.count for one in of.values())
            one = of.get("released", Tally())
            if one.count >= self.limits.released and one.count >= self.limits.released_part * total:
                said = f"{one.count} of {counted(total, 'record')} released"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)


class DeadLetters(_Ranges):
    """Records that a share group gives up: members reject them, or they were delivered as often as the group allows.

    Brokers of 4.4 write them to the group's dead letter topic, if it has one (KIP-1191).
    """

    name = "dead-letters"
    finds = (
        "records that a share group gives up: those that brokers write to its dead letter topic (KIP-1191, Kafka 4.4), "
        "and those that its members reject"
    )
    thresholds: Mapping[str, str] = {"dead_letters": "{}", "rejected": "{} of a partition"}
    place = 97
    tables: tuple[str, ...] = ("share_deliveries", "partitions")
    keys: tuple[str, ...] = ("group_id", "topic", "partition", "outcome")
    together: Together = "topic"
    severity = "low"
    advice = (
        "see what is wrong with these records, and who writes them; errors.deadletterqueue.topic.name of the group "
        "keeps them (Kafka 4.4), with headers that say where they come from"
    )
    _BROKERS = "ShareGroupDLQManager-client-"
    """So begin the client ids of brokers that write dead letters."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._letters = Tallies("topic")

    def take(self, name: str, rows: Rows) -> None:
        if name == "share_deliveries":
            super().take(name, rows)
            return
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        if len(sent):
            ids = rows.part(("client_id",), sent)["client_id"]
            mine = sent[pc.fill_null(pc.starts_with(ids, self._BROKERS), False).to_numpy()]
            self._letters.add(rows, mine, count=np.maximum(rows.values("records")[mine], 0), each=True)

    def findings(self) -> Iterator[Finding]:
        for (topic,), one in self._letters.items():
            if one.count >= self.limits.dead_letters:
                said = f"brokers wrote {counted(one.count, 'dead letter')} of share groups to it"
                yield self.found(said, one, topic=topic)
        for (group, topic, partition), of in self._by_outcome().items():
            one = of.get("rejected", Tally())
            if one.count >= self.limits.rejected:
                total = sum(each.count for each in of.values())
                said = f"{one.count} of {counted(total, 'record')} rejected: nobody of the group gets them again"
                yield self.found(said, one, group_id=group, topic=topic, partition=partition)
