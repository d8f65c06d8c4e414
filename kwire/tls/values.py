"""Values of a saved state, as JSON holds them: what gives them out, and what takes them back and looks at them.

What is taken back may have been stored and put together by others. What is wrong with it is an ordinary ``TypeError``
or ``ValueError``: who restores a state makes one error of them.
"""

from __future__ import annotations

import base64
from typing import Any, Final

__all__ = ["as_bytes", "as_text", "number", "text", "truth"]

_LARGEST: Final = 1 << 61


def as_text(data: bytes | bytearray) -> str:
    """Bytes as text."""
    return base64.b64encode(data).decode("ascii")


def as_bytes(value: Any) -> bytes:
    """The bytes that a text says."""
    return base64.b64decode(text(value), validate=True)


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def truth(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def number(value: Any, least: int) -> int:
    """A number that is not too large for a position in a stream."""
    if type(value) is not int or not least <= value <= _LARGEST:
        raise ValueError("no such number")
    return value
