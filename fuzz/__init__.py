"""Fuzz harnesses: ``python -m fuzz``. Each module states the invariant that it holds kwire to in its first comment.

A harness has one or both of these:

- ``run(rng)`` makes an input by itself, at random, and asserts the invariant of it.
- ``check(data)`` asserts the invariant of any bytes. With it, coverage guides the inputs (``fuzz._guided``).
  ``seeds()`` gives good inputs to begin with, ``words()`` bytes that mean something, ``mended(data)`` an input whose
  checksums are right.

This module has the seeds that several of them share: what real brokers and clients have sent.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["GOLDEN", "Frame", "cut", "damaged", "golden_frames", "joined", "sized", "small_captures"]

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"


class Frame(NamedTuple):
    """A frame of a golden capture. ``data`` has no size in front."""

    response: bool
    api: int
    version: int
    data: bytes


@cache
def golden_frames(each: int = 1, largest: int = 2000) -> tuple[Frame, ...]:
    """Frames of real brokers: the first ones of each API and version, in the captures that have all of them."""
    from kwire.capture.reading import Reading
    from kwire.kernels.layouts import Status

    seen: dict[tuple[int, int, int], int] = {}
    found = []
    for path in sorted(GOLDEN.glob("*-raw/every-version.pcap")):
        with path.open("rb") as file:
            for some in Reading(file):
                about = (some[one].tolist() for one in ("response", "api", "version", "status"))
                for row, (response, api, version, status) in enumerate(zip(*about, strict=True)):
                    kind = response, api, version
                    if status != Status.OK or seen.get(kind, 0) >= each:
                        continue
                    data = some.bytes_of(row)
                    if len(data) <= largest:
                        seen[kind] = seen.get(kind, 0) + 1
                        found.append(Frame(bool(response), api, version, data))
    return tuple(found)


def small_captures(largest: int) -> Iterator[bytes]:
    """Golden captures, not compressed, and those of other protocols."""
    for path in sorted([*GOLDEN.glob("*/*.pcap*"), *GOLDEN.glob("*/*/*.pcap*")]):
        if path.suffix not in (".gz", ".zst") and path.stat().st_size <= largest:
            yield path.read_bytes()


def damaged(data: bytes, rng: random.Random, times: int = 1) -> bytes:
    """What ``mutate`` does, and numbers that are one too large or too small: a bound that is off by one lets them."""
    # Not above: where kwire is to be counted, it is not imported before.
    from kwire.testing.mutation import mutate

    for _ in range(times):
        if data and rng.random() < 0.3:
            at = rng.randrange(len(data))
            # A zigzag varint has one more where its byte has two more.
            data = data[:at] + bytes([(data[at] + rng.choice((-2, -1, 1, 2))) % 256]) + data[at + 1 :]
        else:
            data = mutate(data, rng)
    return data


def sized(frame: bytes) -> bytes:
    """A frame as it is on the wire."""
    return len(frame).to_bytes(4, "big") + frame


def joined(parts: Iterable[bytes]) -> bytes:
    """Several texts or payloads as one input, each with two bytes of its length before it."""
    return b"".join(len(one).to_bytes(2, "big") + one for one in parts)


def cut(data: bytes, most: int = 6) -> list[bytes]:
    """What ``joined`` has joined, ``most`` of them."""
    found, at = [], 0
    while at + 2 <= len(data) and len(found) < most:
        size = int.from_bytes(data[at : at + 2], "big")
        found.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return found
