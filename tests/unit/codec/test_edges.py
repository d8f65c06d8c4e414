"""Edges that real traffic does not reach: each test stands for a change of the code that no other test noticed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages, schema, wire
from kwire.codec import registry, tracked
from kwire.codec.registry import Implementation
from kwire.errors import DecodeError, EncodeError, LimitError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.schema import model

implementations = pytest.mark.parametrize("implementation", registry.IMPLEMENTATIONS)


def by_walking(message: model.Message, version: int, data: bytes) -> Any:
    """What the careful twin of the compiled decoder makes of ``data``."""
    structs = {**registry._classes(message)[2], message.name: registry.message_class(message)}
    layout = model.layout(message, version)
    return tracked.decode(layout, message.name, structs, data, 0, whole=True, limits=DEFAULT_LIMITS)[0]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xff\xff\xff\xff\x0f", 0xFFFFFFFF),
        (b"\xff\xff\xff\xff\x7f", 0xFFFFFFFF),
        (b"\x85\x80\x80\x80\x70", 5),
        (b"\x80\x80\x80\x80\x10", 0),
        (b"\x80\x80\x80\x80\x18", 0x80000000),
    ],
)
def test_bits_of_a_varint_beyond_32_are_lost(data: bytes, value: int) -> None:
    assert wire.read_uvarint(data, 0) == (value, 5)


@implementations
def test_bits_of_a_tag_beyond_32_are_lost(implementation: Implementation) -> None:
    body = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    plain = registry.request_codec(12, 4).encode(body)[:-1]
    data = plain + b"\x01" + b"\x85\x80\x80\x80\x70" + b"\x81\x80\x80\x80\x70" + b"x"
    made = registry.request_codec(12, 4, implementation).decode(data)
    assert made.unknown_tagged_fields == {5: b"x"}
    assert by_walking(body.SCHEMA, 4, data) == made


@implementations
def test_a_count_that_a_tagged_field_cannot_hold_is_refused_there(implementation: Implementation) -> None:
    # Nine features take 54 bytes at least: the message has more, the tagged field has 20.
    features = b"\x0a" + b"\x01\0\0\0\0\0" * 3 + b"\0"
    data = b"\0\0\x01\0\0\0\0" + b"\x02" + b"\x00" + bytes([len(features)]) + features
    data += b"\x63\x64" + b"\0" * 100
    with pytest.raises(DecodeError) as caught:
        registry.response_codec(18, 3, implementation).decode(data)
    assert caught.value.path == "$.supported_features"
    assert caught.value.offset == 10


@implementations
def test_a_count_that_a_tagged_field_cannot_hold_is_not_counted_as_objects(implementation: Implementation) -> None:
    # 126 features are beyond this limit, and the message has bytes enough for them; the tagged field has not.
    features = b"\x7f" + b"\x01\0\0\0\0\0" * 3
    data = b"\0\0\x01\0\0\0\0" + b"\x01" + b"\x00" + bytes([len(features)]) + features + bytes(1000)
    with pytest.raises(DecodeError) as caught:
        registry.response_codec(18, 3, implementation).decode(data, limits=Limits(objects=1024))
    assert not isinstance(caught.value, LimitError)
    assert caught.value.path == "$.supported_features"


@implementations
def test_a_tagged_field_takes_all_of_its_bytes_and_no_more(implementation: Implementation) -> None:
    # zk_migration_ready is one byte. What is left of three would do for another tag, and behind none stands one.
    for tags in (b"\x02" + b"\x03\x03\x01\x05\x00", b"\x01" + b"\x03\x00\x01"):
        with pytest.raises(DecodeError) as caught:
            registry.response_codec(18, 3, implementation).decode(b"\0\0\x01\0\0\0\0" + tags)
        assert caught.value.path == "$.zk_migration_ready"


@implementations
def test_unknown_tags_are_written_in_ascending_order(implementation: Implementation) -> None:
    tags = {9: b"9", 300: b"", 4: b"44", 0: b"0"}
    body = messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m", unknown_tagged_fields=tags)
    data = registry.request_codec(12, 4, implementation).encode(body)
    assert data.endswith(b"\x04" + b"\x00\x010" + b"\x04\x0244" + b"\x09\x019" + b"\xac\x02\x00")
    assert tracked.encode(model.layout(body.SCHEMA, 4), "HeartbeatRequest v4", body) == data
    # Beside known ones too, in whatever order.
    made = messages.ApiVersionsResponse(zk_migration_ready=True, unknown_tagged_fields={77: b"b", 5: b"a"})
    data = registry.response_codec(18, 3, implementation).encode(made)
    assert data.endswith(b"\x03" + b"\x03\x01\x01" + b"\x05\x01a" + b"\x4d\x01b")


def _tagged_nullable_structs() -> list[tuple[model.Message, int, str]]:
    found = []
    for name in schema.names():
        message = schema.message(name)
        for version in message.versions:
            found += [
                (message, version, field.name)
                for field in model.layout(message, version).tagged
                if isinstance(field.type, model.StructLayout) and field.nullable
            ]
    return found


def test_there_is_a_tagged_struct_that_may_be_null() -> None:
    assert _tagged_nullable_structs()


@implementations
def test_a_tagged_struct_may_be_null(implementation: Implementation) -> None:
    for message, version, name in _tagged_nullable_structs():
        codec = registry.codec(message, version, implementation)
        there, absent = registry.message_class(message)(), registry.message_class(message)()
        for field in model.layout(message, version).fields:
            if getattr(there, field.name) is None and not field.nullable:
                setattr(there, field.name, "")
                setattr(absent, field.name, "")
        struct_ = type(there).STRUCTS[name]()
        setattr(there, name, struct_)
        setattr(absent, name, None)
        for one in (there, absent):
            data = codec.encode(one)
            assert tracked.encode(codec.layout, codec.label, one) == data
            back = codec.decode(data)
            assert getattr(back, name) == getattr(one, name)
            if isinstance(codec, registry.CompiledCodec):
                assert codec.read(data, 0) == (back, len(data))  # and its twin was not asked
            assert by_walking(message, version, data) == back
        assert codec.encode(there) != codec.encode(absent)


def _arrays_that_are_not_on_the_wire() -> list[tuple[model.Message, int, str]]:
    """Of each message, in its first and last version: arrays that other versions have, and tagged ones."""
    found = []
    for message in map(schema.message, schema.names()):
        for version in {message.versions.low, message.versions.high}:
            layout = model.layout(message, version)
            for one in (*(field for field in layout.absent if not field.ignorable), *layout.tagged):
                if isinstance(one.type, model.Array | model.ArrayLayout) and one.default == ():
                    found.append((message, version, one.name))
    return found


def test_what_is_empty_and_no_list_is_not_the_default_of_an_array() -> None:
    fields = _arrays_that_are_not_on_the_wire()
    assert len({message.name for message, *_ in fields}) > 10
    for message, version, name in fields:
        codecs = [registry.codec(message, version, one) for one in registry.IMPLEMENTATIONS]
        body = registry.message_class(message)()
        for field in model.layout(message, version).fields:
            if getattr(body, field.name) is None and not field.nullable:
                setattr(body, field.name, "")
        for good in ([], ()):
            setattr(body, name, good)
            data = {codec.encode(body) for codec in codecs}
            assert len(data) == 1
        for wrong in ({}, "", b"", set(), 0, None):
            setattr(body, name, wrong)
            said = []
            for codec in codecs:
                try:
                    said.append(codec.encode(body).hex())
                except EncodeError as error:
                    said.append(error.path)
            assert len(set(said)) == 1, (message.name, version, name, wrong, said)
            assert wrong is None or said[0] == f"$.{name}"


TAGS = [{7: b"seven"}, {0: b"", 300: b"x" * 200}, {9: bytes(3)}]


def _versions(tagged: set[int]) -> Any:
    """Five elements of one size each, some of which have tags that nobody knows."""
    kind = messages.ApiVersionsResponse
    made = kind(api_keys=[kind.ApiVersion(api_key=key, min_version=1, max_version=2) for key in range(5)])
    for at in tagged:
        made.api_keys[at].unknown_tagged_fields = dict(TAGS[at % 3])
    return made


def _never(*_arguments: Any, **_options: Any) -> Any:
    raise AssertionError("a second try, by the slow walk")


@implementations
@pytest.mark.parametrize("tagged", [{0}, {2}, {4}, {0, 1}, {3, 4}, {0, 1, 2, 3, 4}], ids=str)
def test_tags_in_elements_of_one_size_are_read_at_once(
    implementation: Implementation, tagged: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _versions(tagged)
    codec = registry.response_codec(18, 3, implementation)
    data = codec.encode(made)
    assert by_walking(made.SCHEMA, 3, data) == made
    whole = kwire.encode_response(made, api_version=3, correlation_id=1)
    monkeypatch.setattr(tracked, "decode", _never)
    assert codec.decode(data) == made
    assert codec.decode_prefix(b"##" + data + b"##", 2) == (made, len(data) + 2)
    assert codec.decode(data, 0, Limits(objects=10_000)) == made  # where objects are counted
    asked = {"api_key": 18, "api_version": 3, "implementation": implementation}
    assert kwire.decode_response(whole, **asked).body == made


@implementations
def test_damage_in_elements_of_one_size_with_tags_is_said_where_it_is(implementation: Implementation) -> None:
    codec = registry.response_codec(18, 3, implementation)
    made = _versions({1})
    data = codec.encode(made)
    for end in range(len(data)):
        with pytest.raises(DecodeError) as caught:
            codec.decode(data[:end])
        with pytest.raises(DecodeError) as walked:
            by_walking(made.SCHEMA, 3, data[:end])
        assert (caught.value.path, caught.value.offset) == (walked.value.path, walked.value.offset)


@implementations
def test_tags_that_end_with_their_struct_are_read_at_once(
    implementation: Implementation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last byte of a body, and the last byte of a tagged field that is a struct, counted and not."""
    body = messages.HeartbeatRequest(
        group_id="g", generation_id=1, member_id="m", unknown_tagged_fields={1: b"", 3: b"to the end"}
    )
    kind = messages.ApiVersionsResponse
    feature = kind.SupportedFeatureKey(name="f", unknown_tagged_fields={2: b"to the end"})
    features = kind(supported_features=[feature])
    monkeypatch.setattr(tracked, "decode", _never)
    for codec, made in (
        (registry.request_codec(12, 4, implementation), body),
        (registry.response_codec(18, 3, implementation), features),
    ):
        data = codec.encode(made)
        assert data.endswith(b"to the end")
        assert codec.decode(data) == made
        assert codec.decode(data, 0, Limits(objects=10_000)) == made


