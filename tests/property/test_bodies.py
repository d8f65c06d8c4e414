"""The text that a kernel writes of a body is that of the objects, for every layout and whatever the bytes are.

The kernel may decline a frame; what it writes is right to the character. What it must not decline is asserted too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from other_spellings import respelled
from packets import buffer, sized
from placed_streams import scratch
from typed_walk import as_column

import kwire
from kwire import schema
from kwire.capture.frames import Frames
from kwire.codec import registry
from kwire.codec.objects import dump_json
from kwire.errors import KwireError
from kwire.kernels.engine import Engine
from kwire.kernels.judging import FITS, MOST_JUDGED, fits
from kwire.kernels.layouts import FRAME
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.protocol.api_table import api_table
from kwire.protocol.describe import Shown, described
from kwire.schema import model
from kwire.tables.bodies import Bodies
from kwire.tables.typed import Typed, body_type
from kwire.testing import layouts, messages, mutations

EXHAUSTIVE = settings.get_current_profile_name() == "exhaustive"
ALL = [
    (message, version)
    for message in (schema.message(name) for name in schema.names())
    if message.kind in ("request", "response")
    for version in message.versions
]
SHOWN = [Shown(secrets, payloads, typed) for secrets in (0, 1) for payloads in (0, 1) for typed in (0, 1)]  # type: ignore[arg-type]
slow_is_fine = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

SELDOM = {"AlterClientQuotasRequest", "DescribeClientQuotasResponse", "EnvelopeRequest"}
"""There is no program for them, or not for all of their bodies."""
MAY_DECLINE = {
    "AlterConfigsRequest",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "DescribeConfigsResponse",
    "IncrementalAlterConfigsRequest",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "DescribeGroupsResponse",
}
"""By what is in them: configuration values, bytes that are not of the group protocol."""


@dataclass
class Frame:
    message: model.Message
    version: int
    data: bytes


def frame(message: model.Message, version: int, body: Any) -> Frame:
    if message.kind == "request":
        data = kwire.encode_request(body, api_version=version, correlation_id=7, client_id="é\0\n")
    else:
        data = kwire.encode_response(body, api_version=version, correlation_id=7)
    return Frame(message, version, data)


def frames_of(made: list[Frame]) -> Frames:
    table = np.zeros(len(made), FRAME)
    at = 3
    for row, one in zip(table, made, strict=True):
        row.off, row.seen, row.size = at, len(one.data), len(one.data)
        row.api, row.response, row.version = one.message.api_key, int(one.message.kind == "response"), one.version
        at += len(one.data)
    # Nothing behind the last frame: copies must not run over the end.
    data = np.frombuffer(b"###" + b"".join(one.data for one in made), np.uint8)
    nothing = np.zeros(0, np.int64)
    return Frames(table, data, nothing, nothing, nothing)


def texts(made: list[Frame], shown: Shown, engine: Engine, limits: Limits = DEFAULT_LIMITS) -> list[str | None]:
    frames = frames_of(made)
    found: list[str | None] = []
    for part in Bodies(shown, limits).text(frames, np.arange(len(made)), engine):
        column = part.column(part.first, part.last)
        column.validate(full=True)
        assert column.is_null().to_pylist() == [row in part.declined for row in range(part.first, part.last)]
        found += column.to_pylist()
    return found


def by_objects(one: Frame, shown: Shown, limits: Limits = DEFAULT_LIMITS) -> str | None:
    """The text, None where there is none."""
    try:
        if one.message.kind == "request":
            body, version = kwire.decode_request(one.data, limits=limits).body, one.version
        else:
            assert one.message.api_key is not None
            answer = kwire.decode_response(
                one.data, api_key=one.message.api_key, api_version=one.version, limits=limits
            )
            body, version = answer.body, answer.api_version
    except KwireError:
        return None
    text = dump_json(described(body, version, shown))
    return text if len(text.encode()) <= limits.text else None


def check(one: Frame, shown: Shown, engine: Engine, limits: Limits = DEFAULT_LIMITS) -> str | None:
    (found,) = texts([one], shown, engine, limits)
    if found is not None:
        assert found == by_objects(one, shown, limits)
    return found


@pytest.mark.wide
@given(data=st.data())
@settings(slow_is_fine, max_examples=2000 if EXHAUSTIVE else 60)
def test_the_text_of_any_message_is_that_of_its_objects(engine: Engine, data: st.DataObject) -> None:
    message, version = data.draw(layouts(), label="layout")
    shown = data.draw(st.sampled_from(SHOWN), label="shown")
    drawn = data.draw(messages(message, version, unknown_tags=False), label="message")
    found = check(frame(message, version, drawn), shown, engine)
    if message.name not in SELDOM | MAY_DECLINE:
        assert found is not None


@pytest.mark.wide
@given(data=st.data())
@settings(slow_is_fine, max_examples=2000 if EXHAUSTIVE else 60)
def test_another_spelling_is_a_frame_and_has_the_same_text(engine: Engine, data: st.DataObject) -> None:
    message, version = data.draw(layouts(), label="layout")
    shown = data.draw(st.sampled_from(SHOWN), label="shown")
    drawn = data.draw(messages(message, version, unknown_tags=False), label="message")
    canonical = frame(message, version, drawn).data
    head = len(canonical) - len(registry.codec(message, version).encode(drawn))
    choose = random.Random(data.draw(st.integers(0, 999))).randrange
    other = Frame(message, version, canonical[:head] + respelled(message, version, drawn, choose))
    check(other, shown, engine)
    assert by_objects(other, shown) == by_objects(frame(message, version, drawn), shown)
    way, there = int(message.kind == "response"), sized(other.data)
    assert message.api_key is not None
    said = engine(fits)(buffer(there + bytes(8)), 0, len(there), way, message.api_key, version, api_table(), scratch())
    assert said[0] == FITS, len(there) > MOST_JUDGED


@pytest.mark.wide
@given(data=st.data())
@settings(slow_is_fine, max_examples=2000 if EXHAUSTIVE else 60)
def test_what_is_written_of_damaged_bytes_is_what_objects_say(engine: Engine, data: st.DataObject) -> None:
    message, version = data.draw(layouts(), label="layout")
    shown = data.draw(st.sampled_from(SHOWN), label="shown")
    whole = frame(message, version, data.draw(messages(message, version), label="message"))
    damaged = data.draw(mutations(whole.data[8:]), label="bytes")
    one = Frame(message, version, whole.data[:8] + damaged)
    limits = data.draw(st.sampled_from([DEFAULT_LIMITS, Limits(objects=300 + 6 * len(damaged)), Limits(text=200)]))
    check(one, shown, engine, limits)


@pytest.mark.wide(keep=4)
@given(data=st.data())
@settings(slow_is_fine, max_examples=40 if EXHAUSTIVE else 2)
@pytest.mark.parametrize("layout", ALL if EXHAUSTIVE else ALL[::41], ids=lambda one: f"{one[0].name}-v{one[1]}")
def test_this_layout(layout: tuple[model.Message, int], engine: Engine, data: st.DataObject) -> None:
    message, version = layout
    made = [frame(message, version, data.draw(messages(message, version))) for _ in range(3)]
    for one in list(made):
        made += [Frame(message, version, one.data[:end]) for end in range(8, len(one.data), 1 + len(one.data) // 40)]
        made.append(Frame(message, version, one.data + b"\0"))
    for shown in SHOWN:
        for one, found in zip(made, texts(made, shown, engine), strict=True):
            if found is not None:
                assert found == by_objects(one, shown)


@given(data=st.data())
@settings(slow_is_fine, max_examples=2000 if EXHAUSTIVE else 50)
def test_a_typed_body_has_what_to_dict_gives(engine: Engine, data: st.DataObject) -> None:
    message, version = data.draw(layouts(), label="layout")
    payloads = data.draw(st.booleans(), label="payloads")
    drawn = [data.draw(messages(message, version), label="message") for _ in range(3)]
    made = [frame(message, version, one) for one in drawn]
    shown = Shown(secrets=True, payloads=payloads, typed=True)
    typed = Typed(body_type(message, payloads=payloads))
    parts = []
    for part in Bodies(shown, DEFAULT_LIMITS).text(frames_of(made), np.arange(len(made)), engine):
        values = {row: described(drawn[row], version, shown) for row in part.declined.tolist()}
        parts.append(typed.column(part.column(part.first, part.last), values, part.first))
    column = pa.concat_arrays(parts)
    column.validate(full=True)
    expected = [as_column(one.to_dict(version), message.fields, message.structs, payloads) for one in drawn]
    assert column.to_pylist() == expected
    assert typed.of_values([described(one, version, shown) for one in drawn]).to_pylist() == expected


@pytest.mark.wide
@given(data=st.data())
@settings(slow_is_fine, max_examples=2000 if EXHAUSTIVE else 40)
def test_a_typed_body_is_the_same_by_kernel_and_by_objects(engine: Engine, data: st.DataObject) -> None:
    secret = {"CreateTopicsRequest", "FetchResponse", "FetchSnapshotResponse", "SaslAuthenticateRequest"}
    some = layouts().filter(lambda one: one[0].name in secret)
    message, version = data.draw(some | layouts(), label="layout")
    payloads = data.draw(st.booleans(), label="payloads")
    drawn = data.draw(messages(message, version), label="message")
    for one in getattr(drawn, "responses", ()):
        if message.name == "FetchResponse" and data.draw(st.booleans()):
            one.topic, one.topic_id = ("__cluster_metadata", one.topic_id) if version < 13 else (one.topic, UUID(int=1))
    shown = Shown(payloads=payloads, typed=True)
    typed = Typed(body_type(message, payloads=payloads))
    (part,) = Bodies(shown, DEFAULT_LIMITS).text(frames_of([frame(message, version, drawn)]), np.arange(1), engine)
    expected = typed.of_values([described(drawn, version, shown)])
    expected.validate(full=True)
    if not len(part.declined):
        assert typed.column(part.column(0, 1), {}, 0).to_pylist() == expected.to_pylist()
