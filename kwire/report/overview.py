"""All that a report says of captures, added up in one pass: traffic, latencies, topics, clients, batches, errors, gaps,
versions and groups, and the answers of ``audit``, ``findings`` and ``lineage``.

Strategy: batches of five tables are reduced by Arrow first, to what they have of each key, so that Python sees sums and
not rows. Sums are kept by ``kwire.report.sums``, which bounds them.

Rules kept here:

- Totals are those of the tables: every row is counted once, in the row of a table that says so (``docs/answers.md``).
- What the tables do not know (records of compressed messages of magic 0 and 1, names of topics) is not guessed.
- Texts are as the tables have them: whoever shows them escapes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.report import findings as rules
from kwire.report import lineage as edges
from kwire.report.audit import CONNECTIONS, DEFAULT_TARGET, RECORDS, Auditor
from kwire.report.sums import Clock, Latencies, Top, dicts, grouped, latency_steps

__all__ = ["TABLES", "Overview"]

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


TABLES: Final = _union(_OWN, rules.needed(), edges.TABLES, {"connections": CONNECTIONS, "records": RECORDS})
"""The tables that are read, with their columns."""

_AT_ONCE: Final = 1 << 16
"""Rows of a table that are added up together,"""
_BYTES_AT_ONCE: Final = 8 << 20
"""or so many bytes of them."""
COARSE: Final = 5
"""Steps of latencies that are one over time: 10 %."""
_READS: Final = ("Fetch", "ShareFetch")
_MOVED: Final = [
    "way", "topic", "topic_id", "partition", *_CLIENT, "compression", "record_bytes", "batches", "records",
    "frame_timestamp",
]  # fmt: skip
_OF_GROUPS: Final = ("JoinGroup", "LeaveGroup", "OffsetCommit")
_KAFKA: Final = ("ok", "encrypted")


@dataclass(slots=True)
class _Waiting:
    """Batches of a table that were not added up yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0


