"""Rules about errors that brokers answer with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.naming import counted
from kwire.report.findings.clients import LOOKUPS
from kwire.report.findings.rule import CLIENT, Finding, Rule
from kwire.report.sums import UNDATED, tuples
from kwire.report.tallies import MOST_EVIDENCE, Array, Rows, Tallies, Tally, firsts

__all__ = ["Denied", "Errors", "Fatal", "Fenced", "Limits", "Repeated", "StaleLeaders", "UnknownTopics"]


@dataclass(frozen=True)
class Limits:
    """From where on it is a finding. Rates are per minute of the capture's clock."""

    stale_leaders: int = 20
    """Answers in a row of one broker to one connection that it does not lead a partition."""
    leader_moves: int = 4
    """Steps of ten seconds within a minute in which a client is told that a partition has another leader."""
    fenced: int = 1
    """Errors that tell a producer that another one has taken over, or that it is not known."""
    unknown_topics: int = 20
    """Responses that tell one client of one API that a topic or partition does not exist."""
    denials: int = 1
    """Requests that were refused for want of authorization."""
    fatal_errors: int = 1
    """The same error, of one client and API, of those that no client can mend."""
    repeated_errors: int = 20
    """The same error, of one client and API."""
    retried_seconds: float = 60.0
    """For how long a client got no other answer, where the error is usual in normal operation."""


class Errors(Rule[Limits]):
    """Errors in responses to clients, by kind."""

    tables: tuple[str, ...] = ("frames",)
    keys: tuple[str, ...] = (*CLIENT, "api_name", "error")

    def take(self, name: str, rows: Rows) -> None:
        told = rows.errors
        if not told.table.num_rows:
            return
        # How a client finds out which versions there are (KIP-511): it asks once more, and no harm is done.
        asked = told.mask("api_name", "ApiVersions") & told.mask("error", "UNSUPPORTED_VERSION")
        self.tallies.add(told, np.flatnonzero(self.wanted(told) & ~asked))

    def wanted(self, rows: Rows) -> Array:
        """Which of these errors this rule is about."""
        return rows.mask("error", tuple(sorted(self.errors)))

    def enough(self) -> int:
        """How many are a finding."""
        raise NotImplementedError

    def findings(self) -> Iterator[Finding]:
        for (host, client, api, error), one in self.tallies.items(self.tallies.totals().count >= self.enough()):
            said = f"{error} in {counted(one.count, f'{api} response')}"
            yield self.found(said, one, client_host=host, client_id=client, explains=self.follows(api))

    def follows(self, api: str) -> tuple[str, ...]:
        """Rules that find what a client does after such an error."""
        return self.explains


@dataclass(slots=True)
class _Run:
    """Answers in a row that a broker does not lead a partition, to requests that knew the one before."""

    tally: Tally = field(default_factory=Tally)
    errors: dict[str, None] = field(default_factory=dict)
    asked: bool = True
    """Whether it asked again after the last of them."""


