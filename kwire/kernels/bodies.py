"""Writes bodies as JSON text without building objects: layouts compiled to a program that one kernel runs.

Strategy: as for ``kwire.kernels.programs``, but here an instruction reads a value and writes it. Each has text that
comes first (``,"partitions":``). So a program of a message is about as long as it has fields. The text of many frames
stands in one buffer, one after the other, as Arrow's string columns have it. Which text belongs to which layout is
said by ``kwire.protocol.bodies``.

Rules kept here:

- A frame is written whole or not at all. What is not as it should be, and what is seldom, is *declined*. That is a
  length that does not fit, bytes left over or a tagged field that is not known. It is also a configuration value that
  may be a secret, or text beyond the limit. Objects (``kwire.protocol.describe``) deal with it, and word the error. So
  nothing here can be wrong about why something is wrong.
- Every length is checked, where it is read, against the end around it (of the frame, tagged field or embedded message).
  An array's count is checked against the least size of its elements. What its elements would take as objects is counted
  as the codecs count it (``kwire.codec.costs``). So the same bodies are refused.
- A tagged field stands last on the wire and anywhere in the text. Its default is written first, where it belongs
  (``MARK``). If the field turns up, its text takes that place (``_splice``), once for each field.
- Room is asked for before anything is written: at least ``ROOM`` bytes after what an instruction needs, since copies
  overrun.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from kwire.kernels.engine import Engine, kernel
from kwire.kernels.layouts import Row, table_type
from kwire.kernels.numbers import copy, copy_wide, i16, i32, i64, int64, u16, u32, unsigned_varint
from kwire.kernels.programs import MOST_LENGTH, length_there
from kwire.kernels.texts import BASE64, ROOM, base64, decimal, put, string

__all__ = [
    "CODE",
    "DECLINED",
    "MAX_CALLS",
    "MAX_DEPTH",
    "ROOM",
    "TEXT_JOB",
    "WRITTEN",
    "Code",
    "Of",
    "Pool",
    "TextJob",
    "Write",
    "unbase64",
    "write",
]

Array = Any

MAX_DEPTH: Final = 16
"""Arrays inside arrays."""
MAX_CALLS: Final = 16
"""Tagged fields and embedded messages inside each other."""


class Write(IntEnum):
    """What an instruction does, once its own text is written. After each, the fields of ``Code`` that it uses."""

    STOP = 0
    """The end: no bytes may follow."""
    TEXT = 1
    """Nothing but the text."""
    SKIP = 2
    """``width`` bytes are not shown."""
    NUMBER = 3
    """An integer of ``width`` bytes; negative: unsigned."""
    BOOL = 4
    """``true`` or ``false``."""
    ERROR = 5
    """An int16, by name where it has one. ``nullable``: any other as a string too."""
    UUID = 6
    """16 bytes in Kafka's text form; ``of``."""
    SKIP_STRING = 7
    """A string after a length of ``width`` is not shown; ``nullable``."""
    STRING = 8
    """A string after a length of ``width``; ``nullable``; ``of``."""
    BYTES = 9
    """Bytes as base64."""
    SIZE = 10
    """Bytes of which the size is shown: ``{"bytes":7}``."""
    SECRET = 11
    """A string or bytes that nobody is shown: ``{"redacted":7}``, unless empty. With ``of``, that as a string."""
    DOUBTFUL = 12
    """A string that may be a secret: declined, unless it is null or empty."""
    ARRAY = 13
    """A count of ``width``; ``nullable``. Its elements have at least ``least`` bytes and take ``cost`` as objects,
    where there are more than ``free``. If there are none the program goes on at ``target``."""
    NEXT = 14
    """The end of an element: if another one follows, the program goes on at ``target``."""
    NUMBERS = 15
    """An array of integers of ``of`` bytes (negative: unsigned), whole."""
    IF_PRESENT = 16
    """The byte before a nullable struct; if it is null the program goes on at ``target``."""
    IF_TAGGED = 17
    """The same in a tagged field: a varint, 0 for null."""
    MARK = 18
    """The last ``width`` bytes of the text are the default of the tagged field ``slot``."""
    TAGS = 19
    """The count of tagged fields; if there are none the program goes on at ``target``, else with ``NEXT_TAG``."""
    NEXT_TAG = 20
    """The number and size of a tagged field, which one of the next ``width`` instructions has. After the last one the
    program goes on at ``target``."""
    TAG = 21
    """The tagged field ``of`` is written by the program at ``target``, and belongs into ``slot``."""
    END_TAG = 22
    """Its value is written, for ``slot``. The program goes on at ``target``, its ``NEXT_TAG``."""
    EMBEDDED = 23
    """Bytes in which the group protocol has an int16 version and a message; the latest version known is ``of``. The
    program of version n is where instruction ``target`` + n leads. Beyond ``least`` bytes it is declined."""
    END_EMBEDDED = 24
    """Its message is written: the program goes on after ``EMBEDDED``."""
    JUMP = 25
    """The program goes on at ``target``."""


