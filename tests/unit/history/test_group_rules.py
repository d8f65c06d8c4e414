"""Rules of the history of groups, one by one: who fenced whom, moved coordinators, refused commits, late heartbeats."""

from __future__ import annotations

import json
import struct
from typing import Any
from uuid import UUID

import pytest
from made_captures import read
from packets import Connection, pcap

import kwire
from kwire import messages
from kwire.history import groups
from kwire.history.fold import Story
from kwire.history.groups import GROUPS
from kwire.history.members import Member, listed
from kwire.history.steps import Step, kind_of
from kwire.protocol.embedded import ASSIGNMENT, encode_embedded
from kwire.protocol.error_codes import ErrorCode

SECOND = 1_000_000_000
TOPIC = UUID(int=7)
Row = dict[str, Any]


class Talk:
    """Exchanges with the coordinator of a group, one after the other."""

    def __init__(self) -> None:
        self.story = Story(GROUPS)
        self.frame = 0
        self.now = 0.0
        self.node = 1
        self.timed = True

    def _take(self, name: str, body: Any, response: bool, id_: int, client: str) -> list[Row]:
        rows: list[Row] = []
        api = body.SCHEMA.api_key
        for owner, place, said in GROUPS.reads[kind_of(api, response)](body, lambda _: "orders"):
            now = int(self.now * SECOND) if self.timed else None
            of_frame = ("x", 1, self.frame, now, ("h", 1, client), (f"b{self.node}", 9092))
            step = Step(*of_frame, response, api, 9, id_, 99, owner, place, said)
            rows += self.story.take(step)
        self.frame += 1
        return rows

    def ask(self, api: str, asked: dict[str, Any], told: dict[str, Any] | None = None, after: float = 1.0) -> list[Row]:
        """A request, ``after`` so many seconds, and its answer; None: there is none."""
        self.now += after
        id_ = self.frame
        rows = self._take(api, getattr(messages, f"{api}Request")(**asked), False, id_, "c")
        if told is not None:
            rows += self._take(api, getattr(messages, f"{api}Response")(**told), True, id_, "c")
        return rows

    def join(self, member: str, generation: int, *, after: float = 1.0, **more: Any) -> list[Row]:
        leads = {name: more.pop(name) for name in ("leader", "members") if name in more}
        asked = {"group_id": "g", "member_id": "" if "group_instance_id" in more else member, **more}
        asked |= {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer"}
        told = {"generation_id": generation, "member_id": member, "protocol_name": "range", **leads}
        return self.ask("JoinGroup", asked, told, after)

    def sync(self, member: str, generation: int, *parts: int) -> list[Row]:
        has = encode_embedded(
            ASSIGNMENT,
            {
                "version": 0,
                "assigned_partitions": [{"topic": "t", "partitions": list(parts)}] if parts else [],
                "user_data": None,
            },
        )
        asked = {"group_id": "g", "generation_id": generation, "member_id": member}
        return self.ask("SyncGroup", asked, {"assignment": has, "protocol_name": "range", "protocol_type": "consumer"})

    def beat(self, member: str, generation: int, code: int = 0, after: float = 1.0, **more: Any) -> list[Row]:
        asked = {"group_id": "g", "generation_id": generation, "member_id": member, **more}
        return self.ask("Heartbeat", asked, {"error_code": code}, after)

    def consumer(
        self, member: str, epoch: int, answer: int, code: int = 0, after: float = 1.0, **more: Any
    ) -> list[Row]:
        kind = messages.ConsumerGroupHeartbeatResponse
        told: dict[str, Any] = {"member_id": member, "member_epoch": answer, "error_code": code}
        has = more.pop("has", None)
        if has is not None:
            parts = [kind.TopicPartitions(topic_id=TOPIC, partitions=has)] if has else []
            told["assignment"] = kind.Assignment(topic_partitions=parts)
        asked = {"group_id": "g", "member_id": member, "member_epoch": epoch, **more}
        return self.ask("ConsumerGroupHeartbeat", asked, {**told, "heartbeat_interval_ms": 5000}, after)


def brief(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["event"], row.get("member_id"), row.get("cause")) for row in rows]


