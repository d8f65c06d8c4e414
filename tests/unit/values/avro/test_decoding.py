"""Avro values to columns: each type, resolution, errors with path and byte, and values that want to do harm."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kwire.errors import KwireError, LimitError
from kwire.kernels.engine import Engine
from kwire.limits import Limits
from kwire.values.avro import Decoded, Schema, decode, parse
from tests.support.avro_pairs import written


def of(schema: Any) -> Schema:
    return parse(json.dumps(schema))


def record(*fields: Any, name: str = "R", **more: Any) -> Any:
    made = [one if isinstance(one, dict) else {"name": one[0], "type": one[1]} for one in fields]
    return {"type": "record", "name": name, "fields": made, **more}


def read(schema: Any, *values: bytes | None, reader: Any = None, **options: Any) -> Decoded:
    made = decode(pa.array(values, pa.binary()), [of(schema)], reader=None if reader is None else of(reader), **options)
    made.values.validate(full=True)
    return made


def one_by_one_and_together(schema: Any, *values: bytes | None, **options: Any) -> Decoded:
    """What becomes of values, whether they are read one by one or, many times, in lanes."""
    few = read(schema, *values, **options)
    many = read(schema, *(values * 40), **options)
    for a, b in zip(few, many, strict=True):
        assert b.to_pylist() == a.to_pylist() * 40
    return few


def zigzag(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


@pytest.mark.parametrize(
    "value", [0, 1, -1, 63, 64, 8191, 1 << 27, 1 << 34, -(1 << 55), 1 << 56, (1 << 63) - 1, -(1 << 63)]
)
def test_a_number_of_any_size(engine: Engine, value: int) -> None:
    assert one_by_one_and_together("long", zigzag(value), zigzag(0)).values.to_pylist() == [value, 0]


@pytest.mark.parametrize(
    ("schema", "value", "made"),
    [
        ({"type": "int", "logicalType": "date"}, zigzag(-1), "1969-12-31"),
        ({"type": "long", "logicalType": "timestamp-millis"}, zigzag(1), "1970-01-01 00:00:00.001Z"),
        ({"type": "int", "logicalType": "time-millis"}, zigzag(3_600_001), "01:00:00.001"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, b"\x04\xff\x01", "-2.55"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 76}, b"\x40" + b"\x7f" + b"\xff" * 31, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 60}, b"\x18\x01" + bytes(11), str(256**11)),
        ({"type": "fixed", "name": "F", "size": 20, "logicalType": "decimal", "precision": 5}, b"\xff" * 20, "-1"),
        (
            {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
            bytes(range(16)),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        (
            {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
            struct.pack("<3I", 1, 2, (1 << 32) - 1),
            {"months": 1, "days": 2, "millis": (1 << 32) - 1},
        ),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, zigzag(1), "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\xff\0", b"\xff\0"),
        ({"type": "fixed", "name": "F", "size": 0}, b"", b""),
        ("null", b"", None),
        ("boolean", b"\1", True),
        ("float", struct.pack("<f", 0.5), 0.5),
        ("double", struct.pack("<d", -0.1), -0.1),
        ("string", b"\x04\xc3\xa9", "\u00e9"),
        ("bytes", b"\x02\xff", b"\xff"),
        ({"type": "map", "values": "int"}, b"\x02\x02a\x04\0", [("a", 2)]),
    ],
)
def test_each_type(engine: Engine, schema: Any, value: bytes, made: Any) -> None:
    for spark in (False, True):
        found = one_by_one_and_together(schema, value, None, spark=spark)
        assert found.values.type == of(schema).arrow_type(spark=spark)
        assert found.status.to_pylist()[1] is None
        if made is None and schema != "null":
            assert found.status[0].as_py() == "malformed"
            continue
        assert found.status[0].as_py() == "ok"
        plain = isinstance(made, str) and not pa.types.is_integer(found.values.type)
        values = found.values
        if pa.types.is_dictionary(values.type):
            values = values.cast(pa.string())
        if spark and pa.types.is_timestamp(values.type):
            made = made.replace(".001", ".001000")
        first = values.cast(pa.string())[0].as_py() if plain else values[0].as_py()
        if not (spark and pa.types.is_integer(values.type) and isinstance(made, str)):
            assert first == made


def test_blocks_with_their_size_and_arrays_in_arrays(engine: Engine) -> None:
    schema = {"type": "array", "items": {"type": "array", "items": "string"}}
    inner = b"\x02\x02x" + b"\x01\x04\x02y" + b"\0"
    found = one_by_one_and_together(schema, b"\x04" + inner + b"\0" + b"\0", b"\0", b"\x02" + inner + b"\x02\0" + b"\0")
    assert found.values.to_pylist() == [[["x", "y"], []], [], [["x", "y"], []]]


def test_rows_that_need_more_room_than_the_first_ones(engine: Engine) -> None:
    schema = record(("s", "string"), ("a", {"type": "array", "items": {"type": "map", "values": ["null", "bytes"]}}))
    small, large = ({"s": "x" * n, "a": [{"k": ("bytes", b"v" * n)}] * n} for n in (0, 50))
    values = [written(schema, small)] * 1100 + [written(schema, large)] * 20 + [written(schema, small)] * 5
    found = read(schema, *values)
    rows = found.values.to_pylist()
    assert rows[0] == {"s": "", "a": []}
    assert rows[1105] == {"s": "x" * 50, "a": [[("k", b"v" * 50)]] * 50}
    assert rows[-1] == rows[0]
    assert set(found.status.to_pylist()) == {"ok"}


def test_rows_of_many_schemas_become_one_type(engine: Engine) -> None:
    first = record(("id", "int"), ("name", "string"), name="a.R")
    second = record(("name", "string"), ("id", "long"), ("more", "double"), name="b.R")
    reader = record(
        {"name": "key", "type": "long", "aliases": ["id"]},
        ("name", ["null", "string"]),
        {"name": "more", "type": "double", "default": -1},
    )
    values = [written(first, {"id": n, "name": "x"}) for n in range(50)]
    values += [written(second, {"id": 1 << 40, "name": "y", "more": 0.5})] * 50
    which = np.array([0] * 50 + [1] * 49 + [-1], np.int32)
    made = decode(pa.array(values), [of(first), of(second)], which, reader=of(reader))
    rows = made.values.to_pylist()
    assert rows[3] == {"key": 3, "name": "x", "more": -1.0}
    assert rows[60] == {"key": 1 << 40, "name": "y", "more": 0.5}
    assert rows[-1] is None
    assert made.status.to_pylist()[-1] is None
    mixed = decode(pa.array(values), [of(first), of(second)], np.arange(100) // 50, reader=of(reader))
    assert mixed.values.to_pylist()[:99] == rows[:99]


def test_defaults_of_all_types(engine: Engine) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}
    inner = record(("x", "int"), {"name": "y", "type": "string", "default": "why"}, name="I")
    defaults = [
        ("int", -5, -5),
        ("double", 1, 1.0),
        ("float", 0.5, 0.5),
        ("boolean", True, True),
        ("bytes", "\u00ff", b"\xff"),
        (["null", "string"], None, None),
        (["string", "null"], "s", "s"),
        (["int", "string", "null"], "t", {"int": None, "string": "t"}),
        ({"type": "array", "items": ["null", "int"]}, [1, None], [1, None]),
        ({"type": "map", "values": {"type": "array", "items": "string"}}, {"k": ["v"]}, [("k", ["v"])]),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (inner, {"x": 1}, {"x": 1, "y": "why"}),
    ]
    fields = [{"name": f"f{n}", "type": kind, "default": said} for n, (kind, said, _) in enumerate(defaults)]
    fields.append({"name": "d", "type": decimal, "default": "\u0001"})
    found = one_by_one_and_together(record(("gone", "string")), b"\x02x", reader=record(*fields))
    row = found.values[0].as_py()
    assert [row[f"f{n}"] for n in range(len(defaults))] == [made for _, _, made in defaults]
    assert str(row["d"]) == "0.1"


@pytest.mark.parametrize(
    ("type_", "said"),
    [("int", 1.5), ("int", 1 << 31), ("string", 3), ("bytes", "\u0100"), (["null", "int"], "x"), ("boolean", 1)],
)
def test_a_default_that_is_not_of_its_type_is_refused_by_name(type_: Any, said: Any) -> None:
    with pytest.raises(KwireError, match=r"\$\.f: the default is not"):
        read(record(), b"", reader=record({"name": "f", "type": type_, "default": said}))


@pytest.mark.parametrize(("type_", "bits"), [("int", 31), ("long", 63)])
def test_a_default_may_be_any_number_of_its_type(engine: Engine, type_: str, bits: int) -> None:
    least, most = -(1 << bits), (1 << bits) - 1
    for said in (least, least + 1, most - 1, most):
        reader = record({"name": "f", "type": type_, "default": said})
        assert read(record(), b"", reader=reader).values.to_pylist() == [{"f": said}]
    for said in (least - 1, most + 1):
        with pytest.raises(KwireError, match=r"\$\.f: the default is not"):
            read(record(), b"", reader=record({"name": "f", "type": type_, "default": said}))


def test_times_become_those_of_a_smaller_unit_and_no_others(engine: Engine) -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    assert str(read(millis, zigzag(5), reader=micros).values[0]) == "1970-01-01 00:00:00.005000+00:00"
    assert read(micros, zigzag(5), reader=millis).status.to_pylist() == ["unresolved"]
    assert read(millis, zigzag(1 << 60), reader=micros).status.to_pylist() == ["malformed"]
    plain = {"type": "int", "logicalType": "time-millis"}
    assert read(plain, zigzag(86_400_000), zigzag(-1)).status.to_pylist() == ["malformed"] * 2


@pytest.mark.parametrize(
    ("schema", "value", "error"),
    [
        ("int", b"", "$ at byte 0: the value ends within it"),
        ("int", zigzag(1 << 31), "$ at byte 0: the number is outside of its type"),
        ("long", b"\xff" * 11, "$ at byte 0: a varint has more than 10 bytes"),
        ("long", b"\0\0", "$ at byte 1: bytes are left after the end of the value"),
        ("boolean", b"\2", "$ at byte 0: a boolean is neither 0 nor 1"),
        ("string", b"\x04a", "$ at byte 0: its length is negative, or more than the bytes left"),
        ("string", b"\x01", "$ at byte 0: its length is negative, or more than the bytes left"),
        ("string", b"\x04\xc3\x28", "$ at byte 0: it is not UTF-8"),
        ("double", bytes(7), "$ at byte 0: the value ends within it"),
        (["null", "int"], b"\x04", "$ at byte 0: the union has no such branch"),
        (["null", "int", "string"], b"\x01", "$ at byte 0: the union has no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "$ at byte 0: the number is outside of its type"),
        (
            record(("a", {"type": "array", "items": record(("b", ["null", "string"]), name="I")})),
            b"\x04\0\x02\x09",
            "$.a[].b at byte 3: its length is negative, or more than the bytes left",
        ),
        ({"type": "map", "values": "int"}, b"\x02\x02a\x80", "${} at byte 3: the value ends within it"),
    ],
)
def test_an_error_names_the_path_and_the_byte(engine: Engine, schema: Any, value: bytes, error: str) -> None:
    found = one_by_one_and_together(schema, value, None)
    assert found.values.null_count == 2
    assert found.status.to_pylist() == ["malformed", None]
    assert found.errors.to_pylist() == [error, None]


def test_a_value_that_cannot_be_read_takes_nothing_with_it(engine: Engine) -> None:
    schema = record(("a", {"type": "array", "items": record(("s", "string"), name="I")}), ("t", ["null", "string"]))
    good = written(schema, {"a": [{"s": "x"}, {"s": "yy"}], "t": ("string", "z")})
    found = one_by_one_and_together(schema, good, good[:-1], good, None, good + b"\0", good)
    row = {"a": [{"s": "x"}, {"s": "yy"}], "t": "z"}
    assert found.values.to_pylist() == [row, None, row, None, None, row]
    assert found.status.to_pylist() == ["ok", "malformed", "ok", None, "malformed", "ok"]


def test_a_value_that_would_go_on_in_the_next_one_is_malformed(engine: Engine) -> None:
    schema = record(
        ("a", "long"), ("s", "string"), ("d", "double"), ("n", ["null", "int"]), ("b", "boolean"), ("f", "float")
    )
    row = {"a": 1 << 40, "s": "text", "d": 0.5, "n": ("int", 300), "b": True, "f": 1.5}
    good = written(schema, row)
    for cut in range(0, len(good), 5):
        found = one_by_one_and_together(schema, good, good[:cut], good)
        assert found.status.to_pylist() == ["ok", "malformed", "ok"]
        assert found.values[2].as_py() == {**row, "n": 300}


def test_an_enum_is_text_where_there_are_no_dictionaries(engine: Engine) -> None:
    symbols = ["A", "LONGER", "C"]
    schema = record(("e", ["null", {"type": "enum", "name": "E", "symbols": symbols}]))
    some = [b"\0", *(b"\2" + zigzag(number) for number in range(3)), None]
    found = read(schema, *(some * 40), spark=True)
    assert found.values.type == pa.struct([("e", pa.string())])
    assert found.values.to_pylist() == [{"e": None}, *({"e": one} for one in symbols), None] * 40


def test_columns_may_lie_in_the_memory_of_any_allocator() -> None:
    before = pa.default_memory_pool()
    found = []
    for pool in (before, pa.system_memory_pool()):
        pa.set_memory_pool(pool)
        try:
            found.append(read("string", *(b"\4ab" for _ in range(1200))).values)
        finally:
            pa.set_memory_pool(before)
    assert found[0].to_pylist() == found[1].to_pylist() == ["ab"] * 1200


def test_a_branch_or_symbol_without_a_place_is_unresolved_and_others_are_read(engine: Engine) -> None:
    writer = ["int", "string", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]
    reader = ["long", {"type": "enum", "name": "E", "symbols": ["A"]}]
    found = one_by_one_and_together(writer, b"\0\x02", b"\x02\x02x", b"\x04\0", b"\x04\x02", reader=reader)
    assert found.values.to_pylist() == [{"long": 1, "E": None}, None, {"long": None, "E": "A"}, None]
    assert found.status.to_pylist() == ["ok", "unresolved", "ok", "unresolved"]
    assert found.errors.to_pylist()[1] == "$<string> at byte 1: no branch of the reader's union can be a string"


def test_a_field_without_a_default_that_the_writer_does_not_have(engine: Engine) -> None:
    found = read(record(("a", "int")), b"\0", reader=record(("a", "int"), ("b", "int")))
    assert found.errors.to_pylist() == ["$.b at byte 0: the writer does not have the field, and it has no default"]


def test_values_begin_after_what_frames_them_and_may_lie_anywhere(engine: Engine) -> None:
    values = [b"\0\0\0\0\1" + zigzag(n) for n in range(100)]
    whole = pa.array([b"", *values], pa.large_binary())
    found = decode(whole.slice(1), [of("int")], None, np.full(100, 5))
    assert found.values.to_pylist() == list(range(100))
    found = decode(pa.array([b"\0\0\0\0\1\xff"]), [of("int")], None, np.full(1, 5))
    assert found.errors.to_pylist() == ["$ at byte 5: the value ends within it"]
    # A value that begins after its end is none.
    assert decode(pa.array([b"\0"] * 50), [of("int")], None, np.full(50, 2)).values.null_count == 50


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KwireError, match="no Avro schema"):
        decode(pa.array([b""]), [])
    with pytest.raises(KwireError, match="a column of bytes"):
        decode(pa.array([1]), [of("int")])
    for which, starts in ((np.zeros(2), None), (np.ones(1), None), (None, np.zeros(2)), (None, np.full(1, -1))):
        with pytest.raises(ValueError, match=r"which|starts|outside"):
            decode(pa.array([b"\0"]), [of("int")], which, starts)


@pytest.mark.parametrize(
    "value",
    [
        zigzag((1 << 63) - 1),
        zigzag(-(1 << 63)) + zigzag(0),
        zigzag(-(1 << 62)) + zigzag(0),
        (zigzag(1 << 40)) * 50,
    ],
)
@pytest.mark.parametrize("items", ["null", record(name="I"), record(("n", "null"), name="I")])
def test_any_number_of_items_without_bytes_takes_neither_memory_nor_time(
    engine: Engine, items: Any, value: bytes
) -> None:
    began = time.process_time()
    schema = {"type": "array", "items": items}
    found = read(schema, value + b"\0", b"\x04\0")
    assert found.values.to_pylist()[1] is not None
    assert found.status.to_pylist()[0] in ("too_large", "malformed")
    skipped = read(record(("a", schema)), value + b"\0", reader=record())
    assert skipped.status.to_pylist()[0] in ("ok", "malformed")
    assert time.process_time() - began < 5


@pytest.mark.parametrize("count", [5, 1 << 20, (1 << 62) - 1, -(1 << 62)])
def test_a_count_beyond_the_bytes_is_refused_where_it_stands(engine: Engine, count: int) -> None:
    for items in ("int", "string", record(("a", "double"), name="I"), ["null", "int"]):
        schema = {"type": "array", "items": items}
        found = one_by_one_and_together(schema, zigzag(count) + zigzag(0), b"\0")
        assert found.status.to_pylist() == ["malformed", "ok"]


def test_many_columns_for_few_bytes_are_bounded() -> None:
    wide = record(*((f"f{n}", "long") for n in range(2000)), name="W")
    schema = {"type": "array", "items": ["null", wide]}
    found = read(schema, zigzag(100_000) + bytes(100_000) + b"\0", b"\0", limits=Limits(total=1 << 20))
    assert found.status.to_pylist() == ["too_large", "ok"]
    with pytest.raises(LimitError, match="decode fewer at once"):
        read(["null", wide], *([b"\0"] * 2000), limits=Limits(total=1 << 20))


def test_recursive_values_are_json_or_passed_over(engine: Engine) -> None:
    tree = record(("n", "int"), ("next", ["null", "T"]), ("m", {"type": "map", "values": "bytes"}), name="T")
    schema = record(("tree", tree), ("s", "string"))
    inner = {"n": 2, "next": None, "m": {}}
    value = written(schema, {"tree": {"n": 1, "next": inner, "m": {"k": b"\xff"}}, "s": "x"})
    found = one_by_one_and_together(schema, value, value[:-3], None, recursive="json")
    assert json.loads(found.values[0]["tree"].as_py()) == {"n": 1, "next": inner, "m": {"k": "/w=="}}
    assert found.status.to_pylist() == ["ok", "malformed", None]
    assert one_by_one_and_together(schema, value, reader=record(("s", "string"))).values.to_pylist() == [{"s": "x"}]
    deep = b"\2\2" * 3000
    assert "more than 1,024" in read(tree, deep, recursive="json").errors[0].as_py()
