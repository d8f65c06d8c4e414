"""The broker of ``kwire.testing``: whatever it announces it answers, in every version."""

from __future__ import annotations

from typing import Any

import pytest
from broker_talk import Bench

from kwire import schema
from kwire.protocol.headers import decode_response, encode_request
from kwire.schema.keys import ApiKey
from kwire.testing.corpus.shapes import Shape, value

ASKED: tuple[Shape, ...] = ("nulls", "empty", "one")
LONGEST = 60.0
"""Seconds for which an answer may wait, by what these requests say."""


def answer(bench: Bench, key: int, version: int, body: Any, client_id: str | None) -> Any:
    """The response to a request on a connection of its own."""
    got = bytearray()
    closed: list[bool] = []
    talk = bench.core.connect(bench.cluster.nodes[0], ("127.0.0.1", 50_000), got.extend, lambda: closed.append(True))
    assert talk is not None
    frame = encode_request(body, api_version=version, correlation_id=7, client_id=client_id)
    talk.receive(len(frame).to_bytes(4) + frame)
    if not got and not closed:
        bench.wait(LONGEST)
    talk.lost()
    assert got, [str(one) for one in bench.core.recording.errors]
    assert int.from_bytes(got[:4]) == len(got) - 4
    made = decode_response(bytes(got[4:]), api_key=key, api_version=version)
    assert made.header.correlation_id == 7
    return made.body


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.0", "4.4"])
def test_whatever_is_announced_is_answered(release: str) -> None:
    bench = Bench(release)
    bench.cluster.create_topic("orders", 3)
    asked = 0
    for key, versions in bench.cluster.announced.items():
        message = schema.request(key)
        assert message is not None
        for version in versions:
            for shape in ASKED:
                answer(bench, key, version, value(message, version, shape), None if shape == "nulls" else "me")
                asked += 1
    assert asked > 3 * len(bench.cluster.announced)
    assert not bench.core.recording.errors


def test_an_api_that_is_not_carried_out_has_an_error_for_all_that_was_asked() -> None:
    bench = Bench("4.4")
    for key in (ApiKey.WRITE_TXN_MARKERS, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.ALTER_CLIENT_QUOTAS):
        message = schema.request(key)
        assert message is not None
        version = bench.cluster.announced[key].high
        asked: Any = value(message, version, "many")
        made = answer(bench, key, version, asked, "me")
        if key == ApiKey.WRITE_TXN_MARKERS:
            told = [
                (one.producer_id, topic.name, part.partition_index, part.error_code)
                for one in made.markers
                for topic in one.topics
                for part in topic.partitions
            ]
            wanted = [
                (one.producer_id, topic.name, number, 35)
                for one in asked.markers
                for topic in one.topics
                for number in topic.partition_indexes
            ]
            assert len(told) == 27
        elif key == ApiKey.READ_SHARE_GROUP_STATE:
            told = [(one.topic_id, part.partition, part.error_code) for one in made.results for part in one.partitions]
            wanted = [(one.topic_id, part.partition, 35) for one in asked.topics for part in one.partitions]
        else:
            told = [(one.error_code, [(e.entity_type, e.entity_name) for e in one.entity]) for one in made.entries]
            wanted = [(35, [(e.entity_type, e.entity_name) for e in one.entity]) for one in asked.entries]
        assert told == wanted
