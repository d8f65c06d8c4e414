"""``kwire decode --as cloudevents|hono``: what the records of a capture mean, one row per event or message.

Reads the table ``records`` and takes the records apart with ``kwire.events``: events by the column, messages by the
row, because their devices are remembered. ``kwire.spark.cloudevents`` and ``kwire.spark.hono_messages`` have the same
columns, for captures that are too large for one machine. Records that are none of it are left out. Rules kept here:

- A bad event or message is a row with ``error``; so is one in a record whose ``status`` is not ``ok``.
- Hono messages are judged expired at the time at which the capture saw them. A device on a second partition or from a
  second producer is a violation of the message that shows it first, over all files of one command; producers are told
  apart by their producer ids, so that those that are not idempotent are not compared (``kwire.spark.hono_violations``
  with the table ``frames`` does that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture import read
from kwire.events import columns, hono
from kwire.events.columns import PLACE, PLACE_FIELDS, RENAMED

__all__ = ["CLOUDEVENTS", "HONO", "SCHEMAS", "reader"]

Row = dict[str, Any]

CLOUDEVENTS: Final = pa.schema([*PLACE_FIELDS, pa.field("key", pa.binary()), *columns.CLOUDEVENT])
"""The columns of ``kwire.spark.cloudevents``."""

HONO: Final = pa.schema(
    [*PLACE_FIELDS, pa.field("producer_id", pa.int64()), *columns.HONO_MESSAGE, pa.field("error", pa.string())]
)
"""The columns of ``kwire.spark.hono_messages``."""

SCHEMAS: Final = {"cloudevents": CLOUDEVENTS, "hono": HONO}
"""The schema of each choice of ``--as``."""


def reader(name: str) -> Callable[..., Iterator[pa.RecordBatch]]:
    """What reads captures as ``name``; the arguments and errors of what it returns are those of ``capture.read``."""
    convert = _events if name == "cloudevents" else _Messages().batch

    def batches(source: Any, **options: Any) -> Iterator[pa.RecordBatch]:
        for batch in read(source, "records", **options):
            found = convert(batch)
            if found.num_rows:
                yield found

    return batches


def _records(batch: pa.RecordBatch, *names: str) -> Iterator[Row]:
    """The records of a batch with those columns that are needed and where they stood."""
    wanted = [*PLACE, "status", "error", *names]
    found = {name: batch.column(name) for name in wanted if name in batch.schema.names}
    # Times beyond year 9999, which a record can have, are no datetime: they stay integers.
    plain = [
        column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
        for column in found.values()
    ]
    for values in zip(*plain, strict=True):
        yield dict(zip((RENAMED.get(name, name) for name in found), values, strict=True))


def _headers(row: Row) -> list[tuple[str, bytes | None]]:
    return [(one["key"], one["value"]) for one in row.pop("headers") or ()]


def _said(own: str | None, status: str, error: str | None) -> str | None:
    """What is wrong with an event and with the record that holds it."""
    if status == "ok":
        return own
    record = f"record {status}" if error is None else f"record {status}: {error}"
    return record if own is None else f"{own}; {record}"


def _events(batch: pa.RecordBatch) -> pa.RecordBatch:
    events = columns.cloudevents(batch.column("headers"), batch.column("value"), batch.column("magic"))
    kept = events.is_valid()
    batch, events = batch.filter(kept), events.filter(kept)
    made = {RENAMED.get(name, name): column for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    made |= dict(zip((field.name for field in columns.CLOUDEVENT), events.flatten(), strict=True))
    unsound = pc.not_equal(batch.column("status"), "ok")
    if pc.any(unsound).as_py():
        own, status, error = (
            made["error"].to_pylist(),
            batch.column("status").to_pylist(),
            batch.column("error").to_pylist(),
        )
        made["error"] = pa.array([_said(*one) for one in zip(own, status, error, strict=True)], pa.string())
    return pa.RecordBatch.from_arrays([made[name] for name in CLOUDEVENTS.names], schema=CLOUDEVENTS)


class _Messages:
    """Hono messages; remembers devices from batch to batch and from file to file."""

    def __init__(self) -> None:
        self._devices = hono.Devices()

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(self._rows(batch)), schema=HONO)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        for row in _records(batch, "key", "value", "headers", "is_control", "producer_id"):
            message = hono.read(row["topic"], row.pop("key"), _headers(row), row.pop("value"))
            status, error = row.pop("status"), row.pop("error")
            if row.pop("is_control") or message is None:
                continue
            if status == "ok":
                producer = row["producer_id"]
                known = producer is not None and producer >= 0
                self._devices.see(message, row["partition"], f"producer id {producer}" if known else None)
            else:
                message.violations.clear()
            created = message.creation_time
            row |= {name: getattr(message, name) for name in HONO.names if hasattr(message, name)}
            row["creation_time"] = None if created is None else created * 1000
            row["expired"] = hono.expired(created, message.ttl, row["frame_timestamp"] // 1000)
            until = message.connected_until
            row["connected_until"] = None if until is None else until * 1000
            row["violations"] = [one._asdict() for one in message.violations]
            row["error"] = _said(message.error, status, error)
            yield row
