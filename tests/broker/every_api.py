"""Every API in every version that real brokers accept, asked with kwire's encoder and read with its decoder.

    python tests/broker/every_api.py             ask all brokers, show what they said
    python tests/broker/every_api.py --write     and write docs/results/real-brokers.md

Three clusters of one node are started one after the other: 3.9 with ZooKeeper, 3.9 and the newest 4.x with KRaft; in
the KRaft ones the listener of the controllers is asked as well. Strategy and rules:

- A listener is asked for every (api, version) that kwire has a schema for, whether the broker announces it or not: what
  it accepts silently counts as well, and what it announces but does not answer is listed with the reason.
- Each pair has a connection of its own, since the broker may hang up, and since sessions belong to connections.
- Every answer, also to what only prepares a request, is decoded to its last byte by both codecs and must be written
  again as the same bytes: ``WrongBytesError`` ends the run.
- An answer with one of ``BAD`` anywhere in it is no answer: the request, or the version, was not taken.
- What passes (a coordinator that is loading, a leader that is not known yet) is asked again for a while; whatever else
  an answer says is what the table shows.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kafka_jars
from harmless_requests import BODIES, TOPIC, Fields, present
from kafka_cluster import PASSWORD, USER, Cluster, Listener

import kwire
from kwire import messages, schema
from kwire.protocol.error_codes import error_name

__all__ = [
    "DOCUMENT",
    "GOAL",
    "REASONS",
    "Answer",
    "Results",
    "WrongBytesError",
    "ask_all",
    "exact",
    "good_pairs",
    "page",
    "unexplained",
]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "results" / "real-brokers.md"

GOAL = 280
"""How many (api, version) pairs at least one broker has to answer."""

COLUMNS = {
    "zk": f"{kafka_jars.ZOOKEEPER} ZooKeeper",
    "kraft3": f"{kafka_jars.KRAFT3} KRaft",
    "controller3": f"{kafka_jars.KRAFT3} controller",
    "kraft4": f"{kafka_jars.NEWEST_BROKER} KRaft",
    "controller4": f"{kafka_jars.NEWEST_BROKER} controller",
}

BAD = frozenset({"INVALID_REQUEST", "UNSUPPORTED_VERSION", "UNKNOWN_SERVER_ERROR"})
PASSING = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "LEADER_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NOT_LEADER_OR_FOLLOWER",
        "REBALANCE_IN_PROGRESS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
)
"""Error codes of a broker that is not ready for the request yet."""
PASSING_SECONDS = 8.0
ANSWER_SECONDS = 10.0
UNKNOWN_AGAIN = 3
"""How often to ask again after ``UNKNOWN_SERVER_ERROR``: what the first ShareFetch of a new group may get."""

ENVELOPE = 58

BY_SASL = frozenset(
    {
        "SaslHandshake",
        "SaslAuthenticate",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
    }
)
"""What a broker answers on a listener with SASL only, or gives a better answer there."""

_NO_ZOOKEEPER = "the offsets of version 0 are kept in ZooKeeper, and there is none"
_EARLY = "early access in 3.9: announced with `unstable.api.versions.enable`, but what answers it is not there yet"
_BY_ID = "the quorum takes its topic by id only, which Fetch has since version 13 (KIP-516)"
_BY_ID_SILENT = _BY_ID + "; before version 7 an answer cannot say so"
_NO_HANDLER = "the controller has nothing that handles it: `Unsupported ApiKey` in its log"
_NO_ENDPOINT_TYPE = "controllers describe controllers only, which version 0 cannot ask for (KIP-919)"

REASONS: dict[tuple[str, str, str], str] = {
    ("zk", "UpdateFeatures", "0-1"): "with ZooKeeper there is no feature whose level could be set",
    ("zk", "Envelope", "0"): "forwarding is off with ZooKeeper: treated as a request that cannot be parsed",
    ("zk", "ConsumerGroupHeartbeat", "0"): "the coordinator of these groups (KIP-848) needs KRaft",
    ("zk", "ConsumerGroupDescribe", "0"): "the coordinator of these groups (KIP-848) needs KRaft",
    ("kraft3", "OffsetCommit", "0"): _NO_ZOOKEEPER,
    ("kraft3", "OffsetFetch", "0"): _NO_ZOOKEEPER,
    ("kraft3", "ShareGroupDescribe", "0"): _EARLY,
    ("kraft3", "ShareFetch", "0"): _EARLY,
    ("kraft3", "ShareAcknowledge", "0"): _EARLY,
    ("kraft3", "InitializeShareGroupState", "0"): _EARLY,
    ("kraft3", "ReadShareGroupState", "0"): _EARLY,
    ("kraft3", "WriteShareGroupState", "0"): _EARLY,
    ("kraft3", "DeleteShareGroupState", "0"): _EARLY,
    ("kraft3", "ReadShareGroupStateSummary", "0"): _EARLY
    + "; the refusal has no `leader_epoch`, which later releases added under the same version number",
    ("controller3", "Fetch", "0-6"): _BY_ID_SILENT,
    ("controller3", "Fetch", "7-12"): _BY_ID,
    ("controller3", "ControlledShutdown", "0-3"): _NO_HANDLER,
    ("controller3", "DescribeDelegationToken", "0-3"): _NO_HANDLER,
    ("controller3", "DescribeUserScramCredentials", "0"): _NO_HANDLER,
    ("controller3", "DescribeCluster", "0"): _NO_ENDPOINT_TYPE,
    ("kraft4", "Produce", "0-2"): "removed in 4.0 (KIP-896), announced all the same for the sake of librdkafka",
    ("controller4", "Fetch", "4-6"): _BY_ID_SILENT,
    ("controller4", "Fetch", "7-12"): _BY_ID,
    ("controller4", "DescribeDelegationToken", "1-3"): _NO_HANDLER,
    ("controller4", "DescribeUserScramCredentials", "0"): _NO_HANDLER,
    ("controller4", "DescribeCluster", "0"): _NO_ENDPOINT_TYPE,
}
"""(column, API, versions) -> why a listener that announces them does not answer."""

OTHER_LAYOUTS = {("kraft3", 87, 0)}
"""Early-access APIs that a later release changed under the same version number: kwire has the later layout."""


class WrongBytesError(AssertionError):
    """kwire reads an answer otherwise than the broker wrote it."""


class UnansweredError(Exception):
    """The broker hung up or kept silent."""


class LackingError(Exception):
    """What a request needs beforehand cannot be had on this listener."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a listener said to one version of one API: the names of all error codes in it, or ``problem``."""

    announced: bool
    errors: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def good(self) -> bool:
        return self.problem is None and not BAD & set(self.errors)

    def __str__(self) -> str:
        return self.problem or ", ".join(self.errors)


