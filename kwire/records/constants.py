"""Arrow arrays that hold one value again and again, shared between calls.

Much of a table is the same in all rows of a window: the capture, the topic, the codec, a status, or nothing. Such a
column needs no memory of its own, and no time.

Rule kept here: what is kept is bounded in bytes, whatever the values are.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from kwire.errors import MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("records as columns", "capture") from _missing

from kwire.records.arrow_types import DICTIONARY, HEADERS

__all__ = ["CONSTANTS", "Constants"]

KEPT: Final = 64 << 20
"""Bytes of all arrays that are kept."""
LARGEST: Final = 8 << 20
"""Bytes of one that is kept."""
_PLAIN: Final = frozenset(
    one.id for one in (pa.string(), pa.binary(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64())
)
"""Types that are known by their numbers."""
_HEADERS: Final = -1
"""In place of the number of ``HEADERS``."""


class Constants:
    """The arrays, by type and value: those used last, as many as ``KEPT`` allows."""

    def __init__(self) -> None:
        self._made: dict[tuple[Any, Any], Any] = {}
        self._bytes = 0
        """Of all that is in ``_made``: each new one would otherwise take as long as there are others."""
        self._lock = Lock()

    def get(self, kind: pa.DataType, value: Any, rows: int) -> pa.Array:
        """``rows`` times ``value``; None is null, and ``()`` no headers."""
        # What arrow types are as keys takes longer than all else here.
        number = kind.id
        key = (number if number in _PLAIN else _HEADERS if kind is HEADERS else kind), value
        made = self._made.get(key)
        if made is None or len(made) < rows:
            if value is None and kind == DICTIONARY:
                return pa.nulls(rows, kind)
            # More rows are asked for as a rule, where windows grow. The name of a small file is asked for once.
            size = max(1 << (rows - 1).bit_length() if rows else 0, 64)
            width = 4 + (len(value.encode("utf-8", "replace")) if isinstance(value, str) else 8)
            if size * width > LARGEST:
                return _repeated(kind, value, rows)
            made = _repeated(kind, value, size)
            self._keep(key, made)
        return made.slice(0, rows)

    def _keep(self, key: tuple[Any, Any], made: pa.Array) -> None:
        with self._lock:
            before = self._made.pop(key, None)
            self._made[key] = made
            self._bytes += made.nbytes - (0 if before is None else before.nbytes)
            while self._bytes > KEPT:
                self._bytes -= self._made.pop(next(iter(self._made))).nbytes


def _repeated(kind: pa.DataType, value: Any, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, kind)
    if kind == HEADERS:
        # Arrow would make a scalar of each row. Lists without elements are offsets of zero.
        ends = pa.py_buffer(np.zeros(rows + 1, np.int32))
        return pa.Array.from_buffers(kind, rows, [None, ends], 0, children=[pa.array([], kind.value_type)])
    if kind == DICTIONARY:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value], pa.string()))
    return pa.repeat(pa.scalar(value, kind), rows)


CONSTANTS: Final = Constants()
"""Those of the process."""
