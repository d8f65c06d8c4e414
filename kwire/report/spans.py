"""Exchanges as spans of OpenTelemetry: what ``kwire export --otlp`` writes.

Strategy: a request waits for its response, by connection and correlation id. Both together are a span of the kind
client, from the request to the response. What records say in the header ``traceparent`` (W3C Trace Context) are links
to the spans that their producers were in. Tables come window by window, those about what frames hold before ``frames``.

Rules kept here:

- Each span is a trace of its own. Its ids follow from the capture's name and the number of the frame, so the same
  capture gives the same spans.
- A request without a response is a span that ends where it begins and says so (``kwire.answered``). Requests that wait
  are bounded.
- A span has a time: a request without one is none. Where its response has none, the span ends where it begins.
- Secrets are in none of the tables that are read; texts of a capture are attributes, as they are.

Sources: OpenTelemetry protocol 1.x (opentelemetry-proto), its file format of JSON lines, semantic conventions for
messaging and Kafka.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kwire import __version__
from kwire.errors import MissingExtraError
from kwire.report.sums import tuples

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

__all__ = ["TABLES", "Exchange", "Link", "Spans", "json_line", "traces"]


class Frame(NamedTuple):
    """A row of ``frames``. Times are microseconds since 1970; None where the capture does not state them."""

    capture: str
    connection: int
    frame: int
    timestamp: int | None
    direction: str
    client_host: str
    client_port: int
    broker_host: str
    broker_port: int
    api_key: int | None
    api_name: str | None
    api_version: int | None
    correlation_id: int | None
    client_id: str | None
    size: int | None
    latency_ms: float | None
    status: str
    error: str | None
    errors: list[str] | None


TABLES: Final[dict[str, Sequence[str]]] = {
    "records": ("capture", "frame", "source", "topic", "topic_id", "partition", "offset", "headers", "status"),
    "partitions": ("capture", "frame", "topic", "topic_id", "records", "status"),
    "frames": Frame._fields,
}
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
    """A request and, where there is one, its response."""

    request: Frame
    response: Frame | None = None
    topics: Sequence[str] = ()
    records: int = 0
    links: Sequence[Link] = ()
    dropped_links: int = 0

    @property
    def ids(self) -> tuple[bytes, bytes]:
        """The id of its trace and of its span."""
        name = f"{self.request.capture}\0{self.request.frame}".encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(name).digest()
        return digest[:16], digest[16:24]


@dataclass(slots=True)
class _About:
    """What a frame speaks of. Most frames speak of one topic and have no links."""

    topics: tuple[str, ...] = ()
    records: int = 0
    links: list[Link] | tuple[()] = ()
    dropped: int = 0


class Spans:
    """Takes batches of ``TABLES`` and gives exchanges as they are complete."""

    def __init__(self) -> None:
        self._about: dict[tuple[str, int], _About] = {}
        self._waiting: dict[tuple[str, int, int | None], Exchange] = {}

    def add(self, name: str, batch: pa.RecordBatch) -> Iterator[Exchange]:
        """Take rows of the table ``name``."""
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
        about = self._about.get((capture, frame))
        if about is None:
            about = self._about[capture, frame] = _About()
        return about

    def _records(self, table: pa.Table) -> None:
        table = table.filter(pc.not_equal(table["status"], "not_acquired"))
        headers = table["headers"].combine_chunks()
        keys = pc.struct_field(pc.list_flatten(headers), "key")
        named = pc.equal(keys, "traceparent")
        if not pc.any(named).as_py():
            return
        of = pc.list_parent_indices(headers).filter(named)
        values = pc.struct_field(pc.list_flatten(headers), "value").filter(named)
        table = table.select(["capture", "frame", "topic", "topic_id", "partition", "offset"])
        for row in tuples(table.take(of).append_column("value", values)):
            self._link(*row)

    def _link(
        self,
        capture: str,
        frame: int,
        topic: str | None,
        topic_id: str | None,
        partition: int | None,
        offset: int | None,
        value: bytes | None,
    ) -> None:
        found = _PARENT.fullmatch(value or b"")
        if found is None:
            return
        about = self._of(capture, frame)
        if len(about.links) >= MOST_LINKS:
            about.dropped += 1
            return
        trace, span = (bytes.fromhex(part.decode()) for part in found.group(1, 2))
        about.links = [*about.links, Link(trace, span, topic or topic_id, partition, offset)]

    def _partitions(self, table: pa.Table) -> None:
        topics = pc.coalesce(table["topic"], table["topic_id"])
        table = table.append_column("of", topics).filter(pc.equal(table["status"], "ok"))
        made = table.group_by(["capture", "frame", "of"], use_threads=False).aggregate([("records", "sum")])
        for capture, frame, topic, records in tuples(made.select(["capture", "frame", "of", "records_sum"])):
            about = self._of(capture, frame)
            about.records += records or 0
            if topic is not None and len(about.topics) < _MOST_TOPICS:
                about.topics += (topic,)

    def _frames(self, table: pa.Table) -> Iterator[Exchange]:
        table = table.select(list(Frame._fields)).filter(pc.not_equal(table["status"], "unconfirmed"))
        times = table["timestamp"].cast(pa.int64())
        table = table.set_column(Frame._fields.index("timestamp"), "timestamp", times)
        for frame in map(Frame._make, tuples(table)):
            yield from self._frame(frame)

    def _frame(self, frame: Frame) -> Iterator[Exchange]:
        key = (frame.capture, frame.connection, frame.correlation_id)
        about = self._about.pop((frame.capture, frame.frame), None)
        if frame.direction == "request":
            if frame.api_name is None:
                return
            if frame.timestamp is None:
                # Its response is not that of an earlier one with this id.
                before = self._waiting.pop(key, None)
                if before is not None:
                    yield before
                return
            made = Exchange(frame)
            _tell(made, about)
            before = self._waiting.pop(key, None)
            if before is not None:
                yield before
            self._waiting[key] = made
            if len(self._waiting) > _MOST_WAITING:
                yield self._waiting.pop(next(iter(self._waiting)))
        elif frame.api_key is not None and key in self._waiting:
            made = self._waiting.pop(key)
            made.response = frame
            _tell(made, about)
            yield made


def _tell(made: Exchange, about: _About | None) -> None:
    if about is None:
        return
    made.topics = [*made.topics, *(one for one in about.topics if one not in made.topics)][:_MOST_TOPICS]
    made.records += about.records
    room = MOST_LINKS - len(made.links)
    made.links = [*made.links, *about.links[:room]]
    made.dropped_links += about.dropped + max(0, len(about.links) - room)


# --- as OTLP ----------------------------------------------------------------------------------------------------------

_Value = str | int | bool | list[str] | None
_Attributes = Iterable[tuple[str, _Value]]


def _clients(exchanges: Iterable[Exchange]) -> dict[tuple[str, str | None], list[Exchange]]:
    """By the client, whose spans have one resource."""
    made: dict[tuple[str, str | None], list[Exchange]] = {}
    for one in exchanges:
        made.setdefault((one.request.client_host, one.request.client_id), []).append(one)
    return made


def _resource(host: str, client_id: str | None) -> _Attributes:
    return (("service.name", client_id or host), ("host.ip", host))


def _name(one: Exchange) -> str:
    api = one.request.api_name or ""
    return f"{api} {one.topics[0]}" if len(one.topics) == 1 else api


def _times(one: Exchange) -> tuple[int, int]:
    """Its begin and its end, in nanoseconds."""
    begin = max(0, one.request.timestamp or 0)
    end = None if one.response is None else one.response.timestamp
    return begin * 1000, begin * 1000 if end is None else max(0, end) * 1000


def _errors(one: Exchange) -> list[str]:
    return list(dict.fromkeys((one.response or one.request).errors or ()))


def _wrong(one: Exchange, errors: list[str]) -> str | None:
    """What the status of the span says, where it is an error."""
    if errors:
        return ", ".join(errors)
    return next((row.error for row in (one.response, one.request) if row is not None and row.status != "ok"), None)


def _said(one: Exchange, errors: list[str]) -> _Attributes:
    """The attributes of its span: those that are None are left out."""
    request, response = one.request, one.response
    topic = one.topics[0] if len(one.topics) == 1 else None
    return (
        ("messaging.system", "kafka"),
        ("messaging.operation.name", request.api_name),
        ("messaging.client.id", request.client_id),
        ("messaging.destination.name", topic),
        ("messaging.batch.message_count", one.records or None),
        ("client.address", request.client_host),
        ("client.port", request.client_port),
        ("server.address", request.broker_host),
        ("server.port", request.broker_port),
        ("error.type", errors[0] if errors else None),
        ("kwire.topics", list(one.topics) if len(one.topics) > 1 else None),
        ("kwire.api_key", request.api_key),
        ("kwire.api_version", request.api_version),
        ("kwire.correlation_id", request.correlation_id),
        ("kwire.request_bytes", request.size),
        ("kwire.response_bytes", None if response is None else response.size),
        ("kwire.answered", response is not None),
        ("kwire.capture", request.capture),
        ("kwire.connection", request.connection),
        ("kwire.request_frame", request.frame),
        ("kwire.response_frame", None if response is None else response.frame),
    )


def _linked(link: Link) -> _Attributes:
    return (
        ("messaging.destination.name", link.topic),
        ("messaging.destination.partition.id", None if link.partition is None else str(link.partition)),
        ("messaging.kafka.offset", link.offset),
    )


def _text(value: str) -> str:
    """A text that protobuf takes: a name of a file may have bytes that are no UTF-8."""
    return value.encode("utf-8", "replace").decode()


def traces(exchanges: Iterable[Exchange]) -> TracesData:
    """Spans by client. Messages of this kind that follow each other in a file are one message again.

    Raises ``MissingExtraError`` without the extra ``events``.
    """
    try:
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ModuleNotFoundError as missing:
        raise MissingExtraError("writing spans", "events") from missing
    made = TracesData()
    for client, theirs in _clients(exchanges).items():
        of = made.resource_spans.add()
        _attributes(of.resource.attributes, _resource(*client))
        scope = of.scope_spans.add()
        scope.scope.name, scope.scope.version = "kwire", __version__
        for one in theirs:
            _fill(scope.spans.add(), one)
    return made


def _fill(span: Any, one: Exchange) -> None:
    span.trace_id, span.span_id = one.ids
    span.name = _text(_name(one))
    span.kind = _CLIENT
    span.start_time_unix_nano, span.end_time_unix_nano = _times(one)
    errors = _errors(one)
    _attributes(span.attributes, _said(one, errors))
    wrong = _wrong(one, errors)
    if wrong:
        span.status.code = _ERROR
        span.status.message = _text(wrong)
    for link in one.links:
        made = span.links.add()
        made.trace_id, made.span_id = link.trace_id, link.span_id
        _attributes(made.attributes, _linked(link))
    span.dropped_links_count = one.dropped_links


def _attributes(to: Any, values: _Attributes) -> None:
    for name, value in values:
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


def json_line(exchanges: Iterable[Exchange]) -> str:
    """The line of OTLP as JSON that says what ``traces`` says.

    A collector's receiver of files reads it: ids are in hexadecimal, integers of 64 bits are texts, and defaults are
    left out.

    Written without the message, whose way into JSON takes ten times as long.
    """
    said = [
        {
            "resource": {"attributes": _listed(_resource(*client))},
            "scopeSpans": [
                {"scope": {"name": "kwire", "version": __version__}, "spans": [_plain(one) for one in theirs]}
            ],
        }
        for client, theirs in _clients(exchanges).items()
    ]
    return json.dumps({"resourceSpans": said} if said else {}, separators=(",", ":"))


def _plain(one: Exchange) -> dict[str, Any]:
    trace, span = one.ids
    began, ended = _times(one)
    errors = _errors(one)
    made: dict[str, Any] = {"traceId": trace.hex(), "spanId": span.hex(), "name": _text(_name(one)), "kind": _CLIENT}
    # A time that nobody knows is 1970, which is the default.
    if began:
        made["startTimeUnixNano"] = str(began)
    if ended:
        made["endTimeUnixNano"] = str(ended)
    made["attributes"] = _listed(_said(one, errors))
    if one.links:
        made["links"] = [
            {
                "traceId": link.trace_id.hex(),
                "spanId": link.span_id.hex(),
                **({"attributes": listed} if (listed := _listed(_linked(link))) else {}),
            }
            for link in one.links
        ]
    if one.dropped_links:
        made["droppedLinksCount"] = one.dropped_links
    wrong = _wrong(one, errors)
    if wrong:
        made["status"] = {"message": _text(wrong), "code": _ERROR}
    return made


def _listed(values: _Attributes) -> list[dict[str, Any]]:
    return [{"key": name, "value": _valued(value)} for name, value in values if value is not None]


def _valued(value: str | int | bool | list[str]) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [{"stringValue": _text(one)} for one in value]}}
    return {"stringValue": _text(value)}
