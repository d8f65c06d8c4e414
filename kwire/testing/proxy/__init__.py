"""A proxy in front of a Kafka cluster: faults of ``kwire.testing.broker`` at the wire, and a recorder.

    from kwire.testing.proxy import Proxy

    with Proxy("kafka:9092") as proxy:
        proxy.on("Fetch", topic="orders", share=0.1).delay(2)
        ...                                       # a client with bootstrap servers proxy.bootstrap
        proxy.write_pcapng("said.pcapng")

Clients stay behind it: addresses in Metadata, FindCoordinator, DescribeCluster and hints of new leaders are its own.
``relay`` is one connection without sockets, ``answers`` changes responses, ``server`` has the sockets.
"""

from __future__ import annotations

from kwire.testing.proxy.server import Proxy

__all__ = ["Proxy"]
