"""Record sets to columns: ``scan`` finds the batches, ``read_records`` reads what is in them.

Both work on whole windows. A call costs some 20 microseconds whatever it does, so none is made per batch.

``scan`` walks record sets entry by entry and writes the rows of the batch table. There is one for each record batch
(magic 2), and one for each wrapper message (a compressed message of magic 0 or 1). There is also one for each run of
neighbouring plain messages that share magic and timestamp type. ``read_records`` walks the table and writes the columns
that differ from record to record, in one go. Keys, values and headers are included. A byte is copied while it is still
in the cache from having been parsed.

Rules kept here:

- Input is a ``uint8`` array. Positions are ``int64`` everywhere, so that no sum of a position and a 32-bit length can
  overflow. Every length is compared with the bytes that are left before it is added to a position.
- ``load64`` and the copies go around the bounds check. They are only used where the bytes that they touch are inside of
  the array. The condition stands beside each use. Output buffers end with ``SLACK`` spare bytes, because copies are
  made in steps of 32 and 64.
- What is wrong with the input is a row of the problem table, the first one only for each batch or message. Hostile
  input must not be able to make more problems than it has entries.
- Kernels do not allocate. Where an output is full they return. The caller makes it larger and calls again. They go on
  at the entry that did not fit (its half-written rows are forgotten).
- The steps of the loop over records are ``inlined`` kernels: what they return stays in registers.

Source: Kafka protocol guide, "Record Batch", "Record", "Old Message Format"; KIP-31, KIP-32 (magic 1), KIP-98, KIP-82
(magic 2).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from kwire.kernels.checksums import crc32_of, crc32c_keeps_up, crc32c_of
from kwire.kernels.engine import inlined, kernel
from kwire.kernels.layouts import ProblemCode
from kwire.kernels.numbers import (
    SLACK,
    copy,
    copy_long,
    copy_wide,
    i16,
    i32,
    i64,
    int64,
    load64,
    long_varint,
    shift_wide,
    short_varint,
    u32,
    unlike_wide,
)
from kwire.wire import CODEC, CONTROL, FIRST_MS, LAST_MS, LOG_APPEND_TIME

__all__ = [
    "DONE",
    "FORM_HEADERS",
    "FORM_WORDS",
    "FULL",
    "FULL_OF_PROBLEMS",
    "LEAST_BATCH",
    "LEAST_MESSAGE",
    "LOG_OVERHEAD",
    "SLACK",
    "Columns",
    "HeaderColumns",
    "Scratch",
    "Texts",
    "Wanted",
    "read_records",
    "scan",
    "uniform",
]

Array = Any
Row = Any

DONE: Final = 0
FULL: Final = 1
FULL_OF_PROBLEMS: Final = 2
"""``read_records`` found the problem table full. It has forgotten the entry's problems by then. Nothing else
reports them."""

WIDE: Final = 2048
"""Up to this many bytes are copied in place; beyond, memcpy is called."""


FORM_STEPS: Final = 4
"""Headers of up to this many times 32 bytes can be a form."""

FORM_HEADERS: Final = 16
"""Headers that a form can have."""

FORM_WORDS: Final = 8 * FORM_STEPS
"""Size of the array that holds a form. It has four words for each step, and the masks that select what must agree."""

LOG_OVERHEAD: Final = 12
"""Offset (or base offset) and size, before every entry."""
LEAST_MESSAGE: Final = 14
"""Bytes after the size in the smallest message: crc, magic, attributes, two lengths."""
LEAST_BATCH: Final = 49
"""Bytes after the size in a batch without records."""
_LEAST_RECORD: Final = 7
"""Bytes of the smallest record: five varints, attributes, and the length in front."""
_BYTE: Final = np.uint64(0xFF)
_NO_VARINT: Final = np.uint64(0xFFFFFF)
_INT32: Final = 1 << 31
# numba compiles a kernel once for each number that is written into a call of it, but once only for these.
_ZERO: Final = int64(0)
_SHORT: Final = int64(5)
_LONG: Final = int64(10)


class Wanted(NamedTuple):
    """Which of the outputs that cost something are asked for."""

    key: bool
    value: bool
    headers: bool
    crc: bool
    """Whether checksums are compared; else all are taken for right."""


class Columns(NamedTuple):
    """Outputs with one element for each record. Bitmaps are all ones at first; the last two may be empty."""

    offset: Array
    timestamp: Array
    """Microseconds."""
    timestamp_valid: Array
    sequence: Array
    crc_ok: Array
    control: Array
    """Gets the type of each control record that has one, and is left alone elsewhere."""
    position: Array


class Texts(NamedTuple):
    """Keys, or values: a bitmap, Arrow offsets (one more than there are rows), and the bytes."""

    valid: Array
    at: Array
    data: Array


class HeaderColumns(NamedTuple):
    """``at``: Arrow offsets into the headers, by record; the rest by header. ``null``: the headers without a value."""

    at: Array
    key_at: Array
    key: Array
    null: Array
    value_at: Array
    value: Array


class Scratch(NamedTuple):
    """Room for a form: ``FORM_WORDS`` uint64, two int64 for each of ``FORM_HEADERS``, and one row of each table."""

    words: Array
    places: Array
    form: Array
    headers: Array


# --- scan -------------------------------------------------------------------------------------------------------------


@kernel
def _report(problems: Array, state: Row, record_set: int, position: int, code: int, a: int, b: int) -> None:
    if state.problems < problems.shape[0]:
        problem = problems[state.problems]
        problem.record_set = record_set
        problem.position = position
        problem.code = code
        problem.a = a
        problem.b = b
        state.problems += 1


@kernel
def _read_batch(data: Array, pos: int, after: int, check: bool, batch: Row) -> None:
    """Magic 2: ``batch`` from its header, which is there. ``check``: whether its checksum is of interest."""
    attributes = i16(data, pos + 21)
    batch.arena = 0
    batch.body = pos + 61
    batch.attributes = attributes
    batch.count = i32(data, pos + 57)
    crc = u32(data, pos + 17)
    if not check:
        batch.crc = 1
    elif crc32c_keeps_up(after - pos):
        batch.crc = int64(crc32c_of(data, pos + 21, after) == crc)
    else:
        batch.crc = crc + 2
    batch.origin = pos
    batch.base = i64(data, pos)
    batch.timestamp = i64(data, pos + 35) if attributes & LOG_APPEND_TIME else i64(data, pos + 27)
    batch.last = 0
    batch.parent = -1
    batch.producer = i64(data, pos + 43)
    batch.epoch = i16(data, pos + 51)
    batch.sequence = i32(data, pos + 53)
    batch.leader = i32(data, pos + 12)
    batch.codec = attributes & CODEC
    batch.wrapped = 0


@kernel
def _value_of_wrapper(data: Array, key_at: int, after: int) -> tuple[int, int, int, int]:
    """Where the value of a compressed message starts: (position, 0, 0, 0), or (-1, problem, its two numbers)."""
    key = i32(data, key_at)
    if key > after - key_at - 8:
        return int64(-1), int64(ProblemCode.KEY), key, after - key_at - 4
    body = key_at + 4 + max(key, int64(0)) + 4
    value = i32(data, body - 4)
    if value < 0:
        return int64(-1), int64(ProblemCode.NULL_WRAPPER), int64(0), int64(0)
    if value > after - body:
        return int64(-1), int64(ProblemCode.VALUE), value, after - body
    if value < after - body:
        return int64(-1), int64(ProblemCode.TRAILING), value, after - body
    return body, int64(0), int64(0), int64(0)


@kernel
def _message_row(data: Array, pos: int, batch: Row, magic: int, attributes: int) -> None:
    """What a row of the batch table says of a wrapper, or of a run that starts with this message."""
    plain = attributes & CODEC == 0
    batch.attributes = attributes
    batch.count = 1 if plain else -1
    batch.crc = int64(1) if plain else u32(data, pos + 12) + 2
    batch.base = 0
    batch.timestamp = i64(data, pos + 18) if magic == 1 else int64(-1)
    batch.last = i64(data, pos)
    batch.producer = -1
    batch.epoch = -1
    batch.sequence = -1
    batch.leader = -1
    batch.codec = attributes & CODEC


@kernel
def _in_wrapper(batch: Row, parent: Row, parent_row: int) -> None:
    """The outermost wrapper decides about codec, timestamp and timestamp type, and its checksum covers all."""
    codec = batch.codec
    batch.arena = 1
    batch.parent = parent_row
    batch.wrapped = 1
    batch.attributes = codec | parent.attributes & ~int64(CODEC)
    batch.timestamp = parent.timestamp
    batch.codec = parent.codec
    if codec == 0:
        batch.crc = parent.crc


@kernel
def scan(
    data: Array,
    starts: Array,
    lengths: Array,
    parents: Array,
    table: Array,
    problems: Array,
    consumed: Array,
    check: bool,
    states: Array,
) -> int:
    """Writes the batch table of the record sets ``data[starts[i] : starts[i] + lengths[i]]``.

    ``parents`` is empty for record sets of a log or a frame. For what wrappers held, it is the table of the level
    above. The sets belong to its rows one by one. ``consumed[i]`` becomes the number of bytes of set ``i`` up to the
    entry that is cut off. It may also be the entry after which the framing is lost. ``check``: whether checksums are of
    interest.

    Returns ``FULL`` when ``table`` or ``problems`` is full.
    """
    state = states[0]
    inner = parents.shape[0] > 0
    for one in range(state.entry, starts.shape[0]):
        begin = starts[one]
        end = begin + lengths[one]
        if begin < 0 or lengths[one] < 0 or end > data.shape[0]:
            raise ValueError("a record set lies outside of the buffer")
        pos = begin if state.pos < 0 else state.pos
        # Row of the run that the last entry belongs to. A run does not go on after anything else.
        run = int64(-1)
        while True:
            # An entry writes at most one row and one problem.
            if state.entries >= table.shape[0] or state.problems >= problems.shape[0]:
                state.entry = one
                state.pos = pos
                return FULL
            left = end - pos
            size = int64(0)
            if left >= LOG_OVERHEAD:
                size = i32(data, pos + 8)
            where = pos
            record_set = int64(one)
            if inner:
                where = parents[one].origin
                record_set = parents[one].record_set
            if left < LOG_OVERHEAD or size > left - LOG_OVERHEAD:
                # The broker cuts a Fetch response where its size limit falls (KIP-74); inside a wrapper nothing does.
                if inner and (left > 0 or pos == begin):
                    _report(problems, state, record_set, where, int64(ProblemCode.CUT_OFF), left, _ZERO)
                break
            if size < LEAST_MESSAGE:
                # Where the next entry starts is not known either.
                _report(problems, state, record_set, where, int64(ProblemCode.SIZE), size, _ZERO)
                break
            magic = int64(np.int8(data[pos + 16]))
            start = pos
            pos += LOG_OVERHEAD + size
            problem = int64(0)
            a = magic
            b = int64(0)
            attributes = int64(0)
            body = start
            if inner and magic != parents[one].magic:
                problem = int64(ProblemCode.MIXED)
                b = parents[one].magic
            elif magic < 0 or magic > 2:
                problem = int64(ProblemCode.MAGIC)
            elif size < (LEAST_BATCH if magic == 2 else LEAST_MESSAGE + 8 * magic):
                problem = int64(ProblemCode.SHORT_BATCH)
                a = size
                b = magic
            elif magic < 2:
                attributes = int64(data[start + 17])
                if attributes & CODEC:
                    body, problem, a, b = _value_of_wrapper(data, start + 18 + 8 * magic, pos)
                elif run >= 0:
                    batch = table[run]
                    if batch.magic == magic and (batch.attributes ^ attributes) & LOG_APPEND_TIME == 0:
                        batch.end = pos
                        batch.count += 1
                        batch.last = i64(data, start)
                        continue
            run = int64(-1)
            if problem != 0:
                _report(problems, state, record_set, where, problem, a, b)
                continue
            batch = table[state.entries]
            batch.record_set = record_set
            batch.pos = start
            batch.end = pos
            batch.magic = magic
            batch.first_row = 0
            batch.rows = 0
            if magic == 2:
                _read_batch(data, start, pos, check, batch)
            else:
                batch.body = body
                batch.origin = where
                batch.arena = 0
                batch.parent = -1
                batch.wrapped = 0
                _message_row(data, start, batch, magic, attributes)
                if inner:
                    _in_wrapper(batch, parents[one], one)
                if attributes & CODEC == 0:
                    run = state.entries
            state.entries += 1
        consumed[one] = pos - begin
        state.pos = -1
    state.entry = starts.shape[0]
    return DONE


# --- steps of reading a record ----------------------------------------------------------------------------------------


@inlined
def _varint(source: Array, at: int, end: int, most: int) -> tuple[int, int]:
    """A zigzag varint: (value, position after it), -1 if there is none. ``at`` is inside of the array or its end.

    The two usual sizes are branches. The processor guesses which, while it would have to wait for a computed size.
    """
    word = load64(source, at) if at <= source.shape[0] - 8 else _NO_VARINT
    if word & np.uint64(0x80) == np.uint64(0):
        return int64(word >> np.uint64(1) & np.uint64(0x3F)) ^ -int64(word & np.uint64(1)), at + 1
    if word & np.uint64(0x8000) == np.uint64(0):
        word = word & np.uint64(0x7F) | (word >> np.uint64(1)) & np.uint64(0x3F80)
        return int64(word >> np.uint64(1)) ^ -int64(word & np.uint64(1)), at + 2
    return long_varint(source, at, end, most)


@inlined
def _clear(bitmap: Array, index: int) -> None:
    bitmap[index >> 3] &= np.uint8(0xFF ^ (1 << (index & 7)))


@inlined
def _put(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """Copies a key or header that is inside of ``source``; nothing if ``target`` is too small."""
    # copy_wide: up to 32 bytes after the last are read and written.
    if size <= WIDE and at + size <= source.shape[0] - 32 and to + size + 32 <= target.shape[0]:
        copy_wide(source, at, target, to, size)
    else:
        copy(source, at, target, to, size)


@inlined
def _put_value(source: Array, at: int, target: Array, to: int, size: int) -> None:
    """The same for what is longer as a rule."""
    # copy_long: up to 64 bytes after the last.
    if size <= WIDE and at + size <= source.shape[0] - 64 and to + size + 64 <= target.shape[0]:
        copy_long(source, at, target, to, size)
    else:
        copy(source, at, target, to, size)


@inlined
def _record(source: Array, pos: int, after: int) -> tuple[int, int, int, int, int, int, int]:
    """The fields of the record ``source[pos:after]``. (Position of its headers or -1, timestamp delta, offset delta,
    position and size of the key, position and size of the value.) A size of -1 is null."""
    none = int64(-1)
    delta, at = _varint(source, pos + 1, after, _LONG)
    if at < 0:
        return none, delta, int64(0), none, none, none, none
    step, at = _varint(source, at, after, _SHORT)
    if at < 0:
        return none, delta, step, none, none, none, none
    key_size, at = _varint(source, at, after, _SHORT)
    if at < 0 or at > after or key_size > after - at:
        return none, delta, step, none, none, none, none
    key = at
    if key_size > 0:
        at += key_size
    value_size, at = _varint(source, at, after, _SHORT)
    if at < 0 or at > after or value_size > after - at:
        return none, delta, step, none, none, none, none
    value = at
    if value_size > 0:
        at += value_size
    return at, delta, step, key, key_size, value, value_size


@inlined
def _message(source: Array, header_end: int, after: int) -> tuple[int, int, int, int, int]:
    """Key and value of a message of magic 0 or 1: (problem, position and size of the key, of the value)."""
    key_size = i32(source, header_end)
    key = header_end + 4
    if key_size > after - key - 4:
        return int64(ProblemCode.KEY), key, key_size, key, int64(0)
    value = key + max(key_size, int64(0)) + 4
    value_size = i32(source, value - 4)
    if value_size > after - value:
        return int64(ProblemCode.VALUE), key, key_size, value, value_size
    if max(value_size, int64(0)) != after - value:
        return int64(ProblemCode.TRAILING), key, key_size, value, value_size
    return int64(0), key, key_size, value, value_size


# --- headers ----------------------------------------------------------------------------------------------------------


@inlined
def _header_size(source: Array, at: int, end: int) -> tuple[int, int]:
    """A varint of up to 32 bits: (value, position after it), -1 if there is none."""
    quick = short_varint(load64(source, at)) if at <= source.shape[0] - 8 else int64(0)
    if quick != 0:
        return quick >> 8, at + (quick & 255)
    return long_varint(source, at, end, _SHORT)


@inlined
def _read_headers(source: Array, at: int, after: int, wanted: bool, headers: HeaderColumns, used: Row) -> Any:
    """Reads the headers in ``source[at:after]``, and writes them where ``used`` says (and updates it).

    Returns a ``ProblemCode``, 0 if there is none, or -1 if an output is full.
    """
    count, at = _header_size(source, at, after)
    if at > after:
        # It is no number: its last bytes are those of whatever follows.
        count = int64(0)
    used.count = count
    used.detail = count
    if at < 0 or at > after:
        # No number to report: its last bytes, if there are any, are those of something else.
        used.detail = 0
        return int64(ProblemCode.RECORD_FIELD)
    if count < 0 or count > (after - at) // 2:
        return int64(ProblemCode.HEADER_COUNT)
    header = used.header
    key_pos = used.key
    value_pos = used.value
    nulls = used.nulls
    for _ in range(count):
        name_size, name = _header_size(source, at, after)
        if name < 0 or name > after or name_size < 0 or name_size > after - name:
            return int64(ProblemCode.HEADER)
        size, content = _header_size(source, name + name_size, after)
        if content < 0 or content > after or size > after - content:
            return int64(ProblemCode.HEADER)
        at = content + max(size, int64(0))
        if not wanted:
            continue
        if (
            header + 2 > headers.key_at.shape[0]
            or nulls >= headers.null.shape[0]
            or key_pos + name_size + SLACK > headers.key.shape[0]
            or value_pos + size + SLACK > headers.value.shape[0]
        ):
            return int64(-1)
        _put(source, name, headers.key, key_pos, name_size)
        key_pos += name_size
        if size < 0:
            headers.null[nulls] = header
            nulls += 1
        else:
            _put(source, content, headers.value, value_pos, size)
            value_pos += size
        header += 1
        headers.key_at[header] = key_pos
        headers.value_at[header] = value_pos
    used.header = header
    used.key = key_pos
    used.value = value_pos
    used.nulls = nulls
    used.detail = after - at
    return int64(0) if at == after else int64(ProblemCode.RECORD_TRAILING)


@kernel
def _learn(words: Array, places: Array, source: Array, section: int, size: int, count: int) -> None:
    """Makes a form of the headers in ``source[section : section + size]``, which were read already.

    The records of a producer tend to have the same headers with values of the same length. Examples are a trace id and
    a content type. The form is what such a section has in common with the next. That is all bytes but those of the
    values. A section that agrees with it needs no parsing, so the processor does not wait from length to length.
    ``places`` gets where each value is in the section and how long it is.
    """
    words[:] = np.uint64(0)
    for byte in range(size):
        words[((byte >> 5) << 3) + 4 + (byte >> 3 & 3)] |= _BYTE << np.uint64(8 * (byte & 7))
    end = section + size
    _, at = long_varint(source, section, end, _SHORT)
    for header in range(count):
        length, at = long_varint(source, at, end, _SHORT)
        length, at = long_varint(source, at + length, end, _SHORT)
        length = max(length, int64(0))
        places[2 * header] = at - section
        places[2 * header + 1] = length
        for byte in range(at - section, at - section + length):
            words[((byte >> 5) << 3) + 4 + (byte >> 3 & 3)] &= ~(_BYTE << np.uint64(8 * (byte & 7)))
        at += length
    for word in range((size + 7) >> 3):
        slot = ((word >> 2) << 3) + (word & 3)
        words[slot] = load64(source, section + 8 * word) & words[slot + 4]


@inlined
def _like_form(source: Array, section: int, after: int, form: Row, words: Array) -> Any:
    """Whether the headers in ``source[section:after]`` have the form."""
    # unlike_wide reads whole steps of 32 bytes, of which the last begins before ``after``.
    return (
        after - section == form.size
        and after + 32 <= source.shape[0]
        and unlike_wide(source, section, words, 0, form.steps) == np.uint64(0)
    )


@inlined
def _repeat_form(
    source: Array,
    section: int,
    headers: HeaderColumns,
    scratch: Scratch,
    form: Row,
    header: int,
    key_pos: int,
    value_pos: int,
    nulls: int,
) -> tuple[int, int, int, int]:
    """Writes headers that have the form. Returns what is in use of the four outputs after that; -1 where one is
    full."""
    if (
        header > form.header_room
        or key_pos > form.key_room
        or value_pos > form.value_room
        or nulls + form.nulls > headers.null.shape[0]
    ):
        return int64(-1), key_pos, value_pos, nulls
    # What is written below could be the form, for all that LLVM knows. Its fields would be loaded again and again.
    first = form.header
    count = form.count
    key = form.key
    keys = form.keys
    value = form.value
    for which in range(form.null, form.null + form.nulls):
        headers.null[nulls] = headers.null[which] + (header - first)
        nulls += 1
    # The rooms of a form leave space for what the steps of these write beyond their end.
    shift_wide(headers.key_at, first + 1, header + 1, count, key_pos - key)
    shift_wide(headers.value_at, first + 1, header + 1, count, value_pos - value)
    copy_wide(headers.key, key, headers.key, key_pos, keys)
    places = scratch.places
    for which in range(count):
        size = places[2 * which + 1]
        copy_wide(source, section + places[2 * which], headers.value, value_pos, size)
        value_pos += size
    return header + count, key_pos + keys, value_pos, nulls


@kernel
def _consider_form(
    source: Array,
    section: int,
    after: int,
    headers: HeaderColumns,
    scratch: Scratch,
    header: int,
    key_pos: int,
    value_pos: int,
    nulls: int,
) -> None:
    """Learns the form of headers that were just read, if it can be one. The less often after each attempt in vain.

    The last four arguments say what was in use of the outputs before.
    """
    form = scratch.form[0]
    used = scratch.headers[0]
    size = after - section
    if size > 32 * FORM_STEPS or used.count > FORM_HEADERS or after + 32 > source.shape[0]:
        return
    form.wait = form.backoff
    form.backoff = min(2 * form.backoff, int64(256))
    form.size = size
    form.steps = (size + 31) >> 5
    form.header = header
    form.count = used.count
    form.key = key_pos
    form.keys = used.key - key_pos
    form.value = value_pos
    form.null = nulls
    form.nulls = used.nulls - nulls
    form.header_room = headers.key_at.shape[0] - form.count - 16
    form.key_room = headers.key.shape[0] - form.keys - SLACK
    form.value_room = headers.value.shape[0] - size - SLACK
    _learn(scratch.words, scratch.places, source, section, size, form.count)


@inlined
def _headers(
    source: Array,
    section: int,
    after: int,
    wanted: bool,
    headers: HeaderColumns,
    scratch: Scratch,
    header: int,
    key_pos: int,
    value_pos: int,
    nulls: int,
) -> tuple[int, int, int, int, int, int]:
    """Reads the headers in ``source[section:after]``, of which there is one at least, and writes them if ``wanted``.

    Returns (problem or -1 if an output is full, its number, what is in use of the four outputs after that).
    """
    form = scratch.form[0]
    if _like_form(source, section, after, form, scratch.words):
        form.wait = 0
        form.backoff = 1
        if not wanted:
            return int64(0), int64(0), header, key_pos, value_pos, nulls
        header, key_pos, value_pos, nulls = _repeat_form(
            source, section, headers, scratch, form, header, key_pos, value_pos, nulls
        )
        return min(header, int64(0)), int64(0), header, key_pos, value_pos, nulls
    used = scratch.headers[0]
    used.header = header
    used.key = key_pos
    used.value = value_pos
    used.nulls = nulls
    failed = _read_headers(source, section, after, wanted, headers, used)
    if failed != 0:
        detail = used.detail if failed != ProblemCode.HEADER else int64(0)
        return failed, detail, header, key_pos, value_pos, nulls
    form.wait -= 1
    if form.wait < 0:
        _consider_form(source, section, after, headers, scratch, header, key_pos, value_pos, nulls)
    return int64(0), int64(0), used.header, used.key, used.value, used.nulls


# --- records ----------------------------------------------------------------------------------------------------------


@inlined
def _read_entry(
    source: Array,
    batch: Row,
    wanted: Wanted,
    columns: Columns,
    keys: Texts,
    values: Texts,
    headers: HeaderColumns,
    scratch: Scratch,
    problems: Array,
    state: Row,
) -> int:
    """Reads the records of one row of the batch table. ``state`` says what is in use of each output."""
    pos = batch.body
    end = batch.end
    count = batch.count
    magic = batch.magic
    base = batch.base
    base_timestamp = batch.timestamp
    base_sequence = batch.sequence
    append_time = batch.attributes & LOG_APPEND_TIME != 0
    own_time = magic == 1 and not (batch.wrapped != 0 and append_time)
    is_control = magic == 2 and batch.attributes & CONTROL != 0 and columns.control.shape[0] > 0
    right = batch.crc != 0
    # Other records than plain messages stand where their batch or wrapper does.
    own_position = magic < 2 and batch.arena == 0
    row = state.row
    key_pos = state.key
    value_pos = state.value
    header = state.header
    header_key = state.header_key
    header_value = state.header_value
    null_keys = state.null_keys
    null_values = state.null_values
    null_timestamps = state.null_timestamps
    wrong = state.wrong_crcs
    null_headers = state.null_header_values
    # The first problem of the entry: record number, position, code and two numbers.
    code = int64(0)
    bad_at = int64(0)
    bad_a = int64(0)
    bad_b = int64(0)
    claimed = count
    if magic == 2:
        # A count is never believed beyond what the bytes can hold.
        count = min(count, (end - pos) // _LEAST_RECORD)
        if claimed < 0:
            code = int64(ProblemCode.COUNT)
            bad_at = pos - 4
            bad_a = claimed
    index = int64(0)
    while index < count and (magic < 2 or pos != end):
        number = index
        index += 1
        start = pos
        failed = int64(0)
        fail_a = number
        fail_b = int64(0)
        row_header = header
        row_header_key = header_key
        row_header_value = header_value
        row_null_headers = null_headers
        when = base_timestamp
        order = int64(-1)
        row_right = right
        if magic == 2:
            size, pos = _varint(source, pos, end, _SHORT)
            if pos < 0 or pos > end or size < 0 or size > end - pos:
                # Where the next record starts is not known: the rest of the batch is lost.
                if code == 0:
                    code = int64(ProblemCode.RECORD_LENGTH)
                    bad_at = start
                    bad_a = number
                    bad_b = size
                break
            after = pos + size
            section, delta, step, key, key_size, value, value_size = _record(source, pos, after)
            if section < 0:
                failed = int64(ProblemCode.RECORD_FIELD)
            elif section + 1 != after or source[section] != 0:
                failed, fail_b, header, header_key, header_value, null_headers = _headers(
                    source,
                    section,
                    after,
                    wanted.headers,
                    headers,
                    scratch,
                    header,
                    header_key,
                    header_value,
                    null_headers,
                )
                if failed < 0:
                    return FULL
            where = base + step
            if not append_time:
                when = base_timestamp + delta
            if base_sequence >= 0:
                # Sequence numbers wrap from 2**31 - 1 to 0 (Kafka's incrementSequence).
                order = base_sequence + step
                if order >= _INT32:
                    order -= _INT32
                order = int64(np.int32(order))
        else:
            # Framing was checked by scan. The message is whole and at least as long as its fixed fields.
            after = pos + LOG_OVERHEAD + i32(source, pos + 8)
            where = base + i64(source, pos)
            if own_time:
                when = i64(source, pos + 18)
            if wanted.crc and crc32_of(source, pos + 16, after) != u32(source, pos + 12):
                row_right = False
            failed, key, key_size, value, value_size = _message(source, pos + 18 + 8 * magic, after)
            if failed == ProblemCode.KEY:
                fail_a = key_size
                fail_b = after - key
            elif failed != 0:
                fail_a = max(value_size, int64(0))
                fail_b = after - value
        pos = after
        if failed != 0:
            if magic < 2:
                # Each message is an entry of its own.
                if state.problems >= problems.shape[0]:
                    return FULL_OF_PROBLEMS
                reported = start if own_position else batch.origin
                _report(problems, state, batch.record_set, reported, failed, fail_a, fail_b)
            elif code == 0:
                code = failed
                bad_at = start
                bad_a = fail_a
                bad_b = fail_b
            header = row_header
            header_key = row_header_key
            header_value = row_header_value
            null_headers = row_null_headers
            continue
        columns.offset[np.uint64(row)] = where
        if when == -1 or when < FIRST_MS or when > LAST_MS:
            columns.timestamp[np.uint64(row)] = 0
            _clear(columns.timestamp_valid, row)
            null_timestamps += 1
        else:
            columns.timestamp[np.uint64(row)] = when * 1000
        columns.sequence[np.uint64(row)] = order
        if columns.position.shape[0] > 0:
            columns.position[np.uint64(row)] = start if own_position else batch.origin
        if not row_right:
            _clear(columns.crc_ok, row)
            wrong += 1
        if is_control and key_size >= 4:
            # Key: version int16, type int16 (KIP-98). A shorter key is kept as it is, without a type.
            columns.control[np.uint64(row)] = i16(source, key + 2)
        if wanted.key:
            if key_size < 0:
                _clear(keys.valid, row)
                null_keys += 1
            else:
                if key_pos + key_size + SLACK > keys.data.shape[0]:
                    return FULL
                _put(source, key, keys.data, key_pos, key_size)
                key_pos += key_size
            keys.at[np.uint64(row + 1)] = key_pos
        if wanted.value:
            if value_size < 0:
                _clear(values.valid, row)
                null_values += 1
            else:
                _put_value(source, value, values.data, value_pos, value_size)
                value_pos += value_size
            values.at[np.uint64(row + 1)] = value_pos
        if wanted.headers:
            headers.at[np.uint64(row + 1)] = header
        row += 1
    if code == 0 and magic == 2:
        bad_at = pos
        bad_a = claimed
        if index < claimed:
            code = int64(ProblemCode.RECORDS_MISSING)
            bad_b = index
        elif pos != end:
            code = int64(ProblemCode.BATCH_TRAILING)
            bad_b = end - pos
    if code != 0:
        if state.problems >= problems.shape[0]:
            return FULL_OF_PROBLEMS
        reported = batch.origin if batch.arena != 0 else bad_at
        _report(problems, state, batch.record_set, reported, code, bad_a, bad_b)
    batch.first_row = state.row
    batch.rows = row - state.row
    state.row = row
    state.key = key_pos
    state.value = value_pos
    state.header = header
    state.header_key = header_key
    state.header_value = header_value
    state.null_keys = null_keys
    state.null_values = null_values
    state.null_timestamps = null_timestamps
    state.wrong_crcs = wrong
    state.null_header_values = null_headers
    return DONE


@kernel
def read_records(
    data: Array,
    arena: Array,
    table: Array,
    wanted: Wanted,
    columns: Columns,
    keys: Texts,
    values: Texts,
    headers: HeaderColumns,
    scratch: Scratch,
    problems: Array,
    states: Array,
) -> int:
    """Reads the records of the batch table into columns.

    ``columns`` must have as many rows as the counts of the table together. ``values.data`` must hold all bodies (and
    slack). ``keys.data``, ``headers`` and ``problems`` may turn out too small: ``FULL`` or ``FULL_OF_PROBLEMS``, and
    again.
    """
    state = states[0]
    form = scratch.form[0]
    form.size = -1
    form.wait = 0
    form.backoff = 1
    for entry in range(state.entry, table.shape[0]):
        state.entry = entry
        before = state.problems
        batch = table[entry]
        source = arena if batch.arena != 0 else data
        said = _read_entry(source, batch, wanted, columns, keys, values, headers, scratch, problems, state)
        if said != DONE:
            # The entry is read again from its beginning: its problems would be reported twice.
            state.problems = before
            return said
    state.entry = table.shape[0]
    return DONE


@kernel
def uniform(columns: Array, same: Array) -> None:
    """``same[c]`` becomes 1 where column ``c`` of a batch table, given as plain numbers, has one value only, else 0."""
    for column in range(same.shape[0]):
        same[column] = 1
    left = same.shape[0]
    for row in range(1, columns.shape[0]):
        for column in range(same.shape[0]):
            if same[column] != 0 and columns[row, column] != columns[0, column]:
                same[column] = 0
                left -= 1
        if left == 0:
            return