@implementations
def test_tags_longer_than_what_holds_them_are_not_counted_as_objects(implementation: Implementation) -> None:
    # An element may have no tag within this limit. That the tag has too few bytes is found out before that.
    codec = registry.response_codec(18, 3, implementation)
    tag = b"\x01" + b"\x64"  # of 100 bytes, and 20 follow
    feature = b"\x02" + b"\x02f\0\0\0\0" + b"\x01" + tag + bytes(20)
    # The message has bytes enough for the tag of the feature, the tagged field that holds it has not.
    features = b"\0\0\x01\0\0\0\0" + b"\x01" + b"\x00" + bytes([len(feature)]) + feature + bytes(200)
    versions = b"\0\0\x02" + bytes(6) + b"\x01" + tag + bytes(20)
    for data in (features, versions):
        with pytest.raises(DecodeError, match="unknown_tagged_fields") as caught:
            codec.decode(data, limits=Limits(objects=300))
        assert not isinstance(caught.value, LimitError)


@implementations
@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ({-1: b""}, "-1 is not a tag"),
        ({2**32: b""}, "4294967296 is not a tag"),
        ({"7": b""}, "'7' is not a tag"),
        ({0: b""}, "tag 0 is a known field of this version"),
        ({7: "text"}, "content of tag 7: expected bytes, not 'text'"),
    ],
)
def test_tags_that_cannot_be_written_are_named(implementation: Implementation, unknown: Any, said: str) -> None:
    body = messages.ApiVersionsResponse(unknown_tagged_fields=unknown)
    with pytest.raises(EncodeError, match=said) as caught:
        registry.response_codec(18, 3, implementation).encode(body)
    assert caught.value.path == "$.unknown_tagged_fields"


