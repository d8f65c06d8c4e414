"""The frames that became complete with one part of a capture, as columns and one by one.

``Frames`` is what ``kwire.capture.tracker.Tracker.feed`` gives. ``frames["time"]`` is a column: a numpy array of int64,
in the order of the frames. ``frames[i]`` is one frame as Python values. Nobody else needs to know how the kernels keep
them. ``kwire.kernels.layouts.Frame`` says what each column holds.

Rules kept here:

- A ``Frames`` stays valid when the capture goes on. It holds the bytes of its part of the capture, so whoever keeps
  many of them keeps the capture.
- Text of a capture is decoded as UTF-8 with U+FFFD for what is not valid, as Kafka's own string decoding does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Protocol, overload

import numpy as np

from kwire.errors import DecodeError, LimitError, UnsupportedVersionError
from kwire.kernels.columns import Columns, Seen, columns_of, frame_columns
from kwire.kernels.engine import MACHINE, Engine, choose
from kwire.kernels.gathering import gather, rows_of, weigh
from kwire.kernels.judging import NOT_SUPPORTED, UNREADABLE, is_too_new, left_over
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Status, joined, taken
from kwire.kernels.numbers import grown
from kwire.kernels.ordering import with_body_of
from kwire.kernels.programs import MAX_DEPTH, job_column, registers_of, value_column
from kwire.kernels.shapes import memory_for
from kwire.protocol.api_table import api_table
from kwire.protocol.headers import Request, Response, decode_request, decode_response
from kwire.tls.suites import suite
from kwire.tls.verdicts import Verdict
from kwire.tls.versions import version_name

__all__ = [
    "REASONS",
    "SMALL_WINDOW",
    "Endpoint",
    "Frame",
    "Frames",
    "Gathered",
    "Looker",
    "host",
    "sentence",
    "text_of",
]

Array = Any

REASONS: Final = {
    Reason.SIZE: "a frame cannot have a size of %d",
    Reason.NO_FRAME: "a size of %d, which is not that of the body in front of which it stands, and no frame follows it",
    Reason.CLIENT_ID: "client_id has a length of %d, more than the frame holds",
    Reason.NO_HEADER: "no request header of an API and version that are known, nor like one: a SASL token, perhaps",
    Reason.END: "the connection or the capture ends after %d bytes of this frame",
    Reason.HOLE: "packets are missing from the capture after %d bytes of this frame",
    Reason.SKIPPED: "packets are missing or came too late, or the capture began within a frame: %d bytes skipped",
    Reason.UNPAIRED: "no request with this correlation id",
    Reason.API: "API key %d is unknown",
    Reason.VERSION: "version %d of this API is unknown",
    Reason.SHORT: "the request header is cut short at %d bytes",
    Reason.TRAILING: "bytes after the end of the body: %d",
    Reason.BODY: "the body is not what version %d says",
    Reason.GIVEN_UP: "no request with this correlation id is known: %d requests of this connection had been given up",
    Reason.UNCONFIRMED: "packets before it are missing, and nothing shows that it is no part of another frame",
    Reason.ASKED_UNCONFIRMED: "its request may be a part of another frame: packets before that are missing",
    Reason.LARGE: "%d bytes of this frame were kept, then too many frames were unfinished at once",
    Reason.NO_KEY: Verdict.NO_KEY.value,
    Reason.WRONG_KEY: Verdict.WRONG_KEY.value,
    Reason.NO_HANDSHAKE: Verdict.NO_HANDSHAKE.value,
    Reason.NOT_TLS: Verdict.NOT_TLS.value,
    Reason.TLS_VERSION: "%s is not supported",
    Reason.TLS_SUITE: "the cipher suite %s is not supported",
    Reason.TLS_COMPRESSED: Verdict.COMPRESSED.value,
}
"""What is wrong with a frame, in a sentence; %d is the column ``detail``."""


def _left_over(data: bytes, response: int, api: int, version: int) -> int:
    """How many bytes follow the body of a frame, or a word for why that is not known.

    - ``UNREADABLE``: the body is not what its version says.
    - ``NOT_SUPPORTED``: there is no layout of its version and need not be.
    - 0: there is no layout although the version is not too new, or a limit ended the reading.
    """
    try:
        if response:
            return decode_response(data, api_key=api, api_version=version, trailing=True).trailing
        return decode_request(data, trailing=True).trailing
    except UnsupportedVersionError:
        return NOT_SUPPORTED if is_too_new(api_table(), api, response, version) else 0
    except LimitError:
        return 0
    except DecodeError:
        return UNREADABLE


_NO_ROWS: Final = np.zeros((0, 3), np.int64)
_FIRST_ERRORS: Final = 64
"""Errors of responses for which the buffer has rows at first."""


@lru_cache(4096)
def sentence(reason: int, detail: int) -> str:
    """What is wrong with a frame whose columns ``reason`` (not ``Reason.NONE``) and ``detail`` are these."""
    text = REASONS[Reason(reason)]
    if reason == Reason.TLS_VERSION:
        return text % version_name(detail)
    if reason == Reason.TLS_SUITE:
        return text % suite(detail).name
    return text % detail if "%d" in text else text


def text_of(raw: bytes) -> str:
    """UTF-8; what is not valid becomes U+FFFD."""
    return raw.decode("utf-8", "replace")


def host(family: int, high: int, low: int) -> str:
    """An address, given as two signed halves of 64 bits, as text."""
    if family == 4:
        return f"{low >> 24 & 0xFF}.{low >> 16 & 0xFF}.{low >> 8 & 0xFF}.{low & 0xFF}"
    address = ipaddress.IPv6Address((high & (1 << 64) - 1) << 64 | low & (1 << 64) - 1)
    # A dual-stack socket shows IPv4 peers as ::ffff:a.b.c.d.
    return str(address.ipv4_mapped or address)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An end of a connection."""

    host: str
    port: int


