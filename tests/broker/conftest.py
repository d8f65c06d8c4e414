"""Fixtures around real brokers, and the rule about skipping.

The suite is skipped when the registry that has Kafka cannot be reached, and says so in a banner at the end. Any other
reason (no Java, no Maven, an unknown release) skips on a developer's machine and fails where ``CI`` is ``true``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import kafka_jars
import pytest
from kafka_cluster import Cluster, Listener
from missing import UNREACHABLE

REASONS: list[str] = []
OLD_FORMAT = {"inter.broker.protocol.version": "0.10.1", "log.message.format.version": "0.10.1"}


def give_up(error: kafka_jars.KafkaUnavailableError) -> None:
    """Skip or fail, whichever the rule says."""
    REASONS.append(str(error))
    if os.environ.get("CI") == "true" and not isinstance(error, kafka_jars.RegistryUnreachableError):
        pytest.fail(f"no broker: {error}")
    unreachable = isinstance(error, kafka_jars.RegistryUnreachableError)
    pytest.skip(f"{UNREACHABLE}: {error}" if unreachable else f"no broker: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In continuous integration a skip is a failure, unless what is missing cannot be fetched."""
    report: pytest.TestReport = yield
    excused = hasattr(report, "wasxfail") or UNREACHABLE in str(report.longrepr)
    if os.environ.get("CI") == "true" and report.skipped and not excused:
        report.outcome, report.longrepr = "failed", f"{item.name} was skipped: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REASONS:
        terminalreporter.section("NO KAFKA BROKER: TESTS WERE NOT RUN", sep="!", red=True, bold=True)
        for reason in sorted(set(REASONS)):
            terminalreporter.write_line(reason)
        terminalreporter.write_sep("!", red=True, bold=True)


@pytest.fixture
def start() -> Iterator[Callable[..., Cluster]]:
    """``start(mode=..., ...)`` gives a running cluster; all of them stop when the test ends."""
    with ExitStack() as stack:

        def make(**options: Any) -> Cluster:
            try:
                cluster = Cluster(**options)
            except kafka_jars.KafkaUnavailableError as error:
                give_up(error)
                raise
            return stack.enter_context(cluster)

        yield make


CLUSTERS: dict[str, dict[str, Any]] = {
    "3.9-zookeeper-0.10.1": {"mode": "zookeeper", "config": OLD_FORMAT},
    "3.9-kraft": {"mode": "kraft", "version": kafka_jars.KRAFT3},
    "newest": {"mode": "kraft", "version": kafka_jars.NEWEST_BROKER},
}


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One broker of each kind after the other, with a plaintext listener CLIENT."""
    try:
        made = Cluster(**CLUSTERS[request.param], listeners={"CLIENT": Listener()})
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise
    with made:
        yield made
