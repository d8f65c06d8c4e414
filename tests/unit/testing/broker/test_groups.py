"""The broker of ``kwire.testing``: members of classic groups, and the offsets of groups."""

from __future__ import annotations

from typing import Any

from broker_talk import Bench, Client

from kwire import messages
from kwire.protocol.error_codes import ErrorCode

JOIN = messages.JoinGroupRequest


def join_request(member: str = "", instance: str | None = None, protocols: tuple[str, ...] = ("range",)) -> Any:
    return JOIN(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JOIN.JoinGroupRequestProtocol(name=name, metadata=name.encode()) for name in protocols],
    )


def new_id(client: Client, protocols: tuple[str, ...] = ("range",)) -> str:
    answer = client.ask(join_request(protocols=protocols), 9)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    return str(answer.member_id)


def sync_request(joined: Any, assignments: dict[str, bytes] | None = None) -> Any:
    kind = messages.SyncGroupRequest
    return kind(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[
            kind.SyncGroupRequestAssignment(member_id=name, assignment=data)
            for name, data in (assignments or {}).items()
        ],
    )


def beat(client: Client, joined: Any) -> int:
    request = messages.HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    return int(client.ask(request, 4).error_code)


def alone(bench: Bench) -> tuple[Client, Any]:
    """A group of one member."""
    client = bench.client()
    joined = client.ask(join_request(new_id(client)), 9)
    assert client.ask(sync_request(joined, {joined.member_id: b"all"}), 5).assignment == b"all"
    return client, joined


def test_a_member_joins_alone() -> None:
    bench = Bench()
    client, joined = alone(bench)
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
    assert [one.metadata for one in joined.members] == [b"range"]
    assert beat(client, joined) == 0


def test_two_members_share() -> None:
    bench = Bench()
    first, joined = alone(bench)
    second = bench.client()
    assert second.ask(join_request(new_id(second)), 9) is None
    assert beat(first, joined) == ErrorCode.REBALANCE_IN_PROGRESS
    again = first.ask(join_request(joined.member_id), 9)
    (other,) = second.answers()
    assert again.generation_id == other.generation_id == 2
    assert again.leader == other.leader == joined.member_id
    assert {one.member_id for one in again.members} == {joined.member_id, other.member_id}
    assert list(other.members) == []
    assert second.ask(sync_request(other), 5) is None
    assert first.ask(sync_request(again, {joined.member_id: b"a", other.member_id: b"b"}), 5).assignment == b"a"
    (synced,) = second.answers()
    assert synced.assignment == b"b"


