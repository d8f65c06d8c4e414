"""The table ``batches`` of captures: one row for each batch, or message of magic 0 and 1, that is sent in a record set.

Record sets are found as for the table ``records``. The columns come from the header of the batch, so no record is read.
The batch is decompressed only for these columns:

- ``uncompressed_size``
- ``status`` and ``error``, which say what could not be decompressed
- ``count`` of a compressed message

``batch`` is the byte of the frame at which the batch begins. It joins ``records`` to the batch.

Rules kept here:

- The rows are those that ``records`` would be made of. A batch that the broker has cut off at the end of a set has no
  row.
- Bytes that are no batch, or that could not be decompressed, are a row with a sentence, as in ``records``.
- Rows do not depend on the columns that were chosen.
- Limits are those of ``records``. Decompressed bytes count for the whole capture. Names of topics are counted before
  they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.kernels.programs import length_column, value_column
from kwire.records.arrow_types import BATCH_FIELDS, STATUS_FIELDS
from kwire.records.crc import WRONG_CHECKSUM
from kwire.tables import columns, showing
from kwire.tables.committed import COMMITTED, SET_NUMBER, first_within
from kwire.tables.definition import CaptureTable, words
from kwire.tables.locating import Failure
from kwire.tables.records import ASKED, R_RECORDS, SET, WORDS, Place, Records, RecordStatus
from kwire.tables.showing import Column
from kwire.wire import CODEC, DELETE_HORIZON

if TYPE_CHECKING:
    from kwire.records.columnar import Batches as FoundBatches

__all__ = ["SCHEMA", "SHOWN", "STATUSES", "TABLE", "Batches"]

Array = Any

SCHEMA: Final = pa.schema(
    [
        *SET,
        pa.field("batch", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("compressed_size", pa.int64()),
        pa.field("uncompressed_size", pa.int64()),
        *(one for one in BATCH_FIELDS if one.name != "crc"),
        *STATUS_FIELDS,
    ]
)
"""One row for each batch. ``size`` counts all its bytes, ``compressed_size`` those of its records as they are sent,
``uncompressed_size`` what they are decompressed. The columns before ``batch`` are as in ``records``, the others as in
``kwire.log.BATCHES``."""

STATUSES: Final = {
    RecordStatus.OK: "a batch, its checksum verified",
    RecordStatus.CORRUPT: "a batch whose checksum does not match",
    RecordStatus.MALFORMED: "bytes that are no batch, or one that cannot be decompressed, with what its header says",
    RecordStatus.UNREADABLE: "the frame is incomplete: what follows the record sets that are whole is not there",
    RecordStatus.TOO_LARGE: "a batch that would become more than a limit allows, how many more problems there were, or "
    "one without the name of its topic, which is longer than any and repeated too often",
}
"""What each ``status`` means. ``error`` says more, in a sentence, unless it is ``ok``."""

_UNPACKED: Final = ("uncompressed_size", "count", "status", "error", COMMITTED.name)
"""Columns that need decompressed batches."""


class Batches(Records):
    """Makes the rows. It needs to know the same of record sets as ``Records``."""

    def _of_sets(self, frames: Frames, sets: Array, of_job: Array, failures: list[Failure]) -> Iterator[pa.RecordBatch]:
        from kwire.records.batching import batch_ranges, text_size
        from kwire.records.columnar import decode_batches

        starts = value_column(sets, R_RECORDS).copy()
        lengths = np.maximum(length_column(sets, R_RECORDS), 0)
        place = Place(self._name, self._topics, frames, sets, of_job, self._wanted, self._committed)
        unpack = not self._wanted.isdisjoint(_UNPACKED)
        found = decode_batches(frames.data, starts, lengths, limits=self._limits, budget=self._budget, unpack=unpack)
        rows = _rows(found, starts, of_job, [(one.row, one.sentence(frames)) for one in failures])
        unnamed = self._unnamed(place, rows.of_set)
        status, said, errors = self._verdicts(frames, place, rows, unnamed)
        costs = place.costs(rows.of_set) + np.array([text_size(text) for text in errors], np.int64)[said]
        costs[unnamed] -= place.long_names[rows.of_set[unnamed]]
        own = _own(found, rows, place, self._wanted)
        for first, last in batch_ranges(costs, most=self._most):
            part = slice(first, last)
            made = place.columns(rows.of_set[part], rows.frame[part], unnamed[part])
            made |= {name: column.slice(first, last - first) for name, column in own.items()}
            if self._committed is not None:
                made[SET_NUMBER.name] = place.numbered(rows.of_set[part])
            made["status"] = columns.pick(WORDS, status[part])
            made["error"] = columns.pick(errors, said[part])
            yield columns.filled(self._schema, made.__getitem__)

    def _verdicts(
        self, frames: Frames, place: Place, rows: _Rows, unnamed: Array
    ) -> tuple[Array, Array, list[str | None]]:
        """The status of each row, the number of its sentence, and the sentences."""
        wrong = rows.crc_ok == 0
        status = np.where(wrong, int(RecordStatus.CORRUPT), int(RecordStatus.OK))
        errors: list[str | None] = [None, WRONG_CHECKSUM, *rows.texts]
        said = np.where(rows.text >= 0, rows.text + 2, wrong)
        wrong = np.flatnonzero(rows.text >= 0)
        if wrong.size:
            texts = [rows.texts[one] for one in rows.text[wrong].tolist()]
            status[wrong] = self._statuses(frames, rows.of_set[wrong], rows.frame[wrong], texts)
        if unnamed.any():
            status[unnamed] = int(RecordStatus.TOO_LARGE)
            pairs = np.stack([said[unnamed], place.long_names[rows.of_set[unnamed]]], axis=1)
            different, which = np.unique(pairs, axis=0, return_inverse=True)
            said[unnamed] = len(errors) + which.reshape(-1)
            for one, size in different.tolist():
                before = errors[one]
                errors.append(self._nameless(size) if before is None else f"{before}; {self._nameless(size)}")
        return status, said, errors


class _Rows(NamedTuple):
    """The rows of a window, in order: batches, bytes that are none, and errors of frames."""

    number: Array
    """Which of the batches that were found. -1 for no batch."""
    of_set: Array
    """Which record set. -1 for an error of a frame."""
    frame: Array
    at: Array
    """The byte of the set."""
    crc_ok: Array
    """1 right, 0 wrong, -1 if there is none."""
    text: Array
    """Which of ``texts``. -1 for none."""
    texts: list[str]


def _rows(found: FoundBatches, starts: Array, of_job: Array, failures: list[tuple[int, str]]) -> _Rows:
    headers, count = found.headers, len(found.headers)
    at = headers["position"] - starts[found.set_index]
    text = np.full(count, -1, np.int64)
    texts: list[str] = []
    others: list[tuple[int, int, int, int]] = []
    places = {}
    if found.problems:
        places = dict(zip(zip(found.set_index.tolist(), at.tolist(), strict=True), range(count), strict=True))
    for one, byte, sentence in found.problems:
        number = places.get((one, byte))
        sentence = f"at byte {byte} of the record set: {sentence}"
        if number is not None and text[number] >= 0:
            texts[text[number]] += f"; {sentence}"
            continue
        if number is None:
            others.append((one, int(of_job[one]), byte, len(texts)))
        else:
            text[number] = len(texts)
        texts.append(sentence)
    strange = (headers["crc_ok"] < 0) | ((headers["magic"] == 2) & (headers["count"] < 0))
    for number in np.flatnonzero(strange & (text < 0)).tolist():
        text[number] = len(texts)
        what = f"an entry of {headers['size'][number]} bytes with magic {headers['magic'][number]}"
        if headers["crc_ok"][number] >= 0:
            what = f"a record count of {headers['count'][number]}"
        texts.append(f"at byte {at[number]} of the record set: {what}")
    for row, sentence in failures:
        others.append((-1, row, 0, len(texts)))
        texts.append(sentence)
    more = np.array(others, np.int64).reshape(-1, 4)
    made = _Rows(
        number=np.concatenate([np.arange(count), np.full(len(more), -1)]),
        of_set=np.concatenate([found.set_index, more[:, 0]]),
        frame=np.concatenate([of_job[found.set_index], more[:, 1]]),
        at=np.concatenate([at, more[:, 2]]),
        crc_ok=np.concatenate([headers["crc_ok"], np.full(len(more), -1)]),
        text=np.concatenate([text, more[:, 3]]),
        texts=texts,
    )
    if not len(more):
        return made
    # Errors of a frame come after its sets.
    order = np.lexsort((made.at, np.where(made.of_set < 0, len(of_job), made.of_set), made.frame))
    return made._replace(**{name: getattr(made, name)[order] for name in _Rows._fields if name != "texts"})


def _own(found: FoundBatches, rows: _Rows, place: Place, wanted: frozenset[str]) -> dict[str, pa.Array]:
    """The columns of batches that are wanted."""
    from kwire.log.reading import header_columns, shown_time

    headers = found.headers
    made = header_columns(headers)
    # An unknown entry has only its place and its size.
    known = headers["crc_ok"] >= 0
    plain = known & (headers["magic"] < 2) & (headers["attributes"] & CODEC == 0)
    batch = known & (headers["magic"] == 2)

    def number(values: Array, there: Array) -> pa.Array:
        return pa.array(values, mask=~there)

    made |= {
        "size": pa.array(headers["size"]),
        "compressed_size": number(found.stored, found.stored >= 0),
        "uncompressed_size": number(found.unpacked, found.unpacked >= 0),
        "base_offset": number(np.where(plain, headers["last"], headers["base"]), plain | batch),
        "count": number(found.records, found.records >= 0),
        "base_timestamp": shown_time(headers["base_timestamp"], batch & (headers["attributes"] & DELETE_HORIZON == 0)),
    }
    of_header = [one for one in SCHEMA.names if one in made and one in wanted and one not in ("status", "error")]
    there = rows.number >= 0
    if there.all() and known.all():
        own = {name: made[name].cast(SCHEMA.field(name).type) for name in of_header}
    else:
        sized = pa.array(rows.number, mask=~there)
        said = pa.array(rows.number, mask=~(there & np.append(known, False)[rows.number]))
        own = {
            name: made[name].cast(SCHEMA.field(name).type).take(sized if name == "size" else said) for name in of_header
        }
    if COMMITTED.name in wanted:
        own[COMMITTED.name] = first_within(found).take(pa.array(rows.number, mask=~there))
    if "batch" in wanted:
        begins = np.append(place.begins, 0)[rows.of_set]
        own["batch"] = pa.array(rows.at + begins, mask=rows.of_set < 0)
    return own


SHOWN: Final = (
    Column("source", showing.plain("source"), least=len("produce")),
    Column("partition", showing.partition, shrink=12),
    Column("first", showing.plain("base_offset"), right=True, least=6),
    Column("last", showing.plain("last_offset"), right=True, least=6),
    Column("records", showing.plain("count"), right=True),
    Column("size", showing.plain("size"), right=True, least=7),
    Column("unpacked", showing.plain("uncompressed_size"), right=True, least=7),
    Column("latest", showing.time("max_timestamp")),
    Column("format", showing.record_format, least=len("v1 snappy")),
    Column("producer", showing.plain("producer_id"), right=True),
    Column("epoch", showing.plain("producer_epoch"), right=True),
    Column("sequence", showing.plain("base_sequence"), right=True),
    Column("status", showing.status, empty="ok"),
)
"""What a terminal shows of a batch (tuple of ``Column``)."""

TABLE: Final = CaptureTable(
    name="batches",
    schema=SCHEMA,
    file="capture",
    statuses=words(STATUSES),
    maker=Batches,
    shown=SHOWN,
    asked=ASKED,
)
"""The table ``batches`` of captures (``CaptureTable``): record batches."""
