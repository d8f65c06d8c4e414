"""What is recorded: one function per group of captures.

A scenario gets a ``Target`` (where files go, which Kafka release) and leaves complete recordings there, in a folder per
broker and client. Scenarios do not depend on one another and each starts its own clusters. Ports are those that people
expect (9092 and its neighbours) when they are free, so that a capture can be read without naming them.
"""

from __future__ import annotations

import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import indexed_topics
import kafka  # type: ignore[import-untyped]
import kafka_jars
import segment_files
import toolchains
from capturing import Recording
from client_kafka_python import KafkaPython
from kafka_cluster import PASSWORD, USER, Cluster, Listener, Node, free_port
from kdc import Kdc
from samples import CODECS, SAMPLES, Sample, samples, write_plan

__all__ = ["ALL", "Target"]

OLD_FORMAT = {"inter.broker.protocol.version": "0.10.1", "log.message.format.version": "0.10.1"}
"""Kafka 3.9 then stores magic 1, as a 0.10.1 broker did (ZooKeeper mode only)."""
ENTRY_PER_APPEND = "3.7.2"
"""A release that makes at most one index entry of what is appended at once, for its last offset; since 3.8 it is one of
each batch that is due."""
AUTHORIZER = {
    "zookeeper": "kafka.security.authorizer.AclAuthorizer",
    "kraft": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where the recordings go, and the Kafka release for the newest clusters (None: the fixture's default)."""

    out: Path
    release: str | None = None

    @property
    def newest(self) -> str:
        return self.release or kafka_jars.NEWEST

    def recording(
        self, cluster: Cluster, client: str, name: str, about: str | None, ports: Sequence[int], **options: Any
    ) -> Recording:
        short = ".".join(cluster.version.split(".")[:2])
        mode = {"zookeeper": "zk", "kraft": "kraft"}[cluster.mode]
        told = {"zookeeper": "ZooKeeper mode", "kraft": "KRaft mode"}[cluster.mode]
        # What is wrong on purpose, or by a client's mistake, stands apart from captures that have to decode entirely.
        place = self.out / "odd" if options.pop("odd", False) else self.out
        # Nor do captures that only a key log makes readable.
        place = self.out / "tls" if options.pop("tls", False) else place
        folder = place / f"kafka-{short}-{mode}-{client}"
        broker = f"Apache Kafka {cluster.version}, {told}"
        level = cluster.config.get("inter.broker.protocol.version")
        if level is not None:
            broker += f", inter-broker protocol and message format {level}"
        return Recording(folder / name, ports, about or "", broker, **{"exact": False, **options})


def authorized(mode: Literal["zookeeper", "kraft"]) -> dict[str, str]:
    """Broker properties with an authorizer that lets everyone do everything, so that ACL calls work."""
    config = {"authorizer.class.name": AUTHORIZER[mode], "allow.everyone.if.no.acl.found": "true"}
    return config | {"super.users": "User:ANONYMOUS;User:kwire"}


def clients_listener() -> dict[str, Listener]:
    return {"CLIENT": Listener(port=9092)}


def topics(cluster: Cluster, *names: str, partitions: int = 1, replicas: int = 1, **config: str) -> None:
    """Create topics outside of a recording."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap(cluster.plaintext).split(","))
    try:
        admin.create_topics(
            [kafka.admin.NewTopic(name, partitions, replicas, topic_configs=settings) for name in names]
        )
        admin.wait_for_topics(list(names))
    finally:
        admin.close()


@contextmanager
def plan(recording: Recording, bootstrap: str, prefix: str, what: Sequence[Sample], **more: Any) -> Iterator[Path]:
    """A plan file for a client program."""
    with tempfile.TemporaryDirectory(prefix="kwire-plan-") as folder:
        settings: dict[str, Any] = {"codecs": list(CODECS), "config": {}, "steps": []}
        yield write_plan(Path(folder) / "plan.json", list(what), bootstrap=bootstrap, prefix=prefix, **settings | more)


def java(cluster: Cluster, program: str, *arguments: str) -> list[str]:
    """The command line of one of the programs in tests/broker/java."""
    classes = kafka_jars.compile_java(cluster.version)
    command = cluster.java(program, *arguments)
    place = command.index("-cp") + 1
    command[place] += f":{classes}"
    return command


# -- kafka-python ---------------------------------------------------------------------------------------------------


def first_light(target: Target) -> None:
    """A 3.9 broker that stores message format 0.10.1; kafka-python pinned to 0.10.1 and unpinned, four APIs only.

    Both clients write with none, gzip, snappy and lz4 and with acks 0, 1 and all, and each reads what both wrote. The
    topics exist beforehand and the consumers seek by themselves, so that only ApiVersions, Metadata, Produce and Fetch
    are on the wire; brokers talk to themselves on another port.
    """
    codecs = CODECS[:4]
    with Cluster(mode="zookeeper", config=OLD_FORMAT, listeners=clients_listener()) as cluster:
        for form in ("pcap", "pcapng"):
            prefix = "first-light" if form == "pcap" else "first-light-ng"
            topics(cluster, *(f"{prefix}-{codec}" for codec in codecs), partitions=2)
            ports = cluster.ports("CLIENT")
            with target.recording(cluster, "kafka-python", prefix, first_light.__doc__, ports, form=form) as recording:
                old = KafkaPython(recording, cluster.bootstrap("CLIENT"), (0, 10, 1))
                new = KafkaPython(recording, cluster.bootstrap("CLIENT"), None)
                what = SAMPLES if form == "pcap" else samples(4)
                for codec in codecs:
                    topic = f"{prefix}-{codec}"
                    count = old.produce(topic, what, codec=codec, acks=1)
                    count += old.produce(topic, what[:3], codec=codec, acks=0, partition=0)
                    count += new.produce(topic, what, codec=codec, acks="all")
                    count += new.produce(topic, what[:2], codec=codec, acks=0, partition=1)
                    old.read(topic, (0, 1), count)
                    new.read(topic, (0, 1), count)


def kafka_python_pins(target: Target) -> None:
    """kafka-python pinned to 0.9, 0.10.1, 1.0 and unpinned: all codecs, acks, a group that rebalances, administration.

    Against a broker that stores message format 0.10.1, 3.9 in KRaft mode (which still converts down), and the newest.
    """
    pins: tuple[tuple[str, tuple[int, ...] | None], ...] = (
        ("pinned-0.9", (0, 9)),
        ("pinned-0.10.1", (0, 10, 1)),
        ("pinned-1.0", (1, 0)),
        ("unpinned", None),
    )
    clusters: list[tuple[dict[str, Any], Sequence[str]]] = [
        ({"mode": "zookeeper", "config": OLD_FORMAT}, ("pinned-0.9", "pinned-0.10.1")),
        (
            {"mode": "kraft", "version": kafka_jars.KRAFT3, "config": authorized("kraft")},
            ("pinned-1.0",),
        ),
        ({"mode": "kraft", "version": target.newest, "config": authorized("kraft")}, ("unpinned",)),
    ]
    for settings, wanted in clusters:
        with Cluster(**settings, listeners=clients_listener()) as cluster:
            for name, pin in pins:
                if name not in wanted:
                    continue
                prefix = name.replace(".", "")
                ports = cluster.ports("CLIENT")
                with target.recording(cluster, "kafka-python", name, kafka_python_pins.__doc__, ports) as recording:
                    client = KafkaPython(recording, cluster.bootstrap("CLIENT"), pin)
                    modern = (pin is None or pin >= (0, 11)) and not cluster.legacy
                    what = samples(10, headers=modern)
                    names = [
                        f"{prefix}-{codec}" for codec in client.codecs() if not (cluster.legacy and codec == "zstd")
                    ]
                    if pin is None or pin >= (0, 10, 1):
                        client.create(*names, f"{prefix}-tx")
                    else:
                        topics(cluster, *names, partitions=2)
                    for topic in names:
                        codec = topic.rpartition("-")[2]
                        client.produce(topic, what, codec=codec, acks="all")
                        client.produce(topic, what[:3], codec=codec, acks=1)
                        client.produce(topic, what[:2], codec=codec, acks=0)
                    if modern:
                        client.produce(names[0], what[:5], codec="gzip", acks="all", enable_idempotence=True)
                        client.transactions(f"{prefix}-tx", what[:4])
                        client.read(f"{prefix}-tx", (0, 1), 8, isolation_level="read_committed")
                    client.group(names, f"{prefix}-group")
                    if pin is None or pin >= (0, 10, 1):
                        client.administer(names[0], f"{prefix}-group")


def conversions(target: Target) -> None:
    """Old consumers on topics that new producers wrote, and the other way round (3.9 converts down, 4.x refuses).

    The unpinned producer writes magic 2 with every codec, headers included; clients pinned to 0.9 (Fetch v1) and 0.10.1
    (Fetch v3) read it: magic 0 with the old LZ4 checksum, magic 1, and an error for zstd. Then the old ones write (the
    broker converts up) and everyone reads.
    """
    with (
        Cluster(mode="kraft", version=kafka_jars.KRAFT3, listeners=clients_listener()) as cluster,
        target.recording(
            cluster, "kafka-python", "conversions", conversions.__doc__, cluster.ports("CLIENT")
        ) as recording,
    ):
        address = cluster.bootstrap("CLIENT")
        new, old, oldest = (KafkaPython(recording, address, pin) for pin in (None, (0, 10, 1), (0, 9)))
        what = samples(8, headers=True)
        new.create(*(f"conv-{codec}" for codec in CODECS), partitions=1)
        for codec in CODECS:
            topic = f"conv-{codec}"
            count = new.produce(topic, what, codec=codec)
            if codec == "zstd":
                new.read(topic, (0,), count)
                old.read(topic, (0,), count, seconds=2)
                continue
            oldest.read(topic, (0,), count)
            old.read(topic, (0,), count)
            count += oldest.produce(topic, what[:6], codec=codec)
            count += old.produce(topic, what[:6], codec=codec)
            for client in (new, old, oldest):
                client.read(topic, (0,), count)


# -- client programs ------------------------------------------------------------------------------------------------


def librdkafka(target: Target) -> None:
    """librdkafka: pretending to talk to 0.9.0 (magic 0, no ApiVersions) and current.

    The old way reads and writes on a broker with message format 0.10.1; the current one, on the newest release,
    does all codecs, idempotence, transactions with an abort, groups with the classic and (4.x) the new protocol, and
    administration.
    """
    old = {"api.version.request": False, "broker.version.fallback": "0.9.0"}
    clusters: tuple[dict[str, Any], ...] = (
        {"mode": "zookeeper", "config": OLD_FORMAT},
        {"mode": "kraft", "version": target.newest, "config": authorized("kraft")},
    )
    for settings in clusters:
        with Cluster(**settings, listeners=clients_listener()) as cluster:
            address, ports = cluster.bootstrap("CLIENT"), cluster.ports("CLIENT")
            legacy = list(CODECS[:4])
            if cluster.legacy:
                topics(cluster, *(f"old-{codec}" for codec in legacy), partitions=2)
                with target.recording(cluster, "librdkafka", "fallback-0.9", librdkafka.__doc__, ports) as recording:
                    steps = ["produce", "read", "group"]
                    with plan(recording, address, "old", samples(10), codecs=legacy, config=old, steps=steps) as path:
                        recording.run("librdkafka-fallback-0.9", [*toolchains.old_librdkafka(), str(path)])
                continue
            about = "librdkafka writes one byte too many behind an AlterUserScramCredentials request; brokers take it."
            with (
                target.recording(cluster, "librdkafka", "trailing-byte", about, ports, odd=True) as recording,
                plan(recording, address, "new", [], steps=["credentials"]) as path,
            ):
                recording.run("librdkafka", [*toolchains.librdkafka(), str(path)])
            with target.recording(cluster, "librdkafka", "current", librdkafka.__doc__, ports) as recording:
                steps = ["create", "produce", "read", "group", "admin", "idempotent", "transactions", "group-consumer"]
                with plan(recording, address, "new", samples(10, headers=True), steps=steps) as path:
                    recording.run("librdkafka", [*toolchains.librdkafka(), str(path)])


def _modern(
    target: Target, version: str, client: str, form: str, make: Callable[[], list[str]], about: str | None, **more: Any
) -> None:
    """One client program against one release in KRaft mode, each in another form of capture."""
    with Cluster(version=version, config=authorized("kraft"), listeners=clients_listener()) as cluster:
        address, ports = cluster.bootstrap("CLIENT"), cluster.ports("CLIENT")
        with (
            target.recording(cluster, client, "current", about, ports, form=form) as recording,
            plan(recording, address, client, samples(10, headers=True), **more) as path,
        ):
            recording.run(client, [*make(), str(path)])


def aiokafka(target: Target) -> None:
    """aiokafka: all codecs, acks, idempotence, transactions with an abort, a group that rebalances, administration."""
    _modern(target, target.newest, "aiokafka", "pcapng", toolchains.aiokafka, aiokafka.__doc__)


def kafkajs(target: Target) -> None:
    """kafkajs: none, gzip and snappy, acks, idempotence, transactions with an abort, a group, administration."""
    codecs = ["none", "gzip", "snappy"]
    _modern(target, kafka_jars.KRAFT3, "kafkajs", "sll2", toolchains.kafkajs, kafkajs.__doc__, codecs=codecs)


def kafkajs_codecs(target: Target) -> None:
    """kafkajs with every codec: gzip of its own, snappy and lz4 by their plug-ins, zstd by zstd-wasm."""
    with Cluster(version=kafka_jars.KRAFT3, listeners=clients_listener()) as cluster:
        address, ports = cluster.bootstrap("CLIENT"), cluster.ports("CLIENT")
        with (
            target.recording(cluster, "kafkajs", "codecs", kafkajs_codecs.__doc__, ports) as recording,
            plan(recording, address, "codecs", samples(6, headers=True), steps=["codecs"]) as path,
        ):
            recording.run("kafkajs", [*toolchains.kafkajs(), str(path)])


def franz(target: Target) -> None:
    """franz-go: all codecs, acks, transactions with an abort, a group that rebalances, administration."""
    _modern(target, target.newest, "franz-go", "sll", toolchains.franz, franz.__doc__)


# -- Kafka's own clients --------------------------------------------------------------------------------------------


def java_clients(target: Target) -> None:
    """Kafka's own clients: producer, consumer, transactions, groups of each kind, admin client, Streams.

    ``tools`` holds what the console and perf tools did, which do not say what they sent: the expectations there are
    only what a consumer read afterwards.
    """
    for version in (kafka_jars.KRAFT3, target.newest):
        modern = version == target.newest
        config = authorized("kraft")
        if not modern:
            config["group.coordinator.rebalance.protocols"] = "classic,consumer"
        with Cluster(version=version, config=config, listeners=clients_listener()) as cluster:
            address, ports = cluster.bootstrap("CLIENT"), cluster.ports("CLIENT")
            topics(cluster, *(f"java-{codec}" for codec in CODECS), "java-tx", "java-counts", partitions=2)
            with target.recording(cluster, "java", "clients", java_clients.__doc__, ports) as recording:
                steps = "produce,transactions,read,classic,consumer"
                recording.run("java", java(cluster, "ClientTour", address, "java", steps))
            if modern:
                with (
                    target.recording(cluster, "java", "streams", java_clients.__doc__, ports) as recording,
                    tempfile.TemporaryDirectory() as state,
                ):
                    recording.run(
                        "streams", java(cluster, "StreamsTour", address, "java", "6", state, "group.protocol=streams")
                    )
                # The share coordinator talks to itself through INTERNAL; those connections are first made here.
                both = cluster.ports("CLIENT", "INTERNAL")
                with target.recording(cluster, "java", "share", java_clients.__doc__, both) as recording:
                    recording.run("java-share", java(cluster, "ShareTour", address, "java"))
            with target.recording(cluster, "java", "admin", java_clients.__doc__, ports) as recording:
                recording.run("java-admin", java(cluster, "AdminTour", address, "java", "1"))
            if modern:
                with target.recording(cluster, "java", "tools", java_clients.__doc__, ports) as recording:
                    tools(cluster, recording, address)


def tools(cluster: Cluster, recording: Recording, address: str) -> None:
    """Kafka's command-line producers, consumers and perf tools (of Kafka 4: their options changed)."""
    lines = "".join(f"key-{n}:line number {n}\n" for n in range(20))
    recording.clients["console tools"] = f"Apache Kafka {cluster.version}"
    console = ["--bootstrap-server", address, "--topic", "tools"]
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    cluster.tool("console-producer", *console, "--command-property", "linger.ms=20", *keyed, stdin=lines)
    cluster.tool("console-consumer", *console, "--from-beginning", "--max-messages", "20", "--group", "tools-console")
    perf = ["--num-records", "200", "--throughput", "-1", "--record-size", "40"]
    cluster.tool("producer-perf", *console, *perf, "--command-property", "compression.type=zstd")
    cluster.tool("consumer-perf", *console, "--num-records", "220", "--timeout", "5000")
    cluster.tool("console-share-consumer", *console, "--timeout-ms", "3000", check=False)
    KafkaPython(recording, address, None).read("tools", (0,), 220)


# -- brokers among themselves ---------------------------------------------------------------------------------------

INTER_BROKER = ("0.10.0", "1.0", "2.2", "2.4", "2.8", "3.9")


def zookeeper_brokers(target: Target) -> None:
    """Two brokers and a controller in ZooKeeper mode, from start to end, at many inter-broker protocol versions.

    From the first connection on: LeaderAndIsr, UpdateMetadata, StopReplica, replica fetchers, a topic with two replicas
    that is written, moved and deleted, a controlled shutdown of one broker and its return.
    """
    for level in INTER_BROKER:
        config = {
            "inter.broker.protocol.version": level,
            "log.message.format.version": level if not level.startswith("3") else "3.0",
            "replica.fetch.wait.max.ms": "1000",
            "replica.lag.time.max.ms": "3000",
            "num.network.threads": "2",
        }
        cluster = Cluster(mode="zookeeper", brokers=2, config=config)
        with (
            _recorded_cluster(cluster),
            target.recording(
                cluster, "brokers", f"protocol-{level}", zookeeper_brokers.__doc__, cluster.ports("INTERNAL")
            ) as recording,
        ):
            cluster.launch()
            address = cluster.bootstrap("INTERNAL")
            pin = (0, 10, 1) if cluster.legacy else None
            client = KafkaPython(recording, address, pin)
            topics(cluster, "pair", "gone", partitions=2, replicas=2)
            client.produce("pair", samples(6), codec="gzip")
            client.produce("pair", samples(6), codec="none")
            client.read("pair", (0, 1), 26)
            _administer(address, lambda admin: admin.alter_partition_reassignments({_tp("pair", 0): [1]}))
            _administer(address, lambda admin: admin.delete_topics(["gone"]))
            time.sleep(1.0)
            second = cluster.nodes[1]
            cluster.stop_node(second)
            client.produce("pair", samples(2), codec="none")
            cluster.start_node(second)
            time.sleep(1.5)
            cluster.halt()


def kraft_brokers(target: Target) -> None:
    """Three KRaft nodes, voters and brokers: the quorum from its first vote, registrations, heartbeats, a failover.

    Topics with replicas, forwarded requests (Envelope), a leader that stops (EndQuorumEpoch, Vote, BeginQuorumEpoch),
    transactions over several brokers (WriteTxnMarkers, AllocateProducerIds); with dynamic voters on the newest release
    also an observer that becomes a voter and is removed, a voter that comes back on another port, and a share group.
    """
    for version in (kafka_jars.KRAFT3, target.newest):
        modern = version == target.newest
        config = {
            "replica.fetch.wait.max.ms": "1000",
            "num.network.threads": "2",
            "broker.heartbeat.interval.ms": "1000",
            "metadata.log.max.record.bytes.between.snapshots": "2000",
            "controller.quorum.fetch.timeout.ms": "2000",
            "transaction.state.log.replication.factor": "2",
            "offsets.topic.replication.factor": "2",
            "metadata.max.idle.interval.ms": "2000",
        }
        if modern:
            config |= {"share.coordinator.state.topic.replication.factor": "2"}
        cluster = Cluster(
            version=version, brokers=3, controllers=3, config=config, dynamic=modern, spares=int(modern), log_dirs=2
        )
        with _recorded_cluster(cluster):
            ports = cluster.ports("INTERNAL", "CONTROLLER")
            elsewhere = free_port(set(ports))
            with target.recording(
                cluster, "brokers", "quorum", kraft_brokers.__doc__, [*ports, elsewhere]
            ) as recording:
                cluster.launch()
                address = cluster.bootstrap("INTERNAL")
                client = KafkaPython(recording, address, None)
                topics(cluster, "pair", "pair-tx", "gone", partitions=2, replicas=2)
                client.produce("pair", samples(6), codec="zstd")
                client.transactions("pair-tx", samples(0)[:4])
                client.group(["pair"], "pair-group", life=2.0)
                _administer(address, lambda admin: admin.alter_partition_reassignments({_tp("pair", 0): [1, 3]}))
                _administer(address, lambda admin: admin.delete_topics(["gone"]))
                for node in cluster.nodes[:3]:
                    _change_folder(address, node, "pair-tx")
                if modern:
                    spare = cluster.nodes[-1]
                    arguments = [
                        cluster.bootstrap("CONTROLLER"),
                        str(spare.node_id),
                        "127.0.0.1",
                        str(spare.ports["CONTROLLER"]),
                    ]
                    recording.run("quorum-tour", java(cluster, "QuorumTour", address, *arguments))
                leader = _quorum_leader(cluster)
                cluster.stop_node(leader)
                client.produce("pair", samples(2), codec="none")
                if modern:
                    _change_port(leader, elsewhere)  # a voter that comes back elsewhere says so (UpdateRaftVoter)
                cluster.start_node(leader)
                time.sleep(3.0)
                cluster.halt()


# -- what no client sends -------------------------------------------------------------------------------------------


def raw(target: Target) -> None:
    """Every API in every version that a broker or controller announces, written by kwire; versions from the future.

    Against 3.9 in ZooKeeper mode, and 3.9 and the newest release in KRaft mode, broker and controller listeners. The
    records are not in the expectations; the notes name the versions that a broker announced but did not answer.
    """
    from raw_requests import sweep, unsupported_versions

    seen: set[tuple[int, int]] = set()
    clusters: tuple[dict[str, Any], ...] = (
        {"mode": "kraft", "version": target.release or kafka_jars.NEWEST_BROKER},
        {"mode": "zookeeper", "version": kafka_jars.ZOOKEEPER},
        {"mode": "kraft", "version": kafka_jars.KRAFT3},
    )
    for settings in clusters:
        with Cluster(**settings, listeners=clients_listener()) as cluster:
            topics(cluster, "raw")
            told: Any = _administer(cluster.bootstrap(), lambda admin: admin.describe_topics(["raw"]))
            identity = UUID(str(told[0]["topic_id"]))
            listeners = {"every-version": "CLIENT"}
            if cluster.mode == "kraft":
                listeners["controller"] = "CONTROLLER"
            for name, listener in listeners.items():
                address = cluster.bootstrap(listener)
                ports = cluster.ports(listener)
                about = "ApiVersions in versions from the future: answered in version 0, with error 35."
                with target.recording(cluster, "raw", f"future-{name}", about, ports, odd=True) as recording:
                    unsupported_versions(recording, address)
                with target.recording(cluster, "raw", name, raw.__doc__, ports) as recording:
                    sweep(recording, address, identity, seen)


# -- authentication -------------------------------------------------------------------------------------------------


def authentication(target: Target) -> None:
    """Every SASL mechanism, in plain text and over TLS, with several clients; a wrong password; delegation tokens.

    A client pinned to 0.10.1 sends SaslHandshake v0 and raw tokens without headers, later ones SaslAuthenticate. TLS
    connections are in the capture as they are, and unreadable.
    """
    listeners = {
        "PLAIN": Listener("SASL_PLAINTEXT", ("PLAIN",), port=9092),
        "SCRAM": Listener("SASL_PLAINTEXT", ("SCRAM-SHA-256", "SCRAM-SHA-512"), port=9192),
        "OAUTH": Listener("SASL_PLAINTEXT", ("OAUTHBEARER",), port=9292),
        "TLS": Listener("SSL", port=9093),
        "SASL_TLS": Listener("SASL_SSL", ("PLAIN", "SCRAM-SHA-512"), port=9193),
    }
    config = {"delegation.token.secret.key": "only-for-tests", "delegation.token.master.key": "only-for-tests"}
    clusters: list[dict[str, Any]] = [
        {"mode": "zookeeper", "config": config},
        {"mode": "kraft", "version": target.newest, "config": {"delegation.token.secret.key": "only-for-tests"}},
    ]
    for settings in clusters:
        with Cluster(**settings, listeners=listeners) as cluster:
            topics(cluster, "auth-none", "auth-lz4", partitions=2)
            encrypted = cluster.ports("TLS", "SASL_TLS")
            ports = cluster.ports(*listeners)
            with target.recording(
                cluster, "auth", "mechanisms", authentication.__doc__, ports, encrypted=encrypted
            ) as recording:
                _authenticate(cluster, recording)


def _authenticate(cluster: Cluster, recording: Recording) -> None:
    assert cluster.tls is not None
    account = {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    plaintext = {"security_protocol": "SASL_PLAINTEXT", **account}
    tls = {"ssl_cafile": str(cluster.tls.ca)}
    ways: list[tuple[str, dict[str, Any]]] = [
        ("PLAIN", {**plaintext, "sasl_mechanism": "PLAIN"}),
        ("SCRAM", {**plaintext, "sasl_mechanism": "SCRAM-SHA-256"}),
        ("SCRAM", {**plaintext, "sasl_mechanism": "SCRAM-SHA-512"}),
        ("TLS", {"security_protocol": "SSL", **tls}),
        ("SASL_TLS", {"security_protocol": "SASL_SSL", **account, **tls, "sasl_mechanism": "PLAIN"}),
        ("SASL_TLS", {"security_protocol": "SASL_SSL", **account, **tls, "sasl_mechanism": "SCRAM-SHA-512"}),
    ]
    what = samples(0)[:3]
    count = 0
    for listener, security in ways:
        client = KafkaPython(recording, cluster.bootstrap(listener), None, **security)
        count += client.produce("auth-none", what, partition=0)
        if listener in ("PLAIN", "SCRAM") and cluster.mode == "zookeeper":
            # SaslHandshake v0 and tokens without a header; 4.x still takes both, but not Produce v2.
            old = KafkaPython(recording, cluster.bootstrap(listener), (0, 10, 1), **security)
            count += old.produce("auth-none", what, partition=0)
    reader = KafkaPython(recording, cluster.bootstrap("PLAIN"), None, **ways[0][1])
    reader.read("auth-none", (0,), count)
    wrong = KafkaPython(
        recording,
        cluster.bootstrap("PLAIN"),
        None,
        **{**ways[0][1], "sasl_plain_password": "wrong", "bootstrap_timeout_ms": 1500},
    )
    try:
        wrong.produce("auth-none", what[:1])
    except kafka.errors.KafkaError as error:
        recording.note(wrong.name, "wrong password", error=type(error).__name__)
    for listener, mechanism in (("PLAIN", "PLAIN"), ("SCRAM", "SCRAM-SHA-512")):
        config = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
        config |= {"sasl.username": USER, "sasl.password": PASSWORD}
        with plan(
            recording,
            cluster.bootstrap(listener),
            "auth",
            what,
            config=config,
            codecs=["lz4"],
            steps=["produce", "read"],
        ) as path:
            recording.run(f"librdkafka {mechanism}", [*toolchains.librdkafka(), str(path)])
    module = "org.apache.kafka.common.security"
    login = f'{module}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
    scram = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-256", f"sasl.jaas.config={login}"]
    recording.run(
        "java-admin SCRAM-SHA-256",
        java(cluster, "AdminTour", cluster.bootstrap("SCRAM"), "auth", "1", "tour=security", *scram),
    )
    login = f'{module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";'
    oauth = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", f"sasl.jaas.config={login}"]
    recording.run(
        "java OAUTHBEARER", java(cluster, "ClientTour", cluster.bootstrap("OAUTH"), "auth", "telemetry", *oauth)
    )


def kerberos(target: Target) -> None:
    """GSSAPI with a KDC: raw as 0.9 has it, behind SaslHandshake v0 (0.10.1), in SaslAuthenticate (3.9, 4.3).

    Kafka's brokers and clients negotiate authentication only (QOP auth): what follows the exchange is not wrapped.
    """
    releases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
        ({"mode": "zookeeper"}, ("0.9.0.1", "0.10.1.1", kafka_jars.ZOOKEEPER)),
        ({"mode": "kraft", "version": target.newest}, (kafka_jars.KRAFT3,)),
    ]
    listeners = {"GSS": Listener("SASL_PLAINTEXT", ("GSSAPI",), host="localhost", port=9092)}
    with Kdc() as kdc, _java_options(kdc.java):
        broker, client = kdc.keytab("kafka/localhost"), kdc.keytab("kwire")
        config = {
            "listener.name.gss.gssapi.sasl.jaas.config": kdc.login("kafka/localhost", broker),
            "sasl.kerberos.service.name": "kafka",
        }
        login = kdc.folder / "jaas.conf"
        login.write_text(f"KafkaClient {{ {kdc.login('kwire', client)} }};\n")
        for settings, versions in releases:
            with Cluster(**settings, listeners=listeners, config=config) as cluster:
                topics(cluster, "kerberos")
                ports = cluster.ports("GSS")
                with target.recording(cluster, "kerberos", "gssapi", kerberos.__doc__, ports) as recording:
                    for version in versions:
                        settings_ = {
                            "bootstrap.servers": cluster.bootstrap("GSS"),
                            "security.protocol": "SASL_PLAINTEXT",
                            "sasl.mechanism": "GSSAPI",
                            "sasl.kerberos.service.name": "kafka",
                            "client.id": f"java-{version}",
                        }
                        command = [kafka_jars.java(), f"-Djava.security.auth.login.config={login}"]
                        command += [
                            "-cp",
                            toolchains.java_client(version),
                            str(toolchains.CLIENTS / "kerberos/Talk.java"),
                        ]
                        command += ["kerberos", *(f"{name}={value}" for name, value in settings_.items())]
                        recording.run(f"java {version}", command)
                        recording.clients[f"java {version}"] = f"kafka-clients {version}"


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Options of every JVM that is started meanwhile."""
    before = os.environ.get("JDK_JAVA_OPTIONS")
    os.environ["JDK_JAVA_OPTIONS"] = options
    try:
        yield
    finally:
        if before is None:
            del os.environ["JDK_JAVA_OPTIONS"]
        else:
            os.environ["JDK_JAVA_OPTIONS"] = before


def encrypted(target: Target) -> None:
    """TLS 1.2 and 1.3 with the key log of the clients: kafka-python, franz-go, and Java with an agent.

    Over the listeners for SSL and SASL_SSL. Beside each capture stands ``NAME.keys``, the key log.
    """
    listeners = {"TLS": Listener("SSL", port=9093), "SASL_TLS": Listener("SASL_SSL", ("PLAIN", "SCRAM-SHA-512"))}
    with Cluster(version=target.newest, listeners=listeners) as cluster:
        topics(cluster, "tls-1.2", "tls-1.3", "tls-java")
        ports = cluster.ports(*listeners)
        for name, version, form in (
            ("tls-1.2", ssl.TLSVersion.TLSv1_2, "pcap"),
            ("tls-1.3", ssl.TLSVersion.TLSv1_3, "pcapng"),
        ):
            with _encrypted(target, cluster, "kafka-python", name, ports, form=form) as (recording, keys):
                _kafka_python_over_tls(cluster, recording, version, keys)
        with (
            _encrypted(target, cluster, "franz-go", "tour", ports, form="sll") as (recording, keys),
            plan(
                recording,
                cluster.bootstrap("TLS"),
                "franz-go",
                samples(0, headers=True),
                codecs=["zstd"],
                ca=str(cluster.tls.ca if cluster.tls else ""),
                keylog=str(keys),
            ) as path,
        ):
            recording.run("franz-go", [*toolchains.franz(), str(path)])
        with _encrypted(target, cluster, "java", "agent", ports) as (recording, keys):
            _java_over_tls(cluster, recording, keys)


@contextmanager
def _encrypted(
    target: Target, cluster: Cluster, client: str, name: str, ports: Sequence[int], **options: Any
) -> Iterator[tuple[Recording, Path]]:
    """A recording of TLS, and the file that its key log goes to."""
    about = encrypted.__doc__
    with target.recording(cluster, client, name, about, ports, encrypted=ports, tls=True, **options) as recording:
        keys = recording.path.with_name(recording.path.name + ".keys")
        keys.unlink(missing_ok=True)
        yield recording, keys


def _kafka_python_over_tls(cluster: Cluster, recording: Recording, version: ssl.TLSVersion, keys: Path) -> None:
    assert cluster.tls is not None
    context = ssl.create_default_context(cafile=str(cluster.tls.ca))
    context.minimum_version = context.maximum_version = version
    context.check_hostname = False
    context.keylog_filename = str(keys)
    account = {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    ways: list[tuple[str, dict[str, Any]]] = [
        ("TLS", {"security_protocol": "SSL"}),
        ("SASL_TLS", {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", **account}),
        ("SASL_TLS", {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **account}),
    ]
    # More than a record of TLS holds.
    large = [Sample(b"large", b"0123456789abcdef" * 1100)]
    topic, count = recording.path.name, 0
    for listener, security in ways:
        client = KafkaPython(recording, cluster.bootstrap(listener), None, ssl_context=context, **security)
        count += client.produce(topic, [*samples(0)[:3], *large], partition=0)
        large = []
    client.read(topic, (0,), count)


def _java_over_tls(cluster: Cluster, recording: Recording, keys: Path) -> None:
    """Kafka's console clients, in JVMs with an agent that writes the key log."""
    assert cluster.tls is not None
    recording.clients["console tools"] = f"Apache Kafka {cluster.version}"
    lines = "".join(f"key-{n}:line number {n}\n" for n in range(20))
    settings = cluster.folder / "tls.properties"
    console = ["--bootstrap-server", cluster.bootstrap("TLS"), "--topic", "tls-java", "--command-config", str(settings)]
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    previous = os.environ.get("JAVA_TOOL_OPTIONS")
    os.environ["JAVA_TOOL_OPTIONS"] = f"-javaagent:{toolchains.tls_agent()}={keys}"
    try:
        for version in ("TLSv1.2", "TLSv1.3"):
            settings.write_text(
                f"security.protocol=SSL\nssl.enabled.protocols={version}\nssl.truststore.type=PKCS12\n"
                f"ssl.truststore.location={cluster.tls.truststore}\nssl.truststore.password={cluster.tls.password}\n"
            )
            cluster.tool("console-producer", *console, "--command-property", "linger.ms=20", *keyed, stdin=lines)
            cluster.tool("console-consumer", *console, "--from-beginning", "--max-messages", "20")
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]
        if previous is not None:
            os.environ["JAVA_TOOL_OPTIONS"] = previous


# -- log segments ---------------------------------------------------------------------------------------------------


def segments(target: Target) -> None:
    """Log segments of topics and of the internal topics, with what Kafka's dump-log tool prints for them.

    Folders tests/golden/segments/BROKER/PARTITION; the expectations of all topics are in BROKER/records.told.jsonl.
    Magic 0 and 1 come from 3.9 in ZooKeeper mode with that message format, magic 2 from 3.9 and the newest in KRaft.
    """
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("3.9-zk-format-0.9", {"mode": "zookeeper", "config": OLD_FORMAT | {"log.message.format.version": "0.9.0"}}),
        ("3.9-zk-format-0.10", {"mode": "zookeeper", "config": OLD_FORMAT}),
        ("3.9-kraft", {"mode": "kraft", "version": kafka_jars.KRAFT3, "config": {}}),
        (f"{'.'.join(target.newest.split('.')[:2])}-kraft", {"mode": "kraft", "version": target.newest, "config": {}}),
    ]
    for name, settings in kinds:
        modern = not name.startswith("3.9-zk")
        if modern:
            settings["config"] = {"metadata.log.max.record.bytes.between.snapshots": "1000"}
        folder = target.out / "segments" / name
        shutil.rmtree(folder, ignore_errors=True)
        with Cluster(**settings) as cluster:
            address = cluster.bootstrap()
            about = f"Apache Kafka {cluster.version}, {cluster.mode} mode"
            recording = Recording(
                folder / "records", cluster.ports(), segments.__doc__ or "", about, form="none", exact=False
            )
            codecs = CODECS if modern else CODECS[:4]
            with recording:
                client = KafkaPython(recording, address, None)
                what = samples(6, headers=modern)
                topics(cluster, *(f"log-{codec}" for codec in codecs))
                topics(cluster, "log-append-time", message_timestamp_type="LogAppendTime")
                topics(
                    cluster,
                    "log-compacted",
                    cleanup_policy="compact",
                    segment_ms="100",
                    min_cleanable_dirty_ratio="0.01",
                )
                for codec in codecs:
                    client.produce(f"log-{codec}", what, codec=codec)
                    client.produce(f"log-{codec}", what[:3], codec="none")
                client.produce("log-append-time", what, codec="gzip")
                client.produce("log-compacted", what[-5:] + what[-5:], codec="none")
                client.group([f"log-{codec}" for codec in codecs], "log-group", life=2.0)
                if modern:
                    topics(cluster, "log-tx")
                    client.transactions("log-tx", what[:4])
                    if cluster.version == target.newest:
                        topics(cluster, "java-none", "java-lz4")
                        client.produce("java-none", what[:4])
                        recording.run("java-share", java(cluster, "ShareTour", address, "java"))
                for topic in [*(f"log-{codec}" for codec in codecs), "log-append-time"]:
                    client.read(topic, (0,), len(what) - 1 + (3 if topic != "log-append-time" else 0))
            cluster.halt()
            for place in sorted((cluster.nodes[0].folder / "data").iterdir()):
                if place.is_dir() and place.name.startswith(("log-", "__")):
                    segment_files.keep(cluster, place, folder / place.name)


