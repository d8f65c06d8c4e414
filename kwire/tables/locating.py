"""Fields of many frames, found without objects: programs of ``kwire.kernels.programs``, run over ``Frames``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from kwire import schema
from kwire.capture.frames import Frames
from kwire.kernels.engine import Engine, choose
from kwire.kernels.names import NameTable
from kwire.kernels.programs import JOB, UNKNOWN, Program, ProgramSet, Trouble, jobs_of, locate, locate_parts
from kwire.protocol.headers import request_header_version, response_header_version
from kwire.schema.model import ArrayLayout, FieldLayout, StructLayout, layout

__all__ = ["Copies", "Failure", "Programs", "layouts", "remembered"]

Array = Any

_MOST_MADE: Final = 1 << 9
"""Programs of one function that are remembered."""


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


def remembered(make: Callable[..., Program | None]) -> Callable[..., Program | None]:
    """A function that makes programs, and makes each once in a process. Its arguments can be hashed."""

    @lru_cache(_MOST_MADE)
    def made(generation: int, *key: Any) -> Program | None:
        return make(*key)

    return lambda *key: made(schema.generation(), *key)


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


_MESSAGES: Final = 1 << 9
"""API keys and directions: more than Kafka has."""
_VERSIONS: Final = 1 << 5
"""Versions of a message: more than Kafka has."""
_NONE: Final = -1


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


class Copies:
    """Texts that programs found, copied out of their windows: rows of what was emitted stay good without these.

    ``registers``: those that have texts.
    """

    def __init__(self, registers: Iterable[int]) -> None:
        self._columns = np.array(sorted(registers)) * 2 + 1
        self._table = NameTable()

    @property
    def data(self) -> Array:
        """The bytes of all of them."""
        return self._table.pool

    @property
    def size(self) -> int:
        """Bytes of them."""
        return int(self._table.used["bytes"][0])

    def copy(self, data: Array, rows: Array) -> None:
        """Copies the texts of ``rows``, and says in these where they are now."""
        self._table.copy(data, rows, self._columns, choose(0))


class Programs:
    """Programs by kind of message. ``make(API key, 1 for a response, version)`` makes one when a kind first appears."""

    def __init__(self, make: Callable[[int, int, int], Program | None], registers: int) -> None:
        self._make = make
        self._registers = registers
        self._programs: dict[tuple[int, int], Program] = {}
        self._begins: Array = np.full((_MESSAGES, _VERSIONS), UNKNOWN)
        """By kind of message and version: where its program begins."""
        self._others: dict[tuple[int, int], int] = {}
        """The same of those that the table has no room for."""
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
        jobs, kept = np.empty(len(rows), JOB), np.empty(len(rows), np.int64)
        count, size = choose(0)(jobs_of)(frames.table, rows, self._begins, jobs, kept)
        if count >= 0:
            return kept[:count], jobs[:count], choose(size)
        # Kinds that are new, or that the table has no room for.
        code = self._begin(frames["api"][rows] * 2 + frames["response"][rows], frames["version"][rows])
        rows, code = rows[code >= 0], code[code >= 0]
        jobs = np.empty(len(rows), JOB)
        seen = frames["seen"][rows]
        jobs["start"] = frames["off"][rows]
        jobs["end"] = jobs["start"] + seen
        jobs["program"] = code
        return rows, jobs, choose(int(seen.sum()))

    def _begin(self, message: Array, version: Array) -> Array:
        """Where the program of each frame begins, -1 where there is none. Programs are made that are not there yet."""
        if not len(message):
            return np.zeros(0, np.int64)
        if message.min() < 0 or version.min() < 0 or message.max() >= _MESSAGES or version.max() >= _VERSIONS:
            # What has no key, or one that the table has no room for.
            fits = (message >= 0) & (version >= 0) & (message < _MESSAGES) & (version < _VERSIONS)
            made = np.full(len(message), _NONE)
            made[fits] = self._begin(message[fits], version[fits])
            keys = list(zip(message[~fits].tolist(), version[~fits].tolist(), strict=True))
            self._make_all({one for one in keys if one not in self._others})
            made[~fits] = [self._others[one] for one in keys]
            return made
        found = self._begins[message, version]
        if found.min() == UNKNOWN:
            self._make_all(
                set(zip(message[found == UNKNOWN].tolist(), version[found == UNKNOWN].tolist(), strict=True))
            )
            found = self._begins[message, version]
        return found

    def _make_all(self, keys: Iterable[tuple[int, int]]) -> None:
        """Makes programs for kinds of messages and their versions."""
        new = sorted(keys)
        for key in new:
            made = None if key[0] < 0 else self._make(key[0] >> 1, key[0] & 1, key[1])
            if made is not None:
                self._programs[key] = made
        if not new:
            return
        self._joined = ProgramSet(self._programs, self._registers)
        for key in [*new, *self._programs]:
            fits = 0 <= key[0] < _MESSAGES and 0 <= key[1] < _VERSIONS
            (self._begins if fits else self._others)[key] = self._joined.start(*key)
