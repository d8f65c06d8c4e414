"""The table ``client_metrics``: what clients pushed to brokers (KIP-714), one row per data point.

Strategy: only frames of the two APIs are decoded, one by one. A subscription is remembered from its response, by client
instance and subscription id, so that later pushes know their interval and which metrics were asked for: clients may
push to any broker, so the connection says nothing. What a push holds is read by ``kwire.events.telemetry``.

Rules kept here:

- Bad input is a row with a status, and the rest goes on.
- Little input cannot ask for much: the data points of a push and the text of its rows are limited (each row repeats the
  attributes of its resource), and what is remembered of a capture is bounded, the oldest being forgotten.
- A push and an answer without metrics are rows too: nobody should have to guess whether a client was silent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frame, Frames
from kwire.errors import DecodeError, KwireError, LimitError
from kwire.events.telemetry import (
    LARGEST_PUSH,
    Point,
    Requested,
    Subscription,
    check_installed,
    client_action,
    points,
    unpack,
)
from kwire.kernels.layouts import Status
from kwire.limits import Limits
from kwire.records.arrow_types import TIMESTAMP
from kwire.records.compression import CODECS
from kwire.records.portions import text_size
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, Run
from kwire.tables.frames import KEY
from kwire.tables.showing import Column
from kwire.wire import ZERO_UUID, printable, uuid_text

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["SCHEMA", "STATUSES", "TABLE"]

MOST_POINTS: Final = 100_000
"""Data points of a push that become rows."""
MOST_TEXT: Final = 32 << 20
"""About how many bytes the rows of one push may have: each repeats the attributes of its resource."""

BATCH_ROWS: Final = 8192
BATCH_TEXT: Final = 4 << 20

MOST_PENDING: Final = 65_536
MOST_REMEMBERED: Final = 16 << 20
LONGEST_REQUESTED: Final = 64 << 10

ATTRIBUTES: Final = pa.map_(pa.string(), pa.string())

SCHEMA: Final = pa.schema(
    [
        *KEY,
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

``capture``, ``connection`` and ``frame`` name the frame, and ``timestamp`` is the one of the table ``frames``.
``push_interval_ms``, ``requested_metrics`` and ``requested`` (whether the metric is among those) are null where the
capture does not have the answer that made the subscription. ``value`` is that of a gauge or a sum; ``count`` to
``buckets`` belong to histograms, ``count``, ``sum`` and ``quantiles`` to summaries. Integers beyond 2**53 are rounded
in ``value``. A bucket counts the values above ``lower`` up to and including ``upper``; null there is no bound.
``attributes`` are those of the data point, ``resource_attributes`` those of the client as a whole.
"""

STATUSES: Final = {
    "ok": "a data point",
    "empty": "a push without a data point",
    "refused": "an answer with an error code; `error` names it and says what the client does next",
    "malformed": "metrics that cannot be decompressed or are no OTLP, or one data point that makes no sense",
    "too_large": "a push that asks for more than a limit allows; rows before it are good",
    "unsupported": "a compression type or a version of the API that kwire does not know",
    "unreadable": "a push whose frame is incomplete or malformed",
}
"""What each ``status`` means. ``error`` says more, in a sentence, unless it is ok or empty."""

_NAMES: Final[dict[int | None, str]] = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "GetTelemetrySubscriptions",
    ApiKey.PUSH_TELEMETRY: "PushTelemetry",
}
_POINT_COLUMNS: Final = tuple(field.name for field in fields(Point))

