"""Avro values to columns, without an object per value: schemas compiled to a program that one kernel runs.

Strategy: as for ``kwire.kernels.programs``, but here an instruction reads a value and puts it into a column. A program
reads the values of one schema, the writer's, into the columns of another, the reader's. So rows of many schemas fill
the same columns. ``kwire.values.avro.programs`` makes programs, ``kwire.values.avro.memory`` makes room for columns.

A *domain* is what has one number of rows: domain 0 those of the array that is decoded, and each array and map one for
its items. A *region* is a buffer of a column: values of one width, or offsets of strings or of lists. All regions lie
in one piece of memory, of which the kernel has views as bytes, integers and floating point. A null is a 0 in a region
of bytes.

``kwire.kernels.avro_lanes`` reads many rows at a time, in half of the time, and comes here with what is seldom: damage,
and values that only this loop can read. So both are needed. What a program, a table and a region is stands here.

Rules kept here:

- Every length is checked against the end of the value where it is read. The count of a block is checked against the
  least size of its items, and against the room of its domain.
- A value is read to its last byte, or it has no row: what it has written is taken back (``undo``) and its row is null.
- Where there is no room, the row is taken back as well. Python makes room, or refuses the row, and calls again.
- Offsets of a domain say where each of its rows begins in the domains below. So taking back needs no other memory.
- Copies overrun: strings have ``SLACK`` bytes of room after them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import Row, table_type
from kwire.kernels.numbers import SLACK, copy, int64, little_u32, load64, long_varint, plain
from kwire.kernels.texts import put, sequence

__all__ = [
    "INSTRUCTION",
    "MAX_CALLS",
    "OFFSETS_OF_LISTS",
    "OFFSETS_OF_TEXTS",
    "PROGRAM_FAILURE",
    "REGION",
    "SCRATCH",
    "Asked",
    "Instruction",
    "Memory",
    "Op",
    "Program",
    "ProgramFailure",
    "Region",
    "State",
    "Trouble",
    "decimal",
    "is_text",
    "null_row",
    "undo",
    "value_of",
    "wide_varint",
]

Array = Any

MAX_CALLS: Final = 1024
"""Recursive types inside each other."""
SCRATCH: Final = 64
"""Bytes at the beginning of the memory that belong to no region."""

OFFSETS_OF_TEXTS: Final = 0
OFFSETS_OF_LISTS: Final = -1
"""In place of the width of a region."""


class Op(IntEnum):
    """What an instruction does. After each, the fields of ``Instruction`` that it uses besides ``at`` and ``domain``.

    Those up to ``SKIP_BYTES`` begin with a varint. ``low`` and ``high`` are the bounds of its value."""

    LONG = 0
    """An integer into a region of int64."""
    INT = 1
    """An integer into a region of int32: ``low``, ``high``."""
    SCALED = 2
    """An integer times ``more`` into a region of int64: ``low``, ``high``."""
    REAL32 = 3
    """An integer into a region of float32: ``low``, ``high``."""
    REAL64 = 4
    """An integer into a region of float64: ``low``, ``high``."""
    ENUM = 5
    """The number of a symbol: ``low``, ``high``. The reader's number of it stands in the table, from ``more`` on."""
    TEXT = 6
    """A string of UTF-8: ``region``."""
    BYTES = 7
    """Bytes: ``region``."""
    DECIMAL = 8
    """An integer of big-endian bytes as ``width`` words. Its limit stands in the table, from ``more`` on."""
    OPTION = 9
    """The number of one of two branches. If it is ``low``, the regions from ``first`` to ``last`` get a null and the
    program goes on at ``target``. Else the region at ``at`` says that there is a value."""
    UNION = 10
    """The number of one of ``width`` branches: the program goes on as many instructions after the next one. All of them
    end at ``target``."""
    LIST = 11
    """The count of a block of items, which have at least ``low`` bytes, are rows of ``child`` (-1: of none), and of
    which ``slot`` says how many are left. With the last block the program goes on at ``target``."""
    SKIP_LONG = 12
    """An integer that is not wanted: ``low``, ``high``."""
    SKIP_BYTES = 13
    """A string or bytes that are not wanted."""
    NEXT = 14
    """The end of an item of ``child``: ``slot``. ``target`` is its ``LIST``."""
    BOOL = 15
    """A byte that is 0 or 1."""
    WORD4 = 16
    """Four bytes."""
    WORD8 = 17
    """Eight bytes."""
    WIDEN = 18
    """A float into a region of float64."""
    FIXED = 19
    """``width`` bytes."""
    FIXED_DECIMAL = 20
    """As ``DECIMAL``, of ``low`` bytes."""
    SKIP = 21
    """``width`` bytes that are not wanted."""
    PRESENT = 22
    """There is a value: 1 into a region of bytes."""
    SET = 23
    """``width`` bytes of the pool, from ``more`` on."""
    SET_BYTES = 24
    """The same as a string or bytes: ``region``."""
    MAKE_ROOM = 25
    """``width`` items follow that are not read: ``child``."""
    ITEM = 26
    """The end of one: ``child``."""
    END_LIST = 27
    """The end of all: ``child``."""
    FILL = 28
    """A null for the regions from ``first`` to ``last``."""
    JUMP = 29
    """The program goes on at ``target``."""
    CALL = 30
    """The program goes on at ``target``, with ``width`` more slots, and after its ``RETURN`` here."""
    RETURN = 31
    """The end of what was called."""
    MARK = 32
    """The bytes of a value begin here that is kept as it is."""
    KEEP = 33
    """They end here: ``region``."""
    REFUSE = 34
    """The value has no place in the reader's schema: ``more`` is the ``Trouble``."""
    STOP = 35
    """The end: no bytes may follow."""