class Frames:
    """The frames of a part of a capture, in the order of their numbers.

    ``data`` (uint8) has their bytes. Those of frame ``i`` begin at ``frames["off"][i]``, which is -1 where there are
    none, and are ``frames["seen"][i]``. A list of ``Frames`` therefore holds the whole capture.
    """

    def __init__(self, table: Array, data: Array, connections: Array, names: Array, pool: Array) -> None:
        self.table = table
        self.data = data
        self._connections = connections
        self._names = names
        self._pool = pool
        self._once: dict[Any, Any] = {}

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What ``make`` gives: several tables that ask for the same ``key`` share it."""
        if key not in self._once:
            self._once[key] = make()
        return self._once[key]

    def __len__(self) -> int:
        return int(self.table.shape[0])

    @overload
    def __getitem__(self, which: str) -> Array: ...
    @overload
    def __getitem__(self, which: int) -> Frame: ...
    def __getitem__(self, which: str | int) -> Array | Frame:
        if isinstance(which, str):
            return self.table[which]
        return Frame(self, range(len(self))[which])

    def __iter__(self) -> Iterator[Frame]:
        return map(self.__getitem__, range(len(self)))

    @cached_property
    def size(self) -> int:
        """Bytes of all of them that the capture has."""
        return int(self.table["seen"].sum())

    @cached_property
    def all_whole(self) -> bool:
        """Whether all of them have the status OK, by their headers."""
        return not self.table["status"].any()

    @cached_property
    def left_over(self) -> Array:
        """How many bytes follow the body of each frame, within it.

        ``UNREADABLE`` where the body is not what its version says. ``NOT_SUPPORTED`` where the version is one of
        ApiVersions that is not known here. 0 where nothing can be said.

        Found when first asked for, since each body is read for it, by programs (``kwire.kernels.judging``). As Python
        they are slow, codecs are not. A body counts as odd where both say so: codecs read tagged fields as well.
        """
        rows = self.table
        slow = self._engine is not MACHINE
        # What programs say of bodies that cannot be read stays as it is, and is all that else is asked of it.
        found, _, n_odd = (np.zeros(len(rows), np.int64), None, len(rows)) if slow else self._judged
        if not n_odd:
            return found
        odd = (rows["status"] == Status.OK) & (rows["api"] >= 0) if slow else found > 0
        candidates = np.flatnonzero(odd)
        about = (rows[name][candidates].tolist() for name in ("response", "api", "version"))
        for row, *kind in zip(candidates.tolist(), *about, strict=True):
            left = _left_over(self.bytes_of(row), *kind)
            found[row] = left if slow else max(0, left)
            if slow and left:
                found[row] = self._run_programs(rows[row : row + 1], _NO_ROWS)[0][0]
                # As with machine code: what follows a body is what codecs say, all else is what programs do.
                if found[row] > 0:
                    found[row] = max(0, left)
        return found

    @cached_property
    def error_codes(self) -> tuple[Array, Array, Array]:
        """The errors in responses: which frames cannot be read to their end, and frame and code of each error.

        They are in the order of frames, and of each frame as they stand in it.
        """
        if self._engine is MACHINE:
            found, errors, _ = self._judged
            return found < 0, job_column(errors), value_column(errors, 0)
        responses = np.flatnonzero(self.table["response"] == 1)
        found, errors, _ = self._run_programs(taken(self.table, responses), np.empty((_FIRST_ERRORS, 3), np.int64))
        unreadable = np.zeros(len(self), bool)
        unreadable[responses] = found < 0
        return unreadable, responses[job_column(errors)], value_column(errors, 0)

    @cached_property
    def _engine(self) -> Engine:
        return choose(0)  # these bytes have been counted

    @cached_property
    def _judged(self) -> tuple[Array, Array, int]:
        """What programs say follows each body, and the errors in responses.

        Both are found in one pass over the bytes. The third value is how many bodies are odd.
        """
        return self._run_programs(self.table, np.empty((_FIRST_ERRORS, 3), np.int64))

    def _run_programs(self, rows: Array, errors: Array) -> tuple[Array, Array, int]:
        run, known = self._engine(left_over), api_table()
        registers, left = registers_of(1), np.empty(MAX_DEPTH, np.int64)
        found, memory = np.zeros(len(rows), np.int64), memory_for(known.layout_starts)
        done = n_errors = n_odd = 0
        while True:
            done, n_errors, odd = run(self.data, rows, done, known, registers, left, errors, n_errors, found, memory)
            n_odd += odd
            if done == len(rows):
                return found, errors[:n_errors], n_odd
            errors = grown(errors)

    @cached_property
    def statuses(self) -> Array:
        """The ``Status`` of each frame, by its body too: ``frames["status"]`` knows no ``TRAILING``, and headers only
        that are ``MALFORMED``."""
        status: Array = self.table["status"].astype(np.int8)
        odd = self.odd
        if len(odd):
            left = self.left_over[odd]
            unread = np.where(left == NOT_SUPPORTED, Status.UNSUPPORTED, Status.MALFORMED)
            status[odd] = np.where(left > 0, Status.TRAILING, unread)
        return status

    @cached_property
    def odd(self) -> Array:
        """The frames whose body is not what its version says, or is not all that there is."""
        if self._engine is MACHINE and not self._judged[2]:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.left_over)

    def columns(self, first: int, which: Array, count: int, has_name: Array, seen: Seen) -> tuple[Columns, Seen]:
        """The columns of ``count`` frames from ``first`` on, or of those with the numbers ``which``, if there are any.

        ``has_name``: whether an API has a name, by its key. ``seen`` is what the call before gave.
        """
        if len(seen.ends) < 2 * len(self._connections) or len(seen.clients) <= len(self._names):
            seen = Seen(np.full(2 * len(self._connections), -1, np.int32), np.full(len(self._names) + 1, -1, np.int32))
        made = columns_of(count)
        self._engine(frame_columns)(self.table, first, which, self._connections, has_name, seen, made)
        return made, seen

    def with_body(self, kinds: Array) -> Array:
        """Which have their body, or a part of it, and are of a kind for which ``kinds`` has 1. Others have 0 there."""
        there = np.empty(len(self), np.uint8)
        choose(0)(with_body_of)(self.table, kinds, there)
        return there.view(bool)

    def chosen(self, rows: Array) -> Frames:
        """Some of them: the frames with these numbers, or a column that says which."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Frames(taken(self.table, rows), self.data, self._connections, self._names, self._pool)

    def errors(self, rows: Array) -> Iterator[tuple[int, str]]:
        """What is wrong with those of the frames ``rows`` with which something is: their rows, and a sentence."""
        if not len(rows):
            return
        reason, detail, left = self.table["reason"][rows], self.table["detail"][rows], self.left_over[rows]
        wrong = np.flatnonzero((reason != Reason.NONE) | (left != 0))
        about = (one[wrong].tolist() for one in (rows, reason, detail, left, self.table["version"][rows]))
        for row, why, number, more, version in zip(*about, strict=True):
            if more:
                said = Reason.VERSION if more == NOT_SUPPORTED else Reason.BODY
                yield row, sentence(Reason.TRAILING, more) if more > 0 else sentence(said, version)
            else:
                yield row, sentence(why, number)

    @property
    def numbers(self) -> Array:
        """The number of each frame within the capture."""
        numbers: Array = self.table["number"]
        return numbers

    def of_connections(self, column: str, slots: Array) -> Array:
        """A column of ``kwire.kernels.layouts.Connection`` for ``slots``, which are numbers of ``frames["slot"]``."""
        return self._connections[column][slots]

    @property
    def connections(self) -> Array:
        """The connections of the capture, by slot: rows of CONNECTION."""
        return self._connections

    def ends(self, slot: int) -> tuple[Endpoint, Endpoint]:
        """The ends A and B of a connection."""
        family, a_high, a_low, b_high, b_low, a_port, b_port = self._connections[
            ["family", "a_high", "a_low", "b_high", "b_low", "a_port", "b_port"]
        ][slot].tolist()
        return Endpoint(host(family, a_high, a_low), a_port), Endpoint(host(family, b_high, b_low), b_port)

    def client_id(self, number: int) -> str | None:
        """The client_id with this number (``frames["client"]``); None for -1."""
        if number < 0:
            return None
        off, length = self._names[number].tolist()
        return text_of(self._pool[off : off + length].tobytes())

    def longest_client(self) -> int:
        """How many bytes the longest client_id has, of those that the capture has had so far."""
        return int(self._names["len"].max(initial=0))

    def client_sizes(self, numbers: Array) -> Array:
        """How many bytes the client_ids with these numbers have; 0 for -1."""
        if not len(numbers):
            return np.zeros(0, np.int64)
        sizes: Array = np.append(self._names["len"][: int(numbers.max()) + 1], 0)[numbers]
        return sizes

    def bytes_of(self, row: int) -> bytes:
        """What the capture has of a frame, without its size."""
        off, seen = int(self.table["off"][row]), int(self.table["seen"][row])
        return self.data[off : off + seen].tobytes() if off >= 0 else b""


