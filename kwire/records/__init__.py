"""The records inside of Produce requests, Fetch responses and log segments.

Four functions read and write message sets (magic 0 and 1) and record batches (magic 2) in any mixture:

- ``decode(data)`` yields batches of record objects.
- ``encode(records)`` writes them.
- ``to_arrow(data)`` gives the same records as one ``pyarrow.RecordBatch``.
- ``decode_sets(buffer, starts, lengths)`` does that for many record sets at once.

The columns need ``kwire[capture]``; importing this package does not import numpy, pyarrow or numba, and no codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwire.limits import DEFAULT_LIMITS, Limits
from kwire.records.compression import CODECS, Codec
from kwire.records.control import CONTROL_TYPES, control_key
from kwire.records.objects import Batch, Record
from kwire.records.reader import decode
from kwire.records.writer import encode, encode_batch

if TYPE_CHECKING:
    from kwire.records.columnar import SCHEMA, RecordColumns, decode_sets, to_arrow

__all__ = [
    "CODECS",
    "CONTROL_TYPES",
    "DEFAULT_LIMITS",
    "SCHEMA",
    "Batch",
    "Codec",
    "Limits",
    "Record",
    "RecordColumns",
    "control_key",
    "decode",
    "decode_sets",
    "encode",
    "encode_batch",
    "to_arrow",
]

_COLUMNAR = {"SCHEMA", "RecordColumns", "decode_sets", "to_arrow"}


def __getattr__(name: str) -> Any:
    if name in _COLUMNAR:
        from kwire.records import columnar

        return getattr(columnar, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
