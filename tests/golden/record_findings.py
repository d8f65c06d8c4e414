"""Record what ``kwire findings`` is about: clients that behave badly, denials by an authorizer, and consumer lag.

    python tests/golden/record_findings.py [findings|denials|lag|leaders|faults ...] [--out DIR]      three minutes

Needs what ``record.py`` needs. Captures are compressed (``NAME.gz``): much of them is the same over and over.

    findings.gz         kafka-python, each client by the name of the rule that it is about: ``bad-RULE`` does what the
                        rule is for, ``near-RULE`` nearly does
    denials.gz          clients of several principals on a cluster with an authorizer; denials.log has the lines of the
                        broker's authorizer log from the session
    lag.gz              groups of several clients on topics that go on growing; lag.txt is what the broker's own tool
                        says of all groups at the end (``kafka-consumer-groups.sh --describe --all-groups``)
    leaders.gz          clients that write to a broker that does not lead the partition (two brokers)
    faults.gz           a log that was cut off, a broker that stands still, batches that come again without idempotence,
                        transactions that are aborted, and lag that only grows: ``bad-RULE``, and ``near-RULE``

Others are captures of scenarios by their names: ``python tests/broker/campaign/run.py record NAME``.

Beside each stands NAME.json: the clients and what they were told.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "broker"), str(HERE.parent / "support")]

import aiokafka  # type: ignore[import-untyped]  # noqa: E402
import capturing  # noqa: E402
import kafka  # type: ignore[import-untyped]  # noqa: E402
import kafka_cluster  # noqa: E402
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # noqa: E402
from capturing import Recording  # noqa: E402
from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # noqa: E402
from kafka.admin import KafkaAdminClient, NewTopic  # noqa: E402
from kafka_cluster import Cluster, Listener  # noqa: E402
from plain_socket import Connection  # noqa: E402

from kwire import messages, records  # noqa: E402

OUT = HERE / "findings"
USERS = {"kwire": "kwire-secret", "alice": "alice-secret", "bob": "bob-secret", "mallory": "mallory-secret"}
VALUE = b"a" * 100


def cluster(brokers: int) -> Cluster:
    kafka_cluster.START_SECONDS = 240
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return Cluster(
        brokers=brokers,
        listeners={"CLIENT": Listener(), "SASL": Listener("SASL_PLAINTEXT", ("PLAIN",))},
        config={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:kwire",
            "auto.create.topics.enable": "false",
            "listener.name.sasl.plain.sasl.jaas.config": f"{login} {users};",
        },
    )


@contextlib.contextmanager
def recorded(name: str, about: str, ports: list[int], out: Path) -> Iterator[Recording]:
    """A recording that is compressed in the end."""
    capturing.LARGEST = 100_000_000  # it is compressed
    with tempfile.TemporaryDirectory() as folder:
        with Recording(Path(folder) / name, ports, about, "Apache Kafka 4.3.1, KRaft mode", exact=False) as recording:
            recording.clients["kafka-python"] = f"kafka-python {kafka.__version__}"
            yield recording
        out.mkdir(exist_ok=True)
        with recording.file.open("rb") as file, gzip.GzipFile(out / f"{name}.gz", "wb", mtime=0) as packed:
            shutil.copyfileobj(file, packed)
        shutil.copy(Path(folder) / f"{name}.json", out / f"{name}.json")


def topics(bootstrap: str, **partitions: int) -> None:
    """Creates topics; an underscore stands for a hyphen."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        names = {name.replace("_", "-"): count for name, count in partitions.items()}
        admin.create_topics([NewTopic(name, count, 1) for name, count in names.items()])
        admin.wait_for_topics(list(names))
    finally:
        admin.close()


# --- clients that behave badly ----------------------------------------------------------------------------------------


