"""The way of records: from Produce through each Fetch to the commit that covers them, as columns.

``Journeys`` takes ``EVENT`` tables: what frames say of ranges of offsets of a partition, in the order of the capture.
It gives ``ROW`` tables: a range that one Produce request wrote and one Fetch response delivered, with what is known of
its commit.

Strategy: all is done for many events at once, with numpy. Ranges of a partition are sorted by offset. What was
delivered is cut at the ranges that were produced, by binary search. So work and memory follow the number of ranges, and
not that of records.

Rules kept here:

- A consumer may have records before the producer has its acknowledgement, by some microseconds. So events are looked at
  ``LATE`` frames later: an acknowledgement that comes within these counts.
- Nothing is delivered or passed before its Produce request.
- A range is known once a broker has acknowledged it: the response says which offset its first record has.
- A producer without an answer sends a batch again, and both may be answered with the same offset. They are one range,
  that which is answered first.
- Offsets may be written again: the topic was removed and made again, or another leader had less. Then a reader gets
  what was written last before it.
- A consumer gets whole batches. What is before the offset that it asked for it leaves out, and so is it here.
- The group of a reader is that in whose name a client of the same host and client_id fetches or commits offsets of this
  partition. If there are several such groups, the group is not known.
- A commit covers what was delivered to its group before its request, and ends before its offset. It counts once a
  response has accepted it.
- Ranges that a reader passed are those between the end of what its group has got and the offset that it asks for next.
- The bounds count events: ``MOST_PRODUCED`` ranges wait for readers, ``MOST_DELIVERED`` deliveries for a commit. What
  is given up is a row. So rows do not depend on windows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kwire import stored

__all__ = [
    "AT_ONCE",
    "EVENT",
    "LATE",
    "MOST_DELIVERED",
    "MOST_PASSED",
    "MOST_PRODUCED",
    "NONE",
    "ROW",
    "Journeys",
    "Kind",
    "Way",
    "check",
    "chosen",
    "joined",
]

Array = Any

LATE: Final = 512
"""Frames that events wait for others that belong before them (int)."""
MOST_PRODUCED: Final = 1 << 16
"""Produced ranges that wait for readers (int)."""
MOST_DELIVERED: Final = 1 << 16
"""Deliveries that wait for a commit, and that later ones are compared with (int)."""
MOST_PASSED: Final = 128
"""Ranges that a reader passes at once, and that have a row each (int). Further ones are one row."""
AT_ONCE: Final = 1 << 14
"""Events that are looked at together (int): sorting a few costs as much as sorting many. Rows do not depend on it."""
_LONGEST: Final = 10_000_000_000
"""Nanoseconds of the capture that events wait for others, so that a slow capture has its rows as well."""
_MOST_PLACES: Final = 1 << 16
"""Readers and groups of partitions whose position is remembered."""
NONE: Final = -1
"""In place of a number that is not known (int)."""


class Kind(IntEnum):
    """What an event is."""

    PRODUCE = 0
    """A Produce request. ``records``, ``size``"""
    ACKNOWLEDGED = 1
    """Its response: ``first`` is the offset of its first record, NONE if it was refused; ``more``: append time."""
    ASK = 2
    """A Fetch request: ``first`` is the offset."""
    FETCH = 3
    """A range in a Fetch response, from ``first`` to ``last``. ``more``: the high watermark. ``records``: how many
    batches it is of, 0 if it is none for a reader: control batches."""
    GROUP = 4
    """An OffsetFetch request: ``who`` is of ``group``."""
    COMMIT = 5
    """An OffsetCommit request: ``first`` is the offset."""
    COMMITTED = 6
    """Its response: ``first`` is 0, NONE if it was refused."""
    GAP = 7
    """Packets of the connection are missing."""


class Way(IntEnum):
    """What became of a range."""

    COMMITTED = 0
    DELIVERED = 1
    UNDELIVERED = 2
    SKIPPED = 3
    MISSING = 4


EVENT: Final = np.dtype(
    [
        ("kind", np.int8),
        ("order", np.int64),
        ("time", np.int64),
        ("asked", np.int64),
        ("connection", np.int64),
        ("id", np.int64),
        ("part", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("records", np.int64),
        ("size", np.int64),
        ("more", np.int64),
        ("who", np.int64),
        ("group", np.int64),
    ]
)
"""An event. ``order``: the number of its frame. ``time``, ``asked`` (of the request): as the caller counts it, NONE if
it is not known. ``part``, ``who``, ``group``: numbers of the caller."""

_RANGE: Final = np.dtype(
    [
        ("n", np.int64),
        ("part", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("size", np.int64),
        ("time", np.int64),
        ("order", np.int64),
        ("connection", np.int64),
        ("who", np.int64),
        ("acknowledged", np.int64),
        ("known", np.int64),
        ("appended", np.int64),
        ("got", np.int64),
    ]
)
"""A range that was produced. ``known``: the order of its acknowledgement. ``got``: the last offset that was read."""
_SAME: Final = ("part", "first", "last", "size", "who")
"""What a batch that is sent again has in common with what it was."""

ROW: Final = np.dtype(
    [
        ("way", np.int8),
        ("done", np.int64),
        ("part", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("produced", np.int64),
        ("produce_connection", np.int64),
        ("produce_order", np.int64),
        ("producer", np.int64),
        ("acknowledged", np.int64),
        ("appended", np.int64),
        ("reader", np.int64),
        ("group", np.int64),
        ("fetched", np.int64),
        ("fetch_connection", np.int64),
        ("fetch_order", np.int64),
        ("deliveries", np.int64),
        ("lag", np.int64),
        ("committed", np.int64),
        ("commit_connection", np.int64),
        ("commit_order", np.int64),
        ("n", np.int64),
        ("turn", np.int64),
    ]
)
"""A range, one delivery of it, and the commit that covers it. ``done``: the order at which that is known. ``turn``:
the number of the delivery."""

_POSITION: Final = np.dtype(
    [("part", np.int64), ("entity", np.int64), ("top", np.int64), ("order", np.int64), ("connection", np.int64)]
)
_GAP: Final = np.dtype([("connection", np.int64), ("order", np.int64)])
_INTERVAL: Final = np.dtype(
    [("part", np.int64), ("entity", np.int64), ("first", np.int64), ("last", np.int64), ("order", np.int64)]
)
_FEW: Final = 16
_CLOSE: Final = 1 << 20
"""Numbers that are no farther apart are parts of keys as they are."""
_MOST_KEYS: Final = 1 << 40
_END: Final = np.iinfo(np.int64).max


_MOST_STORED: Final = 64 << 20
"""Bytes of one table of a state."""


def check(table: Array, sizes: tuple[int, int, int]) -> None:
    """Raises ``ValueError`` where numbers of a table are of nothing that the caller knows, or no words."""
    topics, clients, groups = sizes
    names = table.dtype.names or ()
    most = {"part": (topics << 32) - 1, "group": groups - 1} | dict.fromkeys(("who", "producer", "reader"), clients - 1)
    most |= {"kind": len(Kind) - 1, "way": len(Way) - 1}
    for name, value in most.items():
        if name in names and len(table) and not (table[name].min() >= NONE and table[name].max() <= value):
            raise ValueError(f"no such {name}")


def joined(tables: list[Array]) -> Array:
    """Tables as one. It is one of them, if the others have no rows."""
    some = [one for one in tables if len(one)]
    return some[0] if len(some) == 1 else np.concatenate(tables)


def chosen(table: Array, which: Array) -> Array:
    """The rows for which ``which`` is true: the table itself, if all are."""
    return table if which.all() else table[which]


def _keys(*columns: tuple[Array, ...]) -> list[Array]:
    """One number for each of some things of several columns, in the order of the columns.

    Each argument is a tuple of the same column of several tables; what comes back is an array for each table.
    """
    sizes = [len(one) for one in columns[0]]
    made, many = np.zeros(sum(sizes), np.int64), 1
    for parts in columns:
        values = np.concatenate(parts)
        least = int(values.min(initial=0))
        width = int(values.max(initial=0)) - least + 1
        if width > _CLOSE:
            distinct, values = np.unique(values, return_inverse=True)
            least, width = 0, len(distinct) + 1
        if many * width > _MOST_KEYS:
            # There are as many numbers as things.
            distinct, made = np.unique(made, return_inverse=True)
            many = len(distinct) + 1
        made, many = made * width + (values - least), many * width
    return np.split(made, np.cumsum(sizes)[:-1])


def _pairs(lows: Array, highs: Array) -> tuple[Array, Array]:
    """For each range of numbers (``highs`` excluded) its place and each of its numbers."""
    counts = np.maximum(highs - lows, 0)
    which = np.repeat(np.arange(len(lows)), counts)
    within = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, lows[which] + within


def _last_before(keys: Array, order: Array, wanted: Array, at: Array) -> Array:
    """For each of ``wanted`` keys the last row before the order ``at`` with the same key: its place, or -1.

    ``keys`` with ``order`` are sorted by both.
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    own, other = _keys((keys, wanted), (order, at))
    place = np.searchsorted(own, other, "left") - 1
    return np.where((place >= 0) & (keys[place] == wanted), place, -1)


