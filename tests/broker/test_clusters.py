"""The fixture itself: clusters start, serve each kind of listener, and leave nothing behind."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import kafka_jars
import pytest
from conftest import OLD_FORMAT
from kafka_cluster import PASSWORD, USER, BrokerError, Cluster, Listener, known_brokers
from plain_socket import Connection

from kwire import messages

Start = Callable[..., Cluster]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_zookeeper_brokers_know_each_other(start: Start) -> None:
    cluster = start(mode="zookeeper", brokers=2, config=OLD_FORMAT)
    assert [known_brokers(node.ports["INTERNAL"]) for node in cluster.nodes] == [2, 2]


def test_three_kraft_nodes_form_one_cluster(start: Start) -> None:
    cluster = start(version=kafka_jars.KRAFT3, brokers=3, controllers=3)
    assert known_brokers(cluster.nodes[2].ports["INTERNAL"]) == 3


def test_several_clusters_run_at_the_same_time(start: Start) -> None:
    clusters = [start(version=kafka_jars.KRAFT3), start(version=kafka_jars.NEWEST_BROKER)]
    ports = [port for cluster in clusters for port in cluster.ports()]
    assert len(set(ports)) == len(ports)
    assert [known_brokers(cluster.nodes[0].ports["INTERNAL"]) for cluster in clusters] == [1, 1]


def test_nothing_is_left_after_an_error(start: Start) -> None:
    seen: list[Cluster] = []

    def goes_wrong() -> None:
        with start(mode="zookeeper") as cluster:
            seen.append(cluster)
            pids.extend(node.process.pid for node in [*cluster.nodes, cluster.zookeeper] if node and node.process)
            raise RuntimeError("the test went wrong")

    pids: list[int] = []
    with pytest.raises(RuntimeError):
        goes_wrong()
    assert len(pids) == 2
    assert not any(map(alive, pids))
    assert not seen[0].folder.exists()


def test_a_broker_that_cannot_start_is_an_error_that_shows_its_log(start: Start) -> None:
    with pytest.raises(BrokerError, match=r"num\.io\.threads"):
        start(version=kafka_jars.KRAFT3, config={"num.io.threads": "none"})


@pytest.mark.parametrize("mode", ["kraft", "zookeeper"])
def test_clients_get_in_through_every_kind_of_listener(start: Start, mode: str) -> None:
    kafka: Any = importlib.import_module("kafka")  # missing, it is a failure: nobody would notice a skip
    listeners = {
        "PLAIN": Listener("SASL_PLAINTEXT", ("PLAIN",)),
        "SCRAM": Listener("SASL_PLAINTEXT", ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        "TLS": Listener("SSL"),
        "BOTH": Listener("SASL_SSL", ("SCRAM-SHA-512",)),
    }
    cluster = start(mode=mode, listeners=listeners)
    assert cluster.tls is not None
    account = {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    for listener, mechanism in (
        ("PLAIN", "PLAIN"),
        ("SCRAM", "SCRAM-SHA-256"),
        ("SCRAM", "SCRAM-SHA-512"),
        ("TLS", None),
        ("BOTH", "SCRAM-SHA-512"),
    ):
        security: dict[str, Any] = {"security_protocol": listeners[listener].protocol}
        if mechanism is not None:
            security |= {"sasl_mechanism": mechanism, **account}
        if "SSL" in listeners[listener].protocol:
            security["ssl_cafile"] = str(cluster.tls.ca)
        admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap(listener), **security)
        try:
            assert len(admin.describe_cluster()["brokers"]) == 1
        finally:
            admin.close()
    wrong = {
        **account,
        "sasl_plain_password": "wrong",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
    }
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap("PLAIN"), bootstrap_timeout_ms=2000, **wrong)


def test_listeners_can_be_on_ipv6(start: Start) -> None:
    cluster = start(version=kafka_jars.NEWEST_BROKER, listeners={"SIX": Listener(host="::1")})
    with Connection(cluster.bootstrap("SIX")) as connection:
        got = connection.ask(messages.MetadataRequest(topics=[]), 12)
    assert [broker.host for broker in got.brokers] == ["::1"]
