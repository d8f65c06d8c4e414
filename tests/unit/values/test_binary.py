"""MessagePack and CBOR are JSON text as their libraries read them, and nothing of a value is lost or invented."""

from __future__ import annotations

import json
import math
import random
import re
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import cbor2
import msgpack
import pyarrow as pa
import pytest

from kwire.errors import SchemaError
from kwire.values import Mask, Reader, Schemas, Written, decode
from kwire.values.binary import DEEPEST, json_text

PACK = {"msgpack": msgpack.packb, "cbor": cbor2.dumps}


def made(chance: random.Random, depth: int = 0) -> Any:
    """A value that both formats have, and JSON too."""
    kind = chance.randrange(9 if depth < 4 else 7)
    if kind == 7:
        return [made(chance, depth + 1) for _ in range(chance.choice((0, 1, 3, 17)))]
    if kind == 8:
        return {f"k{at}": made(chance, depth + 1) for at in range(chance.choice((0, 1, 3, 17)))}
    size = chance.choice((0, 1, 31, 32, 255, 256, 70_000 if depth == 0 else 3))
    return (
        None,
        chance.random() < 0.5,
        chance.choice((1, -1)) * chance.getrandbits(chance.choice((3, 7, 8, 16, 32, 63))),
        chance.random() * 10 ** chance.randrange(-300, 300),
        "é" * size,
        struct.unpack("f", struct.pack("f", chance.random()))[0],
        '"\\\n\0' * min(size, 40),
    )[kind]


@pytest.mark.parametrize("name", PACK)
def test_what_a_library_packs_is_what_json_says(name: str) -> None:
    chance = random.Random(5)
    for _ in range(300):
        value = made(chance)
        assert json.loads(json_text(PACK[name](value), name)) == value


READ = {
    "msgpack": lambda data: msgpack.unpackb(data, strict_map_key=False, unicode_errors="strict"),
    "cbor": cbor2.loads,
}


@pytest.mark.parametrize("name", PACK)
def test_a_value_that_is_cut_off_or_goes_on_is_refused_with_its_byte(name: str) -> None:
    data = PACK[name]({"a": [1, 2.5, "text", b"bytes", {"b": 1 << 40}], "c": "x" * 40})
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"at byte \d+: the value ends before it is complete"):
            json_text(data[:end], name)
    with pytest.raises(ValueError, match=rf"at byte {len(data)}: the value goes on after its end"):
        json_text(data + b"\0", name)


@pytest.mark.parametrize("name", PACK)
def test_a_count_beyond_the_bytes_is_refused_before_its_items_are_read(name: str) -> None:
    """Also where it would fit into what was read before it."""
    text = "x" * 200
    data = bytearray(PACK[name]([text, [0] * 20]))
    where = len(PACK[name](text)) + 1
    head = {"msgpack": "dc0015", "cbor": "9815"}[name]
    size = len(PACK[name]([0] * 20)) - 20
    data[where : where + size] = bytes.fromhex(head)
    with pytest.raises(ValueError, match=f"^at byte {where}: the value ends before it is complete"):
        json_text(bytes(data), name)


def test_a_tag_without_a_meaning_in_json_may_stand_before_any_item() -> None:
    plain = (None, False, "é", [1, "two"], -5, b"six", {"a": 1.5}, 10**6, list(range(31)), cbor2.CBORTag(1, 0))
    for value in plain:
        assert json_text(cbor2.dumps(cbor2.CBORTag(55799, value)), "cbor") == json_text(cbor2.dumps(value), "cbor")
    for tag in (21, 22, 23, 24, 32, 33, 34, 1004):
        nested = cbor2.CBORTag(55799, cbor2.CBORTag(tag, cbor2.CBORTag(1, 0)))
        assert json_text(cbor2.dumps(nested), "cbor") == json_text(cbor2.dumps(cbor2.CBORTag(1, 0)), "cbor")


