"""What generated codecs call: the rare cases, written once, and the errors by which they give up.

Generated code (``kwire.codec.decoder``, ``kwire.codec.encoder``) finds these in its globals (``namespace``).

Rules kept here:

- Generated code raises one of ``FAILURES``. Then ``kwire.codec.tracked`` runs over the same bytes, and words the error
  or finds the value.
- ``BeyondError`` is no failure: the limit is exceeded whatever the tracked decoder would find.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from functools import lru_cache
from itertools import repeat, starmap
from typing import Any, Final

from kwire import wire
from kwire.codec import costs
from kwire.codec.objects import WireStruct
from kwire.codec.tracked import STRUCT_CODES
from kwire.schema import model

__all__ = ["ARRAY_CODES", "FAILURES", "READERS", "BeyondError", "RetryError", "namespace"]

ARRAY_CODES: Final = frozenset(code for code in "hHiIq" if array(code).itemsize == struct.calcsize(f">{code}"))
"""Letters of ``struct`` (frozenset of str) that ``array.array`` reads with the same size, so both can be used."""


class RetryError(ValueError):
    """The fast path gives up; the tracked one decides which error it is."""


class BeyondError(Exception):
    """More objects than the limit allows; ``path`` (without indices) and ``offset`` are for ``costs.exceeded``."""

    def __init__(self, path: str, offset: int) -> None:
        super().__init__(path, offset)
        self.path = path
        self.offset = offset


FAILURES: Final = (ValueError, struct.error, LookupError, TypeError, AttributeError, OverflowError)
"""What generated code raises on bad input (``UnicodeError`` and ``RetryError`` are ``ValueError``)."""


def _retry() -> None:
    raise RetryError


def _beyond(path: str, offset: int) -> None:
    raise BeyondError(path, offset)


def _unknown_tags(data: bytes, pos: int) -> tuple[dict[int, bytes] | None, int]:
    """Read the tagged section of a struct that knows no tags.

    ``pos`` is after the first byte of its count.
    """
    count, pos = wire.read_uvarint(data, pos - 1)
    out: dict[int, bytes] = {}
    for _ in range(count):
        tag, pos = wire.read_uvarint(data, pos)
        size, pos = wire.read_uvarint(data, pos)
        out[tag] = data[pos : pos + size]
        pos += size
    return out or None, pos


def _counted_tags(data: bytes, pos: int, last: int, left: int, path: str) -> tuple[dict[int, bytes] | None, int, int]:
    """``_unknown_tags`` of a struct that ends before ``last``, with what is left of the limit before and after."""
    count, pos = wire.read_uvarint(data, pos - 1)
    out: dict[int, bytes] = {}
    for _ in range(count):
        tag, pos = wire.read_uvarint(data, pos)
        size, pos = wire.read_uvarint(data, pos)
        end = pos + size
        if end > last:
            raise RetryError
        left -= costs.UNKNOWN_TAG
        if left < 0:
            raise BeyondError(path, pos)
        out[tag] = data[pos:end]
        pos = end
    return out or None, pos, left


def _pack_tags(known: list[tuple[int, bytes]], unknown: dict[int, bytes] | None, fields: tuple[int, ...] = ()) -> bytes:
    """A tagged section, in ascending tag order. ``fields`` are the tags that the version knows, written or not."""
    if unknown:
        if not unknown.keys().isdisjoint(fields):
            raise RetryError
        known = sorted([*known, *unknown.items()])
    parts = [wire.pack_uvarint(len(known))]
    for tag, content in known:
        parts += [wire.pack_uvarint(tag), wire.pack_uvarint(len(content)), content]
    return b"".join(parts)


def _make_reader(code: str, size: int) -> Callable[[bytes, int, int], tuple[int, ...]]:
    """Reader of ``n`` numbers: short lists by a cached ``struct``, long ones by ``array`` and a byte swap."""
    cached: list[Callable[[bytes, int], tuple[int, ...]] | None] = [None] * 33
    swap = struct.pack("=h", 1) != struct.pack(">h", 1)

    def read(data: bytes, pos: int, n: int) -> tuple[int, ...]:
        if n <= 32:
            unpack = cached[n]
            if unpack is None:
                unpack = cached[n] = struct.Struct(f">{n}{code}").unpack_from
            return unpack(data, pos)
        if code not in ARRAY_CODES:
            return struct.unpack_from(f">{n}{code}", data, pos)
        numbers = array(code)
        numbers.frombytes(data[pos : pos + n * size])
        if len(numbers) != n:
            raise RetryError
        if swap:
            numbers.byteswap()
        return tuple(numbers.tolist())

    return read


@lru_cache(maxsize=1024)
def _shaped(format_: str) -> struct.Struct:
    return struct.Struct(format_)


def _pack_many(code: str, values: list[int]) -> bytes:
    return struct.pack(f">{len(values)}{code}", *values)


READERS: Final = {
    name: _make_reader(code, model.FIXED_SIZES[name]) for name, code in STRUCT_CODES.items() if name != "uuid"
}
"""Functions that read one value of a primitive type, by the type's name in schemas (dict of str to function)."""


def namespace(structs: dict[str, type[WireStruct]]) -> dict[str, Any]:
    """Global names of generated code; ``structs`` are the message's classes by name."""
    out: dict[str, Any] = {
        "new": object.__new__,
        "repeat": repeat,
        "retry": _retry,
        "starmap": starmap,
        "uvarint_rest": wire.read_uvarint_rest,
        "uvarint": wire.pack_uvarint,
        "read_uvarint": wire.read_uvarint,
        "uuid": wire.uuid_from_bytes,
        "unknown_tags": _unknown_tags,
        "counted_tags": _counted_tags,
        "beyond": _beyond,
        "pack_tags": _pack_tags,
        "pack_many": _pack_many,
        "pack_count": struct.Struct(">i").pack,
        "shaped": _shaped,
        "plain": lambda site, objects: None,
    }
    for name, reader in READERS.items():
        out[f"read_{name}s"] = reader
    for name, one in structs.items():
        out[f"C_{name}"] = one
    return out
