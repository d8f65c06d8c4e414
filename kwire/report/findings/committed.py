"""What groups commit, in order of time, and what of it counts: several rules look at the same."""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from weakref import ref

import numpy as np
import pyarrow as pa

from kwire.report.accepted import Accepted
from kwire.report.findings.rule import BROKER, CLIENT, FRAME
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import Array, Rows, firsts

__all__ = ["PLACE", "Broker", "Clusters", "Committed", "InOrder", "Place"]


Place = tuple[str | None, int | None, str | None, str | None, int | None]
"""Type: the values of ``PLACE``: broker (host, port), group, topic, partition."""


PLACE: Final = (*BROKER, "group_id", "topic", "partition")
"""Where a group commits: to its coordinator.

Groups and topics of two clusters may have the same names.
"""
Broker = tuple[str | None, int | None]
"""Type: host and port of a broker, both None where they are not known."""


@dataclass(slots=True)
class InOrder:
    """Commits in the order of places, and of time in each."""

    rows: Rows
    at: Array
    """Their rows,"""
    times: Array
    offsets: Array
    first: Array
    """and where in these each place begins."""
    _places: list[Place] | None = None

    @property
    def places(self) -> list[Place]:
        """Which places these are."""
        if self._places is None:
            self._places = list(tuples(self.rows.table.select(list(PLACE)).take(pa.array(self.at[self.first]))))
        return self._places


