"""Which rows of a capture are wanted: by API, client, time, topic and status.

``Filter.of`` checks what a user has given, ``kwire.tables.reading`` applies it:

- API, client and time belong to frames. They are checked before anything is made of a frame.
- Topics are checked before record sets are decoded. In tables without a topic, a frame counts if it names one of them.
- Words of ``status`` are known last: they choose among rows.

Tables whose rows say what other frames said (``client_metrics``, ``hono``) look at all frames. Histories do so as well.
Of these, rows are chosen once they are made (``ByRow``): what led to a row may be of other clients and earlier.

Rules kept here:

- A filter never changes a row: numbers of frames, names of topics by id and latencies are those of the whole capture.
- Rows that belong to no API, client or topic are left out by a filter for one.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kwire import schema
from kwire.naming import no_such
from kwire.wire import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.capture.frames import Frames
    from kwire.tables.definition import ByRow, CaptureTable

__all__ = ["API", "EPOCH", "Filter"]

Array = Any

API = "api_key"
"""A column (str) of tables that are filtered by row, which is there for filters only: the API of the frame at which a
row stands."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
"""The moment from which timestamps count (``datetime``, UTC)."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What is wanted. None is everything. ``start`` and ``end`` are nanoseconds since 1970, ``end`` not included."""

    apis: frozenset[int] | None = None
    topics: frozenset[str] | None = None
    client_ids: frozenset[str] | None = None
    start: int | None = None
    end: int | None = None
    status: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        *,
        apis: Iterable[str | int] | None = None,
        topics: Iterable[str] | None = None,
        client_ids: Iterable[str] | None = None,
        start: datetime.datetime | str | None = None,
        end: datetime.datetime | str | None = None,
        status: Iterable[str] | None = None,
    ) -> Filter:
        """What the arguments of the same names of ``kwire.capture.read`` mean. Raises ``ValueError``."""
        return cls(
            apis=None if apis is None else frozenset(map(_api, _several(apis, "apis"))),
            # As columns have them: of bytes that are not UTF-8, which a shell may give.
            topics=None if topics is None else frozenset(map(printable, _several(topics, "topics"))),
            client_ids=None if client_ids is None else frozenset(map(printable, _several(client_ids, "client_ids"))),
            start=_instant(start),
            end=_instant(end),
            status=None if status is None else frozenset(_several(status, "status")),
        )

    def arguments(self) -> dict[str, Any]:
        """What ``of`` and ``kwire.capture.read`` make this of."""
        when = {"start": self.start, "end": self.end}
        return {
            "apis": self.apis,
            "topics": self.topics,
            "client_ids": self.client_ids,
            "status": self.status,
        } | {
            name: None if one is None else EPOCH + datetime.timedelta(microseconds=one // 1000)
            for name, one in when.items()
        }

    def __bool__(self) -> bool:
        return self != Filter()

    def check(self, table: CaptureTable) -> None:
        """Raises ``ValueError`` if the table cannot be filtered so."""
        if self and not table.filters:
            raise ValueError(f"the table {table.name} has no filters: a row of it is not of one frame")
        unknown = sorted((self.status or frozenset()) - set(table.statuses))
        if self.status is not None and not table.statuses:
            raise ValueError(f"the table {table.name} has no status")
        if unknown:
            raise ValueError(no_such("status", unknown[0], table.statuses, f"in the table {table.name}"))

    def needed(self, by: ByRow) -> list[str]:
        """The columns that ``rows`` looks at."""
        wanted = [
            (API, self.apis), ("status", self.status), *((one, self.client_ids) for one in by.clients),
            *((one, self.topics) for one in by.topics),
        ]  # fmt: skip
        timed = self.start is not None or self.end is not None
        return [name for name, values in wanted if values is not None] + (list(by.times) if timed else [])

    def rows(self, by: ByRow, batch: pa.RecordBatch) -> Any:
        """Which rows are wanted (``pyarrow.BooleanArray``). ``batch`` has the columns that are ``needed``."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        def among(name: str, values: frozenset[Any]) -> Array:
            column = batch.column(name)
            if not pa.types.is_list(column.type):
                if pa.types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                return pc.is_in(column, pa.array(sorted(values), column.type)).to_numpy(zero_copy_only=False)
            texts = pc.list_flatten(column).field("topic")
            of = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
            right = pc.is_in(texts, pa.array(sorted(values), texts.type)).to_numpy(zero_copy_only=False)
            return np.bincount(of[right], minlength=len(column)) > 0

        wanted: Array = np.ones(batch.num_rows, bool)
        of = (((API,), self.apis), (by.clients, self.client_ids), (by.topics, self.topics), (("status",), self.status))
        for names, values in of:
            if values is not None:
                # Without such a column no row belongs to one.
                some = [among(name, values) for name in names]
                wanted &= np.any(some, axis=0) if some else False
        if self.start is not None or self.end is not None:
            times = pc.coalesce(*(batch.column(name) for name in by.times)).cast(pa.int64())
            # Whether what has no time lies between them is not known.
            wanted &= times.is_valid().to_numpy(zero_copy_only=False)
            at = times.fill_null(0).to_numpy(zero_copy_only=False)
            if self.start is not None:
                wanted &= at >= -(-self.start // 1000)
            if self.end is not None:
                wanted &= at < -(-self.end // 1000)
        return pa.array(wanted)

    def frames(self, frames: Frames) -> Array:
        """Which frames are wanted by API, client and time."""
        import numpy as np

        from kwire.kernels.layouts import NO_TIME

        wanted: Array = np.ones(len(frames), bool)
        if self.apis is not None:
            wanted &= np.isin(frames["api"], sorted(self.apis))
        if self.start is not None:
            wanted &= frames["time"] >= self.start
        if self.end is not None:
            wanted &= frames["time"] < self.end
        if self.start is not None or self.end is not None:
            # Whether a frame without a time lies between them is not known.
            wanted &= frames["time"] != NO_TIME
        if self.client_ids is not None:
            numbers = np.unique(frames["client"][wanted])
            right = [number for number in numbers.tolist() if frames.client_id(number) in self.client_ids]
            wanted &= np.isin(frames["client"], right)
        return wanted


def _several(values: Iterable[Any], name: str) -> Iterable[Any]:
    if isinstance(values, str):
        raise ValueError(f"{name} are several: a list such as [{values!r}], not a text")
    return values


def _api(given: str | int) -> int:
    """The key of an API, by its name in any case, or by its number."""
    known = schema.api_keys()
    if isinstance(given, int):
        return given
    found = next((key for key, name in known.items() if name.lower() == given.lower()), None)
    if found is None and given.isdecimal():
        return int(given)
    if found is None:
        raise ValueError(no_such("API", given, known.values()))
    return found


def _instant(given: datetime.datetime | str | None) -> int | None:
    if given is None:
        return None
    if isinstance(given, str):
        try:
            given = datetime.datetime.fromisoformat(given.strip())
        except ValueError:
            raise ValueError(f"no time {given!r}: times are ISO 8601, such as 2026-11-22T10:30:00Z") from None
    if given.tzinfo is None:
        given = given.replace(tzinfo=datetime.UTC)
    since = given - EPOCH
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