Results = dict[tuple[int, int], dict[str, Answer]]
"""(API key, version) -> column -> answer."""


NUMBERS = itertools.count(1)
"""What makes names unique, across the listeners of a cluster."""


@dataclass(slots=True)
class Target:
    """A listener and what is known about it."""

    column: str
    address: str
    sasl: str | None
    node: int
    data_folder: str
    newest: bool
    zookeeper: bool
    controller: bool
    topic_id: uuid.UUID = field(default_factory=lambda: uuid.UUID(int=0))
    announced: dict[int, range] = field(default_factory=dict)
    features: list[Fields] = field(default_factory=list)

    def newest_version(self, api_key: int) -> int:
        request = schema.request(api_key)
        assert request is not None
        versions = [one for one in self.announced.get(api_key, ()) if one in request.versions]
        if not versions:
            raise LackingError(f"needs {request.name.removesuffix('Request')}, which is not there")
        return max(versions)


class Asking:
    """One version of one API on one listener: a connection, and the requests on it. A ``harmless_requests.Case``."""

    def __init__(self, target: Target, api_key: int, version: int) -> None:
        self.target, self.api_key, self.version = target, api_key, version
        self.newest, self.zookeeper, self.controller = target.newest, target.zookeeper, target.controller
        self.node, self.topic_id, self.features = target.node, target.topic_id, target.features
        self.data_folder = target.data_folder
        self.api = schema.api_keys()[api_key]
        self.passing: set[str] = set()
        self._numbers = itertools.count(1)
        address = target.sasl if target.sasl is not None and self.api in BY_SASL else target.address
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)

    def close(self) -> None:
        self._socket.close()

    def unique(self, prefix: str) -> str:
        return f"{prefix}-{self.version}-{next(NUMBERS)}"

    def prepare(self, api: str, fields: Mapping[str, Any], version: int | None = None) -> Any:
        (api_key,) = [key for key, name in schema.api_keys().items() if name == api]
        if version is None or version not in self.target.announced.get(api_key, ()):
            version = self.target.newest_version(api_key)
        body = self.ask(api_key, version, fields)
        self.passing |= PASSING & errors_in(body, version)
        return body

    def authenticate(self) -> None:
        if self.target.sasl is not None:
            self.prepare("SaslHandshake", {"mechanism": "PLAIN"}, 1)
            self.prepare("SaslAuthenticate", {"auth_bytes": f"\0{USER}\0{PASSWORD}".encode()})

    def leader_epoch(self) -> int:
        told = self.prepare("DescribeQuorum", BODIES["DescribeQuorum"](self))
        return int(told.topics[0].partitions[0].leader_epoch)

    def ask(self, api_key: int, version: int, fields: Mapping[str, Any]) -> Any:
        """The body of an answer, checked byte for byte."""
        request = schema.request(api_key)
        assert request is not None
        body = getattr(messages, request.name).from_dict(present(request, version, fields))
        number = next(self._numbers)
        frame = kwire.encode_request(body, api_version=version, correlation_id=number, client_id="kwire")
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            answer = self._receive(struct.unpack(">i", self._receive(4))[0])
        except TimeoutError:
            raise UnansweredError(f"no answer within {ANSWER_SECONDS:.0f} s") from None
        except OSError:
            raise UnansweredError("closes the connection") from None
        return exact(answer, api_key, version, number)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return bytes(data)


