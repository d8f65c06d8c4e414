"""The plug-in of pytest: the fixtures ``kafka_broker`` and ``kafka_proxy``, each of its own for a test.

    import pytest

    @pytest.mark.kafka_broker(release="3.9", topics={"orders": 3})
    def test_a_producer_tries_again(kafka_broker):
        kafka_broker.on("Produce", nth=1).error("NOT_LEADER_OR_FOLLOWER")
        ...

The marker takes the arguments of ``kwire.testing.broker.Broker``. If the test fails, its report ends with the last
exchanges. ``kafka_proxy`` is a proxy in front of a cluster, ``@pytest.mark.kafka_proxy(upstream="kafka:9092")``, or in
front of ``kafka_broker``.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pytest

from kwire.naming import no_such

if TYPE_CHECKING:
    from kwire.testing.broker import Broker
    from kwire.testing.proxy import Proxy

__all__ = ["kafka_broker", "kafka_proxy"]

_SHOWN: Final = 20
"""Exchanges in the report of a test that failed."""
_WIDE: Final = 300


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.addinivalue_line("markers", "kafka_proxy(**arguments): the proxy that the fixture kafka_proxy starts")
    config.addinivalue_line("markers", "kafka_broker(**arguments): the broker that the fixture kafka_broker starts")


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker that runs during one test. It is stopped at its end, whatever clients do."""
    from kwire.testing.broker import Broker

    with Broker(**_arguments(request, "kafka_broker", Broker)) as broker:
        yield broker
        _add_section(request.node, broker)


@pytest.fixture
def kafka_proxy(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """A proxy that runs during one test, in front of ``kafka_broker`` if the marker names no ``upstream``."""
    from kwire.testing.proxy import Proxy

    arguments = _arguments(request, "kafka_proxy", Proxy)
    if "upstream" not in arguments:
        arguments["upstream"] = request.getfixturevalue("kafka_broker").bootstrap
    with Proxy(**arguments) as proxy:
        yield proxy
        _add_section(request.node, proxy)


def _arguments(request: pytest.FixtureRequest, name: str, kind: type[Broker | Proxy]) -> dict[str, Any]:
    marker = request.node.get_closest_marker(name)
    if marker is None:
        return {}
    if marker.args:
        raise pytest.UsageError(f"{name} takes arguments by name, as {kind.__name__} does")
    known = list(signature(kind).parameters)
    for one in marker.kwargs:
        if one not in known:
            raise pytest.UsageError(f"{name} has {no_such('argument', one, known)}")
    return dict(marker.kwargs)


def _add_section(item: pytest.Item, broker: Broker | Proxy) -> None:
    lines = [repr(one) for one in broker.exchanges()[-_SHOWN:]] + [f"closed: {one}" for one in broker.errors()]
    text = "\n".join(one if len(one) <= _WIDE else f"{one[:_WIDE]}..." for one in lines)
    # pytest shows it with what a test that failed has written.
    item.add_report_section("teardown", f"kafka {type(broker).__name__.lower()}", text)
