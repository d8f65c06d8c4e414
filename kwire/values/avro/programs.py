"""Programs that read the values of one schema into the columns of another, by Avro's rules of resolution.

Where two types do not fit, the program has an instruction that refuses the value. So rows whose branch of a union fits
are read, as the specification has it, and the error names the place.

What the specification leaves open:

- A type of a union of the reader is chosen first by being the same, then by being one that the writer's can become.
- A decimal is read where it has the scale of the reader's. What has more digits than the reader's is refused.
- A time or timestamp is converted to a smaller unit, and not read as a larger one.

Rules kept here:

- A default is checked against its type when the program is made.
- Instructions are counted: types that are used many times cannot make many of them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from kwire.errors import KwireError
from kwire.kernels import avro as kernel
from kwire.kernels.avro import INSTRUCTION, OFFSETS_OF_TEXTS, Op, Trouble
from kwire.kernels.numbers import SLACK
from kwire.stored import is_text
from kwire.values.avro.canonical import canonical
from kwire.values.avro.layout import Layout, Node, RegionPlan, circles, is_null, layout_of, option_of
from kwire.values.avro.schema import Schema
from kwire.values.avro.types import (
    ArrayType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    Type,
    UnionType,
    named,
)

__all__ = ["Programs", "Refusal", "programs_of"]

Array = Any

MOST_INSTRUCTIONS: Final = 40_000
"""Of all programs of a column together, for each writer."""
MOST_NESTING: Final = 100

_INT: Final = (-(1 << 31), (1 << 31) - 1)
_LONG: Final = (-(1 << 63), (1 << 63) - 1)
_UNITS: Final = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}
_DAY: Final = 86400
_SIZES: Final = {"boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1, "null": 0}
_UNIT_OF: Final = {
    Op.LONG: 8,
    Op.INT: 4,
    Op.SCALED: 8,
    Op.REAL32: 4,
    Op.REAL64: 8,
    Op.ENUM: 4,
    Op.TEXT: 4,
    Op.BYTES: 4,
    Op.DECIMAL: 8,
    Op.LIST: 4,
    Op.WORD4: 4,
    Op.WORD8: 8,
    Op.WIDEN: 8,
    Op.FIXED_DECIMAL: 8,
    Op.SET_BYTES: 4,
    Op.END_LIST: 4,
    Op.KEEP: 4,
}
"""Bytes in which an instruction counts where its region begins. 1 for others."""

_TEXTS: Final = {
    Trouble.SHORT: "the value ends within it",
    Trouble.LONG: "its length is negative, or more than the bytes left",
    Trouble.COUNT: "its count is more than the bytes left can hold",
    Trouble.VARINT: "a varint has more than 10 bytes",
    Trouble.RANGE: "the number is outside of its type",
    Trouble.UTF8: "it is not UTF-8",
    Trouble.BRANCH: "the union has no such branch",
    Trouble.DIGITS: "the decimal has no bytes, or more digits than its type",
    Trouble.BOOL: "a boolean is neither 0 nor 1",
    Trouble.TRAILING: "bytes are left after the end of the value",
    Trouble.SYMBOL: "the reader's enum has no such symbol, and no default",
    Trouble.DEPTH: f"more than {kernel.MAX_CALLS:,} recursive values inside each other",
}


@dataclass(frozen=True, slots=True)
class _At:
    """An instruction for errors."""

    path: str
    said: str = ""
    """What a refusal says."""


class Refusal(NamedTuple):
    """A place at which values, or some of them, cannot be read. ``known``: by Avro's rules, and not by what programs
    can do."""

    path: str
    said: str
    known: bool


class _Assembler:
    """One table of instructions for the programs of some writers."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.rows: list[dict[str, int]] = []
        self.regions: list[RegionPlan | None] = []
        self.places: list[_At] = []
        self.table: list[int] = []
        self.pool = bytearray()
        self.path = ["$"]
        self.loops = 0
        self.most_loops = 1
        self.calls: dict[int, int] = {}
        """Where the program begins that skips a recursive type."""
        self.wanted_calls: list[tuple[int, Type, list[str]]] = []
        self.circles: frozenset[int] = frozenset()
        self.begun = 0
        self.refused: list[Refusal] = []

    def program(self, writer: Schema) -> int:
        """Adds the program of a writer. Returns its first instruction."""
        first = self.begun = len(self.rows)
        self.circles = circles(writer.type)
        root = self.layout.root
        if root.valid is not None:
            self.add(Op.PRESENT, root.valid)
        self.value(writer.type, root)
        self.add(Op.STOP)
        # What is called stands after the program, and may call more.
        while self.wanted_calls:
            call, type_, path = self.wanted_calls.pop()
            if id(type_) not in self.calls:
                self.calls[id(type_)] = len(self.rows)
                # Errors name the first place of the type.
                self.path = path
                self.skip(type_, called=True)
                self.add(Op.RETURN)
            self.rows[call]["target"] = self.calls[id(type_)]
        self.calls.clear()
        self.path = ["$"]
        self.rows[first]["slot"] = int(self.in_lanes(first))
        return first

    def in_lanes(self, first: int) -> bool:
        """Whether the program from ``first`` on has only what lanes can do: no list in a list, one place for each list,
        no text that becomes bytes, of which nobody would see whether it is UTF-8."""
        lists: set[int] = set()
        for row, region in zip(self.rows[first:], self.regions[first:], strict=True):
            op = row["op"]
            if op in (Op.CALL, Op.MARK, Op.MAKE_ROOM):
                return False
            if op == Op.TEXT and region is not None and not region.text:
                return False
            if op in (Op.LIST, Op.END_LIST):
                if (region is not None and region.number in lists) or row.get("slot", 0):
                    return False
                if region is not None:
                    lists.add(region.number)
        return self.rows[first]["op"] == Op.PRESENT

    # --- instructions ---

    def add(self, op: Op, region: RegionPlan | None = None, said: str = "", **fields: int) -> int:
        if len(self.rows) - self.begun >= MOST_INSTRUCTIONS:
            raise KwireError(f"an Avro schema becomes more than {MOST_INSTRUCTIONS:,} instructions")
        row = {"op": int(op), "child": -1} | fields
        if region is not None:
            row |= {"region": region.number, "domain": region.domain}
            if region.width == kernel.OFFSETS_OF_LISTS:
                row["child"] = region.child
        self.rows.append(row)
        self.regions.append(region)
        self.places.append(_At("".join(self.path), said))
        return len(self.rows) - 1

    def here(self, *jumps: int) -> None:
        """These instructions lead to the next one."""
        for one in jumps:
            self.rows[one]["target"] = len(self.rows)

    def refuse(self, said: str, *, known: bool = True) -> None:
        self.add(Op.REFUSE, said=said, more=int(Trouble.UNRESOLVED))
        self.refused.append(Refusal("".join(self.path), said, known))

    def null(self, node: Node) -> None:
        """Nulls for all regions of a node."""
        if node.last > node.first:
            self.add(Op.FILL, domain=node.domain, first=node.first, last=node.last)

    def words(self, values: list[int]) -> int:
        """Where these stand in the table."""
        self.table += values
        return len(self.table) - len(values)

    def pooled(self, data: bytes) -> int:
        """Where these stand in the pool."""
        self.pool += data
        return len(self.pool) - len(data)

    @contextmanager
    def within(self, path: str) -> Iterator[None]:
        if len(self.path) > MOST_NESTING:
            raise KwireError(f"{''.join(self.path)}: more than {MOST_NESTING} types inside each other")
        self.path.append(path)
        yield
        self.path.pop()

    @contextmanager
    def loop(self, least: int, region: RegionPlan | None = None) -> Iterator[None]:
        """Around what reads an item."""
        begin = self.add(Op.LIST, region, low=least, slot=self.loops)
        self.loops += 1
        self.most_loops = max(self.most_loops, self.loops)
        yield
        self.loops -= 1
        child = {} if region is None else {"child": region.child}
        self.rows[self.add(Op.NEXT, slot=self.loops, target=begin)] |= child
        self.here(begin)

    # --- values ---

    def value(self, writer: Type, node: Node) -> None:
        """Reads a value of any type into a node, of which something says already that there is one, if it is the
        root."""
        if not isinstance(writer, UnionType):
            self.single(writer, node)
            return
        option, optional = option_of(writer), option_of(node.avro)
        if option and optional and node.valid is not None:
            test = self.add(Op.OPTION, node.valid, low=option[0], first=node.first, last=node.last)
            self.concrete(option[1], optional[1], node)
            self.here(test)
            return
        self.branches(writer, lambda one: self.single(one, node))

    def branches(self, writer: UnionType, each: Callable[[Type], None]) -> None:
        """Reads the number of a branch, and then does ``each`` of it."""
        union = self.add(Op.UNION, width=len(writer.branches))
        jumps = [self.add(Op.JUMP) for _ in writer.branches]
        ends = []
        for jump, branch in zip(jumps, writer.branches, strict=True):
            self.here(jump)
            with self.within(f"<{named(branch)}>"):
                each(branch)
            ends.append(self.add(Op.JUMP))
        self.here(union, *ends)

    def single(self, writer: Type, node: Node) -> None:
        """Reads a value that is of no union into a node."""
        reader = node.avro
        if not isinstance(reader, UnionType):
            self.concrete(writer, reader, node)
            return
        number = _branch(writer, reader)
        if number is None:
            self.refuse(f"no branch of the reader's union can be {_article(writer)}")
            return
        branch = reader.branches[number]
        if is_null(branch):
            self.null(node)
        else:
            self.chosen(node, reader, number, lambda inner: self.concrete(writer, branch, inner))

    def chosen(self, node: Node, union: UnionType, number: int, put: Callable[[Node], None]) -> None:
        """Puts the value of a branch, which is not null, into a node."""
        if node.valid is not None:
            self.add(Op.PRESENT, node.valid)
        if option_of(union) or len(union.branches) == 1:
            put(node)
            return
        for other, one in enumerate(node.inner):
            if one is not None and other != number:
                self.null(one)
        inner = node.inner[number]
        assert inner is not None
        assert inner.valid is not None
        self.add(Op.PRESENT, inner.valid)
        put(inner)

    def concrete(self, writer: Type, reader: Type, node: Node) -> None:
        """Reads a value of a type into a node of a type, where neither is a union."""
        if node.raw:
            self.raw(writer, reader, node)
        elif not _fits(writer, reader):
            self.refuse(f"{_article(writer)} cannot be read as {_article(reader)}")
        elif isinstance(writer, RecordType) and isinstance(reader, RecordType):
            self.record(writer, reader, node)
        elif isinstance(writer, ArrayType) and node.data is not None and node.inner[0] is not None:
            with self.loop(_least(writer.items), node.data), self.within("[]"):
                self.value(writer.items, node.inner[0])
        elif isinstance(writer, MapType) and node.data is not None:
            key, value = node.inner
            assert key is not None
            assert value is not None
            with self.loop(1 + _least(writer.values), node.data), self.within("{}"):
                self.add(Op.TEXT, key.data)
                self.value(writer.values, value)
        elif isinstance(writer, EnumType) and isinstance(reader, EnumType):
            self.enum(writer, reader, node)
        elif isinstance(writer, FixedType) and isinstance(reader, FixedType):
            self.fixed(writer, reader, node)
        elif isinstance(writer, PrimitiveType) and isinstance(reader, PrimitiveType):
            self.primitive(writer, reader, node)

    def raw(self, writer: Type, reader: Type, node: Node) -> None:
        """Keeps the bytes of a value, where a type has itself inside: only if it is the same for both."""
        if writer is not reader and not _same(writer, reader):
            self.refuse(f"{_article(writer)} has itself inside, and the reader's is another", known=False)
            return
        self.add(Op.MARK)
        self.skip(writer)
        self.add(Op.KEEP, node.data)

    def record(self, writer: RecordType, reader: RecordType, node: Node) -> None:
        found = _paired(writer, reader)
        for number, one in enumerate(reader.fields):
            if number not in found.values() and not one.has_default:
                with self.within(f".{one.name}"):
                    self.refuse("the writer does not have the field, and it has no default")
                return
        for at, one in enumerate(writer.fields):
            with self.within(f".{one.name}"):
                inner = node.inner[found[at]] if at in found else None
                if inner is None:
                    self.skip(one.type)
                else:
                    self.value(one.type, inner)
        for number, one in enumerate(reader.fields):
            inner = node.inner[number]
            if number not in found.values() and inner is not None:
                with self.within(f".{one.name}"):
                    self.default(one.default, one.type, inner)

    def enum(self, writer: EnumType, reader: EnumType, node: Node) -> None:
        numbers = {name: number for number, name in enumerate(reader.symbols)}
        other = numbers.get(reader.default, -1) if reader.default is not None else -1
        at = self.words([numbers.get(one, other) for one in writer.symbols])
        if missing := [one for one in writer.symbols if numbers.get(one, other) < 0]:
            said = (
                f"the reader's enum has no symbol {', '.join(missing[:3])}{', …' * (len(missing) > 3)}, and no default"
            )
            self.refused.append(Refusal("".join(self.path), said, True))
        self.add(Op.ENUM, node.data, low=0, high=len(writer.symbols) - 1, more=at)

    def fixed(self, writer: FixedType, reader: FixedType, node: Node) -> None:
        if reader.logical is not None and reader.logical.name == "decimal":
            if (wrong := _other_scale(writer, reader)) is not None:
                self.refuse(wrong)
                return
            words, at = self.digits(reader)
            self.add(Op.FIXED_DECIMAL, node.data, width=writer.size, low=words, more=at)
        elif writer.size == 0:
            self.add(Op.SET_BYTES, node.data, width=0)
        else:
            self.add(Op.FIXED, node.data, width=writer.size)

    def digits(self, reader: PrimitiveType | FixedType) -> tuple[int, int]:
        """Words of a decimal, and where the number stands that it must be below."""
        assert reader.logical is not None
        words = 2 if reader.logical.precision <= 38 else 4
        limit = (10**reader.logical.precision).to_bytes(8 * words, "little")
        return words, self.words(list(struct.unpack(f"<{words}q", limit)))

    def primitive(self, writer: PrimitiveType, reader: PrimitiveType, node: Node) -> None:
        if writer.name in ("int", "long"):
            self.integer(writer, reader, node)
        elif writer.name == "boolean":
            self.add(Op.BOOL, node.data, width=1)
        elif writer.name == "float":
            self.add(Op.WORD4 if reader.name == "float" else Op.WIDEN, node.data, width=4)
        elif writer.name == "double":
            self.add(Op.WORD8, node.data, width=8)
        elif writer.name in ("bytes", "string"):
            if reader.logical is not None and reader.logical.name == "decimal":
                if (wrong := _other_scale(writer, reader)) is not None:
                    self.refuse(wrong)
                    return
                words, at = self.digits(reader)
                self.add(Op.DECIMAL, node.data, width=words, more=at)
            else:
                self.add(Op.TEXT if "string" in (writer.name, reader.name) else Op.BYTES, node.data)

    def integer(self, writer: PrimitiveType, reader: PrimitiveType, node: Node) -> None:
        low, high = _INT if writer.name == "int" else _LONG
        if reader.name in ("float", "double"):
            self.add(Op.REAL32 if reader.name == "float" else Op.REAL64, node.data, low=low, high=high)
            return
        factor = 1
        if writer.logical is not None and reader.logical is not None:
            found = _factor(writer.logical.name, reader.logical.name)
            if found is None:
                self.refuse(f"{writer.logical.name} cannot be read as {reader.logical.name}")
                return
            factor = found
        kind = reader.logical.name if reader.logical is not None else ""
        if kind.startswith("time-"):
            low, high = max(low, 0), min(high, _DAY * _UNITS[kind.rpartition("-")[2]] // factor - 1)
        if self.layout.spark and kind.endswith("timestamp-millis"):
            factor *= 1000
        low, high = max(low, -(_LONG[1] // factor)) if factor > 1 else low, min(high, _LONG[1] // factor)
        if reader.name == "int":
            self.add(Op.INT, node.data, low=low, high=high)
        elif (low, high, factor) == (*_LONG, 1):
            self.add(Op.LONG, node.data)
        else:
            self.add(Op.SCALED, node.data, low=low, high=high, more=factor)

    # --- what is not wanted ---

    def skip(self, type_: Type, *, called: bool = False) -> None:
        """Reads a value that has no column. ``called``: this is the program of a type that has itself inside."""
        if id(type_) in self.circles and not called:
            self.wanted_calls.append((self.add(Op.CALL), type_, list(self.path)))
        elif isinstance(type_, RecordType):
            for one in type_.fields:
                with self.within(f".{one.name}"):
                    self.skip(one.type)
        elif isinstance(type_, UnionType):
            self.branches(type_, self.skip)
        elif isinstance(type_, ArrayType):
            with self.loop(_least(type_.items)), self.within("[]"):
                self.skip(type_.items)
        elif isinstance(type_, MapType):
            with self.loop(1 + _least(type_.values)), self.within("{}"):
                self.add(Op.SKIP_BYTES)
                self.skip(type_.values)
        elif isinstance(type_, EnumType):
            self.add(Op.SKIP_LONG, low=0, high=len(type_.symbols) - 1)
        elif isinstance(type_, FixedType):
            self.add(Op.SKIP, width=type_.size)
        elif type_.name in ("int", "long"):
            low, high = _INT if type_.name == "int" else _LONG
            self.add(Op.SKIP_LONG, low=low, high=high)
        elif type_.name in ("bytes", "string"):
            self.add(Op.SKIP_BYTES)
        elif type_.name != "null":
            self.add(Op.SKIP, width=_SIZES[type_.name])

    # --- defaults ---

    def default(self, said: Any, type_: Type, node: Node) -> None:
        """Puts a default, which is JSON, into a node."""
        if not isinstance(type_, UnionType):
            self.constant(said, type_, node)
            return
        for number, branch in enumerate(type_.branches):
            if _is_default(said, branch):
                if is_null(branch):
                    self.null(node)
                else:
                    self.chosen(node, type_, number, functools.partial(self.constant, said, branch))
                return
        raise self.wrong(type_)

    def wrong(self, type_: Type) -> KwireError:
        return KwireError(f"{''.join(self.path)}: the default is not {_article(type_)}")

    def constant(self, said: Any, type_: Type, node: Node) -> None:
        if not _is_default(said, type_):
            raise self.wrong(type_)
        if node.raw:
            raise KwireError(f"{''.join(self.path)}: a type that has itself inside can have no default")
        if isinstance(type_, RecordType):
            for one, inner in zip(type_.fields, node.inner, strict=True):
                with self.within(f".{one.name}"):
                    if one.name not in said and not one.has_default:
                        raise KwireError(f"{''.join(self.path)}: the default of its record does not have it")
                    if inner is not None:
                        self.default(said.get(one.name, one.default), one.type, inner)
        elif isinstance(type_, ArrayType | MapType):
            self.constant_list(said, type_, node)
        elif isinstance(type_, EnumType):
            self.set(node, struct.pack("<i", type_.symbols.index(said)))
        elif not is_null(type_):
            assert isinstance(type_, PrimitiveType | FixedType)
            self.set(node, self.packed(said, type_))

    def constant_list(self, said: Any, type_: ArrayType | MapType, node: Node) -> None:
        assert node.data is not None
        child = node.data.child
        if said:
            self.add(Op.MAKE_ROOM, width=len(said), child=child)
        for one in said:
            with self.within("[]" if isinstance(type_, ArrayType) else "{}"):
                item = node.inner[-1]
                assert item is not None
                if isinstance(type_, MapType):
                    key = node.inner[0]
                    assert key is not None
                    if not is_text(one):
                        raise self.wrong(type_)
                    self.set(key, one.encode())
                    self.default(said[one], type_.values, item)
                else:
                    self.default(one, type_.items, item)
                self.add(Op.ITEM, child=child)
        self.add(Op.END_LIST, node.data)

    def set(self, node: Node, data: bytes) -> None:
        assert node.data is not None
        op = Op.SET_BYTES if node.data.width == OFFSETS_OF_TEXTS else Op.SET
        self.add(op, node.data, width=len(data), more=self.pooled(data))

    def packed(self, said: Any, type_: PrimitiveType | FixedType) -> bytes:
        """A default as its region has it."""
        if type_.logical is not None and type_.logical.name == "decimal":
            width = 16 if type_.logical.precision <= 38 else 32
            number = int.from_bytes(said.encode("latin-1"), "big", signed=True)
            if not said or abs(number) >= 10**type_.logical.precision:
                raise self.wrong(type_)
            return number.to_bytes(width, "little", signed=True)
        if isinstance(type_, FixedType) or type_.name == "bytes":
            return bytes(said, "latin-1")
        if type_.name == "string":
            return bytes(said, "utf-8")
        if type_.name in ("int", "long"):
            kind = type_.logical.name if type_.logical is not None else ""
            factor = 1000 if self.layout.spark and kind.endswith("timestamp-millis") else 1
            if not _LONG[0] <= said * factor <= _LONG[1]:
                raise self.wrong(type_)
            return struct.pack("<i" if type_.name == "int" else "<q", said * factor)
        code = {"boolean": "<?", "float": "<f", "double": "<d"}[type_.name]
        try:
            return struct.pack(code, said)
        except (OverflowError, struct.error):
            raise self.wrong(type_) from None


# --- which types fit --------------------------------------------------------------------------------------------------

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def _same_name(writer: RecordType | EnumType | FixedType, reader: RecordType | EnumType | FixedType) -> bool:
    """Whether two types have the same name, without namespaces, or the reader's has the writer's as an alias."""
    if writer.name.rpartition(".")[2] == reader.name.rpartition(".")[2]:
        return True
    return writer.name in reader.aliases


def _alike(writer: Type, reader: Type) -> bool:
    """Whether two types, of which neither is a union, are of the same kind and name."""
    if isinstance(writer, PrimitiveType):
        return isinstance(reader, PrimitiveType) and writer.name == reader.name
    if isinstance(writer, FixedType) and isinstance(reader, FixedType):
        return _same_name(writer, reader) and writer.size == reader.size
    if isinstance(writer, RecordType | EnumType):
        return type(writer) is type(reader) and _same_name(writer, reader)
    return type(writer) is type(reader)


def _fits(writer: Type, reader: Type) -> bool:
    """Whether a value of a type can be read as another, looking at no items or fields. Neither is a union."""
    if isinstance(writer, PrimitiveType) and isinstance(reader, PrimitiveType):
        return writer.name == reader.name or reader.name in _PROMOTED.get(writer.name, ())
    return _alike(writer, reader)


def _branch(writer: Type, union: UnionType) -> int | None:
    """The branch of the reader's union that a value becomes: of the same type, or else the first that it can be."""
    for fits in (_alike, _fits):
        for number, one in enumerate(union.branches):
            if fits(writer, one) and _items_fit(writer, one, 0):
                return number
    return None


def _items_fit(writer: Type, reader: Type, depth: int) -> bool:
    """Whether the items of arrays and maps fit. Those of the same name are taken to."""
    pair: tuple[Type, Type] | None = None
    if isinstance(writer, ArrayType) and isinstance(reader, ArrayType):
        pair = writer.items, reader.items
    elif isinstance(writer, MapType) and isinstance(reader, MapType):
        pair = writer.values, reader.values
    if pair is None or depth > MOST_NESTING:
        return True
    writers = pair[0].branches if isinstance(pair[0], UnionType) else (pair[0],)
    readers = pair[1].branches if isinstance(pair[1], UnionType) else (pair[1],)
    return any(_fits(one, other) and _items_fit(one, other, depth + 1) for one in writers for other in readers)


def _paired(writer: RecordType, reader: RecordType) -> dict[int, int]:
    """For the number of a field of the writer the number of the reader's: by name, else by alias."""
    names = {one.name: number for number, one in enumerate(writer.fields)}
    found = {names[one.name]: number for number, one in enumerate(reader.fields) if one.name in names}
    done = set(found.values())
    for number, one in enumerate(reader.fields):
        if number not in done:
            for alias in one.aliases:
                if alias in names and names[alias] not in found:
                    found[names[alias]] = number
                    break
    return found


def _factor(writer: str, reader: str) -> int | None:
    """What the numbers of a logical type are multiplied with to be of another. ``None`` if they cannot be."""
    if writer == reader:
        return 1
    kind, _, unit = writer.rpartition("-")
    other, _, smaller = reader.rpartition("-")
    if kind != other or unit not in _UNITS or smaller not in _UNITS or _UNITS[unit] > _UNITS[smaller]:
        return None
    return _UNITS[smaller] // _UNITS[unit]


def _other_scale(writer: PrimitiveType | FixedType, reader: PrimitiveType | FixedType) -> str | None:
    """What is wrong with the decimal of a writer for that of a reader."""
    if writer.logical is not None and reader.logical is not None and writer.logical.scale != reader.logical.scale:
        return f"a decimal of scale {writer.logical.scale} cannot be read as one of scale {reader.logical.scale}"
    return None


def _same(writer: Type, reader: Type) -> bool:
    return canonical(writer) == canonical(reader)


def _least(type_: Type) -> int:
    """The least bytes of a value."""
    return _Least().of(type_)


class _Least:
    """Remembers what it has counted: the same types may be used many times."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}

    def of(self, type_: Type) -> int:
        if isinstance(type_, RecordType):
            if id(type_) not in self.known:
                # A record right inside of itself has no value at all: 0 is as good as any.
                self.known[id(type_)] = 0
                self.known[id(type_)] = min(sum(self.of(one.type) for one in type_.fields), 1 << 30)
            return self.known[id(type_)]
        if isinstance(type_, FixedType):
            return type_.size
        return _SIZES[type_.name] if isinstance(type_, PrimitiveType) else 1


def _is_default(said: Any, type_: Type) -> bool:
    """Whether JSON is a value of a type. Of a record, array or map it looks at nothing inside."""
    if isinstance(type_, RecordType | MapType):
        return isinstance(said, dict)
    if isinstance(type_, ArrayType):
        return isinstance(said, list)
    if isinstance(type_, EnumType):
        return said in type_.symbols
    if isinstance(type_, FixedType):
        return isinstance(said, str) and len(said) == type_.size and all(ord(one) < 256 for one in said)
    if isinstance(type_, UnionType):
        return any(_is_default(said, one) for one in type_.branches)
    if type_.name in ("float", "double"):
        return isinstance(said, int | float) and not isinstance(said, bool)
    if type_.name in ("int", "long"):
        low, high = _INT if type_.name == "int" else _LONG
        return isinstance(said, int) and not isinstance(said, bool) and low <= said <= high
    if type_.name == "bytes":
        return isinstance(said, str) and all(ord(one) < 256 for one in said)
    if type_.name == "string":
        return isinstance(said, str) and is_text(said)
    return said is None if type_.name == "null" else isinstance(said, bool)


def _article(type_: Type) -> str:
    name = named(type_)
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}" if isinstance(type_, PrimitiveType) else f"the type {name}"


# --- all programs of a column -----------------------------------------------------------------------------------------


class Programs:
    """The programs of some writers' schemas for a reader's: ``starts`` has the first instruction of each.

    ``too_large`` is a program that refuses a row for which there is no memory.
    """

    def __init__(self, writers: tuple[Schema, ...], layout: Layout) -> None:
        made = _Assembler(layout)
        self.layout: Layout = layout
        self.too_large: int = made.add(Op.REFUSE, more=int(Trouble.LARGE))
        self.starts: Array = np.array([made.program(one) for one in writers], np.int64)
        self.code: Array = np.zeros(len(made.rows), INSTRUCTION)
        for name in INSTRUCTION.names:
            self.code[name] = [row.get(name, 0) for row in made.rows]
        self.slots: int = made.most_loops
        self.refused: tuple[Refusal, ...] = tuple(made.refused)
        """Where values of the writers have no place in the reader's schema."""
        calls = self.code["op"] == Op.CALL
        self.code["width"][calls] = self.slots
        self.calls: bool = bool(calls.any())
        self.table: Array = np.array([*made.table, 0], np.int64)
        self.pool: Array = np.frombuffer(bytes(made.pool) + bytes(SLACK), np.uint8).copy()
        self._places = made.places
        has = np.array([one is not None for one in made.regions])
        self._rows: Array = np.flatnonzero(has)
        self._regions: Array = np.array([one.number for one in made.regions if one is not None], np.int64)
        self._units: Array = np.array([_UNIT_OF.get(Op(row["op"]), 1) for row in made.rows], np.int64)[has]

    def placed(self, at: Array) -> Array:
        """The instructions for regions that begin at these bytes of the memory."""
        code = self.code.copy()
        code["at"][self._rows] = at[self._regions] // self._units
        return code

    def said(self, instruction: int, trouble: int) -> tuple[str, str]:
        """The path and the sentence of an error."""
        place = self._places[instruction]
        return place.path, place.said or _TEXTS[Trouble(trouble)]


@functools.lru_cache(32)
def programs_of(writers: tuple[Schema, ...], reader: Schema, spark: bool, recursive: str) -> Programs:
    """The programs of some writers for a reader, made once."""
    return Programs(writers, layout_of(reader, spark, recursive))
