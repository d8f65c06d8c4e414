"""What goes wrong in the traffic, with evidence: what ``kwire findings`` says.

Strategy: a rule reads some columns of some tables, batch by batch, adds up what it needs by client, group or topic, and
says at the end what it found. Batches are reduced by Arrow (``_grouped``) before Python sees them, so that what is done
for single rows is little. What counts as too much stands in ``Thresholds``, each with a default that the traffic of
clients in their default settings does not reach.

Rules kept here:

- A finding says who it concerns, how often, where to look (frames by number) and what to change.
- Sums are kept, not rows: memory grows with the number of clients, groups and partitions, not with the traffic.
- What the capture does not show is not guessed: a rule that needs a request and its response has seen both.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.records.arrow_types import TIMESTAMP
from kwire.report.sums import dicts, runs, tuples
from kwire.tables import showing
from kwire.tables.showing import Column

__all__ = ["RULES", "SCHEMA", "SEVERITIES", "SHOWN", "Finder", "Finding", "Thresholds", "needed", "summary"]

MOST_EVIDENCE: Final = 10
"""Frames or connections that a finding names."""
_STEP: Final = 10_000_000
_STEPS: Final = 6
"""Times are counted by steps of ten seconds; six of them are a minute, wherever it begins."""
_CLOSE: Final = 1 << 31
"""Numbers that are no larger are keys as they are."""
_MOST_NUMBERS: Final = 1 << 62
"""Products of how many values columns have stay below."""
_MOST_STEPS: Final = 8640

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
Where = tuple[str, int, int | None]
"""Capture, connection, frame."""


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


@dataclass(slots=True)
class _Tally:
    """How often something was seen, when, and where."""

    count: int = 0
    amount: float = 0
    first: int | None = None
    last: int | None = None
    where: tuple[Where, ...] = ()
    step: int = 0
    """The step in which all of it was, as long as that is one:"""
    steps: dict[int, int] | None = None
    """else how much was in each. There may be a tally for each client, and most are short."""

    def add(self, row: Mapping[str, Any], *, count: int = 1, amount: float = 0) -> None:
        """Takes a row, or a group of rows: ``time`` to ``until`` (microseconds) and ``frame`` say when and where."""
        time, until = row["time"], row.get("until", row["time"])
        self._count(time // _STEP, count)
        self.amount += amount
        self.first = time if self.first is None else min(self.first, time)
        self.last = until if self.last is None else max(self.last, until)
        room = MOST_EVIDENCE - len(self.where)
        if room:
            each = row.get("each") or [(row["connection"], row.get("frame"))]
            self.where += tuple((row["capture"], connection, frame) for connection, frame in each[:room])

    def _count(self, step: int, count: int) -> None:
        if self.steps is None:
            if self.first is None or step == self.step:
                self.step = step
                self.count += count
                return
            self.steps = {self.step: self.count}
        self.count += count
        self.steps[step] = self.steps.get(step, 0) + count
        if len(self.steps) > _MOST_STEPS:
            del self.steps[next(iter(self.steps))]

    def join(self, other: _Tally) -> None:
        """Takes what another one has."""
        if other.first is None or other.last is None:
            return
        for step, count in other.in_steps().items():
            self._count(step, count)
        # Of very long ones not all steps are known.
        self.count += other.count - sum(other.in_steps().values())
        self.amount += other.amount
        self.first = other.first if self.first is None else min(self.first, other.first)
        self.last = other.last if self.last is None else max(self.last, other.last)
        self.where += other.where[: MOST_EVIDENCE - len(self.where)]

    def in_steps(self) -> dict[int, int]:
        """How much was in each step."""
        return {self.step: self.count} if self.steps is None else self.steps

    @property
    def busiest(self) -> int:
        """The most in a minute."""
        most = now = first = 0
        steps = self.in_steps()
        order = sorted(steps)
        for step in order:
            now += steps[step]
            while order[first] <= step - _STEPS:
                now -= steps[order[first]]
                first += 1
            most = max(most, now)
        return most

    def seen(self) -> dict[str, Any]:
        """What a finding says of it."""
        return {"first_seen": self.first, "last_seen": self.last, "evidence": list(self.where)}


_Tallies = dict[tuple[Any, ...], _Tally]


def _grouped(
    table: pa.Table, keys: Sequence[str], sums: Sequence[str] = (), *, each: bool = False
) -> Iterator[dict[str, Any]]:
    """The rows of a table added up by ``keys`` and the step: ``count``, ``time`` and ``until``, where the first of
    them stands, and the sum of each column of ``sums``; ``each``: where the first ``MOST_EVIDENCE`` of them stand."""
    if not table.num_rows:
        return
    clock = "frame_timestamp" if "frame_timestamp" in table.column_names else "timestamp"
    times = table[clock].cast(pa.int64())
    table = table.append_column("_time", times).append_column("_step", pc.divide(times, _STEP))
    all_keys = list(dict.fromkeys(["capture", *keys, "_step"]))
    wanted = [("_time", "min"), ("_time", "max"), ("frame", "min"), ("connection", "min"), ([], "count_all")]
    if each:
        wanted += [("connection", "list"), ("frame", "list")]
    made = table.group_by(all_keys, use_threads=False).aggregate([*wanted, *((name, "sum") for name in sums)])
    for name in ("connection_list", "frame_list") if each else ():
        at = made.column_names.index(name)
        made = made.set_column(at, name, pc.list_slice(made[name], 0, MOST_EVIDENCE))
    for row in dicts(made):
        row["time"], row["until"] = row["_time_min"], row["_time_max"]
        row["frame"], row["connection"] = row["frame_min"], row["connection_min"]
        row["count"] = row["count_all"]
        if each:
            row["each"] = list(zip(row["connection_list"], row["frame_list"], strict=True))
        for name in sums:
            row[name] = row[f"{name}_sum"] or 0
        yield row


class _Rows:
    """A batch of a table, and the parts of it that rules ask for: several ask for the same."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._masks: dict[Any, Array] = {}
        self._parts: dict[Any, pa.Table] = {}
        self._errors: pa.Table | None = None

    def where(self, *, columns: tuple[str, ...] | None = None, **wanted: Any) -> pa.Table:
        """The rows in which columns have a value, or one of a tuple of values; ``columns``: these of them only."""
        key = (columns, tuple(wanted.items()))
        found = self._parts.get(key)
        if found is None:
            mask = None
            for each in wanted.items():
                one = self._mask(*each)
                mask = one if mask is None else pc.and_(mask, one)
            table = self.table if columns is None else self.table.select(list(columns))
            found = self._parts[key] = table.filter(mask)
        return found

    def _mask(self, name: str, value: Any) -> Array:
        found = self._masks.get((name, value))
        if found is None:
            column = self.table[name]
            if isinstance(value, tuple):
                found = pc.is_in(column, value_set=pa.array(value).cast(column.type))
            else:
                found = pc.equal(column, value)
            self._masks[name, value] = found
        return found

    @property
    def errors(self) -> pa.Table:
        """A row for each error of a response of ``frames``, with the column ``error``."""
        if self._errors is None:
            table = self.table
            wrong = table.filter(pc.greater(pc.fill_null(pc.list_value_length(table["errors"]), 0), 0))
            flat = wrong.select([*_FRAME, "timestamp", *_CLIENT, "api_name"])
            flat = flat.take(pc.list_parent_indices(wrong["errors"]))
            self._errors = flat.append_column("error", pc.list_flatten(wrong["errors"]))
        return self._errors


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
    "capture", "connection", "first_seen", "last_seen", "client_host", "opened_by", "client_ids", "apis",
    "sasl_mechanism", "sasl_outcome", "sasl_error", "principal", "status",
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
    severity = "medium"
    advice = ""

    def __init__(self, thresholds: Thresholds) -> None:
        self.limits = thresholds
        self.tallies: _Tallies = {}

    def tally(self, *key: Any) -> _Tally:
        """What is added up under a key."""
        found = self.tallies.get(key)
        if found is None:
            found = self.tallies[key] = _Tally()
        return found

    def take(self, name: str, rows: _Rows) -> None:
        """Takes rows of one of its tables."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        """What it has found."""
        raise NotImplementedError

    def found(self, summary: str, tally: _Tally, *, count: int | None = None, **who: Any) -> Finding:
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
    advice = "let the producer wait for more records (linger.ms) and fill batches (batch.size)"

    def take(self, name: str, rows: _Rows) -> None:
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        sent = sent.filter(pc.and_(pc.is_valid(sent["batches"]), pc.is_valid(sent["records"])))
        for row in _grouped(sent, (*_CLIENT, "topic"), ("batches", "records")):
            one = self.tally(row["client_host"], row["client_id"], row["topic"])
            one.add(row, count=row["batches"], amount=row["records"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, topic), one in self.tallies.items():
            if one.busiest >= self.limits.tiny_batches and one.amount / one.count < self.limits.tiny_batch_records:
                said = f"{one.count} batches with {one.amount / one.count:.1f} records each, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, topic=topic)


class _Uncompressed(_Rule):
    """Large topics that are not compressed."""

    name = "no-compression"
    tables = ("partitions",)
    severity = "low"
    advice = "set compression.type (lz4 or zstd) at the producers"

    def take(self, name: str, rows: _Rows) -> None:
        sent = rows.where(api_name="Produce", direction="request", status="ok", compression="none")
        for row in _grouped(sent, ("topic", *_CLIENT), ("record_bytes",)):
            self.tally(row["topic"]).add(row, count=row["count"], amount=row["record_bytes"])

    def findings(self) -> Iterator[Finding]:
        for (topic,), one in self.tallies.items():
            if one.amount >= self.limits.uncompressed_bytes:
                yield self.found(f"{int(one.amount)} bytes of records without compression", one, topic=topic)


class _MixedAcks(_Rule):
    """Some requests of a client are not acknowledged at all, others by all replicas."""

    name = "mixed-acks"
    tables = ("calls",)
    advice = "choose acks for what the records are worth: with acks=0 a lost record is not noticed"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _grouped(rows.where(api_name="Produce", acks=(0, -1)), (*_CLIENT, "acks")):
            self.tally(row["client_host"], row["client_id"], row["acks"]).add(row, count=row["count"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, acks), one in self.tallies.items():
            other = self.tallies.get((host, client, -1))
            if acks == 0 and other is not None and min(one.count, other.count) >= self.limits.mixed_acks:
                said = f"{one.count} Produce requests with acks=0 and {other.count} with acks=all"
                yield self.found(said, one, client_host=host, client_id=client)


class _Metadata(_Rule):
    """A client asks for metadata over and over."""

    name = "metadata-storm"
    tables = ("frames",)
    advice = "look for topics that do not exist, clients that are made anew, and a metadata.max.age.ms that is too low"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _grouped(rows.where(api_name="Metadata", direction="request"), _CLIENT):
            self.tally(row["client_host"], row["client_id"]).add(row, count=row["count"])

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            if one.busiest >= self.limits.metadata_requests:
                said = f"{one.count} Metadata requests, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


def _client_id(row: Mapping[str, Any]) -> str | None:
    ids: list[str] = row["client_ids"]
    return ids[0] if ids else None


def _connections(table: pa.Table, *, opened: bool = False) -> Iterator[dict[str, Any]]:
    """Those that may be Kafka; ``opened``: whose beginning was captured. The others were there before, and the same one
    is in each of several captures that follow each other."""
    for row in dicts(table.filter(pc.is_valid(table["opened_by"])) if opened else table):
        if row["status"] in ("ok", "encrypted"):
            row["time"] = _micros(row["first_seen"])
            row["until"] = _micros(row["last_seen"])
            yield row


def _micros(time: Any) -> int:
    return int(time.timestamp()) * 1_000_000 + int(time.microsecond)


class _Churn(_Rule):
    """A client opens connections all the time."""

    name = "connection-churn"
    tables = ("connections",)
    advice = "keep one client and its connections for the life of the program"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _connections(rows.table, opened=True):
            self.tally(row["client_host"], _client_id(row)).add(row)

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            if one.busiest >= self.limits.connections:
                said = f"{one.count} connections, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


class _ProducerPerMessage(_Rule):
    """A connection for every Produce request: a producer is made for each message."""

    name = "producer-per-message"
    tables = ("connections",)
    severity = "high"
    advice = "make one producer and use it for all messages: each new one costs connections, metadata and a batch"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _connections(rows.table, opened=True):
            if sum(use["requests"] for use in row["apis"] if use["api_name"] == "Produce") == 1:
                self.tally(row["client_host"], _client_id(row)).add(row)

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            if one.count >= self.limits.single_produces:
                said = f"{one.count} connections with one Produce request each"
                yield self.found(said, one, client_host=host, client_id=client)


class _Rebalances(_Rule):
    """A group that rebalances over and over, and who joins it anew."""

    name = "rebalance-loop"
    tables = ("calls",)
    severity = "high"
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

    def take(self, name: str, rows: _Rows) -> None:
        for row in dicts(rows.where(api_name=("JoinGroup", "LeaveGroup"), status="ok")):
            at = (row["capture"], row["connection"], row["correlation_id"])
            if row["direction"] == "request":
                group = row["group_id"]
                if group is None:
                    continue
                if row["api_name"] == "LeaveGroup":
                    self._left[group] += 1
                    continue
                self._joined.setdefault(group, Counter())[row["client_id"] or "-"] += 1
                self._asked[at] = group
                if len(self._asked) > 1 << 16:
                    del self._asked[next(iter(self._asked))]
            elif row["api_name"] == "JoinGroup":
                group = self._asked.pop(at, None)
                generation = row["generation"]
                if group is None or generation is None or generation <= self._latest.get(group, 0):
                    continue
                self._latest[group] = generation
                row["time"] = _micros(row["frame_timestamp"])
                self.tally(group).add(row)

    def findings(self) -> Iterator[Finding]:
        for (group,), one in self.tallies.items():
            if one.busiest >= self.limits.rebalances:
                who = ", ".join(f"{client} ({count})" for client, count in self._joined[group].most_common(5))
                left = self._left[group]
                said = f"{one.count} generations, {one.busiest} in a minute; {left} members left; joined: {who}"
                yield self.found(said, one, group_id=group)


def _numbered(table: pa.Table, columns: Sequence[str]) -> tuple[Array, list[tuple[Any, ...]]]:
    """A number for each row, the same where ``columns`` have the same values, and the values of each number."""
    numbers = _numbers(table, columns)
    first = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    # Of rows with the same number the one that is written last stays: the first one.
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    kept = table.select(list(columns)).take(pa.array(first))
    return numbers, list(tuples(kept))


def _numbers(table: pa.Table, columns: Sequence[str]) -> Array:
    """A number for each row, the same where ``columns`` have the same values; as small as can be."""
    numbers = np.zeros(table.num_rows, np.int64)
    many = 1
    for name in columns:
        of, more = _codes(table[name])
        if more == 1:
            continue
        if many * more >= _MOST_NUMBERS:
            # Numbers of what there is, so that products stay small.
            made = pa.array(numbers).dictionary_encode()
            numbers, many = made.indices.to_numpy().astype(np.int64), len(made.dictionary)
        numbers = numbers * more + of
        many *= more
    return pa.array(numbers).dictionary_encode().indices.to_numpy()


def _codes(values: pa.ChunkedArray) -> tuple[Array, int]:
    """A number for each value, the same for those that are the same, and how many numbers there may be."""
    if pa.types.is_integer(values.type):
        # What lies close together needs no dictionary.
        ends = pc.min_max(values).as_py()
        least, most = ends["min"], ends["max"]
        if least is not None and -_CLOSE <= least <= most < _CLOSE:
            return pc.fill_null(values.cast(pa.int64()), most + 1).to_numpy() - least, most - least + 2
    encoded = values.combine_chunks().dictionary_encode()
    many = len(encoded.dictionary)
    if many == 1 and not encoded.null_count:
        return np.zeros(len(encoded), np.int64), 1
    return pc.fill_null(encoded.indices, many).to_numpy().astype(np.int64), many + 1


class _LateHeartbeats(_Rule):
    """Members whose heartbeats come later than their session timeout, and who were told that they are not known."""

    name = "late-heartbeats"
    tables = ("calls",)
    severity = "high"
    _COLUMNS = (*_FRAME, "frame_timestamp", *_CLIENT, "api_name", "group_id", "member_id", "session_timeout_ms")
    advice = "find what stops the client (long pauses, starved processors); a larger session.timeout.ms tolerates it"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._timeout: dict[tuple[Any, ...], int] = {}
        """By host, group and client_id: the session timeout that was asked for last."""
        self._last: dict[tuple[Any, ...], int | None] = {}
        """By group and member: when the last heartbeat came, None if the member has joined anew since."""
        self._gap: dict[tuple[Any, ...], int] = {}

    def take(self, name: str, rows: _Rows) -> None:
        table = rows.where(columns=self._COLUMNS, api_name=("JoinGroup", "Heartbeat"), direction="request", status="ok")
        if not table.num_rows:
            return
        times = table["frame_timestamp"].cast(pa.int64()).to_numpy()
        joins = pc.equal(table["api_name"], "JoinGroup").to_numpy(zero_copy_only=False)
        clients, client_keys = _numbered(table, ("client_host", "group_id", "client_id"))
        timeouts = self._timeouts(table, joins, clients, client_keys)
        # The heartbeats and joins of a member stand together, each behind the one before.
        members, member_keys = _numbered(table, ("group_id", "member_id"))
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
        if not len(hits):
            return
        hits = hits[np.argsort(order[hits])]
        numbers = clients[order[hits]]
        told = table.take(pa.array(order[hits])).append_column("gap", pa.array(gaps[hits]))
        told = told.append_column("timeout", pa.array(timeouts[order[hits]])).append_column("of", pa.array(numbers))
        for row in _grouped(told, ("of", "timeout"), each=True):
            key = (*client_keys[row["of"]], row["timeout"])
            self.tally(*key).add(row, count=row["count"])
        for row in dicts(told.group_by(["of", "timeout"]).aggregate([("gap", "max")])):
            key = (*client_keys[row["of"]], row["timeout"])
            self._gap[key] = max(row["gap_max"], self._gap.get(key, 0))

    def _timeouts(self, table: pa.Table, joins: Array, clients: Array, keys: Sequence[tuple[Any, ...]]) -> Array:
        """The session timeout of each row: that of the JoinGroup request before it, of the same client."""
        asked = pc.fill_null(table["session_timeout_ms"], 0).to_numpy().astype(np.int64)
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
        for key, one in self.tallies.items():
            host, group, client, timeout = key
            said = (
                f"up to {self._gap[key] / 1e6:.1f} s between heartbeats, with a session timeout of {timeout / 1000:g} s"
            )
            yield self.found(said, one, client_host=host, client_id=client, group_id=group)


class _LatePolls(_Rule):
    """Consumers that leave their group and join it again: that is what a client does for a program that did not poll
    for longer than ``max.poll.interval.ms``."""

    name = "late-polls"
    tables = ("calls",)
    severity = "high"
    advice = (
        "unless the program unsubscribes on purpose: work on fewer records between polls (max.poll.records), or raise "
        "max.poll.interval.ms"
    )
    _MOST = 1 << 16
    """Members that have left and may come back."""
    _HEARTBEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._left: dict[tuple[Any, ...], None] = {}
        self._allowed: dict[tuple[Any, ...], int] = {}

    def take(self, name: str, rows: _Rows) -> None:
        # In the newer protocols a member leaves with the epoch -1 and joins with 0.
        both = rows.where(api_name=("JoinGroup", "LeaveGroup", *self._HEARTBEATS), direction="request", status="ok")
        old = pc.is_in(both["api_name"], value_set=pa.array(("JoinGroup", "LeaveGroup")))
        both = both.filter(pc.or_(old, pc.is_in(both["generation"], value_set=pa.array((-1, 0), pa.int32()))))
        both = both.append_column("time", both["frame_timestamp"].cast(pa.int64())).drop_columns("frame_timestamp")
        for row in dicts(both):
            at = (row["capture"], row["connection"], row["group_id"])
            key = (row["client_host"], row["client_id"], row["group_id"])
            if row["api_name"] == "LeaveGroup" or (row["generation"] == -1 and row["api_name"] != "JoinGroup"):
                self._left[at] = None
                if len(self._left) > self._MOST:
                    del self._left[next(iter(self._left))]
            elif at in self._left:
                del self._left[at]
                self.tally(*key).add(row)
                if (row["rebalance_timeout_ms"] or 0) > 0:
                    self._allowed[key] = row["rebalance_timeout_ms"]

    def findings(self) -> Iterator[Finding]:
        for key, one in self.tallies.items():
            host, client, group = key
            if one.count >= self.limits.late_polls:
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
    advice = "let the broker wait: raise fetch.max.wait.ms and fetch.min.bytes; poll with a timeout"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._full: Counter[tuple[Any, ...]] = Counter()

    def take(self, name: str, rows: _Rows) -> None:
        answers = rows.where(api_name="Fetch", direction="response")
        if name == "frames":
            for row in _grouped(answers, _CLIENT):
                self.tally(row["client_host"], row["client_id"]).add(row, count=row["count"])
            return
        filled = answers.filter(pc.greater(pc.fill_null(answers["record_bytes"], 0), 0))
        # Each frame once, however many partitions it fills.
        made = filled.group_by(["capture", *_CLIENT], use_threads=False).aggregate([("frame", "count_distinct")])
        for row in dicts(made):
            self._full[row["client_host"], row["client_id"]] += row["frame_count_distinct"]

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            empty = one.count - self._full[host, client]
            if one.busiest >= self.limits.empty_fetches and empty * 10 >= one.count * 9:
                said = f"{empty} of {one.count} Fetch responses had no records, {one.busiest} came in a minute"
                yield self.found(said, one, count=empty, client_host=host, client_id=client)


class _Commits(_Rule):
    """A client commits offsets all the time."""

    name = "over-committing"
    tables = ("calls",)
    severity = "low"
    advice = "commit by time or by batch (auto.commit.interval.ms), not for every record"

    def take(self, name: str, rows: _Rows) -> None:
        asked = rows.where(api_name="OffsetCommit", direction="request", status="ok")
        for row in _grouped(asked, ("group_id", *_CLIENT)):
            self.tally(row["client_host"], row["client_id"], row["group_id"]).add(row, count=row["count"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, group), one in self.tallies.items():
            if one.busiest >= self.limits.commits:
                said = f"{one.count} commits, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)


_Place = tuple[str | None, str | None, int | None]
_PLACE: Final = ("group_id", "topic", "partition")


_Sorted = tuple[pa.Table, Array, Array]
"""Commits; their order by place, then time; where each place begins in that order."""


class _Transactions:
    """How transactions end. What a request commits does not name its transaction in ``partitions``, but its frame."""

    APIS = ("TxnOffsetCommit", "EndTxn", "InitProducerId")
    _COLUMNS = ("capture", "frame", "frame_timestamp", "api_name", "transactional_id", "committed")
    _MOST = 1 << 16
    """Commits and transactional ids that are remembered,"""
    _ENDS = 256
    """and ends of each."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, int], str] = {}
        """By capture and frame of a commit: the transactional id."""
        self._ends: dict[str, list[tuple[int, bool]]] = {}
        """By transactional id: when transactions ended, and whether they were committed."""

    def take(self, rows: _Rows) -> None:
        """Takes rows of ``calls``."""
        told = rows.where(columns=self._COLUMNS, api_name=self.APIS, direction="request", status="ok")
        told = told.filter(pc.is_valid(told["transactional_id"]))
        told = told.set_column(2, "time", told["frame_timestamp"].cast(pa.int64()))
        for capture, frame, time, api, name, committed in tuples(told):
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
        self._rows: _Rows | None = None
        self._calls: _Rows | None = None
        self._found: _Sorted | None = None
        self._waiting: pa.Table | None = None
        """Requests of the batch before without a response."""
        self._last: dict[_Place, dict[str, Any]] = {}

    def of(self, rows: _Rows) -> _Sorted:
        """The commits of a batch."""
        if self._found is None or self._rows is not rows:
            self._settle()
            names = ("OffsetCommit", "TxnOffsetCommit")
            self._rows = rows
            made = self._accepted(rows.where(columns=self.COLUMNS, api_name=names, status="ok"))
            self._found = _sorted(self._ended(made))
        return self._found

    def of_transactions(self, rows: _Rows) -> None:
        """Takes rows of ``calls``, once."""
        if self._calls is not rows:
            self._calls = rows
            self.transactions.take(rows)

    def rest(self) -> _Sorted | None:
        """The commits that wait for responses still, or for the end of a transaction that will not be known."""
        self._settle()
        waiting = [one for one in (self._waiting, self._open) if one is not None]
        if not waiting:
            return None
        made = pa.concat_tables(waiting)
        counts = [
            verdict or (verdict is None and not self.transactions.seen(capture, frame))
            for verdict, (capture, frame) in zip(
                self._verdicts(made), tuples(made.select(["capture", "frame"])), strict=True
            )
        ]
        made = made.filter(pa.array(counts, pa.bool_()))
        return _sorted(made.filter(self._not_late(made)))

    def before(self, place: _Place) -> dict[str, Any] | None:
        """The last commit of a place before the batch that ``of`` was asked for."""
        return self._last.get(place)

    def last(self) -> dict[_Place, dict[str, Any]]:
        """The last commit of each place, those that wait among them."""
        rest = self.rest()
        return self._last if rest is None else self._last | _last_of(rest)

    def _settle(self) -> None:
        if self._found is not None:
            self._last.update(_last_of(self._found))
            self._found = None

    def _accepted(self, made: pa.Table) -> pa.Table:
        """The requests among rows of both directions that were not refused, those of the batch before among them.
        Requests that have no response yet wait."""
        known = pc.or_(pc.is_valid(made["correlation_id"]), pc.equal(made["direction"], "request"))
        known = pc.and_(known, pc.or_(pc.equal(made["direction"], "response"), pc.is_valid(made["partition"])))
        made = made if pc.all(known).as_py() else made.filter(known)
        old = 0
        if self._waiting is not None:
            old = self._waiting.num_rows
            made = pa.concat_tables([self._waiting, made])
            self._waiting = None
        if not made.num_rows:
            return made
        asked = pc.equal(made["direction"], "request").to_numpy(zero_copy_only=False)
        rows = np.arange(made.num_rows)
        requests = _numbers(made, self._REQUEST)
        # An id is used again when it was answered: what stands behind its last response waits.
        answered = np.full(int(requests.max()) + 1, -1)
        answered[requests[~asked]] = rows[~asked]
        waits = asked & (rows >= old) & (answered[requests] < rows)
        waits &= pc.is_valid(made["correlation_id"]).to_numpy(zero_copy_only=False)
        kept = asked & ~waits & ~self._refused(made, requests, asked)
        if waits.any():
            self._waiting = made.filter(pa.array(waits))
        before = np.flatnonzero(kept[:old])
        kept[before] = self._not_late(made.take(pa.array(before))).to_numpy(zero_copy_only=False)
        return made.filter(pa.array(kept))

    def _ended(self, made: pa.Table) -> pa.Table:
        """Accepted commits, without those whose transaction has not ended, and those of before whose has."""
        inside = pc.equal(made["api_name"], "TxnOffsetCommit")
        if self._open is None and not pc.any(inside).as_py():
            return made
        mine = made.filter(inside)
        if self._open is not None:
            mine = pa.concat_tables([self._open, mine])
        verdicts = self._verdicts(mine)
        many = sum(one is None for one in verdicts)
        for at, one in enumerate(verdicts):
            if many > self._MOST_OPEN and one is None:
                # Nobody will know any more.
                verdicts[at], many = True, many - 1
        self._open = mine.filter(pa.array([one is None for one in verdicts], pa.bool_())) if many else None
        done = mine.filter(pa.array([one is True for one in verdicts], pa.bool_()))
        return pa.concat_tables([made.filter(pc.invert(inside)), done.filter(self._not_late(done))])

    def _verdicts(self, made: pa.Table) -> list[bool | None]:
        """Which commits took effect: all that are in no transaction. None: it is not decided."""
        times = made["frame_timestamp"].cast(pa.int64())
        told = made.select(["capture", "frame", "api_name"]).append_column("time", times)
        return [
            self.transactions.committed(capture, frame, time) if api == "TxnOffsetCommit" else True
            for capture, frame, api, time in tuples(told)
        ]

    def _refused(self, made: pa.Table, requests: Array, asked: Array) -> Array:
        """Which rows are followed by a response that says that what they ask was not done. Where nothing of a request
        was refused, which is mostly so, its parts are not looked at."""
        refused = np.zeros(made.num_rows, bool)
        wrong = ~asked & pc.not_equal(pc.fill_null(made["error"], "NONE"), "NONE").to_numpy(zero_copy_only=False)
        if wrong.any():
            some = np.zeros(int(requests.max()) + 1, bool)
            some[requests[wrong]] = True
            rows = np.flatnonzero(some[requests])
            # Rows of one part of a request stand in the order of time.
            parts = _numbers(made.take(pa.array(rows)), self._PART)
            order = np.argsort(parts, kind="stable")
            same = np.diff(parts[order]) == 0
            rows = rows[order]
            refused[rows[:-1]] = same & wrong[rows[1:]]
        return refused

    def _not_late(self, made: pa.Table) -> pa.Array:
        """Which of the commits that waited are not followed by one of their place that did not."""
        times = made["frame_timestamp"].cast(pa.int64()).to_pylist()
        places = zip(*(made[name].to_pylist() for name in _PLACE), strict=True)
        known = (self._last.get(place) for place in places)
        said = [one is None or one["time"] <= time for one, time in zip(known, times, strict=True)]
        return pa.array(said, pa.bool_())


