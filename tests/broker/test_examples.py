"""The clients of ``examples/`` against real brokers: message format 0.10.1 and the newest, plain, SASL and TLS."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafka_jars
import pytest
from conftest import OLD_FORMAT
from kafka_cluster import PASSWORD, USER, Cluster, Listener

from kwire.errors import KwireError

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import client_0_10
import client_4

Start = Callable[..., Cluster]
LISTENERS = {
    "OPEN": Listener(),
    "PLAIN": Listener("SASL_PLAINTEXT", ("PLAIN",)),
    "SCRAM": Listener("SASL_PLAINTEXT", ("SCRAM-SHA-512",)),
    "TLS": Listener("SSL"),
    "BOTH": Listener("SASL_SSL", ("SCRAM-SHA-512",)),
}


def check(got: list[Any]) -> None:
    assert [(one.key, one.value) for one in got] == [(b"k", b"hello")]


def test_the_client_of_0_10_with_a_broker_of_its_format(start: Start) -> None:
    # Such a broker has one listener for each protocol; the one without anything is its own.
    listeners = {name: LISTENERS[name] for name in ("PLAIN", "TLS")}
    cluster = start(mode="zookeeper", config=OLD_FORMAT, listeners=listeners)
    assert cluster.tls is not None
    check(asyncio.run(client_0_10.main(cluster.bootstrap(), "one", None, None, "")))
    check(asyncio.run(client_0_10.main(cluster.bootstrap("PLAIN"), "two", None, USER, PASSWORD)))
    check(asyncio.run(client_0_10.main(cluster.bootstrap("TLS"), "one", str(cluster.tls.ca), None, "")))
    with pytest.raises((ConnectionError, KwireError)):
        asyncio.run(client_0_10.main(cluster.bootstrap("PLAIN"), "two", None, USER, "wrong"))


def test_the_client_of_4_with_the_newest_broker(start: Start) -> None:
    cluster = start(version=kafka_jars.NEWEST_BROKER, listeners=LISTENERS)
    assert cluster.tls is not None
    authority = str(cluster.tls.ca)
    check(asyncio.run(client_4.main(cluster.bootstrap("OPEN"), "one", None, None, "")))
    check(asyncio.run(client_4.main(cluster.bootstrap("SCRAM"), "one", None, USER, PASSWORD)))
    check(asyncio.run(client_4.main(cluster.bootstrap("TLS"), "one", authority, None, "")))
    check(asyncio.run(client_4.main(cluster.bootstrap("BOTH"), "one", authority, USER, PASSWORD)))
    with pytest.raises((ConnectionError, KwireError, StopIteration, RuntimeError)):
        asyncio.run(client_4.main(cluster.bootstrap("SCRAM"), "one", None, USER, "wrong"))
