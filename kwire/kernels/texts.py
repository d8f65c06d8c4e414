"""Numbers, strings and bytes as text, for kernels that write JSON or CSV.

Rules kept here:

- What is written goes into a buffer ``out`` at ``n``, and where it ends is returned. The caller has made room: as much
  as stands beside each kernel, and ``ROOM`` bytes after it, since copies overrun.
- Bytes that are not UTF-8 become U+FFFD, as ``bytes.decode("utf-8", "replace")`` does it.
- ``safe`` text can be obeyed by no terminal and ends no line: what ``is_obeyed`` says is escaped as ``\\u0085``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kwire.kernels.engine import kernel
from kwire.kernels.numbers import copy, copy_wide, int64, load64

__all__ = [
    "BASE64",
    "ROOM",
    "base64",
    "decimal",
    "escape",
    "is_obeyed",
    "plain",
    "put",
    "safe",
    "sequence",
    "string",
    "unicode_escape",
]

Array = Any

ROOM: Final = 256
"""Bytes after what is written: more than any number or name is long, and than copies overrun."""
_STEP: Final = 32
"""``copy_wide`` reads and writes so many bytes more."""

_DIGITS: Final = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8).copy()
_POWERS: Final = np.array([10**n for n in range(19)], np.int64)
_LEAST: Final = np.frombuffer(b"-9223372036854775808", np.uint8).copy()
BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""Its characters, by their six bits."""
_BASE64: Final = np.frombuffer(BASE64, np.uint8).copy()
_HALVES: Final = np.stack((np.repeat(_BASE64, 64), np.tile(_BASE64, 64)), 1).reshape(-1).copy()
"""Both characters of each 12 bits."""
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_SHORT: Final = np.zeros(32, np.uint8)
"""The letter of control characters that have one: ``\\n``."""
_SHORT[[8, 9, 10, 12, 13]] = np.frombuffer(b"btnfr", np.uint8)

_QUOTE: Final = int64(ord('"'))
_BACKSLASH: Final = int64(ord("\\"))
_PAD: Final = int64(ord("="))
_MINUS: Final = int64(ord("-"))
_ZERO: Final = int64(ord("0"))
_U: Final = int64(ord("u"))

_HIGH: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_SPACES: Final = np.uint64(0x2020202020202020)
_QUOTES: Final = np.uint64(0x2222222222222222)
_BACKSLASHES: Final = np.uint64(0x5C5C5C5C5C5C5C5C)


@kernel
def decimal(out: Array, n: int, value: int) -> int:
    """An int64 in decimal: at most 20 bytes."""
    if value < 0:
        if value == -0x8000000000000000:
            for k in range(_LEAST.shape[0]):
                out[n + k] = _LEAST[k]
            return n + _LEAST.shape[0]
        out[n] = _MINUS
        n += 1
        value = -value
    if value < 10:
        out[n] = _ZERO + value
        return n + 1
    digits = int64(2)
    while digits < _POWERS.shape[0] and value >= _POWERS[digits]:
        digits += 1
    at = n + digits
    while value >= 100:
        rest = value // 100
        pair = 2 * (value - 100 * rest)
        out[at - 1] = _DIGITS[pair + 1]
        out[at - 2] = _DIGITS[pair]
        at -= 2
        value = rest
    if value >= 10:
        out[at - 1] = _DIGITS[2 * value + 1]
        out[at - 2] = _DIGITS[2 * value]
    else:
        out[at - 1] = _ZERO + value
    return n + digits


@kernel
def put(buf: Array, at: int, out: Array, n: int, size: int) -> int:
    """Bytes as they are."""
    if at + size + _STEP <= buf.shape[0] and n + size + _STEP <= out.shape[0]:
        copy_wide(buf, at, out, n, size)
    else:
        copy(buf, at, out, n, size)
    return n + size


@kernel
def plain(buf: Array, pos: int, end: int) -> int:
    """The position of the first byte from ``pos`` on that JSON writes otherwise, or that is not printable ASCII. Else
    ``end``."""
    while pos + 8 <= end:
        # Inside of the buffer, since ``end`` is.
        word = load64(buf, pos)
        odd = word | (word + _ONES) | (word - _SPACES) | ((word ^ _QUOTES) - _ONES) | ((word ^ _BACKSLASHES) - _ONES)
        if odd & _HIGH != np.uint64(0):
            break
        pos += 8
    while pos < end:
        byte = int64(buf[pos])
        if byte < 32 or byte >= 127 or byte == _QUOTE or byte == _BACKSLASH:  # noqa: SIM109
            break
        pos += 1
    return pos


@kernel
def sequence(buf: Array, pos: int, end: int) -> int:
    """How many bytes from ``pos`` on, which is not ASCII, belong to one character of UTF-8; negative: to none."""
    first = int64(buf[pos])
    low, high = int64(0x80), int64(0xBF)
    if 0xC2 <= first <= 0xDF:
        more = int64(1)
    elif 0xE0 <= first <= 0xEF:
        more = int64(2)
        if first == 0xE0:
            low = int64(0xA0)
        elif first == 0xED:
            high = int64(0x9F)
    elif 0xF0 <= first <= 0xF4:
        more = int64(3)
        if first == 0xF0:
            low = int64(0x90)
        elif first == 0xF4:
            high = int64(0x8F)
    else:
        return int64(-1)
    for k in range(1, more + 1):
        if pos + k >= end:
            return -int64(k)
        byte = int64(buf[pos + k])
        if byte < low or byte > high:
            return -int64(k)
        low, high = int64(0x80), int64(0xBF)
    return more + 1