def exact(frame: bytes, api_key: int, version: int, correlation_id: int) -> Any:
    """The body of a response frame. Raises ``WrongBytesError`` where kwire does not read and write it exactly."""
    where = f"{schema.api_keys()[api_key]} v{version}, {frame.hex()}"
    try:
        got = kwire.decode_response(frame, api_key=api_key, api_version=version)
        twin = kwire.decode_response(frame, api_key=api_key, api_version=version, implementation="reference")
        again = kwire.encode_response(got.body, api_version=got.api_version, correlation_id=got.header.correlation_id)
    except kwire.KwireError as error:
        raise WrongBytesError(f"{where}: {error}") from error
    if got.header.correlation_id != correlation_id:
        raise WrongBytesError(f"{where}: correlation id {got.header.correlation_id}, not {correlation_id}")
    if got != twin:
        raise WrongBytesError(f"{where}: {got} is read as {twin} by the reference codec")
    if again != frame:
        raise WrongBytesError(f"{where}: written again as {again.hex()}")
    return got.body


def errors_in(body: Any, version: int) -> set[str]:
    """The names of all error codes in an answer; ``NONE`` only where there is no other."""
    found = set(_error_names(present(body.SCHEMA, version, body.to_dict())))
    return found - {"NONE"} or found


def _error_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            if name.endswith("error_code"):
                yield error_name(one) or str(one)
            else:
                yield from _error_names(one)
    elif isinstance(value, list):
        for one in value:
            yield from _error_names(one)


