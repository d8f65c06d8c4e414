"""What goes wrong in the traffic, with evidence: what ``kwire findings`` says.

Strategy: a rule reads some columns of some tables, batch by batch, adds up what it needs by client, group or topic
(``kwire.report.tallies``, which keeps columns), and says at the end what it found. What is done for single rows in
Python is little. What counts as too much stands in ``Thresholds``, each with a default that the traffic of clients in
their default settings does not reach.

Rules kept here:

- A finding says who it concerns, how often, where to look (frames by number) and what to change.
- Sums are kept, not rows: memory grows with the number of clients, groups and partitions, not with the traffic.
- What the capture does not show is not guessed: a rule that needs a request and its response has seen both.
"""

from __future__ import annotations

import bisect
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.records.arrow_types import TIMESTAMP
from kwire.report.sums import runs, tuples
from kwire.report.tallies import Behind, Rows, Tallies, Tally, Where, among, firsts, numbers, rows_of
from kwire.tables import showing
from kwire.tables.showing import Column

__all__ = ["RULES", "SCHEMA", "SEVERITIES", "SHOWN", "Finder", "Finding", "Thresholds", "needed", "summary"]

SEVERITIES: Final = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on something is a finding. Rates are per minute of the capture's clock."""

    tiny_batches: int = 1000
    """Batches of one client and topic in a minute,"""
    tiny_batch_records: float = 2.0
    """if they have fewer records than this on average."""
    uncompressed_bytes: int = 10_000_000
    """Bytes of record sets without compression, of one topic."""
    mixed_acks: int = 1
    """Produce requests with acks=0, and as many with acks=all, of one client."""
    metadata_requests: int = 60
    """Metadata requests of one client in a minute."""
    connections: int = 100
    """Connections of one client that begin in a minute."""
    single_produces: int = 30
    """Connections of one client on which it sent one Produce request and no more."""
    out_of_order_responses: int = 1
    """Responses of one broker that came after the response to a later request."""
    rebalances: int = 10
    """Generations of one group in a minute."""
    heartbeat_gap: float = 1.0
    """Time between two heartbeats of a member, as a part of its session timeout."""
    late_polls: int = 1
    """How often a client left a group and joined it again on the same connection."""
    empty_fetches: int = 300
    """Fetch responses without records of one client in a minute, if they are nine of ten."""
    commits: int = 300
    """OffsetCommit requests of one group and client in a minute."""
    offsets_back: int = 1
    """Commits of an offset that is lower than the one committed before."""
    throttled_ms: int = 1
    """Milliseconds for which brokers told one client to wait."""
    retried_batches: int = 1
    """Batches that one producer sent again (same producer id, epoch and sequence)."""
    stale_leaders: int = 20
    """Errors of one client that tell it to look for the leader."""
    skew: float = 5.0
    """How many times the mean the largest partition of a topic got,"""
    skewed_bytes: int = 1_000_000
    """of at least so many bytes, in four partitions or more."""
    large_requests: int = 950_000
    """Bytes of a Produce request: clients refuse more than 1,048,576 (max.request.size)."""
    fenced: int = 1
    """Errors that tell a producer that another one has taken over, or that it is not known."""
    denials: int = 1
    """Requests that were refused for want of authorization."""
    sasl_failures: int = 1
    """Connections on which authentication failed."""
    stopped_seconds: float = 60.0
    """How long before its last heartbeat a member of a group stopped to fetch."""
    lag: int = 10_000
    """Records between what a group has committed last and the end of the log."""
    repeated_errors: int = 20
    """The same error, of one client and API."""

    @classmethod
    def of(cls, changes: Iterable[str]) -> Thresholds:
        """The defaults with some changes, such as ``lag=500``. Raises ``ValueError`` for what is none."""
        types: dict[str, type[int | float]] = {one.name: type(getattr(cls(), one.name)) for one in fields(cls)}
        values: dict[str, Any] = {}
        for change in changes:
            name, equals, text = change.partition("=")
            if not equals or name not in types:
                what = f"no threshold {name!r}" if name not in types else f"{name!r} needs a number ({name}=N)"
                raise ValueError(f"{what}: there are {', '.join(types)}")
            try:
                values[name] = types[name](text)
            except ValueError:
                raise ValueError(f"{name}: {text!r} is no number") from None
            if not values[name] >= 0:
                raise ValueError(f"{name}: {text!r} is {'less than 0' if values[name] < 0 else 'no number'}")
        return cls(**values)


SCHEMA: Final = pa.schema(
    [
        pa.field("rule", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("summary", pa.string(), nullable=False),
        pa.field("client_host", pa.string()),
        pa.field("client_id", pa.string()),
        pa.field("principal", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("first_seen", TIMESTAMP),
        pa.field("last_seen", TIMESTAMP),
        pa.field(
            "evidence",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("capture", pa.string()),
                            pa.field("connection", pa.int64()),
                            pa.field("frame", pa.int64()),
                        ]
                    ),
                )
            ),
            nullable=False,
        ),
        pa.field("advice", pa.string(), nullable=False),
    ]
)
"""One row per finding. ``principal``: only where secrets are shown. ``evidence``: some of the frames, by capture,
connection and frame (null: the connection)."""

Array = Any


@dataclass(slots=True)
class Finding:
    """Something that goes wrong. Times are microseconds since 1970."""

    rule: str
    severity: str
    summary: str
    advice: str
    count: int
    client_host: str | None = None
    client_id: str | None = None
    principal: str | None = None
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    first_seen: int | None = None
    last_seen: int | None = None
    evidence: list[Where] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """As a row of ``SCHEMA``."""
        made = {one.name: getattr(self, one.name) for one in fields(self)}
        made["evidence"] = [
            {"capture": capture, "connection": connection, "frame": frame}
            for capture, connection, frame in self.evidence
        ]
        return made


# --- rules ------------------------------------------------------------------------------------------------------------

