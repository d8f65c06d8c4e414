"""The table ``hono``: the records of a capture that are telemetry messages of Eclipse Hono, one row per message.

Messages are read by the row, because their devices are remembered; ``kwire.spark.hono_messages`` has the same columns.
Records that are no message are left out. Rules kept here:

- A message that goes against the document is a row with ``violations`` and ``error``; one in a record whose ``status``
  is not ``ok`` has ``error`` alone.
- Messages are judged expired at the time at which the capture saw them. A device on a second partition or from a second
  producer is a violation of the message that shows it first, over all captures of one run; producers are told apart by
  their producer ids, so that those that are not idempotent are not compared (``kwire.spark.hono_violations`` with the
  table ``frames`` does that).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from kwire.events import hono
from kwire.events.columns import HONO_MESSAGE
from kwire.tables import showing
from kwire.tables.definition import CaptureTable, Run
from kwire.tables.meanings import PLACE_FIELDS, OfRecords, rows_of, said
from kwire.tables.showing import Column, Row

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema(
    [*PLACE_FIELDS, pa.field("producer_id", pa.int64()), *HONO_MESSAGE, pa.field("error", pa.string())]
)
"""The columns of ``kwire.spark.hono_messages``."""

_NEEDED: Final = (
    "frame_timestamp",
    "topic",
    "partition",
    "key",
    "value",
    "headers",
    "is_control",
    "producer_id",
    "status",
    "error",
)
"""What a message is read from: the devices are remembered whichever columns are chosen."""


class _Maker(OfRecords):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        super().__init__(schema, run, _NEEDED)
        self._devices: hono.Devices = run.memory.setdefault("hono", hono.Devices())

    def of_records(self, records: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(self._rows(records)), schema=self.schema)

    def _rows(self, records: pa.RecordBatch) -> Iterator[Row]:
        for row in rows_of(records):
            headers = [(one["key"], one["value"]) for one in row.pop("headers") or ()]
            message = hono.read(row["topic"], row.pop("key"), headers, row.pop("value"))
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
            row |= {field.name: getattr(message, field.name) for field in HONO_MESSAGE if hasattr(message, field.name)}
            row["creation_time"] = None if created is None else created * 1000
            row["expired"] = hono.expired(created, message.ttl, row["frame_timestamp"] // 1000)
            until = message.connected_until
            row["connected_until"] = None if until is None else until * 1000
            row["violations"] = [one._asdict() for one in message.violations]
            row["error"] = said(message.error, status, error)
            yield row


TABLE: Final = CaptureTable(
    name="hono",
    schema=SCHEMA,
    file="capture",
    maker=_Maker,
    shown=(
        Column("source", showing.plain("record_source")),
        Column("tenant", showing.plain("tenant"), shrink=8),
        Column("device", showing.plain("device_id"), shrink=8),
        Column("partition", showing.plain("partition"), right=True),
        Column("offset", showing.plain("offset"), right=True),
        Column("created", showing.time("creation_time")),
        Column("qos", showing.plain("qos"), right=True),
        Column("ttd", showing.plain("ttd"), right=True),
        Column("ttl", showing.plain("ttl"), right=True),
        Column("expired", showing.plain("expired")),
        Column("content type", showing.plain("content_type"), shrink=12),
        Column("encoding", showing.plain("content_encoding"), shrink=8),
        Column("error", showing.plain("error"), shrink=24),
    ),
)
