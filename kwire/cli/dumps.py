"""Bytes out of text as tools print them: hex, base64, dumps of xxd, ``hexdump -C``, od and Wireshark, arrays of C.

A line of a dump has an offset, bytes, and perhaps the same bytes as characters. Rules kept here:

- The offsets must go on as the bytes do. Text that is no dump is not taken for one, and a dump with a hole is refused.
- Characters are recognised by their bytes: ``abcd`` after ``6162 6364`` is no hex.
- A line ``*`` stands for lines like the one before, up to the next offset.
- Words of two bytes, which ``hexdump`` prints in the order of the machine, are refused: nobody knows the order.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

from kwire.errors import DecodeError

__all__ = ["bytes_of"]

_HEX: Final = re.compile(r"(?:0x)?(?:[0-9a-fA-F]{2}[\s:]*+)++$")
"""Possessive: what matched is not kept to be tried otherwise, which took 90 bytes for each byte."""
_LINE: Final = re.compile(r"\s*+(?:0x)?([0-9a-fA-F]{4,16})(:?)(?:[ \t]++(.*))?$")
_GROUP: Final = re.compile(r"[ \t]*+((?:[0-9a-fA-F]{2})++)(?=[ \t]|$)")
_MOST_IN_LINE: Final = 256
"""The most bytes of a line that ``xxd -c`` takes."""
_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*+", re.DOTALL)
_ARRAY: Final = re.compile(r"(?:(?:\(byte\)\s*+)?0[xX][0-9a-fA-F]{1,2}(?:\s*+,\s*+|\s++|$))++$")
_ELEMENT: Final = re.compile(r"0[xX]([0-9a-fA-F]{1,2})")
_ESCAPES: Final = re.compile(r"""b?["']?(?:\\x[0-9a-fA-F]{2})++["']?$""")


def bytes_of(text: str, most: int) -> bytes | None:
    """The bytes that ``text`` shows. None if it shows none.

    Raises ``DecodeError`` for a dump with a hole or of words of two bytes, and for more than ``most`` bytes.
    """
    text = text.strip()
    found = _of_dump(text, most)
    if found is not None:
        return found
    if _HEX.match(text):
        return bytes.fromhex(re.sub(r"[\s:]", "", text.removeprefix("0x")))
    if _ESCAPES.match(text):
        return bytes.fromhex(text.removeprefix("b").strip("\"'").replace("\\x", ""))
    array = _of_array(text)
    if array is not None:
        return array
    try:
        return base64.b64decode("".join(text.split()), validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _of_array(text: str) -> bytes | None:
    """The elements of an array, with a declaration around them or without."""
    if "0x" not in text and "0X" not in text:
        return None
    text = _COMMENT.sub(" ", text)
    declared = "{" in text
    if declared:
        text = text.partition("{")[2].partition("}")[0]
    text = text.strip().removeprefix("[").removesuffix("]").strip()
    if not _ARRAY.match(text):
        return None
    found = _ELEMENT.findall(text)
    return bytes(int(digits, 16) for digits in found) if declared or "," in text or len(found) > 1 else None


class _Line(NamedTuple):
    offset: int
    digits: int
    """How many digits the offset has."""
    sure: bool
    """Whether something else than its digits says that it is an offset: a colon, or characters after the bytes."""
    data: bytes
    width: int
    """Bytes of the largest group."""


def _of_dump(text: str, most: int) -> bytes | None:
    first: _Line | None = None
    sure = repeated = words = False
    last = b""
    made = bytearray()
    for each in text.split("\n"):
        if not each.strip():
            continue
        if each.strip() == "*":
            if not last:
                return None
            repeated = True
            continue
        line = _line(each)
        if line is None:
            return None
        first = first or line
        missing = line.offset - first.offset - len(made)
        if repeated and missing > 0 and missing % len(last) == 0:
            if len(made) + missing > most:
                raise DecodeError(f"a dump of more than {most} bytes")
            made += last * (missing // len(last))
        elif missing == -1 and words:
            break
        elif missing and first.sure and line.sure:
            raise DecodeError(f"a dump in which offset {line.offset:x} follows {len(made)} bytes from {first.offset:x}")
        elif missing:
            return None
        repeated = False
        # A second offset in its place says what the first digits of the lines are.
        sure = sure or line.sure or len(made) > 0 or line.digits > 2 * max(line.width, 1)
        words = words or (line.width == 2 and not line.sure)
        made += line.data
        last = line.data
    if first is None or not sure or not made:
        return None
    if words:
        raise DecodeError("words of two bytes, in the order of the machine that dumped them: use hexdump -C, or xxd")
    return bytes(made)


def _line(text: str) -> _Line | None:
    found = _LINE.match(text)
    if found is None:
        return None
    rest = found[3] or ""
    data = b""
    at = width = 0
    whole: tuple[bytes, int] | None = None
    shown: tuple[bytes, int] | None = None
    while (group := _GROUP.match(rest, at)) and len(data) < _MOST_IN_LINE:
        data += bytes.fromhex(group[1])
        at = group.end()
        width = max(width, len(group[1]) // 2)
        rest_of_line = rest[at:].strip(" \t")
        if not rest_of_line:
            whole = data, width
        elif _characters(data, rest_of_line):
            shown = data, width
    if shown is None and whole is None and rest:
        return None
    data, width = shown or whole or (b"", 0)
    return _Line(int(found[1], 16), len(found[1]), bool(found[2]) or shown is not None, data, width)


def _characters(data: bytes, text: str) -> bool:
    """Whether ``text`` shows ``data``: as characters, with dots for what is none."""
    if len(text) > len(data) + 2:
        return False
    shown = "".join(chr(one) if 32 <= one < 127 else "." for one in data)
    return text in (f"|{shown}|", f">{shown}<") or text.rstrip() == shown.strip(" \t")
