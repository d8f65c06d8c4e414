"""The table ``share_deliveries``: against what a real client said, and against a broker of random deliveries."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from made_captures import read

from kwire import messages, stored
from kwire.history.fold import Story
from kwire.history.shares import DELIVERIES, OUTCOMES
from kwire.history.steps import Step, kind_of
from kwire.schema.keys import ApiKey

SHARE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
TOPIC = UUID(int=7)
LOCK_MS = 30_000
WORDS = {"accept": "accepted", "release": "released", "reject": "rejected"}

Row = dict[str, Any]


def test_outcomes_are_those_that_a_java_client_gave_its_records() -> None:
    told = [json.loads(line) for line in SHARE.with_suffix(".told.jsonl").read_text().splitlines()]
    wanted = Counter(
        (one["topic"], one["partition"], one["offset"], WORDS[one["acknowledged"]])
        for one in told
        if one["direction"] == "fetch" and "acknowledged" in one
    )
    rows = read(SHARE.read_bytes(), "share_deliveries")
    assert {row["status"] for row in rows} == {"ok"}
    found = Counter(
        (row["topic"], row["partition"], offset, row["outcome"])
        for row in rows
        if row["client_id"] == "java-share-explicit"
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    )
    assert found == wanted
    again = [row for row in rows if row["delivery_count"] > 1]
    assert again
    assert {row["previous_outcome"] for row in again} == {"released"}
    assert all(row["acquired_frame"] < row["frame"] and row["lock_timeout_ms"] == LOCK_MS for row in rows)


class Broker:
    """A partition of a share group, offset by offset, and the steps of what was said."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0
        self.frame = 0
        self.counts: dict[int, int] = {}
        self.holders: dict[int, tuple[str, int]] = {}
        self.done: set[int] = set()
        self.truth: set[tuple[int, str, int, str]] = set()
        """Offset, member, delivery count, outcome."""
        self.steps: list[Step] = []
        self.epochs: dict[str, int] = {}

    def step(self, member: str, api: int, body: Any, response: bool, id_: int) -> None:
        self.frame += 1
        for owner, place, said in DELIVERIES.reads[kind_of(api, response)](body, lambda _: "orders"):
            who = int(member[1:])
            of_frame = ("x", who, self.frame, self.now, ("h", 1, member), ("b", 2), response, api, 1, id_, 99)
            self.steps.append(Step(*of_frame, owner, place, said))

    def expire(self) -> None:
        for offset, (member, until) in list(self.holders.items()):
            if until <= self.now:
                del self.holders[offset]
                self.truth.add((offset, member, self.counts[offset], "expired"))

    def acknowledge(self, member: str) -> list[list[int]]:
        mine = sorted(one for one, (whose, _) in self.holders.items() if whose == member)
        acks = []
        for offset in mine:
            if self.chance.random() < 0.6:
                type_ = self.chance.choices((1, 2, 3, 4), (6, 2, 1, 1))[0]
                acks.append([offset, type_])
        return acks

    def apply(self, member: str, acks: list[list[int]]) -> None:
        for offset, type_ in acks:
            outcome = ("gap", "accepted", "released", "rejected", "renewed")[type_]
            self.truth.add((offset, member, self.counts[offset], outcome))
            if type_ == 4:
                self.holders[offset] = (member, self.now + LOCK_MS * 1_000_000)
                continue
            del self.holders[offset]
            if type_ != 2:
                self.done.add(offset)

    def acquire(self, member: str) -> list[tuple[int, int, int]]:
        found: list[tuple[int, int, int]] = []
        left = self.chance.randrange(1, 20)
        for offset in range(200):
            if left and offset not in self.holders and offset not in self.done:
                count = self.counts[offset] = self.counts.get(offset, 0) + 1
                self.holders[offset] = (member, self.now + LOCK_MS * 1_000_000)
                left -= 1
                if found and found[-1][1] == offset - 1 and found[-1][2] == count:
                    found[-1] = (found[-1][0], offset, count)
                else:
                    found.append((offset, offset, count))
        return found

    def turn(self, number: int) -> None:
        """A request of some member, and its response."""
        self.now += int(self.chance.expovariate(1 / 4e9)) + 1
        self.expire()
        member = f"m{self.chance.randrange(3)}"
        acks = self.acknowledge(member)
        kind = messages.ShareFetchRequest
        batches = [
            kind.AcknowledgementBatch(first_offset=one, last_offset=one, acknowledge_types=[type_])
            for one, type_ in acks
        ]
        asked = [kind.FetchTopic(
            topic_id=TOPIC, partitions=[kind.FetchPartition(partition_index=0, acknowledgement_batches=batches)]
        )]  # fmt: skip
        epoch = self.epochs[member] = self.epochs.get(member, -1) + 1
        request = kind(group_id="g", member_id=member, share_session_epoch=epoch, topics=asked)
        self.step(member, ApiKey.SHARE_FETCH, request, False, number)
        self.apply(member, acks)
        answer = messages.ShareFetchResponse
        acquired = [
            answer.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in self.acquire(member)
        ]
        part = answer.PartitionData(partition_index=0, acquired_records=acquired)
        told = [answer.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[part])]
        body = answer(acquisition_lock_timeout_ms=LOCK_MS, responses=told)
        self.step(member, ApiKey.SHARE_FETCH, body, True, number)


