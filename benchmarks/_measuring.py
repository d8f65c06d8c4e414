"""CPU time of contestants that take turns: medians, and how far the rounds are apart.

A contestant is a function that does its task so many times and says how many seconds of CPU its process took. So a
contestant may be a function here or another process (``peers``). In each round every contestant has a turn of about the
same length. So a machine that slows down slows all of them down.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["Spread", "Turn", "measure", "passes"]

Turn = Callable[[int], float]
"""Does a task so many times; the seconds of CPU that it took."""

WARM = 0.2
"""Seconds of CPU before a contestant is measured: code that is compiled while it runs is compiled by then."""


class Spread(NamedTuple):
    """The median of some rounds, and the middle half of them: between ``low`` and ``high`` is every second one."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Of one value or more."""
        if len(values) == 1:
            return cls(*values * 3)
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)

    def each(self, number: float) -> Spread:
        """The same for one of so many."""
        return Spread(*(value / number for value in self))


def passes(task: Callable[[], Any]) -> Turn:
    """A contestant that is a function here. The collector of garbage runs as it does for users; what others left
    behind is collected before, on nobody's time."""

    def turn(count: int) -> float:
        gc.collect()
        began = time.process_time()
        for _ in range(count):
            task()
        return time.process_time() - began

    return turn


def measure(turns: Mapping[str, Turn], rounds: int, seconds: float, warm: float = WARM) -> dict[str, Spread]:
    """Seconds of CPU of one pass of each task, in so many rounds with turns of about ``seconds``."""
    counts = {}
    for name, turn in turns.items():
        count, spent, took = 1, 0.0, 0.0
        while True:
            took = turn(count)
            spent += took
            if spent >= warm:
                break
            count = min(2 * count, max(1, int((warm - spent) * count / max(took, 1e-9))))
        counts[name] = max(1, round(seconds * count / max(took, 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            # A clock that is too coarse says nothing.
            times[name].append(max(turn(counts[name]), 1e-9) / counts[name])
    return {name: Spread.of(found) for name, found in times.items()}
