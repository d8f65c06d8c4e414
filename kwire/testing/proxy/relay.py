"""One connection through the proxy, as a state machine without sockets.

Bytes of the client come by ``from_client``, those of the broker by ``from_broker``. ``to_client`` and ``to_broker`` are
called with what goes on. ``go_on`` is to be called when time has passed, at ``due`` at the latest.

Rules kept here:

- A frame that nothing is to be done with goes on as the bytes that came. A request is decoded where a rule asks for its
  topics, a response where it has addresses of nodes or a fault changes it.
- A fault acts on the response. So a request with an error has been carried out by the broker. ``close(handled=False)``
  and ``drop(handled=False)`` do not let it through.
- Bytes that are no Kafka end the connection, and are recorded as a ``KwireError``.
- Tokens of SASL without headers (after SaslHandshake v0) go through. After GSSAPI of that kind, all does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from kwire import schema
from kwire.errors import DecodeError, KwireError, ProtocolError
from kwire.protocol.connection import waits_by_itself
from kwire.protocol.headers import Response, decode_request, decode_request_header, decode_response, encode_response
from kwire.protocol.splitter import FrameSplitter
from kwire.schema.keys import ApiKey
from kwire.testing.broker.asking import NEVER
from kwire.testing.broker.faults import Plan
from kwire.testing.broker.places import ANY, places
from kwire.testing.broker.recording import Connected, Exchange
from kwire.testing.proxy.answers import add_errors, has_addresses, learned, readdress, set_errors

if TYPE_CHECKING:
    from kwire.testing.proxy.server import Shared

__all__ = ["Relay"]

_TOKENS: Final = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}
"""How many raw tokens a client sends."""
_IDS_SINCE: Final = 13
"""The version of Fetch from which topics are named by id."""
_BLIND: Final = 1 << 30


@dataclass(eq=False, slots=True)
class _Request:
    """A request of a client, as rules see it."""

    relay: Relay
    key: int
    version: int
    client_id: str
    correlation_id: int
    frame: bytes
    plan: Plan = field(default_factory=Plan)
    exchange: Exchange | None = None
    _body: Any = None

    @property
    def node_id(self) -> int:
        return self.relay.node_id

    @property
    def body(self) -> Any:
        """The message. Raises ``DecodeError``."""
        if self._body is None:
            self._body = decode_request(self.frame).body
        return self._body

    def places(self) -> Iterable[tuple[str, int]]:
        """The topics and partitions that it names, or that the session of Fetch has."""
        try:
            found = list(places(self.body, self.relay.name_of))
        except DecodeError:
            return []
        if self.key == ApiKey.FETCH and self.body.session_epoch > 0:
            found += self.relay.fetched
        return found


@dataclass(slots=True)
class _Late:
    """Bytes for the client that wait for their time."""

    due: float
    data: bytes
    request: _Request
    close: bool = False


class Relay:
    """A connection of a client, and the one to the broker that belongs to it."""

    def __init__(
        self,
        shared: Shared,
        node_id: int,
        connected: Connected,
        to_client: Callable[[bytes], None],
        to_broker: Callable[[bytes], None],
        close: Callable[[], None],
    ) -> None:
        self.node_id = node_id
        self.fetched: list[tuple[str, int]] = []
        """What the session of Fetch covers."""
        self.closed: bool = False
        self._shared = shared
        self._connected = connected
        self._to_client, self._to_broker, self._close = to_client, to_broker, close
        self._asked, self._answered = FrameSplitter(shared.limit), FrameSplitter(shared.limit)
        self._waiting: deque[_Request | None] = deque()
        """Requests without a response yet; None for a raw token."""
        self._late: deque[_Late] = deque()
        self._raw = 0
        """Raw tokens that the client will send."""
        self._mechanism = ""
        self._heard = False
        """Whether the broker has said anything."""
        shared.recording.opened(connected, shared.wall())

    # -- the client

    def from_client(self, data: bytes) -> None:
        """Take bytes of the client; none say that it has closed the connection."""
        if self.closed:
            return
        if not data:
            self.end()
            return
        self._shared.recording.data(self._connected, False, data, self._shared.wall())
        for frame in self._frames(self._asked, data):
            if self.closed:
                return
            if self._raw:
                self._raw -= self._raw < _BLIND
                self._waiting.append(None)
                self._to_broker(_sized(frame))
            else:
                self._request(frame)

    def _request(self, frame: bytes) -> None:
        try:
            header, _ = decode_request_header(frame)
        except KwireError as error:
            self._fail(error)
            return
        key, version = header.request_api_key, header.request_api_version
        request = _Request(self, key, version, getattr(header, "client_id", None) or "", header.correlation_id, frame)
        try:
            silent = key == ApiKey.PRODUCE and request.body.acks == 0
            if key == ApiKey.SASL_HANDSHAKE:
                self._mechanism = request.body.mechanism
            request.plan = self._shared.faults.plan(request)
            if key == ApiKey.FETCH and self._shared.faults.rules:
                self._follow(request)
        except KwireError:
            # A version that kwire does not know: the broker says what it thinks of it.
            silent = False
        request.exchange = self._recorded(request)
        plan = request.plan
        if plan.close and not plan.handled:
            self.end()
        elif not plan.drop or plan.handled:
            if not silent:
                self._waiting.append(request)
            self._to_broker(_sized(frame))

    def _recorded(self, request: _Request) -> Exchange:
        shared = self._shared
        made = Exchange(
            shared.recording.count + 1,
            self._connected.number,
            self.node_id,
            request.client_id,
            request.key,
            request.version,
            request.correlation_id,
            None,
            shared.wall(),
            fault=request.plan.said,
        )
        shared.recording.add(made)
        return made

    def _follow(self, request: _Request) -> None:
        """Keep what the session of Fetch covers."""
        body = request.body
        named = list(places(body, self.name_of))
        if body.session_epoch <= 0:
            self.fetched = named
            return
        gone = {
            (one.topic or self.name_of(one.topic_id), number)
            for one in body.forgotten_topics_data
            for number in one.partitions
        }
        self.fetched = [one for one in dict.fromkeys([*self.fetched, *named]) if one not in gone and one[1] != ANY]

    def name_of(self, number: Any) -> str:
        """The name of a topic id, as far as it is known."""
        return self._shared.names.get(number, "") if isinstance(number, UUID) else ""

    # -- the broker

    def from_broker(self, data: bytes) -> None:
        """Take bytes of the broker; none say that it has closed the connection."""
        if self.closed:
            return
        if not data:
            self._gone()
            return
        self._heard = True
        for frame in self._frames(self._answered, data):
            if not self._waiting:
                self._fail(ProtocolError(f"the broker sends {len(frame)} bytes that answer nothing"))
            if self.closed:
                return
            request = self._waiting.popleft()
            if request is None:
                self._send(_sized(frame))
            else:
                self._response(request, frame)

    def _gone(self) -> None:
        """The broker has closed the connection."""
        first = self._waiting[0] if self._waiting else None
        if first is not None and not self._heard:
            name = schema.api_keys().get(first.key, f"API key {first.key}")
            text = f"the cluster closed the connection in place of its first answer, to {name} v{first.version}"
            self._shared.recording.errors.append(ProtocolError(f"{text}: it may want TLS, or SASL"))
        self.end()

    def _response(self, request: _Request, frame: bytes) -> None:
        plan, shared = request.plan, self._shared
        delay = plan.delay
        try:
            changed, waits = self._changed(request, frame)
            delay += waits
        except KwireError as error:
            shared.recording.errors.append(error)
            changed = frame
        data = _sized(changed)
        if plan.raw is not None:
            data = plan.raw
        if plan.damage is not None:
            data = shared.faults.damaged(plan.damage, data, request.key, request.version)
        if plan.drop:
            return
        closes = plan.close or plan.damage == "cut_off"
        late = _Late(shared.clock() + delay, b"" if plan.close else data, request, closes)
        self._late.append(late)
        self.go_on()

    def _changed(self, request: _Request, frame: bytes) -> tuple[bytes, float]:
        """The response as the client gets it, and for how long it waits. Raises ``KwireError``."""
        plan, key, version = request.plan, request.key, request.version
        if key == ApiKey.SASL_HANDSHAKE:
            made = decode_response(frame, api_key=key, api_version=version)
            if version == 0 and not made.body.error_code:
                self._raw = _TOKENS.get(self._mechanism, _BLIND)
        if not (plan.code or plan.throttle or (has_addresses(key, version) and schema.request(key) is not None)):
            return frame, 0.0
        made = decode_response(frame, api_key=key, api_version=version)
        body, shared = made.body, self._shared
        changed = readdress(body, shared.address)
        if key == ApiKey.METADATA:
            shared.learn(learned(body))
        if plan.code:
            set_errors(body, made.api_version, plan, self.name_of)
            if key == ApiKey.FETCH:
                # An incremental response lists only what has news (KIP-227), and an error is news.
                add_errors(body, plan, self.fetched, self._shared.ids() if version >= _IDS_SINCE else None)
            changed = True
        waits = 0.0
        if plan.throttle and hasattr(body, "throttle_time_ms"):
            body.throttle_time_ms = int(plan.throttle * 1000)
            changed = True
            waits = 0.0 if waits_by_itself(key, version) else plan.throttle
        if not changed:
            return frame, waits
        # The version is that of the response: ApiVersions may have fallen back to v0.
        return encode_response(Response(made.header, body, made.api_version)), waits

    # -- time

    def due(self) -> float:
        """When ``go_on`` has something to do."""
        return self._late[0].due if self._late else NEVER

    def go_on(self) -> None:
        """Send what is due, in order."""
        while self._late and not self.closed and self._late[0].due <= self._shared.clock():
            late = self._late.popleft()
            if late.data:
                if late.request.exchange is not None:
                    late.request.exchange.answered = self._shared.wall()
                self._send(late.data)
            if late.close:
                self.end()

    # -- the end

    def _frames(self, splitter: FrameSplitter, data: bytes) -> Iterator[bytes]:
        try:
            yield from splitter.feed(data)
        except KwireError as error:
            self._fail(error)

    def _send(self, data: bytes) -> None:
        self._shared.recording.data(self._connected, True, data, self._shared.wall())
        self._to_client(data)

    def _fail(self, error: KwireError) -> None:
        self._shared.recording.errors.append(error)
        self.end()

    def end(self) -> None:
        """Close both connections."""
        if not self.closed:
            self.closed = True
            self._shared.recording.closed(self._connected, self._shared.wall())
            self._close()


def _sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame
