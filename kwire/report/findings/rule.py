"""What rules of findings have in common: a finding, the columns that rules read, and the rule itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import ModuleType
from typing import Any, Final, Generic, Literal, TypeVar

import numpy as np
import pyarrow as pa

from kwire.records.arrow_types import TIMESTAMP
from kwire.report import KAFKA
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally, Where, among, firsts, numbers

__all__ = [
    "BROKER",
    "CLIENT",
    "COLUMNS",
    "FRAME",
    "PROCESS",
    "SCHEMA",
    "SEVERITIES",
    "Finding",
    "Rule",
    "Together",
    "busiest",
    "committed_reads",
    "counts",
    "kafka_connections",
    "keyed",
    "rules_of",
    "together",
]

SEVERITIES: Final = ("high", "medium", "low")
"""Severities of findings (tuple of str), the worst first."""

SCHEMA: Final = pa.schema(
    [
        pa.field("rule", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("summary", pa.string(), nullable=False),
        pa.field("client_host", pa.string()),
        pa.field("client_port", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("software", pa.string()),
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
"""One row per finding.

``client_port`` and ``software``: where several processes have this client_id, which it is. ``principal``: only where
secrets are shown. ``evidence``: some of the frames, by capture, connection and frame (null: the connection).
"""


@dataclass(slots=True)
class Finding:
    """Something that goes wrong. Times are microseconds since 1970."""

    rule: str
    severity: str
    summary: str
    advice: str
    count: int
    client_host: str | None = None
    client_port: int | None = None
    client_id: str | None = None
    software: str | None = None
    principal: str | None = None
    group_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    first_seen: int | None = None
    last_seen: int | None = None
    evidence: list[Where] = field(default_factory=list)
    process: tuple[str, int] | None = None
    """Capture and connection of one process, where several have this client_id."""
    explains: tuple[str, ...] = ()
    """Rules whose findings about the same client, at the same time, have the same cause."""
    busy: tuple[int, int] | None = None
    """When it was too often, where the same in ordinary life counts as well."""

    def row(self) -> dict[str, Any]:
        """As a row of ``SCHEMA``."""
        made = {name: getattr(self, name) for name in SCHEMA.names}
        made["evidence"] = [
            {"capture": capture, "connection": connection, "frame": frame}
            for capture, connection, frame in self.evidence
        ]
        return made


FRAME: Final = ("capture", "connection", "frame")
"""Columns (tuple of str) that name a frame."""
CLIENT: Final = ("client_host", "client_id")
"""Columns (tuple of str) that name a client."""
BROKER: Final = ("broker_host", "broker_port")
"""Columns (tuple of str) that name a broker."""
_FRAMES: Final = (
    *FRAME, "timestamp", "direction", *CLIENT, "client_port", *BROKER, "api_name", "api_version", "size", "latency_ms",
    "errors", "status",
)  # fmt: skip
_PARTITIONS: Final = (
    *FRAME, "frame_timestamp", "direction", *CLIENT, "client_port", *BROKER, "api_name", "correlation_id", "path",
    "group_id", "topic", "topic_id", "partition", "offset", "offset_spec", "high_watermark",
    "last_stable_offset", "log_start_offset",
    "record_bytes", "batches", "records", "compression", "error", "status",
)  # fmt: skip
_CALLS: Final = (
    *FRAME, "frame_timestamp", "direction", *CLIENT, "client_port", *BROKER, "api_name", "correlation_id",
    "cluster_id", "group_id", "member_id", "generation", "session_timeout_ms", "rebalance_timeout_ms",
    "transactional_id", "committed", "acks", "throttle_ms", "status",
)  # fmt: skip
_CONNECTIONS: Final = (
    "capture", "connection", "first_seen", "last_seen", "client_host", "client_port", *BROKER, "opened_by",
    "client_ids", "software_name", "software_version", "apis", "sasl_mechanism", "sasl_outcome", "sasl_error",
    "principal", "tls", "tls_version", "ended", "ended_by", "handshake_ms", "broker_bytes", "requests", "unanswered",
    "out_of_order", "status",
)  # fmt: skip
_RECORDS: Final = (
    *FRAME, "frame_timestamp", "source", "topic", "topic_id", "partition", "timestamp", "producer_id",
    "producer_epoch", "sequence", "status",
)  # fmt: skip
_GROUP_EVENTS: Final = (
    *FRAME, "timestamp", *CLIENT, "client_port", *BROKER, "group_id", "kind", "event", "member_id", "lost", "assignor",
    "duration_ms", "cause", "cause_member_id", "error_name", "status",
)  # fmt: skip
_SHARE_DELIVERIES: Final = (
    *FRAME, "timestamp", *CLIENT, "client_port", *BROKER, "group_id", "topic", "topic_id", "partition", "first_offset",
    "last_offset", "member_id", "delivery_count", "lock_timeout_ms", "outcome", "status",
)  # fmt: skip
COLUMNS: Final[dict[str, Sequence[str]]] = {
    "frames": _FRAMES,
    "calls": _CALLS,
    "partitions": _PARTITIONS,
    "connections": _CONNECTIONS,
    "records": _RECORDS,
    "group_events": _GROUP_EVENTS,
    "share_deliveries": _SHARE_DELIVERIES,
}
"""What all rules read of each table.

