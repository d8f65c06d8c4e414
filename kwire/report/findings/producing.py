"""Rules about what producers write: batches, compression, acknowledgements, transactions, and where it goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.naming import counted
from kwire.report.findings.rule import CLIENT, PROCESS, Finding, Rule, Together, busiest, counts, keyed, together
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Rows, Tallies, Tally, firsts, numbers

__all__ = [
    "Aborted", "Large", "Limits", "MixedAcks", "NoAcks", "Skew", "TinyBatches", "Uncompressed", "Unordered",
    "WrongTimes",
]  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    tiny_batches: int = 1000
    """Batches of one process to a partition in a minute, or ten times as many to all of a topic,"""
    tiny_batch_records: float = 2.0
    """if they have fewer records than this on average."""
    uncompressed_bytes: int = 10_000_000
    """Bytes of record sets without compression, of one topic."""
    mixed_acks: int = 1
    """Produce requests with acks=0, and as many with acks=all, of one client."""
    unacknowledged: int = 200
    """Produce requests of one client with acks=0, if it has none with acks=all."""
    pipelined: int = 100
    """Produce requests of one client without idempotence that it sent before the one before was answered."""
    aborted: int = 10
    """Transactions that one client aborted,"""
    aborted_part: float = 0.5
    """if they are so large a part of all of its transactions."""
    skew: float = 5.0
    """How many times the mean the largest partition of a topic got,"""
    skewed_bytes: int = 1_000_000
    """of at least this many bytes, in four partitions or more."""
    wrong_times: int = 1
    """Records of one topic whose time is before 1980, or later than the capture,"""
    hours_ahead: float = 1.0
    """by more than this. Brokers of 4.0 and later refuse records that are an hour ahead."""
    large_requests: int = 950_000
    """Bytes of a Produce request: clients refuse more than 1,048,576 (max.request.size)."""


class TinyBatches(Rule[Limits]):
    """Many batches with hardly a record in them, to the same partition: a producer that waits a bit fills them.

    Where records come now here, now there, it would have to wait for long; then only very many are too many.
    """

    name = "tiny-batches"
    finds = "many batches with hardly a record in them, of one process and topic"
    thresholds: Mapping[str, str] = {
        "tiny_batches": "{} in a minute to one partition, ten times as many to all",
        "tiny_batch_records": "{}",
    }
    place = 10
    tables: tuple[str, ...] = ("partitions",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "topic", "partition", *PROCESS)
    by_process = True
    advice = "let the producer wait for more records (linger.ms) and fill batches (batch.size)"
    _IN_ALL = 10
    """How many times as many as to one partition are too many to all of them."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            return
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        sent = sent[rows.valid("batches", "records")[sent]]
        self.tallies.add(rows, sent, count=rows.values("batches")[sent], amount=rows.values("records")[sent])

    def findings(self) -> Iterator[Finding]:
        totals, of = self.tallies.totals(), together(self.tallies)[0]
        if not len(of):
            return
        topics = numbers(totals.keys, (*CLIENT, "topic"))
        much = np.zeros(int(of.max()) + 1, bool)
        much[of] = np.bincount(topics, weights=totals.count)[topics] >= self.limits.tiny_batches
        found: dict[tuple[Any, ...], tuple[Tally, int, dict[str, Any]]] = {}
        for (*key, _), process in busiest(self.tallies, much):
            tally, most, who = found.get(tuple(key), (Tally(), -1, {}))
            tally.join(process.tally)
            if process.tally.busiest > most:
                most, who = process.tally.busiest, process.who
            found[tuple(key)] = tally, most, who
        for (host, client, topic), (tally, most, who) in found.items():
            often = most >= self.limits.tiny_batches or tally.busiest >= self._IN_ALL * self.limits.tiny_batches
            each = tally.amount / tally.count
            if often and each < self.limits.tiny_batch_records:
                said = f"{tally.count} batches with {each:.1f} records each, {tally.busiest} in a minute"
                yield self.found(said, tally, client_host=host, client_id=client, topic=topic, **who)


