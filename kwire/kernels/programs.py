"""Finds fields inside bodies without building objects: layouts compiled to a small program that one kernel runs.

Strategy: a layout (``kwire.schema.model``) becomes a list of instructions. They skip n bytes, skip a string, begin an
array, capture a field into a register, or write the registers out as a row. ``interpret`` runs such a program over the
bytes of one frame, ``locate`` over many. So there is no parser written by hand for any version, and no compilation per
version. The programs are data, and the kernel that runs them is compiled once.

Rules kept here:

- Every length is checked against the end of the frame where it is read. An array's count is checked against the least
  size of its elements, as both codecs do. The program stops at the first thing that does not fit and says where. The
  rows that it has written by then stay valid.
- A captured field is two numbers. For an integer they are the value and 0. For anything else they are the offset in the
  buffer and the length (length -1: null). ``ABSENT`` stands for a field that the version does not have or that was not
  reached.
- Registers keep their values until the field is met again. So a row of an inner array carries the fields of the
  elements around it (topic of a partition). It also carries those of the message before it (acks).
- A tagged field is skipped by its declared size. Integers at its beginning can be captured; they are ``ABSENT`` where
  the field was not sent, or is too short for them.
- Callers bound the rows. ``locate_parts`` stops where a table of rows is full, within a frame too, and goes on from
  there. So a frame of many small elements needs no memory in proportion to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, inlined, kernel
from kwire.kernels.layouts import ABSENT, Row, joined, table_type
from kwire.kernels.numbers import grown, i16, i32, i64, int64, plain, unsigned_varint
from kwire.schema.model import FIXED_SIZES, ArrayLayout, FieldLayout, PrimitiveLayout, StructLayout, TypeLayout

__all__ = [
    "FAILURE",
    "INSTRUCTION",
    "JOB",
    "LEAST_TAG",
    "MAX_DEPTH",
    "MOST_LENGTH",
    "UNKNOWN",
    "Each",
    "Failure",
    "Instruction",
    "Job",
    "Op",
    "Program",
    "ProgramSet",
    "Trouble",
    "compile_program",
    "interpret",
    "job_column",
    "jobs_of",
    "length_column",
    "length_there",
    "locate",
    "locate_parts",
    "register_length",
    "register_value",
    "registers_of",
    "skip_tags",
    "value_column",
]

Array = Any

MAX_DEPTH: Final = 16
"""Arrays inside arrays: Kafka's messages go to 4."""


class Op(IntEnum):
    """What an instruction does. After each, the fields of ``Instruction`` that it uses."""

    STOP = 0
    """The end: no bytes may follow."""
    STOP_EARLY = 1
    """The end of what is wanted, whatever follows."""
    SKIP = 2
    """``width`` bytes."""
    INT = 3
    """An integer of ``width`` bytes into ``register``."""
    UUID = 4
    """16 bytes into ``register``."""
    BYTES = 5
    """A string or bytes after a length of ``width`` bytes (or ``COMPACT``) into ``register``; ``nullable``."""
    ARRAY = 6
    """A count of ``width`` bytes (or ``COMPACT``), ``nullable``; its elements have at least ``least`` bytes. If there
    are none the program goes on at ``target``."""
    NEXT = 7
    """The end of an element: if another one follows, the program goes on at ``target``."""
    IF_PRESENT = 8
    """The byte before a nullable struct; if it is null the program goes on at ``target``."""
    TAGS = 9
    """The tagged fields at the end of a struct."""
    EMIT = 10
    """The registers as a row."""
    INTS = 11
    """An array of integers of ``least`` bytes, after a count of ``width`` bytes (or ``COMPACT``). ``register``, if
    there is one, gets where they begin and how many there are. (``ARRAY`` with a register does the same, and goes
    through the elements.)"""
    TAGGED = 12
    """An integer of ``width`` bytes, ``least`` bytes after the beginning of the tagged field ``tag``, into
    ``register``. The tagged fields begin here, and are not gone over."""
    CLEAR = 13
    """The registers from 0 on and before ``register`` become ``ABSENT``."""
    SET = 14
    """``least`` into ``register``."""
    JUMP = 15
    """The program goes on at ``target``."""
    ERROR = 16
    """An int16, which is a row with itself in register 0. There is no row if it is 0 or that of the row before, or if
    rows are not wanted (their table has no room for any)."""