Of what is read at once, rules get the rows of one table after those of the other, in this order.
"""

_Limits = TypeVar("_Limits")

Together = Literal["client", "topic", "group", "broker", "producer"]
"""What rows that belong together have in common."""


class Rule(Generic[_Limits]):
    """A rule, with its thresholds (``limits``).

    ``take`` gets the rows of each table that it reads (``tables``), with the columns of ``COLUMNS``.
    """

    name = ""
    finds = ""
    """What it finds, for docs/reference/findings.md (``make docs``)."""
    thresholds: Mapping[str, str] = {}
    """The names of its thresholds. The text says what the number, ``{}``, means: ``{} in a minute``."""
    severities = ""
    """What docs say of the severity, where that is not the same for all of its findings."""
    tables: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Tables that tell more, where they are read."""
    keys: tuple[str, ...] = ()
    """What it adds up by."""
    together: Together = "client"
    """What rows it needs in one place, where rows are in several."""
    largest = False
    """Whether amounts are the largest of all and not their sum."""
    severity = "medium"
    place: int = 1000
    """Findings of one severity stand in this order of their rules."""
    advice = ""
    explains: tuple[str, ...] = ()
    """Rules whose findings of the same time, client and topic have the same cause: they are left out."""
    errors: frozenset[str] = frozenset()
    """Errors of responses that it is about: ``repeated-errors`` leaves them to it."""
    of_values = False
    """Whether it reads what values mean: it needs sources of schemas."""
    by_process = False
    """Whether a finding may be about one of several processes with the same client_id."""

    def __init__(self, limits: _Limits) -> None:
        self.limits = limits
        self.tallies: Tallies = Tallies(*self.keys, largest=self.largest)

    def take(self, name: str, rows: Rows) -> None:
        """Take rows of one of its tables."""
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
            **{"explains": self.explains, **who},
            **tally.seen(),
        )


PROCESS: Final = ("capture", "connection", "client_port", *BROKER)
"""What tells processes apart, as the last keys of tallies: each has one connection to a broker, or few."""


@dataclass(slots=True)
class Busiest:
    """What a process with some client_id did at most: of each broker the busiest connection."""

    tally: Tally
    who: dict[str, Any]
    """Its port, if others have the same client_id at the same time."""


def busiest(tallies: Tallies, which: Array) -> Iterator[tuple[tuple[Any, ...], Busiest]]:
    """Keys without those of ``PROCESS``, which come last, and what the busiest process did.

    ``which``: of the keys without these, as ``together`` numbers them, those that are looked at.
    """
    of = together(tallies)[0]
    found: dict[tuple[Any, ...], dict[tuple[Any, ...], list[tuple[tuple[Any, ...], Tally]]]] = {}
    for key, one in tallies.items(which[of] if len(of) else None):
        own, (capture, connection, port, *broker) = key[: -len(PROCESS)], key[-len(PROCESS) :]
        found.setdefault(own, {}).setdefault(tuple(broker), []).append(((capture, connection, port), one))
    for own, brokers in found.items():
        made, shared = Tally(), False
        most: tuple[int, tuple[Any, ...]] = (-1, ())
        for connections in brokers.values():
            shared |= _at_once(connections)
            process, best = max(connections, key=lambda one: one[1].busiest)
            most = max(most, (best.busiest, process))
            made.join(best)
        capture, connection, port = most[1]
        yield own, Busiest(made, {"client_port": port, "process": (capture, connection)} if shared else {})


def _at_once(connections: list[tuple[tuple[Any, ...], Tally]]) -> bool:
    """Whether two connections of one client to one broker are in use at the same time."""
    spans = sorted((one.first or 0, one.last or 0) for _, one in connections)
    return any(later[0] < before[1] for before, later in pairwise(spans))


def together(tallies: Tallies) -> tuple[Array, Array]:
    """For each key the number of what it is without those of ``PROCESS``, and how often each number was seen."""
    totals = tallies.totals()
    names = totals.keys.column_names[: -len(PROCESS)]
    of = numbers(totals.keys, names) if len(totals.count) else totals.count
    return of, np.bincount(of, weights=totals.count) if len(of) else totals.count


def counts(tallies: Tallies, others: Tallies) -> Array:
    """For each key how often it is in other tallies."""
    known = among(tallies.totals().keys, others.totals().keys)
    return np.append(others.totals().count, 0)[known]


def kafka_connections(rows: Rows, *, opened: bool = False) -> Array:
    """Those that may be Kafka; ``opened``: whose beginning was captured.

    The others were there before, and the same one is in each of several captures that follow each other.
    """
    found = rows.where(status=KAFKA)
    return found[rows.valid("opened_by")[found]] if opened else found


def keyed(rows: Rows, columns: Sequence[str], at: Array) -> tuple[Array, list[tuple[Any, ...]]]:
    """A number for each of some rows, the same where ``columns`` are the same, and the values of each number."""
    of = rows.numbers(columns, at)
    return of, list(tuples(rows.part(columns, at[firsts(of)])))


def committed_reads(rows: Rows, place: Sequence[str]) -> tuple[Array, Array, list[tuple[Any, ...]]]:
    """Fetch responses to readers with ``read_committed``, by place and time, the numbers of their places, and these.

    Brokers give the last stable offset to these readers alone.
    """
    reads = rows.where(api_name="Fetch", direction="response", status="ok")
    reads = reads[(rows.values("last_stable_offset", -1)[reads] >= 0) & (rows.times[reads] != UNDATED)]
    of, places = keyed(rows, place, reads)
    order = np.lexsort((rows.times[reads], of))
    return reads[order], of[order], places


def rules_of(family: ModuleType) -> list[type[Rule[Any]]]:
    """The rules that a module has, in the order of their classes."""
    return [
        one
        for one in vars(family).values()
        if isinstance(one, type) and issubclass(one, Rule) and one.name and one.__module__ == family.__name__
    ]
