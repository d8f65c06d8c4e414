"""The table ``records`` of log segments: one row per record. ``DEEP`` also decodes those of Kafka's own topics.

``kwire.log`` makes the rows, ``kwire.log.internal`` the decoded columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire import log
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.log.internal import DECODED, MAY_HIDE, decoded, redacted_columns
from kwire.log.reading import STATUSES
from kwire.records.batching import batch_ranges
from kwire.tables import records, showing, values
from kwire.tables.definition import LogTable
from kwire.tables.showing import Column

__all__ = ["DEEP", "TABLE"]

_FROM: Final = ("topic", "topic_id", "key", "value", "is_control")
"""What ``decoded`` needs."""

_MOST_DECODED: Final = 4 << 20
"""Bytes of keys and values that are decoded for one batch: as JSON, they may be many times as much."""
_MOST_ROWS: Final = 1 << 13
"""Records that are decoded for one batch: they become Python objects."""


def _deep(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    secrets: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Iterator[pa.RecordBatch]:
    wanted = DEEP.chosen(columns).names
    needed = [one for one in wanted if one not in DECODED]
    decodes = len(needed) < len(wanted)
    if decodes:
        needed += [one for one in _FROM if one not in needed]
    # Decoding needs the values as they are.
    for batch in log.read(source, columns=needed, secrets=secrets or decodes, limits=limits, **options):
        if not decodes:
            yield batch.select(wanted)
            continue
        sizes = sum(pc.fill_null(pc.binary_length(batch.column(one)), 0).to_numpy() for one in ("key", "value"))
        for first, last in batch_ranges(sizes, most=_MOST_DECODED, most_rows=_MOST_ROWS):
            made = decoded(batch.slice(first, last - first), secrets=secrets, limits=limits)
            if not secrets:
                has_given_topic = any(
                    isinstance(one, log.Segment) and one.has_given_topic for one in (source, options.get("name"))
                )
                made = _redacted(made, [one for one in MAY_HIDE if one in wanted], has_given_topic)
            yield made.select(wanted)


def _redacted(batch: pa.RecordBatch, names: Sequence[str], has_given_topic: bool) -> pa.RecordBatch:
    # Both are those of the segment.
    topic, topic_id = (batch.column(one)[0].as_py() if batch.num_rows else None for one in ("topic", "topic_id"))
    control = pc.fill_null(batch.column("is_control"), False)
    made = redacted_columns(
        {one: batch.column(one) for one in names}, control, None if has_given_topic else topic, topic_id
    )
    for one, column in made.items():
        batch = batch.set_column(batch.schema.get_field_index(one), batch.schema.field(one), column)
    return batch


_SHOWN: Final = tuple(column for column in records.SHOWN if column.title != "source")

DEEP: Final = LogTable(
    name="records",
    schema=pa.schema([*log.RECORDS, *(pa.field(one, pa.string()) for one in DECODED)]),
    file="segment",
    statuses=STATUSES,
    read=values.reading(_deep, pa.schema([*log.RECORDS, *(pa.field(one, pa.string()) for one in DECODED)])),
    asked=values.FIELDS,
    shown=(
        *(column for column in _SHOWN if column.title not in ("key", "value", "headers", "control")),
        Column("record", showing.plain("record_type"), shrink=16),
        Column("key", showing.plain("decoded_key"), shrink=20),
        Column("value", showing.plain("decoded_value"), shrink=20),
    ),
)
"""The table ``records`` of segments with decoded keys and values (``LogTable``): ``--deep``."""

TABLE: Final = LogTable(
    name="records",
    schema=log.RECORDS,
    file="segment",
    statuses=STATUSES,
    read=values.reading(log.read, log.RECORDS),
    asked=values.FIELDS,
    shown=_SHOWN,
    deep=DEEP,
)
"""The table ``records`` of segments (``LogTable``)."""
