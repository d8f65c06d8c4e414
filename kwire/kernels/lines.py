"""Rows of Arrow columns as lines of JSON or CSV: a table of instructions that one kernel runs for each row.

Strategy: the buffers of all columns stand in one array of bytes, as Arrow keeps them. They are little-endian, with bits
for nulls and booleans, and int32 offsets of text and lists. An instruction knows where its column stands and what text
comes first (``,"topic":``). So a line is the instructions one after the other. ``kwire.cli.lines`` makes them of a
batch.

Rules kept here:

- A line is written whole or not at all: where there is no room for the next one, the kernel returns.
- Text is safe for terminals (``kwire.kernels.texts``), but for CSV that goes elsewhere.
- Nothing is checked that Arrow guarantees: offsets are in order and inside of their data.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import Row, table_type
from kwire.kernels.numbers import int64, little_u16, little_u32
from kwire.kernels.texts import ROOM, base64, decimal, put, safe, string, unicode_escape
from kwire.wire import FIRST_US, LAST_US

__all__ = ["CELL", "MAX_DEPTH", "Cell", "Show", "write_lines"]

Array = Any

MAX_DEPTH: Final = 8
"""Lists inside lists."""


class Show(IntEnum):
    """What an instruction writes, after its own text."""

    END = 0
    """Nothing more: the line ends."""
    TEXT = 1
    """Nothing."""
    INT = 2
    """An integer of ``width`` bytes."""
    BOOL = 3
    """``true`` or ``false``."""
    TIME = 4
    """Microseconds since 1970 in ISO 8601."""
    STRING = 5
    """Text in quotes."""
    BYTES = 6
    """Base64."""
    RAW = 7
    """Text that is JSON."""
    FIELD = 8
    """Text as a field of CSV, in quotes where it needs them."""
    STRUCT = 9
    """Nothing, unless it is null."""
    LIST = 10
    """``[``; each element is written by the instructions up to its ``NEXT``. After that leads ``target``."""
    NEXT = 11
    """If another element follows, a comma, and the program goes on at ``target``; else ``]``."""


class Cell(Row):
    """One instruction. A position counts bytes of the array of all columns."""

    op: int
    text: int
    size: int
    """The text that comes first: ``size`` bytes at ``text`` of the pool."""
    values: int
    """Where the numbers stand, or the text that offset 0 stands for; of BOOL the bit."""
    offsets: int
    """Where the offsets stand."""
    valid: int
    """The bit that says whether the first is there; -1 where all are."""
    width: int
    quoted: int
    """1: in quotes; of ``FIELD`` for a terminal."""
    null: int
    null_size: int
    """The text of a null, in the pool."""
    target: int


CELL: Final = table_type(Cell)

_QUOTE: Final = int64(ord('"'))
_COMMA: Final = int64(ord(","))
_ENDS_FIELD: Final = np.zeros(256, np.uint8)
_ENDS_FIELD[np.frombuffer(b'",\r\n', np.uint8)] = 1
_OPEN: Final = int64(ord("["))
_CLOSE: Final = int64(ord("]"))
_ZERO: Final = int64(ord("0"))
_MINUS: Final = int64(ord("-"))
_SECOND: Final = 1_000_000
_DAY: Final = 86_400


@kernel
def _bit(buf: Array, at: int) -> bool:
    return (int64(buf[at >> 3]) >> (at & 7)) & 1 != 0


@kernel
def _integer(buf: Array, at: int, width: int) -> int:
    """A signed integer, little-endian."""
    if width == 1:
        value = int64(buf[at])
        return value - ((value & 0x80) << 1)
    if width == 2:
        value = int64(little_u16(buf, at))
        return value - ((value & 0x8000) << 1)
    value = int64(little_u32(buf, at))
    if width == 4:
        return value - ((value & 0x80000000) << 1)
    high = int64(little_u32(buf, at + 4))
    return (high << 32) | value


@kernel
def _two(out: Array, n: int, value: int) -> int:
    out[n] = _ZERO + value // 10
    out[n + 1] = _ZERO + value % 10
    return n + 2


@kernel
def _time(out: Array, n: int, value: int) -> int:
    """``2026-11-21T02:18:00.123456Z``; ``@`` and the seconds since 1970 beyond the years 1 to 9999."""
    seconds = value // _SECOND
    micros = value - seconds * _SECOND
    if value < FIRST_US or value > LAST_US:
        out[n] = int64(ord("@"))
        n = decimal(out, n + 1, seconds)
    else:
        days = seconds // _DAY
        rest = seconds - days * _DAY
        # Days of 400 years from 1 March 0000 on, in which each four and each hundred years are alike.
        days += 719_468
        era = days // 146_097
        day = days - era * 146_097
        year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
        day -= 365 * year + year // 4 - year // 100
        month = (5 * day + 2) // 153
        day -= (153 * month + 2) // 5 - 1
        year += era * 400
        month += 3
        if month > 12:
            month -= 12
            year += 1
        n = _two(out, _two(out, n, year // 100), year % 100)
        out[n] = _MINUS
        n = _two(out, n + 1, month)
        out[n] = _MINUS
        n = _two(out, n + 1, day)
        out[n] = int64(ord("T"))
        n = _two(out, n + 1, rest // 3600)
        out[n] = int64(ord(":"))
        n = _two(out, n + 1, rest // 60 % 60)
        out[n] = int64(ord(":"))
        n = _two(out, n + 1, rest % 60)
    out[n] = int64(ord("."))
    n = _two(out, _two(out, _two(out, n + 1, micros // 10_000), micros // 100 % 100), micros % 100)
    if FIRST_US <= value <= LAST_US:
        out[n] = int64(ord("Z"))
        n += 1
    return n


@kernel
def _field(buf: Array, at: int, length: int, guarded: int, out: Array, n: int) -> int:
    """A field of CSV (RFC 4180): in quotes where it is empty or holds what ends a field or a line."""
    needs = length == 0
    for k in range(at, at + length):
        needs = needs or _ENDS_FIELD[buf[k]] != 0
    if not needs and guarded == 0:
        return put(buf, at, out, n, length)
    if needs:
        out[n] = _QUOTE
        n += 1
    pos, end = int64(at), int64(at + length)
    while pos < end:
        byte = int64(buf[pos])
        if guarded != 0 and byte < 32:
            n = unicode_escape(out, n, byte)
        elif guarded != 0 and byte >= 127:
            more = int64(1)
            while pos + more < end and buf[pos + more] & 0xC0 == 0x80:
                more += 1
            n = safe(buf, pos, more, out, n)
            pos += more - 1
        else:
            if byte == _QUOTE:
                out[n] = byte
                n += 1
            out[n] = byte
            n += 1
        pos += 1
    if needs:
        out[n] = _QUOTE
        n += 1
    return n


@kernel
def _expanded(buf: Array, at: int, length: int) -> int:
    """At most how many bytes a text becomes."""
    more = int64(0)
    for k in range(at, at + length):
        byte = int64(buf[k])
        if byte < 32 or byte >= 127 or byte == _QUOTE or byte == 92:
            more += 5
    return length + more + 2


@kernel
def _has_room(buf: Array, at: int, length: int, n: int, room: int, op: int) -> bool:
    if n + 6 * length <= room:
        return True
    if op == Show.BYTES:
        return n + length // 3 * 4 + 6 <= room
    return n + _expanded(buf, at, length) <= room


@kernel
def _text(buf: Array, cell: Any, index: int, out: Array, n: int, room: int) -> int:
    """Writes what has offsets; -1 where there is no room."""
    first = int64(little_u32(buf, cell.offsets + 4 * index))
    length = int64(little_u32(buf, cell.offsets + 4 * index + 4)) - first
    at = cell.values + first
    op = cell.op
    if not _has_room(buf, at, length, n, room, op):
        return int64(-1)
    if op == Show.STRING:
        return string(buf, at, length, int64(1), out, n)
    if op == Show.RAW:
        return safe(buf, at, length, out, n)
    if op == Show.FIELD:
        return _field(buf, at, length, cell.quoted, out, n)
    if cell.quoted == 0:
        return base64(buf, at, length, out, n)
    out[n] = _QUOTE
    n = base64(buf, at, length, out, n + 1)
    out[n] = _QUOTE
    return n + 1


@kernel
def _line(buf: Array, code: Array, pool: Array, stack: Array, row: int, out: Array, n: int) -> int:
    """Writes a line: where it ends, or -1 where there is no room for it."""
    room = int64(out.shape[0] - ROOM)
    pc = int64(0)
    index = int64(row)
    depth = int64(0)
    while True:
        cell = code[pc]
        if n + cell.size > room:
            return int64(-1)
        if cell.size > 0:
            n = put(pool, cell.text, out, n, cell.size)
        op = cell.op
        if op == Show.END:
            return n
        if cell.valid >= 0 and not _bit(buf, cell.valid + index):
            n = put(pool, cell.null, out, n, cell.null_size)
            pc = cell.target
            continue
        if op == Show.INT:
            n = decimal(out, n, _integer(buf, cell.values + cell.width * index, cell.width))
        elif Show.STRING <= op <= Show.FIELD:
            n = _text(buf, cell, index, out, n, room)
            if n < 0:
                return n
        elif op == Show.TIME:
            out[n] = _QUOTE
            n = _time(out, n + cell.quoted, _integer(buf, cell.values + 8 * index, int64(8)))
            out[n] = _QUOTE
            n += cell.quoted
        elif op == Show.BOOL:
            # The words stand one after the other where ``offsets`` says.
            true = _bit(buf, cell.values + index)
            n = put(pool, cell.offsets if true else cell.offsets + 4, out, n, int64(4) if true else int64(5))
        elif op == Show.LIST:
            first = int64(little_u32(buf, cell.offsets + 4 * index))
            last = int64(little_u32(buf, cell.offsets + 4 * index + 4))
            out[n] = _OPEN
            n += 1
            if first == last or depth == MAX_DEPTH:
                out[n] = _CLOSE
                n += 1
                pc = cell.target
                continue
            stack[depth, 0] = index
            stack[depth, 1] = last - cell.values
            depth += 1
            index = first - cell.values
        elif op == Show.NEXT:
            index += 1
            if index < stack[depth - 1, 1]:
                out[n] = _COMMA
                n += 1
                pc = cell.target
                continue
            depth -= 1
            index = stack[depth, 0]
            out[n] = _CLOSE
            n += 1
        pc += 1


@kernel
def write_lines(buf: Array, code: Array, pool: Array, stack: Array, row: int, stop: int, out: Array) -> tuple[int, int]:
    """Writes the lines of the rows from ``row`` on and before ``stop``, as long as there is room in ``out``. Returns
    (the first row that is not written, bytes of text). ``stack`` is scratch: MAX_DEPTH times two."""
    n = int64(0)
    while row < stop:
        after = _line(buf, code, pool, stack, row, out, n)
        if after < 0:
            break
        n = after
        row += 1
    return row, n
