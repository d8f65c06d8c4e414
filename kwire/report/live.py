"""What happens now: rates and latencies of the last seconds of a capture that grows. What ``kwire top`` shows.

Strategy: sums are kept by second of the capture's clock and forgotten when they are older than the time that is looked
at. Rules of ``findings`` that need neither the end of a connection nor single records look at everything, and what they
find is told once.

Rules kept here:

- Memory is bounded: of a second at most ``MOST_KEYS`` APIs, topics and clients are told apart, the rest are "others".
- The clock is that of the capture. What comes late counts for its own second, if that is still looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kwire.report import findings as rules
from kwire.report.sums import Latencies, grouped, latency_steps, tuples

__all__ = ["KINDS", "TABLES", "Live", "Rates"]

KINDS: Final = ("api", "topic", "client")
MOST_KEYS: Final = 2_000
_OTHERS: Final = "others"
_SEEN: Final = frozenset(("partitions", "calls", "frames"))
_RULES: Final = [name for name, rule in rules.RULES.items() if _SEEN.issuperset(rule.tables)]
_OWN: Final[dict[str, Sequence[str]]] = {
    # Before frames: what responses are about is asked there.
    "partitions": (
        "frame", "frame_timestamp", "direction", "api_name", "topic", "topic_id", "record_bytes", "records", "error",
        "status",
    ),
    "frames": (
        "frame", "timestamp", "direction", "client_host", "client_id", "api_name", "size", "latency_ms", "errors",
    ),
}  # fmt: skip


def _tables() -> dict[str, Sequence[str]]:
    of_rules = rules.needed(_RULES, also=False)
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
        """Takes all that another one has."""
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
        self.last: int | None = None
        """The latest time that was seen, in microseconds since 1970."""
        self.frames = 0
        """Frames since the beginning."""
        self.found: list[rules.Finding] = []
        """Findings, in the order in which they appeared."""
        self._of: OrderedDict[int, _Second] = OrderedDict()
        self._topics: dict[int, list[str]] = {}
        self._finder = rules.Finder(_RULES, thresholds)
        self._needed = rules.needed(_RULES, also=False)
        self._known: set[tuple[Any, ...]] = set()

    def add(self, name: str, batch: pa.RecordBatch) -> None:
        """Takes rows of the table ``name``."""
        table = pa.Table.from_batches([batch])
        if name in self._needed:
            self._finder.add(name, batch)
        if name == "frames":
            self._frames(table)
        elif name == "partitions":
            self._partitions(table)

    def look(self) -> list[rules.Finding]:
        """The findings that are new since it looked last; they are in ``found`` too."""
        fresh = []
        for one in self._finder.result():
            key = (one.rule, one.client_host, one.client_id, one.group_id, one.topic, one.partition)
            if key not in self._known:
                self._known.add(key)
                fresh.append(one)
        self.found += fresh
        return fresh

    def rates(self, kind: str, now: int | None = None) -> list[tuple[Any, Rates]]:
        """What each API, topic or client did in the last seconds, most requests (of topics: bytes) first. ``now``: the
        time of the capture, in microseconds; by default the latest that was seen."""
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
        # The second that has begun is not whole, but what happens is to be seen at once.
        return [one for second, one in self._of.items() if end - self.seconds < second <= end]

    def _rates(self, kind: str, second: int, key: Any) -> Rates:
        of = self._of.get(second)
        if of is None:
            if self.last is not None and second <= self.last // 1_000_000 - self.seconds:
                return Rates()  # too late: nobody looks at it any more
            of = self._of[second] = {}
        found = of.get((kind, key))
        if found is None:
            if len(of) >= MOST_KEYS:
                key = _OTHERS if kind != "client" else (_OTHERS, None)
            found = of.setdefault((kind, key), Rates())
        return found

    def _saw(self, times: Any) -> None:
        latest = int(times.max())
        if self.last is None or latest > self.last:
            self.last = latest
        for second in [one for one in self._of if one <= self.last // 1_000_000 - self.seconds]:
            del self._of[second]

    # -- tables

    def _frames(self, table: pa.Table) -> None:
        times = table["timestamp"].cast(pa.int64())
        self._saw(times.to_numpy())
        self.frames += table.num_rows
        api = pc.fill_null(table["api_name"], "?")
        table = table.set_column(table.column_names.index("api_name"), "api_name", api)
        wrong = pc.greater(pc.fill_null(pc.list_value_length(table["errors"]), 0), 0)
        steps = latency_steps(pc.fill_null(table["latency_ms"], 0.0).to_numpy())
        table = table.append_column("second", pc.divide(times, 1_000_000))
        table = table.append_column("wrong", wrong.cast(pa.int64())).append_column("step", pa.array(steps))
        for kind, names in (("api", ("api_name",)), ("client", ("client_host", "client_id"))):
            sums: Mapping[str, tuple[str, str]] = {"size": ("size", "sum"), "wrong": ("wrong", "sum")}
            for *key, way, second, count, size, bad in grouped(table, (*names, "direction", "second"), **sums):
                rates = self._rates(kind, second, key[0] if kind == "api" else tuple(key))
                rates.bytes += size
                rates.errors += bad
                if way == "request":
                    rates.requests += count
                else:
                    rates.responses += count
            told = table.filter(pc.is_valid(table["latency_ms"]))
            for *key, second, step, count, most in grouped(
                told, (*names, "second", "step"), most=("latency_ms", "max")
            ):
                self._rates(kind, second, key[0] if kind == "api" else tuple(key)).latencies.add(step, count, most)
        if self._topics:
            about = pc.is_in(table["frame"], value_set=pa.array(list(self._topics), table["frame"].type))
            told = table.filter(pc.and_(about, pc.is_valid(table["latency_ms"])))
            for frame, second, step, latency in tuples(told.select(["frame", "second", "step", "latency_ms"])):
                for topic in self._topics[frame]:
                    self._rates("topic", second, topic).latencies.add(step, 1, latency)
            self._topics = {}

    def _partitions(self, table: pa.Table) -> None:
        table = table.filter(pc.equal(table["status"], "ok"))
        table = table.filter(pc.is_in(table["api_name"], value_set=pa.array(("Produce", "Fetch", "ShareFetch"))))
        if not table.num_rows:
            return
        times = table["frame_timestamp"].cast(pa.int64())
        self._saw(times.to_numpy())
        topic = pc.fill_null(pc.coalesce(table["topic"], table["topic_id"]), "?")
        table = table.append_column("of", topic).append_column("second", pc.divide(times, 1_000_000))
        wrong = pc.and_(
            pc.not_equal(pc.fill_null(table["error"], "NONE"), "NONE"), pc.equal(table["direction"], "response")
        )
        table = table.append_column("wrong", wrong.cast(pa.int64()))
        for frame, one, way, api, second, _, size, records, bad in grouped(
            table, ("frame", "of", "direction", "api_name", "second"), size=("record_bytes", "sum"),
            records=("records", "sum"), wrong=("wrong", "sum"),
        ):  # fmt: skip
            rates = self._rates("topic", second, one)
            rates.errors += bad
            rates.bytes += size
            if way == "request":
                rates.requests += 1
                rates.written += size
                rates.records += records
                continue
            self._topics.setdefault(frame, []).append(one)
            rates.responses += 1
            if api != "Produce":
                rates.read += size
                rates.records += records
