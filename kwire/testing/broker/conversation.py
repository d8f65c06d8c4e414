"""One connection of a client with a node, and all connections of a cluster: bytes in, bytes out, no sockets.

    core = Core(cluster)
    talk = core.connect(node, ("127.0.0.1", 50000), write, close)
    talk.receive(data)          # calls write(...) and close()
    core.settle()               # at core.due() at the latest

Rules kept here, as Kafka's brokers have them:

- One request of a connection is handled at a time. The next one waits until the response is written.
- A version that the release does not accept closes the connection, with two exceptions. ApiVersions is answered in
  v0 (KIP-511). A version that is announced all the same gets an error (Produce v0-2 of 4.x, KAFKA-18659).
- Bytes or steps that are not allowed close the connection, and are recorded as a ``KwireError``.
- A client that is refused by SASL gets its answer, and then the connection is closed.
- Produce with acks=0 has no response. If it fails, the connection is closed.
- Nothing more is read while bytes wait to be written (``choked``), or while much waits to be handled (``full``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import KwireError, ProtocolError, UnsupportedVersionError
from kwire.protocol.connection import Closed, Connection, Event, RequestReceived, State, Token, waits_by_itself
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey
from kwire.schema.model import NO_VERSIONS
from kwire.testing.broker.apis import HANDLERS
from kwire.testing.broker.apis.refusing import refuse
from kwire.testing.broker.asking import NEVER, Ask, Wait
from kwire.testing.broker.authentication import Login, RefusedLoginError
from kwire.testing.broker.cluster import Cluster, Node
from kwire.testing.broker.faults import Faults, Plan
from kwire.testing.broker.recording import Connected, Exchange, Recording, end_of

__all__ = ["Conversation", "Core"]

_LOGIN: Final = frozenset((int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)))
_FULL: Final = 1 << 20
"""Bytes that may wait to be handled before no more are read."""


@dataclass(slots=True)
class _Pending:
    """A request that is not answered yet: it waits for its answer, or its bytes wait for their time."""

    ask: Ask
    plan: Plan
    exchange: Exchange
    answered: bool
    wait: Wait | None = None
    data: bytes = b""
    due: float = NEVER
    mute: float = 0.0
    """Seconds for which nothing more is read after the answer (KIP-219)."""


class Conversation:
    """One connection. ``Core.connect`` makes it."""

    def __init__(
        self,
        core: Core,
        node: Node,
        peer: tuple[str, int],
        write: Callable[[bytes], None],
        close: Callable[[], None],
    ) -> None:
        self.closed: bool = False
        self.choked = False
        """Whether bytes wait to be written: nothing is handled until they are."""
        core.connections += 1
        self._core = core
        self._node = node
        self._host = peer[0]
        self._write = write
        self._close = close
        sasl = core.cluster.sasl
        self._connection = Connection("broker", sasl=sasl is not None, limit=core.cluster.settings.max_frame)
        self._login = Login(sasl)
        self._connected = Connected(core.connections, end_of(*peer), end_of(node.host, node.port))
        self._inbox = bytearray()
        self._ended = False
        self._events: Iterator[Event] = iter(())
        self._pending: _Pending | None = None
        self._last: Exchange | None = None
        self._muted = 0.0
        """Until when nothing is handled, because the client is throttled."""
        core.recording.opened(self._connected, core.cluster.wall())

    @property
    def full(self) -> bool:
        """Whether no more bytes should be read now."""
        return len(self._inbox) > _FULL

    def due(self) -> float:
        """When it has something to do by itself."""
        if self._pending is None:
            return self._muted if self._muted > self._core.cluster.clock() else NEVER
        return self._pending.due if self._pending.wait is None else self._pending.wait.due

    # -- bytes of the client

    def receive(self, data: bytes) -> None:
        """Take the next bytes; no bytes say that the client has closed the connection."""
        if self.closed:
            return
        if data:
            self._inbox += data
            self._core.recording.data(self._connected, False, bytes(data), self._core.cluster.wall())
        else:
            self._ended = True
        self.go_on()
        self._core.settle()

    def lost(self) -> None:
        """The connection is gone."""
        if not self.closed:
            self._left()

    def go_on(self) -> None:
        """Handle what can be handled now."""
        try:
            while self._pending is None and not self.closed and not self.choked:
                if self._muted > self._core.cluster.clock():
                    return
                event = self._next()
                if event is None:
                    return
                if isinstance(event, RequestReceived):
                    self._take(event)
                elif isinstance(event, Token):
                    self._token(event)
                elif isinstance(event, Closed):
                    self._left()
        except KwireError as error:
            self._fail(error)

    def _next(self) -> Event | None:
        while True:
            event = next(self._events, None)
            if event is not None:
                return event
            if self._inbox:
                data = bytes(self._inbox)
                self._inbox.clear()
                self._events = self._connection.receive(data)
            elif self._ended:
                self._ended = False
                self._events = self._connection.receive(b"")
            else:
                return None

    def _token(self, event: Token) -> None:
        """A raw token (SaslHandshake v0). One of SaslAuthenticate was answered with its request."""
        if event.message is not None:
            return
        try:
            data, done = self._login.token(event.data)
        except RefusedLoginError as error:
            raise ProtocolError(str(error)) from None
        made = self._connection.send_token(data, done=done)
        self._core.recording.data(self._connected, True, made, self._core.cluster.wall())
        self._write(made)

    # -- a request

    def _take(self, event: RequestReceived) -> None:
        core, cluster = self._core, self._core.cluster
        exchange = Exchange(
            core.recording.count + 1,
            self._connected.number,
            self._node.id,
            event.client_id,
            event.api_key,
            event.api_version,
            event.correlation_id,
            event.body,
            cluster.wall(),
        )
        core.recording.add(exchange)
        self._last = exchange
        ask = Ask(
            cluster,
            self._node,
            event.api_key,
            event.api_version,
            event.body,
            event.client_id or "",
            self._host,
            self._connected.number,
            self._login,
            cluster.clock(),
        )
        self._pending = pending = _Pending(ask, core.faults.plan(ask), exchange, event.answered)
        exchange.fault = pending.plan.said
        try:
            answer = self._handled(pending)
            if isinstance(answer, Wait):
                pending.wait = answer
            elif answer is not None:
                self._answer(pending, answer)
        except KwireError as error:
            exchange.error = error
            raise

    def _handled(self, pending: _Pending) -> WireMessage | Wait | None:
        """The answer; None if the connection is closed instead. Raises ``KwireError``."""
        ask, plan = pending.ask, pending.plan
        accepted = ask.cluster.accepted.get(ask.key, NO_VERSIONS)
        ask.forced, ask.topic, ask.partition = plan.code, plan.topic, plan.partition
        if ask.version not in accepted and (ask.key != ApiKey.API_VERSIONS or not accepted):
            if ask.version not in ask.cluster.announced.get(ask.key, NO_VERSIONS):
                name = schema.api_keys()[ask.key]
                text = f"{name} v{ask.version}: {ask.cluster.release} accepts {accepted or 'no version'}"
                raise UnsupportedVersionError(text)
            ask.forced, ask.topic, ask.partition = ErrorCode.UNSUPPORTED_VERSION, None, None
        if plan.close and not plan.handled:
            self._end()
            return None
        if plan.drop and not plan.handled:
            return _bare(ask.key)
        self._core.changed = True
        handler = HANDLERS.get(ask.key)
        if handler is not None:
            return handler(ask)
        return refuse(ask, ask.forced or ErrorCode.UNSUPPORTED_VERSION)

    def _answer(self, pending: _Pending, answer: WireMessage) -> None:
        pending.wait = None
        pending.exchange.response = answer if pending.answered else None
        if not pending.answered:
            if _failed(answer):
                self._end()
            self._pending = None
            return
        plan = pending.plan
        delay = plan.delay + self._throttled(pending, answer)
        pending.data = self._connection.send(answer)
        if plan.raw is not None:
            pending.data = plan.raw
        if plan.damage is not None:
            faults, count = self._core.faults, len(self._core.faults.cases)
            pending.data = faults.damaged(plan.damage, pending.data, pending.ask.key, pending.ask.version)
            pending.exchange.damage = faults.cases[-1] if len(faults.cases) > count else None
        pending.due = self._core.cluster.clock() + delay
        if not delay:
            self._send(pending)

    def _throttled(self, pending: _Pending, answer: Any) -> float:
        """Say in the answer for how long the client is throttled. Gives the seconds to wait before it is sent."""
        ask = pending.ask
        seconds = ask.cluster.quotas.charge(ask.key, ask.client_id, ask.body, answer, ask.now)
        seconds = max(seconds, pending.plan.throttle)
        if not seconds or not hasattr(answer, "throttle_time_ms"):
            return 0.0
        answer.throttle_time_ms = int(seconds * 1000)
        if not waits_by_itself(ask.key, ask.version):
            return seconds
        pending.mute = seconds
        return 0.0

    def _send(self, pending: _Pending) -> None:
        self._pending = None
        self._muted = self._core.cluster.clock() + pending.mute
        if pending.plan.close:
            self._end()
        elif not pending.plan.drop:
            wall = self._core.cluster.wall()
            pending.exchange.answered = wall
            self._core.recording.data(self._connected, True, pending.data, wall)
            self._write(pending.data)
            refused = pending.ask.key in _LOGIN and self._connection.state is State.FAILED
            if pending.plan.damage == "cut_off" or refused:
                self._end()

    def poll(self, now: float) -> None:
        """Answer the request that waits, if there is an answer now."""
        pending = self._pending
        if self.closed:
            return
        if pending is None:
            self.go_on()
            return
        try:
            if pending.wait is None:
                if now >= pending.due:
                    self._send(pending)
            else:
                answer = pending.wait.poll(now)
                if answer is not None:
                    self._answer(pending, answer)
        except KwireError as error:
            pending.exchange.error = error
            self._fail(error)
        self.go_on()

    # -- the end

    def _fail(self, error: KwireError) -> None:
        self._core.recording.errors.append(error)
        self._end()

    def _left(self) -> None:
        """The client has closed the connection."""
        if self._last is not None:
            self._last.left = True
        self._end()

    def _end(self) -> None:
        if not self.closed:
            self.closed = True
            self._pending = None
            self._inbox.clear()
            self._core.conversations.discard(self)
            self._core.recording.closed(self._connected, self._core.cluster.wall())
            self._close()


class Core:
    """All connections of a cluster, what tests have scripted, and what was recorded."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.faults: Faults = Faults(cluster.seed)
        self.recording: Recording = Recording(cluster.settings.max_recorded)
        self.conversations: set[Conversation] = set()
        self.connections = 0
        """Connections that there were."""
        self.changed: bool = False
        """Whether something happened that others may wait for."""

    def connect(
        self, node: Node, peer: tuple[str, int], write: Callable[[bytes], None], close: Callable[[], None]
    ) -> Conversation | None:
        """A client connects. None: there are too many connections."""
        if len(self.conversations) >= self.cluster.settings.max_connections:
            return None
        made = Conversation(self, node, peer, write, close)
        self.conversations.add(made)
        return made

    def settle(self) -> None:
        """Let everything happen that can happen now."""
        self.changed = True
        while self.changed:
            self.changed = False
            now = self.cluster.clock()
            self.cluster.advance(now)
            for one in list(self.conversations):
                one.poll(now)

    def due(self) -> float:
        """When ``settle`` has something to do by itself; infinity for never."""
        mine = min((one.due() for one in self.conversations), default=NEVER)
        return min(mine, self.cluster.due())


def _bare(key: int) -> WireMessage:
    """A response in which all is at its default."""
    message = schema.response(key)
    assert message is not None
    return registry.message_class(message)()


def _failed(answer: Any) -> bool:
    """Whether a Produce response has an error."""
    return any(part.error_code for topic in answer.responses for part in topic.partition_responses)
