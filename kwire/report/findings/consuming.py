"""Rules about how consumers fetch and commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kwire.report.findings.rule import CLIENT, Finding, Rule, counts
from kwire.report.tallies import Rows, Tallies, firsts

__all__ = ["Commits", "EmptyFetches", "Limits"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    empty_fetches: int = 300
    """Fetch responses without records of one client in a minute, if they are nine of ten."""
    commits: int = 300
    """OffsetCommit requests of one group and client in a minute."""


class EmptyFetches(Rule[Limits]):
    """Fetches that hardly ever bring anything, one behind the other."""

    name = "empty-fetches"
    tables = ("frames", "partitions")
    keys = CLIENT
    advice = "let the broker wait: raise fetch.max.wait.ms and fetch.min.bytes; poll with a timeout"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._full = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
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
        for ((host, client), one), count in zip(self.tallies.items(much), empty[much].tolist(), strict=True):
            if one.busiest >= limit:
                said = f"{count} of {one.count} Fetch responses had no records, {one.busiest} came in a minute"
                yield self.found(said, one, count=count, client_host=host, client_id=client)


class Commits(Rule[Limits]):
    """A client commits offsets all the time."""

    name = "over-committing"
    tables = ("calls",)
    keys = (*CLIENT, "group_id")
    severity = "low"
    advice = "commit by time or by batch (auto.commit.interval.ms), not for every record"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="OffsetCommit", direction="request", status="ok"))

    def findings(self) -> Iterator[Finding]:
        for (host, client, group), one in self.tallies.items(self.tallies.totals().count >= self.limits.commits):
            if one.busiest >= self.limits.commits:
                said = f"{one.count} commits, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, group_id=group)
