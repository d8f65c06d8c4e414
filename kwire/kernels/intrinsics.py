"""What numba cannot say itself, as LLVM code: the machine code of every ``primitive`` of ``kwire.kernels``.

A function here stands in for the Python function of the same name (in ``numbers`` or ``checksums``). That one says what
it does and what the caller must have checked. Nothing here checks anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import njit as _njit
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic as _intrinsic

# numba's own annotation describes the function that makes the code, not what kernels call.
intrinsic: Callable[[Any], Any] = _intrinsic
# Nor does it name all options.
njit: Any = _njit


def _inner(function: Any) -> Any:
    """A helper of the functions here, compiled into the kernel that uses it. Its ranges were checked by the caller."""
    return njit(boundscheck=False, nogil=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True)(function)


# --- numbers ----------------------------------------------------------------------------------------------------------


@intrinsic
def plain(typing_context: Any, code: Any) -> Any:
    """A member of an enumeration as int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], signature.args[0], types.int64)

    return types.int64(code), generate


# --- loads and copies -------------------------------------------------------------------------------------------------


def _loading(bits: int, order: Literal["big", "little"]) -> Any:
    @intrinsic
    def load(typing_context: Any, array: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
            value = builder.load(place, align=1)
            if sys.byteorder != order:
                value = builder.bswap(value)
            return builder.zext(value, ir.IntType(64)) if bits < 64 else value

        return types.int64(array, types.int64), generate

    return load


big16: Any = _loading(16, "big")
big32: Any = _loading(32, "big")
big64: Any = _loading(64, "big")
little16: Any = _loading(16, "little")
little32: Any = _loading(32, "little")


@intrinsic
def load64(typing_context: Any, array: Any, index: Any) -> Any:
    """Eight bytes from any position as a little-endian uint64. The caller has checked that they are there."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        at = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        loaded = builder.load(at, align=1)
        return builder.bswap(loaded) if sys.byteorder == "big" else loaded

    return types.uint64(array, types.int64), generate


@intrinsic
def item_at(typing_context: Any, items: Any, at: Any) -> Any:
    """An integer of an array of them, as int64. The caller has checked that it is there."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        loaded = builder.load(builder.gep(data, [args[1]]))
        return context.cast(builder, loaded, signature.args[0].dtype, types.int64)

    return types.int64(items, types.int64), generate


@intrinsic
def set_item(typing_context: Any, items: Any, at: Any, value: Any) -> Any:
    """Puts an int64 into an array of integers, without what has no place there. The caller has checked that there is
    room."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        made = context.cast(builder, args[2], types.int64, signature.args[0].dtype)
        builder.store(made, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(items, types.int64, types.int64), generate


@intrinsic
def prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        bytes_, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [bytes_, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
        # For reading, into all caches, of data.
        how = [ir.Constant(number, one) for one in (0, 3, 1)]
        builder.call(function, [builder.bitcast(builder.gep(data, [args[1]]), bytes_), *how])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic
def copy_exact(typing_context: Any, source: Any, at: Any, target: Any, to: Any, size: Any) -> Any:
    """memcpy. The caller has checked both ranges."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source_data = context.make_array(signature.args[0])(context, builder, args[0]).data
        target_data = context.make_array(signature.args[2])(context, builder, args[2]).data
        cgutils.raw_memcpy(  # type: ignore[no-untyped-call]
            builder, builder.gep(target_data, [args[3]]), builder.gep(source_data, [args[1]]), args[4], 1
        )
        return context.get_dummy_value()

    return types.void(source, types.int64, target, types.int64, types.int64), generate


def _steps(builder: Any, size: Any, width: int, step: Callable[[Any], None]) -> None:
    """``step(done)`` for 0, ``width``, 2 * ``width`` and so on below ``size``, and for 0 in any case.

    The first one is no loop, since most of what is copied fits in it, and LLVM unrolls loops for long ones.
    """
    word = ir.IntType(64)
    step(ir.Constant(word, 0))
    with builder.if_then(builder.icmp_signed(">", size, ir.Constant(word, width)), likely=False):
        last = builder.sub(size, ir.Constant(word, 1))
        rest = builder.lshr(last, ir.Constant(word, width.bit_length() - 1))
        with cgutils.for_range(builder, rest) as loop:
            step(builder.mul(builder.add(loop.index, ir.Constant(word, 1)), ir.Constant(word, width)))


def _copying(width: int) -> Any:
    """A function for kernels that copies in steps of ``width`` bytes."""

    @intrinsic
    def copy_steps(typing_context: Any, source: Any, at: Any, target: Any, to: Any, size: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(64), width // 8).as_pointer()
            source_data = context.make_array(signature.args[0])(context, builder, args[0]).data
            target_data = context.make_array(signature.args[2])(context, builder, args[2]).data
            from_here = builder.gep(source_data, [args[1]])
            to_here = builder.gep(target_data, [args[3]])

            def step(done: Any) -> None:
                loaded = builder.load(builder.bitcast(builder.gep(from_here, [done]), vector), align=1)
                builder.store(loaded, builder.bitcast(builder.gep(to_here, [done]), vector), align=1)

            _steps(builder, args[4], width, step)
            return context.get_dummy_value()

        return types.void(source, types.int64, target, types.int64, types.int64), generate

    return copy_steps


copy_wide: Any = _copying(32)
"""``size`` bytes in steps of 32, at least one, so that up to 32 more are read and written. The caller has checked
that. For what is short as a rule: keys and headers."""

copy_long: Any = _copying(64)
"""The same in steps of 64, for values: up to 64 more."""


@intrinsic
def shift_wide(typing_context: Any, array: Any, at: Any, to: Any, count: Any, more: Any) -> Any:
    """``array[to + i] = array[at + i] + more`` for ``count`` int32, in steps of 8, at least one. Up to 8 more are read
    and written. The caller has checked that."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = ir.IntType(32)
        kind = ir.VectorType(index, 8)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        single = builder.insert_element(
            ir.Constant(kind, ir.Undefined), builder.trunc(args[4], index), ir.Constant(index, 0)
        )
        added = builder.shuffle_vector(single, single, ir.Constant(kind, [ir.Constant(index, 0)] * 8))

        def step(done: Any) -> None:
            places = [
                builder.bitcast(builder.gep(data, [builder.add(one, done)]), kind.as_pointer()) for one in args[1:3]
            ]
            builder.store(builder.add(builder.load(places[0], align=4), added), places[1], align=4)

        _steps(builder, args[3], 8, step)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def unlike_wide(typing_context: Any, source: Any, at: Any, form: Any, first: Any, steps: Any) -> Any:
    """0 where ``steps`` times 32 bytes of ``source``, masked, are those of ``form`` from ``first`` on. Each step takes
    four words and four masks. The caller has checked that both are there, and ``form`` is uint64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, index = ir.IntType(64), ir.IntType(32)
        kind = ir.VectorType(word, 4)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        wanted = context.make_array(signature.args[2])(context, builder, args[2]).data
        nothing = ir.Constant(kind, [ir.Constant(word, 0)] * 4)
        found = cgutils.alloca_once_value(builder, nothing)  # type: ignore[no-untyped-call]

        def vector(base: Any, place: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(base, [place]), kind.as_pointer()), align=1)

        def step(done: Any) -> None:
            here = vector(data, builder.add(args[1], builder.shl(done, ir.Constant(word, 5))))
            if sys.byteorder == "big":
                swap = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                    builder.module, ir.FunctionType(kind, [kind]), "llvm.bswap.v4i64"
                )
                here = builder.call(swap, [here])
            pair = builder.add(args[3], builder.shl(done, ir.Constant(word, 3)))
            expected, mask = vector(wanted, pair), vector(wanted, builder.add(pair, ir.Constant(word, 4)))
            unlike = builder.xor(builder.and_(here, mask), expected)
            builder.store(builder.or_(builder.load(found), unlike), found)

        _steps(builder, args[4], 1, step)
        total = builder.load(found)
        parts = [builder.extract_element(total, ir.Constant(index, place)) for place in range(4)]
        return builder.or_(builder.or_(parts[0], parts[1]), builder.or_(parts[2], parts[3]))

    return types.uint64(source, types.int64, form, types.int64, types.int64), generate