@kernel
def escape(out: Array, n: int, byte: int) -> int:
    """A quote, backslash or control character: at most 6 bytes."""
    if byte < 32 and _SHORT[byte] == 0:
        return unicode_escape(out, n, byte)
    out[n] = _BACKSLASH
    out[n + 1] = byte if byte >= 32 else int64(_SHORT[byte])
    return n + 2


@kernel
def unicode_escape(out: Array, n: int, unit: int) -> int:
    """``\\u0085`` of 16 bits: 6 bytes."""
    out[n] = _BACKSLASH
    out[n + 1] = _U
    for k in range(4):
        out[n + 2 + k] = _HEX[(unit >> (12 - 4 * k)) & 15]
    return n + 6


@kernel
def is_obeyed(char: int) -> bool:
    """What a terminal may obey and JSON need not escape: DEL, the C1 controls, those of lines and of directions."""
    if char < 0x600:
        return 0x7F <= char <= 0x9F
    if char < 0x2000:
        return char == 0x61C
    return char == 0x200E or char == 0x200F or 0x2028 <= char <= 0x202E or 0x2066 <= char <= 0x2069


@kernel
def _character(buf: Array, pos: int, size: int) -> int:
    """The code point of a character of two or three bytes, which is all that ``is_obeyed`` asks for; 0 for others."""
    if size == 2:
        return (int64(buf[pos]) & 0x1F) << 6 | int64(buf[pos + 1]) & 0x3F
    if size == 3:
        return (int64(buf[pos]) & 0x0F) << 12 | (int64(buf[pos + 1]) & 0x3F) << 6 | int64(buf[pos + 2]) & 0x3F
    return int64(0)


@kernel
def _beyond_ascii(buf: Array, pos: int, end: int, guarded: int, out: Array, n: int) -> tuple[int, int]:
    """A character that is not ASCII: (position after it, where the text ends)."""
    size = sequence(buf, pos, end)
    if size > 0:
        char = _character(buf, pos, size)
        if guarded != 0 and is_obeyed(char):
            return pos + size, unicode_escape(out, n, char)
        for k in range(size):
            out[n + k] = buf[pos + k]
        return pos + size, n + size
    out[n] = 0xEF
    out[n + 1] = 0xBF
    out[n + 2] = 0xBD
    return pos - size, n + 3


@kernel
def string(buf: Array, at: int, length: int, guarded: int, out: Array, n: int) -> int:
    """A string in quotes, as JSON has it: at most 6 * ``length`` + 2 bytes. ``guarded``: 1 for safe text."""
    out[n] = _QUOTE
    n += 1
    pos, end = int64(at), int64(at + length)
    while True:
        stop = plain(buf, pos, end)
        if stop > pos:
            n = put(buf, pos, out, n, stop - pos)
            pos = stop
        if pos >= end:
            break
        byte = int64(buf[pos])
        if byte < 127:
            n = escape(out, n, byte)
            pos += 1
        elif byte == 127:
            if guarded != 0:
                n = unicode_escape(out, n, byte)
            else:
                out[n] = byte
                n += 1
            pos += 1
        else:
            pos, n = _beyond_ascii(buf, pos, end, guarded, out, n)
    out[n] = _QUOTE
    return n + 1


@kernel
def _ascii(buf: Array, pos: int, end: int) -> int:
    """The position of the first byte from ``pos`` on that is DEL or not ASCII; else ``end``."""
    while pos + 8 <= end:
        word = load64(buf, pos)
        if (word | (word + _ONES)) & _HIGH != np.uint64(0):
            break
        pos += 8
    while pos < end and buf[pos] < 127:
        pos += 1
    return pos


@kernel
def safe(buf: Array, at: int, length: int, out: Array, n: int) -> int:
    """JSON as it is, made safe: at most 6 * ``length`` bytes."""
    pos, end = int64(at), int64(at + length)
    while True:
        stop = _ascii(buf, pos, end)
        if stop > pos:
            n = put(buf, pos, out, n, stop - pos)
            pos = stop
        if pos >= end:
            return n
        if buf[pos] == 127:
            n = unicode_escape(out, n, int64(127))
            pos += 1
        else:
            pos, n = _beyond_ascii(buf, pos, end, int64(1), out, n)


@kernel
def base64(buf: Array, at: int, length: int, out: Array, n: int) -> int:
    """Bytes in base64, without quotes: at most 4 bytes for each 3 or fewer of them."""
    pos = int64(at)
    for _ in range(length // 3):
        bits = int64(buf[pos]) << 16 | int64(buf[pos + 1]) << 8 | int64(buf[pos + 2])
        high, low = 2 * (bits >> 12), 2 * (bits & 0xFFF)
        out[n] = _HALVES[high]
        out[n + 1] = _HALVES[high + 1]
        out[n + 2] = _HALVES[low]
        out[n + 3] = _HALVES[low + 1]
        n += 4
        pos += 3
    rest = length % 3
    if rest > 0:
        bits = int64(buf[pos]) << 16
        if rest == 2:
            bits |= int64(buf[pos + 1]) << 8
        out[n] = _BASE64[bits >> 18]
        out[n + 1] = _BASE64[(bits >> 12) & 63]
        out[n + 2] = _BASE64[(bits >> 6) & 63] if rest == 2 else _PAD
        out[n + 3] = _PAD
        n += 4
    return n