class Trouble(IntEnum):
    """Why a program stopped."""

    NONE = 0
    SHORT = 1
    LONG = 2
    COUNT = 3
    VARINT = 4
    NULL = 5
    DEPTH = 6
    TRAILING = 7
    FULL = 8
    """No trouble with the input: the table has no room for the next row."""


_TEXTS: Final = {
    Trouble.SHORT: "the frame ends within it",
    Trouble.LONG: "its length is more than the bytes left",
    Trouble.COUNT: "its count is more than the bytes left can hold",
    Trouble.VARINT: "an unsigned varint has more than 5 bytes",
    Trouble.NULL: "it may not be null",
    Trouble.DEPTH: "its arrays are nested too deeply",
    Trouble.TRAILING: "bytes are left after the end of the message",
}

COMPACT: Final = 1
"""In place of the width of a length: an unsigned varint, one more than the length."""
_STRING_WIDTH: Final = 2
_BYTES_WIDTH: Final = 4
_COUNT_WIDTH: Final = 4
_UUID_SIZE: Final = 16
_ERROR_SIZE: Final = 2
MOST_LENGTH: Final = int64(0x7FFFFFFF)
"""A varint above is a negative number to Kafka."""
LEAST_TAG: Final = 2
"""Bytes of a tagged field: its number and its size."""
_NO_REGISTER: Final = -1
ERROR_CODE: Final = "error_code"
"""How the name of a field ends that is one."""
_LEAST_ROWS: Final = 16
UNKNOWN: Final = -2
"""In place of where a program begins (int): it has not been looked for yet."""


class Instruction(Row):
    """One instruction. Which fields mean anything depends on ``op``; see ``Op``."""

    op: int
    width: int
    register: int
    """-1 for none."""
    nullable: int
    """1 if the length may be -1."""
    least: int
    target: int
    """The instruction that a jump leads to."""
    tag: int
    """The number of a tagged field."""


class Job(Row):
    """A frame to look at."""

    start: int
    end: int
    """Its bytes in the buffer."""
    program: int
    """First instruction of its program in the joined code."""


class Failure(Row):
    """A frame that its program could not be run to the end of."""

    job: int
    offset: int
    """In the buffer."""
    instruction: int
    """The one that failed, in the joined code."""
    trouble: int
    """A ``Trouble``."""


INSTRUCTION: Final = table_type(Instruction)
JOB: Final = table_type(Job)
FAILURE: Final = table_type(Failure)


# --- registers --------------------------------------------------------------------------------------------------------
# An int64 array with two numbers for each captured field. A row of results is the number of its job, and these.

_NUMBERS: Final = 2
_LENGTH: Final = 1
_JOB: Final = 0
_FIRST: Final = 1


def registers_of(captures: int) -> Array:
    """Registers for so many captured fields."""
    return np.full(_NUMBERS * captures, ABSENT, np.int64)


@kernel
def register_value(registers: Array, register: int) -> int:
    """The integer, or where the bytes begin; ABSENT for none."""
    value: int = registers[_NUMBERS * register]
    return value


@kernel
def register_length(registers: Array, register: int) -> int:
    """The length of the bytes, -1 for null; ABSENT for none."""
    length: int = registers[_NUMBERS * register + _LENGTH]
    return length


@kernel
def _set(registers: Array, register: int, value: int, length: int) -> None:
    registers[_NUMBERS * register] = value
    registers[_NUMBERS * register + _LENGTH] = length


def job_column(rows: Array) -> Array:
    """The number of the job of each row that ``locate`` has found."""
    return rows[:, _JOB]


