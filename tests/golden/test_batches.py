"""The table ``batches`` of the golden captures, against the batches that the plain reader finds in their messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from valid_batches import valid

from kwire import capture
from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status
from kwire.records import decode
from kwire.records.compression import decompress
from kwire.records.objects import Batch

CAPTURES = [
    Path(__file__).parent / name
    for name in (
        "kafka-3.9-zk-librdkafka/fallback-0.9.pcap",
        "kafka-3.9-zk-kafka-python/pinned-0.10.1.pcap",
        "kafka-3.9-kraft-kafka-python/conversions.pcap",
        "kafka-3.9-kraft-brokers/quorum.pcap",
        "kafka-4.3-kraft-java/clients.pcap",
        "kafka-4.3-kraft-java/share.pcap",
        "kafka-4.4-kraft-raw/every-version.pcap",
    )
]
"""Every format, codec and kind of message that has record sets."""


def record_sets(body: Any) -> Iterator[tuple[int, bytes]]:
    """The partition and bytes of each record set in a message."""
    if hasattr(body, "topic_data"):
        for topic in body.topic_data:
            yield from ((one.index, one.records) for one in topic.partition_data)
    else:
        for topic in body.responses:
            yield from ((one.partition_index, one.records) for one in topic.partitions)


def unpacked(batch: Batch, data: bytes) -> int:
    """The bytes of the records of a batch, decompressed by itself."""
    if batch.magic == 2:
        return len(decompress(batch.attributes & 7, data[61:], 1 << 30)) if batch.attributes & 7 else len(data) - 61
    if not batch.attributes & 7:
        return len(data)
    at = 18 + 8 * batch.magic
    at += 8 + max(struct.unpack_from(">i", data, at)[0], 0)
    return len(decompress(batch.attributes & 7, data[at:], 1 << 30, magic=batch.magic))


def walked(frame: Any, data: bytes) -> Iterator[dict[str, Any]]:
    for partition, records in record_sets(frame.message.body):
        begin = data.index(records) if records else 0
        for one in decode(records or b""):
            plain = one.magic < 2 and not one.attributes & 7
            yield {
                "partition": partition,
                "batch": begin + one.position,
                "size": one.size,
                "uncompressed_size": unpacked(one, records[one.position : one.position + one.size]),
                "magic": one.magic,
                "base_offset": one.base_offset if one.magic == 2 else one.last_offset if plain else None,
                "last_offset": one.last_offset,
                "count": len(one.records),
                "timestamp_type": one.timestamp_type,
                "compression": one.compression,
                "crc_ok": one.crc_ok,
                "producer_id": None if one.producer_id == -1 else one.producer_id,
                "producer_epoch": None if one.producer_epoch == -1 else one.producer_epoch,
                "base_sequence": None if one.base_sequence == -1 else one.base_sequence,
                "is_transactional": one.is_transactional,
                "is_control": one.is_control,
            }


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_rows_are_what_the_plain_reader_finds(path: Path) -> None:
    rows: dict[int, list[dict[str, Any]]] = {}
    records: dict[tuple[int, int], int] = {}
    with path.open("rb") as file:
        for table, batch in capture.read(
            file, tables=["batches", "records"], columns={"records": ["frame", "batch", "status"]}
        ):
            for row in valid(iter([batch])).__next__().to_pylist():
                # A ShareFetch response has whole batches.
                assert row["status"] == "ok" or (row["status"] == "not_acquired" and table == "records")
                if table == "batches":
                    rows.setdefault(row["frame"], []).append(row)
                else:
                    records[row["frame"], row["batch"]] = records.get((row["frame"], row["batch"]), 0) + 1
    assert rows
    # Each record joins its batch.
    found = {(frame, row["batch"]): row["count"] for frame, some in rows.items() for row in some}
    assert {key: count for key, count in found.items() if count} == records
    with path.open("rb") as file:
        for frames in Reading(file):
            for frame in frames:
                if frame.number not in rows or frame.status != Status.OK:
                    continue
                expected = list(walked(frame, bytes(frame.data)))
                said = rows.pop(frame.number)
                assert [{name: row[name] for name in expected[0]} for row in said] == expected
    assert not rows