def _sorted(made: pa.Table) -> _Sorted:
    if made["offset"].null_count:
        made = made.filter(pc.is_valid(made["offset"]))
    if not made.num_rows:
        return made, np.zeros(0, np.int64), np.zeros(0, np.int64)
    places, keys = _numbered(made, _PLACE)
    # Few numbers are sorted by their digits.
    places = places.astype(np.uint16) if len(keys) < 1 << 16 else places
    times = made["frame_timestamp"].cast(pa.int64()).to_numpy()
    in_order = bool((times[1:] >= times[:-1]).all())
    order = np.argsort(places, kind="stable") if in_order else np.lexsort((times, places))
    own = places[order]
    return made, order, np.flatnonzero(np.append(True, own[1:] != own[:-1]))


def _last_of(found: _Sorted) -> dict[_Place, dict[str, Any]]:
    made, order, first = found
    if not made.num_rows:
        return {}
    final = np.append(first[1:], len(order)) - 1
    told = made.take(pa.array(order[final]))
    told = told.append_column("time", told["frame_timestamp"].cast(pa.int64())).drop_columns("frame_timestamp")
    return {(row["group_id"], row["topic"], row["partition"]): row for row in dicts(told)}


class _Offsets(_Rule):
    """What groups commit."""

    tables = ("partitions",)
    also = ("calls",)

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self.commits = _Committed()

    def take(self, name: str, rows: _Rows) -> None:
        if name == "calls":
            self.commits.of_transactions(rows)
        else:
            self.take_partitions(rows)

    def take_partitions(self, rows: _Rows) -> None:
        """Takes rows of ``partitions``."""
        raise NotImplementedError