@implementations
def test_tags_at_the_edges_are_written(implementation: Implementation) -> None:
    codec = registry.response_codec(18, 3, implementation)
    body = messages.ApiVersionsResponse(unknown_tagged_fields={2**32 - 1: bytearray(b"x"), 4: memoryview(b"y")})
    assert codec.decode(codec.encode(body)).unknown_tagged_fields == {4: b"y", 2**32 - 1: b"x"}


@implementations
def test_a_value_of_another_type_is_named_with_its_field(implementation: Implementation) -> None:
    topic = messages.MetadataRequest.MetadataRequestTopic
    for body, version, path, said in (
        (messages.MetadataRequest(topics=[topic(topic_id="x")]), 12, "$.topics[0].topic_id", "expected a uuid.UUID"),
        (messages.MetadataRequest(topics=[topic(name=b"x")]), 12, "$.topics[0].name", "expected a string, not b'x'"),
        (messages.MetadataRequest(topics=[topic(name="\ud800")]), 12, "$.topics[0].name", "cannot be written as UTF-8"),
        (messages.MetadataRequest(topics=[topic(name=None)]), 1, "$.topics[0].name", "expected a string, not None"),
    ):  # fmt: skip
        with pytest.raises(EncodeError, match=said) as caught:
            registry.request_codec(3, version, implementation).encode(body)
        assert caught.value.path == path
    token = messages.SaslAuthenticateRequest(auth_bytes="a password")
    with pytest.raises(EncodeError, match="expected bytes, not ") as caught:
        registry.request_codec(36, 1, implementation).encode(token)
    assert "password" not in str(caught.value)