def _candidates(ranges: Array, given: Array) -> tuple[Array, Array, bool]:
    """Between which places of ``ranges`` those are that may have a part of each of ``given``, and whether some offsets
    were written twice. ``ranges`` are sorted by partition and first offset."""
    parts, firsts, lasts = (ranges[name] for name in ("part", "first", "last"))
    of_first, begin, end = _keys((parts, given["part"], given["part"]), (firsts, given["first"], given["last"]))
    low = np.maximum(np.searchsorted(of_first, begin, "right") - 1, 0)
    high = np.searchsorted(of_first, end, "right")
    twice = len(ranges) > 1 and bool(((parts[1:] == parts[:-1]) & (firsts[1:] <= lasts[:-1])).any())
    if twice:
        # Others before may reach as far.
        reached, begin = _keys((parts, given["part"]), (_highest(parts, lasts), given["first"]))
        low = np.minimum(low, np.searchsorted(reached, begin, "left"))
    return low, high, twice


def _highest(keys: Array, values: Array) -> Array:
    """The highest value so far of each key. ``keys`` are sorted."""
    distinct, rank = np.unique(values, return_inverse=True)
    base = np.cumsum(np.append(0, keys[1:] != keys[:-1])) * (len(distinct) + 1) if len(keys) else rank
    highest: Array = distinct[np.maximum.accumulate(base + rank) - base]
    return highest


