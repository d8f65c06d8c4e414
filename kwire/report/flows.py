"""Transactions and the way of records, added up for a report: by transactional id, and by topic and reader.

Rules kept here:

- Sums are kept, and not rows: memory grows with the number of producers, topics and groups (``kwire.report.sums``).
- Latencies count records: a range of a hundred records counts a hundred times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from kwire.report.sums import UNDATED, Clock, Latencies, Timeline, Top, latency_steps, tuples
from kwire.report.tallies import Array, Rows

__all__ = ["ENDS", "TABLES", "Flows"]

TABLES: Final[dict[str, Sequence[str]]] = {
    "transactions": (
        "transactional_id", "client_id", "end", "records", "record_bytes", "duration_ms", "held_records", "held_ms",
        "held_readers",
    ),
    "journeys": (
        "topic", "group_id", "client_id", "records", "fetched", "deliveries", "lag", "fetch_ms", "total_ms", "status",
    ),
}  # fmt: skip
"""The tables that are read, with their columns."""

ENDS: Final = ("committed", "aborted", "timed_out", "fenced", "open", "unknown")
"""How transactions end (tuple of str), in the order of the columns."""
COARSE: Final = 5
"""Steps of latencies that are one over time: 10 %."""
_MOST_KEYS: Final = 1 << 10
_MOST_NAMES: Final = 64
"""Clients of a transactional id."""


class Flows:
    """Takes rows of the tables of ``TABLES``."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ends: Top = Top(len(ENDS) + 1)
        """By transactional id: all, and how many ended so."""
        self.wrote: Top = Top(5)
        """By transactional id: records, bytes, the most records and milliseconds that readers were held back."""
        self.clients: dict[str, Counter[str]] = {}
        """By transactional id: transactions of each client."""
        self.waited: dict[str, Counter[str]] = {}
        """By transactional id: transactions that held each reader back."""
        self.durations: dict[str, Latencies] = {}
        """By transactional id."""
        self.ways: Top = Top(5)
        """By topic and reader: records delivered, delivered again, skipped, missing, and the largest lag."""
        self.fetched: dict[tuple[str, str], Latencies] = {}
        """By topic and reader: from Produce to Fetch, by records."""
        self.committed: dict[tuple[str, str], Latencies] = {}
        """The same from Produce to the commit."""
        self.nobody: Counter[str] = Counter()
        """By topic: records that nobody got."""
        self.waits: Timeline = clock.timeline(1, keep=8_000)
        """By topic and reader, and step: records that were fetched."""

    def transactions(self, rows: Rows) -> None:
        """Take rows of ``transactions``."""
        at = np.arange(rows.table.num_rows)
        records, size = rows.values("records"), rows.values("record_bytes")
        held = _floats(rows, "held_ms")
        keys = ("transactional_id", "client_id", "end")
        for name, client, end, count, written, bytes_, behind, long in rows.totals(
            at, keys, records, size, rows.values("held_records").astype(np.float64), held
        ):
            of = name or "-"
            self.ends.add(of, count, *(count if end == one else 0 for one in ENDS))
            before = self.wrote.sums.get(of, [0, 0, 0, 0, 0])
            more = (max(0, int(behind) - before[2]), max(0, int(long) - before[3]))
            self.wrote.add(of, written, bytes_, *more, 0)
            _count(self.clients, of, (client or "-",), count)
        late = np.flatnonzero(rows.values("held_records") > 0)
        for name, readers in tuples(rows.part(("transactional_id", "held_readers"), late)):
            _count(self.waited, name or "-", readers)
        known = np.flatnonzero(rows.valid("duration_ms"))
        took = _floats(rows, "duration_ms")[known]
        for name, step, count, most in rows.totals(known, ("transactional_id", latency_steps(took)), took):
            _add(self.durations, name or "-", step, count, most)

    def journeys(self, rows: Rows) -> None:
        """Take rows of ``journeys``."""
        records, again = rows.values("records"), rows.values("deliveries") > 1
        status = {word: rows.mask("status", word) for word in ("skipped", "missing", "undelivered")}
        got = ~(status["skipped"] | status["missing"] | status["undelivered"])
        for topic, _, count in rows.totals(
            np.flatnonzero(status["undelivered"]), ("topic",), records[status["undelivered"]]
        ):
            self.nobody[topic or "-"] += count
        at = np.flatnonzero(~status["undelivered"])
        sums = [np.where(mask, records, 0)[at] for mask in (got, got & again, status["skipped"], status["missing"])]
        lag = rows.values("lag").astype(np.float64)[at]
        for topic, group, client, _, *moved, behind in rows.totals(at, ("topic", "group_id", "client_id"), *sums, lag):
            key = _key(topic, group, client)
            before = self.ways.sums.get(key, [0] * 5)[4]
            self.ways.add(key, *moved, max(0, int(behind) - before))
        for name, latencies in (("fetch_ms", self.fetched), ("total_ms", self.committed)):
            known = np.flatnonzero(rows.valid(name) & got)
            took = _floats(rows, name)[known]
            keys = ("topic", "group_id", "client_id", latency_steps(took))
            for topic, group, client, step, _, count, most in rows.totals(known, keys, records[known], took):
                _add(latencies, _key(topic, group, client), step, count, most)
        times = rows.values("fetched", UNDATED)
        known = np.flatnonzero(rows.valid("fetch_ms") & got & (times != UNDATED))
        if not len(known):
            return
        steps = latency_steps(_floats(rows, "fetch_ms")[known], COARSE)
        over_time = ("topic", "group_id", "client_id", steps, self.clock.buckets(times[known]))
        for topic, group, client, step, bucket, _, count in rows.totals(known, over_time, records[known]):
            self.waits.add((_key(topic, group, client), step), bucket, count)


def _floats(rows: Rows, name: str) -> Array:
    return rows.table[name].fill_null(0).to_numpy()


def _key(topic: str | None, group: str | None, client: str | None) -> tuple[str, str]:
    return topic or "-", group or client or "-"


def _count(kept: dict[str, Counter[str]], of: str, names: Iterable[str], count: int = 1) -> None:
    if of in kept or len(kept) < _MOST_KEYS:
        mine = kept.setdefault(of, Counter())
        for name in names:
            if name in mine or len(mine) < _MOST_NAMES:
                mine[name] += count


def _add(latencies: dict[Any, Latencies], key: Any, step: int, count: int, most: float) -> None:
    found = latencies.get(key)
    if found is None:
        if len(latencies) >= _MOST_KEYS:
            return
        found = latencies[key] = Latencies()
    found.add(step, count, most)
