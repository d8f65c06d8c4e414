"""The table ``client_metrics``: what clients pushed to brokers (KIP-714), one row per data point.

Strategy: only frames of the two APIs are decoded, one by one. ``kwire.events.telemetry`` reads the content of a push.
Clients may push to any broker. So neither the connection nor the capture says which request a push belongs to.
``kwire.tables.subscribed`` fills in whose subscription it is and what violates the KIP, row after row.

Rules kept here:

- Bad input is a row with a status, and the rest goes on.
- Little input cannot ask for much. The data points of a push and the text of its rows are limited, since each row
  repeats the attributes of its resource. What is remembered of a capture is bounded: the oldest is forgotten.
- A request, an answer and a push without metrics are rows too. Nobody should have to guess whether a client was silent.
- With the column ``account`` nothing is filled in: that is for callers with several captures (``kwire.spark.read``).
- The rules also see a frame that a filter leaves out, without its data points.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frame, Frames
from kwire.codec.redacting import emptied
from kwire.errors import DecodeError, KwireError, LimitError
from kwire.events.columns import VIOLATIONS
from kwire.events.sessions import LONGEST_REQUESTED, codec_name, size_of
from kwire.events.telemetry import (
    LARGEST_PUSH,
    Point,
    check_installed,
    client_action,
    points,
    unpack,
)
from kwire.kernels.layouts import Status
from kwire.limits import BEYOND, Limits
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import text_size
from kwire.records.budget import Budget
from kwire.records.compression import CODECS
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, Run
from kwire.tables.frames import KEY
from kwire.tables.showing import Column
from kwire.tables.subscribed import ANSWERED, MOST_TEXT, Judge, account_of, cost_of
from kwire.wire import ZERO_UUID, printable, uuid_text

__all__ = ["ACCOUNT", "SCHEMA", "STATUSES", "TABLE", "in_batches", "rows_of"]

MOST_POINTS: Final = 100_000
"""Data points of a push that become rows."""
BATCH_ROWS: Final = 8192
BATCH_TEXT: Final = 4 << 20

ATTRIBUTES: Final = pa.map_(pa.string(), pa.string())

SCHEMA: Final = pa.schema(
    [
        *KEY,
        pa.field("timestamp", TIMESTAMP),
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
        *STATUS_FIELDS,
    ]
)
"""The rows:

- one per data point of a PushTelemetry request
- one for each push that has no data points to give
- one for each GetTelemetrySubscriptions request and its answer

The columns:

- ``capture``, ``connection`` and ``frame`` name the frame. ``timestamp`` is the one of the table ``frames``.
- ``push_interval_ms`` to ``delta_temporality`` and ``requested`` (whether the metric is among those) come from the
  answer that made the subscription. They are null if the capture does not have it.
- ``metrics_bytes`` are those of the push as it was sent.
- ``violations`` (``kwire.events.telemetry.RULES``): those of a request or an answer stand in its first row, those of a
  metric in the metric's first row of the push.
