"""Headers of whole columns of records: which there are, and the value of one of them in each record.

The names of all headers of a batch are numbered: there are few different ones. So what is asked of a name is asked
once, and not once for each record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Headers"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Headers:
    """The headers of a batch: ``names`` are the different ones, ``number`` says which one has, ``row`` whose it is.

    ``headers``: an array of ``kwire.records.arrow_types.HEADERS``, or of a list of structs of a name and bytes. A
    record without headers may be null.
    """

    def __init__(self, headers: pa.Array) -> None:
        self.rows: Final = len(headers)
        keys, values = headers.flatten().flatten()
        self.values: pa.Array = values
        numbered = keys.dictionary_encode()
        self.names: list[str | None] = numbered.dictionary.to_pylist()
        self.number: Numbers = numbered.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        self.row: Numbers = pc.list_parent_indices(headers).to_numpy(zero_copy_only=False).astype(np.int64)

    def column(self, name: str, *, last: bool = False) -> tuple[pa.Array, Numbers]:
        """The first (or last) value of a header in each record, null where it is not there, and how often it is."""
        at = np.full(self.rows, -1, np.int64)
        if name not in self.names:
            return self.values.take(pa.array(at, mask=at < 0)), np.zeros(self.rows, np.int64)
        found = np.flatnonzero(self.number == self.names.index(name))
        rows = self.row[found]
        # The last assignment to an element stands.
        order = slice(None) if last else slice(None, None, -1)
        at[rows[order]] = found[order]
        return self.values.take(pa.array(at, mask=at < 0)), np.bincount(rows, minlength=self.rows)

    def which(self, test: Callable[[str], bool]) -> Mask:
        """The headers whose name passes a test, which is made once for each name."""
        table = np.array([name is not None and test(name) for name in self.names] + [False], bool)
        made: Mask = table[self.number]
        return made
