"""Which request a response answers, among steps: so it learns whose it is.

Rules kept here:

- Requests wait by connection and correlation id. A later one with the same id takes the place of an earlier.
- At most ``MOST_WAITING`` requests wait, and ``MOST_BYTES`` of their frames. The oldest goes first: its response has no
  owner then.
- A request may have several steps. That of a response is the one of the same owner, if the response names one, and of
  the same place. Else it is the one of the whole frame (place ``""``), or the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kwire.history.steps import Step, Window, request_of, saved, step_of

__all__ = ["MOST_WAITING", "Asked"]

MOST_WAITING: Final = 1 << 14
"""Requests that wait at once (int)."""
MOST_BYTES: Final = 8 << 20
"""Bytes of their frames (int). What they say may take thirty times as much memory."""

Array = Any
_Key = tuple[int, int]
_Asked = dict[tuple[str | None, str], Step]


class Asked:
    """The requests that wait for their responses."""

    def __init__(self) -> None:
        self._waiting: dict[_Key, _Asked] = {}
        self._answered: tuple[int, _Asked] = (-1, {})
        """The frame of the latest response, and the steps of its request."""
        self._size = 0

    def paired(self, step: Step) -> Step:
        """The step, with its owner and its request if it is a response. Requests are remembered."""
        key = (step.connection, step.id)
        if not step.response:
            if step.owner is not None:
                there = self._waiting.get(key)
                if there is None or next(iter(there.values())).frame != step.frame:
                    self._left(key)
                    there = self._waiting[key] = {}
                    self._size += step.size
                there[step.owner, step.place] = step
                while len(self._waiting) > 1 and (len(self._waiting) > MOST_WAITING or self._size > MOST_BYTES):
                    self._left(next(iter(self._waiting)))
            return step
        if self._answered[0] != step.frame:
            self._answered = (step.frame, self._left(key))
        asked = self._answered[1]
        request = request_of(asked, step.owner, step.place)
        if request is None or request.api != step.api:
            return step
        return step._replace(owner=request.owner, request=request)

    def has_room(self, count: int, size: int) -> bool:
        """Whether so many more requests with so many bytes may wait, and all others stay."""
        return len(self._waiting) + count <= MOST_WAITING and self._size + size <= MOST_BYTES

    def waits(self, window: Window, asks: Array) -> bool:
        """Whether a request waits that has the connection and correlation id of one of some others."""
        if not self._waiting:
            return False
        keys = zip(window.connections[asks].tolist(), window.ids[asks].tolist(), strict=True)
        return any(key in self._waiting for key in keys)

    def owners(self, connection: int, id_: int) -> Iterator[str | None]:
        """Whose the request is that waits for a response with this correlation id."""
        return (owner for owner, _ in self._waiting.get((connection, id_), ()))

    def passed(self, connection: int, id_: int) -> None:
        """A request whose response is known already takes the place of one that waits."""
        if self._waiting:
            self._left((connection, id_))

    def _left(self, key: _Key) -> _Asked:
        found = self._waiting.pop(key, {})
        self._size -= next((one.size for one in found.values()), 0)
        return found

    def forget(self) -> None:
        """Another capture begins: its connections are others."""
        self._waiting.clear()
        self._answered = (-1, {})
        self._size = 0

    def save(self) -> list[Any]:
        """What waits, as JSON has it."""
        return [[saved(one) for one in steps.values()] for steps in self._waiting.values()]

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        if not isinstance(state, list) or len(state) > MOST_WAITING:
            raise TypeError("no requests")
        for some in state:
            steps = [step_of(one) for one in some]
            self._waiting[steps[0].connection, steps[0].id] = {(one.owner, one.place): one for one in steps}
            self._size += steps[0].size
