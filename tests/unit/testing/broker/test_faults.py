"""The broker of ``kwire.testing``: faults that a test scripts, and what is recorded."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from broker_talk import BATCH, Bench, Client, fetch_request, part_of, produce

from kwire import capture, messages, schema
from kwire.errors import DecodeError, KwireError, ProtocolError, UnsupportedVersionError
from kwire.testing.broker.apis import HANDLERS
from kwire.testing.broker.faults import DAMAGES, Rule
from kwire.testing.broker.places import names_topics, places
from kwire.testing.broker.sessions import Sessions


def on(bench: Bench, *args: Any, **more: Any) -> Rule:
    rule = Rule(*args, **more)
    bench.core.faults.rules.append(rule)
    return rule


def metadata(client: Client) -> Any:
    return client.ask(messages.MetadataRequest(topics=[]), 12)


def test_the_nth_request_gets_an_error_and_is_not_carried_out() -> None:
    bench = Bench()
    orders, other = (bench.cluster.create_topic(name) for name in ("orders", "other"))
    rule = on(bench, "Produce", topic="orders", nth=2).error("NOT_LEADER_OR_FOLLOWER")
    client = bench.client()
    codes = [produce(client, topic, BATCH, 13).error_code for topic in (orders, other, orders, orders)]
    assert codes == [0, 0, 6, 0]
    assert (rule.seen, rule.acted) == (3, 1)
    assert [topic.logs[0].end for topic in (orders, other)] == [6, 3]
    assert [one.fault for one in bench.core.recording.exchanges] == ["", "", "NOT_LEADER_OR_FOLLOWER", ""]


def test_an_error_is_about_its_topic_alone() -> None:
    bench = Bench()
    orders, other = (bench.cluster.create_topic(name) for name in ("orders", "other"))
    on(bench, "Fetch", topic="orders").error("KAFKA_STORAGE_ERROR")
    request = fetch_request(orders, 0, 13)
    request.topics += fetch_request(other, 0, 13).topics
    answer = bench.client().ask(request, 13)
    assert [one.partitions[0].error_code for one in answer.responses] == [56, 0]


def test_a_fetch_of_a_session_names_its_topics_too() -> None:
    bench = Bench()
    orders = bench.cluster.create_topic("orders")
    client = bench.client()
    session = client.ask(fetch_request(orders, 0, 13, session_epoch=0, max_wait_ms=0), 13).session_id
    on(bench, "Fetch", topic="orders", times=1).error("NOT_LEADER_OR_FOLLOWER")
    quiet = fetch_request(None, 0, 13, session_id=session, session_epoch=1)
    assert part_of(client.ask(quiet, 13)).error_code == 6


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        ("Heartbeat", messages.HeartbeatRequest(group_id="g")),
        ("JoinGroup", messages.JoinGroupRequest(group_id="g")),
        ("SyncGroup", messages.SyncGroupRequest(group_id="g")),
        ("LeaveGroup", messages.LeaveGroupRequest(group_id="g")),
        ("InitProducerId", messages.InitProducerIdRequest()),
        ("ListGroups", messages.ListGroupsRequest()),
        ("DescribeCluster", messages.DescribeClusterRequest()),
        ("ApiVersions", messages.ApiVersionsRequest()),
    ],
)
def test_apis_without_topics_get_errors(api: str, request_: Any) -> None:
    bench = Bench()
    on(bench, api).error("NOT_COORDINATOR")
    client = bench.client()
    assert client.ask(request_, 0 if api == "DescribeCluster" else 3).error_code == 16


def test_a_delay_passes() -> None:
    bench = Bench()
    on(bench, "Metadata", client="slow").delay(2)
    slow, fast = bench.client(client_id="slow"), bench.client(client_id="fast")
    assert metadata(slow) is None
    assert metadata(fast) is not None
    bench.wait(1.9)
    assert slow.answers() == []
    bench.wait(0.1)
    assert len(slow.answers()) == 1


def test_a_throttled_client_waits_or_its_response_does() -> None:
    bench = Bench("2.8")
    on(bench, "Metadata", times=2).throttle(3)
    client = bench.client()
    assert client.ask(messages.MetadataRequest(topics=[]), 5) is None  # before KIP-219
    bench.wait(3)
    (late,) = client.answers()
    assert late.throttle_time_ms == 3000
    assert client.ask(messages.MetadataRequest(topics=[]), 6).throttle_time_ms == 3000
    assert client.ask(messages.MetadataRequest(topics=[]), 6) is None  # it should have waited
    bench.wait(3)
    (answer,) = client.answers()
    assert answer.throttle_time_ms == 0


def test_quotas_are_kept_for_each_client() -> None:
    bench = Bench(produce_rate=len(BATCH) / 2)
    topic = bench.cluster.create_topic("orders")
    one, other = bench.client(client_id="one"), bench.client(client_id="other")
    for _ in range(2):
        produce(one, topic, BATCH, 9)
        produce(other, topic, BATCH, 9)
        bench.wait(30)
    answers = [exchange.response.throttle_time_ms for exchange in bench.core.recording.exchanges]
    assert answers == [1000, 1000, 1000, 1000]
    produce(one, topic, BATCH, 9)
    bench.wait(1)
    produce(one, topic, BATCH, 9)
    assert bench.core.recording.exchanges[-1].response.throttle_time_ms == 2000


@pytest.mark.parametrize("handled", [True, False])
@pytest.mark.parametrize("kind", ["drop", "close"])
def test_a_response_is_lost(kind: str, handled: bool) -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    getattr(on(bench, "Produce", nth=1), kind)(handled=handled)
    client = bench.client()
    client.send(
        messages.ProduceRequest(
            acks=-1,
            topic_data=[
                messages.ProduceRequest.TopicProduceData(
                    name="orders",
                    partition_data=[messages.ProduceRequest.PartitionProduceData(index=0, records=BATCH)],
                )
            ],
        ),
        9,
    )
    assert (bytes(client.got), client.closed) == (b"", kind == "close")
    assert topic.logs[0].end == (3 if handled else 0)


def test_raw_bytes_stand_in_place_of_a_response() -> None:
    bench = Bench()
    on(bench, "Metadata").raw(b"HTTP/1.1 400 Bad Request")
    client = bench.client()
    client.send(messages.MetadataRequest(topics=[]), 12)
    assert bytes(client.got) == b"HTTP/1.1 400 Bad Request"


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_response_is_noticed(kind: str) -> None:
    bench = Bench()
    on(bench, "Metadata").damage(kind)
    client = bench.client()
    client.send(messages.MetadataRequest(topics=[]), 12)
    if kind == "cut_off":
        assert client.closed
        with pytest.raises(DecodeError, match="the stream ends within a frame"):
            list(client.connection.receive(bytes(client.got) or b"") or ()) or list(client.connection.receive(b""))
        return
    whole = bench.client()
    bench.core.faults.rules.clear()
    right = metadata(whole)
    try:
        (answer,) = client.answers()
    except KwireError:
        return
    assert answer != right


def test_a_share_of_requests_is_chosen_by_the_seed() -> None:
    def faults() -> list[bool]:
        bench = Bench()
        on(bench, "Metadata", share=0.25).error("LEADER_NOT_AVAILABLE")
        client = bench.client()
        for _ in range(200):
            metadata(client)
        return [bool(one.fault) for one in bench.core.recording.exchanges]

    found = faults()
    assert 20 < sum(found) < 90
    assert faults() == found
    with pytest.raises(ValueError, match="share=0"):
        Rule("Fetch", share=0)


EVERY = [schema.request(key) for key in HANDLERS]


@pytest.mark.parametrize("message", [one for one in EVERY if names_topics(one)], ids=lambda one: one.name)
def test_topics_are_found_in_every_request_that_names_some(message: Any) -> None:
    kind = getattr(messages, message.name)
    made = kind()
    for place, inner in kind.STRUCTS.items():
        names = {one.name for one in inner.FIELDS}
        name = next((one for one in ("topic", "name") if one in names), None)
        if "Topic" in inner.__name__ and name is not None and place != "forgotten_topics_data":
            setattr(made, place, [inner(**{name: "orders"})])
            break
    else:
        if hasattr(made, "topic_names"):
            made.topic_names = ["orders"]
        else:
            return  # they stand deeper (OffsetFetch), or only by id (ConsumerGroupHeartbeat)
    assert [topic for topic, _ in places(made, lambda number: "")] == ["orders"]


def test_faults_add_up() -> None:
    bench = Bench()
    on(bench, "Metadata").delay(1)
    on(bench, None).drop()
    client = bench.client()
    assert metadata(client) is None
    bench.wait(2)
    assert client.answers() == []
    assert bench.core.recording.exchanges[0].fault == "delay 1 s, drop"


def test_a_rule_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="Fetsh"):
        Rule("Fetsh")
    with pytest.raises(ValueError, match="Heartbeat names no topic"):
        Rule("Heartbeat", topic="orders")
    with pytest.raises(ValueError, match="nth=0"):
        Rule("Fetch", nth=0)
    with pytest.raises(ValueError, match="no damage"):
        Rule("Fetch").damage("shaken")
    with pytest.raises(UnsupportedVersionError, match="NOT_A_CODE"):
        Rule("Fetch").error("NOT_A_CODE")


def test_bytes_that_are_no_request_close_the_connection() -> None:
    bench = Bench()
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\2\0\0", b"\0\0\0\x08" + bytes(8)):
        client = bench.client()
        client.talk.receive(data)
        assert client.closed, data
    assert len(bench.core.recording.errors) == 4
    assert not bench.core.conversations


def test_a_client_that_ends_inside_of_a_frame_is_recorded() -> None:
    bench = Bench()
    client = bench.client()
    client.talk.receive(b"\0\0\0\x08abc")
    client.talk.receive(b"")
    assert client.closed
    assert "ends within a frame" in str(bench.core.recording.errors[0])


def test_a_response_of_a_client_is_no_request() -> None:
    bench = Bench()
    client = bench.client()
    with pytest.raises(ProtocolError):
        client.send(messages.MetadataResponse(), 12)
    assert not client.closed


def test_exchanges_are_messages() -> None:
    bench = Bench()
    client = bench.client()
    answer = metadata(client)
    (exchange,) = bench.core.recording.exchanges
    assert (exchange.api, exchange.api_version, exchange.client_id, exchange.node) == ("Metadata", 12, "me", 1)
    assert exchange.request == messages.MetadataRequest(topics=[])
    assert exchange.response.brokers == answer.brokers
    assert repr(exchange).startswith("<#1 Metadata v12 of 'me' to node 1: MetadataRequest(")


def test_what_was_recorded_is_a_capture(tmp_path: Any) -> None:
    bench = Bench()
    topic = bench.cluster.create_topic("orders")
    client = bench.client()
    metadata(client)
    produce(client, topic, BATCH, 9)
    client.talk.receive(b"")
    path = tmp_path / "broker.pcapng"
    path.write_bytes(bench.core.recording.pcapng())
    rows = pa.Table.from_batches(
        capture.read(path, "messages", columns=["api_name", "api_version", "direction", "client_id", "status"])
    ).to_pylist()
    assert sorted((one["api_name"], one["direction"], one["status"]) for one in rows) == [
        ("Metadata", "request", "ok"),
        ("Metadata", "response", "ok"),
        ("Produce", "request", "ok"),
        ("Produce", "response", "ok"),
    ]
    assert {one["client_id"] for one in rows} == {"me"}


def test_what_is_recorded_is_bounded() -> None:
    bench = Bench(max_recorded=20_000)
    client = bench.client()
    for _ in range(200):
        metadata(client)
    recording = bench.core.recording
    assert recording.count == 200
    assert 0 < len(recording.exchanges) < 100
    assert recording.forgotten == 200 - len(recording.exchanges)


def test_there_is_a_bounded_number_of_everything() -> None:
    bench = Bench(max_connections=2, max_partitions=3, max_groups=1, max_log=len(BATCH))
    clients = [bench.client() for _ in range(2)]
    assert bench.core.connect(bench.cluster.nodes[0], ("127.0.0.1", 1), bytearray().extend, lambda: None) is None
    topic = bench.cluster.create_topic("orders", 3)
    asked = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="more")])
    assert clients[0].ask(asked, 12).topics[0].error_code == 37
    assert [produce(clients[0], topic, BATCH, 9).error_code for _ in range(2)] == [0, 56]
    joins = [
        messages.JoinGroupRequest(
            group_id=name,
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[messages.JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
        )
        for name in ("g", "h")
    ]
    assert [clients[1].ask(one, 9).error_code for one in joins] == [79, 15]
    kind = messages.CreateTopicsRequest
    configs = [kind.CreatableTopicConfig(name="x", value="y" * 20_000)]
    asked = kind(topics=[kind.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)])
    assert clients[0].ask(asked, 7).topics[0].error_code == 40


def test_offsets_members_and_sessions_are_bounded_together() -> None:
    bench = Bench(max_offsets=2, max_membership=10)
    topic = bench.cluster.create_topic("orders", 3)
    client = bench.client()
    kind = messages.OffsetCommitRequest
    codes = []
    for number in range(3):
        part = kind.OffsetCommitRequestPartition(partition_index=number)
        asked = kind(group_id="g", topics=[kind.OffsetCommitRequestTopic(name="orders", partitions=[part])])
        codes.append(client.ask(asked, 9).topics[0].partitions[0].error_code)
    assert codes == [0, 0, 28]
    joining = messages.JoinGroupRequest
    codes = []
    for group in ("a", "b"):
        protocols = [joining.JoinGroupRequestProtocol(name="range", metadata=bytes(20))]
        asked_ = joining(group_id=group, session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols)
        codes.append(client.ask(asked_, 3).error_code)
    assert codes == [0, 81]
    sessions = Sessions(5, most_partitions=1000)
    for _ in range(3):
        one = sessions.open(True)
        one.take([(topic.id, messages.FetchRequest.FetchPartition(partition=n)) for n in range(600)], ())
    assert sessions.partitions == 1200