class Of(IntEnum):
    """What a string or uuid is besides a value: ``of`` of its instruction."""

    NOTHING = 0
    PROTOCOL = 1
    """The type of the group protocol: says whether ``EMBEDDED`` looks into bytes."""
    TOPIC = 2
    """Perhaps the topic of the metadata log, whose records are secret."""
    USER_DATA = 3
    """What an assignor adds, which depends on its name: a frame with such bytes is declined."""


class Code(Row):
    """One instruction. Which fields mean anything depends on ``op``; see ``Write``."""

    op: int
    text: int
    size: int
    """The text that comes first: ``size`` bytes at ``text`` of the pool."""
    width: int
    nullable: int
    """1 if the length may be -1."""
    of: int
    least: int
    cost: int
    free: int
    target: int
    """The instruction that a jump leads to."""
    slot: int
    """Where the place of a tagged field is remembered."""


class TextJob(Row):
    """A frame to write, and what became of it."""

    start: int
    end: int
    """Its bytes in the buffer."""
    program: int
    """The first instruction of its program in the joined code; -1 declines it."""
    objects: int
    """What its elements may take as objects."""
    state: int
    """``WRITTEN`` or ``DECLINED``."""
    size: int
    """Bytes of its text, 0 if it was declined."""


CODE: Final = table_type(Code)
TEXT_JOB: Final = table_type(TextJob)

DECLINED: Final = 0
WRITTEN: Final = 1
_USUAL: Final = 12
_FULL: Final = 2
"""There is no room for the text of this frame."""


class Pool:
    """Text that instructions write, each once: ``data`` with ``ROOM`` bytes after it."""

    def __init__(self) -> None:
        self._parts: dict[bytes, int] = {}
        self._size = 0
        self._data: Array = None

    def add(self, text: bytes) -> int:
        """Where ``text`` begins."""
        found = self._parts.get(text)
        if found is None:
            found = self._parts[text] = self._size
            self._size += len(text)
            self._data = None
        return found

    @property
    def data(self) -> Array:
        """All of it, as uint8."""
        if self._data is None:
            self._data = np.frombuffer(b"".join(self._parts) + bytes(ROOM), np.uint8).copy()
        return self._data


# --- numbers and text -------------------------------------------------------------------------------------------------