class Looker(Protocol):
    """Wants frames of several windows at once.

    ``kinds``: 1 for the kinds of frames that ``look`` is given (uint8, by twice the API key, one more for responses).
    """

    kinds: Array

    @property
    def full(self) -> bool:
        """Whether what was found and waits takes much memory."""

    def look(self, frames: Frames, rows: Array, there: Array, copied: Array) -> None:
        """Looks at a window while its bytes are there. ``rows``: the frames of ``kinds`` that have a body.

        Marks the frames that it wants, ``there``, and those of which it wants the bytes, in ``copied`` too. Both are
        columns of bool. Others may have marked some.
        """


class Gathered:
    """Frames of several windows, as one ``Frames``: to look at a few takes as long as to look at thousands.

    Those of small windows do not wait: somebody may follow a capture that is being made. Nor do large ones: they would
    be copied. ``lookers`` (8 at most) say which frames they want. Each is given those of all.
    """

    def __init__(self, lookers: Sequence[Looker]) -> None:
        self._lookers = lookers
        self._kinds = np.zeros(max((len(one.kinds) for one in lookers), default=0), np.uint8)
        for number, one in enumerate(lookers):
            self._kinds[: len(one.kinds)] |= one.kinds << number
        self._tables: list[Array] = []
        self._data: list[Array] = []
        self._size = self._rows = self._windows = 0
        self._latest: tuple[Array, Array, Array] | None = None

    def put(self, frames: Frames) -> Iterator[Frames]:
        """Takes a window. Gives those that have waited for long enough, in order.

        A ``Frames`` that is given may have others than those that were wanted. Those whose bytes nobody wanted have
        none if they have waited.
        """
        if not self._lookers:
            return
        rows, counts = np.empty((len(self._lookers), len(frames)), np.int64), np.empty(len(self._lookers), np.int64)
        total = choose(0)(rows_of)(frames.table, self._kinds, rows, counts)
        there, copied = np.zeros((2, len(frames)), bool)
        for one, mine, count in zip(self._lookers, rows, counts.tolist(), strict=True):
            one.look(frames, mine[:count], there, copied)
        count, size = choose(0)(weigh)(frames.table, there, copied)
        alone = size > GATHERED_BYTES or total < SMALL_WINDOW
        # Another table of connections may have others at the same place.
        if alone or (self._latest is not None and self._latest[0] is not frames._connections):
            yield from self.rest()
        if alone:
            yield frames
            return
        if count:
            table, data = np.empty(count, frames.table.dtype), np.empty(size, np.uint8)
            choose(0)(gather)(frames.table, frames.data, there, copied, self._size, table, data)
            self._tables.append(table)
            self._data.append(data)
            self._size += size
            self._rows += count
            # Not its bytes: their memory is that of the next window.
            self._latest = (frames._connections, frames._names, frames._pool)
        self._windows += 1
        many = self._windows >= GATHERED_WINDOWS or self._size > GATHERED_BYTES or self._rows > GATHERED_ROWS
        if many or any(one.full for one in self._lookers):
            yield from self.rest()

    def rest(self) -> Iterator[Frames]:
        """Those that wait."""
        latest, tables, data = self._latest, self._tables, self._data
        self._latest, self._tables, self._data = None, [], []
        self._size = self._rows = self._windows = 0
        if latest is not None:
            yield Frames(joined(tables), np.concatenate(data), *latest)


