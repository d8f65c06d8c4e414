"""Rules about brokers: those that stand still, are gone, or are slow to confirm writes."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.naming import counted
from kwire.report.findings.rule import BROKER, CLIENT, FRAME, Finding, Rule, Together, kafka_connections, keyed
from kwire.report.sums import UNDATED, WAITING, tuples
from kwire.report.tallies import MOST_EVIDENCE, Array, Rows, Tallies, Tally, among

__all__ = ["LateAcks", "Limits", "Offline", "Stalled", "Unreachable"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    stalled_seconds: float = 2.0
    """For how long a broker answered nobody,"""
    stalled_connections: int = 2
    """while requests of this many connections waited that brokers answer at once."""
    unreachable_seconds: float = 60.0
    """For how long a broker took no new connection, although it answers at another time of the capture."""
    offline_seconds: float = 30.0
    """For how long Metadata responses said that a partition has no leader."""
    late_acks: int = 3
    """Produce requests that one broker answered later than"""
    late_ack_seconds: float = 5.0
    """this time. Clients give up after 30 s by default."""


_NO_NAME: Final = "an unknown API"
"""In place of the name of an API key that no API has."""
_SLOT: Final = 250_000
"""Microseconds. In a slot a broker has answered, or it has not."""
_MOST_RUNS: Final = 1 << 14
"""Runs of slots that are kept of a broker, the latest."""
_MOST_LATE: Final = 1 << 16
"""Responses that came late, of all brokers."""
_NEVER: Final = 1 << 62
"""The slot of the next answer, where there is none."""
_OF: Final = (*BROKER, "capture", "connection", "api_name")
_ON_PURPOSE: Final = WAITING | {
    "AlterPartitionReassignments", "CreatePartitions", "CreateTopics", "DeleteRecords", "DeleteTopics", "ElectLeaders",
    "BrokerRegistration", "ControlledShutdown", "ControllerRegistration", "FetchSnapshot", "Vote",
}  # fmt: skip
"""What brokers answer when something else has happened, or after a time that the request names."""


class _Runs:
    """Slots of time in which a broker has answered, as runs without a slot between them."""

    def __init__(self) -> None:
        self._runs: list[Array] = []
        self.kept = 0
        """How many runs it has in memory."""

    def add(self, slots: Array) -> None:
        """Take slots: ascending, each once."""
        breaks = np.flatnonzero(np.diff(slots) > 1)
        begins, ends = np.append(slots[:1], slots[breaks + 1]), np.append(slots[breaks], slots[-1:])
        self._runs.append(np.stack([begins, ends]))
        self.kept += len(begins)
        if self.kept > 2 * _MOST_RUNS:
            self._runs = [self.all()[:, -_MOST_RUNS:]]
            self.kept = self._runs[0].shape[1]

    def all(self) -> Array:
        """The first and the last slot of each run, in order."""
        begins, ends = np.concatenate(self._runs, axis=1)
        order = np.argsort(begins, kind="stable")
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
        new = np.append(True, begins[1:] > ends[:-1] + 1)
        return np.stack([begins[new], ends[np.append(np.flatnonzero(new)[1:] - 1, len(ends) - 1)]])


@dataclass(frozen=True, slots=True)
class _Wait:
    """A request that waited: when it began and ended, in microseconds, where, and its API."""

    since: int
    until: int
    where: tuple[str, int, int | None]
    api: str


@dataclass(slots=True)
class _Stall:
    """Slots without an answer, and who waited meanwhile."""

    first: int
    after: int
    tally: Tally = field(default_factory=Tally)
    connections: set[tuple[str, int]] = field(default_factory=set)
    apis: Counter[str] = field(default_factory=Counter)

    @property
    def seconds(self) -> float:
        return (self.after - self.first) * _SLOT / 1e6

    def join(self, one: _Wait, first: int, after: int) -> None:
        """Take a request that waited in these slots."""
        self.first, self.after = min(self.first, first), max(self.after, after)
        self.connections.add(one.where[:2])
        self.apis[one.api] += 1
        where = (one.where,) if len(self.tally.where) < MOST_EVIDENCE else ()
        self.tally.join(Tally(1, 0, one.since, one.until, where))


class Stalled(Rule[Limits]):
    """A broker that answers nobody for seconds, although several clients wait for what it answers at once.

    They wait until it answers, or until they give up and close their connections.
    """

    name = "stalled-brokers"
    finds = (
        "a broker that answers nobody for seconds, while several connections wait for what it answers at once, or "
        "clients give up and close them; by broker, and which APIs waited"
    )
    thresholds: Mapping[str, str] = {"stalled_seconds": "{}", "stalled_connections": "{}"}
    place = 140
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = BROKER
    together: Together = "broker"
    severity = "high"
    explains: tuple[str, ...] = ("late-acks",)
    advice = (
        "see what stopped the broker then: garbage collection, a disk that hangs, a machine without processor time or "
        "memory (swap), a paused virtual machine; if only Produce waited, a follower may be what is slow (acks=all)"
    )
    _LATE = (*BROKER, *FRAME, "api_name", "latency_ms")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._runs: dict[tuple[Any, ...], _Runs] = {}
        self._late: list[tuple[int, tuple[Any, ...]]] = []
        """Responses that came late, with their times."""
        self._asked = Tallies(*_OF)
        self._answered = Tallies(*_OF[:-1])
        """By connection: requests that brokers answer at once, and responses."""
        self._left: list[tuple[int, tuple[Any, ...]]] = []
        """Connections that clients closed before they had an answer, and when."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            left = kafka_connections(rows)
            left = left[(rows.mask("ended_by", "client") & (rows.values("unanswered") > 0))[left]]
            times = rows.values("last_seen", UNDATED)[left].tolist()
            self._left += zip(times, tuples(rows.part(_OF[:-1], left)), strict=True)
            del self._left[:-_MOST_LATE]
            return
        at_once = rows.where(direction="request")
        self._asked.add(rows, at_once[~rows.mask("api_name", tuple(sorted(_ON_PURPOSE)))[at_once]])
        told = rows.where(direction="response")
        self._answered.add(rows, told)
        # Between which others a response without a time came is not known.
        told = told[rows.times[told] != UNDATED]
        if not len(told):
            return
        slots = rows.times[told] // _SLOT
        of = rows.numbers((*BROKER, slots), told)
        first = np.unique(of, return_index=True)[1]
        brokers = rows.numbers(BROKER, told[first])
        order = np.lexsort((slots[first], brokers))
        begins = np.flatnonzero(np.diff(brokers[order], prepend=-1))
        keys = tuples(rows.part(BROKER, told[first[order[begins]]]))
        for key, mine in zip(keys, np.split(slots[first[order]], begins[1:]), strict=True):
            self._runs.setdefault(key, _Runs()).add(mine)
        latencies = rows.table["latency_ms"].take(pa.array(told)).to_numpy()
        late = told[latencies >= self.limits.stalled_seconds * 1000]
        late = late[~rows.mask("api_name", tuple(sorted(_ON_PURPOSE)))[late]]
        if len(late):
            self._late += zip(rows.times[late].tolist(), tuples(rows.part(self._LATE, late)), strict=True)
            del self._late[:-_MOST_LATE]

    def findings(self) -> Iterator[Finding]:
        for broker, stalls in self._stalls().items():
            wrong = [one for one in stalls.values() if len(one.connections) >= self.limits.stalled_connections]
            if not wrong:
                continue
            tally, apis = Tally(), Counter[str]()
            for one in sorted(wrong, key=lambda one: one.tally.first or 0):
                tally.join(one.tally)
                apis.update(one.apis)
            longest = max(wrong, key=lambda one: one.seconds)
            said = f"it answered nobody for {longest.seconds:.1f} s"
            if len(wrong) > 1:
                said = f"{counted(len(wrong), 'time')} it answered nobody, for {longest.seconds:.1f} s at most"
            waited = ", ".join(f"{api} ({count})" for api, count in apis.most_common(5))
            of = f"{broker[0]}:{broker[1]}"
            yield self.found(
                f"{of}: {said}, while {counted(len(longest.connections), 'connection')} waited: {waited}",
                tally,
                count=len(wrong),
            )

    def _waits(self) -> Iterator[tuple[tuple[Any, ...], _Wait]]:
        """Requests that waited long, with or without an answer, by broker."""
        for time, row in self._late:
            broker, (capture, connection, frame, api, latency) = row[: len(BROKER)], row[len(BROKER) :]
            yield broker, _Wait(time - round(latency * 1000), time, (capture, connection, frame), api or _NO_NAME)
        if not self._left:
            return
        closed = {row: time for time, row in self._left if time != UNDATED}
        answered = dict(_among(self._answered, closed))
        asked: dict[tuple[Any, ...], tuple[int, str]] = {}
        for key, one in _among(self._asked, closed):
            of, api = key[:-1], key[-1] or _NO_NAME
            if of in closed and one.last is not None:
                asked[of] = max(asked.get(of, (one.last, api)), (one.last, api))
        for of, (since, api) in asked.items():
            # The last request has no answer if no response follows.
            if since > (answered.get(of, Tally()).last or 0):
                capture, connection = of[len(BROKER) :]
                yield of[: len(BROKER)], _Wait(since, closed[of], (capture, connection, None), api)

    def _stalls(self) -> dict[tuple[Any, ...], dict[int, _Stall]]:
        """The stalls of each broker, by their first slot."""
        made: dict[tuple[Any, ...], dict[int, _Stall]] = {}
        silent: dict[tuple[Any, ...], tuple[list[int], list[int]]] = {}
        least = self.limits.stalled_seconds * 1e6 / _SLOT
        for broker, one in self._waits():
            if broker not in self._runs:
                continue
            if broker not in silent:
                begins, ends = self._runs[broker].all()
                begins = np.append(begins[1:], _NEVER)
                long = np.flatnonzero(begins - ends - 1 >= least)
                silent[broker] = (ends[long] + 1).tolist(), begins[long].tolist()
            first, after = silent[broker]
            # Slots in which it waited as a whole.
            since, until = -(-one.since // _SLOT), one.until // _SLOT
            at = bisect.bisect_left(first, until) - 1
            while at >= 0 and after[at] - since >= least:
                begin, end = max(first[at], since), min(after[at], until)
                if end - begin >= least:
                    made.setdefault(broker, {}).setdefault(first[at], _Stall(begin, end)).join(one, begin, end)
                at -= 1
        return made


def _among(tallies: Tallies, connections: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], Tally]]:
    """The tallies of some connections, which are distinct."""
    keys = tallies.totals().keys
    if keys.num_rows:
        keys = keys.select(_OF[:-1])
        wanted = [dict(zip(_OF[:-1], one, strict=True)) for one in connections]
        yield from tallies.items(among(keys, pa.Table.from_pylist(wanted, keys.schema)) >= 0)


