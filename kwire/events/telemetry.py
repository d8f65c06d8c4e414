"""Client telemetry (KIP-714): the metrics that clients push to brokers, as rows.

A client asks a broker what it is to measure (GetTelemetrySubscriptions, API key 71) and pushes it at the interval that
it was told (PushTelemetry, key 72): OTLP ``MetricsData`` in protobuf, compressed with one of Kafka's codecs.

    push = kwire.decode_request(frame).body
    for point in points(unpack(push.compression_type, push.metrics)):
        print(point.metric, point.value)

``read`` does this for a whole capture: the table ``client_metrics``, one row per data point (``CLIENT_METRICS``).

Strategy: the pipeline of ``kwire.capture`` finds and pairs the frames; only those of the two APIs are decoded here. A
subscription is remembered from its response, by client instance and subscription id, so that later pushes know their
interval and which metrics were asked for: clients may push to any broker, so the connection says nothing. Protobuf is
read by the ``opentelemetry-proto`` package.

Rules kept here:

- Bad input is a row with a status, and the rest goes on; ``unpack`` and ``points`` raise ``DecodeError``, nothing else.
- Little input cannot ask for much: what a push decompresses to, its data points, the buckets of one of them and the
  text of its rows are limited (protobuf objects and repeated resource attributes are many times larger than their
  bytes), and what is remembered of a capture is bounded, the oldest being forgotten.
- A push and an answer without metrics are rows too: nobody should have to guess whether a client was silent.

Sources: KIP-714; OTLP metrics v1 (opentelemetry-proto); for what a client does after an error also Kafka's own client
where it differs from the KIP (see ``CLIENT_ACTIONS``).
"""

from __future__ import annotations

import base64
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import pyarrow as pa

from kwire.errors import CaptureError, DecodeError, KwireError, LimitError, MissingExtraError
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.protocol.headers import decode_request, decode_response
from kwire.records.arrow_types import TIMESTAMP
from kwire.records.compression import CODECS, decompress
from kwire.schema.keys import ApiKey
from kwire.wire import ZERO_UUID, uuid_text

if TYPE_CHECKING:
    from uuid import UUID

    from kwire.capture.pipeline import Source, Window

__all__ = [
    "CLIENT_ACTIONS",
    "CLIENT_METRICS",
    "LARGEST_PUSH",
    "STATUSES",
    "Bucket",
    "ClientAction",
    "Point",
    "Subscription",
    "client_action",
    "is_requested",
    "points",
    "read",
    "unpack",
]

LARGEST_PUSH: Final = 8 << 20
"""Bytes that the metrics of a push may decompress to. A broker takes 1 MiB as they are sent (``telemetry.max.bytes``);
protobuf objects need up to 30 times as much memory as their bytes."""
MOST_POINTS: Final = 100_000
"""Data points of a push that become rows."""
MOST_PARTS: Final = 300_000
"""Resources, scopes, metrics and attributes of a push, which cost time without becoming rows."""
MOST_BUCKETS: Final = 10_000
"""Buckets of one histogram."""
MOST_TEXT: Final = 32 << 20
"""About how many bytes the rows of one push may have: each repeats the attributes of its resource."""

BATCH_ROWS: Final = 8192
BATCH_TEXT: Final = 8 << 20

MOST_PENDING: Final = 65_536
MOST_REMEMBERED: Final = 16 << 20
LONGEST_REQUESTED: Final = 64 << 10

ATTRIBUTES: Final = pa.map_(pa.string(), pa.string())

