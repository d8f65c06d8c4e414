"""Where rows are cut into Arrow batches, by how much they are.

Arrow's text, binary and list columns count with an int32. So one batch can have at most 2 GiB of one column, or 2**31
list elements. What is the same for many rows (the name of a topic, of a file) is written again for each of them. So
little input can be much text. Whoever makes a batch therefore counts first, and cuts where it becomes too much.

Rule kept here: batches end far below what Arrow can hold, so that what is counted may be about right only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

__all__ = ["MOST_BYTES", "MOST_ROWS", "batch_ranges", "text_size"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

MOST_ROWS: Final = 1 << 20
"""Rows of a batch."""
MOST_BYTES: Final = 16 << 20
"""Bytes of text in a batch, more only where a single row has more."""


def batch_ranges(
    costs: Ints, counts: Ints | None = None, *, most: int = MOST_BYTES, most_rows: int = MOST_ROWS
) -> Iterator[tuple[int, int]]:
    """Where to cut a sequence of things so that no part costs more than ``most``.

    Each part is (first, one past the last).

    ``costs``: bytes of each thing; ``counts``: how many rows each is (None: one). What is too much alone is a part of
    its own. No part is empty.
    """
    total = len(costs)
    if 0 < total <= most_rows and counts is None and costs.sum() <= most:
        yield 0, total
        return
    bytes_to = np.cumsum(costs)
    rows_to = np.arange(1, total + 1) if counts is None else np.cumsum(counts)
    first = 0
    while first < total:
        before = (int(bytes_to[first - 1]), int(rows_to[first - 1])) if first else (0, 0)
        last = min(
            int(np.searchsorted(bytes_to, before[0] + most, "right")),
            int(np.searchsorted(rows_to, before[1] + most_rows, "right")),
        )
        last = max(last, first + 1)
        yield first, last
        first = last


def text_size(text: str | None) -> int:
    """The bytes of a text in UTF-8."""
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
