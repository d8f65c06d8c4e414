"""The broker of ``kwire.testing``: groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import Bench, Client
from hypothesis import given
from hypothesis import strategies as st

from kwire import messages
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.consumers import Consumer, Consumers

BEAT = messages.ConsumerGroupHeartbeatRequest


class Member:
    """A consumer that does what it is told."""

    def __init__(self, bench: Bench, number: str, *topics: str) -> None:
        self.client, self.id, self.epoch = bench.client(), number, 0
        self.topics: tuple[str, ...] | None = topics
        self.owned: set[int] = set()
        self.topic_id: Any = None

    def beat(self) -> Any:
        owned = [BEAT.TopicPartitions(topic_id=self.topic_id, partitions=tuple(sorted(self.owned)))]
        request = BEAT(
            group_id="g",
            member_id=self.id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if self.epoch == 0 else -1,
            subscribed_topic_names=None if self.topics is None else list(self.topics),
            topic_partitions=[] if self.epoch == 0 or not self.owned else owned,
        )
        answer = self.client.ask(request, 1)
        if not answer.error_code:
            self.epoch, self.topics = answer.member_epoch, None
            if answer.assignment is not None:
                self.owned = {number for one in answer.assignment.topic_partitions for number in one.partitions}
                self.topic_id = next((one.topic_id for one in answer.assignment.topic_partitions), self.topic_id)
        return answer


def test_a_member_gets_all_partitions() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders", 3)
    member = Member(bench, "a", "orders")
    answer = member.beat()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "a", 1)
    assert answer.heartbeat_interval_ms == 5000
    assert member.owned == {0, 1, 2}
    assert member.beat().assignment is None


def test_a_second_member_gets_what_the_first_has_given_up() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders", 4)
    first, second = Member(bench, "a", "orders"), Member(bench, "b", "orders")
    first.beat()
    second.beat()
    assert second.owned == set()
    assert first.beat().member_epoch == 1  # it has to give two up
    assert len(first.owned) == 2
    assert first.beat().member_epoch == 2
    second.beat()
    assert first.owned | second.owned == {0, 1, 2, 3}
    assert not first.owned & second.owned
    described = first.client.ask(messages.ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    assert (described.group_state, described.group_epoch, len(described.members)) == ("Stable", 2, 2)


def test_who_leaves_or_is_silent_gives_all_back() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders", 2)
    first, second = Member(bench, "a", "orders"), Member(bench, "b", "orders")
    for one in (first, second, first, first, second):
        one.beat()
    assert first.client.ask(BEAT(group_id="g", member_id="a", member_epoch=-1), 1).member_epoch == -1
    for _ in range(2):
        second.beat()
    assert second.owned == {0, 1}
    bench.wait(46)
    assert second.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_are_checked() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    member = Member(bench, "a", "orders")
    member.beat()
    member.epoch = 9
    assert member.beat().error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_new_topic_is_assigned_when_it_is_there() -> None:
    bench = Bench()
    member = Member(bench, "a", "orders")
    member.beat()
    assert member.owned == set()
    bench.cluster.create_topic("orders", 2)
    assert member.beat().member_epoch == 2
    assert member.owned == {0, 1}


def commit(client: Client, **member: Any) -> int:
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = kind.OffsetCommitRequestTopic(name="orders", partitions=[part])
    return int(client.ask(kind(group_id="g", topics=[topic], **member), 9).topics[0].partitions[0].error_code)


def test_offsets_are_committed_by_epoch() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    member = Member(bench, "a", "orders")
    member.beat()
    assert commit(member.client, member_id="a", generation_id_or_member_epoch=1) == 0
    assert commit(member.client, member_id="a", generation_id_or_member_epoch=0) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(member.client) == ErrorCode.UNKNOWN_MEMBER_ID


def test_protocols_are_not_mixed_and_old_releases_have_none() -> None:
    bench = Bench()
    Member(bench, "a", "orders").beat()
    kind = messages.JoinGroupRequest
    request = kind(
        group_id="g",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[kind.JoinGroupRequestProtocol(name="range")],
    )
    assert bench.client().ask(request, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    old = Bench("3.9").client().ask(BEAT(group_id="g", subscribed_topic_names=["orders"]), 0)
    assert old.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"server_assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 3}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], code: int) -> None:
    request = BEAT(**({"group_id": "g", "member_id": "a"} | more))
    assert Bench().client().ask(request, 1).error_code == code


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30), st.integers(1, 7))
def test_no_partition_has_two_owners_and_all_have_one_in_the_end(steps: list[tuple[int, bool]], count: int) -> None:
    bench = Bench()
    bench.cluster.create_topic("orders", count)
    members: dict[int, Member] = {}
    for number, leaves in steps:
        member = members.get(number)
        if member is None:
            member = members[number] = Member(bench, f"m{number}", "orders")
        if leaves and member.epoch > 0:
            member.client.ask(BEAT(group_id="g", member_id=member.id, member_epoch=-1), 1)
            del members[number]
        else:
            member.beat()
        places = [place for one in members.values() for place in one.owned]
        assert len(places) == len(set(places))
    for _ in range(4):
        for one in members.values():
            one.beat()
    if members:
        assert sorted(place for one in members.values() for place in one.owned) == list(range(count))
        sizes = [len(one.owned) for one in members.values()]
        assert max(sizes) - min(sizes) <= 1


def test_the_state_needs_no_sockets() -> None:
    group = Consumers(45.0, 2)
    found = group.heartbeat(BEAT(member_id="a", subscribed_topic_names=["t"]), ("c", "h"), "new", {}, 0.0)
    assert isinstance(found, Consumer)
    assert group.due() == 45.0


def subscribe(bench: Bench, regex: str | None, epoch: int = 0, number: str = "a") -> Any:
    request = BEAT(group_id="g", member_id=number, member_epoch=epoch, subscribed_topic_regex=regex)
    if epoch == 0:
        request.topic_partitions, request.rebalance_timeout_ms = [], 60_000
    return bench.client().ask(request, 1)


def test_an_expression_subscribes_to_topics_that_match_it_as_a_whole() -> None:
    bench = Bench()
    for name in ("orders-a", "orders-b", "my-orders-c"):
        bench.cluster.create_topic(name)
    answer = subscribe(bench, "orders-.*")
    assert answer.error_code == 0
    assert len(answer.assignment.topic_partitions) == 2
    bench.cluster.create_topic("orders-d")
    assert len(subscribe(bench, None, 1).assignment.topic_partitions) == 3
    assert len(subscribe(bench, "", 2).assignment.topic_partitions) == 0
    described = messages.ConsumerGroupDescribeRequest(group_ids=["g"])
    subscribe(bench, "my.*", 2)
    (member,) = bench.client().ask(described, 1).groups[0].members
    assert member.subscribed_topic_regex == "my.*"


@pytest.mark.parametrize("text", ["(", "(a+)+b", ".*.*.*.*x", "a{9}{9}", "(?:a|b)*", "\\1", "x{99999999999999}"])
def test_what_is_no_expression_or_may_take_long_is_refused(text: str) -> None:
    assert subscribe(Bench(), text).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
