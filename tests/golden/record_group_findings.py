"""Record what rules of findings about groups, share groups and sessions are about: ``bad-RULE``, and ``near-RULE``.

    python tests/golden/record_group_findings.py [shares|classic|sessions|coordinators|protocols ...] [--out DIR]

Needs what ``record.py`` needs. Beside each ``NAME.gz`` stands ``NAME.json``, as ``record_findings.py`` says.

    shares          Java: share groups whose members release, reject or hold records; groups of KIP-848 whose members
                    are slow to give up partitions; a classic group beside them, and one of Kafka Streams
    classic         kafka-python, librdkafka and Java: cooperative-sticky groups whose members come and go, commits of
                    a process that freezes, topics that do not exist, acks=0, several requests on their way
    sessions        librdkafka, old and new, and Java: short SASL sessions, versions of one client_id, more members of
                    a share group than the broker has sessions for
    coordinators    kafka-python: the coordinator of a group moves between two brokers
    protocols       Java: members of groups of KIP-848, of share groups and of streams groups that come and go, or
                    stand still for longer than the session timeout of the broker
    committed       librdkafka: a transaction that hangs, long ones one after the other, and two producers with one
                    transactional.id; readers of what is committed
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parent / "broker"), str(HERE.parent / "support")]

import confluent_kafka as ck  # noqa: E402
import kafka  # type: ignore[import-untyped]  # noqa: E402
import toolchains  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from kafka import KafkaConsumer, KafkaProducer  # noqa: E402
from kafka.admin import KafkaAdminClient  # noqa: E402
from kafka_cluster import PASSWORD, USER, Cluster, Listener  # noqa: E402
from record_findings import OUT, VALUE, fill, recorded, topics  # noqa: E402
from record_groups import CONFIG, SESSION_MS, Scene, Tour  # noqa: E402

STICKY = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
BOTH = ("bad", "near")


# --- shares -----------------------------------------------------------------------------------------------------------


def shares(cluster: Cluster, out: Path) -> None:
    """Share groups, groups of KIP-848, and classic groups beside them."""
    scene = Scene(cluster)
    names = [f"{name}-{what}" for name in BOTH for what in ("poison", "locks", "released", "letters")]
    topics(scene.at, **{name.replace("-", "_"): 1 for name in names}, orders=6)
    with recorded("shares", (shares.__doc__ or ""), cluster.ports("CLIENT"), out) as recording:
        recording.clients["java"] = f"kafka-clients {cluster.version}"
        tour = Tour(scene)
        for name in BOTH:
            for what in ("poison-records", "lock-timeouts", "released-records", "dead-letters"):
                tour(f"group {name}-{what} share.auto.offset.reset=earliest")
        slow = threading.Thread(target=_slowly, args=(scene, tour))
        slow.start()
        for name, what in (("bad", "release-9-x"), ("near", "release-2-x")):
            scene.fill(f"{name}-poison", [b"accept", what.encode(), b"accept"], 1)
            tour(f"share {name}-poison-records {name}-poison-records {name}-poison accept")
        for name, count in (("bad", 120), ("near", 40)):
            scene.fill(f"{name}-released", [b"release-1-x"] * count, 1)
            tour(f"share {name}-released-records {name}-released-records {name}-released accept")
        for name, count in (("bad", 25), ("near", 15)):
            scene.fill(f"{name}-letters", [b"reject", b"accept"] * count, 1)
            tour(f"share {name}-dead-letters {name}-dead-letters {name}-letters accept")
        for name, held in (("bad", 2500), ("near", 500)):
            tour(f"share {name}-lock-timeouts {name}-lock-timeouts {name}-locks hold={held} max.poll.records=1")
        for _ in range(3):
            scene.fill("bad-locks", [b"accept"], 1)
            scene.fill("near-locks", [b"accept"], 1)
            time.sleep(12)
        for name in BOTH:
            for what in ("poison-records", "released-records", "dead-letters", "lock-timeouts"):
                tour(f"leave {name}-{what}")
        short = f"session.timeout.ms={SESSION_MS}"
        tour(f"consumer bad-classic-group bad-classic-group orders {short}")
        with tempfile.TemporaryDirectory() as folder:
            tour(f"streams near-classic-group near-classic-group orders {folder} group.protocol=classic")
            slow.join()
            tour("leave near-classic-group")
        tour.end()


def _slowly(scene: Scene, tour: Tour) -> None:
    """Members that take their time when partitions are taken from them."""
    for name, pause in (("bad", 66_000), ("near", 20_000)):
        group = f"{name}-stuck-reconciliation"
        tour(f"consumer {group} {group} orders slow={pause} group.protocol=consumer")
    time.sleep(4)
    for name in BOTH:
        tour(f"consumer {name}-second {name}-stuck-reconciliation orders group.protocol=consumer")
    time.sleep(75)


# --- classic ----------------------------------------------------------------------------------------------------------

_COMMITS = """
import sys, time
import kafka
at, name = sys.argv[1:]
one = kafka.KafkaConsumer("some", bootstrap_servers=at, client_id=name, group_id=name, session_timeout_ms=2000,
    heartbeat_interval_ms=600, enable_auto_commit=False, auto_offset_reset="earliest", max_poll_records=1)
