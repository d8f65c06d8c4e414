"""Memory for the columns of a layout: all regions in one piece, with more room as it is asked for.

Rules kept here:

- Memory is asked for in proportion to what was read so far, and never above a bound. An item of an array counts for
  ``LEAST`` bytes at least, whatever it takes: so there are not many of no size.
- What no Arrow array can count (2**31 - 1) has no room either.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.kernels.avro import (
    MAX_CALLS,
    OFFSETS_OF_LISTS,
    OFFSETS_OF_TEXTS,
    REGION,
    SCRATCH,
    Asked,
    Memory,
    Program,
    State,
)
from kwire.kernels.avro_lanes import Lanes, lanes_for
from kwire.kernels.numbers import SLACK
from kwire.limits import Limits
from kwire.records.budget import GROWTH
from kwire.values.avro.layout import Layout
from kwire.values.avro.programs import Programs

__all__ = ["Columns"]

Array = Any

LEAST: Final = 16
"""Bytes that an item counts for at least."""
MOST_ROWS: Final = (1 << 31) - 2
MOST_BYTES: Final = (1 << 31) - 1
_ALIGNED: Final = 64
_OFFSET: Final = 4


def _fresh(size: int) -> Array:
    """Memory for so many bytes, whatever they are. Arrow's own allocator keeps pages for a while that were used before,
    and asks for large ones. Making new ones takes the system longer than it takes to fill them."""
    if pa.default_memory_pool().backend_name == "mimalloc":
        return np.frombuffer(pa.allocate_buffer(size), np.uint8)
    return np.empty(size, np.uint8)


class Columns:
    """The regions of a layout. ``program``, ``state`` and ``memory`` are what the kernel takes.

    ``size``: the bytes of all values. All of it may take ``GROWTH`` times as much, and ``Limits.total``.
    """

    def __init__(self, programs: Programs, size: int, limits: Limits) -> None:
        layout: Layout = programs.layout
        self.limits = limits
        self._programs, self._most = programs, limits.total + GROWTH * size
        plans = layout.regions
        self.regions: Array = np.zeros(len(plans), REGION)
        regions = self.regions
        regions["width"] = [one.width for one in plans]
        regions["domain"] = [one.domain for one in plans]
        regions["child"] = [one.child for one in plans]
        regions["text"] = [one.text for one in plans]
        self.lanes: Lanes = lanes_for(regions, layout.domains)
        self._texts = regions["width"] == OFFSETS_OF_TEXTS
        self._offsets = self._texts | (regions["width"] == OFFSETS_OF_LISTS)
        self._widths = np.where(self._offsets, _OFFSET, regions["width"])
        counts, rooms = np.zeros(layout.domains, np.int64), np.zeros(layout.domains, np.int64)
        frames = MAX_CALLS + 1 if programs.calls else 1
        self.state: State = State(
            regions,
            counts,
            rooms,
            np.zeros(layout.domains, np.int64),
            np.zeros(frames * programs.slots, np.int64),
            np.zeros(MAX_CALLS, np.int64),
            np.zeros(len(Asked), np.int64),
        )
        self._taken: Array = np.zeros(0, np.uint8)
        self._at = np.zeros(len(plans), np.int64)

    def begin(self, rows: int, size: int) -> bool:
        """Makes room for the first ``rows`` rows, of ``size`` bytes. False where that is too much."""
        rooms, data = np.full_like(self.state.rooms, 4 * rows), np.where(self._texts, size + SLACK, 0)
        rooms[0] = rows
        return self._take(rooms, data)

    def grow(self, rows: int, *, asked: bool) -> bool:
        """Makes room for all ``rows``, to judge by those that there are, and for what was ``asked``. False where that
        is too much."""
        counts, used = self.state.counts, self.regions["used"]
        done = max(int(counts[0]), 1)
        parts = 1.0 if not counts[0] else rows / done
        least_rooms, least_data = np.maximum(self.state.rooms, counts), self.regions["room"].copy()
        least_rooms[0] = rows
        if asked:
            region, domain, need = self.state.asked.tolist()
            if need > (MOST_ROWS if region < 0 else MOST_BYTES):
                return False
            if region < 0:
                least_rooms[domain] = need
            else:
                least_data[region] = need
        rooms = np.minimum(np.maximum(least_rooms, (counts * parts * 1.1).astype(np.int64) + _ALIGNED), MOST_ROWS)
        data = np.where(self._texts, (used * parts * 1.1).astype(np.int64) + _ALIGNED * SLACK, 0)
        rooms[0], data = rows, np.minimum(np.maximum(least_data, data), MOST_BYTES)
        if asked:
            # What one row asks for again and again is not made for it alone.
            if region < 0:
                rooms[domain] = min(max(rooms[domain], 2 * need), MOST_ROWS)
            else:
                data[region] = min(max(data[region], 2 * need), MOST_BYTES)
        return self._take(rooms, data) or self._take(least_rooms, least_data)

    def _take(self, rooms: Array, data: Array) -> bool:
        regions, state = self.regions, self.state
        domains = regions["domain"]
        # Of an item that has no region, too.
        each = np.maximum(np.bincount(domains, self._widths, minlength=len(rooms)), LEAST)
        each[0] = 0
        if float((rooms * each).sum()) + float(data.sum()) + float(rooms[0]) * self._row() > self._most:
            return False
        sizes = (rooms[domains] + self._offsets) * self._widths
        starts = self._starts(np.concatenate([sizes, data]))
        taken = _fresh(int(starts[-1]))
        at, data_at = starts[: len(sizes)], starts[len(sizes) : -1]
        before, data_before = self._at, regions["data"].copy()
        sizes_used = (state.counts[domains] + self._offsets) * self._widths
        for number, used in enumerate(sizes_used.tolist()):
            if len(self._taken):
                taken[at[number] : at[number] + used] = self._taken[before[number] : before[number] + used]
            elif self._offsets[number]:
                taken[at[number] : at[number] + _OFFSET] = 0
        for number in np.flatnonzero(self._texts).tolist():
            used = int(regions["used"][number])
            taken[data_at[number] : data_at[number] + used] = self._taken[
                data_before[number] : data_before[number] + used
            ]
        self._taken, self._at = taken, at
        regions["at"] = np.where(self._offsets, at // _OFFSET, at)
        regions["data"], regions["room"] = data_at, data
        state.rooms[:] = rooms
        return True

    def _row(self) -> int:
        return int(self._widths[self.regions["domain"] == 0].sum())

    @staticmethod
    def _starts(sizes: Array) -> Array:
        aligned = -(-sizes // _ALIGNED) * _ALIGNED
        return np.concatenate([[0], np.cumsum(aligned)]) + SCRATCH

    @property
    def memory(self) -> Memory:
        """All of it, as the kernel takes it."""
        whole = self._taken[: len(self._taken) // 8 * 8]
        return Memory(
            self._taken, whole.view(np.int32), whole.view(np.int64), whole.view(np.float32), whole.view(np.float64)
        )

    @property
    def program(self) -> Program:
        """The programs, for the places of the regions."""
        return Program(self._programs.placed(self._at), self._programs.table, self._programs.pool)

    def count(self, domain: int) -> int:
        """How many rows a domain has."""
        return int(self.state.counts[domain])

    def bytes(self, number: int) -> Array:
        """What a region has, as bytes: the offsets of texts and lists, with one more."""
        size = (self.count(self.regions["domain"][number]) + bool(self._offsets[number])) * self._widths[number]
        at = self._at[number]
        return self._taken[at : at + size]

    def text(self, number: int) -> Array:
        """The bytes of all texts of a region."""
        at = self.regions["data"][number]
        return self._taken[at : at + self.regions["used"][number]]