class Uncompressed(Rule[Limits]):
    """Large topics that are not compressed."""

    name = "no-compression"
    finds = "large topics that are not compressed"
    thresholds: Mapping[str, str] = {"uncompressed_bytes": "{}"}
    place = 20
    tables: tuple[str, ...] = ("partitions",)
    keys: tuple[str, ...] = ("topic",)
    together: Together = "topic"
    severity = "low"
    advice = "set compression.type (lz4 or zstd) at the producers"

    def take(self, name: str, rows: Rows) -> None:
        sent = rows.where(api_name="Produce", direction="request", status="ok", compression="none")
        self.tallies.add(rows, sent, amount=rows.values("record_bytes")[sent])

    def findings(self) -> Iterator[Finding]:
        much = self.tallies.totals().amount >= self.limits.uncompressed_bytes
        for (topic,), one in self.tallies.items(much):
            yield self.found(f"{int(one.amount)} bytes of records without compression", one, topic=topic)


class MixedAcks(Rule[Limits]):
    """Some requests of a client are not acknowledged at all, others by all replicas."""

    name = "mixed-acks"
    finds = "Produce requests with acks=0 and with acks=all, of one client"
    thresholds: Mapping[str, str] = {"mixed_acks": "{} of each"}
    place = 30
    tables: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = CLIENT
    advice = "choose acks for what the records are worth: with acks=0 a lost record is not noticed"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._all = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="Produce", acks=0))
        self._all.add(rows, rows.where(api_name="Produce", acks=-1))

    def findings(self) -> Iterator[Finding]:
        # Without acknowledgement is rare: with all of them is looked up for these.
        none, of_all = self.tallies.totals(), counts(self.tallies, self._all)
        enough = np.minimum(none.count, of_all) >= max(self.limits.mixed_acks, 1)
        for ((host, client), one), many in zip(self.tallies.items(enough), of_all[enough].tolist(), strict=True):
            said = f"{counted(one.count, 'Produce request')} with acks=0 and {many} with acks=all"
            yield self.found(said, one, client_host=host, client_id=client)


class NoAcks(MixedAcks):
    """A client asks for no acknowledgement of anything that it writes."""

    name = "no-acks"
    finds = "a client that writes with acks=0 only: nobody notices what a broker does not get, or refuses"
    thresholds: Mapping[str, str] = {"unacknowledged": "{} requests"}
    place = 130
    tables: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = CLIENT
    severity = "low"
    advice = "use acks=all with idempotence (the default of Java clients since 3.0), unless records may be lost"

    def findings(self) -> Iterator[Finding]:
        none = self.tallies.totals().count
        enough = (none >= max(self.limits.unacknowledged, 1)) & (counts(self.tallies, self._all) == 0)
        for (host, client), one in self.tallies.items(enough):
            said = f"{counted(one.count, 'Produce request')} with acks=0"
            yield self.found(said, one, client_host=host, client_id=client)


class Unordered(Rule[Limits]):
    """A producer without idempotence has several requests on their way.

    If one of them fails and is sent again, its records come after those of the next.
    """

    name = "unordered-retries"
    finds = (
        "a producer without idempotence that sends the next request before the last one is answered: after a retry, "
        "records are out of order, or there twice"
    )
    thresholds: Mapping[str, str] = {"pipelined": "{} requests"}
    place = 131
    # Connections say whose records are.
    tables: tuple[str, ...] = ("frames", "records", "connections")
    keys: tuple[str, ...] = (*CLIENT, "capture", "connection")
    severity = "low"
    advice = "set enable.idempotence=true: it costs nothing, and brokers keep the order and drop what comes twice"
    _MOST = 1 << 16
    """Connections that are remembered."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._open: dict[tuple[str, int], bool] = {}
        """By connection: whether its last Produce frame was a request."""
        self._answered = Tallies(*self.keys)
        self._plain: dict[tuple[str, int], bool] = {}
        """Connections with batches of producers: whether all of them are without a producer id."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "records":
            sent = rows.where(source="produce", status="ok")
            plain = rows.values("producer_id", -1)[sent] < 0
            for capture, connection, _, with_id in rows.totals(sent, ("capture", "connection"), (~plain).astype(int)):
                key = capture, connection
                if key in self._plain or len(self._plain) < self._MOST:
                    self._plain[key] = self._plain.get(key, True) and not with_id
        elif name == "frames":
            self._frames(rows)

    def _frames(self, rows: Rows) -> None:
        mine = rows.where(api_name="Produce")
        if not len(mine):
            return
        asked = rows.mask("direction", "request")[mine]
        of, places = keyed(rows, ("capture", "connection"), mine)
        order = np.argsort(of, kind="stable")
        own, asks = of[order], asked[order]
        begins = np.append(True, own[1:] != own[:-1])
        before = np.append(False, asks[:-1])
        for at in np.flatnonzero(begins).tolist():
            before[at] = self._open.get(places[own[at]], False)
        for at in np.flatnonzero(np.append(begins[1:], True)).tolist():
            if places[own[at]] in self._open or len(self._open) < self._MOST:
                self._open[places[own[at]]] = bool(asks[at])
        self.tallies.add(rows, np.sort(mine[order[asks & before]]))
        self._answered.add(rows, mine[~asked])

    def findings(self) -> Iterator[Finding]:
        # With acks=0 there is no answer.
        answered = counts(self.tallies, self._answered) > 0
        found: dict[tuple[Any, ...], Tally] = {}
        for (host, client, capture, connection), one in self.tallies.items(answered):
            if self._plain.get((capture, connection), False):
                found.setdefault((host, client), Tally()).join(one)
        for (host, client), one in found.items():
            if one.count >= self.limits.pipelined:
                said = f"{one.count} Produce requests before the one before was answered, without idempotence"
                yield self.found(said, one, client_host=host, client_id=client)


