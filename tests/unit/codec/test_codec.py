"""Both implementations of the codec: invented messages, hand-made bytes, bad input."""

from __future__ import annotations

import copy
import json
import pickle
import random
import subprocess
import sys
import traceback
from array import array
from concurrent.futures import ThreadPoolExecutor
from types import NoneType
from uuid import UUID

import numpy as np
import pytest

import kwire
from kwire import messages, schema
from kwire.codec import objects, registry, tracked
from kwire.codec.registry import Codec, Implementation
from kwire.errors import DecodeError, EncodeError, UnsupportedVersionError
from kwire.schema import model

INVENTED = """
# v1  adds flags
request Invented key 9000 versions 0-3 flexible 2+
  name             string
  note             string?
  flags            int8 = 3                1+
  id               uuid                    1+ ignorable
  numbers          [int32]
  names            [string]?1+
  pairs            [Pair]
    left           int16
    right          int16
  one              Inner?3+ = null         3+
    count          int64
  extra            string? = null          2+  tag 1
  more             Inner2                  2+  tag 0
    depth          int32 = -1
"""


@pytest.fixture
def implementation(codec_implementation: Implementation) -> Implementation:
    return codec_implementation


@pytest.fixture(params=registry.IMPLEMENTATIONS)
def codec_implementation(request: pytest.FixtureRequest) -> Implementation:
    return request.param  # type: ignore[no-any-return]


INVENTED_MESSAGE = schema.parse(INVENTED)[0]
Invented = registry.message_class(INVENTED_MESSAGE)


def invented(version: int, implementation: Implementation) -> Codec:
    return registry.codec(INVENTED_MESSAGE, version, implementation)


def test_plain_layout_is_written_field_by_field(implementation: Implementation) -> None:
    pair = Invented.Pair(left=1, right=-1)
    value = Invented(name="ab", note=None, flags=4, numbers=[7, 8], names=["x"], pairs=[pair])
    data = invented(1, implementation).encode(value)
    assert (
        data
        == bytes.fromhex(
            "0002 6162"  # name
            "ffff"  # note: null
            "04" + "00" * 16 + "00000002 00000007 00000008"
            "00000001 0001 78"
            "00000001 0001 ffff"
        )
    )
    assert invented(1, implementation).decode(data) == value


def test_flexible_layout_has_compact_lengths_and_tagged_sections(implementation: Implementation) -> None:
    value = Invented(
        name="ab",
        note="",
        names=None,
        pairs=[Invented.Pair(left=1, right=2)],
        one=Invented.Inner(count=5),
        extra="z",
        more=Invented.Inner2(depth=9),
        unknown_tagged_fields={300: b"??"},
    )
    data = invented(3, implementation).encode(value)
    assert data == bytes.fromhex(
        "03 6162"
        "01"
        "03"
        + "00" * 16
        + "01"  # numbers: none
        "00"  # names: null
        "02 0001 0002 00"  # one pair and its tagged section
        "01 0000000000000005 00"  # a nullable struct that is there
        "03"  # three tagged fields, ascending
        "00 05 00000009 00"
        "01 02 02 7a".replace("02 02 7a", "02 027a")
        + "ac02 02 3f3f"
    )
    back = invented(3, implementation).decode(data)
    assert back == value
    assert back.unknown_tagged_fields == {300: b"??"}


def test_defaults_of_tagged_fields_are_left_out_and_read_back(implementation: Implementation) -> None:
    data = invented(2, implementation).encode(Invented(names=[]))
    assert data.endswith(b"\x00")
    back = invented(2, implementation).decode(data)
    assert back.extra is None
    assert back.more == Invented.Inner2(depth=-1)
    assert back.unknown_tagged_fields is None


def test_a_version_without_a_field_reads_its_default(implementation: Implementation) -> None:
    data = invented(0, implementation).encode(Invented(names=[]))
    assert invented(0, implementation).decode(data).flags == 3