def value_column(rows: Array, register: int) -> Array:
    """``register_value`` of each row."""
    return rows[:, _FIRST + _NUMBERS * register]


def length_column(rows: Array, register: int) -> Array:
    """``register_length`` of each row."""
    return rows[:, _FIRST + _NUMBERS * register + _LENGTH]


# --- layouts to programs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions for one sequence of layouts: a table of INSTRUCTION, whose jumps count from its first row.

    ``paths`` names the field of each instruction, for errors.
    """

    code: Any
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Each:
    """Rows for the elements of arrays.

    ``arrays``: their paths, each with a number that stands in the register ``number`` of its rows. Those in ``empty``
    give a row too where they have no element. At the beginning of each struct with a path in ``clear`` the registers
    before ``kept`` become ``ABSENT``.
    """

    arrays: Mapping[str, int]
    number: int
    empty: frozenset[str] = frozenset()
    clear: frozenset[str] = frozenset()
    kept: int = 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is captured, by path: values, arrays as where they begin and how many elements they have. And when rows are
    written."""

    values: Mapping[str, int]
    lists: Mapping[str, int] = field(default_factory=dict)
    emit: str | None = None
    stop: str | None = None
    each: Each = field(default_factory=lambda: Each({}, _NO_REGISTER))
    errors: bool = False
    """Each error code is a row."""


class _Assembler:
    def __init__(self, wanted: _Wanted) -> None:
        self.rows: list[dict[str, int]] = []
        self.paths: list[str] = []
        self.wanted = wanted
        self.target = -1
        """The instruction that a jump leads to, of those that may still be added."""

    def add(self, path: str, op: Op, **fields: int) -> int:
        if op == Op.SKIP and self.rows and self.rows[-1]["op"] == Op.SKIP and self.target != len(self.rows):
            self.rows[-1]["width"] += fields["width"]
            return len(self.rows) - 1
        self.rows.append({"op": op, "register": _NO_REGISTER} | fields)
        self.paths.append(path)
        return len(self.rows) - 1

    def jump_here(self, instruction: int) -> None:
        self.target = self.rows[instruction]["target"] = len(self.rows)

    def struct(self, layout: StructLayout, path: str) -> None:
        if path in self.wanted.each.clear:
            self.add(path, Op.CLEAR, register=self.wanted.each.kept)
        for one in layout.fields:
            name = f"{path}.{one.name}" if path else one.name
            if isinstance(one.type, StructLayout) and one.nullable:
                test = self.add(name, Op.IF_PRESENT)
                self.struct(one.type, name)
                self.jump_here(test)
            else:
                self.value(one.type, one.nullable, name)
            if name == self.wanted.emit:
                self.add(name, Op.EMIT)
            if name == self.wanted.stop:
                self.add(name, Op.STOP_EARLY)
        if layout.flexible:
            for one in layout.tagged:
                self.tagged(one, f"{path}.{one.name}" if path else one.name)
            self.add(path, Op.TAGS)

    def tagged(self, one: FieldLayout, path: str) -> None:
        """Captures what stands at fixed places of a tagged field."""
        tag, at = one.tag, 0
        assert tag is not None
        nullable = isinstance(one.type, StructLayout) and one.nullable
        inner = one.type.fields if isinstance(one.type, StructLayout) and not nullable else (one,)
        for each in inner:
            width = FIXED_SIZES.get(each.type.name) if isinstance(each.type, PrimitiveLayout) else None
            if width is None:
                break
            register = self.wanted.values.get(path if each is one else f"{path}.{each.name}", _NO_REGISTER)
            if register != _NO_REGISTER:
                self.add(path, Op.TAGGED, tag=tag, least=at, width=width, register=register)
            at += width

    def value(self, type_: TypeLayout, nullable: bool, path: str) -> None:
        if isinstance(type_, StructLayout):
            self.struct(type_, path)
            return
        if isinstance(type_, ArrayLayout):
            self.array(type_, nullable, path)
            return
        register = self.wanted.values.get(path, _NO_REGISTER)
        width = FIXED_SIZES.get(type_.name)
        if self.wanted.errors and type_.name == "int16" and path.endswith(ERROR_CODE):
            self.add(path, Op.ERROR)
        elif width is None:
            prefix = COMPACT if type_.compact else _STRING_WIDTH if type_.name == "string" else _BYTES_WIDTH
            self.add(path, Op.BYTES, width=prefix, register=register, nullable=int(nullable))
        elif register == _NO_REGISTER:
            self.add(path, Op.SKIP, width=width)
        elif type_.name == "uuid":
            self.add(path, Op.UUID, register=register)
        elif type_.name == "float64":
            raise ValueError(f"{path}: a float64 cannot be captured")
        else:
            self.add(path, Op.INT, width=width, register=register)

    def array(self, type_: ArrayLayout, nullable: bool, path: str) -> None:
        least = max(1, type_.element.min_size)
        register = self.wanted.lists.get(path, _NO_REGISTER)
        width = COMPACT if type_.compact else _COUNT_WIDTH
        fixed = isinstance(type_.element, PrimitiveLayout) and type_.element.name in FIXED_SIZES
        if register != _NO_REGISTER and isinstance(type_.element, PrimitiveLayout):
            assert fixed, "its elements have no fixed size"
        if fixed and path not in self.wanted.values and path not in self.wanted.each.arrays:
            self.add(path, Op.INTS, width=width, least=least, register=register, nullable=int(nullable))
            return
        each = self.wanted.each
        begin = self.add(path, Op.ARRAY, width=width, least=least, register=register, nullable=int(nullable))
        first = len(self.rows)
        self.value(type_.element, False, path)
        if path in each.arrays:
            self.add(path, Op.SET, register=each.number, least=each.arrays[path])
            self.add(path, Op.EMIT)
        self.add(path, Op.NEXT, target=first)
        if path in each.arrays and path in each.empty:
            past = self.add(path, Op.JUMP)
            self.jump_here(begin)
            self.add(path, Op.SET, register=each.number, least=each.arrays[path])
            self.add(path, Op.EMIT)
            self.jump_here(past)
        else:
            self.jump_here(begin)

    def program(self) -> Program:
        code = np.zeros(len(self.rows), INSTRUCTION)
        for name in INSTRUCTION.names:
            code[name] = [row.get(name, 0) for row in self.rows]
        return Program(code, tuple(self.paths))