- ``value`` is that of a gauge or a sum. Integers beyond 2**53 are rounded in it.
- ``count`` to ``buckets`` belong to histograms, ``count``, ``sum`` and ``quantiles`` to summaries.
- A bucket counts the values above ``lower`` up to and including ``upper``. Null means that there is no bound.
- ``attributes`` are those of the data point, ``resource_attributes`` those of the client as a whole.
"""

ACCOUNT: Final = pa.field("account", pa.string())
"""What a frame says to the rules (``kwire.tables.subscribed``), in its first row, as JSON. There by name only."""

STATUSES: Final = {
    "ok": "a data point",
    "empty": "a push without a data point",
    "asked": "a client asks for its subscription",
    "subscribed": "the answer: what the client is to push",
    "answered": "a push was taken, or a frame was left out by a filter: only with the column `account`",
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


class _Maker(Maker):
    sees_all = True

    def __init__(self, schema: pa.Schema, run: Run) -> None:
        check_installed()
        self._name = run.name
        self._schema = schema
        self._limits = run.options["limits"]
        self._budget = Budget(run.options["limits"])
        self._secrets = run.options["secrets"]
        self._only = run.only
        self._judge: Judge = run.memory.setdefault("client_metrics", Judge(run.options["limits"]))
        if not run.goes_on:
            self._judge.other_capture()
        # A later step judges, for this capture and for others.
        self._later = ACCOUNT.name in schema.names

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        return in_batches(self._rows(frames), self._schema)

    def _rows(self, frames: Frames) -> Iterator[_Row]:
        """The rows of some frames, each with about its size in bytes under the empty name."""
        api = frames["api"]
        of_two = (api == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS) | (api == ApiKey.PUSH_TELEMETRY)
        wanted = self._wanted(frames)
        for number in np.flatnonzero(of_two).tolist():
            frame = frames[number]
            row: _Row = {
                "capture": self._name,
                "connection": frame.connection,
                "frame": frame.number,
                "timestamp": None if frame.time is None else frame.time // 1000,
                "client_id": frame.client_id,
            }
            if frames["status"][number] != Status.OK:
                if wanted[number] and frame.api_key == ApiKey.PUSH_TELEMETRY and not frame.is_response:
                    status = "unsupported" if frame.status == Status.UNSUPPORTED else "unreadable"
                    yield row | {"status": status, "error": frame.error or frame.status.name.lower()}
                continue
            try:
                account = account_of(frame)
                if not wanted[number]:
                    made = iter([row | {"status": ANSWERED}])
                else:
                    made = self._answer(row, frame) if frame.is_response else self._request(row, frame)
                if self._later:
                    first = next(made)
                    yield first | {ACCOUNT.name: json.dumps(account)}
                    yield from made
                else:
                    yield from self._judged(made, account)
            except KwireError as error:
                if wanted[number]:
                    yield row | {"status": "malformed", "error": str(error)}

    def _wanted(self, frames: Frames) -> Any:
        """Which frames have rows."""
        if self._only is None:
            return np.ones(len(frames), bool)
        # None of them speaks of a topic.
        return self._only.frames(frames) & (self._only.topics is None)

    def _judged(self, rows: Iterator[_Row], account: list[Any] | None) -> Iterator[_Row]:
        """The rows of one frame, with what is known of its subscription."""
        for row in rows:
            found = self._judge.filled(row, account)
            account = None
            if found is None:
                return
            yield found

    def _request(self, row: _Row, frame: Frame) -> Iterator[_Row]:
        body = frame.body
        if frame.api_key != ApiKey.PUSH_TELEMETRY:
            instance = None if body.client_instance_id == ZERO_UUID else uuid_text(body.client_instance_id)
            yield row | {"client_instance_id": instance, "status": "asked"}
            return
        known = 0 <= body.compression_type < len(CODECS)
        row |= {
            "client_instance_id": uuid_text(body.client_instance_id),
            "subscription_id": body.subscription_id,
            "terminating": body.terminating,
            "compression": CODECS[body.compression_type] if known else None,
            "metrics_bytes": len(body.metrics),
        }
        try:
            hidden = not self._secrets and emptied(body).metrics != body.metrics
            found = points(b"" if hidden else self._unpacked(body))
        except LimitError as error:
            said = BEYOND in error.message or self._limits.decompressed >= LARGEST_PUSH
            why = "" if said else f": {self._limits.said('decompressed')}"
            yield row | {"status": "too_large", "error": f"{error}{why}"}
            return
        except DecodeError as error:
            yield row | {"status": "malformed" if known else "unsupported", "error": str(error)}
            return
        yield from _points_as_rows(row, found, self._limits)

    def _unpacked(self, body: Any) -> bytes:
        """The metrics of a push, decompressed within what is left for the whole capture."""
        most = min(LARGEST_PUSH, self._limits.decompressed)
        if not body.metrics or not 0 < body.compression_type < len(CODECS):
            return unpack(body.compression_type, body.metrics, most)
        self._budget.more(len(body.metrics))
        return self._budget.decompress(body.compression_type, body.metrics, most=most)

    def _answer(self, row: _Row, frame: Frame) -> Iterator[_Row]:
        body = frame.body
        if body.error_code != 0:
            error = f"{_NAMES[frame.api_key]}: {client_action(body.error_code)}"
            yield row | {"status": "refused", "error": error}
        elif frame.api_key == ApiKey.GET_TELEMETRY_SUBSCRIPTIONS:
            yield row | _subscription(body)
        else:
            yield row | {"status": ANSWERED}


def in_batches(rows: Iterable[_Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as batches of ``schema``."""
    waiting: list[_Row] = []
    text = 0
    for row in rows:
        waiting.append(row)
        text += row.pop("", 0) + sum(text_size(row.get(one)) for one in ("capture", "client_id", "error"))
        if len(waiting) >= BATCH_ROWS or text >= BATCH_TEXT:
            yield _batch(waiting, schema)
            waiting, text = [], 0
    if waiting:
        yield _batch(waiting, schema)


