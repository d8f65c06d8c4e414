"""Whether bytes are a frame: a whole body, judged by its layout.

A size and a plausible header are found by chance, in record values, in other protocols, after holes. That a whole body
decodes by its program to exactly its size is not. So where it is not certain that a frame begins at some place, its
body is checked. It is run through the program of its API and version (``Apis.layouts``).

Rules kept here:

- What the capture has only in part is judged as far as it goes. Lengths and counts that are there must be possible.
- A body that small numbers fit by themselves is no reason to take anything for Kafka (``is_telling``). An example is a
  Produce request without a topic, or with acks that do not exist.
- At most ``MOST_JUDGED`` bytes of a frame are looked at, and one whose beginning fits is believed. So a verdict is the
  same however much is read at once. Large frames are not waited for. Only where a size is in doubt, all of a frame that
  is there is looked at (``fits_all``).
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import inlined, kernel
from kwire.kernels.layouts import Status
from kwire.kernels.numbers import i16, i32, int64, unsigned_varint
from kwire.kernels.programs import LEAST_TAG, Op, Trouble, interpret, length_there, register_value
from kwire.kernels.shapes import NOWHERE, is_like, missed, place_of
from kwire.schema.keys import ApiKey

__all__ = [
    "FITS",
    "MOST_JUDGED",
    "NOT_KNOWN",
    "NOT_SUPPORTED",
    "NO_API",
    "SO_FAR",
    "TRAILS",
    "UNFIT",
    "UNREADABLE",
    "acks_of",
    "answered_api",
    "fits",
    "fits_all",
    "fits_nearly",
    "fits_some_response",
    "in_a_field",
    "is_telling",
    "is_too_new",
    "left_over",
]

MOST_JUDGED: Final = 4 << 10
"""Bytes."""

UNFIT: Final = 0
"""The bytes are not what their layout says."""
FITS: Final = 1
"""They are, to the last one, or as far as is looked at."""
SO_FAR: Final = 2
"""So far, but the frame goes on after what is there."""
TRAILS: Final = 3
"""They are, and bytes are left over."""
NOT_KNOWN: Final = 4
"""There is no layout of this API and version."""

CLIENT_ID: Final = 10
"""Where the client_id begins, after its length, in a request."""
_EMPTY_ARRAY: Final = 4
"""Bytes of an array without an element."""
_ACKS_SIZE: Final = 2
SHORTEST_FRAME: Final = 14
"""Bytes of a request with no client_id, its size included."""
LEAST_PRODUCED: Final = 14
"""Bytes after acks of a Produce request that has a topic, in the least case. They are a timeout of 4, how many topics
there are, a topic's name or id and how many partitions it has."""

Array = Any


@kernel
def _may_go_on(buf: Array, pos: int, there: int, end: int, instruction: Any, trouble: int) -> bool:
    """Whether what failed at ``pos``, for want of bytes after ``there``, may be whole. The frame goes on to ``end``."""
    if trouble == Trouble.SHORT:
        return True
    if instruction.op == Op.TAGS and trouble == Trouble.COUNT:
        count, after = unsigned_varint(buf, pos, there)
        return count <= (end - after) // LEAST_TAG
    if instruction.op == Op.TAGS and trouble == Trouble.LONG:
        # The position is that of the field that is too long: its number, and its size.
        _number, after = unsigned_varint(buf, pos, there)
        size, after = unsigned_varint(buf, after, there)
        return size <= end - after
    if instruction.op == Op.TAGS:
        return False
    if trouble == Trouble.LONG:
        length, after, _ = length_there(buf, pos, there, instruction.width)
        return length <= end - after
    if trouble == Trouble.COUNT:
        count, after, _ = length_there(buf, pos, there, instruction.width)
        return count <= (end - after) // instruction.least
    return False