class Badly:
    """What each client does, at the broker ``at``."""

    def __init__(self, broker: Cluster, recording: Recording) -> None:
        self.broker, self.recording = broker, recording
        self.at = broker.bootstrap("CLIENT")

    def producer(self, client_id: str, **options: Any) -> Any:
        usual = {"linger_ms": 0, "acks": 1, "enable_idempotence": False} | options
        return KafkaProducer(bootstrap_servers=self.at, client_id=client_id, **usual)

    def consumer(self, client_id: str, *names: str, **options: Any) -> Any:
        usual = {"enable_auto_commit": False, "auto_offset_reset": "earliest"} | options
        return KafkaConsumer(*names, bootstrap_servers=self.at, client_id=client_id, **usual)

    def send(self, client_id: str, topic: str, count: int, each: int = 1, value: bytes = VALUE, **options: Any) -> None:
        """``count`` requests of ``each`` records."""
        with contextlib.closing(self.producer(client_id, **({"linger_ms": 50} if each > 1 else {}) | options)) as one:
            for _ in range(count):
                waiting = [one.send(topic, value) for _ in range(each)]
                one.flush()
                for each_ in waiting:
                    each_.get(timeout=30)

    def tiny_batches(self) -> None:
        self.send("bad-tiny-batches", "few", 1050)
        self.send("near-tiny-batches", "few-more", 400, each=3)

    def no_compression(self) -> None:
        self.send("bad-no-compression", "no-compression", 105, value=b"a" * 100_000)
        self.send("near-no-compression", "near-no-compression", 105, value=b"a" * 100_000, compression_type="gzip")

    def mixed_acks(self) -> None:
        for acks in (0, "all"):
            self.send("bad-mixed-acks", "some", 3, acks=acks) if acks else self._blindly("bad-mixed-acks")
            self.send("near-mixed-acks", "some", 3, acks=acks or 1)

    def _blindly(self, client_id: str) -> None:
        with contextlib.closing(self.producer(client_id, acks=0)) as one:
            for _ in range(3):
                one.send("some", VALUE)
                one.flush()

    def metadata_storm(self) -> None:
        for client_id, count in (("bad-metadata-storm", 65), ("near-metadata-storm", 50)):
            admin = KafkaAdminClient(bootstrap_servers=self.at, client_id=client_id)
            for _ in range(count):
                admin.list_topics()
            admin.close()

    def connection_churn(self) -> None:
        for client_id, count in (("bad-connection-churn", 110), ("near-connection-churn", 40)):
            for _ in range(count):
                self.consumer(client_id).close()

    def producer_per_message(self) -> None:
        for client_id, count in (("bad-producer-per-message", 31), ("near-producer-per-message", 20)):
            for _ in range(count):
                self.send(client_id, "some", 1)
        self.send("near-producer-per-message", "some", 50)

    def rebalance_loop(self) -> None:
        for name, times in (("bad", 6), ("near", 3)):
            for _ in range(times):
                one = self.consumer(f"{name}-rebalance-loop", "some", group_id=f"{name}-rebalance-loop")
                one.poll(timeout_ms=3000, max_records=1)
                one.close()

    def late_heartbeats(self) -> None:
        for name, timeout in (("bad", 2000), ("near", 12_000)):
            arguments = (self.at, f"{name}-late-heartbeats", timeout)
            own = multiprocessing.get_context("spawn").Process(target=joined, args=arguments)
            own.start()
            time.sleep(5)
            os.kill(own.pid or 0, signal.SIGSTOP)
            time.sleep(4)
            os.kill(own.pid or 0, signal.SIGCONT)
            own.join(20)

    def late_polls(self) -> None:
        for name, pause in (("bad", 8.0), ("near", 1.0)):
            options = {"max_poll_interval_ms": 2500, "session_timeout_ms": 10_000, "heartbeat_interval_ms": 500}
            one = self.consumer(f"{name}-late-polls", "some", group_id=f"{name}-late-polls", **options)
            poll(one, 2)
            for _ in range(2):
                time.sleep(pause)
                try:
                    one.commit()
                except kafka.errors.KafkaError as error:
                    self.recording.note(f"{name}-late-polls", "commit", error=type(error).__name__)
                poll(one, 2)
            one.close()

    def empty_fetches(self) -> None:
        for name, wait in (("bad", 1), ("near", 200)):
            one = self.consumer(f"{name}-empty-fetches", fetch_max_wait_ms=wait)
            one.assign([TopicPartition("nothing", 0)])
            poll(one, 20)
            one.close()

    def over_committing(self) -> None:
        for name, count in (("bad", 320), ("near", 200)):
            one = self.consumer(f"{name}-over-committing", "some", group_id=f"{name}-over-committing")
            poll(one, 2)
            for offset in range(count):
                one.commit({TopicPartition("some", 0): kafka.OffsetAndMetadata(offset, "", -1)})
            one.close()

    def offsets_back(self) -> None:
        for name, offsets in (("bad", (5, 9, 7)), ("near", (5, 9, 9))):
            one = self.consumer(f"{name}-offsets-back", "some", group_id=f"{name}-offsets-back")
            poll(one, 2)
            for offset in offsets:
                one.commit({TopicPartition("some", 0): kafka.OffsetAndMetadata(offset, "", -1)})
            one.close()

    def throttled(self) -> None:
        for name, rate in (("bad", 20_000), ("near", 100_000_000)):
            entity = ["--entity-type", "clients", "--entity-name", f"{name}-throttled"]
            self.broker.tool(
                "configs", "--bootstrap-server", self.broker.bootstrap(), "--alter",
                "--add-config", f"producer_byte_rate={rate}", *entity,
            )  # fmt: skip
            self.send(f"{name}-throttled", "some", 6, value=b"a" * 50_000)

    def retried_batches(self) -> None:
        options = {"enable_idempotence": True, "acks": "all", "request_timeout_ms": 2000, "delivery_timeout_ms": 30_000}
        with contextlib.closing(self.producer("bad-retried-batches", **options)) as one:
            one.send("retried", VALUE).get(timeout=20)
            (node,) = self.broker.nodes
            assert node.process is not None
            node.process.send_signal(signal.SIGSTOP)
            waiting = one.send("retried", VALUE)
            time.sleep(3)
            node.process.send_signal(signal.SIGCONT)
            waiting.get(timeout=30)
        self.send("near-retried-batches", "retried", 3, enable_idempotence=True, acks="all")

    def skewed_partitions(self) -> None:
        for name in ("bad", "near"):
            with contextlib.closing(self.producer(f"{name}-skewed-partitions")) as one:
                for k in range(40):
                    one.send(f"{name}-skewed", b"a" * 30_000, partition=0 if name == "bad" else k % 4)
                    one.flush()

    def large_messages(self) -> None:
        self.send("bad-large-messages", "some", 1, value=b"a" * 955_000)
        self.send("near-large-messages", "some", 1, value=b"a" * 940_000)

    def fenced_producers(self) -> None:
        for name in ("bad", "near"):
            made = []
            for k in range(2):
                own = f"{name}-fenced" if name == "bad" else f"{name}-fenced-{k}"
                one = self.producer(
                    f"{name}-fenced-producers", acks="all", enable_idempotence=True, transactional_id=own
                )
                one.init_transactions()
                made.append(one)
            for one in made:
                try:
                    one.begin_transaction()
                    one.send("some", VALUE).get(timeout=10)
                    one.commit_transaction()
                except kafka.errors.KafkaError as error:
                    self.recording.note(f"{name}-fenced-producers", "transaction", error=type(error).__name__)
            for one in made:
                with contextlib.suppress(kafka.errors.KafkaError):
                    one.close(timeout=5)

    def stopped_consumers(self) -> None:
        done = []
        for name, pause in (("bad", 66), ("near", 40)):
            done.append(threading.Thread(target=self._stops, args=(name, pause)))
            done[-1].start()
        for one in done:
            one.join()

    def _stops(self, name: str, pause: float) -> None:
        one = self.consumer(f"{name}-stopped-consumers", "some", group_id=f"{name}-stopped-consumers")
        poll(one, 2)
        one.pause(*one.assignment())
        until = time.monotonic() + pause
        while time.monotonic() < until:
            one.poll(timeout_ms=1000)
        one.close()

    def lag(self) -> None:
        for name, committed in (("bad", 5), ("near", 10)):
            one = self.consumer(f"{name}-lag", group_id=f"{name}-lag")
            one.assign([TopicPartition("long", 0)])
            one.poll(timeout_ms=3000, max_records=1)
            one.commit({TopicPartition("long", 0): kafka.OffsetAndMetadata(committed, "", -1)})
            one.close()

    def repeated_errors(self) -> None:
        for name, count in (("bad", 25), ("near", 15)):
            one = self.consumer(f"{name}-repeated-errors", group_id=f"{name}-repeated-errors")
            one.assign([TopicPartition("some", 0)])
            for k in range(count):
                with contextlib.suppress(kafka.errors.KafkaError):
                    one.commit({TopicPartition("some", 0): kafka.OffsetAndMetadata(k, "x" * 5000, -1)})
            one.close()


