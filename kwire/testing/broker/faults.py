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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from kwire import schema
from kwire.naming import no_such
from kwire.protocol import names
from kwire.testing.broker.places import ANY, names_topics

if TYPE_CHECKING:
    from kwire.testing.corpus import Case

__all__ = ["DAMAGES", "Asked", "Faults", "Plan", "Rule"]

_SIZE: Final = 4
_LONGEST: Final = 1_000_000
"""Seconds that a fault may last. A response says its milliseconds in 31 bits."""


def _seconds(what: str, given: float) -> float:
    found = float(given)
    if not 0 <= found <= _LONGEST:
        raise ValueError(f"{what} takes 0 to {_LONGEST} seconds, not {given}")
    return found


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
"""What can be done to the bytes of a response, by name. The connection is closed after ``cut_off``.

The kinds of damage of ``kwire.testing.corpus`` are there too, at a field of the response, or in its record sets.
"""
_OPEN: Final = ("bit_flipped", "garbage", "trailing", "twice")
"""Damages after which the bytes may be read by chance, or that a client may leave unread."""
_NETWORK: Final = "protocol guide, Network: a size, and so many bytes, which answer the oldest request"
_MOST_CASES: Final = 10_000


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


class Asked(Protocol):
    """A request, as rules see it."""

    key: int
    client_id: str

    @property
    def node_id(self) -> int:
        """The id of the node that is asked; -1 where it is not known."""
        ...

    def places(self) -> Iterable[tuple[str, int]]:
        """The topics and partitions that it is about, ``places.ANY`` for all of a topic."""
        ...


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
        share: float = 1.0,
    ) -> None:
        self.key: int | None = None if api is None else names.api_key(api)
        self.topic: str | None = topic
        self.partition: int | None = partition
        self.client: str | None = client
        self.node: int | None = node
        self.nth: int | None = nth
        self.times: int | None = times
        self.share: float = share
        self.seen: int = 0
        """Requests that it was for."""
        self.acted: int = 0
        """Requests on which it acted."""
        self._does = Plan()
        self._damages: tuple[str, ...] = ()
        for name, number in (("nth", nth), ("times", times)):
            if number is not None and number < 1:
                raise ValueError(f"{name}={number}: requests are counted from 1")
        if not 0 < share <= 1:
            raise ValueError(f"share={share}: a share of requests is more than 0, and 1 at most")
        if self.key is not None and topic is not None and not names_topics(schema.request(self.key)):
            raise ValueError(f"{api} names no topic")

    @property
    def said(self) -> str:
        """What it does, in words."""
        return self._does.said

    def error(self, name: str) -> Self:
        """Answer with an error code, by its name. The request is not carried out."""
        self._does.code = int(names.error_code(name))
        return self._says(name)

    def delay(self, seconds: float) -> Self:
        """Send the response so much later. The client's next request waits too."""
        self._does.delay = _seconds("delay", seconds)
        return self._says(f"delay {seconds} s")

    def throttle(self, seconds: float) -> Self:
        """Say that the client is throttled, and do what a broker does then: see ``quotas``."""
        self._does.throttle = _seconds("throttle", seconds)
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
        # bytes(5) would be five zeros.
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"raw takes bytes, not {type(data).__name__}")
        self._does.raw = bytes(data)
        return self._says(f"raw, {len(data)} bytes")

    def damage(self, *kinds: str) -> Self:
        """Damage the bytes of the response, in one of these ways, by chance where there are several.

        They are those of ``DAMAGES``, and the kinds of ``kwire.testing.corpus`` for fields and for record sets. A
        response that has no place for one stays as it is. ``Broker.cases`` has what was made of it.
        """
        from kwire.testing.corpus import KINDS, RECORD_KINDS

        if not kinds:
            raise ValueError("damage takes one kind or more, such as truncated")
        for kind in kinds:
            if kind not in DAMAGES and kind not in KINDS and kind not in RECORD_KINDS:
                raise ValueError(no_such("damage", kind, [*DAMAGES, *KINDS, *RECORD_KINDS]))
        self._damages, self._does.damage = kinds, kinds[0]
        return self._says(" or ".join(kinds))

    def _says(self, text: str) -> Self:
        self._does.said = f"{self._does.said}, {text}" if self._does.said else text
        return self

    def takes(self, ask: Asked, chance: random.Random) -> bool:
        """Whether it acts on this request. Counts the request."""
        if self.key is not None and ask.key != self.key:
            return False
        if (self.client is not None and ask.client_id != self.client) or self.node not in (None, ask.node_id):
            return False
        if (self.topic, self.partition) != (None, None) and not any(
            self.topic in (None, topic) and (self.partition is None or number in (self.partition, ANY))
            for topic, number in ask.places()
        ):
            return False
        self.seen += 1
        if self.share < 1 and chance.random() >= self.share:
            return False
        acts = self.seen == self.nth if self.nth is not None else self.times is None or self.acted < self.times
        self.acted += acts
        if acts and len(self._damages) > 1:
            self._does.damage = chance.choice(self._damages)
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
        self.chance: random.Random = random.Random(seed)
        self.cases: list[Case] = []
        """What was made of responses by kinds of the corpus."""

    def plan(self, ask: Asked) -> Plan:
        """What is to happen to a request."""
        made = Plan()
        for rule in list(self.rules):
            if rule.takes(ask, self.chance):
                rule.apply(made)
        return made

    def damaged(self, kind: str, data: bytes, api_key: int, version: int) -> bytes:
        """The bytes of a response to a request of this version, damaged."""
        if len(data) <= _SIZE:
            return data
        from kwire.testing.corpus import Case, hurt

        if kind in DAMAGES:
            out = DAMAGES[kind](data, self.chance)
            name = schema.api_keys()[api_key]
            made: Case | None = Case(
                name=f"{name}/response-v{version}/{kind}",
                role="response",
                data=out[_SIZE:],
                verdict="may" if kind in _OPEN else "must-refuse",
                source=_NETWORK,
                kafka=None,
                api=name,
                api_key=api_key,
                version=version,
                body_at=None,
                damage=kind,
            )
        else:
            made = hurt(data[_SIZE:], api_key, version, kind, self.chance)
            out = data if made is None else _sized(made.data)
        if made is not None and len(self.cases) < _MOST_CASES:
            self.cases.append(made)
        return out
