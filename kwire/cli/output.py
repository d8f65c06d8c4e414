"""How rows are written: a table for people, JSON lines and CSV for programs, Parquet and Arrow for engines.

An ``Output`` takes Arrow batches of one schema, as they come, and keeps none of them. Rules kept here:

- JSON lines: one object per row with every column.
    - Bytes are base64, as Kafka's own JSON converters write them.
    - Times are ISO 8601 in UTC with microseconds.
    - ``body``, JSON text in the tables, is a nested object.
- JSON lines are lines to every reader and text to every terminal. These characters are escaped:
    - U+0085, U+2028, U+2029, which end a line elsewhere
    - U+007F to U+009F, which a terminal may obey
    - those that change the direction of writing
    - others beyond ASCII, only if the output has another encoding than UTF-8
- CSV: a line of names first. Null is an empty field, an empty text ``""``. Bytes and times are as in JSON lines, nested
  values as JSON text.
- Text in CSV is as it is. On a terminal it is escaped as in JSON lines. If a spreadsheet would take it for a formula,
  it begins with ``'``.
- Rows are made by the column if kernels are machine code (``kwire.cli.lines``), else one by one, as the same text.
- Arrow: the format of files if it goes to a file, that of streams to standard output.
- NaN and infinite numbers are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
- A time outside the years 1 to 9999, which a hostile record can have, is ``@`` and its seconds since 1970.
- A file takes its name when it is complete (``kwire.opening.replaced``). Nobody reads half a file, and an existing file
  is replaced only by a whole one.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

from kwire.cli.lines import BODY, as_texts, csv_lines, json_encode, json_lines, no_formula
from kwire.kernels.engine import MACHINE, choose
from kwire.opening import replaced as _replaced
from kwire.tables.showing import Column
from kwire.tables.terminal import TableWriter, rows_of

__all__ = ["Output", "open_binary", "open_output", "open_text"]


_OBEYED: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""What JSON need not escape and a terminal may obey. DEL, the C1 controls, and those of lines and of directions."""
_CONTROLS: Final = re.compile(f"[\x00-\x1f{_OBEYED.pattern[1:-2]}]+")
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_NO_ASCII: Final = re.compile(r"[^\x20-\x7e]+")


JSONL: Final = "jsonl"
CSV: Final = "csv"
ARROW: Final = "arrow"
PARQUET: Final = "parquet"


class Output:
    """Where batches go."""

    to_terminal = False
    """Whether rows appear on a terminal, where a progress bar would be in their way."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        raise NotImplementedError

    def flush(self) -> None:
        """Lets everything that was written so far appear."""


class TableOutput(Output):
    """Aligned columns, as wide as the terminal."""

    def __init__(self, file: IO[str], columns: Sequence[Column], *, live: bool = False) -> None:
        self.to_terminal: bool = file.isatty()
        self._writer = TableWriter(file, columns, live=live)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        self._writer.write(rows_of(batch))

    def flush(self) -> None:
        """Writes the rows that wait for the widths of the columns."""
        self._writer.flush()


class _Lines(Output):
    """Rows as lines of text."""

    def __init__(self, file: IO[str]) -> None:
        self.to_terminal: bool = file.isatty()
        self._file = file
        self._utf_8 = (getattr(file, "encoding", None) or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
        self._binary = getattr(file, "buffer", None) if os.linesep == "\n" else None

    def _by_column(self) -> bool:
        """Whether kernels write the lines."""
        # The readers count what was read.
        return self._utf_8 and choose(0) is MACHINE

    def _put(self, pieces: Iterator[bytes]) -> None:
        if self._binary is None:
            for piece in pieces:
                self._file.write(piece.decode())
            return
        self._file.flush()
        for piece in pieces:
            self._binary.write(piece)

    def flush(self) -> None:
        """Empties the buffer."""
        self._file.flush()


class JsonLinesOutput(_Lines):
    """One JSON object per line."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        if self._by_column():
            self._put(json_lines(batch))
            return
        batch, raw = as_texts(batch)
        if BODY in batch.schema.names and pa.types.is_string(batch.schema.field(BODY).type):
            raw.add(BODY)
        for row in rows_of(batch):
            # What is JSON already goes in as it is.
            members = (
                f"{json_encode(name)}:{value if name in raw and value is not None else json_encode(value)}"
                for name, value in row.items()
            )
            self._write(f"{{{','.join(members)}}}")

    def _write(self, text: str) -> None:
        # Outside of its strings JSON has ASCII only, so an escape stands in a string wherever it is put.
        if "\x7f" in text or not text.isascii():
            text = (_OBEYED if self._utf_8 else _NO_ASCII).sub(_escaped, text)
        self._file.write(text + "\n")


