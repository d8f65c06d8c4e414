"""Rules about offsets that groups commit: those that go back, and how far they are behind the end of the log."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kwire.report.findings.committed import PLACE, Committed, InOrder
from kwire.report.findings.rule import CLIENT, Finding, Rule, Together, keyed
from kwire.report.sums import tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally

__all__ = ["Lag", "Limits", "Offsets", "OffsetsBack"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    offsets_back: int = 1
    """Commits of an offset that is lower than the one committed before."""
    lag: int = 10_000
    """Records between what a group has committed last and the end of the log."""


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
            self.commits.of_transactions(rows)
        else:
            self.take_partitions(rows)

    def take_partitions(self, rows: Rows) -> None:
        """Takes rows of ``partitions``."""
        raise NotImplementedError


class OffsetsBack(Offsets):
    """A group commits an offset that is lower than the one before."""

    name = "offsets-back"
    keys: tuple[str, ...] = (*PLACE, *CLIENT)
    advice = "unless somebody has reset the group: see who commits, two members may believe that they own the partition"

    def take_partitions(self, rows: Rows) -> None:
        self._judge(self.commits.of(rows), self.tallies)

    def _judge(self, found: InOrder, tallies: Tallies) -> None:
        if not len(found.at):
            return
        offsets, first = found.offsets, found.first
        before = np.append(offsets[:1], offsets[:-1])
        known, last = self.commits.before(found.places)
        before[first] = np.where(known, last, offsets[first])
        back = np.flatnonzero(offsets < before)
        back = back[np.argsort(found.at[back])]
        # In floating point: offsets of 64 bits may be farther apart than these hold.
        by = before[back].astype(np.float64) - offsets[back]
        tallies.add(found.rows, found.at[back], amount=by, each=True)

    def findings(self) -> Iterator[Finding]:
        # What waits is judged as it stands, and once more when more was read.
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
        group, topic, partition, host, client = key
        if one.count >= self.limits.offsets_back:
            said = f"{one.count} commits of a lower offset than before, by {int(one.amount)} records together"
            yield self.found(
                said, one, client_host=host, client_id=client, group_id=group, topic=topic, partition=partition
            )


_Log = tuple[str | None, int | None]


class Lag(Offsets):
    """How far what a group has committed last is behind the end of its topics."""

    name = "lag"
    advice = "add members (up to the number of partitions), or see what makes the consumer slow"
    _MOST_ASKED = 1_000
    """Produce requests of a connection and partition that wait for their responses."""
    _MOST_WAITING = 1 << 16
    """Connections and partitions with such."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._newest: dict[_Log, int] = {}
        self._waiting: dict[tuple[Any, ...], tuple[int, int, array[int]]] = {}
        """By capture, connection, topic and partition: the newest batch that was written (its offset, its records), and
        the records of requests without a response."""

    def take_partitions(self, rows: Rows) -> None:
        self.commits.of(rows)
        told = rows.where(api_name="Fetch", direction="response", status="ok")
        self._told(rows, told, "high_watermark")
        # No offset that a broker gives here is beyond the high watermark.
        self._told(rows, rows.where(api_name="ListOffsets", direction="response", status="ok"), "offset")
        self._written(rows)

    def _told(self, rows: Rows, told: Array, column: str) -> None:
        told = told[rows.values(column, -1)[told] >= 0]
        made = rows.part(("topic", "partition", column), told).group_by(["topic", "partition"], use_threads=False)
        made = made.aggregate([(column, "max")]).select(["topic", "partition", f"{column}_max"])
        for topic, partition, most in tuples(made):
            self._newest[topic, partition] = max(most, self._newest.get((topic, partition), 0))

    def _written(self, rows: Rows) -> None:
        """Produce: the response says where the batch begins, and the request how many records it has. Responses come
        in the order of requests."""
        made = rows.where(api_name="Produce", status="ok")
        if not len(made):
            return
        logs, keys = keyed(rows, ("capture", "connection", "topic", "partition"), made)
        asked = rows.mask("direction", "request")[made]
        offsets = rows.values("offset", -1)[made]
        records = rows.values("records", 1)[made]
        order = np.argsort(logs, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(logs[order]) != 0) + 1, len(order))
        last = 0
        for end in ends:
            mine, last = order[last:end], end
            key = keys[int(logs[mine[0]])]
            begin, count, queue = self._waiting.pop(key, (-1, 0, array("q")))
            queue.extend(records[mine[asked[mine]]].tolist())
            told = offsets[mine[~asked[mine]]]
            if len(told):
                latest = int(np.argmax(told))
                if told[latest] > begin:
                    begin, count = int(told[latest]), queue[latest] if latest < len(queue) else 1
                del queue[: len(told)]
            if queue or begin < 0:
                del queue[: -self._MOST_ASKED]
                self._waiting[key] = begin, count, queue
                if len(self._waiting) > self._MOST_WAITING:
                    self._settle(next(iter(self._waiting)))
            else:
                self._reach(key[2:], begin + count)

    def _reach(self, log: tuple[Any, ...], end: int) -> None:
        topic, partition = log
        self._newest[topic, partition] = max(end, self._newest.get((topic, partition), 0))

    def _settle(self, key: tuple[Any, ...]) -> None:
        """What is known to be written, although some requests had no response: perhaps it is not the last of them that
        the last response was for, so the smallest of them counts."""
        begin, count, queue = self._waiting.pop(key)
        if begin >= 0:
            self._reach(key[2:], begin + min(count, *queue))

    @property
    def newest(self) -> dict[_Log, int]:
        """The end of each topic and partition, as far as it is known: the newest high watermark, what was written."""
        made = dict(self._newest)
        for (_, _, topic, partition), (begin, count, queue) in self._waiting.items():
            if begin >= 0:
                end = begin + min(count, *queue)
                made[topic, partition] = max(end, made.get((topic, partition), 0))
        return made

    def lags(self) -> Iterator[tuple[str, str | None, int | None, int]]:
        """Group, topic, partition and how many records it is behind."""
        ends = self.newest
        for (group, topic, partition), row in self.commits.last():
            newest = ends.get((topic, partition))
            if newest is not None and group is not None and row["offset"] >= 0:
                yield group, topic, partition, max(0, newest - row["offset"])

    def findings(self) -> Iterator[Finding]:
        ends = self.newest
        for (group, topic, partition), row in self.commits.last():
            newest = ends.get((topic, partition))
            if newest is None or row["offset"] < 0 or newest - row["offset"] < self.limits.lag:
                continue
            one = Tally(1, 0, row["time"], row["time"], ((row["capture"], row["connection"], row["frame"]),))
            said = f"{newest - row['offset']} records behind: {row['offset']} committed, the log ends at {newest}"
            yield self.found(
                said, one, count=newest - row["offset"], client_host=row["client_host"], client_id=row["client_id"],
                group_id=group, topic=topic, partition=partition,
            )  # fmt: skip
