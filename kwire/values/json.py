"""Values in JSON: which are well-formed, and as Arrow arrays of a type.

``type_of`` makes the type of a JSON Schema. ``decode`` reads a column of values as a type, by Arrow's reader.

Rules kept here:

- A value is one JSON text in UTF-8 (RFC 8259) without anything after it. Names that are repeated, ``NaN`` and numbers
  that no float has are refused.
- Arrow's reader takes lines, and a value may have any bytes. So each value is read as a member of an object of its own,
  whose other member has a name that nobody can know. A value that is more or less than one text breaks its object.
- Types that Arrow has no name for (several types at one place, references in a circle) are refused by path.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire import stored, strict
from kwire.errors import SchemaError
from kwire.records.arrow_types import TIMESTAMP

__all__ = ["decode", "has_begin", "type_of", "wrong"]

DEEPEST: Final = 64
"""Types inside each other in a JSON Schema."""
MOST_FIELDS: Final = 20_000
"""Fields of the type of a JSON Schema, with those inside of others."""
DEEPEST_VALUE: Final = 500
"""Arrays and objects inside each other in a value."""


def has_begin(array: pa.Array) -> Any:
    """Which values begin as an object or an array does, and end as one: a mask."""
    made = pc.match_substring_regex(array, r"(?s)\A[ \t\r\n]*[\[{].*[\]}][ \t\r\n]*\z")
    return pc.fill_null(made, False).to_numpy(zero_copy_only=False)


def wrong(value: bytes) -> str | None:
    """What is wrong with a JSON text. None where nothing is."""
    try:
        # Numbers may have any digits: Python makes none of so many.
        strict.read(value, DEEPEST_VALUE, len)
    except UnicodeDecodeError as error:
        return f"at byte {error.start}: not UTF-8"
    except json.JSONDecodeError as error:
        return f"at byte {len(error.doc[: error.pos].encode())}: {error.msg}"
    except ValueError as error:
        return str(error)
    return None


def decode(array: pa.Array, type_: pa.DataType) -> tuple[pa.Array, list[tuple[int, str]]]:
    """The values of an array of bytes as ``type_``, and of those that are none (null) the row and what is wrong.

    Members that the type does not have are passed over, those that a value does not have are null.
    """
    return _decode(array, type_, 0)


def _decode(array: pa.Array, type_: pa.DataType, first: int) -> tuple[pa.Array, list[tuple[int, str]]]:
    made = _read(array, type_)
    if isinstance(made, pa.Array):
        return made, []
    if len(array) == 1:
        text = wrong(array[0].as_py() or b"") or made
        return pa.nulls(1, type_), [(first, text)]
    half = len(array) // 2
    left, of_left = _decode(array.slice(0, half), type_, first)
    right, of_right = _decode(array.slice(half), type_, first + half)
    return pa.concat_arrays([left, right]), of_left + of_right


_NOTHING: Final = b"null"


def _read(array: pa.Array, type_: pa.DataType) -> pa.Array | str:
    """All values as ``type_``, or what is wrong with one of them."""
    from pyarrow import json as arrow_json

    if not len(array):
        return pa.nulls(0, type_)
    mark = secrets.token_hex(16)
    texts = pc.fill_null(array.cast(pa.binary()), _NOTHING)
    numbers = pa.array(np.arange(len(array))).cast(pa.string()).cast(pa.binary())
    lines = pc.binary_join_element_wise(f'{{"{mark}":'.encode(), numbers, b',"v":', texts, b"\n}\n", b"")
    source = b"".join(lines.to_pylist())
    parse = arrow_json.ParseOptions(
        explicit_schema=pa.schema([(mark, pa.int64()), ("v", type_)]),
        newlines_in_values=True,
        unexpected_field_behavior="ignore",
    )
    try:
        # One block, so that no cut goes through a value.
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(source) + 1)
        table = arrow_json.read_json(io.BytesIO(source), read_options=options, parse_options=parse)
        found = table.column(mark)
        if len(table) != len(array) or not found.equals(pa.chunked_array([pa.array(np.arange(len(array)))])):
            return "more or less than one JSON text"
        made: pa.Array = pa.concat_arrays(table.column("v").chunks)
    except (pa.ArrowException, ValueError) as error:
        return " ".join(str(error).split()).replace(mark, "")
    return made


# --- JSON Schema ------------------------------------------------------------------------------------------------------

_FORMATS: Final[Mapping[str, pa.DataType]] = {"date-time": TIMESTAMP, "date": pa.date32()}
_SIMPLE: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "null": pa.null(),
}


def type_of(text: str, references: Mapping[str, str]) -> pa.DataType:
    """The type of what a JSON Schema describes. Raises ``SchemaError`` for what Arrow has no type for."""
    try:
        root = stored.parsed(text)
        others = {name: stored.parsed(other) for name, other in references.items()}
        return _Types(root, others).of(root, "$", ())
    except stored.UNFIT as error:
        raise SchemaError(f"this is no JSON Schema: {error}") from None


class _Types:
    def __init__(self, root: Any, others: Mapping[str, Any]) -> None:
        self._root = root
        self._others = others
        self._fields = 0

    def of(self, schema: Any, path: str, open_: tuple[str, ...]) -> pa.DataType:
        if len(open_) > DEEPEST or path.count(".") + path.count("[") > DEEPEST:
            raise SchemaError(f"{path}: nested deeper than {DEEPEST}")
        if isinstance(schema, bool):
            raise SchemaError(f"{path}: any value may stand here, which has no type")
        if "$ref" in schema:
            name = stored.text(schema["$ref"])
            if name in open_:
                raise SchemaError(f"{path}: {name} contains itself, which has no type")
            return self.of(self._referred(name, path), path, (*open_, name))
        for word in ("oneOf", "anyOf"):
            if word in schema:
                others = [one for one in schema[word] if one.get("type") != "null"]
                if len(others) != 1:
                    raise SchemaError(f"{path}: {word} of several types has no type")
                return self.of(others[0], path, open_)
        if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            return self.of(schema["allOf"][0], path, open_)
        type_ = schema.get("type")
        if isinstance(type_, list):
            rest = [one for one in type_ if one != "null"]
            if set(rest) == {"integer", "number"}:
                rest = ["number"]
            if len(rest) != 1:
                raise SchemaError(f"{path}: several types at one place have no type")
            type_ = rest[0]
        if type_ is None:
            type_ = "object" if "properties" in schema else "string" if "enum" in schema else None
        if type_ == "object":
            return self._object(schema, path, open_)
        if type_ == "array":
            return pa.list_(pa.field("element", self.of(schema.get("items", True), f"{path}[]", open_)))
        if type_ == "string":
            return _FORMATS.get(schema.get("format", ""), pa.string())
        if type_ not in _SIMPLE:
            raise SchemaError(f"{path}: any value may stand here, which has no type")
        return _SIMPLE[type_]

    def _object(self, schema: Any, path: str, open_: tuple[str, ...]) -> pa.DataType:
        members = schema.get("properties")
        if members:
            self._fields += len(members)
            if self._fields > MOST_FIELDS:
                raise SchemaError(f"more than {MOST_FIELDS} fields")
            return pa.struct([pa.field(name, self.of(one, f"{path}.{name}", open_)) for name, one in members.items()])
        raise SchemaError(f"{path}: an object with any names has no type")

    def _referred(self, name: str, path: str) -> Any:
        document, _, pointer = name.partition("#")
        found = self._root if not document else self._others.get(document)
        if found is None:
            raise SchemaError(f"{path}: refers to {name}, which no source has")
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            found = found[step.replace("~1", "/").replace("~0", "~")]
        return found
