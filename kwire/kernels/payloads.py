"""Frames that stand alone, each a value of a column: what their headers say, as rows of ``layouts.FRAME``.

A value is one whole frame, so nothing is searched and nothing is waited for. Rules kept here:

- A header that is usual is read here: an API and version that are known, a client_id that fits, no tagged field. Of
  every other value the row is ``Status.MALFORMED``, and objects say what it is.
- Bodies are not looked at.
"""

from __future__ import annotations

from typing import Any, Final

from kwire.kernels.engine import kernel
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Status
from kwire.kernels.numbers import i16, i32, int64

__all__ = ["NO_CLIENT_ID", "TAGGED", "payload_headers"]

NO_CLIENT_ID: Final = 0
TAGGED: Final = 2
"""Versions of the header of a request: the first has no client_id, the last has tagged fields."""
_FIXED: Final = 8
"""Bytes before the client_id: API key, version, correlation id."""

Array = Any


@kernel
def _form(forms: Array, api: int, version: int) -> int:
    """The version of the header of a request. -1: not known."""
    if 0 <= api < forms.shape[0] and 0 <= version < forms.shape[1]:
        return int64(forms[api, version])
    return int64(-1)


@kernel
def payload_headers(
    data: Array, ends: Array, valid: Array, sized: int, response: int, forms: Array, rows: Array, client_ids: Array
) -> int:
    """Fills ``rows`` with the frames ``data[ends[k] : ends[k + 1]]``. Returns how many are not usual.

    - ``valid``: 0 for a null. ``sized``: 1 where each frame has its size in front.
    - ``response``: 1 for responses, whose ``api`` and ``version`` the rows have.
    - ``forms``: the version of a request's header by API key and version. -1: not known.
    - ``client_ids``: gets where each client_id begins, and how many bytes it has. -1: none.
    """
    odd = int64(0)
    for k in range(rows.shape[0]):
        begin = ends[k]
        end = ends[k + 1]
        usual = valid[k] != 0
        if sized == 1:
            usual = usual and end - begin >= 4 and i32(data, begin) == end - begin - 4
            begin = min(begin + 4, end)
        length = int64(-1)
        row = rows[k]
        if response == 1:
            usual = usual and end - begin >= 4
            row.id = i32(data, begin) if usual else ABSENT
            usual = usual and _form(forms, row.api, row.version) >= 0
        else:
            row.api = ABSENT
            row.version = ABSENT
            row.id = ABSENT
            usual = usual and end - begin >= _FIXED
            if usual:
                api = i16(data, begin)
                version = i16(data, begin + 2)
                row.api = api
                row.version = version
                row.id = i32(data, begin + 4)
                form = _form(forms, api, version)
                usual = form >= 0
                if form > NO_CLIENT_ID:
                    usual = end - begin >= _FIXED + 2
                    if usual:
                        length = i16(data, begin + _FIXED)
                        after = begin + _FIXED + 2 + max(length, int64(0))
                        usual = length >= -1 and after <= end
                        if form == TAGGED:
                            usual = usual and after < end and data[after] == 0
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