class Trouble(IntEnum):
    """Why a program stopped."""

    NONE = 0
    SHORT = 1
    LONG = 2
    COUNT = 3
    VARINT = 4
    RANGE = 5
    UTF8 = 6
    BRANCH = 7
    DIGITS = 8
    BOOL = 9
    TRAILING = 10
    SYMBOL = 11
    UNRESOLVED = 12
    DEPTH = 13
    LARGE = 14
    FULL = 15
    """No trouble with the input: a domain or the bytes of a region have no room."""


class Instruction(Row):
    """One instruction. Which fields mean anything depends on ``op``; see ``Op``."""

    op: int
    at: int
    """Where its region begins in the memory, in values of its width."""
    domain: int
    """What its region has a row for."""
    region: int
    child: int
    low: int
    high: int
    more: int
    width: int
    target: int
    slot: int
    first: int
    last: int


class Region(Row):
    """A buffer of a column."""

    width: int
    """Bytes of a value, or ``OFFSETS_OF_TEXTS``, ``OFFSETS_OF_LISTS``."""
    at: int
    """Where it begins in the memory: in bytes, and offsets in int32."""
    domain: int
    child: int
    """Of lists: the domain of their items."""
    data: int
    """Of texts: where their bytes begin."""
    used: int
    """And how many there are."""
    room: int
    """And may be."""
    text: int
    """1 if they must be UTF-8."""


class ProgramFailure(Row):
    """A row whose value could not be read."""

    row: int
    offset: int
    """In the buffer."""
    instruction: int
    """The one that failed."""
    trouble: int


INSTRUCTION: Final = table_type(Instruction)
REGION: Final = table_type(Region)
PROGRAM_FAILURE: Final = table_type(ProgramFailure)


class Program(NamedTuple):
    """Instructions, and what they refer to: a table of int64, and bytes with ``SLACK`` more."""

    code: Array
    table: Array
    pool: Array


class Memory(NamedTuple):
    """The same memory as bytes, int32, int64, float32 and float64."""

    bytes: Array
    ints: Array
    longs: Array
    floats: Array
    doubles: Array


class Asked(IntEnum):
    """What there is no room for: the places of ``State.asked``."""

    REGION = 0
    """Its number, or -1."""
    DOMAIN = 1
    """The same."""
    NEED = 2
    """Bytes of the region or rows of the domain, for this row at least."""


class State(NamedTuple):
    """What is in use.

    - ``regions``: a table of REGION, in the order of their domains. A domain stands after those around it.
    - ``counts``: the rows of each domain; ``rooms``: how many it may have; ``starts``: scratch.
    - ``left``: items left, by slot; ``calls``: where calls return to.
    - ``asked``: see ``Asked``.
    """

    regions: Array
    counts: Array
    rooms: Array
    starts: Array
    left: Array
    calls: Array
    asked: Array


