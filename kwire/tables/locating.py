"""Fields of many frames, found without objects: ``Programs`` runs programs of ``kwire.codec.locate`` over ``Frames``,
``Names`` numbers the byte strings that they find over and over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kwire import schema
from kwire.capture.frames import Frames
from kwire.codec.locate import (
    FAIL_CODE,
    FAIL_JOB,
    FAIL_OFFSET,
    FAIL_WHY,
    JOB_CODE,
    JOB_COLUMNS,
    JOB_END,
    JOB_START,
    Program,
    ProgramSet,
    locate,
)
from kwire.protocol.framing import intern_all
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema.model import StructLayout, layout

__all__ = ["Failure", "Names", "Programs", "layouts"]

Array = Any


def layouts(api: int, response: int, version: int) -> list[StructLayout] | None:
    """The layouts of header and body of a kind of frame; None where the schemas have none."""
    message = schema.response(api) if response else schema.request(api)
    if message is None or version not in message.versions:
        return None
    if response:
        header = layout(schema.message("ResponseHeader"), response_header_version(api, version))
    else:
        header = layout(schema.message("RequestHeader"), request_header_version(api, version))
    return [header, layout(message, version)]


class Failure:
    """A frame that could not be read to its end: ``row`` is its number among the frames."""

    def __init__(self, rows: Array, failure: list[int], programs: ProgramSet) -> None:
        self.row = int(rows[failure[FAIL_JOB]])
        self._failure = failure
        self._programs = programs

    def sentence(self, frames: Frames) -> str:
        """Which field could not be read, and why."""
        path, _, what = self._programs.explain(self._failure[FAIL_CODE], self._failure[FAIL_WHY]).partition(": ")
        kind = "Response" if frames["response"][self.row] else "Request"
        at = self._failure[FAIL_OFFSET] - int(frames["off"][self.row])
        name = schema.api_keys()[int(frames["api"][self.row])]
        return f"{name}{kind} v{frames['version'][self.row]} {path} at byte {at}: {what}"


class Programs:
    """Programs of ``kwire.codec.locate``, made by ``make(API key, 1 for a response, version)`` when such a frame first
    turns up."""

    def __init__(self, make: Callable[[int, int, int], Program | None], registers: int) -> None:
        self._make = make
        self._registers = registers
        self._programs: dict[tuple[int, int], Program] = {}
        self._none: set[tuple[int, int]] = set()
        self._joined = ProgramSet({}, registers)

    def run(self, frames: Frames, rows: Array) -> tuple[Array, Array, list[Failure]]:
        """Runs them over some rows of ``frames``: (the rows that have a program, what was emitted, failures).

        The first column of what was emitted counts in the rows that have a program.
        """
        # One number for each kind of message: API key, direction, version.
        kinds = (frames["api"][rows] * 2 + frames["response"][rows]) << 16 | frames["version"][rows]
        new = False
        used, index = np.unique(kinds, return_inverse=True)
        for kind in used.tolist():
            key = (kind >> 16, kind & 0xFFFF)
            if key not in self._programs and key not in self._none:
                made = self._make(key[0] >> 1, key[0] & 1, key[1])
                if made is None:
                    self._none.add(key)
                else:
                    self._programs[key] = made
                    new = True
        if new:
            self._joined = ProgramSet(self._programs, self._registers)
        begins = np.array([self._joined.start(kind >> 16, kind & 0xFFFF) for kind in used.tolist()], np.int64)
        code = begins[index] if len(used) else np.zeros(0, np.int64)
        rows, code = rows[code >= 0], code[code >= 0]
        jobs = np.empty((len(rows), JOB_COLUMNS), np.int64)
        jobs[:, JOB_START] = frames["off"][rows]
        jobs[:, JOB_END] = jobs[:, JOB_START] + frames["seen"][rows]
        jobs[:, JOB_CODE] = code
        found, failures = locate(frames.data, jobs, self._joined.code, self._registers)
        return rows, found, [Failure(rows, failure, self._joined) for failure in failures.tolist()]


class Names:
    """Numbers for byte strings that occur over and over."""

    def __init__(self) -> None:
        self._pool = np.zeros(1024, np.uint8)
        self._names = np.zeros((64, 2), np.int64)
        self._table = np.full(256, -1, np.int64)
        self._used = np.zeros(2, np.int64)
        self._values: list[bytes] = []

    def numbers(self, data: Array, offsets: Array, lengths: Array) -> Array:
        """The number of each ``data[offset : offset + length]``, -1 where there is none (ABSENT, or length -1)."""
        found, self._pool, self._names, self._table = intern_all(
            data,
            np.ascontiguousarray(offsets),
            np.ascontiguousarray(lengths),
            self._pool,
            self._names,
            self._table,
            self._used,
        )
        return found

    def values(self) -> list[bytes]:
        """All byte strings, by number."""
        for number in range(len(self._values), int(self._used[0])):
            off, length = self._names[number].tolist()
            self._values.append(self._pool[off : off + length].tobytes())
        return self._values
