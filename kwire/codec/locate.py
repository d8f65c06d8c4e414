"""Finds fields inside bodies without building objects: layouts compiled to a small program that one kernel runs.

Strategy: a layout (``kwire.schema.model``) becomes a list of instructions, four numbers each: skip n bytes, skip a
string, begin an array, capture a field into a register, write the registers out as a row. ``interpret`` runs such a
program over the bytes of one frame, ``locate`` over many. So there is no parser written by hand for any version,
and no compilation per version: the programs are data, and the kernel that runs them is compiled once.

Rules kept here:

- Every length is checked against the end of the frame where it is read, an array's count against the least size of its
  elements, as both codecs do. The program stops at the first thing that does not fit and says where; the rows that
  it has written by then stay valid.
- A captured field is two numbers: the value and 0 for an integer, the offset in the buffer and the length for anything
  else (length -1: null). ``ABSENT`` stands for a field that the version does not have or that was not reached.
- Registers keep their values until the field is met again, so a row of an inner array carries the fields of the
  elements around it (topic of a partition) and of the message before it (acks).
- A tagged field is skipped by its declared size and cannot be captured: no field that is wanted here is tagged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kwire.jit import be32, int16, int32, int64, kernel
from kwire.schema.model import FIXED_SIZES, ArrayLayout, StructLayout, TypeLayout

__all__ = [
    "ABSENT",
    "FAILURE_COLUMNS",
    "JOB_COLUMNS",
    "Program",
    "ProgramSet",
    "compile_program",
    "interpret",
    "locate",
]

ABSENT: Final = -(1 << 62)
"""In a register: no value."""

_STOP: Final = 0
_SKIP: Final = 1
"""a: bytes"""
_INT: Final = 2
"""a: width in bytes, b: register"""
_UUID: Final = 3
"""b: register"""
_BYTES: Final = 4
"""a: 2 int16 length, 4 int32 length, 1 compact length; b: register or -1; c: 1 if nullable"""
_ARRAY: Final = 5
"""a: 1 compact; b: least size of an element; c: instruction after the array"""
_NEXT: Final = 6
"""c: first instruction of the element"""
_IF_PRESENT: Final = 7
"""c: instruction after the nullable struct"""
_TAGS: Final = 8
_EMIT: Final = 9

MAX_DEPTH: Final = 16
"""Arrays inside arrays: Kafka's messages go to 4."""

# What went wrong, as numbers for the kernel.
OK: Final = 0
_PROBLEMS: Final = (
    "",
    "the frame ends within it",
    "its length is negative",
    "its length is more than the bytes left",
    "its count is more than the bytes left can hold",
    "an unsigned varint has more than 5 bytes",
    "it may not be null",
    "its arrays are nested too deeply",
    "bytes are left after the end of the message",
)
_SHORT: Final = 1
_NEGATIVE: Final = 2
_LONG: Final = 3
_COUNT: Final = 4
_VARINT: Final = 5
_NULL: Final = 6
_DEPTH: Final = 7
_TRAILING: Final = 8
FULL: Final = 9
"""Not a problem of the input."""

# Columns of the table of frames to look at.
JOB_START: Final = 0
JOB_END: Final = 1
JOB_CODE: Final = 2
"""First instruction of the frame's program in the joined code."""
JOB_COLUMNS: Final = 3

