"""Rows in a notebook: ``show`` gives what Jupyter shows as a table, and a console of Python as text.

    from kwire import capture
    from kwire.report.shown import show

    show(capture.read("broker.pcap", "frames", columns=["frame", "client_id", "api_name", "latency_ms"]))

Texts of a capture are made readable and escaped, as on a terminal and on the page of ``kwire report``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

import pyarrow as pa

from kwire.report import html
from kwire.tables.showing import Column, Row, full
from kwire.tables.terminal import TableWriter, rows_of

__all__ = ["MOST", "Shown", "show"]

MOST = 20
"""Rows that are shown, unless more are asked for."""

# Notebooks align cells right, which is for numbers, and break all of them. Here only sentences are broken. Colours are
# those of the notebook, in light and dark.
_STYLE = (
    "<style>.kwire .t{overflow-x:auto}.kwire table{width:max-content}.kwire .r{text-align:right!important}"
    ".kwire :is(th,td):not(.r){text-align:left!important}.kwire :is(th,td){max-width:24em;padding:.1em .5em}</style>"
)


class Shown:
    """The first rows of a table, for a person. ``rows`` are shown, and ``left`` more are there."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], most: int = MOST) -> None:
        self._columns: list[Column] = [full(field) for field in schema]
        self._rows: list[Row] = []
        self.rows: int = 0
        self.left: int = 0
        for batch in batches:
            self._rows += rows_of(batch.slice(0, most - len(self._rows)))
            self.left += batch.num_rows
        self.rows = len(self._rows)
        self.left -= self.rows

    def __repr__(self) -> str:
        text = io.StringIO()
        writer = TableWriter(text, self._columns)
        writer.write(self._rows)
        writer.flush()
        return (text.getvalue() + self._rest()).rstrip("\n") or "no rows"

    def _repr_html_(self) -> str:
        table = "".join(html.table(self._columns, self._rows)).rstrip("\n")
        rest = self._rest()
        return f'{_STYLE}<div class="kwire">{table}{f"<p>{rest}</p>" if rest else ""}</div>'

    def _rest(self) -> str:
        if not self.rows:
            return "no rows"
        return f"… {self.left:,} more" if self.left else ""


def show(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch], most: int = MOST) -> Shown:
    """What a notebook shows of some rows: the first ``most``, and how many more there are.

    ``rows`` are a table or a batch of Arrow, or batches as ``kwire.capture.read`` yields them. The columns are shown in
    their order, so choose them before. Raises what reading them raises, such as ``CaptureError``.
    """
    if isinstance(rows, pa.Table):
        return Shown(rows.schema, rows.to_batches(), most)
    if isinstance(rows, pa.RecordBatch):
        return Shown(rows.schema, [rows], most)
    batches: Iterator[pa.RecordBatch] = iter(rows)
    first = next(batches, None)
    return Shown(pa.schema([]), ()) if first is None else Shown(first.schema, _after(first, batches), most)


def _after(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest
