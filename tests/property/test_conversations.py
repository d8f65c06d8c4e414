"""Conversations of ``kwire.testing``: what is in them is what kwire's readers of captures, records and segments find.

- The frames that a capture gives are those that clients have sent and taken, with the same bodies.
- The records of its table are those of the record sets in the bodies.
- The bytes of each connection are its frames. They are the same each time, and from what is printed.
- A log segment has the records that its recipe says, and of these the committed ones.
- Whatever was done to a record set, both readers agree on it, or refuse it.
"""

from __future__ import annotations

import io
import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import kwire.messages
from kwire import capture, log, records
from kwire.codec.objects import dump_json
from kwire.errors import DecodeError, UnsupportedVersionError
from kwire.kernels.engine import PYTHON, using
from kwire.protocol.describe import Shown, described
from kwire.protocol.splitter import FrameSplitter
from kwire.records import Record, to_arrow
from kwire.schema.keys import ApiKey
from kwire.testing import (
    Capture,
    Conversation,
    Damage,
    RecordSet,
    captures,
    conversations,
    record_sets,
    segments,
    sets,
    talks,
)
from kwire.testing.impair import Grade
from kwire.testing.judge import Original, judge

FEWER = settings(max_examples=settings().max_examples // 4, suppress_health_check=[HealthCheck.too_slow])
"""Each example reads a capture."""
FIRST_PORT = 50_000
ALL = Shown(secrets=True, payloads=False)

Row = tuple[Any, ...]


def rows(data: bytes, table: Any, **options: Any) -> list[dict[str, Any]]:
    with using(PYTHON):
        return [row for batch in capture.read(io.BytesIO(data), table, **options) for row in batch.to_pylist()]


def told(talk: Conversation) -> list[Row]:
    """What was said, by connection and direction, as the table of messages has it."""
    # The table has the version of the request. ApiVersions with error 35 is answered in version 0.
    asked = {(one.connection, one.correlation_id): one.api_version for one in talk.frames if one.direction == "request"}
    said = [
        (
            *(
                one.connection,
                one.direction,
                one.api_key,
                asked[one.connection, one.correlation_id],
                one.correlation_id,
            ),
            json.loads(dump_json(described(one.body, one.api_version, ALL))),
        )
        for one in talk.frames
    ]
    return sorted(said, key=lambda one: one[:2])


def seen(data: bytes) -> list[Row]:
    """The same of a capture."""
    found = [
        (
            *(row["client_port"] - FIRST_PORT + 1, row["direction"]),
            *(row["api_key"], row["api_version"], row["correlation_id"]),
            json.loads(row["body"]),
        )
        for row in rows(data, "messages", secrets=True, ports=[9092])
        if row["status"] == "ok"
    ]
    return sorted(found, key=lambda one: one[:2])


@FEWER
@given(conversations(requests=True))
def test_the_table_of_messages_is_what_was_said(talk: Conversation) -> None:
    # One request without an answer may be too little to tell that it is Kafka. So is one empty exchange, where nobody
    # says which port it is.
    answered = {one.connection for one in talk.frames if one.direction == "response"}
    assert [one for one in seen(talk.capture) if one[0] in answered] == [
        one for one in told(talk) if one[0] in answered
    ]


def sets_of(talk: Conversation) -> list[tuple[int, str, list[Row]]]:
    """The records of each Produce and Fetch, by the reader of objects."""
    found = []
    for one in talk.frames:
        parts: list[Any] = []
        if one.api_key == ApiKey.PRODUCE and one.direction == "request":
            parts = [part for topic in one.body.topic_data for part in topic.partition_data]
        elif one.api_key == ApiKey.FETCH and one.direction == "response":
            parts = [part for topic in one.body.responses for part in topic.partitions]
        listed = [
            (record.offset, record.key, record.value)
            for part in parts
            for batch in records.decode(part.records or b"")
            for record in batch.records
        ]
        if listed:
            found.append((one.connection, one.direction, listed))
    return sorted(found, key=lambda one: one[:2])


@FEWER
@given(conversations())
def test_the_table_of_records_is_what_was_written_and_read(talk: Conversation) -> None:
    found: dict[int, tuple[int, str, list[Row]]] = {}
    for row in rows(talk.capture, "records", secrets=True):
        assert row["status"] == "ok"
        direction = "request" if row["source"] == "produce" else "response"
        of = found.setdefault(row["frame"], (row["connection"] + 1, direction, []))
        of[2].append((row["offset"], row["key"], row["value"]))
    assert sorted(found.values(), key=lambda one: one[:2]) == sets_of(talk)


@given(conversations(requests=True))
def test_the_bytes_of_a_connection_are_its_frames(talk: Conversation) -> None:
    for number, stream in enumerate(talk.streams, 1):
        for direction, data in zip(("request", "response"), stream, strict=True):
            splitter = FrameSplitter()
            said = [one for one in talk.frames if (one.connection, one.direction) == (number, direction)]
            for frame, one in zip(list(splitter.feed(data)), said, strict=True):
                made = (
                    kwire.decode_request(frame)
                    if direction == "request"
                    else kwire.decode_response(frame, api_key=one.api_key, api_version=one.api_version)
                )
                assert made.header.correlation_id == one.correlation_id
                assert made.body.to_dict(one.api_version) == one.body.to_dict(one.api_version)
            splitter.close()


@given(conversations())
def test_what_is_printed_makes_the_same_conversation(talk: Conversation) -> None:
    names = {name: getattr(talks, name) for name in talks.__all__}
    again = eval(repr(talk), names | {"Conversation": Conversation})
    assert again == talk
    assert again.streams == talk.streams
    assert again.capture == talk.capture


@given(conversations())
def test_no_step_is_one_that_a_broker_closes_the_connection_for(talk: Conversation) -> None:
    assert talk.errors == []


@given(conversations())
def test_what_a_broker_keeps_is_a_log_segment(talk: Conversation) -> None:
    for topic, partitions in talks.TOPICS:
        for number in range(partitions):
            data = talk.segment(topic, number)
            offsets = [one.offset for batch in records.decode(data) for one in batch.records]
            assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize(
    ("what", "most"),
    [
        (lambda talk: any(one.body.members for one in answers(talk, ApiKey.JOIN_GROUP)), 3),
        (lambda talk: any(len(one.body.members) > 1 for one in answers(talk, ApiKey.JOIN_GROUP)), 5),
        (lambda talk: any(one.api_version == 0 for one in requests(talk, ApiKey.PRODUCE)), 3),
    ],
    ids=["leader", "two-members", "oldest"],
)
@pytest.mark.wide
def test_examples_shrink_to_few_steps(what: Any, most: int) -> None:
    fast = settings(max_examples=2000, phases=[Phase.generate, Phase.shrink], database=None, deadline=None)
    # Chance may not find one at all, so it is the same each time.
    assert len(find(conversations(), what, settings=fast, random=Random(1)).steps) <= most


def answers(talk: Conversation, key: int) -> list[Any]:
    return [one for one in talk.frames if (one.api_key, one.direction) == (key, "response")]


def requests(talk: Conversation, key: int) -> list[Any]:
    return [one for one in talk.frames if (one.api_key, one.direction) == (key, "request")]


@FEWER
@given(captures(grades=[Grade.LOSSLESS], most=1))
def test_where_nothing_is_lost_a_capture_has_the_conversation(made: Capture) -> None:
    assert made.impaired.account.lossless
    assert [one[1:] for one in seen(made.data)] == [one[1:] for one in told(made.conversation)]


@FEWER
@given(captures(grades=[Grade.LOSSY]))
def test_where_something_is_lost_nothing_is_made_up(made: Capture) -> None:
    with using(PYTHON):
        verdict = judge(Original(made.conversation.capture), made.impaired)
    assert not verdict.invented
    assert not verdict.unseen


def plain(some: list[Record]) -> list[Row]:
    return [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in some]


@given(record_sets())
def test_a_record_set_has_the_records_that_it_says(made: RecordSet) -> None:
    assert plain([one for batch in records.decode(made.data) for one in batch.records]) == plain(made.records)
    assert eval(repr(made), {"RecordSet": RecordSet, "Entry": sets.Entry, "Record": Record}) == made


@given(record_sets(damaged=True))
def test_readers_agree_on_damaged_record_sets(made: RecordSet) -> None:
    limits = records.Limits(decompressed=1 << 20, total=4 << 20)
    problems: list[DecodeError] = []
    objects = [
        (one.offset, one.value)
        for batch in records.decode(made.data, problems=problems, limits=limits)
        for one in batch.records
    ]
    others: list[DecodeError] = []
    table = to_arrow(made.data, problems=others, limits=limits)
    assert objects == list(zip(table.column("offset").to_pylist(), table.column("value").to_pylist(), strict=True))
    assert len(problems) == len(others)
    names = {"RecordSet": RecordSet, "Entry": sets.Entry, "Record": Record, "Damage": Damage}
    assert eval(repr(made), names).data == made.data


@given(st.data())
def test_damage_under_a_right_checksum_is_not_seen_by_it(draw: st.DataObject) -> None:
    made = draw.draw(record_sets(magic=2, most=1))
    at = draw.draw(st.integers(61, len(made.data) - 1))
    flipped = RecordSet(entries=made.entries, damage=(Damage("flip", at=at),), sealed=True)
    assert flipped.data != RecordSet(entries=made.entries).data
    problems: list[DecodeError] = []
    found = list(records.decode(flipped.data, problems=problems, verify_crc=True))
    assert not any("checksum" in str(one) for one in problems)
    assert all(batch.crc_ok for batch in found)


@given(segments())
def test_a_log_segment_has_the_records_that_it_says(made: RecordSet) -> None:
    def offsets(**options: Any) -> list[int]:
        name = f"{made.base_offset:020}.log"
        with using(PYTHON):
            batches = log.read(io.BytesIO(made.data), name=name, columns=["offset", "status"], **options)
            table = [row for batch in batches for row in batch.to_pylist()]
        assert all(row["status"] == "ok" for row in table)
        return [row["offset"] for row in table]

    assert offsets() == [one.offset for one in made.records]
    assert offsets(read_committed=True) == made.committed


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="99"):
        conversations(release="99.9")
    with pytest.raises(ValueError, match="magic 3"):
        record_sets(magic=3)
    with pytest.raises(ValueError, match="zstd with magic 2 only"):
        record_sets(magic=1, codec="zstd")


def test_what_fails_is_printed_without_defaults() -> None:
    talk = Conversation("3.9", (talks.Write(values=(b"x",)), talks.Read()))
    assert repr(talk) == "Conversation(release='3.9', steps=(Write(values=(b'x',)), Read()))"
    written: list[str] = []

    @settings(database=None, max_examples=5, phases=[Phase.generate])
    @given(conversations(release="3.9"))
    def failing(talk: Conversation) -> None:
        written.append(repr(talk))
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        failing()
    assert any(written[-1] in note for note in caught.value.__notes__)
