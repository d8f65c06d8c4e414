"""The table ``messages``: the frames, with the decoded body as JSON text.

Bodies are read only if a column needs them: ``body``, or ``status`` and ``error``, which say that a body does not match
its version. A kernel writes their text (``kwire.tables.bodies``). Bodies that it declines, or that have something
wrong, are decoded one by one, as objects. Secrets are left out of ``body`` unless they are wanted
(``kwire.protocol.secrets``). Record sets are left out likewise. ``sasl_user`` is there if it is asked for.

``kwire.limits`` bounds what a body may become, as objects and as text. Beyond that its row is ``too_large``. All other
rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture.frames import Frames, sentence
from kwire.codec.objects import dump_json
from kwire.errors import KwireError, LimitError, UnsupportedVersionError
from kwire.kernels.bodies import is_compiled
from kwire.kernels.engine import choose
from kwire.kernels.layouts import Reason, Status
from kwire.protocol.describe import Shown, described
from kwire.protocol.headers import decode_request, decode_response
from kwire.protocol.secrets import sasl_user
from kwire.records.batching import MOST_BYTES, batch_ranges, text_size
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.bodies import Bodies, Part, untouched
from kwire.tables.definition import DIRECTIONS, CaptureTable, Maker, Run, words
from kwire.tables.frames import MOST_ROWS, STATUSES, Capture, FrameColumns, text_sizes
from kwire.tables.frames import SCHEMA as FRAMES
from kwire.tables.showing import Column
from kwire.tables.typed import Typed, body_type, message_of

__all__ = ["SCHEMA", "TABLE", "typed"]

Array = Any

SCHEMA: Final = pa.schema([*FRAMES, pa.field("body", pa.string())])
"""The columns of ``frames``, and ``body``: the decoded body as JSON text. Bytes are base64, secrets are left out. Null
unless ``status`` is ok or trailing."""

ASKED: Final = (pa.field("sasl_user", pa.string()),)
"""The user in a SASL token of a client, if it is known (``kwire.protocol.secrets.sasl_user``)."""

_CONTROL: Final = bytes(range(32))
_ESCAPED: Final = 6
"""Bytes of a control character in JSON: no other byte of a body becomes more."""

_OF_BODY: Final = frozenset(("body",))
"""The columns that are made of what a body says."""
_DECODED: Final = _OF_BODY | {"status", "error", "errors"}
"""Those for which a body is decoded: the others ask whether it can be."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """The messages of a table with typed bodies."""

    api: int
    response: int
    typed: Typed


class _Maker(Maker):
    def __init__(self, schema: pa.Schema, run: Run, kind: _Kind | None = None) -> None:
        self._capture = Capture(run.name)
        self._shown = Shown(run.options["secrets"], run.options["payloads"], kind is not None)
        self._kind = kind
        self._texts: Bodies | None = None
        self._limits = run.options["limits"]
        self._schema = schema
        self._decodes = not _DECODED.isdisjoint(schema.names)
        self._writes = not _OF_BODY.isdisjoint(schema.names)
        self._names_users = "sasl_user" in schema.names
        self._users: dict[int, str] = {}
        """The users in the tokens of these frames, by row."""

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        if self._kind is not None:
            frames = frames.chosen((frames["api"] == self._kind.api) & (frames["response"] == self._kind.response))
        costs = text_sizes(self._capture, frames)
        if self._names_users:
            self._users = dict(_users(frames))
            for row, user in self._users.items():
                costs[row] += text_size(user)
        if not self._decodes:
            for first, last in batch_ranges(costs, most_rows=MOST_ROWS):
                made = FrameColumns(self._capture, frames, first, last)
                yield columns.filled(self._schema, partial(self._column, made, _no_texts, first, last))
            return
        statuses = frames["status"].copy()
        rows = np.flatnonzero(statuses == Status.OK)
        for part in self._parts(frames, rows):
            costs[part.first : part.last] += part.sizes
            yield from self._rest(frames, part, costs, statuses)

    def _parts(self, frames: Frames, rows: Array) -> Iterator[Part]:
        engine = choose(int(frames["seen"][rows].sum()))
        if not is_compiled(engine):
            # Objects are faster than a kernel as Python.
            return iter((untouched(frames, rows),))
        if self._texts is None:
            self._texts = Bodies(self._shown, self._limits)
        return self._texts.text(frames, rows, engine)

    def _rest(self, frames: Frames, part: Part, costs: Array, statuses: Array) -> Iterator[pa.RecordBatch]:
        """The rows of a part, with the bodies that are not written yet."""
        bodies: dict[int, Any] = {}
        errors: dict[int, str] = {}
        rows = part.declined
        about = (frames[name][rows].tolist() for name in ("response", "api", "version"))
        begin, text = part.first, 0
        for row, *of_frame in zip(rows.tolist(), *about, strict=True):
            try:
                bodies[row], left = self._body(frames.bytes_of(row), *of_frame)
                # Of values, there is no text to count: their bytes say enough.
                size = text_size(bodies[row]) if self._kind is None else int(frames["seen"][row])
                if left:
                    errors[row] = sentence(Reason.TRAILING, left)
                    statuses[row] = Status.TRAILING
            except UnsupportedVersionError as error:
                errors[row] = str(error)
                statuses[row] = Status.UNSUPPORTED
                size = text_size(errors[row])
            except LimitError as error:
                errors[row] = str(error)
                statuses[row] = Status.TOO_LARGE
                size = text_size(errors[row])
            except KwireError as error:
                errors[row] = str(error)
                statuses[row] = Status.MALFORMED
                size = text_size(errors[row])
            costs[row] += size
            text += size
            if text >= MOST_BYTES:
                # Before more bodies become text.
                yield from self._made(frames, begin, row + 1, costs, statuses, errors, bodies, part)
                begin, text = row + 1, 0
                bodies.clear()
                errors.clear()
        yield from self._made(frames, begin, part.last, costs, statuses, errors, bodies, part)

    def _made(
        self,
        frames: Frames,
        begin: int,
        end: int,
        costs: Array,
        statuses: Array,
        errors: dict[int, str],
        bodies: dict[int, Any],
        part: Part,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the frames from ``begin`` on and before ``end``."""
        for low, high in batch_ranges(costs[begin:end], most_rows=MOST_ROWS):
            first, last = begin + low, begin + high
            made = FrameColumns(self._capture, frames, first, last, statuses, errors)
            texts = partial(_texts if self._kind is None else self._structs, bodies, part, first, last)
            yield columns.filled(self._schema, partial(self._column, made, texts, first, last))

    def _structs(self, bodies: dict[int, Any], part: Part, first: int, last: int) -> pa.Array:
        assert self._kind is not None
        return self._kind.typed.column(part.column(first, last), bodies, first)

    def _column(self, made: FrameColumns, texts: Callable[[], pa.Array], first: int, last: int, name: str) -> pa.Array:
        if name == "sasl_user":
            return pa.array([self._users.get(row) for row in range(first, last)], pa.string())
        return texts() if name == "body" else made.column(name)

    def _body(self, data: bytes, response: int, api: int, version: int) -> tuple[Any, int]:
        """The body of a frame as JSON, if that is wanted, and how many bytes follow it.

        If bodies become columns, the body is values, not JSON. Raises ``KwireError`` for one that cannot be decoded.
        """
        if response:
            answer = decode_response(data, api_key=api, api_version=version, limits=self._limits, trailing=True)
            body, version, left = answer.body, answer.api_version, answer.trailing
            del answer
        else:
            asked = decode_request(data, limits=self._limits, trailing=True)
            body, left = asked.body, asked.trailing
            del asked
        if not self._writes:
            return None, left
        values, size = described(body, version, self._shown), len(data)
        if self._kind is not None:
            return values, left
        # Before there is text: each of them may be as large as all others.
        del body, data
        return self._text(values, size), left

    def _text(self, values: dict[str, Any], size: int) -> str:
        """JSON of the body of a frame of ``size`` bytes."""
        most = self._limits.text
        expected = _contents(values) if size * _ESCAPED > most else 0
        if expected <= most:
            text = dump_json(values)
            expected = text_size(text)
            if expected <= most:
                return text
        raise LimitError(f"the body is {expected} bytes as JSON text: {self._limits.said('text')}")


