"""How long Kafka 4.4.0 takes for DescribeShareGroupOffsets of a partition that there is not: about 31 seconds.

    PYTHONPATH=.:tests/broker python tests/broker/slow_share_offsets.py

The group coordinator asks the share coordinator, which says UNKNOWN_TOPIC_OR_PARTITION. Kafka's PersisterStateManager
takes that for an error that goes away, and asks five times, with pauses of 1, 2, 4, 8 and 16 seconds. Then the answer
has start offset -1 and no error. Of a topic that there is not, the same answer comes at once.
"""

from __future__ import annotations

import socket
import time
from typing import Any

import kafka_jars
from kafka_cluster import Cluster

from kwire import messages
from kwire.protocol import Connection
from kwire.protocol.connection import ResponseReceived

TOPIC = "orders"


def main() -> None:
    """Starts a broker, and prints the seconds of each answer."""
    with Cluster(version=kafka_jars.NEWEST_BROKER, brokers=1) as cluster:
        host, port = cluster.bootstrap().split(",")[0].split(":")
        with socket.create_connection((host, int(port)), 90) as link:
            connection = Connection("client", client_id="kwire")

            def ask(message: Any, version: int) -> Any:
                link.sendall(connection.send(message, version=version))
                while True:
                    for one in list(connection.receive(link.recv(1 << 16))):
                        if isinstance(one, ResponseReceived):
                            return one.body

            new = messages.CreateTopicsRequest
            ask(new(topics=[new.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)]), 7)
            kind = messages.DescribeShareGroupOffsetsRequest
            for partition in (0, 20):
                topic = kind.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[partition])
                asked = kind(groups=[kind.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic])])
                begun = time.monotonic()
                found = ask(asked, 1).groups[0].topics[0]
                while not found.topic_id.int:  # the coordinator has not heard of the topic
                    begun = time.monotonic()
                    found = ask(asked, 1).groups[0].topics[0]
                (part,) = found.partitions
                took = time.monotonic() - begun
                print(f"partition {partition}: {took:.1f} s, start offset {part.start_offset}, error {part.error_code}")


if __name__ == "__main__":
    main()