GATHERED_WINDOWS: Final = 16
"""Windows whose frames wait for others,"""
GATHERED_BYTES: Final = 1 << 18
"""their bytes,"""
GATHERED_ROWS: Final = 1 << 13
"""and how many they are, beside those of one window."""
SMALL_WINDOW: Final = 1 << 20
"""Bytes of frames of a window whose frames do not wait."""


class Frame:
    """One frame. What is not known is None; times are nanoseconds since 1970."""

    def __init__(self, frames: Frames, row: int) -> None:
        self._frames = frames
        self._row = row
        self._values: dict[str, int] = dict(zip(frames.table.dtype.names, frames.table[row].tolist(), strict=True))
        self.number: int = self._values["number"]
        """Its number within the capture."""

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "request"
        return f"<frame {self.number}: {kind}, API key {self.api_key} v{self.api_version}, {self.status.name.lower()}>"

    def _known(self, name: str) -> int | None:
        value = self._values[name]
        return None if value == ABSENT else value

    @property
    def connection(self) -> int:
        """The number of its connection within the capture."""
        return int(self._frames.of_connections("number", self._values["slot"]))

    @property
    def is_response(self) -> bool:
        """Whether the broker sent it."""
        return self._values["response"] == 1

    @property
    def client(self) -> Endpoint:
        """The end that sends requests."""
        return self._frames.ends(self._values["slot"])[self._values["client_side"]]

    @property
    def broker(self) -> Endpoint:
        """The end that answers them."""
        return self._frames.ends(self._values["slot"])[1 - self._values["client_side"]]

    @property
    def time(self) -> int | None:
        """When the capture had its last byte and all bytes before it; None where the capture does not state it."""
        time = self._values["time"]
        return None if time == NO_TIME else time

    @property
    def size(self) -> int:
        """Bytes that it has, or says that it has."""
        return self._values["size"]

    @property
    def api_key(self) -> int | None:
        """Of the request; a response has those of its request."""
        return self._known("api")

    @property
    def api_version(self) -> int | None:
        """Of the request."""
        return self._known("version")

    @property
    def correlation_id(self) -> int | None:
        """What pairs a response with its request."""
        return self._known("id")

    @property
    def client_id(self) -> str | None:
        """Of the request."""
        return self._frames.client_id(self._values["client"])

    @property
    def latency(self) -> int | None:
        """Nanoseconds from the last byte of the request to the last byte of its response.

        None in requests, and where one of the two has no time.
        """
        return self._known("latency")

    @property
    def status(self) -> Status:
        """What became of it."""
        return Status(int(self._frames.statuses[self._row]))

    @property
    def error(self) -> str | None:
        """What is wrong with it, in a sentence."""
        return next((text for _, text in self._frames.errors(np.array([self._row]))), None)

    @property
    def data(self) -> bytes:
        """What the capture has of it, without its size."""
        return self._frames.bytes_of(self._row)

    @cached_property
    def message(self) -> Request[Any] | Response[Any]:
        """Header and body, decoded; bytes after the body are counted (``trailing``).

        Raises ``DecodeError``; also for a response whose request is not known.
        """
        if not self.is_response:
            return decode_request(self.data, trailing=True)
        key, version = self.api_key, self.api_version
        return decode_response(
            self.data,
            api_key=-1 if key is None else key,
            api_version=-1 if version is None else version,
            trailing=True,
        )

    @property
    def body(self) -> Any:
        """The decoded body: an object of ``kwire.messages``. Raises ``DecodeError``."""
        return self.message.body
