"""A Kafka broker in this process, for tests of clients: any release, scripted faults, everything recorded.

    from kwire.testing.broker import Broker

    with Broker(release="3.9", topics={"orders": 3}) as broker:
        broker.on("Produce", topic="orders", nth=1).error("NOT_LEADER_OR_FOLLOWER")
        ...                                       # a client with bootstrap servers broker.bootstrap
        assert len(broker.exchanges("Produce")) == 2

``Broker`` has the sockets (``server``). All else is state that needs none: topics and their records (``logs``),
groups (``groups``), transactions (``transactions``), connections (``conversation``), faults (``faults``) and what was
said (``recording``).
"""

from __future__ import annotations

from kwire.testing.broker.authentication import Sasl
from kwire.testing.broker.cluster import Settings
from kwire.testing.broker.faults import Rule
from kwire.testing.broker.recording import Exchange
from kwire.testing.broker.server import Broker

__all__ = ["Broker", "Exchange", "Rule", "Sasl", "Settings"]
