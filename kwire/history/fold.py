"""Folds: state machines that steps become rows by, and ``Story``, which has one for each owner and place.

A history is a subclass of ``Fold`` and a ``History`` that names it. A fold gives ``Row`` objects, which are dicts with
the columns that it knows. ``Story`` adds those of the frame. A row that stands for another frame than the step's own
says so under ``FRAME``.

Rules kept here:

- ``Story`` keeps at most ``History.most`` things (``Fold.size``). The fold that was asked longest ago goes first.
- What has no owner is a row with a status, and changes no state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kwire import stored
from kwire.history.asked import Asked
from kwire.history.beats import Beat, Beats
from kwire.history.steps import NOBODY, OK, Reader, Said, Step, Window, saved, step_of

__all__ = ["GIVEN_UP", "OF_FRAME", "STATUSES", "UNPAIRED", "Fold", "History", "Plain", "Row", "Story"]

_FEW: Final = 1 << 6
_MANY: Final = 1 << 11
"""Frames that are looked at together, about at least, and at most."""
_FAR: Final = 1 << 7
"""Frames after its request at which a response is late: some wait for seconds."""

_Key = tuple[str, str]

Row = dict[str, Any]
"""Type: the columns of a row by name. Times are nanoseconds since 1970."""
Plain = tuple[Any, ...]
"""Type: the same without names: those of ``OF_FRAME``, then those of ``History.plain``."""

OF_FRAME: Final = (
    "capture", "connection", "frame", "timestamp", "client_host", "client_port", "client_id", "broker_host",
    "broker_port", "api_key", "status", "error",
)  # fmt: skip
"""The columns of the frame that a row stands at (tuple of str)."""

UNPAIRED: Final = "unpaired"
"""The status (str) of a response whose request is not known."""
GIVEN_UP: Final = "given_up"
"""The status (str) of what is given up to bound memory."""

STATUSES: Final = {
    "ok": "what happened",
    "malformed": "the body of a frame is not what its version says: what it said is not known",
    "unreadable": "a frame is incomplete: what it said is not known",
    "unsupported": "the version of the API is one that kwire does not know: what a frame said is not known",
    "unpaired": "a response whose request is not known: whose it is is not known",
    "given_up": "what was known of this key was given up to bound memory: its history begins anew after this row",
}
"""The words of ``status`` that all histories share."""


class Fold:
    """The history of one owner and place.

    ``size``: about how many things it holds. With 0 it knows nothing, and is not kept.
    """

    size: int = 1

    def __init__(self, owner: str, place: str) -> None:
        self.owner = owner
        self.place = place

    def take(self, step: Step) -> Iterable[Row | Plain]:
        """The rows that a step gives. Steps come in order of time. A row may be the values of ``History.plain``."""
        raise NotImplementedError

    def beats(self, beats: Sequence[Beat], now: int, broker: tuple[str, int]) -> bool:
        """Takes exchanges that change nothing but when something was last heard. False: they may be more than that, and
        nothing was taken.

        What ``take`` would do with all of their steps, quickly. ``now``: the time of the last frame, ``broker``: who
        answered last.
        """
        return False

    def over(self) -> Iterable[Row | Plain]:
        """The rows of what is still open when the capture ends. They stand at the last step that was taken."""
        return ()

    def named(self) -> Row:
        """The columns that say whose history it is, for a row about the fold itself."""
        raise NotImplementedError

    def save(self) -> Any:
        """What it knows, as JSON has it."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A kind of history: how frames become steps, and steps rows.

    - ``name``: that of its table.
    - ``reads``: a reader for each kind of message (``kwire.history.steps.kind_of``).
    - ``fold``: makes the fold of an owner and place.
    - ``by_place``: whether each place has a fold of its own, or the owner one for all.
    - ``most``: things that are kept at once (``Fold.size``).
    - ``at_end``: whether ``Fold.over`` gives rows.
    - ``plain``: the columns of most rows: these are made without names.
    - ``heads``: by kind of message, after which field nothing more is read of a body: the first that the version has.
    - ``errors``: kinds of messages of which nothing is read but error codes.
    """

    name: str
    reads: Mapping[int, Reader]
    fold: Callable[[str, str], Fold]
    by_place: bool = True
    most: int = 1 << 19
    at_end: bool = False
    plain: tuple[str, ...] = ()
    heads: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    errors: frozenset[int] = frozenset()


class Story:
    """The histories of all owners that steps are of."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._asked = Asked()
        self._folds: dict[tuple[str, str], Fold] = {}
        self._last: dict[tuple[str, str], Step] = {}
        self._size = 0
        self._at_once = _FEW

    def window(self, window: Window) -> Iterator[Row | Plain]:
        """The rows that the frames of a window give."""
        if not self._asked.has_room(len(window), window.size):
            for step in window:
                yield from self.take(step)
            return
        if self._history.at_end:
            yield from self._in_pairs(window)
            return
        first, stops = 0, window.stops(_FAR)
        while first < len(window):
            # An exchange that is cut is none of those that change nothing.
            near = stops[max(0, bisect_right(stops, first + self._at_once) - 1)]
            near = near if near > first else stops[bisect_right(stops, first)]
            some = range(first, min(near, first + _MANY))
            left, moved = self._quick(window, some)
            # Where much happens in groups, some frames of one do not make many others slow.
            self._at_once = _FEW if left else min(2 * self._at_once, _MANY)
            first = some.stop
            for number in left:
                while moved and moved[-1][0] < number:
                    self._moves(moved.pop()[1])
                for step in window.steps(number):
                    yield from self.take(step)
            while moved:
                self._moves(moved.pop()[1])

    def _moves(self, key: _Key) -> None:
        """A fold that took something stands last."""
        self._folds[key] = self._folds.pop(key)

    def _quick(self, window: Window, some: range) -> tuple[Iterable[int], list[tuple[int, _Key]]]:
        """Takes the exchanges of folds of which nothing else is among some frames, where they change nothing.

        Gives the frames that are left, and each fold that took some with its last frame, the last one first.
        """
        beats = Beats(window, some)
        # A fold that is given up meanwhile begins anew. And an answer to a request that waits is none of these.
        if self._size + window.size > self._history.most or self._asked.waits(window, beats.asks):
            return some, []
        of: dict[str, list[int]] = {}
        said: list[tuple[Said, Said]] = []
        slow: set[str | None] = set()
        for number, (ask, answer) in enumerate(beats.first):
            asked, told = window.says(ask), window.says(answer)
            said.append((asked[0][2], told[0][2]) if asked and told else ({}, {}))
            if len(asked) == len(told) == 1 and not asked[0][1] and told[0][:2] == (None, ""):
                of.setdefault(asked[0][0] or NOBODY, []).append(number)
            else:
                slow.update(one[0] for one in (*asked, *told))
        for frame in beats.others.tolist():
            slow.update(one[0] for one in window.says(frame))
            slow.update(self._asked.owners(int(window.connections[frame]), int(window.ids[frame])))
        taken: set[int] = set()
        moved = []
        for owner, numbers in of.items():
            fold = None if owner in slow else self._folds.get((owner, ""))
            if fold is None:
                continue
            last = beats.last(numbers)
            some_beats = [beats.beat(one, *said[one]) for one in beats.in_order(numbers)]
            if fold.beats(some_beats, int(window.times[last]), window.ends(last)[1]):
                taken.update(numbers)
                moved.append((last, (owner, "")))
        return beats.without(taken), sorted(moved, reverse=True)

    def _in_pairs(self, window: Window) -> Iterator[Row | Plain]:
        """``window``, where what is said last is remembered: requests need not wait whose responses are there."""
        lists = window.lists
        pairs, kinds = lists.pairs, lists.kinds
        waiting: dict[int, dict[tuple[str | None, str], Step]] = {}
        alone: list[Step | None] = [None] * len(window)
        for number, pair in enumerate(pairs):
            answered = pair > number and kinds[pair] == kinds[number] + 1
            # Most frames have one step, and so has their request.
            request = alone[number]
            step = None if number in waiting else window.step(number, request)
            if step is not None:
                if answered and step.owner is not None:
                    self._asked.passed(lists.connections[number], lists.ids[number])
                    alone[pair] = step
                elif request is None:
                    step = self._asked.paired(step)
                if rows := self._fold(step):
                    yield from rows
                continue
            asked = waiting.pop(number, None) if request is None else {(request.owner, request.place): request}
            steps = list(window.steps(number, asked))
            taken = self.take if asked is None else self.fold
            if answered and all(one.owner is not None for one in steps):
                self._asked.passed(lists.connections[number], lists.ids[number])
                waiting[pair] = {(one.owner, one.place): one for one in steps}
                taken = self.fold
            for step in steps:
                yield from taken(step)

    def take(self, step: Step) -> Sequence[Row]:
        """The rows that a step gives, as the capture has it."""
        return self.fold(self._asked.paired(step))

    def fold(self, step: Step) -> Sequence[Row]:
        """The rows that a step gives whose request is known already."""
        return [row if isinstance(row, dict) else self._named(row) for row in self._fold(step)]

    def _named(self, row: Plain) -> Row:
        return dict(zip((*OF_FRAME, *self._history.plain), row, strict=True))

    def _fold(self, step: Step) -> Sequence[Row | Plain]:
        if step.status != OK:
            return (framed({"status": step.status, "error": step.error}, step),)
        if step.owner is None:
            why = "its request is not in the capture, or was given up"
            return (framed({"status": UNPAIRED, "error": why}, step),)
        if step.owner == NOBODY:
            return ()
        history = self._history
        key = (step.owner, step.place if history.by_place else "")
        one = self._folds.pop(key, None)
        if one is None:
            one = history.fold(*key)
        else:
            self._size -= one.size
        made: list[Row | Plain] = [
            framed(row, step) if isinstance(row, dict) else _of_frame(step) + row for row in one.take(step)
        ]
        if not one.size:
            self._last.pop(key, None)
            return made
        # It stands last: who is given up is the one that was asked longest ago.
        self._folds[key] = one
        self._size += one.size
        if history.at_end:
            self._last[key] = step
        while self._size > history.most and len(self._folds) > 1:
            made.append(self._given_up(step))
        return made

    def _given_up(self, step: Step) -> Row:
        key = next(iter(self._folds))
        one = self._folds.pop(key)
        self._last.pop(key, None)
        self._size -= one.size
        why = f"more than {self._history.most} things are kept of all histories at once"
        return framed({**one.named(), "status": GIVEN_UP, "error": why}, step)

    def over(self) -> Iterator[Row]:
        """The rows of what is still open at the end of the capture."""
        for key, step in self._last.items():
            for row in self._folds[key].over():
                yield framed(row, step) if isinstance(row, dict) else self._named(_of_frame(step) + row)
        self._last.clear()

    def save(self) -> dict[str, Any]:
        """All that is known, as JSON has it, to go on elsewhere."""
        return {
            "asked": self._asked.save(),
            "folds": [[*key, one.save(), self._saved(key)] for key, one in self._folds.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what ``save`` gave. Raises one of ``stored.UNFIT`` for what that is not."""
        self._asked.restore(state["asked"])
        for owner, place, said, last in state["folds"]:
            one = self._history.fold(stored.text(owner), stored.text(place))
            one.restore(said)
            self._folds[owner, place] = one
            self._size += one.size
            if last is not None:
                self._last[owner, place] = step_of(last)

    def _saved(self, key: _Key) -> list[Any] | None:
        last = self._last.get(key)
        return None if last is None else saved(last._replace(request=None, said={}))


def framed(row: Row, step: Step) -> Row:
    """A row with the columns of the frame that shows it."""
    made = dict(zip(OF_FRAME, _of_frame(step), strict=True))
    made.update(row)
    return made


def _of_frame(step: Step) -> Plain:
    """The values of ``OF_FRAME``, of a row about which nothing is wrong."""
    return (*step[:4], *step.client, *step.broker, step.api, OK, None)