def answer(target: Target, api_key: int, version: int) -> Answer:
    """Ask for one version of one API until the answer does not depend on how long the broker has been up."""
    announced = version in target.announced.get(api_key, ())
    deadline = time.monotonic() + (PASSING_SECONDS if announced else 0.0)
    again = 0
    while True:
        case = Asking(target, api_key, version)
        try:
            try:
                fields = BODIES[case.api](case)
            except LackingError:
                # Whether the version is taken shows with an empty request as well.
                fields = {}
            body = case.ask(api_key, version, fields)
            errors = errors_in(body, version)
            if api_key == ENVELOPE and body.response_data is not None:
                inner = exact(body.response_data, 19, 7, 1)
                errors |= errors_in(inner, 7)
            # An old version may have no other way to refuse.
            told = Answer(announced, tuple(sorted(errors)), None if errors else "an empty answer")
        except UnansweredError as error:
            told = Answer(announced, problem=str(error))
        finally:
            case.close()
        if "UNKNOWN_SERVER_ERROR" in told.errors and announced and again < UNKNOWN_AGAIN:
            again += 1
            time.sleep(0.3)
            continue
        if BAD & set(told.errors) or not PASSING & {*told.errors, *case.passing} or time.monotonic() > deadline:
            return told
        time.sleep(0.1)


def ask_listener(target: Target, results: Results, show: bool) -> None:
    probe = Asking(target, 18, 3)
    with contextlib.closing(probe):
        told = probe.ask(18, 3, BODIES["ApiVersions"](probe))
    target.announced = {one.api_key: range(one.min_version, one.max_version + 1) for one in told.api_keys}
    target.features = [
        {"name": one.name, "min_supported_version": one.min_version, "max_supported_version": one.max_version}
        for one in told.supported_features
    ]
    unknown = [
        (api_key, version)
        for api_key, versions in target.announced.items()
        for version in versions
        if (request := schema.request(api_key)) is None or version not in request.versions
    ]
    if unknown:
        raise AssertionError(f"{COLUMNS[target.column]} announces what kwire has no schema for: {unknown}")
    for api_key in sorted(schema.api_keys()):
        request = schema.request(api_key)
        if request is None:
            continue
        for version in request.versions:
            began = time.monotonic()
            try:
                told = answer(target, api_key, version)
            except WrongBytesError:
                if (target.column, api_key, version) not in OTHER_LAYOUTS:
                    raise
                told = Answer(version in target.announced[api_key], problem="an answer of another layout")
            results.setdefault((api_key, version), {})[target.column] = told
            if show:
                mark, took = "" if told.announced else "*", time.monotonic() - began
                print(f"{target.column}{mark} {api_key} {schema.api_keys()[api_key]} v{version}: {told} ({took:.2f} s)")


def make_ready(target: Target) -> uuid.UUID:
    """Create the test topic; returns its id when it has a leader and coordinators are there."""
    deadline = time.monotonic() + 30
    while True:
        case = Asking(target, 3, 10)
        with contextlib.closing(case):
            topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
            case.ask(19, 5, {"topics": [topic], "timeout_ms": 5000})
            (told,) = case.ask(3, 10, {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}).topics
            # The first question for a coordinator of either kind has the broker create its internal topic.
            coordinators = [case.ask(10, 1, {"key": "any", "key_type": kind}) for kind in (0, 1)]
        if (
            told.error_code == 0
            and told.partitions
            and not any(one.error_code for one in (*told.partitions, *coordinators))
        ):
            return uuid.UUID(bytes=told.topic_id.bytes)
        if time.monotonic() > deadline:
            raise AssertionError(f"topic {TOPIC} has no leader, or there is no coordinator: {told}, {coordinators}")
        time.sleep(0.1)


def plugins(version: str, scratch: Path, *names: str) -> Path:
    """Broker plug-ins of ``tests/broker/java``, compiled for a release: without them some APIs are not answered."""
    classes = scratch / f"plugins-{version}"
    jars = kafka_jars.install(version)
    sources = [str(Path(__file__).resolve().parent / "java" / f"{name}.java") for name in names]
    command = [kafka_jars.jdk_tool("javac"), "-nowarn", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(classes)]
    done = subprocess.run([*command, *sources], capture_output=True, text=True)
    if done.returncode != 0:
        raise kafka_jars.KafkaUnavailableError(f"javac failed: {done.stderr[:2000]}")
    return classes


