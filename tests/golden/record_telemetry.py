"""Record the captures of client telemetry (KIP-714): what real clients push, and what a broker's receiver got of it.

    python tests/golden/record_telemetry.py              all of them, about two minutes
    python tests/golden/record_telemetry.py snappy       one of them
    python tests/golden/record_telemetry.py --out DIR    somewhere else than tests/golden/kafka-4-telemetry

Needs what ``record.py`` needs. One capture for each compression (Kafka's Java client and librdkafka push to a broker
that offers that one only), ``refusals`` (pushes that a broker does not take, sent by kwire) and for each NAME

    NAME.pcap             the packets
    NAME.json             what was recorded; of refusals also what the broker answered
    NAME.received.jsonl   one line per push that the plug-in of the broker was handed, read by Kafka's own classes;
                          a point is name, unit, type, temporality, is_monotonic, value, start, time, attributes
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "broker")]

import kafka_jars  # noqa: E402  (found through the path that the lines above set)
import toolchains  # noqa: E402
from capturing import Recording  # noqa: E402
from kafka_cluster import Cluster, Listener  # noqa: E402

import kwire  # noqa: E402
from kwire import messages  # noqa: E402
from kwire.records import compression  # noqa: E402

PLUGIN = HERE.parent / "broker" / "java" / "telemetry"
INTERVAL_MS = 1000
METRICS = (
    "org.apache.kafka.producer.record.",
    "org.apache.kafka.producer.connection.",
    "org.apache.kafka.consumer.coordinator.assigned.",
    "org.apache.kafka.consumer.coordinator.rebalance.latency.",
    "org.apache.kafka.consumer.poll.idle.ratio.",
)
SECONDS = 2.2
SMALL_PUSH = 2048
"""``telemetry.max.bytes`` of the broker that refuses."""


@contextmanager
def broker(folder: Path, metrics: str, **properties: object) -> Iterator[Cluster]:
    """A broker with the plug-in and one subscription, for all clients."""
    classes = folder / "classes"
    jars = kafka_jars.install(kafka_jars.NEWEST)
    sources = [str(source) for source in sorted(PLUGIN.glob("*.java"))]
    javac = [kafka_jars.jdk_tool("javac"), "-nowarn", "-encoding", "UTF-8", "-cp", f"{jars}/*", "-d", str(classes)]
    subprocess.run([*javac, *sources], check=True, capture_output=True)
    config = {
        "metric.reporters": "TelemetryReceiver",
        "kwire.telemetry.file": folder / "received.jsonl",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    with Cluster(config=config, classpath=[classes], listeners={"CLIENT": Listener(port=9092)}) as cluster:
        settings = f"metrics=[{metrics}],interval.ms={INTERVAL_MS}"
        entity = ["--entity-type", "client-metrics", "--entity-name", "everybody"]
        cluster.tool("configs", "--bootstrap-server", cluster.bootstrap(), "--alter", *entity, "--add-config", settings)
        yield cluster


def record(out: Path, name: str, cluster: Cluster, folder: Path, about: str) -> Recording:
    """A recording of the clients' listener."""
    return Recording(out / name, cluster.ports("CLIENT"), about, f"Apache Kafka {cluster.version}, KRaft mode")


def keep(out: Path, name: str, folder: Path) -> None:
    """What the plug-in wrote goes beside the capture; nothing is expected of the records."""
    (out / f"{name}.jsonl").unlink()
    (out / f"{name}.received.jsonl").write_text((folder / "received.jsonl").read_text())


