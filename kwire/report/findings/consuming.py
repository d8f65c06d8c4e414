"""Rules about how consumers fetch and commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kwire.report.findings.rule import CLIENT, PROCESS, Finding, Rule, busiest, counts, together
from kwire.report.tallies import Rows, Tallies, Tally, firsts

__all__ = ["Commits", "EmptyFetches", "Limits"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    empty_fetches: int = 300
    """Fetch responses of one connection in a minute, if nine of ten are without records."""
    commits: int = 300
    """OffsetCommit requests of one group and process in a minute."""


class EmptyFetches(Rule[Limits]):
    """Fetches that hardly ever bring anything, one behind the other: on a connection, since a consumer asks each broker
    for itself, and waits there."""

    name = "empty-fetches"
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