_FRAME: Final = ("capture", "connection", "frame")
_CLIENT: Final = ("client_host", "client_id")
_FRAMES: Final = (*_FRAME, "timestamp", "direction", *_CLIENT, "api_name", "size", "errors")
_PARTITIONS: Final = (
    *_FRAME, "frame_timestamp", "direction", *_CLIENT, "api_name", "correlation_id", "path", "group_id", "topic",
    "topic_id", "partition", "offset", "high_watermark", "record_bytes", "batches", "records", "compression", "error",
    "status",
)  # fmt: skip
_CALLS: Final = (
    *_FRAME, "frame_timestamp", "direction", *_CLIENT, "api_name", "correlation_id", "group_id", "member_id",
    "generation", "session_timeout_ms", "rebalance_timeout_ms", "transactional_id", "committed", "acks", "throttle_ms",
    "status",
)  # fmt: skip
_CONNECTIONS: Final = (
    "capture", "connection", "first_seen", "last_seen", "client_host", "broker_host", "broker_port", "opened_by",
    "client_ids", "apis", "sasl_mechanism", "sasl_outcome", "sasl_error", "principal", "out_of_order", "status",
)  # fmt: skip
_RECORDS: Final = (
    *_FRAME, "frame_timestamp", "source", "topic", "topic_id", "partition", "producer_id", "producer_epoch", "sequence",
    "status",
)  # fmt: skip
_ALL: Final[dict[str, Sequence[str]]] = {
    "frames": _FRAMES,
    "partitions": _PARTITIONS,
    "calls": _CALLS,
    "connections": _CONNECTIONS,
    "records": _RECORDS,
}


