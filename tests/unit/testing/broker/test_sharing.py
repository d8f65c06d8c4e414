"""The broker of ``kwire.testing``: share groups (KIP-932)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from broker_talk import BATCH, Bench, Client, Producer, produce
from hypothesis import given
from hypothesis import strategies as st

from kwire import messages, records
from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.logs import Log
from kwire.testing.broker.sharing import MOST_DELIVERIES, SharePartition

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BEAT, FETCH, ACK = messages.ShareGroupHeartbeatRequest, messages.ShareFetchRequest, messages.ShareAcknowledgeRequest


def bench() -> Bench:
    """A cluster with a topic, and a group that reads from its begin."""
    made = Bench("4.4")
    made.cluster.create_topic("orders", 1)
    made.cluster.group_configs["g"] = {"share.auto.offset.reset": "earliest"}
    return made


class Member:
    """A member of the group ``g``."""

    def __init__(self, of: Bench, number: str) -> None:
        self.client: Client = of.client()
        self.id, self.epoch, self.session = number, 0, 0
        self.topic = of.cluster.topics["orders"]
        self.beat(["orders"])

    def beat(self, topics: list[str] | None = None, epoch: int | None = None) -> Any:
        wanted = self.epoch if epoch is None else epoch
        answer = self.client.ask(
            BEAT(group_id="g", member_id=self.id, member_epoch=wanted, subscribed_topic_names=topics), 1
        )
        self.epoch = answer.member_epoch
        return answer

    def fetch(self, *acks: tuple[int, int, int], most: int = 500, wait: int = 0, epoch: int | None = None) -> Any:
        part = FETCH.FetchPartition(partition_index=0)
        part.acknowledgement_batches = [
            FETCH.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[kind])
            for first, last, kind in acks
        ]
        request = FETCH(
            group_id="g",
            member_id=self.id,
            share_session_epoch=self.session if epoch is None else epoch,
            max_wait_ms=wait,
            min_bytes=1,
            max_records=most,
            batch_size=most,
            topics=[FETCH.FetchTopic(topic_id=self.topic.id, partitions=[part])],
        )
        self.session += 1
        return self.client.ask(request, 1)

    def renew(self, first: int, last: int, *, by_fetch: bool, says: bool = True, **limits: int) -> Any:
        """The answer to a request that renews locks."""
        kind = FETCH if by_fetch else ACK
        batch = kind.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=[RENEW])
        request: Any = kind(group_id="g", member_id=self.id, share_session_epoch=self.session, is_renew_ack=says)
        if by_fetch:
            part: Any = FETCH.FetchPartition(partition_index=0, acknowledgement_batches=[batch])
            request.topics = [FETCH.FetchTopic(topic_id=self.topic.id, partitions=[part])]
            request.max_bytes = limits.get("max_bytes", 0)
        else:
            part = ACK.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
            request.topics = [ACK.AcknowledgeTopic(topic_id=self.topic.id, partitions=[part])]
        answer = self.client.ask(request, 2)
        self.session += 0 if answer.error_code else 1
        return answer

    def got(self, *acks: tuple[int, int, int], most: int = 500) -> list[tuple[int, int, int]]:
        answer = self.fetch(*acks, most=most)
        assert answer.error_code == 0
        return acquired(answer)

    def acknowledge(self, first: int, last: int, *types: int) -> int:
        batch = ACK.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        part = ACK.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        topic = ACK.AcknowledgeTopic(topic_id=self.topic.id, partitions=[part])
        request = ACK(group_id="g", member_id=self.id, share_session_epoch=self.session, topics=[topic])
        self.session += 1
        answer = self.client.ask(request, 1)
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    parts = [part for one in answer.responses for part in one.partitions]
    return [(one.first_offset, one.last_offset, one.delivery_count) for part in parts for one in part.acquired_records]


def write(of: Bench, times: int = 1) -> None:
    for _ in range(times):
        assert produce(of.client(), of.cluster.topics["orders"], BATCH, 9).error_code == 0


def test_a_member_is_told_its_partitions_once() -> None:
    one = Member(bench(), "a")
    assert one.epoch == 1
    assert one.beat(["orders"]).assignment is None
    answer = one.beat(["orders"], epoch=0)
    assert [list(part.partitions) for part in answer.assignment.topic_partitions] == [[0]]


def test_each_record_goes_to_one_member() -> None:
    of = bench()
    write(of, 2)
    first, second = Member(of, "a"), Member(of, "b")
    answer = first.fetch(most=1)
    assert acquired(answer) == [(0, 2, 1)]
    (part,) = answer.responses[0].partitions
    assert [one.offset for batch in records.decode(part.records) for one in batch.records] == [0, 1, 2]
    assert second.got() == [(3, 5, 1)]
    assert first.got() == []


def test_what_is_released_is_delivered_again_and_what_is_rejected_is_not() -> None:
    of = bench()
    write(of)
    one = Member(of, "a")
    assert one.got() == [(0, 2, 1)]
    assert one.acknowledge(0, 2, ACCEPT, RELEASE, REJECT) == 0
    assert one.got() == [(1, 1, 2)]
    assert one.acknowledge(1, 1, ACCEPT) == 0
    assert one.got() == []
    assert of.cluster.groups["g"].share.partitions[one.topic.id, 0].start == 3  # type: ignore[union-attr]


def test_acknowledgements_travel_with_the_next_fetch() -> None:
    of = bench()
    write(of, 2)
    one = Member(of, "a")
    assert one.got(most=1) == [(0, 2, 1)]
    assert one.got((0, 1, ACCEPT), (2, 2, RELEASE), most=1) == [(2, 2, 2)]


def test_a_record_is_delivered_some_times_only() -> None:
    of = bench()
    write(of)
    one = Member(of, "a")
    for count in range(1, MOST_DELIVERIES + 1):
        assert one.got() == [(0, 2, count)]
        assert one.acknowledge(0, 2, RELEASE) == 0
    assert one.got() == []


def test_a_lock_ends() -> None:
    of = bench()
    write(of)
    first, second = Member(of, "a"), Member(of, "b")
    assert first.got() == [(0, 2, 1)]
    of.wait(29)
    assert second.got() == []
    of.wait(2)
    assert second.got() == [(0, 2, 2)]
    assert first.acknowledge(0, 0, ACCEPT) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("how", ["leaves", "ends its session", "is silent"])
def test_who_goes_gives_back(how: str) -> None:
    of = bench()
    write(of)
    first, second = Member(of, "a"), Member(of, "b")
    assert first.got() == [(0, 2, 1)]
    if how == "leaves":
        assert first.beat(epoch=-1).error_code == 0
    elif how == "ends its session":
        assert first.fetch(epoch=-1).error_code == 0
    else:
        of.cluster.settings = of.cluster.settings.__class__(consumer_session=10.0)
        of.wait(9)
        second.beat()
        of.wait(2)
    assert second.got() == [(0, 2, 2)]


def test_a_fetch_waits_for_records() -> None:
    of = bench()
    one = Member(of, "a")
    assert one.fetch(wait=500) is None
    write(of)
    (answer,) = one.client.answers()
    assert acquired(answer) == [(0, 2, 1)]
    assert one.fetch(wait=500) is None
    of.wait(1)
    (answer,) = one.client.answers()
    assert acquired(answer) == []


def test_markers_are_nobodys() -> None:
    of = bench()
    producer = Producer(of)
    producer.add("orders")
    assert producer.write(of.cluster.topics["orders"]) == 0
    producer.end(True)
    one = Member(of, "a")
    assert one.got() == [(0, 2, 1)]
    assert one.acknowledge(0, 2, ACCEPT) == 0
    assert of.cluster.groups["g"].share.partitions[one.topic.id, 0].start == 4  # type: ignore[union-attr]


def test_a_group_begins_at_the_end_unless_it_is_configured() -> None:
    of = bench()
    of.cluster.group_configs.clear()
    write(of)
    one = Member(of, "a")
    assert one.got() == []
    write(of)
    assert one.got() == [(3, 5, 1)]


def test_sessions_count() -> None:
    of = bench()
    one = Member(of, "a")
    assert one.fetch(epoch=3).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    one.session = 0
    assert one.fetch().error_code == 0
    assert one.fetch(epoch=7).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    one.id = "nobody"
    assert one.fetch(epoch=0).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_other_groups_and_share_groups_do_not_mix() -> None:
    of = bench()
    Member(of, "a")
    kind = messages.JoinGroupRequest
    join = kind(group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="consumer")
    join.protocols = [kind.JoinGroupRequestProtocol(name="range", metadata=b"")]
    assert of.client().ask(join, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    listed = of.client().ask(messages.ListGroupsRequest(types_filter=["share"]), 5)
    assert [(one.group_id, one.group_type, one.group_state) for one in listed.groups] == [("g", "share", "Stable")]
    (described,) = of.client().ask(messages.ShareGroupDescribeRequest(group_ids=["g"]), 1).groups
    assert [one.member_id for one in described.members] == ["a"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from(["acquire", "ack", "renew", "write", "drop", "late"]), st.integers(0, 12)
    ),
    max_size=20,
)


@given(STEPS)
def test_no_record_has_two_members_and_none_is_lost(steps: list[tuple[str, str, int]]) -> None:
    log = Log("orders", 0, [1], 1)
    part = SharePartition(log, 0)
    holds: dict[str, set[int]] = {"a": set(), "b": set()}
    done: set[int] = set()
    times: Counter[int] = Counter()
    now = 0.0
    for member, what, number in steps:
        if what == "write":
            log.appended(BATCH)
        elif what == "acquire":
            got = {at for one in part.acquire(member, number, now) for at in range(one.first, one.last + 1)}
            assert not got & (done | holds["a"] | holds["b"])
            holds[member] |= got
            times.update(got)
        elif what == "ack":
            kind = number % 3 + 1
            code = part.acknowledge(member, number, number, [kind], now)
            assert (code == 0) == (number in holds[member])
            if code == 0:
                holds[member].discard(number)
                done |= {number} if kind != RELEASE else set()
        elif what == "renew":
            assert (part.acknowledge(member, number, number, [RENEW], now) == 0) == (number in holds[member])
        elif what == "drop":
            part.drop(member, now)
            holds[member].clear()
        else:
            now += 31
            part.drop(None, now)
            holds = {"a": set(), "b": set()}
        assert all(at in done or at >= part.start or times[at] == MOST_DELIVERIES for at in range(log.end))
        assert part.start <= log.end


def test_administrators_see_set_and_forget_where_a_group_begins() -> None:
    of = bench()
    write(of, 2)
    one = Member(of, "a")
    assert one.got() == [(0, 5, 1)]
    assert one.acknowledge(0, 0, ACCEPT) == 0
    assert one.acknowledge(2, 2, ACCEPT) == 0
    describe, alter, delete = (
        messages.DescribeShareGroupOffsetsRequest,
        messages.AlterShareGroupOffsetsRequest,
        messages.DeleteShareGroupOffsetsRequest,
    )
    client = of.client()

    def told(topics: Any, group: str = "g") -> Any:
        asked = describe(groups=[describe.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)])
        (found,) = client.ask(asked, 1).groups
        parts = [part for topic in found.topics for part in topic.partitions]
        return found.error_code, [(part.partition_index, part.start_offset, part.lag) for part in parts]

    named = [describe.DescribeShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[0, 9])]
    assert told(None) == (0, [(0, 1, 4)])
    assert told(named) == (0, [(0, 1, 4), (9, -1, -1)])
    assert told(None, "other") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert told(named, "other") == (0, [(0, -1, -1), (9, -1, -1)])
    part = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=3)
    begin = alter(
        group_id="g", topics=[alter.AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[part])]
    )
    forget = delete(group_id="g", topics=[delete.DeleteShareGroupOffsetsRequestTopic(topic_name="orders")])
    assert client.ask(begin, 0).error_code == ErrorCode.NON_EMPTY_GROUP
    assert client.ask(forget, 0).error_code == ErrorCode.NON_EMPTY_GROUP
    assert one.beat(["orders"], epoch=-1).error_code == 0
    assert client.ask(begin, 0).responses[0].partitions[0].error_code == 0
    assert told(None) == (0, [(0, 3, 3)])
    assert client.ask(forget, 0).responses[0].error_code == 0
    assert told(None) == (0, [])


@pytest.mark.parametrize("by_fetch", [False, True])
def test_a_lock_that_is_renewed_begins_anew(by_fetch: bool) -> None:
    of = bench()
    write(of)
    first, second = Member(of, "a"), Member(of, "b")
    assert first.got() == [(0, 2, 1)]
    for _ in range(3):  # also beyond the time of one lock
        for _ in range(2):
            of.wait(10)
            first.beat()
            second.beat()
        answer = first.renew(0, 1, by_fetch=by_fetch)
        (part,) = answer.responses[0].partitions
        assert (part.acknowledge_error_code if by_fetch else part.error_code) == 0
        assert answer.acquisition_lock_timeout_ms == 30_000
        if by_fetch:
            assert not part.acquired_records
    assert second.got() == [(2, 2, 2)]  # nobody renewed that
    assert first.acknowledge(0, 1, ACCEPT) == 0
    (part,) = first.renew(0, 0, by_fetch=by_fetch).responses[0].partitions
    assert (part.acknowledge_error_code if by_fetch else part.error_code) == ErrorCode.INVALID_RECORD_STATE


def test_a_request_that_renews_says_so_and_fetches_nothing() -> None:
    of = bench()
    write(of)
    one = Member(of, "a")
    assert one.got() == [(0, 2, 1)]
    assert one.renew(0, 0, by_fetch=True, max_bytes=1).error_code == ErrorCode.INVALID_REQUEST
    (part,) = one.renew(0, 0, by_fetch=False, says=False).responses[0].partitions
    assert part.error_code == ErrorCode.INVALID_REQUEST


def test_the_mode_record_limit_keeps_to_the_number_of_records() -> None:
    of = bench()
    write(of)
    one = Member(of, "a")
    request = FETCH(group_id="g", member_id="a", max_records=2, batch_size=2, min_bytes=1, share_acquire_mode=1)
    request.topics = [FETCH.FetchTopic(topic_id=one.topic.id, partitions=[FETCH.FetchPartition(partition_index=0)])]
    assert acquired(one.client.ask(request, 2)) == [(0, 1, 1)]


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_what_a_group_reads_of_transactions_is_configured(isolation: str, committed: bool) -> None:
    of = bench()
    of.cluster.group_configs["g"]["share.isolation.level"] = isolation
    one = Member(of, "a")
    assert one.got() == []
    writer = Producer(of)
    topic = of.cluster.topics["orders"]
    writer.add("orders")
    writer.write(topic)
    write(of)  # behind it, without a transaction
    first = one.got()
    assert first == ([(0, 5, 1)] if isolation == "read_uncommitted" else [])
    writer.end(committed)
    later = [] if first else [(0, 5, 1)] if committed else [(3, 5, 1)]
    assert one.got() == later
    assert one.got() == []