def compile_program(
    layouts: Sequence[StructLayout],
    captures: Sequence[str] | Mapping[str, int],
    *,
    lists: Mapping[str, int] | None = None,
    emit_after: str | None = None,
    stop_after: str | None = None,
    emit_each: Each | None = None,
    errors: bool = False,
) -> Program:
    """The program that reads ``layouts`` one after the other (a header and a body).

    ``captures`` are paths of fields such as ``responses.topic``. The register of a field is its position, or the number
    that it gives itself. A path that the layouts do not have is left ``ABSENT``. ``lists`` are paths of arrays, of
    which the place of the first element and their count are captured. A row is written each time that the field
    ``emit_after`` has been read, and after each element of the arrays of ``emit_each``. ``stop_after`` ends the
    program early: what follows is not looked at. Without it, bytes after the end are an error. With ``errors`` a row is
    written for each error code that is not 0, wherever it stands. The code is its only captured field.
    """
    values = captures if isinstance(captures, Mapping) else {path: number for number, path in enumerate(captures)}
    wanted = _Wanted(values, lists or {}, emit_after, stop_after, errors=errors)
    made = _Assembler(wanted if emit_each is None else replace(wanted, each=emit_each))
    for one in layouts:
        made.struct(one, "")
    made.add("", Op.STOP)
    return made.program()


