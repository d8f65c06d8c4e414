"""Topics and faults of a broker as a text: what ``kwire broker --script`` reads.

    [topics]
    orders = 3

    [[fault]]
    api = "Fetch"
    topic = "orders"
    nth = 3
    error = "NOT_LEADER_OR_FOLLOWER"

    [[fault]]
    api = "Produce"
    delay = 2.0
    drop = true

A fault has the arguments of ``Broker.on`` under their names, and the methods of ``Rule``: ``error``, ``delay``,
``throttle``, ``drop``, ``close``, ``raw`` (hexadecimal) and ``damage``. ``handled = false`` goes with ``drop`` and
``close``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kwire.errors import KwireError
from kwire.naming import no_such
from kwire.testing.broker.faults import Rule

__all__ = ["Script", "read"]

_NUMBER: Final = (int, float)
_FILTERS: Final = {
    "topic": str,
    "partition": int,
    "client": str,
    "node": int,
    "nth": int,
    "times": int,
    "share": _NUMBER,
}
_EFFECTS: Final = {
    "error": str,
    "delay": _NUMBER,
    "throttle": _NUMBER,
    "drop": bool,
    "close": bool,
    "raw": str,
    "damage": str,
}
_OTHERS: Final = {"api": str, "handled": bool}


@dataclass(frozen=True, slots=True)
class Script:
    """What a text says."""

    topics: dict[str, int] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)


def read(text: str) -> Script:
    """The script of a text. Raises ``ValueError`` for a text that is none, with the place."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("no script: its tables and lists are too deep") from None
    except ValueError as error:
        # A number of too many digits is one, too.
        raise ValueError(f"no TOML: {error}") from None
    _known(found, {"topics": dict, "fault": list}, "the script")
    topics = found.get("topics", {})
    for name, count in topics.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ValueError(f"topic {name}: {count!r} is no number of partitions")
    rules = []
    for place, one in enumerate(found.get("fault", []), 1):
        try:
            rules.append(_rule(one))
        except (ValueError, KwireError) as error:
            raise ValueError(f"fault {place}: {error}") from None
    return Script(topics, rules)


def _known(found: Mapping[str, Any], types: Mapping[str, Any], what: str) -> None:
    for name, value in found.items():
        if name not in types:
            raise ValueError(f"{what} has {no_such('entry', name, types)}")
        kind = types[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"{name} = {value!r} has another type than it should")


def _rule(one: Any) -> Rule:
    if not isinstance(one, dict):
        raise ValueError("no table")
    _known(one, _FILTERS | _EFFECTS | _OTHERS, "it")
    if not any(name in one for name in _EFFECTS):
        raise ValueError(f"it does nothing: one of {', '.join(_EFFECTS)} is needed")
    rule = Rule(one.get("api"), **{name: one[name] for name in _FILTERS if name in one})
    handled = one.get("handled", True)
    for name in _EFFECTS:
        value = one.get(name)
        if value is None or value is False:
            continue
        if name in ("drop", "close"):
            getattr(rule, name)(handled=handled)
        else:
            getattr(rule, name)(_bytes(value) if name == "raw" else value)
    return rule


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"raw = {text!r} is not hexadecimal") from None
