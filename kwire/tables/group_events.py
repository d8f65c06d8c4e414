"""The table ``group_events``: what happened to the members of groups, and why. One row for each event.

``kwire.history.groups`` has the rules, ``kwire.tables.histories`` makes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from kwire.history.fold import STATUSES
from kwire.history.groups import CAUSES, EVENTS, GROUPS
from kwire.tables import showing
from kwire.tables.definition import ByRow, CaptureTable
from kwire.tables.histories import AFTER, BEFORE, STEP, maker
from kwire.tables.showing import Column

__all__ = ["PARTITIONS", "SCHEMA", "TABLE", "moved", "moves", "ranges"]

PARTITIONS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("topic", pa.string()),
                pa.field("topic_id", pa.string()),
                pa.field("subtopology", pa.string()),
                pa.field("partition", pa.int32()),
            ]
        ),
        nullable=True,
    )
)
"""Type (``pyarrow.ListType``) of the columns ``gained`` and ``lost``."""

SCHEMA: Final = pa.schema(
    [
        *BEFORE,
        pa.field("group_id", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("event", pa.string()),
        pa.field("member_id", pa.string()),
        pa.field("group_instance_id", pa.string()),
        pa.field("epoch", pa.int32()),
        pa.field("previous_epoch", pa.int32()),
        pa.field("gained", PARTITIONS),
        pa.field("lost", PARTITIONS),
        pa.field("partitions", pa.int32()),
        pa.field("assignor", pa.string()),
        pa.field("duration_ms", pa.float64()),
        pa.field("cause", pa.string()),
        pa.field("cause_member_id", pa.string()),
        pa.field("cause_capture", pa.string()),
        pa.field("cause_connection", pa.int64()),
        pa.field("cause_frame", pa.int64()),
        pa.field("error_name", pa.string()),
        pa.field("detail", pa.string()),
        *AFTER,
    ]
)
"""One row for each event. ``kwire.history.groups`` has the words of ``event`` and ``cause``."""


def _who(row: showing.Row) -> str:
    return showing.plain("group_instance_id" if row["group_instance_id"] is not None else "member_id")(row)


def moves(row: showing.Row) -> Iterator[tuple[str, str, str]]:
    """Partitions that were gained and lost: ``+`` or ``-``, the topic or its id, and the numbers as a text."""
    for sign, name in (("+", "gained"), ("-", "lost")):
        by: dict[str, list[int]] = {}
        for one in row[name] or ():
            what = one["topic"] or one["topic_id"] or one["subtopology"]
            by.setdefault(what, []).append(one["partition"])
        yield from ((sign, what, ranges(parts)) for what, parts in by.items())


def moved(some: Iterable[tuple[str, str, str]]) -> str:
    """Moves as a text: ``+orders[0-2] -orders[5]``."""
    return " ".join(f"{sign}{showing.readable(what)}[{parts}]" for sign, what, parts in some) or "-"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in order as a text: ``0-2,5``."""
    made: list[list[int]] = []
    for one in sorted(numbers):
        if made and one == made[-1][1] + 1:
            made[-1][1] = one
        else:
            made.append([one, one])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in made)


def _cause(row: showing.Row) -> str:
    said: list[Any] = [row["cause"] or "-"]
    if row["cause_frame"] is not None:
        said.append(f"frame {row['cause_frame']}")
    return " ".join(said)


def _took(row: showing.Row) -> str:
    return "-" if row["duration_ms"] is None else f"{row['duration_ms']:.1f}"


TABLE: Final = CaptureTable(
    name="group_events",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    words={"event": EVENTS, "cause": CAUSES},
    maker=maker(GROUPS),
    by_row=ByRow(topics=("gained", "lost")),
    history=GROUPS,
    asked=(STEP,),
    shown=(
        Column("time", showing.time("timestamp")),
        Column("group", showing.plain("group_id"), shrink=8),
        Column("kind", showing.plain("kind")),
        Column("event", showing.plain("event")),
        Column("member", _who, shrink=12),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("epoch", showing.plain("epoch"), right=True),
        Column("partitions", lambda row: moved(moves(row)), shrink=16),
        Column("ms", _took, right=True),
        Column("cause", _cause, shrink=14, wrap=True),
        Column("error", showing.plain("error_name"), shrink=12),
        Column("detail", showing.said("detail"), shrink=12, wrap=True),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``group_events`` of captures (``CaptureTable``): what happened to groups, and why."""
