"""Whether payloads begin with the size of a frame, and which frames stand in them one after the other.

A request is known by its header: an API and version that kwire knows, and a client_id that fits. A response has no such
header. So its body is read both ways. Rules kept here (``sized="auto"``):

- Each payload is looked at by itself. What is said of it depends on no other.
- A payload begins with a size where it can be read with one and not without, and the other way round. Where both or
  neither is so, it is ``UNKNOWN``: it is not read, and its row says to give ``sized``.
- A request can be without a size if its header is known. It can be with one if sizes lead to the end of the payload,
  or a header that is known follows the first one. Where both are so, the bodies decide.
- A response can be with a size if the first frame is whole. Then the bodies decide. A response whose body cannot be
  read is ``UNKNOWN``, too: perhaps it is the beginning of one with a size.
- Kernels read the bodies of responses, as far as their verdict is certain: whatever does not fit its layout cannot be
  read, and whatever is written as text can. Objects decide about the others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import OF_A_FRAME, PYTHON, Engine, choose
from kwire.kernels.layouts import CONNECTION, FRAME
from kwire.kernels.names import NameTable
from kwire.kernels.payloads import (
    LEAST_REQUEST,
    LEAST_RESPONSE,
    NO_SIZE,
    SIZED,
    UNKNOWN,
    payload_frames,
    payload_sizes,
)
from kwire.kernels.programs import Program, compile_program
from kwire.limits import Limits
from kwire.payloads import singly
from kwire.payloads.frames import Buffer, buffer_of, forms, known, windows
from kwire.payloads.types import Sized
from kwire.protocol.describe import Shown
from kwire.schema.keys import ApiKey
from kwire.tables.bodies import Bodies
from kwire.tables.locating import Programs, layouts

__all__ = ["Payloads", "cut", "parts_of"]

Array = Any

_NO_SIZE, _MAY_BE_SIZED, _BOTH = 1, 2, 3
"""What ``payload_sizes`` finds."""


class Payloads(NamedTuple):
    """Some payloads of a column: of each whether it begins with a size, and of responses what they answer.

    ``guessed``: nobody has said whether they begin with a size. ``doubtful``: those that have one if they can be read
    so.
    """

    first: int
    column: pa.Array
    sized: Array
    api_keys: pa.Array | None
    api_versions: pa.Array | None
    guessed: bool = False
    doubtful: Array | None = None

    def windows(self) -> Iterator[Payloads]:
        """The same in parts that are decoded at once."""
        for first, part in windows(self.column):
            yield self._part(first, len(part))

    def halves(self) -> Iterator[Payloads]:
        """The same in two parts."""
        middle = len(self.column) // 2
        yield self._part(0, middle)
        yield self._part(middle, len(self.column) - middle)

    def _part(self, first: int, count: int) -> Payloads:
        """``count`` of the payloads, from the one with the number ``first`` among these."""
        column, sized = self.column.slice(first, count), self.sized[first : first + count]
        keys, versions = (
            None if one is None else one.slice(first, count) for one in (self.api_keys, self.api_versions)
        )
        doubtful = None if self.doubtful is None else self.doubtful[first : first + count]
        return Payloads(first, column, sized, keys, versions, self.guessed, doubtful)

    def row(self, number: int, made: singly.Made | None, limits: Limits) -> singly.Row | None:
        """The row of a payload that is decoded by itself. None for null."""
        data, sized = self.column[number].as_py(), int(self.sized[number])
        if data is None:
            return None
        if self.api_keys is None or self.api_versions is None:
            return singly.request_row(data, made, limits, sized)
        of = self.api_keys[number].as_py(), self.api_versions[number].as_py()
        if self.doubtful is not None and self.doubtful[number]:
            sized = singly.sized_as(data, of, limits)
        row = singly.response_row(data, *of, made, limits, sized)
        if self.guessed and sized == NO_SIZE and row["status"] != "ok":
            return singly.response_row(data, *of, made, limits, UNKNOWN)
        return row


def parts_of(
    column: pa.Array,
    sized: Sized,
    limits: Limits,
    api_keys: pa.Array | None = None,
    api_versions: pa.Array | None = None,
    *,
    sure: bool = False,
) -> Iterator[Payloads]:
    """A column in parts that are decoded at once. With ``api_keys`` and ``api_versions`` they are responses.

    ``sure``: none is ``doubtful``. Otherwise the caller asks ``Payloads.row`` for what cannot be read.
    """
    same = np.full(len(column), SIZED if sized is True else NO_SIZE, np.uint8)
    for one in Payloads(0, column, same, api_keys, api_versions).windows():
        yield _with_sizes(one, limits, sure) if sized == "auto" else one


def _with_sizes(one: Payloads, limits: Limits, sure: bool) -> Payloads:
    n, buffer = len(one.column), buffer_of(one.column)
    response = int(one.api_keys is not None)
    found = np.zeros(n, np.uint8)
    choose(OF_A_FRAME * n)(payload_sizes)(buffer.data, buffer.ends, buffer.valid, response, forms(), found)
    sized = np.full(n, UNKNOWN, np.uint8)
    sized[found == _NO_SIZE] = NO_SIZE
    sized[found == _MAY_BE_SIZED] = SIZED
    left, doubtful = np.flatnonzero(found == _BOTH), None
    if one.api_keys is not None and one.api_versions is not None and len(left):
        engine = choose(int((buffer.ends[left + 1] - buffer.ends[left]).sum()))
        # Objects are faster than kernels as Python.
        if engine is not PYTHON:
            answers = _Answers(buffer, known(one.api_keys), known(one.api_versions), limits, engine)
            left, doubtful = answers.decided(left, sized, sure)
    for row in left.tolist():
        of = None
        if one.api_keys is not None and one.api_versions is not None:
            of = one.api_keys[row].as_py(), one.api_versions[row].as_py()
        sized[row] = singly.sized_as(one.column[row].as_py(), of, limits)
    return one._replace(sized=sized, guessed=True, doubtful=doubtful)


class _Kept(threading.local):
    """Programs that one column leaves to the next, in each thread."""

    def __init__(self) -> None:
        self._generation = -1

    def get(self, limits: Limits) -> tuple[Programs, Bodies]:
        """What reads bodies, and what writes them as text."""
        if self._generation != schema.generation():
            self._generation = schema.generation()
            self._programs = Programs(_program, 1)
            self._bodies: dict[Limits, Bodies] = {}
        bodies = self._bodies.get(limits)
        if bodies is None:
            # Nobody sees the text.
            bodies = self._bodies[limits] = Bodies(Shown(secrets=True, payloads=False), limits)
        return self._programs, bodies


_KEPT: Final = _Kept()


def _program(api: int, response: int, version: int) -> Program | None:
    # A broker may answer ApiVersions in another version than it was asked in.
    both = None if api == ApiKey.API_VERSIONS else layouts(api, response, version, secrets=True)
    return None if both is None else compile_program(both, ())


class _Answers:
    """Responses that may begin with a size, as kernels see them."""

    def __init__(self, buffer: Buffer, keys: Array, versions: Array, limits: Limits, engine: Engine) -> None:
        self._buffer, self._keys, self._versions, self._engine = buffer, keys, versions, engine
        self._programs, self._bodies = _KEPT.get(limits)

    def decided(self, rows: Array, sized: Array, sure: bool) -> tuple[Array, Array]:
        """Sets ``sized`` of some of the rows. Returns the rows that are left, and which of all are doubtful."""
        doubtful, asked = np.zeros(len(sized), bool), rows
        rows = rows[(self._keys[rows] >= 0) & (self._versions[rows] >= 0)]
        begins, ends = self._buffer.ends[rows], self._buffer.ends[rows + 1]
        sizes = self._buffer.data[begins[:, None] + np.arange(4)].astype(np.int64) @ (1 << np.array([24, 16, 8, 0]))
        exact = sizes == ends - begins - 4
        whole, first = self._frames(rows, begins, ends), self._frames(rows, begins + 4, begins + 4 + sizes)
        # Where the size is that of the payload, it is one in all likelihood.
        no = np.zeros(len(rows), bool)
        no[self._programs.unreadable(first, np.flatnonzero(~exact))] = True
        sized[rows[no]] = NO_SIZE
        yes = np.zeros(len(rows), bool)
        yes[self._programs.unreadable(whole, np.flatnonzero(~no))] = True
        if not sure:
            sized[rows[yes & exact]] = SIZED
            doubtful[rows[yes & exact]] = True
            yes &= ~exact
        for part in self._bodies.text(first, np.flatnonzero(yes), self._engine):
            sized[rows[part.first : part.last][part.written]] = SIZED
        return asked[sized[asked] == UNKNOWN], doubtful

    def _frames(self, rows: Array, begins: Array, ends: Array) -> Frames:
        """The frames of some rows, if they are there."""
        table = np.zeros(len(rows), FRAME)
        table["api"], table["version"], table["response"] = self._keys[rows], self._versions[rows], 1
        table["off"], table["seen"] = begins, ends - begins
        names = NameTable()
        return Frames(table, self._buffer.data, np.zeros(1, CONNECTION), names.names, names.pool)


def cut(one: Payloads) -> tuple[Payloads, Array]:
    """The frames in some payloads, and of each the number of its payload. A null is one frame, which is null.

    What follows the last whole frame of a payload is one more.
    """
    n, buffer = len(one.column), buffer_of(one.column)
    least = LEAST_REQUEST if one.api_keys is None else LEAST_RESPONSE
    counts, places = np.empty(n, np.int64), np.empty(2 * n, np.int64)
    run = choose(OF_A_FRAME * n)(payload_frames)
    if (most := run(buffer.data, buffer.ends, one.sized, least, counts, places)) > len(places):
        places = np.empty(most, np.int64)
        run(buffer.data, buffer.ends, one.sized, least, counts, places)
    of = np.repeat(np.arange(n), counts)
    ends = np.concatenate([np.zeros(1, np.int64), places[:most]])
    valid = None if buffer.valid.all() else pa.py_buffer(np.packbits(buffer.valid[of], bitorder="little"))
    frames = pa.Array.from_buffers(pa.large_binary(), most, [valid, pa.py_buffer(ends), pa.py_buffer(buffer.data)])
    keys, versions = (None if each is None else each.take(pa.array(of)) for each in (one.api_keys, one.api_versions))
    doubtful = None if one.doubtful is None else one.doubtful[of]
    return Payloads(0, frames, one.sized[of], keys, versions, one.guessed, doubtful), of