place = kafka.TopicPartition("some", 0)
while True:
    one.poll(timeout_ms=200)
    for _ in range(20):
        time.sleep(0.02)
        try:
            one.commit({place: kafka.OffsetAndMetadata(1, "", -1)})
        except kafka.errors.KafkaError:
            break
"""


def classic(cluster: Cluster, out: Path) -> None:
    """Classic groups, and producers."""
    scene = Scene(cluster)
    at = scene.at
    topics(at, some=1, orders=6, plain=1, ordered=1, blind=1)
    fill(at, "some", 1, 200)
    with recorded("classic", (classic.__doc__ or ""), cluster.ports("CLIENT"), out) as recording:
        recording.clients |= {"java": f"kafka-clients {cluster.version}", "librdkafka": ck.libversion()[0]}
        frozen = [threading.Thread(target=_freezes, args=(at, *one)) for one in (("bad", 8), ("near", 3))]
        for one in frozen:
            one.start()
        tour = Tour(scene)
        for name, times in (("bad", 5), ("near", 2)):
            group = f"{name}-cooperative-churn"
            options = f"{STICKY} session.timeout.ms={SESSION_MS} heartbeat.interval.ms=500"
            tour(f"consumer {group} {group} orders {options}")
            time.sleep(3)
            for _ in range(times):
                tour(f"consumer {name}-guest {group} orders {options}")
                time.sleep(3)
                tour(f"leave {name}-guest")
                time.sleep(2)
        tour.end()
        for name, patience in (("bad", 5000), ("near", 1000)):
            one = KafkaProducer(
                bootstrap_servers=at, client_id=f"{name}-unknown-topics", max_block_ms=patience, acks=1,
                enable_idempotence=False,
            )  # fmt: skip
            with contextlib.suppress(kafka.errors.KafkaError):
                one.send("nowhere", VALUE)
            one.close()
        for name, count in (("bad", 220), ("near", 150)):
            blind: Any = ck.Producer(
                {
                    "bootstrap.servers": at,
                    "client.id": f"{name}-no-acks",
                    "acks": 0,
                    "batch.num.messages": 2,
                    "linger.ms": 20,
                }
            )
            for k in range(2 * count):
                blind.produce("blind", VALUE, partition=0)
                if k % 50 == 49:
                    blind.flush(5)
            blind.flush(10)
        for name, safe, count in (("bad", False, 2400), ("near", True, 400)):
            quick: Any = ck.Producer(
                {"bootstrap.servers": at, "client.id": f"{name}-unordered-retries", "acks": 1 if not safe else "all",
                 "enable.idempotence": safe, "batch.num.messages": 2, "linger.ms": 5,
                 "max.in.flight.requests.per.connection": 5}
            )  # fmt: skip
            for _ in range(count):
                quick.produce("ordered" if safe else "plain", VALUE, partition=0)
            quick.flush(30)
        for one in frozen:
            one.join()


def _freezes(at: str, name: str, times: int) -> None:
    """A process that commits all the time, and that stands still now and then for longer than its session."""
    own = subprocess.Popen([sys.executable, "-c", _COMMITS, at, f"{name}-commits-in-rebalance"])
    time.sleep(6)
    for _ in range(times):
        os.kill(own.pid, signal.SIGSTOP)
        time.sleep(4)
        os.kill(own.pid, signal.SIGCONT)
        time.sleep(3)
    own.terminate()
    own.wait(20)


# --- sessions ---------------------------------------------------------------------------------------------------------

_READS = """
import sys, time
import confluent_kafka as ck
seconds, topic = float(sys.argv[1]), sys.argv[2]
one = ck.Consumer(dict(pair.split("=", 1) for pair in sys.argv[3:]))
one.assign([ck.TopicPartition(topic, 0, 0)])
until = time.time() + seconds
while time.time() < until:
    one.poll(0.2)
