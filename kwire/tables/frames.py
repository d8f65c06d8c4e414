"""The table ``frames``: one row per frame, and a few rows that stand for bytes in which no frame can be seen.

``FrameColumns`` makes its columns, for ``messages`` too: a column is a method of the same name.

Strategy: numbers become columns in one pass (``kwire.kernels.columns``). Values of many rows (addresses, API names,
client ids) are made into text once and spread over the rows. Their text is counted first, so that batches have a size
that Arrow can hold. Python looks at single frames only if something is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kwire import schema
from kwire.capture.frames import Frames, sentence
from kwire.kernels.columns import Columns, Seen, Stat
from kwire.kernels.layouts import ABSENT, NO_TIME, Reason, Status
from kwire.protocol.api_table import api_table
from kwire.records.arrow_types import STATUS_FIELDS, TIMESTAMP
from kwire.records.batching import batch_ranges, text_size
from kwire.schema.keys import ApiKey
from kwire.tables import columns, errors, showing
from kwire.tables.columns import Text, Words
from kwire.tables.definition import DIRECTIONS, CaptureTable, Maker, Run, words
from kwire.tables.showing import Column

__all__ = [
    "BROKER",
    "KEY",
    "MOST_ROWS",
    "OF_BROKERS",
    "OF_FRAME",
    "SCHEMA",
    "STATUSES",
    "TABLE",
    "Capture",
    "FrameColumns",
    "text_sizes",
]

Array = Any

KEY: Final = (
    pa.field("capture", pa.string(), nullable=False),
    pa.field("connection", pa.int64(), nullable=False),
    pa.field("frame", pa.int64(), nullable=False),
)
"""What names a frame, in every table of a capture."""

OF_FRAME: Final = (
    *KEY,
    pa.field("frame_timestamp", TIMESTAMP),
    pa.field("direction", pa.string(), nullable=False),
    pa.field("client_host", pa.string(), nullable=False),
    pa.field("client_port", pa.int32(), nullable=False),
    pa.field("client_id", pa.string()),
    pa.field("api_key", pa.int16(), nullable=False),
    pa.field("api_name", pa.string(), nullable=False),
    pa.field("api_version", pa.int16(), nullable=False),
)
"""What tables say first whose rows are parts of a frame."""

BROKER: Final = (
    pa.field("broker_host", pa.string(), nullable=False),
    pa.field("broker_port", pa.int32(), nullable=False),
)
"""Columns of such tables that are there where they are asked for by name: the end that answers."""

SCHEMA: Final = pa.schema(
    [
        *KEY,
        pa.field("timestamp", TIMESTAMP),
        pa.field("direction", pa.string(), nullable=False),
        pa.field("client_host", pa.string(), nullable=False),
        pa.field("client_port", pa.int32(), nullable=False),
        pa.field("broker_host", pa.string(), nullable=False),
        pa.field("broker_port", pa.int32(), nullable=False),
        pa.field("api_key", pa.int16()),
        pa.field("api_name", pa.string()),
        pa.field("api_version", pa.int16()),
        pa.field("correlation_id", pa.int32()),
        pa.field("client_id", pa.string()),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("latency_ms", pa.float64()),
        *STATUS_FIELDS,
        pa.field("errors", errors.TYPE),
    ]
)
"""One row per frame.

- ``timestamp`` is when the capture had the frame's last byte and all bytes before it. It is null if the capture does
  not state it (a Simple Packet Block of pcapng).
- ``size`` counts the bytes after the 4-byte length, as the length says. If a frame is cut off, ``error`` has the bytes
  that were really seen. For a ``gap`` that holds no frame, ``size`` is the bytes skipped.
- A response has the API, version and client_id of its request.
- ``latency_ms`` is the time in milliseconds from the last byte of the request to the last byte of its response. It is
  null in requests, and if one of the two has no time.
