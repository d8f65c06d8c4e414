"""A few texts that are spread over many rows: the names of what kernels number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels.columns import spread_texts
from kwire.kernels.engine import MACHINE, choose
from kwire.kernels.numbers import SLACK

__all__ = ["Words"]

Array = Any

_SMALL_TEXTS: Final = 64 << 10
"""Bytes of texts that a kernel spreads over rows. The kernel has a copy of them. For a few short texts it takes a third
of the time of Arrow's ``take``."""
_SMALL_SPREAD: Final = 1 << 20
"""Bytes of a column that may be reserved without need. Up to this size they are not counted first."""
_MOST_SPREAD: Final = (1 << 31) - 1
"""Bytes of one column."""


class Words:
    """Texts, one in each row of a column. What it takes to spread them is found once. They may be null."""

    def __init__(self, texts: pa.Array | Sequence[str | None]) -> None:
        texts = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
        self.has_nulls: bool = texts.null_count > 0
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def coded(self) -> tuple[pa.Array, Array | None]:
        """The texts without nulls, and which of them are some: nulls are of rows, and not of a dictionary."""
        if not self.has_nulls:
            return self.texts, None
        return self.texts.fill_null(""), self.texts.is_null().to_numpy(False)

    @cached_property
    def _parts(self) -> tuple[Array, Array, int] | None:
        """Where they end, their bytes and the size of the longest. None if Arrow should spread them."""
        texts = self.texts
        _, ends, data = texts.buffers()
        size = 0 if data is None else len(data)
        if size > _SMALL_TEXTS or self.has_nulls:
            return None
        # A copy, as of all that may be written to or not: the kernel is compiled for the one.
        ends = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].copy()
        given = np.zeros(size + SLACK, np.uint8)
        if data is not None:
            given[:size] = np.frombuffer(data, np.uint8)
        return ends, given, int(np.diff(ends).max(initial=0))

    def spread(self, index: Array) -> pa.Array | None:
        """The text of each row, by an int32. None if Arrow should do it."""
        if self._parts is None or choose(0) is not MACHINE:
            return None
        ends, given, longest = self._parts
        count = len(index)
        room = count * longest
        if room > _SMALL_SPREAD:
            room = int(np.diff(ends).take(index).sum())
            if room > _MOST_SPREAD:
                return None
        offsets, out = np.empty(count + 1, np.int32), np.empty(room + SLACK, np.uint8)
        size = MACHINE(spread_texts)(index, ends, given, offsets, out)
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(out[:size]))
