"""Arrow batches as text, a line for each row: JSON or CSV, by the column (``kwire.kernels.lines``).

``json_lines(batch)`` and ``csv_lines(batch)`` give the same text, character for character, as ``kwire.cli.output``
writes row by row in Python. Small captures and outputs that are not UTF-8 still take that way.

Rules kept here:

- A batch is written some thousand rows at a time. Their columns are brought together in one array. This takes little
  memory, whatever the batch is a slice of.
- Values that the kernel does not write (floats, maps, lists of such) are made into JSON text in Python, one by one.
  Times, dates and decimals, which JSON does not have, are made into it by Arrow (``kwire.values.texts``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.kernels.engine import MACHINE, Engine
from kwire.kernels.lines import CELL, MAX_DEPTH, Show, write_lines
from kwire.kernels.texts import ROOM
from kwire.tables.terminal import in_json
from kwire.values.texts import json_texts, times
from kwire.wire import finite

__all__ = ["BODY", "as_texts", "csv_lines", "json_encode", "json_lines"]

Array = Any

BODY: Final = "body"
"""The column that is JSON already if it is text. It goes in as it is."""

_ROWS: Final = 1 << 13
"""Rows that are written at once."""
_PIECE: Final = 1 << 20
"""Bytes of text that are given at once, more only where a row has more."""


def json_encode(values: Any) -> str:
    """JSON, with other characters than ASCII as they are."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_base64)


def _base64(value: object) -> str:
    import base64

    assert isinstance(value, bytes)
    return base64.b64encode(value).decode("ascii")


def json_lines(batch: pa.RecordBatch, engine: Engine = MACHINE) -> Iterator[bytes]:
    """A JSON object for each row, in UTF-8."""
    names = batch.schema.names
    raw = BODY in names and pa.types.is_string(batch.schema.field(BODY).type)
    for part in _parts(batch):
        made = _Program()
        for number, name in enumerate(names):
            prefix = ("," if number else "{") + json_encode(name) + ":"
            made.value(part.column(name), prefix.encode(), raw=raw and name == BODY)
        made.end(b"}\n")
        yield from made.run(part.num_rows, engine)


def as_texts(batch: pa.RecordBatch, *, nested: bool = False) -> tuple[pa.RecordBatch, set[str]]:
    """``batch`` with columns of types that JSON does not have as JSON text, and their names. ``nested``: only of lists
    and structs."""
    names = set()
    for number, field in enumerate(batch.schema):
        if not in_json(field.type) and (
            pa.types.is_nested(field.type) if nested else not pa.types.is_timestamp(field.type)
        ):
            batch = batch.set_column(number, field.name, json_texts(batch.column(number)))
            names.add(field.name)
    return batch, names


def csv_lines(batch: pa.RecordBatch, engine: Engine = MACHINE, *, guarded: bool) -> Iterator[bytes]:
    """A line of CSV for each row, in UTF-8. ``guarded``: for a terminal, which must not obey it."""
    for part in _parts(batch):
        made = _Program(null=b"", quoted=0)
        for number, column in enumerate(part.columns):
            made.field(column, b"," if number else b"", engine, guarded=guarded)
        made.end(b"\n")
        yield from made.run(part.num_rows, engine)


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first in range(0, batch.num_rows, _ROWS):
        yield batch.slice(first, _ROWS)


