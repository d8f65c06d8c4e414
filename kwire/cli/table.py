"""Rows as a table that fits the terminal.

The first rows decide how wide each column is; from then on rows are written as they come, and what does not fit ends
in an ellipsis. Where the columns do not fit the terminal, the flexible ones shrink. What a column is and what it shows
of a value stands in ``kwire.tables.showing``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import IO, Final

from kwire.tables.showing import Column, Row

__all__ = ["TableWriter", "render"]

SAMPLE: Final = 200
"""Rows that are looked at before the first is written."""

UNBOUND: Final = 160
"""Width of a table that goes to a file or a pipe."""


def _width(text: str) -> int:
    """Cells that ``text`` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fit(text: str, width: int, column: Column) -> str:
    """``text`` in ``width`` cells, or in more where it may not be cut."""
    own = _width(text)
    if own > width and column.shrink is not None:
        if text.isascii():
            text = text[: width - 1]
        else:
            from rich.cells import set_cell_size

            text = set_cell_size(text, width - 1).rstrip()
        text += "…"
        own = _width(text)
    space = " " * (width - own)
    return space + text if column.right else text + space


def widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], total: int) -> list[int]:
    """How wide each column is, so that all of them and the two spaces between take ``total`` cells where possible."""
    found = [
        max([column.least, _width(column.title), *map(_width, texts)])
        for column, texts in zip(columns, cells, strict=True)
    ]
    excess = sum(found) + 2 * (len(found) - 1) - total
    while excess > 0:
        # The widest gives first, down to the next one, so that narrow columns stay whole.
        able = [i for i, column in enumerate(columns) if column.shrink is not None and found[i] > column.shrink]
        if not able:
            break
        widest = max(able, key=lambda i: found[i])
        shrink = columns[widest].shrink
        assert shrink is not None
        others = [found[i] for i in able if i != widest]
        give = min(excess, max(1, found[widest] - max([shrink, *others])))
        found[widest] -= give
        excess -= give
    return found


def _line(columns: Sequence[Column], wide: Sequence[int], texts: Sequence[str]) -> str:
    fitted = (_fit(text, width, column) for column, width, text in zip(columns, wide, texts, strict=True))
    return "  ".join(fitted).rstrip()


def render(columns: Sequence[Column], rows: Iterable[Row], total: int) -> list[str]:
    """A whole table as lines: the titles, a rule, and the rows."""
    texts = [[column.text(row) for column in columns] for row in rows]
    wide = widths(columns, list(zip(*texts, strict=True)) if texts else [()] * len(columns), total)
    head = _line(columns, wide, [column.title for column in columns])
    return [head, "  ".join("─" * width for width in wide), *(_line(columns, wide, line) for line in texts)]


class TableWriter:
    """Writes rows to a file as they come, with those columns that have something in them.

    ``live``: the first row does not wait for others, so all columns are there, and wide enough for what usually comes.
    """

    def __init__(self, file: IO[str], columns: Sequence[Column], *, live: bool = False) -> None:
        self._file = file
        self._columns = columns
        self._live = live
        self._waiting: list[Row] = []
        self._wide: list[int] = []

    def write(self, rows: Iterable[Row]) -> None:
        """Writes ``rows``, or keeps them until there are enough to decide the widths of the columns."""
        for row in rows:
            if self._wide:
                self._write(row)
            else:
                self._waiting.append(row)
                if len(self._waiting) >= SAMPLE:
                    self.flush()

    def flush(self) -> None:
        """Writes the rows that wait."""
        if self._waiting and not self._wide:
            # Too narrow a terminal gets one line per row all the same, and wraps it.
            total = shutil.get_terminal_size((UNBOUND, 0)).columns if self._file.isatty() else UNBOUND
            cells = [[column.text(row) for row in self._waiting] for column in self._columns]
            kept = [
                i
                for i, column in enumerate(self._columns)
                if self._live or any(text != column.empty for text in cells[i])
            ]
            if self._live:
                for column, texts in zip(self._columns, cells, strict=True):
                    texts.append("." * 2 * (column.shrink or 0))
            self._columns = [self._columns[i] for i in kept]
            self._wide = widths(self._columns, [cells[i] for i in kept], total)
            self._file.write(_line(self._columns, self._wide, [column.title for column in self._columns]) + "\n")
            self._file.write("  ".join("─" * width for width in self._wide) + "\n")
            for row in self._waiting:
                self._write(row)
            self._waiting = []
        self._file.flush()

    def _write(self, row: Row) -> None:
        self._file.write(_line(self._columns, self._wide, [column.text(row) for column in self._columns]) + "\n")
