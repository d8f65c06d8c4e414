"""Rules about what clients and brokers agree on: versions, coordinators, and sessions of Fetch and SASL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kwire.naming import counted
from kwire.report.findings.rule import BROKER, CLIENT, PROCESS, Finding, Rule, Together, busiest, together
from kwire.report.sums import tuples
from kwire.report.tallies import Rows, Tally

__all__ = ["Coordinators", "FetchSessions", "Limits", "MixedVersions", "ShortSasl"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    session_errors: int = 20
    """Responses that tell one process in a minute that the broker does not know its fetch session."""
    authentications: int = 4
    """How often a client authenticates on one connection in a minute."""
    coordinator_moves: int = 4
    """How often the coordinator of a group is another one, in a minute."""
    version_requests: int = 10
    """Requests of each version, of those with the highest version on each connection."""


_MOST: Final = 1 << 16
"""Connections whose software is remembered."""


class FetchSessions(Rule[Limits]):
    """The broker forgets the fetch sessions of a client over and over, so each Fetch is a full one again.

    Brokers remember ``max.incremental.fetch.session.cache.slots`` sessions (1,000). The largest and oldest stay.
    """

    name = "fetch-sessions"
    finds = (
        "a client whose fetch or share sessions the broker does not know, over and over: too many consumers for its "
        "cache of sessions, or a proxy that mixes up connections"
    )
    thresholds: Mapping[str, str] = {"session_errors": "{} in a minute"}
    place = 110
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "error", *PROCESS)
    by_process = True
    advice = (
        "raise max.incremental.fetch.session.cache.slots of the brokers (group.share.max.share.sessions for share "
        "groups), or have fewer consumers; see whether a proxy sends requests of one client to several brokers"
    )
    errors: frozenset[str] = frozenset(
        ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH", "FETCH_SESSION_TOPIC_ID_ERROR",
         "SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED")
    )  # fmt: skip

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames" and rows.wrong.any():
            told = rows.errors
            self.tallies.add(told, np.flatnonzero(told.mask("error", tuple(sorted(self.errors)))))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.session_errors
        for (host, client, error), found in busiest(self.tallies, together(self.tallies)[1] >= limit):
            one = found.tally
            if one.busiest >= limit:
                said = f"{error} in {counted(one.count, 'response')}, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, **found.who)


class ShortSasl(Rule[Limits]):
    """A client has to authenticate again and again on its connections (KIP-368)."""

    name = "short-sasl-sessions"
    finds = "a client that authenticates over and over on the same connection: its SASL sessions are short (KIP-368)"
    thresholds: Mapping[str, str] = {"authentications": "{} in a minute"}
    place = 252
    tables: tuple[str, ...] = ("frames",)
    keys: tuple[str, ...] = (*CLIENT, "capture", "connection")
    advice = (
        "allow longer sessions (connections.max.reauth.ms of the broker, or tokens that live longer): each "
        "authentication delays what the connection is for"
    )

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="SaslHandshake", direction="request"), each=True)

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.authentications
        found: dict[tuple[Any, ...], tuple[Tally, int, int]] = {}
        for (host, client, _, _), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                tally, connections, most = found.get((host, client), (Tally(), 0, 0))
                tally.join(one)
                found[host, client] = tally, connections + 1, max(most, one.busiest)
        for (host, client), (one, connections, most) in found.items():
            said = f"{one.count} authentications on {counted(connections, 'connection')}, {most} in a minute on one"
            yield self.found(said, one, client_host=host, client_id=client)


class Coordinators(Rule[Limits]):
    """The coordinator of a group moves from broker to broker."""

    name = "coordinator-churn"
    finds = "a group whose coordinator moves over and over: members find it anew each time, and join again"
    thresholds: Mapping[str, str] = {"coordinator_moves": "{} in a minute"}
    place = 72
    tables: tuple[str, ...] = ("group_events",)
    keys: tuple[str, ...] = ("group_id",)
    together: Together = "group"
    advice = (
        "see why leaders of __consumer_offsets move: brokers that restart or lose their connection to the controller, "
        "or a tool that moves partitions"
    )

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(event="coordinator_moved", status="ok"), each=True)

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.coordinator_moves
        for (group,), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                said = f"the coordinator moved {one.count} times, {one.busiest} in a minute"
                yield self.found(said, one, group_id=group)


class MixedVersions(Rule[Limits]):
    """Programs with one client_id speak different versions of an API to one broker at the same time.

    Each speaks the newest version that both sides know, so their libraries are not the same.
    """

    name = "mixed-versions"
    finds = (
        "programs with one client_id that speak different versions of Produce or Fetch to one broker at the same "
        "time: their libraries are not the same"
    )
    thresholds: Mapping[str, str] = {"version_requests": "{} requests of each"}
    place = 310
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = ("client_id", *BROKER, "api_name", "capture", "connection", "api_version", "client_host")
    together: Together = "broker"
    severity = "low"
    advice = "upgrade the ones that were left behind, and give different programs a client.id of their own"
    _APIS = ("Fetch", "Produce")

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._software: dict[tuple[str, int], str] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            sent = rows.where(api_name=self._APIS, direction="request", status="ok")
            self.tallies.add(rows, sent[rows.valid("client_id")[sent]])
            return
        columns = ("capture", "connection", "software_name", "software_version")
        for capture, connection, *words in tuples(rows.part(columns, np.flatnonzero(rows.valid("software_name")))):
            if len(self._software) < _MOST:
                self._software[capture, connection] = " ".join(filter(None, words))

    def findings(self) -> Iterator[Finding]:
        # On a connection the highest version counts: some requests need an older one.
        of: dict[tuple[Any, ...], tuple[int, str, Tally]] = {}
        for (client, broker, port, api, capture, connection, version, host), one in self.tallies.items():
            key = client, broker, port, api, capture, connection
            if one.count >= self.limits.version_requests and version > of.get(key, (-1, "", one))[0]:
                of[key] = version, host, one
        found: dict[tuple[Any, ...], dict[int, tuple[Tally, set[str], set[str]]]] = {}
        for (client, broker, port, api, capture, connection), (version, host, one) in of.items():
            versions = found.setdefault((client, broker, port, api), {})
            tally, software, hosts = versions.setdefault(version, (Tally(), set(), set()))
            tally.join(one)
            software.add(self._software.get((capture, connection), ""))
            hosts.add(host)
        for (client, broker, port, api), versions in found.items():
            few = sorted(versions)
            if len(few) < 2 or not self._differ(versions):
                continue
            tally, hosts = Tally(), set[str]()
            for one, _, mine in versions.values():
                tally.join(one)
                hosts |= mine
            named = [f"v{one}" + self._named(versions[one][1]) for one in few]
            said = f"{api} {', '.join(named[:-1])} and {named[-1]} at {broker}:{port} at the same time"
            host_ = hosts.pop() if len(hosts) == 1 else None
            yield self.found(said, tally, client_host=host_, client_id=client)

    @staticmethod
    def _differ(versions: Mapping[int, tuple[Tally, set[str], set[str]]]) -> bool:
        """Whether the versions are of different software, as far as it says so, and in use at the same time."""
        known = [software for _, software, _ in versions.values()]
        if all(one == known[0] and "" not in one for one in known):
            return False
        spans = [(one.first or 0, one.last or 0) for one, _, _ in versions.values()]
        return max(first for first, _ in spans) < min(last for _, last in spans)

    @staticmethod
    def _named(software: set[str]) -> str:
        known = sorted(filter(None, software))
        return f" ({', '.join(known)})" if known else ""
