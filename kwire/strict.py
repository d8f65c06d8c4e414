"""JSON as RFC 8259 has it. Python's own reader takes more: repeated names, ``NaN``, numbers beyond a float."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

__all__ = ["nesting", "read"]

# A string without its end is taken up to the end of the text. Looking for another start in it would take quadratic
# time.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


def read(value: bytes, deepest: int, integer: Callable[[str], Any] = int, *, whole: bool = False) -> Any:
    """What one JSON text in UTF-8 says. ``integer`` makes a value of the digits of a whole number.

    ``whole``: half a surrogate pair is refused, which is JSON, and no text in UTF-8.

    Raises ``ValueError`` for what is none (``UnicodeDecodeError``, ``JSONDecodeError`` with its place), and for arrays
    and objects inside each other deeper than ``deepest``.
    """
    text = value.decode()
    if nesting(text, deepest) > deepest:
        raise ValueError(f"nested deeper than {deepest}")
    try:
        found = _decoder(integer).decode(text)
        if whole and "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None
    except UnicodeEncodeError:
        raise ValueError("half a surrogate pair") from None
    return found


def nesting(text: str, least: int = 0) -> int:
    """How deep the arrays and objects of a JSON text are nested. 0 where they can be no deeper than ``least``."""
    if text.count("[") + text.count("{") <= least:
        return 0
    depth = most = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            most = max(most, depth)
        elif mark in "]}":
            depth -= 1
    return most


@cache
def _decoder(integer: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite, parse_int=integer)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is repeated")
    return members


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    # 1e400 is JSON, and would become an infinity, which is none and could not be written again.
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond a float")
    return number
