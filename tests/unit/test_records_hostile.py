"""Small input that asks for much: an error, within 100 ms and 200 MB of memory, from both readers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_records_compression import GZIP, LZ4, SNAPPY, ZSTD, bomb
from test_records_decoding import batch, gzipped, message, record

from kwire.errors import DecodeError
from kwire.records import decode, to_arrow

MEASURE = """
import json, pathlib, resource, sys, time
from kwire.errors import DecodeError
from kwire.records import decode, to_arrow
folder, reader = pathlib.Path(sys.argv[1]), sys.argv[2]
def read(data):
    if reader == "objects":
        list(decode(data))
    else:
        to_arrow(data)
read((folder / "valid").read_bytes())  # so that the kernels are there
found = {}
for path in folder.glob("*.bomb"):
    data = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = []
    for _ in range(3):  # the first may allocate memory that the others find
        start = time.process_time()
        try:
            read(data)
            said = ""
        except DecodeError as error:
            said = f"{type(error).__name__}: {error}"
        took.append(time.process_time() - start)
    found[path.stem] = said, min(took), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps(found))
"""
SIZE = 10 << 20


def bombs() -> dict[str, tuple[bytes, str]]:
    """Name, bytes, and what the error says."""
    made = {
        f"{name} in magic {magic}": (
            batch(bomb(codec, SIZE), 1000, attributes=codec)
            if magic == 2
            else message(None, bomb(codec, SIZE), magic=magic, attributes=codec),
            f"LimitError: record set $ at byte 0: {name} data decompresses to more than the limit",
        )
        for name, codec in (("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD))
        for magic in (0, 1, 2)
        if codec != ZSTD or magic == 2
    }
    deep = message()
    for _ in range(1000):
        deep = message(None, gzipped(deep), attributes=1)
    made["a wrapper nested 1,000 deep"] = (deep, "LimitError: record set $ at byte 0: compressed messages inside")
    many = record() * 10
    made["2**31 records"] = (batch(many, 2**31 - 1), "2147483647 records are claimed, 10 are there")
    made["2**31 compressed records"] = (
        batch(gzipped(many), 2**31 - 1, attributes=1),
        "2147483647 records are claimed, 10 are there",
    )
    made["2**30 headers"] = (batch(b"\x14\0\0\0\1\1\xfe\xff\xff\xff\x07", 1), "record 0: a header count of 1073741823")
    return made


BOMBS = bombs()


@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_bombs_cost_little(reader: str, tmp_path: Path) -> None:
    for name, (data, _) in BOMBS.items():
        (tmp_path / f"{name}.bomb").write_bytes(data)
    (tmp_path / "valid").write_bytes(message() + batch(record(), 1))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), reader], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert set(found) == set(BOMBS)
    print(json.dumps(found, indent=1))
    for name, (said, seconds, megabytes) in found.items():
        assert BOMBS[name][1] in said
        assert megabytes < 200, name
        assert seconds < 0.1, name


@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_what_was_tried_in_vain_is_paid_for(reader: str) -> None:
    """Wrappers in each other can hold hundreds of bombs, each of which would cost 30 ms: 15 seconds in all."""
    inner = message(None, gzipped(bytes(34 << 20)), attributes=GZIP)
    data = message(None, gzipped(message(None, gzipped(inner * 50), attributes=1) * 10), attributes=1)
    assert len(data) < 20_000
    data += batch(gzipped(record()), 1, attributes=GZIP)
    problems: list[DecodeError] = []
    start = time.process_time()
    if reader == "columns":
        rows = to_arrow(data, problems=problems).num_rows
    else:
        rows = sum(len(one.records) for one in decode(data, problems=problems))
    assert time.process_time() - start < 6
    assert rows == 1
    # The object reader goes into each wrapper in turn, and stops at the next one when all is spent.
    assert len(problems) == 500 if reader == "columns" else 20 < len(problems) <= 500
    assert all("decompresses to more than the limit" in one.message for one in problems)