def test_who_is_silent_is_dropped() -> None:
    bench = Bench()
    first, joined = alone(bench)
    bench.wait(9)
    assert beat(first, joined) == 0
    bench.wait(9)
    assert beat(first, joined) == 0
    bench.wait(11)
    assert beat(first, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.cluster.groups["g"].phase.value == "Empty"


def test_the_first_rebalance_waits_for_nobody() -> None:
    bench = Bench()
    first, second = bench.client(), bench.client()
    mine, _ = new_id(first), new_id(second)
    assert first.ask(join_request(mine), 9).generation_id == 1


def test_a_later_rebalance_waits_for_who_was_given_an_id() -> None:
    bench = Bench()
    first, joined = alone(bench)
    second, third = bench.client(), bench.client()
    mine, other = new_id(second), new_id(third)
    assert second.ask(join_request(mine), 9) is None
    assert first.ask(join_request(joined.member_id), 9) is None
    bench.wait(1)
    assert first.answers() == []
    assert third.ask(join_request(other), 9).generation_id == 2
    assert [len(one.answers()) for one in (first, second)] == [1, 1]


def test_who_was_given_an_id_is_not_waited_for_longer_than_its_session() -> None:
    bench = Bench()
    first, joined = alone(bench)
    new_id(bench.client())
    second = bench.client()
    assert second.ask(join_request(new_id(second)), 9) is None
    assert first.ask(join_request(joined.member_id), 9) is None
    bench.wait(11)
    assert len(first.answers()) == 1


def test_who_does_not_join_again_is_left_behind() -> None:
    bench = Bench()
    first, joined = alone(bench)
    second = bench.client()
    assert second.ask(join_request(new_id(second)), 9) is None
    for _ in range(7):  # it says that it is alive, and joins nothing
        bench.wait(9)
        beat(first, joined)
    (other,) = second.answers()
    assert (other.generation_id, other.leader) == (2, other.member_id)
    assert beat(first, joined) == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_before_v4_join_without_an_id() -> None:
    bench = Bench("0.10.1")
    joined = bench.client().ask(join_request(), 1)
    assert (joined.error_code, joined.generation_id) == (0, 1)


def test_a_static_member_comes_back_without_a_rebalance() -> None:
    bench = Bench()
    client = bench.client()
    joined = client.ask(join_request(instance="one"), 9)
    client.ask(sync_request(joined, {joined.member_id: b"all"}), 5)
    back = bench.client()
    again = back.ask(join_request(instance="one"), 9)
    assert (again.generation_id, again.skip_assignment) == (1, True)
    assert again.member_id != joined.member_id
    assert back.ask(sync_request(again), 5).assignment == b"all"
    request = messages.HeartbeatRequest(
        group_id="g", generation_id=1, member_id=joined.member_id, group_instance_id="one"
    )
    assert client.ask(request, 4).error_code == ErrorCode.FENCED_INSTANCE_ID


def test_protocols_must_have_one_in_common() -> None:
    bench = Bench()
    alone(bench)
    other = bench.client()
    refused = other.ask(join_request(protocols=("sticky",)), 9)
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_most_like_best_is_chosen() -> None:
    bench = Bench(rebalance_delay=3.0)
    clients = [bench.client() for _ in range(3)]
    for client, protocols in zip(clients, (("a", "b"), ("b", "a"), ("b", "a", "c")), strict=True):
        request = join_request(new_id(client, protocols), protocols=protocols)
        assert client.ask(request, 9) is None
    bench.wait(3)
    assert [client.answers()[0].protocol_name for client in clients] == ["b", "b", "b"]


def test_who_leaves_is_gone() -> None:
    bench = Bench()
    client, joined = alone(bench)
    kind = messages.LeaveGroupRequest
    answer = client.ask(kind(group_id="g", members=[kind.MemberIdentity(member_id=joined.member_id)]), 5)
    assert [one.error_code for one in answer.members] == [0]
    assert beat(client, joined) == ErrorCode.UNKNOWN_MEMBER_ID
    described = client.ask(messages.DescribeGroupsRequest(groups=["g", "none"]), 6).groups
    assert [(one.group_state, one.error_code) for one in described] == [
        ("Empty", 0),
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_a_generation_that_is_over_is_refused() -> None:
    bench = Bench()
    client, joined = alone(bench)
    joined.generation_id = 7
    assert beat(client, joined) == ErrorCode.ILLEGAL_GENERATION


def commit(client: Client, offset: int, version: int, **member: Any) -> int:
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
    topic = kind.OffsetCommitRequestTopic(name="orders", partitions=[part])
    return int(client.ask(kind(group_id="g", topics=[topic], **member), version).topics[0].partitions[0].error_code)


def test_offsets_are_committed_and_fetched_in_every_version() -> None:
    for release in ("0.10.1", "4.1"):
        bench = Bench(release)
        bench.cluster.create_topic("orders")
        client = bench.client()
        for version in bench.cluster.accepted[8]:
            assert commit(client, version, version) == 0
            kind = messages.OffsetFetchRequest
            for reading in bench.cluster.accepted[9]:
                if reading >= 8:
                    topics = [kind.OffsetFetchRequestTopics(name="orders", partition_indexes=(0, 1))]
                    answer = client.ask(
                        kind(groups=[kind.OffsetFetchRequestGroup(group_id="g", topics=topics)]), reading
                    )
                    parts = answer.groups[0].topics[0].partitions
                else:
                    asked = [kind.OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 1))]
                    parts = client.ask(kind(group_id="g", topics=asked), reading).topics[0].partitions
                assert [(one.committed_offset, one.metadata) for one in parts] == [(version, "m"), (-1, "")]


def test_only_members_commit_while_there_are_some() -> None:
    bench = Bench()
    bench.cluster.create_topic("orders")
    client, joined = alone(bench)
    assert commit(client, 5, 9) == ErrorCode.UNKNOWN_MEMBER_ID
    mine = {"member_id": joined.member_id, "generation_id_or_member_epoch": 1}
    assert commit(client, 5, 9, **mine) == 0
    assert commit(client, 5, 9, **(mine | {"generation_id_or_member_epoch": 2})) == ErrorCode.ILLEGAL_GENERATION


def test_another_node_coordinates() -> None:
    bench = Bench(nodes=2)
    right = bench.cluster.coordinator("g")
    found = bench.client().ask(messages.FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0]
    assert found.node_id == right.id
    wrong = bench.client(bench.cluster.nodes.index(right) - 1)
    assert wrong.ask(join_request(), 9).error_code == ErrorCode.NOT_COORDINATOR