def poll(one: Any, seconds: float) -> None:
    """Polls for so long, from when it has partitions."""
    patience = time.monotonic() + 30
    while not one.assignment() and time.monotonic() < patience:
        one.poll(timeout_ms=200)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        one.poll(timeout_ms=200)


def joined(at: str, name: str, timeout: int) -> None:
    """A member of a group, for a process of its own."""
    one = KafkaConsumer(
        "some", bootstrap_servers=at, client_id=name, group_id=name, session_timeout_ms=timeout,
        heartbeat_interval_ms=500, enable_auto_commit=False,
    )  # fmt: skip
    poll(one, 10)
    one.close()


def findings(broker: Cluster, out: Path) -> None:
    """Clients that do what each rule is about, and clients that nearly do."""
    at = broker.bootstrap("CLIENT")
    topics(
        at, few=1, few_more=1, no_compression=1, near_no_compression=1, some=1, nothing=1, retried=1, bad_skewed=4,
        near_skewed=4, long=1,
    )  # fmt: skip
    with contextlib.closing(KafkaProducer(bootstrap_servers=at)) as one:
        for _ in range(10_006):
            one.send("long", b"")
        for _ in range(500):
            one.send("some", VALUE)
    with recorded("findings", (findings.__doc__ or ""), broker.ports("CLIENT"), out) as recording:
        badly = Badly(broker, recording)
        aside = threading.Thread(target=badly.stopped_consumers)
        aside.start()
        names = [name for name, each in vars(Badly).items() if callable(each) and not name.startswith("_")]
        last = ("retried_batches",)
        for name in names:
            if name in ("producer", "consumer", "send", "stopped_consumers", *last):
                continue
            began = time.monotonic()
            getattr(badly, name)()
            print(f"  {name}: {time.monotonic() - began:.1f} s", flush=True)
        aside.join()
        # Everybody would notice the broker that stands still.
        for name in last:
            getattr(badly, name)()