def _batch(rows: list[_Row], schema: pa.Schema) -> pa.RecordBatch:
    def column(name: str) -> pa.Array:
        kind = schema.field(name).type
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

    return columns.filled(schema, column)


def rows_of(batch: pa.RecordBatch) -> Iterator[_Row]:
    """The rows that ``in_batches`` made a batch of, with their account. ``violations`` are left out."""
    read = {}
    for name in batch.schema.names:
        each = batch.column(name)
        if pa.types.is_timestamp(each.type):
            each = each.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        read[name] = each.to_pylist()
        if pa.types.is_map(each.type):
            read[name] = [None if one is None else dict(one) for one in read[name]]
    read["violations"] = [()] * batch.num_rows
    for values in zip(*read.values(), strict=True):
        yield dict(zip(read, values, strict=True))


def _subscription(body: Any) -> _Row:
    """What an answer says, of itself."""
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


def _points_as_rows(row: _Row, found: Iterable[Point], limits: Limits) -> Iterator[_Row]:
    """The rows of one push. ``row`` is what they share, ``limits`` bounds how many they may have together."""
    most = min(MOST_TEXT, limits.text)
    n = text = 0
    try:
        for point in found:
            made = row | {name: getattr(point, name) for name in _POINT_COLUMNS}
            n += 1
            text += cost_of(made)
            if n > MOST_POINTS:
                raise LimitError(f"the push has more than {MOST_POINTS} data points: the rest is left out")
            if text > most:
                why = f": {limits.said('text')}" if most < MOST_TEXT else ""
                raise LimitError(f"the push has more than {most} bytes of rows: the rest is left out{why}")
            made["start_time"] = None if point.start_time is None else point.start_time // 1000
            made["time"] = None if point.time is None else point.time // 1000
            made["unit"] = point.unit or None
            made["status"] = "ok" if point.error is None else "malformed"
            yield made
    except LimitError as error:
        yield row | {"status": "too_large", "error": str(error)}
        return
    if not n:
        yield row | {"status": "empty"}


def _by_identity(values: list[list[str] | None], kind: pa.DataType) -> pa.Array:
    """A column of lists. Most of them are the same object."""
    number: dict[int, int] = {}
    each = [None if one is None else number.setdefault(id(one), len(number)) for one in values]
    some = {id(one): one for one in values if one is not None}
    return pa.array([some[one] for one in number], kind).take(pa.array(each, pa.int32()))


def _kind(row: _Row) -> str:
    return " ".join(row[name] for name in ("type", "temporality") if row[name] is not None) or "-"


def _measured(row: _Row) -> str:
    """The value of a gauge or a sum. Of a distribution: how many values it has, and their sum."""
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
    asked=(ACCOUNT,),
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
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``client_metrics`` of captures (``CaptureTable``): data points that clients push."""