CLIENT_METRICS: Final = pa.schema(
    [
        pa.field("capture", pa.string(), nullable=False),
        pa.field("connection", pa.int64(), nullable=False),
        pa.field("frame", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP, nullable=False),
        pa.field("client_id", pa.string()),
        pa.field("client_instance_id", pa.string()),
        pa.field("subscription_id", pa.int32()),
        pa.field("push_interval_ms", pa.int32()),
        pa.field("requested_metrics", pa.list_(pa.field("element", pa.string(), nullable=True))),
        pa.field("terminating", pa.bool_()),
        pa.field("compression", pa.string()),
        pa.field("metric", pa.string()),
        pa.field("requested", pa.bool_()),
        pa.field("type", pa.string()),
        pa.field("unit", pa.string()),
        pa.field("temporality", pa.string()),
        pa.field("is_monotonic", pa.bool_()),
        pa.field("attributes", ATTRIBUTES),
        pa.field("resource_attributes", ATTRIBUTES),
        pa.field("start_time", TIMESTAMP),
        pa.field("time", TIMESTAMP),
        pa.field("value", pa.float64()),
        pa.field("count", pa.int64()),
        pa.field("sum", pa.float64()),
        pa.field("min", pa.float64()),
        pa.field("max", pa.float64()),
        pa.field(
            "buckets",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("lower", pa.float64()),
                            pa.field("upper", pa.float64()),
                            pa.field("count", pa.int64()),
                        ]
                    ),
                    nullable=True,
                )
            ),
        ),
        pa.field(
            "quantiles",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct([pa.field("quantile", pa.float64()), pa.field("value", pa.float64())]),
                    nullable=True,
                )
            ),
        ),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""One row per data point of a PushTelemetry request, and one for each push or answer that has none to give.

``capture``, ``connection`` and ``frame`` are the key of the tables of ``kwire.capture.tables``, and ``timestamp`` is
theirs. ``push_interval_ms``, ``requested_metrics`` and ``requested`` (whether the metric is among those) are null
where the capture does not have the answer that made the subscription. ``value`` is that of a gauge or a sum;
``count`` to ``buckets`` belong to histograms, ``count``, ``sum`` and ``quantiles`` to summaries. Integers beyond
2**53 are rounded in ``value``. A bucket counts the values above ``lower`` up to and including ``upper``; null there
is no bound. ``attributes`` are those of the data point, ``resource_attributes`` those of the client as a whole.
"""

STATUSES: Final = {
    "ok": "a data point",
    "empty": "a push without a data point",
    "refused": "an answer with an error code; ``error`` names it and says what the client does next",
    "malformed": "metrics that cannot be decompressed or are no OTLP, or one data point that makes no sense",
    "too_large": "a push that asks for more than a limit allows; rows before it are good",
    "unsupported": "a compression type or a version of the API that kwire does not know",
    "unreadable": "a push whose frame is incomplete or malformed",
}
"""``status`` of CLIENT_METRICS, and what each means. ``error`` says more, in a sentence, unless it is ok or empty."""

_INT64_MAX: Final = (1 << 63) - 1
_NO_RECORDED_VALUE: Final = 1
"""Bit of ``DataPointFlags`` that says that there is no value (OTLP)."""
_TEMPORALITIES: Final = {0: None, 1: "delta", 2: "cumulative"}


# --- What a client does after an error --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientAction:
    """What a client does when an answer of the two APIs has an error code.

    ``retry`` says when it turns to a broker again, as the KIP has it; ``java_client`` is when Kafka's own client does.
    """

    error: ErrorCode
    reason: str
    action: str
    retry: Literal["at once", "next interval", "30 minutes", "never"]
    java_client: Literal["at once", "next interval", "never"]


CLIENT_ACTIONS: Final[Mapping[int, ClientAction]] = {
    int(one.error): one
    for one in (
        ClientAction(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "the client may not send metrics",
            "warns and asks for its subscription again after 30 minutes",
            "30 minutes",
            "never",
        ),
        ClientAction(
            ErrorCode.UNSUPPORTED_VERSION,
            "the broker does not know this version of the API",
            "stops pushing",
            "never",
            "never",
        ),
        ClientAction(
            ErrorCode.INVALID_REQUEST,
            "the client pushed after its terminating push, or the request is wrong in itself",
            "logs an error and stops pushing",
            "never",
            "never",
        ),
        ClientAction(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "the broker does not read this compression type",
            "asks at once for its subscription, which names the accepted compression types, and changes to one of them",
            "at once",
            "at once",
        ),
        ClientAction(
            ErrorCode.INVALID_RECORD,
            "the broker could not read the metrics",
            "logs an error and stops pushing, since another try would not help",
            "never",
            "never",
        ),
        ClientAction(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            "the client pushed, or asked for its subscription, before the push interval was over",
            "waits for the push interval",
            "next interval",
            "next interval",
        ),
        ClientAction(
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            "the subscriptions on the broker have changed",
            "asks at once for its subscription",
            "at once",
            "at once",
        ),
        ClientAction(
            ErrorCode.TELEMETRY_TOO_LARGE,
            "the push is larger than the broker takes",
            "pushes less from the next interval on, at most telemetry_max_bytes",
            "next interval",
            "next interval",
        ),
    )
}
"""By error code. Other codes are not in the KIP; Kafka's own client stops pushing then."""


