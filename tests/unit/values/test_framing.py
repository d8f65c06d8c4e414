"""What stands in front of a value is found by its bytes, for each row as if it stood alone."""

from __future__ import annotations

import random
import struct
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.records.arrow_types import HEADERS
from kwire.records.headers import Headers
from kwire.values import framing
from kwire.values.framing import Buffer, Framing, Named, Space

GUID = uuid.UUID("6f1a4d22-9c1e-4a5b-8c62-0d6d3c1b7a90")

PREFIXES: dict[str, tuple[bytes, Named | None, int]] = {
    "confluent": (b"\0" + struct.pack(">I", 17), Named(Framing.CONFLUENT, Space.ID, 17), 5),
    "the largest id": (b"\0\xff\xff\xff\xff", Named(Framing.CONFLUENT, Space.ID, 0xFFFFFFFF), 5),
    "confluent guid": (b"\1" + GUID.bytes, Named(Framing.CONFLUENT_GUID, Space.GUID, str(GUID)), 17),
    "apicurio legacy": (b"\0" + struct.pack(">Q", 17), Named(Framing.APICURIO_LEGACY, Space.ID, 17), 9),
    "glue": (b"\3\0" + GUID.bytes, Named(Framing.GLUE, Space.GUID, str(GUID)), 18),
    "glue, packed": (b"\3\5" + GUID.bytes, Named(Framing.GLUE, Space.GUID, str(GUID)), 18),
    "single object": (
        b"\xc3\1" + struct.pack("<q", -5),
        Named(Framing.SINGLE_OBJECT, Space.FINGERPRINT, -5),
        10,
    ),
    "no id is 0": (b"\0" * 5, None, 0),
    "no id is 0, nor of eight bytes": (b"\0" * 9, None, 0),
    "short": (b"\0\0\0\1", None, 0),
    "short guid": (b"\1" + GUID.bytes[:15], None, 0),
    "glue of another compression": (b"\3\1" + GUID.bytes, None, 0),
    "glue, short": (b"\3\0" + GUID.bytes[:15], None, 0),
    "single object, short": (b"\xc3\1" + b"\0" * 7, None, 0),
    "another version of single object": (b"\xc3\2" + b"\0" * 8, None, 0),
    "text": (b"hello", None, 0),
    "empty": (b"", None, 0),
}


def named(values: list[bytes | None]) -> list[tuple[Named | None, int, bool]]:
    found = framing.of_prefix(Buffer.of(pa.array(values, pa.binary())))
    each = zip(found.which.tolist(), found.starts.tolist(), found.packed.tolist(), strict=True)
    return [(found.named[at], start, packed) if at >= 0 else (None, 0, False) for at, start, packed in each]


@pytest.mark.parametrize("name", PREFIXES)
def test_a_prefix_names_a_schema(name: str) -> None:
    prefix, expected, start = PREFIXES[name]
    assert named([prefix]) == [(expected, start, name == "glue, packed")]
    if expected is not None:
        assert named([prefix + b"payload"]) == [(expected, start, name == "glue, packed")]


def test_rows_do_not_depend_on_the_rows_beside_them() -> None:
    chance = random.Random(1)
    some = [prefix for prefix, _, _ in PREFIXES.values()]
    values = [
        None if chance.random() < 0.1 else chance.choice(some) + chance.randbytes(chance.randrange(12))
        for _ in range(2000)
    ]
    expected = [named([one])[0] for one in values]
    assert named(values) == expected
    assert len({one for one, _, _ in expected}) > 5
    array = pa.array([b"before", *values, b"after"], pa.binary()).slice(1, len(values))
    found = framing.of_prefix(Buffer.of(array))
    assert [found.named[at] if at >= 0 else None for at in found.which.tolist()] == [one for one, _, _ in expected]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_an_array_names_a_schema_where_all_of_its_values_do(type_: pa.DataType) -> None:
    def of_all(values: list[bytes | None]) -> Named | None:
        return framing.of_all(pa.array([b"before", *values, b"after it"], type_).slice(1, len(values)))

    one, other = b"\0\0\0\0\7", b"\0\0\0\1\7"
    assert of_all([one, one + b"payload", one]) == Named(Framing.CONFLUENT, Space.ID, 7)
    assert of_all([other]) == Named(Framing.CONFLUENT, Space.ID, 263)
    none: list[list[bytes | None]] = [
        [one, other],
        [one, None],
        [one, one[:4]],
        [b"\0" * 9],
        [b"\1" + GUID.bytes],
        [],
        [b""],
    ]
    assert [of_all(each) for each in none] == [None] * len(none)
    # Nothing after it: one by one they name it all the same.
    assert framing.of_all(pa.array([one, one], type_)) is None
    assert named([one, one]) == [(Named(Framing.CONFLUENT, Space.ID, 7), 5, False)] * 2


@pytest.mark.parametrize("payload", [b"", b"x", b"payload of a value"])
def test_a_column_of_one_id_is_as_its_rows(payload: bytes) -> None:
    value = b"\0" + struct.pack(">I", 17) + payload
    expected = (Named(Framing.CONFLUENT, Space.ID, 17), 5, False)
    assert named([value] * 40) == [expected] * 40
    assert named([value] * 39 + [value[:4]]) == [expected] * 39 + [(None, 0, False)]
    assert named([value, None, value]) == [expected, (None, 0, False), expected]


def headers(*rows: list[tuple[str, bytes | None]] | None) -> Headers:
    each = [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]
    return Headers(pa.array(each, HEADERS))