class _Rule:
    """A rule. ``take`` gets the rows of each table that it reads (``tables``), with the columns of ``_ALL``."""

    name = ""
    tables: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Tables that tell more, where they are read."""
    keys: tuple[str, ...] = ()
    """What it adds up by."""
    largest = False
    """Whether amounts are the largest of all and not their sum."""
    severity = "medium"
    advice = ""

    def __init__(self, thresholds: Thresholds) -> None:
        self.limits = thresholds
        self.tallies = Tallies(*self.keys, largest=self.largest)

    def take(self, name: str, rows: Rows) -> None:
        """Takes rows of one of its tables."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        """What it has found."""
        raise NotImplementedError

    def found(self, summary: str, tally: Tally, *, count: int | None = None, **who: Any) -> Finding:
        """A finding of this rule."""
        return Finding(
            self.name,
            self.severity,
            summary,
            self.advice,
            tally.count if count is None else count,
            **who,
            **tally.seen(),
        )


class _TinyBatches(_Rule):
    """Many batches with hardly a record in them."""

    name = "tiny-batches"
    tables = ("partitions",)
    keys = (*_CLIENT, "topic")
    advice = "let the producer wait for more records (linger.ms) and fill batches (batch.size)"

    def take(self, name: str, rows: Rows) -> None:
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        sent = sent[rows.valid("batches", "records")[sent]]
        self.tallies.add(rows, sent, count=rows.values("batches")[sent], amount=rows.values("records")[sent])

    def findings(self) -> Iterator[Finding]:
        for (host, client, topic), one in self.tallies.items(self.tallies.totals().count >= self.limits.tiny_batches):
            if one.busiest >= self.limits.tiny_batches and one.amount / one.count < self.limits.tiny_batch_records:
                said = f"{one.count} batches with {one.amount / one.count:.1f} records each, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, topic=topic)


class _Uncompressed(_Rule):
    """Large topics that are not compressed."""

    name = "no-compression"
    tables = ("partitions",)
    keys = ("topic",)
    severity = "low"
    advice = "set compression.type (lz4 or zstd) at the producers"

    def take(self, name: str, rows: Rows) -> None:
        sent = rows.where(api_name="Produce", direction="request", status="ok", compression="none")
        self.tallies.add(rows, sent, amount=rows.values("record_bytes")[sent])

    def findings(self) -> Iterator[Finding]:
        much = self.tallies.totals().amount >= self.limits.uncompressed_bytes
        for (topic,), one in self.tallies.items(much):
            yield self.found(f"{int(one.amount)} bytes of records without compression", one, topic=topic)


class _MixedAcks(_Rule):
    """Some requests of a client are not acknowledged at all, others by all replicas."""

    name = "mixed-acks"
    tables = ("calls",)
    keys = _CLIENT
    advice = "choose acks for what the records are worth: with acks=0 a lost record is not noticed"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._all = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="Produce", acks=0))
        self._all.add(rows, rows.where(api_name="Produce", acks=-1))

    def findings(self) -> Iterator[Finding]:
        # Without acknowledgement is rare: with all of them is looked up for these.
        none, of_all = self.tallies.totals(), _counts(self.tallies, self._all)
        enough = np.minimum(none.count, of_all) >= max(self.limits.mixed_acks, 1)
        for ((host, client), one), many in zip(self.tallies.items(enough), of_all[enough].tolist(), strict=True):
            said = f"{one.count} Produce requests with acks=0 and {many} with acks=all"
            yield self.found(said, one, client_host=host, client_id=client)


def _counts(tallies: Tallies, others: Tallies) -> Array:
    """For each key how often it is in other tallies."""
    known = among(tallies.totals().keys, others.totals().keys)
    return np.append(others.totals().count, 0)[known]


class _Metadata(_Rule):
    """A client asks for metadata over and over."""

    name = "metadata-storm"
    tables = ("frames",)
    keys = _CLIENT
    advice = "look for topics that do not exist, clients that are made anew, and a metadata.max.age.ms that is too low"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="Metadata", direction="request"))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.metadata_requests
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                said = f"{one.count} Metadata requests, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


def _connections(rows: Rows, *, opened: bool = False) -> Array:
    """Those that may be Kafka; ``opened``: whose beginning was captured. The others were there before, and the same one
    is in each of several captures that follow each other."""
    found = rows.where(status=("ok", "encrypted"))
    return found[rows.valid("opened_by")[found]] if opened else found


class _Churn(_Rule):
    """A client opens connections all the time."""

    name = "connection-churn"
    tables = ("connections",)
    keys = _CLIENT
    advice = "keep one client and its connections for the life of the program"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, _connections(rows, opened=True), each=True)

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.connections
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                said = f"{one.count} connections, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


class _ProducerPerMessage(_Rule):
    """A connection for every Produce request: a producer is made for each message."""

    name = "producer-per-message"
    tables = ("connections",)
    keys = _CLIENT
    severity = "high"
    advice = "make one producer and use it for all messages: each new one costs connections, metadata and a batch"

    def take(self, name: str, rows: Rows) -> None:
        opened = _connections(rows, opened=True)
        uses = rows.table["apis"].combine_chunks()
        use = pc.list_flatten(uses)
        produce = pc.fill_null(pc.equal(pc.struct_field(use, "api_name"), "Produce"), False).to_numpy(
            zero_copy_only=False
        )
        requests = pc.struct_field(use, "requests").to_numpy()
        of = pc.list_parent_indices(uses).to_numpy()[produce]
        sent = np.zeros(rows.table.num_rows, np.int64)
        np.add.at(sent, of, requests[produce])
        self.tallies.add(rows, opened[sent[opened] == 1], each=True)

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= self.limits.single_produces):
            said = f"{one.count} connections with one Produce request each"
            yield self.found(said, one, client_host=host, client_id=client)


class _Rebalances(_Rule):
    """A group that rebalances over and over, and who joins it anew."""

    name = "rebalance-loop"
    tables = ("calls",)
    keys = ("group_id",)
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

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._asked: dict[tuple[str, int, int], str] = {}
        self._latest: dict[str, int] = {}
        self._joined: dict[str, Counter[str]] = {}
        self._left: Counter[str] = Counter()

    def take(self, name: str, rows: Rows) -> None:
        told = rows.where(api_name=("JoinGroup", "LeaveGroup"), status="ok")
        hits: dict[int, str] = {}
        """Rows of responses that begin a generation, and of which group."""
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

    def findings(self) -> Iterator[Finding]:
        for (group,), one in self.tallies.items(self.tallies.totals().count >= self.limits.rebalances):
            if one.busiest >= self.limits.rebalances:
                who = ", ".join(f"{client} ({count})" for client, count in self._joined[group].most_common(5))
                left = self._left[group]
                said = f"{one.count} generations, {one.busiest} in a minute; {left} members left; joined: {who}"
                yield self.found(said, one, group_id=group)


def _keys(rows: Rows, columns: Sequence[str], at: Array) -> tuple[Array, list[tuple[Any, ...]]]:
    """A number for each of some rows, the same where ``columns`` are the same, and the values of each number."""
    of = rows.numbers(columns, at)
    return of, list(tuples(rows.part(columns, at[firsts(of)])))


class _LateHeartbeats(_Rule):
    """Members whose heartbeats come later than their session timeout, and who were told that they are not known."""

    name = "late-heartbeats"
    tables = ("calls",)
    keys = ("client_host", "group_id", "client_id", "timeout")
    largest = True
    severity = "high"
    advice = "find what stops the client (long pauses, starved processors); a larger session.timeout.ms tolerates it"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._timeout: dict[tuple[Any, ...], int] = {}
        """By host, group and client_id: the session timeout that was asked for last."""
        self._last: dict[tuple[Any, ...], int | None] = {}
        """By group and member: when the last heartbeat came, None if the member has joined anew since."""

    def take(self, name: str, rows: Rows) -> None:
        asked = rows.where(api_name=("JoinGroup", "Heartbeat"), direction="request", status="ok")
        if not len(asked):
            return
        times = rows.times[asked]
        joins = rows.mask("api_name", "JoinGroup")[asked]
        clients, client_keys = _keys(rows, ("client_host", "group_id", "client_id"), asked)
        timeouts = self._timeouts(rows.values("session_timeout_ms")[asked], joins, clients, client_keys)
        # The heartbeats and joins of a member stand together, each behind the one before.
        members, member_keys = _keys(rows, ("group_id", "member_id"), asked)
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
        made = rows.part((*_FRAME, "frame_timestamp", *_CLIENT, "group_id"), asked[told])
        made = made.append_column("timeout", pa.array(timeouts[told]))
        self.tallies.add(Rows(made), np.arange(len(told)), amount=gaps[hits], each=True)

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


class _LatePolls(_Rule):
    """Consumers that leave their group and join it again: that is what a client does for a program that did not poll
    for longer than ``max.poll.interval.ms``."""

    name = "late-polls"
    tables = ("calls",)
    keys = (*_CLIENT, "group_id")
    severity = "high"
    advice = (
        "unless the program unsubscribes on purpose: work on fewer records between polls (max.poll.records), or raise "
        "max.poll.interval.ms"
    )
    _MOST = 1 << 16
    """Members that have left and may come back."""
    _HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
    _COLUMNS = (
        "capture", "connection", *_CLIENT, "group_id", "api_name", "generation", "rebalance_timeout_ms",
    )  # fmt: skip

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
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


class _EmptyFetches(_Rule):
    """Fetches that hardly ever bring anything, one behind the other."""

    name = "empty-fetches"
    tables = ("frames", "partitions")
    keys = _CLIENT
    advice = "let the broker wait: raise fetch.max.wait.ms and fetch.min.bytes; poll with a timeout"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._full = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        answers = rows.where(api_name="Fetch", direction="response")
        if name == "frames":
            self.tallies.add(rows, answers)
            return
        filled = answers[rows.values("record_bytes")[answers] > 0]
        # Each frame once, however many partitions it fills.
        self._full.add(rows, filled[firsts(rows.numbers(("capture", "frame", *_CLIENT), filled))])

    def findings(self) -> Iterator[Finding]:
        all_of, limit = self.tallies.totals().count, self.limits.empty_fetches
        empty = all_of - _counts(self.tallies, self._full)
        much = (all_of >= limit) & (empty * 10 >= all_of * 9)
        for ((host, client), one), count in zip(self.tallies.items(much), empty[much].tolist(), strict=True):
            if one.busiest >= limit:
                said = f"{count} of {one.count} Fetch responses had no records, {one.busiest} came in a minute"
                yield self.found(said, one, count=count, client_host=host, client_id=client)


class _Commits(_Rule):
    """A client commits offsets all the time."""

    name = "over-committing"
    tables = ("calls",)
    keys = (*_CLIENT, "group_id")
    severity = "low"
    advice = "commit by time or by batch (auto.commit.interval.ms), not for every record"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="OffsetCommit", direction="request", status="ok"))

    def findings(self) -> Iterator[Finding]:
        for (host, client, group), one in self.tallies.items(self.tallies.totals().count >= self.limits.commits):
            if one.busiest >= self.limits.commits:
                said = f"{one.count} commits, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)


_Place = tuple[str | None, str | None, int | None]
_PLACE: Final = ("group_id", "topic", "partition")


@dataclass(slots=True)
class _InOrder:
    """Commits in the order of places, and of time in each."""

    rows: Rows
    at: Array
    """Their rows,"""
    times: Array
    offsets: Array
    first: Array
    """and where in these each place begins."""
    _places: list[_Place] | None = None

    @property
    def places(self) -> list[_Place]:
        """Which places these are."""
        if self._places is None:
            self._places = list(tuples(self.rows.table.select(list(_PLACE)).take(pa.array(self.at[self.first]))))
        return self._places


class _Last:
    """The last commit of each place, as columns: there may be many places."""

    _TEXTS = ("capture", *_CLIENT)

    def __init__(self) -> None:
        self._of: dict[_Place, int] = {}
        self._texts: dict[tuple[Any, ...], int] = {}
        self._columns = np.zeros((5, 0), np.int64)
        """Offset, time, connection, frame, and which texts."""

    def update(self, found: _InOrder) -> None:
        """Takes the last commit of each place."""
        if not len(found.at):
            return
        of = self._of
        mine = np.array([of.setdefault(place, len(of)) for place in found.places])
        if len(of) > self._columns.shape[1]:
            more = np.zeros((5, len(of) // 2 + len(mine)), np.int64)
            self._columns = np.concatenate([self._columns, more], axis=1)
        final = np.append(found.first[1:], len(found.at)) - 1
        at = found.at[final]
        rows = found.rows
        texts = tuples(rows.table.select(list(self._TEXTS)).take(pa.array(at)))
        which = [self._texts.setdefault(one, len(self._texts)) for one in texts]
        values = (found.offsets[final], found.times[final], rows.values("connection")[at], rows.values("frame")[at])
        for k, column in enumerate((*values, which)):
            self._columns[k, mine] = column

    def known(self, places: Iterable[_Place]) -> tuple[Array, Array, Array]:
        """Of each place whether there is a commit, its offset and its time."""
        of = np.array([self._of.get(place, -1) for place in places], np.int64)
        if not self._of:
            return of >= 0, of, of
        return of >= 0, self._columns[0, of], self._columns[1, of]

    def items(self) -> Iterator[tuple[_Place, dict[str, Any]]]:
        """The places, and their last commits."""
        texts = list(self._texts)
        for place, at in self._of.items():
            offset, time, connection, frame, of = self._columns[:, at].tolist()
            row = {"offset": offset, "time": time, "connection": connection, "frame": frame}
            yield place, row | dict(zip(self._TEXTS, texts[of], strict=True))


class _Transactions:
    """How transactions end. What a request commits does not name its transaction in ``partitions``, but its frame."""

    APIS = ("TxnOffsetCommit", "EndTxn", "InitProducerId")
    _COLUMNS = ("capture", "frame", "api_name", "transactional_id", "committed")
    _MOST = 1 << 16
    """Commits and transactional ids that are remembered,"""
    _ENDS = 256
    """and ends of each."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, int], str] = {}
        """By capture and frame of a commit: the transactional id."""
        self._ends: dict[str, list[tuple[int, bool]]] = {}
        """By transactional id: when transactions ended, and whether they were committed."""

    def take(self, rows: Rows) -> None:
        """Takes rows of ``calls``."""
        told = rows.where(api_name=self.APIS, direction="request", status="ok")
        told = told[rows.valid("transactional_id")[told]]
        times = rows.times[told].tolist()
        for time, (capture, frame, api, name, committed) in zip(
            times, tuples(rows.part(self._COLUMNS, told)), strict=True
        ):
            if api == "TxnOffsetCommit":
                self._of[capture, frame] = name
                if len(self._of) > self._MOST:
                    del self._of[next(iter(self._of))]
                continue
            # A producer that begins anew ends what the one before it has left open.
            ends = self._ends.setdefault(name, [])
            bisect.insort(ends, (time, api == "EndTxn" and bool(committed)))
            del ends[: -self._ENDS]
            if len(self._ends) > self._MOST:
                del self._ends[next(iter(self._ends))]

    def committed(self, capture: str, frame: int, time: int) -> bool | None:
        """Whether what was committed in this frame took effect. None: that is not decided yet."""
        ends = self._ends.get(self._of.get((capture, frame), ""), ())
        at = bisect.bisect_left(ends, (time, False))
        if at == 0 and len(ends) == self._ENDS:
            return True  # so long ago that its end is forgotten
        return ends[at][1] if at < len(ends) else None

    def seen(self, capture: str, frame: int) -> bool:
        """Whether its end would be known: those of its transactional id are captured."""
        return self._of.get((capture, frame), "") in self._ends


class _Committed:
    """The offsets that groups commit, in order of time, and the last of each place: two rules look at the same.

    What a response refuses was not committed. A request at the end of a batch waits for its response in the next one;
    without a response there, or where none was captured, it counts. In a transaction it counts when that is committed,
    and where the capture does not show how transactions of this client end.
    """

    COLUMNS = (
        "api_name",
        *_FRAME,
        "frame_timestamp",
        "direction",
        *_CLIENT,
        "correlation_id",
        *_PLACE,
        "topic_id",
        "offset",
        "error",
    )
    _REQUEST = ("capture", "connection", "correlation_id")
    _PART = (*_REQUEST, "topic", "topic_id", "partition")
    _MOST_OPEN = 1 << 16
    """Commits whose transactions have not ended yet."""

    def __init__(self) -> None:
        self.transactions = _Transactions()
        self._open: pa.Table | None = None
        """Commits in transactions that have not ended."""
        self._rows: Rows | None = None
        self._calls: Rows | None = None
        self._found: _InOrder | None = None
        self._waiting: pa.Table | None = None
        """Requests of the batch before without a response."""
        self._last = _Last()

    def of(self, rows: Rows) -> _InOrder:
        """The commits of a batch."""
        if self._found is None or self._rows is not rows:
            self._settle()
            self._rows = rows
            made = rows.where(api_name=("OffsetCommit", "TxnOffsetCommit"), status="ok")
            self._found = _sorted(*self._ended(*self._accepted(rows, made)))
        return self._found

    def of_transactions(self, rows: Rows) -> None:
        """Takes rows of ``calls``, once."""
        if self._calls is not rows:
            self._calls = rows
            self.transactions.take(rows)

    def rest(self) -> _InOrder | None:
        """The commits that wait for responses still, or for the end of a transaction that will not be known."""
        self._settle()
        waiting = [one for one in (self._waiting, self._open) if one is not None]
        if not waiting:
            return None
        rows = Rows(pa.concat_tables(waiting))
        at = np.arange(rows.table.num_rows)
        counts = [
            verdict or (verdict is None and not self.transactions.seen(capture, frame))
            for verdict, (capture, frame) in zip(
                self._verdicts(rows, at), tuples(rows.table.select(["capture", "frame"])), strict=True
            )
        ]
        at = at[np.array(counts, bool)]
        return _sorted(rows, at[self._not_late(rows, at)])

    def before(self, places: Iterable[_Place]) -> tuple[Array, Array]:
        """Of each place whether there was a commit before the batch that ``of`` was asked for, and the last offset."""
        return self._last.known(places)[:2]

    def last(self) -> Iterator[tuple[_Place, dict[str, Any]]]:
        """The last commit of each place, those that wait among them."""
        rest = self.rest()
        late = _Last()
        if rest is not None:
            late.update(rest)
        also = dict(late.items())
        for place, row in self._last.items():
            yield place, also.pop(place, row)
        yield from also.items()

    def _settle(self) -> None:
        if self._found is not None:
            self._last.update(self._found)
            self._found = None

    def _accepted(self, rows: Rows, at: Array) -> tuple[Rows, Array]:
        """The requests among rows of both directions that were not refused, those of the batch before among them.
        Requests that have no response yet wait."""
        asked = rows.mask("direction", "request")
        at = at[np.where(asked, rows.valid("partition"), rows.valid("correlation_id"))[at]]
        old = 0
        if self._waiting is not None:
            old = self._waiting.num_rows
            rows = Behind(Rows(self._waiting), rows, self.COLUMNS)
            at = np.append(np.arange(old), at + old)
            asked = rows.mask("direction", "request")
            self._waiting = None
        if not len(at):
            return rows, at
        asked = asked[at]
        order = np.arange(len(at))
        requests = rows.numbers(self._REQUEST, at)
        # An id is used again when it was answered: what stands behind its last response waits.
        answered = np.full(int(requests.max()) + 1, -1)
        answered[requests[~asked]] = order[~asked]
        waits = asked & (order >= old) & (answered[requests] < order)
        waits &= rows.valid("correlation_id")[at]
        kept = asked & ~waits & ~self._refused(rows, at, requests, asked)
        if waits.any():
            self._waiting = rows.part(self.COLUMNS, at[waits])
        before = np.flatnonzero(kept[:old])
        kept[before] = self._not_late(rows, at[before])
        return rows, at[kept]

    def _ended(self, rows: Rows, at: Array) -> tuple[Rows, Array]:
        """Accepted commits, without those whose transaction has not ended, and those of before whose has."""
        inside = rows.mask("api_name", "TxnOffsetCommit")[at]
        if self._open is None and not inside.any():
            return rows, at
        parts = [rows.part(self.COLUMNS, at[inside])]
        if self._open is not None:
            parts.insert(0, self._open)
        mine = Rows(pa.concat_tables(parts))
        whole = np.arange(mine.table.num_rows)
        verdicts = self._verdicts(mine, whole)
        many = sum(one is None for one in verdicts)
        for k, one in enumerate(verdicts):
            if many > self._MOST_OPEN and one is None:
                # Nobody will know any more.
                verdicts[k], many = True, many - 1
        waits = np.array([one is None for one in verdicts], bool)
        self._open = mine.part(self.COLUMNS, whole[waits]) if many else None
        done = whole[np.array([one is True for one in verdicts], bool)]
        done = done[self._not_late(mine, done)]
        made = pa.concat_tables([rows.part(self.COLUMNS, at[~inside]), mine.part(self.COLUMNS, done)])
        return Rows(made), np.arange(made.num_rows)

    def _verdicts(self, rows: Rows, at: Array) -> list[bool | None]:
        """Which commits took effect: all that are in no transaction. None: it is not decided."""
        return [
            self.transactions.committed(capture, frame, time) if api == "TxnOffsetCommit" else True
            for time, (capture, frame, api) in zip(
                rows.times[at].tolist(), tuples(rows.part(("capture", "frame", "api_name"), at)), strict=True
            )
        ]

    def _refused(self, rows: Rows, at: Array, requests: Array, asked: Array) -> Array:
        """Which rows are followed by a response that says that what they ask was not done. Where nothing of a request
        was refused, which is mostly so, its parts are not looked at."""
        refused = np.zeros(len(at), bool)
        wrong = ~asked & (rows.valid("error") & ~rows.mask("error", "NONE"))[at]
        if wrong.any():
            some = np.zeros(int(requests.max()) + 1, bool)
            some[requests[wrong]] = True
            there = np.flatnonzero(some[requests])
            # Rows of one part of a request stand in the order of time.
            parts = rows.numbers(self._PART, at[there])
            order = np.argsort(parts, kind="stable")
            same = np.diff(parts[order]) == 0
            there = there[order]
            refused[there[:-1]] = same & wrong[there[1:]]
        return refused

    def _not_late(self, rows: Rows, at: Array) -> Array:
        """Which of the commits that waited are not followed by one of their place that did not."""
        known, _, times = self._last.known(tuples(rows.part(_PLACE, at)))
        return ~known | (times <= rows.times[at])