def client_action(error_code: int) -> str:
    """What an error code in an answer means and what the client does, as half a sentence for ``error``."""
    known = CLIENT_ACTIONS.get(error_code)
    name = error_name(error_code)
    if known is None:
        return f"{name} ({error_code}): not in KIP-714; Kafka's own client stops pushing"
    return f"{name} ({error_code}): {known.reason}; the client {known.action}"


# --- Subscriptions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a broker asked a client for. ``push_interval_ms`` is in milliseconds."""

    push_interval_ms: int
    requested_metrics: tuple[str, ...]


def is_requested(requested_metrics: Sequence[str], metric: str) -> bool:
    """Whether a subscription asks for ``metric``.

    An empty list asks for none, a single empty string for all of them, anything else for those that begin with one of
    the strings (KIP-714, GetTelemetrySubscriptionsResponse). Kafka's brokers write a single ``*`` for all, and its
    clients understand that.
    """
    if len(requested_metrics) == 1 and requested_metrics[0] == "*":
        return True
    return metric.startswith(tuple(requested_metrics))


_V = TypeVar("_V")


class _Recent(Generic[_V]):
    """A dict that forgets its oldest entries when their costs together exceed ``most``."""

    def __init__(self, most: int, cost: Callable[[_V], int] = lambda _: 1) -> None:
        self._most = most
        self._cost = cost
        self._used = 0
        self._entries: OrderedDict[Hashable, _V] = OrderedDict()

    def get(self, key: Hashable) -> _V | None:
        return self._entries.get(key)

    def pop(self, key: Hashable) -> _V | None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._used -= self._cost(value)
        return value

    def put(self, key: Hashable, value: _V) -> None:
        self.pop(key)
        self._entries[key] = value
        self._used += self._cost(value)
        while self._used > self._most:
            self.pop(next(iter(self._entries)))


# --- Metrics ----------------------------------------------------------------------------------------------------------

Bucket = tuple[float | None, float | None, int]
"""Lower bound (exclusive), upper bound (inclusive), how many values; ``None`` is no bound."""


@dataclass(frozen=True, slots=True)
class Point:
    """A data point of an OTLP metric. Fields are named as the columns of ``CLIENT_METRICS``.

    ``start_time`` and ``time`` are nanoseconds since 1970, ``None`` where the client gave none. ``error`` says why the
    point is not what OTLP demands; what could be read of it is there all the same.
    """

    metric: str
    type: str
    unit: str
    temporality: str | None
    is_monotonic: bool | None
    attributes: dict[str, str | None]
    resource_attributes: dict[str, str | None]
    start_time: int | None
    time: int | None
    value: float | None = None
    count: int | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    buckets: list[Bucket] | None = None
    quantiles: list[tuple[float, float]] | None = None
    error: str | None = None


POINT_COLUMNS: Final = tuple(field.name for field in fields(Point))


def unpack(compression_type: int, metrics: bytes | memoryview, limit: int = LARGEST_PUSH) -> bytes:
    """The OTLP bytes in ``metrics`` of a PushTelemetry request, at most ``limit``.

    ``compression_type`` is numbered as in record batches. Snappy is read in xerial framing and as a bare block. Raises
    ``LimitError``, or ``DecodeError`` for a type that is not defined or data that is not what the type says.
    """
    if not 0 <= compression_type < len(CODECS):
        raise DecodeError(f"compression type {compression_type} is not defined", layout="PushTelemetryRequest")
    if compression_type == 0 or not len(metrics):
        # Nothing is nothing in every codec: clients that have no metrics do not compress.
        if len(metrics) > limit:
            raise LimitError(f"{len(metrics)} bytes of metrics, more than the limit of {limit}")
        return bytes(metrics)
    return decompress(compression_type, metrics, limit)


def points(data: bytes) -> Iterator[Point]:
    """The data points in OTLP ``MetricsData`` (which has the same bytes as ``ExportMetricsServiceRequest``).

    Raises ``DecodeError`` when called for bytes that are no such message, and ``MissingExtraError`` without the extra
    ``events``; ``LimitError`` behind the last point that a message with too many parts gives. Metrics without a kind or
    a data point give nothing.
    """
    return _points(_parse(data), _Parts())