class StaleLeaders(Rule[Limits]):
    """A client goes on asking a broker that does not lead the partition, or the leader moves all the time.

    When a broker restarts, each of its partitions moves. Clients are told so, look for the new leader, and may be told
    again some times until all brokers know it. So answers count by partition, broker and connection, as long as none
    is a good one. Of what was sent at once, one counts.
    """

    name = "stale-leaders"
    finds = (
        "a client that asks the same broker for the same partition, although that answers each time that it does not "
        "lead it; or a partition whose leader moves all the time"
    )
    thresholds: Mapping[str, str] = {
        "stale_leaders": "{} times in a row",
        "leader_moves": "in {} steps of ten seconds of a minute",
    }
    place = 190
    tables: tuple[str, ...] = ("partitions",)
    keys: tuple[str, ...] = (*CLIENT, "topic", "partition")
    # After each such error it asks for metadata.
    explains: tuple[str, ...] = ("metadata-storm",)
    advice = "see whether leaders change all the time, and whether the client refreshes its metadata after such errors"
    errors: frozenset[str] = frozenset(
        ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "LEADER_NOT_AVAILABLE")
    )
    _PLACE = ("capture", "connection", "api_name", "topic", "topic_id", "partition")
    _KEY = (*CLIENT, "api_name", "topic", "topic_id", "partition")
    _MOST = 1 << 16
    """Partitions of connections that are remembered."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._runs: dict[tuple[Any, ...], tuple[tuple[Any, ...], _Run]] = {}
        """Those that go on: by ``_PLACE``, with their ``_KEY``."""
        self._long: list[tuple[tuple[Any, ...], _Run]] = []
        """Those that were long enough, and are over."""

    def take(self, name: str, rows: Rows) -> None:
        wrong = rows.mask("direction", "response") & rows.mask("error", tuple(sorted(self.errors)))
        # Metadata responses say so of partitions without a leader, and of new topics.
        wrong &= ~rows.mask("api_name", "Metadata")
        if not wrong.any() and not self._runs:
            return
        # Members of a quorum find out so who leads it.
        of_quorum = pc.fill_null(pc.starts_with(rows.table["client_id"].cast(pa.string()), "raft-client-"), False)
        wrong &= ~of_quorum.to_numpy()
        at = rows.where(status="ok")
        of = rows.numbers(self._PLACE, at)
        there = np.zeros(int(of.max(initial=-1)) + 1, bool)
        there[of[wrong[at]]] = True
        if self._runs:
            there |= np.array([place in self._runs for place in tuples(rows.part(self._PLACE, at[firsts(of)]))], bool)
        at = at[there[of]]
        places = tuples(rows.part(self._PLACE, at))
        said = tuples(rows.part((*self._KEY, "error", "direction", "frame"), at))
        each = zip(places, said, rows.stated[at].tolist(), wrong[at].tolist(), strict=True)
        begins = np.array([self._begins(*one) for one in each], bool)
        self.tallies.add(rows, at[begins], each=True)

    def _begins(self, place: tuple[Any, ...], said: tuple[Any, ...], time: int, wrong: bool) -> bool:
        """Take a row of a partition of a connection. Returns whether a run begins with it."""
        *key, error, direction, frame = said
        run = self._runs.get(place, (None, None))[1]
        if not wrong:
            if run is not None and direction == "request":
                run.asked = True
            elif run is not None and error == "NONE":
                self._end(place)
            return False
        begins = run is None
        if run is None:
            run = _Run()
            self._runs[place] = tuple(key), run
            if len(self._runs) > self._MOST:
                self._end(next(iter(self._runs)))
        if run.asked:
            where = ((*place[:2], frame),) if run.tally.count < MOST_EVIDENCE else ()
            seen = None if time == UNDATED else time
            run.tally.join(Tally(1, 0, seen, seen, where))
            run.errors[error] = None
            run.asked = False
        return begins

    def _end(self, place: tuple[Any, ...]) -> None:
        key, run = self._runs.pop(place)
        if run.tally.count >= self.limits.stale_leaders and len(self._long) < self._MOST:
            self._long.append((key, run))

    def findings(self) -> Iterator[Finding]:
        limit = self.limits.stale_leaders
        found: dict[tuple[Any, ...], tuple[Tally, dict[str, None], dict[Any, None]]] = {}
        for (host, client, api, *place), run in (*self._long, *self._runs.values()):
            if run.tally.count >= limit:
                tally, errors, places = found.setdefault((host, client, api), (Tally(), {}, {}))
                tally.join(run.tally)
                errors |= run.errors
                places[tuple(place)] = None
        for (host, client, api), (tally, errors, places) in found.items():
            said = f"{', '.join(errors)} in {tally.count} {api} responses"
            if len(places) > 1:
                said += f", of {len(places)} partitions"
            only = next(iter(places))[::2] if len(places) == 1 else (None, None)
            yield self.found(said, tally, client_host=host, client_id=client, topic=only[0], partition=only[1])
        for (host, client, topic, partition), one in self.tallies.items():
            # What one move brings at once, on several connections, is one step of time.
            most = Tally(steps=dict.fromkeys(one.steps, 1)).busiest
            if most >= self.limits.leader_moves:
                said = f"the leader moved in {len(one.steps)} steps of ten seconds, {most} of them in a minute"
                yield self.found(said, one, client_host=host, client_id=client, topic=topic, partition=partition)


class Fenced(Errors):
    """A producer got the answer that another has taken its place, or that it is not known."""

    name = "fenced-producers"
    finds = "a producer that is told that another has taken its place, or that it is not known"
    thresholds: Mapping[str, str] = {"fenced": "{}"}
    place = 220
    severity = "high"
    advice = "give each running producer its own transactional.id; a zombie of an earlier one has to stop"
    errors: frozenset[str] = frozenset(
        ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING",
         "TRANSACTION_COORDINATOR_FENCED", "TRANSACTIONAL_ID_NOT_FOUND")
    )  # fmt: skip

    def enough(self) -> int:
        return self.limits.fenced

    def findings(self) -> Iterator[Finding]:
        # What a fenced producer asks then is refused too: that is one finding.
        together: dict[tuple[Any, ...], tuple[Tally, list[str]]] = {}
        for (host, client, api, error), one in self.tallies.items():
            tally, said = together.setdefault((host, client), (Tally(), []))
            tally.join(one)
            said.append(f"{error} in {counted(one.count, f'{api} response')}")
        for (host, client), (tally, said) in together.items():
            if tally.count >= self.enough():
                yield self.found(", ".join(said), tally, client_host=host, client_id=client)


class UnknownTopics(Errors):
    """A client asks for topics that do not exist, over and over."""

    name = "unknown-topics"
    finds = "a client that asks for a topic or partition that does not exist, over and over; which topics"
    thresholds: Mapping[str, str] = {"unknown_topics": "{} responses"}
    place = 225
    tables: tuple[str, ...] = ("frames",)
    also: tuple[str, ...] = ("partitions",)
    advice = (
        "create the topic, or take it out of what the client subscribes to or writes to; after a topic was deleted, "
        "restart clients that go on to use it"
    )
    errors: frozenset[str] = frozenset(("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"))
    _NAMED = 3
    """Topics that a finding names."""
    _MOST = 1 << 12
    """Topics that are remembered."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._topics: dict[tuple[Any, ...], dict[str, None]] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            super().take(name, rows)
            return
        told = rows.where(direction="response", status="ok", error=tuple(sorted(self.errors)))
        columns = (*CLIENT, "api_name", "error", "topic", "topic_id")
        for *key, topic, topic_id in tuples(rows.part(columns, told[rows.valid("topic")[told]])):
            known = self._topics.setdefault(tuple(key), {})
            if len(known) < self._MOST and (topic or topic_id):
                known[topic or topic_id] = None

    def enough(self) -> int:
        return self.limits.unknown_topics

    def follows(self, api: str) -> tuple[str, ...]:
        # It asks for the same again.
        return ("lookup-storm",) if api in LOOKUPS else ("metadata-storm",)

    def findings(self) -> Iterator[Finding]:
        many = self.tallies.totals().count >= self.enough()
        for (host, client, api, error), one in self.tallies.items(many):
            topics = list(self._topics.get((host, client, api, error), ()))
            said = f"{error} in {counted(one.count, f'{api} response')}"
            if topics:
                said += f", for {', '.join(topics[: self._NAMED])}"
            if len(topics) > self._NAMED:
                said += f" and {len(topics) - self._NAMED} others"
            only = topics[0] if len(topics) == 1 else None
            yield self.found(said, one, client_host=host, client_id=client, topic=only, explains=self.follows(api))


