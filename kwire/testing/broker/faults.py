"""Faults that a test scripts: which requests they are for, and what happens to those.

    broker.on("Fetch", topic="orders", nth=3).error("NOT_LEADER_OR_FOLLOWER")
    broker.on("Produce", client="billing").delay(2).drop()

Rules kept here:

- A rule counts the requests that it is for. With ``nth`` it acts on that one alone, with ``times`` on the first ones.
- Where several rules are for one request, all of them act. Of two that say the same, the later one counts.
- An error is answered in place of the work: nothing is appended, committed or joined.
- ``drop``, ``close``, ``raw`` and ``damage`` are about the response. The request has been carried out by then, unless
  ``handled=False`` says otherwise.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import UUID

from kwire import schema
from kwire.codec.objects import WireStruct
from kwire.naming import no_such
from kwire.protocol import names
from kwire.schema.keys import ApiKey
from kwire.schema.model import Message
from kwire.testing.broker.asking import Ask

__all__ = ["DAMAGES", "Faults", "Plan", "Rule"]

_SIZE: Final = 4


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _flipped(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(_SIZE, len(data))
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


DAMAGES: Final[Mapping[str, Callable[[bytes, random.Random], bytes]]] = {
    "truncated": lambda data, chance: _sized(data[_SIZE : _SIZE + (len(data) - _SIZE) // 2]),
    "cut_off": lambda data, chance: data[: _SIZE + (len(data) - _SIZE) // 2],
    "trailing": lambda data, chance: _sized(data[_SIZE:] + bytes(7)),
    "bit_flipped": _flipped,
    "wrong_correlation_id": lambda data, chance: data[:4] + struct.pack(">I", ~_id(data) & 0xFFFFFFFF) + data[8:],
    "huge_size": lambda data, chance: b"\x7f\xff\xff\xff" + data[_SIZE:],
    "negative_size": lambda data, chance: b"\xff\xff\xff\xff" + data[_SIZE:],
    "garbage": lambda data, chance: _sized(data[4:8] + chance.randbytes(max(len(data) - 8, 0))),
    "twice": lambda data, chance: data + data,
}
"""What can be done to the bytes of a response, by name. The connection is closed after ``cut_off``."""


def _id(data: bytes) -> int:
    return int.from_bytes(data[4:8])


@dataclass(slots=True)
class Plan:
    """What is to happen to one request."""

    code: int = 0
    topic: str | None = None
    partition: int | None = None
    delay: float = 0.0
    throttle: float = 0.0
    drop: bool = False
    close: bool = False
    handled: bool = True
    raw: bytes | None = None
    damage: str | None = None
    said: str = ""
    """The faults in words; empty for none."""


class Rule:
    """A fault, and the requests that it is for. ``Broker.on`` makes rules, and says what its arguments mean."""

    def __init__(
        self,
        api: str | None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        client: str | None = None,
        node: int | None = None,
        nth: int | None = None,
        times: int | None = None,
    ) -> None:
        self.key = None if api is None else names.api_key(api)
        self.topic, self.partition, self.client, self.node = topic, partition, client, node
        self.nth, self.times = nth, times
        self.seen = 0
        """Requests that it was for."""
        self.acted = 0
        """Requests on which it acted."""
        self._does = Plan()
        for name, number in (("nth", nth), ("times", times)):
            if number is not None and number < 1:
                raise ValueError(f"{name}={number}: requests are counted from 1")
        if self.key is not None and topic is not None and not _names_topics(schema.request(self.key)):
            raise ValueError(f"{api} names no topic")

    def error(self, name: str) -> Self:
        """Answer with an error code, by its name. The request is not carried out."""
        self._does.code = int(names.error_code(name))
        return self._says(name)

    def delay(self, seconds: float) -> Self:
        """Send the response so much later. The client's next request waits too."""
        self._does.delay = float(seconds)
        return self._says(f"delay {seconds} s")

    def throttle(self, seconds: float) -> Self:
        """Say that the client is throttled, and do what a broker does then: see ``quotas``."""
        self._does.throttle = float(seconds)
        return self._says(f"throttle {seconds} s")

    def drop(self, *, handled: bool = True) -> Self:
        """Send no response."""
        self._does.drop, self._does.handled = True, handled
        return self._says("drop")

    def close(self, *, handled: bool = True) -> Self:
        """Close the connection in place of a response."""
        self._does.close, self._does.handled = True, handled
        return self._says("close")

    def raw(self, data: bytes) -> Self:
        """Send these bytes in place of the response; its size belongs to them."""
        self._does.raw = bytes(data)
        return self._says(f"raw, {len(data)} bytes")

    def damage(self, kind: str) -> Self:
        """Damage the bytes of the response, in one of the ways of ``DAMAGES``."""
        if kind not in DAMAGES:
            raise ValueError(no_such("damage", kind, DAMAGES))
        self._does.damage = kind
        return self._says(kind)

    def _says(self, text: str) -> Self:
        self._does.said = f"{self._does.said}, {text}" if self._does.said else text
        return self

    def takes(self, ask: Ask) -> bool:
        """Whether it acts on this request. Counts the request."""
        if self.key is not None and ask.key != self.key:
            return False
        if (self.client is not None and ask.client_id != self.client) or self.node not in (None, ask.node.id):
            return False
        if (self.topic, self.partition) != (None, None) and not any(
            self.topic in (None, topic) and (self.partition is None or number in (self.partition, _ANY))
            for topic, number in _places(ask)
        ):
            return False
        self.seen += 1
        acts = self.seen == self.nth if self.nth is not None else self.times is None or self.acted < self.times
        self.acted += acts
        return acts

    def apply(self, plan: Plan) -> None:
        """Write what it does into ``plan``."""
        mine = self._does
        if mine.code:
            plan.code, plan.topic, plan.partition = mine.code, self.topic, self.partition
        plan.delay, plan.throttle = mine.delay or plan.delay, mine.throttle or plan.throttle
        plan.drop, plan.close = plan.drop or mine.drop, plan.close or mine.close
        plan.handled = plan.handled and mine.handled
        plan.raw = plan.raw if mine.raw is None else mine.raw
        plan.damage = mine.damage or plan.damage
        plan.said = f"{plan.said}, {mine.said}" if plan.said else mine.said


