"""Rows as a table that fits the terminal.

The first rows decide how wide each column is. After that, rows are written as they come, and text that does not fit
ends in an ellipsis. If the columns do not fit the terminal, the flexible ones shrink. If they still do not fit, a row
takes several lines, with some columns in each. Columns that are the answer (``Column.wrap``) continue in further lines.
If there is no room for them beside each other, each row is a paragraph.
In a file or a pipe, a row is a line, and no text is cut: something is looked for there.
``kwire.tables.showing`` says what a column is and what it shows of a value. ``rows_of`` makes its rows of a batch.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Final

import pyarrow as pa

from kwire.tables.showing import Column, Row
from kwire.values.texts import json_texts, times
from kwire.wire import finite

__all__ = ["TableWriter", "in_json", "render", "rows_of", "texts_of_times"]

SAMPLE: Final = 200
"""Rows that are looked at before the first is written."""

_INDENT: Final = 2
"""Cells before the further lines of a row."""
_ALIGNED: Final = 60
"""Cells of a flexible column in a file or a pipe, but for the last. What follows a longer text stands further right."""
_ROWS_AT_ONCE: Final = 1000


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


def _wrapped(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` cells, between words where it can be."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        size = _width(word)
        if used and used + 1 + size > width:
            lines.append(line)
            line, used = "", 0
        if size > width:
            for char in word if not used else f" {word}":
                own = _width(char)
                if used and used + own > width:
                    lines.append(line)
                    line, used = "", 0
                line, used = line + char, used + own
            continue
        line, used = (f"{line} {word}", used + 1 + size) if used else (word, size)
    return [*lines, line]


def widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], total: int) -> list[int]:
    """How wide each column is. All of them and the two spaces between take ``total`` cells if possible."""
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


def _shared_out(columns: Sequence[Column], cells: Sequence[Sequence[str]], total: int) -> list[tuple[list[int], int]]:
    """The columns of each line of a row that needs several, and the cells before it.

    Each line has as many columns as fit without being cut. One that is wider than the terminal has a line to itself.
    """
    lines: list[tuple[list[int], int]] = [([], 0)]
    for k, wide in enumerate(widths(columns, cells, 1 << 30)):
        line, indent = lines[-1]
        taken = indent + sum(widths([columns[i] for i in line], [cells[i] for i in line], 1 << 30)) + 2 * len(line)
        if line and taken + wide > total:
            lines.append(([k], _INDENT))
        else:
            line.append(k)
    return lines


def _line(columns: Sequence[Column], wide: Sequence[int], texts: Sequence[str]) -> str:
    """A row: one line, or several where a text is wrapped."""
    cells = [
        _wrapped(text, width) if column.wrap else [text]
        for column, width, text in zip(columns, wide, texts, strict=True)
    ]
    lines = []
    for k in range(max(map(len, cells), default=0)):
        parts = (one[k] if k < len(one) else "" for one in cells)
        fitted = (_fit(text, width, column) for column, width, text in zip(columns, wide, parts, strict=True))
        lines.append("  ".join(fitted).rstrip())
    return "\n".join(lines)


def _paragraph(columns: Sequence[Column], texts: Sequence[str], total: int) -> str:
    """A row without columns: what is short in the first line, then each text that is the answer.

    A number says nothing without its title.
    """
    pairs = list(zip(columns, texts, strict=True))
    short = [(column, text) for column, text in pairs if not column.wrap and text != column.empty]
    head = "  ".join(f"{column.title} {text}" if column.right else text for column, text in short)
    lines = _wrapped(head, total)
    for column, text in pairs:
        if column.wrap and text != column.empty:
            first, *rest = _wrapped(f"{column.title}: {text}", max(total - 2, 1))
            lines.append(f"  {first}")
            # Continued lines are distinguished from first lines.
            lines += [f"    {one}" for one in _wrapped(" ".join(rest), max(total - 4, 1)) if rest]
    return "\n".join(lines)


def render(columns: Sequence[Column], rows: Iterable[Row], total: int) -> list[str]:
    """A whole table as lines: the titles, a rule, and the rows."""
    texts = [[column.text(row) for column in columns] for row in rows]
    wide = widths(columns, list(zip(*texts, strict=True)) if texts else [()] * len(columns), total)
    head = _line(columns, wide, [column.title for column in columns])
    return [head, "  ".join("─" * width for width in wide), *(_line(columns, wide, line) for line in texts)]


class TableWriter:
    """Writes rows to a file as they come, with those columns that have something in them.

    ``live``: the first row does not wait for others. So all columns are there, wide enough for usual values.
    """

    def __init__(self, file: IO[str], columns: Sequence[Column], *, live: bool = False) -> None:
        self._file = file
        self._columns = columns
        self._live = live
        self._waiting: list[Row] = []
        self._wide: list[int] = []
        self._lines: list[tuple[list[int], int]] = []
        """The columns of each line of a row, and the cells before it."""
        self._total = 0
        """Cells of the terminal."""
        self._paragraphs = False

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
            if self._file.isatty():
                self._total = shutil.get_terminal_size().columns
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
            self._decide([cells[i] for i in kept])
            if not self._paragraphs:
                self._put(self._wide, [column.title for column in self._columns])
                if len(self._lines) == 1:
                    self._put(self._wide, ["─" * width for width in self._wide])
                else:
                    self._file.write("─" * self._total + "\n")
            for row in self._waiting:
                self._write(row)
            self._waiting = []
        self._file.flush()

    def _decide(self, cells: Sequence[Sequence[str]]) -> None:
        self._lines = [(list(range(len(self._columns))), 0)]
        if not self._file.isatty():
            self._wide = [
                min(least, _ALIGNED) if (column.shrink or column.wrap) and column is not self._columns[-1] else least
                for column, least in zip(self._columns, widths(self._columns, cells, 1 << 30), strict=True)
            ]
            return
        self._wide = widths(self._columns, cells, self._total)
        fits = sum(self._wide) + 2 * (len(self._wide) - 1) <= self._total
        self._paragraphs = not fits and any(column.wrap for column in self._columns)
        if not fits and not self._paragraphs:
            self._lines = _shared_out(self._columns, cells, self._total)
            for which, indent in self._lines:
                own = widths([self._columns[k] for k in which], [cells[k] for k in which], self._total - indent)
                for k, width in zip(which, own, strict=True):
                    self._wide[k] = width

    def _write(self, row: Row) -> None:
        texts = [column.text(row) for column in self._columns]
        if self._paragraphs:
            self._file.write(_paragraph(self._columns, texts, self._total) + "\n")
            return
        wide = self._wide
        if not self._file.isatty():
            wide = [max(one, _width(text)) for one, text in zip(wide, texts, strict=True)]
        self._put(wide, texts)

    def _put(self, wide: Sequence[int], texts: Sequence[str]) -> None:
        for which, indent in self._lines:
            line = _line([self._columns[k] for k in which], [wide[k] for k in which], [texts[k] for k in which])
            # A line without a value says nothing.
            if line or not indent:
                self._file.write(" " * indent + line + "\n")


# --- Rows of a batch --------------------------------------------------------------------------------------------------


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch: what JSON has, and bytes. Times, dates and decimals are text, inside of lists too."""
    names = batch.schema.names
    # Rows that are objects take a hundred times as much.
    for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
        columns = [_plain(column) for column in batch.slice(first, _ROWS_AT_ONCE).columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def _plain(column: pa.Array) -> list[Any]:
    """The values, with maps as dicts. NaN and the infinities are words, since JSON has no numbers for them."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return texts_of_times(column)
    if not in_json(type_):
        texts = json_texts(column).to_pylist()
        return [None if text is None else json.loads(text, parse_float=str) for text in texts]
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(type_):
        return [None if pairs is None else dict(pairs) for pairs in values]
    return [finite(value) for value in values] if _has_floats(type_) else values


def in_json(type_: pa.DataType) -> bool:
    """Whether JSON has values of this type, but for bytes, which are base64."""
    if pa.types.is_nested(type_):
        return all(in_json(type_.field(i).type) for i in range(type_.num_fields))
    return not (pa.types.is_decimal(type_) or pa.types.is_temporal(type_))


def _has_floats(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))


def texts_of_times(column: pa.Array) -> list[str | None]:
    """``2026-11-21T02:18:00.123456Z`` for each time of a column, null for null."""
    found: list[str | None] = times(column).to_pylist()
    return found