class ProgramSet:
    """Programs joined into one table, each found by a key such as ``(api_key, api_version)``.

    ``code`` is what ``locate`` takes; ``start`` gives the first instruction of a program, or -1 for an unknown key.
    """

    def __init__(self, programs: Mapping[tuple[int, int], Program], registers: int) -> None:
        self.registers = registers
        self._starts: dict[tuple[int, int], int] = {}
        self._paths: list[str] = []
        self.code: Array = np.zeros(max(1, sum(len(one.code) for one in programs.values())), INSTRUCTION)
        for key, program in programs.items():
            begin = len(self._paths)
            self._starts[key] = begin
            self._paths.extend(program.paths)
            part = self.code[begin : len(self._paths)]
            part[:] = program.code
            part["target"] += begin

    def start(self, api_key: int, api_version: int) -> int:
        """The first instruction of a program in ``code``, or -1."""
        return self._starts.get((api_key, api_version), -1)

    def starts(self, api_key: int, versions: int) -> Any:
        """``start`` for versions 0 to ``versions`` - 1 of one API, as an int64 array."""
        return np.array([self.start(api_key, version) for version in range(versions)], np.int64)

    def explain(self, instruction: int, trouble: int) -> str:
        """What a failure means: the path of the field and what is wrong with it."""
        path = self._paths[instruction]
        text = _TEXTS[Trouble(trouble)]
        return f"$.{path}: {text}" if path else f"$: {text}"


# --- programs run -----------------------------------------------------------------------------------------------------


@inlined
def _signed(buf: Array, pos: int, width: int) -> int:
    """An integer of 1, 2, 4 or 8 bytes, which are there."""
    if width == 4:
        return i32(buf, pos)
    if width == 2:
        return i16(buf, pos)
    if width == 8:
        return i64(buf, pos)
    value: int = int64(buf[pos])
    return value - ((value & 0x80) << 1)


@inlined
def _varint(buf: Array, pos: int, end: int) -> tuple[int, int, int]:
    """An unsigned varint: (value, position after it, trouble); with trouble, the position is that of its first byte."""
    value, after = unsigned_varint(buf, pos, end)
    if after == -1:
        return int64(0), int64(pos), plain(Trouble.SHORT)
    if after < 0:
        return int64(0), int64(pos), plain(Trouble.VARINT)
    return value, after, plain(Trouble.NONE)


@inlined
def length_there(buf: Array, pos: int, end: int, width: int) -> tuple[int, int, int]:
    """A length or count, -1 for null, which is any negative one, as ``_varint`` returns a number."""
    if width == COMPACT:
        length, pos, trouble = _varint(buf, pos, end)
        length -= 1
        return int64(-1) if length > MOST_LENGTH else length, pos, trouble
    if width > end - pos:
        return int64(0), int64(pos), plain(Trouble.SHORT)
    return max(int64(-1), int64(_signed(buf, pos, width))), int64(pos + width), plain(Trouble.NONE)


@inlined
def _bytes(buf: Array, pos: int, end: int, instruction: Any, registers: Array) -> tuple[int, int]:
    """A string or bytes: (position after it, trouble)."""
    length, after, trouble = length_there(buf, pos, end, instruction.width)
    if trouble != Trouble.NONE:
        return int64(pos), trouble
    if length < 0 and instruction.nullable == 0:
        return int64(pos), plain(Trouble.NULL)
    if length > end - after:
        return int64(pos), plain(Trouble.LONG)
    register = instruction.register
    if register >= 0:
        _set(registers, register, after, length)
    return after + max(int64(0), length), plain(Trouble.NONE)


@inlined
def _count(buf: Array, pos: int, end: int, instruction: Any) -> tuple[int, int, int]:
    """The count of an array: (count, position after it, trouble). Null has no elements."""
    count, after, trouble = length_there(buf, pos, end, instruction.width)
    if trouble != Trouble.NONE:
        return int64(0), int64(pos), trouble
    if count < 0 and instruction.nullable == 0:
        return int64(0), int64(pos), plain(Trouble.NULL)
    if count * instruction.least > end - after:
        return int64(0), int64(pos), plain(Trouble.COUNT)
    return count, after, plain(Trouble.NONE)