def test_a_value_that_the_version_cannot_hold_is_refused(implementation: Implementation) -> None:
    with pytest.raises(EncodeError, match=r"InventedRequest v0 \$\.flags"):
        invented(0, implementation).encode(Invented(names=[], flags=9))


def test_an_ignorable_value_is_dropped_where_the_version_lacks_the_field(implementation: Implementation) -> None:
    value = Invented(names=[], id=UUID(int=5))
    assert invented(0, implementation).encode(value) == invented(0, implementation).encode(Invented(names=[]))


def test_unknown_tags_cannot_be_written_in_a_version_without_tagged_sections(implementation: Implementation) -> None:
    with pytest.raises(EncodeError):
        invented(1, implementation).encode(Invented(names=[], unknown_tagged_fields={5: b""}))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": None}, "$.name"),
        ({"name": 5}, "$.name"),
        ({"name": "x" * 40000}, "$.name"),
        ({"name": "\ud800"}, "$.name"),
        ({"flags": 200}, "$.flags"),
        ({"numbers": [1, "2"]}, "$.numbers[1]"),
        ({"names": "abc"}, "$.names"),
        ({"pairs": None}, "$.pairs"),
        ({"pairs": [Invented.Pair(), Invented.Inner()]}, "$.pairs[1]"),
        ({"pairs": [Invented.Pair(right=70000)]}, "$.pairs[0].right"),
    ],
)
def test_what_does_not_fit_is_an_encode_error_with_its_path(
    implementation: Implementation, change: dict[str, object], path: str
) -> None:
    value = Invented(names=[])
    for name, wrong in change.items():
        setattr(value, name, wrong)
    with pytest.raises(EncodeError) as caught:
        invented(1, implementation).encode(value)
    assert caught.value.path == path
    assert caught.value.layout == "InventedRequest v1"


WHOLE = bytes.fromhex(
    "0002 6162 ffff 04" + "00" * 16 + "00000002 00000007 00000008 00000001 0001 78 00000001 0001 ffff"
)


@pytest.mark.parametrize(
    ("data", "path", "offset"),
    [
        (b"", "$.name", 0),
        (WHOLE[:3], "$.name", 0),
        (b"\xff\xff" + WHOLE[4:], "$.name", 0),
        (b"\xff\xfe" + WHOLE[4:], "$.name", 0),
        (WHOLE[:10], "$.id", 7),
        (WHOLE[:23] + b"\x7f\xff\xff\xff" + WHOLE[27:], "$.numbers", 23),
        (WHOLE[:23] + b"\xff\xff\xff\xff" + WHOLE[27:], "$.numbers", 23),
        (WHOLE[:39] + b"\x00\x50" + WHOLE[41:], "$.names[0]", 39),
        (WHOLE[:-1], "$.pairs", 42),
        (WHOLE + b"\x00\x00", "$", 50),
    ],
)
def test_bad_bytes_say_which_field_and_where(
    implementation: Implementation, data: bytes, path: str, offset: int
) -> None:
    with pytest.raises(DecodeError) as caught:
        invented(1, implementation).decode(data)
    assert (caught.value.path, caught.value.offset) == (path, offset)
    assert caught.value.layout == "InventedRequest v1"


def flexible(*, tags: str) -> bytes:
    return bytes.fromhex("01 00 03" + "00" * 16 + "01 01 01" + tags)


@pytest.mark.parametrize(
    ("tags", "path", "offset"),
    [
        ("", "$.unknown_tagged_fields", 22),
        ("01", "$.unknown_tagged_fields", 23),
        ("01 07 05 0000", "$.unknown_tagged_fields", 24),
        ("01 00 06 00000009 00 00", "$.more", 25),
        ("01 00 02 00000009 00", "$.more.depth", 25),
        ("ffffffffff01", "$.unknown_tagged_fields", 22),
    ],
)
def test_tagged_sections_are_bounded_by_their_declared_sizes(
    implementation: Implementation, tags: str, path: str, offset: int
) -> None:
    with pytest.raises(DecodeError) as caught:
        invented(2, implementation).decode(flexible(tags=tags))
    assert (caught.value.path, caught.value.offset) == (path, offset)


