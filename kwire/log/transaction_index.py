"""Reads a ``.txnindex``: the transactions that were aborted in a segment. It stands beside the segment of the marker.

``kwire.log.indexes`` holds it against its segment.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, NamedTuple

from kwire.errors import CaptureError
from kwire.log.files import LARGEST, content

__all__ = ["Aborted", "aborted_of", "read_aborted"]

_ENTRY: Final = struct.Struct(">hqqqq")


class Aborted(NamedTuple):
    """A transaction that was aborted: the offsets of its first record and of its marker. Also the last stable offset
    (LSO) when the entry was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_aborted(path: str | Path) -> list[Aborted]:
    """The entries of a ``.txnindex``. Raises ``CaptureError`` for a file that is none, ``OSError`` without one."""
    return aborted_of(content(Path(path), LARGEST), path)


def aborted_of(data: bytes, path: str | Path) -> list[Aborted]:
    """The entries of a ``.txnindex`` that holds ``data``. ``path`` is for errors: ``CaptureError``."""
    whole = len(data) - len(data) % _ENTRY.size
    found = []
    for at, (version, *fields) in zip(range(0, whole, _ENTRY.size), _ENTRY.iter_unpack(data[:whole]), strict=True):
        if version != 0:
            raise CaptureError(f"version {version} is not known", file=str(path), offset=at)
        one = Aborted(*fields)
        if not 0 <= one.first_offset <= one.last_offset:
            said = f"a transaction from offset {one.first_offset} to {one.last_offset}"
            raise CaptureError(said, file=str(path), offset=at)
        found.append(one)
    if whole != len(data):
        raise CaptureError(f"{len(data) - whole} bytes behind the last whole entry", file=str(path), offset=whole)
    return found
