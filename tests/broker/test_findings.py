"""The lag that ``kwire findings`` knows from the traffic is what the broker's own tool says, at this moment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka_cluster import Cluster, Listener
from missing import MissingError, give_up

from kwire import capture
from kwire.report.findings import Finder, needed

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))

from capturing import Recording, RecordingError


def test_lag_is_what_the_tool_says(start: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = start(mode="kraft", listeners={"CLIENT": Listener()})
    at = cluster.bootstrap("CLIENT")
    try:
        with Recording(tmp_path / "lag", cluster.ports("CLIENT"), "", "", exact=False) as recording:
            admin = KafkaAdminClient(bootstrap_servers=at)
            admin.create_topics([NewTopic("orders", 2, 1)])
            admin.wait_for_topics(["orders"])
            admin.close()
            producer = KafkaProducer(bootstrap_servers=at, linger_ms=50)
            consumer = KafkaConsumer(
                "orders", bootstrap_servers=at, group_id="billing", auto_offset_reset="earliest",
                enable_auto_commit=False, max_poll_records=10,
            )  # fmt: skip
            for _ in range(2):
                for k in range(40):
                    producer.send("orders", b"%d" % k, partition=k % 2)
                producer.flush()
                while not consumer.poll(timeout_ms=1000):
                    pass
                consumer.commit()
            consumer.close()
            # What comes last is seen by nobody but its producer.
            for _ in range(7):
                producer.send("orders", b"last", partition=1)
            producer.close()
    except RecordingError as error:
        # Only root may read packets.
        give_up(MissingError(f"the traffic cannot be recorded here: {error}", unreachable=os.getuid() != 0))
    said = cluster.tool(
        "consumer-groups", "--bootstrap-server", cluster.bootstrap(), "--describe", "--group", "billing"
    )
    rows = [line.split() for line in said.splitlines() if line.startswith("billing ")]
    told = {(row[1], int(row[2])): (int(row[4]), int(row[5])) for row in rows if row[3] != "-"}
    assert told
    columns, finder = needed(["lag"]), Finder(["lag"])
    with recording.file.open("rb") as file:
        for name, batch in capture.read(file, tables=list(columns), columns=columns, name="x"):
            finder.add(name, batch)
    ends = finder.newest()
    lags = {(str(topic), int(partition or 0)): lag for _, topic, partition, lag in finder.lags()}
    assert {place: (ends[place], lag) for place, lag in lags.items()} == told
