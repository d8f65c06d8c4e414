"""Every record set of the golden captures, read by both readers and written again.

What Kafka's own producer, librdkafka, kafka-python, aiokafka and others wrote must come out byte for byte the same
where it is not compressed, and with the same records where it is.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from kwire.capture import read
from kwire.kernels.engine import MACHINE, using
from kwire.records import decode, encode_batch, to_arrow

pytestmark = pytest.mark.usefixtures("engine")

CAPTURES = sorted(path for path in Path(__file__).parent.rglob("*.pcap*") if path.suffix in (".pcap", ".pcapng"))


@cache
def record_sets(path: Path) -> tuple[bytes, ...]:
    """The contents of the ``records`` fields of all frames, found once for both engines."""
    with path.open("rb") as stream, using(MACHINE):
        return tuple(_record_sets(stream))


def _record_sets(stream: BinaryIO) -> Iterator[bytes]:
    for batch in read(stream, table="messages", payloads=True):
        for name, body in zip(batch.column("api_name").to_pylist(), batch.column("body").to_pylist(), strict=True):
            if body is not None and name in ("Produce", "Fetch"):
                yield from _found(json.loads(body))


def _found(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        for name, inside in value.items():
            if name == "records" and isinstance(inside, str):
                yield base64.b64decode(inside)
            else:
                yield from _found(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _found(inside)


@pytest.mark.wide(keep=25)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_record_sets_are_written_again(path: Path) -> None:
    for data in record_sets(path):
        batches = list(decode(data, verify_crc=True))
        end = 0
        for batch in batches:
            end = batch.position + batch.size
            again = encode_batch(batch)
            if batch.compression == "none":
                assert again == data[batch.position : end]
            else:
                (same,) = decode(again, verify_crc=True)
                assert same == batch
        # What is left is an entry that the broker cut off.
        assert list(decode(data[end:])) == []
        columns = to_arrow(data, columns=["offset", "key", "value", "crc_ok"]).to_pylist()
        assert [(one["offset"], one["key"], one["value"], one["crc_ok"]) for one in columns] == [
            (one.offset, one.key, one.value, True) for batch in batches for one in batch.records
        ]


def test_there_are_record_sets_to_look_at() -> None:
    assert sum(len(list(decode(data))) for path in CAPTURES for data in record_sets(path)) > 50
