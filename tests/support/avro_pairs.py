"""Pairs of Avro schemas, related by the rules of resolution, with values: what fastavro and kwire make of them.

All is made by a ``random.Random``, so that Hypothesis and a campaign by seeds have the same pairs.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest.mock import patch

import fastavro
import numpy as np
import pyarrow as pa
from fastavro import _read_py
from fastavro.io.binary_decoder import BinaryDecoder

from kwire.values.avro import Schema, decode, parse
from kwire.values.avro.layout import branch_names, is_null, option_of
from kwire.values.avro.types import ArrayType, MapType, PrimitiveType, RecordType, Type, UnionType

PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}

LAXER: Final = (
    "the number is outside of its type",
    "a boolean is neither 0 nor 1",
    "the union has no such branch",
    "its length is negative",
    "its count is more than",
    "a varint has more than 10 bytes",
    "the value ends within it",
)
"""Errors of values that fastavro may read all the same: a number that does not fit is cut, a branch or symbol with a
negative number is counted from the end, a count or size of a block is not compared with the bytes that are left."""


class Pairs:
    """Makes schemas and values."""

    def __init__(self, some: random.Random) -> None:
        self.some = some
        self.names = 0

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def schema(self, depth: int = 0) -> Any:
        """Any type."""
        some = self.some
        pick = some.random()
        if depth > 3 or pick < 0.45:
            return some.choice(PRIMITIVES)
        if pick < 0.55:
            branches = [some.choice(PRIMITIVES) if some.random() < 0.6 else self.named(depth + 1), "null"]
            some.shuffle(branches)
            return branches
        if pick < 0.62:
            kinds = some.sample(PRIMITIVES, some.randrange(1, 4))
            branches = [*kinds, *(["null"] if some.random() < 0.5 else []), self.named(depth + 1)]
            if some.random() < 0.3:
                branches.append({"type": "array", "items": self.schema(depth + 1)})
            some.shuffle(branches)
            return _bytes_first(branches)
        if pick < 0.72:
            return {"type": "array", "items": self.schema(depth + 1)}
        if pick < 0.8:
            return {"type": "map", "values": self.schema(depth + 1)}
        return self.named(depth)

    def named(self, depth: int) -> Any:
        """A type with a name."""
        some = self.some
        pick = some.random()
        if pick < 0.2:
            return {"type": "fixed", "name": self.name("F"), "size": some.randrange(1, 20)}
        if pick < 0.45:
            symbols = [f"S{n}" for n in range(some.randrange(1, 6))]
            return {"type": "enum", "name": self.name("E"), "symbols": symbols}
        fields = [{"name": f"f{n}", "type": self.schema(depth + 1)} for n in range(some.randrange(5))]
        return {"type": "record", "name": self.name("R"), "fields": fields}

    def value(self, schema: Any) -> Any:
        """A value of a schema, as fastavro takes it."""
        some = self.some
        if isinstance(schema, list):
            branch = some.choice(schema)
            made = self.value(branch)
            return made if branch == "null" else (_label(branch), made)
        kind = schema if isinstance(schema, str) else schema["type"]
        sizes = (1, 7, 14, 31, 40, 63)
        make: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: some.random() < 0.5,
            "int": lambda: some.randrange(-(1 << (n := some.choice(sizes[:4]))), 1 << n),
            "long": lambda: some.randrange(-(1 << (n := some.choice(sizes))), 1 << n),
            "float": lambda: float(np.float32(some.choice((some.random(), 1e30, float("inf"), -0.0)))),
            "double": lambda: some.choice((some.random(), 1e300, float("inf"))),
            "bytes": lambda: (
                some.choice((b"\xff\xfe" * some.randrange(9), b"plain")) if some.random() < 0.3 else b"abc"
            ),
            "string": lambda: "".join(some.choices("abcdefg\u00e9\u4e2d\U0001f600", k=some.choice((0, 3, 9, 40)))),
            "fixed": lambda: some.randbytes(schema["size"]),
            "enum": lambda: some.choice(schema["symbols"]),
            "array": lambda: [self.value(schema["items"]) for _ in range(some.choice((0, 1, 2, 5)))],
            "map": lambda: {f"k{n}": self.value(schema["values"]) for n in range(some.choice((0, 1, 3)))},
            "record": lambda: {one["name"]: self.value(one["type"]) for one in schema["fields"]},
        }
        return make[kind]()

    def reader(self, schema: Any) -> Any:
        """A schema that differs from a writer's as schemas do over time: often it can read all values, not always."""
        some = self.some
        if isinstance(schema, list):
            made = [self.reader(one) for one in schema]
            made = [one for one in made if not isinstance(one, list)]
            if some.random() < 0.3:
                some.shuffle(made)
            if some.random() < 0.1 and len(made) > 1:
                made.pop()
            # fastavro takes a union of nothing for no schema.
            made = made or ["null"]
            labels = [_label(one) for one in made]
            return _bytes_first([one for n, one in enumerate(made) if labels[n] not in labels[:n]])
        kind = schema if isinstance(schema, str) else schema["type"]
        if some.random() < 0.08 and kind != "null":
            # A union that has it, with a type that it cannot become.
            return ["null", schema] if some.random() < 0.5 else [schema, "null"]
        if kind in PROMOTED and some.random() < 0.25:
            return some.choice(PROMOTED[kind])
        if isinstance(schema, str):
            return schema
        made = dict(schema)
        if "name" in made and some.random() < 0.15:
            made |= {"name": self.name("N"), "aliases": [made["name"]]}
        if kind == "array":
            made["items"] = self.reader(made["items"])
        elif kind == "map":
            made["values"] = self.reader(made["values"])
        elif kind == "enum" and some.random() < 0.4:
            symbols = [*made["symbols"], "NEW"]
            some.shuffle(symbols)
            made["symbols"] = symbols[: some.randrange(1, len(symbols) + 1)]
            if some.random() < 0.6:
                made["default"] = made["symbols"][0]
        elif kind == "record":
            made["fields"] = self.fields(made["fields"])
        return made

    def fields(self, fields: list[Any]) -> list[Any]:
        some = self.some
        made = []
        for one in fields:
            if some.random() < 0.12:
                continue
            other = {"name": one["name"], "type": self.reader(one["type"])}
            if some.random() < 0.1:
                other |= {"name": f"new_{one['name']}", "aliases": [one["name"]]}
            made.append(other)
        if some.random() < 0.3:
            made.append({"name": "added", **some.choice(ADDED)})
        if some.random() < 0.2:
            some.shuffle(made)
        return copy.deepcopy(made)


