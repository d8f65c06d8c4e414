# Invariant: a damaged capture gives rows that fit the table's schema, and at most one CaptureError, after the rows; no
# other exception, no crash of the process (kernels check their bounds), and no hang.
"""Captures of real brokers, damaged in their packets and their file structure, through the whole pipeline."""

from __future__ import annotations

import io
import random
import zlib
from pathlib import Path

from kwire import capture, tables
from kwire.errors import CaptureError
from kwire.tables.reading import of_capture
from kwire.testing.mutation import mutate

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
LARGEST = 300_000

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
    table = rng.choice((*tables.names(tables.CAPTURE), *tables.names(tables.EVENTS)))
    window = rng.choice((None, None, 4096, 50_000))
    try:
        for batch in capture.read(io.BytesIO(data), table, name="fuzz", window=window):  # type: ignore[arg-type]
            assert batch.schema.equals(of_capture(table).schema)
            batch.validate(full=True)
    except CaptureError:
        return
    except Exception as error:
        error.add_note(f"{table}, window {window}, {len(data)} bytes, crc {zlib.crc32(data):08x}")
        raise
