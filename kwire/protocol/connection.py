"""One connection between a client and a broker, as a state machine without sockets and clocks, for either role.

    connection = Connection("client", client_id="me")
    write(connection.send(messages.ApiVersionsRequest(client_software_name="me", client_software_version="1")))
    for event in connection.receive(read()):      # ResponseReceived, Negotiated: from here on versions are chosen
        ...
    write(connection.send(messages.MetadataRequest(topics=None)))

``send`` gives the bytes to write, ``receive`` takes bytes in any pieces and gives events. A client sends requests and
gets a ``ResponseReceived`` for each. A broker gets ``RequestReceived`` and sends the responses in the same order. SASL
tokens are sent by ``send_token`` and come as ``Token``, whether they travel raw (SaslHandshake v0, and 0.9) or in
SaslAuthenticate.

States, and what may be sent in them (``may_send`` says it of a connection):

    START           only with ``sasl=True``: ApiVersions and SaslHandshake
    HANDSHAKE       SaslHandshake is under way: nothing
    AUTHENTICATING  the client's next token; of the broker nothing
    CHALLENGED      a token is under way: nothing, until the broker has answered it
    OPEN            everything; of SaslAuthenticate a broker's refusal only
    FAILED          authentication was refused: nothing, the broker closes the connection
    CLOSED          nothing: the other side has closed it

Rules kept here:

- A broker answers in the order of the requests. A response that answers nothing, or something else, is an error; so is
  every step that the state does not allow. An error ends the connection: where the next frame belongs is not known.
- What was received before an error comes first; the error is raised when the events come to it.
- A Produce request with acks=0 has no response: nothing waits for one, and none can be sent.
- A version is chosen once ApiVersions was answered; before, whoever sends says it, or gives ``versions``. ApiVersions
  itself is sent in its newest version, and again in an older one after error 35 (KIP-511).
- An ApiVersions response with error 35 is v0, and ``RequestReceived.body`` is None for a version that is not
  known here.
- A broker without SASL, or one whose clients authenticate once, refuses SaslHandshake with error 34 and goes on. So it
  does with SaslAuthenticate without a handshake. Any other refusal ends the connection.
- It is known how many tokens PLAIN, OAUTHBEARER (one) and SCRAM (two) take. For other mechanisms the client says when
  it is through (``authenticated``). A broker always does (``send_token(data, done=True)``). The last raw token of
  GSSAPI has no answer: there the broker says ``authenticated`` too.

Sources: Kafka protocol guide, "Network" and "SASL Authentication Sequence"; KIP-35, KIP-43, KIP-152, KIP-219, KIP-368.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from kwire import schema, versions
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import DecodeError, KwireError, ProtocolError, UnsupportedVersionError
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.headers import (
    Response,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from kwire.protocol.sasl import refusal
from kwire.protocol.splitter import DEFAULT_LIMIT, FrameSplitter
from kwire.schema.keys import ApiKey
from kwire.schema.model import NO_VERSIONS

__all__ = [
    "Authenticated",
    "Closed",
    "Connection",
    "Event",
    "Negotiated",
    "RequestReceived",
    "ResponseReceived",
    "State",
    "Token",
    "waits_by_itself",
]

Role = Literal["client", "broker"]

_UNSUPPORTED_VERSION: Final = 35
_GSSAPI: Final = 0x60
"""First byte of a GSSAPI token (RFC 2743, section 3.1), which no request begins with."""
_TOKENS: Final = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}
"""How many tokens a client sends."""
_BEFORE_WAITING: Final = "1.1"
"""The last release whose versions leave it to the broker to delay a throttled client (KIP-219)."""


class State(Enum):
    """The state of a connection; the top of the module says what may be sent in it."""

    START = "start"
    HANDSHAKE = "handshake"
    AUTHENTICATING = "authenticating"
    CHALLENGED = "challenged"
    OPEN = "open"
    FAILED = "failed"
    CLOSED = "closed"


class Step(Enum):
    """What takes a connection from one state to another, on either side of it."""

    HANDSHAKE = "SaslHandshake"
    ACCEPTED = "mechanism accepted"
    REFUSED = "refused"
    TOKEN = "the client's token"
    RAW_TOKEN = "raw GSSAPI token"
    ANSWERED = "the broker's token"
    DONE = "authenticated"
    NOT_HERE = "refused with error 34"
    LAST_RAW_TOKEN = "last raw token, no answer"
    END = "the other side closes"


TRANSITIONS: Final[Mapping[State, Mapping[Step, State]]] = {
    State.START: {
        Step.HANDSHAKE: State.HANDSHAKE,
        Step.RAW_TOKEN: State.CHALLENGED,
        Step.END: State.CLOSED,
    },
    State.HANDSHAKE: {
        Step.ACCEPTED: State.AUTHENTICATING,
        Step.REFUSED: State.FAILED,
        Step.NOT_HERE: State.OPEN,
        Step.END: State.CLOSED,
    },
    State.AUTHENTICATING: {
        Step.TOKEN: State.CHALLENGED,
        Step.DONE: State.OPEN,
        Step.END: State.CLOSED,
    },
    State.CHALLENGED: {
        Step.ANSWERED: State.AUTHENTICATING,
        Step.REFUSED: State.FAILED,
        Step.LAST_RAW_TOKEN: State.OPEN,
        Step.END: State.CLOSED,
    },
    State.OPEN: {Step.HANDSHAKE: State.HANDSHAKE, Step.END: State.CLOSED},
    State.FAILED: {Step.END: State.CLOSED},
    State.CLOSED: {},
}
"""The state after each step that a state allows. ``docs/pictures/states.svg`` is drawn from it."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """To a broker: a request. ``body`` is None for an ApiVersions version that is not known."""

    body: Any
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    answered: bool
    """Whether it gets a response: not with acks=0."""


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """To a client: the response to ``request``, in ``api_version`` (0 after the ApiVersions fallback)."""

    body: Any
    request: Any
    api_key: int
    api_version: int
    correlation_id: int
    throttle_ms: int
    """For how long the broker throttles this client; 0 where the response does not say."""
    wait_ms: int
    """For how long to send nothing: ``throttle_ms``, or 0 where the broker has waited already (before KIP-219)."""


@dataclass(frozen=True, slots=True)
class Negotiated:
    """To a client: the broker has said its versions. ``versions`` is API key -> the one that is used."""

    versions: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Token:
    """A SASL token of the other side; ``message`` is the SaslAuthenticate body it came in, None for a raw one."""

    data: bytes
    message: Any = None

    def __repr__(self) -> str:
        return f"Token(data={{'redacted': {len(self.data)}}})"  # it may be a password


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The exchange of tokens is through; ``mechanism`` is None where a raw token opened the connection."""

    mechanism: str | None


