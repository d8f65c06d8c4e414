"""Memory for large outputs, used again as soon as nobody has them any more.

Fresh memory comes from the system page by page. That costs as much as writing to it three times. The allocator seldom
keeps what is given back where windows take and leave many megabytes at once.

Rules kept here:

- An array is used again only when this module has the one reference to it. Slices, Arrow buffers and memoryviews of it
  each hold another one.
- What is kept is bounded, in each thread, and given back at the end of a capture.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Final

import numpy as np

__all__ = ["BUFFERS", "Buffers"]

Bytes = Any

LEAST: Final = 1 << 20
"""Bytes from which on an array is kept: the allocator keeps smaller ones itself."""
MOST: Final = 16 << 20
"""Bytes up to which it is."""
KEPT: Final = 5
"""How many arrays are kept.

These are: what is read, the joined bytes and the values of a window. The last two of the window before are kept too,
since somebody may still have them.
"""
_ALONE: Final = 2
"""References to an array that nobody has: in the list, and as the argument of the question."""


def _let_the_allocator_keep() -> None:
    """Has glibc keep the arrays of a window that are given back, up to twice ``MOST``.

    It gives each array beyond a threshold back to the system at once, and all that is free beyond twice that. The
    threshold is that of the largest array that it has given back. Nothing is written to this one, so it costs two
    calls of the system.
    """
    np.empty(MOST, np.uint8)


class Buffers(threading.local):
    """The arrays of a thread."""

    def __init__(self) -> None:
        self._kept: list[Bytes] = []

    def take(self, size: int) -> Bytes:
        """``size`` bytes, whatever is in them, which nobody else has."""
        if not LEAST <= size <= MOST:
            return np.empty(size, np.uint8)
        kept = self._kept
        for place in range(len(kept)):
            if len(kept[place]) >= size and sys.getrefcount(kept[place]) == _ALONE:
                found = kept.pop(place)
                kept.append(found)
                return found[:size]
        if not kept:
            _let_the_allocator_keep()
        # Windows differ a little.
        made = np.empty(min(size + size // 8, MOST), np.uint8)
        if len(kept) >= KEPT:
            kept.pop(0)
        kept.append(made)
        return made[:size]

    def forget(self) -> None:
        """Give back what is kept. Called when a capture has ended: what is made of it all needs memory then."""
        self._kept.clear()


BUFFERS: Final = Buffers()
"""The arrays of the current thread (``Buffers``), shared by all readers."""
