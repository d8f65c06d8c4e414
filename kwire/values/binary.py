"""MessagePack and CBOR as JSON text: formats that need no schema, since each value says its own types.

In JSON bytes are base64, and times texts in ISO 8601. ``NaN`` and the infinities are texts, as in ``texts``. Keys of
maps that are no text become one: ``1`` is ``"1"``. What JSON has no word for is an object: an extension of MessagePack
``{"type":5,"data":"AQI="}``, a tag of CBOR ``{"tag":35,"value":"a+"}``. Of CBOR's tags these are read as what they
mean: times (0, 1, 1004), whole numbers of any size (2, 3), decimals (4), UUIDs (37), and those that change nothing (21
to 24, 32 to 34, 55799). Specifications: MessagePack's ``spec.md``, RFC 8949.

Rules kept here:

- No object is made of a container: text is written as bytes are read. What a length says is checked against the bytes
  that are there.
- A text has at most 20 times the bytes of its value: a tag of two bytes has 30.
- There is no recursion. Arrays, maps and tags inside each other have a limit.
- A value ends with its last byte. A map in which two keys have the same text in JSON is refused.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

__all__ = ["json_text"]

DEEPEST: Final = 500
"""Arrays, maps and tags inside each other."""
_WIDEST: Final = 1024
"""Bytes of a whole number (tags 2 and 3): Python writes no more than 4,300 digits."""
_LATEST: Final = 1 << 40
"""Seconds from 1970: beyond them no calendar has a year."""
_EXPONENT: Final = 64
"""The largest exponent of a decimal (tag 4), whose digits are all written: a few bytes may not become many."""

_TEXT, _ARRAY, _MAP, _TAG, _END = range(5)
_UNENDING: Final = -1
_Item = tuple[int, str | int, int]
"""What stands at a byte: its kind; a text, how many items follow (of a map twice as many), or a tag; the byte after."""


class _Open:
    """An array, a map or a tag that has not ended: how many items are left, and how many there were."""

    __slots__ = ("kind", "left", "names", "number")

    def __init__(self, kind: int, left: int) -> None:
        self.kind, self.left, self.number = kind, left, 0
        self.names: set[str] = set()


def json_text(data: bytes, format_: str) -> str:
    """A value of MessagePack or CBOR (``format_``: ``msgpack`` or ``cbor``) as JSON text.

    Raises ``ValueError`` with the byte for what is no such value.
    """
    item = _ITEMS[format_]
    out: list[str] = []
    stack: list[_Open] = []
    at = 0
    while True:
        begin = at
        try:
            kind, value, at = item(data, at)
            _put(stack, out, kind, value, len(data) - at)
        except (IndexError, struct.error):
            raise ValueError(f"at byte {begin}: the value ends before it is complete") from None
        except UnicodeDecodeError:
            raise ValueError(f"at byte {begin}: a text that is not UTF-8") from None
        except ValueError as error:
            raise ValueError(f"at byte {begin}: {error}") from None
        while stack and not stack[-1].left:
            out.append("]" if stack.pop().kind == _ARRAY else "}")
        if not stack:
            break
    if at < len(data):
        raise ValueError(f"at byte {at}: the value goes on after its end")
    return "".join(out)


def _put(stack: list[_Open], out: list[str], kind: int, value: str | int, left: int) -> None:
    """Writes an item, with what stands between it and the one before. ``left``: bytes that are still there."""
    top = stack[-1] if stack else None
    if kind == _END:
        if top is None or top.left != _UNENDING or (top.kind == _MAP and top.number & 1):
            raise ValueError("an end of nothing")
        top.left = 0
        return
    is_name = False
    if top is not None:
        is_name = top.kind == _MAP and not top.number & 1
        if top.kind == _MAP and not is_name:
            out.append(":")
        elif top.number:
            out.append(",")
        top.number += 1
        top.left -= top.left > 0
    if isinstance(value, str):
        out.append(_name(top, value) if is_name and top is not None else value)
        return
    if is_name:
        raise ValueError("a key that is more than one value has no name in JSON")
    if len(stack) >= DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST}")
    if kind != _TAG and value > left:
        raise IndexError
    out.append("[" if kind == _ARRAY else "{" if kind == _MAP else f'{{"tag":{value},"value":')
    stack.append(_Open(kind, 1 if kind == _TAG else value))


def _name(top: _Open, text: str) -> str:
    if text[0] == "{":
        raise ValueError("a key that is more than one value has no name in JSON")
    name = text if text[0] == '"' else f'"{text}"'
    if name in top.names:
        raise ValueError("a name is repeated")
    top.names.add(name)
    return name


# --- scalars ----------------------------------------------------------------------------------------------------------


def _part(data: bytes, at: int, size: int) -> bytes:
    if size > len(data) - at:
        raise IndexError
    return data[at : at + size]


_quoted: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


def _bytes(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _float(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _time(seconds: int, nanos: int = 0) -> str | None:
    """A time in UTC. None for one that no calendar has."""
    try:
        made = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return None
    if not 0 <= nanos < 1_000_000_000:
        return None
    return f'"{made:0>19}{f".{nanos:09d}".rstrip("0") if nanos else ""}Z"'


# --- MessagePack ------------------------------------------------------------------------------------------------------

_SIZES: Final = {0xC4: ">B", 0xC5: ">H", 0xC6: ">I", 0xC7: ">B", 0xC8: ">H", 0xC9: ">I", 0xD9: ">B", 0xDA: ">H"} | {
    0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"
}  # fmt: skip
_NUMBERS: Final = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i",
    0xD3: ">q",
}  # fmt: skip
_WORDS: Final = {0xC0: "null", 0xC2: "false", 0xC3: "true"}


def _msgpack(data: bytes, at: int) -> _Item:
    first = data[at]
    at += 1
    if first < 0x80 or first >= 0xE0:
        return _TEXT, str(first if first < 0x80 else first - 0x100), at
    if first in _WORDS:
        return _TEXT, _WORDS[first], at
    if first in _NUMBERS:
        (number,) = struct.unpack_from(_NUMBERS[first], data, at)
        text = _float(number) if first <= 0xCB else str(number)
        return _TEXT, text, at + struct.calcsize(_NUMBERS[first])
    if 0xD4 <= first <= 0xD8:
        return _extension(data, at, 1 << (first - 0xD4))
    if first < 0xC0:
        size = first & (0x1F if first >= 0xA0 else 0x0F)
    elif first in _SIZES:
        (size,) = struct.unpack_from(_SIZES[first], data, at)
        at += struct.calcsize(_SIZES[first])
    else:
        raise ValueError(f"the byte {first:02x} begins no value of MessagePack")
    if first <= 0x8F or first in (0xDE, 0xDF):
        return _MAP, 2 * size, at
    if first <= 0x9F or first in (0xDC, 0xDD):
        return _ARRAY, size, at
    if 0xC7 <= first <= 0xC9:
        return _extension(data, at, size)
    found = _part(data, at, size)
    return _TEXT, _bytes(found) if 0xC4 <= first <= 0xC6 else _quoted(found.decode()), at + size


def _extension(data: bytes, at: int, size: int) -> _Item:
    (kind,) = struct.unpack_from(">b", data, at)
    found = _part(data, at + 1, size)
    text = None
    if kind == -1 and size == 4:
        text = _time(int.from_bytes(found, "big"))
    elif kind == -1 and size == 8:
        both = int.from_bytes(found, "big")
        text = _time(both & (1 << 34) - 1, both >> 34)
    elif kind == -1 and size == 12:
        nanos, seconds = struct.unpack(">Iq", found)
        text = _time(seconds, nanos)
    return _TEXT, text or f'{{"type":{kind},"data":{_bytes(found)}}}', at + 1 + size


# --- CBOR -------------------------------------------------------------------------------------------------------------

_SIMPLE: Final = {20: "false", 21: "true", 22: "null", 23: "null"}
_FLOATS: Final = {25: ">e", 26: ">f", 27: ">d"}
_PLAIN: Final = frozenset((0, 21, 22, 23, 24, 32, 33, 34, 1004, 55799))
"""Tags that say how something is meant which JSON says no other way."""


def _cbor(data: bytes, at: int) -> _Item:
    major, more, number, after = _head(data, at)
    if major == 0:
        return _TEXT, str(number), after
    if major == 1:
        return _TEXT, str(-1 - number), after
    if major in (2, 3):
        found, after = _string(data, at)
        return _TEXT, _bytes(found) if major == 2 else _quoted(found.decode()), after
    if major in (4, 5):
        count = _UNENDING if more == 31 else number * (major - 3)
        return _ARRAY if major == 4 else _MAP, count, after
    if major == 6:
        while number in _PLAIN and after < len(data) and data[after] >> 5 == 6:
            _, _, number, after = _head(data, after)
        if number in _PLAIN:
            return _cbor(data, after)
        text, end = _meant(data, number, after)
        return (_TAG, number, after) if text is None else (_TEXT, text, end)
    if more == 31:
        return _END, 0, after
    if more in _FLOATS:
        return _TEXT, _float(struct.unpack_from(_FLOATS[more], data, at + 1)[0]), after
    return _TEXT, _SIMPLE.get(number, f'{{"simple":{number}}}'), after


def _head(data: bytes, at: int) -> tuple[int, int, int, int]:
    """The kind of an item, what its first byte adds, its number, and the byte after. Raises ``ValueError``."""
    major, more = data[at] >> 5, data[at] & 0x1F
    if more < 24:
        return major, more, more, at + 1
    if more == 31:
        if major in (0, 1, 6):
            raise ValueError("a number without an end")
        return major, more, 0, at + 1
    if more > 27:
        raise ValueError(f"the byte {data[at]:02x} begins no value of CBOR")
    size = 1 << (more - 24)
    return major, more, int.from_bytes(_part(data, at + 1, size), "big"), at + 1 + size


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes of a text or of bytes, which may stand in pieces."""
    kind, more, size, after = _head(data, at)
    if more != 31:
        return _part(data, after, size), after + size
    pieces = []
    while data[after] != 0xFF:
        major, more, size, after = _head(data, after)
        if major != kind or more == 31:
            raise ValueError("a piece of another kind than its whole")
        pieces.append(_part(data, after, size))
        if kind == 3:
            pieces[-1].decode()
        after += size
    return b"".join(pieces), after + 1