class CsvOutput(_Lines):
    """Comma-separated values (RFC 4180, with the line ends of Unix)."""

    def __init__(self, file: IO[str], schema: pa.Schema) -> None:
        super().__init__(file)
        file.write(",".join(map(_field, schema.names)) + "\n")
        self._texts = [pa.types.is_string(one) or pa.types.is_dictionary(one) for one in schema.types]

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        if self._by_column():
            self._put(csv_lines(batch, guarded=self.to_terminal))
            return
        batch, raw = as_texts(batch, nested=True)
        for row in rows_of(batch):
            for name in raw:
                row[name] = None if row[name] is None else _OBEYED.sub(_escaped, row[name])
            self._file.write(",".join(map(self._of, row.values(), self._texts)) + "\n")

    def _of(self, value: Any, is_text: bool) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            text = no_formula(value) if is_text else value
        elif isinstance(value, bytes):
            return base64.b64encode(value).decode("ascii")
        elif isinstance(value, list | dict):
            text = _OBEYED.sub(_escaped, json_encode(value))
        elif isinstance(value, bool):
            return str(value).lower()
        else:
            return str(value)
        text = _field(text)
        if self.to_terminal:
            text = _CONTROLS.sub(_escaped, text)
        return text if self._utf_8 else _BEYOND_ASCII.sub(_escaped, text)


class ParquetOutput(Output):
    """A Parquet file, zstd-compressed."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Writes the footer."""
        self._writer.close()


class ArrowOutput(Output):
    """Arrow's IPC format: of streams, or of files."""

    def __init__(self, file: IO[bytes], schema: pa.Schema, *, stream: bool) -> None:
        self._file = file
        self._writer = (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        self._writer.write_batch(batch)

    def flush(self) -> None:
        """Empties the buffer."""
        self._file.flush()

    def close(self) -> None:
        """Writes the end."""
        self._writer.close()


@contextlib.contextmanager
def open_output(
    format_: str, path: str | None, shown: Sequence[Column], schema: pa.Schema, *, live: bool = False
) -> Iterator[Output]:
    """The output for ``--format`` and ``--output`` (``None``: standard output). Raises ``OSError``.

    ``shown`` is what a person is shown, ``schema`` what all batches have. ``live``: rows are flushed as they come.
    """
    output: Output
    if path is None:
        if format_ == ARROW:
            with contextlib.closing(ArrowOutput(sys.stdout.buffer, schema, stream=True)) as output:
                yield output
            return
        output = _text_output(sys.stdout, format_, shown, schema, live=live)
        yield output
        output.flush()
        return
    with _replaced(path) as (target, mode), _opened(target, mode, format_, shown, schema) as output:
        yield output


@contextlib.contextmanager
def open_text(path: str | None) -> Iterator[IO[str]]:
    """A text file for ``--output`` (``None``: standard output), which takes its name when it is whole. Raises
    ``OSError``."""
    if path is None:
        yield sys.stdout
        return
    with _replaced(path) as (target, mode), target.open(mode, encoding="utf-8") as file:
        yield cast("IO[str]", file)


@contextlib.contextmanager
def open_binary(path: str) -> Iterator[IO[bytes]]:
    """The same for bytes."""
    with _replaced(path) as (target, mode), target.open(mode + "b") as file:
        yield cast("IO[bytes]", file)


@contextlib.contextmanager
def _opened(path: Path, mode: str, format_: str, shown: Sequence[Column], schema: pa.Schema) -> Iterator[Output]:
    if format_ in (PARQUET, ARROW):
        with (
            path.open(mode + "b") as binary,
            contextlib.closing(_binary_output(cast("IO[bytes]", binary), format_, schema)) as it,
        ):
            yield it
        return
    with path.open(mode, encoding="utf-8") as file:
        output = _text_output(cast("IO[str]", file), format_, shown, schema)
        yield output
        output.flush()


def _binary_output(file: IO[bytes], format_: str, schema: pa.Schema) -> ArrowOutput | ParquetOutput:
    return ArrowOutput(file, schema, stream=False) if format_ == ARROW else ParquetOutput(file, schema)


def _text_output(
    file: IO[str], format_: str, shown: Sequence[Column], schema: pa.Schema, *, live: bool = False
) -> Output:
    if format_ == JSONL:
        return JsonLinesOutput(file)
    return CsvOutput(file, schema) if format_ == CSV else TableOutput(file, shown, live=live)


def _field(text: str) -> str:
    """A text as a field of CSV."""
    if text and not any(one in text for one in '",\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _escaped(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