class _Parts:
    """Counts the parts of a message on the way through it."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def of(self, repeated: Any) -> Any:
        """``repeated``, when there may be so many more. Raises ``LimitError``."""
        self._left -= len(repeated)
        if self._left < 0:
            raise LimitError(f"the metrics have more than {MOST_PARTS} resources, scopes, metrics and attributes")
        return repeated


def _parse(data: bytes) -> Any:
    try:
        from google.protobuf.message import DecodeError as ProtobufError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ModuleNotFoundError as missing:
        raise MissingExtraError("reading client metrics", "events") from missing
    try:
        parsed = MetricsData.FromString(data)
    except (ProtobufError, ValueError) as wrong:
        what = str(wrong).rpartition(": ")[2]
        raise DecodeError(f"{len(data)} bytes are no OTLP metrics: {what}", layout="MetricsData", offset=0) from None
    if data and not parsed.resource_metrics:
        # Protobuf takes any well-formed fields; a message of unknown ones only is something else.
        raise DecodeError(f"{len(data)} bytes without any OTLP metrics", layout="MetricsData", offset=0)
    return parsed


def _points(parsed: Any, parts: _Parts) -> Iterator[Point]:
    for resource_metrics in parts.of(parsed.resource_metrics):
        resource = _attributes(resource_metrics.resource.attributes, parts)
        for scope_metrics in parts.of(resource_metrics.scope_metrics):
            for metric in parts.of(scope_metrics.metrics):
                kind = metric.WhichOneof("data")
                if kind is None:
                    continue
                data = getattr(metric, kind)
                temporality = None
                if kind in ("sum", "histogram", "exponential_histogram"):
                    number = data.aggregation_temporality
                    temporality = _TEMPORALITIES.get(number, f"unknown({number})")
                make = _KINDS[kind]
                monotonic = data.is_monotonic if kind == "sum" else None
                for one in data.data_points:
                    yield Point(
                        metric.name,
                        kind,
                        metric.unit,
                        temporality,
                        monotonic,
                        _attributes(one.attributes, parts),
                        resource,
                        one.start_time_unix_nano or None,
                        one.time_unix_nano or None,
                        **make(one),
                    )


def _number(one: Any) -> dict[str, Any]:
    which = one.WhichOneof("value")
    if which is None or one.flags & _NO_RECORDED_VALUE:
        return {}
    return {"value": float(one.as_int) if which == "as_int" else one.as_double}


def _distribution(one: Any) -> dict[str, Any]:
    """What both kinds of histogram have."""
    made: dict[str, Any] = {name: getattr(one, name) for name in ("sum", "min", "max") if one.HasField(name)}
    if one.count > _INT64_MAX:
        return made | {"error": f"a count of {one.count} does not fit an int64"}
    return made | {"count": one.count}


def _histogram(one: Any) -> dict[str, Any]:
    made = _distribution(one)
    counts, bounds = one.bucket_counts, one.explicit_bounds
    wrong = _wrong_buckets(len(counts), counts)
    if wrong is None and len(counts) != (len(bounds) + 1 if bounds or counts else 0):
        wrong = f"{len(counts)} buckets and {len(bounds)} bounds"
    if wrong is not None:
        return made | {"error": wrong}
    if not counts:
        return made
    edges = [None, *(_bound(bound) for bound in bounds), None]
    return made | {"buckets": [(edges[i], edges[i + 1], count) for i, count in enumerate(counts)]}


def _exponential(one: Any) -> dict[str, Any]:
    made = _distribution(one)
    negative, positive = one.negative, one.positive
    wrong = _wrong_buckets(
        len(negative.bucket_counts) + len(positive.bucket_counts),
        (one.zero_count, *negative.bucket_counts[:MOST_BUCKETS], *positive.bucket_counts[:MOST_BUCKETS]),
    )
    if wrong is not None:
        return made | {"error": wrong}

    def edge(index: int) -> float:
        # base ** index, where base is 2 ** (2 ** -scale).
        try:
            return math.pow(2.0, math.ldexp(index, -one.scale))
        except OverflowError:
            return math.inf if index > 0 else 0.0

    buckets: list[Bucket] = []
    for i, count in reversed(list(enumerate(negative.bucket_counts, negative.offset))):
        # The values of a negative bucket run the other way: -base ** (i + 1) belongs to it, -base ** i does not.
        buckets.append((_bound(-edge(i + 1)), _bound(-edge(i)), count))
    if one.zero_count:
        buckets.append((-one.zero_threshold, one.zero_threshold, one.zero_count))
    for i, count in enumerate(positive.bucket_counts, positive.offset):
        buckets.append((_bound(edge(i)), _bound(edge(i + 1)), count))
    return made | {"buckets": buckets}


def _wrong_buckets(n: int, counts: Iterable[int]) -> str | None:
    if n > MOST_BUCKETS:
        return f"{n} buckets, more than the limit of {MOST_BUCKETS}"
    largest = max(counts, default=0)
    return f"a bucket count of {largest} does not fit an int64" if largest > _INT64_MAX else None


def _bound(value: float) -> float | None:
    return None if math.isinf(value) else value


def _summary(one: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"sum": one.sum}
    if one.count > _INT64_MAX:
        return made | {"error": f"a count of {one.count} does not fit an int64"}
    made["count"] = one.count
    if len(one.quantile_values) > MOST_BUCKETS:
        return made | {"error": f"{len(one.quantile_values)} quantiles, more than the limit of {MOST_BUCKETS}"}
    return made | {"quantiles": [(each.quantile, each.value) for each in one.quantile_values]}


_KINDS: Final[dict[str, Callable[[Any], dict[str, Any]]]] = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponential_histogram": _exponential,
    "summary": _summary,
}


def _attributes(pairs: Any, parts: _Parts) -> dict[str, str | None]:
    """Attributes as text. OTLP demands that keys are unique; of equal ones the last counts."""
    return {pair.key: _text(pair.value, parts) for pair in parts.of(pairs)}


def _text(value: Any, parts: _Parts) -> str | None:
    """An OTLP ``AnyValue`` as text: strings as they are, bytes as base64, the rest as JSON; ``None`` if it is empty."""
    plain = _plain(value, parts)
    if plain is None or isinstance(plain, str):
        return plain
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any, parts: _Parts) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_plain(one, parts) for one in parts.of(value.array_value.values)]
    if kind == "kvlist_value":
        return {one.key: _plain(one.value, parts) for one in parts.of(value.kvlist_value.values)}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, kind)


# --- The table --------------------------------------------------------------------------------------------------------


def read(
    source: Source,
    *,
    ports: Iterable[int] | None = None,
    name: str = "",
    progress: Callable[[int], None] | None = None,
    window: int | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The table ``client_metrics`` of one capture, as Arrow batches that are not empty.

    Arguments and errors are those of ``kwire.capture.read``: ``CaptureError`` for what is no capture, and for a
    damaged one after all rows that stand before the damage. ``MissingExtraError`` without the extras ``capture`` and
    ``events``.
    """
    _parse(b"")  # Says at once that the extra is missing, and not with the first push.
    try:
        from kwire.capture.columns import Builder
        from kwire.capture.pipeline import WINDOW, Pipeline
    except ModuleNotFoundError as missing:
        if missing.name in ("numba", "numpy"):
            raise MissingExtraError("reading captures", "capture") from None
        raise
    pipeline = Pipeline(source, ports=ports, window=window or WINDOW, progress=progress)
    rows = _Rows(Builder(pipeline, "frames", name), name)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for found in pipeline.windows():
                yield from _batches(rows.of(found))
        except CaptureError as error:
            raise CaptureError(error.message, file=name or None, offset=error.offset) from None
        finally:
            if on_note is not None:
                for note in pipeline.notes():
                    on_note(note)

    return batches()