class Denied(Errors):
    """Requests that were refused for want of authorization, by principal where secrets are shown."""

    name = "denials"
    finds = "requests that were refused for want of authorization, in any API"
    thresholds: Mapping[str, str] = {"denials": "{}"}
    place = 230
    also: tuple[str, ...] = ("connections",)
    # Apart by connection, since its principal is known when it ends.
    keys: tuple[str, ...] = ("capture", "connection", *CLIENT, "api_name", "error")
    severity = "high"
    explains: tuple[str, ...] = ("metadata-storm",)
    advice = "grant what the client needs (ACLs), or stop it from asking"
    errors: frozenset[str] = frozenset(
        ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
         "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED")
    )  # fmt: skip

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._principals: dict[tuple[str, int], str] = {}

    def take(self, name: str, rows: Rows) -> None:
        if name == "frames":
            told = rows.errors
            self.tallies.add(told, np.flatnonzero(self.wanted(told)), each=True)
            return
        known = np.flatnonzero(rows.valid("principal"))
        for capture, connection, principal in tuples(rows.part(("capture", "connection", "principal"), known)):
            self._principals[capture, connection] = principal

    def enough(self) -> int:
        return self.limits.denials

    def findings(self) -> Iterator[Finding]:
        together: dict[tuple[Any, ...], Tally] = {}
        for (capture, connection, *key), one in self.tallies.items():
            together.setdefault((*key, self._principals.get((capture, connection))), Tally()).join(one)
        for (host, client, api, error, principal), one in together.items():
            if one.count >= self.enough():
                said = f"{error} in {counted(one.count, f'{api} response')}"
                yield self.found(said, one, client_host=host, client_id=client, principal=principal)


