"""The table ``client_metrics``: what clients pushed to brokers (KIP-714), one row per data point.

Strategy: only frames of the two APIs are decoded, one by one. A subscription is remembered from its response, by client
instance and subscription id, so that later pushes know their interval and which metrics were asked for: clients may
push to any broker, so the connection says nothing. What a push holds is read by ``kwire.events.telemetry``.

Rules kept here:

- Bad input is a row with a status, and the rest goes on.
- Little input cannot ask for much: the data points of a push and the text of its rows are limited (each row repeats the
  attributes of its resource), and what is remembered of a capture is bounded, the oldest being forgotten.
- What is asked, told and pushed without metrics is a row too: nobody should have to guess whether a client was silent.
- What a client does against the KIP is said by ``kwire.events.sessions``, of one capture.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frame, Frames
from kwire.errors import DecodeError, KwireError, LimitError
from kwire.events.columns import VIOLATIONS
from kwire.events.sessions import LONGEST_REQUESTED, Known, Pushed, Recent, Sessions, codec_name, size_of
from kwire.events.telemetry import (
    LARGEST_PUSH,
    OF_TIME,
    Point,
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
        pa.field("accepted_compression_types", pa.list_(pa.field("element", pa.string(), nullable=True))),
        pa.field("telemetry_max_bytes", pa.int32()),
        pa.field("delta_temporality", pa.bool_()),
        pa.field("terminating", pa.bool_()),
        pa.field("compression", pa.string()),
        pa.field("metrics_bytes", pa.int32()),
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
        pa.field("violations", VIOLATIONS),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""One row per data point of a PushTelemetry request, one for each push that has none to give, and one for each
GetTelemetrySubscriptions request and its answer.

``capture``, ``connection`` and ``frame`` name the frame, and ``timestamp`` is the one of the table ``frames``.
``push_interval_ms`` to ``delta_temporality`` and ``requested`` (whether the metric is among those) are null where the
capture does not have the answer that made the subscription. ``metrics_bytes`` are those of the push as it was sent.
``violations`` are those of a request or an answer in its first row, those of a metric in the first row that it has in
its push (``kwire.events.telemetry.RULES``). ``value`` is that of a gauge or a sum; ``count`` to
``buckets`` belong to histograms, ``count``, ``sum`` and ``quantiles`` to summaries. Integers beyond 2**53 are rounded
in ``value``. A bucket counts the values above ``lower`` up to and including ``upper``; null there is no bound.
``attributes`` are those of the data point, ``resource_attributes`` those of the client as a whole.
"""

STATUSES: Final = {
    "ok": "a data point",
    "empty": "a push without a data point",
    "asked": "a client asks for its subscription",
    "subscribed": "the answer: what the client is to push",
    "refused": "an answer with an error code; `error` names it and says what the client does next",
    "malformed": "metrics that cannot be decompressed or are no OTLP, or one data point that makes no sense",
    "too_large": "a push that asks for more than a limit allows; rows before it are good",
    "unsupported": "a compression type or a version of the API that kwire does not know",
    "unreadable": "a push whose frame is incomplete or malformed",
}
"""What each ``status`` means. ``error`` says more, in a sentence, of what went wrong."""

_NAMES: Final[dict[int | None, str]] = {
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "GetTelemetrySubscriptions",
    ApiKey.PUSH_TELEMETRY: "PushTelemetry",
}
_POINT_COLUMNS: Final = tuple(field.name for field in fields(Point))

_Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request said that its answer does not repeat."""

    client_instance_id: UUID
    subscription_id: int | None


class _Maker(Maker):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        check_installed()
        self._name = run.name
        self._schema = schema
        self._asked: Recent[_Asked] = Recent(MOST_PENDING)
        self._limits = run.limits
        self._sessions = Sessions()

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
            if name in ("requested_metrics", "accepted_compression_types"):
                return _by_identity(values, kind)
            if kind == ATTRIBUTES:
                return pa.array([None if one is None else list(one.items()) for one in values], ATTRIBUTES)
            if name == "violations":
                return pa.array([[one._asdict() for one in each or ()] for each in values], kind)
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
            wrong = self._sessions.asks(frame.connection, body, frame.time)
            instance = None if body.client_instance_id == ZERO_UUID else uuid_text(body.client_instance_id)
            yield row | {"client_instance_id": instance, "violations": wrong, "status": "asked"}
            return
        pushed = self._sessions.pushes(frame.connection, body, frame.time)
        known = 0 <= body.compression_type < len(CODECS)
        row |= {
            "client_instance_id": uuid_text(body.client_instance_id),
            "subscription_id": subscription_id,
            "terminating": body.terminating,
            "compression": CODECS[body.compression_type] if known else None,
            "metrics_bytes": len(body.metrics),
        }
        if pushed.known is not None:
            row |= _of_subscription(pushed.known)
        first = row | {"violations": pushed.violations}
        try:
            most = min(LARGEST_PUSH, self._limits.decompressed)
            found = points(unpack(body.compression_type, body.metrics, most))
        except LimitError as error:
            why = f": {self._limits.said('decompressed')}" if most < LARGEST_PUSH else ""
            yield first | {"status": "too_large", "error": f"{error}{why}"}
            return
        except DecodeError as error:
            yield first | {"status": "malformed" if known else "unsupported", "error": str(error)}
            return
        yield from _points_as_rows(row, pushed, found, self._limits)

    def _answer(self, row: _Row, frame: Frame) -> Iterator[_Row]:
        asked = self._asked.pop((frame.connection, frame.correlation_id))
        body = frame.body
        instance = asked.client_instance_id if asked is not None else ZERO_UUID
        subscription_id = asked.subscription_id if asked is not None else None
        wrong = []
        if frame.api_key == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            wrong = self._sessions.told(frame.connection, instance, body, frame.time)
            if body.client_instance_id != ZERO_UUID:
                instance = body.client_instance_id
            if body.error_code == 0:
                subscription_id = body.subscription_id
        else:
            self._sessions.answered(frame.connection, body.error_code)
        row |= {
            "client_instance_id": None if instance == ZERO_UUID else uuid_text(instance),
            "subscription_id": subscription_id,
            "violations": wrong,
        }
        if body.error_code != 0:
            error = f"{_NAMES[frame.api_key]}: {client_action(body.error_code)}"
            yield row | {"status": "refused", "error": error}
        elif frame.api_key == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            known = self._sessions.known(instance, body.subscription_id)
            if known is not None:
                yield row | _of_subscription(known) | {"status": "subscribed"}
            else:
                yield row | _not_remembered(body)


def _of_subscription(known: Known) -> _Row:
    """What the rows of a push and of an answer say of the subscription; lists that are shown are made once."""
    one = known.subscription
    return {
        "push_interval_ms": one.push_interval_ms,
        "requested_metrics": known.shown,
        "accepted_compression_types": known.accepted,
        "telemetry_max_bytes": one.telemetry_max_bytes,
        "delta_temporality": one.delta_temporality,
        "": known.size,
    }


def _not_remembered(body: Any) -> _Row:
    """A subscription of nobody, whose request is not in the capture, or one that is too long."""
    row = {
        "push_interval_ms": body.push_interval_ms,
        "telemetry_max_bytes": body.telemetry_max_bytes,
        "delta_temporality": bool(body.delta_temporality),
        "status": "subscribed",
    }
    size = size_of(body.requested_metrics)
    if size > LONGEST_REQUESTED:
        error = (
            f"the subscription asks for metrics with {size} bytes of names, more than the limit of {LONGEST_REQUESTED}"
        )
        return row | {"status": "too_large", "error": error}
    accepted = dict.fromkeys(body.accepted_compression_types)
    return row | {
        "requested_metrics": list(map(printable, body.requested_metrics)),
        "accepted_compression_types": list(map(codec_name, accepted)),
        "": size,
    }


def _points_as_rows(row: _Row, pushed: Pushed, found: Iterable[Point], limits: Limits) -> Iterator[_Row]:
    """The rows of one push; ``row`` is what they share, ``limits`` bounds how many they may have together."""
    most = min(MOST_TEXT, limits.text)
    n = text = 0
    known, wrong = pushed.known, pushed.violations
    size = 0 if known is None else known.size
    judged: set[str] = set()
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
            if known is not None:
                made["requested"] = known.requested.has(point.metric)
                if point.metric not in judged:
                    judged.add(point.metric)
                    wrong = [*wrong, *known.measured(point.metric, point.temporality, point.type in OF_TIME)]
            made["violations"], wrong = wrong, []
            made["status"] = "ok" if point.error is None else "malformed"
            made[""] = cost
            yield made
    except LimitError as error:
        yield row | {"violations": wrong, "status": "too_large", "error": str(error)}
        return
    if not n:
        yield row | {"violations": wrong, "status": "empty"}


def _by_identity(values: list[list[str] | None], kind: pa.DataType) -> pa.Array:
    """A column of lists, few of which are not the same object."""
    number: dict[int, int] = {}
    each = [None if one is None else number.setdefault(id(one), len(number)) for one in values]
    some = {id(one): one for one in values if one is not None}
    return pa.array([some[one] for one in number], kind).take(pa.array(each, pa.int32()))


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


def _broken(row: _Row) -> str:
    return "; ".join(one["detail"] for one in row["violations"] or ()) or "-"


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
        Column("violations", _broken, shrink=24),
        Column("status", showing.status, shrink=8, empty="ok"),
    ),
)
