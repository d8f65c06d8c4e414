"""Rules about clients and their connections: metadata, quotas, authentication, the order of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from kwire.report.findings.rule import CLIENT, Finding, Rule, kafka_connections
from kwire.report.sums import Spans, tuples
from kwire.report.tallies import Rows

__all__ = ["Churn", "Limits", "Metadata", "OutOfOrder", "ProducerPerMessage", "Sasl", "Throttled"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    metadata_requests: int = 60
    """Metadata requests of one client in a minute."""
    connections: int = 100
    """Connections of one client that begin in a minute."""
    single_produces: int = 30
    """Connections of one client on which it sent one Produce request and no more."""
    throttled_ms: int = 1
    """Milliseconds for which brokers told one client to wait, those of several responses at once counted once."""
    sasl_failures: int = 1
    """Connections on which authentication failed."""
    out_of_order_responses: int = 1
    """Responses of one broker that came after the response to a later request."""


class Metadata(Rule[Limits]):
    """A client asks for metadata over and over."""

    name = "metadata-storm"
    tables = ("frames",)
    keys = CLIENT
    advice = "look for topics that do not exist, clients that are made anew, and a metadata.max.age.ms that is too low"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, rows.where(api_name="Metadata", direction="request"))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.metadata_requests
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                said = f"{one.count} Metadata requests, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


class Churn(Rule[Limits]):
    """A client opens connections all the time."""

    name = "connection-churn"
    tables = ("connections",)
    keys = CLIENT
    advice = "keep one client and its connections for the life of the program"

    def take(self, name: str, rows: Rows) -> None:
        self.tallies.add(rows, kafka_connections(rows, opened=True), each=True)

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.connections
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= limit):
            if one.busiest >= limit:
                said = f"{one.count} connections, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client)


class ProducerPerMessage(Rule[Limits]):
    """A connection for every Produce request: a producer is made for each message."""

    name = "producer-per-message"
    tables = ("connections",)
    keys = CLIENT
    severity = "high"
    advice = "make one producer and use it for all messages: each new one costs connections, metadata and a batch"

    def take(self, name: str, rows: Rows) -> None:
        opened = kafka_connections(rows, opened=True)
        uses = rows.table["apis"].combine_chunks()
        use = pc.list_flatten(uses)
        produce = pc.fill_null(pc.equal(pc.struct_field(use, "api_name"), "Produce"), False).to_numpy(
            zero_copy_only=False
        )
        requests = pc.struct_field(use, "requests").to_numpy()
        of = pc.list_parent_indices(uses).to_numpy()[produce]
        sent = np.zeros(rows.table.num_rows, np.int64)
        np.add.at(sent, of, requests[produce])
        self.tallies.add(rows, opened[sent[opened] == 1], each=True)

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items(self.tallies.totals().count >= self.limits.single_produces):
            said = f"{one.count} connections with one Produce request each"
            yield self.found(said, one, client_host=host, client_id=client)


class Throttled(Rule[Limits]):
    """Brokers tell a client to wait: it is beyond its quota."""

    name = "throttled"
    tables = ("calls",)
    keys = CLIENT
    advice = "raise the quota, or make the client send or fetch less"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._apis: dict[tuple[Any, ...], Counter[str]] = {}
        self._waits = Spans()
        self._last = 0

    def take(self, name: str, rows: Rows) -> None:
        waits = rows.values("throttle_ms")
        self._last = max(self._last, int(rows.times.max(initial=0)))
        told = np.flatnonzero(waits > 0)
        self.tallies.add(rows, told)
        times = rows.times[told].tolist()
        of = tuples(rows.part((*CLIENT, "api_name", "throttle_ms"), told))
        for time, (host, client, api, wait) in zip(times, of, strict=True):
            self._apis.setdefault((host, client), Counter())[api] += 1
            self._waits.add((host, client), time, time + 1000 * wait)

    def findings(self) -> Iterator[Finding]:
        for (host, client), one in self.tallies.items():
            # On several connections it waits at once, and not for longer than the capture goes on.
            waited = self._waits.covered((host, client), self._last) / 1000
            longest = self._waits.covered((host, client)) / 1000
            if longest >= self.limits.throttled_ms:
                apis = ", ".join(f"{api} ({count})" for api, count in self._apis[host, client].most_common())
                said = f"{one.count} responses told it to wait, for {waited:.0f} ms of the capture: {apis}"
                yield self.found(said, one, client_host=host, client_id=client)


class Sasl(Rule[Limits]):
    """Connections on which authentication failed, by principal where secrets are shown."""

    name = "sasl-failures"
    tables = ("connections",)
    keys = (*CLIENT, "principal", "sasl_mechanism", "kind")
    severity = "high"
    advice = "see who it is (--secrets show in the table connections) and give it valid credentials, or block it"

    def take(self, name: str, rows: Rows) -> None:
        failed = kafka_connections(rows)
        failed = failed[rows.mask("sasl_outcome", "failed")[failed]]
        if not len(failed):
            return
        made = rows.part(("connection", "capture", "first_seen", "last_seen", *self.keys[:-1], "sasl_error"), failed)
        # What stands behind the colon is different each time.
        kind = pc.replace_substring_regex(pc.fill_null(made["sasl_error"], ""), "(?s):.*", "")
        self.tallies.add(Rows(made.append_column("kind", kind)), np.arange(len(failed)), each=True)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.sasl_failures
        for (host, client, principal, mechanism, error), one in self.tallies.items(many):
            said = f"{one.count} connections failed to authenticate with {mechanism or 'SASL'}: {error}"
            yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class OutOfOrder(Rule[Limits]):
    """Responses that come after the response to a later request: clients rely on the order of requests."""

    name = "out-of-order-responses"
    tables = ("connections",)
    keys = ("broker_host", "broker_port")
    severity = "high"
    advice = "look at what answers on this port: a proxy or a broker that mixes up responses breaks its clients"

    def take(self, name: str, rows: Rows) -> None:
        late, of = rows.values("out_of_order"), kafka_connections(rows)
        of = of[late[of] > 0]
        self.tallies.add(rows, of, count=late[of], each=True)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.out_of_order_responses
        for (host, port), one in self.tallies.items(many):
            said = f"{one.count} responses of {host}:{port} came after the response to a later request"
            yield self.found(said, one)