def test_tags_may_come_in_any_order_and_twice_and_are_written_ascending(implementation: Implementation) -> None:
    data = flexible(tags="03 09 01 61 01 02 027a 09 01 62")
    back = invented(2, implementation).decode(data)
    assert back.extra == "z"
    assert back.unknown_tagged_fields == {9: b"b"}
    assert invented(2, implementation).encode(back) == flexible(tags="02 01 02 027a 09 01 62")


def test_overlong_varints_and_odd_bools_are_read_and_written_canonically(implementation: Implementation) -> None:
    overlong = bytes.fromhex("8180 00 00 03" + "00" * 16 + "818000 01 01 8000")
    back = invented(2, implementation).decode(overlong)
    assert invented(2, implementation).encode(back) == flexible(tags="00")
    codec = registry.request_codec(3, 4, implementation)
    assert codec.decode(bytes.fromhex("ffffffff 02")).allow_auto_topic_creation is True
    assert codec.encode(codec.decode(bytes.fromhex("ffffffff 02"))) == bytes.fromhex("ffffffff 01")


@pytest.mark.parametrize(
    ("data", "version"),
    [
        (WHOLE[:4] + b"\xff\xfe" + WHOLE[6:], 1),
        (WHOLE[:4] + b"\x80\x00" + WHOLE[6:], 1),
        (flexible(tags="00")[:1] + bytes.fromhex("ffffffff0f") + flexible(tags="00")[2:], 2),
        (flexible(tags="00")[:1] + bytes.fromhex("8180808008") + flexible(tags="00")[2:], 2),
    ],
)
def test_any_negative_length_is_null(implementation: Implementation, data: bytes, version: int) -> None:
    # Of a compact length by the int of Java that its varint is.
    back = invented(version, implementation).decode(data)
    assert back.note is None
    assert implementation == "reference" or tracked_twin(back, data, version)


def tracked_twin(back: object, data: bytes, version: int) -> bool:
    structs = registry._structs(INVENTED_MESSAGE)
    return tracked.decode(model.layout(INVENTED_MESSAGE, version), "", structs, data)[0] == back


@pytest.mark.parametrize("length", ["8080808008", "81808008"])
def test_a_compact_length_is_negative_above_2_to_the_31_and_no_less(
    implementation: Implementation, length: str
) -> None:
    data = flexible(tags="00")[:1] + bytes.fromhex(length) + flexible(tags="00")[2:]
    with pytest.raises(DecodeError, match="length"):
        invented(2, implementation).decode(data)


def test_numbers_that_json_does_not_have_are_words() -> None:
    entry = messages.AlterClientQuotasRequest.EntryData
    values = (float("-inf"), float("nan"), float("inf"), 0.5)
    ops = [messages.AlterClientQuotasRequest.OpData(key="k", value=value) for value in values]
    made = messages.AlterClientQuotasRequest(entries=[entry(ops=ops)])

    def refuse(text: str) -> None:
        raise AssertionError(text)

    text = made.to_json()
    shown = json.loads(text, parse_constant=refuse)["entries"][0]["ops"]
    assert [one["value"] for one in shown] == ["-Infinity", "NaN", "Infinity", 0.5]
    back = messages.AlterClientQuotasRequest.from_dict(json.loads(text))
    assert [repr(one.value) for one in back.entries[0].ops] == list(map(repr, values))
    codec = registry.request_codec(49, 1)
    assert codec.encode(back) == codec.encode(made)


def test_bytes_that_are_not_utf8_do_not_lose_a_message(implementation: Implementation) -> None:
    data = WHOLE[:2] + b"\xe9b" + WHOLE[4:]
    back = invented(1, implementation).decode(data)
    assert back.name == "\udce9b"
    assert invented(1, implementation).encode(back) == data
    assert '"name":"\ufffdb"' in back.to_json()