def _texts(bodies: dict[int, str | None], part: Part, first: int, last: int) -> pa.Array:
    """The bodies of some rows: those that the kernel has written, and those of objects."""
    if not part.written[first - part.first : last - part.first].any():
        return pa.array([bodies.get(row) for row in range(first, last)], pa.string())
    made = part.column(first, last)
    if not bodies:
        return made
    return pc.coalesce(made, pa.array([bodies.get(row) for row in range(first, last)], pa.string()))


def _no_texts() -> pa.Array:
    raise AssertionError("nothing was decoded")


def _users(frames: Frames) -> Iterator[tuple[int, str]]:
    """The users in tokens of clients, by row: in SaslAuthenticate, and in raw tokens."""
    status, request = frames["status"], frames["response"] == 0
    asks = (status == Status.OK) & (frames["api"] == ApiKey.SASL_AUTHENTICATE)
    for row in np.flatnonzero(request & (asks | (status == Status.SASL))).tolist():
        data = frames.bytes_of(row)
        if asks[row]:
            try:
                data = decode_request(data, trailing=True).body.auth_bytes
            except KwireError:
                continue
        user = sasl_user(data)
        if user is not None:
            yield row, user


def _contents(values: Any) -> int:
    """The bytes that names, strings and bytes in ``values`` have as JSON: nearly all of it."""
    if isinstance(values, dict):
        # The names of tagged fields that nobody knows are numbers.
        names = sum(map(len, map(str, values)))
        return names + 4 * len(values) + sum(map(_contents, values.values()))
    if isinstance(values, list):
        if values and isinstance(values[0], dict | list | str | bytes):
            return len(values) + sum(map(_contents, values))
        return 2 * len(values)
    if isinstance(values, int):
        return 1
    if isinstance(values, bytes):
        return (len(values) + 2) // 3 * 4
    if isinstance(values, str):
        raw = values.encode("utf-8", "surrogatepass")
        return len(raw) + (_ESCAPED - 1) * (len(raw) - len(raw.translate(None, _CONTROL)))
    return 0


TABLE: Final = CaptureTable(
    name="messages",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    asked=ASKED,
    shown=(
        Column("time", showing.time("timestamp")),
        Column("client", showing.host("client")),
        Column("", showing.direction),
        Column("api", showing.api, shrink=12),
        Column("corr", showing.plain("correlation_id"), right=True),
        Column("status", showing.status, empty="ok"),
        Column("body", showing.plain("body"), shrink=30),
    ),
)
"""The table ``messages`` of captures (``CaptureTable``): bodies."""


def typed(api: str, direction: str, *, payloads: bool = False) -> CaptureTable:
    """The table of the requests or responses of one API, in which ``body`` is a struct (``kwire.tables.typed``).

    Raises ``ValueError`` for an API or direction that there is not.
    """
    message = message_of(api, direction)
    type_ = body_type(message, payloads=payloads)
    body = pa.field("body", type_)
    kind = _Kind(message.api_key or 0, DIRECTIONS.index(direction), Typed(type_))
    shown = [showing.full(body) if one.title == "body" else one for one in TABLE.shown]
    return replace(
        TABLE,
        schema=pa.schema([body if one.name == "body" else one for one in SCHEMA]),
        maker=partial(_Maker, kind=kind),
        shown=shown,
    )
