"""Topics whose partitions have several segments and indexes with many entries, for the scenario ``segment-indexes``.

Brokers index every 4 KiB and start a segment every gigabyte; here they index nearly every batch, and a segment ends
after ten seconds of the records' own timestamps (``segment.ms``) or, where the broker's clock makes them, when its time
index is full (``segment.index.bytes``). Both need no time to pass, and releases of every age have both, while
``segment.bytes`` cannot be below 1 MiB from 4.0 on. A batch is what is sent before a flush, so the segments of two
recordings have the same shape. Each topic is there for one thing that makes an index differ from the obvious:

- ``index-plain``: timestamps that grow, so every index entry comes with one in the time index;
- ``index-late``: timestamps that go back, within batches too, and a codec per batch: a time index that is sparser than
  the offset index, and whose timestamps are not those of the last record of a batch;
- ``index-append-time``: LogAppendTime, compressed: one timestamp for all records of a batch;
- ``index-transactions``: two producers at a time, aborted transactions of which one spans segments, control batches;
- ``index-compacted``: gaps between offsets, segments and their indexes written by the log cleaner.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kafka  # type: ignore[import-untyped]

__all__ = ["TOPICS", "TRANSACTIONS", "fill", "wait_for_cleaner"]

COMMON = {"index_interval_bytes": "200", "retention_ms": "-1"}
BY_TIMESTAMP = COMMON | {"segment_ms": "10000"}
BY_INDEX = COMMON | {"segment_index_bytes": "96"}
"""A time index of 96 bytes is full with 7 entries of 12 bytes: the broker leaves room for one more, written at the end.

Not for topics that get several entries in one append, which messages of magic 1 are that are not compressed: Kafka 3.9
fails in the middle of the append when the index is full; the messages are in the log, and their offsets are given away
again.
"""

TRANSACTIONS = "index-transactions"
"""The topic that message formats before magic 2 cannot have."""

TOPICS: dict[str, dict[str, str]] = {
    "index-plain": BY_TIMESTAMP,
    "index-late": BY_TIMESTAMP,
    "index-append-time": BY_INDEX | {"message_timestamp_type": "LogAppendTime"},
    TRANSACTIONS: BY_INDEX,
    "index-compacted": BY_TIMESTAMP | {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"},
}
"""Topic -> settings, with underscores for dots."""

BASE_MS = 1_700_000_000_000
BATCHES = 30


def fill(address: str, topics: Sequence[str], codecs: Sequence[str]) -> None:
    """Write the topics that are named; ``codecs`` are those that the message format has."""
    for topic in topics:
        if topic == TRANSACTIONS:
            _fill_transactions(address, topic)
        else:
            _fill(address, topic, codecs)


def _fill(address: str, topic: str, codecs: Sequence[str]) -> None:
    """``BATCHES`` batches of one to four records of some forty bytes, with timestamps as the topic's name says."""
    used = {"index-late": codecs, "index-append-time": ["lz4"]}.get(topic, ["none"])
    producers = {codec: _producer(address, codec) for codec in used}
    try:
        for batch in range(BATCHES):
            late = 5 * (batch % 3) if topic == "index-late" else 0
            # Half of the batches of the compacted topic have keys that come once only, and stay.
            once = topic == "index-compacted" and batch % 2 == 0
            content = [
                {
                    "key": b"device-%d" % (batch if once else record + batch % 3),
                    "value": b'{"batch":%d,"record":%d,"state":"on"}' % (batch, record),
                    "timestamp_ms": BASE_MS + (batch - late) * 1000 + (-record if topic == "index-late" else record),
                }
                for record in range(1 + batch * 7 % 4)
            ]
            _send(producers[used[batch % len(used)]], topic, content)
            if topic == "index-append-time":
                time.sleep(0.003)  # the broker's clock is to go on between batches
    finally:
        for producer in producers.values():
            producer.close(timeout=10)


def _fill_transactions(address: str, topic: str) -> None:
    """Short transactions of one producer, every third aborted, while one of another producer goes on and aborts."""
    short, long = (_producer(address, "none", transactional_id=f"{topic}-{name}") for name in ("short", "long"))
    try:
        for producer in (short, long):
            producer.init_transactions()
        long.begin_transaction()
        for number in range(7):
            short.begin_transaction()
            for batch in range(2):
                values = [b"transaction %d, record %d" % (number, batch * 2 + record) for record in range(2)]
                _send(short, topic, [{"key": b"short", "value": value} for value in values])
                _send(long, topic, [{"key": b"long", "value": b"beside transaction %d" % number}])
            if number % 3 == 1:
                short.abort_transaction()
            else:
                short.commit_transaction()
        long.abort_transaction()
        short.begin_transaction()
        _send(short, topic, [{"key": b"short", "value": b"the last one"}])
        short.commit_transaction()
    finally:
        for producer in (short, long):
            producer.close(timeout=10)


def _send(producer: Any, topic: str, content: Sequence[dict[str, Any]]) -> None:
    """Send one batch and wait for it. Raises the broker's error: what is in a log without an answer is no reference."""
    sent = [producer.send(topic, partition=0, **each) for each in content]
    producer.flush(timeout=20)
    for future in sent:
        future.get(timeout=20)


def wait_for_cleaner(folder: Path, topic: str, seconds: float = 30) -> None:
    """Wait until the log cleaner has been through all segments of partition 0 but the active one.

    ``folder`` is a log folder of the broker, with the file in which the cleaner writes how far it came.
    """
    deadline = time.monotonic() + seconds
    checkpoint = folder / "cleaner-offset-checkpoint"
    while True:
        active = max(int(segment.stem) for segment in (folder / f"{topic}-0").glob("*.log"))
        if checkpoint.exists() and f"{topic} 0 {active}" in checkpoint.read_text().split("\n"):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"the log cleaner did not come to {topic} within {seconds:.0f} s")
        time.sleep(0.1)


def _producer(address: str, codec: str, **more: Any) -> Any:
    """A producer that sends when it is told to, so that what is between two flushes is one batch."""
    return kafka.KafkaProducer(
        bootstrap_servers=address.split(","),
        acks="all",
        compression_type=None if codec == "none" else codec,
        linger_ms=60_000,
        max_block_ms=20_000,
        enable_idempotence=bool(more),
        **more,
    )
