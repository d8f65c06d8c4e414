"""Histories as tables: ``maker`` makes the ``Maker`` of a ``kwire.history.fold.History``.

Within a capture steps and folds run in one pass. Who reads across files asks for the column ``STEP``: then each step is
a row, and Spark runs the folds (``kwire.spark.histories``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.capture.tracker import Tracker
from kwire.history.fold import History, Row, Story
from kwire.history.steps import Steps, packed
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.tables.definition import Maker, Run
from kwire.tables.frames import BROKER, KEY
from kwire.tables.topics import Topics
from kwire.wire import printable

__all__ = ["AFTER", "BEFORE", "STEP", "in_batches", "maker"]

BEFORE: Final = (
    *KEY,
    pa.field("timestamp", TIMESTAMP),
    pa.field("client_host", pa.string()),
    pa.field("client_port", pa.int32()),
    pa.field("client_id", pa.string()),
    *BROKER,
)
"""The first columns of a history (tuple of ``pyarrow.Field``): the frame that shows what happened."""
AFTER: Final = tuple(STATUS_FIELDS)
"""The last columns of a history (tuple of ``pyarrow.Field``)."""
STEP: Final = pa.field("step", pa.string())
"""A column that is there where it is asked for by name: then a row is a step (``kwire.history.steps.packed``)."""

_BATCH_ROWS: Final = 4096
_BATCH_SIZE: Final = 16 << 20
"""Bytes of a batch, about."""
_NS: Final = 1000


class _Maker(Maker):
    sees_all = True

    def __init__(self, history: History, schema: pa.Schema, run: Run) -> None:
        self._schema = schema
        self._as_steps = STEP.name in schema.names
        self._steps = Steps(run.name, history.reads, run.options["limits"], secrets=run.options["secrets"])
        self._topics = Topics(run.topics, secrets=run.options["secrets"], learns=run.learns)
        self._at_end = history.at_end and not run.later
        story = run.memory.get(history.name)
        if story is None or not run.goes_on:
            story = run.memory[history.name] = Story(history)
        self._story: Story = story

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        self._topics.learn(frames)
        steps = self._steps.of(frames, self._topics.name)
        if self._as_steps:
            rows: Iterable[Row] = (
                {
                    "capture": one.capture,
                    "connection": one.connection,
                    "frame": one.frame,
                    "timestamp": one.time,
                    "status": one.status,
                    STEP.name: packed(one),
                }
                for one in steps
            )
        else:
            rows = (row for one in steps for row in self._story.take(one))
        return in_batches(rows, self._schema)

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        if self._at_end and not self._as_steps:
            yield from in_batches(self._story.over(), self._schema)


def maker(history: History) -> Callable[[pa.Schema, Run], Maker]:
    """What ``CaptureTable.maker`` is for a history."""
    return partial(_Maker, history)


def in_batches(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows as batches of ``schema``. Times of rows are nanoseconds since 1970."""
    waiting: list[Row] = []
    size = 0
    for row in rows:
        waiting.append(row)
        size += _size(row)
        if len(waiting) >= _BATCH_ROWS or size >= _BATCH_SIZE:
            yield _batch(waiting, schema)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, schema)


def _size(row: Mapping[str, Any]) -> int:
    """About how many bytes a row has."""
    made = 400
    for value in row.values():
        if isinstance(value, str):
            made += 4 * len(value)
        elif isinstance(value, list):
            made += 100 * len(value)
    return made


def _shown(value: Any) -> Any:
    """A value with texts that Arrow can hold."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return {name: _shown(one) for name, one in value.items()} if isinstance(value, dict) else value


def _batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    def column(one: pa.Field) -> pa.Array:
        values = [row.get(one.name) for row in rows]
        if pa.types.is_timestamp(one.type):
            values = [None if value is None else value // _NS for value in values]
            return pa.array(values, pa.int64()).cast(pa.timestamp("us")).cast(TIMESTAMP)
        try:
            return pa.array(values, one.type)
        except UnicodeEncodeError:
            # Texts on the wire may be any bytes.
            return pa.array([_shown(value) for value in values], one.type)

    return pa.RecordBatch.from_arrays([column(one) for one in schema], schema=schema)
