"""How a kernel gets its arguments from the kernel that calls it: tables by their place, arrays by what is not known.

Strategy: numba passes each member of each argument by itself. A kernel that gets the tables of a capture has 170
arguments then, and a call of it as many stores. All of that is text first, and each pass of LLVM looks at it. But of an
array only its bytes and its shape differ from call to call. And no kernel makes tables or changes which there are: the
one that Python calls has them all. So:

- What is a named tuple stands in memory once, 8 bytes for each member, and its place is passed on.
- Of an array are passed where its bytes are, and its shape. What else numba keeps of an array is known, or not used.

A member is loaded where a kernel begins, if the kernel uses it. Nobody writes to this memory after that, which LLVM is
told (``invariant.load``). So it knows that what is loaded twice is the same.

Rules kept here:

- The memory is filled by what Python calls. numba has LLVM never inline a kernel into that, or LLVM would take these
  stores for useless. For the same reason, a kernel that makes a named tuple for another one does not compile.

Only ``kwire.kernels.fence`` imports this module, where all that it uses of numba is as it was. It is imported where a
kernel is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from llvmlite import ir as _llvm  # type: ignore[import-untyped]
from numba.core import cgutils as _cgutils
from numba.core import datamodel as _datamodel
from numba.core import types as _types

__all__ = ["Builder", "Late", "keep_apart", "packer"]

# numba's own annotations do not have all of what is used here.
cgutils: Any = _cgutils
datamodel: Any = _datamodel
llvm: Any = _llvm
types: Any = _types

_WORD: Final = llvm.IntType(64)
_SIZE: Final = 8
"""Bytes of a member in memory."""


class Late:
    """A value with members, each of which is made when it is used. ``place``: where it stands in memory."""

    def __init__(self, type_: Any, makers: list[Callable[[], Any]], place: Callable[[], Any] | None = None) -> None:
        self.type = type_
        self.place: Any = None if place is None else functools.cache(place)
        self._makers = [functools.cache(one) for one in makers]

    def member(self, index: int) -> Any:
        """A member, which may be ``Late`` too."""
        return self._makers[index]()

    def whole(self, builder: Any) -> Any:
        """All of it as a value of LLVM."""
        value = llvm.Constant(self.type, llvm.Undefined)
        for index, maker in enumerate(self._makers):
            one = maker()
            value = builder.insert_value(value, one.whole(builder) if isinstance(one, Late) else one, index)
        return value


class Builder:
    """Writes instructions with values that are ``Late``: what a builder of LLVM has as its first base."""

    def insert_value(self, agg: Any, value: Any, idx: Any, name: str = "") -> Any:
        own: Any = super()
        return own.insert_value(agg, self._whole(value), idx)

    def store(self, value: Any, ptr: Any, align: Any = None) -> Any:
        own: Any = super()
        return own.store(self._whole(value), ptr, align)

    def _whole(self, value: Any) -> Any:
        return value.whole(self) if isinstance(value, Late) else value


class _Way:
    """How values of a type go. ``types``: of the parts that are passed, or stand in memory."""

    def __init__(self, types_: list[Any]) -> None:
        self.types = types_

    def split(self, builder: Any, value: Any) -> list[Any]:
        """The parts of a value."""
        raise NotImplementedError

    def join(self, builder: Any, parts: list[Callable[[], Any]]) -> Any:
        """The value that has these parts. They are made where the kernel begins."""
        raise NotImplementedError

    def describe(self, args: list[Any]) -> None:
        """Says of arguments what LLVM should know."""


class _Plain(_Way):
    """What is passed as numba does it."""

    def __init__(self, context: Any, type_: Any) -> None:
        self._packer = datamodel.ArgPacker(context.data_model_manager, [type_])
        super().__init__(list(self._packer.argument_types))

    def split(self, builder: Any, value: Any) -> list[Any]:
        return list(self._packer.as_arguments(builder, [value]))

    def join(self, builder: Any, parts: list[Callable[[], Any]]) -> Any:
        with builder.goto_entry_block():
            return self._packer.from_arguments(builder, [part() for part in parts])[0]


class _OfArray(_Way):
    """An array with its elements side by side: where its bytes are, and its shape."""

    def __init__(self, context: Any, type_: Any) -> None:
        self._model = context.data_model_manager[type_]
        find = context.data_model_manager.lookup
        self._types = {one: find(self._model.get_member_fe_type(one)).get_value_type() for one in self._model._fields}
        self._item = llvm.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(type_.dtype)))
        self._data, self._shape = map(self._model.get_field_position, ("data", "shape"))
        self._count = type_.ndim
        super().__init__([self._types["data"]] + [_WORD] * type_.ndim)

    def split(self, builder: Any, value: Any) -> list[Any]:
        sizes = [builder.extract_value(value, [self._shape, k]) for k in range(self._count)]
        return [builder.extract_value(value, self._data), *sizes]

    def join(self, builder: Any, parts: list[Callable[[], Any]]) -> Any:
        data, sizes = parts[0], parts[1:]

        def product(of: list[Callable[[], Any]]) -> Any:
            with builder.goto_entry_block():
                return functools.reduce(builder.mul, [one() for one in of])

        def null(name: str) -> Any:
            return llvm.Constant(self._types[name], None)

        strides: list[Callable[[], Any]] = [
            functools.partial(product, [*sizes[k:], lambda: self._item]) for k in range(1, self._count + 1)
        ]
        makers: dict[str, Callable[[], Any]] = {
            "meminfo": lambda: null("meminfo"),
            "parent": lambda: null("parent"),
            "nitems": lambda: product(sizes),
            "itemsize": lambda: self._item,
            "data": data,
            "shape": lambda: Late(self._types["shape"], sizes),
            "strides": lambda: Late(self._types["strides"], strides),
        }
        return Late(self._model.get_value_type(), [makers[name] for name in self._model._fields])


class _InMemory(_Way):
    """A named tuple: its place. ``parts``: of all of its members."""

    def __init__(self, context: Any, type_: Any) -> None:
        self._type = context.get_value_type(type_)
        self._ways = [_way(context, one) for one in type_]
        self._parts = [one for way in self._ways for one in way.types]
        super().__init__([_WORD.as_pointer()])

    def parts_of(self, builder: Any, value: Any) -> list[Any]:
        found: list[Any] = []
        for index, way in enumerate(self._ways):
            one = builder.extract_value(value, index)
            found += way.parts_of(builder, one) if isinstance(way, _InMemory) else way.split(builder, one)
        return found

    def split(self, builder: Any, value: Any) -> list[Any]:
        if isinstance(value, Late):
            return [value.place()]
        if isinstance(builder, Builder):
            raise NotImplementedError("a kernel makes a named tuple for another kernel")
        place = cgutils.alloca_once(builder, _WORD, size=max(1, len(self._parts)))
        for number, one in enumerate(self.parts_of(builder, value)):
            builder.store(one, _at(builder, place, number, one.type))
        return [place]

    def join(self, builder: Any, parts: list[Callable[[], Any]]) -> Any:
        return self.there(builder, parts[0], 0)

    def describe(self, args: list[Any]) -> None:
        # A member may be loaded before it is known whether it is used.
        args[0].attributes.dereferenceable = _SIZE * len(self._parts)
        args[0].attributes.align = _SIZE

    def there(self, builder: Any, begin: Callable[[], Any], number: int) -> Any:
        """The tuple whose parts stand in memory from the place ``begin`` on, ``number`` before it."""
        makers: list[Callable[[], Any]] = []
        first = number

        def load(of: int, type_: Any) -> Any:
            with builder.goto_entry_block():
                loaded = builder.load(_at(builder, begin(), of, type_))
                loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
                return loaded

        def place() -> Any:
            with builder.goto_entry_block():
                return _at(builder, begin(), first, _WORD)

        for way in self._ways:
            if isinstance(way, _InMemory):
                makers.append(functools.partial(way.there, builder, begin, number))
                number += len(way._parts)
            else:
                loads = [functools.partial(load, number + k, one) for k, one in enumerate(way.types)]
                makers.append(functools.partial(way.join, builder, loads))
                number += len(loads)
        return Late(self._type, makers, place)


def _at(builder: Any, place: Any, number: int, type_: Any) -> Any:
    """The place of a member."""
    there = builder.gep(place, [llvm.Constant(_WORD, number)]) if number else place
    return builder.bitcast(there, type_.as_pointer())


_ways: Final[dict[tuple[Any, Any], Any]] = {}
"""By what knows the types, which is the same for all kernels: numba copies the context for each of them."""


def _way(context: Any, type_: Any) -> Any:
    key = context.data_model_manager, type_
    if (found := _ways.get(key)) is None:
        found = _ways[key] = _new_way(context, type_)
    return found


def _new_way(context: Any, type_: Any) -> Any:
    if type(type_) is types.Array and type_.layout == "C" and type_.ndim > 0:
        return _OfArray(context, type_)
    if isinstance(type_, types.BaseNamedTuple):
        return _InMemory(context, type_)
    return _Plain(context, type_)


class _Packer:
    """In place of ``ArgPacker``: how the arguments of a kernel go."""

    def __init__(self, context: Any, types_: tuple[Any, ...]) -> None:
        self._ways = [_way(context, one) for one in types_]
        self.argument_types = tuple(one for way in self._ways for one in way.types)

    def as_arguments(self, builder: Any, values: Any) -> tuple[Any, ...]:
        return tuple(one for way, value in zip(self._ways, values, strict=True) for one in way.split(builder, value))

    def from_arguments(self, builder: Any, args: Any) -> list[Any]:
        rest: Iterator[Any] = iter(args)
        found = [way.join(builder, [functools.partial(_itself, next(rest)) for _ in way.types]) for way in self._ways]
        if isinstance(builder, Builder):
            return found
        # What numba compiles for itself.
        return [one.whole(builder) if isinstance(one, Late) else one for one in found]

    def assign_names(self, args: Any, names: Any) -> None:
        """Says what is known of arguments. They have no names: those would only be text."""
        rest: Iterator[Any] = iter(args)
        for way in self._ways:
            way.describe([next(rest) for _ in way.types])


def _itself(value: Any) -> Any:
    return value


def packer(context: Any, types_: tuple[Any, ...]) -> Any:
    """How arguments of these types go."""
    return _Packer(context, types_)


def keep_apart(args: Iterable[Any]) -> None:
    """Says of a function's arguments that nothing else leads to the memory of a tuple. LLVM forgets that a member never
    changes (``invariant.load``) once it has moved it out of one loop, and would leave it in those around that."""
    for one in args:
        if one.attributes.dereferenceable:
            one.attributes.add("noalias")