_ONE: Final = np.uint64(1)
_HIGH: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_SEVENS: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_EVEN_7: Final = np.uint64(0x007F007F007F007F)
_ODD_7: Final = np.uint64(0x7F007F007F007F00)
_EVEN_14: Final = np.uint64(0x00003FFF00003FFF)
_ODD_14: Final = np.uint64(0x3FFF00003FFF0000)
_EVEN_28: Final = np.uint64(0x000000000FFFFFFF)
_ODD_28: Final = np.uint64(0x0FFFFFFF00000000)
_LEAST: Final = int64(-0x8000000000000000)
_MANY: Final = int64(1 << 40)
"""Items that no memory has room for."""
_LONGEST: Final = 10
"""Bytes of a varint of 64 bits."""


@kernel
def wide_varint(word: Any) -> tuple[int, int]:
    """The zigzag varint that ``word`` begins with: (value, its bytes), 0 bytes where it has more than 8."""
    ends = ~word & _HIGH
    if ends == np.uint64(0):
        return int64(0), int64(0)
    # All of them at once: the bytes up to the first with a high bit of 0, then 7 bits of each side by side.
    below = (ends & (~ends + _ONE)) - _ONE
    size = int64(((below & _ONES) * _ONES) >> np.uint64(56))
    word &= below & _SEVENS
    word = (word & _EVEN_7) | ((word & _ODD_7) >> _ONE)
    word = (word & _EVEN_14) | ((word & _ODD_14) >> np.uint64(2))
    word = (word & _EVEN_28) | ((word & _ODD_28) >> np.uint64(4))
    return int64(word >> _ONE) ^ -int64(word & _ONE), size


@kernel
def _varint(buf: Array, pos: int, end: int) -> tuple[int, int]:
    """A zigzag varint of at most 10 bytes: (value, position after it), -1 if there is none."""
    if pos + 8 <= buf.shape[0]:
        value, size = wide_varint(load64(buf, pos))
        if size > 0:
            return value, (pos + size if size <= end - pos else int64(-1))
    return long_varint(buf, pos, end, _LONGEST)


@kernel
def is_text(buf: Array, pos: int, end: int) -> bool:
    """Whether these bytes are UTF-8."""
    while pos + 8 <= end and load64(buf, pos) & _HIGH == np.uint64(0):
        pos += 8
    # The last few: what follows them does not matter.
    if pos < end < pos + 8 <= buf.shape[0] and load64(buf, pos) << np.uint64(8 * (pos + 8 - end)) & _HIGH == np.uint64(
        0
    ):
        return True
    while pos < end:
        if buf[pos] < 128:
            pos += 1
        else:
            size = sequence(buf, pos, end)
            if size < 0:
                return False
            pos += size
    return True


@kernel
def decimal(buf: Array, pos: int, size: int, longs: Array, at: int, words: int, below: Array, first: int) -> bool:
    """An integer of ``size`` big-endian bytes, which are there, as ``words`` little-endian int64.

    Returns whether it is nearer to 0 than the number of as many words in ``below``."""
    if size == 0:
        return False
    sign = -(int64(buf[pos]) >> 7)
    for p in range(pos, pos + size - 8 * words):
        if int64(buf[p]) != sign & 255:
            return False
    least = int64(pos)
    p = int64(pos + size)
    carry = int64(1)
    less = False
    for k in range(words):
        word = int64(0)
        for shift in range(0, 64, 8):
            p -= 1
            word |= (int64(buf[p]) if p >= least else sign & 255) << shift
        longs[at + k] = word
        if sign != 0:
            word = ~word + carry
            if word != 0:
                carry = int64(0)
        limit = int64(below[first + k])
        if word != limit:
            less = (word ^ _LEAST) < (limit ^ _LEAST)
    return less and (longs[at + words - 1] < 0) == (sign < 0)


@kernel
def _fill(regions: Array, first: int, last: int, counts: Array, memory: Memory) -> None:
    """A null for the next row of these regions, which are of one domain."""
    for number in range(first, last):
        region = regions[number]
        row = int64(counts[region.domain])
        width = region.width
        at = region.at
        if width == OFFSETS_OF_TEXTS:
            memory.ints[at + row + 1] = region.used
        elif width == OFFSETS_OF_LISTS:
            memory.ints[at + row + 1] = counts[region.child]
        else:
            at += row * width
            for k in range(at, at + width):
                memory.bytes[k] = 0


