"""What is recorded: one function per capture folder of the matrix.

A scenario gets a ``Target`` (where files go, which Kafka release) and leaves complete recordings there. Scenarios do
not depend on one another and each starts its own cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import kafka_jars
from capturing import Recording
from client_kafka_python import SAMPLES, KafkaPython, samples
from kafka_cluster import Cluster, Listener

__all__ = ["ALL", "Target"]

OLD_FORMAT = {"inter.broker.protocol.version": "0.10.1", "log.message.format.version": "0.10.1"}
"""Kafka 3.9 then stores magic 1, as a 0.10.1 broker did (ZooKeeper mode only)."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the recordings go, and the Kafka release for KRaft clusters (None: the default of each scenario)."""

    out: Path
    release: str | None = None

    def path(self, folder: str, name: str) -> Path:
        return self.out / folder / name


def zookeeper_folder(client: str) -> str:
    short = ".".join(kafka_jars.ZOOKEEPER.split(".")[:2])
    return f"kafka-{short}-zk-{client}"


def topics(cluster: Cluster, *names: str, partitions: int = 1, **config: str) -> None:
    """Create topics outside of a recording."""
    from kafka import KafkaAdminClient  # type: ignore[import-untyped]
    from kafka.admin import NewTopic  # type: ignore[import-untyped]

    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap(cluster.plaintext).split(","))
    try:
        wanted = [
            NewTopic(name, partitions, 1, topic_configs={k.replace("_", "."): v for k, v in config.items()})
            for name in names
        ]
        admin.create_topics(wanted)
    finally:
        admin.close()


def first_light(target: Target) -> None:
    """A 3.9 broker that stores message format 0.10.1; kafka-python pinned to 0.10.1 and unpinned, four APIs only.

    Both clients write with none, gzip, snappy and lz4 and with acks 0, 1 and all, and each reads what both wrote. The
    topics exist beforehand and the consumers seek by themselves, so that only ApiVersions, Metadata, Produce and Fetch
    are on the wire; brokers talk to themselves on another port.
    """
    codecs = ("none", "gzip", "snappy", "lz4")
    with Cluster(mode="zookeeper", config=OLD_FORMAT, listeners={"CLIENT": Listener(port=9092)}) as cluster:
        for form in ("pcap", "pcapng"):
            prefix = "first-light" if form == "pcap" else "first-light-ng"
            topics(cluster, *(f"{prefix}-{codec}" for codec in codecs), partitions=2)
            with Recording(
                target.path(zookeeper_folder("kafka-python"), prefix),
                cluster.ports("CLIENT"),
                first_light.__doc__ or "",
                f"Apache Kafka {cluster.version}, ZooKeeper mode, message format 0.10.1",
                form=form,
            ) as recording:
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


ALL: dict[str, Callable[[Target], None]] = {
    "first-light": first_light,
}
