"""The segments of a real broker, read by ``kwire.log`` and by Kafka's own dump-log tool, are the same."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import dumplog
import kafka_jars
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka_cluster import Cluster, Listener

from kwire import log
from kwire.log.internal import decoded
from kwire.records import CODECS

CONFIG = {
    # An index entry for nearly every batch, so that there is something to check.
    "log.index.interval.bytes": 1024,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
TOPICS = [*(f"codec-{codec}" for codec in CODECS), "transactions", "__consumer_offsets", "__transaction_state"]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of a broker's data directory with some of everything, and the class path of its tools."""
    copy = tmp_path_factory.mktemp("logs")
    with Cluster(mode="kraft", listeners={"CLIENT": Listener()}, config=CONFIG) as cluster:
        address = cluster.bootstrap("CLIENT")
        for codec in CODECS:
            producer = KafkaProducer(
                bootstrap_servers=address,
                compression_type=None if codec == "none" else codec,
                batch_size=4000,
                linger_ms=5,
            )
            for index in range(2000):
                producer.send(
                    f"codec-{codec}",
                    key=None if index % 7 == 0 else b"key %d" % index,
                    value=None if index % 7 == 1 else b"value %d " % index * (index % 9),
                    headers=[("one", b"x"), ("two", b"")] if index % 3 == 0 else [],
                    timestamp_ms=1_700_000_000_000 + index * 7919 % 100_000,
                )
            producer.close()
        producer = KafkaProducer(bootstrap_servers=address, transactional_id="transactional")
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            for index in range(10):
                producer.send("transactions", b"value %d" % index)
            producer.flush()
            if number % 2:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        producer.close()
        consumer = KafkaConsumer(
            "codec-gzip",
            bootstrap_servers=address,
            group_id="group",
            auto_offset_reset="earliest",
            consumer_timeout_ms=3000,
        )
        assert sum(1 for _ in consumer) == 2000
        consumer.commit()
        consumer.close()
        for folder in cluster.folder.rglob("*-0"):
            if any(folder.glob("*.log")):
                # The broker goes on writing metadata: indexes first, or they name what a log did not have yet.
                shutil.copytree(folder, copy / folder.name, ignore=shutil.ignore_patterns("*.log"))
                for segment in folder.glob("*.log"):
                    shutil.copy2(segment, copy / folder.name)
        class_path = cluster.classpath
    return copy, class_path


def dumped(class_path: str, segment: log.Segment) -> str:
    """What the dump-log tool prints."""
    decoder = [dumplog.DECODERS[segment.topic]] if segment.topic in dumplog.DECODERS else []
    done = subprocess.run(
        [
            kafka_jars.java(),
            *("-cp", class_path, "org.apache.kafka.tools.DumpLogSegments"),
            *("--print-data-log", "--deep-iteration", *decoder, "--files", str(segment.path)),
        ],
        check=True,
        capture_output=True,
    )
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.parametrize("topic", [*TOPICS, "__cluster_metadata"])
def test_a_brokers_segment_reads_as_its_own_tool_prints_it(logs: tuple[Path, str], topic: str) -> None:
    folder, class_path = logs
    (segment,) = log.find(folder / f"{topic}-0")
    dumplog.compare(segment, dumped(class_path, segment))


@pytest.mark.parametrize("topic", [*TOPICS, "__cluster_metadata"])
def test_the_indexes_of_a_broker_are_right(logs: tuple[Path, str], topic: str) -> None:
    (segment,) = log.find(logs[0] / f"{topic}-0")
    assert segment.index.stat().st_size
    assert log.check_indexes(segment) == []


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__cluster_metadata"])
def test_every_record_of_kafkas_own_topics_is_decoded(logs: tuple[Path, str], topic: str) -> None:
    (segment,) = log.find(logs[0] / f"{topic}-0")
    rows: list[dict[str, Any]] = [
        row for batch in log.read(segment, secrets=True) for row in decoded(batch).to_pylist()
    ]
    assert rows
    for row in rows:
        assert row["record_type"] is not None
        assert (row["decoded_value"] is None) == (row["value"] is None)
        assert topic == "__cluster_metadata" or row["is_control"] or row["decoded_key"] is not None


def test_a_whole_data_directory_is_read(logs: tuple[Path, str]) -> None:
    found = log.find(logs[0])
    assert {one.topic for one in found} >= set(TOPICS)
    assert all(one.topic_id is not None for one in found)