def test_long_record_sets_are_views_and_equal_to_their_bytes(implementation: Implementation) -> None:
    records = bytes(range(256)) * 8
    partition = messages.ProduceRequest.PartitionProduceData(records=records)
    topic = messages.ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    value = messages.ProduceRequest(acks=1, topic_data=[topic])
    codec = registry.request_codec(0, 3, implementation)
    data = codec.encode(value)
    back = codec.decode(data)
    assert back == value
    assert codec.encode(back) == data
    assert pickle.loads(pickle.dumps(back)) == value
    assert copy.deepcopy(back) == value
    assert type(back).from_dict(back.to_dict()) == value


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("size", [None, 0, 1, 126, 127, 128, 1021, 1022, 1023, 1024, 16382, 16383, 70000])
def test_record_sets_of_every_length_are_read(version: int, size: int | None, implementation: Implementation) -> None:
    kind = messages.ProduceRequest
    records = None if size is None else random.Random(size).randbytes(size)
    partitions = [kind.PartitionProduceData(index=index, records=records) for index in range(3)]
    topics = [kind.TopicProduceData(name="t", partition_data=partitions)]
    codec = registry.request_codec(0, version, implementation)
    data = codec.encode(kind(topic_data=topics))
    back = codec.decode(data)
    assert [one.records for one in back.topic_data[0].partition_data] == [records] * 3
    assert codec.encode(back) == data
    for cut in (1, 2, 5, len(data) // 2):
        with pytest.raises(DecodeError):
            codec.decode(data[:-cut])


@pytest.mark.parametrize(("length", "records"), [("8000", None), ("8100", b""), ("808000", None), ("838000", b"ab")])
def test_overlong_lengths_of_record_sets(length: str, records: bytes | None, implementation: Implementation) -> None:
    codec = registry.request_codec(0, 9, implementation)
    content = "" if records is None else records.hex()
    back = codec.decode(bytes.fromhex(f"00 ffff 00000000 02 0274 02 00000007 {length}{content} 00 00 00"))
    (partition,) = back.topic_data[0].partition_data
    assert (partition.index, partition.records) == (7, records)


def test_arrays_of_numbers_are_tuples_and_lists_are_as_good(implementation: Implementation) -> None:
    codec = invented(1, implementation)
    given = Invented(name="a", numbers=[1, 2, 3], names=["x"])
    assert given.numbers == (1, 2, 3)
    back = codec.decode(codec.encode(given))
    assert back == given
    assert back.numbers == (1, 2, 3)
    assert back.names == ["x"]
    assert back.to_dict()["numbers"] == [1, 2, 3]
    back.numbers = [1, 2, 3]
    assert back == given
    assert codec.encode(back) == codec.encode(given)
    back.numbers = [1, 2]
    assert back != given
    assert Invented.from_dict({"numbers": [5]}).numbers == (5,)
    many = tuple(range(1000))
    assert codec.decode(codec.encode(Invented(name="a", numbers=many))).numbers == many


@pytest.mark.parametrize("empty", [[], ()])
def test_an_empty_array_is_a_default_however_it_is_written(empty: object, implementation: Implementation) -> None:
    plain = messages.MetadataResponse.MetadataResponsePartition(leader_id=1)
    given = messages.MetadataResponse.MetadataResponsePartition(leader_id=1)
    given.offline_replicas = empty
    assert given == plain
    wrap = messages.MetadataResponse.MetadataResponseTopic
    codec = registry.response_codec(3, 1, implementation)  # a version without offline_replicas
    data = [codec.encode(messages.MetadataResponse(topics=[wrap(partitions=[one])])) for one in (plain, given)]
    assert data[0] == data[1]


def test_a_struct_that_was_not_sent_is_the_shared_default(implementation: Implementation) -> None:
    kind = messages.FetchResponse
    partitions = [kind.PartitionData(partition_index=index) for index in range(2)]
    partitions[1].current_leader = kind.LeaderIdAndEpoch(leader_id=4)
    sent = kind(responses=[kind.FetchableTopicResponse(topic="t", partitions=partitions)])
    codec = registry.response_codec(1, 12, implementation)
    data = codec.encode(sent)
    first, second = codec.decode(data).responses[0].partitions
    default = first.current_leader
    assert default == kind.LeaderIdAndEpoch()
    assert kind.LeaderIdAndEpoch() == default
    assert isinstance(default, kind.LeaderIdAndEpoch)
    assert default.__class__ is kind.LeaderIdAndEpoch
    assert default.to_dict() == {"leader_id": -1, "leader_epoch": -1}
    assert default is kind.PartitionData().current_leader
    with pytest.raises(AttributeError, match=r"FetchResponse\.LeaderIdAndEpoch\.leader_id: this is the shared default"):
        default.leader_id = 3
    with pytest.raises(AttributeError):
        del default.leader_id
    assert default.leader_id == -1
    second.current_leader.leader_epoch = 9  # what was on the wire is the message's own
    for copied in (copy.copy(default), copy.deepcopy(default), pickle.loads(pickle.dumps(default))):
        assert copied == default
        copied.leader_id = 3
        assert copied != default
        first.current_leader = copied
        again = codec.decode(codec.encode(kind(responses=[kind.FetchableTopicResponse(partitions=[first])])))
        assert again.responses[0].partitions[0].current_leader.leader_id == 3
    assert copy.deepcopy(sent) == pickle.loads(pickle.dumps(sent)) == sent
    assert codec.encode(copy.deepcopy(sent)) == data


def test_nothing_that_messages_share_can_be_changed() -> None:
    for name in schema.names():
        registry.message_class(schema.message(name))  # makes the defaults
    assert objects._SHARED
    shared = {id(default) for default in objects._SHARED.values()}
    for default in objects._SHARED.values():
        for field in default.FIELDS:
            value = getattr(default, field.name)
            # A tuple could hold something that can be changed; the empty one does not.
            constant = value == () or isinstance(value, (int, float, str, bytes, UUID, NoneType))
            assert (constant and not isinstance(value, list)) or id(value) in shared, (type(default), field.name)
    kind = messages.ConsumerGroupDescribeResponse
    member = kind.Member()
    with pytest.raises(AttributeError):
        member.assignment.topic_partitions.append(kind.TopicPartitions())
    own = copy.copy(member.assignment)
    own.topic_partitions.append(kind.TopicPartitions(topic_name="t"))
    assert own != member.assignment
    assert kind.Member().assignment.topic_partitions == ()
    assert kind.Assignment() == member.assignment


UNSIGNED = schema.parse("request Unsigned key 9001 versions 0\n  ports  [uint16]\n  ids  [uint32]\n  sizes  [int64]\n")[
    0
]


@pytest.mark.parametrize("count", [0, 1, 32, 33, 500])
def test_numbers_in_long_arrays_keep_their_signs(count: int, implementation: Implementation) -> None:
    codec = registry.codec(UNSIGNED, 0, implementation)
    value = registry.message_class(UNSIGNED)(
        ports=[65535, 0] * count, ids=[2**32 - 1, 1] * count, sizes=[-(2**63), 5] * count
    )
    back = codec.decode(codec.encode(value))
    assert back == value
    assert back.ids == (2**32 - 1, 1) * count


@pytest.mark.parametrize(
    "given",
    [range(2), {1, 2}, {1: 2}, b"ab", "ab", array("i", [1]), np.array([0]), np.array([1, 2]), iter([1])],
    ids=lambda given: f"{type(given).__name__}-{given!s}"[:24],
)
def test_only_lists_and_tuples_are_arrays(given: object, implementation: Implementation) -> None:
    plain = registry.codec(messages.DescribeLogDirsRequest.SCHEMA, 0, implementation)
    topic = messages.DescribeLogDirsRequest.DescribableLogDirTopic(topic="t")
    topic.partitions = given
    with pytest.raises(EncodeError, match="expected a list"):
        plain.encode(messages.DescribeLogDirsRequest(topics=[topic]))
    shaped = registry.response_codec(3, 1, implementation)
    partition = messages.MetadataResponse.MetadataResponsePartition()
    partition.replica_nodes = given
    topics = [messages.MetadataResponse.MetadataResponseTopic(name="t", partitions=[partition])]
    with pytest.raises(EncodeError, match="expected a list"):
        shaped.encode(messages.MetadataResponse(topics=topics))
    tagged = registry.codec(messages.PartitionChangeRecord.SCHEMA, 0, implementation)
    with pytest.raises(EncodeError, match="expected a list"):
        tagged.encode(messages.PartitionChangeRecord(isr=given))


@pytest.mark.parametrize("given", [None, messages.FetchResponse.SnapshotId(), object()], ids=["null", "other", "any"])
def test_a_struct_field_takes_its_own_class_only(given: object, implementation: Implementation) -> None:
    kind = messages.FetchResponse
    partition = kind.PartitionData()
    partition.current_leader = given
    codec = registry.response_codec(1, 12, implementation)
    with pytest.raises(EncodeError, match="current_leader"):
        codec.encode(kind(responses=[kind.FetchableTopicResponse(partitions=[partition])]))


@pytest.mark.wide
def test_threads_may_share_a_codec() -> None:
    """While one decodes, another changes the guesses: sooner or later in every interleaving."""
    kind = messages.MetadataResponse
    chance = random.Random(3)

    def metadata(replicas: int) -> bytes:
        partitions = [
            kind.MetadataResponsePartition(
                partition_index=index, replica_nodes=range_of(replicas), isr_nodes=range_of(chance.randint(0, replicas))
            )
            for index in range(30)
        ]
        topics = [kind.MetadataResponseTopic(name="t", partitions=partitions) for _ in range(3)]
        return registry.codec(kind.SCHEMA, 12).encode(kind(topics=topics))

    def range_of(count: int) -> list[int]:
        return list(range(count))

    data = [metadata(replicas) for replicas in (1, 2, 3, 3, 3, 4, 5)]
    expected = [registry.codec(kind.SCHEMA, 12, "reference").decode(one) for one in data]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            codec = registry.CompiledCodec(kind.SCHEMA, 12)

            def work(seed: int, codec: Codec = codec) -> None:
                order = random.Random(seed)
                for _ in range(30):
                    which = order.randrange(len(data))
                    assert codec.decode(data[which]) == expected[which]

            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)