# Columns of the table of failures.
FAIL_JOB: Final = 0
FAIL_OFFSET: Final = 1
"""In the buffer."""
FAIL_CODE: Final = 2
"""The instruction that failed, in the joined code."""
FAIL_WHY: Final = 3
FAILURE_COLUMNS: Final = 4


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions for one sequence of layouts. ``code`` is int64 of shape (n, 4), jumps count from its first row.

    ``paths`` names the field of each instruction, for errors.
    """

    code: Any
    paths: tuple[str, ...]


class _Assembler:
    def __init__(self, registers: Mapping[str, int], emit: str | None, stop: str | None) -> None:
        self.rows: list[list[int]] = []
        self.paths: list[str] = []
        self.registers = registers
        self.emit = emit
        self.stop = stop
        self.target = -1
        """The instruction that a jump leads to, of those that may still be added."""

    def add(self, path: str, op: int, a: int = 0, b: int = 0, c: int = 0) -> int:
        if op == _SKIP and self.rows and self.rows[-1][0] == _SKIP and self.target != len(self.rows):
            self.rows[-1][1] += a
            return len(self.rows) - 1
        self.rows.append([op, a, b, c])
        self.paths.append(path)
        return len(self.rows) - 1

    def struct(self, layout: StructLayout, path: str) -> None:
        for one in layout.fields:
            name = f"{path}.{one.name}" if path else one.name
            if isinstance(one.type, StructLayout) and one.nullable:
                test = self.add(name, _IF_PRESENT)
                self.struct(one.type, name)
                self.target = self.rows[test][3] = len(self.rows)
            else:
                self.value(one.type, one.nullable, name)
            if name == self.emit:
                self.add(name, _EMIT)
            if name == self.stop:
                self.add(name, _STOP, 1)
        if layout.flexible:
            self.add(path, _TAGS)

    def value(self, type_: TypeLayout, nullable: bool, path: str) -> None:
        if isinstance(type_, StructLayout):
            self.struct(type_, path)
            return
        if isinstance(type_, ArrayLayout):
            least = max(1, type_.element.min_size)
            begin = self.add(path, _ARRAY, int(type_.compact), least)
            first = len(self.rows)
            self.value(type_.element, False, path)
            self.add(path, _NEXT, c=first)
            self.target = self.rows[begin][3] = len(self.rows)
            return
        register = self.registers.get(path, -1)
        width = FIXED_SIZES.get(type_.name)
        if width is None:
            prefix = 1 if type_.compact else 2 if type_.name == "string" else 4
            self.add(path, _BYTES, prefix, register, int(nullable))
        elif register < 0:
            self.add(path, _SKIP, width)
        elif type_.name == "uuid":
            self.add(path, _UUID, b=register)
        elif type_.name == "float64":
            raise ValueError(f"{path}: a float64 cannot be captured")
        else:
            self.add(path, _INT, width, register)


def compile_program(
    layouts: Sequence[StructLayout],
    captures: Sequence[str],
    *,
    emit_after: str | None = None,
    stop_after: str | None = None,
) -> Program:
    """The program that reads ``layouts`` one after the other (a header, then a body).

    ``captures`` are dotted paths such as ``responses.topic``, whose position is the number of their register; a
    path that the layouts do not have is left ``ABSENT``. A row is written each time that the field ``emit_after``
    has been read. ``stop_after`` ends the program early: what follows is not looked at. Without it, bytes after the
    end are an error.
    """
    made = _Assembler({path: number for number, path in enumerate(captures)}, emit_after, stop_after)
    for one in layouts:
        made.struct(one, "")
    made.add("", _STOP)
    return Program(np.array(made.rows, np.int64), tuple(made.paths))


class ProgramSet:
    """Programs joined into one code array, each found by a key such as ``(api_key, api_version)``.

    ``code`` is what ``locate`` takes; ``start`` gives the first instruction of a program, or -1 for an unknown key.
    """

    def __init__(self, programs: Mapping[tuple[int, int], Program], registers: int) -> None:
        self.registers = registers
        self._starts: dict[tuple[int, int], int] = {}
        self._paths: list[str] = []
        parts = []
        for key, program in programs.items():
            begin = len(self._paths)
            code = program.code.copy()
            jumps = np.isin(code[:, 0], (_ARRAY, _NEXT, _IF_PRESENT))
            code[jumps, 3] += begin
            parts.append(code)
            self._starts[key] = begin
            self._paths.extend(program.paths)
        self.code = np.concatenate(parts) if parts else np.zeros((1, 4), np.int64)

    def start(self, api_key: int, api_version: int) -> int:
        """The first instruction of a program in ``code``, or -1."""
        return self._starts.get((api_key, api_version), -1)

    def starts(self, api_key: int, versions: int) -> Any:
        """``start`` for versions 0 to ``versions`` - 1 of one API, as an int64 array."""
        return np.array([self.start(api_key, version) for version in range(versions)], np.int64)

    def explain(self, instruction: int, why: int) -> str:
        """What a failure means: the path of the field and what is wrong with it."""
        path = self._paths[instruction]
        return f"$.{path}: {_PROBLEMS[why]}" if path else f"$: {_PROBLEMS[why]}"


Array = Any


@kernel
def _uvarint(buf: Array, pos: int, end: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits: (value, position after it), or (problem, -1)."""
    value = int64(0)
    shift = int64(0)
    while True:
        if pos >= end:
            return int64(_SHORT), int64(-1)
        byte = int64(buf[pos])
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFF, int64(pos)
        shift += 7
        if shift > 28:
            return int64(_VARINT), int64(-1)


@kernel
def _signed(buf: Array, pos: int, width: int) -> int:
    if width == 4:
        return int32(buf, pos)
    if width == 2:
        return int16(buf, pos)
    if width == 8:
        return (int32(buf, pos) << 32) | be32(buf, pos + 4)
    value: int = int64(buf[pos])
    return value - 256 if value >= 128 else value


