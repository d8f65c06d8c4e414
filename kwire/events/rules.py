"""What the rules of several specifications share: a violation, and how many names a sentence has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

__all__ = ["MOST_NAMED", "Violation", "some_of"]

MOST_NAMED: Final = 16
"""Names in one sentence."""


class Violation(NamedTuple):
    """A rule, one of the names in ``RULES`` of its specification, and a sentence about what was found."""

    rule: str
    detail: str


def some_of(names: Iterable[str]) -> str:
    """Names with commas between them, as many of them as ``MOST_NAMED``."""
    every = [*islice(names, MOST_NAMED + 1)]
    return ", ".join([*every[:MOST_NAMED], "..."] if len(every) > MOST_NAMED else every)
