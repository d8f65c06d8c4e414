"""``kwire.testing``: what it draws is valid, what it damages is damaged."""

from __future__ import annotations

import math
import random
from uuid import UUID

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

import kwire
import kwire.messages
from kwire import schema
from kwire.codec import registry
from kwire.codec.objects import WireMessage
from kwire.errors import UnsupportedVersionError
from kwire.testing import Frame, frames, messages, mutate, mutations

FETCH = schema.message("FetchRequest")


@given(frames())
def test_every_frame_decodes_to_what_it_was_made_from(frame: Frame):
    if frame.kind == "request":
        request = kwire.decode_request(frame.data)
        assert request.header.request_api_key == frame.api_key
        assert request.header.request_api_version == frame.api_version
        assert request.header.correlation_id == frame.correlation_id
        assert request.body == frame.body
    else:
        response = kwire.decode_response(frame.data, api_key=frame.api_key, api_version=frame.api_version)
        assert response.header.correlation_id == frame.correlation_id
        assert response.body == frame.body


@given(frames(api_key=1, kinds=("request",)))
def test_frames_can_be_of_one_api_and_kind(frame: Frame):
    assert (frame.kind, frame.api_key) == ("request", 1)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("api_key", [12, "Heartbeat"])
def test_headers_have_tagged_fields_that_no_schema_knows(api_key: int | str):
    def has_tags(frame: Frame) -> bool:
        return bool(kwire.decode_request(frame.data).header.unknown_tagged_fields)

    found = find(frames(api_key=api_key, kinds=("request",)), has_tags)
    assert found.api_key == 12


def test_an_api_that_there_is_not_is_said():
    with pytest.raises(UnsupportedVersionError, match="did you mean 'Heartbeat'"):
        frames(api_key="Heartbeet")
    with pytest.raises(ValueError, match="no request or response has the API key 999"):
        frames(api_key=999)


@given(messages(FETCH, 12, unknown_tags=False))
def test_messages_without_unknown_tags_have_none(drawn: object):
    data = registry.codec(FETCH, 12).encode(drawn)
    decoded = registry.codec(FETCH, 12, "reference").decode(data)
    assert decoded.unknown_tagged_fields is None
    assert all(one.unknown_tagged_fields is None for one in decoded.topics)


def test_a_version_that_a_message_does_not_have_is_refused():
    with pytest.raises(ValueError, match="versions 0-18, not 99"):
        messages(FETCH, 99)


@given(st.binary(max_size=40), st.data())
def test_mutations_are_bytes_of_about_the_same_size(data: bytes, draw: st.DataObject):
    mutated = draw.draw(mutations(data, max_times=3))
    assert isinstance(mutated, bytes)
    assert len(mutated) <= len(data) + 3 * 8


def test_mutate_is_repeatable_and_nearly_always_changes_something():
    data = bytes(range(64))
    once = [mutate(data, random.Random(seed)) for seed in range(500)]
    assert once == [mutate(data, random.Random(seed)) for seed in range(500)]
    assert sum(one != data for one in once) > 450
    assert {len(one) - len(data) for one in once} >= {0, 1, -1, 8}
    assert isinstance(mutate(b"", random.Random(1), times=20), bytes)


@pytest.mark.wide(keep=1)
@pytest.mark.parametrize("name", ["HeartbeatRequest", "MetadataResponse", "SaslAuthenticateRequest"])
def test_what_fails_is_printed_as_code_that_can_be_pasted(name: str):
    message = schema.message(name)
    seen: list[WireMessage] = []

    @settings(database=None, deadline=None, max_examples=20)
    @given(messages(message, message.versions.high))
    def failing(drawn: WireMessage) -> None:
        seen.append(drawn)
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        failing()
    (said,) = [note for note in caught.value.__notes__ if "drawn=" in note]
    code = said.partition("drawn=")[2].rpartition(")")[0]
    # A comma follows it, and perhaps a comment.
    (made,) = eval(code, {name: getattr(kwire.messages, name), "UUID": UUID, "inf": math.inf, "nan": math.nan})
    assert made == seen[-1]
    assert code.startswith(f"{name}(")