def _newest(made: Array, which: Array) -> tuple[Array, Array]:
    """Pieces of ranges so that each offset is in one of them: that which was produced last."""
    order = np.lexsort((made["first"], which))
    made, which = made[order], which[order]
    again = (which[1:] == which[:-1]) & (made["first"][1:] <= _highest(which, made["last"])[:-1])
    some = np.isin(which, which[1:][again])
    if not some.any():
        return made, which
    parts, sources = [made[~some]], [which[~some]]
    made, which = made[some], which[some]
    for mine, one in zip(np.split(made, np.flatnonzero(which[1:] != which[:-1]) + 1), np.unique(which), strict=True):
        pieces = _cut(*(mine[name].tolist() for name in ("first", "last", "produce_order")))
        rows = mine[[row for _, _, row in pieces]]
        rows["first"], rows["last"] = [piece[0] for piece in pieces], [piece[1] for piece in pieces]
        parts.append(rows)
        sources.append(np.full(len(rows), one))
    made, which = np.concatenate(parts), np.concatenate(sources)
    order = np.lexsort((made["first"], which))
    return made[order], which[order]


def _cut(firsts: list[int], lasts: list[int], orders: list[int]) -> list[tuple[int, int, int]]:
    """First and last number of pieces, and of which range each is: of those that have a number the one with the highest
    order."""
    begins = sorted(range(len(firsts)), key=firsts.__getitem__)
    borders = sorted({*firsts, *(last + 1 for last in lasts)})
    open_: list[tuple[int, int]] = []
    made: list[tuple[int, int, int]] = []
    at = 0
    for first, end in pairwise(borders):
        while at < len(begins) and firsts[begins[at]] <= first:
            heappush(open_, (-orders[begins[at]], begins[at]))
            at += 1
        while open_ and lasts[open_[0][1]] < first:
            heappop(open_)
        if not open_:
            continue
        row = open_[0][1]
        if made and made[-1][2] == row and made[-1][1] == first - 1:
            made[-1] = made[-1][0], end - 1, row
        else:
            made.append((first, end - 1, row))
    return made


