"""The table ``connections``: one row per TCP connection of a capture, whatever it carries.

Strategy: ``kernels/tracking.py`` reads packets and counts for every connection what they say (bytes, repeats, holes,
times). Facts of frames are added up here by the column, window by window. There is one number for each connection, or
for each pair of a connection and something else (``_Pairs``). Only frames that say who a client is (ApiVersions and
those of SASL) are decoded one by one. The rows come at the end of the capture, in the order of ``connection``.

Rules kept here:

- A connection that is not Kafka is a row too, and ``status`` says so. Users can see what was not read.
- Bytes are those of segments, as their headers say, encrypted or not. They do not depend on what could be read.
- What a client says of itself is its own word. Passwords and tokens are never here. Who authenticated is here only if
  secrets are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frame, Frames, sentence
from kwire.codec.redacting import emptied
from kwire.errors import KwireError
from kwire.kernels.layers import TUNNELS
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Role, Status
from kwire.protocol.error_codes import error_name
from kwire.protocol.sasl import refusal, refused_by
from kwire.protocol.secrets import sasl_user
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import batch_ranges, text_size
from kwire.schema.keys import ApiKey
from kwire.tables import columns, showing
from kwire.tables.definition import CaptureTable, Maker, Run
from kwire.tables.frames import KEY
from kwire.tables.showing import Column
from kwire.wire import printable

if TYPE_CHECKING:
    from kwire.capture.connections import Connections
    from kwire.capture.tracker import Tracker

__all__ = ["APIS", "BROKER_APIS", "SCHEMA", "STATUSES", "TABLE"]

MOST_CLIENT_IDS: Final = 1000
"""How many client_ids of one connection are listed. Programs have one. A proxy may have as many as it has clients."""
_MOST_TEXT: Final = 1 << 10
"""How many characters are kept of what a client or broker says of itself."""
_AT_ONCE: Final = 1 << 12
_MOST_ROWS: Final = 1 << 13
"""Rows of a batch: each takes some 2 kB while it is made."""

APIS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("api_key", pa.int16()),
                pa.field("api_name", pa.string()),
                pa.field("api_version", pa.int16()),
                pa.field("requests", pa.int64()),
            ]
        ),
        nullable=True,
    )
)
"""Type (``pyarrow.ListType``) of the column ``apis``: requests by API and version."""
BROKER_APIS: Final = pa.field(
    "broker_apis",
    pa.list_(
        pa.field(
            "element",
            pa.struct(
                [
                    pa.field("api_key", pa.int16()),
                    pa.field("min_version", pa.int16()),
                    pa.field("max_version", pa.int16()),
                ]
            ),
            nullable=True,
        )
    ),
)
"""What the broker said that it serves, if the column is asked for by name. The latest answer to ApiVersions that lists
something counts. Null if the broker said nothing."""
_TEXTS: Final = pa.list_(pa.field("element", pa.string(), nullable=True))
_NUMBER: Final = pa.int64()


def _both(name: str, kind: pa.DataType) -> list[pa.Field]:
    return [pa.field(f"{side}_{name}", kind, nullable=False) for side in ("client", "broker")]


SCHEMA: Final = pa.schema(
    [
        *KEY[:2],
        pa.field("first_seen", TIMESTAMP),
        pa.field("last_seen", TIMESTAMP),
        pa.field("client_host", pa.string(), nullable=False),
        pa.field("client_port", pa.int32(), nullable=False),
        pa.field("broker_host", pa.string(), nullable=False),
        pa.field("broker_port", pa.int32(), nullable=False),
        pa.field("opened_by", pa.string()),
        pa.field("tunnels", _TEXTS, nullable=False),
        pa.field("client_ids", _TEXTS, nullable=False),
        pa.field("software_name", pa.string()),
        pa.field("software_version", pa.string()),
        pa.field("apis", APIS, nullable=False),
        pa.field("sasl_mechanism", pa.string()),
        pa.field("sasl_outcome", pa.string()),
        pa.field("sasl_error", pa.string()),
        pa.field("principal", pa.string()),
        pa.field("tls", pa.bool_(), nullable=False),
        pa.field("tls_server_name", pa.string()),
        pa.field("tls_version", pa.string()),
        pa.field("tls_cipher", pa.string()),
        pa.field("ended", pa.string(), nullable=False),
        pa.field("ended_by", pa.string()),
        pa.field("handshake_ms", pa.float64()),
        *_both("packets", _NUMBER),
        *_both("wire_bytes", _NUMBER),
        *_both("bytes", _NUMBER),
        *_both("repeats", _NUMBER),
        *_both("repeated_bytes", _NUMBER),
        *_both("late", _NUMBER),
        *_both("missing_bytes", _NUMBER),
        pa.field("requests", _NUMBER, nullable=False),
        pa.field("responses", _NUMBER, nullable=False),
        pa.field("unanswered", _NUMBER, nullable=False),
        pa.field("out_of_order", _NUMBER, nullable=False),
        pa.field("most_in_flight", _NUMBER, nullable=False),
        *STATUS_FIELDS,
    ]
)
"""One row per TCP connection.

