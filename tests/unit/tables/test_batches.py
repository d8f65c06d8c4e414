"""The table ``batches`` of captures made here: a row for whatever is no batch, whichever columns were chosen."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
import record_sets
from made_captures import read
from packets import Connection, pcap, produce
from record_sets import gzipped, message

from kwire import tables
from kwire.kernels.engine import MACHINE, PYTHON, using
from kwire.limits import Limits

BRIEF = ("frame", "batch", "size", "compressed_size", "uncompressed_size", "magic", "count", "base_offset", "status")


def rows(*sets: bytes, **options: Any) -> list[dict[str, Any]]:
    connection = Connection().open()
    for number, one in enumerate(sets):
        connection.send(produce(number, 1, one))
    return read(pcap(connection.packets), "batches", **options)


def brief(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in BRIEF) for row in found]


def test_what_is_no_batch_is_a_row_among_those_that_are() -> None:
    good = message(b"k", b"v", offset=3)
    size = len(good)
    corrupt, unknown = bytearray(good), bytearray(good)
    corrupt[15] ^= 1
    unknown[16] = 9
    shut = good + bytes(corrupt) + bytes(unknown) + good
    found = rows(shut, good + struct.pack(">qi", 0, 3) + bytes(9), good[:-1])
    begin = found[0]["batch"]
    assert brief(found) == [
        (0, begin, size, size, size, 1, 1, 3, "ok"),
        (0, begin + size, size, size, size, 1, 1, 3, "corrupt"),
        (0, begin + 2 * size, size, None, None, None, None, None, "malformed"),
        (0, begin + 3 * size, size, size, size, 1, 1, 3, "ok"),
        (1, begin, size, size, size, 1, 1, 3, "ok"),
        (1, begin + size, None, None, None, None, None, None, "malformed"),
    ]
    assert [row["error"] for row in found if row["status"] != "ok"] == [
        "the checksum does not match",
        f"at byte {2 * size} of the record set: magic 9 is not known",
        f"at byte {size} of the record set: an entry of 3 bytes: what follows cannot be read",
    ]


def test_what_cannot_be_decompressed_keeps_what_its_header_says() -> None:
    inner = message(b"k", b"v") + message(None, b"w", offset=1)
    wrapper = message(None, gzipped(inner), attributes=1, offset=8)
    broken = message(None, b"no gzip", attributes=1, offset=9)
    empty = message(None, gzipped(b""), attributes=1, offset=9)
    found = rows(wrapper + broken + message(b"k", b"v"), empty)
    assert [(row["count"], row["last_offset"], row["uncompressed_size"], row["status"]) for row in found] == [
        (2, 8, len(inner), "ok"),
        (None, 9, None, "malformed"),
        (1, 0, len(message(b"k", b"v")), "ok"),
        (None, 9, None, "malformed"),
    ]
    assert found[0]["compressed_size"] == len(gzipped(inner))
    assert found[1]["compression"] == "gzip"


def test_a_batch_beyond_a_limit_says_so() -> None:
    (row,) = rows(message(None, record_sets.bomb(1, 1 << 20), attributes=1), limits=Limits(decompressed=1 << 16))
    assert (row["status"], row["uncompressed_size"]) == ("too_large", None)
    strange = bytearray(message(b"k", b"v"))
    strange[16] = 9
    found = rows(bytes(strange) * 20, limits=Limits(problems=5))
    assert len(found) == 20
    assert {row["status"] for row in found} == {"malformed", "too_large"}


def test_a_frame_that_cannot_be_located_is_one_row() -> None:
    connection = Connection().open().send(produce(1, 1, message(b"k", b"v"))[:-3])
    connection.send(produce(2, 1, message(b"k", b"v")))
    found = read(pcap(connection.packets), "batches")
    assert [(row["frame"], row["batch"] is None, row["status"]) for row in found] == [
        (0, True, "malformed"),
        (1, False, "ok"),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_rows_depend_on_neither_columns_nor_engine_and_records_join_them(seed: int) -> None:
    some = random.Random(seed)
    sets = []
    for one in record_sets.record_sets(some)[:40]:
        damaged = bytearray(one)
        for _ in range(some.randrange(3)):
            if damaged:
                damaged[some.randrange(len(damaged))] ^= 1 << some.randrange(8)
        sets.append(bytes(damaged))
    with using(PYTHON):
        found = rows(*sets)
    with using(MACHINE):
        assert rows(*sets) == found
    for name in tables.table("batches").schema.names:
        assert [row[name] for row in rows(*sets, columns=[name])] == [row[name] for row in found]
    connection = Connection().open()
    for number, one in enumerate(sets):
        connection.send(produce(number, 1, one))
    places = {(row["frame"], row["batch"]) for row in found}
    of_records = read(pcap(connection.packets), "records", columns=["frame", "batch"])
    assert {(row["frame"], row["batch"]) for row in of_records if row["batch"] is not None} <= places
