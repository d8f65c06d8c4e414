"""Topics in the tables of captures: their names, their ids, and which id was seen with which name.

Programs find them (``kwire.tables.locating``). A user of ``Topics`` has a topic's name in register ``R_TOPIC`` of its
rows, and its id in ``R_TOPIC_ID``. Some frames know a topic by its id only. Its name is learnt from every message that
has both (Metadata, CreateTopics and so on).

Rules kept here:

- Names and ids are made into text once, and spread over the rows.
- The zero id is none, and has no name: brokers send it for a topic that does not exist.
- The name of an id is the one that the last message before the frame gave to it. It does not depend on the windows.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

import numpy as np

from kwire import schema
from kwire.capture.frames import Frames, text_of
from kwire.kernels.engine import choose
from kwire.kernels.layouts import Status
from kwire.kernels.names import NameTable
from kwire.kernels.programs import Program, compile_program, job_column, length_column, value_column
from kwire.protocol.secrets import METADATA_TOPIC, METADATA_TOPIC_ID
from kwire.records.batching import text_size
from kwire.schema.keys import ApiKey
from kwire.schema.model import ArrayLayout, PrimitiveLayout, StructLayout
from kwire.tables import columns
from kwire.tables.locating import Programs, layouts, remembered
from kwire.wire import uuid_text

__all__ = ["R_TOPIC", "R_TOPIC_ID", "Names", "Spelled", "Topics", "numbers_of"]

Array = Any

R_TOPIC: Final = 0
"""Register of a topic's name."""
R_TOPIC_ID: Final = 1
"""Register of a topic's id."""
R_NAME, R_ID = range(2)
"""Registers of the programs that find both together."""

_NAMES: Final = ("name", "topic_name", "topic")
"""How schemas call the name of a topic beside its ``topic_id``."""
_NO_TOPIC_ID: Final = bytes(16)
_MOST_SPELLED: Final = 1 << 12
_METADATA_ID: Final = METADATA_TOPIC_ID.bytes


class Names:
    """The byte strings that occur in a register, each made into text once."""

    def __init__(self) -> None:
        self._table = NameTable()
        self.known: list[str] = []
        """As text, by number."""
        self.sizes: list[int] = []

    def numbers(self, data: Array, rows: Array, register: int) -> Array:
        """The number of the string of each row. -1 for none."""
        made = numbers_of(self._table, data, rows, register)
        new = [text_of(one) for one in self._table.values()[len(self.known) :]]
        self.known += new
        self.sizes += map(text_size, new)
        return made

    def texts(self, data: Array, rows: Array, register: int) -> columns.Texts:
        """The string of each row as text."""
        number = self.numbers(data, rows, register)
        return columns.Texts(self.known, self.sizes, number)


class Spelled:
    """Texts and ids of a few rows, one by one: each is made once."""

    def __init__(self) -> None:
        self._texts: dict[bytes, str] = {}
        self._ids: dict[bytes, tuple[UUID, str]] = {}

    def text(self, data: Array, at: int, length: int) -> str | None:
        """The text there. None for a negative length."""
        if length < 0:
            return None
        key = data[at : at + length].tobytes()
        known = self._texts.get(key)
        if known is None:
            if len(self._texts) >= _MOST_SPELLED:
                self._texts.clear()
            known = self._texts[key] = text_of(key)
        return known

    def id(self, data: Array, at: int) -> tuple[UUID, str] | None:
        """The id there, and its text. None for none: ABSENT, or zero."""
        key = data[at : at + 16].tobytes() if at >= 0 else _NO_TOPIC_ID
        if key == _NO_TOPIC_ID:
            return None
        known = self._ids.get(key)
        if known is None:
            if len(self._ids) >= _MOST_SPELLED:
                self._ids.clear()
            known = self._ids[key] = UUID(bytes=key), uuid_text(UUID(bytes=key))
        return known