# --- denials ----------------------------------------------------------------------------------------------------------


def _as(user: str, password: str | None = None) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": user,
        "sasl_plain_password": USERS[user] if password is None else password, "client_id": f"of-{user}",
    }  # fmt: skip


def denials(broker: Cluster, out: Path) -> None:
    """Principals that may and may not: alice writes and reads, bob reads without a group, mallory nothing."""
    topics(broker.bootstrap("CLIENT"), secret=2, public=1)
    acls = ["--bootstrap-server", broker.bootstrap(), "--add", "--allow-principal"]
    for principal, rights in (
        ("User:alice", ["--operation", "Write", "--operation", "Read", "--operation", "Describe", "--topic", "public"]),
        ("User:alice", ["--operation", "Read", "--group", "readers"]),
        ("User:bob", ["--operation", "Read", "--operation", "Describe", "--topic", "public"]),
        ("User:bob", ["--operation", "Describe", "--topic", "secret"]),
        ("User:mallory", ["--operation", "Describe", "--topic", "secret", "--topic", "public"]),
    ):
        broker.tool("acls", *acls, principal, *rights)
    log = broker.nodes[0].log
    begin = log.stat().st_size
    at = broker.bootstrap("SASL")
    with recorded("denials", (denials.__doc__ or ""), broker.ports("SASL"), out) as recording:

        def told(who: str, what: str, action: Callable[[], Any]) -> None:
            try:
                action()
                recording.note(who, what)
            except kafka.errors.KafkaError as error:
                recording.note(who, what, error=type(error).__name__)

        def write(who: str, topic: str) -> None:
            one = KafkaProducer(
                bootstrap_servers=at, retries=0, max_block_ms=3000, enable_idempotence=False, **_as(who)
            )
            told(who, f"write {topic}", lambda: one.send(topic, VALUE).get(timeout=5))
            one.close(timeout=2)

        def read(who: str, topic: str, group: str | None) -> None:
            one = KafkaConsumer(
                bootstrap_servers=at, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, **_as(who)
            )
            one.assign([TopicPartition(topic, 0)]) if group is None else one.subscribe([topic])
            told(who, f"read {topic}", lambda: poll(one, 1.5))
            one.close()

        write("alice", "public")
        read("alice", "public", "readers")
        write("mallory", "secret")
        write("mallory", "public")
        read("mallory", "secret", None)
        read("bob", "public", None)
        read("bob", "public", "readers")
        write("bob", "secret")
        admin = KafkaAdminClient(bootstrap_servers=at, **_as("mallory"))
        told("mallory", "create", lambda: admin.create_topics([NewTopic("mine", 1, 1)]))
        told("mallory", "delete", lambda: admin.delete_topics(["public"]))
        admin.close()
        for _ in range(2):
            told(
                "intruder", "connect",
                lambda: KafkaProducer(bootstrap_servers=at, bootstrap_timeout_ms=1500, **_as("kwire", "wrong")),
            )  # fmt: skip
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode().splitlines()
    kept = [line for line in lines if re.search(r"kafka\.authorizer\.logger|Principal = ", line)]
    (out / "denials.log").write_text("".join(f"{line}\n" for line in kept))


