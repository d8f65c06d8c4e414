"""The records that every client sends, and the plan that tells a client program what to do.

A client that is a program of its own (another language, or another version of a library than the recorder's) gets a
plan as a JSON file and prints, one JSON object per line, the records that it sent and read (``direction`` produce or
fetch, the fields of ``capturing.Record``) and notes (``note``, and what belongs to it).
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CODECS", "SAMPLES", "Sample", "samples", "write_plan"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BASE_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A record to send; ``timestamp`` None lets the client choose."""

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def samples(count: int = 12, headers: bool = False) -> list[Sample]:
    """The corner cases of keys and values first, then ``count`` records that compress."""
    corner = [
        Sample(b"key", b"value"),
        Sample(None, b"no key"),
        Sample(b"", b"empty key"),
        Sample(b"no value", None),
        Sample(b"empty value", b""),
        Sample(None, None),
        Sample("schlüssel".encode(), "wert \u2603".encode()),
        Sample(b"binary", bytes(range(0, 256, 5))),
    ]
    rest = [
        Sample(b"device-%02d" % (n % 5), b'{"device":%d,"state":"running","reading":%d}' % (n % 5, n * 7), BASE_MS + n)
        for n in range(count)
    ]
    if not headers:
        return corner + rest
    marks: list[tuple[tuple[str, bytes | None], ...]] = [
        (("trace", b"abc"),),
        (("empty", b""), ("null", None)),
        (("twice", b"1"), ("twice", b"2"), ("ünï", b"\x00\xff")),
    ]
    return [
        Sample(each.key, each.value, each.timestamp, marks[n % 4] if n % 4 < 3 else ())
        for n, each in enumerate(corner + rest)
    ]


SAMPLES = samples()


def write_plan(path: Path, what: list[Sample], **plan: Any) -> Path:
    """Write a plan: ``what`` is to be sent, everything else goes in as it is."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else b64encode(data).decode()

    plan["samples"] = [
        {
            "key": text(each.key),
            "value": text(each.value),
            "timestamp": each.timestamp,
            "headers": [[name, text(value)] for name, value in each.headers],
        }
        for each in what
    ]
    path.write_text(json.dumps(plan))
    return path
