"""Sums that stay small however large the traffic is: the most of many keys, latencies, and what happened when.

Rules kept here:

- Memory is bounded by constants of this module. What no longer fits is added up under "others", never forgotten: the
  sum over all keys is exact.
- Nothing is sampled. A latency is known to 1 %, and a time to the width of its bucket; both follow from the traffic
  alone, not from how it is cut into batches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "LATEST", "ROWS_AT_ONCE", "UNDATED", "WAITING", "Clock", "Latencies", "Slow", "Spans", "Timeline", "Top", "dicts",
    "latency_steps", "runs", "slowest", "tuples",
]  # fmt: skip

ROWS_AT_ONCE: Final = 1000
"""Rows that are Python objects at one time: a batch of small ones may be a hundred times as large so."""

_STEP: Final = math.log(1.02)
"""Steps of latencies: each is 2 % more than the one before."""
_LEAST_US: Final = 1.0
_MOST_MS: Final = 1e15
_MOST_STEPS: Final = 2_000
"""1 µs x 1.02^2000 are years."""

_MILLISECONDS: Final = (1, 2, 10, 20, 100, 200)
_SECONDS: Final = (1, 2, 10, 20, 60, 120, 600, 1200, 3600, 7200, 21_600, 43_200, 86_400)
WIDTHS: Final = (*(1_000 * one for one in _MILLISECONDS), *(1_000_000 * one for one in _SECONDS))
"""Widths of buckets in microseconds, each a multiple of the one before; after the last, each is twice as wide."""
MOST_BUCKETS: Final = 600

_FAR: Final = 366 * 86_400 * 1_000_000
_FEW: Final = 0.1
"""Of times that are a year away from the others and less than a tenth of all, nobody wants to see how far they are."""
_FARTHER: Final = 20
_DAY: Final = 86_400 * 1_000_000
_FEWER: Final = 0.001
"""Nor of one in a thousand that is a day away, and twenty times as far as all others are from each other."""


UNDATED: Final = -(1 << 62)
"""In place of a time, in microseconds: the capture does not state it."""
LATEST: Final = 1 << 62
"""The same where the smallest is looked for."""
_NO_BUCKET: Final = UNDATED


def tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as tuples, made as they are asked for. Equal texts of keys that are kept are one object."""
    for first in range(0, table.num_rows, ROWS_AT_ONCE):
        yield from zip(*map(_values, table.slice(first, ROWS_AT_ONCE).columns), strict=True)


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: list[Any] = column.to_pylist()
    if pa.types.is_string(column.type):
        return [one if one is None else sys.intern(one) for one in values]
    return values