def compressed(out: Path, codec: str) -> None:
    """Kafka's Java client and librdkafka push to a broker that offers one compression."""
    about = f"Client metrics: Kafka's Java client and librdkafka push to a broker that offers {codec} only."
    number = list(compression.CODECS).index(codec)
    with (
        tempfile.TemporaryDirectory(prefix="kwire-telemetry-") as scratch,
        broker(folder := Path(scratch), ",".join(METRICS), kwire_telemetry_accept=number) as cluster,
    ):
        address = cluster.bootstrap("CLIENT")
        with record(out, codec, cluster, folder, about) as recording:
            java = cluster.java("TelemetryClients", address, f"telemetry-{codec}", str(int(SECONDS * 1000)))
            done = subprocess.run(java, check=True, capture_output=True, text=True, timeout=60)
            recording.clients["java"] = f"kafka-clients {cluster.version}"
            recording.note("java", "client instances", **json.loads(done.stdout))
            program = [toolchains.librdkafka()[0], str(HERE / "telemetry_librdkafka.py")]
            command = [*program, address, f"telemetry-{codec}", str(SECONDS)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
            recording.clients["librdkafka"] = json.loads(done.stdout)["version"]
        keep(out, codec, folder)


class Client:
    """A connection of kwire's own, with a new client instance."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._stream = self._socket.makefile("rb")
        self._number = 0
        self.subscription: Any = self.ask(messages.GetTelemetrySubscriptionsRequest())

    def ask(self, body: Any) -> Any:
        """The answer to a request in version 0."""
        self._number += 1
        frame = kwire.encode_request(body, api_version=0, correlation_id=self._number, client_id="kwire")
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._stream.read(4))
        return kwire.decode_response(self._stream.read(size), api_key=body.SCHEMA.api_key, api_version=0).body

    def push(self, metrics: bytes, **more: Any) -> int:
        """The error code in the answer to a push."""
        fields = {
            "client_instance_id": self.subscription.client_instance_id,
            "subscription_id": self.subscription.subscription_id,
            "metrics": metrics,
        }
        code: int = self.ask(messages.PushTelemetryRequest(**(fields | more))).error_code
        return code

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


def refusals(out: Path) -> None:
    """Pushes that a broker does not take, and what it answers; its plug-in is handed none of them."""
    about = "Client metrics: pushes of kwire that the broker refuses, each with the error code that it gave."
    with (
        tempfile.TemporaryDirectory(prefix="kwire-telemetry-") as scratch,
        broker(folder := Path(scratch), "*", telemetry_max_bytes=SMALL_PUSH) as cluster,
    ):
        address = cluster.bootstrap("CLIENT")
        with record(out, "refusals", cluster, folder, about) as recording:
            recording.clients["kwire"] = f"kwire {kwire.__version__}"

            def told(what: str, code: int, client: Client) -> None:
                recording.note(
                    "kwire", what, error=code, client_instance_id=str(client.subscription.client_instance_id)
                )

            with closing(Client(address)) as client:
                told("push for another subscription", client.push(b"", subscription_id=1), client)
            with closing(Client(address)) as client:
                told("push with a compression type that is not defined", client.push(b"x", compression_type=9), client)
            with closing(Client(address)) as client:
                told("push of what is no OTLP", client.push(b"\xff" * 20), client)
            with closing(Client(address)) as client:
                told("push that is too large", client.push(bytes(SMALL_PUSH + 1)), client)
            with closing(Client(address)) as client:
                told("first push", client.push(b""), client)
                told("push before the interval is over", client.push(b""), client)
            with closing(Client(address)) as client:
                told("terminating push", client.push(b"", terminating=True), client)
                told("push after the terminating one", client.push(b"", terminating=True), client)
            with closing(Client(address)) as client:
                asked = messages.GetTelemetrySubscriptionsRequest(
                    client_instance_id=client.subscription.client_instance_id
                )
                told("question before the interval is over", client.ask(asked).error_code, client)
        (out / "refusals.jsonl").unlink()


def main() -> int:
    names = [*compression.CODECS, "refusals"]
    parser = argparse.ArgumentParser(description="Record the captures of client telemetry.")
    parser.add_argument("names", nargs="*", help=f"captures to record ({', '.join(names)}); all when none is named")
    parser.add_argument("--out", type=Path, default=HERE / "kafka-4-telemetry", help="folder that receives them")
    arguments = parser.parse_args()
    if not set(arguments.names) <= set(names):
        parser.error(f"no such capture: {', '.join(set(arguments.names) - set(names))}")
    for name in arguments.names or names:
        if name == "refusals":
            refusals(arguments.out)
        else:
            compressed(arguments.out, name)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