class LateAcks(Rule[Limits]):
    """A broker that confirms writes only after seconds, while it answers other requests.

    A client beyond its quota does not count: the broker delays its requests on purpose.
    """

    name = "late-acks"
    finds = (
        "a broker that confirms writes only after seconds, while it answers other requests: a slow follower, or "
        "disk. Throttled clients do not count"
    )
    thresholds: Mapping[str, str] = {"late_acks": "{} responses", "late_ack_seconds": "{}"}
    place = 145
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = (*BROKER, *CLIENT)
    together: Together = "broker"
    largest = True
    advice = (
        "see which followers are slow or away: with acks=all the leader waits for those in sync, until "
        "replica.lag.time.max.ms; or what keeps its disk or its request threads busy"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._throttled: set[tuple[Any, ...]] = set()
        """Brokers, and the clients that each of them throttled."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            told = np.flatnonzero(rows.values("throttle_ms") > 0)
            self._throttled.update(keyed(rows, self.keys, told)[1])
            return
        told = rows.where(api_name="Produce", direction="response")
        if not len(told):
            return
        latencies = rows.table["latency_ms"].take(pa.array(told)).to_numpy()
        late = latencies > self.limits.late_ack_seconds * 1000
        self.tallies.add(rows, told[late], amount=latencies[late])

    def findings(self) -> Iterator[Finding]:
        brokers: dict[tuple[Any, ...], tuple[Tally, list[float]]] = {}
        for key, one in self.tallies.items():
            if key not in self._throttled:
                tally, longest = brokers.setdefault(key[: len(BROKER)], (Tally(), []))
                tally.join(one)
                longest.append(one.amount)
        for (host, port), (one, longest) in brokers.items():
            if one.count >= self.limits.late_acks:
                seconds = max(longest) / 1000
                said = (
                    f"{host}:{port}: {counted(one.count, 'Produce request')} answered late, after up to {seconds:.1f} s"
                )
                yield self.found(said, one)


class Unreachable(Rule[Limits]):
    """A broker that refuses connections, or whose machine does not answer, for longer than a restart takes.

    It counts as a broker if it answers a Kafka request elsewhere in the capture.
    """

    name = "unreachable-brokers"
    finds = (
        "a broker that refuses connections, or does not answer their first packet. It answers at another time of the "
        "capture"
    )
    thresholds: Mapping[str, str] = {"unreachable_seconds": "{}"}
    place = 138
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = BROKER
    together: Together = "broker"
    severity = "high"
    advice = (
        "start the broker again, or see what stands between it and its clients; it may have moved to another address"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._reached = Tallies(*BROKER)

    def take(self, name: str, rows: Rows) -> None:
        new = rows.where(opened_by="client")
        shaken = rows.valid("handshake_ms")[new]
        refused = ~shaken & (rows.values("broker_bytes")[new] == 0) & rows.mask("status", "unknown")[new]
        self.tallies.add(rows, new[refused], each=True)
        self._reached.add(rows, new[shaken & (rows.values("requests")[new] > rows.values("unanswered")[new])])

    def findings(self) -> Iterator[Finding]:
        reached = dict(self._reached.items())
        for (host, port), one in self.tallies.items():
            answered = reached.get((host, port))
            if answered is None:
                continue
            seconds, count = _longest(sorted(one.steps), sorted(answered.steps), one.steps)
            if seconds >= self.limits.unreachable_seconds:
                said = f"{host}:{port}: {counted(count, 'connection')} refused or without an answer, for {seconds} s"
                yield self.found(said, one, count=count)


class Offline(Rule[Limits]):
    """Partitions without a leader: nobody can write to them or read them."""

    name = "offline-partitions"
    finds = "partitions that have no leader, as Metadata responses say: nobody can write or read them"
    thresholds: Mapping[str, str] = {"offline_seconds": "{}"}
    place = 137
    tables: tuple[str, ...] = ("partitions",)
    _PLACE = (*CLIENT, "topic", "partition")
    keys: tuple[str, ...] = _PLACE
    severity = "high"
    # A client asks until there is a leader.
    explains: tuple[str, ...] = ("metadata-storm",)
    advice = (
        "start the broker that has the replicas (kafka-topics.sh --describe --unavailable-partitions); a topic with "
        "one replica has no leader while its broker is away"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._led = Tallies(*self._PLACE)
        """Where partitions that had no leader have one again."""

    def take(self, name: str, rows: Rows) -> None:
        told = rows.where(api_name="Metadata", direction="response", status="ok")
        told = told[rows.valid("partition")[told]]
        offline = rows.mask("error", "LEADER_NOT_AVAILABLE")[told]
        if not self.tallies.kept and not offline.any():
            return
        of = rows.numbers(self._PLACE, told)
        first = np.full(int(of.max(initial=-1)) + 1, len(told))
        np.minimum.at(first, of[offline], np.flatnonzero(offline))
        known = among(rows.part(self._PLACE, told), self.tallies.totals().keys) >= 0
        self._led.add(rows, told[~offline & (known | (np.arange(len(told)) > first[of]))])
        self.tallies.add(rows, told[offline])

    def findings(self) -> Iterator[Finding]:
        led = dict(self._led.items())
        topics: dict[tuple[Any, ...], tuple[Tally, dict[int, float]]] = {}
        for (host, client, topic, partition), one in self.tallies.items():
            fine = led.get((host, client, topic, partition), Tally())
            seconds: float = _longest(sorted(one.steps), sorted(fine.steps), one.steps)[0]
            if fine.first is None or fine.first > (one.last or 0):
                seconds = ((one.last or 0) - (one.first or 0)) / 1e6
            if seconds >= self.limits.offline_seconds:
                tally, partitions = topics.setdefault((host, client, topic), (Tally(), {}))
                tally.join(one)
                partitions[partition] = seconds
        for (host, client, topic), (tally, partitions) in topics.items():
            some = "a partition" if len(partitions) == 1 else f"{len(partitions)} partitions"
            said = f"Metadata responses said for {max(partitions.values()):.0f} s that {some} had no leader"
            only = next(iter(partitions)) if len(partitions) == 1 else None
            yield self.found(said, tally, client_host=host, client_id=client, topic=topic, partition=only)


def _longest(steps: list[int], fine: list[int], counts: dict[int, int]) -> tuple[int, int]:
    """The longest time with failures and without a success between: its seconds, and its failures."""
    best, first, count = (0, 0), 0, 0
    for k, step in enumerate(steps):
        between = bisect.bisect_left(fine, step + 1) > bisect.bisect_left(fine, steps[k - 1])
        if k == 0 or between:
            first, count = step, 0
        count += counts[step]
        best = max(best, ((step - first) * _STEP_SECONDS, count))
    return best


_STEP_SECONDS: Final = 10
"""Tallies count by steps of this length."""