# --- lag --------------------------------------------------------------------------------------------------------------


def lag(broker: Cluster, out: Path) -> None:
    """Groups that are behind: kafka-python, aiokafka, librdkafka (kcat) and Java, and topics that go on growing."""
    at = broker.bootstrap("CLIENT")
    topics(at, orders=3, clicks=2)
    with recorded("lag", (lag.__doc__ or ""), broker.ports("CLIENT"), out) as recording:
        fill(at, "orders", 3, 40)
        fill(at, "clicks", 2, 25)
        one = KafkaConsumer(
            "orders", bootstrap_servers=at, group_id="billing", client_id="billing", enable_auto_commit=False,
            auto_offset_reset="earliest", max_poll_records=30,
        )  # fmt: skip
        for _ in range(4):
            if one.poll(timeout_ms=2000):
                one.commit()
        one.close()
        asyncio.run(with_aiokafka(at))
        if shutil.which("kcat"):
            said = subprocess.run(["kcat", "-V"], capture_output=True, text=True).stdout
            recording.clients["kcat"] = said.splitlines()[-1] if said else "?"
            options = ["-X", "auto.offset.reset=earliest", "-X", "client.id=tail", "-c", "17", "-q"]
            subprocess.run(
                ["kcat", "-b", at, "-G", "tail", *options, "clicks"], check=True, timeout=60, stdout=subprocess.DEVNULL
            )
        recording.clients["console consumer"] = f"Apache Kafka {broker.version}"
        for group, more in (("shipping", "classic"), ("returns", "consumer")):
            broker.tool(
                "console-consumer", "--bootstrap-server", at, "--topic", "orders", "--group", group, "--from-beginning",
                "--max-messages", "55", "--timeout-ms", "15000", "--command-property", f"group.protocol={more}",
            )  # fmt: skip
        # Nobody reads what comes last: only its producers know how far the topics are.
        fill(at, "orders", 3, 7)
        fill(at, "clicks", 1, 1)
    said = broker.tool("consumer-groups", "--bootstrap-server", broker.bootstrap(), "--describe", "--all-groups")
    (out / "lag.txt").write_text("".join(f"{line}\n" for line in said.splitlines() if not line.startswith("[")))


