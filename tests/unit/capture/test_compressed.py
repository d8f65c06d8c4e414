"""Compressed sources: what they hold, and how much of it is there where they are damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import random
import re
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pyarrow as pa
import pytest
import zstandard

from kwire import CaptureError, capture
from kwire.capture.compressed import DamagedError, decompressed

CAPTURE = Path(__file__).parents[2] / "golden" / "kafka-3.9-zk-kafka-python" / "first-light.pcap"
RANDOM = random.Random(7)
DATA = b"".join(b"%d,%d;" % (k, RANDOM.randrange(1 << 30)) for k in range(4000))
SIZES = (1, 7, 100, 4096, 1 << 20)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "bzip2": bz2.compress,
    "lz4": lz4.frame.compress,
}


def read(source: bytes, size: int, *, into: bool) -> tuple[bytes, str | None]:
    """What is given before the end or an error, and what the error says."""
    stream, parts = decompressed(io.BytesIO(source)), []
    buffer = bytearray(size)
    try:
        while True:
            part = bytes(buffer[: stream.readinto(buffer)]) if into else stream.read(size)
            if not part:
                return b"".join(parts), None
            parts.append(part)
    except DamagedError as error:
        with pytest.raises(DamagedError):
            stream.read(1)
        return b"".join(parts), str(error)


@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("name", COMPRESS)
def test_all_bytes_are_given(name: str, into: bool) -> None:
    compress = COMPRESS[name]
    for size in SIZES[1:]:
        assert read(compress(DATA), size, into=into) == (DATA, None)
    assert decompressed(io.BytesIO(compress(DATA) + compress(b"more"))).read() == DATA + b"more"
    assert decompressed(io.BytesIO(compress(b""))).read() == b""


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("damage", ["junk", "no end", "checksum"])
def test_gzip_gives_every_byte_before_the_damage(damage: str, into: bool, size: int) -> None:
    whole = gzip.compress(DATA)
    made = {"junk": whole + b"junk", "no end": whole[:-4], "checksum": whole[:-5] + b"\0" + whole[-4:]}[damage]
    found, error = read(made, size, into=into)
    assert found == DATA
    assert error is not None


def test_gzip_that_is_cut_anywhere_gives_what_its_bytes_say() -> None:
    whole = gzip.compress(DATA[:300]) + gzip.compress(DATA[300:600])
    known = 0
    for end in range(4, len(whole)):
        found, _ = read(whole[:end], 50, into=True)
        assert DATA[:600].startswith(found)
        assert len(found) >= known
        known = len(found)
    assert known == 600


def test_damage_within_gzip_costs_nothing_before_it() -> None:
    whole = bytearray(gzip.compress(DATA))
    half = len(whole) // 2
    before, _ = read(bytes(whole[:half]), 4096, into=True)
    # Blocks of a kind that there is not.
    whole[half:] = b"\xff" * (len(whole) - half)
    found, error = read(bytes(whole), 4096, into=True)
    assert error is not None
    assert found.startswith(before[:-50])


def test_zeros_after_gzip_are_padding() -> None:
    for zeros in (1, 4, 600_000):
        assert read(gzip.compress(DATA) + bytes(zeros), 4096, into=True) == (DATA, None)
    assert read(gzip.compress(DATA) + bytes(9) + gzip.compress(b"more"), 4096, into=True) == (DATA + b"more", None)


@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("name", ["zstd", "bzip2", "lz4"])
def test_other_formats_lose_little(name: str, into: bool) -> None:
    for data in (DATA, DATA[:2000]):
        found, error = read(COMPRESS[name](data) + b"junk", 1 << 20, into=into)
        assert data.startswith(found)
        assert len(data) - len(found) <= 64 + len(data) // 16
        assert error is not None


@pytest.mark.parametrize("name", COMPRESS)
def test_a_capture_that_is_compressed_is_read_from_its_path(name: str, tmp_path: Path) -> None:
    whole = CAPTURE.read_bytes()
    path = tmp_path / "capture"
    path.write_bytes(COMPRESS[name](whole))
    columns = ["frame", "client_id", "api_name", "status"]
    rows = pa.Table.from_batches(capture.read(CAPTURE, "frames", columns=columns))
    assert pa.Table.from_batches(capture.read(path, "frames", columns=columns)) == rows
    assert pa.Table.from_batches(capture.read([path], "frames", columns=columns)) == rows
    with (
        path.open("rb") as file,
        pytest.raises(CaptureError, match=r"\w+: decompress it first, or give kwire its path"),
    ):
        list(capture.read(file, "frames"))
    path.write_bytes(COMPRESS[name](whole)[: -len(whole) // 8])
    with pytest.raises(CaptureError, match=re.escape(str(path))):
        list(capture.read(path, "frames"))
