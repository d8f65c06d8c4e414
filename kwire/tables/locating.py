"""Fields of many frames, found without objects: programs of ``kwire.kernels.programs``, run over ``Frames``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import Engine, choose
from kwire.kernels.programs import JOB, Program, ProgramSet, Trouble, locate, locate_parts
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema.model import ArrayLayout, FieldLayout, StructLayout, layout
from kwire.tables.columns import distinct

__all__ = ["Failure", "Programs", "layouts"]

Array = Any


def layouts(api: int, response: int, version: int, *, secrets: bool = False) -> list[StructLayout] | None:
    """The layouts of header and body of a kind of frame. None if the schemas have none.

    Columns are made of what is found in them by name. So, without ``secrets``, a field that the schema marks as secret
    has another name here (``HIDDEN``): no column takes it.
    """
    message = schema.response(api) if response else schema.request(api)
    if message is None or version not in message.versions:
        return None
    if response:
        header = layout(schema.message("ResponseHeader"), response_header_version(api, version))
    else:
        header = layout(schema.message("RequestHeader"), request_header_version(api, version))
    body = layout(message, version)
    return [header, body if secrets else _without_secrets(body)]


HIDDEN: Final = " (secret)"
"""How the name of a field ends that no column takes. No name of a schema has a space."""


def _without_secrets(struct: StructLayout) -> StructLayout:
    """``struct`` in which secret fields are not found by their names. Where a record set is secret by its topic, the
    table that shows records hides them."""

    def shown(one: FieldLayout) -> FieldLayout:
        type_ = one.type
        if isinstance(type_, StructLayout):
            type_ = _without_secrets(type_)
        elif isinstance(type_, ArrayLayout) and isinstance(type_.element, StructLayout):
            type_ = replace(type_, element=_without_secrets(type_.element))
        hidden = one.secret not in ("", "topic") and getattr(type_, "name", "") != "records"
        return replace(one, name=one.name + HIDDEN * hidden, type=type_)

    return replace(struct, fields=tuple(map(shown, struct.fields)), tagged=tuple(map(shown, struct.tagged)))


_MESSAGES: Final = 1 << 17
"""API keys and directions, twice as many as there are. What has no key may get any of them."""


class Failure:
    """A frame that could not be read to its end: ``row`` is its number among the frames."""

    def __init__(self, rows: Array, failure: Any, programs: ProgramSet) -> None:
        self.row: int = int(rows[failure["job"]])
        self._failure = failure
        self._programs = programs

    @property
    def is_trailing(self) -> bool:
        """Whether nothing is wrong but that bytes follow the body."""
        return bool(self._failure["trouble"] == Trouble.TRAILING)

    def sentence(self, frames: Frames) -> str:
        """Which field could not be read, and why."""
        failure = self._failure
        path, _, what = self._programs.explain(int(failure["instruction"]), int(failure["trouble"])).partition(": ")
        kind = "Response" if frames["response"][self.row] else "Request"
        at = int(failure["offset"]) - int(frames["off"][self.row])
        name = schema.api_keys()[int(frames["api"][self.row])]
        return f"{name}{kind} v{frames['version'][self.row]} {path} at byte {at}: {what}"


class Programs:
    """Programs by kind of message. ``make(API key, 1 for a response, version)`` makes one when a kind first appears."""

    def __init__(self, make: Callable[[int, int, int], Program | None], registers: int) -> None:
        self._make = make
        self._registers = registers
        self._programs: dict[tuple[int, int], Program] = {}
        self._none: set[tuple[int, int]] = set()
        self._joined = ProgramSet({}, registers)

    def run(self, frames: Frames, rows: Array) -> tuple[Array, Array, list[Failure]]:
        """Runs them over some rows of ``frames``: (the rows that have a program, what was emitted, failures).

        Read what was emitted with functions of ``kwire.kernels.programs``: ``job_column`` (which counts in the rows
        that have a program), ``value_column`` and ``length_column``.
        """
        rows, jobs, engine = self._jobs(frames, rows)
        found, failures = locate(frames.data, jobs, self._joined.code, self._registers, engine)
        return rows, found, self._failures(rows, failures)

    def unreadable(self, frames: Frames, rows: Array) -> Array:
        """Those of some rows of ``frames`` that cannot be read to their end. Others may be wrong as well."""
        rows, jobs, engine = self._jobs(frames, rows)
        _, failures = locate(frames.data, jobs, self._joined.code, self._registers, engine)
        return rows[failures["job"]]

    def parts(self, frames: Frames, rows: Array, most: int) -> Iterator[tuple[Array, Array, list[Failure]]]:
        """What ``run`` gives, about ``most`` emitted rows at a time: see ``kwire.kernels.programs.locate_parts``."""
        rows, jobs, engine = self._jobs(frames, rows)
        for found, failures in locate_parts(frames.data, jobs, self._joined.code, self._registers, engine, most):
            yield rows, found, self._failures(rows, failures)

    def _failures(self, rows: Array, failures: Array) -> list[Failure]:
        return [Failure(rows, failure, self._joined) for failure in failures]

    def _jobs(self, frames: Frames, rows: Array) -> tuple[Array, Array, Engine]:
        """Those of the rows that have a program, a table of JOB for them, and the engine for so much."""
        # One number for each kind of message: version, API key, direction.
        message = frames["api"][rows] * 2 + frames["response"][rows]
        width = int(message.max(initial=0)) + 1
        if message.min(initial=0) < 0:
            width = _MESSAGES
        used, index = distinct(frames["version"][rows] * width + message)
        keys = [(kind % width, kind // width) for kind in used.tolist()]
        new = False
        for key in keys:
            if key not in self._programs and key not in self._none:
                made = self._make(key[0] >> 1, key[0] & 1, key[1])
                if made is None:
                    self._none.add(key)
                else:
                    self._programs[key] = made
                    new = True
        if new:
            self._joined = ProgramSet(self._programs, self._registers)
        begins = np.array([self._joined.start(*key) for key in keys], np.int64)
        code = begins[index] if len(used) else np.zeros(0, np.int64)
        rows, code = rows[code >= 0], code[code >= 0]
        jobs = np.empty(len(rows), JOB)
        jobs["start"] = frames["off"][rows]
        jobs["end"] = jobs["start"] + frames["seen"][rows]
        jobs["program"] = code
        return rows, jobs, choose(int(frames["seen"][rows].sum()))
