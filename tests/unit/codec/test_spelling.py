"""Frames that are not canonical: what is written for them, and that ``preserve`` gives them back byte for byte."""

from __future__ import annotations

import copy
import math
import pickle
import re
import struct
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.codec import registry
from kwire.codec.registry import IMPLEMENTATIONS, Implementation
from kwire.codec.spelling import spelling_of
from kwire.errors import DecodeError, EncodeError

HEAD = bytes.fromhex("00000001 0000 01 00000000")
"""A response of ApiVersions v3 up to its tags."""
EPOCH = b"\x01\x08" + struct.pack(">q", -1)
"""The tag of ``finalized_features_epoch``, which states its default."""

every_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


@every_implementation
@pytest.mark.parametrize(
    ("name", "tags", "canonical"),
    [
        ("a tag that states its default", b"\x01" + EPOCH, b"\x00"),
        ("tags out of order", b"\x02\x63\x01x\x62\x01y", b"\x02\x62\x01y\x63\x01x"),
        ("a tag given twice", b"\x02\x63\x01x\x63\x01y", b"\x01\x63\x01y"),
        ("a known tag given twice", b"\x02" + EPOCH + b"\x01\x08" + bytes(8), b"\x01\x01\x08" + bytes(8)),
        ("a count of more bytes than are needed", b"\x80\x80\x00", b"\x00"),
        ("a size of more bytes than are needed", b"\x01\x63\x81\x00x", b"\x01\x63\x01x"),
        ("a fifth byte that overflows", b"\x80\x80\x80\x80\x70", b"\x00"),
        ("a boolean of 2", b"\x01\x03\x01\x02", b"\x01\x03\x01\x01"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_frame_that_is_not_canonical_is_kept(
    name: str, tags: bytes, canonical: bytes, implementation: Implementation
) -> None:
    frame = HEAD + tags
    how: dict[str, Any] = {"api_key": 18, "api_version": 3, "implementation": implementation}
    plain = kwire.decode_response(frame, **how)
    assert kwire.encode_response(plain, implementation=implementation) == HEAD + canonical
    kept = kwire.decode_response(frame, **how, preserve=True)
    assert kept == plain
    assert repr(kept) == repr(plain)
    assert kwire.encode_response(kept, implementation=implementation) == frame
    written = {"api_version": 3, "correlation_id": 1, "implementation": implementation}
    for body in (kept.body, copy.copy(kept.body), copy.deepcopy(kept.body), pickle.loads(pickle.dumps(kept.body))):
        for _ in range(2):
            assert kwire.encode_response(body, **written) == frame
        assert kwire.encode_body(body, 3, implementation=implementation) == frame[4:]
    for _ in range(2):
        assert kwire.encode_response(plain.body, **written) == HEAD + canonical


def other_bytes(schema_: str, version: int, body: str) -> tuple[type[Any], int, bytes]:
    return getattr(messages, schema_), version, bytes.fromhex(body)


@every_implementation
@pytest.mark.parametrize(
    ("message", "version", "data", "canonical"),
    [
        (*other_bytes("MetadataRequest", 1, "fffffffe"), "ffffffff"),
        (*other_bytes("HeartbeatRequest", 3, "0000 00000000 0000 8000"), "0000 00000000 0000 ffff"),
        (*other_bytes("MetadataRequest", 9, "8180808008 01 01 01 00"), "00 01 01 01 00"),
    ],
    ids=["array", "string", "compact-array"],
)
def test_a_null_of_any_negative_length_is_kept(
    message: type[Any], version: int, data: bytes, canonical: str, implementation: Implementation
) -> None:
    plain = kwire.decode_body(data, message, version, implementation=implementation)
    assert kwire.encode_body(plain, version, implementation=implementation) == bytes.fromhex(canonical)
    kept = kwire.decode_body(data, message, version, implementation=implementation, preserve=True)
    assert kwire.encode_body(kept, version, implementation=implementation) == data


@every_implementation
def test_what_python_cannot_hold_otherwise_needs_no_keeping(implementation: Implementation) -> None:
    """Null and empty are two values, NaN has its payload, and a string that is not UTF-8 has its bytes."""
    quota = messages.AlterClientQuotasRequest
    op = quota.OpData
    entry = quota.EntryData(entity=[], ops=[op(key="\udcff", value=math.nan)])
    data = kwire.encode_body(quota(entries=[entry]), 0)
    signalling = data.replace(struct.pack(">d", math.nan), bytes.fromhex("fff4000000000123"))
    assert signalling != data
    nothing, empty = bytes.fromhex("ffffffff"), bytes(4)
    for message, version, one in (
        (quota, 0, signalling),
        (messages.MetadataRequest, 1, nothing),
        (messages.MetadataRequest, 1, empty),
    ):
        kept = kwire.decode_body(one, message, version, implementation=implementation, preserve=True)
        assert spelling_of(kept) is None
        assert type(kept) is message
        assert kwire.encode_body(kept, version, implementation=implementation) == one


@every_implementation
def test_a_message_that_was_changed_is_written_with_its_change(implementation: Implementation) -> None:
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="a")])
    canonical = kwire.encode_body(request, 9)
    data = canonical[:-1] + b"\x80\x00"
    kept = kwire.decode_body(data, messages.MetadataRequest, 9, implementation=implementation, preserve=True)
    assert kept.topics is not None
    kept.topics[0].name = "b"
    changed = canonical.replace(b"\x02a", b"\x02b")
    assert kwire.encode_body(kept, 9, implementation=implementation) == changed
    kept.topics[0].name = "a"
    assert kwire.encode_body(kept, 9, implementation=implementation) == data
    kept.topics.append(kept.topics[0])
    assert len(kwire.encode_body(kept, 9, implementation=implementation)) > len(data)
    del kept.topics[1]
    # Another version has bytes of its own.
    assert kwire.encode_body(kept, 10, implementation=implementation) == kwire.encode_body(request, 10)
    # What makes a message of the values makes a plain one.
    again = type(kept).from_dict(kept.to_dict())
    assert again == request
    assert kwire.encode_body(again, 9, implementation=implementation) == canonical


