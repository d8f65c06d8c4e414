"""The broker of ``kwire.testing``: which versions it announces, takes and refuses."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import Bench

from kwire import encode_request, messages, schema, versions
from kwire.errors import UnsupportedVersionError
from kwire.schema.keys import ApiKey
from kwire.schema.model import Versions
from kwire.testing.broker.apis import HANDLERS
from kwire.testing.broker.logs import Topic

RELEASES = versions.releases()
NAMED = messages.ApiVersionsRequest(client_software_name="kwire", client_software_version="1")
SAYING = RELEASES[RELEASES.index("0.10.0") :]


@pytest.mark.parametrize("release", SAYING)
def test_a_broker_announces_what_its_release_does(release: str) -> None:
    bench = Bench(release)
    answer = bench.client().ask(messages.ApiVersionsRequest(), 0)
    said = {one.api_key: Versions(one.min_version, one.max_version) for one in answer.api_keys}
    both = [versions.announced(release, listener) for listener in ("zookeeper", "broker")]
    assert any(said.items() <= one.items() for one in both)
    assert any(set(one) - set(said) <= {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY} for one in both)


@pytest.mark.parametrize(("release", "listed"), [("0.10.1", []), ("2.3", []), ("2.4", [(0, 3)]), ("4.4", [(0, 5)])])
def test_an_unknown_version_of_api_versions_is_answered_in_v0(release: str, listed: list[tuple[int, int]]) -> None:
    client = Bench(release).client()
    version = versions.announced(release)[ApiKey.API_VERSIONS].high + 1
    written = min(version, schema.request(ApiKey.API_VERSIONS).versions.high)  # type: ignore[union-attr]
    frame = encode_request(messages.ApiVersionsRequest(), api_version=written, correlation_id=7)
    client.talk.receive(len(frame).to_bytes(4) + frame[:2] + version.to_bytes(2) + frame[4:])
    assert client.got[4:10].hex() == "000000070023"  # correlation id, error 35
    assert len(client.got) == 4 + 4 + 2 + 4 + 6 * len(listed)
    rows = [tuple(client.got[at : at + 6]) for at in range(14, len(client.got), 6)]
    assert [row[:4] for row in rows] == [(0, 18, 0, 0)] * len(listed)


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [("kwire", "1", 0), ("a-b.c", "0.1-rc2", 0), ("", "1", 42), ("kwire", "", 42), ("-a", "1", 42), ("a", "1 b", 42)],
)
def test_a_client_has_to_name_its_software(name: str, version: str, code: int) -> None:
    asked = messages.ApiVersionsRequest(client_software_name=name, client_software_version=version)
    client = Bench("4.4").client()
    answer = client.ask(asked, 3)
    assert (answer.error_code, bool(answer.api_keys)) == (code, not code)
    # Before version 3 there is no name.
    assert client.ask(asked, 2).error_code == 0


def test_an_own_client_negotiates_with_every_release() -> None:
    for release in SAYING:
        client = Bench(release).client()
        client.talk.receive(client.connection.send(NAMED))
        list(client.answers())
        if client.connection.versions is None:
            client.talk.receive(client.connection.send(NAMED))
            list(client.answers())
        assert client.connection.versions is not None
        client.talk.receive(client.connection.send(messages.MetadataRequest(topics=None)))
        (answer,) = client.answers()
        assert [one.node_id for one in answer.brokers] == [1]


def test_a_version_that_the_release_does_not_have_closes_the_connection() -> None:
    bench = Bench("2.8")
    client = bench.client()
    assert client.ask(messages.MetadataRequest(topics=[]), 12) is None
    assert client.closed
    (error,) = bench.core.recording.errors
    assert isinstance(error, UnsupportedVersionError)
    assert str(error) == "Metadata v12: 2.8 accepts 0-11"
    assert bench.core.recording.exchanges[0].error is error


def test_before_0_10_there_is_no_api_versions() -> None:
    client = Bench("0.9.0").client()
    assert client.ask(messages.ApiVersionsRequest(), 0) is None
    assert client.closed


def test_kafka_4_announces_produce_v0_and_answers_it_with_an_error() -> None:
    bench = Bench("4.0")
    bench.cluster.create_topic("orders")
    client = bench.client()
    part = messages.ProduceRequest.PartitionProduceData(index=0, records=b"")
    data = messages.ProduceRequest.TopicProduceData(name="orders", partition_data=[part])
    answer = client.ask(messages.ProduceRequest(acks=1, topic_data=[data]), 0)
    assert answer.responses[0].partition_responses[0].error_code == 35
    assert not client.closed


LOGIN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""These have a state: test_login.py has their versions."""
EARLY = (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
EVERY = [(key, version) for key in HANDLERS if key not in LOGIN for version in schema.request(key).versions]  # type: ignore[union-attr]


@pytest.mark.parametrize(("key", "version"), EVERY)
def test_every_version_of_every_api_has_an_answer_that_can_be_written(key: int, version: int) -> None:
    releases = [one for one in versions.accepting(key, version) if version in Bench(one).cluster.accepted.get(key, ())]
    if not releases:
        # The first must be enabled. The others are of the early access of share groups in 4.0.
        assert (key, version) == (ApiKey.INIT_PRODUCER_ID, 6) or (key in EARLY and version == 0)
        return
    bench = Bench(releases[-1])
    message = getattr(messages, f"{schema.api_keys()[key]}Request")
    topic = bench.cluster.create_topic("orders")
    for request in (message(), _about(message, version, topic)):
        if key == ApiKey.PRODUCE:
            request.acks = 1
        client = bench.client()
        client.send(request, version)
        bench.wait(1)
        assert not client.closed, list(bench.core.recording.errors)
        assert len(client.answers()) + client.connection.in_flight == 1


def _about(message: Any, version: int, topic: Topic) -> Any:
    """A request that names a topic, wherever it can."""
    made = message()
    for place, inner in message.STRUCTS.items():
        there = next(one for one in message.FIELDS if one.name == place).versions
        names = {one.name for one in inner.FIELDS}
        kind = "topic" if "topic" in names else "name" if "name" in names else None
        if "Topic" not in inner.__name__ or kind is None or version not in there:
            continue
        one = inner(**{kind: topic.name}, **({"topic_id": topic.id} if "topic_id" in names else {}))
        for name, deeper in inner.STRUCTS.items():
            if name.startswith("partition"):
                setattr(one, name, [deeper()])
        setattr(made, place, [one])
    return made