ADDED: Final = (
    {"type": "int", "default": 7},
    {"type": "string", "default": "new"},
    {"type": ["null", "long"], "default": None},
    {"type": {"type": "array", "items": "string"}, "default": []},
    {"type": {"type": "array", "items": "long"}, "default": [1, 2]},
    {"type": {"type": "map", "values": "int"}, "default": {"a": 1}},
    {"type": "double", "default": 1.5},
    {"type": ["string", "null"], "default": "x"},
    {"type": "boolean", "default": True},
)


def _bytes_first(union: list[Any]) -> list[Any]:
    """fastavro takes the first branch that fits, and not a better one: bytes would have to be text."""
    return sorted(union, key=lambda one: one == "string")


def _label(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return str(schema.get("name", schema["type"]))


def written(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(copy.deepcopy(schema)), value)
    return out.getvalue()


def damaged(data: bytes, some: random.Random) -> bytes:
    """The same with something wrong."""
    made = bytearray(data)
    pick = some.random()
    if pick < 0.3 and made:
        del made[some.randrange(len(made)) :]
    elif pick < 0.5:
        made[some.randrange(len(made) + 1) : 0] = some.randbytes(some.randrange(1, 4))
    else:
        for _ in range(some.randrange(1, 3)):
            if made:
                made[some.randrange(len(made))] = some.choice((0, 1, 2, 0x7F, 0x80, 0xFF, some.randrange(256)))
    return bytes(made)


def damaged_schema(schema: Any, some: random.Random) -> Any:
    """The same with something in it that may be wrong."""
    junk = (
        None,
        0,
        -1,
        1 << 70,
        1.5,
        "",
        "int",
        "null",
        "R1",
        "\ud800",
        [],
        {},
        ["int"],
        {"type": "int"},
        True,
        "x" * 2000,
    )
    places: list[tuple[Any, Any]] = []
    made = copy.deepcopy(schema)
    around = {"": made}
    waiting: list[Any] = [around]
    while waiting:
        one = waiting.pop()
        for key in range(len(one)) if isinstance(one, list) else one:
            places.append((one, key))
            if isinstance(one[key], dict | list):
                waiting.append(one[key])
    for _ in range(some.randrange(1, 3)):
        one, key = some.choice(places)
        pick = some.random()
        if pick < 0.5:
            one[key] = copy.deepcopy(some.choice(junk))
        elif pick < 0.8:
            other, at = some.choice(places)
            one[key] = copy.deepcopy(other[at])
        elif isinstance(one, dict):
            keys = (
                "type",
                "items",
                "values",
                "size",
                "symbols",
                "fields",
                "default",
                "aliases",
                "logicalType",
                "namespace",
            )
            one[some.choice(keys)] = some.choice((*junk, "decimal", "uuid", "duration", "date"))
    return around[""]


class _Refused:
    def __repr__(self) -> str:
        return "refused"


REFUSED: Final = _Refused()
ENDLESS: Final = object()
MOST_ITEMS: Final = 100_000
"""Items of one value that fastavro is asked for: those that are made here have a few."""


class _EndlessError(BaseException):
    """Items are read that the value cannot have, or a block is not as long as it says."""


def _is_endless(writer: Any, reader: Any, data: bytes) -> bool:
    """Whether fastavro would read without end, which nothing can stop: items without bytes, or that it passes over, as
    many as a damaged count says, or blocks that it passes over by a damaged size, which may lead back.

    Its Python shows that. It is laxer for this, as its machine code is: no text is damaged, and numbers wrap around.
    """
    left, sized = MOST_ITEMS, 0

    def counted(decoder: Any) -> Iterator[None]:
        nonlocal left, sized
        while decoder._block_count != 0:
            count, size, begin = abs(decoder._block_count), None, 0
            if decoder._block_count < 0:
                size, begin = decoder.read_long(), decoder.fo.tell()
                sized += 1
            left -= count
            if left < 0:
                raise _EndlessError
            for _ in range(count):
                yield
            if size is not None:
                sized -= 1
                if decoder.fo.tell() != begin + size:
                    raise _EndlessError
            decoder._block_count = decoder.read_long()

    def wrapped(decoder: Any) -> int:
        number = read_long(decoder)
        return int((number + (1 << 63)) % (1 << 64) - (1 << 63))

    def lax(decoder: Any, handle_unicode_errors: str = "") -> str:
        return str(decoder.read_bytes().decode(errors="replace"))

    read_long = BinaryDecoder.read_long
    laxer = {"iter_array": counted, "iter_map": counted, "read_long": wrapped, "read_int": wrapped, "read_utf8": lax}
    try:
        with patch.multiple(BinaryDecoder, **laxer), contextlib.suppress(Exception):
            _read_py.schemaless_reader(io.BytesIO(data), writer, reader)
    except _EndlessError:
        return True
    return sized > 0


def by_fastavro(writer: Any, reader: Any, values: list[bytes]) -> list[Any]:
    """What fastavro reads, ``REFUSED`` where it raises, or where bytes are left; ``ENDLESS`` where it is not asked."""
    writer, reader = (fastavro.parse_schema(copy.deepcopy(one)) for one in (writer, reader))
    found: list[Any] = []
    for data in values:
        if _is_endless(writer, reader, data):
            found.append(ENDLESS)
            continue
        source = io.BytesIO(data)
        made: Any = REFUSED
        # Whatever it raises: for damaged bytes that may be anything.
        with contextlib.suppress(Exception):
            made = fastavro.schemaless_reader(source, writer, reader)
            if source.tell() != len(data):
                made = REFUSED
        found.append(made)
    return found


def by_kwire(writer: Any, reader: Any, values: list[bytes]) -> tuple[list[Any], list[str]]:
    """What kwire reads, in the form of fastavro, ``REFUSED`` where it is not ok; and the errors."""
    of_reader = parse(json.dumps(reader))
    made = decode(pa.array(values, pa.binary()), [parse(json.dumps(writer))], reader=of_reader)
    made.values.validate(full=True)
    states = made.status.to_pylist()
    plain = [
        plainly(of_reader.type, one) if state == "ok" else REFUSED
        for one, state in zip(made.values.to_pylist(), states, strict=True)
    ]
    for one, state in zip(made.values.to_pylist(), states, strict=True):
        assert state == "ok" or one is None
    return plain, [one or "" for one in made.errors.to_pylist()]


def plainly(type_: Type, value: Any) -> Any:
    """A value of an Arrow column in the form of fastavro."""
    if value is None:
        return None
    if isinstance(type_, UnionType):
        option = option_of(type_)
        if option:
            return plainly(option[1], value)
        if len(type_.branches) == 1:
            return plainly(type_.branches[0], value)
        for name, branch in zip(branch_names(type_), type_.branches, strict=True):
            if not is_null(branch) and value[name] is not None:
                return plainly(branch, value[name])
        raise AssertionError("no branch")
    if isinstance(type_, RecordType):
        return {one.name: plainly(one.type, value[one.name]) for one in type_.fields}
    if isinstance(type_, ArrayType):
        return [plainly(type_.items, one) for one in value]
    if isinstance(type_, MapType):
        return {key: plainly(type_.values, one) for key, one in value}
    return value


def same(type_: Type, ours: Any, theirs: Any) -> bool:
    """Whether both are the same value of a type."""
    if isinstance(type_, UnionType):
        if ours is None or theirs is None:
            return ours is theirs
        if isinstance(ours, int) and isinstance(theirs, float):
            # The first branch that it can be, where there is a better one.
            return float(ours) == theirs
        return any(_alike(one, ours, theirs) for one in type_.branches if not is_null(one))
    return _alike(type_, ours, theirs)


def _alike(type_: Type, ours: Any, theirs: Any) -> bool:
    if isinstance(type_, RecordType):
        return (
            isinstance(ours, dict)
            and isinstance(theirs, dict)
            and ours.keys() == theirs.keys()
            and all(one.name in ours and same(one.type, ours[one.name], theirs[one.name]) for one in type_.fields)
        )
    if isinstance(type_, ArrayType):
        return (
            isinstance(ours, list)
            and isinstance(theirs, list)
            and len(ours) == len(theirs)
            and all(same(type_.items, a, b) for a, b in zip(ours, theirs, strict=True))
        )
    if isinstance(type_, MapType):
        return (
            isinstance(ours, dict)
            and isinstance(theirs, dict)
            and ours.keys() == theirs.keys()
            and all(same(type_.values, ours[key], theirs[key]) for key in ours)
        )
    if isinstance(ours, float | int) and isinstance(theirs, float | int) and not isinstance(theirs, bool):
        if isinstance(type_, PrimitiveType) and type_.name == "float":
            with np.errstate(over="ignore"):
                ours, theirs = np.float32(ours), np.float32(theirs)
        return bool(ours == theirs) or (ours != ours and theirs != theirs)
    # fastavro leaves text that is read as bytes, and bytes that are read as text, as they are.
    if isinstance(ours, str) and isinstance(theirs, bytes):
        ours = ours.encode()
    elif isinstance(ours, bytes) and isinstance(theirs, str):
        theirs = theirs.encode()
    return bool(ours == theirs)


def differences(some: random.Random, values: int) -> list[str]:
    """What is different between both for a pair of schemas and so many values, and as many that are damaged: nothing,
    if all is well."""
    pairs = Pairs(some)
    writer = pairs.schema()
    reader = pairs.reader(copy.deepcopy(writer)) if some.random() < 0.7 else writer
    good = [written(writer, pairs.value(writer)) for _ in range(values)]
    some_bad = [damaged(some.choice(good), some) for _ in range(values)]
    data = [*good, *some_bad]
    some.shuffle(data)
    theirs = by_fastavro(writer, reader, data)
    ours, errors = by_kwire(writer, reader, data)
    type_ = parse(json.dumps(reader)).type
    found = []
    for one, a, b, error in zip(data, ours, theirs, errors, strict=True):
        if (a is REFUSED and b is REFUSED) or (b is ENDLESS and one not in good):
            continue
        if a is REFUSED and any(each in error for each in LAXER) and one not in good:
            continue
        if a is REFUSED or b is REFUSED or not same(type_, a, b):
            found.append(
                f"{one.hex()}\n  writer {json.dumps(writer)}\n  reader {json.dumps(reader)}\n"
                f"  kwire {a!r} {error}\n  fastavro {b!r}"
            )
    return found


def schemas(seed: int) -> tuple[Schema, Schema]:
    """The pair with this seed, parsed."""
    some = random.Random(seed)
    pairs = Pairs(some)
    writer = pairs.schema()
    return parse(json.dumps(writer)), parse(json.dumps(pairs.reader(copy.deepcopy(writer))))