_SIXES: Final = np.zeros(256, np.uint8)
"""The six bits of each character of base64."""
_SIXES[np.frombuffer(BASE64, np.uint8)] = np.arange(64)
_URL_SAFE: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8).copy()
_WORDS: Final = np.frombuffer(b'nulltruefalse{"bytes":{"redacted":"{\\"redacted\\": }"{"version":', np.uint8).copy()
_NULL, _TRUE, _FALSE, _BYTES_IS, _REDACTED, _SHOWN, _SHOWN_END, _VERSION = (
    (int64(at), int64(size)) for at, size in ((0, 4), (4, 4), (8, 5), (13, 9), (22, 12), (34, 16), (50, 2), (52, 11))
)
_CONSUMER: Final = np.frombuffer(b"consumer", np.uint8).copy()
_CONNECT: Final = np.frombuffer(b"connect", np.uint8).copy()
"""The other type of a group protocol that is decoded. Its frames are rare, and declined."""
_METADATA: Final = np.frombuffer(b"__cluster_metadata", np.uint8).copy()
_METADATA_ID: Final = np.frombuffer(bytes(15) + b"\1", np.uint8).copy()

_QUOTE: Final = int64(ord('"'))
_AS_IT_IS: Final = int64(0)
"""A string that need not be safe for a terminal."""
_COMMA: Final = int64(ord(","))
_OPEN: Final = int64(ord("["))
_CLOSE: Final = int64(ord("]"))
_PAD: Final = int64(ord("="))
_OPEN_BRACE: Final = int64(ord("{"))
_CLOSE_BRACE: Final = int64(ord("}"))


@kernel
def _word(out: Array, n: int, which: tuple[int, int]) -> int:
    """Some of ``_WORDS``."""
    at, size = which
    for k in range(size):
        out[n + k] = _WORDS[at + k]
    return n + size


@kernel
def _integer(buf: Array, pos: int, width: int) -> int:
    """An integer of so many bytes, which are there; of a negative width, unsigned."""
    if width == 4:
        return i32(buf, pos)
    if width == 8:
        return i64(buf, pos)
    if width == 2:
        return i16(buf, pos)
    if width == 1:
        value = int64(buf[pos])
        return value - ((value & 0x80) << 1)
    if width == -2:
        return u16(buf, pos)
    return u32(buf, pos)


@kernel
def _base64(buf: Array, at: int, length: int, out: Array, n: int) -> int:
    """Bytes in base64, in quotes."""
    out[n] = _QUOTE
    n = base64(buf, at, length, out, n + 1)
    out[n] = _QUOTE
    return n + 1


@kernel
def unbase64(texts: Array, places: Array, out: Array, ends: Array) -> int:
    """Texts in base64, one after the other with ``places`` between them, as bytes: how many. ``ends`` (int32) gets the
    places between those. A text that begins with a brace is no base64, and stays as it is."""
    n = int64(0)
    for row in range(places.shape[0] - 1):
        pos, end = int64(places[row]), int64(places[row + 1])
        if pos < end and texts[pos] == _OPEN_BRACE:
            copy(texts, pos, out, n, end - pos)
            n += end - pos
        else:
            while pos + 4 <= end:
                bits = (
                    int64(_SIXES[texts[pos]]) << 18
                    | int64(_SIXES[texts[pos + 1]]) << 12
                    | int64(_SIXES[texts[pos + 2]]) << 6
                    | int64(_SIXES[texts[pos + 3]])
                )
                out[n] = bits >> 16
                out[n + 1] = (bits >> 8) & 255
                out[n + 2] = bits & 255
                n += 3
                pos += 4
            if int64(places[row]) < end:
                if texts[end - 1] == _PAD:
                    n -= 1
                if texts[end - 2] == _PAD:
                    n -= 1
        ends[row + 1] = n
    return n


@kernel
def _uuid(buf: Array, at: int, out: Array, n: int) -> int:
    """16 bytes as 22 characters, in quotes."""
    out[n] = _QUOTE
    n += 1
    pos = int64(at)
    for _ in range(5):
        bits = int64(buf[pos]) << 16 | int64(buf[pos + 1]) << 8 | int64(buf[pos + 2])
        out[n] = _URL_SAFE[bits >> 18]
        out[n + 1] = _URL_SAFE[(bits >> 12) & 63]
        out[n + 2] = _URL_SAFE[(bits >> 6) & 63]
        out[n + 3] = _URL_SAFE[bits & 63]
        n += 4
        pos += 3
    last = int64(buf[pos])
    out[n] = _URL_SAFE[last >> 2]
    out[n + 1] = _URL_SAFE[(last & 3) << 4]
    out[n + 2] = _QUOTE
    return n + 3


