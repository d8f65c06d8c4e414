"""What groups are made of, for their history: members, causes, and what a member has.

What a member has is a set of (what, number): ``what`` begins with ``i`` before the id of a topic, ``t`` before its name
and ``s`` before a subtopology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from kwire import stored
from kwire.history.steps import Step, shown

__all__ = ["MS", "NOT_CAPTURED", "UNTIMED", "Cause", "Member", "Parts", "Rebalance", "duration", "flat", "listed"]

MS: Final = 1_000_000
"""Nanoseconds (int) of a millisecond."""

UNTIMED: Final = -1 << 63
"""In place of a time (int) that the capture does not state, where None says that nothing happened."""

Part = tuple[str, int]
Parts = frozenset[Part]
"""Type: what a member has."""

_TEXT: Final = 64
"""Characters of a text that count as one thing."""


class Cause(NamedTuple):
    """Why something happened: the request of a member, or a time-out of it. ``time``: nanoseconds since 1970."""

    word: str
    member: str | None
    capture: str | None
    connection: int | None
    frame: int | None
    time: int | None

    def columns(self) -> dict[str, Any]:
        """The columns of a row."""
        return {
            "cause": self.word,
            "cause_member_id": self.member,
            "cause_capture": self.capture,
            "cause_connection": self.connection,
            "cause_frame": self.frame,
        }

    def is_of(self, step: Step) -> bool:
        """Whether it is this request."""
        return (self.capture, self.connection, self.frame) == step[:3]

    @classmethod
    def restored(cls, values: Any) -> Cause:
        """What a list of the same values says. Raises one of ``stored.UNFIT``."""
        word, member, capture, connection, frame, time = values
        return cls(
            stored.text(word),
            None if member is None else stored.text(member),
            None if capture is None else stored.text(capture),
            stored.optional(connection, 0),
            stored.optional(frame, 0),
            stored.optional(time, -(1 << 63), (1 << 63) - 1),
        )


NOT_CAPTURED: Final = Cause("not_in_capture", None, None, None, None, None)
"""What the capture does not show (``Cause``)."""


class Rebalance(NamedTuple):
    """A rebalance that is on. ``since``: nanoseconds. ``bumped``: whether its generation is known."""

    since: int | None
    cause: Cause
    bumped: bool


@dataclass(slots=True)
class Member:
    """A member of a group, as far as it is known. Timeouts are milliseconds, times nanoseconds since 1970."""

    id: str
    instance: str | None = None
    client_id: str | None = None
    host: str | None = None
    epoch: int | None = None
    session: int = 0
    """0: not known."""
    rebalance: int = 0
    interval: int = 0
    """Between heartbeats, as the broker asked for."""
    heard: int | None = None
    topics: str = ""
    parts: Parts | None = None
    """What it has. None: not known."""
    changed: int | None = None
    """When it got an assignment that it has not confirmed yet: ``UNTIMED`` if no time is known."""
    was_silent: int | None = None
    """When its time was over, if its last heartbeat was late."""
    joined: Cause | None = None
    """The request that it joined with."""
    removed: Cause | None = None
    """The request that removed it."""

    @property
    def size(self) -> int:
        """About how many things it holds."""
        return 4 + len(self.id) // _TEXT + len(self.parts or ())

    @property
    def over_at(self) -> int | None:
        """When its session timeout is over if it stays silent, None if that is not known."""
        return None if not self.session or self.heard is None else self.heard + self.session * MS

    def silent_since(self, now: int | None) -> int | None:
        """When its session timeout was over, None if it is not."""
        when = self.over_at
        return when if when is not None and now is not None and when <= now else None

    def is_silent(self, now: int | None) -> bool:
        """Whether its session timeout is over."""
        return self.silent_since(now) is not None

    def is_behind(self, since: int | None, now: int | None) -> bool:
        """Whether its rebalance timeout is over, counted from ``since``."""
        if self.rebalance <= 0 or since is None or now is None:
            return False
        return since + self.rebalance * MS <= now

    def save(self) -> list[Any]:
        """Its values, as JSON has them."""
        values = [getattr(self, one.name) for one in fields(self)]
        return [sorted(one) if isinstance(one, frozenset) else one for one in values]

    @classmethod
    def restored(cls, values: Any) -> Member:
        """What ``save`` gave. Raises one of ``stored.UNFIT``."""
        said = dict(zip((one.name for one in fields(cls)), values, strict=True))
        made = cls(stored.text(said["id"]))
        for name in ("instance", "client_id", "host"):
            setattr(made, name, None if said[name] is None else stored.text(said[name]))
        made.topics = stored.text(said["topics"])
        for name in ("session", "rebalance", "interval"):
            setattr(made, name, stored.number(said[name], -(1 << 31)))
        made.epoch = stored.optional(said["epoch"], -(1 << 31))
        for name in ("heard", "changed", "was_silent"):
            setattr(made, name, stored.optional(said[name], -(1 << 63), (1 << 63) - 1))
        if said["parts"] is not None:
            made.parts = frozenset((stored.text(one), stored.number(part, -(1 << 31))) for one, part in said["parts"])
        for name in ("joined", "removed"):
            setattr(made, name, None if said[name] is None else Cause.restored(said[name]))
        return made


def flat(has: Iterable[Any]) -> Parts:
    """Partitions, or tasks, of a step as a set."""
    return frozenset((_what(one), part) for one in has for part in one[-1])


def _what(one: Any) -> str:
    if len(one) == 2:
        return f"s{one[0]}"
    topic, id_, _ = one
    return f"t{topic}" if id_ is None else f"i{id_}"


def listed(parts: Iterable[Part], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Partitions, or tasks, as the columns ``gained`` and ``lost`` have them, in order."""
    made = []
    for what, part in sorted(parts):
        kind, text = what[0], what[1:]
        name = text if kind == "t" else names.get(text) if kind == "i" else None
        made.append(
            {
                "topic": None if name is None else shown(name),
                "topic_id": text if kind == "i" else None,
                "subtopology": shown(text) if kind == "s" else None,
                "partition": part,
            }
        )
    return made


def duration(since: int | None, until: int | None) -> float | None:
    """Milliseconds between two times, None where one is not known."""
    return None if since is None or until is None else max(0, until - since) / MS
