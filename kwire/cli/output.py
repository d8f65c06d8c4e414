"""How rows are written: a table for people, JSON lines for programs, Parquet for engines.

An ``Output`` takes Arrow batches of one schema, as they come, and keeps none of them. Rules kept here:

- JSON lines: one object per row with every column; bytes are base64, as Kafka's own JSON converters write them; times
  are ISO 8601 in UTC with microseconds; ``body``, JSON text in the tables, is a nested object.
- JSON lines are lines to every reader and text to every terminal: what ends a line elsewhere (U+0085, U+2028, U+2029),
  what a terminal may obey (U+007F to U+009F) and what changes the direction of writing is escaped, other characters
  beyond ASCII only where the output has another encoding than UTF-8.
- NaN and infinite numbers are ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
- A time outside the years 1 to 9999, which a hostile record can have, is ``@`` and its seconds since 1970.
- A file is written under a temporary name beside its own, and takes its name when it is complete: nobody reads half a
  file, and an existing one is replaced only by a whole one. The temporary name cannot be guessed and must not exist,
  so whoever else may write to the folder cannot lead the output elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

from kwire.cli.table import TableWriter
from kwire.tables.showing import Column
from kwire.wire import FIRST_US, LAST_US

__all__ = ["Output", "open_output", "open_text", "rows_of", "texts_of_times"]


_OBEYED: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""What JSON need not escape and a terminal may obey: DEL, the C1 controls, and those of lines and of directions."""
_NO_ASCII: Final = re.compile(r"[^\x20-\x7e]+")


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
        self.to_terminal = file.isatty()
        self._writer = TableWriter(file, columns, live=live)

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        self._writer.write(rows_of(batch))

    def flush(self) -> None:
        """Writes what waits for the widths of the columns to be known."""
        self._writer.flush()


class JsonLinesOutput(Output):
    """One JSON object per line."""

    def __init__(self, file: IO[str]) -> None:
        self.to_terminal = file.isatty()
        self._file = file
        self._encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_base64).encode
        utf_8 = (getattr(file, "encoding", None) or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
        self._unsafe = _OBEYED if utf_8 else _NO_ASCII

    def write(self, batch: pa.RecordBatch) -> None:
        """Writes the rows of ``batch``."""
        for row in rows_of(batch):
            if not isinstance(row.get("body", {}), str | None):
                self._write(self._encode(row))
                continue
            # The body is JSON already; it goes in as it is, as the last member.
            body = row.pop("body")
            others = self._encode(row)[:-1] + ("," if row else "")
            self._write(f'{others}"body":{"null" if body is None else body}}}')

    def _write(self, text: str) -> None:
        # Outside of its strings JSON has ASCII only, so an escape stands in a string wherever it is put.
        if "\x7f" in text or not text.isascii():
            text = self._unsafe.sub(_escaped, text)
        self._file.write(text + "\n")

    def flush(self) -> None:
        """Empties the buffer."""
        self._file.flush()


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


@contextlib.contextmanager
def open_output(
    format_: str, path: str | None, shown: Sequence[Column], schema: pa.Schema, *, live: bool = False
) -> Iterator[Output]:
    """The output for ``--format`` and ``--output`` (``None``: standard output). Raises ``OSError``.

    ``shown`` is what a person is shown, ``schema`` what all batches have. ``live``: rows are flushed as they come.
    """
    output: Output
    if path is None:
        output = TableOutput(sys.stdout, shown, live=live) if format_ == "table" else JsonLinesOutput(sys.stdout)
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
def _replaced(path: str) -> Iterator[tuple[Path, str]]:
    """What to open in place of ``path``, and how: a new file, which takes its name when the block has ended well."""
    final = Path(path)
    if final.exists() and not final.is_file():
        # A device or a pipe has no neighbour to be renamed from.
        yield final, "w"
        return
    partial = final.with_name(f".{secrets.token_hex(16)}.partial")
    try:
        # "x" is O_CREAT and O_EXCL: what is there already is neither opened nor followed.
        yield partial, "x"
        partial.replace(final)
    except BaseException as error:
        ours = isinstance(error, OSError) and error.filename is not None and os.fspath(error.filename) == str(partial)
        if not (ours and isinstance(error, FileExistsError)):
            partial.unlink(missing_ok=True)
        if ours and isinstance(error, OSError):
            error.filename, error.filename2 = path, None
        raise


@contextlib.contextmanager
def _opened(path: Path, mode: str, format_: str, shown: Sequence[Column], schema: pa.Schema) -> Iterator[Output]:
    if format_ == "parquet":
        with (
            path.open(mode + "b") as binary,
            contextlib.closing(ParquetOutput(cast("IO[bytes]", binary), schema)) as it,
        ):
            yield it
        return
    with path.open(mode, encoding="utf-8") as file:
        text = cast("IO[str]", file)
        output = TableOutput(text, shown) if format_ == "table" else JsonLinesOutput(text)
        yield output
        output.flush()


def _escaped(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _base64(value: object) -> str:
    assert isinstance(value, bytes)
    return base64.b64encode(value).decode("ascii")


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, with times as text."""
    columns = [
        texts_of_times(column) if pa.types.is_timestamp(column.type) else _plain(column.type, column.to_pylist())
        for column in batch.columns
    ]
    names = batch.schema.names
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _plain(type_: pa.DataType, values: list[Any]) -> list[Any]:
    """``values`` with maps as dicts, and with NaN and the infinities as words, since JSON has no numbers for them."""
    if pa.types.is_map(type_):
        return [None if pairs is None else dict(pairs) for pairs in values]
    return [_finite(value) for value in values] if _has_floats(type_) else values


def _has_floats(type_: pa.DataType) -> bool:
    return pa.types.is_floating(type_) or any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        # The words of protobuf's JSON mapping.
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return value


def texts_of_times(column: pa.Array) -> list[str | None]:
    """``2026-11-21T02:18:00.123456Z`` for each time of a column, null for null."""
    numbers = column.cast(pa.int64()).to_pylist()
    texts = column.cast(pa.string()).to_pylist()
    return [
        None
        if number is None
        else text.replace(" ", "T")
        # Arrow's own text is wrong far outside.
        if FIRST_US <= number <= LAST_US
        else f"@{number // 1_000_000}.{number % 1_000_000:06}"
        for number, text in zip(numbers, texts, strict=True)
    ]