class _OffsetsBack(_Offsets):
    """A group commits an offset that is lower than the one before."""

    name = "offsets-back"
    advice = "unless somebody has reset the group: see who commits, two members may believe that they own the partition"

    def take_partitions(self, rows: _Rows) -> None:
        self._judge(self.commits.of(rows), self.tallies)

    def _judge(self, found: _Sorted, tallies: _Tallies) -> None:
        made, order, first = found
        if not made.num_rows:
            return
        offsets = made["offset"].to_numpy()[order]
        before = np.append(offsets[:1], offsets[:-1])
        begins = tuples(made.select(list(_PLACE)).take(pa.array(order[first])))
        for at, place in zip(first.tolist(), begins, strict=True):
            known = self.commits.before(place)
            before[at] = offsets[at] if known is None else known["offset"]
        back = offsets < before
        if not back.any():
            return
        # In floating point: offsets of 64 bits may be farther apart than these hold.
        by = pa.array(before[back].astype(np.float64) - offsets[back])
        told = made.take(pa.array(order[back])).append_column("back", by)
        for row in _grouped(told, (*_PLACE, *_CLIENT), ("back",), each=True):
            one = tallies.setdefault(tuple(row[key] for key in (*_PLACE, *_CLIENT)), _Tally())
            one.add(row, count=row["count"], amount=row["back"])

    def findings(self) -> Iterator[Finding]:
        # What waits is judged as it stands, and once more when more was read.
        rest = self.commits.rest()
        more: _Tallies = {}
        if rest is not None:
            self._judge(rest, more)
        for key in self.tallies | more:
            one = _Tally()
            for each in (self.tallies.get(key), more.get(key)):
                if each is not None:
                    one.join(each)
            group, topic, partition, host, client = key
            if one.count >= self.limits.offsets_back:
                said = f"{one.count} commits of a lower offset than before, by {int(one.amount)} records together"
                yield self.found(
                    said, one, client_host=host, client_id=client, group_id=group, topic=topic, partition=partition
                )