@pytest.fixture
def talk() -> Talk:
    """A classic group of one member, in generation 1."""
    made = Talk()
    assert brief(made.join("m1", 1)) == [
        ("rebalance_began", None, "join"),
        ("epoch_bumped", None, "join"),
        ("joined", "m1", None),
    ]
    assert brief(made.sync("m1", 1, 0, 1)) == [
        ("rebalance_ended", None, "join"),
        ("synced", "m1", None),
        ("assigned", "m1", "join"),
    ]
    return made


def test_a_static_member_is_fenced_by_the_one_with_its_name() -> None:
    talk = Talk()
    talk.join("m1", 1, group_instance_id="i")
    talk.sync("m1", 1, 0)
    frame = talk.frame
    talk.join("m2", 1, group_instance_id="i")
    (row,) = talk.beat("m1", 1, ErrorCode.FENCED_INSTANCE_ID, group_instance_id="i")
    assert (row["event"], row["error_name"], row["cause"]) == ("fenced", "FENCED_INSTANCE_ID", "instance")
    assert (row["cause_member_id"], row["cause_frame"]) == ("m2", frame)


def test_a_coordinator_moves_once_whoever_says_it(talk: Talk) -> None:
    talk.beat("m1", 1)
    (row,) = talk.beat("m1", 1, ErrorCode.NOT_COORDINATOR)
    assert (row["event"], row["cause"], row["detail"]) == (
        "coordinator_moved",
        "coordinator",
        "b1:9092 is not it any more",
    )
    assert talk.beat("m1", 1, ErrorCode.NOT_COORDINATOR) == []
    one = messages.FindCoordinatorResponse.Coordinator(key="g", node_id=2, host="b2", port=9092)
    find = {"coordinator_keys": ["g"]}
    assert talk.ask("FindCoordinator", find, {"coordinators": [one]}) == []
    talk.node = 2
    assert talk.beat("m1", 1) == []
    one.node_id, one.host = 3, "b3"
    (row,) = talk.ask("FindCoordinator", find, {"coordinators": [one]})
    assert (row["event"], row["detail"]) == ("coordinator_moved", "node 3 (b3:9092) after node 2")
    # A transactional id of the same name.
    one.node_id = 4
    assert talk.ask("FindCoordinator", {**find, "key_type": 1}, {"coordinators": [one]}) == []
    assert talk.ask("FindCoordinator", {"key": "g", "key_type": 1}, {"node_id": 5, "host": "b", "port": 1}) == []


def test_a_commit_that_is_refused_has_the_rebalance_as_its_cause(talk: Talk) -> None:
    frame = talk.frame
    talk.ask("JoinGroup", {"group_id": "g", "protocol_type": "consumer", "session_timeout_ms": 10_000})
    kind = messages.OffsetCommitResponse
    parts = [kind.OffsetCommitResponsePartition(partition_index=k, error_code=27) for k in (0, 1)]
    told = {"topics": [kind.OffsetCommitResponseTopic(name="t", partitions=parts)]}
    asked = {"group_id": "g", "member_id": "m1", "generation_id_or_member_epoch": 1}
    assert brief(talk.beat("m1", 1, ErrorCode.REBALANCE_IN_PROGRESS)) == [("rebalance_began", None, "join")]
    (row,) = talk.ask("OffsetCommit", asked, told)
    assert (row["event"], row["error_name"], row["detail"]) == (
        "commit_refused",
        "REBALANCE_IN_PROGRESS",
        "2 partitions",
    )
    assert (row["cause"], row["cause_frame"]) == ("join", frame)
    parts[0].error_code = parts[1].error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
    (row,) = talk.ask("OffsetCommit", asked, told)
    assert row.get("cause") is None


def test_heartbeats_are_late_after_the_session_timeout_and_commits_are_signs_of_life(talk: Talk) -> None:
    assert talk.beat("m1", 1, after=9.9) == []
    (row,) = talk.beat("m1", 1, after=10.1)
    assert (row["event"], row["duration_ms"], row["detail"]) == ("heartbeat_late", 10_100.0, "allowed: 10 s")
    talk.ask("OffsetCommit", {"group_id": "g", "member_id": "m1", "generation_id_or_member_epoch": 1}, None, 9)
    assert talk.beat("m1", 1, after=9) == []


