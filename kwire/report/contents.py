"""What is in the records of each topic: schemas, formats, framings, and what became of values, by records and bytes.

It needs sources of schemas (``kwire report --values``). Rows of ``records`` are added up as they come; what is kept has
a limit (``Top``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kwire.report.sums import Top
from kwire.report.tallies import Rows

__all__ = ["OF_VALUES", "Contents"]

_PARTS: Final = ("value", "key")
_NAMES: Final = ("format", "schema", "schema_id", "schema_guid", "message", "framing", "status")
OF_VALUES: Final = tuple(f"{part}_{name}" for part in _PARTS for name in (*_NAMES, "bytes"))
"""Columns of ``records`` (tuple of str) that are read."""


class Contents:
    """Takes rows of ``records`` with the columns ``OF_VALUES``, and adds them up."""

    def __init__(self) -> None:
        self.schemas: Top = Top(2, 5_000)
        """By topic, part, format, schema, message, framing and status: bytes and records."""
        self.topics: Top = Top(1, 5_000)
        """By topic and part: bytes."""

    def add(self, rows: Rows) -> None:
        """Take rows of ``records``."""
        for part in _PARTS:
            there = rows.mask("status", ("ok", "corrupt")) & rows.valid("topic", f"{part}_status")
            at = np.flatnonzero(there)
            keys = ("topic", *(f"{part}_{name}" for name in _NAMES))
            for row in rows.totals(at, keys, rows.values(f"{part}_bytes")[at]):
                topic, format_, schema, id_, guid, message, framing, status, count, size = row
                # A schema that no source has is said by the name that values give it.
                called = schema or (f"id {id_}" if id_ is not None else guid and f"GUID {guid}")
                self.schemas.add((topic, part, format_, called, message, framing, status), size, count)
                self.topics.add((topic, part), size)

    def rows(self, most: int) -> Iterator[dict[str, Any]]:
        """A row of each schema of each topic, those with the most bytes first. ``share``: of the bytes of the part."""
        for key, (size, count) in self.schemas.largest(most):
            topic, part, format_, schema, message, framing, status = key
            (all_,) = self.topics.sums.get((topic, part), (0,))
            yield {
                "topic": topic, "part": part, "format": format_, "schema": schema, "message": message,
                "framing": framing, "status": status, "records": count, "bytes": size,
                "share": 100 * size / all_ if all_ else None,
            }  # fmt: skip

    def unread(self) -> dict[str, int]:
        """How many keys and values have each status other than ``ok``, the most first."""
        found: dict[str, int] = {}
        for key, (_, count) in self.schemas.sums.items():
            if key[-1] != "ok":
                found[key[-1]] = found.get(key[-1], 0) + count
        return dict(sorted(found.items(), key=lambda one: -one[1]))
