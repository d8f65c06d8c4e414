"""The broker of ``kwire.testing``: SASL, for clients of every mechanism, and for those that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from broker_talk import Bench, Client

from kwire import messages
from kwire.errors import ProtocolError
from kwire.protocol.connection import Authenticated, ResponseReceived, State, Token
from kwire.protocol.sasl import Exchange, OAuthBearer, Plain, Scram
from kwire.testing.broker import Sasl

SASL = Sasl(users={"alice": "wonderland", "a,b=c": "p"}, tokens=("t-1",), lifetime=60.0)

RIGHT: list[Exchange] = [
    Plain("alice", "wonderland"),
    Scram("SCRAM-SHA-256", "alice", "wonderland"),
    Scram("SCRAM-SHA-512", "a,b=c", "p"),
    OAuthBearer("t-1"),
]
WRONG: list[Exchange] = [
    Plain("alice", "looking glass"),
    Plain("bob", "wonderland"),
    Scram("SCRAM-SHA-256", "alice", "looking glass"),
    Scram("SCRAM-SHA-512", "bob", "wonderland"),
    OAuthBearer("t-2"),
]


def events(client: Client) -> list[Any]:
    data = bytes(client.got)
    client.got.clear()
    return list(client.connection.receive(data)) if data else []


def login(client: Client, exchange: Exchange, version: int) -> list[Any]:
    """All events of an authentication: with raw tokens (0), or with SaslAuthenticate v0, v1, v2 (1, 2, 3)."""
    client.send(messages.SaslHandshakeRequest(mechanism=exchange.mechanism), min(version, 1))
    found = events(client)
    token: bytes | None = exchange.first()
    while token is not None and client.connection.state is State.AUTHENTICATING and not client.closed:
        more = {} if version == 0 else {"version": version - 1}
        client.talk.receive(client.connection.send_token(token, **more))
        now = events(client)
        found += now
        token = next((exchange.next(one.data) for one in now if isinstance(one, Token)), None)
    return found


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("exchange", RIGHT, ids=lambda one: one.mechanism)
def test_who_is_known_comes_in(exchange: Exchange, version: int) -> None:
    fresh: Any = {"Plain": Plain("alice", "wonderland"), "OAuthBearer": exchange}.get(type(exchange).__name__)
    if fresh is None:
        user = ("alice", "wonderland") if exchange.mechanism.endswith("256") else ("a,b=c", "p")
        fresh = Scram(exchange.mechanism, *user)
    client = Bench(sasl=SASL).client()
    found = login(client, fresh, version)
    assert isinstance(found[-1], Authenticated)
    assert client.connection.state is State.OPEN
    assert client.ask(messages.MetadataRequest(topics=[]), 12).cluster_id
    if version > 1:
        last = [one.body for one in found if isinstance(one, ResponseReceived)][-1]
        assert last.session_lifetime_ms == 60_000


@pytest.mark.parametrize("exchange", WRONG, ids=lambda one: one.mechanism)
def test_who_is_not_known_is_refused(exchange: Exchange) -> None:
    client = Bench(sasl=SASL).client()
    found = login(client, exchange, 1)
    last = [one.body for one in found if isinstance(one, ResponseReceived)][-1]
    assert (last.error_code, client.closed) == (58, True)
    assert not any(isinstance(one, Authenticated) for one in found)


def test_raw_tokens_that_are_wrong_close_the_connection() -> None:
    bench = Bench(sasl=SASL)
    client = bench.client()
    login(client, Plain("alice", "looking glass"), 0)
    assert client.closed
    assert "Invalid username or password" in str(bench.core.recording.errors[0])


def test_a_mechanism_that_there_is_not_is_refused() -> None:
    client = Bench(sasl=Sasl(mechanisms=("PLAIN",))).client()
    answer = client.ask(messages.SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert (answer.error_code, list(answer.mechanisms), client.closed) == (33, ["PLAIN"], True)
    with pytest.raises(ValueError, match="mechanism 'GSSAPI'"):
        Sasl(mechanisms=("GSSAPI",))


def test_nothing_goes_before_authentication() -> None:
    bench = Bench(sasl=SASL)
    client = bench.client()
    assert client.ask(messages.ApiVersionsRequest(), 2).error_code == 0
    client.connection.state = State.OPEN  # a client that does not keep the rule
    client.send(messages.MetadataRequest(topics=[]), 12)
    assert client.closed
    assert isinstance(bench.core.recording.errors[0], ProtocolError)


def test_without_sasl_a_handshake_is_refused() -> None:
    client = Bench().client()
    assert client.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 34
    assert client.ask(messages.MetadataRequest(topics=[]), 12).brokers


def test_a_client_may_authenticate_again_if_it_is_let_in_for_a_time() -> None:
    client = Bench(sasl=SASL).client()
    login(client, Plain("alice", "wonderland"), 1)
    found = login(client, Scram("SCRAM-SHA-256", "alice", "wonderland"), 1)
    assert isinstance(found[-1], Authenticated)


def test_a_client_that_is_let_in_without_an_end_is_refused_the_second_time() -> None:
    client = Bench(sasl=replace(SASL, lifetime=0)).client()
    login(client, Plain("alice", "wonderland"), 1)
    assert client.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 34
    assert client.ask(messages.MetadataRequest(topics=[]), 12).brokers


def test_a_token_without_a_handshake_is_refused() -> None:
    asked = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0wonderland")
    for sasl in (None, SASL):
        client = Bench(sasl=sasl).client()
        if sasl is not None:
            login(client, Plain("alice", "wonderland"), 1)
        client.connection.state = State.AUTHENTICATING  # a client that does not keep the rule
        assert client.ask(asked, 2).error_code == 34
        assert not client.closed


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
@pytest.mark.parametrize("token", [b"", b"\xff", b"n,,", b"n,,n=alice,r=", b"a\0b", b"n,,n=alice,r=x", b"x" * 70_000])
def test_tokens_that_are_none_are_refused(mechanism: str, token: bytes) -> None:
    bench = Bench(sasl=SASL)
    client = bench.client()
    client.ask(messages.SaslHandshakeRequest(mechanism=mechanism), 1)
    for _ in range(2):
        if client.connection.state is State.AUTHENTICATING:
            client.talk.receive(client.connection.send_token(token, version=2))
            events(client)
    assert client.closed
    assert not bench.core.conversations


def test_passwords_are_not_shown() -> None:
    bench = Bench(sasl=SASL)
    login(bench.client(), Plain("alice", "wonderland"), 1)
    said = repr(list(bench.core.recording.exchanges)) + repr(SASL)
    assert "wonderland" not in said
    assert "t-1" not in said
