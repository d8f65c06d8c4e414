"""Requests and responses in columns of payloads: the same rows whatever decodes them, in arrays of any form."""

from __future__ import annotations

import struct
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from payload_frames import Response, as_type, check_requests, check_responses, golden, with_damage

import kwire
import kwire.messages
from kwire.errors import KwireError
from kwire.kernels.payloads import NO_SIZE
from kwire.limits import DEFAULT_LIMITS
from kwire.payloads import decode_requests, decode_responses, singly, types
from kwire.payloads.frames import MOST_PAYLOADS
from kwire.protocol.describe import Shown, described
from kwire.tables.typed import Typed, message_of

METADATA = kwire.encode_request(
    kwire.messages.MetadataRequest(topics=None), api_version=9, correlation_id=7, client_id="billing"
)


pytestmark = pytest.mark.usefixtures("engine")


def test_real_and_damaged_requests_are_what_they_are_one_by_one() -> None:
    made = check_requests([None, b"", *with_damage(golden()[0], 600, 1), None])
    assert {"ok", "malformed", "unsupported", "trailing"} <= {one["status"] for one in made.to_pylist() if one}


def test_real_and_damaged_responses_are_what_they_are_one_by_one() -> None:
    odd: list[Response] = [(None, 3, 1), (b"", 3, 1), (b"1234", None, 1), (b"1234", 3, None), (b"12345", 70_000, -5)]
    made = check_responses([*odd, *with_damage(golden()[1], 600, 2)])
    assert {"ok", "malformed", "unsupported", "trailing"} <= {one["status"] for one in made.to_pylist() if one}


@pytest.mark.parametrize("payloads", [False, True])
def test_typed_bodies_are_those_of_objects(payloads: bool) -> None:
    frames = [None, *with_damage([one for one in golden()[0] if one[:2] in (b"\0\0", b"\0\x08", b"\0\x0c")], 100, 3)]
    for api in ("Produce", "OffsetCommit", "Heartbeat"):
        message = message_of(api, "request")
        type_ = types.with_body(types.REQUEST, message, payloads)
        typed, shown = Typed(type_.field("body").type), Shown(False, payloads, True)

        def struct_of(body: Any, version: int, message: Any = message, typed: Typed = typed, shown: Any = shown) -> Any:
            return typed.value(described(body, version, shown)) if body.SCHEMA is message else None

        each = [None if one is None else singly.request_row(one, struct_of, DEFAULT_LIMITS, NO_SIZE) for one in frames]
        made = decode_requests(pa.array(frames, pa.binary()), api=api, payloads=payloads)
        assert made.type == type_
        assert made.to_pylist() == as_type(each, type_)


@pytest.mark.parametrize("sized", [False, True])
def test_headers_are_those_read_one_by_one(sized: bool) -> None:
    random = Random(7)
    frames = [
        kwire.encode_request(made(), api_version=version, correlation_id=number << 24, client_id=client_id)
        for number, (made, version) in enumerate(
            (made, version)
            for made in (kwire.messages.MetadataRequest, kwire.messages.HeartbeatRequest)
            for version in made.SCHEMA.versions
        )
        for client_id in (None, "", "billing", "\N{SNOWMAN}" * 40)
    ]
    # Version 0 of ControlledShutdown has no client id.
    frames.append(kwire.encode_request(kwire.messages.ControlledShutdownRequest(), api_version=0, correlation_id=1))
    payloads: list[bytes | None] = [None]
    for frame in frames:
        payloads += [frame, frame[: random.randrange(len(frame))]]
        for _ in range(6):
            bent = bytearray(frame)
            bent[random.randrange(min(len(bent), 24))] = random.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
            payloads.append(bytes(bent))
    if sized:
        payloads = [None if one is None else struct.pack(">i", len(one)) + one for one in payloads]
        payloads += [b"", b"\0\0", struct.pack(">i", len(METADATA)) + METADATA + b"!"]
    made = decode_requests(pa.array(payloads, pa.binary()), body=False, sized=sized)
    row = partial(singly.request_row, made=None, limits=DEFAULT_LIMITS, sized=int(sized))
    each = [None if one is None else row(one) for one in payloads]
    assert made.to_pylist() == as_type(each, types.HEADER)
    assert {"ok", "malformed", "unsupported"} <= {one["status"] for one in made.to_pylist() if one}
    assert decode_requests(pa.array([frames[-1]], pa.binary())).to_pylist()[0]["client_id"] is None


