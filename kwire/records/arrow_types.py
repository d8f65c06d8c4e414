"""Arrow types of record columns, in every table that has them.

Imports pyarrow and no kernel, so that a schema costs no compilation. Only types that Spark's Python data source
accepts: see ``kwire.tables``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["DICTIONARY", "HEADERS", "TIMESTAMP", "dtype_of"]

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""Every point in time. A Kafka timestamp has milliseconds, a capture at most nanoseconds (cut to microseconds)."""

DICTIONARY: Final = pa.dictionary(pa.int32(), pa.string())

HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]), nullable=True)
)
"""Record headers, the type that Spark's own Kafka source uses: a key may repeat, a value may be null."""


def dtype_of(type_: pa.DataType) -> Any:
    """The dtype of numpy of a type of integers. Arrow's own ``to_pandas_dtype`` needs pandas, in some versions."""
    return np.dtype(str(type_))
