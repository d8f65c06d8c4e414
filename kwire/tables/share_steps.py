"""What share messages say, found by programs: the same as the readers of ``kwire.history.shares`` make of bodies.

A body has records, mostly, of which nothing is wanted. So it is not decoded: a program finds ranges of offsets
(``kwire.kernels.programs``), and these become what steps say. Whatever a program cannot read, or has too many parts, is
left to the readers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from kwire.capture.frames import Frames
from kwire.history.shares import acks_of
from kwire.history.steps import Found, shown
from kwire.kernels.layouts import ABSENT, Status
from kwire.kernels.programs import Each, Program, compile_program, job_column
from kwire.schema.keys import ApiKey
from kwire.tables.locating import Copies, Programs, layouts, remembered
from kwire.tables.topics import Spelled

__all__ = ["ShareColumns"]

Array = Any

_MOST: Final = 4096
"""Parts of one body. Readers bound what a body may become, which so many do not reach."""

_MOST_ROWS: Final = 1 << 14
"""What is found that waits for other windows,"""
_MOST_COPIED: Final = 1 << 20
"""and bytes of its texts, beside those of one window."""

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

_TEXTS: Final = (R_TOPIC, R_COUNT, R_GROUP, R_MEMBER)
_OF_HEAD: Final = [0, A_EPOCH, A_LOCK, A_GROUP, A_GROUP + 1, A_MEMBER, A_MEMBER + 1]
_OF_RANGE: Final = [A_FIRST, A_LAST, A_COUNT, A_COUNT + 1]
_OF_PART: Final = [0, A_TOPIC, A_PARTITION, A_CODE]


class ShareColumns:
    """Finds what the frames of a window say. ``look`` does it while their bytes are there."""

    def __init__(self, secrets: bool = False) -> None:
        self._programs = Programs(partial(_program, secrets), _REGISTERS)
        self._copies = Copies(_TEXTS)
        self._spelled = Spelled()
        self._waiting: list[tuple[Array, Array]] = []
        """Numbers of frames, and what was found in them."""
        self._n_waiting = 0
        """How much that is."""

    def look(self, frames: Frames, rows: Array) -> Array:
        """Looks at rows of ``frames``, for ``__call__``. Gives those of them that have to be decoded."""
        good = rows if frames.all_whole else rows[frames["status"][rows] == Status.OK]
        right, found, failures = self._programs.run(frames, good)
        if len(failures) or len(found) > _MOST:
            left = np.bincount(job_column(found), minlength=len(right)) > _MOST
            left[np.searchsorted(right, [one.row for one in failures])] = True
            found = found[~left[job_column(found)]]
            job_column(found)[:] = (np.cumsum(~left) - 1)[job_column(found)]
            right = right[~left]
        if len(right):
            self._copies.copy(frames.data, found)
            self._waiting.append((frames.numbers[right], found))
            self._n_waiting += len(found)
        return rows[:0] if len(right) == len(rows) else np.setdiff1d(rows, right, assume_unique=True)

    @property
    def full(self) -> bool:
        """Whether what waits takes much memory."""
        return self._n_waiting > _MOST_ROWS or self._copies.size > _MOST_COPIED

    def __call__(
        self, frames: Frames, rows: Array, names: Callable[[UUID, int], str | None], *, steady: bool = False
    ) -> dict[int, Found]:
        """What rows of ``frames`` say that were looked at, by their number among ``rows``, which are in the order of
        their frames. Others have to be decoded. ``steady``: names are the same in all of them."""
        numbers = frames.numbers[rows]
        ready = [one for one in self._waiting if one[0].max() <= numbers[-1]]
        if not ready:
            return {}
        self._waiting = self._waiting[len(ready) :]
        # Jobs count in the frames of their window.
        before = np.cumsum([0, *(len(one[0]) for one in ready[:-1])])
        found = np.concatenate([one[1] for one in ready])
        self._n_waiting -= len(found)
        job_column(found)[:] += np.repeat(before, [len(one[1]) for one in ready])
        places = np.searchsorted(numbers, np.concatenate([one[0] for one in ready]))
        jobs = _Jobs(places.tolist(), frames["response"][rows[places]] == 1, numbers[places].tolist())
        made = self._made(found, jobs, _Texts(self._copies.data, self._spelled, names, steady))
        if not self._waiting and self.full:
            self._copies = Copies(_TEXTS)
        return made

    def _made(self, found: Array, jobs: _Jobs, texts: _Texts) -> dict[int, Found]:
        response, frames, data = jobs.responses.tolist(), jobs.frames, texts.data
        said: list[Any] = [None] * len(response)
        made: dict[int, Found] = {}
        array = found[:, A_ARRAY]
        heads, parts, ranges = (np.flatnonzero(array == one) for one in (ABSENT, _PART, _RANGE))
        for job, epoch, lock, *who in found[heads[:, None], _OF_HEAD].tolist():
            if response[job]:
                owner, what = None, {"code": epoch, "lock": 0 if lock == ABSENT else lock, "parts": []}
            else:
                owner = texts.of(*who[:2]) or ""
                what = {"member": texts.of(*who[2:]), "epoch": epoch, "acks": []}
            said[job] = what
            made[jobs.places[job]] = ((owner, "", what),)
        some, asks = found[ranges[:, None], _OF_RANGE], ~jobs.responses[job_column(found)[ranges]]
        single, many = asks & (some[:, 3] == 1), (some[:, 3] > 1).any()
        some[single, 2] = data[some[single, 2]].view(np.int8)
        some[asks & (some[:, 3] <= 0), 2] = 0
        pieces, begin = some[:, :3].tolist(), 0
        lengths = some[:, 3].tolist() if many else []
        ends = np.searchsorted(ranges, parts).tolist()
        for end, (job, topic, partition, code) in zip(ends, found[parts[:, None], _OF_PART].tolist(), strict=True):
            if response[job]:
                said[job]["parts"].append([texts.topic(topic, frames[job]), partition, code, pieces[begin:end]])
            elif end > begin:
                acks = pieces[begin:end]
                if many:
                    acks = acks_of(map(texts.types, acks, lengths[begin:end]))
                said[job]["acks"].append([texts.topic(topic, frames[job]), partition, acks])
            begin = end
        return made


class _Texts:
    """What stands at places of ``data``: each place has one text. ``names``: the name of a topic before a frame."""

    def __init__(self, data: Array, spelled: Spelled, names: Callable[[UUID, int], str | None], steady: bool) -> None:
        self.data = data
        self._spelled, self._names, self._steady = spelled, names, steady
        self._texts: dict[tuple[int, int], str | None] = {}
        self._topics: dict[int, list[str | None]] = {}

    def of(self, at: int, length: int) -> str | None:
        """The text there. None for a negative length."""
        key = (at, length)
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = self._spelled.text(self.data, at, length)
        return found

    def types(self, one: list[int], length: int) -> tuple[int, int, list[int]]:
        """A range with the types of its offsets."""
        first, last, at = one
        return first, last, [at] if length <= 1 else self.data[at : at + length].view(np.int8).tolist()

    def topic(self, at: int, frame: int) -> list[str | None]:
        """The topic with the id there, as ``topic_of`` has it."""
        there = self._topics.get(at)
        if there is None:
            found = self._spelled.id(self.data, at)
            name = None if found is None else self._names(found[0], frame)
            there = [None if name is None else shown(name), None if found is None else found[1]]
            if self._steady:
                self._topics[at] = there
        return there


class _Jobs(NamedTuple):
    """Frames in which something was found: their places among the rows, whether they are responses, their numbers."""

    places: list[int]
    responses: Array
    frames: list[int]
