"""Histories as tables: ``maker`` makes the ``Maker`` of a ``kwire.history.fold.History``.

Within a capture steps and folds run in one pass. Who reads across files asks for the column ``STEP``: then each step is
a row, and Spark runs the folds (``kwire.spark.histories``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa

from kwire.capture.frames import SMALL_WINDOW, Frames
from kwire.capture.tracker import Tracker
from kwire.history.fold import OF_FRAME, History, Plain, Row, Story
from kwire.history.steps import Found, Steps, packed
from kwire.kernels.layouts import Status
from kwire.kernels.programs import Program, compile_program, job_column, length_column, value_column
from kwire.limits import DEFAULT_LIMITS
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.tables.definition import Maker, Run
from kwire.tables.frames import BROKER, KEY
from kwire.tables.locating import Programs, layouts, remembered
from kwire.tables.topics import Topics
from kwire.wire import printable

__all__ = ["AFTER", "BEFORE", "STEP", "Held", "as_array", "in_batches", "maker"]

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

_TEXT: Final = pa.string()
_BATCH_ROWS: Final = 4096
_BATCH_SIZE: Final = 16 << 20
"""Bytes of a batch, about."""
_WINDOWS: Final = 16
"""Windows that rows wait for others,"""
_ENOUGH: Final = 256
"""or until there are so many."""
_NS: Final = 1000
_TEXTS: Final = 3
_BEFORE: Final = 8
"""Bytes of a request before its client id."""
_LARGEST: Final = 1 << 16
"""Bytes of a body of which the first may count alone."""

Array = Any


class Looking(Protocol):
    """Finds what bodies say without decoding them: what the readers would give. Frames may wait meanwhile."""

    @property
    def full(self) -> bool:
        """Whether what was found and waits takes much memory."""

    def look(self, frames: Frames, rows: Array) -> Array:
        """Looks at rows of a window. Gives those of them that have to be decoded."""

    def __call__(
        self, frames: Frames, rows: Array, names: Callable[[UUID, int], str | None], *, steady: bool
    ) -> dict[int, Found]:
        """What rows say that were looked at, by the number of the row. ``steady``: ``names`` gives the same before all
        frames."""


class _Maker(Maker):
    sees_all = True

    def __init__(
        self, history: History, columns: Callable[[bool], Looking] | None, schema: pa.Schema, run: Run
    ) -> None:
        self._schema = schema
        self._as_steps = STEP.name in schema.names
        self._steps = Steps(run.name, history.reads, run.options["limits"], secrets=run.options["secrets"])
        self._topics = Topics(run.topics, secrets=run.options["secrets"], learns=run.learns)
        self._at_end = history.at_end and not (run.later or run.carried)
        usual = run.options["limits"] == DEFAULT_LIMITS
        self._heads = _Heads(history) if usual and history.heads else None
        self._columns = columns(run.options["secrets"]) if usual and columns is not None else None
        story = run.memory.get(history.name)
        if story is None or not run.goes_on:
            story = run.memory[history.name] = Story(history)
        self._story: Story = story
        self._held = Held(partial(in_batches, schema=schema, plain=(*OF_FRAME, *history.plain)))
        self.kinds = self._steps.kinds

    @property
    def full(self) -> bool:
        return self._columns is not None and self._columns.full

    def look(self, frames: Frames, rows: Array, there: Array, copied: Array) -> None:
        speaking = self._topics.speaking(frames)
        there[speaking] = copied[speaking] = True
        there[rows] = True
        if not frames.all_whole:
            there |= self._steps.wanted(frames)
        copied[rows if self._columns is None else self._columns.look(frames, rows)] = True

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        self._topics.learn(frames)
        columns = None if self._columns is None else partial(self._columns, steady=not self._topics.learnt)
        window = self._steps.of(frames, self._topics.name, self._heads, columns)
        if window is None:
            return iter(())
        if self._as_steps:
            rows: Iterable[Row | Plain] = (
                {
                    "capture": one.capture,
                    "connection": one.connection,
                    "frame": one.frame,
                    "timestamp": one.time,
                    "status": one.status,
                    STEP.name: packed(one),
                }
                for one in window
            )
        else:
            rows = self._story.window(window)
        return self._held.put(rows, frames)

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        more = self._story.over() if self._at_end and not self._as_steps else iter(())
        yield from self._held.rest(more)


class Held:
    """Rows that wait for others: a batch of a few rows takes as long as one of many. ``made`` makes batches of rows.

    Rows of small windows do not wait: somebody may follow a capture that is being made.
    """

    def __init__(self, made: Callable[[list[Any]], Iterator[pa.RecordBatch]]) -> None:
        self._made = made
        self._rows: list[Any] = []
        self._windows = 0

    def put(self, rows: Iterable[Any], frames: Frames) -> Iterator[pa.RecordBatch]:
        """Takes the rows of a window. Gives batches of those that have waited long enough."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) >= _BATCH_ROWS:
                yield from self.rest(())
        self._windows += 1
        small = self._rows and frames.size < SMALL_WINDOW
        if small or self._windows >= _WINDOWS or len(self._rows) >= _ENOUGH:
            yield from self.rest(())

    def rest(self, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        """Batches of all rows that wait, and of ``rows``."""
        waiting, self._rows, self._windows = self._rows, [], 0
        yield from self._made(waiting)
        for row in rows:
            self._rows.append(row)
            if len(self._rows) >= _BATCH_ROWS:
                waiting, self._rows = self._rows, []
                yield from self._made(waiting)
        waiting, self._rows = self._rows, []
        yield from self._made(waiting)


class _Heads:
    """Finds how much of each body counts: ``kwire.history.steps.Heads``."""

    def __init__(self, history: History) -> None:
        self._programs = Programs(partial(_head, tuple(history.heads.items())), _TEXTS)
        self._kinds = np.zeros(max(history.reads) + 1, bool)
        self._kinds[[*history.heads, *history.errors]] = True

    def __call__(self, frames: Frames, rows: Array) -> Array:
        made = np.full(len(rows), -1)
        some = np.flatnonzero(self._kinds[2 * frames["api"][rows] + frames["response"][rows]])
        some = some[(frames["status"][rows[some]] == Status.OK) & (frames["seen"][rows[some]] <= _LARGEST)]
        if not len(some):
            return made
        right, found, failures = self._programs.run(frames, rows[some])
        # Rows are in the order of their numbers.
        at = some if len(right) == len(some) else some[np.searchsorted(rows[some], right)]
        job = job_column(found)
        response = frames["response"][right]
        # Of a response nothing counts, unless there is an error code.
        made[at[response == 1]] = 0
        made[at[job[response[job] == 1]]] = -1
        found = found[response[job] == 0]
        job = job_column(found)
        ends = [value_column(found, one) + length_column(found, one).clip(0) for one in range(_TEXTS)]
        made[at[job]] = np.max(ends, axis=0) - frames["off"][right[job]] - _BEFORE
        for one in failures:
            made[np.flatnonzero(rows == one.row)] = -1
        return made


@remembered
def _head(fields: tuple[tuple[int, tuple[str, ...]], ...], api: int, response: int, version: int) -> Program | None:
    """Of a request the texts before the field after which nothing counts, of a response its error codes."""
    both = layouts(api, response, version, secrets=True)
    if both is None:
        return None
    if response:
        return compile_program(both, {}, errors=True)
    wanted = dict(fields)[2 * api + response]
    texts = [one.name for one in both[-1].fields if one.name in wanted]
    return compile_program(both, texts, emit_after=next(one for one in wanted if one in texts)) if texts else None


def maker(history: History, columns: Callable[[bool], Looking] | None = None) -> Callable[[pa.Schema, Run], Maker]:
    """What ``CaptureTable.maker`` is for a history. ``columns`` makes what finds in columns what
    bodies say; its argument says whether what is secret is shown."""
    return partial(_Maker, history, columns)


def in_batches(rows: Iterable[Row | Plain], schema: pa.Schema, plain: tuple[str, ...] = ()) -> Iterator[pa.RecordBatch]:
    """Rows as batches of ``schema``. Times of rows are nanoseconds since 1970. ``plain``: the columns of those that are
    tuples."""
    rows = iter(rows)
    while some := list(islice(rows, _BATCH_ROWS)):
        yield from _batches(some, schema, plain)


def _batches(rows: list[Any], schema: pa.Schema, plain: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    # Plain rows have no more than their own columns.
    more = [one.name for one in schema if one.name not in plain]
    names, rest = (*plain, *more), (None,) * len(more)
    whole = (row + rest if isinstance(row, tuple) else tuple(map(row.get, names)) for row in rows)
    there = dict(zip(names, zip(*whole, strict=True), strict=True))
    values = [there[one.name] for one in schema]
    size = sum(_size(column, one.type) for column, one in zip(values, schema, strict=True))
    if size > _BATCH_SIZE and len(rows) > 1:
        half = len(rows) // 2
        yield from _batches(rows[:half], schema, plain)
        yield from _batches(rows[half:], schema, plain)
        return
    made = [_column(column, one.type) for column, one in zip(values, schema, strict=True)]
    yield pa.RecordBatch.from_arrays(made, schema=schema)


def _size(column: Sequence[Any], type_: pa.DataType) -> int:
    """About how many bytes a column has."""
    if type_ == _TEXT:
        return 4 * sum(map(len, filter(None, column)))
    return 100 * sum(map(len, filter(None, column))) if pa.types.is_list(type_) else 16 * len(column)


def _shown(value: Any) -> Any:
    """A value with texts that Arrow can hold."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return {name: _shown(one) for name, one in value.items()} if isinstance(value, dict) else value


def _column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if type_ == TIMESTAMP:
        values = [None if one is None else one // _NS for one in values]
    return as_array(values, type_)


def as_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values as an array. Texts on the wire may be any bytes: those that Arrow cannot hold are shown."""
    try:
        return pa.array(values, type_)
    except UnicodeEncodeError:
        return pa.array([_shown(one) for one in values], type_)
