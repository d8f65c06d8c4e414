"""``read_committed`` for captures: the records of Fetch responses without those of aborted transactions.

A Fetch response lists the aborted transactions of each partition, where the client asked for ``read_committed``; the
list of others is null. ``Isolation`` finds the lists and leaves out what Kafka's consumer leaves out:
``kwire.records.isolation`` has the rule. Control records are left out with it.

Rules kept here:

- Where there is no list, nothing can be known: all rows stay, and a note counts the transactional ones. That holds for
  followers, for clients that read uncommitted, for Fetch before version 4, for ShareFetch (the broker has chosen
  already) and for Produce requests (their transaction is not over).
- ``__cluster_metadata`` is replicated, with lists that are empty: all its rows stay.
- What no list and no marker speak of stays: rows of damaged bytes, records of other producers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.capture.frames import Frames
from kwire.kernels.engine import choose
from kwire.kernels.programs import length_column, skip_tags, value_column
from kwire.records.isolation import ABORT, NEEDED, Points, aborted
from kwire.schema.keys import ApiKey

if TYPE_CHECKING:
    from kwire.records import RecordColumns

__all__ = ["COLUMNS", "LISTS", "Isolation", "Listed"]

Array = Any

LISTS: Final = "responses.partitions.aborted_transactions"
"""Where the list of a partition stands in a Fetch response."""
COLUMNS: Final = (*NEEDED, "control_type")
"""The columns of records that ``Listed.kept`` needs."""

_FIRST: Final = 4
"""The first version of Fetch that has lists."""
_COMPACT: Final = 12
"""The first version whose counts are varints, and whose elements end in tagged fields."""
_ENTRY: Final = np.dtype([("producer", ">i8"), ("first", ">i8")])


class Isolation:
    """What is known of the record sets of one capture."""

    def __init__(self) -> None:
        self._fetched = self._produced = 0

    def unknown(self, fetched: int, produced: int) -> None:
        """So many transactional records have no list."""
        self._fetched += fetched
        self._produced += produced

    def notes(self) -> list[str]:
        """Sentences about the records of which nothing could be known."""
        made = []
        if self._fetched:
            made.append(
                f"{_counted(self._fetched)} in responses without a list of aborted transactions: the client reads "
                "uncommitted ones too, so they are all rows"
            )
        if self._produced:
            made.append(f"{_counted(self._produced)} in Produce requests: whether they are committed is decided later")
        return made


class Listed:
    """The aborted transactions of the record sets of a window. Pieces of these are to come in order.

    ``at``: the register with the place of each list and how many entries there are. ``others``: record sets that no
    consumer gets.
    """

    def __init__(
        self, isolation: Isolation, frames: Frames, sets: Array, of_job: Array, *, at: int, others: Array
    ) -> None:
        self._isolation = isolation
        fetch = (frames["api"][of_job] == ApiKey.FETCH) & (frames["response"][of_job] == 1)
        versions = frames["version"][of_job]
        self._produced: Array = frames["response"][of_job] == 0
        begins = value_column(sets, at)
        has_list = fetch & (versions >= _FIRST) & (begins > 0) & ~others
        compact = versions >= _COMPACT
        has_list[has_list] = ~_nulls(frames.data, begins[has_list], compact[has_list])
        self.has_list: Array = has_list
        """Of which record sets the aborted transactions are known."""
        counts = np.where(has_list, length_column(sets, at), 0)
        found = [
            np.stack([np.full(count, one), *_entries(frames.data, int(begins[one]), count, compact[one])])
            for one, count in enumerate(counts.tolist())
            if count
        ]
        of_set, producers, firsts = np.concatenate(found, axis=1) if found else np.zeros((3, 0), np.int64)
        self._producers = np.unique(producers)
        self._some = np.zeros(len(sets), bool)
        self._some[of_set] = True
        self._begun = Points(self._number(of_set, producers), firsts)
        self._markers: list[Array] = []

    def kept(self, found: RecordColumns) -> RecordColumns:
        """A piece of the records without those that a consumer does not get. It needs the ``COLUMNS``."""
        batch, sets = found.batch, found.set_index
        control = np.asarray(batch.column("is_control"))
        listed = self.has_list[sets]
        transactional = np.asarray(batch.column("is_transactional"))
        loose = transactional & ~control & ~listed
        if loose.any():
            produced = int(np.count_nonzero(loose & self._produced[sets]))
            self._isolation.unknown(int(np.count_nonzero(loose)) - produced, produced)
        gone = listed & control
        rows = np.flatnonzero(self._some[sets] & transactional)
        if len(rows):
            gone[rows] |= self._aborted(batch, sets, rows)
        if not gone.any():
            return found
        return replace(found, batch=batch.filter(pa.array(~gone)), set_index=sets[~gone])

    def _aborted(self, batch: pa.RecordBatch, sets: Array, rows: Array) -> Array:
        """Which of some rows belong to aborted transactions."""
        some = pa.array(rows)
        producers = pc.fill_null(batch.column("producer_id").take(some), -1).to_numpy(False)
        offsets = batch.column("offset").take(some).to_numpy(False)
        marks = pc.fill_null(pc.equal(batch.column("control_type").take(some), ABORT), False).to_numpy(False)
        known = self._known(producers)
        numbers = self._number(sets[rows].astype(np.int64), producers)
        # A set may be in several pieces.
        self._markers.append(np.stack([numbers, offsets])[:, marks & known])
        numbers_of, offsets_of = np.concatenate(self._markers, axis=1)
        made: Array = known & aborted(numbers, offsets, self._begun, Points(numbers_of, offsets_of))
        return made

    def _known(self, producers: Array) -> Array:
        place = np.searchsorted(self._producers, producers)
        return np.append(self._producers, 0)[place] == producers

    def _number(self, of_set: Array, producers: Array) -> Array:
        """One number for a producer that is known, and a record set."""
        return of_set * (len(self._producers) + 1) + np.searchsorted(self._producers, producers)


def _nulls(data: Array, at: Array, compact: Array) -> Array:
    """Which lists are null. ``at``: the byte behind the count of each, which is a varint where it is ``compact``."""
    made: Array = np.where(compact, data[at - 1] == 0, data[at - 4] >= 128)
    return made


def _entries(data: Array, at: int, count: int, compact: bool) -> tuple[Array, Array]:
    """The producers and first offsets of a list."""
    if not compact:
        found = data[at : at + count * _ENTRY.itemsize].view(_ENTRY)
        return found["producer"].astype(np.int64), found["first"].astype(np.int64)
    wide = _ENTRY.itemsize + 1
    rows = data[at : at + count * wide]
    if rows.size < count * wide or rows[_ENTRY.itemsize :: wide].any():
        rows = np.concatenate(list(_walked(data, at, count)))
    found = np.ascontiguousarray(rows.reshape(count, -1)[:, : _ENTRY.itemsize]).view(_ENTRY)[:, 0]
    return found["producer"].astype(np.int64), found["first"].astype(np.int64)


def _walked(data: Array, at: int, count: int) -> Iterator[Array]:
    """Entries with tagged fields behind them."""
    skip = choose(0)(skip_tags)
    for _ in range(count):
        yield data[at : at + _ENTRY.itemsize]
        at = int(skip(data, at + _ENTRY.itemsize))


def _counted(count: int) -> str:
    return "1 transactional record is" if count == 1 else f"{count:,} transactional records are"
