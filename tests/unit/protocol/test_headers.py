"""Whole frames: header and body read and written in one step are what two steps make of them, errors too."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.codec import registry
from kwire.errors import DecodeError, EncodeError, KwireError, UnsupportedVersionError
from kwire.limits import Limits
from kwire.protocol import headers
from kwire.schema import model

sys.path.insert(0, str(Path(__file__).parents[2] / "kafka"))

from messages_of_kafka import Maker

HEARTBEAT = messages.HeartbeatRequest(group_id="g", generation_id=7, member_id="m")


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except KwireError as error:
        return type(error), str(error)


def drawn(message: model.Message, version: int) -> Iterator[Any]:
    maker = Maker(message, random.Random(f"{message.name} v{version}"))
    for nulls, tags in ((0.0, 1.0), (0.5, 0.0)):
        maker.nulls, maker.tags = nulls, tags
        yield maker.struct(model.layout(message, version))


def some(message: model.Message) -> set[int]:
    """The oldest version, the newest, and those around which it became flexible: each has a header of its own."""
    around = {message.flexible.low - 1, message.flexible.low} if message.flexible else set()
    return {message.versions.low, message.versions.high, *(one for one in around if one in message.versions)}


def damaged(frame: bytes, rng: random.Random) -> Iterator[bytes]:
    yield frame[: rng.randrange(len(frame) + 1)]
    yield frame + b"\0"
    for _ in range(4):
        place = rng.randrange(len(frame))
        yield frame[:place] + bytes([rng.randrange(256)]) + frame[place + 1 :]


# Each way in which a header meets a body: numbers, strings, arrays, record sets, tags or nothing at its beginning.
KEYS = (0, 1, 3, 7, 11, 16, 18, 24, 36, 42, 57, 68, 71, 78)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: schema.api_keys()[key])
def test_one_step_does_what_two_steps_do(key: int) -> None:
    rng = random.Random(key)
    request, response = schema.request(key), schema.response(key)
    assert request is not None
    assert response is not None
    for version in some(request):
        for body in drawn(request, version):
            for client_id in ("größe", None):
                frame = kwire.encode_request(body, api_version=version, correlation_id=-3, client_id=client_id)
                # The second time by the function that the first time has made.
                again = kwire.encode_request(body, api_version=version, correlation_id=-3, client_id=client_id)
                assert frame == again == headers._encode_request_in_steps(body, version, -3, client_id, "compiled")
            assert kwire.decode_request(frame) == headers._request_in_steps(frame, "compiled", None)
            for one in damaged(frame, rng):
                fast = outcome(partial(kwire.decode_request, one))
                slow = outcome(partial(headers._request_in_steps, one, "compiled", None))
                assert fast == slow or repr(fast) == repr(slow)  # NaN
    for version in some(response):
        for body in drawn(response, version):
            frame = kwire.encode_response(body, api_version=version, correlation_id=2**31 - 1)
            again = kwire.encode_response(body, api_version=version, correlation_id=2**31 - 1)
            assert frame == again == headers._encode_response_in_steps(body, version, 2**31 - 1, "compiled")
            made = kwire.decode_response(frame, api_key=key, api_version=version)
            assert made == headers._response_in_steps(frame, key, version, "compiled", None)
            for one in damaged(frame, rng):
                fast = outcome(partial(kwire.decode_response, one, api_key=key, api_version=version))
                slow = outcome(partial(headers._response_in_steps, one, key, version, "compiled", None))
                assert fast == slow or repr(fast) == repr(slow)


def test_the_one_step_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    response = messages.HeartbeatResponse()

    def every_way() -> None:
        for version in (0, 4):
            frame = kwire.encode_request(HEARTBEAT, api_version=version, correlation_id=1, client_id="c")
            assert kwire.decode_request(frame).body == HEARTBEAT
            frame = kwire.encode_response(response, api_version=version, correlation_id=1)
            assert kwire.decode_response(frame, api_key=12, api_version=version).body == response

    every_way()
    for name in (
        "_request_in_steps",
        "_response_in_steps",
        "_encode_request_in_steps",
        "_encode_response_in_steps",
    ):
        monkeypatch.setattr(headers, name, None)
    every_way()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"correlation_id": 2**31}, "correlation_id"),
        ({"client_id": "x" * 40_000}, "client_id"),
        ({"client_id": b"bytes"}, "client_id"),
        ({"api_version": 99}, "version 99 is not known"),
    ],
)
def test_what_cannot_be_written_is_said_the_second_time_too(change: dict[str, Any], text: str) -> None:
    for _ in range(2):
        with pytest.raises(EncodeError, match=text):
            kwire.encode_request(HEARTBEAT, **({"api_version": 4, "correlation_id": 1} | change))
    assert kwire.encode_request(HEARTBEAT, api_version=4, correlation_id=1)


def test_what_is_no_request_cannot_be_written_as_one() -> None:
    for _ in range(2):
        with pytest.raises(EncodeError, match="expected a request message, not HeartbeatResponse"):
            kwire.encode_request(messages.HeartbeatResponse(), api_version=0, correlation_id=1)
        with pytest.raises(EncodeError, match="expected a response message, not HeartbeatRequest"):
            kwire.encode_response(HEARTBEAT, api_version=0, correlation_id=1)


def test_tags_in_a_header_are_kept() -> None:
    header = registry.message_class(schema.message("RequestHeader"))(
        request_api_key=12, request_api_version=4, correlation_id=1, client_id="c", unknown_tagged_fields={9: b"tag"}
    )
    frame = registry.codec(schema.message("RequestHeader"), 2).encode(header)
    frame += registry.request_codec(12, 4).encode(HEARTBEAT)
    for _ in range(2):
        made = kwire.decode_request(frame)
        assert made.header.unknown_tagged_fields == {9: b"tag"}
        assert made.body == HEARTBEAT


def test_a_client_id_that_is_not_utf8_is_kept() -> None:
    frame = kwire.encode_request(HEARTBEAT, api_version=4, correlation_id=1, client_id="c")
    frame = frame.replace(b"\0\x01c", b"\0\x01\xff")
    for _ in range(2):
        assert kwire.decode_request(frame).header.client_id == "\udcff"
        assert kwire.encode_request(HEARTBEAT, api_version=4, correlation_id=1, client_id="\udcff") == frame


@pytest.mark.parametrize("version", [1, 2, 3])
def test_controlled_shutdown_has_a_client_id_from_version_1_on(version: int) -> None:
    body = messages.ControlledShutdownRequest(broker_id=5)
    flexible = version >= 3
    for _ in range(2):
        frame = kwire.encode_request(body, api_version=version, correlation_id=9, client_id="broker")
        assert frame.startswith(b"\0\x07\0" + bytes([version]) + b"\0\0\0\x09\0\x06broker" + b"\0" * flexible)
        made = kwire.decode_request(frame)
        assert (made.header.client_id, made.body.broker_id) == ("broker", 5)
        assert headers.decode_request_header(frame)[1] == 16 + flexible


def test_controlled_shutdown_0_has_none() -> None:
    body = messages.ControlledShutdownRequest(broker_id=5)
    for _ in range(2):
        frame = kwire.encode_request(body, api_version=0, correlation_id=9, client_id="broker")
        assert frame == b"\0\x07\0\0\0\0\0\x09\0\0\0\x05"
        made = kwire.decode_request(frame)
        assert (made.header.client_id, made.body.broker_id) == ("", 5)


def test_error_35_falls_back_for_api_versions_and_nothing_else() -> None:
    old = kwire.encode_response(messages.ApiVersionsResponse(error_code=35), api_version=0, correlation_id=1)
    for _ in range(2):
        made = kwire.decode_response(old, api_key=18, api_version=3)
        assert (made.api_version, made.body.error_code) == (0, 35)
    # DescribeGroups v5 begins with a throttle time whose first bytes say 35 as well, and is cut off there.
    for key, version in ((15, 5), (3, 12), (12, 4)):
        header = b"\0\0\0\x01" + b"\0" * (headers.response_header_version(key, version) > 0)
        with pytest.raises(DecodeError):
            kwire.decode_response(header + b"\0\x23", api_key=key, api_version=version)


def test_limits_are_kept_the_second_time_too() -> None:
    topics = [messages.MetadataRequest.MetadataRequestTopic(name="t") for _ in range(50)]
    frame = kwire.encode_request(messages.MetadataRequest(topics=topics), api_version=9, correlation_id=1)
    for _ in range(2):
        assert len(kwire.decode_request(frame).body.topics) == 50
        with pytest.raises(kwire.LimitError):
            kwire.decode_request(frame, limits=Limits(objects=1024))


def test_a_frame_of_bytes_in_any_form_is_read() -> None:
    frame = kwire.encode_request(HEARTBEAT, api_version=4, correlation_id=1)
    for one in (bytearray(frame), memoryview(frame)):
        assert kwire.decode_request(one) == kwire.decode_request(frame)


def test_an_unknown_api_or_version_is_said() -> None:
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError, match="API key 999 is not known"):
            kwire.decode_request(b"\x03\xe7\0\0\0\0\0\0\xff\xff")
        with pytest.raises(UnsupportedVersionError, match="version 99 is not known"):
            kwire.decode_request(b"\0\x0c\0\x63\0\0\0\0\xff\xff\0")
        with pytest.raises(UnsupportedVersionError):
            kwire.decode_response(b"\0\0\0\1", api_key=999, api_version=0)


# The commonest first mistakes, and messages by name


METADATA = messages.MetadataResponse(cluster_id="c")


@pytest.mark.parametrize("implementation", registry.IMPLEMENTATIONS)
def test_a_size_that_was_left_on_is_said(implementation: registry.Implementation) -> None:
    frame = kwire.encode_request(HEARTBEAT, api_version=3, correlation_id=1)
    sized = len(frame).to_bytes(4, "big") + frame
    said = "the first 4 bytes look like the size of the frame, which is no part of it: give frame[4:]"
    with pytest.raises(DecodeError, match=re.escape(said)):
        kwire.decode_request(sized, implementation)
    with pytest.raises(DecodeError, match=re.escape(said)):
        kwire.decode_request(sized, implementation, message=messages.HeartbeatRequest)
    frame = kwire.encode_response(METADATA, api_version=12, correlation_id=1)
    sized = len(frame).to_bytes(4, "big") + frame
    with pytest.raises(DecodeError, match=re.escape(said)):
        kwire.decode_response(sized, api_key=3, api_version=12, implementation=implementation)
    # Another number says nothing about it.
    with pytest.raises(DecodeError) as caught:
        kwire.decode_request(b"\0\0\0\7" + frame, implementation)
    assert "frame[4:]" not in str(caught.value)


@pytest.mark.parametrize("wrong", [None, "text", 5, 1 << 60, [0, 12]])
def test_what_is_no_bytes_is_an_error_that_says_so(wrong: Any) -> None:
    for call in (
        kwire.decode_request,
        kwire.decode_request_header,
        partial(kwire.decode_response, api_key=3, api_version=12),
        lambda data: kwire.decode_body(data, messages.MetadataRequest, 12),
    ):
        with pytest.raises(DecodeError, match=f"expected bytes, not {type(wrong).__name__}"):
            call(wrong)


@pytest.mark.parametrize("implementation", registry.IMPLEMENTATIONS)
def test_a_message_may_be_named_by_its_class(implementation: registry.Implementation) -> None:
    frame = kwire.encode_response(METADATA, api_version=12, correlation_id=1)
    named = kwire.decode_response(frame, messages.MetadataResponse, 12, implementation=implementation)
    assert named == kwire.decode_response(frame, api_key=3, api_version=12)
    assert named.body.cluster_id == "c"
    request = kwire.encode_request(HEARTBEAT, api_version=3, correlation_id=1)
    assert kwire.decode_request(request, implementation, message=messages.HeartbeatRequest).body == HEARTBEAT
    with pytest.raises(DecodeError, match="a request with API key 12 is no MetadataRequest"):
        kwire.decode_request(request, implementation, message=messages.MetadataRequest)
    for wrong in (messages.MetadataRequest, messages.MetadataResponse.MetadataResponseTopic, messages.TopicRecord, int):
        with pytest.raises(DecodeError, match=f"{wrong.__qualname__} is no response"):
            kwire.decode_response(frame, wrong, 12)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="give api_key and api_version"):
        kwire.decode_response(frame)  # type: ignore[call-overload]


@pytest.mark.parametrize("implementation", registry.IMPLEMENTATIONS)
def test_bodies_are_read_and_written_without_headers(implementation: registry.Implementation) -> None:
    for body, version in ((METADATA, 12), (HEARTBEAT, 3), (messages.TopicRecord(name="t"), 0)):
        data = kwire.encode_body(body, version, implementation=implementation)
        assert kwire.decode_body(data, type(body), version, implementation=implementation) == body
        with pytest.raises(DecodeError):
            kwire.decode_body(data + b"!", type(body), version, implementation=implementation)
        with pytest.raises(DecodeError):
            kwire.decode_body(data[:-1], type(body), version, implementation=implementation)
    with pytest.raises(UnsupportedVersionError):
        kwire.decode_body(b"", messages.HeartbeatRequest, 99)
    with pytest.raises(EncodeError, match="expected a message, not str"):
        kwire.encode_body("text", 0)  # type: ignore[arg-type]


def test_help_of_a_message_says_types_versions_and_meaning() -> None:
    said = messages.MetadataRequest.__doc__
    assert said is not None
    assert said.startswith("MetadataRequest (API key 3), versions 0-13.\n\nMetadata: which brokers there are")
    assert "    v10: topic ids in both directions KIP-516\n" in said
    assert re.search(r"allow_auto_topic_creation +bool = true +4\+", said)
    assert re.search(r"  topics +\[MetadataRequestTopic\]\?1\+\n    topic_id +uuid +10\+", said)
    inner = messages.MetadataRequest.MetadataRequestTopic.__doc__
    assert inner is not None
    assert "v10" not in inner
    assert re.search(r"name +string\?10\+", inner)
    for name in schema.names():
        assert registry.message_class(schema.message(name)).__doc__