@kernel
def interpret(
    buf: Array, start: int, end: int, code: Array, pc: int, regs: Array, left: Array, rows: Array, n_rows: int, tag: int
) -> tuple[int, int, int, int]:
    """Runs the program at instruction ``pc`` over ``buf[start:end]``.

    ``left`` (int64, MAX_DEPTH) is scratch. ``regs`` (int64, two for each captured field) is set to ``ABSENT`` first and
    holds the last values afterwards. Each emitted row is ``tag`` and the registers. Returns (n_rows, problem, position,
    instruction); a problem of 0 means that the program reached its end, FULL that ``rows`` has no room for the next
    one. It neither makes nor returns an array: in a kernel that costs more than a short program.
    """
    for k in range(regs.shape[0]):
        regs[k] = ABSENT
    depth = 0
    pos = int64(start)
    while True:
        op = code[pc, 0]
        if op == _SKIP:
            if code[pc, 1] > end - pos:
                return n_rows, _SHORT, pos, pc
            pos += code[pc, 1]
            pc += 1
        elif op == _BYTES:
            kind = code[pc, 1]
            at = pos
            if kind == 1:
                length, pos = _uvarint(buf, pos, end)
                if pos < 0:
                    return n_rows, length, at, pc
                length -= 1
            else:
                if kind > end - pos:
                    return n_rows, _SHORT, at, pc
                length = _signed(buf, pos, kind)
                pos += kind
            if length < -1:
                return n_rows, _NEGATIVE, at, pc
            if length == -1 and code[pc, 3] == 0:
                return n_rows, _NULL, at, pc
            if length > end - pos:
                return n_rows, _LONG, at, pc
            register = code[pc, 2]
            if register >= 0:
                regs[2 * register] = pos
                regs[2 * register + 1] = length
            if length > 0:
                pos += length
            pc += 1
        elif op == _INT:
            width = code[pc, 1]
            if width > end - pos:
                return n_rows, _SHORT, pos, pc
            register = code[pc, 2]
            regs[2 * register] = _signed(buf, pos, width)
            regs[2 * register + 1] = 0
            pos += width
            pc += 1
        elif op == _UUID:
            if end - pos < 16:
                return n_rows, _SHORT, pos, pc
            register = code[pc, 2]
            regs[2 * register] = pos
            regs[2 * register + 1] = 16
            pos += 16
            pc += 1
        elif op == _ARRAY:
            at = pos
            if code[pc, 1] == 1:
                count, pos = _uvarint(buf, pos, end)
                if pos < 0:
                    return n_rows, count, at, pc
                count -= 1
            else:
                if end - pos < 4:
                    return n_rows, _SHORT, at, pc
                count = _signed(buf, pos, 4)
                pos += 4
            if count < -1:
                return n_rows, _NEGATIVE, at, pc
            if count > (end - pos) // code[pc, 2]:
                return n_rows, _COUNT, at, pc
            if count <= 0:
                pc = code[pc, 3]
            else:
                if depth == MAX_DEPTH:
                    return n_rows, _DEPTH, at, pc
                left[depth] = count
                depth += 1
                pc += 1
        elif op == _NEXT:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                pc = code[pc, 3]
            else:
                depth -= 1
                pc += 1
        elif op == _TAGS:
            at = pos
            count, pos = _uvarint(buf, pos, end)
            if pos < 0:
                return n_rows, count, at, pc
            if count > (end - pos) // 2:
                return n_rows, _COUNT, at, pc
            for _ in range(count):
                at = pos
                number, pos = _uvarint(buf, pos, end)
                if pos < 0:
                    return n_rows, number, at, pc
                size, pos = _uvarint(buf, pos, end)
                if pos < 0:
                    return n_rows, size, at, pc
                if size > end - pos:
                    return n_rows, _LONG, at, pc
                pos += size
            pc += 1
        elif op == _IF_PRESENT:
            if pos >= end:
                return n_rows, _SHORT, pos, pc
            flag = _signed(buf, pos, 1)
            pos += 1
            pc = code[pc, 3] if flag < 0 else pc + 1
        elif op == _EMIT:
            if n_rows == rows.shape[0]:
                return n_rows, FULL, pos, pc
            rows[n_rows, 0] = tag
            for k in range(regs.shape[0]):
                rows[n_rows, 1 + k] = regs[k]
            n_rows += 1
            pc += 1
        else:  # _STOP
            if pos != end and code[pc, 1] == 0:
                return n_rows, _TRAILING, pos, pc
            return n_rows, OK, pos, pc


@kernel
def locate(buf: Array, jobs: Array, code: Array, registers: int) -> tuple[Array, Array]:
    """Runs a program over each of many frames: (rows, failures).

    ``jobs`` is int64 (n, JOB_COLUMNS). A row is the number of its job and two numbers for each register, a failure has
    FAILURE_COLUMNS numbers.
    """
    regs = np.empty(2 * registers, np.int64)
    left = np.empty(MAX_DEPTH, np.int64)
    rows = np.empty((max(16, jobs.shape[0] * 2), 1 + 2 * registers), np.int64)
    failures = np.empty((jobs.shape[0], FAILURE_COLUMNS), np.int64)
    n_rows = 0
    n_failures = 0
    for job in range(jobs.shape[0]):
        before = n_rows
        while True:
            n_rows, problem, pos, pc = interpret(
                buf, jobs[job, JOB_START], jobs[job, JOB_END], code, jobs[job, JOB_CODE], regs, left, rows, before, job
            )
            if problem != FULL:
                break
            bigger = np.empty((rows.shape[0] * 2, rows.shape[1]), np.int64)
            bigger[:before] = rows[:before]
            rows = bigger
        if problem != OK:
            failures[n_failures, FAIL_JOB] = job
            failures[n_failures, FAIL_OFFSET] = pos
            failures[n_failures, FAIL_CODE] = pc
            failures[n_failures, FAIL_WHY] = problem
            n_failures += 1
    return rows[:n_rows].copy(), failures[:n_failures].copy()