_FATAL: Final[dict[str, tuple[str, str, str]]] = {
    "NOT_ENOUGH_REPLICAS": (
        "high", "too few replicas are in sync for acks=all, so nothing is written",
        "see which brokers are down or behind (under-replicated partitions), and min.insync.replicas of the topic",
    ),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": (
        "high", "written, but too few replicas had it: the producer sends it again, perhaps as a duplicate",
        "see which brokers are down or behind (under-replicated partitions), and min.insync.replicas of the topic",
    ),
    "KAFKA_STORAGE_ERROR": ("high", "a broker cannot use its disk", "see the broker's log: its disk is full or broken"),
    "CORRUPT_MESSAGE": (
        "high", "records arrived with a wrong checksum, or none can be read",
        "see what changes bytes between the client and the disk: network, proxy, memory, disk, or the client itself",
    ),
    "INVALID_RECORD": (
        "high", "the broker refuses these records",
        "see what the topic asks for: a compacted topic needs keys, and message.timestamp.* allows some times only",
    ),
    "INVALID_TIMESTAMP": (
        "high", "the broker refuses times of these records",
        "see the clock of the producer, and message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    ),
    "INVALID_REQUIRED_ACKS": ("high", "the broker knows no such acks", "use acks=0, 1 or all"),
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": (
        "high", "the topic's message format is too old for what is asked", "upgrade the format of the topic",
    ),
    "UNSUPPORTED_COMPRESSION_TYPE": (
        "high", "one side does not know this compression", "use a compression.type that both sides know",
    ),
    "INVALID_TXN_STATE": (
        "medium", "the request does not fit the state of the transaction",
        "see the order in which the program begins, sends and commits; an aborted transaction is to be begun anew",
    ),
    "INVALID_TRANSACTION_TIMEOUT": (
        "high", "the broker allows no transaction of this length",
        "lower transaction.timeout.ms, or raise transaction.max.timeout.ms of the brokers",
    ),
    "FENCED_INSTANCE_ID": (
        "high", "another member has the same group.instance.id", "give each member a group.instance.id of its own",
    ),
    "INCONSISTENT_GROUP_PROTOCOL": (
        "high", "it has no assignment strategy, or no protocol, in common with the others of its group",
        "use the same group.id for members of one kind only, and change partition.assignment.strategy in two steps",
    ),
    "GROUP_MAX_SIZE_REACHED": (
        "high", "the group has as many members as brokers allow", "use fewer members, or raise group.max.size",
    ),
    "INVALID_SESSION_TIMEOUT": (
        "high", "the broker does not allow this session timeout",
        "choose session.timeout.ms between group.min.session.timeout.ms and group.max.session.timeout.ms",
    ),
    "INCONSISTENT_CLUSTER_ID": (
        "high", "it belongs to another cluster", "see the addresses that it was given (bootstrap.servers, quorum)",
    ),
}  # fmt: skip
"""Errors that are findings, each with its severity, its meaning and what to change.

Clients do not meet them in normal operation, and cannot mend them.
"""
_RETRIED: Final = (
    "CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
    "REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED", "UNSTABLE_OFFSET_COMMIT", "OFFSET_NOT_AVAILABLE",
    "THROTTLING_QUOTA_EXCEEDED", "TOPIC_ALREADY_EXISTS", "STALE_MEMBER_EPOCH", "ELECTION_NOT_NEEDED",
    "BROKER_ID_NOT_REGISTERED",
)  # fmt: skip
"""Errors that clients meet in normal operation and ask again: the fault is that they go on."""