def test_a_large_message_is_no_reason_to_give_up_guessing() -> None:
    kind = messages.MetadataResponse
    partitions = [kind.MetadataResponsePartition(replica_nodes=[1, 2, 3], isr_nodes=[1, 2]) for _ in range(10)]
    for topics in (90, 1000):
        value = kind(topics=[kind.MetadataResponseTopic(name="t", partitions=partitions) for _ in range(topics)])
        data = registry.codec(kind.SCHEMA, 12).encode(value)
        codec = registry.CompiledCodec(kind.SCHEMA, 12)
        for _ in range(3):
            assert codec.decode(data) == value
        assert codec._guesses == {0: [(3, 2, 0)]}
        assert codec._recompilations == 1


def test_a_rare_shape_is_no_guess() -> None:
    kind = messages.MetadataResponse
    partitions = [kind.MetadataResponsePartition(replica_nodes=[1, 2, 3], isr_nodes=[1, 2]) for _ in range(60)]
    partitions += [kind.MetadataResponsePartition(replica_nodes=[1], isr_nodes=[1]) for _ in range(4)]
    codec = registry.CompiledCodec(kind.SCHEMA, 12)
    value = kind(topics=[kind.MetadataResponseTopic(name="t", partitions=partitions)])
    data = codec.encode(value)
    for _ in range(3):
        assert codec.decode(data) == value
    assert codec._guesses == {0: [(3, 2, 0)]}


