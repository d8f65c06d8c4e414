"""All that a report says of captures, added up in one pass.

It has traffic, latencies, topics, clients, batches, errors, gaps, versions, groups, transactions and the way of
records. It also has the answers of ``audit``, ``findings`` and ``lineage``.

Strategy: batches of five tables are first reduced to what they have of each key (``Rows.totals``). So Python sees sums
and not rows. Sums are kept by ``kwire.report.sums``, which bounds them.

Rules kept here:

- Totals are those of the tables. Every row is counted once, in the row of a table that says so (docs/how-to/report.md).
- What the tables do not know (records of compressed messages of magic 0 and 1, names of topics) is not guessed.
- Texts are as the tables have them: whoever shows them escapes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire.report import DEFAULT_TARGET, KAFKA
from kwire.report import findings as rules
from kwire.report import lineage as edges
from kwire.report.audit import CONNECTIONS, RECORDS, Auditor
from kwire.report.contents import OF_VALUES as CONTENTS
from kwire.report.contents import Contents
from kwire.report.flows import TABLES as OF_FLOWS
from kwire.report.flows import Flows
from kwire.report.members import TABLES as OF_MEMBERS
from kwire.report.members import Members
from kwire.report.sums import (
    UNDATED,
    Clock,
    Latencies,
    Slow,
    Spans,
    Timeline,
    Top,
    dicts,
    latency_steps,
    slowest,
    tuples,
)
from kwire.report.tallies import Array, Rows, firsts, rows_of

if TYPE_CHECKING:
    from kwire.values import Schemas

__all__ = ["TABLES", "WITH_VALUES", "Overview"]

_CLIENT: Final = ("client_host", "client_id")
_OWN: Final[dict[str, Sequence[str]]] = {
    "frames": (
        "timestamp", "direction", *_CLIENT, "broker_host", "broker_port", "api_name", "api_version", "size",
        "latency_ms", "status", "errors",
    ),
    "partitions": (
        "frame_timestamp", "direction", *_CLIENT, "api_name", "group_id", "topic", "topic_id", "partition", "offset",
        "high_watermark", "record_bytes", "batches", "records", "compression", "error", "status",
    ),
    "calls": (
        "frame_timestamp", "direction", *_CLIENT, "api_name", "group_id", "member_id", "generation", "acks",
        "throttle_ms", "status",
    ),
    "connections": (
        "capture", "connection", "first_seen", "last_seen", "client_host", "client_port", "broker_host", "broker_port",
        "client_ids", "software_name", "software_version", "tls", "ended", "handshake_ms", "client_wire_bytes",
        "broker_wire_bytes", "client_repeats", "broker_repeats", "client_late", "broker_late", "client_missing_bytes",
        "broker_missing_bytes", "requests", "responses", "unanswered", "status",
    ),
    "records": ("status",),
}  # fmt: skip


def _union(*parts: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: list(dict.fromkeys(column for part in parts for column in part.get(name, ()))) for name in names}


TABLES: Final = _union(
    _OWN, rules.needed(), edges.TABLES, OF_FLOWS, OF_MEMBERS, {"connections": CONNECTIONS, "records": RECORDS}
)
"""The tables that are read, with their columns."""

WITH_VALUES: Final = _union(
    TABLES,
    rules.needed(schemas=True),
    {"records": (*edges.OF_VALUES, *CONTENTS)},
)
"""The same where the schemas of values are known."""

_AT_ONCE: Final = 1 << 15
"""Rows of a table that are added up together,"""
_BYTES_AT_ONCE: Final = 4 << 20
"""or this many bytes of them."""
COARSE: Final = 5
"""Steps of latencies that are one over time: 10 %."""
_DIRECTIONS: Final = ("read", "written")
_BEATS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
_MOST_SHARED: Final = 20_000


@dataclass(slots=True)
class _Waiting:
    """Batches of a table that were not added up yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


