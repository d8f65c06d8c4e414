"""Sessions of Fetch (KIP-227): which partitions a client has asked for, and what it was told of each.

With a session a client names only what changes in what it asks for, and the broker answers only what has news.

Rules kept here, as Kafka's FetchManager and FetchSession have them:

- Id 0 and epoch 0 ask for a new session, epoch -1 for none. A session id with either of them ends that session.
- Each request has the next epoch: 1, 2, up to 2**31 - 1, and 1 again.
- There is a bounded number of sessions, and of partitions in all of them. A new one takes the place of those that were
  used least recently.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from kwire.protocol.error_codes import ErrorCode

__all__ = ["Cached", "Session", "Sessions"]

_LAST_EPOCH: Final = 0x7FFFFFFF
_MOST_PARTITIONS: Final = 100_000
"""Partitions of all sessions."""


@dataclass(slots=True)
class Cached:
    """A partition of a session."""

    topic: Any
    """The name of the topic, or its id."""
    wanted: Any
    """What the client has asked of it, a ``FetchPartition``."""
    told: tuple[int, ...] | None = None
    """What was last answered of it besides records."""


@dataclass(eq=False, slots=True)
class Session:
    """What one client fetches again and again."""

    id: int
    by_id: bool
    """Whether topics are named by id."""
    epoch: int = 1
    partitions: dict[tuple[Any, int], Cached] = field(default_factory=dict)

    def take(self, wanted: Iterable[tuple[Any, Any]], forgotten: Iterable[tuple[Any, int]]) -> None:
        """Add or change ``wanted`` partitions, and drop the ``forgotten`` ones."""
        for topic, one in wanted:
            key = topic, one.partition
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = Cached(topic, one)
            else:
                known.wanted = one
        for key in forgotten:
            self.partitions.pop(key, None)


class Sessions:
    """All sessions of a cluster."""

    def __init__(self, most: int, most_partitions: int = _MOST_PARTITIONS) -> None:
        self._most = most
        self._most_partitions = most_partitions
        self._last = 0
        self._sessions: dict[int, Session] = {}

    def open(self, by_id: bool) -> Session:
        """A new session."""
        while self._sessions and (len(self._sessions) >= self._most or self.partitions > self._most_partitions):
            del self._sessions[next(iter(self._sessions))]
        self._last = self._last % _LAST_EPOCH + 1
        made = self._sessions[self._last] = Session(self._last, by_id)
        return made

    @property
    def partitions(self) -> int:
        """Partitions of all sessions."""
        return sum(len(one.partitions) for one in self._sessions.values())

    def known(self, number: int) -> Session | None:
        """The session of an id, if there is one."""
        return self._sessions.get(number)

    def close(self, number: int) -> None:
        """End a session, if there is one."""
        self._sessions.pop(number, None)

    def next(self, number: int, epoch: int, by_id: bool) -> Session | ErrorCode:
        """The session that a request goes on with, or the error that it gets."""
        found = self._sessions.get(number)
        if found is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if found.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if found.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        if self.partitions > self._most_partitions:
            del self._sessions[number]
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        found.epoch = epoch % _LAST_EPOCH + 1
        # The one that was used least recently stands first.
        self._sessions[number] = self._sessions.pop(number)
        return found
