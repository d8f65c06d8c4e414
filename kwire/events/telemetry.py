"""Client telemetry (KIP-714): the metrics that clients push to brokers.

A client asks a broker what it must measure (GetTelemetrySubscriptions, API key 71). It pushes that at the interval of
the answer (PushTelemetry, key 72). A push is OTLP ``MetricsData`` in protobuf, compressed with one of Kafka's codecs.

    push = kwire.decode_request(frame).body
    for point in points(unpack(push.compression_type, push.metrics)):
        print(point.metric, point.value)

``read`` does this for a whole capture: the table ``client_metrics`` (``kwire.tables.client_metrics``), one row per data
point. Protobuf is read by the ``opentelemetry-proto`` package.

Rules kept here:

- ``unpack`` and ``points`` raise ``DecodeError``, nothing else.
- Little input cannot ask for much. The decompressed size of a push, its parts and the buckets of a data point are
  limited. This matters because protobuf objects are many times larger than their bytes.

Sources:

- KIP-714
- OTLP metrics v1 (opentelemetry-proto)
- for what a client does after an error also Kafka's own client, where it differs from the KIP (see ``CLIENT_ACTIONS``)
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from kwire.errors import DecodeError, LimitError
from kwire.events import otlp
from kwire.events.sessions import OF_METRICS, RULES, Requested, Sessions, Subscription, is_requested, subscription_id
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.records.compression import CODECS, decompress
from kwire.wire import finite

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.reading import Source

__all__ = [
    "CLIENT_ACTIONS",
    "DRAFT_ACTIONS",
    "LARGEST_PUSH",
    "OF_METRICS",
    "PLACE",
    "RULES",
    "Bucket",
    "ClientAction",
    "Point",
    "Requested",
    "Sessions",
    "Subscription",
    "check_installed",
    "client_action",
    "is_requested",
    "points",
    "read",
    "subscription_id",
    "unpack",
    "violations",
]

LARGEST_PUSH: Final = 8 << 20
"""Bytes that the metrics of a push may decompress to.

A broker takes 1 MiB as they are sent (``telemetry.max.bytes``). Objects of protobuf need up to 30 times as much memory
as their bytes.
"""
MOST_PARTS: Final = 300_000
"""Resources, scopes, metrics and attributes of a push, which cost time without becoming rows."""
LEAST_POINT: Final = 16
"""Bytes of metrics for each data point, on average; the first 64 points are free of that.

A time and a value alone take 20 bytes.
"""
MOST_BUCKETS: Final = 10_000
"""Buckets of one histogram."""

PLACE: Final = (
    "capture",
    "connection",
    "frame",
    "timestamp",
    "client_id",
    "client_instance_id",
    "subscription_id",
)
"""Columns of ``client_metrics`` that say whose violation it is."""
_INT64_MAX: Final = (1 << 63) - 1
_NO_RECORDED_VALUE: Final = 1
"""Bit of ``DataPointFlags`` that says that there is no value (OTLP)."""
OF_TIME: Final = ("sum", "histogram", "exponential_histogram")
"""The types that cover a time, and so have a temporality."""
_TEMPORALITIES: Final = {0: None, 1: "delta", 2: "cumulative"}


# --- What a client does after an error --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientAction:
    """What a client does when an answer of the two APIs has an error code.

    ``retry`` says when it turns to a broker again, as the KIP has it; ``java_client`` is when Kafka's own client does.
    ``draft`` is what an earlier version of the KIP had the client do, where it spoke of this error.
    """

    error: ErrorCode
    reason: str
    action: str
    retry: Literal["at once", "next interval", "30 minutes", "never"]
    java_client: Literal["at once", "next interval", "never"]
    draft: str | None = None


CLIENT_ACTIONS: Final[Mapping[int, ClientAction]] = {
    int(one.error): one
    for one in (
        ClientAction(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "the client may not send metrics",
            "warns and asks for its subscription again after 30 minutes",
            "30 minutes",
            "never",
            "warns and asks for its subscription again after 30 minutes",
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
            "changes to another compression type, to none when all are exhausted",
        ),
        ClientAction(
            ErrorCode.INVALID_RECORD,
            "the broker could not read the metrics",
            "logs an error and stops pushing, since another try would not help",
            "never",
            "never",
            "warns and asks for its subscription again after 5 minutes",
        ),
        ClientAction(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            "the client pushed, or asked for its subscription, before the push interval was over",
            "waits for the push interval",
            "next interval",
            "next interval",
            "takes the time of its next push from the answer, which has nothing else (`RateLimited`)",
        ),
        ClientAction(
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            "the subscriptions on the broker have changed",
            "asks at once for its subscription",
            "at once",
            "at once",
            "asks at once for its subscription",
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

DRAFT_ACTIONS: Final[Mapping[str, str]] = {
    "FunctionalityNotEnabled": "warns and asks for its subscription again after 30 minutes, better another broker",
    "UnsupportedEncoding": "tells the application and pushes again after 30 minutes",
}
"""What a client did after errors of earlier versions of the KIP that never got a code.

