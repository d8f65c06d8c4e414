"""Record what rules of findings about groups, share groups and sessions are about: ``bad-RULE``, and ``near-RULE``.

    python tests/golden/record_group_findings.py [shares|classic|sessions|coordinators ...] [--out DIR]

Needs what ``record.py`` needs. Beside each ``NAME.gz`` stands ``NAME.json``, as ``record_findings.py`` says.

    shares          Java: share groups whose members release, reject or hold records; groups of KIP-848 whose members
                    are slow to give up partitions; a classic group beside them, and one of Kafka Streams
    classic         kafka-python, librdkafka and Java: cooperative-sticky groups whose members come and go, commits of
                    a process that freezes, topics that do not exist, acks=0, several requests on their way
    sessions        librdkafka, old and new, and Java: short SASL sessions, versions of one client_id, more members of
                    a share group than the broker has sessions for
    coordinators    kafka-python: the coordinator of a group moves between two brokers
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
