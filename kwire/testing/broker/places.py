"""Which topics and partitions a request names, in whatever layout: by name, or by id.

``places`` goes through the message. A struct that has Topic in its name is one topic, and the numbers in it are
partitions. That holds for all requests of Kafka so far, as a test shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

from kwire.codec.objects import WireStruct
from kwire.schema.model import Message

__all__ = ["ANY", "names_topics", "places"]

ANY: Final = -2
"""A number for all partitions of a topic."""
_NUMBERS: Final = ("partition", "partition_index", "index")
_TOPICS: Final = ("topic", "topic_id", "topic_names", "topics", "topic_data")


def names_topics(message: Message | None) -> bool:
    """Whether requests of this kind name topics."""
    if message is None:
        return False
    structs = message.structs.values()
    return any(one.name in _TOPICS for fields in (message.fields, *(it.fields for it in structs)) for one in fields)


def places(body: Any, name_of: Callable[[UUID], str]) -> Iterator[tuple[str, int]]:
    """Topics and partitions that a request names. ``name_of`` gives the name of a topic id, "" if it is not known."""
    if not isinstance(body, WireStruct):
        return
    for field in body.FIELDS:
        value = getattr(body, field.name)
        if field.name == "topic_names":
            yield from ((str(name), ANY) for name in value)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, WireStruct):
                    is_topic = "Topic" in type(inner).__name__
                    yield from _topic(inner, name_of) if is_topic else places(inner, name_of)


def _topic(one: WireStruct, name_of: Callable[[UUID], str]) -> Iterator[tuple[str, int]]:
    name = getattr(one, "topic", None) or getattr(one, "name", None)
    if not name:
        number = getattr(one, "topic_id", None)
        name = name_of(number) if isinstance(number, UUID) else ""
    found = False
    for field in one.FIELDS:
        value = getattr(one, field.name)
        if isinstance(value, list | tuple):
            for inner in value:
                place = inner if isinstance(inner, int) else _number(inner)
                if place is not None:
                    found = True
                    yield name, place
    if not found:
        yield name, ANY


def _number(one: object) -> int | None:
    for name in _NUMBERS:
        number = getattr(one, name, None)
        if isinstance(number, int):
            return number
    return None