@kernel
def _is(buf: Array, at: int, length: int, what: Array) -> bool:
    """Whether these bytes are ``what``."""
    if length != what.shape[0]:
        return False
    for k in range(length):  # noqa: SIM110 - a kernel
        if buf[at + k] != what[k]:
            return False
    return True


@kernel
def _move(out: Array, at: int, to: int, size: int) -> None:
    """Bytes within a buffer, whose old and new place may overlap."""
    if to < at:
        for k in range(size):
            out[to + k] = out[at + k]
    elif to > at:
        for k in range(size - 1, -1, -1):
            out[to + k] = out[at + k]


@kernel
def _splice(out: Array, at: int, old: int, start: int, n: int) -> int:
    """Puts the text from ``start`` to ``n`` in place of ``old`` bytes at ``at``: where the text ends then. There is
    room for it once more after ``n``."""
    size = n - start
    between = start - at - old
    if between == 0:
        _move(out, start, at, size)
    else:
        _move(out, start, n, size)
        _move(out, at + old, at + size, between)
        _move(out, n, at, size)
    return n - old


# --- programs run -----------------------------------------------------------------------------------------------------

_PC: Final = 0
_END: Final = 1
_LEFT: Final = 2
_LAST: Final = 3
_START: Final = 4
CALL_FIELDS: Final = 5
"""What is remembered of a tagged section or an embedded message. Its instruction, the end of what is around it. Tags
left, the last tag, or whether it must end exactly. Where the text of the tagged field begins."""

_NO_PROTOCOL: Final = int64(0)
_IS_CONSUMER: Final = int64(1)
_IS_OTHER: Final = int64(2)


@kernel
def _length(buf: Array, pos: int, end: int, instruction: Any) -> tuple[int, int]:
    """The length of a string or bytes that is there: (length, where it begins); -2 for none."""
    length, after, trouble = length_there(buf, pos, end, instruction.width)
    if trouble != 0 or length > end - after or (length < 0 and instruction.nullable == 0):
        return int64(-2), int64(pos)
    return length, after


@kernel
def _text(buf: Array, at: int, length: int, instruction: Any, out: Array, n: int, protocol: int) -> tuple[int, int]:
    """Writes a string or bytes that are there: (where the text ends, -1 to decline; the protocol)."""
    op = instruction.op
    if length < 0:
        if op != Write.SKIP_STRING:
            n = _word(out, n, _NULL)
        if instruction.of == Of.PROTOCOL:
            protocol = _NO_PROTOCOL
    elif op == Write.STRING:
        if instruction.of == Of.PROTOCOL:
            if _is(buf, at, length, _CONNECT):
                return int64(-1), protocol
            protocol = _IS_CONSUMER if _is(buf, at, length, _CONSUMER) else _IS_OTHER
        elif instruction.of == Of.TOPIC and _is(buf, at, length, _METADATA):
            return int64(-1), protocol
        n = string(buf, at, length, _AS_IT_IS, out, n)
    elif op == Write.BYTES:
        if instruction.of == Of.USER_DATA and length > 0:
            return int64(-1), protocol
        n = _base64(buf, at, length, out, n)
    elif op == Write.SIZE:
        n = decimal(out, _word(out, n, _BYTES_IS), length)
        out[n] = _CLOSE_BRACE
        n += 1
    elif op != Write.SKIP_STRING:
        if length == 0:
            out[n] = _QUOTE
            out[n + 1] = _QUOTE
            return n + 2, protocol
        if op == Write.DOUBTFUL:
            return int64(-1), protocol
        if instruction.of == 0:
            n = decimal(out, _word(out, n, _REDACTED), length)
            out[n] = _CLOSE_BRACE
            n += 1
        else:
            n = _word(out, decimal(out, _word(out, n, _SHOWN), length), _SHOWN_END)
    return n, protocol