one.close()
"""


def sessions(cluster: Cluster, out: Path) -> None:
    """Sessions of SASL and Fetch, and versions."""
    scene = Scene(cluster)
    at = scene.at
    topics(at, some=1)
    fill(at, "some", 1, 5)
    ports = cluster.ports("CLIENT", "SHORT", "LONG")
    with recorded("sessions", (sessions.__doc__ or ""), ports, out) as recording:
        recording.clients["librdkafka"] = f"{ck.libversion()[0]} and {toolchains.OLD_CONFLUENT}"
        new, old = (make()[0] for make in (toolchains.librdkafka, toolchains.old_librdkafka))

        def reads(python: str, seconds: float, name: str, **options: object) -> subprocess.Popen[bytes]:
            given = {"bootstrap.servers": at, "group.id": "none", "client.id": name, "fetch.wait.max.ms": 500}
            words = [f"{one}={value}" for one, value in (given | options).items()]
            return subprocess.Popen([python, "-c", _READS, str(seconds), "some", *words])

        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER,
                 "sasl.password": PASSWORD}  # fmt: skip
        running = [
            reads(new, 25, f"{name}-short-sasl-sessions", **login | {"bootstrap.servers": cluster.bootstrap(listener)})
            for name, listener in (("bad", "SHORT"), ("near", "LONG"))
        ]
        running += [reads(python, 15, "bad-mixed-versions") for python in (new, old)]
        running += [reads(new, 15, "near-mixed-versions") for _ in range(2)]
        for one in running:
            one.wait(60)
        # The broker has one share session for all: the second member is refused each time.
        tour = Tour(scene)
        for name in ("near", "bad"):
            tour(f"share {name}-fetch-sessions {name}-fetch-sessions some accept")
            time.sleep(4)
        time.sleep(20)
        tour.end()


# --- coordinators -----------------------------------------------------------------------------------------------------


def coordinators(cluster: Cluster, out: Path) -> None:
    """The leader of ``__consumer_offsets`` moves to and fro."""
    at = cluster.bootstrap("CLIENT")
    topics(at.split(",")[0], some=1)
    place = kafka.TopicPartition("__consumer_offsets", 0)
    with recorded("coordinators", (coordinators.__doc__ or ""), cluster.ports("CLIENT"), out):
        ends = threading.Event()
        members = [threading.Thread(target=_member, args=(at, "bad-coordinator-churn", ends))]
        members[0].start()
        time.sleep(6)
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap())
        for k in range(6):
            if k == 4:
                members.append(threading.Thread(target=_member, args=(at, "near-coordinator-churn", ends)))
                members[-1].start()
                time.sleep(5)
            admin.alter_partition_reassignments({place: [1, 2] if k % 2 else [2, 1]})
            time.sleep(1.5)
            with contextlib.suppress(kafka.errors.KafkaError):
                admin.elect_leaders(0, {place.topic: [place.partition]})
            time.sleep(4)
        admin.close()
        ends.set()
        for one in members:
            one.join()


def _member(at: str, name: str, ends: threading.Event) -> None:
    one = KafkaConsumer(
        "some", bootstrap_servers=at.split(","), client_id=name, group_id=name, heartbeat_interval_ms=500,
        session_timeout_ms=10_000, enable_auto_commit=False,
    )  # fmt: skip
    while not ends.is_set():
        one.poll(timeout_ms=200)
    one.close()


# --- protocols --------------------------------------------------------------------------------------------------------

KINDS = ("consumer", "share", "streams")


def protocols(cluster: Cluster, out: Path) -> None:
    """Groups of KIP-848, share groups and streams groups."""
    scene = Scene(cluster)
    topics(scene.at, orders=6)
    with (
        tempfile.TemporaryDirectory() as folder,
        recorded("protocols", (protocols.__doc__ or ""), cluster.ports("CLIENT"), out) as recording,
    ):
        recording.clients["java"] = f"kafka-clients {cluster.version}"

        def join(tour: Tour, kind: str, name: str, group: str) -> None:
            more = {"consumer": "group.protocol=consumer", "share": "accept", "streams": f"{folder}/{name} {STREAMS}"}
            tour(f"{kind} {name} {group}-{kind} orders {more[kind]}")

        def freezes(name: str, seconds: float) -> None:
            tour = Tour(scene)
            for kind in KINDS:
                join(tour, kind, f"{name}-late-heartbeats-{kind}", f"{name}-late-heartbeats")
            time.sleep(10)
            tour.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            tour.process.send_signal(signal.SIGCONT)
            time.sleep(8)
            tour.end()

        frozen = [threading.Thread(target=freezes, args=one) for one in (("bad", 52), ("near", 30))]
        for one in frozen:
            one.start()
        tour = Tour(scene)
        for name, times in (("bad", 8), ("near", 2)):
            for kind in KINDS:
                join(tour, kind, f"{name}-stays-{kind}", f"{name}-rebalance-loop")
            for k in range(times):
                for kind in KINDS:
                    join(tour, kind, f"{name}-guest-{kind}-{k}", f"{name}-rebalance-loop")
                time.sleep(1.5)
                for kind in KINDS:
                    tour(f"leave {name}-guest-{kind}-{k}")
                time.sleep(1.5)
        tour.end()
        for one in frozen:
            one.join()


STREAMS = "group.protocol=streams"


# --- committed --------------------------------------------------------------------------------------------------------


def committed(cluster: Cluster, out: Path) -> None:
    """Transactions, and readers of what is committed."""
    at = cluster.bootstrap("CLIENT")
    names = [f"{name}-{rule}" for name in BOTH for rule in ("hanging-transactions", "held-back-readers")]
    AdminClient({"bootstrap.servers": at}).create_topics([NewTopic(one, 1, 1) for one in (*names, "zombies")])
    time.sleep(3)
    with recorded("committed", (committed.__doc__ or ""), cluster.ports("CLIENT"), out) as recording:
        recording.clients["librdkafka"] = ck.libversion()[0]
        ends = time.monotonic() + 80
        readers = [threading.Thread(target=_reads_committed, args=(at, one, ends)) for one in names]
        writers = [
            threading.Thread(target=_in_transactions, args=(at, *one, ends))
            for one in (
                ("bad-hanging-transactions", 70, 60), ("near-hanging-transactions", 20, 60),
                ("bad-held-back-readers", 4, 0), ("near-held-back-readers", 2, 5),
            )
        ]  # fmt: skip
        for one in (*readers, *writers):
            one.start()
        for name in BOTH:
            first, second = (_transactional(at, f"{name}-zombie-producers", name) for _ in range(2))
            first.init_transactions(60)
            first.begin_transaction()
            first.produce("zombies", VALUE)
            first.flush(10)
            if name == "near":
                first.commit_transaction(20)
            second.init_transactions(60)
            _one(second, "zombies")
            if name == "bad":
                with contextlib.suppress(ck.KafkaException):
                    first.produce("zombies", VALUE)
                    first.flush(10)
        for one in (*readers, *writers):
            one.join()


def _transactional(at: str, client: str, name: str) -> Any:
    return ck.Producer({"bootstrap.servers": at, "client.id": client, "transactional.id": name,
                        "transaction.timeout.ms": 120_000})  # fmt: skip


def _one(producer: Any, topic: str, seconds: float = 0) -> None:
    producer.begin_transaction()
    producer.produce(topic, VALUE)
    producer.flush(10)
    time.sleep(seconds)
    producer.commit_transaction(20)


def _in_transactions(at: str, topic: str, seconds: float, pause: float, ends: float) -> None:
    """Transactions that are open for so long, with a pause between them. Somebody else writes too."""
    one = _transactional(at, f"{topic}-writer", topic)
    one.init_transactions(60)
    while time.monotonic() + seconds < ends:
        _one(one, topic, seconds)
        time.sleep(min(pause, max(0, ends - time.monotonic())))


def _reads_committed(at: str, topic: str, ends: float) -> None:
    one = ck.Consumer({"bootstrap.servers": at, "client.id": topic, "group.id": topic, "enable.auto.commit": False,
                       "isolation.level": "read_committed"})  # fmt: skip
    one.assign([ck.TopicPartition(topic, 0, 0)])
    while time.monotonic() < ends:
        one.poll(0.2)
    one.close()


FEW: dict[str, object] = {
    "listener.name.short.plain.connections.max.reauth.ms": 3000,
    "listener.name.long.plain.connections.max.reauth.ms": 60_000,
    "group.share.max.share.sessions": 1,
    "group.share.max.size": 1,
}
PLAIN = Listener("SASL_PLAINTEXT", ("PLAIN",))
NO_TOPICS: dict[str, object] = {"auto.create.topics.enable": "false"}
ALL: dict[str, tuple[Callable[[Cluster, Path], None], dict[str, Any]]] = {
    "shares": (shares, {"config": CONFIG}),
    "classic": (classic, {"config": NO_TOPICS}),
    "sessions": (sessions, {"config": FEW, "listeners": {"CLIENT": Listener(), "SHORT": PLAIN, "LONG": PLAIN}}),
    "protocols": (protocols, {"config": {name: value for name, value in CONFIG.items() if "session" not in name}}),
    "committed": (committed, {}),
    "coordinators": (coordinators, {"brokers": 2, "config": {"offsets.topic.replication.factor": 2}}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Record captures of findings about groups and sessions.")
    parser.add_argument("names", nargs="*", choices=[*ALL, []], help="captures to record; all when none is named")
    parser.add_argument("--out", type=Path, default=OUT, help="folder that receives the captures")
    arguments = parser.parse_args()
    for name in arguments.names or ALL:
        began = time.monotonic()
        play, options = ALL[name]
        with Cluster(**{"listeners": {"CLIENT": Listener()}} | options) as cluster:
            play(cluster, arguments.out)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
