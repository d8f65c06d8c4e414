"""Steps: what the frames of some APIs say, in few words, one by one.

``Steps`` chooses frames by their API in columns, so other traffic costs nothing. It decodes their bodies by the codecs.
A ``Reader`` makes steps of a body: (owner, place, said). ``said`` is values that JSON has, so that a step can become a
row of text (``packed``, ``unpacked``).

Rules kept here:

- A body that was read before, byte for byte, is not decoded again: most heartbeats are alike.
- A frame that cannot be read is a step with a status, and no owner.
- What a schema marks as secret is in no step, unless secrets are wanted.
- Steps are in the order of frames.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np

from kwire import stored
from kwire.capture.frames import Frames
from kwire.codec.redacting import emptied
from kwire.errors import KwireError
from kwire.kernels.layouts import ABSENT, NO_TIME, Status
from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.protocol.headers import decode_request, decode_response
from kwire.wire import ZERO_UUID, uuid_text

__all__ = [
    "MALFORMED",
    "NOBODY",
    "OK",
    "UNREADABLE",
    "Names",
    "Reader",
    "Said",
    "Step",
    "Steps",
    "kind_of",
    "packed",
    "saved",
    "step_of",
    "topic_of",
    "unpacked",
]

OK: Final = "ok"
"""The status (str) of a step that could be read,"""
MALFORMED: Final = "malformed"
"""of one whose body is not what its version says (str),"""
UNREADABLE: Final = "unreadable"
"""and of an incomplete frame (str)."""
NOBODY: Final = ""
"""The owner (str) of what is no part of a history, though its API is: neither it nor its response has a row."""

Array = Any
Said = Mapping[str, Any]
"""Type: what a message says, in values of JSON. Nobody changes it: many steps may share one."""
Names = Callable[[UUID], str | None]
"""Type: the name of a topic by its id, as the frame knows it."""
Reader = Callable[[Any, Names], Iterable[tuple[str | None, str, Said]]]
"""Type: makes steps of a decoded body: the owner (None: that of the request), the place, and what is said."""

_MOST_KEPT: Final = 4096
"""Bodies that are remembered."""
_LARGEST_KEPT: Final = 512
"""Bytes of such a body."""


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
        self._capture = capture
        self._secrets = secrets
        self._reads = reads
        self._limits = limits
        self._kinds = np.zeros(max(reads) + 1, np.uint8)
        self._kinds[list(reads)] = 1
        self._known: dict[tuple[int, int, bytes, bytes], tuple[tuple[str | None, str, Said], ...]] = {}

    def of(self, frames: Frames, names: Callable[[UUID, int], str | None]) -> Iterator[Step]:
        """The steps of some frames. ``names(id, frame)``: the name of a topic, as known before that frame."""
        rows = np.flatnonzero(frames.with_body(self._kinds) & (frames["version"] >= 0))
        if not len(rows):
            return
        rows = rows[np.argsort(frames.numbers[rows], kind="stable")]
        columns = ("slot", "client_side", "client", "time", "response", "api", "version", "id", "seen", "status")
        about = zip(*(frames[one][rows].tolist() for one in columns), strict=True)
        connections = frames.of_connections("number", frames["slot"][rows]).tolist()
        ends: dict[tuple[int, int, int], Any] = {}
        for row, number, connection, values in zip(
            rows.tolist(), frames.numbers[rows].tolist(), connections, about, strict=True
        ):
            slot, side, client, time, response, api, version, id_, size, status = values
            both = ends.get((slot, side, client))
            if both is None:
                asks, answers = frames.ends(slot)[side], frames.ends(slot)[1 - side]
                both = (asks.host, asks.port, frames.client_id(client)), (answers.host, answers.port)
                ends[slot, side, client] = both
            when, number_ = None if time == NO_TIME else time, 0 if id_ == ABSENT else id_
            head: list[Any] = [
                self._capture,
                connection,
                number,
                when,
                *both,
                bool(response),
                api,
                version,
                number_,
                size,
            ]
            if status != Status.OK:
                why = next((text for _, text in frames.errors(np.array([row]))), None)
                yield Step._make([*head, None, "", {}, UNREADABLE, why or Status(status).name.lower(), None])
                continue
            try:
                found = self._read(number, response, api, version, frames.bytes_of(row), names)
            except KwireError as error:
                yield Step._make([*head, None, "", {}, MALFORMED, str(error), None])
                continue
            for owner, place, said in found:
                yield Step._make([*head, owner, place, said, OK, None, None])

    def _decoded(self, response: int, api: int, version: int, data: bytes) -> Any:
        # What the codecs read in one step: bodies without anything behind them, within the usual limits.
        if self._limits == DEFAULT_LIMITS:
            try:
                if response:
                    return decode_response(data, api_key=api, api_version=version).body
                return decode_request(data).body
            except KwireError:
                pass
        if response:
            return decode_response(data, api_key=api, api_version=version, limits=self._limits, trailing=True).body
        return decode_request(data, limits=self._limits, trailing=True).body

    def _read(
        self,
        frame: int,
        response: int,
        api: int,
        version: int,
        data: bytes,
        names: Callable[[UUID, int], str | None],
    ) -> tuple[tuple[str | None, str, Said], ...]:
        kind = 2 * api + response
        small = len(data) <= _LARGEST_KEPT
        key = (kind, version, b"", data[4:]) if response else (kind, version, data[:4], data[8:])
        if small and (known := self._known.get(key)) is not None:
            return known
        body = self._decoded(response, api, version, data)
        if not self._secrets:
            body = emptied(body, within=True)
        looked = False

        def name(id_: UUID) -> str | None:
            nonlocal looked
            looked = True
            return names(id_, frame)

        made = tuple(self._reads[kind](body, name))
        # What names a topic by its id may mean another name later.
        if small and not looked:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = made
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


def topic_of(id_: UUID, names: Names) -> list[str | None]:
    """A topic that a message names by its id: [name if it is known, id as text]."""
    return [None, None] if id_ == ZERO_UUID else [names(id_), uuid_text(id_)]
