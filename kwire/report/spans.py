"""Exchanges as spans of OpenTelemetry: what ``kwire export --otlp`` writes.

Strategy: a request waits for its response, by connection and correlation id; both together are a span of the kind
client, from the request to the response. What records say in the header ``traceparent`` (W3C Trace Context) are links
to the spans that their producers were in. Tables come window by window, those about what frames hold before ``frames``.

Rules kept here:

- Each span is a trace of its own, with ids that follow from the capture's name and the number of the frame: the same
  capture gives the same spans.
- A request without a response is a span that ends where it begins and says so (``kwire.answered``). Requests that wait
  are bounded.
- Secrets are in none of the tables that are read; texts of a capture are attributes, as they are.

Sources: OpenTelemetry protocol 1.x (opentelemetry-proto), its file format of JSON lines, semantic conventions for
messaging and Kafka.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire import __version__
from kwire.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

__all__ = ["TABLES", "Exchange", "Link", "Spans", "json_line", "traces"]

TABLES: Final[dict[str, Sequence[str]]] = {
    "records": ("capture", "frame", "source", "topic", "topic_id", "partition", "offset", "headers"),
    "partitions": ("capture", "frame", "topic", "topic_id", "records", "status"),
    "frames": (
        "capture", "connection", "frame", "timestamp", "direction", "client_host", "client_port", "broker_host",
        "broker_port", "api_key", "api_name", "api_version", "correlation_id", "client_id", "size", "latency_ms",
        "status", "error", "errors",
    ),
}  # fmt: skip
"""The tables that are read, with their columns, in the order in which a window is to give them."""

MOST_LINKS: Final = 128
"""Links of a span: the usual limit of OpenTelemetry. The others are counted."""
_MOST_TOPICS: Final = 10
_MOST_WAITING: Final = 100_000
_CLIENT: Final = 3
"""SpanKind."""
_ERROR: Final = 2
"""StatusCode."""
_PARENT: Final = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class Link:
    """A span that a record names."""

    trace_id: bytes
    span_id: bytes
    topic: str | None
    partition: int | None
    offset: int | None


@dataclass(slots=True)
class Exchange:
    """A request and, where there is one, its response, as rows of ``frames``. Times are microseconds since 1970."""

    request: dict[str, Any]
    response: dict[str, Any] | None = None
    topics: list[str] = field(default_factory=list)
    records: int = 0
    links: list[Link] = field(default_factory=list)
    dropped_links: int = 0

    @property
    def ids(self) -> tuple[bytes, bytes]:
        """The id of its trace and of its span."""
        name = f"{self.request['capture']}\0{self.request['frame']}".encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(name).digest()
        return digest[:16], digest[16:24]


@dataclass(slots=True)
class _About:
    """What a frame speaks of."""

    topics: dict[str, None] = field(default_factory=dict)
    records: int = 0
    links: list[Link] = field(default_factory=list)
    dropped: int = 0


class Spans:
    """Takes batches of ``TABLES`` and gives exchanges as they are complete."""

    def __init__(self) -> None:
        self._about: dict[tuple[str, int], _About] = {}
        self._waiting: dict[tuple[str, int, int], Exchange] = {}

    def add(self, name: str, batch: pa.RecordBatch) -> Iterator[Exchange]:
        """Takes rows of the table ``name``."""
        table = pa.Table.from_batches([batch])
        if name == "records":
            self._records(table)
        elif name == "partitions":
            self._partitions(table)
        else:
            yield from self._frames(table)
            # Whatever else was said in this window was of frames that are no exchange.
            self._about.clear()

    def rest(self) -> Iterator[Exchange]:
        """The requests that still wait, at the end."""
        yield from self._waiting.values()
        self._waiting.clear()

    def _of(self, capture: str, frame: int) -> _About:
        return self._about.setdefault((capture, frame), _About())

    def _records(self, table: pa.Table) -> None:
        headers = table["headers"].combine_chunks()
        keys = pc.struct_field(pc.list_flatten(headers), "key")
        named = pc.equal(keys, "traceparent")
        if not pc.any(named).as_py():
            return
        rows = pc.list_parent_indices(headers).filter(named)
        values = pc.struct_field(pc.list_flatten(headers), "value").filter(named).to_pylist()
        for row, value in zip(table.drop(["headers"]).take(rows).to_pylist(), values, strict=True):
            found = _PARENT.fullmatch(value or b"")
            if found is None:
                continue
            about = self._of(row["capture"], row["frame"])
            if len(about.links) >= MOST_LINKS:
                about.dropped += 1
                continue
            trace, span = (bytes.fromhex(part.decode()) for part in found.group(1, 2))
            topic = row["topic"] or row["topic_id"]
            about.links.append(Link(trace, span, topic, row["partition"], row["offset"]))

    def _partitions(self, table: pa.Table) -> None:
        topics = pc.coalesce(table["topic"], table["topic_id"])
        table = table.append_column("of", topics).filter(pc.equal(table["status"], "ok"))
        made = table.group_by(["capture", "frame", "of"], use_threads=False).aggregate([("records", "sum")])
        for row in made.to_pylist():
            about = self._of(row["capture"], row["frame"])
            about.records += row["records_sum"] or 0
            if row["of"] is not None and len(about.topics) < _MOST_TOPICS:
                about.topics[row["of"]] = None

    def _frames(self, table: pa.Table) -> Iterator[Exchange]:
        times = table["timestamp"].cast(pa.int64())
        table = table.set_column(table.column_names.index("timestamp"), "timestamp", times)
        for row in table.to_pylist():
            key = (row["capture"], row["connection"], row["correlation_id"])
            about = self._about.pop((row["capture"], row["frame"]), None)
            if row["direction"] == "request":
                if row["api_name"] is None:
                    continue
                made = Exchange(row)
                _tell(made, about)
                before = self._waiting.pop(key, None)
                if before is not None:
                    yield before
                self._waiting[key] = made
                if len(self._waiting) > _MOST_WAITING:
                    yield self._waiting.pop(next(iter(self._waiting)))
            elif row["latency_ms"] is not None and key in self._waiting:
                made = self._waiting.pop(key)
                made.response = row
                _tell(made, about)
                yield made


def _tell(made: Exchange, about: _About | None) -> None:
    if about is None:
        return
    made.topics = [*made.topics, *(one for one in about.topics if one not in made.topics)][:_MOST_TOPICS]
    made.records += about.records
    room = MOST_LINKS - len(made.links)
    made.links += about.links[:room]
    made.dropped_links += about.dropped + max(0, len(about.links) - room)


# --- as OTLP ----------------------------------------------------------------------------------------------------------


def traces(exchanges: Iterable[Exchange]) -> TracesData:
    """Spans by client. Messages of this kind one behind the other in a file are one message again.

    Raises ``MissingExtraError`` without the extra ``events``.
    """
    try:
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
    except ModuleNotFoundError as missing:
        raise MissingExtraError("writing spans", "events") from missing
    made = TracesData()
    scopes: dict[tuple[Any, Any], Any] = {}
    for one in exchanges:
        client = (one.request["client_host"], one.request["client_id"])
        scope = scopes.get(client)
        if scope is None:
            of: ResourceSpans = made.resource_spans.add()
            host, name = client
            _attributes(of.resource.attributes, {"service.name": name or host, "host.ip": host})
            scope = scopes[client] = of.scope_spans.add()
            scope.scope.name, scope.scope.version = "kwire", __version__
        _fill(scope.spans.add(), one)
    return made


def _fill(span: Any, one: Exchange) -> None:
    asked, told = one.request, one.response
    span.trace_id, span.span_id = one.ids
    api = asked["api_name"]
    span.name = _text(f"{api} {one.topics[0]}" if len(one.topics) == 1 else api)
    span.kind = _CLIENT
    span.start_time_unix_nano = max(0, asked["timestamp"]) * 1000
    span.end_time_unix_nano = max(0, (told or asked)["timestamp"]) * 1000
    errors = list(dict.fromkeys((told or asked)["errors"] or ()))
    about = {
        "messaging.system": "kafka",
        "messaging.operation.name": api,
        "messaging.client.id": asked["client_id"],
        "messaging.destination.name": one.topics[0] if len(one.topics) == 1 else None,
        "messaging.batch.message_count": one.records or None,
        "client.address": asked["client_host"],
        "client.port": asked["client_port"],
        "server.address": asked["broker_host"],
        "server.port": asked["broker_port"],
        "error.type": errors[0] if errors else None,
        "kwire.topics": one.topics if len(one.topics) > 1 else None,
        "kwire.api_key": asked["api_key"],
        "kwire.api_version": asked["api_version"],
        "kwire.correlation_id": asked["correlation_id"],
        "kwire.request_bytes": asked["size"],
        "kwire.response_bytes": None if told is None else told["size"],
        "kwire.answered": told is not None,
        "kwire.capture": asked["capture"],
        "kwire.connection": asked["connection"],
        "kwire.request_frame": asked["frame"],
        "kwire.response_frame": None if told is None else told["frame"],
    }
    _attributes(span.attributes, about)
    wrong = next((row["error"] for row in (told, asked) if row is not None and row["status"] != "ok"), None)
    if errors or wrong:
        span.status.code = _ERROR
        span.status.message = _text(", ".join(errors) or wrong or "")
    for link in one.links:
        made = span.links.add()
        made.trace_id, made.span_id = link.trace_id, link.span_id
        where = {
            "messaging.destination.name": link.topic,
            "messaging.destination.partition.id": None if link.partition is None else str(link.partition),
            "messaging.kafka.offset": link.offset,
        }
        _attributes(made.attributes, where)
    span.dropped_links_count = one.dropped_links


def _attributes(to: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is None:
            continue
        made = to.add()
        made.key = name
        if isinstance(value, bool):
            made.value.bool_value = value
        elif isinstance(value, int):
            made.value.int_value = value
        elif isinstance(value, list):
            for text in value:
                made.value.array_value.values.add().string_value = _text(text)
        else:
            made.value.string_value = _text(value)


def _text(value: str) -> str:
    """A text that protobuf takes: a name of a file may have bytes that are no UTF-8."""
    return value.encode("utf-8", "replace").decode()


def json_line(made: TracesData) -> str:
    """A line of OTLP as JSON, as a collector's receiver of files reads it."""
    from google.protobuf.json_format import MessageToDict

    said = MessageToDict(made, use_integers_for_enums=True)
    for of, plain in zip(said.get("resourceSpans", ()), made.resource_spans, strict=True):
        for scope, spans in zip(of["scopeSpans"], plain.scope_spans, strict=True):
            for span, exact in zip(scope["spans"], spans.spans, strict=True):
                # Ids are in hexadecimal there, and nothing else is in base64.
                span["traceId"], span["spanId"] = exact.trace_id.hex(), exact.span_id.hex()
                for link, true in zip(span.get("links", ()), exact.links, strict=True):
                    link["traceId"], link["spanId"] = true.trace_id.hex(), true.span_id.hex()
    return json.dumps(said, separators=(",", ":"))
