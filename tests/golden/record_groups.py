"""Record groups and transactions on real brokers, and what the brokers' own tools say of them at some moments.

    python tests/golden/record_groups.py [librdkafka|java|old|letters ...] [--out FOLDER]      two minutes each

Needs what ``record.py`` needs. The scenes:

    librdkafka    4.3: a classic group and one of KIP-848, one after the other: members join, leave, and one is killed
    java          4.3: classic (cooperative-sticky), KIP-848, share and streams groups, and transactions, in one process
    old           3.9: classic groups of aiokafka and franz-go
    letters       4.4: a share group with a dead letter topic (KIP-1191); brokers among themselves are recorded too

Of each there are, in the folder ``groups``:

    SCENE.gz          the packets of the clients' listener. Tools ask at another one
    SCENE.told.json   what was done, and what each tool printed, with the time. A group does nothing while it is asked
    SCENE/TOPIC-0     the segments of Kafka's own topics, once the broker had stopped
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parent / "broker"), str(HERE.parent / "support")]

import kafka_cluster  # noqa: E402
import kafka_jars  # noqa: E402
import toolchains  # noqa: E402
from capturing import Recording  # noqa: E402
from confluent_kafka import KafkaException, Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from kafka_cluster import Cluster, Listener  # noqa: E402

kafka_cluster.TOOLS |= {
    "groups": ("org.apache.kafka.tools.GroupsCommand",),
    "share-groups": ("org.apache.kafka.tools.consumer.group.ShareGroupCommand",),
    "streams-groups": ("org.apache.kafka.tools.streams.StreamsGroupCommand",),
    "transactions": ("org.apache.kafka.tools.TransactionsCommand",),
}
kafka_cluster.START_SECONDS = 240
TOPIC, PARTITIONS, RECORDS = "orders", 6, 30
SESSION_MS = 9000
KEPT = ("__consumer_offsets-0", "__share_group_state-0", "__transaction_state-0")
CONFIG = {
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.share.record.lock.duration.ms": 2000,
    "group.streams.min.session.timeout.ms": SESSION_MS,
    "group.streams.session.timeout.ms": SESSION_MS,
}
_LIBRDKAFKA = """
import select, sys
import confluent_kafka as ck
one = ck.Consumer(dict(pair.split("=", 1) for pair in sys.argv[2:]))
one.subscribe([sys.argv[1]])
while not select.select([sys.stdin], [], [], 0)[0]:
    one.poll(0.1)
one.close()
"""
_AIOKAFKA = """
import asyncio, sys
import aiokafka
async def main():
    topic, at, group, client = sys.argv[1:]
    one = aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=at, group_id=group, client_id=client,
        session_timeout_ms=9000, heartbeat_interval_ms=1000, auto_offset_reset="earliest",
        auto_commit_interval_ms=1000)
    await one.start()
    end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    while not end.done():
        await one.getmany(timeout_ms=200)
    await one.stop()
asyncio.run(main())
"""


class Scene:
    """A cluster that is recorded, and what is told of it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.at = cluster, cluster.bootstrap("CLIENT")
        self.told: list[dict[str, Any]] = []
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap("INTERNAL")})
        self.processes: dict[str, subprocess.Popen[Any]] = {}
        self.writer: Any = None

    def note(self, **what: Any) -> None:
        self.told.append({"time": time.time(), **what})
        print({name: value for name, value in self.told[-1].items() if name != "says"}, flush=True)

    def topic(self, name: str, partitions: int) -> None:
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result()

    def fill(self, topic: str, values: Sequence[bytes], partitions: int, key: bool = False) -> None:
        if self.writer is None:
            self.writer = Producer({"bootstrap.servers": self.at, "client.id": "filler"})
        for number, value in enumerate(values):
            more = {"key": value} if key else {}
            self.writer.produce(topic, value, partition=number % partitions, **more)
        self.writer.flush(20)

    def start(self, name: str, command: Sequence[str]) -> None:
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)

    def leave(self, name: str) -> None:
        process = self.processes.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait(30)

    def end(self) -> None:
        """Ends what is left, so that nothing goes on when a scene fails."""
        for process in self.processes.values():
            process.kill()

    def ask(self, tool: str, *words: str) -> str:
        """What a tool of the broker says."""
        says = self.cluster.tool(tool, "--bootstrap-server", self.cluster.bootstrap("INTERNAL"), *words, check=False)
        lines = [line.rstrip() for line in says.splitlines() if line.strip() and "[main] WARN" not in line]
        self.note(tool=tool, words=list(words), says=lines)
        return says

    def described(self, group: str, *tools: str) -> None:
        """Asks ``kafka-consumer-groups.sh`` of a group."""
        for words in tools or ("--members --verbose", "--state"):
            self.ask("consumer-groups", "--describe", "--group", group, *words.split())

    def settled(self, group: str, count: int, what: str) -> None:
        """Waits until a group has so many members, which have all partitions, and asks what the broker says."""
        for _ in range(240):
            try:
                found = self.admin.describe_consumer_groups([group])[group].result()
            except KafkaException:  # The coordinator is about to begin.
                time.sleep(0.5)
                continue
            parts = sum(len(one.assignment.topic_partitions) for one in found.members)
            whole = parts == (PARTITIONS if count else 0)
            if len(found.members) == count and whole and found.state.name in ("STABLE", "EMPTY"):
                break
            time.sleep(0.5)
        else:
            raise SystemExit(f"{group} did not settle")
        # Until the members have heard of it, and have committed.
        time.sleep(3)
        self.note(what=what, group=group)
        self.described(group)


