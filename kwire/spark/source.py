"""The Spark data source ``kwire``: captures as the tables ``frames``, ``messages``, ``records`` and ``client_metrics``.

Spark asks in three places. On the driver, ``schema`` names the columns and ``partitions`` lists the files, one
partition each; both run again for every action, so they touch no file's content. On a worker, ``read`` opens its file
and yields what ``kwire.capture.read`` yields, as Arrow batches. Only there are numba and the kernels imported.

Rules kept here:

- The columns are those of ``kwire.capture.tables`` and ``kwire.events.telemetry``, with every one but ``capture`` and
  ``status`` nullable, because of the next rule.
- A file that cannot be read, or not to its end, is a last row with ``status`` ``bad_file``, ``error`` that says why,
  and nothing else but ``capture``. What was read before it stays. A bug, or a worker without the ``capture`` extra,
  fails the job: neither is bad input.
- Batches have exactly the Arrow schema that Spark derives from its own (order, nullability, ``timestamp[us, UTC]``),
  since Spark compares. A schema that the user gives chooses columns by name; it is the only way to leave columns out,
  because Spark does not prune the columns of a Python data source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType

from kwire.errors import KwireError, MissingExtraError
from kwire.spark.workers import prefer_drivers_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kwire.capture.tables import Table
    from kwire.spark.files import File

__all__ = ["BAD_FILE", "KwireDataSource", "table_schema"]

BAD_FILE = "bad_file"
"""``status`` of the row that stands for a file that could not be read, or not to its end."""

ALWAYS = ("capture", "status")
"""The columns that even the row of a bad file has."""

TABLE, PORTS, PATH, PATHS = "table", "ports", "path", "paths"

CLIENT_METRICS = "client_metrics"
"""The table that is made by ``kwire.events``, not by ``kwire.capture``."""

prefer_drivers_python()


def table_schema(table: str) -> StructType:
    """The Spark schema of ``frames``, ``messages``, ``records`` or ``client_metrics``.

    Raises ``KwireError`` for another name.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(_arrow_schema(table))
    return StructType([StructField(one.name, one.dataType, one.name not in ALWAYS) for one in schema.fields])


def _arrow_schema(table: str) -> Any:
    from kwire.capture.tables import SCHEMAS

    if table == CLIENT_METRICS:
        from kwire.events import telemetry

        return telemetry.CLIENT_METRICS
    if table not in SCHEMAS:
        raise KwireError(f"no table {table!r}: the option 'table' is one of {', '.join([*SCHEMAS, CLIENT_METRICS])}")
    return SCHEMAS[table]


def _reader(table: str) -> Any:
    if table == CLIENT_METRICS:
        from kwire.events import telemetry

        return telemetry.read
    from kwire.capture import read

    return partial(read, table=cast("Table", table))


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a read, checked. ``ports``: the broker ports to look at; none means to find out."""

    table: str
    ports: tuple[int, ...] | None
    paths: tuple[str, ...]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Options:
        """Raises ``KwireError`` for an option that is not known or has no such value."""
        known = (TABLE, PORTS, PATH, PATHS)
        for name in options:
            if name.lower() not in known:
                raise KwireError(f"no option {name!r}: the data source kwire has 'table' and 'ports'")
        paths = json.loads(options[PATHS]) if PATHS in options else [options[PATH]] if PATH in options else []
        if not paths:
            raise KwireError("nothing to read: give load() a file, a folder, a pattern, or a list of them")
        table = options.get(TABLE, "frames")
        _arrow_schema(table)
        return cls(table, _ports(options.get(PORTS)), tuple(paths))


def _ports(text: str | None) -> tuple[int, ...] | None:
    if text is None or not text.strip():
        return None
    ports = []
    for part in text.replace(",", " ").split():
        if not part.isdecimal() or not 0 < int(part) < 65536:
            raise KwireError(f"no port {part!r}: the option 'ports' is numbers from 1 to 65535, separated by commas")
        ports.append(int(part))
    return tuple(ports)


class KwireDataSource(DataSource):
    """``spark.read.format("kwire").option("table", "frames").option("ports", "9092,9093").load(path)``."""

    @classmethod
    def name(cls) -> str:
        """The word for ``format``."""
        return "kwire"

    def schema(self) -> StructType:
        """The columns of the table that was asked for."""
        return table_schema(Options.of(self.options).table)

    def reader(self, schema: StructType) -> CaptureReader:
        """The reader for ``schema``: the table's own, or the part of it that the user chose."""
        options = Options.of(self.options)
        whole = table_schema(options.table)
        known = {one.name: one for one in whole.fields}
        for one in schema.fields:
            if one.name not in known:
                raise KwireError(f"the table {options.table} has no column {one.name!r}: {', '.join(known)}")
            theirs = known[one.name]
            if one.dataType != theirs.dataType:
                raise KwireError(
                    f"column {one.name!r} is {theirs.dataType.simpleString()}, not {one.dataType.simpleString()}"
                )
            if theirs.nullable and not one.nullable:
                raise KwireError(f"column {one.name!r} can be null")
        return CaptureReader(options, schema)


@dataclass
class FilePartition(InputPartition):
    """One file."""

    file: File


class CaptureReader(DataSourceReader):
    """Reads captures, one partition for each file."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def partitions(self) -> list[FilePartition]:
        """The files. Raises ``CaptureError`` where there are none."""
        from kwire.spark.files import find

        return [FilePartition(file) for file in find(self.options.paths)]

    def read(self, partition: FilePartition) -> Iterator[Any]:  # type: ignore[override]
        """Batches of the rows of one file."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        read = _reader(self.options.table)
        schema = to_arrow_schema(self.schema, timezone="UTC")
        file = partition.file
        try:
            with file.open() as stream:
                for batch in read(stream, ports=self.options.ports, name=file.name):
                    columns = [batch.column(name) for name in schema.names]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except MissingExtraError:
            raise
        except (KwireError, OSError, pa.ArrowException) as error:
            row = {"capture": file.name, "status": BAD_FILE, "error": " ".join(str(error).split())}
            yield pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names}], schema=schema)