class _Last:
    """The last commit of each place, as columns: there may be many places."""

    _TEXTS = ("capture", *CLIENT)

    def __init__(self) -> None:
        self._of: dict[Place, int] = {}
        self._texts: dict[tuple[Any, ...], int] = {}
        self._columns = np.zeros((5, 0), np.int64)
        """Offset, time, connection, frame, and which texts."""

    def update(self, found: InOrder) -> None:
        """Take the last commit of each place."""
        if not len(found.at):
            return
        of = self._of
        mine = np.array([of.setdefault(place, len(of)) for place in found.places])
        if len(of) > self._columns.shape[1]:
            more = np.zeros((5, len(of) // 2 + len(mine)), np.int64)
            self._columns = np.concatenate([self._columns, more], axis=1)
        final = np.append(found.first[1:], len(found.at)) - 1
        at = found.at[final]
        rows = found.rows
        texts = tuples(rows.table.select(list(self._TEXTS)).take(pa.array(at)))
        which = [self._texts.setdefault(one, len(self._texts)) for one in texts]
        values = (found.offsets[final], found.times[final], rows.values("connection")[at], rows.values("frame")[at])
        for k, column in enumerate((*values, which)):
            self._columns[k, mine] = column

    def known(self, places: Iterable[Place]) -> tuple[Array, Array, Array]:
        """For each place: whether there is a commit, its offset and its time."""
        of = np.array([self._of.get(place, -1) for place in places], np.int64)
        if not self._of:
            return of >= 0, of, of
        return of >= 0, self._columns[0, of], self._columns[1, of]

    def items(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The places, and their last commits."""
        texts = list(self._texts)
        for place, at in self._of.items():
            offset, time, connection, frame, of = self._columns[:, at].tolist()
            row = {"offset": offset, "time": time, "connection": connection, "frame": frame}
            yield place, row | dict(zip(self._TEXTS, texts[of], strict=True))


class _Transactions:
    """How transactions end.

    What a request commits does not name its transaction in ``partitions``, but its frame.
    """

    APIS = ("TxnOffsetCommit", "EndTxn", "InitProducerId")
    _COLUMNS = ("capture", "frame", "api_name", "transactional_id", "committed")
    _MOST = 1 << 16
    """Commits and transactional ids that are remembered,"""
    _ENDS = 256
    """and ends of each."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, int], str] = {}
        """By capture and frame of a commit: the transactional id."""
        self._ends: dict[str, list[tuple[int, bool]]] = {}
        """By transactional id: when transactions ended, and whether they were committed."""

    def take(self, rows: Rows) -> None:
        """Take rows of ``calls``."""
        told = rows.where(api_name=self.APIS, direction="request", status="ok")
        # If a row has no time, nobody knows which end it comes before.
        told = told[(rows.valid("transactional_id") & (rows.times != UNDATED))[told]]
        times = rows.times[told].tolist()
        for time, (capture, frame, api, name, committed) in zip(
            times, tuples(rows.part(self._COLUMNS, told)), strict=True
        ):
            if api == "TxnOffsetCommit":
                self._of[capture, frame] = name
                if len(self._of) > self._MOST:
                    del self._of[next(iter(self._of))]
                continue
            # A producer that begins anew ends what the one before it has left open.
            ends = self._ends.setdefault(name, [])
            bisect.insort(ends, (time, api == "EndTxn" and bool(committed)))
            del ends[: -self._ENDS]
            if len(self._ends) > self._MOST:
                del self._ends[next(iter(self._ends))]

    def committed(self, capture: str, frame: int, time: int) -> bool | None:
        """Whether what was committed in this frame took effect. None: that is not decided yet."""
        ends = self._ends.get(self._of.get((capture, frame), ""), ())
        at = bisect.bisect_left(ends, (time, False))
        if at == 0 and len(ends) == self._ENDS:
            return True  # so long ago that its end is forgotten
        return ends[at][1] if at < len(ends) else None

    def seen(self, capture: str, frame: int) -> bool:
        """Whether its end would be known: those of its transactional id are captured."""
        return self._of.get((capture, frame), "") in self._ends


class Clusters:
    """Which brokers are of one cluster, as far as they say so."""

    _MOST = 1 << 16

    def __init__(self) -> None:
        self._ids: dict[Broker, str] = {}
        self._names: set[str] = set()

    def take(self, rows: Rows) -> None:
        """Take rows of ``calls``."""
        told = np.flatnonzero(rows.valid("cluster_id") & rows.mask("direction", "response"))
        if not len(told):
            return
        columns = ("cluster_id", *BROKER)
        told = told[firsts(rows.numbers(columns, told))]
        for cluster, host, port in tuples(rows.part(columns, told)):
            if len(self._ids) < self._MOST:
                self._ids[host, port] = cluster
                self._names.add(cluster)

    def of(self, broker: Broker) -> Hashable:
        """The same for brokers of one cluster. Where there are several, one that says nothing stands alone."""
        return self._ids.get(broker, broker) if len(self._names) > 1 else None


class Committed:
    """The offsets that groups commit, in order of time, and the last of each place: two rules look at the same.

    What a response refuses was not committed. A request at the end of a batch waits for its response in the next one.
    Without a response there, or where none was captured, it counts. In a transaction it counts when that is committed,
    and where the capture does not show how transactions of this client end.
    """

    COLUMNS = (
        "api_name",
        *FRAME,
        "frame_timestamp",
        "direction",
        *CLIENT,
        "correlation_id",
        *PLACE,
        "topic_id",
        "offset",
        "error",
    )
    _MOST_OPEN = 1 << 16
    """Commits whose transactions have not ended yet."""

    def __init__(self) -> None:
        self.transactions: _Transactions = _Transactions()
        self.clusters: Clusters = Clusters()
        self._open: pa.Table | None = None
        """Commits in transactions that have not ended."""
        # Rows take much memory: who reads them keeps them as long as it needs them.
        self._rows: ref[Rows] | None = None
        self._calls: ref[Rows] | None = None
        self._found: InOrder | None = None
        self._requests = Accepted(self.COLUMNS)
        self._last = _Last()

    def of(self, rows: Rows) -> InOrder:
        """The commits of a batch."""
        if self._found is None or self._rows is None or self._rows() is not rows:
            self._settle()
            self._rows = ref(rows)
            made = rows.where(api_name=("OffsetCommit", "TxnOffsetCommit"), status="ok")
            self._found = _sorted(*self._ended(*self._accepted(rows, made)))
        return self._found

    def of_calls(self, rows: Rows) -> None:
        """Take rows of ``calls``, once."""
        if self._calls is None or self._calls() is not rows:
            self._calls = ref(rows)
            self.transactions.take(rows)
            self.clusters.take(rows)

    def rest(self) -> InOrder | None:
        """The commits that wait for responses still, or for the end of a transaction that will not be known."""
        self._settle()
        waiting = [one for one in (self._requests.waiting, self._open) if one is not None]
        if not waiting:
            return None
        parts = [Rows(one).part(self.COLUMNS, np.arange(one.num_rows)) for one in waiting]
        rows = Rows(pa.concat_tables(parts))
        at = np.arange(rows.table.num_rows)
        counts = [
            verdict or (verdict is None and not self.transactions.seen(capture, frame))
            for verdict, (capture, frame) in zip(
                self._verdicts(rows, at), tuples(rows.table.select(["capture", "frame"])), strict=True
            )
        ]
        at = at[np.array(counts, bool)]
        return _sorted(rows, at[self._not_late(rows, at)])

    def before(self, places: Iterable[Place]) -> tuple[Array, Array]:
        """For each place: whether there was a commit before the batch of ``of``, and the last offset."""
        return self._last.known(places)[:2]

    def last(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The last commit of each place, those that wait among them."""
        rest = self.rest()
        late = _Last()
        if rest is not None:
            late.update(rest)
        also = dict(late.items())
        for place, row in self._last.items():
            yield place, also.pop(place, row)
        yield from also.items()

    def _settle(self) -> None:
        if self._found is not None:
            self._last.update(self._found)
            self._found = None

    def _accepted(self, rows: Rows, at: Array) -> tuple[Rows, Array]:
        rows, at, old = self._requests.take(rows, at)
        # Of those that waited.
        return rows, np.append(at[:old][self._not_late(rows, at[:old])], at[old:])

    def _ended(self, rows: Rows, at: Array) -> tuple[Rows, Array]:
        """Accepted commits, without those whose transaction has not ended, and those of before whose has."""
        inside = rows.mask("api_name", "TxnOffsetCommit")[at]
        if self._open is None and not inside.any():
            return rows, at
        parts = [rows.part(self.COLUMNS, at[inside])]
        if self._open is not None:
            parts.insert(0, self._open)
        mine = Rows(pa.concat_tables(parts))
        whole = np.arange(mine.table.num_rows)
        verdicts = self._verdicts(mine, whole)
        many = sum(one is None for one in verdicts)
        for k, one in enumerate(verdicts):
            if many > self._MOST_OPEN and one is None:
                # Nobody will know any more.
                verdicts[k], many = True, many - 1
        waits = np.array([one is None for one in verdicts], bool)
        self._open = mine.part(self.COLUMNS, whole[waits]) if many else None
        done = whole[np.array([one is True for one in verdicts], bool)]
        done = done[self._not_late(mine, done)]
        made = pa.concat_tables([rows.part(self.COLUMNS, at[~inside]), mine.part(self.COLUMNS, done)])
        return Rows(made), np.arange(made.num_rows)

    def _verdicts(self, rows: Rows, at: Array) -> list[bool | None]:
        """Which commits took effect: all that are in no transaction. None: it is not decided."""
        return [
            self.transactions.committed(capture, frame, time) if api == "TxnOffsetCommit" else True
            for time, (capture, frame, api) in zip(
                rows.times[at].tolist(), tuples(rows.part(("capture", "frame", "api_name"), at)), strict=True
            )
        ]

    def _not_late(self, rows: Rows, at: Array) -> Array:
        """Which of the commits that waited are not followed by one of their place that did not."""
        known, _, times = self._last.known(tuples(rows.part(PLACE, at)))
        return ~known | (times <= rows.times[at])


def _sorted(rows: Rows, at: Array) -> InOrder:
    at = at[rows.valid("offset")[at]]
    times = rows.times[at]
    places = rows.numbers(PLACE, at)
    if len(at) and places.max() < 1 << 16:
        places = places.astype(np.uint16)  # sorted by digits
    in_order = bool((times[1:] >= times[:-1]).all())
    order = np.argsort(places, kind="stable") if in_order else np.lexsort((times, places))
    if not len(at):
        rows = Rows(rows.table.schema.empty_table())
    at, own = at[order], places[order]
    first = np.flatnonzero(np.append(True, own[1:] != own[:-1])) if len(at) else at
    return InOrder(rows, at, times[order], rows.values("offset")[at], first)