def segment_indexes(target: Target) -> None:
    """Partitions of several segments with their indexes, and what Kafka's dump-log tool prints for each file.

    Folders tests/golden/segments/BROKER-indexes/PARTITION; what the topics are for is in indexed_topics.py. There are
    no expectations of clients: the log beside an index says what must be in it.
    """
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("3.7-zk-format-0.10", {"mode": "zookeeper", "version": ENTRY_PER_APPEND, "config": OLD_FORMAT}),
        ("3.9-zk-format-0.10", {"mode": "zookeeper", "config": OLD_FORMAT}),
        ("3.9-kraft", {"mode": "kraft", "version": kafka_jars.KRAFT3, "config": {}}),
        (f"{'.'.join(target.newest.split('.')[:2])}-kraft", {"mode": "kraft", "version": target.newest, "config": {}}),
    ]
    for name, settings in kinds:
        modern = settings["mode"] == "kraft"
        settings["config"] = {**settings["config"], "log.cleaner.backoff.ms": "200"}
        folder = target.out / "segments" / f"{name}-indexes"
        shutil.rmtree(folder, ignore_errors=True)
        with Cluster(**settings) as cluster:
            about = f"Apache Kafka {cluster.version}, {cluster.mode} mode"
            recording = Recording(
                folder / "records", cluster.ports(), segment_indexes.__doc__ or "", about, form="none", exact=False
            )
            with recording:
                recording.clients["kafka-python"] = f"kafka-python {kafka.__version__}"
                names = [name for name in indexed_topics.TOPICS if modern or name != indexed_topics.TRANSACTIONS]
                if cluster.version == ENTRY_PER_APPEND:
                    names = ["index-plain", "index-compacted"]  # where several messages are appended at once
                for topic in names:
                    topics(cluster, topic, **indexed_topics.TOPICS[topic])
                indexed_topics.fill(cluster.bootstrap(), names, CODECS if modern else CODECS[:4])
                data = cluster.nodes[0].folder / "data"
                indexed_topics.wait_for_cleaner(data, "index-compacted")
            cluster.halt()
            for place in sorted(data.glob("index-*-0")):
                segment_files.keep(cluster, place, folder / place.name, indexes=True)