@pytest.mark.parametrize("version", [3, 9])
def test_large_record_sets_are_views_and_need_no_slow_walk(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = messages.ProduceRequest
    codec = registry.codec(kind.SCHEMA, version)
    for size in (0, 1, 126, 127, 128, 383, 384, 385, 1022, 1023, 1024, 16382, 16383, 16384, 20_000):
        part = kind.PartitionProduceData(index=1, records=bytes([size % 251]) * size)
        value = kind(topic_data=[kind.TopicProduceData(name="t", partition_data=[part, part])])
        data = codec.encode(value)
        structs = registry._structs(kind.SCHEMA)
        walked, end = tracked.decode(codec.layout, "ProduceRequest", structs, data)
        assert (walked, end) == (value, len(data))
        with monkeypatch.context() as patched:
            patched.setattr(tracked, "decode", None)
            made = codec.decode(data)
        assert made == value
        kinds = {type(one.records) for one in made.topic_data[0].partition_data}
        assert kinds == {bytes if size < 1023 else memoryview}


def test_absurd_counts_are_refused_before_anything_is_allocated(implementation: Implementation) -> None:
    import tracemalloc

    codec = registry.response_codec(3, 1, implementation)
    data = bytes.fromhex("7fffffff") + bytes(64)
    with pytest.raises(DecodeError):
        codec.decode(data)  # imports and compilation are not what is measured
    tracemalloc.start()
    with pytest.raises(DecodeError):
        codec.decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


def test_unknown_versions_and_keys_name_what_is_known() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest.*version 99 .*0-18"):
        kwire.decode_request(bytes.fromhex("0001 0063 00000001 ffff 00"))
    with pytest.raises(UnsupportedVersionError, match="API key 4242"):
        kwire.decode_request(bytes.fromhex("1092 0000 00000001 ffff"))
    with pytest.raises(EncodeError, match="0-18"):
        kwire.encode_request(messages.FetchRequest(), api_version=19, correlation_id=1)
    with pytest.raises(DecodeError):
        kwire.decode_request(b"\x00")


def test_request_headers_follow_the_version(implementation: Implementation) -> None:
    body = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    frame = kwire.encode_request(body, api_version=3, correlation_id=7, client_id="me", implementation=implementation)
    # Header v2: client_id keeps its int16 length, and a tagged section follows (KIP-482).
    assert frame == bytes.fromhex("0012 0003 00000007 0002 6d65 00  02 78 02 31 00")
    request = kwire.decode_request(frame, implementation=implementation)
    assert request.body == body
    assert request.header.client_id == "me"
    shutdown = messages.ControlledShutdownRequest(broker_id=3)
    frame = kwire.encode_request(shutdown, api_version=0, correlation_id=1, implementation=implementation)
    assert frame == bytes.fromhex("0007 0000 00000001 00000003")
    assert kwire.decode_request(frame, implementation=implementation).body == shutdown


def test_api_versions_responses_have_header_v0_in_every_version(implementation: Implementation) -> None:
    body = messages.ApiVersionsResponse(throttle_time_ms=1)
    frame = kwire.encode_response(body, api_version=3, correlation_id=7, implementation=implementation)
    assert frame == bytes.fromhex("00000007 0000 01 00000001 00")
    assert kwire.decode_response(frame, api_key=18, api_version=3, implementation=implementation).body == body


@pytest.mark.parametrize("asked", [1, 3, 4, 127])
def test_an_api_versions_answer_to_an_unknown_version_is_read_as_v0(implementation: Implementation, asked: int) -> None:
    frame = bytes.fromhex("00000007 0023 00000001 0012 0000 0004")
    response = kwire.decode_response(frame, api_key=18, api_version=asked, implementation=implementation)
    assert response.api_version == 0
    assert response.body.error_code == 35
    assert response.body.api_keys[0].max_version == 4


def test_a_truncated_api_versions_answer_is_reported_in_the_version_asked_for() -> None:
    with pytest.raises(DecodeError, match="ApiVersionsResponse v3"):
        kwire.decode_response(bytes.fromhex("00000007 0023 00"), api_key=18, api_version=3)


def test_from_dict_refuses_what_the_schema_does_not_have() -> None:
    with pytest.raises(EncodeError, match=r"\$\.topic_data\[0\].*no field named 'topick'"):
        messages.ProduceRequest.from_dict({"topic_data": [{"topick": "x"}]})
    with pytest.raises(EncodeError, match="base64"):
        messages.ProduceRequest.from_dict({"topic_data": [{"partition_data": [{"records": "***"}]}]})
    with pytest.raises(EncodeError, match="expected a list"):
        messages.ProduceRequest.from_dict({"topic_data": "abc"})


def test_to_dict_with_a_version_holds_only_what_the_version_has() -> None:
    assert list(messages.ProduceRequest().to_dict(2)) == ["acks", "timeout_ms", "topic_data"]


def test_messages_know_their_names_and_defaults() -> None:
    assert messages.ProduceRequest.SCHEMA.api_key == 0
    assert messages.FetchRequest() == messages.FetchRequest()
    assert messages.FetchRequest(max_wait_ms=1) != messages.FetchRequest()
    assert "max_wait_ms=1" in repr(messages.FetchRequest(max_wait_ms=1))
    assert "ProduceRequest" in dir(messages)
    with pytest.raises(AttributeError):
        _ = messages.NoSuchMessage  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(messages.FetchRequest())


def test_generated_source_is_shown_in_tracebacks() -> None:
    codec = registry.request_codec(3, 1, "compiled")
    assert isinstance(codec, registry.CompiledCodec)
    codec.encode(messages.MetadataRequest())
    try:
        codec.write(messages.MetadataRequest(topics=[object()]))
    except AttributeError as error:
        shown = "".join(traceback.format_exception(error))
    assert "<kwire MetadataRequest v1 encode>" in shown
    assert "unknown_tagged_fields: retry()" in shown


def test_decoding_imports_neither_construct_nor_the_optional_packages() -> None:
    script = (
        "import sys, kwire;"
        "kwire.decode_request(bytes.fromhex('0012000000000007ffff'));"
        "print(sorted({'construct','numpy','numba','pyarrow','pyspark','rich'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("version", [1, 9, 12])
def test_guessed_array_lengths_change_speed_and_nothing_else(version: int) -> None:
    chance = random.Random(version)
    kind = messages.MetadataResponse

    def metadata(shapes: list[tuple[int, int]]) -> bytes:
        partitions = []
        for index in range(20):
            replicas, in_sync = chance.choice(shapes)
            partition = kind.MetadataResponsePartition(partition_index=index, leader_id=chance.getrandbits(30))
            partition.replica_nodes = list(range(replicas))
            partition.isr_nodes = list(range(in_sync))
            if version >= 9 and chance.random() < 0.02:
                partition.unknown_tagged_fields = {99: b"x"}
            partitions.append(partition)
        topic = kind.MetadataResponseTopic(name="t", partitions=partitions)
        return registry.codec(kind.SCHEMA, version).encode(kind(topics=[topic]))

    codec = registry.CompiledCodec(kind.SCHEMA, version)
    reference = registry.codec(kind.SCHEMA, version, "reference")
    guesses = []
    # One shape, two, a change of the usual one, and then anything; the last partition stands at the end of the data.
    for shapes in ([(3, 3)], [(3, 3), (3, 2)], [(2, 2), (1, 1)], [(a, b) for a in range(5) for b in range(5)]):
        for _ in range(15):
            data = metadata(shapes)
            assert codec.decode(data) == reference.decode(data)
            cut = data[: chance.randrange(len(data))]
            with pytest.raises(DecodeError) as caught:
                codec.decode(cut)
            with pytest.raises(DecodeError) as expected:
                reference.decode(cut)
            assert (caught.value.path, caught.value.offset) == (expected.value.path, expected.value.offset)
        guesses.append({tuple(shape[:2]) for shape in codec._guesses.get(0, [])})
    assert guesses[0] == {(3, 3)}
    assert {(2, 2), (1, 1)} <= guesses[2]
    assert codec._recompilations <= codec.MOST_RECOMPILATIONS