def clusters(scratch: Path) -> Iterator[tuple[list[str], Cluster]]:
    """The clusters, not started yet, with the columns that they fill."""
    common = {
        "super.users": f"User:ANONYMOUS;User:{USER}",
        "delegation.token.secret.key": "secret of a test",
        "delegation.token.master.key": "secret of a test",
        "unstable.api.versions.enable": "true",
    }
    listeners = {"SASL": Listener("SASL_PLAINTEXT")}
    kraft = {
        **common,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "metric.reporters": "TelemetryReceiver",
        "kwire.telemetry.file": scratch / "telemetry.jsonl",
        # A snapshot to fetch, soon.
        "metadata.log.max.snapshot.interval.ms": 1000,
    }
    groups3 = {"group.coordinator.rebalance.protocols": "classic,consumer,share", "group.share.enable": "true"}
    acls = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    yield (
        ["zk"],
        Cluster(mode="zookeeper", version=kafka_jars.ZOOKEEPER, listeners=listeners, config={**common, **acls}),
    )
    yield (
        ["kraft3", "controller3"],
        Cluster(
            version=kafka_jars.KRAFT3,
            listeners=listeners,
            config={**kraft, **groups3},
            classpath=[plugins(kafka_jars.KRAFT3, scratch, "telemetry/TelemetryReceiver")],
        ),
    )
    newest = kafka_jars.NEWEST_BROKER
    yield (
        ["kraft4", "controller4"],
        Cluster(
            version=newest,
            listeners=listeners,
            config={**kraft, "group.streams.topology.description.plugin.class": "TopologyKeeper"},
            dynamic=True,
            classpath=[plugins(newest, scratch, "telemetry/TelemetryReceiver", "topology/TopologyKeeper")],
        ),
    )


def ask_all(only: str | None = None) -> Results:
    """Start the clusters one after the other and ask each listener for everything; ``only`` names a column."""
    results: Results = {}
    with tempfile.TemporaryDirectory(prefix="kwire-every-api-") as scratch:
        for columns, cluster in clusters(Path(scratch)):
            if only is not None and only not in columns:
                cluster.stop()
                continue
            with cluster:
                ask_cluster(columns, cluster, results, show=only is not None)
    return results


def ask_cluster(columns: list[str], cluster: Cluster, results: Results, show: bool) -> None:
    """Ask every listener of a running cluster."""
    node = cluster.nodes[0]
    topic_id = uuid.UUID(int=0)
    for column in columns:
        controller = column.startswith("controller")
        target = Target(
            column,
            cluster.address("CONTROLLER" if controller else "INTERNAL", node),
            None if controller else cluster.address("SASL", node),
            node.node_id,
            str(node.folder / "data"),
            newest=int(cluster.version.split(".")[0]) >= 4,
            zookeeper=cluster.mode == "zookeeper",
            controller=controller,
        )
        if not controller:
            topic_id = make_ready(target)
        target.topic_id = topic_id
        ask_listener(target, results, show)


# -- the page ------------------------------------------------------------------------------------------------------


def good_pairs(results: Results) -> list[tuple[int, int]]:
    return sorted(pair for pair, told in results.items() if any(one.good for one in told.values()))


