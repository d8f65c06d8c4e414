"""What happens now: rates and latencies of the last seconds of a capture that grows.

What ``kwire top`` shows.

Strategy: sums are kept by second of the capture's clock. They are forgotten when they are older than the shown period.
Some rules of ``findings`` need neither the end of a connection nor single records. They look at everything, and what
they find is reported once.

Rules kept here:

- Memory is bounded. At most ``MOST_KEYS`` APIs, topics and clients of a second are distinguished, and ``MOST_OF_ALL``
  of all seconds together. The rest are "others". Rules that remember more than ``MOST_KEPT`` things begin anew.
- The clock is that of the capture. What comes late counts for its own second, if that is still looked at.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire.report import findings as rules
from kwire.report.sums import UNDATED, Latencies, Slow, latency_steps, slowest
from kwire.report.tallies import Rows, rows_of

__all__ = ["KINDS", "RULES", "TABLES", "Live", "Rates"]

KINDS: Final = ("api", "topic", "client")
"""What rates are counted by (tuple of str): a block of ``kwire top`` for each."""
MOST_KEYS: Final = 2_000
MOST_OF_ALL: Final = 100_000
MOST_KEPT: Final = 1 << 18
_OTHERS: Final = "others"
_SEEN: Final = frozenset(("partitions", "calls", "frames"))
RULES: Final = [name for name, rule in rules.RULES.items() if _SEEN.issuperset(rule.tables)]
"""The rules that are looked for while a capture goes on."""
_OWN: Final[dict[str, Sequence[str]]] = {
    # Before frames: what responses are about is asked there.
    "partitions": (
        "frame", "frame_timestamp", "direction", "api_name", "topic", "topic_id", "record_bytes", "records", "error",
        "status",
    ),
    "frames": (
        "frame", "timestamp", "direction", "client_host", "client_id", "api_name", "size", "latency_ms", "errors",
        "status",
    ),
}  # fmt: skip


def _tables() -> dict[str, Sequence[str]]:
    of_rules = rules.needed(RULES, also=False)
    return {
        name: list(dict.fromkeys((*_OWN.get(name, ()), *of_rules.get(name, ()))))
        for name in dict.fromkeys((*_OWN, *of_rules))
    }


TABLES: Final = _tables()
"""The tables that are read, with their columns, in the order in which a window is to give them."""


@dataclass(slots=True)
class Rates:
    """What was counted under a key. ``written`` and ``read``: bytes of records, of a topic."""

    requests: int = 0
    responses: int = 0
    bytes: int = 0
    errors: int = 0
    written: int = 0
    read: int = 0
    records: int = 0
    latencies: Latencies = field(default_factory=Latencies)

    def add(self, other: Rates) -> None:
        """Take all that another one has."""
        self.requests += other.requests
        self.responses += other.responses
        self.bytes += other.bytes
        self.errors += other.errors
        self.written += other.written
        self.read += other.read
        self.records += other.records
        self.latencies.merge(other.latencies)


_Second = dict[tuple[str, Any], Rates]


class Live:
    """Takes batches of ``TABLES`` as they come. ``seconds``: how long it looks back."""

    def __init__(self, seconds: int = 10, thresholds: rules.Thresholds | None = None) -> None:
        self.seconds = seconds
        self.first: int | None = None
        """The earliest time that was seen, in microseconds since 1970,"""
        self.last: int | None = None
        """and the latest."""
        self.frames: int = 0
        """Frames since the beginning, those that are unconfirmed too."""
        self.found: list[rules.Finding] = []
        """Findings as they are now, in the order in which they appeared; of those that came together the worst last."""
        self.worst: list[rules.Finding] = []
        """The same, the worst first."""
        self._of: OrderedDict[int, _Second] = OrderedDict()
        self._topics: dict[int, list[str]] = {}
        self._held = 0
        """Keys of all seconds together."""
        self._thresholds = thresholds
        self._finder = rules.Finder(RULES, thresholds)
        self._needed = rules.needed(RULES, also=False)
        self._known: dict[tuple[Any, ...], int] = {}
        """When each of the findings appeared, by numbers."""
        self._numbers = itertools.count()
        self._usual: dict[str, Latencies] = {}
        self._slow: Slow | None = None

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Take rows of the table ``name``; texts may be dictionaries."""
        rows = rows_of(name, [batch])
        if name in self._needed:
            self._finder.add_rows(name, rows)
        if name == "frames":
            self._frames(rows)
        elif name == "partitions":
            self._partitions(rows)

    def look(self) -> list[rules.Finding]:
        """Brings ``found`` up to now; returns the findings that are new since it looked last."""
        fresh = []
        now: dict[tuple[Any, ...], rules.Finding] = {}
        for one in self._finder.result():
            who = (one.rule, one.client_host, one.client_id, one.group_id, one.topic, one.partition)
            # A rule may find several things of the same client.
            key = next((*who, k) for k in itertools.count() if (*who, k) not in now)
            now[key] = one
            if key not in self._known:
                fresh.append(one)
        order = {key: self._known[key] if key in self._known else next(self._numbers) for key in reversed(now)}
        self._known = order
        self.worst = list(now.values())
        self.found = [now[key] for key in sorted(now, key=order.__getitem__)]
        if self._finder.kept() > MOST_KEPT:
            # A capture that goes on has ever more clients and connections, which it may invent.
            self._finder = rules.Finder(RULES, self._thresholds)
        return fresh

    def span(self, now: int | None = None) -> float:
        """Seconds that ``rates`` and ``all`` look at.

        Less than ``seconds`` where the capture does not have that many yet. One at least, so that a few frames at its
        beginning are no high rate.
        """
        if self.first is None or self.last is None:
            return float(self.seconds)
        end = self.last if now is None else max(now, self.last)
        begin = max(self.first, (end // 1_000_000 - self.seconds + 1) * 1_000_000)
        return max(1.0, (end - begin) / 1e6)

    def slowest(self) -> Slow | None:
        """The second, since the beginning, in which most of what was answered was slow."""
        return self._slower(self._slow, self._of)

    def _slower(self, slow: Slow | None, seconds: Mapping[int, _Second]) -> Slow | None:
        slots = {
            at: {str(api): rates.latencies for (kind, api), rates in one.items() if kind == "api"}
            for at, one in seconds.items()
        }
        found = slowest(slots, self._usual)
        return found if found is not None and (slow is None or found.slow > slow.slow) else slow

    def rates(self, kind: str, now: int | None = None) -> list[tuple[Any, Rates]]:
        """What each API, topic or client did in the last seconds, most requests (of topics: bytes) first.

        ``now``: the time of the capture, in microseconds; by default the latest that was seen.
        """
        sums: dict[Any, Rates] = {}
        for one in self._recent(now):
            for (of, key), rates in one.items():
                if of == kind:
                    sums.setdefault(key, Rates()).add(rates)
        return sorted(sums.items(), key=lambda one: (-one[1].requests, -one[1].bytes, str(one[0])))

    def all(self, now: int | None = None) -> Rates:
        """What all of them did."""
        made = Rates()
        for _, rates in self.rates("api", now):
            made.add(rates)
        return made

    def _recent(self, now: int | None) -> list[_Second]:
        if self.last is None:
            return []
        end = (self.last if now is None else max(now, self.last)) // 1_000_000
        # The second that has begun is not whole, but what happens must be seen at once.
        return [one for second, one in self._of.items() if end - self.seconds < second <= end]

    def _rates(self, kind: str, second: int, key: Any) -> Rates:
        of = self._of.get(second)
        if of is None:
            if self.last is not None and second <= self.last // 1_000_000 - self.seconds:
                return Rates()  # too late: nobody looks at it any more
            of = self._of[second] = {}
        found = of.get((kind, key))
        if found is None:
            if len(of) >= MOST_KEYS or self._held >= MOST_OF_ALL:
                key = _OTHERS if kind != "client" else (_OTHERS, None)
            before = len(of)
            found = of.setdefault((kind, key), Rates())
            self._held += len(of) - before
        return found

    def _saw(self, times: Any) -> None:
        times = times[times != UNDATED]
        if not len(times):
            return
        latest, earliest = int(times.max()), int(times.min())
        if self.first is None or earliest < self.first:
            self.first = earliest
        if self.last is None or latest > self.last:
            self.last = latest
        for second in [one for one in self._of if one <= self.last // 1_000_000 - self.seconds]:
            self._slow = self._slower(self._slow, {second: self._of[second]})
            self._held -= len(self._of.pop(second))

    # -- tables

    def _frames(self, rows: Rows) -> None:
        self._saw(rows.times)
        self.frames += rows.table.num_rows + rows.unconfirmed
        # What has no time is in no second.
        at = np.flatnonzero(rows.times != UNDATED)
        seconds = rows.times // 1_000_000
        sums = rows.values("size")[at], rows.wrong[at].astype(np.int64)
        timed = np.flatnonzero(rows.valid("latency_ms"))
        latencies = rows.table["latency_ms"].fill_null(0).to_numpy()[timed]
        steps = latency_steps(latencies)
        for kind, names in (("api", ("api_name",)), ("client", ("client_host", "client_id"))):
            for *key, direction, second, count, size, bad in rows.totals(at, (*names, "direction", seconds[at]), *sums):
                rates = self._rates(kind, second, (key[0] or "?") if kind == "api" else tuple(key))
                rates.bytes += size
                rates.errors += bad
                if direction == "request":
                    rates.requests += count
                else:
                    rates.responses += count
            for *key, second, step, count, most in rows.totals(timed, (*names, seconds[timed], steps), latencies):
                rates = self._rates(kind, second, (key[0] or "?") if kind == "api" else tuple(key))
                rates.latencies.add(step, count, most)
                if kind == "api" and (key[0] in self._usual or len(self._usual) < MOST_KEYS):
                    self._usual.setdefault(key[0] or "?", Latencies()).add(step, count, most)
        if self._topics:
            frames = rows.values("frame")[timed]
            for k in np.flatnonzero(np.isin(frames, list(self._topics))).tolist():
                for topic in self._topics[int(frames[k])]:
                    rates = self._rates("topic", int(seconds[timed[k]]), topic)
                    rates.latencies.add(int(steps[k]), 1, float(latencies[k]))
            self._topics = {}

    def _partitions(self, rows: Rows) -> None:
        at = rows.where(status="ok", api_name=("Produce", "Fetch", "ShareFetch"))
        at = at[rows.times[at] != UNDATED]
        if not len(at):
            return
        times = rows.times[at]
        self._saw(times)
        wrong = rows.mask("direction", "response") & rows.valid("error") & ~rows.mask("error", "NONE")
        keys = ("frame", "topic", "direction", "api_name", times // 1_000_000)
        sums = rows.values("record_bytes")[at], rows.values("records")[at], wrong[at].astype(np.int64)
        for frame, topic, direction, api, second, _, size, records, bad in rows.totals(at, keys, *sums):
            one = "?" if topic is None else topic
            rates = self._rates("topic", second, one)
            rates.errors += bad
            rates.bytes += size
            if direction == "request":
                rates.requests += 1
                rates.written += size
                rates.records += records
                continue
            self._topics.setdefault(frame, []).append(one)
            rates.responses += 1
            if api != "Produce":
                rates.read += size
                rates.records += records