def _meant(data: bytes, tag: int, at: int) -> tuple[str | None, int]:
    """The text of what a tag means, and the byte after it. None where it is written as a tag."""
    if tag in (2, 3, 37) and data[at] >> 5 == 2:
        found, after = _string(data, at)
        if tag == 37:
            return (f'"{UUID(bytes=found)}"', after) if len(found) == 16 else (None, at)
        if len(found) > _WIDEST:
            return None, at
        number = int.from_bytes(found, "big")
        return str(number if tag == 2 else -1 - number), after
    if tag == 1:
        time, after = _number(data, at)
        if time is None or not abs(time) < _LATEST:
            return None, at
        seconds, micros = divmod(round(time * 1_000_000), 1_000_000)
        return _time(seconds, micros * 1000), after
    if tag == 4 and data[at] == 0x82:
        exponent, after = _number(data, at + 1)
        if not isinstance(exponent, int) or abs(exponent) > _EXPONENT:
            return None, at
        digits, after = _number(data, after)
        if isinstance(digits, int):
            # Not by scaleb, which rounds.
            sign, several, _ = Decimal(digits).as_tuple()
            return f"{Decimal((sign, several, exponent)):f}", after
    return None, at


def _number(data: bytes, at: int) -> tuple[int | float | None, int]:
    """A whole number or a float, and the byte after. None for anything else."""
    major, more, number, after = _head(data, at)
    if major == 6 and number in (2, 3) and data[after] >> 5 == 2:
        text, after = _meant(data, number, after)
        return None if text is None else int(text), after
    if major == 7 and more in _FLOATS:
        found: float = struct.unpack_from(_FLOATS[more], data, at + 1)[0]
        return found, after
    return (number if major == 0 else -1 - number, after) if major < 2 else (None, after)


_ITEMS: Final[dict[str, Callable[[bytes, int], _Item]]] = {"msgpack": _msgpack, "cbor": _cbor}