# --- checksums --------------------------------------------------------------------------------------------------------


def _tables(polynomial: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Eight tables of 256 for a reflected CRC-32, one after the other: eight bytes a step ("slicing by 8")."""
    tables = np.zeros(8 * 256, np.uint64)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        tables[byte] = value
    for table in range(1, 8):
        for byte in range(256):
            value = int(tables[(table - 1) * 256 + byte])
            tables[table * 256 + byte] = value >> 8 ^ int(tables[value & 255])
    return tables


_CRC32: Final = _tables(0xEDB88320)
_CRC32C: Final = _tables(0x82F63B78)

_B0: Final = np.uint64(0xFF)
_U8: Final = np.uint64(8)
_U16: Final = np.uint64(16)
_U24: Final = np.uint64(24)
_U32: Final = np.uint64(32)
_U40: Final = np.uint64(40)
_U48: Final = np.uint64(48)
_U56: Final = np.uint64(56)
_ONES: Final = np.uint64(0xFFFFFFFF)
_T1: Final = np.uint64(256)
_T2: Final = np.uint64(512)
_T3: Final = np.uint64(768)
_T4: Final = np.uint64(1024)
_T5: Final = np.uint64(1280)
_T6: Final = np.uint64(1536)
_T7: Final = np.uint64(1792)


@_inner
def _sliced(tables: Any, data: Any, start: Any, end: Any) -> Any:
    value = _ONES
    pos = start
    while pos + 8 <= end:
        word = load64(data, pos) ^ value
        value = (
            tables[_T7 + (word & _B0)]
            ^ tables[_T6 + (word >> _U8 & _B0)]
            ^ tables[_T5 + (word >> _U16 & _B0)]
            ^ tables[_T4 + (word >> _U24 & _B0)]
            ^ tables[_T3 + (word >> _U32 & _B0)]
            ^ tables[_T2 + (word >> _U40 & _B0)]
            ^ tables[_T1 + (word >> _U48 & _B0)]
            ^ tables[word >> _U56]
        )
        pos += 8
    while pos < end:
        value = value >> _U8 ^ tables[(value ^ np.uint64(data[pos])) & _B0]
        pos += 1
    return np.int64(value ^ _ONES)


def _has_instruction(feature: str) -> bool:
    """Whether kernels may use instructions of the processor: x86-64 servers have had these since 2010."""
    if config.DISABLE_JIT or config.CPU_NAME or config.CPU_FEATURES:  # type: ignore[attr-defined]
        # Somebody has told numba for which processor to compile: what this one can do says nothing then.
        return False
    try:
        return bool(binding.get_host_cpu_features().get(feature))
    except RuntimeError:
        return False


if _has_instruction("pclmul"):
    # Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ"). 16 bytes of state are
    # multiplied by powers of x modulo the polynomial, bit-reflected. This moves them over the bytes that follow. What
    # is left at the end has the checksum of everything, and goes through the tables. Four states are folded over 64
    # bytes each where there are enough: the multiplications do not wait for each other.

    def _folding(first: int, second: int) -> Any:
        """A function for kernels: the state (two words) moved to where two other words are, and these added."""

        @intrinsic
        def fold(typing_context: Any, low: Any, high: Any, next_low: Any, next_high: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                word, vector, index = ir.IntType(64), ir.VectorType(ir.IntType(64), 2), ir.IntType(32)
                multiply = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                    builder.module, ir.FunctionType(vector, [vector, vector, ir.IntType(8)]), "llvm.x86.pclmulqdq"
                )

                def pair(one: Any, two: Any) -> Any:
                    made = builder.insert_element(ir.Constant(vector, ir.Undefined), one, ir.Constant(index, 0))
                    return builder.insert_element(made, two, ir.Constant(index, 1))

                state, more = pair(args[0], args[1]), pair(args[2], args[3])
                by = ir.Constant(vector, [ir.Constant(word, first), ir.Constant(word, second)])
                lows = builder.call(multiply, [state, by, ir.Constant(ir.IntType(8), 0x00)])
                highs = builder.call(multiply, [state, by, ir.Constant(ir.IntType(8), 0x11)])
                made = builder.xor(builder.xor(lows, highs), more)
                words = [builder.extract_element(made, ir.Constant(index, at)) for at in (0, 1)]
                return context.make_tuple(builder, signature.return_type, words)

            kind = types.uint64
            return types.UniTuple(kind, 2)(kind, kind, kind, kind), generate  # type: ignore[no-untyped-call]

        return fold

    # x^(128 + 32) and x^(128 - 32), and x^(512 + 32) and x^(512 - 32).
    _fold: Final = _folding(0x1751997D0, 0xCCAA009E)
    _fold_far: Final = _folding(0x154442BD4, 0x1C6E41596)

    @_inner
    def _word_crc32(word: Any) -> Any:
        """The checksum register after eight bytes that the register was added to before."""
        return (
            _CRC32[_T7 + (word & _B0)]
            ^ _CRC32[_T6 + (word >> _U8 & _B0)]
            ^ _CRC32[_T5 + (word >> _U16 & _B0)]
            ^ _CRC32[_T4 + (word >> _U24 & _B0)]
            ^ _CRC32[_T3 + (word >> _U32 & _B0)]
            ^ _CRC32[_T2 + (word >> _U40 & _B0)]
            ^ _CRC32[_T1 + (word >> _U48 & _B0)]
            ^ _CRC32[word >> _U56]
        )

    @_inner
    def crc32_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32 of ``data[start:end]``, a range that the caller has checked."""
        value = _ONES
        pos = start
        if pos + 16 <= end:
            low = load64(data, pos) ^ _ONES
            high = load64(data, pos + 8)
            pos += 16
            if end - pos >= 112:
                low1, high1 = load64(data, pos), load64(data, pos + 8)
                low2, high2 = load64(data, pos + 16), load64(data, pos + 24)
                low3, high3 = load64(data, pos + 32), load64(data, pos + 40)
                pos += 48
                while pos + 64 <= end:
                    low, high = _fold_far(low, high, load64(data, pos), load64(data, pos + 8))
                    low1, high1 = _fold_far(low1, high1, load64(data, pos + 16), load64(data, pos + 24))
                    low2, high2 = _fold_far(low2, high2, load64(data, pos + 32), load64(data, pos + 40))
                    low3, high3 = _fold_far(low3, high3, load64(data, pos + 48), load64(data, pos + 56))
                    pos += 64
                low, high = _fold(low, high, low1, high1)
                low, high = _fold(low, high, low2, high2)
                low, high = _fold(low, high, low3, high3)
            while pos + 16 <= end:
                low, high = _fold(low, high, load64(data, pos), load64(data, pos + 8))
                pos += 16
            value = _word_crc32(_word_crc32(low) ^ high)
        if pos + 8 <= end:
            value = _word_crc32(load64(data, pos) ^ value)
            pos += 8
        while pos < end:
            value = value >> _U8 ^ _CRC32[(value ^ np.uint64(data[pos])) & _B0]
            pos += 1
        return np.int64(value ^ _ONES)

else:

    @_inner
    def crc32_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32 of ``data[start:end]``, a range that the caller has checked."""
        return _sliced(_CRC32, data, start, end)


if _has_instruction("sse4.2"):
    # Three checksums at a time, since the instruction takes three cycles but can start in each. A stretch of 768 bytes
    # is three blocks of 256. Their checksums are put together by a table that appends 256 zero bytes to a checksum.
    # That keeps up with the library, without a call from Python for each batch.
    _BLOCK: Final = 256

    def _zeros(polynomial: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Four tables of 256, by the bytes of a checksum: what appending ``count`` zero bytes makes of it."""
        tables = _tables(polynomial)[:256].tolist()
        images = []
        for bit in range(32):
            value = 1 << bit
            for _ in range(count):
                value = value >> 8 ^ tables[value & 255]
            images.append(value)
        made = np.zeros(4 * 256, np.uint64)
        for byte in range(4):
            for number in range(256):
                value = 0
                for bit in range(8):
                    if number >> bit & 1:
                        value ^= images[8 * byte + bit]
                made[256 * byte + number] = value
        return made

    _APPEND: Final = _zeros(0x82F63B78, _BLOCK)

    @intrinsic
    def _crc_word(typing_context: Any, value: Any, word: Any) -> Any:
        """CRC-32C of eight bytes more."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(64)
            step = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(kind, [kind, kind]), "llvm.x86.sse42.crc32.64.64"
            )
            return builder.call(step, args)

        return types.uint64(types.uint64, types.uint64), generate

    @intrinsic
    def _crc_byte(typing_context: Any, value: Any, byte: Any) -> Any:
        """CRC-32C of one byte more."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind, small = ir.IntType(32), ir.IntType(8)
            step = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(kind, [kind, small]), "llvm.x86.sse42.crc32.32.8"
            )
            return builder.zext(builder.call(step, [builder.trunc(args[0], kind), args[1]]), ir.IntType(64))

        return types.uint64(types.uint64, types.uint8), generate

    @_inner
    def crc32c_keeps_up(size: Any) -> Any:
        """Always: see ``checksums``."""
        return True

    @_inner
    def _appended(value: Any) -> Any:
        return (
            _APPEND[value & _B0]
            ^ _APPEND[_T1 + (value >> _U8 & _B0)]
            ^ _APPEND[_T2 + (value >> _U16 & _B0)]
            ^ _APPEND[_T3 + (value >> _U24 & _B0)]
        )

    @_inner
    def crc32c_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32C of ``data[start:end]``, a range that the caller has checked."""
        value = _ONES
        pos = start
        while end - pos >= 3 * _BLOCK:
            two = np.uint64(0)
            three = np.uint64(0)
            stop = pos + _BLOCK
            while pos < stop:
                value = _crc_word(value, load64(data, pos))
                two = _crc_word(two, load64(data, pos + _BLOCK))
                three = _crc_word(three, load64(data, pos + 2 * _BLOCK))
                pos += 8
            value = _appended(_appended(value) ^ two) ^ three
            pos += 2 * _BLOCK
        while pos + 8 <= end:
            value = _crc_word(value, load64(data, pos))
            pos += 8
        while pos < end:
            value = _crc_byte(value, data[pos])
            pos += 1
        return np.int64(value ^ _ONES)

else:

    @_inner
    def crc32c_keeps_up(size: Any) -> Any:
        """For small ones: tables are slower than the library, but a call of it costs."""
        return size <= 4096

    @_inner
    def crc32c_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32C of ``data[start:end]``, a range that the caller has checked."""
        return _sliced(_CRC32C, data, start, end)