def test_a_member_that_does_not_follow_is_gone_with_its_rebalance_timeout(talk: Talk) -> None:
    talk.join("m2", 2)
    talk.sync("m2", 2, 1)
    # The first one heard of it, and did not join within 30 s.
    for _ in range(4):
        talk.beat("m1", 1, ErrorCode.REBALANCE_IN_PROGRESS, after=9)
    (row,) = talk.beat("m1", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    assert (row["event"], row["error_name"]) == ("fenced", "UNKNOWN_MEMBER_ID")
    assert [one["partition"] for one in row["lost"]] == [0, 1]


@pytest.mark.parametrize(("beats", "cause"), [(4, "rebalance_timeout"), (2, "not_in_capture")])
def test_a_member_that_is_missing_in_the_next_generation_has_the_rebalance_timeout_as_its_cause(
    talk: Talk, beats: int, cause: str
) -> None:
    """Which is 30 s, and the cause only once they are over. Its heartbeats show that its session is not."""
    for _ in range(1 + beats):
        talk.beat("m1", 1, ErrorCode.REBALANCE_IN_PROGRESS, after=9)
    listed = [messages.JoinGroupResponse.JoinGroupResponseMember(member_id="m2")]
    rows = talk.join("m2", 2, leader="m2", members=listed)
    assert ("left", "m1", cause) in brief(rows)


def test_an_answer_of_an_earlier_generation_that_is_read_late_changes_nothing(talk: Talk) -> None:
    # Of 100 random histories with losses, one said that a member of generation 6 had left: it was not in the list of 5.
    both = [messages.JoinGroupResponse.JoinGroupResponseMember(member_id=one) for one in ("a", "b")]
    talk.join("a", 4, leader="a", members=both)
    talk.join("b", 6)
    assert [row["event"] for row in talk.sync("b", 6, 1)] == ["rebalance_ended", "synced", "assigned"]
    late = talk.join("a", 5, leader="a", members=both[:1])
    late += talk.sync("a", 5, 0)
    assert [(row["event"], row["member_id"], row["epoch"]) for row in late] == [
        ("rejoined", "a", 5),
        ("synced", "a", 5),
    ]
    # The group is as it was.
    now = talk.join("a", 6, leader="a", members=both)
    assert [(row["event"], row["member_id"], row["epoch"]) for row in now] == [("rejoined", "a", 6)]


def test_members_of_the_newer_protocol_are_late_after_three_intervals_and_removed_after_nine() -> None:
    talk = Talk()
    talk.consumer("m1", 0, 1, has=[0, 1])
    owns = [messages.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC, partitions=[0, 1])]
    assert brief(talk.consumer("m1", 1, 1, topic_partitions=owns)) == [
        ("synced", "m1", None),
        ("rebalance_ended", None, "join"),
    ]
    talk.consumer("m2", 0, 2, has=[])
    assert talk.consumer("m1", 1, 1, after=13) == []
    (row, *_) = talk.consumer("m1", 1, 1, after=15)
    assert (row["event"], row["detail"]) == ("heartbeat_late", "allowed: 15 s")
    talk.consumer("m1", 1, 2, after=4)
    # m2 is silent for more than 45 s, and the epoch grows.
    rows = [row for _ in range(4) for row in talk.consumer("m1", 2, 2, after=5)]
    assert not [row for row in rows if row["event"] == "rebalance_began"]
    began = [row for row in talk.consumer("m1", 2, 3, has=[0, 1]) if row["event"] == "rebalance_began"]
    assert [(row["cause"], row["cause_member_id"]) for row in began] == [("session_timeout", "m2")]


