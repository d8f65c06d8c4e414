"""What clients do against KIP-714: seeded in recorded sessions, and near misses that are no violation."""

from __future__ import annotations

import io
from typing import Any

import pytest
from telemetry_samples import INSTANCE, OTHER, SECOND
from telemetry_seeds import SEEDS, recorded, seeded

from kwire import messages
from kwire.events import telemetry
from kwire.events.sessions import MOST_CONNECTIONS, OF_METRICS, RULES, Sessions, subscription_id
from kwire.records.compression import CODECS
from kwire.wire import ZERO_UUID

ASKED = ["a."]
INTERVAL = 60_000
ID = subscription_id(ASKED, INTERVAL, INSTANCE)


def reported(data: bytes) -> list[tuple[str, str, str | None]]:
    rows = [row for batch in telemetry.violations(io.BytesIO(data)) for row in batch.to_pylist()]
    assert all(row["detail"] and (row["metric"] is not None) == (row["rule"] in OF_METRICS) for row in rows)
    return sorted((row["client_id"], row["rule"], row["metric"]) for row in rows)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_seeded_in_recorded_sessions_is_what_is_reported(codec: str) -> None:
    rules = set()
    for seed in SEEDS:
        data, expected = seeded(codec, seed)
        assert reported(data) == sorted(expected), seed.__name__
        rules |= {rule for _, rule, _ in expected}
    assert rules == set(RULES)


def test_the_id_of_a_subscription_is_that_of_kafkas_brokers() -> None:
    answers = 0
    for name in (*CODECS, "refusals"):
        for frame in recorded(name):
            body = frame.body
            if isinstance(body, messages.GetTelemetrySubscriptionsResponse) and body.error_code == 0:
                made = subscription_id(body.requested_metrics, body.push_interval_ms, body.client_instance_id)
                assert made == body.subscription_id
                answers += 1
    assert answers == 27
    assert subscription_id(["a", "b"], 1000, INSTANCE) != subscription_id(["b", "a"], 1000, INSTANCE)


class Client:
    """A client instance and its broker, by hand. Times in seconds."""

    def __init__(self, sessions: Sessions | None = None, connection: int = 0, instance: Any = INSTANCE) -> None:
        self.sessions = sessions or Sessions()
        self.connection = connection
        self.instance = instance

    def asks(self, at: float, instance: Any = ZERO_UUID, code: int = 0, **more: Any) -> list[str]:
        """Asks, and is told; the rules that both break."""
        time = int(at * SECOND)
        asked = messages.GetTelemetrySubscriptionsRequest(client_instance_id=instance)
        subscribed = {
            "error_code": code,
            "client_instance_id": self.instance,
            "subscription_id": subscription_id(ASKED, INTERVAL, self.instance),
            "push_interval_ms": INTERVAL,
            "requested_metrics": ASKED,
            "accepted_compression_types": [4],
            "telemetry_max_bytes": 100,
            "delta_temporality": True,
        }
        answer = messages.GetTelemetrySubscriptionsResponse(**(subscribed | more))
        found = self.sessions.asks(self.connection, asked, time)
        return [one.rule for one in found + self.sessions.subscribed(self.connection, instance, answer, time)]

    def pushes(self, at: float, code: int = 0, instance: Any = None, **more: Any) -> list[str]:
        fields = {
            "client_instance_id": instance or self.instance,
            "subscription_id": subscription_id(ASKED, INTERVAL, self.instance),
        }
        request = messages.PushTelemetryRequest(**(fields | more))
        found = self.sessions.pushes(self.connection, request, int(at * SECOND)).violations
        self.sessions.answered(self.connection, code)
        return [one.rule for one in found]


def test_a_client_that_does_all_as_it_should_breaks_no_rule() -> None:
    client = Client()
    assert client.asks(0) == []
    assert client.pushes(30) == []
    assert client.pushes(90, metrics=bytes(100), compression_type=4) == []
    assert client.pushes(150, code=117) == []
    assert client.asks(150.1, INSTANCE) == []
    assert client.pushes(210.1, code=76) == []
    assert client.asks(210.2, INSTANCE) == []
    assert client.pushes(270, compression_type=0) == []
    assert client.pushes(271, terminating=True) == []


def test_an_interval_may_be_early_by_what_packets_need_more_or_less() -> None:
    client = Client()
    client.asks(0)
    assert client.pushes(29.999) == ["before_interval"]
    assert client.pushes(89.5) == []
    assert client.pushes(89.5 + 59.3) == ["before_interval"]
    # A clock that was set back says nothing.
    assert client.pushes(80) == []


def test_a_subscription_is_asked_for_after_the_interval_or_after_an_error_that_says_so() -> None:
    client = Client()
    client.asks(0)
    assert client.asks(10, INSTANCE, code=89) == ["before_interval"]
    assert client.asks(60, INSTANCE) == []
    client.pushes(95, code=117)
    assert client.asks(96, INSTANCE) == []
    assert client.asks(97, INSTANCE) == ["before_interval"]
    # On another connection, to another broker, it asks at once.
    assert Client(client.sessions, connection=1).asks(98, INSTANCE) == []


def test_there_is_one_terminating_push() -> None:
    client = Client()
    client.asks(0)
    assert client.pushes(1, terminating=True) == []
    assert client.pushes(100, terminating=True) == ["after_terminating"]
    assert client.pushes(200) == ["after_terminating"]
    # Another client on the same host goes on.
    assert Client(client.sessions, 1, OTHER).asks(1) == []


def test_an_instance_id_is_kept_on_a_connection() -> None:
    client = Client()
    client.asks(0)
    assert client.asks(70) == ["second_handshake"]
    assert client.pushes(140, instance=OTHER) == ["other_instance"]
    assert client.pushes(200, instance=ZERO_UUID) == ["other_instance"]
    assert client.asks(300, OTHER, client_instance_id=OTHER, subscription_id=1)[0] == "other_instance"


def test_of_a_handshake_that_failed_or_was_not_seen_nothing_is_said() -> None:
    client = Client()
    assert client.asks(0, code=15, client_instance_id=ZERO_UUID, subscription_id=0, push_interval_ms=0) == []
    assert client.asks(1) == []
    silent = Client(instance=OTHER)
    assert silent.pushes(0, metrics=bytes(1000), compression_type=9) == []
    assert silent.pushes(1) == []
    assert silent.asks(2) == ["second_handshake"]


def test_an_answer_may_leave_the_instance_out_and_name_codecs_twice() -> None:
    client = Client()
    client.asks(0)
    assert client.asks(60, INSTANCE, client_instance_id=ZERO_UUID, accepted_compression_types=[3, 3, 9]) == []
    known = client.sessions.known(INSTANCE, ID)
    assert known is not None
    assert known.subscription.accepted_compression_types == (3, 9)
    assert known.accepted == ["lz4", "unknown(9)"]
    assert client.pushes(120, compression_type=4) == ["compression_not_accepted"]


def test_what_is_remembered_of_clients_is_bounded() -> None:
    sessions = Sessions()
    for number in range(MOST_CONNECTIONS + 10):
        request = messages.GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
        sessions.asks(number, request, 0)
    assert len(sessions._links._entries) == MOST_CONNECTIONS


def test_one_text_is_no_list_of_prefixes() -> None:
    with pytest.raises(TypeError, match="a list of prefixes"):
        telemetry.is_requested("abc", "a")
    assert telemetry.client_action(9999).startswith("unknown error (9999): not in KIP-714")