def _sorted(rows: Rows, at: Array) -> _InOrder:
    at = at[rows.valid("offset")[at]]
    times = rows.times[at]
    places = rows.numbers(_PLACE, at)
    if len(at) and places.max() < 1 << 16:
        places = places.astype(np.uint16)  # sorted by digits
    in_order = bool((times[1:] >= times[:-1]).all())
    order = np.argsort(places, kind="stable") if in_order else np.lexsort((times, places))
    at, own = at[order], places[order]
    first = np.flatnonzero(np.append(True, own[1:] != own[:-1])) if len(at) else at
    return _InOrder(rows, at, times[order], rows.values("offset")[at], first)


class _Offsets(_Rule):
    """What groups commit."""

    tables = ("partitions",)
    also = ("calls",)

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self.commits = _Committed()

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            self.commits.of_transactions(rows)
        else:
            self.take_partitions(rows)

    def take_partitions(self, rows: Rows) -> None:
        """Takes rows of ``partitions``."""
        raise NotImplementedError


class _OffsetsBack(_Offsets):
    """A group commits an offset that is lower than the one before."""

    name = "offsets-back"
    keys = (*_PLACE, *_CLIENT)
    advice = "unless somebody has reset the group: see who commits, two members may believe that they own the partition"

    def take_partitions(self, rows: Rows) -> None:
        self._judge(self.commits.of(rows), self.tallies)

    def _judge(self, found: _InOrder, tallies: Tallies) -> None:
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