@kernel
def _fits(
    buf: Array, at: int, stop: int, most: int, response: int, api: int, version: int, table: Any, scratch: Any
) -> tuple[int, int]:
    """``fits``, in exactly this version, looking at ``most`` bytes."""
    starts = table.layout_starts
    kind = 2 * api + response
    if kind < 0 or kind >= starts.shape[0] or version < 0 or version >= starts.shape[1] or starts[kind, version] < 0:
        return int64(NOT_KNOWN), int64(0)
    begin = at + 4
    end = begin + i32(buf, at)
    most += begin
    there = min(end, stop, most)
    _, trouble, pos, pc = interpret(
        buf,
        begin,
        there,
        table.layouts,
        starts[kind, version],
        scratch.registers,
        scratch.left,
        scratch.no_rows,
        0,
        0,
    )
    said = int64(UNFIT)
    if trouble == Trouble.NONE:
        said = int64(FITS) if there == end else int64(TRAILS)
    elif trouble == Trouble.TRAILING:
        said = int64(TRAILS)
    elif there < end and _may_go_on(buf, pos, there, end, table.layouts[pc], trouble):
        said = int64(FITS) if there == most else int64(SO_FAR)
    return said, pos - begin


@kernel
def fits(
    buf: Array, at: int, stop: int, response: int, api: int, version: int, table: Any, scratch: Any
) -> tuple[int, int]:
    """Whether a frame of this API and version stands at ``at``, size first. Returns (UNFIT, FITS, SO_FAR, TRAILS or
    NOT_KNOWN; how many bytes were looked at). ``buf[at:stop]`` is what is there, at least the size."""
    return _fits_either(buf, at, stop, int64(MOST_JUDGED), response, api, version, table, scratch)


@kernel
def fits_all(buf: Array, at: int, stop: int, response: int, api: int, version: int, table: Any, scratch: Any) -> int:
    """The same, but all of the frame is looked at. How many bytes that were is not said."""
    said, _ = _fits_either(buf, at, stop, stop - at, response, api, version, table, scratch)
    return said


@kernel
def fits_nearly(buf: Array, at: int, stop: int, response: int, api: int, version: int, table: Any, scratch: Any) -> int:
    """``fits_all``, but FITS too where what follows the body has no room for a frame."""
    said, looked = _fits_either(buf, at, stop, stop - at, response, api, version, table, scratch)
    return int64(FITS) if said == TRAILS and i32(buf, at) - looked < SHORTEST_FRAME else said


@kernel
def _fits_either(
    buf: Array, at: int, stop: int, most: int, response: int, api: int, version: int, table: Any, scratch: Any
) -> tuple[int, int]:
    """``fits``, looking at ``most`` bytes."""
    said, looked = _fits(buf, at, stop, most, response, api, version, table, scratch)
    if said == UNFIT and response == 1 and api == ApiKey.API_VERSIONS and version > 0:
        # A broker that does not know the version answers in version 0 (KIP-511).
        said, more = _fits(buf, at, stop, most, response, api, int64(0), table, scratch)
        looked += more
    if said == TRAILS and response == 0 and api == ApiKey.API_VERSIONS and version == 0:
        # librdkafka 0.9 to 1.3 sends an empty array after it, in its first frame.
        end = at + 4 + i32(buf, at)
        if end <= stop and at + 4 + looked + _EMPTY_ARRAY == end and i32(buf, end - _EMPTY_ARRAY) == 0:
            said = int64(FITS)
    return said, looked


@kernel
def in_a_field(
    buf: Array, at: int, inner: int, response: int, api: int, version: int, table: Any, scratch: Any
) -> bool:
    """Whether ``inner`` stands within a field whose length the frame at ``at`` states, like records. In tagged fields
    anything may stand: their lengths do not count."""
    starts = table.layout_starts
    kind = 2 * api + response
    if kind < 0 or kind >= starts.shape[0] or version < 0 or version >= starts.shape[1] or starts[kind, version] < 0:
        return False
    _, trouble, pos, pc = interpret(
        buf, at + 4, inner, table.layouts, starts[kind, version], scratch.registers, scratch.left, scratch.no_rows, 0, 0
    )
    instruction = table.layouts[pc]
    if trouble != Trouble.LONG or instruction.op != Op.BYTES:
        return False
    length, after, _ = length_there(buf, pos, inner, instruction.width)
    inside: bool = after <= inner < after + length
    return inside