@dataclass(frozen=True, slots=True)
class Closed:
    """The other side has closed the connection; ``unanswered`` requests have no response."""

    unanswered: int


Event = RequestReceived | ResponseReceived | Negotiated | Token | Authenticated | Closed
"""Type: what ``ClientConnection`` and ``BrokerConnection`` return of received bytes."""


@dataclass(slots=True)
class _Waiting:
    """A request without a response yet; ``api_key`` is None for a raw token."""

    api_key: int | None
    api_version: int
    correlation_id: int
    body: Any


class Connection:
    """A connection of one client with one broker, seen by ``role``.

    - ``client_id``: what a client says of itself in each request.
    - ``versions``: API key -> version, for a client that knows them; else ApiVersions is asked.
    - ``pin``: a release (``"0.10.1"``): nothing newer is used than it has.
    - ``sasl``: nothing but ApiVersions goes before authentication. A client that begins with a raw GSSAPI token (0.9)
      sends it.
    - ``limit``: bytes of the largest frame.

    Not for use by several threads. Raises ``ValueError`` for a role or a limit that is none, and
    ``UnsupportedVersionError`` for a release that is not known.
    """

    def __init__(
        self,
        role: Role,
        *,
        client_id: str | None = None,
        versions: Mapping[int, int] | None = None,
        pin: str | None = None,
        sasl: bool = False,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        if role not in ("client", "broker"):
            raise ValueError(f"role {role!r}: a connection is that of a client or of a broker")
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit {limit!r}: the largest frame has a number of bytes")
        self.role = role
        self.state = State.START if sasl else State.OPEN
        self.versions: dict[int, int] | None = None if versions is None else dict(versions)
        """API key -> version; None while it is not known."""
        self.mechanism: str | None = None
        self._client_id = client_id
        self._pin = pin
        self._sasl = sasl
        self._splitter = FrameSplitter(limit)
        self._waiting: deque[_Waiting] = deque()
        self._correlation_id = 0
        self._ask_with = _newest(ApiKey.API_VERSIONS, pin)
        self._raw = False
        self._tokens = 0
        self._was_authenticated = False
        self._was_open = False
        """Before the handshake that is under way."""
        self._broken: KwireError | None = None
        self._ended = False

    # -- questions

    @property
    def in_flight(self) -> int:
        """Requests that wait for a response: the client's, or those a broker still has to answer."""
        return len(self._waiting)

    def may_send(self) -> frozenset[int] | None:
        """API keys that may be sent now: of requests for a client, of the next response for a broker.

        None: all of them.
        """
        if self._broken is not None or self.state in (State.FAILED, State.CLOSED):
            return frozenset()
        if self.role == "broker":
            first = self._waiting[0].api_key if self._waiting else None
            return frozenset() if first is None else frozenset({first})
        if self.state is State.START:
            return frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE})
        if self.state is State.AUTHENTICATING:
            return frozenset() if self._raw else frozenset({ApiKey.SASL_AUTHENTICATE})
        return None if self.state is State.OPEN else frozenset()

    # -- sending

    def send(self, message: object, *, version: int | None = None, correlation_id: int | None = None) -> bytes:
        """The bytes of a request (client), or of the response to the oldest request that has none (broker).

        ``version`` and ``correlation_id`` are a client's, where it does not leave them to the connection. Raises
        ``ProtocolError`` where the state does not allow it, ``EncodeError`` for what cannot be written; then nothing
        has happened.
        """
        kind = "request" if self.role == "client" else "response"
        if not isinstance(message, WireMessage) or message.SCHEMA.kind != kind or message.SCHEMA.api_key is None:
            raise ProtocolError(f"a {self.role} sends {kind}s, not {type(message).__qualname__}")
        key, name = message.SCHEMA.api_key, message.SCHEMA.name
        if self.role == "broker":
            if version is not None or correlation_id is not None:
                raise ProtocolError("a response has the version and the correlation id of its request")
            return self._reply(message, key, name)
        self._check(key, name)
        if version is None:
            version = self._version(key, name)
        if key == ApiKey.SASL_HANDSHAKE and version == 0 and (self._waiting or self._was_authenticated):
            why = "while requests wait for their responses" if self._waiting else "a second time: v1 is for that"
            raise ProtocolError(f"{name} v0 cannot be sent {why}")
        number = self._correlation_id if correlation_id is None else correlation_id
        frame = encode_request(message, api_version=version, correlation_id=number, client_id=self._client_id)
        self._correlation_id = (number + 1) & 0x7FFFFFFF
        if not (key == ApiKey.PRODUCE and getattr(message, "acks", None) == 0):
            self._waiting.append(_Waiting(key, version, number, message))
        if key == ApiKey.SASL_HANDSHAKE:
            self._handshake()
        elif key == ApiKey.SASL_AUTHENTICATE:
            self._tokens += 1
            self._take(Step.TOKEN)
        return _sized(frame)

    def send_token(
        self, data: bytes | bytearray | memoryview, *, done: bool = False, version: int | None = None
    ) -> bytes:
        """The bytes of a SASL token: raw, or in SaslAuthenticate, whichever the handshake was about.

        A broker says with ``done`` that the client is authenticated. ``version`` is that of SaslAuthenticate. Raises
        ``ProtocolError`` where no token may be sent.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ProtocolError(f"a SASL token is bytes, not {type(data).__qualname__}")
        data = bytes(data)
        if self.role == "broker":
            return self._answer_token(data, done)
        if done:
            raise ProtocolError("authentication is done when the broker has answered: see authenticated()")
        opening = self.state is State.START and data[:1] == bytes([_GSSAPI]) and not self._waiting
        if not (opening or self.state is State.AUTHENTICATING) or self._broken is not None:
            raise ProtocolError(f"a SASL token cannot be sent {self._where()}")
        if not (opening or self._raw):
            kind: Any = registry.message_class(schema.message("SaslAuthenticateRequest"))
            return self.send(kind(auth_bytes=data), version=version)
        if opening:
            self._raw, self._tokens = True, 0
        self._waiting.append(_Waiting(None, 0, 0, None))
        self._tokens += 1
        self._take(Step.RAW_TOKEN if opening else Step.TOKEN)
        return _sized(data)

    def authenticated(self) -> None:
        """The exchange is through, where its length is not known from its mechanism (GSSAPI).

        For the client: when it has sent its last token, or has the broker's. For a broker: when it has taken the last.
        Raises ``ProtocolError`` where a token must be answered first. All of them do, except the last raw one of
        GSSAPI: Kafka's brokers send nothing for it.
        """
        if self._unanswered():
            self._waiting.popleft()
            self._open(Step.LAST_RAW_TOKEN)
        elif self.state is State.AUTHENTICATING and self._tokens:
            self._open()
        else:
            raise ProtocolError(f"authentication cannot be done {self._where()}")

    def _unanswered(self) -> bool:
        """Whether a raw token is under way that may be the last one."""
        sent = self.state is State.CHALLENGED and self._raw and self._broken is None
        return sent and self._tokens > (self.role == "client") and self.mechanism not in _TOKENS

    # -- receiving

    def receive(self, data: bytes | bytearray | memoryview) -> Iterator[Event]:
        """Take the next bytes, and yield what came; no bytes say that the other side has closed the connection.

        The bytes are taken when this is called. What happens to the connection happens as the events are taken. So a
        broker can answer one request before the next. It raises ``ProtocolError`` for a step that is not allowed, and
        ``DecodeError`` for bytes that are not what they should be. An error is raised when the events come to it. Every
        later call raises it again. ``TypeError`` for what is no bytes; nothing has happened then.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            # An empty text is no end of a connection.
            raise TypeError(f"a connection receives bytes, not {type(data).__qualname__}")
        if self._broken is None and self.state is not State.CLOSED:
            if len(data):
                self._splitter.feed(data)
            else:
                self._ended = True
        elif self.state is State.CLOSED and len(data) and self._broken is None:
            self._broken = ProtocolError("bytes after the end of the connection")
        return self._events()

    def _events(self) -> Iterator[Event]:
        if self._broken is not None:
            raise self._broken
        try:
            for frame in self._splitter.feed(b""):
                yield from self._asked(frame) if self.role == "broker" else self._answered(frame)
            if self._ended and self.state is not State.CLOSED:
                self._splitter.close()
                self._take(Step.END)
                yield Closed(len(self._waiting))
        except KwireError as error:
            self._broken = error
            raise

    # -- a client

    def _check(self, key: int, name: str) -> None:
        allowed = self.may_send()
        if allowed is not None and key not in allowed:
            raise ProtocolError(f"{name} cannot be sent {self._where()}")
        if key == ApiKey.SASL_AUTHENTICATE and self.state is not State.AUTHENTICATING:
            raise ProtocolError(f"{name} cannot be sent before SaslHandshake")

    def _where(self) -> str:
        if self._broken is not None:
            return "after an error"
        return {
            State.START: "before authentication",
            State.HANDSHAKE: "while SaslHandshake is under way",
            State.AUTHENTICATING: "during authentication",
            State.CHALLENGED: "while a SASL token is under way",
            State.OPEN: "here: the connection is not in an authentication",
            State.FAILED: "after a failed authentication",
            State.CLOSED: "on a closed connection",
        }[self.state]

    def _version(self, key: int, name: str) -> int:
        if key == ApiKey.API_VERSIONS:
            return self._ask_with
        if self.versions is None:
            if key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
                return 0  # of a broker that was not asked, nothing newer can be expected
            raise ProtocolError(f"{name}: the versions of the broker are not known; ask ApiVersions, or say version=")
        if key not in self.versions:
            raise UnsupportedVersionError(f"{name}: client and broker have no version in common")
        return self.versions[key]

    def _answered(self, frame: bytes) -> Iterator[Event]:
        if not self._waiting:
            raise ProtocolError(f"a response of {len(frame)} bytes to no request")
        waiting = self._waiting[0]
        if waiting.api_key is None:
            self._waiting.popleft()
            self._take(Step.ANSWERED)
            yield Token(frame)
            yield from self._token_taken(frame)
            return
        made = _read(frame, waiting.api_key, waiting.api_version)
        number = made.header.correlation_id
        # A broker of 0.8.2 may answer FindCoordinator v0 with correlation id 0.
        if number != waiting.correlation_id and (number or waiting.api_key != ApiKey.FIND_COORDINATOR):
            raise ProtocolError(f"response {number}, the oldest request is {waiting.correlation_id}")
        self._waiting.popleft()
        body, key = made.body, waiting.api_key
        throttle = max(0, getattr(body, "throttle_time_ms", 0))
        wait = throttle if waits_by_itself(key, made.api_version) else 0
        answer = ResponseReceived(body, waiting.body, key, made.api_version, number, throttle, wait)
        if key == ApiKey.SASL_HANDSHAKE:
            self._handshake_answered(waiting.body.mechanism, waiting.api_version, body.error_code)
            yield answer
        elif key == ApiKey.SASL_AUTHENTICATE:
            self._take(Step.REFUSED if body.error_code else Step.ANSWERED)
            yield answer
            if not body.error_code:
                yield Token(body.auth_bytes, body)
                yield from self._token_taken(body.auth_bytes)
        elif key == ApiKey.API_VERSIONS:
            again = versions.ask_again(body, waiting.api_version)
            if again is not None:
                self._ask_with = again
            elif not body.error_code:
                self.versions = versions.choose(body, pin=self._pin)
            yield answer
            if again is None and not body.error_code:
                assert self.versions is not None
                yield Negotiated(self.versions)
        else:
            yield answer

    def _handshake(self) -> None:
        self._was_open = self.state is State.OPEN
        self._take(Step.HANDSHAKE)

    def _handshake_answered(self, mechanism: str, version: int, error_code: int) -> None:
        if error_code == ErrorCode.ILLEGAL_SASL_STATE and self._was_open:
            self._take(Step.NOT_HERE)
            return
        self.mechanism, self._raw, self._tokens = mechanism, version == 0, 0
        self._take(Step.REFUSED if error_code else Step.ACCEPTED)

    def _token_taken(self, data: bytes) -> Iterator[Event]:
        # Whoever took the token may have said so already.
        if self.state is State.AUTHENTICATING and self._is_last(data):
            self._open()
            yield Authenticated(self.mechanism)

    def _is_last(self, data: bytes) -> bool:
        """Whether the broker's token ends the exchange, as far as the mechanism tells."""
        if self.mechanism == "OAUTHBEARER" and data:
            return False  # an error, which the client acknowledges before it is refused (RFC 7628, section 3.2.3)
        return self._tokens == _TOKENS.get(self.mechanism or "")

    def _open(self, step: Step = Step.DONE) -> None:
        self._take(step)
        self._was_authenticated = True

    def _take(self, step: Step) -> None:
        self.state = TRANSITIONS[self.state][step]

    # -- a broker

    def _asked(self, frame: bytes) -> Iterator[Event]:
        opening = self.state is State.START and not self._waiting and frame[:1] == bytes([_GSSAPI])
        if opening or (self.state is State.AUTHENTICATING and self._raw):
            self._raw = True
            self._take(Step.RAW_TOKEN if opening else Step.TOKEN)
            self._waiting.append(_Waiting(None, 0, 0, None))
            yield Token(frame)
            return
        header, _ = decode_request_header(frame)
        key, version = header.request_api_key, header.request_api_version
        name = schema.api_keys().get(key, f"API key {key}")
        self._check_asked(key, version, name)
        body = None
        message = schema.request(key)
        if key != ApiKey.API_VERSIONS or (message is not None and version in message.versions):
            body = decode_request(frame).body
        answered = not (key == ApiKey.PRODUCE and body is not None and body.acks == 0)
        if answered:
            self._waiting.append(_Waiting(key, version, header.correlation_id, body))
        of_exchange = key == ApiKey.SASL_AUTHENTICATE and self.state is State.AUTHENTICATING
        if key == ApiKey.SASL_HANDSHAKE:
            self._handshake()
        elif of_exchange:
            self._take(Step.TOKEN)
        yield RequestReceived(body, key, version, header.correlation_id, getattr(header, "client_id", None), answered)
        if of_exchange:
            assert body is not None
            yield Token(body.auth_bytes, body)

    def _check_asked(self, key: int, version: int, name: str) -> None:
        if self.state in (State.HANDSHAKE, State.CHALLENGED):
            raise ProtocolError(f"the client sends {name} {self._where()}")
        if self.state is State.START and key not in (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE):
            raise ProtocolError(f"the client sends {name} before authentication")
        if self.state is State.AUTHENTICATING and key != ApiKey.SASL_AUTHENTICATE:
            raise ProtocolError(f"the client sends {name} during authentication")
        if self.state is State.FAILED:
            raise ProtocolError(f"the client sends {name} after a failed authentication")
        if key == ApiKey.SASL_HANDSHAKE and version == 0 and (self._waiting or self._was_authenticated):
            raise ProtocolError(f"the client sends {name} v0 on a connection in use")

    def _reply(self, message: Any, key: int, name: str) -> bytes:
        frame = self._respond(message, key, name)
        if key == ApiKey.SASL_AUTHENTICATE and self.state is State.AUTHENTICATING and self._is_last(message.auth_bytes):
            self._open()
        return frame

    def _respond(self, message: Any, key: int, name: str) -> bytes:
        if self._broken is not None or self.state is State.CLOSED:
            raise ProtocolError(f"{name} cannot be sent {self._where()}")
        if not self._waiting:
            raise ProtocolError(f"{name} answers nothing: every request has its response")
        waiting = self._waiting[0]
        if waiting.api_key != key:
            expected = "a SASL token" if waiting.api_key is None else schema.api_keys()[waiting.api_key]
            raise ProtocolError(f"{name} cannot be sent: {expected} is to be answered first")
        if key == ApiKey.SASL_AUTHENTICATE and self.state is not State.CHALLENGED and not message.error_code:
            raise ProtocolError(f"{name} answers a token without SaslHandshake: it has an error")
        version = waiting.api_version
        if key == ApiKey.API_VERSIONS and message.error_code == _UNSUPPORTED_VERSION:
            version = 0  # which every client can read (KIP-511)
        elif key == ApiKey.API_VERSIONS and waiting.body is None:
            raise ProtocolError(f"ApiVersions v{version} is not known: the answer has error {_UNSUPPORTED_VERSION}")
        frame = encode_response(message, api_version=version, correlation_id=waiting.correlation_id)
        self._waiting.popleft()
        if key == ApiKey.SASL_HANDSHAKE:
            self._handshake_answered(waiting.body.mechanism, version, message.error_code)
        elif key == ApiKey.SASL_AUTHENTICATE and self.state is State.CHALLENGED:
            self._take(Step.REFUSED if message.error_code else Step.ANSWERED)
            self._tokens += 1
        return _sized(frame)

    def _answer_token(self, data: bytes, done: bool) -> bytes:
        if self._broken is not None or self.state is not State.CHALLENGED or not self._waiting:
            raise ProtocolError(f"a SASL token cannot be sent {self._where()}")
        if self._waiting[0].api_key is None:
            self._waiting.popleft()
            self._tokens += 1
            self._take(Step.ANSWERED)
            made = _sized(data)
        else:
            kind: Any = registry.message_class(schema.message("SaslAuthenticateResponse"))
            made = self._respond(kind(auth_bytes=data), ApiKey.SASL_AUTHENTICATE, kind.SCHEMA.name)
        if done:
            self._open()
        return made


def _sized(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def _read(frame: bytes, key: int, version: int) -> Response[Any]:
    """A response. One that refuses SASL may be damaged after its error. Raises ``DecodeError``."""
    try:
        return decode_response(frame, api_key=key, api_version=version)
    except DecodeError:
        refused = refusal(frame, key, version) if key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE) else None
        if refused is None:
            raise
        return refused


def _newest(key: int, pin: str | None) -> int:
    message = schema.request(key)
    assert message is not None
    pinned = message.versions if pin is None else versions.accepted(pin).get(key, NO_VERSIONS)
    return min(message.versions.high, pinned.high) if pinned else 0


def waits_by_itself(key: int, version: int) -> bool:
    """Whether a throttled client is to wait by itself (KIP-219): versions that came with 2.0, and later.

    For older versions the broker sends the response when the time is over.
    """
    before = versions.accepted(_BEFORE_WAITING).get(key)
    return before is None or version > before.high
