"""Steps: what the frames of some APIs say, in few words, one by one.

``Steps`` chooses frames by their API in columns, so other traffic costs nothing. It decodes their bodies by the codecs.
What it found is a ``Window``, which makes a step when it is asked for one. A ``Reader`` makes steps of a body: (owner,
place, said). ``said`` is values that JSON has, so that a step can become a row of text (``packed``, ``unpacked``).

Rules kept here:

- A body that was read before, byte for byte, is not decoded again: most heartbeats are alike. Of some messages only the
  first bytes count (``Heads``).
- A frame that cannot be read is a step with a status, and no owner.
- What a schema marks as secret is in no step, unless secrets are wanted.
- Steps are in the order of frames.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from kwire import stored
from kwire.capture.frames import Frames
from kwire.codec.redacting import emptied
from kwire.errors import KwireError
from kwire.kernels.engine import choose
from kwire.kernels.layouts import ABSENT, NO_TIME, Status
from kwire.kernels.names import NameTable
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.protocol.headers import decode_request, decode_response
from kwire.wire import ZERO_UUID, uuid_text

__all__ = [
    "MALFORMED",
    "NOBODY",
    "OK",
    "UNREADABLE",
    "UNSUPPORTED",
    "Columns",
    "Found",
    "Heads",
    "Names",
    "Reader",
    "Said",
    "Step",
    "Steps",
    "Window",
    "kind_of",
    "packed",
    "request_of",
    "saved",
    "shown",
    "step_of",
    "topic_of",
    "unpacked",
]

OK: Final = "ok"
"""The status (str) of a step that could be read,"""
MALFORMED: Final = "malformed"
"""of one whose body is not what its version says (str),"""
UNREADABLE: Final = "unreadable"
"""of an incomplete frame (str),"""
UNSUPPORTED: Final = "unsupported"
"""and of one whose version has no layout (str)."""
NOBODY: Final = ""
"""The owner (str) of what is no part of a history, though its API is: neither it nor its response has a row."""

_LONGEST_NAME: Final = 249
"""Characters of the longest name that a topic can have (``org.apache.kafka.common.internals.Topic``)."""

Array = Any
Said = Mapping[str, Any]
"""Type: what a message says, in values of JSON. Nobody changes it: many steps may share one."""
Names = Callable[[UUID], str | None]
"""Type: the name of a topic by its id, as the frame knows it."""
Reader = Callable[[Any, Names], Iterable[tuple[str | None, str, Said]]]
"""Type: makes steps of a decoded body: the owner (None: that of the request), the place, and what is said."""

Found = tuple[tuple[str | None, str, Said], ...]
"""Type: what a body says, of each owner and place."""
Heads = Callable[[Frames, Array], Array]
"""Type: for some rows of frames, how many bytes after the correlation id say all that a reader takes from them, if the
body is what its version says. -1: all of them, or it is not known."""
Ends = tuple[tuple[str, int, str | None], tuple[str, int]]
"""Type: host, port and client id of a client, host and port of a broker."""
Columns = Callable[[Frames, Array, Callable[[UUID, int], str | None]], dict[int, Found]]
"""Type: what bodies say, found without decoding them, by the number of the row. It is what the readers would give."""

_MOST_KEPT: Final = 4096
"""Bodies that are remembered."""
_LARGEST_KEPT: Final = 512
"""Bytes of such a body."""
_BITS: Final = 15
"""Those of a version, and more than those of a kind of message."""


_made: Final = tuple.__new__


class Step(NamedTuple):
    """What a frame says of one owner and place.

    ``time``: nanoseconds since 1970, None where the capture states none. ``owner``: None in a response whose request
    is not known. ``request``: of a response, the step of its request.
    """

    capture: str
    connection: int
    frame: int
    time: int | None
    client: tuple[str, int, str | None]
    """Host, port, client_id."""
    broker: tuple[str, int]
    response: bool
    api: int
    version: int
    id: int
    size: int
    """Bytes of the frame that the capture has."""
    owner: str | None
    place: str
    said: Said
    status: str = OK
    error: str | None = None
    request: Step | None = None


def kind_of(api: int, response: bool) -> int:
    """The number of a kind of message, as the keys of ``History.reads`` are."""
    return 2 * api + response


class Steps:
    """Makes the steps of a capture.

    ``reads``: a reader for each kind of message (``kind_of``). ``limits``: what bodies may become. ``secrets``: whether
    readers see the fields that their schema marks as secret. Else these are empty.
    """

    def __init__(self, capture: str, reads: Mapping[int, Reader], limits: Limits, *, secrets: bool = False) -> None:
        self.capture = capture
        self.limits = limits
        self._secrets = secrets
        self._reads = reads
        self.kinds: Array = np.zeros(max(reads) + 1, np.uint8)
        """1 for the kinds that have a reader (uint8)."""
        self.kinds[list(reads)] = 1
        self._bodies = NameTable()
        self.known: dict[int, Found] = {}
        """What bodies say that were read before, by ``Window.alike``."""
        self.ends: dict[tuple[int, int, int], Ends] = {}
        """Client and broker, by connection, side and number of the client id."""

    def wanted(self, frames: Frames) -> Array:
        """Which frames have a part in this history, as a column."""
        there: Array = frames.with_body(self.kinds) & (frames["version"] >= 0)
        if frames.all_whole:
            return there
        new = np.flatnonzero(frames["status"] == Status.UNSUPPORTED)
        if len(new):
            kinds = 2 * frames["api"][new] + frames["response"][new]
            known = (kinds >= 0) & (kinds < len(self.kinds))
            there[new[known]] = self.kinds[kinds[known]]
        return there

    def of(
        self,
        frames: Frames,
        names: Callable[[UUID, int], str | None],
        heads: Heads | None = None,
        columns: Columns | None = None,
    ) -> Window | None:
        """What some frames say. None if they have no part in this history.

        ``names(id, frame)``: the name of a topic, as known before that frame. ``columns`` finds what some bodies say
        without decoding them.
        """
        rows = np.flatnonzero(self.wanted(frames))
        if not len(rows):
            return None
        lengths = np.full(len(rows), -1) if heads is None else heads(frames, rows)
        return Window(self, frames, rows, (names, lengths, {} if columns is None else columns(frames, rows, names)))

    def numbers(self, data: Array, offsets: Array, lengths: Array) -> Array:
        """A number for each body, the same for the same bytes. -1 for a length below 0."""
        if len(self._bodies) >= _MOST_KEPT:
            self._bodies, self.known = NameTable(), {}
        return self._bodies.numbers(data, offsets, lengths, choose(0))

    def read(self, kind: int, version: int, data: bytes, names: Names) -> Found:
        """What a body says. Raises ``KwireError``."""
        body = self._decoded(kind & 1, kind >> 1, version, data)
        if not self._secrets:
            body = emptied(body, within=True)
        return tuple(self._reads[kind](body, names))

    def _decoded(self, response: int, api: int, version: int, data: bytes) -> Any:
        # What the codecs read in one step: bodies without anything behind them, within the usual limits.
        if self.limits == DEFAULT_LIMITS:
            try:
                if response:
                    return decode_response(data, api_key=api, api_version=version).body
                return decode_request(data).body
            except KwireError:
                pass
        if response:
            return decode_response(data, api_key=api, api_version=version, limits=self.limits, trailing=True).body
        return decode_request(data, limits=self.limits, trailing=True).body


class Window:
    """The frames of a window that have a part in a history, in order: numbers from 0 on. Steps are made when asked for.

    ``pairs``: of a request the number of its response, of a response that of its request, -1 if it is not among them.
    Columns are arrays: ``Lists`` has them as lists.
    """

    def __init__(
        self,
        steps: Steps,
        frames: Frames,
        rows: Array,
        how: tuple[Callable[[UUID, int], str | None], Array, dict[int, Found]],
    ) -> None:
        self._steps = steps
        self._frames = frames
        self._rows = rows
        self._names, self._heads, self._found = how
        table = frames.chosen(rows).table
        self._table = table
        self.connections: Array = frames.of_connections("number", table["slot"])
        self.ids: Array = table["id"]
        self.pairs: Array = _pairs(self.connections, self.ids, table["response"])
        self.kinds: Array = 2 * table["api"] + table["response"]
        self.times: Array = table["time"]
        """NO_TIME where the capture states none."""
        self._n_heads = 0
        """How many frames were asked for one by one."""

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Step]:
        for number in range(len(self)):
            yield from self.steps(number)

    @property
    def size(self) -> int:
        """Bytes of its requests, which may wait."""
        return int(self._table["seen"][self._table["response"] == 0].sum())

    def stops(self, far: int) -> list[int]:
        """Numbers of frames before which all responses stand that come at most ``far`` frames after their requests."""
        here = np.arange(len(self))
        reach = np.where((self.pairs > here) & (self.pairs <= here + far), self.pairs, here)
        stops: list[int] = (np.flatnonzero(np.maximum.accumulate(reach) == here) + 1).tolist()
        return stops

    @cached_property
    def lists(self) -> Lists:
        """The columns that steps are made of."""
        names = ("number", "time", "id", "version", "seen", "status")
        columns = (self._table[name].tolist() for name in names)
        return Lists(self.connections.tolist(), self.pairs.tolist(), self.kinds.tolist(), *columns)

    @cached_property
    def alike(self) -> Array:
        """A number for each body that says the same. -1 where nothing of it is remembered."""
        table = self._table
        whole = self._heads < 0
        # Before a body stand API key and version, of a request, and the correlation id.
        before = np.where(table["response"] == 1, 4, 8)
        lengths = np.where(whole, table["seen"] - before, self._heads)
        there = (table["status"] == Status.OK) & (table["off"] >= 0)
        lengths[~there | (whole & (table["seen"] > _LARGEST_KEPT))] = -1
        numbers = self._steps.numbers(self._frames.data, table["off"] + before, lengths)
        kinds = (2 * numbers + whole << _BITS | self.kinds) << _BITS | table["version"]
        return np.where(numbers < 0, -1, kinds)

    @cached_property
    def _alike(self) -> list[int]:
        return self.alike.tolist()  # type: ignore[no-any-return]

    def ends(self, number: int) -> Ends:
        """Client and broker of a frame, as ``Step`` has them."""
        row = self._table[number]
        key, kept = (int(self.connections[number]), int(row["client_side"]), int(row["client"])), self._steps.ends
        both = kept.get(key)
        if both is None:
            _, side, client = key
            some = self._frames.ends(int(self._table["slot"][number]))
            asks, answers = some[side], some[1 - side]
            both = (asks.host, asks.port, self._frames.client_id(client)), (answers.host, answers.port)
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = both
        return both

    def says(self, number: int) -> Found:
        """What a frame says. Nothing if it cannot be read."""
        found = self._steps.known.get(self._alike[number])
        if found is None and self._table["status"][number] == Status.OK:
            with suppress(KwireError):
                found = self._found[number] = self._read(number)
        return found or ()

    def step(self, number: int, request: Step | None = None) -> Step | None:
        """The one step of a frame. ``request``: that of its request. None if it has several, or cannot be read."""
        lists = self.lists
        if lists.statuses[number] != Status.OK:
            return None
        found = self._found.get(number)
        if found is None:
            found = self.says(number)
        if len(found) != 1:
            return None
        owner, place, said = found[0]
        if request is not None:
            if owner is None or (owner == request.owner and place == request.place):
                owner = request.owner
            else:
                request = None
        return _made(Step, (*self._all_heads[number], owner, place, said, OK, None, request))

    @cached_property
    def _all_heads(self) -> list[tuple[Any, ...]]:
        """``_head`` of all frames."""
        lists, capture = self.lists, self._steps.capture
        times = [None if time == NO_TIME else time for time in lists.times]
        ids = [0 if id_ == ABSENT else id_ for id_ in lists.ids]
        kept = self._steps.ends
        keys = zip(lists.connections, self._table["client_side"].tolist(), self._table["client"].tolist(), strict=True)
        ends = [kept.get(key) or self.ends(number) for number, key in enumerate(keys)]
        return [
            (capture, connection, frame, time, client, broker, bool(kind & 1), kind >> 1, version, id_, size)
            for connection, frame, time, (client, broker), kind, version, id_, size in zip(
                lists.connections, lists.frames, times, ends, lists.kinds, lists.versions, ids, lists.sizes, strict=True
            )
        ]

    def _head(self, number: int) -> tuple[Any, ...]:
        """What the steps of a frame have in common."""
        self._n_heads += 1
        if self._n_heads > len(self) >> 3:
            return self._all_heads[number]
        # Columns become lists in less time than so many rows, and most rows of a window may change nothing.
        row = self._table[number]
        time, id_ = int(row["time"]), int(row["id"])
        return (
            self._steps.capture,
            int(self.connections[number]),
            int(row["number"]),
            None if time == NO_TIME else time,
            *self.ends(number),
            bool(row["response"]),
            int(row["api"]),
            int(row["version"]),
            0 if id_ == ABSENT else id_,
            int(row["seen"]),
        )

    def steps(self, number: int, asked: Mapping[tuple[str | None, str], Step] | None = None) -> Iterator[Step]:
        """The steps of a frame. ``asked``: those of its request, which then are theirs."""
        head, status = self._head(number), int(self._table["status"][number])
        if status != Status.OK:
            alone = self._frames.chosen(self._rows[number : number + 1])
            why = next((text for _, text in alone.errors(np.zeros(1, np.int64))), None)
            word = UNSUPPORTED if status == Status.UNSUPPORTED else UNREADABLE
            yield Step._make([*head, None, "", {}, word, why or Status(status).name.lower(), None])
            return
        try:
            found = self._read(number)
        except KwireError as error:
            yield Step._make([*head, None, "", {}, MALFORMED, str(error), None])
            return
        for owner, place, said in found:
            request = None if asked is None else request_of(asked, owner, place)
            owner = owner if request is None else request.owner
            yield Step._make([*head, owner, place, said, OK, None, request])

    def _read(self, number: int) -> Found:
        there = self._found.get(number)
        if there is not None:
            return there
        key = self._alike[number]
        found = self._steps.known.get(key)
        if found is not None:
            return found
        looked = False

        def name(id_: UUID) -> str | None:
            nonlocal looked
            looked = True
            return self._names(id_, int(self._table["number"][number]))

        data = self._frames.bytes_of(self._rows[number])
        found = self._steps.read(int(self.kinds[number]), int(self._table["version"][number]), data, name)
        # What names a topic by its id may mean another name later.
        if key >= 0 and not looked:
            self._steps.known[key] = found
        return found


def request_of(asked: Mapping[tuple[str | None, str], Step], owner: str | None, place: str) -> Step | None:
    """The step of a request that a response answers which is of an owner (None: it names none) and place."""
    if owner is not None:
        return asked.get((owner, place))
    first = next(iter(asked.values()), None)
    if first is None:
        return None
    return asked.get((first.owner, place)) or asked.get((first.owner, "")) or first


class Lists(NamedTuple):
    """Columns of a ``Window``, which steps are made of."""

    connections: list[int]
    pairs: list[int]
    kinds: list[int]
    frames: list[int]
    times: list[int]
    ids: list[int]
    versions: list[int]
    sizes: list[int]
    statuses: list[int]


def _pairs(connections: Array, ids: Array, response: Array) -> Array:
    """Of requests the number of their response, of responses that of their request, -1 where there is none."""
    order = np.lexsort((ids, connections))
    connections, ids, response = connections[order], ids[order], response[order]
    # A response after a request that has the same id: the last one before it.
    same = (connections[1:] == connections[:-1]) & (ids[1:] == ids[:-1]) & (response[1:] > response[:-1])
    first = np.flatnonzero(same)
    made = np.full(len(order), -1)
    made[order[first]], made[order[first + 1]] = order[first + 1], order[first]
    return made


def packed(step: Step) -> str:
    """A step as text, without its capture, connection and frame, which are columns beside it."""
    return json.dumps(_values(step), separators=(",", ":"))


def _values(step: Step) -> list[Any]:
    request = step.request
    beside = None if request is None else [request.capture, request.connection, request.frame, *_values(request)]
    return [*step[3:-1], beside]


def unpacked(capture: str, connection: int, frame: int, text: str | bytes) -> Step:
    """The step that ``packed`` made a text of. Raises one of ``stored.UNFIT``."""
    return step_of([capture, connection, frame, *stored.parsed(text)])


def saved(step: Step) -> list[Any]:
    """A step as values of JSON, for ``step_of``."""
    return [*step[:3], *_values(step)]


def step_of(values: Any) -> Step:
    """The step that ``saved`` gave. Raises one of ``stored.UNFIT``."""
    capture, connection, frame, time, client, broker, response, api, version, id_, size, *rest = values
    owner, place, said, status, error, request = rest
    if not isinstance(said, dict):
        raise TypeError("no step")
    host, port, client_id = client
    return Step(
        stored.text(capture),
        stored.number(connection, 0),
        stored.number(frame, 0),
        None if time is None else int(time),
        (stored.text(host), stored.number(port, 0), None if client_id is None else stored.text(client_id)),
        (stored.text(broker[0]), stored.number(broker[1], 0)),
        stored.truth(response),
        stored.number(api, 0),
        stored.number(version, 0),
        stored.number(id_, -(1 << 31)),
        stored.number(size, 0),
        None if owner is None else stored.text(owner),
        stored.text(place),
        said,
        stored.text(status),
        None if error is None else stored.text(error),
        None if request is None else step_of(request),
    )


def shown(name: str) -> str:
    """A name that a row repeats for each partition: no more of it than a topic can have."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def topic_of(id_: UUID, names: Names) -> list[str | None]:
    """A topic that a message names by its id: [name if it is known, id as text]."""
    if id_ == ZERO_UUID:
        return [None, None]
    name = names(id_)
    return [None if name is None else shown(name), uuid_text(id_)]
