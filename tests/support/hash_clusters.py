"""How long one may have to search in a table with open addressing, and input for which it was long without a key.

Work is counted, not timed: a search goes at most through one run of occupied places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

MOST = 1_000
"""Places: no run of a table that is half full, of up to 2**20 places at random, comes near it."""


def longest_run(lookup: Any) -> int:
    """The longest run of occupied places (not -1), around the end of the table too."""
    free = np.flatnonzero(lookup < 0)
    assert len(free)
    return int(np.diff(np.append(free, free[0] + len(lookup))).max()) - 1


def old_hash_of_names(names: Any) -> Any:
    """What kwire once hashed names with, for rows of bytes: without a key, so that anyone could choose by it."""
    with np.errstate(over="ignore"):
        hashed = np.full(len(names), names.shape[1], np.int64)
        for column in names.T:
            hashed = (hashed ^ column) * np.int64(0x100000001B3)
        return hashed ^ (hashed >> 31)


def old_hash_of_connections(high: Any, low: Any, port: int, other: tuple[int, int, int]) -> Any:
    """The same for connections from many addresses, and one port, to one end."""

    def mixed(value: Any) -> Any:
        value = (value ^ (value >> 29)) * np.int64(0x3C79AC492BA7B653)
        return value ^ (value >> 32)

    def end(high: Any, low: Any, port: Any) -> Any:
        return mixed(mixed(mixed(high) + low) + port)

    with np.errstate(over="ignore"):
        there = end(*(np.array([one], np.int64) for one in other))
        return mixed(end(high, low, np.int64(port)) + there)


def chosen(hashed: Any, count: int, places: int) -> Any:
    """Which ``count`` of these belong next to each other in a table of so many places."""
    near = np.flatnonzero(hashed & (places - 1) < places >> 6)
    assert len(near) >= count
    return near[:count]
