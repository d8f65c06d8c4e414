"""The bodies of many frames as text: programs of ``kwire.protocol.bodies``, run over ``Frames``.

``Bodies.text`` goes through the frames of a window in parts of about 16 MiB of text. What the kernel declines is left
to the caller, row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.kernels.bodies import CODE, TEXT_JOB, WRITTEN, Pool, Scratch, write
from kwire.kernels.engine import Engine
from kwire.kernels.layouts import joined
from kwire.limits import GROWTH, Limits
from kwire.protocol.bodies import TextProgram, compile_text, error_texts
from kwire.protocol.describe import Shown
from kwire.records.batching import MOST_BYTES

__all__ = ["Bodies", "Part", "untouched"]

Array = Any

_LARGEST = 6
"""Bytes of text that a byte of a string may become, which decides how objects count it."""


@dataclass(frozen=True, slots=True)
class Part:
    """The text of the frames from row ``first`` on and before ``last``.

    ``sizes``: bytes of each of these rows, ``written``: which of them have a text. Those of ``declined`` have none yet.
    """

    first: int
    last: int
    data: Array
    sizes: Array
    written: Array
    declined: Array

    def column(self, first: int, last: int) -> pa.Array:
        """The texts of some of the rows, null for those that have none."""
        ends = np.zeros(self.last - self.first + 1, np.int64)
        np.cumsum(self.sizes, out=ends[1:])
        low, high = first - self.first, last - self.first
        begin = int(ends[low])
        offsets = (ends[low : high + 1] - begin).astype(np.int32)
        there = self.written[low:high]
        valid = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
        text = pa.py_buffer(self.data[begin : int(ends[high])])
        return pa.StringArray.from_buffers(high - low, pa.py_buffer(offsets), text, valid)


def untouched(frames: Frames, rows: Array) -> Part:
    """All frames. None has a text yet. These ``rows`` will have one."""
    n = len(frames)
    return Part(0, n, np.zeros(0, np.uint8), np.zeros(n, np.int64), np.zeros(n, bool), rows)


class Bodies:
    """Programs by kind of message, made when one first appears."""

    def __init__(self, shown: Shown, limits: Limits) -> None:
        self._shown = shown
        self._limits = limits
        self._pool = Pool()
        self._names = error_texts(self._pool)
        self._begins: dict[int, int] = {}
        self._parts: list[Array] = []
        self._length = 0
        self._code = np.zeros(0, CODE)
        self._slots = 0
        self._scratch = Scratch()

    def text(self, frames: Frames, rows: Array, engine: Engine) -> Iterator[Part]:
        """The texts of some rows of ``frames``, in order: the parts are those of all its rows."""
        jobs = self._jobs(frames, rows)
        sizes = np.zeros(len(frames), np.int64)
        written = np.zeros(len(frames), bool)
        done = first = 0
        while done < len(jobs):
            before = done
            done, data = write(
                frames.data,
                jobs,
                before,
                self._code,
                self._slots,
                self._pool.data,
                self._names,
                self._scratch,
                self._limits.text,
                MOST_BYTES,
                engine,
            )
            about, these = jobs[before:done], rows[before:done]
            sizes[these] = about["size"]
            written[these] = about["state"] == WRITTEN
            last = len(frames) if done == len(jobs) else int(these[-1]) + 1
            declined = these[about["state"] != WRITTEN]
            yield Part(first, last, data, sizes[first:last], written[first:last], declined)
            first = last
        if first < len(frames):
            nothing = np.zeros(0, np.uint8)
            yield Part(first, len(frames), nothing, sizes[first:], written[first:], np.zeros(0, np.int64))

    def _jobs(self, frames: Frames, rows: Array) -> Array:
        kinds = (frames["api"][rows] * 2 + frames["response"][rows]) << 16 | frames["version"][rows]
        used, index = np.unique(kinds, return_inverse=True)
        begins = np.array([self._begin(kind) for kind in used.tolist()], np.int64)
        if self._parts:
            self._code = joined([self._code, *self._parts]) if len(self._code) else joined(self._parts)
            self._parts.clear()
        seen = frames["seen"][rows]
        jobs = np.zeros(len(rows), TEXT_JOB)
        jobs["start"] = frames["off"][rows]
        jobs["end"] = jobs["start"] + seen
        # If a body is so large that its objects are counted before there is text, objects write it.
        jobs["program"] = np.where(seen * _LARGEST > self._limits.text, -1, begins[index]) if len(used) else -1
        # ``Limits.for_objects`` of each.
        jobs["objects"] = np.minimum(self._limits.objects, self._limits.for_objects(0) + GROWTH * seen)
        return jobs

    def _begin(self, kind: int) -> int:
        """The first instruction of the program of a kind of frame. -1 for none."""
        found = self._begins.get(kind)
        if found is None:
            made = compile_text(kind >> 17, kind >> 16 & 1, kind & 0xFFFF, self._shown, self._pool)
            found = self._begins[kind] = -1 if made is None else self._joined(made)
        return found

    def _joined(self, made: TextProgram) -> int:
        begin = self._length
        made.code["target"] += begin
        self._parts.append(made.code)
        self._length += len(made.code)
        self._slots = max(self._slots, made.slots)
        return begin