_Log = tuple[str | None, int | None]
_NOTHING: Final = np.zeros(0, np.int64)


class _Lag(_Offsets):
    """How far what a group has committed last is behind the end of its topics."""

    name = "lag"
    advice = "add members (up to the number of partitions), or see what makes the consumer slow"
    _PRODUCE = ("capture", "connection", "direction", "topic", "partition", "offset", "records")

    _MOST_ASKED = 1_000
    """Produce requests of a connection and partition that wait for their responses."""
    _MOST_WAITING = 1 << 16
    """Connections and partitions with such."""

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._newest: dict[_Log, int] = {}
        self._waiting: dict[tuple[Any, ...], tuple[int, int, Array]] = {}
        """By capture, connection, topic and partition: the newest batch that was written (its offset, its records), and
        the records of requests without a response."""

    def take_partitions(self, rows: _Rows) -> None:
        self.commits.of(rows)
        told = rows.where(api_name="Fetch", direction="response", status="ok")
        self._told(told, "high_watermark")
        # No offset that a broker gives here is beyond the high watermark.
        self._told(rows.where(api_name="ListOffsets", direction="response", status="ok"), "offset")
        self._written(rows)

    def _told(self, told: pa.Table, column: str) -> None:
        told = told.filter(pc.greater_equal(pc.fill_null(told[column], -1), 0))
        made = told.group_by(["topic", "partition"], use_threads=False).aggregate([(column, "max")])
        for *log, most in tuples(made.select(["topic", "partition", f"{column}_max"])):
            key = (log[0], log[1])
            self._newest[key] = max(most, self._newest.get(key, 0))

    def _written(self, rows: _Rows) -> None:
        """Produce: the response says where the batch begins, and the request how many records it has. Responses come
        in the order of requests."""
        made = rows.where(columns=self._PRODUCE, api_name="Produce", status="ok")
        if not made.num_rows:
            return
        numbers, keys = _numbered(made, ("capture", "connection", "topic", "partition"))
        asked = pc.equal(made["direction"], "request").to_numpy(zero_copy_only=False)
        offsets = pc.fill_null(made["offset"], -1).to_numpy()
        records = pc.fill_null(made["records"], 1).to_numpy()
        order = np.argsort(numbers, kind="stable")
        first = np.flatnonzero(np.append(True, np.diff(numbers[order]) != 0))
        for rows_of in np.split(order, first[1:]):
            key = keys[int(numbers[rows_of[0]])]
            begin, count, queue = self._waiting.pop(key, (-1, 0, _NOTHING))
            queue = np.append(queue, records[rows_of[asked[rows_of]]])
            told = offsets[rows_of[~asked[rows_of]]]
            if len(told):
                latest = int(np.argmax(told))
                if told[latest] > begin:
                    begin, count = int(told[latest]), int(queue[latest]) if latest < len(queue) else 1
                queue = queue[len(told) :]
            if len(queue) or begin < 0:
                self._waiting[key] = begin, count, queue[-self._MOST_ASKED :]
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
            self._reach(key[2:], begin + int(min(count, queue.min())))

    @property
    def newest(self) -> dict[_Log, int]:
        """The end of each topic and partition, as far as it is known: the newest high watermark, what was written."""
        made = dict(self._newest)
        for (_, _, topic, partition), (begin, count, queue) in self._waiting.items():
            if begin >= 0:
                end = begin + int(min(count, queue.min()))
                made[topic, partition] = max(end, made.get((topic, partition), 0))
        return made

    def lags(self) -> Iterator[tuple[str, str | None, int | None, int]]:
        """Group, topic, partition and how many records it is behind."""
        ends = self.newest
        for (group, topic, partition), row in self.commits.last().items():
            newest = ends.get((topic, partition))
            if newest is not None and group is not None and row["offset"] >= 0:
                yield group, topic, partition, max(0, newest - row["offset"])

    def findings(self) -> Iterator[Finding]:
        ends = self.newest
        for (group, topic, partition), row in self.commits.last().items():
            newest = ends.get((topic, partition))
            if newest is None or row["offset"] < 0 or newest - row["offset"] < self.limits.lag:
                continue
            one = _Tally()
            one.add(row)
            said = f"{newest - row['offset']} records behind: {row['offset']} committed, the log ends at {newest}"
            yield self.found(
                said, one, count=newest - row["offset"], client_host=row["client_host"], client_id=row["client_id"],
                group_id=group, topic=topic, partition=partition,
            )  # fmt: skip


