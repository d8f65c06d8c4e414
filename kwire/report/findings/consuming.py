"""Rules about how consumers fetch and commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kwire.report.audit import OF_BROKERS
from kwire.report.findings.rule import BROKER, CLIENT, PROCESS, Finding, Rule, busiest, counts, together
from kwire.report.tallies import Rows, Tallies, Tally, among, firsts

__all__ = ["Commits", "EmptyFetches", "Limits", "Resets"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    empty_fetches: int = 300
    """Fetch responses of one connection in a minute, if nine of ten are without records."""
    commits: int = 300
    """OffsetCommit requests of one group and process in a minute."""
    offset_resets: int = 1
    """Fetch responses that tell one client that the log of a topic does not have the offset."""


class EmptyFetches(Rule[Limits]):
    """Fetches one after the other that hardly ever bring anything.

    They are counted by connection, since a consumer asks each broker for itself, and waits there.
    """

    name = "empty-fetches"
    finds = "Fetch responses without records on a connection, nine of ten, one behind the other"
    thresholds: Mapping[str, str] = {"empty_fetches": "{} in a minute"}
    place = 100
    tables: tuple[str, ...] = ("frames", "partitions")
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, *PROCESS)
    by_process = True
    advice = "let the broker wait: raise fetch.max.wait.ms and fetch.min.bytes; poll with a timeout"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._full = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        if name == "connections":
            return
        answers = rows.where(api_name="Fetch", direction="response")
        if name == "frames":
            self.tallies.add(rows, answers)
            return
        filled = answers[rows.values("record_bytes")[answers] > 0]
        # Each frame once, however many partitions it fills.
        self._full.add(rows, filled[firsts(rows.numbers(("capture", "frame", *CLIENT), filled))])

    def findings(self) -> Iterator[Finding]:
        all_of, limit = self.tallies.totals().count, self.limits.empty_fetches
        empty = all_of - counts(self.tallies, self._full)
        much = (all_of >= limit) & (empty * 10 >= all_of * 9)
        found: dict[tuple[Any, ...], tuple[Tally, int]] = {}
        for (key, one), count in zip(self.tallies.items(much), empty[much].tolist(), strict=True):
            if one.busiest >= limit:
                mine, none = found.get(key[: len(CLIENT)], (Tally(), 0))
                mine.join(one)
                found[key[: len(CLIENT)]] = mine, none + count
        for (host, client), (one, count) in found.items():
            said = f"{count} of {one.count} Fetch responses had no records, {one.busiest} came in a minute"
            yield self.found(said, one, count=count, client_host=host, client_id=client)


class Commits(Rule[Limits]):
    """A client commits offsets all the time."""

    name = "over-committing"
    finds = "a process that commits all the time"
    thresholds: Mapping[str, str] = {"commits": "{} in a minute"}
    place = 110
    tables: tuple[str, ...] = ("calls",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "group_id", *PROCESS)
    by_process = True
    severity = "low"
    advice = "commit by time or by batch (auto.commit.interval.ms), not for every record"

    def take(self, name: str, rows: Rows) -> None:
        if name == "calls":
            self.tallies.add(rows, rows.where(api_name="OffsetCommit", direction="request", status="ok"))

    def findings(self) -> Iterator[Finding]:
        much = together(self.tallies)[1] >= self.limits.commits
        for (host, client, group), found in busiest(self.tallies, much):
            one = found.tally
            if one.busiest >= self.limits.commits:
                said = f"{one.count} commits, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group, **found.who)


class Resets(Rule[Limits]):
    """A consumer asks for an offset that the log does not have.

    Records were deleted before they were read, or the log is shorter than it was. Then it goes on elsewhere, or not at
    all.

    A follower that does not have it yet is none: then the consumer asks the leader for the same offset.
    """

    name = "offset-resets"
    finds = (
        "a consumer that asks for an offset that the log does not have, and begins anew elsewhere: records "
        "are lost or read twice. Followers that do not have it yet do not count"
    )
    thresholds: Mapping[str, str] = {"offset_resets": "{}"}
    place = 130
    tables: tuple[str, ...] = ("partitions",)
    keys: tuple[str, ...] = (*CLIENT, "topic", "partition", *BROKER)
    severity = "high"
    advice = (
        "records were lost or are read twice: see whether retention is shorter than consumers are away or behind "
        "(retention.ms, retention.bytes), and whether the topic was made anew; auto.offset.reset says where to go on"
    )
    _PLACE = (*CLIENT, "topic", "partition")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._after = Tallies(*self._PLACE, *BROKER, "api_name", "offset_spec")
        """What was asked for in a place that had such an error, after it or in the same batch."""

    def take(self, name: str, rows: Rows) -> None:
        told = rows.where(api_name="Fetch", direction="response", error="OFFSET_OUT_OF_RANGE")
        self.tallies.add(rows, told, each=True)
        if not self.tallies.kept:
            return
        asked = rows.where(api_name=("Fetch", "ListOffsets"), direction="request")
        places = self.tallies.totals().keys.select(list(self._PLACE)).group_by(list(self._PLACE)).aggregate([])
        self._after.add(rows, asked[among(rows.part(self._PLACE, asked), places) >= 0])

    def findings(self) -> Iterator[Finding]:
        after: dict[tuple[Any, ...], list[tuple[tuple[Any, ...], Tally]]] = {}
        for key, one in self._after.items():
            after.setdefault(key[:4], []).append((key[4:], one))
        topics: dict[tuple[Any, ...], tuple[Tally, dict[int, None], dict[str, None]]] = {}
        for (host, client, topic, partition, *broker), one in self.tallies.items():
            if client is not None and OF_BROKERS.fullmatch(client):
                continue
            asked = after.get((host, client, topic, partition), ())
            late = [key for key, other in asked if (other.last or 0) >= (one.first or 0)]
            asks = [spec for *_, api, spec in late if api == "ListOffsets"]
            if not asks and any([*key[:2]] != broker for key in late):
                continue
            tally, partitions, where = topics.setdefault((host, client, topic), (Tally(), {}, {}))
            tally.join(one)
            partitions[partition] = None
            where.update(dict.fromkeys(spec for spec in asks if spec))
        for (host, client, topic), (tally, partitions, where) in topics.items():
            if tally.count < self.limits.offset_resets:
                continue
            said = f"{tally.count} Fetch responses said that the log does not have the offset"
            if len(partitions) > 1:
                said += f", of {len(partitions)} partitions"
            if where:
                said += f"; then it asked for the {' and the '.join(sorted(where))} one"
            only = next(iter(partitions)) if len(partitions) == 1 else None
            yield self.found(said, tally, client_host=host, client_id=client, topic=topic, partition=only)