@intrinsic
def _sum_wide(typing_context: Any, array: Any, at: Any, steps: Any) -> Any:
    """The sum of the 32-bit little-endian numbers in ``steps`` times 64 bytes. The caller has checked that they are
    there, and that a word can hold it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, index = ir.IntType(64), ir.IntType(32)
        kind = ir.VectorType(word, 8)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        nothing = ir.Constant(kind, [ir.Constant(word, 0)] * 8)
        low_half = ir.Constant(kind, [ir.Constant(word, 0xFFFFFFFF)] * 8)
        half = ir.Constant(kind, [ir.Constant(word, 32)] * 8)
        lows, highs = (cgutils.alloca_once_value(builder, nothing) for _ in range(2))  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, args[2]) as loop:
            place = builder.add(args[1], builder.shl(loop.index, ir.Constant(word, 6)))
            here = builder.load(builder.bitcast(builder.gep(data, [place]), kind.as_pointer()), align=1)
            if sys.byteorder == "big":
                swap = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                    builder.module, ir.FunctionType(kind, [kind]), "llvm.bswap.v8i64"
                )
                here = builder.call(swap, [here])
            builder.store(builder.add(builder.load(lows), builder.and_(here, low_half)), lows)
            builder.store(builder.add(builder.load(highs), builder.lshr(here, half)), highs)
        both = builder.add(builder.load(lows), builder.load(highs))
        total = builder.extract_element(both, ir.Constant(index, 0))
        for place in range(1, 8):
            total = builder.add(total, builder.extract_element(both, ir.Constant(index, place)))
        return total

    return types.uint64(array, types.int64, types.int64), generate


_SIXTEEN: Final = np.uint64(0xFFFF)
_SWAPPED: Final = np.uint64(256)


@_inner
def sum_of(data: Any, start: Any, end: Any) -> Any:
    """The sum of 16-bit numbers modulo 65535: see ``checksums``."""
    steps = (end - start) >> 6
    total = _sum_wide(data, start, steps)
    pos = start + (steps << 6)
    while pos + 8 <= end:
        word = load64(data, pos)
        total += (word & _ONES) + (word >> _U32)
        pos += 8
    shift = np.uint64(0)
    while pos < end:
        total += np.uint64(data[pos]) << shift
        shift = _U8 - shift
        pos += 1
    # Little-endian so far: swapping the bytes of a number is a product with 256, modulo 65535.
    return np.int64(total % _SIXTEEN * _SWAPPED % _SIXTEEN)
