"""The table ``batches`` of log segments: one row per batch or message, from the headers alone.

Rows are made by ``kwire.log``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from kwire import log
from kwire.log.reading import STATUSES
from kwire.options import check_tables
from kwire.tables import showing
from kwire.tables.definition import LogTable
from kwire.tables.showing import Column

__all__ = ["TABLE"]


def _batches(source: Any, *, read_committed: bool = False, **options: Any) -> Iterator[pa.RecordBatch]:
    if read_committed:
        check_tables({"read_committed": True}, [TABLE.name])
    return log.batches(source, **options)


TABLE: Final = LogTable(
    name="batches",
    schema=log.BATCHES,
    file="segment",
    statuses=STATUSES,
    read=_batches,
    shown=(
        Column("position", showing.plain("position"), right=True, least=8),
        Column("partition", showing.partition, shrink=12),
        Column("first", showing.plain("base_offset"), right=True),
        Column("last", showing.plain("last_offset"), right=True),
        Column("records", showing.plain("count"), right=True),
        Column("size", showing.plain("size"), right=True, least=7),
        Column("latest", showing.time("max_timestamp")),
        Column("format", showing.record_format, least=len("v1 snappy")),
        Column("producer", showing.plain("producer_id"), right=True),
        Column("epoch", showing.plain("partition_leader_epoch"), right=True),
        Column("crc", lambda row: "ok" if row["crc_ok"] else "wrong"),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``batches`` of segments (``LogTable``)."""