_Row = dict[str, Any]


def _batches(rows: Iterable[_Row]) -> Iterator[pa.RecordBatch]:
    waiting: list[_Row] = []
    text = 0
    for row in rows:
        waiting.append(row)
        text += row.pop("", 0)
        if len(waiting) >= BATCH_ROWS or text >= BATCH_TEXT:
            yield _batch(waiting)
            waiting, text = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = []
    for field in CLIENT_METRICS:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_timestamp(field.type):
            columns.append(pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP))
        elif field.type == ATTRIBUTES:
            columns.append(pa.array([None if one is None else list(one.items()) for one in values], ATTRIBUTES))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=CLIENT_METRICS)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request said that its answer does not repeat."""

    client_instance_id: UUID
    subscription_id: int | None


class _Rows:
    """The rows of a capture, window by window."""

    def __init__(self, frames: Any, name: str) -> None:
        self._frames = frames
        self._name = name
        self._asked: _Recent[_Asked] = _Recent(MOST_PENDING)
        self._subscriptions: _Recent[Subscription] = _Recent(
            MOST_REMEMBERED, lambda one: 200 + _size_of(one.requested_metrics)
        )

    def of(self, window: Window) -> Iterator[_Row]:
        """The rows of one window, each with about its size in bytes under the empty name."""
        import numpy as np

        from kwire.capture.pipeline import Window
        from kwire.protocol.state import F_API, F_OFF, F_SIZE, F_TIME

        api = window.frames[:, F_API]
        chosen = np.flatnonzero((api == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) | (api == ApiKey.PUSH_TELEMETRY))
        if not chosen.size:
            return
        frames = window.frames[chosen]
        told = self._frames.batch(Window(frames, window.data, 0)).to_pylist()
        for number, frame, about in zip(chosen.tolist(), frames.tolist(), told, strict=True):
            row: _Row = {
                "capture": self._name,
                "connection": about["connection"],
                "frame": window.first + number,
                "timestamp": frame[F_TIME] // 1000,
                "client_id": about["client_id"],
            }
            if about["status"] != "ok":
                if about["api_key"] == ApiKey.PUSH_TELEMETRY and about["direction"] == "request":
                    status = "unsupported" if about["status"] == "unsupported" else "unreadable"
                    yield row | {"status": status, "error": about["error"] or about["status"]}
                continue
            data = window.data[frame[F_OFF] : frame[F_OFF] + frame[F_SIZE]].tobytes()
            try:
                if about["direction"] == "response":
                    yield from self._answer(row, about, data)
                else:
                    yield from self._request(row, about, data)
            except KwireError as error:
                yield row | {"status": "malformed", "error": str(error)}

    def _request(self, row: _Row, about: _Row, data: bytes) -> Iterator[_Row]:
        body: Any = decode_request(data).body
        subscription_id = body.subscription_id if about["api_key"] == ApiKey.PUSH_TELEMETRY else None
        asked = _Asked(body.client_instance_id, subscription_id)
        self._asked.put((about["connection"], about["correlation_id"]), asked)
        if subscription_id is None:
            return
        subscription = self._subscriptions.get((body.client_instance_id, subscription_id))
        known = 0 <= body.compression_type < len(CODECS)
        row |= {
            "client_instance_id": uuid_text(body.client_instance_id),
            "subscription_id": subscription_id,
            "terminating": body.terminating,
            "compression": CODECS[body.compression_type] if known else None,
        }
        size = 0
        if subscription is not None:
            row["push_interval_ms"] = subscription.push_interval_ms
            row["requested_metrics"] = list(subscription.requested_metrics)
            size = _size_of(subscription.requested_metrics)
        try:
            found = points(unpack(body.compression_type, body.metrics))
        except LimitError as error:
            yield row | {"status": "too_large", "error": str(error)}
            return
        except DecodeError as error:
            yield row | {"status": "malformed" if known else "unsupported", "error": str(error)}
            return
        yield from _points_as_rows(row, subscription, size, found)

    def _answer(self, row: _Row, about: _Row, data: bytes) -> Iterator[_Row]:
        asked = self._asked.pop((about["connection"], about["correlation_id"]))
        body: Any = decode_response(data, api_key=about["api_key"], api_version=about["api_version"]).body
        instance = asked.client_instance_id if asked is not None else ZERO_UUID
        subscription_id = asked.subscription_id if asked is not None else None
        if about["api_key"] == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            # The KIP lets a broker leave the id out where the client knows it; Kafka's own repeats it.
            if body.client_instance_id != ZERO_UUID:
                instance = body.client_instance_id
            if body.error_code == 0:
                wanted = tuple(body.requested_metrics)
                if _size_of(wanted) <= LONGEST_REQUESTED:
                    subscription = Subscription(body.push_interval_ms, wanted)
                    self._subscriptions.put((instance, body.subscription_id), subscription)
        if body.error_code != 0:
            yield row | {
                "client_instance_id": None if instance == ZERO_UUID else uuid_text(instance),
                "subscription_id": subscription_id,
                "status": "refused",
                "error": f"{about['api_name']}: {client_action(body.error_code)}",
            }


def _points_as_rows(row: _Row, subscription: Subscription | None, size: int, found: Iterable[Point]) -> Iterator[_Row]:
    """The rows of one push; ``row`` is what they share, ``size`` about how many bytes that is."""
    n = text = 0
    try:
        for point in found:
            cost = 200 + size + _size(point)
            n += 1
            text += cost
            if n > MOST_POINTS:
                raise LimitError(f"the push has more than {MOST_POINTS} data points: the rest is left out")
            if text > MOST_TEXT:
                raise LimitError(f"the push has more than {MOST_TEXT} bytes of rows: the rest is left out")
            made = row | {name: getattr(point, name) for name in POINT_COLUMNS}
            made["start_time"] = None if point.start_time is None else point.start_time // 1000
            made["time"] = None if point.time is None else point.time // 1000
            made["unit"] = point.unit or None
            if subscription is not None:
                made["requested"] = is_requested(subscription.requested_metrics, point.metric)
            made["status"] = "ok" if point.error is None else "malformed"
            made[""] = cost
            yield made
    except LimitError as error:
        yield row | {"status": "too_large", "error": str(error)}
        return
    if not n:
        yield row | {"status": "empty"}


def _size_of(texts: Iterable[str]) -> int:
    return sum(8 + len(text) for text in texts)


def _size(point: Point) -> int:
    size = len(point.metric) + len(point.unit)
    for pairs in (point.attributes, point.resource_attributes):
        size += sum(16 + len(key) + len(text or "") for key, text in pairs.items())
    return size + 24 * len(point.buckets or ()) + 16 * len(point.quantiles or ())
