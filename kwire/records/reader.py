"""Record sets to objects: ``decode``.

This is the plain reader: it takes one field after the other. Read it beside the protocol guide. ``_quick_record`` is
the one shortcut: it reads what ``_record`` reads, for records as they usually are. The columnar reader
(``columnar.py``) reads the same formats by other means. Tests compare the two on valid and on damaged input, so both
keep the same rules:

- An entry is framed by its length; the magic byte is looked at only after that. A last entry that is cut off is the
  end, not an error. Brokers cut Fetch responses where the size limit falls (KIP-74).
- A length that cannot be one ends the set: where the next entry starts is not known.
- Anything else that is wrong costs the entry, or in a batch of magic 2 the record, in which it is.
- Compressed messages hold message sets. Inside of them nothing may be cut off and the magic must be the same. The
  outermost one decides about codec and timestamp type.
- Sums of offsets or timestamps and deltas wrap at 64 bits.

Layout of an entry, in bytes::

    magic 0, 1   offset 8 | size 4 | crc 4 | magic 1 | attributes 1 | timestamp 8, magic 1 only | key 4+n | value 4+n
    magic 2      base offset 8 | size 4 | leader epoch 4 | magic 1 | crc 4 | attributes 2 | last offset delta 4
                 | base timestamp 8 | max timestamp 8 | producer id 8 | epoch 2 | base sequence 4 | count 4 | records
    record       length | attributes 1 | timestamp delta | offset delta | key | value | header count | headers

Source: Kafka protocol guide, "Record Batch", "Record", "Old Message Format"; KIP-31, KIP-32, KIP-82, KIP-98.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kwire.errors import CorruptRecordError, DecodeError, LimitError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.records.budget import Budget
from kwire.records.crc import WRONG_CHECKSUM, crc32, crc32c
from kwire.records.objects import Batch, Headers, Record, wrapped32, wrapped64
from kwire.wire import LOG_APPEND_TIME, as_bytes

__all__ = ["decode"]

_FRAME: Final = struct.Struct(">qi")
_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_MESSAGE: Final = struct.Struct(">qiIbB")
_LENGTH: Final = struct.Struct(">i")
_TIMESTAMP: Final = struct.Struct(">q")

_new_record: Final = object.__new__
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1

_LEAST: Final = {0: 14, 1: 22, 2: 49}
"""Least value of the size field, by magic."""
_RECORD: Final = 200
"""About what a record without key and value takes as an object, in bytes.

