"""The broker as tests use it: on sockets of this machine, in asyncio or beside blocking code.

    with Broker(release="3.9", topics={"orders": 3}) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

    async with Broker(nodes=3) as broker:
        ...

``async with`` runs the broker in the loop that runs. ``with`` is for code that blocks: the loop of the broker has a
thread of its own there, and whatever is asked of the broker is done in that loop.

Rules kept here:

- All state is in ``conversation.Core``, which only the loop touches.
- Sockets listen on 127.0.0.1 unless ``host`` says otherwise.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kwire import records, versions
from kwire.records import Record
from kwire.testing.broker.authentication import Sasl
from kwire.testing.broker.cluster import Cluster, Node, Settings
from kwire.testing.broker.conversation import Conversation, Core
from kwire.testing.broker.faults import Faults
from kwire.testing.broker.hosting import check_host
from kwire.testing.broker.logs import Log, RefusedError
from kwire.testing.broker.recording import Recording
from kwire.testing.broker.scripted import Scripted

__all__ = ["Broker"]

_LOOPBACK: Final = "127.0.0.1"


class Broker(Scripted):
    """A Kafka cluster in this process.

    - ``release``: whose versions it announces and accepts, ``"0.8.0"`` to ``"4.4"``; None is the newest.
    - ``nodes``: how many brokers it has, each with a port of its own.
    - ``topics``: name -> number of partitions, made before clients come.
    - ``host``: the address that it listens on, and that clients are told.
    - ``ports``: one for each node; 0, or none given, is a free one.
    - ``tls``: how to speak TLS, an ``ssl.SSLContext`` with a certificate.
    - ``sasl``: who may come in, and how; None lets everybody in.
    - ``settings``: limits and times.

    Raises ``UnsupportedVersionError`` for a release that is not known, and ``OSError`` where a port is in use.
    """

    def __init__(
        self,
        *,
        release: str | None = None,
        nodes: int = 1,
        topics: Mapping[str, int] | None = None,
        host: str = _LOOPBACK,
        ports: Sequence[int] = (),
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        settings: Settings | None = None,
    ) -> None:
        if nodes < 1 or (ports and len(ports) != nodes):
            raise ValueError(f"{nodes} nodes with {len(ports)} ports: each node has one")
        check_host(host)
        listed = [Node(number + 1, host, port) for number, port in enumerate(ports or [0] * nodes)]
        settings = settings or Settings()
        cluster = Cluster(
            release or versions.releases()[-1], listed, time.monotonic, time.time, settings, settings.seed, sasl
        )
        self._core = Core(cluster)
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._listeners: set[_Listener] = set()
        for name, count in (topics or {}).items():
            self.create_topic(name, count)

    # -- running

    async def listen(self) -> None:
        """Open a socket for each node."""
        loop = asyncio.get_running_loop()
        for node in self._core.cluster.nodes:
            server = await loop.create_server(
                lambda node=node: _Listener(self, node), node.host, node.port, ssl=self._tls
            )
            node.port = server.sockets[0].getsockname()[1]
            self._servers.append(server)

    def shut(self) -> None:
        """Close all sockets."""
        for server in self._servers:
            server.close()
        for one in list(self._listeners):
            one.abort()
        self._servers.clear()

    def settle(self) -> float:
        """Do what is due."""
        self._core.settle()
        for one in list(self._listeners):
            one.flow()
        return self._core.due()

    # -- what tests ask and say

    @property
    def bootstrap(self) -> str:
        """Addresses for a client, such as ``127.0.0.1:40001,127.0.0.1:40002``."""
        return ",".join(f"{one.host}:{one.port}" for one in self._core.cluster.nodes)

    @property
    def release(self) -> str:
        """The Kafka release."""
        return self._core.cluster.release

    @property
    def _faults(self) -> Faults:
        return self._core.faults

    @property
    def _recording(self) -> Recording:
        return self._core.recording

    def create_topic(self, name: str, partitions: int = 1, replication: int = 1) -> None:
        """Make a topic. Raises ``ValueError`` if there is one, or for a name that none can have."""
        try:
            self.in_loop(lambda: self._core.cluster.create_topic(name, partitions, replication))
        except RefusedError as error:
            raise ValueError(f"topic {name!r}: {error.why}") from None

    def append(self, topic: str, listed: Iterable[Record], partition: int = 0) -> int:
        """Put records into a partition, as a producer would. Gives the offset of the first one."""
        data = records.encode(listed, magic=self._core.cluster.magic)
        return self.in_loop(lambda: self._log(topic, partition).appended(data).base_offset)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """The records of a partition, without control records."""

        def read() -> list[Record]:
            log = self._log(topic, partition)
            batches = [batch for entry in log.after(log.start) if not entry.control for batch in entry.batches()]
            return [one for batch in batches for one in batch.records]

        return self.in_loop(read)

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Let another node lead a partition, in the next epoch."""
        if self._core.cluster.node(node) is None:
            raise ValueError(f"there is no node {node}")
        self.in_loop(lambda: self._log(topic, partition).lead(node))

    def _log(self, topic: str, partition: int) -> Log:
        cluster = self._core.cluster
        found = cluster.log(cluster.topics.get(topic), partition)
        if found is None:
            raise ValueError(f"there is no partition {partition} of {topic!r}")
        return found

    # -- connections

    def joined(self, listener: _Listener, node: Node, transport: asyncio.Transport) -> Conversation | None:
        """A client has connected."""
        self._listeners.add(listener)
        peer = transport.get_extra_info("peername") or (_LOOPBACK, 0)
        return self._core.connect(node, (str(peer[0]), int(peer[1])), transport.write, transport.close)

    def left(self, listener: _Listener) -> None:
        """A connection is gone."""
        self._listeners.discard(listener)


class _Listener(asyncio.Protocol):
    """The socket of one connection."""

    def __init__(self, broker: Broker, node: Node) -> None:
        self._broker = broker
        self._node = node
        self._conversation: Conversation | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._conversation = self._broker.joined(self, self._node, transport)
        if self._conversation is None:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._conversation is not None:
            self._conversation.receive(data)
            self._broker.wake()

    def eof_received(self) -> bool:
        if self._conversation is not None:
            self._conversation.receive(b"")
            self._broker.wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._broker.left(self)
        if self._conversation is not None:
            self._conversation.lost()
            self._broker.wake()

    def pause_writing(self) -> None:
        if self._conversation is not None:
            self._conversation.choked = True

    def resume_writing(self) -> None:
        if self._conversation is not None:
            self._conversation.choked = False
            self._conversation.go_on()
            self._broker.wake()

    def flow(self) -> None:
        """Read on, or not."""
        if self._conversation is None or self._transport is None or self._transport.is_closing():
            return
        if self._conversation.full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the socket at once."""
        if self._transport is not None:
            self._transport.abort()