- ``errors``: the names of the errors in a response (``kwire.tables.errors``).
"""

STATUSES: Final = {
    Status.OK: "a request, or a response that was paired with its request",
    Status.UNPAIRED: "a response whose request is not in the capture, or was given up to bound memory: API and version "
    "are not known",
    Status.MALFORMED: "header or body are not what their version says, or there can be no frame of such a size, or "
    "it is not that of the body and no frame follows it; in "
    "`messages`, `error` says where",
    Status.UNSUPPORTED: "an API key or version that kwire has no layout for",
    Status.CUT_OFF: "the connection or the capture ends within this frame, or it was given up to bound memory",
    Status.GAP: "packets are missing within this frame, or bytes were skipped up to the next one",
    Status.ENCRYPTED: "TLS. One row for the connection; nothing in it can be read. With a key log, ``error`` says why",
    Status.SASL: "a raw SASL token, without a header: after SaslHandshake v0, or GSSAPI of a 0.9 client",
    Status.TOO_LARGE: "in `messages`: the body would become more than the limits `objects` and `text` allow",
    Status.TRAILING: "bytes are left over behind the body, within the frame: `error` says how many. All else is as "
    "with `ok`; in `messages` the body is there",
    Status.UNCONFIRMED: "packets before this frame, or before its request, are missing, and nothing shows that it "
    "is no value of a record, within another frame. Its body is not shown",
}
"""What each ``status`` means. ``error`` says more, in a sentence, unless it is ``ok``."""

OF_BROKERS: Final = re.compile(
    r"broker-\d+-(fetcher-\d+|txn-marker-sender)|raft-client-\d+|AddPartitionsManager-client-\d+"
)
"""client_ids of brokers: followers, members of the quorum, coordinators of transactions."""

MOST_ROWS: Final = 1 << 14
"""Rows of a batch: frames can have four bytes, and each has some 250 in its columns."""

WORDS: Final = columns.status_words(Status)

_NO_ROWS: Final = np.zeros(0, np.int64)

_WITH_BODY: Final = np.isin(np.arange(len(Status)), (Status.OK, Status.TRAILING, Status.TOO_LARGE))
"""By status: whether a frame with it has a body that was read."""

_OTHER_TEXT: Final = 192
"""Bytes of a row's text that is counted in one: two addresses, the name of an API, words, a sentence."""
_MOST_HOSTS: Final = 1 << 13
"""Connections whose addresses are kept as text."""
_MOST_ADDRESSES: Final = 1 << 8
"""Addresses up to which those of the next frames are added to them."""
_SHORT_TEXT: Final = 64
"""Bytes of a client_id up to which it does not matter which of a few a frame has."""


# A small file takes longer to make these than to be read.


@cache
def _names_or_none() -> Words:
    """The name of each API, by its key. Null after the last."""
    keys = schema.api_keys()
    return Words([keys.get(key) for key in range(max(keys) + 2)])


@cache
def _api_names() -> Words:
    """The same without nulls, for those that have a name."""
    return Words(_names_or_none().texts.fill_null(""))


@cache
def _has_name() -> Array:
    return _names_or_none().texts.is_valid().to_numpy(False).astype(np.uint8)


@cache
def _directions() -> Words:
    """Their words, by ``frames["response"]``."""
    return Words(DIRECTIONS)


