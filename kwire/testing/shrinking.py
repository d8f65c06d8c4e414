"""Makes a case smaller that a parser gets wrong: by fields of its body, and by bytes where any bytes would do.

A smaller case has the same damage at the same field, so its verdict is the same. Bytes are left out only where the
verdict does not count: a crash, a hang, too much memory.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from kwire.codec.objects import WireStruct
from kwire.testing.corpus.case import Case
from kwire.testing.corpus.messages import remade

__all__ = ["shrunk"]

_TRIES: Final = 300
"""Cases that a parser is asked about at most."""


def shrunk(case: Case, fails: Callable[[Case], bool], *, bytes_too: bool) -> Case:
    """The smallest case that was found for which ``fails`` is true. It is true of ``case``."""
    tries = iter(range(_TRIES))
    smaller = True
    while smaller:
        smaller = False
        for candidate in _by_fields(case):
            if next(tries, None) is None:
                return case
            if (len(candidate.data), candidate.data) < (len(case.data), case.data) and fails(candidate):
                case, smaller = candidate, True
                break
    return _by_bytes(case, fails, tries) if bytes_too else case


def _by_fields(case: Case) -> Iterator[Case]:
    recipe = case.recipe
    if recipe is None or (recipe.damage and not recipe.path):
        return
    for steps, value in list(_simpler(recipe.body, ())):
        body = copy.deepcopy(recipe.body)
        _put(body, steps, value)
        made = remade(case, body)
        if made is not None:
            yield made


def _simpler(value: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """What may stand in place of something inside a value: where, and what. The largest pieces come first."""
    if isinstance(value, WireStruct):
        if type(value) is not value.__class__:
            return  # the shared default of a field, of which nothing may be changed
        default = value.__class__()
        if value.unknown_tagged_fields:
            yield (*steps, "unknown_tagged_fields"), None
        for one in value.FIELDS:
            found = getattr(value, one.name)
            if found != getattr(default, one.name):
                yield (*steps, one.name), getattr(default, one.name)
        for one in value.FIELDS:
            yield from _simpler(getattr(value, one.name), (*steps, one.name))
    elif isinstance(value, list | tuple) and value:
        yield steps, value[:0]
        yield steps, value[:1]
        if not isinstance(value, tuple):
            for number, one in enumerate(value):
                yield from _simpler(one, (*steps, number))
    elif isinstance(value, str | bytes) and value:
        yield steps, value[:0]
        yield steps, value[:1]
    elif isinstance(value, UUID) and value.int:
        yield steps, UUID(int=0)


def _put(value: Any, steps: tuple[str | int, ...], new: Any) -> None:
    for one in steps[:-1]:
        value = value[one] if isinstance(one, int) else getattr(value, one)
    if isinstance(steps[-1], int):
        value[steps[-1]] = new
    else:
        setattr(value, steps[-1], new)


def _by_bytes(case: Case, fails: Callable[[Case], bool], tries: Iterator[int]) -> Case:
    first = case.body_at or 0
    size = max(1, (len(case.data) - first) // 2)
    while size:
        at = first
        while at < len(case.data):
            candidate = replace(case, data=case.data[:at] + case.data[at + size :], recipe=None)
            if next(tries, None) is None:
                return case
            if fails(candidate):
                case = candidate
            else:
                at += size
        size //= 2
    return case