class _Lag(_Offsets):
    """How far what a group has committed last is behind the end of its topics."""

    name = "lag"
    advice = "add members (up to the number of partitions), or see what makes the consumer slow"
    _MOST_ASKED = 1_000
    """Produce requests of a connection and partition that wait for their responses."""
    _MOST_WAITING = 1 << 16
    """Connections and partitions with such."""

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
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
        logs, keys = _keys(rows, ("capture", "connection", "topic", "partition"), made)
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


class _Throttled(_Rule):
    """Brokers tell a client to wait: it is beyond its quota."""

    name = "throttled"
    tables = ("calls",)
    keys = (*_CLIENT, "api_name")
    advice = "raise the quota, or make the client send or fetch less"

    def take(self, name: str, rows: Rows) -> None:
        waits = rows.values("throttle_ms")
        told = np.flatnonzero(waits > 0)
        self.tallies.add(rows, told, amount=waits[told])

    def findings(self) -> Iterator[Finding]:
        much = self.tallies.totals().amount >= self.limits.throttled_ms
        for (host, client, api), one in self.tallies.items(much):
            said = f"{one.count} {api} responses told it to wait, {int(one.amount)} ms together"
            yield self.found(said, one, client_host=host, client_id=client)


class _Retried(_Rule):
    """A producer sends a batch again."""

    name = "retried-batches"
    tables = ("records",)
    keys = ("producer_id", "of", "partition")
    severity = "low"
    advice = (
        "see why brokers do not answer in time (request.timeout.ms, acks=all with slow followers, lost connections)"
    )

    _BACK = 5
    """Batches in flight that an idempotent producer may have."""
    _KEPT = 1 << 16
    """Batches that are remembered from one call to the next."""
    _OF = ("producer_id", "producer_epoch", "of", "partition")

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._before: pa.Table | None = None
        """The last batches of each producer and partition."""

    def take(self, name: str, rows: Rows) -> None:
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
        # The first record of each batch. Batches of several partitions stand in a frame one behind the other.
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
        again = np.zeros(len(order), bool)
        for back in range(1, min(self._BACK, len(order) - 1) + 1):
            same = (own[back:] == own[:-back]) & (sequences[back:] == sequences[:-back])
            again[back:] |= same & (frames[back:] != frames[:-back])
        hits = np.sort(order[again & (order >= old)])
        self.tallies.add(Rows(sent), hits, each=True)
        kept = np.append(own[self._BACK :] != own[: -self._BACK], np.ones(min(self._BACK, len(own)), bool))
        self._before = sent.take(pa.array(np.sort(order[kept])[-self._KEPT :]))

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.retried_batches
        for (producer, topic, partition), one in self.tallies.items(many):
            said = f"producer {producer} sent {one.count} batches again"
            yield self.found(said, one, topic=topic, partition=partition)


