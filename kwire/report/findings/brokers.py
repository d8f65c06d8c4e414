"""Rules about brokers: those that stand still."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.report.findings.rule import BROKER, FRAME, Finding, Rule, Together
from kwire.report.sums import UNDATED, WAITING, tuples
from kwire.report.tallies import MOST_EVIDENCE, Array, Rows, Tally

__all__ = ["Limits", "Stalled"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    stalled_seconds: float = 2.0
    """For how long a broker answered nobody,"""
    stalled_connections: int = 2
    """while requests of this many connections waited that brokers answer at once."""


_SLOT: Final = 250_000
"""Microseconds. In a slot a broker has answered, or it has not."""
_MOST_RUNS: Final = 1 << 14
"""Runs of slots that are kept of a broker, the latest."""
_MOST_LATE: Final = 1 << 16
"""Responses that came late, of all brokers."""
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


@dataclass(slots=True)
class _Stall:
    """Slots without an answer, and who waited meanwhile."""

    slots: int = 0
    tally: Tally = field(default_factory=Tally)
    connections: set[tuple[str, int]] = field(default_factory=set)
    apis: Counter[str] = field(default_factory=Counter)


class Stalled(Rule[Limits]):
    """A broker that answers nobody for seconds, although several clients wait for what it answers at once."""

    name = "stalled-brokers"
    place = 140
    tables: tuple[str, ...] = ("frames",)
    keys: tuple[str, ...] = BROKER
    together: Together = "broker"
    severity = "high"
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

    def take(self, name: str, rows: Rows) -> None:
        told = rows.where(direction="response")
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
            longest = max(wrong, key=lambda one: one.slots)
            said = f"it answered nobody for {longest.slots * _SLOT / 1e6:.1f} s"
            if len(wrong) > 1:
                said = f"{len(wrong)} times it answered nobody, for {longest.slots * _SLOT / 1e6:.1f} s at most"
            waited = ", ".join(f"{api} ({count})" for api, count in apis.most_common(5))
            of = f"{broker[0]}:{broker[1]}"
            yield self.found(
                f"{of}: {said}, while {len(longest.connections)} connections waited: {waited}", tally, count=len(wrong)
            )

    def _stalls(self) -> dict[tuple[Any, ...], dict[int, _Stall]]:
        """The stalls of each broker, by their last slot."""
        made: dict[tuple[Any, ...], dict[int, _Stall]] = {}
        silent: dict[tuple[Any, ...], tuple[list[int], list[int]]] = {}
        least = self.limits.stalled_seconds * 1e6 / _SLOT
        for time, row in self._late:
            broker, (capture, connection, frame, api, latency) = row[: len(BROKER)], row[len(BROKER) :]
            if broker not in silent:
                begins, ends = self._runs[broker].all()
                long = np.flatnonzero(begins[1:] - ends[:-1] - 1 >= least)
                silent[broker] = (ends[long] + 1).tolist(), begins[long + 1].tolist()
            first, after = silent[broker]
            # Slots in which it waited as a whole.
            asked = -(-(time - round(latency * 1000)) // _SLOT)
            at = bisect.bisect_right(after, time // _SLOT) - 1
            while at >= 0 and after[at] - asked >= least:
                slots = after[at] - max(first[at], asked)
                if slots >= least:
                    one = made.setdefault(broker, {}).setdefault(after[at], _Stall())
                    one.slots = max(one.slots, slots)
                    one.connections.add((capture, connection))
                    one.apis[api] += 1
                    where = ((capture, connection, frame),) if len(one.tally.where) < MOST_EVIDENCE else ()
                    one.tally.join(Tally(1, 0, time - round(latency * 1000), time, where))
                at -= 1
        return made
