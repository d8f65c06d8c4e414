"""The column ``errors``: the errors that a response reports, found by programs, without objects.

Rules kept here:

- An error is an ``error_code`` other than 0 (``NONE``), at the top or in an array of the response. A field whose name
  ends so counts too (``partition_error_code``). Tagged fields do not count.
- Each error is named once, in the order of the response. An error without a name is its number.
- Null: a request, and a response that cannot be read to its end. A response without an error has an empty list.
- An ApiVersions response that fell back to version 0 has the error that says so.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.protocol.error_codes import error_name

__all__ = ["TYPE", "column"]

Array = Any

TYPE: Final = pa.list_(pa.field("element", pa.string(), nullable=True))
"""Type (``pyarrow.ListType``) of the column ``errors``: names of error codes."""
_NO_NAMES: Final = pa.array([], pa.string())


def column(frames: Frames, first: int, readable: Array, newer: Array | None) -> pa.Array:
    """Of the rows from ``first`` on. ``readable``: which of them are responses that may be read. ``newer``: which are
    of ApiVersions in a version without a layout, None for none. It is written to."""
    if not readable.any():
        return pa.nulls(len(readable), TYPE)
    unreadable, row, codes = frames.error_codes
    here = slice(first, first + len(readable))
    there = readable & ~unreadable[here]
    if len(row):
        errors = slice(*np.searchsorted(row, (here.start, here.stop)))
        row, codes = row[errors] - first, codes[errors]
    if newer is not None:
        # They are not read, unless they fell back to a version that has one.
        newer[row] = False
        there &= ~newer
    if len(row):
        kept = there[row]
        row, codes = row[kept], codes[kept]
    if not len(row):
        # No errors, as in most windows.
        nulls = len(there) - int(np.count_nonzero(there))
        valid = pa.py_buffer(np.packbits(there, bitorder="little")) if nulls else None
        ends = pa.py_buffer(np.zeros(len(there) + 1, np.int32))
        return pa.Array.from_buffers(TYPE, len(there), [valid, ends], nulls, children=[_NO_NAMES])
    # Each code once for each row, where it stands first.
    _, place = np.unique(row << 16 | codes & 0xFFFF, return_index=True)
    place.sort()
    row, codes = row[place], codes[place]
    used, index = np.unique(codes, return_inverse=True)
    names = pa.array([error_name(code) or str(code) for code in used.tolist()], pa.string())
    ends = np.cumsum(np.bincount(row, minlength=len(readable)))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, names.take(pa.array(index)), type=TYPE, mask=pa.array(~there))