class Journeys:
    """Takes events and gives rows, from window to window.

    ``unknown``: the number of Produce requests whose records nobody will know: they are without acknowledgement.
    """

    def __init__(
        self,
        *,
        late: int = LATE,
        produced: int = MOST_PRODUCED,
        delivered: int = MOST_DELIVERED,
        at_once: int = AT_ONCE,
    ) -> None:
        self._late = late
        self._at_once = at_once
        self._new: list[Array] = []
        """Events since the last turn, by window."""
        self._most_produced = produced
        self._most_delivered = delivered
        self._events = np.zeros(0, EVENT)
        """Those that wait for their turn."""
        self._asked = np.zeros(0, EVENT)
        """Produce and OffsetCommit requests that wait for their response."""
        self._ranges = np.zeros(0, _RANGE)
        """In the order in which they were acknowledged."""
        self._next = 0
        self._asks = np.zeros(0, EVENT)
        """The last Fetch request of each connection and partition."""
        self._waiting = np.zeros(0, ROW)
        """Deliveries without a commit, in their order."""
        self._turns = 0
        """Deliveries so far."""
        self._intervals = np.zeros(0, _INTERVAL)
        """What was delivered to whom, in order."""
        self._positions = np.zeros(0, _POSITION)
        self._tops = np.zeros(0, _POSITION)
        """Where the last offset stands that was delivered to a reader or group."""
        self._groups: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By reader and partition: its group, and the orders from which and up to which that is known."""
        self._gaps = np.zeros(0, _GAP)
        """The last gap of each connection."""
        self._commits = np.zeros(0, EVENT)
        """Those that are accepted, and wait for their turn."""

    @property
    def kept(self) -> int:
        """How many events and ranges are remembered."""
        return (
            sum(map(len, self._new)) + len(self._events) + len(self._asked) + len(self._ranges) + len(self._asks)
            + len(self._waiting) + len(self._intervals) + len(self._positions) + len(self._groups) + len(self._gaps)
        )  # fmt: skip

    def add(self, events: Array, until: int, *, now: bool = False) -> Array:
        """Takes the events of a window. ``until``: the number of the first frame after it. Gives rows (``ROW``).

        ``now``: all rows that are known by then. Else some may wait for later windows.
        """
        if len(events):
            self._new.append(events)
        if not now and not self._is_much():
            return np.zeros(0, ROW)
        return self._turn(until - self._late, until)

    def _is_much(self) -> bool:
        """Whether there are so many events, or of so long a time, that they are looked at."""
        if not self._new:
            return not self._at_once
        first, last = self._new[0]["time"][0], self._new[-1]["time"][-1]
        return sum(map(len, self._new)) >= self._at_once or bool(first == NONE or last - first >= _LONGEST)

    def rest(self) -> Array:
        """The rows of all that is left, at the end of the capture."""
        made = self._turn(_END, _END)
        waiting, self._waiting = self._waiting, np.zeros(0, ROW)
        ranges, self._ranges = self._ranges, np.zeros(0, _RANGE)
        waiting["done"] = _END
        left = self._undelivered(ranges, np.full(len(ranges), _END))
        return np.concatenate([made, waiting, left])

    def rename(self, numbers: Callable[[Array], Array]) -> None:
        """Partitions have other numbers from now on: ``numbers`` gives them. Ask for all rows before (``now``)."""
        tables = (
            self._events, self._asked, self._ranges, self._asks, self._waiting, self._intervals, self._positions,
            self._commits, self._tops,
        )  # fmt: skip
        for one in tables:
            one["part"] = numbers(one["part"])
        parts = numbers(np.array([part for _, part in self._groups], np.int64)).tolist()
        groups = [(who, group) for (who, _), group in self._groups.items()]
        self._groups = {(who, part): group for (who, group), part in zip(groups, parts, strict=True)}

    # -- state

    def save(self) -> dict[str, Any]:
        """What is known, as JSON has it."""
        self._events, self._new = joined([self._events, *self._new]), []
        tables = {name: stored.as_text(zlib.compress(getattr(self, name).tobytes(), 1)) for name in _TABLES}
        groups = [[*key, *group] for key, group in self._groups.items()]
        return {"tables": tables, "next": self._next, "turns": self._turns, "groups": groups}

    def restore(self, state: Any, sizes: tuple[int, int, int]) -> None:
        """Takes over what ``save`` gave. ``sizes``: how many topics, clients and groups the caller has numbers for.

        Raises one of ``stored.UNFIT``.
        """
        for name, kind in _TABLES.items():
            unpacker = zlib.decompressobj()
            try:
                data = unpacker.decompress(stored.as_bytes(state["tables"][name]), _MOST_STORED)
            except zlib.error:
                raise ValueError("not compressed") from None
            if not unpacker.eof:
                raise ValueError("too large, or cut off")
            setattr(self, name, np.frombuffer(data, kind).copy())
            check(getattr(self, name), sizes)
        self._next, self._turns = stored.number(state["next"], 0), stored.number(state["turns"], 0)
        # They are found by their place.
        if (np.diff(self._ranges["n"]) != 1).any() or (len(self._ranges) and self._ranges["n"][-1] != self._next - 1):
            raise ValueError("ranges that do not follow each other")
        topics, clients, groups = sizes
        for who, part, group, since, until in state["groups"]:
            key = stored.number(who, 0, clients - 1), stored.number(part, 0, (topics << 32) - 1)
            self._groups[key] = (
                stored.number(group, 0, groups - 1), stored.number(since, -(1 << 63), _END),
                stored.number(until, -(1 << 63), _END),
            )  # fmt: skip

    # -- turns

    def _turn(self, before: int, until: int) -> Array:
        """Looks at the events of frames before ``before``; acknowledgements are known up to ``until``."""
        events, self._new = joined([self._events, *self._new]), []
        if not len(events):
            return np.zeros(0, ROW)
        if (np.diff(events["order"]) < 0).any():
            events = events[np.argsort(events["order"], kind="stable")]
        ready = events["order"] < before
        answers = np.isin(events["kind"], _PAIRED)
        # Requests and responses are paired as they come: nothing waits for them.
        now, self._events = chosen(events, ready & ~answers), chosen(events, ~ready & ~answers)
        commits = joined([self._commits, self._answer(chosen(events, answers))])
        ready = commits["order"] < before
        commits, self._commits = commits[ready], commits[~ready]
        kind = now["kind"]
        told = np.concatenate([now[kind == Kind.GROUP], commits])
        self._learn(told[np.argsort(told["order"], kind="stable")])
        passed, expires = self._deliver(now[kind == Kind.ASK], now[kind == Kind.FETCH], now[kind == Kind.GAP])
        rows = np.concatenate([passed, self._commit(commits, expires), self._forget(before)])
        return rows[np.lexsort((rows["turn"], rows["first"], rows["n"], rows["done"]))]

    def _answer(self, events: Array) -> Array:
        """Pairs requests with their responses. Acknowledged ranges are kept, accepted commits are given."""
        requests = np.isin(events["kind"], (Kind.PRODUCE, Kind.COMMIT))
        asked = joined([self._asked, chosen(events, requests)])
        answers = chosen(events, ~requests)
        if not len(asked) or not len(answers):
            self._asked = asked[-self._most_produced :]
            return np.zeros(0, EVENT)
        mine, theirs = _keys(
            *((asked[name], answers[name]) for name in ("connection", "id", "part")),
            (asked["kind"], answers["kind"] - 1),
        )
        order = np.lexsort((asked["order"], mine))
        place = _last_before(mine[order], asked["order"][order], theirs, answers["order"])
        found = order[np.maximum(place, 0)]
        # A response has its request by its frame; where a packet has no time, only the order is left to find it again.
        since, when = answers["asked"], asked["time"][found]
        right = (place >= 0) & ((since == when) | (since == NONE) | (when == NONE))
        of, answers = found[right], answers[right]
        kept = np.ones(len(asked), bool)
        kept[of] = False
        self._asked = asked[kept][-self._most_produced :]
        good = answers["first"] >= 0
        of, answers = of[good], answers[good]
        wrote = answers["kind"] == Kind.ACKNOWLEDGED
        self._produce(asked[of[wrote]], answers[wrote])
        commits = asked[of[~wrote]].copy()
        commits["kind"] = Kind.COMMITTED
        # It takes effect with the answer; what was asked for is where it stands.
        commits["last"] = commits["order"]
        commits["order"], commits["time"] = answers["order"][~wrote], answers["time"][~wrote]
        return commits

    def _produce(self, asked: Array, answers: Array) -> None:
        # An offset near the end of all numbers is none that a broker gives.
        some = (asked["records"] > 0) & (answers["first"] <= _END >> 1)
        asked, answers = asked[some], answers[some]
        if not len(asked):
            return
        new = np.zeros(len(asked), _RANGE)
        for name in ("part", "size", "time", "order", "connection", "who"):
            new[name] = asked[name]
        new["first"] = answers["first"]
        new["last"] = answers["first"] + asked["records"] - 1
        new["acknowledged"], new["known"], new["appended"] = answers["time"], answers["order"], answers["more"]
        new["got"] = NONE
        new = new[~self._sent_again(new)]
        new["n"] = np.arange(self._next, self._next + len(new))
        self._next += len(new)
        self._ranges = np.concatenate([self._ranges, new])

    def _sent_again(self, new: Array) -> Array:
        """Which new ranges are others that were sent again, before an answer came: what is answered first counts."""
        known = self._ranges[self._ranges["known"] > new["order"].min()]
        both = np.concatenate([known, new])
        order = np.lexsort([both[name] for name in ("known", *_SAME)])
        one, two = both[order[:-1]], both[order[1:]]
        again = two["order"] < one["known"]
        for name in _SAME:
            again &= one[name] == two[name]
        gone = np.zeros(len(both), bool)
        gone[order[1:][again]] = True
        return gone[len(known) :]

    def _learn(self, events: Array) -> None:
        """Which reader is of which group."""
        if not len(events):
            return
        triple = np.unique(events[["who", "part", "group"]], return_index=True)[1]
        for row in np.sort(triple).tolist():
            one = events[row]
            key, group = (int(one["who"]), int(one["part"])), int(one["group"])
            known = self._groups.get(key)
            if known is None:
                if len(self._groups) >= _MOST_PLACES:
                    del self._groups[next(iter(self._groups))]
                self._groups[key] = group, int(one["order"]), _END
            elif known[0] != group and known[2] == _END:
                self._groups[key] = *known[:2], int(one["order"])

    def _group_of(self, who: Array, part: Array) -> tuple[Array, Array, Array]:
        """The group of readers, and the orders from which and up to which it is known."""
        if not len(who):
            return who, who, who
        pairs = np.empty(len(who), [("who", np.int64), ("part", np.int64)])
        pairs["who"], pairs["part"] = who, part
        distinct, of = np.unique(pairs, return_inverse=True)
        none = (NONE, _END, _END)
        known = np.array([self._groups.get(one, none) for one in distinct.tolist()], np.int64)
        return known[of, 0], known[of, 1], known[of, 2]

    def _group_at(self, rows: Array, who: str = "who", order: str = "order") -> Array:
        """The group of readers as it was known then, NONE if it was not."""
        group, since, until = self._group_of(rows[who], rows["part"])
        return np.where((since <= rows[order]) & (rows[order] < until), group, NONE)

    # -- deliveries

    def _deliver(self, asks: Array, fetched: Array, gaps: Array) -> tuple[Array, Array]:
        """Takes deliveries: they wait for their commits. Gives ranges that readers passed, and for what waits the order
        from which on it is given up."""
        new = np.append(np.zeros(len(self._asks), bool), np.ones(len(asks), bool))
        asks = np.concatenate([self._asks, asks])
        mine, theirs = _keys((asks["connection"], fetched["connection"]), (asks["part"], fetched["part"]))
        order = np.lexsort((asks["order"], mine))
        asks, mine, new = asks[order], mine[order], new[order]
        last = np.append(mine[1:] != mine[:-1], len(mine) > 0)[: len(mine)]
        kept = asks[last]
        self._asks = kept[np.argsort(kept["order"], kind="stable")][-_MOST_PLACES:]
        passed = self._passed(asks[new], fetched, gaps)
        place = _last_before(mine, asks["order"], theirs, fetched["order"])
        wanted = np.append(asks["first"], NONE)[place]
        some = (fetched["records"] > 0) & (np.maximum(fetched["first"], wanted) <= fetched["last"])
        first = np.maximum(fetched["first"], wanted)[some]
        fetched = fetched[some]
        # Of a compressed message of magic 0 or 1 only the last offset is known.
        fetched["first"] = np.where(first < 0, fetched["last"], first)
        # As they stand in their frames: numbers of partitions are not the same in each window.
        fetched = fetched[np.argsort(fetched["order"], kind="stable")]
        made = self._pieces(fetched, Way.DELIVERED)
        made["turn"] = np.arange(self._turns, self._turns + len(made))
        self._turns += len(made)
        if len(made):
            made["deliveries"] = self._again(fetched, made)
            self._got(made)
        self._waiting = np.concatenate([self._waiting, made])
        # Each is given up when so many others have come after it.
        at = self._waiting["turn"] + self._most_delivered - (self._turns - len(made))
        orders = np.append(made["fetch_order"], _END)
        return passed, orders[np.minimum(at, len(made))]

    def _passed(self, asks: Array, fetched: Array, gaps: Array) -> Array:
        """Produced ranges that readers passed. Remembers the new positions of all."""
        before, rows = self._positions, np.concatenate([asks, fetched])
        gaps = np.concatenate([self._gaps, gaps[["connection", "order"]].astype(_GAP)])
        gaps = gaps[np.lexsort((gaps["order"], gaps["connection"]))]
        ends = np.append(gaps["connection"][1:] != gaps["connection"][:-1], len(gaps) > 0)[: len(gaps)]
        kept = gaps[ends]
        self._gaps = kept[np.argsort(kept["order"], kind="stable")][-_MOST_PLACES:]
        if not len(rows):
            return np.zeros(0, ROW)
        group = self._group_at(rows)
        is_ask = rows["kind"] == Kind.ASK
        all_ = np.zeros(len(before) + len(rows), _POSITION)
        all_[: len(before)] = before
        new = all_[len(before) :]
        new["part"], new["order"], new["connection"] = rows["part"], rows["order"], rows["connection"]
        new["entity"] = np.where(group >= 0, group, -2 - rows["who"])
        # Where it is: after what it got, or where it asks for.
        new["top"] = np.where(is_ask, rows["first"], rows["last"] + 1)
        (key,) = _keys((all_["part"],), (all_["entity"],))
        order = np.lexsort((all_["order"], key))
        one, key = all_[order], key[order]
        # The highest so far, of each.
        top = _highest(key, one["top"])
        begins = np.append(True, key[1:] != key[:-1])
        reached = np.append(NONE, top[:-1])
        reached[begins] = NONE
        last = np.append(begins[1:], True)
        kept = one[last]
        kept["top"] = top[last]
        self._positions = kept[np.argsort(kept["order"], kind="stable")][-_MOST_PLACES:]
        # A reader that asks for more than it has got has passed what is between.
        asked = np.append(np.zeros(len(before), bool), is_ask)[order]
        jumps = np.flatnonzero(asked & (reached >= 0) & (one["top"] > reached))
        if not len(jumps):
            return np.zeros(0, ROW)
        gone = rows[order[jumps] - len(before)]
        gone["last"], gone["first"] = gone["first"] - 1, reached[jumps]
        since, other = one["order"][jumps - 1], one["connection"][jumps - 1]
        lost = np.zeros(len(jumps), bool)
        for connection in (gone["connection"], other):
            place = _last_before(gaps["connection"], gaps["order"], connection, gone["order"])
            lost |= (place >= 0) & (np.append(gaps["order"], NONE)[place] > since)
        # Whatever is missing of the connection may have brought them.
        gone["size"] = lost
        made = self._pieces(gone, Way.SKIPPED, unknown=False)
        made["way"] = np.where(made["turn"] > 0, Way.MISSING, Way.SKIPPED)
        made["fetched"], made["lag"], made["done"], made["turn"] = NONE, NONE, made["fetch_order"], NONE
        self._got(made)
        return made

    def _pieces(self, given: Array, way: Way, *, unknown: bool = True) -> Array:
        """Ranges cut at those that were produced, as rows. ``unknown``: also what is of no such range."""
        ranges = self._ranges
        near = self._near(given)
        order = near[np.lexsort((ranges["first"][near], ranges["part"][near]))]
        # A range was given up where so many were acknowledged after it.
        gone = ranges["n"][order] + self._most_produced - (ranges["n"][0] if len(ranges) else 0)
        gone = np.append(np.maximum.accumulate(ranges["known"]), _END)[np.minimum(gone, len(ranges))]
        ranges = ranges[order]
        low, high, twice = _candidates(ranges, given)
        which, at, more = self._fitting(given, ranges, gone, (low, high))
        one = ranges[at]
        made = self._rows(given[which], way)
        made["first"] = np.maximum(one["first"], given["first"][which])
        made["last"] = np.minimum(one["last"], given["last"][which])
        for name, source in (
            ("produced", "time"), ("produce_connection", "connection"), ("produce_order", "order"),
            ("producer", "who"), ("acknowledged", "acknowledged"), ("appended", "appended"),
        ):  # fmt: skip
            made[name] = one[source]
        made["n"] = one["n"]
        if twice:
            made, which = _newest(made, which)
        if not unknown:
            return joined([made, self._unknown(given, more, way)])
        if len(given):
            others, source = self._others(given, which, made, way)
            made, which = np.concatenate([made, others]), np.concatenate([which, source])
            made = made[np.lexsort((made["first"], which))]
        return made

    def _fitting(
        self, given: Array, ranges: Array, gone: Array, near: tuple[Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Which of ``given`` and of ``ranges`` belong together. ``gone``: when ranges are given up, ``near``: between
        which places they may be. And what is left out, as there is too much: which of ``given``, first and last offset.
        """

        def fitting(which: Array, at: Array) -> tuple[Array, Array]:
            order = given["order"][which]
            fits = (
                (ranges["part"][at] == given["part"][which])
                & (ranges["last"][at] >= given["first"][which])
                & (ranges["first"][at] <= given["last"][which])
                & (ranges["known"][at] <= order + self._late)
                # Offsets of a topic that was made again, or of another cluster, may be the same.
                & (ranges["order"][at] < order)
                & (gone[at] > order)
            )
            return which[fits], at[fits]

        low, high = near
        # Of a response there are no more pieces than batches. A reader may pass any number.
        most = np.where(given["kind"] == Kind.ASK, MOST_PASSED, 2 * given["records"] + _FEW)
        many = high - low > most
        some, more = [fitting(*_pairs(low, np.where(many, low, high)))], []
        for row in np.flatnonzero(many).tolist():
            here, count = np.arange(low[row], high[row]), int(most[row])
            which, at = fitting(np.full(len(here), row), here)
            some.append((which[:count], at[:count]))
            if len(at) > count:
                more.append((row, int(ranges["first"][at[count]]), int(ranges["last"][at[count:]].max())))
        which, at = (np.concatenate(each) for each in zip(*some, strict=True))
        return which, at, np.array(more, np.int64).reshape(-1, 3)

    def _near(self, given: Array) -> Array:
        """The produced ranges that may have a part of these: of their partitions, not all before them."""
        ranges = self._ranges
        parts, of = np.unique(given["part"], return_inverse=True)
        if not len(parts):
            return np.zeros(0, np.int64)
        least = np.full(len(parts), _END)
        np.minimum.at(least, of, given["first"])
        place = np.minimum(np.searchsorted(parts, ranges["part"]), len(parts) - 1)
        found: Array = np.flatnonzero((parts[place] == ranges["part"]) & (ranges["last"] >= least[place]))
        return found

    def _others(self, given: Array, which: Array, made: Array, way: Way) -> tuple[Array, Array]:
        """What is left of ranges without the pieces that were found in them, and of which range it is."""
        source = np.concatenate([which, np.arange(len(given)), np.arange(len(given))])
        # The pieces of each, between one that ends before it and one that begins after it.
        first = np.concatenate([made["first"], given["first"], given["last"] + 1])
        last = np.concatenate([made["last"], given["first"] - 1, given["last"] + 1])
        place = np.concatenate([np.ones(len(which)), np.zeros(len(given)), np.full(len(given), 2)])
        order = np.lexsort((last, first, place, source))
        source, first, last = source[order], first[order], last[order]
        begin, end = last[:-1] + 1, first[1:] - 1
        holes = (source[1:] == source[:-1]) & (begin <= end)
        found = np.stack([source[:-1], begin, end], axis=1)[holes]
        return self._unknown(given, found, way), source[:-1][holes]

    def _unknown(self, given: Array, found: Array, way: Way) -> Array:
        """Rows of which nobody knows who produced them. ``found``: which of ``given``, first and last offset."""
        which, first, last = found.T
        rows = self._rows(given[which], way)
        rows["first"], rows["last"] = np.maximum(first, given["first"][which]), np.minimum(last, given["last"][which])
        for name in ("produced", "produce_connection", "produce_order", "producer", "acknowledged", "appended"):
            rows[name] = NONE
        rows["n"] = _END
        return rows

    def _rows(self, given: Array, way: Way) -> Array:
        made = np.zeros(len(given), ROW)
        made["way"], made["part"], made["reader"] = way, given["part"], given["who"]
        made["group"], made["turn"] = self._group_at(given), given["size"]
        made["fetched"], made["fetch_connection"], made["fetch_order"] = (
            given["time"],
            given["connection"],
            given["order"],
        )
        made["lag"] = np.where(given["more"] >= 0, np.maximum(given["more"] - 1 - given["last"], 0), NONE)
        for name in ("committed", "commit_connection", "commit_order"):
            made[name] = NONE
        return made

    def _again(self, fetched: Array, made: Array) -> Array:
        """How often each row has been delivered to its group, this time included."""
        group = self._group_at(fetched)
        new = np.zeros(len(fetched), _INTERVAL)
        for name in ("part", "first", "last", "order"):
            new[name] = fetched[name]
        new["entity"] = np.where(group >= 0, group, -2 - fetched["who"])
        known = np.concatenate([self._intervals, new])
        self._intervals = known[-self._most_delivered :]
        deliveries = np.ones(len(made), np.int64)
        again = self._reached(new)
        if not again.any():
            return deliveries
        # Few: each is compared with what its group had.
        of: dict[tuple[int, int], Array] = {}
        by_order: dict[tuple[int, int], list[int]] = {}
        for row, pair in enumerate(zip(made["fetch_order"].tolist(), made["part"].tolist(), strict=True)):
            by_order.setdefault(pair, []).append(row)
        for place in np.flatnonzero(again).tolist():
            number = len(known) - len(fetched) + place
            part, entity = int(new["part"][place]), int(new["entity"][place])
            mine = of.get((part, entity))
            if mine is None:
                mine = of[part, entity] = np.flatnonzero((known["part"] == part) & (known["entity"] == entity))
            # Those of the last so many, whatever the window.
            mine = mine[(mine < number) & (mine >= number - self._most_delivered)]
            firsts, lasts, orders = (known[name][mine] for name in ("first", "last", "order"))
            one = fetched[place]
            for row in by_order.get((int(one["order"]), int(one["part"])), ()):
                low, high = made["first"][row], made["last"][row]
                if low >= one["first"] and high <= one["last"]:
                    # Other records that had these offsets before are none of this range.
                    same = (firsts <= high) & (lasts >= low) & (orders > made["produce_order"][row])
                    deliveries[row] = 1 + int(np.count_nonzero(same))
        return deliveries

    def _reached(self, new: Array) -> Array:
        """Which intervals begin before the end of one that their group had. Remembers these ends."""
        all_ = np.zeros(len(self._tops) + len(new), _POSITION)
        all_[: len(self._tops)] = self._tops
        mine = all_[len(self._tops) :]
        for name in ("part", "entity", "order"):
            mine[name] = new[name]
        mine["top"] = new["last"]
        (key,) = _keys((all_["part"],), (all_["entity"],))
        order = np.argsort(key, kind="stable")
        one, key = all_[order], key[order]
        top = _highest(key, one["top"])
        begins = np.append(True, key[1:] != key[:-1])
        before = np.append(NONE, top[:-1])
        before[begins] = NONE
        last = np.append(begins[1:], True)
        kept = one[last]
        kept["top"] = top[last]
        self._tops = kept[np.argsort(kept["order"], kind="stable")][-_MOST_PLACES:]
        reached = np.empty(len(all_), np.int64)
        reached[order] = before
        return reached[len(all_) - len(new) :] >= new["first"]

    def _got(self, made: Array) -> None:
        """Remembers what of each range was read."""
        some = made["n"] != _END
        if some.any() and len(self._ranges):
            at = made["n"][some] - self._ranges["n"][0]
            there = (at >= 0) & (at < len(self._ranges))
            np.maximum.at(self._ranges["got"], at[there], made["last"][some][there])

    # -- ends

    def _commit(self, commits: Array, expires: Array) -> Array:
        """Deliveries that these commits cover, and those that are given up."""
        waiting = self._waiting
        if not len(waiting):
            return np.zeros(0, ROW)
        group, since, until = self._group_of(waiting["reader"], waiting["part"])
        mine, theirs = _keys((waiting["part"], commits["part"]), (group, commits["group"]))
        order = np.lexsort((commits["order"], theirs))
        commits, theirs = commits[order], theirs[order]
        # A place after the last, where nothing is covered.
        padded = np.append(commits, np.zeros(1, EVENT))
        ends = np.searchsorted(theirs, mine, "right")
        # The first commit that was accepted since the group is known,
        own, other = _keys((theirs, mine), (commits["order"], since - 1))
        at: Array = np.searchsorted(own, other, "right")
        # the first that was asked for after it, and the first that reaches so far.
        for name, least in (("last", waiting["fetch_order"]), ("first", waiting["last"])):
            distinct, rank = np.unique(commits[name], return_inverse=True)
            width = len(distinct) + 1
            top = np.maximum.accumulate(theirs * width + rank)
            wanted = np.searchsorted(distinct, least, "right")
            at = np.maximum(at, np.searchsorted(top, mine * width + wanted, "left"))
        open_ = (at < ends) & (group >= 0)
        while True:
            # A group may go back, and commit less again. And answers need not come in the order of requests.
            one = padded[np.minimum(at, len(commits))]
            short = open_ & ((one["first"] <= waiting["last"]) | (one["last"] <= waiting["fetch_order"]))
            if not short.any():
                break
            at[short] += 1
            open_ &= at < ends
        by = padded[np.minimum(at, len(commits))]
        open_ &= (by["order"] <= expires) & (by["order"] < until)
        waiting["group"] = np.where((group >= 0) & open_, group, waiting["group"])
        made, by = waiting[open_], by[open_]
        made["way"] = Way.COMMITTED
        made["committed"], made["commit_connection"] = by["time"], by["connection"]
        made["commit_order"], made["done"] = by["last"], by["order"]
        over = ~open_ & (expires < _END)
        given = waiting[over]
        given["done"] = expires[over]
        self._waiting = waiting[~open_ & ~over]
        return np.concatenate([made, given])

    def _forget(self, before: int) -> Array:
        """Produced ranges that wait for readers no longer."""
        ranges = self._ranges
        over = max(0, len(ranges) - self._most_produced)
        done = ranges["known"][self._most_produced :][:over]
        over = int(np.count_nonzero(done < before))
        self._ranges = ranges[over:]
        return self._undelivered(ranges[:over], done[:over])

    def _undelivered(self, ranges: Array, done: Array) -> Array:
        """Rows of produced ranges, or the ends of such, that no reader got."""
        some = ranges["got"] < ranges["last"]
        ranges = ranges[some]
        made = np.zeros(len(ranges), ROW)
        for name in ROW.names or ():
            made[name] = NONE
        made["way"], made["done"], made["part"] = Way.UNDELIVERED, done[some], ranges["part"]
        made["first"], made["last"] = np.maximum(ranges["first"], ranges["got"] + 1), ranges["last"]
        made["produced"], made["produce_connection"] = ranges["time"], ranges["connection"]
        made["produce_order"], made["producer"] = ranges["order"], ranges["who"]
        made["acknowledged"], made["appended"] = ranges["acknowledged"], ranges["appended"]
        made["deliveries"], made["n"] = 0, ranges["n"]
        return made


_TABLES: Final = {
    "_events": EVENT,
    "_asked": EVENT,
    "_ranges": _RANGE,
    "_asks": EVENT,
    "_waiting": ROW,
    "_intervals": _INTERVAL,
    "_positions": _POSITION,
    "_tops": _POSITION,
    "_gaps": _GAP,
    "_commits": EVENT,
}
"""What is remembered as tables."""
_PAIRED: Final = (Kind.PRODUCE, Kind.ACKNOWLEDGED, Kind.COMMIT, Kind.COMMITTED)
