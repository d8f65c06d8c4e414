"""What a body takes as Python objects, in bytes: an estimate that both codecs and the tracked walk share.

A struct of two bytes on the wire is an object of a hundred and more. So decoding counts, in bytes that are estimated
here, and stops at ``kwire.limits.Limits.for_objects`` with a ``LimitError``.

Rules kept here:

- Counted are the elements of arrays, once for each array and before any of them is made, and unknown tagged fields one
  by one. Everything else is part of an element, or there once for each message.
- All that decode count the same at the same places: one that refuses a body refuses it at the same path and offset.
- Up to ``uncounted`` bytes nothing can be beyond the limit, and nothing is counted. That is nearly every body.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from kwire.errors import LimitError
from kwire.limits import Limits
from kwire.schema import model

__all__ = ["FEW_NUMBERS", "UNKNOWN_TAG", "element", "elements", "exceeded", "uncounted"]

FEW_NUMBERS: Final = 16
"""Arrays of so many numbers are counted with the struct around them. The guesses of ``decoder`` are not longer."""
UNKNOWN_TAG: Final = 256
"""A dict with one item, its bytes and its number; each has a dict of its own at worst."""

_SLOT: Final = 8
_OBJECT: Final = 40
"""Header, collector's links, and the slot of unknown tagged fields."""
_LIST: Final = 56
_NUMBERS: Final = 88
_NUMBER: Final = 32
_TEXT: Final = 48
_UUID: Final = 104
_NOTHING: Final = 2048
"""An element without bytes: the bytes that are there do not bound how many there can be."""
_IN_STRUCT: Final = {"bool": 0, "int8": 0, "uuid": 64, "string": 32, "bytes": 32, "records": 32}
"""What fields of a struct hold beyond their slot, as they are on average; 8 for numbers."""

_INDEX: Final = re.compile(r"\[\d+\]")


def element(type_: model.PrimitiveLayout | model.StructLayout) -> int:
    """The bytes that one element of an array takes."""
    if isinstance(type_, model.StructLayout):
        return _SLOT + _struct(type_) if type_.min_size else _NOTHING + _struct(type_)
    if type_.name in model.FIXED_SIZES:
        return _SLOT + (_UUID if type_.name == "uuid" else _NUMBER if type_.min_size > 1 else 0)
    return _SLOT + _TEXT


def elements(type_: model.PrimitiveLayout | model.StructLayout, count: int) -> int:
    """What is counted for an array of ``count`` elements."""
    return count * element(type_) if count > free(type_) else 0


def free(type_: model.PrimitiveLayout | model.StructLayout) -> int:
    """How many elements an array may have that are not counted."""
    return FEW_NUMBERS if _is_number(type_) else 0


def _is_number(type_: model.TypeLayout) -> bool:
    return isinstance(type_, model.PrimitiveLayout) and type_.name in model.FIXED_SIZES and type_.name != "uuid"


@lru_cache(maxsize=4096)
def _struct(layout: model.StructLayout) -> int:
    total = _OBJECT + _SLOT * (len(layout.fields) + len(layout.tagged) + len(layout.absent))
    for field in layout.fields:
        if isinstance(field.type, model.ArrayLayout):
            total += _NUMBERS if _is_number(field.type.element) else _LIST
        elif isinstance(field.type, model.StructLayout):
            total += _struct(field.type)
        else:
            total += _IN_STRUCT.get(field.type.name, 8)
    # Fields that are not on the wire have their default, which for arrays is a list of their own.
    total += _LIST * sum(isinstance(field.type, model.ArrayLayout) for field in layout.tagged)
    return total + _LIST * sum(isinstance(field.type, model.Array) for field in layout.absent)


def uncounted(layout: model.StructLayout, limits: Limits) -> int:
    """Bytes up to which no body of this layout can be beyond the limit; -1 where elements may have no bytes."""
    most = _worst(layout)
    return -1 if most is None else limits.for_objects(0) // most


@lru_cache(maxsize=4096)
def _worst(layout: model.StructLayout) -> int | None:
    """The most that is counted for a byte."""
    worst = UNKNOWN_TAG // 2
    for field in (*layout.fields, *layout.tagged):
        inner = field.type.element if isinstance(field.type, model.ArrayLayout) else field.type
        if isinstance(field.type, model.ArrayLayout):
            if not inner.min_size:
                return None
            assert not isinstance(inner, model.ArrayLayout)
            worst = max(worst, element(inner) // inner.min_size + 1)
        if isinstance(inner, model.StructLayout):
            own = _worst(inner)
            if own is None:
                return None
            worst = max(worst, own)
    return worst


def exceeded(limits: Limits, size: int, label: str, path: str, offset: int) -> LimitError:
    """The error for a body of ``size`` bytes; ``path`` may have indices, which are not told: fast code has none.

    ``offset`` is where the elements, or the bytes of the tagged field, begin that were too many.
    """
    text = f"more than {limits.for_objects(size)} bytes as objects: {limits.said('objects')}"
    return LimitError(text, layout=label, path=_INDEX.sub("[*]", path), offset=offset)
