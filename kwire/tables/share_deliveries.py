"""The table ``share_deliveries``: what became of records that members of share groups got. One row for each range.

``kwire.history.shares`` has the rules, ``kwire.tables.histories`` makes the rows.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kwire.history.fold import STATUSES
from kwire.history.shares import DELIVERIES, OUTCOMES
from kwire.records.arrow_types import TIMESTAMP
from kwire.tables import showing
from kwire.tables.definition import ByRow, CaptureTable
from kwire.tables.histories import AFTER, BEFORE, STEP, maker
from kwire.tables.share_steps import ShareColumns
from kwire.tables.showing import Column

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema(
    [
        *BEFORE,
        pa.field("group_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("member_id", pa.string()),
        pa.field("delivery_count", pa.int16()),
        pa.field("previous_outcome", pa.string()),
        pa.field("acquired_at", TIMESTAMP),
        pa.field("acquired_capture", pa.string()),
        pa.field("acquired_connection", pa.int64()),
        pa.field("acquired_frame", pa.int64()),
        pa.field("lock_timeout_ms", pa.int32()),
        pa.field("outcome", pa.string()),
        pa.field("held_ms", pa.float64()),
        pa.field("error_name", pa.string()),
        *AFTER,
    ]
)
"""One row for each range of offsets with one outcome. ``kwire.history.shares`` has the words of ``outcome``."""


def _offsets(row: showing.Row) -> str:
    if row["first_offset"] is None:
        return "-"
    if row["first_offset"] == row["last_offset"]:
        return str(row["first_offset"])
    return f"{row['first_offset']}-{row['last_offset']}"


def _held(row: showing.Row) -> str:
    return "-" if row["held_ms"] is None else f"{row['held_ms']:.1f}"


TABLE: Final = CaptureTable(
    name="share_deliveries",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    words={"outcome": OUTCOMES},
    maker=maker(DELIVERIES, ShareColumns),
    by_row=ByRow(topics=("topic",)),
    history=DELIVERIES,
    asked=(STEP,),
    shown=(
        Column("time", showing.time("timestamp")),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("partition", showing.partition, shrink=12),
        Column("offsets", _offsets, right=True),
        Column("member", showing.plain("member_id"), shrink=8),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("delivery", showing.plain("delivery_count"), right=True),
        Column("before", showing.plain("previous_outcome")),
        Column("outcome", showing.plain("outcome")),
        Column("held ms", _held, right=True),
        Column("error", showing.plain("error_name"), shrink=12),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``share_deliveries`` of captures (``CaptureTable``): records of share groups, by ranges."""