@kernel
def _numbers(buf: Array, pos: int, count: int, width: int, out: Array, n: int) -> int:
    """An array of integers, which are there, without its brackets."""
    step = abs(width)
    for k in range(count):
        if k > 0:
            out[n] = _COMMA
            n += 1
        n = decimal(out, n, _integer(buf, pos, width))
        pos += step
    return n


@kernel
def _error(buf: Array, pos: int, quoted: int, names: Array, pool: Array, out: Array, n: int) -> int:
    """An error code by name. ``names``: where the name of code k - 1 is in the pool, in quotes, and its size; 0 for
    none."""
    code = i16(buf, pos)
    if -1 <= code < names.shape[0] - 1 and names[code + 1, 1] > 0:
        return put(pool, names[code + 1, 0], out, n, names[code + 1, 1])
    if quoted == 0:
        return decimal(out, n, code)
    out[n] = _QUOTE
    n = decimal(out, n + 1, code)
    out[n] = _QUOTE
    return n + 1


@kernel
def _frame(
    buf: Array,
    start: int,
    end: int,
    code: Array,
    pc: int,
    pool: Array,
    names: Array,
    left: Array,
    calls: Array,
    marks: Array,
    objects: int,
    out: Array,
    begin: int,
    most: int,
) -> tuple[int, int]:
    """Writes a frame from ``begin`` on: (WRITTEN, DECLINED or _FULL; where the text ends)."""
    n = int64(begin)
    pos = int64(start)
    end = int64(end)
    depth = int64(0)
    called = int64(0)
    protocol = _NO_PROTOCOL
    room = int64(out.shape[0] - ROOM)
    budget = int64(objects)
    while True:
        instruction = code[pc]
        op = instruction.op
        size = instruction.size
        if n + size > room:
            if n - begin > most:
                return int64(DECLINED), int64(begin)
            return int64(_FULL), int64(begin)
        if size > 0:
            copy_wide(pool, instruction.text, out, n, size)
            n += size
        if op == Write.NUMBER:
            width = instruction.width
            if abs(width) > end - pos:
                break
            n = decimal(out, n, _integer(buf, pos, width))
            pos += abs(width)
        elif Write.SKIP_STRING <= op <= Write.DOUBTFUL:
            length, at = _length(buf, pos, end, instruction)
            if length < -1:
                break
            if op != Write.SIZE and op != Write.SECRET and n + 6 * length > room:
                if n + length - begin > most:
                    break
                return int64(_FULL), int64(begin)
            n, protocol = _text(buf, at, length, instruction, out, n, protocol)
            if n < 0:
                break
            pos = at + max(int64(0), length)
        elif op == Write.ERROR:
            if end - pos < 2:
                break
            n = _error(buf, pos, instruction.nullable, names, pool, out, n)
            pos += 2
        elif op == Write.ARRAY or op == Write.NUMBERS:
            count, at, trouble = length_there(buf, pos, end, instruction.width)
            if trouble != 0 or (count < 0 and instruction.nullable == 0):
                break
            if count * instruction.least > end - at:
                break
            pos = at
            if count < 0:
                n = _word(out, n, _NULL)
                pc = pc + 1 if op == Write.NUMBERS else instruction.target
                continue
            if count > instruction.free:
                budget -= count * instruction.cost
                if budget < 0:
                    break
            out[n] = _OPEN
            n += 1
            if op == Write.NUMBERS:
                if n + 21 * count > room:
                    if n + count - begin > most:
                        break
                    return int64(_FULL), int64(begin)
                n = _numbers(buf, pos, count, instruction.of, out, n)
                pos += count * abs(instruction.of)
                out[n] = _CLOSE
                n += 1
            elif count == 0:
                out[n] = _CLOSE
                n += 1
                pc = instruction.target
                continue
            else:
                if depth == MAX_DEPTH:
                    break
                left[depth] = count
                depth += 1
        elif op == Write.NEXT:
            left[depth - 1] -= 1
            if left[depth - 1] > 0:
                out[n] = _COMMA
                n += 1
                pc = instruction.target
                continue
            depth -= 1
            out[n] = _CLOSE
            n += 1
        elif op == Write.BOOL:
            if pos >= end:
                break
            n = _word(out, n, _TRUE if buf[pos] != 0 else _FALSE)
            pos += 1
        elif op == Write.UUID:
            if end - pos < 16:
                break
            if instruction.of == Of.TOPIC and _is(buf, pos, 16, _METADATA_ID):
                break
            n = _uuid(buf, pos, out, n)
            pos += 16
        elif op == Write.SKIP:
            if instruction.width > end - pos:
                break
            pos += instruction.width
        elif op == Write.MARK:
            marks[instruction.slot, 0] = n - instruction.width
            marks[instruction.slot, 1] = instruction.width
        elif op == Write.TAGS:
            count, at = unsigned_varint(buf, pos, end)
            if at < 0:
                break
            pos = at
            if count == 0:
                pc = instruction.target
                continue
            if called == MAX_CALLS:
                break
            calls[called, _PC] = pc
            calls[called, _END] = end
            calls[called, _LEFT] = count
            calls[called, _LAST] = -1
            called += 1
        elif op == Write.NEXT_TAG:
            if calls[called - 1, _LEFT] == 0:
                called -= 1
                pc = instruction.target
                continue
            tag, at = unsigned_varint(buf, pos, end)
            if at < 0 or tag <= calls[called - 1, _LAST]:
                break
            length, at = unsigned_varint(buf, at, end)
            if at < 0 or length > end - at:
                break
            found = int64(-1)
            for k in range(pc + 1, pc + 1 + instruction.width):
                if code[k].of == tag:
                    found = int64(k)
            if found < 0:
                break
            calls[called - 1, _LEFT] -= 1
            calls[called - 1, _LAST] = tag
            calls[called - 1, _START] = n
            pos = at
            end = at + length
            pc = code[found].target
            continue
        elif op == Write.END_TAG:
            if pos != end:
                break
            begun = calls[called - 1, _START]
            if n + (n - begun) > room:
                if n - begin > most:
                    break
                return int64(_FULL), int64(begin)
            end = calls[called - 1, _END]
            slot = instruction.slot
            at, old = marks[slot, 0], marks[slot, 1]
            grown = n - begun - old
            n = _splice(out, at, old, begun, n)
            marks[slot, 1] = old + grown
            # The other tagged fields of this struct that stand after it.
            table = instruction.target
            for k in range(table + 1, table + 1 + code[table].width):
                other = code[k].slot
                if marks[other, 0] > at:
                    marks[other, 0] += grown
            pc = table
            continue
        elif op == Write.IF_PRESENT:
            if pos >= end:
                break
            pos += 1
            if buf[pos - 1] > 127:
                n = _word(out, n, _NULL)
                pc = instruction.target
                continue
        elif op == Write.IF_TAGGED:
            tag, at = unsigned_varint(buf, pos, end)
            if at < 0:
                break
            pos = at
            if not 0 < tag <= MOST_LENGTH:
                n = _word(out, n, _NULL)
                pc = instruction.target
                continue
        elif op == Write.EMBEDDED:
            length, at = _length(buf, pos, end, instruction)
            if length < -1:
                break
            if n + 2 * length > room:
                if n + length - begin > most:
                    break
                return int64(_FULL), int64(begin)
            if length < 0:
                n = _word(out, n, _NULL)
                pos = at
            elif length == 0 or protocol == _IS_OTHER:
                n = _base64(buf, at, length, out, n)
                pos = at + length
            else:
                if length < 2 or length > instruction.least or called == MAX_CALLS:
                    break
                version = i16(buf, at)
                if version < 0 or (version > instruction.of and protocol == _NO_PROTOCOL):
                    break
                n = decimal(out, _word(out, n, _VERSION), version)
                calls[called, _PC] = pc
                calls[called, _END] = end
                calls[called, _LEFT] = 1 if protocol == _NO_PROTOCOL else 0
                called += 1
                pos = at + 2
                end = at + length
                pc = code[instruction.target + min(version, instruction.of)].target
                continue
        elif op == Write.END_EMBEDDED:
            called -= 1
            if calls[called, _LEFT] == 1 and pos != end:
                break
            pos = end
            end = calls[called, _END]
            pc = calls[called, _PC]
        elif op == Write.STOP:
            if pos != end or n - begin > most:
                break
            return int64(WRITTEN), n
        elif op == Write.JUMP:
            pc = instruction.target
            continue
        elif op != Write.TEXT:
            break
        pc += 1
    return int64(DECLINED), int64(begin)


