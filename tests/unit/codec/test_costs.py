"""What bodies may become as objects: counted before they are made, and the same by whoever decodes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.codec import costs, registry, tracked
from kwire.codec.registry import Codec, Implementation
from kwire.errors import DecodeError, LimitError
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.schema import model

MIB = 1 << 20


@pytest.fixture(params=registry.IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    made: Implementation = request.param
    return made


def uvarint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def metadata(implementation: Implementation) -> Codec:
    return registry.codec(messages.MetadataRequest.SCHEMA, 9, implementation)


def topics(count: int, topic: bytes = b"\1\0") -> bytes:
    """A Metadata request v9 of so many topics, two bytes each: no name, no tags."""
    return uvarint(count + 1) + topic * count + bytes(4)


def peak(codec: Codec, data: bytes) -> tuple[int, LimitError]:
    """The most memory that decoding took, and its error."""
    codec.decode(topics(1))
    tracemalloc.start()
    try:
        with pytest.raises(LimitError) as found:
            codec.decode(data)
        return tracemalloc.get_traced_memory()[1], found.value
    finally:
        tracemalloc.stop()


def test_an_array_of_structs_of_two_bytes_is_refused_before_it_is_made(implementation: Implementation) -> None:
    data = topics(MIB)
    used, error = peak(metadata(implementation), data)
    # The reference makes a stream of the bytes.
    assert used < len(data) + MIB
    assert (error.path, error.offset) == ("$.topics", 3)
    assert "bytes as objects: beyond the limit objects of 100663296; Limits(objects=...) raises it" in error.message


@pytest.mark.wide
def test_arrays_in_arrays_are_counted_together() -> None:
    # Each group is small: of 100 topics without partitions.
    codec = registry.codec(messages.OffsetFetchRequest.SCHEMA, 8)
    group = b"\1" + uvarint(101) + b"\1\1\0" * 100 + b"\0"
    data = uvarint(20_001) + group * 20_000 + b"\0\0"
    with pytest.raises(LimitError) as found:
        codec.decode(data)
    assert found.value.path == "$.groups[*].topics"
    assert found.value.offset is not None
    assert 0 < found.value.offset < len(data)


def test_unknown_tags_are_counted_one_by_one(implementation: Implementation) -> None:
    good = topics(0)[:-1] + b"\x0a" + bytes(x for tag in range(10) for x in (tag, 0))
    limits = Limits(objects=12 * (10 * costs.UNKNOWN_TAG - 12 * len(good)))
    assert limits.for_objects(len(good)) == 10 * costs.UNKNOWN_TAG
    assert len(metadata(implementation).decode(good, 0, limits).unknown_tagged_fields) == 10
    with pytest.raises(LimitError) as found:
        metadata(implementation).decode(good[:4] + b"\x0b" + good[5:] + b"\x0a\0", 0, limits)
    assert (found.value.path, found.value.offset) == ("$.unknown_tagged_fields", len(good) + 2)


@pytest.mark.parametrize(
    ("count", "objects", "path"),
    [(6000, 100_000, "$.topics"), (60, 100_000, "$.topics[*].unknown_tagged_fields"), (60, 1, "$.topics")],
)
def test_both_codecs_and_the_walk_refuse_the_same(count: int, objects: int, path: str) -> None:
    topic = b"\1\2\5\0"
    data = topics(count, topic)
    limits = Limits(objects=objects)
    structs = registry._structs(messages.MetadataRequest.SCHEMA)
    runs = [
        lambda: metadata("compiled").decode(data, 0, limits),
        lambda: metadata("reference").decode(data, 0, limits),
        lambda: tracked.decode(metadata("compiled").layout, "MetadataRequest v9", structs, data, limits=limits),
    ]
    told = []
    for run in runs:
        with pytest.raises(LimitError) as found:
            run()
        told.append((str(found.value), found.value.path))
    assert told == [told[0]] * 3
    assert told[0][1] == path


def test_elements_without_bytes_are_few(implementation: Implementation) -> None:
    # In a version that no field has, a struct has no bytes.
    (message,) = schema.parse("data Hollow versions 0-1\n  list [Item]\n    number int8 1+\n")
    codec = registry.codec(message, 0, implementation)
    assert len(codec.decode(b"\0\0\0\5").list) == 5
    with pytest.raises(LimitError) as found:
        codec.decode(b"\0\1\0\0")
    assert (found.value.path, found.value.offset) == ("$.list", 4)


COUNTED = """data Counted versions 0-1 flexible 0+
  items [Item]
    a int32
    b string
    c uuid
    numbers [int32]
    names [string]
    inner Inner
      d int8
    later [string] 1+
    tagged [string] 0+ tag 0