def librdkafka(scene: Scene) -> None:
    scene.topic(TOPIC, PARTITIONS)
    scene.fill(TOPIC, [b"%d" % one for one in range(RECORDS)], PARTITIONS)
    for protocol in ("classic", "consumer"):
        group = f"{protocol}-group"

        def join(name: str, group: str = group, protocol: str = protocol) -> None:
            options = {
                "bootstrap.servers": scene.at, "group.id": group, "client.id": name, "group.protocol": protocol,
                "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000,
            }  # fmt: skip
            if protocol == "classic":
                options |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 1000}
            words = [f"{name}={value}" for name, value in options.items()]
            scene.start(name, [sys.executable, "-c", _LIBRDKAFKA, TOPIC, *words])

        _come_and_go(scene, group, join, kill=True)
    scene.ask("groups", "--list")


def _come_and_go(scene: Scene, group: str, join: Callable[[str], None], *, kill: bool) -> None:
    join("first")
    scene.settled(group, 1, "first joined")
    join("second")
    scene.settled(group, 2, "second joined")
    scene.leave("second")
    scene.settled(group, 1, "second left")
    if kill:
        join("third")
        scene.settled(group, 2, "third joined")
        scene.kill("third")
        scene.settled(group, 1, "third was killed")
    scene.described(group, "")
    scene.leave("first")
    scene.settled(group, 0, "first left")


def old(scene: Scene) -> None:
    scene.topic(TOPIC, PARTITIONS)
    scene.fill(TOPIC, [b"%d" % one for one in range(RECORDS)], PARTITIONS)

    def aio(name: str) -> None:
        scene.start(name, [sys.executable, "-c", _AIOKAFKA, TOPIC, scene.at, "aiokafka-group", name])

    _come_and_go(scene, "aiokafka-group", aio, kill=False)
    command = toolchains.franz()
    with tempfile.TemporaryDirectory() as folder:

        def franz(name: str) -> None:
            path = Path(folder) / f"{name}.json"
            plan = {"bootstrap": scene.at, "prefix": name, "codecs": [], "samples": [], "member": TOPIC}
            path.write_text(json.dumps(plan))
            scene.start(name, [*command, str(path)])

        _come_and_go(scene, "franz-group", franz, kill=True)


class Tour:
    """The Java program ``GroupTour``: its members do what they are told."""

    def __init__(self, scene: Scene) -> None:
        # Of 4.4 only the broker is published as a whole.
        version = kafka_jars.TOOLS_OF.get(scene.cluster.version, scene.cluster.version)
        path = f"{kafka_jars.install(version)}/*:{kafka_jars.compile_java(version)}"
        command = [kafka_jars.java(), "-Xmx384m", *kafka_cluster.JVM, "-cp", path, "GroupTour", scene.at]
        self.scene, self._lock = scene, threading.Lock()
        scene.processes["tour"] = self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, line: str) -> None:
        """Says a line, and waits until it is done. What members say meanwhile is noted."""
        assert self.process.stdin is not None
        with self._lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            self._listen(line)

    def _listen(self, line: str | None) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            if text.startswith("{"):
                said = json.loads(text)
                self.scene.note(**said)
                if line is not None and said.get("done") == line:
                    return
        if line is not None:
            raise SystemExit(f"the tour ended at {line}")

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self._listen(None)
        self.process.wait(60)


def java(scene: Scene) -> None:
    for name, partitions in ((TOPIC, PARTITIONS), ("shared", 2), ("counted", 2), ("paid", 2)):
        scene.topic(name, partitions)
    scene.fill(TOPIC, [b"%d" % one for one in range(RECORDS)], PARTITIONS)
    scene.fill("counted", [b"%d" % one for one in range(8)], 2, key=True)
    tour = Tour(scene)
    sticky = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    short = f"session.timeout.ms={SESSION_MS} heartbeat.interval.ms=1000"
    for group, options in (("cooperative", f"{sticky} {short}"), ("consumer", "group.protocol=consumer")):
        tour(f"consumer first-{group} {group} {TOPIC} {options}")
        scene.settled(group, 1, "first joined")
        tour(f"consumer second-{group} {group} {TOPIC} {options}")
        scene.settled(group, 2, "second joined")
        scene.described(group, "")
        tour(f"leave second-{group}")
        scene.settled(group, 1, "second left")
        tour(f"leave first-{group}")
        scene.settled(group, 0, "first left")
    _shared(scene, tour)
    _streamed(scene, tour)
    _paid(scene, tour)
    scene.ask("groups", "--list")
    tour.end()