@inlined
def _tags(buf: Array, pos: int, end: int) -> tuple[int, int]:
    """Skips tagged fields: (position after them, trouble); with trouble, the position of the field that has it."""
    if pos < end and buf[pos] == 0:
        return int64(pos + 1), plain(Trouble.NONE)  # none, nearly always
    count, after, trouble = _varint(buf, pos, end)
    if trouble != Trouble.NONE:
        return int64(pos), trouble
    if count > (end - after) // LEAST_TAG:
        return int64(pos), plain(Trouble.COUNT)
    for _ in range(count):
        at = after
        _number, after, trouble = _varint(buf, at, end)
        if trouble != Trouble.NONE:
            return at, trouble
        size, after, trouble = _varint(buf, after, end)
        if trouble != Trouble.NONE:
            return at, trouble
        if size > end - after:
            return at, plain(Trouble.LONG)
        after += size
    return after, plain(Trouble.NONE)


@kernel
def _tagged(buf: Array, pos: int, end: int, instruction: Any, registers: Array) -> None:
    """Captures an integer of a tagged field. ``_tags`` says what is wrong with the section."""
    register = instruction.register
    _set(registers, register, ABSENT, ABSENT)
    count, after, trouble = _varint(buf, pos, end)
    while trouble == Trouble.NONE and count > 0:
        number, after, trouble = _varint(buf, after, end)
        if trouble != Trouble.NONE:
            break
        size, after, trouble = _varint(buf, after, end)
        if trouble != Trouble.NONE or size > end - after:
            break
        if number == instruction.tag:
            if instruction.least + instruction.width <= size:
                _set(registers, register, _signed(buf, after + instruction.least, instruction.width), 0)
            break
        after += size
        count -= 1


@kernel
def _clear(registers: Array, before: int) -> None:
    for k in range(_NUMBERS * before):
        registers[k] = ABSENT


@kernel
def skip_tags(buf: Array, pos: int) -> int:
    """Where tagged fields end that ``interpret`` has gone over already."""
    after, _ = _tags(buf, pos, int64(buf.shape[0]))
    return after