class Aborted(Rule[Limits]):
    """Most transactions of a client are aborted; in normal operation only one is now and then."""

    name = "aborted-transactions"
    finds = "a client that aborts most of its transactions (`EndTxn`)"
    thresholds: Mapping[str, str] = {"aborted": "{}", "aborted_part": "{} of all"}
    place = 160
    tables: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = CLIENT
    advice = (
        "see which errors come before the abort, and what the program does with them: the work of a transaction that "
        "is aborted is done again"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._committed = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="EndTxn", direction="request", committed=False))
        self._committed.add(rows, rows.where(api_name="EndTxn", direction="request", committed=True))

    def findings(self) -> Iterator[Finding]:
        aborted, committed = self.tallies.totals().count, counts(self.tallies, self._committed)
        both = aborted + committed
        much = (aborted >= max(self.limits.aborted, 1)) & (aborted >= self.limits.aborted_part * both)
        for ((host, client), one), many in zip(self.tallies.items(much), both[much].tolist(), strict=True):
            said = f"{one.count} of {many} transactions were aborted"
            yield self.found(said, one, client_host=host, client_id=client)


class WrongTimes(Rule[Limits]):
    """Records of the future, or of the years after 1970: a wrong unit of time, or a wrong clock.

    Retention uses these times. It deletes old records at once, and never those of the future. Another rule finds the
    errors of brokers that refuse such records.
    """

    name = "wrong-times"
    finds = (
        "records whose time is before 1980, or far ahead of the capture: a wrong unit of time, or a wrong clock. "
        "Times after the year 9999 are null in `records`, and not found. Records that a broker refuses for their "
        "time are in `fatal-errors`"
    )
    thresholds: Mapping[str, str] = {"wrong_times": "{}", "hours_ahead": "{}"}
    place = 165
    tables: tuple[str, ...] = ("records", "partitions")
    keys: tuple[str, ...] = ("of", "ahead")
    largest = True
    together: Together = "topic"
    advice = (
        "see whether the producer gives milliseconds since 1970, and its clock; retention deletes old records at once, "
        "and those of the future never (message.timestamp.before.max.ms and ...after.max.ms refuse them)"
    )
    _1980 = 315_532_800_000_000
    _COLUMNS = ("capture", "connection", "frame", "frame_timestamp", "timestamp")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._refused: set[str] = set()
        """Topics of which a broker refused records for their time."""

    def take(self, name: str, rows: Rows) -> None:
        if name == "partitions":
            told = rows.where(api_name="Produce", direction="response", error="INVALID_TIMESTAMP")
            self._refused.update(topic for (topic,) in tuples(rows.part(("topic",), told)) if topic is not None)
            return
        sent = rows.mask("source", "produce") & rows.mask("status", "ok") & rows.valid("timestamp")
        own, now = rows.values("timestamp"), rows.stated
        ahead = (own - now > self.limits.hours_ahead * 3.6e9) & (now != UNDATED)
        wrong = np.flatnonzero(sent & (ahead | ((own >= 0) & (own < self._1980))))
        if not len(wrong):
            return
        made = rows.part((*self._COLUMNS, "topic", "topic_id"), wrong)
        made = made.append_column("of", pc.coalesce(made["topic"], made["topic_id"]))
        made = made.append_column("ahead", pa.array(ahead[wrong].astype(np.int64)))
        # The largest distance of all.
        distance = np.where(ahead, own - now, own)[wrong] / 1e6
        self.tallies.add(Rows(made), np.arange(len(wrong)), amount=distance)

    def findings(self) -> Iterator[Finding]:
        for (topic, ahead), one in self.tallies.items(self.tallies.totals().count >= self.limits.wrong_times):
            if not ahead:
                said = f"{one.count} records say that they were made before 1980"
                said = "1 record says that it was made before 1980" if one.count == 1 else said
            elif topic in self._refused:
                continue
            else:
                are = "1 record is" if one.count == 1 else f"{one.count} records are"
                said = f"{are} up to {one.amount / 3600:,.1f} hours ahead of the capture"
            yield self.found(said, one, topic=topic)


