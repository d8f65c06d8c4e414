"""Rules about clients and their connections: metadata, quotas, authentication, the order of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.report.findings.rule import CLIENT, PROCESS, Finding, Rule, busiest, counts, kafka_connections, together
from kwire.report.sums import UNDATED, Spans, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally

__all__ = ["Churn", "Limits", "Metadata", "OutOfOrder", "ProducerPerMessage", "Sasl", "Throttled"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    metadata_requests: int = 60
    """Metadata requests of one process in a minute."""
    connections: int = 100
    """Connections of one client that begin in a minute."""
    single_produces: int = 30
    """Connections of one client on which it sent one Produce request and no more."""
    cut_off: int = 3
    """Connections that a broker closed, of one client, although it had not answered."""
    throttled_ms: int = 1
    """Milliseconds for which brokers told one client to wait, those of several responses at once counted once."""
    sasl_failures: int = 1
    """Connections on which authentication failed."""
    out_of_order_responses: int = 1
    """Responses of one broker that came after the response to a later request."""


class Metadata(Rule[Limits]):
    """A client asks for metadata over and over."""

    name = "metadata-storm"
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, *PROCESS)
    by_process = True
    advice = "look for topics that do not exist, and a metadata.max.age.ms that is too low"

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            self.tallies.add(rows, rows.where(api_name="Metadata", direction="request"))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.metadata_requests
        for (host, client), found in busiest(self.tallies, together(self.tallies)[1] >= limit):
            one = found.tally
            if one.busiest >= limit:
                said = f"{one.count} Metadata requests, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, **found.who)


class Churn(Rule[Limits]):
    """A client opens connections all the time."""

    name = "connection-churn"
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = CLIENT
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
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = CLIENT
    severity = "high"
    advice = "make one producer and use it for all messages: each new one costs connections, metadata and a batch"

    def take(self, name: str, rows: Rows) -> None:
        # A broker that does not know what a client asks closes the connection: then it is not the client that makes
        # a new one for each message.
        opened = kafka_connections(rows, opened=True)
        opened = opened[~cut_off(rows)[opened]]
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


def cut_off(rows: Rows) -> Array:
    """Which connections a broker closed although it had not answered all."""
    return rows.mask("ended_by", "broker") & (rows.values("unanswered") > 0)


class CutOff(Rule[Limits]):
    """A broker closes the connections of a client, each time when it asks for the same, and never answers that: it does
    not serve this version, or does not speak what the client speaks."""

    name = "cut-off-clients"
    tables: tuple[str, ...] = ("connections", "frames")
    keys: tuple[str, ...] = (*CLIENT, "api_name", "api_version")
    severity = "high"
    # Each time it connects anew, asks for metadata and tries again.
    explains: tuple[str, ...] = ("metadata-storm", "connection-churn", "producer-per-message")
    advice = (
        "the broker does not serve this version of the API (kwire audit says which clients it concerns): upgrade the "
        "client, or see the broker's log for what it does not like"
    )

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._answered = Tallies(*self.keys)

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            self._answered.add(rows, rows.where(direction="response"))
            return
        cut = kafka_connections(rows)
        cut = cut[cut_off(rows)[cut]]
        if not len(cut):
            return
        uses = rows.table["apis"].combine_chunks().take(pa.array(cut))
        use = pc.list_flatten(uses)
        columns = ("capture", "connection", "first_seen", "last_seen", "unanswered", *CLIENT)
        made = rows.part(columns, cut).take(pc.list_parent_indices(uses))
        for column in ("api_name", "api_version"):
            made = made.append_column(column, pc.struct_field(use, column))
        # Of what nobody answers, no request was answered.
        open_ = pc.less_equal(pc.struct_field(use, "requests"), made["unanswered"]).to_numpy()
        self.tallies.add(Rows(made), np.flatnonzero(open_), each=True)

    def findings(self) -> Iterator[Finding]:
        many = (self.tallies.totals().count >= self.limits.cut_off) & (counts(self.tallies, self._answered) == 0)
        of_clients: dict[tuple[Any, ...], dict[str, Tally]] = {}
        for (*client, api, version), one in self.tallies.items(many):
            of_clients.setdefault(tuple(client), {})[f"{api} v{version}"] = one
        for (host, client), apis in of_clients.items():
            most = max(apis.values(), key=lambda one: one.count)
            said = f"the broker closed {most.count} connections and never answered {', '.join(apis)}"
            yield self.found(said, most, client_host=host, client_id=client)


class Throttled(Rule[Limits]):
    """Brokers tell a client to wait: it is beyond its quota."""

    name = "throttled"
    tables: tuple[str, ...] = ("calls",)
    keys: tuple[str, ...] = CLIENT
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
        told = told[rows.times[told] != UNDATED]
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
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "principal", "sasl_mechanism", "kind")
    severity = "high"
    explains: tuple[str, ...] = ("connection-churn",)
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
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = ("broker_host", "broker_port")
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