@kernel
def _steps(
    buf: Array,
    pos: int,
    end: int,
    code: Array,
    pc: int,
    depth: int,
    registers: Array,
    left: Array,
    rows: Array,
    n_rows: int,
    tag: int,
) -> tuple[int, int, int, int, int]:
    """``interpret`` from an instruction on, at ``pos`` and within ``depth`` arrays, without clearing the registers:
    (n_rows, trouble, position, instruction, depth). With FULL, the same call with these goes on."""
    trouble = plain(Trouble.NONE)
    while trouble == Trouble.NONE:
        instruction = code[pc]
        op = instruction.op
        if op == Op.SKIP:
            if instruction.width > end - pos:
                trouble = plain(Trouble.SHORT)
            else:
                pos += instruction.width
        elif op == Op.BYTES:
            pos, trouble = _bytes(buf, pos, end, instruction, registers)
        elif op == Op.INT:
            width = instruction.width
            if width > end - pos:
                trouble = plain(Trouble.SHORT)
            else:
                _set(registers, instruction.register, _signed(buf, pos, width), 0)
                pos += width
        elif op == Op.UUID:
            if end - pos < _UUID_SIZE:
                trouble = plain(Trouble.SHORT)
            else:
                _set(registers, instruction.register, pos, _UUID_SIZE)
                pos += _UUID_SIZE
        elif op == Op.ARRAY:
            count, after, trouble = _count(buf, pos, end, instruction)
            if count > 0 and depth == MAX_DEPTH:
                trouble = plain(Trouble.DEPTH)
            elif trouble == Trouble.NONE:
                pos = after
                if instruction.register >= 0:
                    _set(registers, instruction.register, after, max(int64(0), count))
                if count <= 0:
                    pc = instruction.target
                    continue
                left[depth] = count
                depth += 1
        elif op == Op.NEXT:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                pc = instruction.target
                continue
            depth -= 1
        elif op == Op.TAGS:
            pos, trouble = _tags(buf, pos, end)
        elif op == Op.IF_PRESENT:
            if pos >= end:
                trouble = plain(Trouble.SHORT)
            else:
                pos += 1
                if _signed(buf, pos - 1, 1) < 0:
                    pc = instruction.target
                    continue
        elif op == Op.EMIT:
            if n_rows == rows.shape[0]:
                trouble = plain(Trouble.FULL)
            else:
                rows[n_rows, _JOB] = tag
                for k in range(registers.shape[0]):
                    rows[n_rows, _FIRST + k] = registers[k]
                n_rows += 1
        elif op == Op.ERROR:
            if end - pos < _ERROR_SIZE:
                trouble = plain(Trouble.SHORT)
            elif (
                i16(buf, pos) == 0
                or rows.shape[0] == 0
                or (n_rows > 0 and rows[n_rows - 1, _JOB] == tag and rows[n_rows - 1, _FIRST] == i16(buf, pos))
            ):
                pos += _ERROR_SIZE
            elif n_rows == rows.shape[0]:
                trouble = plain(Trouble.FULL)
            else:
                rows[n_rows, _JOB] = tag
                rows[n_rows, _FIRST] = i16(buf, pos)
                n_rows += 1
                pos += _ERROR_SIZE
        elif op == Op.SET:
            _set(registers, instruction.register, instruction.least, 0)
        elif op == Op.CLEAR:
            _clear(registers, instruction.register)
        elif op == Op.INTS:
            count, after, trouble = _count(buf, pos, end, instruction)
            if trouble == Trouble.NONE:
                count = max(int64(0), count)
                if instruction.register >= 0:
                    _set(registers, instruction.register, after, count)
                pos = after + count * instruction.least
        elif op == Op.TAGGED:
            _tagged(buf, pos, end, instruction, registers)
        elif op == Op.JUMP:
            pc = instruction.target
            continue
        else:
            if op == Op.STOP and pos != end:
                trouble = plain(Trouble.TRAILING)
            break
        if trouble == Trouble.NONE:
            pc += 1
    return n_rows, trouble, pos, pc, depth


@kernel
def interpret(
    buf: Array,
    start: int,
    end: int,
    code: Array,
    pc: int,
    registers: Array,
    left: Array,
    rows: Array,
    n_rows: int,
    tag: int,
) -> tuple[int, int, int, int]:
    """Runs the program at instruction ``pc`` over ``buf[start:end]``.

    ``left`` (int64, MAX_DEPTH) is scratch. ``registers`` is set to ``ABSENT`` first and holds the last values
    afterwards. Each emitted row is ``tag`` and the registers. Returns (n_rows, trouble, position, instruction). Without
    trouble the program reached its end. FULL means that ``rows`` has no room for the next row.
    """
    for k in range(registers.shape[0]):
        registers[k] = ABSENT
    n_rows, trouble, pos, pc, _ = _steps(buf, int64(start), end, code, pc, int64(0), registers, left, rows, n_rows, tag)
    return n_rows, trouble, pos, pc


_PC: Final = 0
_POS: Final = 1
_DEPTH: Final = 2
_NOT_BEGUN: Final = -1


