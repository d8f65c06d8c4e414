"""Record sets in columns of payloads: what ``records`` fields and log segments hold, as lists of structs.

Rules kept here:

- A list for each payload, in their order. Null in, null out.
- Records before an error stay. What cannot be read, or is left over, is an element at the end.
- A column may hold more records than one Arrow array. So there are several.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kwire.limits import Limits
from kwire.log.internal import MAY_HIDE, of_metadata
from kwire.payloads.frames import buffer_of, windows
from kwire.payloads.types import list_of_records, record_type
from kwire.records.columnar import RecordColumns, decode_groups
from kwire.records.verdicts import CUT_OFF, MALFORMED, among, verdict, words_of

__all__ = ["record_sets"]


def record_sets(column: pa.Array, hides: pa.Array, strict: bool, limits: Limits) -> Iterator[pa.ListArray]:
    """The records of each payload of an array, as lists in some arrays. One array cannot always hold them.

    ``hides``: whether a payload is of the metadata log, whose secrets are left out. ``strict``: no entry may be cut
    off.
    """
    for first, part in windows(column):
        buffer = buffer_of(part)
        lengths = np.diff(buffer.ends)
        for group in decode_groups(buffer.data, buffer.ends[:-1], lengths, limits=limits):
            sets = part.slice(group.first, group.sets)
            yield _lists(sets, hides.slice(first + group.first, group.sets), group.found, strict)


def _lists(payload: pa.Array, hides: pa.Array, found: RecordColumns, strict: bool) -> pa.Array:
    columns = [*found.batch.columns, *verdict(found.batch.column("crc_ok"))]
    if hides.true_count:
        of_rows, control = hides.to_numpy(False)[found.set_index], found.batch.column("is_control").to_numpy(False)
        some = of_metadata({one: found.batch.column(one) for one in MAY_HIDE}, of_rows, control)
        for name, column in some.items():
            columns[found.batch.schema.get_field_index(name)] = column
    values = pa.StructArray.from_arrays(columns, fields=list(record_type()))
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
            wrong.append({"status": MALFORMED if strict else CUT_OFF, "error": said})
    set_index = np.concatenate([found.set_index, np.array(wrong_sets, np.int32)])
    values = among(values, pa.array(wrong, record_type()), set_index)
    counts = np.bincount(set_index, minlength=len(payload))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)
    missing = payload.is_null() if payload.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=list_of_records(), mask=missing)
