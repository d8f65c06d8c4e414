"""Arrow in Spark: functions over batches on workers, without pandas, and tables as compressed bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kwire.spark.workers import begin_task, plainly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["mapped", "packed", "quoted", "stateful", "unpacked"]


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever characters it has."""
    return "`{}`".format(name.replace("`", "``"))


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
        column = made(*(frame[quoted(name)] for name in frame.columns))
        java: Any = frame._jdf
        return Frame(java.mapInArrow(column._jc, False, None), frame.sparkSession)


def stateful(frame: DataFrame, key: str, processor: Any, schema: Any) -> DataFrame:
    """``frame.groupBy(key).transformWithState(...)`` of rows, with timers of event time.

    It asks for pandas and does not use it: this is the same without it.
    """
    from pyspark.errors import PySparkImportError

    grouped = frame.groupBy(key)
    try:
        return grouped.transformWithState(processor, schema, "Append", "EventTime")
    except PySparkImportError:
        from pyspark.sql import DataFrame as Frame
        from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils
        from pyspark.sql.udf import _create_udf
        from pyspark.util import PythonEvalType

        session: Any = frame.sparkSession
        function = TransformWithStateInPandasUdfUtils(processor, "EventTime").transformWithStateUDF
        made: Any = _create_udf(function, schema, PythonEvalType.SQL_TRANSFORM_WITH_STATE_PYTHON_ROW_UDF)
        column = made(*(frame[quoted(name)] for name in frame.columns))
        java: Any = grouped._jgd
        type_ = session._jsparkSession.parseDataType(schema.json())
        terms = (column._jc, type_, "Append", "EventTime", None, "")
        return Frame(java.transformWithStateInPySpark(*terms), frame.sparkSession)


@plainly
def _task(function: Callable[[Iterable[Any]], Iterator[Any]], batches: Iterable[Any]) -> Iterator[Any]:
    begin_task()
    yield from function(batches)


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