def log_folders(target: Target) -> None:
    """What brokers keep beside their segments: the files of a whole log folder, without the segments.

    Folders tests/golden/segments/BROKER-folder/NODE: checkpoints and meta.properties, and of each partition
    leader-epoch-checkpoint, partition.metadata, snapshots of producers and indexes of aborted transactions. One of two
    brokers is stopped once, so that there is a second leader epoch; records are deleted up to an offset and a topic is
    compacted, so that the checkpoints of both say something.
    """
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("3.9-zk", {"mode": "zookeeper", "config": {}}),
        (f"{'.'.join(target.newest.split('.')[:2])}-kraft", {"mode": "kraft", "version": target.newest, "config": {}}),
    ]
    for name, settings in kinds:
        folder = target.out / "segments" / f"{name}-folder"
        shutil.rmtree(folder, ignore_errors=True)
        settings["config"] = {
            "log.cleaner.backoff.ms": "200",
            "log.flush.offset.checkpoint.interval.ms": "500",
            "log.flush.start.offset.checkpoint.interval.ms": "500",
            "replica.high.watermark.checkpoint.interval.ms": "500",
        }
        with Cluster(brokers=2, controllers=1, **settings) as cluster:
            address = cluster.bootstrap()
            admin = kafka.KafkaAdminClient(bootstrap_servers=address)
            made = kafka.admin.NewTopic("folder-plain", 2, 2)
            compacted = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
            admin.create_topics([made, kafka.admin.NewTopic("folder-compacted", 1, 1, topic_configs=compacted)])
            time.sleep(1)
            producer = kafka.KafkaProducer(bootstrap_servers=address, transactional_id="folder-writer")
            producer.init_transactions()
            for commit in (True, False, True):
                producer.begin_transaction()
                for partition in (0, 1):
                    producer.send("folder-plain", b"value", partition=partition)
                producer.flush()
                (producer.commit_transaction if commit else producer.abort_transaction)()
            producer.close()
            plain = kafka.KafkaProducer(bootstrap_servers=address)
            for number in range(20):
                plain.send("folder-compacted", key=b"key", value=str(number).encode()).get(10)
                time.sleep(0.15)
            plain.close()
            admin.delete_records({kafka.TopicPartition("folder-plain", 0): 2})
            time.sleep(2)
            second = cluster.nodes[1]
            cluster.stop_node(second)
            time.sleep(1)
            cluster.start_node(second)
            time.sleep(3)
            admin.close()
            cluster.halt()
            for node in cluster.nodes:
                _keep_folder(node.folder / "data", folder / f"node-{node.node_id}")


