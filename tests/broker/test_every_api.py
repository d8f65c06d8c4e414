"""Real brokers against kwire, in every version of every API that they accept: see ``every_api``."""

from __future__ import annotations

import kafka_jars
import pytest
from conftest import give_up
from every_api import DOCUMENT, GOAL, Answer, Results, WrongBytesError, ask_all, exact, good_pairs, page, unexplained
from harmless_requests import BODIES, present

import kwire
from kwire import messages, schema


@pytest.fixture(scope="module")
def results() -> Results:
    try:
        return ask_all()
    except kafka_jars.KafkaUnavailableError as error:
        give_up(error)
        raise


def test_brokers_answer_at_least_as_many_versions_as_they_have_to(results: Results) -> None:
    assert len(good_pairs(results)) >= GOAL


def test_every_version_that_is_announced_and_not_answered_has_a_reason(results: Results) -> None:
    assert not unexplained(results)


def test_the_page_says_what_the_brokers_say(results: Results) -> None:
    assert page(results).splitlines() == DOCUMENT.read_text().splitlines()


def test_there_is_a_request_for_every_api() -> None:
    assert set(BODIES) == set(schema.api_keys().values())


def test_an_answer_that_kwire_would_write_otherwise_is_noticed() -> None:
    frame = kwire.encode_response(messages.HeartbeatResponse(), api_version=0, correlation_id=7)
    assert exact(frame, 12, 0, 7).error_code == 0
    with pytest.raises(WrongBytesError, match="1 byte"):
        exact(frame + b"\0", 12, 0, 7)
    with pytest.raises(WrongBytesError, match="correlation id 7, not 8"):
        exact(frame, 12, 0, 8)
    # A bool of 2 is read as Kafka reads it, and written as 1: no broker writes it.
    described = messages.DescribeConfigsResponse.from_dict(
        {"results": [{"configs": [{"name": "a", "value": None, "read_only": True}]}]}
    )
    frame = kwire.encode_response(described, api_version=0, correlation_id=7)
    with pytest.raises(WrongBytesError, match="written again"):
        exact(frame.replace(b"\xff\xff\x01", b"\xff\xff\x02"), 32, 0, 7)


def test_refusals_do_not_count_as_answers() -> None:
    assert Answer(True, ("NONE",)).good
    assert Answer(True, ("STALE_BROKER_EPOCH",)).good
    assert not Answer(True, ("INVALID_REQUEST", "NOT_CONTROLLER")).good
    assert not Answer(True, problem="closes the connection").good


def test_fields_that_a_version_does_not_have_are_left_out_at_any_depth() -> None:
    fetch = schema.message("FetchRequest")
    fields = {"max_wait_ms": 1, "session_id": 2, "topics": [{"topic": "a", "topic_id": b"", "partitions": []}]}
    assert present(fetch, 4, fields) == {"max_wait_ms": 1, "topics": [{"topic": "a", "partitions": []}]}
    assert present(fetch, 13, fields)["topics"] == [{"topic_id": b"", "partitions": []}]
    with pytest.raises(ValueError, match="no field topc in any version"):
        present(fetch, 4, {"topics": [{"topc": "a"}]})
