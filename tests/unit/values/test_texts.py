"""Arrow arrays as JSON text say what Python's own JSON says of their rows."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import KwireError
from kwire.values.masking import Mask
from kwire.values.texts import json_texts

STRUCT = pa.struct(
    [
        ("n", pa.int32()),
        ("text", pa.string()),
        ("list", pa.list_(pa.struct([("x", pa.float64())]))),
        ("map", pa.map_(pa.string(), pa.int64())),
        ('q"uo\\te', pa.bool_()),
        ("nothing", pa.null()),
        ("inner", pa.struct([("a", pa.list_(pa.string()))])),
    ]
)
ROWS: list[Any] = [
    {"n": 1, "text": 'a "quoted"\n\\ text', "list": [{"x": 1.5}, None, {"x": None}], "map": [("k", 1), ("", None)]},
    None,
    {"n": None, "text": "\x01\x1f é 日", "list": [], "map": None, 'q"uo\\te': True, "inner": {"a": ["x", None]}},
    {"inner": None, "list": None, "map": [("a", 2)]},
]


def rows_of(array: pa.Array) -> list[Any]:
    return [None if one is None else json.loads(one) for one in json_texts(array).to_pylist()]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: dict(one) if name == "map" and one is not None else plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def test_nested_rows_are_objects() -> None:
    array = pa.array(ROWS, STRUCT)
    expected = [plain(one) for one in array.to_pylist()]
    assert rows_of(array) == expected
    assert rows_of(array.slice(2, 2)) == expected[2:]
    assert json_texts(array)[0].as_py().startswith('{"n":1,"text":"a \\"quoted\\"')


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([True, False], pa.bool_(), [True, False]),
        ([1.0, 0.1, 1e300, -0.0], pa.float64(), [1.0, 0.1, 1e300, -0.0]),
        ([math.nan, math.inf, -math.inf, 1.0], pa.float64(), ["NaN", "Infinity", "-Infinity", 1]),
        ([Decimal("12.50"), Decimal("-0.01")], pa.decimal128(20, 2), [12.5, -0.01]),
        ([date(2026, 11, 26)], pa.date32(), ["2026-11-26"]),
        ([time(1, 2, 3, 4)], pa.time64("us"), ["01:02:03.000004"]),
        ([datetime(2026, 11, 26, 1, 2, 3, 4, UTC)], pa.timestamp("us", "UTC"), ["2026-11-26T01:02:03.000004Z"]),
        (["x", "y", "x"], pa.dictionary(pa.int32(), pa.string()), ["x", "y", "x"]),
        ([{}, None], pa.struct([]), [{}, None]),
        ([[1, 2], []], pa.list_(pa.int8()), [[1, 2], []]),
        ([[(1, "a")]], pa.map_(pa.int64(), pa.string()), [{"1": "a"}]),
    ],
)
def test_each_type_has_a_text(values: list[Any], type_: pa.DataType, expected: list[Any]) -> None:
    assert rows_of(pa.array(values, type_)) == expected


def test_bytes_are_base64_whatever_their_length() -> None:
    values = [bytes(range(n)) for n in range(40)]
    array = pa.array([b"before", *values, None], pa.binary()).slice(1)
    assert rows_of(array) == [*(base64.b64encode(one).decode() for one in values), None]


def test_a_type_without_a_text_is_refused() -> None:
    with pytest.raises(KwireError, match="no JSON text"):
        json_texts(pa.RunEndEncodedArray.from_arrays([1], [5]))


PEOPLE = pa.struct(
    [("email", pa.string()), ("age", pa.int32()), ("friends", pa.list_(pa.struct([("email", pa.string())])))]
)


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Mask("email"), {"email": None, "age": 7, "friends": [{"email": None}]}),
        (Mask("*.email"), {"email": "a@b", "age": 7, "friends": [{"email": None}]}),
        (
            Mask(["EMAIL", "age"], "size"),
            {"email": '{"redacted": 3}', "age": None, "friends": [{"email": '{"redacted": 2}'}]},
        ),
        (Mask("friends"), {"email": "a@b", "age": 7, "friends": None}),
    ],
)
def test_a_mask_hides_fields_of_columns_and_of_texts_alike(mask: Mask, expected: dict[str, Any]) -> None:
    row = {"email": "a@b", "age": 7, "friends": [{"email": "é"}]}
    assert mask.values(pa.array([row, None], PEOPLE)).to_pylist() == [expected, None]
    assert [json.loads(one) for one in mask.texts(pa.array([json.dumps(row)])).to_pylist()] == [expected]


def test_a_pseudonym_is_the_same_for_the_same_value_and_the_same_key() -> None:
    column = pa.array([{"email": "a@b"}, {"email": "c@d"}, {"email": "a@b"}], pa.struct([("email", pa.string())]))
    first, second = (
        Mask("email", "pseudonym", bytes([n]) * 16).values(column).field("email").to_pylist() for n in (1, 2)
    )
    assert first[0] == first[2] != first[1]
    assert set(first).isdisjoint(second)
    assert len(first[0]) == 32
    assert "a@b" not in repr(Mask("email", "pseudonym", b"k" * 16))


@pytest.mark.parametrize(("how", "key"), [("hash", None), ("pseudonym", None), ("pseudonym", b"short")])
def test_a_mask_that_cannot_be_made_is_refused(how: str, key: bytes | None) -> None:
    with pytest.raises(KwireError):
        Mask("email", how, key)