def versions_text(versions: list[int]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def runs(results: Results, wanted: Any) -> Iterator[tuple[int, list[int], Any]]:
    """Neighbouring versions of an API for which ``wanted(pair)`` gives the same, not None."""
    for api_key, pairs in itertools.groupby(sorted(results), key=lambda pair: pair[0]):
        for value, same in itertools.groupby(pairs, key=wanted):
            if value is not None:
                yield api_key, [version for _, version in same], value


def unanswered(results: Results) -> dict[tuple[str, str, str], str]:
    """(column, API, versions) -> what happened, for all that a broker announces and does not answer."""
    found = {}
    for column in COLUMNS:

        def problem(pair: tuple[int, int], column: str = column) -> str | None:
            one = results[pair].get(column)
            return str(one) if one is not None and one.announced and not one.good else None

        for api_key, versions, what in runs(results, problem):
            found[column, schema.api_keys()[api_key], versions_text(versions)] = what
    return found


def unexplained(results: Results) -> set[tuple[str, str, str]]:
    """What is announced and not answered without a reason in ``REASONS``, and reasons that nothing needs."""
    return set(unanswered(results)) ^ set(REASONS)


def page(results: Results) -> str:
    """``docs/results/real-brokers.md``."""
    good = good_pairs(results)
    told = sum(one.good for pair in results.values() for one in pair.values())
    silent = sum(one.good and not one.announced for pair in results.values() for one in pair.values())
    never = [f"{schema.api_keys()[api_key]} v{version}" for api_key, version in sorted(set(results) - set(good))]
    lines = [
        "# What real brokers answer",
        "",
        "kwire's encoder asks real Apache Kafka brokers one harmless request in every version of every API that they",
        "accept; both of kwire's codecs read each answer to its last byte, and write it again as the same bytes.",
        "",
        f"**{len(good)} of {len(results)} (api, version) pairs** are answered by at least one of these listeners, "
        f"{told} answers in all:",
        "",
        *[f"- {name}: {sum(pair[column].good for pair in results.values())}" for column, name in COLUMNS.items()],
        "",
        f"Answered by none: {', '.join(never) or 'no pair'}.",
        "",
        f"An answer counts when no error code in it is {', '.join(f'`{one}`' for one in sorted(BAD))}.",
        "",
        "One command, of about a minute, writes this page; `make test-broker` fails when the brokers say otherwise:",
        "",
        "    .venv/bin/python tests/broker/every_api.py --write",
        "",
        "The requests stand in `tests/broker/harmless_requests.py`. Where a request could do harm among brokers and",
        "controllers, it carries an epoch that is over, an id that nobody has or the id of another cluster: there an",
        "error is the right answer.",
        "",
        "## Answers",
        "",
        "A cell has the names of the error codes in the answer, `NONE` when there is no other. Empty: the listener was",
        "asked as well, and does not take the version. `!`: announced and not answered, see below. `*`: answered",
        f"without being announced; there {'is' if silent == 1 else 'are'} {silent or 'none'} of these.",
        "",
        "| API | versions | " + " | ".join(COLUMNS.values()) + " |",
        "|---|---|" + "---|" * len(COLUMNS),
    ]

    def cells(pair: tuple[int, int]) -> tuple[str, ...] | None:
        row = []
        for column in COLUMNS:
            one = results[pair][column]
            mark = "" if one.announced else "*"
            row.append(f"{one}{mark}" if one.good else "!" if one.announced else "")
        return tuple(row)

    for api_key, versions, row in runs(results, cells):
        lines.append(
            f"| {api_key} {schema.api_keys()[api_key]} | {versions_text(versions)} | " + " | ".join(row) + " |"
        )
    lines += [
        "",
        "## Announced, not answered",
        "",
        "| listener | API | versions | what happens | why |",
        "|---|---|---|---|---|",
    ]
    for (column, api, which), what in unanswered(results).items():
        why = REASONS.get((column, api, which), "not known")
        lines.append(f"| {COLUMNS[column]} | {api} | {which} | {what} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask real brokers for every version of every API.")
    parser.add_argument("--write", action="store_true", help="write docs/results/real-brokers.md")
    parser.add_argument("--only", choices=COLUMNS, help="only the cluster with this listener; prints, writes nothing")
    arguments = parser.parse_args()
    began = time.monotonic()
    results = ask_all(arguments.only)
    if arguments.only is None:
        text = page(results)
        if arguments.write:
            DOCUMENT.write_text(text)
        else:
            print(text)
    print(f"{len(good_pairs(results))} pairs answered, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