class _Throttled(_Rule):
    """Brokers tell a client to wait: it is beyond its quota."""

    name = "throttled"
    tables = ("calls",)
    advice = "raise the quota, or make the client send or fetch less"

    def take(self, name: str, rows: _Rows) -> None:
        told = rows.table.filter(pc.greater(pc.fill_null(rows.table["throttle_ms"], 0), 0))
        for row in _grouped(told, (*_CLIENT, "api_name"), ("throttle_ms",)):
            one = self.tally(row["client_host"], row["client_id"], row["api_name"])
            one.add(row, count=row["count"], amount=row["throttle_ms"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, api), one in self.tallies.items():
            if one.amount >= self.limits.throttled_ms:
                said = f"{one.count} {api} responses told it to wait, {int(one.amount)} ms together"
                yield self.found(said, one, client_host=host, client_id=client)


class _Retried(_Rule):
    """A producer sends a batch again."""

    name = "retried-batches"
    tables = ("records",)
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

    def take(self, name: str, rows: _Rows) -> None:
        known = pc.fill_null(pc.greater_equal(rows.table["producer_id"], 0), False)
        if not pc.any(known).as_py():
            return
        sent = _Rows(rows.table.filter(known)).where(source="produce", status="ok")
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
        numbers, _ = _numbered(sent, self._OF)
        frames, _ = _numbered(sent, ("capture", "frame"))
        order = np.argsort(numbers, kind="stable")
        # Rows may be cut within a batch: what goes on with one is none of its own.
        order = order[np.append(True, (np.diff(numbers[order]) != 0) | (np.diff(frames[order]) != 0))]
        own, frames = numbers[order], frames[order]
        sequences = pc.fill_null(sent["sequence"], -1).to_numpy()[order]
        again = np.zeros(len(order), bool)
        for back in range(1, min(self._BACK, len(order) - 1) + 1):
            same = (own[back:] == own[:-back]) & (sequences[back:] == sequences[:-back])
            again[back:] |= same & (frames[back:] != frames[:-back])
        hits = np.sort(order[again & (order >= old)])
        for row in _grouped(sent.take(pa.array(hits)), ("producer_id", "of", "partition"), each=True):
            self.tally(row["producer_id"], row["of"], row["partition"]).add(row, count=row["count"])
        kept = np.append(own[self._BACK :] != own[: -self._BACK], np.ones(min(self._BACK, len(own)), bool))
        self._before = sent.take(pa.array(np.sort(order[kept])[-self._KEPT :]))

    def findings(self) -> Iterator[Finding]:
        for (producer, topic, partition), one in self.tallies.items():
            if one.count >= self.limits.retried_batches:
                said = f"producer {producer} sent {one.count} batches again"
                yield self.found(said, one, topic=topic, partition=partition)


class _Errors(_Rule):
    """Errors in responses: what clients are told, by kind."""

    tables = ("frames",)
    errors: frozenset[str] = frozenset()

    def take(self, name: str, rows: _Rows) -> None:
        flat = rows.errors
        if not flat.num_rows:
            return
        # How a client finds out which versions there are (KIP-511): it asks once more, and no harm is done.
        asked = pc.and_(pc.equal(flat["api_name"], "ApiVersions"), pc.equal(flat["error"], "UNSUPPORTED_VERSION"))
        flat = flat.filter(pc.invert(pc.fill_null(asked, False)))
        for row in _grouped(flat, (*_CLIENT, "api_name", "error")):
            if self.wanted(row["error"], row["client_id"]):
                self.tally(row["client_host"], row["client_id"], row["api_name"], row["error"]).add(
                    row, count=row["count"]
                )

    def wanted(self, error: str, client: str | None) -> bool:
        """Whether it is one of those that this rule is about. ``client``: the client_id."""
        return error in self.errors

    def enough(self) -> int:
        """How many are a finding."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        for (host, client, api, error), one in self.tallies.items():
            if one.count >= self.enough():
                said = f"{error} in {one.count} {api} responses"
                yield self.found(said, one, client_host=host, client_id=client)


class _StaleLeaders(_Errors):
    """A client goes on asking brokers that do not lead the partition."""

    name = "stale-leaders"
    advice = "see whether leaders change all the time, and whether the client refreshes its metadata after such errors"
    errors = frozenset(
        ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "LEADER_NOT_AVAILABLE")
    )

    def wanted(self, error: str, client: str | None) -> bool:
        # Members of a quorum find out so who leads it.
        return error in self.errors and not (client or "").startswith("raft-client-")

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
    _MOST = 1 << 14
    """Connections whose denials are kept apart until their principal is known."""
    severity = "high"
    advice = "grant what the client needs (ACLs), or stop it from asking"
    errors = frozenset(
        ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
         "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
    )  # fmt: skip

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._of: dict[tuple[str, int], _Tallies] = {}
        self._principals: dict[tuple[str, int], str | None] = {}

    def take(self, name: str, rows: _Rows) -> None:
        if name == "connections":
            for capture, connection, principal in tuples(rows.table.select(["capture", "connection", "principal"])):
                if principal is not None:
                    self._principals[capture, connection] = principal
            return
        wrong = rows.errors
        wrong = wrong.filter(pc.is_in(wrong["error"], value_set=pa.array(sorted(self.errors))))
        for row in _grouped(wrong, ("connection", *_CLIENT, "api_name", "error"), each=True):
            of = self._of.setdefault((row["capture"], row["connection"]), {})
            key = (row["client_host"], row["client_id"], row["api_name"], row["error"])
            of.setdefault(key, _Tally()).add(row, count=row["count"])
        while len(self._of) > self._MOST:
            self._settle(next(iter(self._of)))

    def _settle(self, at: tuple[str, int]) -> None:
        principal = self._principals.get(at)
        for key, one in self._of.pop(at).items():
            self.tally(*key, principal).join(one)

    def enough(self) -> int:
        return self.limits.denials

    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[Any, ...], _Tally] = {}
        parts = [((*key, self._principals.get(at)), one) for at, of in self._of.items() for key, one in of.items()]
        for key, one in [*self.tallies.items(), *parts]:
            together.setdefault(key, _Tally()).join(one)
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

    def wanted(self, error: str, client: str | None) -> bool:
        return error not in self._OTHERS

    def enough(self) -> int:
        return self.limits.repeated_errors


class _Skew(_Rule):
    """One partition of a topic gets much more than the others."""

    name = "skewed-partitions"
    tables = ("partitions",)
    severity = "low"
    advice = "choose keys that spread records evenly; a key that occurs in most records fills one partition"

    def __init__(self, thresholds: Thresholds) -> None:
        super().__init__(thresholds)
        self._partitions: dict[str, int] = {}
        """By topic: how many partitions it has, where metadata were asked for."""

    def take(self, name: str, rows: _Rows) -> None:
        known = rows.where(columns=("topic", "partition"), api_name="Metadata", direction="response", status="ok")
        known = known.filter(pc.and_(pc.is_valid(known["topic"]), pc.is_valid(known["partition"])))
        for row in dicts(known.group_by("topic", use_threads=False).aggregate([("partition", "max")])):
            self._partitions[row["topic"]] = max(row["partition_max"] + 1, self._partitions.get(row["topic"], 0))
        sent = rows.where(api_name="Produce", direction="request", status="ok")
        for row in _grouped(sent, ("topic", "partition"), ("record_bytes",)):
            if row["topic"] is not None:
                self.tally(row["topic"], row["partition"]).add(row, count=row["count"], amount=row["record_bytes"])

    def findings(self) -> Iterator[Finding]:
        of_topic: dict[str, list[tuple[int, _Tally]]] = {}
        for (topic, partition), one in self.tallies.items():
            of_topic.setdefault(topic, []).append((partition, one))
        for topic, partitions in of_topic.items():
            total = sum(one.amount for _, one in partitions)
            partition, most = max(partitions, key=lambda each: each[1].amount)
            # To some of them nothing may be written at all.
            count = max(len(partitions), self._partitions.get(topic, 0))
            mean = (total - most.amount) / max(1, count - 1)
            if count >= 4 and total >= self.limits.skewed_bytes and most.amount >= self.limits.skew * mean:
                said = f"{most.amount / total:.0%} of {int(total)} bytes go to one of {count} partitions"
                yield self.found(said, most, count=int(most.amount), topic=topic, partition=partition)


class _Large(_Rule):
    """Requests that are nearly, or already, larger than what is allowed."""

    name = "large-messages"
    tables = ("frames",)
    advice = "send less at once, or compress; the limits are max.request.size and message.max.bytes"
    _REFUSED = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")

    def take(self, name: str, rows: _Rows) -> None:
        asked = rows.where(api_name="Produce", direction="request")
        asked = asked.filter(pc.greater_equal(asked["size"], self.limits.large_requests))
        for row in _grouped(asked, _CLIENT, ("size",)):
            self.tally(row["client_host"], row["client_id"], "").add(row, count=row["count"], amount=row["size"])
        wrong = rows.errors
        wrong = wrong.filter(pc.is_in(wrong["error"], value_set=pa.array(self._REFUSED)))
        for row in _grouped(wrong, _CLIENT):
            self.tally(row["client_host"], row["client_id"], "refused").add(row, count=row["count"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, refused), one in self.tallies.items():
            said = f"{one.count} Produce requests of {one.amount / one.count / 1e6:.2f} MB on average"
            if refused:
                said = f"{one.count} requests were refused as too large"
            yield self.found(said, one, client_host=host, client_id=client)


class _Sasl(_Rule):
    """Connections on which authentication failed, by principal where secrets are shown."""

    name = "sasl-failures"
    tables = ("connections",)
    severity = "high"
    advice = "see who it is (--secrets show in the table connections) and give it valid credentials, or block it"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _connections(rows.table):
            if row["sasl_outcome"] == "failed":
                error = (row["sasl_error"] or "").partition(":")[0]
                self.tally(row["client_host"], _client_id(row), row["principal"], row["sasl_mechanism"], error).add(row)

    def findings(self) -> Iterator[Finding]:
        for (host, client, principal, mechanism, error), one in self.tallies.items():
            if one.count >= self.limits.sasl_failures:
                said = f"{one.count} connections failed to authenticate with {mechanism or 'SASL'}: {error}"
                yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class _Stopped(_Rule):
    """A member of a group that still sends heartbeats, but fetches no more."""

    name = "stopped-consumers"
    tables = ("frames",)
    severity = "high"
    advice = "the consumer is stuck or paused while its heartbeats go on: see what it does with the records that it got"

    def take(self, name: str, rows: _Rows) -> None:
        for row in _grouped(
            rows.where(api_name=("Fetch", "Heartbeat", "ConsumerGroupHeartbeat"), direction="request"),
            (*_CLIENT, "api_name"),
        ):
            kind = "fetch" if row["api_name"] == "Fetch" else "heartbeat"
            self.tally(row["client_host"], row["client_id"], kind).add(row, count=row["count"])

    def findings(self) -> Iterator[Finding]:
        for (host, client, kind), one in self.tallies.items():
            beats = self.tallies.get((host, client, "heartbeat"))
            if kind != "fetch" or beats is None or one.last is None or beats.last is None:
                continue
            quiet = (beats.last - one.last) / 1e6
            if quiet >= self.limits.stopped_seconds:
                said = f"no Fetch request in the {quiet:.0f} s before its last heartbeat"
                yield self.found(said, one, client_host=host, client_id=client)


RULES: Final[dict[str, type[_Rule]]] = {
    rule.name: rule
    for rule in (
        _TinyBatches, _Uncompressed, _MixedAcks, _Metadata, _Churn, _ProducerPerMessage, _Rebalances, _LateHeartbeats,
        _LatePolls, _EmptyFetches, _Commits, _OffsetsBack, _Throttled, _Retried, _StaleLeaders, _Skew, _Large, _Fenced,
        _Denied, _Sasl, _Stopped, _Lag, _Repeated,
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
        """Takes rows of the table ``name``."""
        self.add_table(name, pa.Table.from_batches([batch]))

    def add_table(self, name: str, table: pa.Table) -> None:
        """The same of several batches at once."""
        if name == "partitions":
            # A topic whose name is not known has its id.
            at = table.column_names.index("topic")
            table = table.set_column(at, "topic", pc.coalesce(table["topic"], table["topic_id"]))
        rows = _Rows(table)
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
    return [f"{len(found)} findings: {said}." if found else "No findings."]


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
