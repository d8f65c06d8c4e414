"""The loops of the columnar record reader, compiled by numba: ``scan``, ``read_records``, ``spread``, ``uniform``.

All of them work on whole windows: a call costs some 20 microseconds whatever it does, so none is made per batch.

``scan`` walks record sets entry by entry and writes one row of the batch table for each record batch (magic 2), each
wrapper message (a compressed message of magic 0 or 1) and each run of neighbouring plain messages that share magic
and timestamp type. ``read_records`` walks the table and writes the columns that differ from record to record, keys,
values and headers included, in one go: a byte is copied while it is still in the cache from having been parsed.
``spread`` repeats what is the same for a whole batch; ``uniform`` tells what is the same for all of them.

Rules kept here:

- Input is a ``uint8`` array; positions are ``int64`` everywhere, so that no sum of a position and a 32-bit length can
  overflow. Every length is compared with the bytes that are left before it is added to a position.
- ``load64`` and the copies go around numba's bounds check. They are only used where the bytes that they touch are
  inside of the array: the condition stands beside each use. Output buffers end with ``SLACK`` spare bytes, because
  copies are made in steps of 32 and 64.
- What is wrong with the input is a row ``(set, position, code, a, b)`` of the problem table, the first one only for
  each batch or message: hostile input must not be able to make more problems than it has entries.
- Kernels do not allocate. Where an output is full they return; the caller makes it larger and calls again, and
  they go on at the entry that did not fit (its half-written rows are forgotten).

Source: Kafka protocol guide, "Record Batch", "Record", "Old Message Format"; KIP-31, KIP-32 (magic 1), KIP-98, KIP-82
(magic 2).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic as _intrinsic

from kwire.jit import kernel

# numba's own annotation describes the function that makes the code, not what kernels call.
intrinsic: Callable[[Any], Any] = _intrinsic

__all__ = [
    "DONE",
    "GROW",
    "GROW_PROBLEMS",
    "PROBLEM_FIELDS",
    "SLACK",
    "Problem",
    "State",
    "Table",
    "be16",
    "be32",
    "be64",
    "crc32_of",
    "crc32c_of",
    "read_records",
    "scan",
    "spread",
    "uniform",
]

SLACK: Final = 64
"""Spare bytes at the end of every output buffer that ``copy`` writes to."""

DONE: Final = 0
GROW: Final = 1
GROW_PROBLEMS: Final = 2
"""``read_records`` found the problem table full. It has forgotten the entry's problems by then: nothing else tells."""

WIDE: Final = 2048
"""Up to this many bytes are copied in place; beyond, memcpy is called."""

INLINE_CRC: int
"""Batches up to this size have their CRC-32C computed by ``scan``; the library is faster for larger ones."""


class Table:
    """Columns of the batch table (one row per batch, wrapper or run)."""

    SET: Final = 0
    """Which record set."""
    POS: Final = 1
    """Where the entry starts in the array that was scanned."""
    ARENA: Final = 2
    """Where BODY and END are: 0 in the input, 1 in what was decompressed."""
    BODY: Final = 3
    """First byte of the records (magic 2), of the first message (run) or of the compressed value (wrapper)."""
    END: Final = 4
    """Byte after the body."""
    MAGIC: Final = 5
    ATTRIBUTES: Final = 6
    """Of the batch or message. A run and what a wrapper holds have those of the outermost wrapper."""
    COUNT: Final = 7
    """Records that the batch claims or messages in the run; -1 for a wrapper."""
    CRC: Final = 8
    """1 right, 0 wrong; while it is not computed yet, 2 more than what it should be. Messages of a run are checked one
    by one in ``read_records``."""
    ORIGIN: Final = 9
    """Where the outermost entry starts in the input: what a problem inside compressed data is reported at."""
    BASE: Final = 10
    """What is added to the offset of each record."""
    TIMESTAMP: Final = 11
    """Magic 2: base timestamp, or max timestamp with LogAppendTime. Messages: the wrapper's timestamp."""
    LAST: Final = 12
    """Offset of the last message of a run, as it stands there; of a wrapper: its own offset."""
    PARENT: Final = 13
    """Row of the wrapper in the table of the level above; -1 for none."""
    PRODUCER: Final = 14
    EPOCH: Final = 15
    SEQUENCE: Final = 16
    LEADER: Final = 17
    """Partition leader epoch."""
    CODEC: Final = 18
    """Of the batch or of the outermost wrapper."""
    FIRST_ROW: Final = 19
    """First output row, written by ``read_records``."""
    ROWS: Final = 20
    """How many output rows, written by ``read_records``."""
    WRAPPED: Final = 21
    """1 for what a wrapper held: its timestamp type (and with LogAppendTime its timestamp) overrides the messages'."""
    FIELDS: Final = 22


