"""Who writes and who reads each topic: what ``kwire lineage`` says, as a table and as a graph.

Strategy: Produce requests say who writes, Fetch and ShareFetch responses with records who reads. A Fetch request does
not name a group. The groups of a client are those that it names elsewhere (joins, heartbeats, commits), from the same
host with the same client_id.

Rules kept here:

- A client reads a topic when it got records of it: who only asks for some has no edge. It writes what a broker did not
  refuse; a request whose response is not in the capture counts.
- Followers that copy a topic are recognised by their client_id: ``replicates``.
- In a graph everything from a capture is a quoted label, never a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from kwire.records.arrow_types import TIMESTAMP
from kwire.report.accepted import Accepted
from kwire.report.audit import OF_BROKERS
from kwire.report.sums import LATEST, UNDATED
from kwire.report.tallies import Array, Rows, firsts, rows_of
from kwire.tables import showing
from kwire.tables.showing import Column

__all__ = [
    "MOST_SCHEMAS",
    "OF_VALUES",
    "READS",
    "SCHEMA",
    "SHOWN",
    "TABLES",
    "Edge",
    "Lineage",
    "batch_of",
    "dot",
    "mermaid",
    "summary",
]

TABLES: Final[dict[str, Sequence[str]]] = {
    "partitions": (
        "capture", "connection", "frame", "frame_timestamp", "direction", "client_host", "client_id", "api_name",
        "correlation_id", "topic", "topic_id", "partition", "group_id", "record_bytes", "records", "error", "status",
    ),
    "calls": ("client_host", "client_id", "group_id"),
}  # fmt: skip
"""The tables that are read, with their columns."""

OF_VALUES: Final = (
    "capture", "connection", "source", "topic", "value_framing", "value_schema_id", "value_schema_guid", "value_schema",
    "status",
)  # fmt: skip
"""What is read of ``records`` too, where the schemas of values are known."""

SCHEMA: Final = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("role", pa.string(), nullable=False),
        pa.field("client_host", pa.string(), nullable=False),
        pa.field("client_id", pa.string()),
        pa.field("groups", pa.list_(pa.field("element", pa.string())), nullable=False),
        pa.field("messages", pa.int64(), nullable=False),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("first_seen", TIMESTAMP),
        pa.field("last_seen", TIMESTAMP),
        pa.field("schemas", pa.list_(pa.field("element", pa.string())), nullable=False),
    ]
)
"""One row for each topic, role and client.