def _keep_folder(data: Path, target: Path) -> None:
    """Copy the small files of a log folder, and of the partitions of the topics ``folder-*`` in it."""
    beside = ("partition.metadata", "leader-epoch-checkpoint")
    for file in sorted(data.iterdir()):
        if file.is_file() and (file.name.endswith("-checkpoint") or file.name == "meta.properties"):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target / file.name)
    for place in sorted(data.glob("folder-*")):
        for file in sorted(place.iterdir()):
            if file.stat().st_size and (file.name in beside or file.suffix in (".log", ".snapshot", ".txnindex")):
                (target / place.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target / place.name / file.name)


@contextmanager
def _recorded_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster that is planned, so that its ports are known, but started later, inside the recording."""
    try:
        cluster.prepare()
        yield cluster
    finally:
        cluster.stop()


def _quorum_leader(cluster: Cluster) -> Node:
    told: Any = _administer(cluster.bootstrap(), lambda admin: admin.describe_metadata_quorum())
    leader = told["topics"][0]["partitions"][0]["leader_id"]
    return next(node for node in cluster.nodes if node.node_id == leader)


def _tp(topic: str, partition: int) -> Any:
    return kafka.TopicPartition(topic, partition)


def _administer(address: str, call: Callable[[Any], object]) -> object:
    """One call with an admin client of its own. Errors of the broker are welcome in a recording: they give None."""
    admin = kafka.KafkaAdminClient(bootstrap_servers=address.split(","))
    try:
        return call(admin)
    except kafka.errors.KafkaError:
        return None
    finally:
        admin.close()


def _change_port(node: Node, port: int) -> None:
    """Give a stopped controller another port."""
    settings = node.folder / "server.properties"
    lines = settings.read_text().splitlines()
    old = f"CONTROLLER://127.0.0.1:{node.ports['CONTROLLER']}"
    lines = [line.replace(old, f"CONTROLLER://127.0.0.1:{port}") for line in lines]
    settings.write_text("\n".join(lines) + "\n")
    node.ports["CONTROLLER"] = port


def _change_folder(address: str, node: Node, topic: str) -> None:
    """Move a broker's replica of partition 0 to its second log folder, which it tells the controller about."""
    replica = kafka.TopicPartitionReplica(topic, 0, node.node_id)
    _administer(address, lambda admin: admin.alter_replica_log_dirs({replica: str(node.folder / "data-1")}))


ALL: Mapping[str, Callable[[Target], None]] = {
    "first-light": first_light,
    "kafka-python": kafka_python_pins,
    "conversions": conversions,
    "librdkafka": librdkafka,
    "aiokafka": aiokafka,
    "kafkajs": kafkajs,
    "kafkajs-codecs": kafkajs_codecs,
    "franz-go": franz,
    "java": java_clients,
    "zookeeper-brokers": zookeeper_brokers,
    "kraft-brokers": kraft_brokers,
    "raw": raw,
    "authentication": authentication,
    "kerberos": kerberos,
    "encrypted": encrypted,
    "segments": segments,
    "segment-indexes": segment_indexes,
    "log-folders": log_folders,
}
