"""Rules about how consumers fetch and commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kwire.naming import counted
from kwire.report.audit import OF_BROKERS
from kwire.report.findings.rule import (
    BROKER,
    CLIENT,
    FRAME,
    PROCESS,
    Finding,
    Rule,
    Together,
    busiest,
    committed_reads,
    counts,
    together,
)
from kwire.report.sums import tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally, WithEarlier, among, firsts

__all__ = ["EmptyFetches", "Hanging", "Limits", "Resets", "SmallFetches"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    empty_fetches: int = 300
    """Fetch responses of one connection in a minute, if nine of ten are without records."""
    small_fetches: int = 600
    """Fetch responses of one connection in a minute,"""
    small_fetch_bytes: int = 16_384
    """with fewer bytes of records than this,"""
    small_fetch_records: int = 1_000
    """although the log of a partition has at least this many more records."""
    offset_resets: int = 1
    """Fetch responses that tell one client that the log of a topic does not have the offset."""
    hanging_seconds: float = 60.0
    """For how long the last stable offset of a partition stood still, with records after it."""


class EmptyFetches(Rule[Limits]):
    """Fetches one after the other that hardly ever bring anything.

    They are counted by connection, since a consumer asks each broker for itself, and waits there.
    """

    name = "empty-fetches"
    finds = "Fetch responses without records on a connection, nine of ten, one behind the other"
    thresholds: Mapping[str, str] = {"empty_fetches": "{} in a minute"}
    place = 100
    tables: tuple[str, ...] = ("frames", "partitions")
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, *PROCESS)
    by_process = True
    advice = "let the broker wait: raise fetch.max.wait.ms and fetch.min.bytes; poll with a timeout"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._full = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            return
        answers = rows.where(api_name="Fetch", direction="response")
        if name == "frames":
            self.tallies.add(rows, answers)
            return
        filled = answers[rows.values("record_bytes")[answers] > 0]
        # Each frame once, however many partitions it fills.
        self._full.add(rows, filled[firsts(rows.numbers(("capture", "frame", *CLIENT), filled))])

    def findings(self) -> Iterator[Finding]:
        all_of, limit = self.tallies.totals().count, self.limits.empty_fetches
        empty = all_of - counts(self.tallies, self._full)
        much = (all_of >= limit) & (empty * 10 >= all_of * 9)
        found: dict[tuple[Any, ...], tuple[Tally, int]] = {}
        for (key, one), count in zip(self.tallies.items(much), empty[much].tolist(), strict=True):
            if one.busiest >= limit:
                mine, none = found.get(key[: len(CLIENT)], (Tally(), 0))
                mine.join(one)
                found[key[: len(CLIENT)]] = mine, none + count
        for (host, client), (one, count) in found.items():
            said = f"{count} of {one.count} Fetch responses had no records, {one.busiest} came in a minute"
            yield self.found(said, one, count=count, client_host=host, client_id=client)


class SmallFetches(Rule[Limits]):
    """Fetches that bring little each, although the log has much more: the consumer does not ask for more."""

    name = "small-fetches"
    finds = (
        "many Fetch responses with few records, although the log has many more: the limits of the consumer are too low"
    )
    thresholds: Mapping[str, str] = {
        "small_fetches": "{} in a minute",
        "small_fetch_bytes": "{}",
        "small_fetch_records": "{} more",
    }
    place = 105
    tables: tuple[str, ...] = ("partitions",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, *PROCESS)
    by_process = True
    advice = "let it get more at a time: raise max.partition.fetch.bytes and fetch.max.bytes (fetch.message.max.bytes)"
    _PLACE = ("capture", "connection", "topic", "partition")
    _COLUMNS = (
        *FRAME, "frame_timestamp", "direction", "api_name", "status", *CLIENT, "client_port", *BROKER, "topic",
        "partition", "offset", "high_watermark", "record_bytes", "records",
    )  # fmt: skip
    _MOST = 1 << 14
    """Requests that wait for the next batch."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._asked: pa.Table | None = None
        """The last request for each partition, if its response is not in the same batch."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            return
        if not len(rows.where(api_name="Fetch", status="ok")):
            return
        if self._asked is not None:
            rows = WithEarlier(Rows(self._asked), rows, self._COLUMNS)
        both = rows.where(api_name="Fetch", status="ok")
        asks = rows.mask("direction", "request")
        places = rows.numbers(self._PLACE, both)
        order = np.argsort(places, kind="stable")
        first, then = both[order[:-1]], both[order[1:]]
        same = np.diff(places[order]) == 0
        last = both[order[np.append(~same, True)]]
        self._asked = rows.part(self._COLUMNS, np.sort(last[asks[last]])[-self._MOST :])
        # A response may have much of other partitions.
        got = np.sort(both[~asks[both]])
        frames = rows.numbers(("capture", "frame"), got)
        small = np.zeros(rows.table.num_rows, bool)
        sizes = rows.values("record_bytes")[got]
        small[got] = (sizes > 0) & (np.bincount(frames, weights=sizes)[frames] < self.limits.small_fetch_bytes)
        # The request has the offset. The response has the number of records, and the end of the log.
        pairs = same & small[then] & asks[first]
        first, then = first[pairs], then[pairs]
        more = rows.values("high_watermark")[then] - rows.values("offset")[first] - rows.values("records")[then]
        hits = np.sort(then[more >= self.limits.small_fetch_records])
        self.tallies.add(rows, hits[firsts(rows.numbers(("capture", "frame"), hits))])

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.small_fetches
        for (host, client), found in busiest(self.tallies, together(self.tallies)[1] >= limit):
            one = found.tally
            if one.busiest >= limit:
                few = counted(one.count, "Fetch response")
                said = f"{few} had few records, {one.busiest} in a minute, and the log had more"
                yield self.found(said, one, client_host=host, client_id=client, **found.who)


class Resets(Rule[Limits]):
    """A consumer asks for an offset that the log does not have.

    Records were deleted before they were read, or the log is shorter than it was. Then it goes on elsewhere, or not at
    all.

    A follower that does not have it yet is none: then the consumer asks the leader for the same offset.
    """

    name = "offset-resets"
    finds = (
        "a consumer that asks for an offset that the log does not have, and begins anew elsewhere: records "
        "are lost or read twice. Followers that do not have it yet do not count"
    )
    thresholds: Mapping[str, str] = {"offset_resets": "{}"}
    place = 130
    tables: tuple[str, ...] = ("partitions",)
    keys: tuple[str, ...] = (*CLIENT, "topic", "partition", *BROKER)
    severity = "high"
    advice = (
        "records were lost or are read twice: see whether retention is shorter than consumers are away or behind "
        "(retention.ms, retention.bytes), and whether the topic was made anew; auto.offset.reset says where to go on"
    )
    errors: frozenset[str] = frozenset(("OFFSET_OUT_OF_RANGE",))
    _PLACE = (*CLIENT, "topic", "partition")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._after = Tallies(*self._PLACE, *BROKER, "api_name", "offset_spec")
        """What was asked for in a place that had such an error, after it or in the same batch."""

    def take(self, name: str, rows: Rows) -> None:
        told = rows.where(api_name="Fetch", direction="response", error=tuple(self.errors))
        self.tallies.add(rows, told, each=True)
        if not self.tallies.kept:
            return
        asked = rows.where(api_name=("Fetch", "ListOffsets"), direction="request")
        places = self.tallies.totals().keys.select(list(self._PLACE)).group_by(list(self._PLACE)).aggregate([])
        self._after.add(rows, asked[among(rows.part(self._PLACE, asked), places) >= 0])

    def findings(self) -> Iterator[Finding]:
        after: dict[tuple[Any, ...], list[tuple[tuple[Any, ...], Tally]]] = {}
        for key, one in self._after.items():
            after.setdefault(key[:4], []).append((key[4:], one))
        topics: dict[tuple[Any, ...], tuple[Tally, dict[int, None], dict[str, None]]] = {}
        for (host, client, topic, partition, *broker), one in self.tallies.items():
            if client is not None and OF_BROKERS.fullmatch(client):
                continue
            asked = after.get((host, client, topic, partition), ())
            late = [key for key, other in asked if (other.last or 0) >= (one.first or 0)]
            asks = [spec for *_, api, spec in late if api == "ListOffsets"]
            if not asks and any([*key[:2]] != broker for key in late):
                continue
            tally, partitions, where = topics.setdefault((host, client, topic), (Tally(), {}, {}))
            tally.join(one)
            partitions[partition] = None
            where.update(dict.fromkeys(spec for spec in asks if spec))
        for (host, client, topic), (tally, partitions, where) in topics.items():
            if tally.count < self.limits.offset_resets:
                continue
            said = f"{counted(tally.count, 'Fetch response')} said that the log does not have the offset"
            if len(partitions) > 1:
                said += f", of {len(partitions)} partitions"
            if where:
                said += f"; then it asked for the {' and the '.join(sorted(where))} one"
            only = next(iter(partitions)) if len(partitions) == 1 else None
            yield self.found(said, tally, client_host=host, client_id=client, topic=topic, partition=only)


class Hanging(Rule[Limits]):
    """A transaction stays open, and readers with ``read_committed`` get no record after its beginning.

    The broker gives them the last stable offset, which is where the oldest open transaction begins.
    """

    name = "hanging-transactions"
    finds = "a transaction that stays open: readers with `read_committed` get no record after its beginning"
    thresholds: Mapping[str, str] = {"hanging_seconds": "{}"}
    place = 135
    tables: tuple[str, ...] = ("partitions",)
    together: Together = "topic"
    severity = "high"
    advice = (
        "find the producer that does not end its transaction (kafka-transactions.sh find-hanging, then abort), and "
        "see its transaction.timeout.ms; a program that commits by checkpoints may be meant to take so long"
    )
    explains: tuple[str, ...] = ("held-back-readers",)
    _PLACE = ("topic", "partition")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._open: dict[tuple[Any, ...], tuple[int, Tally]] = {}
        """By partition: the last stable offset, where records follow it, and since when it is the same."""
        self._stuck: dict[tuple[Any, ...], Tally] = {}
        """By partition: the longest time that was too long."""

    def take(self, name: str, rows: Rows) -> None:
        told, of, places = committed_reads(rows, self._PLACE)
        if not len(told):
            return
        stable, times = rows.values("last_stable_offset")[told], rows.times[told]
        stuck = stable < rows.values("high_watermark", -1)[told]
        goes_on = (of[1:] == of[:-1]) & (stable[1:] == stable[:-1]) & stuck[1:] & stuck[:-1]
        begins = np.flatnonzero(np.append(True, ~goes_on))
        ends = np.append(begins[1:], len(told)) - 1
        # Look at the first of each partition, which may continue one of an earlier batch, the last, and long ones.
        new = np.append(True, of[begins[1:]] != of[begins[:-1]])
        looked = new | np.append(new[1:], True) | (times[ends] - times[begins] >= self._least)
        self._join(
            rows, told, begins[looked], ends[looked], new[looked], [places[k] for k in of[begins[looked]]], stuck
        )

    @property
    def _least(self) -> float:
        return self.limits.hanging_seconds * 1e6

    def _join(
        self,
        rows: Rows,
        told: Array,
        begins: Array,
        ends: Array,
        new: Array,
        places: list[tuple[Any, ...]],
        stuck: Array,
    ) -> None:
        frames = tuples(rows.part(FRAME, told[begins]))
        stable = rows.values("last_stable_offset")[told[begins]].tolist()
        first, last = rows.times[told[begins]].tolist(), rows.times[told[ends]].tolist()
        counts_ = (ends - begins + 1).tolist()
        each = zip(places, frames, stable, first, last, counts_, new.tolist(), stuck[begins].tolist(), strict=True)
        for place, frame, offset, since, until, count, is_first, is_stuck in each:
            before = self._open.pop(place, None)
            if not is_stuck:
                continue
            now = Tally(count, 0, since, until, (frame,))
            if is_first and before is not None and before[0] == offset:
                before[1].join(now)
                now = before[1]
            self._open[place] = offset, now
            if _length(now) >= max(self._least, _length(self._stuck.get(place, Tally()))):
                self._stuck[place] = now

    def findings(self) -> Iterator[Finding]:
        topics: dict[str | None, list[tuple[int | None, Tally]]] = {}
        for (topic, partition), one in self._stuck.items():
            topics.setdefault(topic, []).append((partition, one))
        for topic, stuck in topics.items():
            tally = Tally()
            for _, one in stuck:
                tally.join(one)
            said = f"readers with read_committed waited for {max(_length(one) for _, one in stuck) / 1e6:.0f} s"
            said += " for the end of a transaction"
            if len(stuck) > 1:
                said += f", in {len(stuck)} partitions"
            yield self.found(said, tally, topic=topic, partition=stuck[0][0] if len(stuck) == 1 else None)


def _length(one: Tally) -> int:
    return (one.last or 0) - (one.first or 0)
