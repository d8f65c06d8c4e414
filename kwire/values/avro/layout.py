"""Which columns the values of a schema become: Arrow types, and the regions that a kernel fills::

    | Avro | Arrow | with ``spark`` |
    |---|---|---|
    | ``null`` | null | |
    | ``boolean``, ``int``, ``long``, ``float``, ``double`` | bool, int32, int64, float, double | |
    | ``bytes``, ``string`` | binary, string | |
    | ``fixed`` | fixed_size_binary | binary |
    | ``enum`` | dictionary of strings | string |
    | ``record`` | struct | |
    | ``array``, ``map`` | list, map | |
    | union of null and one type | that type, nullable | |
    | other unions | struct with a field for each branch, of which one is not null | |
    | ``decimal`` | decimal128; from 39 digits on decimal256 | from 39 digits on string |
    | ``date`` | date32 | |
    | ``time-millis``, ``time-micros`` | time32[ms], time64[us] | int32, int64 |
    | ``timestamp-millis``, ``-micros``, ``-nanos`` | timestamp in UTC of this unit | in microseconds |
    | ``local-timestamp-...`` | the same without a zone | in microseconds |
    | ``uuid`` | string | |
    | ``duration`` | struct of ``months``, ``days``, ``millis``, int64 | |

Rules kept here:

- The columns of a schema are counted before they are made: types that are used many times cannot make many of them.
- The regions of a struct that have a row for each of its own stand side by side, so that one instruction nulls them.
- All fields may be null: a row that cannot be read is.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kwire.errors import KwireError
from kwire.kernels.avro import OFFSETS_OF_LISTS, OFFSETS_OF_TEXTS
from kwire.values.avro.types import (
    ArrayType,
    EnumType,
    FixedType,
    Logical,
    MapType,
    PrimitiveType,
    RecordType,
    Type,
    UnionType,
    named,
)

if TYPE_CHECKING:
    from kwire.values.avro.schema import Schema

__all__ = ["Layout", "Node", "RegionPlan", "branch_names", "circles", "inside", "is_null", "layout_of", "option_of"]

MOST_COLUMNS: Final = 10_000
"""Columns of a schema, those inside of others included."""
MOST_NESTING: Final = 100

_WIDTHS: Final = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8}
_TYPES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
    "duration": pa.struct([("months", pa.int64()), ("days", pa.int64()), ("millis", pa.int64())]),
}
_FOR_SPARK: Final = {
    "time-millis": pa.int32(),
    "time-micros": pa.int64(),
    **{f"timestamp-{unit}": pa.timestamp("us", "UTC") for unit in ("millis", "micros", "nanos")},
    **{f"local-timestamp-{unit}": pa.timestamp("us") for unit in ("millis", "micros", "nanos")},
}
DIGITS_128: Final = 38
"""Of a decimal128."""


@dataclass(slots=True, eq=False)
class RegionPlan:
    """A buffer. ``number``: its place among all, known when the layout is made. ``text``: it has only UTF-8."""

    width: int
    domain: int
    child: int = 0
    number: int = -1
    text: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """A column: its Avro and Arrow type, and its regions.

    - ``optional``: there is a null among the branches of its union, or it is a branch itself.
    - ``valid``: the region that says where it is not null.
    - ``data``: its values, or offsets.
    - ``inner``: the fields of a struct, the branches of a union (``None`` for the null), the items of a list, the keys
      and values of a map.
    - ``first``, ``last``: the regions of its domain that a null of it fills.
    """

    avro: Type
    domain: int
    type: pa.DataType = field(default_factory=pa.null)
    valid: RegionPlan | None = None
    data: RegionPlan | None = None
    inner: list[Node | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    first: int = 0
    last: int = 0
    raw: bool = False
    """It is kept as its bytes, to become JSON."""


def is_null(type_: Type) -> bool:
    """Whether it has no other value than null."""
    return isinstance(type_, PrimitiveType) and type_.name == "null"


def option_of(type_: Type) -> tuple[int, Type] | None:
    """Of a union of null and another type: the number of the null, and the other."""
    if isinstance(type_, UnionType) and len(type_.branches) == 2:
        first, second = type_.branches
        if is_null(first) != is_null(second):
            return (0, second) if is_null(first) else (1, first)
    return None


def branch_names(union: UnionType) -> list[str]:
    """What the branches of a union are called: types without their namespace where that is enough."""
    full = [named(one) for one in union.branches]
    short = [one.rpartition(".")[2] for one in full]
    return [a if short.count(a) == 1 else b for a, b in zip(short, full, strict=True)]


class Layout:
    """The columns of a reader's schema. ``regions`` are in the order of their domains."""

    def __init__(self, schema: Schema, spark: bool, recursive: str) -> None:
        if recursive not in ("refuse", "json"):
            raise KwireError(f'recursive is "refuse" or "json", not {recursive!r}')
        self.schema: Schema = schema
        self.spark: bool = spark
        self.recursive: str = recursive
        self.circles: frozenset[int] = circles(schema.type)
        self._domains: list[list[RegionPlan]] = [[]]
        self._columns = 0
        self.parents: list[int] = [0]
        """For each domain the one around it."""
        self.root: Node = self._node(schema.type, 0, "$", 0, always=True)
        self.regions: list[RegionPlan] = [one for domain in self._domains for one in domain]
        for number, one in enumerate(self.regions):
            one.number = number
        firsts, number = [], 0
        for domain in self._domains:
            firsts.append(number)
            number += len(domain)
        _move(self.root, firsts)

    @property
    def type(self) -> pa.DataType:
        """Of all of it."""
        return self.root.type

    @property
    def domains(self) -> int:
        """How many."""
        return len(self._domains)

    def _region(self, width: int, domain: int, child: int = 0) -> RegionPlan:
        made = RegionPlan(width, domain, child)
        self._domains[domain].append(made)
        return made

    def _domain(self, parent: int) -> int:
        self._domains.append([])
        self.parents.append(parent)
        return len(self._domains) - 1

    def _node(self, type_: Type, domain: int, path: str, depth: int, *, always: bool = False) -> Node:
        """``always``: it may be null, whatever its type."""
        self._columns += 1
        if self._columns > MOST_COLUMNS:
            raise KwireError(f"an Avro schema has more than {MOST_COLUMNS:,} columns")
        if depth > MOST_NESTING:
            raise KwireError(f"{path}: more than {MOST_NESTING} types inside each other")
        node = Node(type_, domain)
        node.first = len(self._domains[domain])
        option = option_of(type_)
        single = isinstance(type_, UnionType) and len(type_.branches) == 1
        inside = option[1] if option else type_.branches[0] if single else type_  # type: ignore[union-attr]
        if always or option or (isinstance(inside, UnionType) and any(map(is_null, inside.branches))):
            node.valid = self._region(1, domain)
        self._fill(node, inside, domain, path, depth)
        node.last = len(self._domains[domain])
        return node

    def _fill(self, node: Node, type_: Type, domain: int, path: str, depth: int) -> None:
        if isinstance(type_, RecordType | ArrayType | MapType | UnionType) and id(type_) in self.circles:
            if self.recursive == "refuse":
                name = named(type_)
                raise KwireError(
                    f'{path}: the type {name!r} has itself inside, which no column has: recursive="json" makes it JSON'
                )
            node.raw, node.type = True, pa.string()
            node.data = self._region(OFFSETS_OF_TEXTS, domain)
        elif isinstance(type_, RecordType):
            for one in type_.fields:
                node.inner.append(self._node(one.type, domain, f"{path}.{one.name}", depth + 1))
                node.names.append(one.name)
            node.type = _struct(node)
        elif isinstance(type_, UnionType):
            node.names = branch_names(type_)
            for name, branch in zip(node.names, type_.branches, strict=True):
                made = None if is_null(branch) else self._node(branch, domain, f"{path}.{name}", depth + 1, always=True)
                node.inner.append(made)
            node.type = _struct(node)
        elif isinstance(type_, ArrayType):
            child = self._domain(domain)
            node.data = self._region(OFFSETS_OF_LISTS, domain, child)
            item = self._node(type_.items, child, f"{path}[]", depth + 1)
            node.inner.append(item)
            node.type = pa.list_(pa.field("element", item.type))
        elif isinstance(type_, MapType):
            child = self._domain(domain)
            node.data = self._region(OFFSETS_OF_LISTS, domain, child)
            key = self._node(PrimitiveType("string"), child, f"{path}{{}}", depth + 1)
            value = self._node(type_.values, child, f"{path}{{}}", depth + 1)
            node.inner += [key, value]
            node.type = pa.map_(pa.string(), pa.field("value", value.type))
        else:
            node.type, width = _leaf(type_, self.spark)
            if width is not None:
                node.data = self._region(width, domain)
                node.data.text = isinstance(type_, PrimitiveType) and type_.name == "string"