class Overview:
    """Takes batches of the tables of ``TABLES``, in the order of each capture; ``finish`` has to follow the last.

    ``schemas``: the sources of the schemas of values; then the tables are those of ``WITH_VALUES``. Raises
    ``UnsupportedVersionError`` for a ``target`` that is no release.
    """

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        thresholds: rules.Thresholds | None = None,
        schemas: Schemas | None = None,
    ) -> None:
        self.clock: Clock = Clock()
        self.totals: Counter[str] = Counter()
        """Sums over all rows, by name."""
        self.apis: Top = Top(6, 1_000)
        """By API: requests, responses, bytes of each, responses with errors, frames that are not ``ok``."""
        self.versions: Top = Top(1)
        """By API and version: requests."""
        self.users: Top = Top(1)
        """By API, version and client_id: requests."""
        self.brokers: Top = Top(5)
        """By host and port: requests, responses, bytes of each, responses with errors."""
        self.clients: Top = Top(5)
        """By host and client_id: bytes, requests, responses, responses with errors, and bytes of requests."""
        self.latencies: dict[tuple[str, str], Latencies] = {}
        """By API and broker."""
        self.statuses: Counter[tuple[str, str]] = Counter()
        """Frames by status and API, without those that are ``ok``."""
        self.errors: Top = Top(1)
        """By API, error, host and client_id."""
        self.topics: Top = Top(7)
        """By topic: bytes, and bytes, batches, records written and read."""
        self.shared: set[str] = set()
        """Topics that share groups read."""
        self.partitions: Top = Top(5, 20_000)
        """By topic and partition: bytes, and bytes and records written and read."""
        self.data: Top = Top(5)
        """By host and client_id: bytes, and bytes and records written and read."""
        self.topic_errors: Top = Top(1)
        """By topic and error."""
        self.sizes: Counter[tuple[str, int]] = Counter()
        """Batches by way and the power of two that their bytes begin at."""
        self.fills: Counter[tuple[str, int]] = Counter()
        """The same by their records."""
        self.compression: dict[tuple[str, str], list[int]] = {}
        """By way and compression: bytes, batches, records."""
        self.groups: Top = Top(5)
        """By group: requests, joins, leaves, heartbeats, commits."""
        self.members: Top = Top(1)
        """By group, host and client_id: requests."""
        self.acks: Counter[int] = Counter()
        self._waits = Spans()
        """By host and client_id: how long brokers made it wait."""
        self.software: dict[tuple[str, str | None], str] = {}
        self.gaps: Top = Top(6)
        """By capture, connection and both ends: missing bytes, late and repeated segments, unanswered requests."""
        self.handshakes: Latencies = Latencies()
        self.ended: Counter[str] = Counter()
        self.connection_statuses: Counter[str] = Counter()
        self.traffic: Timeline = self.clock.timeline(4)
        """By API: frames, requests, bytes, responses with errors."""
        self.waits: Timeline = self.clock.timeline(1, keep=8_000)
        """By API and step: responses."""
        self.flow: Timeline = self.clock.timeline(2, keep=128)
        """By way and topic: bytes, records."""
        self.wrong: Timeline = self.clock.timeline(1)
        """By error."""
        self.generations: Timeline = self.clock.timeline(3, largest=2)
        """By group: requests, generation, members at least."""
        self.flows: Flows = Flows(self.clock)
        self.courses: Members = Members()
        self.auditor: Auditor = Auditor(target)
        self.finder: rules.Finder = rules.Finder(None, thresholds, schemas)
        self.contents: Contents | None = None if schemas is None else Contents()
        """What is in the records, where the schemas of values are known."""
        self.lineage: edges.Lineage = edges.Lineage()
        self._of_rules = rules.needed()
        self._waiting: dict[str, _Waiting] = {}
        self._takers = {
            "frames": self._frames,
            "partitions": self._partitions,
            "calls": self._calls,
            "connections": self._connections,
            "records": self._records,
            "transactions": self.flows.transactions,
            "journeys": self.flows.journeys,
            "group_events": self.courses.add,
        }

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Take rows of the table ``name``. Few rows wait for more: adding up costs by the batch, too."""
        waiting = self._waiting.setdefault(name, _Waiting())
        waiting.batches.append(batch)
        waiting.rows += batch.num_rows
        waiting.bytes += batch.nbytes
        if waiting.rows >= _AT_ONCE or waiting.bytes >= _BYTES_AT_ONCE:
            self._take(name)

    def finish(self) -> None:
        """Add up the waiting batches."""
        for name in self._waiting:
            self._take(name)

    def _take(self, name: str) -> None:
        waiting, self._waiting[name] = self._waiting[name].batches, _Waiting()
        if not waiting:
            return
        rows = rows_of(name, waiting)
        # They are in ``rows``, as copies.
        waiting.clear()
        # Some tables are for the rules alone.
        if name in self._takers:
            self._takers[name](rows)
        if name in self._of_rules:
            self.finder.add_rows(name, rows)
        if name in edges.TABLES or name == "records":
            self.lineage.add_rows(name, rows)
        if name == "connections":
            self.auditor.add_connections(rows.table)
        elif name == "records":
            self.auditor.add_records(rows.table)

    # -- frames

    def _frames(self, rows: Rows) -> None:
        if rows.unconfirmed:
            self.totals.update(frames=rows.unconfirmed, not_ok=rows.unconfirmed)
            self.statuses["unconfirmed", _known(None)] += rows.unconfirmed
        at = np.arange(rows.table.num_rows)
        sizes = rows.values("size")
        wrong = rows.wrong.astype(np.int64)
        buckets = self.clock.buckets(rows.times)
        ends = ("broker_host", "broker_port")
        keys = ("direction", "api_name", "api_version", "status", *_CLIENT, *ends)
        for row in rows.totals(at, keys, sizes, wrong):
            direction, name, version, status, host, client, broker, port, count, size, bad = row
            api = _known(name)
            asked = direction == "request"
            requests, responses = (count, 0) if asked else (0, count)
            sent, got = (size, 0) if asked else (0, size)
            odd = 0 if status == "ok" else count
            self.totals.update(
                frames=count, requests=requests, responses=responses, request_bytes=sent, response_bytes=got,
                errors=bad, not_ok=odd,
            )  # fmt: skip
            self.apis.add(api, requests, responses, sent, got, bad, odd)
            self.brokers.add(_end(broker, port), requests, responses, sent, got, bad)
            self.clients.add((host, client), size, requests, responses, bad, sent)
            if asked and version is not None:
                self.versions.add((api, version), count)
                self.users.add((api, version, client), count)
            if odd:
                self.statuses[status, api] += count
        for direction, api, bucket, count, size, bad in rows.totals(
            at, ("direction", "api_name", buckets), sizes, wrong
        ):
            self.traffic.add(_known(api), bucket, count, count if direction == "request" else 0, size, bad)
        self._latencies(rows, buckets)
        if wrong.any():
            self._errors(rows.errors, buckets)

    def _latencies(self, rows: Rows, buckets: Array) -> None:
        at = np.flatnonzero(rows.valid("latency_ms"))
        if not len(at):
            return
        milliseconds = rows.table["latency_ms"].fill_null(0).to_numpy()[at]
        keys = ("api_name", "broker_host", "broker_port", latency_steps(milliseconds))
        for name, host, port, step, count, most in rows.totals(at, keys, milliseconds):
            api = _known(name)
            key = (api, _end(host, port))
            found = self.latencies.get(key)
            if found is None:
                if len(self.latencies) >= Top.KEEP:
                    key = (api, _OTHERS)
                found = self.latencies.setdefault(key, Latencies())
            found.add(step, count, most)
            self.totals["latencies"] += count
        for api, step, bucket, count in rows.totals(at, ("api_name", latency_steps(milliseconds, COARSE), buckets[at])):
            self.waits.add((_known(api), step), bucket, count)

    def _errors(self, told: Rows, buckets: Array) -> None:
        keys = ("api_name", "error", *_CLIENT, buckets[told.values("row")])
        for name, error, host, client, bucket, count in told.totals(np.arange(told.table.num_rows), keys):
            self.errors.add((_known(name), error, host, client), count)
            self.wrong.add(error, bucket, count)
            self.totals["error_codes"] += count

    # -- partitions

    def _partitions(self, rows: Rows) -> None:
        self.totals["partition_rows"] += rows.table.num_rows
        fine, asked = rows.mask("status", "ok"), rows.mask("direction", "request")
        failed = fine & ~asked & rows.valid("error") & ~rows.mask("error", "NONE")
        for topic, error, count in rows.totals(np.flatnonzero(failed), ("topic", "error")):
            self.topic_errors.add((_known(topic), error), count)
        moved = fine & (rows.values("record_bytes") > 0)
        writes = moved & asked & rows.mask("api_name", "Produce")
        reads = moved & ~asked & rows.mask("api_name", edges.READS)
        at = np.flatnonzero(writes | reads)
        if not len(at):
            return
        for topic, _ in rows.totals(np.flatnonzero(reads & rows.mask("api_name", "ShareFetch")), ("topic",)):
            if len(self.shared) < _MOST_SHARED:
                self.shared.add(_known(topic))
        written = writes[at].astype(np.int64)
        sums = [rows.values(name)[at] for name in ("record_bytes", "batches", "records")]
        keys = (written, "topic", "partition", *_CLIENT, "compression")
        for wrote, topic, partition, host, client, codec, count, size, batches, records in rows.totals(at, keys, *sums):
            # What is written comes before what is read.
            direction, one = _DIRECTIONS[wrote], _known(topic)
            amounts = (size, batches, records, 0, 0, 0) if wrote else (0, 0, 0, size, batches, records)
            self.topics.add(one, size, *amounts)
            short = (size, records, 0, 0) if wrote else (0, 0, size, records)
            self.partitions.add((one, partition), size, *short)
            self.data.add((host, client), size, *short)
            mine = self.compression.setdefault((direction, codec or "?"), [0, 0, 0])
            for k, value in enumerate((size, batches, records)):
                mine[k] += value
            self.totals.update(
                {
                    f"{direction}_sets": count,
                    f"{direction}_bytes": size,
                    f"{direction}_batches": batches,
                    f"{direction}_records": records,
                }
            )
        buckets = self.clock.buckets(rows.times[at])
        sizes, batches, records = sums
        for wrote, topic, bucket, _, size, many in rows.totals(at, (written, "topic", buckets), sizes, records):
            self.flow.add((_DIRECTIONS[wrote], _known(topic)), bucket, size, many)
        self._batches(written, sizes, batches, self.sizes)
        # In a batch of a ShareFetch response, only what was acquired is counted.
        known = (rows.valid("records") & ~rows.mask("api_name", "ShareFetch"))[at]
        self._batches(written[known], records[known], batches[known], self.fills)

    def _batches(self, written: Array, amounts: Array, batches: Array, counted: Counter[tuple[str, int]]) -> None:
        """Count batches by what they have on average."""
        some = batches > 0
        powers = np.floor(np.log2(np.maximum(amounts[some] / batches[some], 1))).astype(np.int64)
        for wrote, direction in enumerate(_DIRECTIONS):
            mine = written[some] == wrote
            counts = np.bincount(powers[mine], weights=batches[some][mine])
            for power in np.flatnonzero(counts).tolist():
                counted[direction, power] += int(counts[power])

    # -- calls, connections, records

    def _calls(self, rows: Rows) -> None:
        fine = rows.mask("status", "ok")
        waits = rows.values("throttle_ms")
        told = np.flatnonzero(fine & (waits > 0) & (rows.times != UNDATED))
        times = rows.times[told].tolist()
        for time, (host, client, wait) in zip(times, tuples(rows.part((*_CLIENT, "throttle_ms"), told)), strict=True):
            self._waits.add((host, client), time, time + 1000 * wait)
        for acks, count in rows.totals(np.flatnonzero(fine & rows.valid("acks")), ("acks",)):
            self.acks[acks] += count
        asked = np.flatnonzero(fine & rows.mask("direction", "request") & rows.valid("group_id"))
        # A heartbeat of the newer protocols joins with epoch 0, and leaves with -1 or -2.
        epochs = np.where(rows.mask("api_name", _BEATS) & rows.valid("generation"), rows.values("generation"), 1)
        steps = np.sign(epochs)[asked]
        for group, api, host, client, step, count in rows.totals(asked, ("group_id", "api_name", *_CLIENT, steps)):
            self.groups.add(
                group,
                count,
                count if api == "JoinGroup" or not step else 0,
                count if api == "LeaveGroup" or step < 0 else 0,
                count if api == "Heartbeat" or api in _BEATS else 0,
                count if api == "OffsetCommit" else 0,
            )
            self.members.add((group, host, client), count)
        generations = rows.values("generation", -1)
        asked = asked[generations[asked] >= 0]
        if not len(asked):
            return
        buckets = self.clock.buckets(rows.times[asked])
        # Each member of a group and bucket once.
        members, _ = rows.codes("member_id", asked)
        new = np.zeros(len(asked), np.int64)
        new[firsts(rows.numbers(("group_id", buckets, members), asked))] = 1
        new &= rows.valid("member_id")[asked]
        newest = generations[asked].astype(np.float64)
        for group, bucket, count, many, generation in rows.totals(asked, ("group_id", buckets), new, newest):
            self.generations.add(group, bucket, count, int(generation), many)

    def _connections(self, rows: Rows) -> None:
        for row in dicts(rows.table.select(list(_OWN["connections"]))):
            self.connection_statuses[row["status"]] += 1
            if row["status"] not in KAFKA:
                continue
            missing = row["client_missing_bytes"] + row["broker_missing_bytes"]
            late = row["client_late"] + row["broker_late"]
            repeats = row["client_repeats"] + row["broker_repeats"]
            self.totals.update(
                connections=1, tls=int(row["tls"]), missing_bytes=missing, late=late, repeats=repeats,
                unanswered=row["unanswered"], wire_bytes=row["client_wire_bytes"] + row["broker_wire_bytes"],
            )  # fmt: skip
            self.ended[row["ended"]] += 1
            if row["handshake_ms"] is not None:
                self.handshakes.add(int(latency_steps([row["handshake_ms"]])[0]), 1, row["handshake_ms"])
            name = " ".join(part for part in (row["software_name"], row["software_version"]) if part)
            for client in row["client_ids"] if name and len(self.software) < Top.KEEP else ():
                self.software.setdefault((row["client_host"], client), name)
            if missing or late or repeats or row["unanswered"]:
                ends = (_end(row["client_host"], row["client_port"]), _end(row["broker_host"], row["broker_port"]))
                key = (row["capture"], row["connection"], *ends)
                self.gaps.add(
                    key, missing, row["client_missing_bytes"], row["broker_missing_bytes"], late, repeats,
                    row["unanswered"],
                )  # fmt: skip

    def _records(self, rows: Rows) -> None:
        if self.contents is not None:
            self.contents.add(rows)
        self.totals["records"] += int(rows.mask("status", ("ok", "corrupt")).sum())

    # -- what follows from it

    def latency(self, api: str | None = None, broker: str | None = None) -> Latencies:
        """The latencies of an API, of a broker, or of all (None)."""
        made = Latencies()
        for (one, other), found in self.latencies.items():
            if api in (None, one) and broker in (None, other):
                made.merge(found)
        return made

    def lags(self) -> Iterator[tuple[str, int, int]]:
        """The groups that committed something: their lag as far as it is known, and of how many partitions that is."""
        lags: dict[str, list[int]] = {}
        for group, _, _, lag in self.finder.lags():
            mine = lags.setdefault(group, [0, 0])
            mine[0] += lag
            mine[1] += 1
        for group, (lag, partitions) in lags.items():
            yield group, lag, partitions

    def slowest(self) -> tuple[int, int, Slow] | None:
        """When most of what was answered was slow: from, to (microseconds since 1970), and what was."""
        together = max(1, -(-1_000_000 // self.clock.width))
        usual: dict[str, Latencies] = {}
        slots: dict[int, dict[str, Latencies]] = {}
        for key, line in self.waits.of.items():
            if key is None:
                continue
            api, step = key
            for bucket, (count,) in line.items():
                slots.setdefault(bucket // together, {}).setdefault(api, Latencies()).add(step, count)
                usual.setdefault(api, Latencies()).add(step, count)
        found = slowest(slots, usual)
        if found is None:
            return None
        width = together * self.clock.width
        return found.at * width, (found.at + 1) * width, found

    def throttled(self, host: str, client: str | None) -> float | None:
        """The milliseconds for which brokers made a client wait, within the capture. None: it was not."""
        between = self.clock.between()
        waited = self._waits.covered((host, client), between and between[1])
        return waited / 1000 if waited else None

    def seconds(self) -> float:
        """From the first frame to the last, of those that the charts have."""
        between = self.clock.between()
        return 0.0 if between is None else (between[1] - between[0]) / 1e6

    def strays(self) -> tuple[int, int, int] | None:
        """How many frames have times so far from all others that charts leave them out; the first and the last time."""
        out = self.clock.strays()
        buckets = [bucket for bucket, _, _ in out]
        frames = sum(sum(one or 0 for one in self.traffic.values(api, buckets)) for api in self.traffic.of)
        return (frames, out[0][1], out[-1][2]) if frames else None


_OTHERS: Final = "others"


def _end(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _known(text: str | None) -> str:
    return "?" if text is None else text


def of_tables(
    tables: Iterable[tuple[str, pa.RecordBatch]], target: str = DEFAULT_TARGET, thresholds: Any = None
) -> Overview:
    """The overview of pairs of a table's name and a batch, as ``kwire.capture.read(tables=...)`` gives them."""
    made = Overview(target, thresholds)
    for name, batch in tables:
        made.add(name, batch)
    made.finish()
    return made
