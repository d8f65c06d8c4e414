"""Arrow in Spark: functions over batches on workers, without pandas, joined batches, and tables as compressed bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kwire.spark.workers import begin_task, plainly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kwire.spark.files import File

__all__ = ["JOINED", "SMALL", "Joined", "mapped", "packed", "unpacked"]

SMALL: Final = 1 << 20
"""Bytes of a file whose batches may wait for those of the next file, at most."""
JOINED: Final = 1 << 20
"""Bytes of batches that wait, at most. A batch of that many is not copied."""


def mapped(frame: DataFrame, function: Callable[[Iterable[Any]], Iterator[Any]], schema: Any) -> DataFrame:
    """``frame.mapInArrow(function, schema)``, which asks for pandas and does not use it: the same without it."""
    from pyspark.errors import PySparkImportError

    function = partial(_task, function)
    try:
        return frame.mapInArrow(function, schema)
    except PySparkImportError:
        from pyspark.sql import DataFrame as Frame
        from pyspark.sql.udf import _create_udf
        from pyspark.util import PythonEvalType

        made: Any = _create_udf(function, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        column = made(*(frame[name] for name in frame.columns))
        java: Any = frame._jdf
        return Frame(java.mapInArrow(column._jc, False, None), frame.sparkSession)


@plainly
def _task(function: Callable[[Iterable[Any]], Iterator[Any]], batches: Iterable[Any]) -> Iterator[Any]:
    begin_task()
    yield from function(batches)


class Joined:
    """Joins batches of small files: each batch that goes to the JVM costs as much as decoding 20 kB.

    Rows keep their order. A large file waits for nothing, and nothing waits for it: how long it takes until it has a
    row is not known.
    """

    def __init__(self) -> None:
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0

    def of(self, file: File, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches to give, if these are the next ones, of ``file``. They may wait for ``rest``."""
        if file.split is not None or file.size is None or file.size > SMALL:
            yield from self.rest()
            yield from batches
            return
        for batch in batches:
            # Of slices more than they are. What they are takes 20 times as long to ask.
            size = batch.get_total_buffer_size()
            if self._bytes + size > JOINED:
                yield from self.rest()
            self._waiting.append(batch)
            self._bytes += size

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What waits, as one batch."""
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if waiting:
            yield waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)


def packed(table: pa.Table) -> bytes:
    """A table as compressed bytes.

    Compressed as a whole: of tables of few rows and some hundred columns, as states are, each buffer alone takes ten
    times as long, and comes out twice as large.
    """
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as compressed, pa.ipc.new_stream(compressed, table.schema) as writer:
        writer.write_table(table)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def unpacked(data: bytes) -> pa.Table:
    """The table that ``packed`` made bytes of. Raises ``pyarrow.ArrowException``, ``OSError``."""
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as whole, pa.ipc.open_stream(whole.read()) as reader:
        return reader.read_all()
