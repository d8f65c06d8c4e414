"""Both roles of a connection against a model: whatever is said in whatever pieces, events are what was sent, in order.

Rules choose any step, legal or not. A step that ``may_send`` does not name is a ``ProtocolError`` and changes nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kwire import messages
from kwire.errors import ProtocolError
from kwire.protocol.connection import Authenticated, Connection, RequestReceived, ResponseReceived, State, Token

VERSIONS = {0: 9, 3: 12, 12: 4, 17: 1, 36: 2}
ROUNDS = {"PLAIN": 1, "SCRAM-SHA-512": 2, "GSSAPI": 3}
REQUESTS: dict[int, Any] = {
    3: messages.MetadataRequest(topics=None),
    12: messages.HeartbeatRequest(group_id="g", generation_id=3, member_id="m"),
}
RESPONSES: dict[int, Any] = {
    3: messages.MetadataResponse(cluster_id="c"),
    12: messages.HeartbeatResponse(error_code=27),
    17: messages.SaslHandshakeResponse(),
}


class Talk(RuleBasedStateMachine):
    """Bytes under way are in two queues; ``asked`` is what the broker has to answer."""

    @initialize(sasl=st.booleans())
    def begin(self, sasl: bool) -> None:
        self.client = Connection("client", client_id="c", versions=VERSIONS, sasl=sasl)
        self.broker = Connection("broker", sasl=sasl)
        self.to_broker, self.to_client = bytearray(), bytearray()
        self.sent: deque[Any] = deque()
        self.answered: deque[Any] = deque()
        self.tokens: deque[bytes] = deque()
        self.owed: deque[int | None] = deque()
        self.rounds = 0

    def allowed(self, key: int) -> bool:
        may = self.client.may_send()
        return may is None or key in may

    @rule(key=st.sampled_from([3, 12]))
    def request(self, key: int) -> None:
        before = self.client.in_flight, self.client.state
        if not self.allowed(key):
            with pytest.raises(ProtocolError):
                self.client.send(REQUESTS[key])
            assert (self.client.in_flight, self.client.state) == before
            return
        self.to_broker += self.client.send(REQUESTS[key])
        self.sent.append(REQUESTS[key])

    @rule()
    def produce_without_acks(self) -> None:
        if self.allowed(0):
            request = messages.ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
            before = self.client.in_flight
            self.to_broker += self.client.send(request)
            self.sent.append(request)
            assert self.client.in_flight == before

    @rule(mechanism=st.sampled_from(sorted(ROUNDS)), version=st.sampled_from([0, 1]))
    def handshake(self, mechanism: str, version: int) -> None:
        request = messages.SaslHandshakeRequest(mechanism=mechanism)
        before = self.client.state
        try:
            self.to_broker += self.client.send(request, version=version)
        except ProtocolError:
            # In use: only v0 minds. Otherwise the state does not allow it.
            assert version == 0 or not self.allowed(17)
            assert self.client.state is before
            return
        self.sent.append(request)
        self.rounds = ROUNDS[mechanism]
        assert self.client.state is State.HANDSHAKE
        assert self.client.may_send() == frozenset()

    @rule(token=st.binary(max_size=20))
    def token(self, token: bytes) -> None:
        if self.client.state is not State.AUTHENTICATING or not self.rounds:
            return
        self.to_broker += self.client.send_token(token)
        self.tokens.append(token)
        assert self.client.state is State.CHALLENGED

    @precondition(lambda self: bool(self.to_broker))
    @rule(data=st.data())
    def broker_receives(self, data: st.DataObject) -> None:
        size = data.draw(st.integers(1, len(self.to_broker)))
        piece = bytes(self.to_broker[:size])
        del self.to_broker[:size]
        for event in self.broker.receive(piece):
            if isinstance(event, Token):
                assert event.data == self.tokens.popleft()
                if event.message is None:
                    self.owed.append(None)
            else:
                assert isinstance(event, RequestReceived)
                if event.api_key != 36:
                    assert event.body == self.sent.popleft()
                if event.answered:
                    self.owed.append(event.api_key)
            self.answer_all_of_sasl()

    def answer_all_of_sasl(self) -> None:
        """Steps of an authentication are answered at once: a client waits for them."""
        while self.owed and self.owed[0] in (None, 17, 36):
            if len(self.owed) == 1 and self.owed[0] == 36 and self.broker.state is not State.CHALLENGED:
                return
            key = self.owed.popleft()
            if key == 17:
                self.to_client += self.broker.send(RESPONSES[17])
                self.answered.append(RESPONSES[17])
            else:
                self.rounds -= 1
                self.to_client += self.broker.send_token(b"%d" % self.rounds, done=self.rounds == 0)

    @rule(key=st.sampled_from([3, 12]))
    def response(self, key: int) -> None:
        if not self.owed or self.owed[0] != key:
            with pytest.raises(ProtocolError):
                self.broker.send(RESPONSES[key])
            return
        assert self.broker.may_send() == {key}
        self.to_client += self.broker.send(RESPONSES[key])
        self.answered.append(RESPONSES[key])
        self.owed.popleft()
        self.answer_all_of_sasl()

    @precondition(lambda self: bool(self.to_client))
    @rule(data=st.data())
    def client_receives(self, data: st.DataObject) -> None:
        size = data.draw(st.integers(1, len(self.to_client)))
        piece = bytes(self.to_client[:size])
        del self.to_client[:size]
        for event in self.client.receive(piece):
            if isinstance(event, ResponseReceived) and event.api_key != 36:
                assert event.body == self.answered.popleft()
            if isinstance(event, Authenticated):
                assert self.rounds == 0
                assert self.client.state is State.OPEN
        if self.client.state is State.AUTHENTICATING and self.rounds == 0 and self.client.mechanism == "GSSAPI":
            self.client.authenticated()

    @invariant()
    def nothing_is_lost(self) -> None:
        if hasattr(self, "client") and not (self.to_broker or self.to_client):
            assert self.client.in_flight == len(self.owed) == self.broker.in_flight


Talk.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
test_both_roles_agree = Talk.TestCase