class Skew(Rule[Limits]):
    """One partition of a topic gets much more than the others."""

    name = "skewed-partitions"
    finds = "one partition that gets many times what the others get, of four or more"
    thresholds: Mapping[str, str] = {"skew": "{}", "skewed_bytes": "{}"}
    place = 200
    tables: tuple[str, ...] = ("partitions",)
    keys: tuple[str, ...] = ("topic", "partition")
    together: Together = "topic"
    severity = "low"
    advice = "choose keys that spread records evenly; a key that occurs in most records fills one partition"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._partitions: dict[str, int] = {}
        """By topic: how many partitions it has, where metadata were asked for."""

    def take(self, name: str, rows: Rows) -> None:
        known = rows.where(api_name="Metadata", direction="response", status="ok")
        if len(known):
            known = known[rows.valid("topic", "partition")[known]]
            told = rows.part(("topic", "partition"), known).group_by("topic", use_threads=False)
            for topic, most in tuples(told.aggregate([("partition", "max")]).select(["topic", "partition_max"])):
                self._partitions[topic] = max(most + 1, self._partitions.get(topic, 0))
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        sent = sent[rows.valid("topic")[sent]]
        self.tallies.add(rows, sent, amount=rows.values("record_bytes")[sent])

    def findings(self) -> Iterator[Finding]:
        totals = self.tallies.totals()
        if not len(totals.count):
            return
        of = numbers(totals.keys, ("topic",))
        order = np.lexsort((-totals.amount, of))
        # By topic: its largest partition, and all of them.
        largest = order[firsts(of[order])]
        most, total = totals.amount[largest], np.bincount(of, weights=totals.amount)
        # To some of them nothing may be written at all.
        topics = tuples(totals.keys.select(["topic"]).take(pa.array(largest)))
        known = np.array([self._partitions.get(topic, 0) for (topic,) in topics])
        count = np.maximum(np.bincount(of), known)
        mean = (total - most) / np.maximum(1, count - 1)
        skewed = (count >= 4) & (total >= self.limits.skewed_bytes) & (most >= self.limits.skew * mean)
        which = np.zeros(len(of), bool)
        which[largest[skewed]] = True
        for at, ((topic, partition), one) in zip(of[which].tolist(), self.tallies.items(which), strict=True):
            said = f"{one.amount / total[at]:.0%} of {int(total[at])} bytes go to one of {count[at]} partitions"
            yield self.found(said, one, count=int(one.amount), topic=topic, partition=partition)


class Large(Rule[Limits]):
    """Requests that are nearly, or already, larger than what is allowed."""

    name = "large-messages"
    finds = "Produce requests near the limit of 1 MiB, and refused ones"
    thresholds: Mapping[str, str] = {"large_requests": "{} bytes"}
    place = 210
    tables: tuple[str, ...] = ("frames",)
    keys: tuple[str, ...] = CLIENT
    advice = "send less at once, or compress; the limits are max.request.size and message.max.bytes"
    errors: frozenset[str] = frozenset(("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"))

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._refused = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        asked = rows.where(api_name="Produce", direction="request")
        sizes = rows.values("size")[asked]
        large = sizes >= self.limits.large_requests
        self.tallies.add(rows, asked[large], amount=sizes[large])
        wrong = rows.errors
        self._refused.add(wrong, wrong.where(error=tuple(sorted(self.errors))))

    def findings(self) -> Iterator[Finding]:
        refused = dict(self._refused.items())
        for (host, client), one in self.tallies.items():
            said = f"{counted(one.count, 'Produce request')} of {one.amount / one.count / 1e6:.2f} MB on average"
            wrong = refused.pop((host, client), None)
            if wrong is not None:
                said += f"; {counted(wrong.count, 'request')} refused as too large"
                one.join(wrong)
            yield self.found(said, one, client_host=host, client_id=client)
        for (host, client), one in refused.items():
            yield self.found(
                f"{counted(one.count, 'request')} refused as too large", one, client_host=host, client_id=client
            )
