"""A topic of captured frames: Spark's own Kafka source streams it from a real broker, and kwire decodes each value."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import kafka_jars
import pyarrow as pa
import pyarrow.parquet
import pyspark
from conftest import give_up
from kafka import KafkaProducer
from kafka_cluster import Cluster, Listener

from kwire.capture.reading import Reading
from kwire.kernels.layouts import Status
from kwire.payloads import decode_requests

CAPTURE = Path(__file__).parents[1] / "golden/kafka-4.3-kraft-librdkafka/current.pcap"

# A process of its own: the jars of the source have to be there when the JVM starts.
PROGRAM = """
import sys
import kwire.spark
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

bootstrap, jars, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "frames", "startingOffsets": "earliest"}
topic = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="200").load()
made = topic.select(kwire.spark.decode_request("value", sized="auto").alias("r")).select("r.*")
query = (
    made.writeStream.format("parquet")
    .option("path", folder + "/out")
    .option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()
"""


def requests() -> list[bytes]:
    found = []
    with CAPTURE.open("rb") as file:
        for frames in Reading(file):
            of = zip(frames["status"].tolist(), frames["response"].tolist(), strict=True)
            found += [frames.bytes_of(row) for row, (said, back) in enumerate(of) if said == Status.OK and not back]
    return found


def test_a_stream_of_a_topic_of_frames_is_decoded(tmp_path: Path) -> None:
    try:
        jars = kafka_jars.spark_source(pyspark.__version__)
        cluster = Cluster(mode="kraft", version=kafka_jars.NEWEST_BROKER, listeners={"CLIENT": Listener()})
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise
    frames = requests()
    assert len(frames) > 100
    with cluster:
        bootstrap = cluster.bootstrap("CLIENT")
        producer: Any = KafkaProducer(bootstrap_servers=bootstrap)
        for number, frame in enumerate(frames):
            # As proxies differ: some keep the size, some do not.
            producer.send("frames", len(frame).to_bytes(4, "big") + frame if number % 2 else frame)
        producer.send("frames", b"no frame")
        producer.flush()
        producer.close()
        command = [sys.executable, "-c", PROGRAM, bootstrap, ",".join(map(str, jars)), str(tmp_path)]
        path = os.pathsep.join(one for one in sys.path if one)
        done = subprocess.run(
            command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[-3000:]
    files = [str(file) for file in (tmp_path / "out").glob("*.parquet")]
    made = [row for file in files for row in pa.parquet.read_table(file).to_pylist()]
    bad = [row for row in made if row["status"] not in ("ok", "trailing")]
    assert len(bad) == 1
    assert "give sized=True or sized=False" in bad[0]["error"]
    wanted = decode_requests(pa.array(frames)).to_pylist()
    assert Counter(map(str, (row for row in made if row not in bad))) == Counter(map(str, wanted))