``role``: ``writes``, ``reads`` or ``replicates``. ``messages`` are requests that write and responses that bring
something. ``records`` and ``bytes`` are their contents. Records of compressed messages of magic 0 and 1 are not
counted. ``schemas``: those of the values, as far as their sources are known.
"""

ROLES: Final = ("writes", "reads", "replicates")
READS: Final = ("Fetch", "ShareFetch")
"""APIs (tuple of str) whose responses have records that a client reads."""
_PATIENCE: Final = 1 << 13
"""What is written and waits for its response: partitions of requests. With acks=0 there is none."""
_MOST: Final = 1 << 16
"""Connections, and what has schemas, that are remembered,"""
MOST_SCHEMAS: Final = 100
"""and schemas of each."""
_Key = tuple[str, str, str, str | None]


@dataclass(slots=True)
class Edge:
    """A client that writes, reads or replicates a topic.

    Times are microseconds since 1970; LATEST and UNDATED where the capture states none.
    """

    topic: str
    role: str
    client_host: str
    client_id: str | None
    groups: Sequence[str] = ()
    messages: int = 0
    records: int = 0
    bytes: int = 0
    first_seen: int = LATEST
    last_seen: int = UNDATED
    schemas: Sequence[str] = ()


class Lineage:
    """Takes batches of the tables of ``TABLES`` and gives edges.

    It keeps one for each topic, role and client.
    """

    def __init__(self) -> None:
        self._edges: dict[_Key, Edge] = {}
        self._groups: dict[tuple[str, str | None], dict[str, None]] = {}
        self._written = Accepted(TABLES["partitions"], _PATIENCE)
        self._clients: dict[tuple[str, int], tuple[str, str | None]] = {}
        self._schemas: dict[tuple[str, int, str, str], dict[str, None]] = {}
        """By capture, connection, source and topic."""

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Take rows of the table ``name``; texts may be dictionaries."""
        self.add_rows(name, rows_of(name, [batch]))

    def add_rows(self, name: str, rows: Rows) -> None:
        """The same of several batches at once."""
        if name == "records":
            self._add_schemas(rows)
            return
        named = np.flatnonzero(rows.valid("group_id"))
        for host, client, group, _ in rows.totals(named, ("client_host", "client_id", "group_id")):
            self._groups.setdefault((host, client), {})[group] = None
        if name == "partitions":
            self._add(rows)

    def _add_schemas(self, rows: Rows) -> None:
        if "value_schema" not in rows.table.column_names:
            return
        at = np.flatnonzero(rows.mask("status", "ok") & rows.valid("topic", "value_framing"))
        for *where, framing, id_, guid, called, _ in rows.totals(at, OF_VALUES[:-1]):
            if called is None and id_ is None and guid is None:
                continue
            key = (where[0], where[1], where[2], where[3])
            if key in self._schemas or len(self._schemas) < _MOST:
                mine = self._schemas.setdefault(key, {})
                if len(mine) < MOST_SCHEMAS:
                    mine[called or f"{framing} {guid if id_ is None else id_}"] = None

    def _add(self, rows: Rows) -> None:
        self._name(rows)
        fine = rows.mask("status", "ok") & rows.valid("topic")
        reads = rows.mask("direction", "response") & rows.mask("api_name", READS) & (rows.values("record_bytes") > 0)
        self._sum(self._edges, rows, np.flatnonzero(fine & reads))
        writes = np.flatnonzero(fine & rows.mask("api_name", "Produce"))
        self._sum(self._edges, *self._written.take(rows, writes)[:2])

    def _name(self, rows: Rows) -> None:
        columns = ("capture", "connection", "client_host", "client_id")
        for capture, connection, host, client, _ in rows.totals(np.arange(rows.table.num_rows), columns):
            if len(self._clients) < _MOST:
                self._clients.setdefault((capture, connection), (host, client))

    @staticmethod
    def _sum(edges: dict[_Key, Edge], rows: Rows, at: Array) -> None:
        # Each frame once, however many partitions it fills.
        keys = ("topic", "direction", "client_host", "client_id")
        messages = np.zeros(len(at), np.int64)
        messages[firsts(rows.numbers((*keys, "capture", "frame"), at))] = 1
        times = rows.stated[at]
        sums = (messages, rows.values("records")[at], rows.values("record_bytes")[at])
        for row in rows.totals(at, keys, *sums, between=times):
            topic, direction, host, client, _, count, records, size, first, last = row
            role = "writes" if direction == "request" else "reads"
            if role == "reads" and client is not None and OF_BROKERS.fullmatch(client):
                role = "replicates"
            key = (topic, role, host, client)
            edge = edges.get(key)
            if edge is None:
                edge = edges[key] = Edge(*key)
            edge.messages += count
            edge.records += records
            edge.bytes += size
            edge.first_seen = min(edge.first_seen, first)
            edge.last_seen = max(edge.last_seen, last)

    def result(self) -> list[Edge]:
        """The edges so far, by topic, role and client."""
        edges = self._edges
        if self._written.waiting is not None:
            # Their responses may come yet.
            edges = {key: replace(edge) for key, edge in edges.items()}
            rest = Rows(self._written.waiting)
            self._sum(edges, rest, np.arange(rest.table.num_rows))
        for (capture, connection, source, topic), names in self._schemas.items():
            for role in ROLES[:1] if source == "produce" else ROLES[1:]:
                edge = edges.get((topic, role, *self._clients.get((capture, connection), ("", None))))
                if edge is not None:
                    edge.schemas = sorted({*edge.schemas, *names})
        made = list(edges.values())
        # One after the other, the last first: there may be very many. A tuple for each takes as much memory as the
        # edge.
        made.sort(key=lambda one: one.client_id or "")
        made.sort(key=lambda one: one.client_host)
        made.sort(key=lambda one: ROLES.index(one.role))
        made.sort(key=lambda one: one.topic)
        for edge in made:
            if edge.role == "reads":
                edge.groups = sorted(self._groups.get((edge.client_host, edge.client_id), ()))
        return made


