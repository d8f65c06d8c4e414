# Invariant: the rows of a damaged capture, their order, and what is said of its end, do not depend on how much of it is
# read at once, nor on whether its kernels are machine code or Python.
"""Captures of real brokers, damaged in their packets and their file structure, in windows and by both engines."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator
from typing import Any

from fuzz import GOLDEN, small_captures
from kwire.errors import CaptureError
from kwire.kernels.engine import MACHINE, PYTHON, Engine, choose, using
from kwire.tables.reading import read
from kwire.testing.mutation import mutate

LARGEST = 60_000
SLOW = 12_000
"""Bytes of captures that kernels as Python read too."""

TABLES = ("frames", "records", "connections")
WINDOWS = (1000, 2000, 4096, 9000, 20_000)

_captures: list[bytes] = []


def _seeds() -> list[bytes]:
    if not _captures:
        for path in sorted(GOLDEN.glob("*/*.pcap*")):
            if path.stat().st_size <= LARGEST and not path.name.endswith((".gz", ".zst")):
                _captures.append(path.read_bytes())
    return _captures


def rows(data: bytes, window: int | None, engine: Engine) -> dict[str, list[Any]]:
    """The rows of some tables, and what was wrong with the capture in the end."""
    found: dict[str, list[Any]] = {name: [] for name in (*TABLES, "end")}
    with using(engine):
        try:
            for name, batch in read(io.BytesIO(data), dict.fromkeys(TABLES), name="fuzz", window=window):
                found[name] += batch.to_pylist()
        except CaptureError as error:
            found["end"].append(str(error))
    return found


def differing(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> str | None:
    """The first difference, in a sentence; None where there is none."""
    for name, whole in one.items():
        theirs = other[name]
        if whole == theirs:
            continue
        at = next(
            (k for k, (a, b) in enumerate(zip(whole, theirs, strict=False)) if a != b), min(len(whole), len(theirs))
        )
        a, b = (each[at] if at < len(each) else None for each in (whole, theirs))
        if isinstance(a, dict) and isinstance(b, dict):
            a, b = ({k: v for k, v in x.items() if v != y.get(k) or k == "frame"} for x, y in ((a, b), (b, a)))
        return f"{name}: {len(whole)} and {len(theirs)} rows, row {at}: {a} and {b}"
    return None


def run(rng: random.Random) -> None:
    """One round."""
    data = mutate(rng.choice(_seeds()), rng, rng.choice((1, 3, 20, 200)))
    _compare(data, rng.choice(WINDOWS))


def _compare(data: bytes, window: int, engine: Engine = MACHINE) -> None:
    whole = rows(data, None, engine)
    wrong = differing(whole, rows(data, window, engine))
    if wrong is None and len(data) <= SLOW and engine is MACHINE:
        window = 0
        wrong = differing(whole, rows(data, None, PYTHON))
    assert wrong is None, (
        f"{'in Python' if not window else f'window {window}'}, {len(data)} bytes, crc {zlib.crc32(data):08x}: {wrong}"
    )


def seeds() -> Iterator[bytes]:
    """The beginnings of golden captures."""
    for number, data in enumerate(small_captures(1 << 30)):
        yield bytes([number % 256]) + data[: 800 + 500 * (number % 4)]


def check(data: bytes) -> None:
    """Asserts the invariant for one input: a window and a capture. Where kernels are Python, windows only."""
    if len(data) > 1:
        _compare(data[1:], 100 + 40 * data[0], choose(0))
