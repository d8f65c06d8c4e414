"""The proxy as tests use it: sockets for each node of the cluster behind it.

Rules kept here:

- Each node of the cluster has a port of its own, which is opened when a response first names the node.
- Sockets listen on 127.0.0.1 unless ``host`` says otherwise.
- What one side does not read, the other side is not asked for.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kwire.errors import ProtocolError
from kwire.protocol.splitter import DEFAULT_LIMIT
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.faults import Faults
from kwire.testing.broker.hosting import check_host
from kwire.testing.broker.recording import Connected, Recording, end_of
from kwire.testing.broker.scripted import Scripted
from kwire.testing.proxy.relay import Relay

__all__ = ["Proxy", "Shared"]

_LOOPBACK: Final = "127.0.0.1"
_MOST_RECORDED: Final = 64 << 20
_MOST_NODES: Final = 1_000
_MOST_NAMES: Final = 100_000
_BACKLOG: Final = 128


@dataclass(eq=False)
class Shared:
    """What all connections of a proxy share."""

    faults: Faults
    recording: Recording
    proxy: Proxy
    limit: int = DEFAULT_LIMIT
    names: dict[Any, str] = field(default_factory=dict)
    """Topic id -> name, as far as responses have said it."""

    def clock(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def address(self, node: int, host: str, port: int) -> tuple[str, int]:
        """What clients are told in place of the address of a node."""
        return self.proxy.door(node, host, port)

    def ids(self) -> dict[str, Any]:
        """Topic name -> id."""
        return {name: number for number, name in self.names.items()}

    def learn(self, found: Mapping[Any, str]) -> None:
        """Keep names of topics."""
        if len(self.names) < _MOST_NAMES:
            self.names.update(found)


@dataclass(eq=False, slots=True)
class _Door:
    """A port of the proxy, and the node that it leads to."""

    node: int
    host: str
    port: int
    socket: socket.socket
    server: asyncio.Server | None = None

    @property
    def own(self) -> int:
        """The port of the proxy."""
        return int(self.socket.getsockname()[1])


class Proxy(Scripted):
    """A proxy in front of ``upstream``, the address of a node such as ``kafka:9092``.

    - ``host``, ``port``: where it listens for clients; 0 is a free port. Other nodes get free ports.
    - ``tls``: how to speak TLS to clients, an ``ssl.SSLContext`` with a certificate.
    - ``upstream_tls``: how to speak TLS to the cluster.
    - ``seed``: what shares of requests and damages are chosen by.
    - ``max_recorded``: bytes of connections that are kept.

    Raises ``ValueError`` for an address that is none, and ``OSError`` where a port is in use.
    """

    def __init__(
        self,
        upstream: str,
        *,
        host: str = _LOOPBACK,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        upstream_tls: ssl.SSLContext | None = None,
        seed: int = 0,
        max_recorded: int = _MOST_RECORDED,
    ) -> None:
        name, _, number = upstream.split(",")[0].rpartition(":")
        if not name or not number.isdecimal() or not 0 < int(number) < 65536:
            raise ValueError(f"{upstream!r} is no address such as kafka:9092")
        self._upstream = check_host(name.strip("[]")), int(number)
        self._host, self._port = check_host(host), port
        self._tls = tls
        self.upstream_tls: ssl.SSLContext | None = upstream_tls
        self.shared: Shared = Shared(Faults(seed), Recording(max_recorded), self)
        self._doors: list[_Door] = []
        self._clients: set[_Client] = set()
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    # -- running

    async def listen(self) -> None:
        """Open the socket for clients."""
        door = self._open(-1, *self._upstream, self._port)
        await self._serve(door)

    def shut(self) -> None:
        """Close all sockets."""
        for door in self._doors:
            if door.server is not None:
                door.server.close()
            door.socket.close()
        for task in self._tasks:
            task.cancel()
        for one in list(self._clients):
            one.abort()

    def settle(self) -> float:
        """Do what is due."""
        for one in list(self._clients):
            one.go_on()
        return min((one.due() for one in self._clients), default=NEVER)

    def _open(self, node: int, host: str, port: int, own: int) -> _Door:
        made = socket.create_server((self._host, own), backlog=_BACKLOG)
        door = _Door(node, host, port, made)
        self._doors.append(door)
        return door

    async def _serve(self, door: _Door) -> None:
        loop = asyncio.get_running_loop()
        door.server = await loop.create_server(lambda: _Client(self, door), sock=door.socket, ssl=self._tls)

    def door(self, node: int, host: str, port: int) -> tuple[str, int]:
        """The address of the proxy that leads to a node. A node that is new gets one."""
        for one in self._doors:
            if (one.node, one.host, one.port) == (node, host, port):
                return self._host, one.own
        try:
            made = self._open(node, host, port, 0) if len(self._doors) < _MOST_NODES else None
        except OSError as error:
            made = None
            self.shared.recording.errors.append(ProtocolError(f"no port for node {node}: {error}"))
        if made is None:
            return self._host, self._doors[0].own
        task = asyncio.get_running_loop().create_task(self._serve(made))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self._host, made.own

    def joined(self, client: _Client, door: _Door, peer: tuple[str, int]) -> Connected:
        """A client has connected."""
        self._clients.add(client)
        self._connections += 1
        return Connected(self._connections, end_of(*peer), end_of(self._host, door.own))

    def left(self, client: _Client) -> None:
        """A client is gone."""
        self._clients.discard(client)

    # -- what tests ask and say

    @property
    def bootstrap(self) -> str:
        """The address for a client."""
        return f"{self._host}:{self._doors[0].own}"

    @property
    def _faults(self) -> Faults:
        return self.shared.faults

    @property
    def _recording(self) -> Recording:
        return self.shared.recording


class _Client(asyncio.Protocol):
    """The socket of a client."""

    def __init__(self, proxy: Proxy, door: _Door) -> None:
        self._proxy, self._door = proxy, door
        self._transport: asyncio.Transport | None = None
        self._broker: asyncio.Transport | None = None
        self._relay: Relay | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername") or (_LOOPBACK, 0)
        connected = self._proxy.joined(self, self._door, (str(peer[0]), int(peer[1])))
        shared = self._proxy.shared
        self._relay = Relay(shared, self._door.node, connected, transport.write, self._write_on, self._end)
        transport.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        loop, proxy = asyncio.get_running_loop(), self._proxy
        assert self._transport is not None
        name = self._door.host if proxy.upstream_tls is not None else None
        try:
            made, _ = await loop.create_connection(
                lambda: _Upstream(self), self._door.host, self._door.port, ssl=proxy.upstream_tls, server_hostname=name
            )
        except (OSError, ValueError, OverflowError) as error:
            # The cluster names hosts and ports: a name may be none, and a port too large.
            at = f"{self._door.host}:{self._door.port}"
            proxy.shared.recording.errors.append(ProtocolError(f"no connection to {at}: {error}"))
            self.abort()
            return
        self._broker = made
        if self._transport.is_closing():
            made.abort()
        else:
            self._transport.resume_reading()

    def _write_on(self, data: bytes) -> None:
        if self._broker is not None:
            self._broker.write(data)

    def data_received(self, data: bytes) -> None:
        assert self._relay is not None
        self._relay.from_client(data)
        self._proxy.wake()

    def eof_received(self) -> bool:
        self._over()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._proxy.left(self)
        self._over()

    def _over(self) -> None:
        if self._relay is not None:
            self._relay.from_client(b"")

    def from_broker(self, data: bytes) -> None:
        """Bytes of the broker; none say that it has closed."""
        assert self._relay is not None
        self._relay.from_broker(data)
        self._proxy.wake()

    def pause_writing(self) -> None:
        if self._broker is not None and not self._broker.is_closing():
            self._broker.pause_reading()

    def resume_writing(self) -> None:
        if self._broker is not None and not self._broker.is_closing():
            self._broker.resume_reading()

    def flow(self, on: bool) -> None:
        """Read of the client, or not: the broker does not take more."""
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.resume_reading if on else self._transport.pause_reading)()

    def go_on(self) -> None:
        """Send what is due."""
        if self._relay is not None:
            self._relay.go_on()

    def due(self) -> float:
        """When something is."""
        return NEVER if self._relay is None or self._relay.closed else self._relay.due()

    def _end(self) -> None:
        for one in (self._transport, self._broker):
            if one is not None:
                one.close()

    def abort(self) -> None:
        """Close the sockets at once."""
        if self._task is not None:
            self._task.cancel()
        for one in (self._transport, self._broker):
            if one is not None:
                one.abort()


class _Upstream(asyncio.Protocol):
    """The socket to the broker."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.from_broker(data)

    def eof_received(self) -> bool:
        self._client.from_broker(b"")
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._client.from_broker(b"")

    def pause_writing(self) -> None:
        self._client.flow(False)

    def resume_writing(self) -> None:
        self._client.flow(True)
