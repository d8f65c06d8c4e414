"""Values of tests whose ``repr`` is the code that makes them, so that what fails can be pasted into a test."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["Recipe"]


class Recipe:
    """The base of a frozen dataclass: its ``repr`` leaves out what is at its default."""

    def __repr__(self) -> str:
        assert dataclasses.is_dataclass(self)
        said = [
            f"{one.name}={getattr(self, one.name)!r}"
            for one in dataclasses.fields(self)
            if getattr(self, one.name) != one.default
        ]
        return f"{type(self).__name__}({', '.join(said)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # Hypothesis would print all arguments with which it was made.
        printer.text(repr(self))
