# Invariant: a damaged capture gives rows that fit the table's schema, and at most one CaptureError, after the rows; no
# other exception, no crash of the process (kernels check their bounds), and no hang.
"""Captures of real brokers, damaged in their packets and their file structure, through the whole pipeline."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator

from fuzz import GOLDEN, small_captures
from kwire import capture, tables
from kwire.errors import CaptureError
from kwire.tables.reading import of_capture
from kwire.testing.mutation import mutate

LARGEST = 300_000
WINDOWS = (None, None, 300, 1000, 4096, 50_000)
TABLES = (*tables.names(tables.CAPTURE), *tables.names(tables.EVENTS))

_captures: list[bytes] = []


def _seeds() -> list[bytes]:
    if not _captures:
        for path in sorted(GOLDEN.glob("*/*.pcap*")):
            if path.suffix != ".gz" and path.stat().st_size <= LARGEST:
                _captures.append(path.read_bytes())
    return _captures


def run(rng: random.Random) -> None:
    """One round."""
    data = mutate(rng.choice(_seeds()), rng, rng.choice((1, 3, 20, 200)))
    _read(data, rng.choice(TABLES), rng.choice(WINDOWS))


def _read(data: bytes, table: str, window: int | None) -> None:
    try:
        for batch in capture.read(io.BytesIO(data), table, name="fuzz", window=window):  # type: ignore[arg-type]
            assert batch.schema.equals(of_capture(table).schema)
            batch.validate(full=True)
    except CaptureError:
        return
    except Exception as error:
        error.add_note(f"{table}, window {window}, {len(data)} bytes, crc {zlib.crc32(data):08x}")
        raise


def seeds() -> Iterator[bytes]:
    """The beginnings of golden captures, each for one of the tables."""
    for number, data in enumerate(small_captures(1 << 30)):
        yield bytes([number % 256, 0]) + data[: 3000 + 1000 * (number % 4)]


def check(data: bytes) -> None:
    """Asserts the invariant for one input: a table, a window and a capture."""
    if len(data) > 2:
        _read(data[2:], TABLES[data[0] % len(TABLES)], WINDOWS[data[1] % len(WINDOWS)])
