"""The table ``share_deliveries``: against what a real client said, and against a broker of random deliveries."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from made_captures import read
from packets import pcap
from share_histories import LOCK_MS, TOPIC, Broker, Row, check_part, check_whole, offsets, simulated

from kwire import messages, stored
from kwire.capture import frames
from kwire.history.fold import Story
from kwire.history.shares import DELIVERIES, OUTCOMES, Deliveries, acks_of
from kwire.history.steps import Step
from kwire.schema.keys import ApiKey
from kwire.tables import share_steps
from kwire.tables.reading import read_in_order
from kwire.tables.share_steps import ShareColumns

SHARE = Path(__file__).parents[2] / "golden" / "kafka-4.3-kraft-java" / "share.pcap"
WORDS = {"accept": "accepted", "release": "released", "reject": "rejected"}


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


def rows_of(steps: list[Step]) -> tuple[list[Row], Story]:
    story = Story(DELIVERIES)
    return [row for step in steps for row in story.take(step)], story


@pytest.mark.parametrize("seed", range(5))
def test_deliveries_are_those_that_the_broker_made(seed: int) -> None:
    broker = simulated(seed)
    rows, story = rows_of(broker.steps)
    assert {row["outcome"] for row in rows} >= {"accepted", "released", "rejected", "renewed", "expired"}
    check_whole([*rows, *story.over()], broker)
    listed = broker.packets()
    told = read(pcap(listed), "share_deliveries")
    check_whole(told, broker)
    # Programs find what bodies say, and so do the readers.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShareColumns, "__call__", lambda *_, **__: {})
        assert read(pcap(listed), "share_deliveries") == told
    files = [io.BytesIO(pcap(part)) for part in (listed[:200], listed[200:500], listed[500:])]
    names = ["a", "b", "c"]
    check_whole(
        [row for _, batch in read_in_order(files, {"share_deliveries": None}, names) for row in batch.to_pylist()],
        broker,
    )


@pytest.mark.parametrize("most", [1 << 14, 20])
def test_what_waits_for_other_windows_gives_the_same_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pcap(simulated(7).packets())
    rows = read(data, "share_deliveries")
    monkeypatch.setattr(frames, "SMALL_WINDOW", 0)
    monkeypatch.setattr(share_steps, "_MOST_ROWS", most)
    waited: list[int] = []
    plain = ShareColumns.__call__

    def called(self: ShareColumns, *args: Any, **how: Any) -> Any:
        waited.append(len(self._waiting))
        return plain(self, *args, **how)

    monkeypatch.setattr(ShareColumns, "__call__", called)
    assert read(data, "share_deliveries", window=3000) == rows
    assert max(waited) > 1 or most < 100
    # Readers get the frames that programs do not read.
    monkeypatch.setattr(share_steps, "_MOST", 1)
    assert read(data, "share_deliveries", window=3000) == rows


@pytest.mark.parametrize("seed", range(5))
def test_with_frames_lost_nothing_is_invented(seed: int) -> None:
    broker = simulated(seed)
    chance = random.Random(seed)
    lost = {frame for frame in range(broker.frame + 1) if chance.random() < 0.1}
    rows, _ = rows_of([one for one in broker.steps if one.frame not in lost])
    assert "unknown" in {row.get("outcome") for row in rows}
    assert {row["status"] for row in rows} == {"ok", "unpaired"}
    check_part(rows, broker)
    check_part(read(pcap([one for one in broker.packets() if chance.random() >= 0.1]), "share_deliveries"), broker)


def test_a_response_that_comes_after_a_request_that_shows_a_loss_says_what_is_unknown() -> None:
    broker = Broker(1)
    for number in range(3):
        broker.turn(number, member="m0")
    by_frame = {frame: [one for one in broker.steps if one.frame == frame] for frame in range(1, 7)}
    # The second request is missing. The response to the first is settled after the third request.
    rows, _ = rows_of([*by_frame[1], *by_frame[5], *by_frame[2], *by_frame[6]])
    first = {offset for offset, *_ in offsets([one for one in rows if one["outcome"] == "unknown"])}
    assert first
    counted = [one for one in rows if one["outcome"] != "unknown" and one.get("delivery_count") is not None]
    assert not counted


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
    kept = state["folds"][0][2]
    kept["now"] = kept["parts"][0][1]["now"] = -5  # before 1970
    story.restore(state)
    assert json.loads(json.dumps(story.save())) == state
    (who, connection, _, *rest) = kept["sessions"][0]
    for name, wrong in (("sessions", [[who, connection, -2, *rest]]), ("now", -1 << 64), ("now", 1 << 64)):
        other = json.loads(json.dumps(state))
        other["folds"][0][2][name] = wrong
        with pytest.raises(stored.UNFIT, match="number"):
            Story(DELIVERIES).restore(other)
    kept["parts"][0][1]["held"] = [[1]]
    with pytest.raises(stored.UNFIT):
        Story(DELIVERIES).restore(state)


@pytest.mark.parametrize("first", [0, 1, 4, 7])
def test_types_of_single_offsets_become_runs(first: int) -> None:
    for count in range(2, 8):
        types = [1] * (count - 1) + [2]
        runs = [[first, first + count - 2, 1], [first + count - 1, first + count - 1, 2]]
        assert acks_of([(first, first + count - 1, types)]) == runs
    assert acks_of([(first, first + 9, [3]), (first + 10, first + 19, [])]) == [
        [first, first + 9, 3],
        [first + 10, first + 19, 0],
    ]


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


@pytest.mark.parametrize("name", ["ShareFetch", "ShareAcknowledge"])
def test_an_error_of_the_whole_response_refuses_all_that_was_acknowledged(name: str) -> None:
    broker = Broker(2)
    broker.turn(1, member="m1")
    _, story = rows_of(broker.steps)
    broker.steps.clear()
    kind, answer = getattr(messages, f"{name}Request"), getattr(messages, f"{name}Response")
    api = kind.SCHEMA.api_key
    batch = kind.AcknowledgementBatch(first_offset=0, last_offset=5, acknowledge_types=[1])
    part = getattr(kind, "AcknowledgePartition", None) or kind.FetchPartition
    topic = getattr(kind, "AcknowledgeTopic", None) or kind.FetchTopic
    parts = [part(partition_index=0, acknowledgement_batches=[batch])]
    asked = kind(group_id="g", member_id="m1", share_session_epoch=7, topics=[topic(topic_id=TOPIC, partitions=parts)])
    broker.step("m1", api, asked, False, 9)
    broker.step("m1", api, answer(error_code=122), True, 9)
    rows = [row for step in broker.steps for row in story.take(step)]
    refused = [row for row in rows if row["outcome"] == "refused"]
    assert [(row["error_name"], row["first_offset"], row["last_offset"]) for row in refused] == [
        ("SHARE_SESSION_NOT_FOUND", 0, 5)
    ]
    assert "accepted" not in {row["outcome"] for row in rows}


def test_offsets_that_end_before_they_begin_are_none() -> None:
    broker = Broker(2)
    kind, answer = messages.ShareFetchRequest, messages.ShareFetchResponse
    broker.step("m1", ApiKey.SHARE_FETCH, kind(group_id="g", member_id="m1", share_session_epoch=0), False, 9)
    kind_of_range = answer.AcquiredRecords
    acquired = [
        kind_of_range(first_offset=first, last_offset=last, delivery_count=1) for first, last in ((0, 9), (7, 3))
    ]
    told = answer.PartitionData(partition_index=0, acquired_records=acquired)
    topic = answer.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[told])
    broker.step("m1", ApiKey.SHARE_FETCH, answer(responses=[topic]), True, 9)
    rows, story = rows_of(broker.steps)
    held = list(story.over())
    assert not rows
    assert [(row["first_offset"], row["last_offset"], row["outcome"]) for row in held] == [(0, 9, "held")]


def acquires(broker: Broker, member: str, *ranges: tuple[int, int]) -> None:
    kind, answer = messages.ShareFetchRequest, messages.ShareFetchResponse
    broker.step(member, ApiKey.SHARE_FETCH, kind(group_id="g", member_id=member, share_session_epoch=0), False, 9)
    acquired = [
        answer.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1) for first, last in ranges
    ]
    told = answer.PartitionData(partition_index=0, acquired_records=acquired)
    topic = answer.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[told])
    broker.step(member, ApiKey.SHARE_FETCH, answer(responses=[topic]), True, 9)


def test_what_is_acquired_again_is_one_range_in_however_many_it_was() -> None:
    """Else a response of some bytes is a row for each of them, again and again."""
    broker = Broker(2)
    acquires(broker, "m1", *((first, first) for first in range(0, 100, 2)))
    for member in ("m2", "m3", "m4"):
        acquires(broker, member, (0, 98))
    rows, story = rows_of(broker.steps)
    before = [(0, 0, "taken_back"), (1, 1, None), (2, 2, "taken_back")]
    taken = [(row["first_offset"], row["last_offset"], row.get("previous_outcome")) for row in rows]
    assert len(taken) == 50 + 99 + 1
    assert taken[50:53] == before
    assert taken[-1] == (0, 98, "taken_back")
    assert len(list(story.over())) == 1


def test_of_a_session_with_a_loss_only_the_partitions_of_its_member_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[str] = []
    plain = Deliveries.lose

    def lose(self: Deliveries, member: str, *args: Any) -> Any:
        looked.append(member)
        return plain(self, member, *args)

    monkeypatch.setattr(Deliveries, "lose", lose)
    broker = Broker(2)
    for member in ("m1", "m2", "m3"):
        acquires(broker, member, (0, 9))
    kind = messages.ShareFetchRequest
    for epoch in (5, 9, 13):
        broker.step("m4", ApiKey.SHARE_FETCH, kind(group_id="g", member_id="m4", share_session_epoch=epoch), False, 9)
        broker.step("m4", ApiKey.SHARE_FETCH, messages.ShareFetchResponse(), True, 9)
    rows_of(broker.steps)
    assert not looked
    broker.step("m3", ApiKey.SHARE_FETCH, kind(group_id="g", member_id="m3", share_session_epoch=7), False, 9)
    rows, _ = rows_of(broker.steps)
    assert looked == ["m3"]
    assert [row["outcome"] for row in rows] == ["taken_back", "taken_back", "unknown"]