def test_a_capture_that_begins_within_the_life_of_a_group_does_not_guess() -> None:
    talk = Talk()
    assert talk.beat("m1", 7) == []
    (row,) = talk.beat("m1", 7, ErrorCode.REBALANCE_IN_PROGRESS)
    assert (row["event"], row["cause"], row["epoch"]) == ("rebalance_began", "not_in_capture", 7)
    talk = Talk()
    (row,) = talk.sync("m1", 7, 0)[1:]
    # What it had before is not known.
    assert (row["event"], row.get("gained"), row["partitions"]) == ("assigned", None, 1)


def test_members_of_one_group_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_MEMBERS", 3)
    talk = Talk()
    rows = [row for number in range(5) for row in talk.consumer(f"m{number}", 5, 5)]
    assert [(row["member_id"], row["status"]) for row in rows] == [("m0", "given_up"), ("m1", "given_up")]
    assert rows[0]["error"] == "more than 3 members of one group are kept"


def test_a_state_of_times_before_1970_goes_on() -> None:
    """Where the clock of a machine was wrong."""
    talk = Talk()
    talk.now = -1000.0
    talk.join("m1", 1)
    state = json.loads(json.dumps(talk.story.save()))
    talk.story = Story(GROUPS)
    talk.story.restore(state)
    assert json.loads(json.dumps(talk.story.save())) == state
    assert [row["event"] for row in talk.sync("m1", 1, 0)] == ["rebalance_ended", "synced", "assigned"]


def test_who_is_in_no_list_of_the_generation_before_joins_and_was_none(talk: Talk) -> None:
    # Its first JoinGroup, by which it got its id, is not in the capture.
    talk.join("m1", 2, leader="m1", members=[messages.JoinGroupResponse.JoinGroupResponseMember(member_id="m1")])
    talk.sync("m1", 2, 0, 1)
    assert brief(talk.join("m2", 3)) == [
        ("rebalance_began", None, "join"),
        ("epoch_bumped", None, "join"),
        ("joined", "m2", None),
    ]
    (*_, row) = talk.sync("m2", 3, 1)
    assert row["gained"] is not None


def members_of(*numbers: str) -> list[Any]:
    kind = messages.JoinGroupResponse.JoinGroupResponseMember
    return [kind(member_id=one) for one in numbers]


def test_a_group_that_was_removed_begins_anew_though_its_generation_is_the_same() -> None:
    talk = Talk()
    talk.join("m1", 1, leader="m1", members=members_of("m1"))
    talk.sync("m1", 1, 0)
    asked = {"group_id": "g", "members": [messages.LeaveGroupRequest.MemberIdentity(member_id="m1")]}
    told = messages.LeaveGroupResponse.MemberResponse(member_id="m1")
    assert brief(talk.ask("LeaveGroup", asked, {"members": [told]})) == [("left", "m1", "leave")]
    frame = talk.frame
    rows = talk.join("m2", 1, leader="m2", members=members_of("m2"), after=600)
    assert brief(rows) == [("rebalance_began", None, "join"), ("epoch_bumped", None, "join"), ("joined", "m2", None)]
    assert rows[0]["cause_frame"] == frame
    rows = talk.sync("m2", 1, 0)
    assert [row["cause_frame"] for row in rows if row.get("cause")] == [frame, frame]


def test_a_group_of_the_consumer_protocol_that_was_removed_begins_anew() -> None:
    talk = Talk()
    talk.consumer("m1", 0, 9, has=[0])
    talk.consumer("m1", 9, 9, topic_partitions=[partitions_of(0)])
    talk.consumer("m1", -1, -1)
    frame = talk.frame
    rows = talk.consumer("m2", 0, 1, has=[0], after=600)
    assert brief(rows) == [("rebalance_began", None, "join"), ("joined", "m2", None), ("assigned", "m2", "join")]
    assert {row["cause_frame"] for row in rows if row.get("cause")} == {frame}
    rows = talk.consumer("m2", 1, 1, topic_partitions=[partitions_of(0)])
    assert brief(rows) == [("synced", "m2", None), ("rebalance_ended", None, "join")]


def partitions_of(*numbers: int) -> Any:
    return messages.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=TOPIC, partitions=list(numbers))