class _Program:
    """The instructions of a line, and the columns that they read."""

    def __init__(self, null: bytes = b"null", quoted: int = 1) -> None:
        self._code: list[dict[str, int]] = []
        self._columns: list[Array] = []
        self._size = 0
        self._pool = bytearray()
        self._quoted = quoted
        self._null = self._text(null), len(null)

    def _text(self, text: bytes) -> int:
        at = len(self._pool)
        self._pool += text
        return at

    def _bytes(self, data: Array) -> int:
        """Where these bytes of a column stand."""
        at = self._size
        self._columns.append(data)
        self._size += len(data)
        return at

    def _valid(self, column: pa.Array) -> int:
        bits = column.buffers()[0]
        if bits is None or not column.null_count:
            return -1
        first = column.offset
        data = np.frombuffer(bits, np.uint8)[first >> 3 : (first + len(column) + 7) >> 3]
        return self._bytes(data) * 8 + int(first & 7)

    def _offsets(self, column: pa.Array) -> tuple[int, int, int]:
        """Where the offsets of text or a list stand, the first and the last."""
        offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
        return self._bytes(offsets.view(np.uint8)), int(offsets[0]), int(offsets[-1])

    def _add(self, op: Show, prefix: bytes = b"", **fields: int) -> dict[str, int]:
        """One more instruction. A null leads to the next one."""
        made = {
            "op": int(op),
            "text": self._text(prefix),
            "size": len(prefix),
            "valid": -1,
            "quoted": self._quoted,
            "null": self._null[0],
            "null_size": self._null[1],
            "target": len(self._code) + 1,
        } | fields
        self._code.append(made)
        return made

    def end(self, text: bytes) -> None:
        """The end of the line."""
        self._add(Show.END, text)

    def _string(self, op: Show, column: pa.Array, prefix: bytes, **fields: int) -> None:
        at, first, last = self._offsets(column)
        data = column.buffers()[2]
        text = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[first:last]
        self._add(op, prefix, valid=self._valid(column), offsets=at, values=self._bytes(text) - first, **fields)

    def _plain(self, column: pa.Array, prefix: bytes) -> bool:
        """Adds a column of numbers, times or truth values. Returns whether it is one."""
        type_, first, count = column.type, column.offset, len(column)
        if pa.types.is_boolean(type_):
            bits = np.frombuffer(column.buffers()[1], np.uint8)[first >> 3 : (first + count + 7) >> 3]
            at, valid = self._bytes(bits) * 8 + (first & 7), self._valid(column)
            self._add(Show.BOOL, prefix, valid=valid, values=at, offsets=self._text(b"truefalse"))
        elif pa.types.is_signed_integer(type_) or type_ == pa.timestamp("us", "UTC"):
            width = type_.bit_width // 8
            data = np.frombuffer(column.buffers()[1], np.uint8)[first * width : (first + count) * width]
            op = Show.TIME if pa.types.is_timestamp(type_) else Show.INT
            self._add(op, prefix, valid=self._valid(column), values=self._bytes(data), width=width)
        else:
            return False
        return True

    def value(self, column: pa.Array, prefix: bytes, *, raw: bool = False) -> None:
        """Adds a column as JSON. ``raw``: it is JSON already."""
        type_ = column.type
        if self._plain(column, prefix):
            return
        if pa.types.is_string(type_):
            self._string(Show.RAW if raw else Show.STRING, column, prefix)
        elif pa.types.is_binary(type_):
            self._string(Show.BYTES, column, prefix)
        elif pa.types.is_list(type_) and _is_simple(type_):
            at, first, last = self._offsets(column)
            begin = self._add(Show.LIST, prefix, valid=self._valid(column), offsets=at, values=first)
            inner = len(self._code)
            self.value(column.values.slice(first, last - first), b"")
            self._add(Show.NEXT, target=inner)
            begin["target"] = len(self._code)
        elif pa.types.is_struct(type_) and _is_simple(type_):
            begin = self._add(Show.STRUCT, prefix, valid=self._valid(column))
            for k in range(type_.num_fields):
                name = ("," if k else "{") + json_encode(type_.field(k).name) + ":"
                self.value(column.field(k), name.encode())
            self._add(Show.TEXT, b"}" if type_.num_fields else b"{}")
            begin["target"] = len(self._code)
        else:
            self._string(Show.RAW, pa.array(_texts(column), pa.string()), prefix)

    def field(self, column: pa.Array, prefix: bytes, engine: Engine, *, guarded: bool) -> None:
        """Adds a column as a field of CSV: what is nested as JSON."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_fixed_size_binary(column.type):
            column = column.cast(pa.binary())
        type_ = column.type
        if self._plain(column, prefix):
            return
        if pa.types.is_binary(type_):
            self._string(Show.BYTES, column, prefix)
            return
        if pa.types.is_nested(type_):
            made = _Program()
            made.value(column, b"")
            made.end(b"\n")
            texts = b"".join(made.run(len(column), engine)).decode().split("\n")[:-1]
            column = pa.array(texts, pa.string(), mask=column.is_null().to_numpy(zero_copy_only=False))
        elif pa.types.is_timestamp(type_) or pa.types.is_date(type_):
            column = times(column)
        elif pa.types.is_floating(type_):
            column = pa.array([None if one is None else one.strip('"') for one in _floats(column)], pa.string())
        elif pa.types.is_string(type_):
            column = _without_formulas(column)
        else:
            column = column.cast(pa.string())
        self._string(Show.FIELD, column, prefix, quoted=int(guarded))

    def run(self, rows: int, engine: Engine) -> Iterator[bytes]:
        """The text of ``rows`` rows."""
        code = np.zeros(len(self._code), CELL)
        for name in CELL.names:
            code[name] = [row.get(name, 0) for row in self._code]
        buf = np.concatenate([*self._columns, np.zeros(ROOM, np.uint8)])
        pool = np.frombuffer(bytes(self._pool) + bytes(ROOM), np.uint8).copy()
        stack = np.zeros((MAX_DEPTH, 2), np.int64)
        out = np.empty(_PIECE + ROOM, np.uint8)
        write = engine(write_lines)
        row = 0
        while row < rows:
            after, size = write(buf, code, pool, stack, row, rows, out)
            if after == row:
                out = np.empty(2 * len(out), np.uint8)
            else:
                yield out[:size].tobytes()
            row = after


FORMULA: Final = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""Spreadsheets take text for a formula that begins with one of these, or has some of them after blanks. The last are
the first in full width, which some spreadsheets read as the plain ones."""


