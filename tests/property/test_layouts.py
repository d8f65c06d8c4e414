"""Every layout of every message, in both codec implementations.

Whatever a version can carry encodes, decodes to an equal object and encodes to the same bytes, and both implementations
say the same: the same bytes, the same values, and of damaged bytes the same verdict, with the same path and offset.

The quick profile draws layouts; ``--hypothesis-profile=exhaustive`` also goes through all of them, one by one.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from other_spellings import respelled

import kwire
from kwire import schema
from kwire.codec import registry, tracked
from kwire.errors import DecodeError, LimitError
from kwire.limits import Limits
from kwire.protocol import headers
from kwire.schema import model
from kwire.testing import layouts, messages, mutations

KINDS = ("request", "response", "header", "data")
ALL = [
    (message, version) for message in (schema.message(name) for name in schema.names()) for version in message.versions
]

EXHAUSTIVE = settings.get_current_profile_name() == "exhaustive"

slow_is_fine = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "layout" in metafunc.fixturenames:
        # Every 29th: a few of each kind, other ones than those around a release.
        chosen = ALL if EXHAUSTIVE else ALL[::29]
        metafunc.parametrize("layout", chosen, ids=[f"{message.name}-v{version}" for message, version in chosen])


def verdict(codec: registry.Codec, data: bytes, limits: Limits | None = None) -> tuple[Any, ...]:
    """What decoding says: the value, or where it failed. Any other exception is a bug and goes through."""
    try:
        return "decoded", codec.decode(data, 0, limits)
    except DecodeError as error:
        return "failed", error.layout, error.path, error.offset, type(error)


def check_valid(message: model.Message, version: int, drawn: Any) -> bytes:
    encoded = [registry.codec(message, version, one).encode(drawn) for one in registry.IMPLEMENTATIONS]
    assert encoded[0] == encoded[1]
    for one in registry.IMPLEMENTATIONS:
        codec = registry.codec(message, version, one)
        again = codec.decode(encoded[0])
        assert again == drawn
        assert codec.encode(again) == encoded[0]
        assert codec.decode_prefix(b"##" + encoded[0] + b"##", 2)[1] == len(encoded[0]) + 2
        assert type(drawn).from_dict(again.to_dict()) == drawn
    return encoded[0]


def check_damaged(message: model.Message, version: int, data: bytes) -> None:
    codecs = [registry.codec(message, version, one) for one in registry.IMPLEMENTATIONS]
    # A limit that about half of all messages are beyond.
    compiled, reference = (verdict(codec, data, Limits(objects=300 + 6 * len(data))) for codec in codecs)
    if compiled[0] == "failed" or reference[0] == "failed":
        assert compiled == reference
    compiled, reference = (verdict(codec, data) for codec in codecs)
    if compiled[0] == "failed" or reference[0] == "failed":
        assert compiled == reference
        assert compiled[1] == f"{message.name} v{version}"
        assert 0 <= compiled[3] <= len(data)
        return
    # Damaged floats may be NaN, which equals nothing, but looks the same.
    assert compiled[1] == reference[1] or repr(compiled[1]) == repr(reference[1])
    canonical = [codec.encode(compiled[1]) for codec in codecs]
    assert canonical[0] == canonical[1]
    # Kafka's decoder is lenient (a bool of 2, overlong varints), encoding is not: a second round changes nothing.
    assert codecs[0].encode(codecs[0].decode(canonical[0])) == canonical[0]


@given(st.data())
@slow_is_fine
def test_any_valid_message_survives_a_round_trip_in_both_implementations(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    check_valid(message, version, data.draw(messages(message, version), label="message"))


@given(st.data())
@slow_is_fine
def test_both_implementations_say_the_same_of_damaged_bytes(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    drawn = data.draw(messages(message, version), label="message")
    encoded = registry.codec(message, version).encode(drawn)
    check_damaged(message, version, data.draw(mutations(encoded), label="bytes"))


@given(st.data())
@slow_is_fine
def test_both_implementations_say_the_same_of_any_bytes(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    check_damaged(message, version, data.draw(st.binary(max_size=64), label="bytes"))


@pytest.mark.wide
@given(data=st.data())
@settings(slow_is_fine, max_examples=20_000 if EXHAUSTIVE else 200)
def test_other_spellings_are_read_alike_and_written_canonically(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    drawn = data.draw(messages(message, version), label="message")
    other = respelled(message, version, drawn, random.Random(data.draw(st.integers(0, 999))).randrange)
    for one in registry.IMPLEMENTATIONS:
        codec = registry.codec(message, version, one)
        assert codec.decode(other) == drawn
        assert codec.encode(codec.decode(other)) == codec.encode(drawn)
    structs = registry._structs(message)
    assert tracked.decode(model.layout(message, version), "", structs, other)[0] == drawn


@given(data=st.data())
@settings(slow_is_fine, max_examples=20_000 if EXHAUSTIVE else 200)
def test_other_spellings_are_kept_where_that_is_asked_for(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    drawn, changed = (data.draw(messages(message, version), label=label) for label in ("message", "changed"))
    other = respelled(message, version, drawn, random.Random(data.draw(st.integers(0, 999))).randrange)
    for one in registry.IMPLEMENTATIONS:
        kept = kwire.decode_body(other, type(drawn), version, implementation=one, preserve=True)
        assert kept == drawn
        assert kwire.encode_body(kept, version, implementation=one) == other
        before = {field.name: getattr(kept, field.name) for field in drawn.FIELDS}
        tags = kept.unknown_tagged_fields
        for name in before:
            setattr(kept, name, getattr(changed, name))
        kept.unknown_tagged_fields = changed.unknown_tagged_fields
        if changed != drawn:
            canonical = registry.codec(message, version, one).encode(changed)
            assert kwire.encode_body(kept, version, implementation=one) == canonical
        for name, value in before.items():
            setattr(kept, name, value)
        kept.unknown_tagged_fields = tags
        assert kwire.encode_body(kept, version, implementation=one) == other


@given(data=st.data())
@slow_is_fine
def test_frames_in_other_spellings_are_kept_where_that_is_asked_for(data: st.DataObject):
    message, version = data.draw(layouts(kinds=("request", "response")), label="layout")
    drawn = data.draw(messages(message, version), label="message")
    choose = random.Random(data.draw(st.integers(0, 999))).randrange
    request = message.kind == "request"
    of_version = headers.request_header_version if request else headers.response_header_version
    first = schema.message("RequestHeader" if request else "ResponseHeader")
    header = data.draw(messages(first, of_version(message.api_key, version)), label="header")
    if request:
        header.request_api_key, header.request_api_version = message.api_key, version
    frame = respelled(first, of_version(message.api_key, version), header, choose)
    frame += respelled(message, version, drawn, choose)
    for one in registry.IMPLEMENTATIONS:
        if request:
            asked = kwire.decode_request(frame, implementation=one, preserve=True)
            assert (asked.header, asked.body) == (header, drawn)
            assert kwire.encode_request(asked, implementation=one) == frame
        else:
            key = message.api_key
            made = kwire.decode_response(frame, api_key=key, api_version=version, implementation=one, preserve=True)
            assert (made.header, made.body) == (header, drawn)
            assert kwire.encode_response(made, implementation=one) == frame


@given(data=st.data())
@slow_is_fine
def test_whatever_bytes_are_read_are_kept_where_that_is_asked_for(data: st.DataObject):
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    drawn = data.draw(messages(message, version), label="message")
    damaged = data.draw(mutations(registry.codec(message, version).encode(drawn)), label="bytes")
    for one in registry.IMPLEMENTATIONS:
        with contextlib.suppress(DecodeError):
            kept = kwire.decode_body(damaged, type(drawn), version, implementation=one, preserve=True)
            assert kwire.encode_body(kept, version, implementation=one) == damaged


@given(data=st.data())
@slow_is_fine
def test_what_is_valid_is_read_and_written_by_the_generated_code_alone(data: st.DataObject):
    """A second try costs ten times as much, and nobody would see it: it gives the same values."""
    message, version = data.draw(layouts(kinds=KINDS), label="layout")
    # Text that is not UTF-8 is seldom.
    drawn = data.draw(messages(message, version), label="message")
    compiled = registry.codec(message, version, "compiled")
    assume("\\udc" not in ascii(drawn.to_dict()))
    with pytest.MonkeyPatch.context() as patched:
        for name in ("decode", "encode"):
            patched.setattr(tracked, name, lambda *_arguments, **_options: pytest.fail("a second try"))
        encoded = compiled.encode(drawn)
        assert compiled.decode(encoded) == drawn
        assert compiled.decode_prefix(b"##" + encoded + b"##", 2) == (drawn, len(encoded) + 2)
        # Where the objects could be too many, they are counted.
        with contextlib.suppress(LimitError):
            assert compiled.decode(encoded, 0, Limits(objects=1000 + 20 * len(encoded))) == drawn


@pytest.mark.wide(keep=3)
@given(data=st.data())
@settings(slow_is_fine, max_examples=25 if EXHAUSTIVE else 4)
def test_this_layout_in_both_implementations(layout: tuple[model.Message, int], data: st.DataObject):
    message, version = layout
    encoded = check_valid(message, version, data.draw(messages(message, version), label="message"))
    for end in range(len(encoded)):
        check_damaged(message, version, encoded[:end])
    check_damaged(message, version, encoded + b"\0")
    check_damaged(message, version, data.draw(mutations(encoded), label="bytes"))