class _Errors(_Rule):
    """Errors in responses: what clients are told, by kind."""

    tables = ("frames",)
    keys: tuple[str, ...] = (*_CLIENT, "api_name", "error")
    errors: frozenset[str] = frozenset()

    def take(self, name: str, rows: Rows) -> None:
        told = rows.errors
        if not told.table.num_rows:
            return
        # How a client finds out which versions there are (KIP-511): it asks once more, and no harm is done.
        asked = told.mask("api_name", "ApiVersions") & told.mask("error", "UNSUPPORTED_VERSION")
        self.tallies.add(told, np.flatnonzero(self.wanted(told) & ~asked))

    def wanted(self, rows: Rows) -> Array:
        """Which of these errors this rule is about."""
        return rows.mask("error", tuple(sorted(self.errors)))

    def enough(self) -> int:
        """How many are a finding."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        for (host, client, api, error), one in self.tallies.items(self.tallies.totals().count >= self.enough()):
            yield self.found(f"{error} in {one.count} {api} responses", one, client_host=host, client_id=client)


class _StaleLeaders(_Errors):
    """A client goes on asking brokers that do not lead the partition."""

    name = "stale-leaders"
    advice = "see whether leaders change all the time, and whether the client refreshes its metadata after such errors"
    errors = frozenset(
        ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "LEADER_NOT_AVAILABLE")
    )

    def wanted(self, rows: Rows) -> Array:
        # Members of a quorum find out so who leads it.
        of_quorum = pc.fill_null(pc.starts_with(rows.table["client_id"].cast(pa.string()), "raft-client-"), False)
        return super().wanted(rows) & ~of_quorum.to_numpy()

    def enough(self) -> int:
        return self.limits.stale_leaders


class _Fenced(_Errors):
    """A producer was told that another has taken its place, or that it is not known."""

    name = "fenced-producers"
    severity = "high"
    advice = "give each running producer its own transactional.id; a zombie of an earlier one has to stop"
    errors = frozenset(
        ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING",
         "TRANSACTION_COORDINATOR_FENCED", "TRANSACTIONAL_ID_NOT_FOUND")
    )  # fmt: skip

    def enough(self) -> int:
        return self.limits.fenced


class _Denied(_Errors):
    """Requests that were refused for want of authorization, by principal where secrets are shown."""

    name = "denials"
    also = ("connections",)
    # Apart by connection, since its principal is known when it ends.
    keys: tuple[str, ...] = ("capture", "connection", *_CLIENT, "api_name", "error")
    severity = "high"
    advice = "grant what the client needs (ACLs), or stop it from asking"
    errors = frozenset(
        ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
         "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
    )  # fmt: skip

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._principals: dict[tuple[str, int], str] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            told = rows.errors
            self.tallies.add(told, np.flatnonzero(self.wanted(told)), each=True)
            return
        known = np.flatnonzero(rows.valid("principal"))
        for capture, connection, principal in tuples(rows.part(("capture", "connection", "principal"), known)):
            self._principals[capture, connection] = principal

    def enough(self) -> int:
        return self.limits.denials

    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[Any, ...], Tally] = {}
        for (capture, connection, *key), one in self.tallies.items():
            together.setdefault((*key, self._principals.get((capture, connection))), Tally()).join(one)
        for (host, client, api, error, principal), one in together.items():
            if one.count >= self.enough():
                said = f"{error} in {one.count} {api} responses"
                yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class _Repeated(_Errors):
    """The same error over and over, of those that no other rule is about."""

    name = "repeated-errors"
    advice = "see what the error means for this request, and why the client does not change what it does"
    _OTHERS = (
        _StaleLeaders.errors | _Fenced.errors | _Denied.errors | {"MESSAGE_TOO_LARGE", "SASL_AUTHENTICATION_FAILED"}
    )

    def wanted(self, rows: Rows) -> Array:
        return ~rows.mask("error", tuple(sorted(self._OTHERS)))

    def enough(self) -> int:
        return self.limits.repeated_errors


class _Skew(_Rule):
    """One partition of a topic gets much more than the others."""

    name = "skewed-partitions"
    tables = ("partitions",)
    keys = ("topic", "partition")
    severity = "low"
    advice = "choose keys that spread records evenly; a key that occurs in most records fills one partition"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
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


class _Large(_Rule):
    """Requests that are nearly, or already, larger than what is allowed."""

    name = "large-messages"
    tables = ("frames",)
    keys = _CLIENT
    advice = "send less at once, or compress; the limits are max.request.size and message.max.bytes"
    _REFUSED = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._refused = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        asked = rows.where(api_name="Produce", direction="request")
        sizes = rows.values("size")[asked]
        large = sizes >= self.limits.large_requests
        self.tallies.add(rows, asked[large], amount=sizes[large])
        wrong = rows.errors
        self._refused.add(wrong, wrong.where(error=self._REFUSED))

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            said = f"{one.count} Produce requests of {one.amount / one.count / 1e6:.2f} MB on average"
            yield self.found(said, one, client_host=host, client_id=client)
        for (host, client), one in self._refused.items():
            yield self.found(f"{one.count} requests were refused as too large", one, client_host=host, client_id=client)


class _Sasl(_Rule):
    """Connections on which authentication failed, by principal where secrets are shown."""

    name = "sasl-failures"
    tables = ("connections",)
    keys = (*_CLIENT, "principal", "sasl_mechanism", "kind")
    severity = "high"
    advice = "see who it is (--secrets show in the table connections) and give it valid credentials, or block it"

    def take(self, name: str, rows: Rows) -> None:
        failed = _connections(rows)
        failed = failed[rows.mask("sasl_outcome", "failed")[failed]]
        if not len(failed):
            return
        made = rows.part(("connection", "capture", "first_seen", "last_seen", *self.keys[:-1], "sasl_error"), failed)
        # What stands behind the colon is different each time.
        kind = pc.replace_substring_regex(pc.fill_null(made["sasl_error"], ""), "(?s):.*", "")
        self.tallies.add(Rows(made.append_column("kind", kind)), np.arange(len(failed)), each=True)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.sasl_failures
        for (host, client, principal, mechanism, error), one in self.tallies.items(many):
            said = f"{one.count} connections failed to authenticate with {mechanism or 'SASL'}: {error}"
            yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class _OutOfOrder(_Rule):
    """Responses that come after the response to a later request: clients rely on the order of requests."""

    name = "out-of-order-responses"
    tables = ("connections",)
    keys = ("broker_host", "broker_port")
    severity = "high"
    advice = "look at what answers on this port: a proxy or a broker that mixes up responses breaks its clients"

    def take(self, name: str, rows: Rows) -> None:
        late, of = rows.values("out_of_order"), _connections(rows)
        of = of[late[of] > 0]
        self.tallies.add(rows, of, count=late[of], each=True)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.out_of_order_responses
        for (host, port), one in self.tallies.items(many):
            said = f"{one.count} responses of {host}:{port} came after the response to a later request"
            yield self.found(said, one)


class _Stopped(_Rule):
    """A member of a group that still sends heartbeats, but fetches no more."""

    name = "stopped-consumers"
    tables = ("frames",)
    keys = _CLIENT
    severity = "high"
    advice = "the consumer is stuck or paused while its heartbeats go on: see what it does with the records that it got"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._beats = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="Fetch", direction="request"))
        self._beats.add(rows, rows.where(api_name=("Heartbeat", "ConsumerGroupHeartbeat"), direction="request"))

    def findings(self) -> Iterator[Finding]:
        fetches, beats = self.tallies.totals(), self._beats.totals()
        known = among(fetches.keys, beats.keys)
        quiet = (np.append(beats.last, 0)[known] - fetches.last) / 1e6
        stopped = (known >= 0) & (quiet >= self.limits.stopped_seconds)
        for seconds, ((host, client), one) in zip(quiet[stopped].tolist(), self.tallies.items(stopped), strict=True):
            said = f"no Fetch request in the {seconds:.0f} s before its last heartbeat"
            yield self.found(said, one, client_host=host, client_id=client)


RULES: Final[dict[str, type[_Rule]]] = {
    rule.name: rule
    for rule in (
        _TinyBatches, _Uncompressed, _MixedAcks, _Metadata, _Churn, _ProducerPerMessage, _Rebalances, _LateHeartbeats,
        _LatePolls, _EmptyFetches, _Commits, _OffsetsBack, _Throttled, _Retried, _StaleLeaders, _Skew, _Large, _Fenced,
        _Denied, _Sasl, _OutOfOrder, _Stopped, _Lag, _Repeated,
    )
}  # fmt: skip
"""The rules, by name."""


# --- all together -----------------------------------------------------------------------------------------------------


def needed(rules: Iterable[str] | None = None, *, also: bool = True) -> dict[str, Sequence[str]]:
    """The tables that rules (None: all) read, with their columns; ``also``: those too that only tell more. Raises
    ``ValueError`` for an unknown rule."""
    wanted = {name for rule in _chosen(rules) for name in (*rule.tables, *(rule.also if also else ()))}
    return {name: columns for name, columns in _ALL.items() if name in wanted}


def _chosen(rules: Iterable[str] | None) -> list[type[_Rule]]:
    names = list(RULES) if rules is None else list(rules)
    for name in names:
        if name not in RULES:
            raise ValueError(f"no rule {name!r}: there are {', '.join(RULES)}")
    return [RULES[name] for name in names]


class Finder:
    """Takes batches of the tables that ``needed`` names, in the order of each capture, and gives findings.

    Raises ``ValueError`` for a rule that there is not.
    """

    def __init__(self, rules: Iterable[str] | None = None, thresholds: Thresholds | None = None) -> None:
        limits = thresholds or Thresholds()
        self._rules = [rule(limits) for rule in _chosen(rules)]
        commits = _Committed()
        for rule in self._rules:
            if isinstance(rule, _Offsets):
                rule.commits = commits

    def lags(self) -> Iterator[tuple[str, str | None, int | None, int]]:
        """How far what groups committed last is behind the end of the log, where both are known: group, topic,
        partition, records."""
        for rule in self._rules:
            if isinstance(rule, _Lag):
                yield from rule.lags()

    def newest(self) -> dict[tuple[str | None, int | None], int]:
        """The end of each topic and partition, as far as it is known."""
        return next((rule.newest for rule in self._rules if isinstance(rule, _Lag)), {})

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Takes rows of the table ``name``; texts may be dictionaries."""
        self.add_rows(name, rows_of(name, [batch]))

    def add_rows(self, name: str, rows: Rows) -> None:
        """The same of several batches at once."""
        for rule in self._rules:
            if name in rule.tables or name in rule.also:
                rule.take(name, rows)

    def result(self) -> list[Finding]:
        """What was found so far, the worst first."""
        found = [one for rule in self._rules for one in rule.findings()]
        order = list(RULES)
        found.sort(key=lambda one: (SEVERITIES.index(one.severity), order.index(one.rule), -one.count))
        return found