def no_formula(text: str) -> str:
    """``text`` as no spreadsheet takes it for a formula."""
    return f"'{text}" if text[:1] in FORMULA and text else text


def _without_formulas(column: pa.Array) -> pa.Array:
    """``no_formula`` of each text."""
    first = pc.utf8_slice_codeunits(column, 0, 1)
    begins = pc.is_in(first, pa.array([*FORMULA]))
    if not pc.any(begins).as_py():
        return column
    return pc.if_else(begins, pc.binary_join_element_wise("'", column, ""), column)


def _is_simple(type_: pa.DataType, depth: int = 0) -> bool:
    """Whether the kernel writes this type inside of a list or struct."""
    if pa.types.is_list(type_) or pa.types.is_struct(type_):
        inner = [type_.field(k).type for k in range(type_.num_fields)]
        return depth < MAX_DEPTH and all(_is_simple(one, depth + 1) for one in inner)
    return bool(
        pa.types.is_boolean(type_)
        or pa.types.is_signed_integer(type_)
        or pa.types.is_string(type_)
        or pa.types.is_binary(type_)
    )


def _texts(column: pa.Array) -> list[str | None]:
    """Each value as JSON text. None for null."""
    if not in_json(column.type):
        made: list[str | None] = json_texts(column).to_pylist()
        return made
    if pa.types.is_floating(column.type):
        return _floats(column)
    values = column.to_pylist()
    if pa.types.is_map(column.type):
        values = [None if pairs is None else dict(pairs) for pairs in values]
    return [None if one is None else json_encode(finite(one)) for one in values]


def _floats(column: pa.Array) -> list[str | None]:
    # One call for all of them: numbers have no commas.
    texts = json_encode([finite(one) for one in column.to_pylist()])[1:-1].split(",")
    return [None if one == "null" else one for one in texts]