def test_who_was_removed_is_fenced_for_that(talk: Talk) -> None:
    frame = talk.frame
    asked = {"group_id": "g", "members": [messages.LeaveGroupRequest.MemberIdentity(member_id="m1")]}
    talk.ask("LeaveGroup", asked, {"members": [messages.LeaveGroupResponse.MemberResponse(member_id="m1")]})
    (row,) = talk.beat("m1", 1, ErrorCode.UNKNOWN_MEMBER_ID)
    assert (row["event"], row["cause"], row["cause_frame"]) == ("fenced", "leave", frame)


def test_without_times_an_assignment_waits_for_its_member_all_the_same() -> None:
    talk = Talk()
    talk.timed = False
    assert [event for event, *_ in brief(talk.consumer("m1", 0, 1, has=[0]))] == [
        "rebalance_began", "joined", "assigned"
    ]  # fmt: skip
    rows = talk.consumer("m1", 1, 1, topic_partitions=[partitions_of(0)])
    assert [event for event, *_ in brief(rows)] == ["synced", "rebalance_ended"]
    assert {row.get("duration_ms") for row in rows} == {None}


def test_each_of_many_members_is_looked_at_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    plain = Member.is_silent

    def is_silent(self: Member, now: int | None) -> bool:
        nonlocal looked
        looked += 1
        return plain(self, now)

    monkeypatch.setattr(Member, "is_silent", is_silent)
    counts = []
    for many in (100, 200):
        talk, looked = Talk(), 0
        for number in range(many):
            talk.consumer(f"m{number}", 0, number + 1, has=[number], after=0.001)
        for number in range(many):
            talk.consumer(f"m{number}", number + 1, many, topic_partitions=[partitions_of(number)], after=0.001)
        assert not [row for row in talk.consumer("m0", many, many, after=0.001) if row["event"] != "rebalance_ended"]
        counts.append(looked)
    assert counts[1] < 3 * counts[0]


def test_a_name_that_no_topic_can_have_is_not_repeated_for_each_partition() -> None:
    (row,) = listed([("tlong" + "g" * 1000, 0)], {})
    assert len(row["topic"]) == 249
    assert row["topic"].endswith("g…")


def test_a_version_that_nobody_knows_is_a_row_that_says_so() -> None:
    one = Connection().open()
    body = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    for number, (api, version) in enumerate([(12, 4), (12, 99), (-300, 4), (9999, 4)]):
        asked = bytearray(kwire.encode_request(body, api_version=4, correlation_id=number, client_id="c"))
        asked[:4] = struct.pack(">hh", api, version)
        one.send(bytes(asked))
        one.answer(kwire.encode_response(messages.HeartbeatResponse(), api_version=4, correlation_id=number))
    rows = [row for row in read(pcap(one.packets), "group_events") if row["status"] != "ok"]
    assert [(row["frame"], row["status"], row["error"]) for row in rows] == [
        (frame, "unsupported", "version 99 of this API is unknown") for frame in (2, 3)
    ]


def test_a_request_that_came_after_the_first_sign_is_not_the_cause(talk: Talk) -> None:
    # The response to the heartbeat is read after the JoinGroup that it led to: packets were missing before it.
    began = talk.now + 1
    talk.ask("JoinGroup", {"group_id": "g", "member_id": "m1", "protocol_type": "consumer"}, after=2)
    talk.now = began
    (row,) = talk.beat("m1", 1, ErrorCode.REBALANCE_IN_PROGRESS, after=0)
    assert (row["event"], row["cause"]) == ("rebalance_began", "not_in_capture")


def test_who_got_an_id_is_a_member_once_it_joins() -> None:
    talk = Talk()
    for number in range(groups.MOST_FORGOTTEN + 9):
        asked = {"group_id": "g", "member_id": "", "protocol_type": "consumer"}
        told = {"error_code": ErrorCode.MEMBER_ID_REQUIRED, "member_id": f"m{number}"}
        assert not talk.ask("JoinGroup", asked, told, after=0.01)
    (fold,) = talk.story.save()["folds"]
    assert not fold[2]["members"]
    assert len(fold[2]["invited"]) == groups.MOST_FORGOTTEN
    assert ("joined", f"m{number}", None) in brief(talk.join(f"m{number}", 3))