@kernel
def undo(state: State, memory: Memory, row: int) -> None:
    """Takes back what row ``row`` of domain 0, and what follows it, has written."""
    state.starts[0] = row
    state.counts[0] = row
    for number in range(state.regions.shape[0]):
        region = state.regions[number]
        width = region.width
        if width <= 0:
            before = int64(memory.ints[region.at + state.starts[region.domain]])
            if width == OFFSETS_OF_TEXTS:
                region.used = before
            else:
                state.starts[region.child] = before
                state.counts[region.child] = before


@kernel
def _ask(asked: Array, region: int, domain: int, need: int) -> int:
    """Notes what there is no room for."""
    asked[plain(Asked.REGION)] = region
    asked[plain(Asked.DOMAIN)] = domain
    asked[plain(Asked.NEED)] = need
    return plain(Trouble.FULL)


@kernel
def _put(buf: Array, pos: int, size: int, instruction: Any, row: int, state: State, memory: Memory) -> int:
    """Bytes, which are there, into a region: trouble."""
    region = state.regions[instruction.region]
    used = region.used
    after = used + size
    if after + SLACK > region.room:
        return _ask(state.asked, instruction.region, int64(-1), after + SLACK)
    put(buf, pos, memory.bytes, region.data + used, size)
    region.used = after
    memory.ints[instruction.at + row + 1] = after
    return plain(Trouble.NONE)


