"""From a capture to the rows of its tables: what ``kwire.capture.read`` is.

One pass over the capture makes any number of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from kwire.capture.reading import Reading
from kwire.errors import CaptureError, KwireError
from kwire.naming import no_such
from kwire.options import CaptureOptions, FilterOptions, StreamedOptions, check_tables, chosen, settled
from kwire.tables import CAPTURE, EVENTS, names, table
from kwire.tables.definition import DIRECTIONS, CaptureTable, Maker, Run
from kwire.tables.filters import API, Filter
from kwire.tls import KeyLog
from kwire.wire import parse_uuid, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.account import Line
    from kwire.capture.frames import Frames
    from kwire.capture.parts import Part
    from kwire.capture.reading import Rotated, Source
    from kwire.capture.tracker import Tracker

__all__ = ["Filter", "chosen_table", "of_capture", "read", "schema_of", "settled_values"]


def of_capture(name: str) -> CaptureTable:
    """The table ``name`` of captures, of events too. Raises ``ValueError`` for one that there is not."""
    for kind in (CAPTURE, EVENTS):
        if name in names(kind):
            return table(name, kind)
    raise ValueError(no_such("table", name, (*names(CAPTURE), *names(EVENTS))))


def chosen_table(
    name: str,
    api: str | None,
    direction: str | None,
    *,
    payloads: bool = False,
    how: Mapping[str, Any] | None = None,
) -> CaptureTable:
    """The table ``name``. With ``api``, ``messages`` with typed bodies, of requests or of ``direction``. ``how``: the
    options by which ``records`` have values as JSON, or in a type. Raises ``ValueError``."""
    if api is None and direction is None:
        return _with_values(of_capture(name), how or {})
    if name != "messages":
        raise ValueError(
            f"api and direction are for the table messages, not {name}: to choose its rows by API, take apis"
        )
    if api is None:
        raise ValueError("direction goes with api: it says of which of its messages a body is (apis have rows of both)")
    from kwire.tables.messages import typed

    return typed(api, direction or DIRECTIONS[0], payloads=payloads)


def _with_values(table: CaptureTable, how: Mapping[str, Any]) -> CaptureTable:
    way = how.get("values")
    if way is None or table.name != "records":
        return table
    from kwire.tables import values

    if not how.get("schemas"):
        raise ValueError("values goes with schemas: it says what becomes of values whose schemas are known")
    if way == "json":
        found: CaptureTable = values.as_json(table)
        return found
    topics = list(how.get("topics") or ())
    if len(topics) != 1:
        raise ValueError("values=typed needs one topic, whose schema is the type: give topics")
    try:
        made: CaptureTable = values.typed(table, topics[0], how["schemas"])
    except KwireError as wrong:
        raise ValueError(str(wrong)) from None
    return made


def settled_values(how: Any) -> None:
    """Makes what the options ``schemas``, ``validate`` and ``mask`` say into what reads by them.

    Raises ``KwireError``, ``ValueError`` for ``validate`` or ``mask`` without ``schemas``.
    """
    if how["schemas"] is not None:
        from kwire.values import Schemas

        found = Schemas.of(how["schemas"])
        how["schemas"] = found.validated() if how.get("validate") else found
    elif how.get("validate"):
        raise ValueError("validate goes with schemas: it holds values to the JSON Schema that they have there")
    elif how["mask"] is not None:
        raise ValueError("mask goes with schemas: they say which fields values have")
    if how["mask"] is not None:
        from kwire.tables.values import mask_of

        how["mask"] = mask_of(how["mask"])


def schema_of(api: str, direction: str, *, payloads: bool = False) -> pa.Schema:
    """``kwire.capture.schema_of``."""
    import pyarrow as pa

    from kwire.tables.typed import body_type, message_of

    return pa.schema(list(body_type(message_of(api, direction), payloads=payloads)))


def read(
    source: Source | Rotated,
    tables: Mapping[str, Sequence[str] | None],
    *,
    name: str = "",
    part: Part | None = None,
    memory: dict[str, Any] | None = None,
    learnt: dict[bytes, str] | None = None,
    on_end: Callable[[Tracker], None] | None = None,
    on_account: Callable[[list[Line]], None] | None = None,
    **options: Unpack[CaptureOptions],
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of some tables of one capture: the table's name, and an Arrow batch that is not empty.

    - ``tables``: the names, each with the columns that are wanted of it (None: all).
    - ``part``: the capture is that part of a whole.
    - ``memory``: what tables remember from one capture to the next. Give an empty dict first, and the same dict again
      with each capture.
    - ``learnt``: names of topics by their ids. Those that this capture says are added (``part`` has its own).
    - ``on_end`` gets the tracker that has read the capture.
    - ``on_account`` gets what became of each byte (``kwire.capture.account``).

    ``options`` and the errors are those of ``kwire.capture.read``.
    """
    from kwire.tables.columns import with_dictionaries

    how = settled(options)
    check_tables(how, tables)
    settled_values(how)
    only = Filter.of(**chosen(how, FilterOptions)) or None
    topics = part.topics if part is not None else {} if learnt is None else learnt
    for id_, called in (how["topic_ids"] or {}).items():
        topics.setdefault(id_ if isinstance(id_, bytes) else parse_uuid(id_).bytes, called)
    if memory is None:
        memory = {} if part is None else part.memory
    run = Run(
        # The name of a file is any bytes. A column has those that are UTF-8.
        name=printable(name),
        memory=memory,
        goes_on=part is not None,
        later=part is not None and part.left is None,
        carried=part is not None and part.carried,
        answers=None if part is None else part.answers,
        options=how,
        only=only,
        topics=topics,
    )
    makers: dict[str, Maker] = {}
    forgets = how["live"]
    for one, columns in tables.items():
        definition = chosen_table(one, how["api"], how["direction"], payloads=how["payloads"], how=how)
        forgets = forgets and not definition.of_one_file
        schema = definition.chosen(columns)
        if how["dictionaries"] and definition.dictionaries:
            schema = with_dictionaries(schema)
        if only is None:
            makers[one] = definition.maker(schema, run)
        else:
            only.check(definition)
            makers[one] = _Filtered(definition, schema, run, only)
    reading = Reading(
        source,
        name=name,
        keys=KeyLog.of(how["keylog"]),
        part=part,
        account=on_account is not None,
        forgets=forgets,
        **chosen(how, StreamedOptions),
    )
    return _batches(reading, makers, name, how["on_note"], on_end, on_account)