def test_arrays_of_any_form_give_the_same() -> None:
    payloads: list[bytes | None] = [METADATA, None, b"", METADATA[:-1], METADATA + b"!", METADATA]
    expected = decode_requests(pa.array(payloads, pa.binary())).to_pylist()
    around = pa.array([b"before", *payloads, None, b"behind"], pa.binary()).slice(1, len(payloads))
    forms = [
        around,
        pa.array(payloads, pa.large_binary()),
        pa.array(payloads, pa.binary_view()),
        pa.chunked_array([pa.array([one], pa.binary()) for one in payloads]),
        pa.chunked_array([around.slice(0, 2), around.slice(2, 0), around.slice(2)]),
    ]
    for one in forms:
        made = decode_requests(one)
        assert made.to_pylist() == expected
        made.validate(full=True)
    assert decode_requests(pa.array([METADATA], pa.binary(len(METADATA)))).to_pylist() == expected[:1]
    for none in (pa.array([], pa.binary()), pa.chunked_array([], pa.binary())):
        assert decode_requests(none).type == types.REQUEST
        assert len(decode_requests(none)) == 0
    assert decode_requests(pa.nulls(3)).to_pylist() == [None] * 3


def test_a_column_is_cut_into_parts_that_are_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.payloads.frames.MOST_PAYLOADS", 3)
    monkeypatch.setattr("kwire.payloads.frames.WINDOW", 2 * len(METADATA))
    payloads = [METADATA, None, METADATA[:9], *[METADATA] * 5, METADATA * 7, b"", METADATA]
    keys = pa.array([3] * len(payloads), pa.int32())
    cut = decode_requests(pa.array(payloads, pa.binary())), decode_responses(pa.array(payloads, pa.binary()), keys, 1)
    monkeypatch.undo()
    assert len(payloads) < MOST_PAYLOADS
    whole = decode_requests(pa.array(payloads, pa.binary())), decode_responses(pa.array(payloads, pa.binary()), 3, keys)
    assert cut[0].to_pylist() == whole[0].to_pylist()
    assert [one and one["api_key"] for one in cut[1].to_pylist()] == [3, None, *[3] * 9]


def test_fields_are_those_that_are_asked_for() -> None:
    column = pa.array([METADATA, METADATA[:-1], None], pa.binary())
    made = decode_requests(column, fields=["correlation_id", "api_name"])
    assert made.to_pylist() == [{"correlation_id": 7, "api_name": "Metadata"}] * 2 + [None]
    # A status without a body speaks of the body all the same.
    assert [one and one["status"] for one in decode_requests(column, fields=["status"]).to_pylist()] == [
        "ok", "malformed", None,
    ]  # fmt: skip
    with pytest.raises(KwireError, match="no field 'topic': there are api_key, api_name, "):
        decode_requests(column, fields=["topic"])


def test_what_is_no_column_of_bytes_is_said() -> None:
    with pytest.raises(KwireError, match="BINARY"):
        decode_requests(pa.array(["text"]))
    with pytest.raises(KwireError, match=r"pa\.array\(values\) makes one"):
        decode_requests([METADATA])
    with pytest.raises(KwireError, match="no API 'Prodce'"):
        decode_requests(pa.array([METADATA]), api="Prodce")
    with pytest.raises(KwireError, match="one for each payload"):
        decode_responses(pa.array([METADATA]), pa.array([1, 2]).slice(2), 1)


def test_secrets_are_left_out_unless_they_are_wanted() -> None:
    token = kwire.encode_request(
        kwire.messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0hunter2"), api_version=2, correlation_id=1
    )
    column = pa.array([token], pa.binary())
    hidden, shown = decode_requests(column), decode_requests(column, secrets=True)
    assert "redacted" in hidden.to_pylist()[0]["body"]
    assert "AGFsaWNlAGh1bnRlcjI=" in shown.to_pylist()[0]["body"]


def test_more_names_of_clients_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.payloads.frames._MOST_NAMES", 4)
    monkeypatch.setattr("kwire.payloads.frames.MOST_PAYLOADS", 3)
    payloads = [
        kwire.encode_request(kwire.messages.MetadataRequest(), api_version=1, correlation_id=1, client_id=f"client-{n}")
        for n in range(20)
    ]
    made = decode_requests(pa.array(payloads, pa.binary())).to_pylist()
    assert [one["client_id"] for one in made] == [f"client-{n}" for n in range(20)]
