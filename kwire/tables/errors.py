"""The column ``errors``: which errors the responses tell of, found by programs, without objects.

Rules kept here:

- An error is an ``error_code`` other than 0 (``NONE``), at the top or in whatever the response lists, or a field whose
  name ends so (``partition_error_code``). Each is named once, in the order of the response; one without a name is its
  number.
- Null: a request, and a response that cannot be read to its end. A response without an error has an empty list.
- An ApiVersions response that fell back to version 0 has the error that says so.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.kernels.programs import Program, compile_errors, job_column, value_column
from kwire.protocol.error_codes import ErrorCode, error_name
from kwire.schema.keys import ApiKey
from kwire.tables.locating import Programs, layouts

__all__ = ["TYPE", "Errors"]

Array = Any

TYPE: Final = pa.list_(pa.field("element", pa.string(), nullable=True))

_BODY: Final = 4
"""Where the body of an ApiVersions response begins: behind the correlation id."""
_FALLBACK_HEAD: Final = 6
_FALLBACK_ELEMENT: Final = 6
"""Bytes of version 0 of it: the error and a count; of each element."""


class Errors:
    """Makes the column for the frames of a capture."""

    def __init__(self) -> None:
        self._programs = Programs(_program, 1)

    def column(self, frames: Frames, first: int, readable: Array) -> pa.Array:
        """Of the rows from ``first`` on; ``readable``: which of them are responses that may be read."""
        rows = np.flatnonzero(readable) + first
        if not len(rows):
            return pa.nulls(len(readable), TYPE)
        rows, found, failures = self._programs.run(frames, rows)
        there = np.zeros(len(readable), bool)
        there[rows - first] = True
        row = rows[job_column(found)] - first
        codes = value_column(found, 0)
        there[np.array([one.row for one in failures], np.int64) - first] = False
        kept = there[row]
        row, codes = row[kept], codes[kept]
        if not len(row) and np.array_equal(there, readable):
            # No errors, as in most windows.
            nothing = pa.array(np.zeros(len(readable) + 1, np.int32))
            return pa.ListArray.from_arrays(nothing, pa.array([], pa.string()), type=TYPE, mask=pa.array(~there))
        older = [one for one in np.flatnonzero(readable & ~there).tolist() if _fell_back(frames, first + one)]
        if older:
            there[older] = True
            row = np.concatenate((row, np.array(older, np.int64)))
            codes = np.concatenate((codes, np.full(len(older), ErrorCode.UNSUPPORTED_VERSION, np.int64)))
        # Each code once for each row, where it stands first.
        _, place = np.unique(row << 16 | codes & 0xFFFF, return_index=True)
        place.sort()
        row, codes = row[place], codes[place]
        order = np.argsort(row, kind="stable")
        used, index = np.unique(codes[order], return_inverse=True)
        names = pa.array([error_name(code) or str(code) for code in used.tolist()], pa.string())
        ends = np.cumsum(np.bincount(row, minlength=len(readable)))
        offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, names.take(pa.array(index)), type=TYPE, mask=pa.array(~there))


def _program(api: int, response: int, version: int) -> Program | None:
    known = layouts(api, response, version)
    return None if known is None else compile_errors(known)


def _fell_back(frames: Frames, row: int) -> bool:
    """Whether a response that is not of its version is ApiVersions in version 0, with the error that says why."""
    if frames["api"][row] != ApiKey.API_VERSIONS:
        return False
    body = frames.bytes_of(row)[_BODY:]
    error, count = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:_FALLBACK_HEAD], "big", signed=True)
    size = _FALLBACK_HEAD + max(0, count) * _FALLBACK_ELEMENT
    return error == ErrorCode.UNSUPPORTED_VERSION and len(body) >= size > _FALLBACK_HEAD - 1
