"""What share messages say, found by programs: the same as the readers of ``kwire.history.shares`` make of bodies.

A body has records, mostly, of which nothing is wanted. So it is not decoded: a program finds ranges of offsets
(``kwire.kernels.programs``), and these become what steps say. Whatever a program cannot read, or has too many parts, is
left to the readers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np

from kwire.capture.frames import Frames
from kwire.history.shares import acks_of
from kwire.history.steps import Found, Said
from kwire.kernels.layouts import ABSENT, Status
from kwire.kernels.programs import Each, Program, compile_program, job_column
from kwire.schema.keys import ApiKey
from kwire.tables.locating import Programs, layouts, remembered
from kwire.tables.topics import Spelled

__all__ = ["ShareColumns"]

Array = Any

_MOST: Final = 4096
"""Parts of one body. Readers bound what a body may become, which so many do not reach."""

_REGISTERS: Final = 11
(
    R_ARRAY, R_TOPIC, R_PARTITION, R_CODE, R_FIRST, R_LAST, R_COUNT, R_GROUP, R_MEMBER, R_EPOCH, R_LOCK,
) = range(_REGISTERS)  # fmt: skip
_PART, _RANGE = range(2)
_ACKS: Final = "topics.partitions.acknowledgement_batches"
_ACQUIRED: Final = "responses.partitions.acquired_records"
_ASKS: Final = {
    "group_id": R_GROUP,
    "member_id": R_MEMBER,
    "share_session_epoch": R_EPOCH,
    "topics.topic_id": R_TOPIC,
    "topics.partitions.partition_index": R_PARTITION,
    f"{_ACKS}.first_offset": R_FIRST,
    f"{_ACKS}.last_offset": R_LAST,
}
_TELLS: Final = {
    "error_code": R_EPOCH,
    "acquisition_lock_timeout_ms": R_LOCK,
    "responses.topic_id": R_TOPIC,
    "responses.partitions.partition_index": R_PARTITION,
    f"{_ACQUIRED}.first_offset": R_FIRST,
    f"{_ACQUIRED}.last_offset": R_LAST,
    f"{_ACQUIRED}.delivery_count": R_COUNT,
}
_OF_CODE: Final = {
    ApiKey.SHARE_FETCH: "responses.partitions.acknowledge_error_code",
    ApiKey.SHARE_ACKNOWLEDGE: "responses.partitions.error_code",
}


@remembered
def _program(secrets: bool, api: int, response: int, version: int) -> Program | None:
    """A row after what stands before the topics, one for each range, and one after each partition."""
    both = layouts(api, response, version, secrets=True)
    if both is None or api not in _OF_CODE:
        return None
    if not secrets and both != layouts(api, response, version):
        return None  # readers leave out what is secret
    parts, ranges = ("responses.partitions", _ACQUIRED) if response else ("topics.partitions", _ACKS)
    names = {one.name for one in both[-1].fields}
    head = "share_session_epoch"
    if response:
        head = "acquisition_lock_timeout_ms" if "acquisition_lock_timeout_ms" in names else "error_message"
    return compile_program(
        both,
        _TELLS | {_OF_CODE[ApiKey(api)]: R_CODE} if response else _ASKS,
        lists={} if response else {f"{_ACKS}.acknowledge_types": R_COUNT},
        emit_after=head,
        emit_each=Each({parts: _PART, ranges: _RANGE}, R_ARRAY),
    )


_AT: Final = range(1, 1 + 2 * _REGISTERS, 2)
"""The places of the values of registers in a row."""
(
    A_ARRAY, A_TOPIC, A_PARTITION, A_CODE, A_FIRST, A_LAST, A_COUNT, A_GROUP, A_MEMBER, A_EPOCH, A_LOCK,
) = _AT  # fmt: skip


class ShareColumns:
    """Finds what the frames of a window say."""

    def __init__(self, secrets: bool = False) -> None:
        self._programs = Programs(partial(_program, secrets), _REGISTERS)
        self._spelled = Spelled()

    def __call__(self, frames: Frames, rows: Array, names: Callable[[UUID, int], str | None]) -> dict[int, Found]:
        """What rows of ``frames`` say, by their number among ``rows``. Those that are left out have to be decoded."""
        good = np.flatnonzero(frames["status"][rows] == Status.OK)
        right, found, failures = self._programs.run(frames, rows[good])
        numbers = frames.numbers[right]
        # Rows are in the order of their numbers.
        number = good if len(right) == len(good) else good[np.searchsorted(frames.numbers[rows[good]], numbers)]
        left = {int(np.searchsorted(numbers, frames.numbers[one.row])) for one in failures}
        if len(found) > _MOST:
            left |= set(np.flatnonzero(np.bincount(job_column(found), minlength=len(right)) > _MOST).tolist())
        made: dict[int, tuple[str | None, str, Said]] = {}
        pieces: list[Any] = []
        response, order = frames["response"][right].tolist(), numbers.tolist()
        for row in found.tolist():
            job, array = row[0], row[A_ARRAY]
            if job in left:
                continue
            if array == ABSENT:
                pieces = []
                made[job] = (None, "", _answer(row)) if response[job] else self._asked(frames, row)
            elif array == _RANGE:
                pieces.append(row)
            elif response[job] or pieces:
                some, pieces = pieces, []
                said, partition = made[job][2], row[A_PARTITION]
                topic = self._topic(frames, row[A_TOPIC], order[job], names)
                if response[job]:
                    acquired = [[one[A_FIRST], one[A_LAST], one[A_COUNT]] for one in some]
                    said["parts"].append([topic, partition, row[A_CODE], acquired])
                else:
                    said["acks"].append([topic, partition, _acks(frames.data, some)])
        places = number.tolist()
        return {places[job]: (one,) for job, one in made.items()}

    def _asked(self, frames: Frames, row: list[int]) -> tuple[str, str, Said]:
        group, member = self._text(frames, row, A_GROUP), self._text(frames, row, A_MEMBER)
        return group or "", "", {"member": member, "epoch": row[A_EPOCH], "acks": []}

    def _text(self, frames: Frames, row: list[int], at: int) -> str | None:
        return self._spelled.text(frames.data, row[at], row[at + 1])

    def _topic(self, frames: Frames, at: int, frame: int, names: Callable[[UUID, int], str | None]) -> list[str | None]:
        found = self._spelled.id(frames.data, at)
        return [None, None] if found is None else [names(found[0], frame), found[1]]


def _answer(row: list[int]) -> Said:
    return {"code": row[A_EPOCH], "lock": 0 if row[A_LOCK] == ABSENT else row[A_LOCK], "parts": []}


def _acks(data: Array, some: list[list[int]]) -> list[list[int]]:
    def types(one: list[int]) -> list[int]:
        at = one[A_COUNT]
        found: list[int] = data[at : at + one[A_COUNT + 1]].view(np.int8).tolist()
        return found

    return acks_of((one[A_FIRST], one[A_LAST], types(one)) for one in some)