A broker without a receiver of metrics does not announce the two APIs, and there is one encoding.
"""


def client_action(error_code: int) -> str:
    """What an error code in an answer means and what the client does, as half a sentence for ``error``."""
    known = CLIENT_ACTIONS.get(error_code)
    name = error_name(error_code)
    if known is None:
        return f"{name or 'unknown error'} ({error_code}): not in KIP-714; Kafka's own client stops pushing"
    return f"{name} ({error_code}): {known.reason}; the client {known.action}"


# --- Metrics ----------------------------------------------------------------------------------------------------------

Bucket = tuple[float | None, float | None, int]
"""Lower bound (exclusive), upper bound (inclusive), how many values; ``None`` is no bound."""


@dataclass(frozen=True, slots=True)
class Point:
    """A data point of an OTLP metric. Fields are named as the columns of the table.

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

    Raises, when called, ``DecodeError`` for bytes that are no such message, and ``MissingExtraError`` without the extra
    ``events``. Raises ``LimitError`` after the last point of a message with too many parts. Metrics without a kind or a
    data point give nothing.
    """
    return _points(_parse(data), _Parts(), 64 + len(data) // LEAST_POINT)


class _Parts:
    """Counts the parts of a message on the way through it."""

    def __init__(self) -> None:
        self._left = MOST_PARTS

    def of(self, repeated: Any) -> Any:
        """``repeated``, when there may be that many more. Raises ``LimitError``."""
        self._left -= len(repeated)
        if self._left < 0:
            raise LimitError(f"the metrics have more than {MOST_PARTS} resources, scopes, metrics and attributes")
        return repeated


def _parse(data: bytes) -> Any:
    kind = otlp.metrics_data()
    from google.protobuf.message import DecodeError as ProtobufError

    try:
        parsed = kind.FromString(data)
    except (ProtobufError, ValueError) as wrong:
        what = str(wrong).rpartition(": ")[2]
        raise DecodeError(f"{len(data)} bytes are no OTLP metrics: {what}", layout="MetricsData", offset=0) from None
    if data and not parsed.resource_metrics:
        # Protobuf takes any well-formed fields; a message of unknown ones only is something else.
        raise DecodeError(f"{len(data)} bytes without any OTLP metrics", layout="MetricsData", offset=0)
    return parsed


def _points(parsed: Any, parts: _Parts, most: int) -> Iterator[Point]:
    for resource_metrics in parts.of(parsed.resource_metrics):
        # Not a list of the scopes: each is an object for as long as something holds it, and may be two bytes.
        scopes = [parts.of(each) for each in otlp.scopes(resource_metrics) if each]
        if not scopes:
            continue
        resource = _attributes(resource_metrics.resource.attributes, parts)
        for scope_metrics in chain.from_iterable(scopes):
            for metric in parts.of(scope_metrics.metrics):
                kind = metric.WhichOneof("data")
                if kind is None:
                    continue
                data = getattr(metric, kind)
                whole = kind.startswith("int_")
                kind = otlp.plain(kind)
                temporality = None
                if kind in OF_TIME:
                    number = data.aggregation_temporality
                    temporality = _TEMPORALITIES.get(number, f"unknown({number})")
                make = _whole_number if whole and kind != "histogram" else _KINDS[kind]
                monotonic = data.is_monotonic if kind == "sum" else None
                # Each time they are asked for, they are made again.
                name, unit = metric.name, metric.unit
                for one in data.data_points:
                    most -= 1
                    if most < 0:
                        raise LimitError(f"more data points than one for {LEAST_POINT} bytes of the metrics")
                    yield Point(
                        name,
                        kind,
                        unit,
                        temporality,
                        monotonic,
                        _of_point(one, whole, parts),
                        resource,
                        one.start_time_unix_nano or None,
                        one.time_unix_nano or None,
                        **make(one),
                    )


def _of_point(one: Any, whole: bool, parts: _Parts) -> dict[str, str | None]:
    """The attributes of a data point; what was a label is one of them."""
    found = {} if whole else _attributes(one.attributes, parts)
    old = otlp.labels(one)
    return {pair.key: pair.value for pair in parts.of(old)} | found if old else found


def _whole_number(one: Any) -> dict[str, Any]:
    """Of an ``IntDataPoint``, which has no flags."""
    return {"value": float(one.value)}


def _number(one: Any) -> dict[str, Any]:
    which = one.WhichOneof("value")
    if which is None or one.flags & _NO_RECORDED_VALUE:
        return {}
    return {"value": float(one.as_int) if which == "as_int" else one.as_double}


def _distribution(one: Any) -> dict[str, Any]:
    """What both kinds of histogram have."""
    made: dict[str, Any] = {name: float(getattr(one, name)) for name in ("sum", "min", "max") if _has(one, name)}
    if one.count > _INT64_MAX:
        return made | {"error": f"a count of {one.count} does not fit an int64"}
    return made | {"count": one.count}


def _has(one: Any, name: str) -> bool:
    try:
        return bool(one.HasField(name))
    except ValueError:
        # An ``IntHistogramDataPoint`` has a sum that is always there, and neither of the others.
        return name == "sum"


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

    buckets: list[Bucket] = []
    if negative.bucket_counts:
        # The values of a negative bucket run the other way: -base ** (i + 1) belongs to it, -base ** i does not.
        edges = [None if edge is None else -edge for edge in _edges(negative, one.scale)][::-1]
        buckets = list(zip(edges, edges[1:], negative.bucket_counts[::-1], strict=False))
    if one.zero_count:
        buckets.append((-one.zero_threshold, one.zero_threshold, one.zero_count))
    if positive.bucket_counts:
        edges = _edges(positive, one.scale)
        buckets += zip(edges, edges[1:], positive.bucket_counts, strict=False)
    return made | {"buckets": buckets}


_LARGEST_EXPONENT: Final = 1024.0
_LEAST_EXPONENT: Final = -1075.0
"""Of powers of two that a double does not hold any more, or not but as 0."""


def _edges(side: Any, scale: int) -> list[float | None]:
    """Between which values the buckets of one side are, the first and the last included.

    A bound is base ** i, where base is 2 ** (2 ** -scale). None for what is beyond any number.
    """
    edges: list[float | None] = []
    # What is beyond stays so when it is halved or doubled a few thousand times more.
    shift = max(-3000, min(3000, -scale))
    ldexp, power = math.ldexp, math.pow
    for i in range(side.offset, side.offset + len(side.bucket_counts) + 1):
        try:
            exponent = ldexp(i, shift)
        except OverflowError:
            edges.append(None if i > 0 else 0.0)
            continue
        if exponent >= _LARGEST_EXPONENT:
            edges.append(None)
        else:
            edges.append(power(2.0, exponent) if exponent > _LEAST_EXPONENT else 0.0)
    return edges


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
    return json.dumps(finite(plain), ensure_ascii=False, separators=(",", ":"))


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


# --- A whole capture --------------------------------------------------------------------------------------------------


def check_installed() -> None:
    """Raise ``MissingExtraError`` without the extra ``events``: at once, and not with the first push."""
    _parse(b"")


def read(
    source: Source | Sequence[Source],
    *,
    ports: Iterable[int] | None = None,
    name: str | Sequence[str] = "",
    progress: Callable[[int], None] | None = None,
    window: int | None = None,
    on_note: Callable[[str], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """The table ``client_metrics`` of one capture, as Arrow batches that are not empty.

    Arguments and errors are those of ``kwire.capture.read``. ``CaptureError`` is raised for what is no capture, and for
    a damaged one after all rows that stand before the damage. ``MissingExtraError`` without the extras ``capture`` and
    ``events``.
    """
    from kwire.capture import read as read_capture

    return read_capture(
        source,
        "client_metrics",
        ports=ports,
        name=name,
        progress=progress,
        window=window,
        on_note=on_note,
        limits=limits,
    )


def violations(
    source: Source | Sequence[Source],
    *,
    ports: Iterable[int] | None = None,
    name: str | Sequence[str] = "",
    window: int | None = None,
    on_note: Callable[[str], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """What clients did against the KIP in one capture, one row for each violation, as Arrow batches.

    A list of sources is one capture that was cut in several, in order of time.

    Columns: ``capture``, ``connection``, ``frame``, ``timestamp``, ``client_id``, ``client_instance_id``,
    ``subscription_id`` and ``metric`` are those of the table ``client_metrics``. ``metric`` is null where a push as a
    whole is meant. ``rule`` is one of ``RULES``, ``detail`` is text. Arguments and errors are those of
    ``read``.
    """
    from kwire.capture import read as read_capture
    from kwire.events.columns import each_violation

    batches = read_capture(
        source,
        "client_metrics",
        ports=ports,
        name=name,
        window=window,
        on_note=on_note,
        limits=limits,
        columns=[*PLACE, "metric", "violations"],
    )
    return (one for one in map(each_violation, batches) if one.num_rows)
