"""Rules about batches that producers send again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.report.findings.rule import CLIENT, FRAME, Finding, Rule, Together, kafka_connections
from kwire.report.sums import runs, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally, numbers

__all__ = ["Duplicates", "Limits", "Retried"]

_Place = TypeVar("_Place")


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    retried_batches: int = 1
    """Batches that one producer sent again (same producer id, epoch and sequence)."""
    duplicate_batches: int = 1
    """Batches that one client sent again without such an id, although the first may have been written."""


_WRITTEN: Final = ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
"""Errors after which a batch may be there all the same."""
_MOST: Final = 1 << 16
"""Batches that came again, and places with known errors,"""
_MOST_REFUSALS: Final = 1 << 10
"""and errors of each."""


class _Refusals(Generic[_Place]):
    """When errors were reported, by place."""

    def __init__(self) -> None:
        self._of: dict[_Place, list[int]] = {}

    def add(self, place: _Place, time: int) -> None:
        """Take an error."""
        if len(self._of) < _MOST or place in self._of:
            mine = self._of.setdefault(place, [])
            if len(mine) < _MOST_REFUSALS:
                mine.append(time)

    def between(self, place: _Place, first: int, last: int) -> bool:
        """Whether there was one in a place from one time to another."""
        return any(first <= time <= last for time in self._of.get(place, ()))


class Retried(Rule[Limits]):
    """A producer sends a batch again, and no response has said that the first was refused.

    In normal operation a batch is refused after a leader has moved, and sent to the next leader.
    """

    name = "retried-batches"
    finds = (
        "a batch that a producer sent again (same producer id, epoch and sequence), though no response had "
        "refused it: after a leader has moved, batches are refused in ordinary life"
    )
    thresholds: Mapping[str, str] = {"retried_batches": "{}"}
    place = 180
    tables: tuple[str, ...] = ("records", "partitions")
    keys: tuple[str, ...] = ("producer_id", "of", "partition")
    together: Together = "topic"
    severity = "low"
    advice = (
        "see why brokers do not answer in time (request.timeout.ms, acks=all with slow followers, lost connections)"
    )

    _BACK = 5
    """Batches in flight that an idempotent producer may have."""
    _KEPT = 1 << 16
    """Batches that are remembered from one call to the next."""
    _OF = ("producer_id", "producer_epoch", "of", "partition")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._before: pa.Table | None = None
        """The last batches of each producer and partition."""
        self._again: list[pa.Table] = []
        """Batches that came again, with where and when the one before was sent."""
        self._found = 0
        self._refused: _Refusals[tuple[str, int, str | None, int | None]] = _Refusals()

    def take(self, name: str, rows: Rows) -> None:
        if name == "records":
            self._sent(rows)
            return
        told = rows.where(api_name="Produce", direction="response", status="ok")
        told = told[(rows.valid("error") & ~rows.mask("error", ("NONE", *_WRITTEN)))[told]]
        columns = ("capture", "connection", "topic", "partition")
        for time, place in zip(rows.times[told].tolist(), tuples(rows.part(columns, told)), strict=True):
            self._refused.add(place, time)

    def _sent(self, rows: Rows) -> None:
        known = np.flatnonzero(rows.values("producer_id", -1) >= 0)
        if not len(known):
            return
        known = known[(rows.mask("source", "produce") & rows.mask("status", "ok"))[known]]
        sent = rows.part(rows.table.column_names, known)
        if not sent.num_rows:
            return
        sent = sent.append_column("of", pc.coalesce(sent["topic"], sent["topic_id"])).drop_columns(
            ["topic", "topic_id"]
        )
        # The first record of each batch. The batches of several partitions follow each other in a frame.
        sent = sent.take(pa.array(runs(sent, ("capture", "frame", *self._OF))))
        old = 0
        if self._before is not None:
            old = self._before.num_rows
            sent = pa.concat_tables([self._before, sent])
        logs, frames = numbers(sent, self._OF), numbers(sent, ("capture", "frame"))
        order = np.argsort(logs, kind="stable")
        # Rows may be cut within a batch: what goes on with one is none of its own.
        order = order[np.append(True, (np.diff(logs[order]) != 0) | (np.diff(frames[order]) != 0))]
        own, frames = logs[order], frames[order]
        sequences = pc.fill_null(sent["sequence"], -1).to_numpy()[order]
        first = np.full(len(order), -1)
        for back in range(1, min(self._BACK, len(order) - 1) + 1):
            same = (own[back:] == own[:-back]) & (sequences[back:] == sequences[:-back])
            same &= (frames[back:] != frames[:-back]) & (first[back:] < 0)
            first[back:][same] = order[:-back][same]
        hits = np.flatnonzero((first >= 0) & (order >= old))
        hits = hits[np.argsort(order[hits])]
        if len(hits) and self._found < _MOST:
            self._again.append(_again(sent, first[hits], order[hits]))
            self._found += len(hits)
        kept = np.append(own[self._BACK :] != own[: -self._BACK], np.ones(min(self._BACK, len(own)), bool))
        self._before = sent.take(pa.array(np.sort(order[kept])[-self._KEPT :]))

    def findings(self) -> Iterator[Finding]:
        self.tallies: Tallies = Tallies(*self.keys)
        if self._again:
            again = Rows(pa.concat_tables(self._again))
            columns = ("first_capture", "first_connection", "of", "partition")
            places = zip(tuples(again.table.select(columns)), *_times(again), strict=True)
            hits = [k for k, one in enumerate(places) if not self._refused.between(*one)]
            self.tallies.add(again, np.array(hits, np.int64), each=True)
        # Partitions of a topic are not distinguished: a lost connection, or a broker that is late, has several.
        producers: dict[tuple[Any, ...], tuple[Tally, list[int]]] = {}
        for (producer, topic, partition), one in self.tallies.items():
            tally, partitions = producers.setdefault((producer, topic), (Tally(), []))
            tally.join(one)
            partitions.append(partition)
        for (producer, topic), (one, partitions) in producers.items():
            if one.count >= self.limits.retried_batches:
                said = f"producer {producer} sent {one.count} batches again"
                if len(partitions) > 1:
                    said += f", to {len(partitions)} partitions"
                yield self.found(said, one, topic=topic, partition=partitions[0] if len(partitions) == 1 else None)


_FIRST: Final = ("capture", "connection", "frame_timestamp")


def _again(sent: pa.Table, first: Array, again: Array) -> pa.Table:
    """Batches that came again, with where and when the first of each was sent."""
    made = sent.take(pa.array(again))
    for name in _FIRST:
        made = made.append_column(f"first_{name}", sent[name].take(pa.array(first)))
    return made


def _times(again: Rows) -> tuple[list[int], list[int]]:
    """When each batch was sent first, and when it came again."""
    return again.values("first_frame_timestamp").tolist(), again.times.tolist()


class Duplicates(Rule[Limits]):
    """A producer without idempotence sends a batch again, since no answer came to the first one.

    The first may have been written, and then it is there twice.

    Such a batch has nothing that names it. It is the same if its first record has the same time, topic and partition,
    and comes from the same client. Programs that share a client_id may send such batches at once. So the first must
    have been left without an answer, or its answer says that it may be written. And the second must come later.
    """

    name = "duplicate-produces"
    finds = (
        "a batch that a producer without idempotence sent again, since no answer came to the first (or one "
        "that says that it may be written): its records may be there twice"
    )
    thresholds: Mapping[str, str] = {"duplicate_batches": "{}"}
    place = 170
    tables: tuple[str, ...] = ("records", "connections", "frames")
    keys: tuple[str, ...] = (*CLIENT, "of")
    advice = (
        "set enable.idempotence=true, with which brokers drop what comes again; and see why no answer came in time "
        "(request.timeout.ms, lost connections, slow followers)"
    )
    _LATER = 20_000
    """Microseconds that a client waits at least before it sends again; by default they are 100 ms."""
    _KEPT = 1 << 14
    """Batches that are remembered from one call to the next."""
    _SAME = ("of", "partition", "timestamp")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._before: pa.Table | None = None
        """The last batches."""
        self._again: list[pa.Table] = []
        """Batches that came again, with where and when the first was sent."""
        self._found = 0
        self._open: dict[tuple[str, int], tuple[str, str | None]] = {}
        """Connections with requests that were not answered, and whose they are."""
        self._answered = Tallies("of_capture", "connection", *CLIENT, largest=True)
        """Of connections and clients: when the last request was sent that was answered."""
        self._unsure: _Refusals[tuple[str, int]] = _Refusals()
        """Of connections: errors after which a batch may be there all the same."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "records":
            self._sent(rows)
        elif name == "connections":
            made = kafka_connections(rows)
            made = made[rows.values("unanswered")[made] > 0]
            for capture, connection, *client in tuples(rows.part(("capture", "connection", *CLIENT), made)):
                if len(self._open) < _MOST:
                    self._open[capture, connection] = client[0], client[1]
        else:
            self._answers(rows)

    def _answers(self, rows: Rows) -> None:
        told = rows.where(api_name="Produce", direction="response")
        made = rows.part((*FRAME, "timestamp", *CLIENT, "latency_ms"), told)
        made = made.append_column("of_capture", made["capture"])
        latencies = pc.fill_null(made["latency_ms"], 0.0).to_numpy() * 1000
        self._answered.add(Rows(made), np.arange(len(told)), amount=rows.times[told] - latencies)
        wrong = rows.errors
        if wrong.table.num_rows:
            at = wrong.where(api_name="Produce", error=_WRITTEN)
            places = tuples(wrong.part(("capture", "connection"), at))
            for time, (capture, connection) in zip(wrong.times[at].tolist(), places, strict=True):
                self._unsure.add((capture, connection), time)

    def _sent(self, rows: Rows) -> None:
        # Times decide what came later.
        known = np.flatnonzero((rows.values("producer_id", -1) < 0) & rows.valid("frame_timestamp"))
        if not len(known):
            return
        known = known[(rows.mask("source", "produce") & rows.mask("status", "ok") & rows.valid("timestamp"))[known]]
        if not len(known):
            return
        columns = (*FRAME, "frame_timestamp", "topic", "topic_id", "partition", "timestamp")
        sent = rows.part(columns, known)
        sent = sent.append_column("of", pc.coalesce(sent["topic"], sent["topic_id"])).drop_columns(
            ["topic", "topic_id"]
        )
        # The first record of each batch.
        sent = sent.take(pa.array(runs(sent, ("capture", "frame", "of", "partition"))))
        old = 0
        if self._before is not None:
            old = self._before.num_rows
            sent = pa.concat_tables([self._before, sent])
        # Rows may be cut within a batch: what goes on with one is none of its own.
        frames = numbers(sent, ("capture", "frame", "of", "partition"))
        first = np.unique(frames, return_index=True)[1]
        own = np.zeros(sent.num_rows, bool)
        own[first] = True
        times = sent["frame_timestamp"].cast(pa.int64()).to_numpy()
        same = numbers(sent, self._SAME)
        order = np.lexsort((times, same))
        order = order[own[order]]
        later = (np.diff(same[order]) == 0) & (np.diff(times[order]) >= self._LATER)
        one, other = order[:-1][later], order[1:][later]
        new = other >= old
        if new.any() and self._found < _MOST:
            self._again.append(_again(sent, one[new], other[new]))
            self._found += int(new.sum())
        self._before = sent.filter(pa.array(own)).slice(max(0, int(own.sum()) - self._KEPT))

    def findings(self) -> Iterator[Finding]:
        if not self._again:
            return
        answered: dict[tuple[str, int], float] = {}
        clients = dict(self._open)
        for (capture, connection, host, client), one in self._answered.items():
            answered[capture, connection] = max(one.amount, answered.get((capture, connection), 0.0))
            clients.setdefault((capture, connection), (host, client))
        again = Rows(pa.concat_tables(self._again))
        firsts = list(tuples(again.table.select(["first_capture", "first_connection"])))
        others = list(tuples(again.table.select(["capture", "connection"])))
        sent, then = _times(again)
        hits = [
            k
            for k, place in enumerate(firsts)
            if clients.get(others[k], clients.get(place)) == clients.get(place)
            # A microsecond is lost where latencies are rounded.
            and (
                (place in self._open and sent[k] > answered.get(place, 0.0) + 1)
                or self._unsure.between(place, sent[k], then[k])
            )
        ]
        made = again.table.take(pa.array(hits, pa.int64()))
        whose = [clients.get(firsts[k], (None, None)) for k in hits]
        for k, name in enumerate(CLIENT):
            made = made.append_column(name, pa.array([one[k] for one in whose], pa.string()))
        self.tallies: Tallies = Tallies(*self.keys)
        self.tallies.add(Rows(made), np.arange(len(hits)), each=True)
        many = self.tallies.totals().count >= self.limits.duplicate_batches
        for (host, client, topic), one in self.tallies.items(many):
            said = f"{one.count} batches were sent again, without idempotence, although the first may have been written"
            yield self.found(said, one, client_host=host, client_id=client, topic=topic)
