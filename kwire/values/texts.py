"""An Arrow array of any type as JSON text, one for each row, by Arrow's own functions.

Types in JSON: timestamps, dates and times are texts in ISO 8601, bytes are base64, decimals are numbers with all their
digits, maps are objects. Numbers that JSON does not have are the texts ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.

Rules kept here:

- No loop runs over rows, but for texts with control characters that are rare.
- Null is ``null`` inside of a row. A row that is null stays null.
"""

from __future__ import annotations

import binascii
import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.errors import KwireError
from kwire.wire import FIRST_US, LAST_US

__all__ = ["base64", "json_texts", "times"]

Array = Any

_NULL: Final = "null"
_CONTROL: Final = r"[\x00-\x1f]"
_SHORT: Final = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def json_texts(array: pa.Array) -> pa.Array:
    """The rows of ``array`` as JSON text (an array of ``string``). Raises ``KwireError`` for a type that has none."""
    return pc.if_else(array.is_valid(), _texts(array), pa.scalar(None, pa.string()))


def _texts(array: pa.Array) -> pa.Array:
    """The same with ``null`` for null."""
    type_ = array.type
    for test, make in _TYPES:
        if test(type_):
            return pc.fill_null(make(array), _NULL)
    raise KwireError(f"values of the type {type_} have no JSON text")


def _nulls(array: pa.Array) -> pa.Array:
    return pa.nulls(len(array), pa.string())


def _cast(array: pa.Array) -> pa.Array:
    return array.cast(pa.string())


def _quoted(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', array.cast(pa.string()), '"', "")


def times(array: pa.Array) -> pa.Array:
    """Each time or date as text in ISO 8601; before the year 1 and after 9999 ``@`` with the seconds since 1970."""
    made = pc.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
    unit, numbers = _counted(array)
    # Nanoseconds of 64 bits are all within.
    first, last = (max(min(one * unit // 1_000_000, 2**63 - 1), -(2**63)) for one in (FIRST_US, LAST_US + 1))
    outside = pc.fill_null(pc.or_(pc.less(numbers, first), pc.greater_equal(numbers, last)), False)
    if not outside.true_count:
        return made
    # Arrow's own text is wrong there.
    digits = len(str(unit)) - 1
    texts = [
        f"@{one // unit}" + (f".{one % unit:0{digits}}" if digits else "")
        for one in numbers.filter(outside).to_pylist()
    ]
    return pc.replace_with_mask(made, outside, pa.array(texts, pa.string()))


def _counted(array: pa.Array) -> tuple[int, pa.Array]:
    """Parts of a second, and how many of them since 1970."""
    if pa.types.is_date(array.type):
        seconds = pc.multiply(array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), 86_400)
        return 1, seconds
    return {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[array.type.unit], array.cast(pa.int64())


def _times(array: pa.Array) -> pa.Array:
    return _quoted(times(array))


def _floats(array: pa.Array) -> pa.Array:
    made = array.cast(pa.string())
    finite = pc.is_finite(array)
    if pc.all(finite).as_py() is not False:
        return made
    named = pc.if_else(pc.is_nan(array), '"NaN"', pc.if_else(pc.greater(array, 0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(finite, made, named)


def _strings(array: pa.Array) -> pa.Array:
    made = array.cast(pa.string())
    if pc.any(pc.match_substring_regex(made, r'["\\\x00-\x1f]')).as_py():
        for one, other in _SHORT:
            made = pc.replace_substring(made, one, other)
        rest = pc.fill_null(pc.match_substring_regex(made, _CONTROL), False)
        if rest.true_count:
            escaped = [json.dumps(text, ensure_ascii=False)[1:-1] for text in array.filter(rest).to_pylist()]
            made = pc.replace_with_mask(made, rest, pa.array(escaped, pa.string()))
    return pc.binary_join_element_wise('"', made, '"', "")


def _bytes(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', base64(array.cast(pa.binary())), '"', "")


def base64(array: pa.Array) -> pa.Array:
    """Bytes (``binary``) as base64, all at once: each value gets zeros up to a multiple of three."""
    sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    groups = -(-sizes // 3)
    ends = np.cumsum(groups)
    data = np.zeros(3 * int(groups.sum()), np.uint8)
    begins = np.cumsum(sizes) - sizes
    content = _content(pc.fill_null(array, b"") if array.null_count else array)
    places = np.arange(len(content)) + np.repeat(3 * (ends - groups) - begins, sizes)
    data[places] = np.frombuffer(content, np.uint8)
    made = np.frombuffer(binascii.b2a_base64(data.tobytes(), newline=False), np.uint8).copy()
    for left, marks in ((1, 2), (2, 1)):
        last = 4 * ends[sizes % 3 == left]
        for mark in range(marks):
            made[last - 1 - mark] = ord("=")
    offsets = np.concatenate([np.zeros(1, np.int64), 4 * ends]).astype(np.int32)
    texts = pa.Array.from_buffers(pa.string(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(made)])
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts


def _content(array: pa.Array) -> bytes:
    """The bytes of all values, one after the other, where none is null."""
    _, ends, data = array.buffers()
    if not len(array) or data is None:
        return b""
    places = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    return bytes(memoryview(data)[places[0] : places[-1]])


def _objects(array: pa.Array) -> pa.Array:
    if not array.type.num_fields:
        return pc.if_else(array.is_valid(), "{}", pa.scalar(None, pa.string()))
    parts: list[Any] = []
    for number, (field, child) in enumerate(zip(array.type, array.flatten(), strict=True)):
        parts += [f"{',' if number else '{'}{json.dumps(field.name, ensure_ascii=False)}:", _texts(child)]
    made = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(array.is_valid(), made, pa.scalar(None, pa.string()))


def _lists(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("[", _joined(array, _texts(array.flatten())), "]", "")


def _maps(array: pa.Array) -> pa.Array:
    entries = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    keys, items = entries.flatten().flatten()
    names = _texts(keys)
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        names = _quoted(pc.replace_substring(names, '"', ""))
    pairs = pc.binary_join_element_wise(names, _texts(items), ":")
    return pc.binary_join_element_wise("{", _joined(entries, pairs), "}", "")


def _joined(array: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts of the elements of each list, with commas. Null stays null."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int32)
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts), ",")
    return pc.if_else(array.is_valid(), joined, pa.scalar(None, pa.string())) if array.null_count else joined


def _named(array: pa.Array) -> pa.Array:
    return _texts(array.dictionary).take(array.indices)


def _each(array: pa.Array) -> pa.Array:
    return pa.array([None if one is None else json.dumps(str(one)) for one in array.to_pylist()], pa.string())


_TYPES: Final = (
    (pa.types.is_null, _nulls),
    (pa.types.is_boolean, _cast),
    (pa.types.is_integer, _cast),
    (pa.types.is_floating, _floats),
    (lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_), _strings),
    (lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_), _bytes),
    (pa.types.is_fixed_size_binary, _bytes),
    (pa.types.is_decimal, _cast),
    (pa.types.is_date, _times),
    (pa.types.is_time, _quoted),
    (pa.types.is_timestamp, _times),
    (pa.types.is_struct, _objects),
    (pa.types.is_map, _maps),
    (lambda type_: pa.types.is_list(type_) or pa.types.is_large_list(type_), _lists),
    (pa.types.is_fixed_size_list, _lists),
    (pa.types.is_dictionary, _named),
    (pa.types.is_duration, _each),
    (pa.types.is_interval, _each),
)