def read_in_order(
    sources: Sequence[Source],
    tables: Mapping[str, Sequence[str] | None],
    names: Sequence[str],
    **options: Unpack[CaptureOptions],
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of some tables of one capture that was cut into several, given in order of time.

    ``options`` and the errors are those of ``read``. Errors of a capture are raised after the rows of all.
    """
    how = settled(options)
    how["keylog"] = KeyLog.of(how["keylog"])
    check_tables(how, tables)
    settled_values(how)
    only = Filter.of(**chosen(how, FilterOptions))
    for one, columns in tables.items():
        definition = chosen_table(one, how["api"], how["direction"], payloads=how["payloads"], how=how)
        definition.chosen(columns)
        if definition.of_one_file:
            raise ValueError(f"the table {one} has rows of whole files, which cannot be put together yet")
        only.check(definition)
    return _in_order(sources, tables, names, how)


def _in_order(
    sources: Sequence[Source], tables: Mapping[str, Sequence[str] | None], names: Sequence[str], how: CaptureOptions
) -> Iterator[tuple[str, pa.RecordBatch]]:
    from kwire.capture.across import in_order

    problem: CaptureError | None = None
    for source, name, (part, ended) in zip(sources, names, in_order(range(len(sources))), strict=True):
        try:
            yield from read(source, tables, name=name, part=part, on_end=ended, **how)
        except CaptureError as error:
            problem = problem or error
    if problem is not None:
        raise problem


class _Filtered(Maker):
    """Makes the rows that a filter leaves."""

    def __init__(self, table: CaptureTable, schema: pa.Schema, run: Run, only: Filter) -> None:
        import pyarrow as pa

        self._schema = schema
        self._only = only
        self._by = table.by_row
        looks_at = ["status"] if only.status is not None else []
        for one in looks_at if self._by is None else only.needed(self._by):
            if one not in schema.names:
                schema = schema.append(pa.field(API, pa.int16()) if one == API else table.schema.field(one))
        self._maker = table.maker(schema, run)
        self.kinds, self.look = self._maker.kinds, self._maker.look  # type: ignore[method-assign]
        self._speaks: Maker | None = None
        if only.topics is not None and not self._maker.sees_all and self._by is None:
            # Which frames speak of a topic is known by what they say of its partitions.
            partitions = of_capture("partitions")
            self._speaks = partitions.maker(partitions.chosen(["frame"]), run)

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        import numpy as np

        if not self._maker.sees_all and self._by is None:
            wanted = self._only.frames(frames)
            if self._speaks is not None:
                numbers = [batch.column(0).to_numpy() for batch in self._speaks.batches(frames)]
                wanted &= np.isin(frames.numbers, np.concatenate([*numbers, np.zeros(0, np.int64)]))
            frames = frames.chosen(wanted)
        yield from self._rows(self._maker.batches(frames))

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        yield from self._rows(self._maker.rest(tracker))

    @property
    def full(self) -> bool:
        return self._maker.full

    def notes(self) -> list[str]:
        return self._maker.notes()

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._by is not None:
            for batch in batches:
                yield batch.filter(self._only.rows(self._by, batch)).select(self._schema.names)
            return
        if self._only.status is None:
            yield from batches
            return
        words = pa.array(sorted(self._only.status), pa.string())
        for batch in batches:
            yield batch.filter(pc.is_in(batch.column("status"), words)).select(self._schema.names)


def _batches(
    reading: Reading,
    makers: Mapping[str, Maker],
    name: str,
    on_note: Callable[[str], None] | None,
    on_end: Callable[[Tracker], None] | None,
    on_account: Callable[[list[Line]], None] | None,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    from kwire.capture.frames import Gathered

    error: CaptureError | None = None
    lookers = {one: maker for one, maker in makers.items() if maker.kinds is not None}
    others = {one: maker for one, maker in makers.items() if maker.kinds is None}
    gathered = Gathered(list(lookers.values()))
    try:
        for frames in reading:
            yield from _made(others, [frames])
            yield from _made(lookers, gathered.put(frames))
            # The next window takes as much memory, and so do the rows of the end.
            del frames
    except CaptureError as problem:
        error = CaptureError(problem.message, file=name or None, offset=problem.offset)
        error.__cause__ = problem.__cause__
    yield from _made(lookers, gathered.rest())
    for one, maker in makers.items():
        yield from _filled(one, maker.rest(reading.tracker))
    # Not if the caller stopped early: what was left out is known only at the end.
    if on_note is not None:
        for note in (*reading.notes(), *(note for maker in makers.values() for note in maker.notes())):
            on_note(note)
    if on_end is not None:
        on_end(reading.tracker)
    if on_account is not None:
        on_account(reading.tracker.account())
    if error is not None:
        raise error


def _made(makers: Mapping[str, Maker], windows: Iterable[Frames]) -> Iterator[tuple[str, pa.RecordBatch]]:
    for frames in windows:
        for one, maker in makers.items():
            yield from _filled(one, maker.batches(frames))


def _filled(one: str, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    for batch in batches:
        if batch.num_rows:
            yield one, batch
