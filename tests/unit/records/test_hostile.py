"""Small input that asks for much: an error from both readers, for no more work and memory than the limits allow.

Work is counted, not timed: bytes out of the decompressors, and lines that are run (``work.py``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from counted_work import decompression
from record_sets import GZIP, LZ4, SNAPPY, ZSTD, batch, bomb, gzipped, message, record

from kwire.errors import DecodeError, LimitError
from kwire.limits import DEFAULT_LIMITS
from kwire.records import decode, to_arrow

MEASURE = """
import json, pathlib, resource, sys
from kwire.errors import DecodeError
from kwire.records import decode, to_arrow
from counted_work import lines
folder, reader, counting = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "lines"
def read(data):
    try:
        if reader == "objects":
            list(decode(data))
        else:
            to_arrow(data)
    except DecodeError as error:
        return f"{type(error).__name__}: {error}"
    return ""
read((folder / "valid").read_bytes())  # so that the kernels are there
found = {}
for path in folder.glob("*.bomb"):
    data = path.read_bytes()
    if counting:
        found[path.stem] = read(data), lines(lambda: read(data), int(sys.argv[4]))
    else:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        said = {read(data) for _ in range(3)}
        assert len(said) == 1, said
        found[path.stem] = said.pop(), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
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


def read(reader: str, data: bytes, problems: list[DecodeError] | None = None) -> int:
    """How many records a reader finds."""
    if reader == "columns":
        return to_arrow(data, problems=problems).num_rows
    return sum(len(one.records) for one in decode(data, problems=problems))


def measured(folder: Path, reader: str, *args: str, **environment: str) -> dict[str, tuple[str, float]]:
    """What the error says and what is measured, by the bomb's name, in an interpreter that has read nothing else."""
    for name, (data, _) in BOMBS.items():
        (folder / f"{name}.bomb").write_bytes(data)
    (folder / "valid").write_bytes(message() + batch(record(), 1))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder), reader, *args],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
    )
    found: dict[str, tuple[str, float]] = json.loads(done.stdout)
    assert set(found) == set(BOMBS)
    print(json.dumps(found, indent=1))
    return found


@pytest.mark.wide
@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_bombs_take_less_than_200_mb(reader: str, tmp_path: Path) -> None:
    for name, (said, megabytes) in measured(tmp_path, reader, "memory").items():
        assert BOMBS[name][1] in said
        assert megabytes < 200, name


@pytest.mark.wide
@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_claims_of_billions_run_few_lines(reader: str, tmp_path: Path) -> None:
    """The kernels too, as Python. Beyond 10,000 lines the reader is stopped and there is no output."""
    found = measured(tmp_path, reader, "lines", "10000", NUMBA_DISABLE_JIT="1")
    for name, (said, lines) in found.items():
        assert BOMBS[name][1] in said
        assert 50 < lines <= 10_000, name


MEBIBYTE = 1 << 20
LIMIT = DEFAULT_LIMITS.decompressed

BY_LIBRARY = {
    # zlib is slow at what shrinks most: of what becomes large it makes 8 MiB, and another library the rest.
    "gzip": {"zlib": 8 * MEBIBYTE + 1, "cramjam": LIMIT},
    "snappy": {"snappy": LIMIT},
    # One byte more says that there is more.
    "lz4": {"lz4": LIMIT + 1},
    "zstd": {"zstd": LIMIT + 1},
}


@pytest.mark.parametrize("name", [name for name in BOMBS if " in magic " in name])
@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_a_bomb_is_decompressed_up_to_the_limit_once(reader: str, name: str) -> None:
    with decompression(most=2 * LIMIT) as work, pytest.raises(LimitError):
        read(reader, BOMBS[name][0])
    assert work.made == BY_LIBRARY[name.split()[0]]


@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_wrappers_in_each_other_are_opened_as_deep_as_the_limit(reader: str) -> None:
    with decompression(most=LIMIT) as work, pytest.raises(LimitError):
        read(reader, BOMBS["a wrapper nested 1,000 deep"][0])
    assert work.calls.total() == DEFAULT_LIMITS.nesting


@pytest.mark.wide
@pytest.mark.parametrize("reader", ["objects", "columns"])
def test_what_was_tried_in_vain_is_paid_for(reader: str) -> None:
    """Wrappers in each other can hold hundreds of bombs, of each of which 40 MiB would be made: 20 GiB in all."""
    inner = message(None, gzipped(bytes(34 << 20)), attributes=GZIP)
    data = message(None, gzipped(message(None, gzipped(inner * 50), attributes=1) * 10), attributes=1)
    assert len(data) < 20_000
    data += batch(gzipped(record()), 1, attributes=GZIP)
    problems: list[DecodeError] = []
    # Two failures may cost 32 MiB each; then each is paid for from the total, and what was made of it is less.
    total = DEFAULT_LIMITS.total
    with decompression(most=total * 3 // 2) as work:
        assert read(reader, data, problems) == 1
    assert work.made.total() > 2 * DEFAULT_LIMITS.decompressed
    # The object reader goes into each wrapper in turn, and stops at the next one when all is spent.
    assert len(problems) == 500 if reader == "columns" else 20 < len(problems) <= 500
    assert all("decompresses to more than the limit" in one.message for one in problems)