class Faults:
    """All rules of a broker, oldest first."""

    def __init__(self, seed: int = 0) -> None:
        self.rules: list[Rule] = []
        self.chance = random.Random(seed)

    def plan(self, ask: Ask) -> Plan:
        """What is to happen to a request."""
        made = Plan()
        for rule in list(self.rules):
            if rule.takes(ask):
                rule.apply(made)
        return made

    def damaged(self, kind: str, data: bytes) -> bytes:
        """The bytes of a response, damaged."""
        return DAMAGES[kind](data, self.chance) if len(data) > _SIZE else data


# --- which topics a request names -------------------------------------------------------------------------------------

_ANY: Final = -2
"""A number for all partitions of a topic."""
_NUMBERS: Final = ("partition", "partition_index", "index")


_TOPICS: Final = ("topic", "topic_id", "topic_names", "topics", "topic_data")


def _names_topics(message: Message | None) -> bool:
    if message is None:
        return False
    structs = message.structs.values()
    return any(one.name in _TOPICS for fields in (message.fields, *(it.fields for it in structs)) for one in fields)


def _places(ask: Ask) -> Iterator[tuple[str, int]]:
    """The topics and partitions that a request names, or that its session of Fetch has."""
    if ask.key == ApiKey.FETCH:
        session = ask.cluster.sessions.known(ask.body.session_id)
        for topic, number in session.partitions if session is not None and ask.body.session_epoch > 0 else ():
            yield _name(ask, topic), number
    if isinstance(ask.body, WireStruct):
        yield from _walk(ask, ask.body)


def _name(ask: Ask, topic: Any) -> str:
    if isinstance(topic, UUID):
        found = ask.cluster.by_id.get(topic)
        return "" if found is None else found.name
    return str(topic)


def _walk(ask: Ask, one: WireStruct) -> Iterator[tuple[str, int]]:
    for field in one.FIELDS:
        value = getattr(one, field.name)
        if field.name == "topic_names":
            yield from ((str(name), _ANY) for name in value)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, WireStruct):
                    yield from _topic(ask, inner) if "Topic" in type(inner).__name__ else _walk(ask, inner)


def _topic(ask: Ask, one: WireStruct) -> Iterator[tuple[str, int]]:
    name = getattr(one, "topic", None) or getattr(one, "name", None)
    if not name:
        name = _name(ask, getattr(one, "topic_id", ""))
    found = False
    for field in one.FIELDS:
        value = getattr(one, field.name)
        if isinstance(value, list | tuple):
            for inner in value:
                number = inner if isinstance(inner, int) else _number(inner)
                if number is not None:
                    found = True
                    yield name, number
    if not found:
        yield name, _ANY


def _number(one: object) -> int | None:
    for name in _NUMBERS:
        number = getattr(one, name, None)
        if isinstance(number, int):
            return number
    return None