def dicts(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The same as dicts."""
    names = table.column_names
    for row in tuples(table):
        yield dict(zip(names, row, strict=True))


def runs(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """Where rows begin that differ from the one before in one of ``columns``: what is the same over many rows, as of
    the records of a batch, is looked at once so. A null differs from everything."""
    begins = np.zeros(table.num_rows, bool)
    begins[:1] = True
    for name in columns if table.num_rows > 1 else ():
        values = table[name].combine_chunks()
        if pa.types.is_integer(values.type) and not values.null_count:
            numbers = values.to_numpy()
            begins[1:] |= numbers[1:] != numbers[:-1]
        else:
            differs = pc.fill_null(pc.not_equal(values[1:], values[:-1]), True)
            begins[1:] |= differs.to_numpy(zero_copy_only=False)
    return np.flatnonzero(begins)


class Top:
    """Sums by key, of which at least the ``keep`` largest (by the first sum) are told apart at any time.

    ``others`` are the sums of those that are not, ``dropped`` how many keys they were: one that comes back is counted
    again.
    """

    KEEP: Final = 4_000

    def __init__(self, width: int, keep: int = KEEP) -> None:
        self._keep = keep
        self.sums: dict[Any, list[int]] = {}
        self.others: list[int] = [0] * width
        self.dropped: int = 0

    def add(self, key: Hashable, *values: int) -> None:
        """Adds to the sums of ``key``."""
        mine = self.sums.get(key)
        if mine is None:
            self.sums[key] = list(values)
            if len(self.sums) > 2 * self._keep:
                self._drop()
            return
        for k, value in enumerate(values):
            mine[k] += value

    def _drop(self) -> None:
        order = sorted(self.sums.items(), key=lambda one: -one[1][0])
        self.sums = dict(order[: self._keep])
        for _, sums in order[self._keep :]:
            self.dropped += 1
            for k, value in enumerate(sums):
                self.others[k] += value

    def __len__(self) -> int:
        return len(self.sums) + self.dropped

    def largest(self, most: int, by: int = 0) -> list[tuple[Any, list[int]]]:
        """The ``most`` keys with the largest of one of the sums, and their sums."""
        return sorted(self.sums.items(), key=lambda one: (-one[1][by], str(one[0])))[:most]

    def total(self) -> list[int]:
        """The sums over all keys."""
        return [sum(column) for column in zip(self.others, *self.sums.values(), strict=True)]


class Spans:
    """How much time spans cover by key: what two of them have in common counts once. Microseconds.

    Spans come nearly in order of time: what lies before the end of the latest is taken for covered. Of more than
    ``most`` keys those that come last are one, ``None``.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._of: dict[Any, list[int]] = {}
        """By key: the time that is covered, and when the last span ends."""

    def add(self, key: Hashable, begin: int, end: int) -> None:
        """Takes a span."""
        if len(self._of) >= self._most and key not in self._of:
            key = None
        mine = self._of.setdefault(key, [0, begin])
        mine[0] += max(0, end - max(begin, mine[1]))
        mine[1] = max(mine[1], end)

    def covered(self, key: Hashable, until: int | None = None) -> int:
        """The time that is covered, without what lies behind ``until``."""
        time, end = self._of.get(key, (0, 0))
        return time if until is None else max(0, time - max(0, end - until))


# --- latencies --------------------------------------------------------------------------------------------------------


def latency_steps(milliseconds: Any, per_step: int = 1) -> np.ndarray:
    """The step of each latency (a numpy array of milliseconds), or of every ``per_step`` steps the first."""
    micros = np.clip(np.nan_to_num(np.asarray(milliseconds, dtype=np.float64)), 0, _MOST_MS) * 1000
    steps = np.minimum(np.log(np.maximum(micros, _LEAST_US)) / _STEP, _MOST_STEPS).astype(np.int64)
    return steps // per_step * per_step if per_step > 1 else steps


def _milliseconds(step: float) -> float:
    return math.exp(step * _STEP) * _LEAST_US / 1000


class Latencies:
    """How many latencies were in each step."""

    __slots__ = ("count", "most", "steps")

    def __init__(self) -> None:
        self.steps: dict[int, int] = {}
        self.count: int = 0
        self.most: float = 0.0

    def add(self, step: int, count: int, most: float = 0.0) -> None:
        """Takes ``count`` latencies of a step; ``most``: the longest of them in milliseconds."""
        self.steps[step] = self.steps.get(step, 0) + count
        self.count += count
        self.most = max(self.most, most)

    def merge(self, other: Latencies) -> None:
        """Takes all that another one has."""
        for step, count in other.steps.items():
            self.add(step, count)
        self.most = max(self.most, other.most)

    def quantile(self, part: float, per_step: int = 1) -> float | None:
        """The latency in milliseconds that ``part`` of all are not above (nearest rank), to 1 %. None: there is none.

        ``per_step``: how many steps were taken for one.
        """
        if not self.count:
            return None
        left = max(1, math.ceil(part * self.count))
        for step in sorted(self.steps):
            left -= self.steps[step]
            if left <= 0:
                found = _milliseconds(step + per_step / 2)
                return min(found, self.most) if self.most else found
        raise AssertionError("more than all")


WAITING: Final = frozenset(("Fetch", "ShareFetch", "JoinGroup", "SyncGroup"))
"""What brokers answer late on purpose."""
_SLOW: Final = 10
"""How many times as long as usual is slow,"""
_SLOW_MS: Final = 100
"""if it is so many milliseconds at least,"""
_SLOW_RESPONSES: Final = 5
"""and of so many responses."""


@dataclass(frozen=True, slots=True)
class Slow:
    """When most of what was answered was slow: which slot of time, and how many responses, of how many."""

    at: int
    slow: int
    responses: int
    longest: float
    """Milliseconds."""


def slowest(slots: Mapping[int, Mapping[str, Latencies]], usual: Mapping[str, Latencies]) -> Slow | None:
    """The slot with most slow responses, if most of its responses are slow: for their API, and not on purpose.
    ``slots`` are the latencies by API, ``usual`` those of the whole time."""
    medians = {api: one.quantile(0.5) or 0.0 for api, one in usual.items()}
    best: Slow | None = None
    for at, apis in slots.items():
        slow = responses = 0
        longest = 0.0
        for api, mine in apis.items():
            if api in WAITING:
                continue
            responses += mine.count
            for step, count in mine.steps.items():
                took = _milliseconds(step + 0.5)
                if took >= max(_SLOW_MS, _SLOW * medians.get(api, 0.0)):
                    slow += count
                    longest = max(longest, took)
        if slow >= _SLOW_RESPONSES and slow * 2 > responses and (best is None or slow > best.slow):
            best = Slow(at, slow, responses, longest)
    return best


# --- times ------------------------------------------------------------------------------------------------------------


class Clock:
    """Buckets of time that all timelines share. They become wider as there are more of them.

    What counts is how many have something in them, so that a packet whose time is damaged does not make all others fall
    into one bucket. Where the axis of a chart begins and ends is decided in the end (``range``).
    """

    def __init__(self, most: int = MOST_BUCKETS) -> None:
        self._most = most
        self._lines: list[Timeline] = []
        self._at = 0
        self._seen: dict[int, list[int]] = {}
        """By bucket: how many times were in it, the first and the last of them."""
        self.width: int = WIDTHS[0]

    def timeline(self, width: int, *, largest: int = 0, keep: int = 64) -> Timeline:
        """A new timeline with ``width`` sums by key, the last ``largest`` of which are maxima."""
        made = Timeline(width, largest, keep)
        self._lines.append(made)
        return made

    def buckets(self, micros: np.ndarray) -> np.ndarray:
        """The bucket of each time (microseconds since 1970). That of UNDATED is in no chart."""
        dated = micros != UNDATED
        if not dated.all():
            made = np.full(len(micros), _NO_BUCKET)
            made[dated] = self.buckets(micros[dated])
            return made
        while True:
            found: np.ndarray = np.floor_divide(micros, self.width)
            first = np.flatnonzero(np.append(True, found[1:] != found[:-1])) if len(found) else found
            if len(self._seen.keys() | set(found[first].tolist())) <= self._most:
                break
            self._widen()
        if len(found):
            ends = np.append(first[1:], len(found))
            least, largest = np.minimum.reduceat(micros, first), np.maximum.reduceat(micros, first)
            for one in zip(*(part.tolist() for part in (found[first], ends - first, least, largest)), strict=True):
                self._see(*one)
        return found

    def _see(self, bucket: int, count: int, first: int, last: int) -> None:
        mine = self._seen.setdefault(bucket, [0, first, last])
        mine[0] += count
        mine[1], mine[2] = min(mine[1], first), max(mine[2], last)

    def _widen(self) -> None:
        self._at += 1
        width = WIDTHS[self._at] if self._at < len(WIDTHS) else self.width * 2
        times = width // self.width
        for one in self._lines:
            one.merge(times)
        seen, self._seen = self._seen, {}
        for bucket, (count, first, last) in seen.items():
            self._see(bucket // times, count, first, last)
        self.width = width

    def _kept(self) -> list[int]:
        """The buckets in their order, without those that are far from all others and have little in them."""
        order = sorted(self._seen)
        low, high = 0, len(order) - 1
        total = sum(one[0] for one in self._seen.values())

        def far(gap: int, span: int, count: int) -> bool:
            if gap > _FAR and count < _FEW * total:
                return True
            return gap > max(_FARTHER * span, _DAY) and count < _FEWER * total

        while True:
            before = low, high
            count = 0
            for k in range(low, high):
                count += self._seen[order[k]][0]
                begin = self._seen[order[k + 1]][1]
                if far(begin - self._seen[order[k]][2], self._seen[order[high]][2] - begin, count):
                    low, count = k + 1, 0
            count = 0
            for k in range(high, low, -1):
                count += self._seen[order[k]][0]
                end = self._seen[order[k - 1]][2]
                if far(self._seen[order[k]][1] - end, end - self._seen[order[low]][1], count):
                    high, count = k - 1, 0
            if before == (low, high):
                return order[low : high + 1]

    def range(self) -> range:
        """The buckets from the first to the last time, without what is far from all others. Widens them where these are
        too many."""
        while True:
            kept = self._kept()
            if not kept:
                return range(0)
            if kept[-1] - kept[0] < self._most:
                return range(kept[0], kept[-1] + 1)
            self._widen()

    def between(self) -> tuple[int, int] | None:
        """The first and the last time of ``range``. None: there is none."""
        kept = self._kept()
        return (self._seen[kept[0]][1], self._seen[kept[-1]][2]) if kept else None

    def strays(self) -> list[tuple[int, int, int]]:
        """What ``range`` leaves out: buckets, the first and the last time in each."""
        kept = set(self.range())
        return [(bucket, first, last) for bucket, (_, first, last) in sorted(self._seen.items()) if bucket not in kept]


class Timeline:
    """Sums by key and bucket. At most ``keep`` keys are told apart, the largest by their first sum; the others are
    ``None`` together."""

    def __init__(self, width: int, largest: int, keep: int) -> None:
        self._sums = width - largest
        self._keep = keep
        self.of: dict[Any, dict[int, list[int]]] = {}

    def add(self, key: Hashable, bucket: int, *values: int) -> None:
        """Adds to the sums of a bucket."""
        line = self.of.get(key)
        if line is None:
            if len(self.of) >= 4 * self._keep:
                self._drop()
            line = self.of.setdefault(key, {})
        self._into(line, bucket, values)

    def _into(self, line: dict[int, list[int]], bucket: int, values: Sequence[int]) -> None:
        mine = line.get(bucket)
        if mine is None:
            line[bucket] = list(values)
            return
        for k, value in enumerate(values):
            mine[k] = mine[k] + value if k < self._sums else max(mine[k], value)

    def _drop(self) -> None:
        for key in self.keys()[self._keep :]:
            line = self.of.pop(key)
            others = self.of.setdefault(None, {})
            for bucket, values in line.items():
                self._into(others, bucket, values)

    def keys(self) -> list[Any]:
        """The keys that are told apart, the largest first."""
        order = ((sum(values[0] for values in line.values()), key) for key, line in self.of.items() if key is not None)
        return [key for _, key in sorted(order, key=lambda one: (-one[0], str(one[1])))]

    def merge(self, times: int) -> None:
        """Makes one bucket of each ``times`` of them."""
        for key, line in self.of.items():
            wider: dict[int, list[int]] = {}
            for bucket, values in line.items():
                self._into(wider, bucket if bucket == _NO_BUCKET else bucket // times, values)
            self.of[key] = wider

    def values(self, key: Hashable, buckets: Iterable[int], which: int = 0) -> list[int | None]:
        """One of the sums of a key for each of some buckets; of a maximum None where there was nothing."""
        line = self.of.get(key, {})
        nothing = 0 if which < self._sums else None
        return [line[bucket][which] if bucket in line else nothing for bucket in buckets]
