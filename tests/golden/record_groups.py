"""Record groups on a real broker, and ask it at some moments what it knows of them: members and their partitions.

    python tests/golden/record_groups.py [VERSION] [FOLDER]

A classic group and one of the consumer protocol (KIP-848) live one after the other, with members of librdkafka: one
joins, a second joins, it leaves, a third joins, and its process is killed. What the broker says of the group, by the
requests that ``kafka-groups.sh --describe --members`` makes too, is in ``groups.told.json``. These requests go to
another listener, so they are not in the capture.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "broker")]

TOPIC, PARTITIONS = "orders", 6
SESSION_MS = 9000
_MEMBER = """
import sys
import confluent_kafka as ck
one = ck.Consumer(dict(pair.split("=", 1) for pair in sys.argv[2:]))
one.subscribe([sys.argv[1]])
try:
    while True:
        one.poll(0.1)
        if select(): break
finally:
    one.close()
"""


class Member:
    """A consumer in a process of its own. It leaves when its input ends."""

    def __init__(self, servers: str, group: str, client: str, protocol: str) -> None:
        options = {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": client,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
        if protocol == "classic":
            options |= {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": "1000"}
        code = _MEMBER.replace(
            "if select(): break", "if sys.stdin in __import__('select').select([sys.stdin], [], [], 0)[0]: break"
        )
        words = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen([sys.executable, "-c", code, TOPIC, *words], stdin=subprocess.PIPE)

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


def described(admin: Any, group: str) -> dict[str, Any]:
    """What the broker says of a group now."""
    found = admin.describe_consumer_groups([group])[group].result()
    members = [
        {
            "member_id": one.member_id,
            "client_id": one.client_id,
            "partitions": sorted([each.topic, each.partition] for each in one.assignment.topic_partitions),
        }
        for one in found.members
    ]
    return {"group_id": group, "state": found.state.name, "type": found.type.name, "members": members}


def settled(admin: Any, group: str, count: int, told: list[dict[str, Any]], what: str) -> None:
    """Waits until the group has so many members, which have all partitions, and notes what the broker says."""
    for _ in range(240):
        said = described(admin, group)
        parts = sum(len(one["partitions"]) for one in said["members"])
        whole = parts == (PARTITIONS if count else 0)
        if len(said["members"]) == count and whole and said["state"] in ("STABLE", "EMPTY"):
            # Until the members have heard of it.
            time.sleep(3)
            told.append({"time": time.time(), "what": what, **described(admin, group)})
            print(told[-1], flush=True)
            return
        time.sleep(0.5)
    raise SystemExit(f"{group} did not settle: {said}")


def main() -> None:
    import kafka_cluster
    from confluent_kafka.admin import AdminClient, NewTopic
    from kafka_cluster import Cluster, Listener

    version = sys.argv[1] if len(sys.argv) > 1 else "4.3.0"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "kafka-4.3-groups"
    out.mkdir(parents=True, exist_ok=True)
    kafka_cluster.START_SECONDS = 240
    config = {
        "group.consumer.min.session.timeout.ms": str(SESSION_MS),
        "group.consumer.session.timeout.ms": str(SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
    }
    told: list[dict[str, Any]] = []
    with Cluster(mode="kraft", version=version, listeners={"CLIENT": Listener()}, config=config) as cluster:
        servers = cluster.bootstrap("CLIENT")
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap("INTERNAL")})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
        port = servers.rsplit(":", 1)[1]
        path = out / "groups.pcap"
        sniffer = subprocess.Popen(
            ["tcpdump", "-i", "lo", "-s", "0", "-U", "-B", "16384", "-w", str(path), f"tcp port {port}"],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2)
        for protocol in ("classic", "consumer"):
            group = f"{protocol}-group"
            first = Member(servers, group, "first", protocol)
            settled(admin, group, 1, told, "first joined")
            second = Member(servers, group, "second", protocol)
            settled(admin, group, 2, told, "second joined")
            second.leave()
            settled(admin, group, 1, told, "second left")
            third = Member(servers, group, "third", protocol)
            settled(admin, group, 2, told, "third joined")
            third.kill()
            settled(admin, group, 1, told, "third was killed")
            first.leave()
            settled(admin, group, 0, told, "first left")
        time.sleep(2)
        sniffer.terminate()
        sniffer.wait()
    (out / "groups.told.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