def fill(at: str, topic: str, partitions: int, each: int) -> None:
    """Writes to each partition, in batches of several records."""
    with contextlib.closing(KafkaProducer(bootstrap_servers=at, linger_ms=50, client_id="filler")) as one:
        for partition in range(partitions):
            for k in range(each):
                one.send(topic, b"%d" % k, partition=partition)
        one.flush()


async def with_aiokafka(at: str) -> None:
    """A group of two members, each of which reads a bit of its partition."""
    options = {"bootstrap_servers": at, "group_id": "audit", "enable_auto_commit": False}
    members = [
        AIOKafkaConsumer("clicks", client_id=f"audit-{k}", auto_offset_reset="earliest", **options) for k in (0, 1)
    ]
    for one in members:
        await one.start()
    for one in members:
        await one.getmany(timeout_ms=3000, max_records=9)
        await one.commit()
    for one in members:
        await one.stop()


# --- leaders ----------------------------------------------------------------------------------------------------------


def leaders(broker: Cluster, out: Path) -> None:
    """Clients that never ask who leads: what they write goes to the broker that they began with."""
    addresses = broker.bootstrap("CLIENT").split(",")
    topics(addresses[0], some=1)
    with recorded("leaders", (leaders.__doc__ or ""), broker.ports("CLIENT"), out) as recording:
        recording.clients["kwire"] = "kwire's codec over a plain socket"
        with Connection(addresses[0]) as one:
            told = one.ask(messages.MetadataRequest(topics=None), 8)
        (topic,) = told.topics
        ports = {node.node_id: node.port for node in told.brokers}
        leader = next(each for each in addresses if each.endswith(f":{ports[topic.partitions[0].leader_id]}"))
        (other,) = (each for each in addresses if each != leader)
        data = records.encode([records.Record(value=VALUE)])
        for name, wrong in (("bad", 25), ("near", 15)):
            for address, count in ((other, wrong), (leader, 25)):
                with Connection(address, f"{name}-stale-leaders") as one:
                    for _ in range(count):
                        partition = {"index": 0, "records": data}
                        body = {
                            "acks": 1,
                            "timeout_ms": 5000,
                            "topic_data": [{"name": "some", "partition_data": [partition]}],
                        }
                        told = one.ask(messages.ProduceRequest.from_dict(body), 9)
                        error = told.responses[0].partition_responses[0].error_code
                        assert error == (6 if address == other else 0), error


# --- faults -----------------------------------------------------------------------------------------------------------


