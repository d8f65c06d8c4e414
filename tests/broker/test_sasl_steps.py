"""Steps of SASL, in order and out of order: what a real broker answers, and when it closes the connection. The mock
broker does the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka_jars
import pytest
from conftest import give_up
from kafka_cluster import PASSWORD, USER, Cluster, Listener
from plain_socket import Connection

from kwire import messages
from kwire.testing.broker import Broker, Sasl

Step = tuple[Any, int]
"""A request and its version."""

VERSIONS: Step = (messages.ApiVersionsRequest(client_software_name="kwire", client_software_version="1"), 3)
TOPICS: Step = (messages.MetadataRequest(topics=[]), 12)


def handshake(version: int, mechanism: str = "PLAIN") -> Step:
    return messages.SaslHandshakeRequest(mechanism=mechanism), version


def token(version: int, password: str = PASSWORD) -> Step:
    return messages.SaslAuthenticateRequest(auth_bytes=f"\0{USER}\0{password}".encode()), version


LOGIN = (handshake(1), token(2))
OPEN: dict[str, tuple[Step, ...]] = {
    "token v0": (token(0), VERSIONS),
    "token v2": (token(2), VERSIONS, TOPICS),
    "two tokens": (token(2), token(2), VERSIONS),
    "handshake v0": (handshake(0), VERSIONS, TOPICS),
    "versions of nobody": ((messages.ApiVersionsRequest(), 3), VERSIONS),
    "handshake of nothing": (handshake(1, "NONE"), VERSIONS),
    "versions first": (VERSIONS, *LOGIN, TOPICS),
    "two handshakes": (handshake(1), handshake(1), token(2), TOPICS),
    "wrong password": (handshake(1), token(2, "guessed"), VERSIONS),
}
LOCKED: dict[str, tuple[Step, ...]] = {
    "token v0": (token(0), VERSIONS),
    "token v2": (token(2), VERSIONS),
    "handshake v0, no token": (handshake(0), VERSIONS),
    "handshake of nothing": (handshake(1, "NONE"), VERSIONS),
    "login": (*LOGIN, TOPICS),
    "versions first": (VERSIONS, *LOGIN, TOPICS),
    "no login": (TOPICS,),
    "wrong password": (handshake(1), token(2, "guessed"), VERSIONS),
    "token after login": (*LOGIN, token(2), TOPICS),
    "login again": (*LOGIN, *LOGIN, TOPICS),
    "login again, other mechanism": (*LOGIN, handshake(1, "SCRAM-SHA-256"), TOPICS),
    "login again, no mechanism": (*LOGIN, handshake(1, "NONE"), TOPICS),
    "login again, wrong password": (*LOGIN, handshake(1), token(2, "guessed"), TOPICS),
    "login again, versions within": (*LOGIN, handshake(1), VERSIONS),
}
CASES = [*(("CLIENT", one) for one in OPEN), *(("LOGIN", one) for one in LOCKED)]


@pytest.fixture(scope="module")
def real() -> Iterator[Cluster]:
    listeners = {"CLIENT": Listener(), "LOGIN": Listener("SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-256"))}
    try:
        made = Cluster(mode="kraft", version=kafka_jars.NEWEST_BROKER, listeners=listeners)
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise
    with made:
        yield made


def answers(address: str, steps: tuple[Step, ...]) -> list[Any]:
    """The error code of each response, and ``closed`` in place of the first that does not come."""
    found: list[Any] = []
    with Connection(address, seconds=30) as connection:
        for body, version in steps:
            try:
                found.append(getattr(connection.ask(body, version), "error_code", 0))
            except ConnectionError:
                return [*found, "closed"]
    return found


@pytest.mark.parametrize(("listener", "name"), CASES)
def test_a_step_out_of_order_has_the_answer_of_a_real_broker(listener: str, name: str, real: Cluster) -> None:
    steps = (OPEN if listener == "CLIENT" else LOCKED)[name]
    sasl = None if listener == "CLIENT" else Sasl(users={USER: PASSWORD}, mechanisms=("PLAIN", "SCRAM-SHA-256"))
    with Broker(release="4.4", sasl=sasl) as mock:
        assert answers(mock.bootstrap, steps) == answers(real.bootstrap(listener), steps)
