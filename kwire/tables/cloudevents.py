"""The table ``cloudevents``: the records of a capture that are CloudEvents, valid or not, one row per event.

Records are taken apart by the column (``kwire.events.columns``). ``kwire.spark.cloudevents`` has the same columns, for
captures that are too large for one machine. Records that are no event are left out. A note counts those with the
headers of the HTTP binding. A bad event is a row with ``error``. So is an event in a record whose ``status`` is not
``ok``.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.events import cloudevents as ce
from kwire.events import columns as events
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Run
from kwire.tables.meanings import PLACE_FIELDS, OfRecords, renamed, said
from kwire.tables.showing import Column

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema([*PLACE_FIELDS, pa.field("key", pa.binary()), *events.CLOUDEVENT])
"""The columns of ``kwire.spark.cloudevents``."""


class _Maker(OfRecords):
    def __init__(self, schema: pa.Schema, run: Run) -> None:
        needed = ["headers", "value", "magic"]
        needed += ["key"] if "key" in schema.names else []
        needed += ["status", "error"] if "error" in schema.names else []
        super().__init__(schema, run, needed)
        self._of_http = 0

    def notes(self) -> list[str]:
        count = "1 record has" if self._of_http == 1 else f"{self._of_http:,} records have"
        own = [f"{count} {ce.OF_HTTP}, so there are no events in them"] if self._of_http else []
        return [*own, *super().notes()]

    def of_records(self, records: pa.RecordBatch) -> pa.RecordBatch:
        headers, value, magic = (records.column(one) for one in ("headers", "value", "magic"))
        found = events.cloudevents(headers, value, magic, self.limits)
        kept = found.is_valid()
        if found.null_count:
            self._of_http += events.http_events(headers.filter(pc.invert(kept)))
            records, found = records.filter(kept), found.filter(kept)
        made = {renamed(name): records.column(name) for name in records.schema.names}
        made |= dict(zip((field.name for field in events.CLOUDEVENT), found.flatten(), strict=True))
        if "error" in self.schema.names and pc.any(pc.not_equal(records.column("status"), "ok")).as_py():
            each = (made["error"], records.column("status"), records.column("error"))
            texts = zip(*(one.to_pylist() for one in each), strict=True)
            made["error"] = pa.array([said(*one) for one in texts], pa.string())
        return columns.filled(self.schema, made.__getitem__)


TABLE: Final = CaptureTable(
    name="cloudevents",
    schema=SCHEMA,
    file="capture",
    maker=_Maker,
    shown=(
        Column("source", showing.plain("record_source")),
        Column("partition", showing.partition, shrink=12),
        Column("offset", showing.plain("offset"), right=True),
        Column("key", showing.plain("key", "null"), shrink=8, empty="null"),
        Column("mode", showing.plain("mode")),
        Column("type", showing.plain("type"), shrink=16),
        Column("event source", showing.plain("source"), shrink=12),
        Column("id", showing.plain("id"), shrink=8),
        Column("subject", showing.plain("subject"), shrink=8),
        Column("time", showing.time("time")),
        Column("data type", showing.plain("datacontenttype"), shrink=8),
        Column("data", showing.plain("data", "null"), shrink=16),
        Column("extensions", showing.attributes("extensions"), shrink=12),
        Column("error", showing.plain("error"), shrink=24),
    ),
)
"""The table ``cloudevents`` of captures (``CaptureTable``): CloudEvents in records."""
