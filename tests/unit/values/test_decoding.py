"""Which claim of a value is believed: the one whose schema consumes it to its last byte."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from kwire.errors import KwireError
from kwire.limits import Limits
from kwire.records.arrow_types import HEADERS
from kwire.values import Mask, Reader, Schemas, Written, decode, decoding
from kwire.values.catalog import Catalog
from kwire.values.decoding import CHECKED, COLUMNS, STATUSES, Decoded

ORDER = json.dumps(
    {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}]}
)
PAIR = json.dumps(
    {"type": "record", "name": "Pair", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}
)
FLAGS = json.dumps(
    {"type": "record", "name": "Flags", "fields": [{"name": f"f{n}", "type": "boolean"} for n in range(3)]}
)
PROTO = """\
syntax = "proto3";
message First { int64 id = 1; string who = 2; }
message Second { message Inner { string text = 3; } Inner inner = 1; bool flag = 5; }
"""
GUID = "6f1a4d22-9c1e-4a5b-8c62-0d6d3c1b7a90"


def avro(schema: str, **value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()


def framed(id_: int, data: bytes) -> bytes:
    return b"\0" + struct.pack(">I", id_) + data


def of(*several: Written) -> Schemas:
    return Schemas([Catalog(several)])


def rows(values: list[bytes | None], schemas: Any, **more: Any) -> list[dict[str, Any]]:
    made = decode(pa.array(values, pa.binary()), schemas, **more)
    columns = {name: one.to_pylist() for name, one in zip(Decoded._fields, made, strict=True)}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def one(value: bytes, schemas: Any, **more: Any) -> dict[str, Any]:
    (made,) = rows([value], schemas, **more)
    return made


ORDERS = Written("avro", ORDER, id=1, subject="orders-value", version=1)
MESSAGES = Written("protobuf", PROTO, id=2, subject="messages-value", version=1)


def test_a_bare_value_that_begins_like_a_prefix_is_that_of_its_topic() -> None:
    value = avro(FLAGS, f0=False, f1=False, f2=False)
    assert value == b"\0\0\0"
    schemas = Schemas([Catalog([ORDERS])], {("flags", "value"): Written("avro", FLAGS)})
    made = one(value, schemas, topics="flags")
    assert (made["framing"], made["status"], json.loads(made["values"])["f0"]) == ("none", "ok", False)
    # The five bytes name a schema that is there, and it does not fit what follows.
    bare = avro(PAIR, a=0, b="") + b""
    long = json.dumps({"type": "record", "name": "L", "fields": [{"name": f"n{k}", "type": "int"} for k in range(7)]})
    value = b"\0\0\0\0\1\2\2"
    schemas = Schemas([Catalog([ORDERS])], {("longs", "value"): Written("avro", long)})
    made = one(value, schemas, topics="longs")
    assert (made["framing"], made["message"], made["status"]) == ("none", "L", "ok")
    assert one(value, schemas)["status"] == "malformed"
    assert bare == b"\0\0"


def test_an_id_of_two_registries_is_that_of_the_topic_s_subject_or_of_what_consumes_the_value() -> None:
    pair = Written("avro", PAIR, id=1, subject="pairs-value", version=1)
    flags = Written("avro", FLAGS, id=1, subject="flags-value", version=1)
    schemas = Schemas([Catalog([ORDERS]), Catalog([pair, flags])])
    value = framed(1, avro(ORDER, id=7, who="x"))
    by_topic = rows([value, value], schemas, topics=pa.array(["orders", "pairs"]))
    assert [made["message"] for made in by_topic] == ["Order", "Pair"]
    # Only one of three consumes it.
    assert one(framed(1, b"\0\1\0"), schemas)["message"] == "Flags"
    unclear = one(value, schemas, topics="others")
    assert (unclear["status"], unclear["values"]) == ("ambiguous", None)
    assert "3 schemas have the id 1" in unclear["error"]
    # The same text under two subjects is one schema.
    same = Schemas([Catalog([ORDERS]), Catalog([Written("avro", ORDER, id=1, subject="copy-value", version=1)])])
    assert one(value, same)["status"] == "ok"


def test_an_encrypted_value_of_the_same_shape_is_no_value() -> None:
    chance = random.Random(7)
    secret = Written("avro", ORDER, id=5, subject="secrets-value", version=1, rules=("ENCRYPT_PAYLOAD",))
    values = [framed(5, chance.randbytes(40)) for _ in range(50)]
    made = rows(values, of(secret), topics="secrets")
    assert {row["status"] for row in made} == {"malformed"}
    assert {row["schema_id"] for row in made} == {5}
    json_ = Written("json", "{}", id=6, rules=("ENCRYPT_PAYLOAD",))
    assert "a rule by which values are encrypted" in one(framed(6, b"\xff"), of(json_))["error"]


FIRST = b"\x08\x07\x12\x01x"
SECOND = b"\x28\x01"
INNER = b"\x1a\x01t"


@pytest.mark.parametrize(
    ("data", "message", "expected"),
    [
        (b"\0" + FIRST, "First", {"id": 7, "who": "x"}),
        (b"\2\0" + FIRST, "First", {"id": 7, "who": "x"}),
        (b"\2\2" + SECOND, "Second", {"inner": None, "flag": True}),
        (b"\4\2\0" + INNER, "Second.Inner", {"text": "t"}),
        (FIRST, "First", {"id": 7, "who": "x"}),
        (b"", "First", {"id": 0, "who": ""}),
        (b"\0", "First", {"id": 0, "who": ""}),
        # Apicurio's way: a message with the name of the message.
        (b"\x07\x0a\x05First" + FIRST, "First", {"id": 7, "who": "x"}),
        (b"\x08\x0a\x06Second" + SECOND, "Second", {"inner": None, "flag": True}),
    ],
)
def test_protobuf_has_the_message_that_its_indexes_say_even_if_they_are_left_out(
    data: bytes, message: str, expected: dict[str, Any]
) -> None:
    made = one(framed(2, data), of(MESSAGES))
    assert (made["status"], made["message"], json.loads(made["values"])) == ("ok", message, expected)


def test_a_producer_that_leaves_indexes_out_may_begin_like_indexes() -> None:
    # Four numbers, all 0: messages that are not there. Then one number, 1, which is a message, but with a tag of 0.
    for data, who in ((b"\x08\0\0\0\0", None), (b"\x12\x01y", "y")):
        made = one(framed(2, data), of(MESSAGES))
        assert made["status"] == ("ok" if who else "malformed"), made
    mixed = [framed(2, b"\0" + FIRST), framed(2, FIRST), framed(2, b"\2\2" + SECOND), framed(2, b"\xff")]
    assert [row["message"] for row in rows(mixed, of(MESSAGES))] == ["First", "First", "Second", "First"]


@pytest.mark.parametrize(
    ("data", "message", "expected"),
    [
        (b"\0" + FIRST, "First", {"id": 7, "who": "x"}),
        (b"\1" + SECOND, "Second", {"inner": None, "flag": True}),
        (b"\2" + INNER, "Second.Inner", {"text": "t"}),
        # Of a producer that leaves the number out: there is no message 8, or it is none of the message of this number.
        (FIRST, "First", {"id": 7, "who": "x"}),
        (b"", "First", {"id": 0, "who": ""}),
    ],
)
def test_protobuf_of_glue_has_the_message_of_its_number(data: bytes, message: str, expected: dict[str, Any]) -> None:
    head = b"\x03\0" + bytes.fromhex(GUID.replace("-", ""))
    schemas = of(Written("protobuf", PROTO, guid=GUID))
    made = rows([head + data, head + b"\xff", head + zlib.compress(data)], schemas)
    assert (made[0]["status"], made[0]["message"], json.loads(made[0]["values"])) == ("ok", message, expected)
    assert [row["status"] for row in made] == ["ok", "malformed", "malformed"]
    packed = one(b"\x03\5" + head[2:] + zlib.compress(data), schemas)
    assert (packed["values"], packed["message"]) == (made[0]["values"], message)


def test_headers_go_before_the_bytes_of_the_value() -> None:
    header = [{"key": "__value_schema_id", "value": b"\0" + struct.pack(">I", 1)}]
    value = avro(ORDER, id=3, who="z")
    headers = pa.array([header, [], header], HEADERS)
    made = rows([value, framed(1, value), framed(1, value)], of(ORDERS), headers=headers)
    # The third has both: its header does not fit, and its prefix does.
    assert [row["framing"] for row in made] == ["confluent_header", "confluent", "confluent"]
    assert {row["values"] for row in made} == {'{"id":3,"who":"z"}'}


def test_a_header_says_which_message_of_protobuf() -> None:
    guid = Written("protobuf", PROTO, guid=GUID)
    raw = bytes.fromhex(GUID.replace("-", ""))
    headers = pa.array([[{"key": "__value_schema_id", "value": b"\1" + raw + b"\2\2"}]], HEADERS)
    made = one(SECOND, of(guid), headers=headers)
    assert (made["message"], made["schema_guid"], made["status"]) == ("Second", GUID, "ok")


def test_each_status_has_its_row_and_null_stays_null() -> None:
    broken = Written("avro", '{"type":"nothing"}', id=9)
    missing = Written("avro", '"Other"', id=10)
    values = [
        framed(1, avro(ORDER, id=1, who="a")),
        None,
        framed(77, b"x"),
        framed(1, b"\x02"),
        framed(9, b"x"),
        framed(10, b"x"),
        b"\xff\xfe",
        b'{"a": 1}',
        b"[1, 2",
        b"",
    ]
    made = rows(values, of(ORDERS, broken, missing))
    assert [row["status"] for row in made] == [
        "ok", None, "unknown_schema", "malformed", "unsupported", "unsupported", "no_schema", "ok", "no_schema",
        "no_schema",
    ]  # fmt: skip
    assert all((row["values"] is not None) == (row["status"] == "ok") for row in made)
    assert all((row["error"] is None) == (row["status"] in ("ok", None, "no_schema")) for row in made)
    assert set(made[1].values()) == {None}
    assert {row["status"] for row in made} <= {status.name.lower() for status in STATUSES} | {None}
    assert list(Decoded._fields[1:]) == [field.name for field in COLUMNS]


def test_rows_are_the_same_alone_and_together_in_any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.values import decoding

    chance = random.Random(3)
    schemas = of(ORDERS, MESSAGES, Written("avro", PAIR, id=3), Written("json", "{}", id=4))
    some: list[bytes | None] = [
        framed(1, avro(ORDER, id=5, who="five")),
        framed(2, b"\0" + FIRST),
        framed(2, b"\4\2\0" + INNER),
        framed(3, avro(PAIR, a=1, b="")),
        framed(4, b'{"k": [1]}'),
        framed(5, b""),
        b"[]",
        None,
    ]
    values = []
    for _ in range(300):
        value = chance.choice(some)
        if value and chance.random() < 0.3:
            value = value[: chance.randrange(len(value))] + chance.randbytes(chance.randrange(4))
        values.append(value)
    together = rows(values, schemas, topics="orders")
    assert together == [rows([value], schemas, topics="orders")[0] for value in values]
    assert len({row["status"] for row in together}) > 3
    monkeypatch.setattr(decoding, "_ROWS", 7)
    assert rows(values, schemas, topics="orders") == together


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("typed", [False, True])
def test_values_that_all_name_one_schema_are_what_they_are_among_others(share: float, typed: bool) -> None:
    chance = random.Random(5)
    bare = Written("avro", PAIR, id=3, subject="orders-value")
    schemas = of(ORDERS, bare)
    reader = Reader.of(ORDERS, schemas) if typed else None
    values: list[bytes | None] = []
    for number in range(200):
        value = framed(1, avro(ORDER, id=number, who=f"{number}"))
        if chance.random() < share:
            value = value[: chance.randrange(5, len(value))] + chance.randbytes(chance.randrange(4))
        values.append(value)
    others = pa.array([[{"key": "trace", "value": b"1"}]] * len(values), HEADERS)
    for topics in (None, "orders"):
        found = rows(values, schemas, topics=topics, reader=reader)
        assert found == rows(values, schemas, topics=topics, reader=reader, headers=others)
        assert ({row["status"] for row in found} == {"ok"}) is (share == 0.0)
    none = pa.array([[]] * len(values), HEADERS)
    assert rows(values, schemas, reader=reader, headers=none) == rows(values, schemas, reader=reader, headers=others)


def test_a_reader_makes_one_type_of_many_schemas() -> None:
    newer = json.loads(ORDER)
    newer["fields"].append({"name": "note", "type": ["null", "string"], "default": None})
    second = Written("avro", json.dumps(newer), id=2, subject="orders-value", version=2)
    schemas = of(ORDERS, second, Written("json", "{}", id=4))
    reader = Reader.of(second, schemas)
    values = [
        framed(1, avro(ORDER, id=1, who="a")),
        framed(2, avro(second.text, id=2, who="b", note="n")),
        framed(4, b"{}"),
        None,
    ]
    made = decode(pa.array(values, pa.binary()), schemas, reader=reader)
    assert made.values.type == reader.type
    assert made.values.to_pylist() == [
        {"id": 1, "who": "a", "note": None},
        {"id": 2, "who": "b", "note": "n"},
        None,
        None,
    ]
    assert made.status.to_pylist() == ["ok", "ok", "unresolved", None]


def test_json_values_become_the_type_of_their_schema() -> None:
    text = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}})
    written = Written("json", text, id=4, subject="docs-value", version=1)
    schemas = of(written)
    values = [framed(4, b'{"a": 1}'), b'{"a": 2, "b": "x"}', framed(4, b'{"a": "x"}')]
    made = decode(pa.array(values, pa.binary()), schemas, reader=Reader.of(written, schemas), topics="docs")
    assert made.values.to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}, None]
    assert made.status.to_pylist() == ["ok", "ok", "malformed"]


def test_a_compressed_value_is_bounded() -> None:
    head = b"\3\5" + bytes.fromhex(GUID.replace("-", ""))
    data = avro(ORDER, id=1, who="a" * 500)
    schemas = of(Written("avro", ORDER, guid=GUID))
    packed = zlib.compress(data)
    values = [
        head + packed,
        head + packed[:-3],
        head + packed + b"x",
        head + b"nothing",
        head + zlib.compress(b"\0" * 10**6),
    ]
    made = rows(values, schemas, limits=Limits(decompressed=1000))
    assert [row["status"] for row in made] == ["ok", "malformed", "malformed", "malformed", "too_large"]
    assert "beyond the limit decompressed of 1000" in made[-1]["error"]
    assert {row["framing"] for row in made} == {"glue"}


def test_compressed_values_are_never_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    head = b"\3\5" + bytes.fromhex(GUID.replace("-", ""))
    data = [avro(ORDER, id=at, who="a" * 1000) for at in range(50)]
    parts = []
    read = decoding._Window._of

    def counted(self: Any, written: Any, named: Any, array: pa.Array, starts: Any, rows: Any) -> Any:
        parts.append(array.nbytes)
        return read(self, written, named, array, starts, rows)

    monkeypatch.setattr(decoding, "_WINDOW", 10_000)
    monkeypatch.setattr(decoding._Window, "_of", counted)
    values = [head + zlib.compress(one) for one in data]
    values[20] = head + b"nothing"
    made = rows(values, of(Written("avro", ORDER, guid=GUID)))
    assert [row["status"] for row in made] == ["malformed" if at == 20 else "ok" for at in range(50)]
    assert [json.loads(row["values"])["id"] for row in made if row["status"] == "ok"] == [*range(20), *range(21, 50)]
    assert len(parts) > 4
    assert max(parts) < 13_000


def test_what_names_make_of_little_has_a_limit() -> None:
    wide = json.dumps(
        {"type": "record", "name": "W", "fields": [{"name": "n" * 1000 + str(k), "type": "null"} for k in range(50)]}
    )
    schemas = of(Written("avro", wide, id=1))
    made = rows([framed(1, b"")] * 100, schemas, limits=Limits(text=500_000))
    assert {row["status"] for row in made} == {"ok", "too_large"}
    assert made[0]["status"] == "ok"
    assert "beyond the limit text" in made[-1]["error"]


def test_errors_count_bytes_from_the_beginning_of_the_value() -> None:
    schemas = of(ORDERS, MESSAGES, Written("json", "{}", id=4))
    values = [framed(1, b"\x02"), framed(2, b"\0\x08\x80"), framed(2, b"\2\2\x28\x80"), framed(4, b'{"a" 1}'), b"\0"]
    made = [row["error"] for row in rows(values, schemas)]
    places = [None if one is None else int(one.partition("at byte ")[2].partition(":")[0]) for one in made]
    assert places == [6, 6, 7, 10, None]


def test_a_mask_acts_on_every_format() -> None:
    schemas = of(ORDERS, MESSAGES)
    values = [framed(1, avro(ORDER, id=1, who="a")), framed(2, b"\0" + FIRST), b'{"who": "b", "id": 3}']
    made = rows(values, schemas, mask=Mask("who"))
    assert [json.loads(row["values"])["who"] for row in made] == [None] * 3
    assert [json.loads(row["values"])["id"] for row in made] == [1, 7, 3]


@pytest.mark.parametrize(
    "type_", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
)
def test_a_column_may_have_any_type_of_bytes(type_: pa.DataType) -> None:
    column = pa.array([framed(1, avro(ORDER, id=1, who="a")), None], pa.binary())
    column = column.dictionary_encode() if pa.types.is_dictionary(type_) else column.cast(type_)
    for given in (column, pa.chunked_array([column, column]).slice(0, 2)):
        assert decode(given, of(ORDERS)).status.to_pylist() == ["ok", None]


def test_nothing_stays_nothing_and_numbers_are_no_values() -> None:
    assert [len(each) for each in decode(pa.array([], pa.binary()), of(ORDERS))] == [0] * 9
    with pytest.raises(KwireError, match="a column of bytes"):
        decode(pa.array([1]), of(ORDERS))
    with pytest.raises(KwireError, match="schemas come from"):
        decode(pa.array([], pa.binary()), 17)


def test_values_may_be_checked_alone() -> None:
    values = [framed(1, avro(ORDER, id=1, who="x")), b"\xff", b'{"a": 1}', None, framed(1, b"\1")]
    said, checked = rows(values, of(ORDERS)), rows(values, of(ORDERS), reader=CHECKED)
    assert [one.pop("values") for one in checked] == [None] * 5
    assert [{name: one[name] for name in one if name != "values"} for one in said] == checked
    assert [one["schema"] for one in checked] == ["orders-value v1", None, None, None, "orders-value v1"]


def test_a_text_of_avro_is_json_text_too() -> None:
    made = rows([b"\x02a"], Schemas.of({"t": '"string"'}), topics="t")
    assert (made[0]["values"], made[0]["status"]) == ('"a"', "ok")


def test_json_is_masked_once() -> None:
    mask = Mask("who", "size")
    for schemas in (Schemas(), of(Written("json", '{"type": "object"}', subject="t-value"))):
        assert json.loads(rows([b'{"who":"abc"}'], schemas, topics="t", mask=mask)[0]["values"]) == {
            "who": '{"redacted": 3}'
        }


def test_what_is_of_other_records_is_refused() -> None:
    values = pa.array([b"{}", b"[]"])
    for more, said in (
        ({"topics": ["t"]}, "topics are of 1 records, and there are 2 values"),
        ({"part": "header"}, "no part"),
    ):
        with pytest.raises(KwireError, match=said):
            decode(values, None, **more)
    with pytest.raises(KwireError, match="headers are of 1 records"):
        decode(values, None, headers=pa.array([[]], HEADERS))
