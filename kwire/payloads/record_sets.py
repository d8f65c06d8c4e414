"""Record sets in columns of payloads: what ``records`` fields and log segments hold, as rows or as lists of structs.

Rules kept here:

- Rows are in the order of their payloads. A list for each payload. Null in, null out; it has no rows.
- Records before an error stay. What cannot be read, or is left over, is an element at the end.
- A column may hold more records than one Arrow array. So there are several.
- Columns that nobody wants are not made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.limits import DEFAULT_LIMITS, Limits, check_limits
from kwire.log.internal import MAY_HIDE, of_metadata
from kwire.payloads.frames import buffer_of, windows
from kwire.payloads.types import check_flags, chosen, listed, record_type, together
from kwire.records.budget import Budget
from kwire.records.columnar import RecordColumns, decode_groups
from kwire.records.verdicts import CUT_OFF, MALFORMED, among, verdict, words_of

__all__ = ["Records", "lists", "records", "rows"]

Array = Any


@dataclass(frozen=True, slots=True)
class Records:
    """Which columns records have (``type``), and how sets are read. ``strict``: no entry may be cut off."""

    type: pa.StructType
    strict: bool
    limits: Limits

    @property
    def names(self) -> list[str]:
        """The columns of a record."""
        return [one.name for one in self.type]

    def read(self, hides: bool) -> list[str]:
        """What is read of records: the columns, and what they depend on. ``hides``: secrets are left out of some."""
        names = dict.fromkeys(name for name in self.names if name not in _STATUS)
        if not _STATUS.isdisjoint(self.names):
            names["crc_ok"] = None
        if hides and not names.keys().isdisjoint(MAY_HIDE):
            names["is_control"] = None
        return list(names)


_STATUS = frozenset(("status", "error"))


def records(
    fields: Sequence[str] | None, strict: bool, secrets: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Records:
    """``Records`` with these columns. Raises ``KwireError`` for one that there is not, and for a flag that is none.

    ``secrets`` is looked at here, and heeded by whoever says what is hidden.
    """
    check_limits(limits)
    check_flags({"strict": strict, "secrets": secrets}, ("strict", "secrets"))
    return Records(chosen(record_type(), fields), strict, limits)


def rows(column: pa.Array, hides: pa.Array, how: Records) -> Iterator[tuple[Array, pa.RecordBatch]]:
    """The records of an array of payloads, in their order: of each the number of its payload, and the records.

    ``hides``: whether a payload is of the metadata log, whose secrets are left out.
    """
    for first, _, numbers, made in _made(column, hides, how):
        yield first + numbers, pa.RecordBatch.from_struct_array(made)


def lists(column: pa.Array, hides: pa.Array, how: Records) -> Iterator[pa.ListArray]:
    """The records of each payload of an array, as lists in some arrays. One array cannot always hold them."""
    for _, sets, numbers, made in _made(column, hides, how):
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(numbers, minlength=len(sets)))])
        missing = sets.is_null() if sets.null_count else None
        yield pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), made, type=listed(how.type), mask=missing)


def _made(column: pa.Array, hides: pa.Array, how: Records) -> Iterator[tuple[int, pa.Array, Array, pa.StructArray]]:
    """Some payloads, the number of the first, and their records with the number of the payload among these."""
    for first, part in windows(column):
        yield from _at_once(first, part, hides.slice(first, len(part)), how)


def _at_once(
    first: int, part: pa.Array, hides: pa.Array, how: Records
) -> Iterator[tuple[int, pa.Array, Array, pa.StructArray]]:
    buffer, count = buffer_of(part), len(part)
    names, budget = how.read(hides.true_count > 0), Budget(together(how.limits, count))
    lengths = np.diff(buffer.ends)
    for group in decode_groups(buffer.data, buffer.ends[:-1], lengths, limits=how.limits, columns=names, budget=budget):
        if budget.short and count > 1:
            for begin, end in ((0, count // 2), (count // 2, count)):
                size = end - begin
                yield from _at_once(first + begin, part.slice(begin, size), hides.slice(begin, size), how)
            return
        sets, hidden = (one.slice(group.first, group.sets) for one in (part, hides))
        yield first + group.first, sets, *_records(sets, hidden, group.found, how)


def _records(payload: pa.Array, hides: pa.Array, found: RecordColumns, how: Records) -> tuple[Array, pa.StructArray]:
    columns = {name: found.batch.column(name) for name in found.batch.schema.names}
    may_hide = [name for name in MAY_HIDE if name in columns]
    if hides.true_count and may_hide:
        of_rows, control = hides.to_numpy(False)[found.set_index], columns["is_control"].to_numpy(False)
        columns |= of_metadata({name: columns[name] for name in may_hide}, of_rows, control)
    if not _STATUS.isdisjoint(how.names):
        columns["status"], columns["error"] = verdict(columns["crc_ok"])
    values = pa.StructArray.from_arrays([columns[name] for name in how.names], fields=list(how.type))
    problems = found.problems
    words = words_of([said for _, _, said in problems])
    wrong = [
        {"status": word, "error": f"record set at byte {offset}: {said}"}
        for word, (_, offset, said) in zip(words, problems, strict=True)
    ]
    wrong_sets = [index for index, _, _ in problems]
    # If no next entry can be found after a problem, the problem itself says that there is a rest.
    stopped = {index for index, offset, _ in problems if offset >= found.consumed[index]}
    sizes = pc.fill_null(pc.binary_length(payload), 0).to_numpy()
    for index in np.flatnonzero(found.consumed < sizes).tolist():
        if index not in stopped:
            at = int(found.consumed[index])
            said = f"record set at byte {at}: no whole entry is in the {int(sizes[index]) - at} bytes that are left"
            wrong_sets.append(index)
            wrong.append({"status": MALFORMED if how.strict else CUT_OFF, "error": said})
    numbers = np.concatenate([found.set_index, np.array(wrong_sets, np.int32)])
    return np.sort(numbers, kind="stable"), among(values, pa.array(wrong, how.type), numbers)