def _shared(scene: Scene, tour: Tour) -> None:
    tour("group share share.auto.offset.reset=earliest")
    tour("share first-share share shared accept")
    time.sleep(4)
    scene.fill("shared", [b"accept", b"release-1-a", b"reject", b"release-2-b", b"accept", b"accept", b"accept"], 2)
    time.sleep(4)
    _ask_share(scene, "first joined")
    tour("share second-share share shared hold=3000")
    time.sleep(4)
    _ask_share(scene, "second joined")
    tour("leave first-share")
    time.sleep(3)
    # The locks of these end before the member acknowledges.
    scene.fill("shared", [b"late-a", b"late-b"], 2)
    time.sleep(9)
    _ask_share(scene, "first left")
    tour("leave second-share")
    time.sleep(2)
    _ask_share(scene, "second left")


def _ask_share(scene: Scene, what: str) -> None:
    scene.note(what=what, group="share")
    for words in ("--members --verbose", "--state", "--offsets --verbose"):
        scene.ask("share-groups", "--describe", "--group", "share", *words.split())


def _streamed(scene: Scene, tour: Tour) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tour(f"streams first-streams streams counted {folder}/first")
        time.sleep(8)
        _ask_streams(scene, "first joined")
        tour(f"streams second-streams streams counted {folder}/second")
        time.sleep(10)
        _ask_streams(scene, "second joined")
        tour("leave second-streams")
        time.sleep(6)
        _ask_streams(scene, "second left")
        tour("leave first-streams")


def _ask_streams(scene: Scene, what: str) -> None:
    scene.note(what=what, group="streams")
    for words in ("--members --verbose", "--state --verbose"):
        scene.ask("streams-groups", "--describe", "--group", "streams", *words.split())


def _paid(scene: Scene, tour: Tour) -> None:
    tour("transactions pays paid commit abort commit")
    scene.ask("transactions", "describe", "--transactional-id", "pays")
    scene.ask("transactions", "list")


def letters(scene: Scene) -> None:
    scene.topic("shared", 1)
    tour = Tour(scene)
    tour(
        "group share share.auto.offset.reset=earliest share.delivery.count.limit=3 "
        "errors.deadletterqueue.topic.name=dlq.shared errors.deadletterqueue.copy.record.enable=true"
    )
    scene.fill("shared", [b"accept", b"reject-a", b"release-9", b"accept", b"reject-b", b"reject-c"], 1)
    tour("share member share shared accept")
    time.sleep(12)
    tour("leave member")
    time.sleep(2)
    tour.end()


SCENES: dict[str, tuple[str, Callable[[Scene], None]]] = {
    "librdkafka": (kafka_jars.NEWEST, librdkafka), "java": (kafka_jars.NEWEST, java), "old": (kafka_jars.KRAFT3, old),
    "letters": (kafka_jars.NEWEST_BROKER, letters),
}  # fmt: skip
WITHIN = ("letters",)
"""Scenes in which brokers write for clients: what goes on among brokers is recorded too."""


def record(name: str, out: Path) -> None:
    version, play = SCENES[name]
    config: dict[str, object] = dict(CONFIG) if version.startswith("4") else {}
    features = {}
    if name in WITHIN:
        features["share.version"] = 2
        config |= {
            "errors.deadletterqueue.auto.create.topics.enable": "true",
            "group.share.min.delivery.count.limit": 2,
        }
    listeners = ("CLIENT", "INTERNAL") if name in WITHIN else ("CLIENT",)
    about = f"Apache Kafka {version}, KRaft mode"
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster(version=version, listeners={"CLIENT": Listener()}, config=config, features=features) as cluster,
    ):
        scene = Scene(cluster)
        with Recording(
            Path(folder) / name, cluster.ports(*listeners), play.__doc__ or "", about, exact=False
        ) as recording:
            try:
                play(scene)
            finally:
                scene.end()
        out.mkdir(parents=True, exist_ok=True)
        with recording.file.open("rb") as file, gzip.GzipFile(out / f"{name}.gz", "wb", mtime=0) as packed:
            shutil.copyfileobj(file, packed)
        lines = ",\n".join(json.dumps(one) for one in scene.told)
        (out / f"{name}.told.json").write_text(f"[\n{lines}\n]\n")
        cluster.halt()
        for topic in KEPT:
            place = cluster.nodes[0].folder / "data" / topic
            if (place / "00000000000000000000.log").exists():
                (out / name / topic).mkdir(parents=True, exist_ok=True)
                shutil.copy(place / "00000000000000000000.log", out / name / topic)


def main() -> None:
    parser = argparse.ArgumentParser(description="Record groups, and what the tools of brokers say of them.")
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], help="scenes to record; all when none is named")
    parser.add_argument("--out", type=Path, default=HERE / "groups", help="folder that receives them")
    arguments = parser.parse_args()
    for name in arguments.scenes or SCENES:
        began = time.monotonic()
        record(name, arguments.out)
        print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