def of_headers(part: str, *rows: list[tuple[str, bytes | None]] | None) -> list[list[Named | None]]:
    return [
        [one.named[at] if at >= 0 else None for at in one.which.tolist()]
        for one in framing.of_headers(headers(*rows), part)
    ]


def test_headers_of_confluent_name_a_schema_and_a_message() -> None:
    guid = b"\1" + GUID.bytes
    nested = Named(Framing.CONFLUENT_HEADER, Space.GUID, str(GUID), (1, 0))
    assert of_headers(
        "value",
        [("__value_schema_id", guid)],
        [("__value_schema_id", b"\0" + struct.pack(">I", 7))],
        [("__value_schema_id", guid + b"\4\2\0")],
        [("__value_schema_id", guid + b"\0")],
        [("__key_schema_id", guid), ("other", None)],
        None,
        [("__value_schema_id", b"\2nothing"), ("__value_schema_id", None)],
    ) == [
        [
            Named(Framing.CONFLUENT_HEADER, Space.GUID, str(GUID)),
            Named(Framing.CONFLUENT_HEADER, Space.ID, 7),
            nested,
            Named(Framing.CONFLUENT_HEADER, Space.GUID, str(GUID), (0,)),
            None,
            None,
            None,
        ]
    ]


def test_the_last_of_two_headers_counts() -> None:
    first, last = b"\0" + struct.pack(">I", 1), b"\0" + struct.pack(">I", 2)
    found = of_headers("value", [("__value_schema_id", first), ("__value_schema_id", last)])
    assert found == [[Named(Framing.CONFLUENT_HEADER, Space.ID, 2)]]


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        ("apicurio.value.globalId", struct.pack(">q", 8), Named(Framing.APICURIO_HEADER, Space.GLOBAL_ID, 8)),
        ("apicurio.value.contentId", struct.pack(">q", 9), Named(Framing.APICURIO_HEADER, Space.CONTENT_ID, 9)),
        ("apicurio.value.contentHash", b"aB" * 32, Named(Framing.APICURIO_HEADER, Space.CONTENT_HASH, "ab" * 32)),
        ("content-type", b"avro/binary+" + GUID.hex.encode(), Named(Framing.AZURE_HEADER, Space.GUID, str(GUID))),
        ("content-type", b"avro/binary+a_name", Named(Framing.AZURE_HEADER, Space.GUID, "a_name")),
        ("content-type", b"application/json", None),
        ("apicurio.value.globalId", b"12", None),
        ("apicurio.value.globalId", b"\xfe" + bytes(7), None),
        ("apicurio.value.contentId", b"\x80" + bytes(3), None),
        ("apicurio.value.contentHash", b"no hash", None),
    ],
)
def test_other_headers_name_schemas(header: str, value: bytes, expected: Named | None) -> None:
    assert of_headers("value", [(header, value)]) == ([] if expected is None else [[expected]])
    assert of_headers("key", [(header, value)]) == []


def zigzag(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    made = b""
    while number > 0x7F:
        made += bytes([number & 0x7F | 0x80])
        number >>= 7
    return made + bytes([number])


def paths(values: list[bytes], starts: list[int] | None = None) -> list[Any]:
    array = Buffer.of(pa.array(values, pa.binary()))
    begins = np.array(starts or [0] * len(values), np.int64)
    found, which, after = framing.indexes(array, np.arange(len(values)), begins)
    return [(found[at], end) if at >= 0 else None for at, end in zip(which.tolist(), after.tolist(), strict=True)]


def test_indexes_of_messages_are_read_in_any_mixture() -> None:
    wanted: list[tuple[bytes, tuple[int, ...]]] = [
        (b"\0", (0,)),
        (zigzag(1) + zigzag(0), (0,)),
        (zigzag(1) + zigzag(3), (3,)),
        (zigzag(2) + zigzag(1) + zigzag(200), (1, 200)),
        (zigzag(3) + zigzag(100_000) + zigzag(0) + zigzag(5), (100_000, 0, 5)),
    ]
    values = [b"xyz" + data + b"payload" for data, _ in wanted]
    assert paths(values, [3] * len(values)) == [(path, 3 + len(data)) for data, path in wanted]


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\2", b"\2\x80", zigzag(-1), zigzag(1) + zigzag(-2), zigzag(33) + b"\0" * 33, b"\xff" * 12]
)
def test_what_is_no_list_of_indexes_is_none(data: bytes) -> None:
    assert paths([b"\0", data]) == [((0,), 1), None]


def test_payloads_are_cut_out_where_each_begins() -> None:
    values = [b"abcdef", b"", b"xy", b"0123456789"]
    starts = np.array([2, 0, 5, 10], np.int64)
    for type_ in (pa.binary(), pa.large_binary()):
        array = pa.array([b"before", *values, b"after"], type_).slice(1, 4)
        assert framing.payloads(array, starts).to_pylist() == [b"cdef", b"", b"", b""]
        assert framing.payloads(array, np.zeros(4, np.int64)).to_pylist() == values


def test_glue_has_one_plain_number() -> None:
    values = [b"\0", b"\x05payload", b"\x80\x01x", b"\xff\xff\xff\xff\x0f", b"", b"\x80", b"\xff" * 6]
    found, after = framing.index(Buffer.of(pa.array([b"ab" + one for one in values])), np.arange(7), np.full(7, 2))
    assert found.tolist() == [0, 5, 128, 0xFFFFFFFF, -1, -1, -1]
    assert after.tolist() == [3, 3, 4, 7, 2, 2, 2]