def offsets(rows: list[Row]) -> Iterator[tuple[int, str, int, str]]:
    for row in rows:
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            yield offset, row["member_id"], row["delivery_count"], row["outcome"]


def rows_of(steps: list[Step]) -> tuple[list[Row], Story]:
    story = Story(DELIVERIES)
    return [row for step in steps for row in story.take(step)], story


@pytest.mark.parametrize("seed", range(5))
def test_deliveries_are_those_that_the_broker_made(seed: int) -> None:
    broker = Broker(seed)
    for number in range(300):
        broker.turn(number)
    rows, story = rows_of(broker.steps)
    assert set(offsets(rows)) == broker.truth
    assert {row["outcome"] for row in rows} >= {"accepted", "released", "rejected", "renewed", "expired"}
    held = list(offsets(list(story.over())))
    assert {offset for offset, *_ in held} == broker.holders.keys()
    assert {outcome for *_, outcome in held} <= {"held"}
    for row in rows:
        if row.get("previous_outcome"):
            assert (row["first_offset"], row["delivery_count"] - 1, row["previous_outcome"]) in {
                (offset, count, outcome) for offset, _, count, outcome in broker.truth
            }


@pytest.mark.parametrize("seed", range(5))
def test_with_frames_lost_nothing_is_invented(seed: int) -> None:
    broker = Broker(seed)
    for number in range(300):
        broker.turn(number)
    chance = random.Random(seed)
    lost = {frame for frame in range(broker.frame + 1) if chance.random() < 0.1}
    rows, _ = rows_of([one for one in broker.steps if one.frame not in lost])
    assert "unknown" in {row.get("outcome") for row in rows}
    taken = {(offset, member, outcome) for offset, member, _, outcome in broker.truth}
    known = [row for row in rows if row["status"] == "ok"]
    assert {row["status"] for row in rows} == {"ok", "unpaired"}
    for offset, member, count, outcome in offsets(
        [row | {"delivery_count": row.get("delivery_count")} for row in known]
    ):
        if outcome in ("taken_back", "expired", "unknown"):
            # That an acknowledgement was lost is not known: its time was over, or somebody else got the record.
            continue
        assert (offset, member, outcome) in taken
        assert count is None or (offset, member, count, outcome) in broker.truth


def test_a_state_goes_on_where_it_was_left_and_a_damaged_one_is_refused() -> None:
    broker = Broker(1)
    for number in range(60):
        broker.turn(number)
    whole, _ = rows_of(broker.steps)
    story, rows = Story(DELIVERIES), []
    for number, step in enumerate(broker.steps):
        if number % 11 < 3 and step.frame != broker.steps[number - 1].frame:
            state = json.loads(json.dumps(story.save()))
            story = Story(DELIVERIES)
            story.restore(state)
        rows += story.take(step)
    assert rows == whole
    state = json.loads(json.dumps(story.save()))
    state["folds"][0][2]["parts"][0][1]["held"] = [[1]]
    with pytest.raises(stored.UNFIT):
        Story(DELIVERIES).restore(state)


def test_what_the_broker_does_not_take_is_refused_and_nothing_else_changes() -> None:
    broker = Broker(2)
    broker.turn(1)
    first, story = rows_of(broker.steps)
    assert not first
    kind = messages.ShareAcknowledgeRequest
    batch = kind.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    part = kind.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    broker.steps.clear()
    asked = kind(
        group_id="g",
        member_id="m9",
        share_session_epoch=1,
        topics=[kind.AcknowledgeTopic(topic_id=TOPIC, partitions=[part])],
    )
    broker.step("m9", ApiKey.SHARE_ACKNOWLEDGE, asked, False, 9)
    answer = messages.ShareAcknowledgeResponse
    told = answer.PartitionData(partition_index=0, error_code=121)
    topic = answer.ShareAcknowledgeTopicResponse(topic_id=TOPIC, partitions=[told])
    broker.step("m9", ApiKey.SHARE_ACKNOWLEDGE, answer(responses=[topic]), True, 9)
    (row,) = [row for step in broker.steps for row in story.take(step)]
    assert (row["outcome"], row["error_name"], row["first_offset"]) == ("refused", "INVALID_RECORD_STATE", 0)
    assert {row["outcome"] for row in story.over()} == {"held"}
    assert row["outcome"] in OUTCOMES
