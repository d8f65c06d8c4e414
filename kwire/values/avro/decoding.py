"""A column of Avro values to a column of Arrow, whatever schemas they were written with.

Strategy: the first rows show how much room each column needs for all of them. Then one call of the kernel does the
rest, with more room where it asks for it.

Rules kept here:

- A value that cannot be read is null, with a status and an error. The other rows stay.
- What memory is asked for stands in proportion to the bytes that are read, and to ``Limits.total``. A row that needs
  more is ``too_large``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwire.errors import KwireError, LimitError
from kwire.kernels.avro import PROGRAM_FAILURE, Trouble
from kwire.kernels.avro_lanes import run
from kwire.kernels.engine import MIXED, Engine, choose
from kwire.limits import BEYOND, DEFAULT_LIMITS, Limits, check_limits
from kwire.records.constants import CONSTANTS
from kwire.records.window import writable
from kwire.values.avro.arrays import array_of
from kwire.values.avro.memory import Columns
from kwire.values.avro.programs import Programs, programs_of
from kwire.values.avro.schema import Schema

__all__ = ["STATUSES", "Coded", "Decoded", "coded", "decode"]

Array = Any

STATUSES: Final = ("ok", "malformed", "unresolved", "too_large")
"""The words of ``Decoded.status``.

- ``malformed``: the bytes are no value of the writer's schema.
- ``unresolved``: the value has no place in the reader's schema.
- ``too_large``: there is no memory for it.
"""

_MALFORMED: Final = STATUSES.index("malformed")
_UNRESOLVED: Final = STATUSES.index("unresolved")
_TOO_LARGE: Final = STATUSES.index("too_large")

FIRST: Final = 1000
"""Rows that show how much room the others need."""
STEP: Final = 200
"""Rows that Python reads before it looks again whether there is machine code."""
SPARE: Final = 64
"""Bytes of a buffer that has none."""
FAILURES: Final = 1024
"""Failures that are noted before they are worded."""


class Coded(NamedTuple):
    """What became of a column, as ``Decoded``, but for ``status``: the place in ``STATUSES`` (int8). Of a row that has
    no value it is -1."""

    values: pa.Array
    status: Array
    errors: pa.Array


class Decoded(NamedTuple):
    """What became of a column: arrays of as many rows.

    - ``values``: of the type ``Schema.arrow_type`` of the reader's schema.
    - ``status``: a word of ``STATUSES``, null where there was no value.
    - ``errors``: null, or what is wrong: the path, the byte of the value, a sentence.
    """

    values: pa.Array
    status: pa.Array
    errors: pa.Array


def decode(
    array: pa.Array,
    writers: Sequence[Schema],
    which: Array | None = None,
    starts: Array | int | None = None,
    reader: Schema | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    spark: bool = False,
    recursive: str = "refuse",
) -> Decoded:
    """The values of ``array``, of bytes, as a column.

    - ``writers``: the schemas that values were written with.
    - ``which``: for each row the number of its schema, int32; a negative one makes the row null. By default 0.
    - ``starts``: the byte at which a value begins, after what frames it: for each row, or one for all. By default 0.
    - ``reader``: the schema of the column, by default the last of ``writers``.
    - ``spark``, ``recursive``: see ``Schema.arrow_type``.

    Raises ``KwireError`` for schemas that cannot be a column, ``LimitError`` where so many rows of so many columns are
    beyond ``Limits.total`` and in no proportion to their bytes. No value raises.
    """
    made = coded(array, writers, which, starts, reader, limits=limits, spark=spark, recursive=recursive)
    rows = len(made.status)
    if not made.status.any():
        return Decoded(made.values, CONSTANTS.get(pa.string(), STATUSES[0], rows), made.errors)
    return Decoded(made.values, pa.array(STATUSES).take(pa.array(made.status, mask=made.status < 0)), made.errors)


def coded(
    array: pa.Array,
    writers: Sequence[Schema],
    which: Array | None = None,
    starts: Array | int | None = None,
    reader: Schema | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    spark: bool = False,
    recursive: str = "refuse",
) -> Coded:
    """As ``decode``, with the status as a number."""
    check_limits(limits)
    if not writers:
        raise KwireError("no Avro schema is given")
    programs = programs_of(tuple(writers), writers[-1] if reader is None else reader, spark, recursive)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return _Decoding(_binary(array), programs, which, starts, limits).result()


class _Decoding:
    def __init__(
        self, array: pa.Array, programs: Programs, which: Array | None, starts: Array | int | None, limits: Limits
    ) -> None:
        self.programs = programs
        rows = self.rows = len(array)
        self.buffer, self.begins, self.ends = _places(array)
        self.origins = self.begins
        """Where the bytes of each row begin, with what frames the value."""
        if starts is not None:
            if np.shape(starts) not in ((), (rows,)):
                raise ValueError("starts must be a number, or one for each row")
            self.begins = self.begins + np.asarray(starts, np.int64)
        if rows and (self.begins.min() < 0 or self.ends.max() > len(self.buffer)):
            raise ValueError("values lie outside of their array")
        self.run_of = self._programs_of_rows(array, which)
        self.size = int((self.ends - self.begins).sum()) if rows else 0
        self.columns = Columns(programs, self.size, limits)
        self.limits = limits
        self.failures: Array = np.zeros(FAILURES, PROGRAM_FAILURE)
        self.bad: list[tuple[int, int, str]] = []

    def _programs_of_rows(self, array: pa.Array, which: Array | None) -> Array:
        starts = self.programs.starts
        if which is None:
            found = np.full(self.rows, starts[0], np.int64)
        else:
            which = np.asarray(which)
            if which.shape != (self.rows,):
                raise ValueError("which must have a number for each row")
            if self.rows and which.max() >= len(starts):
                raise ValueError("which names a schema that is not there")
            found = np.where(which < 0, -1, starts[np.maximum(which, 0)])
        if array.null_count:
            found[array.is_null().to_numpy(zero_copy_only=False)] = -1
        return found

    def result(self) -> Coded:
        first = min(FIRST, self.rows)
        size = int((self.ends[:first] - self.begins[:first]).clip(0).sum())
        if not self.columns.begin(first, size):
            raise self.too_much(first)
        engine = choose(self.size)
        self.read(first, engine)
        if first < self.rows:
            if not self.columns.grow(self.rows, asked=False):
                raise self.too_much(self.rows)
            self.read(self.rows, engine)
        return self.made()

    def too_much(self, rows: int) -> LimitError:
        return LimitError(
            f"{rows:,} rows of so many columns are {BEYOND} total of {self.limits.total}: decode fewer at once"
        )

    def read(self, last: int, engine: Engine) -> None:
        """Reads the rows up to ``last``, for which there is room in domain 0."""
        columns, state = self.columns, self.columns.state
        program, memory = columns.program, columns.memory
        row = columns.count(0)
        while row < last:
            until = min(last, row + STEP) if engine is MIXED and not engine.compiles(run) else last
            row, found, trouble = engine(run)(
                self.buffer,
                self.begins,
                self.ends,
                self.run_of,
                row,
                until,
                program,
                state,
                columns.lanes,
                memory,
                self.failures,
            )
            self.note(self.failures[:found])
            if trouble == Trouble.FULL:
                if not columns.grow(last, asked=True):
                    self.run_of[row] = self.programs.too_large
                else:
                    program, memory = columns.program, columns.memory

    def note(self, failures: Array) -> None:
        for row, offset, instruction, trouble in zip(
            *(failures[name].tolist() for name in ("row", "offset", "instruction", "trouble")), strict=True
        ):
            if trouble == Trouble.LARGE:
                said = f"the value needs memory {BEYOND} total of {self.limits.total}"
                self.bad.append((row, _TOO_LARGE, said))
                continue
            path, said = self.programs.said(instruction, trouble)
            status = _UNRESOLVED if trouble in (Trouble.UNRESOLVED, Trouble.SYMBOL) else _MALFORMED
            self.bad.append((row, status, f"{path} at byte {offset - int(self.origins[row])}: {said}"))

    def made(self) -> Coded:
        rows = self.rows
        values = array_of(self.programs.layout.root, self.columns)
        # A row that needs too much has a program. So only those without a value have none.
        status: Array = -(self.run_of < 0).view(np.int8)
        errors = CONSTANTS.get(pa.string(), None, rows)
        if self.bad:
            texts: Array = np.full(rows, None, object)
            for row, code, text in self.bad:
                status[row], texts[row] = code, text
            errors = pa.array(texts, pa.string())
        return Coded(values, status, errors)


def _binary(array: pa.Array) -> pa.Array:
    """An array of bytes as kernels read it. Raises ``KwireError`` for another one."""
    kind = array.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return array
    if pa.types.is_null(kind) or pa.types.is_fixed_size_binary(kind) or kind == pa.binary_view():
        return array.cast(pa.large_binary())
    raise KwireError(f"Avro values are a column of bytes, not of the type {kind}")


def _places(array: pa.Array) -> tuple[Array, Array, Array]:
    """The bytes of an array, and where each value begins and ends."""
    _, offsets, data = array.buffers()
    wide = pa.types.is_large_binary(array.type)
    if len(array) == 0 or offsets is None:
        none = np.zeros(0, np.int64)
        return np.zeros(SPARE, np.uint8), none, none
    places = np.frombuffer(offsets, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    places = places.astype(np.int64)
    buffer = np.zeros(SPARE, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    return writable(buffer), places[:-1], places[1:]
