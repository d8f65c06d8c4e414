"""What scenarios have: a lane of a cluster (ports of their own), topics, clients and brokers that can be stopped.

A scenario is a function of a ``World``. Its decorator says which findings it expects before anything is captured.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]
from kafka.admin import KafkaAdminClient, NewTopic  # type: ignore[import-untyped]
from kafka_cluster import Cluster, Listener, Node, free_port

__all__ = ["LANES", "SCENARIOS", "USERS", "VALUE", "Scenario", "World", "scenario"]

VALUE = b"v" * 100
USERS = {"kwire": "kwire-secret", "mallory": "mallory-secret"}
"""Who may log in on the lane ``SASL``: ``mallory`` may do nothing."""
LANES = {
    **{f"LANE{number}": Listener() for number in range(6)},
    "SASL": Listener("SASL_PLAINTEXT", ("PLAIN",)),
    "TLS": Listener("SSL"),
}
"""Listeners of each broker. Scenarios on different lanes run at the same time, each in a capture of its own."""
PATIENCE = 180.0
"""Seconds that a part of a scenario may take."""


@dataclass(frozen=True)
class Scenario:
    """What clients do, and what ``kwire findings`` has to say of it."""

    name: str
    play: Callable[[World], None]
    expects: frozenset[str]
    """Rules that must find it. None: clients are healthy, and nothing may be found."""
    clients: str
    true: frozenset[str]
    """Rules whose findings are true as well."""
    since: str
    """The first release in which it can be played."""
    old: frozenset[str] | None
    """What is expected of releases before 4.0, where that is something else."""
    lane: str
    alone: bool
    """Whether it disturbs others: it stops brokers."""

    @property
    def about(self) -> str:
        return " ".join((self.play.__doc__ or "").split())

    def expected(self, version: str) -> frozenset[str]:
        """The rules that must find it on brokers of a release."""
        return self.old if self.old is not None and version.startswith("3") else self.expects


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    *expects: str,
    clients: str,
    true: tuple[str, ...] = (),
    since: str = "3.9",
    old: tuple[str, ...] | None = None,
    lane: str = "",
    alone: bool = False,
) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Declares a scenario; see ``Scenario``."""

    def declared(play: Callable[[World], None]) -> Callable[[World], None]:
        name = play.__name__.replace("_", "-")
        before = None if old is None else frozenset(old)
        SCENARIOS[name] = Scenario(name, play, frozenset(expects), clients, frozenset(true), since, before, lane, alone)
        return play

    return declared


