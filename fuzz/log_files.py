# Invariant: any bytes as one of the files that a broker keeps beside its segments give entries or a CaptureError;
# nothing else is raised, and entries are no more than their bytes can hold.
"""Indexes, snapshots, checkpoints and properties of a broker's data folder."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fuzz import GOLDEN
from kwire.errors import CaptureError
from kwire.log.entries import entries

NAMES = (
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000016.snapshot",
    "leader-epoch-checkpoint",
    "replication-offset-checkpoint",
    "partition.metadata",
    "meta.properties",
)
_folder: list[Path] = []


def seeds() -> Iterator[bytes]:
    """Files of real brokers."""
    for number, name in enumerate(NAMES):
        end = name.removeprefix("0" * 20).removeprefix("0" * 18 + "16")
        for path in sorted((GOLDEN / "segments").glob(f"**/*{end}")):
            yield bytes([number]) + path.read_bytes()[:2000]


def words() -> Iterator[bytes]:
    """What stands in text files."""
    yield from (b"version: 0\n", b"topic_id: ", b"\n0\n1\n", b"cluster.id=", b"\\u0041", b"\\\n", b"#")


def check(data: bytes) -> None:
    """Asserts the invariant for one input: a name and a content, beside a segment of a real broker."""
    if not data:
        return
    path = _place() / NAMES[data[0] % len(NAMES)]
    path.write_bytes(data[1:])
    try:
        found = entries(path)
    except CaptureError:
        return
    finally:
        path.unlink()
    assert len(found.rows) <= len(data)


def _place() -> Path:
    """A folder with a segment."""
    if not _folder:
        made = Path(tempfile.mkdtemp(prefix="kwire-fuzz-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        _folder.append(made)
        segment = sorted((GOLDEN / "segments").glob("*/index-transactions-0/*0.log"))[0]
        (made / segment.name).write_bytes(segment.read_bytes()[:20_000])
    return _folder[0]
