"""What the tables of records say of values: which schema each has, and what it says (``kwire.values``).

Columns that are there by name: ``value_framing``, ``value_format``, ``value_schema_id``, ``value_schema_guid``,
``value_schema``, ``value_message``, ``value_json``, ``value_bytes``, ``value_status``, ``value_error``, and the same of
the key.
``as_json`` makes a table that has ``value_json`` and what became of it without being asked, ``typed`` one whose
``value`` is a struct.

Rules kept here:

- Records are read as they are. What values mean is added to each batch, whatever made it.
- While the values of one batch are decoded, a thread reads the records of the next. Batches keep their order, and no
  more than two wait. Where rows must not wait for others (``live``), there is no thread.
- Records of transactions and the like (``is_control``) have no values.
- Keys, values, headers and topics are read where a column needs them, and left out again where nobody wanted them.
- With a mask, bytes of keys and values are null but for those that have no fields (``no_schema``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError
from kwire.limits import DEFAULT_LIMITS
from kwire.tables.definition import CaptureTable, LogTable, Maker, Run
from kwire.tables.showing import Column, Row, plain, readable
from kwire.values.framing import KEY, PARTS, VALUE
from kwire.values.sources import Schemas

if TYPE_CHECKING:
    from kwire.capture.frames import Frames
    from kwire.capture.tracker import Tracker
    from kwire.values import Mask, Reader

__all__ = ["FIELDS", "as_json", "maker", "mask_of", "reader_of", "reading", "typed"]

_OF_VALUE: Final = {
    "framing": pa.string(),
    "format": pa.string(),
    "schema_id": pa.int64(),
    "schema_guid": pa.string(),
    "schema": pa.string(),
    "message": pa.string(),
    "json": pa.string(),
    "bytes": pa.int64(),
    "status": pa.string(),
    "error": pa.string(),
}
FIELDS: Final = tuple(pa.field(f"{part}_{name}", type_) for part in PARTS for name, type_ in _OF_VALUE.items())
"""The columns about values and keys, in order (tuple of ``pyarrow.Field``)."""
_NAMES: Final = frozenset(one.name for one in FIELDS)
_ADDED: Final = ("value_json", "value_status", "value_error")
"""Columns that a table has besides its own where values are to be decoded."""
_CONTROL: Final = "is_control"


class _Wanted:
    """Which columns are wanted, and how they are made of those that records have."""

    def __init__(self, schema: pa.Schema, schemas: Any, mask: Any, limits: Any) -> None:
        self.schema = schema
        self._schemas, self._mask, self._limits = schemas, mask_of(mask), limits
        self._readers: dict[str, Reader | None] = {VALUE: None, KEY: None}
        self._hidden = [part for part in PARTS if self._mask is not None and part in schema.names]
        """Parts whose bytes are wanted, and would say what is masked."""
        wanted = [part for part in PARTS if any(name.startswith(f"{part}_") for name in self._made)]
        self._parts = list(dict.fromkeys([*wanted, *self._hidden]))
        for one in schema:
            if one.name in PARTS and one.metadata and _READER in one.metadata:
                self._readers[one.name] = reader_of(one.metadata[_READER].decode(), schemas, one.name)
                self._parts = list(dict.fromkeys([*self._parts, one.name]))

    @property
    def _made(self) -> list[str]:
        return [name for name in self.schema.names if name in _NAMES]

    @property
    def is_plain(self) -> bool:
        """Whether no column is about what values mean."""
        return not self._parts

    def needed(self, own: pa.Schema) -> list[str]:
        """The columns that are read of the records: ``own`` are those that there are."""
        names = [name for name in self.schema.names if name not in _NAMES]
        return list(dict.fromkeys([*names, *self._parts, "headers", "topic", _CONTROL]))

    def batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are wanted, of a batch that has those that are needed."""
        from kwire.values.decoding import CHECKED, decode

        control = pc.fill_null(batch.column(_CONTROL), False)
        made: dict[str, pa.Array] = {}
        for part in self._parts:
            column = batch.column(part)
            if control.true_count:
                column = pc.if_else(control, pa.scalar(None, column.type), column)
            found = decode(
                column,
                self._schemas,
                headers=batch.column("headers"),
                topics=batch.column("topic"),
                part=part,
                reader=self._readers[part] or (None if f"{part}_json" in self.schema.names else CHECKED),
                mask=self._mask,
                limits=self._limits,
            )
            if self._readers[part] is not None:
                made[part] = found.values
            elif part in self._hidden:
                plain = pc.fill_null(pc.equal(found.status, "no_schema"), True)
                made[part] = pc.if_else(plain, batch.column(part), pa.scalar(None, column.type))
            made |= {f"{part}_{name}": getattr(found, name) for name in _OF_VALUE if name not in ("json", "bytes")}
            made[f"{part}_json"] = found.values
            if f"{part}_bytes" in self.schema.names:
                made[f"{part}_bytes"] = pc.binary_length(column).cast(pa.int64())
        columns = [made[one.name] if one.name in made else batch.column(one.name) for one in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


_READER: Final = b"kwire.topic"
"""Metadata of a column that has the type of a topic's schema: the topic."""


FEW: Final = 4096
"""Rows of a batch that are not worth a thread."""


class _Beside:
    """Makes batches in a thread of their own, in order: each is handed out when the next one is there."""

    def __init__(self, make: Callable[[pa.RecordBatch], pa.RecordBatch], *, live: bool) -> None:
        from kwire.kernels.helpers import cores

        self._make = make
        self._alone = live or cores() < 2
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: Future[pa.RecordBatch] | None = None

    def each(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What is made of batches, but for the last one, which may come later."""
        for batch in batches:
            if self._alone or batch.num_rows < FEW:
                yield from self.rest()
                yield self._make(batch)
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "kwire-values")
            before, self._waiting = self._waiting, self._pool.submit(self._make, batch)
            # It is in nobody else's way: what is read next needs the memory.
            del batch
            if before is not None:
                yield before.result()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was not handed out yet."""
        before, self._waiting = self._waiting, None
        if before is not None:
            yield before.result()


class _Valued(Maker):
    """Makes the rows of a table of records, and what their values mean."""

    sees_all = True

    def __init__(self, wanted: _Wanted, inner: Maker, *, live: bool) -> None:
        self._inner = inner
        self._made = _Beside(wanted.batch, live=live)

    @property
    def short(self) -> bool:
        return self._inner.short

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        yield from self._made.each(self._inner.batches(frames))

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        yield from self._made.each(self._inner.rest(tracker))
        yield from self._made.rest()

    def notes(self) -> list[str]:
        return self._inner.notes()


def maker(inner: Callable[[pa.Schema, Run], Maker], own: pa.Schema) -> Callable[[pa.Schema, Run], Maker]:
    """``CaptureTable.maker`` of a table of records with the columns ``own``, made of one that knows none of values."""

    def make(schema: pa.Schema, run: Run) -> Maker:
        wanted = _Wanted(schema, run.options["schemas"], run.options["mask"], run.options["limits"])
        if wanted.is_plain:
            return inner(schema, run)
        names = wanted.needed(own)
        known = {one.name: one for one in (*schema, *own)} | {part: own.field(part) for part in PARTS}
        return _Valued(wanted, inner(pa.schema([known[name] for name in names]), run), live=run.options["live"])

    return make


def reading(inner: Callable[..., Iterator[pa.RecordBatch]], own: pa.Schema) -> Callable[..., Iterator[pa.RecordBatch]]:
    """``LogTable.read`` of a table of records, whose columns are ``own``, made of one that knows none of values."""

    def read(
        source: Any,
        *,
        columns: Sequence[str] | None = None,
        schemas: Any = None,
        mask: Any = None,
        value_type: pa.Field | None = None,
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        known = {one.name: one for one in (*own, *FIELDS)}
        if value_type is not None:
            known[value_type.name] = value_type
        names = own.names if columns is None else list(columns)
        if _NAMES.isdisjoint(names) and value_type is None and (mask is None or {*PARTS}.isdisjoint(names)):
            yield from inner(source, columns=columns, **options)
            return
        wanted = _Wanted(
            pa.schema([known[name] for name in names]), schemas, mask, options.get("limits", DEFAULT_LIMITS)
        )
        topic = None if value_type is None else (value_type.metadata or {})[_READER].decode()

        def of_topic() -> Iterator[pa.RecordBatch]:
            for batch in inner(source, columns=wanted.needed(own), **options):
                if topic is not None:
                    # A segment that does not say its topic is of the one that the user names.
                    batch = batch.filter(pc.fill_null(pc.equal(batch.column("topic"), topic), True))
                if batch.num_rows or topic is None:
                    yield batch

        made = _Beside(wanted.batch, live=False)
        yield from made.each(of_topic())
        yield from made.rest()

    return read


def _json_or_bytes(row: Row) -> str:
    if row.get("value_json") is not None:
        return plain("value_json")(row)
    found = row["value"]
    if isinstance(found, (dict, list)):
        return readable(json.dumps(found, ensure_ascii=False, separators=(",", ":"), default=str))
    return plain("value", "null")(row)


def _shown(columns: Sequence[Column]) -> tuple[Column, ...]:
    made = [replace(one, text=_json_or_bytes) if one.title == "value" else one for one in columns]
    at = next((number for number, one in enumerate(made) if one.title == "status"), len(made))
    return (*made[:at], Column("value status", plain("value_status"), empty="ok"), *made[at:])


def as_json(table: CaptureTable | LogTable) -> Any:
    """A table of records that has the JSON text of values, and what became of them, without being asked."""
    fields = {one.name: one for one in FIELDS}
    schema = pa.schema([*table.schema, *(fields[name] for name in _ADDED)])
    asked = tuple(one for one in table.asked if one.name not in _ADDED)
    return replace(table, schema=schema, asked=asked, shown=_shown(table.shown))


def typed(table: CaptureTable | LogTable, topic: str, schemas: Any) -> Any:
    """A table whose ``value`` has the type of the topic's schema. Raises ``KwireError`` where it has none.

    One of segments has the records of this topic alone.
    """
    type_ = reader_of(topic, schemas, VALUE).type
    value = pa.field(VALUE, type_, metadata={_READER: topic.encode()})
    fields = {one.name: one for one in FIELDS}
    own = [value if one.name == VALUE else one for one in table.schema]
    schema = pa.schema([*own, *(fields[name] for name in _ADDED if name != "value_json")])
    asked = tuple(one for one in table.asked if one.name not in schema.names and one.name != "value_json")
    shown = _shown(table.shown)
    if isinstance(table, LogTable):
        return replace(table, schema=schema, asked=asked, shown=shown, read=partial(table.read, value_type=value))
    return replace(table, schema=schema, asked=asked, shown=shown)


def reader_of(topic: str, schemas: Any, part: str) -> Reader:
    """The type that the keys or values of a topic have: that of the newest version of its schema."""
    from kwire.values import Reader

    found = Schemas.of(schemas)
    several = found.of_topic(topic, part)
    if not several:
        raise KwireError(f"no source has a schema of the topic {topic}: its {part}s have no type")
    return Reader.of(several[0], found)


def mask_of(mask: Any) -> Mask | None:
    """A ``Mask`` of what an option says: one, names of fields, or None."""
    from kwire.values import Mask

    return mask if mask is None or isinstance(mask, Mask) else Mask(mask)
