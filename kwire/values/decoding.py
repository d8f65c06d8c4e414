"""A column of values, decoded: which schema each has, and what it says, as JSON text or in one type.

Of each value the claims are tried one after the other: that of a header, that of its first bytes, the schema of its
topic, and last whether it is JSON. The first whose schema consumes the value to its last byte is believed.

Rules kept here:

- A value that cannot be decoded is null, with a status and an error. The other rows stay.
- Where several schemas have one name, that of the topic's own subject is meant. If none is, and more than one consumes
  the value, the value is ``ambiguous``: nobody can know.
- No loop runs over rows: rows with the same schema are decoded together.
- What JSON text may become has a limit: the names of a schema stand in each row.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError, SchemaError
from kwire.limits import BEYOND, DEFAULT_LIMITS, Limits
from kwire.naming import no_such
from kwire.records.batching import batch_ranges
from kwire.records.budget import GROWTH, Budget
from kwire.records.compression import CODECS, most_of
from kwire.records.constants import CONSTANTS
from kwire.records.headers import Headers
from kwire.values import binary, framing, validity
from kwire.values import json as of_json
from kwire.values.framing import VALUE, Buffer, Found, Framing, Named, Space
from kwire.values.masking import Mask
from kwire.values.sources import ANY, Schemas
from kwire.values.tags import tagged
from kwire.values.texts import json_texts
from kwire.values.written import AVRO, BARE, JSON, PROTOBUF, Written

__all__ = ["CHECKED", "COLUMNS", "STATUSES", "Decoded", "Reader", "Status", "decode"]

Array = Any


class Status(IntEnum):
    """What became of a value."""

    OK = 0
    NO_SCHEMA = 1
    UNKNOWN_SCHEMA = 2
    MALFORMED = 3
    UNRESOLVED = 4
    AMBIGUOUS = 5
    UNSUPPORTED = 6
    TOO_LARGE = 7
    INVALID = 8


STATUSES: Final = {
    Status.OK: "its schema consumes the value to its last byte",
    Status.NO_SCHEMA: "the value names no schema, its topic has none, and it is no JSON",
    Status.UNKNOWN_SCHEMA: "the value names a schema that no source has, or only looks like it",
    Status.MALFORMED: "the bytes are no value of the schema; it may be encrypted, or of another registry",
    Status.UNRESOLVED: "the value has no place in the type that was asked for",
    Status.AMBIGUOUS: "several schemas have the name that the value says, and more than one consumes it",
    Status.UNSUPPORTED: "the schema cannot be read, or what it refers to is not there",
    Status.TOO_LARGE: "the value would become more than a limit allows",
    Status.INVALID: "the value is JSON, and breaks its JSON Schema (only where values are validated)",
}
"""What each word of ``value_status`` means."""
WORDS: Final = tuple(one.name.lower() for one in Status)
FRAMINGS: Final = tuple(one.name.lower() for one in Framing)

COLUMNS: Final = (
    pa.field("framing", pa.string()),
    pa.field("format", pa.string()),
    pa.field("schema_id", pa.int64()),
    pa.field("schema_guid", pa.string()),
    pa.field("schema", pa.string()),
    pa.field("message", pa.string()),
    pa.field("status", pa.string()),
    pa.field("error", pa.string()),
)
"""The columns that ``Decoded`` has beside the values."""

_WINDOW: Final = 16 << 20
_ROWS: Final = 1 << 17
"""Bytes and values that are decoded at once."""
_TEXT: Final = 16 << 20
"""Bytes of JSON text that are made at once, about."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The one type that values become: that of a schema. ``text``: JSON text in place of a type."""

    written: Written
    type: pa.DataType
    schema: Any = field(repr=False, default=None)

    @classmethod
    def of(cls, written: Written, schemas: Schemas) -> Reader:
        """Raises ``SchemaError`` for a schema that has no type."""
        references = schemas.references(written)
        if written.format == AVRO:
            from kwire.values import avro

            schema = avro.parse(written.text, references)
            return cls(written, schema.arrow_type(spark=True, recursive="json"), schema)
        if written.format == PROTOBUF:
            from kwire.values import protobuf

            found = protobuf.compiled(written.text, references)
            message = found.message(written.message or found.first)
            return cls(written, message.type, message)
        if written.format in BARE:
            raise SchemaError(f"values in {written.format} have no type of their own: take JSON text, or a JSON Schema")
        return cls(written, of_json.type_of(written.text, references))


CHECKED: Final = Reader(Written("", ""), pa.null())
"""In place of a reader: what values say is not wanted, and ``values`` is null."""