class Topics:
    """The topics of a capture: names and ids that occur, and from which frame on an id has which name.

    ``known``: names by id, from elsewhere. Names that are learnt are added, unless ``learns`` is false.
    """

    def __init__(self, known: dict[bytes, str] | None = None, *, secrets: bool = False, learns: bool = True) -> None:
        self._learns = learns
        self._known = {} if known is None else known
        self._names = Names()
        self._ids = NameTable()
        self._name_of: dict[bytes, str] = {**(known or {}), _METADATA_ID: METADATA_TOPIC}
        self._name_of.pop(_NO_TOPIC_ID, None)
        """As of the end of the window before."""
        self._learnt: list[tuple[int, bytes, str]] = []
        """What this window adds to it: (number of the frame, id, name), in the order of the frames."""
        self._pairs = Programs(partial(_pair_program, secrets), 2)

    def names(self, data: Array, sets: Array, frame: Array) -> columns.Texts:
        """The topic's name of each record set. If the frame has only an id, it is the name that earlier frames gave it.

        ``frame`` has the numbers of the frames that the sets stand in.
        """
        number = self._names.numbers(data, sets, R_TOPIC)
        texts, sizes = self._names.known, self._names.sizes
        unnamed = number < 0
        if not unnamed.any():
            return columns.Texts(texts, sizes, number)
        by_id = self.__numbers_ids(data, sets)
        known = [self._name_of.get(one) for one in self._ids.values()]
        which = np.where(by_id >= 0, by_id, 0)
        of_id = {one: place for place, one in enumerate(self._ids.values())} if self._learnt else {}
        learnt = [(of_id[id_], since, name) for since, id_, name in self._learnt if id_ in of_id]
        if learnt:
            # By id, and by frame: the entry before the place of a set is the last one learnt before its frame.
            learnt.sort(key=lambda one: one[:2])
            ids, since = (np.array([one[k] for one in learnt], np.int64) for k in (0, 1))
            first = min(since.min(), frame.min())
            width = max(since.max(), frame.max()) - first + 1
            before = np.searchsorted(ids * width + (since - first), by_id * width + (frame - first)) - 1
            holds = (before >= 0) & (ids[before] == by_id)
            which = np.where(holds, len(known) + before, which)
            known += [name for *_, name in learnt]
        number = np.where(unnamed & (by_id >= 0), len(texts) + which, number)
        return columns.Texts([*texts, *known], [*sizes, *map(text_size, known)], number)

    def name(self, id_: UUID, frame: int) -> str | None:
        """The name that an id has before the frame with this number. None if it has none."""
        key = id_.bytes
        for since, one, name in reversed(self._learnt):
            if one == key and since < frame:
                return name
        return self._name_of.get(key)

    def ids(self, data: Array, sets: Array) -> columns.Texts:
        """The topic's id of each record set, as text."""
        # A version that has names and ids may send the zero id: no id.
        number = self.__numbers_ids(data, sets)
        texts = [None if one == _NO_TOPIC_ID else uuid_text(UUID(bytes=one)) for one in self._ids.values()]
        return columns.Texts(texts, [0 if one is None else len(one) for one in texts], number)

    def __numbers_ids(self, data: Array, sets: Array) -> Array:
        return numbers_of(self._ids, data, sets, R_TOPIC_ID)

    @property
    def learnt(self) -> list[tuple[int, bytes, str]]:
        """What the last window has added: number of the frame, id and name, in order."""
        return self._learnt

    def speaking(self, frames: Frames) -> Array:
        """The frames that ``learn`` reads."""
        return frames.once(_that_name, partial(_that_name, frames)) if self._learns else np.zeros(0, np.int64)

    def learn(self, frames: Frames) -> list[tuple[bytes, str]]:
        """Takes the pairs of names and ids in the messages of a window that have both. New pairs are kept, in order."""
        if self._learnt:
            self._name_of.update((id_, name) for _, id_, name in self._learnt)
            self._learnt = []
        rows = self.speaking(frames)
        if not len(rows):
            return []
        of_job, pairs, _ = self._pairs.run(frames, rows)
        data = frames.data
        number = frames.numbers[of_job[job_column(pairs)]]
        order = np.argsort(number, kind="stable")
        found = (number, value_column(pairs, R_NAME), length_column(pairs, R_NAME), value_column(pairs, R_ID))
        latest: dict[bytes, str] = {}
        for since, name_off, name_length, id_off in zip(*(one[order].tolist() for one in found), strict=True):
            id_ = data[id_off : id_off + 16].tobytes()
            if name_length > 0 and id_ not in (_METADATA_ID, _NO_TOPIC_ID):
                name = text_of(data[name_off : name_off + name_length].tobytes())
                if latest.get(id_, self._name_of.get(id_)) != name:
                    self._learnt.append((since, id_, name))
                    latest[id_] = name
        new = [(id_, name) for _, id_, name in self._learnt]
        self._known.update(new)
        return new


