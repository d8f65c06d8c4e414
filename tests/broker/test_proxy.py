"""The proxy of ``kwire.testing`` in front of real brokers: clients go through it, with and without faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import kafka_jars
import pytest
from broker_clients import CLIENTS, VALUES
from conftest import give_up
from kafka_cluster import Cluster
from missing import MissingError
from missing import give_up as give_up_client

from kwire.testing.broker import Rule
from kwire.testing.proxy import Proxy

FAULTS: list[tuple[str, Callable[[Rule], Rule]]] = [
    ("Metadata", lambda rule: rule.error("LEADER_NOT_AVAILABLE")),
    ("Metadata", lambda rule: rule.close()),
    ("Metadata", lambda rule: rule.delay(0.3)),
    ("FindCoordinator", lambda rule: rule.error("COORDINATOR_NOT_AVAILABLE")),
    ("Produce", lambda rule: rule.error("NOT_LEADER_OR_FOLLOWER")),
    ("Produce", lambda rule: rule.close(handled=False)),
    ("Produce", lambda rule: rule.delay(0.3)),
    ("Produce", lambda rule: rule.throttle(0.3)),
    ("ListOffsets", lambda rule: rule.error("NOT_LEADER_OR_FOLLOWER")),
    ("Fetch", lambda rule: rule.error("NOT_LEADER_OR_FOLLOWER")),
    ("Fetch", lambda rule: rule.close()),
    ("Fetch", lambda rule: rule.delay(0.3)),
    ("Fetch", lambda rule: rule.damage("cut_off")),
    ("JoinGroup", lambda rule: rule.error("COORDINATOR_LOAD_IN_PROGRESS")),
    ("JoinGroup", lambda rule: rule.close()),
    ("SyncGroup", lambda rule: rule.error("REBALANCE_IN_PROGRESS")),
    ("SyncGroup", lambda rule: rule.close()),
    ("OffsetFetch", lambda rule: rule.error("COORDINATOR_LOAD_IN_PROGRESS")),
    ("OffsetCommit", lambda rule: rule.delay(0.3)),
    ("ApiVersions", lambda rule: rule.close()),
]
"""Each happens once. docs/results/client-faults.md has what clients make of them."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    try:
        made = Cluster(version=kafka_jars.KRAFT3, brokers=2, config={"num.partitions": 3})
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise
    with made as running:
        yield running


def read(client: str, proxy: Proxy, topic: str) -> list[bytes]:
    try:
        return CLIENTS[client](proxy, topic)
    except MissingError as missing:
        give_up_client(missing)


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_stay_behind_it(cluster: Cluster, client: str) -> None:
    with Proxy(cluster.bootstrap()) as proxy:
        assert sorted(read(client, proxy, f"plain-{client}")) == sorted(VALUES)
        assert proxy.errors() == []
        # All that a client does was seen: records are asked for at each of the nodes.
        assert {one.node for one in proxy.exchanges("Fetch")} == {node.node_id for node in cluster.nodes}


@pytest.mark.parametrize(("api", "fault"), FAULTS, ids=lambda one: one if isinstance(one, str) else "")
@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
def test_a_fault_is_got_over(cluster: Cluster, client: str, api: str, fault: Callable[[Rule], Rule]) -> None:
    topic = f"{client}-{api}-{FAULTS.index((api, fault))}"
    with Proxy(cluster.bootstrap()) as proxy:
        rule = fault(proxy.on(api, nth=1))
        got = read(client, proxy, topic)
        assert rule.acted == 1
        # A client without idempotence writes what was carried out again, and reads 20 records in all.
        twice = (api, rule.said) == ("Produce", "NOT_LEADER_OR_FOLLOWER")
        assert set(got) <= set(VALUES) if twice else set(got) == set(VALUES)