@kernel
def value_of(
    buf: Array, pos: int, end: int, pc: int, program: Program, state: State, memory: Memory
) -> tuple[int, int, int]:
    """Reads a value by the program at instruction ``pc``: (trouble, position, instruction)."""
    code = program.code
    counts = state.counts
    left = state.left
    trouble = plain(Trouble.NONE)
    frame = int64(0)
    called = int64(0)
    mark = int64(pos)
    begin = int64(pos)
    value = int64(0)
    while True:
        begin = pos
        instruction = code[pc]
        op = instruction.op
        if op <= Op.SKIP_BYTES:
            if pos >= end:
                trouble = plain(Trouble.SHORT)
                break
            value = int64(buf[pos])
            if value < 128:
                value = (value >> 1) ^ -(value & 1)
                pos += 1
            else:
                value, pos = _varint(buf, pos, end)
                if pos < 0:
                    trouble = plain(Trouble.VARINT) if end - begin >= _LONGEST else plain(Trouble.SHORT)
                    break
        row = int64(counts[instruction.domain])
        at = instruction.at
        # What several instructions do stands after them, once: it would be compiled for each. ``size`` bytes are put
        # somewhere, or are a decimal of ``words``; -1: nothing is.
        size = int64(-1)
        words = int64(0)
        source = int64(pos)
        puts = buf
        fills = False
        after = int64(pc + 1)
        if op == Op.LONG:
            memory.longs[at + row] = value
        elif Op.INT <= op <= Op.ENUM or op == Op.SKIP_LONG:
            if value < instruction.low or value > instruction.high:
                trouble = plain(Trouble.RANGE)
                break
            if op == Op.INT:
                memory.ints[at + row] = value
            elif op == Op.SCALED:
                memory.longs[at + row] = value * instruction.more
            elif op == Op.REAL32:
                memory.floats[at + row] = value
            elif op == Op.REAL64:
                memory.doubles[at + row] = value
            elif op == Op.ENUM:
                value = int64(program.table[instruction.more + value])
                if value < 0:
                    trouble = plain(Trouble.SYMBOL)
                    break
                memory.ints[at + row] = value
        elif Op.TEXT <= op <= Op.DECIMAL or op == Op.SKIP_BYTES:
            if value < 0 or value > end - pos:
                trouble = plain(Trouble.LONG)
                break
            if op == Op.TEXT and not is_text(buf, pos, pos + value):
                trouble = plain(Trouble.UTF8)
                break
            if op == Op.DECIMAL:
                size = value
                words = instruction.width
            elif op != Op.SKIP_BYTES:
                puts = buf
                source = pos
                size = value
            pos += value
        elif op == Op.OPTION:
            if value == instruction.low:
                fills = True
                after = int64(instruction.target)
            elif value != 1 - instruction.low:
                trouble = plain(Trouble.BRANCH)
                break
            else:
                memory.bytes[at + row] = 1
        elif op == Op.UNION:
            if value < 0 or value >= instruction.width:
                trouble = plain(Trouble.BRANCH)
                break
            pc += 1 + value
            continue
        elif op == Op.LIST:
            child = instruction.child
            if value == 0:
                if child >= 0:
                    memory.ints[at + row + 1] = counts[child]
                pc = instruction.target
                continue
            if value < 0:
                # The size of the block is for those who skip it. Items of no size are as many as are said all the same.
                value = -value
                block, pos = _varint(buf, pos, end)
                if pos < 0 or block < 0 or block > end - pos or value < 0:
                    trouble = plain(Trouble.COUNT)
                    break
            if instruction.low > 0:
                if value > end - pos or value * instruction.low > end - pos:
                    trouble = plain(Trouble.COUNT)
                    break
            elif child < 0:
                continue
            if child >= 0 and value > state.rooms[child] - counts[child]:
                trouble = _ask(state.asked, int64(-1), child, counts[child] + min(value, _MANY))
                break
            left[frame + instruction.slot] = value
        elif op == Op.NEXT:
            child = instruction.child
            if child >= 0:
                counts[child] += 1
            value = int64(left[frame + instruction.slot]) - 1
            left[frame + instruction.slot] = value
            after = int64(instruction.target)
            if value > 0:
                after += 1
        elif Op.BOOL <= op <= Op.SKIP:
            width = instruction.width
            if width > end - pos:
                trouble = plain(Trouble.SHORT)
                break
            if op == Op.WORD8:
                memory.longs[at + row] = int64(load64(buf, pos))
            elif op == Op.WORD4:
                memory.ints[at + row] = np.int32(little_u32(buf, pos))
            elif op == Op.BOOL:
                if buf[pos] > 1:
                    trouble = plain(Trouble.BOOL)
                    break
                memory.bytes[at + row] = buf[pos]
            elif op == Op.WIDEN:
                memory.ints[0] = np.int32(little_u32(buf, pos))
                memory.doubles[at + row] = memory.floats[0]
            elif op == Op.FIXED:
                copy(buf, pos, memory.bytes, at + row * width, width)
            elif op == Op.FIXED_DECIMAL:
                size = width
                words = instruction.low
            pos += width
        elif op == Op.PRESENT:
            memory.bytes[at + row] = 1
        elif op == Op.JUMP:
            pc = instruction.target
            continue
        elif op == Op.FILL:
            fills = True
        elif op == Op.SET:
            copy(program.pool, instruction.more, memory.bytes, at + row * instruction.width, instruction.width)
        elif op == Op.SET_BYTES:
            puts = program.pool
            source = int64(instruction.more)
            size = int64(instruction.width)
        elif op == Op.MAKE_ROOM:
            if instruction.width > state.rooms[instruction.child] - counts[instruction.child]:
                child = instruction.child
                trouble = _ask(state.asked, int64(-1), child, counts[child] + instruction.width)
                break
        elif op == Op.ITEM:
            counts[instruction.child] += 1
        elif op == Op.END_LIST:
            memory.ints[at + row + 1] = counts[instruction.child]
        elif op == Op.CALL:
            if called == MAX_CALLS:
                trouble = plain(Trouble.DEPTH)
                break
            state.calls[called] = pc
            called += 1
            frame += instruction.width
            pc = instruction.target
            continue
        elif op == Op.RETURN:
            called -= 1
            after = int64(state.calls[called])
            frame -= code[after].width
            after += 1
        elif op == Op.MARK:
            mark = pos
        elif op == Op.KEEP:
            source = mark
            size = pos - mark
        elif op == Op.REFUSE:
            trouble = int64(instruction.more)
            break
        else:
            if pos != end:
                trouble = plain(Trouble.TRAILING)
            break
        if fills:
            _fill(state.regions, instruction.first, instruction.last, counts, memory)
        elif words > 0:
            if not decimal(buf, source, size, memory.longs, at + row * words, words, program.table, instruction.more):
                trouble = plain(Trouble.DIGITS)
                break
        elif size >= 0:
            trouble = _put(puts, source, size, instruction, row, state, memory)
            if trouble != Trouble.NONE:
                break
        pc = after
    return trouble, begin, int64(pc)


@kernel
def null_row(state: State, memory: Memory) -> None:
    """A null for the next row of all regions of domain 0."""
    last = int64(0)
    while last < state.regions.shape[0] and state.regions[last].domain == 0:
        last += 1
    _fill(state.regions, int64(0), last, state.counts, memory)
