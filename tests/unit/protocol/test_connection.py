"""Every transition of a connection, for both roles, and every step that is not one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from kwire import messages
from kwire.errors import DecodeError, EncodeError, LimitError, ProtocolError, UnsupportedVersionError
from kwire.protocol.connection import (
    TRANSITIONS,
    Authenticated,
    Closed,
    Connection,
    Negotiated,
    RequestReceived,
    ResponseReceived,
    State,
    Step,
    Token,
)

HEARTBEAT = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
METADATA = messages.MetadataRequest(topics=None)
VERSIONS = {0: 9, 3: 9, 12: 4, 17: 1, 36: 2}
KIND = messages.ApiVersionsResponse


def offered(rows: dict[int, tuple[int, int]], error: int = 0) -> messages.ApiVersionsResponse:
    listed = [KIND.ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows.items()]
    return KIND(error_code=error, api_keys=listed)


def pair(**options: Any) -> tuple[Connection, Connection]:
    return Connection("client", client_id="c", **options), Connection("broker", sasl=bool(options.get("sasl")))


def ask(client: Connection, broker: Connection, request: Any, response: Any, **options: Any) -> list[Any]:
    """Sends a request over, has it answered, and gives what the client makes of the answer."""
    list(broker.receive(client.send(request, **options)))
    return list(client.receive(broker.send(response)))


# --- requests and responses


def test_a_request_and_its_response() -> None:
    client, broker = pair(versions=VERSIONS)
    (asked,) = broker.receive(client.send(HEARTBEAT))
    assert asked == RequestReceived(HEARTBEAT, 12, 4, 0, "c", True)
    assert client.in_flight == broker.in_flight == 1
    assert broker.may_send() == {12}
    response = messages.HeartbeatResponse(throttle_time_ms=70, error_code=27)
    (answer,) = client.receive(broker.send(response))
    assert answer == ResponseReceived(response, HEARTBEAT, 12, 4, 0, 70, 70)
    assert client.in_flight == broker.in_flight == 0
    assert client.may_send() is None
    assert broker.may_send() == frozenset()


def test_responses_go_in_the_order_of_the_requests() -> None:
    client, broker = pair(versions=VERSIONS)
    data = client.send(HEARTBEAT) + client.send(METADATA)
    assert [one.api_key for one in broker.receive(data) if isinstance(one, RequestReceived)] == [12, 3]
    with pytest.raises(ProtocolError, match="MetadataResponse cannot be sent: Heartbeat is to be answered first"):
        broker.send(messages.MetadataResponse())
    sent = broker.send(messages.HeartbeatResponse()) + broker.send(messages.MetadataResponse())
    assert [one.correlation_id for one in client.receive(sent) if isinstance(one, ResponseReceived)] == [0, 1]


def test_a_broker_may_answer_one_request_before_it_takes_the_next() -> None:
    client, broker = pair(versions=VERSIONS)
    answers = b""
    for asked in broker.receive(client.send(HEARTBEAT) + client.send(HEARTBEAT)):
        assert isinstance(asked, RequestReceived)
        assert broker.in_flight == 1
        answers += broker.send(messages.HeartbeatResponse(error_code=asked.correlation_id))
    assert [one.body.error_code for one in client.receive(answers) if isinstance(one, ResponseReceived)] == [0, 1]


def test_correlation_ids_can_be_given_and_wrap_around() -> None:
    client, broker = pair(versions=VERSIONS)
    for number, after in ((2**31 - 1, 0), (-1, 0), (41, 42)):
        assert ask(client, broker, HEARTBEAT, messages.HeartbeatResponse(), correlation_id=number)
        (answer,) = ask(client, broker, HEARTBEAT, messages.HeartbeatResponse())
        assert answer.correlation_id == after


def test_produce_without_acks_has_no_response() -> None:
    client, broker = pair(versions=VERSIONS)
    (asked,) = broker.receive(client.send(messages.ProduceRequest(acks=0, timeout_ms=1, topic_data=[])))
    assert isinstance(asked, RequestReceived)
    assert not asked.answered
    assert client.in_flight == broker.in_flight == 0
    with pytest.raises(ProtocolError, match="ProduceResponse answers nothing"):
        broker.send(messages.ProduceResponse())
    (asked,) = broker.receive(client.send(messages.ProduceRequest(acks=1, timeout_ms=1, topic_data=[])))
    assert client.in_flight == broker.in_flight == 1


@pytest.mark.parametrize(("version", "wait"), [(0, 0), (1, 0), (2, 80), (4, 80)])
def test_who_waits_for_a_throttled_client(version: int, wait: int) -> None:
    client, broker = pair(versions={12: version})
    throttle = 80 if version else 0
    (answer,) = ask(client, broker, HEARTBEAT, messages.HeartbeatResponse(throttle_time_ms=throttle))
    assert (answer.throttle_ms, answer.wait_ms) == (throttle, wait)


def test_an_old_broker_may_answer_find_coordinator_with_number_0() -> None:
    client = Connection("client")
    client.send(messages.FindCoordinatorRequest(key="g"), version=0, correlation_id=9)
    broker = Connection("broker")
    list(broker.receive(Connection("client").send(messages.FindCoordinatorRequest(key="g"), version=0)))
    (answer,) = client.receive(broker.send(messages.FindCoordinatorResponse(host="h", port=1)))
    assert isinstance(answer, ResponseReceived)


def test_a_response_of_another_number_is_an_error() -> None:
    client, broker = pair(versions=VERSIONS)
    client.send(HEARTBEAT, correlation_id=5)
    list(broker.receive(Connection("client", versions=VERSIONS).send(HEARTBEAT, correlation_id=6)))
    with pytest.raises(ProtocolError, match="response 6, the oldest request is 5"):
        list(client.receive(broker.send(messages.HeartbeatResponse())))
    with pytest.raises(ProtocolError, match="response 6"):  # it stays one
        list(client.receive(b"\0"))
    with pytest.raises(ProtocolError, match="HeartbeatRequest cannot be sent after an error"):
        client.send(HEARTBEAT)
    assert client.may_send() == frozenset()


def test_a_response_to_nothing_is_an_error() -> None:
    client = Connection("client", versions=VERSIONS)
    with pytest.raises(ProtocolError, match="a response of 4 bytes to no request"):
        list(client.receive(b"\0\0\0\x04\0\0\0\0"))


def test_what_came_before_an_error_comes_before_it() -> None:
    client, broker = pair(versions=VERSIONS)
    list(broker.receive(client.send(HEARTBEAT)))
    events = client.receive(broker.send(messages.HeartbeatResponse()) + b"\xff\xff\xff\xff")
    assert isinstance(next(events), ResponseReceived)
    with pytest.raises(DecodeError, match="a size of -1"):
        next(events)


def test_bad_bytes_and_large_frames_are_errors() -> None:
    broker = Connection("broker", limit=100)
    with pytest.raises(LimitError, match="a size of 101"):
        list(broker.receive(b"\0\0\0\x65"))
    assert broker.may_send() == frozenset()
    with pytest.raises(LimitError, match="a size of 101"):
        list(broker.receive(b""))
    with pytest.raises(ProtocolError):
        broker.send(messages.HeartbeatResponse())
    broker = Connection("broker")
    with pytest.raises(UnsupportedVersionError, match="version 99"):
        list(broker.receive(b"\0\0\0\x0b\0\x0c\0\x63\0\0\0\0\0\0\0"))
    with pytest.raises(UnsupportedVersionError):
        list(broker.receive(b""))


@pytest.mark.parametrize(
    ("role", "message"),
    [("client", messages.HeartbeatResponse()), ("broker", HEARTBEAT), ("client", None), ("broker", b"bytes")],
)
def test_what_a_role_does_not_send(role: Any, message: Any) -> None:
    with pytest.raises(ProtocolError, match=f"a {role} sends re"):
        Connection(role).send(message)


def test_a_broker_takes_version_and_number_from_the_request() -> None:
    client, broker = pair(versions=VERSIONS)
    list(broker.receive(client.send(HEARTBEAT)))
    for options in ({"version": 1}, {"correlation_id": 1}):
        with pytest.raises(ProtocolError, match="has the version and the correlation id of its request"):
            broker.send(messages.HeartbeatResponse(), **options)


def test_what_cannot_be_written_has_not_been_sent() -> None:
    client, broker = pair(versions=VERSIONS)
    with pytest.raises(EncodeError):
        client.send(messages.HeartbeatRequest(group_id=None))  # type: ignore[arg-type]
    assert client.in_flight == 0
    list(broker.receive(client.send(HEARTBEAT)))
    with pytest.raises(EncodeError):
        broker.send(messages.HeartbeatResponse(error_code=1 << 20))
    assert broker.in_flight == 1
    assert list(client.receive(broker.send(messages.HeartbeatResponse())))


# --- versions


def test_versions_are_negotiated() -> None:
    client, broker = pair()
    with pytest.raises(ProtocolError, match="HeartbeatRequest: the versions of the broker are not known"):
        client.send(HEARTBEAT)
    said = offered({12: (0, 3), 18: (0, 3)})
    answer, negotiated = ask(client, broker, messages.ApiVersionsRequest(), said, version=3)
    assert isinstance(answer, ResponseReceived)
    assert negotiated == Negotiated({12: 3, 18: 3})
    (asked,) = broker.receive(client.send(HEARTBEAT))
    assert isinstance(asked, RequestReceived)
    assert asked.api_version == 3
    with pytest.raises(UnsupportedVersionError, match="MetadataRequest: client and broker have no version in common"):
        client.send(METADATA)


def test_a_pinned_client_uses_nothing_newer() -> None:
    client, broker = pair(pin="0.10.1")
    (asked,) = broker.receive(client.send(messages.ApiVersionsRequest()))
    assert isinstance(asked, RequestReceived)
    assert asked.api_version == 0
    *_, negotiated = client.receive(broker.send(offered({3: (0, 12), 12: (0, 4), 22: (0, 5)})))
    assert negotiated == Negotiated({3: 2, 12: 0})
    assert Connection("client", pin="0.9.0").send(messages.ApiVersionsRequest())[6:8] == b"\0\0"


@pytest.mark.parametrize(("rows", "again"), [({}, 0), ({18: (0, 3)}, 3)])
def test_api_versions_falls_back(rows: dict[int, tuple[int, int]], again: int) -> None:
    client, broker = pair()
    # What this broker does not know: the version, and so the body.
    data = bytearray(client.send(messages.ApiVersionsRequest(client_software_name="k", client_software_version="1")))
    data[6:8] = b"\0\x63"
    (asked,) = broker.receive(data)
    assert isinstance(asked, RequestReceived)
    assert (asked.body, asked.api_version, asked.answered) == (None, 99, True)
    with pytest.raises(ProtocolError, match="the answer has error 35"):
        broker.send(offered({}))
    (answer,) = client.receive(broker.send(offered(rows, error=35)))
    assert isinstance(answer, ResponseReceived)
    assert (answer.api_version, answer.body.error_code) == (0, 35)
    assert client.versions is None
    (asked,) = broker.receive(client.send(messages.ApiVersionsRequest()))
    assert isinstance(asked, RequestReceived)
    assert asked.api_version == again


def test_an_api_versions_error_of_another_kind_is_only_an_answer() -> None:
    client, broker = pair()
    (answer,) = ask(client, broker, messages.ApiVersionsRequest(), offered({12: (0, 4)}, error=42), version=0)
    assert isinstance(answer, ResponseReceived)
    assert client.versions is None


# --- SASL


def authenticate(client: Connection, broker: Connection, mechanism: str, version: int, rounds: int) -> None:
    request = messages.SaslHandshakeRequest(mechanism=mechanism)
    ask(client, broker, request, messages.SaslHandshakeResponse(mechanisms=[mechanism]), version=version)
    assert (client.state, broker.state) == (State.AUTHENTICATING, State.AUTHENTICATING)
    for turn in range(rounds):
        token, challenge = b"token %d" % turn, b"" if turn == rounds - 1 else b"challenge %d" % turn
        got = [one for one in broker.receive(client.send_token(token)) if isinstance(one, Token)]
        assert [one.data for one in got] == [token]
        assert (client.state, broker.state) == (State.CHALLENGED, State.CHALLENGED)
        events = list(client.receive(broker.send_token(challenge, done=turn == rounds - 1)))
        assert [one.data for one in events if isinstance(one, Token)] == [challenge]
    if mechanism == "GSSAPI":
        assert client.state is State.AUTHENTICATING
        client.authenticated()
    else:
        assert events[-1] == Authenticated(mechanism)
    assert (client.state, broker.state) == (State.OPEN, State.OPEN)


MECHANISMS = [("PLAIN", 1), ("OAUTHBEARER", 1), ("SCRAM-SHA-256", 2), ("SCRAM-SHA-512", 2), ("GSSAPI", 3)]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("mechanism", "rounds"), MECHANISMS)
def test_an_exchange_of_every_mechanism(mechanism: str, rounds: int, version: int) -> None:
    client, broker = pair(sasl=True, versions=VERSIONS)
    assert client.may_send() == {17, 18}
    authenticate(client, broker, mechanism, version, rounds)
    assert client.may_send() is None
    assert ask(client, broker, HEARTBEAT, messages.HeartbeatResponse())


def test_tokens_are_raw_after_handshake_0_and_framed_after_1() -> None:
    for version, raw in ((0, True), (1, False)):
        client, broker = pair(versions=VERSIONS)
        request = messages.SaslHandshakeRequest(mechanism="PLAIN")
        ask(client, broker, request, messages.SaslHandshakeResponse(), version=version)
        assert client.may_send() == (frozenset() if raw else {36})
        assert (client.send_token(b"secret") == b"\0\0\0\x06secret") is raw


def test_a_gssapi_token_may_open_the_connection() -> None:
    client, broker = pair(sasl=True, versions=VERSIONS)
    assert list(broker.receive(client.send_token(b"\x60raw"))) == [Token(b"\x60raw")]
    assert list(client.receive(broker.send_token(b"answer"))) == [Token(b"answer")]
    assert list(broker.receive(client.send_token(b"more"))) == [Token(b"more")]
    list(client.receive(broker.send_token(b"", done=True)))
    client.authenticated()
    assert ask(client, broker, HEARTBEAT, messages.HeartbeatResponse())


@pytest.mark.parametrize("handshake", [False, True])
def test_the_last_raw_token_of_gssapi_has_no_answer(handshake: bool) -> None:
    client, broker = pair(sasl=True, versions=VERSIONS)
    if handshake:
        asked = messages.SaslHandshakeRequest(mechanism="GSSAPI")
        ask(client, broker, asked, messages.SaslHandshakeResponse(), version=0)
    list(broker.receive(client.send_token(b"\x60first")))
    for one in (client, broker):
        with pytest.raises(ProtocolError, match="authentication cannot be done while a SASL token is under way"):
            one.authenticated()  # no exchange is as short as that
    list(client.receive(broker.send_token(b"offer")))
    data = client.send_token(b"choice")
    client.authenticated()
    data += client.send(HEARTBEAT)
    found = []
    for event in broker.receive(data):
        found.append(event)
        if isinstance(event, Token):
            broker.authenticated()
    assert [type(one) for one in found] == [Token, RequestReceived]
    assert (client.state, broker.state) == (State.OPEN, State.OPEN)
    (answer,) = client.receive(broker.send(messages.HeartbeatResponse()))
    assert isinstance(answer, ResponseReceived)


def test_the_last_token_of_what_is_answered_is_waited_for() -> None:
    for mechanism, version in (("PLAIN", 0), ("SCRAM-SHA-256", 0), ("GSSAPI", 1)):
        client, broker = pair(sasl=True, versions=VERSIONS)
        handshake = messages.SaslHandshakeRequest(mechanism=mechanism)
        ask(client, broker, handshake, messages.SaslHandshakeResponse(), version=version)
        for token in (b"1", b"2")[: 1 if mechanism == "PLAIN" else 2]:
            list(broker.receive(client.send_token(token)))
            for one in (client, broker):
                with pytest.raises(ProtocolError, match="authentication cannot be done while a SASL token"):
                    one.authenticated()
            list(client.receive(broker.send_token(b"answer")))


def test_an_oauthbearer_error_is_acknowledged_and_then_refused() -> None:
    client, broker = pair(sasl=True)
    request = messages.SaslHandshakeRequest(mechanism="OAUTHBEARER")
    ask(client, broker, request, messages.SaslHandshakeResponse(), version=1)
    list(broker.receive(client.send_token(b"expired")))
    events = list(client.receive(broker.send_token(b'{"status":"invalid_token"}')))
    assert not any(isinstance(one, Authenticated) for one in events)
    list(broker.receive(client.send_token(b"\x01")))
    (answer,) = client.receive(broker.send(messages.SaslAuthenticateResponse(error_code=58)))
    assert isinstance(answer, ResponseReceived)
    assert (client.state, broker.state) == (State.FAILED, State.FAILED)
    with pytest.raises(ProtocolError, match="after a failed authentication"):
        client.send(HEARTBEAT, version=0)
    with pytest.raises(ProtocolError, match="the client sends Heartbeat after a failed authentication"):
        list(broker.receive(Connection("client").send(HEARTBEAT, version=0)))


def test_a_refused_mechanism_ends_it() -> None:
    client, broker = pair(sasl=True)
    request = messages.SaslHandshakeRequest(mechanism="NONE")
    ask(client, broker, request, messages.SaslHandshakeResponse(error_code=33), version=1)
    assert (client.state, broker.state) == (State.FAILED, State.FAILED)


def test_a_client_hears_the_error_of_a_refusal_with_a_null_token() -> None:
    client, broker = authenticating()
    list(broker.receive(client.send_token(b"\0alice\0pw")))
    asked = struct.pack(">i", 1)  # in version 2
    body = b"\0" + struct.pack(">h", 58) + b"\3no" + b"\0" + bytes(9)
    (answer,) = client.receive(struct.pack(">i", 4 + len(body)) + asked + body)
    assert isinstance(answer, ResponseReceived)
    assert (answer.body.error_code, answer.body.error_message, answer.body.auth_bytes) == (58, "no", b"")
    assert client.state is State.FAILED


def test_a_null_token_without_an_error_is_none() -> None:
    client, broker = authenticating()
    list(broker.receive(client.send_token(b"\0alice\0pw")))
    body = struct.pack(">ibh", 1, 0, 0) + b"\0" + b"\0" + bytes(9)
    with pytest.raises(DecodeError, match="null in a field that cannot be null"):
        list(client.receive(struct.pack(">i", len(body)) + body))


def test_a_client_may_authenticate_again_with_handshake_1() -> None:
    client, broker = pair(sasl=True, versions=VERSIONS)
    authenticate(client, broker, "PLAIN", 1, 1)
    authenticate(client, broker, "SCRAM-SHA-256", 1, 2)
    with pytest.raises(ProtocolError, match="v0 cannot be sent a second time"):
        client.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=0)


def handshaking() -> tuple[Connection, Connection]:
    client, broker = pair(sasl=True, versions=VERSIONS)
    list(broker.receive(client.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=1)))
    return client, broker


def authenticating() -> tuple[Connection, Connection]:
    client, broker = handshaking()
    list(client.receive(broker.send(messages.SaslHandshakeResponse())))
    return client, broker


def challenged() -> tuple[Connection, Connection]:
    client, broker = authenticating()
    list(broker.receive(client.send_token(b"t")))
    return client, broker


def closed() -> tuple[Connection, Connection]:
    client, broker = pair(versions=VERSIONS)
    list(client.receive(b""))
    list(broker.receive(b""))
    return client, broker


ILLEGAL: list[tuple[Callable[[], tuple[Connection, Connection]], str]] = [
    (lambda: pair(sasl=True, versions=VERSIONS), "before authentication"),
    (handshaking, "while SaslHandshake is under way"),
    (authenticating, "during authentication"),
    (challenged, "while a SASL token is under way"),
    (closed, "on a closed connection"),
]


@pytest.mark.parametrize(("made", "where"), ILLEGAL)
def test_a_request_that_may_not_be_sent(made: Callable[[], tuple[Connection, Connection]], where: str) -> None:
    client, broker = made()
    with pytest.raises(ProtocolError, match=f"HeartbeatRequest cannot be sent {where}"):
        client.send(HEARTBEAT)
    if where != "on a closed connection":
        with pytest.raises(ProtocolError, match=f"the client sends Heartbeat {where}"):
            list(broker.receive(Connection("client").send(HEARTBEAT, version=0)))
    with pytest.raises(ProtocolError, match=r"the client sends|bytes after the end"):
        list(broker.receive(b"\0"))


@pytest.mark.parametrize("made", [ILLEGAL[0][0], handshaking, challenged, closed, lambda: pair(versions=VERSIONS)])
def test_a_token_that_may_not_be_sent(made: Callable[[], tuple[Connection, Connection]]) -> None:
    client, broker = made()
    with pytest.raises(ProtocolError, match="a SASL token cannot be sent"):
        client.send_token(b"token")
    with pytest.raises(ProtocolError, match="authentication cannot be done"):
        client.authenticated()
    if made is not challenged:
        with pytest.raises(ProtocolError, match="a SASL token cannot be sent"):
            broker.send_token(b"token")


def test_sasl_authenticate_needs_a_handshake() -> None:
    client, broker = pair(versions=VERSIONS)
    with pytest.raises(ProtocolError, match="SaslAuthenticateRequest cannot be sent before SaslHandshake"):
        client.send(messages.SaslAuthenticateRequest(auth_bytes=b""), version=0)
    frame = b"\0\x24\0\0\0\0\0\0\xff\xff\0\0\0\0"
    data = len(frame).to_bytes(4, "big") + frame
    # As Kafka's, a broker refuses it and goes on.
    (event,) = broker.receive(data)
    assert isinstance(event, RequestReceived)
    with pytest.raises(ProtocolError, match="answers a token without SaslHandshake: it has an error"):
        broker.send(messages.SaslAuthenticateResponse())
    with pytest.raises(ProtocolError, match="a SASL token cannot be sent here"):
        broker.send_token(b"")
    broker.send(messages.SaslAuthenticateResponse(error_code=34))
    assert broker.state is State.OPEN
    ask(client, broker, HEARTBEAT, messages.HeartbeatResponse())
    # Where clients have to authenticate, it is no first step.
    with pytest.raises(ProtocolError, match="the client sends SaslAuthenticate before authentication"):
        list(Connection("broker", sasl=True).receive(data))


@pytest.mark.parametrize("version", [0, 1])
def test_a_handshake_on_an_open_connection_may_be_refused(version: int) -> None:
    client, broker = pair(versions=VERSIONS)
    request = messages.SaslHandshakeRequest(mechanism="PLAIN")
    ask(client, broker, request, messages.SaslHandshakeResponse(error_code=34), version=version)
    assert (client.state, broker.state, client.mechanism) == (State.OPEN, State.OPEN, None)
    ask(client, broker, HEARTBEAT, messages.HeartbeatResponse())
    # With any other error it is over, and so it is for a client that has to authenticate.
    ask(client, broker, request, messages.SaslHandshakeResponse(error_code=33), version=version)
    assert (client.state, broker.state) == (State.FAILED, State.FAILED)
    client, broker = pair(versions=VERSIONS, sasl=True)
    ask(client, broker, request, messages.SaslHandshakeResponse(error_code=34), version=version)
    assert (client.state, broker.state) == (State.FAILED, State.FAILED)


def test_raw_tokens_do_not_mix_with_responses() -> None:
    client, broker = pair(versions=VERSIONS)
    data = client.send(HEARTBEAT)
    with pytest.raises(ProtocolError, match="v0 cannot be sent while requests wait"):
        client.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=0)
    data += Connection("client").send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=0)
    with pytest.raises(ProtocolError, match="the client sends SaslHandshake v0 on a connection in use"):
        list(broker.receive(data))


def test_a_client_does_not_say_done_with_a_token() -> None:
    client, _ = authenticating()
    with pytest.raises(ProtocolError, match=r"see authenticated\(\)"):
        client.send_token(b"t", done=True)


def test_a_token_is_not_shown() -> None:
    client, broker = authenticating()
    events = list(broker.receive(client.send_token(b"\0alice\0wonderland")))
    assert len(events) == 2
    assert "wonderland" not in repr(events)


# --- the end


def test_the_end_of_a_connection() -> None:
    client, broker = pair(versions=VERSIONS)
    list(broker.receive(client.send(HEARTBEAT)))
    assert list(client.receive(b"")) == [Closed(1)]
    assert list(broker.receive(b"")) == [Closed(1)]
    assert list(client.receive(b"")) == []
    assert client.state is State.CLOSED
    with pytest.raises(ProtocolError, match="on a closed connection"):
        broker.send(messages.HeartbeatResponse())
    with pytest.raises(ProtocolError, match="bytes after the end"):
        list(client.receive(b"\0"))


def test_an_end_within_a_frame_is_an_error() -> None:
    client, _ = pair(versions=VERSIONS)
    list(client.receive(b"\0\0"))
    with pytest.raises(DecodeError, match="ends within a frame"):
        list(client.receive(b""))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pieces_of_any_size_give_the_same_events(size: int) -> None:
    def talk(cut: int | None) -> list[Any]:
        client, broker = pair(sasl=True, versions=VERSIONS)
        events: list[Any] = []

        def over(side: Connection, data: bytes) -> None:
            for start in range(0, len(data), cut or len(data)):
                events.extend(side.receive(data[start : start + (cut or len(data))]))

        over(broker, client.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=0))
        over(client, broker.send(messages.SaslHandshakeResponse()))
        over(broker, client.send_token(b"\0user\0password"))
        over(client, broker.send_token(b"", done=True))
        over(broker, client.send(HEARTBEAT) + client.send(METADATA))
        over(client, broker.send(messages.HeartbeatResponse()) + broker.send(messages.MetadataResponse()))
        events.extend(client.receive(b""))
        return events

    whole = talk(None)
    assert len(whole) == 10
    assert talk(size) == whole


def test_a_broker_may_write_the_responses_of_an_exchange_itself() -> None:
    client, broker = challenged()
    *_, last = client.receive(broker.send(messages.SaslAuthenticateResponse(session_lifetime_ms=9)))
    assert last == Authenticated("PLAIN")
    assert (client.state, broker.state) == (State.OPEN, State.OPEN)


def test_a_broker_says_error_35_in_version_0_for_api_versions_alone() -> None:
    client, broker = pair(versions=VERSIONS)
    (answer,) = ask(client, broker, HEARTBEAT, messages.HeartbeatResponse(throttle_time_ms=5, error_code=35))
    assert (answer.api_version, answer.body.error_code, answer.throttle_ms) == (4, 35, 5)
    (answer,) = ask(client, broker, messages.ApiVersionsRequest(), offered({18: (0, 2)}, error=35), version=4)
    assert (answer.api_version, answer.body.error_code) == (0, 35)


def test_what_is_no_connection() -> None:
    for role in ("server", "Client", None):
        with pytest.raises(ValueError, match="that of a client or of a broker"):
            Connection(role)  # type: ignore[arg-type]
    for limit in (0, -1, "100", 1.5, None):
        with pytest.raises(ValueError, match="a number of bytes"):
            Connection("client", limit=limit)  # type: ignore[arg-type]


def test_what_is_no_bytes_changes_nothing() -> None:
    client, broker = pair(sasl=True, versions=VERSIONS)
    for wrong in ("", "abc", [], (), None, 5):
        for one in (client, broker):
            with pytest.raises(TypeError, match="receives bytes, not"):
                one.receive(wrong)  # type: ignore[arg-type]
        with pytest.raises(ProtocolError, match="a SASL token is bytes, not"):
            client.send_token(wrong)  # type: ignore[arg-type]
    assert (client.state, broker.state) == (State.START, State.START)
    authenticate(client, broker, "PLAIN", 0, 1)
    # A view of larger items has a size in bytes too.
    client, broker = pair(sasl=True)
    token = memoryview(b"\x60raw    ").cast("I")
    assert list(broker.receive(client.send_token(token))) == [Token(b"\x60raw    ")]


def test_every_step_leads_from_one_known_state_to_another() -> None:
    assert set(TRANSITIONS) == set(State)
    steps = {(before, step, after) for before, each in TRANSITIONS.items() for step, after in each.items()}
    assert {step for _, step, _ in steps} == set(Step)
    assert all(before is not after for before, _, after in steps)
    # Whatever happens, the other side may close; nothing follows that.
    assert {before for before, step, _ in steps if step is Step.END} == set(State) - {State.CLOSED}


def test_a_broker_that_has_not_said_done_is_not_open_after_its_last_token() -> None:
    broker = Connection("broker", sasl=True)
    client = Connection("client", sasl=True)
    list(broker.receive(client.send(messages.SaslHandshakeRequest(mechanism="PLAIN"), version=1)))
    list(client.receive(broker.send(messages.SaslHandshakeResponse(mechanisms=["PLAIN"]))))
    list(broker.receive(client.send_token(b"\0me\0secret")))
    assert broker.state is State.CHALLENGED
    broker.send_token(b"")
    assert broker.state is State.AUTHENTICATING
    broker.authenticated()
    assert broker.state is State.OPEN


def test_a_broker_that_answers_with_messages_is_open_after_the_second_of_scram() -> None:
    client, broker = pair(sasl=True)
    request = messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256")
    ask(client, broker, request, messages.SaslHandshakeResponse(), version=1)
    for state in (State.AUTHENTICATING, State.OPEN):
        list(broker.receive(client.send_token(b"token")))
        list(client.receive(broker.send(messages.SaslAuthenticateResponse(auth_bytes=b"challenge"))))
        assert (broker.state, client.state) == (state, state)


@pytest.mark.parametrize(
    "event", [Authenticated(None), Closed(0), Token(b""), Negotiated({}), RequestReceived(None, 18, 0, 1, None, True)]
)
def test_an_event_stays_as_it_is(event: Any) -> None:
    name = event.__slots__[0]
    with pytest.raises(AttributeError):
        setattr(event, name, None)