@kernel
def fits_some_response(buf: Array, at: int, stop: int, table: Any, scratch: Any) -> bool:
    """Whether what stands at ``at``, size first, is the response of some API and version."""
    starts = table.layout_starts
    for kind in range(1, starts.shape[0], 2):
        for version in range(starts.shape[1]):
            if starts[kind, version] >= 0:
                said, _ = _fits(buf, at, stop, int64(MOST_JUDGED), int64(1), kind // 2, version, table, scratch)
                if said == FITS:
                    return True
    return False


@inlined
def acks_of(buf: Array, begin: int, end: int, version: int, table: Any, scratch: Any) -> tuple[int, int]:
    """acks of a Produce request, and where what follows them begins. ``buf[begin:end]`` of the request is there. (0,
    -1) where that cannot be known."""
    if (
        version < 0
        or version >= table.acks_starts.shape[0]
        or table.acks_starts[version] < 0
        or end - begin < CLIENT_ID
    ):
        return int64(0), int64(-1)
    # A run of the program costs more than all else that is done for a frame.
    after = table.acks_after[version, 0]
    at = begin + CLIENT_ID + max(int64(0), i16(buf, begin + CLIENT_ID - 2))
    if 0 <= after <= end - _ACKS_SIZE - at:
        number = int64(0)
        for k in range(after):
            number = number << 8 | buf[at + k]
        if number == table.acks_after[version, 1]:
            return i16(buf, at + after), at + after + _ACKS_SIZE
    registers = scratch.registers
    _, trouble, pos, _ = interpret(
        buf, begin, end, table.acks_code, table.acks_starts[version], registers, scratch.left, scratch.no_rows, 0, 0
    )
    if trouble != Trouble.NONE:
        return int64(0), int64(-1)
    return register_value(registers, 0), pos


@kernel
def is_telling(buf: Array, at: int, stop: int, api: int, version: int, fitting: int, table: Any, scratch: Any) -> bool:
    """Whether the request at ``at`` shows that a connection is Kafka, or that a frame begins there.

    The first ``fitting`` bytes of the request after its size are what its layout says.

    Of Produce, 8 bytes of an id and a few zeros are one. So acks must be -1, 0 or 1. A topic must be there too, if the
    frame is there to its end.
    """
    if api != ApiKey.PRODUCE:
        return True
    begin = at + 4
    end = begin + i32(buf, at)
    acks, after = acks_of(buf, begin, min(end, stop), version, table, scratch)
    return after < 0 or (-1 <= acks <= 1 and (end > stop or begin + fitting - after >= LEAST_PRODUCED))


NO_API: Final = -1
"""In place of an API: none, or more than one."""


@kernel
def answered_api(buf: Array, at: int, stop: int, table: Any, scratch: Any) -> int:
    """The one API of which what stands at ``at``, size first, can be a response, in some version. Else NO_API."""
    starts = table.layout_starts
    found = int64(NO_API)
    for kind in range(1, starts.shape[0], 2):
        for version in range(starts.shape[1]):
            if starts[kind, version] < 0:
                continue
            said, _ = _fits(buf, at, stop, int64(MOST_JUDGED), int64(1), kind // 2, version, table, scratch)
            if said == FITS:
                if found != NO_API:
                    return int64(NO_API)
                found = int64(kind // 2)
                break
    return found


UNREADABLE: Final = -1
"""In place of how many bytes follow a body: it is not what its layout says."""
NOT_SUPPORTED: Final = -2
"""There is no layout of its version. Of a frame that is ``OK``: an answer to ApiVersions in a future version that is
not one in version 0."""

_UNSUPPORTED_VERSION: Final = 35
"""The error of an ApiVersions response that fell back to version 0 (KIP-511)."""
_ERROR_CODE: Final = 4
"""Where it stands: after the correlation id."""


@inlined
def _left(
    buf: Array,
    begin: int,
    end: int,
    kind: int,
    version: int,
    table: Any,
    registers: Array,
    left: Array,
    errors: Array,
    n_errors: int,
    row: int,
) -> tuple[int, int, bool]:
    """(How many bytes follow the body of the frame ``buf[begin:end]``, UNREADABLE or NOT_SUPPORTED; how many errors
    there are with its own; whether there was room for them.)"""
    starts = table.layout_starts
    if kind >= starts.shape[0] or version < 0 or version >= starts.shape[1] or starts[kind, version] < 0:
        return int64(NOT_SUPPORTED), n_errors, True
    n_found, trouble, pos, _ = interpret(
        buf, begin, end, table.layouts, starts[kind, version], registers, left, errors, n_errors, row
    )
    if trouble == Trouble.FULL:
        return int64(0), n_errors, False
    if trouble != Trouble.NONE and trouble != Trouble.TRAILING:
        return int64(UNREADABLE), n_errors, True
    return end - pos, n_found, True


@kernel
def is_too_new(table: Any, api: int, response: int, version: int) -> bool:
    """Whether this is an answer to ApiVersions in a version that was asked for. Nobody knows this version here."""
    return response == 1 and api == ApiKey.API_VERSIONS and version > table.apis[int64(ApiKey.API_VERSIONS)].latest


@kernel
def left_over(
    buf: Array,
    rows: Array,
    first: int,
    table: Any,
    registers: Array,
    left: Array,
    errors: Array,
    n_errors: int,
    found: Array,
    memory: Any,
) -> tuple[int, int, int]:
    """Writes into ``found``, from ``first`` on, how many bytes follow the body of each frame that is ``OK`` otherwise.
    That is 0 where it ends with the frame, as it should. It is 0 too where its version has no layout, though it should.
    Other values are UNREADABLE and NOT_SUPPORTED.

    ``errors`` gets the error codes of responses, as ``programs.interpret`` writes rows, after the ``n_errors`` that are
    there. A table without a row stays so. Returns (how many frames are done, how many errors there are, of how many of
    these frames ``found`` is not 0). Where not all are done, the table must grow. The whole body is run through its
    program, not its beginning only. The exception is a body like one that was (``memory``, see
    ``kwire.kernels.shapes``).
    """
    starts = table.layout_starts
    n_odd = int64(0)
    for k in range(first, rows.shape[0]):
        row = rows[k]
        found[k] = 0
        if row.status != Status.OK or row.api < 0:
            continue
        begin = row.off
        end = begin + row.size
        kind = 2 * row.api + row.response
        version = int64(row.version)
        place = int64(NOWHERE)
        if kind < starts.shape[0] and 0 <= version < starts.shape[1] and starts[kind, version] >= 0:
            place = place_of(memory, kind, version)
            if place >= 0 and is_like(buf, begin, end, memory, place):
                continue
        more, n_found, roomy = _left(buf, begin, end, kind, version, table, registers, left, errors, n_errors, k)
        if not roomy:
            return k, n_errors, n_odd
        if place >= 0:
            whole = more == 0 and n_found == n_errors
            missed(buf, begin, end, table.layouts, starts[kind, version], whole, memory, place)
        if (
            more != 0
            and row.response == 1
            and row.api == ApiKey.API_VERSIONS
            and row.size >= _ERROR_CODE + 2
            and i16(buf, begin + _ERROR_CODE) == _UNSUPPORTED_VERSION
        ):
            plain, n_plain, roomy = _left(buf, begin, end, kind, int64(0), table, registers, left, errors, n_errors, k)
            if not roomy:
                return k, n_errors, n_odd
            if plain == 0 or (more < 0 and plain > 0):
                more, n_found = plain, n_plain
        if more == NOT_SUPPORTED and not is_too_new(table, row.api, row.response, row.version):
            more = int64(0)
        if more != 0:
            found[k] = more
            n_odd += 1
        n_errors = n_found
    return rows.shape[0], n_errors, n_odd