def batch_of(edges: Iterable[Edge]) -> pa.RecordBatch:
    """Edges as Arrow data, with the columns of ``SCHEMA``."""
    rows = list(edges)
    columns = []
    for wanted in SCHEMA:
        values = [getattr(row, wanted.name) for row in rows]
        if pa.types.is_timestamp(wanted.type):
            values = [None if one in (LATEST, UNDATED) else one for one in values]
            columns.append(pa.array(values, pa.int64()).cast(TIMESTAMP))
        else:
            columns.append(pa.array(values, wanted.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def summary(edges: Sequence[Edge]) -> list[str]:
    """What edges say together, in a sentence."""
    if not edges:
        return ["No topic was written or read."]
    roles: dict[str, int] = {}
    for one in edges:
        roles[one.topic] = roles.get(one.topic, 0) | 1 << ROLES.index(one.role)
    written, read = (1 << ROLES.index(role) for role in ROLES[:2])
    counts = Counter(roles.values())
    wrote, had = (sum(count for roles_, count in counts.items() if roles_ & role) for role in (written, read))
    alone = sum(count for roles_, count in counts.items() if roles_ & written and not roles_ & read)
    return [f"{len(roles)} topics: {wrote} written, {had} read; {alone} written and not read."]


# --- graphs -----------------------------------------------------------------------------------------------------------


class _Nodes:
    """Numbers for the nodes of a graph: what is on them may be anything."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, ...], str] = {}

    def name(self, *what: str) -> str:
        return self.of.setdefault(what, f"n{len(self.of)}")


def _parts(edges: Iterable[Edge]) -> tuple[_Nodes, list[tuple[str, str, str]]]:
    """The nodes and the arrows (from, to, label) of a graph. Readers of a group are one node."""
    nodes = _Nodes()
    arrows: dict[tuple[str, str], list[int]] = {}
    for edge in edges:
        topic = nodes.name("topic", edge.topic)
        clients = [nodes.name("group", group) for group in edge.groups] or [
            nodes.name("client", edge.client_id or "-", edge.client_host)
        ]
        for client in clients:
            pair = (client, topic) if edge.role == "writes" else (topic, client)
            sums = arrows.setdefault(pair, [0, 0])
            sums[0] += edge.records
            sums[1] += edge.bytes
    return nodes, [(*pair, f"{records} records, {size} bytes") for pair, (records, size) in arrows.items()]


def dot(edges: Iterable[Edge]) -> str:
    """The graph in the language of Graphviz: clients, topics, groups."""
    nodes, arrows = _parts(edges)
    lines = ["digraph lineage {", "  rankdir=LR;"]
    for (kind, *texts), name in nodes.of.items():
        shape = {"topic": "cylinder", "group": "box3d", "client": "box"}[kind]
        label = _quoted("\\n".join(map(_dot_text, texts)))
        lines.append(f"  {name} [shape={shape}, label={label}];")
    lines += [f"  {one} -> {other} [label={_quoted(label)}];" for one, other, label in arrows]
    return "\n".join([*lines, "}", ""])


def _dot_text(text: str) -> str:
    return showing.readable(text).replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{text}"'


def mermaid(edges: Iterable[Edge]) -> str:
    """The graph in the language of Mermaid, which many pages show as a picture."""
    nodes, arrows = _parts(edges)
    lines = ["flowchart LR"]
    for (kind, *texts), name in nodes.of.items():
        begin, end = {"topic": ("[(", ")]"), "group": ("[[", "]]"), "client": ("[", "]")}[kind]
        lines.append(f"  {name}{begin}{_quoted('<br/>'.join(map(_mermaid_text, texts)))}{end}")
    lines += [f"  {one} -->|{_quoted(label)}| {other}" for one, other, label in arrows]
    return "\n".join([*lines, ""])


def _mermaid_text(text: str) -> str:
    """A text in which nothing means anything: all that is no letter, digit or one of few signs by its number."""
    return "".join(one if one.isalnum() or one in " .-_:/" else f"#{ord(one)};" for one in showing.readable(text))


def _groups(row: showing.Row) -> str:
    return ", ".join(map(showing.readable, row["groups"])) or "-"


def _schemas(row: showing.Row) -> str:
    return ", ".join(map(showing.readable, row["schemas"])) or "-"


SHOWN: Final = (
    Column("topic", showing.plain("topic"), shrink=12, wrap=True),
    Column("role", showing.plain("role")),
    Column("client", showing.plain("client_host"), shrink=9, wrap=True),
    Column("client_id", showing.plain("client_id"), shrink=10, wrap=True),
    Column("groups", _groups, shrink=8, wrap=True),
    Column("messages", showing.plain("messages"), right=True),
    Column("records", showing.plain("records"), right=True),
    Column("bytes", showing.plain("bytes"), right=True),
    Column("schemas", _schemas, shrink=10, wrap=True, empty="-"),
    Column("first seen", showing.time("first_seen"), shrink=15, wrap=True),
    Column("last seen", showing.time("last_seen"), shrink=15, wrap=True),
)
"""The columns of a terminal and of a page."""