def test_what_is_no_mapping_of_tags_is_refused() -> None:
    kind = messages.ApiVersionsResponse
    for unknown, said in (([1], "expected a mapping of tag to bytes"), ({"x": b""}, "a tag is not a number")):
        with pytest.raises(EncodeError, match=said):
            kind.from_dict({"unknown_tagged_fields": unknown})
    for values in ([], "x", None):
        with pytest.raises(EncodeError, match="expected a mapping, not"):
            kind.from_dict(values)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="expected a mapping, not int") as caught:
        kind.from_dict({"api_keys": [3]})
    assert caught.value.path == "$.api_keys[0]"
    made = kind.from_dict({"unknown_tagged_fields": {"7": "eA=="}})
    assert made.unknown_tagged_fields == {7: b"x"}


def test_text_of_a_uuid_is_taken_in_both_forms_and_nothing_else() -> None:
    kind = messages.MetadataRequest.MetadataRequestTopic
    one = UUID(int=5)
    for text in (str(one), wire.uuid_text(one)):
        assert kind.from_dict({"topic_id": text}).topic_id == one
    with pytest.raises(EncodeError) as caught:
        kind.from_dict({"topic_id": "x"})
    assert caught.value.path == "$.topic_id"


def test_a_list_that_is_cut_off_is_read_by_no_fast_way() -> None:
    for count in (3, 32, 33, 200):
        body = messages.MetadataResponse(
            brokers=[],
            topics=[
                messages.MetadataResponse.MetadataResponseTopic(
                    partitions=[messages.MetadataResponse.MetadataResponsePartition(replica_nodes=list(range(count)))]
                )
            ],
        )
        data = registry.response_codec(3, 0).encode(body)
        for cut in (1, 4, 5):
            found = []
            for implementation in registry.IMPLEMENTATIONS:
                with pytest.raises(DecodeError) as caught:
                    registry.response_codec(3, 0, implementation).decode(data[:-cut])
                found.append((caught.value.path, caught.value.offset))
            assert found[0] == found[1]


def test_the_source_of_a_codec_has_both_directions() -> None:
    source = registry.codec(schema.message("HeartbeatRequest"), 4).source()
    assert source.count("def decode(") == source.count("def encode(") == 1


def test_api_keys_that_nobody_has_are_named() -> None:
    for ask in (registry.request_codec, registry.response_codec):
        with pytest.raises(kwire.UnsupportedVersionError, match="API key 9999 is not known, 0 to"):
            ask(9999, 0)


@implementations
@pytest.mark.parametrize("wrong", [3, "text", b"x", [b"x"], 1.5], ids=str)
def test_unknown_tags_that_are_no_mapping_are_refused(implementation: Implementation, wrong: Any) -> None:
    for version in (0, 3):
        with pytest.raises(EncodeError) as caught:
            registry.response_codec(18, version, implementation).encode(
                messages.ApiVersionsResponse(unknown_tagged_fields=wrong)
            )
        assert caught.value.path == "$.unknown_tagged_fields"