def _struct(node: Node) -> pa.DataType:
    fields = [pa.field(name, one.type) for name, one in zip(node.names, node.inner, strict=True) if one is not None]
    return pa.struct(fields)


def _move(node: Node, firsts: list[int]) -> None:
    """From numbers within a domain to numbers among all."""
    stack = [node]
    while stack:
        one = stack.pop()
        one.first += firsts[one.domain]
        one.last += firsts[one.domain]
        stack.extend(each for each in one.inner if each is not None)


def _leaf(type_: Type, spark: bool) -> tuple[pa.DataType, int | None]:
    """The Arrow type of what has nothing inside, and the width of its region."""
    if isinstance(type_, EnumType):
        return pa.string() if spark else pa.dictionary(pa.int32(), pa.string()), 4
    assert isinstance(type_, PrimitiveType | FixedType)
    logical = type_.logical
    width: int | None
    if isinstance(type_, FixedType):
        # Arrow has no fixed size of 0.
        width = type_.size or OFFSETS_OF_TEXTS
        made = pa.binary() if spark or not type_.size else pa.binary(width)
    else:
        width = _WIDTHS.get(type_.name, None if type_.name == "null" else OFFSETS_OF_TEXTS)
        made = _TYPES[type_.name]
    if logical is None:
        return made, width
    if logical.name == "decimal":
        return _decimal(logical, spark), 16 if logical.precision <= DIGITS_128 else 32
    made = _LOGICAL[logical.name]
    return _FOR_SPARK.get(logical.name, made) if spark else made, width