class Overview:
    """Takes batches of the tables of ``TABLES``, in the order of each capture; ``finish`` has to follow the last.

    Raises ``UnsupportedVersionError`` for a ``target`` that is no release.
    """

    def __init__(self, target: str = DEFAULT_TARGET, thresholds: rules.Thresholds | None = None) -> None:
        self.clock = Clock()
        self.totals: Counter[str] = Counter()
        """Sums over all rows, by name."""
        self.apis = Top(6, 1_000)
        """By API: requests, responses, bytes of each, responses with errors, frames that are not ``ok``."""
        self.versions = Top(1)
        """By API and version: requests."""
        self.users = Top(1)
        """By API, version and client_id: requests."""
        self.brokers = Top(5)
        """By host and port: requests, responses, bytes of each, responses with errors."""
        self.clients = Top(5)
        """By host and client_id: bytes, requests, responses, responses with errors, and bytes of requests."""
        self.latencies: dict[tuple[str, str], Latencies] = {}
        """By API and broker."""
        self.statuses: Counter[tuple[str, str]] = Counter()
        """Frames by status and API, without those that are ``ok``."""
        self.errors = Top(1)
        """By API, error, host and client_id."""
        self.topics = Top(7)
        """By topic: bytes, and bytes, batches, records written and read."""
        self.partitions = Top(5, 20_000)
        """By topic and partition: bytes, and bytes and records written and read."""
        self.data = Top(5)
        """By host and client_id: bytes, and bytes and records written and read."""
        self.topic_errors = Top(1)
        """By topic and error."""
        self.sizes: Counter[tuple[str, int]] = Counter()
        """Batches by way and the power of two that their bytes begin at."""
        self.fills: Counter[tuple[str, int]] = Counter()
        """The same by their records."""
        self.compression: dict[tuple[str, str], list[int]] = {}
        """By way and compression: bytes, batches, records."""
        self.groups = Top(5)
        """By group: requests, joins, leaves, heartbeats, commits."""
        self.members = Top(1)
        """By group, host and client_id: requests."""
        self.acks: Counter[int] = Counter()
        self.throttled = Top(2)
        """By host and client_id: milliseconds, responses."""
        self.software: dict[tuple[str, str | None], str] = {}
        self.gaps = Top(6)
        """By capture, connection and both ends: missing bytes, late and repeated segments, unanswered requests."""
        self.handshakes = Latencies()
        self.ended: Counter[str] = Counter()
        self.connection_statuses: Counter[str] = Counter()
        self.traffic = self.clock.timeline(4)
        """By API: frames, requests, bytes, responses with errors."""
        self.waits = self.clock.timeline(1, keep=8_000)
        """By API and step: responses."""
        self.flow = self.clock.timeline(2, keep=128)
        """By way and topic: bytes, records."""
        self.wrong = self.clock.timeline(1)
        """By error."""
        self.generations = self.clock.timeline(3, largest=2)
        """By group: requests, generation, members at least."""
        self.auditor = Auditor(target)
        self.finder = rules.Finder(None, thresholds)
        self.lineage = edges.Lineage()
        self._of_rules = rules.needed()
        self._waiting: dict[str, _Waiting] = {}
        self._takers = {
            "frames": self._frames,
            "partitions": self._partitions,
            "calls": self._calls,
            "connections": self._connections,
            "records": self._records,
        }

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Takes rows of the table ``name``. Few rows wait for more: adding up costs by the batch, too."""
        waiting = self._waiting.setdefault(name, _Waiting())
        waiting.batches.append(batch)
        waiting.rows += batch.num_rows
        waiting.bytes += batch.nbytes
        if waiting.rows >= _AT_ONCE or waiting.bytes >= _BYTES_AT_ONCE:
            self._take(name)

    def finish(self) -> None:
        """Adds up what waits."""
        for name in self._waiting:
            self._take(name)

    def _take(self, name: str) -> None:
        waiting, self._waiting[name] = self._waiting[name].batches, _Waiting()
        if not waiting:
            return
        table = pa.Table.from_batches(waiting).combine_chunks()
        if name in self._of_rules:
            self.finder.add_table(name, table)
        if name in edges.TABLES:
            self.lineage.add_table(name, table)
        if name == "connections":
            self.auditor.add_connections(table)
        elif name == "records":
            self.auditor.add_records(table)
        self._takers[name](table)

    # -- frames

    def _frames(self, table: pa.Table) -> None:
        wrong = pc.greater(pc.fill_null(pc.list_value_length(table["errors"]), 0), 0)
        table = _named(table, "api_name").append_column("wrong", pc.cast(wrong, pa.int64()))
        buckets = self.clock.buckets(table["timestamp"].cast(pa.int64()))
        table = table.append_column("bucket", buckets)
        ends = ("broker_host", "broker_port")
        keys = ("direction", "api_name", "api_version", "status", *_CLIENT, *ends)
        for row in grouped(table, keys, size=("size", "sum"), wrong=("wrong", "sum")):
            direction, api, version, status, host, client, broker, port, count, size, bad = row
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
        for direction, api, bucket, count, size, bad in grouped(
            table, ("direction", "api_name", "bucket"), size=("size", "sum"), wrong=("wrong", "sum")
        ):
            self.traffic.add(api, bucket, count, count if direction == "request" else 0, size, bad)
        self._latencies(table)
        if pc.any(wrong).as_py():
            self._errors(table.filter(wrong))

    def _latencies(self, table: pa.Table) -> None:
        table = table.filter(pc.is_valid(table["latency_ms"]))
        if not table.num_rows:
            return
        milliseconds = table["latency_ms"].to_numpy()
        table = table.append_column("step", pa.array(latency_steps(milliseconds)))
        table = table.append_column("coarse", pa.array(latency_steps(milliseconds, COARSE)))
        keys = ("api_name", "broker_host", "broker_port", "step")
        for api, host, port, step, count, most in grouped(table, keys, most=("latency_ms", "max")):
            key = (api, _end(host, port))
            found = self.latencies.get(key)
            if found is None:
                if len(self.latencies) >= Top.KEEP:
                    key = (api, _OTHERS)
                found = self.latencies.setdefault(key, Latencies())
            found.add(step, count, most)
            self.totals["latencies"] += count
        for api, step, bucket, count in grouped(table, ("api_name", "coarse", "bucket")):
            self.waits.add((api, step), bucket, count)

    def _errors(self, table: pa.Table) -> None:
        index = pc.list_parent_indices(table["errors"])
        flat = table.select(["api_name", *_CLIENT, "bucket"]).take(index)
        flat = flat.append_column("error", pc.list_flatten(table["errors"]))
        for api, error, host, client, bucket, count in grouped(flat, ("api_name", "error", *_CLIENT, "bucket")):
            self.errors.add((api, error, host, client), count)
            self.wrong.add(error, bucket, count)
            self.totals["error_codes"] += count

    # -- partitions

    def _partitions(self, table: pa.Table) -> None:
        self.totals["partition_rows"] += table.num_rows
        fine = pc.equal(table["status"], "ok")
        asked = pc.equal(table["direction"], "request")
        failed = pc.and_(pc.and_not(fine, asked), pc.not_equal(pc.fill_null(table["error"], "NONE"), "NONE"))
        if pc.any(failed).as_py():
            told = _with_topic(table.select(["topic", "topic_id", "error"]).filter(failed))
            for one, error, count in grouped(told, ("of", "error")):
                self.topic_errors.add((one, error), count)
        writes = pc.and_(asked, pc.equal(table["api_name"], "Produce"))
        reads = pc.and_not(pc.is_in(table["api_name"], value_set=pa.array(_READS)), asked)
        moved = pc.and_(pc.and_(fine, pc.or_(writes, reads)), pc.greater(pc.fill_null(table["record_bytes"], 0), 0))
        table = _with_topic(
            table.append_column("way", pc.if_else(writes, "written", "read")).select(_MOVED).filter(moved)
        )
        if not table.num_rows:
            return
        sums = {name: (name, "sum") for name in ("record_bytes", "batches", "records")}
        keys = ("way", "of", "partition", *_CLIENT, "compression")
        for way, one, partition, host, client, codec, count, size, batches, records in grouped(table, keys, **sums):
            # What is written stands in front of what is read.
            written = way == "written"
            amounts = (size, batches, records, 0, 0, 0) if written else (0, 0, 0, size, batches, records)
            self.topics.add(one, size, *amounts)
            short = (size, records, 0, 0) if written else (0, 0, size, records)
            self.partitions.add((one, partition), size, *short)
            self.data.add((host, client), size, *short)
            mine = self.compression.setdefault((way, codec or "?"), [0, 0, 0])
            for k, value in enumerate((size, batches, records)):
                mine[k] += value
            self.totals.update(
                {f"{way}_sets": count, f"{way}_bytes": size, f"{way}_batches": batches, f"{way}_records": records}
            )
        buckets = self.clock.buckets(table["frame_timestamp"].cast(pa.int64()))
        table = table.append_column("bucket", buckets)
        for way, one, bucket, _, size, records in grouped(
            table, ("way", "of", "bucket"), size=sums["record_bytes"], records=sums["records"]
        ):
            self.flow.add((way, one), bucket, size, records)
        self._batches(table.filter(pc.greater(pc.fill_null(table["batches"], 0), 0)))

    def _batches(self, table: pa.Table) -> None:
        for column, counted in (("record_bytes", self.sizes), ("records", self.fills)):
            known = table.filter(pc.is_valid(table[column]))
            if not known.num_rows:
                continue
            mean = known[column].to_numpy() / known["batches"].to_numpy()
            powers = np.floor(np.log2(np.maximum(mean, 1))).astype(np.int64)
            known = known.append_column("power", pa.array(powers))
            for way, power, _, batches in grouped(known, ("way", "power"), batches=("batches", "sum")):
                counted[way, power] += batches

    # -- calls, connections, records

    def _calls(self, table: pa.Table) -> None:
        table = table.filter(pc.equal(table["status"], "ok"))
        told = table.filter(pc.greater(pc.fill_null(table["throttle_ms"], 0), 0))
        for host, client, count, waited in grouped(told, _CLIENT, waited=("throttle_ms", "sum")):
            self.throttled.add((host, client), waited, count)
            self.totals["throttle_ms"] += waited
        for acks, count in grouped(table.filter(pc.is_valid(table["acks"])), ("acks",)):
            self.acks[acks] += count
        known = pc.and_(pc.equal(table["direction"], "request"), pc.is_valid(table["group_id"]))
        table = table.filter(known)
        if not table.num_rows:
            return
        for group, api, host, client, count in grouped(table, ("group_id", "api_name", *_CLIENT)):
            beats = api in ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
            joins, leaves, commits = (
                count if api == name else 0 for name in ("JoinGroup", "LeaveGroup", "OffsetCommit")
            )
            self.groups.add(group, count, joins, leaves, count if beats else 0, commits)
            self.members.add((group, host, client), count)
        table = table.filter(pc.greater_equal(pc.fill_null(table["generation"], -1), 0))
        if not table.num_rows:
            return
        table = table.append_column("bucket", self.clock.buckets(table["frame_timestamp"].cast(pa.int64())))
        sums = {"generation": ("generation", "max"), "members": ("member_id", "count_distinct")}
        for group, bucket, count, generation, members in grouped(table, ("group_id", "bucket"), **sums):
            self.generations.add(group, bucket, count, generation, members)

    def _connections(self, table: pa.Table) -> None:
        for row in dicts(table.select(list(_OWN["connections"]))):
            self.connection_statuses[row["status"]] += 1
            if row["status"] not in _KAFKA:
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

    def _records(self, table: pa.Table) -> None:
        self.totals["records"] += table.num_rows

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
        behind: dict[str, list[int]] = {}
        for group, _, _, lag in self.finder.lags():
            mine = behind.setdefault(group, [0, 0])
            mine[0] += lag
            mine[1] += 1
        for group, (lag, partitions) in behind.items():
            yield group, lag, partitions

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


def _with_topic(table: pa.Table) -> pa.Table:
    """The table with the column ``of``: the name of the topic, or its id."""
    return table.append_column("of", pc.fill_null(pc.coalesce(table["topic"], table["topic_id"]), "?"))


def _named(table: pa.Table, name: str) -> pa.Table:
    """The table with ``?`` for null in a column."""
    at = table.column_names.index(name)
    return table.set_column(at, name, pc.fill_null(table[name], "?"))


def of_tables(
    tables: Iterable[tuple[str, pa.RecordBatch]], target: str = DEFAULT_TARGET, thresholds: Any = None
) -> Overview:
    """The overview of pairs of a table's name and a batch, as ``kwire.capture.read(tables=...)`` gives them."""
    made = Overview(target, thresholds)
    for name, batch in tables:
        made.add(name, batch)
    made.finish()
    return made
