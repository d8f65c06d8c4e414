"""Record batches (magic 2) as somebody declares them who uses the ``construct`` package: see ``_construct_messages``.

A batch is read in two steps, because what is compressed has to be decompressed between them. Checksums are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import crc32c
from construct import (
    Array,
    Bytes,
    Computed,
    Construct,
    FocusedSeq,
    IfThenElse,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    PascalString,
    Pass,
    PrefixedArray,
    Struct,
    ZigZag,
    this,
)

__all__ = ["PLAIN", "Reader", "compiled"]

_BATCH: Final = Struct(
    "base_offset" / Int64sb,
    "length" / Int32sb,
    "leader_epoch" / Int32sb,
    "magic" / Int8sb,
    "crc" / Int32ub,
    "attributes" / Int16sb,
    "last_offset_delta" / Int32sb,
    "base_timestamp" / Int64sb,
    "max_timestamp" / Int64sb,
    "producer_id" / Int64sb,
    "producer_epoch" / Int16sb,
    "base_sequence" / Int32sb,
    "count" / Int32sb,
    "content" / Bytes(this.length - 49),
)

_BYTES: Final = FocusedSeq(
    "value", "length" / ZigZag, "value" / IfThenElse(this.length == -1, Pass, Bytes(this.length))
)

_RECORD: Final = Struct(
    "length" / ZigZag,
    "attributes" / Int8sb,
    "timestamp_delta" / ZigZag,
    "offset_delta" / ZigZag,
    "key" / _BYTES,
    "value" / _BYTES,
    "headers" / PrefixedArray(ZigZag, Struct("key" / PascalString(ZigZag, "utf8"), "value" / _BYTES)),
    "offset" / Computed(this._params.base_offset + this.offset_delta),
    "timestamp" / Computed(this._params.base_timestamp + this.timestamp_delta),
)

_RECORDS: Final = Array(this._params.count, _RECORD)


class Reader:
    """Reads batches one after the other. ``decompress`` takes the number of a codec and bytes."""

    def __init__(self, batch: Construct, records: Construct) -> None:
        self._batch, self._records = batch, records

    def __call__(self, data: bytes, decompress: Callable[[int, bytes], bytes]) -> Iterator[Any]:
        """The records of each batch."""
        at = 0
        while at < len(data):
            head = self._batch.parse(data[at:])
            end = at + 12 + head.length
            assert crc32c.crc32c(data[at + 21 : end]) == head.crc
            codec = head.attributes & 7
            content = decompress(codec, head.content) if codec else head.content
            yield self._records.parse(
                content, count=head.count, base_offset=head.base_offset, base_timestamp=head.base_timestamp
            )
            at = end


PLAIN: Final = Reader(_BATCH, _RECORDS)
"""As construct interprets it."""


def compiled() -> Reader:
    """Through construct's own ``compile()``."""
    return Reader(_BATCH.compile(), _RECORDS.compile())