@dataclass
class World:
    """What one scenario plays in."""

    cluster: Cluster
    lane: str
    name: str
    folder: Path
    """For what clients say."""
    classes: Path
    """Where ``Scenes.class`` is."""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    spare: int = field(default_factory=lambda: free_port(set()))
    """A port that is captured too."""

    @property
    def at(self) -> str:
        return self.cluster.bootstrap(self.lane)

    # --- topics and brokers -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def admin(self, **options: Any) -> Iterator[Any]:
        """A client of the set-up: what it does is not captured."""
        one = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap(), **options)
        try:
            yield one
        finally:
            one.close()

    def topic(self, partitions: int = 3, *, called: str = "", replicas: int = 3, **config: object) -> str:
        """A new topic, named after the scenario; an underscore in ``config`` stands for a dot."""
        name = self.name + called
        with self.admin() as admin:
            configs = {key.replace("_", "."): str(value) for key, value in config.items()}
            admin.create_topics([NewTopic(name, partitions, replicas, topic_configs=configs)])
            admin.wait_for_topics([name])
        time.sleep(1)
        return name

    def leader(self, topic: str, partition: int = 0) -> Node:
        with self.admin() as admin:
            (told,) = admin.describe_topics([topic])
        for one in told["partitions"]:
            if one["partition_index"] == partition:
                return next(node for node in self.cluster.nodes if node.node_id == one["leader_id"])
        raise LookupError(f"{topic} {partition}")

    def delete_records(self, topic: str, partitions: int) -> None:
        """Deletes all records that there are."""
        with (
            self.admin() as admin,
            contextlib.closing(KafkaConsumer(bootstrap_servers=self.cluster.bootstrap())) as one,
        ):
            admin.delete_records(one.end_offsets([TopicPartition(topic, k) for k in range(partitions)]))

    @contextlib.contextmanager
    def stands_still(self, node: Node) -> Iterator[None]:
        assert node.process is not None
        node.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            node.process.send_signal(signal.SIGCONT)

    # --- clients ------------------------------------------------------------------------------------------------------

    def id(self, client: str) -> str:
        return f"{self.name}-{client}"

    def producer(self, client_id: str | None = None, **options: Any) -> Any:
        """One of kafka-python."""
        return KafkaProducer(bootstrap_servers=self.at, client_id=client_id or self.id("py"), **options)

    def consumer(self, *topics: str, client_id: str | None = None, **options: Any) -> Any:
        """One of kafka-python."""
        usual = {"auto_offset_reset": "earliest", "client_id": client_id or self.id("py")}
        return KafkaConsumer(*topics, bootstrap_servers=self.at, **usual | options)

    @contextlib.asynccontextmanager
    async def aio_producer(self, client_id: str | None = None, **options: Any) -> Any:
        one = AIOKafkaProducer(bootstrap_servers=self.at, client_id=client_id or self.id("aio"), **options)
        await one.start()
        try:
            yield one
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(one.stop(), 5)

    @contextlib.asynccontextmanager
    async def aio_consumer(self, *topics: str, client_id: str | None = None, **options: Any) -> Any:
        usual = {"auto_offset_reset": "earliest", "client_id": client_id or self.id("aio")}
        one = AIOKafkaConsumer(*topics, bootstrap_servers=self.at, **usual | options)
        await one.start()
        try:
            yield one
        finally:
            await one.stop()

    def feed(self, topic: str, seconds: float, rate: float, *, partitions: int = 3, **options: Any) -> None:
        """kafka-python writes so many records a second, to one partition after the other (0: by keys)."""
        with contextlib.closing(self.producer(options.pop("client_id", self.id("feeder")), **options)) as one:
            end, count = time.monotonic() + seconds, 0
            while time.monotonic() < end:
                to = {"partition": count % partitions} if partitions else {"key": b"k%d" % (count % 7)}
                one.send(topic, VALUE, **to)
                count += 1
                time.sleep(1 / rate)

    def fill(self, topic: str, count: int, **options: Any) -> None:
        """kafka-python writes so many records at once."""
        with contextlib.closing(self.producer(self.id("feeder"), **options)) as one:
            for _ in range(count):
                one.send(topic, VALUE)

    def drain(
        self, topic: str, seconds: float, *, group: str | None, pause: float = 0, commit: bool = False, **options: Any
    ) -> None:
        """kafka-python reads for so long; ``commit``: by itself, behind each poll."""
        if commit:
            options["enable_auto_commit"] = False
        with contextlib.closing(self.consumer(topic, group_id=group, **options)) as one:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if one.poll(timeout_ms=500) and commit:
                    one.commit()
                time.sleep(pause)

    def java(self, what: str, *arguments: object, wait: bool = False, **properties: object) -> subprocess.Popen[bytes]:
        """Kafka's own client does what ``Scenes.java`` says; an underscore in ``properties`` stands for a dot."""
        told = {"bootstrap.servers": self.at, **{key.replace("_", "."): value for key, value in properties.items()}}
        command = self.cluster.java("Scenes", what, *map(str, arguments), *(f"{k}={v}" for k, v in told.items()))
        at = command.index("-cp") + 1
        command[at] += os.pathsep + str(self.classes)
        return self._start("java", command, wait)

    def kcat(self, *arguments: object, given: bytes | None = None, wait: bool = True, **properties: object) -> Any:
        """kcat (librdkafka) with a client_id of the scenario, unless ``client_id`` is another or None."""
        told = {"client.id": self.id("kcat"), **{key.replace("_", "."): value for key, value in properties.items()}}
        options = [one for key, value in told.items() if value is not None for one in ("-X", f"{key}={value}")]
        return self._start("kcat", ["kcat", "-b", self.at, *options, *map(str, arguments)], wait, given)

    def _start(self, what: str, command: list[str], wait: bool, given: bytes | None = None) -> subprocess.Popen[bytes]:
        with (self.folder / f"{self.name}.{what}.log").open("ab") as log:
            stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
            one = subprocess.Popen(command, stdin=stdin, stdout=log, stderr=log)
        self.started.append(one)
        if one.stdin is not None and given is not None:
            one.stdin.write(given)
            one.stdin.close()
        if wait:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(60)
        return one

    # --- time ---------------------------------------------------------------------------------------------------------

    def at_once(self, first: Callable[[], object], *others: Callable[[], object]) -> None:
        """Runs parts side by side, and raises the error of the first that failed.

        ``first`` runs in the thread that calls, as must what starts a broker: it ends with the thread that started it.
        """
        failed: list[BaseException] = []

        def tried(part: Callable[[], object]) -> None:
            try:
                part()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=tried, args=(part,), daemon=True) for part in others]
        for one in threads:
            one.start()
        tried(first)
        for one in threads:
            one.join(PATIENCE)
        if failed:
            raise failed[0]

    def run(self, part: Coroutine[Any, Any, object]) -> None:
        asyncio.run(asyncio.wait_for(part, PATIENCE))

    def rest(self) -> None:
        """Waits for the programs that were started, and ends those that do not end."""
        for one in self.started:
            try:
                one.wait(60)
            except subprocess.TimeoutExpired:
                one.terminate()
        self.started.clear()

    def kill(self) -> None:
        for one in self.started:
            one.kill()