@lru_cache(maxsize=1)
def _kinds(generation: int) -> tuple[Array, Array]:
    """1 for kinds of frames that may name topics by name and id, as ``Frames.with_body`` takes them, and 1 for those
    that were looked at. ``_pair_program`` then decides by the layout."""
    kinds = np.ones(2 * max(schema.api_keys()) + 2, np.uint8)
    # Not Produce and Fetch, the bulk of the traffic, which never have both.
    kinds[: 2 * ApiKey.FETCH + 2] = kinds[2 * ApiKey.API_VERSIONS : 2 * ApiKey.API_VERSIONS + 2] = 0
    return kinds, 1 - kinds


def _that_name(frames: Frames) -> Array:
    """The frames that may name topics by name and id."""
    kinds, looked = _kinds(schema.generation())
    rows = np.flatnonzero(frames.with_body(kinds))
    if len(rows):
        rows = rows[frames["status"][rows] == Status.OK]
        _look(kinds, looked, 2 * frames["api"][rows] + frames["response"][rows])
    return rows


def _look(kinds: Array, looked: Array, met: Array) -> None:
    """Looks at the kinds of messages that are met for the first time."""
    for kind in set(met[looked[met] == 0].tolist()):
        api, response = kind >> 1, kind & 1
        message = (schema.response if response else schema.request)(api)
        found = (layouts(api, response, one, secrets=True) for one in (() if message is None else message.versions))
        kinds[kind] = any(one is not None and _topic_pair(one[-1], "") is not None for one in found)
        looked[kind] = 1


def numbers_of(names: NameTable, data: Array, sets: Array, register: int) -> Array:
    """The number of the name that stands in a register, for each record set. -1 for none."""
    offsets, lengths = value_column(sets, register), length_column(sets, register)
    return names.numbers(data, offsets, lengths, choose(8 * len(sets)))


@remembered
def _pair_program(secrets: bool, api: int, response: int, version: int) -> Program | None:
    found = layouts(api, response, version, secrets=secrets)
    pair = None if found is None else _topic_pair(found[-1], "")
    if found is None or pair is None:
        return None
    name, topic_id, last = pair
    return compile_program(found, (name, topic_id), emit_after=last)


def _topic_pair(struct: StructLayout, path: str) -> tuple[str, str, str] | None:
    """Paths of a topic's name, its id, and the later one of both, in the first struct that has both."""
    names = [one.name for one in struct.fields if isinstance(one.type, PrimitiveLayout)]
    named = next((one for one in _NAMES if one in names), None)
    if named is not None and "topic_id" in names:
        last = max(named, "topic_id", key=names.index)
        return path + named, path + "topic_id", path + last
    for one in struct.fields:
        inner = one.type.element if isinstance(one.type, ArrayLayout) else one.type
        if isinstance(inner, StructLayout):
            found = _topic_pair(inner, f"{path}{one.name}.")
            if found is not None:
                return found
    return None