@pytest.mark.parametrize("name", PACK)
def test_damaged_values_are_refused_or_are_what_the_library_reads(name: str) -> None:
    chance = random.Random(7)
    agreed = refused = 0
    for _ in range(1500):
        data = bytearray(PACK[name](made(chance, 2)))
        for _ in range(chance.randrange(3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        ours, theirs = tried(json_text, bytes(data), name), tried(READ[name], bytes(data))
        if isinstance(ours, Exception):
            # What the library reads all the same is refused for one of these reasons.
            why = r"a name is repeated|a key that is more|the value goes on after its end"
            assert isinstance(theirs, Exception) or re.search(why, str(ours)), theirs
            refused += 1
            continue
        found = json.loads(ours)  # it is JSON in any case
        assert len(ours.encode()) <= 20 * len(data)
        # Keys that are no text, bytes, times, and numbers that JSON has not: there is nothing to compare.
        text = tried(json.dumps, theirs, allow_nan=False)
        if isinstance(text, str) and json.loads(text) == theirs:
            assert found == theirs
            agreed += 1
    assert agreed > 250
    assert refused > 100


def tried(call: Any, *args: Any, **more: Any) -> Any:
    """What a call gives, or the error with which it refuses."""
    try:
        return call(*args, **more)
    except (ValueError, TypeError, OverflowError, cbor2.CBORError, msgpack.UnpackException) as error:
        return error


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"ab", '"YWI="'),
        ({3: 1, None: 2, True: 3, 1.5: 4, b"a": 5}, '{"3":1,"null":2,"true":3,"1.5":4,"YQ==":5}'),
        ([math.nan, math.inf, -math.inf], '["NaN","Infinity","-Infinity"]'),
        ((1 << 64) - 1, "18446744073709551615"),
        (-(1 << 63), "-9223372036854775808"),
    ],
)
@pytest.mark.parametrize("name", PACK)
def test_what_json_has_not_has_one_text_in_both_formats(name: str, value: Any, expected: str) -> None:
    assert json_text(PACK[name](value), name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (msgpack.Timestamp(1700000000, 0), '"2023-11-14T22:13:20Z"'),
        (msgpack.Timestamp(1700000000, 5000), '"2023-11-14T22:13:20.000005Z"'),
        (msgpack.Timestamp(-62135596800, 1), '"0001-01-01T00:00:00.000000001Z"'),
        (msgpack.Timestamp(1 << 60, 0), '{"type":-1,"data":"AAAAABAAAAAAAAAA"}'),
        (msgpack.ExtType(5, b"ab"), '{"type":5,"data":"YWI="}'),
        (msgpack.ExtType(5, b"abcd"), '{"type":5,"data":"YWJjZA=="}'),
    ],
)
def test_extensions_of_messagepack(value: Any, expected: str) -> None:
    assert json_text(msgpack.packb(value), "msgpack") == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (cbor2.dumps(2**100), str(2**100)),
        (cbor2.dumps(-(2**100)), str(-(2**100))),
        (cbor2.dumps(Decimal("-1.50")), "-1.50"),
        (
            cbor2.dumps(Decimal("1234567890123456789012345678901234567890.5")),
            "1234567890123456789012345678901234567890.5",
        ),
        (cbor2.dumps(UUID(int=5)), '"00000000-0000-0000-0000-000000000005"'),
        (cbor2.dumps(datetime(2026, 11, 26, 10, 0, tzinfo=UTC)), '"2026-11-26T10:00:00Z"'),
        (cbor2.dumps(cbor2.CBORTag(1, 1700000000.25)), '"2023-11-14T22:13:20.25Z"'),
        (cbor2.dumps(cbor2.CBORTag(1, 5.9999999)), '"1970-01-01T00:00:06Z"'),
        (cbor2.dumps(cbor2.CBORTag(1, -0.5)), '"1969-12-31T23:59:59.5Z"'),
        (cbor2.dumps(cbor2.CBORTag(1, math.nan)), '{"tag":1,"value":"NaN"}'),
        (cbor2.dumps(cbor2.CBORTag(1, 1e308)), '{"tag":1,"value":1e+308}'),
        (cbor2.dumps(cbor2.CBORTag(1, 10**17)), '{"tag":1,"value":100000000000000000}'),
        (cbor2.dumps(cbor2.CBORTag(35, "a+")), '{"tag":35,"value":"a+"}'),
        (cbor2.dumps(cbor2.CBORTag(5000, [1, {"a": 2}])), '{"tag":5000,"value":[1,{"a":2}]}'),
        (cbor2.dumps(cbor2.undefined), "null"),
        (cbor2.dumps(cbor2.CBORSimpleValue(99)), '{"simple":99}'),
        (b"\xf9\x3c\x00", "1.0"),
        (b"\x9f\x01\x9f\xff\xff", "[1,[]]"),
        (b"\xbf\x61a\x01\xff", '{"a":1}'),
        (b"\x7f\x61a\x62bc\xff", '"abc"'),
        (b"\x5f\x41a\x42bc\xff", '"YWJj"'),
        (b"\xd9\xd9\xf7\xd8\x18\x01", "1"),
        # A decimal, and one whose digits would be four thousand million.
        (b"\xc4\x82\x01\x02", "20"),
        (b"\xc4\x82\x3a\xff\xff\xff\xff\x02", '{"tag":4,"value":[-4294967296,2]}'),
        (b"\xc4\x82\x61a\x02", '{"tag":4,"value":["a",2]}'),
        (b"\xd8\x1c\x81\xd8\x1d\x00", '{"tag":28,"value":[{"tag":29,"value":0}]}'),
    ],
)
def test_tags_of_cbor(data: bytes, expected: str) -> None:
    assert json_text(data, "cbor") == expected


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("msgpack", b"\xc1", "at byte 0: the byte c1 begins no value of MessagePack"),
        ("msgpack", b"\x92\x01\xa1\xff", "at byte 2: a text that is not UTF-8"),
        ("msgpack", b"\x81\x91\x01\x02", "at byte 1: a key that is more than one value has no name in JSON"),
        ("msgpack", b"\x81\xd4\x05\x01\x02", "at byte 1: a key that is more than one value has no name in JSON"),
        ("msgpack", b"\x82\x01\x02\xa11\x02", "at byte 3: a name is repeated"),
        ("msgpack", b"\xdd\xff\xff\xff\xff\x01", "at byte 0: the value ends before it is complete"),
        ("cbor", b"\x9b" + b"\xff" * 8, "at byte 0: the value ends before it is complete"),
        ("cbor", b"\x5b" + b"\xff" * 8, "at byte 0: the value ends before it is complete"),
        ("cbor", b"\xff", "at byte 0: an end of nothing"),
        ("cbor", b"\x82\x01\xff", "at byte 2: an end of nothing"),
        ("cbor", b"\xbf\x61a\xff", "at byte 3: an end of nothing"),
        ("cbor", b"\x1f", "at byte 0: a number without an end"),
        ("cbor", b"\x1c", "at byte 0: the byte 1c begins no value of CBOR"),
        ("cbor", b"\x7f\x41a\xff", "at byte 0: a piece of another kind than its whole"),
        ("cbor", b"\x7f\x61\xc3\x61\xa9\xff", "at byte 0: a text that is not UTF-8"),
    ],
)
def test_what_is_no_value_says_why(name: str, data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        json_text(data, name)


@pytest.mark.parametrize(
    ("name", "one"), [("msgpack", b"\x91"), ("cbor", b"\x81"), ("cbor", b"\x9f"), ("cbor", b"\xd8\x63")]
)
def test_nesting_has_a_limit(name: str, one: bytes) -> None:
    deep = one * 100_000 + b"\x01"
    with pytest.raises(ValueError, match=f"nested deeper than {DEEPEST}"):
        json_text(deep, name)


@pytest.mark.parametrize("name", PACK)
def test_a_topic_has_such_values_by_its_name_or_all_topics_have(name: str) -> None:
    values = pa.array([PACK[name]({"id": 1, "who": "x"}), b"\xff\xff", None], pa.binary())
    for where, topic in (({"t": name}, "t"), (f"t={name}", "t"), (name, "t"), (name, None)):
        found = decode(values, Schemas.of(where), topics=topic)
        assert found.values.to_pylist() == ['{"id":1,"who":"x"}', None, None]
        assert found.status.to_pylist() == ["ok", "malformed", None]
        assert found.format.to_pylist() == [name, name, None]
        assert found.error[1].as_py().startswith(f"{name}: at byte ")
    other = decode(values, Schemas.of(f"t={name}"), topics="u")
    assert other.status.to_pylist() == ["no_schema", "no_schema", None]


@pytest.mark.parametrize("name", PACK)
def test_such_values_become_the_type_of_a_json_schema(name: str) -> None:
    text = '{"type": "object", "properties": {"id": {"type": "integer"}, "who": {"type": "string"}}}'
    reader = Reader.of(Written("json", text), Schemas())
    values = pa.array([PACK[name]({"id": 1, "who": "x"}), PACK[name]([1]), b""], pa.binary())
    found = decode(values, Schemas.of(name), reader=reader, mask=Mask("who"))
    assert found.values.to_pylist() == [{"id": 1, "who": None}, None, None]
    assert found.status.to_pylist() == ["ok", "malformed", "malformed"]
    assert decode(values, name, mask=Mask("who")).values[0].as_py() == '{"id":1,"who":null}'
    with pytest.raises(SchemaError, match="take JSON text, or a JSON Schema"):
        Reader.of(Written(name, ""), Schemas())