@kernel
def _run(
    buf: Array,
    jobs: Array,
    job: int,
    code: Array,
    registers: Array,
    left: Array,
    at: Array,
    rows: Array,
    failures: Array,
    n_rows: int,
) -> tuple[int, int, int]:
    """``locate`` from ``job`` until the table of rows is full: (jobs done, n_rows, n_failures).

    ``at`` is where in the job to go on: instruction (``_NOT_BEGUN``: the job has not begun), position, depth.
    """
    n_failures = int64(0)
    while job < jobs.shape[0]:
        one = jobs[job]
        pc, pos, depth = at[_PC], at[_POS], at[_DEPTH]
        if pc == _NOT_BEGUN:
            _clear(registers, registers.shape[0] // _NUMBERS)
            pc, pos, depth = one.program, one.start, int64(0)
        n_rows, trouble, pos, pc, depth = _steps(buf, pos, one.end, code, pc, depth, registers, left, rows, n_rows, job)
        if trouble == Trouble.FULL:
            at[_PC], at[_POS], at[_DEPTH] = pc, pos, depth
            break
        at[_PC] = _NOT_BEGUN
        if trouble != Trouble.NONE:
            failure = failures[n_failures]
            failure.job = job
            failure.offset = pos
            failure.instruction = pc
            failure.trouble = trouble
            n_failures += 1
        job += 1
    return job, n_rows, n_failures


@kernel
def jobs_of(frames: Array, rows: Array, begins: Array, jobs: Array, kept: Array) -> tuple[int, int]:
    """Fills ``jobs`` with those of ``rows`` of ``frames`` (FRAME) that have a program, and ``kept`` with these rows.

    ``begins`` says where programs begin, by kind of message (twice the API key, one more for responses) and version.
    It is negative where there is none. Returns how many jobs there are and how many bytes, or UNKNOWN at the first
    frame of which it says UNKNOWN, or nothing.
    """
    n, size = int64(0), int64(0)
    for k in range(rows.shape[0]):
        frame = frames[rows[k]]
        kind, version = 2 * frame.api + frame.response, int64(frame.version)
        if not (0 <= kind < begins.shape[0] and 0 <= version < begins.shape[1]):
            return int64(UNKNOWN), size
        begin = begins[kind, version]
        if begin == UNKNOWN:
            return begin, size
        if begin >= 0:
            job = jobs[n]
            job.start, job.end, job.program = frame.off, frame.off + frame.seen, begin
            kept[n] = rows[k]
            n += 1
            size += frame.seen
    return n, size


def locate(buf: Array, jobs: Array, code: Array, captures: int, engine: Engine) -> tuple[Array, Array]:
    """Runs a program over each of many frames: (rows, failures).

    ``jobs`` is a table of JOB, ``captures`` the number of captured fields. The columns of the rows are ``job_column``,
    ``value_column`` and ``length_column``; the failures are a table of FAILURE.
    """
    parts = list(locate_parts(buf, jobs, code, captures, engine, int(np.iinfo(np.int64).max)))
    return parts[0] if parts else (np.empty((0, _FIRST + _NUMBERS * captures), np.int64), np.empty(0, FAILURE))


def locate_parts(
    buf: Array, jobs: Array, code: Array, captures: int, engine: Engine, most: int
) -> Iterator[tuple[Array, Array]]:
    """What ``locate`` gives, ``most`` rows at a time: a part may end within a frame.

    A failure comes with the last rows of its frame, or after them in a part of its own.
    """
    registers = registers_of(captures)
    left = np.empty(MAX_DEPTH, np.int64)
    at = np.full(_DEPTH + 1, _NOT_BEGUN, np.int64)
    rows = np.empty((min(most, max(_LEAST_ROWS, len(jobs) * 2)), _FIRST + len(registers)), np.int64)
    failures = np.empty(len(jobs), FAILURE)
    run = engine(_run)
    job = n_rows = n_failures = 0
    while job < len(jobs):
        job, n_rows, new = run(buf, jobs, job, code, registers, left, at, rows, failures[n_failures:], n_rows)
        n_failures += new
        if job < len(jobs) and len(rows) < most:
            rows = grown(rows)[:most]
            continue
        # The table is used again, for what is left. Of its room that was never written to there is no memory.
        yield rows[:n_rows].copy() if job < len(jobs) else rows[:n_rows], joined([failures[:n_failures]])
        n_rows = n_failures = 0
