"""Values of what is stored and read again, as JSON holds them: what gives them out, and what takes them back.

What is taken back may have been put together by others. What is wrong with it is one of ``UNFIT``: who reads a state
makes one error of them.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final
from uuid import UUID

__all__ = ["UNFIT", "as_bytes", "as_text", "instance", "is_text", "number", "optional", "parsed", "text", "truth"]

_LARGEST: Final = 1 << 61

UNFIT: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What taking apart something else leads to."""


def parsed(source: str | bytes) -> Any:
    """What a text in JSON says. Raises ``ValueError``, also for one that is nested too deep."""
    try:
        return json.loads(source)
    except RecursionError:
        raise ValueError("nested too deep") from None


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


def is_text(said: str) -> bool:
    """Whether UTF-8 has it: JSON may have halves of surrogate pairs."""
    try:
        said.encode()
    except UnicodeEncodeError:
        return False
    return True


def truth(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def number(value: Any, least: int, most: int = _LARGEST) -> int:
    """A number; the largest is not too large for a position in a stream."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError("no such number")
    return value


def optional(value: Any, least: int, most: int = _LARGEST) -> int | None:
    """A number, or None."""
    return None if value is None else number(value, least, most)


def instance(value: Any) -> UUID:
    """A UUID that is written without hyphens."""
    return UUID(text(value))
