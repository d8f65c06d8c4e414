"""Any bytes and any headers are safe as values: a row for each, the same alone and beside others."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.records.arrow_types import HEADERS
from kwire.values import Schemas, Written, decode
from kwire.values.catalog import Catalog
from kwire.values.decoding import WORDS

GUID = "6f1a4d22-9c1e-4a5b-8c62-0d6d3c1b7a90"
TREE = {"type": "record", "name": "T", "fields": [{"name": "v", "type": "int"}, {"name": "t", "type": ["null", "T"]}]}
MIXED = {
    "type": "record",
    "name": "M",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "m", "type": {"type": "map", "values": "double"}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
PROTO = """\
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message A { map<string, B> b = 1; repeated sint32 n = 2; google.protobuf.Timestamp t = 3; A self = 4; B one = 5; }
message B { string s = 1; google.protobuf.Value v = 2; C c = 3; oneof o { int32 x = 4; C y = 5; } }
message C { bytes c = 1; }
"""
SCHEMAS = Schemas(
    [
        Catalog(
            [
                Written("avro", json.dumps(TREE), id=1, guid=GUID, subject="t-value", version=1),
                Written("avro", json.dumps(MIXED), id=2, subject="m-value", version=1),
                Written("protobuf", PROTO, id=3, subject="p-value", version=1),
                Written("json", '{"type":"object"}', id=4),
                Written("avro", '"nothing"', id=5),
            ]
        )
    ]
)
RAW = bytes.fromhex(GUID.replace("-", ""))
HEADS = st.sampled_from(
    [b"", b"\1" + RAW, b"\3\0" + RAW, b"\3\5" + RAW, *(b"\0" + struct.pack(">I", n) for n in range(7))]
)
BODIES = st.one_of(
    st.binary(max_size=24),
    st.sampled_from(
        [b"{}", b"[1]", b'{"a":', b"\0", b"\2\2", b"\4\2\0\x0a\1x", b"\x0a\2\x0a\0", b"\x1a\2\x08\1", b"\2\0"]
    ),
)
VALUES = st.one_of(st.none(), st.builds(bytes.__add__, HEADS, BODIES))
NAMES = st.sampled_from(["__value_schema_id", "apicurio.value.contentId", "content-type", "other"])
CONTENTS = st.one_of(st.none(), HEADS, st.sampled_from([struct.pack(">q", 3), b"avro/binary+" + RAW.hex().encode()]))
ROWS = st.lists(
    st.tuples(VALUES, st.lists(st.tuples(NAMES, CONTENTS), max_size=2), st.sampled_from(["t", "m", "p", None])),
    max_size=12,
)


def rows(given: list[Any]) -> list[tuple[Any, ...]]:
    headers = [[{"key": key, "value": value} for key, value in pairs] for _, pairs, _ in given]
    made = decode(
        pa.array([value for value, _, _ in given], pa.binary()),
        SCHEMAS,
        headers=pa.array(headers, HEADERS),
        topics=pa.array([topic for _, _, topic in given], pa.string()),
    )
    for one in made:
        one.validate(full=True)
    return list(zip(*(one.to_pylist() for one in made), strict=True))


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_any_value_is_a_row_alone_and_beside_others(given: list[Any]) -> None:
    made = rows(given)
    assert len(made) == len(given)
    for (value, _, _), row in zip(given, made, strict=True):
        text, status, error = row[0], row[-2], row[-1]
        assert (status is None) == (value is None)
        assert status in (None, *WORDS)
        assert (text is not None) == (status == "ok")
        assert (error is not None) == (status not in (None, "ok", "no_schema"))
        if text is not None:
            json.loads(text)
    assert made == [rows([one])[0] for one in given]