_Row = dict[str, Any]

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


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request said that its answer does not repeat."""

    client_instance_id: UUID
    subscription_id: int | None


class _Known:
    """A subscription, with what each push of it needs of the metrics that were asked for, made once."""

    def __init__(self, subscription: Subscription) -> None:
        self.push_interval_ms = subscription.push_interval_ms
        self.shown = list(map(printable, subscription.requested_metrics))
        self.size = _size_of(subscription.requested_metrics)
        self.requested = Requested(subscription.requested_metrics)


class _Maker(Maker):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        check_installed()
        self._name = run.name
        self._schema = schema
        self._asked: _Recent[_Asked] = _Recent(MOST_PENDING)
        self._limits = run.limits
        self._subscriptions: _Recent[_Known] = _Recent(MOST_REMEMBERED, lambda one: 200 + one.size)

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        waiting: list[_Row] = []
        text = 0
        for row in self._rows(frames):
            waiting.append(row)
            text += row.pop("", 0) + sum(text_size(row.get(one)) for one in ("capture", "client_id", "error"))
            if len(waiting) >= BATCH_ROWS or text >= BATCH_TEXT:
                yield self._batch(waiting)
                waiting, text = [], 0
        if waiting:
            yield self._batch(waiting)

    def _batch(self, rows: list[_Row]) -> pa.RecordBatch:
        def column(name: str) -> pa.Array:
            kind = self._schema.field(name).type
            values = [row.get(name) for row in rows]
            if pa.types.is_timestamp(kind):
                return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP)
            if name == "requested_metrics":
                return _by_identity(values, kind)
            if kind == ATTRIBUTES:
                return pa.array([None if one is None else list(one.items()) for one in values], ATTRIBUTES)
            return pa.array(values, kind)

        return columns.filled(self._schema, column)

    def _rows(self, frames: Frames) -> Iterator[_Row]:
        """The rows of some frames, each with about its size in bytes under the empty name."""
        api = frames["api"]
        of_two = (api == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) | (api == ApiKey.PUSH_TELEMETRY)
        for number in np.flatnonzero(of_two).tolist():
            frame = frames[number]
            row: _Row = {
                "capture": self._name,
                "connection": frame.connection,
                "frame": frame.number,
                "timestamp": frame.time // 1000,
                "client_id": frame.client_id,
            }
            if frames["status"][number] != Status.OK:
                if frame.api_key == ApiKey.PUSH_TELEMETRY and not frame.is_response:
                    status = "unsupported" if frame.status == Status.UNSUPPORTED else "unreadable"
                    yield row | {"status": status, "error": frame.error or frame.status.name.lower()}
                continue
            try:
                yield from self._answer(row, frame) if frame.is_response else self._request(row, frame)
            except KwireError as error:
                yield row | {"status": "malformed", "error": str(error)}

    def _request(self, row: _Row, frame: Frame) -> Iterator[_Row]:
        body = frame.body
        subscription_id = body.subscription_id if frame.api_key == ApiKey.PUSH_TELEMETRY else None
        asked = _Asked(body.client_instance_id, subscription_id)
        self._asked.put((frame.connection, frame.correlation_id), asked)
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
            row["requested_metrics"] = subscription.shown
            row[""] = size = subscription.size
        try:
            most = min(LARGEST_PUSH, self._limits.decompressed)
            found = points(unpack(body.compression_type, body.metrics, most))
        except LimitError as error:
            why = f": {self._limits.said('decompressed')}" if most < LARGEST_PUSH else ""
            yield row | {"status": "too_large", "error": f"{error}{why}"}
            return
        except DecodeError as error:
            yield row | {"status": "malformed" if known else "unsupported", "error": str(error)}
            return
        yield from _points_as_rows(row, subscription, size, found, self._limits)

    def _answer(self, row: _Row, frame: Frame) -> Iterator[_Row]:
        asked = self._asked.pop((frame.connection, frame.correlation_id))
        body = frame.body
        instance = asked.client_instance_id if asked is not None else ZERO_UUID
        subscription_id = asked.subscription_id if asked is not None else None
        if frame.api_key == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            # The KIP lets a broker leave the id out where the client knows it; Kafka's own repeats it.
            if body.client_instance_id != ZERO_UUID:
                instance = body.client_instance_id
            if body.error_code == 0:
                wanted = tuple(body.requested_metrics)
                if _size_of(wanted) <= LONGEST_REQUESTED:
                    known = _Known(Subscription(body.push_interval_ms, wanted))
                    self._subscriptions.put((instance, body.subscription_id), known)
        if body.error_code != 0:
            yield row | {
                "client_instance_id": None if instance == ZERO_UUID else uuid_text(instance),
                "subscription_id": subscription_id,
                "status": "refused",
                "error": f"{_NAMES[frame.api_key]}: {client_action(body.error_code)}",
            }


def _points_as_rows(
    row: _Row, subscription: _Known | None, size: int, found: Iterable[Point], limits: Limits
) -> Iterator[_Row]:
    """The rows of one push; ``row`` is what they share, ``size`` about how many bytes that is, ``limits`` bounds
    how many they may have together."""
    most = min(MOST_TEXT, limits.text)
    n = text = 0
    try:
        for point in found:
            cost = 200 + size + _size(point)
            n += 1
            text += cost
            if n > MOST_POINTS:
                raise LimitError(f"the push has more than {MOST_POINTS} data points: the rest is left out")
            if text > most:
                why = f": {limits.said('text')}" if most < MOST_TEXT else ""
                raise LimitError(f"the push has more than {most} bytes of rows: the rest is left out{why}")
            made = row | {name: getattr(point, name) for name in _POINT_COLUMNS}
            made["start_time"] = None if point.start_time is None else point.start_time // 1000
            made["time"] = None if point.time is None else point.time // 1000
            made["unit"] = point.unit or None
            if subscription is not None:
                made["requested"] = subscription.requested.has(point.metric)
            made["status"] = "ok" if point.error is None else "malformed"
            made[""] = cost
            yield made
    except LimitError as error:
        yield row | {"status": "too_large", "error": str(error)}
        return
    if not n:
        yield row | {"status": "empty"}


def _by_identity(values: list[list[str] | None], kind: pa.DataType) -> pa.Array:
    """A column of lists, few of which are not the same object."""
    number: dict[int, int] = {}
    each = [None if one is None else number.setdefault(id(one), len(number)) for one in values]
    some = {id(one): one for one in values if one is not None}
    return pa.array([some[one] for one in number], kind).take(pa.array(each, pa.int32()))


def _size_of(texts: Iterable[str]) -> int:
    return sum(8 + len(text) for text in texts)


def _size(point: Point) -> int:
    size = len(point.metric) + len(point.unit)
    for pairs in (point.attributes, point.resource_attributes):
        size += sum(16 + len(key) + len(text or "") for key, text in pairs.items())
    return size + 24 * len(point.buckets or ()) + 16 * len(point.quantiles or ())


def _kind(row: _Row) -> str:
    return " ".join(row[name] for name in ("type", "temporality") if row[name] is not None) or "-"


def _measured(row: _Row) -> str:
    """The value of a gauge or a sum; of a distribution, how many values it has and their sum."""
    if row["count"] is not None:
        return str(row["count"]) if row["sum"] is None else f"{row['count']}, sum {_rounded(row['sum'])}"
    return "-" if row["value"] is None else _rounded(row["value"])


def _rounded(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _last(row: _Row) -> str:
    return "yes" if row["terminating"] else "-"


TABLE: Final = CaptureTable(
    name="client_metrics",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    maker=_Maker,
    shown=(
        Column("time", showing.time("timestamp")),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("instance", showing.plain("client_instance_id"), shrink=8),
        Column("metric", showing.plain("metric"), shrink=54),
        Column("attributes", showing.attributes("attributes"), shrink=12),
        Column("type", _kind, shrink=9),
        Column("value", _measured, right=True),
        Column("unit", showing.plain("unit")),
        Column("last", _last),
        Column("compression", showing.plain("compression"), shrink=4),
        Column("status", showing.status, shrink=8, empty="ok"),
    ),
)