@every_implementation
def test_headers_and_bytes_behind_the_body_are_kept(implementation: Implementation) -> None:
    # A client id of length -2, and a tag in the header that nobody knows.
    frame = bytes.fromhex("000c 0004 00000007 fffe 01 6301aa  02 67 00000000 02 6d 00 00") + b"behind"
    with pytest.raises(DecodeError, match="6 bytes after the end"):
        kwire.decode_request(frame, implementation=implementation, preserve=True)
    kept = kwire.decode_request(frame, implementation=implementation, trailing=True, preserve=True)
    assert (kept.header.client_id, kept.header.unknown_tagged_fields, kept.trailing) == (None, {0x63: b"\xaa"}, 6)
    assert kwire.encode_request(kept, implementation=implementation) == frame
    kept.body.group_id = "h"
    kept.header.correlation_id = 8
    changed = bytes.fromhex("000c 0004 00000008 ffff 01 6301aa  02 68 00000000 02 6d 00 00") + b"behind"
    assert kwire.encode_request(kept, implementation=implementation) == changed

    counted = kwire.decode_request(frame, implementation=implementation, trailing=True)
    with pytest.raises(EncodeError, match="6 bytes stand behind the body, and 0 were kept: decode with preserve=True"):
        kwire.encode_request(counted, implementation=implementation)
    counted.trailing = 0
    assert kwire.encode_request(counted, implementation=implementation) == frame[:8] + b"\xff\xff" + frame[10:-6]


@every_implementation
def test_the_answer_of_a_broker_that_knows_no_such_version_is_kept(implementation: Implementation) -> None:
    frame = bytes.fromhex("00000001 0023 00000000 00000000")
    kept = kwire.decode_response(
        frame, api_key=18, api_version=3, implementation=implementation, trailing=True, preserve=True
    )
    assert (kept.api_version, kept.trailing) == (0, 4)
    assert kwire.encode_response(kept, implementation=implementation) == frame


def test_whole_frames_need_no_more_and_take_no_other_header() -> None:
    body = messages.HeartbeatRequest(group_id="g")
    frame = kwire.encode_request(body, api_version=4, correlation_id=7, client_id="c")
    request = kwire.decode_request(frame)
    assert kwire.encode_request(request) == frame
    with pytest.raises(TypeError, match="has a header of its own"):
        kwire.encode_request(request, correlation_id=8)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give api_version and correlation_id"):
        kwire.encode_request(body, api_version=4)  # type: ignore[call-overload]
    request.header.request_api_key = 3
    with pytest.raises(EncodeError, match="the header says API key 3, that of HeartbeatRequest is 12"):
        kwire.encode_request(request)
    with pytest.raises(EncodeError, match="the header says API key None"):
        kwire.encode_request(kwire.Request(None, body))

    answer = kwire.encode_response(messages.HeartbeatResponse(error_code=27), api_version=4, correlation_id=7)
    response = kwire.decode_response(answer, api_key=12, api_version=4)
    assert kwire.encode_response(response) == answer
    with pytest.raises(TypeError, match="has a header of its own"):
        kwire.encode_response(response, api_version=3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="give api_version and correlation_id"):
        kwire.encode_response(response.body, api_version=4)  # type: ignore[call-overload]
    with pytest.raises(EncodeError, match="expected ResponseHeader, not NoneType"):
        kwire.encode_response(kwire.Response(None, response.body, 4))


def test_a_message_that_keeps_its_bytes_is_one_of_its_class() -> None:
    data = bytes.fromhex("00 01 01 01 8000")
    kept = kwire.decode_body(data, messages.MetadataRequest, 9, preserve=True)
    same = kwire.decode_body(data, messages.MetadataRequest, 9)
    assert kept.__class__ is messages.MetadataRequest
    assert isinstance(kept, messages.MetadataRequest)
    assert kept == same == kept
    assert kept.to_dict(9) == same.to_dict(9)
    assert type(kept).__doc__ == messages.MetadataRequest.__doc__
    with pytest.raises(EncodeError, match="expected FetchRequest, not MetadataRequest"):
        registry.codec(schema.message("FetchRequest"), 12).encode(kept)


def test_what_is_kept_is_shown_nowhere() -> None:
    secret = b"\0alice\0wonderland"
    data = kwire.encode_body(messages.SaslAuthenticateRequest(auth_bytes=secret), 2)[:-1] + b"\x80\x00"
    kept = kwire.decode_body(data, messages.SaslAuthenticateRequest, 2, preserve=True)
    assert kwire.encode_body(kept, 2) == data
    assert "wonderland" not in repr(kept) + repr(spelling_of(kept)) + kept.to_json()


def test_the_example_of_the_documentation_runs() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "byte-for-byte.md"
    (example,) = re.findall(r"^```python\n(.*?)\n^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec(example, {})
