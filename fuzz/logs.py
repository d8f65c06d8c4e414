# Invariant: any bytes as a log segment give batches that fit the schema and are valid to Arrow, in the order of the
# file; nothing is raised, and rows do not depend on where batches are cut.
"""Segments of real brokers, damaged, as tables of records and of batches."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator

import pyarrow as pa

from fuzz import GOLDEN
from fuzz.records import mended, words
from kwire import log, tables
from kwire.testing.mutation import mutate

__all__ = ["check", "mended", "run", "seeds", "words"]

SEGMENTS = GOLDEN / "segments"
LARGEST = 300_000

_segments: list[bytes] = []


def _seeds() -> list[bytes]:
    if not _segments:
        for path in sorted(SEGMENTS.glob("*/*/*.log")):
            if path.stat().st_size <= LARGEST:
                _segments.append(path.read_bytes())
    return _segments


def check(data: bytes) -> None:
    """Asserts the invariant for one input."""
    of_records = tables.table("records", "log")
    assert of_records.deep is not None
    for table in (of_records, of_records.deep, tables.table("batches", "log")):
        at = 0
        for batch in table.read(io.BytesIO(data), name="__consumer_offsets-0/fuzz.log"):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.equals(table.schema)
            assert batch.num_rows
            batch.validate(full=True)
            for position in batch.column("position").to_pylist():
                assert position >= at
                at = position
    # Whatever the name that stands in every row: more of it is more batches, not other rows. It takes 100 times as long
    # as all else, so few inputs have it.
    if zlib.crc32(data) % 16:
        return
    long = "n" * 500_000
    one, other = (list(log.read(io.BytesIO(data), name=name)) for name in ("n", long))
    for batch in other:
        batch.validate(full=True)
    assert [row | {"segment": "n"} for batch in other for row in batch.to_pylist()] == [
        row for batch in one for row in batch.to_pylist()
    ]


def run(rng: random.Random) -> None:
    """One round."""
    data = mutate(rng.choice(_seeds()), rng, rng.choice((1, 3, 20)))[: rng.choice((500, 5_000, 50_000))]
    try:
        check(data)
    except Exception as error:
        error.add_note(data.hex())
        raise


def seeds() -> Iterator[bytes]:
    """The beginnings of segments of real brokers."""
    for path in sorted(SEGMENTS.glob("*/*/*.log")):
        yield path.read_bytes()[:2000]