The client is the end that sends requests. If a connection is not read as Kafka, it is the end that opened the
connection, or else the end whose packet was captured first. ``client_...`` of packets and bytes is what the client
sent. ``wire_bytes`` counts packets with all their headers. ``bytes`` counts what segments hold, repeats included.
``repeated_bytes`` were captured before, ``missing_bytes`` never. ``most_in_flight`` counts requests that were answered.
``handshake_ms`` is from the SYN to the acknowledgement of its answer.
"""

STATUSES: Final = {
    "ok": "Kafka",
    "encrypted": "TLS that is not decrypted, or not from its beginning; `error` says why, where there is a key log",
    "other": "not Kafka, or not to a port that was asked for",
    "unknown": "too little was captured to tell",
}
"""What each ``status`` means."""

ENDED: Final = ("open", "fin", "half_closed", "rst", "reused")
"""Both ends said that they were done, one did, an RST, or other packets on the same ports. Null if none was seen."""
SIDES: Final = ("client", "broker")
_ROLES: Final = {
    Role.A_REQUESTS: "ok",
    Role.B_REQUESTS: "ok",
    Role.ENCRYPTED: "encrypted",
    Role.OTHER: "other",
    Role.UNKNOWN: "unknown",
}

_SOFTWARE: Final = 3
"""ApiVersions has the name of the client's software from this version on (KIP-511)."""
_SPEAKS_FIRST: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
"""The APIs that are answered before a client is authenticated."""
_MOST_APIS: Final = 1 << 16

Array = Any


class _PerConnection:
    """A number for each connection, 0 at first."""

    def __init__(self) -> None:
        self._values: Array = np.zeros(64, np.int64)

    def _with_room(self, numbers: Array) -> Array:
        most = int(numbers.max(initial=-1))
        if most >= len(self._values):
            larger = np.zeros(max(most + 1, 2 * len(self._values)), np.int64)
            larger[: len(self._values)] = self._values
            self._values = larger
        return self._values

    def count(self, numbers: Array) -> None:
        """Adds 1 for each of the ``numbers``."""
        values = self._with_room(numbers)
        if len(numbers):
            counts = np.bincount(numbers)
            values[: len(counts)] += counts

    def raise_to(self, numbers: Array, least: Array) -> None:
        """Makes each no less than what it is paired with."""
        np.maximum.at(self._with_room(numbers), numbers, least)

    def first(self, count: int) -> Array:
        """Those of the first ``count`` connections."""
        self._with_room(np.array([count - 1]))
        return self._values[:count]


