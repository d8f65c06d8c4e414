"""Batches and records as objects: what ``decode`` yields and ``encode`` writes.

A ``Batch`` is one entry of a record set, whatever its format:

- a record batch (magic 2)
- a compressed message with the messages inside it
- a plain message, which is a batch of one record, as in Kafka's own readers

The fields are those of the format, under Kafka's names, and hold what was read. A batch that was read and is written
again without compression gives the same bytes.

Timestamps are milliseconds since 1970 in UTC, as on the wire; ``None`` stands for Kafka's "no timestamp" (-1).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

from kwire.records.compression import CODECS, Codec
from kwire.records.control import control_type
from kwire.wire import CODEC, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL

__all__ = ["TIMESTAMP_TYPES", "Batch", "Headers", "Record", "TimestampType"]

TimestampType = Literal["CreateTime", "LogAppendTime"]
"""Type: who sets the timestamps of a batch, the producer or the broker (KIP-32)."""

TIMESTAMP_TYPES: Final[tuple[TimestampType, ...]] = ("CreateTime", "LogAppendTime")
"""Names of the timestamp types, as Kafka spells them, by bit 3 of the attributes of a batch or message."""

Headers = list[tuple[str, bytes | None]]
"""Type: the headers of a record in order, name and value (KIP-82). Names may repeat."""


def wrapped64(value: int) -> int:
    """``value`` as a signed 64-bit integer: sums of an offset or timestamp and a delta wrap, as in Kafka's."""
    return (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


class Record:
    """One record.

    ``key``, ``value``: bytes or None. ``headers``: list of (name, bytes or None); a name may repeat. Bytes of a name
    that are not UTF-8 are kept as lone surrogates (PEP 383). ``timestamp``: ms, or None. ``offset``: absolute; when
    writing, None means the next one. ``attributes``: the record's own byte, 0 in magic 2 so far, in messages codec
    and timestamp type. ``crc_ok``: whether the checksums over it matched when it was read.
    """

    __slots__ = ("attributes", "crc_ok", "headers", "key", "offset", "timestamp", "value")

    def __init__(
        self,
        key: bytes | None = None,
        value: bytes | None = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        timestamp: int | None = None,
        offset: int | None = None,
        attributes: int = 0,
    ) -> None:
        self.key: bytes | None = key
        self.value: bytes | None = value
        self.headers: Headers = list(headers)
        self.timestamp: int | None = timestamp
        self.offset: int | None = offset
        self.attributes: int = attributes
        self.crc_ok: bool = True

    def _fields(self) -> tuple[Any, ...]:
        return self.offset, self.timestamp, self.key, self.value, self.headers

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Record) else NotImplemented

    def __repr__(self) -> str:
        parts = [f"offset={self.offset}", f"timestamp={self.timestamp}", f"key={self.key!r}", f"value={self.value!r}"]
        if self.headers:
            parts.append(f"headers={self.headers!r}")
        return f"Record({', '.join(parts)})"


class Batch:
    """One entry of a record set, with its records.

    - ``magic``: 0, 1 or 2.
    - ``attributes``: the bits as on the wire. ``compression``, ``timestamp_type``, ``is_transactional``, ``is_control``
      and ``has_delete_horizon`` read them.
    - ``records``: list of ``Record``.
    - ``base_offset``: in magic 2 as on the wire. In a wrapper of magic 1, the offset that those inside it are relative
      to. Otherwise 0.
    - ``last_offset``: in magic 2, base offset plus last offset delta. Compaction keeps that delta when it removes the
      last record. In magic 0 and 1, the entry's own offset field.
    - ``base_timestamp``: in magic 2, what the records' timestamps are relative to. When the flag of the delete horizon
      is set, it is that horizon (KIP-534).
    - ``max_timestamp``: in magic 1, the entry's timestamp. Like ``base_timestamp`` it is in ms, -1 for none.
    - ``partition_leader_epoch``, ``producer_id``, ``producer_epoch``, ``base_sequence``: magic 2, -1 for none.
    - ``crc``: the checksum as read. ``crc_ok``: whether it matched.
    - ``position``, ``size``: where the entry stood in what was decoded, in bytes, offset and length fields included.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "crc",
        "crc_ok",
        "last_offset",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "position",
        "producer_epoch",
        "producer_id",
        "records",
        "size",
    )

    def __init__(
        self,
        records: Iterable[Record] = (),
        *,
        magic: int = 2,
        attributes: int = 0,
        base_offset: int = 0,
        last_offset: int = 0,
        base_timestamp: int = -1,
        max_timestamp: int = -1,
        partition_leader_epoch: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> None:
        self.records: list[Record] = list(records)
        self.magic: int = magic
        self.attributes: int = attributes
        self.base_offset: int = base_offset
        self.last_offset: int = last_offset
        self.base_timestamp: int = base_timestamp
        self.max_timestamp: int = max_timestamp
        self.partition_leader_epoch: int = partition_leader_epoch
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.base_sequence: int = base_sequence
        self.crc: int = 0
        self.crc_ok: bool = True
        self.position: int = 0
        self.size: int = 0

    @property
    def compression(self) -> Codec | None:
        """Name of the codec (one of ``kwire.records.CODECS``); None for the numbers 5 to 7, which are not defined."""
        codec = self.attributes & CODEC
        return CODECS[codec] if codec < len(CODECS) else None

    @property
    def timestamp_type(self) -> TimestampType | None:
        """Who set the timestamps, the producer or the broker; None in magic 0, which has none."""
        if self.magic == 0:
            return None
        return TIMESTAMP_TYPES[self.attributes & LOG_APPEND_TIME != 0]

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction (KIP-98)."""
        return self.magic == 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Holds control records, which are not the producers' (KIP-98)."""
        return self.magic == 2 and bool(self.attributes & CONTROL)

    @property
    def has_delete_horizon(self) -> bool:
        """``base_timestamp`` says when tombstones may be removed (KIP-534)."""
        return self.magic == 2 and bool(self.attributes & DELETE_HORIZON)

    def sequence(self, record: Record) -> int | None:
        """The sequence number of one of the records (idempotent producers, KIP-98); None where there are none."""
        if self.base_sequence < 0 or record.offset is None:
            return None
        # From 2**31 - 1 the next is 0. The delta is an int32 on the wire.
        value = self.base_sequence + wrapped32(wrapped64(record.offset - self.base_offset))
        if value > 0x7FFFFFFF:
            value -= 1 << 31
        value = wrapped32(value)
        return value if value >= 0 else None

    def control_type(self, record: Record) -> str | None:
        """The control type of one of the records (``commit``, ``unknown(9)``); None when it is not a control record."""
        return control_type(record.key) if self.is_control else None

    def _fields(self) -> tuple[Any, ...]:
        return (
            self.magic,
            self.attributes,
            self.base_offset,
            self.last_offset,
            self.base_timestamp,
            self.max_timestamp,
            self.partition_leader_epoch,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.records,
        )

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if isinstance(other, Batch) else NotImplemented

    def __repr__(self) -> str:
        return (
            f"Batch(magic={self.magic}, compression={self.compression or 'unknown'}, base_offset={self.base_offset}, "
            f"last_offset={self.last_offset}, crc_ok={self.crc_ok}, records={len(self.records)})"
        )


def wrapped32(value: int) -> int:
    """``value`` as a signed 32-bit integer."""
    return (value + (1 << 31) & (1 << 32) - 1) - (1 << 31)