class Decoded(NamedTuple):
    """What became of a column of values: arrays of as many rows.

    ``values``: JSON text, or of the type of the reader, or null. The others are ``COLUMNS``. All of a null value are
    null. ``schema``: what its source calls it, such as ``orders-value v3``.
    """

    values: pa.Array
    framing: pa.Array
    format: pa.Array
    schema_id: pa.Array
    schema_guid: pa.Array
    schema: pa.Array
    message: pa.Array
    status: pa.Array
    error: pa.Array


def decode(
    values: Any,
    schemas: Any,
    *,
    headers: Any = None,
    topics: Any = None,
    part: str = VALUE,
    reader: Reader | None = None,
    mask: Mask | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Decoded:
    """The values of a column of bytes, decoded.

    - ``schemas``: ``kwire.values.Schemas``, or what ``Schemas.of`` takes. ``Schemas.validated``: values in JSON must
      hold to their JSON Schema.
    - ``headers``: those of the records, ``list<struct<key: string, value: binary>>``. None: there are none.
    - ``topics``: a column of names, or the one topic of all.
    - ``part``: ``value`` or ``key``.
    - ``reader``: the type that they become. None: JSON text. ``CHECKED``: nothing, they are checked alone.
    - ``mask``: which fields are masked.

    Raises ``KwireError`` for a column that is not of bytes, for headers or topics of another number of records, and
    where a registry cannot be asked.
    """
    found = Schemas.of(schemas)
    if part not in framing.PARTS:
        raise KwireError(no_such("part", part, framing.PARTS))
    array = _bytes(values)
    heads = None if headers is None else _one(headers)
    if topics is None and (ANY, part) in found.topics:
        topics = ANY
    names = pa.repeat(pa.scalar(topics, pa.string()), len(array)) if isinstance(topics, str) else topics
    names = None if names is None else _one(names)
    for what, column in (("headers", heads), ("topics", names)):
        if column is not None and len(column) != len(array):
            raise KwireError(f"{what} are of {len(column)} records, and there are {len(array)} values")
    text = reader is not CHECKED
    size = framing.size_of(array)
    checks = validity.Budget(size) if found.validates else None
    how = _How(found, part, reader if text else None, mask, text, limits, Budget(limits), _Room(limits, size), checks)
    made = []
    cuts: Any = [(0, len(array))]
    if not 0 < len(array) <= _ROWS or size > _WINDOW:
        cuts = batch_ranges(Buffer.of(array).sizes, most=_WINDOW, most_rows=_ROWS)
    for first, last in cuts:
        some = slice(first, last)
        one = _Window(array[some], None if heads is None else heads[some], None if names is None else names[some], how)
        made.append(one.decoded())
    if not made:
        return _nothing(how.type)
    return made[0] if len(made) == 1 else Decoded(*(pa.concat_arrays(one) for one in zip(*made, strict=True)))


def _nothing(type_: pa.DataType) -> Decoded:
    return Decoded(pa.nulls(0, type_), *(pa.nulls(0, one.type) for one in COLUMNS))


def _one(column: Any) -> pa.Array:
    if hasattr(column, "__arrow_array__") or (
        hasattr(column, "__arrow_c_stream__") and not isinstance(column, pa.ChunkedArray)
    ):
        column = pa.chunked_array(column) if not isinstance(column, pa.Array) else column
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column if isinstance(column, pa.Array) else pa.array(column)


def _bytes(column: Any) -> pa.Array:
    array = _one(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return array.cast(pa.binary())
    type_ = array.type
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return array
    if pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_) or pa.types.is_string(type_):
        return array.cast(pa.binary())
    raise KwireError(f"values are a column of bytes, not of {type_}")


class _Room:
    """The JSON text that values may still become."""

    def __init__(self, limits: Limits, size: int) -> None:
        self.left = limits.text + GROWTH * size
        self.said = limits.said("text")


class _How(NamedTuple):
    """What is the same for all windows of a column."""

    schemas: Schemas
    part: str
    reader: Reader | None
    mask: Mask | None
    text: bool
    limits: Limits
    budget: Budget
    room: _Room
    checks: validity.Budget | None
    """Steps that validation may take. None: values are not validated."""

    def mask_of(self, written: Written) -> Mask | None:
        """The mask with the tags of a schema, and of the one that values become. Raises ``SchemaError``."""
        if self.mask is None or not self.mask.has_tags:
            return self.mask
        several = [written] if self.reader is None else [written, self.reader.written]
        return self.mask.of([each for one in several for each in tagged(one, self.schemas.references(one))])

    @property
    def type(self) -> pa.DataType:
        if self.reader is not None:
            return self.reader.type
        return pa.string() if self.text else pa.null()


class _Pieces:
    """An array that is put together from pieces: ``at`` says which element of all of them a row has (-1: null)."""

    def __init__(self, rows: int, type_: pa.DataType) -> None:
        self._rows, self._type = rows, type_
        self._at: Array | None = None
        self._pieces: list[pa.Array] = []
        self._count = 0

    @property
    def at(self) -> Array:
        """The places, made when they are needed: as a rule there is one piece, of all rows."""
        if self._at is None:
            self._at = np.arange(self._rows) if self._count else np.full(self._rows, -1, np.int64)
        return self._at

    def put(self, rows: Array, piece: pa.Array) -> None:
        # Rows are in order: as many as there are are all of them.
        if self._at is not None or self._count or len(rows) < self._rows:
            self.at[rows] = self._count + np.arange(len(rows))
        self._pieces.append(piece)
        self._count += len(piece)

    def take_back(self, rows: Array) -> None:
        """These rows are null."""
        if self._at is not None or self._count:
            self.at[rows] = -1

    def array(self) -> pa.Array:
        if not self._pieces:
            texts = pa.types.is_string(self._type)
            return CONSTANTS.get(self._type, None, self._rows) if texts else pa.nulls(self._rows, self._type)
        if self._at is None:
            return self._pieces[0]
        all_ = pa.concat_arrays(self._pieces)
        if len(all_) == len(self.at) and (self.at == np.arange(len(self.at))).all():
            return all_
        return all_.take(pa.array(self.at, mask=self.at < 0))


class _Claim(NamedTuple):
    """What a value says, and the schema that it means by that, if there is one."""

    named: Named
    written: Written | None
    message: str | None


class _Read(NamedTuple):
    """What became of some rows: their values, the status of each (int8), and errors (null where it is ok)."""

    values: pa.Array
    status: Array
    errors: pa.Array
    message: str | None = None


_BARE: Final = Named(Framing.NONE, Space.TOPIC, "")


class _Window:
    """Some values that are decoded at once."""

    def __init__(self, array: pa.Array, headers: pa.Array | None, topics: pa.Array | None, how: _How) -> None:
        self._array, self._how, self._headers = array, how, headers
        self._topics = topics
        self._mask = how.mask
        """For the schema that is being read: it may say by tags what is masked."""

    def _begin(self) -> None:
        """Makes what is noted of each row."""
        array, how = self._array, self._how
        rows = len(array)
        self._buffer = Buffer.of(array)
        self._open = self._buffer.valid.copy()
        self._status = np.full(rows, int(Status.NO_SCHEMA), np.int8)
        self._claims: dict[_Claim, int] = {}
        self._claim = np.full(rows, -1, np.int32)
        self._broken = np.zeros(rows, bool)
        """Which are JSON that has a schema, and does not hold to it: that they are JSON at all says nothing then."""
        self._values = _Pieces(rows, how.type)
        self._errors = _Pieces(rows, pa.string())

    def decoded(self) -> Decoded:
        named = None if _any_in(self._headers) else framing.of_all(self._array)
        found = [] if named is None else _different(self._how.schemas.find(named))
        if named is not None and len(found) == 1 and found[0].format == AVRO:
            # As good as always: all values name one schema and hold to it, and nothing is noted of each.
            ((_, read),) = self._of(found[0], named, self._array, np.int64(framing.PREFIX), None)
            claim = _Claim(named, found[0], read.message)
            if not read.status.any():
                return self._result([claim], None, read.values, CONSTANTS.get(pa.string(), "ok", len(read.status)))
            self._begin()
            self._settle(claim, np.arange(len(read.status)), read)
        else:
            self._begin()
            if self._headers is not None:
                for one in framing.of_headers(Headers(self._headers), self._how.part):
                    self._try(one)
            self._try(framing.of_prefix(self._buffer))
        if self._topics is not None:
            self._try_topics(self._topics)
        self._try_json()
        return self._made()

    def _made(self) -> Decoded:
        numbers = self._claim
        words = pa.array(WORDS).take(pa.array(self._status, mask=~self._buffer.valid))
        at = pa.array(numbers, mask=numbers < 0)
        return self._result(list(self._claims), at, self._values.array(), words, self._errors.array())

    def _result(
        self,
        claims: list[_Claim],
        at: pa.Array | None,
        values: pa.Array,
        words: pa.Array,
        errors: pa.Array | None = None,
    ) -> Decoded:
        """``at``: the claim of each row. None: all have the first one, and no error."""
        rows = len(words)

        def column(values: list[Any], type_: pa.DataType) -> pa.Array:
            return CONSTANTS.get(type_, values[0], rows) if at is None else pa.array(values, type_).take(at)

        return Decoded(
            values=values,
            framing=column([FRAMINGS[one.named.framing] for one in claims], pa.string()),
            format=column([one.written and one.written.format for one in claims], pa.string()),
            schema_id=column([_id_of(one) for one in claims], pa.int64()),
            schema_guid=column([_guid_of(one) for one in claims], pa.string()),
            schema=column([_name_of(one) for one in claims], pa.string()),
            message=column([one.message for one in claims], pa.string()),
            status=words,
            error=CONSTANTS.get(pa.string(), None, rows) if errors is None else errors,
        )

    # -- claims

    def _try(self, found: Found) -> None:
        """Reads the values that are still open as what they claim."""
        for number, rows in _groups(found.which, self._open):
            named = found.named[number]
            for written, some in self._meant(named, rows):
                self._read(named, written, some, found.starts[some], found.packed[some])

    def _meant(self, named: Named, rows: Array) -> Iterator[tuple[list[Written], Array]]:
        """The schemas that some rows may mean by a name, and which of the rows."""
        found = _different(self._how.schemas.find(named))
        if len(found) < 2 or self._topics is None:
            yield found, rows
            return
        topics = self._topics.take(pa.array(rows)).dictionary_encode()
        numbers = topics.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for number in np.unique(numbers).tolist():
            subject = None if number < 0 else f"{topics.dictionary[number].as_py()}-{self._how.part}"
            own = _different([one for one in self._how.schemas.find(named) if one.subject == subject])
            yield own if len(own) == 1 else found, rows[numbers == number]

    def _try_topics(self, topics: pa.Array) -> None:
        if not self._open.any():
            return
        numbered = topics.dictionary_encode()
        which = numbered.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        for number, rows in _groups(which, self._open):
            for written in self._how.schemas.of_topic(numbered.dictionary[number].as_py(), self._how.part):
                rows = rows[self._open[rows]]
                if len(rows):
                    self._read(_BARE, [written], rows, np.zeros(len(rows), np.int64), np.zeros(len(rows), bool))

    def _try_json(self) -> None:
        rows = np.flatnonzero(self._open & ~self._broken)
        if not len(rows) or (self._how.reader is not None and self._how.reader.written.format != JSON):
            return
        rows = rows[of_json.has_begin(framing.taken(self._array, rows))]
        if not len(rows):
            return
        read = self._json(None, framing.taken(self._array, rows))
        good = read.status == Status.OK
        # What is no JSON either keeps the status that it has.
        self._settle(_Claim(_BARE, Written(JSON, ""), None), rows[good], _only(read, good))

    def _read(self, named: Named, several: list[Written], rows: Array, starts: Array, packed: Array) -> None:
        if not several:
            self._fail(_Claim(named, None, None), rows, Status.UNKNOWN_SCHEMA, f"no source has {named}")
            return
        if packed.any() and not packed.all():
            # Where an error stands is counted in the value, or in what is decompressed.
            for some in (packed, ~packed):
                self._read(named, several, rows[some], starts[some], packed[some])
            return
        if packed.any():
            for array, some in self._unpacked(named, several[0], rows, starts):
                self._consume(named, several, array, np.zeros(len(some), np.int64), some)
        else:
            self._consume(named, several, framing.taken(self._array, rows), starts, rows)

    def _consume(self, named: Named, several: list[Written], array: pa.Array, starts: Array, rows: Array) -> None:
        outcomes = [(one, list(self._of(one, named, array, starts, rows))) for one in several]
        if len(several) == 1:
            written, parts = outcomes[0]
            for some, read in parts:
                self._settle(_Claim(named, written, read.message), some, read)
            return
        good = np.zeros(len(self._open), np.int64)
        for _, parts in outcomes:
            for some, read in parts:
                good[some] += read.status == Status.OK
        for written, parts in outcomes:
            for some, read in parts:
                mine = (read.status == Status.OK) & (good[some] == 1) | (good[some] == 0)
                self._settle(_Claim(named, written, read.message), some[mine], _only(read, mine))
        both = rows[good[rows] > 1]
        said = f"{len(several)} schemas have {named}, and more than one of them consumes the value"
        self._fail(_Claim(named, None, None), both, Status.AMBIGUOUS, said)
        self._open[both] = False

    def _unpacked(self, named: Named, written: Written, rows: Array, starts: Array) -> Iterator[tuple[pa.Array, Array]]:
        """The values of compressed rows, and the rows: without those that cannot be decompressed.

        They come in parts, since all of them may be a thousand times as large as what they are made of.
        """
        kept: list[int] = []
        made: list[bytes] = []
        size = 0
        for at, data in enumerate(framing.payloads(framing.taken(self._array, rows), starts).to_pylist()):
            one, text = self._inflated(data)
            if text is not None:
                status = Status.TOO_LARGE if BEYOND in text else Status.MALFORMED
                self._fail(_Claim(named, written, None), rows[at : at + 1], status, text)
                continue
            kept.append(at)
            made.append(one)
            size += len(one)
            if size >= _WINDOW:
                yield pa.array(made, pa.binary()), rows[kept]
                kept, made, size = [], [], 0
        if made:
            yield pa.array(made, pa.binary()), rows[kept]

    def _inflated(self, data: bytes) -> tuple[bytes, str | None]:
        limit = self._how.budget.limit(len(data))
        opened = zlib.decompressobj()
        try:
            made = opened.decompress(data, limit + 1)
        except zlib.error as error:
            self._how.budget.failed(limit, most_of(CODECS.index("gzip"), data, limit))
            return b"", f"at byte 18: {error}"
        if len(made) > limit:
            self._how.budget.failed(limit, most_of(CODECS.index("gzip"), data, limit))
            return b"", f"at byte 18: decompressed, {self._how.limits.said('decompressed')}"
        self._how.budget.made(len(made))
        if not opened.eof or opened.unused_data:
            return b"", "at byte 18: the compressed value does not end with the value"
        return made, None

    # -- values

    def _of(
        self, written: Written, named: Named, array: pa.Array, starts: Array, rows: Array
    ) -> Iterator[tuple[Array, _Read]]:
        """What becomes of rows as values of a schema. In Avro they are all in one, and ``rows`` is not looked at."""
        reader = self._how.reader
        as_json = written.format in BARE and reader is not None and reader.written.format == JSON
        if reader is not None and reader.written.format != written.format and not as_json:
            said = f"the value is {written.format.capitalize()}, and the type {reader.written.format.capitalize()}"
            yield rows, self._none(len(array), Status.UNRESOLVED, said)
            return
        try:
            self._mask = self._how.mask_of(written)
            if written.format == AVRO:
                yield rows, self._avro(written, array, starts)
            elif written.format == JSON:
                yield rows, _moved(self._json(written, framing.payloads(array, starts)), starts)
            elif written.format in BARE:
                yield rows, _moved(self._binary(written, framing.payloads(array, starts)), starts)
            else:
                yield from self._protobuf(written, named, array, starts, rows)
        except KwireError as error:
            said = " ".join(str(error).split())[:500]
            status = Status.TOO_LARGE if BEYOND in said else Status.UNSUPPORTED
            yield rows, self._none(len(array), status, f"{written}: {said}")

    def _none(self, rows: int, status: Status, said: str) -> _Read:
        return _Read(pa.nulls(rows, self._how.type), np.full(rows, int(status), np.int8), pa.repeat(said, rows))

    def _avro(self, written: Written, array: pa.Array, starts: Array) -> _Read:
        from kwire.values import avro
        from kwire.values.avro.decoding import coded
        from kwire.values.avro.types import ArrayType, MapType, RecordType

        writer = avro.parse(written.text, self._how.schemas.references(written))
        schema = None if self._how.reader is None else self._how.reader.schema
        made = coded(array, [writer], None, starts, schema, limits=self._how.limits, spark=True, recursive="json")
        status, errors = made.status, made.errors
        if status.any():
            # No value is null here: each has a status.
            status = _OF_AVRO[status]
            errors = pc.binary_join_element_wise(f"{written}: ", errors, "")
        # What has itself inside is JSON text.
        texts = isinstance(writer.type, ArrayType | MapType | RecordType) and pa.types.is_string(made.values.type)
        return self._finished(made.values, status, errors, writer_name(writer), texts=texts)

    def _binary(self, written: Written, payload: pa.Array) -> _Read:
        """Values of a format that needs no schema."""
        texts: list[str | None] = []
        failures: list[tuple[int, str]] = []
        for row, one in enumerate(payload.to_pylist()):
            try:
                texts.append(binary.json_text(one, written.format))
            except ValueError as error:
                texts.append(None)
                failures.append((row, str(error)))
        values = pa.array(texts, pa.string())
        if self._how.reader is not None:
            values, more = of_json.decode(values.cast(pa.binary()), self._how.type)
            failures = [*more, *failures]
            if self._mask is not None:
                values = self._mask.values(values)
        elif not self._how.text:
            values = pa.nulls(len(payload))
        elif self._mask is not None:
            values = self._mask.texts(values)
        return self._failed(values, failures, written, None)

    def _invalid(self, written: Written, payload: pa.Array, failed: Any) -> list[tuple[int, str]]:
        """The rows that break their JSON Schema, and where. ``failed``: rows that are no JSON."""
        budget = self._how.checks
        if budget is None:
            return []
        schema = validity.of(written.text, self._how.schemas.references(written))
        rows = enumerate(payload.to_pylist())
        found = ((row, schema.wrong(one, budget)) for row, one in rows if row not in failed)
        return [(row, said) for row, said in found if said is not None]

    def _json(self, written: Written | None, payload: pa.Array) -> _Read:
        if self._how.reader is not None:
            values, failures = of_json.decode(payload, self._how.type)
            if self._mask is not None:
                values = self._mask.values(values)
        else:
            failures = [
                (row, text) for row, one in enumerate(payload.to_pylist()) if (text := of_json.wrong(one)) is not None
            ]
            good = np.ones(len(payload), bool)
            good[[row for row, _ in failures]] = False
            values = pa.nulls(len(payload))
            if self._how.text:
                values = pc.if_else(pa.array(good), payload, pa.scalar(None, payload.type)).cast(pa.string())
            if self._how.text and self._mask is not None:
                values = self._mask.texts(values)
        read = self._failed(values, failures, written, None)
        if written is None or not written.text:
            return read
        broken = self._invalid(written, payload, {row for row, _ in failures})
        if not broken:
            return read
        errors = read.errors.to_pylist()
        for row, said in broken:
            read.status[row] = Status.TOO_LARGE if BEYOND in said else Status.INVALID
            errors[row] = f"{written}: {said}"
        return read._replace(errors=pa.array(errors, pa.string()))

    def _failed(
        self, values: pa.Array, failures: Sequence[tuple[int, str]], written: Written | None, message: str | None
    ) -> _Read:
        status = np.zeros(len(values), np.int8)
        texts: list[str | None] = [None] * (len(values) if failures else 0)
        hint = _hint(written)
        for row, text in failures:
            status[row] = Status.TOO_LARGE if BEYOND in text else Status.MALFORMED
            texts[row] = f"{written}: {text}{hint}" if written is not None else text
        errors = pa.array(texts, pa.string()) if failures else pa.nulls(len(values), pa.string())
        if message is None:
            return _Read(values, status, errors)  # JSON is what was asked for
        return self._finished(values, status, errors, message)

    def _finished(
        self, values: pa.Array, status: Array, errors: pa.Array, message: str | None, *, texts: bool = False
    ) -> _Read:
        """Values as what was asked for: masked, as JSON text if no type is. ``texts``: they are JSON text already."""
        if pa.types.is_null(self._how.type):
            return _Read(pa.nulls(len(values)), status, errors, message)
        if self._mask is not None:
            values = self._mask.values(values)
        if self._how.reader is not None or texts:
            return _Read(values, status, errors, message)
        room = self._how.room
        parts = []
        least = _static(values.type)
        share = values.nbytes // max(len(values), 1)
        step = max(_TEXT // (least + 4 * share + 1), 1)
        status = np.array(status, np.int8)
        first = 0
        while first < len(values):
            count = min(step, room.left // least)
            if count <= 0:
                parts.append(pa.nulls(len(values) - first, pa.string()))
                rest = status[first:]
                rest[rest == Status.OK] = Status.TOO_LARGE
                errors = pc.if_else(pa.array(status == Status.TOO_LARGE), f"as JSON text: {room.said}", errors)
                break
            made = json_texts(values.slice(first, count))
            room.left -= made.nbytes
            parts.append(made)
            first += count
        return _Read(pa.concat_arrays(parts) if parts else pa.nulls(0, pa.string()), status, errors, message)

    # -- Protobuf

    def _protobuf(
        self, written: Written, named: Named, array: pa.Array, starts: Array, rows: Array
    ) -> Iterator[tuple[Array, _Read]]:
        from kwire.values import protobuf

        found = protobuf.compiled(written.text, self._how.schemas.references(written))
        first = written.message or found.first
        if named.framing in (Framing.NONE, Framing.AZURE_HEADER, Framing.APICURIO_HEADER):
            yield rows, _moved(self._message(found, written, first, framing.payloads(array, starts)), starts)
            return
        if named.framing is Framing.CONFLUENT_HEADER:
            names = [first] if named.indexes is None else found.at(named.indexes)
            yield rows, self._likeliest(found, written, names, framing.payloads(array, starts))
            return
        buffer = Buffer.of(array)
        every = np.arange(len(rows))
        of_glue = named.framing is Framing.GLUE
        of_ref, refs, after_ref = (np.full(len(rows), -1), [], starts) if of_glue else _refs(buffer, starts)
        if of_glue:
            index, after = framing.index(buffer, every, starts)
            numbers, which = np.unique(index, return_inverse=True)
            which = np.where(index < 0, -1, which)
            called = [list(found.by_name[max(one, 0) :][:1]) for one in numbers.tolist()]
        else:
            paths, which, after = framing.indexes(buffer, every, starts)
            called = [found.at(path) for path in paths]
        for number, some in _groups(of_ref, np.ones(len(rows), bool)):
            if found.has(refs[number]):
                which[some] = -2
                payload = framing.payloads(framing.taken(array, some), after_ref[some])
                yield rows[some], _moved(self._message(found, written, refs[number], payload), after_ref[some])
        rest = [every[which == -1]]
        for number, names in enumerate(called):
            some = every[which == number]
            if not len(some) or not names:
                rest.append(some)
                continue
            payload = framing.payloads(framing.taken(array, some), after[some])
            read = _moved(self._likeliest(found, written, names, payload), after[some])
            if not of_glue and paths[number] != (0,):
                yield rows[some], read
                continue
            # A producer that leaves the indexes out begins with a tag, which may look like them.
            bare = found.message(first).unknown(framing.payloads(framing.taken(array, some), starts[some]))
            own = found.message(names[0]).unknown(payload)
            left_out = (bare == 0) & (own != 0)
            yield rows[some[~left_out]], _only(read, ~left_out)
            rest.append(some[left_out])
        left = np.sort(np.concatenate(rest))
        if len(left):
            payload = framing.payloads(framing.taken(array, left), starts[left])
            yield rows[left], _moved(self._message(found, written, first, payload), starts[left])

    def _likeliest(self, found: Any, written: Written, names: list[str], payload: pa.Array) -> _Read:
        """Values as the message of some that knows their fields."""
        if not names:
            return self._none(len(payload), Status.MALFORMED, f"{written}: it has no message of this number")
        name = names[0]
        if len(names) > 1:
            scores = [np.abs(found.message(one).unknown(payload)).sum() for one in names]
            name = names[int(np.argmin(scores))]
        return self._message(found, written, name, payload)

    def _message(self, found: Any, written: Written, name: str, payload: pa.Array) -> _Read:
        reader = self._how.reader
        message = found.message(name) if reader is None else reader.schema
        values, failures = message.decode(payload)
        return self._failed(values, failures, written, name)

    # -- what became of rows

    def _number(self, claim: _Claim) -> int:
        return self._claims.setdefault(claim, len(self._claims))

    def _settle(self, claim: _Claim, rows: Array, read: _Read) -> None:
        """Notes what became of rows: done where they are ok."""
        if not len(rows):
            return
        good = read.status == Status.OK
        all_good = bool(good.all())
        mine = rows if all_good else rows[good]
        self._values.put(mine, read.values if all_good else read.values.filter(pa.array(good)))
        self._errors.take_back(mine)
        every = slice(None) if len(mine) == len(self._status) else mine
        self._status[every] = Status.OK
        self._claim[every] = self._number(claim)
        self._open[every] = False
        if all_good:
            return
        bad = ~good
        for status in np.unique(read.status[bad]).tolist():
            some = read.status == status
            self._fail(claim, rows[some], Status(status), read.errors.filter(pa.array(some)))

    def _fail(self, claim: _Claim, rows: Array, status: Status, said: str | pa.Array) -> None:
        """Notes that a claim does not hold. The first schema that was there and did not fit is the one that counts."""
        if not len(rows):
            return
        weak = [Status.NO_SCHEMA]
        # What a value itself says counts for more than what its topic has.
        if claim.named.framing is not Framing.NONE and status is not Status.UNKNOWN_SCHEMA:
            weak.append(Status.UNKNOWN_SCHEMA)
        first = np.isin(self._status[rows], weak)
        if status is Status.AMBIGUOUS:
            first[:] = True
        if self._how.checks is not None and claim.written is not None and claim.written.format == JSON:
            self._broken[rows] |= status in (Status.INVALID, Status.TOO_LARGE, Status.UNSUPPORTED)
            # Of a topic's schema there may be an older version.
            self._open[rows] &= status is not Status.INVALID or claim.named.framing is Framing.NONE
        mine = rows[first]
        if not len(mine):
            return
        errors = pa.repeat(said, len(mine)) if isinstance(said, str) else said.filter(pa.array(first))
        self._errors.put(mine, errors)
        self._status[mine] = status
        self._claim[mine] = self._number(claim)


_OF_AVRO: Final = np.array([Status.OK, Status.MALFORMED, Status.UNRESOLVED, Status.TOO_LARGE], np.int8)
"""The status, by that of ``kwire.values.avro``."""


def writer_name(schema: Any) -> str | None:
    """The full name of a record, an enum or a fixed type of Avro."""
    name: str | None = getattr(schema.type, "name", None)
    return name


def _any_in(headers: pa.Array | None) -> bool:
    """Whether any record has headers."""
    return headers is not None and len(headers.flatten()) > 0


def _groups(which: Array, open_: Array) -> Iterator[tuple[int, Array]]:
    """The different numbers among the rows that are open (-1: none), each with its rows."""
    rows = np.flatnonzero(open_ & (which >= 0))
    if not len(rows):
        return
    numbers = which[rows]
    if numbers.min() == numbers.max():
        yield int(numbers[0]), rows
        return
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    for some in np.split(order, ends):
        yield int(numbers[some[0]]), rows[some]


def _different(found: Sequence[Written]) -> list[Written]:
    made: dict[Any, Written] = {}
    for one in found:
        made.setdefault(one.content, one)
    return list(made.values())


def _only(read: _Read, mask: Array) -> _Read:
    if mask.all():
        return read
    rows = pa.array(mask)
    return _Read(read.values.filter(rows), read.status[mask], read.errors.filter(rows), read.message)


_PLACE: Final = re.compile(r"at byte (\d+)")


def _moved(read: _Read, starts: Array) -> _Read:
    """The same with errors that count their bytes from the beginning of the value, and not from that of its payload."""
    bad = np.flatnonzero((read.status != Status.OK) & (starts > 0))
    if not len(bad):
        return read
    texts = read.errors.to_pylist()
    for row, start in zip(bad.tolist(), starts[bad].tolist(), strict=True):
        texts[row] = _PLACE.sub(
            lambda found, start=start: f"at byte {int(found[1]) + start}", texts[row] or "", count=1
        )
    return read._replace(errors=pa.array(texts, pa.string()))


def _id_of(claim: _Claim) -> int | None:
    found = None if claim.written is None else claim.written.id
    if isinstance(claim.named.name, int) and claim.named.space is not Space.FINGERPRINT:
        found = claim.named.name
    # What a registry has written may be any number.
    return found if found is not None and 0 <= found < 1 << 63 else None


def _guid_of(claim: _Claim) -> str | None:
    if claim.named.space is Space.GUID:
        return str(claim.named.name)
    return None if claim.written is None else claim.written.guid


def _name_of(claim: _Claim) -> str | None:
    # JSON without a schema has no name.
    return str(claim.written) if claim.written is not None and claim.written.text else None


def _hint(written: Written | None) -> str:
    encrypts = written is not None and any("ENCRYPT_PAYLOAD" in one for one in written.rules)
    return "; the schema has a rule by which values are encrypted" if encrypts else ""


def _static(type_: pa.DataType) -> int:
    """Bytes of the JSON text that a type has in each row, at least."""
    if pa.types.is_struct(type_):
        return 2 + sum(4 + len(one.name.encode("utf-8", "replace")) + _static(one.type) for one in type_)
    return 4


def _refs(values: Buffer, starts: Array) -> tuple[Array, list[str], Array]:
    """Apicurio's way to name a message of Protobuf: a message with its name, after its size. Which of the different
    names each value has (-1: none), and where its payload begins."""
    rows = np.arange(len(starts))
    size = values.at(rows, starts)
    length = values.at(rows, starts + 2)
    fits = (values.sizes >= starts + size + 1) & (size > 2) & (size < 0x80)
    fits &= (values.at(rows, starts + 1) == 0x0A) & (length == size - 2)
    which = np.full(len(starts), -1, np.int32)
    some = np.flatnonzero(fits)
    if not len(some):
        return which, [], starts
    names = _slices(values, some, starts[some] + 3, length[some])
    numbered = names.dictionary_encode()
    which[some] = numbered.indices.to_numpy(zero_copy_only=False)
    texts = [one.decode("utf-8", "replace") for one in numbered.dictionary.to_pylist()]
    return which, texts, starts + size + 1


def _slices(values: Buffer, rows: Array, starts: Array, sizes: Array) -> pa.Array:
    """Some bytes of values, which are few."""
    begins = values.begins[rows] + starts
    ends = np.cumsum(sizes)
    places = np.arange(int(ends[-1])) + np.repeat(begins - (ends - sizes), sizes)
    offsets = np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int32)
    data = pa.py_buffer(np.ascontiguousarray(values.data[places]))
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), data])
