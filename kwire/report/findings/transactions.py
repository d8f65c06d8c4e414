"""Rules about transactions: producers of an old epoch that still write, and readers that wait for transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kwire.report.findings.rule import CLIENT, FRAME, Finding, Rule, Together, committed_reads, keyed
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Rows, Tally

__all__ = ["HeldBack", "Limits", "Zombies"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding."""

    zombie_writes: int = 1
    """Requests with batches of an old epoch, after another client wrote with a newer one."""
    held_seconds: float = 30.0
    """Time that readers of committed records waited for the end of transactions, of one topic,"""
    held_part: float = 0.5
    """if it is so large a part of the time that they read."""


_MOST: Final = 1 << 16
"""Producers, and readers of partitions, that are remembered."""


class Zombies(Rule[Limits]):
    """A producer goes on to write with an old epoch, although another one has taken its place.

    Two programs have the same transactional.id, or one was thought to be dead.
    """

    name = "zombie-producers"
    finds = "a producer that still writes with an old epoch, after another client wrote with a newer one of the same id"
    thresholds: Mapping[str, str] = {"zombie_writes": "{}"}
    place = 215
    tables: tuple[str, ...] = ("records",)
    also: tuple[str, ...] = ("frames",)
    together: Together = "producer"
    severity = "high"
    advice = (
        "find the program that was replaced and still runs, and stop it; give each running producer a transactional.id "
        "of its own"
    )
    _COLUMNS = ("producer_id", "producer_epoch", "capture", "connection")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._newest: dict[int, tuple[int, str, int]] = {}
        """By producer id: the highest epoch, and the capture and connection that it came on."""
        self._clients: dict[tuple[str, int], tuple[str | None, str | None]] = {}
        self._found: dict[tuple[int, int, str, int, int], Tally] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            asked = rows.where(api_name="Produce", direction="request")
            of, keys = keyed(rows, ("capture", "connection", *CLIENT), asked)
            for capture, connection, *client in keys if len(of) else ():
                if len(self._clients) < _MOST:
                    self._clients[capture, connection] = (client[0], client[1])
            return
        sent = np.flatnonzero(rows.mask("source", "produce") & rows.mask("status", "ok"))
        sent = sent[rows.values("producer_id", -1)[sent] >= 0]
        if not len(sent):
            return
        # One row for each request and producer: records of a batch stand together.
        of = rows.numbers((*self._COLUMNS, "frame"), sent)
        sent = sent[np.append(True, of[1:] != of[:-1])]
        times = rows.times[sent].tolist()
        frames = tuples(rows.part((*self._COLUMNS, "frame"), sent))
        for time, (producer, epoch, capture, connection, frame) in zip(times, frames, strict=True):
            newest, *where = self._newest.get(producer, (-1, "", -1))
            if epoch >= newest:
                self._newest.pop(producer, None)
                self._newest[producer] = epoch, capture, connection
                if len(self._newest) > _MOST:
                    del self._newest[next(iter(self._newest))]
            elif where != [capture, connection]:
                key = producer, newest, capture, connection, epoch
                seen = None if time == UNDATED else time
                if len(self._found) < _MOST or key in self._found:
                    one = Tally(1, 0, seen, seen, ((capture, connection, frame),))
                    self._found.setdefault(key, Tally()).join(one)

    def findings(self) -> Iterator[Finding]:
        for (producer, newest, capture, connection, epoch), one in self._found.items():
            if one.count >= self.limits.zombie_writes:
                host, client = self._clients.get((capture, connection), (None, None))
                times = "once" if one.count == 1 else f"{one.count} times"
                said = f"producer {producer} wrote {times} with epoch {epoch}, after another client had epoch {newest}"
                yield self.found(said, one, client_host=host, client_id=client)


class HeldBack(Rule[Limits]):
    """Readers of committed records wait for transactions most of the time, although each of these does end.

    What a reader gets is as late as the longest of the transactions that are open.
    """

    name = "held-back-readers"
    finds = (
        "readers with `read_committed` that wait for the end of transactions most of the time. One that never ends is "
        "in `hanging-transactions`"
    )
    thresholds: Mapping[str, str] = {"held_seconds": "{}", "held_part": "{} of the time"}
    place = 136
    tables: tuple[str, ...] = ("partitions",)
    together: Together = "topic"
    severity = "low"
    advice = (
        "commit more often (for Kafka Streams commit.interval.ms), if records are to be there sooner; the table "
        "transactions says which producer holds readers back, and by how much"
    )
    _PLACE = ("capture", "connection", "topic", "partition")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._last: dict[tuple[Any, ...], tuple[int, bool]] = {}
        """By connection and partition: when the last response came, and whether its reader waited."""
        self._of: dict[tuple[Any, ...], list[float]] = {}
        """By topic: microseconds in which readers waited, and all."""
        self._where: dict[tuple[Any, ...], Tally] = {}

    def take(self, name: str, rows: Rows) -> None:
        told, of, places = committed_reads(rows, self._PLACE)
        if not len(told):
            return
        stable, mark = rows.values("last_stable_offset")[told], rows.values("high_watermark", -1)[told]
        waits = (stable < mark) & (rows.values("record_bytes")[told] <= 0)
        times = rows.times[told]
        begins = np.append(True, of[1:] != of[:-1])
        before, waited = np.append(times[:1], times[:-1]), np.append(False, waits[:-1])
        for at in np.flatnonzero(begins).tolist():
            before[at], waited[at] = self._last.get(places[of[at]], (int(times[at]), False))
        for at in np.flatnonzero(np.append(begins[1:], True)).tolist():
            self._last.pop(places[of[at]], None)
            self._last[places[of[at]]] = int(times[at]), bool(waits[at])
            if len(self._last) > _MOST:
                del self._last[next(iter(self._last))]
        spans = np.maximum(times - before, 0)
        held = np.where(waits & waited, spans, 0)
        both = rows.totals(told, ("topic",), spans, held)
        for topic, _, total, part in both:
            mine = self._of.setdefault((topic,), [0, 0])
            mine[0], mine[1] = mine[0] + total, mine[1] + part
        hits = told[held > 0]
        for topic, *frame in tuples(rows.part(("topic", *FRAME), hits)):
            mine_ = self._where.setdefault((topic,), Tally())
            if mine_.count >= _MOST:
                break
            mine_.join(Tally(1, 0, None, None, (tuple(frame),)))
        if len(hits):
            for topic, _, first, last in rows.totals(hits, ("topic",), between=rows.times[hits]):
                self._where[(topic,)].join(Tally(0, 0, first, last, ()))

    def findings(self) -> Iterator[Finding]:
        for key, (total, held) in self._of.items():
            if held >= self.limits.held_seconds * 1e6 and held >= self.limits.held_part * total:
                said = (
                    f"readers with read_committed waited for the end of transactions in {held / total:.0%} of the time"
                )
                said += f", {held / 1e6:.0f} s in all"
                yield self.found(said, self._where[key], topic=key[0])