class State:
    """What a kernel keeps between two calls, in an int64 array."""

    ENTRY: Final = 0
    """``scan``: record set to go on with. ``read_records``: table row to go on with."""
    POS: Final = 1
    """``scan``: position in the array to go on at, -1 for the beginning of the set."""
    PROBLEMS: Final = 2
    ENTRIES: Final = 3
    """Rows of the batch table in use."""
    ROW: Final = 4
    KEY: Final = 5
    VALUE: Final = 6
    HEADER: Final = 7
    HEADER_KEY: Final = 8
    HEADER_VALUE: Final = 9
    NULL_KEYS: Final = 10
    NULL_VALUES: Final = 11
    NULL_TIMESTAMPS: Final = 12
    WRONG_CRCS: Final = 13
    NULL_HEADER_VALUES: Final = 14
    FIELDS: Final = 15


PROBLEM_FIELDS: Final = 5
"""Columns of the problem table: set, position, code and two numbers that the message shows."""


class Problem:
    """What can be wrong; ``columnar.py`` has the sentences."""

    SIZE: Final = 1
    MAGIC: Final = 2
    SHORT_BATCH: Final = 3
    COUNT: Final = 4
    KEY: Final = 5
    VALUE: Final = 6
    TRAILING: Final = 7
    NULL_WRAPPER: Final = 8
    CUT_OFF: Final = 9
    MIXED: Final = 10
    RECORD_LENGTH: Final = 11
    RECORD_FIELD: Final = 12
    HEADER_COUNT: Final = 13
    HEADER: Final = 14
    RECORD_TRAILING: Final = 15
    BATCH_TRAILING: Final = 16
    RECORDS_MISSING: Final = 17


# --- what numba cannot say itself -------------------------------------------------------------------------------------

if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def load64(array: Any, index: Any) -> Any:
        return np.uint64(int.from_bytes(array[index : index + 8].tobytes(), "little"))

    def swapped64(value: Any) -> Any:
        return np.uint64(int(value)).byteswap()

    def copy(source: Any, at: Any, target: Any, to: Any, size: Any) -> None:
        target[to : to + size] = source[at : at + size]

    copy_wide: Any = copy
    copy_long: Any = copy

    def shift_wide(array: Any, at: Any, to: Any, count: Any, more: Any) -> None:
        array[to : to + count] = array[at : at + count] + more

    def unlike_wide(source: Any, at: Any, form: Any, steps: Any) -> Any:
        words = source[at : at + 32 * steps].view("<u8").reshape(-1, 4)
        pairs = form[: 8 * steps].reshape(-1, 2, 4)
        return np.uint64(((words & pairs[:, 1]) ^ pairs[:, 0]).any())

else:

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
    def swapped64(typing_context: Any, value: Any) -> Any:
        """The bytes of a uint64 in reverse order."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bswap(args[0])

        return types.uint64(types.uint64), generate

    @intrinsic
    def _copy_exact(typing_context: Any, source: Any, at: Any, target: Any, to: Any, size: Any) -> Any:
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

    copy_wide = _copying(32)
    """``size`` bytes in steps of 32, at least one, so that up to 32 more are read and written. The caller has checked
    that. For what is short as a rule: keys and headers."""

    copy_long = _copying(64)
    """The same in steps of 64, for values: up to 64 more."""

    @intrinsic
    def shift_wide(typing_context: Any, array: Any, at: Any, to: Any, count: Any, more: Any) -> Any:
        """``array[to + i] = array[at + i] + more`` for ``count`` int32, in steps of 8, at least one: up to 8 more
        are read and written. The caller has checked that."""

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
    def unlike_wide(typing_context: Any, source: Any, at: Any, form: Any, steps: Any) -> Any:
        """0 where ``steps`` times 32 bytes of ``source``, masked, are those of ``form``: four words and four masks for
        each step. The caller has checked that both are there, and ``form`` is uint64."""

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
                pair = builder.shl(done, ir.Constant(word, 3))
                expected, mask = vector(wanted, pair), vector(wanted, builder.add(pair, ir.Constant(word, 4)))
                unlike = builder.xor(builder.and_(here, mask), expected)
                builder.store(builder.or_(builder.load(found), unlike), found)

            _steps(builder, args[3], 1, step)
            total = builder.load(found)
            parts = [builder.extract_element(total, ir.Constant(index, place)) for place in range(4)]
            return builder.or_(builder.or_(parts[0], parts[1]), builder.or_(parts[2], parts[3]))

        return types.uint64(source, types.int64, form, types.int64), generate

    @kernel
    def copy(source: Any, at: Any, target: Any, to: Any, size: Any) -> None:
        """``size`` bytes, exactly, if both ranges are inside of their arrays."""
        if size > 0 and at >= 0 and to >= 0 and at + size <= source.size and to + size <= target.size:
            _copy_exact(source, at, target, to, size)


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


@kernel
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
    # Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ"): 16 bytes of state are
    # multiplied by powers of x modulo the polynomial, bit-reflected, which moves them over the bytes that follow. What
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

    @kernel
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

    @kernel
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

    @kernel
    def crc32_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32 of ``data[start:end]``, a range that the caller has checked."""
        return _sliced(_CRC32, data, start, end)


