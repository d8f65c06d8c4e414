"""The broker of ``kwire.testing``: streams groups (KIP-1071)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from streams_truth import BEAT, GROUP, SESSION, Member, bench, given, group, in_capture, lived, settle, topology

from kwire import messages
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.keys import ApiKey


def all_tasks(count: int) -> set[tuple[str, int]]:
    return {(name, number) for name in "01" for number in range(count)}


def test_a_single_member_has_all_tasks_and_the_broker_makes_the_internal_topics() -> None:
    of = bench()
    one = Member(of, "a")
    answer = one.beat()
    assert (answer.error_code, answer.member_epoch, list(answer.status)) == (0, 1, [])
    assert one.has == {"active": all_tasks(4), "standby": set(), "warmup": set()}
    assert {name: len(made.logs) for name, made in of.cluster.topics.items()} == {
        "orders": 4,
        "app-by-length": 4,
        "app-counts-changelog": 4,
    }
    assert of.cluster.topics["app-counts-changelog"].configs == {"cleanup.policy": "compact"}
    assert one.beat().active_tasks is None  # it has been told


def test_a_member_gives_up_before_another_gets() -> None:
    of = bench()
    first, second = Member(of, "a"), Member(of, "b")
    first.beat()
    second.beat()
    assert second.epoch == 2
    assert second.has["active"] == set()
    first.beat()
    assert len(first.has["active"]) == 4
    assert first.epoch == 1  # until it says that it has given up
    second.beat()
    assert second.has["active"] == set()
    assert group(of).state == "Reconciling"
    first.beat(says=True)
    assert first.epoch == 2
    second.beat()
    assert first.has["active"] | second.has["active"] == all_tasks(4)
    assert not first.has["active"] & second.has["active"]
    assert group(of).state == "Stable"


def test_the_assignor_is_sticky_and_balanced() -> None:
    of = bench(5)
    members = [Member(of, name) for name in "abc"]
    for number in range(1, 4):
        settle(*members[:number])
    had = {one.id: one.has["active"] for one in members}
    assert sorted(len(some) for some in had.values()) == [3, 3, 4]
    members[0].beat(member_epoch=-1)
    settle(*members[1:])
    for one in members[1:]:
        assert had[one.id] <= one.has["active"]
    assert set.union(*(one.has["active"] for one in members[1:])) == all_tasks(5)


def test_standby_tasks_are_of_other_processes_and_take_over() -> None:
    of = bench(4, standby="1")
    first, near, other = Member(of, "a", "p"), Member(of, "b", "p"), Member(of, "c", "q")
    settle(first, near, other)
    stateful = {task for task in all_tasks(4) if task[0] == "1"}
    mine = (first.has["active"] | near.has["active"]) & stateful
    assert other.has["standby"] == mine
    assert first.has["standby"] | near.has["standby"] == other.has["active"] & stateful
    first.beat(member_epoch=-1)
    near.beat(member_epoch=-1)
    settle(other)
    assert other.has == {"active": all_tasks(4), "standby": set(), "warmup": set()}


def test_a_task_with_state_moves_when_its_next_member_has_caught_up() -> None:
    of = bench(4, warmup="10")
    first, second = Member(of, "a"), Member(of, "b")
    settle(first)
    settle(first, second)
    warm = set(second.has["warmup"])
    assert warm
    assert all(name == "1" for name, _ in warm)
    assert warm <= first.has["active"]

    def offsets(last: int) -> list[Any]:
        return [BEAT.TaskOffset(subtopology_id=name, partition=number, offset=last) for name, number in sorted(warm)]

    second.beat(task_offsets=offsets(5), task_end_offsets=offsets(50_000))
    settle(first, second)
    assert second.has["warmup"] == warm
    second.beat(task_offsets=offsets(49_000), task_end_offsets=offsets(50_000))
    settle(first, second)
    assert second.has["warmup"] == set()
    assert warm <= second.has["active"]
    assert not warm & first.has["active"]


def test_members_hear_where_others_serve_queries() -> None:
    of = bench(2)
    first, second = Member(of, "a", port=7001), Member(of, "b", port=7002)
    settle(first, second)
    for one in (first, second):
        assert sorted(one.endpoints) == [7001, 7002]
        told = one.endpoints[7001].active_partitions
        reads = {"0": ["orders"], "1": ["app-by-length"]}
        assert {(each.topic, number) for each in told for number in each.partitions} == {
            (topic, number) for name, number in first.has["active"] for topic in reads[name]
        }
        assert one.beat().partitions_by_user_endpoint is None


def test_without_its_source_topics_a_group_has_no_tasks() -> None:
    of = bench()
    one = Member(of, "a", topology=topology(sources=("orders", "bills")))
    answer = one.beat()
    assert [(s.status_code, s.status_detail) for s in answer.status] == [(1, "Source topics bills are missing.")]
    assert one.has["active"] == set()
    assert group(of).state == "NotReady"
    of.cluster.create_topic("bills", 6)
    answer = one.beat()
    assert list(answer.status) == []
    assert one.has["active"] == all_tasks(6)


def test_topics_that_are_read_together_have_the_same_number_of_partitions() -> None:
    of = bench(4)
    of.cluster.create_topic("bills", 3)
    together = BEAT.CopartitionGroup(source_topics=[0], source_topic_regex=[], repartition_source_topics=[0])
    right = topology(source_topics=["bills"], copartition_groups=[together])
    one = Member(of, "a", topology=right)
    one.beat()
    assert len(of.cluster.topics["app-by-length"].logs) == 3
    both = BEAT.CopartitionGroup(source_topics=[0, 1], source_topic_regex=[], repartition_source_topics=[])
    other = topology(source_topics=["bills", "orders"], copartition_groups=[both])
    lone = Member(of, "z", topology=other)
    assert lone.beat().error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY  # of the same epoch
    one.beat(member_epoch=-1)
    del of.cluster.groups[GROUP]
    assert [each.status_code for each in lone.beat().status] == [2]


def test_who_is_silent_or_fenced_joins_anew() -> None:
    of = bench()
    first, second = Member(of, "a"), Member(of, "b")
    settle(first, second)
    assert first.beat(member_epoch=first.epoch + 5).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    for _ in range(4):
        of.wait(SESSION / 2)
        first.beat(says=True)
    assert second.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(first)
    assert first.has["active"] == all_tasks(4)


def test_a_member_whose_answer_was_lost_is_told_again() -> None:
    of = bench()
    first, second = Member(of, "a"), Member(of, "b")
    settle(first)
    second.beat()
    first.beat()
    lost = first.request()
    lost.active_tasks, lost.standby_tasks, lost.warmup_tasks = given(first.has["active"]), [], []
    assert first.client.ask(lost, 1).member_epoch == 2
    answer = first.client.ask(lost, 1)  # again, with the epoch before
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert answer.active_tasks is not None


def test_one_member_can_shut_the_application_down() -> None:
    of = bench()
    first, second = Member(of, "a"), Member(of, "b")
    settle(first, second)
    first.beat(shutdown_application=True)
    assert [one.status_code for one in second.beat().status] == [4]


@pytest.mark.parametrize(
    "wrong",
    [
        {"member_id": ""},
        {"topology": None},
        {"rebalance_timeout_ms": -1},
        {"active_tasks": [BEAT.TaskIds(subtopology_id="0", partitions=[0])]},
        {"member_epoch": -3},
        {"process_id": "x" * 20_000},
        {"task_offsets": [BEAT.TaskOffset(subtopology_id="0", partition=0, offset=0)] * 3_000},
    ],
)
def test_what_no_member_sends_is_refused(wrong: dict[str, Any]) -> None:
    of = bench()
    Member(of, "b").beat()
    assert Member(of, "a").beat(**wrong).error_code == ErrorCode.INVALID_REQUEST


def test_groups_of_other_kinds_and_older_releases_refuse_it() -> None:
    assert ApiKey.STREAMS_GROUP_HEARTBEAT not in bench(release="4.1").cluster.announced
    assert ApiKey.STREAMS_GROUP_HEARTBEAT in bench(release="4.2").cluster.announced
    of = bench()
    client = of.client()
    kind = messages.ConsumerGroupHeartbeatRequest
    joins = kind(group_id=GROUP, member_id="x", subscribed_topic_names=["orders"], topic_partitions=[])
    joins.rebalance_timeout_ms = 1000
    assert client.ask(joins, 1).error_code == 0
    assert Member(of, "a").beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_those_of_members() -> None:
    of = bench()
    one = Member(of, "a")
    one.beat()
    kind = messages.OffsetCommitRequest

    def commit(epoch: int) -> int:
        part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
        asked = kind(group_id=GROUP, member_id="a", generation_id_or_member_epoch=epoch)
        asked.topics = [kind.OffsetCommitRequestTopic(name="orders", partitions=[part])]
        return int(one.client.ask(asked, 9).topics[0].partitions[0].error_code)

    assert commit(one.epoch) == 0
    assert commit(one.epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_group_is_described() -> None:
    of = bench(2, standby="1")
    first, second = Member(of, "a", port=7001), Member(of, "b")
    settle(first, second)
    (told,) = of.client().ask(messages.StreamsGroupDescribeRequest(group_ids=[GROUP]), 1).groups
    assert (told.error_code, told.group_state, told.group_epoch, told.assignor_name) == (0, "Stable", 2, "sticky")
    assert [one.subtopology_id for one in told.topology.subtopologies] == ["0", "1"]
    assert [one.name for one in told.topology.subtopologies[1].state_changelog_topics] == ["app-counts-changelog"]
    for member, one in zip((first, second), told.members, strict=True):
        assert (one.member_id, one.member_epoch, one.process_id) == (member.id, 2, member.process)
        lists = one.assignment.active_tasks, one.assignment.standby_tasks
        for role, listed in zip(("active", "standby"), lists, strict=True):
            assert {(each.subtopology_id, n) for each in listed for n in each.partitions} == member.has[role]
    assert (told.members[0].user_endpoint.host, told.members[0].user_endpoint.port) == ("here", 7001)
    listed = of.client().ask(messages.ListGroupsRequest(), 5).groups
    assert [(one.group_id, one.group_type, one.group_state) for one in listed] == [(GROUP, "streams", "Stable")]


@pytest.mark.parametrize("seed", range(6))
def test_streams_tasks_of_its_capture_are_what_the_broker_knows(seed: int) -> None:
    of = bench(5, standby=str(seed % 2), warmup=str(seed // 2 * 2))
    truth = lived(of, random.Random(seed))
    found = in_capture(of.core.recording.pcapng())
    truth.over()
    assert found == truth.ended
    assert len(found) > 20