One entry makes no more of them than ``Limits.objects`` allows.
"""
_LEAST_RECORD: Final = 7
"""A record of magic 2 takes at least seven bytes: a count is not believed beyond that."""


def decode(
    data: bytes | bytearray | memoryview,
    *,
    verify_crc: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    problems: list[DecodeError] | None = None,
) -> Iterator[Batch]:
    """The batches of a record set, one after the other; their ``records`` are lists.

    ``data``: the bytes of a ``records`` field (Produce, Fetch) or of a log segment, with magic 0, 1 and 2 in any
    mixture. With a list in ``problems``, what cannot be read is appended to it as a ``DecodeError``, and everything
    around it is yielded. Without one, the first problem is raised after the batches before it. A wrong checksum is
    ``crc_ok`` false; with ``verify_crc`` it is a problem as well (``CorruptRecordError``). Offsets of problems count
    from the first byte of ``data``; inside compressed data they are those of the entry that holds it.
    """
    return _Reader(as_bytes(data, "record set"), verify_crc, limits, problems).batches()


class _Reader:
    def __init__(self, data: bytes, verify_crc: bool, limits: Limits, problems: list[DecodeError] | None) -> None:
        self.data = data
        self.view = memoryview(data)
        self.verify_crc = verify_crc
        self.limits = limits
        self.problems = problems
        self.reported = 0
        self.budget = Budget(limits)
        self.most = limits.objects // _RECORD

    def problem(self, text: str, offset: int, kind: type[DecodeError] = DecodeError) -> None:
        error = kind(text, layout="record set", offset=offset)
        if self.problems is None:
            raise error
        self.reported += 1
        if self.reported <= self.limits.problems:
            self.problems.append(error)
        else:
            # It replaces the one before. The last one says how many were not reported.
            more = self.reported - self.limits.problems
            text = f"{more} more problems, up to here: {self.limits.said('problems')}"
            last = LimitError(text, layout="record set", offset=offset)
            self.problems[-1:] = [last] if more > 1 else [*self.problems[-1:], last]

    def too_many(self, count: int, offset: int) -> None:
        text = f"{count} records take more than {self.limits.objects} bytes as objects: {self.limits.said('objects')}"
        self.problem(text, offset, LimitError)

    def corrupt(self, offset: int) -> None:
        if self.verify_crc:
            self.problem(WRONG_CHECKSUM, offset, CorruptRecordError)

    def batches(self) -> Iterator[Batch]:
        data = self.data
        pos = 0
        while len(data) - pos >= _FRAME.size:
            _, size = _FRAME.unpack_from(data, pos)
            if size > len(data) - pos - _FRAME.size:
                return
            if size < _LEAST[0]:
                self.problem(f"an entry of {size} bytes: what follows cannot be read", pos)
                return
            magic = int.from_bytes(data[pos + 16 : pos + 17], "big", signed=True)
            end = pos + _FRAME.size + size
            batch = None
            if magic not in _LEAST:
                self.problem(f"magic {magic} is not known", pos)
            elif size < _LEAST[magic]:
                self.problem(f"an entry of {size} bytes is too short for magic {magic}", pos)
            elif magic == 2:
                batch = self.record_batch(pos, end)
            else:
                batch = self.message_batch(pos, end)
            if batch is not None:
                batch.position = pos
                batch.size = end - pos
                yield batch
            pos = end

    # --- magic 2 ---

    def record_batch(self, pos: int, end: int) -> Batch:
        data = self.data
        (
            base_offset,
            _,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _BATCH.unpack_from(data, pos)
        batch = Batch(
            magic=magic,
            attributes=attributes,
            base_offset=base_offset,
            last_offset=wrapped64(base_offset + last_offset_delta),
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            partition_leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        batch.crc = crc
        batch.crc_ok = crc32c(self.view[pos + 21 : end]) == crc
        if not batch.crc_ok:
            self.corrupt(pos)
        body = data
        start, stop = pos + _BATCH.size, end
        # Inside compressed data, problems are reported at the batch.
        outside: int | None = None
        if attributes & 7 and count > 0:
            unpacked = self.decompressed(attributes & 7, self.view[start:end], magic, pos)
            if unpacked is None:
                return batch
            body, start, stop, outside = unpacked, 0, len(unpacked), pos
        elif attributes & 7 and count == 0:
            # Some writers compress nothing into something. There are no records to miss.
            return batch
        if count < 0:
            self.problem(f"a record count of {count}", start - 4 if outside is None else outside)
            return batch
        self.records(batch, body, start, stop, count, outside)
        return batch

    def records(self, batch: Batch, body: bytes, pos: int, end: int, count: int, outside: int | None) -> None:
        fixed = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
        reported = False
        index = 0
        most = min(count, (end - pos) // _LEAST_RECORD)
        if most > self.most:
            self.too_many(most, pos if outside is None else outside)
            return
        append = batch.records.append
        while index < most and pos < end:
            start = pos
            try:
                size, pos = _varint(body, pos, end, 5)
                if not 0 <= size <= end - pos:
                    raise _BadRecordError
            except _BadRecordError:
                if not reported:
                    self.problem(
                        f"record {index}: a length that is not inside of the batch",
                        start if outside is None else outside,
                    )
                return
            after = pos + size
            record = _quick_record(body, pos, after, batch, fixed)
            if record is None:
                try:
                    record = _record(body, pos, after, batch, fixed)
                except _BadRecordError as wrong:
                    if not reported:
                        self.problem(f"record {index}: {wrong}", start if outside is None else outside)
                    reported = True
            if record is not None:
                append(record)
            pos = after
            index += 1
        if reported:
            return
        where = pos if outside is None else outside
        if index < count:
            self.problem(f"{count} records are claimed, {index} are there", where)
        elif pos != end:
            self.problem(f"{end - pos} bytes behind the last of {count} records", where)

    def decompressed(self, codec: int, data: bytes | memoryview, magic: int, offset: int) -> bytes | None:
        try:
            return self.budget.decompress(codec, data, magic=magic)
        except DecodeError as wrong:
            self.problem(wrong.message, offset, LimitError if isinstance(wrong, LimitError) else DecodeError)
            return None

    # --- magic 0 and 1 ---

    def message_batch(self, pos: int, end: int) -> Batch | None:
        offset, _, crc, magic, attributes = _MESSAGE.unpack_from(self.data, pos)
        batch = Batch(magic=magic, attributes=attributes, last_offset=offset)
        batch.crc = crc
        batch.crc_ok = crc32(self.view[pos + 16 : end]) == crc
        if not batch.crc_ok:
            self.corrupt(pos)
        if magic:
            (batch.max_timestamp,) = _TIMESTAMP.unpack_from(self.data, pos + 18)
        try:
            key, value = _key_and_value(self.data, pos, end, magic)
        except _BadRecordError as wrong:
            self.problem(str(wrong), pos)
            return None
        if not attributes & 7:
            record = Record(key, value, offset=offset, timestamp=_none(batch.max_timestamp), attributes=attributes)
            record.crc_ok = batch.crc_ok
            batch.records.append(record)
        elif value is None:
            self.problem("a compressed message without a value", pos)
            return None
        else:
            self.wrapper(batch, batch.attributes, value, offset, 1, pos, batch.crc_ok)
        return batch

    def wrapper(
        self, batch: Batch, attributes: int, value: bytes, offset: int, depth: int, origin: int, right: bool
    ) -> None:
        """Read what a wrapper message holds into ``batch``, the outermost one.

        ``attributes`` and ``value`` are those of this wrapper. ``offset`` is its absolute offset. ``right``: whether
        its checksum and those of all around it match.
        """
        if depth > self.limits.nesting:
            self.problem(f"compressed messages inside each other: {self.limits.said('nesting')}", origin, LimitError)
            return
        inner = self.decompressed(attributes & 7, value, batch.magic, origin)
        if inner is None:
            return
        magic = batch.magic
        found: list[tuple[int, int, int, bytes | None, bytes | None, int]] = []
        last = 0
        pos = 0
        while True:
            left = len(inner) - pos
            size = _FRAME.unpack_from(inner, pos)[1] if left >= _FRAME.size else 0
            if left < _FRAME.size or size > left - _FRAME.size:
                if left or not pos:
                    self.problem(
                        f"the messages inside a compressed message end in the middle, {left} bytes left", origin
                    )
                break
            if size < _LEAST[0]:
                self.problem(f"an entry of {size} bytes: what follows cannot be read", origin)
                break
            start, pos = pos, pos + _FRAME.size + size
            own, _, _, own_magic, own_attributes = _MESSAGE.unpack_from(inner, start)
            if own_magic != magic:
                self.problem(f"a message of magic {own_magic} inside a compressed message of magic {magic}", origin)
                continue
            if size < _LEAST[magic]:
                self.problem(f"an entry of {size} bytes is too short for magic {magic}", origin)
                continue
            try:
                key, content = _key_and_value(inner, start, pos, magic)
            except _BadRecordError as wrong:
                self.problem(str(wrong), origin)
                if not own_attributes & 7:
                    last = own
                continue
            if own_attributes & 7 and content is None:
                self.problem("a compressed message without a value", origin)
                continue
            if len(batch.records) + len(found) >= self.most:
                self.too_many(self.most + 1, origin)
                break
            last = own
            found.append((own, start, pos, key, content, own_attributes))
        # KIP-31: the wrapper's offset is that of its last message, and offsets inside of it are relative. A producer
        # may leave the wrapper's offset at 0 for the broker to set: then there is no base yet.
        base = max(wrapped64(offset - last), 0) if magic else 0
        if depth == 1:
            batch.base_offset = base
        append_time = batch.attributes & LOG_APPEND_TIME
        for own, start, end, key, content, own_attributes in found:
            absolute = wrapped64(base + own)
            matches = crc32(inner[start + 16 : end]) == int.from_bytes(inner[start + 12 : start + 16], "big")
            if not matches:
                self.corrupt(origin)
            if own_attributes & 7:
                assert content is not None
                self.wrapper(batch, own_attributes, content, absolute, depth + 1, origin, right and matches)
                continue
            timestamp = batch.max_timestamp
            if magic and not append_time:
                (timestamp,) = _TIMESTAMP.unpack_from(inner, start + 18)
            record = Record(key, content, offset=absolute, timestamp=_none(timestamp), attributes=own_attributes)
            record.crc_ok = right and matches
            batch.records.append(record)


class _BadRecordError(Exception):
    """Raised and caught in this module: one record or message is wrong; the text says why."""


def _none(timestamp: int) -> int | None:
    return None if timestamp == -1 else timestamp


def _varint(data: bytes, pos: int, end: int, most: int) -> tuple[int, int]:
    """A zigzag varint of at most ``most`` bytes, and the position after it.

    Bits beyond 32 (or 64) are lost.
    """
    value = data[pos] if pos < end else 128
    if value < 128:
        return value >> 1 ^ -(value & 1), pos + 1
    value = shift = 0
    for index in range(pos, min(end, pos + most)):
        byte = data[index]
        value |= (byte & 127) << shift
        if byte < 128:
            value &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
            return value >> 1 ^ -(value & 1), index + 1
        shift += 7
    raise _BadRecordError("a number is too long or cut off")


def _field(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
    """A length and that many bytes; a negative length is null."""
    size, pos = _varint(data, pos, end, 5)
    if size < 0:
        return None, pos
    if size > end - pos:
        raise _BadRecordError(f"a field of {size} bytes, {end - pos} bytes left")
    return data[pos : pos + size], pos + size


def _quick_record(data: bytes, pos: int, end: int, batch: Batch, fixed: int | None) -> Record | None:
    """The record between ``pos`` and ``end``, or None when it is not as records usually are: ``_record`` then says why.

    Positions only grow, and a slice past the end of the data is short. So one comparison at the end of the record finds
    every length that was too large, instead of one for each.
    """
    try:
        attributes = data[pos]
        value = data[pos + 1]
        pos += 2
        if value < 128:
            timestamp = value >> 1 ^ -(value & 1)
        else:
            timestamp, pos = _varint(data, pos - 1, end, 10)
        value = data[pos]
        pos += 1
        if value < 128:
            offset = value >> 1 ^ -(value & 1)
        else:
            offset, pos = _varint(data, pos - 1, end, 5)
        size = data[pos]
        pos += 1
        size = size >> 1 ^ -(size & 1) if size < 128 else -2
        if size == -2:
            size, pos = _varint(data, pos - 1, end, 5)
        key = None
        if size >= 0:
            key = data[pos : pos + size]
            pos += size
        size = data[pos]
        pos += 1
        size = size >> 1 ^ -(size & 1) if size < 128 else -2
        if size == -2:
            size, pos = _varint(data, pos - 1, end, 5)
        content = None
        if size >= 0:
            content = data[pos : pos + size]
            pos += size
        count = data[pos]
        pos += 1
        headers: Headers = []
        if count:
            if count & 1 or count > 127 or count > end - pos:
                return None
            for _ in range(count >> 1):
                size = data[pos]
                pos += 1
                if size > 127 or size & 1:
                    return None
                name = data[pos : pos + (size >> 1)].decode("utf-8", "surrogateescape")
                pos += size >> 1
                size = data[pos]
                pos += 1
                if size > 127:
                    return None
                if size & 1:
                    headers.append((name, None))
                else:
                    headers.append((name, data[pos : pos + (size >> 1)]))
                    pos += size >> 1
    except (IndexError, _BadRecordError):
        return None
    offset += batch.base_offset
    timestamp = timestamp + batch.base_timestamp if fixed is None else fixed
    if pos != end or not (_LOWEST <= offset <= _HIGHEST and _LOWEST <= timestamp <= _HIGHEST):
        return None
    record = _new_record(Record)
    record.offset = offset
    record.timestamp = None if timestamp == -1 else timestamp
    record.key = key
    record.value = content
    record.headers = headers
    record.attributes = attributes
    record.crc_ok = batch.crc_ok
    return record


def _record(data: bytes, pos: int, end: int, batch: Batch, fixed: int | None) -> Record:
    if pos >= end:
        raise _BadRecordError("it is empty")
    attributes = data[pos]
    timestamp_delta, pos = _varint(data, pos + 1, end, 10)
    offset_delta, pos = _varint(data, pos, end, 5)
    key, pos = _field(data, pos, end)
    value, pos = _field(data, pos, end)
    count, pos = _varint(data, pos, end, 5)
    # A header takes at least two bytes.
    if not 0 <= count <= (end - pos) // 2:
        raise _BadRecordError(f"a header count of {count}")
    headers = []
    for _ in range(count):
        name, pos = _field(data, pos, end)
        if name is None:
            raise _BadRecordError("a header without a name")
        content, pos = _field(data, pos, end)
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    if pos != end:
        raise _BadRecordError(f"{end - pos} bytes behind its last header")
    record = Record(
        key,
        value,
        timestamp=_none(wrapped64(batch.base_timestamp + timestamp_delta) if fixed is None else fixed),
        offset=wrapped64(batch.base_offset + wrapped32(offset_delta)),
        attributes=attributes,
    )
    # Not copied: there may be one for two bytes.
    record.headers = headers
    record.crc_ok = batch.crc_ok
    return record


def _key_and_value(data: bytes, pos: int, end: int, magic: int) -> tuple[bytes | None, bytes | None]:
    pos += 18 + 8 * magic
    (size,) = _LENGTH.unpack_from(data, pos)
    pos += 4
    if size > end - pos - 4:
        raise _BadRecordError(f"a key of {size} bytes, {end - pos} bytes left")
    key = None if size < 0 else data[pos : pos + size]
    pos += max(size, 0)
    (size,) = _LENGTH.unpack_from(data, pos)
    pos += 4
    if size > end - pos:
        raise _BadRecordError(f"a value of {size} bytes, {end - pos} bytes left")
    if max(size, 0) != end - pos:
        raise _BadRecordError(f"a value of {max(size, 0)} bytes, but {end - pos} bytes up to the end of the message")
    return key, None if size < 0 else data[pos : pos + size]