class Fatal(Errors):
    """Errors that are a finding each: nothing that a client does would help."""

    name = "fatal-errors"
    finds = (
        "errors that no client can mend, such as NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, INVALID_RECORD, "
        "FENCED_INSTANCE_ID: what each means and what to change"
    )
    thresholds: Mapping[str, str] = {"fatal_errors": "{}"}
    severities = "by error"
    place = 240
    errors: frozenset[str] = frozenset(_FATAL)

    def enough(self) -> int:
        return self.limits.fatal_errors

    def findings(self) -> Iterator[Finding]:
        for (host, client, api, error), one in self.tallies.items(self.tallies.totals().count >= self.enough()):
            severity, meaning, advice = _FATAL[error]
            said = f"{error} in {counted(one.count, f'{api} response')}: {meaning}"
            made = self.found(said, one, client_host=host, client_id=client)
            made.severity, made.advice = severity, advice
            yield made


class Repeated(Errors):
    """The same error over and over, of those that no other rule is about.

    What clients retry in normal operation counts where nothing else came for long.
    """

    name = "repeated-errors"
    finds = (
        "the same error over and over, of those that no other rule is about; of those that clients retry in "
        "ordinary life (CONCURRENT_TRANSACTIONS) where no other answer came"
    )
    thresholds: Mapping[str, str] = {"repeated_errors": "{}", "retried_seconds": "{}"}
    place = 300
    advice = "see what the error means for this request, and why the client does not change what it does"

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._retried = Tallies(*self.keys)
        self._fine = Tallies(*CLIENT, "api_name")
        self.others: frozenset[str] = frozenset()
        """The errors that other rules are about."""

    def take(self, name: str, rows: Rows) -> None:
        super().take(name, rows)
        told = rows.errors
        if told.table.num_rows:
            self._retried.add(told, np.flatnonzero(told.mask("error", _RETRIED)))
        self._fine.add(rows, np.flatnonzero(rows.mask("direction", "response") & ~rows.wrong))

    def wanted(self, rows: Rows) -> Array:
        return ~rows.mask("error", (*sorted(self.others), *_RETRIED))

    def enough(self) -> int:
        return self.limits.repeated_errors

    def follows(self, api: str) -> tuple[str, ...]:
        # It asks for the same again.
        if api in LOOKUPS:
            return ("lookup-storm",)
        return ("metadata-storm",) if api == "Metadata" else ()

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        fine: dict[tuple[Any, ...], Tally] | None = None
        for (host, client, api, error), one in self._retried.items(self._retried.totals().count >= self.enough()):
            if fine is None:
                fine = dict(self._fine.items())
            since = max(fine.get((host, client, api), Tally()).last or 0, one.first or 0)
            seconds = ((one.last or 0) - since) / 1e6
            if seconds >= self.limits.retried_seconds:
                said = f"{error} in {counted(one.count, f'{api} response')}, and no other answer in {seconds:.0f} s"
                yield self.found(said, one, client_host=host, client_id=client, explains=self.follows(api))