class Capture:
    """What is the same for all frames of a capture: its name, and texts that were made once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._hosts: dict[int, tuple[str, str]] = {}
        self._places: dict[str, int] = {}
        self._addresses = Words([])
        self._clients: tuple[list[int], Words] = ([], Words([]))
        self._seen = Seen(np.zeros(0, np.int32), np.zeros(0, np.int32))

    def columns(self, frames: Frames, first: int, which: Array, count: int) -> Columns:
        """What ``kwire.kernels.columns`` makes of frames."""
        made, self._seen = frames.columns(first, which, count, _has_name(), self._seen)
        return made

    def addresses(self, frames: Frames, ends: Array) -> tuple[Words, Array]:
        """The addresses of some ends, as (those that there may be, for each which). An end is twice a slot, and one
        more for its end B."""
        slots = ends >> 1
        numbers = frames.of_connections("number", slots)
        known = self._hosts
        each = zip(slots.tolist(), numbers.tolist(), ends.tolist(), strict=True)
        texts = [(known.get(number) or self._of(frames, slot, number))[end & 1] for slot, number, end in each]
        # From window to window they are mostly the same.
        places = self._places if len(self._places) <= _MOST_ADDRESSES else {}
        index = np.array([places.setdefault(text, len(places)) for text in texts], np.int32)
        if len(places) != len(self._addresses) or places is not self._places:
            self._places, self._addresses = places, Words(list(places))
        return self._addresses, index

    def _of(self, frames: Frames, slot: int, connection: int) -> tuple[str, str]:
        """The addresses of the ends A and B of a connection."""
        if len(self._hosts) >= _MOST_HOSTS:
            self._hosts.clear()
        a, b = frames.ends(slot)
        found = self._hosts[connection] = (a.host, b.host)
        return found

    def clients(self, frames: Frames, numbers: list[int]) -> Words:
        """The client_ids with these numbers. Null for -1."""
        if numbers != self._clients[0]:
            self._clients = numbers, Words([frames.client_id(number) for number in numbers])
        return self._clients[1]


def text_sizes(capture: Capture, frames: Frames) -> Array:
    """About how many bytes of text the row of each frame has, in all columns."""
    other = _OTHER_TEXT + text_size(capture.name)
    longest = frames.longest_client()
    if longest <= _SHORT_TEXT:
        return np.full(len(frames), longest + other)
    return frames.client_sizes(frames["client"]) + other


class FrameColumns:
    """The columns of the frames from ``first`` on and before ``last``, each made on request.

    ``statuses`` and ``errors`` are what somebody found out about the frames beyond what ``frames`` says of them:

    - ``statuses``: a column of numbers of ``Status``
    - ``errors``: sentences by row

    ``judged``: without ``statuses``, bodies are judged too (``Frames.statuses``).
    """

    def __init__(
        self,
        capture: Capture,
        frames: Frames,
        first: int,
        last: int,
        statuses: Array | None = None,
        errors: Mapping[int, str] | None = None,
        *,
        judged: bool = False,
    ) -> None:
        self._capture = capture
        self._frames = frames
        self._rows: slice | Array = slice(first, last)
        self._count = last - first
        self._given = None if statuses is None else statuses[first:last]
        self._judged = judged
        self._more = (
            {} if errors is None else {row - first: text for row, text in errors.items() if first <= row < last}
        )

    @classmethod
    def of(cls, capture: Capture, frames: Frames, rows: Array) -> FrameColumns:
        """The columns of the frames ``rows``, which may repeat and have any order."""
        made = cls(capture, frames, 0, 0)
        rows = np.ascontiguousarray(rows, np.int64)
        made._rows, made._count = rows, len(rows)
        return made

    def column(self, name: str) -> columns.Column:
        """The column with this name."""
        made: columns.Column = getattr(self, name)()
        return made

    @cached_property
    def _statuses(self) -> Array:
        """The ``Status`` of each."""
        if self._given is not None:
            return self._given
        return self._frames.statuses[self._rows] if self._judged and len(self._frames.odd) else self._numbers.status

    @cached_property
    def _all_ok(self) -> bool:
        if self._given is not None or (self._judged and len(self._frames.odd)):
            return not self._statuses.any()
        return not self._stats[Stat.NOT_OK]

    def _of(self, name: str) -> Array:
        return self._frames[name][self._rows]

    @cached_property
    def _numbers(self) -> Columns:
        """All that a kernel makes of these frames in one pass."""
        first, which = (self._rows.start, _NO_ROWS) if isinstance(self._rows, slice) else (0, self._rows)
        return self._capture.columns(self._frames, first, which, self._count)

    @cached_property
    def _stats(self) -> list[int]:
        """What it found out, by ``Stat``."""
        stats: list[int] = self._numbers.stats.tolist()
        return stats

    @cached_property
    def _clients(self) -> Array:
        """The ends that are clients: twice a slot, one more for its end B."""
        return self._numbers.ends[: self._stats[Stat.ENDS]]

    def _hosts(self, ends: Array) -> Text:
        """The address of one of these ends for each frame: of that at the place of its client."""
        texts, index = self._capture.addresses(self._frames, ends)
        # Of brokers there is one, as a rule: clients have several connections to it.
        used = set(index.tolist())
        if len(used) == 1:
            return columns.constant(texts.texts[used.pop()].as_py(), self._count)
        return columns.picked(texts, index.take(self._numbers.end))

    # The columns, by their names.

    def capture(self) -> Text:
        """Name of the capture."""
        return columns.constant(self._capture.name, self._count)

    def connection(self) -> pa.Array:
        """Number of the connection (int64)."""
        return pa.array(self._numbers.connection)

    def frame(self) -> pa.Array:
        """Number of the frame in the capture (int64)."""
        return pa.array(self._numbers.number)

    def timestamp(self) -> pa.Array:
        """Capture time of the packet that completed the frame (microseconds in UTC)."""
        valid, nulls = None, self._stats[Stat.NO_TIME]
        if nulls:
            valid = pa.py_buffer(np.packbits(self._of("time") != NO_TIME, bitorder="little"))
        return pa.Array.from_buffers(TIMESTAMP, self._count, [valid, pa.py_buffer(self._numbers.micros)], nulls)

    def direction(self) -> Text:
        """A word of ``DIRECTIONS``."""
        responses = self._stats[Stat.RESPONSES]
        if responses in (0, self._count):
            return columns.constant(DIRECTIONS[responses > 0], self._count)
        return columns.picked(_directions(), self._numbers.response)

    def client_host(self) -> Text:
        """Address of the client."""
        return self._hosts(self._clients)

    def client_port(self) -> pa.Array:
        """TCP port of the client (int32)."""
        return pa.array(self._numbers.client_port)

    def broker_host(self) -> Text:
        """Address of the broker."""
        return self._hosts(self._clients ^ 1)

    def broker_port(self) -> pa.Array:
        """TCP port of the broker (int32)."""
        return pa.array(self._numbers.broker_port)

    def api_key(self) -> pa.Array:
        """API key (int16), null where it is not known."""
        return self._unless(Stat.NO_API, "api", self._numbers.api)

    def api_name(self) -> Text:
        """Name of the API, null where there is none."""
        if self._stats[Stat.NO_NAME]:
            # The last one is that of no API.
            named, keys = _names_or_none(), self._of("api")
            return columns.picked(named, np.where((keys < 0) | (keys >= len(named)), len(named) - 1, keys))
        named, keys = _api_names(), self._numbers.named
        if self._stats[Stat.MIXED]:
            return columns.picked(named, keys)
        return columns.constant(named.texts[int(keys[0])].as_py(), self._count)

    def api_version(self) -> pa.Array:
        """Version of the API (int16), null where it is not known."""
        return self._unless(Stat.NO_VERSION, "version", self._numbers.version)

    def correlation_id(self) -> pa.Array:
        """Correlation id (int32), null where the frame has none."""
        return self._unless(Stat.NO_ID, "id", self._numbers.id)

    def _unless(self, which: int, name: str, made: Array) -> pa.Array:
        """``made`` as a column, null if the frames have no ``name``."""
        return pa.array(made, mask=self._of(name) == ABSENT if self._stats[which] else None)

    def client_id(self) -> Text:
        """Client id of the request, null where there is none."""
        numbers = self._numbers.clients[: self._stats[Stat.CLIENTS]].tolist()
        return columns.picked(self._capture.clients(self._frames, numbers), self._numbers.client)

    def size(self) -> pa.Array:
        """Size of the frame without its size field (int64, bytes)."""
        return pa.array(self._numbers.size)

    def latency_ms(self) -> pa.Array:
        """From request to response (float64, milliseconds), null but for responses with a request."""
        made, nulls = self._numbers, self._stats[Stat.NO_LATENCY]
        valid = pa.py_buffer(made.timed) if nulls else None
        return pa.Array.from_buffers(pa.float64(), self._count, [valid, pa.py_buffer(made.millis)], nulls)

    def status(self) -> Text:
        """A word of ``WORDS``."""
        if self._all_ok:
            return columns.constant(WORDS[Status.OK], self._count)
        return columns.pick(WORDS, self._statuses)

    def error(self) -> Any:
        """What is wrong, as a sentence, null where nothing is."""
        if not self._stats[Stat.WRONG] and not self._more:
            return columns.constant(None, self._count)
        reason, detail = self._of("reason"), self._of("detail")
        wrong = np.flatnonzero(reason)
        # Many rows have one of a few sentences.
        which, _ = _numbered(detail[wrong])
        kind, count = _numbered(which.astype(np.int64) * len(Reason) + reason[wrong])
        example = np.empty(count, np.int64)
        example[kind] = wrong
        texts = [None, *map(sentence, reason[example].tolist(), detail[example].tolist())]
        numbers_ = np.zeros(self._count, np.int32)
        numbers_[wrong] = kind + 1
        for row, text in self._more.items():
            numbers_[row] = len(texts)
            texts.append(text)
        return columns.pick(texts, numbers_)

    def errors(self) -> pa.Array:
        """Names of the error codes of a response, as ``kwire.tables.errors`` makes them."""
        made = self._numbers
        readable = made.response == 1
        if not self._all_ok:
            readable &= _WITH_BODY[self._statuses]
        newer = None
        if self._stats[Stat.ASKING]:
            newer = made.version > api_table().apis["latest"][ApiKey.API_VERSIONS]
            newer &= made.api == ApiKey.API_VERSIONS
        return errors.column(self._frames, self._rows.start, readable, newer)


def _numbered(values: Array) -> tuple[Array, int]:
    """Numbers for the different ones of some integers, and how many there are."""
    made = pa.array(values).dictionary_encode()
    return made.indices.to_numpy(), len(made.dictionary)


class _Maker(Maker):
    def __init__(self, schema_: pa.Schema, run: Run) -> None:
        self._capture = Capture(run.name)
        self._schema = schema_
        self._reads = not {"status", "error"}.isdisjoint(schema_.names)

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        errors = dict(frames.errors(frames.odd)) if self._reads else {}
        for first, last in batch_ranges(text_sizes(self._capture, frames), most_rows=MOST_ROWS):
            made = FrameColumns(self._capture, frames, first, last, errors=errors, judged=self._reads)
            yield columns.filled(self._schema, made.column)


TABLE: Final = CaptureTable(
    name="frames",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=_Maker,
    dictionaries=True,
    shown=(
        Column("time", showing.time("timestamp")),
        Column("client", showing.host("client")),
        Column("", showing.direction),
        Column("broker", showing.host("broker")),
        Column("api", showing.api, shrink=12),
        Column("corr", showing.plain("correlation_id"), right=True),
        Column("client_id", showing.plain("client_id"), shrink=8),
        Column("size", showing.plain("size"), right=True, least=7),
        Column("ms", showing.latency, right=True, least=8),
        Column("status", showing.status),
    ),
)
"""The table ``frames`` of captures (``CaptureTable``): requests and responses."""