def _decimal(logical: Logical, spark: bool) -> pa.DataType:
    if logical.precision <= DIGITS_128:
        return pa.decimal128(logical.precision, logical.scale)
    return pa.string() if spark else pa.decimal256(logical.precision, logical.scale)


def circles(root: Type) -> frozenset[int]:
    """The ids of types that have themselves inside: where a way down meets a type again that it is in."""
    found: set[int] = set()
    done: set[int] = set()
    around: list[int] = []
    # A way down and back, without recursion: (type, None) opens it, (None, id) closes it.
    stack: list[tuple[Type | None, int]] = [(root, 0)]
    while stack:
        one, number = stack.pop()
        if one is None:
            around.pop()
            done.add(number)
            continue
        if id(one) in around:
            found.update(number for number in around[around.index(id(one)) :])
            continue
        if id(one) in done:
            continue
        around.append(id(one))
        stack.append((None, id(one)))
        stack.extend((each, 0) for each in inside(one))
    return frozenset(found)


def inside(type_: Type) -> list[Type]:
    """The types right inside of one."""
    if isinstance(type_, RecordType):
        return [one.type for one in type_.fields]
    if isinstance(type_, ArrayType):
        return [type_.items]
    if isinstance(type_, MapType):
        return [type_.values]
    return list(type_.branches) if isinstance(type_, UnionType) else []


@functools.lru_cache(64)
def layout_of(schema: Schema, spark: bool, recursive: str) -> Layout:
    """The layout of a schema, made once."""
    return Layout(schema, spark, recursive)
