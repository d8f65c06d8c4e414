"""``read_committed`` for log segments: which records are committed, by the markers of the whole log.

A record of a transaction is decided by the next marker of its producer. That marker may stand in a later segment. So
the headers of a segment are read first, and those of later segments for as long as a transaction is open. An entry of
``.txnindex`` counts as a marker too: it stands beside the segment that had the marker. Transactions that were open
before the segment began, and have no record in it, are known from the ``.snapshot`` of its first offset.

Rules kept here:

- A consumer gets nothing after the first record of a transaction that is still open (the last stable offset). The end
  of the log is the end of the last segment in the folder. Records after that are left out and counted.
- Control records are left out, as Kafka's consumer does.
- Only markers whose checksum is right count. If a later file is damaged, open transactions stay open.

Source: Kafka's LogSegment.collectAbortedTxns, ProducerStateManager, Records of KIP-98.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

from kwire.errors import CaptureError, KwireError, MissingExtraError

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as _missing:  # pragma: no cover - depends on the installation
    raise MissingExtraError("reading captures and log segments", "capture") from _missing

from kwire.log.files import has_segment_name, plain
from kwire.log.folders import producers_of
from kwire.log.regions import Region, headers_of, regions
from kwire.log.transaction_index import aborted_of
from kwire.opening import is_regular, open_file
from kwire.records.control import control_type
from kwire.records.isolation import ABORT, COMMIT, NEEDED, Points
from kwire.records.reader import decode
from kwire.wire import CONTROL, TRANSACTIONAL

__all__ = ["NEEDED", "Beside", "Decided", "InFolder", "decided"]

Array = Any

_FIRST_RECORD: Final = 61
"""Bytes of a batch before its first record."""
_MOST_BESIDE: Final = 8 << 20
"""Bytes of a .txnindex or .snapshot."""
_WINDOW: Final = 1 << 20
"""Bytes that are read at once for their headers. They are checksummed while they are in the cache: a quarter faster
than windows of 8 MiB."""


class Beside(Protocol):
    """The folder of a segment."""

    @property
    def name(self) -> str:
        """The name of the segment in it."""

    def names(self) -> list[str]:
        """The names of the files in it. Raises ``OSError``."""

    def open(self, name: str) -> BinaryIO:
        """One of them, from its beginning. Raises ``OSError``."""


@dataclass(frozen=True, slots=True)
class InFolder:
    """The folder of a segment on this machine."""

    path: Path

    @property
    def name(self) -> str:
        """The name of the segment."""
        return self.path.name

    def names(self) -> list[str]:
        """The files in the folder that are not compressed. Raises ``OSError``."""
        files = self.path.absolute().parent.iterdir()
        return [one.name for one in files if is_regular(one) and plain(one.name) == one.name]

    def open(self, name: str) -> BinaryIO:
        """One of them. Raises ``OSError``."""
        return open_file(self.path.parent / name, named=name == self.name, buffering=0)


def _readable(stream: BinaryIO, unread: list[str]) -> Iterator[Region]:
    """The regions of a segment up to where it cannot be read any further. ``unread`` gets what is wrong there."""
    try:
        yield from regions(stream, size=_WINDOW)
    except CaptureError as error:
        unread.append(str(error))


@dataclass(slots=True)
class _Log:
    """What some segments say of transactions."""

    producers: list[Array] = field(default_factory=list)
    offsets: list[Array] = field(default_factory=list)
    aborts: list[Array] = field(default_factory=list)
    open: dict[int, int] = field(default_factory=dict)
    """The first offset of each transaction that is open, by its producer."""
    unread: list[str] = field(default_factory=list)
    """What is wrong with files that stand beside the segments."""

    def read(self, stream: BinaryIO, only: frozenset[int] | None = None) -> None:
        """Takes one more segment. ``only``: these producers matter, and no transaction begins any more."""
        for region in _readable(stream, self.unread):
            table = headers_of(region)
            table = table[
                (table["crc_ok"] == 1)
                & (table["magic"] == 2)
                & (table["attributes"] & TRANSACTIONAL != 0)
                & (table["producer"] >= 0)
            ]
            if only is not None:
                table = table[np.isin(table["producer"], list(only))]
            if len(table):
                self._take(region.data, table, begins=only is None)

    def mark(self, producers: Array, offsets: Array, aborts: Array) -> None:
        """Takes markers."""
        self.producers.append(producers)
        self.offsets.append(offsets)
        self.aborts.append(aborts)
        some, which = np.unique(producers, return_inverse=True)
        last = np.full(len(some), -1)
        np.maximum.at(last, which, offsets)
        for producer, offset in zip(some.tolist(), last.tolist(), strict=True):
            if self.open.get(producer, offset) < offset:
                del self.open[producer]

    def _take(self, data: Array, table: Array, *, begins: bool) -> None:
        control = table["attributes"] & CONTROL != 0
        marks = table[control]
        kinds = _kinds(data, marks)
        marks = marks[kinds >= 0]
        self.mark(marks["producer"].copy(), marks["base"].copy(), kinds[kinds >= 0] == 0)
        if begins:
            batches = table[~control]
            ended = Points(marks["producer"], marks["base"]).after(batches["producer"], batches["base"]) >= 0
            self._begin(batches[~ended])

    def _begin(self, batches: Array) -> None:
        """Takes batches that no marker ends so far."""
        producers, which = np.unique(batches["producer"], return_inverse=True)
        first = np.full(len(producers), np.iinfo(np.int64).max)
        np.minimum.at(first, which, batches["base"])
        for producer, offset in zip(producers.tolist(), first.tolist(), strict=True):
            self.open[producer] = min(offset, self.open.get(producer, offset))


def _kinds(data: Array, marks: Array) -> Array:
    """Of control batches: 0 for an abort marker, 1 for a commit marker, -1 for others."""
    # A marker as brokers write it has one record. Its length, attributes, time, offset and length of the key are one
    # byte each.
    at = marks["position"] + _FIRST_RECORD
    plain = (marks["count"] == 1) & (marks["size"] >= _FIRST_RECORD + 9)
    at = np.where(plain, at, 0)
    key = data[at[:, None] + np.arange(9)] if len(at) and data.size >= 9 else np.zeros((len(at), 9), np.uint8)
    plain &= (key[:, 0] < 128) & (key[:, 2] < 128) & (key[:, 3] < 128) & (key[:, 4] == 8)
    # From numpy 2.5 on, -1 is no value of a byte here either.
    kinds = np.where(plain & (key[:, 7] == 0) & (key[:, 8] < 2), key[:, 8].astype(np.int64), -1)
    for one in np.flatnonzero(~plain).tolist():
        begin = int(marks["position"][one])
        batch = next(decode(data[begin : begin + int(marks["size"][one])].tobytes(), problems=[]), None)
        kind = None if batch is None or not batch.records else control_type(batch.records[0].key)
        kinds[one] = (ABORT, COMMIT).index(kind) if kind in (ABORT, COMMIT) else -1
    return kinds


class Decided:
    """What is decided of the records of one segment. ``stable``: no consumer gets an offset from it on. None: it gets
    all."""

    def __init__(self, log: _Log) -> None:
        def joined(parts: list[Array], kind: Any) -> Array:
            return np.concatenate([np.zeros(0, kind), *parts])

        self._markers = Points(joined(log.producers, np.int64), joined(log.offsets, np.int64))
        self._aborts = np.append(joined(log.aborts, bool)[self._markers.order], False)
        first = min(((first, one) for one, first in log.open.items()), default=None)
        self.stable: int | None
        self._producer: int | None
        self.stable, self._producer = first or (None, None)
        self._beyond = 0
        self._unread = log.unread

    def kept(self, rows: pa.RecordBatch) -> Array | None:
        """Which records a consumer gets, of a batch with the columns ``NEEDED``: a mask. None for all."""
        gone = np.array(rows.column("is_control"))
        if self.stable is not None:
            beyond = rows.column("offset").to_numpy() >= self.stable
            self._beyond += int(np.count_nonzero(beyond & ~gone))
            gone |= beyond
        some = np.flatnonzero(np.asarray(rows.column("is_transactional")) & ~gone)
        if len(some):
            producers = pc.fill_null(rows.column("producer_id"), -1).to_numpy(False)[some]
            gone[some] = self._aborted(some, producers, rows.column("offset").to_numpy(False)[some])
        return ~gone if gone.any() else None

    def _aborted(self, some: Array, producers: Array, offsets: Array) -> Array:
        """Which records are of aborted transactions. They are in the rows ``some``.

        Neighbours of one producer between two of its markers are decided together: a lookup for each record would take
        as long as decoding it.
        """
        ends = (np.diff(some) != 1) | (np.diff(producers) != 0) | (np.diff(offsets) < 0)
        begin = np.concatenate([[0], np.flatnonzero(ends) + 1])
        count = np.diff(np.append(begin, len(some)))
        found = self._markers.after(producers[begin], offsets[begin])
        # A record without a marker although nothing is open: the checksum of its batch is wrong. Its row says so.
        aborted: Array = np.repeat(self._aborts[found], count)
        # A marker may be no row: it was compacted away, or its checksum was wrong where it was read again.
        several = found != self._markers.after(producers[begin], offsets[begin + count - 1])
        if several.any():
            each = np.repeat(several, count)
            aborted[each] = self._aborts[self._markers.after(producers[each], offsets[each])]
        return aborted

    def notes(self) -> list[str]:
        """Sentences about what was left out because nothing is decided."""
        unread = [f"{one}: a transaction that it alone knows to be aborted counts as committed" for one in self._unread]
        if not self._beyond:
            return unread
        count = "1 record is" if self._beyond == 1 else f"{self._beyond:,} records are"
        return [
            *unread,
            f"{count} left out from offset {self.stable} on: the transaction of producer {self._producer} that began "
            "there is still open at the end of the log",
        ]


def decided(beside: Beside | None, stream: BinaryIO | None, base_offset: int | None) -> Decided:
    """What is decided of the records of a segment.

    ``stream``: the segment, if ``beside`` is not known. It is read to its end. ``base_offset``: the number in its
    name; without it nothing is known of other segments. Raises ``OSError`` for a file that is there and cannot be read.
    """
    log = _Log()
    names = [] if beside is None or base_offset is None else beside.names()
    if beside is not None and base_offset is not None:
        _before(log, beside, f"{base_offset:020}.snapshot", names)
    if stream is not None:
        log.read(stream)
    elif beside is not None:
        with beside.open(beside.name) as own:
            log.read(own)
    if beside is None or base_offset is None:
        return Decided(log)
    _index(log, beside, f"{base_offset:020}.txnindex", names)
    for name in _later(names, base_offset):
        if not log.open:
            break
        with contextlib.suppress(FileNotFoundError), beside.open(name) as other:
            log.read(other, frozenset(log.open))
        # After the markers of the log: a transaction that it commits may be followed by one that is aborted.
        _index(log, beside, f"{name[:20]}.txnindex", names)
    return Decided(log)


def _later(names: list[str], base_offset: int) -> Iterator[str]:
    """The segments after one, in order."""
    by_offset = {}
    for name in sorted(names, reverse=True):
        # Compressed or not. If both are there, the plain one, which comes last.
        segment = plain(name)
        if has_segment_name(segment) and segment.endswith(".log") and int(name[:20]) > base_offset:
            by_offset[segment] = name
    yield from (by_offset[one] for one in sorted(by_offset))


def _small(beside: Beside, name: str, names: list[str]) -> bytes | None:
    """What a file holds. None if there is none, or none that brokers write."""
    if name not in names:
        return None
    with contextlib.suppress(FileNotFoundError), beside.open(name) as file:
        return file.read(_MOST_BESIDE)
    return None


def _before(log: _Log, beside: Beside, name: str, names: list[str]) -> None:
    """Takes the transactions that were open when the segment began."""
    data = _small(beside, name, names)
    if data is None:
        return
    try:
        for one in producers_of(data, name):
            if one.current_first_offset is not None:
                log.open[one.producer_id] = one.current_first_offset
    except KwireError as error:
        log.unread.append(str(error))


def _index(log: _Log, beside: Beside, name: str, names: list[str]) -> None:
    """Takes the entries of a .txnindex as markers."""
    data = _small(beside, name, names)
    if data is None:
        return
    try:
        found = aborted_of(data, name)
    except KwireError as error:
        log.unread.append(str(error))
        return
    marks = np.array([(one.producer_id, one.last_offset) for one in found], np.int64).reshape(-1, 2)
    log.mark(marks[:, 0], marks[:, 1], np.ones(len(marks), bool))
