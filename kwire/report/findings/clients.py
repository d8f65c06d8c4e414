"""Rules about clients and their connections: metadata, quotas, authentication, the order of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.naming import counted
from kwire.report.findings.rule import (
    BROKER,
    CLIENT,
    PROCESS,
    Finding,
    Rule,
    busiest,
    counts,
    kafka_connections,
    keyed,
    together,
)
from kwire.report.sums import UNDATED, Spans, tuples
from kwire.report.tallies import Array, Rows, Tallies, Tally

__all__ = [
    "Churn",
    "Limits",
    "Lookups",
    "Metadata",
    "OutOfOrder",
    "ProducerPerMessage",
    "Sasl",
    "Throttled",
    "TlsMismatch",
]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    metadata_requests: int = 60
    """Metadata requests of one process in a minute."""
    lookups: int = 600
    """Requests of one process and API in a minute, of those in ``LOOKUPS``."""
    connections: int = 100
    """Connections of one client that begin in a minute."""
    single_produces: int = 30
    """Connections of one client on which it sent one Produce request and no more."""
    cut_off: int = 3
    """Connections that a broker closed, of one client, although it had not answered."""
    tls_mismatches: int = 1
    """Connections on which one end speaks TLS and the other does not."""
    throttled_ms: int = 1
    """Milliseconds for which brokers made one client wait.

    Those of several responses at once are counted once.
    """
    sasl_failures: int = 1
    """Connections on which authentication failed."""
    out_of_order_responses: int = 1
    """Responses of one broker that came after the response to a later request."""


class Metadata(Rule[Limits]):
    """A client asks for metadata over and over."""

    name = "metadata-storm"
    finds = "a process that asks for metadata over and over"
    thresholds: Mapping[str, str] = {"metadata_requests": "{} in a minute"}
    place = 40
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
                yield self.found(said, one, client_host=host, client_id=client, busy=one.busy(limit), **found.who)


LOOKUPS: Final = (
    "ConsumerGroupDescribe", "DescribeAcls", "DescribeCluster", "DescribeConfigs", "DescribeGroups",
    "DescribeLogDirs", "DescribeProducers", "DescribeQuorum", "DescribeTopicPartitions", "DescribeTransactions",
    "FindCoordinator", "InitProducerId", "ListGroups", "ListOffsets", "ListTransactions", "OffsetFetch",
    "OffsetForLeaderEpoch",
)  # fmt: skip
"""APIs about offsets, coordinators, groups and brokers. A program needs them once, or once in some seconds."""


class Lookups(Rule[Limits]):
    """A client asks for offsets, coordinators or descriptions over and over."""

    name = "lookup-storm"
    finds = "a process that asks for offsets, coordinators or descriptions over and over"
    thresholds: Mapping[str, str] = {"lookups": "{} of one API in a minute"}
    place = 45
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "api_name", *PROCESS)
    by_process = True
    advice = "ask once in some seconds, and keep the answer; ask for all partitions or groups in one request"

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            self.tallies.add(rows, rows.where(api_name=LOOKUPS, direction="request"))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.lookups
        for (host, client, api), found in busiest(self.tallies, together(self.tallies)[1] >= limit):
            one = found.tally
            if one.busiest >= limit:
                said = f"{one.count} {api} requests, {one.busiest} in a minute"
                yield self.found(said, one, client_host=host, client_id=client, busy=one.busy(limit), **found.who)


class Churn(Rule[Limits]):
    """A client opens connections all the time."""

    name = "connection-churn"
    finds = "a client that opens connections all the time; those that were open before the capture do not count"
    thresholds: Mapping[str, str] = {"connections": "{} in a minute"}
    place = 50
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
                busy = one.busy(self.limits.connections)
                yield self.found(said, one, client_host=host, client_id=client, busy=busy)


class ProducerPerMessage(Rule[Limits]):
    """A connection for every Produce request: a producer is made for each message.

    A script that writes to several partitions has a connection to each leader. Such connections count once: they are
    open at the same time, to different brokers.
    """

    name = "producer-per-message"
    finds = (
        "connections on which a client sent one Produce request and no more; those that were open before the "
        "capture, or that a broker closed without an answer, do not count; those of one script to several leaders "
        "count once"
    )
    thresholds: Mapping[str, str] = {"single_produces": "{}"}
    place = 60
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = CLIENT
    severity = "high"
    advice = "make one producer and use it for all messages: each new one costs connections, metadata and a batch"
    _COLUMNS = ("first_seen", "last_seen", *CLIENT, *BROKER)
    _MOST = 1 << 17
    """Connections that are kept. Each further one counts."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._single: list[pa.Table] = []
        self._kept = 0

    def take(self, name: str, rows: Rows) -> None:
        # A broker that does not know what a client asks closes the connection. Then the client does not choose to make
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
        single = opened[sent[opened] == 1]
        self.tallies.add(rows, single, each=True)
        if len(single):
            self._single.append(rows.part(self._COLUMNS, single[: self._MOST - self._kept]))
            self._kept += self._single[-1].num_rows

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.single_produces
        many = self.tallies.totals().count >= limit
        beside = self._beside() if many.any() else Counter()
        for (host, client), one in self.tallies.items(many):
            count = one.count - beside[host, client]
            if count >= limit:
                said = f"{counted(count, 'connection')} with one Produce request each"
                yield self.found(said, one, count=count, client_host=host, client_id=client)

    def _beside(self) -> Counter[tuple[Any, ...]]:
        """How many connections of each client do not count, since another one to another broker does."""
        rows = Rows(pa.concat_tables(self._single))
        every = np.arange(rows.table.num_rows)
        began, ended = rows.values("first_seen", UNDATED), rows.values("last_seen", UNDATED)
        clients, names = keyed(rows, CLIENT, every)
        order = np.lexsort((began, clients))
        # A group of connections: each begins before those before it have ended.
        reach = np.empty(len(order), np.int64)
        own, began = clients[order], began[order]
        first = np.append(True, own[1:] != own[:-1])
        starts = np.flatnonzero(first)
        for start, end in zip(starts.tolist(), np.append(starts[1:], len(order)).tolist(), strict=True):
            reach[start:end] = np.maximum.accumulate(ended[order[start:end]])
        new = first | np.append(True, began[1:] > reach[:-1])
        times = np.cumsum(new)
        brokers = rows.numbers(BROKER, every)[order]
        # Of each group: the connections to the broker that has most of them.
        pairs, counts_ = np.unique(times * (brokers.max() + 1) + brokers, return_counts=True)
        most = np.zeros(times[-1] + 1, np.int64)
        np.maximum.at(most, pairs // (brokers.max() + 1), counts_)
        beside = np.bincount(own, minlength=len(names)) - np.bincount(
            own[new], weights=most[times[new]], minlength=len(names)
        ).astype(np.int64)
        return Counter(dict(zip(names, beside.tolist(), strict=True)))


def cut_off(rows: Rows) -> Array:
    """Which connections a broker closed although it had not answered all."""
    return rows.mask("ended_by", "broker") & (rows.values("unanswered") > 0)


class CutOff(Rule[Limits]):
    """A broker closes the connections of a client each time it asks for the same, without an answer.

    The broker does not serve this version, or does not speak what the client speaks.
    """

    name = "cut-off-clients"
    finds = (
        "a client whose connections a broker closes, each time without an answer to an API that it never "
        "answers: it does not serve this version"
    )
    thresholds: Mapping[str, str] = {"cut_off": "{} connections"}
    place = 260
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
            said = f"the broker closed {counted(most.count, 'connection')} and never answered {', '.join(apis)}"
            yield self.found(said, most, client_host=host, client_id=client)


class TlsMismatch(Rule[Limits]):
    """A client speaks TLS to a listener that does not, or does not speak it to one that does.

    A listener without TLS reads the first bytes of TLS as a size, which is too large. It closes the connection without
    a byte. A listener with TLS answers any request with an alert.
    """

    name = "tls-mismatch"
    finds = (
        "a client that speaks TLS to a listener that does not, or the other way round: the broker closes the "
        "connection without a byte, or answers with a TLS alert"
    )
    thresholds: Mapping[str, str] = {"tls_mismatches": "{} connection"}
    place = 255
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, *BROKER, "tls")
    severity = "high"
    explains: tuple[str, ...] = ("cut-off-clients", "connection-churn", "metadata-storm")
    advice = "set security.protocol of the client to that of the listener, or give it the port of another listener"
    _ALERT = 7
    """Bytes of a TLS alert. A response of Kafka has eight at least."""
    _NAMED = 5
    """Brokers that a finding names."""

    def take(self, name: str, rows: Rows) -> None:
        mine = kafka_connections(rows, opened=True)
        mine = mine[rows.mask("ended_by", "broker")[mine]]
        tls, got = rows.mask("tls", True)[mine], rows.values("broker_bytes")[mine]
        hello = tls & ~rows.valid("tls_version")[mine] & (got == 0)
        requests = rows.values("requests")[mine]
        plain = ~tls & (got == self._ALERT) & (requests > 0) & (rows.values("unanswered")[mine] == requests)
        self.tallies.add(rows, mine[hello | plain], each=True)

    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[Any, ...], tuple[Tally, list[str]]] = {}
        for (host, client, broker, port, tls), one in self.tallies.items():
            tally, brokers = together.setdefault((host, client, tls), (Tally(), []))
            tally.join(one)
            brokers.append(f"{broker}:{port}")
        for (host, client, tls), (one, brokers) in together.items():
            if one.count < self.limits.tls_mismatches:
                continue
            at = f"{counted(one.count, 'connection')} to {', '.join(brokers[: self._NAMED])}"
            if len(brokers) > self._NAMED:
                at += f" and {len(brokers) - self._NAMED} others"
            said = "with TLS, and the broker closed them without a byte"
            if not tls:
                said = "without TLS, and the broker answered with a TLS alert"
            yield self.found(f"{at} began {said}", one, client_host=host, client_id=client)