def faults(broker: Cluster, out: Path) -> None:
    """Faults of brokers, and what clients make of them."""
    at = broker.bootstrap("CLIENT")
    topics(at, reset=1, stalled=1, again=1, aborted=1, grows=2)
    (node,) = broker.nodes
    assert node.process is not None
    with recorded("faults", (faults.__doc__ or ""), broker.ports("CLIENT"), out) as recording:
        recording.clients["aiokafka"] = f"aiokafka {aiokafka.__version__}"
        # Records are deleted before they are read, by one group and not by the other.
        fill(at, "reset", 1, 60)
        for name in ("bad", "near"):
            committed(at, f"{name}-offset-resets", "reset", 20 if name == "bad" else 60)
        admin = KafkaAdminClient(bootstrap_servers=at)
        admin.delete_records({TopicPartition("reset", 0): 50})
        admin.close()
        fill(at, "reset", 1, 10)
        for name in ("bad", "near"):
            committed(at, f"{name}-offset-resets", "reset", 5)
        # The broker stands still while three producers write, two of them without idempotence: one of these waits long
        # enough.
        waits = {
            "bad-duplicate-produces": {"acks": 1, "enable_idempotence": False, "request_timeout_ms": 2000},
            "near-duplicate-produces": {"acks": 1, "enable_idempotence": False},
            "near-stalled-brokers": {"acks": "all"},
        }
        writers = [threading.Thread(target=writing, args=(at, one, more)) for one, more in waits.items()]
        for one in writers:
            one.start()
        time.sleep(3)
        node.process.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        node.process.send_signal(signal.SIGCONT)
        for one in writers:
            one.join()
        asyncio.run(transactions(at))
        behind(at)


def committed(at: str, name: str, topic: str, offset: int) -> None:
    """A group reads what comes next, and commits an offset."""
    one = KafkaConsumer(
        topic, bootstrap_servers=at, group_id=name, client_id=name, enable_auto_commit=False,
        auto_offset_reset="earliest",
    )  # fmt: skip
    poll(one, 2)
    one.commit({TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)})
    one.close()


def writing(at: str, client_id: str, options: dict[str, Any]) -> None:
    """Writes a record ten times a second."""
    topic = "again" if "duplicate" in client_id else "stalled"
    with contextlib.closing(KafkaProducer(bootstrap_servers=at, client_id=client_id, **options)) as one:
        for _ in range(80):
            one.send(topic, VALUE)
            time.sleep(0.1)


async def transactions(at: str) -> None:
    """Transactions of two producers: most of the one's are aborted."""
    for name, kept in (("bad", 4), ("near", 8)):
        one = AIOKafkaProducer(
            bootstrap_servers=at, client_id=f"{name}-aborted-transactions", transactional_id=f"{name}-aborted"
        )
        await one.start()
        for k in range(16):
            await one.begin_transaction()
            await one.send_and_wait("aborted", VALUE)
            await (one.commit_transaction() if k < kept + (name == "near") else one.abort_transaction())
        await one.stop()


def behind(at: str) -> None:
    """Two groups on a topic that grows by 100 records a second: one works on a third of them."""
    ends = time.monotonic() + 45

    def reads(name: str, most: int) -> None:
        one = KafkaConsumer(
            "grows", bootstrap_servers=at, group_id=name, client_id=name, enable_auto_commit=False,
            auto_offset_reset="earliest", max_poll_records=most,
        )  # fmt: skip
        while time.monotonic() < ends:
            if one.poll(timeout_ms=500):
                one.commit()
            time.sleep(1)
        one.close()

    readers = [threading.Thread(target=reads, args=one) for one in (("bad-lag", 33), ("near-lag", 500))]
    for one in readers:
        one.start()
    with contextlib.closing(KafkaProducer(bootstrap_servers=at, linger_ms=200, client_id="filler")) as writer:
        k = 0
        while time.monotonic() < ends:
            writer.send("grows", b"%d" % k, partition=k % 2)
            k += 1
            time.sleep(0.01)
    for one in readers:
        one.join()


ALL: dict[str, tuple[int, Callable[[Cluster, Path], None]]] = {
    "lag": (1, lag), "denials": (1, denials), "findings": (1, findings), "leaders": (2, leaders),
    "faults": (1, faults),
}  # fmt: skip
"""By name: how many brokers, and what is done with them."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the captures of findings.")
    parser.add_argument(
        "names", nargs="*", choices=[*ALL, []], help="captures to record; all of them when none is named"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder that receives the captures")
    arguments = parser.parse_args()
    for name in arguments.names or ALL:
        began = time.monotonic()
        brokers, record = ALL[name]
        with cluster(brokers) as broker:
            record(broker, arguments.out)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
