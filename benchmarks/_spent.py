"""CPU time of processes, by Linux's ``/proc``. It imports nothing of kwire, so that any tree can be measured."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["spent_by", "spent_by_all"]


def spent_by_all() -> float:
    """CPU seconds of this process and all below it, those that have ended too (Linux)."""
    times: dict[int, int] = {}
    below: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            number, _, said = file.read_text().partition(" ")
            fields = said.rpartition(")")[2].split()
            times[int(number)] = sum(map(int, fields[11:15]))
            below.setdefault(int(fields[1]), []).append(int(number))
    found, left = 0, [os.getpid()]
    while left:
        process = left.pop()
        found += times.get(process, 0)
        left += below.get(process, [])
    return found / os.sysconf("SC_CLK_TCK")


def spent_by(process: int) -> float:
    """CPU seconds of one process (Linux)."""
    fields = Path("/proc", str(process), "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
