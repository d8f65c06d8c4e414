"""Beats: exchanges of a window that say what others before them said, by what they say. Most heartbeats are such.

``Beats`` finds them in columns, so that ``kwire.history.fold.Story`` takes many at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kwire.kernels.layouts import NO_TIME

if TYPE_CHECKING:
    from kwire.history.steps import Said, Window

__all__ = ["Beat", "Beats"]

Array = Any


class Beat(NamedTuple):
    """Exchanges in which the same is asked and answered.

    ``kind``: of the request (``kwire.history.steps.kind_of``). Times are nanoseconds: of the first, the latest and the
    last request. Times may go back.
    """

    kind: int
    asked: Said
    told: Said
    earliest: int
    latest: int
    last: int


class Beats:
    """Those of some frames of a window: numbers from 0 on. ``others``: the frames that are no part of one."""

    def __init__(self, window: Window, some: range) -> None:
        self._window = window
        alike, kinds, times = window.alike, window.kinds, window.times
        here = np.arange(some.start, some.stop)
        answers = window.pairs[some.start : some.stop]
        there = (answers > here) & (answers < some.stop)
        asks, answers = here[there], answers[there]
        there = (alike[asks] >= 0) & (alike[answers] >= 0) & (kinds[answers] == kinds[asks] + 1)
        there &= (times[asks] != NO_TIME) & (times[answers] != NO_TIME)
        asks, answers = asks[there], answers[there]
        # Those that are alike stand together, in the order of the capture.
        order = np.lexsort((alike[answers], alike[asks]))
        self.asks: Array = asks[order]
        self._answers: Array = answers[order]
        asked, told = alike[self.asks], alike[self._answers]
        new = np.ones(len(asks), bool)
        new[1:] = (asked[1:] != asked[:-1]) | (told[1:] != told[:-1])
        first = np.flatnonzero(new)
        self._bounds: list[int] = [*first.tolist(), len(asks)]
        self.first: list[tuple[int, int]] = list(
            zip(self.asks[first].tolist(), self._answers[first].tolist(), strict=True)
        )
        """The first request and response of each."""
        left = np.ones(len(here), bool)
        left[asks - some.start] = left[answers - some.start] = False
        self.others: Array = here[left]

    def beat(self, number: int, asked: Said, told: Said) -> Beat:
        """One of them: ``asked`` and ``told`` are what is said in it."""
        first, end = self._bounds[number : number + 2]
        times = self._window.times[self.asks[first:end]].tolist()
        kind = int(self._window.kinds[self.asks[first]])
        return Beat(kind, asked, told, min(times), max(times), times[-1])

    def in_order(self, numbers: Iterable[int]) -> list[int]:
        """Some of them in the order of their last requests."""
        return sorted(numbers, key=lambda one: int(self.asks[self._bounds[one + 1] - 1]))

    def last(self, numbers: Iterable[int]) -> int:
        """The last frame of some of them."""
        return max(int(self._answers[self._bounds[one] : self._bounds[one + 1]].max()) for one in numbers)

    def without(self, taken: set[int]) -> list[int]:
        """All frames but those of the beats that are taken, in order."""
        left: list[int] = self.others.tolist()
        if len(taken) < len(self.first):
            frames: Iterator[list[int]] = (
                column[self._bounds[one] : self._bounds[one + 1]].tolist()
                for one in range(len(self.first))
                if one not in taken
                for column in (self.asks, self._answers)
            )
            left = sorted(chain(left, *frames))
        return left
