"""Source text in the making: lines, blocks and names, as the generators of decoders and encoders write them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Source", "describe", "no_sequence", "plus", "plus_equal"]


class Source:
    """Lines of a function, with indentation, and the constants that they name."""

    def __init__(self, globals_: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self.depth: int = 1
        self.globals = globals_
        self.made: int = 0

    def add(self, *lines: str) -> None:
        """Add lines at the current depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head``. What is added within the context stands one level deeper; an empty block gets ``pass``."""
        self.add(head)
        self.depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self.depth -= 1

    def name(self, prefix: str) -> str:
        """A name for a variable that no other has."""
        self.made += 1
        return f"{prefix}{self.made}"


def plus(expression: str, number: int) -> str:
    """The source of a sum."""
    return expression if number == 0 else f"{expression} {'+' if number > 0 else '-'} {abs(number)}"


def plus_equal(name: str, number: int) -> str:
    """The source of an addition to a variable."""
    return f"{name} {'+' if number > 0 else '-'}= {abs(number)}"


def no_sequence(name: str) -> str:
    """The source of the question whether a variable is neither a tuple nor a list."""
    return f"{name}.__class__ is not tuple and {name}.__class__ is not list"


def describe(format_: str) -> str:
    """``hiqs16`` from ``>hiq16s``: the format as part of a name."""
    return format_.replace("?", "t")