def batch_of(found: Iterable[Finding]) -> pa.RecordBatch:
    """Findings as Arrow data, with the columns of ``SCHEMA``."""
    rows = [one.row() for one in found]
    columns = []
    for wanted in SCHEMA:
        values = [row[wanted.name] for row in rows]
        if pa.types.is_timestamp(wanted.type):
            columns.append(pa.array(values, pa.int64()).cast(TIMESTAMP))
        else:
            columns.append(pa.array(values, wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def summary(found: Sequence[Finding]) -> list[str]:
    """What findings say together, in a sentence."""
    counts = Counter(one.severity for one in found)
    said = ", ".join(f"{counts[word]} {word}" for word in SEVERITIES if counts[word])
    return [f"{len(found)} finding{'s' if len(found) > 1 else ''}: {said}." if found else "No findings."]


def _evidence(row: showing.Row) -> str:
    said = [
        f"frame {one['frame']}" if one["frame"] is not None else f"connection {one['connection']}"
        for one in row["evidence"][:3]
    ]
    return ", ".join(said) + (", …" if len(row["evidence"]) > 3 else "")


def _who(row: showing.Row) -> str:
    names = ("client_host", "client_id", "principal", "group_id")
    said = [showing.readable(row[name]) for name in names if row[name] is not None]
    if row["topic"] is not None:
        said.append(showing.partition(row | {"topic_id": None}))
    return " ".join(said) or "-"


_SHOW: Callable[[str], Callable[[showing.Row], str]] = showing.plain

SHOWN: Final = (
    Column("severity", _SHOW("severity")),
    Column("rule", _SHOW("rule")),
    Column("who", _who, shrink=16),
    Column("what", _SHOW("summary"), shrink=30),
    Column("evidence", _evidence, shrink=12),
    Column("what to change", _SHOW("advice"), shrink=20),
)
"""The columns of a terminal and of a page."""
