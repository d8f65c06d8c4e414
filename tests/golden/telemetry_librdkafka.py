"""librdkafka as a client that pushes its metrics (KIP-714) for a while, and once more when it ends.

    python telemetry_librdkafka.py BOOTSTRAP TOPIC SECONDS

A program of its own, for an environment that has confluent-kafka. Prints the version of the library as JSON.
"""

from __future__ import annotations

import json
import sys
import time

import confluent_kafka as ck  # type: ignore[import-not-found,import-untyped,unused-ignore]


def main() -> None:
    bootstrap, topic, seconds = sys.argv[1:]
    shared = {"bootstrap.servers": bootstrap, "enable.metrics.push": True}
    producer = ck.Producer({**shared, "client.id": "librdkafka-producer", "linger.ms": 20})
    reads = {"client.id": "librdkafka-consumer", "group.id": f"rdkafka-{topic}", "auto.offset.reset": "latest"}
    consumer = ck.Consumer({**shared, **reads, "fetch.wait.max.ms": 1000})
    consumer.subscribe([topic])
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        producer.produce(topic, b"record of librdkafka")
        producer.poll(0)
        consumer.poll(0.1)
        time.sleep(0.2)
    producer.flush(10)
    consumer.close()
    print(json.dumps({"version": f"librdkafka {ck.libversion()[0]} (confluent-kafka {ck.version()})"}))


main()
