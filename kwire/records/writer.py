"""Objects to record sets: ``encode`` and ``encode_batch``.

``encode_batch`` writes one ``Batch`` as its fields say. What was decoded is written again byte for byte when it is not
compressed. One thing differs: a number that was written longer than needed becomes the shortest form. ``encode`` makes
the batch as well: it takes records, numbers them, and fills in what a producer would.

Rules kept here:

- Lengths, counts and checksums are computed, never taken from the batch.
- A field that a format does not have is an ``EncodeError``, not left out. Before magic 2 there are no headers, no
  producers and no zstd; magic 0 has no timestamps.
- A compressed batch without records has an empty body, as Kafka's own writer leaves it.

Sources:

- Kafka protocol guide: "Record Batch", "Record", "Old Message Format"
- KIP-31 for the offsets of wrapper messages
- KIP-32 and KIP-98 for timestamps with LogAppendTime
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NoReturn

from kwire.errors import EncodeError
from kwire.records.compression import CODECS, Codec, compress
from kwire.records.crc import crc32, crc32c
from kwire.records.objects import Batch, Headers, Record
from kwire.wire import CODEC, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL

__all__ = ["encode", "encode_batch"]

_FRAME: Final = struct.Struct(">qi")
_CHECKED: Final = struct.Struct(">ibI")
_BATCH: Final = struct.Struct(">hiqqqhii")
_LENGTH: Final = struct.Struct(">i")
_MESSAGE: Final = {0: struct.Struct(">bB"), 1: struct.Struct(">bBq")}

_SHORT: Final = [bytes([value]) for value in range(128)] + [
    bytes([value & 127 | 128, value >> 7]) for value in range(128, 16384)
]
"""Unsigned varints of one and two bytes."""
_NULL: Final = b"\x01"
"""-1 as a varint."""


def encode(
    records: Iterable[Record],
    *,
    magic: int = 2,
    compression: Codec = "none",
    level: int | None = None,
    base_offset: int = 0,
    log_append_time: int | None = None,
    delete_horizon: int | None = None,
    partition_leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """``records`` as a record set: one record batch (magic 2), one compressed message, or plain messages (magic 0, 1).

    Records without an offset follow the one before them, the first has ``base_offset``. ``compression`` is a name of
    ``kwire.records.CODECS``, ``level`` the codec's own. ``log_append_time`` (ms) makes the timestamps the broker's;
    ``delete_horizon`` (ms, KIP-534) becomes the base timestamp of the batch. Raises ``EncodeError`` for what the format
    does not have or cannot hold. It is also raised for compression without a message (magic 0 and 1).
    """
    if magic not in (0, 1, 2):
        raise EncodeError(f"magic {magic} is not known", layout="record set")
    listed = list(records)
    if compression not in CODECS:
        raise EncodeError(f"there is no codec {compression!r}", layout="record set")
    try:
        offset = base_offset
        numbered = []
        for record in listed:
            if record.offset is not None:
                offset = record.offset
            numbered.append(offset)
            offset += 1
        attributes = CODECS.index(compression)
        if log_append_time is not None:
            attributes |= LOG_APPEND_TIME
        if delete_horizon is not None:
            attributes |= DELETE_HORIZON
        attributes |= TRANSACTIONAL * is_transactional | CONTROL * is_control
        times = [-1 if record.timestamp is None else record.timestamp for record in listed]
        batch = Batch(
            listed,
            magic=magic,
            attributes=attributes,
            base_offset=base_offset,
            last_offset=numbered[-1] if numbered else base_offset,
            base_timestamp=delete_horizon if delete_horizon is not None else times[0] if times else -1,
            max_timestamp=log_append_time if log_append_time is not None else max(times, default=-1),
            partition_leader_epoch=partition_leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        if magic == 2:
            return _record_batch(batch, numbered, level)
        _check_messages(batch)
        if compression == "none":
            return b"".join(
                _message(
                    magic, attributes, number, time if log_append_time is None else log_append_time, one.key, one.value
                )
                for number, time, one in zip(numbered, times, listed, strict=True)
            )
        # A producer's offsets inside of a wrapper start at 0 in magic 1 (KIP-31), and are absolute in magic 0.
        batch.base_offset = numbered[0] if magic and numbered else 0
        return _wrapper(batch, numbered, level)
    except (TypeError, AttributeError, ValueError):
        _check_types(listed)
        raise


def encode_batch(batch: Batch, *, level: int | None = None) -> bytes:
    """``batch`` as bytes: an entry of a record set.

    Records without an offset follow the one before them, the first has ``base_offset``. ``level`` is that of the
    codec in ``batch.attributes``. Raises ``EncodeError`` for what the format does not have or cannot hold.
    """
    if batch.attributes & CODEC >= len(CODECS):
        raise EncodeError(f"compression codec {batch.attributes & CODEC} is not defined", layout="record set")
    try:
        numbered = []
        offset = batch.base_offset
        for record in batch.records:
            if record.offset is not None:
                offset = record.offset
            numbered.append(offset)
            offset += 1
        if batch.magic == 2:
            return _record_batch(batch, numbered, level)
        if batch.magic not in (0, 1):
            raise EncodeError(f"magic {batch.magic} is not known", layout="record set")
        _check_messages(batch)
        if batch.attributes & CODEC:
            return _wrapper(batch, numbered, level)
        if len(batch.records) != 1:
            raise EncodeError(f"a plain message is one record, not {len(batch.records)}", layout="record set")
        (one,) = batch.records
        time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else one.timestamp
        return _message(batch.magic, batch.attributes, numbered[0], -1 if time is None else time, one.key, one.value)
    except (TypeError, AttributeError, ValueError):
        _check_types(batch.records)
        raise


_BYTES: Final = (bytes, bytearray, memoryview)


def _check_types(records: list[Record]) -> None:
    """Refuse records that are none, or whose fields are of a wrong type: text as a key, most of all.

    That is asked when writing them has failed, since it takes as long as a part of that."""
    for index, one in enumerate(records):
        if not isinstance(one, Record):
            _refuse(f"$.records[{index}]", "a Record", one)
        for name, content in (("key", one.key), ("value", one.value)):
            if content is not None and not isinstance(content, _BYTES):
                _refuse(f"$.records[{index}].{name}", "bytes or None", content)
        for name, number in (("offset", one.offset), ("timestamp", one.timestamp)):
            if number is not None and not isinstance(number, int):
                _refuse(f"$.records[{index}].{name}", "an int or None", number)
        if one.headers:
            _check_headers(f"$.records[{index}].headers", one.headers)


def _check_headers(path: str, headers: Headers) -> None:
    for index, pair in enumerate(headers):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            _refuse(f"{path}[{index}]", "a name and a value", pair)
        if not isinstance(pair[0], str):
            _refuse(f"{path}[{index}][0]", "a string", pair[0])
        if pair[1] is not None and not isinstance(pair[1], _BYTES):
            _refuse(f"{path}[{index}][1]", "bytes or None", pair[1])


def _refuse(path: str, expected: str, found: object) -> NoReturn:
    hint = ": encode() makes them of text" if isinstance(found, str) and "bytes" in expected else ""
    raise EncodeError(f"expected {expected}, not {type(found).__qualname__}{hint}", layout="record set", path=path)


def _check_messages(batch: Batch) -> None:
    """Refuse what messages cannot carry (``producer_id`` and its like came with KIP-98, headers with KIP-82)."""
    layout = f"message set magic {batch.magic}"
    if (batch.producer_id, batch.producer_epoch, batch.base_sequence) != (-1, -1, -1):
        raise EncodeError("messages have no producer id, epoch or sequence", layout=layout)
    if batch.partition_leader_epoch != -1:
        raise EncodeError("messages have no partition leader epoch", layout=layout)
    if not 0 <= batch.attributes <= 0xFF:
        raise EncodeError(f"attributes {batch.attributes} do not fit one byte", layout=layout)
    for index, record in enumerate(batch.records):
        if record.headers:
            raise EncodeError("messages have no headers", layout=layout, path=f"$.records[{index}].headers")
        if record.timestamp is not None and not batch.magic:
            raise EncodeError("there is no timestamp in magic 0", layout=layout, path=f"$.records[{index}].timestamp")


def _message(magic: int, attributes: int, offset: int, time: int, key: bytes | None, value: bytes | None) -> bytes:
    try:
        head = _MESSAGE[1].pack(1, attributes, time) if magic else _MESSAGE[0].pack(0, attributes)
        body = b"".join(
            (
                head,
                _LENGTH.pack(-1 if key is None else len(key)),
                key or b"",
                _LENGTH.pack(-1 if value is None else len(value)),
                value or b"",
            )
        )
        return b"".join((_FRAME.pack(offset, len(body) + 4), crc32(body).to_bytes(4, "big"), body))
    except struct.error as wrong:
        raise EncodeError(f"a number does not fit its field: {wrong}", layout=f"message set magic {magic}") from wrong


def _wrapper(batch: Batch, numbered: list[int], level: int | None) -> bytes:
    magic, attributes = batch.magic, batch.attributes
    if not batch.records:
        raise EncodeError("a compressed message holds at least one message", layout=f"message set magic {magic}")
    base = batch.base_offset if magic else 0
    inner = b"".join(
        _message(
            magic,
            # The codec belongs to the wrapper; what else stands in the message's own attributes is kept.
            record.attributes & ~CODEC,
            number - base,
            -1 if record.timestamp is None else record.timestamp,
            record.key,
            record.value,
        )
        for number, record in zip(numbered, batch.records, strict=True)
    )
    packed = compress(attributes & CODEC, inner, magic=magic, level=level)
    return _message(magic, attributes, batch.last_offset, batch.max_timestamp, None, packed)


def _record_batch(batch: Batch, numbered: list[int], level: int | None) -> bytes:
    body = b"".join(
        [
            _record(batch, number, index, record)
            for index, (number, record) in enumerate(zip(numbered, batch.records, strict=True))
        ]
    )
    if batch.attributes & CODEC and batch.records:
        body = compress(batch.attributes & CODEC, body, level=level)
    try:
        rest = (
            _BATCH.pack(
                batch.attributes,
                batch.last_offset - batch.base_offset,
                batch.base_timestamp,
                batch.max_timestamp,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                len(batch.records),
            )
            + body
        )
        head = _CHECKED.pack(batch.partition_leader_epoch, 2, crc32c(rest))
        return b"".join((_FRAME.pack(batch.base_offset, len(head) + len(rest)), head, rest))
    except struct.error as wrong:
        raise EncodeError(f"a number does not fit its field: {wrong}", layout="record batch") from wrong


def _record(batch: Batch, offset: int, index: int, record: Record) -> bytes:
    if not 0 <= record.attributes <= 0xFF:
        raise EncodeError(
            f"attributes {record.attributes} do not fit one byte",
            layout="record batch",
            path=f"$.records[{index}].attributes",
        )
    delta = offset - batch.base_offset
    if not -(1 << 31) <= delta < 1 << 31:
        raise EncodeError(
            f"offset {offset} is too far from the base offset {batch.base_offset}",
            layout="record batch",
            path=f"$.records[{index}].offset",
        )
    time = (-1 if record.timestamp is None else record.timestamp) - batch.base_timestamp
    if not -(1 << 63) <= time < 1 << 63:
        raise EncodeError(
            f"timestamp {record.timestamp} is too far from the base timestamp {batch.base_timestamp}",
            layout="record batch",
            path=f"$.records[{index}].timestamp",
        )
    key, value = record.key, record.value
    parts = [
        _SHORT[record.attributes] if record.attributes < 128 else bytes([record.attributes]),
        _varint(time),
        _varint(delta),
        _NULL if key is None else _varint(len(key)) + key,
        _NULL if value is None else _varint(len(value)) + value,
        _varint(len(record.headers)),
    ]
    for name, content in record.headers:
        named = name.encode("utf-8", "surrogateescape")
        parts += (_varint(len(named)), named, _NULL if content is None else _varint(len(content)) + content)
    body = b"".join(parts)
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    """``value`` as a zigzag varint (Protocol Buffers' sint64)."""
    value = value << 1 if value >= 0 else ~(value << 1)
    if value < 16384:
        return _SHORT[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