class _Pairs:
    """How often each pair of a connection and another number (0 to 2**32) occurred, and in which frame first."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, Array, Array, Array]] = []
        self._size = 0
        self._settled = 0

    def count(self, numbers: Array, others: Array, frames: Array) -> None:
        """Adds a pair for each row. ``frames``: the numbers of the frames that it is of."""
        if not len(numbers):
            return
        # Within a window there are few, and most of them occur often.
        self._parts.append(_joined(numbers, others, np.ones(len(numbers), np.int64), frames))
        self._size += len(self._parts[-1][0])
        if self._size > 2 * self._settled + 4096:
            self._settle()

    def _settle(self) -> None:
        self._parts = [_joined(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))]
        self._size = self._settled = len(self._parts[0][0])

    def all(self) -> tuple[Array, Array, Array]:
        """(connection, other number, how often), in order."""
        return self._all()[:3]

    def by_first(self) -> tuple[Array, Array, Array]:
        """The same in order of connections, and of each by its first frame."""
        numbers, others, counts, frames = self._all()
        order = np.lexsort((frames, numbers))
        return numbers[order], others[order], counts[order]

    def _all(self) -> tuple[Array, Array, Array, Array]:
        if not self._parts:
            none = np.empty(0, np.int64)
            return none, none, none, none
        self._settle()
        return self._parts[0]


def _joined(numbers: Array, others: Array, counts: Array, frames: Array) -> tuple[Array, Array, Array, Array]:
    """Each pair once, in order: with the sum of its counts and its first frame."""
    pairs, where = np.unique(np.stack([numbers, others], axis=1), axis=0, return_inverse=True)
    where = where.reshape(-1)
    sums = np.zeros(len(pairs), np.int64)
    np.add.at(sums, where, counts)
    first = np.full(len(pairs), np.iinfo(np.int64).max)
    np.minimum.at(first, where, frames)
    return pairs[:, 0], pairs[:, 1], sums, first


class _InFlight:
    """How many requests of each connection were in flight at most, of those that were answered.

    A broker answers the requests of a connection in order. So the k-th answered request found in flight those of the
    k - 1 before it that had no response yet. Only the latest of these have to be remembered.
    """

    def __init__(self) -> None:
        self.most = _PerConnection()
        self._open: tuple[Array, Array] = (np.empty(0, np.int64), np.empty(0, np.int64))
        """Responses (connection, time) that later requests may have been sent before."""

    def add(self, numbers: Array, asked: Array, answered: Array) -> None:
        """Takes responses: the connection of each, when it was asked for and when it came."""
        if not len(numbers):
            return
        old, old_answered = self._open
        mine = np.isin(old, numbers)
        # Those before began earlier than all that are here.
        begin = np.concatenate([np.full(int(mine.sum()), -(1 << 62)), asked])
        number = np.concatenate([old[mine], numbers])
        end = np.concatenate([old_answered[mine], answered])
        at = np.concatenate([begin, end])
        step = np.concatenate([np.ones(len(begin), np.int64), np.full(len(end), -1)])
        both = np.concatenate([number, number])
        # A response at the time of a request counts as arrived.
        order = np.lexsort((step, at, both))
        running = np.cumsum(step[order])
        first = np.flatnonzero(np.diff(both[order], prepend=-1))
        self.most.raise_to(both[order][first], np.maximum.reduceat(running, first))
        # Which may still be in flight when a later request is sent: none is sent before the latest so far.
        used, where = np.unique(number, return_inverse=True)
        latest = np.full(len(used), -(1 << 62))
        np.maximum.at(latest, where, begin)
        left = end > latest[where]
        self._open = np.concatenate([old[~mine], number[left]]), np.concatenate([old_answered[~mine], end[left]])


@dataclass(slots=True)
class _Sasl:
    """What was said about who a client is. ``outcome``: ``ok``, ``failed`` or ``unfinished``."""

    mechanism: str | None = None
    outcome: str = "unfinished"
    error: str | None = None
    principal: str | None = None

    def fail(self, code: int, message: str | None = None) -> None:
        """The broker refused it."""
        self.outcome = "failed"
        said = error_name(code) or str(code)
        self.error = said if not message else f"{said}: {printable(message[:_MOST_TEXT])}"


def _pairs(one: Array, other: Array) -> Iterator[tuple[int, int]]:
    """The numbers of two arrays side by side, as Python has them. Some rows at a time, since each takes 32 bytes."""
    for begin in range(0, len(one), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        yield from zip(one[part].tolist(), other[part].tolist(), strict=True)


class _Maker(Maker):
    def __init__(self, schema_: pa.Schema, run: Run) -> None:
        self._schema = schema_
        self._run = run
        self._frames = (_PerConnection(), _PerConnection())
        self._in_flight = _InFlight()
        self._apis = _Pairs()
        self._clients = _Pairs()
        self._why = _Pairs()
        self._software: dict[int, tuple[str, str]] = {}
        self._sasl: dict[int, _Sasl] = {}
        self._announced: dict[int, tuple[tuple[int, int, int], ...]] = {}
        self._announcements: dict[tuple[tuple[int, int, int], ...], tuple[tuple[int, int, int], ...]] = {}
        """Each once: brokers of one release say the same."""

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        number = frames.of_connections("number", frames["slot"])
        status, response, api = frames["status"], frames["response"] == 1, frames["api"]
        is_frame = (status != Status.ENCRYPTED) & (frames["reason"] != Reason.SKIPPED)
        for direction, which in enumerate((is_frame & ~response, is_frame & response)):
            self._frames[direction].count(number[which])
        known = is_frame & ~response & (api != ABSENT) & (frames["version"] != ABSENT) & (status != Status.UNCONFIRMED)
        self._apis.count(
            number[known], (api[known] & 0xFFFF) << 16 | frames["version"][known] & 0xFFFF, frames.numbers[known]
        )
        named = known & (frames["client"] >= 0)
        self._clients.count(number[named], frames["client"][named], frames.numbers[named])
        why = (status == Status.ENCRYPTED) & (frames["reason"] != Reason.NONE)
        said = frames["reason"][why].astype(np.int64) << 24 | frames["detail"][why] & 0xFFFFFF
        self._why.count(number[why], said, frames.numbers[why])
        paired = response & (frames["latency"] != ABSENT)
        answered = frames["time"][paired]
        self._in_flight.add(number[paired], answered - np.maximum(frames["latency"][paired], 0), answered)
        self._introduce(frames, number)
        return iter(())

    # -- who a client is

    def _introduce(self, frames: Frames, number: Array) -> None:
        """Reads the frames in which clients say who they are, and the answers."""
        status, api, request = frames["status"], frames["api"], frames["response"] == 0
        good = status == Status.OK
        hello = good & request & (api == ApiKey.API_VERSIONS) & (frames["version"] >= _SOFTWARE)
        # A refusal stands at the beginning of a response: it counts also where the rest was not captured.
        begun = good | (~request & ((status == Status.CUT_OFF) | (status == Status.GAP)))
        sasl = begun & ((api == ApiKey.SASL_HANDSHAKE) | (api == ApiKey.SASL_AUTHENTICATE))
        answers = good & ~request & (api == ApiKey.API_VERSIONS) & (BROKER_APIS.name in self._schema.names)
        rows = np.flatnonzero(hello | sasl | answers | (status == Status.SASL))
        for row, one in _pairs(rows, number[rows]):
            if hello[row] and one in self._software:
                continue
            try:
                if hello[row]:
                    body = self._shown(frames[row].body)
                    self._software[one] = (
                        printable(body.client_software_name[:_MOST_TEXT]),
                        printable(body.client_software_version[:_MOST_TEXT]),
                    )
                elif answers[row]:
                    self._announce(one, frames[row].body)
                elif sasl[row]:
                    self._authenticate(one, frames[row])
                else:
                    self._token(one, frames.bytes_of(row), request=bool(request[row]))
            except KwireError:
                continue
        if self._sasl:
            # Nothing else is answered before a client is authenticated.
            others = good & ~request & ~np.isin(api, _SPEAKS_FIRST) & np.isin(number, list(self._sasl))
            for one in np.unique(number[others]).tolist():
                if self._sasl[one].outcome == "unfinished":
                    self._sasl[one].outcome = "ok"

    def _shown(self, body: Any) -> Any:
        return body if self._run.options["secrets"] else emptied(body)

    def _announce(self, number: int, body: Any) -> None:
        said = tuple((one.api_key, one.min_version, one.max_version) for one in body.api_keys)
        if said:
            self._announced[number] = self._announcements.setdefault(said, said)

    def _authenticate(self, number: int, frame: Frame) -> None:
        """Takes a message of SASL. Raises ``KwireError`` if it cannot be read, and is no refusal."""
        one = self._sasl.setdefault(number, _Sasl())
        if frame.is_response:
            assert frame.api_key is not None
            assert frame.api_version is not None
            refused = refusal(frame.data, frame.api_key, frame.api_version)
            if refused is None and frame.api_key == ApiKey.SASL_AUTHENTICATE:
                self._token(number, frame.body.auth_bytes, request=False)
            elif refused is not None:
                one.fail(refused.body.error_code, getattr(self._shown(refused.body), "error_message", None))
        elif frame.api_key == ApiKey.SASL_HANDSHAKE:
            one.mechanism = printable(self._shown(frame.body).mechanism[:_MOST_TEXT])
            one.outcome, one.error = "unfinished", None
        else:
            one.principal = sasl_user(frame.body.auth_bytes) or one.principal

    def _token(self, number: int, token: bytes, *, request: bool) -> None:
        """A raw token. Where no handshake came before, its mechanism is GSSAPI (Kafka 0.9)."""
        one = self._sasl.setdefault(number, _Sasl("GSSAPI"))
        if request:
            one.principal = sasl_user(token) or one.principal
        elif (said := refused_by(one.mechanism, token)) is not None:
            one.outcome, one.error = "failed", said

    # -- rows

    def rest(self, tracker: Tracker) -> Iterator[pa.RecordBatch]:
        made = _Columns(self, tracker.known())
        for first, last in batch_ranges(made.costs, most_rows=_MOST_ROWS):
            yield columns.filled(self._schema, made.of(first, last))


class _Columns:
    """The columns of the rows. Each is made on request, by a method of the same name or of its second half."""

    def __init__(self, maker: _Maker, known: Connections) -> None:
        self._maker = maker
        self._known = known
        rows = known.rows
        role = rows["role"]
        # Which end is the client: 0 A, 1 B.
        self._client: Array = np.where(
            (role == Role.A_REQUESTS) | (role == Role.B_REQUESTS), role == Role.B_REQUESTS, rows["opener"] == 1
        ).astype(np.int64)
        self._clients = _Lists(maker._clients.by_first(), len(rows), MOST_CLIENT_IDS)
        self._apis = _Lists(maker._apis.all(), len(rows), _MOST_APIS)

    @cached_property
    def _names(self) -> tuple[pa.Array, Array]:
        """The client_ids that occur, and which of them each pair has."""
        used, where = np.unique(self._clients.others, return_inverse=True)
        return pa.array([self._known.client_id(one) for one in used.tolist()], pa.string()), where

    @property
    def costs(self) -> Array:
        """About how many bytes of text each row has."""
        made = np.full(len(self._known), 600 + text_size(self._maker._run.name), np.int64)
        made += 24 * self._apis.sizes
        if "client_ids" in self._maker._schema.names:
            names, where = self._names
            sizes = np.array([text_size(one) for one in names.to_pylist()], np.int64)
            np.add.at(made, self._clients.numbers, sizes[where])
        return made

    def of(self, first: int, last: int) -> Callable[[str], pa.Array]:
        """What makes a column of the rows from ``first`` on and before ``last``, by its name."""

        def column(name: str) -> pa.Array:
            side, _, half = name.partition("_")
            if hasattr(self, name):
                made: pa.Array = getattr(self, name)(first, last)
                return made
            return self._of_side(half, self._client if side == "client" else 1 - self._client, first, last)

        return column

    def _of_side(self, name: str, side: Array, first: int, last: int) -> pa.Array:
        a, b = (made[first:last] for made in self._both(name))
        return pa.array(np.where(side[first:last] == 0, a, b))

    def _both(self, name: str) -> tuple[Array, Array]:
        if name == "missing_bytes":
            return self._known.missing(0), self._known.missing(1)
        field = {"wire_bytes": "wire", "bytes": "payload", "repeated_bytes": "repeated"}.get(name, name)
        return self._known.sent[0][field], self._known.sent[1][field]

    def _sides(self, numbers: Array, first: int, last: int) -> pa.Array:
        """``client`` or ``broker`` for 0 (A) or 1 (B), null for -1."""
        numbers = numbers[first:last]
        return pa.array(SIDES).take(pa.array(np.abs(numbers - self._client[first:last]), mask=numbers < 0))

    def _listed(self, values: dict[int, Any], get: Callable[[Any], str | None], first: int, last: int) -> pa.Array:
        found = (values.get(one) for one in self._known.rows["number"][first:last].tolist())
        return pa.array([None if one is None else get(one) for one in found], pa.string())

    # The columns, by their names.

    def capture(self, first: int, last: int) -> pa.Array:
        return columns.constant(self._maker._run.name, last - first)

    def connection(self, first: int, last: int) -> pa.Array:
        return pa.array(np.ascontiguousarray(self._known.rows["number"][first:last]))

    def first_seen(self, first: int, last: int) -> pa.Array:
        return self._times("first_time", np.minimum, 1 << 62, first, last)

    def last_seen(self, first: int, last: int) -> pa.Array:
        return self._times("last_time", np.maximum, ABSENT, first, last)

    def _times(self, field: str, choose: Any, absent: int, first: int, last: int) -> pa.Array:
        a, b = (
            np.where((sent["packets"] > 0) & (sent[field] != NO_TIME), sent[field], absent)[first:last]
            for sent in self._known.sent
        )
        made = choose(a, b)
        return columns.timestamps(np.where(made == absent, NO_TIME, made))

    def _hosts(self, side: int, first: int, last: int) -> pa.Array:
        a, b = self._known.hosts(first, last)
        wanted = (self._client[first:last] ^ side).tolist()
        return pa.array([two if which else one for one, two, which in zip(a, b, wanted, strict=True)], pa.string())

    def client_host(self, first: int, last: int) -> pa.Array:
        return self._hosts(0, first, last)

    def broker_host(self, first: int, last: int) -> pa.Array:
        return self._hosts(1, first, last)

    def _ports(self, side: int, first: int, last: int) -> pa.Array:
        a, b = (self._known.rows[name][first:last].astype(np.int32) for name in ("a_port", "b_port"))
        return pa.array(np.where(self._client[first:last] ^ side, b, a))

    def client_port(self, first: int, last: int) -> pa.Array:
        return self._ports(0, first, last)

    def broker_port(self, first: int, last: int) -> pa.Array:
        return self._ports(1, first, last)

    def opened_by(self, first: int, last: int) -> pa.Array:
        return self._sides(self._known.rows["opener"], first, last)

    def tunnels(self, first: int, last: int) -> pa.Array:
        a, b = (sent["tunnel"][first:last].tolist() for sent in self._known.sent)
        texts = [[_tunnel(one) for one in dict.fromkeys(both) if one] for both in zip(a, b, strict=True)]
        return pa.array(texts, _TEXTS)

    def client_ids(self, first: int, last: int) -> pa.Array:
        names, where = self._names
        offsets, low, high = self._clients.offsets(first, last)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), names.take(pa.array(where[low:high])), _TEXTS)

    def software_name(self, first: int, last: int) -> pa.Array:
        return self._listed(self._maker._software, lambda one: one[0], first, last)

    def software_version(self, first: int, last: int) -> pa.Array:
        return self._listed(self._maker._software, lambda one: one[1], first, last)

    def apis(self, first: int, last: int) -> pa.Array:
        offsets, low, high = self._apis.offsets(first, last)
        both = self._apis.others[low:high]
        key, version = (half.astype(np.int64) for half in (both >> 16, both & 0xFFFF))
        known = schema.api_keys()
        names = pa.array([known.get(one) for one in range(max(known) + 1)], pa.string())
        of_each = names.take(pa.array(np.minimum(key, len(names) - 1), mask=key >= len(names)))
        values = [
            pa.array(key.astype(np.uint16).view(np.int16)),
            of_each,
            pa.array(version.astype(np.uint16).view(np.int16)),
            pa.array(self._apis.counts[low:high]),
        ]
        structs = pa.StructArray.from_arrays(values, fields=list(APIS.value_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs, APIS)

    def broker_apis(self, first: int, last: int) -> pa.Array:
        names = ("api_key", "min_version", "max_version")
        said = map(self._maker._announced.get, self._known.rows["number"][first:last].tolist())
        made = [None if one is None else [dict(zip(names, each, strict=True)) for each in one] for one in said]
        return pa.array(made, BROKER_APIS.type)

    def sasl_mechanism(self, first: int, last: int) -> pa.Array:
        return self._listed(self._maker._sasl, lambda one: one.mechanism, first, last)

    def sasl_outcome(self, first: int, last: int) -> pa.Array:
        return self._listed(self._maker._sasl, lambda one: one.outcome, first, last)

    def sasl_error(self, first: int, last: int) -> pa.Array:
        return self._listed(self._maker._sasl, lambda one: one.error, first, last)

    def principal(self, first: int, last: int) -> pa.Array:
        shown = self._maker._run.options["secrets"]
        return self._listed(self._maker._sasl, lambda one: one.principal if shown else None, first, last)

    @cached_property
    def _tls(self) -> list[Any]:
        return [self._known.tls(row) for row in range(len(self._known))]

    def tls(self, first: int, last: int) -> pa.Array:
        encrypted = self._known.rows["role"][first:last] == Role.ENCRYPTED
        said = np.array([one is not None for one in self._tls[first:last]], bool)
        return pa.array(encrypted | said)

    def tls_server_name(self, first: int, last: int) -> pa.Array:
        return pa.array([one and one.server_name for one in self._tls[first:last]], pa.string())

    def tls_version(self, first: int, last: int) -> pa.Array:
        return pa.array([one and one.version for one in self._tls[first:last]], pa.string())

    def tls_cipher(self, first: int, last: int) -> pa.Array:
        return pa.array([one and one.cipher for one in self._tls[first:last]], pa.string())

    @cached_property
    def _over(self) -> tuple[Array, Array]:
        """How each connection ended, as a place in ``ENDED``, and which end said so first (-1: neither)."""
        a, b = self._known.sent
        said = np.stack([a["over_order"], b["over_order"]])
        resets = a["resets"] + b["resets"] > 0
        finished = (a["end"] >= 0).astype(np.int64) + (b["end"] >= 0)
        how = np.where(self._known.rows["closed"] == 1, ENDED.index("reused"), ENDED.index("open"))
        how = np.where(finished == 1, ENDED.index("half_closed"), how)
        how = np.where(resets, ENDED.index("rst"), how)
        how = np.where(finished == 2, ENDED.index("fin"), how)
        by = np.where(said < 0, 1 << 62, said).argmin(axis=0)
        return how, np.where(said.max(axis=0) < 0, -1, by)

    def ended(self, first: int, last: int) -> pa.Array:
        return columns.pick(ENDED, self._over[0][first:last])

    def ended_by(self, first: int, last: int) -> pa.Array:
        return self._sides(self._over[1], first, last)

    def handshake_ms(self, first: int, last: int) -> pa.Array:
        return columns.milliseconds(self._known.rows["handshake"][first:last])

    def requests(self, first: int, last: int) -> pa.Array:
        return pa.array(self._maker._frames[0].first(last)[first:])

    def responses(self, first: int, last: int) -> pa.Array:
        return pa.array(self._maker._frames[1].first(last)[first:])

    def unanswered(self, first: int, last: int) -> pa.Array:
        rows = self._known.rows[first:last]
        return pa.array(rows["unanswered"] + rows["waiting"] + rows["given_up"])

    def out_of_order(self, first: int, last: int) -> pa.Array:
        return pa.array(self._known.rows["disordered"][first:last])

    def most_in_flight(self, first: int, last: int) -> pa.Array:
        return pa.array(self._maker._in_flight.most.first(last)[first:])

    def status(self, first: int, last: int) -> pa.Array:
        words = [_ROLES[Role(role)] for role in range(len(Role))]
        return columns.pick(words, self._known.rows["role"][first:last])

    def error(self, first: int, last: int) -> pa.Array:
        numbers, why, _ = self._maker._why.all()
        said = dict(zip(numbers.tolist(), why.tolist(), strict=True))
        return self._listed(said, lambda one: sentence(one >> 24, one & 0xFFFFFF), first, last)


class _Lists:
    """Pairs of a connection and another number, as a list for each connection: the first ``most`` of each."""

    def __init__(self, pairs: tuple[Array, Array, Array], count: int, most: int) -> None:
        numbers, others, counts = pairs
        begins = np.searchsorted(numbers, np.arange(count))
        kept = np.arange(len(numbers)) - begins[numbers] < most if len(numbers) else np.zeros(0, bool)
        self.numbers, self.others, self.counts = numbers[kept], others[kept], counts[kept]
        self._begins = np.searchsorted(self.numbers, np.arange(count + 1))

    @property
    def sizes(self) -> Array:
        """How many each connection has."""
        return np.diff(self._begins)

    def offsets(self, first: int, last: int) -> tuple[Array, int, int]:
        """Of the connections from ``first`` on and before ``last``: where each list begins, and which pairs that is."""
        begins = self._begins[first : last + 1]
        return begins - begins[0], int(begins[0]), int(begins[-1])


def _tunnel(number: int) -> str:
    return f"{TUNNELS.get(number >> 32, 'tunnel')}:{number & 0xFFFFFFFF}"


def _shown_apis(row: showing.Row) -> str:
    """The APIs and versions of a connection, each API once."""
    versions: dict[str, list[int]] = {}
    for one in row["apis"]:
        versions.setdefault(one["api_name"] or str(one["api_key"]), []).append(one["api_version"])
    return ", ".join(f"{name} v{'/'.join(map(str, those))}" for name, those in versions.items()) or "-"


def _tls(row: showing.Row) -> str:
    if not row["tls"]:
        return "-"
    return " ".join(showing.readable(row[name]) for name in ("tls_version", "tls_server_name") if row[name]) or "TLS"


def _sum(name: str) -> Callable[[showing.Row], str]:
    return lambda row: str(row[f"client_{name}"] + row[f"broker_{name}"])


TABLE: Final = CaptureTable(
    name="connections",
    schema=SCHEMA,
    file="capture",
    statuses=STATUSES,
    maker=_Maker,
    of_one_file=True,
    filters=False,
    asked=(BROKER_APIS,),
    shown=(
        Column("first seen", showing.time("first_seen")),
        Column("client", showing.host("client")),
        Column("broker", showing.host("broker")),
        Column("client_ids", showing.client_ids, shrink=8),
        Column("software", showing.texts("software_name", "software_version"), shrink=8),
        Column("apis", _shown_apis, shrink=12),
        Column("SASL", showing.texts("sasl_mechanism", "sasl_outcome"), shrink=5),
        Column("TLS", _tls, shrink=7),
        Column("requests", showing.plain("requests"), right=True),
        Column("sent", showing.plain("client_bytes"), right=True),
        Column("received", showing.plain("broker_bytes"), right=True),
        Column("repeated", _sum("repeated_bytes"), right=True, empty="0"),
        Column("missing", _sum("missing_bytes"), right=True, empty="0"),
        Column("ended", showing.plain("ended"), shrink=4),
        Column("status", showing.status, empty="ok"),
    ),
)
"""The table ``connections`` of captures (``CaptureTable``): TCP connections."""