class Throttled(Rule[Limits]):
    """Brokers tell a client to wait: it is beyond its quota."""

    name = "throttled"
    finds = "a client that is told to wait: it is beyond its quota; what several responses tell at once counts once"
    thresholds: Mapping[str, str] = {"throttled_ms": "{}"}
    place = 150
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
                said = f"{counted(one.count, 'response')} told it to wait, for {waited:.0f} ms of the capture: {apis}"
                yield self.found(said, one, client_host=host, client_id=client)


class Sasl(Rule[Limits]):
    """Connections on which authentication failed, by principal where secrets are shown."""

    name = "sasl-failures"
    finds = "connections on which authentication failed, by mechanism and error"
    thresholds: Mapping[str, str] = {"sasl_failures": "{}"}
    place = 250
    tables: tuple[str, ...] = ("connections",)
    keys: tuple[str, ...] = (*CLIENT, "principal", "sasl_mechanism", "kind")
    severity = "high"
    errors: frozenset[str] = frozenset(("SASL_AUTHENTICATION_FAILED",))
    explains: tuple[str, ...] = ("connection-churn",)
    advice = "see who it is (--secrets show in the table connections) and give it valid credentials, or block it"

    def take(self, name: str, rows: Rows) -> None:
        failed = kafka_connections(rows)
        failed = failed[rows.mask("sasl_outcome", "failed")[failed]]
        if not len(failed):
            return
        made = rows.part(("connection", "capture", "first_seen", "last_seen", *self.keys[:-1], "sasl_error"), failed)
        # What follows the colon is different each time.
        kind = pc.replace_substring_regex(pc.fill_null(made["sasl_error"], ""), "(?s):.*", "")
        self.tallies.add(Rows(made.append_column("kind", kind)), np.arange(len(failed)), each=True)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.limits.sasl_failures
        for (host, client, principal, mechanism, error), one in self.tallies.items(many):
            said = f"{counted(one.count, 'connection')} failed to authenticate with {mechanism or 'SASL'}: {error}"
            yield self.found(said, one, client_host=host, client_id=client, principal=principal)


class OutOfOrder(Rule[Limits]):
    """Responses that come after the response to a later request: clients rely on the order of requests."""

    name = "out-of-order-responses"
    finds = "a broker or proxy whose responses come after the response to a later request, which breaks clients"
    thresholds: Mapping[str, str] = {"out_of_order_responses": "{}"}
    place = 270
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
            said = f"{counted(one.count, 'response')} of {host}:{port} came after the response to a later request"
            yield self.found(said, one)