"""


def test_a_struct_is_counted_by_its_fields() -> None:
    (message,) = schema.parse(COUNTED)
    layout = registry.codec(message, 0).layout
    (items,) = layout.fields
    assert isinstance(items.type, model.ArrayLayout)
    item = items.type.element
    assert isinstance(item, model.StructLayout)
    inner = 40 + 8
    # The object, a slot for each field, a number, a text, a UUID, numbers, three lists, the struct.
    whole = 40 + 8 * 8 + 8 + 32 + 64 + 88 + 3 * 56 + inner
    assert costs.element(item) == 8 + whole
    assert costs.elements(item, 3) == 3 * (8 + whole)


def test_what_cannot_be_beyond_the_limit_is_known_from_the_costliest_byte() -> None:
    text = "data Costly versions 0 flexible 0+\n  items [Item]\n"
    text += "".join(f"    tagged{tag} [string] 0+ tag {tag}\n" for tag in range(3))
    (message,) = schema.parse(text)
    layout, limits = registry.codec(message, 0).layout, Limits(objects=10**9)
    # An item is a byte, which says that it has no tagged fields.
    a_byte = 8 + 40 + 3 * (8 + 56) + 1
    assert costs.uncounted(layout, limits) == limits.for_objects(0) // a_byte
    # Elsewhere it is the byte of an unknown tagged field.
    assert costs.uncounted(metadata("compiled").layout, limits) == limits.for_objects(0) // (costs.UNKNOWN_TAG // 2)


def test_numbers_and_texts_in_arrays_are_counted_by_their_kind() -> None:
    (message,) = schema.parse("data Kinds versions 0\n" + "".join(f"  {one} [{one}]\n" for one in KINDS))
    for field in registry.codec(message, 0).layout.fields:
        assert isinstance(field.type, model.ArrayLayout)
        assert isinstance(field.type.element, model.PrimitiveLayout)
        assert costs.element(field.type.element) == KINDS[field.name]


KINDS = {"bool": 8, "int8": 8, "int16": 40, "int64": 40, "uuid": 112, "string": 56, "bytes": 56}


def forbidden(*_: Any, **__: Any) -> Any:
    raise AssertionError("the slow walk")


def test_what_is_large_is_counted_without_the_slow_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = messages.MetadataResponse
    partitions = [kind.MetadataResponsePartition(replica_nodes=[1, 2, 3], isr_nodes=[1, 2]) for _ in range(10)]
    value = kind(topics=[kind.MetadataResponseTopic(name="t", partitions=partitions) for _ in range(1000)])
    codec = registry.CompiledCodec(kind.SCHEMA, 12)
    data = codec.encode(value)
    assert len(data) > costs.uncounted(codec.layout, DEFAULT_LIMITS)
    monkeypatch.setattr(tracked, "decode", forbidden)
    for _ in range(3):
        assert codec.decode(data) == value
    with pytest.raises(LimitError):
        codec.decode(data, 0, Limits(objects=MIB))
    with pytest.raises(LimitError):
        metadata("compiled").decode(topics(MIB))


def test_text_that_is_not_utf_8_does_not_need_the_slow_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracked, "decode", forbidden)
    data = topics(2, b"\2\xff\0")
    assert [one.name for one in metadata("compiled").decode(data).topics] == ["\udcff"] * 2


@pytest.mark.wide
def test_a_limit_that_is_raised_lets_more_in() -> None:
    data = topics(MIB)
    assert len(metadata("compiled").decode(data, 0, Limits(objects=2 << 30)).topics) == MIB


def test_what_is_wrong_is_told_before_what_is_too_much(implementation: Implementation) -> None:
    # The count is more than the bytes that are left: they are missing, whatever the limit.
    with pytest.raises(DecodeError) as found:
        metadata(implementation).decode(topics(10)[:-8], 0, Limits(objects=1))
    assert not isinstance(found.value, LimitError)


@pytest.mark.wide
def test_a_metadata_response_of_10_mb_is_decoded() -> None:
    kind = messages.MetadataResponse
    partitions = [
        kind.MetadataResponsePartition(partition_index=k, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3])
        for k in range(100)
    ]
    value = kind(topics=[kind.MetadataResponseTopic(name=f"topic-{k}", partitions=partitions) for k in range(2400)])
    frame = kwire.encode_response(value, api_version=12, correlation_id=1)
    assert len(frame) > 10_000_000
    assert len(kwire.decode_response(frame, api_key=3, api_version=12).body.topics) == 2400


def test_a_fetch_response_of_50_mb_is_decoded() -> None:
    kind = messages.FetchResponse
    parts = [kind.PartitionData(partition_index=k, records=bytes(5 * MIB)) for k in range(10)]
    value = kind(responses=[kind.FetchableTopicResponse(topic="t", partitions=parts)])
    frame = kwire.encode_response(value, api_version=12, correlation_id=1)
    assert len(kwire.decode_response(frame, api_key=1, api_version=12).body.responses[0].partitions) == 10