if _has_instruction("sse4.2"):
    # Three checksums at a time, since the instruction takes three cycles but can start in each: a stretch of 768 bytes
    # is three blocks of 256, whose checksums are put together by a table that appends 256 zero bytes to a checksum.
    # That keeps up with the library, without a call from Python for each batch.
    _BLOCK: Final = 256
    INLINE_CRC = 1 << 31

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

    @kernel
    def _appended(value: Any) -> Any:
        return (
            _APPEND[value & _B0]
            ^ _APPEND[_T1 + (value >> _U8 & _B0)]
            ^ _APPEND[_T2 + (value >> _U16 & _B0)]
            ^ _APPEND[_T3 + (value >> _U24 & _B0)]
        )

    @kernel
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
    INLINE_CRC = 4096

    @kernel
    def crc32c_of(data: Any, start: Any, end: Any) -> Any:
        """CRC-32C of ``data[start:end]``, a range that the caller has checked."""
        return _sliced(_CRC32C, data, start, end)


# --- numbers ----------------------------------------------------------------------------------------------------------


@kernel
def be64(data: Any, pos: Any) -> Any:
    """A big-endian int64 at ``pos``; the caller has checked that eight bytes are there."""
    return np.int64(swapped64(load64(data, pos)))


@kernel
def be32(data: Any, pos: Any) -> Any:
    """A big-endian int32 at ``pos``; the caller has checked that four bytes are there."""
    value = (
        np.int64(data[pos]) << 24
        | np.int64(data[pos + 1]) << 16
        | np.int64(data[pos + 2]) << 8
        | np.int64(data[pos + 3])
    )
    return value - ((value & 0x80000000) << 1)


@kernel
def be16(data: Any, pos: Any) -> Any:
    value = np.int64(data[pos]) << 8 | np.int64(data[pos + 1])
    return value - ((value & 0x8000) << 1)