@kernel
def _write(
    buf: Array,
    jobs: Array,
    job: int,
    code: Array,
    pool: Array,
    names: Array,
    left: Array,
    calls: Array,
    marks: Array,
    out: Array,
    most: int,
    enough: int,
) -> tuple[int, int]:
    """``write`` from ``job`` on, until there is no room or ``enough`` text: (jobs done, bytes of text)."""
    n = int64(0)
    while job < jobs.shape[0] and n < enough:
        one = jobs[job]
        state, after = int64(DECLINED), n
        if one.program >= 0:
            state, after = _frame(
                buf,
                one.start,
                one.end,
                code,
                one.program,
                pool,
                names,
                left,
                calls,
                marks,
                one.objects,
                out,
                n,
                most,
            )
        if state == _FULL:
            break
        one.state = state
        one.size = after - n
        n = after
        job += 1
    return job, n


class Scratch:
    """Memory that runs share: the text, and what a program remembers."""

    def __init__(self) -> None:
        self.left: Array = np.empty(MAX_DEPTH, np.int64)
        self.calls: Array = np.zeros((MAX_CALLS, CALL_FIELDS), np.int64)
        self.marks: Array = np.zeros((16, 2), np.int64)
        self.out: Array = np.empty(1 << 16, np.uint8)

    def room(self, size: int) -> None:
        """Makes room for so many bytes of text. What there was is gone."""
        if len(self.out) < size + 2 * ROOM:
            self.out = np.empty(size + 2 * ROOM, np.uint8)


