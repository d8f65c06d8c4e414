"""What the tables of events have in common: they are made from the table ``records``, whose place stands in front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from kwire.capture.frames import Frames
from kwire.events.columns import PLACE, RENAMED
from kwire.limits import Limits
from kwire.tables.definition import Maker, Run
from kwire.tables.records import SCHEMA as RECORDS
from kwire.tables.records import Records

__all__ = ["PLACE_FIELDS", "OfRecords", "renamed", "said"]

PLACE_FIELDS: Final = tuple(RECORDS.field(name).with_name(RENAMED.get(name, name)) for name in PLACE)
"""``PLACE`` of ``kwire.events.columns`` as Arrow fields, under the names that they have here."""

MOST_ROWS: Final = 1 << 13
"""Records that are read at once: those that are not taken apart by the column become Python objects."""
MOST_BYTES: Final = 8 << 20
"""Bytes of text in the rows of records that are made at once: what is made of them has the same names again."""

_NAMES: Final = {RENAMED.get(name, name): name for name in PLACE}


def renamed(name: str) -> str:
    """What a column of ``records`` is called here."""
    return RENAMED.get(name, name)


class OfRecords(Maker):
    """Makes rows out of those of ``records``, of which it asks for ``needed`` and for the place that ``schema`` has."""

    sees_all = True

    def __init__(self, schema: pa.Schema, run: Run, needed: Iterable[str]) -> None:
        self.schema = schema
        self.limits: Limits = run.options["limits"]
        place = (_NAMES[one] for one in schema.names if one in _NAMES)
        columns = dict.fromkeys([*place, *needed])
        self._records = Records(pa.schema([RECORDS.field(one) for one in columns]), run, MOST_BYTES, names=True)

    def of_records(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that some records give."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        return self._records.notes()

    def batches(self, frames: Frames) -> Iterator[pa.RecordBatch]:
        for records in self._records.batches(frames):
            for first in range(0, records.num_rows, MOST_ROWS):
                yield self.of_records(records.slice(first, MOST_ROWS))


def said(own: str | None, status: str, error: str | None) -> str | None:
    """What is wrong with an event and with the record that holds it."""
    if status == "ok":
        return own
    record = f"record {status}" if error is None else f"record {status}: {error}"
    return record if own is None else f"{own}; {record}"
