"""Arrow types of record columns, in every table that has them.

Imports pyarrow and no kernel, so that a schema costs no compilation. Only types that Spark's Python data source
accepts: see ``kwire.tables``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = [
    "BATCH_FIELDS",
    "DICTIONARY",
    "HEADERS",
    "POSITION",
    "RECORD_FIELDS",
    "SCHEMA",
    "STATUS_FIELDS",
    "TIMESTAMP",
    "dtype_of",
]

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""Every point in time.

A Kafka timestamp has milliseconds, a capture at most nanoseconds (cut to microseconds).
"""

DICTIONARY: Final = pa.dictionary(pa.int32(), pa.string())
"""Type (``pyarrow.DictionaryType``) of columns with few different strings: int32 indices."""

HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]), nullable=True)
)
"""Record headers, the type that Spark's own Kafka source uses: a key may repeat, a value may be null."""

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", TIMESTAMP),
        pa.field("timestamp_type", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS, nullable=False),
        pa.field("magic", pa.int8(), nullable=False),
        pa.field("compression", pa.string(), nullable=False),
        pa.field("crc_ok", pa.bool_(), nullable=False),
        pa.field("base_offset", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("partition_leader_epoch", pa.int32()),
        pa.field("is_transactional", pa.bool_(), nullable=False),
        pa.field("is_control", pa.bool_(), nullable=False),
        pa.field("control_type", pa.string()),
    ]
)
"""The columns of a record batch, in order.

``timestamp`` is null in magic 0, for Kafka's "no timestamp" (-1), and outside of the years 1 to 9999. Spark and Python
can show only those years. ``timestamp_type`` is ``CreateTime``, ``LogAppendTime``, or null in magic 0. ``compression``
is the codec of the batch or of the outermost wrapper. ``base_offset`` is that of the batch. In message sets it is the
offset that the stored offsets are relative to. It is 0 for magic 0 and for messages outside of a wrapper. The producer
columns are null where the batch has -1 or no such field. ``control_type`` is null except in control records.
"""

RECORD_FIELDS: Final = tuple(pa.field(one.name, one.type) for one in SCHEMA if one.name != "base_offset")
"""Those that the tables of records have, null in rows that are no record."""

BATCH_FIELDS: Final = (
    pa.field("magic", pa.int8()),
    pa.field("base_offset", pa.int64()),
    pa.field("last_offset", pa.int64()),
    pa.field("count", pa.int32()),
    pa.field("base_timestamp", TIMESTAMP),
    pa.field("max_timestamp", TIMESTAMP),
    pa.field("timestamp_type", pa.string()),
    pa.field("compression", pa.string()),
    pa.field("crc", pa.int64()),
    pa.field("crc_ok", pa.bool_()),
    pa.field("producer_id", pa.int64()),
    pa.field("producer_epoch", pa.int16()),
    pa.field("base_sequence", pa.int32()),
    pa.field("partition_leader_epoch", pa.int32()),
    pa.field("is_transactional", pa.bool_()),
    pa.field("is_control", pa.bool_()),
    pa.field("delete_horizon", TIMESTAMP),
)
"""What the header of a batch says, in the tables of batches; null in rows that are no batch."""

STATUS_FIELDS: Final = (pa.field("status", pa.string(), nullable=False), pa.field("error", pa.string()))
"""The last columns of tables of records and batches."""

POSITION: Final = pa.field("position", pa.int64(), nullable=False)
"""One more column, for callers who ask for it by name.

It is the byte of the record set at which the record's batch starts.
"""


def dtype_of(type_: pa.DataType) -> Any:
    """The dtype of numpy of a type of integers.

    Arrow's own ``to_pandas_dtype`` needs pandas, in some versions.
    """
    return np.dtype(str(type_))
