"""Primitive types of the Kafka wire protocol: how each is read and written outside of ``struct`` formats.

What ``struct`` can do is done by ``struct`` where it is used. This module has what it cannot do: unsigned varints,
uuids with their text form, and strings whose bytes are not UTF-8. Rules kept here:

- An unsigned varint is at most five bytes; its low 32 bits count (Kafka's ``ByteUtils.readUnsignedVarint`` lets the
  fifth byte overflow silently). Overlong forms are accepted, and written in the shortest form. To Kafka it is an int of
  Java. Where the sign matters, which is in compact lengths, 2**31 and more are negative (``compact_length``).
- Any negative length is null, as Kafka's generated readers have it; -1, or 0 in compact form, is what is written.
- Bytes that are not UTF-8 never lose a message: they become lone surrogates (PEP 383), which are written back as they
  came. ``printable`` is what a person or an Arrow string column gets instead.
- NaN and the infinities, for which JSON has no numbers, are words there (``finite``).
- Times are int64 milliseconds since 1970, of any size. Only the years 1 to 9999 in UTC can be shown (Python, Arrow's
  text, SQL). They are ``FIRST_MS`` to ``LAST_MS``, or ``FIRST_US`` to ``LAST_US`` where times have become microseconds.
- uuids are ``uuid.UUID`` objects; equal ones are usually the same object (a bounded memo; topic ids repeat).

Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482; KIP-516 for the text form of uuids.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from typing import Any, Final
from uuid import UUID

from kwire.errors import DecodeError

__all__ = [
    "CODEC",
    "CONTROL",
    "DELETE_HORIZON",
    "FIRST_MS",
    "FIRST_US",
    "LAST_MS",
    "LAST_US",
    "LOG_APPEND_TIME",
    "MOST_POSITIVE",
    "TRANSACTIONAL",
    "ZERO_UUID",
    "as_bytes",
    "compact_length",
    "finite",
    "pack_uvarint",
    "parse_uuid",
    "printable",
    "read_uvarint",
    "uuid_from_bytes",
    "uuid_text",
]

CODEC: Final = 0x07
"""Bits of a batch's attributes (int): its compression codec. Messages have them too."""
LOG_APPEND_TIME: Final = 0x08
"""Bit of a batch's attributes (int): the broker sets timestamps (KIP-32). Messages have it too."""
TRANSACTIONAL: Final = 0x10
"""Bit of a batch's attributes (int): it is part of a transaction (KIP-98)."""
CONTROL: Final = 0x20
"""Bit of a batch's attributes (int): it holds a control record (KIP-98)."""
DELETE_HORIZON: Final = 0x40
"""Bit of a batch's attributes (int): its base timestamp says when tombstones may go (KIP-534)."""

ZERO_UUID: Final = UUID(int=0)
"""The id (``UUID``) that stands for "no id" (KIP-516)."""

MOST_POSITIVE: Final = 0x7FFFFFFF
"""The largest unsigned varint that is not negative to Kafka."""

FIRST_MS: Final = -62_135_596_800_000
"""The first millisecond of the year 1 (int, milliseconds since 1970)."""
LAST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999 (int, milliseconds since 1970)."""
FIRST_US: Final = FIRST_MS * 1000
"""The first microsecond of the year 1 (int, microseconds since 1970)."""
LAST_US: Final = LAST_MS * 1000 + 999
"""The last microsecond of the year 9999 (int, microseconds since 1970)."""

_UVARINTS: Final = tuple(
    struct.pack("B", n) if n < 128 else struct.pack("BB", n & 127 | 128, n >> 7) for n in range(4096)
)


def pack_uvarint(value: int) -> bytes:
    """``value`` (0 to 2**32 - 1) as an unsigned varint."""
    if 0 <= value < 4096:
        return _UVARINTS[value]
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{value} does not fit an unsigned varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Reads an unsigned varint at ``pos``: its value and the position after it.

    Raises ``IndexError`` at the end of the data and ``ValueError`` for one of more than five bytes.
    """
    value = data[pos]
    pos += 1
    if value > 127:
        return read_uvarint_rest(data, pos, value)
    return value, pos


def read_uvarint_rest(data: bytes, pos: int, first: int) -> tuple[int, int]:
    """Goes on after a first byte above 127 that the caller has already read."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFF, pos
    raise ValueError("unsigned varint of more than 5 bytes")


def as_bytes(data: bytes | bytearray | memoryview, what: str) -> bytes:
    """``data`` as bytes. Raises ``DecodeError`` for what is no sequence of bytes; ``what`` names it there."""
    if data.__class__ is bytes:
        return data
    try:
        # By a view: ``bytes`` makes zeros of a number, as many as it says.
        return bytes(memoryview(data))
    except TypeError:
        pass
    text = f"expected bytes, not {type(data).__name__}"
    if isinstance(data, str):
        text += ": bytes.fromhex and base64.b64decode make them of text"
    raise DecodeError(text, layout=what)


def compact_length(value: int) -> int:
    """The length that an unsigned varint says in compact form, which is one more; negative for null."""
    return (value - 1 + (1 << 31)) % (1 << 32) - (1 << 31)


class _UuidMemo(dict[bytes, UUID]):
    """16 bytes -> UUID. Bounded: hostile input must not be able to fill the memory with distinct ids."""

    LIMIT: Final = 4096

    def __missing__(self, key: bytes) -> UUID:
        if len(self) >= self.LIMIT:
            self.clear()
        made = UUID(bytes=key)
        self[key] = made
        return made


_UUIDS: Final = _UuidMemo()
uuid_from_bytes: Final = _UUIDS.__getitem__
"""16 bytes -> ``uuid.UUID`` (a bounded memo)."""


_OF_KAFKA: Final = re.compile(r"[A-Za-z0-9_-]{22}")
"""``Uuid.fromString`` takes no other alphabet of base64, so ``+`` and ``/`` are refused."""


def uuid_text(value: UUID) -> str:
    """Kafka's own text form: unpadded URL-safe base64, 22 characters."""
    return base64.urlsafe_b64encode(value.bytes)[:22].decode("ascii")


def parse_uuid(text: str) -> UUID:
    """Reads either text form: Kafka's 22 characters or the usual 36. Raises ``ValueError``."""
    if _OF_KAFKA.fullmatch(text):
        return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    return UUID(text)


def finite(value: Any) -> Any:
    """A value with NaN and the infinities as words, since JSON has no numbers for them."""
    if isinstance(value, float):
        # The words of protobuf's JSON mapping.
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, list):
        return [finite(one) for one in value]
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    return value


def printable(text: str) -> str:
    """``text`` with U+FFFD wherever bytes were not UTF-8: valid Unicode, for people and for string columns."""
    try:
        text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        except UnicodeEncodeError:  # JSON can escape half of a pair, which stands for no byte
            return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text
