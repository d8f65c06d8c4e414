"""Avro values to columns, many rows at a time: each instruction is done for up to 256 rows before the next.

Strategy: in ``kwire.kernels.avro`` each value waits for the one before it, since only that says where it begins. Here
one instruction reads the values of many rows, its *lanes*, which do not wait for each other. That takes a third of the
time. Where rows differ, an instruction goes on with some of the lanes: those that are not null, those of a branch,
those with one more item.

Texts and offsets are of all lanes at once only when the last instruction is done. So while it runs, regions of offsets
have lengths, and it is noted where each text stands (``Lanes.sources``). Then they are put in order (``_finish``).

Rules kept here:

- Lanes are done all or not at all. What is not as it should be, and what is seldom, is *declined*: a value that cannot
  be read, an array of several blocks or of lists, a text for which there is no room. Then the rows are read one by one
  (``kwire.kernels.avro``), which words errors. So nothing here can be wrong about why something is wrong.
- Every place is checked, before the next instruction, to have ``SPARE`` bytes after it in the buffer. So what reads and
  copies in steps stays inside of it.
- No place goes back, and the last one must be the end of the value. So none on the way was behind that end.
- Which programs have only instructions for lanes is known when they are made: ``slot`` of their first one is 1.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.avro import (
    OFFSETS_OF_LISTS,
    OFFSETS_OF_TEXTS,
    Memory,
    Op,
    Program,
    State,
    Trouble,
    decimal,
    is_text,
    null_row,
    undo,
    value_of,
    wide_varint,
)
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.numbers import (
    SLACK,
    copy,
    copy_wide,
    int64,
    item_at,
    little_u32,
    load64,
    long_varint,
    plain,
    set_item,
)

__all__ = ["ITEMS", "LANES", "MAX_NESTING", "SPARE", "Lanes", "lanes_for", "run"]

Array = Any

LANES: Final = 256
"""Rows that are read at once. What they read, and where they write, should stay in the nearest cache."""
FEWEST: Final = 16
"""Rows for which it is worth it."""
ITEMS: Final = 1 << 14
"""Items of an array that all lanes may have together."""
MAX_NESTING: Final = 32
"""Choices of lanes inside each other: two for each array, one for each union."""
SPARE: Final = 64
"""Bytes that must follow a value in the buffer."""

_HIGH: Final = np.uint64(0x8080808080808080)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TWO: Final = np.uint64(2)
_CONTINUES: Final = np.uint64(0x80)
_LEAST: Final = int64(-0x8000000000000000)
_LOW_BYTE: Final = np.uint64(0xFF)

_TARGET: Final = 0
_COUNT: Final = 1
_PC: Final = 2
_BRANCH: Final = 3
FRAME_FIELDS: Final = 4
"""What is remembered of a choice of lanes: where it ends, how many lanes there were before, its instruction, and of a
union the branch. The end of an option is -2 less than its target."""
_NO_TARGET: Final = -1


class Lanes(NamedTuple):
    """Memory to work in.

    - ``work``: int64, ``LANES`` for each of these. Where a lane is; ``ENDS``; ``VALUES``, the last varint; ``NULLS``,
      the lanes without a value; ``SAME``, their own numbers. ``_PICKS``: for each choice the lanes. ``_LEFT``: for
      each choice the items that lanes have left, or their branches. ``_ROWS``: for each domain the row that each lane
      writes. Then the places where texts stand: of region ``i``, by row, from ``places[i]`` on.
    - ``frames``: see ``FRAME_FIELDS``.
    - ``bases``: for each domain the rows that there were before.
    """

    work: Array
    frames: Array
    bases: Array
    places: Array


ENDS: Final = LANES
VALUES: Final = 2 * LANES
NULLS: Final = 3 * LANES
SAME: Final = 4 * LANES
_PICKS: Final = 5 * LANES
_LEFT: Final = _PICKS + LANES * (MAX_NESTING + 2)
_ROWS: Final = _LEFT + LANES * (MAX_NESTING + 2)


def lanes_for(regions: Array, domains: int) -> Lanes:
    """Memory for a table of REGION."""
    texts = regions["width"] == OFFSETS_OF_TEXTS
    rooms = np.where(texts, np.where(regions["domain"] == 0, LANES, ITEMS), 0)
    places = np.concatenate([np.zeros(1, np.int64), np.cumsum(rooms, dtype=np.int64)]) + _ROWS + LANES * domains
    work = np.empty(places[-1], np.int64)
    work[SAME:_PICKS] = np.arange(LANES)
    return Lanes(
        work,
        np.zeros((MAX_NESTING + 2, FRAME_FIELDS), np.int64),
        np.zeros(domains, np.int64),
        places,
    )


@inlined
def _lane(work: Array, picks: int, k: int, dense: bool) -> int:
    """The ``k``-th lane that is chosen."""
    return int64(k) if dense else item_at(work, picks + k)


@inlined
def _row(work: Array, rows: int, first: int, lane: int, dense: bool) -> int:
    """The row that a lane writes."""
    return first + lane if dense else item_at(work, rows + lane)


@inlined
def _varints(
    buf: Array, instruction: Any, picks: int, n: int, rows: int, lanes: Lanes, target: Array, dense: bool
) -> bool:
    """Reads a varint of each lane, into ``target``. Returns whether all are there, and inside of their bounds.

    Where some have one byte and others have more, no processor can foresee which. ``last`` of the instruction says how
    it was with the lanes before, in eighths: then all are read in the way that takes any size."""
    work = lanes.work
    limit = int64(buf.shape[0] - SPARE)
    first = item_at(work, rows)
    # All others have their varints in ``VALUES`` first.
    puts = (instruction.op == Op.LONG) | (instruction.op == Op.INT)
    at = int64(instruction.at) if puts else int64(VALUES)
    low = int64(instruction.low) if instruction.op == Op.INT else _LEAST
    high = int64(instruction.high) if instruction.op == Op.INT else ~_LEAST
    good = True
    short = int64(0)
    if 0 < instruction.last < 7:
        for k in range(n):
            lane = _lane(work, picks, k, dense)
            pos = item_at(work, lane)
            value, size = wide_varint(load64(buf, pos))
            if size == 0:
                value, pos = long_varint(buf, pos, item_at(work, ENDS + lane), int64(10))
                good = good and pos >= 0
            else:
                pos += size
            short += int64(1) if size == 1 else int64(0)
            good = good & (pos <= limit) & (low <= value) & (value <= high)
            set_item(work, lane, pos)
            set_item(target, at + _row(work, rows, first, lane, dense), value)
    else:
        for k in range(n):
            lane = _lane(work, picks, k, dense)
            pos = item_at(work, lane)
            word = load64(buf, pos)
            if word & _CONTINUES == _ZERO:
                value = int64(word & _LOW_BYTE)
                value = (value >> 1) ^ -(value & 1)
                pos += 1
                short += 1
            else:
                value, size = wide_varint(word)
                if size == 0:
                    value, pos = long_varint(buf, pos, item_at(work, ENDS + lane), int64(10))
                    good = good and pos >= 0
                else:
                    pos += size
            good = good & (pos <= limit) & (low <= value) & (value <= high)
            set_item(work, lane, pos)
            set_item(target, at + _row(work, rows, first, lane, dense), value)
    instruction.last = 8 * short // n
    return good


@kernel
def _null_lanes(regions: Array, first: int, last: int, picks: int, n: int, lanes: Lanes, memory: Memory) -> None:
    """Nulls for some lanes in the regions from ``first`` to ``last``, which are of one domain."""
    work = lanes.work
    for number in range(first, last):
        region = regions[number]
        width = region.width
        at = region.at
        rows = _ROWS + LANES * region.domain
        if width <= 0:
            for k in range(n):
                set_item(memory.ints, at + item_at(work, rows + item_at(work, picks + k)) + 1, 0)
        elif width == 1:
            for k in range(n):
                set_item(memory.bytes, at + item_at(work, rows + item_at(work, picks + k)), 0)
        elif width == 8:
            at >>= 3
            for k in range(n):
                set_item(memory.longs, at + item_at(work, rows + item_at(work, picks + k)), 0)
        else:
            for k in range(n):
                to = at + item_at(work, rows + item_at(work, picks + k)) * width
                for byte in range(to, to + width):
                    memory.bytes[byte] = 0


@kernel
def _integers(instruction: Any, picks: int, n: int, rows: int, table: Array, lanes: Lanes, memory: Memory) -> bool:
    """Puts the varints of lanes where an instruction wants them. Returns whether all fit."""
    work = lanes.work
    op = instruction.op
    at = instruction.at
    low = instruction.low
    high = instruction.high
    more = instruction.more
    good = True
    for k in range(n):
        value = item_at(work, VALUES + item_at(work, picks + k))
        good = good & (low <= value) & (value <= high)
    if not good:
        return False
    if op == Op.SCALED:
        for k in range(n):
            lane = item_at(work, picks + k)
            set_item(memory.longs, at + item_at(work, rows + lane), item_at(work, VALUES + lane) * more)
    elif op == Op.REAL32:
        for k in range(n):
            lane = item_at(work, picks + k)
            memory.floats[at + item_at(work, rows + lane)] = item_at(work, VALUES + lane)
    elif op == Op.REAL64:
        for k in range(n):
            lane = item_at(work, picks + k)
            memory.doubles[at + item_at(work, rows + lane)] = item_at(work, VALUES + lane)
    elif op == Op.ENUM:
        for k in range(n):
            lane = item_at(work, picks + k)
            value = int64(table[more + item_at(work, VALUES + lane)])
            good = good and value >= 0
            set_item(memory.ints, at + item_at(work, rows + lane), value)
    return good


@inlined
def _bytes(
    buf: Array, instruction: Any, picks: int, n: int, rows: int, lanes: Lanes, memory: Memory, dense: bool
) -> bool:
    """Reads where the texts and bytes of lanes stand, and notes it. Returns whether they are there."""
    work = lanes.work
    limit = int64(buf.shape[0] - SPARE)
    first = item_at(work, rows)
    good = True
    at = instruction.at
    number = instruction.region
    sources = lanes.places[number] - lanes.bases[instruction.domain]
    for k in range(n):
        lane = _lane(work, picks, k, dense)
        row = _row(work, rows, first, lane, dense)
        pos = item_at(work, lane)
        word = load64(buf, pos)
        if word & _CONTINUES == _ZERO:
            good = good & (word & _ONE == _ZERO)
            size = int64((word & _LOW_BYTE) >> _ONE)
            pos += 1
        else:
            size, used = wide_varint(word)
            good = good & (used > 0) & (size >= 0)
            pos += used
        set_item(memory.ints, at + row + 1, size)
        set_item(work, sources + row, pos)
        pos += size
        # Less than 56 bits are no danger to this sum.
        good = good & (pos <= limit)
        set_item(work, lane, pos)
    return good


@inlined
def _simple_words(
    buf: Array, instruction: Any, picks: int, n: int, rows: int, lanes: Lanes, memory: Memory, dense: bool
) -> bool:
    """Puts words of 8 and 4 bytes, and booleans, where an instruction wants them. Returns whether they are there, and
    fit."""
    work = lanes.work
    limit = int64(buf.shape[0] - SPARE)
    first = item_at(work, rows)
    op = instruction.op
    at = instruction.at
    good = True
    if op == Op.WORD8:
        for k in range(n):
            lane = _lane(work, picks, k, dense)
            pos = item_at(work, lane)
            good = good & (pos + 8 <= limit)
            set_item(work, lane, pos + 8)
            set_item(memory.longs, at + _row(work, rows, first, lane, dense), int64(load64(buf, pos)))
    elif op == Op.WORD4:
        for k in range(n):
            lane = _lane(work, picks, k, dense)
            pos = item_at(work, lane)
            good = good & (pos + 4 <= limit)
            set_item(work, lane, pos + 4)
            set_item(memory.ints, at + _row(work, rows, first, lane, dense), int64(load64(buf, pos)))
    else:
        for k in range(n):
            lane = _lane(work, picks, k, dense)
            pos = item_at(work, lane)
            byte = load64(buf, pos) & _LOW_BYTE
            good = good & (pos < limit) & (byte <= _ONE)
            set_item(work, lane, pos + 1)
            set_item(memory.bytes, at + _row(work, rows, first, lane, dense), int64(byte))
    return good


@kernel
def _words(
    buf: Array, instruction: Any, picks: int, n: int, rows: int, program: Program, lanes: Lanes, memory: Memory
) -> bool:
    """Puts other bytes, and decimals of any number of them, where an instruction wants them. Returns whether they are
    there, and fit."""
    work = lanes.work
    op = instruction.op
    at = instruction.at
    width = instruction.width
    good = True
    varies = op == Op.DECIMAL or op == Op.SKIP_BYTES
    words = width if op == Op.DECIMAL else instruction.low
    for k in range(n):
        lane = item_at(work, picks + k)
        pos = item_at(work, lane)
        row = item_at(work, rows + lane)
        size = item_at(work, VALUES + lane) if varies else int64(width)
        # An end that was not looked at before may lie before this place: then nothing has room.
        good = good and 0 <= size <= item_at(work, ENDS + lane) - pos
        set_item(work, lane, pos + size)
        if good:
            if op == Op.FIXED:
                copy(buf, pos, memory.bytes, at + row * size, size)
            elif op == Op.WIDEN:
                memory.ints[0] = np.int32(little_u32(buf, pos))
                memory.doubles[at + row] = memory.floats[0]
            elif op == Op.DECIMAL or op == Op.FIXED_DECIMAL:
                good = decimal(buf, pos, size, memory.longs, at + row * words, words, program.table, instruction.more)
    return good


@kernel
def _constants(instruction: Any, picks: int, n: int, rows: int, program: Program, lanes: Lanes, memory: Memory) -> None:
    """Puts what is the same for all lanes where an instruction wants it."""
    work = lanes.work
    op = instruction.op
    at = instruction.at
    width = instruction.width
    if op == Op.PRESENT:
        for k in range(n):
            set_item(memory.bytes, at + item_at(work, rows + item_at(work, picks + k)), 1)
    elif op == Op.SET:
        for k in range(n):
            copy(
                program.pool,
                instruction.more,
                memory.bytes,
                at + item_at(work, rows + item_at(work, picks + k)) * width,
                width,
            )
    elif op == Op.END_LIST:
        for k in range(n):
            set_item(memory.ints, at + item_at(work, rows + item_at(work, picks + k)) + 1, 0)
    else:
        sources = lanes.places[instruction.region] - lanes.bases[instruction.domain]
        for k in range(n):
            row = item_at(work, rows + item_at(work, picks + k))
            set_item(memory.ints, at + row + 1, width)
            # Not in the buffer but in the pool.
            set_item(work, sources + row, -1 - instruction.more)


@inlined
def _option(
    buf: Array, instruction: Any, depth: int, n: int, rows: int, lanes: Lanes, memory: Memory, dense: bool
) -> tuple[int, int]:
    """Reads which branch lanes have, in one byte. Chooses those that have a value, and notes the others: (how many of
    each), -1 where one has neither."""
    work = lanes.work
    picks = _PICKS + LANES * depth
    some = _PICKS + LANES * (depth + 1)
    limit = int64(buf.shape[0] - SPARE)
    first = item_at(work, rows)
    null = np.uint64(2 * instruction.low)
    at = instruction.at
    m = int64(0)
    z = int64(0)
    good = True
    for k in range(n):
        lane = _lane(work, picks, k, dense)
        pos = item_at(work, lane)
        byte = load64(buf, pos) & _LOW_BYTE
        good = good & (byte & ~_TWO == _ZERO) & (pos < limit)
        has = int64(1) if byte != null else int64(0)
        set_item(work, lane, pos + 1)
        set_item(memory.bytes, at + _row(work, rows, first, lane, dense), has)
        set_item(work, some + m, lane)
        set_item(work, NULLS + z, lane)
        m += has
        z += 1 - has
    return (m, z) if good else (int64(-1), int64(-1))


@kernel
def _list(instruction: Any, depth: int, n: int, rows: int, state: State, lanes: Lanes, memory: Memory) -> int:
    """Chooses the lanes that have items: how many, -1 to decline."""
    work = lanes.work
    picks = _PICKS + LANES * depth
    entered = _PICKS + LANES * (depth + 1)
    some = _PICKS + LANES * (depth + 2)
    left = _LEFT + LANES * (depth + 2)
    least = instruction.low
    child = instruction.child
    at = instruction.at
    start = int64(state.counts[child]) if child >= 0 else int64(0)
    m = int64(0)
    for k in range(n):
        lane = item_at(work, picks + k)
        value = item_at(work, VALUES + lane)
        room = item_at(work, ENDS + lane) - item_at(work, lane)
        if value < 0 or (value > 0 and (least == 0 or value > room or value * least > room)):
            return int64(-1)
        set_item(work, left + lane, value)
        set_item(work, entered + m, lane)
        set_item(work, some + m, lane)
        if value > 0:
            m += 1
        if child >= 0:
            set_item(work, _ROWS + LANES * child + lane, start)
            set_item(memory.ints, at + item_at(work, rows + lane) + 1, value)
            start += value
    if child >= 0:
        if start - lanes.bases[child] > ITEMS or start > state.rooms[child]:
            return int64(-1)
        state.counts[child] = start
    return m


@kernel
def _next(instruction: Any, depth: int, n: int, lanes: Lanes) -> int:
    """Chooses the lanes that have one more item: how many."""
    work = lanes.work
    picks = _PICKS + LANES * depth
    left = _LEFT + LANES * depth
    child = instruction.child
    m = int64(0)
    for k in range(n):
        lane = item_at(work, picks + k)
        more = item_at(work, left + lane) - 1
        set_item(work, left + lane, more)
        set_item(work, picks + m, lane)
        if more > 0:
            m += 1
        if child >= 0:
            set_item(work, _ROWS + LANES * child + lane, item_at(work, _ROWS + LANES * child + lane) + 1)
    return m


@kernel
def _no_more_blocks(buf: Array, depth: int, lanes: Lanes) -> bool:
    """Whether all lanes that have items have one block of them."""
    work = lanes.work
    limit = int64(buf.shape[0] - SPARE)
    picks = _PICKS + LANES * depth
    good = True
    for k in range(lanes.frames[depth, _COUNT]):
        lane = item_at(work, picks + k)
        pos = item_at(work, lane)
        good = good & (load64(buf, pos) & _LOW_BYTE == _ZERO) & (pos < limit)
        set_item(work, lane, pos + 1)
    return good


@kernel
def _branch(depth: int, n: int, branch: int, lanes: Lanes) -> int:
    """Chooses the lanes of a branch: how many."""
    work = lanes.work
    picks = _PICKS + LANES * depth
    some = _PICKS + LANES * (depth + 1)
    of = _LEFT + LANES * (depth + 1)
    m = int64(0)
    for k in range(n):
        lane = item_at(work, picks + k)
        set_item(work, some + m, lane)
        if item_at(work, of + lane) == branch:
            m += 1
    return m


@kernel
def _steps(
    buf: Array, pc: int, n: int, every: bool, program: Program, state: State, lanes: Lanes, memory: Memory
) -> bool:
    """Runs a program over ``n`` lanes, which stand in ``picks[0]``. ``every``: they are 0, 1, 2 and so on. Returns
    whether it came to its end."""
    work = lanes.work
    code = program.code
    frames = lanes.frames
    depth = int64(0)
    while True:
        while depth > 0 and pc == frames[depth - 1, _TARGET]:
            # The end of an option, or of a branch.
            n = int64(frames[depth - 1, _COUNT])
            if frames[depth - 1, _BRANCH] < 0:
                depth -= 1
                continue
            union = int64(frames[depth - 1, _PC])
            branch = int64(frames[depth - 1, _BRANCH])
            m = int64(0)
            while m == 0 and branch < code[union].width:
                m = _branch(depth - 1, n, branch, lanes)
                branch += 1
            if m == 0:
                depth -= 1
                continue
            frames[depth - 1, _BRANCH] = branch
            n = m
            pc = union + branch
        instruction = code[pc]
        op = instruction.op
        picks = _PICKS + LANES * depth
        rows = _ROWS + LANES * instruction.domain
        # What most programs have most: each is compiled twice, for some lanes and for all of them.
        dense = every and depth == 0
        if op == Op.LONG:
            if dense:
                good = _varints(buf, instruction, picks, n, rows, lanes, memory.longs, True)
            else:
                good = _varints(buf, instruction, picks, n, rows, lanes, memory.longs, False)
            if not good:
                return False
            pc += 1
            continue
        if op == Op.INT:
            if dense:
                good = _varints(buf, instruction, picks, n, rows, lanes, memory.ints, True)
            else:
                good = _varints(buf, instruction, picks, n, rows, lanes, memory.ints, False)
            if not good:
                return False
            pc += 1
            continue
        if op == Op.TEXT or op == Op.BYTES:
            if dense:
                good = _bytes(buf, instruction, picks, n, rows, lanes, memory, True)
            else:
                good = _bytes(buf, instruction, picks, n, rows, lanes, memory, False)
            if not good:
                return False
            pc += 1
            continue
        if op == Op.WORD8 or op == Op.WORD4 or op == Op.BOOL:
            if dense:
                good = _simple_words(buf, instruction, picks, n, rows, lanes, memory, True)
            else:
                good = _simple_words(buf, instruction, picks, n, rows, lanes, memory, False)
            if not good:
                return False
            pc += 1
            continue
        if (op <= Op.SKIP_BYTES) & (op != Op.OPTION):
            if dense:
                good = _varints(buf, instruction, picks, n, int64(SAME), lanes, work, True)
            else:
                good = _varints(buf, instruction, picks, n, int64(SAME), lanes, work, False)
            if not good:
                return False
        if op <= Op.ENUM or op == Op.SKIP_LONG:
            if not _integers(instruction, picks, n, rows, program.table, lanes, memory):
                return False
        elif op == Op.OPTION:
            if dense:
                m, z = _option(buf, instruction, depth, n, rows, lanes, memory, True)
            else:
                m, z = _option(buf, instruction, depth, n, rows, lanes, memory, False)
            if m < 0 or depth == MAX_NESTING:
                return False
            if z > 0:
                _null_lanes(state.regions, instruction.first, instruction.last, NULLS, z, lanes, memory)
            if m == 0:
                pc = instruction.target
                continue
            if z > 0:
                frames[depth, _TARGET] = instruction.target
                frames[depth, _COUNT] = n
                frames[depth, _BRANCH] = -1
                depth += 1
                n = m
        elif op == Op.UNION:
            if depth == MAX_NESTING:
                return False
            of = _LEFT + LANES * (depth + 1)
            for k in range(n):
                lane = item_at(work, picks + k)
                value = item_at(work, VALUES + lane)
                if value < 0 or value >= instruction.width:
                    return False
                set_item(work, of + lane, value)
            frames[depth, _TARGET] = instruction.target
            frames[depth, _COUNT] = n
            frames[depth, _PC] = pc
            frames[depth, _BRANCH] = 0
            depth += 1
            pc = instruction.target
            continue
        elif op == Op.LIST:
            if depth + 1 >= MAX_NESTING:
                return False
            m = _list(instruction, depth, n, rows, state, lanes, memory)
            if m < 0:
                return False
            if m == 0:
                pc = instruction.target
                continue
            frames[depth, _TARGET] = _NO_TARGET
            frames[depth, _COUNT] = n
            frames[depth + 1, _TARGET] = _NO_TARGET
            frames[depth + 1, _COUNT] = m
            depth += 2
            n = m
        elif op == Op.NEXT:
            m = _next(instruction, depth, n, lanes)
            if m > 0:
                n = m
                pc = instruction.target
            else:
                depth -= 2
                if not _no_more_blocks(buf, depth + 1, lanes):
                    return False
                n = int64(frames[depth, _COUNT])
        elif op <= Op.SKIP:
            if not _words(buf, instruction, picks, n, rows, program, lanes, memory):
                return False
        elif op <= Op.SET_BYTES or op == Op.END_LIST:
            _constants(instruction, picks, n, rows, program, lanes, memory)
        elif op == Op.FILL:
            _null_lanes(state.regions, instruction.first, instruction.last, picks, n, lanes, memory)
        elif op == Op.JUMP:
            pc = instruction.target
            continue
        else:
            good = op == Op.STOP
            for k in range(n):
                lane = item_at(work, picks + k)
                good = good and item_at(work, lane) == item_at(work, ENDS + lane)
            return good
        pc += 1


@kernel
def _is_ascii(data: Array, pos: int, end: int) -> bool:
    """Whether these bytes are ASCII. ``SLACK`` more follow them."""
    found = _ZERO
    while pos + 32 <= end:
        found |= load64(data, pos) | load64(data, pos + 8) | load64(data, pos + 16) | load64(data, pos + 24)
        pos += 32
    while pos + 8 <= end:
        found |= load64(data, pos)
        pos += 8
    if pos < end:
        found |= load64(data, pos) << np.uint64(8 * (pos + 8 - end))
    return found & _HIGH == _ZERO


@kernel
def _texts(buf: Array, pool: Array, number: int, last: int, region: Any, lanes: Lanes, memory: Memory) -> bool:
    """Copies the texts of a region, and makes offsets of their lengths. Returns whether there is room, and all are
    text."""
    first = int64(lanes.bases[region.domain])
    at = region.at + 1
    data = region.data
    used = int64(region.used)
    total = used
    for row in range(first, last):
        total += item_at(memory.ints, at + row)
    if total + SLACK > region.room:
        return False
    sources = lanes.places[number] - first
    begin = used
    for row in range(first, last):
        size = item_at(memory.ints, at + row)
        if size > 0:
            source = item_at(lanes.work, sources + row)
            if source >= 0:
                copy_wide(buf, source, memory.bytes, data + used, size)
            else:
                copy(pool, -1 - source, memory.bytes, data + used, size)
        used += size
        set_item(memory.ints, at + row, used)
    if region.text != 0 and not _is_ascii(memory.bytes, data + begin, data + used):
        for row in range(first, last):
            after = int64(memory.ints[at + row])
            if not is_text(memory.bytes, data + begin, data + after):
                return False
            begin = after
    region.used = used
    return True


@kernel
def _finish(buf: Array, last: int, program: Program, state: State, lanes: Lanes, memory: Memory) -> bool:
    """Puts what all lanes have read in order. ``last``: the rows of domain 0. Returns whether there is room."""
    for number in range(state.regions.shape[0]):
        region = state.regions[number]
        after = int64(last) if region.domain == 0 else int64(state.counts[region.domain])
        if region.width == OFFSETS_OF_TEXTS:
            if not _texts(buf, program.pool, number, after, region, lanes, memory):
                return False
        elif region.width == OFFSETS_OF_LISTS:
            first = int64(lanes.bases[region.domain])
            at = region.at
            offset = int64(memory.ints[at + first])
            for row in range(first + 1, after + 1):
                offset += int64(memory.ints[at + row])
                memory.ints[at + row] = offset
    return True


@kernel
def _batch(
    buf: Array,
    starts: Array,
    ends: Array,
    programs: Array,
    row: int,
    last: int,
    program: Program,
    state: State,
    lanes: Lanes,
    memory: Memory,
) -> tuple[bool, int]:
    """Reads rows from ``row`` on in lanes: (whether they are read, how many). Else they are to be read one by one."""
    work = lanes.work
    pc = int64(-1)
    n = int64(0)
    z = int64(0)
    count = int64(0)
    good = True
    while count < LANES and row + count < last:
        own = int64(programs[row + count])
        if own >= 0:
            if (pc >= 0 and own != pc) or ends[row + count] + SPARE > buf.shape[0]:
                break
            pc = own
            set_item(work, count, starts[row + count])
            set_item(work, ENDS + count, ends[row + count])
            good = good and starts[row + count] <= ends[row + count]
            set_item(work, _PICKS + n, count)
            n += 1
        else:
            set_item(work, NULLS + z, count)
            z += 1
        set_item(work, _ROWS + count, row + count)
        count += 1
    if not good or n < FEWEST or program.code[pc].slot == 0:
        return False, max(count, int64(1))
    for domain in range(state.counts.shape[0]):
        lanes.bases[domain] = state.counts[domain]
    if z > 0:
        above = int64(0)
        while above < state.regions.shape[0] and state.regions[above].domain == 0:
            above += 1
        _null_lanes(state.regions, int64(0), above, NULLS, z, lanes, memory)
    good = _steps(buf, pc, n, z == 0, program, state, lanes, memory) and _finish(
        buf, row + count, program, state, lanes, memory
    )
    if not good:
        undo(state, memory, row)
    return good, count


@kernel
def run(
    buf: Array,
    starts: Array,
    ends: Array,
    programs: Array,
    row: int,
    last: int,
    program: Program,
    state: State,
    lanes: Lanes,
    memory: Memory,
    failures: Array,
) -> tuple[int, int, int]:
    """Reads the values ``buf[starts[i]:ends[i]]`` of the rows from ``row`` to ``last`` into the regions.

    ``programs``: the first instruction for each row, -1 for a row that is null. Each is in domain 0, of which regions
    have room for all rows. Returns (the rows done, failures, trouble). FULL: there is no room for the next row, and
    ``State.asked`` says for what. Without trouble it ends at the last row, or where the table of failures is full.
    """
    found = int64(0)
    trouble = plain(Trouble.NONE)
    row = int64(row)
    singly = row
    while row < last and found < failures.shape[0]:
        trouble = plain(Trouble.NONE)
        if row >= singly:
            done, count = _batch(buf, starts, ends, programs, row, last, program, state, lanes, memory)
            if done:
                row += count
                state.counts[0] = row
                continue
            singly = row + count
        pc = int64(programs[row])
        if pc >= 0:
            trouble, offset, pc = value_of(buf, int64(starts[row]), int64(ends[row]), pc, program, state, memory)
            if trouble != Trouble.NONE:
                undo(state, memory, row)
                if trouble == Trouble.FULL:
                    break
                failure = failures[found]
                failure.row = row
                failure.offset = offset
                failure.instruction = pc
                failure.trouble = trouble
                found += 1
                pc = int64(-1)
        if pc < 0:
            null_row(state, memory)
        row += 1
        state.counts[0] = row
    return row, found, trouble if trouble == Trouble.FULL else plain(Trouble.NONE)
