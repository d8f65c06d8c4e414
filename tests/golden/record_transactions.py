"""Record transactions on a real broker, and what its own tool says of them at the same moments.

    python tests/golden/record_transactions.py 4.3.0 DIR      a minute

Needs Java, tcpdump and the right to capture on loopback. ``raw.pcap`` and ``told.json`` of DIR become
``transactions/transactions.gz`` and ``transactions/transactions.told``: what each producer did, and the answers of
``kafka-transactions.sh describe``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "broker"), str(ROOT / "tests" / "golden")]

import kafka_cluster  # noqa: E402
from kafka_cluster import Cluster, Listener  # noqa: E402

kafka_cluster.TOOLS["transactions"] = ("org.apache.kafka.tools.TransactionsCommand",)
kafka_cluster.START_SECONDS = 240
OFTEN = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}


class World:
    """A cluster, and what was told."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.servers = cluster, cluster.bootstrap("CLIENT")
        self.told: list[dict[str, Any]] = []
        self.stop = threading.Event()

    def note(self, **said: Any) -> None:
        self.told.append({"time": time.time(), **said})

    def producer(self, name: str, client: str, **more: Any) -> Any:
        of = {"bootstrap.servers": self.servers, "transactional.id": name, "client.id": client}
        one: Any = ck.Producer({**of, **more})
        one.init_transactions(20)
        return one

    def write(self, one: Any, count: int, partition: int = 0) -> None:
        for number in range(count):
            one.produce("orders", b"v%d" % number, partition=partition)
        one.flush(10)

    def read(self) -> None:
        reader: Any = ck.Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "readers",
                "client.id": "reader",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        reader.subscribe(["orders"])
        while not self.stop.is_set():
            got = reader.poll(0.2)
            if got is not None and not got.error():
                reader.commit(got, asynchronous=False)
        reader.close()

    def describe(self, name: str) -> None:
        at = ("--bootstrap-server", self.cluster.bootstrap("INTERNAL"), "describe", "--transactional-id", name)
        self.note(describe=name, says=self.cluster.tool("transactions", *at, check=False))

    def play(self) -> None:
        a = self.producer("pays", "first")
        a.begin_transaction()
        self.write(a, 3)
        self.write(a, 2, 1)
        time.sleep(1.5)
        self.describe("pays")
        a.commit_transaction(20)
        self.note(truth="pays", end="committed", records=5)
        a.begin_transaction()
        self.write(a, 4)
        a.abort_transaction(20)
        self.note(truth="pays", end="aborted", records=4)
        self.describe("pays")
        a.begin_transaction()
        self.write(a, 2)
        time.sleep(1)
        b = self.producer("pays", "second")
        self.note(truth="pays", end="fenced", records=2)
        b.begin_transaction()
        self.write(b, 1)
        b.commit_transaction(20)
        self.note(truth="pays", end="committed", records=1)
        try:
            a.produce("orders", b"zombie", partition=0)
            a.flush(5)
            a.commit_transaction(5)
        except ck.KafkaException as error:
            self.note(zombie=str(error))
        c = self.producer("slow", "third", **{"transaction.timeout.ms": 3000})
        c.begin_transaction()
        self.write(c, 3, 1)
        time.sleep(6)
        self.describe("slow")
        try:
            c.commit_transaction(10)
        except ck.KafkaException as error:
            self.note(late=str(error))
        self.note(truth="slow", end="timed_out", records=3)
        d = self.producer("hang", "fourth")
        d.begin_transaction()
        self.write(d, 2)
        time.sleep(2)
        self.describe("hang")
        self.note(truth="hang", end="open", records=2)
        time.sleep(1)


def main(version: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with Cluster(mode="kraft", version=version, listeners={"CLIENT": Listener()}, config=OFTEN) as cluster:
        world = World(cluster)
        port = world.servers.rsplit(":", 1)[1]
        admin: Any = AdminClient({"bootstrap.servers": world.servers})
        for one in admin.create_topics([NewTopic("orders", 2, 1)]).values():
            one.result()
        where = ("-w", str(out / "raw.pcap"), f"tcp port {port}")
        sniffer = subprocess.Popen(["tcpdump", "-i", "lo", "-s", "0", "-U", "-B", "16384", *where])
        time.sleep(2)
        reader = threading.Thread(target=world.read)
        reader.start()
        world.play()
        sniffer.terminate()
        sniffer.wait()
        world.stop.set()
        reader.join()
    (out / "told.json").write_text(json.dumps(world.told, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
