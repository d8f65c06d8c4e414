"""Requests and responses in columns of payloads: their headers and bodies as structs.

Strategy: kernels read headers and write bodies as text, as for the table ``messages``, some thousand payloads at once.
What a kernel declines, or has anything wrong, is decoded by itself as an object (``kwire.payloads.singly``). So the
words for what is wrong are those of the codec, and Python alone gives the same rows.

Rules kept here:

- A row for each payload, in their order. Null in, null out.
- Programs that write bodies are kept for the next column: a column costs no more where it mixes many APIs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frames
from kwire.codec.objects import WireMessage
from kwire.kernels.engine import PYTHON, choose
from kwire.kernels.layouts import Status
from kwire.limits import Limits
from kwire.payloads import singly
from kwire.payloads.frames import Reader, known
from kwire.payloads.singly import Made, Row
from kwire.payloads.sizes import Payloads, cut, parts_of
from kwire.payloads.types import Sized, listed
from kwire.protocol.describe import Shown, described, to_json
from kwire.records.constants import CONSTANTS
from kwire.schema import model
from kwire.tables.bodies import Bodies, Part, untouched
from kwire.tables.columns import distinct
from kwire.tables.typed import Typed

__all__ = ["How", "decoded"]

Array = Any

_MOST: Final = 1 << 30
"""Bytes of the structs of one payload that become one list."""


@dataclass(frozen=True, slots=True)
class How:
    """What is made of payloads.

    - ``type``: the struct, and ``reads``: bodies are read, for themselves or since ``status`` is to speak of them.
    - ``sized``: payloads begin with a size, and ``several``: what is made is a list of the frames in a payload.
    - ``api``: the message whose bodies are structs. None: bodies are text.
    """

    type: pa.StructType
    reads: bool
    limits: Limits
    sized: Sized
    several: bool
    secrets: bool
    payloads: bool
    api: model.Message | None

    def made(self) -> Made | None:
        """What makes the body of an object. None where bodies are not read."""
        if not self.reads:
            return None
        if "body" not in self.names:
            return singly.nothing
        if self.api is None:
            return partial(_text, self.secrets, self.payloads)
        shown = Shown(self.secrets, self.payloads, True)
        return partial(_struct, self.api, Typed(self.type.field("body").type), shown)

    @property
    def names(self) -> list[str]:
        """The fields of the struct."""
        return [one.name for one in self.type]


def _text(secrets: bool, payloads: bool, body: WireMessage, version: int) -> str:
    return to_json(body, version, secrets=secrets, payloads=payloads)


def _struct(message: model.Message, typed: Typed, shown: Shown, body: WireMessage, version: int) -> Any:
    """A body of one message as values of a struct. None for any other."""
    return typed.value(described(body, version, shown)) if body.SCHEMA is message else None


def decoded(
    column: pa.Array, how: How, api_keys: pa.Array | None = None, api_versions: pa.Array | None = None
) -> Iterator[pa.Array]:
    """The structs of an array of payloads, in some arrays. They are responses if ``api_keys`` are given."""
    kept, made = _KEPT, how.made()
    for part in parts_of(column, how.sized, how.limits, api_keys, api_versions):
        if not how.several:
            yield from _structs(kept, part, how, made)
            continue
        frames, of = cut(part)
        structs = [one for each in frames.windows() for one in _structs(kept, each, how, made)]
        yield _lists(part.column, structs, of, how)


def _structs(kept: _Kept, part: Payloads, how: How, made: Made | None) -> Iterator[pa.StructArray]:
    """The structs of some payloads that are one frame each."""
    of: dict[str, Array] = {}
    if part.api_keys is not None and part.api_versions is not None:
        of = {"keys": known(part.api_keys), "versions": known(part.api_versions)}
    frames = kept.reader.frames(part.column, part.sized, **of)
    good = frames["status"] == Status.OK
    if made is None and not of and "client_id" in how.names:
        # Where the body is not read, nobody knows whether it is what it should be.
        good &= ~kept.reader.doubtful(frames["client"])
    yield from _made(kept, frames, good, how, partial(part.row, made=made, limits=how.limits))


def _lists(column: pa.Array, structs: list[pa.StructArray], of: Array, how: How) -> pa.ListArray:
    """Structs as lists, one for each payload. ``of``: the number of the payload of each."""
    counts = np.bincount(of, minlength=len(column))
    missing = None
    if sum(one.nbytes for one in structs) > _MOST:
        # It is of one payload: so large a part has no other.
        said = {"status": "too_large", "error": f"more than {_MOST >> 20} MiB of frames, which no list can hold"}
        structs, counts = [pa.array([said], how.type)], np.ones(1, np.int64)
    values = pa.concat_arrays(structs) if structs else pa.array([], how.type)
    if column.null_count:
        missing = column.is_null()
        values = values.filter(values.is_valid())
        counts[missing.to_numpy(False)] = 0
    ends = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32))
    return pa.ListArray.from_arrays(ends, values, listed(how.type), mask=missing)


class _Kept(threading.local):
    """What one call leaves to the next, in each thread: names of clients, and programs."""

    def __init__(self) -> None:
        self.reader = Reader()
        self._programs: dict[tuple[Shown, Limits], Bodies] = {}
        self._generation = -1

    def bodies(self, shown: Shown, limits: Limits) -> Bodies:
        """Programs that write bodies in this way."""
        if self._generation != schema.generation():
            self._generation = schema.generation()
            self._programs.clear()
        found = self._programs.get((shown, limits))
        if found is None:
            found = self._programs[shown, limits] = Bodies(shown, limits)
        return found


_KEPT: Final = _Kept()


def _made(
    kept: _Kept, frames: Frames, good: Array, how: How, single: Callable[[int], Row | None]
) -> Iterator[pa.StructArray]:
    """The structs of some frames. Those that are not ``good`` are decoded one by one, and so is what is declined."""
    if not how.reads:
        yield _merged(_columns(kept, frames, how, 0, len(frames), None), good, 0, single)
        return
    for part, done in _parts(kept, frames, np.flatnonzero(good), how):
        made = _columns(kept, frames, how, part.first, part.last, part)
        yield _merged(made, done, part.first, single)


def _parts(kept: _Kept, frames: Frames, rows: Array, how: How) -> Iterator[tuple[Part, Array]]:
    """The bodies of some rows as text, and which rows of each part are done."""
    engine = choose(int(frames["seen"][rows].sum()))
    if engine is PYTHON:
        # Objects are faster than a kernel as Python.
        part = untouched(frames, rows)
        yield part, part.written
        return
    others = np.zeros(len(frames), bool)
    if how.api is not None:
        same = frames["api"][rows] == how.api.api_key
        # The bodies of other APIs are read as well: ``status`` says how they are.
        for part in kept.bodies(Shown(how.secrets, how.payloads), how.limits).text(frames, rows[~same], engine):
            others[part.first : part.last] = part.written
        rows = rows[same]
    shown = Shown(how.secrets, how.payloads, how.api is not None)
    for part in kept.bodies(shown, how.limits).text(frames, rows, engine):
        yield part, part.written | others[part.first : part.last]


def _columns(kept: _Kept, frames: Frames, how: How, first: int, last: int, part: Part | None) -> pa.StructArray:
    """The structs of frames that are as they should be."""
    rows, n = frames.table[first:last], last - first
    make: dict[str, Callable[[], pa.Array]] = {
        "api_key": lambda: _integers(rows["api"], np.int16),
        "api_name": lambda: _names(rows["api"]),
        "api_version": lambda: _integers(rows["version"], np.int16),
        "correlation_id": lambda: _integers(rows["id"], np.int32),
        "client_id": lambda: kept.reader.client_ids(rows["client"]),
        "body": lambda: _bodies(how, part, first, last),
        "status": lambda: CONSTANTS.get(pa.string(), "ok", n),
        "error": lambda: CONSTANTS.get(pa.string(), None, n),
    }
    return pa.StructArray.from_arrays([make[name]() for name in how.names], fields=list(how.type))


def _integers(values: Array, kind: type[np.integer[Any]]) -> pa.Array:
    return pa.array(values.astype(kind))


def _names(keys: Array) -> pa.Array:
    used, index = distinct(keys)
    names = pa.array([singly.name_of(key) for key in used.tolist()], pa.string())
    if len(used) == 1:
        return CONSTANTS.get(pa.string(), names[0].as_py(), len(keys))
    return names.take(pa.array(index))


def _bodies(how: How, part: Part | None, first: int, last: int) -> pa.Array:
    assert part is not None
    if how.api is None:
        return part.column(first, last)
    return Typed(how.type.field("body").type).column(part.column(first, last), {}, first)


def _merged(made: pa.StructArray, done: Array, first: int, single: Callable[[int], Row | None]) -> pa.StructArray:
    """``made`` with the rows that are not done in place, as objects. ``first``: the number of the first row."""
    if done.all():
        return made
    odd = np.flatnonzero(~done)
    others = pa.array([single(first + row) for row in odd.tolist()], made.type)
    if len(odd) == len(made):
        return others
    index = np.arange(len(made))
    index[odd] = len(made) + np.arange(len(odd))
    return pa.concat_arrays([made, others]).take(pa.array(index))