@kernel
def _long_varint(data: Any, pos: Any, end: Any, most: Any) -> Any:
    """A zigzag varint of at most ``most`` bytes, byte by byte; position -1 when there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(most):
        if pos >= end:
            return np.int64(0), np.int64(-1)
        byte = np.uint64(data[pos])
        pos += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            if most == 5:
                # Kafka collects it in an int: bits beyond the 32nd are lost.
                value &= _ONES
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), np.int64(pos)
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@kernel
def _short_varint(word: Any) -> Any:
    """The zigzag varint that ``word`` starts with, as value * 256 + size; 0 when it has more than four bytes."""
    if word & np.uint64(0x80) == np.uint64(0):
        value = word & np.uint64(0x7F)
        size = np.int64(1)
    elif word & np.uint64(0x8000) == np.uint64(0):
        value = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
        size = np.int64(2)
    elif word & np.uint64(0x80000000) != np.uint64(0) and word & np.uint64(0x800000) != np.uint64(0):
        return np.int64(0)
    else:
        value = (
            word & np.uint64(0x7F)
            | (word >> np.uint64(1)) & np.uint64(0x3F80)
            | (word >> np.uint64(2)) & np.uint64(0x1FC000)
        )
        size = np.int64(3)
        if word & np.uint64(0x800000) != np.uint64(0):
            value |= (word >> np.uint64(3)) & np.uint64(0xFE00000)
            size = np.int64(4)
    return (np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))) * 256 + size


# --- scan -------------------------------------------------------------------------------------------------------------


@kernel
def _report(problems: Any, state: Any, record_set: Any, position: Any, code: Any, a: Any, b: Any) -> None:
    at = state[2]
    if at < problems.shape[0]:
        problems[at, 0] = record_set
        problems[at, 1] = position
        problems[at, 2] = code
        problems[at, 3] = a
        problems[at, 4] = b
        state[2] = at + 1


@kernel
def scan(
    data: Any, starts: Any, lengths: Any, parents: Any, table: Any, problems: Any, consumed: Any, state: Any
) -> Any:
    """Writes the batch table of the record sets ``data[starts[i] : starts[i] + lengths[i]]``.

    ``parents`` is empty for record sets of a log or a frame. For what wrappers held it is the table of the level
    above, whose rows the sets belong to one by one. ``consumed[i]`` becomes the number of bytes of set ``i`` up to
    the entry that is cut off (or behind which the framing is lost).

    Returns ``GROW`` when ``table`` or ``problems`` is full.
    """
    inner = parents.shape[0] > 0
    for one in range(state[0], starts.size):
        begin = starts[one]
        end = begin + lengths[one]
        if begin < 0 or lengths[one] < 0 or end > data.size:
            raise ValueError("a record set lies outside of the buffer")
        pos = begin if state[1] < 0 else state[1]
        run = -1
        while True:
            # An entry writes at most one row and one problem.
            if state[3] >= table.shape[0] or state[2] >= problems.shape[0]:
                state[0] = one
                state[1] = pos
                return GROW
            left = end - pos
            size = np.int64(0)
            if left >= 12:
                size = be32(data, pos + 8)
            where = pos
            record_set = np.int64(one)
            if inner:
                where = parents[one, 9]
                record_set = parents[one, 0]
            if left < 12 or size > left - 12:
                # The broker cuts a Fetch response where its size limit falls (KIP-74); inside a wrapper nothing does.
                if inner and (left > 0 or pos == begin):
                    _report(problems, state, record_set, where, 9, left, 0)
                break
            if size < 14:
                # Less than the smallest message: where the next entry starts is not known either.
                _report(problems, state, record_set, where, 1, size, 0)
                break
            magic = np.int64(np.int8(data[pos + 16]))
            after = pos + 12 + size
            if inner and magic != parents[one, 5]:
                _report(problems, state, record_set, where, 10, magic, parents[one, 5])
                run = -1
                pos = after
                continue
            if magic == 2:
                run = -1
                if size < 49:
                    _report(problems, state, record_set, where, 3, size, magic)
                    pos = after
                    continue
                attributes = be16(data, pos + 21)
                row = state[3]
                table[row, 0] = record_set
                table[row, 1] = pos
                table[row, 2] = 0
                table[row, 3] = pos + 61
                table[row, 4] = after
                table[row, 5] = 2
                table[row, 6] = attributes
                table[row, 7] = be32(data, pos + 57)
                crc = be32(data, pos + 17) & 0xFFFFFFFF
                if size <= INLINE_CRC:
                    table[row, 8] = np.int64(crc32c_of(data, pos + 21, after) == crc)
                else:
                    table[row, 8] = crc + 2
                table[row, 9] = pos
                table[row, 10] = be64(data, pos)
                table[row, 11] = be64(data, pos + 35) if attributes & 8 else be64(data, pos + 27)
                table[row, 12] = 0
                table[row, 13] = -1
                table[row, 14] = be64(data, pos + 43)
                table[row, 15] = be16(data, pos + 51)
                table[row, 16] = be32(data, pos + 53)
                table[row, 17] = be32(data, pos + 12)
                table[row, 18] = attributes & 7
                table[row, 19] = 0
                table[row, 20] = 0
                table[row, 21] = 0
                state[3] = row + 1
                pos = after
                continue
            if magic != 0 and magic != 1:
                run = -1
                _report(problems, state, record_set, where, 2, magic, 0)
                pos = after
                continue
            header = 18 + 8 * magic
            if size < header - 12 + 8:
                run = -1
                _report(problems, state, record_set, where, 3, size, magic)
                pos = after
                continue
            attributes = np.int64(data[pos + 17])
            codec = attributes & 7
            body = pos
            if codec == 0:
                if run >= 0 and table[run, 5] == magic and (table[run, 6] & 8) == (attributes & 8):
                    table[run, 4] = after
                    table[run, 7] += 1
                    table[run, 12] = be64(data, pos)
                    pos = after
                    continue
            else:
                run = -1
                body = pos + header + 4
                key = be32(data, body - 4)
                if key > after - body - 4:
                    _report(problems, state, record_set, where, 5, key, after - body)
                    pos = after
                    continue
                body += max(key, np.int64(0)) + 4
                value = be32(data, body - 4)
                if value < 0:
                    _report(problems, state, record_set, where, 8, 0, 0)
                    pos = after
                    continue
                if value != after - body:
                    _report(problems, state, record_set, where, 6 if value > after - body else 7, value, after - body)
                    pos = after
                    continue
            row = state[3]
            table[row, 0] = record_set
            table[row, 1] = pos
            table[row, 2] = np.int64(inner)
            table[row, 3] = body
            table[row, 4] = after
            table[row, 5] = magic
            table[row, 6] = attributes
            table[row, 7] = 1 if codec == 0 else -1
            table[row, 8] = 1 if codec == 0 else (be32(data, pos + 12) & 0xFFFFFFFF) + 2
            table[row, 9] = where
            table[row, 10] = 0
            table[row, 11] = be64(data, pos + 18) if magic == 1 else np.int64(-1)
            table[row, 12] = be64(data, pos)
            table[row, 13] = np.int64(one) if inner else np.int64(-1)
            table[row, 14] = -1
            table[row, 15] = -1
            table[row, 16] = -1
            table[row, 17] = -1
            table[row, 18] = codec
            table[row, 19] = 0
            table[row, 20] = 0
            table[row, 21] = np.int64(inner)
            if inner:
                # The outermost wrapper decides about codec, timestamp and timestamp type, and its checksum covers all.
                table[row, 6] = codec | parents[one, 6] & ~np.int64(7)
                table[row, 11] = parents[one, 11]
                table[row, 18] = parents[one, 18]
                if codec == 0:
                    table[row, 8] = parents[one, 8]
            state[3] = row + 1
            if codec == 0:
                run = row
            pos = after
        consumed[one] = pos - begin
        state[1] = -1
    state[0] = starts.size
    return DONE


# --- records ----------------------------------------------------------------------------------------------------------


@kernel
def _clear(bitmap: Any, index: Any) -> None:
    bitmap[index >> 3] &= np.uint8(0xFF ^ (1 << (index & 7)))


FORM_STEPS: Final = 4
"""Headers of up to this many times 32 bytes can be a form."""

FORM_HEADERS: Final = 16
"""Headers that a form can have."""

FORM_FIELDS: Final = 8 * FORM_STEPS
"""Size of the array that holds a form: for each step four words, and the masks that select what must agree."""


@kernel
def _learn(form: Any, places: Any, source: Any, section: Any, size: Any, count: Any) -> None:
    """Makes a form of the headers in ``source[section : section + size]``, which were read already.

    The records of a producer tend to have the same headers with values of the same length: a trace id, a content type.
    The form is what such a section has in common with the next: all bytes but those of the values. A section that
    agrees with it needs no parsing, so the processor does not wait from length to length. ``places`` gets where each
    value is in the section and how long it is.
    """
    form[:] = np.uint64(0)
    for byte in range(size):
        form[((byte >> 5) << 3) + 4 + (byte >> 3 & 3)] |= _B0 << np.uint64(8 * (byte & 7))
    end = section + size
    _, at = _long_varint(source, section, end, 5)
    for header in range(count):
        length, at = _long_varint(source, at, end, 5)
        length, at = _long_varint(source, at + length, end, 5)
        length = max(length, np.int64(0))
        places[2 * header] = at - section
        places[2 * header + 1] = length
        for byte in range(at - section, at - section + length):
            form[((byte >> 5) << 3) + 4 + (byte >> 3 & 3)] &= ~(_B0 << np.uint64(8 * (byte & 7)))
        at += length
    for word in range((size + 7) >> 3):
        slot = ((word >> 2) << 3) + (word & 3)
        form[slot] = load64(source, section + 8 * word) & form[slot + 4]


@kernel
def read_records(
    data: Any,
    arena: Any,
    table: Any,
    entries: Any,
    want_key: Any,
    want_value: Any,
    want_headers: Any,
    offset: Any,
    timestamp: Any,
    timestamp_valid: Any,
    sequence: Any,
    crc_ok: Any,
    key_valid: Any,
    key_at: Any,
    key: Any,
    value_valid: Any,
    value_at: Any,
    value: Any,
    headers_at: Any,
    header_key_at: Any,
    header_key: Any,
    header_null: Any,
    header_value_at: Any,
    header_value: Any,
    control: Any,
    position: Any,
    problems: Any,
    form: Any,
    places: Any,
    state: Any,
) -> Any:
    """Reads the records of the first ``entries`` rows of the batch table into columns.

    Rows of ``offset`` and its like must be as many as the COUNTs of the table together; ``value`` must hold all bodies
    (and slack). ``key``, the header buffers and ``problems`` may turn out too small: ``GROW``, and again. Bitmaps are
    all ones at first; ``*_at`` arrays are Arrow offsets, one longer than there are rows. ``control`` is indexed like
    ``offset`` or empty; it gets the type of each control record that has one and is left alone elsewhere. ``form`` is
    room for ``FORM_FIELDS`` words of uint64, ``places`` for two int64 for each of ``FORM_HEADERS``.
    """
    lowest = np.int64(-62135596800000)
    highest = np.int64(253402300799999)
    # What the headers of one record looked like, to be compared with the next: see ``_learn``.
    form_size = np.int64(-1)
    form_steps = np.int64(0)
    form_header = np.int64(0)
    form_count = np.int64(0)
    form_key = np.int64(0)
    form_keys = np.int64(0)
    form_value = np.int64(0)
    form_null = np.int64(0)
    form_nulls = np.int64(0)
    form_header_room = np.int64(0)
    form_key_room = np.int64(0)
    form_value_room = np.int64(0)
    form_wait = np.int64(0)
    form_backoff = np.int64(1)
    for entry in range(state[0], entries):
        first = state[4]
        first_problem = state[2]
        state[0] = entry
        source = arena if table[entry, 2] else data
        room = source.size - 8
        wide_room = source.size - 32
        pos = table[entry, 3]
        end = table[entry, 4]
        count = table[entry, 7]
        magic = table[entry, 5]
        base = table[entry, 10]
        attributes = table[entry, 6]
        append_time = (attributes & 8) != 0
        base_timestamp = table[entry, 11]
        wrapped = table[entry, 21] != 0
        right = table[entry, 8] != 0
        base_sequence = table[entry, 16]
        is_control = magic == 2 and (attributes & 32) != 0 and control.size > 0
        row = state[4]
        key_pos = state[5]
        value_pos = state[6]
        header = state[7]
        header_key_pos = state[8]
        header_value_pos = state[9]
        null_keys = state[10]
        null_values = state[11]
        null_timestamps = state[12]
        wrong = state[13]
        null_header_values = state[14]
        # The first problem of the entry: record number, position, code and two numbers.
        code = np.int64(0)
        bad_at = np.int64(0)
        bad_a = np.int64(0)
        bad_b = np.int64(0)
        claimed = count
        if magic == 2:
            # A record takes at least seven bytes: a count is never believed beyond that.
            count = min(count, (end - pos) // 7)
            if claimed < 0:
                code = np.int64(4)
                bad_at = pos - 4
                bad_a = claimed
        index = np.int64(0)
        while index < count:
            number = index
            if magic == 2 and pos == end:
                break
            index += 1
            failed = np.int64(0)
            fail_a = np.int64(0)
            fail_b = np.int64(0)
            fail_at = pos
            row_header = header
            row_header_key = header_key_pos
            row_header_value = header_value_pos
            row_null_header_values = null_header_values
            key_from = np.int64(0)
            value_from = np.int64(0)
            key_size = np.int64(-1)
            value_size = np.int64(-1)
            when = base_timestamp
            where = base
            order = np.int64(-1)
            row_right = right
            if magic == 2:
                # The varints of a record are written out: a size that branches tell is guessed by the processor, one
                # that a function returns is waited for (figures in ARCHITECTURE.md).
                word = load64(source, pos) if pos <= room else np.uint64(0xFFFFFF)
                if word & np.uint64(0x80) == np.uint64(0):
                    size = np.int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -np.int64(word & np.uint64(1))
                    pos = pos + 1
                elif word & np.uint64(0x8000) == np.uint64(0):
                    word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
                    size = np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))
                    pos = pos + 2
                else:
                    size, pos = _long_varint(source, pos, end, 5)
                if pos < 0 or pos > end or size < 0 or size > end - pos:
                    # Where the next record starts is not known: the rest of the batch is lost.
                    if code == 0:
                        code = np.int64(11)
                        bad_at = fail_at
                        bad_a = number
                        bad_b = size
                    break
                after = pos + size
                word = load64(source, pos + 1) if pos + 1 <= room else np.uint64(0xFFFFFF)
                if word & np.uint64(0x80) == np.uint64(0):
                    delta = np.int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -np.int64(word & np.uint64(1))
                    at = pos + 1 + 1
                elif word & np.uint64(0x8000) == np.uint64(0):
                    word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
                    delta = np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))
                    at = pos + 1 + 2
                else:
                    delta, at = _long_varint(source, pos + 1, after, 10)
                step = np.int64(0)
                if at >= 0:
                    word = load64(source, at) if at <= room else np.uint64(0xFFFFFF)
                    if word & np.uint64(0x80) == np.uint64(0):
                        step = np.int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -np.int64(word & np.uint64(1))
                        at = at + 1
                    elif word & np.uint64(0x8000) == np.uint64(0):
                        word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
                        step = np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))
                        at = at + 2
                    else:
                        step, at = _long_varint(source, at, after, 5)
                if at >= 0:
                    word = load64(source, at) if at <= room else np.uint64(0xFFFFFF)
                    if word & np.uint64(0x80) == np.uint64(0):
                        key_size = np.int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -np.int64(word & np.uint64(1))
                        at = at + 1
                    elif word & np.uint64(0x8000) == np.uint64(0):
                        word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
                        key_size = np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))
                        at = at + 2
                    else:
                        key_size, at = _long_varint(source, at, after, 5)
                if at < 0 or at > after or key_size > after - at:
                    failed = np.int64(12)
                else:
                    key_from = at
                    if key_size > 0:
                        at += key_size
                    word = load64(source, at) if at <= room else np.uint64(0xFFFFFF)
                    if word & np.uint64(0x80) == np.uint64(0):
                        value_size = np.int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -np.int64(word & np.uint64(1))
                        at = at + 1
                    elif word & np.uint64(0x8000) == np.uint64(0):
                        word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
                        value_size = np.int64(word >> np.uint64(1)) ^ -np.int64(word & np.uint64(1))
                        at = at + 2
                    else:
                        value_size, at = _long_varint(source, at, after, 5)
                    if at < 0 or at > after or value_size > after - at:
                        failed = np.int64(12)
                    else:
                        value_from = at
                        if value_size > 0:
                            at += value_size
                        section = at
                        if at + 1 == after and source[at] == 0:
                            at = after
                        elif (
                            after - at == form_size
                            and after + 32 <= source.size
                            and unlike_wide(source, at, form, form_steps) == np.uint64(0)
                        ):
                            if want_headers:
                                if (
                                    header > form_header_room
                                    or header_key_pos > form_key_room
                                    or header_value_pos > form_value_room
                                    or null_header_values + form_nulls > header_null.size
                                ):
                                    state[2] = first_problem
                                    return GROW
                                for which in range(form_null, form_null + form_nulls):
                                    header_null[null_header_values] = header_null[which] + (header - form_header)
                                    null_header_values += 1
                                shift = header_key_pos - form_key
                                shift_wide(header_key_at, form_header + 1, header + 1, form_count, shift)
                                shift = header_value_pos - form_value
                                shift_wide(header_value_at, form_header + 1, header + 1, form_count, shift)
                                header += form_count
                                copy_wide(header_key, form_key, header_key, header_key_pos, form_keys)
                                header_key_pos += form_keys
                                for which in range(form_count):
                                    content = at + places[2 * which]
                                    content_size = places[2 * which + 1]
                                    copy_wide(source, content, header_value, header_value_pos, content_size)
                                    header_value_pos += content_size
                            at = after
                            form_wait = np.int64(0)
                            form_backoff = np.int64(1)
                        else:
                            quick = _short_varint(load64(source, at)) if at <= room else np.int64(0)
                            if quick != 0:
                                headers = quick >> 8
                                at = at + (quick & 255)
                            else:
                                headers, at = _long_varint(source, at, after, 5)
                            if at < 0 or at > after or headers < 0 or headers > (after - at) // 2:
                                failed = np.int64(13)
                                fail_b = headers
                            else:
                                left = headers
                                while left > 0:
                                    left -= 1
                                    quick = _short_varint(load64(source, at)) if at <= room else np.int64(0)
                                    if quick != 0:
                                        name_size = quick >> 8
                                        name = at + (quick & 255)
                                    else:
                                        name_size, name = _long_varint(source, at, after, 5)
                                    if name < 0 or name > after or name_size < 0 or name_size > after - name:
                                        failed = np.int64(14)
                                        break
                                    quick = (
                                        _short_varint(load64(source, name + name_size))
                                        if name + name_size <= room
                                        else np.int64(0)
                                    )
                                    if quick != 0:
                                        content_size = quick >> 8
                                        content = name + name_size + (quick & 255)
                                    else:
                                        content_size, content = _long_varint(source, name + name_size, after, 5)
                                    if content < 0 or content > after or content_size > after - content:
                                        failed = np.int64(14)
                                        break
                                    at = content + max(content_size, np.int64(0))
                                    if want_headers:
                                        if (
                                            header + 2 > header_key_at.size
                                            or null_header_values >= header_null.size
                                            or header_key_pos + name_size + 64 > header_key.size
                                            or header_value_pos + content_size + 64 > header_value.size
                                        ):
                                            state[2] = first_problem
                                            return GROW
                                        if (
                                            name_size <= WIDE
                                            and name + name_size <= wide_room
                                            and header_key_pos + name_size + 32 <= header_key.size
                                        ):
                                            copy_wide(source, name, header_key, header_key_pos, name_size)
                                        else:
                                            copy(source, name, header_key, header_key_pos, name_size)
                                        header_key_pos += name_size
                                        if content_size < 0:
                                            header_null[null_header_values] = header
                                            null_header_values += 1
                                        else:
                                            if (
                                                content_size <= WIDE
                                                and content + content_size <= wide_room
                                                and header_value_pos + content_size + 32 <= header_value.size
                                            ):
                                                copy_wide(source, content, header_value, header_value_pos, content_size)
                                            else:
                                                copy(source, content, header_value, header_value_pos, content_size)
                                            header_value_pos += content_size
                                        header += 1
                                        header_key_at[header] = header_key_pos
                                        header_value_at[header] = header_value_pos
                                if failed == 0 and at != after:
                                    failed = np.int64(15)
                                    fail_b = after - at
                                form_wait -= 1
                                if (
                                    failed == 0
                                    and form_wait < 0
                                    and after - section <= 32 * FORM_STEPS
                                    and headers <= FORM_HEADERS
                                    and after + 32 <= source.size
                                ):
                                    form_wait = form_backoff
                                    form_backoff = min(2 * form_backoff, np.int64(256))
                                    form_size = after - section
                                    form_steps = (form_size + 31) >> 5
                                    form_header = row_header
                                    form_count = headers
                                    form_key = row_header_key
                                    form_keys = header_key_pos - row_header_key
                                    form_value = row_header_value
                                    form_null = row_null_header_values
                                    form_nulls = null_header_values - row_null_header_values
                                    form_header_room = header_key_at.size - headers - 16
                                    form_key_room = header_key.size - form_keys - 64
                                    form_value_room = header_value.size - form_size - 64
                                    _learn(form, places, source, section, form_size, form_count)
                pos = after
                where = base + step
                if not append_time:
                    when = base_timestamp + delta
                if base_sequence >= 0:
                    # Sequence numbers wrap from 2**31 - 1 to 0 (Kafka's incrementSequence).
                    order = base_sequence + step
                    if order > 2147483647:
                        order -= 2147483648
                    order = np.int64(np.int32(order))
            else:
                # Framing was checked by scan: the message is whole and at least as long as its fixed fields.
                after = pos + 12 + be32(source, pos + 8)
                header_end = pos + 18 + 8 * magic
                where = base + be64(source, pos)
                if magic == 1 and not (wrapped and append_time):
                    when = be64(source, pos + 18)
                if crc32_of(source, pos + 16, after) != (be32(source, pos + 12) & 0xFFFFFFFF):
                    row_right = False
                key_size = be32(source, header_end)
                key_from = header_end + 4
                if key_size > after - key_from - 4:
                    failed = np.int64(5)
                    fail_a = key_size
                    fail_b = after - key_from
                else:
                    value_from = key_from + max(key_size, np.int64(0)) + 4
                    value_size = be32(source, value_from - 4)
                    if value_size > after - value_from:
                        failed = np.int64(6)
                        fail_a = value_size
                        fail_b = after - value_from
                    elif max(value_size, np.int64(0)) != after - value_from:
                        failed = np.int64(7)
                        fail_a = max(value_size, np.int64(0))
                        fail_b = after - value_from
                pos = after
            if failed != 0:
                if magic < 2:
                    # Each message is an entry of its own.
                    if state[2] >= problems.shape[0]:
                        state[2] = first_problem
                        return GROW_PROBLEMS
                    reported = table[entry, 9] if table[entry, 2] else fail_at
                    _report(problems, state, table[entry, 0], reported, failed, fail_a, fail_b)
                elif code == 0:
                    code = failed
                    bad_at = fail_at
                    bad_a = number
                    bad_b = fail_b
                header = row_header
                header_key_pos = row_header_key
                header_value_pos = row_header_value
                null_header_values = row_null_header_values
                continue
            offset[np.uint64(row)] = where
            if when == -1 or when < lowest or when > highest:
                timestamp[np.uint64(row)] = 0
                _clear(timestamp_valid, row)
                null_timestamps += 1
            else:
                timestamp[np.uint64(row)] = when * 1000
            sequence[np.uint64(row)] = order
            if position.size > 0:
                # A plain message is an entry of its own; other records stand where their batch or wrapper does.
                position[np.uint64(row)] = fail_at if magic < 2 and table[entry, 2] == 0 else table[entry, 9]
            if not row_right:
                _clear(crc_ok, row)
                wrong += 1
            if is_control and key_size >= 4:
                # Key: version int16, type int16 (KIP-98). A shorter key is kept as it is, without a type.
                control[np.uint64(row)] = be16(source, key_from + 2)
            if want_key:
                if key_size < 0:
                    _clear(key_valid, row)
                    null_keys += 1
                else:
                    if key_pos + key_size + 64 > key.size:
                        state[2] = first_problem
                        return GROW
                    if key_size <= WIDE and key_from + key_size <= wide_room and key_pos + key_size + 32 <= key.size:
                        copy_wide(source, key_from, key, key_pos, key_size)
                    else:
                        copy(source, key_from, key, key_pos, key_size)
                    key_pos += key_size
                key_at[np.uint64(row + 1)] = key_pos
            if want_value:
                if value_size < 0:
                    _clear(value_valid, row)
                    null_values += 1
                else:
                    if (
                        value_size <= WIDE
                        and value_from + value_size <= wide_room - 32
                        and value_pos + value_size + 64 <= value.size
                    ):
                        copy_long(source, value_from, value, value_pos, value_size)
                    else:
                        copy(source, value_from, value, value_pos, value_size)
                    value_pos += value_size
                value_at[np.uint64(row + 1)] = value_pos
            if want_headers:
                headers_at[np.uint64(row + 1)] = header
            row += 1
        if code == 0 and magic == 2:
            bad_at = pos
            bad_a = claimed
            if index < claimed:
                code = np.int64(17)
                bad_b = index
            elif pos != end:
                code = np.int64(16)
                bad_b = end - pos
        if code != 0:
            if state[2] >= problems.shape[0]:
                state[2] = first_problem
                return GROW_PROBLEMS
            reported = table[entry, 9] if table[entry, 2] else bad_at
            _report(problems, state, table[entry, 0], reported, code, bad_a, bad_b)
        table[entry, 19] = first
        table[entry, 20] = row - first
        state[4] = row
        state[5] = key_pos
        state[6] = value_pos
        state[7] = header
        state[8] = header_key_pos
        state[9] = header_value_pos
        state[10] = null_keys
        state[11] = null_values
        state[12] = null_timestamps
        state[13] = wrong
        state[14] = null_header_values
    state[0] = entries
    return DONE


@kernel
def spread(table: Any, entries: Any, column: Any, out: Any) -> None:
    """``out[r]`` becomes the batch table's ``column`` of the entry that row ``r`` came from."""
    for entry in range(entries):
        first = table[entry, 19]
        value = table[entry, column]
        out[first : first + table[entry, 20]] = value


@kernel
def uniform(table: Any, entries: Any, out: Any) -> None:
    """``out[c]`` becomes 1 where column ``c`` has the same value in all of the first ``entries`` rows, else 0."""
    for column in range(out.size):
        out[column] = 1
    left = out.size
    for entry in range(1, entries):
        for column in range(out.size):
            if out[column] != 0 and table[entry, column] != table[0, column]:
                out[column] = 0
                left -= 1
        if left == 0:
            return