def is_compiled(engine: Engine) -> bool:
    """Whether ``write`` runs machine code. Otherwise objects take less time."""
    return engine.compiles(_write)


def write(
    buf: Array,
    jobs: Array,
    job: int,
    code: Array,
    slots: int,
    pool: Array,
    names: Array,
    scratch: Scratch,
    most: int,
    enough: int,
    engine: Engine,
) -> tuple[int, Array]:
    """Writes frames as text, from ``job`` of ``jobs`` (a table of TEXT_JOB) on: (jobs done, the text of all that were
    written).

    Goes on until there is about ``enough`` text. ``most``: of a frame; one that has more is declined. ``names``: the
    places of error names in ``pool``, see ``_error``.
    """
    if len(scratch.marks) < slots:
        scratch.marks = np.zeros((2 * slots, 2), np.int64)
    # Text has about three to ten times the bytes of a frame. Memory that is not written to costs nothing.
    scratch.room(min(enough, _USUAL * int((jobs["end"][job:] - jobs["start"][job:]).sum())))
    run = engine(_write)
    while True:
        done, n = run(
            buf, jobs, job, code, pool, names, scratch.left, scratch.calls, scratch.marks, scratch.out, most, enough
        )
        if done > job or job == len(jobs):
            return done, scratch.out[:n].copy()
        scratch.room(2 * len(scratch.out))
