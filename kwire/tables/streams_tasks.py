"""The table ``streams_tasks``: which member of a streams group has which task. One row for each span.

``kwire.history.tasks`` has the rules, ``kwire.tables.histories`` makes the rows.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from kwire.history.fold import STATUSES
from kwire.history.tasks import ENDS, ROLES, TASKS
from kwire.records.arrow_types import TIMESTAMP
from kwire.tables import showing
from kwire.tables.definition import ByRow, CaptureTable
from kwire.tables.histories import AFTER, BEFORE, STEP, maker
from kwire.tables.showing import Column

__all__ = ["SCHEMA", "TABLE"]

SCHEMA: Final = pa.schema(
    [
        *BEFORE,
        pa.field("group_id", pa.string()),
        pa.field("member_id", pa.string()),
        pa.field("group_instance_id", pa.string()),
        pa.field("process_id", pa.string()),
        pa.field("endpoint", pa.string()),
        pa.field("role", pa.string()),
        pa.field("subtopology", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("topology_epoch", pa.int32()),
        pa.field("epoch", pa.int32()),
        pa.field("assigned_at", TIMESTAMP),
        pa.field("assigned_capture", pa.string()),
        pa.field("assigned_connection", pa.int64()),
        pa.field("assigned_frame", pa.int64()),
        pa.field("ended", pa.string()),
        pa.field("end_epoch", pa.int32()),
        pa.field("duration_ms", pa.float64()),
        *AFTER,
    ]
)
"""One row for each task that a member had in one role. ``kwire.history.tasks`` has the words."""


def _task(row: showing.Row) -> str:
    if row["subtopology"] is None:
        return "-"
    return f"{showing.readable(row['subtopology'])}_{row['partition']}"


def _took(row: showing.Row) -> str:
    return "-" if row["duration_ms"] is None else f"{row['duration_ms']:.1f}"


TABLE: Final = CaptureTable(
    name="streams_tasks",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    words={"role": ROLES, "ended": ENDS},
    maker=maker(TASKS),
    by_row=ByRow(),
    history=TASKS,
    asked=(STEP,),
    shown=(
        Column("since", showing.time("assigned_at")),
        Column("until", showing.time("timestamp")),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("member", showing.plain("member_id"), shrink=8),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("task", _task, shrink=8),
        Column("role", showing.plain("role")),
        Column("epoch", showing.plain("epoch"), right=True),
        Column("ended", showing.plain("ended")),
        Column("ms", _took, right=True),
        Column("endpoint", showing.plain("endpoint"), shrink=8),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``streams_tasks`` of captures (``CaptureTable``): tasks of members of streams groups."""
