"""Frames that stand alone, each a value of a column: what their headers say, as rows of ``layouts.FRAME``.

A value is one whole frame, so nothing is searched and nothing is waited for. Rules kept here:

- A header that is usual is read here: an API and version that are known, a client_id that fits, no tagged field. Of
  every other value the row is ``Status.MALFORMED``, and objects say what it is.
- Bodies are not looked at.
- Frames that stand one after the other, each with its size, are cut apart before (``payload_frames``).
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Status
from kwire.kernels.numbers import i16, i32, int64

__all__ = [
    "LEAST_REQUEST",
    "LEAST_RESPONSE",
    "NO_CLIENT_ID",
    "NO_SIZE",
    "SIZED",
    "TAGGED",
    "UNKNOWN",
    "payload_frames",
    "payload_headers",
    "payload_sizes",
]

NO_CLIENT_ID: Final = 0
TAGGED: Final = 2
"""Versions of the header of a request: the first has no client_id, the last has tagged fields."""
_FIXED: Final = 8
"""Bytes before the client_id: API key, version, correlation id."""
LEAST_REQUEST: Final = _FIXED
LEAST_RESPONSE: Final = 4
"""Bytes of the smallest frame."""

NO_SIZE: Final = 0
SIZED: Final = 1
UNKNOWN: Final = 2
"""Whether a payload begins with the size of its first frame. ``UNKNOWN``: it is not read."""

Array = Any


@kernel
def _form(forms: Array, api: int, version: int) -> int:
    """The version of the header of a request. -1: not known."""
    if 0 <= api < forms.shape[0] and 0 <= version < forms.shape[1]:
        return int64(forms[api, version])
    return int64(-1)


@kernel
def _client_id(data: Array, begin: int, end: int, forms: Array) -> int:
    """The bytes of the client_id of a request (-1: it has none). -2: its header has tagged fields. -3: there is no
    header that is known."""
    if end - begin < _FIXED:
        return int64(-3)
    form = _form(forms, i16(data, begin), i16(data, begin + 2))
    if form < 0:
        return int64(-3)
    if form == NO_CLIENT_ID:
        return int64(-1)
    if end - begin < _FIXED + 2:
        return int64(-3)
    length = i16(data, begin + _FIXED)
    after = begin + _FIXED + 2 + max(length, int64(0))
    if length < -1 or after > end or (form == TAGGED and after == end):
        return int64(-3)
    return int64(-2) if form == TAGGED and data[after] != 0 else int64(length)


@kernel
def _next(data: Array, at: int, end: int, least: int) -> int:
    """Where the frame ends whose size is at ``at``. -1: it is not whole."""
    if end - at < 4:
        return int64(-1)
    size = i32(data, at)
    if size < least or size > end - at - 4:
        return int64(-1)
    return int64(at + 4 + size)


@kernel
def payload_sizes(data: Array, ends: Array, valid: Array, response: int, forms: Array, found: Array) -> int:
    """Says of the payloads ``data[ends[k] : ends[k + 1]]`` whether they begin with a size. Returns how many may.

    ``found`` gets of each, as bits: 1 where it may have no size, 2 where it may have one. Requests are known by their
    headers (``forms``, as of ``payload_headers``), and by sizes that lead to the end. Responses have no such header:
    each may be without a size. One may have a size if its first frame is whole.
    """
    some = int64(0)
    least = LEAST_RESPONSE if response == 1 else LEAST_REQUEST
    for k in range(found.shape[0]):
        begin = ends[k]
        end = ends[k + 1]
        bits = int64(0)
        if valid[k] != 0:
            after = _next(data, begin, end, least)
            at = after
            while 0 <= at < end:
                at = _next(data, at, end, least)
            if response == 1:
                bits = int64(1)
                may = after >= 0
            else:
                bits = int64(_client_id(data, begin, end, forms) >= -2)
                last = after if after >= 0 else end
                may = at == end or (last - begin > 4 and _client_id(data, begin + 4, last, forms) >= -2)
            if may:
                bits |= int64(2)
                some += 1
        found[k] = bits
    return some


@kernel
def payload_frames(data: Array, ends: Array, sized: Array, least: int, counts: Array, places: Array) -> int:
    """Cuts payloads into frames, each with its size. Returns how many there are.

    - ``sized``: of each payload ``NO_SIZE``, ``SIZED`` or ``UNKNOWN``. Only one that is ``SIZED`` is cut apart.
    - ``counts``: gets the frames of each. What follows the last whole frame counts as one.
    - ``places``: gets where each frame ends, as far as there is room for them.
    """
    n = int64(0)
    for k in range(counts.shape[0]):
        at = ends[k]
        end = ends[k + 1]
        before = n
        while True:
            after = _next(data, at, end, least) if sized[k] == SIZED else int64(-1)
            if after < 0:
                after = end
            if n < places.shape[0]:
                places[n] = after
            n += 1
            at = after
            if at >= end:
                break
        counts[k] = n - before
    return n


@kernel
def payload_headers(
    data: Array, ends: Array, valid: Array, sized: Array, response: int, forms: Array, rows: Array, client_ids: Array
) -> int:
    """Fills ``rows`` with the frames ``data[ends[k] : ends[k + 1]]``. Returns how many are not usual.

    - ``valid``: 0 for a null. ``sized``: ``SIZED`` where a frame has its size in front.
    - ``response``: 1 for responses, whose ``api`` and ``version`` the rows have.
    - ``forms``: the version of a request's header by API key and version. -1: not known.
    - ``client_ids``: gets where each client_id begins, and how many bytes it has. -1: none.
    """
    odd = int64(0)
    for k in range(rows.shape[0]):
        begin = ends[k]
        end = ends[k + 1]
        usual = valid[k] != 0 and sized[k] != UNKNOWN
        if sized[k] == SIZED:
            usual = usual and end - begin >= 4 and i32(data, begin) == end - begin - 4
            begin = min(begin + 4, end)
        length = int64(-1)
        row = rows[k]
        if response == 1:
            usual = usual and end - begin >= LEAST_RESPONSE
            row.id = i32(data, begin) if usual else ABSENT
            usual = usual and _form(forms, row.api, row.version) >= 0
        else:
            row.api = ABSENT
            row.version = ABSENT
            row.id = ABSENT
            usual = usual and end - begin >= _FIXED
            if usual:
                row.api = i16(data, begin)
                row.version = i16(data, begin + 2)
                row.id = i32(data, begin + 4)
                length = _client_id(data, begin, end, forms)
                usual = length > -2
        row.number = k
        row.slot = 0
        row.response = response
        row.client_side = 0
        row.status = Status.OK if usual else Status.MALFORMED
        row.reason = Reason.NONE
        row.begin = begin
        row.end = end
        row.time = NO_TIME
        row.order = 0
        row.off = begin
        row.seen = end - begin
        row.size = end - begin
        row.client = -1
        row.latency = ABSENT
        row.detail = 0
        client_ids[0, k] = begin + _FIXED + 2
        client_ids[1, k] = length if usual else int64(-1)
        odd += int64(not usual)
    return odd
